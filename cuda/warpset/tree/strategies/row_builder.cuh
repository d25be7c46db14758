// Builder for the non-recursive strategies of Bergsma (2019), section 7.1.3: root pairs are made row by row, and each row of
// halves overwrites the row below.
//
// One loop, `make_row`, runs in rounds. In a round each lane has one *task*, a pair of one vector. The warp begins the next
// round when all lanes are done (except with Lanes::One). Policies determine
//   - the task of a lane (`task`). With One and Group, each vector has a *group* of lanes: one lane, or as many as the vector has
//     leaves, up to a warp; lanes of a Group idle as rows get shorter. With ShrinkingGroup, lanes take the tasks of all vectors
//     in order. The thesis shrinks groups over a block of 256 threads, with a block-wide barrier for every row. Here a warp has
//     32 vectors at a time, so every row has a task for each lane, and no block-wide barrier is needed;
//   - the halves that make a pair (TreeShape);
//   - the memory of the halves (`Memory`, `Registers`).
//
// Overwriting is safe: a round writes halves at or before the positions that it reads, and later rounds read beyond what earlier
// ones have written. All lanes of a round read before any of them writes (`sync`). The same `sync` ensures that the halves of
// the next vectors are written only after those of the current ones have been read.
#pragma once

#include "warpset/core/layout.cuh"
#include "warpset/tree/strategies/root_builder.cuh"

