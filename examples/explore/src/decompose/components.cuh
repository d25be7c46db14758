// The kernels that find strongly connected components: behind work.cuh.

namespace decompose {

// ---- the transposed graph

// Counts edges into states: that of s behind its place, in in_offsets[s + 1].
template <class Block>
DECOMPOSE_FN void count_in(const Work& w, Block& block)
{
    for_all(block, w.edges, [&](bool has, u64 edge) {
        if (has) add(w.in_offsets + w.targets[edge] + 1, u64{1});
    });
}

// Sums of the parts of `scanned`, one a block.
template <class Block>
DECOMPOSE_FN void sum_parts(const Work& w, Block& block)
{
    const u64 part = (w.scanned_count + block.count() - 1) / block.count();
    const u64 first = block.index() * part, last = first + part < w.scanned_count ? first + part : w.scanned_count;
    u64 sum = 0, total;
    for (u64 at = first + block.thread(); at < last; at += block.threads()) sum += w.scanned[at];
    sum_before(block, sum, total);
    if (block.thread() == 0) w.sums[block.index()] = total;
}

// What stands before each element of `scanned` in its place; `sums` has what stands before each part.
template <class Block>
DECOMPOSE_FN void scan_parts(const Work& w, Block& block)
{
    const u64 part = (w.scanned_count + block.count() - 1) / block.count();
    const u64 first = block.index() * part, last = first + part < w.scanned_count ? first + part : w.scanned_count;
    u64 base = w.sums[block.index()];
    for (u64 tile = first; tile < last; tile += block.threads()) {
        const u64 at = tile + block.thread();
        u64 total;
        const u64 before = sum_before(block, at < last ? w.scanned[at] : 0, total);
        if (at < last) w.scanned[at] = base + before;
        base += total;
    }
}

// The choice of an edge of a state.
DECOMPOSE_FN u64 choice_of(const Work& w, u32 state, u64 edge)
{
    u64 low = w.choice_offsets[state], high = w.choice_offsets[state + u64{1}];  // the last one that begins at the edge or before
    while (high - low > 1) {
        const u64 middle = (low + high) / 2;
        if (w.edge_offsets[middle] <= edge) low = middle;
        else high = middle;
    }
    return low;
}

// Puts sources in their places: in_offsets[s + 1] is where that of the next edge into s goes, and in the end where those of s + 1
// begin.
template <class Block>
DECOMPOSE_FN void scatter_in(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 state) {
        for_edges(block, has, static_cast<u32>(state), w.offsets, [&](u32 source, u64 edge) {
            const u64 at = add(w.in_offsets + w.targets[edge] + 1, u64{1});
            w.sources[at] = source;
            if (w.ranks) w.ranks[at] = static_cast<u32>(choice_of(w, source, edge) - w.choice_offsets[source]);
        });
    });
}

// ---- trimming

// Counts edges between live states of one region, but for those of a state to itself. The counters are 0 before.
template <class Block>
DECOMPOSE_FN void count_degrees(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 state) {
        has = has && is_live(w, static_cast<u32>(state));
        for_edges(block, has, static_cast<u32>(state), w.offsets, [&](u32 source, u64 edge) {
            const u32 target = w.targets[edge];
            if (target == source || !is_together(w, source, target)) return;
            add(w.second + source, 1u);
            add(w.first + target, 1u);
        });
    });
}

// Settles a state that is a component by itself. False if another thread has.
DECOMPOSE_FN bool claim(const Work& w, u32 state) { return compare_and_swap(w.label + state, none, state) == none; }

template <class Block>
DECOMPOSE_FN void seed_trim(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (has && is_live(w, state) && (w.first[state] == 0 || w.second[state] == 0) && claim(w, state)) append(w, state);
    });
}

