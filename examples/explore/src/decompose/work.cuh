// Strongly connected components and maximal end components of a graph, by many threads: what all kernels work on, and how they
// share it out. What each does is in components.cuh and end_components.cuh, their list in kernels.cuh. The same text is
// compiled for GPUs (kernels.cu) and for threads of a CPU (kernels.cpp); the order of kernels is in engine.rs and
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

}  // namespace decompose
