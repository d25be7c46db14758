// Kernels that are loops over the index or the rows of an indexed table: clear, rebuild, move, list holes, check references.
#pragma once

#include "warpset/core/batch_view.cuh"
#include "warpset/indexed/table.cuh"

namespace warpset {

// Makes the index EMPTY and removes all rows, so that row numbers start again from 0. Nothing else may use the table at the
// same time.
template <u32 width, u32 slot_bits>
WARPSET_FN void clear_table(const IndexedTable<width, slot_bits>& table)
{
    u64* words = reinterpret_cast<u64*>(table.view.slots);
    const auto share = platform::Grid::share(table.view.buckets * (table.layout.block_bytes() / sizeof(u64)));
    for (u64 at = share.first; at < share.last; at += share.step) words[at] = 0;
    const RowsView& rows = table.view.rows;
    const auto cells = platform::Grid::share(rows.spare_cells + u64{1});
    for (u64 at = cells.first; at < cells.last; at += cells.step) rows.spares[at] = 0;
    if (platform::Grid::thread() == 0) {
        *table.view.stored = 0;
        *rows.given = 0;
    }
}

// Number of rows by which `rebuild` prefetches ahead on a CPU.
constexpr u64 rows_ahead = 16;

// Prefetches the buckets that `rebuild` visits first for a row. Rows follow each other in memory, but no index has their order.
template <class Old, class Table>
WARPSET_FN void prefetch_row(const Old& old, const Table& table, u64 row)
{
    if (row >= old.rows.count()) return;
    const u64 hashed = old.hash(RowVector<Old::static_width>{old.rows, row});
    table.prefetch(Probe::of_first_bucket(hashed, table.view));
    if (row >= old.view.rows.dense) old.prefetch(Probe::of_first_bucket(hashed, old.view));
}

// Enters the stored rows `first .. last` of a table into another index of its rows. That index must be empty at first, and unused
// by anything else. Counts the rows as offered, and as hits or full. No thread may put into the table at the same time.
template <class Old, class Table>
WARPSET_FN void rebuild(const Old& old, const Table& table, u64 first, u64 last, BatchCounts* counts)
{
    // A thread of a GPU enters fewer than 2^32 rows, and needs the registers.
    typename Choose<platform::Warp::size == 1, u64, u32>::Type named = 0, full = 0;
    const auto share = platform::Grid::share(last - first);
    for (u64 row = first + share.first; row < first + share.last; row += share.step) {
        if constexpr (platform::Warp::size == 1) prefetch_row(old, table, row + rows_ahead);
        if (!old.holds(row)) continue;
        (table.insert(row) ? named : full) += 1;
    }
    if (named + full != 0) platform::add_relaxed(&counts->offered, u64{named} + full);
    if (named != 0) platform::add_relaxed(&counts->hits, u64{named});
    if (full != 0) platform::add_relaxed(&counts->full, u64{full});
}

// Lists the rows of `first .. last` that are not stored, in no order: holes, and rows that are being put at the same time. Adds
// their number to `count`. Writes at most `capacity` of them.
template <u32 width, u32 slot_bits>
WARPSET_FN void list_holes(const IndexedTable<width, slot_bits>& table, u64 first, u64 last, u64* holes, u64 capacity, u64* count)
{
    const auto share = platform::Grid::share(last - first);
    for (u64 row = first + share.first; row < first + share.last; row += share.step) {
        if (table.holds(row)) continue;
        // Relaxed: only the uniqueness of the places matters.
        const u64 at = platform::fetch_add_relaxed(count, 1);
        if (at < capacity) holes[at] = row;
    }
}

// Adds to `invalid` the number of references to rows that are not stored.
template <u32 width, u32 slot_bits>
WARPSET_FN void count_unstored(const IndexedTable<width, slot_bits>& table, const u64* references, u64 count, u64* invalid)
{
    u64 unstored = 0;
    const auto share = platform::Grid::share(count);
    for (u64 at = share.first; at < share.last; at += share.step) unstored += !table.holds(references[at] & slot_mask);
    if (unstored != 0) platform::add_relaxed(invalid, unstored);
}

// Move of a row to another position. Mirrored by `RowMove` in src/layout/view.rs.
struct RowMove {
    u64 from, to;
};

// Moves stored rows to holes. Nothing else may use the table at the same time.
template <u32 width, u32 slot_bits>
WARPSET_FN void move_rows(const IndexedTable<width, slot_bits>& table, const RowMove* moves, u64 count)
{
    using Slot = typename IndexedTable<width, slot_bits>::Slot;
    const auto share = platform::Grid::share(count);
    for (u64 at = share.first; at < share.last; at += share.step) {
        const RowMove move = moves[at];
        Slot* slot = table.slot_naming(move.from);
        if (slot == nullptr) continue;
        table.rows.write(move.to, RowVector<width>{table.rows, move.from});
        // Atomic, because other threads that look for their own rows may read this slot. Relaxed: they read nothing through it,
        // and the end of the launch orders it for all other threads.
        const Slot tag = platform::load_relaxed(slot) >> table.view.row_bits << table.view.row_bits;
        platform::store_relaxed(slot, table.name(tag, move.to));
    }
}

}  // namespace warpset
