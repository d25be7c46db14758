// Pair-multiply-shift: the hash of a vector.
//
// Thorup, "High speed hashing for integers and strings", 2015, section 3.5; Bergsma 2019, section 2.3. For words x and
// random 64-bit seeds a, b,
//
//   h(x) = ( (a0 + x1) (a1 + x0) + (a2 + x3) (a3 + x2) + ... [+ a_last x_last if the width is odd] + b ) mod 2^64 >> 32
//
// is strongly universal from vectors of one width to 32 bits: two distinct vectors get two independent, uniform values. One
// multiplication hashes two words. A table of more than 2^32 buckets needs 64 bits. Two instances with separate seeds supply
// them, so pairwise independence holds for all 64.
//
// Seeds: word i has the pair (a of instance 0, a of instance 1); the pair of b's follows the last word. A pair has 16 bytes. A
// warp reads it by one uniform constant access.
//
// Pairwise independence does not bound how many vectors share a bucket. Models and counters produce vectors in arithmetic
// progression, and a linear hash alone maps that regular pattern to crowded buckets. So a bijection of the 64 bits follows
// (xorshift, odd multiply, xorshift): it keeps the guarantee and breaks the pattern.
//
// Sequential: one thread hashes its whole vector (`hash_vector`). Tile-parallel: each lane of a tile hashes the pairs that it
// holds, and the tile adds up the partial hashes (`PartialHash`). Addition mod 2^64 is associative, so both give the same value.
//
// `mask` is all ones, except in tests. With 0, all vectors share one probe sequence.
#pragma once

#include "warpset/core/vectors.cuh"
#include "warpset/platform.cuh"

namespace warpset {

struct PartialHash {
    u64 sum0 = 0, sum1 = 0;

    // Adds words `index` (even) and `index + 1` of the vector.
    WARPSET_FN void add_pair(const u128* seeds, u32 index, u32 even, u32 odd)
    {
        add_pair(platform::load_constant(seeds + index), platform::load_constant(seeds + index + 1), even, odd);
    }

    // As above, with the seeds of both words.
    WARPSET_FN void add_pair(u128 a, u128 b, u32 even, u32 odd)
    {
        sum0 += (a.low + odd) * (b.low + even);
        sum1 += (a.high + odd) * (b.high + even);
    }

    // Adds the last word of a vector of odd width.
    WARPSET_FN void add_last(const u128* seeds, u32 index, u32 word)
    {
        add_last(platform::load_constant(seeds + index), word);
    }

    WARPSET_FN void add_last(u128 a, u32 word)
    {
        sum0 += a.low * word;
        sum1 += a.high * word;
    }

    WARPSET_FN void add(PartialHash other)
    {
        sum0 += other.sum0;
        sum1 += other.sum1;
    }

    WARPSET_FN u64 finish(const u128* seeds, u32 width, u64 mask) const
    {
        return finish(platform::load_constant(seeds + width), mask);
    }

    WARPSET_FN u64 finish(u128 b, u64 mask) const
    {
        u64 hash = ((sum0 + b.low) >> 32 << 32) | ((sum1 + b.high) >> 32);
        hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93ull;  // odd
        return (hash ^ hash >> 32) & mask;
    }
};

// Seeds of vectors of one, two or four words, as an argument of a kernel: there they are constants, which take neither loads nor
// registers. Mirrored by `ShortSeeds` in src/backend/cuda/bulk_plan.rs.
struct ShortSeeds {
    u128 words[5];

    // Hashes a vector of one word.
    WARPSET_FN u64 hash(u32 word, u64 mask) const
    {
        PartialHash sum;
        sum.add_last(words[0], word);
        return sum.finish(words[1], mask);
    }

    // Hashes a vector of two words, the first in the low half.
    WARPSET_FN u64 hash(u64 pair, u64 mask) const
    {
        PartialHash sum;
        sum.add_pair(words[0], words[1], static_cast<u32>(pair), static_cast<u32>(pair >> 32));
        return sum.finish(words[2], mask);
    }

    // Hashes a vector of four words, the first in the low half.
    WARPSET_FN u64 hash(u128 quad, u64 mask) const
    {
        PartialHash sum;
        sum.add_pair(words[0], words[1], static_cast<u32>(quad.low), static_cast<u32>(quad.low >> 32));
        sum.add_pair(words[2], words[3], static_cast<u32>(quad.high), static_cast<u32>(quad.high >> 32));
        return sum.finish(words[4], mask);
    }
};

// Hashes a vector. `vector.pair(i)` returns words i and i + 1 as one 64-bit value, the first in the low half; `vector.word(i)`
// returns one word.
template <class Vector, class Warp = platform::Warp>
WARPSET_FN u64 hash_vector(const u128* seeds, u32 width, u64 mask, const Vector& vector)
{
    PartialHash hash;
    u32 index = 0;
    if constexpr (Warp::size == 1) {
        if (const u32* words = words_of(vector)) index = Warp::add_pairs(seeds, words, width, hash.sum0, hash.sum1);
    }
    WARPSET_UNROLL_BY(4)
    for (; index + 1 < width; index += 2) {
        u64 pair = vector.pair(index);
        hash.add_pair(seeds, index, static_cast<u32>(pair), static_cast<u32>(pair >> 32));
    }
    if (width % 2 == 1) hash.add_last(seeds, width - 1, vector.word(width - 1));
    return hash.finish(seeds, width, mask);
}

}  // namespace warpset
