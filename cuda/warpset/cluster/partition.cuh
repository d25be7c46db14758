// One round of a cluster on one rank. Copies each vector to the run of the rank that owns it, and later the owners' answers to
// the positions at which the vectors were offered. src/cluster/mod.rs describes the protocol.
//
// Owner. The hash of the whole vector (core/hash.cuh), under the cluster's own seeds, divides [0, 2^64) among the ranks: rank r
// owns bounds[r] <= hash < bounds[r + 1]. These seeds are independent of those of any table, so the owner of a vector says
// nothing about its bucket: the vectors of a rank spread over all of its buckets.
//
// Runs. One pass reads each vector once and writes it once. A warp takes a tile of neighbouring vectors, adds to the cursor of
// each rank once to get consecutive rows of its run, and orders its vectors by ballots. So a tile writes whole lines, except for
// its first and last, and the answers to its rows are neighbours as well when it reads them later. A run has capacity for the
// rows that a rank is expected to get of the round's vectors, plus a margin. If equal vectors make it longer, all rows are
// counted, and those beyond its end are not written. The host then makes space for the counted rows, and repeats the pass.
//
// Representatives. With a filter, only one of several equal vectors in a round is sent: their *representative*. The filter is an
// array of slots. Each is empty or holds the position of a vector in the batch. To find its representative, a vector walks from
// the slot of its hash to the first slot that is empty, which it claims by one compare-and-swap, or that holds an equal vector.
//
//   1. A slot goes from empty to a position once, and never changes.
//   2. Equal vectors walk the same slots, and pass a slot only over a different vector, which stays there. So they all end at the
//      same slot. The vector that has claimed it represents all of them, itself included.
//   3. There are twice as many slots as vectors, so each walk ends, and no thread waits for another.
//   4. Relaxed order is enough: a position leads only to the batch, which no thread writes.
#pragma once

#include "warpset/core/hash.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/core/vectors.cuh"

namespace warpset {

// Messages consist of whole lines: one for the header, then the rows, with the trailer at the end of the last line.
constexpr u32 message_line_bytes = 128, message_trailer_bytes = 16;

// Marks a free slot of the filter, and is the owner of a vector that is not sent because another one represents it.
constexpr u32 no_position = ~0u;

// Distance between the cursors of two neighbouring ranks. Each has its own line, so that atomics on them do not wait for each
// other.
constexpr u32 cursor_step = message_line_bytes / sizeof(u64);

// Mirrored by `PartitionView` in src/layout/rank.rs. Addresses are of the rank's device.
struct PartitionView {
    const u32* vectors;     // count x width words
    u64 count;              // less than 2^31
    const u128* seeds;      // width + 1
    u64 hash_mask;          // all ones; tests clear bits to force collisions
    const u64* bounds;      // one a rank: the smallest hash that it owns; bounds[0] = 0
    u32* slots;             // slots of the filter: slot_mask + 1 of them, at least 2 x count; no_position before `claim`
    u32* representatives;   // count, or null if there is no filter: the position of the vector that is sent
    u64* cursors;           // one a rank, cursor_step apart, 0 before `scatter`; afterwards the rows of its run
    const u64* capacities;  // one a rank: capacity of its run, in rows
    const u64* runs;        // one a rank: the address of its first row
    const u64* answers;     // one a rank, ascending: byte offset in `replies` of the first answer to its run
    u32* places;            // count, or null: after `scatter`, the place of the answer to each vector that is sent
    const u8* replies;      // null if no answers are requested
    u8* outcomes;           // count, or null
    u64* references;        // count, or null; 0 for a vector that is not stored
    u32* owners;            // count, or null: the rank that has the vector, or would have
    u64* totals;            // two sums over vectors that another represents: hits (find-or-put: New; find: Seen); rejected
    u32 width, ranks, slot_mask;
    u32 with_references;    // whether replies have references behind their outcomes
};

// Last i with firsts[i] <= value, for `count` ascending numbers; firsts[0] <= value.
WARPSET_FN u32 last_not_above(const u64* firsts, u32 count, u64 value)
{
    u32 low = 0, high = count;
    while (high - low > 1) {
        const u32 middle = low + (high - low) / 2;
        if (firsts[middle] <= value) low = middle;
        else high = middle;
    }
    return low;
}

// `bytes`, rounded up to whole lines.
WARPSET_FN u64 whole_lines(u64 bytes) { return (bytes + message_line_bytes - 1) / message_line_bytes * message_line_bytes; }

// A vector in registers, between its one read and its one write. Both use the largest pieces that divide its size; the addresses
// are aligned to them.
template <u32 words>
struct HeldVector {
    u32 held[words];

