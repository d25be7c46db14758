// Vectors made from numbers on the GPU, and numbers from vectors. Kernels compare the contents of a table, and the result of
// every offer, with the expected ones, without another set. numbered.rs mirrors this text, field by field and step by step.
#include "warpset/table.cuh"

using warpset::u8;
using warpset::u32;
using warpset::u64;

// A permutation of the numbers of `bits` bits, 1 to 64.
struct Permutation {
    u64 factors[2], inverses[2], mask;
    u32 shift, unused;  // at least half the bits, so that an xorshift is its own inverse

    __device__ u64 apply(u64 x) const
    {
        for (u32 i = 0; i < 2; ++i) {
            x ^= x >> shift;
            x = (x * factors[i]) & mask;
        }
        return x ^ (x >> shift);
    }
    __device__ u64 undo(u64 x) const
    {
        x ^= x >> shift;
        for (u32 i = 2; i-- > 0;) {
            x = (x * inverses[i]) & mask;
            x ^= x >> shift;
        }
        return x;
    }
};

__device__ u32 spread(u32 x)  // the finaliser of MurmurHash3
{
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}
__device__ u32 unspread(u32 x)
{
    x = (x ^ (x >> 16)) * 0x7ED1B41Du;
    x = (x ^ (x >> 13) ^ (x >> 26)) * 0xA5CB9243u;
    return x ^ (x >> 16);
}

// Rule by which vectors are made: number `id` of side `side` has a code of its own, and the digits of a code are the words of a
// vector.
struct Shape {
    Permutation order;  // permutation of the low bits of codes
    u64 deltas[4];      // by side: the low bits in which a vector differs from that of side 0 with the same number
    u32 low_bits;       // number of low bits of a code; the side is above them
    u32 width, plain;   // plain: words are digits
    u32 key;
    u8 bits[64], shift[64];

    __device__ u64 low(u64 code) const { return code & order.mask; }
    __device__ u64 side_bits(u32 side) const { return low_bits < 64 ? static_cast<u64>(side) << low_bits : 0; }
    __device__ u64 code(u32 side, u64 id) const { return side_bits(side) | (order.apply(id) ^ deltas[side]); }
    __device__ u64 digit_mask(u32 word) const { return (1ull << bits[word]) - 1; }
    __device__ u32 word_key(u32 word) const { return key ^ (word + 1) * 0x9E3779B1u; }
    __device__ u32 digit(u64 code, u32 word) const { return static_cast<u32>((code >> shift[word]) & digit_mask(word)); }
    __device__ u32 word(u64 code, u32 word) const
    {
        return plain ? digit(code, word) : spread(digit(code, word) ^ word_key(word));
    }
    // Finds side and number of the vector whose words `read(word)` returns; false if no number makes it.
    template <class Read>
    __device__ bool number(Read read, u32& side, u64& id) const
    {
        u64 code = 0;
        for (u32 at = 0; at < width; ++at) {
            u32 value = read(at);
            u64 digit = plain ? value : unspread(value) ^ word_key(at);
            if (digit > digit_mask(at)) return false;
            if (bits[at] != 0) code |= digit << shift[at];
        }
        side = low_bits < 64 ? static_cast<u32>(code >> low_bits) : 0;
        if (side > 3) return false;
        id = order.undo(low(code) ^ deltas[side]);
        return true;
    }
};

// `count` offers of `distinct` numbers from `first` on, each `count / distinct` times, in an order of its own.
struct Offers {
    u64 first;
    u32 distinct, count, side;
    u32 mask, shift, factors[2], summand;  // they determine the order

    __device__ u64 id(u32 position) const
    {
        u32 index = position;
        do {
            index = (index * factors[0] + summand) & mask;
            index ^= index >> shift;
            index = (index * factors[1]) & mask;
            index ^= index >> shift;
        } while (index >= count);
        return first + index % distinct;
    }
};

__device__ u64 thread() { return blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; }
__device__ u64 threads() { return gridDim.x * static_cast<u64>(blockDim.x); }

template <u32 unit>
struct Unit {
    u32 words[unit];
};
template <>
struct alignas(8) Unit<2> {
    u32 words[2];
};
template <>
struct alignas(16) Unit<4> {
    u32 words[4];
};

extern "C" __global__ void make_offers(Shape shape, Offers offers, u32* vectors)
{
    constexpr u32 unit = WARPSET_WIDTH % 4 == 0 ? 4 : WARPSET_WIDTH % 2 == 0 ? 2 : 1;
    constexpr u32 units = WARPSET_WIDTH / unit;
    for (u64 at = thread(); at < offers.count * static_cast<u64>(units); at += threads()) {
        u64 code = shape.code(offers.side, offers.id(static_cast<u32>(at / units)));
        Unit<unit> made;
        for (u32 i = 0; i < unit; ++i) made.words[i] = shape.word(code, static_cast<u32>(at % units) * unit + i);
        reinterpret_cast<Unit<unit>*>(vectors)[at] = made;
    }
}

