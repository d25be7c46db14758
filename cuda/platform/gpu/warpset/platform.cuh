// Machine 1: an NVIDIA GPU (NVRTC or nvcc, compute capability 7.5 and later).
//
// This folder is the only place with inline PTX, builtins or anything else that differs between machines. Every machine
// provides the same names:
//
//   WARPSET_FN, WARPSET_KERNEL, WARPSET_EXPORT,     function, entry point, constant that the host reads,
//   WARPSET_CALLED                                  function that is not inlined,
//   WARPSET_UNROLL                                  full unrolling (the CPU has neither entry points nor such constants)
//   u8 u32 u64 u128                                 words; u128 is 16-byte aligned, `low` first in memory
//   load_relaxed, compare_and_swap_relaxed          one scalar atomic access of 4, 8 or 16 bytes
//   Row<Chunk>, load_row_relaxed                    16 or 8 aligned bytes as chunks, each chunk one scalar atomic access
//   store_relaxed, store_row_relaxed, load_acquire, compare_and_swap_acquire, compare_and_swap_release,
//   compare_and_swap_acquire_release,
//   fence_acquire_release                           what publishes rows (indexed/table.cuh), of 4 and 8 bytes
//   add_relaxed, fetch_add_relaxed, max_relaxed,
//   count_relaxed                                   counters
//   load_pair                                      two words that no thread writes meanwhile, of any alignment
//   load_constant, load_input                       memory that no thread writes during the kernel
//   high_product, population_count, lowest_bit, leading_zeros, prefetch
//   Warp                                            lane, ballot, shuffle, sum_up_to, any, sync, scratch memory; `size` lanes
//   load_block, fetch_add_block,
//   compare_and_swap_block                          the same of 4 bytes, between the threads of a block, of its shared memory
//   load_row_shared, fetch_add_shared,
//   compare_and_swap_shared                         of 4 and 8 bytes, of shared memory only, which is faster
//   Block                                           this thread's number in its block, how many there are, barrier, scratch
//                                                   memory and how much there may be
//   Grid                                            this thread's (or warp's) number and how many there are
//
// Atomics. All have device scope (`.gpu`), except those between the threads of a block. All are relaxed, except those of indexed
// tables, which read rows through slots: chained claiming (core/claim.cuh) reads no data *through* a chunk. The data read is the
// data compared, so nothing needs to be ordered between locations. But each access must be a single access of the declared size,
// and coherent:
//   - `ld.relaxed.gpu` is a strong operation served by the L2, so it can never return a stale line of an L1;
//   - 16-byte chunks use the scalar `.b128` type (PTX 8.3, sm_70+ loads, sm_90+ compare-and-swap). A vector type (`.v2.b64`,
//     a C++ struct load) is, by the PTX memory model, two accesses in unspecified order, and a half-seen chunk looks
//     "decided otherwise";
//   - conversely, 8- and 4-byte chunks are loaded several at a time with `.v2.b64` and `.v4.b32`, because there each element
//     is exactly one scalar access of the size that compare-and-swap uses (accesses of mixed size are not atomic with
//     respect to each other).
#pragma once

#define WARPSET_FN __device__ __forceinline__
#define WARPSET_CALLED __device__ __noinline__
#define WARPSET_KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define WARPSET_EXPORT extern "C" __device__
#define WARPSET_UNROLL _Pragma("unroll")
#define WARPSET_UNROLL_BY(n) _Pragma(WARPSET_TEXT(unroll n))
#define WARPSET_TEXT(text) #text

