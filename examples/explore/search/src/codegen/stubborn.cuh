// Stubborn sets: the actions of a state that a reduced search takes. Makes the interpreter's choice (stubborn.rs of the package
// warpset-model), step by step, so that all engines find the same states.
//
// A group of lanes works on one state: the threads of a warp, or a CPU thread, which is a group of one lane. `Lanes` names the
// group. So far only CPU threads use it; no group of several lanes has run. All values are equal in all lanes except where the
// lanes take the words of a row in turn.
//
// codegen/reduction.rs writes the tables. A row is a set of actions: its words of 32 bits that are not 0, ascending, each by its
// number and its bits. So lanes that take different words of a row never write to the same word of a set.

namespace explore {

constexpr u32 nothing = ~0u;

// Memory of a group. Sets have `action_words` words.
struct Work {
    u32* enabled;    // actions with a step
    u32* failing;    // expressions that are false
    u32* sets;       // two sets: the one that is tried and the best one
    u32* seeds;      // of a goal: `most_seeds` sets and one more
    u32* frames;     // of a goal: a set for each part that is open, and one more
    u32* open;       // of a goal: kind and size of each part that is open
    u32* waiting;    // actions of the set whose rows are still to be added

    static constexpr u32 of_goal = has_goal ? most_seeds + 1 + goal_depth + 1 : 0;
    static constexpr u32 words = (4 + of_goal) * action_words + failing_words + 2 * (goal_depth + 1);

    EXPLORE_FN explicit Work(u32* memory)
        : enabled(memory),
          failing(enabled + action_words),
          sets(failing + failing_words),
          seeds(sets + 2 * action_words),
          frames(seeds + (has_goal ? most_seeds + 1 : 0) * action_words),
          open(frames + (has_goal ? goal_depth + 1 : 0) * action_words),
          waiting(open + 2 * (goal_depth + 1))
    {
    }
};

EXPLORE_FN bool has(const u32* set, u32 action) { return set[action / 32] >> action % 32 & 1; }

// A choice in one state, after `enabled` and `failing` have been found.
template <class Lanes, class State>
struct Choice {
    const u32* tables;
    const State& from;
    Work work;
    u32 taken = 0;    // enabled actions of the set
    u32 urgent = 0;   // those of them that wait
    u32 tried = 0;    // enabled actions before this one were tried as seeds
    u32 low = 0;      // no word of the waiting actions before this one has bits

    EXPLORE_FN Choice(const u32* tables_, const State& from_, const Work& work_) : tables(tables_), from(from_), work(work_) {}

    // Returns the set of the actions to take, or null if all must be taken.
    EXPLORE_FN const u32* choose()
    {
        u32 *set = work.sets, *best = set + action_words;
        // A set with all enabled actions leaves nothing out.
        const u32 all = size_of(work.enabled);
        u32 fewest = all, slots[most_seeds + 1];
        const u32 first = next_enabled(0), seeds = has_goal ? find_seeds(slots) : most_seeds;
        u32 action = first;
        EXPLORE_NO_UNROLL
        for (u32 seed = 0; seed < seeds; ++seed) {
            if (!has_goal && action == nothing) break;
            clear(set);
            clear(work.waiting);
            taken = urgent = 0;
            low = action_words;
            if (has_goal) {
                add_set(set, work.seeds + slots[seed] * action_words);
            } else {
                tried = action;
                add_one(set, action);
                action = next_enabled(action + 1);
            }
            if (!close(set, fewest)) continue;
            if (has_goal && keeps_deadlocks && taken == 0) {
                // The goal needs nothing here, but a deadlock may lie beyond.
                if (first != nothing) add_one(set, first);
                if (!close(set, fewest)) continue;
            }
            fewest = taken;
            u32* const other = best;
            best = set;
            set = other;
            if (fewest <= (has_goal && !keeps_deadlocks ? 0 : 1)) break;
        }
        return fewest == all ? nullptr : best;
    }

    // Adds all that waiting actions need. Returns false if the set gets `fewest` enabled actions or more, or an earlier seed:
    // with that action it would hardly be smaller than that seed's set.
    EXPLORE_FN bool close(u32* set, u32 fewest)
    {
        EXPLORE_NO_UNROLL
        while (taken < fewest) {
            const u32 action = next_waiting();
            if (action == nothing) return true;
            u32 row = action;
            if (!has(work.enabled, action)) {
                const u32 test = cheapest(action, set);
                // No test of it fails: that is known only after a fault. Everything may be needed then.
                if (test == nothing) return false;
                row = actions + test;
            }
            add_row(set, row);
        }
        return false;
    }

    // Removes one of the waiting actions: the first one that is enabled, or else the first one.
    EXPLORE_FN u32 next_waiting()
    {
        const bool is_urgent = urgent != 0;
        u32 mine = nothing;
        EXPLORE_NO_UNROLL
        for (u32 word = low - low % Lanes::count + Lanes::lane(); word < action_words && mine == nothing; word += Lanes::count) {
            const u32 bits = work.waiting[word] & (is_urgent ? work.enabled[word] : ~0u);
            if (bits != 0) mine = 32 * word + Lanes::lowest(bits);
        }
        const u32 action = Lanes::least(mine);
        if (action == nothing) return nothing;
        urgent -= is_urgent;
        if (!is_urgent) low = action / 32;
        if (mine == action) work.waiting[action / 32] &= ~(1u << action % 32);
        Lanes::meet();
        return action;
    }

