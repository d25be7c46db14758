// Searches of indexed tables.
#pragma once

#include "kernels.hpp"

namespace warpset {

// Tables for widths from `first_width` to `last_width`; width 0 stands for any width, as a run-time value.
template <u32 first_width, u32 last_width>
struct IndexedTables {
    // Calls `use(table)` with the table of a view.
    template <u32 width_words = first_width, class Use>
    static void with_table(const View& view, Use use)
    {
        const IndexedView& indexed = view.as<IndexedView>();
        if constexpr (width_words < last_width) {
            if (indexed.rows.width != width_words) return with_table<width_words + 1>(view, use);
        }
        if (view.slot_bits == 32)
            use(IndexedTable<width_words, 32>::of(indexed));
        else
            use(IndexedTable<width_words, 64>::of(indexed));
    }
};

using AnyIndexedTables = IndexedTables<0, 0>;

}  // namespace warpset
