// Kernels that find strongly connected components. Include after work.cuh.

namespace decompose {

// ---- the transposed graph

// Counts the edges into each state. The count of state s goes to in_offsets[s + 1].
template <class Block>
DECOMPOSE_FN void count_in(const Work& w, Block& block)
{
    for_all(block, w.edges, [&](bool has, u64 edge) {
        if (has) add_alike(w.in_offsets + w.targets[edge] + 1);
    });
}

// Replaces each element of `scanned` by the sum of all elements before it, and writes the sum of all elements to `total`. Each
// block scans one contiguous part.
template <class Block>
DECOMPOSE_FN void scan(const Work& w, Block& block)
{
    const u64 part = (w.scanned_count + block.count() - 1) / block.count();
    const u64 first = block.index() * part, last = first + part < w.scanned_count ? first + part : w.scanned_count;
    u64 sum = 0, total;
    for (u64 at = first + block.thread(); at < last; at += block.threads()) sum += w.scanned[at];
    block.sum_before(sum, total);
    if (block.thread() == 0) store(w.sums + block.index(), total);
    meet(w, block);
    u64 base, before = 0, all = 0;
    for (u64 other = block.thread(); other < block.count(); other += block.threads()) {
        const u64 of_part = load(w.sums + other);
        all += of_part;
        if (other < block.index()) before += of_part;
    }
    block.sum_before(before, base);
    block.sum_before(all, total);
    if (block.index() == 0 && block.thread() == 0) w.progress->total = total;
    for (u64 tile = first; tile < last; tile += block.threads()) {
        const u64 at = tile + block.thread();
        const u64 of_before = block.sum_before(at < last ? w.scanned[at] : 0, total);
        if (at < last) w.scanned[at] = base + of_before;
        base += total;
    }
}

// Returns the choice to which an edge of a state belongs.
DECOMPOSE_FN u64 choice_of(const Work& w, u32 state, u64 edge)
{
    u64 low = w.choice_offsets[state], high = w.choice_offsets[state + u64{1}];  // last choice that begins at or before the edge
    while (high - low > 1) {
        const u64 middle = (low + high) / 2;
        if (w.edge_offsets[middle] <= edge) low = middle;
        else high = middle;
    }
    return low;
}

// Writes the source of each edge to its place in the transposed graph. During the kernel, in_offsets[s + 1] is the place of the
// next edge into s; at the end, it is the first place of state s + 1.
template <class Block>
DECOMPOSE_FN void scatter_in(const Work& w, Block& block)
{
    const auto scatter = [&](Way, u32 source, u64, u64 edge) {
        const u64 at = add_alike(w.in_offsets + w.targets[edge] + 1);
        w.sources[at] = source;
        if (w.ranks) w.ranks[at] = static_cast<u32>(choice_of(w, source, edge) - w.choice_offsets[source]);
    };
    for_all(block, w.states, [&](bool has, u64 state) { for_edges(w, block, has, static_cast<u32>(state), 0, out, scatter); });
    finish_pieces(w, block, scatter);
}

// ---- trimming

// Counts the edges between live states of the same region, except edges from a state to itself. The counters must be 0 before.
template <class Block>
DECOMPOSE_FN void count_degrees(const Work& w, Block& block)
{
    const auto count = [&](Way, u32 source, u64 known, u64 edge) {
        const u32 target = w.targets[edge];
        if (target == source || region_of(w.known[target]) != region_of(known)) return;
        add_alike(w.second + source);
        add_alike(w.first + target);
    };
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        const u64 known = has ? w.known[state] : assigned;
        for_edges(w, block, region_of(known) != assigned, state, known, out, count);
    });
    finish_pieces(w, block, count);
}

// Makes a state its own component, because it is one by itself. Returns false if another thread has already assigned the state.
DECOMPOSE_FN bool claim(const Work& w, u32 state) { return compare_and_swap(w.label + state, none, state) == none; }

// Queues the live states without edges in or without edges out. Resets the counters of `tally`.
template <class Block>
DECOMPOSE_FN void seed_trim(const Work& w, Block& block)
{
    if (block.index() == 0 && block.thread() == 0) w.progress->live = w.progress->pivot = 0;
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (has && is_live(w, state) && (w.first[state] == 0 || w.second[state] == 0) && claim(w, state)) append(w, block, state);
    });
}

