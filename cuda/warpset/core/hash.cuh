// Pair-multiply-shift: the hash of a vector.
//
// Thorup, "High speed hashing for integers and strings", 2015, section 3.5; Bergsma 2019, section 2.3. For words x and
// random 64-bit seeds a, b,
//
//   h(x) = ( (a0 + x1) (a1 + x0) + (a2 + x3) (a3 + x2) + ... [+ a_last x_last if the width is odd] + b ) mod 2^64 >> 32
//
// is strongly universal from vectors of one width to 32 bits: two distinct vectors get two independent, uniform values. One
// multiplication hashes two words. Two instances with seeds of their own make the 64 bits that a table of more than 2^32
// buckets needs, so pairwise independence holds for all 64.
//
// Seeds: for word i the pair (a of instance 0, a of instance 1), and after the last word the pair of b's: 16 bytes a word,
// read as one constant access that is the same for the whole warp.
//
// Pairwise independence says nothing of many vectors together. Models and counters make vectors in arithmetic progression, whose
// regular pattern one linear hash maps to crowded buckets. So a bijection of the 64 bits follows (xorshift, odd multiply,
// xorshift), which keeps the guarantee and breaks the pattern.
//
// Sequential: one thread walks its vector (`hash_vector`). Tile-parallel: each lane of a tile adds up the pairs of the words
// it holds and the tile sums the partial hashes (`PartialHash`): addition mod 2^64 is associative, so both give the same value.
//
// `mask` is for tests: all ones in every product table; 0 sends all vectors down one probe sequence.
#pragma once

#include "warpset/core/vectors.cuh"
#include "warpset/platform.cuh"

namespace warpset {

struct PartialHash {
    u64 sum0 = 0, sum1 = 0;

    // Words `index` (even) and `index + 1` of the vector.
    WARPSET_FN void add_pair(const u128* seeds, u32 index, u32 even, u32 odd)
    {
        u128 a = platform::load_constant(seeds + index), b = platform::load_constant(seeds + index + 1);
        sum0 += (a.low + odd) * (b.low + even);
        sum1 += (a.high + odd) * (b.high + even);
    }

    // The last word of a vector of odd width.
    WARPSET_FN void add_last(const u128* seeds, u32 index, u32 word)
    {
        u128 a = platform::load_constant(seeds + index);
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
        u128 b = platform::load_constant(seeds + width);
        u64 hash = ((sum0 + b.low) >> 32 << 32) | ((sum1 + b.high) >> 32);
        hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93ull;  // odd
        return (hash ^ hash >> 32) & mask;
    }
};

// A vector has `vector.pair(i)`, words i and i + 1 as one 64-bit value, the first in the low half, and `vector.word(i)`, one
// word.
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
