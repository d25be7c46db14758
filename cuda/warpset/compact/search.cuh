// Find and find-or-put in a compact table: by a whole warp, and by one thread that interleaves several searches.
//
// The division of work in a warp is that of bucket/warp_search.cuh. Each lane owns a key and its walk. A tile of four lanes reads
// the bucket of each of its owners in turn, 16 bytes a lane, in one request. The owner alone claims a slot. Two things
// differ:
//   - A bucket holds 8 to 32 slots, and a vote for each would be most of the work. Instead, each lane computes two bits per slot
//     (the slot holds the key; the slot is EMPTY) for each of the four owners. Four shuffles then give every owner the bits of
//     its whole bucket.
//   - Few keys reach the stash (compact/table.cuh). So the owner of such a key searches the stash alone while the others wait.
//
// Tried and dropped: letting the whole tile look at the stash, for eight owners at once, while others continue. That reads a
// bucket of the stash by one request instead of eight, but the single walk through both levels takes wider registers. H200,
// 54-bit keys in 2^28 slots: find-or-put 21.5 -> 19.0 and 18.9 -> 15.9 G/s at fill 0.5 and 0.95, seen 33.9 -> 30.9 and 29.4 ->
// 26.0, absent keys at 0.95 (30 % of them end in the stash) 7.2 -> 5.8. A stash is small, so looks at it hit L2.
#pragma once

#include "warpset/bucket/thread_search.cuh"
#include "warpset/bucket/warp_search.cuh"
#include "warpset/compact/table.cuh"
#include "warpset/core/layout.cuh"
#include "warpset/core/outcome.cuh"

namespace warpset {

template <u32 slot_bits, u32 static_bits, Operation operation, bool with_nodes>
struct WarpSearch<CompactTable<slot_bits, static_bits>, operation, with_nodes> {
    using Warp = platform::Warp;
    using Table = CompactTable<slot_bits, static_bits>;
    using Level = typename Table::Main;
    using Word = typename Level::Word;
    using Code = typename Level::Code;
    static constexpr typename Table::Layout layout{};

    // Buckets of one tile in flight. With nodes, four would spill 25 of the 56 registers that a thread may have (sm_90, 16
    // words); two spill none.
    static constexpr u32 in_flight = with_nodes ? 2 : 4;
    static constexpr u32 row_bytes = 16;
    static constexpr u32 tile = Level::bucket_bytes / row_bytes;
    static constexpr u32 row_words = row_bytes / sizeof(Word);
    static constexpr u32 row_slots = row_words * Level::slots_per_word;
    static constexpr u32 owner_bits = 2 * row_slots;
    // Findings of a lane in its row of each of the tile's buckets: `owner_bits` bits for each.
    using Rows = typename Choose<(tile * owner_bits > 32), u64, u32>::Type;

    static constexpr u32 stride = 8;
    static constexpr u32 scratch_bytes = Warp::size * stride;

    const Table& table;
    u8* keys;  // the warp's scratch memory

    // State of the search for this lane's key:
    static constexpr u32 idle = ~0u, look = ~0u - 1;
    u32 slot = idle;  // next step of the search: none (idle), a look, or the claim of this slot of its bucket
    u64 scrambled = 0;
    typename Level::Walk walk{};
    u64 found = 0;  // its reference

    WARPSET_FN WarpSearch(const Table& table, u8* keys) : table(table), keys(keys) {}

    WARPSET_FN u32* vector_of(u32 lane) const { return reinterpret_cast<u32*>(keys + lane * stride); }
    WARPSET_FN bool is_idle() const { return slot == idle; }
    WARPSET_FN u64 reference() const { return found; }

    // Begins the search for this lane's key. The caller has written it to `vector_of(lane)` and synchronized the warp.
    WARPSET_FN void begin()
    {
        const u64 key = *reinterpret_cast<const u64*>(vector_of(Warp::lane()));
        scrambled = table.hash.scramble(key);
        walk = table.main.start(table.hash, scrambled);
        if (!table.hash.has(key)) walk.round = too_wide;
        slot = look;
    }

    // Does one look or one claim for every lane that is not idle. If that resolves a lane's key, the lane becomes idle and gets
    // the outcome (and `reference()`); all others get Outcome::Pending.
    WARPSET_FN Outcome step()
    {
        const bool over = !is_idle() && table.main.is_over(walk);
        const bool looks = slot == look && !over, claims = slot < look;
        const u32 looking = Warp::ballot(looks);
        // The claims are under way while the buckets are read: `seen` must not be used before the buckets have been read.
        Code seen = Level::empty;
        if (operation == Operation::FindOrPut && claims) seen = table.main.claim(walk.at.bucket, slot, walk.at.code);
        Outcome outcome = Outcome::Pending;
        if (looking != 0) {
            const Report report = look_at_buckets(looking);
            if (looks) outcome = judge(report);
        }
        if (operation == Operation::FindOrPut && claims) outcome = finish_claim(seen);
        if (over) outcome = leave();
        if (outcome != Outcome::Pending) slot = idle;
        return outcome;
    }

