// Step 2 of bulk find-or-put (bucket/bulk.cuh): a block puts the vectors of a slice, in an *image* of the slice in shared memory.
//
// The image of an EMPTY slot is 0. Any other image is the slot's vector XOR EMPTY of class 0, and also XOR the slot's class if
// that is less than the number of classes; so it is never 0. Vectors with images that small are left, so that searches need not
// know the class of a slot.
//
// Vectors of four words: the image is two halves. The first halves of all slots come before the second ones, so that the first
// halves of two slots are one access. The first half is combined with a product of the second one, so that vectors which differ
// only there have different first halves. Both halves of a slot are claimed one after the other, by the rules of core/claim.cuh
// for a slot of two chunks, where 0 is undecided. So vectors whose image has a half that is 0 are left as well. A slot that holds
// one is *blocked*: its first half is set to 1. No search looks for 1, and slots with it are not copied back.
//
// In a turn each lane of a warp looks at one bucket for its vector, so lanes do not diverge. Undecided searches (the bucket is
// full, or another vector has won the slot) are kept until they fill a warp.
//
// One H200, 2^27 vectors, each twice, fill 0.7: 1.17, 1.39 and 2.17 ms with 1, 2 and 4 words. A warp executes 206, 250 and 359
// instructions for 32 vectors, and a multiprocessor 2.8, 2.9 and 2.7 of the 4 that it can in a cycle; DRAM is 20 to 43 % busy.
// (Events around the kernel and `ncu --clock-control none`, in a program that launches it with the arguments of a batch.) Tried,
// with the times of 2 words relative to this (2.1, 2, 1.6 and 2.3 are products of two measured ratios):
//
//   - Lanes that each go on by themselves as soon as their vector is put (380 instructions): 1.5; with 1 word 1.33, with 4 words
//     1.5. At fill 0.25 only 0.98, and 0.86 with 1 word. Two vectors of a lane hashed together: 2.1; four hashed before, and kept
//     in shared memory: 1.7; 16 bytes of a bucket and one claim in a turn: 2.
//   - Warps that stay together until all their vectors are put: 1.6; at fill 0.95, 2.3.
//   - Kept searches that end when they are read, instead of being kept once more: 1.04; at fill 0.95, 1.3.
//   - 16 bytes of a bucket first, and the rest only for lanes that need it: 1.05.
//   - Images combined with EMPTY of the slot's class, which each look has to compute: 1.05.
//   - Vectors requested two turns before, or prefetched to L2: 1.0.
//   - Whole vectors of 4 words, by 128-bit compare-and-swaps of shared memory: 1.2 times the time of two halves.
#pragma once

#include "warpset/bucket/bulk.cuh"

namespace warpset {

template <class Table>
struct BulkFiller {
    using Of = Bulk<Table>;
    using Unit = typename Of::Unit;
    using Warp = platform::Warp;
    using Block = platform::Block;
    static constexpr u32 slots_per_bucket = typename Table::Layout{}.slots_per_bucket();
    static constexpr u32 bucket_bytes = typename Table::Layout{}.bucket_main_bytes();

    // Adjacent slots of a bucket have different classes of EMPTY.
    static constexpr u32 classes = 2;
    static_assert(typename Table::Layout{}.empty_classes() == classes);

    // A search compares this part of a vector first: all of it, or the first half if it has four words.
    static constexpr bool has_halves = Of::width == 4;
    using Head = typename Choose<has_halves, u64, Unit>::Type;
    static constexpr Head blocked = 1;
    static constexpr u64 multiplier = 0x9E3779B97F4A7C15ull;  // odd

    // Heads that are read together, and the number of such rows in a bucket.
    static constexpr u32 in_row = 16 / sizeof(Head), rows = slots_per_bucket / in_row;

    // Searches that a warp keeps, at most.
    static constexpr u32 stack_size = 2 * Warp::size;

    const Table& table;
    const BulkSlices& bulk;
    Head* heads;         // of the slots of a slice
    u64* second_halves;  // of these
    u64* stack;          // searches that this warp keeps
    u32* left;           // not 0 if vectors of the slice are left

    // Shared memory: the image of a slice, the stacks, `left`. Mirrored by `fill_bytes` in src/backend/cuda/bulk_plan.rs.
    WARPSET_FN BulkFiller(const Table& table, const BulkSlices& bulk) : table(table), bulk(bulk)
    {
        u8* const image = Block::scratch();
        u64* const stacks = reinterpret_cast<u64*>(image + slice_bytes());
        heads = reinterpret_cast<Head*>(image);
        second_halves = reinterpret_cast<u64*>(image + slice_bytes() / 2);
        stack = stacks + Block::thread() / Warp::size * stack_size;
        left = reinterpret_cast<u32*>(stacks + threads() / Warp::size * stack_size);
    }

