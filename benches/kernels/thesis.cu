// The baseline: the replication-free uncompressed GPU hash table of D. Bergsma's master thesis (2019), sections 5.1.3 (the
// protocol), 5.1.4 (the hash), 5.2.3 (bucket sizes, linear probing) and 5.2.1 (the launch), which goes back to GPUexplore's table
// (Wijs and Bosnacki 2014; buckets of other sizes: Cassee et al.). Written from the text of the thesis, and tuned as far as the
// design goes.
//
// The idea. A table is an array of buckets of THESIS_BUCKET words. As many lanes of a warp, a *bucket group*, work on one vector
// and read a bucket in one request, a word each ("warping the line"). A bucket has bucket / width slots; the lanes of a slot are
// a *vector group*, and entries beyond the last slot are lost. If no slot holds the vector, the first empty one is claimed: by a
// lock on its first word. If the bucket is full, so is the next one: of the 32-byte segment (linear probing, if asked for), then
// of another hash function.
//
// The slot protocol (words are stored plus one, see below):
//
//   | first word                     | other words      | means           | who changes it                  | to              |
//   |--------------------------------|------------------|-----------------|---------------------------------|-----------------|
//   | 0                              | 0                | empty           | any group, by one compare-and-swap| a mark          |
//   | mark: top bit set, hash below  | 0, or the vector | being written   | the group that claimed it       | the vector's    |
//   | the vector's                   | 0, or the vector | written, or the | nobody                          | -               |
//   |                                |                  | rest on its way |                                 |                 |
//
// A group that finds a slot marked with another hash goes on: another vector is being written there. Marked with its own hash, it
// waits: it looks at the bucket again until the slot is decided. The same if it loses a claim; the thesis looks at the word that
// the compare-and-swap returned first, which here the next look at the bucket does.
//
// Why it is right. Every access to the table is a strong, relaxed one of 4 bytes: single and coherent, never a stale line of L1.
// A word goes from 0 to its value once (the first one over a mark) and only the claimer of a slot writes it, so nothing needs to
// be ordered between words: a slot holds a vector when *all* its words do, and holds another, for ever, when *one* word is
// neither 0 nor the vector's nor the vector's mark.
//   - Nothing is mixed: the compare-and-swap from 0 has one winner, who writes all words.
//   - Nothing is lost: New is said after the words were written, and slots are never emptied.
//   - Nothing is stored twice: equal vectors visit the same buckets in the same order and leave a bucket only when each slot
//     holds, or is marked for, another vector. A mark tells vectors apart because vectors that claim slots of one bucket and are
//     equal made their mark with the same hash function: that of their first visit. On a later visit, with another function, no
//     slot is free.
//   - No group waits for ever. A group waits only for one that holds a mark, and that group writes its words without waiting for
//     any other. From sm_70 the scheduler runs it even if both are in one warp (independent thread scheduling).
//
// Cases that the thesis leaves open or forbids, and their treatment here:
//   - The thesis forbids the empty pattern as a word, and the top bit. Here words are stored plus one, and a mark has its lowest
//     bit set, so that all words from 0 to 2^31 - 1 are legal: THE TOP BIT OF EVERY INPUT WORD MUST BE CLEAR.
//   - Vectors of one word are claimed by the word itself, without a mark.
//   - The next vector is loaded before this one is put.
//   - The number of hash functions is given: 64, or as many as a high fill needs (support/thesis.rs).
//
// Macros, defined before this text: THESIS_WIDTH words a vector; THESIS_BUCKET 4, 8, 16 or 32, at least the width;
// THESIS_PARALLEL_HASH 0 or 1; THESIS_LINEAR_PROBING 0 or 1 (1 for buckets of 4); THESIS_FUNCTIONS, hash functions tried before
// Full.
//
// Seeds: a row for each function, THESIS_SEEDS random u64 in all; 16-byte aligned. A row is the width's a, then b, then one
// unused if needed to make it even.
#ifndef THESIS_FUNCTIONS
#define THESIS_FUNCTIONS 64
#endif
#define THESIS_SEED_ROW ((THESIS_WIDTH + 2) / 2 * 2)
#define THESIS_SEEDS (THESIS_FUNCTIONS * THESIS_SEED_ROW)

