// The compact table: a set of keys of up to 64 bits, stored by *quotienting*. A slot holds only the part of a key that the bucket
// does not determine. Keys never move, except by relocation (compact/relocation.cuh). The table has two *levels*: the *main
// level* has nearly all slots; the *stash* is small and takes keys that found no slot in the main level.
//
// Sources: Cleary (1984) and Knuth (TAOCP 6.4, exercise 13), quotienting; Wijs and Osama (2024), section 4, compact multiple
// functions.
//
// Quotienting for any number of buckets. Let h be the hash of a key of b bits under some function (compact/permutation.cuh), as a
// fraction of 1, and B the number of buckets. The *quotient* is the bucket, and the *remainder* goes into the slot:
//
//   bucket    = floor(h B)                               B windows of hashes, each of at most W = ceil(2^b / B)
//   remainder = floor(W frac(h B))                       0 .. W - 1
//
// Bucket and remainder determine h: two different hashes of one window differ by at least 2^-b. So their frac(h B) differ by at
// least B / 2^b, which is at least 1 / W, and their remainders differ. For every B, `remainder` has the smallest possible number
// of values. Two multiplications, and no division, compute bucket and remainder. A slot holds the remainder and the function's
// number f in one code, f W + remainder. The table uses as many functions as fit: F = floor(2^slot_bits / W), up to 128.
//
// Example: keys of 54 bits in 2^28 slots of 32 bits, 2^24 buckets of 16. Here W and B are powers of two (W = 2^30, F = 4), so
// that the picture can show bits:
//
//   key 54 bits --function f--> hash  | bucket: 24 bits | remainder: 30 bits        |
//                               slot                    | f: 2 | remainder: 30 bits |     32 bits: f W + remainder
//   bucket, 64 bytes                  | slot 0 | slot 1 | ... | slot 14 | slot 15 |  round 0 takes the first 15, round 1 the last
//
// EMPTY is 0, which is also the code of f = 0 and remainder = 0. A key whose code would be EMPTY under a function skips that
// function. This depends on the key alone, so all equal keys skip it.
//
// The walk. A key visits slots in a fixed order and takes the first one that is EMPTY. A bucket's slots are visited in
// *rounds*:
//
//   round 0: slots 0 .. limit(0) of bucket_0, of bucket_1, ..., of bucket_(F-1)
//   round 1: slots limit(0) .. limit(1) of bucket_0, of bucket_1, ...
//   ...
//   then the stash: a small compact table of 64-bit slots, with its own functions
//
// The last rounds of a level may be reserved for reinserted keys (compact/relocation.cuh): find-or-put then ends its walk before
// them.
//
// One round is "compact multiple functions". With more rounds, the last slots of buckets are kept for later. A key then tries F
// buckets before it takes a last slot of any, so buckets fill more evenly, and a few functions are enough to fill a table to
// 0.95.
//
// Why it is right:
//   1. A slot goes from EMPTY to a code once, by one compare-and-swap, and never changes. (Of two slots in a word, the other one
//      is written back as it was read, or the compare-and-swap fails.)
//   2. Bucket and code determine the key (above). So a slot that holds the code of a key, under any function, holds that key.
//   3. A thread claims a slot of its walk only after it has seen every earlier one hold another code. Those never change, so the
//      key is in none of them. Equal keys have the same walk. So a key is never stored twice, and one caller gets New. (A look
//      compares the key with all slots of its bucket, so it may also find the key in a later slot of the walk. That counts as
//      stored.)
//   4. A key is Full if all slots of its walk hold other keys. These slots never change, so the key never gets into one. So, of
//      all callers that offer a key, at whatever time, either one gets New and the others Seen, or all get Full.
//   5. No thread waits for another: if a compare-and-swap fails, another thread has decided the slot, or the other slot of the
//      same word.
// In a cuckoo table "for ever" and "never" mean: until its keys are relocated.
//
// Simulation determined the rounds and the size of the stash (2^22 slots, 16 per bucket; the 64-bit slots of the stash count
// twice). Looks: buckets read per find-or-put, on average from empty to this fill, all keys new | afterwards, all keys seen.
//
//   | F       | limits         | stash, slots   | not in the main     | looks at 0.5 | 0.75        | 0.9         | 0.95        |
//   |         |                |                | level, at 0.95      |              |             |             |             |
//   |---------|----------------|----------------|---------------------|--------------|-------------|-------------|-------------|
//   | 64, ... | 16             | 2^-16, or none | 0                   | 1.00 | 1.00  | 1.03 | 1.03 | 1.11 | 1.11 | 1.20 | 1.20 |
//   | 12      | 16             | 1 / 2048       | 0.03 %              | 1.00 | 1.00  | 1.03 | 1.03 | 1.11 | 1.11 | 1.19 | 1.19 |
//   | 8       | 16             | 1 / 256        | 0.24 %              | 1.00 | 1.00  | 1.03 | 1.03 | 1.11 | 1.11 | 1.22 | 1.20 |
//   | 4       | 15, 16         | 1 / 256        | 0.16 %              | 1.00 | 1.00  | 1.05 | 1.04 | 1.20 | 1.14 | 1.36 | 1.19 |
//   | 3       | 14, 15, 16     | 1 / 256        | 0.25 %              | 1.00 | 1.00  | 1.08 | 1.07 | 1.34 | 1.16 | 1.60 | 1.19 |
//   | 2       | 11, 13, .., 16 | 1 / 64         | 1.5 %               | 1.04 | 1.03  | 1.36 | 1.11 | 1.97 | 1.15 | 2.45 | 1.17 |
//   | 1       | 16             | 1 / 16         | full at 0.80        | 1.00 | 1.00  | 1.00 | 1.00 |             |             |
//
// These figures hold for keys that are put one after another. If all keys are put at once, as in a batch for a small table, more
// of them get no slot in the main level, because all take their first step before any takes a later one (simulated, 2^16
// slots, at 0.95 | 0.98 of the main level):
//
//   | F  | one after another | all at once   |
//   |----|-------------------|---------------|
//   | 2  | 0.51 | 1.48 %     | 2.14 | 3.40 % |
//   | 3  | 0.15 | 0.78 %     | 0.80 | 1.84 % |
//   | 4  | 0.10 | 0.59 %     | 0.49 | 1.38 % |
//   | 6  | 0.002 | 0.11 %    | 0.05 | 0.46 % |
//   | 8  | 0.15 | 0.59 %     | 0.35 | 0.98 % |
//   | 12 | 0.03 | 0.22 %     | 0.09 | 0.47 % |
//   | 16 | 0.005 | 0.12 %    | 0.02 | 0.26 % |
//   | 32 | 0 | 0.006 %       | 0 | 0.03 %    |
//
// So the stash also has slots for that share of the first 2^19 slots (src/layout/compact.rs), and room for six standard
// deviations. Tables of every size are filled to 0.95 of their slots, those of 2^22 or more to 0.95 of their bytes.
//
// A look-up of an absent key ends at the first EMPTY slot of its round. At 0.95 three buckets of four have no EMPTY slot. So with
// 4 functions 0.74^4 = 30 % of these look-ups end in the stash, after one more look. A mark in each bucket that a key has left
// for the stash would save that look, but cost a bit of every code, that is, half of the functions. Not done.
//
// By calculation, other slot widths do not pay. A slot must lie in one word that is compared and swapped. 64 bits hold two slots
// of 24 bits or one of 40 or 48: no more than slots of 32 or 64. Only words of 128 bits (sm_90, no CPU) would hold five of 24
// (25.6 bits each) or three of 40 (42.7).
//
// With one round, 4 functions leave 1.6 % of the keys for a stash. That many stash slots exceed the table's memory: the table is
// full at 0.93. Buckets of 128 bytes take half as many functions, and a look costs a seventh more (35 instead of 41 G/s on an
// H200). The probability that 64 functions find no EMPTY slot is 0.74^64 = 2^-28 at the very end (0.95); that of 128 functions is
// 2^-55.
//
// A key with more bits than the table's is Full or Absent. It accesses no slot.
#pragma once