    WARPSET_FN void run() const
    {
        // The slots of an empty table need not be read. If another block counts its vectors first, some threads read EMPTY, to
        // the same effect. Relaxed: no other block of this kernel writes to slices of this one.
        const bool is_empty = platform::load_relaxed(table.view.stored) == 0;
        const u64 step = platform::Grid::threads() / threads();
        u32 hits = 0;  // of this thread; those of a warp are fewer than 2^32, too
        for (u64 slice = platform::Grid::thread() / threads(); slice < bulk.slices; slice += step) {
            const u64 offered = bulk.sizes[slice];
            const u32 count = static_cast<u32>(offered < bulk.capacity ? offered : bulk.capacity);
            if (count != 0) hits += fill(slice, count, is_empty);
        }
        const u32 sum = Warp::sum_up_to(hits);
        if (Warp::lane() != Warp::size - 1 || sum == 0) return;
        // Relaxed: the counts are read after the kernel.
        platform::add_relaxed(table.view.stored, sum);
        if (bulk.counts) platform::add_relaxed(&bulk.counts->hits, sum);
    }

private:
    WARPSET_FN static u32 threads() { return Block::template threads<Of::fill_threads>(); }
    WARPSET_FN u32 slice_bytes() const { return table.view.slice_buckets * bucket_bytes; }

    WARPSET_FN u32 fill(u64 slice, u32 count, bool is_empty) const
    {
        const u64 first = slice * table.view.slice_buckets;
        u128* const slots = reinterpret_cast<u128*>(table.view.slots + table.layout.main_offset(first));
        const u32 thread = Block::thread(), units = slice_bytes() / sizeof(u128);
        if (thread == 0) *left = 0;
        WARPSET_UNROLL_BY(4)
        for (u32 unit = thread; unit < units; unit += threads()) {
            // A variable, because the simulated GPU does not see a store of what a call returns.
            u128 image{0, 0};
            if (!is_empty) image = image_of(slots[unit], Patterns(*this, first, unit));
            write_image(unit, image);
        }
        Block::sync();
        const u32 hits = put_vectors(slice, count);
        Block::sync();
        WARPSET_UNROLL_BY(4)
        for (u32 unit = thread; unit < units; unit += threads()) {
            const u128 image = read_image(unit);
            if (has_halves && image.low == blocked) continue;
            const u128 value = value_of(image, Patterns(*this, first, unit));
            slots[unit] = value;
        }
        // Relaxed: only the uniqueness of the place matters. The list is read by a later kernel.
        if (thread == 0 && *left != 0) bulk.left[platform::fetch_add_relaxed(bulk.left_count, 1)] = slice;
        Block::sync();
        return hits;
    }

    // EMPTY of class 0, repeated, and the class of the first slot, for 16 aligned bytes of a slice.
    struct Patterns {
        u128 empty;
        u32 first_class;

        WARPSET_FN Patterns(const BulkFiller& filler, u64 first_bucket, u32 unit)
        {
            constexpr u32 in_bucket = bucket_bytes / sizeof(u128), slots = 16 / sizeof(Unit);
            const u32 of_bucket = Table::class_of_bucket(first_bucket + unit / in_bucket);
            first_class = filler.table.class_in(of_bucket, slots == 1 ? unit % in_bucket : 0);
            if constexpr (slots == 1) {
                filler.table.empty_chunk(0, empty);
            } else {
                Unit pattern;
                filler.table.empty_chunk(0, pattern);
                const u64 repeated = slots == 2 ? pattern : pattern * 0x100000001ull;
                empty = {repeated, repeated};
            }
        }

        // Exchanges EMPTY of class 0 and of class 1 in slots of class 1.
        WARPSET_FN u128 with_classes(u128 image) const
        {
            const u32 next_class = first_class ^ 1;
            if constexpr (sizeof(Unit) == 16) return {with_class(image.low, first_class), image.high};
            if constexpr (sizeof(Unit) == 8) return {with_class(image.low, first_class), with_class(image.high, next_class)};
            return {pair_with_classes(image.low), pair_with_classes(image.high)};
        }

