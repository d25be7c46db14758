// The model checker's kernels (examples/explore/search/src/gpu, unchanged) on the simulated GPU, for a graph. Kernels of one lane
// do the host's work between them.
//
// This file is compiled once for each kind of search: a system without an automaton; the same in an indexed table whose rows are
// the order; a product; and one of several ranks that search a product. The macros GRAPH_MOVES, EXPLORE_BY_ROWS and EXPLORE_RANKS
// select the kind. GRAPH_NAME is the name of the structure that the file defines.
//
// partition.cpp simulates how the library sorts a rank's offers by owner.
#ifndef EXPLORE_BY_ROWS
#define EXPLORE_BY_ROWS 0
#endif
#define WARPSET_INDEXED EXPLORE_BY_ROWS
// References of 8 bytes in every list. Narrow ones and marks are tested on the simulated device.
#define EXPLORE_WIDE_LIST 1
#define WARPSET_TREE 0
#define WARPSET_WIDTH 2
#define WARPSET_SLOT_WORDS 2
#define WARPSET_KEY_BITS 0
#if EXPLORE_BY_ROWS
#define WARPSET_CHUNK_BYTES 8
#define WARPSET_LINE_BYTES 64
#define WARPSET_SLOT_BITS 32
#else
#define WARPSET_CHUNK_BYTES 16
#define WARPSET_LINE_BYTES 32
#define WARPSET_SLOT_BITS 0
#endif
#define WARPSET_LANES 0
#define WARPSET_PAIRING 0
#define WARPSET_WORKSPACE 0

// The linker merges inline functions of the same name, so each file has its own namespace, and its own C names for kernels.
#define explore GRAPH_NAMED(explore)
#define search_levels GRAPH_NAMED(search_levels)
#define read_states GRAPH_NAMED(read_states)
#define describe GRAPH_NAMED(describe)
#define begin_residue GRAPH_NAMED(begin_residue)
#define seed_reset GRAPH_NAMED(seed_reset)
#define seed_elimination GRAPH_NAMED(seed_elimination)
#define tally_residue GRAPH_NAMED(tally_residue)
#define sweep_levels GRAPH_NAMED(sweep_levels)
#define list_residue GRAPH_NAMED(list_residue)
#define find_first GRAPH_NAMED(find_first)
#define read_members GRAPH_NAMED(read_members)
#define count_steps GRAPH_NAMED(count_steps)
#define expand_states GRAPH_NAMED(expand_states)
#define list_states GRAPH_NAMED(list_states)
#define find_starts GRAPH_NAMED(find_starts)
#define read_listed GRAPH_NAMED(read_listed)
#define list_references GRAPH_NAMED(list_references)
#define mark_listed GRAPH_NAMED(mark_listed)
#define mark_references GRAPH_NAMED(mark_references)
#define take_marked GRAPH_NAMED(take_marked)

#include "graph.h"
#include "script.h"

#include "registers.cuh"
#include "explore.cu"
#include "residue.cuh"
#include "residue.cu"

namespace {

using namespace explore;

// Mirrored by `Argument` in src/search/kernels.rs.
struct Argument {
    Views view;
    const u32* tables;
    const u32* initial;
    u64* order;
    u64* starts;
    warpset::BatchCounts* counts;
    SearchState* search;
    explore::Limits limits;
    u64 slots;
    Flags* flags;
    u64* queue;
    const u32* locations;
    Sweep* sweep;
    u64 most;
    u64 count;  // number of initial states, one after another, of a rank
    u32* offers;
    const u64* listed;  // `order`; if null, all slots are looked at
    Sweep* runs;  // sweeps of the list of steps, and of the way back
    Trail trail;
    u32* kinds;
    const u32* labels;  // labels of members
    const u32* marks;
    u64* first;  // result of `find_first`
    u32* members;  // all members; input of `read_members`
};

const Argument& as_argument(const void* argument) { return *static_cast<const Argument*>(argument); }
#if EXPLORE_BY_ROWS
warpset::View view_of(const Argument& argument) { return argument.view.indexed; }
// In this kind of search, `order` holds parents instead of references, and `starts` holds the bits above the low 32 bits of
// parents, if they are kept, instead of the beginnings of levels.
States states_of(const Argument& argument)
{
    return {reinterpret_cast<u32*>(argument.order), reinterpret_cast<u8*>(argument.starts), nullptr, nullptr};
}
#else
warpset::View view_of(const Argument& argument) { return argument.view.tree.roots; }
States states_of(const Argument& argument) { return {argument.order, nullptr, argument.starts, nullptr}; }
#endif

#if EXPLORE_RANKS
// Puts the initial states of a level, as gpu/rank.rs does. Their references have tags, as those that the library writes.
void begin(const void* of)
{
    const Argument& argument = as_argument(of);
    for (u64 at = 0; at < argument.count; ++at) {
        const warpset::WordVector state{argument.initial + at * state_words};
        const u64 tag = 5ull << warpset::reference_slot_bits;
        argument.order[at] = warpset::table(view_of(argument)).find_or_put(state).reference | tag;
    }
    SearchState& search = *argument.search;
    search.last = argument.count;
    search.levels = 1;
    search.found = search.found_level = search.faulty = no_reference;
    count_steps(&search.most_steps);
}

void search(const void* of)
{
    const Argument& argument = as_argument(of);
    expand_states(view_of(argument), argument.tables, states_of(argument), argument.offers, argument.search, argument.limits);
}
#else

// Puts the initial state, as gpu/mod.rs does.
void begin(const void* of)
{
    const Argument& argument = as_argument(of);
    const warpset::Found found = warpset::table(view_of(argument)).find_or_put(warpset::WordVector{argument.initial});
#if EXPLORE_BY_ROWS
    states_of(argument).set_parent(found.reference, found.reference);
    argument.counts->hits = 1;
#else
    argument.order[0] = found.reference;
    argument.counts->new_references = 1;
#endif
    SearchState& search = *argument.search;
    search.last = search.levels = search.widest = search.size = search.listed = 1;
    search.tile = Warp::size;
    search.found = search.found_level = search.faulty = no_reference;
}

void search(const void* of)
{
    const Argument& argument = as_argument(of);
    search_levels(view_of(argument), argument.tables, states_of(argument), argument.counts, argument.search, argument.limits);
}
#endif

// Number of states in the list, or number of slots.
u64 listed(const Argument& argument)
{
    return argument.listed != nullptr ? load_relaxed(&argument.counts->new_references) : argument.slots;
}

void begin_passes(const void* of)
{
    const Argument& argument = as_argument(of);
    begin_residue(view_of(argument), argument.listed, listed(argument), argument.flags, argument.locations, argument.sweep);
}

// Resets the counters between passes, except the counters of all states.
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
    seed_reset(argument.listed, listed(argument), argument.flags, argument.queue, argument.sweep);
}

