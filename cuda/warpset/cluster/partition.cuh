// One round of a cluster on one rank: which rank owns each vector, each distinct vector once in the run of its owner, and the
// owners' answers back to where their vectors were offered. src/cluster/mod.rs has the protocol.
//
// Owner. The hash of the whole vector (core/hash.cuh), under seeds of the cluster's own, divides [0, 2^64) among the ranks: r
// owns bounds[r] <= hash < bounds[r + 1]. The seeds are drawn apart from those of any table, so the owner tells nothing of the
// bucket: what a rank owns spreads over all of its buckets.
//
// Representatives. Of equal vectors in a round one is sent, their representative. A filter of slots, each empty or the position
// of a vector in the batch, finds it by claiming: walk from the slot of the hash to the first that is empty, and claim it by one
// compare-and-swap, or to one whose vector is equal.
//
//   1. A slot goes from empty to a position once, and never changes.
//   2. Equal vectors walk the same slots, and pass a slot only over a different vector, which stays there. So they all end at the
//      same slot: whoever has claimed it is the representative of all, and its own.
//   3. There are twice as many slots as vectors, so each walk ends, and nobody waits for anybody.
//   4. Relaxed order is enough: through a position only the batch is read, which nobody writes.
//
// Rows. A second pass gives the representatives of a rank consecutive rows of its run, in tiles of neighbouring vectors, which
// ask the rank's cursor once. So a tile writes whole lines, but for its first and last.
#pragma once

#include "warpset/core/hash.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/core/vectors.cuh"

namespace warpset {

// Messages are whole lines: one for the header, the rows, and at the end of the last line the trailer.
constexpr u32 message_line_bytes = 128, message_trailer_bytes = 16;

// A free slot of the filter; the row of a vector that is not sent, because another represents it.
constexpr u32 no_position = ~0u;

// Mirrored by `PartitionView` in src/cluster/view.rs. Addresses are of the rank's device.
struct PartitionView {
    const u32* vectors;    // count x width words
    u64 count;             // less than 2^31
    const u128* seeds;     // width + 1
    u64 hash_mask;         // all ones, but in tests of bad luck
    const u64* bounds;     // one a rank: the least hash that it owns; bounds[0] = 0
    u32* slots;            // of the filter: slot_mask + 1, at least 2 x count; no_position before `claim`
    u32* representatives;  // count: the position of the vector that is sent
    u32* rows;             // count, of representatives: after `claim` the owner, after `scatter` the row, counted over all runs
    u64* counts;           // one a rank, 0 before `claim`: rows of its run
    u64* cursors;          // one a rank, 0 before `scatter`
    const u64* first_rows; // ranks + 1: rows of the runs before
    const u64* runs;       // one a rank: the address of its first row
    const u64* replies;    // one a rank: the address of its reply's first line of outcomes
    u8* outcomes;          // count, or null
    u64* references;       // count, or null; 0 for a vector that is not stored
    u32* owners;           // count, or null: the rank that has the vector, or would have
    u64* totals;           // two, added to: hits (find-or-put: New; find: Seen), and those rejected
    u32 width, ranks, slot_mask;
    u32 with_references;   // whether replies have references behind their outcomes
};

// The last i with firsts[i] <= value, for `count` ascending numbers of which the first is not above it.
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

// Bytes of `bytes` in whole lines.
WARPSET_FN u64 whole_lines(u64 bytes) { return (bytes + message_line_bytes - 1) / message_line_bytes * message_line_bytes; }

struct Partition {
    using Warp = platform::Warp;

    // Vectors that a warp takes at a time: several for each lane, for which it asks a counter of all warps once.
    static constexpr u32 rounds = Warp::size == 1 ? 256 : 8, tile = rounds * Warp::size;

    // Finds representatives and owners, and counts the rows of each run.
    WARPSET_FN static void claim(const PartitionView& view)
    {
        for (u64 start = platform::Grid::warp() * tile; start < view.count; start += platform::Grid::warps() * tile) {
            u64 hashes[rounds];
            u32 owners[rounds];
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
                owners[round] = no_position;
                if (at >= view.count) continue;
                const u32 position = static_cast<u32>(at), found = representative(view, position, static_cast<u32>(hashes[round]));
                if (found == position) owners[round] = last_not_above(view.bounds, view.ranks, hashes[round]);
                view.representatives[at] = found;
                view.rows[at] = owners[round];
            }
            Warp::sync();
            for (u32 owner = 0; owner < view.ranks; ++owner) {
                const u32 count = count_of(owners, owner);
                // Relaxed: the sum is read after the kernel has ended.
                if (count != 0 && Warp::lane() == 0) platform::add_relaxed(view.counts + owner, count);
            }
        }
    }

