// Sets of states for formulas of branching time (ctl/mod.rs). This text follows explore.cu, and uses its steps of states.
//
//   set      [ a bit for each place, 32 places a word ]
//   begins   [ where the steps of a state begin in `targets`, by its place ]     only if the steps are listed
//   counts   [ how many there are ]
//   targets  [ the places of successors ]
//
// `E[p U q]` begins with the states of q; `EG p` begins with the states outside of p, and its set has the states that are out. A
// sweep looks at each state that may be added and is not in the set, and adds it if some successor is in the set, or all are.
// Bits are only set, by atomic OR, and the condition for adding a state never becomes false again when others are added. So each
// order of the threads ends with the same set: the least one that no sweep adds to. A thread that sees a bit early adds its state
// in this sweep, and one that sees it late adds it in the next one. The last sweep adds nothing, so all of its threads have seen
// the final set, because the sweep before it has ended with its kernel. No other data are read because of a bit, so all accesses
// are relaxed, and their scope is the GPU.
//
// A place is a number in the list of states that the search made, in the order of discovery, or a slot of the table. Most steps
// lead to later states, so the first sweep begins at the last place: it decides a state after most of its successors. Sweeps in
// both directions take turns. A warp reads 32 words of a set at once, and goes on where no state of them is undecided.

namespace explore {

static_assert(property_moves == 0, "the states of a product have no formulas");

// Mirrored by `SetSweep` in gpu/branching.rs.
struct SetSweep {
    u64 next;   // words of a set that warps have taken
    u64 added;  // states added
    u64 steps;  // steps listed; may exceed the room for them
    u64 lost;   // successors that are not stored, and states with a fault: the search would have found both
};

// Where states are. Mirrored by `Places` in gpu/branching.rs.
struct Places {
    const u64* wide;     // references of all states, of 8 bytes, or null
    const u32* low;      // lower 32 bits of these references, or null; without any list each slot is a place
    const u8* above;     // their upper bits; null while they cannot be needed
    const u32* numbers;  // places by slot, or null: then each slot is a place
    u64 count;
    u32 piece;           // words of a set that a warp takes at a time
    u32 descends;        // 1: begins at the last place

    EXPLORE_FN u64 words() const { return (count + 31) / 32; }
    EXPLORE_FN u64 of_slot(u64 slot) const { return numbers == nullptr ? slot : numbers[slot]; }
    EXPLORE_FN u64 slot(u64 place) const
    {
        if (wide != nullptr) return wide[place] & warpset::slot_mask;
        if (low == nullptr) return place;
        return low[place] | (above == nullptr ? 0 : u64{above[place]} << 32);
    }
};

// Lists of steps. Mirrored by `Steps` in gpu/branching.rs.
struct Steps {
    u64* begins;
    u32* counts;
    u32* targets;
    u64 room;  // capacity of `targets`
};

// Mirrored by `Operator` in gpu/branching.rs.
struct Operator {
    const u32* states;  // all states
    const u32* within;  // only its members may be added, or the others
    const u32* target;  // the set whose members count among the successors, or the others count; it may be `set`
    u32* set;
    u32 flip_within, flip_target;  // all ones: the others
    u32 needs_all;  // 1: adds states that have successors, which all count; 0: states with a successor that counts
    u32 unused;
};

EXPLORE_FN bool has_bit(u32 word, u64 place) { return word >> place % 32 & 1; }

// The states of a word that are still to be decided.
EXPLORE_FN u32 undecided(const Operator& of, u64 word)
{
    return (of.within[word] ^ of.flip_within) & of.states[word] & ~load_relaxed(of.set + word);
}

// Decides a state by its successors.
struct Judge {
    const Table& table;
    const Places& places;
    const Operator& of;
    bool has_step = false, some = false, all = true;
    u32 lost = 0;

    EXPLORE_FN void see(u64 place)
    {
        const bool counts = has_bit(load_relaxed(of.target + place / 32) ^ of.flip_target, place);
        has_step = true;
        some |= counts;
        all &= counts;
    }
    EXPLORE_FN bool is_decided() const { return of.needs_all != 0 ? !all : some; }
    EXPLORE_FN bool adds() const { return of.needs_all != 0 ? has_step && all : some; }

    template <class State>
    EXPLORE_FN void operator()(bool steps, const State&, const State& to)
    {
        if (!steps) return;
        const u64 slot = slot_of(table, to);
        if (slot == no_reference)
            ++lost;
        else
            see(places.of_slot(slot));
    }

