// Converts a structure of arrays to rows. Column c of the arrays holds field c of every vector.
#pragma once

#include "warpset/core/layout.cuh"

namespace warpset {

using u16 = unsigned short;

// Maximum number of columns of one launch.
constexpr u32 max_columns = 256;

// Words `first_word` to `first_word + words` of each row, and the columns that supply their bytes. Mirrored by `ColumnsView` in
// src/layout/columns.rs. The fields of a row are adjacent; zero bytes fill its last word.
struct ColumnsView {
    const u8* fields[max_columns];     // by column: its first field
    u32* vectors;                      // count x width words, row-major
    u64 count;
    u32 first_word;
    u32 words;
    u32 columns;                       // at most max_columns
    u16 starts[max_columns + 1];       // by column: the first byte of its field in a row; last, the end of the last field
    u8 units[max_columns];             // 4, 2 or 1: divides the address of the fields, their size and their start
    u8 first_columns[max_columns];     // by word, from first_word on: the first column with bytes of it
};

static_assert(sizeof(ColumnsView) == 3104, "the size of `ColumnsView` in src/layout/columns.rs");

// Returns word `word` of a row. No unit of a field spans two words, because units are also aligned within the row.
WARPSET_FN u32 word_of_columns(const ColumnsView& view, u64 row, u32 word)
{
    u32 value = 0, byte = 4 * word, column = view.first_columns[word - view.first_word];
    while (byte < 4 * word + 4 && column < view.columns) {
        const u32 start = view.starts[column], end = view.starts[column + 1], unit = view.units[column];
        const u8* from = view.fields[column] + row * (end - start) + (byte - start);
        const u32 read = unit == 4   ? *reinterpret_cast<const u32*>(from)
                         : unit == 2 ? *reinterpret_cast<const u16*>(from)
                                     : *from;
        value |= read << 8 * (byte % 4);
        byte += unit;
        column += byte == end;
    }
    return value;
}

// Neighbouring threads write neighbouring words and read neighbouring fields of each column, so their accesses share requests.
template <u32 width>
WARPSET_FN void gather_columns(const ColumnsView& view)
{
    const auto share = platform::Grid::share(view.count * width);
    for (u64 at = share.first; at < share.last; at += share.step) {
        const u32 word = static_cast<u32>(at % width);
        if (word - view.first_word < view.words) view.vectors[at] = word_of_columns(view, at / width, word);
    }
}

}  // namespace warpset
