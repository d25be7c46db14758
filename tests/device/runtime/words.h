// CUDA C++ for kernels that run on the CPU. nvrtc/program.rs includes this file in front of every program that it compiles.
//
// A thread of a block is a fibre: it has its own stack, and runs until it reaches a collective, a barrier or a pause. Then
// another fibre of its block continues (execution/block.rs). All threads of a block run on one thread of the operating system, so
// `__shared__` becomes `__thread`. nvrtc/translation.rs replaces this word, `__global__`, `__launch_bounds__` and inline PTX.
//
// No system header is included: NVRTC has none either, and compiling them takes long.
#pragma once

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))

using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr));

struct uint2 { unsigned x, y; };
struct uint3 { unsigned x, y, z; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct int2 { int x, y; };
struct int3 { int x, y, z; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

extern "C" int printf(const char* format, ...);
extern "C" void* memcpy(void* to, const void* from, size_t bytes);
extern "C" void* memset(void* to, int byte, size_t bytes);

constexpr int warpSize = 32;

namespace warpset_device {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;

// Mirrored by `Lane` and `Block` in execution/block.rs, which have further fields after these.
struct Block {
    uint3 index, size, grid;
    u32 unused;
    u8* shared;  // dynamic shared memory
};
struct Lane {
    uint3 thread;
    u32 number;     // in its warp
    Block* block;
    u32 countdown;  // accesses until this lane pauses for another one; 0: 2^32
};

// The values are the numbers that execution/block.rs uses for collectives (`NAMES`).
enum CollectiveKind : u32 {
    sync, ballot, shuffle, sum_up_to, any_bit, all_bits, odd_bits, sum, least, most, least_signed, most_signed, match_any,
    match_all
};

// Mirrored by `Runtime` in execution/block.rs.
struct Runtime {
    u64 (*collective)(Lane* lane, u32 kind, u32 lanes, u64 value, u32 source);
    u64 (*barrier)(Lane* lane, u32 value);  // number of threads that passed a nonzero value
    void (*pause)(Lane* lane);
    void (*wait)(Lane* lane);               // for a thread of this block or another
    void (*fail)(Lane* lane, u32 status, const char* what, const char* file, u32 line);
    u64 (*nanoseconds)();
};
inline const Runtime* runtime __attribute__((visibility("hidden"))) = nullptr;

// The values are those of `Status` in execution/mod.rs.
enum Status : u32 { trap = 0, assertion = 1, misaligned = 2 };

// Returns the lane that is running. A stack is aligned to its size, and its last word is the address of its lane.
inline Lane* lane()
{
    u64 place;
#if defined(__x86_64__)
    __asm("mov %%rsp, %0" : "=r"(place));
#elif defined(__aarch64__)
    __asm("mov %0, sp" : "=r"(place));
#else
#error "no stack pointer is known of this processor"
#endif
    return *reinterpret_cast<Lane**>((place | (WARPSET_DEVICE_STACK_BYTES - 1)) - 7);
}

inline u64 collective(CollectiveKind kind, u32 lanes, u64 value = 0, u32 source = 0)
{
    return runtime->collective(lane(), kind, lanes, value, source);
}

// Called before each atomic access. At random accesses it lets other lanes run first.
inline void may_pause()
{
    Lane* me = lane();
    if (__builtin_expect(--me->countdown == 0, 0)) runtime->pause(me);
}

// Called in a loop that waits for other threads.
inline void wait() { runtime->wait(lane()); }

inline u8* dynamic_shared() { return lane()->block->shared; }

inline void check_aligned(const void* address, u64 bytes, const char* file = __builtin_FILE(), u32 line = __builtin_LINE())
{
    if (__builtin_expect(reinterpret_cast<u64>(address) % bytes != 0, 0))
        runtime->fail(lane(), misaligned, "an access that is not aligned to its size", file, line);
}

template <class T>
inline T bits_to(u64 bits)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "values of 4 or 8 bytes are shuffled");
    T value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T>
inline u64 bits_of(T value)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "values of 4 or 8 bytes are shuffled");
    u64 bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return bits;
}

// A kernel's entry for the host. Mirrored by `Entry` in execution/module.rs.
struct Entry {
    const void* function;
    const char* section;  // ".text." and its name: a CUBIN has a section of this name
    void (*call)(const u8* arguments);
    u32 parameters;
    const u32* sizes;
    const u32* offsets;
    u32 bytes;
    u32 threads, blocks;  // launch bounds; 0 if there are none
};