    // The slot of a state, or no_reference.
    template <class State>
    EXPLORE_FN static u64 slot_of(const Table& table, const State& state)
    {
        u32 words[state_words];
        EXPLORE_UNROLL
        for (u32 word = 0; word < state_words; ++word) words[word] = state.words[word];
        const warpset::Found found = table.find(warpset::WordVector{words});
        return found.outcome == warpset::Outcome::Seen ? found.reference & warpset::slot_mask : no_reference;
    }
};

// Counts the steps of a state.
struct StepCounter {
    u32 count = 0;

    EXPLORE_FN bool is_decided() const { return false; }
    template <class State>
    EXPLORE_FN void operator()(bool steps, const State&, const State&)
    {
        count += steps;
    }
};

// Lists the steps of a state.
struct StepWriter {
    const Table& table;
    const Places& places;
    u32* to;  // null: there is no room
    u32 lost = 0;

    EXPLORE_FN bool is_decided() const { return to == nullptr; }
    template <class State>
    EXPLORE_FN void operator()(bool steps, const State&, const State& next)
    {
        if (!steps) return;
        const u64 slot = Judge::slot_of(table, next);
        lost += slot == no_reference;
        *to++ = slot == no_reference ? 0 : static_cast<u32>(places.of_slot(slot));
    }
};

// Takes the steps of a state until `give` has decided. Returns whether a step has a fault. All threads of a warp must call it.
template <class Give>
EXPLORE_FN bool try_until_decided(const Table& table, const u32* tables, bool has_state, u64 slot, SharedStates& state,
                                  Give& give)
{
    Notes notes;
    Joint joint;
    if (has_state) set_state(fetch(table, slot), state);
    Cursor cursor(tables);
    AllSteps selection(tables, nullptr);
#pragma unroll 1
    for (u32 unit = 0; unit < all_units; ++unit)
#pragma unroll 1
        for (u32 choice = 0; choice < all_choices(unit); ++choice) {
            const bool goes_on = has_state && notes.fault == 0 && !give.is_decided();
            if (!Warp::any(goes_on)) return notes.fault != 0;
            if (is_component(unit) && choice != 0 && !Warp::any(goes_on && cursor.more())) break;
            try_choice(unit, choice, 0, cursor, goes_on, state, joint, notes, selection, give);
        }
    return notes.fault != 0;
}

// Adds up numbers of the lanes of a warp. All of them must call it.
EXPLORE_FN void sum_of_warp(u32 value, u64* sum)
{
    if (!Warp::any(value)) return;
    const u32 total = Warp::sum_up_to(value);
    if (Warp::lane() == Warp::size - 1) add_relaxed(sum, total);
}

// Calls `take(has, place)` for the places whose bits are set in `wants(word)`: by all lanes of a warp at once, each with a place
// of its own or, at the end, without. `waiting` has room for two places for each lane.
template <class Wants, class Take>
EXPLORE_FN void for_each_wanted(const Places& places, u64* next, u64* waiting, Wants wants, Take take)
{
    const u32 lane = Warp::lane(), below = (1u << lane) - 1;
    u32 held = 0;
    const auto take_last = [&](u32 count) {
        __syncwarp();
        held -= count;
        const bool has = lane < count;
        const u64 place = has ? waiting[held + lane] : 0;
        __syncwarp();  // all have read before places are added
        take(has, place);
    };
    const u64 words = places.words();
    while (true) {
        u64 begin = 0;
        if (lane == 0) begin = fetch_add_relaxed(next, u64{places.piece});
        begin = Warp::shuffle(begin, 0);
        if (begin >= words) break;
        for (u32 first = 0; first < places.piece; first += Warp::size) {
            const u64 number = begin + first + lane;
            const bool has = first + lane < places.piece && number < words;
            const u64 word = has ? (places.descends ? words - 1 - number : number) : 0;
            const u32 bits = has ? wants(word) : 0;
            // The places of one word after the other: each lane has one of them.
            for (u32 left = Warp::ballot(bits != 0); left != 0; left &= left - 1) {
                const u32 from = warpset::platform::lowest_bit(left), all = Warp::shuffle(bits, from);
                const u64 base = 32 * Warp::shuffle(word, from);
                if (all >> lane & 1) waiting[held + warpset::platform::population_count(all & below)] = base + lane;
                held += warpset::platform::population_count(all);
                if (held >= Warp::size) take_last(Warp::size);
            }
        }
    }
    if (held != 0) take_last(held);
}

// Adds a state to the set.
EXPLORE_FN void add(const Operator& of, u64 place) { atomicOr(of.set + place / 32, 1u << place % 32); }

// Whether a condition on a net holds. `program` has tests (gpu/net_conditions.rs): the kind of a test, the tests that follow if
// it holds and if it does not, and the places of its data. The two highest numbers of a test are the answers.
template <class State>
EXPLORE_FN bool holds_on_net(const u32* program, u32 at, const State& state)
{
    constexpr u32 fails = ~1u;
    while (at < fails) {
        const u32* const test = program + at;
        const bool holds = test[0] == 0 ? value_of(program + test[3], state.words) <= value_of(program + test[4], state.words)
                                        : is_enabled(program + test[3], state.words);
        at = holds ? test[1] : test[2];
    }
    return at != fails;
}

}  // namespace explore

