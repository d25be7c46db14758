// The shape of the tree that a vector of some width becomes.
//
// Level by level, neighbours are paired; a last one without a neighbour moves up as it is. The two that are left are the *root pair*:
//
//   level 0   w0   w1   w2   w3   w4   w5   w6        7 words
//               \ /       \ /       \ /      |
//   level 1      a         b         c      w6        3 leaves and a word
//                 \       /           \    /
//   level 2          d                  e             2 nodes: the root pair (d, e)
//
// A vector of w words has w - 2 nodes and a root pair, whatever the shape; one of two words is its own root pair.
//
// What a half of a pair means, a word or a reference to a node, is decided by its place, never by its bits. Two vectors of one width
// have equal halves at one place exactly if they have equal words below it: at level 0 the half is the word; above, it is the
// reference of a pair, and the node table gives equal references to equal pairs only (node_table.cuh). So equal root pairs mean equal
// vectors. It takes one shape a table, and no more.
#pragma once

#include "warpset/platform.cuh"

namespace warpset {

struct TreeShape {
    u32 width;  // at least 2

    static constexpr u32 max_width = 256;

    // How many there are at the level above one of `length`.
    WARPSET_FN static constexpr u32 above(u32 length) { return (length + 1) / 2; }
    // How many of those are nodes; another one, if any, has moved up.
    WARPSET_FN static constexpr u32 nodes_above(u32 length) { return length / 2; }

    // How many pairs lie on the longest way to a word, the root pair included.
    WARPSET_FN static constexpr u32 levels(u32 width)
    {
        u32 levels = 0;
        for (u32 length = width; length > 1; length = above(length)) ++levels;
        return levels;
    }

    // Whether the right half of the root pair is the last word, which has moved all the way up: if there are 2^n + 1.
    WARPSET_FN constexpr bool ends_in_word() const { return ((width - 1) & (width - 2)) == 0; }

    // The way from the root pair down to a word: a node for every level, but those at which the word, or what holds it, moves up.
    struct Path {
        u32 sides;   // bit i: which half to go to at step i, counted from the root pair
        u32 length;  // steps; the first is in the root pair itself
    };

    WARPSET_FN Path path(u32 word) const
    {
        Path path{0, 0};
        u32 at = word;
        for (u32 length = width; length > 1; length = above(length)) {
            if (at + 1 < length || length % 2 == 0) {
                path.sides = path.sides << 1 | (at & 1);
                ++path.length;
            }
            at /= 2;
        }
        return path;
    }
};

}  // namespace warpset
