// A kernel whose blocks gather the vectors of a batch and put them together.
#include "warpset/block_cache.cuh"

using warpset::u32;
using warpset::u64;

using Cache = warpset::BlockCache<warpset::Table, 192>;
static_assert(WARPSET_WIDTH <= 16 && Cache::bytes(2) <= 40960, "what the tests launch it with");

// Blocks must have 64 threads. If `changed` is null, the changed words are unknown.
extern "C" __global__ void put_by_blocks(warpset::View view, const u32* vectors, const u64* parents, const u32* changed,
                                         u64 count, u64* new_references, warpset::BatchCounts* counts)
{
    extern __shared__ __align__(16) warpset::u8 shared[];
    const warpset::Table table = warpset::table(view);
    Cache cache(shared);
    cache.clear();
    for (u64 first = blockIdx.x * static_cast<u64>(blockDim.x); first < count;
         first += gridDim.x * static_cast<u64>(blockDim.x)) {
        if (cache.free_rows() < blockDim.x) cache.find_or_put(table, new_references, counts);
        const u64 index = first + threadIdx.x;
        if (index >= count) continue;
        const u32* mask = changed == nullptr ? nullptr : changed + index;
        cache.add(warpset::ChangedVector{vectors + index * WARPSET_WIDTH, mask},
                  mask == nullptr ? warpset::no_reference : parents[index]);
    }
    cache.find_or_put(table, new_references, counts);
}
