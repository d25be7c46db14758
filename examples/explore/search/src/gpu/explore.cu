// The engine on the GPU: breadth-first search, level by level, in one kernel that the host launches rarely.
//
// The model's next-state functions (codegen), the options written by gpu/program.rs and registers.cuh precede this text.
//
//   order   [ ... | this level | the next one, as it is found |       free       ]      references, 4, 5 or 8 bytes each
//                   ^ first     ^ last                         ^ counts->new_references
//
// `order` lists states in discovery order, and a level is a part of it. The host drops finished levels from its beginning when
// there is little room left. A block puts states only while `order` has room for the contents of the caches of all blocks. After
// that no block puts any more, the host makes room, and the level is repeated.
//
// When the memory has no room for such a list, waiting states are marked (gpu/marked.rs): one bit for each slot of the table says
// whether its state waits in the level, and another one whether it waits in the next level. The host lists a part of the level at
// a time (`take_marked`), and a launch expands that part.
//
// The blocks of the kernel stay for many levels. They take tiles of the level until none is left, put the remaining contents of
// their caches, and wait for each other; the last block to arrive makes the next level the current one.
//
// With EXPLORE_BY_ROWS, for an indexed table, there is no such list: a level is a range of rows, because rows are assigned in
// discovery order. Beside each row is the parent of its state, written by the thread that found the state; 0 marks a hole.
//
//   rows     [ level 0 | level 1 | ... | this level | the next one, as it is found ]     the table's own
//   parents  [ 1       | 1 1 0 1 | ... |            |                              ]     4 or 5 bytes a row
//
// So a path is a walk from state to parent. None of the table's spare rows may get a state of a later level, so rows are taken
// only after the end of the current level (`with_rows_from`).
//
// A tile has one state per thread. All threads of a block try the same choice of the same process at the same time, each from its
// own state (see codegen/mod.rs). So a warp diverges only where its states have the process in different locations, and
// reconverges to pass its successors on. One (state, process) pair per thread, as in GPUexplore, fills the GPU with fewer states,
// but then a warp runs a different function for each process.
//
// Successors go to the block's cache (warpset/block_cache.cuh), which drops duplicates. When the cache lacks room for one more
// successor of each thread, its contents go to the table. Meanwhile the states themselves are in shared memory, word by word, so
// that they occupy no registers during the search of the table.
//
// A reduced search (choosing.cuh) tries all steps of a tile twice. Between the two it chooses steps; the second time it passes on
// the chosen ones.
//
// With EXPLORE_WALKS_BACK this text gives another kernel, which goes back along the levels to the initial state.
//
// With EXPLORE_BRANCHING and EXPLORE_WALKS_BACK it has no kernel that searches: branching.cu uses the steps of states.
//
// With EXPLORE_RANKS this text gives the kernel of one rank of several, each with a table of its own on a GPU of its own. Its
// blocks also take tiles of the level, but the contents of the cache go to `offers`, rows of words in device memory, which the
// host then offers to all ranks. A block takes a tile only if `offers` has room for all successors that the tile may have. The
// kernel ends when no tile or no room is left.

#include "warpset/block_cache.cuh"

// A test without a GPU (tests/simt) defines these macros itself.
#ifndef EXPLORE_SHARED
#define EXPLORE_SHARED(type, name, count) __shared__ type name[count]
#define EXPLORE_SHARED_OF_LAUNCH(name) extern __shared__ __align__(16) u8 name[]
#endif

namespace explore {

using warpset::u64;
using warpset::u8;
using warpset::no_reference;
using Table = warpset::Table;
using Warp = warpset::platform::Warp;
using warpset::platform::add_relaxed;
using warpset::platform::fetch_add_relaxed;
using warpset::platform::load_relaxed;

static_assert(state_words == WARPSET_WIDTH, "the table is for the model's states");

// A state in shared memory. Equal words of the threads' states are adjacent. Code size does not depend on the number of words and
// elements.
template <u32 threads>
struct SharedState {
    struct Column {
        u32* top;
        EXPLORE_FN u32& operator[](u32 word) const { return top[word * threads]; }
    };
    Column words;

    template <u32 first, u32 count>
    EXPLORE_FN u32 select(u32 i) const
    {
        return words[first + i];
    }

    template <u32 first, u32 count>
    EXPLORE_FN void replace(u32 i, u32 word)
    {
        words[first + i] = word;
    }
};

// Whether successors are made in registers.
constexpr bool in_registers = state_words <= EXPLORE_REGISTERS;

// The states that violate a condition. Mirrored by `Tally` in gpu/tallies.rs.
struct Tally {
    u64 states;
    u64 before;  // states when the level began
    u64 level;   // first finished level with such a state, or no_reference
};

// State of the search, with settings of the host. Mirrored by `SearchState` in gpu/search_state.rs.
struct SearchState {
    u64 first, last;      // the level, in `order`
    u64 next;             // first state of the level that no block has taken
    u64 tile;             // states that a block takes at a time
    u64 levels;           // levels begun
    u64 widest;
    u64 size;             // states of the current level
    u64 listed;           // states of all levels that have begun
    u64 transitions;      // with multiplicity
    u64 deadlocks;
    u64 overflows;
    u64 found;            // the least state of its level that violates a check, or no_reference
    u64 found_level;      // its level, once that is finished; no_reference before
    u64 faulty;           // the least state of the level with a fault, or no_reference
    u64 going;            // 0: the kernel ends
    u64 before[3];        // transitions, deadlocks and overflows when the level began
    u64 room;             // for a rank: capacity of `offers`, in rows
    u64 crowded;          // 1: there was no room in `order`; the host sets it to 0
    u64 reserved;         // rows that are written, or reserved for tiles that blocks have taken
    u64 offered;          // rows that are written, from the first on
    u64 most_steps;       // most steps of a state
    u64 fetching, generating, caching, putting, waiting;  // clock cycles of all blocks, if measured
    u32 arrived, generation;                              // for the barrier
    u64 deadlock_level;   // first finished level with a deadlock, or no_reference
    Tally* tallies;       // by condition
};

struct Limits {
    u64 states;         // number of states from which on no level begins
    u64 levels;         // number of levels after which no level begins; the last one is not expanded
    u64 nanoseconds;    // time after which no level begins
    u64 room;           // number of states in `order` up to which blocks put more
    u32 deadlocks;      // 1: a deadlock is a violation
    u32 keep_going;     // 1: only faults end the search
};

// Takes all steps of a state.
struct AllSteps {
    static constexpr u32 words = 0;
    static constexpr bool in_shared = false, is_made = true;

