// Reduced searches on a GPU: which steps of a state are taken. This text follows the text of codegen/reduction.rs in a program,
// and precedes explore.cu.
//
// A block tries all steps of its states twice. First each thread marks the actions of its own state's steps, and the expressions
// that are false. Then the lanes of a group choose together, for one state of the group after another (stubborn.cuh). Finally the
// threads try the steps again, and pass on those of chosen actions. So the threads of a warp try the same choice at the same
// time, as in a whole search, and all lanes of a group share the work of closing a set.
//
// A group has as many lanes as a set has words, at most a warp. So up to 1,024 actions each lane has one word of a set, in a
// register; with more actions it has several. The groups of a warp run apart from each other: their collectives name only the
// lanes of the group. These lanes come to a collective together, because all values that decide a branch are equal in them.

#include "warpset/block_cache.cuh"

namespace explore {

// The lanes that choose for one state.
struct Group {
    static constexpr u32 count = lanes;
    static constexpr u32 blocks = (action_words + count - 1) / count;

    // This lane's words of a set. Loops over the blocks are not unrolled, so a word is selected from all registers. If there are
    // many words, they are accessed by index, which puts them into local memory.
    struct Words {
        u32 words[blocks];

        EXPLORE_FN u32 get(u32 block) const
        {
            if constexpr (blocks == 1) {
                return words[0];
            } else if constexpr (blocks > 8) {
                return words[block];
            } else {
                u32 word = words[0];
                EXPLORE_UNROLL
                for (u32 at = 1; at < blocks; ++at)
                    if (block == at) word = words[at];
                return word;
            }
        }
        EXPLORE_FN void put(u32 block, u32 word)
        {
            if constexpr (blocks == 1) {
                words[0] = word;
            } else if constexpr (blocks > 8) {
                words[block] = word;
            } else {
                EXPLORE_UNROLL
                for (u32 at = 0; at < blocks; ++at)
                    if (block == at) words[at] = word;
            }
        }
        EXPLORE_FN void take(const Words& other) { *this = other; }
    };

