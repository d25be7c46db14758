// Stubborn sets: the actions of a state that a reduced search takes. Makes the interpreter's choice (stubborn.rs of the package
// warpset-model), step by step, so that all engines find the same states.
//
// A group of lanes works on one state: lanes of a warp, or a CPU thread, which is a group of one lane. `Lanes` is the group, and
// `Lanes::Words` a lane's words of a set: a CPU thread has all words in memory, and lanes of a warp have theirs in registers.
// Word w of a set belongs to lane w % count, and is the lane's word w / count: its *block*. All other values are equal in all
// lanes.
//
// codegen/reduction.rs writes the tables. A row is a set of actions: for each block that is not empty, ascending, its number, and
// a word for each lane. So lanes read neighbouring words, and adding a row to a set is one OR a block.

namespace explore {

constexpr u32 nothing = ~0u;

// Memory of a group for the parts of a goal. Sets have `action_words` words, which the lanes take in turn.
struct GoalWork {
    u32* seeds;     // `most_seeds` sets and one more
    u32* frames;    // a set for each part that is open, and one more
    u32* open;      // kind and size of each part that is open

    static constexpr u32 words = has_goal ? (most_seeds + 1 + goal_depth + 1) * action_words + 2 * (goal_depth + 1) : 0;

    EXPLORE_FN explicit GoalWork(u32* memory)
        : seeds(memory), frames(seeds + (most_seeds + 1) * action_words), open(frames + (goal_depth + 1) * action_words)
    {
    }
};

EXPLORE_FN bool has(const u32* set, u32 action) { return set[action / 32] >> action % 32 & 1; }

// Chooses the actions to take in one state.
template <class Lanes, class State>
struct Choice {
    using Words = typename Lanes::Words;
    static constexpr u32 count = Lanes::count, blocks = (action_words + count - 1) / count;
    static_assert(count == lanes, "the rows are for groups of this size");

    const u32* tables;
    const State& from;
    const u32* failing;    // expressions that are false
    GoalWork work;
    Words enabled;         // actions with a step
    Words set, best;       // the set that is tried, and the best one
    Words waiting;         // actions of the set whose rows are still to be added
    Words settled;         // disabled actions for which the set has all enablers of a test that fails: they never wait
    u32 taken = 0;         // enabled actions of the set
    u32 urgent = 0;        // those of them that wait
    u32 tried = 0;         // enabled actions before this one were tried as seeds
    u32 low = 0;           // no block of the waiting actions before this one has bits

    // Finds the actions to take, `best`. Returns false if all must be taken.
    EXPLORE_FN bool choose()
    {
        // A set with all enabled actions leaves nothing out.
        u32 all = 0, slots[most_seeds + 1];
        EXPLORE_NO_UNROLL
        for (u32 block = 0; block < blocks; ++block) all += Lanes::ones(enabled.get(block));
        all = Lanes::sum(all);
        u32 fewest = all;
        const u32 first = next_enabled(0), seeds = has_goal ? find_seeds(slots) : most_seeds;
        u32 action = first;
        EXPLORE_NO_UNROLL
        for (u32 seed = 0; seed < seeds; ++seed) {
            if (!has_goal && action == nothing) break;
            EXPLORE_NO_UNROLL
            for (u32 block = 0; block < blocks; ++block) {
                set.put(block, 0);
                waiting.put(block, 0);
                settled.put(block, 0);
            }
            taken = urgent = 0;
            low = blocks;
            if (has_goal) {
                add_seed(work.seeds + slots[seed] * action_words);
            } else {
                tried = action;
                add_one(action);
                action = next_enabled(action + 1);
            }
            if (!close(fewest)) continue;
            if (has_goal && keeps_deadlocks && taken == 0) {
                // The goal needs no action here, but there may be a deadlock further on.
                if (first != nothing) add_one(first);
                if (!close(fewest)) continue;
            }
            fewest = taken;
            best.take(set);
            if (fewest <= (has_goal && !keeps_deadlocks ? 0 : 1)) break;
        }
        return fewest != all;
    }

    // Adds everything that the waiting actions need. Returns false if the set gets `fewest` or more enabled actions, or the
    // action of an earlier seed: the set would then hardly be smaller than the set of that seed.
    EXPLORE_FN bool close(u32 fewest)
    {
        EXPLORE_NO_UNROLL
        while (taken < fewest) {
            const bool is_enabled = urgent != 0;
            const u32 action = next_waiting();
            if (action == nothing) return true;
            u32 row = action;
            if (!is_enabled) {
                const u32 test = cheapest(action);
                // No test of the disabled action fails, which happens only after a fault. Everything may be needed then.
                if (test == nothing) return false;
                row = actions + test;
                if (cost_of_enabled != 0) settle(row + tests);
            }
            add_row(row);
        }
        return false;
    }