// A state that was settled takes its edges with it. Every one is visited once, so that counters of live states are exact.
template <class Block>
DECOMPOSE_FN void trim(const Work& w, Block& block)
{
    const auto visit = [&](bool has, u32 state) {
        for_edges(block, has, state, w.offsets, [&](u32 source, u64 edge) {
            const u32 target = w.targets[edge];
            if (target != source && is_together(w, source, target) && add(w.first + target, none) == 1 && claim(w, target))
                append(w, target);
        });
        for_edges(block, has, state, w.in_offsets, [&](u32 target, u64 edge) {
            const u32 source = w.sources[edge];
            if (source != target && is_together(w, target, source) && add(w.second + source, none) == 1 && claim(w, source))
                append(w, source);
        });
    };
    take_levels(w, block, visit, NoSweep{});
}

// Counts live states, and finds the one of the most edges in times edges out.
template <class Block>
DECOMPOSE_FN void tally(const Work& w, Block& block)
{
    u64 live = 0, best = 0, total;
    const auto few = [](u32 count) { return u64{count < 0xffff ? count : 0xffff}; };
    for_all(block, w.states, [&](bool has, u64 state) {
        if (!has || !is_live(w, static_cast<u32>(state))) return;
        ++live;
        const u64 key = few(w.first[state]) * few(w.second[state]) << 32 | state;
        best = key > best ? key : best;
    });
    if (best > load(&w.progress->pivot)) maximum(&w.progress->pivot, best);
    sum_before(block, live, total);
    if (block.thread() == 0 && total > 0) add(&w.progress->live, total);
}

// ---- components of pivots

// Priorities are the numbers of states, shuffled: whom a region elects does not depend on how states are numbered. Each step can
// be undone.
DECOMPOSE_FN u32 priority(u32 state)
{
    state ^= state >> 16;
    state *= 0x9e3779b1u;
    return state ^ state >> 16;
}

DECOMPOSE_FN u32 state_of(u32 priority)
{
    priority ^= priority >> 16;
    priority *= 0x0e8b2f51u;  // the inverse of the factor above, modulo 2^32
    return priority ^ priority >> 16;
}

// A region is that of a pivot, its number, while it is searched. Then it falls apart: into what was reached forwards (1),
// backwards (2), or not at all (0). These bits go behind the number of the pivot, which is settled by then.
DECOMPOSE_FN u64 part_of(u32 pivot, u32 mark) { return u64{pivot} << 2 | mark; }

// Where a part's highest priority is: in arrays of live states, in the pivot's place, which nobody else uses.
DECOMPOSE_FN u32* ballot(const Work& w, u64 part)
{
    u32* const arrays[] = {w.mark, w.first, w.second};
    return arrays[part & 3] + (part >> 2);
}

// A state is the pivot of its region: a search starts there.
DECOMPOSE_FN void enter(const Work& w, u32 state, u32 pivot)
{
    w.region[state] = pivot;
    if (state != pivot) return;
    store(w.mark + state, 1u);
    append(w, state);
}

// All live states are of one region, that of the best pivot. Marks are 0 before.
template <class Block>
DECOMPOSE_FN void enter_one(const Work& w, Block& block)
{
    const u32 pivot = static_cast<u32>(w.progress->pivot);
    for_all(block, w.states, [&](bool has, u64 state) {
        if (has && is_live(w, static_cast<u32>(state))) enter(w, static_cast<u32>(state), pivot);
    });
}

// Each part votes for its state of the highest priority. Ballots are 0 before, which is a priority, too: that of state 0, whose
// part needs no other vote if it has no other state.
template <class Block>
DECOMPOSE_FN void vote(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (!has || !is_live(w, state)) return;
        u32* const highest = ballot(w, w.region[state]);
        if (load(highest) < priority(state)) maximum(highest, priority(state));
    });
}

// Parts become regions, with those that they have voted for as their pivots. Only marks of live states change: ballots are in
// places of others.
template <class Block>
DECOMPOSE_FN void enter_parts(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (has && is_live(w, state)) enter(w, state, state_of(load(ballot(w, w.region[state]))));
    });
}

// Pivots begin once more, for the search backwards.
template <class Block>
DECOMPOSE_FN void enter_again(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (!has || !is_live(w, state) || w.region[state] != at) return;
        w.mark[state] |= 2;
        append(w, state);
    });
}