    WARPSET_FN u32 word(u32 index) const { return held[index]; }
    WARPSET_FN u64 pair(u32 index) const { return held[index] | static_cast<u64>(held[index + 1]) << 32; }

    // Bytes of a piece.
    static constexpr u32 alignment = words % 4 == 0 ? 16 : words % 2 == 0 ? 8 : 4;

    WARPSET_FN void read(const u32* from)
    {
        WARPSET_UNROLL
        for (u32 index = 0; index < words; index += alignment / 4) {
            if constexpr (alignment == 16) {
                const u128 piece = platform::load_input(reinterpret_cast<const u128*>(from + index));
                held[index] = static_cast<u32>(piece.low), held[index + 1] = static_cast<u32>(piece.low >> 32);
                held[index + 2] = static_cast<u32>(piece.high), held[index + 3] = static_cast<u32>(piece.high >> 32);
            } else if constexpr (alignment == 8) {
                const u64 piece = platform::load_input(reinterpret_cast<const u64*>(from + index));
                held[index] = static_cast<u32>(piece), held[index + 1] = static_cast<u32>(piece >> 32);
            } else {
                held[index] = platform::load_input(from + index);
            }
        }
    }

    WARPSET_FN void write(u32* to) const
    {
        WARPSET_UNROLL
        for (u32 index = 0; index < words; index += alignment / 4) {
            if constexpr (alignment == 16) *reinterpret_cast<u128*>(to + index) = {pair(index), pair(index + 2)};
            else if constexpr (alignment == 8) *reinterpret_cast<u64*>(to + index) = pair(index);
            else to[index] = held[index];
        }
    }
};

// Holds nothing: kernels for any width leave the vector in memory.
template <>
struct HeldVector<0> {};

struct Partition {
    using Warp = platform::Warp;

    // Number of vectors that a warp takes at a time: several per lane, with one addition to the cursor that all warps share.
    static constexpr u32 rounds = Warp::size == 1 ? 256 : 8, tile = rounds * Warp::size;

    // Finds representatives.
    WARPSET_FN static void claim(const PartitionView& view)
    {
        for (u64 start = platform::Grid::warp() * tile; start < view.count; start += platform::Grid::warps() * tile) {
            u64 hashes[rounds];
            WARPSET_UNROLL
            for (u32 round = 0; round < rounds; ++round) {
                const u64 at = start + round * Warp::size + Warp::lane();
                if (at >= view.count) continue;
                hashes[round] = hash_vector(view.seeds, view.width, view.hash_mask, vector(view, at));
                platform::prefetch(view.slots + (static_cast<u32>(hashes[round]) & view.slot_mask), sizeof(u32));
            }
            WARPSET_UNROLL
            for (u32 round = 0; round < rounds; ++round) {
                const u64 at = start + round * Warp::size + Warp::lane();
                if (at >= view.count) continue;
                view.representatives[at] = representative(view, static_cast<u32>(at), static_cast<u32>(hashes[round]));
            }
            Warp::sync();
        }
    }

