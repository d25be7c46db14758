// Kernels that find maximal end components. Include after components.cuh.

namespace decompose {

// ---- end components

DECOMPOSE_FN bool is_removed(const Work& w, u64 choice) { return load(w.removed + choice / 32) >> choice % 32 & 1; }

// Removes a choice of a state. If the state has no choice left, it is excluded and queued.
template <class Block>
DECOMPOSE_FN void remove(const Work& w, Block& block, u32 state, u64 choice)
{
    const u32 bit = 1u << choice % 32;
    if (bit_or(w.removed + choice / 32, bit) & bit) return;
    store(w.touched + w.component[state], 1u);
    if (add(w.left + state, none) == 1) append(w, block, state);
}

// Starts with all choices. Excludes the states that have no choice.
template <class Block>
DECOMPOSE_FN void begin_choices(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 state) {
        if (!has) return;
        w.component[state] = w.label[state];
        w.left[state] = static_cast<u32>(w.choice_offsets[state + 1] - w.choice_offsets[state]);
        if (w.left[state] == 0) {
            store(w.touched + w.component[state], 1u);
            append(w, block, static_cast<u32>(state));
        }
    });
}

template <class Block, class Body>
DECOMPOSE_FN void for_listed(const Work& w, Block& block, Body body)
{
    for_all(block, w.list_count, [&](bool has, u64 at) { body(has, at, has && w.list ? w.list[at] : static_cast<u32>(at)); });
}

// Removes the choices that may leave their component.
template <class Block>
DECOMPOSE_FN void remove_leaving(const Work& w, Block& block)
{
    const auto look = [&](Way, u32 source, u64, u64 edge) {
        if (w.component[w.targets[edge]] != w.component[source]) remove(w, block, source, choice_of(w, source, edge));
    };
    for_listed(w, block, [&](bool has, u64, u32 state) {
        for_edges(w, block, has && load(w.left + state) != 0, state, 0, out, look);
    });
    finish_pieces(w, block, look);
}

// Removes the choices that may lead to excluded states.
template <class Block>
DECOMPOSE_FN void cascade(const Work& w, Block& block)
{
    const auto take = [&](Way, u32, u64, u64 edge) {
        const u32 source = w.sources[edge];
        remove(w, block, source, w.choice_offsets[source] + w.ranks[edge]);
    };
    const auto visit = [&](bool has, u32 state) { for_edges(w, block, has, state, 0, in, take); };
    take_levels(w, block, visit, take, NoSweep{});
}

// Flags the listed states that are not excluded and whose components have lost a choice or a state.
template <class Block>
DECOMPOSE_FN void flag_members(const Work& w, Block& block)
{
    for_listed(w, block, [&](bool has, u64 at, u32 state) {
        if (has) w.scanned[at] = load(w.left + state) != 0 && load(w.touched + w.component[state]) != 0;
    });
}

// Numbers the flagged states (`first`, by state) in the order of the list, and counts their edges. The count of number k goes to
// sub_offsets[k + 1], which must be 0 before. The remaining choices lead only to members of the same component.
template <class Block>
DECOMPOSE_FN void collect_members(const Work& w, Block& block)
{
    // A state may have millions of choices, so choices are divided between threads in the same way as edges.
    const auto count = [&](Way, u32 source, u64, u64 choice) {
        if (!is_removed(w, choice)) add(w.sub_offsets + w.first[source] + 1, w.edge_offsets[choice + 1] - w.edge_offsets[choice]);
    };
    for_listed(w, block, [&](bool has, u64 at, u32 state) {
        const bool is_member = has && w.scanned[at + 1] != w.scanned[at];
        if (is_member) {
            w.members[w.scanned[at]] = state;
            w.first[state] = static_cast<u32>(w.scanned[at]);
        }
        for_edges(w, block, is_member, state, 0, choices, count);
    });
    finish_pieces(w, block, count);
}

// Writes the edges to their places, as `scatter_in` does.
template <class Block>
DECOMPOSE_FN void write_edges(const Work& w, Block& block)
{
    const auto put = [&](Way, u32 source, u64, u64 edge) {
        if (is_removed(w, choice_of(w, source, edge))) return;
        const u64 at = add(w.sub_offsets + w.first[source] + 1, u64{1});
        w.sub_targets[at] = w.first[w.targets[edge]];
    };
    for_listed(w, block, [&](bool has, u64, u32 state) { for_edges(w, block, has, state, 0, out, put); });
    finish_pieces(w, block, put);
}

// The region of each member becomes the component to which it belonged before. Counts the members outside the component of the
// first member.
template <class Block>
DECOMPOSE_FN void take_regions(const Work& w, Block& block)
{
    u64 others = 0, total;
    const u32 first = w.component[w.list[0]];
    for_listed(w, block, [&](bool has, u64 at, u32 state) {
        if (!has) return;
        w.known[at] = w.component[state];
        others += w.component[state] != first;
    });
    block.sum_before(others, total);
    if (block.thread() == 0 && total > 0) add(&w.progress->missed, total);
}

// Stores the new component of each member. Translates the numbers in `label` to states of the whole graph.
template <class Block>
DECOMPOSE_FN void take_components(const Work& w, Block& block)
{
    for_listed(w, block, [&](bool has, u64 at, u32 state) {
        if (!has) return;
        w.component[state] = w.list[w.label[at]];
        w.touched[state] = 0;
    });
}

// Excluded states are in no end component.
template <class Block>
DECOMPOSE_FN void leave_out(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 state) {
        if (has && w.left[state] == 0) w.component[state] = none;
    });
}

}  // namespace decompose
