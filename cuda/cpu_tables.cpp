// The CPU backend's entry points: the kernels of every kind and width of table (cpu_kernels/) behind one function each. Compiled
// by build.rs.
#include <cstring>

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

// A kernel that is no search, with its name and its arguments as on a GPU (table_kernels.cu): the tables that come first, and the
// others.
struct Kernel {
    const char* name;
    void (*run)(const View* tables, const u64* arguments);
};

// An argument that is an address.
template <class T>
T* at(u64 address) { return reinterpret_cast<T*>(address); }

const Kernel kernels[] = {
    {"warpset_clear", [](const View* table, const u64*) { maintenance(table->kind).clear(*table); }},
    // For memory that is zeros, which is EMPTY in compact and indexed tables, and of nodes. For pages that were never written the
    // system has not provided memory yet; writing EMPTY would make it provide all of them.
    {"warpset_clear_zeros",
     [](const View* table, const u64*) {
         static_assert(CompactLevel<16>::empty == 0 && CompactLevel<32>::empty == 0 && CompactLevel<64>::empty == 0);
         static_assert(NodeTable::empty == 0);
         // The view of a tree table begins with that of its roots, which lie in a bucket table. Nodes are EMPTY already.
         if (table->kind == TableKind::Bucket || table->kind == TableKind::Tree) bucket_maintenance.clear(*table);
     }},
    {"warpset_get",
     [](const View* table, const u64* of) {
         maintenance(table->kind).get(*table, at<const u64>(of[0]), of[1], at<u32>(of[2]), at<u64>(of[3]));
     }},
    // Its vectors are in the order of the slots, so one thread runs it. There are no marks here.
    {"warpset_export",
     [](const View* table, const u64* of) {
         maintenance(table->kind).export_range(*table, of[0], of[1], at<u32>(of[2]), at<u64>(of[3]), at<u64>(of[4]));
     }},
    {"warpset_measure",
     [](const View* table, const u64* of) {
         const auto share = platform::Grid::share(of[1] - of[0]);
         play(0, 1);
         const u64 first = of[0] + share.first, last = of[0] + share.last;
         maintenance(table->kind).measure(*table, first, last, at<u64>(of[2]), static_cast<u32>(of[3]), at<ProbeTotals>(of[4]));
     }},
    {"warpset_relocate",
     [](const View* table, const u64* of) { relocate_compact(*table, of[0], at<u64>(of[1]), at<Relocated>(of[2])); }},
    {"warpset_rebuild",
     [](const View* tables, const u64* of) { rebuild_indexed(tables[0], tables[1], of[1], of[2], at<BatchCounts>(of[3])); }},
    {"warpset_list_holes",
     [](const View* table, const u64* of) { list_holes_indexed(*table, of[0], of[1], at<u64>(of[2]), of[3], at<u64>(of[4])); }},
    {"warpset_move_rows", [](const View* table, const u64* of) { move_rows_indexed(*table, at<const RowMove>(of[0]), of[1]); }},
    {"warpset_count_unstored",
     [](const View* table, const u64* of) { count_unstored_indexed(*table, at<const u64>(of[0]), of[1], at<u64>(of[2])); }},
    {"warpset_gather_values",
     [](const View*, const u64* of) { gather_values(at<const u8>(of[0]), of[1], at<const u64>(of[2]), of[3], at<u8>(of[4])); }},
    {"warpset_scatter_values",
     [](const View*, const u64* of) { scatter_values(at<u8>(of[0]), of[1], at<const u64>(of[2]), of[3], at<const u8>(of[4])); }},
};

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

// The kernel of this name; null if there is none.
const void* warpset_cpu_kernel(const char* name)
{
    for (const Kernel& kernel : kernels)
        if (std::strcmp(kernel.name, name) == 0) return &kernel;
    return nullptr;
}

// Thread `thread` of `threads` threads of a kernel; the caller starts and joins them.
void warpset_cpu_launch(const void* kernel, const View* tables, u64 thread, u64 threads, const u64* arguments)
{
    play(thread, threads);
    static_cast<const Kernel*>(kernel)->run(tables, arguments);
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

// Counts the parts of a bucket table `to` that is filled with the vectors of `from`, and the slices of a part.
void warpset_cpu_count_parts(const View* from, const View* to, u64* count, u64* slices_a_part)
{
    count_parts_of_buckets(*from, *to, count, slices_a_part);
}

// Fills part `part` of a bucket table with vectors of `from`, and adds those that it leaves to `left`. `count`: the vectors put.
// Unless `writes`, only counts. `left`: LeftVectors of growth.hpp.
void warpset_cpu_fill_part(const View* from, const View* to, u64 part, u32 writes, const LeftVectors* left, u64* count)
{
    fill_part_of_buckets(*from, *to, part, writes != 0, *left, count);
}

// Copies the vectors of slots `first .. last` that are in `left`, or of these entries of its list, and counts them.
void warpset_cpu_export_left(const View* from, u64 first, u64 last, const LeftVectors* left, u32* vectors, u64* count)
{
    export_left_of_buckets(*from, first, last, *left, vectors, count);
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

}  // extern "C"