    EXPLORE_FN AllSteps(const u32*, u32*) {}
    template <class State>
    EXPLORE_FN bool may_take(u32, u32, const Cursor&, const State&) const
    {
        return true;
    }
    template <class State>
    EXPLORE_FN bool takes(bool steps, u32, u32, const Cursor&, const State&) const
    {
        return steps;
    }
    template <class State>
    EXPLORE_FN bool make(const State&, bool) const
    {
        return false;
    }
};

#ifdef EXPLORE_REDUCES
static_assert(property_moves == 0, "a product is not reduced");
#else
using Selection = AllSteps;
#endif

// Threads of a block and rows of its cache: as many as leave shared memory for other blocks on the multiprocessor.
template <u32 threads_>
struct Block {
    static constexpr u32 threads = threads_;
    static constexpr u32 rows = threads * EXPLORE_ROWS_A_THREAD;
    using Cache = warpset::BlockCache<Table, rows, (EXPLORE_BY_ROWS || Table::is_incremental)>;
    static constexpr u32 states_at = (Cache::bytes(threads / Warp::size) + 15) / 16 * 16;
    static constexpr u32 marks_at = states_at + threads * state_words * 4 * (in_registers ? 1 : 2);
    static constexpr u32 shared_bytes = marks_at + (Selection::in_shared ? threads * Selection::words * 4 : 0);
};

template <bool condition, class A, class B>
using Choose = typename warpset::Choose<condition, A, B>::Type;

#ifdef EXPLORE_THREADS
using Chosen = Block<EXPLORE_THREADS>;
#else
using Chosen = Choose<Block<256>::shared_bytes <= 72 * 1024, Block<256>,
                      Choose<Block<128>::shared_bytes <= 100 * 1024, Block<128>,
                             Choose<Block<64>::shared_bytes <= 200 * 1024, Block<64>, Block<32>>>>;
#endif
using Cache = Chosen::Cache;
using SharedStates = SharedState<Chosen::threads>;
using State = Choose<in_registers, RegisterState, SharedStates>;

// Clock of the block's first thread: adds the cycles since the last lap.
struct Stopwatch {
    long long since = 0;

    EXPLORE_FN void start()
    {
        if constexpr (EXPLORE_TIMED) since = clock64();
    }
    EXPLORE_FN void lap(u64* sum)
    {
        if constexpr (EXPLORE_TIMED) {
            const long long now = clock64();
            if (threadIdx.x == 0) add_relaxed(sum, now - since);
            since = now;
        }
    }
};

// The words of a stored state.
template <class BucketTable>
EXPLORE_FN RegisterState fetch(const BucketTable& table, u64 reference)
{
    RegisterState state;
    EXPLORE_UNROLL
    for (u32 word = 0; word < state_words; ++word) state.words[word] = table.word(reference, word);
    return state;
}

// Words of a state that is stored as a key. The key is decoded once.
template <u32 slot_bits, u32 key_bits>
EXPLORE_FN RegisterState fetch(const warpset::CompactTable<slot_bits, key_bits>& table, u64 reference)
{
    RegisterState state;
    u64 key = 0;
    table.read_chunk(reference, key);
    EXPLORE_UNROLL
    for (u32 word = 0; word < state_words; ++word) state.words[word] = static_cast<u32>(key >> word % 2 * 32);
    return state;
}

// Reads a tree level by level; all nodes of a level are requested at once.
template <u32 length, class Nodes>
EXPLORE_FN void read_halves(const Nodes& nodes, u64 root, u32* halves)
{
    if constexpr (length == 2) {
        halves[0] = static_cast<u32>(root);
        halves[1] = static_cast<u32>(root >> 32);
    } else {
        constexpr u32 pairs = length / 2;
        u32 above[(length + 1) / 2];
        read_halves<(length + 1) / 2>(nodes, root, above);
        u64 node[pairs];
        EXPLORE_UNROLL
        for (u32 i = 0; i < pairs; ++i) node[i] = nodes.load(above[i]);
        EXPLORE_UNROLL
        for (u32 i = 0; i < pairs; ++i) {
            halves[2 * i] = static_cast<u32>(node[i]);
            halves[2 * i + 1] = static_cast<u32>(node[i] >> 32);
        }
        if (length % 2 == 1) halves[length - 1] = above[length / 2];
    }
}

template <class Roots, u32 width>
EXPLORE_FN RegisterState fetch(const warpset::TreeTable<Roots, width>& table, u64 reference)
{
    RegisterState state;
    u64 root = 0;
    table.read_root(reference, root);
    read_halves<width>(table.nodes, root, state.words);
    return state;
}

// Sets `*least` to `reference` if that is no_reference, or if `state`, which has this reference, is less than the state there:
// word by word, so that threads, blocks and tables do not matter.
template <class State>
EXPLORE_FN void keep_least(const Table& table, u64* least, u64 reference, const State& state)
{
    // Relaxed: an earlier level or launch has stored the states, and the last value is read when the level or the kernel has
    // ended.
    u64 before = load_relaxed(least);
    while (true) {
        bool is_less = before == no_reference, is_known = is_less;
        if (!is_known)
            table.read_words(before, 0, 1, [&](u32 word, u32 value) {
                const u32 own = state.words[word];
                if (!is_known) is_less = own < value;
                is_known |= own != value;
            });
        if (!is_less) return;
        const u64 found = warpset::platform::compare_and_swap_relaxed(least, before, reference);
        if (found == before) return;
        before = found;
    }
}

// A successor as the cache takes it: its words, and which of them have changed.
template <class State>
struct Successor {
    const State& from;
    const State& to;

