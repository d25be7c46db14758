// One level of a breadth-first search over the states of a sliding-tile puzzle: a user-written kernel that calls find-or-put.
//
// The graph is never in memory. Each thread takes one state of the level, computes its successors in registers, and offers each
// to the table. If many threads offer the same state, in this launch or another, exactly one of them gets the outcome New; that
// thread appends the state to the next level. So no level holds a state twice, without a lock, a sort or a second pass.
//
// A kernel uses the table like this:
//   - `#include "warpset/table.cuh"` declares `warpset::Table`, the type of the table that this source is compiled for
//     (`BucketTable::compile` in Rust); WARPSET_WIDTH is its width in words. No other header is needed, and NVRTC has none
//     of the system's at hand.
//   - The kernel takes a `warpset::TableView` by value. The view holds addresses and sizes and owns nothing; each launch gets a
//     copy. It is valid until the table grows or is dropped: take a new one after each growth (`BucketTable::kernel_argument`).
//   - Any thread may call `find_or_put` at any time, also in divergent code, because no thread waits for another in it. Other
//     kernels and the host may use the table at the same time, but must not clear it or make it grow.
//   - A New state is stored when the call returns. Launches on one stream run one after the other, and each sees all that the
//     ones before it wrote, in the table and in buffers. Within a launch, threads see each other's states in the table (they
//     get the outcome Seen), but nothing else is ordered: a level is therefore read by the launch after the one that wrote it.
#include "warpset/table.cuh"

using warpset::u32;
using warpset::u64;

static_assert(WARPSET_WIDTH == 2, "a state is two words");

constexpr u32 directions = 4;
constexpr u32 nowhere = ~0u;

// The tile on cell c, in rows from the top left, is bits 4c .. 4c + 3 of a state; 0 is the blank.
using State = u64;

// As in main.rs, where the same functions are in Rust.
struct Puzzle {
    u32 rows, columns;

    __device__ u32 blank(State state) const
    {
        u32 cell = 0;
        while ((state >> 4 * cell & 15) != 0) ++cell;
        return cell;
    }

    // The cell beside another: above, below, left, right; `nowhere` beyond the edge.
    __device__ u32 neighbour(u32 cell, u32 direction) const
    {
        const u32 row = cell / columns, column = cell % columns;
        switch (direction) {
            case 0: return row > 0 ? cell - columns : nowhere;
            case 1: return row + 1 < rows ? cell + columns : nowhere;
            case 2: return column > 0 ? cell - 1 : nowhere;
            default: return column + 1 < columns ? cell + 1 : nowhere;
        }
    }
};

// The state after the tile on cell `from` has slid onto the blank: its bits are cleared there and set here.
__device__ State slide(State state, u32 from, u32 blank)
{
    const u64 tile = state >> 4 * from & 15;
    return state ^ tile << 4 * from ^ tile << 4 * blank;
}

// Counts of a level's successors. main.rs has the same struct.
struct Expanded {
    u64 new_states;  // appended to the next level
    u64 rejected;    // the table had no room for them: the search is not complete
};

static_assert(sizeof(Puzzle) == 8 && sizeof(Expanded) == 16, "the sizes in main.rs");

// Appends the states of the lanes that pass `is_new` to `next`, with one atomic addition per warp instead of one per state. All
// lanes of a warp must call it together.
__device__ void append(bool is_new, State state, State* next, Expanded* expanded)
{
    const u32 lanes = __ballot_sync(~0u, is_new), lane = threadIdx.x % 32;
    if (lanes == 0) return;
    const u32 leader = __ffs(lanes) - 1;
    u64 first = 0;
    // Relaxed, as atomicAdd is: the indices must differ and nothing more. The states are read after the launch has ended.
    if (lane == leader) first = atomicAdd(&expanded->new_states, __popc(lanes));
    first = __shfl_sync(~0u, first, leader);
    if (is_new) next[first + __popc(lanes & ((1u << lane) - 1))] = state;
}

// Offers the successors of the `length` states of `level` to the table. Appends the new ones to `next`, which has room for
// `directions` times `length` states, and counts in `expanded`, which must be zero before the launch.
// Launched with one thread per state, in one dimension, in blocks of 256 threads. The last threads may have no state.
extern "C" __global__ void __launch_bounds__(256)
expand(warpset::TableView view, Puzzle puzzle, const State* level, u64 length, State* next, Expanded* expanded)
{
    const warpset::Table table = warpset::table(view);
    const u64 thread = blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x;
    const bool has_state = thread < length;  // a thread without a state does not return, because all lanes call `append`
    const State state = has_state ? level[thread] : 0;
    const u32 blank = puzzle.blank(state);

#pragma unroll 1  // the code of one find-or-put, not of four
    for (u32 direction = 0; direction < directions; ++direction) {
        const u32 from = puzzle.neighbour(blank, direction);
        State successor = 0;
        bool is_new = false;
        if (has_state && from != nowhere) {
            successor = slide(state, from, blank);
            // The vector of a state: its words, in the order in which the host sees them in a u64.
            const u32 words[WARPSET_WIDTH] = {static_cast<u32>(successor), static_cast<u32>(successor >> 32)};
            // `found.reference` is the state's slot. A search whose states are longer than the 8 bytes of a reference would keep
            // references in its levels, and read words back with `table.word(reference, index)`.
            const warpset::Found found = table.find_or_put(warpset::WordVector{words});
            is_new = found.outcome == warpset::Outcome::New;
            if (found.outcome == warpset::Outcome::Full) atomicAdd(&expanded->rejected, 1);
        }
        append(is_new, successor, next, expanded);
    }
}
