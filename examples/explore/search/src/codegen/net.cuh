// Firings of a large net, in tables that codegen/net.rs describes.

namespace explore {

// Whether all comparisons of a firing hold: first those for equality, then those with a least value.
template <class State>
EXPLORE_FN bool fires(const u32* firing, const State& from)
{
    const u32* at = firing + firing_head;
    EXPLORE_NO_UNROLL
    for (u32 left = firing[0]; left != 0; --left, at += 3)
        if ((from.template select<0, state_words>(at[0]) & at[1]) != at[2]) return false;
    EXPLORE_NO_UNROLL
    for (u32 left = firing[1]; left != 0; --left, at += 3)
        if ((from.template select<0, state_words>(at[0]) & at[1]) < at[2]) return false;
    return true;
}

// Changes `to`, which equals `from`, by an enabled firing. Returns false, and notes a fault, if a field has no room.
template <class State>
EXPLORE_FN bool fire(const u32* firing, const State& from, State& to, Notes& notes)
{
    const u32* at = firing + firing_head + 3 * (firing[0] + firing[1]);
    bool has_room = firing[4] == 0;
    EXPLORE_NO_UNROLL
    for (u32 left = firing[2]; left != 0; --left, at += 3)
        has_room = has_room && (from.template select<0, state_words>(at[0]) & at[1]) <= at[2];
    if (!has_room) {
        note_fault(notes, fault_tokens, firing[5]);
        return false;
    }
    EXPLORE_NO_UNROLL
    for (u32 left = firing[3]; left != 0; --left, at += 2)
        to.template replace<0, state_words>(at[0], from.template select<0, state_words>(at[0]) + at[1]);
    return true;
}

// Goes through the enabled firings of a state.
struct Cursor {
    const u32* tables;
    u32 group = 0, firing = 0, end = 0;    // `firing` is enabled, unless it is `end`; `group` is the one after its own
    u32 taken = 0;                            // transition of the last firing

    EXPLORE_FN explicit Cursor(const u32* tables_) : tables(tables_) {}

    EXPLORE_FN bool more() const { return firing != end; }

    template <class State>
    EXPLORE_FN void begin(u32, const State& from)
    {
        group = firing = end = 0;
        find(from);
    }

    // Makes `to`, which must equal `from`, the successor by the next firing. Returns false if there is no next firing.
    template <class State>
    EXPLORE_FN bool next(const State& from, State& to, Notes& notes)
    {
        if (firing == end) return false;
        const u32* const at = tables + tables[firings_at + firing];
        const bool has_room = fire(at, from, to, notes);
        taken = at[5];
        ++firing;
        find(from);
        return has_room;
    }

    // Advances to the next enabled firing, from `firing` on.
    template <class State>
    EXPLORE_FN void find(const State& from)
    {
        while (true) {
            EXPLORE_NO_UNROLL
            for (; firing != end; ++firing)
                if (fires(tables + tables[firings_at + firing], from)) return;
            if (group == net_groups) return;
            const u32* const at = tables + group_words * group++;
            const u32 part = from.template select<0, state_words>(at[0]) & at[1];
            const bool is_marked = at[3] ? part == at[2] : part >= at[2];
            if (!is_marked) continue;
            firing = at[4];
            end = at[5];
        }
    }
};

// Whether a transition is enabled.
template <class State>
EXPLORE_FN i32 fireable(const u32* tables, u32 transition, const State& from)
{
    const u32 firing = tables[fireable_at + transition];
    return firing != ~0u && fires(tables + tables[firings_at + firing], from);
}

// Changes `to`, which equals `from`, by an enabled transition, for which there is room.
template <class State>
EXPLORE_FN void fire_transition(const u32* tables, u32 transition, const State& from, State& to)
{
    Notes notes;
    fire(tables + tables[firings_at + tables[fireable_at + transition]], from, to, notes);
}

// For each enabled firing, makes the successor in `give.row()`, and calls `give.done` with the number of the transition.
template <class State, class Give>
EXPLORE_FN void net_steps(const u32* tables, const State& from, Notes& notes, Give& give)
{
    Cursor cursor(tables);
    cursor.begin(0, from);
    while (cursor.more()) {
        State& to = give.row();
        if (cursor.next(from, to, notes)) give.done(cursor.taken);
    }
}

}  // namespace explore
