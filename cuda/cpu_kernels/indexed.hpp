// Indexed tables. Each width of up to 16 words has kernels of its own, as in bucket tables.
#pragma once

#include "kernels.hpp"

namespace warpset {

// Tables for widths from `first_width` to `last_width`, and for wider vectors too if `last_width` is more than 16.
template <u32 first_width, u32 last_width>
struct IndexedTables {
    // Calls `use(type)` with a null pointer to the type of indexed tables of vectors of a width.
    template <u32 width_words = first_width, class Use>
    static void with_type(u32 width, u32 slot_bits, Use use)
    {
        if constexpr (width_words < last_width) {
            if (width != width_words) return with_type<width_words + 1>(width, slot_bits, use);
        }
        constexpr u32 static_width = width_words <= 16 ? width_words : 0;
        if (slot_bits == 32)
            use(static_cast<IndexedTable<static_width, 32>*>(nullptr));
        else
            use(static_cast<IndexedTable<static_width, 64>*>(nullptr));
    }

    static void geometry(u32 width, SlotsOf, u32 slot_bits, Geometry* geometry)
    {
        with_type(width, slot_bits, [&](auto* type) {
            *geometry = geometry_of(typename std::remove_pointer_t<decltype(type)>::Layout{}, sizeof(IndexedView));
        });
    }

    template <class Use>
    static void with_table(const View& view, Use use)
    {
        const IndexedView& indexed = view.as<IndexedView>();
        with_type(indexed.rows.width, view.slot_bits, [&](auto* type) { use(std::remove_pointer_t<decltype(type)>::of(indexed)); });
    }
};

// Any width, as a run-time value.
using AnyIndexedTables = IndexedTables<17, 17>;

template <class Tables>
constexpr IndexedKernels indexed_kernels_of()
{
    return {
        kernels_of<Tables, AnyIndexedTables>(),
        [](const View& view, const BatchView& batch, const UpsertView& upsert) {
            const UpsertBatch with_values{batch, upsert};
            Tables::with_table(view, [&](const auto& table) {
                SearchBatch<std::decay_t<decltype(table)>, Operation::FindOrPut>::run_thread(table, with_values);
            });
        },
        [](const View& view, const View& larger, u64 last, BatchCounts* counts) {
            Tables::with_table(view, [&](const auto& old) {
                using Old = std::decay_t<decltype(old)>;
                const IndexedView& to = larger.as<IndexedView>();
                if (larger.slot_bits == 32)
                    rebuild(old, IndexedTable<Old::static_width, 32>::of(to), 0, last, counts);
                else
                    rebuild(old, IndexedTable<Old::static_width, 64>::of(to), 0, last, counts);
            });
        },
        [](const View& view, u64 first, u64 last, u64* holes, u64 capacity, u64* count) {
            AnyIndexedTables::with_table(view, [&](const auto& table) { list_holes(table, first, last, holes, capacity, count); });
        },
        [](const View& view, const RowMove* moves, u64 count) {
            AnyIndexedTables::with_table(view, [&](const auto& table) { move_rows(table, moves, count); });
        },
        [](const View& view, const u64* references, u64 count, u64* invalid) {
            AnyIndexedTables::with_table(view, [&](const auto& table) { count_unstored(table, references, count, invalid); });
        },
    };
}

}  // namespace warpset
