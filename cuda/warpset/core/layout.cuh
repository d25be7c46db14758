// Layout of the words of slots in memory.
//
// A vector of `width` words is divided into chunks, each claimed by one atomic operation. *Main* chunks have the largest size
// that the machine can compare-and-swap (16 bytes from sm_90 and on most x86-64 CPUs, otherwise 8) and that the vector can fill.
// The remaining words go into an 8-byte tail and a 4-byte tail, as needed. So *dense* slots waste no byte at any width:
//
//   width        1      2      3      4      5       6       7         8       37
//   chunks/16    4      8      8+4    16     16+4    16+8    16+8+4    2x16    9x16+4
//   chunks/8     4      8      8+4    2x8    2x8+4   3x8     3x8+4     4x8     18x8+4
//
// If chunks have 16 bytes, slots are by default *padded* with zero words to whole chunks, that is, to a multiple of four words. A
// padded slot takes fewer compare-and-swaps and one read request, and is compared without remainders. Widths 3, 5, 6 and 7 then
// take 1.33, 1.6, 1.33 and 1.14 times the bytes. (H200, 3, 5, 6 and 7 words at fill 0.25: dense 10.6, 9.6, 9.5 and 6.7 G/s,
// padded 17.7, 17.0, 16.9 and 15.7. For comparison: 4 words 19.5, 8 words 16.5.)
//
// The main chunks of a slot are adjacent. A search reads slots in *buckets*. A bucket is the slots whose main chunks fill one
// memory line (32 to 128 bytes), or one slot if a slot is longer than a line. A tile of lanes reads a bucket by one aligned
// request. On an H200, a 64-byte request to a random address costs as much as a 32-byte one (41 G/s), a 128-byte one a seventh
// more (35 G/s). Two 16-byte requests to one sector cost double (22 G/s). So buckets are wide and take one request.
//
// If there are tails, 16 slots (or one bucket, if it has more) form a *block*: the main chunks of its buckets, then its 8-byte
// tails, then its 4-byte tails, so that every chunk is aligned to its own size:
//
//   | main 0 | main 1 | ... | main 15 | tail8 0 | ... | tail8 15 | tail4 0 | ... | tail4 15 |
//
// Without tails a block is one bucket. A slot's number is bucket * slots_per_bucket + index in the bucket; slots that only
// pad the last block have no number.
//
// For StaticShape every function is a constant expression, so the compiler unrolls kernels for one width. On a CPU, wider vectors
// share kernels: SlotShape covers all widths with slots of one length. DynamicShape covers all other widths and computes the same
// values at run time.
#pragma once

#include "warpset/platform.cuh"

namespace warpset {

WARPSET_FN constexpr u32 power_of_two_at_most(u32 n)
{
    u32 power = 1;
    while (power * 2 <= n) power *= 2;
    return power;
}

WARPSET_FN constexpr u32 power_of_two_at_least(u32 n)
{
    u32 power = 1;
    while (power < n) power *= 2;
    return power;
}

// Bytes from one vector to the next in a warp's scratch memory: an odd number of 16-byte units. So when 32 lanes each read their
// own vector, the reads spread over the banks of shared memory.
WARPSET_FN constexpr u32 scratch_stride(u32 words)
{
    return words * 4 < 16 ? power_of_two_at_least(words * 4) : ((words * 4 + 15) / 16 | 1) * 16;
}

// Position of the n-th set bit of a mask, counted from 0. The mask has more than n set bits.
WARPSET_FN u32 nth_bit(u32 mask, u32 n)
{
    u32 at = 0;
    WARPSET_UNROLL
    for (u32 half = 16; half != 0; half /= 2) {
        const u32 below = platform::population_count(mask >> at & ((1u << half) - 1));
        if (n < below) continue;
        n -= below;
        at += half;
    }
    return at;
}

template <bool condition, class A, class B>
struct Choose {
    using Type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
    using Type = B;
};

// `slot_words_`: words per slot, at least as many as the vector has.
template <u32 width_words, u32 chunk_bytes, u32 line_bytes_, u32 slot_words_ = width_words>
struct StaticShape {
    static_assert(width_words >= 1, "a vector has at least one word");
    static_assert(slot_words_ == width_words || (slot_words_ > width_words && slot_words_ * 4 % chunk_bytes == 0),
                  "a padded slot holds the vector, and has no tails");
    static_assert(chunk_bytes == 8 || chunk_bytes == 16, "chunks of 8 or 16 bytes");
    static_assert(line_bytes_ == 32 || line_bytes_ == 64 || line_bytes_ == 128, "lines of 32, 64 or 128 bytes");

