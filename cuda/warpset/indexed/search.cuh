// Find and find-or-put in an indexed table: by one thread that has several under way (as bucket/thread_search.cuh), and by a
// whole warp, 32 vectors in hand, one a lane (as bucket/warp_search.cuh, which says who owns what).
//
// By a warp, a step is
//   - a *look*: two lanes read the bucket of each of them in turn, 16 bytes each, so a bucket is one request;
//   - a *comparison* of the rows whose tag fits, each by a tile of lanes that share its words;
//   - a *put*, for many lanes at once. What a put costs is its fence: on an H200, prototypes with a fence whenever some lane puts
//     made 4.8 / 4.6 / 4.2 G/s of 16 words at fill 0.25 / 0.7 / 0.9, with one fence for 32 rows 10.4 / 7.8 / 6.0. So lanes
//     that have come upon an EMPTY slot wait until `gather` of them have, or no other has anything to do. Then they take rows
//     (one addition for all), tiles write them, one fence, and each claims its slot. What they wait for is lanes of their own
//     warp, which all go on together: nobody waits for another warp.
#pragma once

#include "warpset/bucket/thread_search.cuh"
#include "warpset/bucket/warp_search.cuh"
#include "warpset/indexed/table.cuh"

namespace warpset {

template <u32 width, u32 slot_bits, Operation operation>
struct ThreadSearch<IndexedTable<width, slot_bits>, operation> {
    using Table = IndexedTable<width, slot_bits>;
    using Lane = typename Table::Lane;

    Probe probe;
    u32 probes;
    typename Table::Slot tag;

    template <class Vector>
    WARPSET_FN void begin(const Table& table, const Vector& vector)
    {
        const u64 hash = table.hash(vector);
        probe = Probe::start(hash, table.view.buckets);
        tag = table.tag_of(hash);
        probes = 0;
        table.prefetch(probe);
    }

    // Unwritten: it goes on.
    template <class Vector>
    WARPSET_FN Found step(const Table& table, const Vector& vector, Lane& lane)
    {
        Found found = operation == Operation::FindOrPut ? table.find_or_put_in(probe.bucket, vector, tag, lane)
                                                        : table.find_in(probe.bucket, vector, tag);
        if (found.outcome != Outcome::Unwritten) return found;
        if (++probes == table.view.probe_limit) return {operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent, no_reference};
        probe.advance(table.view.buckets);
        table.prefetch(probe);
        return found;
    }
};

template <u32 width, u32 slot_bits, Operation operation, bool with_nodes>
struct WarpSearch<IndexedTable<width, slot_bits>, operation, with_nodes> {
    using Table = IndexedTable<width, slot_bits>;
    using Warp = platform::Warp;
    using Slot = typename Table::Slot;
    static constexpr typename Table::Layout layout{};

    static constexpr u32 stride = scratch_stride(width);
    static constexpr u32 scratch_bytes = Warp::size * stride;

    // How a tile reads and writes a row: `units` units, a unit a lane in a round.
    static constexpr u32 unit_words = width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1;
    using Element = typename Choose<width % 2 == 0, u64, u32>::Type;
    using Unit = platform::Row<Element, unit_words * 4 / sizeof(Element)>;
    static constexpr u32 units = width / unit_words;
    static constexpr u32 tile = units < 32 ? power_of_two_at_least(units) : 32;

    // Half a bucket: what a lane reads of it.
    static constexpr u32 half_slots = 16 / sizeof(Slot);
    using Half = platform::Row<Slot, half_slots>;

    // Lanes that put at once, if others have something to do.
    static constexpr u32 gather = Warp::size / 2;

    const Table& table;
    u8* vectors;  // the warp's scratch memory

    enum class Next : u32 { Nothing, Look, Compare, Put };
    Next next = Next::Nothing;  // for this lane's vector
    Slot tag = 0;
    u32 probes = 0;
    u32 index = 0;  // of the first slot of the bucket that it has not left
    Probe probe{};
    u64 found = no_row;  // the row to compare with; when it is resolved, its row
    u64 own = no_row;    // a row that this lane owns

    WARPSET_FN WarpSearch(const Table& table, u8* vectors) : table(table), vectors(vectors) {}

