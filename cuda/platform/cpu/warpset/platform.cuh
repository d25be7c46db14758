// Machine 2: threads of a CPU (GCC or Clang, C++17). The names are those of platform/gpu, which documents them.
//
// A warp has one lane here, so the kernels take their one-thread-a-vector path (batch/search.cuh). Relaxed order maps to plain
// loads and to the processor's compare-and-swap instruction; the argument why relaxed is enough is in core/claim.cuh and does not
// depend on the machine.
//
// Every 64-bit CPU has a lock-free compare-and-swap of 8 bytes. Most x86-64 ones have one of 16 (`cmpxchg16b`), and those of
// Intel and AMD with AVX promise that an aligned load of 16 bytes by MOVDQA is atomic (Intel's manual, volume 3, 9.1.1; AMD's,
// volume 2, 7.3.2). What is compiled here can do both; src/backend/cpu/cas_width.rs finds out whether the processor does.
//
// On AArch64 each half of 8 bytes of a vector load (LDR or LDP of Q registers) from an aligned address is one atomic access
// (Arm's Architecture Reference Manual for A-profile, B2.2.1, single-copy atomicity), with or without FEAT_LSE2.
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

// 16 bytes in one register.
typedef u64 Quad __attribute__((vector_size(16), may_alias));

WARPSET_FN bool operator==(u128 a, u128 b) { return ((a.low ^ b.low) | (a.high ^ b.high)) == 0; }