struct Bounds {
    u32 threads, blocks;
};
constexpr Bounds bounds(u32 threads = 0, u32 blocks = 0, u32 = 0) { return {threads, blocks}; }

template <u32... numbers>
struct Numbers {};
template <u32 count, u32... numbers>
struct UpTo : UpTo<count - 1, count - 1, numbers...> {};
template <u32... numbers>
struct UpTo<0, numbers...> {
    using Type = Numbers<numbers...>;
};

// Packs parameters one after another, each aligned as its type requires.
template <class... Parameters>
struct Packing {
    static constexpr u32 count = sizeof...(Parameters);
    u32 sizes[count + 1], offsets[count + 1], bytes;
    constexpr Packing() : sizes{sizeof(Parameters)..., 0}, offsets{}, bytes(0)
    {
        const u32 alignments[count + 1] = {alignof(Parameters)..., 1};
        for (u32 at = 0; at < count; ++at) {
            bytes = (bytes + alignments[at] - 1) / alignments[at] * alignments[at];
            offsets[at] = bytes;
            bytes += sizes[at];
        }
    }
};

template <auto kernel>
struct Call;
template <class... Parameters, void (*kernel)(Parameters...)>
struct Call<kernel> {
    static constexpr Packing<Parameters...> packing{};

    template <u32... numbers>
    static void with(const u8* arguments, Numbers<numbers...>)
    {
        (void)arguments;
        kernel(*reinterpret_cast<const Parameters*>(arguments + packing.offsets[numbers])...);
    }
    static void run(const u8* arguments) { with(arguments, typename UpTo<sizeof...(Parameters)>::Type{}); }
};

}  // namespace warpset_device

#define threadIdx (::warpset_device::lane()->thread)
#define blockIdx (::warpset_device::lane()->block->index)
#define blockDim (::warpset_device::lane()->block->size)
#define gridDim (::warpset_device::lane()->block->grid)

// Barriers and collectives follow.
inline void __syncthreads() { warpset_device::runtime->barrier(warpset_device::lane(), 0); }
inline int __syncthreads_count(int value)
{
    return static_cast<int>(warpset_device::runtime->barrier(warpset_device::lane(), value != 0));
}
inline int __syncthreads_or(int value) { return __syncthreads_count(value) != 0; }
inline int __syncthreads_and(int value) { return __syncthreads_count(value == 0) == 0; }
inline void __syncwarp(unsigned lanes = ~0u) { warpset_device::collective(warpset_device::sync, lanes); }
// Returns the lanes that run the same instruction together. Each fibre runs alone, which CUDA allows.
inline unsigned __activemask() { return 1u << warpset_device::lane()->number; }
inline unsigned __ballot_sync(unsigned lanes, int vote)
{
    return static_cast<unsigned>(warpset_device::collective(warpset_device::ballot, lanes, vote != 0));
}
inline int __any_sync(unsigned lanes, int vote) { return __ballot_sync(lanes, vote) != 0; }
inline int __all_sync(unsigned lanes, int vote) { return __ballot_sync(lanes, !vote) == 0; }