// Removes the edges of assigned states. Each of these states is visited once, so the degree counters of live states stay exact.
// The region of such a state is still the region that it shared with its neighbours.
template <class Block>
DECOMPOSE_FN void trim(const Work& w, Block& block)
{
    const auto take = [&](Way way, u32 state, u64 known, u64 edge) {
        const u32 other = way == out ? w.targets[edge] : w.sources[edge];
        if (other == state || region_of(w.known[other]) != region_of(known)) return;
        if (add((way == out ? w.first : w.second) + other, none) == 1 && claim(w, other)) append(w, block, other);
    };
    const auto visit = [&](bool has, u32 state) { share_edges<true>(w, block, has, state, has ? w.known[state] : 0, out, take); };
    take_levels(w, block, visit, take, NoSweep{});
}

// Counts live states, and finds the live state with the largest product of edges in and edges out. Moves assigned states out of
// their regions.
template <class Block>
DECOMPOSE_FN void tally(const Work& w, Block& block)
{
    u64 live = 0, best = 0, total;
    const auto few = [](u32 count) { return u64{count < 0xffff ? count : 0xffff}; };
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (!has || region_of(w.known[state]) == assigned) return;
        if (!is_live(w, state)) {
            w.known[state] = assigned;
            return;
        }
        ++live;
        const u64 key = few(w.first[state]) * few(w.second[state]) << 32 | state;
        best = key > best ? key : best;
    });
    if (best > load(&w.progress->pivot)) maximum(&w.progress->pivot, best);
    block.sum_before(live, total);
    if (block.thread() == 0 && total > 0) add(&w.progress->live, total);
}

// ---- regions

// Mixes bits (a step of the finaliser of MurmurHash3).
DECOMPOSE_FN u32 mixed(u32 word)
{
    word ^= word >> 16;
    word *= 0x85ebca6bu;
    word ^= word >> 13;
    word *= 0xc2b2ae35u;
    return word ^ word >> 16;
}

// Returns the new region for the states of `region` that share `one` and `other`. If two parts get the same number by chance, a
// later round splits them. The result stays correct, because a component is never split.
DECOMPOSE_FN u32 part_of(u32 region, u32 one, u32 other)
{
    return mixed(mixed(mixed(region + 0x9e3779b9u) + one) * 5 + other) & 0x7fffffff;  // never `assigned`
}

// Assigns a state to a component. The label is any state of the component.
DECOMPOSE_FN void assign(const Work& w, u32 state, u32 label)
{
    store(w.label + state, label);
    w.known[state] = assigned;
}

// ---- the component of one pivot, of all live states

// Starts a search at the best pivot. The word of each state must be 0 before the first search. Bit 0 marks states reached
// forwards, bit 1 states reached backwards.
template <class Block>
DECOMPOSE_FN void enter_one(const Work& w, Block& block)
{
    if (block.index() != 0 || block.thread() != 0) return;
    const u32 pivot = static_cast<u32>(w.progress->pivot);
    w.known[pivot] |= w.bit << 32;
    append(w, block, pivot);
}

// Marks all states that can be reached from the states in the queue without leaving their regions. If the graph and the
// transposed graph are exchanged, the search goes backwards.
template <class Block>
DECOMPOSE_FN void search(const Work& w, Block& block)
{
    const u64 bit = w.bit << 32;
    const auto reach = [&](u32 state) {
        if (!(bit_or(w.known + state, bit) & bit)) append(w, block, state);
    };
    const auto look = [&](Way way, u32 state, u64 known, u64 edge) {
        if (way == out) {
            const u32 target = w.targets[edge];
            const u64 other = load(w.known + target);
            // Prefetch, because latency limits a narrow frontier.
            if (block.keeps) prefetch(w.offsets + target);
            if (region_of(other) == region_of(known) && !(other & bit)) reach(target);
            return;
        }
        // A sweep works the other way round: it tests whether a state that is not yet reached has an edge from a state that is.
        // Levels may mix, because only reachability matters.
        if (load(w.known + state) & bit) return;
        const u64 other = load(w.known + w.sources[edge]);
        if (region_of(other) == region_of(known) && other & bit) reach(state);
    };
    const auto visit = [&](bool has, u32 state) { for_edges(w, block, has, state, has ? load(w.known + state) : 0, out, look); };
    const auto sweep = [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        const u64 known = has ? load(w.known + state) : assigned;
        for_edges(w, block, region_of(known) != assigned && !(known & bit), state, known, in, look);
    };
    take_levels(w, block, visit, look, sweep);
}