#include "warpset/compact/permutation.cuh"
#include "warpset/core/claim.cuh"
#include "warpset/core/layout.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/core/vectors.cuh"

namespace warpset {

// View of one level. Mirrored by `LevelView` in src/layout/view.rs; src/layout/compact.rs computes it.
struct LevelView {
    u8* slots;
    u64 window;          // W
    u64 window_inverse;  // floor((2^64 - 1) / W)
    u64 start;           // start of bucket 1, as a fraction of 2^64: floor(2^64 / B)
    u64 limits;          // byte r: number of slots of a bucket that rounds 0 .. r may take
    u32 start_fraction;  // the next 32 bits of `start`
    u32 buckets;         // B
    u32 functions;       // F; functions * window <= 2^slot_bits
    u32 first_function;  // number of the level's first function in the hash family
    u32 rounds;          // rounds of a find-or-put; 0 if the level does not exist
    u32 all_rounds;      // rounds of a reinserted key (compact/relocation.cuh): one more in a cuckoo table's stash
};

// Mirrored by `CompactView` in src/layout/view.rs.
struct CompactView {
    LevelView main, stash;
    HashView hash;
    u64* stored;  // number of stored keys
};

// Bucket and code of a key under one function.
template <class Code>
struct Quotiented {
    u32 bucket;  // the quotient
    Code code;   // function's number and remainder: f W + remainder
};

// Level with slots of 64, 32 or 16 bits. Two slots of 16 bits share a word.
template <u32 slot_bits>
struct CompactLevel {
    static_assert(slot_bits == 16 || slot_bits == 32 || slot_bits == 64, "slots of 16, 32 or 64 bits");
    using Word = typename Choose<slot_bits == 64, u64, u32>::Type;
    using Code = Word;
    static constexpr Code empty = 0;
    static constexpr u32 slots_per_word = sizeof(Word) * 8 / slot_bits;
    static constexpr u32 bucket_bytes = 64;
    static constexpr u32 slots_per_bucket = bucket_bytes * 8 / slot_bits;

