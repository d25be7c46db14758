// Kernels that build a graph from its transitions and find shortest paths within components. Include after work.cuh.

namespace decompose {

enum StateFlags : u32 {
    is_target = 1,     // state: is a target of searches
    has_target = 2,    // component: has a target
    has_inner = 4,     // component: has a transition inside
};

// ---- rows from pairs: built as the transposed graph of the reversed work (`Work::backwards`)

template <class Block>
DECOMPOSE_FN void count_pairs(const Work& w, Block& block)
{
    for_all(block, w.edges, [&](bool has, u64 at) {
        if (has) add(w.in_offsets + static_cast<u32>(w.pairs[at]) + 1, u64{1});
    });
}

template <class Block>
DECOMPOSE_FN void scatter_pairs(const Work& w, Block& block)
{
    for_all(block, w.edges, [&](bool has, u64 at) {
        if (!has) return;
        const u64 pair = w.pairs[at];
        w.sources[add(w.in_offsets + static_cast<u32>(pair) + 1, u64{1})] = static_cast<u32>(pair >> 32);
    });
}

// ---- properties of components

DECOMPOSE_FN void mark_component(const Work& w, u32 component, u32 kind)
{
    if (!(load(w.kinds + component) & kind)) bit_or(w.kinds + component, kind);
}

template <class Block>
DECOMPOSE_FN void mark_components(const Work& w, Block& block)
{
    const auto mark = [&](Way, u32 source, u64, u64 edge) {
        if (w.label[w.targets[edge]] == w.label[source]) mark_component(w, w.label[source], has_inner);
    };
    for_all(block, w.states, [&](bool has, u64 at) {
        const u32 state = static_cast<u32>(at);
        if (has && load(w.kinds + state) & is_target) mark_component(w, w.label[state], has_target);
        for_edges(w, block, has, state, 0, out, mark);
    });
    finish_pieces(w, block, mark);
}

// ---- shortest paths

// Works as `take_levels`, but strictly level by level: no block keeps the states that it finds, and the pieces that were put off
// in a level are taken before the next level begins.
template <class Block, class Visit, class Body>
DECOMPOSE_FN void take_levels_in_order(const Work& w, Block& block, Visit visit, Body body)
{
    const bool is_first = block.index() == 0 && block.thread() == 0;
    u64 step = block.next;
    const u64 most_levels = load(&w.progress->level[step % 3].done) + w.most_levels;
    while (true) {
        block.sync();  // all threads have read the previous level in shared memory
        // No block changes the fields `count` and `done` of this level before all blocks have met again.
        const Level level = read_level(w, block, step);
        if (level.count == 0 || level.done >= most_levels) break;
        // All blocks have read the previous level.
        if (is_first) clear_level(w, step + 2);
        block.next = step + 1;
        const u64 parts = level.count <= w.narrow ? 1 : block.count();
        const auto visit_queued = [&](bool has, u64 at) { visit(has, has ? load(w.queue[step % 2] + at) : 0); };
        if (block.index() < parts) for_all_of(block, block.index(), parts, level.count, u64{block.threads()}, visit_queued);
        if (is_first) store(&w.progress->level[(step + 1) % 3].done, level.done + 1);
        finish_pieces(w, block, body);
        ++step;
    }
    if (is_first) {
        clear_level(w, step + 2);
        store(&w.progress->step, step - 1);
    }
}

// Searches level by level from the state in the queue, within its component. If `bit` is set, the goal is any target, else the
// first state itself. The state found becomes the pivot, which must be all ones before. `first` gets the predecessor of each
// state that was reached, and must be `none` before.
template <class Block>
DECOMPOSE_FN void find_path(const Work& w, Block& block)
{
    const auto is_found = [&] { return load(&w.progress->pivot) != ~u64{0}; };
    const auto reach = [&](Way, u32 source, u64, u64 edge) {
        const u32 target = w.targets[edge];
        if (w.label[target] != w.label[source] || load(w.first + target) != none) return;
        if (compare_and_swap(w.first + target, none, source) != none) return;
        // All goals in this level are equally near, so any of them may win.
        if (w.bit ? (w.kinds[target] & is_target) != 0 : target == w.from) store(&w.progress->pivot, u64{target});
        else append_for_all(w, block.next, target);
    };
    const auto visit = [&](bool has, u32 state) { for_edges(w, block, has && !is_found(), state, 0, out, reach); };
    take_levels_in_order(w, block, visit, reach);
}

// Writes the path to `second`, backwards from its end, without its first state. `live` gets the number of states written.
template <class Block>
DECOMPOSE_FN void follow_path(const Work& w, Block& block)
{
    if (block.index() != 0 || block.thread() != 0) return;
    u64 count = 0;
    u32 state = static_cast<u32>(w.progress->pivot);
    do {
        w.second[count++] = state;
        state = w.first[state];
    } while (state != w.from);
    w.progress->live = count;
}

}  // namespace decompose
