// The tree table: a set of vectors of one width, each stored as a tree of pairs. Equal subtrees are stored once and shared.
//
// Sources: Blom, Lisser, van de Pol, Weber (2008); Laarman, van de Pol, Weber (2011); Bergsma (2019), chapters 3.2, 6 and 7; Wijs
// and Osama (2024), section 6.
//
//   vector --(tree/shape.cuh)--> w - 2 nodes in the node table, 4 bytes a half, shared by all vectors
//                                1 root pair in the root table: its slot is the vector's reference
//
// The root table is a bucket table of 2-word vectors, or a compact table (compact/table.cuh). A compact table's key is the root
// pair without the bits that no reference to a node uses. With a node table of fewer than 2^r slots, keys have 2 r bits, or r +
// 32 if the right half is a word.
//
// Example: inserting (1, 2, 3, 4) and then (5, 6, 1, 2), if the first three nodes go to slots 70, 12 and 33 of the node table:
//
//   | step                     | node table                                 | root table   | outcome |
//   |--------------------------|--------------------------------------------|--------------|---------|
//   | pairs (1, 2) and (3, 4)  | 70: (1, 2)   12: (3, 4)                    |              |         |
//   | root (70, 12)            |                                            | 5: (70, 12)  | New, 5  |
//   | pairs (5, 6) and (1, 2)  | 33: (5, 6)   (1, 2) is there already, at 70 |              |         |
//   | root (33, 70)            |                                            | 9: (33, 70)  | New, 9  |
//
// A vector is New if its root pair is. Roots have their own table. So no bit of a word is needed to mark roots, references to
// nodes keep 32 bits, and memory alone limits the number of roots.
//
// Order. A search compares what it reads, so relaxed accesses are enough (core/claim.cuh). *Reading back* follows references:
//   1. A thread that got New or Seen has observed each node of the tree itself, or other lanes of its warp have, before a
//      Warp::sync with it. By coherence its later relaxed loads see the nodes too. (In an incremental search with a mask, it has
//      observed each node on the paths to changed words. The other nodes belong to the parent, whose reference it must have got
//      as in 2.)
//   2. A thread that got the reference from such a thread through a release and an acquire (a queue, a kernel's end, a stream's
//      order) sees the nodes too: what was observed before the release is seen after the acquire.
//   3. If other threads are putting, a scan of the root table may find a root whose nodes are not visible to it yet. It detects
//      that, because it reads such a node as EMPTY. (No other reference leads to EMPTY, except the known one of (0, 0).) The
//      vector then counts as not yet stored.
// Publishing roots by a release would turn the third case into the second. But then every step that claims would need a fence: on
// an H200 that costs 8 % at 4 words, 7 % at 8, less for wider vectors.
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/compact/table.cuh"
#include "warpset/core/layout.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/tree/incremental.cuh"
#include "warpset/tree/nodes.cuh"
#include "warpset/tree/shape.cuh"
#include "warpset/tree/strategy.cuh"

namespace warpset {

// Mirrored by `TreeView` in src/layout/view.rs. The roots come first, so a kernel that takes a TableView accepts a TreeView.
struct TreeView {
    TableView roots;
    NodeView nodes;
};

// View of a tree table with compact roots. Mirrored by `CompactTreeView` in src/layout/view.rs.
struct CompactTreeView {
    CompactView roots;
    NodeView nodes;
};

// `RootTable` is BucketTable<StaticShape<2, ...>> or a CompactTable. `width_words` is the width, or 0 if it is known only at run
// time. The width is at least 3: narrower vectors are their own roots and use a bucket table. `Strategy`: tree/strategy.cuh.
template <class RootTable, u32 width_words, class Strategy = DefaultStrategy>
struct TreeTable {
    using Roots = RootTable;
    using Shape = TreeShape<Strategy::pairing>;
    static constexpr u32 static_width = width_words;
    static_assert(static_width == 0 || (static_width >= 3 && static_width <= Shape::max_width), "3 to 256 words");
    static_assert(!Roots::is_compact || Strategy::pairing == Pairing::Neighboured,
                  "which halves of compact roots are words is known of these");

    using View = typename Choose<Roots::is_compact, CompactTreeView, TreeView>::Type;
    static constexpr bool has_nodes = true;
    // Whether vectors may be put incrementally. Incremental puts follow the ways to changed words in the order of the leaves,
    // which must be the order of the words.
    static constexpr bool is_incremental = Shape::in_word_order;

    Roots roots;
    NodeTable nodes;
    u32 run_time_width;

    // Table of a view; the width must be static.
    WARPSET_FN static TreeTable of(const View& view) { return {Roots::of(view.roots), {view.nodes}, static_width}; }

    WARPSET_FN constexpr u32 width() const { return static_width == 0 ? run_time_width : static_width; }
    WARPSET_FN constexpr Shape shape() const { return Shape{width()}; }
    WARPSET_FN u64 slots() const { return roots.slots(); }
    WARPSET_FN const Roots& root_table() const { return roots; }

