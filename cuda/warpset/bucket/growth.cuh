// Growth of a bucket table as a stream: the larger table is written part by part, in order, while the smaller one is read in
// order.
//
// The first bucket of a vector grows with its hash (core/probe.cuh). So the vectors of a range of slices of the larger table are
// in a range of slices of the smaller one, and nearly every vector is in the slice of its first bucket. A *part* is some adjacent
// slices of the larger table. One block fills it (on a CPU, one thread), and nothing else uses it:
//
//   1. Each thread takes slots of the smaller table's slices that share hashes with the part. A vector whose first bucket is in
//      the part takes the next slot of the first bucket of its walk that has one, by a counter for each bucket, and is copied
//      there. No vectors are compared, because those of a table are distinct. (A changed file may hold one twice; then both
//      stay.)
//   2. EMPTY is written to the slots that no vector has. So it does not matter what the memory of the larger table held.
//
// If a part fits shared memory, it is made there, and then written in order. (One H100, a table that is 0.8 full and doubles, 2
// words: prototypes took 1.15 times as long as copying the same bytes; find-or-put of every vector into an empty table 4.1
// times.)
//
// Vectors that are *left*, for find-or-put to take when all parts are filled: those that are in another slice than their first
// one, those whose walk leaves the part, and those that some slots may not hold (bucket/table.cuh). Of a table with slices that
// is less than 0.95 full they are at most one in 10^4 (core/probe.cuh). In a table of one slice all vectors are left that are not
// in their first bucket.
//
// Every vector is put or left, by one part: that of its first bucket if it reads the slice that the vector is in, otherwise the
// first part that reads this slice.
//
// A vector leaves a bucket only when the bucket's counter says that every slot of it has been given to another vector. All of
// these are decided when a search comes. So invariant 3 of core/claim.cuh holds.
//
// *In place*, both tables begin at one address. Parts are filled in waves, from the last part to the first
// (src/backend/waves.rs): no part of a wave covers a slice that this wave or a later one reads. The first parts read a copy
// of their slices. Vectors that are left lose their slots in a later wave, so they are copied after each wave. Before anything is
// written, a trial counts them: if they are too many for their list, growth takes a second table.
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/core/hash.cuh"
#include "warpset/core/layout.cuh"
#include "warpset/core/probe.cuh"

namespace warpset {

// How the larger table is divided into parts. Units are slices; or, in a table of one slice, blocks of the larger table and
// buckets of the smaller one.
template <class Shape>
struct GrowthParts {
    u64 from_unit, to_unit;    // buckets of a unit
    u64 from_scale, to_scale;  // the same, and the buckets of the tables: in slices if both have them, so that products fit
    u64 from_all, to_all;
    u64 units_a_part, units, count;

    // On a CPU parts fit a core's cache, but for slices of wide vectors. A bucket has 32 bytes or more, and a slice at most this
    // number of buckets.
    static constexpr u32 part_bytes = 256 << 10, most_buckets = 8192;

    WARPSET_FN GrowthParts(const BucketTable<Shape>& from, const BucketTable<Shape>& to, u64 units_a_part_ = 0)
    {
        const bool from_sliced = from.view.slice_mask != ~0u, to_sliced = to.view.slice_mask != ~0u;
        const u64 a_block = to.layout.buckets_per_block();
        from_unit = from_sliced ? from.view.slice_buckets : 1;
        to_unit = to_sliced ? to.view.slice_buckets : a_block;
        const u64 scale = from_sliced && to_sliced ? to_unit : 1;
        from_scale = from_unit / scale;
        to_scale = to_unit / scale;
        from_all = from.view.buckets / scale;
        to_all = to.view.buckets / scale;
        units = (to_all + to_scale - 1) / to_scale;
        const u64 unit_bytes = to_unit / a_block * to.layout.block_bytes();
        // All units that share hashes with a unit of the smaller table, so that one part alone reads this. A multiple of them.
        const u64 sharing = to_all * from_scale / (from_all * to_scale), wanted = sharing == 0 ? 1 : sharing;
        const u64 together = wanted * to_unit <= most_buckets ? wanted : 1;
        const u64 fitting = part_bytes / (unit_bytes * together) * together;
        units_a_part = units_a_part_ != 0 ? units_a_part_ : fitting != 0 ? fitting : together;
        count = (units + units_a_part - 1) / units_a_part;
    }

