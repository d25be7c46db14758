// The bucket table: a set of vectors of one width, stored whole in slots, with find-or-put as its one writing operation.
//
// This header has the operations of a single thread. bucket/warp_search.cuh has those of a warp, whose 32 lanes work together;
// bucket/lane_search.cuh has them for vectors of one word.
// Both may run at the same time on one table. The view is copyable, owns nothing and is the argument of every kernel, including
// the user's own.
//
// Sources: core/claim.cuh for claiming. Bucketed open addressing on GPUs is from Wijs and Bosnacki (2014) and Bergsma (2019,
// chapter 5).
//
// EMPTY forbids no vector. An undecided chunk holds a pattern: the table's 16 random bytes (or their first 8 or 4), with the low
// bits of the first word XORed with the slot's *class*. The class is the scrambled number of the slot's bucket plus the slot's
// index, modulo `empty_classes`, a power of two greater than the number of chunks of a vector.
//   - If one of a slot's EMPTY chunks equals the vector's own chunk (`forbids`), the vector is never put into that slot: its
//     search skips the slot, as do those of all equal vectors. So invariant 3 of core/claim.cuh holds, and no decided chunk ever
//     equals EMPTY.
//   - Each chunk of a vector can match at most one class. So a vector with n chunks is excluded from at most n of more than n
//     classes, and every vector can be stored, whatever its bits.
//   - A chunk of a real vector equals one of the patterns with a probability of about 2^-100 (16 bytes; 2^-25 for a tail of 4).
//     So the cost is one comparison per chunk while it is hashed, and one bit test per slot (`ClassSet`).
//   In a table of very few slots, a vector that was built from the table's seed may be Full although a slot is free.
//
// Full: the search gave up after `probe_limit` buckets. The table does not change then, and neither does any stored vector.
#pragma once

#include "warpset/core/claim.cuh"
#include "warpset/core/hash.cuh"
#include "warpset/core/layout.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/core/probe.cuh"
#include "warpset/core/vectors.cuh"

namespace warpset {

// View of a bucket table: the argument of kernels. Mirrored by `TableView` in src/layout/view.rs; tests/library/abi.rs compares.
struct TableView {
    u8* slots;
    u64 buckets;           // in whole slices (core/probe.cuh)
    u32 slice_buckets;     // all buckets, or those of a slice: a power of two
    u32 slice_mask;        // all ones, or slice_buckets - 1
    const u128* seeds;     // width + 1, see core/hash.cuh
    u64* stored;           // number of stored vectors
    u64 hash_mask;         // all ones
    u32 empty[4];          // the table's EMPTY pattern
    u32 probe_limit;       // buckets probed before Full
    u32 width;             // words per vector
};

// A set of EMPTY classes.
template <u32 words>
struct ClassSet {
    u32 bits[words] = {};

    WARPSET_FN void insert(u32 empty_class)
    {
        WARPSET_UNROLL
        for (u32 word = 0; word < words; ++word)
            if (empty_class / 32 == word) bits[word] |= 1u << empty_class % 32;
    }

    WARPSET_FN bool is_empty() const
    {
        u32 any = 0;
        WARPSET_UNROLL
        for (u32 word = 0; word < words; ++word) any |= bits[word];
        return any == 0;
    }

    WARPSET_FN bool has(u32 empty_class) const
    {
        if constexpr (platform::Warp::size == 1) return bits[empty_class / 32] >> empty_class % 32 & 1;
        // Only constant indices are used, so that the words stay in registers.
        bool found = false;
        WARPSET_UNROLL
        for (u32 word = 0; word < words; ++word) found |= empty_class / 32 == word && (bits[word] >> empty_class % 32 & 1);
        return found;
    }
};

template <class Shape>
struct BucketTable {
    using Layout = warpset::Layout<Shape>;
    using Main = typename Shape::Main;
    using Classes = ClassSet<Layout::class_set_words>;

    using View = TableView;
    static constexpr bool is_compact = false;
    static constexpr bool has_nodes = false;
    static constexpr bool is_incremental = false;
    static constexpr u32 static_width = Shape::static_width;  // 0: known at run time

    TableView view;
    Layout layout;

