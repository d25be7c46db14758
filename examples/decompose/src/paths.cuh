// The kernels that make a graph of its transitions, and find shortest paths within components: behind work.cuh.

namespace decompose {

enum Kind : u32 {
    is_target = 1,     // of a state: it is one of those that are looked for
    has_target = 2,    // of a component: it has such a state
    has_inner = 4,     // of a component: it has a transition
};

// ---- rows of pairs, as a transposed graph is made of a graph: in the place of that (`Work::backwards`)

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

// ---- what components have

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

// As `take_levels`, but in the order of levels: no block keeps what it finds, and what is put off of a level is taken before the
// next one begins.
template <class Block, class Visit, class Body>
DECOMPOSE_FN void take_levels_in_order(const Work& w, Block& block, Visit visit, Body body)
{
    const bool is_first = block.index() == 0 && block.thread() == 0;
    u64 step = block.next;
    const u64 most_levels = load(&w.progress->level[step % 3].done) + w.most_levels;
    while (true) {
        block.sync();  // what the block shares of the level before has been read
        // Nobody changes these two before all blocks have met again.
        const Level level = read_level(w, block, step);
        if (level.count == 0 || level.done >= most_levels) break;
        // All have read the level before this one.
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

// A search by levels from the state in the queue, within its component: until a state is found that is looked for if `bit` is
// set, or else the first state itself. That becomes the pivot, which is all ones before. By state, `first` is from where it was
// reached, and `none` before.
template <class Block>
DECOMPOSE_FN void find_path(const Work& w, Block& block)
{
    const auto is_found = [&] { return load(&w.progress->pivot) != ~u64{0}; };
    const auto reach = [&](Way, u32 source, u64, u64 edge) {
        const u32 target = w.targets[edge];
        if (w.label[target] != w.label[source] || load(w.first + target) != none) return;
        if (compare_and_swap(w.first + target, none, source) != none) return;
        // Any of the same level will do.
        if (w.bit ? (w.kinds[target] & is_target) != 0 : target == w.from) store(&w.progress->pivot, u64{target});
        else append_for_all(w, block.next, target);
    };
    const auto visit = [&](bool has, u32 state) { for_edges(w, block, has && !is_found(), state, 0, out, reach); };
    take_levels_in_order(w, block, visit, reach);
}

// Writes the path that was found to `second`, backwards and without the state in which it begins; `live` is how many it has.
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
