// Random walks on the GPU: one walk per thread, without a table.
//
// The model's next-state functions and walk.cuh (codegen), the definitions of gpu/program.rs and registers.cuh precede this text.
//
// A thread takes one walk after another, each as simulation.rs defines it. It chooses the next step in two passes over all
// choices of all units: the first pass counts the steps, the second one stops at the chosen step. So successors take no memory. A
// launch ends after each thread has taken a number of steps. Between launches, the position of the thread's walk is in device
// memory.

#include "warpset/core/layout.cuh"

namespace explore {

using warpset::u64;
using warpset::platform::add_relaxed;
using warpset::platform::fetch_add_relaxed;
using warpset::platform::load_relaxed;
using warpset::platform::max_relaxed;

using WalkState = warpset::Choose<(state_words <= EXPLORE_REGISTERS), RegisterState, ArrayState>::Type;

EXPLORE_FN Random random_of_walk(u64 seed, u64 walk)
{
    Random of_seed{seed}, of_walk{walk * 0xd1342543de82ef95ull};
    return {of_seed.next() ^ of_walk.next()};
}

// Position of a thread. Mirrored by `Walker` in gpu/walks.rs.
struct Walker {
    u64 walk;  // number of the walk, `between_walks` or `no_walk_left`
    u64 random;
    u64 steps;  // steps of this walk so far
};

constexpr u64 between_walks = ~0ull, no_walk_left = ~1ull;

// Sums over all launches. All accesses by several threads are relaxed: no other data depend on the sums before the kernel has
// ended, except on `next`, and each number of `next` goes to one thread. Mirrored by `WalkCounts` in gpu/walks.rs.
struct WalkCounts {
    u64 next;        // number of the first walk that no thread has
    u64 before;      // complement of the smallest number of a walk with a violation; 0 if there is none
    u64 walks;       // walks that have ended
    u64 steps;
    u64 deadlocks;   // walks that ended in a state without any step
    u64 longest;     // most steps of a walk that has ended
    u64 overflows;
    u64 unfinished;  // threads that were not done at the end of a launch
};

// Mirrored by `WalkLimits` in gpu/walks.rs.
struct WalkLimits {
    u64 walks;      // number of walks
    u64 depth;      // most steps of a walk
    u64 seed;
    u64 slice;      // steps of a thread in a launch
    u64 deadlocks;  // 1: a state without any step is a violation
};

// Calls `give` with the successor of each step, in the order that all engines use, until `give` returns false.
template <class Give>
EXPLORE_FN void each_step(const u32* tables, const WalkState& from, Notes& notes, Give&& give)
{
    WalkState to = from;
    EXPLORE_NO_UNROLL
    for (u32 unit = 0; unit < units; ++unit) {
        const u32 end = choices(unit);
        Cursor cursor(tables);
        EXPLORE_NO_UNROLL
        for (u32 choice = 0; choice < end; ++choice) {
            if (step(unit, choice, cursor, from, to, notes)) {
                if (!give(to)) return;
                to = from;
            }
            if (unit >= first_component && !cursor.more()) break;
        }
    }
}

// Gives this thread the number of a remaining walk, if there is one.
EXPLORE_FN void next_walk(const WalkLimits& limits, WalkCounts* counts, Walker& own)
{
    own.walk = fetch_add_relaxed(&counts->next, 1);
    if (own.walk >= limits.walks || own.walk > ~load_relaxed(&counts->before)) own.walk = no_walk_left;
    own.random = random_of_walk(limits.seed, own.walk).state;
    own.steps = 0;
}

// `words` has the states of all threads: equal words of the threads are adjacent.
extern "C" __global__ void __launch_bounds__(128)
    take_walks(const u32* tables, const u32* initial, Walker* walkers, u32* words, WalkCounts* counts, const WalkLimits limits)
{
    const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
    const u64 thread = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    Walker own = walkers[thread];
    WalkState state;
    EXPLORE_UNROLL
    for (u32 word = 0; word < state_words; ++word) state.words[word] = words[word * threads + thread];
    u64 walks = 0, steps = 0, deadlocks = 0, longest = 0, overflows = 0;
    // After a violation was found, walks with higher numbers do not matter.
    if (own.walk < no_walk_left && own.walk > ~load_relaxed(&counts->before)) own.walk = between_walks;
    EXPLORE_NO_UNROLL
    for (u64 left = limits.slice; left > 0 && own.walk != no_walk_left; --left) {
        if (own.walk == between_walks) {
            next_walk(limits, counts, own);
            if (own.walk == no_walk_left) break;
            EXPLORE_UNROLL
            for (u32 word = 0; word < state_words; ++word) state.words[word] = initial[word];
        }
        Notes notes;
        bool is_violated = !violated(tables, state, notes).is_empty();
        u32 count = 0;
        each_step(tables, state, notes, [&](const WalkState&) { return ++count, true; });
        is_violated |= notes.fault != 0;
        const bool is_deadlock = count == 0 && !is_violated;
        if (is_violated || is_deadlock || own.steps == limits.depth) {
            if (is_violated || (is_deadlock && limits.deadlocks != 0)) max_relaxed(&counts->before, ~own.walk);
            ++walks;
            deadlocks += is_deadlock;
            longest = longest < own.steps ? own.steps : longest;
            own.walk = between_walks;
            continue;
        }
        Random random{own.random};
        u32 chosen = random.below(count);
        own.random = random.state;
        overflows += notes.overflows;
        WalkState next;
        Notes noted;
        each_step(tables, state, noted, [&](const WalkState& to) {
            if (chosen-- > 0) return true;
            next = to;
            return false;
        });
        state = next;
        ++own.steps;
        ++steps;
    }
    walkers[thread] = own;
    EXPLORE_UNROLL
    for (u32 word = 0; word < state_words; ++word) words[word * threads + thread] = state.words[word];
    add_relaxed(&counts->walks, walks);
    add_relaxed(&counts->steps, steps);
    add_relaxed(&counts->deadlocks, deadlocks);
    max_relaxed(&counts->longest, longest);
    add_relaxed(&counts->overflows, overflows);
    add_relaxed(&counts->unfinished, static_cast<u64>(own.walk != no_walk_left));
}

}  // namespace explore
