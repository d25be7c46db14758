// The loop over a batch: take vectors, search, write the results.
//
// `SearchBatch` has two bodies. On a machine with several lanes a warp, the lanes share the work (bucket/warp_search.cuh,
// bucket/lane_search.cuh, compact/search.cuh). On a machine with one lane a warp, each thread interleaves several searches
// (bucket/thread_search.cuh, compact/search.cuh). Bucket tables on a CPU have a loop of their own, cpu_kernels/bucket.hpp, which
// also uses the filter.
#pragma once

#include "warpset/bucket/builder.cuh"
#include "warpset/bucket/lane_search.cuh"
#include "warpset/bucket/thread_search.cuh"
#include "warpset/compact/search.cuh"
#include "warpset/core/batch_view.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/core/results.cuh"
#include "warpset/core/vectors.cuh"
#include "warpset/indexed/search.cuh"

namespace warpset {

template <class Table, Operation operation, Offer offer = Offer::Whole>
struct SearchBatch {
    using Warp = platform::Warp;
    using Roots = typename Table::Roots;
    static constexpr Outcome not_stored = operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent;

    // Bytes of scratch memory that one warp needs for its search and its builder.
    WARPSET_FN static constexpr u32 scratch_bytes()
    {
        if constexpr (Warp::size == 1 || HasLaneSearch<Table>::value)
            return 0;
        else
            return Builder<Table, operation, offer>::Search::scratch_bytes + Builder<Table, operation, offer>::scratch_bytes;
    }

    // Searches for a whole batch. The warps of a grid share the batch.
    template <class Batch>
    WARPSET_FN static void run_warps(const Table& table, const Batch& batch)
    {
        run_share(table, batch, batch.count);
        count_offered(batch);
    }

    // Searches for a batch that another GPU has sent. If the number at `refused` is not 0 when the kernel begins, searches for no
    // vector. Either way all vectors of the batch count as offered.
    //
    // A refused batch gets a count of 0 instead of an early return, because a return changes how the compiler schedules the loop:
    // for 16 and 32 words it then waited for the first of two buckets before it requested the second (column `loads` of
    // tests/nvrtc/kernels.csv), and find-or-put lost 7 to 10 %.
    WARPSET_FN static void run_warps_unless(const Table& table, const BatchView& batch, const u64* refused)
    {
        run_share(table, batch, *refused == 0 ? batch.count : 0);
        count_offered(batch);
    }

    // Searches for the vectors `next .. end` by one warp. `scratch`: `scratch_bytes()` bytes of shared memory, aligned to 16
    // bytes.
    template <class Batch>
    WARPSET_FN static void run_warp(const Table& table, const Batch& batch, u32 next, u32 end, u8* scratch)
    {
        if constexpr (HasLaneSearch<Table>::value)
            LaneSearch<Table, operation>{table}.run(batch, next, end);
        else
            run_with_builder(table, batch, next, end, scratch);
    }

