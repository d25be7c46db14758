// Growth of a bucket table by threads that fill the larger table part by part (bucket/growth.cuh).
//
// A thread needs no compare-and-swap, because no other thread uses its part, and it waits for no memory, because the part is in
// its cache. Find-or-put takes the vectors that are left (src/backend/cpu/growth.rs).
//
// Two and four times the slots, ns a vector with EMPTY written last / first, medians of 6 alternating runs of the part filler
// before slices: 1 word 21, 22 / 15, 22; 2 words 29, 41 / 27, 29; 3 words 37, 51 / 32, 51; 5 words 59, 65 / 68, 89; 8 words 70,
// 99 / 70, 86.
//
// Tried and dropped: loops without branches, which write the vectors that are left to a place that no code reads (of 1 to 3
// words 1.4 to 1.7 times as long).
#pragma once

#include "warpset/bucket/growth.cuh"

namespace warpset {

// The vectors of a bucket table that were not put into a larger one: a bit for each slot, the lowest bits first; or, without
// bits, a list of slots.
struct LeftVectors {
    static constexpr u32 slots_per_word = 64;
    u64* bits;
    LeftSlots list;

    // Two parts may read one slice. Relaxed: read after the threads are joined.
    WARPSET_FN void add(u64 slot) const
    {
        if (bits == nullptr) return list.add(slot);
        __atomic_fetch_or(bits + slot / slots_per_word, 1ull << slot % slots_per_word, __ATOMIC_RELAXED);
    }
    WARPSET_FN bool has(u64 slot) const { return bits[slot / slots_per_word] >> slot % slots_per_word & 1; }
};

// Fills a part of the memory of `to`, whatever it holds, with the vectors of `from` that belong there; or, unless `writes`,
// counts them only. Nothing changes `from`, and nothing else uses `to` but threads that fill other parts. Adds those that it
// leaves to `left`. Returns the number of vectors that it has put.
template <class Shape>
WARPSET_FN u64 fill_part(const BucketTable<Shape>& from, const BucketTable<Shape>& to, u64 number, bool writes, LeftVectors left)
{
    u8 counters[GrowthParts<Shape>::most_buckets];
    const GrowthParts<Shape> parts(from, to);
    const auto part = parts.part(number);
    const u64 count = PartFiller<Shape, LeftVectors>{{from, to, parts, part, {counters}, left}, writes}.fill();
    if (writes) platform::add_relaxed(to.view.stored, count);
    return count;
}

// Copies the vectors of slots `first .. last` of `from` that are left, one after another; or, if there is a list, those of its
// entries `first .. last`. Returns their number.
template <class Shape>
WARPSET_CALLED u64 export_left(const BucketTable<Shape>& from, u64 first, u64 last, LeftVectors left, u32* vectors)
{
    u64 count = 0;
    for (u64 at = first; at < last; ++at) {
        if (left.bits != nullptr && !left.has(at)) continue;
        const u64 slot = left.bits != nullptr ? at : left.list.slots[at];
        u32 words[Layout<Shape>::most_slot_words];
        const u32 in_bucket = from.layout.slots_per_bucket();
        if (!from.read_vector(slot / in_bucket, static_cast<u32>(slot % in_bucket), words)) continue;
        for (u32 word = 0; word < from.width(); ++word) vectors[count * from.width() + word] = words[word];
        ++count;
    }
    return count;
}

}  // namespace warpset