    // Root pair in its stored form: a vector, or key, of the root table.
    struct Key {
        u64 value;

        WARPSET_FN u32 word(u32 index) const { return static_cast<u32>(index == 0 ? value : value >> 32); }
        WARPSET_FN u64 pair(u32) const { return value; }
        WARPSET_FN void read(u32 index, u32& chunk) const { chunk = word(index); }
        WARPSET_FN void read(u32, u64& chunk) const { chunk = value; }
    };

    WARPSET_FN static u64 pair_of(u32 left, u32 right) { return left | static_cast<u64>(right) << 32; }
    WARPSET_FN static u32 half(u64 pair, u32 side) { return static_cast<u32>(side == 0 ? pair : pair >> 32); }

    // Number of bits of the left half in a stored root pair. In a compact root table, that is the bits of a reference: half of
    // the key, or the key without the bits of the last word if the right half is that word. If the word has more bits than that,
    // the key has more bits than the table's keys and is not stored.
    WARPSET_FN constexpr u32 left_bits() const
    {
        if constexpr (Roots::is_compact) {
            const u32 bits = roots.hash.bits();
            return shape().ends_in_word() ? bits - roots.hash.view.last_bits : bits / 2;
        }
        return 32;
    }

    // Converts a root pair to its stored form, and back.
    WARPSET_FN Key pack(u64 pair) const { return {half(pair, 0) | static_cast<u64>(half(pair, 1)) << left_bits()}; }
    WARPSET_FN u64 unpack(Key key) const
    {
        return pair_of(static_cast<u32>(key.value & ((1ull << left_bits()) - 1)), static_cast<u32>(key.value >> left_bits()));
    }

    // Makes the root pair of a vector, by one thread. Returns false if the node table is full or, in a look-up, lacks a node of
    // the vector.
    template <Operation operation, class Vector>
    WARPSET_FN bool key(const Vector& vector, Key& key) const
    {
        u32 fresh = 0;
        bool complete;
        if constexpr (Shape::has_rows)
            complete = key_by_rows<operation>(vector, key, fresh);
        else
            complete = key_in_word_order<operation>(vector, key, fresh);
        if (fresh != 0) platform::add_relaxed(nodes.view.stored, fresh);
        if (complete) key = pack(key.value);
        return complete;
    }

    // Find-or-put by one thread. New: this call stored the vector. Seen: another call did. Full: no slot or no node was free;
    // the vector is not stored, but some of its nodes may be.
    template <class Vector>
    WARPSET_FN Found find_or_put(const Vector& vector) const
    {
        Key root{};
        return key<Operation::FindOrPut>(vector, root) ? roots.find_or_put(root) : Found{Outcome::Full, no_reference};
    }

    // Makes the root pair of a vector that differs from the stored vector at `parent` in some words (tree/incremental.cuh).
    // Returns false if the node table is full. Interleaved trees make the whole tree, as for any vector.
    template <class Vector>
    WARPSET_FN bool incremental_key(u64 parent, const Vector& vector, Key& key) const
    {
        if constexpr (is_incremental) {
            u64 pairs[Shape::levels(most_words)];
            u64 root;
            u32 fresh = 0;
            const bool complete = warpset::incremental_key(*this, parent, vector, OpenPairs<1>{pairs}, root, fresh);
            key = pack(root);
            if (fresh != 0) platform::add_relaxed(nodes.view.stored, fresh);
            return complete;
        } else {
            return this->template key<Operation::FindOrPut>(vector, key);
        }
    }

    // Find-or-put, by one thread, of a vector that differs from the one at `parent` in some words. Returns what find_or_put
    // would, in less time. Stores the given vector, whatever `parent` is, provided that every word outside `vector.changed`
    // equals the parent's.
    template <class Vector>
    WARPSET_FN Found find_or_put_incremental(u64 parent, const Vector& vector) const
    {
        Key root{};
        return incremental_key(parent, vector, root) ? roots.find_or_put(root) : Found{Outcome::Full, no_reference};
    }

    // Seen if the vector is stored, otherwise Absent.
    template <class Vector>
    WARPSET_FN Found find(const Vector& vector) const
    {
        Key root{};
        return key<Operation::Find>(vector, root) ? roots.find(root) : Found{Outcome::Absent, no_reference};
    }

    // Reads word `word` of the vector in a slot. Returns false if the slot holds no vector whose nodes are visible.
    WARPSET_FN bool read_word(u64 slot, u32 word, u32& value) const
    {
        const typename Shape::Path path = shape().path(word);
        u64 root;
        if (!read_root(slot, root)) return false;
        value = half(root, path.sides & 1);
        for (u32 step = 1; step < path.length; ++step) {
            u64 node;
            if (!read_node(value, node)) return false;
            value = half(node, path.sides >> step & 1);
        }
        return true;
    }

