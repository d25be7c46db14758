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
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/core/layout.cuh"
#include "warpset/core/probe.cuh"

namespace warpset {

// How the larger table is divided into parts. Units are slices; or, in a table of one slice, blocks of the larger table and
// buckets of the smaller one. If both tables `have_slices`, numbers of units have 32 bits.
template <class Shape, bool have_slices = false>
struct GrowthParts {
    using Number = typename Choose<have_slices, u32, u64>::Type;

    u32 from_log2, to_log2;  // logarithms of the buckets of a unit
    // Buckets of a unit, and of a table: in slices if both have them, so that products fit 64 bits.
    Number from_unit, to_unit, from_all, to_all;
    Number units_a_part, units, count;

    // On a CPU parts fit a core's cache, but for slices of wide vectors. A bucket has 32 bytes or more, and a slice at most this
    // number of buckets.
    static constexpr u32 part_bytes = 256 << 10, most_buckets = 8192;

    WARPSET_FN GrowthParts(const BucketTable<Shape>& from, const BucketTable<Shape>& to, u64 units_a_part_ = 0)
    {
        const bool from_sliced = from.view.slice_mask != ~0u, to_sliced = to.view.slice_mask != ~0u;
        const u32 a_block = to.layout.buckets_per_block();
        const u32 from_buckets = from_sliced ? from.view.slice_buckets : 1;
        const u32 to_buckets = to_sliced ? to.view.slice_buckets : a_block;
        from_log2 = platform::population_count(from_buckets - 1);
        to_log2 = platform::population_count(to_buckets - 1);
        const u32 scale_log2 = from_sliced && to_sliced ? to_log2 : 0;
        from_unit = have_slices ? 1 : Number{1} << (from_log2 - scale_log2);
        to_unit = have_slices ? 1 : Number{1} << (to_log2 - scale_log2);
        from_all = static_cast<Number>(from.view.buckets >> scale_log2);
        to_all = static_cast<Number>(to.view.buckets >> scale_log2);
        units = (to_all + to_unit - 1) / to_unit;
        units_a_part = static_cast<Number>(units_a_part_ != 0 ? units_a_part_ : best_units_a_part(to, to_buckets));
        count = (units + units_a_part - 1) / units_a_part;
    }

    // In units of the smaller table, and of the larger one.
    struct Part {
        Number number, from_first, from_last, first, last;
    };

    WARPSET_FN Part part(Number number) const
    {
        const Number first = number * units_a_part, end = first + units_a_part, last = end < units ? end : units;
        const u64 whole = u64{to_all} * from_unit, ends_at = u64{last} * to_unit < to_all ? u64{last} * to_unit : to_all;
        const u64 from_first = u64{first} * to_unit * from_all / whole, from_last = (ends_at * from_all + whole - 1) / whole;
        return {number, static_cast<Number>(from_first), static_cast<Number>(from_last), first, last};
    }

    WARPSET_FN u64 from_bucket(Number unit) const { return u64{unit} << from_log2; }
    WARPSET_FN u64 to_bucket(Number unit) const { return u64{unit} << to_log2; }
    WARPSET_FN Number unit_of(u64 to_bucket) const { return static_cast<Number>(to_bucket >> to_log2); }

    // Whether some hash has its first buckets in two units.
    WARPSET_FN bool share_hashes(Number from, Number to) const
    {
        const u64 from_end = (u64{from} + 1) * from_unit, to_end = (u64{to} + 1) * to_unit;
        return u64{to} * to_unit * from_all < from_end * to_all && to_end * from_all > u64{from} * from_unit * to_all;
    }

    // Whether the part with a unit of the larger table reads one of the smaller table.
    WARPSET_FN bool is_read(Number from, Number to) const
    {
        const Part home = part(to / units_a_part);
        return from >= home.from_first && from < home.from_last;
    }