namespace warpset {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;

struct alignas(16) u128 {
    u64 low, high;
};

WARPSET_FN bool operator==(u128 a, u128 b) { return a.low == b.low && a.high == b.high; }

namespace platform {

WARPSET_FN u32 load_relaxed(const u32* address)
{
    u32 value;
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

WARPSET_FN u64 load_relaxed(const u64* address)
{
    u64 value;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

WARPSET_FN u128 load_relaxed(const u128* address)
{
    u128 value;
    asm volatile(
        "{ .reg .b128 whole; ld.relaxed.gpu.global.b128 whole, [%2]; mov.b128 {%0, %1}, whole; }"
        : "=l"(value.low), "=l"(value.high)
        : "l"(address)
        : "memory");
    return value;
}

// The chunks of 16 (or, for u64 only, 8) aligned bytes.
template <class Chunk, u32 count>
struct Row {
    Chunk chunk[count];
};

WARPSET_FN void load_row_relaxed(const void* address, Row<u32, 4>& row)
{
    asm volatile("ld.relaxed.gpu.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(row.chunk[0]), "=r"(row.chunk[1]), "=r"(row.chunk[2]), "=r"(row.chunk[3])
                 : "l"(address)
                 : "memory");
}

WARPSET_FN void load_row_relaxed(const void* address, Row<u64, 2>& row)
{
    asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];"
                 : "=l"(row.chunk[0]), "=l"(row.chunk[1])
                 : "l"(address)
                 : "memory");
}

WARPSET_FN void load_row_relaxed(const void* address, Row<u64, 1>& row)
{
    row.chunk[0] = load_relaxed(static_cast<const u64*>(address));
}

WARPSET_FN void load_row_relaxed(const void* address, Row<u128, 1>& row)
{
    row.chunk[0] = load_relaxed(static_cast<const u128*>(address));
}

// Each compare-and-swap returns the previous value of the location. It has stored `desired` if that value equals `expected`.
WARPSET_FN u32 compare_and_swap_relaxed(u32* address, u32 expected, u32 desired)
{
    u32 old;
    asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "l"(address), "r"(expected), "r"(desired)
                 : "memory");
    return old;
}

WARPSET_FN u64 compare_and_swap_relaxed(u64* address, u64 expected, u64 desired)
{
    u64 old;
    asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(address), "l"(expected), "l"(desired)
                 : "memory");
    return old;
}

// Requires sm_90 or later. Tables on earlier GPUs have 8-byte chunks and never instantiate this function.
WARPSET_FN u128 compare_and_swap_relaxed(u128* address, u128 expected, u128 desired)
{
    u128 old;
    asm volatile(
        "{ .reg .b128 is, want, was; mov.b128 is, {%3, %4}; mov.b128 want, {%5, %6};"
        " atom.relaxed.gpu.global.cas.b128 was, [%2], is, want; mov.b128 {%0, %1}, was; }"
        : "=l"(old.low), "=l"(old.high)
        : "l"(address), "l"(expected.low), "l"(expected.high), "l"(desired.low), "l"(desired.high)
        : "memory");
    return old;
}

WARPSET_FN void load_row_relaxed(const void* address, Row<u32, 1>& row)
{
    row.chunk[0] = load_relaxed(static_cast<const u32*>(address));
}

WARPSET_FN u32 load_acquire(const u32* address)
{
    u32 value;
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

WARPSET_FN u64 load_acquire(const u64* address)
{
    u64 value;
    asm volatile("ld.acquire.gpu.global.b64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

WARPSET_FN void store_relaxed(u32* address, u32 value)
{
    asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" : : "l"(address), "r"(value) : "memory");
}

WARPSET_FN void store_relaxed(u64* address, u64 value)
{
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

WARPSET_FN void store_row_relaxed(void* address, const Row<u32, 1>& row)
{
    store_relaxed(static_cast<u32*>(address), row.chunk[0]);
}
WARPSET_FN void store_row_relaxed(void* address, const Row<u64, 1>& row)
{
    store_relaxed(static_cast<u64*>(address), row.chunk[0]);
}
WARPSET_FN void store_row_relaxed(void* address, const Row<u64, 2>& row)
{
    asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};"
                 :
                 : "l"(address), "l"(row.chunk[0]), "l"(row.chunk[1])
                 : "memory");
}

#define WARPSET_COMPARE_AND_SWAP(name, order)                                                                   \
    WARPSET_FN u32 name(u32* address, u32 expected, u32 desired)                                                \
    {                                                                                                           \
        u32 old;                                                                                                \
        asm volatile("atom." order ".gpu.global.cas.b32 %0, [%1], %2, %3;"                                      \
                     : "=r"(old)                                                                                \
                     : "l"(address), "r"(expected), "r"(desired)                                                \
                     : "memory");                                                                               \
        return old;                                                                                             \
    }                                                                                                           \
    WARPSET_FN u64 name(u64* address, u64 expected, u64 desired)                                                \
    {                                                                                                           \
        u64 old;                                                                                                \
        asm volatile("atom." order ".gpu.global.cas.b64 %0, [%1], %2, %3;"                                      \
                     : "=l"(old)                                                                                \
                     : "l"(address), "l"(expected), "l"(desired)                                                \
                     : "memory");                                                                               \
        return old;                                                                                             \
    }
WARPSET_COMPARE_AND_SWAP(compare_and_swap_acquire, "acquire")
WARPSET_COMPARE_AND_SWAP(compare_and_swap_release, "release")
WARPSET_COMPARE_AND_SWAP(compare_and_swap_acquire_release, "acq_rel")
#undef WARPSET_COMPARE_AND_SWAP

WARPSET_FN void fence_acquire_release() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }

// Relaxed: counters are read after the kernel has ended; nothing else is read through them.
WARPSET_FN u64 fetch_add_relaxed(u64* address, u64 value)
{
    u64 old;
    asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(value) : "memory");
    return old;
}

