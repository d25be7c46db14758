// The CPU backend's entry points: the kernels of every width behind one function, compiled by build.rs.
//
// Widths 1 to 16 have kernels of their own, with unrolled loops over chunks, for each layout of slots. Wider vectors in padded
// slots of 20 to 32 and of 64 words share kernels by slot size. All others have kernels whose loops have a run-time length.
#include "warpset/batch/maintenance.cuh"
#include "warpset/batch/search.cuh"
#include "warpset/bucket/table.cuh"
#include "warpset/compact/relocation.cuh"
#include "warpset/compact/table.cuh"
#include "warpset/indexed/maintenance.cuh"
#include "warpset/tree/table.cuh"

namespace warpset {
namespace {

// The order of the fields is `Geometry` in src/layout/view.rs; the last five concern GPUs and the ABI.
struct Geometry {
    u32 slots_per_bucket, buckets_per_block, block_bytes, chunks, search_threads, search_scratch_bytes, table_view_bytes,
        batch_view_bytes, search_workspace_bytes;
};

// Layout of slots for vectors. Mirrored by `SlotsOf` in src/backend/cpu/store.rs.
struct SlotsOf {
    u32 words;  // of a slot, more than a vector has if it is padded
    u32 chunk_bytes;
};

constexpr bool has_chunks_of_16 = WARPSET_CLAIMS_16_BYTES;

// Calls `use(shape)` with the shape for a width from 17 on.
template <class Use>
void with_wide_shape(u32 width, SlotsOf slots, Use use)
{
    if constexpr (has_chunks_of_16) {
        if (slots.chunk_bytes == 16) {
            switch (slots.words) {
                case 20: return use(SlotShape<20>{width});
                case 24: return use(SlotShape<24>{width});
                case 28: return use(SlotShape<28>{width});
                case 32: return use(SlotShape<32>{width});
                case 64: return use(SlotShape<64>{width});
                default: return use(DynamicShape<16>{width, slots.words});
            }
        }
    }
    use(DynamicShape<8>{width, slots.words});
}

// Calls `use(shape)` with the shape for a width. Lines are those of `Spec::bucket`.
template <u32 width_words = 1, class Use>
void with_shape(u32 width, SlotsOf slots, Use use)
{
    if constexpr (width_words > 16) {
        with_wide_shape(width, slots, use);
    } else {
        if (width != width_words) return with_shape<width_words + 1>(width, slots, use);
        if constexpr (has_chunks_of_16) {
            constexpr u32 line_bytes = width_words <= 2 ? 32 : 64;
            constexpr u32 padded_words = width_words <= 2 ? width_words : (width_words + 3) / 4 * 4;
            if (slots.chunk_bytes == 16) {
                if (slots.words == padded_words) return use(StaticShape<width_words, 16, line_bytes, padded_words>{});
                if constexpr (padded_words > width_words) return use(StaticShape<width_words, 16, line_bytes>{});
            }
        }
        use(StaticShape<width_words, 8, 64>{});
    }
}

// Root tables of tree tables.
template <class Use>
void with_root_shape(SlotsOf slots, Use use)
{
    if (slots.chunk_bytes == 16)
        use(StaticShape<2, 16, 32>{});
    else
        use(StaticShape<2, 8, 64>{});
}

// Kind of a table's view, in the order of `TableKind` in src/backend/cpu/store.rs.
enum class TableKind : u32 { Bucket, Tree, Compact, CompactTree, Indexed };

// A table of any kind. Mirrored by `CpuView` in src/backend/cpu/store.rs.
struct View {
    const void* table;  // TableView, TreeView, CompactView, CompactTreeView or IndexedView
    TableKind kind;
    Pairing pairing;  // of a tree table
    u32 slot_bits;    // of a compact or an indexed table
    SlotsOf slots;    // of others

