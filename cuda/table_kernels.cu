// The GPU kernels of one table spec, compiled by NVRTC with the macros that table.cuh wants.
//
// All kernels together take long to compile, and few programs use all of them. So WARPSET_PART selects some, by the number of a
// `KernelSet` of src/backend/cuda/kernels.rs. Without it, all are compiled.
#include "warpset/batch/columns.cuh"
#include "warpset/batch/maintenance.cuh"
#include "warpset/batch/search.cuh"
#include "warpset/bucket/block_growth.cuh"
#include "warpset/bucket/bulk_filler.cuh"
#include "warpset/compact/relocation.cuh"
#include "warpset/indexed/upsert.cuh"
#include "warpset/indexed/values.cuh"
#include "warpset/table.cuh"
#include "warpset/tree/builder.cuh"
#include "warpset/tree/incremental_builder.cuh"
#include "warpset/tree/strategies/recursive_builder.cuh"
#include "warpset/tree/strategies/row_builder.cuh"

#ifdef WARPSET_PART
#define WARPSET_HAS_PART(part) (WARPSET_PART == (part))
#else
#define WARPSET_HAS_PART(part) 1
#endif

using warpset::BatchView;
using warpset::Operation;
using warpset::Table;
using warpset::u32;
using warpset::u64;
using warpset::u8;
using warpset::View;
// The layout of the table, or of a tree table's roots.
constexpr Table::Roots::Layout layout{};

// Warps per block: 4; but 2 if shared memory for 4 would leave room for fewer than three blocks in 228 KiB, or is more than a
// block may have (on compute capability 7.5, from 125 words on); and 1 if 2 need more than 64 KiB.
constexpr u32 scratch_bytes = warpset::search_scratch_bytes<Table>();
constexpr u32 most_scratch = warpset::platform::Block::most_scratch;
constexpr u32 most_for_four = most_scratch < 73728 ? most_scratch : 73728;
constexpr u32 search_warps = scratch_bytes * 4 <= most_for_four ? 4 : scratch_bytes * 2 <= 65536 ? 2 : 1;
static_assert(search_warps * scratch_bytes <= most_scratch, "a block has no more shared memory");
// Resident warps a multiprocessor, and so registers a thread: 40, 56, 64 or 80. Fewer registers spill, and a spilled one is a
// write to L2; more leave too few vectors in flight (H200, fill 0.25, G/s: 8 words at 40, 36 and 32 warps 15.7, 16.2 and 15.8; 32
// words at 36, 32 and 28 warps 5.6, 6.0 and 5.7; trees of 16 words at 40, 36 and 32 warps 7.1, 7.7 and 7.3; indexed tables of 12
// words at 36 and 32 warps 8.8 and 9.4, seen 12.8 and 14.0, but of 11 words 8.4 and 7.9, seen 10.3 and 9.4).
constexpr bool is_indexed_by_12 = WARPSET_INDEXED && layout.slot_words() == 12;
constexpr bool is_by_lanes = warpset::HasLaneSearch<Table>::value;
constexpr u32 resident_warps =
    is_by_lanes ? 48 : layout.slot_words() < 16 && !is_indexed_by_12 ? 36 : layout.slot_words() < 64 ? 32 : 24;
constexpr u32 search_blocks = resident_warps / search_warps;

// Read by the host. The order is that of `Geometry` in src/layout/view.rs.
WARPSET_EXPORT const u32 warpset_geometry[9] = {
    layout.slots_per_bucket(), layout.buckets_per_block(), layout.block_bytes(), layout.chunks(), search_warps * 32,
    search_warps * scratch_bytes, sizeof(View), sizeof(BatchView), warpset::search_workspace_bytes<Table>()};

#if WARPSET_HAS_PART(1)
WARPSET_KERNEL(256, 1) warpset_clear(View view) { warpset::clear_table(Table::of(view)); }