    // The test of a disabled action that fails and whose enablers cost least.
    EXPLORE_FN u32 cheapest(u32 action, const u32* set) const
    {
        u32 best = nothing, least = nothing;
        const u32 end = tables[tests_of_actions_at + action + 1];
        EXPLORE_NO_UNROLL
        for (u32 at = tables[tests_of_actions_at + action]; at < end; ++at) {
            const u32 test = tables[at];
            if (!fails(test)) continue;
            const u32 cost = cost_of(actions + test, set, least);
            if (cost >= least) continue;
            least = cost;
            best = test;
            if (cost == 0) break;
        }
        return best;
    }

    // Cost of adding a row; any number from `limit` on if it is at least that.
    EXPLORE_FN u32 cost_of(u32 row, const u32* set, u32 limit) const
    {
        const u32 end = tables[rows_of_actions_at + row + 1];
        u32 cost = 0;
        EXPLORE_NO_UNROLL
        for (u32 at = tables[rows_of_actions_at + row] + 2 * Lanes::lane(); at < end && (Lanes::count > 1 || cost < limit);
             at += 2 * Lanes::count) {
            const u32 word = tables[at], fresh = tables[at + 1] & ~set[word];
            if (fresh != 0) cost += Lanes::ones(fresh) + (cost_of_enabled - 1) * Lanes::ones(fresh & work.enabled[word]);
        }
        return Lanes::sum(cost);
    }

    EXPLORE_FN bool fails(u32 test) const
    {
        if (test < expressions) return work.failing[test / 32] >> test % 32 & 1;
        return !holds(tables, tests_at + test_words * (test - expressions), from);
    }

    EXPLORE_FN void add_row(u32* set, u32 row)
    {
        const u32 end = tables[rows_of_actions_at + row + 1];
        EXPLORE_NO_UNROLL
        for (u32 first = tables[rows_of_actions_at + row]; first < end; first += 2 * Lanes::count) {
            const u32 at = first + 2 * Lanes::lane();
            add_word(set, at < end ? tables[at] : 0, at < end ? tables[at + 1] : 0);
        }
        Lanes::meet();
    }

    EXPLORE_FN void add_set(u32* set, const u32* other)
    {
        EXPLORE_NO_UNROLL
        for (u32 first = 0; first < action_words; first += Lanes::count) {
            const u32 word = first + Lanes::lane();
            add_word(set, word, word < action_words ? other[word] : 0);
        }
        Lanes::meet();
    }

    EXPLORE_FN void add_one(u32* set, u32 action)
    {
        add_word(set, action / 32, Lanes::lane() == 0 ? 1u << action % 32 : 0);
        Lanes::meet();
    }

    // Adds the actions of one word in each lane. Those that are new wait.
    EXPLORE_FN void add_word(u32* set, u32 word, u32 bits)
    {
        const u32 fresh = bits == 0 ? 0 : bits & ~set[word];
        if (!Lanes::any(fresh != 0)) return;
        u32 enabled = 0, count = 0;
        if (fresh != 0) {
            set[word] |= fresh;
            work.waiting[word] |= fresh;
            enabled = fresh & work.enabled[word];
            if (enabled != 0) count = 32 * word + Lanes::lowest(enabled) < tried ? actions : Lanes::ones(enabled);
        }
        count = Lanes::sum(count);
        taken += count;
        urgent += count;
        const u32 first = Lanes::least(fresh != 0 ? word : nothing);
        if (first < low) low = first;
    }

    EXPLORE_FN void clear(u32* set) const
    {
        EXPLORE_NO_UNROLL
        for (u32 word = Lanes::lane(); word < action_words; word += Lanes::count) set[word] = 0;
        Lanes::meet();
    }

    // The first enabled action that is not below `action`.
    EXPLORE_FN u32 next_enabled(u32 action) const
    {
        EXPLORE_NO_UNROLL
        for (u32 word = action / 32; word < action_words; ++word) {
            const u32 bits = work.enabled[word] & (word == action / 32 ? ~0u << action % 32 : ~0u);
            if (bits != 0) return 32 * word + Lanes::lowest(bits);
        }
        return nothing;
    }

    // Finds sets of actions such that every path to the goal has an action of each: the smallest sets, in ascending order. Writes
    // their places among the seeds, and returns their number: 0 if the goal may be met.
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

    // Reads a part of the goal at `at`, and moves `at` behind it. Sets `result` to actions such that every path to a state
    // that meets the part has one, and returns their number, or `nothing` if it may be met here.
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

    EXPLORE_FN void copy_row(u32* set, u32 row) const
    {
        const u32 end = tables[rows_of_actions_at + row + 1];
        EXPLORE_NO_UNROLL
        for (u32 at = tables[rows_of_actions_at + row] + 2 * Lanes::lane(); at < end; at += 2 * Lanes::count)
            set[tables[at]] = tables[at + 1];
        Lanes::meet();
    }

    EXPLORE_FN void copy_set(u32* set, const u32* other, bool joins) const
    {
        EXPLORE_NO_UNROLL
        for (u32 word = Lanes::lane(); word < action_words; word += Lanes::count)
            set[word] = other[word] | (joins ? set[word] : 0);
        Lanes::meet();
    }

    EXPLORE_FN u32 size_of(const u32* set) const
    {
        u32 size = 0;
        EXPLORE_NO_UNROLL
        for (u32 word = Lanes::lane(); word < action_words; word += Lanes::count) size += Lanes::ones(set[word]);
        return Lanes::sum(size);
    }
};

}  // namespace explore
