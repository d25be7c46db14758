// The rows of an indexed table: vectors one after another, each written by one lane before any other thread can read it.
//
// Rights to a row (the index is that of indexed/table.cuh):
//
//   | row       | how it gets into this state                               | who may write it | who may read it                   |
//   |-----------|-----------------------------------------------------------|------------------|-----------------------------------|
//   | not given | -                                                         | no thread        | no thread                         |
//   | owned     | a lane takes the next number of `given`, or a spare       | that lane        | `holds` only, with verification   |
//   | stored    | its owner's claim of an index slot that names it succeeds | no thread        | a thread that acquired that slot  |
//   | spare     | its owner puts the number into a cell of `spares`         | no thread        | as an owned one                   |
//
// Numbers are given in order, by additions to one counter. So rows have no gaps, and are in the order in which they were taken. A
// lane that loses a claim, or that took a row ahead and did not need it, keeps the row for its next vector. When the lane ends,
// it gives the row back as a *spare*: at most one per lane. Lanes take spares before new numbers. Between launches, spares are
// the *holes* among the rows.
//
// A cell of `spares` holds 0, or the number of a row without an owner, plus 1. One compare-and-swap fills a cell, another one
// empties it, and a lane that takes a number out of a cell owns the row. A number may leave a cell and return to it before a late
// compare-and-swap that expects the number. That is harmless, because the compare-and-swap relies on nothing else. Filling
// releases and emptying acquires, because the next owner writes the row too. A lane tries only a few cells, from the cell of its
// own number on, so that the lanes of the next launch find what those of the last one left there. A spare that finds no free cell
// is lost until the host looks for the holes (`list_holes` in indexed/maintenance.cuh). There are a few more rows than slots of
// the index, to make up for lost spares and for rows that lanes own at the moment.
//
// Accesses to words are relaxed and all of one size (pairs of words, or words if the width is odd). `holds` may read words while
// they are being written, so it verifies what it reads by the index. The index orders all other reads (release and acquire).
#pragma once

#include "warpset/core/layout.cuh"
#include "warpset/core/outcome.cuh"

namespace warpset {

// Mirrored by `RowsView` in src/layout/view.rs.
struct RowsView {
    u32* words;       // row-major
    u64* given;       // number of rows given; may exceed the number of rows
    u64* spares;      // approximate number of spares; then the cells
    u64 capacity;     // rows that have memory
    u64 dense;        // rows 0 .. dense - 1 are stored, and visible to every thread that has this view
    u32 spare_cells;  // a power of two
    u32 width;        // words per vector
    u64 reuses;       // 1: lanes take spares before new numbers; 0: lanes take no spares
};

// Stands for "no row"; all row numbers are less.
constexpr u64 no_row = ~0ull;

template <u32 static_width>
struct Rows {
    RowsView view;
    u64 first_spare = 0;  // lanes take no spare with a smaller number

    WARPSET_FN constexpr u32 width() const
    {
        if constexpr (static_width != 0) return static_width;
        else return view.width;
    }

    WARPSET_FN u32* at(u64 row) const { return view.words + row * width(); }

    // Number of rows that have been given to lanes.
    WARPSET_FN u64 count() const
    {
        const u64 given = platform::load_relaxed(view.given);
        return given < view.capacity ? given : view.capacity;
    }

    WARPSET_FN u32 word(u64 row, u32 word) const
    {
        if (width() % 2 == 1) return platform::load_relaxed(at(row) + word);
        const u64 pair = platform::load_relaxed(pairs(row) + word / 2);
        return static_cast<u32>(word % 2 == 0 ? pair : pair >> 32);
    }
    WARPSET_FN u64 pair(u64 row, u32 first) const
    {
        if (width() % 2 == 0) return platform::load_relaxed(pairs(row) + first / 2);
        return word(row, first) | static_cast<u64>(word(row, first + 1)) << 32;
    }

    // Writes a row that this thread owns.
    template <class Vector>
    WARPSET_FN void write(u64 row, const Vector& vector) const
    {
        if constexpr (platform::Warp::size == 1 && static_width == 0) {
            // Unrolled, as for a static width.
            const u32 words = width();
            u32* const to = at(row);
            if (words % 2 == 0) {
                WARPSET_UNROLL
                for (u32 word = 0; word < words; word += 2)
                    platform::store_relaxed(reinterpret_cast<u64*>(to + word), vector.pair(word));
            } else {
                WARPSET_UNROLL
                for (u32 word = 0; word < words; ++word) platform::store_relaxed(to + word, vector.word(word));
            }
            return;
        }
        if (width() % 2 == 0) {
            WARPSET_UNROLL_BY(4)
            for (u32 word = 0; word < width(); word += 2) platform::store_relaxed(pairs(row) + word / 2, vector.pair(word));
        } else {
            WARPSET_UNROLL_BY(4)
            for (u32 word = 0; word < width(); ++word) platform::store_relaxed(at(row) + word, vector.word(word));
        }
    }