    WARPSET_FN u32* vector_of(u32 lane) const { return reinterpret_cast<u32*>(vectors + lane * stride); }
    WARPSET_FN AlignedVector mine() const { return {vector_of(Warp::lane())}; }
    WARPSET_FN bool is_idle() const { return next == Next::Nothing; }
    WARPSET_FN u64 reference() const { return found; }

    // This lane's vector has been written to `vector_of(lane)`, and the warp synced: search for it.
    WARPSET_FN void begin()
    {
        const u64 hash = table.hash(mine());
        probe = Probe::start(hash, table.view.buckets);
        tag = table.tag_of(hash);
        probes = index = 0;
        next = Next::Look;
    }

    // Something for every lane that is not idle. A lane whose vector is resolved by it becomes idle and gets the outcome (and
    // `reference()`); all others get Outcome::Unwritten.
    WARPSET_FN Outcome step()
    {
        Outcome outcome = Outcome::Unwritten;
        const u32 looking = Warp::ballot(next == Next::Look);
        if (looking != 0) outcome = look(looking);
        const u32 comparing = Warp::ballot(outcome == Outcome::Unwritten && next == Next::Compare);
        if (comparing != 0) {
            const Outcome compared = compare(comparing);
            if (comparing >> Warp::lane() & 1) outcome = compared;
        }
        if constexpr (operation == Operation::FindOrPut) {
            const bool puts = outcome == Outcome::Unwritten && next == Next::Put;
            const u32 putting = Warp::ballot(puts);
            const u32 busy = Warp::ballot(outcome == Outcome::Unwritten && next != Next::Nothing && next != Next::Put);
            if (putting != 0 && (busy == 0 || platform::population_count(putting) >= gather)) {
                const Outcome put = this->put(putting);
                if (puts) outcome = put;
            }
        }
        if (outcome != Outcome::Unwritten) next = Next::Nothing;
        return outcome;
    }

    // Hands over the row that this lane owns.
    WARPSET_FN void finish()
    {
        if (own != no_row) table.rows.give(own);
        own = no_row;
    }

private:
    // Reads the buckets of the owners set in `looking`, and tells each what comes next.
    WARPSET_FN Outcome look(u32 looking)
    {
        const u32 side = Warp::lane() & 1, other = Warp::lane() ^ 1;
        Half half[2] = {};
        WARPSET_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            const u32 owner = Warp::lane() - side + i;
            const u64 bucket = Warp::shuffle(probe.bucket, owner);
            // Acquire, device scope: pairs with the fence before the claim that named a slot. (3 in indexed/table.cuh; the lanes
            // that read the row sync with this one first.)
            if (looking >> owner & 1) platform::load_row_acquire(table.slot_at(bucket, side * half_slots), half[i]);
        }
        Slot slots[2 * half_slots];
        WARPSET_UNROLL
        for (u32 i = 0; i < half_slots; ++i) {
            const Slot mine = side == 0 ? half[0].chunk[i] : half[1].chunk[i];
            const Slot others = Warp::shuffle(side == 0 ? half[1].chunk[i] : half[0].chunk[i], other);
            slots[i] = side == 0 ? mine : others;
            slots[half_slots + i] = side == 0 ? others : mine;
        }
        if (!(looking >> Warp::lane() & 1)) return Outcome::Unwritten;
        WARPSET_UNROLL
        for (u32 slot = 0; slot < 2 * half_slots; ++slot) {
            if (slot < index) continue;
            if (slots[slot] == Table::empty) {
                index = slot;
                next = Next::Put;
                return operation == Operation::Find ? Outcome::Absent : Outcome::Unwritten;
            }
            if (table.fits(slots[slot], tag)) {
                index = slot;
                found = table.row_of(slots[slot]);
                next = Next::Compare;
                return Outcome::Unwritten;
            }
        }
        return next_bucket();
    }