    static constexpr bool is_static = true;
    static constexpr u32 static_width = width_words;
    static constexpr bool is_padded = slot_words_ > width_words;
    using Main = typename Choose<slot_words_ == 1, u32,
        typename Choose<(slot_words_ < 4 || chunk_bytes == 8), u64, u128>::Type>::Type;

    static constexpr u32 max_chunks = slot_words_ * 4 / sizeof(Main) + 2;  // with both tails

    WARPSET_FN constexpr u32 width() const { return width_words; }
    WARPSET_FN constexpr u32 slot_words() const { return slot_words_; }
    WARPSET_FN constexpr u32 line_bytes() const { return line_bytes_; }
    // Most bytes that the machine claims at once. A slot may be smaller.
    WARPSET_FN static constexpr u32 claim_bytes() { return chunk_bytes; }
};

// Shape of all widths whose padded slots have `slot_words_` words. Such a slot is longer than a line.
template <u32 slot_words_>
struct SlotShape {
    static_assert(slot_words_ > 16 && slot_words_ % 4 == 0, "a padded slot, longer than a line");
    static constexpr bool is_static = true;
    static constexpr u32 static_width = 0;
    static constexpr bool is_padded = true;  // slots may be padded
    using Main = u128;
    static constexpr u32 max_chunks = slot_words_ / 4;
    u32 width_words;

    WARPSET_FN constexpr u32 width() const { return width_words; }
    WARPSET_FN constexpr u32 slot_words() const { return slot_words_; }
    WARPSET_FN constexpr u32 line_bytes() const { return 64; }
};

// Shape of any width from 17 on, where a slot is longer than a line.
template <u32 chunk_bytes>
struct DynamicShape {
    static_assert(chunk_bytes == 8 || chunk_bytes == 16, "chunks of 8 or 16 bytes");
    static constexpr bool is_static = false;
    static constexpr u32 static_width = 0;
    static constexpr bool is_padded = chunk_bytes == 16;  // slots may be padded
    using Main = typename Choose<chunk_bytes == 8, u64, u128>::Type;
    static constexpr u32 max_chunks = 256 * 4 / chunk_bytes + 2;  // with both tails
    u32 width_words;                                              // at least 17: a slot is longer than a line
    u32 words_a_slot;

    WARPSET_FN constexpr u32 width() const { return width_words; }
    WARPSET_FN constexpr u32 slot_words() const { return words_a_slot; }
    WARPSET_FN constexpr u32 line_bytes() const { return 64; }
};

template <class Shape>
struct Layout : Shape {
    using Main = typename Shape::Main;

    // Chunks 0 .. main_chunks() - 1 are Main; then tail8, if any; then tail4, if any.
    WARPSET_FN constexpr u32 main_chunks() const { return this->slot_words() * 4 / sizeof(Main); }
    WARPSET_FN constexpr u32 main_bytes() const { return main_chunks() * sizeof(Main); }
    WARPSET_FN constexpr bool has_tail8() const { return this->slot_words() * 4 - main_bytes() >= 8; }
    WARPSET_FN constexpr bool has_tail4() const { return this->slot_words() % 2 == 1 && sizeof(Main) > 4; }
    WARPSET_FN constexpr bool has_tails() const { return has_tail8() || has_tail4(); }
    WARPSET_FN constexpr u32 chunks() const { return main_chunks() + has_tail8() + has_tail4(); }