    struct Part {
        u64 number;
        u64 from_first, from_last, first, last;  // buckets of the smaller table, and of the larger one
    };

    WARPSET_FN Part part(u64 number) const
    {
        const u64 first = number * units_a_part, end = first + units_a_part, last = end < units ? end : units;
        const u64 whole = to_all * from_scale, ends_at = last * to_scale < to_all ? last * to_scale : to_all;
        const u64 from_first = first * to_scale * from_all / whole, from_last = (ends_at * from_all + whole - 1) / whole;
        return {number, from_first * from_unit, from_last * from_unit, first * to_unit, last * to_unit};
    }

    // The parts that read a bucket of the smaller table: here the first of them.
    WARPSET_FN u64 first_reader(u64 from_bucket) const
    {
        return from_bucket / from_unit * from_scale * to_all / (from_all * to_scale) / units_a_part;
    }

    // Whether the part that a bucket of the larger table is in reads a bucket of the smaller one.
    WARPSET_FN bool is_read(u64 from_bucket, u64 bucket) const
    {
        if (shares_hashes(from_bucket, bucket)) return true;
        const Part home = part(bucket / to_unit / units_a_part);
        return from_bucket >= home.from_first && from_bucket < home.from_last;
    }

private:
    // Whether some hash has its first buckets in the units of a bucket of the smaller table, and of one of the larger table.
    WARPSET_FN bool shares_hashes(u64 from_bucket, u64 bucket) const
    {
        const u64 from = from_bucket / from_unit * from_scale, to = bucket / to_unit * to_scale;
        return to * from_all < (from + from_scale) * to_all && (to + to_scale) * from_all > from * to_all;
    }
};

// Counts the slots of each bucket of a part that are taken, in 16 bits. Each thread of a block may count one slot that the bucket
// does not have.
struct SlotCounters {
    u32* words;

    WARPSET_FN void clear(u32 buckets) const
    {
        for (u32 at = platform::Block::thread(); at < (buckets + 1) / 2; at += platform::Block::threads()) words[at] = 0;
    }

    WARPSET_FN u32 taken(u32 bucket) const { return platform::load_block(words + bucket / 2) >> bucket % 2 * 16 & 0xFFFF; }

    // The next slot of a bucket; at least `slots` if there is none.
    WARPSET_FN u32 take(u32 bucket, u32 slots) const
    {
        const u32 seen = taken(bucket);
        if (seen >= slots) return seen;
        // Relaxed: only the uniqueness of the slots matters.
        return platform::fetch_add_block(words + bucket / 2, 1u << bucket % 2 * 16) >> bucket % 2 * 16 & 0xFFFF;
    }
};

// Counters that one thread uses alone.
struct OwnSlotCounters {
    u8* counts;

    WARPSET_FN void clear(u32 buckets) const
    {
        for (u32 bucket = 0; bucket < buckets; ++bucket) counts[bucket] = 0;
    }
    WARPSET_FN u32 taken(u32 bucket) const { return counts[bucket]; }
    WARPSET_FN u32 take(u32 bucket, u32 slots) const { return counts[bucket] < slots ? counts[bucket]++ : slots; }
};

// Slots whose vectors are left, in no order. Those that do not fit are counted.
struct LeftSlots {
    u64* slots;
    u64 capacity;
    u64* count;