    // Removes one of the waiting actions: the first one that is enabled, or else the first one.
    EXPLORE_FN u32 next_waiting()
    {
        const bool is_urgent = urgent != 0;
        EXPLORE_NO_UNROLL
        for (u32 block = low; block < blocks; ++block) {
            const u32 bits = is_urgent ? waiting.get(block) & enabled.get(block) : waiting.get(block);
            const u32 owners = Lanes::ballot(bits != 0);
            if (owners == 0) continue;
            const u32 owner = Lanes::lowest(owners), bit = Lanes::lowest(Lanes::shuffle(bits, owner));
            if (Lanes::lane() == owner) waiting.put(block, waiting.get(block) & ~(1u << bit));
            urgent -= is_urgent;
            if (!is_urgent) low = block;
            return 32 * (block * count + owner) + bit;
        }
        return nothing;
    }

    // Returns the failing test of a disabled action whose enablers cost least. Each lane evaluates a different test.
    EXPLORE_FN u32 cheapest(u32 action) const
    {
        u32 chosen = nothing, least = nothing;
        const u32 end = tables[tests_of_actions_at + action + 1];
        EXPLORE_NO_UNROLL
        for (u32 first = tables[tests_of_actions_at + action]; first < end; first += count) {
            const u32 at = first + Lanes::lane(), own = at < end ? tables[at] : 0;
            const bool is_failing = at < end && fails(own);
            EXPLORE_NO_UNROLL
            for (u32 owners = Lanes::ballot(is_failing); owners != 0; owners &= owners - 1) {
                const u32 test = Lanes::shuffle(own, Lanes::lowest(owners));
                if (cost_of_enabled == 0) return test;
                const u32 cost = cost_of(actions + test, least);
                if (cost >= least) continue;
                least = cost;
                chosen = test;
                if (cost == 0) return chosen;
            }
        }
        return chosen;
    }

    // Returns the cost of adding a row or, if that is at least `limit`, any number of at least `limit`.
    EXPLORE_FN u32 cost_of(u32 row, u32 limit) const
    {
        const u32 end = tables[rows_of_actions_at + row + 1];
        u32 cost = 0;
        EXPLORE_NO_UNROLL
        for (u32 at = tables[rows_of_actions_at + row]; at < end && (count > 1 || cost < limit); at += 1 + count) {
            const u32 block = tables[at], fresh = tables[at + 1 + Lanes::lane()] & ~set.get(block);
            if (fresh != 0) cost += Lanes::ones(fresh) + (cost_of_enabled - 1) * Lanes::ones(fresh & enabled.get(block));
        }
        return Lanes::sum(cost);
    }

    EXPLORE_FN bool fails(u32 test) const
    {
        if (test < expressions) return failing[test / 32] >> test % 32 & 1;
        return !holds(tables, tests_at + test_words * (test - expressions), from);
    }

    EXPLORE_FN void add_row(u32 row)
    {
        const u32 end = tables[rows_of_actions_at + row + 1];
        EXPLORE_NO_UNROLL
        for (u32 at = tables[rows_of_actions_at + row]; at < end; at += 1 + count)
            add(tables[at], tables[at + 1 + Lanes::lane()]);
    }

    // Settles the actions of a row: those with the test whose enablers are about to be added. The set then contains everything
    // that any of these actions needs, because that test costs nothing more. So these actions need not be looked at.
    EXPLORE_FN void settle(u32 row)
    {
        const u32 end = tables[rows_of_actions_at + row + 1];
        EXPLORE_NO_UNROLL
        for (u32 at = tables[rows_of_actions_at + row]; at < end; at += 1 + count) {
            const u32 block = tables[at], bits = tables[at + 1 + Lanes::lane()];
            settled.put(block, settled.get(block) | bits);
            waiting.put(block, waiting.get(block) & ~bits);
        }
    }

    EXPLORE_FN void add_seed(const u32* seed)
    {
        EXPLORE_NO_UNROLL
        for (u32 block = 0; block < blocks; ++block) {
            const u32 word = block * count + Lanes::lane();
            add(block, word < action_words ? seed[word] : 0);
        }
    }

    EXPLORE_FN void add_one(u32 action)
    {
        const u32 word = action / 32;
        add(word / count, word % count == Lanes::lane() ? 1u << action % 32 : 0);
    }

    // Adds actions of a block: each lane adds those of its word. Actions that were not in the set wait.
    EXPLORE_FN void add(u32 block, u32 bits)
    {
        const u32 fresh = bits & ~set.get(block);
        if (Lanes::ballot(fresh != 0) == 0) return;
        set.put(block, set.get(block) | fresh);
        waiting.put(block, waiting.get(block) | (fresh & ~settled.get(block)));
        if (block < low) low = block;
        const u32 ready = fresh & enabled.get(block);
        if (Lanes::ballot(ready != 0) == 0) return;
        const u32 first = 32 * (block * count + Lanes::lane());
        const u32 more = Lanes::sum(ready == 0 ? 0 : first + Lanes::lowest(ready) < tried ? actions : Lanes::ones(ready));
        taken += more;
        urgent += more;
    }