    // Table of a view; the shape must be static.
    WARPSET_FN static BucketTable of(const View& view) { return {view, {}}; }

    // A slot is identified by its bucket and its *index* there, or by its number.
    WARPSET_FN u64 slot_number(u64 bucket, u32 index) const { return bucket * layout.slots_per_bucket() + index; }

    // Scrambled, because a probe sequence is an arithmetic progression of buckets: a vector that is excluded from all classes but
    // one might not reach that class for a long time.
    WARPSET_FN static u32 class_of_bucket(u64 bucket)
    {
        u32 mixed = static_cast<u32>(bucket) * 0x9E3779B1u;
        mixed = (mixed ^ mixed >> 15) * 0x85EBCA77u;
        return mixed >> 16;
    }
    WARPSET_FN u32 class_in(u32 class_of_bucket, u32 index) const
    {
        return (class_of_bucket + index) & (layout.empty_classes() - 1);
    }
    WARPSET_FN u32 empty_class(u64 bucket, u32 index) const { return class_in(class_of_bucket(bucket), index); }

    // The EMPTY pattern of a class, at each chunk size.
    WARPSET_FN void empty_chunk(u32 empty_class, u32& chunk) const { chunk = view.empty[0] ^ empty_class; }
    WARPSET_FN void empty_chunk(u32 empty_class, u64& chunk) const
    {
        chunk = (view.empty[0] ^ empty_class) | static_cast<u64>(view.empty[1]) << 32;
    }
    WARPSET_FN void empty_chunk(u32 empty_class, u128& chunk) const
    {
        u64 low;
        empty_chunk(empty_class, low);
        chunk = {low, view.empty[2] | static_cast<u64>(view.empty[3]) << 32};
    }

    // Calls `use(address, empty, value)` for chunk `chunk` of a slot, with the type of that chunk.
    template <class Vector, class Use>
    WARPSET_FN auto with_chunk(u64 bucket, u32 index, u32 chunk, const Vector& vector, Use use) const
    {
        if (layout.has_tails() && chunk >= layout.main_chunks()) {
            u32 in_block = layout.index_in_block(bucket) + index;
            u32 pattern = empty_class(bucket, index);
            u8* block = view.slots + layout.block_offset(bucket);
            u32 main_words = layout.main_bytes() / 4;
            if (layout.has_tail8() && chunk == layout.main_chunks())
                return use_chunk<u64>(block + layout.tail8_offset() + in_block * 8, pattern, vector, main_words, use);
            return use_chunk<u32>(block + layout.tail4_offset() + in_block * 4, pattern, vector, layout.slot_words() - 1, use);
        }
        return with_main(bucket, index, chunk, vector, use);
    }

    // As above, for a main chunk.
    template <class Vector, class Use>
    WARPSET_FN auto with_main(u64 bucket, u32 index, u32 chunk, const Vector& vector, Use use) const
    {
        u64 slot = layout.main_offset(bucket) + index * static_cast<u64>(layout.main_bytes());
        return use_chunk<Main>(view.slots + slot + chunk * sizeof(Main), empty_class(bucket, index), vector,
                               chunk * static_cast<u32>(sizeof(Main) / 4), use);
    }

    // Calls `use(address, empty)` for chunk `chunk` of a slot.
    template <class Use>
    WARPSET_FN auto with_empty(u64 bucket, u32 index, u32 chunk, Use use) const
    {
        return with_chunk(bucket, index, chunk, Nothing{}, [&](auto* address, auto empty, auto) { return use(address, empty); });
    }

    template <class Vector>
    WARPSET_FN Decision decide_chunk(u64 bucket, u32 index, u32 chunk, const Vector& vector, bool expect_empty) const
    {
        return with_chunk(bucket, index, chunk, vector, [expect_empty](auto* address, auto empty, auto value) {
            return decide(address, empty, value, expect_empty);
        });
    }

    template <class Vector>
    WARPSET_FN Decision look_at_chunk(u64 bucket, u32 index, u32 chunk, const Vector& vector) const
    {
        return with_chunk(bucket, index, chunk, vector,
                          [](auto* address, auto empty, auto value) { return look(address, empty, value); });
    }