    WARPSET_FN void add(u64 slot) const
    {
        const u64 at = platform::fetch_add_relaxed(count, 1);
        if (at < capacity) slots[at] = slot;
    }
};

// Adds words `word` and `word + 1` of a vector, as far as it has them, to its hash.
WARPSET_FN void hash_chunk(PartialHash& hash, const u128* seeds, u32 width, u32 word, u64 chunk)
{
    if (word + 1 < width) hash.add_pair(seeds, word, static_cast<u32>(chunk), static_cast<u32>(chunk >> 32));
    else if (word < width) hash.add_last(seeds, word, static_cast<u32>(chunk));
}
WARPSET_FN void hash_chunk(PartialHash& hash, const u128* seeds, u32 width, u32 word, u128 chunk)
{
    hash_chunk(hash, seeds, width, word, chunk.low);
    hash_chunk(hash, seeds, width, word + 2, chunk.high);
}
WARPSET_FN void hash_chunk(PartialHash& hash, const u128* seeds, u32, u32 word, u32 chunk)
{
    hash.add_last(seeds, word, chunk);
}

template <class Shape, class Counters, class Left>
struct PartFiller {
    using Table = BucketTable<Shape>;
    using Main = typename Table::Main;
    using Warp = platform::Warp;
    using Block = platform::Block;
    // On a GPU the lanes of a warp share the chunks of its vectors.
    //
    // Tried: a thread reads 4 slots (of 2 words) or 2 (of 8 and 32 words) before it takes a slot for the first of them. Growth in
    // place of 192, 48 and 12 million slots to twice as many then took 1.35, 1.10 and 0.86 times as long, and growth by 3 % 1.33,
    // 1.12 and 1.10 (one H200, one round). With 1024 threads a block, a thread has 64 registers. So it then writes 116 to 172
    // bytes of them to local memory, instead of 4 to 32. With 512 threads and 8 slots it writes none, but takes 1.45, 1.21 and
    // 1.04 times as long, and 1.89, 1.54 and 1.37 (two rounds in turns): instructions bound it, and half as many warps issue
    // them in 35 % of the cycles instead of 55.
    static constexpr bool by_warp = Warp::size > 1;

    const Table& from;
    const Table& to;
    const Table& image;  // `to`, or its part in shared memory
    GrowthParts<Shape> parts;
    Counters counters;
    Left left;
    // If not, nothing is written: a trial, which finds the vectors that would be left.
    bool writes = true;

    // Fills a part. All threads of the block call it. Returns the number of vectors that this warp has put.
    WARPSET_FN u32 fill(u64 number) const
    {
        const auto& layout = to.layout;
        const auto part = parts.part(number);
        const u32 slots = layout.slots_per_bucket(), buckets = static_cast<u32>(part.last - part.first);
        counters.clear(buckets);
        // On a CPU: faster for short vectors, slower for others (cpu_kernels/growth.hpp).
        constexpr bool clears_first = !by_warp && Shape::static_width != 0 && Shape::static_width <= 4;
        if (clears_first && writes) clear(part.first, buckets);
        Block::sync();
        u32 count = 0;
        const u64 from_slots = (part.from_last - part.from_first) * slots;
        WARPSET_UNROLL_BY(1)
        for (u64 at = Block::thread() / Warp::size * Warp::size; at < from_slots; at += Block::threads()) {
            const u64 slot = at + Warp::lane(), from_bucket = part.from_first + slot / slots;
            const u32 from_index = static_cast<u32>(slot % slots);
            if constexpr (by_warp) {
                u64 bucket = 0;
                u32 index = 0;
                const bool has = slot < from_slots && place(part, from_bucket, from_index, bucket, index);
                const u32 placed = Warp::ballot(has);
                count += platform::population_count(placed);
                if (writes) copy(placed, from_bucket, from_index, bucket, index);
            } else {
                count += move(part, from_bucket, from_index);
            }
        }
        Block::sync();
        if (!clears_first && writes) clear(part.first, buckets);
        return count;
    }

private:
    // Writes EMPTY to the slots that no vector has.
    WARPSET_FN void clear(u64 first, u32 buckets) const
    {
        const u32 slots = to.layout.slots_per_bucket(), chunks = to.layout.chunks();
        if constexpr (by_warp) {
            const u32 all = buckets * slots * chunks;
            for (u32 at = Block::thread(); at < all; at += Block::threads()) {
                const u32 slot = at / chunks, bucket = slot / slots;
                if (slot % slots < counters.taken(bucket)) continue;
                image.with_empty(first + bucket, slot % slots, at % chunks, [](auto* address, auto empty) { *address = empty; });
            }
        } else {
            for (u32 bucket = 0; bucket < buckets; ++bucket)
                for (u32 index = counters.taken(bucket); index < slots; ++index) image.clear_slot(first + bucket, index);
        }
    }

