// The baseline: the replication-free uncompressed table of D. Bergsma, "Porting tree-based hash table compression to GPGPU model
// checking", 2019, sections 5.1.3 (spinlock), 5.1.4 (Pair-multiply-shift) and 5.2.3 (bucket sizes, linear probing to 8 entries).
//
// A *bucket* is THESIS_BUCKET entries of 4 bytes, read by as many lanes, a *bucket group*, one entry each. It holds
// THESIS_BUCKET / THESIS_WIDTH slots; entries that are left over are lost. A bucket group puts one vector at a time: it compares all
// slots at once, votes, and if the vector is in none claims the first empty slot.
//
//   | first entry of a slot | means               | who changes it                                   | to              |
//   |-----------------------|---------------------|--------------------------------------------------|-----------------|
//   | 0                     | empty               | a group's leader, by compare-and-swap             | mark            |
//   | top bit set           | writing in progress; the other bits are the memoised hash | the claimer, after all other entries are written | the first word |
//   | else                  | written             | nobody                                           | -               |
//
// So the first word of a vector must not be 0 nor have its top bit set. A group that meets a mark with its own hash waits until it is
// replaced: with independent thread scheduling (sm_70 and later) the claimer, even in the same warp, goes on.
//
// Memory order is the thesis' too: the first entry is stored last, after __syncwarp, and all accesses are strong (volatile there, relaxed
// here) but unordered; a release and an acquire would be needed for a proof. The benchmark counts the distinct vectors each time.
#include "warpset/platform.cuh"

using namespace warpset;

constexpr u32 width = THESIS_WIDTH, bucket_entries = THESIS_BUCKET;
constexpr u32 slots = bucket_entries / width;
constexpr u32 max_rehashes = 256;
constexpr u32 writing = 0x80000000u;
// A bucket of 4 shares its 32-byte segment with another, which is looked at before the vector is hashed again.
constexpr u32 buckets_a_segment = THESIS_LINEAR_PROBING && bucket_entries < 8 ? 8 / bucket_entries : 1;

static_assert(slots >= 1, "a bucket holds a vector at least");

struct Group {
    u32 lane, start, mask;

    __device__ bool any(bool vote) const { return __any_sync(mask, vote); }
    __device__ u32 ballot(bool vote) const { return (__ballot_sync(mask, vote) & mask) >> start; }
    template <class Value> __device__ Value shuffle(Value value, u32 source) const { return __shfl_sync(mask, value, start + source); }
    __device__ void sync() const { __syncwarp(mask); }
};

__device__ void store_relaxed(u32* address, u32 value)
{
    asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" : : "l"(address), "r"(value) : "memory");
}

