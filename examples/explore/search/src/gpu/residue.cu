// The search for accepting cycles on the GPU (liveness/residue.rs has the algorithm). This text follows explore.cu, and uses its
// steps of states and its barrier of all blocks.
//
//   flags  [ two bytes a slot of the table; only those of slots that hold states are ever looked at ]
//   queue  [ states whose steps have been taken | this level | the next one, as it is found ]     references, each once a pass
//
// A pass begins with a kernel that reads the flags of all states and appends the first states to the queue (`seed_reset`,
// `seed_elimination`). If `order` lists all states, the kernel reads only their flags, because a table may have hundreds of times
// as many slots. Then `sweep_levels` stays for many levels: it takes the steps of the states in the queue, one state per thread,
// looks up their targets in the table and changes the targets' flags. The host launches it again a few times a second, until the
// queue is empty.

//
// `sweep_levels` also prepares a run (gpu/lasso.rs): it lists the steps between the states of a residue, which `list_residue`
// has numbered, and it goes back from a state to the initial one along the levels of the search.

namespace explore {

// Work that `sweep_levels` does with the steps of states.
enum Task : u32 {
    eliminates,   // removes a predecessor from the counts of the targets; targets without any are the next states
    resets,       // adds a predecessor; targets that are reached for the first time are the next states
    lists_steps,  // for states in the queue, which are the members of the residue: lists their steps to other members
    goes_back,    // `queue` is all states by levels: finds the least state of each level with a step to the state found behind it
};

// Mirrored by `Sweep` in gpu/cycles.rs.
struct Sweep {
    u64 first, last;  // the level, in `queue`
    u64 next;         // first state of the level that no block has taken
    u64 appended;     // states in `queue`
    u64 going;        // 0: the kernel ends
    u64 accepting;    // accepting states of the table, counted by `begin_residue`
    u64 inside;       // states in the residue, counted by `tally_residue`
    u64 at_most;      // states in the residue whose count has reached its maximum
    u64 listed;       // number of steps to list; may exceed the room for them
    u64 level;        // for `goes_back`: number of the level
    u32 arrived, generation;  // for the barrier
};

// Data for the search of a run; mirrored by `Trail` in gpu/cycles.rs.
struct Trail {
    u32* numbers;        // by slot: a member's number
    u64* steps;          // each is the numbers of two members, with the target in the upper half
    u64 room;            // capacity of `steps`
    const u64* starts;   // starts of levels in `queue`
    u32* path;           // words of a state of each level
    u64* places;         // reference of a state of each level; no_reference until it is found
};

// Component and acceptance of a location: 2 * the number of its component, + 1 if the location is accepting.
EXPLORE_FN u32 about(const u32* locations, i32 location) { return locations[location]; }

// The platform has no relaxed load of two bytes.
template <class Flags>
EXPLORE_FN Flags load_flags(const Flags* flags)
{
    if constexpr (sizeof(Flags) == 2) return *reinterpret_cast<const volatile Flags*>(flags);
    else return load_relaxed(flags);
}

// Replaces the flags of a state. Returns `takes(before, after)`, or false if nothing changes. Relaxed: flags of different states
// are independent, and passes are separate kernels, or levels of one kernel between which all blocks meet.
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

// Returns a different place to each lane with `has_one`, by one addition for the warp. All lanes of the warp must call it.
EXPLORE_FN u64 place_for(u64* count, bool has_one)
{
    const u32 appending = Warp::ballot(has_one);
    if (appending == 0) return 0;
    const u32 leader = warpset::platform::lowest_bit(appending), before = appending & ((1u << Warp::lane()) - 1);
    u64 first = 0;
    // Relaxed: places only have to differ. A thread that reads an entry has met its writer since, or belongs to a later kernel.
    if (Warp::lane() == leader) first = fetch_add_relaxed(count, u64{warpset::platform::population_count(appending)});
    return Warp::shuffle(first, leader) + warpset::platform::population_count(before);
}

EXPLORE_FN void append(u64* queue, Sweep* sweep, bool has_one, u64 reference)
{
    const u64 place = place_for(&sweep->appended, has_one);
    if (has_one) queue[place] = reference;
}

// Takes the steps of a state that stay in its component; for `goes_back`, all steps.
struct Follow {
    const Table& table;
    Flags* flags;
    u64* queue;
    Sweep* sweep;
    const u32* locations;
    const Trail& trail;
    const u32* wanted;  // words of the wanted target
    u32 task;
    u32 most;
    u32 component;
    u32 number;         // number of the member
    bool leads;         // whether a step leads to the wanted target