WARPSET_KERNEL(search_warps * 32, search_blocks) warpset_find_or_put(View view, BatchView batch)
{
    warpset::SearchBatch<Table, Operation::FindOrPut>::run_warps(Table::of(view), batch);
}
#endif

#if WARPSET_HAS_PART(2) && WARPSET_TREE && WARPSET_PAIRING != 1  // Table::is_incremental
WARPSET_KERNEL(search_warps * 32, search_blocks) warpset_find_or_put_incremental(View view, BatchView batch)
{
    warpset::SearchBatch<Table, Operation::FindOrPut, warpset::Offer::Incremental>::run_warps(Table::of(view), batch);
}
#endif

#if WARPSET_HAS_PART(3)
WARPSET_KERNEL(search_warps * 32, search_blocks) warpset_find(View view, BatchView batch)
{
    warpset::SearchBatch<Table, Operation::Find>::run_warps(Table::of(view), batch);
}
#endif

// Batches that another GPU has sent. Their kernels are separate because tables of one GPU do not need `refused`, and any
// additional work in a search kernel costs throughput.
#if WARPSET_HAS_PART(7)
WARPSET_KERNEL(search_warps * 32, search_blocks) warpset_find_or_put_received(View view, BatchView batch, const u64* refused)
{
    warpset::SearchBatch<Table, Operation::FindOrPut>::run_warps_unless(Table::of(view), batch, refused);
}
#endif

#if WARPSET_HAS_PART(8)
WARPSET_KERNEL(search_warps * 32, search_blocks) warpset_find_received(View view, BatchView batch, const u64* refused)
{
    warpset::SearchBatch<Table, Operation::Find>::run_warps_unless(Table::of(view), batch, refused);
}
#endif

#if WARPSET_HAS_PART(4)
WARPSET_KERNEL(256, 1) warpset_get(View view, const u64* references, u64 count, u32* vectors, u64* invalid)
{
    warpset::get_vectors(Table::of(view), references, count, vectors, invalid);
}

WARPSET_KERNEL(256, 1)
warpset_export(View view, u64 first, u64 last, u32* vectors, u64* references, u64* cursor, const u8* marks)
{
    warpset::export_vectors(Table::of(view), first, last, vectors, references, cursor, marks);
}

WARPSET_KERNEL(256, 1) warpset_measure(View view, u64 first, u64 last, u64* lengths, u32 bins, warpset::ProbeTotals* totals)
{
    warpset::measure_probes(Table::of(view), first, last, lengths, bins, totals);
}
#endif

#if WARPSET_HAS_PART(6) && WARPSET_INDEXED
// Into an index of 4 or 8 bytes a slot, whichever the larger table has: `slots` of `larger` is EMPTY. It waits for memory, so it
// has at most 64 registers: with the 72 that the compiler would take for 8 words, 24 warps fit a multiprocessor instead of 32.
WARPSET_KERNEL(256, 4) warpset_rebuild(View view, View larger, u32 larger_slot_bits, u64 first, u64 last,
                                       warpset::BatchCounts* counts)
{
    if (larger_slot_bits == 32)
        warpset::rebuild(Table::of(view), warpset::IndexedTable<WARPSET_WIDTH, 32>::of(larger), first, last, counts);
    else
        warpset::rebuild(Table::of(view), warpset::IndexedTable<WARPSET_WIDTH, 64>::of(larger), first, last, counts);
}

WARPSET_KERNEL(256, 1) warpset_list_holes(View view, u64 first, u64 last, u64* holes, u64 capacity, u64* count)
{
    warpset::list_holes(Table::of(view), first, last, holes, capacity, count);
}

WARPSET_KERNEL(256, 1) warpset_move_rows(View view, const warpset::RowMove* moves, u64 count)
{
    warpset::move_rows(Table::of(view), moves, count);
}

WARPSET_KERNEL(256, 1) warpset_count_unstored(View view, const u64* references, u64 count, u64* invalid)
{
    warpset::count_unstored(Table::of(view), references, count, invalid);
}

