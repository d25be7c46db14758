// Kernels of the tables on a CPU, and how cpu_tables.cpp reaches them.
//
// Each file of this folder has the kernels of one kind of table, or of some widths of it, so that build.rs compiles them in
// parallel: each file takes a compiler up to two seconds. A file defines `SearchKernels`, `MaintenanceKernels`, or both;
// cpu_tables.cpp has the entry points, which select those of a table and call one of their functions.
//
// Nearly all of the time to compile is that to optimise machine code, so its size is what to watch. Searches have kernels for
// each kind, width and slot where these are faster; all else is compiled for as few types as possible.
#pragma once

#include "warpset/batch/maintenance.cuh"
#include "warpset/batch/search.cuh"
#include "warpset/compact/relocation.cuh"
#include "warpset/indexed/upsert.cuh"
#include "warpset/indexed/values.cuh"

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

// The kinds of tables: the one list in C++, in the order of `Kind` in src/layout/kind.rs.
enum class TableKind : u32 { Bucket, Tree, Root, CompactTree, Indexed };

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

// Kernels of some tables, which get the view of such a table. The entry points of these names in cpu_tables.cpp say what each
// does.
struct SearchKernels {
    void (*find_or_put)(const View& view, const BatchView& batch);
    void (*find)(const View& view, const BatchView& batch);
};

// `slot_bits`: of a compact table, of a tree's compact roots, or of an index.
struct MaintenanceKernels {
    void (*geometry)(u32 width, SlotsOf slots, u32 slot_bits, Geometry* geometry);
    void (*clear)(const View& view);
    void (*get)(const View& view, const u64* references, u64 count, u32* vectors, u64* invalid);
    void (*export_range)(const View& view, u64 first, u64 last, u32* vectors, u64* references, u64* count);
    void (*measure)(const View& view, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals);
};

struct Kernels {
    SearchKernels search;
    MaintenanceKernels maintenance;
};

// Searches of bucket tables of up to 16 words have kernels for each width, where the loops over chunks are unrolled. Wider
// vectors in padded slots of 20 to 32 and of 64 words share kernels by slot; all others have kernels whose loops are as long as a
// run-time value says. Of indexed tables, widths up to 8 words have kernels of their own.
extern const SearchKernels bucket_1_to_4, bucket_5_to_10, bucket_11_to_16, bucket_from_17;
extern const Kernels tree_kernels, compact_kernels, compact_tree_kernels;
extern const SearchKernels indexed_1_to_8, indexed_from_9;
extern const MaintenanceKernels bucket_maintenance, indexed_maintenance;

// Kernels that only indexed tables have. `search`: the table's.
void upsert_indexed(const View& view, const SearchKernels& search, const BatchView& batch, const UpsertView& upsert);
void rebuild_indexed(const View& view, const View& larger, u64 first, u64 last, BatchCounts* counts);
void list_holes_indexed(const View& view, u64 first, u64 last, u64* holes, u64 capacity, u64* count);
void move_rows_indexed(const View& view, const RowMove* moves, u64 count);
void count_unstored_indexed(const View& view, const u64* references, u64 count, u64* invalid);

struct LeftVectors;

// Growth of bucket tables, in a file of its own for the same reason. `GrowthParts::count` of bucket/growth.cuh; `fill_part` and
// `export_left` of growth.hpp.
void count_parts_of_buckets(const View& from, const View& to, u64* count, u64* units_a_part);
void fill_part_of_buckets(const View& from, const View& to, u64 part, bool writes, const LeftVectors& left, u64* count);
void export_left_of_buckets(const View& from, u64 first, u64 last, const LeftVectors& left, u32* vectors, u64* count);

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

// Searches of the tables that `Tables` knows: `Tables::with_table(view, use)` calls `use(table)`.
template <class Tables>
constexpr SearchKernels search_kernels_of()
{
    return {
        [](const View& view, const BatchView& batch) {
            Tables::with_table(view, [&](const auto& table) {
                using Table = std::decay_t<decltype(table)>;
                if constexpr (Table::is_incremental) {
                    if (batch.parents)
                        return SearchBatch<Table, Operation::FindOrPut, Offer::Incremental>::run_thread(table, batch);
                }
                SearchBatch<Table, Operation::FindOrPut>::run_thread(table, batch);
            });
        },
        [](const View& view, const BatchView& batch) {
            Tables::with_table(view, [&](const auto& table) {
                SearchBatch<std::decay_t<decltype(table)>, Operation::Find>::run_thread(table, batch);
            });
        },
    };
}

// vectors[i] = the vector at references[i], for this thread's share of the i < count, if `read(slot, vector)` reads it. Otherwise
// adds the words of a vector to `invalid`.
template <class Read>
void get_each(u64 slots, u32 width, const u64* references, u64 count, u32* vectors, u64* invalid, Read read)
{
    const auto share = platform::Grid::share(count);
    for (u64 at = share.first; at < share.last; ++at) {
        const u64 slot = references[at] & slot_mask;  // the caller has checked the tags
        if (slot >= slots || !read(slot, vectors + at * width)) platform::add_relaxed(invalid, width);
    }
}

// Copies the vectors that `read(slot, vector)` reads from slots `first .. last`, from number `count` on, and their references to
// `references`, unless it is null. Adds their number to `count`, which nothing else uses. Room for last - first.
template <class Read>
void export_each(u32 width, u64 first, u64 last, u32* vectors, u64* references, u64* count, Read read)
{
    u64 at = *count;
    for (u64 slot = first; slot < last; ++slot) {
        if (!read(slot, vectors + at * width)) continue;
        if (references) references[at] = slot;
        ++at;
    }
    *count = at;
}

// Copies the vector in a slot. Returns false, perhaps after some words, if there is none.
template <class Table>
bool read_slot(const Table& table, u64 slot, u32* vector)
{
    return table.read_words(slot, 0, 1, [&](u32 word, u32 value) { vector[word] = value; });
}

// All that is no search, of the tables that `Tables` knows, as above. `Tables::geometry`: the kernel.
template <class Tables>
constexpr MaintenanceKernels maintenance_kernels_of()
{
    return {
        Tables::geometry,
        [](const View& view) { Tables::with_table(view, [](const auto& table) { clear_table(table); }); },
        [](const View& view, const u64* references, u64 count, u32* vectors, u64* invalid) {
            Tables::with_table(view, [&](const auto& table) {
                get_each(table.slots(), table.width(), references, count, vectors, invalid,
                         [&](u64 slot, u32* vector) { return read_slot(table, slot, vector); });
            });
        },
        [](const View& view, u64 first, u64 last, u32* vectors, u64* references, u64* count) {
            Tables::with_table(view, [&](const auto& table) {
                export_each(table.width(), first, last, vectors, references, count,
                            [&](u64 slot, u32* vector) { return read_slot(table, slot, vector); });
            });
        },
        [](const View& view, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals) {
            Tables::with_table(view, [&](const auto& table) { measure_probes(table, first, last, lengths, bins, totals); });
        },
    };
}

template <class Tables>
constexpr Kernels kernels_of()
{
    return {search_kernels_of<Tables>(), maintenance_kernels_of<Tables>()};
}

}  // namespace warpset
