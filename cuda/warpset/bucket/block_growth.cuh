// Growth of a bucket table on a GPU (bucket/growth.cuh): a block fills a part, in shared memory if the part fits it.
//
// *In place*, both tables begin at one address. Parts are filled in waves, from the last part to the first
// (src/backend/waves.rs): no part of a wave covers a slice that this wave or a later one reads. The first parts read a copy
// of their slices. Vectors that are left lose their slots in a later wave, so they are copied after each wave. Before anything is
// written, a trial counts them: if they are too many for their list, growth takes a second table.
#pragma once

#include "warpset/bucket/growth.cuh"

namespace warpset {

// Counts the slots of each bucket of a part that are taken, in 16 bits of shared memory.
struct SlotCounters {
    u32* words;

    WARPSET_FN void clear(u32 buckets) const
    {
        for (u32 at = platform::Block::thread(); at < (buckets + 1) / 2; at += platform::Block::threads()) words[at] = 0;
    }

    // After a barrier; at least the bucket's slots if all are taken.
    WARPSET_FN u32 taken(u32 bucket) const { return words[bucket / 2] >> bucket % 2 * 16 & 0xFFFF; }

    // The next slot of a bucket; at least `slots` if there is none. A vector counts its first bucket in any case, and later ones
    // only if they seem to have a slot. So a counter is at most the number of slots that the part reads (2 x 8,192, because the
    // table grows) and one for each thread.
    WARPSET_FN u32 take(u32 bucket, u32 slots, bool is_first) const
    {
        u32* const word = words + bucket / 2;
        const u32 shift = bucket % 2 * 16;
        if (!is_first) {
            const u32 seen = platform::load_block(word) >> shift & 0xFFFF;
            if (seen >= slots) return seen;
        }
        // Relaxed: only the uniqueness of the slots matters.
        return platform::fetch_add_shared(word, 1u << shift) >> shift & 0xFFFF;
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

// Fills a part by the threads of a block, which all call its functions.
//
// Instructions and their latencies bound it: a warp executes 168 for 32 slots of 2 words, and 55 to 58 % of the cycles issue
// one, while DRAM has 19 to 36 % of its rate. On one H200 the kernels of a growth in place, from 192 million slots of 2 words to
// twice as many, take 3.1 ms, 2.8 times as long as a copy of as many bytes. Tried:
//
//   - Seeds in memory, slots by 64-bit numbers and generic addresses, EMPTY written by a pass of its own: 4.2 ms.
//   - Two or four vectors requested ahead instead of one: 3.5 and 3.7 ms, because more registers and moves delay the others. Two
//     hashed together: 3.4 ms; the next one hashed before this one takes a slot: 3.7 ms; four in a row, unrolled: 4.5 ms.
//   - Warps that stay together: 3.5 ms. Now lanes with EMPTY slots go ahead, so that warps execute the first part of the loop 2.1
//     times for a slot, but wait less.
//   - Lanes that take turns and keep searches that go on, as in bulk_filler.cuh: 1.01, 1.04 and 1.03 times with 2, 1 and 4 words;
//     by 3 % 0.94.
//   - 512 threads of 128 registers and 8 slots ahead: 1.4 to 1.9 times as long as 1024 threads.
template <class Shape>
struct BlockFiller {
    using Table = BucketTable<Shape>;
    using Main = typename Table::Main;
    using Warp = platform::Warp;
    using Block = platform::Block;
    // Vectors that are one chunk.
    static constexpr bool is_one_chunk = Layout<Shape>{}.chunks() == 1;
    static constexpr bool has_short_seeds = is_one_chunk && Shape::static_width <= 4 && Shape::static_width != 3;
    static constexpr u32 in_bucket = Layout<Shape>{}.slots_per_bucket(), chunks = Layout<Shape>{}.chunks();

    // Buckets that are adjacent, and whole units of 16 bytes.
    static constexpr bool has_whole_units =
        !Layout<Shape>{}.has_tails() && Layout<Shape>{}.bucket_main_bytes() % sizeof(u128) == 0;

    PartSlots<Shape, GrowthParts<Shape, true>, SlotCounters, LeftSlots> slots;
    const ShortSeeds& seeds;
    u8* stage;  // the part in shared memory, if it is there
    bool is_staged, writes;

    // Returns the number of vectors that this thread has put; or, for the first lane of a warp, that the warp has put.
    WARPSET_FN u32 fill() const
    {
        slots.counters.clear(slots.buckets());
        Block::sync();
        const u32 count = is_one_chunk ? move_chunks() : move_vectors();
        Block::sync();
        if (!writes) return count;
        if (is_staged && has_whole_units) {
            write_with_empty();
            return count;
        }
        clear();
        Block::sync();
        if (is_staged) write();
        return count;
    }

private:
    // The larger table, as far as it is in shared memory.
    WARPSET_FN Table image() const
    {
        Table image = slots.to;
        if (is_staged) image.view.slots = stage - slots.to.layout.block_offset(slots.first_bucket());
        return image;
    }

    // Moves vectors of one chunk, each by a thread. The next one is requested before this one takes its slot.
    WARPSET_FN u32 move_chunks() const
    {
        const u32 all = slots.from_slots(), step = Block::threads();
        const Main* const source = main_chunks(slots.from, slots.first_from_bucket(), 0);
        u32 count = 0;
        Main next{};
        if (Block::thread() < all) next = source[Block::thread()];
        WARPSET_UNROLL_BY(1)
        for (u32 at = Block::thread(); at < all; at += step) {
            const Main chunk = next;
            if (at + step < all) next = source[at + step];
            count += move_chunk(chunk, at);
        }
        return count;
    }

    // Moves the vector that slot `at` of the part's slots holds, if it is the part's.
    WARPSET_FN u32 move_chunk(Main chunk, u32 at) const
    {
        Main empty;
        slots.from.empty_chunk(slots.from.empty_class(slots.first_from_bucket() + at / in_bucket, at % in_bucket), empty);
        u32 bucket, index;
        if (chunk == empty || !slots.take(hash(chunk), may_be_barred(chunk), at, bucket, index)) return 0;
        if (!writes) return 1;
        if (is_staged) reinterpret_cast<Main*>(stage)[bucket * in_bucket + index] = chunk;
        else *main_chunks(slots.to, slots.first_bucket() + bucket, index) = chunk;
        return 1;
    }

    WARPSET_FN u64 hash(Main chunk) const
    {
        const TableView& view = slots.to.view;
        if constexpr (has_short_seeds) return seeds.hash(chunk, view.hash_mask);
        PartialHash sum;
        hash_chunk(sum, view.seeds, slots.to.width(), 0, chunk);
        return sum.finish(view.seeds, slots.to.width(), view.hash_mask);
    }

    template <class Chunk>
    WARPSET_FN bool may_be_barred(Chunk chunk) const
    {
        return (static_cast<u32>(low_of(chunk)) ^ slots.to.view.empty[0]) < slots.to.layout.empty_classes();
    }

    WARPSET_FN static u64 low_of(u32 chunk) { return chunk; }
    WARPSET_FN static u64 low_of(u64 chunk) { return chunk; }
    WARPSET_FN static u64 low_of(u128 chunk) { return chunk.low; }

    // The lanes of a warp take slots for the vectors of as many slots, and then copy them together.
    WARPSET_FN u32 move_vectors() const
    {
        const u32 all = slots.from_slots(), lane = Warp::lane();
        const Table image = this->image();
        u32 count = 0;
        WARPSET_UNROLL_BY(1)
        for (u32 at = Block::thread(); at - lane < all; at += Block::threads()) {
            const u64 from_bucket = slots.first_from_bucket() + at / in_bucket;
            const u32 from_index = at % in_bucket;
            u32 bucket = 0, index = 0;
            const bool has = at < all && place(from_bucket, from_index, at, bucket, index);
            const u32 placed = Warp::ballot(has);
            count += platform::population_count(placed);
            if (writes) copy(placed, from_bucket, from_index, image, slots.first_bucket() + bucket, index);
        }
        return lane == 0 ? count : 0;
    }

    // Takes a slot for the vector in a slot, if it is the part's.
    WARPSET_FN bool place(u64 from_bucket, u32 from_index, u32 at, u32& bucket, u32& index) const
    {
        const Table& to = slots.to;
        PartialHash sum;
        bool is_complete = true, is_barred = false;
        WARPSET_UNROLL_BY(4)
        for (u32 chunk = 0; chunk < chunks; ++chunk) {
            // Plain loads: nothing writes the smaller table.
            slots.from.with_empty(from_bucket, from_index, chunk, [&](const auto* address, auto empty) {
                const auto value = *address;
                is_complete &= !(value == empty);
                is_barred |= may_be_barred(value);
                hash_chunk(sum, to.view.seeds, to.width(), to.layout.first_word(chunk), value);
            });
        }
        if (!is_complete) return false;
        const u64 hash = sum.finish(to.view.seeds, to.width(), to.view.hash_mask);
        return slots.take(hash, is_barred, at, bucket, index);
    }

    // Copies the vectors of the lanes in `placed`. The lanes share the main chunks, so that neighbouring lanes read and write
    // neighbouring chunks.
    WARPSET_FN void copy(u32 placed, u64 from_bucket, u32 from_index, const Table& image, u64 bucket, u32 index) const
    {
        const Table& from = slots.from;
        const u32 lane = Warp::lane();
        if (Layout<Shape>{}.has_tails()) {
            if (!(placed >> lane & 1)) return;
            WARPSET_UNROLL
            for (u32 chunk = 0; chunk < chunks; ++chunk)
                image.with_empty(bucket, index, chunk, [&](auto* address, auto) {
                    from.with_empty(from_bucket, from_index, chunk, [&](const auto* source, auto) { store(address, *source); });
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

    // Writes EMPTY to the slots that no vector has.
    WARPSET_FN void clear() const
    {
        const Table image = this->image();
        const u32 all = slots.buckets() * in_bucket * chunks;
        for (u32 at = Block::thread(); at < all; at += Block::threads()) {
            const u32 slot = at / chunks, bucket = slot / in_bucket, index = slot % in_bucket;
            if (index < slots.counters.taken(bucket)) continue;
            image.with_empty(slots.first_bucket() + bucket, index, at % chunks,
                             [](auto* address, auto empty) { *address = empty; });
        }
    }

    // Copies the part from shared memory.
    WARPSET_FN void write() const
    {
        const auto& layout = slots.to.layout;
        const u64 offset = layout.block_offset(slots.first_bucket());
        const u32 units = static_cast<u32>(layout.block_offset(slots.buckets()) / sizeof(u128));
        u128* const target = reinterpret_cast<u128*>(slots.to.view.slots + offset);
        for (u32 at = Block::thread(); at < units; at += Block::threads()) target[at] = reinterpret_cast<const u128*>(stage)[at];
    }

    // As `write`, with EMPTY in the slots that no vector has, if the part `has_whole_units`.
    WARPSET_FN void write_with_empty() const
    {
        constexpr u32 in_unit = sizeof(u128) / sizeof(Main), units = Layout<Shape>{}.bucket_main_bytes() / sizeof(u128);
        struct alignas(u128) Unit {
            Main chunk[in_unit];
        };
        const Table& to = slots.to;
        const u32 all = slots.buckets() * units;
        Unit* const target = reinterpret_cast<Unit*>(main_chunks(to, slots.first_bucket(), 0));
        WARPSET_UNROLL_BY(2)
        for (u32 at = Block::thread(); at < all; at += Block::threads()) {
            Unit unit = reinterpret_cast<const Unit*>(stage)[at];
            const u32 bucket = at / units, taken = slots.counters.taken(bucket);
            const u32 class_of_bucket = Table::class_of_bucket(slots.first_bucket() + bucket);
            WARPSET_UNROLL
            for (u32 i = 0; i < in_unit; ++i) {
                const u32 index = (at % units * in_unit + i) / chunks;
                Main empty;
                to.empty_chunk(to.class_in(class_of_bucket, index), empty);
                if (index >= taken) unit.chunk[i] = empty;
            }
            target[at] = unit;
        }
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
WARPSET_FN void grow_by_blocks(const BucketTable<Shape>& from, const BucketTable<Shape>& to, const ShortSeeds& seeds,
                               PartRange range, bool is_staged, LeftSlots left)
{
    using Block = platform::Block;
    using Warp = platform::Warp;
    const GrowthParts<Shape, true> parts(from, to, range.slices_a_part);
    const SlotCounters counters{reinterpret_cast<u32*>(Block::scratch())};
    u8* const stage = Block::scratch() + counter_bytes(range.slices_a_part * to.view.slice_buckets);
    const u32 step = static_cast<u32>(platform::Grid::threads() / Block::threads());
    const u32 end = static_cast<u32>(range.last < parts.count ? range.last : parts.count);
    const u32 first = static_cast<u32>(range.first + platform::Grid::thread() / Block::threads());
    u32 count = 0;  // fewer than 2^32 vectors of a warp
    // Other blocks add to the count meanwhile, so one thread reads it for its whole block. Relaxed: blocks that read a larger
    // count than others skip parts of a launch that is repeated.
    if (Block::thread() == 0) counters.words[0] = platform::load_relaxed(left.count) > left.capacity;
    Block::sync();
    const bool is_full = counters.words[0] != 0;
    Block::sync();
    for (u32 number = first; number < end && !is_full; number += step) {
        const auto part = parts.part(number);
        const PartSlots<Shape, GrowthParts<Shape, true>, SlotCounters, LeftSlots> slots{from, to, parts, part, counters, left};
        count += BlockFiller<Shape>{slots, seeds, stage, is_staged, range.writes}.fill();
        Block::sync();
    }
    const u32 sum = Warp::sum_up_to(count);
    if (range.writes && Warp::lane() == Warp::size - 1 && sum != 0) platform::add_relaxed(to.view.stored, u64{sum});
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
