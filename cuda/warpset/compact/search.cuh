// Find and find-or-put in a compact table: by a whole warp, and by one thread that has several under way.
//
// The division of work in a warp is that of bucket/warp_search.cuh. Each lane owns a key and its walk. A tile of four lanes reads
// the bucket of each of its owners in turn, 16 bytes a lane, in one request. A slot is claimed by the owner alone. What differs:
//   - A bucket holds 8 to 32 slots, and a vote for each would be most of the work. Each lane makes two bits a slot (it is the
//     key's; it is EMPTY) for each of the four owners, and four shuffles give every owner the bits of its whole bucket.
//   - Of the keys whose walk has come to the stash several are looked for at once, in buckets of its own. A look for a few costs a
//     warp as much as one for all, and of the main level's looks at most a tenth lead there. (H200, look-ups of absent 54-bit
//     keys at fill 0.95, of which 30 % end in the stash: 7.2 G/s with each searched for by its owner alone, slot by slot.)
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
    using Main = typename Table::Main;
    using Stash = typename Table::Stash;
    static constexpr typename Table::Layout layout{};

    // Buckets of one tile in flight. With nodes, four would spill 25 registers of the 56 that a thread may have (sm_90, 16
    // words), two none.
    static constexpr u32 in_flight = with_nodes ? 2 : 4;
    static constexpr u32 row_bytes = 16;
    static constexpr u32 tile = Main::bucket_bytes / row_bytes;
    static_assert(Main::bucket_bytes == Stash::bucket_bytes, "a tile reads a bucket of either level");

    // Lanes that wait for a look at the stash, if others still look at the main level.
    static constexpr u32 together = 8;

    static constexpr u32 stride = 8;
    static constexpr u32 scratch_bytes = Warp::size * stride;

    const Table& table;
    u8* keys;  // the warp's scratch memory

    // How far the search for this lane's key is:
    static constexpr u32 idle = ~0u, look = ~0u - 1, enter = ~0u - 2, nowhere = ~0u - 3;
    u32 slot = idle;  // what comes next for it: nothing, a look, the stash, its end, or the claim of this slot
    u64 scrambled = 0;
    bool in_stash = false;  // the level that its walk is in
    struct {                // and where: the walk of either level
        u64 code;
        u32 bucket;
        u8 function, round;
    } at{};
    u32 found = 0;  // the slot of that bucket that has the key

    WARPSET_FN WarpSearch(const Table& table, u8* keys) : table(table), keys(keys) {}

    WARPSET_FN u32* vector_of(u32 lane) const { return reinterpret_cast<u32*>(keys + lane * stride); }
    WARPSET_FN bool is_idle() const { return slot == idle; }
    // The stash's slots are numbered after those of the main level.
    WARPSET_FN u64 reference() const
    {
        return in_stash ? table.main.slots() + Stash::reference(at.bucket, found) : Main::reference(at.bucket, found);
    }

    // This lane's key has been written to `vector_of(lane)`, and the warp synced: search for it.
    WARPSET_FN void begin()
    {
        const u64 key = *reinterpret_cast<const u64*>(vector_of(Warp::lane()));
        scrambled = table.hash.scramble(key);
        in_stash = false;
        slot = !table.hash.has(key) ? nowhere : take(table.main, table.main.start(table.hash, scrambled)) ? look : enter;
    }

    // A look or a claim for the lanes that are not idle. A lane whose key is resolved by it becomes idle and gets the outcome (and
    // `reference()`); all others get Outcome::Unwritten.
    WARPSET_FN Outcome step()
    {
        if (slot == enter) {
            in_stash = true;
            slot = take(table.stash, table.stash.start(table.hash, scrambled)) ? look : nowhere;
        }
        const bool claims = slot < nowhere;
        const u32 in_main = Warp::ballot(slot == look && !in_stash), waiting = Warp::ballot(slot == look && in_stash);
        // The claims are under way while the buckets are read: nothing is done with `seen` before.
        u64 seen = 0;
        if (operation == Operation::FindOrPut && claims) seen = in_stash ? claim_in(table.stash) : claim_in(table.main);
        Outcome outcome = slot == nowhere ? missing : Outcome::Unwritten;
        if (in_main != 0) {
            const Report report = look_at_buckets<in_flight>(table.main, in_main);
            if (in_main >> Warp::lane() & 1) outcome = judge(table.main, report);
        }
        if (waiting != 0 && (in_main == 0 || platform::population_count(waiting) >= together)) {
            const Report report = look_at_buckets<1>(table.stash, waiting);
            if (waiting >> Warp::lane() & 1) outcome = judge(table.stash, report);
        }
        if (operation == Operation::FindOrPut && claims) outcome = finish_claim(seen);
        if (outcome != Outcome::Unwritten) slot = idle;
        return outcome;
    }

    WARPSET_FN void finish() const {}