    // Classes of the slots that must not hold this vector, because one of its chunks equals EMPTY there.
    template <class Vector>
    WARPSET_FN Classes forbidden_classes(const Vector& vector) const
    {
        Classes forbidden;
        if constexpr (platform::Warp::size == 1) {
            // Almost no vector has such a class. Comparing the first words of its chunks is enough to tell.
            const u32* words = words_of(vector);
            if (words == nullptr)
                collect_forbidden(forbidden, vector);
            else if (may_be_forbidden(words))
                collect_some_forbidden(forbidden, vector);
        } else {
            collect_forbidden(forbidden, vector);
        }
        return forbidden;
    }

    template <class Vector>
    WARPSET_FN void collect_forbidden(Classes& forbidden, const Vector& vector) const
    {
        WARPSET_UNROLL_BY(4)
        for (u32 chunk = 0; chunk < layout.main_chunks(); ++chunk)
            forbid_class_of<Main>(forbidden, vector, chunk * static_cast<u32>(sizeof(Main) / 4));
        if (layout.has_tail8()) forbid_class_of<u64>(forbidden, vector, layout.main_bytes() / 4);
        if (layout.has_tail4()) forbid_class_of<u32>(forbidden, vector, layout.slot_words() - 1);
    }

    // A separate function, because calls are rare.
    template <class Vector>
    WARPSET_CALLED void collect_some_forbidden(Classes& forbidden, const Vector& vector) const
    {
        collect_forbidden(forbidden, vector);
    }

    WARPSET_FN bool forbids(const Classes& forbidden, u64 bucket, u32 index) const
    {
        return forbidden.has(empty_class(bucket, index));
    }

    // Whether the slot holds a vector, that is, all its chunks are decided. The last chunk alone would imply that (invariant 2 of
    // core/claim.cuh). But relaxed loads of different chunks may be reordered, so a chunk may be read only after it has itself
    // been seen decided.
    WARPSET_FN bool is_complete(u64 bucket, u32 index) const
    {
        bool complete = true;
        for (u32 chunk = layout.chunks(); complete && chunk-- > 0;)
            complete = with_chunk(bucket, index, chunk, Nothing{},
                                  [](auto* address, auto empty, auto) { return !(platform::load_relaxed(address) == empty); });
        return complete;
    }

    // Writes EMPTY to all chunks of a slot. Nothing else may use the table at the same time.
    WARPSET_FN void clear_slot(u64 bucket, u32 index) const
    {
        const u32 chunks = layout.chunks();
        WARPSET_UNROLL
        for (u32 chunk = 0; chunk < chunks; ++chunk)
            with_chunk(bucket, index, chunk, Nothing{}, [](auto* address, auto empty, auto) { *address = empty; });
    }

    template <class Vector>
    WARPSET_FN u64 hash(const Vector& vector) const
    {
        return hash_vector(view.seeds, layout.width(), view.hash_mask, vector);
    }

    // Prefetches a bucket.
    WARPSET_FN void prefetch(u64 bucket) const
    {
        const u8* block = view.slots + layout.block_offset(bucket);
        u32 index = layout.index_in_block(bucket);
        platform::prefetch(block + index * static_cast<u64>(layout.main_bytes()), layout.bucket_main_bytes());
        if (layout.has_tail8()) platform::prefetch(block + layout.tail8_offset() + index * 8, layout.slots_per_bucket() * 8);
        if (layout.has_tail4()) platform::prefetch(block + layout.tail4_offset() + index * 4, layout.slots_per_bucket() * 4);
    }