    // Searches for a whole batch by one thread. Several searches take turns, one bucket per turn. At the end of its turn a search
    // prefetches its next bucket, which arrives before the search's next turn. (Intel Xeon, one thread, 200 MB table, 8
    // words, ns per find-or-put at fill 0.67 / 0.9: 31 / 40. If the first buckets of 16 vectors are prefetched and then each
    // search runs to its end: 64 / 92. With 8, 16 and 32 searches taking turns: 38, 31 and 33.)
    //
    // Turns of one word are shorter. (AMD EPYC, one thread, 2^22 vectors, fill 0.7, ns new / seen / found / absent: 12.4 / 11.2 /
    // 10.9 / 15.2 with 24 turns, 11.6 / 10.5 / 10.5 / 15.1 with 32, no less with 48. No difference with 2, 4 and 8 words.)
    //
    // Nodes of trees are not prefetched. (As above, searches of models in trees, medians of 3, s of user time without and with a
    // prefetch of the lowest nodes of the vector three ahead: hanoi.2 1.24 / 1.23, anderson.6 27.2 / 26.8, frogs.4 5.7 / 5.2.)
    //
    // The loop keeps a pointer to the turn, not its number, because computing the address takes longer. (As above, 2 words: 16.1
    // / 14.2 / 14.3 / 26.0 by number, 14.1 / 12.7 / 12.5 / 22.3 by pointer.)
    template <class Batch>
    WARPSET_FN static void run_thread(const Table& table, const Batch& batch)
    {
        constexpr u32 max_turns = Roots::static_width == 1 ? 32 : 24;
        struct Turn {
            u64 index;  // position of the vector in the batch
            typename Table::Key key;
            ThreadSearch<Roots, operation> search;
        };
        const Roots& roots = table.root_table();
        Results<operation, Batch> results{roots.stored_count(), batch};
        u64 next = 0;
        // Begins a search for the next vector that its nodes do not already resolve. Returns false if no vector is left.
        const auto begin = [&](Turn& turn) {
            for (; next < batch.count; ++next) {
                if (key(table, batch, next, turn.key)) {
                    turn.index = next++;
                    turn.search.begin(roots, turn.key);
                    return true;
                }
                results.record(next, not_stored, batch.no_slot());
                if (operation == Operation::FindOrPut && batch.counts) platform::add_relaxed(&batch.counts->full_nodes, 1);
            }
            return false;
        };
        typename ThreadSearch<Roots, operation>::Lane lane{};
        Turn turns[max_turns];
        // All turns begin in one place, so that the compiler inlines `begin` once: it is most of a kernel's code.
        u32 unused = max_turns;  // turns that have had no vector yet
        for (Turn *turn = turns, *end = turns + max_turns; end != turns; turn = turn + 1 < end ? turn + 1 : turns) {
            const bool is_unused = unused != 0;
            if (is_unused) {
                --unused;
            } else {
                const Found found = turn->search.step(roots, turn->key, lane);
                if (found.outcome == Outcome::Pending) continue;
                const bool stored = found.outcome == Outcome::New || found.outcome == Outcome::Seen;
                results.record(turn->index, found.outcome, stored ? batch.reference_to(found.reference) : batch.no_slot());
            }
            if (begin(*turn)) continue;
            if (is_unused) {
                unused = 0;
                end = turn;
            } else {
                *turn = *--end;
            }
        }
        lane.finish(roots);
        results.finish();
        count_offered(batch);
    }

private:
    // As `run_warp`, for vectors that a builder prepares in scratch memory.
    template <class Batch>
    WARPSET_FN static void run_with_builder(const Table& table, const Batch& batch, u32 next, u32 end, u8* scratch)
    {
        using Search = typename Builder<Table, operation, offer>::Search;
        // Idle lanes are refilled when half of the warp is idle (bucket/warp_search.cuh). Trees refill later, because making root
        // pairs takes as many instructions for a few vectors as for many. H200, walks of 16 words, refilling when 16, 24, 32 are
        // idle: whole 8.2, 8.6, 8.5 G/s, incremental 10.8, 10.7, 10.3.
        constexpr u32 refill_at = Table::has_nodes ? 24 : Warp::size / 2;
        Search search(table.root_table(), scratch);
        Builder<Table, operation, offer> builder(table, scratch + Search::scratch_bytes);
        Results<operation, Batch> results{table.root_table().stored_count(), batch};
        u32 index = 0;
        while (true) {
            u32 idle = Warp::ballot(search.is_idle());
            u32 count = platform::population_count(idle);
            count = count < refill_at ? 0 : builder.ready(batch, next, end - next < count ? end - next : count, end);
            bool resolved = false;  // by the builder, as not stored
            if (count > 0) {
                u32 rank = platform::population_count(idle & ((1u << Warp::lane()) - 1));
                bool takes = search.is_idle() && rank < count;
                resolved = builder.take(search, batch, next, count, Warp::ballot(takes));
                if (takes) index = next + rank;
                if (takes && !resolved) search.begin();
                next += count;
            } else if (idle == ~0u) {
                if (next == end) break;
                builder.make_alone(batch, end);
            }
            Outcome outcome = search.step();
            if (resolved) outcome = not_stored;
            bool stored = outcome == Outcome::New || outcome == Outcome::Seen;
            results.record(index, outcome, stored ? batch.reference_to(search.reference()) : batch.no_slot());
            if (resolved && operation == Operation::FindOrPut && batch.counts)
                platform::add_relaxed(&batch.counts->full_nodes, 1);
            Warp::sync();  // a vector is read by its tile until here, and may be overwritten by its owner from here
        }
        builder.finish();
        search.finish();
        results.finish();
    }

    // Searches for this warp's share of the first `count` vectors of a batch.
    template <class Batch>
    WARPSET_FN static void run_share(const Table& table, const Batch& batch, u64 count)
    {
        const u64 warp = platform::Grid::warp();
        run_warp(table, batch, share(count, warp), share(count, warp + 1), Warp::scratch(scratch_bytes()));
    }

    WARPSET_FN static void count_offered(const BatchView& batch)
    {
        if (batch.counts && platform::Grid::thread() == 0) platform::add_relaxed(&batch.counts->offered, batch.count);
    }

    // Writes the key to search for in the root table. Returns false if the vector is resolved without a search.
    WARPSET_FN static bool key(const Table& table, const BatchView& batch, u64 index, typename Table::Key& key)
    {
        const u32 width = table.width();
        if constexpr (offer == Offer::Whole)
            return table.template key<operation>(WordVector{batch.vectors + index * width}, key);
        else
            return table.incremental_key(parent_slot(batch, index), ChangedVectorOf<BatchView>{batch, width, index}, key);
    }

    // Start of warp `warp`'s share of the batch. The shares are contiguous, and their sizes differ by at most one.
    WARPSET_FN static u32 share(u64 count, u64 warp)
    {
        u64 warps = platform::Grid::warps();
        return static_cast<u32>(count / warps * warp + (warp < count % warps ? warp : count % warps));
    }
};

// Scratch memory that a warp needs in any search of a table.
template <class Table>
WARPSET_FN constexpr u32 search_scratch_bytes()
{
    constexpr u32 vectors = SearchBatch<Table, Operation::FindOrPut>::scratch_bytes();
    if constexpr (Table::is_incremental) {
        constexpr u32 incremental = SearchBatch<Table, Operation::FindOrPut, Offer::Incremental>::scratch_bytes();
        return vectors > incremental ? vectors : incremental;
    }
    return vectors;
}

// Bytes of the batch's workspace that a warp uses in a search for whole vectors.
template <class Table>
WARPSET_FN constexpr u32 search_workspace_bytes()
{
    return Builder<Table, Operation::FindOrPut, Offer::Whole>::workspace_bytes;
}

}  // namespace warpset