    LevelView view;

    WARPSET_FN u64 slots() const { return view.buckets * static_cast<u64>(slots_per_bucket); }
    WARPSET_FN const u8* bucket(u32 bucket) const { return view.slots + bucket * static_cast<u64>(bucket_bytes); }

    // Extracts a slot's code from its word; inserts a code for an EMPTY slot into the word.
    WARPSET_FN static Code code_in(Word word, u32 slot)
    {
        if constexpr (slots_per_word == 1) return word;
        return word >> slot * slot_bits & ((Word{1} << slot_bits % (sizeof(Word) * 8)) - 1);
    }
    WARPSET_FN static Word with(Word word, u32 slot, Code code)
    {
        return slots_per_word == 1 ? code : word | code << slot * slot_bits % (sizeof(Word) * 8);
    }

    // Quotients a hash, given as a fraction of 2^64.
    WARPSET_FN Quotiented<Code> quotiented(u64 fraction, u32 function) const
    {
        const u64 low = (fraction & ~0u) * view.buckets, high = (fraction >> 32) * view.buckets + (low >> 32);
        const u64 in_window = high << 32 | (low & ~0u);
        return {static_cast<u32>(high >> 32),
                static_cast<Code>(function * view.window + platform::high_product(in_window, view.window))};
    }

    // Function of a code: code / window, computed by a product that is exact or one too small.
    WARPSET_FN u32 function(Code code) const
    {
        const u32 function = static_cast<u32>(platform::high_product(code, view.window_inverse));
        return function + (code - function * view.window >= view.window);
    }

