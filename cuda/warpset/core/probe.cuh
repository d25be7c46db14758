// The probe sequence of a hash: slices, and double hashing inside a slice.
//
// The first bucket is the hash scaled to the number of buckets by a high multiply (no modulo, no power of two). So it grows with
// the hash: the order of first buckets is the order of the hashes, in a table of any size. Growth reads and writes both tables
// from the beginning to the end.
//
// A *slice* is a run of adjacent buckets with 8,192 slots, so their number is a power of two. A table has any number of them,
// eight or more. Nearly all searches end in the slice in which they begin, so a slice is almost a table of its own. The step is
// odd, so it leads to every bucket of a slice. A smaller table is one slice, whose number of buckets is a prime, and the step is
// between 1 and that number (Knuth, TAOCP 6.4, algorithm D): a bounded search of a small table is a complete search.
// (src/layout/size.rs has the numbers.)
//
// After a 32nd of the buckets of a slice, all of them full, a sequence goes on in another slice, which depends on its step: the
// number of vectors whose hashes belong to one slice varies (by 1 % of its slots, one standard deviation), so at fill 0.95 some
// slices are full. Vectors in another slice than their first one, of 10^7, with 1, 4 and 16 slots a bucket: 0, 0 and 7 if a table
// has been filled to 0.9; 2, 40 and 1,000 to 0.95; 500, 1,300 and 7,000 to 0.97. (Simulated, 8,000 slices.)
//
// The step is made of low bits of the hash, multiplied so that the used ones depend on all: they say nothing about the first
// bucket, which is made of high ones.
//
// At fill 0.9 with one slot a bucket, double hashing visits 2.6 buckets on average, linear probing 5.5. Probing adjacent lines
// is no cheaper than probing random ones (H200: 41 G/s for 32 bytes, 21 for both sectors of 64 bytes by separate requests).
//
// A probe sequence never ends by itself. Every loop over it stops after at most `probe_limit` buckets, even if it looks for a
// known slot: a table that was loaded from a file may hold a vector in a bucket that no search reaches.
//
// A probe sequence touches no memory. What it needs to know of a table are fields of its view: `buckets`, `probe_limit`,
// `slice_buckets`, and `slice_mask`, the bits of a bucket's number that are its number in its slice (all, if there is one slice).
#pragma once

#include "warpset/platform.cuh"

namespace warpset {

struct Probe {
    u64 bucket;
    u32 step;    // odd; less than `slice_buckets`
    u32 probes;  // number of buckets that the sequence has gone past

    template <class View>
    WARPSET_FN static Probe start(u64 hash, const View& view)
    {
        Probe probe = of_first_bucket(hash, view);
        probe.make_step(view);
        return probe;
    }

    // As `start`, but the step is made later: the sequence must not be advanced before. Most searches end in the first bucket.
    template <class View>
    WARPSET_FN static Probe of_first_bucket(u64 hash, const View& view)
    {
        return {first_bucket(hash, view.buckets), static_cast<u32>(hash), 0};
    }

    template <class View>
    WARPSET_FN void make_step(const View& view)
    {
        step = 2 * high_product(step * golden, view.slice_buckets / 2) + 1;
    }

    WARPSET_FN static u64 first_bucket(u64 hash, u64 buckets) { return platform::high_product(hash, buckets); }

    // Goes to the next bucket. Returns false if the search has looked at `probe_limit` buckets.
    template <class View>
    WARPSET_FN bool advance(const View& view)
    {
        bucket = (bucket & ~static_cast<u64>(view.slice_mask)) | next_in_slice(static_cast<u32>(bucket), view);
        ++probes;
        if ((probes & (view.slice_mask >> looked_at_log2)) == 0) leave_slice(view);
        return probes < view.probe_limit;
    }

    // As `advance`, for a bucket's number in the slice. Returns false if the sequence leaves the slice.
    template <class View>
    WARPSET_FN bool advance_in_slice(u32& in_slice, const View& view)
    {
        in_slice = next_in_slice(in_slice, view);
        ++probes;
        return (probes & (view.slice_mask >> looked_at_log2)) != 0 && probes < view.probe_limit;
    }

private:
    template <class View>
    WARPSET_FN u32 next_in_slice(u32 of_bucket, const View& view) const
    {
        const u32 next = (of_bucket & view.slice_mask) + step;
        const u32 wrapped = next - view.slice_buckets;  // huge if `next` is in the slice
        return next < wrapped ? next : wrapped;
    }

    static constexpr u32 looked_at_log2 = 5;  // a slice is left after a 32nd of its buckets
    static constexpr u32 golden = 0x9E3779B1u;  // 2^32 / golden ratio, odd

    WARPSET_FN static u32 high_product(u32 a, u32 b) { return static_cast<u32>(static_cast<u64>(a) * b >> 32); }

    // Goes to the same place of another slice. (A table of one slice is never left.)
    template <class View>
    WARPSET_FN void leave_slice(const View& view)
    {
        const u32 log2 = platform::population_count(view.slice_mask);
        const u32 slices = static_cast<u32>(view.buckets >> log2);
        u32 slice = static_cast<u32>(bucket >> log2) + 1 + high_product(step * golden, slices - 1);
        if (slice >= slices) slice -= slices;
        bucket = static_cast<u64>(slice) << log2 | (bucket & view.slice_mask);
    }
};

}  // namespace warpset
