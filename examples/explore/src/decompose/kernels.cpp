// The kernels as code of a CPU: a thread is a block of its own. Tests have blocks of several threads, too, which share out their
// edges as those of a GPU do.

#include <condition_variable>
#include <mutex>

#define DECOMPOSE_FN inline

namespace decompose {

constexpr unsigned most_threads = 8;

// Relaxed throughout: work.cuh says why.
template <class T>
T load(const T* at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
template <class T>
void store(T* at, T value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
// Each gives what was there before.
template <class T>
T add(T* at, T value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); }
template <class T>
T bit_or(T* at, T value) { return __atomic_fetch_or(at, value, __ATOMIC_RELAXED); }
template <class T>
T exchange(T* at, T value) { return __atomic_exchange_n(at, value, __ATOMIC_RELAXED); }
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

// Those who wait for a number to change, and who changes it. Whoever has waited for long sleeps: there may be other work for this
// machine. All sleep in one place, and look for their own number when anybody is woken.
inline std::mutex sleeping;
inline std::condition_variable woken;
inline void wait_while(const unsigned* at, unsigned value)
{
    for (unsigned tries = 0; tries < 2000; ++tries)
        if (load(at) != value) return;
    std::unique_lock<std::mutex> lock(sleeping);
    woken.wait(lock, [&] { return load(at) != value; });
}
inline void wake(unsigned* at, unsigned value)
{
    {
        std::lock_guard<std::mutex> lock(sleeping);
        store(at, value);
    }
    woken.notify_all();
}

struct Shared;

// Where the threads of a block meet.
struct Room {
    unsigned arrived, generation;
};

struct Block {
    static constexpr unsigned tiles = 64;
    Shared* shared;
    Room* room;
    unsigned long long index_, count_;
    unsigned thread_, threads_;

    unsigned thread() const { return thread_; }
    unsigned threads() const { return threads_; }
    unsigned long long index() const { return index_; }
    unsigned long long count() const { return count_; }
    void sync() const
    {
        if (threads_ == 1) return;
        const unsigned generation = load(&room->generation);
        fence();
        if (add(&room->arrived, 1u) + 1 == threads_) {
            store(&room->arrived, 0u);
            fence();
            wake(&room->generation, generation + 1);
        } else {
            wait_while(&room->generation, generation);
        }
        fence();
    }
};

}  // namespace decompose

#include "work.cuh"

#include "components.cuh"
#include "end_components.cuh"
#include "kernels.cuh"

namespace {

// What a block has to itself, made of zeros by the caller.
struct Team {
    decompose::Room room;
    decompose::Shared shared;
};

using Kernel = void (*)(const decompose::Work&, decompose::Block&);

#define DECOMPOSE_KERNEL(name) decompose::name<decompose::Block>,
constexpr Kernel kernels[] = {DECOMPOSE_KERNELS(DECOMPOSE_KERNEL)};

static_assert(sizeof(void*) == 8, "addresses are 64-bit words in machine.rs");
static_assert(sizeof(decompose::Progress) == 11 * 8 && sizeof(decompose::Work) == 30 * 8, "machine.rs has the same");

}  // namespace

extern "C" {

unsigned long long decompose_kernel_count() { return sizeof(kernels) / sizeof(*kernels); }

unsigned long long decompose_team_bytes() { return sizeof(Team); }

// One thread of one block. All threads of all blocks are under way at the same time.
void decompose_run(unsigned long long kernel, const decompose::Work* work, void* team, unsigned long long index,
                   unsigned long long count, unsigned thread, unsigned threads)
{
    Team* const own = static_cast<Team*>(team);
    decompose::Block block{&own->shared, &own->room, index, count, thread, threads};
    kernels[kernel](*work, block);
}

}  // extern "C"
