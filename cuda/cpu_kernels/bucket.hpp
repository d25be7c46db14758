// Bucket tables of up to 16 words a vector.
#pragma once

#include "kernels.hpp"

namespace warpset {

template <u32 first_width, u32 last_width>
struct BucketTables {
    // Calls `use(shape)` with the shape for a width. Lines are those of `Spec::bucket`. Slots of 3 to 16 words are claimed by 8
    // bytes (src/backend/cpu/claims.rs).
    template <u32 width_words = first_width, class Use>
    static void with_shape(u32 width, SlotsOf slots, Use use)
    {
        if constexpr (width_words < last_width) {
            if (width != width_words) return with_shape<width_words + 1>(width, slots, use);
        }
        if constexpr (width_words <= 2 && has_chunks_of_16) {
            if (slots.chunk_bytes == 16) return use(StaticShape<width_words, 16, 32>{});
        }
        use(StaticShape<width_words, 8, 64>{});
    }

    static void geometry(u32 width, SlotsOf slots, u32, Geometry* geometry)
    {
        with_shape(width, slots, [&](auto shape) { *geometry = geometry_of(Layout<decltype(shape)>{shape}, sizeof(TableView)); });
    }

    template <class Use>
    static void with_table(const View& view, Use use)
    {
        const TableView& table = view.as<TableView>();
        with_shape(table.width, view.slots, [&](auto shape) { use(BucketTable<decltype(shape)>{table, {shape}}); });
    }
};

}  // namespace warpset
