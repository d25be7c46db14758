// Machine 3: a simulated GPU, for tests (tests/simt). The names are those of platform/gpu, which documents them.
//
// Every lane is a fibre of one OS thread. An operation that other lanes could notice - an atomic access, a vote, a shuffle, a
// barrier - is a *request*: it is recorded and passed to the scheduler (tests/simt/src), which suspends the lane and decides
// which lane continues and what each load sees. All other code runs directly; plain accesses are reported by the compiler's
// instrumentation for thread sanitizers (`-fsanitize=thread`), whose runtime the simulator replaces by its own race detector.
//
// Requests know the line of the code that made them, for traces: the default arguments below are evaluated at the caller.
#pragma once

#define WARPSET_FN inline
#define WARPSET_CALLED __attribute__((noinline))
#define WARPSET_EXPORT static
#define WARPSET_KERNEL(threads, blocks) [[maybe_unused]] static void
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

namespace simt {

struct Site {
    const char* file;
    u32 line;

    static constexpr Site here(const char* file = __builtin_FILE(), u32 line = __builtin_LINE()) { return {file, line}; }
};

// The values are those of the enums of the same names in tests/simt/src/request.rs.
enum class RequestKind : u32 { Load, Store, CompareAndSwap, FetchAdd, Add, Max, Fence, Ballot, Shuffle, SyncWarp, SyncBlock };
enum class Order : u32 { Weak, Relaxed, Acquire, Release, AcquireRelease };
enum Space : u32 { global, any };  // the memory of an access; `any` may be shared

// Request of a lane, with its answer. Mirrored by `Request` in tests/simt/src/request.rs.
struct Request {
    RequestKind kind;
    Order order;
    u32 size, count;    // accesses: `count` neighbouring ones of `size` bytes, each a single access
    void* address;
    u32 lanes;          // collectives: mask of the lanes that take part
    u32 source;         // a shuffle: the lane whose value is read; accesses: their space
    u32 expected[4];    // compare-and-swap: the expected value
    u32 value[4];       // the value written, added, voted or shuffled; afterwards the value read
    Site site;
};

// Identity of a lane. Mirrored by `Identity` in tests/simt/src/request.rs.
struct Identity {
    u64 thread, threads;         // in its grid
    u32 thread_in_block, lane;
    u8* block_scratch;           // the shared memory of its block
    u32 threads_in_block;
};

extern "C" {
void warpset_simt_request(Request* request);          // returns when it has been carried out
const Identity* warpset_simt_identity();
void warpset_simt_misaligned(const void* address, u32 bytes, const char* file, u32 line);  // does not return
}

template <class Word>
inline void put(u32 (&cells)[4], Word value)
{
    static_assert(sizeof(Word) <= 16);
    __builtin_memcpy(cells, &value, sizeof value);
}

template <class Word>
inline Word get(const u32 (&cells)[4])
{
    Word value;
    __builtin_memcpy(&value, cells, sizeof value);
    return value;
}

template <class Word>
inline Word load(const Word* address, Order order, Site site, Space space = global)
{
    Request request{RequestKind::Load, order, sizeof(Word), 1, const_cast<Word*>(address), 0, space, {}, {}, site};
    warpset_simt_request(&request);
    return get<Word>(request.value);
}

template <class Word>
inline void store(Word* address, Word value, Order order, Site site, Space space = global)
{
    Request request{RequestKind::Store, order, sizeof(Word), 1, address, 0, space, {}, {}, site};
    put(request.value, value);
    warpset_simt_request(&request);
}

template <class Word>
inline Word compare_and_swap(Word* address, Word expected, Word desired, Order order, Site site, Space space = global)
{
    Request request{RequestKind::CompareAndSwap, order, sizeof(Word), 1, address, 0, space, {}, {}, site};
    put(request.expected, expected);
    put(request.value, desired);
    warpset_simt_request(&request);
    return get<Word>(request.value);
}

inline u64 count(RequestKind kind, u64* address, u64 value, Site site)
{
    Request request{kind, Order::Relaxed, 8, 1, address, 0, 0, {}, {}, site};
    put(request.value, value);
    warpset_simt_request(&request);
    return get<u64>(request.value);
}

inline u64 collective(RequestKind kind, u32 lanes, u64 value, u32 source, Site site)
{
    Request request{kind, Order::Relaxed, 0, 0, nullptr, lanes, source, {}, {}, site};
    put(request.value, value);
    warpset_simt_request(&request);
    return get<u64>(request.value);
}

}  // namespace simt