WARPSET_FN void add_relaxed(u64* address, u64 value)
{
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

WARPSET_FN void add_relaxed(u32* address, u32 value)
{
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" : : "l"(address), "r"(value) : "memory");
}

// Adds the number of calling threads that pass `one`. Lanes of a warp that call this together share one addition. Any control
// flow is allowed: lanes that arrive apart add apart.
WARPSET_FN void count_relaxed(u64* counter, bool one)
{
    u32 lanes = __ballot_sync(__activemask(), one), lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));  // blocks of a user's kernel may have any shape
    if (one && lane == __ffs(lanes) - 1) add_relaxed(counter, __popc(lanes));
}

WARPSET_FN void max_relaxed(u64* address, u64 value)
{
    asm volatile("red.relaxed.gpu.global.max.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

// For memory that no thread writes during the kernel and that is the same for many threads: kept in L1.
WARPSET_FN u128 load_constant(const u128* address)
{
    u128 value;
    // Volatile: a seed that is hoisted out of the batch loop costs a register, or worse a spill, for every word.
    asm volatile("ld.global.nc.v2.u64 {%0, %1}, [%2];" : "=l"(value.low), "=l"(value.high) : "l"(address));
    return value;
}

// Two words as one value, the first in the low half. The address need not be aligned to 8 bytes: the compiler makes one access
// only if it knows that the address is aligned.
WARPSET_FN u64 load_pair(const u32* words) { return words[0] | static_cast<u64>(words[1]) << 32; }

// For memory that one thread reads once.
WARPSET_FN u32 load_input(const u32* address)
{
    u32 value;
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(value) : "l"(address));
    return value;
}

WARPSET_FN u64 load_input(const u64* address)
{
    u64 value;
    asm volatile("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(value) : "l"(address));
    return value;
}

WARPSET_FN u128 load_input(const u128* address)
{
    u128 value;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u64 {%0, %1}, [%2];"
                 : "=l"(value.low), "=l"(value.high)
                 : "l"(address));
    return value;
}

WARPSET_FN u64 high_product(u64 a, u64 b) { return __umul64hi(a, b); }
WARPSET_FN u32 population_count(u32 bits) { return __popc(bits); }
WARPSET_FN u32 lowest_bit(u32 bits) { return __ffs(bits) - 1; }
WARPSET_FN u32 leading_zeros(u32 bits) { return __clz(bits); }
WARPSET_FN void prefetch(const void*, u32) {}

// For one-dimensional blocks that consist of whole warps.
struct Warp {
    static constexpr u32 size = 32;

    WARPSET_FN static u32 lane() { return threadIdx.x & 31; }
    // Mask of the lanes that pass `true`. All lanes call it, converged.
    WARPSET_FN static u32 ballot(bool vote) { return __ballot_sync(~0u, vote); }
    // The value that lane `source` passes. All lanes call it, converged.
    WARPSET_FN static u32 shuffle(u32 value, u32 source) { return __shfl_sync(~0u, value, source); }
    WARPSET_FN static u64 shuffle(u64 value, u32 source) { return __shfl_sync(~0u, value, source); }
    // The sum of this lane's value and those of all lanes before it. All lanes call it, converged.
    WARPSET_FN static u32 sum_up_to(u32 value)
    {
        WARPSET_UNROLL
        for (u32 distance = 1; distance < size; distance *= 2) {
            const u32 other = __shfl_up_sync(~0u, value, distance);
            if (lane() >= distance) value += other;
        }
        return value;
    }
    // Bits that at least one lane passes. All lanes call it, converged.
    WARPSET_FN static u32 any(u32 bits)
    {
#if __CUDA_ARCH__ >= 800
        return __reduce_or_sync(~0u, bits);
#else
        WARPSET_UNROLL
        for (u32 distance = 1; distance < size; distance *= 2) bits |= __shfl_xor_sync(~0u, bits, distance);
        return bits;
#endif
    }
    // Orders the scratch memory of this warp between its lanes.
    WARPSET_FN static void sync() { __syncwarp(); }
    // Keeps the compiler from moving later code before earlier code. No lane may rely on it to order memory: the simulator orders
    // no memory here, so that it notices if a `sync` is missing.
    WARPSET_FN static void converge() { __syncwarp(); }
    // This warp's part of the block's dynamic shared memory, 16-byte aligned; `bytes` is a multiple of 16.
    WARPSET_FN static u8* scratch(u32 bytes)
    {
        extern __shared__ __align__(16) u8 warpset_block_scratch[];
        return warpset_block_scratch + (threadIdx.x / 32) * bytes;
    }
};

// Relaxed, block scope, of memory of any kind: only these accesses may be to shared memory.
WARPSET_FN u32 load_block(const u32* address)
{
    u32 value;
    asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

WARPSET_FN u32 fetch_add_block(u32* address, u32 value)
{
    u32 old;
    asm volatile("atom.relaxed.cta.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(value) : "memory");
    return old;
}

WARPSET_FN u32 compare_and_swap_block(u32* address, u32 expected, u32 desired)
{
    u32 old;
    asm volatile("atom.relaxed.cta.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "l"(address), "r"(expected), "r"(desired)
                 : "memory");
    return old;
}

// Relaxed, block scope, of shared memory only.
WARPSET_FN u32 shared_address(const void* address) { return static_cast<u32>(__cvta_generic_to_shared(address)); }

// Each chunk is one access.
WARPSET_FN void load_row_shared(const void* address, Row<u32, 4>& row)
{
    asm volatile("ld.relaxed.cta.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(row.chunk[0]), "=r"(row.chunk[1]), "=r"(row.chunk[2]), "=r"(row.chunk[3])
                 : "r"(shared_address(address))
                 : "memory");
}

WARPSET_FN void load_row_shared(const void* address, Row<u64, 2>& row)
{
    asm volatile("ld.relaxed.cta.shared.v2.b64 {%0, %1}, [%2];"
                 : "=l"(row.chunk[0]), "=l"(row.chunk[1])
                 : "r"(shared_address(address))
                 : "memory");
}

WARPSET_FN u32 fetch_add_shared(u32* address, u32 value)
{
    u32 old;
    asm volatile("atom.relaxed.cta.shared.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "r"(shared_address(address)), "r"(value)
                 : "memory");
    return old;
}

WARPSET_FN u32 compare_and_swap_shared(u32* address, u32 expected, u32 desired)
{
    u32 old;
    asm volatile("atom.relaxed.cta.shared.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "r"(shared_address(address)), "r"(expected), "r"(desired)
                 : "memory");
    return old;
}

WARPSET_FN u64 compare_and_swap_shared(u64* address, u64 expected, u64 desired)
{
    u64 old;
    asm volatile("atom.relaxed.cta.shared.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "r"(shared_address(address)), "l"(expected), "l"(desired)
                 : "memory");
    return old;
}

// Blocks are one-dimensional and consist of whole warps.
struct Block {
    // Bytes of shared memory that a block may have: 64 KiB on compute capability 7.5, 99 KiB or more on later ones.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    static constexpr u32 most_scratch = 64 << 10;
#else
    static constexpr u32 most_scratch = 99 << 10;
#endif

    WARPSET_FN static u32 thread() { return threadIdx.x; }
    WARPSET_FN static u32 threads() { return blockDim.x; }
    // Number of threads as a constant, in a kernel that is always launched with this number. (The simulator launches any.)
    template <u32 launched>
    WARPSET_FN static constexpr u32 threads()
    {
        return launched;
    }
    // Orders memory between the threads of the block. All threads of the block call it.
    WARPSET_FN static void sync() { __syncthreads(); }
    // The block's dynamic shared memory, 16-byte aligned.
    WARPSET_FN static u8* scratch() { return Warp::scratch(0); }
};

struct Share {
    u64 first, last, step;
};

struct Grid {
    WARPSET_FN static u64 thread() { return blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; }
    WARPSET_FN static u64 threads() { return gridDim.x * static_cast<u64>(blockDim.x); }
    WARPSET_FN static u64 warp() { return thread() / Warp::size; }
    WARPSET_FN static u64 warps() { return threads() / Warp::size; }
    // This thread's share of the items 0 .. count: neighbouring threads take neighbouring items, which share a request.
    WARPSET_FN static Share share(u64 count) { return {thread(), count, threads()}; }
};

}  // namespace platform
}  // namespace warpset
