// Find and find-or-put by a whole warp, which searches for 32 vectors at a time, one per lane.
//
// Division of work:
//   - Each lane *owns* one vector, which lies in the warp's scratch memory (shared memory), and its position in its probe
//     sequence.
//   - *Look*: a tile of lanes reads a bucket, 16 bytes a lane, by one memory request. The tile reads the buckets of several
//     owners in turn, several in flight, and compares each with the owner's vector. Votes tell the owner which chunks are empty
//     and which are different.
//   - *Claim*: the owner alone claims a chunk, one compare-and-swap per step (core/claim.cuh), while other lanes of the warp look
//     or claim for their own vectors. So the long chains of wide vectors overlap with each other.
//   - An owner whose vector is resolved takes the next one (batch/search.cuh), so that the lanes of a warp do not wait for the
//     longest probe sequence among 32.
//
// Why: find-or-put on an H200, 2^27 vectors, duplication 2, G/s at fill 0.25 / 0.7, one-page prototypes of each:
//
//   | words | thread a vector | tile a vector | tile a vector, refilled | this division of work |
//   |-------|-----------------|---------------|-------------------------|-----------------------|
//   | 2     | 18.2 / 18.1     |               |                         | 21.9 / 21.7           |
//   | 8     | 11.9 / 9.8      | 8.2 / 6.9     | 8.6 / 7.1               | 18.9 / 17.0           |
//   | 16    | 7.9 / 7.7       | 5.1 / 4.5     | 4.7 / 4.1               | 11.9 / 10.0           |
//   | 32    |                 | 2.6 / 2.4     | 2.4 / 2.2               | 5.9 / 5.0             |
//
// With one thread per vector, each sector takes two requests, which doubles the cost. With one tile per vector, too few vectors
// are in flight to hide the chain of dependent compare-and-swaps. Refilling lanes when half of them are free, instead of all,
// gained 22 % at fill 0.7 and 41 % at 0.9 for 8 words; a quarter is 1 % slower than half (more, smaller requests for input).
//
// Tried and dropped: hash seeds in shared memory (8 words +6 %, 32 words -3 %, and a block-wide barrier in every kernel that uses
// this); reading only the start of a 128-byte slot first (no gain: one 128-byte request costs little more than one of 32).
//
// All 32 lanes call each function, converged. The caller adds the number of its New vectors to `*view.stored`.
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/core/claim.cuh"
#include "warpset/core/layout.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/core/probe.cuh"
#include "warpset/core/vectors.cuh"

namespace warpset {

// `with_nodes`: the warp also makes root pairs, which takes registers. Only compact/search.cuh depends on it.
template <class Table, Operation operation, bool with_nodes = false>
struct WarpSearch {
    using Warp = platform::Warp;
    using Main = typename Table::Main;
    static constexpr typename Table::Layout layout{};

    // A tile reads a bucket by `rows` requests of `row_bytes` per lane.
    static constexpr u32 row_bytes = layout.bucket_main_bytes() % 16 == 0 ? 16 : layout.bucket_main_bytes() % 8 == 0 ? 8 : 4;
    static constexpr u32 row_chunks = row_bytes / sizeof(Main);
    static constexpr u32 bucket_rows = layout.bucket_main_bytes() / row_bytes;
    static constexpr u32 tile = bucket_rows < 32 ? power_of_two_at_least(bucket_rows) : 32;
    static constexpr u32 rows = (bucket_rows + tile - 1) / tile;
    static constexpr u32 bucket_chunks = layout.slots_per_bucket() * layout.main_chunks();
    // Buckets of one tile in flight. Each costs registers, and so warps. H200, fill 0.25, with 1, 2 and 4 in flight: 4 words
    // 18.7, 20.4 and 19.2 G/s; 8 words 14.7, 16.2 and 14.4; 16 words 10.3, 11.3 and 10.5; 32 words 5.6, 6.0 and 4.3; 64 words
    // with 2 (36 warps) and 4 (24 warps) 2.1 and 2.6.
    static constexpr u32 in_flight = tile < 2 ? 1 : tile <= 8 ? 2 : 4 / rows;

    static constexpr bool is_one_slot = layout.slots_per_bucket() == 1;
    static constexpr u32 tiles = Warp::size / tile;

