// Incremental find-or-put: makes the root pair of a vector that differs in some words from a stored vector, its *parent*.
//
// Only the *ways* matter: the paths from the root pair to the changed words. All other subtrees are those of the parent, and the
// pairs on the ways have references to them. For each changed word, the thread reads the pairs on its way from the parent's tree;
// these pairs are then *open*. It replaces the word in the lowest one. Pairs that are not on the next way are then *closed*, from
// below: the thread finds or puts the pair and writes its reference into the pair above.
//
//   parent  (1, 2, 3, 4)      word 3 becomes 7
//
//            root (70, 12)    open: root (70, 12), node 12: (3, 4)
//             /        \      replace: (3, 7)
//      70: (1, 2)   12: (3, 4)    close: find or put (3, 7), say at 33; then search for the root (70, 33)
//
// Words are handled from left to right, which is their order in the tree, so each pair is opened once and closed once. (In
// interleaved trees the order is different, so their tables make the whole tree.) For k changed words of w this takes at most
// k log2 w loads and as many look-ups, fewer if ways share pairs, instead of w - 2 look-ups. The nodes and the root pair are the
// same as without a parent, since every pair that is found or put is a pair of the vector.
//
// A mask names the changed words. Without a mask every word counts as changed until it is compared: the thread reads all w - 2
// nodes, but looks up only pairs that differ. The parent may be unreadable: the reference is missing, or another thread passed it
// on without synchronisation (see tree/table.cuh), so that one of the parent's nodes is not visible yet. Then all pairs start
// empty and count as changed, and the same loop makes the whole tree.
//
// The mask is trusted: a word outside it has the parent's value, whatever the vector says. So with a mask the parent's reference
// must have been passed on with synchronisation (an earlier kernel or batch; release and acquire). Subtrees off the ways are not
// read: a thread that gets New or Seen has observed them only through the thread that put the parent.
#pragma once

#include "warpset/core/outcome.cuh"
#include "warpset/tree/nodes.cuh"
#include "warpset/tree/shape.cuh"

namespace warpset {

// A vector and the mask of its changed words. Both may be in any kind of memory.
struct ChangedVector {
    const u32* words;    // the whole vector
    const u32* changed;  // bit i % 32 of changed[i / 32]: word i may differ from the parent's; null: any may

    WARPSET_FN u32 word(u32 index) const { return words[index]; }
    WARPSET_FN u64 pair(u32 index) const { return word(index) | static_cast<u64>(word(index + 1)) << 32; }
    WARPSET_FN u32 mask(u32 index) const { return changed == nullptr ? ~0u : changed[index]; }
};

// Open pairs of one lane, `stride` apart, so that in shared memory the pairs of a warp's lanes are adjacent.
template <u32 stride>
struct OpenPairs {
    u64* pairs;

    WARPSET_FN u64& operator[](u32 depth) const { return pairs[depth * stride]; }
};

// Iterates over the changed words of a vector, in order.
template <class Vector>
struct ChangedWords {
    const Vector& vector;
    u32 width;
    bool all = false;  // ignore the mask: every word may have changed
    u32 first = 0, bits = 0;

    WARPSET_FN ChangedWords(const Vector& vector, u32 width) : vector(vector), width(width) {}

    WARPSET_FN void start(bool all_words)
    {
        all = all_words;
        first = 0;
        bits = mask(0);
    }

    // Returns the next changed word, or `width` if none is left.
    WARPSET_FN u32 next()
    {
        while (bits == 0) {
            first += 32;
            if (first >= width) return width;
            bits = mask(first / 32);
        }
        const u32 bit = platform::lowest_bit(bits);
        bits &= bits - 1;
        return first + bit < width ? first + bit : width;
    }

private:
    WARPSET_FN u32 mask(u32 index) const { return all ? ~0u : vector.mask(index); }
};

// Writes the root pair of `vector`, whose parent is stored at `parent`, to `root`. Called by one thread. Returns false if the
// node table is full. `pairs` has space for one pair per level; `fresh` counts the nodes that this call has put.
template <class Table, class Vector, class Pairs>
WARPSET_FN bool incremental_key(const Table& table, u64 parent, const Vector& vector, const Pairs& pairs, u64& root, u32& fresh)
{
    using Path = typename Table::Shape::Path;
    root = 0;
    bool has_parent = table.read_root(parent, root);
    ChangedWords<Vector> words(vector, table.width());
    words.start(!has_parent);
    u32 depth = 0;    // depth of the lowest open pair; the root pair is always open
    u32 changed = 0;  // bit d: the pair at depth d is not the parent's
    Path way{0, 1};
    pairs[0] = root;
    const auto exchange = [&](u32 at, u32 side, u32 value) {
        const u64 pair = pairs[at];
        if (has_parent && Table::half(pair, side) == value) return;
        pairs[at] = side == 0 ? Table::pair_of(value, Table::half(pair, 1)) : Table::pair_of(Table::half(pair, 0), value);
        changed |= 1u << at;
    };
    while (true) {
        const u32 word = words.next();
        const Path next = word < table.width() ? table.shape().path(word) : Path{~way.sides, 1};
        // The way to the next word leaves the way to the previous one at the first depth where their sides differ.
        const u32 meet = depth == 0 ? 0 : platform::lowest_bit(way.sides ^ next.sides);
        for (; depth > meet; --depth) {
            if (!(changed >> depth & 1)) continue;
            changed ^= 1u << depth;
            const u32 reference = table.nodes.template find<Operation::FindOrPut>(pairs[depth], fresh);
            if (reference == NodeTable::missing) return false;
            exchange(depth - 1, way.sides >> (depth - 1) & 1, reference);
        }
        if (word == table.width()) break;
        way = next;
        bool read = true;
        for (; depth + 1 < way.length && read; ++depth) {
            u64 pair = 0;
            read = !has_parent || table.read_node(Table::half(pairs[depth], way.sides >> depth & 1), pair);
            pairs[depth + 1] = pair;
        }
        if (!read) {
            has_parent = false;
            words.start(true);
            depth = changed = 0;
            continue;
        }
        exchange(depth, way.sides >> depth & 1, vector.word(word));
    }
    root = pairs[0];
    return true;
}

}  // namespace warpset