    // The parts that read a unit of the smaller table: here the first of them.
    WARPSET_FN Number first_reader(Number from) const
    {
        return static_cast<Number>(u64{from} * from_unit * to_all / (u64{from_all} * to_unit) / units_a_part);
    }

private:
    WARPSET_FN u64 best_units_a_part(const BucketTable<Shape>& to, u64 to_buckets) const
    {
        const u64 unit_bytes = to_buckets / to.layout.buckets_per_block() * to.layout.block_bytes();
        // All units that share hashes with a unit of the smaller table, so that one part alone reads this. A multiple of them.
        const u64 sharing = u64{to_all} * from_unit / (u64{from_all} * to_unit), wanted = sharing == 0 ? 1 : sharing;
        const u64 together = wanted * to_buckets <= most_buckets ? wanted : 1;
        const u64 fitting = part_bytes / (unit_bytes * together) * together;
        return fitting != 0 ? fitting : together;
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
    WARPSET_FN u32 take(u32 bucket, u32 slots, bool) const { return counts[bucket] < slots ? counts[bucket]++ : slots; }
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

// Gives slots of a part to the vectors of the smaller table. `at` is the number of a slot among those that the part reads, and
// buckets are those of the part.
template <class Shape, class Parts, class Counters, class Left>
struct PartSlots {
    using Table = BucketTable<Shape>;

    const Table& from;
    const Table& to;
    const Parts& parts;
    const typename Parts::Part& part;
    Counters counters;
    Left left;

    WARPSET_FN u32 in_bucket() const { return to.layout.slots_per_bucket(); }
    WARPSET_FN u64 first_bucket() const { return parts.to_bucket(part.first); }
    WARPSET_FN u64 first_from_bucket() const { return parts.from_bucket(part.from_first); }
    WARPSET_FN u32 buckets() const { return static_cast<u32>(part.last - part.first) << parts.to_log2; }
    // Slots of the smaller table that the part reads.
    WARPSET_FN u32 from_slots() const
    {
        return (static_cast<u32>(part.from_last - part.from_first) << parts.from_log2) * in_bucket();
    }

    // Takes a slot for the vector with a hash. Returns false if the part has none for it.
    WARPSET_FN bool take(u64 hash, bool may_be_barred, u32 at, u32& bucket, u32& index) const
    {
        Probe probe = Probe::of_first_bucket(hash, to.view);
        if (!has(probe.bucket)) {
            const auto from_unit = part.from_first + (at / in_bucket() >> parts.from_log2), unit = parts.unit_of(probe.bucket);
            if (!parts.share_hashes(from_unit, unit))
                leave_if_not_read(parts, part.number, left, from_unit, unit, slot_number(at));
            return false;
        }
        if (!may_be_barred) {
            do {
                bucket = static_cast<u32>(probe.bucket) - static_cast<u32>(first_bucket());
                index = counters.take(bucket, in_bucket(), probe.probes == 0);
                if (index < in_bucket()) return true;
                if (probe.probes == 0) probe.make_step(to.view);
            } while (probe.advance(to.view) && has(probe.bucket));
        }
        left.add(slot_number(at));
        return false;
    }

private:
    WARPSET_FN bool has(u64 bucket) const { return parts.unit_of(bucket) - part.first < part.last - part.first; }
    WARPSET_FN u64 slot_number(u32 at) const { return first_from_bucket() * in_bucket() + at; }

    // For a vector that belongs to the part of another unit: if that part does not read the vector's slot, the first part that
    // reads it leaves the vector to find-or-put. A separate function, because calls are rare.
    WARPSET_CALLED static void leave_if_not_read(Parts parts, typename Parts::Number number, Left left,
                                                 typename Parts::Number from_unit, typename Parts::Number unit, u64 slot)
    {
        if (!parts.is_read(from_unit, unit) && number == parts.first_reader(from_unit)) left.add(slot);
    }
};

// Fills a part by one thread.
template <class Shape, class Left>
struct PartFiller {
    using Table = BucketTable<Shape>;

    PartSlots<Shape, GrowthParts<Shape>, OwnSlotCounters, Left> slots;
    // If not, nothing is written: a trial, which finds the vectors that would be left.
    bool writes;

    // Returns the number of vectors that it has put.
    WARPSET_FN u32 fill() const
    {
        slots.counters.clear(slots.buckets());
        // Faster for short vectors, slower for others (cpu_kernels/growth.hpp).
        constexpr bool clears_first = Shape::static_width != 0 && Shape::static_width <= 4;
        if (clears_first && writes) clear();
        u32 count = 0;
        const u32 all = slots.from_slots();
        WARPSET_UNROLL_BY(1)
        for (u32 at = 0; at < all; ++at) count += move(at);
        if (!clears_first && writes) clear();
        return count;
    }

private:
    // Writes EMPTY to the slots that no vector has.
    WARPSET_FN void clear() const
    {
        for (u32 bucket = 0; bucket < slots.buckets(); ++bucket)
            for (u32 index = slots.counters.taken(bucket); index < slots.in_bucket(); ++index)
                slots.to.clear_slot(slots.first_bucket() + bucket, index);
    }

    // Moves the vector in a slot, if it is the part's. Returns whether it was.
    WARPSET_FN bool move(u32 at) const
    {
        const Table& to = slots.to;
        u32 words[Layout<Shape>::most_slot_words];
        const u32 in_bucket = slots.in_bucket();
        if (!slots.from.read_vector(slots.first_from_bucket() + at / in_bucket, at % in_bucket, words)) return false;
        const WordVector vector{words};
        u32 bucket, index;
        if (!slots.take(to.hash(vector), !to.forbidden_classes(vector).is_empty(), at, bucket, index)) return false;
        if (!writes) return true;
        const u32 chunks = to.layout.chunks();
        WARPSET_UNROLL
        for (u32 chunk = 0; chunk < chunks; ++chunk)
            to.with_chunk(slots.first_bucket() + bucket, index, chunk, vector,
                          [](auto* address, auto, auto value) { *address = value; });
        return true;
    }
};

}  // namespace warpset