    // Word `word` of the vector in a slot. Requires that this thread, or one that it has synchronised with since, has found that
    // the slot holds a vector.
    WARPSET_FN u32 word(u64 slot, u32 word) const
    {
        u32 value = 0;
        read_word(slot, word, value);
        return value;
    }

    // Calls `use(word, value)` for the words first, first + step, ... of the vector in a slot. Returns false, perhaps after some
    // calls, if the slot holds no vector whose nodes are visible. One thread (0, 1) reads each node once. In a tile of lanes
    // (lane, lanes), all lanes that need the same node read it together, level by level, as in Wijs and Osama (2024),
    // algorithm 2.
    template <class Use>
    WARPSET_FN bool read_words(u64 slot, u32 first, u32 step, Use use) const
    {
        u64 pairs[Shape::levels(most_words)];  // on the way to the previous word
        if (!read_root(slot, pairs[0])) return false;
        u32 depth = 0, sides = 0;
        for (u32 word = first; word < width(); word += step) {
            const typename Shape::Path path = shape().path(word);
            if (word != first) depth = platform::lowest_bit(sides ^ path.sides);
            for (; depth + 1 < path.length; ++depth)
                if (!read_node(half(pairs[depth], path.sides >> depth & 1), pairs[depth + 1])) return false;
            use(word, half(pairs[depth], path.sides >> depth & 1));
            sides = path.sides;
        }
        return true;
    }

    // Whether a slot holds a vector and this thread sees all of its nodes.
    WARPSET_FN bool holds(u64 slot) const
    {
        return read_words(slot, 0, 1, [](u32, u32) {});
    }

    // Number of node-table buckets that a search reads to find all nodes of the vector in a slot. The slot must not be empty.
    WARPSET_FN u32 node_probes(u64 slot) const
    {
        u32 probes = 0;
        u64 root = 0;
        read_root(slot, root);
        for (u32 word = 0; word < width(); ++word) {
            const typename Shape::Path path = shape().path(word);
            u32 value = half(root, path.sides & 1);
            for (u32 step = 1; step < path.length; ++step) {
                u64 node = 0;
                read_node(value, node);
                if (path.sides >> step == 0) probes += nodes.probes(value, node);  // each node at its first word
                value = half(node, path.sides >> step & 1);
            }
        }
        return probes;
    }

    // Reads the root pair in a slot. Returns false if the slot is empty or does not exist.
    WARPSET_FN bool read_root(u64 slot, u64& pair) const
    {
        Key key;
        if (slot >= roots.slots() || !roots.read_chunk(slot, key.value)) return false;
        pair = unpack(key);
        return true;
    }

    // Reads the node at a reference. Returns false if it is not visible yet.
    WARPSET_FN bool read_node(u32 reference, u64& node) const
    {
        if (!nodes.is_reference(reference)) return false;
        node = nodes.load(reference);
        return node != NodeTable::empty || reference == nodes.zero();
    }

private:
    static constexpr u32 most_words = static_width == 0 ? Shape::max_width : static_width;

    // Makes the tree row by row. Each row overwrites the one below.
    template <Operation operation, class Vector>
    WARPSET_FN bool key_by_rows(const Vector& vector, Key& key, u32& fresh) const
    {
        u32 row[Shape::above(most_words)];
        bool complete = true;
        u32 length = Shape::above(width());
        for (u32 i = 0; i < width() / 2 && complete; ++i) {
            row[i] = nodes.template find<operation>(vector.pair(2 * i), fresh);
            complete = row[i] != NodeTable::missing;
        }
        if (width() % 2 == 1) row[length - 1] = vector.word(width() - 1);
        for (; length > 2 && complete; length = Shape::above(length)) {
            for (u32 i = 0; i < length / 2 && complete; ++i) {
                row[i] =
                    nodes.template find<operation>(pair_of(row[Shape::left(length, i)], row[Shape::right(length, i)]), fresh);
                complete = row[i] != NodeTable::missing;
            }
            if (length % 2 == 1) row[length / 2] = row[Shape::left(length, length / 2)];
        }
        if (complete) key.value = pair_of(row[0], row[1]);
        return complete;
    }

    // Makes the tree word by word. After each word, finds or puts the pairs that it completes, from the lowest one up. Keeps the
    // halves to the left of the way to the word.
    template <Operation operation, class Vector>
    WARPSET_FN bool key_in_word_order(const Vector& vector, Key& key, u32& fresh) const
    {
        u32 waiting[Shape::levels(most_words)];
        u32 half = 0;
        for (u32 word = 0; word < width(); ++word) {
            const typename Shape::Path path = shape().path(word);
            u32 depth = path.length - 1;
            half = vector.word(word);
            for (; depth > 0 && (path.sides >> depth & 1); --depth) {
                half = nodes.template find<operation>(pair_of(waiting[depth], half), fresh);
                if (half == NodeTable::missing) return false;
            }
            if (!(path.sides >> depth & 1)) waiting[depth] = half;
        }
        key.value = pair_of(waiting[0], half);
        return true;
    }
};

}  // namespace warpset