    // Whether the tiles share out the looking lanes of the warp, instead of each taking the lanes of its own part. While many
    // lanes claim, a tile then has no turn without a bucket to read. H200, 2^25 vectors, duplication 2, fill 0.25, 0.7 and
    // 0.9, G/s:
    //
    //   | words | new: without   | with            | seen: without      | with               |
    //   |-------|----------------|-----------------|--------------------|--------------------|
    //   | 16    | 11.1, 8.8, 7.2 | 11.2, 9.2, 7.6  | 21.6, 16.0, 11.7   | 21.1, 15.5, 11.3   |
    //   | 24    | 6.5, 5.0, 4.1  | 7.3, 6.0, 5.0   | 13.5, 10.1, 7.3    | 13.0, 9.8, 7.4     |
    //   | 32    | 5.8, 4.5, 3.7  | 6.5, 5.5, 4.6   | 13.1, 9.6, 7.0     | 12.8, 9.5, 7.2     |
    //   | 48    | 1.7, 1.5, 1.3  | 2.7, 2.3, 2.1   | 3.3, 2.7, 2.3      | 6.0, 4.7, 3.7      |
    //   | 64    | 2.6, 2.0, 1.7  | 2.9, 2.5, 2.3   | 6.0, 4.9, 3.8      | 5.9, 4.9, 4.0      |
    //
    // Tried and dropped at 32 words: lists for any number of looking lanes (seen 12.6, 9.4, 7.1), lists for at most 16 of them
    // (new 6.3, 5.3, 4.5), a list that each turn reads from scratch memory (seen 12.4, 9.2, 7.0), and a loop of its own for
    // each case, which spills registers (new 6.0, 5.0, 4.2).
    static constexpr bool shares_looks = operation == Operation::FindOrPut && tile > 4;

    static constexpr u32 stride = scratch_stride(layout.slot_words());
    static constexpr u32 scratch_bytes = Warp::size * stride + (shares_looks ? Warp::size : 0);

    const Table& table;
    u8* vectors;  // the warp's scratch memory

    // State of the search for this lane's vector:
    static constexpr u32 idle = ~0u, look = ~0u - 1;
    u32 chunk = idle;  // next step of the search: none (idle), a look, or the claim of this chunk
    typename Table::Classes forbidden;
    bool expect_empty = false;
    u32 index = 0;  // the first slot of the bucket that the search has not left; if it has left all, their number
    Probe probe{};

    // Nothing else writes after the words of vectors, so the padding is written only once.
    WARPSET_FN WarpSearch(const Table& table, u8* vectors) : table(table), vectors(vectors)
    {
        WARPSET_UNROLL
        for (u32 word = layout.width(); word < layout.slot_words(); ++word) vector_of(Warp::lane())[word] = 0;
    }

    WARPSET_FN u32* vector_of(u32 lane) const { return reinterpret_cast<u32*>(vectors + lane * stride); }
    WARPSET_FN AlignedVector mine() const { return {vector_of(Warp::lane())}; }
    WARPSET_FN bool is_idle() const { return chunk == idle; }
    WARPSET_FN u64 reference() const { return table.slot_number(probe.bucket, index); }

    // Begins the search for this lane's vector. The caller has written it to `vector_of(lane)` and synchronized the warp.
    WARPSET_FN void begin()
    {
        probe = Probe::start(table.hash(mine()), table.view);
        forbidden = table.forbidden_classes(mine());
        index = 0;
        chunk = look;
    }

    // Does one look or one claim for every lane that is not idle. If that resolves a lane's vector, the lane becomes idle and
    // gets the outcome (and `reference()`); all others get Outcome::Pending.
    WARPSET_FN Outcome step()
    {
        const bool looks = chunk == look, claims = chunk < look;
        u32 looking = Warp::ballot(looks);
        // The claims are under way while the buckets are read: `seen` must not be used before that.
        Main seen = claims ? request_claim() : Main{};
        Outcome outcome = Outcome::Pending;
        if (looking != 0) {
            Report report = look_at_buckets(looking);
            if (looks) outcome = judge(report);
        }
        if (claims) outcome = finish_claim(seen);
        if (!is_one_slot && index == layout.slots_per_bucket()) outcome = next_bucket();
        if (outcome != Outcome::Pending) chunk = idle;
        return outcome;
    }

    // Called when no vectors are left. Nothing to hand over here.
    WARPSET_FN void finish() const {}

private:
    // Findings of the tile in one owner's bucket. With one slot a bucket: whether some main chunk is different, and the first
    // empty one. With several: a bit for every main chunk of the bucket.
    struct Report {
        u32 different = 0;
        u32 empty = layout.slots_per_bucket() == 1 ? ~0u : 0;
    };

