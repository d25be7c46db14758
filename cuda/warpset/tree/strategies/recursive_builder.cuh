// Builder for the recursive strategies of Bergsma (2019), chapter 6: root pairs are made depth first, with references on the call
// stack.
//
// The variants of the thesis are parameters:
//   - the base case (6.3.1): recursion ends at one word (Stack), or at a pair of words (StackOfLeaves);
//   - the lanes that compare a node (6.3.2): a *node group* of two lanes, 32 bits each (Two; NodeTable::find_by_two), or one
//     lane, all 64 bits (One).
// The thesis also has buckets for more lanes. Here the node table has buckets of two slots, which one or two lanes read at once.
//
// The functions are not inlined. Each depth has its own function, so that the compiler knows how much stack the calls take. The
// stack is in local memory; L1 caches as much of it as fits.
#pragma once

#include "warpset/tree/strategies/root_builder.cuh"

namespace warpset {

// Makes the tree of one vector, by one lane or two.
template <class Shape, u32 width, Operation operation, Lanes lanes, Workspace workspace>
struct Recursion {
    NodeTable nodes;
    const u32* words;      // words of the vector
    bool complete;         // false if a node is missing or there is no vector: then no more nodes are searched for
    u32 fresh;             // nodes that this lane has put

    // Half that represents the `count` words from `first` on, 1 to 2^depth of them: a word or a reference. If two lanes compare a
    // node, all lanes of a warp call this, converged.
    template <u32 depth>
    WARPSET_CALLED u32 subtree(u32 first, u32 count)
    {
        if constexpr (depth == 0) {
            return word(first);
        } else {
            if (count == 1) return word(first);
            if constexpr (workspace == Workspace::StackOfLeaves) {
                if (count == 2) return find(word(first), word(first + 1));
            }
            const u32 left = subtree<depth - 1>(first, Shape::above(count));
            const u32 right = subtree<depth - 1>(first + Shape::above(count), Shape::nodes_above(count));
            return find(left, right);
        }
    }

    WARPSET_FN u64 root()
    {
        constexpr u32 depth = Shape::levels(width) - 1;
        const u32 left = subtree<depth>(0, Shape::above(width));
        const u32 right = subtree<depth>(Shape::above(width), Shape::nodes_above(width));
        return complete ? left | static_cast<u64>(right) << 32 : NodeTable::missing;
    }

private:
    WARPSET_FN u32 word(u32 index) const { return complete ? words[index] : 0; }

    WARPSET_FN u32 find(u32 left, u32 right)
    {
        const u64 node = left | static_cast<u64>(right) << 32;
        u32 reference = NodeTable::missing;
        if constexpr (lanes == Lanes::Two) reference = nodes.template find_by_two<operation>(node, complete, fresh);
        else if (complete) reference = nodes.template find<operation>(node, fresh);
        complete = complete && reference != NodeTable::missing;
        return reference;
    }
};

template <class RootShape, u32 width, Lanes lanes, Workspace workspace, Operation operation>
struct Builder<TreeTable<RootShape, width, Strategy<lanes, Pairing::Halved, workspace>>, operation, Offer::Whole>
    : RootBuilder<TreeTable<RootShape, width, Strategy<lanes, Pairing::Halved, workspace>>, operation> {
    static_assert(lanes == Lanes::One || lanes == Lanes::Two, "a node is looked at by one lane or two");
    static_assert(workspace == Workspace::Stack || workspace == Workspace::StackOfLeaves, "recursion has a call stack");
    using Table = TreeTable<RootShape, width, Strategy<lanes, Pairing::Halved, workspace>>;
    using Base = RootBuilder<Table, operation>;
    using Base::fresh;
    using Base::roots;
    using Base::table;
    using typename Base::Search;
    using Warp = platform::Warp;

    static constexpr u32 group = lanes == Lanes::Two ? 2 : 1;
    static constexpr u32 vectors_at_once = Warp::size / group;
    static constexpr u32 workspace_bytes = 0;
    static constexpr u32 scratch_bytes = Base::roots_bytes;

    WARPSET_FN Builder(const Table& table, u8* scratch) : Base(table, scratch) {}

    // Writes the root pairs of vectors `next .. next + count`, in order, to the scratch memory of the lanes set in `takers`.
    // Returns true on a lane whose vector has no root pair because no node was free.
    WARPSET_FN bool take(const Search& search, const BatchView& batch, u32 next, u32 count, u32 takers)
    {
        const u32 lane = Warp::lane();
        WARPSET_UNROLL_BY(1)
        for (u32 first = 0; first < count; first += vectors_at_once) {
            const u32 vector = first + lane / group;
            const u32* words = batch.vectors + (static_cast<u64>(next) + vector) * width;
            Recursion<typename Table::Shape, width, operation, lanes, workspace> tree{table.nodes, words, vector < count, 0};
            const u64 root = tree.root();
            fresh += tree.fresh;
            if (vector < count && lane % group == 0) roots[vector] = root;
        }
        return Base::hand_over(search, takers);
    }
};

}  // namespace warpset