    EXPLORE_FN u32 word(u32 index) const { return to.words[index]; }
    EXPLORE_FN u32 mask(u32 part) const
    {
        u32 bits = 0;
        EXPLORE_UNROLL
        for (u32 bit = 0; bit < 32; ++bit) {
            const u32 at = part * 32 + bit;
            if (at < state_words && from.words[at] != to.words[at]) bits |= 1u << bit;
        }
        return bits;
    }
    EXPLORE_FN bool differs() const
    {
        bool differs = false;
        EXPLORE_UNROLL
        for (u32 word = 0; word < state_words; ++word) differs |= from.words[word] != to.words[word];
        return differs;
    }
};

template <class From, class To>
EXPLORE_FN void copy(const From& from, To& to)
{
    EXPLORE_UNROLL
    for (u32 word = 0; word < state_words; ++word) to.words[word] = from.words[word];
}

// The copy behind a thread's state in shared memory; it exists unless successors are made in registers.
EXPLORE_FN SharedStates copy_of(const SharedStates& state) { return {{state.words.top + state_words * Chosen::threads}}; }

EXPLORE_FN void set_state(const RegisterState& fetched, SharedStates& state)
{
    copy(fetched, state);
    if constexpr (!in_registers) {
        SharedStates other = copy_of(state);
        copy(fetched, other);
    }
}

// Maximum number of moves of the property's automaton with which one step is joined at a time. Without a property 1, for the step
// alone.
constexpr u32 moves_at_once = property_moves == 0                      ? 1
                              : property_moves < EXPLORE_ROWS_A_THREAD ? property_moves
                                                                       : EXPLORE_ROWS_A_THREAD;

// All units that a state can try: the processes and, for a product, staying in place if no process can move.
constexpr u32 all_units = units + (property_moves > 0);

EXPLORE_FN u32 all_choices(u32 unit) { return unit < units ? choices(unit) : 1; }

// The automaton's part in the steps of a state.
struct Joint {
    Numbers<property_moves> moves;
    i32 location = 0;
    u32 system_steps = 0;  // steps of the processes so far

    template <class State>
    EXPLORE_FN void start(const u32* tables, const State& state, Notes& notes)
    {
        location = property_location(state);
        find_moves(tables, state, moves, notes);
    }

    // Passes on the successor joined with each of the moves from `first` on, at most `moves_at_once`; without a property, the
    // successor alone. Returns the number of successors.
    template <class From, class To, class Give>
    EXPLORE_FN u32 give_all(bool steps, const From& from, To& to, u32 first, Give& give) const
    {
        if constexpr (property_moves == 0) {
            give(steps, from, to);
            return steps;
        } else {
            u32 given = 0;
            EXPLORE_UNROLL
            for (u32 at = 0; at < moves_at_once; ++at) {
                const u32 move = first + at;
                const bool takes = steps && move < property_moves && moves.has(move);
                if (takes) move_property(location, move, to);
                give(takes, from, to);
                given += takes;
            }
            return given;
        }
    }
};

// Whether a unit is a component of a network.
EXPLORE_FN bool is_component(u32 unit) { return first_component < units && unit >= first_component && unit < units; }

// Tries one choice in the thread's state, with moves from `first_move` on, and passes the successors that `selection` takes to
// `give`. Returns their number. After a fault there are no successors. All threads of the block must call it.
template <class Selection, class Give>
EXPLORE_FN u32 try_choice(u32 unit, u32 choice, u32 first_move, Cursor& cursor, bool has_state, SharedStates& state, Joint& joint,
                          Notes& notes, Selection& selection, Give& give)
{
    const bool may_step = has_state && notes.fault == 0 && selection.may_take(unit, choice, cursor, state);
    const bool stays = property_moves > 0 && unit == units && joint.system_steps == 0;
    // All moves are joined with the same step. The cursor advances with the last moves, and overflows count with the first ones.
    Cursor next = cursor;
    const u32 overflows = notes.overflows;
    bool steps;
    u32 given;
    if constexpr (in_registers) {
        RegisterState from;
        copy(state, from);
        RegisterState to = from;
        steps = may_step && (stays || (unit < units && step(unit, choice, next, from, to, notes))) && notes.fault == 0;
        given = joint.give_all(selection.takes(steps, unit, choice, next, from), from, to, first_move, give);
    } else {
        // The step changes the copy beside the state, which is then restored from the state.
        SharedStates to = copy_of(state);
        const bool changes = may_step && (stays || (unit < units && step(unit, choice, next, state, to, notes)));
        steps = changes && notes.fault == 0;
        given = joint.give_all(selection.takes(steps, unit, choice, next, state), state, to, first_move, give);
        if (changes) copy(state, to);
    }
    if (first_move == 0)
        joint.system_steps += steps && unit < units;
    else
        notes.overflows = overflows;
    if (first_move + moves_at_once >= property_moves) cursor = next;
    return given;
}

// Tries everything that the thread's state can try. All threads of the warp must call it.
template <class Give>
EXPLORE_FN void try_all(const u32* tables, bool has_state, SharedStates& state, Joint& joint, Notes& notes, Give& give)
{
    Cursor cursor(tables);
    AllSteps selection(tables, nullptr);
#pragma unroll 1
    for (u32 unit = 0; unit < all_units; ++unit)
#pragma unroll 1
        for (u32 choice = 0; choice < all_choices(unit); ++choice) {
            if (is_component(unit) && choice != 0 && !Warp::any(cursor.more())) break;
#pragma unroll 1
            for (u32 move = 0; move == 0 || move < property_moves; move += moves_at_once)
                try_choice(unit, choice, move, cursor, has_state, state, joint, notes, selection, give);
        }
}

// A barrier of all blocks, which are resident together. The last block to arrive calls `act` before the others continue. One
// thread of each block calls it. Fences and relaxed accesses at device scope: everything that a block did before it arrives
// happens before `act`, and `act` happens before any block continues.
template <class Act>
EXPLORE_FN void meet(u32* arrived, u32* generation_now, Act act)
{
    const u32 generation = load_relaxed(generation_now);
    __threadfence();
    if (atomicAdd(arrived, 1) + 1 == gridDim.x) {
        __threadfence();
        act();
        // Atomic: a plain store would race with the increments of the other blocks. Their fences come before their increments,
        // and nothing else orders the increments.
        atomicExch(arrived, 0);
        __threadfence();
        atomicExch(generation_now, generation + 1);
    } else {
        while (load_relaxed(generation_now) == generation) __nanosleep(20);
    }
    __threadfence();
}

EXPLORE_FN u64 nanoseconds()
{
#ifdef EXPLORE_NANOSECONDS
    return EXPLORE_NANOSECONDS;
#else
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#endif
}

#if EXPLORE_BY_ROWS

// The states of all levels as rows of an indexed table, with their parents.
struct States {
    u32* parents;  // by row: low 32 bits of the parent's row + 1; the initial state is its own parent; 0: the row has no state
    u8* above;     // the upper bits; null while they cannot be needed
    u64* unused[2];