// Writes the set of all states, and `numbers` unless it is null. Any launch of whole warps.
extern "C" __global__ void mark_states(warpset::View view, explore::Places places, unsigned* states, unsigned* numbers)
{
    using namespace explore;
    const Table table = warpset::table(view);
    const u64 stride = u64{gridDim.x} * blockDim.x, end = places.words() * Warp::size;
    for (u64 place = u64{blockIdx.x} * blockDim.x + threadIdx.x; place < end; place += stride) {
        const u64 slot = place < places.count ? places.slot(place) : 0;
        const bool has_state = place < places.count && table.holds(slot);
        const u32 word = Warp::ballot(has_state);
        if (Warp::lane() == 0) states[place / 32] = word;
        if (has_state && numbers != nullptr) numbers[slot] = static_cast<u32>(place);
    }
}

// Writes the set of the states in which a condition holds. Adds those in which it has a fault to `faults`, and their number to
// `sweep->added`. `program` is null, or has conditions on a net; then the condition begins there at `number`.
extern "C" __global__ void __launch_bounds__(explore::Chosen::threads, EXPLORE_BLOCKS(explore::Chosen::threads))
mark_condition(warpset::View view, const unsigned* tables, const unsigned* program, unsigned number, explore::Places places,
               const unsigned* states, unsigned* set, unsigned* faults, explore::SetSweep* sweep)
{
    using namespace explore;
    EXPLORE_SHARED_OF_LAUNCH(shared);
    const Table table = warpset::table(view);
    SharedStates state{{reinterpret_cast<u32*>(shared + Chosen::states_at) + threadIdx.x}};
    const u64 stride = u64{gridDim.x} * blockDim.x, end = places.words() * Warp::size;
    for (u64 place = u64{blockIdx.x} * blockDim.x + threadIdx.x; place < end; place += stride) {
        const bool has_state = has_bit(states[place / 32], place);
        const u64 slot = has_state ? places.slot(place) : 0;
        Notes notes;
        bool holds = false;
        if (has_state) {
            set_state(fetch(table, slot), state);
            holds = program != nullptr ? holds_on_net(program, number, state) : holds_condition(tables, number, state, notes);
        }
        const u32 word = Warp::ballot(holds);
        if (Warp::lane() == 0) set[place / 32] = word;
        // Relaxed: they are read after the kernel.
        if (notes.fault != 0) atomicOr(faults + slot / 32, 1u << slot % 32);
        sum_of_warp(notes.fault != 0, &sweep->added);
    }
}

// Writes the members of two sets, or of their complements, among all states.
extern "C" __global__ void join_sets(const unsigned* one, unsigned flip_one, const unsigned* other, unsigned flip_other,
                                     const unsigned* states, explore::u64 words, unsigned* to)
{
    using namespace explore;
    const u64 stride = u64{gridDim.x} * blockDim.x;
    for (u64 at = u64{blockIdx.x} * blockDim.x + threadIdx.x; at < words; at += stride)
        to[at] = (one[at] ^ flip_one) & (other[at] ^ flip_other) & states[at];
}

// Adds the number of members of a set, or of its complement, among all states to `sweep->added`. Blocks of whole warps.
extern "C" __global__ void count_members(const unsigned* set, unsigned flip, const unsigned* states, explore::u64 words,
                                         explore::SetSweep* sweep)
{
    using namespace explore;
    const u64 stride = u64{gridDim.x} * blockDim.x, rounds = (words + stride - 1) / stride;
    for (u64 round = 0; round < rounds; ++round) {
        const u64 at = round * stride + u64{blockIdx.x} * blockDim.x + threadIdx.x;
        sum_of_warp(at < words ? warpset::platform::population_count((set[at] ^ flip) & states[at]) : 0, &sweep->added);
    }
}

