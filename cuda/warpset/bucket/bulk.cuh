// Bulk find-or-put: a large batch is put into a bucket table slice by slice.
//
// Find-or-put of vectors in any order reads and claims slots all over the table, and each of these is a random access to memory.
// Here the vectors are first brought together by the slices that they belong to, so memory is read and written in runs:
//
//   1. *Partition*, in one pass or two: the slices are divided into *parts*, and each vector is copied to the part of its slice.
//      A block sorts a tile of vectors in shared memory. It takes room in each part by one addition for all its vectors there,
//      so no pass counts vectors beforehand, and vectors of a part have no order. A part has room for little more than its share
//      of vectors with random hashes. A vector that finds no room is put at once, by the ordinary find-or-put of a thread.
//   2. *Slices*: one block copies a slice into shared memory, puts the slice's vectors there, and copies it back.
//   3. Vectors are *left* if their walk leaves the slice (core/probe.cuh), or if they resemble EMPTY (bucket/bulk_filler.cuh).
//      They are put by the ordinary find-or-put, after all slices have been copied back.
//   4. Outcomes, if they are wanted, are written beside the partitioned vectors, and brought back by *replaying* the partition:
//      it has written the place of each vector in its sorted tile (2 bytes), and where the tile's runs begin (8 bytes a tile and
//      part). No vector is read or hashed again.
//
// Nothing else may use the table during these steps. Outside step 2 each slot is decided or EMPTY, as always. So steps 1 and 3
// may call the ordinary find-or-put.
//
// Correctness. In step 2 only one block uses the slice, and its threads claim slots of the slice in shared memory by the rules of
// core/claim.cuh: in the order of the walk, from EMPTY to a vector, and on only over a slot decided for another vector. The walk
// is that of every search (bucket/lane_search.cuh, bucket/warp_search.cuh): `Probe` gives its buckets, the slots of a bucket come
// in order of their index, and `advance_in_slice` ends it where `advance` goes to another slice. So a vector is left only if all
// slots of its walk in the slice are decided for others, or if all vectors that equal it are left; and slots never become EMPTY
// again. Step 3 begins its walk from the start, and is Full only if all slots of the walk are decided for others. So no vector is
// stored twice, exactly one of equal vectors is New, and none is Full that ordinary find-or-put would have stored.
//
// A slice goes on a list if some of its vectors are left. Each of these has a mark; for all others step 3 reads one bit each.
//
// One H200, 2^27 vectors (`cargo bench --bench bulk`), rate in bulk / rate of ordinary find-or-put. First into an empty table, by
// the fill afterwards; then into a table that is 0.3 full, half of the batch seen, by vectors / slots:
//
//   | words | results  | 0.25        | 0.7         | 0.9         | 0.95        | 1/8  | 1/4  | 1/2  | 1    |
//   |-------|----------|-------------|-------------|-------------|-------------|------|------|------|------|
//   | 1     | counts   | 2.21 - 2.53 | 2.25 - 2.63 | 2.13 - 2.49 | 1.95 - 2.22 | 0.98 | 1.37 | 1.69 | 1.91 |
//   | 1     | outcomes | 1.83 - 2.08 | 1.84 - 2.19 | 1.79 - 2.10 | 1.70 - 1.95 | 0.87 | 1.17 | 1.40 | 1.56 |
//   | 2     | counts   | 1.89 - 2.08 | 1.97 - 2.31 | 2.01 - 2.31 | 1.91 - 2.13 | 0.72 | 1.10 | 1.46 | 1.68 |
//   | 2     | outcomes | 1.60 - 1.78 | 1.70 - 1.98 | 1.76 - 2.03 | 1.69 - 1.90 | 0.67 | 0.99 | 1.26 | 1.43 |
//   | 4     | counts   | 1.22 - 1.25 | 1.49 - 1.60 | 1.58 - 1.70 | 1.55 - 1.64 | 0.38 | 0.58 | 0.87 | 1.16 |
//   | 4     | outcomes | 1.04 - 1.09 | 1.26 - 1.38 | 1.36 - 1.47 | 1.35 - 1.44 | 0.35 | 0.55 | 0.76 | 0.98 |
//
// (The first number with each vector twice, the second without duplicates.) Skewed vectors of 1 and 2 words: 0.70 to 1.43, with
// outcomes 0.41 to 1.02. Parts of 16 MiB in L2 gain nothing.
//
// Where the time goes (2 words, each twice, fill 0.7, 3.15 ms): the passes take 0.86 and 0.84 ms (155 and 159 G/s), the slices
// 1.39 ms; bulk_filler.cuh has what bounds these. A pass executes 115 instructions of a warp for 32 vectors, 2.3 in a cycle, with
// DRAM 52 % busy. Smaller tiles or more threads a multiprocessor for the partition (three blocks, 768 or 1,024 threads, 6 to 12
// vectors a thread) take 1.24 to 1.67 times as long, because threads with fewer registers spill. Blocks that stay, and request
// their next tile before they write this one: 1.08 times, with 1 word 0.98, with 4 words 1.23. Outcomes add 0.6 ms: 0.1 for the
// places, 0.25 for each replay. A replay that read and wrote single bytes, and places only when it needed them, took 0.56 to 0.63
// ms.
//
// Not for levels of the model checker: a large level has a tenth as many successors as the table has slots, where bulk is slower
// even before they are written to memory. Not for batches of ranks, which would then wait for a pass over the table in each
// round. Not for compact tables: by simulation, 2 % of their keys at fill 0.7, and 7 to 11 % at 0.9, are stored by other
// functions than the first, which spread them over the whole table, so they would be put by ordinary find-or-put. Not for vectors
// of 3 words, whose slots have 4.
//
// Tried and dropped on CPU threads: 2^24 vectors of 1 and 2 words, partitioned in one pass through buffers of one cache line for
// each slice, then put without atomics, a slice at a time. Partitioning alone took 0.43 to 0.86 of the time of ordinary
// find-or-put (44 to 105 ns a vector on a busy cloud machine of 2 cores, where both alternated), the whole batch 1.15 to 2.5
// times. Prefetching hides there what partitioning avoids.
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/core/batch_view.cuh"
#include "warpset/core/hash.cuh"
#include "warpset/core/layout.cuh"
#include "warpset/core/probe.cuh"

