// Machine 4: a CUDA device that is simulated on the CPU, to test the host code that drives it (tests/device). Programs get this
// header instead of the one in platform/gpu, which has the same names and documents their promises.
//
// A warp has 32 lanes, and each lane is a fibre. Atomic accesses are those of the processor, because blocks run at the same time.
// Memory order between them is that of the processor, which is stronger than a GPU's; the simulated GPU (tests/simt) tests weaker
// orders.
#pragma once

#define WARPSET_FN inline
#define WARPSET_CALLED __attribute__((noinline))
#define WARPSET_KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define WARPSET_EXPORT extern "C"
#define WARPSET_UNROLL
#define WARPSET_UNROLL_BY(n)

namespace warpset {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;

struct alignas(16) u128 {
    u64 low, high;
};

inline bool operator==(u128 a, u128 b) { return a.low == b.low && a.high == b.high; }

namespace platform {

using warpset_device::check_aligned;
using warpset_device::may_pause;

template <int success, int failure, class Chunk>
inline Chunk compare_and_swap(Chunk* address, Chunk expected, Chunk desired)
{
    check_aligned(address, sizeof(Chunk));
    may_pause();
    if constexpr (sizeof(Chunk) == 16) {
        // Use the older builtin, because compilers implement the newer one by a library call, which may take a lock.
        using Whole = unsigned __int128;
        const auto whole = [](Chunk chunk) { return static_cast<Whole>(chunk.high) << 64 | chunk.low; };
        typedef Whole Aliasing __attribute__((may_alias));
        const Whole seen = __sync_val_compare_and_swap(reinterpret_cast<Aliasing*>(address), whole(expected), whole(desired));
        return {static_cast<u64>(seen), static_cast<u64>(seen >> 64)};
    } else {
        __atomic_compare_exchange_n(address, &expected, desired, false, success, failure);
        return expected;
    }
}

#define WARPSET_COMPARE_AND_SWAP(name, success, failure)                     \
    template <class Chunk>                                                   \
    inline Chunk name(Chunk* address, Chunk expected, Chunk desired)         \
    {                                                                        \
        return compare_and_swap<success, failure>(address, expected, desired); \
    }
WARPSET_COMPARE_AND_SWAP(compare_and_swap_relaxed, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
WARPSET_COMPARE_AND_SWAP(compare_and_swap_acquire, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)
WARPSET_COMPARE_AND_SWAP(compare_and_swap_release, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
WARPSET_COMPARE_AND_SWAP(compare_and_swap_acquire_release, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#undef WARPSET_COMPARE_AND_SWAP

template <class Chunk>
inline Chunk load_relaxed(const Chunk* address)
{
    check_aligned(address, sizeof(Chunk));
    may_pause();
    if constexpr (sizeof(Chunk) == 16) {
#if defined(__x86_64__)
        // This is one MOVDQA, which is atomic on processors with AVX (platform/cpu).
        typedef u64 Quad __attribute__((vector_size(16), may_alias));
        const Quad seen = *reinterpret_cast<const volatile Quad*>(address);
        return {seen[0], seen[1]};
#else
        return compare_and_swap_relaxed(const_cast<Chunk*>(address), Chunk{0, 0}, Chunk{0, 0});
#endif
    } else {
        return __atomic_load_n(address, __ATOMIC_RELAXED);
    }
}

template <class Chunk>
inline Chunk load_acquire(const Chunk* address)
{
    check_aligned(address, sizeof(Chunk));
    may_pause();
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}

template <class Chunk>
inline void store_relaxed(Chunk* address, Chunk value)
{
    check_aligned(address, sizeof(Chunk));
    may_pause();
    __atomic_store_n(address, value, __ATOMIC_RELAXED);
}

template <class Chunk, u32 count>
struct Row {
    Chunk chunk[count];
};

template <class Chunk, u32 count>
inline void load_row_relaxed(const void* address, Row<Chunk, count>& row)
{
    check_aligned(address, sizeof row);
    for (u32 i = 0; i < count; ++i) row.chunk[i] = load_relaxed(static_cast<const Chunk*>(address) + i);
}

template <class Chunk, u32 count>
inline void store_row_relaxed(void* address, const Row<Chunk, count>& row)
{
    check_aligned(address, sizeof row);
    for (u32 i = 0; i < count; ++i) store_relaxed(static_cast<Chunk*>(address) + i, row.chunk[i]);
}

inline void fence_acquire_release() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }

inline u64 fetch_add_relaxed(u64* address, u64 value) { return atomicAdd(address, value); }
inline void add_relaxed(u64* address, u64 value) { atomicAdd(address, value); }
inline void add_relaxed(u32* address, u32 value) { atomicAdd(address, value); }
inline void count_relaxed(u64* counter, bool one)
{
    if (one) add_relaxed(counter, 1);
}
inline void max_relaxed(u64* address, u64 value) { atomicMax(address, value); }

template <class Word>
inline Word load_input(const Word* address)
{
    check_aligned(address, sizeof(Word));
    return *address;
}
inline u128 load_constant(const u128* address) { return load_input(address); }
inline u64 load_pair(const u32* words) { return words[0] | static_cast<u64>(words[1]) << 32; }

inline u64 high_product(u64 a, u64 b) { return __umul64hi(a, b); }
inline u32 population_count(u32 bits) { return __popc(bits); }
inline u32 lowest_bit(u32 bits) { return __ffs(bits) - 1; }
inline u32 leading_zeros(u32 bits) { return __clz(bits); }
inline void prefetch(const void*, u32) {}

struct Warp {
    static constexpr u32 size = 32;

    static u32 lane() { return threadIdx.x & 31; }
    static u32 ballot(bool vote) { return __ballot_sync(~0u, vote); }
    static u32 shuffle(u32 value, u32 source) { return __shfl_sync(~0u, value, source); }
    static u64 shuffle(u64 value, u32 source) { return __shfl_sync(~0u, value, source); }
    static u32 sum_up_to(u32 value)
    {
        return static_cast<u32>(warpset_device::collective(warpset_device::sum_up_to, ~0u, value));
    }
    static u32 any(u32 bits) { return __reduce_or_sync(~0u, bits); }
    static void sync() { __syncwarp(); }
    static void converge() { __syncwarp(); }
    static u8* scratch(u32 bytes) { return warpset_device::dynamic_shared() + threadIdx.x / 32 * bytes; }
};

inline u32 load_block(const u32* address) { return load_relaxed(address); }
inline u32 fetch_add_block(u32* address, u32 value) { return atomicAdd(address, value); }
inline u32 compare_and_swap_block(u32* address, u32 expected, u32 desired) { return atomicCAS(address, expected, desired); }

template <class Chunk, u32 count>
inline void load_row_shared(const void* address, Row<Chunk, count>& row)
{
    load_row_relaxed(address, row);
}
inline u32 fetch_add_shared(u32* address, u32 value) { return atomicAdd(address, value); }
template <class Chunk>
inline Chunk compare_and_swap_shared(Chunk* address, Chunk expected, Chunk desired)
{
    return compare_and_swap_relaxed(address, expected, desired);
}

struct Block {
    static constexpr u32 most_scratch = 99 << 10;

    static u32 thread() { return threadIdx.x; }
    static u32 threads() { return blockDim.x; }
    template <u32 launched>
    static constexpr u32 threads()
    {
        return launched;
    }
    static void sync() { __syncthreads(); }
    static u8* scratch() { return Warp::scratch(0); }
};

struct Share {
    u64 first, last, step;
};

struct Grid {
    static u64 thread() { return blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; }
    static u64 threads() { return gridDim.x * static_cast<u64>(blockDim.x); }
    static u64 warp() { return thread() / Warp::size; }
    static u64 warps() { return threads() / Warp::size; }
    static Share share(u64 count) { return {thread(), count, threads()}; }
};

}  // namespace platform
}  // namespace warpset
