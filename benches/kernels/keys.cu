// Random keys made in device memory, and a kernel that reads all keys of a table.
#include "warpset/batch/maintenance.cuh"
#include "warpset/table.cuh"

using warpset::u32;
using warpset::u64;

// Key i is one of `pool` random keys of `key_bits` bits; members are numbered from `first_member`.
extern "C" __global__ void make_keys(u64* keys, u64 count, u64 pool, u64 first_member, u32 key_bits)
{
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < count; at += gridDim.x * (u64)blockDim.x) {
        u64 member = first_member + __umul64hi(mix(at), pool);
        keys[at] = mix(mix(member) + 1) >> (64 - key_bits);
    }
}

// Reads every key of the table, in no order; `stored`: their number.
extern "C" __global__ void read_all(warpset::View view, u64 slots, u32* keys, u64* stored)
{
    warpset::export_vectors(warpset::table(view), 0, slots, keys, nullptr, stored);
}