// Lists the steps of all states, those of a state one after another. `sweep->steps` must not exceed `steps.room` afterwards.
// Blocks as for `search_levels`.
extern "C" __global__ void __launch_bounds__(explore::Chosen::threads, EXPLORE_BLOCKS(explore::Chosen::threads))
list_steps(warpset::View view, const unsigned* tables, explore::Places places, const unsigned* states, explore::Steps steps,
           explore::SetSweep* sweep)
{
    using namespace explore;
    EXPLORE_SHARED_OF_LAUNCH(shared);
    EXPLORE_SHARED(u64, waiting, 2 * Chosen::threads);
    const Table table = warpset::table(view);
    SharedStates state{{reinterpret_cast<u32*>(shared + Chosen::states_at) + threadIdx.x}};
    u64* const of_warp = waiting + 2 * (threadIdx.x - Warp::lane());
    const auto wants = [&](u64 word) { return states[word]; };
    for_each_wanted(places, &sweep->next, of_warp, wants, [&](bool has, u64 place) {
        const u64 slot = has ? places.slot(place) : 0;
        StepCounter counter;
        sum_of_warp(try_until_decided(table, tables, has, slot, state, counter), &sweep->lost);
        const u32 up_to = Warp::sum_up_to(counter.count), total = Warp::shuffle(up_to, Warp::size - 1);
        u64 begin = 0;
        // Relaxed: ranges only have to differ.
        if (Warp::lane() == 0) begin = fetch_add_relaxed(&sweep->steps, u64{total});
        begin = Warp::shuffle(begin, 0);
        const u64 first = begin + up_to - counter.count;
        const bool writes = has && counter.count != 0 && begin + total <= steps.room;
        if (has) {
            steps.begins[place] = first;
            steps.counts[place] = counter.count;
        }
        StepWriter writer{table, places, writes ? steps.targets + first : nullptr};
        try_until_decided(table, tables, writes, slot, state, writer);
        sum_of_warp(writer.lost, &sweep->lost);
    });
}

// Adds states to a set, each decided by its listed steps. Blocks of at most 256 threads.
extern "C" __global__ void __launch_bounds__(256)
sweep_listed(warpset::View view, explore::Places places, explore::Operator of, explore::Steps steps, explore::SetSweep* sweep)
{
    using namespace explore;
    EXPLORE_SHARED(u64, waiting, 2 * 256);
    const Table table = warpset::table(view);
    u64* const of_warp = waiting + 2 * (threadIdx.x - Warp::lane());
    const auto wants = [&](u64 word) { return undecided(of, word); };
    for_each_wanted(places, &sweep->next, of_warp, wants, [&](bool has, u64 place) {
        Judge judge{table, places, of};
        const u32* const targets = steps.targets + (has ? steps.begins[place] : 0);
        const u32 count = has ? steps.counts[place] : 0;
        for (u32 at = 0; at < count && !judge.is_decided(); ++at) judge.see(targets[at]);
        const bool adds = has && judge.adds();
        if (adds) add(of, place);
        sum_of_warp(adds, &sweep->added);
    });
}

// Adds states to a set, each decided by the successors that its steps give now. Blocks as for `search_levels`.
extern "C" __global__ void __launch_bounds__(explore::Chosen::threads, EXPLORE_BLOCKS(explore::Chosen::threads))
sweep_states(warpset::View view, const unsigned* tables, explore::Places places, explore::Operator of, explore::SetSweep* sweep)
{
    using namespace explore;
    EXPLORE_SHARED_OF_LAUNCH(shared);
    EXPLORE_SHARED(u64, waiting, 2 * Chosen::threads);
    const Table table = warpset::table(view);
    SharedStates state{{reinterpret_cast<u32*>(shared + Chosen::states_at) + threadIdx.x}};
    u64* const of_warp = waiting + 2 * (threadIdx.x - Warp::lane());
    const auto wants = [&](u64 word) { return undecided(of, word); };
    for_each_wanted(places, &sweep->next, of_warp, wants, [&](bool has, u64 place) {
        Judge judge{table, places, of};
        const bool has_fault = try_until_decided(table, tables, has, has ? places.slot(place) : 0, state, judge);
        const bool adds = has && judge.adds();
        if (adds) add(of, place);
        sum_of_warp(adds, &sweep->added);
        sum_of_warp(judge.lost + has_fault, &sweep->lost);
    });
}
