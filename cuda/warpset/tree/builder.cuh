// Default builder of tree tables: all lanes of a warp together make the root pairs of its vectors.
//
// The builder makes one level of all taken vectors at a time. Each node of the level is a task. Tasks are assigned to the lanes
// in order, `in_flight` at a time per lane, and a lane starts its next task as soon as one is done. Tasks are independent of each
// other, so the warp has up to 32 * in_flight requests under way. The leaves of consecutive vectors are consecutive words of the
// input. The builder writes references to a row in shared memory, from which the next level reads its pairs. The search for roots
// (bucket/warp_search.cuh) then overlaps with other warps that make nodes: roots wait for memory, nodes mostly for L2.
//
// H200, find-or-put of 2^27 random vectors, duplication 2, fill 0.7, compression ratio near the minimum (all nodes in L2) / 0.73,
// G/s. The first three columns are this builder (`cargo bench --bench trees`). The others are one-page prototypes, in which lanes
// waited for each other after every task.
//
//   | words | 2 in flight, 36 warps | 32 warps   | 1 in flight, 40 warps | waiting    | a thread a vector | nodes in own kernel |
//   |-------|-----------------------|------------|-----------------------|------------|-------------------|---------------------|
//   | 4     | 14.2 / 8.5            | 13.7 / 8.3 | 14.2 / 8.4            | 15.0 / 8.1 | 15.3 / 8.1        | 13.2 / 8.6          |
//   | 8     | 11.0 / 5.4            | 10.6 / 5.4 | 11.2 / 5.4            | 11.4 / 5.4 | 10.2 / 4.3        | 11.3 / 5.1          |
//   | 16    | 7.7 / 2.4             | 7.3 / 2.4  | 7.2 / 2.4             | 8.1 / 2.4  | 6.9 / 2.2         | 6.8 / 2.4           |
//   | 32    | 5.1 / 1.1             | 4.9 / 1.2  | 5.0 / 1.2             | 5.3 / 1.2  | 3.8 / 1.0         | 5.5 / 1.1           |
//
// The prototypes have no `missing`, support only widths that are powers of two, and count the probes of both nodes in flight
// against one limit. With these three changed as in this builder, the column "waiting" was 14.2, 10.5, 7.1 and 4.4. The counters
// then show about 160 instructions per node at 32 words, because nearly always one of a warp's 64 tasks needs a third look.
// Serving looks from L1 (and asking L2 again where they show EMPTY) gained nothing. Refilling only when all lanes are idle,
// instead of when half of them are, lost 4 to 6 % for 4 to 16 words (prototypes).
#pragma once

#include "warpset/bucket/builder.cuh"
#include "warpset/bucket/warp_search.cuh"
#include "warpset/core/batch_view.cuh"
#include "warpset/tree/table.cuh"

namespace warpset {

template <class RootTable, u32 width, Operation operation>
struct Builder<TreeTable<RootTable, width, DefaultStrategy>, operation, Offer::Whole> {
    using Table = TreeTable<RootTable, width, DefaultStrategy>;
    using Shape = typename Table::Shape;
    using Search = WarpSearch<typename Table::Roots, operation, true>;
    using Warp = platform::Warp;
    static constexpr u32 in_flight = 2;
    static constexpr u32 leaves = Shape::above(width);
    static constexpr bool all_even = (width & (width - 1)) == 0;  // no half moves up at any level

    static constexpr u32 workspace_bytes = 0;
    static constexpr u32 scratch_bytes = (Warp::size * (leaves + Shape::above(leaves)) * 4 + 15) / 16 * 16;

    const Table& table;
    u32* halves;    // halves of the finished level: row r belongs to the r-th vector taken
    u32 fresh = 0;  // nodes that this lane has put

    WARPSET_FN Builder(const Table& table, u8* scratch) : table(table), halves(reinterpret_cast<u32*>(scratch)) {}

    // Returns how many of the vectors can be taken: here, all.
    WARPSET_FN u32 ready(const BatchView&, u32, u32 count, u32) const { return count; }
    WARPSET_FN void make_alone(const BatchView&, u32) const {}