// States that are reached in both directions form the pivot's component. Two other states can share a component only if the same
// searches have reached them.
template <class Block>
DECOMPOSE_FN void close_one(const Work& w, Block& block)
{
    const u32 pivot = static_cast<u32>(w.progress->pivot);
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        const u64 known = has ? w.known[state] : assigned;
        if (region_of(known) == assigned) return;
        if (word_of(known) == 3) assign(w, state, pivot);
        else w.known[state] = part_of(region_of(known), word_of(known), 0);
    });
}

// ---- components of many pivots

// Returns the priority of a state. Priorities are a permutation of the numbers of states, so that elections do not depend on the
// numbering. Each operation below is invertible.
DECOMPOSE_FN u32 priority(u32 state)
{
    state ^= state >> 16;
    state *= 0x9e3779b1u;
    return state ^ state >> 16;
}

DECOMPOSE_FN u32 state_of(u32 priority)
{
    priority ^= priority >> 16;
    priority *= 0x0e8b2f51u;  // inverse of the factor above, modulo 2^32
    return priority ^ priority >> 16;
}

// Maximum number of pivots of a region. The last bit of a state's word says that the state is in the queue.
constexpr u32 pivot_bits = 31, queued = 1u << pivot_bits;

// Returns the ballot by which a region elects the pivot for one of its bits. A ballot has one winner, so each bit of a region has
// at most one pivot. Several pairs of region and bit may share a ballot. Only one of these pairs then has a pivot in this round.
DECOMPOSE_FN u32* ballot_of(const Work& w, u32 region, u32 bit)
{
    const u32 hash = mixed(mixed(region + static_cast<u32>(w.round) * 0x9e3779b9u) * 33 + bit);
    return w.ballot + (u64{hash} * w.states >> 32);
}

// Returns the bit for which a state is a candidate in this round.
DECOMPOSE_FN u32 bit_of(const Work& w, u32 state) { return mixed(state + static_cast<u32>(w.round) * 0x85ebca77u) % pivot_bits; }

DECOMPOSE_FN u32* own_ballot(const Work& w, u32 state) { return ballot_of(w, region_of(w.known[state]), bit_of(w, state)); }

// Elects, for each ballot, the candidate with the highest priority. Ballots must be 0 before, which is also the priority of state
// 0. Resets the counter of `close_pivots`.
template <class Block>
DECOMPOSE_FN void elect(const Work& w, Block& block)
{
    if (block.index() == 0 && block.thread() == 0) w.progress->missed = 0;
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (!has || region_of(w.known[state]) == assigned) return;
        u32* const highest = own_ballot(w, state);
        if (load(highest) < priority(state)) maximum(highest, priority(state));
    });
}

// Queues all pivots, each with its own bit set: the word of a state has a bit for each pivot. Before the backward search, this
// kernel saves the bits of the forward search.
template <class Block>
DECOMPOSE_FN void enter_pivots(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        const u64 known = has ? w.known[state] : assigned;
        if (region_of(known) == assigned) return;
        if (w.bit == 2) w.first[state] = word_of(known);
        const bool is_pivot = load(own_ballot(w, state)) == priority(state);
        w.known[state] = known_of(region_of(known), is_pivot ? 1u << bit_of(w, state) | queued : 0);
        if (is_pivot) append(w, block, state);
    });
}

// Propagates bits along edges within regions until nothing changes. If the graph and the transposed graph are exchanged,
// propagates backwards. The bits and the queue mark of a state are in the same word. So a thread that finds the state queued has
// added its bits before another thread takes the state from the queue.
template <class Block>
DECOMPOSE_FN void spread(const Work& w, Block& block)
{
    constexpr u64 is_queued = u64{queued} << 32;
    const auto pass = [&](Way, u32, u64 known, u64 edge) {
        const u32 target = w.targets[edge];
        const u64 other = load(w.known + target), some = known_of(0, word_of(known) & ~queued);
        if (block.keeps) prefetch(w.offsets + target);
        if (region_of(other) != region_of(known) || !(some & ~other)) return;
        if (!(bit_or(w.known + target, some | is_queued) & is_queued)) append(w, block, target);
    };
    const auto visit = [&](bool has, u32 state) {
        for_edges(w, block, has, state, has ? bit_and(w.known + state, ~is_queued) : 0, out, pass);
    };
    take_levels(w, block, visit, pass, NoSweep{});
}

