// The probe sequence of a hash: double hashing over a prime number of buckets.
//
// The first bucket is the hash scaled to the number of buckets by a high multiply (no modulo, no power of two). The step is the
// product of the hash and an odd constant, scaled the same way: its high bits depend on all the low bits that the first scaling
// did not use. The number of buckets is prime and the step is between 1 and buckets - 1, so `buckets` probes visit every
// bucket exactly once (Knuth, TAOCP 6.4, algorithm D): a bounded search of a small table is a complete search.
//
// At fill 0.9 with one slot a bucket, double hashing visits 2.6 buckets on average, linear probing 5.5. Probing adjacent lines
// is no cheaper than probing random ones (H200: 41 G/s for 32 bytes, 21 for both sectors of 64 bytes by separate requests).
//
// A probe sequence never ends by itself. Every loop over it stops after at most `probe_limit` buckets, even if it looks for a
// known slot: a table that was loaded from a file may hold a vector in a bucket that no search reaches.
//
// Computing a probe sequence reads no memory.
#pragma once

#include "warpset/platform.cuh"

namespace warpset {

struct Probe {
    u64 bucket;
    u64 step;

    WARPSET_FN static Probe start(u64 hash, u64 buckets)
    {
        return {first_bucket(hash, buckets), step_of(hash, buckets)};
    }

    WARPSET_FN static u64 first_bucket(u64 hash, u64 buckets) { return platform::high_product(hash, buckets); }
    WARPSET_FN static u64 step_of(u64 hash, u64 buckets)
    {
        constexpr u64 golden = 0x9E3779B97F4A7C15ull;  // 2^64 / golden ratio, odd
        return 1 + platform::high_product(hash * golden, buckets - 1);
    }

    WARPSET_FN void advance(u64 buckets)
    {
        bucket += step;
        if (bucket >= buckets) bucket -= buckets;
    }
};

}  // namespace warpset
