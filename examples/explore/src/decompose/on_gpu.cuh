// What the kernels want of a GPU: before work.cuh.

#define DECOMPOSE_FN __device__ __forceinline__

namespace decompose {

constexpr unsigned most_threads = 256;

// Volatile: another block may have written it since this one has read it last.
template <class T>
DECOMPOSE_FN T load(const T* at) { return *reinterpret_cast<const volatile T*>(at); }
template <class T>
DECOMPOSE_FN void store(T* at, T value) { *reinterpret_cast<volatile T*>(at) = value; }
// Each gives what was there before.
template <class T>
DECOMPOSE_FN T add(T* at, T value) { return atomicAdd(at, value); }
template <class T>
DECOMPOSE_FN T maximum(T* at, T value) { return atomicMax(at, value); }
template <class T>
DECOMPOSE_FN T minimum(T* at, T value) { return atomicMin(at, value); }
template <class T>
DECOMPOSE_FN T bit_or(T* at, T value) { return atomicOr(at, value); }
template <class T>
DECOMPOSE_FN T exchange(T* at, T value) { return atomicExch(at, value); }
template <class T>
DECOMPOSE_FN T compare_and_swap(T* at, T expected, T value) { return atomicCAS(at, expected, value); }
DECOMPOSE_FN void fence() { __threadfence(); }
// Those who wait for a number to change, and who changes it.
DECOMPOSE_FN void wait_while(const unsigned* at, unsigned value)
{
    while (load(at) == value) __nanosleep(20);
}
DECOMPOSE_FN void wake(unsigned* at, unsigned value) { store(at, value); }

struct Shared;

struct Block {
    static constexpr unsigned tiles = 1;
    Shared* shared;

    DECOMPOSE_FN unsigned thread() const { return threadIdx.x; }
    DECOMPOSE_FN unsigned threads() const { return blockDim.x; }
    DECOMPOSE_FN unsigned long long index() const { return blockIdx.x; }
    DECOMPOSE_FN unsigned long long count() const { return gridDim.x; }
    DECOMPOSE_FN void sync() const { __syncthreads(); }
};

}  // namespace decompose
