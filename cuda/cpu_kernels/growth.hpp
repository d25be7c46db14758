// Growth of a bucket table by threads that fill the larger table part by part.
//
// The first bucket of a vector is its hash, scaled to the number of buckets (core/probe.cuh). So vectors that are close
// together in a table are close together in a larger one, and the vectors of a part of the table fill the same part of the
// larger one, as far as they are in their first buckets. One thread writes a part. It needs no compare-and-swap, because no
// other thread uses the part. It compares no vectors, because those of a table are distinct. (A file that somebody changed may
// hold one twice; then both stay.) It waits for no memory, because the part is in its cache. It counts the slots that it fills.
// It writes EMPTY to the others, or to all before.
//
// `fill_part` leaves a vector in the table if its first bucket is in another part (its search has passed over full buckets), or
// has no free slot, or if there are slots that may not hold it. When all parts are filled, find-or-put takes these
// (src/backend/cpu/growth.rs): about one in eight of a table that is 0.85 full and has eight slots a bucket.
//
// Nanoseconds for each vector of a table that is 0.85 full and doubles, by a program that calls these functions, one thread of a
// Xeon that did other work, too: 21 for vectors of 1 word, 32 of 2, 37 of 3, 56 of 5, 77 of 8. Writing EMPTY everywhere,
// exporting and find-or-put took 37, 43, 74, 92 and 108.
//
// Since then vectors of up to 4 words are put after EMPTY is written, not before. Two and four times the slots, ns with EMPTY
// last / first, medians of 6 alternating runs on another machine: 1 word 21, 22 / 15, 22; 2 words 29, 41 / 27, 29; 3 words 37,
// 51 / 32, 51; 5 words 59, 65 / 68, 89; 8 words 70, 99 / 70, 86.
//
// Tried and dropped: loops without branches, which write the vectors that are left to a place that no code reads (of 1 to 3
// words 1.4 to 1.7 times as long); parts of 64 KiB (more vectors are left, 0.19 instead of 0.12 of 3 words).
//
// A vector that `fill_part` puts is in the first slot of its walk that no other vector has. So all slots of the walk before
// that one are decided for other vectors, which is invariant 3 of core/claim.cuh.
#pragma once

#include "warpset/bucket/table.cuh"

namespace warpset {

// The vectors of a bucket table that were not put into a larger one: a bit for each slot, the lowest bits first.
struct LeftVectors {
    static constexpr u32 slots_per_word = 64;
    u64* bits;

    WARPSET_FN void add(u64 slot) const { bits[slot / slots_per_word] |= 1ull << slot % slots_per_word; }
    WARPSET_FN bool has(u64 slot) const { return bits[slot / slots_per_word] >> slot % slots_per_word & 1; }
};

// The parts of a bucket table that are filled one by one: whole blocks, which fit a core's cache.
template <class Shape>
struct Parts {
    static constexpr u32 part_bytes = 256 << 10, least_bucket_bytes = 32;
    static constexpr u32 most_buckets = part_bytes / least_bucket_bytes;

    u64 blocks;  // of the table; the last block may have slots that only pad it
    u64 count;

    WARPSET_FN explicit Parts(const BucketTable<Shape>& table)
    {
        // Slots of a shape for several widths are longer than a line.
        if constexpr (Shape::static_width != 0) {
            constexpr Layout<Shape> layout{};
            static_assert(layout.block_bytes() >= least_bucket_bytes * layout.buckets_per_block(),
                          "a part has at most `most_buckets`");
        }
        const u64 buckets = table.layout.buckets_per_block();
        blocks = (table.view.buckets + buckets - 1) / buckets;
        const u64 most_blocks = part_bytes / table.layout.block_bytes();
        count = (blocks + most_blocks - 1) / most_blocks;
    }

    // `all` * `part` / `count`, rounded down, without the product, which may have more than 64 bits.
    WARPSET_FN u64 share(u64 all, u64 part) const { return all / count * part + all % count * part / count; }

    WARPSET_FN u64 first_block(u64 part) const { return share(blocks, part); }
};

// Fills part `part` of the memory of `to`, whatever it holds, with vectors of the same part of `from`, which nothing changes.
// Nothing else uses `to` but threads that fill other parts. Adds the vectors that it leaves to `left`, whose bits for these
// slots are 0. Returns the number of vectors that it has put.
template <class Shape>
WARPSET_FN u64 fill_part(const BucketTable<Shape>& from, const BucketTable<Shape>& to, u64 part, LeftVectors left)
{
    const auto& layout = to.layout;
    const u32 slots = layout.slots_per_bucket(), chunks = layout.chunks();
    const Parts<Shape> parts(to);
    const u64 first = parts.first_block(part) * layout.buckets_per_block(),
              last = parts.first_block(part + 1) * layout.buckets_per_block();
    // Whole words of `left`.
    const auto first_of = [&](u64 of) {
        if (of == parts.count) return from.view.buckets;
        return parts.share(from.view.buckets, of) / LeftVectors::slots_per_word * LeftVectors::slots_per_word;
    };
    const u64 from_end = first_of(part + 1);
    u8 taken[Parts<Shape>::most_buckets] = {};  // slots of each bucket of the part
    const auto clear = [&] {
        for (u64 bucket = first; bucket < last; ++bucket)
            for (u32 index = taken[bucket - first]; index < slots; ++index) to.clear_slot(bucket, index);
    };
    // Faster for short vectors, slower for others: figures above.
    constexpr bool clears_first = Shape::static_width != 0 && Shape::static_width <= 4;
    if (clears_first) clear();
    u64 count = 0;
    for (u64 from_bucket = first_of(part); from_bucket < from_end; ++from_bucket) {
        for (u32 from_index = 0; from_index < slots; ++from_index) {
            u32 words[Layout<Shape>::most_slot_words];
            if (!from.read_vector(from_bucket, from_index, words)) continue;
            const WordVector vector{words};
            const u64 bucket = Probe::first_bucket(to.hash(vector), to.view.buckets);
            // A vector that some slots may not hold is rare.
            if (bucket < first || bucket >= last || taken[bucket - first] == slots || !to.forbidden_classes(vector).is_empty()) {
                left.add(from.slot_number(from_bucket, from_index));
                continue;
            }
            const u32 index = taken[bucket - first]++;
            WARPSET_UNROLL
            for (u32 chunk = 0; chunk < chunks; ++chunk)
                to.with_chunk(bucket, index, chunk, vector, [](auto* address, auto, auto value) { *address = value; });
            ++count;
        }
    }
    if (!clears_first) clear();
    platform::add_relaxed(to.view.stored, count);
    return count;
}

// Copies the vectors of slots `first .. last` of `from` that are left, one after another. Returns their number.
template <class Shape>
WARPSET_CALLED u64 export_left(const BucketTable<Shape>& from, u64 first, u64 last, LeftVectors left, u32* vectors)
{
    u64 count = 0;
    for (u64 slot = first; slot < last; ++slot) {
        if (!left.has(slot)) continue;
        u32 words[Layout<Shape>::most_slot_words];
        const u32 in_bucket = from.layout.slots_per_bucket();
        if (!from.read_vector(slot / in_bucket, static_cast<u32>(slot % in_bucket), words)) continue;
        for (u32 word = 0; word < from.width(); ++word) vectors[count * from.width() + word] = words[word];
        ++count;
    }
    return count;
}

}  // namespace warpset