    // Copies each vector that is sent to a row of its owner's run.
    WARPSET_FN static void scatter(const PartitionView& view)
    {
        if constexpr (Warp::size > 1) {
            const u64 address = reinterpret_cast<u64>(view.vectors);
            if (view.width == 1) return scatter_as<1, 16>(view);
            if (view.width == 2 && address % 8 == 0) return scatter_as<2, 16>(view);
            if (view.width == 3) return scatter_as<3, 16>(view);
            if (view.width == 4 && address % 16 == 0) return scatter_as<4, 16>(view);
            if (view.width == 5) return scatter_as<5, 8>(view);
            if (view.width == 6 && address % 8 == 0) return scatter_as<6, 8>(view);
            if (view.width == 7) return scatter_as<7, 4>(view);
            if (view.width == 8 && address % 16 == 0) return scatter_as<8, 8>(view);
        }
        scatter_as<0, rounds>(view);
    }

    // Copies the result of each representative to the vectors that it represents. Of equal vectors only the representative is
    // New.
    WARPSET_FN static void gather(const PartitionView& view, Outcome hit)
    {
        u64 hits = 0, rejected = 0;
        for (u64 start = platform::Grid::warp() * tile; start < view.count; start += platform::Grid::warps() * tile) {
            u32 sent[rounds], places[rounds];
            Outcome outcomes[rounds];
            WARPSET_UNROLL
            for (u32 round = 0; round < rounds; ++round) {
                const u64 at = start + round * Warp::size + Warp::lane();
                if (at >= view.count) continue;
                sent[round] = view.representatives ? view.representatives[at] : static_cast<u32>(at);
                places[round] = view.places[sent[round]];
            }
            WARPSET_UNROLL
            for (u32 round = 0; round < rounds; ++round) {
                const u64 at = start + round * Warp::size + Warp::lane();
                outcomes[round] = Outcome::Pending;
                if (at < view.count && view.replies) outcomes[round] = static_cast<Outcome>(view.replies[places[round]]);
            }
            WARPSET_UNROLL
            for (u32 round = 0; round < rounds; ++round) {
                const u64 at = start + round * Warp::size + Warp::lane();
                const bool is_there = at < view.count;
                if (view.representatives) {
                    const bool is_represented = is_there && sent[round] != at;
                    if (is_represented && outcomes[round] == Outcome::New) outcomes[round] = Outcome::Seen;
                    hits += platform::population_count(Warp::ballot(is_represented && outcomes[round] == hit));
                    rejected += platform::population_count(Warp::ballot(is_represented && outcomes[round] == Outcome::Full));
                }
                if (!is_there) continue;
                if (view.outcomes) view.outcomes[at] = static_cast<u8>(outcomes[round]);
                if (!view.references && !view.owners) continue;
                const u32 owner = last_not_above(view.answers, view.ranks, places[round]);
                if (view.owners) view.owners[at] = owner;
                if (view.references) view.references[at] = view.with_references ? reference(view, owner, places[round]) : 0;
            }
        }
        if (Warp::lane() != 0) return;
        // Relaxed: the sums are read after the kernel has ended.
        if (hits != 0) platform::add_relaxed(view.totals, hits);
        if (rejected != 0) platform::add_relaxed(view.totals + 1, rejected);
    }

private:
    WARPSET_FN static WordVector vector(const PartitionView& view, u64 at) { return {view.vectors + at * view.width}; }

