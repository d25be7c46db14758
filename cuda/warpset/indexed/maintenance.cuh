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

// Prefetches what `rebuild` visits first for row `at`, or for slot `at` of the old index.
template <class Old, class Table>
WARPSET_FN void prefetch_entry(const Old& old, const Table& table, u64 at, bool by_rows)
{
    if (by_rows) {
        table.prefetch(Probe::of_first_bucket(table.hash(RowVector<Old::static_width>{old.rows, at}), table.view));
    } else if (const auto slot = *(old.slot_at(0, 0) + at); slot != Old::empty) {
        platform::prefetch(old.rows.at(old.row_of(slot)), old.width() * sizeof(u32));
    }
}

// Enters the rows before `last` that an index names into another index of the same rows. That index must be empty at first.
// Nothing else may use either meanwhile. Counts the rows as offered, and as hits or full.
//
// If all rows are stored, they are entered in their order. If there are holes among them, only the old index can tell: its slots
// are visited in their order instead. Both indexes have the order of the hashes (core/probe.cuh), so slots of the new one are
// then claimed in that order, too, and rows are read at random.
//
// One H200, 29 million rows of 2 and 8 words, 7 million of 32, in milliseconds: in the order of rows without holes 2.7, 2.5,
// 1.2; in the order of slots 3.5, 2.7, 1.4; each row behind the first hole looked for in the old index: 4.6, 5.6, 2.9. Claims
// bound the first two: the L2 does some 10 x 10^9 a second that succeed, wherever the slots are. On a CPU a search of anderson.6
// in an indexed table took 1.03 times as long in the order of slots.
template <class Old, class Table>
WARPSET_FN void rebuild(const Old& old, const Table& table, u64 last, BatchCounts* counts)
{
    // A thread of a GPU enters fewer than 2^32 rows, and needs the registers.
    typename Choose<platform::Warp::size == 1, u64, u32>::Type named = 0, full = 0;
    const bool by_rows = old.view.rows.dense >= last;
    const u64 count = by_rows ? last : old.view.buckets * old.layout.slots_per_bucket();
    const auto share = platform::Grid::share(count);
    for (u64 at = share.first; at < share.last; at += share.step) {
        if constexpr (platform::Warp::size == 1)
            if (at + rows_ahead < count) prefetch_entry(old, table, at + rows_ahead, by_rows);
        u64 row = at;
        if (!by_rows) {
            const auto slot = platform::load_input(old.slot_at(0, 0) + at);
            if (slot == Old::empty) continue;
            row = old.row_of(slot);
            if (row >= last) continue;
        }
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