    WARPSET_FN void finish() const {}

private:
    static constexpr u32 too_wide = ~0u;  // in place of a round, if the key has too many bits

    // Findings of the tile in one owner's bucket: the slots that hold the owner's code, and the EMPTY ones.
    struct Report {
        u32 same, empty;
    };

    WARPSET_FN Report look_at_buckets(u32 looking) const
    {
        const u32 in_tile = Warp::lane() % tile, tile_start = Warp::lane() - in_tile;
        Rows rows = 0;
        WARPSET_UNROLL_BY(1)
        for (u32 first = 0; first < tile; first += in_flight) {
            platform::Row<Word, row_words> row[in_flight];
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i) {
                const u32 owner = tile_start + first + i, bucket = Warp::shuffle(walk.at.bucket, owner);
                if (looking >> owner & 1) platform::load_row_relaxed(table.main.bucket(bucket) + in_tile * row_bytes, row[i]);
            }
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i) {
                const Code code = Warp::shuffle(walk.at.code, tile_start + first + i);
                u32 bits = 0;
                WARPSET_UNROLL
                for (u32 s = 0; s < row_slots; ++s) {
                    const Code seen = Level::code_in(row[i].chunk[s / Level::slots_per_word], s % Level::slots_per_word);
                    bits |= static_cast<u32>(seen == code) << s | static_cast<u32>(seen == Level::empty) << (row_slots + s);
                }
                rows |= static_cast<Rows>(bits) << (first + i) * owner_bits;  // meaningless for an owner that does not look
            }
        }
        Report report{0, 0};
        WARPSET_UNROLL
        for (u32 i = 0; i < tile; ++i) {
            const u32 bits = static_cast<u32>(Warp::shuffle(rows, tile_start + i) >> in_tile * owner_bits);
            report.same |= (bits & row_mask) << i * row_slots;
            report.empty |= (bits >> row_slots & row_mask) << i * row_slots;
        }
        return report;
    }
    static constexpr u32 row_mask = (1u << row_slots) - 1;

    // The owner has seen all slots of its bucket; the first EMPTY one of its round is where the key would be.
    WARPSET_FN Outcome judge(const Report& report)
    {
        if (report.same != 0) return finish(Outcome::Seen, platform::lowest_bit(report.same));
        const u32 taken_before = (1u << table.main.first_slot(walk.round)) - 1;
        const u32 taken_by_now = ~0u >> (32 - table.main.last_slot(walk.round));
        const u32 free = report.empty & taken_by_now & ~taken_before;
        if (free == 0) {
            table.main.advance(walk, table.hash, scrambled);
            return Outcome::Pending;
        }
        if (operation == Operation::Find) return Outcome::Absent;
        slot = platform::lowest_bit(free);
        return Outcome::Pending;
    }

    WARPSET_FN Outcome finish_claim(Code seen)
    {
        if (seen == Level::empty) return finish(Outcome::New, slot);
        if (seen == walk.at.code) return finish(Outcome::Seen, slot);
        slot = look;  // at the bucket again: its later slots may be EMPTY
        return Outcome::Pending;
    }

    WARPSET_FN Outcome finish(Outcome outcome, u32 in_slot)
    {
        found = Level::reference(walk.at.bucket, in_slot);
        return outcome;
    }

    // Called when the walk through the main level has ended.
    WARPSET_FN Outcome leave()
    {
        if (walk.round == too_wide) return operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent;
        const Found in_stash = table.template search_stash<operation>(scrambled);
        found = in_stash.reference;
        return in_stash.outcome;
    }
};

template <u32 slot_bits, u32 static_bits, Operation operation>
struct ThreadSearch<CompactTable<slot_bits, static_bits>, operation> {
    using Table = CompactTable<slot_bits, static_bits>;

    u64 scrambled;
    // As `Lane` in bucket/thread_search.cuh, but keeps nothing.
    struct Lane {
        WARPSET_FN void finish(const Table&) {}
    };

    typename Table::Main::Walk walk;
    bool too_wide;

    template <class Vector>
    WARPSET_FN void begin(const Table& table, const Vector& vector)
    {
        const u64 key = vector.pair(0);
        too_wide = !table.hash.has(key);
        scrambled = table.hash.scramble(key);
        walk = table.main.start(table.hash, scrambled);
        prefetch(table);
    }

    template <class Vector>
    WARPSET_FN Found step(const Table& table, const Vector&, Lane&)
    {
        if (too_wide) return {operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent, no_reference};
        if (table.main.is_over(walk)) return table.template search_stash<operation>(scrambled);
        const Found found = table.main.template look<operation>(walk);
        if (found.outcome != Outcome::Pending) return found;
        table.main.advance(walk, table.hash, scrambled);
        prefetch(table);
        return found;
    }

private:
    WARPSET_FN void prefetch(const Table& table) const
    {
        platform::prefetch(table.main.bucket(walk.at.bucket), Table::Main::bucket_bytes);
    }
};

}  // namespace warpset
