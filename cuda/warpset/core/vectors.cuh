// Views of a vector in memory, as tables and hash functions read it.
//
// In a view, `word(i)` returns word i; `pair(i)` returns words i and i + 1 as one 64-bit value, the first in the low half;
// `read(i, chunk)` fills the chunk with the words from i on. `is_padded`: zeros follow the last word, up to the end of a padded
// slot (core/layout.cuh).
#pragma once

#include "warpset/platform.cuh"

namespace warpset {

// A vector anywhere in memory, aligned only to its words.
struct WordVector {
    static constexpr bool is_padded = false;
    const u32* words;

    WARPSET_FN u32 word(u32 index) const { return words[index]; }
    WARPSET_FN u64 pair(u32 index) const { return platform::load_pair(words + index); }
    WARPSET_FN void read(u32 index, u32& chunk) const { chunk = word(index); }
    WARPSET_FN void read(u32 index, u64& chunk) const { chunk = pair(index); }
    WARPSET_FN void read(u32 index, u128& chunk) const { chunk = {pair(index), pair(index + 2)}; }
};

// A vector in which each chunk is aligned to the chunk's size, as in a warp's scratch memory.
struct AlignedVector {
    static constexpr bool is_padded = true;
    const u32* words;

    WARPSET_FN u32 word(u32 index) const { return words[index]; }
    WARPSET_FN u64 pair(u32 index) const { return *reinterpret_cast<const u64*>(words + index); }
    template <class Chunk>
    WARPSET_FN void read(u32 index, Chunk& chunk) const
    {
        chunk = *reinterpret_cast<const Chunk*>(words + index);
    }
};

// Address of the vector's words if its type guarantees that they are adjacent in memory; otherwise null.
template <class Vector>
WARPSET_FN constexpr const u32* words_of(const Vector&)
{
    return nullptr;
}
WARPSET_FN constexpr const u32* words_of(const WordVector& vector) { return vector.words; }

}  // namespace warpset
