// The search for accepting cycles on the GPU (liveness/residue.rs has the algorithm): behind explore.cu, of which it uses the
// steps of states and the barrier of all blocks.
//
//   flags  [ two bytes a slot of the table ]
//   queue  [ states whose steps have been taken | this level | the next one, as it is found ]     references, each once a pass
//
// A pass begins with a kernel that looks at all flags and appends the first states (`seed_reset`, `seed_elimination`); then one
// that stays for many levels (`sweep_levels`) takes the steps of the states in the queue, a state a thread, looks their ends up
// in the table and changes their flags. The host starts it again a few times a second, until the queue has no more.

namespace explore {

// Mirrored by `Sweep` in gpu/cycles.rs.
struct Sweep {
    u64 first, last;  // the level, in `queue`
    u64 next;         // the first state of it that no block has taken
    u64 appended;     // states in `queue`
    u64 going;        // 0: the kernel ends
    u64 accepting;    // states of the table, counted by `begin_residue`
    u64 inside;       // states in the residue, counted by `tally_residue`
    u64 at_most;      // those of them whose count stays at its most
    u32 arrived, generation;  // of the barrier
};

// By location: the number of its component, doubled, and whether it is accepting.
EXPLORE_FN u32 about(const u32* locations, i32 location) { return locations[location]; }

// There is no relaxed load of two bytes by that name.
template <class Flags>
EXPLORE_FN Flags load_flags(const Flags* flags)
{
    if constexpr (sizeof(Flags) == 2) return *reinterpret_cast<const volatile Flags*>(flags);
    else return load_relaxed(flags);
}

// Replaces the flags of a state. Gives true if `takes` of what was there and what is there now. Relaxed: flags of different
// states are independent, and passes are kernels, or levels of one, between which all blocks meet.
template <class Change, class Takes>
EXPLORE_FN bool change(Flags* flags, Change change, Takes takes)
{
    Flags before = load_flags(flags);
    while (true) {
        const Flags after = change(before);
        if (after == before) return false;
        const Flags found = atomicCAS(flags, before, after);
        if (found == before) return takes(before, after);
        before = found;
    }
}

// Takes the steps of a state that stay in its component.
struct Follow {
    const Table& table;
    Flags* flags;
    u64* queue;
    Sweep* sweep;
    const u32* locations;
    u32 component;
    u32 most;
    bool counts;

    template <class State>
    EXPLORE_FN void operator()(bool steps, const State&, const State& to)
    {
        warpset::Found found{warpset::Outcome::Absent, no_reference};
        if (steps && about(locations, property_location(to)) / 2 == component) {
            u32 words[state_words];
            EXPLORE_UNROLL
            for (u32 word = 0; word < state_words; ++word) words[word] = to.words[word];
            found = table.find(warpset::WordVector{words});
        }
        const bool is_next = found.outcome == warpset::Outcome::Seen && changes(flags + found.reference);
        append(queue, sweep, is_next, found.reference);
    }

    // Whether that makes it one of the next states.
    EXPLORE_FN bool changes(Flags* at) const
    {
        if (counts)
            return change(at, [&](Flags before) { return counted(before, most); },
                          [](Flags before, Flags) { return !(before & is_reached); });
        return change(at, [&](Flags before) { return uncounted(before, most); }, [](Flags, Flags after) { return after == 0; });
    }

    // Appends the states of the lanes that have one, by one addition: all lanes of the warp call it.
    EXPLORE_FN static void append(u64* queue, Sweep* sweep, bool has_one, u64 reference)
    {
        const u32 appending = Warp::ballot(has_one);
        if (appending == 0) return;
        const u32 leader = warpset::platform::lowest_bit(appending), before = appending & ((1u << Warp::lane()) - 1);
        u64 first = 0;
        // Relaxed: places must differ. Who reads them has met the writer since, or is a later kernel.
        if (Warp::lane() == leader) first = fetch_add_relaxed(&sweep->appended, u64{warpset::platform::population_count(appending)});
        first = Warp::shuffle(first, leader);
        if (has_one) queue[first + warpset::platform::population_count(before)] = reference;
    }
};

// Calls `take(slot)` for all slots, one a lane. All lanes of a warp come to each call: some with slots that are not there.
template <class Take>
EXPLORE_FN void for_each_slot(u64 slots, Take take)
{
    const u64 stride = u64{gridDim.x} * blockDim.x, rounds = (slots + stride - 1) / stride;
    for (u64 round = 0; round < rounds; ++round) take(round * stride + u64{blockIdx.x} * blockDim.x + threadIdx.x);
}

EXPLORE_FN void take_all(u32 value, u64* sum)
{
    if (!Warp::any(value)) return;
    const u32 total = Warp::sum_up_to(value);
    if (Warp::lane() == Warp::size - 1) add_relaxed(sum, total);
}

}  // namespace explore

