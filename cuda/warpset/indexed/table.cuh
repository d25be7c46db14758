// The indexed table: a set of vectors of one width, stored in rows without gaps, in the order of discovery. References are row
// numbers.
//
//   index:  buckets of 32 bytes      | tag, row 3 | tag, row 0 | EMPTY | EMPTY |   | tag, row 2 | ...
//   rows:   vectors, in order        | row 0 | row 1 | row 2 | row 3 | ...             (indexed/rows.cuh)
//
// An index slot has 4 or 8 bytes: 0 (EMPTY), or row number + 1 in the low bits and some bits of the vector's hash (the *tag*)
// above. Buckets are probed as in a bucket table (core/probe.cuh), slots of a bucket in order:
//
//   | slot  | holds           | who may change it                                                     | to             |
//   |-------|-----------------|-----------------------------------------------------------------------|----------------|
//   | EMPTY | 0               | a lane that owns a row and has written its vector there, by one CAS    | its tag, row   |
//   | named | a tag and a row | no thread                                                             | -              |
//
// The index uses chained claiming (core/claim.cuh) with a chain of one chunk, except that the compared words lie elsewhere: in
// the row that the slot names. This adds one obligation: a thread that sees a slot must see its row.
//
//   1. A slot goes from EMPTY to a name once and never changes. (Only the compare-and-swap of `find_or_put_in`, and that of
//      indexed/search.cuh, writes. It expects EMPTY.)
//   2. Only the owner of a row writes it, before a slot names it, and never again: ownership ends with the owner's first claim
//      that succeeds. So at most one slot names a row, and a named row holds one whole vector that a caller offered, never a
//      mixture.
//   3. *Publication.* The claim releases (device scope), after the last write of the row. A thread sees a slot named by a load,
//      or by a compare-and-swap that fails. This access acquires (device scope), before the first read of the row. So a thread
//      that compares sees all words of the row.
//      If one thread searches alone, these are memory orders of the claim and of the load. If a warp searches, both are relaxed,
//      and a fence (acquire and release, device scope) of the same lane has the same effect. The lane executes it after the last
//      write and before the claim, and after the load, or the failed claim, and before the first read. What a lane releases by
//      its fence before a claim is acquired by every lane that sees that claim and then executes a fence, or sees it by an
//      acquiring access. Other lanes of the warp may write and read parts of the row: the warp executes a Warp::sync between
//      their writes and the fence, and between the fence and their reads.
//   4. A thread leaves a slot only if its name has another tag, or if the thread has compared the row and found it different.
//      Equal vectors have equal tags. So by 1 to 3 the slot can never come to hold the thread's vector. Equal vectors walk the
//      same slots in the same order, so a vector is never named twice; and the one thread whose claim names it is the only one
//      to report New.
//   5. A lane that loses a claim learns the slot's final content from it, and compares or goes on. No lane waits for another.
//      A lane that stops for ever (a killed kernel) costs at most one row, which is not a member of the set.
//
// Why the fence stays, a fifth of the time that a put waits (benches/bucket.md): without it, a lane could see a slot named before
// it sees the words of the row. If rows began as EMPTY chunks, as slots of a bucket table do, the lane would notice the missing
// words, but could only look again, because it cannot help. The row has an owner, whose vector may differ in those very words,
// and which has reported New: a lane that decided the missing chunks by its own vector would change a stored row. So the lane
// would wait for another thread's store, for a time that no rule of the memory model bounds. Chained claims of the chunks of a
// row would let the lane help, but then the name comes first, and no chunk of a row is decided before all chunks in front of it:
// 8 dependent claims for 32 words, instead of one fence. The bucket table does just that, at 6.6 / 5.5 / 4.6 G/s where this one
// has 7.5 / 6.6 / 6.6 (H200, fill 0.25 / 0.7 / 0.9). Both ways also cost what rows save now: memory for rows would have to be
// written before its first use, and a row whose claim was lost could not be used again.
//
// A lane that loses a claim, to an equal vector or to another one, keeps its row for its next vector. No other thread can read
// that row.
//
// A reference is final as soon as a caller gets it. Neither find-or-put nor growth of the index moves a row: growth rebuilds the
// index from the rows (`rebuild` in indexed/maintenance.cuh). The host closes holes when nothing else uses the table, and only
// with rows whose references no caller has yet (src/core/indexed.rs). So references are 0 .. len - 1 if no calls overlapped.
//
// Other writers: `clear_table`, `rebuild` and `move_rows` (indexed/maintenance.cuh), while nothing else uses the table.
//
// Reading a row by its number (`holds`): rows below `dense` are stored. For other rows only the index can tell: the thread reads
// the row, whatever it holds, hashes it, and searches the slots on the walk of that hash for one that names the row. If it finds
// one, the row is stored, by 2, and the slot acquired. If not, the row is not stored yet, or a hole.
//
// Full: `probe_limit` buckets had no EMPTY slot, or no row was left. The set does not change then.
//
// Bytes per vector: 4 x width for its row, and 8 / fill for its slot (4 / fill, as long as row numbers leave 7 bits for tags).
#pragma once

