// Builders prepare the vectors of a batch for a warp's search: they copy the vectors or convert them to the keys searched for.
//
// The builder here copies vectors unchanged. It serves bucket, compact and indexed tables, which are searched for the vectors
// themselves. A tree table is searched for root pairs, so its builders specialise this one:
// tree/builder.cuh, tree/incremental_builder.cuh and those in tree/strategies/.
#pragma once

#include "warpset/bucket/warp_search.cuh"
#include "warpset/core/batch_view.cuh"
#include "warpset/core/layout.cuh"
#include "warpset/core/outcome.cuh"

namespace warpset {

// How a batch offers its vectors: whole, or each with its parent, a stored vector from which it differs in some words.
enum class Offer { Whole, Incremental };

// Builder for a table, an operation and an offer. This one serves all tables that are not trees.
template <class Table, Operation operation, Offer offer>
struct Builder {
    using Search = WarpSearch<Table, operation>;
    using Warp = platform::Warp;
    static constexpr u32 width = Search::layout.width();
    // Largest unit in which vectors of this width can be copied.
    using Unit = typename Choose<width % 4 == 0, u128, typename Choose<width % 2 == 0, u64, u32>::Type>::Type;

    static constexpr u32 workspace_bytes = 0;
    static constexpr u32 scratch_bytes = 32;
    u8* lane_of_rank;

    WARPSET_FN Builder(const Table&, u8* scratch) : lane_of_rank(scratch) {}

    // Returns how many of the vectors `next .. next + count` can be taken: here, all.
    template <class Batch>
    WARPSET_FN u32 ready(const Batch&, u32, u32 count, u32) const { return count; }

    // Prepares vectors that are not ready: here, all are.
    template <class Batch>
    WARPSET_FN void make_alone(const Batch&, u32) const {}

    // Copies the vectors `next .. next + count` of the batch to the scratch memory of the lanes set in `takers`, in order.
    // Returns whether this lane's vector is resolved already: here, never.
    template <class Batch>
    WARPSET_FN bool take(const Search& search, const Batch& batch, u32 next, u32 count, u32 takers)
    {
        constexpr u32 units = width * 4 / sizeof(Unit);
        const u32 lane = Warp::lane();
        const Unit* source =
            reinterpret_cast<const Unit*>(batch.vectors) + static_cast<u64>(next) * Batch::unit_offset(units, units);
        u32 rank = platform::population_count(takers & ((1u << lane) - 1));
        if constexpr (units == 1) {
            if (takers >> lane & 1)
                *reinterpret_cast<Unit*>(search.vector_of(lane)) = batch.load(source + Batch::unit_offset(rank, 1));
        } else {
            // Unit u of the run belongs to the lane of rank u / units: the warp reads without gaps, several requests at a time.
            constexpr u32 at_once = units < 4 ? units : 4;
            if (takers >> lane & 1) lane_of_rank[rank] = static_cast<u8>(lane);
            Warp::sync();
            WARPSET_UNROLL_BY(1)
            for (u32 first = lane; first < count * units; first += 32 * at_once) {
                Unit unit[at_once];
                WARPSET_UNROLL
                for (u32 i = 0; i < at_once; ++i)
                    if (first + i * 32 < count * units) unit[i] = batch.load(source + Batch::unit_offset(first + i * 32, units));
                WARPSET_UNROLL
                for (u32 i = 0; i < at_once; ++i) {
                    u32 u = first + i * 32;
                    if (u < count * units)
                        reinterpret_cast<Unit*>(search.vector_of(lane_of_rank[u / units]))[u % units] = unit[i];
                }
            }
        }
        Warp::sync();
        return false;
    }

    WARPSET_FN void finish() const {}
};

}  // namespace warpset
