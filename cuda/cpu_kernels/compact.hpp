// Slots of compact tables, and of compact roots.
#pragma once

#include "kernels.hpp"

namespace warpset {

// Calls `use(type)` with a null pointer to the type of compact tables with slots of `slot_bits` bits.
template <class Use>
void with_slots(u32 slot_bits, Use use)
{
    switch (slot_bits) {
        case 16: return use(static_cast<CompactTable<16, 0>*>(nullptr));
        case 32: return use(static_cast<CompactTable<32, 0>*>(nullptr));
        default: return use(static_cast<CompactTable<64, 0>*>(nullptr));
    }
}

// Geometry of a compact table, or of a table whose roots lie in one.
template <class ViewOfKind>
void geometry_of_slots(u32, SlotsOf, u32 slot_bits, Geometry* geometry)
{
    with_slots(slot_bits, [&](auto* type) {
        *geometry = geometry_of(typename std::remove_pointer_t<decltype(type)>::Layout{}, sizeof(ViewOfKind));
    });
}

}  // namespace warpset
