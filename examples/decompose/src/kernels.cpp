// The kernels as CPU code, in which each block has one thread. Tests also use blocks of several threads, which divide edges
// between them as the threads of a GPU's block do.

#include <condition_variable>
#include <mutex>

#define DECOMPOSE_FN inline

namespace decompose {

constexpr unsigned most_threads = 8;

// All atomics are relaxed; work.cuh gives the reason.
template <class T>
T load(const T* at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
template <class T>
void store(T* at, T value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
// Each function returns the value before the operation.
template <class T>
T add(T* at, T value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); }
template <class T>
T bit_or(T* at, T value) { return __atomic_fetch_or(at, value, __ATOMIC_RELAXED); }
template <class T>
T bit_and(T* at, T value) { return __atomic_fetch_and(at, value, __ATOMIC_RELAXED); }
template <class T>
T compare_and_swap(T* at, T expected, T value)
{
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
template <class T>
T maximum(T* at, T value)
{
    T before = load(at);
    while (before < value && !__atomic_compare_exchange_n(at, &before, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return before;
}
template <class T>
T minimum(T* at, T value)
{
    T before = load(at);
    while (before > value && !__atomic_compare_exchange_n(at, &before, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return before;
}
inline void fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

template <class T>
T add_one(T* at) { return add(at, T{1}); }
template <class T>
T add_alike(T* at) { return add(at, T{1}); }
inline void prefetch(const void*) {}

// Waits until a number has reached `value`. The thread whose increase completes it calls `rouse`. A thread that has waited for
// long sleeps, because the machine may have other work. All threads sleep on the same condition variable and check their own
// numbers when they wake up.
inline std::mutex sleeping;
inline std::condition_variable woken;
inline void wait_for(const unsigned long long* at, unsigned long long value)
{
    for (unsigned tries = 0; tries < 2000; ++tries)
        if (load(at) >= value) return;
    std::unique_lock<std::mutex> lock(sleeping);
    woken.wait(lock, [&] { return load(at) >= value; });
}
inline void rouse()
{
    // A thread that has checked the number, but does not sleep yet, holds the lock. So it cannot miss this call.
    std::lock_guard<std::mutex> lock(sleeping);
    woken.notify_all();
}

struct Shared;

struct Block {
    static constexpr unsigned tiles = 64, least_tile = 64;
    Shared* shared;
    unsigned long long* arrived;  // number of threads of the block that came to meet
    unsigned long long index_, count_;
    unsigned thread_, threads_;
    unsigned long long next;        // number of the level that appended states go to
    unsigned long long looked = 0;  // edges looked at
    unsigned side = 0;              // which half of the block's own states is in use
    bool keeps = false;             // whether the block keeps the states that it finds

    unsigned thread() const { return thread_; }
    unsigned threads() const { return threads_; }
    unsigned long long index() const { return index_; }
    unsigned long long count() const { return count_; }
    void sync() const
    {
        if (threads_ == 1) return;
        fence();
        const unsigned long long ticket = add(arrived, 1ull), all = (ticket / threads_ + 1) * threads_;
        if (ticket + 1 == all) rouse();
        else wait_for(arrived, all);
        fence();
    }
    // Returns the sum of the values of the threads before this one. `total` gets the sum of all values. All threads of the block
    // must call this function, which synchronizes them.
    unsigned long long sum_before(unsigned long long value, unsigned long long& total) const;
};

}  // namespace decompose

#include "work.cuh"

namespace decompose {

inline u64 Block::sum_before(u64 value, u64& total) const
{
    sync();  // all threads have read the previous sums
    shared->sums[thread_] = value;
    sync();
    u64 before = 0;
    total = 0;
    for (u32 other = 0; other < threads_; ++other) {
        if (other == thread_) before = total;
        total += shared->sums[other];
    }
    return before;
}

}  // namespace decompose

#include "components.cuh"
#include "end_components.cuh"
#include "paths.cuh"
#include "kernels.cuh"

namespace {

// Memory of one block, which the caller initialises to zeros.
struct Team {
    unsigned long long arrived;
    decompose::Shared shared;
};

using Kernel = void (*)(const decompose::Work&, decompose::Block&);

#define DECOMPOSE_KERNEL(name) decompose::name<decompose::Block>,
constexpr Kernel kernels[] = {DECOMPOSE_KERNELS(DECOMPOSE_KERNEL)};

static_assert(sizeof(void*) == 8, "addresses are 64-bit words in machine.rs");
static_assert(sizeof(decompose::LevelProgress) == 19 * 8 && sizeof(decompose::Work) == 41 * 8, "machine.rs has the same");

}  // namespace

extern "C" {

unsigned long long decompose_kernel_count() { return sizeof(kernels) / sizeof(*kernels); }

unsigned long long decompose_team_bytes() { return sizeof(Team); }

// Runs one thread of one block. All threads of all blocks must run at the same time.
void decompose_run(unsigned long long kernel, const decompose::Work* work, void* team, unsigned long long index,
                   unsigned long long count, unsigned thread, unsigned threads)
{
    Team* const own = static_cast<Team*>(team);
    const unsigned long long next = decompose::load(&work->progress->step) + 1;
    decompose::Block block{&own->shared, &own->arrived, index, count, thread, threads, next};
    kernels[kernel](*work, block);
    if (thread == 0) decompose::add(&work->progress->edges, block.looked);
}

}  // extern "C"
