// The node table: pairs of 32-bit halves, each stored once and known by a 32-bit reference.
//
// A node is 8 bytes, claimed by one compare-and-swap, so a slot is never half decided: EMPTY, then a node for ever. Find-or-put
// is chained claiming (core/claim.cuh) with one chunk. Searches for equal nodes walk the same slots in the same order, and leave
// a slot only over a different node. So a node is in at most one slot, and its reference is the number of that slot.
//
// EMPTY is 0, and the node (0, 0) is never stored. Its reference is the number of an extra slot behind the last one. No thread
// claims that slot, so it always reads as (0, 0). So every pair of words is a legal node, and the most common one of real models
// costs no access.
//
// Leaves and inner nodes of all positions share this table; a leaf and an inner node with equal halves even share a slot. Whether
// a half is a word or a reference depends only on its position in a tree (tree/shape.cuh).
//
// Probing: buckets of two slots, read by one 16-byte request; double hashing over a prime number of buckets (core/probe.cuh, with
// 32 bits). H200, prototypes, find-or-put of trees of 8 words, 2^27 vectors, G/s with the node table half full, in L2 / at a
// compression ratio of 0.73: buckets of one slot 11.3 / 5.1, two slots 11.9 / 5.4, four slots in two requests 11.3 / 5.1, four
// slots in one request 11.5 / 3.4. Requesting first buckets unconditionally, with predicated compare-and-swaps, so that the
// requests are certainly issued together, lost 4 to 10 %.
//
// Order: relaxed, device scope. The value read is the value compared. `load` reads the node of a reference. That is correct if
// the reader has observed the node, or got the reference with synchronisation from a thread that has (see tree/table.cuh).
#pragma once

#include "warpset/core/claim.cuh"
#include "warpset/core/outcome.cuh"

namespace warpset {

// Mirrored by `NodeView` in src/layout/view.rs.
struct NodeView {
    u64* slots;          // two per bucket, and an extra one that stays EMPTY
    u64* stored;         // number of stored nodes
    u64 seeds[3];        // seeds of Pair-multiply-shift for one pair (core/hash.cuh)
    u32 buckets;         // prime, less than 2^31
    u32 probe_limit;     // buckets probed before a node counts as missing; less than 2^15
    u32 hash_mask;       // all ones; tests clear bits to force collisions
    u32 width;           // words of the vectors whose trees these are; 0 if there is no node table
};

struct NodeTable {
    static constexpr u32 slots_per_bucket = 2;
    static constexpr u64 empty = 0;
    // Returned instead of a reference if the table is full or, in a look-up, if the node is absent. No slot has this number.
    static constexpr u32 missing = ~0u;

    NodeView view;

    // The reference of (0, 0).
    WARPSET_FN u32 zero() const { return view.buckets * slots_per_bucket; }

    // The node at a reference.
    WARPSET_FN u64 load(u32 reference) const { return platform::load_relaxed(view.slots + reference); }

    WARPSET_FN bool is_reference(u32 reference) const { return reference <= zero(); }