namespace warpset {

template <class RootShape, u32 width, Lanes lanes, Pairing pairing, Workspace workspace, Operation operation>
struct Builder<TreeTable<RootShape, width, Strategy<lanes, pairing, workspace>>, operation, Offer::Whole>
    : RootBuilder<TreeTable<RootShape, width, Strategy<lanes, pairing, workspace>>, operation> {
    static_assert(lanes == Lanes::One || lanes == Lanes::Group || lanes == Lanes::ShrinkingGroup, "another builder's");
    static_assert(workspace != Workspace::ShuffledShared || (pairing == Pairing::Neighboured && lanes != Lanes::Group),
                  "other accesses have no bank conflicts");
    static_assert(workspace != Workspace::Registers || (pairing == Pairing::Neighboured && lanes == Lanes::Group),
                  "halves are in registers of a group's lanes");
    using Table = TreeTable<RootShape, width, Strategy<lanes, pairing, workspace>>;
    using Shape = typename Table::Shape;
    using Base = RootBuilder<Table, operation>;
    using Base::fresh;
    using Base::roots;
    using Base::table;
    using typename Base::Search;
    using Warp = platform::Warp;

    static constexpr u32 leaves = Shape::above(width);  // includes the last word, if the width is odd
    static constexpr bool shrinks = lanes == Lanes::ShrinkingGroup;
    static constexpr u32 group = lanes != Lanes::Group ? 1 : leaves < Warp::size ? power_of_two_at_least(leaves) : Warp::size;
    static constexpr u32 vectors_at_once = Warp::size / group;

    static constexpr bool in_registers = workspace == Workspace::Registers, in_global = workspace == Workspace::Global;
    // Bytes of the halves, rounded up to whole blocks of the shuffled order, and to 16 bytes.
    static constexpr u32 halves_bytes = (vectors_at_once * leaves + 63) / 64 * 64 * 4;
    static constexpr u32 workspace_bytes = in_global ? halves_bytes : 0;
    static constexpr u32 scratch_bytes = Base::roots_bytes + (in_global || in_registers ? 0 : halves_bytes);

    WARPSET_FN Builder(const Table& table, u8* scratch) : Base(table, scratch) {}

    // Writes the root pairs of vectors `next .. next + count`, in order, to the scratch memory of the lanes set in `takers`.
    // Returns true on a lane whose vector has no root pair because no node was free.
    WARPSET_FN bool take(const Search& search, const BatchView& batch, u32 next, u32 count, u32 takers)
    {
        const u32 lane = Warp::lane();
        const u32* words = batch.vectors + static_cast<u64>(next) * width;
        WARPSET_UNROLL_BY(1)
        for (u32 first = 0; first < count; first += vectors_at_once) {
            const u32 vectors = count - first < vectors_at_once ? count - first : vectors_at_once;
            Halves halves(*this, batch);
            make_row<true>(words + first * width, halves, width, vectors);
            WARPSET_UNROLL_BY(1)
            for (u32 length = leaves; length > 2; length = Shape::above(length))
                make_row<false>(nullptr, halves, length, vectors);
            const u32 vector = lane / group;
            const bool mine = vector < vectors;
            const u64 root = Table::pair_of(halves.read(mine, vector, 2, 0), halves.read(mine, vector, 2, 1));
            if (mine && lane % group == 0) roots[first + vector] = is_missing(root, 2, 1) ? NodeTable::missing : root;
        }
        return Base::hand_over(search, takers);
    }

private:
    // A pair of a row: its position, and its vector's number among those under construction.
    struct Task {
        u32 vector, position;
    };

    // Task of this lane in a round. A vector or position of that number may not exist.
    WARPSET_FN static Task task(u32 round, u32 above)
    {
        const u32 lane = Warp::lane();
        if constexpr (shrinks) return {(round * Warp::size + lane) / above, (round * Warp::size + lane) % above};
        return {lane / group, round * group + lane % group};
    }

    WARPSET_FN static u32 rounds(u32 above, u32 vectors)
    {
        return shrinks ? (vectors * above + Warp::size - 1) / Warp::size : (above + group - 1) / group;
    }

    // Makes the row above one of `length` halves, or above the words, for all vectors.
    template <bool of_words, class Halves>
    WARPSET_FN void make_row(const u32* words, Halves& halves, u32 length, u32 vectors)
    {
        const u32 above = Shape::above(length);
        WARPSET_UNROLL_BY(1)
        for (u32 round = 0; round < rounds(above, vectors); ++round) {
            const Task task = this->task(round, above);
            const bool mine = task.vector < vectors && task.position < above;
            const u32 left = of_words ? 2 * task.position : Shape::left(length, task.position);
            const u32 right = of_words ? left + 1 : Shape::right(length, task.position);
            const bool paired = mine && right < length;
            u64 pair;
            if constexpr (of_words) pair = mine ? words_at(words + task.vector * width + left, paired) : 0;
            else pair = Table::pair_of(halves.read(mine, task.vector, length, left),
                                       halves.read(paired, task.vector, length, right));
            u32 half = Table::half(pair, 0);  // moves up if it has no partner
            if (paired)
                half = !of_words && is_missing(pair, length, right) ? NodeTable::missing
                                                                    : table.nodes.template find<operation>(pair, fresh);
            sync();
            if (mine) halves.write(task.vector, above, task.position, half);
            sync();
        }
    }

    // Synchronizes the lanes that share the halves of a vector.
    WARPSET_FN static void sync()
    {
        if constexpr (lanes != Lanes::One) Warp::sync();
    }

    // Reads one or two words of the input.
    WARPSET_FN static u64 words_at(const u32* words, bool pair)
    {
        // If one lane reads the whole vector, its next loads need the rest of the sector: an ordinary load keeps it in L1.
        if constexpr (lanes == Lanes::One) return Table::pair_of(words[0], pair ? words[1] : 0);
        if constexpr (width % 2 == 0) return platform::load_input(reinterpret_cast<const u64*>(words));
        return Table::pair_of(platform::load_input(words), pair ? platform::load_input(words + 1) : 0);
    }

    // Whether one of a pair's halves is missing, so that the pair cannot be made. The right half is at position `right` of a row
    // of `length` halves.
    WARPSET_FN static bool is_missing(u64 pair, u32 length, u32 right)
    {
        // Only the last right half of a row can be a word.
        return Table::half(pair, 0) == NodeTable::missing ||
               (Table::half(pair, 1) == NodeTable::missing && !Shape::is_word(width, length, right));
    }

    // Halves in shared or global memory.
    struct Memory {
        u32* halves;

        WARPSET_FN Memory(const Builder& builder, const BatchView& batch)
        {
            if constexpr (in_global) halves = reinterpret_cast<u32*>(batch.workspace + platform::Grid::warp() * workspace_bytes);
            else halves = reinterpret_cast<u32*>(builder.roots + Warp::size);
        }

        // Half at a position of a vector's row of `length` halves. If the half is not wanted, returns 0 without a read.
        WARPSET_FN u32 read(bool wanted, u32 vector, u32 length, u32 position) const
        {
            return wanted ? halves[at(vector, length, position)] : 0;
        }
        WARPSET_FN void write(u32 vector, u32 length, u32 position, u32 half) { halves[at(vector, length, position)] = half; }

    private:
        WARPSET_FN static u32 at(u32 vector, u32 length, u32 position)
        {
            // The rows of lanes that share their work are adjacent; other rows are at equal distances.
            const u32 in_order = vector * (shrinks ? length : leaves) + position;
            if constexpr (workspace != Workspace::ShuffledShared) return in_order;
            // Lanes read halves 2i and 2i + 1. If each lane has its own vector, the halves of all lanes at one position are
            // adjacent. If lanes share one row, the even halves of each 64 are stored before the odd ones.
            if constexpr (!shrinks) return position * Warp::size + vector;
            return (in_order & ~63u) | (in_order & 1) << 5 | (in_order >> 1 & 31);
        }
    };

    // Halves in registers of the lanes of a group: position p of a row is in register p / group of lane p % group.
    struct Registers {
        static constexpr u32 count = (leaves + group - 1) / group;
        u32 halves[count] = {};

        WARPSET_FN Registers(const Builder&, const BatchView&) {}

        // As `Memory::read`. All lanes call it, converged.
        WARPSET_FN u32 read(bool wanted, u32, u32, u32 position) const
        {
            const u32 group_start = Warp::lane() / group * group;
            u32 half = 0;
            WARPSET_UNROLL
            for (u32 i = 0; i < count; ++i) {
                const u32 of_lane = Warp::shuffle(halves[i], group_start + position % group);
                if (wanted && position / group == i) half = of_lane;
            }
            return half;
        }
        // The position must be one of this lane's.
        WARPSET_FN void write(u32, u32, u32 position, u32 half)
        {
            WARPSET_UNROLL
            for (u32 i = 0; i < count; ++i)
                if (position / group == i) halves[i] = half;
        }
    };

    using Halves = typename Choose<in_registers, Registers, Memory>::Type;
};

}  // namespace warpset
