// Gathers the values of given rows of an indexed table for the host, and scatters them back.
//
// Values are bytes here, copied in the largest units that divide their size. The lanes of a warp take neighbouring units, so the
// units of one value, and of values with neighbouring row numbers, share a request.
#pragma once

#include "warpset/core/batch_view.cuh"

namespace warpset {

// packed[i] = values[references[i]], for i < count. A value has `units` units.
template <class Unit>
WARPSET_FN void gather_units(const Unit* values, u64 units, const u64* references, u64 count, Unit* packed)
{
    const auto share = platform::Grid::share(count * units);
    for (u64 at = share.first; at < share.last; at += share.step)
        packed[at] = values[(references[at / units] & slot_mask) * units + at % units];
}

// values[references[i]] = packed[i]. No two of the references are equal.
template <class Unit>
WARPSET_FN void scatter_units(Unit* values, u64 units, const u64* references, u64 count, const Unit* packed)
{
    const auto share = platform::Grid::share(count * units);
    for (u64 at = share.first; at < share.last; at += share.step)
        values[(references[at / units] & slot_mask) * units + at % units] = packed[at];
}

// Calls `use(unit)` with a unit whose size divides that of a value.
template <class Use>
WARPSET_FN void with_unit(u64 value_bytes, Use use)
{
    if (value_bytes % 8 == 0) use(u64{});
    else if (value_bytes % 4 == 0) use(u32{});
    else use(u8{});
}

WARPSET_FN void gather_values(const u8* values, u64 value_bytes, const u64* references, u64 count, u8* packed)
{
    with_unit(value_bytes, [&](auto unit) {
        using Unit = decltype(unit);
        const Unit* from = reinterpret_cast<const Unit*>(values);
        gather_units(from, value_bytes / sizeof(Unit), references, count, reinterpret_cast<Unit*>(packed));
    });
}

WARPSET_FN void scatter_values(u8* values, u64 value_bytes, const u64* references, u64 count, const u8* packed)
{
    with_unit(value_bytes, [&](auto unit) {
        using Unit = decltype(unit);
        Unit* to = reinterpret_cast<Unit*>(values);
        scatter_units(to, value_bytes / sizeof(Unit), references, count, reinterpret_cast<const Unit*>(packed));
    });
}

}  // namespace warpset
