// How a warp takes changes of stored vectors into a search: each lane makes the root pair of its own (tree_change.cuh).
//
// Neighbouring vectors of a batch often have one parent, whose pairs the lanes then read by the same requests. The open pairs lie in shared memory:
// which of them a step needs is not known when the kernel is compiled, and registers cannot be numbered.
#pragma once

#include "warpset/batch.cuh"
#include "warpset/tree_table.cuh"

namespace warpset {

template <class RootShape, u32 width, Operation operation>
struct Intake<TreeTable<RootShape, width>, operation, Offer::Changes> {
    static_assert(operation == Operation::FindOrPut, "changes are put");
    using Table = TreeTable<RootShape, width>;
    using Search = WarpSearch<typename Table::Roots, operation>;
    using Warp = platform::Warp;

    static constexpr u32 scratch_bytes = TreeShape::levels(width) * Warp::size * 8;

    const Table& table;
    u64* pairs;
    u32 fresh = 0;  // nodes that this lane has put

    WARPSET_FN Intake(const Table& table, u8* scratch) : table(table), pairs(reinterpret_cast<u64*>(scratch)) {}

    // Writes the root pairs of the vectors `next .. next + count` to the scratch memory of the lanes set in `takers`, in order. True
    // for a lane whose vector has no root: for want of a node.
    WARPSET_FN bool take(const Search& search, const BatchView& batch, u32 next, u32, u32 takers)
    {
        const u32 lane = Warp::lane();
        bool missing = false;
        if (takers >> lane & 1) {
            const u64 index = next + platform::population_count(takers & ((1u << lane) - 1));
            typename Table::Key root{0};
            const u64 parent = platform::load_input(batch.parents + index);
            const OpenPairs<Warp::size> open{pairs + lane};
            missing = !key_of_changed(table, parent, changed_vector(batch, width, index), open, root, fresh);
            *reinterpret_cast<u64*>(search.vector_of(lane)) = root.value;
        }
        Warp::sync();
        return missing;
    }

    WARPSET_FN void finish() const
    {
        if (fresh != 0) platform::add_relaxed(table.nodes.view.stored, fresh);
    }
};

}  // namespace warpset