    // The first enabled action that is not below `action`.
    EXPLORE_FN u32 next_enabled(u32 action) const
    {
        EXPLORE_NO_UNROLL
        for (u32 block = action / 32 / count; block < blocks; ++block) {
            const u32 word = block * count + Lanes::lane(), from_word = action / 32;
            const u32 bits = word < from_word ? 0 : enabled.get(block) & (word == from_word ? ~0u << action % 32 : ~0u);
            const u32 owners = Lanes::ballot(bits != 0);
            if (owners == 0) continue;
            const u32 owner = Lanes::lowest(owners);
            return 32 * (block * count + owner) + Lanes::lowest(Lanes::shuffle(bits, owner));
        }
        return nothing;
    }

    // Finds sets of actions such that every path to the goal has an action of each set: the smallest sets, in ascending order.
    // Writes their places among the seeds, and returns the number of sets; 0 if the goal may be met in this state.
    EXPLORE_FN u32 find_seeds(u32* slots) const
    {
        u32 sizes[most_seeds + 1], count = 0;
        EXPLORE_NO_UNROLL
        for (u32 slot = 0; slot <= most_seeds; ++slot) slots[slot] = slot;
        EXPLORE_NO_UNROLL
        for (u32 at = goal_at; at < goal_end;) {
            const u32 slot = slots[count], size = unmet(at, work.seeds + slot * action_words);
            if (size == nothing) continue;
            u32 place = count;
            EXPLORE_NO_UNROLL
            for (; place > 0 && sizes[place - 1] > size; --place) {
                sizes[place] = sizes[place - 1];
                slots[place] = slots[place - 1];
            }
            sizes[place] = size;
            slots[place] = slot;
            count += count < most_seeds;
        }
        return count;
    }

    // Reads a part of the goal at `at`, and moves `at` behind it. Sets `result` to actions such that every path to a state that
    // meets the part has one of them, and returns their number. Returns `nothing` if the part may be met in this state.
    EXPLORE_FN u32 unmet(u32& at, u32* result) const
    {
        u32 depth = 0, size = nothing;    // open parts; the size of `result`
        u32* const leaf = work.frames + goal_depth * action_words;
        EXPLORE_NO_UNROLL
        do {
            const u32 word = tables[at++];
            if (word < goal_end_of_part) {
                open(depth, word, word == goal_all ? nothing : 0);
                if (word == goal_any) clear(work.frames + depth * action_words);
                ++depth;
                continue;
            }
            const u32* part = leaf;
            u32 of_part = nothing;
            if (word != goal_end_of_part) {
                const u32 test = word - goal_end_of_part - 1;
                if (fails(test)) {
                    clear(leaf);
                    copy_row(leaf, actions + test);
                    of_part = size_of(leaf);
                }
            } else {
                --depth;
                part = work.frames + depth * action_words;
                of_part = work.open[2 * depth + 1];
                if (of_part != nothing && work.open[2 * depth] == goal_any) of_part = size_of(part);
            }
            Lanes::meet();    // all lanes have read the part that is open
            if (depth == 0) {
                if (of_part != nothing) copy_set(result, part, false);
                size = of_part;
                continue;
            }
            u32* const above = work.frames + (depth - 1) * action_words;
            const u32 kind = work.open[2 * depth - 2], so_far = work.open[2 * depth - 1];
            Lanes::meet();
            if (kind == goal_all) {
                if (of_part >= so_far) continue;
                copy_set(above, part, false);
                open(depth - 1, kind, of_part);
            } else if (of_part == nothing) {
                open(depth - 1, kind, nothing);
            } else if (so_far != nothing) {
                copy_set(above, part, true);
            }
        } while (depth != 0);
        return size;
    }

    EXPLORE_FN void open(u32 depth, u32 kind, u32 size) const
    {
        if (Lanes::lane() == 0) {
            work.open[2 * depth] = kind;
            work.open[2 * depth + 1] = size;
        }
        Lanes::meet();
    }

    // Clears memory of the group. Its lanes take the words of a set in turn, and meet before other lanes read them.
    EXPLORE_FN void clear(u32* memory) const
    {
        EXPLORE_NO_UNROLL
        for (u32 word = Lanes::lane(); word < action_words; word += count) memory[word] = 0;
        Lanes::meet();
    }

    EXPLORE_FN void copy_row(u32* memory, u32 row) const
    {
        const u32 end = tables[rows_of_actions_at + row + 1];
        EXPLORE_NO_UNROLL
        for (u32 at = tables[rows_of_actions_at + row]; at < end; at += 1 + count) {
            const u32 word = tables[at] * count + Lanes::lane();
            if (word < action_words) memory[word] = tables[at + 1 + Lanes::lane()];
        }
        Lanes::meet();
    }

    EXPLORE_FN void copy_set(u32* memory, const u32* other, bool joins) const
    {
        EXPLORE_NO_UNROLL
        for (u32 word = Lanes::lane(); word < action_words; word += count)
            memory[word] = other[word] | (joins ? memory[word] : 0);
        Lanes::meet();
    }

    EXPLORE_FN u32 size_of(const u32* memory) const
    {
        u32 size = 0;
        EXPLORE_NO_UNROLL
        for (u32 word = Lanes::lane(); word < action_words; word += count) size += Lanes::ones(memory[word]);
        return Lanes::sum(size);
    }
};

}  // namespace explore
