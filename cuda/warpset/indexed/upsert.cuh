// Upserts: a batch puts vectors into an indexed table and changes the values beside their rows.
//
// Each vector of the batch that is New or Seen combines its operand with the value of its row, exactly once. A vector that is
// Full combines nothing, so a caller that offers it again offers its operand again.
//
// Combining is one atomic addition, one store, or a loop of compare-and-swaps. A compare-and-swap fails only if another thread
// has changed the value. All are relaxed: nothing is read because of a value before the kernel has ended, or the threads have
// been joined. The row needs no order either: all values have memory and their initial content before the kernel begins.
#pragma once

#include "warpset/core/batch_view.cuh"

namespace warpset {

// Mirrored by `Combine` in src/layout/upsert.rs.
enum class Combine : u32 { Add, Min, Max, Set };

// Type of the values. Mirrored by `Kind` in src/layout/upsert.rs.
enum class NumberKind : u32 { U32, I32, F32, U64, I64, F64 };

// Mirrored by `UpsertView` in src/layout/view.rs.
struct UpsertView {
    u8* values;          // by row number, for all rows that the table can give
    const u8* operands;  // by position in the batch, or one for the whole batch
    u32 is_one;          // 1: one operand for the whole batch
    NumberKind kind;
    Combine combine;
    u32 unused;
};

// Reinterprets the bits of a value as another type of the same size.
template <class To, class From>
WARPSET_FN To with_bits_of(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bits of one size");
    union {
        From from;
        To to;
    } bits{from};
    return bits.to;
}

// Combines a value with an operand. Min and Max leave the value unchanged if the operand is NaN.
template <class Value>
WARPSET_FN Value combined(Combine combine, Value value, Value operand)
{
    switch (combine) {
        case Combine::Add: return value + operand;
        case Combine::Min: return operand < value ? operand : value;
        case Combine::Max: return value < operand ? operand : value;
        default: return operand;
    }
}

template <class Value, class Bits>
WARPSET_FN void combine_by_swaps(Bits* at, Value operand, Combine combine)
{
    Bits seen = platform::load_relaxed(at);
    while (true) {
        const Bits wanted = with_bits_of<Bits>(combined(combine, with_bits_of<Value>(seen), operand));
        if (wanted == seen) return;
        const Bits before = platform::compare_and_swap_relaxed(at, seen, wanted);
        if (before == seen) return;
        seen = before;
    }
}

// Combines element `index` of `operands`, as a `Value`, with element `row` of `values`.
template <class Value, class Bits>
WARPSET_FN void combine_as(const UpsertView& upsert, u64 index, u64 row)
{
    const Bits operand = platform::load_input(reinterpret_cast<const Bits*>(upsert.operands) + index);
    Bits* at = reinterpret_cast<Bits*>(upsert.values) + row;
    // Sums of signed and unsigned integers have the same bits.
    constexpr bool is_float = static_cast<Value>(0.5f) != 0;
    if (upsert.combine == Combine::Set) return platform::store_relaxed(at, operand);
    if (!is_float && upsert.combine == Combine::Add) return platform::add_relaxed(at, operand);
    combine_by_swaps<Value>(at, with_bits_of<Value>(operand), upsert.combine);
}

// A batch whose vectors combine operands with values.
struct UpsertBatch : BatchView {
    UpsertView upsert;

    // See `BatchView::combine`.
    WARPSET_FN void combine(u64 index, u64 reference) const
    {
        const u64 row = reference & slot_mask, operand = upsert.is_one != 0 ? 0 : index;
        switch (upsert.kind) {
            case NumberKind::U32: return combine_as<u32, u32>(upsert, operand, row);
            case NumberKind::I32: return combine_as<int, u32>(upsert, operand, row);
            case NumberKind::F32: return combine_as<float, u32>(upsert, operand, row);
            case NumberKind::U64: return combine_as<u64, u64>(upsert, operand, row);
            case NumberKind::I64: return combine_as<long long, u64>(upsert, operand, row);
            case NumberKind::F64: return combine_as<double, u64>(upsert, operand, row);
        }
    }
};

}  // namespace warpset