    // Inverse of `quotiented`: computes the hash from a bucket and a code, as a fraction of 2^64 in steps of 2^(64 - bits).
    WARPSET_FN u64 fraction(Quotiented<Code> at, u32 bits) const
    {
        // The first hash of the window: bucket * 2^64 / buckets, rounded up to a step. Its remainder is 0 or 1. The remainders of
        // consecutive hashes differ by 1 or slightly more, so the i-th hash after it has remainder i, i + 1 or i + 2.
        u64 below = at.bucket * view.start + (static_cast<u64>(at.bucket) * view.start_fraction >> 32);
        u64 left = 0 - below * view.buckets;  // remainder of bucket * 2^64; `below` is exact or one too small
        if (left >= view.buckets) {
            ++below;
            left -= view.buckets;
        }
        const u64 step = 1ull << (64 - bits);
        const bool exact = left == 0 && (below & (step - 1)) == 0;
        const u64 start = exact ? below : (below & ~(step - 1)) + step;
        const u32 function = this->function(at.code);
        const u64 remainder = at.code - function * view.window;
        for (u64 before = 0; before < 2 && before < remainder; ++before) {
            const u64 candidate = start + (remainder - before) * step;
            const Quotiented<Code> of_candidate = quotiented(candidate, function);
            if (of_candidate.bucket == at.bucket && of_candidate.code == at.code) return candidate;
        }
        return start + (remainder < 2 ? 0 : remainder - 2) * step;
    }

    // The walk of a key, in steps of one bucket.
    struct Walk {
        Quotiented<Code> at;
        u32 function, round;
    };

    // Whether the walk has gone through all rounds.
    WARPSET_FN bool is_over(const Walk& walk) const { return walk.round >= view.rounds; }

    template <u32 static_bits>
    WARPSET_FN Walk start(const Permutation<static_bits>& hash, u64 scrambled) const
    {
        Walk walk{{0, empty}, ~0u, 0};
        advance(walk, hash, scrambled);
        return walk;
    }

    template <u32 static_bits>
    WARPSET_FN void advance(Walk& walk, const Permutation<static_bits>& hash, u64 scrambled) const
    {
        do {
            if (++walk.function == view.functions) {
                walk.function = 0;
                ++walk.round;
            }
            if (is_over(walk)) return;
            walk.at = quotiented(hash.fraction(scrambled, view.first_function + walk.function), walk.function);
        } while (walk.at.code == empty);
    }

    // Slots of a bucket that a walk may take in its round: `first_slot .. last_slot`, without the last.
    WARPSET_FN u32 first_slot(u32 round) const { return round == 0 ? 0 : last_slot(round - 1); }
    WARPSET_FN u32 last_slot(u32 round) const { return view.limits >> 8 * round & 0xFF; }

    WARPSET_FN Word* word_of(u32 bucket, u32 slot) const
    {
        return reinterpret_cast<Word*>(view.slots + bucket * static_cast<u64>(bucket_bytes)) + slot / slots_per_word;
    }

    WARPSET_FN Code load(u32 bucket, u32 slot) const
    {
        return code_in(platform::load_relaxed(word_of(bucket, slot)), slot % slots_per_word);
    }

    // Puts a code into a slot that was seen EMPTY. Returns EMPTY, or the code that another thread has put there meanwhile.
    WARPSET_FN Code claim(u32 bucket, u32 slot, Code code) const
    {
        Word* const word = word_of(bucket, slot);
        if constexpr (slots_per_word == 1) return warpset::claim(word, empty, code);
        slot %= slots_per_word;
        // Each failed compare-and-swap means that another thread has decided a slot of this word.
        Word expected = platform::load_relaxed(word);
        while (code_in(expected, slot) == empty) {
            const Word seen = platform::compare_and_swap_relaxed(word, expected, with(expected, slot, code));
            if (seen == expected) return empty;
            expected = seen;
        }
        return code_in(expected, slot);
    }