    EXPLORE_FN u64 parent(u64 row) const
    {
        u64 next = load_relaxed(parents + row);
        // The reader has met the writer at the end of a level, or the value was written by an earlier launch.
        if (above != nullptr) next |= u64{above[row]} << 32;
        return next - 1;
    }
    EXPLORE_FN u64 at(u64 row) const { return parent(row) != no_reference ? row : no_reference; }
    // Called only by the thread that has found the state in this row.
    EXPLORE_FN void set_parent(u64 row, u64 parent) const
    {
        warpset::platform::store_relaxed(parents + row, static_cast<u32>(parent + 1));
        if (above != nullptr) above[row] = static_cast<u8>((parent + 1) >> 32);
    }
    EXPLORE_FN void begin_level(u64, u64) const {}

    // Ends of levels, and numbers of states found.
    EXPLORE_FN static u64 end(const Table& table, const warpset::BatchCounts*) { return table.rows.count(); }
    EXPLORE_FN static u64 count(const warpset::BatchCounts* counts) { return load_relaxed(&counts->hits); }
};

#else

// References of 8 bytes for lists that the library or other kernels read; else of 4 bytes, with the upper bits apart.
#if EXPLORE_WIDE_LIST || WARPSET_INDEXED
constexpr bool has_wide_list = true;
#else
constexpr bool has_wide_list = false;
#endif

struct States {
    Choose<has_wide_list, u64, u32>* order;
    u8* above;    // upper bits of the references; null while they cannot be needed
    u64* starts;  // starts of levels in `order`, written when a level begins; or null
    u32* marks;   // a bit for each slot: the states of the next level are marked there, not listed; or null

    // Removes the tag of a reference that the library has written into a list of 8 bytes.
    EXPLORE_FN u64 at(u64 place) const
    {
        u64 reference = load_relaxed(order + place);
        if constexpr (has_wide_list) return reference & warpset::slot_mask;
        // The reader has met the writer at the end of a level, or the value was written by an earlier launch.
        if (above != nullptr) reference |= u64{above[place]} << 32;
        return reference;
    }
    // Each place has one writer.
    EXPLORE_FN void set(u64 place, u64 reference) const
    {
        if constexpr (has_wide_list) {
            order[place] = reference;
        } else {
            order[place] = static_cast<u32>(reference);
            if (above != nullptr) above[place] = static_cast<u8>(reference >> 32);
        }
    }

    EXPLORE_FN bool are_marked() const { return !has_wide_list && marks != nullptr; }

    // Relaxed: read by later launches only.
    EXPLORE_FN void mark(u64 reference) const { atomicOr(marks + reference / 32, 1u << reference % 32); }

    // A list for `find_or_put_distinct`.
    EXPLORE_FN static bool is_wanted() { return true; }
    EXPLORE_FN void write(u64 place, u64 reference) const
    {
        if (are_marked())
            mark(reference);
        else
            set(place, reference);
    }
    EXPLORE_FN void begin_level(u64 level, u64 first) const
    {
        if (starts != nullptr) starts[level] = first;
    }

    EXPLORE_FN static u64 end(const Table&, const warpset::BatchCounts* counts) { return load_relaxed(&counts->new_references); }
    EXPLORE_FN static u64 count(const warpset::BatchCounts* counts) { return load_relaxed(&counts->new_references); }
};

#endif

#if EXPLORE_WALKS_BACK

// Compares successors with the words of a wanted state.
struct Comparison {
    const u32* wanted;
    bool found;

    template <class State>
    EXPLORE_FN void operator()(bool steps, const State&, const State& to)
    {
        bool equal = steps;
        EXPLORE_UNROLL
        for (u32 word = 0; word < state_words; ++word) equal = equal && to.words[word] == wanted[word];
        found |= equal;
    }
};

#else

// Passes the successors of the threads of a warp to the cache.
struct HandOver {
    Cache& cache;
    u64 parent;

