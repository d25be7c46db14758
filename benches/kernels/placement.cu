// The placement-only kernel: the cost of find-or-put if each vector's slot were known.
//
// For each vector: read it, read its slot, compare; if it is new, claim the slot with one compare-and-swap on its first unit and
// store the rest; write the outcome. No hash, no probing, no chain: any find-or-put needs at least these accesses. Slots lie one
// after another, a tile of lanes reads a slot in one request, and each tile has IN_FLIGHT vectors under way.
#include "warpset/platform.cuh"

using namespace warpset;

constexpr u32 width = WARPSET_WIDTH;
constexpr u32 unit_words = width % 4 == 0 && WARPSET_CHUNK_BYTES == 16 ? 4 : width % 2 == 0 ? 2 : 1;
template <u32 words> struct UnitOf;
template <> struct UnitOf<1> { using Type = u32; };
template <> struct UnitOf<2> { using Type = u64; };
template <> struct UnitOf<4> { using Type = u128; };
using Unit = UnitOf<unit_words>::Type;
constexpr u32 units = width / unit_words;

constexpr u32 tile_for(u32 n)
{
    u32 tile = 1;
    while (tile < n && tile < 32) tile *= 2;
    return tile;
}
constexpr u32 tile = tile_for(units), rows = (units + tile - 1) / tile, in_flight = rows > 1 ? 1 : 4;

__device__ bool is_zero(u32 x) { return x == 0; }
__device__ bool is_zero(u64 x) { return x == 0; }
__device__ bool is_zero(u128 x) { return x == u128{0, 0}; }

// numbers[i]: the slot number of vector i; top bit set: the vector is new. `slots` is zero where new vectors go.
extern "C" __global__ void __launch_bounds__(256)
placement_only(Unit* slots, const u64* numbers, const Unit* vectors, u64 count, unsigned char* outcomes)
{
    const u32 lane = threadIdx.x % tile;
    const u64 first = platform::Grid::thread() / tile, step = platform::Grid::threads() / tile;
    for (u64 start = first; start < count; start += step * in_flight) {
        u64 number[in_flight];
        Unit vector[in_flight][rows], slot[in_flight][rows];
#pragma unroll
        for (u32 i = 0; i < in_flight; ++i) {
            u64 at = start + i * step;
            if (at >= count) continue;
            number[i] = numbers[at];
#pragma unroll
            for (u32 r = 0; r < rows; ++r)
                if (r * tile + lane < units) vector[i][r] = platform::load_input(vectors + at * units + r * tile + lane);
        }
#pragma unroll
        for (u32 i = 0; i < in_flight; ++i) {
            if (start + i * step >= count) continue;
            const Unit* from = slots + (number[i] & ~(1ull << 63)) * units;
#pragma unroll
            for (u32 r = 0; r < rows; ++r)
                if (r * tile + lane < units) slot[i][r] = platform::load_relaxed(from + r * tile + lane);
        }
#pragma unroll
        for (u32 i = 0; i < in_flight; ++i) {
            u64 at = start + i * step;
            if (at >= count) continue;
            Unit* to = slots + (number[i] & ~(1ull << 63)) * units;
            bool same = true;
#pragma unroll
            for (u32 r = 0; r < rows; ++r)
                if (r * tile + lane < units) same &= slot[i][r] == vector[i][r];
            if (number[i] >> 63) {
#pragma unroll
                for (u32 r = 0; r < rows; ++r) {
                    if (r * tile + lane >= units) continue;
                    if (r == 0 && lane == 0) same |= is_zero(platform::compare_and_swap_relaxed(to, Unit{}, vector[i][r]));
                    else to[r * tile + lane] = vector[i][r];
                }
            }
            if (lane == 0) outcomes[at] = same ? 1 : 2;
        }
    }
}
