// Components of a network: the same code for all components, which it reads from tables. network.rs writes the tables and
// documents their words.

namespace explore {

// Words of a component: the field of its state, and the places of its parts in `tables`.
constexpr u32 component_words = 8;
constexpr u32 state_word = 0, state_shift = 1, state_mask = 2, rows_at = 3, labels_at = 4, targets_at = 5, led_at = 6,
              led_rules_at = 7;

template <class State>
EXPLORE_FN u32 state_of(const u32* component, const State& from)
{
    return (from.template select<0, state_words>(component[state_word]) >> component[state_shift]) & component[state_mask];
}

// Returns the first of the transitions [begin, end) whose label is at least `label`.
EXPLORE_FN u32 first_of(const u32* labels, u32 begin, u32 end, u32 label)
{
    EXPLORE_NO_UNROLL
    while (begin < end) {
        const u32 middle = begin + (end - begin) / 2;
        if (labels[middle] < label)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

// The transitions with a given label that a component has in a state.
struct Ways {
    u32 first = 0, count = 0;

    EXPLORE_FN Ways() {}

    template <class State>
    EXPLORE_FN Ways(const u32* tables, const u32* component, u32 label, const State& from)
    {
        const u32 *const row = tables + component[rows_at] + state_of(component, from),
                  *const labels = tables + component[labels_at];
        const u32 end = row[1];
        first = first_of(labels, row[0], end, label);
        u32 last = first;
        EXPLORE_NO_UNROLL
        while (last < end && labels[last] == label) ++last;
        count = last - first;
    }
};

}  // namespace explore