    template <class State>
    EXPLORE_FN void operator()(bool steps, const State& from, const State& to)
    {
        __syncwarp();
        const Successor<State> successor{from, to};
        // A step that changes nothing leads to a state that is stored already.
        const bool gives = steps && successor.differs();
        const u32 givers = Warp::ballot(gives);
        if (givers == 0) return;
        const u32 leader = warpset::platform::lowest_bit(givers);
        u32 row = 0;
        if (Warp::lane() == leader) row = cache.take(warpset::platform::population_count(givers));
        row = Warp::shuffle(row, leader) + warpset::platform::population_count(givers & ((1u << Warp::lane()) - 1));
        if (gives) cache.write(row, successor, parent);
    }
};

// State that the threads of a block share.
struct BlockState {
    const Table& table;
    const u32* tables;  // tables of the model's network
    Cache cache;
    SharedStates state;  // state of this thread
    States states;
    warpset::BatchCounts* counts;  // null if the cache goes to `offers`
    SearchState* search;
    Limits limits;
    Stopwatch watch;
    u32* offers = nullptr;
    u32* marks = nullptr;  // of a reduced search
    u64 kept = 0;  // valid in the block's first thread: rows of `offers` reserved for the block and not written

    // Reserves room in `offers` for the successors in the cache and those of `states` more states. One thread of the block calls
    // it.
    EXPLORE_FN bool reserve(u64 states)
    {
        const u64 needed = Chosen::rows + states * search->most_steps;
        if (kept >= needed) return true;
        const u64 more = needed - kept;
        // Relaxed: only the number of reserved rows matters; the rows are written by their numbers in `offered`.
        if (fetch_add_relaxed(&search->reserved, more) + more > search->room) {
            fetch_add_relaxed(&search->reserved, 0 - more);
            return false;
        }
        kept += more;
        return true;
    }

    // Puts the remaining `left` successors of the cache into the table, or into `offers`. All threads of the block must call it.
    EXPLORE_FN void put(u32 left)
    {
#if EXPLORE_RANKS
        EXPLORE_SHARED(u64, first, 1);
        if (threadIdx.x == 0) {
            first[0] = left == 0 ? 0 : fetch_add_relaxed(&search->offered, left);
            kept -= left;
        }
        __syncthreads();
        u32* rows = offers + first[0] * state_words;
        cache.give_distinct(left, [rows](u32 row, u32 word, u32 value) { rows[u64{row} * state_words + word] = value; });
#elif EXPLORE_BY_ROWS
        // States found now belong to the next level, so their rows must be behind the end of this level.
        const Table behind = table.with_rows_from(load_relaxed(&search->last));
        const States all = states;
        cache.find_or_put_distinct(behind, left, warpset::ReferenceList{nullptr}, counts,
                                   [all](u64 parent, u64 row) { all.set_parent(row, parent); });
#else
        EXPLORE_SHARED(bool, fits, 1);
        // Adds 0 to read the latest number. So after the number has exceeded `room`, each block of the GPU puts the contents of
        // at most one cache more, and `room` allows for these. A load might read an older number. Relaxed: the number alone
        // decides; `order` is read after the barrier of the level.
        if (threadIdx.x == 0) fits[0] = fetch_add_relaxed(&counts->new_references, 0) <= limits.room;
        __syncthreads();
        if (fits[0]) {
            cache.find_or_put_distinct(table, left, states, counts);
            return;
        }
        // Relaxed: read by `is_full`, where it may be seen late, and by the host when the kernel has ended.
        if (threadIdx.x == 0) warpset::platform::store_relaxed(&search->crowded, u64{1});
        cache.clear();
#endif
    }

    // Takes the next tile of the level; it is empty if none is left. All threads of the block must call it.
    EXPLORE_FN void take_tile(u64& first, u64& last)
    {
        EXPLORE_SHARED(u64, tile, 2);
        __syncthreads();  // the tile before has been read
        if (threadIdx.x == 0) {
            const u64 size = load_relaxed(&search->tile), end = load_relaxed(&search->last);
            // Relaxed: tiles only have to differ. The barrier before the level has ordered their contents.
            const bool takes = EXPLORE_RANKS ? reserve(size) : !is_full();
            const u64 begin = takes ? fetch_add_relaxed(&search->next, size) : end;
            tile[0] = begin;
            tile[1] = begin + size < end ? begin + size : end;
        }
        __syncthreads();
        first = tile[0];
        last = tile[1];
    }

    // Whether the level must be repeated, with more room.
    EXPLORE_FN bool is_full() const { return load_relaxed(&counts->full) != 0 || load_relaxed(&search->crowded) != 0; }

