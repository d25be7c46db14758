// Growth of a tree table's node table. Replaces the references in roots instead of making each tree again from its words.
//
// In a larger node table, nodes have other references. So all roots change, and all nodes that contain references. Putting all
// vectors again would look for a node once for each vector that has it. Here a list records where each node has gone, so each
// node is looked for once.
//
// Whether a half of a node is a word or a reference depends on its position (tree/shape.cuh). Positions with subtrees of one
// shape are of one *kind*. A node may be at positions of several kinds, and becomes another node for each. So each kind has a
// list with an entry for each slot of the smaller node table: 0, or 1 + the node's reference in the larger table. Vectors of 8
// words have two kinds: pairs of words, and pairs of such pairs.
//
// Nodes that no stored vector has are not moved: their vectors were rejected or removed. (If a vector of a damaged file cannot be
// read, it is dropped, but some of its nodes may have been moved before.)
//
// Threads share the lists. If two threads move the same node at the same time, both find-or-put the same pair, and get the same
// reference (core/claim.cuh). So both write the same entry. Entries are relaxed: an entry is a number that is compared and
// stored. Nodes of the larger table are read after the threads are joined.
#include "kernels.hpp"

namespace warpset {
namespace {

// The kinds of positions in the trees of a table.
struct Kinds {
    static constexpr u32 word = 0;
    static constexpr u32 most = TreeShape<Pairing::Neighboured>::max_width;

    struct Kind {
        u32 left, right;
    };

    Kind kinds[most];  // from 1 on
    u32 count = 1;     // kinds, that of words included
    Kind root;

    template <class Shape>
    explicit Kinds(const Shape& shape)
    {
        // Children of the nodes of a tree. Node 0 is the root pair. No node has the root pair as a child, so a child of 0 means
        // "no child".
        u32 children[2 * most][2] = {};
        u32 nodes = 1;
        for (u32 leaf = 0; leaf < shape.width; ++leaf) {
            const typename Shape::Path path = shape.path(leaf);
            u32 at = 0;
            for (u32 step = 0; step < path.length; ++step) {
                u32& child = children[at][path.sides >> step & 1];
                if (child == 0) child = nodes++;
                at = child;
            }
        }
        root = {kind(children, children[0][0]), kind(children, children[0][1])};
    }

private:
    // Returns the kind of a node. Adds a kind if the node is like no earlier one.
    u32 kind(const u32 (&children)[2 * most][2], u32 node)
    {
        if (children[node][0] == 0) return word;
        const Kind kind_of{kind(children, children[node][0]), kind(children, children[node][1])};
        for (u32 known = 1; known < count; ++known)
            if (kinds[known].left == kind_of.left && kinds[known].right == kind_of.right) return known;
        kinds[count] = kind_of;
        return count++;
    }
};

// The nodes of a table, and how its roots are stored.
struct Trees {
    NodeTable nodes;
    u32 left_bits;  // bits of a stored root that are its left half (TreeTable::left_bits)
};

Trees trees_of(const View& view)
{
    if (view.kind == TableKind::Tree) return {{view.as<TreeView>().nodes}, 32};
    const CompactTreeView& tree = view.as<CompactTreeView>();
    // The number of bits of a key is not in the type of the slots.
    using Roots = CompactTable<64, 0>;
    return {{tree.nodes}, TreeTable<Roots, 0>{Roots::of(tree.roots), {tree.nodes}, tree.nodes.width}.left_bits()};
}

template <class Use>
void with_kinds(const View& view, Use use)
{
    const u32 width = trees_of(view).nodes.view.width;
    switch (view.pairing) {
        case Pairing::Neighboured: return use(Kinds(TreeShape<Pairing::Neighboured>{width}));
        case Pairing::Interleaved: return use(Kinds(TreeShape<Pairing::Interleaved>{width}));
        case Pairing::Halved: return use(Kinds(TreeShape<Pairing::Halved>{width}));
    }
}

// Number of entries in the list of a kind. The node (0, 0) has the last entry.
u64 entries_of(const NodeTable& nodes) { return nodes.zero() + 1ull; }

// Moves the nodes that halves of roots need from one node table to another.
struct Mover {
    const NodeTable from, to;
    const Kinds& kinds;
    u32* lists;
    u32 fresh = 0;             // nodes that are new in `to`
    bool lacks_nodes = false;  // whether `to` was full

    u32* entry(u32 kind, u32 reference) const { return lists + (kind - 1) * entries_of(from) + reference; }

    void prefetch(u32 kind, u32 half) const
    {
        if (kind != Kinds::word && from.is_reference(half)) platform::prefetch(entry(kind, half), sizeof(u32));
    }

    // Replaces a half at a position of this kind. Returns false if `to` is full, or if the half leads to no node, as in a damaged
    // file. Each recursive call goes one level down, so at most 8 calls are nested.
    bool move(u32 kind, u32& half)
    {
        if (kind == Kinds::word) return true;
        if (!from.is_reference(half)) return false;
        u32* const entry = this->entry(kind, half);
        const u32 known = platform::load_relaxed(entry);
        if (known != 0) {
            half = known - 1;
            return true;
        }
        const u64 node = from.load(half);
        if (node == NodeTable::empty && half != from.zero()) return false;
        u32 left = static_cast<u32>(node), right = static_cast<u32>(node >> 32);
        if (!move(kinds.kinds[kind].left, left) || !move(kinds.kinds[kind].right, right)) return false;
        const u32 reference = to.find<Operation::FindOrPut>(left | static_cast<u64>(right) << 32, fresh);
        if (reference == NodeTable::missing) {
            lacks_nodes = true;
            return false;
        }
        platform::store_relaxed(entry, reference + 1);
        half = reference;
        return true;
    }
};

}  // namespace

void count_tree_lists(const View& view, u64* entries)
{
    with_kinds(view, [&](const Kinds& kinds) { *entries = (kinds.count - 1) * entries_of(trees_of(view).nodes); });
}

void move_trees(const View& from, const View& to, u32* lists, u32* roots, u64* count, u64* full)
{
    constexpr u64 ahead = 32;
    const Trees smaller = trees_of(from), larger = trees_of(to);
    with_kinds(from, [&](const Kinds& kinds) {
        Mover mover{smaller.nodes, larger.nodes, kinds, lists};
        const auto read = [&](u64 at, u32& left, u32& right) {
            const u64 root = platform::load_pair(roots + 2 * at);
            left = static_cast<u32>(root & ((1ull << smaller.left_bits) - 1));
            right = static_cast<u32>(root >> smaller.left_bits);
        };
        u64 moved = 0;
        u32 left, right;
        for (u64 at = 0; at < *count + ahead; ++at) {
            if (at < *count) {
                read(at, left, right);
                mover.prefetch(kinds.root.left, left);
                mover.prefetch(kinds.root.right, right);
            }
            if (at < ahead) continue;
            read(at - ahead, left, right);
            mover.lacks_nodes = false;
            if (!mover.move(kinds.root.left, left) || !mover.move(kinds.root.right, right)) {
                *full += mover.lacks_nodes;
                continue;
            }
            const u64 root = left | static_cast<u64>(right) << larger.left_bits;
            roots[2 * moved] = static_cast<u32>(root);
            roots[2 * moved + 1] = static_cast<u32>(root >> 32);
            ++moved;
        }
        *count = moved;
        platform::add_relaxed(larger.nodes.view.stored, mover.fresh);
    });
}

}  // namespace warpset