    template <class State>
    EXPLORE_FN void operator()(bool steps, const State&, const State& to)
    {
        if (task == goes_back) {
            bool equal = steps;
            EXPLORE_UNROLL
            for (u32 word = 0; word < state_words; ++word) equal = equal && to.words[word] == wanted[word];
            leads |= equal;
            return;
        }
        warpset::Found found{warpset::Outcome::Absent, no_reference};
        if (steps && about(locations, property_location(to)) / 2 == component) {
            u32 words[state_words];
            EXPLORE_UNROLL
            for (u32 word = 0; word < state_words; ++word) words[word] = to.words[word];
            found = table.find(warpset::WordVector{words});
        }
        const bool is_stored = found.outcome == warpset::Outcome::Seen;
        if (task == lists_steps) {
            const bool is_listed = is_stored && load_flags(flags + found.reference) & in_residue;
            const u64 place = place_for(&sweep->listed, is_listed);
            if (is_listed && place < trail.room) trail.steps[place] = u64{trail.numbers[found.reference]} << 32 | number;
        } else {
            append(queue, sweep, is_stored && changes(flags + found.reference), found.reference);
        }
    }

    // Changes the flags of a target. Returns whether it becomes one of the next states.
    EXPLORE_FN bool changes(Flags* at) const
    {
        if (task == resets)
            return change(at, [&](Flags before) { return counted(before, most); },
                          [](Flags before, Flags) { return !(before & is_reached); });
        return change(at, [&](Flags before) { return uncounted(before, most); }, [](Flags, Flags after) { return after == 0; });
    }
};

// Makes the next level the current one. Called by one thread while all blocks wait.
EXPLORE_FN void turn(const Table& table, Sweep* sweep, u32 task, const Trail& trail)
{
    if (task == goes_back) {
        const u64 level = sweep->level, place = load_relaxed(trail.places + level);
        if (place != no_reference)
            table.read_words(place, 0, 1, [&](u32 word, u32 value) { trail.path[level * state_words + word] = value; });
        // The first level is the initial state alone. If no state was found in a level, the search ends, and the host reports an
        // error.
        const bool goes_on = level > 1 && place != no_reference;
        sweep->level = goes_on ? level - 1 : level;
        sweep->first = sweep->next = goes_on ? trail.starts[level - 1] : 0;
        sweep->last = goes_on ? trail.starts[level] : 0;
    } else {
        sweep->first = sweep->next = load_relaxed(&sweep->last);
        sweep->last = load_relaxed(&sweep->appended);
    }
}

// Calls `take(has, slot)` for the slots of all states, one per lane: the `count` states that `order` lists or, if it is null, all
// `count` slots of the table. All lanes of a warp take part in each call; `has` is false for lanes without a slot.
template <class Take>
EXPLORE_FN void for_each_slot(const u64* order, u64 count, Take take)
{
    const u64 stride = u64{gridDim.x} * blockDim.x, rounds = (count + stride - 1) / stride;
    for (u64 round = 0; round < rounds; ++round) {
        const u64 at = round * stride + u64{blockIdx.x} * blockDim.x + threadIdx.x;
        const bool has = at < count;
        take(has, has && order != nullptr ? order[at] & warpset::slot_mask : at);
    }
}

EXPLORE_FN void take_all(u32 value, u64* sum)
{
    if (!Warp::any(value)) return;
    const u32 total = Warp::sum_up_to(value);
    if (Warp::lane() == Warp::size - 1) add_relaxed(sum, total);
}

}  // namespace explore