    // Replaces the code in a slot and returns the old one (compact/relocation.cuh).
    WARPSET_FN Code exchange(u32 bucket, u32 slot, Code code) const
    {
        Word* const word = word_of(bucket, slot);
        slot %= slots_per_word;
        // Each failed compare-and-swap means that another thread has exchanged a slot of this word.
        for (Word expected = platform::load_relaxed(word);;) {
            const Word without = expected ^ with(0, slot, code_in(expected, slot));
            const Word seen = platform::compare_and_swap_relaxed(word, expected, with(without, slot, code));
            if (seen == expected) return code_in(expected, slot);
            expected = seen;
        }
    }

    // Makes a slot EMPTY. Nothing else may use it at the same time.
    WARPSET_FN void clear(u64 slot) const
    {
        static_assert(slots_per_word == 1, "a word of its own");
        reinterpret_cast<Word*>(view.slots)[slot] = empty;
    }

    // One step of a walk, by one thread; Pending: the walk continues.
    template <Operation operation>
    WARPSET_FN Found look(const Walk& walk) const
    {
        const auto [bucket, code] = walk.at;
        bool ends = false;
        for (u32 slot = 0; slot < slots_per_bucket; ++slot) {
            Code seen = load(bucket, slot);
            if (seen == empty && slot >= first_slot(walk.round) && slot < last_slot(walk.round)) {
                // Keeps looking: relaxed loads may return an old value of this slot and the newest value of a later one, and the
                // thread may already know that the later slot holds the key.
                ends = operation == Operation::Find;
                if (operation == Operation::FindOrPut) seen = claim(bucket, slot, code);
                if (operation == Operation::FindOrPut && seen == empty) return {Outcome::New, reference(bucket, slot)};
            }
            if (seen == code) return {Outcome::Seen, reference(bucket, slot)};
        }
        return {ends ? Outcome::Absent : Outcome::Pending, no_reference};
    }

    WARPSET_FN static u64 reference(u32 bucket, u32 slot) { return bucket * static_cast<u64>(slots_per_bucket) + slot; }

    // The whole walk, by one thread; Pending: the walk ended without a result.
    template <Operation operation, u32 static_bits>
    WARPSET_FN Found search(const Permutation<static_bits>& hash, u64 scrambled) const
    {
        Found found{Outcome::Pending, no_reference};
        for (Walk walk = start(hash, scrambled); !is_over(walk) && found.outcome == Outcome::Pending;
             advance(walk, hash, scrambled))
            found = look<operation>(walk);
        return found;
    }

    // Reads the key in a slot. Returns false if the slot has no key. `function`: number of the function under which the key is
    // stored.
    template <u32 static_bits>
    WARPSET_FN bool read(const Permutation<static_bits>& hash, u64 slot, u64& key, u32& function) const
    {
        const u32 bucket = static_cast<u32>(slot / slots_per_bucket);
        const Code code = load(bucket, slot % slots_per_bucket);
        if (code == empty) return false;
        function = this->function(code);
        key = hash.key(fraction({bucket, code}, hash.bits()), view.first_function + function);
        return true;
    }
};

// `static_bits`: number of bits of a key, or 0 if it is known only at run time.
template <u32 slot_bits, u32 static_bits>
struct CompactTable {
    using Main = CompactLevel<slot_bits>;
    using Stash = CompactLevel<64>;
    using View = CompactView;
    static constexpr bool is_compact = true;

    Main main;
    Stash stash;
    Permutation<static_bits> hash;
    u64* stored;

    WARPSET_FN static CompactTable of(const View& view) { return {{view.main}, {view.stash}, {view.hash}, view.stored}; }

    struct Layout {
        WARPSET_FN constexpr u32 width() const { return 2; }
        WARPSET_FN constexpr u32 slot_words() const { return 2; }
        WARPSET_FN constexpr u32 chunks() const { return 1; }
        WARPSET_FN constexpr u32 slots_per_bucket() const { return Main::slots_per_bucket; }
        WARPSET_FN constexpr u32 buckets_per_block() const { return 1; }
        WARPSET_FN constexpr u32 block_bytes() const { return Main::bucket_bytes; }
    };

