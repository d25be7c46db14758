// Find and find-or-put by a whole warp in a bucket table whose slots are one chunk each: 32 vectors at a time, one a lane, in
// registers.
//
// Such a search has few steps, so its cost beside memory accesses matters. Each lane hashes its vector, sees all slots of a
// sector of its bucket, and claims one. There are no votes and no scratch memory, in contrast to bucket/warp_search.cuh:
//   - *Look.* Two lanes together read the sector of one of them and then that of the other, 16 bytes each, so a sector is one
//     request. Both requests are under way together. Then the two lanes exchange halves.
//   - *Decide.* Each lane visits the slots that it has seen in order, and claims the first EMPTY one. If another vector has got
//     it meanwhile, the lane goes on at the next slot that it has seen. No slot is read again: one that was decided stays so, and
//     one that was EMPTY is claimed, which shows its content. The lane claims no slot before its claim of the slot before has
//     been answered (invariant 5 of core/claim.cuh).
//   - *Next.* If all slots are left, the lane goes on in the next sector of the bucket, or in the next bucket.
//
// A vector that equals the EMPTY pattern of a slot (bucket/table.cuh) needs no set of classes: while such a slot is undecided,
// the lane sees it as EMPTY and as equal, and later as neither. Either way the lane leaves it.
//
// All 32 lanes call each function, converged, unless it says otherwise.
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/core/claim.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/core/probe.cuh"
#include "warpset/core/results.cuh"

namespace warpset {

// A vector of one chunk, in registers.
template <class Chunk>
struct ChunkVector {
    static constexpr bool is_padded = false;
    Chunk value;

    WARPSET_FN u64 pair(u32 index) const { return pair_of(value, index); }
    WARPSET_FN void read(u32, Chunk& chunk) const { chunk = value; }
    WARPSET_FN u32 word(u32 index) const { return static_cast<u32>(pair_of(value, index) >> index % 2 * 32); }

private:
    WARPSET_FN static u64 pair_of(u32 value, u32) { return value; }
    WARPSET_FN static u64 pair_of(u64 value, u32) { return value; }
    WARPSET_FN static u64 pair_of(u128 value, u32 index) { return index < 2 ? value.low : value.high; }
};

// Whether `LaneSearch` serves a table: its vectors fill the one chunk of a slot. Where at most 8 bytes are claimed, buckets of
// one and two words have 64 bytes, which `WarpSearch` reads by one request.
template <class Table>
struct IsOneChunk {
    static constexpr bool value = false;
};
template <u32 width, u32 chunk_bytes, u32 line_bytes, u32 slot_words>
struct IsOneChunk<BucketTable<StaticShape<width, chunk_bytes, line_bytes, slot_words>>> {
    using Table = BucketTable<StaticShape<width, chunk_bytes, line_bytes, slot_words>>;
    static constexpr typename Table::Layout layout{};
    static constexpr bool value = chunk_bytes == 16 && layout.chunks() == 1 && sizeof(typename Table::Main) == width * 4 &&
                                  layout.bucket_main_bytes() % 32 == 0;
};

template <class Table, Operation operation>
struct LaneSearch {
    using Warp = platform::Warp;
    using Main = typename Table::Main;
    static constexpr typename Table::Layout layout{};
    static constexpr u32 half_slots = 16 / sizeof(Main);
    static constexpr u32 sector_slots = 2 * half_slots;
    static constexpr u32 sectors = layout.slots_per_bucket() / sector_slots;
    static constexpr Outcome not_stored = operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent;

    const Table& table;

    static constexpr u32 refill_at = Warp::size / 2;

    // Searches for the vectors `next .. end` of a batch by one warp. Idle lanes are refilled when `refill_at` lanes are idle.
    template <class Batch>
    WARPSET_FN void run(const Batch& batch, u32 next, u32 end) const
    {
        Results<operation, Batch> results{table.stored_count(), batch};
        Main vector{};
        Place place{};
        u32 index = 0;
        bool searches = false;
        while (true) {
            u32 looking = Warp::ballot(searches);
            const u32 count = Warp::size - platform::population_count(looking);
            if (count >= refill_at && next < end) {
                const u32 rank = platform::population_count(~looking & ((1u << Warp::lane()) - 1));
                if (!searches && rank < end - next) {
                    index = next + rank;
                    vector = batch.load(reinterpret_cast<const Main*>(batch.vectors) + Batch::unit_offset(index, 1));
                    place = {Probe::of_first_bucket(table.hash(ChunkVector<Main>{vector}), table.view), 0};
                    searches = true;
                }
                next = end - next < count ? end : next + count;
                looking = Warp::ballot(searches);
            } else if (looking == 0) {
                break;
            }
            const Seen seen = look(looking, place, vector);
            Outcome outcome = Outcome::Pending;
            u64 reference = batch.no_slot();
            if (searches) {
                u32 slot = 0;
                outcome = decide(place, seen, vector, slot);
                if (outcome == Outcome::New || outcome == Outcome::Seen)
                    reference = batch.reference_to(table.slot_number(place.probe.bucket, slot));
                if (outcome == Outcome::Pending && !advance(place)) outcome = not_stored;
                searches = outcome == Outcome::Pending;
            }
            results.record(index, outcome, reference);
        }
        results.finish();
    }

private:
    using Half = platform::Row<Main, half_slots>;

