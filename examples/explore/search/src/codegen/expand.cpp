// Entry points of the generated next-state functions as CPU code. `MODEL` is the text of these functions, followed by walk.cuh.
// If that text defines EXPLORE_WALKS, the entry points take walks; otherwise they expand states.

#define EXPLORE_FN inline
#define EXPLORE_OUT_OF_LINE inline
#define EXPLORE_PART __attribute__((noinline))
#define EXPLORE_DATA static constexpr
#define EXPLORE_NO_UNROLL

#include MODEL

namespace {

using u64 = unsigned long long;

using State = explore::ArrayState;

}  // namespace

extern "C" {

unsigned explore_width() { return explore::state_words; }

// Maximum number of steps of a state, without the steps of a net.
u64 explore_most_steps()
{
    u64 most = 0;
    for (explore::u32 unit = 0; unit < explore::units; ++unit)
        if (unit != explore::net_unit) most += explore::choices(unit);
    if (explore::property_moves == 0) return most;
    return most == 0 ? explore::property_moves : most * explore::property_moves;
}

}

#ifdef EXPLORE_WALKS

namespace {

using explore::Random;

// Receives the successors of a state in rows. The row behind them may be written, too.
struct Successors {
    const State& from;
    State* rows;
    u64 count = 0;

    State& row()
    {
        rows[count] = from;
        return rows[count];
    }
    void done() { ++count; }
};

// For each choice of each unit, makes the successor in `give.row()`, and calls `give.done()` if there is one.
template <class Give>
void give_each(const explore::u32* tables, const State& from, explore::Notes& notes, Give& give)
{
    for (explore::u32 unit = 0; unit < explore::units; ++unit) {
        const explore::u32 end = explore::choices(unit);
        explore::Cursor cursor(tables);
        for (explore::u32 choice = 0; choice < end; ++choice) {
            if (explore::step(unit, choice, cursor, from, give.row(), notes)) give.done();
            if (unit >= explore::first_component && !cursor.more()) break;
        }
    }
}

// Receives the numbers of a state's enabled transitions. Successors are not kept, so they may be wrong.
struct Enabled {
    explore::u32* transitions;
    explore::u32 count = 0;
    State unused = {};

    State& row() { return unused; }
    void done(explore::u32 transition) { transitions[count++] = transition; }
};

}  // namespace

extern "C" {

// Mirrored by `Walked` in on_cpu.rs.
struct Walked {
    u64 steps;
    u64 overflows;
    u64 ended;  // 0: after `most` steps; 1: in a state without any step; 2: at a violation or a fault
};

// Takes at most `most` steps of a random walk from `*state`, which becomes the last state. `rows` has room for the successors of
// a state and one row more; for a net, it has room for the numbers of the net's transitions. Only for models without a property.
void explore_walk(const unsigned* tables, State* state, Random* random, u64 most, State* rows, Walked* walked)
{
    using namespace explore;
    *walked = {0, 0, 0};
    State from = *state;
    Random numbers = *random;
    for (;;) {
        Notes notes;
        const bool violates = !violated(tables, from, notes).is_empty();
        Successors give{from, rows};
        Enabled enabled{reinterpret_cast<u32*>(rows)};
        if constexpr (net_unit != ~0u) net_steps(tables, from, notes, enabled);
#ifdef EXPLORE_AT_ONCE
        else every_step(from, notes, give);
#else
        else give_each(tables, from, notes, give);
#endif
        const u64 count = net_unit != ~0u ? enabled.count : give.count;
        if (violates || notes.fault != 0) {
            walked->ended = 2;
            break;
        }
        if (count == 0) {
            walked->ended = 1;
            break;
        }
        if (walked->steps == most) break;
        walked->overflows += notes.overflows;
        const u32 chosen = numbers.below(static_cast<u32>(count));
        if constexpr (net_unit == ~0u) {
            from = rows[chosen];
        } else {
            const State before = from;
            fire_transition(tables, enabled.transitions[chosen], before, from);
        }
        ++walked->steps;
    }
    *state = from;
    *random = numbers;
}

}

#else

namespace {

#ifdef EXPLORE_REDUCES

constexpr bool reduces = true;

// A CPU thread as a group of one lane.
struct OneLane {
    static constexpr explore::u32 count = 1;

    // All words of a set, in memory.
    struct Words {
        explore::u32* words;