    // Key of a search and the table that it searches: see BucketTable.
    using Roots = CompactTable;
    using Key = WordVector;
    static constexpr bool has_nodes = false;
    static constexpr bool is_incremental = false;
    static constexpr u32 static_width = 2;
    template <Operation>
    WARPSET_FN bool key(WordVector vector, Key& key) const
    {
        key = vector;
        return true;
    }
    WARPSET_FN const Roots& root_table() const { return *this; }
    WARPSET_FN u64* stored_count() const { return stored; }

    WARPSET_FN constexpr u32 width() const { return 2; }
    WARPSET_FN u64 slots() const { return main.slots() + stash.slots(); }

    // Searches the stash, after the walk through the main level. The stash's slots are numbered after those of the main level.
    template <Operation operation>
    WARPSET_FN Found search_stash(u64 scrambled) const
    {
        Found found = stash.template search<operation>(hash, scrambled);
        if (found.reference != no_reference) found.reference += main.slots();
        if (found.outcome == Outcome::Pending)
            found.outcome = operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent;
        return found;
    }

    template <Operation operation, class Vector>
    WARPSET_FN Found search(const Vector& vector) const
    {
        const u64 key = vector.pair(0);
        if (!hash.has(key)) return {operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent, no_reference};
        const u64 scrambled = hash.scramble(key);
        const Found found = main.template search<operation>(hash, scrambled);
        return found.outcome == Outcome::Pending ? search_stash<operation>(scrambled) : found;
    }

    // Find-or-put by one thread. Other threads may run any operation on the table except `clear` at the same time.
    // New: this call stored the key. Seen: another call did. Full: the key is not stored.
    template <class Vector>
    WARPSET_FN Found find_or_put(const Vector& vector) const
    {
        const Found found = search<Operation::FindOrPut>(vector);
        platform::count_relaxed(stored, found.outcome == Outcome::New);
        return found;
    }

    // Overload for tree tables, which convert vectors to keys (tree/table.cuh).
    template <class Vector>
    WARPSET_FN Found find_or_put_incremental(u64, const Vector& vector) const
    {
        return find_or_put(WordVector{vector.words});
    }

    // Seen if the key is stored, otherwise Absent. If another thread is putting the key meanwhile, either may result.
    template <class Vector>
    WARPSET_FN Found find(const Vector& vector) const
    {
        return search<Operation::Find>(vector);
    }

    // Reads the key in a slot, and the number of the function under which it is stored; the stash's functions are numbered after
    // those of the main level. Returns false if the slot has no key.
    WARPSET_FN bool read(u64 slot, u64& key, u32& function) const
    {
        if (slot < main.slots()) return main.read(hash, slot, key, function);
        if (!stash.read(hash, slot - main.slots(), key, function)) return false;
        function += main.view.functions;
        return true;
    }

    // Reads only the key in a slot. Returns false if the slot has no key.
    WARPSET_FN bool read_chunk(u64 slot, u64& key) const
    {
        u32 ignored;
        return read(slot, key, ignored);
    }

    // Reads word `word` of the key in a slot. Returns false if the slot has no key.
    WARPSET_FN bool read_word(u64 slot, u32 word, u32& value) const
    {
        u64 key = 0;
        const bool stored = read_chunk(slot, key);
        value = static_cast<u32>(word == 0 ? key : key >> 32);
        return stored;
    }

    // Calls `use(word, value)` for the words first, first + step, ... of the key in a slot: all words, or a lane's share. Returns
    // false if the slot has no key.
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

    WARPSET_FN u32 word(u64 slot, u32 word) const
    {
        u32 value = 0;
        read_word(slot, word, value);
        return value;
    }

    WARPSET_FN bool holds(u64 slot) const
    {
        u32 ignored;
        return read_word(slot, 0, ignored);
    }
};

}  // namespace warpset