private:
    // What the tile saw in the bucket of one owner: which slots hold its code, and which are EMPTY.
    struct Report {
        u32 same, empty;
    };

    template <u32 in_flight, class Level>
    WARPSET_FN Report look_at_buckets(const Level& level, u32 looking) const
    {
        using Word = typename Level::Word;
        using Code = typename Level::Code;
        constexpr u32 row_words = row_bytes / sizeof(Word), row_slots = row_words * Level::slots_per_word;
        constexpr u32 owner_bits = 2 * row_slots, row_mask = (1u << row_slots) - 1;
        // What a lane has seen in its row of each of the tile's buckets: `owner_bits` for each.
        using Rows = typename Choose<(tile * owner_bits > 32), u64, u32>::Type;

        const u32 in_tile = Warp::lane() % tile, tile_start = Warp::lane() - in_tile;
        Rows rows = 0;
        WARPSET_UNROLL_BY(1)
        for (u32 first = 0; first < tile; first += in_flight) {
            platform::Row<Word, row_words> row[in_flight];
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i) {
                const u32 owner = tile_start + first + i, bucket = Warp::shuffle(at.bucket, owner);
                if (looking >> owner & 1) platform::load_row_relaxed(level.bucket(bucket) + in_tile * row_bytes, row[i]);
            }
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i) {
                const Code code = Warp::shuffle(static_cast<Code>(at.code), tile_start + first + i);
                u32 bits = 0;
                WARPSET_UNROLL
                for (u32 s = 0; s < row_slots; ++s) {
                    const Code seen = Level::code_in(row[i].chunk[s / Level::slots_per_word], s % Level::slots_per_word);
                    bits |= static_cast<u32>(seen == code) << s | static_cast<u32>(seen == Level::empty) << (row_slots + s);
                }
                rows |= static_cast<Rows>(bits) << (first + i) * owner_bits;  // of an owner that does not look, anything
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

    // The owner has seen all slots of its bucket; the first EMPTY one of its round is where the key would be.
    template <class Level>
    WARPSET_FN Outcome judge(const Level& level, const Report& report)
    {
        if (report.same != 0) return finish(Outcome::Seen, platform::lowest_bit(report.same));
        const u32 taken_before = (1u << level.first_slot(at.round)) - 1;
        const u32 taken_by_now = ~0u >> (32 - level.last_slot(at.round));
        const u32 free = report.empty & taken_by_now & ~taken_before;
        if (free == 0) return advance(level);
        if (operation == Operation::Find) return Outcome::Absent;
        slot = platform::lowest_bit(free);
        return Outcome::Unwritten;
    }

    template <class Level>
    WARPSET_FN u64 claim_in(const Level& level) const
    {
        return level.claim(at.bucket, slot, static_cast<typename Level::Code>(at.code));
    }

    WARPSET_FN Outcome finish_claim(u64 seen)
    {
        if (seen == Main::empty) return finish(Outcome::New, slot);
        if (seen == at.code) return finish(Outcome::Seen, slot);
        slot = look;  // at the bucket again: later slots of it may be EMPTY
        return Outcome::Unwritten;
    }
    static_assert(Main::empty == Stash::empty, "slots of either level are EMPTY alike");

    WARPSET_FN Outcome finish(Outcome outcome, u32 in_slot)
    {
        found = in_slot;
        return outcome;
    }

    // What is told of a key that is in no slot of its walk.
    static constexpr Outcome missing = operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent;

    // Goes on to the next bucket of the walk, if there is one in this level.
    template <class Level>
    WARPSET_FN Outcome advance(const Level& level)
    {
        typename Level::Walk walk{{at.bucket, static_cast<typename Level::Code>(at.code)}, at.function, at.round};
        level.advance(walk, table.hash, scrambled);
        if (!take(level, walk)) slot = in_stash ? nowhere : enter;
        return Outcome::Unwritten;
    }

    // Makes a walk this lane's, unless it is over.
    template <class Level>
    WARPSET_FN bool take(const Level& level, const typename Level::Walk& walk)
    {
        if (level.is_over(walk)) return false;
        at = {walk.at.code, walk.at.bucket, static_cast<u8>(walk.function), static_cast<u8>(walk.round)};
        return true;
    }
};

template <u32 slot_bits, u32 static_bits, Operation operation>
struct ThreadSearch<CompactTable<slot_bits, static_bits>, operation> {
    using Table = CompactTable<slot_bits, static_bits>;

    u64 scrambled;
    // As in bucket/thread_search.cuh: nothing is kept.
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
        if (found.outcome != Outcome::Unwritten) return found;
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
