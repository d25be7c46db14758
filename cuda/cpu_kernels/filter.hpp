// The filter of a bucket table on a CPU: bits for all stored vectors. A lookup of an absent vector that the filter rules out
// reads no slot.
//
// The filter is an array of 64-bit words beside the slots, one word for 8 slots (1 byte a slot). The hash of a vector selects a
// word and 3 bits in it. The put that stores a vector sets its bits. A lookup reads the word of its vector: if a bit is not set,
// the vector is absent; if all three are set, the lookup reads slots. (A Bloom filter whose blocks are single words: Putze,
// Sanders and Singler 2007.) The number of the word is the hash scaled to the number of words. So it depends on the high bits of
// the hash, as the bucket does. The 18 low bits select the vector's bits. By calculation about 1 % of absent vectors have all
// bits set at fill 0.5, 2 % at 0.7, 3 % at 0.9.
//
// A put stores a vector first, and sets its bits later. In between, another call may find the vector and return Seen. A lookup
// that begins after that call must not take the vector for absent. So a lookup call uses the filter only if no put call is under
// way when the lookup begins; src/backend/cpu/filter.rs implements and proves this rule. Puts never read the filter, so a put
// that finds its vector stored pays nothing.
//
// A put keeps the hashes of its last 16 new vectors in a ring. When a hash leaves the ring, the put sets the vector's bits: by
// then the word has arrived from memory. `finish` sets the bits of the remaining hashes before the put call ends. (2 words, ns a
// new vector: 20 without a filter, 30 with the ring, 103 if the bits are set at once, because the next compare-and-swap waits for
// that write.)
//
// Tables with and without a filter share their kernels (bucket.hpp). Separate kernels were 186 KB of machine code.
//
// Tried and dropped for the same purpose. Measured by a program that calls these functions on one thread of an AMD EPYC, beside
// other work; fill 0.7, 2^22 vectors of 2 words and 2^21 of 8. Figures are ratios to the time without a filter:
//   - A tag a slot (8 bits of the hash, 0 for EMPTY; lookups compare the tags of a bucket at once, and end where searches of
//     slots do): absent 0.75 and 0.76 where the filter takes 0.28 and 0.27, because a search still walks from bucket to bucket
//     and its end is mispredicted. New vectors take about as long as with the filter (1.43 and 1.21; with the filter 1.51 and
//     1.26 in the same run).
//   - A second pass over each piece of a batch, which hashes the New vectors again and sets their bits: new 1.44 and 1.60.
//   - A plain store instead of an atomic OR (which would lose bits of other threads): new 1.47 and 1.24, the same as with the OR
//     in that run.
//   - 2 or 4 bits a vector: new 1.23 and 1.30 instead of 1.25 (2 words); with 2 bits absent 0.41 instead of 0.31.
//   - Rings of 4 and 64 vectors instead of 16: new 1.86 and 1.50 instead of 1.51 (2 words).
#pragma once

#include "kernels.hpp"

namespace warpset {

// The filter of a table, if a call uses it; otherwise `words` is null.
struct Filter {
    u64* words;
    u64 count;

    // Word of the filter for a vector with this hash, and the vector's bits in it.
    u64* word_of(u64 hash) const { return words + platform::high_product(hash, count); }
    static u64 bits_of(u64 hash) { return 1ull << (hash & 63) | 1ull << (hash >> 6 & 63) | 1ull << (hash >> 12 & 63); }

    // Returns false only if no put that has ended stored a vector with this hash (src/backend/cpu/filter.rs). Relaxed: the order
    // comes from the count of puts there.
    bool may_hold(u64 hash) const
    {
        const u64 bits = bits_of(hash);
        return (platform::load_relaxed(word_of(hash)) & bits) == bits;
    }

    // Other threads set bits of the same word. Relaxed: published by the end of the put call (src/backend/cpu/filter.rs).
    void set(u64 hash) const { __atomic_fetch_or(word_of(hash), bits_of(hash), __ATOMIC_RELAXED); }
};

// Hashes of the last New vectors, whose bits are not set yet.
struct NewHashes {
    static constexpr u32 size = 16;
    u64 hashes[size];
    u32 count = 0;

    // Not inlined: it would take registers from searches of tables without a filter.
    WARPSET_CALLED void add(Filter filter, u64 hash);
    void finish(Filter filter) const;
};

// Vectors of a batch that may be stored.
struct Candidates {
    static constexpr u32 block = 64;
    struct Candidate {
        u64 index;  // its position in the batch
        u64 hash;
    };
    Candidate candidates[block];
    u64 next = 0;  // position in the batch of the first vector that `pass` has not taken

    // Takes vectors of the batch until at least one may be stored. Returns the number of candidates; 0: the batch has ended.
    // Writes Absent as the result of every vector that it takes. The search overwrites this result if it finds the vector.
    WARPSET_CALLED u32 pass(const TableView& table, Filter filter, const BatchView& batch);
};

}  // namespace warpset