namespace warpset {

using u16 = unsigned short;

// A pass of the partition. Vectors lie in *segments* before it, and in parts after it: those of segment s in the parts from
// s x `parts` on. The segments of the second pass are the parts of the first. Mirrored by `BulkPass` in
// src/backend/cuda/bulk_plan.rs.
struct BulkPass {
    ShortSeeds seeds;
    const u8* from;          // vectors, in segments of `from_capacity`
    const u64* from_counts;  // vectors offered to each segment, which may be too many; null: one segment, which is full
    u64 from_capacity;       // a multiple of 4 if there are several
    u64 segments;
    u8* to;                  // vectors, in parts of `to_capacity`
    u64* to_counts;          // vectors offered to each part; zeros at first
    u64 to_capacity;
    u16* places;             // null, or by position in `from`: place in the sorted tile; no_place if the vector was put at once
    u64* runs;               // by tile and part, for the tile's run: position in the part (low half), first place in the tile
    u8* outcomes;            // by position in `from`; null like `places`
    const u8* to_outcomes;   // by position in `to`
    BatchCounts* counts;     // null, or the batch's counts
    u32 shift;               // the part of a slice is its number >> `shift`
    u32 parts;               // of a segment, at most
};

static_assert(sizeof(BulkPass) == 192, "the size in src/backend/cuda/bulk_plan.rs");

// Slices with the vectors to put there. Mirrored by `BulkSlices` in src/backend/cuda/bulk_plan.rs.
struct BulkSlices {
    ShortSeeds seeds;
    const u8* vectors;  // in parts of `capacity`, one for each slice
    const u64* sizes;   // vectors offered to each part
    u64 capacity;
    u64 slices;
    u8* outcomes;       // by position in `vectors`, or null
    u64* left;          // slices of whose vectors some are left, in no order
    u64* left_count;    // their number
    u64* marks;         // of each slice, from a whole word on: a bit for each of its vectors, 1 if it is left; zeros at first
    BatchCounts* counts;
    u64 offered;        // vectors of the batch
};

static_assert(sizeof(BulkSlices) == 160, "the size in src/backend/cuda/bulk_plan.rs");

// Functions of vectors and slices that the steps share.
template <class Table>
struct Bulk {
    static constexpr u32 width = Table::static_width;
    // A vector is one chunk.
    using Unit = typename Table::Main;
    static_assert(sizeof(Unit) == width * sizeof(u32), "of one, two or four words");
    using Warp = platform::Warp;
    using Block = platform::Block;