    // Writes the root pairs of vectors `next .. next + count`, in order, to the scratch memory of the lanes set in `takers`.
    // Returns true on a lane whose vector has no root pair because no node was free.
    WARPSET_FN bool take(const Search& search, const BatchView& batch, u32 next, u32 count, u32 takers)
    {
        const u32* words = batch.vectors + static_cast<u64>(next) * width;
        u32* level = halves;                        // two buffers alternate: each level is made from the other
        u32* above = halves + Warp::size * leaves;
        Level<width, true> first{{}, words, level, count * leaves};
        table.nodes.template find_all<operation, in_flight>(first, fresh);
        Warp::sync();
        for (u32 length = leaves; length > 2; length = Shape::above(length)) {
            Level<0, false> next_level{{length}, level, above, count * Shape::above(length)};
            table.nodes.template find_all<operation, in_flight>(next_level, fresh);
            Warp::sync();
            u32* swapped = level;
            level = above;
            above = swapped;
        }
        bool missing = false;
        if (takers >> Warp::lane() & 1) {
            u32 rank = platform::population_count(takers & ((1u << Warp::lane()) - 1));
            const u64 root = *reinterpret_cast<const u64*>(level + 2 * rank);
            missing = is_missing(root, 2, 0);
            *reinterpret_cast<u64*>(search.vector_of(Warp::lane())) = table.pack(root).value;
        }
        Warp::sync();
        return missing;
    }

    WARPSET_FN void finish() const
    {
        if (fresh != 0) platform::add_relaxed(table.nodes.view.stored, fresh);
    }

private:
    template <u32 length>
    struct Length {
        WARPSET_FN static constexpr u32 get() { return length; }
    };
    struct RunTimeLength {
        u32 length;
        WARPSET_FN u32 get() const { return length; }
    };

    // Makes the nodes above a level of rows of `length` halves. Nodes are assigned to the lanes in order.
    template <u32 static_length, bool of_words>
    struct Level {
        typename Choose<static_length == 0, RunTimeLength, Length<static_length>>::Type length;
        const u32* from;
        u32* to;
        u32 count;  // nodes of all rows
        u32 next = Warp::lane();    // task of this lane
        u32 task[in_flight] = {};

        WARPSET_FN bool more() const { return next < count; }
        WARPSET_FN bool take(u32 i, u64& node)
        {
            const bool even = all_even || length.get() % 2 == 0;
            const u32 above = Shape::above(length.get());
            const u32 current = next;
            // If all lengths are even, rows are adjacent in both levels.
            const u32 position = all_even ? 0 : current % above;
            const bool pair = even || position + 1 < above;
            const u32* at = from + (even ? 2 * current : current / above * length.get() + 2 * position);
            next += Warp::size;
            task[i] = current;
            if (of_words) node = words_at(at, pair);
            else node = halves_at(at, pair);
            if (!pair) to[current] = static_cast<u32>(node);  // a half without a partner moves up
            else if (!of_words && is_missing(node, length.get(), position)) to[current] = NodeTable::missing;
            else return true;
            return false;
        }
        WARPSET_FN void finish(u32 i, u32 reference) { to[task[i]] = reference; }
    };

    // One or two words of the input.
    WARPSET_FN static u64 words_at(const u32* words, bool pair)
    {
        if constexpr (width % 2 == 0) return platform::load_input(reinterpret_cast<const u64*>(words));
        return Table::pair_of(platform::load_input(words), pair ? platform::load_input(words + 1) : 0);
    }

    // One or two halves of the level below.
    WARPSET_FN static u64 halves_at(const u32* halves, bool pair)
    {
        if constexpr (all_even) return *reinterpret_cast<const u64*>(halves);
        return Table::pair_of(halves[0], pair ? halves[1] : 0);
    }

    // Whether a node below the pair at `position` of the level above `length` halves is missing, so that the pair cannot be
    // made.
    WARPSET_FN static bool is_missing(u64 node, u32 length, u32 position)
    {
        const bool right_is_word = Shape::is_word(width, length, 2 * position + 1);
        return Table::half(node, 0) == NodeTable::missing || (!right_is_word && Table::half(node, 1) == NodeTable::missing);
    }
};

}  // namespace warpset