// Adds all states that may be on accepting cycles to the residue, and counts the accepting ones. `flags` need no initial values,
// or are null.
extern "C" __global__ void begin_residue(warpset::View view, const explore::u64* order, explore::u64 count, explore::Flags* flags,
                                         const unsigned* locations, explore::Sweep* sweep)
{
    using namespace explore;
    const Table table = warpset::table(view);
    for_each_slot(order, count, [&](bool has, u64 slot) {
        RegisterState state;
        const bool holds = has && table.read_words(slot, 0, 1, [&](u32 word, u32 value) { state.words[word] = value; });
        const u32 what = holds ? about(locations, property_location(state)) : 0;
        const u32 inside = what / 2 != 0 ? in_residue | (what % 2 != 0 ? is_accepting : 0) : 0;
        if (has && flags != nullptr) flags[slot] = static_cast<Flags>(inside);
        take_all(what % 2, &sweep->accepting);
    });
}

// Begins a reset: clears all counts, and marks only accepting states as reached. They are the first of the queue.
extern "C" __global__ void seed_reset(const explore::u64* order, explore::u64 count, explore::Flags* flags, explore::u64* queue,
                                      explore::Sweep* sweep)
{
    using namespace explore;
    for_each_slot(order, count, [&](bool has, u64 slot) {
        const u32 before = has ? flags[slot] : 0;
        const bool first = before & in_residue && before & is_accepting;
        if (before & in_residue)
            flags[slot] = static_cast<Flags>((before & (in_residue | is_accepting)) | (first ? is_reached : 0));
        append(queue, sweep, first, slot);
    });
}

// Removes states that were not reached, and begins an elimination with the states that have no predecessor.
extern "C" __global__ void seed_elimination(const explore::u64* order, explore::u64 count, explore::Flags* flags,
                                            explore::u64* queue, explore::Sweep* sweep)
{
    using namespace explore;
    for_each_slot(order, count, [&](bool has, u64 slot) {
        const u32 before = has ? flags[slot] : 0;
        const bool reached = before & is_reached;
        const bool goes = before & in_residue && !(reached && (before & count_mask) != 0);
        if (goes) flags[slot] = 0;
        append(queue, sweep, goes && reached, slot);
    });
}

// Counts the states in the residue, and those whose count has reached its maximum.
extern "C" __global__ void tally_residue(const explore::u64* order, explore::u64 count, const explore::Flags* flags,
                                         unsigned most, explore::Sweep* sweep)
{
    using namespace explore;
    for_each_slot(order, count, [&](bool has, u64 slot) {
        const u32 of = has ? flags[slot] : 0;
        const bool inside = of & in_residue;
        take_all(inside, &sweep->inside);
        take_all(inside && (of & count_mask) >= most, &sweep->at_most);
    });
}

// Lists the states of the residue in `queue`, and numbers them in that order. Writes the numbers to `numbers`, by slot, and
// whether each state is accepting to `kinds`, by number. Both may be null.
extern "C" __global__ void list_residue(const explore::u64* order, explore::u64 count, const explore::Flags* flags,
                                        explore::u64* queue, explore::Sweep* sweep, unsigned* numbers, unsigned* kinds)
{
    using namespace explore;
    for_each_slot(order, count, [&](bool has, u64 slot) {
        const u32 of = has ? flags[slot] : 0;
        const bool inside = of & in_residue;
        const u64 place = place_for(&sweep->appended, inside);
        if (!inside) return;
        queue[place] = slot;
        if (numbers != nullptr) numbers[slot] = static_cast<u32>(place);
        if (kinds != nullptr) kinds[place] = of & is_accepting ? 1 : 0;
    });
}

