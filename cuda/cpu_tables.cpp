// The CPU backend's entry points: the kernels of every width behind one function, compiled by build.rs.
//
// Widths 1 to 16 have kernels of their own, where the loops over chunks are unrolled; wider vectors share kernels whose width
// is a run-time value, where those loops are a small part of the work.
#include "warpset/batch/maintenance.cuh"
#include "warpset/batch/search.cuh"
#include "warpset/bucket/table.cuh"
#include "warpset/compact/relocation.cuh"
#include "warpset/compact/table.cuh"
#include "warpset/tree/table.cuh"

namespace warpset {
namespace {

// The order of the fields is `Geometry` in src/core/view.rs; the last five concern GPUs and the ABI.
struct Geometry {
    u32 slots_per_bucket, buckets_per_block, block_bytes, chunks, search_threads, search_scratch_bytes, table_view_bytes,
        batch_view_bytes, search_workspace_bytes;
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

// The views of all kinds of tables; those that a table is not of are zeros. `Views` in src/core/view.rs.
struct Views {
    TreeView tree;            // a bucket table has the first part only
    CompactTreeView compact;  // a compact table that is no tree's has the first part only
    u32 slot_bits, pairing;
};

// Calls `use(table)` with the compact table of a view.
template <class Use>
void with_compact(const Views& views, Use use)
{
    switch (views.slot_bits) {
        case 16: return use(CompactTable<16, 0>::of(views.compact.roots));
        case 32: return use(CompactTable<32, 0>::of(views.compact.roots));
        default: return use(CompactTable<64, 0>::of(views.compact.roots));
    }
}

// Calls `use(table)` with the tree table of a root table and its nodes. Of its strategy only the pairing matters to a thread.
template <class Roots, class Use>
void with_tree(const Views& views, const Roots& roots, const NodeView& nodes, Use use)
{
    const auto use_as = [&](auto strategy) { use(TreeTable<Roots, 0, decltype(strategy)>{roots, {nodes}, nodes.width}); };
    switch (Pairing{views.pairing}) {
        case Pairing::Neighboured: return use_as(Strategy<Lanes::One, Pairing::Neighboured, Workspace::Registers>{});
        case Pairing::Interleaved: return use_as(Strategy<Lanes::One, Pairing::Interleaved, Workspace::Registers>{});
        case Pairing::Halved: return use_as(Strategy<Lanes::One, Pairing::Halved, Workspace::Registers>{});
    }
}

// Calls `use(table)` with the table that a view is of.
template <class Use>
void with_table(const Views& views, Use use)
{
    const TreeView& view = views.tree;
    const NodeView& nodes = views.compact.nodes;
    if (views.slot_bits != 0 && nodes.width != 0)
        return with_compact(views, [&](const auto& roots) { use(TreeTable<std::decay_t<decltype(roots)>, 0>{roots, {nodes}, nodes.width}); });
    if (views.slot_bits != 0) return with_compact(views, use);
    if (view.nodes.width != 0) return with_tree(views, BucketTable<RootShape>::of(view.roots), view.nodes, use);
    with_shape(view.roots.width, [&](auto shape) {
        using Shape = decltype(shape);
        use(BucketTable<Shape>{view.roots, {shape}});
    });
}

template <class Layout>
Geometry geometry_of(const Layout& layout, u64 table_view_bytes)
{
    return {layout.slots_per_bucket(), layout.buckets_per_block(), layout.block_bytes(), layout.chunks(), 1, 0,
            static_cast<u32>(table_view_bytes), sizeof(BatchView), 0};
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

// `slot_bits`: of a compact table; else 0.
void warpset_cpu_geometry(u32 tree, u32 width, u32 slot_bits, Geometry* geometry)
{
    if (slot_bits != 0) {
        Views views{};
        views.slot_bits = slot_bits;
        with_compact(views, [&](const auto& table) {
            *geometry = geometry_of(typename std::decay_t<decltype(table)>::Layout{}, tree ? sizeof(CompactTreeView) : sizeof(CompactView));
        });
        return;
    }
    with_shape(tree ? 2 : width, [&](auto shape) {
        *geometry = geometry_of(Layout<decltype(shape)>{shape}, tree ? sizeof(TreeView) : sizeof(TableView));
    });
}

// For tests: bucket and code of a key under a function of the main level (0) or the stash (1), and which key these two are of.
void warpset_cpu_quotient(const Views* views, u32 level, u32 function, u64 key, u32* bucket, u64* code, u64* key_back)
{
    with_compact(*views, [&](const auto& table) {
        const auto quotient_in = [&](const auto& level) {
            const u32 in_family = level.view.first_function + function;
            const auto at = level.quotiented(table.hash.fraction(table.hash.scramble(key), in_family), function);
            *bucket = at.bucket;
            *code = at.code;
            *key_back = table.hash.key(level.fraction(at, table.hash.bits()), in_family);
        };
        level == 0 ? quotient_in(table.main) : quotient_in(table.stash);
    });
}

// `thread` of `threads` threads clears its part of the table; the caller starts and joins them.
void warpset_cpu_clear(const Views* view, u64 thread, u64 threads)
{
    play(thread, threads);
    with_table(*view, [](const auto& table) { clear_table(table); });
}

// `thread` of `threads` threads relocates its part of the keys of a compact table.
void warpset_cpu_relocate(const Views* view, u64 thread, u64 threads, u64 seed, u64* keys, Relocated* counts)
{
    play(thread, threads);
    with_compact(*view, [&](const auto& table) { relocate_keys(table, seed, keys, counts); });
}

// Incremental, if the batch has parents and the table gains by it.
void warpset_cpu_find_or_put(const Views* view, const BatchView* batch)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) {
        using Table = std::decay_t<decltype(table)>;
        if constexpr (Table::is_incremental) {
            if (batch->parents) return SearchBatch<Table, Operation::FindOrPut, Offer::Incremental>::run_thread(table, *batch);
        }
        SearchBatch<Table, Operation::FindOrPut>::run_thread(table, *batch);
    });
}

void warpset_cpu_find(const Views* view, const BatchView* batch)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) {
        using Table = std::decay_t<decltype(table)>;
        SearchBatch<Table, Operation::Find>::run_thread(table, *batch);
    });
}

void warpset_cpu_get(const Views* view, const u64* references, u64 count, u32* vectors, u64* invalid)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) { get_vectors(table, references, count, vectors, invalid); });
}

void warpset_cpu_export(const Views* view, u64 first, u64 last, u32* vectors, u64* references, u64* cursor)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) { export_vectors(table, first, last, vectors, references, cursor); });
}

void warpset_cpu_measure(const Views* view, u64 first, u64 last, u64* lengths, u32 bins, warpset::ProbeTotals* totals)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) { measure_probes(table, first, last, lengths, bins, totals); });
}

}  // extern "C"