namespace thesis {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 width = THESIS_WIDTH, bucket = THESIS_BUCKET;
constexpr bool parallel_hash = THESIS_PARALLEL_HASH, linear_probing = THESIS_LINEAR_PROBING;
static_assert(bucket == 4 || bucket == 8 || bucket == 16 || bucket == 32, "a bucket group is a part of a warp");
static_assert(width >= 1 && width <= bucket, "a slot is a part of a bucket");
static_assert(!linear_probing || bucket == 4, "a segment of 32 bytes has one bucket, or half of two");

constexpr u32 slots = bucket / width, used = slots * width;
constexpr u32 buckets_of_segment = linear_probing ? 8 / bucket : 1;

// One bit for the first lane of each slot.
__device__ constexpr u32 first_lanes()
{
    u32 lanes = 0;
    for (u32 slot = 0; slot < slots; ++slot) lanes |= 1u << (slot * width);
    return lanes;
}

__device__ constexpr u32 power_of_two_at_least(u32 n)
{
    u32 power = 1;
    while (power < n) power *= 2;
    return power;
}

constexpr u32 empty = 0;

enum class Outcome : u8 { Undecided = 0, New = 1, Seen = 2, Full = 3 };

__device__ __forceinline__ u32 load_relaxed(const u32* address)
{
    u32 value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

__device__ __forceinline__ void store_relaxed(u32* address, u32 value)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(address), "r"(value) : "memory");
}

// Returns the previous value.
__device__ __forceinline__ u32 compare_and_swap(u32* address, u32 expected, u32 desired)
{
    u32 old;
    asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "l"(address), "r"(expected), "r"(desired)
                 : "memory");
    return old;
}

// The lanes of a warp that work on one vector. Groups of one warp take their own ways: every vote names the lanes of one group.
struct BucketGroup {
    u32 lane;   // in the group
    u32 shift;  // number, in the warp, of the group's first lane
    u32 lanes;  // a bit for each, in the warp

    __device__ BucketGroup()
        : lane(threadIdx.x % bucket), shift(threadIdx.x % 32 - lane), lanes((~0u >> (32 - bucket)) << shift) {}

    // A bit for each lane of the group that votes true.
    __device__ u32 ballot(bool vote) const { return (__ballot_sync(lanes, vote) & lanes) >> shift; }
    __device__ u32 shuffle(u32 value, u32 source) const { return __shfl_sync(lanes, value, source, bucket); }
    template <class Word>
    __device__ Word shuffle_xor(Word value, u32 distance) const
    {
        return __shfl_xor_sync(lanes, value, distance, bucket);
    }
    __device__ void sync() const { __syncwarp(lanes); }
};

// Converts bits of lanes to bits of slots, at their first lanes: set if all lanes of the slot are set.
__device__ __forceinline__ u32 slots_with_all(u32 lanes)
{
    u32 length = 1;
#pragma unroll
    for (; length * 2 <= width; length *= 2) lanes &= lanes >> length;
    if (length < width) lanes &= lanes >> (width - length);
    return lanes & first_lanes();
}

// First lanes of the slots that have any of `lanes`.
__device__ __forceinline__ u32 slots_with_any(u32 lanes)
{
    u32 length = 1;
#pragma unroll
    for (; length * 2 <= width; length *= 2) lanes |= lanes >> length;
    if (length < width) lanes |= lanes >> (width - length);
    return lanes & first_lanes();
}

// Pair-multiply-shift (thesis 2.3), by one lane for itself: every lane of the group does the same, which costs what one would.
// The words have just been read by the group, so they come from L1.
__device__ __forceinline__ u32 hash_sequentially(const u64* row, const u32* vector)
{
    // Unrolled if there is no remainder, which would spill registers.
    constexpr u32 at_once = width / 2 % 2 == 0 ? 2 : 1;
    u64 sum = __ldg(row + width);
#pragma unroll at_once
    for (u32 i = 0; i + 1 < width; i += 2) {
        ulonglong2 a = __ldg(reinterpret_cast<const ulonglong2*>(row + i));
        uint2 x;
        if constexpr (width % 2 == 0) x = __ldg(reinterpret_cast<const uint2*>(vector + i));
        else x = make_uint2(__ldg(vector + i), __ldg(vector + i + 1));
        sum += (a.x + x.y) * (a.y + x.x);
    }
    if constexpr (width % 2 == 1) sum += __ldg(row + width - 1) * __ldg(vector + width - 1);
    return static_cast<u32>(sum >> 32);
}