    // Vectors of a thread in a tile: with their ranks 30 to 36 registers, of the 64 that two blocks of a multiprocessor leave.
    static constexpr u32 items = width == 1 ? 16 : 24 / width;
    static constexpr u32 threads = 512;
    // Threads of a block that fills slices, and such blocks of a multiprocessor: a slice of 128 KiB leaves room for one.
    static constexpr u32 fill_threads = width == 4 ? 1024 : 512, fill_blocks = width == 4 ? 1 : 3;
    static constexpr u16 no_place = 0xFFFF;

    // Threads of a block that partitions or replays.
    WARPSET_FN static constexpr u32 block() { return Block::template threads<threads>(); }

    // Marks of the vectors of a slice.
    WARPSET_FN static u64* marks_of(const BulkSlices& bulk, u64 slice)
    {
        return bulk.marks + slice * ((bulk.capacity + 63) / 64);
    }

    // Slice of a hash, in a table of this number of slices: that of `Probe::first_bucket`, because a slice has 2^n buckets.
    WARPSET_FN static u32 slice_of(u64 hash, u32 slices)
    {
        const u64 low = (hash & 0xFFFFFFFF) * slices, high = (hash >> 32) * slices;
        return static_cast<u32>((high + (low >> 32)) >> 32);
    }

    // Find-or-put by a thread. A separate function, because calls are rare. It takes a copy of the table: if callers passed a
    // reference, they would read theirs from local memory, also where they do not call.
    WARPSET_CALLED static Outcome put_directly(Table table, Unit unit, BatchCounts* counts)
    {
        u32 words[width];
        write_words(unit, words);
        const Outcome outcome = table.find_or_put(WordVector{words}).outcome;
        if (counts) {
            platform::count_relaxed(&counts->hits, outcome == Outcome::New);
            platform::count_relaxed(&counts->full, outcome == Outcome::Full);
        }
        return outcome;
    }

private:
    WARPSET_FN static void write_words(u32 unit, u32* words) { *words = unit; }
    WARPSET_FN static void write_words(u64 unit, u32* words)
    {
        write_words(static_cast<u32>(unit), words);
        write_words(static_cast<u32>(unit >> 32), words + 1);
    }
    WARPSET_FN static void write_words(u128 unit, u32* words)
    {
        write_words(unit.low, words);
        write_words(unit.high, words + 2);
    }
};

// The vectors that a block sorts at a time: some of one segment.
struct BulkTile {
    u32 number, segment;
    u64 start;  // position in `from`
    u32 count;  // 0: the segment has fewer vectors

    // Products and quotients of 32 bits, because those of 64 take as many instructions as several vectors.
    WARPSET_FN BulkTile(const BulkPass& pass, u32 number_, u32 size) : number(number_)
    {
        const u32 a_segment = tiles_of_segment(pass, size);
        segment = number / a_segment;
        const u64 first = static_cast<u64>(number - segment * a_segment) * size;
        start = segment * pass.from_capacity + first;
        const u64 offered = pass.from_counts == nullptr ? pass.from_capacity : pass.from_counts[segment];
        const u64 end = offered < pass.from_capacity ? offered : pass.from_capacity;
        count = static_cast<u32>(first >= end ? 0 : end - first < size ? end - first : size);
    }

    WARPSET_FN static u32 tiles_of_segment(const BulkPass& pass, u32 size)
    {
        return static_cast<u32>((pass.from_capacity + size - 1) / size);
    }
    WARPSET_FN static u32 number_of_tiles(const BulkPass& pass, u32 size)
    {
        return tiles_of_segment(pass, size) * static_cast<u32>(pass.segments);
    }
};

// Step 1.
template <class Table>
struct BulkPartition {
    using Of = Bulk<Table>;
    using Unit = typename Of::Unit;
    using Warp = platform::Warp;
    using Block = platform::Block;
    static constexpr u32 items = Of::items;