    // A sector of the probe sequence.
    struct Place {
        Probe probe;  // without a step in the first bucket, which most searches end in
        u32 sector;
    };

    // Slots of a sector, a bit each.
    struct Seen {
        u32 equal = 0, empty = 0;
    };

    // Reads the sectors of the lanes set in `looking`. For other lanes the result says nothing.
    WARPSET_FN Seen look(u32 looking, const Place& place, Main vector) const
    {
        const u32 lane = Warp::lane(), side = lane & 1, other = lane ^ 1;
        const u64 bucket = place.probe.bucket, offset = layout.main_offset(bucket) + place.sector * 32;
        const u64 others_offset = Warp::shuffle(offset, other);
        // Halves of the sectors of the even lane and of the odd lane.
        Half half[2] = {};
        const u8* const from = table.view.slots + side * 16;
        if (looking >> (lane - side) & 1) platform::load_row_relaxed(from + (side == 0 ? offset : others_offset), half[0]);
        if (looking >> (lane | 1) & 1) platform::load_row_relaxed(from + (side == 0 ? others_offset : offset), half[1]);
        // Keeps the compiler from using the first half before it requests the second one.
        Warp::converge();
        Seen seen;
        const u32 bucket_class = Table::class_of_bucket(bucket) + place.sector * sector_slots;
        WARPSET_UNROLL
        for (u32 i = 0; i < half_slots; ++i) {
            compare(seen, bucket_class, side * half_slots + i, side == 0 ? half[0].chunk[i] : half[1].chunk[i], vector);
            const Main others = exchanged(side == 0 ? half[1].chunk[i] : half[0].chunk[i], other);
            compare(seen, bucket_class, (side ^ 1) * half_slots + i, others, vector);
        }
        return seen;
    }

    WARPSET_FN void compare(Seen& seen, u32 bucket_class, u32 slot, Main chunk, Main vector) const
    {
        Main empty;
        table.empty_chunk(table.class_in(bucket_class, slot), empty);
        seen.equal |= (chunk == vector ? 1u : 0u) << slot;
        seen.empty |= (chunk == empty ? 1u : 0u) << slot;
    }

    WARPSET_FN static u32 exchanged(u32 value, u32 other) { return Warp::shuffle(value, other); }
    WARPSET_FN static u64 exchanged(u64 value, u32 other) { return Warp::shuffle(value, other); }
    WARPSET_FN static u128 exchanged(u128 value, u32 other)
    {
        return {Warp::shuffle(value.low, other), Warp::shuffle(value.high, other)};
    }

    // Visits the slots of a sector in order, and leaves each only over a chunk decided for another vector, or over one whose
    // EMPTY pattern equals the vector. For one lane. `slot` is set to the slot in the bucket that holds the vector.
    WARPSET_FN Outcome decide(const Place& place, Seen seen, Main vector, u32& slot) const
    {
        for (u32 left = seen.equal ^ seen.empty; left != 0; left &= left - 1) {
            const u32 at = platform::lowest_bit(left);
            slot = place.sector * sector_slots + at;
            if (seen.equal >> at & 1) return Outcome::Seen;
            if (operation == Operation::Find) return Outcome::Absent;
            const Decision decision = table.with_main(
                place.probe.bucket, slot, 0, ChunkVector<Main>{vector},
                [](Main* address, Main empty, Main value) { return warpset::decide(address, empty, value, true); });
            if (decision == Decision::Won) return Outcome::New;
            if (decision == Decision::Agreed) return Outcome::Seen;
        }
        return Outcome::Pending;
    }

    // Goes to the next sector. Returns false if the search has looked at `probe_limit` buckets.
    WARPSET_FN bool advance(Place& place) const
    {
        if (sectors > 1 && ++place.sector < sectors) return true;
        place.sector = 0;
        if (place.probe.probes == 0) place.probe.make_step(table.view);
        return place.probe.advance(table.view);
    }
};

}  // namespace warpset