    // Takes all steps of the states first .. last of the order. If the range is empty, puts the remaining contents of the cache.
    // All threads of the block must call it.
    EXPLORE_FN void expand(u64 first, u64 last)
    {
        const u64 reference = first + threadIdx.x < last ? states.at(first + threadIdx.x) : no_reference;
        const bool has_state = reference != no_reference;
        Notes notes;
        Numbers<conditions> failing;
        if (has_state) {
            set_state(fetch(table, reference), state);
            if constexpr (conditions > 0) failing = violated(tables, state, notes);
        }
        Joint joint;
        if (has_state) joint.start(tables, state, notes);
        HandOver hand_over{cache, reference};
        watch.lap(&search->fetching);
        u32 free_rows = 0, steps = 0;  // free_rows: lower bound for the cache, equal in all threads
        u32 unit = 0, choice = 0, move = 0;
        constexpr u32 wanted_rows = Chosen::threads * moves_at_once;
        Cursor cursor(tables);
        Selection selection(tables, marks);
        u32 overflows = 0;
#pragma unroll 1
        while (true) {
            // Equal in all threads: a component of a network is finished when it is finished in all their states.
            const bool may_be_done = is_component(unit) && choice != 0 && move == 0;
            if (choice == all_choices(unit) || (may_be_done && !__syncthreads_or(cursor.more()))) {
                choice = 0;
                if (++unit < all_units) continue;
                if (!selection.make(state, has_state && notes.fault == 0)) break;
                // Tries all steps again, to pass on the chosen ones. Their overflows are noted again too, so the sum is taken
                // now.
                unit = 0;
                overflows = notes.overflows;
                continue;
            }
            const bool may_give = selection.is_made || first >= last;
            if (may_give && free_rows < wanted_rows) free_rows = first < last ? cache.free_rows() : 0;
            if (may_give && free_rows < wanted_rows) {  // the only call of put, because its code is long
                watch.lap(&search->generating);
                const u32 left = cache.drop_duplicates();
                watch.lap(&search->caching);
                put(left);
                watch.lap(&search->putting);
                free_rows = Chosen::rows;
            }
            if (first >= last) return;
            if (may_give) free_rows -= wanted_rows;
            steps += try_choice(unit, choice, move, cursor, has_state, state, joint, notes, selection, hand_over);
            move += moves_at_once;
            if (move < property_moves) continue;
            move = 0;
            ++choice;
        }
        watch.lap(&search->generating);
        const bool is_deadlock = has_state && joint.system_steps == 0 && notes.fault == 0;
        const bool violates = !failing.is_empty() || (is_deadlock && limits.deadlocks);
        // The host asks the interpreter for the violation of the state that is kept. States of higher levels do not matter.
        if (violates && load_relaxed(&search->found_level) == no_reference) keep_least(table, &search->found, reference, state);
        if (notes.fault != 0) keep_least(table, &search->faulty, reference, state);
        // Nothing else of a state with a fault counts, as on the CPU; but successors that it gave before the fault stay.
        const u32 counts_all = notes.fault == 0;
        if constexpr (Selection::words == 0) overflows = notes.overflows;
        add_up(counts_all * steps, &search->transitions);
        add_up(is_deadlock, &search->deadlocks);
        add_up(counts_all * overflows, &search->overflows);
        if constexpr (conditions > 0)
            if (Warp::any(!failing.is_empty())) count_failing(failing, counts_all);
    }

    // Counts the states of a warp that violate a condition; those with a fault have `counts` 0. All threads of the warp must call
    // it.
    EXPLORE_FN void count_failing(const Numbers<conditions>& failing, u32 counts) const
    {
        Tally* const tallies = search->tallies;
        EXPLORE_UNROLL
        for (u32 word = 0; word < Numbers<conditions>::count; ++word)
            EXPLORE_NO_UNROLL
            for (u32 bit = 0; bit < 32 && word * 32 + bit < conditions; ++bit)
                add_up(counts & failing.bits[word] >> bit & 1, &tallies[word * 32 + bit].states);
    }

    EXPLORE_FN static void add_up(u32 value, u64* sum)
    {
        if (!Warp::any(value)) return;
        const u32 total = Warp::sum_up_to(value);
        if (Warp::lane() == Warp::size - 1) add_relaxed(sum, total);
    }

    // Waits until all blocks have finished the level. Returns true if another one follows. All threads must call it.
    EXPLORE_FN bool next_level(u64 started)
    {
        EXPLORE_SHARED(bool, more, 1);
        __syncthreads();
        if (threadIdx.x == 0) {
            meet(&search->arrived, &search->generation, [&] { begin_level(started); });
            more[0] = load_relaxed(&search->going) != 0;
        }
        __syncthreads();
        watch.lap(&search->waiting);
        return more[0];
    }

    // Notes which checks have their first violating states in the level that ends. Called by one thread while all blocks wait at
    // the barrier.
    EXPLORE_FN void end_tallies() const
    {
        // Relaxed: other blocks added before the barrier.
        if (search->deadlock_level == no_reference && load_relaxed(&search->deadlocks) != 0)
            search->deadlock_level = search->levels - 1;
        const bool has_found = search->found_level != no_reference || load_relaxed(&search->found) != no_reference;
        if (conditions == 0 || !has_found) return;
        EXPLORE_NO_UNROLL
        for (u32 condition = 0; condition < conditions; ++condition) {
            Tally& tally = search->tallies[condition];
            tally.before = load_relaxed(&tally.states);
            if (tally.level == no_reference && tally.before != 0) tally.level = search->levels - 1;
        }
    }

    // Called by one thread while all blocks wait at the barrier.
    EXPLORE_FN void begin_level(u64 started) const
    {
        search->going = 0;
        if (is_full()) return;
        end_tallies();
#if !EXPLORE_BY_ROWS
        if (states.are_marked()) return;  // the host lists the next part of the level
#endif
        const bool has_found = load_relaxed(&search->found) != no_reference;
        if (has_found && search->found_level == no_reference) search->found_level = search->levels - 1;
        if (load_relaxed(&search->faulty) != no_reference || (has_found && !limits.keep_going)) return;
        const u64 first = load_relaxed(&search->last), last = States::end(table, counts);
        const u64 found = States::count(counts), size = found - search->listed;
        search->size = size;
        search->listed = found;
        search->first = search->next = first;
        search->last = last;
        // Other blocks wrote these sums; at the end of the level no block uses them.
        search->before[0] = load_relaxed(&search->transitions);
        search->before[1] = load_relaxed(&search->deadlocks);
        search->before[2] = load_relaxed(&search->overflows);
        search->levels += size != 0;
        if (size > search->widest) search->widest = size;
        // Small levels are spread over all blocks.
        const u64 warps = ((last - first) / gridDim.x + Warp::size) / Warp::size;
        search->tile = (warps < Chosen::threads / Warp::size ? warps : Chosen::threads / Warp::size) * Warp::size;
        if (size != 0) states.begin_level(search->levels - 1, first);
        // The next level may be twice as wide. The host drops the levels before this one, unless that frees little room.
        const bool has_room = EXPLORE_BY_ROWS || first < last / 16 || last + 2 * size <= limits.room;
        search->going = size != 0 && has_room && found < limits.states && search->levels < limits.levels &&
                        nanoseconds() - started < limits.nanoseconds;
    }
};

#endif

}  // namespace explore