    WARPSET_FN Report look_at_buckets(u32 looking) const
    {
        const u32 in_tile = Warp::lane() % tile, tile_start = Warp::lane() - in_tile;
        const u32 my_class = Table::class_of_bucket(probe.bucket);
        // If the tiles share out the lanes, tile t % tiles reads in turn t: the bucket of the lane that lane t has in
        // `owner_of_turn`. This lane's bucket is read in turn `my_turn`. If the looking lanes take fewer passes of the loop than
        // all lanes do, the turns are theirs alone.
        //
        // Otherwise each tile has a turn for each of its own lanes.
        constexpr u32 pass = shares_looks ? tiles * in_flight : in_flight;
        u32 turns = shares_looks ? Warp::size : tile, my_turn = Warp::lane(), owner_of_turn = Warp::lane();
        if constexpr (shares_looks) {
            const u32 count = platform::population_count(looking);
            if (count + pass <= Warp::size) {
                turns = count;
                my_turn = platform::population_count(looking & ((1u << Warp::lane()) - 1));
                u8* const owners = vectors + Warp::size * stride;
                if (looking >> Warp::lane() & 1) owners[my_turn] = static_cast<u8>(Warp::lane());
                Warp::sync();
                if (Warp::lane() < turns) owner_of_turn = owners[Warp::lane()];
            }
        }
        Report report;
        WARPSET_UNROLL_BY(1)
        for (u32 first = 0; first < turns; first += pass) {
            platform::Row<Main, row_chunks> row[in_flight][rows];
            // Kept for shared turns, made again for others: each way takes the fewest registers.
            u32 shared_owner[in_flight];
            bool shared_is_read[in_flight];
            const auto owner_of = [&](u32 i) { return shares_looks ? shared_owner[i] : tile_start + first + i; };
            const auto is_read = [&](u32 i) { return shares_looks ? shared_is_read[i] : (looking >> owner_of(i) & 1) != 0; };
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i) {
                if constexpr (shares_looks) {
                    const u32 turn = first + i * tiles + tile_start / tile;
                    shared_owner[i] = Warp::shuffle(owner_of_turn, turn);
                    shared_is_read[i] = turn < turns && (looking >> shared_owner[i] & 1);
                }
                u64 bucket = Warp::shuffle(probe.bucket, owner_of(i));
                const u8* line = table.view.slots + table.layout.main_offset(bucket);
                WARPSET_UNROLL
                for (u32 r = 0; r < rows; ++r) {
                    u32 at = r * tile + in_tile;
                    if (is_read(i) && at < bucket_rows) platform::load_row_relaxed(line + at * row_bytes, row[i][r]);
                }
            }
            // Keeps the compiler from comparing the first bucket before it requests the next one. On an H200, this makes
            // find-or-put 1.11 times as fast at 3 words and 1.07 to 1.12 times at 24; at 2, 8, 16 and 32 words there is no
            // difference.
            Warp::converge();
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i) {
                AlignedVector vector{vector_of(owner_of(i))};
                u32 class_of_bucket = Warp::shuffle(my_class, owner_of(i));
                // The tile that has read this lane's bucket, if one has.
                const u32 reader = shares_looks ? my_turn - (first + i * tiles) : tile_start / tile;
                const bool is_mine = shares_looks ? reader < tiles : Warp::lane() == owner_of(i);
                const u32 votes_at = shares_looks ? reader * tile : tile_start;
                WARPSET_UNROLL
                for (u32 r = 0; r < rows; ++r) {
                    WARPSET_UNROLL
                    for (u32 c = 0; c < row_chunks; ++c) {
                        u32 at = r * tile + in_tile, chunk_in_bucket = at * row_chunks + c;
                        u32 slot = chunk_in_bucket / layout.main_chunks(), chunk_in_slot = chunk_in_bucket % layout.main_chunks();
                        bool here = is_read(i) && at < bucket_rows;
                        Main value, empty_value, seen = row[i][r].chunk[c];
                        vector.read(here ? chunk_in_slot * (sizeof(Main) / 4) : 0, value);
                        table.empty_chunk(table.class_in(class_of_bucket, slot), empty_value);
                        bool is_empty = seen == empty_value;
                        u32 empty = tile_bits(Warp::ballot(here && is_empty), votes_at);
                        u32 different = tile_bits(Warp::ballot(here && !is_empty && !(seen == value)), votes_at);
                        if (is_mine) record(report, r, c, different, empty);
                    }
                }
            }
        }
        return report;
    }

    WARPSET_FN static u32 tile_bits(u32 ballot, u32 tile_start)
    {
        return tile == 32 ? ballot : ballot >> (shares_looks ? tile_start % 32 : tile_start) & ((1u << tile % 32) - 1);
    }

    // Bit t of `different` and `empty` belongs to chunk (r * tile + t) * row_chunks + c of the bucket.
    WARPSET_FN static void record(Report& report, u32 r, u32 c, u32 different, u32 empty)
    {
        if constexpr (layout.slots_per_bucket() == 1) {
            report.different |= different;
            u32 first = empty == 0 ? ~0u : (r * tile + platform::lowest_bit(empty)) * row_chunks + c;
            if (first < report.empty) report.empty = first;
        } else {
            static_assert(layout.slots_per_bucket() == 1 || (rows == 1 && bucket_chunks <= 32),
                          "a bucket of several slots is one row");
            report.different |= spread(different) << c;
            report.empty |= spread(empty) << c;
        }
    }

    // Moves bit t to bit t * row_chunks.
    WARPSET_FN static u32 spread(u32 bits)
    {
        if constexpr (row_chunks == 1) return bits;
        u32 spread_bits = 0;
        WARPSET_UNROLL
        for (u32 t = 0; t < tile; ++t) spread_bits |= (bits >> t & 1) << (t * row_chunks);
        return spread_bits;
    }

    // The owner visits the slots of its bucket in order, from `index` on, and leaves each only over a decided, different
    // chunk.
    WARPSET_FN Outcome judge(const Report& report)
    {
        WARPSET_UNROLL
        for (u32 slot = 0; slot < layout.slots_per_bucket(); ++slot) {
            if (slot < index) continue;
            u32 first_empty = ~0u;
            bool different;
            if constexpr (layout.slots_per_bucket() == 1) {
                different = report.different != 0;
                first_empty = report.empty;
            } else {
                constexpr u32 slot_mask = (1u << layout.main_chunks()) - 1;
                different = (report.different >> (slot * layout.main_chunks()) & slot_mask) != 0;
                u32 empty = report.empty >> (slot * layout.main_chunks()) & slot_mask;
                if (empty != 0) first_empty = platform::lowest_bit(empty);
            }
            if (different) continue;
            if (table.forbids(forbidden, probe.bucket, slot)) continue;
            index = slot;
            if (first_empty == ~0u && !layout.has_tails()) return Outcome::Seen;
            if (first_empty != ~0u && operation == Operation::Find) return Outcome::Absent;
            chunk = first_empty != ~0u ? first_empty : layout.main_chunks();
            expect_empty = false;  // if the main chunks of a slot were decided, its tails most likely are
            return Outcome::Pending;
        }
        return go_on_at(layout.slots_per_bucket());
    }

    // Begins to claim a main chunk. Tails, which few widths have, are claimed in `finish_claim`.
    WARPSET_FN Main request_claim() const
    {
        Main seen{};
        if (operation == Operation::FindOrPut && chunk < layout.main_chunks())
            table.with_main(probe.bucket, index, chunk, mine(), [&](Main* address, Main empty, Main value) {
                seen = claim(address, empty, value);
            });
        return seen;
    }

    WARPSET_FN Outcome finish_claim(Main seen)
    {
        Decision decision = Decision::Different;
        if (chunk < layout.main_chunks())
            table.with_main(probe.bucket, index, chunk, mine(),
                            [&](Main*, Main empty, Main value) { decision = warpset::decision(seen, empty, value); });
        else if (operation == Operation::FindOrPut)
            decision = table.decide_chunk(probe.bucket, index, chunk, mine(), expect_empty);
        else
            decision = table.look_at_chunk(probe.bucket, index, chunk, mine());
        if (decision == Decision::Empty) return Outcome::Absent;
        if (decision == Decision::Different) {
            chunk = look;  // at the slots after this one
            return go_on_at(index + 1);
        }
        expect_empty = decision == Decision::Won;
        if (++chunk < layout.chunks()) return Outcome::Pending;
        return decision == Decision::Won ? Outcome::New : Outcome::Seen;
    }

    // Goes on at a slot of the bucket, or in the next bucket. With several slots a bucket, `step` calls `next_bucket`, for looks
    // and claims alike: with a copy for each, 8 words spilled registers, and seen ones were 3 % slower. With one slot, there are
    // two copies: with one, put was 1.5 % slower at 16 words. (H200.)
    WARPSET_FN Outcome go_on_at(u32 slot)
    {
        index = slot;
        return is_one_slot ? next_bucket() : Outcome::Pending;
    }

    WARPSET_FN Outcome next_bucket()
    {
        index = 0;
        if (probe.advance(table.view)) return Outcome::Pending;
        return operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent;
    }
};

}  // namespace warpset