    // `words`: words of a vector, which are held in registers; 0 for any width.
    template <u32 words, u32 rounds>
    WARPSET_FN static void scatter_as(const PartitionView& view)
    {
        constexpr u32 tile = rounds * Warp::size;
        for (u64 start = platform::Grid::warp() * tile; start < view.count; start += platform::Grid::warps() * tile) {
            HeldVector<words> vectors[rounds];
            u32 owners[rounds], rows[rounds];
            if constexpr (words > 0) {
                WARPSET_UNROLL
                for (u32 round = 0; round < rounds; ++round) {
                    const u64 at = start + round * Warp::size + Warp::lane();
                    if (at < view.count) vectors[round].read(view.vectors + at * words);
                }
            }
            WARPSET_UNROLL
            for (u32 round = 0; round < rounds; ++round) {
                const u64 at = start + round * Warp::size + Warp::lane();
                owners[round] = no_position;
                if (at >= view.count || (view.representatives && view.representatives[at] != at)) continue;
                u64 hash;
                if constexpr (words > 0) hash = hash_vector(view.seeds, words, view.hash_mask, vectors[round]);
                else hash = hash_vector(view.seeds, view.width, view.hash_mask, vector(view, at));
                owners[round] = last_not_above(view.bounds, view.ranks, hash);
            }
            Warp::sync();
            for (u32 owner = 0; owner < view.ranks; ++owner) reserve<rounds>(view, owner, owners, rows);
            WARPSET_UNROLL
            for (u32 round = 0; round < rounds; ++round) {
                const u64 first = start + round * Warp::size, at = first + Warp::lane();
                u64 to = 0;
                if (owners[round] != no_position) {
                    if (view.places) view.places[at] = static_cast<u32>(view.answers[owners[round]]) + rows[round];
                    // The cursor shows the host that a run is too long.
                    if (rows[round] < view.capacities[owners[round]])
                        to = view.runs[owners[round]] + 4ull * view.width * rows[round];
                }
                if constexpr (words == 0) copy(view, first, to);
                else if (to != 0) vectors[round].write(reinterpret_cast<u32*>(to));
            }
        }
    }

    // Takes rows of an owner's run for those vectors of the tile that it owns. All lanes call it, converged.
    template <u32 rounds>
    WARPSET_FN static void reserve(const PartitionView& view, u32 owner, const u32 (&owners)[rounds], u32 (&rows)[rounds])
    {
        u32 count = 0;
        WARPSET_UNROLL
        for (u32 round = 0; round < rounds; ++round) {
            const u32 mask = Warp::ballot(owners[round] == owner);
            if (owners[round] == owner) rows[round] = count + platform::population_count(mask & ((1u << Warp::lane()) - 1));
            count += platform::population_count(mask);
        }
        if (count == 0) return;
        u64 first = 0;
        // Relaxed: only the uniqueness of the rows matters.
        if (Warp::lane() == 0) first = platform::fetch_add_relaxed(view.cursors + owner * cursor_step, count);
        first = Warp::shuffle(first, 0);
        WARPSET_UNROLL
        for (u32 round = 0; round < rounds; ++round)
            if (owners[round] == owner) rows[round] += static_cast<u32>(first);
    }

    // Reads the reference in an owner's answer at `place`.
    WARPSET_FN static u64 reference(const PartitionView& view, u32 owner, u32 place)
    {
        const u64 first = view.answers[owner], rows = view.cursors[owner * cursor_step];
        return reinterpret_cast<const u64*>(view.replies + first + whole_lines(rows))[place - first];
    }

    // Returns the representative of the vector at `position`. The walk begins at the slot of the vector's hash.
    WARPSET_FN static u32 representative(const PartitionView& view, u32 position, u32 hash)
    {
        for (u32 slot = hash & view.slot_mask;; slot = (slot + 1) & view.slot_mask) {
            u32 found = platform::load_relaxed(view.slots + slot);
            // Relaxed, as the whole claim is: see 4 above.
            if (found == no_position) found = platform::compare_and_swap_relaxed(view.slots + slot, no_position, position);
            if (found == no_position) return position;
            if (are_equal(view, found, position)) return found;
        }
    }

    WARPSET_FN static bool are_equal(const PartitionView& view, u32 a, u32 b)
    {
        const WordVector one = vector(view, a), other = vector(view, b);
        for (u32 word = 0; word < view.width; ++word)
            if (one.word(word) != other.word(word)) return false;
        return true;
    }