// Writes the words of the states at `references`, one after another, but none for no_reference. Any launch shape.
extern "C" __global__ void read_states(warpset::View view, const explore::u64* references, explore::u64 count, unsigned* words)
{
    using namespace explore;
    const Table table = warpset::table(view);
    const u64 stride = u64{gridDim.x} * blockDim.x;
    for (u64 at = u64{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += stride)
        if (references[at] != no_reference)
            table.read_words(references[at] & warpset::slot_mask, 0, 1,
                             [&](u32 word, u32 value) { words[at * state_words + word] = value; });
}

#if !EXPLORE_BY_ROWS

// Writes the words of the listed states first .. first + count, one after another. Any launch shape.
extern "C" __global__ void read_listed(warpset::View view, explore::States states, explore::u64 first, explore::u64 count,
                                       unsigned* words)
{
    using namespace explore;
    const Table table = warpset::table(view);
    const u64 stride = u64{gridDim.x} * blockDim.x;
    for (u64 at = u64{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += stride)
        table.read_words(states.at(first + at), 0, 1, [&](u32 word, u32 value) { words[at * state_words + word] = value; });
}

// Lists `count` references, from place `first` on, without the tags of a batch. Any launch shape.
extern "C" __global__ void list_references(explore::States states, explore::u64 first, explore::u64 count,
                                           const explore::u64* references)
{
    using namespace explore;
    const u64 stride = u64{gridDim.x} * blockDim.x;
    for (u64 at = u64{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += stride)
        states.set(first + at, references[at] & warpset::slot_mask);
}

// Marks the states of `count` references, which may have the tags of a batch. Any launch shape.
extern "C" __global__ void mark_references(explore::States states, explore::u64 count, const explore::u64* references)
{
    using namespace explore;
    const u64 stride = u64{gridDim.x} * blockDim.x;
    for (u64 at = u64{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += stride)
        states.mark(references[at] & warpset::slot_mask);
}

// Marks the listed states first .. last. Any launch shape.
extern "C" __global__ void mark_listed(explore::States states, explore::u64 first, explore::u64 last)
{
    using namespace explore;
    const u64 stride = u64{gridDim.x} * blockDim.x;
    for (u64 at = first + u64{blockIdx.x} * blockDim.x + threadIdx.x; at < last; at += stride) states.mark(states.at(at));
}

// Moves marked states, in any order, into the list from place `first` on, as long as it has room: `capacity` places, at least
// 1024. Afterwards taken[1] is their number. `taken` has two zeros before. `words`: words of the marks. Blocks of whole warps.
extern "C" __global__ void take_marked(explore::States states, explore::u64 words, explore::u64 first, explore::u64 capacity,
                                       explore::u64* taken)
{
    using namespace explore;
    const u64 stride = u64{gridDim.x} * blockDim.x;
    for (u64 base = u64{blockIdx.x} * blockDim.x + threadIdx.x - Warp::lane(); base < words; base += stride) {
        const u64 word = base + Warp::lane();
        const u32 bits = word < words ? states.marks[word] : 0;
        const u32 count = warpset::platform::population_count(bits), end = Warp::sum_up_to(count);
        const u32 all = Warp::shuffle(end, Warp::size - 1);
        if (all == 0) continue;
        u64 start = 0;
        // Relaxed: only the uniqueness of the places matters. Once a warp finds no room, none does, so places have no gaps.
        if (Warp::lane() == 0) start = fetch_add_relaxed(taken, all);
        start = Warp::shuffle(start, 0);
        if (start + all > capacity) return;
        if (Warp::lane() == 0) add_relaxed(taken + 1, u64{all});
        u64 place = first + start + end - count;
        for (u32 rest = bits; rest != 0; rest &= rest - 1)
            states.set(place++, word * 32 + warpset::platform::lowest_bit(rest));
        if (bits != 0) states.marks[word] = 0;
    }
}

#endif

#if EXPLORE_BY_ROWS

// Lists the rows of first .. last that hold states, in any order, and adds their number to `count`. Any launch shape.
extern "C" __global__ void list_states(explore::States states, explore::u64 first, explore::u64 last, explore::u64* references,
                                       explore::u64* count)
{
    using namespace explore;
    const u64 stride = u64{gridDim.x} * blockDim.x;
    for (u64 row = first + u64{blockIdx.x} * blockDim.x + threadIdx.x; row < last; row += stride)
        // Relaxed: only the uniqueness of the places matters.
        if (states.at(row) != no_reference) references[fetch_add_relaxed(count, 1)] = row;
}

// Finds the starts of the levels 0 .. levels, as rows before `rows`: a level ends before the first row whose parent is not in the
// level before it. A hole may belong to either of two levels. One thread.
extern "C" __global__ void find_starts(explore::States states, explore::u64 levels, explore::u64 rows, explore::u64* starts)
{
    using namespace explore;
    starts[0] = 0;
    starts[1] = 1;
    for (u64 level = 1; level < levels; ++level) {
        const u64 start = starts[level];
        u64 low = start, high = rows;
        while (low < high) {
            const u64 middle = low + (high - low) / 2;
            u64 row = middle;
            while (row < high && states.at(row) == no_reference) ++row;
            if (row == high || states.parent(row) >= start)
                high = middle;
            else
                low = row + 1;
        }
        starts[level + 1] = low;
    }
}

#endif

namespace explore {

// Marks of this block: behind its states in shared memory, or in `all`, which has the marks of all blocks.
EXPLORE_FN u32* marks_of_block(u8* shared, u32* all)
{
    if constexpr (Selection::words == 0) return nullptr;
    if constexpr (Selection::in_shared) return reinterpret_cast<u32*>(shared + Chosen::marks_at);
    return all + u64{blockIdx.x} * Chosen::threads * Selection::words;
}

}  // namespace explore

#ifdef EXPLORE_REDUCES

// Writes how many words of device memory a thread of the search needs.
extern "C" __global__ void count_marks(unsigned* words)
{
    using namespace explore;
    *words = Selection::in_shared ? 0 : Selection::words;
}

// Last parameter of the kernels that expand states: `count_marks` words for each thread.
#define EXPLORE_MARKS_PARAMETER , unsigned* marks
#define EXPLORE_MARKS marks
#else
#define EXPLORE_MARKS_PARAMETER
#define EXPLORE_MARKS nullptr
#endif

// Writes the launch parameters of the kernel.
extern "C" __global__ void describe(unsigned* threads, unsigned* shared_bytes)
{
    *threads = explore::Chosen::threads;
    *shared_bytes = explore::Chosen::shared_bytes;
}

// Writes the most successors that a state can have.
extern "C" __global__ void count_steps(explore::u64* most)
{
    using namespace explore;
    u64 steps = 0;
    EXPLORE_NO_UNROLL
    for (u32 unit = 0; unit < all_units; ++unit) steps += all_choices(unit);
    *most = steps * (property_moves > 1 ? property_moves : 1);
}

#if EXPLORE_BRANCHING  // branching.cu follows, with kernels of its own

#elif EXPLORE_WALKS_BACK

// Finds the least state of a level with the successor path[level + 1]. Its reference becomes references[level], which must be
// no_reference before, and remains so if there is none. The level has the states from starts[level] to starts[level + 1]. Blocks
// as for `search_levels`.
extern "C" __global__ void __launch_bounds__(explore::Chosen::threads, EXPLORE_BLOCKS(explore::Chosen::threads))
find_predecessor(warpset::View view, const unsigned* tables, explore::States states, const explore::u64* starts,
                 const unsigned* path, explore::u64* references, explore::u64 level)
{
    using namespace explore;
    EXPLORE_SHARED_OF_LAUNCH(shared);
    const Table table = warpset::table(view);
    SharedStates state{{reinterpret_cast<u32*>(shared + Chosen::states_at) + threadIdx.x}};
    const u64 last = starts[level + 1], stride = u64{gridDim.x} * blockDim.x;
    for (u64 tile = starts[level] + u64{blockIdx.x} * blockDim.x; tile < last; tile += stride) {
        const u64 reference = tile + threadIdx.x < last ? states.at(tile + threadIdx.x) : no_reference;
        const bool has_state = reference != no_reference;
        if (has_state) set_state(fetch(table, reference), state);
        Comparison comparison{path + (level + 1) * state_words, false};
        Notes notes;
        Joint joint;
        if (has_state) joint.start(tables, state, notes);
        try_all(tables, has_state, state, joint, notes, comparison);
        if (comparison.found) keep_least(table, references + level, reference, state);
    }
}

#elif EXPLORE_RANKS

// Expands the listed states search->next .. search->last of a level while `offers` has room. Updates the counts, and
// writes the successors, each at least once, except those equal to their state. Afterwards the states from search->next on,
// before `last`, are not expanded. Blocks of `Chosen::threads` threads with `Chosen::shared_bytes` of shared memory; any number
// of blocks. `tables`: tables of the model's network.
extern "C" __global__ void __launch_bounds__(explore::Chosen::threads, EXPLORE_BLOCKS(explore::Chosen::threads))
expand_states(warpset::View view, const unsigned* tables, explore::States states, unsigned* offers,
              explore::SearchState* search, explore::Limits limits EXPLORE_MARKS_PARAMETER)
{
    using namespace explore;
    EXPLORE_SHARED_OF_LAUNCH(shared);
    const Table table = warpset::table(view);
    const SharedStates state{{reinterpret_cast<u32*>(shared + Chosen::states_at) + threadIdx.x}};
    BlockState engine{table, tables, Cache(shared), state, states, nullptr, search, limits, {},
                      offers, marks_of_block(shared, EXPLORE_MARKS)};
    engine.cache.clear();
    engine.watch.start();
    u64 first, last;
    do {
        engine.take_tile(first, last);
        engine.expand(first, last);
    } while (first < last);
    // Release the unused rows for blocks that still need room.
    if (threadIdx.x == 0) fetch_add_relaxed(&search->reserved, 0 - engine.kept);
}

#else

// Explores until a level is empty, a violation ends the search or a limit is reached. A cooperative launch of blocks of
// `Chosen::threads` threads with `Chosen::shared_bytes` of shared memory. `tables`: tables of the model's network. `search`,
// `counts` and `states` are as the last launch left them, or as gpu/mod.rs initializes them.
extern "C" __global__ void __launch_bounds__(explore::Chosen::threads, EXPLORE_BLOCKS(explore::Chosen::threads))
search_levels(warpset::View view, const unsigned* tables, explore::States states, warpset::BatchCounts* counts,
              explore::SearchState* search, explore::Limits limits EXPLORE_MARKS_PARAMETER)
{
    using namespace explore;
    EXPLORE_SHARED_OF_LAUNCH(shared);
    const Table table = warpset::table(view);
    const SharedStates state{{reinterpret_cast<u32*>(shared + Chosen::states_at) + threadIdx.x}};
    BlockState engine{table, tables, Cache(shared), state, states, counts, search,
                      limits, {}, nullptr, marks_of_block(shared, EXPLORE_MARKS)};
    const u64 started = nanoseconds();
    engine.cache.clear();
    engine.watch.start();
    do {
        u64 first, last;
        do {
            engine.take_tile(first, last);
            engine.expand(first, last);
        } while (first < last);
    } while (engine.next_level(started));
}

#endif
