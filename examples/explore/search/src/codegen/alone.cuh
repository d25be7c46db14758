// Steps of a single transition system, after components.cuh: each of its transitions is a step, whatever its label.

namespace explore {

struct Cursor {
    const u32* tables;
    u32 next_one = 0, end = 0;    // transitions

    EXPLORE_FN explicit Cursor(const u32* tables_) : tables(tables_) {}

    EXPLORE_FN bool more() const { return next_one != end; }

    template <class State>
    EXPLORE_FN void begin(u32, const State& from)
    {
        const u32* const row = tables + tables[rows_at] + state_of(tables, from);
        next_one = row[0];
        end = row[1];
    }

    // Makes `to`, which must equal `from`, the target of the next step. Returns false if there is none.
    template <class State>
    EXPLORE_FN bool next(const State&, State& to)
    {
        if (next_one == end) return false;
        const u32 target = tables[tables[targets_at] + next_one++];
        const u32 mask = tables[state_mask] << tables[state_shift], word = to.template select<0, state_words>(tables[state_word]);
        to.template replace<0, state_words>(tables[state_word], (word & ~mask) | (target << tables[state_shift] & mask));
        return true;
    }
};

// Whether there is a transition with this label.
template <class State>
EXPLORE_FN i32 is_enabled_label(const u32* tables, u32 label, const State& from)
{
    return Ways(tables, tables, label, from).count != 0;
}

}  // namespace explore
