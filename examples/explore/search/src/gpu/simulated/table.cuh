// A read-only table of stored states for tests of kernels: rows of words, whose references are their numbers. It has no put,
// because the kernel of a rank puts nothing.
#pragma once

#include "warpset/core/layout.cuh"
#include "warpset/core/outcome.cuh"

namespace warpset {

struct Table {
    struct View {
        const u32* words;
    };
    static constexpr u32 static_width = WARPSET_WIDTH;
    static constexpr bool is_incremental = false, has_nodes = false;

    const u32* words;

    u32 word(u64 reference, u32 index) const { return words[reference * static_width + index]; }
    template <class Give>
    void read_words(u64 reference, u32 first, u32 step, Give give) const
    {
        for (u32 index = first; index < static_width; index += step) give(index, word(reference, index));
    }
};
using View = Table::View;
inline Table table(const View& view) { return {view.words}; }

// Kernels name these types but do not use them.
template <class Roots, u32 width>
struct TreeTable;
template <u32 slot_bits, u32 key_bits>
struct CompactTable;
enum class Offer { Whole, Incremental };
template <class Table, Operation operation, Offer offer>
struct SearchBatch {
    static constexpr u32 scratch_bytes() { return 0; }
};

}  // namespace warpset