// Writes one mask for all vectors.
extern "C" __global__ void fill_masks(u32* masks, u64 count, u32 low, u32 high, u32 words)
{
    for (u64 at = thread(); at < count; at += threads()) masks[at] = at % words == 0 ? low : high;
}

// Kinds of faults. Mirrored by `FAULTS` in numbered.rs.
enum Fault { BadOutcome, NewTwice, WrongWords, BadNewReference, NoNumber, OutOfRange, StoredTwice, faults };

__device__ bool mark(u32* bitmap, u64 bit) { return (atomicOr(bitmap + bit / 32, 1u << bit % 32) >> bit % 32 & 1) == 0; }

// Judges the outcomes and references of offers. Numbers below `stored_below` were stored before; each other number must be New
// once. `news` has a cleared bit for each number.
extern "C" __global__ void judge_offers(warpset::View view, Shape shape, Offers offers, const u8* outcomes, const u64* references,
                                        u64 stored_below, u32* news, u64* wrong)
{
    const auto table = warpset::table(view);
    for (u64 at = thread(); at < offers.count; at += threads()) {
        const u64 id = offers.id(static_cast<u32>(at));
        const u8 outcome = outcomes[at];
        if (outcome != 1 && outcome != 2) atomicAdd(wrong + BadOutcome, 1ull);
        if (outcome == 1 && (id < stored_below || !mark(news, id - offers.first))) atomicAdd(wrong + NewTwice, 1ull);
        const u64 code = shape.code(offers.side, id);
        bool same = references[at] < table.slots();
        for (u32 word = 0; same && word < WARPSET_WIDTH; ++word) {
            u32 value;
            same = table.read_word(references[at], word, value) && value == shape.word(code, word);
        }
        if (!same) atomicAdd(wrong + WrongWords, 1ull);
    }
}

// Judges `count` references of new vectors: their numbers are from `stored_below` on, and all different. `news` is cleared.
extern "C" __global__ void judge_new(warpset::View view, Shape shape, Offers offers, const u64* fresh, u64 count,
                                     u64 stored_below, u32* news, u64* wrong)
{
    const auto table = warpset::table(view);
    for (u64 at = thread(); at < count; at += threads()) {
        u32 side;
        u64 id;
        const auto read = [&](u32 word) {
            u32 value = 0;
            table.read_word(fresh[at], word, value);
            return value;
        };
        const bool good = fresh[at] < table.slots() && table.holds(fresh[at]) && shape.number(read, side, id)
            && side == offers.side && id >= stored_below && id >= offers.first && id < offers.first + offers.distinct
            && mark(news, id - offers.first);
        if (!good) atomicAdd(wrong + BadNewReference, 1ull);
    }
}

// Stored numbers of each side: `counts[side]` from `firsts[side]` on.
struct Ranges {
    u64 firsts[4], counts[4];
};

static_assert(sizeof(Shape) == 224 && sizeof(Offers) == 40 && sizeof(Ranges) == 64, "as in numbered.rs");

// Reads the slots `first .. last`. Each vector must be of one of the ranges, and be stored once. Adds their number to `found`.
// `marks` has a bit for each number of the ranges, one range after another.
extern "C" __global__ void read_back(warpset::View view, Shape shape, Ranges ranges, u64 first, u64 last, u32* marks, u64* found,
                                     u64* wrong)
{
    const auto table = warpset::table(view);
    u64 here = 0;
    for (u64 slot = first + thread(); slot < last; slot += threads()) {
        if (!table.holds(slot)) continue;
        ++here;
        u32 side;
        u64 id;
        const auto read = [&](u32 word) {
            u32 value = 0;
            table.read_word(slot, word, value);
            return value;
        };
        if (!shape.number(read, side, id)) {
            atomicAdd(wrong + NoNumber, 1ull);
            continue;
        }
        if (id < ranges.firsts[side] || id - ranges.firsts[side] >= ranges.counts[side]) {
            atomicAdd(wrong + OutOfRange, 1ull);
            continue;
        }
        u64 bit = id - ranges.firsts[side];
        for (u32 before = 0; before < side; ++before) bit += ranges.counts[before];
        if (!mark(marks, bit)) atomicAdd(wrong + StoredTwice, 1ull);
    }
    if (here != 0) atomicAdd(found, here);
}
