// The CPU backend's entry points: the kernels of every kind and width of table (cpu_kernels/) behind one function each. Compiled
// by build.rs.
#include "cpu_entries.hpp"
#include "cpu_kernels/kernels.hpp"

namespace warpset {
namespace {

const SearchKernels& indexed_searches(const View* view)
{
    return view->as<IndexedView>().rows.width <= 8 ? indexed_1_to_8 : indexed_from_9;
}

const SearchKernels& bucket_searches(u32 width)
{
    if (width <= 4) return bucket_1_to_4;
    if (width <= 10) return bucket_5_to_10;
    return width <= 16 ? bucket_11_to_16 : bucket_from_17;
}

const SearchKernels& searches(const View* view)
{
    switch (view->kind) {
        case TableKind::Bucket: return bucket_searches(view->as<TableView>().width);
        case TableKind::Tree: return tree_kernels.search;
        case TableKind::Root: return compact_kernels.search;
        case TableKind::CompactTree: return compact_tree_kernels.search;
        default: return indexed_searches(view);
    }
}

const MaintenanceKernels& maintenance(TableKind kind)
{
    switch (kind) {
        case TableKind::Bucket: return bucket_maintenance;
        case TableKind::Tree: return tree_kernels.maintenance;
        case TableKind::Root: return compact_kernels.maintenance;
        case TableKind::CompactTree: return compact_tree_kernels.maintenance;
        default: return indexed_maintenance;
    }
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
    maintenance(kind).geometry(width, {slot_words, chunk_bytes}, slot_bits, geometry);
}

// For tests: bucket and code of a key under a function of the main level (0) or the stash (1), and the key that these two give
// back.
void warpset_cpu_quotient(const View* view, u32 level, u32 function, u64 key, u32* bucket, u64* code, u64* key_back)
{
    quotient_compact(*view, level, function, key, bucket, code, key_back);
}

// `thread` of `threads` threads clears its part of the table; the caller starts and joins them.
void warpset_cpu_clear(const View* view, u64 thread, u64 threads)
{
    play(thread, threads);
    maintenance(view->kind).clear(*view);
}

// As `warpset_cpu_clear`, for memory that is zeros, which is EMPTY in compact and indexed tables, and of nodes. For pages that
// were never written the system has not provided memory yet; writing EMPTY would make it provide all of them.
void warpset_cpu_clear_zeros(const View* view, u64 thread, u64 threads)
{
    static_assert(CompactLevel<16>::empty == 0 && CompactLevel<32>::empty == 0 && CompactLevel<64>::empty == 0);
    static_assert(NodeTable::empty == 0);
    if (view->kind != TableKind::Bucket && view->kind != TableKind::Tree) return;
    // The view of a tree table begins with that of its roots, which lie in a bucket table. Nodes are EMPTY already.
    View slots = *view;
    slots.kind = TableKind::Bucket;
    warpset_cpu_clear(&slots, thread, threads);
}

// `thread` of `threads` threads relocates its part of the keys of a compact table.
void warpset_cpu_relocate(const View* view, u64 thread, u64 threads, u64 seed, u64* keys, Relocated* counts)
{
    play(thread, threads);
    relocate_compact(*view, seed, keys, counts);
}

// `thread` of `threads` threads names its part of the rows `0 .. last` in the index of `larger`, which has been cleared.
void warpset_cpu_rebuild(const View* view, const View* larger, u64 thread, u64 threads, u64 last, BatchCounts* counts)
{
    play(thread, threads);
    rebuild_indexed(*view, *larger, last, counts);
}

// `thread` of `threads` threads lists its part of the holes among the rows `first .. last`.
void warpset_cpu_list_holes(const View* view, u64 thread, u64 threads, u64 first, u64 last, u64* holes, u64 capacity, u64* count)
{
    play(thread, threads);
    list_holes_indexed(*view, first, last, holes, capacity, count);
}

void warpset_cpu_move_rows(const View* view, const RowMove* moves, u64 count)
{
    play(0, 1);
    move_rows_indexed(*view, moves, count);
}

void warpset_cpu_count_unstored(const View* view, const u64* references, u64 count, u64* invalid)
{
    play(0, 1);
    count_unstored_indexed(*view, references, count, invalid);
}

// Incremental, if the batch has parents and the table gains by it.
void warpset_cpu_find_or_put(const View* view, const BatchView* batch)
{
    play(0, 1);
    searches(view).find_or_put(*view, *batch);
}

// Find-or-put into an indexed table, which changes values beside its rows.
void warpset_cpu_upsert(const View* view, const BatchView* batch, const UpsertView* upsert)
{
    play(0, 1);
    upsert_indexed(*view, indexed_searches(view), *batch, *upsert);
}

void warpset_cpu_find(const View* view, const BatchView* batch)
{
    play(0, 1);
    searches(view).find(*view, *batch);
}

void warpset_cpu_get(const View* view, const u64* references, u64 count, u32* vectors, u64* invalid)
{
    play(0, 1);
    maintenance(view->kind).get(*view, references, count, vectors, invalid);
}

// Copies the vectors of slots `first .. last`, from number `count` on, and adds their number to `count`, which only this call
// uses.
void warpset_cpu_export(const View* view, u64 first, u64 last, u32* vectors, u64* references, u64* count)
{
    play(0, 1);
    maintenance(view->kind).export_range(*view, first, last, vectors, references, count);
}

// Counts the parts of a bucket table that grows.
void warpset_cpu_count_parts(const View* view, u64* count)
{
    count_parts_of_buckets(*view, count);
}

// Fills part `part` of a bucket table with vectors of `from`, and adds those that it leaves to `left`. `count`: the vectors put.
void warpset_cpu_fill_part(const View* from, const View* to, u64 part, u64* left, u64* count)
{
    fill_part_of_buckets(*from, *to, part, left, count);
}

// Copies the vectors of slots `first .. last` that are in `left`, and counts them.
void warpset_cpu_export_left(const View* from, u64 first, u64 last, u64* left, u32* vectors, u64* count)
{
    export_left_of_buckets(*from, first, last, left, vectors, count);
}

// Counts the entries of all lists that the nodes of a table of trees need to move into another node table.
void warpset_cpu_count_tree_lists(const View* view, u64* entries)
{
    count_tree_lists(*view, entries);
}

// Replaces the references in `count` roots of `from`, as they are stored there, by those in `to`, as they are stored there, and
// puts the nodes into `to`. Drops the others: those that lack a node, which are added to `full`, and those that have none. Sets
// `count` to the number of roots that are left. `lists` are zeros at first, and shared by all calls for two tables.
void warpset_cpu_move_trees(const View* from, const View* to, u32* lists, u32* roots, u64* count, u64* full)
{
    move_trees(*from, *to, lists, roots, count, full);
}

void warpset_cpu_measure(const View* view, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals)
{
    play(0, 1);
    maintenance(view->kind).measure(*view, first, last, lengths, bins, totals);
}

}  // extern "C"
