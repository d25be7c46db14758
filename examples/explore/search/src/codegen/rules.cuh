// Steps of a network by rules, after components.cuh: the same code for all networks. The generated text before this one says
// where rules are in the tables. Steps come in the order that ir/network.rs defines.

namespace explore {

// Position of the search for the steps that a component leads.
struct Cursor {
    const u32* tables;
    u32 component = 0;
    u32 next_label = 0, end = 0;              // transitions of the component from the next label on
    Ways own;                                 // its transitions with the current label
    u32 next_rule = 0, last_rule = 0;         // rules that it leads with this label
    u32 rule = 0;                             // the current rule
    u32 combination = 0, combinations = 0;    // combinations of transitions of the rule's components

    EXPLORE_FN explicit Cursor(const u32* tables_) : tables(tables_) {}

    // False if no step is left. If the result is true, a step may be left or not.
    EXPLORE_FN bool more() const { return next_label != end || next_rule != last_rule || combination != combinations; }

    template <class State>
    EXPLORE_FN void begin(u32 component_, const State& from)
    {
        component = component_;
        const u32* const leader = tables + component * component_words;
        const u32* const row = tables + leader[rows_at] + state_of(leader, from);
        next_label = row[0];
        end = row[1];
        next_rule = last_rule = combination = combinations = 0;
    }

    // Makes `to`, which must equal `from`, the target of the next step. Returns false if there is no next step.
    template <class State>
    EXPLORE_FN bool next(const State& from, State& to)
    {
        EXPLORE_NO_UNROLL
        while (combination == combinations) {
            const u32* const leader = tables + component * component_words;
            if (next_rule != last_rule) {
                rule = place_of_rule(tables[leader[led_rules_at] + next_rule++]);
                combination = 0;
                combinations = combinations_of_rule(from);
            } else if (next_label != end) {
                const u32* const labels = tables + leader[labels_at];
                const u32 label = labels[next_label];
                own.first = next_label;
                EXPLORE_NO_UNROLL
                do ++next_label;
                while (next_label != end && labels[next_label] == label);
                own.count = next_label - own.first;
                next_rule = tables[leader[led_at] + label];
                last_rule = tables[leader[led_at] + label + 1];
            } else {
                return false;
            }
        }
        const u32 *const parts = tables + tables[rule], count = tables[rule + 1];
        u32 left = combination++;
        EXPLORE_NO_UNROLL
        for (u32 part = count; part-- > 0;) {
            const u32* const moved = tables + parts[2 * part] * component_words;
            const Ways ways = ways_of(parts + 2 * part, from);
            const u32 target = tables[moved[targets_at] + ways.first + left % ways.count];
            left /= ways.count;
            const u32 word = to.template select<0, state_words>(moved[state_word]);
            const u32 mask = moved[state_mask] << moved[state_shift];
            to.template replace<0, state_words>(moved[state_word], (word & ~mask) | (target << moved[state_shift] & mask));
        }
        return true;
    }

    // Returns the transitions of the component in this part of the rule. Those of the leader are known already.
    template <class State>
    EXPLORE_FN Ways ways_of(const u32* part, const State& from) const
    {
        return part[0] == component ? own : Ways(tables, tables + part[0] * component_words, part[1], from);
    }

    // Number of steps of the rule: 0 unless all its components have a transition for it.
    template <class State>
    EXPLORE_FN u32 combinations_of_rule(const State& from) const
    {
        const u32 *const parts = tables + tables[rule], count = tables[rule + 1];
        u32 product = 1;
        EXPLORE_NO_UNROLL
        for (u32 part = 0; part < count && product != 0; ++part) product *= ways_of(parts + 2 * part, from).count;
        return product;
    }
};

// Whether any rule with this label can take a step.
template <class State>
EXPLORE_FN i32 is_enabled_label(const u32* tables, u32 label, const State& from)
{
    const u32* const offsets = tables + rules_of_labels_at;
    bool found = false;
    EXPLORE_NO_UNROLL
    for (u32 at = offsets[label]; at < offsets[label + 1] && !found; ++at) {
        const u32 rule = place_of_rule(tables[at]);
        const u32 *const parts = tables + tables[rule], count = tables[rule + 1];
        found = true;
        EXPLORE_NO_UNROLL
        for (u32 part = 0; part < count && found; ++part)
            found = Ways(tables, tables + parts[2 * part] * component_words, parts[2 * part + 1], from).count != 0;
    }
    return found;
}

}  // namespace explore
