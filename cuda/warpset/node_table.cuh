// The node table: pairs of 32-bit halves, each stored once and known by a 32-bit reference.
//
// A node is 8 bytes, claimed by one compare-and-swap, so a slot is never half decided: EMPTY, then a node for ever. Find-or-put is
// chained claiming (claim.cuh) with one chunk: equal nodes walk the same slots in the same order and leave a slot only over a
// different node, so a node is in one slot at most, and its reference - the number of that slot - stands for it.
//
// EMPTY is 0, and the node (0, 0) is never stored: its reference is the number of one more slot behind the last, which nobody claims,
// and which so reads as (0, 0) for ever. Every pair of words is a legal node; the commonest one of real models costs no access.
//
// Where the pairs come from is no business of this table: whether a half is a word or a reference is known by its place in a tree
// (tree_shape.cuh). Leaves and inner nodes of all places share the table, and may even share a slot.
//
// Probing: buckets of two slots, read by one 16-byte request, double hashing over a prime number of them (probe.cuh, with 32 bits).
// H200, find-or-put of trees of 8 words, 2^27 vectors, 56 to 64 registers, G/s with the node table half full, in L2 / at a compression
// ratio of 0.73: buckets of one slot 11.3 / 5.1, two slots 11.9 / 5.4, four in two requests 11.3 / 5.1, four in one 11.5 / 3.4.
//
// Order: relaxed, device scope. The value read is the value compared. A reference is read through by `load`; that is right if the
// node was observed by the reader, or by whoever handed the reference over with synchronisation (see tree_table.cuh).
#pragma once

#include "warpset/claim.cuh"

namespace warpset {

// Mirrored by `NodeView` in src/raw/view.rs.
struct NodeView {
    u64* slots;          // 2 a bucket, and one more that stays EMPTY
    u64* stored;         // how many nodes
    u64 seeds[3];        // of Pair-multiply-shift for one pair (hash.cuh)
    u32 buckets;         // prime; 2 * buckets + 1 < 2^32
    u32 probe_limit;     // buckets looked at before a node is missing
    u32 hash_mask;       // all ones, but in tests of bad luck
    u32 width;           // words of the vectors whose trees these are; 0 if there is no node table
};

struct NodeTable {
    static constexpr u32 slots_per_bucket = 2;
    static constexpr u64 empty = 0;
    // Instead of a reference: the table is full, or (looking only) the node is not there. No slot has this number.
    static constexpr u32 missing = ~0u;

    NodeView view;

    // The reference of (0, 0).
    WARPSET_FN u32 zero() const { return view.buckets * slots_per_bucket; }

    // The node at a reference.
    WARPSET_FN u64 load(u32 reference) const { return platform::load_relaxed(view.slots + reference); }

    WARPSET_FN bool is_reference(u32 reference) const { return reference <= zero(); }

    // Finds `count` nodes at once, those whose bit is set in `wanted`, and puts those that are not there: `reference[i]` becomes the
    // reference of node i, or `missing`. Their requests are under way together. `fresh` counts those that this call put.
    template <Operation operation, u32 count>
    WARPSET_FN void find(const u64 (&node)[count], u32 wanted, u32 (&reference)[count], u32& fresh) const
    {
        u32 bucket[count], hash[count];
        Bucket seen[count];
        WARPSET_UNROLL
        for (u32 i = 0; i < count; ++i) {
            hash[i] = hash_of(node[i]);
            bucket[i] = first_bucket(hash[i]);
            reference[i] = missing;
        }
        // Without a condition: with one, the compiler judges the first bucket before it asks for the last.
        WARPSET_UNROLL
        for (u32 i = 0; i < count; ++i) platform::load_row_relaxed(slot(bucket[i], 0), seen[i]);
        WARPSET_UNROLL
        for (u32 i = 0; i < count; ++i) {
            if (node[i] != empty) continue;
            reference[i] = zero();
            wanted &= ~(1u << i);
        }
        for (u32 probes = 1; wanted != 0; ++probes) {
            // A bucket is left only over two other nodes; the first EMPTY slot is where the node would be.
            u32 claims = 0, place[count];
            WARPSET_UNROLL
            for (u32 i = 0; i < count; ++i) {
                if (!(wanted >> i & 1)) continue;
                const u64 first = seen[i].chunk[0], second = seen[i].chunk[1];
                place[i] = first == node[i] || first == empty ? 0 : 1;
                const u64 found = place[i] == 0 ? first : second;
                if (found == node[i]) settle(i, bucket[i], place[i], wanted, reference);
                else if (found != empty) bucket[i] = next_bucket(bucket[i], hash[i]);
                else if (operation == Operation::Find) wanted &= ~(1u << i);
                else claims |= 1u << i;
            }
            if (operation == Operation::FindOrPut && claims != 0) {
                u64 old[count];
                // Predicated, not branched around, so that all are under way together.
                WARPSET_UNROLL
                for (u32 i = 0; i < count; ++i)
                    platform::compare_and_swap_if(claims >> i & 1, slot(bucket[i], claims >> i & 1 ? place[i] : 0), empty, node[i], old[i]);
                WARPSET_UNROLL
                for (u32 i = 0; i < count; ++i) {
                    if (!(claims >> i & 1)) continue;
                    // Lost to another node: the bucket is looked at again.
                    if (old[i] != empty && old[i] != node[i]) continue;
                    fresh += old[i] == empty;
                    settle(i, bucket[i], place[i], wanted, reference);
                }
            }
            if (probes >= view.probe_limit) break;
            WARPSET_UNROLL
            for (u32 i = 0; i < count; ++i)
                if (wanted >> i & 1) platform::load_row_relaxed(slot(bucket[i], 0), seen[i]);
        }
    }

    // The same for one node.
    template <Operation operation>
    WARPSET_FN u32 find(u64 node, u32& fresh) const
    {
        const u64 nodes[1] = {node};
        u32 reference[1];
        find<operation>(nodes, 1, reference, fresh);
        return reference[0];
    }

private:
    using Bucket = platform::Row<u64, slots_per_bucket>;

    WARPSET_FN u64* slot(u32 bucket, u32 place) const { return view.slots + static_cast<u64>(bucket) * slots_per_bucket + place; }

    template <u32 count>
    WARPSET_FN static void settle(u32 i, u32 bucket, u32 place, u32& wanted, u32 (&reference)[count])
    {
        reference[i] = bucket * slots_per_bucket + place;
        wanted &= ~(1u << i);
    }

    // One instance of Pair-multiply-shift and a bijection of the 32 bits, as in hash.cuh: there are fewer than 2^32 buckets.
    WARPSET_FN u32 hash_of(u64 node) const
    {
        u64 product = (view.seeds[0] + (node >> 32)) * (view.seeds[1] + static_cast<u32>(node)) + view.seeds[2];
        u32 hash = static_cast<u32>(product >> 32);
        hash = (hash ^ hash >> 15) * 0x85EBCA77u;  // odd
        return (hash ^ hash >> 13) & view.hash_mask;
    }
    WARPSET_FN u32 first_bucket(u32 hash) const { return high(hash, view.buckets); }
    WARPSET_FN u32 next_bucket(u32 bucket, u32 hash) const
    {
        u64 next = static_cast<u64>(bucket) + 1 + high(hash * 0x9E3779B1u, view.buckets - 1);
        return static_cast<u32>(next >= view.buckets ? next - view.buckets : next);
    }
    WARPSET_FN static u32 high(u32 a, u32 b) { return static_cast<u32>(static_cast<u64>(a) * b >> 32); }
};

}  // namespace warpset