    // Finds or puts the nodes that `tasks` provides (or only finds them). Searches for `in_flight` nodes at a time, and begins
    // the next as soon as one is done. `fresh` counts the nodes that this call put.
    //
    //   tasks.more()                   whether tasks are left
    //   tasks.take(i, node)            takes the next task as number i of those in flight; false if it needs no node
    //   tasks.finish(i, reference)     task i is done: its node's reference, or `missing`
    template <Operation operation, u32 in_flight, class Tasks>
    WARPSET_FN void find_all(Tasks& tasks, u32& fresh) const
    {
        static_assert(in_flight <= 2, "the counts of two nodes share a register");
        u64 node[in_flight] = {};
        u32 at[in_flight] = {};  // first slot of the current bucket
        u32 busy = 0, left = 0;  // left: buckets that remain for each task, the current one included
        while (busy != 0 || tasks.more()) {
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i) {
                if ((busy >> i & 1) || !tasks.more() || !tasks.take(i, node[i])) continue;
                if (node[i] == empty) {
                    tasks.finish(i, zero());
                    continue;
                }
                at[i] = first_slot(hash(node[i]));
                left = (left & ~(0xFFFFu << 16 * i)) | view.probe_limit << 16 * i;
                busy |= 1u << i;
            }
            platform::Row<u64, slots_per_bucket> seen[in_flight];
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i)
                if (busy >> i & 1) platform::load_row_relaxed(view.slots + at[i], seen[i]);
            WARPSET_UNROLL
            for (u32 i = 0; i < in_flight; ++i) {
                if (!(busy >> i & 1)) continue;
                // A search leaves a bucket only if both slots hold other nodes. The first EMPTY slot is the one where the node
                // would be.
                const u64 first = seen[i].chunk[0];
                const bool in_second = first != node[i] && first != empty;
                u64 found = in_second ? seen[i].chunk[1] : first;
                if (operation == Operation::FindOrPut && found == empty) {
                    found = claim(view.slots + at[i] + in_second, empty, node[i]);
                    if (found == empty) {
                        found = node[i];
                        ++fresh;
                    } else if (found != node[i]) {
                        continue;  // lost to another node: the bucket is looked at again
                    }
                }
                if (found != node[i]) {
                    // Counts only buckets that the search leaves. If another lane has put the node, this lane must get as far as
                    // that lane did, however many claims it loses.
                    if (found != empty && ((left -= 1u << 16 * i) >> 16 * i & 0xFFFF) != 0) {
                        at[i] = next_slot(at[i], hash(node[i]));
                        continue;
                    }
                    tasks.finish(i, missing);
                } else {
                    tasks.finish(i, at[i] + in_second);
                }
                busy &= ~(1u << i);
            }
        }
    }

    // As `find_all`, for one node. Returns its reference, or `missing`.
    template <Operation operation>
    WARPSET_FN u32 find(u64 node, u32& fresh) const
    {
        if (node == empty) return zero();
        u32 at = first_slot(hash(node));
        u32 left = view.probe_limit;
        while (true) {
            platform::Row<u64, slots_per_bucket> seen;
            platform::load_row_relaxed(view.slots + at, seen);
            const bool in_second = seen.chunk[0] != node && seen.chunk[0] != empty;
            u64 found = in_second ? seen.chunk[1] : seen.chunk[0];
            if (found == node) return at + in_second;
            if (found == empty) {
                if (operation == Operation::Find) return missing;
                found = claim(view.slots + at + in_second, empty, node);
                fresh += found == empty;
                if (found == empty || found == node) return at + in_second;
            } else {
                if (--left == 0) return missing;
                at = next_slot(at, hash(node));
            }
        }
    }

    // Number of buckets that a search reads to find the node stored at a reference. Returns `probe_limit` if a search does not
    // find it within that many buckets (a file may hold nodes in slots where no search puts them).
    WARPSET_FN u32 probes(u32 reference, u64 node) const
    {
        if (node == empty) return 0;
        const u32 bucket = reference / slots_per_bucket * slots_per_bucket;
        u32 probes = 1;
        for (u32 at = first_slot(hash(node)); at != bucket && probes < view.probe_limit; ++probes) at = next_slot(at, hash(node));
        return probes;
    }

    // Finds a node by two neighbouring lanes, an even one and the next. Both pass the node and get the reference. As in the *node
    // groups* of Bergsma (2019), chapter 6, each lane compares 32 bits of each slot. Each reads one of the two slots whole and
    // passes the other lane its half, because a 4-byte read has no defined value in memory that is compared and swapped 8 bytes
    // at a time. All lanes of a warp call it, converged.
    template <Operation operation>
    WARPSET_FN u32 find_by_two(u64 node, bool wanted, u32& fresh) const
    {
        using Warp = platform::Warp;
        static_assert(slots_per_bucket == 2, "a slot for each lane");
        const u32 side = Warp::lane() & 1, pair_start = Warp::lane() - side;
        const u32 mine = half(node, side);
        bool searching = wanted && node != empty;
        u32 at = searching ? first_slot(hash(node)) : 0;
        u32 left = view.probe_limit;
        u32 reference = wanted ? zero() : missing;
        while (Warp::ballot(searching) != 0) {
            const u64 read = searching ? load(at + side) : empty;
            const u32 from_other = Warp::shuffle(half(read, 1 - side), Warp::lane() ^ 1);
            // Both slots of a bucket are read together. If neither holds the node, it belongs in the first EMPTY one; without
            // one, the search goes on.
            u32 chosen = slots_per_bucket;
            bool open = false;
            WARPSET_UNROLL
            for (u32 slot = 0; slot < slots_per_bucket; ++slot) {
                const u32 entry = slot == side ? half(read, side) : from_other;
                const bool holds = (Warp::ballot(entry == mine) >> pair_start & 3) == 3;
                const bool is_empty = (Warp::ballot(entry == 0) >> pair_start & 3) == 3;
                if (chosen == slots_per_bucket && (holds || is_empty)) {
                    chosen = slot;
                    open = is_empty;
                }
            }
            u64 found = node;
            if (operation == Operation::FindOrPut && searching && open && side == 0) {
                found = claim(view.slots + at + chosen, empty, node);
                fresh += found == empty;
            }
            found = Warp::shuffle(found, pair_start);
            if (!searching) continue;
            if (chosen == slots_per_bucket) {
                if (--left == 0) {
                    reference = missing;
                    searching = false;
                } else {
                    at = next_slot(at, hash(node));
                }
            } else if (open && operation == Operation::Find) {
                reference = missing;
                searching = false;
            } else if (found == empty || found == node) {
                reference = at + chosen;
                searching = false;
            }  // otherwise the claim was lost to another node: look at the bucket again
        }
        return reference;
    }

private:
    WARPSET_FN static u32 half(u64 node, u32 side) { return static_cast<u32>(side == 0 ? node : node >> 32); }

    // One instance of Pair-multiply-shift and a bijection, as in core/hash.cuh. 32 bits suffice for fewer than 2^32 buckets.
    WARPSET_FN u32 hash(u64 node) const
    {
        u64 product = (view.seeds[0] + (node >> 32)) * (view.seeds[1] + static_cast<u32>(node)) + view.seeds[2];
        u32 hash = static_cast<u32>(product >> 32);
        hash = (hash ^ hash >> 15) * 0x85EBCA77u;  // odd
        return (hash ^ hash >> 13) & view.hash_mask;
    }
    // First slot of the first bucket of the probe sequence, and of each next bucket.
    WARPSET_FN u32 first_slot(u32 hash) const { return high(hash, view.buckets) * slots_per_bucket; }
    WARPSET_FN u32 next_slot(u32 slot, u32 hash) const
    {
        u32 bucket = slot / slots_per_bucket + 1 + high(hash * 0x9E3779B1u, view.buckets - 1);  // less than 2^32
        return (bucket >= view.buckets ? bucket - view.buckets : bucket) * slots_per_bucket;
    }
    WARPSET_FN static u32 high(u32 a, u32 b) { return static_cast<u32>(static_cast<u64>(a) * b >> 32); }
};

}  // namespace warpset
