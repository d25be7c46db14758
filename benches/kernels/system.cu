// A synthetic transition system, walked level by level on the GPU, with states as a model checker offers them to its table.
//
// A state is a program counter (word 0) and width - 1 processes, a word each. The program counter determines the `moves`
// processes that may step. A step takes its process to its next local state, cyclically. The step of the first of them also takes
// the program counter to its next value. So a successor differs from its parent in one word or two. A state has a *code*, the
// digits of its words in `bits` bits each, which identifies the state independently of any table: a bitmap of codes counts the
// states that a walk has offered.
#include "warpset/block_cache.cuh"

using u8 = unsigned char;
using u32 = unsigned;
using u64 = unsigned long long;

// Mirrored by `System` in benches/walks.rs.
struct System {
    u32 moves;
    u8 bits[32], shift[32];

    __device__ u32 digit(u64 code, u32 word) const { return static_cast<u32>(code >> shift[word]) & ((1u << bits[word]) - 1); }
    // The value of a word contains its position, so that no two positions share values; odd multiplication spreads the values
    // over all bits.
    __device__ u32 word(u64 code, u32 word) const { return ((word << 12 | digit(code, word)) + 1) * 0x9E3779B1u; }
    // The inverse of `word`.
    __device__ u32 digit_of(u32 value, u32 word) const { return value * 0x0E8B2F51u - 1 - (word << 12); }
    __device__ u32 step_word(u32 value, u32 word) const
    {
        return (((word << 12) | ((digit_of(value, word) + 1) & ((1u << bits[word]) - 1))) + 1) * 0x9E3779B1u;
    }
    __device__ u64 step(u64 code, u32 word) const
    {
        u64 mask = ((1ull << bits[word]) - 1) << shift[word];
        return (code & ~mask) | ((code + (1ull << shift[word])) & mask);
    }
};

__device__ u64 thread() { return blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; }
__device__ u64 threads() { return gridDim.x * static_cast<u64>(blockDim.x); }

// The successors of `states` states: their words, codes, parents and masks of what changed. Marks their codes in `bitmap`, and
// counts those that were not marked.
extern "C" __global__ void make_successors(System system, const u64* codes, const u64* references, u64 states, u32* vectors,
                                           u64* successors, u64* parents, u32* masks, u32* bitmap, u64* marked)
{
    constexpr u32 width = WARPSET_WIDTH;
    for (u64 at = thread(); at < states * system.moves; at += threads()) {
        const u64 code = codes[at / system.moves];
        const u32 move = static_cast<u32>(at % system.moves);
        const u32 process = 1 + (system.digit(code, 0) * (system.moves - 1) + move) % (width - 1);
        u64 next = system.step(code, process);
        if (move == 0) next = system.step(next, 0);
        successors[at] = next;
        parents[at] = references[at / system.moves];
        masks[at] = 1u << process | (move == 0);
        for (u32 word = 0; word < width; ++word) vectors[at * width + word] = system.word(next, word);
        if (!(atomicOr(bitmap + next / 32, 1u << next % 32) >> next % 32 & 1)) atomicAdd(marked, 1ull);
    }
}

// Expands states by blocks, as a model checker on the GPU does: each block takes states from the queue `references`, fetches
// them, makes their successors and puts these in the queue `next`. Only references pass through global memory. Blocks have
// EXPAND_THREADS threads, one for each (state, move).
#ifndef EXPAND_THREADS
#define EXPAND_THREADS 128
#define EXPAND_ROWS (WARPSET_WIDTH <= 16 ? 256 : 128)
#endif
using Cache = warpset::BlockCache<warpset::Table, EXPAND_ROWS>;
constexpr u32 cache_bytes = Cache::bytes(EXPAND_THREADS / 32);

// Shared memory of `expand`, in bytes, for `moves` of at least 3.
extern "C" __device__ const u32 expand_bytes = cache_bytes + EXPAND_THREADS / 3 * (WARPSET_WIDTH * 4 + 8);

extern "C" __global__ void __launch_bounds__(EXPAND_THREADS)
expand(warpset::View view, System system, const u64* references, u64 states, u64* next, warpset::BatchCounts* counts)
{
    constexpr u32 width = WARPSET_WIDTH;
    extern __shared__ __align__(16) u8 shared[];
    const warpset::Table table = warpset::table(view);
    Cache cache(shared);
    const u32 tile = EXPAND_THREADS / system.moves;
    u64* parents = reinterpret_cast<u64*>(shared + cache_bytes);
    u32* words = reinterpret_cast<u32*>(parents + tile);
    cache.clear();
    for (u64 first = blockIdx.x * static_cast<u64>(tile); first < states; first += gridDim.x * static_cast<u64>(tile)) {
        if (cache.free_rows() < EXPAND_THREADS) cache.find_or_put(table, next, counts);
        const u32 count = states - first < tile ? static_cast<u32>(states - first) : tile;
        for (u32 at = threadIdx.x; at < count; at += EXPAND_THREADS) parents[at] = references[first + at];
        __syncthreads();
        constexpr u32 lanes = width < 8 ? 4 : width < 32 ? 8 : 16;  // lanes that share a state
        for (u32 at = threadIdx.x / lanes; at < count; at += EXPAND_THREADS / lanes)
            table.read_words(parents[at], threadIdx.x % lanes, lanes,
                             [&](u32 word, u32 value) { words[at * width + word] = value; });
        __syncthreads();
        const u32 state = threadIdx.x / system.moves, move = threadIdx.x % system.moves;
        if (state >= count) continue;
        const u32* from = words + state * width;
        const u32 process = 1 + (system.digit_of(from[0], 0) * (system.moves - 1) + move) % (width - 1);
        struct Successor {
            const System& system;
            const u32* from;
            u32 process, mask_;
            __device__ u32 word(u32 word) const { return mask_ >> word & 1 ? system.step_word(from[word], word) : from[word]; }
            __device__ u32 mask(u32) const { return mask_; }
        };
        cache.add(Successor{system, from, process, 1u << process | (move == 0)}, parents[state]);
    }
    cache.find_or_put(table, next, counts);
}

// Appends the new ones of `count` successors to the next level, as far as it has room.
extern "C" __global__ void append_new(const u8* outcomes, const u64* references, const u64* successors, u64 count,
                                      u64* next_codes, u64* next_references, u64 capacity, u64* appended)
{
    for (u64 at = thread(); at < count; at += threads()) {
        if (outcomes[at] != 1) continue;
        const u64 row = atomicAdd(appended, 1ull);
        if (row >= capacity) continue;
        next_codes[row] = successors[at];
        next_references[row] = references[at];
    }
}

// Counts the rows that are not stored at their references.
extern "C" __global__ void count_misread(warpset::View view, const u64* references, const u32* vectors, u64 count, u64* misread)
{
    for (u64 at = thread(); at < count * WARPSET_WIDTH; at += threads()) {
        const u64 row = at / WARPSET_WIDTH;
        if (warpset::table(view).word(references[row], static_cast<u32>(at % WARPSET_WIDTH)) != vectors[at])
            atomicAdd(misread, 1ull);
    }
}