    // Copies the vectors from `first` on, one for each lane, to the address that the lane passes, if it is not 0. The lanes share
    // the words, so that neighbouring vectors of a run are written as one piece. All lanes call it, converged.
    WARPSET_FN static void copy(const PartitionView& view, u64 first, u64 to)
    {
        for (u32 word = Warp::lane(); word < Warp::size * view.width; word += Warp::size) {
            const u64 row = Warp::shuffle(to, word / view.width);
            if (row != 0) reinterpret_cast<u32*>(row)[word % view.width] = view.vectors[first * view.width + word];
        }
    }
};

// First line of a message. By this stamp the receiver recognizes the message that it waits for, and rejects messages for other
// ranks or of other rounds. Mirrored by `Stamp` in src/layout/rank.rs.
struct Stamp {
    u64 magic, sequence;
    u32 kind, from, to, width;
    u64 rows, bytes;  // bytes: of the whole message; 0 if there is none
    u64 at;           // where the message is: not a part of it
};

// Mirrored by `StampView` in src/layout/rank.rs.
struct StampView {
    const Stamp* stamps;
    u64 count;
    u64* wrong;          // 1 + the rank of a message that is not as its stamp says, or 0
    const u64* cursors;  // or null: where the rows of runs were counted, as in PartitionView
};

// A message ends with the sequence number and this constant, so that a message whose end is missing is detected.
WARPSET_FN u64 trailer_of(const Stamp& stamp) { return ~stamp.magic ^ (static_cast<u64>(stamp.from) << 32 | stamp.to); }

constexpr u32 stamp_words = 6;  // words of 8 bytes: the fields before `at`

// Writes header and trailer of each message. The rest of the header's line is zeros. If there are cursors, the messages are runs
// that have just been sorted: a message then has as many rows as were counted, and `rows` of its stamp is the run's capacity. A
// run that exceeds its capacity is sorted again before it is stamped.
WARPSET_FN void write_stamps(const StampView& view)
{
    const auto share = platform::Grid::share(view.count);
    for (u64 i = share.first; i < share.last; i += share.step) {
        Stamp stamp = view.stamps[i];
        if (view.cursors) {
            const u64 rows = view.cursors[stamp.to * cursor_step], content = 4ull * stamp.width * rows;
            stamp.bytes = rows == 0 || rows > stamp.rows ? 0 : whole_lines(message_line_bytes + content + message_trailer_bytes);
            stamp.rows = rows;
        }
        if (stamp.bytes == 0) continue;
        u64* header = reinterpret_cast<u64*>(stamp.at);
        const u64* words = reinterpret_cast<const u64*>(&stamp);
        for (u32 word = 0; word < message_line_bytes / 8; ++word) header[word] = word < stamp_words ? words[word] : 0;
        u64* trailer = reinterpret_cast<u64*>(stamp.at + stamp.bytes - message_trailer_bytes);
        trailer[0] = stamp.sequence;
        trailer[1] = trailer_of(stamp);
    }
}

// Compares each message's header and trailer with the expected ones.
WARPSET_FN void check_stamps(const StampView& view)
{
    const auto share = platform::Grid::share(view.count);
    for (u64 i = share.first; i < share.last; i += share.step) {
        const Stamp& stamp = view.stamps[i];
        if (stamp.bytes == 0) continue;
        const u64* header = reinterpret_cast<const u64*>(stamp.at);
        const u64* words = reinterpret_cast<const u64*>(&stamp);
        const u64* trailer = reinterpret_cast<const u64*>(stamp.at + stamp.bytes - message_trailer_bytes);
        bool right = trailer[0] == stamp.sequence && trailer[1] == trailer_of(stamp);
        for (u32 word = 0; word < stamp_words; ++word) right = right && header[word] == words[word];
        // Relaxed: read after the kernel has ended, by the host or by the kernel that puts.
        if (!right) platform::max_relaxed(view.wrong, stamp.from + u64{1});
    }
}

}  // namespace warpset
