// Family of invertible, numbered hash functions: key -> hash, both of `bits` bits (8 to 64).
//
// A compact table *quotients* hashes (Cleary 1984; Knuth, TAOCP 6.4, exercise 13): it stores only the part of a hash that does
// not follow from the bucket (compact/table.cuh). So keys must be computable from hashes. For a key x, modulo 2^bits,
//
//   scrambled = fold(fold(x) * m0) * m1         fold(x) = x ^ x >> ceil(bits / 2)
//   hash_f    = fold(scrambled + f * step) * m2   m0, m1, m2, step: odd
//
// Each step is a bijection of the `bits`-bit numbers. `fold` is its own inverse, because the bits that it XORs come from the half
// that it leaves unchanged. An odd factor has an inverse modulo 2^bits. The high bits of a product depend on all bits of its
// factors, and they select the bucket. `fold` mixes the high bits into the low ones for the next product. All functions of a key
// share the first two products, so each further function costs one multiplication.
//
// All of these steps are needed.
//   - Without m1, bucket loads of 2 * 10^5 consecutive 24-bit keys, or of keys that differ only in their high bits, had up to 3.5
//     times the variance of chance (chi-square over its degrees of freedom; 40 random families). With m1 no family was 6 standard
//     deviations off, for any keys and bits (as tested in src/layout/permutation.rs).
//   - Functions that are multiples of one product, scrambled * (m2 + 2 f step), are as good for most keys. But a key whose
//     scrambled value is 0, or a multiple of a high power of two, gets one bucket, or only a few, from all functions.
//
// The host's implementation is in src/layout/permutation.rs; tests compare both. Wijs and Osama (2024, section 4.1) use
// xorshifts and odd factors too.
#pragma once

#include "warpset/platform.cuh"

namespace warpset {

// Mirrored by `HashView` in src/layout/view.rs.
struct HashView {
    u64 multipliers[3];  // odd
    u64 inverses[3];     // inverses of the multipliers, modulo 2^64
    u64 step;            // odd
    u32 bits;
    u32 last_bits;  // bits of a root's right half if that is the last word of a vector (tree/table.cuh)
};

// `static_bits`: the number of bits, or 0 if it is known only at run time.
template <u32 static_bits>
struct Permutation {
    static_assert(static_bits == 0 || (static_bits >= 8 && static_bits <= 64), "8 to 64 bits");

    HashView view;

    WARPSET_FN constexpr u32 bits() const { return static_bits == 0 ? view.bits : static_bits; }
    WARPSET_FN constexpr u64 mask() const { return ~0ull >> (64 - bits()); }
    WARPSET_FN bool has(u64 key) const { return (key & ~mask()) == 0; }

    // Computes the part that all functions share. Bits of the result above `bits` have no effect on any function.
    WARPSET_FN u64 scramble(u64 key) const { return fold(fold(key) * view.multipliers[0] & mask()) * view.multipliers[1]; }

    // Computes the hash, in the high bits of a word: as a fraction of 2^64.
    WARPSET_FN u64 fraction(u64 scrambled, u32 function) const
    {
        return fold((scrambled + function * view.step) & mask()) * view.multipliers[2] << (64 - bits());
    }

    // Computes the key that has this hash.
    WARPSET_FN u64 key(u64 fraction, u32 function) const
    {
        const u64 scrambled = fold((fraction >> (64 - bits())) * view.inverses[2] & mask()) - function * view.step;
        return fold(fold(scrambled * view.inverses[1] & mask()) * view.inverses[0] & mask());
    }

private:
    WARPSET_FN u64 fold(u64 value) const { return value ^ value >> (bits() + 1) / 2; }
};

}  // namespace warpset