WARPSET_KERNEL(256, 1) warpset_gather_values(const u8* values, u64 value_bytes, const u64* references, u64 count, u8* packed)
{
    warpset::gather_values(values, value_bytes, references, count, packed);
}

WARPSET_KERNEL(256, 1) warpset_scatter_values(u8* values, u64 value_bytes, const u64* references, u64 count, const u8* packed)
{
    warpset::scatter_values(values, value_bytes, references, count, packed);
}
#endif

// Find-or-put that changes values beside the rows.
#if WARPSET_HAS_PART(9) && WARPSET_INDEXED
WARPSET_KERNEL(search_warps * 32, search_blocks) warpset_upsert(View view, BatchView batch, warpset::UpsertView upsert)
{
    warpset::SearchBatch<Table, Operation::FindOrPut>::run_warps(Table::of(view), warpset::UpsertBatch{batch, upsert});
}
#endif

// Rows of columns in device memory.
#if WARPSET_HAS_PART(10)
WARPSET_KERNEL(256, 1) warpset_gather_columns(warpset::ColumnsView view) { warpset::gather_columns<WARPSET_WIDTH>(view); }
#endif

// Growth of a bucket table whose slices one block each fills (src/backend/cuda/growth.rs).
#if WARPSET_HAS_PART(11) && !WARPSET_TREE && !WARPSET_KEY_BITS && !WARPSET_INDEXED
WARPSET_KERNEL(1024, 1)
warpset_grow(View from, View to, warpset::ShortSeeds seeds, u32 slices_a_part, u32 is_staged, u64 first, u64 last, u32 writes,
             u64* left, u64 capacity, u64* count)
{
    const warpset::PartRange range{slices_a_part, first, last, writes != 0};
    warpset::grow_by_blocks(Table::of(from), Table::of(to), seeds, range, is_staged != 0, {left, capacity, count});
}

WARPSET_KERNEL(256, 1)
warpset_keep_left(View from, const u64* left, u64 capacity, warpset::InPlace* progress, u32* vectors)
{
    warpset::keep_left(Table::of(from), left, capacity, progress, vectors);
}
#endif

// Bulk find-or-put of a bucket table whose vectors are one chunk without padding (src/backend/cuda/bulk.rs). A slice takes 32 KiB
// of shared memory for each word of a vector.
#define WARPSET_HAS_BULK                                                                                                        \
    (!WARPSET_TREE && !WARPSET_KEY_BITS && !WARPSET_INDEXED && WARPSET_WIDTH * 4 <= WARPSET_CHUNK_BYTES && WARPSET_WIDTH != 3)
#if WARPSET_HAS_PART(12) && WARPSET_HAS_BULK
using Bulk = warpset::Bulk<Table>;

// Two blocks a multiprocessor, because three have too few registers for a tile.
WARPSET_KERNEL(Bulk::threads, 2) warpset_bulk_partition(View view, warpset::BulkPass pass)
{
    const Table table = Table::of(view);
    warpset::BulkPartition<Table>{table, pass}.run();
}

WARPSET_KERNEL(Bulk::fill_threads, Bulk::fill_blocks) warpset_bulk_fill(View view, warpset::BulkSlices slices)
{
    const Table table = Table::of(view);
    warpset::BulkFiller<Table>{table, slices}.run();
}

WARPSET_KERNEL(256, 1) warpset_bulk_put_left(View view, warpset::BulkSlices slices)
{
    warpset::put_left(Table::of(view), slices);
}

WARPSET_KERNEL(Bulk::threads, 4) warpset_bulk_replay(warpset::BulkPass pass)
{
    warpset::BulkReplay<Table>{pass}.run();
}
#endif

#if WARPSET_HAS_PART(5) && WARPSET_KEY_BITS && !WARPSET_TREE
WARPSET_KERNEL(256, 1) warpset_relocate(View view, u64 seed, u64* keys, warpset::Relocated* counts)
{
    warpset::relocate_keys(Table::of(view), seed, keys, counts);
}
#endif
