// Kernels of the tests in device_memory.rs: like a user's own kernels, they use one thread per vector.
#include "warpset/core/batch_view.cuh"
#include "warpset/table.cuh"

using warpset::Found;
using warpset::Outcome;
using warpset::TableView;
using warpset::u32;
using warpset::u64;

// Writes every field of the view, in order, as the GPU sees it, and the size of the whole view.
extern "C" __global__ void read_view(TableView view, u64* fields)
{
    u64 seen[] = {reinterpret_cast<u64>(view.slots), view.buckets, view.slice_buckets, view.slice_mask,
                  reinterpret_cast<u64>(view.seeds), reinterpret_cast<u64>(view.stored), view.hash_mask,
                  view.empty[0], view.empty[1], view.empty[2], view.empty[3], view.probe_limit, view.width, sizeof(TableView)};
    for (u32 i = 0; i < sizeof(seen) / 8; ++i) fields[i] = seen[i];
}

// Number of the `i`-th of `offers` (a power of two) offers, in an order that looks random: odd multiplication, addition and a
// shift are bijections modulo a power of two, so each of the low bits' values comes up equally often.
__device__ u64 scrambled(u64 i, u64 offers, u64 turn)
{
    u64 x = (i * 0x9E3779B97F4A7C15ull + turn * 0xD1B54A32D192ED03ull) & (offers - 1);
    return x ^ (x >> 9);
}

// Vectors of equal ids are equal; vectors of different ids differ, in the first and in the last word.
__device__ void make_vector(u64 id, u32* words)
{
    for (u32 word = 0; word < WARPSET_WIDTH; ++word) words[word] = 77 * word;
    words[0] ^= static_cast<u32>(id);
    if (WARPSET_WIDTH > 1) words[WARPSET_WIDTH - 1] ^= static_cast<u32>(id) * 0x9E3779B1u;
}

// Makes `offers` offers of `distinct` vectors, each equally often, by single threads. Increments news[id] for each New.
// Increments `wrong` for each Full, and for each reference that differs from the vector's first one (in `references`, initially
// all ones).
extern "C" __global__ void offer(warpset::View view, u64 offers, u64 distinct, u64 turn, u32* news, u64* references, u64* wrong)
{
    u64 threads = gridDim.x * static_cast<u64>(blockDim.x);
    for (u64 i = blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; i < offers; i += threads) {
        u64 id = scrambled(i, offers, turn) & (distinct - 1);
        u32 words[WARPSET_WIDTH];
        make_vector(id, words);
        Found found = warpset::table(view).find_or_put(warpset::WordVector{words});
        if (found.outcome == Outcome::New) atomicAdd(news + id, 1u);
        u64 first = atomicCAS(references + id, ~0ull, found.reference);
        if (found.outcome == Outcome::Full || (first != ~0ull && first != found.reference)) atomicAdd(wrong, 1ull);
    }
}

// Writes the vectors of offers `first .. first + count`, for a batch in device memory.
extern "C" __global__ void make_batch(u32* vectors, u64 first, u64 count, u64 offers, u64 distinct)
{
    u64 threads = gridDim.x * static_cast<u64>(blockDim.x);
    for (u64 i = blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; i < count; i += threads)
        make_vector(scrambled(first + i, offers, 0) & (distinct - 1), vectors + i * WARPSET_WIDTH);
}

// Writes the ten successors of each stored vector of ten words: each adds one to one of the words, modulo 8.
extern "C" __global__ void make_successors(warpset::View view, const u64* states, u64 count, u32* vectors, u64* parents,
                                           u32* masks)
{
    u64 threads = gridDim.x * static_cast<u64>(blockDim.x);
    for (u64 i = blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; i < count * 10; i += threads) {
        u32 changed = static_cast<u32>(i % 10);
        parents[i] = states[i / 10];
        masks[i] = 1u << changed;
        for (u32 word = 0; word < WARPSET_WIDTH; ++word)
            vectors[i * WARPSET_WIDTH + word] = (warpset::table(view).word(states[i / 10], word) + (word == changed)) % 8;
    }
}

// Puts vectors incrementally, one per thread, and appends the references of new vectors. `masks` may be null.
extern "C" __global__ void put_successors(warpset::View view, const u32* vectors, const u64* parents, const u32* masks, u64 count,
                                          u64* fresh, warpset::BatchCounts* counts)
{
    u64 threads = gridDim.x * static_cast<u64>(blockDim.x);
    for (u64 i = blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; i < count; i += threads) {
        warpset::ChangedVector vector{vectors + i * WARPSET_WIDTH, masks == nullptr ? nullptr : masks + i};
        Found found = warpset::table(view).find_or_put_incremental(parents[i], vector);
        if (found.outcome == Outcome::New) fresh[atomicAdd(&counts->new_references, 1ull)] = found.reference;
        if (found.outcome == Outcome::Full) atomicAdd(&counts->full, 1ull);
    }
}

// Writes `count` distinct vectors of one word.
extern "C" __global__ void make_numbers(u32* vectors, u64 count)
{
    u64 threads = gridDim.x * static_cast<u64>(blockDim.x);
    for (u64 i = blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; i < count; i += threads)
        vectors[i] = static_cast<u32>(i) * 0x9E3779B1u;
}

// Counts errors in the results for such vectors. Adds to wrong[0] the outcomes that are not `expected`, to wrong[1] the
// references to other vectors, to wrong[2] the new references (`fresh_count` of them) that refer to no vector, and to wrong[3]
// the new references that occur twice. `marks`: one cleared bit per slot, if there are new references.
extern "C" __global__ void judge_numbers(warpset::View view, const u32* vectors, u64 count, warpset::u8 expected,
                                         const warpset::u8* outcomes, const u64* references, const u64* fresh, u64 fresh_count,
                                         u32* marks, u64* wrong)
{
    const auto table = warpset::table(view);
    u64 first = blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x, threads = gridDim.x * static_cast<u64>(blockDim.x);
    for (u64 i = first; i < count; i += threads) {
        u32 word = 0;
        if (outcomes[i] != expected) atomicAdd(wrong, 1ull);
        const bool read = references[i] < table.slots() && table.read_word(references[i], 0, word);
        if (!read || word != vectors[i]) atomicAdd(wrong + 1, 1ull);
    }
    for (u64 i = first; i < fresh_count; i += threads) {
        if (fresh[i] >= table.slots() || !table.holds(fresh[i])) {
            atomicAdd(wrong + 2, 1ull);
            continue;
        }
        u32 bit = 1u << fresh[i] % 32;
        if (atomicOr(marks + fresh[i] / 32, bit) & bit) atomicAdd(wrong + 3, 1ull);
    }
}

// Marks the slots of the vectors whose last word plus `round` is no multiple of 3.
extern "C" __global__ void mark(warpset::View view, u64 slots, u32 round, warpset::u8* marks)
{
    const auto table = warpset::table(view);
    u64 first = blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x, threads = gridDim.x * static_cast<u64>(blockDim.x);
    for (u64 slot = first; slot < slots && slot < table.slots(); slot += threads) {
        u32 last = 0;
        if (table.read_words(slot, WARPSET_WIDTH - 1, 1, [&](u32, u32 word) { last = word; }))
            marks[slot] = (last + round) % 3 != 0;
    }
}
