// Find-or-put by a block of threads that makes its vectors itself; for example, the successors of states.
//
// Vectors are collected in shared memory, one per *row*, until there are many. Then the block finds or puts all of them together:
//
//   1. One of several equal rows is kept: the first to claim an entry of an index, by compare-and-swap.
//   2. The kept rows are moved together: with k of them, those beyond row k - 1 move into the gaps before it.
//   3. The warps share the rows, and search as for any batch (batch/search.cuh). In a tree table the search is incremental, with
//      one lane for every changed word: leaves first, then the pairs above as their halves become known
//      (tree/incremental_builder.cuh).
//
//   rows       A  B  A  C  B  D     kept  A B . C . D     moved  A B D C     warp 0: A B   warp 1: D C
//
// The source is Wijs and Osama (2024), section 6.4, algorithm 3. There the cache holds nodes of trees under construction, with
// gaps for the references of nodes that are not stored yet, and the block repeats passes over the cache until no gap is left.
// Here it holds whole vectors. This has four advantages. A duplicate is removed before any of its nodes is looked up. Equal
// vectors are recognized even if their trees were made from different parents. Every kind of table can use the cache. No pass
// searches for nodes whose halves are ready: a warp knows them from their position in the tree.
//
//   extern "C" __global__ void expand(warpset::View view, ..., unsigned long long* found, warpset::BatchCounts* counts) {
//       extern __shared__ __align__(16) unsigned char shared[];  // BlockCache<...>::bytes(warps) of them
//       const warpset::Table table = warpset::table(view);
//       warpset::BlockCache<warpset::Table, 512> cache(shared);   // as many rows as the block has threads, or more
//       cache.clear();
//       for (...) {                                              // the same number of times for all threads of the block
//           if (cache.free_rows() < blockDim.x) cache.find_or_put(table, found, counts);
//           if (...) cache.add(warpset::ChangedVector{successor, &changed}, parent);
//       }
//       cache.find_or_put(table, found, counts);
//   }
#pragma once

#include "warpset/batch/search.cuh"
#include "warpset/core/batch_view.cuh"
#include "warpset/table.cuh"
#include "warpset/tree/incremental_builder.cuh"

namespace warpset {

// Sink that ignores which vectors are new.
struct IgnoreNew {
    WARPSET_FN void operator()(u64, u64) const {}
};

// List of references in device memory, or none: the default list of new vectors. Another list has these two functions, too.
struct ReferenceList {
    u64* references;

    WARPSET_FN bool is_wanted() const { return references != nullptr; }
    WARPSET_FN void write(u64 at, u64 reference) const { references[at] = reference; }
};

// A batch in shared memory, with a row of `row_words` words for each vector. `on_new` is called for each vector that is New, with
// its parent (no_reference if none is kept) and its reference.
template <u32 width, u32 row_words, class List, class OnNew>
struct BlockBatch : BatchView {
    const u64* parents_kept;
    const List& list;
    const OnNew& on_new;

    WARPSET_FN bool lists_new() const { return list.is_wanted(); }
    WARPSET_FN void list_new(u64 at, u64 reference) const { list.write(at, reference); }

    WARPSET_FN void on_new_vector(u64 row, u64 reference) const
    {
        on_new(parents_kept == nullptr ? no_reference : parents_kept[row], reference);
    }

    template <class Word>
    WARPSET_FN static Word load(const Word* address)
    {
        return *address;
    }

    // See `BatchView::unit_offset`.
    WARPSET_FN static u32 unit_offset(u32 unit, u32 units) { return unit / units * (row_words * units / width) + unit % units; }
};

// `rows` is a multiple of 32. The width of `Table` is static. The block has one dimension and consists of whole warps. With
// `keeps_parents`, parents are kept with their vectors until the vectors are put, at 8 bytes each, even if the table does not use
// them.
template <class Table, u32 rows, bool keeps_parents = Table::is_incremental>
class BlockCache {
    using Block = platform::Block;
    using Warp = platform::Warp;
    static constexpr bool is_incremental = Table::is_incremental;
    using Search = SearchBatch<Table, Operation::FindOrPut, is_incremental ? Offer::Incremental : Offer::Whole>;
    static_assert(rows > 0 && rows % 32 == 0, "kept rows are marked by whole warps");
    static_assert(keeps_parents || !is_incremental, "vectors are made from their parents");
    static_assert(is_incremental || !Table::has_nodes, "interleaved trees are not incremental (tree/strategy.cuh)");