    const Table& table;
    const BulkPass& pass;
    Unit* sorted;    // the tile, sorted by parts
    u16* parts;      // the part of each of these
    u64* targets;    // of each part: where its run goes, and where the vectors with room end
    u32* firsts;     // of each part: the place where its run begins; before that, the vectors of the run
    u32* sums;       // of each warp
    u32* overflows;  // parts that have too little room

    // The vector at place p goes to position p + `run_offset` of `to`, mod 2^32, if p is less than `run_end`.
    WARPSET_FN static u32 run_offset(u64 run) { return static_cast<u32>(run); }
    WARPSET_FN static u32 run_end(u64 run) { return static_cast<u32>(run >> 32); }

    WARPSET_FN BulkPartition(const Table& table, const BulkPass& pass) : table(table), pass(pass)
    {
        const u32 size = Of::block() * items;
        sorted = reinterpret_cast<Unit*>(Block::scratch());
        parts = reinterpret_cast<u16*>(sorted + size);
        targets = reinterpret_cast<u64*>(parts + size);
        firsts = reinterpret_cast<u32*>(targets + pass.parts);
        sums = firsts + pass.parts;
        overflows = sums + 32;
    }

    WARPSET_FN void run() const
    {
        const u32 size = Of::block() * items;
        const u32 tiles = BulkTile::number_of_tiles(pass, size), step = static_cast<u32>(platform::Grid::threads() / Of::block());
        for (u32 number = static_cast<u32>(platform::Grid::thread() / Of::block()); number < tiles; number += step) {
            const BulkTile tile(pass, number, size);
            if (tile.count == 0) continue;
            sort(tile);
            Block::sync();
            write(tile);
            Block::sync();
        }
    }

private:
    WARPSET_FN static Unit load(const u8* vectors, u64 index)
    {
        return platform::load_input(reinterpret_cast<const Unit*>(vectors) + index);
    }

    WARPSET_FN void sort(const BulkTile& tile) const
    {
        const u32 thread = Block::thread(), threads = Of::block();
        const u32 slices = static_cast<u32>(table.view.buckets >> platform::population_count(table.view.slice_mask));
        for (u32 part = thread; part < pass.parts; part += threads) firsts[part] = 0;
        if (thread == 0) *overflows = 0;
        Block::sync();
        const Unit* const from = reinterpret_cast<const Unit*>(pass.from) + tile.start + thread;
        // Both in registers. `rank`: the part, and how many vectors of the tile took a place in it before. Zeros at first, or
        // else the compiler keeps those of the last tile, where this one has fewer.
        Unit unit[items]{};
        u32 rank[items]{};
        WARPSET_UNROLL
        for (u32 item = 0; item < items; ++item)
            if (item * threads + thread < tile.count) unit[item] = platform::load_input(from + item * threads);
        WARPSET_UNROLL
        for (u32 item = 0; item < items; ++item) {
            if (item * threads + thread >= tile.count) continue;
            const u32 slice = Of::slice_of(pass.seeds.hash(unit[item], table.view.hash_mask), slices);
            const u32 part = (slice >> pass.shift) - tile.segment * pass.parts;
            // Relaxed: only the uniqueness of the places matters.
            rank[item] = part << 16 | platform::fetch_add_shared(firsts + part, 1);
        }
        Block::sync();
        take_rooms(tile);
        Block::sync();
        WARPSET_UNROLL
        for (u32 item = 0; item < items; ++item) {
            const u32 at = item * threads + thread;
            if (at >= tile.count) continue;
            const u32 part = rank[item] >> 16, place = firsts[part] + (rank[item] & 0xFFFF);
            sorted[place] = unit[item];
            parts[place] = static_cast<u16>(part);
            if (pass.places == nullptr) continue;
            const bool has_room = place < run_end(targets[part]);
            pass.places[tile.start + at] = has_room ? static_cast<u16>(place) : Of::no_place;
        }
    }

