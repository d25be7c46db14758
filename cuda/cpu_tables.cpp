// The CPU backend's entry points: the kernels of every width behind one function, compiled by build.rs.
//
// Widths 1 to 16 have kernels of their own, where the loops over chunks are unrolled; wider vectors share kernels whose width
// is a run-time value, where those loops are a small part of the work.
#include "warpset/batch.cuh"

namespace warpset {
namespace {

// The order of the fields is `Geometry` in src/raw/view.rs; the last four concern GPUs and the ABI.
struct Geometry {
    u32 slots_per_bucket, buckets_per_block, block_bytes, chunks, search_threads, search_scratch_bytes, table_view_bytes,
        batch_view_bytes;
};

// Calls `use(shape)` with the shape for a width.
template <u32 width_words = 1, class Use>
void with_shape(u32 width, Use use)
{
    if constexpr (width_words > 16) {
        use(DynamicShape{width});
    } else {
        if (width == width_words)
            use(StaticShape<width_words, 8, 64>{});
        else
            with_shape<width_words + 1>(width, use);
    }
}

using RootShape = StaticShape<2, 8, 64>;

// Calls `use(table)` with the table that a view is of. A bucket table has the first part of the view only.
template <class Use>
void with_table(const TreeView& view, Use use)
{
    if (view.nodes.width != 0) {
        use(TreeTable<RootShape, 0>{{view.roots, {}}, {view.nodes}, view.nodes.width});
        return;
    }
    with_shape(view.roots.width, [&](auto shape) {
        using Shape = decltype(shape);
        use(BucketTable<Shape>{view.roots, {shape}});
    });
}

// One thread of a kernel: thread `index` of `count`.
void play(u64 index, u64 count)
{
    platform::Grid::thread_index = index;
    platform::Grid::thread_count = count;
}

}  // namespace
}  // namespace warpset

using namespace warpset;

extern "C" {

void warpset_cpu_geometry(u32 tree, u32 width, Geometry* geometry)
{
    with_shape(tree ? 2 : width, [&](auto shape) {
        Layout<decltype(shape)> layout{shape};
        *geometry = {layout.slots_per_bucket(), layout.buckets_per_block(), layout.block_bytes(), layout.chunks(), 1, 0,
                     static_cast<u32>(tree ? sizeof(TreeView) : sizeof(TableView)), sizeof(BatchView)};
    });
}

// `thread` of `threads` threads clears its part of the table; the caller starts and joins them.
void warpset_cpu_clear(const TreeView* view, u64 thread, u64 threads)
{
    play(thread, threads);
    with_table(*view, [](const auto& table) { clear_table(table); });
}

// Of changes, if the batch has parents and the table gains by it.
void warpset_cpu_find_or_put(const TreeView* view, const BatchView* batch)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) {
        using Table = std::decay_t<decltype(table)>;
        if constexpr (Table::takes_changes) {
            if (batch->parents) return SearchBatch<Table, Operation::FindOrPut, Offer::Changes>::run_thread(table, *batch);
        }
        SearchBatch<Table, Operation::FindOrPut>::run_thread(table, *batch);
    });
}

void warpset_cpu_find(const TreeView* view, const BatchView* batch)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) {
        using Table = std::decay_t<decltype(table)>;
        SearchBatch<Table, Operation::Find>::run_thread(table, *batch);
    });
}

void warpset_cpu_get(const TreeView* view, const u64* references, u64 count, u32* vectors, u64* invalid)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) { get_vectors(table, references, count, vectors, invalid); });
}

void warpset_cpu_export(const TreeView* view, u64 first, u64 last, u32* vectors, u64* references, u64* cursor)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) { export_vectors(table, first, last, vectors, references, cursor); });
}

void warpset_cpu_measure(const TreeView* view, u64 first, u64 last, u64* lengths, u32 bins, u64* longest)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) { measure_probes(table.root_table(), first, last, lengths, bins, longest); });
}

}  // extern "C"