    EXPLORE_FN static u32 lane() { return threadIdx.x % count; }
    // The group's lanes of the warp.
    EXPLORE_FN static u32 members() { return count == 32 ? ~0u : ((1u << count % 32) - 1) << first(); }
    EXPLORE_FN static u32 first() { return threadIdx.x % 32 - lane(); }
    // Mask of the lanes that pass `true`: bit 0 is the group's first lane.
    EXPLORE_FN static u32 ballot(bool vote)
    {
        if constexpr (count == 1) return vote;
        // A lane outside of the group has no bit in the ballot of its members.
        return __ballot_sync(members(), vote) >> first();
    }
    // The value that lane `source` of the group passes.
    EXPLORE_FN static u32 shuffle(u32 value, u32 source)
    {
        if constexpr (count == 1) return value;
        return __shfl_sync(members(), value, source, count);
    }
    EXPLORE_FN static u32 sum(u32 value)
    {
        if constexpr (count == 1) return value;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        return __reduce_add_sync(members(), value);
#else
        EXPLORE_UNROLL
        for (u32 distance = 1; distance < count; distance *= 2) value += shuffle(value, lane() ^ distance);
        return value;
#endif
    }
    // Orders memory between the lanes of the group.
    EXPLORE_FN static void meet()
    {
        if constexpr (count > 1) __syncwarp(members());
    }
    EXPLORE_FN static u32 lowest(u32 bits) { return warpset::platform::lowest_bit(bits); }
    EXPLORE_FN static u32 ones(u32 bits) { return warpset::platform::population_count(bits); }
};

// Number of words that are kept for a state: the actions with a step, later the chosen actions; and the expressions that are
// false. The number is odd, so that threads that mark the same word of their states use different banks of shared memory.
constexpr u32 words_of_state = (action_words + failing_words) | 1;

// Chooses for the states of a warp's threads. `marks` has the words of the block's states, one after another; `goal` is memory of
// this group. `wants`: the thread has a state without a fault. All threads of the warp must call it.
template <class State>
EXPLORE_PART void choose_for_warp(const u32* tables, const State& state, u32* marks, u32* goal, bool wants)
{
    if (wants) find_failing(tables, state, marks + threadIdx.x * words_of_state + action_words);
    // Each lane has marked its own state, and all lanes of its group read the marks below.
    __syncwarp();
    EXPLORE_NO_UNROLL
    for (u32 member = 0; member < Group::count; ++member) {
        if (!Group::shuffle(wants, member)) continue;
        u32* const own = marks + (threadIdx.x - Group::lane() + member) * words_of_state;
        Group::Words enabled;
        u32 steps = 0;
        EXPLORE_NO_UNROLL
        for (u32 block = 0; block < Group::blocks; ++block) {
            const u32 word = block * Group::count + Group::lane(), bits = word < action_words ? own[word] : 0;
            enabled.put(block, bits);
            steps += Group::ones(bits);
        }
        // A single action can be left out only if nothing is asked about deadlocks.
        if (Group::sum(steps) < (has_goal && !keeps_deadlocks ? 1 : 2)) continue;
        State from = state;
        from.words.top += static_cast<i32>(member) - static_cast<i32>(Group::lane());
        Choice<Group, State> choice{tables, from, own + action_words, GoalWork(goal), enabled, {}, {}, {}, {}};
        if (!choice.choose()) continue;
        EXPLORE_NO_UNROLL
        for (u32 block = 0; block < Group::blocks; ++block) {
            const u32 word = block * Group::count + Group::lane();
            if (word < action_words) own[word] = choice.best.get(block);
        }
    }
    // Each thread reads the choice for its own state, which other lanes have written.
    __syncwarp();
}

// The choice for a thread's state.
struct Selection {
    static constexpr u32 goal_words = GoalWork::words;
    // Words of memory for each thread of a block, and whether they are in shared memory. If so, 256 threads take up to 40 KiB.
    static constexpr u32 words = words_of_state + (goal_words + lanes - 1) / lanes;
    static constexpr bool in_shared = words <= 40;

    const u32* tables;
    u32* marks;    // of the block
    u32* own;      // the part for this thread's state
    bool is_made = false;

    EXPLORE_FN Selection(const u32* tables_, u32* marks_)
        : tables(tables_), marks(marks_), own(marks_ + threadIdx.x * words_of_state)
    {
        EXPLORE_NO_UNROLL
        for (u32 word = 0; word < action_words; ++word) own[word] = 0;
    }

    // False if this choice of a unit need not be tried.
    template <class State>
    EXPLORE_FN bool may_take(u32 unit, u32 choice, const Cursor& cursor, const State& from) const
    {
        // The cursor of a component knows the action only after the step.
        if (!is_made || unit >= first_component) return true;
        const u32 action = action_of(tables, unit, choice, cursor, from);
        return action != nothing && has(own, action);
    }

    // Marks the action of a step before the choice is made; afterwards returns whether the action is chosen. `steps`: there is a
    // step.
    template <class State>
    EXPLORE_FN bool takes(bool steps, u32 unit, u32 choice, const Cursor& cursor, const State& from)
    {
        if (!steps) return false;
        const u32 action = action_of(tables, unit, choice, cursor, from);
        if (is_made) return has(own, action);
        own[action / 32] |= 1u << action % 32;
        return false;
    }

    // Makes the choice after all steps were tried. Returns false if the choice was made before. All threads of the block must
    // call it.
    template <class State>
    EXPLORE_FN bool make(const State& state, bool wants)
    {
        if (is_made) return false;
        is_made = true;
        u32* const of_groups = marks + blockDim.x * words_of_state;
        choose_for_warp(tables, state, marks, of_groups + threadIdx.x / lanes * goal_words, wants);
        return true;
    }
};

}  // namespace explore