    private:
        template <class Word>
        WARPSET_FN static Word with_class(Word image, u32 slot_class)
        {
            return image < classes ? image ^ slot_class : image;
        }
        WARPSET_FN u64 pair_with_classes(u64 images) const
        {
            const u32 low = with_class(static_cast<u32>(images), first_class);
            return low | static_cast<u64>(with_class(static_cast<u32>(images >> 32), first_class ^ 1)) << 32;
        }
    };

    // The image of 16 bytes of slots, and back.
    WARPSET_FN static u128 image_of(u128 value, const Patterns& patterns)
    {
        u128 image = patterns.with_classes(mixed(combined(value, patterns.empty)));
        if (has_halves && (image.low == 0) != (image.high == 0)) image.low = blocked;
        return image;
    }
    WARPSET_FN static u128 value_of(u128 image, const Patterns& patterns)
    {
        return combined(mixed(patterns.with_classes(image)), patterns.empty);
    }

    // Each of these is its own inverse.
    template <class Value>
    WARPSET_FN static Value combined(Value value, Value other)
    {
        if constexpr (sizeof(Value) == 16) return {value.low ^ other.low, value.high ^ other.high};
        else return value ^ other;
    }
    WARPSET_FN static u128 mixed(u128 image)
    {
        return {has_halves ? image.low ^ image.high * multiplier : image.low, image.high};
    }

    WARPSET_FN void write_image(u32 unit, u128 image) const
    {
        if constexpr (has_halves) {
            heads[unit] = image.low;
            second_halves[unit] = image.high;
        } else {
            reinterpret_cast<u128*>(heads)[unit] = image;
        }
    }
    WARPSET_FN u128 read_image(u32 unit) const
    {
        if constexpr (has_halves) return {heads[unit], second_halves[unit]};
        else return reinterpret_cast<const u128*>(heads)[unit];
    }

    // A search in the slice.
    struct Search {
        u32 at;      // number of the vector in its part
        u32 bucket;  // in the slice
        u32 step, probes;
        u32 slot;    // of the bucket: those before it are decided for other vectors; only used with halves

        // A slice has at most 8,192 slots, and a search leaves it after a 32nd of its buckets.
        static_assert(slots_per_bucket >= 4 && (!has_halves || slots_per_bucket < 16));

        WARPSET_FN u64 pack() const { return at | static_cast<u64>(bucket | step << 11 | probes << 22 | slot << 28) << 32; }
        WARPSET_FN static Search unpack(u64 packed)
        {
            const u32 high = static_cast<u32>(packed >> 32);
            return {static_cast<u32>(packed), high & 2047, high >> 11 & 2047, high >> 22 & 63, high >> 28};
        }
    };

    // Results of a warp in a slice, and its searches.
    struct Progress {
        u64* marks;
        u8* outcomes;  // null if they are not wanted
        u32 hits = 0;  // of this lane
        u32 kept = 0;  // searches on the stack
        bool some_left = false;
    };

    // Results of a look at a bucket, besides New and Seen: the vector is left, or the search goes on.
    static constexpr u32 is_left = static_cast<u32>(Outcome::Pending), goes_on = 0x80;

    WARPSET_FN u32 put_vectors(u64 slice, u32 count) const
    {
        const u64 first = slice * bulk.capacity;
        const Unit* const vectors = reinterpret_cast<const Unit*>(bulk.vectors) + first;
        Progress progress{Of::marks_of(bulk, slice), bulk.outcomes ? bulk.outcomes + first : nullptr};
        // The next vector is requested before this one is put.
        u32 at = Block::thread(), at_of_warp = at - Warp::lane();
        const Unit* next_vector = vectors + at;
        Unit next{};
        if (at < count) next = platform::load_input(next_vector);
        while (true) {
            const bool no_more = at_of_warp >= count;
            if (!no_more) {
                const Unit vector = next;
                const bool has_vector = at < count;
                const Probe probe = Probe::start(bulk.seeds.hash(vector, table.view.hash_mask), table.view);
                Search search{at, static_cast<u32>(probe.bucket) & table.view.slice_mask, probe.step, 0, 0};
                at += threads();
                at_of_warp += threads();
                next_vector += threads();
                if (at < count) next = platform::load_input(next_vector);
                take_turn(progress, search, vector, has_vector, false);
            }
            while (progress.kept >= (no_more ? 1 : Warp::size)) {
                const u32 taken = no_more ? progress.kept : Warp::size;  // in the end the rest, which is less
                progress.kept -= taken;
                const bool has_vector = Warp::lane() < taken;
                Search search{};
                Unit vector{};
                if (has_vector) {
                    search = Search::unpack(stack[progress.kept + Warp::lane()]);
                    vector = platform::load_input(vectors + search.at);
                }
                // Other lanes write there next.
                Warp::sync();
                take_turn(progress, search, vector, has_vector, no_more);
            }
            if (no_more) break;
        }
        // Relaxed: one thread reads it behind a barrier.
        if (progress.some_left) platform::fetch_add_shared(left, 1);
        return progress.hits;
    }