// Marks what can be reached from pivots, each in its region. With the graph and the transposed one exchanged it goes backwards.
template <class Block>
DECOMPOSE_FN void search(const Work& w, Block& block)
{
    const u32 bit = static_cast<u32>(w.bit);
    const auto is_open = [&](u32 state) { return !(load(w.mark + state) & bit); };
    const auto reach = [&](u32 state) {
        if (!(bit_or(w.mark + state, bit) & bit)) append(w, state);
    };
    const auto visit = [&](bool has, u32 state) {
        for_edges(block, has, state, w.offsets, [&](u32 source, u64 edge) {
            const u32 target = w.targets[edge];
            if (is_together(w, source, target) && is_open(target)) reach(target);
        });
    };
    // The other way round: whether something that was reached leads to a state that was not. A level is not kept apart from the
    // next one: only what can be reached matters.
    const auto sweep = [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        has = has && is_live(w, state) && is_open(state);
        for_edges(block, has, state, w.in_offsets, [&](u32 target, u64 edge) {
            if (!is_open(target)) return;
            const u32 source = w.sources[edge];
            if (is_together(w, target, source) && !is_open(source)) reach(target);
        });
    };
    take_levels(w, block, visit, sweep);
}

// What was reached both ways is the pivot's component. Of the rest, states are in one component only if the same was reached.
template <class Block>
DECOMPOSE_FN void close_regions(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        if (!has) return;
        const u32 state = static_cast<u32>(at), mark = w.mark[state], pivot = static_cast<u32>(w.region[state]);
        w.mark[state] = 0;
        if (!is_live(w, state)) return;
        if (mark == 3) store(w.label + state, pivot);
        else w.region[state] = part_of(pivot, mark);
    });
}

// ---- colours

// Every state begins with its own priority as its colour, and passes it on.
template <class Block>
DECOMPOSE_FN void begin_colours(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (!has || !is_live(w, state)) return;
        w.first[state] = priority(state);
        w.mark[state] = 1;
        append(w, state);
    });
}

// The highest colour that is known to reach a state of some colour: that of the state whose priority it was, and so on.
DECOMPOSE_FN u32 highest(const Work& w, u32 colour)
{
    while (true) {
        const u32 next = load(w.first + state_of(colour));
        if (next <= colour) return colour;
        colour = next;
    }
}

// Colours go forwards in their region, higher ones over lower ones, until nothing changes. Then a state's colour is the highest
// priority that reaches it.
//
// A state is in the queue while it is marked, once. Who changes a colour does so before it sets the mark; who takes the mark
// reads the colour afterwards; between the two there is a fence on both sides. So whoever finds a mark there, and appends
// nothing, has changed the colour before it is read.
template <class Block>
DECOMPOSE_FN void propagate(const Work& w, Block& block)
{
    const auto visit = [&](bool has, u32 state) {
        if (has) {
            exchange(w.mark + state, 0u);
            fence();
            maximum(w.first + state, highest(w, load(w.first + state)));
        }
        for_edges(block, has, state, w.offsets, [&](u32 source, u64 edge) {
            const u32 target = w.targets[edge], colour = load(w.first + source);
            if (!is_together(w, source, target) || load(w.first + target) >= colour) return;
            if (maximum(w.first + target, colour) >= colour) return;
            fence();
            if (exchange(w.mark + target, 1u) == 0) append(w, target);
        });
    };
    take_levels(w, block, visit, NoSweep{});
}

// Colours become regions, all of which their pivots reach forwards.
template <class Block>
DECOMPOSE_FN void enter_colours(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (!has || !is_live(w, state)) return;
        w.region[state] = state_of(w.first[state]);
        w.mark[state] = 1;
    });
}

// ---- labels are the smallest states

// `first` is all ones before.
template <class Block>
DECOMPOSE_FN void find_smallest(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (!has) return;
        u32* const smallest = w.first + w.label[state];
        if (load(smallest) > state) minimum(smallest, state);
    });
}

template <class Block>
DECOMPOSE_FN void take_smallest(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 state) {
        if (has) w.label[state] = w.first[w.label[state]];
    });
}

}  // namespace decompose
