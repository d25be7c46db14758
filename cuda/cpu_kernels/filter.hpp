// The filter of a bucket table on a CPU: bits of all stored vectors, with which lookups of absent vectors read no slot.
//
// The filter is an array of 64-bit words beside the slots, one word for 8 slots (1 byte a slot). A vector has one word, and 3
// bits in it, by its hash. The put that stores a vector sets its bits. A lookup reads the word of its vector: if a bit is not
// set, the vector is absent; if all are, the lookup reads slots. (A Bloom filter whose blocks are single words: Putze, Sanders
// and Singler 2007.) The word is the hash scaled to the number of words, so it depends on the high bits of the hash, as the
// bucket does; the bits are the 18 low bits. By calculation about 1 % of absent vectors have all bits set at fill 0.5, 2 % at
// 0.7, 3 % at 0.9.
//
// When may a lookup use it? A put stores a vector first, and sets its bits later. Another call can have Seen the vector in
// between; a lookup that begins after that call must not take the vector for absent. The rule, which src/backend/cpu/filter.rs
// implements and proves: a lookup call uses the filter only if no put call is under way when it begins. Puts never read the
// filter, so a put that finds its vector stored pays nothing.
//
// A put sets the bits of its last 16 new vectors when they leave a ring, so that the word of each has arrived from memory.
// `finish` sets the others, before the put call ends. (2 words, ns a new vector: 20 without a filter, 30 with the ring, 103 if
// the bits are set at once, because the next compare-and-swap waits for that write.)
//
// Tried and dropped for the same purpose, by a program that calls these functions, on one thread of an AMD EPYC beside other
// work, fill 0.7, 2^22 vectors of 2 words and 2^21 of 8; figures are ratios to the time without:
//   - A tag a slot (8 bits of the hash, 0 for EMPTY; lookups compare the tags of a bucket at once, and end where searches of
//     slots do): absent 0.75 and 0.76 where the filter takes 0.28 and 0.27, because a search still walks from bucket to bucket
//     and its end is mispredicted. New vectors pay as much (1.43 and 1.21; 1.51 and 1.26 with the filter in the same run).
//   - A second pass over each piece of a batch, which hashes the New vectors again and sets their bits: new 1.44 and 1.60.
//   - A plain store instead of an atomic OR (which would lose bits of other threads): new 1.47 and 1.24, as the OR in that run.
//   - 2 or 4 bits a vector: new 1.23 and 1.30 instead of 1.25 (2 words); with 2 bits absent 0.41 instead of 0.31.
//   - Rings of 4 and 64 vectors instead of 16: new 1.86 and 1.50 instead of 1.51 (2 words).
#pragma once

#include "warpset/batch/search.cuh"

namespace warpset {

// A bucket table with a filter.
template <class Shape>
struct FilteredTable : BucketTable<Shape> {
    using Base = BucketTable<Shape>;
    using Roots = FilteredTable;

    u64* filter;
    u64 words;  // of the filter

    WARPSET_FN FilteredTable(const BucketTable<Shape>& table, u64* filter, u64 words) : Base(table), filter(filter), words(words) {}
    WARPSET_FN const Roots& root_table() const { return *this; }

    // Word of the filter for a vector with this hash, and the vector's bits in it.
    WARPSET_FN u64* word_of(u64 hash) const { return filter + platform::high_product(hash, words); }
    WARPSET_FN static u64 bits_of(u64 hash) { return 1ull << (hash & 63) | 1ull << (hash >> 6 & 63) | 1ull << (hash >> 12 & 63); }

    // False: no put that has ended stored a vector with this hash (src/backend/cpu/filter.rs). Relaxed: the order comes from the
    // count of puts there.
    WARPSET_FN bool may_hold(u64 hash) const
    {
        const u64 bits = bits_of(hash);
        return (platform::load_relaxed(word_of(hash)) & bits) == bits;
    }

    WARPSET_FN void prefetch_word(u64 hash) const { platform::prefetch(word_of(hash), sizeof(u64)); }
};

// Find-or-put by one thread, which sets the bits of new vectors.
template <class Shape>
struct ThreadSearch<FilteredTable<Shape>, Operation::FindOrPut> {
    using Table = FilteredTable<Shape>;

    // New vectors whose bits are not set yet: the hashes of the last ones.
    struct Lane {
        static constexpr u32 size = 16;
        u64 hashes[size];
        u32 count = 0;

        // Other threads set bits of the same word. Relaxed: published by the end of the put call (src/backend/cpu/filter.rs).
        WARPSET_FN static void set(const Table& table, u64 hash)
        {
            __atomic_fetch_or(table.word_of(hash), Table::bits_of(hash), __ATOMIC_RELAXED);
        }