template <class T>
inline T __shfl_sync(unsigned lanes, T value, int source, int width = 32)
{
    using namespace warpset_device;
    const u32 first = lane()->number & ~static_cast<u32>(width - 1);
    return bits_to<T>(collective(shuffle, lanes, bits_of(value), first + (static_cast<u32>(source) & (width - 1))));
}
template <class T>
inline T __shfl_up_sync(unsigned lanes, T value, unsigned distance, int width = 32)
{
    using namespace warpset_device;
    const u32 at = lane()->number, place = at & (width - 1);
    return bits_to<T>(collective(shuffle, lanes, bits_of(value), place < distance ? at : at - distance));
}
template <class T>
inline T __shfl_down_sync(unsigned lanes, T value, unsigned distance, int width = 32)
{
    using namespace warpset_device;
    const u32 at = lane()->number, place = at & (width - 1);
    return bits_to<T>(
        collective(shuffle, lanes, bits_of(value), place + distance < static_cast<u32>(width) ? at + distance : at));
}
template <class T>
inline T __shfl_xor_sync(unsigned lanes, T value, int bits, int width = 32)
{
    using namespace warpset_device;
    const u32 at = lane()->number, source = at ^ static_cast<u32>(bits);
    const u32 behind = (at & ~static_cast<u32>(width - 1)) + width;
    return bits_to<T>(collective(shuffle, lanes, bits_of(value), source < behind ? source : at));
}
template <class T>
inline unsigned __match_any_sync(unsigned lanes, T value)
{
    return static_cast<unsigned>(warpset_device::collective(warpset_device::match_any, lanes, warpset_device::bits_of(value)));
}
template <class T>
inline unsigned __match_all_sync(unsigned lanes, T value, int* same)
{
    const auto equal = static_cast<unsigned>(
        warpset_device::collective(warpset_device::match_all, lanes, warpset_device::bits_of(value)));
    *same = equal != 0;
    return equal;
}
inline unsigned __reduce_or_sync(unsigned lanes, unsigned value)
{
    return warpset_device::collective(warpset_device::any_bit, lanes, value);
}
inline unsigned __reduce_and_sync(unsigned lanes, unsigned value)
{
    return warpset_device::collective(warpset_device::all_bits, lanes, value);
}
inline unsigned __reduce_xor_sync(unsigned lanes, unsigned value)
{
    return warpset_device::collective(warpset_device::odd_bits, lanes, value);
}
inline unsigned __reduce_add_sync(unsigned lanes, unsigned value)
{
    return warpset_device::collective(warpset_device::sum, lanes, value);
}
inline int __reduce_add_sync(unsigned lanes, int value)
{
    return static_cast<int>(warpset_device::collective(warpset_device::sum, lanes, static_cast<unsigned>(value)));
}
inline unsigned __reduce_min_sync(unsigned lanes, unsigned value)
{
    return warpset_device::collective(warpset_device::least, lanes, value);
}
inline unsigned __reduce_max_sync(unsigned lanes, unsigned value)
{
    return warpset_device::collective(warpset_device::most, lanes, value);
}
inline int __reduce_min_sync(unsigned lanes, int value)
{
    return static_cast<int>(warpset_device::collective(warpset_device::least_signed, lanes, static_cast<unsigned>(value)));
}
inline int __reduce_max_sync(unsigned lanes, int value)
{
    return static_cast<int>(warpset_device::collective(warpset_device::most_signed, lanes, static_cast<unsigned>(value)));
}