// A state that a pivot reaches, and that reaches the same pivot, is in this pivot's component. Two other states can share a
// component only if the same pivots reach them and they reach the same pivots. Counts the states without any pivot.
template <class Block>
DECOMPOSE_FN void close_pivots(const Work& w, Block& block)
{
    u64 missed = 0, total;
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        const u64 known = has ? w.known[state] : assigned;
        const u32 region = region_of(known), before = region == assigned ? 0 : w.first[state], behind = word_of(known);
        if (region == assigned) return;
        u32 bit = 0;
        while (bit < pivot_bits && !(before & behind & 1u << bit)) ++bit;
        if (bit < pivot_bits) assign(w, state, state_of(load(ballot_of(w, region, bit))));
        else w.known[state] = part_of(region, before, behind);
        missed += (before | behind) == 0;
    });
    block.sum_before(missed, total);
    if (block.thread() == 0 && total > 0) add(&w.progress->missed, total);
}

// ---- colours

// Gives each state its own priority as its colour, and queues it.
template <class Block>
DECOMPOSE_FN void begin_colours(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        const u64 known = has ? w.known[state] : assigned;
        if (region_of(known) == assigned) return;
        w.first[state] = priority(state);
        w.known[state] = known_of(region_of(known), 1);
        append(w, block, state);
    });
}

// Follows colours upwards: from a colour to the colour of the state with that priority, and so on, up to the highest colour that
// is known to reach it.
DECOMPOSE_FN u32 highest(const Work& w, u32 colour)
{
    while (true) {
        const u32 next = load(w.first + state_of(colour));
        if (next <= colour) return colour;
        colour = next;
    }
}

// A marked state is in the queue exactly once. A thread that changes a colour does so before it sets the mark. The thread that
// clears the mark reads the colour afterwards. In both threads, a fence separates the two operations. Therefore, if a thread
// finds the mark set and does not append the state, the thread that clears the mark reads the changed colour.
constexpr u64 marked = u64{1} << 32;

DECOMPOSE_FN void take_mark(const Work& w, u32 state)
{
    bit_and(w.known + state, ~marked);
    fence();
}

template <class Block>
DECOMPOSE_FN void set_mark(const Work& w, Block& block, u32 state)
{
    fence();
    if (!(bit_or(w.known + state, marked) & marked)) append(w, block, state);
}

// Propagates colours along edges within regions until nothing changes. A higher colour replaces a lower one. In the end, the
// colour of a state is the highest priority that reaches it.
template <class Block>
DECOMPOSE_FN void propagate(const Work& w, Block& block)
{
    const auto pass = [&](Way, u32 source, u64 known, u64 edge) {
        const u32 target = w.targets[edge];
        if (region_of(load(w.known + target)) != region_of(known)) return;
        const u32 colour = load(w.first + source);
        if (load(w.first + target) < colour && maximum(w.first + target, colour) < colour) set_mark(w, block, target);
    };
    const auto visit = [&](bool has, u32 state) {
        if (has) {
            take_mark(w, state);
            maximum(w.first + state, highest(w, load(w.first + state)));
        }
        for_edges(w, block, has, state, has ? load(w.known + state) : 0, out, pass);
    };
    take_levels(w, block, visit, pass, NoSweep{});
}

// Makes each colour a region. The pivot of a colour is the state with that priority; it reaches the whole region forwards. The
// backward search begins at the pivots.
template <class Block>
DECOMPOSE_FN void enter_colours(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (!has || region_of(w.known[state]) == assigned) return;
        const u32 colour = w.first[state];
        const bool is_pivot = colour == priority(state);
        w.known[state] = known_of(state_of(colour), is_pivot ? 3 : 1);
        if (is_pivot) append(w, block, state);
    });
}

// A state that reaches its pivot is in the pivot's component. The other states form a new region.
template <class Block>
DECOMPOSE_FN void close_colours(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        const u64 known = has ? w.known[state] : assigned;
        if (region_of(known) == assigned) return;
        const u32 colour = w.first[state];
        if (word_of(known) == 3) assign(w, state, state_of(colour));
        else w.known[state] = part_of(region_of(known), word_of(known), colour);
    });
}

// ---- labels are the smallest states

// Finds the smallest state of each component. `first` must be all ones before.
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