    template <class ViewOfKind>
    const ViewOfKind& as() const { return *static_cast<const ViewOfKind*>(table); }
};

// Calls `use(type)` with a null pointer to the type of compact tables with slots of `bits` bits.
template <class Use>
void with_slots(u32 slot_bits, Use use)
{
    switch (slot_bits) {
        case 16: return use(static_cast<CompactTable<16, 0>*>(nullptr));
        case 32: return use(static_cast<CompactTable<32, 0>*>(nullptr));
        default: return use(static_cast<CompactTable<64, 0>*>(nullptr));
    }
}

// Calls `use(table)` with the compact table of a view.
template <class Use>
void with_compact(const View& view, Use use)
{
    with_slots(view.slot_bits, [&](auto* type) { use(std::remove_pointer_t<decltype(type)>::of(view.as<CompactView>())); });
}

// Calls `use(table)` with the tree table of a view. Of its strategy only the pairing matters to a thread.
template <class Use>
void with_tree(const View& view, Use use)
{
    const TreeView& tree = view.as<TreeView>();
    const auto use_as = [&](auto strategy) {
        with_root_shape(view.slots, [&](auto shape) {
            using Roots = BucketTable<decltype(shape)>;
            use(TreeTable<Roots, 0, decltype(strategy)>{Roots::of(tree.roots), {tree.nodes}, tree.nodes.width});
        });
    };
    switch (view.pairing) {
        case Pairing::Neighboured: return use_as(Strategy<Lanes::One, Pairing::Neighboured, Workspace::Registers>{});
        case Pairing::Interleaved: return use_as(Strategy<Lanes::One, Pairing::Interleaved, Workspace::Registers>{});
        case Pairing::Halved: return use_as(Strategy<Lanes::One, Pairing::Halved, Workspace::Registers>{});
    }
}

// Calls `use(table)` with the tree table with compact roots of a view.
template <class Use>
void with_compact_tree(const View& view, Use use)
{
    const CompactTreeView& tree = view.as<CompactTreeView>();
    with_slots(view.slot_bits, [&](auto* type) {
        using Roots = std::remove_pointer_t<decltype(type)>;
        use(TreeTable<Roots, 0>{Roots::of(tree.roots), {tree.nodes}, tree.nodes.width});
    });
}

// Calls `use(type)` with a null pointer to the type of indexed tables of vectors of a width. As for bucket tables, widths up to
// 16 have code of their own.
template <u32 width_words = 1, class Use>
void with_indexed_type(u32 width, u32 slot_bits, Use use)
{
    if constexpr (width_words <= 16) {
        if (width != width_words) return with_indexed_type<width_words + 1>(width, slot_bits, use);
    }
    constexpr u32 static_width = width_words <= 16 ? width_words : 0;
    if (slot_bits == 32)
        use(static_cast<IndexedTable<static_width, 32>*>(nullptr));
    else
        use(static_cast<IndexedTable<static_width, 64>*>(nullptr));
}

// Calls `use(table)` with the indexed table of a view.
template <class Use>
void with_indexed(const View& view, Use use)
{
    const IndexedView& indexed = view.as<IndexedView>();
    with_indexed_type(indexed.rows.width, view.slot_bits, [&](auto* type) { use(std::remove_pointer_t<decltype(type)>::of(indexed)); });
}

// Calls `use(table)` with the table of a view.
template <class Use>
void with_table(const View& view, Use use)
{
    switch (view.kind) {
        case TableKind::Bucket:
            return with_shape(view.as<TableView>().width, view.slots, [&](auto shape) {
                use(BucketTable<decltype(shape)>{view.as<TableView>(), {shape}});
            });
        case TableKind::Tree: return with_tree(view, use);
        case TableKind::Compact: return with_compact(view, use);
        case TableKind::CompactTree: return with_compact_tree(view, use);
        case TableKind::Indexed: return with_indexed(view, use);
    }
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

// Bytes of the largest chunk that was compiled for; not every processor has it.
u32 warpset_cpu_most_chunk_bytes() { return has_chunks_of_16 ? 16 : 8; }

// `slot_bits`: of a compact table, of a tree's compact roots, or of an index.
void warpset_cpu_geometry(TableKind kind, u32 width, u32 slot_words, u32 chunk_bytes, u32 slot_bits, Geometry* geometry)
{
    const auto of_shape = [&](u32 words, u64 view_bytes) {
        with_shape(words, {slot_words, chunk_bytes}, [&](auto shape) { *geometry = geometry_of(Layout<decltype(shape)>{shape}, view_bytes); });
    };
    const auto of_slots = [&](u64 view_bytes) {
        with_slots(slot_bits, [&](auto* type) {
            *geometry = geometry_of(typename std::remove_pointer_t<decltype(type)>::Layout{}, view_bytes);
        });
    };
    switch (kind) {
        case TableKind::Bucket: return of_shape(width, sizeof(TableView));
        case TableKind::Tree: return of_shape(2, sizeof(TreeView));
        case TableKind::Compact: return of_slots(sizeof(CompactView));
        case TableKind::CompactTree: return of_slots(sizeof(CompactTreeView));
        case TableKind::Indexed:
            return with_indexed_type(width, slot_bits, [&](auto* type) {
                *geometry = geometry_of(typename std::remove_pointer_t<decltype(type)>::Layout{}, sizeof(IndexedView));
            });
    }
}

// For tests: bucket and code of a key under a function of the main level (0) or the stash (1), and the key that these two give
// back.
void warpset_cpu_quotient(const View* view, u32 level, u32 function, u64 key, u32* bucket, u64* code, u64* key_back)
{
    with_compact(*view, [&](const auto& table) {
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
void warpset_cpu_clear(const View* view, u64 thread, u64 threads)
{
    play(thread, threads);
    with_table(*view, [](const auto& table) { clear_table(table); });
}

// `thread` of `threads` threads relocates its part of the keys of a compact table.
void warpset_cpu_relocate(const View* view, u64 thread, u64 threads, u64 seed, u64* keys, Relocated* counts)
{
    play(thread, threads);
    with_compact(*view, [&](const auto& table) { relocate_keys(table, seed, keys, counts); });
}

// `thread` of `threads` threads names its part of the rows `0 .. last` in the index of `larger`, which has been cleared.
void warpset_cpu_rebuild(const View* view, const View* larger, u64 thread, u64 threads, u64 last, BatchCounts* counts)
{
    play(thread, threads);
    with_indexed(*view, [&](const auto& old) {
        using Old = std::decay_t<decltype(old)>;
        const IndexedView& to = larger->as<IndexedView>();
        if (larger->slot_bits == 32)
            rebuild(old, IndexedTable<Old::static_width, 32>::of(to), 0, last, counts);
        else
            rebuild(old, IndexedTable<Old::static_width, 64>::of(to), 0, last, counts);
    });
}

// `thread` of `threads` threads lists its part of the holes among the rows `first .. last`.
void warpset_cpu_list_holes(const View* view, u64 thread, u64 threads, u64 first, u64 last, u64* holes, u64 room, u64* count)
{
    play(thread, threads);
    with_indexed(*view, [&](const auto& table) { list_holes(table, first, last, holes, room, count); });
}

void warpset_cpu_move_rows(const View* view, const RowMove* moves, u64 count)
{
    play(0, 1);
    with_indexed(*view, [&](const auto& table) { move_rows(table, moves, count); });
}

void warpset_cpu_count_unstored(const View* view, const u64* references, u64 count, u64* invalid)
{
    play(0, 1);
    with_indexed(*view, [&](const auto& table) { count_unstored(table, references, count, invalid); });
}

// Incremental, if the batch has parents and the table gains by it.
void warpset_cpu_find_or_put(const View* view, const BatchView* batch)
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

void warpset_cpu_find(const View* view, const BatchView* batch)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) {
        using Table = std::decay_t<decltype(table)>;
        SearchBatch<Table, Operation::Find>::run_thread(table, *batch);
    });
}

void warpset_cpu_get(const View* view, const u64* references, u64 count, u32* vectors, u64* invalid)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) { get_vectors(table, references, count, vectors, invalid); });
}

void warpset_cpu_export(const View* view, u64 first, u64 last, u32* vectors, u64* references, u64* cursor)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) { export_vectors(table, first, last, vectors, references, cursor); });
}

void warpset_cpu_measure(const View* view, u64 first, u64 last, u64* lengths, u32 bins, warpset::ProbeTotals* totals)
{
    play(0, 1);
    with_table(*view, [&](const auto& table) { measure_probes(table, first, last, lengths, bins, totals); });
}

}  // extern "C"
