// How a warp writes outcomes, references and counts of its vectors.
#pragma once

#include "warpset/core/batch_view.cuh"
#include "warpset/core/outcome.cuh"

namespace warpset {

// Writes the results of a warp: those of a vector as soon as it is resolved, the counts at the end.
template <Operation operation, class Batch = BatchView>
struct Results {
    u64* stored;
    const Batch& batch;
    u32 hits = 0;  // sum over the warp

    // All lanes of a warp call this, converged. Lanes with Outcome::Pending have nothing to record.
    WARPSET_FN void record(u64 index, Outcome outcome, u64 reference)
    {
        if (outcome != Outcome::Pending) {
            if (batch.outcomes) batch.outcomes[index] = static_cast<u8>(outcome);
            if (batch.references) batch.references[index] = reference;
        }
        if (operation == Operation::FindOrPut && outcome == Outcome::New) batch.on_new_vector(index, reference);
        if (operation == Operation::FindOrPut && (outcome == Outcome::New || outcome == Outcome::Seen))
            batch.combine(index, reference);
        u32 hit = platform::Warp::ballot(outcome == (operation == Operation::FindOrPut ? Outcome::New : Outcome::Seen));
        hits += platform::population_count(hit);
        // Full is rare, so each is added to memory at once: a running sum would cost every search a register.
        if (operation == Operation::FindOrPut && outcome == Outcome::Full && batch.counts)
            platform::add_relaxed(&batch.counts->full, 1);
        if (operation == Operation::FindOrPut && batch.lists_new() && hit != 0) give_reference(hit, reference);
    }

    WARPSET_FN void finish() const
    {
        if (platform::Warp::lane() != 0) return;
        if (operation == Operation::FindOrPut && hits != 0) platform::add_relaxed(stored, hits);
        if (batch.counts && hits != 0) platform::add_relaxed(&batch.counts->hits, hits);
    }

private:
    WARPSET_FN void give_reference(u32 fresh, u64 reference) const
    {
        const u32 lane = platform::Warp::lane(), leader = platform::lowest_bit(fresh);
        // Relaxed: only the uniqueness of the indices matters.
        u64 start = 0;
        if (lane == leader)
            start = platform::fetch_add_relaxed(&batch.counts->new_references, platform::population_count(fresh));
        start = platform::Warp::shuffle(start, leader);
        const u64 at = start + platform::population_count(fresh & ((1u << lane) - 1));
        if (fresh >> lane & 1) batch.list_new(at, reference);
    }
};

}  // namespace warpset
