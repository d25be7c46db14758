// CUDA names that the model checker's kernels (examples/explore) use, defined for the simulated GPU.
#pragma once

#include "warpset/platform.cuh"

namespace simt_names {

struct Index {
    unsigned x;
};

inline const warpset::simt::Identity& me() { return *warpset::simt::warpset_simt_identity(); }
inline Index thread_index() { return {me().thread_in_block}; }
inline Index block_size() { return {me().threads_in_block}; }
inline Index block_index() { return {static_cast<unsigned>(me().thread / me().threads_in_block)}; }
inline Index grid_size() { return {static_cast<unsigned>(me().threads / me().threads_in_block)}; }

using warpset::simt::RequestKind;
using warpset::simt::Order;
using warpset::simt::Site;

inline void fence(Site site)
{
    warpset::simt::Request request{RequestKind::Fence, Order::AcquireRelease, 0, 1, nullptr, 0, 0, {}, {}, site};
    warpset::simt::warpset_simt_request(&request);
}

// Whether `has` is true in any lane of the block, like `__syncthreads_or`.
inline bool any_of_block(bool has, warpset::u32* word, Site site)
{
    using warpset::platform::Block;
    if (Block::thread() == 0) *word = 0;
    Block::sync(site);
    if (has) warpset::simt::store(word, 1u, Order::Relaxed, site, warpset::simt::any);
    Block::sync(site);
    const bool any = warpset::platform::load_block(word, site) != 0;
    Block::sync(site);
    return any;
}

// Collectives of some lanes of a warp; the other lanes take no part.
inline void sync_lanes(unsigned lanes = ~0u, Site site = Site::here())
{
    warpset::simt::collective(RequestKind::SyncWarp, lanes, 0, 0, site);
}
inline unsigned ballot_of_lanes(unsigned lanes, bool vote, Site site = Site::here())
{
    return static_cast<unsigned>(warpset::simt::collective(RequestKind::Ballot, lanes, vote, 0, site));
}
inline unsigned shuffle_of_lanes(unsigned lanes, unsigned value, unsigned source, unsigned width, Site site = Site::here())
{
    const unsigned first = warpset::platform::Warp::lane() / width * width;
    return static_cast<unsigned>(warpset::simt::collective(RequestKind::Shuffle, lanes, value, first + source % width, site));
}

// Sets bits, by as many compare-and-swaps as it takes.
inline unsigned set_bits(unsigned* address, unsigned bits, Site site = Site::here())
{
    unsigned before = warpset::platform::load_block(address, site);
    while (true) {
        const unsigned seen = warpset::platform::compare_and_swap_block(address, before, before | bits, site);
        if (seen == before) return before;
        before = seen;
    }
}

}  // namespace simt_names

#define __global__
#define __launch_bounds__(...)
#define threadIdx (simt_names::thread_index())
#define blockIdx (simt_names::block_index())
#define blockDim (simt_names::block_size())
#define gridDim (simt_names::grid_size())
#define __syncthreads() ::warpset::platform::Block::sync()
#define __syncwarp(...) simt_names::sync_lanes(__VA_ARGS__)
#define __ballot_sync(lanes, vote) simt_names::ballot_of_lanes((lanes), (vote))
#define __shfl_sync(lanes, value, source, width) simt_names::shuffle_of_lanes((lanes), (value), (source), (width))
#define __syncthreads_or(has) simt_names::any_of_block((has), reinterpret_cast<u32*>(SIMT_SHARED_AT(0)), simt_names::Site::here())
#define __threadfence() simt_names::fence(simt_names::Site::here())
#define __nanosleep(time)
#define clock64() 0
#define atomicAdd(address, value) ::warpset::platform::fetch_add_block((address), (value))
#define atomicCAS(address, expected, value) ::warpset::platform::compare_and_swap_block((address), (expected), (value))
#define atomicOr(address, bits) simt_names::set_bits((address), (bits))
#define atomicExch(address, value) \
    ::warpset::simt::store<u32>((address), (value), simt_names::Order::Relaxed, simt_names::Site::here(), ::warpset::simt::any)

// Address behind the shared memory that the launch requests. Each use in the source gets 16 bytes, the first use being
// `__syncthreads_or`.
#define SIMT_SHARED_AT(number) (::warpset::platform::Block::scratch() + explore::Chosen::shared_bytes + 16 * (number))
#define EXPLORE_SHARED(type, name, count) type* const name = reinterpret_cast<type*>(SIMT_SHARED_AT(1 + __COUNTER__ % 7))
#define EXPLORE_SHARED_OF_LAUNCH(name) u8* const name = ::warpset::platform::Block::scratch()

#define EXPLORE_SHARED_BYTES (explore::Chosen::shared_bytes + 16 * 8)