// Hash function `function` of the vector that lane i < width holds word i of; the same in all lanes. Seeds: width + 1 of u64 a function.
__device__ u32 hash(const Group& group, const u64* seeds, u32 function, u32 word)
{
    const u64* a = seeds + function * (width + 1);
#if THESIS_PARALLEL_HASH
    // Even lanes multiply the pairs; a tree of shuffles adds them up.
    u32 next = group.shuffle(word, (group.lane + 1) % bucket_entries);
    u64 sum = 0;
    if (group.lane + 1 < width && group.lane % 2 == 0) sum = (a[group.lane] + next) * (a[group.lane + 1] + word);
    if (width % 2 == 1 && group.lane == width - 1) sum = a[group.lane] * word;
#pragma unroll
    for (u32 distance = bucket_entries / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(group.mask, sum, distance);
#else
    u64 sum = 0;
#pragma unroll
    for (u32 i = 0; i + 1 < width; i += 2) sum += (a[i] + group.shuffle(word, i + 1)) * (a[i + 1] + group.shuffle(word, i));
    if (width % 2 == 1) sum += a[width - 1] * group.shuffle(word, width - 1);
#endif
    return (sum + a[width]) >> 32;
}

enum class Slot { Equal, Different };

// What the slot whose first entry was just seen not to be empty holds in the end; waits for a writer of an equal hash.
__device__ Slot read_slot(const Group& group, const u32* slot, u32 first, u32 mark, u32 word)
{
    while (first == mark) first = group.shuffle(group.lane == 0 ? platform::load_relaxed(slot) : 0, 0);
    if (first & writing) return Slot::Different;
    bool differs = false;
    if (group.lane < width) differs = (group.lane == 0 ? first : platform::load_relaxed(slot + group.lane)) != word;
    return group.any(differs) ? Slot::Different : Slot::Equal;
}

// 1 New, 2 Seen, 0 go on with another bucket.
__device__ u32 put_in_bucket(const Group& group, u32* bucket, u32 mark, u32 word)
{
    const u32 slot_of_lane = group.lane / width, in_slot = group.lane % width;
    const u32 wanted = group.shuffle(word, in_slot);
    const u32 entry = platform::load_relaxed(bucket + group.lane);
    // A slot is equal if all its lanes say so.
    const u32 equal = group.ballot(slot_of_lane < slots && entry == wanted);
    const u32 firsts = group.ballot(slot_of_lane < slots && in_slot == 0 && entry == 0);
    const u32 marks = group.ballot(slot_of_lane < slots && in_slot == 0 && entry == mark);
#pragma unroll
    for (u32 slot = 0; slot < slots; ++slot) {
        const u32 lanes = (width == 32 ? ~0u : (1u << width % 32) - 1) << (slot * width);
        if ((equal & lanes) == lanes) return 2;
    }
#pragma unroll 1
    for (u32 slot = 0; slot < slots; ++slot) {
        u32* at = bucket + slot * width;
        const bool was_empty = firsts >> (slot * width) & 1;
        if (!was_empty && !(marks >> (slot * width) & 1)) {
            // Written, and different when it was read: but its other entries may have been read before they were written.
            u32 first = group.shuffle(entry, slot * width);
            if (first == group.shuffle(word, 0) && read_slot(group, at, first, mark, word) == Slot::Equal) return 2;
            continue;
        }
        u32 first = mark;
        if (was_empty) {
            if (group.lane == 0) first = platform::compare_and_swap_relaxed(at, 0u, mark);
            first = group.shuffle(first, 0);
            if (first == 0) {
                if (group.lane > 0 && group.lane < width) store_relaxed(at + group.lane, word);
                group.sync();
                if (group.lane == 0) store_relaxed(at, word);
                return 1;
            }
        }
        if (read_slot(group, at, first, mark, word) == Slot::Equal) return 2;
    }
    return 0;
}

// outcomes: 1 New, 2 Seen, 3 Full. `table` is all zeros at first, and has `buckets` buckets; with linear probing, a multiple of 2 of
// buckets of 4. Seeds: max_rehashes x (width + 1).
extern "C" __global__ void __launch_bounds__(256) thesis_find_or_put(
    u32* table, u64 buckets, const u64* seeds, const u32* vectors, u64 count, unsigned char* outcomes)
{
    Group group;
    group.lane = threadIdx.x % bucket_entries;
    group.start = threadIdx.x % 32 - group.lane;
    group.mask = (bucket_entries == 32 ? ~0u : (1u << bucket_entries % 32) - 1) << group.start;
    const u64 first = platform::Grid::thread() / bucket_entries, step = platform::Grid::threads() / bucket_entries;
    for (u64 at = first; at < count; at += step) {
        const u32 word = group.lane < width ? platform::load_input(vectors + at * width + group.lane) : 0;
        u32 outcome = 0, mark = 0;
        for (u32 function = 0; function < max_rehashes && outcome == 0; ++function) {
            const u32 h = hash(group, seeds, function, word);
            if (function == 0) mark = h | writing;
            const u64 bucket = static_cast<u64>(h) * buckets >> 32;
            for (u32 i = 0; i < buckets_a_segment && outcome == 0; ++i)
                outcome = put_in_bucket(group, table + (bucket ^ i) * bucket_entries, mark, word);
        }
        if (group.lane == 0) outcomes[at] = outcome == 0 ? 3 : outcome;
    }
}