    // Copies each representative to a row of its owner's run.
    WARPSET_FN static void scatter(const PartitionView& view)
    {
        for (u64 start = platform::Grid::warp() * tile; start < view.count; start += platform::Grid::warps() * tile) {
            u32 owners[rounds], rows[rounds];
            WARPSET_UNROLL
            for (u32 round = 0; round < rounds; ++round) {
                const u64 at = start + round * Warp::size + Warp::lane();
                owners[round] = at < view.count ? view.rows[at] : no_position;
            }
            for (u32 owner = 0; owner < view.ranks; ++owner) {
                const u32 count = count_of(owners, owner);
                if (count == 0) continue;
                u64 row = 0;
                // Relaxed: only the uniqueness of the rows matters.
                if (Warp::lane() == 0) row = platform::fetch_add_relaxed(view.cursors + owner, count);
                row = Warp::shuffle(row, 0);
                WARPSET_UNROLL
                for (u32 round = 0; round < rounds; ++round) {
                    const u32 mask = Warp::ballot(owners[round] == owner);
                    if (owners[round] == owner)
                        rows[round] = static_cast<u32>(row) + platform::population_count(mask & ((1u << Warp::lane()) - 1));
                    row += platform::population_count(mask);
                }
            }
            WARPSET_UNROLL
            for (u32 round = 0; round < rounds; ++round) {
                const u64 first = start + round * Warp::size, at = first + Warp::lane();
                const bool is_sent = owners[round] != no_position;
                if (is_sent) view.rows[at] = static_cast<u32>(view.first_rows[owners[round]]) + rows[round];
                copy(view, first, is_sent ? view.runs[owners[round]] + 4ull * view.width * rows[round] : 0);
            }
        }
    }

    // Gives every vector what has become of its representative. Of equal vectors only the representative is New.
    WARPSET_FN static void gather(const PartitionView& view, Outcome hit)
    {
        u64 hits = 0, rejected = 0;
        for (u64 start = platform::Grid::warp() * tile; start < view.count; start += platform::Grid::warps() * tile) {
            for (u32 round = 0; round < rounds; ++round) {
                const u64 at = start + round * Warp::size + Warp::lane();
                Outcome outcome = Outcome::Unwritten;
                if (at < view.count) {
                    const u32 sent = view.representatives[at], row = view.rows[sent];
                    const u32 owner = last_not_above(view.first_rows, view.ranks, row);
                    const u64 in_run = row - view.first_rows[owner], count = view.first_rows[owner + 1] - view.first_rows[owner];
                    const u8* reply = reinterpret_cast<const u8*>(view.replies[owner]);
                    outcome = static_cast<Outcome>(reply[in_run]);
                    if (outcome == Outcome::New && sent != at) outcome = Outcome::Seen;
                    if (view.outcomes) view.outcomes[at] = static_cast<u8>(outcome);
                    if (view.references)
                        view.references[at] = view.with_references ? reinterpret_cast<const u64*>(reply + whole_lines(count))[in_run] : 0;
                    if (view.owners) view.owners[at] = owner;
                }
                hits += platform::population_count(Warp::ballot(outcome == hit));
                rejected += platform::population_count(Warp::ballot(outcome == Outcome::Full));
            }
        }
        if (Warp::lane() != 0) return;
        // Relaxed: the sums are read after the kernel has ended.
        if (hits != 0) platform::add_relaxed(view.totals, hits);
        if (rejected != 0) platform::add_relaxed(view.totals + 1, rejected);
    }

private:
    WARPSET_FN static WordVector vector(const PartitionView& view, u64 at) { return {view.vectors + at * view.width}; }

    // The walk of the vector at `position`, whose hash starts it.
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

    // How many vectors of the tile go to an owner. All lanes call it, converged.
    WARPSET_FN static u32 count_of(const u32 (&owners)[rounds], u32 owner)
    {
        u32 count = 0;
        WARPSET_UNROLL
        for (u32 round = 0; round < rounds; ++round) count += platform::population_count(Warp::ballot(owners[round] == owner));
        return count;
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

// What a message begins with. By it the receiver knows that this message is the one it waits for, and none that was meant for
// another rank, or another round. Mirrored by `Stamp` in src/cluster/view.rs.
struct Stamp {
    u64 magic, sequence;
    u32 kind, from, to, width;
    u64 rows, bytes;  // bytes: of the whole message; 0 if there is none
    u64 at;           // where the message is: not a part of it
};

// Mirrored by `StampView` in src/cluster/view.rs.
struct StampView {
    const Stamp* stamps;
    u64 count;
    u64* wrong;  // 1 + the number of a message that is not as its stamp says, or 0
};

// A message ends with the sequence number and this, so that one whose end is missing is known.
WARPSET_FN u64 trailer_of(const Stamp& stamp) { return ~stamp.magic ^ (static_cast<u64>(stamp.from) << 32 | stamp.to); }

constexpr u32 stamp_words = 6;  // of 8 bytes, those before `at`

// Writes header and trailer of each message. The rest of the header's line is zeros: of a reply, the owner's counts follow there.
WARPSET_FN void write_stamps(const StampView& view)
{
    const auto share = platform::Grid::share(view.count);
    for (u64 i = share.first; i < share.last; i += share.step) {
        const Stamp& stamp = view.stamps[i];
        if (stamp.bytes == 0) continue;
        u64* header = reinterpret_cast<u64*>(stamp.at);
        const u64* words = reinterpret_cast<const u64*>(&stamp);
        for (u32 word = 0; word < message_line_bytes / 8; ++word) header[word] = word < stamp_words ? words[word] : 0;
        u64* trailer = reinterpret_cast<u64*>(stamp.at + stamp.bytes - message_trailer_bytes);
        trailer[0] = stamp.sequence;
        trailer[1] = trailer_of(stamp);
    }
}

// Compares each message's header and trailer with what they are to be.
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
        // Relaxed: read after the kernel has ended.
        if (!right) platform::max_relaxed(view.wrong, i + 1);
    }
}

}  // namespace warpset
