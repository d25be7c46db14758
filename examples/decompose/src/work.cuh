// Data and work distribution of all kernels that find strongly connected components and maximal end components with many threads.
// The kernels are in components.cuh, end_components.cuh and paths.cuh, and kernels.cuh lists them. This source is compiled for
// GPUs (kernels.cu) and for CPU threads (kernels.cpp). engine.rs, end_components.rs and paths.rs launch the kernels in the right
// order. machine.rs mirrors `Work` and `LevelProgress`.
//
// Graphs are compressed sparse rows: the edges of state s are targets[offsets[s] .. offsets[s + 1]], and the edges into state s
// come from sources[in_offsets[s] .. in_offsets[s + 1]].
//
// A state is live while label[s] is `none`. Two live states may share a component as long as their regions are equal; edges
// between different regions are ignored. A kernel that finds a component sets the labels of its states; their regions are changed
// when a kernel next visits them. Facts that exclude a common component split regions.
//
// All atomics are relaxed and have the scope of the whole GPU. They order nothing. Three things order accesses: the boundaries of
// kernels; the levels of a kernel, between which all blocks meet; and the fences of `take_mark` and `set_mark`, which are
// justified at these functions. Within a block, its threads synchronize.

namespace decompose {

using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 none = ~0u;

// A level: the states and pieces that are visited together.
struct Level {
    u64 count;   // states in its queue
    u64 pieces;  // pieces of the edges of heavy states
    u64 done;    // levels before it, of all kernels
    u64 unused;
};

// There are three levels: blocks take one, fill the second, and clear the third, which is filled next. Therefore blocks need to
// meet only once per level, and each block plans the level on its own.
struct LevelProgress {
    Level level[3];   // level number n is level[n % 3], its queue is queue[n % 2]
    u64 step;         // the number of the last level taken, by any kernel; states are appended to the next one
    u64 pivot;        // the best pivot; its score is in the upper half
    u64 live;         // live states, counted by `tally`
    u64 missed;       // live states that no pivot of theirs reaches and that reach none; at first, those outside one region
    u64 total;        // sum of a scan
    u64 arrived;      // arrivals of blocks at meetings, since the beginning
    u64 edges;        // edges looked at by all kernels
};

struct Work {
    u64 states, edges;
    const u64* offsets;
    const u32* targets;
    u64* in_offsets;
    u32* sources;
    u32* label;
    u64* known;      // region of a state, and the bits that reached it in this round (`word_of`)
    u32* first;      // while trimming, edges into a live state; then the pivots that reach it; then its colour
    u32* second;     // edges out of a state
    u32* ballot;     // elections of pivots
    u32* queue[2];
    u64* pieces[2];  // pieces of heavy states, one array per queue
    u64 piece_capacity;  // capacity of each array of pieces
    u64 piece;       // most edges of a piece, and of a state that is not heavy
    LevelProgress* progress;
    u64 most_levels; // a kernel ends after this number of levels
    u64 narrow;      // one block takes a level of at most this number of states
    u64 sweep_from;  // from this number of states on, a search takes a level by a sweep over all states that were not reached
    u64 bit;         // 1 forwards, 2 backwards
    u64 round;       // number of the election
    u64* sums;        // sums of the blocks of a scan
    u64* scanned;
    u64 scanned_count;
    // Choices of state s are choice_offsets[s] .. choice_offsets[s + 1]; the edges of a choice begin at edge_offsets[choice].
    const u64* choice_offsets;
    const u64* edge_offsets;
    u32* ranks;      // for an edge into a state: the index of its choice among its source's choices; null without choices
    u32* component;
    u32* left;       // choices that a state still has; a state without any is excluded
    u32* removed;    // one bit for each choice
    u32* touched;    // by component: it has lost a choice or a state
    const u32* list;  // states to look at; null for all
    u64 list_count;
    u32* members;    // states of components that are decomposed again, in their order
    u64* sub_offsets;
    u32* sub_targets;
    // Fields for paths (paths.cuh).
    const u64* pairs;  // transitions in any order: source in the lower half, target in the upper half
    u32* kinds;        // `Kind` of a state; that of a component is at the state that is its label
    u64 from;          // first state of a path
};

// Maximum number of states that a block keeps for itself.
constexpr u32 local_capacity = 1024;

// Maximum number of levels of kept states that a block takes before all blocks meet: if other blocks may have work, and if none
// has work.
constexpr u64 local_levels = 16, local_levels_alone = 256;

// Shared memory of a block: prefix sums of its threads' edge counts, and the states with these edges; the level; and the states
// that the block keeps.
struct Shared {
    u64 sums[most_threads];
    u64 begin[most_threads];
    u64 other_begin[most_threads];
    u64 known[most_threads];
    u32 upto[most_threads];
    u32 turn[most_threads];
    u32 state[most_threads];
    u32 found;
    u32 local[2][local_capacity];
    Level level;
};

// Direction: edges out of a state, edges into it, or its choices.
enum Way : u32 { out, in, choices };

DECOMPOSE_FN const u64* offsets_of(const Work& w, Way way)
{
    return way == out ? w.offsets : way == in ? w.in_offsets : w.choice_offsets;
}

// Encodes a piece of a heavy state's edges: the state, the number of the piece, and the direction. At the next level, blocks
// divide the pieces between them.
DECOMPOSE_FN u64 piece_of(u32 state, u64 number, Way way) { return u64{way} << 62 | number << 32 | state; }

// Puts off the edges of a state if it is heavy. Returns the number of its edges that were not put off.
template <class Block, class Body>
DECOMPOSE_FN u64 put_off(const Work& w, Block& block, u32 state, u64 known, Way way, u64 begin, u64 end, Body body)
{
    if (end - begin <= w.piece) return end - begin;
    const u64 count = (end - begin + w.piece - 1) / w.piece, next = block.next;
    const u64 at = add(&w.progress->level[next % 3].pieces, count);
    for (u64 number = 0; number < count; ++number) {
        if (at + number < w.piece_capacity) {
            store(w.pieces[next % 2] + at + number, piece_of(state, number, way));
        } else {
            // The arrays have space for the pieces of each state once. A state that is visited repeatedly may find no space, so
            // its edges are visited here.
            const u64 first = begin + number * w.piece, last = first + w.piece < end ? first + w.piece : end;
            for (u64 edge = first; edge < last; ++edge) body(way, state, known, edge);
        }
    }
    return 0;
}

// Visits all edges of the threads' states, one state per thread, in one direction or in both (`both`: out and in). The threads of
// the block divide the edges evenly between them. Edges of heavy states are put off. `body(way, state, known, edge)` gets the
// value `known` that the state's thread passed. All threads of the block must call this function; `has` is false for a thread
// without a state.
template <bool both, class Block, class Body>
DECOMPOSE_FN void share_edges(const Work& w, Block& block, bool has, u32 state, u64 known, Way way, Body body)
{
    const u64* const offsets = offsets_of(w, way);
    const u64 begin = has ? offsets[state] : 0, end = has ? offsets[state + u64{1}] : 0;
    const u64 other_begin = both && has ? w.in_offsets[state] : 0, other_end = both && has ? w.in_offsets[state + u64{1}] : 0;
    const u64 degree = put_off(w, block, state, known, way, begin, end, body);
    const u64 other_degree = both ? put_off(w, block, state, known, in, other_begin, other_end, body) : 0;
    if (block.threads() == 1) {
        for (u64 edge = begin; edge < begin + degree; ++edge) body(way, state, known, edge);
        for (u64 edge = other_begin; edge < other_begin + other_degree; ++edge) body(in, state, known, edge);
        block.looked += degree + other_degree;
        return;
    }
    u64 total;
    const u64 before = block.sum_before(degree + other_degree, total);
    Shared& shared = *block.shared;
    shared.upto[block.thread()] = static_cast<u32>(before + degree + other_degree);
    shared.begin[block.thread()] = begin - before;
    if (both) {
        shared.turn[block.thread()] = static_cast<u32>(before + degree);
        shared.other_begin[block.thread()] = other_begin - before - degree;
    }
    shared.state[block.thread()] = state;
    shared.known[block.thread()] = known;
    block.sync();
    for (u32 at = block.thread(); at < total; at += block.threads()) {
        u32 low = 0, high = block.threads() - 1;  // the first thread whose sum is more than `at`
        while (low < high) {
            const u32 middle = (low + high) / 2;
            if (shared.upto[middle] > at) high = middle;
            else low = middle + 1;
        }
        const bool is_other = both && at >= shared.turn[low];
        body(is_other ? in : way, shared.state[low], shared.known[low], (is_other ? shared.other_begin : shared.begin)[low] + at);
    }
    block.looked += total;
}

// Visits edges in one direction.
template <class Block, class Body>
DECOMPOSE_FN void for_edges(const Work& w, Block& block, bool has, u32 state, u64 known, Way way, Body body)
{
    share_edges<false>(w, block, has, state, known, way, body);
}

// Takes this block's share of the pieces.
template <class Block, class Body>
DECOMPOSE_FN void take_pieces(const Work& w, Block& block, u64 step, u64 count, Body body)
{
    if (count > w.piece_capacity) count = w.piece_capacity;
    for (u64 at = block.index(); at < count; at += block.count()) {
        const u64 piece = load(w.pieces[step % 2] + at);
        const u32 state = static_cast<u32>(piece);
        const Way way = static_cast<Way>(piece >> 62);
        const u64* const offsets = offsets_of(w, way);
        const u64 first = offsets[state] + (piece >> 32 & 0x3fffffff) * w.piece, end = offsets[state + u64{1}];
        const u64 last = first + w.piece < end ? first + w.piece : end, known = load(w.known + state);
        for (u64 edge = first + block.thread(); edge < last; edge += block.threads()) body(way, state, known, edge);
        block.looked += last - first;
    }
}

// Calls `body(has, number)` for all numbers below `count`. Each call is made by all threads of a block together; `has` is false
// for a thread without a number.
template <class Block, class Body>
DECOMPOSE_FN void for_all_of(Block& block, u64 part, u64 parts, u64 count, u64 tile, Body body)
{
    for (u64 first = part * tile; first < count; first += parts * tile) {
        const u64 last = first + tile < count ? first + tile : count;
        for (u64 at = first; at < last; at += block.threads()) body(at + block.thread() < last, at + block.thread());
    }
}

template <class Block, class Body>
DECOMPOSE_FN void for_all(Block& block, u64 count, Body body)
{
    for_all_of(block, block.index(), block.count(), count, u64{block.threads()} * Block::tiles, body);
}

// Waits until all blocks have arrived. Writes before the meeting are visible after it.
template <class Block>
DECOMPOSE_FN void meet(const Work& w, Block& block)
{
    block.sync();
    if (block.thread() == 0) {
        fence();
        const u64 ticket = add(&w.progress->arrived, u64{1}), all = (ticket / block.count() + 1) * block.count();
        if (ticket + 1 == all) rouse();
        else wait_for(&w.progress->arrived, all);
        fence();
    }
    block.sync();
}

// Reads a level. One thread per block reads it, for all threads of the block.
template <class Block>
DECOMPOSE_FN Level read_level(const Work& w, Block& block, u64 step)
{
    if (block.thread() == 0) {
        const Level* const level = w.progress->level + step % 3;
        block.shared->level = {load(&level->count), load(&level->pieces), load(&level->done), 0};
    }
    block.sync();
    return block.shared->level;
}

DECOMPOSE_FN void clear_level(const Work& w, u64 step)
{
    Level* const level = w.progress->level + step % 3;
    store(&level->count, u64{0});
    store(&level->pieces, u64{0});
}

// Takes the pieces that were put off during a loop over all states.
template <class Block, class Body>
DECOMPOSE_FN void finish_pieces(const Work& w, Block& block, Body body)
{
    meet(w, block);
    const u64 count = read_level(w, block, block.next).pieces;
    if (count == 0) return;
    take_pieces(w, block, block.next, count, body);
    meet(w, block);
    if (block.index() == 0 && block.thread() == 0) store(&w.progress->level[block.next % 3].pieces, u64{0});
}

// Appends a state to the next level.
DECOMPOSE_FN void append_for_all(const Work& w, u64 next, u32 state)
{
    store(w.queue[next % 2] + add_one(&w.progress->level[next % 3].count), state);
}

// Keeps a state for this block if that is allowed and space is left. Otherwise appends the state to the next level.
template <class Block>
DECOMPOSE_FN void append(const Work& w, Block& block, u32 state)
{
    if (block.keeps) {
        const u32 at = add_one(&block.shared->found);
        if (at < local_capacity) {
            store(block.shared->local[block.side] + at, state);
            return;
        }
    }
    append_for_all(w, block.next, state);
}

// Takes the states that the block has kept, and the states that it finds from there, for at most `most` levels. Appends the
// remaining states to the next level for all blocks. Returns the number of levels taken.
template <class Block, class Visit>
DECOMPOSE_FN u64 take_kept(const Work& w, Block& block, u64 most, Visit visit)
{
    Shared& shared = *block.shared;
    u64 taken = 0;
    while (true) {
        block.sync();
        const u32 found = load(&shared.found), count = found < local_capacity ? found : local_capacity;
        block.sync();  // all threads have read it
        if (count == 0) return taken;
        if (block.thread() == 0) store(&shared.found, 0u);
        const u32* const kept = shared.local[block.side];
        if (taken == most || count > w.narrow) {
            for (u32 at = block.thread(); at < count; at += block.threads()) append_for_all(w, block.next, load(kept + at));
            return taken;
        }
        block.side = 1 - block.side;
        block.sync();  // states found from now on are counted from 0
        for (u32 at = 0; at < count; at += block.threads()) {
            const bool has = at + block.thread() < count;
            visit(has, has ? load(kept + at + block.thread()) : 0);
        }
        ++taken;
    }
}

// Takes the states of the queue and the states that are appended meanwhile, level by level. All threads of a block call
// `visit(has, state)`. `body(way, state, known, edge)` is called for edges that were put off. The algorithms do not depend on
// order. So if a level has too little work for all blocks, a block continues with the states that it found itself, and the first
// block takes narrow levels alone. Therefore a chain costs little per state. For a very wide level, `sweep` is called instead of
// the visits.
template <class Block, class Visit, class Body, class Sweep>
DECOMPOSE_FN void take_levels(const Work& w, Block& block, Visit visit, Body body, Sweep sweep)
{
    LevelProgress* const progress = w.progress;
    const bool is_first = block.index() == 0 && block.thread() == 0;
    if (block.thread() == 0) store(&block.shared->found, 0u);
    u64 step = block.next;
    // `done` of the first level was set before the kernel began.
    const u64 most_levels = load(&progress->level[step % 3].done) + w.most_levels;
    while (true) {
        // No block changes this level before all blocks have met again.
        const Level level = read_level(w, block, step);
        if ((level.count == 0 && level.pieces == 0) || level.done >= most_levels) break;
        // All blocks have read the previous level.
        if (is_first) clear_level(w, step + 2);
        block.next = step + 1;
        u64 taken = 1;
        if (level.count >= w.sweep_from) {
            for_all(block, w.states, sweep);
        } else {
            const bool alone = level.count <= w.narrow && level.pieces == 0;
            const u64 part = block.index(), parts = alone ? 1 : block.count();
            // Spread a small number of states over all blocks, because edges are divided only between the threads of one block.
            const u64 whole = u64{block.threads()} * Block::tiles, even = (level.count + parts - 1) / parts;
            const u64 tile = even >= whole ? whole : even <= Block::least_tile ? u64{Block::least_tile} : even;
            block.keeps = level.count <= parts * whole;
            const auto visit_queued = [&](bool has, u64 at) { visit(has, has ? load(w.queue[step % 2] + at) : 0); };
            if (part < parts) for_all_of(block, part, parts, level.count, tile, visit_queued);
            take_pieces(w, block, step, level.pieces, body);
            if (block.keeps) taken += take_kept(w, block, alone ? local_levels_alone : local_levels, visit);
            block.keeps = false;
        }
        if (is_first) store(&progress->level[(step + 1) % 3].done, level.done + taken);
        meet(w, block);
        ++step;
    }
    // States that remain, if any, are in the level after the last one that was taken.
    if (is_first) {
        clear_level(w, step + 2);
        store(&progress->step, step - 1);
    }
}

struct NoSweep {
    DECOMPOSE_FN void operator()(bool, u64) const {}
};

// Region of a state whose component has been found.
constexpr u32 assigned = none;

DECOMPOSE_FN bool is_live(const Work& w, u32 state) { return load(w.label + state) == none; }

// The region of a state and the bits of the searches that have reached it share a word, because both are read for each edge,
// which is by far the most frequent access. The region changes only in loops over all states.
DECOMPOSE_FN u64 known_of(u32 region, u32 word) { return u64{word} << 32 | region; }
DECOMPOSE_FN u32 region_of(u64 known) { return static_cast<u32>(known); }
DECOMPOSE_FN u32 word_of(u64 known) { return static_cast<u32>(known >> 32); }

}  // namespace decompose