    // Compares the rows that the slots of the owners set in `comparing` name.
    WARPSET_FN Outcome compare(u32 comparing)
    {
        Warp::sync();  // a row is read by others than the lane that has acquired its slot
        const u32 in_tile = Warp::lane() % tile, tile_start = Warp::lane() - in_tile;
        bool equal = false;
        WARPSET_UNROLL_BY(1)
        for (u32 i = 0; i < tile; ++i) {
            const u32 owner = tile_start + i;
            const u64 row = Warp::shuffle(found, owner);
            bool different = false;
            if (comparing >> owner & 1) {
                WARPSET_UNROLL
                for (u32 at = in_tile; at < units; at += tile) {
                    Unit stored;
                    platform::load_row_relaxed(table.rows.at(row) + at * unit_words, stored);
                    const Element* offered = reinterpret_cast<const Element*>(vector_of(owner) + at * unit_words);
                    WARPSET_UNROLL
                    for (u32 e = 0; e < sizeof(Unit) / sizeof(Element); ++e) different |= stored.chunk[e] != offered[e];
                }
            }
            const u32 differs = Warp::ballot(different) >> tile_start;
            if (Warp::lane() == owner) equal = (tile == 32 ? differs : differs & ((1u << tile % 32) - 1)) == 0;
        }
        if (!(comparing >> Warp::lane() & 1)) return Outcome::Unwritten;
        return equal ? Outcome::Seen : next_slot();
    }

    // Writes the vectors of the owners set in `putting` to rows, and claims their slots.
    WARPSET_FN Outcome put(u32 putting)
    {
        const bool puts = putting >> Warp::lane() & 1;
        take_rows(puts && own == no_row);
        const bool claims = puts && own != no_row;
        write_rows(Warp::ballot(claims));
        if (!puts) return Outcome::Unwritten;
        if (!claims) return Outcome::Full;
        Slot* slot = table.slot_at(probe.bucket, index);
        // Acquire, device scope: of the row that another has named. That this one's row is released, the fence has seen to.
        const Slot seen = platform::compare_and_swap_acquire(slot, Table::empty, table.name(tag, own));
        if (seen == Table::empty) {
            found = own;
            own = no_row;
            return Outcome::New;
        }
        if (!table.fits(seen, tag)) return next_slot();
        found = table.row_of(seen);
        next = Next::Compare;
        return Outcome::Unwritten;
    }

    // A row for each lane that wants one, as far as there are some: spares first, then new ones by one addition.
    WARPSET_FN void take_rows(bool wants)
    {
        const Rows<width>& rows = table.rows;
        if (wants && rows.has_spares()) own = rows.take_spare();
        const u32 lane = Warp::lane(), wanting = Warp::ballot(wants && own == no_row);
        if (wanting == 0) return;
        const u32 leader = platform::lowest_bit(wanting);
        u64 first = 0;
        // Relaxed: only the uniqueness of the numbers matters.
        if (lane == leader) first = platform::fetch_add_relaxed(table.view.rows.given, platform::population_count(wanting));
        first = Warp::shuffle(first, leader);
        const u64 row = first + platform::population_count(wanting & ((1u << lane) - 1));
        if ((wanting >> lane & 1) && row < table.view.rows.capacity) own = row;
    }

    // Writes the vectors of the owners set in `writing` to the rows that they own, so that their claims release them.
    WARPSET_FN void write_rows(u32 writing)
    {
        Warp::sync();  // a spare row that a lane has acquired is written by others
        const u32 in_tile = Warp::lane() % tile, tile_start = Warp::lane() - in_tile;
        WARPSET_UNROLL_BY(1)
        for (u32 i = 0; i < tile; ++i) {
            const u32 owner = tile_start + i;
            const u64 row = Warp::shuffle(own, owner);
            if (!(writing >> owner & 1)) continue;
            WARPSET_UNROLL
            for (u32 at = in_tile; at < units; at += tile) {
                const Unit* offered = reinterpret_cast<const Unit*>(vector_of(owner) + at * unit_words);
                platform::store_row_relaxed(table.rows.at(row) + at * unit_words, *offered);
            }
        }
        Warp::sync();  // a row is written by others than the lane that claims
        // Release, device scope: all rows of the warp, before all its claims. Pairs with the acquiring looks.
        platform::fence_release();
    }

    WARPSET_FN Outcome next_slot()
    {
        next = Next::Look;  // at the slots after this one
        return ++index == layout.slots_per_bucket() ? next_bucket() : Outcome::Unwritten;
    }

    WARPSET_FN Outcome next_bucket()
    {
        probe.advance(table.view.buckets);
        index = 0;
        if (++probes < table.view.probe_limit) return Outcome::Unwritten;
        return operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent;
    }
};

}  // namespace warpset