#include "warpset/core/hash.cuh"
#include "warpset/core/layout.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/core/probe.cuh"
#include "warpset/core/vectors.cuh"
#include "warpset/indexed/rows.cuh"

namespace warpset {

// View of an indexed table: the argument of kernels. Mirrored by `IndexedView` in src/layout/view.rs (tests/library/abi.rs).
struct IndexedView {
    u8* slots;          // slots of the index
    u64 buckets;        // in whole slices (core/probe.cuh)
    u32 slice_buckets;  // all buckets, or those of a slice: a power of two
    u32 slice_mask;     // all ones, or slice_buckets - 1
    const u128* seeds;  // width + 1, see core/hash.cuh
    u64* stored;        // number of stored vectors
    u64 hash_mask;      // all ones
    u32 row_bits;       // low bits of a slot, which hold the row's number plus 1
    u32 probe_limit;    // buckets probed before Full
    RowsView rows;
};

template <u32 slot_bits, u32 static_width>
struct IndexedLayout {
    static constexpr u32 bucket_bytes = 32;
    WARPSET_FN constexpr u32 width() const { return static_width; }
    WARPSET_FN constexpr u32 slot_words() const { return static_width; }  // of what a lane of a search holds
    WARPSET_FN constexpr u32 slots_per_bucket() const { return bucket_bytes * 8 / slot_bits; }
    WARPSET_FN constexpr u32 buckets_per_block() const { return 1; }
    WARPSET_FN constexpr u32 block_bytes() const { return bucket_bytes; }
    WARPSET_FN constexpr u32 chunks() const { return 1; }
};

template <u32 static_width_, u32 slot_bits>
struct IndexedTable {
    static_assert(slot_bits == 32 || slot_bits == 64, "slots of 4 or 8 bytes");
    using View = IndexedView;
    using Layout = IndexedLayout<slot_bits, static_width_>;
    using Slot = typename Choose<slot_bits == 32, u32, u64>::Type;
    using Rows = warpset::Rows<static_width_>;
    static constexpr Slot empty = 0;
    static constexpr bool is_compact = false;
    static constexpr bool has_nodes = false;
    static constexpr bool is_incremental = false;
    static constexpr u32 static_width = static_width_;  // 0: known at run time

    View view;
    Rows rows;
    Layout layout;

    WARPSET_FN static IndexedTable of(const View& view) { return {view, {view.rows}, {}}; }

    // View of the same table that gives no vector a row before `row`. Spares before it are lost when a lane finds them. So if the
    // levels of a search are ranges of rows, no new state gets a row in a finished level.
    WARPSET_FN IndexedTable with_rows_from(u64 row) const
    {
        IndexedTable table = *this;
        table.rows.first_spare = row;
        return table;
    }

    // State that a lane keeps between vectors: a row that it owns, or no_row.
    struct Lane {
        u64 row = no_row;

