// Figures of a net over all states of a table (survey.rs), computed where the states are.
//
// Each thread reads the state of one slot at a time. All threads of a warp go through the same tests, so one lane adds the number
// of lanes in which a transition is enabled. A block collects its figures in shared memory, as far as they fit, and adds them to
// those of all blocks when it ends.
//
// `plan` has the tests, as gpu/survey.rs writes them. It begins with the numbers of groups, firings, sums, number fields and
// shared fields. Then it says where the groups, the offsets of firings, the offsets of sums, the number fields and the shared
// fields begin, and how many values the shared fields have.

namespace explore {

using warpset::u32;
using warpset::u64;
using Warp = warpset::platform::Warp;

constexpr u32 words = WARPSET_WIDTH;

// Figures that a block collects in shared memory: 16 KiB, so that several blocks fit a multiprocessor.
constexpr u32 of_block = 2048;

struct Plan {
    const u32* at;

    __device__ u32 groups() const { return at[0]; }
    __device__ u32 firings() const { return at[1]; }
    __device__ u32 sums() const { return at[2]; }
    __device__ u32 numbers() const { return at[3]; }
    __device__ u32 codes() const { return at[4]; }
    __device__ const u32* group(u32 i) const { return at + at[5] + 6 * i; }
    __device__ const u32* firing(u32 i) const { return at + at[at[6] + i]; }
    __device__ const u32* sum(u32 i) const { return at + at[at[7] + i]; }
    __device__ const u32* number(u32 i) const { return at + at[8] + 3 * i; }
    __device__ const u32* code(u32 i) const { return at + at[9] + 4 * i; }

    // Figures: the number of states and the firings are added up; the others are maxima.
    __device__ u32 first_maximum() const { return 1 + firings(); }
    __device__ u32 first_number() const { return first_maximum() + sums(); }
    __device__ u32 first_code() const { return first_number() + 2 * numbers(); }
    __device__ u32 figures() const { return first_code() + at[10]; }
};

// Figures of a block in shared memory and, from figure `of_block` on, those of all blocks in device memory. All accesses are
// relaxed. Their scope is the GPU, because some figures belong to all blocks. No other data are read because of a figure. The
// figures of a block are read after a barrier, all others after the kernel.
struct Figures {
    u64* block;
    u64* all;

    __device__ u64* at(u32 figure) const { return (figure < of_block ? block : all) + figure; }
    // Called by one lane.
    __device__ void add(u32 figure, u64 more) const
    {
        atomicAdd(reinterpret_cast<unsigned long long*>(at(figure)), static_cast<unsigned long long>(more));
    }
    // An old value costs only an atomic access, because figures never become smaller.
    __device__ void raise(u32 figure, u64 value) const
    {
        u64* const most = at(figure);
        if (*static_cast<volatile u64*>(most) < value)
            atomicMax(reinterpret_cast<unsigned long long*>(most), static_cast<unsigned long long>(value));
    }
};

// All threads of the warp must call it. `has_state`: whether this thread has a state; `state` is not read otherwise.
__device__ void survey_state(const Plan& plan, const Figures& figures, bool has_state, const u32* state)
{
    const bool counts = Warp::lane() == 0;
    const u32 states = Warp::ballot(has_state);
    if (states == 0) return;
    if (counts) figures.add(0, warpset::platform::population_count(states));
    for (u32 i = 0; i < plan.groups(); ++i) {
        const u32* const group = plan.group(i);
        const u32 part = has_state ? state[group[0]] & group[1] : 0;
        const bool is_marked = has_state && (group[3] ? part == group[2] : part >= group[2]);
        if (!Warp::any(is_marked)) continue;
        for (u32 firing = group[4]; firing < group[5]; ++firing) {
            const u32 enabled = Warp::ballot(is_marked && is_enabled(plan.firing(firing), state));
            if (counts && enabled != 0) figures.add(1 + firing, warpset::platform::population_count(enabled));
        }
    }
    if (!has_state) return;
    for (u32 i = 0; i < plan.sums(); ++i) figures.raise(plan.first_maximum() + i, value_of(plan.sum(i), state));
    for (u32 i = 0; i < plan.numbers(); ++i) {
        const u32* const at = plan.number(i);
        const u32 tokens = state[at[0]] >> at[1] & at[2];
        figures.raise(plan.first_number() + 2 * i, static_cast<u32>(~tokens));  // the complement of the least number
        figures.raise(plan.first_number() + 2 * i + 1, tokens);
    }
    for (u32 i = 0; i < plan.codes(); ++i) {
        const u32* const at = plan.code(i);
        figures.raise(plan.first_code() + at[3] + (state[at[0]] >> at[1] & at[2]), 1);
    }
}

}  // namespace explore

// Adds the figures of the states in slots first .. last to `all`. A launch has blocks of whole warps, and any number of them.
// Nothing may change the table meanwhile.
extern "C" __global__ void __launch_bounds__(256)
survey_states(warpset::View view, const unsigned* plan_words, unsigned long long first, unsigned long long last,
              warpset::u64* all)
{
    using namespace explore;
    __shared__ u64 block[of_block];
    const auto table = warpset::table(view);
    const Plan plan{plan_words};
    const Figures figures{block, all};
    for (u32 i = threadIdx.x; i < of_block; i += blockDim.x) block[i] = 0;
    __syncthreads();
    const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
    // Equal in all lanes of a warp.
    u64 warp_start = first + static_cast<u64>(blockIdx.x) * blockDim.x + (threadIdx.x - Warp::lane());
    for (; warp_start < last; warp_start += threads) {
        const u64 slot = warp_start + Warp::lane();
        const bool has_state = slot < last && table.holds(slot);
        u32 state[words];
        if (has_state) table.read_words(slot, 0, 1, [&](u32 word, u32 value) { state[word] = value; });
        survey_state(plan, figures, has_state, state);
    }
    __syncthreads();
    const u32 end = plan.figures() < of_block ? plan.figures() : of_block;
    for (u32 i = threadIdx.x; i < end; i += blockDim.x) {
        if (block[i] == 0) continue;
        if (i < plan.first_maximum())
            warpset::platform::add_relaxed(all + i, block[i]);
        else
            warpset::platform::max_relaxed(all + i, block[i]);
    }
}