// Fences, time, and failures follow.
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) { warpset_device::wait(); }
inline long long clock64() { return static_cast<long long>(warpset_device::runtime->nanoseconds()); }
inline long clock() { return static_cast<long>(clock64()); }
inline void __trap() { warpset_device::runtime->fail(warpset_device::lane(), warpset_device::trap, "__trap()", "", 0); }
#define assert(condition)                                                                                 \
    ((condition) ? (void)0                                                                                \
                 : ::warpset_device::runtime->fail(::warpset_device::lane(), ::warpset_device::assertion, \
                                                   #condition, __FILE__, __LINE__))

// Bit operations follow.
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }
inline int __clzll(long long bits) { return bits == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(bits)); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline unsigned __brev(unsigned bits)
{
    unsigned reversed = 0;
    for (unsigned at = 0; at < 32; ++at) reversed |= (bits >> at & 1) << (31 - at);
    return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
template <class T>
inline T __ldg(const T* address)
{
    return *address;
}
#define WARPSET_DEVICE_LESS(T)                        \
    inline T min(T a, T b) { return b < a ? b : a; } \
    inline T max(T a, T b) { return a < b ? b : a; }
WARPSET_DEVICE_LESS(int)
WARPSET_DEVICE_LESS(unsigned)
WARPSET_DEVICE_LESS(long)
WARPSET_DEVICE_LESS(unsigned long)
WARPSET_DEVICE_LESS(long long)
WARPSET_DEVICE_LESS(unsigned long long)
WARPSET_DEVICE_LESS(float)
WARPSET_DEVICE_LESS(double)
#undef WARPSET_DEVICE_LESS

// Atomics follow. All are relaxed, as in CUDA, and each returns the previous value.
#define WARPSET_DEVICE_ATOMIC(name, T, builtin)                \
    inline T name(T* address, T value)                         \
    {                                                          \
        ::warpset_device::check_aligned(address, sizeof(T));   \
        ::warpset_device::may_pause();                         \
        return builtin(address, value, __ATOMIC_RELAXED);      \
    }
#define WARPSET_DEVICE_ATOMICS(T)                              \
    WARPSET_DEVICE_ATOMIC(atomicAdd, T, __atomic_fetch_add)    \
    WARPSET_DEVICE_ATOMIC(atomicSub, T, __atomic_fetch_sub)    \
    WARPSET_DEVICE_ATOMIC(atomicAnd, T, __atomic_fetch_and)    \
    WARPSET_DEVICE_ATOMIC(atomicOr, T, __atomic_fetch_or)      \
    WARPSET_DEVICE_ATOMIC(atomicXor, T, __atomic_fetch_xor)    \
    WARPSET_DEVICE_ATOMIC(atomicExch, T, __atomic_exchange_n)
WARPSET_DEVICE_ATOMICS(int)
WARPSET_DEVICE_ATOMICS(unsigned)
WARPSET_DEVICE_ATOMICS(unsigned long long)
#undef WARPSET_DEVICE_ATOMICS
#undef WARPSET_DEVICE_ATOMIC

#define WARPSET_DEVICE_COMPARE_AND_SWAP(T)                                                                             \
    inline T atomicCAS(T* address, T expected, T desired)                                                              \
    {                                                                                                                  \
        ::warpset_device::check_aligned(address, sizeof(T));                                                           \
        ::warpset_device::may_pause();                                                                                 \
        __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);           \
        return expected;                                                                                               \
    }
WARPSET_DEVICE_COMPARE_AND_SWAP(unsigned short)
WARPSET_DEVICE_COMPARE_AND_SWAP(int)
WARPSET_DEVICE_COMPARE_AND_SWAP(unsigned)
WARPSET_DEVICE_COMPARE_AND_SWAP(unsigned long long)
#undef WARPSET_DEVICE_COMPARE_AND_SWAP

namespace warpset_device {

// The translated PTX calls the following functions.
template <class T>
inline T load(const T* address)
{
    check_aligned(address, sizeof(T));
    may_pause();
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}
template <class T, class V>
inline void store(T* address, V value)
{
    check_aligned(address, sizeof(T));
    may_pause();
    __atomic_store_n(address, static_cast<T>(value), __ATOMIC_RELEASE);
}

// Replaces the value at an address by a function of it.
template <class T, class Change>
inline T update(T* address, Change change)
{
    check_aligned(address, sizeof(T));
    may_pause();
    T before;
    __atomic_load(address, &before, __ATOMIC_RELAXED);
    while (true) {
        T after = change(before);
        if (__atomic_compare_exchange(address, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return before;
    }
}

}  // namespace warpset_device

#define WARPSET_DEVICE_LIMITS(T)                                                          \
    inline T atomicMin(T* address, T value)                                               \
    {                                                                                     \
        return ::warpset_device::update(address, [=](T now) { return min(now, value); }); \
    }                                                                                     \
    inline T atomicMax(T* address, T value)                                               \
    {                                                                                     \
        return ::warpset_device::update(address, [=](T now) { return max(now, value); }); \
    }
WARPSET_DEVICE_LIMITS(int)
WARPSET_DEVICE_LIMITS(unsigned)
WARPSET_DEVICE_LIMITS(long long)
WARPSET_DEVICE_LIMITS(unsigned long long)
#undef WARPSET_DEVICE_LIMITS
inline float atomicAdd(float* address, float value)
{
    return warpset_device::update(address, [=](float now) { return now + value; });
}
inline double atomicAdd(double* address, double value)
{
    return warpset_device::update(address, [=](double now) { return now + value; });
}
inline unsigned atomicInc(unsigned* address, unsigned most)
{
    return warpset_device::update(address, [=](unsigned now) { return now >= most ? 0 : now + 1; });
}
inline unsigned atomicDec(unsigned* address, unsigned most)
{
    return warpset_device::update(address, [=](unsigned now) { return now == 0 || now > most ? most : now - 1; });
}

// A program's description for the host. Mirrored by `Description` in execution/module.rs.
namespace warpset_device {

extern "C" Entry __start_warpset_kernels[] __attribute__((weak, visibility("hidden")));
extern "C" Entry __stop_warpset_kernels[] __attribute__((weak, visibility("hidden")));

struct Description {
    const Entry* first;
    const Entry* last;
    const Runtime** runtime;
};

extern "C" __attribute__((visibility("default"), used)) inline void warpset_device_describe(Description* description)
{
    *description = {__start_warpset_kernels, __stop_warpset_kernels, &runtime};
}

}  // namespace warpset_device
