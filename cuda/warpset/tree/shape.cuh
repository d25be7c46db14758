// Shape of the trees for vectors of one width: which halves form pairs.
//
// *Neighboured*, the default. Neighbours are paired, level by level. A last half without a neighbour moves up unchanged. The
// last two halves are the *root pair*:
//
//   level 0   w0   w1   w2   w3   w4   w5   w6        7 words
//               \ /       \ /       \ /      |
//   level 1      a         b         c      w6        3 leaves and a word
//                 \       /           \    /
//   level 2          d                  e             2 nodes: the root pair (d, e)
//
// *Interleaved*. Words are paired with their neighbours. Above them, half i of a row of n halves is paired with half
// i + ceil(n / 2): d = (a, c), e = (b, w6). A half in the middle without a partner moves up.
//
// *Halved*. From the root down, w words are split into the first ceil(w / 2) and the others, one half for each part: d stands for
// w0 to w3; e stands for w4 to w6 and is the pair of (w4, w5) and w6.
//
// All three are from Bergsma (2019), chapters 6 and 7. If the width is a power of two, neighboured and halved trees are the same.
// (For other widths, his neighboured and interleaved trees have their incomplete row at the bottom left. Here each row pairs all
// halves that it can. The number of nodes is the same, and each row is made from the row below in one pass.)
//
// A vector of w words has w - 2 nodes and a root pair in every shape; a vector of two words is its own root pair.
//
// The position of a half in the tree decides whether it is a word or a reference to a node; its bits never do. Two
// vectors of one width have equal halves at a position exactly if they have equal words below it. At level 0 the half is the
// word. Above, it is the reference of a pair, and the node table gives equal references to equal pairs only (tree/nodes.cuh). So
// equal root pairs mean equal vectors, provided that all trees of a table have one shape.
#pragma once

#include "warpset/platform.cuh"

namespace warpset {

// The numbers are those of `Pairing` in src/layout/strategy.rs.
enum class Pairing : u32 { Neighboured = 0, Interleaved = 1, Halved = 2 };

template <Pairing pairing>
struct TreeShape {
    u32 width;  // at least 2

    static constexpr u32 max_width = 256;
    // Whether trees are made row by row, from below. (Halved trees have no rows.)
    static constexpr bool has_rows = pairing != Pairing::Halved;
    // Whether the leaves of a tree, from left to right, are the words in order.
    static constexpr bool in_word_order = pairing != Pairing::Interleaved;

    // Number of halves in the row above one of `length` halves.
    WARPSET_FN static constexpr u32 above(u32 length) { return (length + 1) / 2; }
    // Number of nodes in the row above one of `length` halves. If `length` is odd, the last half of that row is not a node: it
    // has moved up unchanged.
    WARPSET_FN static constexpr u32 nodes_above(u32 length) { return length / 2; }

    // Positions of the two halves, in a row of `length` halves above the words, that form the pair at `position` of the next row.
    // If `right` is not less than `length`, the left half has no partner and moves up.
    WARPSET_FN static constexpr u32 left(u32, u32 position) { return pairing == Pairing::Interleaved ? position : 2 * position; }
    WARPSET_FN static constexpr u32 right(u32 length, u32 position)
    {
        return pairing == Pairing::Interleaved ? position + above(length) : 2 * position + 1;
    }

    // Whether a half in a row above the words is the vector's last word, moved up.
    WARPSET_FN static constexpr bool is_word(u32 width, u32 length, u32 position)
    {
        u32 row = width;
        while (row > length && row % 2 == 1) {
            row = above(row);
            if (pairing == Pairing::Interleaved) break;  // above the words, the last half has a partner
        }
        return row == length && position == length - 1;
    }

    // Number of pairs on the longest way to a word, including the root pair.
    WARPSET_FN static constexpr u32 levels(u32 width)
    {
        u32 levels = 0;
        for (u32 length = width; length > 1; length = above(length)) ++levels;
        return levels;
    }

    // Whether the right half of the root pair is the last word, moved all the way up: true for widths of 2^n + 1.
    WARPSET_FN constexpr bool ends_in_word() const { return ((width - 1) & (width - 2)) == 0; }

    // The way from the root pair down to a word. It has one node for each level, except for levels at which the word, or the half
    // above it, moves up.
    struct Path {
        u32 sides;   // bit i: the half to follow at step i, counted from the root pair
        u32 length;  // steps; the first is in the root pair itself
    };

    WARPSET_FN Path path(u32 word) const
    {
        if constexpr (has_rows)
            return path_from_below(word);
        else
            return path_from_above(word);
    }

private:
    WARPSET_FN Path path_from_below(u32 word) const
    {
        Path path{0, 0};
        u32 at = word;
        for (u32 length = width; length > 1; length = above(length)) {
            const bool strides = pairing == Pairing::Interleaved && length != width;
            const u32 side = strides ? at >= above(length) : at & 1;
            const bool has_partner = side == 1 || (strides ? at + above(length) : at + 1) < length;
            if (has_partner) {
                path.sides = path.sides << 1 | side;
                ++path.length;
            }
            at = strides ? at - side * above(length) : at / 2;
        }
        return path;
    }

    WARPSET_FN Path path_from_above(u32 word) const
    {
        Path path{0, 0};
        u32 at = word;
        for (u32 count = width; count > 1; ++path.length) {
            const u32 side = at >= above(count);
            path.sides |= side << path.length;
            at -= side * above(count);
            count = side == 0 ? above(count) : nodes_above(count);
        }
        return path;
    }
};

}  // namespace warpset