    // Whether a stored row equals this vector. Requires that this thread has acquired the row's slot.
    template <class Vector>
    WARPSET_FN bool equals(u64 row, const Vector& vector) const
    {
        if constexpr (platform::Warp::size == 1 && static_width == 0) {
            // Without early exit, so that GCC uses vector registers. No thread writes to a stored row.
            u64 difference = 0;
            u32 word = 0;
            for (; word + 1 < width(); word += 2) difference |= platform::load_pair(at(row) + word) ^ vector.pair(word);
            if (word < width()) difference |= at(row)[word] ^ vector.word(word);
            return difference == 0;
        }
        if (width() % 2 == 0) {
            for (u32 word = 0; word < width(); word += 2)
                if (platform::load_relaxed(pairs(row) + word / 2) != vector.pair(word)) return false;
        } else {
            for (u32 word = 0; word < width(); ++word)
                if (platform::load_relaxed(at(row) + word) != vector.word(word)) return false;
        }
        return true;
    }

    // Approximate number of spares. Relaxed: a hint.
    WARPSET_FN u64 spares() const { return view.reuses != 0 ? platform::load_relaxed(view.spares) : 0; }

    // Whether later puts take all remaining spares.
    WARPSET_FN bool fills_spares() const { return view.reuses != 0 && first_spare == 0; }

    // Whether looking for a spare is worthwhile if there are `spares` of them.
    WARPSET_FN bool are_spares(u64 spares) const { return spares - 1 < view.spare_cells; }

    // Takes a row, which this thread then owns. Returns no_row if no row is left.
    WARPSET_FN u64 take() const
    {
        u64 row = are_spares(spares()) ? take_spare() : no_row;
        // Relaxed: only the uniqueness of the numbers matters.
        if (row == no_row) row = platform::fetch_add_relaxed(view.given, 1);
        return row < view.capacity ? row : no_row;
    }

    WARPSET_FN u64 take_spare() const
    {
        for (u32 i = 0; i < tries_to_take; ++i) {
            u64* cell = cell_of(i);
            const u64 seen = platform::load_relaxed(cell);
            // Acquire, device scope: this thread writes the row after its last owner wrote it. That owner released it by `give`.
            if (seen != 0 && platform::compare_and_swap_acquire(cell, seen, u64{0}) == seen) {
                platform::add_relaxed(view.spares, ~0ull);
                // A row before `first_spare` is not used: it stays a hole, and leaves its cell.
                if (seen - 1 >= first_spare) return seen - 1;
            }
        }
        return no_row;
    }

    // Turns a row that this thread owns, and that no slot names, into a spare.
    WARPSET_FN void give(u64 row) const
    {
        if (leave(row)) count_spares(1);
    }

    // Leaves a spare row in a cell for other lanes. Returns false if it finds no free cell. The caller counts the spare.
    WARPSET_FN bool leave(u64 row) const
    {
        for (u32 i = 0; i < tries_to_give; ++i) {
            u64* cell = cell_of(i);
            // Release, device scope: pairs with the acquire in `take_spare`.
            if (platform::load_relaxed(cell) == 0 && platform::compare_and_swap_release(cell, u64{0}, row + 1) == 0) return true;
        }
        return false;
    }

    // Relaxed: a hint.
    WARPSET_FN void count_spares(u32 more) const { platform::add_relaxed(view.spares, u64{more}); }

private:
    // Each lane gives at most one row, but may take one for every vector.
    static constexpr u32 tries_to_take = 8, tries_to_give = 64;

    // Cell that this thread tries after `i` others.
    WARPSET_FN u64* cell_of(u32 i) const { return view.spares + 1 + ((platform::Grid::thread() + i) & (view.spare_cells - 1)); }

    WARPSET_FN u64* pairs(u64 row) const { return reinterpret_cast<u64*>(at(row)); }
};

// View of a row as a vector, for hash functions.
template <u32 static_width>
struct RowVector {
    const Rows<static_width>& rows;
    u64 row;

    WARPSET_FN u32 word(u32 index) const { return rows.word(row, index); }
    WARPSET_FN u64 pair(u32 index) const { return rows.pair(row, index); }
};

}  // namespace warpset