// Finds the first state in `order` that is in the residue and whose component has all wanted marks. Its place goes to `first`,
// which must be all ones before. The marks of a component are stored at the number that labels its members.
extern "C" __global__ void find_first(const explore::u64* order, explore::u64 count, const explore::Flags* flags,
                                      const unsigned* numbers, const unsigned* labels, const unsigned* marks, unsigned wanted,
                                      explore::u64* first)
{
    using namespace explore;
    const u64 stride = u64{gridDim.x} * blockDim.x;
    for (u64 at = u64{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += stride) {
        // Relaxed: the minimum is kept, and read after the kernel has ended.
        u64 least = load_relaxed(first);
        if (at >= least) return;
        const u64 slot = order[at] & warpset::slot_mask;
        if (!(flags[slot] & in_residue) || (marks[labels[numbers[slot]]] & wanted) != wanted) continue;
        while (at < least) {
            const u64 before = warpset::platform::compare_and_swap_relaxed(first, least, at);
            if (before == least) break;
            least = before;
        }
        return;
    }
}

// Writes the words of the states at places `numbers` of the queue, one after another.
extern "C" __global__ void read_members(warpset::View view, const explore::u64* queue, const unsigned* numbers,
                                        explore::u64 count, unsigned* words)
{
    using namespace explore;
    const Table table = warpset::table(view);
    const u64 stride = u64{gridDim.x} * blockDim.x;
    for (u64 at = u64{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += stride)
        table.read_words(queue[numbers[at]], 0, 1, [&](u32 word, u32 value) { words[at * state_words + word] = value; });
}

// Takes the steps of all states in the queue, including those appended meanwhile, level by level, until none is left or
// `most_nanoseconds` have passed. `task` is a `Task`. A cooperative launch of blocks of `Chosen::threads` threads with
// `Chosen::shared_bytes` of shared memory.
extern "C" __global__ void __launch_bounds__(explore::Chosen::threads, EXPLORE_BLOCKS(explore::Chosen::threads))
sweep_levels(warpset::View view, const unsigned* tables, explore::Flags* flags, explore::u64* queue, const unsigned* locations,
             explore::Sweep* sweep, unsigned most, unsigned task, explore::u64 most_nanoseconds, explore::Trail trail)
{
    using namespace explore;
    EXPLORE_SHARED_OF_LAUNCH(shared);
    EXPLORE_SHARED(u64, tile, 2);
    EXPLORE_SHARED(bool, more, 1);
    EXPLORE_SHARED(u32, wanted, state_words);
    const Table table = warpset::table(view);
    SharedStates state{{reinterpret_cast<u32*>(shared + Chosen::states_at) + threadIdx.x}};
    const u64 started = nanoseconds();
    do {
        const u64 level = load_relaxed(&sweep->level);
        // Relaxed: the state was written while all blocks met.
        if (task == goes_back)
            for (u32 word = threadIdx.x; word < state_words; word += blockDim.x)
                wanted[word] = load_relaxed(trail.path + (level + 1) * state_words + word);
        while (true) {
            __syncthreads();  // the tile before has been read
            if (threadIdx.x == 0) {
                // Relaxed: a block that does not see a new entry yet takes one tile too many.
                const u64 end = load_relaxed(&sweep->last);
                const u64 begin = fetch_add_relaxed(&sweep->next, u64{Chosen::threads});
                tile[0] = begin;
                tile[1] = begin + Chosen::threads < end ? begin + Chosen::threads : end;
            }
            __syncthreads();
            if (tile[0] >= tile[1]) break;
            const u64 at = tile[0] + threadIdx.x;
            const bool has_state = at < tile[1];
            const u64 reference = has_state ? load_relaxed(queue + at) & warpset::slot_mask : no_reference;
            Notes notes;
            Joint joint;
            u32 component = 0;
            if (has_state) {
                set_state(fetch(table, reference), state);
                joint.start(tables, state, notes);
                component = about(locations, joint.location) / 2;
            }
            Follow follow{table, flags,     queue,                   sweep, locations, trail, wanted, task,
                          most,  component, static_cast<u32>(at), false};
            try_all(tables, has_state, state, joint, notes, follow);
            if (follow.leads) keep_least(table, trail.places + level, reference, state);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            meet(&sweep->arrived, &sweep->generation, [&] {
                turn(table, sweep, task, trail);
                sweep->going = sweep->first != sweep->last && nanoseconds() - started < most_nanoseconds;
            });
            more[0] = load_relaxed(&sweep->going) != 0;
        }
        __syncthreads();
    } while (more[0]);
}