// Puts all states in that may be on accepting cycles, and counts the accepting ones. All flags are 0 before.
extern "C" __global__ void begin_residue(warpset::View view, explore::u64 slots, explore::Flags* flags, const unsigned* locations,
                                         explore::Sweep* sweep)
{
    using namespace explore;
    const Table table = warpset::table(view);
    for_each_slot(slots, [&](u64 slot) {
        RegisterState state;
        const bool holds = slot < slots && table.read_words(slot, 0, 1, [&](u32 word, u32 value) { state.words[word] = value; });
        const u32 what = holds ? about(locations, property_location(state)) : 0;
        if (what / 2 != 0) flags[slot] = static_cast<Flags>(in_residue | (what % 2 != 0 ? is_accepting : 0));
        take_all(what % 2, &sweep->accepting);
    });
}

// Begins a reset: no counts, nothing reached but accepting states, which are the first of the queue.
extern "C" __global__ void seed_reset(explore::u64 slots, explore::Flags* flags, explore::u64* queue, explore::Sweep* sweep)
{
    using namespace explore;
    for_each_slot(slots, [&](u64 slot) {
        const u32 before = slot < slots ? flags[slot] : 0;
        const bool first = before & in_residue && before & is_accepting;
        if (before & in_residue) flags[slot] = static_cast<Flags>((before & (in_residue | is_accepting)) | (first ? is_reached : 0));
        Follow::append(queue, sweep, first, slot);
    });
}

// Takes out what was not reached; begins an elimination with what has no predecessor.
extern "C" __global__ void seed_elimination(explore::u64 slots, explore::Flags* flags, explore::u64* queue, explore::Sweep* sweep)
{
    using namespace explore;
    for_each_slot(slots, [&](u64 slot) {
        const u32 before = slot < slots ? flags[slot] : 0;
        const bool reached = before & is_reached;
        const bool goes = before & in_residue && !(reached && (before & count_mask) != 0);
        if (goes) flags[slot] = 0;
        Follow::append(queue, sweep, goes && reached, slot);
    });
}

// Counts what is left, and of how many the count stays at its most.
extern "C" __global__ void tally_residue(explore::u64 slots, const explore::Flags* flags, unsigned most, explore::Sweep* sweep)
{
    using namespace explore;
    for_each_slot(slots, [&](u64 slot) {
        const u32 of = slot < slots ? flags[slot] : 0;
        const bool inside = of & in_residue;
        take_all(inside, &sweep->inside);
        take_all(inside && (of & count_mask) >= most, &sweep->at_most);
    });
}

// Takes the steps of all states in the queue, and of those that are appended meanwhile, level by level, or until so much time has
// passed. A cooperative launch of blocks of `Chosen::threads` threads with `Chosen::shared_bytes` of shared memory.
extern "C" __global__ void __launch_bounds__(explore::Chosen::threads, EXPLORE_BLOCKS(explore::Chosen::threads))
sweep_levels(warpset::View view, const unsigned* tables, explore::Flags* flags, explore::u64* queue, const unsigned* locations,
             explore::Sweep* sweep, unsigned most, unsigned counts, explore::u64 most_nanoseconds)
{
    using namespace explore;
    EXPLORE_SHARED_OF_LAUNCH(shared);
    EXPLORE_SHARED(u64, tile, 2);
    EXPLORE_SHARED(bool, more, 1);
    const Table table = warpset::table(view);
    SharedStates state{{reinterpret_cast<u32*>(shared + Chosen::states_at) + threadIdx.x}};
    const u64 started = nanoseconds();
    do {
        while (true) {
            __syncthreads();  // the tile before has been read
            if (threadIdx.x == 0) {
                const u64 end = load_relaxed(&sweep->last);
                const u64 begin = fetch_add_relaxed(&sweep->next, u64{Chosen::threads});
                tile[0] = begin;
                tile[1] = begin + Chosen::threads < end ? begin + Chosen::threads : end;
            }
            __syncthreads();
            if (tile[0] >= tile[1]) break;
            const bool has_state = tile[0] + threadIdx.x < tile[1];
            Notes notes;
            Joint joint;
            u32 component = 0;
            if (has_state) {
                set_state(fetch(table, load_relaxed(queue + tile[0] + threadIdx.x)), state);
                joint.start(tables, state, notes);
                component = about(locations, joint.location) / 2;
            }
            Follow follow{table, flags, queue, sweep, locations, component, most, counts != 0};
            try_all(tables, has_state, state, joint, notes, follow);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            meet(&sweep->arrived, &sweep->generation, [&] {
                sweep->first = sweep->next = load_relaxed(&sweep->last);
                sweep->last = load_relaxed(&sweep->appended);
                sweep->going = sweep->first != sweep->last && nanoseconds() - started < most_nanoseconds;
            });
            more[0] = load_relaxed(&sweep->going) != 0;
        }
        __syncthreads();
    } while (more[0]);
}
