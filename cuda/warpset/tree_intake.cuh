// How a warp takes vectors of a tree table into a search: as root pairs, which it makes with all its lanes.
//
// A level at a time: the nodes of one level of all the vectors taken are tasks, dealt out to the lanes in order, `in_flight` at once a
// lane. They are independent of each other, so the warp has up to 32 * in_flight requests under way, and the leaves of consecutive
// vectors are consecutive words of the input. References go to a row in shared memory, from which the next level reads its pairs.
// Searching for the roots (warp_search.cuh) then goes on while other warps are at their nodes: roots wait for memory, nodes
// mostly for L2.
//
// H200, find-or-put of 2^27 random vectors, duplication 2, fill 0.7, compression ratio near the minimum (all nodes in L2) / 0.73, G/s:
//
//   | words | this, 2 in flight | 3           | 4           | a thread a vector | nodes in a kernel of their own | BucketTable |
//   |-------|-------------------|-------------|-------------|-------------------|--------------------------------|-------------|
//   | 4     | 15.7 / 8.1        | 14.7 / 8.1  | 13.2 / 6.7  | 15.3 / 8.1        | 13.2 / 8.6                     | 18.4        |
//   | 8     | 12.2 / 5.4        | 12.1 / 5.5  | 11.9 / 5.4  | 10.2 / 4.3        | 11.3 / 5.1                     | 12.6        |
//   | 16    | 8.7 / 2.5         | 8.8 / 2.5   | 8.4 / 2.4   | 6.9 / 2.2         | 6.8 / 2.4                      | 9.2         |
//   | 32    | 5.9 / 1.2         | 5.9 / 1.2   | 4.9 / 1.1   | 3.8 / 1.0         | 5.5 / 1.1                      | 4.7         |
//
// Looks that L1 may serve (EMPTY being asked again of L2) gained nothing. Refilling when all lanes are idle instead of half: -5 %.
#pragma once

#include "warpset/batch.cuh"
#include "warpset/tree_table.cuh"

namespace warpset {

template <class RootShape, u32 width, Operation operation>
struct Intake<TreeTable<RootShape, width>, operation> {
    using Table = TreeTable<RootShape, width>;
    using Search = WarpSearch<typename Table::Roots, operation>;
    using Warp = platform::Warp;
    static constexpr u32 in_flight = 2;
    static constexpr u32 leaves = TreeShape::above(width);

    static constexpr u32 scratch_bytes = (Warp::size * leaves * 4 + 15) / 16 * 16;

    const Table& table;
    u32* halves;    // of the level that is done: row r is of the r-th vector taken
    u32 fresh = 0;  // nodes that this lane has put

    WARPSET_FN Intake(const Table& table, u8* scratch) : table(table), halves(reinterpret_cast<u32*>(scratch)) {}

    // Writes the root pairs of the vectors `next .. next + count` to the scratch memory of the lanes set in `takers`, in order. True
    // for a lane whose vector has no root: for want of a node.
    WARPSET_FN bool take(const Search& search, const BatchView& batch, u32 next, u32 count, u32 takers)
    {
        const u32* words = batch.vectors + static_cast<u64>(next) * width;
        level<width>(count, width, [words](u32 at, bool pair) { return words_at(words + at, pair); });
        for (u32 length = leaves; length > 2; length = TreeShape::above(length))
            level<0>(count, length, [this](u32 at, bool pair) { return Table::pair_of(halves[at], pair ? halves[at + 1] : 0); });

        bool missing = false;
        if (takers >> Warp::lane() & 1) {
            u32 rank = platform::population_count(takers & ((1u << Warp::lane()) - 1));
            u32 left = halves[2 * rank], right = halves[2 * rank + 1];
            missing = is_missing(Table::pair_of(left, right), 2, 0);
            *reinterpret_cast<u64*>(search.vector_of(Warp::lane())) = Table::pair_of(left, right);
        }
        Warp::sync();
        return missing;
    }

    WARPSET_FN void finish() const
    {
        if (fresh != 0) platform::add_relaxed(table.nodes.view.stored, fresh);
    }

private:
    // One or two words of the input.
    WARPSET_FN static u64 words_at(const u32* words, bool pair)
    {
        if constexpr (width % 2 == 0) return platform::load_input(reinterpret_cast<const u64*>(words));
        return Table::pair_of(platform::load_input(words), pair ? platform::load_input(words + 1) : 0);
    }

    // Turns rows of `length` halves into rows of above(length): `read(i, pair)` gives half i of the level below, of all rows, and if they
    // are a pair the one after it.
    template <u32 static_length, class Read>
    WARPSET_FN void level(u32 count, u32 run_time_length, Read read)
    {
        const u32 length = static_length == 0 ? run_time_length : static_length;
        const u32 above = TreeShape::above(length), tasks = count * above;
        const bool even = length % 2 == 0;
        WARPSET_UNROLL_BY(1)
        for (u32 start = 0; start < tasks; start += Warp::size * in_flight) {
            u64 node[in_flight];
            u32 half[in_flight], wanted = 0, moved = 0;
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i) {
                const u32 task = start + i * Warp::size + Warp::lane();
                node[i] = NodeTable::empty;
                half[i] = NodeTable::missing;
                if (task >= tasks) continue;
                // Rows of even length lie one after another in both levels.
                const u32 place = even ? 0 : task % above;
                const bool pair = even || place + 1 < above;
                node[i] = read(even ? 2 * task : task / above * length + 2 * place, pair);
                if (!pair) moved |= 1u << i;
                else if (static_length != 0 || !is_missing(node[i], length, even ? task % above : place)) wanted |= 1u << i;
            }
            // A node that moves up keeps its left half as it is.
            u64 looked_for[in_flight];
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i) looked_for[i] = wanted >> i & 1 ? node[i] : NodeTable::empty;
            table.nodes.template find<operation>(looked_for, wanted, half, fresh);
            Warp::sync();  // what is written now has been read by all
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i) {
                const u32 task = start + i * Warp::size + Warp::lane();
                if (task >= tasks) continue;
                halves[task] = moved >> i & 1 ? static_cast<u32>(node[i]) : wanted >> i & 1 ? half[i] : NodeTable::missing;
            }
        }
        Warp::sync();
    }

    // Whether a pair at place `place` of the level above `length` halves lacks a node below it.
    WARPSET_FN static bool is_missing(u64 node, u32 length, u32 place)
    {
        const bool right_is_word = word_moved_to(length) && 2 * place + 1 == length - 1;
        return Table::half(node, 0) == NodeTable::missing || (!right_is_word && Table::half(node, 1) == NodeTable::missing);
    }

    // Whether the last half of the level of this length is still the vector's last word.
    WARPSET_FN static constexpr bool word_moved_to(u32 length)
    {
        u32 level = width;
        while (level > length && level % 2 == 1) level = TreeShape::above(level);
        return level <= length;
    }
};

}  // namespace warpset
