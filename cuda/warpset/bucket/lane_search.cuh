// Find and find-or-put by a whole warp in a bucket table of one-word vectors: 32 vectors at a time, one a lane, in registers.
//
// Each lane hashes its vector, sees all slots of its bucket, and claims one. In contrast to bucket/warp_search.cuh, there are no
// votes and no scratch memory:
//   - *Look.* Two lanes together read the bucket of one of them and then that of the other, 16 bytes each, so a bucket is one
//     request. Both requests are under way together. Then the two lanes exchange halves.
//   - *Decide.* Each lane visits the slots that it has seen in order, and claims the first EMPTY one. If another vector has got
//     it meanwhile, the lane goes on at the next slot that it has seen. No slot is read again: one that was decided stays so, and
//     one that was EMPTY is claimed, which shows its content. The lane claims no slot before its claim of the slot before has
//     been answered (invariant 5 of core/claim.cuh).
//   - *Refill.* Lanes whose vectors are resolved take the next ones when half of the warp is idle, as in bucket/warp_search.cuh.
//
// A vector that equals the EMPTY pattern of a slot (bucket/table.cuh) needs no set of classes: while such a slot is undecided,
// the lane sees it as EMPTY and as equal, and later as neither. Either way the lane leaves it.
//
// For one word this is faster in every cell of the table below, with 39 registers instead of 47 and half of the instructions. For
// two words new vectors gain 2 % and seen ones lose 1 %; for four words (a half of a bucket at a time) all lose. So registers
// and warps are not what limits these searches: with 32 registers and 64 warps the same search is 5 to 10 % slower than with 39
// and 48. Rates on an H200, 2^27 vectors, duplication 2, G/s at fill 0.25 / 0.7 / 0.9:
//
//   | words | search, warps a multiprocessor | new                | seen               | found              |
//   |-------|--------------------------------|--------------------|--------------------|--------------------|
//   | 1     | bucket/warp_search.cuh, 36     | 21.9 / 22.6 / 21.2 | 34.5 / 34.9 / 31.9 | 34.5 / 34.8 / 31.8 |
//   | 1     | this, 48                       | 22.6 / 23.6 / 22.6 | 34.7 / 35.2 / 32.5 | 34.7 / 35.5 / 32.9 |
//   | 1     | this, 64                       | 20.2 / 22.1 / 21.5 | 31.4 / 32.4 / 29.9 | 33.5 / 34.3 / 31.5 |
//   | 1     | without refilling, 48          | 22.3 / 23.2 / 19.2 | 35.1 / 34.3 / 25.5 | 35.1 / 35.4 / 27.6 |
//   | 2     | bucket/warp_search.cuh, 36     | 20.9 / 20.6 / 18.6 | 33.4 / 31.3 / 26.7 | 33.4 / 31.2 / 26.9 |
//   | 2     | this, 48                       | 21.3 / 20.9 / 18.9 | 33.1 / 30.9 / 26.5 | 33.0 / 31.0 / 26.6 |
//   | 2     | this, 64                       | 19.9 / 19.5 / 17.9 | 31.9 / 29.6 / 25.4 | 31.9 / 29.7 / 25.5 |
//   | 2     | without refilling, 48          | 20.9 / 20.6 / 16.1 | 33.9 / 30.2 / 21.6 | 33.9 / 30.9 / 22.9 |
//   | 4     | bucket/warp_search.cuh, 36     | 19.9 / 18.6 / 16.3 | 31.3 / 28.8 / 24.4 | 31.4 / 28.9 / 24.4 |
//   | 4     | this, 48                       | 19.8 / 17.8 / 15.6 | 30.7 / 26.0 / 21.3 | 30.6 / 25.3 / 21.3 |
//
// Without refilling, requesting the next vector before the claim of this one made new vectors 0 to 3 % slower. One lane a bucket,
// 16 bytes at a time and without exchange (28 registers), made them 3 to 13 % slower.
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/core/claim.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/core/probe.cuh"
#include "warpset/core/results.cuh"

namespace warpset {

// Whether `LaneSearch` serves a table: one-word vectors in buckets of 32 bytes. (If at most 8 bytes are claimed, they have 64.)
template <class Table>
struct HasLaneSearch {
    static constexpr bool value = false;
};
template <u32 chunk_bytes>
struct HasLaneSearch<BucketTable<StaticShape<1, chunk_bytes, 32, 1>>> {
    static constexpr bool value = true;
};

template <class Table, Operation operation>
struct LaneSearch {
    using Warp = platform::Warp;
    static constexpr u32 half_slots = 4;
    // As in bucket/warp_search.cuh. (With 24 idle lanes, new vectors at fill 0.9 were 1 % slower, with 28 idle ones 6 %.)
    static constexpr u32 refill_at = Warp::size / 2;
    static constexpr Outcome not_stored = operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent;

    const Table& table;