    static constexpr u32 width = Table::static_width;
    static constexpr u32 mask_words = (width + 31) / 32;
    static constexpr u32 index_slots = power_of_two_at_least(2 * rows);
    static constexpr u32 none = ~0u;
    // Distance of neighbouring rows in words. It is odd (or an odd number of the largest units in which warps copy rows), so that
    // threads that read the same word of their own rows spread over the banks of shared memory.
    static constexpr u32 unit = is_incremental || width % 2 == 1 ? 1 : width % 4 == 2 ? 2 : 4;
    static constexpr u32 row_words = (width / unit | 1) * unit;
    // Offsets in shared memory. The index and the scratch memory of the warps' searches overlap, because they are not in use at
    // the same time.
    static constexpr u32 parents_at = rows * row_words * 4;  // a multiple of 128
    static constexpr u32 changed_at = parents_at + keeps_parents * rows * 8;
    static constexpr u32 kept_at = changed_at + is_incremental * rows * mask_words * 4;
    static constexpr u32 taken_at = kept_at + rows / 8;
    static constexpr u32 index_at = (taken_at + 4 + 15) / 16 * 16;

    u8* shared;

public:
    // Bytes of shared memory for a block of `warps` warps.
    WARPSET_FN static constexpr u32 bytes(u32 warps)
    {
        const u32 search = warps * Search::scratch_bytes(), index = index_slots * 4;
        return index_at + (search > index ? search : index);
    }

    // `shared` is the same for all threads of the block, and aligned to 16 bytes.
    WARPSET_FN explicit BlockCache(u8* shared) : shared(shared) {}

    // Must be called before all else. All threads of the block call it, converged.
    WARPSET_FN void clear()
    {
        if (Block::thread() == 0) *taken() = 0;
        Block::sync();
    }

    // Number of vectors that can still be added. All threads of the block call it, converged, and get the same number.
    WARPSET_FN u32 free_rows() const
    {
        Block::sync();  // all have added what they add before it
        const u32 used = *taken();
        Block::sync();  // and what they add after it does not count
        return used < rows ? rows - used : 0;
    }

    // Adds a vector: its `word(i)`, and for a tree table `mask(i)`, the words that may differ from those of the vector stored at
    // `parent`. `parent` is `no_reference` if there is none. Returns false, and does not add the vector, if no row is free. Any
    // thread may call this, at any time between the calls that all threads make.
    template <class Vector>
    WARPSET_FN bool add(const Vector& vector, u64 parent)
    {
        return write(take(1), vector, parent);
    }

    // First of two steps that replace `add`, so that one thread can take rows for several vectors: takes `count` rows and returns
    // the first one. The second step, `write`, writes one vector to one row.
    WARPSET_FN u32 take(u32 count)
    {
        // Relaxed: only the uniqueness of rows matters; they are read behind a barrier.
        return platform::fetch_add_block(taken(), count);
    }
    template <class Vector>
    WARPSET_FN bool write(u32 row, const Vector& vector, u64 parent)
    {
        if (row >= rows) return false;
        WARPSET_UNROLL_BY(32)  // a vector in registers stays there
        for (u32 word = 0; word < width; ++word) words_of(row)[word] = vector.word(word);
        if constexpr (keeps_parents) parents()[row] = parent;
        if constexpr (is_incremental) {
            WARPSET_UNROLL
            for (u32 i = 0; i < mask_words; ++i) changed()[row * mask_words + i] = vector.mask(i);
        }
        return true;
    }

    // Finds or puts all vectors that were added, and empties the cache. The references of new vectors are appended to
    // `new_references` at `counts->new_references`; all blocks may share both. Duplicates in the cache count as offered and as
    // seen, even if their vector is Full. `counts->full` counts such a vector once per cache: if `full` has grown, all vectors
    // that were offered meanwhile must be offered again. `counts` may be null, if `new_references` is. All threads of the block
    // call it, converged.
    WARPSET_FN void find_or_put(const Table& table, u64* new_references, BatchCounts* counts)
    {
        find_or_put_distinct(table, drop_duplicates(), ReferenceList{new_references}, counts);
    }

    // First of two steps that replace `find_or_put`, so that each can be timed. Returns the number of rows that are left. The
    // second step must follow at once and gets this number as `left`.
    WARPSET_FN u32 drop_duplicates()
    {
        Block::sync();  // the rows are written
        const u32 left = keep_one_of_equals(filled());
        move_together(filled(), left);
        return left;
    }
    // Second step. If `list.is_wanted()`, `list.write(at, reference)` gets the reference of each new vector, with a place of its
    // own from `counts->new_references` on. For each new vector, one thread calls `on_new(parent, reference)`; it may be any
    // thread.
    template <class List, class OnNew = IgnoreNew>
    WARPSET_FN void find_or_put_distinct(const Table& table, u32 left, const List& list, BatchCounts* counts,
                                         const OnNew& on_new = {})
    {
        const u64* of_changes = is_incremental ? parents() : nullptr;
        const BlockBatch<width, row_words, List, OnNew> batch{
            {words_of(0), left, nullptr, nullptr, nullptr, 0, counts, of_changes, changed(), nullptr, 0},
            parents(),
            list,
            on_new};
        const u32 warp = Block::thread() / Warp::size, warps = Block::threads() / Warp::size;
        u8* scratch = shared + index_at + warp * Search::scratch_bytes();
        Search::run_warp(table, batch, left * warp / warps, left * (warp + 1) / warps, scratch);
        if (Block::thread() == 0) {
            if (counts && filled() != 0) platform::add_relaxed(&counts->offered, filled());
            *taken() = 0;
        }
        Block::sync();  // the rows may be overwritten
    }