namespace platform {

// Whether there are claims of 16 bytes. ThreadSanitizer would report the load as one that is not atomic.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WARPSET_UNDER_THREAD_SANITIZER 1
#endif
#endif
#if defined(__x86_64__) && defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16) && !defined(__SANITIZE_THREAD__) && \
    !defined(WARPSET_UNDER_THREAD_SANITIZER)
#define WARPSET_CLAIMS_16_BYTES 1
#else
#define WARPSET_CLAIMS_16_BYTES 0
#endif

// Whether vector loads of AArch64 compare a bucket. (Big-endian processors number lanes otherwise.)
#if defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && !defined(__SANITIZE_THREAD__) && \
    !defined(WARPSET_UNDER_THREAD_SANITIZER)
#define WARPSET_MATCHES_64_BYTES 1
#else
#define WARPSET_MATCHES_64_BYTES 0
#endif

// One MOVDQA: volatile, so it is neither split nor left out. The address is aligned to 16 bytes.
WARPSET_FN Quad load_quad_relaxed(const u128* address) { return *reinterpret_cast<const volatile Quad*>(address); }

template <class Chunk>
WARPSET_FN Chunk load_relaxed(const Chunk* address)
{
    if constexpr (sizeof(Chunk) == 16) {
        static_assert(sizeof(Chunk) < 16 || WARPSET_CLAIMS_16_BYTES, "16 bytes are not claimed at once");
        const Quad seen = load_quad_relaxed(address);
        return {seen[0], seen[1]};
    } else {
        return __atomic_load_n(address, __ATOMIC_RELAXED);
    }
}

template <class Chunk>
WARPSET_FN Chunk compare_and_swap_relaxed(Chunk* address, Chunk expected, Chunk desired)
{
    if constexpr (sizeof(Chunk) == 16) {
#if WARPSET_CLAIMS_16_BYTES
        // The older builtin, because compilers implement the newer one by a library, which may take a lock.
        using Whole = unsigned __int128;
        const auto whole = [](Chunk chunk) { return static_cast<Whole>(chunk.high) << 64 | chunk.low; };
        typedef Whole Aliasing __attribute__((may_alias));
        const Whole seen =
            __sync_val_compare_and_swap(reinterpret_cast<Aliasing*>(address), whole(expected), whole(desired));
        return {static_cast<u64>(seen), static_cast<u64>(seen >> 64)};
#else
        static_assert(sizeof(Chunk) <= 8, "16 bytes are not claimed at once");
#endif
    } else {
        __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        return expected;
    }
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

// All but the release-only one also acquire if they fail.
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
WARPSET_FN void add_relaxed(u32* address, u32 value) { __atomic_fetch_add(address, value, __ATOMIC_RELAXED); }

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

// Prefetches the lines of a range, at most four: after these the processor continues by itself.
WARPSET_FN void prefetch(const void* address, u32 bytes)
{
    constexpr u64 line = 64;
    // A power of two is the size of a range that is aligned to it.
    if (__builtin_constant_p(bytes) && bytes <= line && (bytes & (bytes - 1)) == 0) {
        __builtin_prefetch(address, 1);
        return;
    }
    const char* at = static_cast<const char*>(address) - reinterpret_cast<u64>(address) % line;
    const char* end = static_cast<const char*>(address) + (bytes < 4 * line ? bytes : 4 * line);
    for (; at < end; at += line) __builtin_prefetch(at, 1);
    asm volatile("");  // GCC takes the function for one without effect, and deletes calls that it does not inline
}

#if defined(__x86_64__)
// Adds to the sums of a hash (core/hash.cuh) those of `words` words, a multiple of 8, on a processor with AVX-512 (hash.cpp).
void add_pairs_at_once(const u128* seeds, const u32* vector, u32 words, u64& sum0, u64& sum1);
#endif

// Slots of a bucket, a bit each.
struct SlotMasks {
    u32 equal;         // slots that hold the value
    u32 may_be_empty;  // slots that are EMPTY, and rarely others
};

// `Warp::match_bucket` for buckets of 64 bytes: 16 slots of one word, or 8 of two words. Used on AArch64, whose vectors have
// comparisons of both sizes of lanes. <arm_neon.h> is not included, because it takes the compiler half a second in each file.
template <class Chunk>
WARPSET_FN SlotMasks match_bucket_of_64(const void* bucket, Chunk value, Chunk empty, u32 class_bits)
{
    typedef Chunk Lanes __attribute__((vector_size(16), may_alias));
    constexpr u32 lanes = 16 / sizeof(Chunk);
    const Lanes none{};
    const Chunk classes = class_bits;
    const Lanes wanted = none + value, any_class = none + classes, empty_or_class = none + (empty | classes);
    // Each lane collects its slots' bits, and both halves of the vector hold different ones.
    Lanes place = none, equal = none, may_be_empty = none;
    for (u32 lane = 0; lane < lanes; ++lane) place[lane] = Chunk{1} << lane;
    WARPSET_UNROLL
    for (u32 quarter = 0; quarter < 4; ++quarter) {
        const Lanes seen = reinterpret_cast<Lanes>(load_quad_relaxed(static_cast<const u128*>(bucket) + quarter));
        equal |= reinterpret_cast<Lanes>(seen == wanted) & place;
        may_be_empty |= reinterpret_cast<Lanes>((seen | any_class) == empty_or_class) & place;
        place <<= none + Chunk{lanes};
    }
    const auto bits = [](Lanes of_lanes) {
        const Quad halves = reinterpret_cast<Quad>(of_lanes);
        const u64 both = halves[0] | halves[1];
        return static_cast<u32>(both | both >> 32);
    };
    return {bits(equal), bits(may_be_empty)};
}

struct Warp {
    static constexpr u32 size = 1;

    // Whether `match_bucket` sees buckets of `bucket_bytes` whose slots are single chunks of `Chunk`, on machines with claims of
    // `claim_bytes`.
    template <class Chunk, u32 claim_bytes, u32 bucket_bytes>
    static constexpr bool matches_buckets =
        sizeof(Chunk) <= 8 && ((WARPSET_CLAIMS_16_BYTES && claim_bytes == 16 && bucket_bytes == 32) ||
                               (WARPSET_MATCHES_64_BYTES && claim_bytes == 8 && bucket_bytes == 64));

    // Compares all slots of a bucket with a value, and with EMPTY, whose first word is `empty` but for the bits in `class_bits`.
    //
    // Does loads of 16 bytes, whose part for each slot is one atomic access: the masks have for a slot the result that a relaxed
    // load of the slot at that moment would have. On x86-64 a whole load is one access, but only processors with AVX guarantee
    // this (see the top of this file). On others a vector load may see the halves of a slot at different moments, and take a slot
    // that is being decided for one that was decided for another vector. These processors compare one slot after another. On
    // AArch64 every processor reads each aligned half of 8 bytes by one access, and a slot lies within such a half.
    template <class Chunk>
    static SlotMasks match_bucket(const void* bucket, Chunk value, Chunk empty, u32 class_bits)
    {
#if WARPSET_MATCHES_64_BYTES
        return match_bucket_of_64(bucket, value, empty, class_bits);
#elif WARPSET_CLAIMS_16_BYTES
        typedef u32 Words __attribute__((vector_size(16), may_alias));
        typedef int Lanes __attribute__((vector_size(16)));
        typedef float Floats __attribute__((vector_size(16)));
        const u128* halves = static_cast<const u128*>(bucket);
        const Words first = reinterpret_cast<Words>(load_quad_relaxed(halves)),
                    second = reinterpret_cast<Words>(load_quad_relaxed(halves + 1));
        const auto all = [](u32 word) { return Words{word, word, word, word}; };
        // The highest bit of each lane (MOVMSKPS), by the name that GCC and Clang have for it.
        const auto bits = [](Lanes lanes) { return static_cast<u32>(__builtin_ia32_movmskps(reinterpret_cast<Floats>(lanes))); };
        const Words any_class = all(class_bits), empty_low = all(static_cast<u32>(empty) | class_bits),
                    wanted_low = all(static_cast<u32>(value));
        if constexpr (sizeof(Chunk) == 4) {
            return {bits(first == wanted_low) | bits(second == wanted_low) << 4,
                    bits((first | any_class) == empty_low) | bits((second | any_class) == empty_low) << 4};
        } else {
            // Slots of two words: the low words of all four, and the high ones.
            const Words lows{first[0], first[2], second[0], second[2]}, highs{first[1], first[3], second[1], second[3]};
            return {bits((lows == wanted_low) & (highs == all(static_cast<u32>(value >> 32)))),
                    bits(((lows | any_class) == empty_low) & (highs == all(static_cast<u32>(empty >> 32))))};
        }
#else
        return {};
#endif
    }

    // Whether these consecutive chunks equal the words of a vector. All are looked at.
    template <class Chunk>
    static bool agree(const Chunk* chunks, const u32* words, u32 count)
    {
        if constexpr (sizeof(Chunk) == 16) {
            Quad difference{};
            WARPSET_UNROLL
            for (u32 chunk = 0; chunk < count; ++chunk) {
                Quad value;
                __builtin_memcpy(&value, words + chunk * 4, sizeof(value));
                difference |= load_quad_relaxed(chunks + chunk) ^ value;
            }
            return (difference[0] | difference[1]) == 0;
        } else {
            Chunk difference = 0;
            WARPSET_UNROLL
            for (u32 chunk = 0; chunk < count; ++chunk) {
                Chunk value;
                __builtin_memcpy(&value, words + chunk * (sizeof(Chunk) / 4), sizeof(value));
                difference |= load_relaxed(chunks + chunk) ^ value;
            }
            return difference == 0;
        }
    }

    // Adds up the first pairs of a long vector, if the processor adds several at once. Returns the number of their words.
    static u32 add_pairs([[maybe_unused]] const u128* seeds, [[maybe_unused]] const u32* vector, [[maybe_unused]] u32 words,
                         [[maybe_unused]] u64& sum0, [[maybe_unused]] u64& sum1)
    {
#if defined(__x86_64__)
        if (words >= 16 && __builtin_cpu_supports("avx512dq")) {
            add_pairs_at_once(seeds, vector, words / 8 * 8, sum0, sum1);
            return words / 8 * 8;
        }
#endif
        return 0;
    }

    static u32 lane() { return 0; }
    static u32 ballot(bool vote) { return vote; }
    static u32 shuffle(u32 value, u32) { return value; }
    static u64 shuffle(u64 value, u32) { return value; }
    static void sync() {}
    static void converge() {}
    static u8* scratch(u32) { return nullptr; }  // only warps of several lanes stage vectors
};

// A block is one thread, so its memory has no other readers or writers: plain accesses do.
WARPSET_FN u32 load_block(const u32* address) { return *address; }

WARPSET_FN u32 fetch_add_block(u32* address, u32 value)
{
    const u32 old = *address;
    *address = old + value;
    return old;
}

// A block is one thread.
struct Block {
    static u32 thread() { return 0; }
    static u32 threads() { return 1; }
    static void sync() {}
    static u8* scratch() { return nullptr; }  // the caller has memory of its own
};

struct Share {
    u64 first, last, step;
};

// Set by the caller of a kernel (cpu_tables.cpp): number of this thread, and number of all threads.
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
