// Strongly connected components and maximal end components of a graph, by many threads: what each kernel does. The same text is
// compiled for GPUs (kernels.cu) and for threads of a CPU (kernels.cpp); the order of kernels is in components.rs and
// end_components.rs. `Work` and `Progress` are mirrored in machine.rs.
//
// Graphs are compressed sparse rows: the edges of state s are targets[offsets[s] .. offsets[s + 1]], and those into it come from
// sources[in_offsets[s] .. in_offsets[s + 1]].
//
// A state is live while label[s] is `none`. Two live states are still together while their regions are the same: an edge counts
// only then. What was found settles labels; what was excluded splits regions.
//
// All atomics are relaxed and of the whole GPU's scope. They order nothing: kernels do, and levels of a kernel, between which all
// blocks meet; and two fences in `propagate`, which are argued for there.

namespace decompose {

using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 none = ~0u;

struct Progress {
    u64 counts[2];    // states in each queue; one is this level, the other the next one
    u64 which;        // the queue of this level
    u64 levels;       // done, of all kernels
    u64 most_levels;  // a kernel ends when so many are done
    u64 narrow;       // a level of so few states is done by one block
    u64 sweep_from;   // a search takes a level of so many states by looking at all states that were not reached
    u64 plan;         // of this level: `Plan`
    u64 pivot;        // the best one, behind how good it is
    u64 live;         // states, by `tally`
    u32 arrived, generation;  // of the meetings of blocks
};

enum Plan : u64 { ended, alone, together, sweeping };

struct Work {
    u64 states, edges;
    const u64* offsets;
    const u32* targets;
    u64* in_offsets;
    u32* sources;
    u32* label;
    u64* region;
    u32* first;      // edges into a live state while trimming; ballots; colours
    u32* second;     // edges out of it; ballots
    u32* mark;       // of live states, what has reached them: 1 forwards, 2 backwards; while colours go on, whether it
                     // is in the queue; ballots of others
    u32* queue[2];
    Progress* progress;
    u64 bit;         // of a search: the mark it sets
    u64* sums;        // of the blocks of a scan
    u64* scanned;
    u64 scanned_count;
    // Choices: those of state s are choice_offsets[s] .. choice_offsets[s + 1], their edges begin at edge_offsets[choice].
    const u64* choice_offsets;
    const u64* edge_offsets;
    u32* ranks;      // of an edge into a state: which of its source's choices it is of; null if there are no choices
    u32* component;
    u32* left;       // choices that a state still has; without any it is out
    u32* removed;    // a bit a choice
    u32* touched;    // by component: it has lost something
    const u32* list;  // states to be looked at; null for all
    u64 list_count;
    u32* members;    // of components that are decomposed again, in their order
    u64* sub_offsets;
    u32* sub_targets;
};

// What a block shares: the sums of its threads' numbers of edges, and whose they are.
struct Shared {
    u64 upto[most_threads];
    u64 begin[most_threads];
    u32 state[most_threads];
};

// Sums of the values of the threads before this one; `total` is of all. All threads of the block call it.
template <class Block>
DECOMPOSE_FN u64 sum_before(Block& block, u64 value, u64& total)
{
    u64* const upto = block.shared->upto;
    const u32 thread = block.thread(), threads = block.threads();
    block.sync();  // what was there has been read
    upto[thread] = value;
    block.sync();
    for (u32 step = 1; step < threads; step *= 2) {
        const u64 more = thread >= step ? upto[thread - step] : 0;
        block.sync();
        upto[thread] += more;
        block.sync();
    }
    total = upto[threads - 1];
    return upto[thread] - value;
}

// All edges begin .. end of a state a thread, by the threads together: what one state has more of than another is shared out. All
// threads of the block call it; `has` is false if a thread has no state.
template <class Block, class Body>
DECOMPOSE_FN void for_edges(Block& block, bool has, u32 state, const u64* offsets, Body body)
{
    const u64 begin = has ? offsets[state] : 0, end = has ? offsets[state + u64{1}] : 0;
    if (block.threads() == 1) {
        for (u64 edge = begin; edge < end; ++edge) body(state, edge);
        return;
    }
    u64 total;
    const u64 before = sum_before(block, end - begin, total);
    Shared& shared = *block.shared;
    shared.begin[block.thread()] = begin - before;
    shared.state[block.thread()] = state;
    block.sync();
    for (u64 at = block.thread(); at < total; at += block.threads()) {
        u32 low = 0, high = block.threads() - 1;  // the first thread whose sum is more than `at`
        while (low < high) {
            const u32 middle = (low + high) / 2;
            if (shared.upto[middle] > at) high = middle;
            else low = middle + 1;
        }
        body(shared.state[low], shared.begin[low] + at);
    }
}

// All numbers below `count`, those of a block's threads at a time; `body(has, number)` is called by all of them.
template <class Block, class Body>
DECOMPOSE_FN void for_all_of(Block& block, u64 part, u64 parts, u64 count, Body body)
{
    const u64 tile = u64{block.threads()} * Block::tiles;
    for (u64 first = part * tile; first < count; first += parts * tile) {
        const u64 last = first + tile < count ? first + tile : count;
        for (u64 at = first; at < last; at += block.threads()) body(at + block.thread() < last, at + block.thread());
    }
}

template <class Block, class Body>
DECOMPOSE_FN void for_all(Block& block, u64 count, Body body)
{
    for_all_of(block, block.index(), block.count(), count, body);
}

// One thread of each block comes; the last one acts for all before they go on.
template <class Act>
DECOMPOSE_FN void meet(Progress* progress, u64 blocks, Act act)
{
    const u32 generation = load(&progress->generation);
    fence();
    if (add(&progress->arrived, 1u) + 1 == blocks) {
        fence();
        act();
        store(&progress->arrived, 0u);
        fence();
        wake(&progress->generation, generation + 1);
    } else {
        wait_while(&progress->generation, generation);
    }
    fence();
}

// Appends a state to the next level.
DECOMPOSE_FN void append(const Work& w, u32 state)
{
    const u64 next = 1 - load(&w.progress->which);
    store(w.queue[next] + add(&w.progress->counts[next], u64{1}), state);
}

// The level is done: the next one takes its place.
DECOMPOSE_FN void turn(Progress* progress)
{
    const u64 which = load(&progress->which);
    store(&progress->counts[which], u64{0});
    store(&progress->which, 1 - which);
    store(&progress->levels, load(&progress->levels) + 1);
}

DECOMPOSE_FN void make_plan(Progress* progress)
{
    const u64 count = load(&progress->counts[load(&progress->which)]);
    Plan plan = together;
    if (count == 0 || load(&progress->levels) >= load(&progress->most_levels)) plan = ended;
    else if (count >= load(&progress->sweep_from)) plan = sweeping;
    else if (count <= load(&progress->narrow)) plan = alone;
    store(&progress->plan, static_cast<u64>(plan));
}

// Takes the states of the queue, and those that are appended meanwhile, level by level. `visit(has, state)` is called by all
// threads of a block. Narrow levels are done by the first block alone, without meetings of all: a chain costs what it weighs.
// `sweep` stands for the visits of a level that is very wide.
template <class Block, class Visit, class Sweep>
DECOMPOSE_FN void take_levels(const Work& w, Block& block, Visit visit, Sweep sweep)
{
    Progress* const progress = w.progress;
    const auto level = [&](u64 part, u64 parts) {
        const u64 which = load(&progress->which), count = load(&progress->counts[which]);
        for_all_of(block, part, parts, count, [&](bool has, u64 at) { visit(has, has ? load(w.queue[which] + at) : 0); });
    };
    const auto meet_all = [&](auto act) {
        block.sync();
        if (block.thread() == 0) meet(progress, block.count(), act);
        block.sync();
    };
    meet_all([&] {
        // What seeds have appended is the next level; a kernel that was stopped has a level left.
        if (load(&progress->counts[load(&progress->which)]) == 0) turn(progress);
        make_plan(progress);
    });
    // The plan changes only while all blocks have met.
    while (true) {
        const u64 plan = load(&progress->plan);
        if (plan == ended) return;
        if (plan == alone && block.index() == 0) {
            while (true) {
                level(0, 1);
                block.sync();
                if (block.thread() == 0) turn(progress);
                block.sync();
                const u64 count = load(&progress->counts[load(&progress->which)]);
                const bool goes_on = count > 0 && count <= load(&progress->narrow) && count < load(&progress->sweep_from) &&
                                     load(&progress->levels) < load(&progress->most_levels);
                block.sync();  // all have read before the next turn
                if (!goes_on) break;
            }
        } else if (plan == together) {
            level(block.index(), block.count());
        } else if (plan == sweeping) {
            for_all(block, w.states, sweep);
        }
        meet_all([&] {
            if (plan != alone) turn(progress);
            make_plan(progress);
        });
    }
}

struct NoSweep {
    DECOMPOSE_FN void operator()(bool, u64) const {}
};

DECOMPOSE_FN bool is_live(const Work& w, u32 state) { return load(w.label + state) == none; }

DECOMPOSE_FN bool is_together(const Work& w, u32 state, u32 other)
{
    return is_live(w, other) && w.region[other] == w.region[state];
}

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

// ---- end components

DECOMPOSE_FN bool is_removed(const Work& w, u64 choice) { return load(w.removed + choice / 32) >> choice % 32 & 1; }

// Takes a choice from its state, which is out when it was the last one.
DECOMPOSE_FN void remove(const Work& w, u32 state, u64 choice)
{
    const u32 bit = 1u << choice % 32;
    if (bit_or(w.removed + choice / 32, bit) & bit) return;
    store(w.touched + w.component[state], 1u);
    if (add(w.left + state, none) == 1) append(w, state);
}

// All choices are there; states without any are out.
template <class Block>
DECOMPOSE_FN void begin_choices(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 state) {
        if (!has) return;
        w.component[state] = w.label[state];
        w.left[state] = static_cast<u32>(w.choice_offsets[state + 1] - w.choice_offsets[state]);
        if (w.left[state] == 0) {
            store(w.touched + w.component[state], 1u);
            append(w, static_cast<u32>(state));
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
    for_listed(w, block, [&](bool has, u64, u32 state) {
        has = has && load(w.left + state) != 0;
        for_edges(block, has, state, w.offsets, [&](u32 source, u64 edge) {
            if (w.component[w.targets[edge]] != w.component[source]) remove(w, source, choice_of(w, source, edge));
        });
    });
}

// What is out takes the choices with it that may lead there.
template <class Block>
DECOMPOSE_FN void cascade(const Work& w, Block& block)
{
    const auto visit = [&](bool has, u32 state) {
        for_edges(block, has, state, w.in_offsets, [&](u32, u64 edge) {
            const u32 source = w.sources[edge];
            remove(w, source, w.choice_offsets[source] + w.ranks[edge]);
        });
    };
    take_levels(w, block, visit, NoSweep{});
}

// Which of the listed states are in components that have lost something, and not out.
template <class Block>
DECOMPOSE_FN void flag_members(const Work& w, Block& block)
{
    for_listed(w, block, [&](bool has, u64 at, u32 state) {
        if (has) w.scanned[at] = load(w.left + state) != 0 && load(w.touched + w.component[state]) != 0;
    });
}

// Gives them numbers (`first`, by state), in the order of the list, and counts their edges, that of number k in
// sub_offsets[k + 1]: the choices that are left go to members of the same component only.
template <class Block>
DECOMPOSE_FN void collect_members(const Work& w, Block& block)
{
    for_listed(w, block, [&](bool has, u64 at, u32 state) {
        if (!has || w.scanned[at + 1] == w.scanned[at]) return;
        const u64 number = w.scanned[at];
        w.members[number] = state;
        w.first[state] = static_cast<u32>(number);
        u64 edges = 0;
        for (u64 choice = w.choice_offsets[state]; choice < w.choice_offsets[state + u64{1}]; ++choice)
            if (!is_removed(w, choice)) edges += w.edge_offsets[choice + 1] - w.edge_offsets[choice];
        w.sub_offsets[number + 1] = edges;
    });
}

// Puts the edges in their places, as `scatter_in` does.
template <class Block>
DECOMPOSE_FN void write_edges(const Work& w, Block& block)
{
    for_listed(w, block, [&](bool has, u64, u32 state) {
        for_edges(block, has, state, w.offsets, [&](u32 source, u64 edge) {
            if (is_removed(w, choice_of(w, source, edge))) return;
            const u64 at = add(w.sub_offsets + w.first[source] + 1, u64{1});
            w.sub_targets[at] = w.first[w.targets[edge]];
        });
    });
}

// The components that the members have now, by the numbers of these in `label`.
template <class Block>
DECOMPOSE_FN void take_components(const Work& w, Block& block)
{
    for_listed(w, block, [&](bool has, u64 at, u32 state) {
        if (!has) return;
        w.component[state] = w.list[w.label[at]];
        w.touched[state] = 0;
    });
}

// States that are out are in no end component.
template <class Block>
DECOMPOSE_FN void leave_out(const Work& w, Block& block)
{
    for_all(block, w.states, [&](bool has, u64 state) {
        if (has && w.left[state] == 0) w.component[state] = none;
    });
}

}  // namespace decompose

#define DECOMPOSE_KERNELS(KERNEL)                                                                                        \
    KERNEL(count_in) KERNEL(sum_parts) KERNEL(scan_parts) KERNEL(scatter_in) KERNEL(count_degrees) KERNEL(seed_trim)     \
    KERNEL(trim) KERNEL(tally) KERNEL(enter_one) KERNEL(vote) KERNEL(enter_parts) KERNEL(enter_again) KERNEL(search)     \
    KERNEL(close_regions) KERNEL(begin_colours) KERNEL(propagate) KERNEL(enter_colours) KERNEL(find_smallest)            \
    KERNEL(take_smallest) KERNEL(begin_choices) KERNEL(remove_leaving) KERNEL(cascade) KERNEL(flag_members)              \
    KERNEL(collect_members) KERNEL(write_edges) KERNEL(take_components) KERNEL(leave_out)