    // Alternative second step, for vectors that belong to another table. Passes the rows that are left to `write(row, word,
    // value)`, one word per call, and removes them. Neighbouring threads pass neighbouring words. All threads of the block call
    // it, converged.
    template <class Write>
    WARPSET_FN void give_distinct(u32 left, Write write)
    {
        for (u32 at = Block::thread(); at < left * width; at += Block::threads())
            write(at / width, at % width, words_of(at / width)[at % width]);
        Block::sync();  // all threads have read the rows
        if (Block::thread() == 0) *taken() = 0;
        Block::sync();  // the rows may be overwritten now
    }

private:
    WARPSET_FN u32* words_of(u32 row) const { return reinterpret_cast<u32*>(shared) + row * row_words; }
    WARPSET_FN u64* parents() const { return keeps_parents ? reinterpret_cast<u64*>(shared + parents_at) : nullptr; }
    WARPSET_FN u32* changed() const { return is_incremental ? reinterpret_cast<u32*>(shared + changed_at) : nullptr; }
    WARPSET_FN u32* kept() const { return reinterpret_cast<u32*>(shared + kept_at); }  // a bit a row
    WARPSET_FN u32* taken() const { return reinterpret_cast<u32*>(shared + taken_at); }  // how many rows; more if some got none
    WARPSET_FN u32* index() const { return reinterpret_cast<u32*>(shared + index_at); }

    // Number of filled rows. All threads get the same number between two barriers.
    WARPSET_FN u32 filled() const { return *taken() < rows ? *taken() : rows; }

    // Marks one of each set of equal rows in `kept`. Returns the number of marked rows.
    WARPSET_FN u32 keep_one_of_equals(u32 offered) const
    {
        for (u32 at = Block::thread(); at < index_slots; at += Block::threads()) index()[at] = none;
        Block::sync();
        for (u32 first = Block::thread() - Warp::lane(); first < offered; first += Block::threads()) {
            const u32 row = first + Warp::lane();
            const u32 keeps = Warp::ballot(row < offered && claims_index(row));
            if (Warp::lane() == 0) kept()[first / 32] = keeps;
        }
        Block::sync();
        return kept_before(offered);
    }

    // Puts this row into the index, unless an equal row is there. Returns whether the row was put.
    WARPSET_FN bool claims_index(u32 row) const
    {
        for (u32 at = hash(row);; ++at) {
            // Relaxed: each thread that reads a row through its number has met the row's writer at a barrier.
            const u32 other = platform::compare_and_swap_block(index() + at % index_slots, none, row);
            if (other == none) return true;
            bool equal = true;
            for (u32 word = 0; word < width && equal; ++word) equal = words_of(row)[word] == words_of(other)[word];
            if (equal) return false;
        }
    }

    // Computes a polynomial at an odd number, and then mixes its bits as for a node's hash (tree/nodes.cuh). That is enough:
    // there is one set of rows, and no adversary.
    WARPSET_FN u32 hash(u32 row) const
    {
        u32 hash = 0;
        WARPSET_UNROLL_BY(8)
        for (u32 word = 0; word < width; ++word) {
            hash = (hash ^ words_of(row)[word]) * 0x9E3779B1u;
            hash ^= hash >> 15;
        }
        return hash * 0x85EBCA77u >> 8;
    }

    // Number of kept rows before this one.
    WARPSET_FN u32 kept_before(u32 row) const
    {
        u32 count = 0;
        for (u32 at = 0; at < row / 32; ++at) count += platform::population_count(kept()[at]);
        return row % 32 == 0 ? count : count + platform::population_count(kept()[row / 32] & ((1u << row % 32) - 1));
    }

    // Moves the kept rows into the first `left` rows: the n-th kept row behind these goes to the n-th gap.
    WARPSET_FN void move_together(u32 offered, u32 left) const
    {
        u32* gaps = index();
        const u32 kept_in_front = kept_before(left);
        const auto is_kept = [this](u32 row) { return (kept()[row / 32] >> row % 32 & 1) != 0; };
        for (u32 row = Block::thread(); row < left; row += Block::threads())
            if (!is_kept(row)) gaps[row - kept_before(row)] = row;
        Block::sync();
        for (u32 row = left + Block::thread(); row < offered; row += Block::threads())
            if (is_kept(row)) move(row, gaps[kept_before(row) - kept_in_front]);
        Block::sync();
    }

    WARPSET_FN void move(u32 from, u32 to) const
    {
        for (u32 word = 0; word < width; ++word) words_of(to)[word] = words_of(from)[word];
        if constexpr (keeps_parents)
            parents()[to] = parents()[from];
        if constexpr (is_incremental) {
            for (u32 i = 0; i < mask_words; ++i) changed()[to * mask_words + i] = changed()[from * mask_words + i];
        }
    }
};

}  // namespace warpset