    // Find-or-put by one thread. Other threads may run any operation on the table except `clear` at the same time.
    // New: this call stored the vector. Seen: another call did. Full: the vector is not stored.
    template <class Vector>
    WARPSET_FN Found find_or_put(const Vector& vector) const
    {
        const Classes forbidden = forbidden_classes(vector);
        Probe probe = Probe::start(hash(vector), view);
        Found found;
        do found = find_or_put_in(probe.bucket, vector, forbidden);
        while (found.outcome == Outcome::Pending && probe.advance(view));
        if (found.outcome == Outcome::Pending) found.outcome = Outcome::Full;
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
    WARPSET_FN Found find_or_put_in(u64 bucket, const Vector& vector, const Classes& forbidden) const
    {
        if constexpr (is_matched_at_once<platform::Warp>())
            return match_in<Operation::FindOrPut, platform::Warp>(bucket, vector, forbidden);
        for (u32 index = 0; index < layout.slots_per_bucket(); ++index) {
            if (forbids(forbidden, bucket, index)) continue;
            const Peek peek = peek_at(bucket, index, vector);
            if (peek == Peek::Holds) return {Outcome::Seen, slot_number(bucket, index)};
            if (peek == Peek::Other) continue;
            Decision decision = peek == Peek::Empty ? Decision::Won : Decision::Agreed;
            for (u32 chunk = 0; chunk < layout.chunks() && decision != Decision::Different; ++chunk)
                decision = decide_chunk(bucket, index, chunk, vector, decision == Decision::Won);
            if (decision == Decision::Different) continue;
            return {decision == Decision::Won ? Outcome::New : Outcome::Seen, slot_number(bucket, index)};
        }
        return {Outcome::Pending, no_reference};
    }

    // Seen if the vector is stored, otherwise Absent. If another thread is putting the vector meanwhile, either may result.
    template <class Vector>
    WARPSET_FN Found find(const Vector& vector) const
    {
        const Classes forbidden = forbidden_classes(vector);
        Probe probe = Probe::start(hash(vector), view);
        do {
            Found found = find_in(probe.bucket, vector, forbidden);
            if (found.outcome != Outcome::Pending) return found;
        } while (probe.advance(view));
        return {Outcome::Absent, no_reference};
    }

    // Searches one bucket; Pending: the search continues in the next bucket.
    template <class Vector>
    WARPSET_FN Found find_in(u64 bucket, const Vector& vector, const Classes& forbidden) const
    {
        if constexpr (is_matched_at_once<platform::Warp>())
            return match_in<Operation::Find, platform::Warp>(bucket, vector, forbidden);
        for (u32 index = 0; index < layout.slots_per_bucket(); ++index) {
            if (forbids(forbidden, bucket, index)) continue;
            const Peek peek = peek_at(bucket, index, vector);
            if (peek == Peek::Holds) return {Outcome::Seen, slot_number(bucket, index)};
            if (peek == Peek::Other) continue;
            if (peek == Peek::Empty) return {Outcome::Absent, no_reference};
            Decision decision = Decision::Agreed;
            for (u32 chunk = 0; chunk < layout.chunks() && decision == Decision::Agreed; ++chunk)
                decision = look_at_chunk(bucket, index, chunk, vector);
            // While a slot is not decided against the vector, no later slot can hold an equal one.
            if (decision == Decision::Empty) return {Outcome::Absent, no_reference};
            if (decision == Decision::Agreed) return {Outcome::Seen, slot_number(bucket, index)};
        }
        return {Outcome::Pending, no_reference};
    }

    // Reads word `word` of the vector in a slot. Returns false if the slot holds no vector. If the last chunk of a slot is
    // decided, all chunks are (invariant 2 of core/claim.cuh). But a chunk may be read only after it has itself been seen
    // decided, because relaxed loads of other chunks may return older values.
    WARPSET_FN bool read_word(u64 slot, u32 word, u32& value) const
    {
        const u64 bucket = slot / layout.slots_per_bucket();
        const u32 index = static_cast<u32>(slot % layout.slots_per_bucket());
        const u32 last = layout.chunks() - 1, chunk = layout.chunk_of_word(word);
        u32 ignored;
        if (chunk != last && !read_in_chunk(bucket, index, last, 0, ignored)) return false;
        return read_in_chunk(bucket, index, chunk, layout.word_in_chunk(word), value);
    }

    // Calls `use(word, value)` for the words first, first + step, ... of the vector in a slot: all words, or a lane's share.
    // Returns false if the slot holds no vector.
    template <class Use>
    WARPSET_FN bool read_words(u64 slot, u32 first, u32 step, Use use) const
    {
        u32 value;
        for (u32 word = first; word < width(); word += step) {
            if (!read_word(slot, word, value)) return false;
            use(word, value);
        }
        return true;
    }

    // Word `word` of the vector in a slot. Requires that this thread, or one that it has synchronised with since, has found the
    // slot complete, or has put or found a vector in it.
    WARPSET_FN u32 word(u64 slot, u32 word) const
    {
        u32 value = 0;
        read_in_chunk(slot / layout.slots_per_bucket(), static_cast<u32>(slot % layout.slots_per_bucket()),
                      layout.chunk_of_word(word), layout.word_in_chunk(word), value);
        return value;
    }

    // A main chunk of the vector in a slot. Requires that this thread, or one that it has synchronised with since, has found the
    // slot complete.
    WARPSET_FN Main chunk(u64 slot, u32 chunk) const
    {
        return with_main(slot / layout.slots_per_bucket(), static_cast<u32>(slot % layout.slots_per_bucket()), chunk, Nothing{},
                         [](auto* address, auto, auto) { return platform::load_relaxed(address); });
    }

    // Copies all words of a slot, those of the vector first. Returns false if this thread does not see a whole vector in the
    // slot.
    WARPSET_FN bool read_vector(u64 bucket, u32 index, u32* words) const
    {
        const u32 chunks = layout.chunks();
        WARPSET_UNROLL
        for (u32 chunk = 0; chunk < chunks; ++chunk) {
            const bool is_decided = with_chunk(bucket, index, chunk, Nothing{}, [&](auto* address, auto empty, auto) {
                const auto seen = platform::load_relaxed(address);
                constexpr u32 chunk_words = sizeof(seen) / 4;
                for (u32 word = 0; word < chunk_words; ++word) words[word] = word_of(seen, word);
                words += chunk_words;
                return !(seen == empty);
            });
            if (!is_decided) return false;
        }
        return true;
    }

    // Reads the whole vector in a slot; a vector must be one chunk.
    WARPSET_FN bool read_chunk(u64 slot, Main& value) const
    {
        static_assert(Shape::is_static && sizeof(Main) == Layout{}.width() * 4, "a vector is one chunk");
        const u64 bucket = slot / layout.slots_per_bucket();
        return with_main(bucket, static_cast<u32>(slot % layout.slots_per_bucket()), 0, Nothing{},
                         [&](auto* address, auto empty, auto) {
                             value = platform::load_relaxed(address);
                             return !(value == empty);
                         });
    }

    // Whether a slot holds a vector and this thread sees all of its chunks.
    WARPSET_FN bool holds(u64 slot) const
    {
        return is_complete(slot / layout.slots_per_bucket(), static_cast<u32>(slot % layout.slots_per_bucket()));
    }

    WARPSET_FN constexpr u32 width() const { return layout.width(); }
    WARPSET_FN u64 slots() const { return view.buckets * layout.slots_per_bucket(); }

    // Key of a search and the table that it searches: here, the vector and this table. (A tree table searches its root table
    // for root pairs.)
    using Roots = BucketTable;
    using Key = WordVector;
    template <Operation>
    WARPSET_FN bool key(WordVector vector, Key& key) const
    {
        key = vector;
        return true;
    }
    WARPSET_FN const Roots& root_table() const { return *this; }
    WARPSET_FN u64* stored_count() const { return view.stored; }

private:
    // State of a slot that may hold the vector.
    enum class Peek : u32 {
        Holds,  // it does
        Other,  // its first chunk is decided and different: it never will hold it
        Empty,  // its first chunk is EMPTY
        Begun,  // the first chunk agrees, or was not read: decide, or look at, the chunks one after another
    };

    // Compares the first chunk, and if it is equal, all others at once, because most slots that a search reaches are complete.
    // (Equal chunks are decided: no chunk of a vector equals EMPTY in a slot that may hold it. Decided chunks may be read in any
    // order: core/claim.cuh, 1.)
    //
    // For machines with one lane a warp. On a GPU, searches by one thread are the exception: a warp reads a whole bucket by one
    // request (bucket/warp_search.cuh).
    template <class Vector, class Warp = platform::Warp>
    WARPSET_FN Peek peek_at(u64 bucket, u32 index, const Vector& vector) const
    {
        if constexpr (Warp::size > 1) {
            return Peek::Begun;
        } else {
            const u8* slot = view.slots + layout.main_offset(bucket) + index * static_cast<u64>(layout.main_bytes());
            const Main* chunks = reinterpret_cast<const Main*>(slot);
            const Main seen = platform::load_relaxed(chunks);
            Main value;
            read_chunk_of(vector, 0, value);
            if (!(seen == value)) {
                Main empty;
                empty_chunk(empty_class(bucket, index), empty);
                return seen == empty ? Peek::Empty : Peek::Other;
            }
            constexpr u32 chunk_words = sizeof(Main) / 4;
            const u32 count = layout.main_chunks();
            u32 chunk = 1;
            bool equal = true;
            if (const u32* words = words_of(vector)) {
                const u32 whole = Shape::is_padded ? count - 1 : count;  // without the last one, which zeros may pad
                if (whole > 1) {
                    equal = Warp::agree(chunks + 1, words + chunk_words, whole - 1);
                    chunk = whole;
                }
            }
            for (; chunk < count; ++chunk) {
                read_chunk_of(vector, chunk * chunk_words, value);
                equal &= platform::load_relaxed(chunks + chunk) == value;
            }
            for (chunk = count; equal && chunk < layout.chunks(); ++chunk)
                equal = look_at_chunk(bucket, index, chunk, vector) == Decision::Agreed;
            return equal ? Peek::Holds : Peek::Begun;
        }
    }

    // Whether a machine with one lane a warp compares all slots of a bucket at once.
    template <class Warp>
    WARPSET_FN static constexpr bool is_matched_at_once()
    {
        if constexpr (Warp::size > 1 || static_width == 0) {
            return false;
        } else {
            constexpr Layout layout{};
            return layout.chunks() == 1 && Warp::template matches_buckets<Main, Shape::claim_bytes(), layout.bucket_main_bytes()>;
        }
    }

    // Find or find-or-put in one bucket whose slots are compared all at once.
    //
    // The masks are what relaxed loads of all slots, at one moment each, would have shown. So a slot in neither mask was decided
    // for another vector, and may be left (invariant 3 of core/claim.cuh); an equal slot holds the vector. `may_be_empty` is only
    // a hint, because slots of different classes have different EMPTY patterns: an access to the slot itself decides it, or
    // shows how it was decided. Slots are visited in order.
    //
    // AMD EPYC, one thread, 2^22 vectors, fill 0.7, ns new / seen / found / absent. 1 word: 19.9 / 19.6 / 19.5 / 23.4 slot after
    // slot, 13.4 / 12.2 / 11.5 / 15.8 at once. 2 words: 19.9 / 19.1 / 18.4 / 24.5, and 17.1 / 16.0 / 14.9 / 23.5. From 4 words on
    // a prototype lost. For one word, the hash takes a sixth of the time. A cheaper hash would have to replace it on every
    // machine, because files store slots as they are in memory. AArch64 compares buckets of 64 bytes; this has not been timed.
    template <Operation operation, class Warp, class Vector>
    WARPSET_FN Found match_in(u64 bucket, const Vector& vector, const Classes& forbidden) const
    {
        Main value, empty;
        read_chunk_of(vector, 0, value);
        empty_chunk(0, empty);
        Main* const slots = reinterpret_cast<Main*>(view.slots + layout.main_offset(bucket));
        const auto masks = Warp::match_bucket(slots, value, empty, layout.empty_classes() - 1);
        for (u32 left = masks.equal | masks.may_be_empty; left != 0; left &= left - 1) {
            const u32 index = platform::lowest_bit(left);
            if (!forbidden.is_empty() && forbids(forbidden, bucket, index)) continue;
            if (masks.equal >> index & 1) return {Outcome::Seen, slot_number(bucket, index)};
            empty_chunk(empty_class(bucket, index), empty);
            const Decision decision = operation == Operation::FindOrPut ? decide(slots + index, empty, value, true)
                                                                       : look(slots + index, empty, value);
            if (decision == Decision::Different) continue;
            if (decision == Decision::Empty) return {Outcome::Absent, no_reference};
            return {decision == Decision::Won ? Outcome::New : Outcome::Seen, slot_number(bucket, index)};
        }
        return {Outcome::Pending, no_reference};
    }

    struct Nothing {
        static constexpr bool is_padded = true;
        WARPSET_FN void read(u32, u32& chunk) const { chunk = 0; }
        WARPSET_FN void read(u32, u64& chunk) const { chunk = 0; }
        WARPSET_FN void read(u32, u128& chunk) const { chunk = {0, 0}; }
    };

    WARPSET_FN static u32 word_of(u32 chunk, u32) { return chunk; }
    WARPSET_FN static u32 word_of(u64 chunk, u32 index) { return static_cast<u32>(index == 0 ? chunk : chunk >> 32); }
    WARPSET_FN static u32 word_of(u128 chunk, u32 index) { return word_of(index < 2 ? chunk.low : chunk.high, index & 1); }

    // Reads one word of a chunk by an access of the chunk's size. Returns false if the chunk is undecided.
    WARPSET_FN bool read_in_chunk(u64 bucket, u32 index, u32 chunk, u32 word, u32& value) const
    {
        return with_chunk(bucket, index, chunk, Nothing{}, [&](auto* address, auto empty, auto) {
            const auto seen = platform::load_relaxed(address);
            value = word_of(seen, word);
            return !(seen == empty);
        });
    }

    // The words from `first_word` on; in a padded slot, zeros follow the last word.
    template <class Chunk, class Vector>
    WARPSET_FN void read_chunk_of(const Vector& vector, u32 first_word, Chunk& chunk) const
    {
        if constexpr (Shape::is_padded) {
            if constexpr (!Vector::is_padded) {
                if (first_word + sizeof(Chunk) / 4 > layout.width()) return read_end_of(vector, first_word, chunk);
            }
        }
        vector.read(first_word, chunk);
    }
    template <class Vector>
    WARPSET_FN void read_end_of(const Vector& vector, u32 word, u32& chunk) const
    {
        chunk = word < layout.width() ? vector.word(word) : 0;
    }
    template <class Vector>
    WARPSET_FN void read_end_of(const Vector& vector, u32 first_word, u64& chunk) const
    {
        u32 even, odd;
        read_end_of(vector, first_word, even);
        read_end_of(vector, first_word + 1, odd);
        chunk = even | static_cast<u64>(odd) << 32;
    }
    template <class Vector>
    WARPSET_FN void read_end_of(const Vector& vector, u32 first_word, u128& chunk) const
    {
        read_end_of(vector, first_word, chunk.low);
        read_end_of(vector, first_word + 2, chunk.high);
    }

    // Returns false if no chunk of the vector equals an EMPTY pattern.
    WARPSET_FN bool may_be_forbidden(const u32* words) const
    {
        const u32 classes = layout.empty_classes(), end = layout.main_bytes() / 4 < width() ? layout.main_bytes() / 4 : width();
        bool may = false;
        for (u32 word = 0; word < end; word += sizeof(Main) / 4) may |= (words[word] ^ view.empty[0]) < classes;
        if (layout.has_tail8()) may |= (words[layout.main_bytes() / 4] ^ view.empty[0]) < classes;
        if (layout.has_tail4()) may |= (words[layout.slot_words() - 1] ^ view.empty[0]) < classes;
        return may;
    }

    // If the chunk at `first_word` equals the EMPTY pattern of a class, forbids that class.
    template <class Chunk, class Vector>
    WARPSET_FN void forbid_class_of(Classes& forbidden, const Vector& vector, u32 first_word) const
    {
        u32 would_be = vector.word(first_word) ^ view.empty[0];
        Chunk value, empty;
        read_chunk_of(vector, first_word, value);
        empty_chunk(would_be, empty);
        if (would_be < layout.empty_classes() && value == empty) forbidden.insert(would_be);
    }

    template <class Chunk, class Vector, class Use>
    WARPSET_FN auto use_chunk(u8* address, u32 pattern, const Vector& vector, u32 first_word, Use use) const
    {
        Chunk empty, value;
        empty_chunk(pattern, empty);
        read_chunk_of(vector, first_word, value);
        return use(reinterpret_cast<Chunk*>(address), empty, value);
    }
};

}  // namespace warpset
