// Rates of the memory accesses that find-or-put cannot avoid: reads of random slots, and claims of EMPTY ones in random order.
//
// Nothing else is done: no vector is read or compared, and no slot is looked for. A tile of lanes accesses a slot by one request,
// a chunk a lane, and each tile has `in_flight` slots under way. The text of mix.cuh precedes this one.
#include "warpset/platform.cuh"

using namespace warpset;

constexpr u32 words = WARPSET_SLOT_WORDS;
constexpr u32 unit_words = words % 4 == 0 && WARPSET_CHUNK_BYTES == 16 ? 4 : words % 2 == 0 ? 2 : 1;
template <u32 words> struct UnitOf;
template <> struct UnitOf<1> { using Type = u32; };
template <> struct UnitOf<2> { using Type = u64; };
template <> struct UnitOf<4> { using Type = u128; };
using Unit = UnitOf<unit_words>::Type;
constexpr u32 units = words / unit_words;

constexpr u32 tile_for(u32 n)
{
    u32 tile = 1;
    while (tile < n && tile < 32) tile *= 2;
    return tile;
}
constexpr u32 tile = tile_for(units), rows = (units + tile - 1) / tile, in_flight = rows > 1 ? 1 : 4;

__device__ u64 bits_of(u64 unit) { return unit; }
__device__ u64 bits_of(u128 unit) { return unit.low ^ unit.high; }

template <u32 words> __device__ typename UnitOf<words>::Type one() { return 1; }
template <> __device__ u128 one<4>() { return {1, 1}; }

// Calls `access(unit)` for each unit of slot `slot_of(i)`, for each i below `accesses`. Returns all bits of what that returned.
template <class SlotOf, class Access>
__device__ u64 bits_seen(Unit* slots, u64 accesses, SlotOf slot_of, Access access)
{
    const u32 lane = threadIdx.x % tile;
    const u64 first = platform::Grid::thread() / tile, step = platform::Grid::threads() / tile;
    u64 seen = 0;
    for (u64 start = first; start < accesses; start += step * in_flight) {
        Unit unit[in_flight][rows] = {};
#pragma unroll
        for (u32 i = 0; i < in_flight; ++i) {
            if (start + i * step >= accesses) continue;
            Unit* const slot = slots + slot_of(start + i * step) * units;
#pragma unroll
            for (u32 r = 0; r < rows; ++r)
                if (r * tile + lane < units) unit[i][r] = access(slot + r * tile + lane);
        }
#pragma unroll
        for (u32 i = 0; i < in_flight; ++i)
#pragma unroll
            for (u32 r = 0; r < rows; ++r) seen |= bits_of(unit[i][r]);
    }
    return seen;
}

// Reads `accesses` random slots of `count`. All must be zero; otherwise `*other` is not 0 afterwards.
extern "C" __global__ void __launch_bounds__(256) read_slots(Unit* slots, u64 count, u64 accesses, u64* other)
{
    const auto slot_of = [&](u64 i) { return platform::high_product(mix(i), count); };
    const auto read = [](const Unit* unit) { return platform::load_relaxed(unit); };
    if (bits_seen(slots, accesses, slot_of, read) != 0) *other = 1;
}

// Claims `accesses` different slots of `count`, at least as many, in an order that looks random. Each unit of a slot takes a
// compare-and-swap, and all succeed if the slots are zero at first. Otherwise `*other` is not 0 afterwards.
extern "C" __global__ void __launch_bounds__(256) claim_slots(Unit* slots, u64 count, u64 accesses, u64* other)
{
    // A permutation of the numbers below a power of two, applied until a number is below `count`.
    const u32 bits = 64 - __clzll(count - 1), half = (bits + 1) / 2;
    const u64 mask = (1ull << bits) - 1;
    const auto slot_of = [&](u64 i) {
        do {
            i = (i * 0xBF58476D1CE4E5B9ull) & mask;
            i = ((i ^ i >> half) * 0x94D049BB133111EBull) & mask;
            i ^= i >> half;
        } while (i >= count);
        return i;
    };
    const auto claim = [](Unit* unit) { return platform::compare_and_swap_relaxed(unit, Unit{}, one<unit_words>()); };
    if (bits_seen(slots, accesses, slot_of, claim) != 0) *other = 1;
}