        explore::u32 get(explore::u32 block) const { return words[block]; }
        void put(explore::u32 block, explore::u32 word) { words[block] = word; }
        // Exchanges the words with another set.
        void take(Words& other)
        {
            explore::u32* const own = words;
            words = other.words;
            other.words = own;
        }
    };

    static explore::u32 lane() { return 0; }
    static explore::u32 ballot(bool value) { return value; }
    static explore::u32 shuffle(explore::u32 value, explore::u32) { return value; }
    static explore::u32 sum(explore::u32 value) { return value; }
    static void meet() {}
    static explore::u32 lowest(explore::u32 bits) { return static_cast<explore::u32>(__builtin_ctz(bits)); }
    static explore::u32 ones(explore::u32 bits)
    {
#ifdef __POPCNT__
        return static_cast<explore::u32>(__builtin_popcount(bits));
#endif
        // Counts bits without the built-in function, which is a slow call on a processor without an instruction for it.
        bits -= bits >> 1 & 0x55555555;
        bits = (bits & 0x33333333) + (bits >> 2 & 0x33333333);
        return ((bits + (bits >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
    }
};

// Memory of a thread.
struct Work {
    explore::u32* enabled;    // actions with a step
    explore::u32* sets;       // four sets of a choice
    explore::u32* failing;    // expressions that are false
    explore::GoalWork goal;

    static constexpr explore::u32 words = 5 * explore::action_words + explore::failing_words + explore::GoalWork::words;

    explicit Work(explore::u32* memory)
        : enabled(memory),
          sets(enabled + explore::action_words),
          failing(sets + 4 * explore::action_words),
          goal(failing + explore::failing_words)
    {
    }
};

// Removes the successors by steps that need not be taken. `sources` has the action of each row; afterwards it has the number of
// the state. Returns the end of the rows that are left.
u64 keep_chosen(const explore::u32* tables, const State& from, State* rows, explore::u32* sources, u64 first, u64 end, u64 at,
                const Work& work)
{
    using namespace explore;
    for (u32 word = 0; word < action_words; ++word) work.enabled[word] = 0;
    bool has_several = false;
    for (u64 row = first; row < end; ++row) {
        work.enabled[sources[row] / 32] |= 1u << sources[row] % 32;
        has_several |= sources[row] != sources[first];
    }
    const u32* chosen = nullptr;
    // A single action can be left out only if nothing is asked about deadlocks.
    if (has_several || (has_goal && !keeps_deadlocks && first < end)) {
        find_failing(tables, from, work.failing);
        u32* const sets = work.sets;
        Choice<OneLane, State> choice{tables,          from,   work.failing,          work.goal,
                                      {work.enabled}, {sets}, {sets + action_words}, {sets + 2 * action_words},
                                      {sets + 3 * action_words}};
        if (choice.choose()) chosen = choice.best.words;
    }
    u64 kept = first;
    for (u64 row = first; row < end; ++row) {
        if (chosen != nullptr && !has(chosen, sources[row])) continue;
        if (kept != row) rows[kept] = rows[row];
        sources[kept++] = static_cast<u32>(at);
    }
    return kept;
}

#else

constexpr bool reduces = false;

#endif

// The source of a row until all steps of the state are known: the action in a reduced search, else the state.
explore::u32 source_of(u64 at, explore::u32 action) { return reduces ? action : static_cast<explore::u32>(at); }

// Joins a successor that the processes make with each move of the property's automaton, if there is a property.
struct Joint {
    explore::Numbers<explore::property_moves> moves;
    explore::i32 location;

    Joint(const explore::u32* tables, const State& from, explore::Notes& notes) : location(explore::property_location(from))
    {
        explore::find_moves(tables, from, moves, notes);
    }

    // Replaces the successor in the first row by its combinations with each move. Returns their number.
    explore::u32 add(u64 at, State* rows, explore::u32* sources) const
    {
        if constexpr (explore::property_moves == 0) return 1;
        explore::u32 count = 0;
        const State to = rows[0];
        for (explore::u32 move = 0; move < explore::property_moves; ++move) {
            if (!moves.has(move)) continue;
            rows[count] = to;
            explore::move_property(location, move, rows[count]);
            sources[count++] = static_cast<explore::u32>(at);
        }
        return count;
    }
};

// Receives the successors of a state of a net in rows. The first row that must not be kept is `end`.
struct Rows {
    const State& from;
    State* rows;
    explore::u32* sources;
    const u64 at;
    const u64 end;
    const Joint& joint;
    u64 next;
    bool has_step = false;
    bool is_full = false;

    // Copies the state to the next row.
    State& row()
    {
        rows[next] = from;
        return rows[next];
    }

    // Keeps the successor that this transition has made of the copy.
    void done(explore::u32 transition)
    {
        has_step = true;
        if (next + (explore::property_moves == 0 ? 1 : explore::property_moves) > end) {
            is_full = true;
            return;
        }
        sources[next] = source_of(at, transition);
        next += joint.add(at, rows + next, sources + next);
    }
};

}  // namespace

extern "C" {

// Mirrored by `Counts` in on_cpu.rs.
struct Counts {
    u64 states;      // states expanded completely; later ones are not expanded
    u64 rows;        // successors of these states
    u64 deadlocks;   // states in which the processes have no step
    u64 overflows;
    u64 violating;   // the first state that violates a condition, or `none`
    u64 deadlocked;  // the first deadlock, or `none`
    u64 has_fault;   // 1: state number `states` has a fault
};

constexpr u64 none = ~0ull;

// Number of words of memory that a thread needs to expand states.
u64 explore_memory()
{
#ifdef EXPLORE_REDUCES
    return Work::words;
#else
    return 0;
#endif
}

// Computes the successors of `count` states, one state after another. Ends when `room` rows do not suffice for the next state, or
// when a state has a fault. If the rows do not suffice for the first state of a net, expands no state. For each row, `sources`
// gets the number of the state whose successor it is. The function may also write the row after the last one. `tables` are those
// of the model's network. `memory` has `explore_memory()` words. `violating` has, for each condition, the number of the expanded
// states that violate it, and is added to.
void explore_expand(const unsigned* tables, const State* states, u64 count, State* successors, explore::u32* sources, u64 room,
                    [[maybe_unused]] unsigned* memory, Counts* counts, [[maybe_unused]] u64* violating)
{
    using namespace explore;
    *counts = {0, 0, 0, 0, none, none, 0};
    const u64 most = explore_most_steps();
    u64 row = 0;
#ifdef EXPLORE_REDUCES
    const Work work(memory);
#endif
    for (u64 at = 0; at < count && room - row >= most; ++at) {
        const State from = states[at];
        [[maybe_unused]] const u64 first = row;
        Notes notes;
        const Numbers<conditions> failing = violated(tables, from, notes);
        const bool violates = !failing.is_empty();
        if (violates && counts->violating == none) counts->violating = at;
        bool has_step = false;
        const Joint joint(tables, from, notes);
        if constexpr (net_unit != ~0u) {
            Rows give{from, successors, sources, at, room, joint, row};
            net_steps(tables, from, notes, give);
            if (give.is_full) return;
            has_step = give.has_step;
            row = give.next;
        }
        for (u32 unit = 0; unit < units; ++unit) {
            if (unit == net_unit) continue;
            const u32 end = choices(unit);
            Cursor cursor(tables);
            for (u32 choice = 0; choice < end; ++choice) {
                successors[row] = from;
                sources[row] = static_cast<u32>(at);
                const bool steps = step(unit, choice, cursor, from, successors[row], notes);
                has_step |= steps;
#ifdef EXPLORE_REDUCES
                if (steps) sources[row] = action_of(tables, unit, choice, cursor, from);
#endif
                if (steps) row += joint.add(at, successors + row, sources + row);
                if (unit >= first_component && !cursor.more()) break;
            }
        }
        if (property_moves > 0 && !has_step) {
            successors[row] = from;
            row += joint.add(at, successors + row, sources + row);
        }
        if (notes.fault != 0) {
            counts->has_fault = 1;
            return;
        }
        if (!has_step) {
            ++counts->deadlocks;
            if (counts->deadlocked == none) counts->deadlocked = at;
        }
#ifdef EXPLORE_REDUCES
        row = keep_chosen(tables, from, successors, sources, first, row, at, work);
#endif
        if (violates)
            for (u32 condition = 0; condition < conditions; ++condition) violating[condition] += failing.has(condition);
        counts->overflows += notes.overflows;
        counts->states = at + 1;
        counts->rows = row;
    }
}

}

#endif