    // Takes a slot for the vector with a hash that is in a slot of the smaller table. Returns false if the part has none for it.
    WARPSET_FN bool take(const typename GrowthParts<Shape>::Part& part, u64 hash, bool may_be_barred, u64 from_bucket,
                         u32 from_index, u64& bucket, u32& index) const
    {
        Probe probe = Probe::of_first_bucket(hash, to.view);
        if (probe.bucket < part.first || probe.bucket >= part.last) {
            // The vector belongs to another part. If that part does not read this slot, the first part that reads it leaves the
            // vector to find-or-put.
            if (!parts.is_read(from_bucket, probe.bucket) && part.number == parts.first_reader(from_bucket))
                left.add(from.slot_number(from_bucket, from_index));
            return false;
        }
        if (!may_be_barred) {
            const u32 slots = to.layout.slots_per_bucket();
            do {
                index = counters.take(static_cast<u32>(probe.bucket - part.first), slots);
                if (index < slots) {
                    bucket = probe.bucket;
                    return true;
                }
                if (probe.probes == 0) probe.make_step(to.view);
            } while (probe.advance(to.view) && probe.bucket >= part.first && probe.bucket < part.last);
        }
        left.add(from.slot_number(from_bucket, from_index));
        return false;
    }

    // For a thread alone: moves the vector in a slot, if it is the part's. Returns whether it was.
    WARPSET_FN bool move(const typename GrowthParts<Shape>::Part& part, u64 from_bucket, u32 from_index) const
    {
        u32 words[Layout<Shape>::most_slot_words];
        if (!from.read_vector(from_bucket, from_index, words)) return false;
        const WordVector vector{words};
        u64 bucket;
        u32 index;
        const bool may_be_barred = !to.forbidden_classes(vector).is_empty();
        if (!take(part, to.hash(vector), may_be_barred, from_bucket, from_index, bucket, index)) return false;
        if (!writes) return true;
        const u32 chunks = to.layout.chunks();
        WARPSET_UNROLL
        for (u32 chunk = 0; chunk < chunks; ++chunk)
            image.with_chunk(bucket, index, chunk, vector, [](auto* address, auto, auto value) { *address = value; });
        return true;
    }

    // For a lane of a warp: takes a slot for the vector in a slot, if it is the part's.
    WARPSET_FN bool place(const typename GrowthParts<Shape>::Part& part, u64 from_bucket, u32 from_index, u64& bucket,
                          u32& index) const
    {
        PartialHash sum;
        bool is_complete = true, may_be_barred = false;
        const u32 chunks = from.layout.chunks();
        WARPSET_UNROLL_BY(4)
        for (u32 chunk = 0; chunk < chunks; ++chunk) {
            // Plain loads: nothing writes the smaller table.
            from.with_empty(from_bucket, from_index, chunk, [&](const auto* address, auto empty) {
                const auto value = *address;
                is_complete &= !(value == empty);
                may_be_barred |= (static_cast<u32>(low_of(value)) ^ to.view.empty[0]) < to.layout.empty_classes();
                hash_chunk(sum, to.view.seeds, to.width(), from.layout.first_word(chunk), value);
            });
        }
        if (!is_complete) return false;
        const u64 hash = sum.finish(to.view.seeds, to.width(), to.view.hash_mask);
        return take(part, hash, may_be_barred, from_bucket, from_index, bucket, index);
    }

    WARPSET_FN static u64 low_of(u32 chunk) { return chunk; }
    WARPSET_FN static u64 low_of(u64 chunk) { return chunk; }
    WARPSET_FN static u64 low_of(u128 chunk) { return chunk.low; }

    // Copies the vectors of the lanes in `placed`. If a vector is several main chunks, the lanes share them, so that neighbouring
    // lanes read and write neighbouring chunks.
    WARPSET_FN void copy(u32 placed, u64 from_bucket, u32 from_index, u64 bucket, u32 index) const
    {
        const u32 chunks = to.layout.chunks(), lane = Warp::lane();
        if (to.layout.has_tails() || chunks == 1) {
            if (!(placed >> lane & 1)) return;
            WARPSET_UNROLL
            for (u32 chunk = 0; chunk < chunks; ++chunk)
                image.with_empty(bucket, index, chunk, [&](auto* address, auto) {
                    from.with_empty(from_bucket, from_index, chunk, [&](const auto* source, auto) {
                        store(address, *source);
                    });
                });
            return;
        }
        const u32 all = platform::population_count(placed) * chunks;
        for (u32 first = 0; first < all; first += Warp::size) {
            const u32 at = first + lane, chunk = at % chunks, owner = at < all ? nth_bit(placed, at / chunks) : 0;
            const u64 source_bucket = Warp::shuffle(from_bucket, owner), target_bucket = Warp::shuffle(bucket, owner);
            const u32 source_index = Warp::shuffle(from_index, owner), target_index = Warp::shuffle(index, owner);
            if (at >= all) continue;
            const Main* const source = main_chunks(from, source_bucket, source_index);
            main_chunks(image, target_bucket, target_index)[chunk] = source[chunk];
        }
    }