    // A turn of the warp: each lane that has a vector looks at one bucket; in the last turn it goes on until its search ends.
    // Otherwise searches that go on are kept.
    WARPSET_FN void take_turn(Progress& progress, Search& search, Unit vector, bool has_vector, bool is_last) const
    {
        u32 result = 0;
        if (has_vector) {
            result = probe_bucket(vector, search);
            while (is_last && result == goes_on) result = probe_bucket(vector, search);
            progress.hits += result == static_cast<u32>(Outcome::New);
            if (progress.outcomes && result != goes_on) progress.outcomes[search.at] = static_cast<u8>(result);
            if (result == is_left) {
                progress.some_left = true;
                // Relaxed: a later kernel reads the marks. Each bit is added once.
                platform::add_relaxed(progress.marks + search.at / 64, u64{1} << search.at % 64);
            }
        }
        const u32 going_on = Warp::ballot(result == goes_on);
        if (going_on == 0) return;
        const u32 place = progress.kept + platform::population_count(going_on & ((1u << Warp::lane()) - 1));
        // A variable, as in `fill`.
        const u64 packed = search.pack();
        if (result == goes_on) stack[place] = packed;
        progress.kept += platform::population_count(going_on);
        Warp::sync();
    }

    // Looks for a vector in one bucket, and claims a slot for it.
    WARPSET_FN u32 probe_bucket(Unit vector, Search& search) const
    {
        Head head;
        u64 second_half = 1;
        encode(vector, head, second_half);
        if (head < classes || second_half == 0) return is_left;
        Head* const bucket = heads + search.bucket * slots_per_bucket;
        platform::Row<Head, in_row> seen[rows];
        WARPSET_UNROLL
        for (u32 row = 0; row < rows; ++row) platform::load_row_shared(bucket + row * in_row, seen[row]);
        // The first slot that is EMPTY or, with halves, has this head. Slots before `search.slot` are skipped: other vectors hold
        // them. Without halves all slots may be compared: a head that is not 0 is a whole vector.
        u32 found = slots_per_bucket;
        bool equals = false;
        WARPSET_UNROLL
        for (u32 slot = slots_per_bucket; slot-- > 0;) {
            const Head other = seen[slot / in_row].chunk[slot % in_row];
            if constexpr (has_halves) {
                if (slot < search.slot || (other != 0 && other != head)) continue;
                found = slot;
                equals = other != 0;
            } else {
                if (other == 0) found = slot;
                equals |= other == head;
            }
        }
        if (!has_halves && equals) return static_cast<u32>(Outcome::Seen);
        if (found == slots_per_bucket) {
            Probe probe{0, search.step, search.probes};
            const bool stays = probe.advance_in_slice(search.bucket, table.view);
            search.probes = probe.probes;
            search.slot = 0;
            return stays ? goes_on : is_left;
        }
        // Relaxed: the value read is the value compared. Only threads of this block use the slice.
        Decision decided = equals ? Decision::Agreed : claim(bucket + found, head);
        if constexpr (has_halves) {
            // The winner of the last half is New. Another vector with this head may have decided it.
            u64* const half = second_halves + search.bucket * slots_per_bucket + found;
            if (decided != Decision::Different) decided = claim(half, second_half);
            search.slot = found + 1;
        }
        if (decided == Decision::Different) return goes_on;
        return static_cast<u32>(decided == Decision::Won ? Outcome::New : Outcome::Seen);
    }

    template <class Word>
    WARPSET_FN static Decision claim(Word* address, Word value)
    {
        return decision(platform::compare_and_swap_shared(address, Word{0}, value), Word{0}, value);
    }

    // The image of a vector.
    WARPSET_FN void encode(Unit vector, Head& head, u64& second_half) const
    {
        Unit empty;
        table.empty_chunk(0, empty);
        if constexpr (has_halves) {
            const u128 image = mixed(combined(vector, empty));
            head = image.low;
            second_half = image.high;
        } else {
            head = combined(vector, empty);
        }
    }
};

}  // namespace warpset