    // Adds up the sizes, and takes room in the parts.
    WARPSET_FN void take_rooms(const BulkTile& tile) const
    {
        const u32 thread = Block::thread(), warp = thread / Warp::size, warps = Of::block() / Warp::size;
        const u32 a_thread = (pass.parts + Of::block() - 1) / Of::block(), first = thread * a_thread;
        const u32 end = first + a_thread < pass.parts ? first + a_thread : pass.parts;
        u32 size = 0;
        WARPSET_UNROLL_BY(1)
        for (u32 part = first; part < end; ++part) size += firsts[part];
        const u32 up_to = Warp::sum_up_to(size);
        if (Warp::lane() == Warp::size - 1) sums[warp] = up_to;
        Block::sync();
        if (warp == 0) {
            const u32 sum = Warp::sum_up_to(Warp::lane() < warps ? sums[Warp::lane()] : 0);
            if (Warp::lane() < warps) sums[Warp::lane()] = sum;
        }
        Block::sync();
        u32 place = up_to - size + (warp == 0 ? 0 : sums[warp - 1]);
        WARPSET_UNROLL_BY(1)
        for (u32 part = first; part < end; ++part) {
            const u32 count = firsts[part];
            const u64 number = static_cast<u64>(tile.segment) * pass.parts + part;
            // Relaxed: only the uniqueness of the room matters. The vectors are read by a later kernel.
            u64 room = 0;
            if (count != 0) room = platform::fetch_add_relaxed(pass.to_counts + number, count);
            firsts[part] = place;
            const u64 free = room < pass.to_capacity ? pass.to_capacity - room : 0;
            const u32 last = place + static_cast<u32>(free < count ? free : count);
            targets[part] = static_cast<u32>(number * pass.to_capacity + room - place) | static_cast<u64>(last) << 32;
            if (pass.places != nullptr)
                pass.runs[static_cast<u64>(tile.number) * pass.parts + part] = room | static_cast<u64>(place) << 32;
            if (free < count) platform::fetch_add_shared(overflows, 1);
            place += count;
        }
    }

    // Copies the runs of the sorted tile to their parts, and puts the vectors without room.
    WARPSET_FN void write(const BulkTile& tile) const
    {
        Unit* const to = reinterpret_cast<Unit*>(pass.to);
        WARPSET_UNROLL_BY(4)
        for (u32 place = Block::thread(); place < tile.count; place += Of::block()) {
            const u64 run = targets[parts[place]];
            if (place < run_end(run)) to[run_offset(run) + place] = sorted[place];
            else if (pass.places == nullptr) Of::put_directly(table, sorted[place], pass.counts);
        }
        if (pass.places == nullptr || *overflows == 0) return;
        // In the order of `from`, because outcomes are in this order.
        for (u32 at = Block::thread(); at < tile.count; at += Of::block()) {
            const u64 index = tile.start + at;
            // This thread has written the place.
            if (pass.places[index] != Of::no_place) continue;
            pass.outcomes[index] = static_cast<u8>(Of::put_directly(table, load(pass.from, index), pass.counts));
        }
    }
};

// Step 4: brings the outcomes of a pass back, from the order of `to` to that of `from`.
template <class Table>
struct BulkReplay {
    using Of = Bulk<Table>;
    using Block = platform::Block;
    static constexpr u32 lanes = 8;                     // that copy a run
    static constexpr u32 rounds = (Of::items + 3) / 4;  // in each of these a thread has four vectors of a tile

    const BulkPass& pass;
    u64* runs;   // of the tile
    u8* sorted;  // outcomes of the tile, in the order of its sorted vectors

    WARPSET_FN explicit BulkReplay(const BulkPass& pass) : pass(pass)
    {
        runs = reinterpret_cast<u64*>(Block::scratch());
        sorted = reinterpret_cast<u8*>(runs + pass.parts);
    }

    WARPSET_FN void run() const
    {
        const u32 size = Of::block() * Of::items, threads = Of::block();
        const u32 tiles = BulkTile::number_of_tiles(pass, size), step = static_cast<u32>(platform::Grid::threads() / threads);
        for (u32 number = static_cast<u32>(platform::Grid::thread() / threads); number < tiles; number += step) {
            const BulkTile tile(pass, number, size);
            if (tile.count == 0) continue;
            // Four places at a time, at the end with padding of the array. They are requested before the runs, and needed after.
            u64 places[rounds]{};
            WARPSET_UNROLL
            for (u32 round = 0; round < rounds; ++round) {
                const u32 at = first_of(round);
                if (at >= tile.count) continue;
                places[round] = platform::load_input(reinterpret_cast<const u64*>(pass.places + tile.start + at));
            }
            const u64* const of_tile = pass.runs + static_cast<u64>(number) * pass.parts;
            for (u32 part = Block::thread(); part < pass.parts; part += threads) runs[part] = of_tile[part];
            Block::sync();
            for (u32 part = Block::thread() / lanes; part < pass.parts; part += threads / lanes) copy_run(tile, part);
            Block::sync();
            WARPSET_UNROLL
            for (u32 round = 0; round < rounds; ++round) write(tile, first_of(round), places[round]);
            Block::sync();
        }
    }

private:
    WARPSET_FN static u32 first_of(u32 round) { return (round * Of::block() + Block::thread()) * 4; }