        WARPSET_FN void finish(const IndexedTable& table)
        {
            if (row != no_row) table.rows.give(row);
            row = no_row;
        }
    };

    WARPSET_FN constexpr u32 width() const { return rows.width(); }

    template <class Vector>
    WARPSET_FN u64 hash(const Vector& vector) const
    {
        return hash_vector(view.seeds, width(), view.hash_mask, vector);
    }

    WARPSET_FN Slot* slot_at(u64 bucket, u32 index) const
    {
        return reinterpret_cast<Slot*>(view.slots + bucket * Layout::bucket_bytes) + index;
    }

    // Tag of a hash, shifted to its position in a slot. A tag consists of low bits of the hash, because the high ones determine
    // the bucket (core/probe.cuh).
    WARPSET_FN Slot tag_of(u64 hash) const { return static_cast<Slot>(hash) << view.row_bits; }
    WARPSET_FN Slot name(Slot tag, u64 row) const { return tag | static_cast<Slot>(row + 1); }
    WARPSET_FN bool fits(Slot slot, Slot tag) const { return (slot ^ tag) >> view.row_bits == 0; }
    WARPSET_FN u64 row_of(Slot slot) const { return (slot & ((Slot{1} << view.row_bits) - 1)) - u64{1}; }

    WARPSET_FN void prefetch(const Probe& probe) const { platform::prefetch(slot_at(probe.bucket, 0), Layout::bucket_bytes); }

    // Find-or-put by one thread. Other threads may run any operation on the table except `clear` at the same time.
    // New: this call stored the vector. Seen: another call did. Full: the vector is not stored.
    template <class Vector>
    WARPSET_FN Found find_or_put(const Vector& vector) const
    {
        const u64 hashed = hash(vector);
        Probe probe = Probe::start(hashed, view);
        Lane lane;
        Found found;
        do found = find_or_put_in(probe.bucket, vector, tag_of(hashed), lane);
        while (found.outcome == Outcome::Pending && probe.advance(view));
        if (found.outcome == Outcome::Pending) found.outcome = Outcome::Full;
        lane.finish(*this);
        platform::count_relaxed(view.stored, found.outcome == Outcome::New);
        return found;
    }

    // Overload with a key. Tree tables convert vectors to keys (tree/table.cuh); here the key is the vector.
    template <class Vector>
    WARPSET_FN Found find_or_put_incremental(u64, const Vector& vector) const
    {
        return find_or_put(WordVector{vector.words});
    }

    // Searches one bucket of the probe sequence; Pending: the search continues in the next bucket. Does not count in
    // `*view.stored`.
    template <class Vector>
    WARPSET_FN Found find_or_put_in(u64 bucket, const Vector& vector, Slot tag, Lane& lane) const
    {
        bool written = false;
        for (u32 index = 0; index < layout.slots_per_bucket(); ++index) {
            // Acquire, device scope: pairs with the release of the claim that named it (3 above).
            Slot seen = platform::load_acquire(slot_at(bucket, index));
            if (seen == empty) {
                if (lane.row == no_row) lane.row = rows.take();
                if (lane.row == no_row) return {Outcome::Full, no_reference};
                if (!written) rows.write(lane.row, vector);
                written = true;
                // Release, device scope: a thread that acquires the slot sees the row. Acquire: this thread sees the row that
                // another thread has named.
                seen = platform::compare_and_swap_acquire_release(slot_at(bucket, index), empty, name(tag, lane.row));
                if (seen == empty) {
                    const u64 row = lane.row;
                    lane.row = no_row;
                    return {Outcome::New, row};
                }
            }
            if (fits(seen, tag) && rows.equals(row_of(seen), vector)) return {Outcome::Seen, row_of(seen)};
        }
        return {Outcome::Pending, no_reference};
    }