        WARPSET_FN void add(const Table& table, u64 hash)
        {
            table.prefetch_word(hash);
            u64& place = hashes[count % size];
            if (count >= size) set(table, place);
            place = hash;
            ++count;
        }

        WARPSET_FN void finish(const Table& table)
        {
            for (u32 i = 0; i < (count < size ? count : size); ++i) set(table, hashes[i]);
        }
    };

    ThreadSearch<BucketTable<Shape>, Operation::FindOrPut> search;
    u64 hash;

    template <class Vector>
    WARPSET_FN void begin(const Table& table, const Vector& vector)
    {
        hash = table.hash(vector);
        search.begin(table, vector, hash);
    }

    template <class Vector>
    WARPSET_FN Found step(const Table& table, const Vector& vector, Lane& lane)
    {
        typename ThreadSearch<BucketTable<Shape>, Operation::FindOrPut>::Lane none{};
        const Found found = search.step(table, vector, none);
        if (found.outcome == Outcome::New) lane.add(table, hash);
        return found;
    }
};

// Looks up a batch. Hashes some vectors, which prefetches their words of the filter; then reads these words, which leaves the
// vectors that may be stored; and searches for those as `SearchBatch::run_thread` does.
template <class Shape>
struct SearchBatch<FilteredTable<Shape>, Operation::Find, Offer::Whole> {
    using Table = FilteredTable<Shape>;

    WARPSET_FN static void run_thread(const Table& table, const BatchView& batch)
    {
        constexpr u32 max_turns = Shape::static_width == 1 ? 32 : 24;
        using Search = ThreadSearch<BucketTable<Shape>, Operation::Find>;
        struct Turn {
            u64 index;  // position of the vector in the batch
            WordVector key;
            Search search;
        };
        const u32 width = table.width();
        Results<Operation::Find, BatchView> results{table.stored_count(), batch};
        Candidate candidates[block];
        u32 left = 0;
        u64 next = 0;
        const auto begin = [&](Turn& turn) {
            while (left == 0) {
                if (next == batch.count) return false;
                const u32 count = static_cast<u32>(batch.count - next < block ? batch.count - next : block);
                left = pass(table, batch, next, count, candidates);
                next += count;
            }
            const Candidate& candidate = candidates[--left];
            turn.index = candidate.index;
            turn.key = WordVector{batch.vectors + candidate.index * width};
            turn.search.begin(table, turn.key, candidate.hash);
            return true;
        };
        typename Search::Lane lane{};
        Turn turns[max_turns];
        u32 count = 0;
        while (count < max_turns && begin(turns[count])) ++count;
        for (Turn *turn = turns, *end = turns + count; end != turns; turn = turn + 1 < end ? turn + 1 : turns) {
            const Found found = turn->search.step(table, turn->key, lane);
            if (found.outcome == Outcome::Pending) continue;
            if (found.outcome == Outcome::Seen) results.record(turn->index, found.outcome, batch.reference_to(found.reference));
            if (!begin(*turn)) *turn = *--end;
        }
        results.finish();
        if (batch.counts && platform::Grid::thread() == 0) platform::add_relaxed(&batch.counts->offered, batch.count);
    }

private:
    static constexpr u32 block = 64;

    // A vector that may be stored.
    struct Candidate {
        u64 index;  // its position in the batch
        u64 hash;
    };

    // Takes `count` vectors from `next` on. Answers Absent for all of them, which a search overwrites if it finds one. Returns
    // the number of candidates among them. There is no branch that depends on a vector. A function of its own, because GCC does
    // not inline the hash into a larger one.
    WARPSET_CALLED static u32 pass(const Table& table, const BatchView& batch, u64 next, u32 count, Candidate* candidates)
    {
        const u32* vector = batch.vectors + next * table.width();
        u64 hashes[block];
        for (u32 i = 0; i < count; ++i, vector += table.width()) {
            hashes[i] = table.hash(WordVector{vector});
            table.prefetch_word(hashes[i]);
        }
        u32 candidate = 0;
        for (u32 i = 0; i < count; ++i) {
            if (batch.outcomes) batch.outcomes[next + i] = static_cast<u8>(Outcome::Absent);
            if (batch.references) batch.references[next + i] = batch.no_slot();
            candidates[candidate] = {next + i, hashes[i]};
            candidate += table.may_hold(hashes[i]);
        }
        return candidate;
    }
};

}  // namespace warpset