    // Reads whole words. The first and the last may have bytes of other runs, or padding of the array.
    WARPSET_FN void copy_run(const BulkTile& tile, u32 part) const
    {
        const u32 first = static_cast<u32>(runs[part] >> 32), room = static_cast<u32>(runs[part]);
        const u32 end = part + 1 < pass.parts ? static_cast<u32>(runs[part + 1] >> 32) : tile.count;
        const u32 free = room < pass.to_capacity ? static_cast<u32>(pass.to_capacity) - room : 0;
        const u32 count = end - first < free ? end - first : free;
        const u64 position = (static_cast<u64>(tile.segment) * pass.parts + part) * pass.to_capacity + room;
        const u32 before = static_cast<u32>(position % 4);
        const u32* const words = reinterpret_cast<const u32*>(pass.to_outcomes + (position - before));
        for (u32 word = Block::thread() % lanes; word * 4 < before + count; word += lanes) {
            const u32 bytes = words[word];
            WARPSET_UNROLL
            for (u32 i = 0; i < 4; ++i) {
                const u32 at = word * 4 + i - before;  // huge before the run
                if (at < count) sorted[first + at] = static_cast<u8>(bytes >> 8 * i);
            }
        }
    }

    // Writes the outcomes of four vectors, but for those that were put at once.
    WARPSET_FN void write(const BulkTile& tile, u32 first, u64 places) const
    {
        u8* const outcomes = pass.outcomes + tile.start + first;
        u32 bytes = 0, known = 0;
        WARPSET_UNROLL
        for (u32 i = 0; i < 4; ++i) {
            const u32 place = static_cast<u32>(places >> 16 * i) & 0xFFFF;
            if (first + i >= tile.count || place == Of::no_place) continue;
            known |= 1u << i;
            bytes |= static_cast<u32>(sorted[place]) << 8 * i;
        }
        if (known == 15 && reinterpret_cast<u64>(outcomes) % 4 == 0) {
            *reinterpret_cast<u32*>(outcomes) = bytes;
            return;
        }
        WARPSET_UNROLL
        for (u32 i = 0; i < 4; ++i)
            if (known >> i & 1) outcomes[i] = static_cast<u8>(bytes >> 8 * i);
    }
};

// Step 3: a thread puts the vectors of a word of marks. The first thread of the grid also adds the number of vectors of the
// batch to its counts.
template <class Table>
WARPSET_FN void put_left(const Table& table, const BulkSlices& bulk)
{
    using Of = Bulk<Table>;
    using Block = platform::Block;
    const u64 count = *bulk.left_count, step = platform::Grid::threads() / Block::threads();
    for (u64 number = platform::Grid::thread() / Block::threads(); number < count; number += step) {
        const u64 slice = bulk.left[number], offered = bulk.sizes[slice];
        const u64 vectors = offered < bulk.capacity ? offered : bulk.capacity;
        const u32* const marks = reinterpret_cast<const u32*>(Of::marks_of(bulk, slice));
        for (u64 word = Block::thread(); word * 32 < vectors; word += Block::threads()) {
            for (u32 rest = marks[word]; rest != 0; rest &= rest - 1) {
                const u64 at = slice * bulk.capacity + word * 32 + platform::lowest_bit(rest);
                const auto unit = platform::load_input(reinterpret_cast<const typename Of::Unit*>(bulk.vectors) + at);
                const Outcome outcome = Of::put_directly(table, unit, bulk.counts);
                if (bulk.outcomes) bulk.outcomes[at] = static_cast<u8>(outcome);
            }
        }
    }
    if (bulk.counts && platform::Grid::thread() == 0) platform::add_relaxed(&bulk.counts->offered, bulk.offered);
}

}  // namespace warpset