// Hash by the group (thesis 5.1.4), equal to the one above: the two lanes that hold a pair both multiply it, then the products
// are added up over the lanes of the first slot, rounded up to a power of two. `word` is the lane's word of the vector.
__device__ __forceinline__ u32 hash_in_parallel(const BucketGroup& group, const u64* row, u32 word)
{
    constexpr u32 adding = power_of_two_at_least(width);
    u64 sum = __ldg(row + width);
    if constexpr (width == 1) {
        sum += __ldg(row) * word;
    } else {
        u32 i = group.lane % adding & ~1u, partner = group.shuffle_xor(word, 1);
        u32 even = group.lane % 2 == 0 ? word : partner, odd = group.lane % 2 == 0 ? partner : word;
        u64 product = 0;
        if (i + 1 < width) {
            ulonglong2 a = __ldg(reinterpret_cast<const ulonglong2*>(row + i));
            product = (a.x + odd) * (a.y + even);
        } else if (i < width) {
            product = __ldg(row + i) * even;
        }
#pragma unroll
        for (u32 distance = 2; distance < adding; distance *= 2) product += group.shuffle_xor(product, distance);
        sum += product;
    }
    u32 hash = static_cast<u32>(sum >> 32);
    // If slot lengths are powers of two, every slot's lanes have the sum; otherwise the lanes of the first slot have it.
    return width == adding ? hash : group.shuffle(hash, 0);
}

// Looks for the vector in one bucket, and puts it there if there is a free slot; otherwise Undecided. `at` is the lane's entry,
// `mine` the lane's word as it is stored, `mark` that of the vector.
__device__ __forceinline__ Outcome examine(const BucketGroup& group, u32* at, u32 mine, u32 mark)
{
    while (true) {
        u32 entry = group.lane < used ? load_relaxed(at) : empty;
        if (slots_with_all(group.ballot(entry == mine)) != 0) return Outcome::Seen;
        // No word is stored as a mark (it would be over 2^31), so `mark` is compared without regard to the position of a word in
        // its slot.
        u32 taken = slots_with_any(group.ballot(entry != empty && entry != mine && entry != mark));
        u32 open = first_lanes() & ~taken;
        if (open == 0) return Outcome::Undecided;
        u32 first = __ffs(open) - 1;  // the lane of the first word of the first slot that may be had
        u32 found = entry;
        if (group.lane == first && entry == empty) found = compare_and_swap(at, empty, width == 1 ? mine : mark);
        if (group.shuffle(found, first) == empty) {
            if constexpr (width > 1) {
                if (group.lane > first && group.lane < first + width) store_relaxed(at, mine);
                group.sync();
                if (group.lane == first) store_relaxed(at, mine);
            }
            return Outcome::New;
        }
        // Another group has the slot, and perhaps for an equal vector: look again.
    }
}

// `word` is the lane's word of `vector`.
__device__ __forceinline__ Outcome find_or_put(const BucketGroup& group, u32* table, u64 buckets, const u64* seeds,
                                               const u32* vector, u32 word)
{
#pragma unroll 1
    for (u32 function = 0; function < THESIS_FUNCTIONS; ++function) {
        const u64* row = seeds + function * THESIS_SEED_ROW;
        u32 hash = parallel_hash ? hash_in_parallel(group, row, word) : hash_sequentially(row, vector);
        u32 mark = hash | 0x80000001u;
        u64 home = hash * buckets >> 32;
#pragma unroll 1
        for (u32 next = 0; next < buckets_of_segment; ++next) {
            // In a segment of two buckets, the other bucket differs in the lowest bit of its number.
            Outcome outcome = examine(group, table + (home ^ next) * bucket + group.lane, word + 1, mark);
            if (outcome != Outcome::Undecided) return outcome;
        }
    }
    return Outcome::Full;
}

}  // namespace thesis

// Puts `count` vectors, one a bucket group at a time, in a grid-stride loop; outcomes[i] is 1 (New), 2 (Seen) or 3 (Full).
// - `table`: buckets x THESIS_BUCKET words, zero before the first call, 128-byte aligned; at most 2^32 buckets (the hash has 32
//   bits), an even number for linear probing.
// - `vectors`: count x THESIS_WIDTH words, 8-byte aligned.
// - Any grid of blocks of up to 256 threads, a multiple of 32. Registers are held to 32: every warp that fits a multiprocessor is
//   resident.
extern "C" __global__ void __launch_bounds__(256, 8)
thesis_find_or_put(unsigned* table, unsigned long long buckets, const unsigned long long* seeds, const unsigned* vectors,
                   unsigned long long count, unsigned char* outcomes)
{
    using namespace thesis;
    const BucketGroup group;
    const u64 step = gridDim.x * static_cast<u64>(blockDim.x) / bucket;
    // The lane's word of the group's next vector.
    const u32* source = vectors + group.lane % width;
    u64 index = (blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x) / bucket;
    u32 ahead = index < count ? __ldg(source + index * width) : 0;
    for (; index < count; index += step) {
        u32 word = ahead;
        if (index + step < count) ahead = __ldg(source + (index + step) * width);
        Outcome outcome = find_or_put(group, table, buckets, seeds, vectors + index * width, word);
        if (group.lane == 0) outcomes[index] = static_cast<u8>(outcome);
    }
}