    // Searches for the vectors `next .. end` of a batch. All 32 lanes of a warp call this, converged.
    template <class Batch>
    WARPSET_FN void run(const Batch& batch, u32 next, u32 end) const
    {
        Results<operation, Batch> results{table.stored_count(), batch};
        u32 vector = 0, index = 0;
        Probe probe{};
        bool searches = false;
        while (true) {
            u32 looking = Warp::ballot(searches);
            const u32 idle = Warp::size - platform::population_count(looking);
            if (idle >= refill_at && next < end) {
                const u32 rank = platform::population_count(~looking & ((1u << Warp::lane()) - 1));
                if (!searches && rank < end - next) {
                    index = next + rank;
                    vector = batch.load(batch.vectors + Batch::unit_offset(index, 1));
                    // Without a step in the first bucket, which nearly all searches end in.
                    probe = Probe::of_first_bucket(table.hash(WordVector{&vector}), table.view);
                    searches = true;
                }
                next = end - next < idle ? end : next + idle;
                looking = Warp::ballot(searches);
            } else if (looking == 0) {
                break;
            }
            const Seen seen = look(looking, probe.bucket, vector);
            Outcome outcome = Outcome::Pending;
            u64 reference = batch.no_slot();
            if (searches) {
                u32 slot = 0;
                outcome = decide(probe.bucket, seen, vector, slot);
                if (outcome == Outcome::New || outcome == Outcome::Seen)
                    reference = batch.reference_to(table.slot_number(probe.bucket, slot));
                if (outcome == Outcome::Pending && !advance(probe)) outcome = not_stored;
                searches = outcome == Outcome::Pending;
            }
            results.record(index, outcome, reference);
        }
        results.finish();
    }

private:
    // Slots of a bucket, a bit each.
    struct Seen {
        u32 equal = 0, empty = 0;
    };

    // Reads the buckets of the lanes set in `looking`; for other lanes the result means nothing. All 32 lanes call this,
    // converged.
    WARPSET_FN Seen look(u32 looking, u64 bucket, u32 vector) const
    {
        const u32 lane = Warp::lane(), side = lane & 1, other = lane ^ 1;
        const u64 others_bucket = Warp::shuffle(bucket, other);
        // This lane's halves of the buckets of the even lane and of the odd lane.
        platform::Row<u32, half_slots> half[2] = {};
        const u8* const from = table.view.slots + side * 16;
        const u64 even = side == 0 ? bucket : others_bucket, odd = side == 0 ? others_bucket : bucket;
        if (looking >> (lane - side) & 1) platform::load_row_relaxed(from + table.layout.main_offset(even), half[0]);
        if (looking >> (lane | 1) & 1) platform::load_row_relaxed(from + table.layout.main_offset(odd), half[1]);
        // Keeps the compiler from using the first half before it requests the second one.
        Warp::converge();
        Seen seen;
        const u32 bucket_class = Table::class_of_bucket(bucket);
        WARPSET_UNROLL
        for (u32 i = 0; i < half_slots; ++i) {
            compare(seen, bucket_class, side * half_slots + i, side == 0 ? half[0].chunk[i] : half[1].chunk[i], vector);
            const u32 others = Warp::shuffle(side == 0 ? half[1].chunk[i] : half[0].chunk[i], other);
            compare(seen, bucket_class, (side ^ 1) * half_slots + i, others, vector);
        }
        return seen;
    }

    WARPSET_FN void compare(Seen& seen, u32 bucket_class, u32 slot, u32 chunk, u32 vector) const
    {
        u32 empty;
        table.empty_chunk(table.class_in(bucket_class, slot), empty);
        seen.equal |= (chunk == vector ? 1u : 0u) << slot;
        seen.empty |= (chunk == empty ? 1u : 0u) << slot;
    }

    // Visits the slots of a bucket in order, and leaves each only over a chunk decided for another vector, or over one whose
    // EMPTY pattern equals the vector. For one lane. `slot` is set to the slot that holds the vector.
    WARPSET_FN Outcome decide(u64 bucket, Seen seen, u32 vector, u32& slot) const
    {
        for (u32 left = seen.equal ^ seen.empty; left != 0; left &= left - 1) {
            slot = platform::lowest_bit(left);
            if (seen.equal >> slot & 1) return Outcome::Seen;
            if (operation == Operation::Find) return Outcome::Absent;
            const Decision decision = table.decide_chunk(bucket, slot, 0, WordVector{&vector}, true);
            if (decision == Decision::Won) return Outcome::New;
            if (decision == Decision::Agreed) return Outcome::Seen;
        }
        return Outcome::Pending;
    }

    // Goes to the next bucket. Returns false if the search has looked at `probe_limit` buckets.
    WARPSET_FN bool advance(Probe& probe) const
    {
        if (probe.probes == 0) probe.make_step(table.view);
        return probe.advance(table.view);
    }
};

}  // namespace warpset
