// Trees of 4 words in which one part is wrong on purpose, and correct ones. The other parts are the real headers.
#pragma once

#include "controls/frame.h"
#include "script.h"

namespace controls {

using warpset::NodeTable;

// Puts a node as warpset does: with a compare-and-swap.
struct ClaimedNodes {
    static u32 put(const NodeTable& nodes, u64 node, u32& fresh)
    {
        return nodes.find<warpset::Operation::FindOrPut>(node, fresh);
    }
};

// The flaw: a lane that reads a slot as EMPTY stores its node there. So it may overwrite another lane's node, or a node may be
// stored twice.
template <bool plain>
struct StoredNodes {
    static u32 put(const NodeTable& nodes, u64 node, u32& fresh)
    {
        for (u32 slot = 0; slot < nodes.view.probe_limit * NodeTable::slots_per_bucket; ++slot) {
            const u64 seen = load_relaxed(nodes.view.slots + slot);
            if (seen == node) return slot;
            if (seen != NodeTable::empty) continue;
            if (plain)
                *static_cast<volatile u64*>(nodes.view.slots + slot) = node;
            else
                store(nodes.view.slots + slot, node, Order::Relaxed);
            ++fresh;
            return slot;
        }
        return NodeTable::missing;
    }
};

enum class Reading { Validated, Believed };

template <class Nodes, Reading reading>
struct Tree {
    using Real = warpset::TreeTable<warpset::BucketTable<warpset::StaticShape<2, 8, 32>>, 4>;
    Real real;

    explicit Tree(const warpset::TreeView& view) : real(Real::of(view)) {}

    u32 width() const { return real.width(); }
    u32 word(u64 slot, u32 word) const { return real.word(slot, word); }
    warpset::Found find(const warpset::WordVector& vector) const { return real.find(vector); }

    warpset::Found find_or_put(const warpset::WordVector& vector) const
    {
        u32 fresh = 0;
        const u32 left = Nodes::put(real.nodes, vector.pair(0), fresh), right = Nodes::put(real.nodes, vector.pair(2), fresh);
        if (fresh != 0) warpset::platform::add_relaxed(real.nodes.view.stored, fresh);
        if (left == NodeTable::missing || right == NodeTable::missing) return {warpset::Outcome::Full, warpset::no_reference};
        return real.roots.find_or_put(Real::Key{Real::pair_of(left, right)});
    }

    // The flaw of `Believed`: it assumes that all lanes can read the nodes of a stored root.
    bool read_word(u64 slot, u32 word, u32& value) const
    {
        if (reading == Reading::Validated) return real.read_word(slot, word, value);
        if (!real.roots.read_word(slot, word / 2, value)) return false;
        value = Real::half(real.nodes.load(value), word % 2);
        return true;
    }

    bool holds(u64 slot) const { return reading == Reading::Validated ? real.holds(slot) : real.roots.holds(slot); }
};

template <class Nodes, Reading reading>
void run_tree(const void* argument, Order giving, Order taking)
{
    const auto& script = *static_cast<const ::Script*>(argument);
    run_script(Tree<Nodes, reading>(script.view.tree), script, giving, taking);
}

}  // namespace controls
