// Base of the builders of all build strategies: passes finished root pairs to the lanes that search for them.
#pragma once

#include "warpset/bucket/builder.cuh"
#include "warpset/bucket/warp_search.cuh"
#include "warpset/core/batch_view.cuh"
#include "warpset/tree/table.cuh"

namespace warpset {

template <class Table, Operation operation>
struct RootBuilder {
    using Search = WarpSearch<typename Table::Roots, operation>;
    using Warp = platform::Warp;
    static constexpr u32 roots_bytes = Warp::size * 8;

    const Table& table;
    u64* roots;     // root pair of each vector taken, in order; left half `missing` if the vector has none
    u32 fresh = 0;  // nodes that this lane has put

    WARPSET_FN RootBuilder(const Table& table, u8* scratch) : table(table), roots(reinterpret_cast<u64*>(scratch)) {}

    // Returns how many of the vectors can be taken: here, all.
    WARPSET_FN u32 ready(const BatchView&, u32, u32 count, u32) const { return count; }
    WARPSET_FN void make_alone(const BatchView&, u32) const {}

    // Called when all root pairs are made. Writes them, in order, to the scratch memory of the lanes set in `takers`. Returns
    // true on a lane whose vector has no root pair because no node was free.
    WARPSET_FN bool hand_over(const Search& search, u32 takers) const
    {
        const u32 lane = Warp::lane();
        bool missing = false;
        Warp::sync();
        if (takers >> lane & 1) {
            const u64 root = roots[platform::population_count(takers & ((1u << lane) - 1))];
            // The left half of a root pair is a reference: these vectors have three words or more.
            missing = Table::half(root, 0) == NodeTable::missing;
            *reinterpret_cast<u64*>(search.vector_of(lane)) = root;
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