    // Chunks of both tables have one type, but a compiler that does not know which chunk it is sees all pairs.
    template <class Chunk>
    WARPSET_FN static void store(Chunk* address, Chunk value) { *address = value; }
    template <class Chunk, class Other>
    WARPSET_FN static void store(Chunk*, Other) {}

    WARPSET_FN static Main* main_chunks(const Table& table, u64 bucket, u32 index)
    {
        const u64 offset = table.layout.main_offset(bucket) + index * static_cast<u64>(table.layout.main_bytes());
        return reinterpret_cast<Main*>(table.view.slots + offset);
    }
};

// Bytes of the counters of a part of this number of buckets.
WARPSET_FN constexpr u32 counter_bytes(u32 buckets) { return (buckets * 2 + 15) / 16 * 16; }

// The parts that a launch fills. Unless it writes, it only finds the vectors that are left.
struct PartRange {
    u32 slices_a_part;
    u64 first, last;
    bool writes;
};

// Fills parts of a larger table, whose memory may hold anything, with the vectors of a table that does not change meanwhile. Both
// tables have slices. Nothing else uses the larger one. The scratch memory of a block holds the counters of a part's buckets
// (`counter_bytes`). If `is_staged`, it also has room for the slices of the part. Does nothing if an earlier launch has left more
// vectors than the list has room for: in place, the slots of these vectors must stay as they are.
template <class Shape>
WARPSET_FN void grow_by_blocks(const BucketTable<Shape>& from, const BucketTable<Shape>& to, PartRange range, bool is_staged,
                               LeftSlots left)
{
    using Block = platform::Block;
    using Table = BucketTable<Shape>;
    const GrowthParts<Shape> parts(from, to, range.slices_a_part);
    const SlotCounters counters{reinterpret_cast<u32*>(Block::scratch())};
    u8* const stage = Block::scratch() + counter_bytes(range.slices_a_part * to.view.slice_buckets);
    const u64 step = platform::Grid::threads() / Block::threads(), end = range.last < parts.count ? range.last : parts.count;
    u64 count = 0;
    // Relaxed: the blocks of a launch that reads a larger count than others skip parts of a launch that is repeated.
    const bool is_full = platform::load_relaxed(left.count) > left.capacity;
    for (u64 number = range.first + platform::Grid::thread() / Block::threads(); number < end && !is_full; number += step) {
        const auto part = parts.part(number);
        const u64 offset = to.layout.block_offset(part.first);
        Table image = to;
        if (is_staged) image.view.slots = stage - offset;
        count += PartFiller<Shape, SlotCounters, LeftSlots>{from, to, image, parts, counters, left, range.writes}.fill(number);
        Block::sync();
        if (is_staged && range.writes) {
            const u32 units = static_cast<u32>((to.layout.block_offset(part.last) - offset) / sizeof(u128));
            for (u32 at = Block::thread(); at < units; at += Block::threads())
                reinterpret_cast<u128*>(to.view.slots + offset)[at] = reinterpret_cast<const u128*>(stage)[at];
            Block::sync();
        }
    }
    if (range.writes && platform::Warp::lane() == 0 && count != 0) platform::add_relaxed(to.view.stored, count);
}

// Progress of a growth in place.
struct InPlace {
    u64 left;   // vectors left
    u64 kept;   // how many of these have been copied: those of the waves that are done
    u64 waves;  // waves that are done
};

// Copies the vectors that a wave has left, before the next wave overwrites their slots. One block runs it. If there are more than
// the list has room for, the wave is not done: the host repeats it.
template <class Table>
WARPSET_FN void keep_left(const Table& from, const u64* slots, u64 capacity, InPlace* progress, u32* vectors)
{
    using Block = platform::Block;
    const u64 left = progress->left, kept = progress->kept;
    const u32 width = from.width();
    if (left > capacity) return;
    for (u64 at = kept * width + Block::thread(); at < left * width; at += Block::threads()) {
        u32 value;
        if (from.read_word(slots[at / width], static_cast<u32>(at % width), value)) vectors[at] = value;
    }
    Block::sync();
    if (Block::thread() != 0) return;
    progress->kept = left;
    ++progress->waves;
}

}  // namespace warpset