    WARPSET_FN constexpr u32 slots_per_bucket() const
    {
        if constexpr (!Shape::is_static) return 1;
        return main_bytes() < this->line_bytes() ? power_of_two_at_most(this->line_bytes() / main_bytes()) : 1;
    }
    WARPSET_FN constexpr u32 bucket_main_bytes() const { return slots_per_bucket() * main_bytes(); }
    WARPSET_FN constexpr u32 slots_per_block() const
    {
        return has_tails() && slots_per_bucket() < 16 ? 16 : slots_per_bucket();
    }
    WARPSET_FN constexpr u32 buckets_per_block() const { return slots_per_block() / slots_per_bucket(); }
    WARPSET_FN constexpr u32 block_bytes() const { return slots_per_block() * this->slot_words() * 4; }
    WARPSET_FN constexpr u32 tail8_offset() const { return slots_per_block() * main_bytes(); }
    WARPSET_FN constexpr u32 tail4_offset() const { return tail8_offset() + (has_tail8() ? slots_per_block() * 8 : 0); }

    // Number of EMPTY patterns: a power of two that is greater than the number of chunks of a vector (bucket/table.cuh).
    WARPSET_FN constexpr u32 empty_classes() const
    {
        if constexpr (!Shape::is_static) return 1u << (32 - platform::leading_zeros(chunks()));
        return power_of_two_at_least(chunks() + 1);
    }

    // Upper bound of the words of a slot.
    static constexpr u32 most_slot_words = Shape::max_chunks * sizeof(Main) / 4;

    // Words of a set of EMPTY patterns, one bit each, sized for this shape.
    static constexpr u32 class_set_words = (power_of_two_at_least(Shape::max_chunks + 1) + 31) / 32;

    // The block that holds a bucket, and the index of the bucket's first slot in it.
    WARPSET_FN constexpr u64 block_offset(u64 bucket) const
    {
        // Dividing by a run-time value would take longer than the rest of a search.
        if constexpr (!Shape::is_static) return (has_tails() ? bucket / 16 : bucket) * block_bytes();
        return bucket / buckets_per_block() * block_bytes();
    }
    WARPSET_FN constexpr u32 index_in_block(u64 bucket) const
    {
        if constexpr (!Shape::is_static) return has_tails() ? static_cast<u32>(bucket % 16) : 0;
        return static_cast<u32>(bucket % buckets_per_block()) * slots_per_bucket();
    }
    WARPSET_FN constexpr u64 main_offset(u64 bucket) const
    {
        return block_offset(bucket) + index_in_block(bucket) * static_cast<u64>(main_bytes());
    }

    // The first word of a chunk of a slot.
    WARPSET_FN constexpr u32 first_word(u32 chunk) const
    {
        if (chunk <= main_chunks()) return chunk * (sizeof(Main) / 4);
        return this->slot_words() - 1;
    }

    // Chunk of a slot that holds a word, and the word's position in that chunk.
    WARPSET_FN constexpr u32 chunk_of_word(u32 word) const
    {
        constexpr u32 chunk_words = sizeof(Main) / 4;
        if (word < main_chunks() * chunk_words) return word / chunk_words;
        return main_chunks() + (has_tail8() && word - main_chunks() * chunk_words >= 2);
    }
    WARPSET_FN constexpr u32 word_in_chunk(u32 word) const
    {
        constexpr u32 chunk_words = sizeof(Main) / 4;
        if (word < main_chunks() * chunk_words) return word % chunk_words;
        word -= main_chunks() * chunk_words;
        return has_tail8() && word < 2 ? word : 0;
    }
};

}  // namespace warpset