void seed_second(const void* of)
{
    const Argument& argument = as_argument(of);
    seed_elimination(argument.listed, listed(argument), argument.flags, argument.queue, argument.sweep);
}

void seeded(const void* of)
{
    Sweep& sweep = *as_argument(of).sweep;
    sweep.last = sweep.appended;
}

template <unsigned task>
void sweep(const void* of)
{
    const Argument& argument = as_argument(of);
    if (load_relaxed(&argument.sweep->last) == 0) return;  // the host starts no pass then
    sweep_levels(view_of(argument), argument.tables, argument.flags, argument.queue, argument.locations, argument.sweep,
                 static_cast<unsigned>(argument.most), task, ~0ull, {});
}

void tally(const void* of)
{
    const Argument& argument = as_argument(of);
    tally_residue(argument.listed, listed(argument), argument.flags, static_cast<unsigned>(argument.most), argument.sweep);
}

// Does the work of gpu/lasso.rs for a run.
void list(const void* of)
{
    const Argument& argument = as_argument(of);
    list_residue(argument.listed, listed(argument), argument.flags, argument.queue, argument.runs, argument.trail.numbers,
                 argument.kinds);
}

void listed_members(const void* of)
{
    Sweep& sweep = *as_argument(of).runs;
    sweep.last = sweep.appended;
}

void list_steps(const void* of)
{
    const Argument& argument = as_argument(of);
    if (load_relaxed(&argument.runs->last) == 0) return;  // the host starts no pass then
    sweep_levels(view_of(argument), argument.tables, argument.flags, argument.queue, argument.locations, argument.runs,
                 static_cast<unsigned>(argument.most), lists_steps, ~0ull, argument.trail);
}

void read(const void* of)
{
    const Argument& argument = as_argument(of);
    const u64 count = load_relaxed(&argument.runs->appended);
    read_members(view_of(argument), argument.queue, argument.labels, count, argument.members);
}

void find(const void* of)
{
    const Argument& argument = as_argument(of);
    find_first(argument.order, load_relaxed(&argument.counts->new_references), argument.flags, argument.trail.numbers,
               argument.labels, argument.marks, 6, argument.first);
}

// Begins the search for the way to the state that was found last.
void begin_way(const void* of)
{
    const Argument& argument = as_argument(of);
    Sweep& sweep = argument.runs[1];
    const u64 level = argument.search->levels - 1;
    for (u64 at = 0; at < level; ++at) argument.trail.places[at] = no_reference;
    if (level < 2) return;
    const u64 last = argument.order[argument.counts->new_references - 1];
    warpset::table(view_of(argument)).read_words(last, 0, 1, [&](u32 word, u32 value) {
        argument.trail.path[level * state_words + word] = value;
    });
    sweep.first = sweep.next = argument.starts[level - 1];
    sweep.last = argument.starts[level];
    sweep.level = level - 1;
}

void go_back(const void* of)
{
    const Argument& argument = as_argument(of);
    if (load_relaxed(&argument.runs[1].last) == 0) return;  // the host starts no pass then
    sweep_levels(view_of(argument), argument.tables, argument.flags, argument.order, argument.locations, argument.runs + 1,
                 static_cast<unsigned>(argument.most), goes_back, ~0ull, argument.trail);
}

}  // namespace

extern "C" {
extern const struct {
    u64 argument_bytes, threads, shared_bytes, moves;
    warpset_simt_kernel *begin, *search, *begin_passes, *forget, *seed_first, *seed_second, *seeded, *sweep_first, *sweep_second,
        *tally, *list, *listed_members, *list_steps, *read, *find, *begin_way, *go_back;
} GRAPH_NAME = {sizeof(Argument), Chosen::threads, EXPLORE_SHARED_BYTES, property_moves, begin, search, begin_passes, forget,
                seed_first, seed_second, seeded, sweep<resets>, sweep<eliminates>, tally, list, listed_members, list_steps, read,
                find, begin_way, go_back};
}