    // Seen if the vector is stored, otherwise Absent. If another thread is putting the vector meanwhile, either may result.
    template <class Vector>
    WARPSET_FN Found find(const Vector& vector) const
    {
        const u64 hashed = hash(vector);
        Probe probe = Probe::start(hashed, view);
        do {
            const Found found = find_in(probe.bucket, vector, tag_of(hashed));
            if (found.outcome != Outcome::Pending) return found;
        } while (probe.advance(view));
        return {Outcome::Absent, no_reference};
    }

    // Searches one bucket; Pending: the search continues in the next bucket.
    template <class Vector>
    WARPSET_FN Found find_in(u64 bucket, const Vector& vector, Slot tag) const
    {
        for (u32 index = 0; index < layout.slots_per_bucket(); ++index) {
            const Slot seen = platform::load_acquire(slot_at(bucket, index));  // as in find_or_put_in
            if (seen == empty) return {Outcome::Absent, no_reference};
            if (fits(seen, tag) && rows.equals(row_of(seen), vector)) return {Outcome::Seen, row_of(seen)};
        }
        return {Outcome::Pending, no_reference};
    }

    // Address of the slot that names a row, or null. If no slot names it, the row's words may have any values.
    WARPSET_FN Slot* slot_naming(u64 row) const
    {
        Probe probe = Probe::start(hash(RowVector<static_width_>{rows, row}), view);
        do {
            for (u32 index = 0; index < layout.slots_per_bucket(); ++index) {
                const Slot seen = platform::load_acquire(slot_at(probe.bucket, index));
                if (seen == empty) return nullptr;
                if (row_of(seen) == row) return slot_at(probe.bucket, index);
            }
        } while (probe.advance(view));
        return nullptr;
    }

    // Whether a row is stored; then its words may be read.
    WARPSET_FN bool holds(u64 row) const { return row < view.rows.dense || (row < rows.count() && slot_naming(row) != nullptr); }

    // Word `word` of a row. Requires that this thread, or one that it has synchronised with since, has found the row stored.
    WARPSET_FN u32 word(u64 row, u32 word) const { return rows.word(row, word); }

    // As above, for any row; returns false if the row is not stored.
    WARPSET_FN bool read_word(u64 row, u32 word, u32& value) const
    {
        if (!holds(row)) return false;
        value = rows.word(row, word);
        return true;
    }

    // Calls `use(word, value)` for the words first, first + step, ... of a row: all words, or a lane's share. Returns false if
    // the row is not stored.
    template <class Use>
    WARPSET_FN bool read_words(u64 row, u32 first, u32 step, Use use) const
    {
        if (!holds(row)) return false;
        for (u32 word = first; word < width(); word += step) use(word, rows.word(row, word));
        return true;
    }

    // Upper bound of references: all are less.
    WARPSET_FN u64 slots() const { return rows.count(); }

    // Enters a stored row, which no slot names, into the index. Only other calls of this function may use the table meanwhile.
    // Returns false if it finds no slot.
    WARPSET_FN bool insert(u64 row) const
    {
        const u64 hashed = hash(RowVector<static_width_>{rows, row});
        const Slot named = name(tag_of(hashed), row);
        Probe probe = Probe::start(hashed, view);
        do {
            for (u32 index = 0; index < layout.slots_per_bucket(); ++index) {
                Slot* slot = slot_at(probe.bucket, index);
                // Relaxed: no thread reads a row because of what it found in a slot, and the end of the launch orders the writes
                // before everything after it.
                if (platform::load_relaxed(slot) == empty && platform::compare_and_swap_relaxed(slot, empty, named) == empty)
                    return true;
            }
        } while (probe.advance(view));
        return false;
    }

    // Key of a search and the table that it searches: the vector and this table.
    using Roots = IndexedTable;
    using Key = WordVector;
    template <Operation>
    WARPSET_FN bool key(WordVector vector, Key& key) const
    {
        key = vector;
        return true;
    }
    WARPSET_FN const Roots& root_table() const { return *this; }
    WARPSET_FN u64* stored_count() const { return view.stored; }
};

}  // namespace warpset
