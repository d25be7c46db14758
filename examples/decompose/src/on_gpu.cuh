// GPU primitives that the kernels use. Include before work.cuh.

#define DECOMPOSE_FN __device__ __forceinline__

namespace decompose {

constexpr unsigned most_threads = 256;

// Volatile: another block may have written the word since this thread last read it.
template <class T>
DECOMPOSE_FN T load(const T* at) { return *reinterpret_cast<const volatile T*>(at); }
template <class T>
DECOMPOSE_FN void store(T* at, T value) { *reinterpret_cast<volatile T*>(at) = value; }
// Each function returns the value before the operation.
template <class T>
DECOMPOSE_FN T add(T* at, T value) { return atomicAdd(at, value); }
template <class T>
DECOMPOSE_FN T maximum(T* at, T value) { return atomicMax(at, value); }
template <class T>
DECOMPOSE_FN T minimum(T* at, T value) { return atomicMin(at, value); }
template <class T>
DECOMPOSE_FN T bit_or(T* at, T value) { return atomicOr(at, value); }
template <class T>
DECOMPOSE_FN T bit_and(T* at, T value) { return atomicAnd(at, value); }
template <class T>
DECOMPOSE_FN T compare_and_swap(T* at, T expected, T value) { return atomicCAS(at, expected, value); }
DECOMPOSE_FN void fence() { __threadfence(); }
// Adds 1 for each active thread of the warp. All threads must use the same address; one thread adds for all.
template <class T>
DECOMPOSE_FN T add_one(T* at)
{
    const unsigned here = __activemask(), lane = threadIdx.x % 32, first = __ffs(here) - 1;
    T before = 0;
    if (lane == first) before = atomicAdd(at, static_cast<T>(__popc(here)));
    return __shfl_sync(here, before, first) + __popc(here & ((1u << lane) - 1));
}
// Adds 1 for each active thread of the warp. Addresses may differ; for each address, one thread adds for all threads that use it.
template <class T>
DECOMPOSE_FN T add_alike(T* at)
{
    const unsigned here = __match_any_sync(__activemask(), reinterpret_cast<unsigned long long>(at));
    const unsigned lane = threadIdx.x % 32, first = __ffs(here) - 1;
    T before = 0;
    if (lane == first) before = atomicAdd(at, static_cast<T>(__popc(here)));
    return __shfl_sync(here, before, first) + __popc(here & ((1u << lane) - 1));
}
// Prefetches a word that will be read soon.
DECOMPOSE_FN void prefetch(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }
// Waits until a number has reached `value`. The thread whose increase completes it calls `rouse`.
DECOMPOSE_FN void wait_for(const unsigned long long* at, unsigned long long value)
{
    while (load(at) < value) {}
}
DECOMPOSE_FN void rouse() {}

struct Shared;

struct Block {
    static constexpr unsigned tiles = 1, least_tile = 32;
    Shared* shared;
    unsigned long long next;  // number of the level that appended states go to
    unsigned long long looked = 0;  // edges looked at
    unsigned side = 0;  // which half of the block's own states is in use
    bool keeps = false;  // whether the block keeps the states that it finds

    DECOMPOSE_FN unsigned thread() const { return threadIdx.x; }
    DECOMPOSE_FN unsigned threads() const { return blockDim.x; }
    DECOMPOSE_FN unsigned long long index() const { return blockIdx.x; }
    DECOMPOSE_FN unsigned long long count() const { return gridDim.x; }
    DECOMPOSE_FN void sync() const { __syncthreads(); }
    // Returns the sum of the values of the threads before this one. `total` gets the sum of all values. All threads of the block
    // must call this function, which synchronizes them.
    DECOMPOSE_FN unsigned long long sum_before(unsigned long long value, unsigned long long& total) const;
};

}  // namespace decompose
