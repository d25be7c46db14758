// Bucket tables.
#pragma once

#include "kernels.hpp"

namespace warpset {

// Tables of the shapes that `Shapes::with_shape` chooses by the width of a vector and its slots.
template <class Shapes>
struct BucketTablesOf {
    static void geometry(u32 width, SlotsOf slots, u32, Geometry* geometry)
    {
        Shapes::with_shape(width, slots,
                           [&](auto shape) { *geometry = geometry_of(Layout<decltype(shape)>{shape}, sizeof(TableView)); });
    }

    template <class Use>
    static void with_table(const View& view, Use use)
    {
        const TableView& table = view.as<TableView>();
        Shapes::with_shape(table.width, view.slots, [&](auto shape) { use(BucketTable<decltype(shape)>{table, {shape}}); });
    }
};

// Shapes for widths from `first_width` to `last_width`, at most 16 words.
template <u32 first_width, u32 last_width>
struct NarrowShapes {
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
};

// Shapes for wider vectors.
struct WideShapes {
    template <class Use>
    static void with_shape(u32 width, SlotsOf slots, Use use)
    {
        if constexpr (has_chunks_of_16) {
            if (slots.chunk_bytes == 16) {
                switch (slots.words) {
                    case 20: return use(SlotShape<20>{width});
                    case 24: return use(SlotShape<24>{width});
                    case 28: return use(SlotShape<28>{width});
                    case 32: return use(SlotShape<32>{width});
                    case 64: return use(SlotShape<64>{width});
                    default: return use(DynamicShape<16>{width, slots.words});
                }
            }
        }
        use(DynamicShape<8>{width, slots.words});
    }
};

template <u32 first_width, u32 last_width>
using BucketTables = BucketTablesOf<NarrowShapes<first_width, last_width>>;

}  // namespace warpset
