// Find and find-or-put in an indexed table: by one thread that interleaves several searches (as in bucket/thread_search.cuh), and
// by a whole warp with 32 vectors, one per lane (as in bucket/warp_search.cuh, which explains what a lane owns).
//
// By a warp. The time of a put is a chain of latencies: look, number of a row, words of the row, fence, claim. So a step does
// each of these for all lanes at once, and rows are compared while claims are under way:
//   1. *Look.* Two lanes together read the buckets of both, one after the other, 16 bytes each, so a bucket is one request. The
//      loads are relaxed, so that both requests of a lane are under way together. At the same time the warp reads the hint
//      whether there are spares. If lanes claimed in the step before, it also takes numbers of new rows, by one addition for all
//      lanes that look and own no row. A lane keeps an unused row for its next vector, and makes it a spare in the end. If spares
//      are not reused, no number is taken ahead, because every unused one would be lost.
//   2. *Write.* Lanes that have found an EMPTY slot and still own no row take one: spares first, then new ones by one addition
//      for all. Tiles of lanes share the words of a row and write them.
//   3. *Fence.* One fence for the warp acquires what the looks (and lost claims of the step before) have seen, and releases what
//      has been written. (3 in indexed/table.cuh.)
//   4. *Claim.* Each lane that has written its row issues its compare-and-swap. Meanwhile tiles compare the rows whose tags
//      match, several rows of a tile at a time. Then the lanes evaluate their claims. If a claim was lost, the row that the slot
//      now names is compared in the next step: only the next fence acquires it.
//
// No warp waits for another. Lanes wait only for lanes of their own warp.
//
// On an H200, 2^27 vectors, duplication 2, G/s at fill 0.25 / 0.7 / 0.9: 9.9 / 9.2 / 8.2 for vectors of 8 words, 9.9 / 8.8 / 8.1
// of 16, 7.3 / 6.6 / 6.5 of 32, 4.8 / 4.4 / 4.5 of 64. Taking numbers only after seeing an EMPTY slot gave 9.1 / 8.8 / 8.0 for 8
// words, 9.5 / 8.3 / 7.8 for 16, 6.6 / 6.0 / 6.1 for 32. Tried and dropped: collecting puts until half the lanes have one, with
// looks that acquire: 7.2 / 7.1 / 6.4 for 8 words. Prototypes with a fence for every single put reached 4.8 / 4.6 / 4.2 for 16
// words; with one fence for 32 puts, 10.4 / 7.8 / 6.0.
//
// Taking numbers with the look, instead of after it, gained 3 to 40 % at 1 to 8 words (before: 7.8 / 7.5 / 7.3 for 2 words, 9.2 /
// 9.0 / 7.8 for 8) and 4 to 10 % at 12, 16 and 32. It lost 2 to 6 % at the other widths from 9 to 15, and changed nothing at 64.
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
    typename Table::Slot tag;

    template <class Vector>
    WARPSET_FN void begin(const Table& table, const Vector& vector)
    {
        const u64 hash = table.hash(vector);
        probe = Probe::start(hash, table.view);
        tag = table.tag_of(hash);
        table.prefetch(probe);
    }

    // Pending: the search continues.
    template <class Vector>
    WARPSET_FN Found step(const Table& table, const Vector& vector, Lane& lane)
    {
        Found found = operation == Operation::FindOrPut ? table.find_or_put_in(probe.bucket, vector, tag, lane)
                                                        : table.find_in(probe.bucket, vector, tag);
        if (found.outcome != Outcome::Pending) return found;
        if (!probe.advance(table.view))
            return {operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent, no_reference};
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

    // Units in which a tile reads and writes a row: `units` of them, one per lane in each round.
    static constexpr u32 unit_words = width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1;
    using Element = typename Choose<width % 2 == 0, u64, u32>::Type;
    using Unit = platform::Row<Element, unit_words * 4 / sizeof(Element)>;
    static constexpr u32 units = width / unit_words;
    static constexpr u32 tile = units < 32 ? power_of_two_at_least(units) : 32;
    static constexpr u32 rounds = (units + tile - 1) / tile;
    // Number of rows that a tile reads at a time: as many as registers allow under the launch bounds of table_kernels.cu.
    static constexpr u32 affordable = width < 64 ? 2 : 16 / (rounds * unit_words) < 4 ? 16 / (rounds * unit_words) : 4;
    static constexpr u32 in_flight = affordable < tile ? affordable : tile;

    // Half a bucket: the part that one lane reads.
    static constexpr u32 half_slots = 16 / sizeof(Slot);
    using Half = platform::Row<Slot, half_slots>;

    const Table& table;
    u8* vectors;  // the warp's scratch memory

    enum class Next : u32 { Nothing, Look, Compare, Put };
    Next next = Next::Nothing;  // for this lane's vector
    Slot tag = 0;
    u32 index = 0;  // the first slot of the bucket that the search has not left; if it has left all, their number
    Probe probe{};
    u64 found = no_row;  // row to compare with; once the vector is resolved, its row
    u64 own = no_row;    // a row that this lane owns
    // Whether to take row numbers ahead: lanes claimed in the step before, there were no spares, and spares are reused.
    bool takes_ahead = false;

    WARPSET_FN WarpSearch(const Table& table, u8* vectors) : table(table), vectors(vectors) {}

    WARPSET_FN u32* vector_of(u32 lane) const { return reinterpret_cast<u32*>(vectors + lane * stride); }
    WARPSET_FN AlignedVector mine() const { return {vector_of(Warp::lane())}; }
    WARPSET_FN bool is_idle() const { return next == Next::Nothing; }
    WARPSET_FN u64 reference() const { return found; }

    // Begins the search for this lane's vector. The caller has written it to `vector_of(lane)` and synchronized the warp.
    WARPSET_FN void begin()
    {
        const u64 hash = table.hash(mine());
        probe = Probe::start(hash, table.view);
        tag = table.tag_of(hash);
        index = 0;
        next = Next::Look;
    }

    // Does a look, a claim or a comparison for every lane that is not idle, or a look and then one of the other two. A lane whose
    // vector that resolves becomes idle and gets the outcome (and `reference()`); all others get Outcome::Pending.
    WARPSET_FN Outcome step()
    {
        Outcome outcome = Outcome::Pending;
        const u32 looking = Warp::ballot(next == Next::Look);
        u64 spares = 0;
        if (looking != 0) {
            // Both are under way while buckets are read: their results must not be used before that.
            NewRows ahead{};
            if constexpr (operation == Operation::FindOrPut) {
                spares = table.rows.spares();
                ahead = request_rows(takes_ahead && next == Next::Look && own == no_row);
            }
            outcome = look(looking);
            receive_rows(ahead);
        }
        const bool compares = next == Next::Compare;
        const u32 comparing = Warp::ballot(compares);
        bool claims = false;
        u32 claiming = 0;
        if constexpr (operation == Operation::FindOrPut) {
            const bool puts = next == Next::Put;
            take_rows(puts && own == no_row, spares);
            claims = puts && own != no_row;
            if (puts && !claims) outcome = Outcome::Full;
            claiming = Warp::ballot(claims);
            takes_ahead = claiming != 0 && table.rows.fills_spares() && !table.rows.are_spares(spares);
            if (claiming != 0) write_rows(claiming);
        }
        if ((comparing | claiming) != 0) fence();
        // The claims are under way while rows are compared: `seen` must not be used before that.
        const Slot seen = claims ? request_claim() : Table::empty;
        if (comparing != 0) {
            const Outcome compared = compare(comparing);
            if (compares) outcome = compared;
        }
        if (claims) outcome = finish_claim(seen);
        if (index == layout.slots_per_bucket()) outcome = next_bucket();
        if (outcome != Outcome::Pending) next = Next::Nothing;
        return outcome;
    }

    // Turns the rows that the lanes still own into spares.
    WARPSET_FN void finish()
    {
        const u32 left = Warp::ballot(own != no_row && table.rows.leave(own));
        if (left != 0 && Warp::lane() == platform::lowest_bit(left)) table.rows.count_spares(platform::population_count(left));
        own = no_row;
    }

private:
    // Reads the buckets of the owners set in `looking`, and determines the next step of each owner.
    WARPSET_FN Outcome look(u32 looking)
    {
        const u32 side = Warp::lane() & 1, other = Warp::lane() ^ 1;
        Half half[2] = {};
        WARPSET_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            const u32 owner = Warp::lane() - side + i;
            const u64 bucket = Warp::shuffle(probe.bucket, owner);
            // Relaxed: no row is read because of a slot before this step's fence.
            if (looking >> owner & 1) platform::load_row_relaxed(table.slot_at(bucket, side * half_slots), half[i]);
        }
        Slot slots[2 * half_slots];
        WARPSET_UNROLL
        for (u32 i = 0; i < half_slots; ++i) {
            const Slot mine = side == 0 ? half[0].chunk[i] : half[1].chunk[i];
            const Slot others = Warp::shuffle(side == 0 ? half[1].chunk[i] : half[0].chunk[i], other);
            slots[i] = side == 0 ? mine : others;
            slots[half_slots + i] = side == 0 ? others : mine;
        }
        if (!(looking >> Warp::lane() & 1)) return Outcome::Pending;
        WARPSET_UNROLL
        for (u32 slot = 0; slot < 2 * half_slots; ++slot) {
            if (slot < index) continue;
            if (slots[slot] == Table::empty) {
                index = slot;
                next = Next::Put;
                return operation == Operation::Find ? Outcome::Absent : Outcome::Pending;
            }
            if (table.fits(slots[slot], tag)) {
                index = slot;
                found = table.row_of(slots[slot]);
                next = Next::Compare;
                return Outcome::Pending;
            }
        }
        index = layout.slots_per_bucket();
        return Outcome::Pending;
    }

    // Numbers of new rows, one for each lane of `lanes`.
    struct NewRows {
        u32 lanes;
        u64 first;  // for the lowest of them only
    };

    WARPSET_FN NewRows request_rows(bool wants) const
    {
        NewRows rows{Warp::ballot(wants), 0};
        // Relaxed: only the uniqueness of the numbers matters.
        if (rows.lanes != 0 && Warp::lane() == platform::lowest_bit(rows.lanes))
            rows.first = platform::fetch_add_relaxed(table.view.rows.given, platform::population_count(rows.lanes));
        return rows;
    }

    // Gives each of these lanes its row, as far as rows are left.
    WARPSET_FN void receive_rows(const NewRows& rows)
    {
        if (rows.lanes == 0) return;
        const u32 lane = Warp::lane();
        const u64 first = Warp::shuffle(rows.first, platform::lowest_bit(rows.lanes));
        const u64 row = first + platform::population_count(rows.lanes & ((1u << lane) - 1));
        if ((rows.lanes >> lane & 1) && row < table.view.rows.capacity) own = row;
    }

    // Gives a row to each lane that wants one, as long as rows are left: spares first, then new ones.
    WARPSET_FN void take_rows(bool wants, u64 spares)
    {
        if (wants && table.rows.are_spares(spares)) own = table.rows.take_spare();
        receive_rows(request_rows(wants && own == no_row));
    }

    // Writes the vectors of the owners set in `claiming` to the rows that they own. Each tile writes those of its lanes.
    WARPSET_FN void write_rows(u32 claiming)
    {
        Warp::sync();  // other lanes write the spare row that one lane has acquired
        const u32 in_tile = Warp::lane() % tile, tile_start = Warp::lane() - in_tile;
        WARPSET_UNROLL_BY(1)
        for (u32 left = tile_bits(claiming); Warp::ballot(left != 0) != 0; left &= left - 1) {
            const u32 owner = tile_start + first_in_tile(left);
            const u64 row = Warp::shuffle(own, owner);
            if (left == 0) continue;
            WARPSET_UNROLL
            for (u32 at = in_tile; at < units; at += tile) {
                const Unit* offered = reinterpret_cast<const Unit*>(vector_of(owner) + at * unit_words);
                platform::store_row_relaxed(table.rows.at(row) + at * unit_words, *offered);
            }
        }
    }

    // Fence between what this step has seen and written, and what it reads and claims because of that.
    WARPSET_FN void fence() const
    {
        Warp::sync();  // a row is written by others than the lane that claims
        // Release, device scope: of all rows that the warp has written, before all its claims. Acquire: of the rows that other
        // warps' slots name, seen by relaxed looks, and by relaxed claims of the step before. It pairs with itself, and with the
        // accesses by one thread in indexed/table.cuh.
        platform::fence_acquire_release();
        Warp::sync();  // a row is read by others than the lane that has seen its slot
    }

    WARPSET_FN Slot request_claim() const
    {
        // Relaxed: this step's fence has released the row. If the slot names another row, the next step's fence acquires that
        // row.
        return platform::compare_and_swap_relaxed(table.slot_at(probe.bucket, index), Table::empty, table.name(tag, own));
    }

    WARPSET_FN Outcome finish_claim(Slot seen)
    {
        if (seen == Table::empty) {
            found = own;
            own = no_row;
            return Outcome::New;
        }
        if (!table.fits(seen, tag)) return next_slot();
        found = table.row_of(seen);
        next = Next::Compare;
        return Outcome::Pending;
    }

    // Compares the rows that the slots of the owners set in `comparing` name. Each tile compares those of its own lanes, several
    // at a time.
    WARPSET_FN Outcome compare(u32 comparing)
    {
        const u32 in_tile = Warp::lane() % tile, tile_start = Warp::lane() - in_tile;
        bool equal = false;
        u32 left = tile_bits(comparing);
        do {
            Unit stored[in_flight][rounds] = {};  // initialized even where unused: otherwise the compiler spills
            u32 asking = left;
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i, asking &= asking - 1) {
                const u64 row = Warp::shuffle(found, tile_start + first_in_tile(asking));
                WARPSET_UNROLL
                for (u32 round = 0; round < rounds; ++round) {
                    const u32 at = round * tile + in_tile;
                    if (asking != 0 && at < units)
                        platform::load_row_relaxed(table.rows.at(row) + at * unit_words, stored[i][round]);
                }
            }
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i, left &= left - 1) {
                const u32 owner = tile_start + first_in_tile(left);
                bool different = false;
                WARPSET_UNROLL
                for (u32 round = 0; round < rounds; ++round) {
                    const u32 at = round * tile + in_tile;
                    if (left == 0 || at >= units) continue;
                    const Element* offered = reinterpret_cast<const Element*>(vector_of(owner) + at * unit_words);
                    WARPSET_UNROLL
                    for (u32 e = 0; e < sizeof(Unit) / sizeof(Element); ++e) different |= stored[i][round].chunk[e] != offered[e];
                }
                const u32 differs = tile_bits(Warp::ballot(different));
                if (left != 0 && Warp::lane() == owner) equal = differs == 0;
            }
        } while (in_flight < tile && Warp::ballot(left != 0) != 0);
        if (next != Next::Compare) return Outcome::Pending;
        return equal ? Outcome::Seen : next_slot();
    }

    // The bits of this lane's tile in a mask of the warp's lanes.
    WARPSET_FN static u32 tile_bits(u32 bits)
    {
        return tile == 32 ? bits : bits >> (Warp::lane() & ~(tile - 1)) & ((1u << tile % 32) - 1);
    }

    // The first of these lanes in a tile; arbitrary if `bits` is empty.
    WARPSET_FN static u32 first_in_tile(u32 bits) { return platform::lowest_bit(bits) % tile; }

    WARPSET_FN Outcome next_slot()
    {
        next = Next::Look;  // at the following slots
        ++index;
        return Outcome::Pending;
    }

    WARPSET_FN Outcome next_bucket()
    {
        index = 0;
        if (probe.advance(table.view)) return Outcome::Pending;
        return operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent;
    }
};

}  // namespace warpset