namespace platform {

using simt::Site;

template <class Chunk>
WARPSET_FN Chunk load_relaxed(const Chunk* address, Site site = Site::here())
{
    return simt::load(address, simt::Order::Relaxed, site);
}

template <class Chunk>
WARPSET_FN Chunk compare_and_swap_relaxed(Chunk* address, Chunk expected, Chunk desired, Site site = Site::here())
{
    return simt::compare_and_swap(address, expected, desired, simt::Order::Relaxed, site);
}

template <class Chunk>
WARPSET_FN Chunk load_acquire(const Chunk* address, Site site = Site::here())
{
    return simt::load(address, simt::Order::Acquire, site);
}

template <class Chunk>
WARPSET_FN void store_relaxed(Chunk* address, Chunk value, Site site = Site::here())
{
    simt::store(address, value, simt::Order::Relaxed, site);
}

template <class Chunk>
WARPSET_FN Chunk compare_and_swap_acquire(Chunk* address, Chunk expected, Chunk desired, Site site = Site::here())
{
    return simt::compare_and_swap(address, expected, desired, simt::Order::Acquire, site);
}

template <class Chunk>
WARPSET_FN Chunk compare_and_swap_release(Chunk* address, Chunk expected, Chunk desired, Site site = Site::here())
{
    return simt::compare_and_swap(address, expected, desired, simt::Order::Release, site);
}

template <class Chunk>
WARPSET_FN Chunk compare_and_swap_acquire_release(Chunk* address, Chunk expected, Chunk desired, Site site = Site::here())
{
    return simt::compare_and_swap(address, expected, desired, simt::Order::AcquireRelease, site);
}

WARPSET_FN void fence_acquire_release(Site site = Site::here())
{
    simt::Request request{simt::RequestKind::Fence, simt::Order::AcquireRelease, 0, 1, nullptr, 0, 0, {}, {}, site};
    warpset_simt_request(&request);
}

WARPSET_FN u64 fetch_add_relaxed(u64* address, u64 value, Site site = Site::here())
{
    return simt::count(simt::RequestKind::FetchAdd, address, value, site);
}

WARPSET_FN void add_relaxed(u64* address, u64 value, Site site = Site::here())
{
    simt::count(simt::RequestKind::Add, address, value, site);
}

WARPSET_FN void add_relaxed(u32* address, u32 value, Site site = Site::here())
{
    u32 seen = load_relaxed(address, site);
    while (true) {
        const u32 before = compare_and_swap_relaxed(address, seen, seen + value, site);
        if (before == seen) return;
        seen = before;
    }
}

WARPSET_FN void count_relaxed(u64* counter, bool one, Site site = Site::here())
{
    if (one) add_relaxed(counter, 1, site);
}

WARPSET_FN void max_relaxed(u64* address, u64 value, Site site = Site::here())
{
    simt::count(simt::RequestKind::Max, address, value, site);
}

template <class Chunk, u32 count>
struct Row {
    Chunk chunk[count];
};

template <class Chunk, u32 count>
WARPSET_FN void load_row_relaxed(const void* address, Row<Chunk, count>& row, Site site = Site::here())
{
    static_assert(sizeof row <= 16);
    if (reinterpret_cast<u64>(address) % sizeof row != 0)
        simt::warpset_simt_misaligned(address, sizeof row, site.file, site.line);
    simt::Request request{simt::RequestKind::Load, simt::Order::Relaxed, sizeof(Chunk), count, const_cast<void*>(address),
                          0, 0, {}, {}, site};
    warpset_simt_request(&request);
    __builtin_memcpy(&row, request.value, sizeof row);
}

template <class Chunk, u32 count>
WARPSET_FN void store_row_relaxed(void* address, const Row<Chunk, count>& row, Site site = Site::here())
{
    static_assert(sizeof row <= 16);
    if (reinterpret_cast<u64>(address) % sizeof row != 0)
        simt::warpset_simt_misaligned(address, sizeof row, site.file, site.line);
    for (u32 i = 0; i < count; ++i) store_relaxed(static_cast<Chunk*>(address) + i, row.chunk[i], site);
}

// Plain accesses, seen through the instrumentation; only the alignment that a GPU wants must be checked by hand.
template <class Word>
WARPSET_FN Word load_input(const Word* address, Site site = Site::here())
{
    if (reinterpret_cast<u64>(address) % sizeof(Word) != 0)
        simt::warpset_simt_misaligned(address, sizeof(Word), site.file, site.line);
    return *address;
}

WARPSET_FN u64 load_pair(const u32* words) { return words[0] | static_cast<u64>(words[1]) << 32; }

WARPSET_FN u128 load_constant(const u128* address, Site site = Site::here()) { return load_input(address, site); }

WARPSET_FN u64 high_product(u64 a, u64 b) { return static_cast<u64>((static_cast<unsigned __int128>(a) * b) >> 64); }
WARPSET_FN u32 population_count(u32 bits) { return static_cast<u32>(__builtin_popcount(bits)); }
WARPSET_FN u32 leading_zeros(u32 bits) { return bits == 0 ? 32 : static_cast<u32>(__builtin_clz(bits)); }
WARPSET_FN u32 lowest_bit(u32 bits) { return bits == 0 ? ~0u : static_cast<u32>(__builtin_ctz(bits)); }
WARPSET_FN void prefetch(const void*, u32) {}

struct Warp {
    static constexpr u32 size = 32;

