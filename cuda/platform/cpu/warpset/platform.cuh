// Machine 2: threads of a CPU (GCC or Clang, C++17). The names are those of platform/gpu; see there for what each promises.
//
// A warp has one lane here, so the kernels take their one-thread-a-vector path (batch/search.cuh). Chunks are at most 8 bytes:
// every 64-bit CPU has a lock-free compare-and-swap of that size. Relaxed order maps to plain loads and to the processor's
// compare-and-swap instruction; the argument why relaxed is enough is in core/claim.cuh and does not depend on the machine.
#pragma once

#include <type_traits>

#define WARPSET_FN inline
#define WARPSET_CALLED __attribute__((noinline))
// Loops whose length is known at run time only are unrolled as well.
#define WARPSET_UNROLL _Pragma("GCC unroll 16")
#define WARPSET_UNROLL_BY(n)

namespace warpset {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;

struct alignas(16) u128 {
    u64 low, high;
};

namespace platform {

template <class Chunk>
WARPSET_FN Chunk load_relaxed(const Chunk* address)
{
    static_assert(sizeof(Chunk) <= 8, "chunks are at most 8 bytes on a CPU");
    return __atomic_load_n(address, __ATOMIC_RELAXED);
}

template <class Chunk>
WARPSET_FN Chunk compare_and_swap_relaxed(Chunk* address, Chunk expected, Chunk desired)
{
    static_assert(sizeof(Chunk) <= 8, "chunks are at most 8 bytes on a CPU");
    __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

template <class Chunk>
WARPSET_FN Chunk load_acquire(const Chunk* address)
{
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}

template <class Chunk>
WARPSET_FN void store_relaxed(Chunk* address, Chunk value)
{
    __atomic_store_n(address, value, __ATOMIC_RELAXED);
}

// Each acquires when it fails, too, but for the one that releases only.
template <class Chunk>
WARPSET_FN Chunk compare_and_swap_acquire(Chunk* address, Chunk expected, Chunk desired)
{
    __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
    return expected;
}

template <class Chunk>
WARPSET_FN Chunk compare_and_swap_release(Chunk* address, Chunk expected, Chunk desired)
{
    __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return expected;
}

template <class Chunk>
WARPSET_FN Chunk compare_and_swap_acquire_release(Chunk* address, Chunk expected, Chunk desired)
{
    __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
}

// Relaxed: counters are read after the threads have been joined; nothing else is read through them.
WARPSET_FN u64 fetch_add_relaxed(u64* address, u64 value) { return __atomic_fetch_add(address, value, __ATOMIC_RELAXED); }
WARPSET_FN void add_relaxed(u64* address, u64 value) { fetch_add_relaxed(address, value); }

WARPSET_FN void count_relaxed(u64* counter, bool one)
{
    if (one) add_relaxed(counter, 1);
}

WARPSET_FN void max_relaxed(u64* address, u64 value)
{
    u64 old = load_relaxed(address);
    while (old < value && !__atomic_compare_exchange_n(address, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

template <class Chunk, u32 count>
struct Row {
    Chunk chunk[count];
};

template <class Chunk, u32 count>
WARPSET_FN void load_row_relaxed(const void* address, Row<Chunk, count>& row)
{
    for (u32 i = 0; i < count; ++i) row.chunk[i] = load_relaxed(static_cast<const Chunk*>(address) + i);
}

template <class Chunk, u32 count>
WARPSET_FN void store_row_relaxed(void* address, const Row<Chunk, count>& row)
{
    for (u32 i = 0; i < count; ++i) store_relaxed(static_cast<Chunk*>(address) + i, row.chunk[i]);
}

WARPSET_FN void fence_acquire_release() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }

WARPSET_FN u128 load_constant(const u128* address) { return *address; }

template <class Word>
WARPSET_FN Word load_input(const Word* address)
{
    return *address;
}

// The first of two words in the low half. One load, of any alignment.
WARPSET_FN u64 load_pair(const u32* words)
{
    u64 pair;
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first word is the low half");
    __builtin_memcpy(&pair, words, sizeof(pair));
    return pair;
}

WARPSET_FN u64 high_product(u64 a, u64 b) { return static_cast<u64>((static_cast<unsigned __int128>(a) * b) >> 64); }
WARPSET_FN u32 population_count(u32 bits) { return __builtin_popcount(bits); }
WARPSET_FN u32 leading_zeros(u32 bits) { return __builtin_clz(bits); }
WARPSET_FN u32 lowest_bit(u32 bits) { return __builtin_ctz(bits); }

// The lines of a range, at most four: after these the processor goes on by itself.
WARPSET_FN void prefetch(const void* address, u32 bytes)
{
    constexpr u64 line = 64;
    const char* at = static_cast<const char*>(address) - reinterpret_cast<u64>(address) % line;
    const char* end = static_cast<const char*>(address) + (bytes < 4 * line ? bytes : 4 * line);
    for (; at < end; at += line) __builtin_prefetch(at, 1);
    asm volatile("");  // GCC takes the function for one without effect, and deletes calls that it does not inline
}

struct Warp {
    static constexpr u32 size = 1;

    static u32 lane() { return 0; }
    static u32 ballot(bool vote) { return vote; }
    static u32 shuffle(u32 value, u32) { return value; }
    static u64 shuffle(u64 value, u32) { return value; }
    static void sync() {}
    static u8* scratch(u32) { return nullptr; }  // only warps of several lanes stage vectors
};

struct Share {
    u64 first, last, step;
};

// Set by the caller of a kernel (cpu_tables.cpp): which thread of how many this one plays.
struct Grid {
    static inline thread_local u64 thread_index = 0;
    static inline thread_local u64 thread_count = 1;

    static u64 thread() { return thread_index; }
    static u64 threads() { return thread_count; }
    static u64 warp() { return thread_index; }
    static u64 warps() { return thread_count; }
    // A contiguous share: threads that wrote to the same lines would take them from each other all the time.
    static Share share(u64 count)
    {
        u64 whole = count / thread_count, rest = count % thread_count;
        u64 first = whole * thread_index + (thread_index < rest ? thread_index : rest);
        return {first, first + whole + (thread_index < rest), 1};
    }
};

}  // namespace platform
}  // namespace warpset
