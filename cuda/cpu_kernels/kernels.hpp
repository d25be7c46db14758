// Kernels of the tables on a CPU, and how cpu_tables.cpp reaches them.
//
// Each file of this folder has the kernels of one kind of table, or of some widths of it, so that build.rs compiles them in
// parallel: each file takes a compiler seconds. A file defines one `Kernels`; cpu_tables.cpp has the entry points, which select
// the `Kernels` of a table and call one of its functions.
#pragma once

#include "warpset/batch/maintenance.cuh"
#include "warpset/batch/search.cuh"
#include "warpset/compact/relocation.cuh"
#include "warpset/indexed/upsert.cuh"

namespace warpset {

// The order of the fields is `Geometry` in src/layout/view.rs; the last five concern GPUs and the ABI.
struct Geometry {
    u32 slots_per_bucket, buckets_per_block, block_bytes, chunks, search_threads, search_scratch_bytes, table_view_bytes,
        batch_view_bytes, search_workspace_bytes;
};

// Layout of slots for vectors. Mirrored by `SlotsOf` in src/backend/cpu/kernels.rs.
struct SlotsOf {
    u32 words;  // words of a slot; more than a vector has if slots are padded
    u32 chunk_bytes;
};

// Kind of a table's view, in the order of `TableKind` in src/backend/cpu/kernels.rs.
enum class TableKind : u32 { Bucket, Tree, Compact, CompactTree, Indexed };

// A table of any kind. Mirrored by `CpuView` in src/backend/cpu/kernels.rs.
struct View {
    const void* table;  // TableView, TreeView, CompactView, CompactTreeView or IndexedView
    TableKind kind;
    Pairing pairing;  // tree tables only
    u32 slot_bits;    // compact and indexed tables only
    SlotsOf slots;    // other tables
    u64* filter;      // bucket tables only: the filter, if this call uses it (filter.hpp); otherwise null
    u64 filter_words;

    template <class ViewOfKind>
    const ViewOfKind& as() const { return *static_cast<const ViewOfKind*>(table); }
};

constexpr bool has_chunks_of_16 = WARPSET_CLAIMS_16_BYTES;

// Kernels of some tables. All but `geometry` get the view of such a table; the entry points of these names in cpu_tables.cpp say
// what each does. `slot_bits`: of a compact table, of a tree's compact roots, or of an index.
struct Kernels {
    void (*geometry)(u32 width, SlotsOf slots, u32 slot_bits, Geometry* geometry);
    void (*clear)(const View& view);
    void (*find_or_put)(const View& view, const BatchView& batch);
    void (*find)(const View& view, const BatchView& batch);
    void (*get)(const View& view, const u64* references, u64 count, u32* vectors, u64* invalid);
    void (*export_range)(const View& view, u64 first, u64 last, u32* vectors, u64* references, u64* cursor);
    void (*measure)(const View& view, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals);
};

// Kernels that only indexed tables have.
struct IndexedKernels : Kernels {
    void (*upsert)(const View& view, const BatchView& batch, const UpsertView& upsert);
    void (*rebuild)(const View& view, const View& larger, u64 last, BatchCounts* counts);
    void (*list_holes)(const View& view, u64 first, u64 last, u64* holes, u64 capacity, u64* count);
    void (*move_rows)(const View& view, const RowMove* moves, u64 count);
    void (*count_unstored)(const View& view, const u64* references, u64 count, u64* invalid);
};

// Widths 1 to 16 have kernels of their own, where the loops over chunks are unrolled. Wider vectors in padded slots of 20 to 32
// and of 64 words share kernels by slot; all others have kernels whose loops are as long as a run-time value says.
extern const Kernels bucket_1_to_4, bucket_5_to_10, bucket_11_to_16, bucket_from_17;
extern const Kernels tree_kernels, compact_kernels, compact_tree_kernels;
extern const IndexedKernels indexed_1_to_8, indexed_from_9;

// Searches of bucket tables with a filter, in files of their own: more callers of a function in one file may change which of them
// the compiler inlines it into, and so the time of tables without a filter.
struct FilteredKernels {
    void (*find_or_put)(const View& view, const BatchView& batch);
    void (*find)(const View& view, const BatchView& batch);
};
extern const FilteredKernels filtered_1_to_8, filtered_9_to_16, filtered_from_17;

// Growth of bucket tables, in a file of its own for the same reason. `Parts::count`, `fill_part` and `export_left` of growth.hpp.
void count_parts_of_buckets(const View& view, u64* count);
void fill_part_of_buckets(const View& from, const View& to, u64 part, u64* left, u64* count);
void export_left_of_buckets(const View& from, u64 first, u64 last, u64* left, u32* vectors, u64* count);

// Growth of the nodes of trees (tree_growth.cpp).
void count_tree_lists(const View& view, u64* entries);
void move_trees(const View& from, const View& to, u32* lists, u32* roots, u64* count, u64* full);

// Kernels that only compact tables have.
void relocate_compact(const View& view, u64 seed, u64* keys, Relocated* counts);
void quotient_compact(const View& view, u32 level, u32 function, u64 key, u32* bucket, u64* code, u64* key_back);

template <class Layout>
Geometry geometry_of(const Layout& layout, u64 table_view_bytes)
{
    return {layout.slots_per_bucket(), layout.buckets_per_block(), layout.block_bytes(), layout.chunks(), 1, 0,
            static_cast<u32>(table_view_bytes), sizeof(BatchView), 0};
}

// Kernels of the tables that `Tables` knows: `Tables::geometry`, and `Tables::with_table(view, use)`, which calls `use(table)`.
// `RareTables`: of the kernels that no time matters in, which may then be compiled for fewer types of table.
template <class Tables, class RareTables = Tables>
constexpr Kernels kernels_of()
{
    return {
        Tables::geometry,
        [](const View& view) { RareTables::with_table(view, [](const auto& table) { clear_table(table); }); },
        [](const View& view, const BatchView& batch) {
            Tables::with_table(view, [&](const auto& table) {
                using Table = std::decay_t<decltype(table)>;
                if constexpr (Table::is_incremental) {
                    if (batch.parents) return SearchBatch<Table, Operation::FindOrPut, Offer::Incremental>::run_thread(table, batch);
                }
                SearchBatch<Table, Operation::FindOrPut>::run_thread(table, batch);
            });
        },
        [](const View& view, const BatchView& batch) {
            Tables::with_table(view, [&](const auto& table) {
                SearchBatch<std::decay_t<decltype(table)>, Operation::Find>::run_thread(table, batch);
            });
        },
        [](const View& view, const u64* references, u64 count, u32* vectors, u64* invalid) {
            Tables::with_table(view, [&](const auto& table) { get_vectors(table, references, count, vectors, invalid); });
        },
        [](const View& view, u64 first, u64 last, u32* vectors, u64* references, u64* cursor) {
            Tables::with_table(view, [&](const auto& table) { export_vectors(table, first, last, vectors, references, cursor); });
        },
        [](const View& view, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals) {
            RareTables::with_table(view, [&](const auto& table) { measure_probes(table, first, last, lengths, bins, totals); });
        },
    };
}

}  // namespace warpset