    static u32 lane() { return simt::warpset_simt_identity()->lane; }
    static u32 ballot(bool vote, Site site = Site::here())
    {
        return static_cast<u32>(simt::collective(simt::RequestKind::Ballot, ~0u, vote, 0, site));
    }
    static u32 shuffle(u32 value, u32 source, Site site = Site::here())
    {
        return static_cast<u32>(simt::collective(simt::RequestKind::Shuffle, ~0u, value, source, site));
    }
    static u64 shuffle(u64 value, u32 source, Site site = Site::here())
    {
        return simt::collective(simt::RequestKind::Shuffle, ~0u, value, source, site);
    }
    static u32 sum_up_to(u32 value, Site site = Site::here())
    {
        for (u32 distance = 1; distance < size; distance *= 2) {
            const u32 other = shuffle(value, (lane() - distance) % size, site);
            if (lane() >= distance) value += other;
        }
        return value;
    }
    static u32 any(u32 bits, Site site = Site::here())
    {
        for (u32 distance = 1; distance < size; distance *= 2) bits |= shuffle(bits, lane() ^ distance, site);
        return bits;
    }
    static void sync(Site site = Site::here()) { simt::collective(simt::RequestKind::SyncWarp, ~0u, 0, 0, site); }
    // Orders no memory: see `converge` in platform/gpu.
    static void converge(Site site = Site::here()) { ballot(false, site); }
    static u8* scratch(u32 bytes)
    {
        const simt::Identity* me = simt::warpset_simt_identity();
        return me->block_scratch + me->thread_in_block / 32 * bytes;
    }
};

WARPSET_FN u32 load_block(const u32* address, Site site = Site::here())
{
    return simt::load(address, simt::Order::Relaxed, site, simt::any);
}

WARPSET_FN u32 fetch_add_block(u32* address, u32 value, Site site = Site::here())
{
    simt::Request request{simt::RequestKind::FetchAdd, simt::Order::Relaxed, 4, 1, address, 0, simt::any, {}, {}, site};
    simt::put(request.value, value);
    warpset_simt_request(&request);
    return simt::get<u32>(request.value);
}

WARPSET_FN u32 compare_and_swap_block(u32* address, u32 expected, u32 desired, Site site = Site::here())
{
    return simt::compare_and_swap(address, expected, desired, simt::Order::Relaxed, site, simt::any);
}

template <class Chunk, u32 count>
WARPSET_FN void load_row_shared(const void* address, Row<Chunk, count>& row, Site site = Site::here())
{
    if (reinterpret_cast<u64>(address) % sizeof row != 0)
        simt::warpset_simt_misaligned(address, sizeof row, site.file, site.line);
    simt::Request request{simt::RequestKind::Load, simt::Order::Relaxed, sizeof(Chunk), count, const_cast<void*>(address),
                          0, simt::any, {}, {}, site};
    warpset_simt_request(&request);
    __builtin_memcpy(&row, request.value, sizeof row);
}

WARPSET_FN u32 fetch_add_shared(u32* address, u32 value, Site site = Site::here())
{
    return fetch_add_block(address, value, site);
}

template <class Chunk>
WARPSET_FN Chunk compare_and_swap_shared(Chunk* address, Chunk expected, Chunk desired, Site site = Site::here())
{
    return simt::compare_and_swap(address, expected, desired, simt::Order::Relaxed, site, simt::any);
}

struct Block {
    static constexpr u32 most_scratch = 99 << 10;

    static u32 thread() { return simt::warpset_simt_identity()->thread_in_block; }
    static u32 threads() { return simt::warpset_simt_identity()->threads_in_block; }
    template <u32 launched>
    static u32 threads()
    {
        return threads();
    }
    static void sync(Site site = Site::here()) { simt::collective(simt::RequestKind::SyncBlock, ~0u, 0, 0, site); }
    static u8* scratch() { return simt::warpset_simt_identity()->block_scratch; }
};

struct Share {
    u64 first, last, step;
};

struct Grid {
    static u64 thread() { return simt::warpset_simt_identity()->thread; }
    static u64 threads() { return simt::warpset_simt_identity()->threads; }
    static u64 warp() { return thread() / Warp::size; }
    static u64 warps() { return threads() / Warp::size; }
    static Share share(u64 count) { return {thread(), count, threads()}; }
};

}  // namespace platform
}  // namespace warpset
