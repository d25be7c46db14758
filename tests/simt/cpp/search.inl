// The model checker's kernels on the simulated GPU (examples/explore/src/gpu, unchanged), for a graph, and what the host does
// between them, as kernels of one lane.
//
// Compiled for a system by itself, for a product, and for a rank of several that searches a product: GRAPH_MOVES and
// EXPLORE_RANKS, and GRAPH_NAME, the name of what it defines.
#define WARPSET_INDEXED 0
#define WARPSET_TREE 0
#define WARPSET_WIDTH 2
#define WARPSET_SLOT_WORDS 2
#define WARPSET_CHUNK_BYTES 16
#define WARPSET_LINE_BYTES 32
#define WARPSET_KEY_BITS 0
#define WARPSET_SLOT_BITS 0
#define WARPSET_LANES 0
#define WARPSET_PAIRING 0
#define WARPSET_WORKSPACE 0

// Inline functions of one name are one function: so each file has a namespace of its own, and C names of its own for kernels.
#define explore GRAPH_NAMED(explore)
#define search_levels GRAPH_NAMED(search_levels)
#define read_states GRAPH_NAMED(read_states)
#define describe GRAPH_NAMED(describe)
#define begin_residue GRAPH_NAMED(begin_residue)
#define seed_reset GRAPH_NAMED(seed_reset)
#define seed_elimination GRAPH_NAMED(seed_elimination)
#define tally_residue GRAPH_NAMED(tally_residue)
#define sweep_levels GRAPH_NAMED(sweep_levels)
#define count_steps GRAPH_NAMED(count_steps)
#define expand_states GRAPH_NAMED(expand_states)

#include "graph.h"
#include "script.h"

#include "explore.cu"
#include "residue.cuh"
#include "residue.cu"

namespace {

using namespace explore;

// Mirrored by `Argument` in src/search.rs.
struct Argument {
    Views view;
    const u32* tables;
    const u32* initial;
    u64* order;
    u64* starts;
    warpset::BatchCounts* counts;
    Search* search;
    explore::Limits limits;
    u64 slots;
    Flags* flags;
    u64* queue;
    const u32* locations;
    Sweep* sweep;
    u64 most;
    u64 count;     // of initial states, one after another: of a rank
    u32* offers;
};

const Argument& as_argument(const void* argument) { return *static_cast<const Argument*>(argument); }
warpset::View view_of(const Argument& argument) { return argument.view.tree.roots; }

#if EXPLORE_RANKS
// The states of a level, as gpu/rank.rs has put them: their references have tags.
void begin(const void* of)
{
    const Argument& argument = as_argument(of);
    for (u64 at = 0; at < argument.count; ++at) {
        const warpset::WordVector state{argument.initial + at * state_words};
        const u64 tag = 5ull << warpset::reference_slot_bits;
        argument.order[at] = warpset::table(view_of(argument)).find_or_put(state).reference | tag;
    }
    Search& search = *argument.search;
    search.last = argument.count;
    search.levels = 1;
    search.found = search.found_level = search.faulty = no_reference;
    count_steps(&search.most_steps);
}

void search(const void* of)
{
    const Argument& argument = as_argument(of);
    expand_states(view_of(argument), argument.tables, argument.order, argument.offers, argument.search, argument.limits);
}
#else
// The initial state, as gpu/mod.rs puts it.
void begin(const void* of)
{
    const Argument& argument = as_argument(of);
    const warpset::Found found = warpset::table(view_of(argument)).find_or_put(warpset::WordVector{argument.initial});
    argument.order[0] = found.reference;
    argument.counts->new_references = 1;
    Search& search = *argument.search;
    search.last = search.levels = search.widest = 1;
    search.tile = Warp::size;
    search.found = search.found_level = search.faulty = no_reference;
}

void search(const void* of)
{
    const Argument& argument = as_argument(of);
    search_levels(view_of(argument), argument.tables, argument.order, argument.starts, argument.counts, argument.search,
                  argument.limits);
}
#endif

void begin_passes(const void* of)
{
    const Argument& argument = as_argument(of);
    begin_residue(view_of(argument), argument.slots, argument.flags, argument.locations, argument.sweep);
}

// Between passes; what was counted of all states stays.
void forget(const void* of)
{
    Sweep& sweep = *as_argument(of).sweep;
    const u64 accepting = sweep.accepting;
    sweep = Sweep{};
    sweep.accepting = accepting;
}

void seed_first(const void* of)
{
    const Argument& argument = as_argument(of);
    seed_reset(argument.slots, argument.flags, argument.queue, argument.sweep);
}

void seed_second(const void* of)
{
    const Argument& argument = as_argument(of);
    seed_elimination(argument.slots, argument.flags, argument.queue, argument.sweep);
}

void seeded(const void* of)
{
    Sweep& sweep = *as_argument(of).sweep;
    sweep.last = sweep.appended;
}

template <unsigned counts>
void sweep(const void* of)
{
    const Argument& argument = as_argument(of);
    if (load_relaxed(&argument.sweep->last) == 0) return;  // the host starts none
    sweep_levels(view_of(argument), argument.tables, argument.flags, argument.queue, argument.locations, argument.sweep,
                 static_cast<unsigned>(argument.most), counts, ~0ull);
}

void tally(const void* of)
{
    const Argument& argument = as_argument(of);
    tally_residue(argument.slots, argument.flags, static_cast<unsigned>(argument.most), argument.sweep);
}

}  // namespace

extern "C" {
extern const struct {
    u64 argument_bytes, threads, shared_bytes, moves;
    warpset_simt_kernel *begin, *search, *begin_passes, *forget, *seed_first, *seed_second, *seeded, *sweep_first, *sweep_second,
        *tally;
} GRAPH_NAME = {sizeof(Argument), Chosen::threads, Chosen::shared_bytes + 16 * 8, property_moves, begin, search, begin_passes, forget,
                seed_first, seed_second, seeded, sweep<1>, sweep<0>, tally};
}
