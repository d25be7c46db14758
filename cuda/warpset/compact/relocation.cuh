// Relocation in compact cuckoo tables: compact tables with two functions, in which keys are moved so that nearly every slot can
// be filled. Keys are moved only in a separate pass.
//
// Sources: Pagh and Rodler (2004); Dietzfelbinger and Weidling (2007), buckets; Wijs and Osama (2024), section 4, compact cuckoo;
// Hegeman et al. (2024), whose compact cuckoo tables have no concurrent find-or-put, because a key that is being moved is in no
// slot.
//
// Find-or-put is the same as in every compact table (compact/table.cuh) and moves nothing. It looks at the bucket of function 0,
// at the bucket of function 1, and in the stash. So it is concurrent and stores no key twice. Once the stash is full, keys are
// Full, and change nothing. Then, while nothing else uses the table, the stash's keys are *relocated*:
//
//   each thread takes a key out of the stash and exchanges it for a key in one of its buckets; it exchanges that key for one in
//   that key's other bucket; and so on, until a key finds a slot that is EMPTY
//
// Keys that were Full are then offered again. If a chain does not end within `most_steps`, its last key is left over. When all
// threads are done, all left-over keys are *reinserted* into the stash. There are at most as many as the stash held, but they may
// be different keys. So find-or-put leaves slots free for them in each bucket of the stash. Reinsertion uses the walk of
// find-or-put, and one more round:
//
//   round 0: slots 0 .. 5 of bucket_0, of bucket_1, ..., of bucket_(F-1)     find-or-put and reinsertion
//   round 1: slots 5 .. 8 of bucket_0, of bucket_1, ...                      reinsertion only
//
// So whether a key is Full depends on the slots of its walk, as in every compact table. (Counting the keys in the stash would be
// wrong: the count would have to be increased before a key is put, and the key may turn out to be a duplicate. Then duplicates
// would reject each other, and other keys, although slots are free.)
//
// Does every reinserted key find a slot? If there are as many keys as slots 0 .. 5 of all B buckets, all but 0.07 B of them
// (F = 16) find a slot there; the others go to round 1. If keys are still offered to a full table, find-or-put takes the
// remaining slots 0 .. 5. The next pass then leaves more keys for round 1: x B keys, where x is 0.07, 0.22, 0.4, 0.6 after 1, 10,
// 100, 1000 passes in which all keys are left over, and about 1.1 after a million. (These numbers are from simulation. With B / F
// more keys, e times fewer of the slots 0 .. 5 are left.) At 1.1 a bucket is full with probability 0.1, and all buckets of a key
// are full with probability 10^-16. In tables of a few kibibytes for keys of 64 bits, with 8 buckets and functions, one such pass
// in 25,000 leaves a key without a slot. Then everything is relocated again, with other chains (src/core/relocation.rs).
//
// Why find-or-put stays correct:
//   1. A slot of the main level never becomes EMPTY: a move exchanges one code for another. So a bucket that is full stays full.
//   2. A key is stored under function 1 only if its bucket of function 0 is full, or if its code there would be EMPTY. It is in
//      the stash only if this holds for both functions. For find-or-put this follows from the walk. A thread that relocates takes
//      a key only out of a full bucket, and exchanges it for another key only in a full bucket. So wherever a key gets to, all
//      earlier slots of its walk are taken.
//   3. Relocation makes the stash EMPTY, and keys are put into it along their walks. If a key is in a slot of round 1, all slots
//      of round 0 of its walk are taken, so find-or-put can take none of them. But find-or-put compares the key with all slots of
//      a bucket, so it finds the key.
//   4. So the walk of a key reaches the key before any EMPTY slot. Later find-or-puts behave as if the key had always been there.
//   5. No key is lost, changed or doubled: at each moment it is in one slot, held by one thread, or in the list of left-over
//      keys. Bucket and code determine the whole key, so a thread that has exchanged codes knows which key it holds.
// Relaxed order, device scope. A thread uses only codes that a compare-and-swap returned to it. The end of a kernel, or a join of
// threads, separates this pass from find-or-puts before and after it.
//
// Fill: with two choices among buckets of 16 slots, more than 0.999 of all slots can be taken (Fernholz and Ramachandran 2007;
// Cain, Sanders and Wormald 2007). benches/compact.md has the cost of chains.
//
// An earlier version counted the keys of the stash, and rejected a key by that count, after one look instead of sixteen. Its
// find-or-put was faster in nearly full tables: 11.7, 1.7, 1.3, 1.8 and 1.7 G/s at fill 0.9, 0.95, 0.97, 0.98 and 0.99 on an
// H200, instead of 10.1, 0.9, 0.8, 0.7 and 0.7. But it also rejected duplicates of keys although slots were free for them.
#pragma once

#include "warpset/compact/table.cuh"

namespace warpset {

template <u32 slot_bits, u32 static_bits>
struct Relocation {
    using Table = CompactTable<slot_bits, static_bits>;
    using Level = typename Table::Main;
    using Code = typename Level::Code;

    static constexpr u32 most_steps = 128;

    const Table& table;
    u64 random;

    // Finds a slot in the main level for a key whose buckets are all full, and for the keys that it displaces. If that takes too
    // many steps, returns false and sets `key` to the key without a slot.
    WARPSET_FN bool relocate(u64& key)
    {
        const Level& level = table.main;
        u32 function = next(2);
        for (u32 step = 0; step < most_steps; ++step, function ^= 1) {
            const u64 fraction = table.hash.fraction(table.hash.scramble(key), level.view.first_function + function);
            const Quotiented<Code> at = level.quotiented(fraction, function);
            if (at.code == Level::empty) continue;  // the key skips this function
            if (claim(at)) return true;
            const Code given_way = level.exchange(at.bucket, next(Level::slots_per_bucket), at.code);
            function = level.function(given_way);
            key = table.hash.key(level.fraction({at.bucket, given_way}, table.hash.bits()), level.view.first_function + function);
        }
        return false;
    }

private:
    // Puts a code into an EMPTY slot of its bucket. Returns false if the bucket is full; then it stays full.
    WARPSET_FN bool claim(Quotiented<Code> at) const
    {
        for (u32 slot = 0; slot < Level::slots_per_bucket; ++slot) {
            if (table.main.load(at.bucket, slot) != Level::empty) continue;
            if (table.main.claim(at.bucket, slot, at.code) == Level::empty) return true;
        }
        return false;
    }

    // A random number less than `end`, from Knuth's MMIX generator.
    WARPSET_FN u32 next(u32 end)
    {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<u32>((random >> 32) * end >> 32);
    }
};

// Counts of relocation. Mirrored by `Relocated` in src/layout/view.rs.
struct Relocated {
    u64 taken;      // keys that the stash held
    u64 left_over;  // keys without a slot: taken ones, and keys that these displaced
};

// Relocates the keys of the stash, which is EMPTY afterwards. Writes the left-over keys, which no longer count as stored, to
// `keys` in no order; `keys` has space for as many as the stash has slots. Adds to `counts`. Nothing else may use the table at
// the same time.
template <u32 slot_bits, u32 static_bits>
WARPSET_FN void relocate_keys(const CompactTable<slot_bits, static_bits>& table, u64 seed, u64* keys, Relocated* counts)
{
    u64 taken = 0;
    const auto share = platform::Grid::share(table.stash.slots());
    for (u64 at = share.first; at < share.last; at += share.step) {
        u64 key;
        u32 function;
        if (!table.stash.read(table.hash, at, key, function)) continue;
        table.stash.clear(at);
        ++taken;
        if (Relocation<slot_bits, static_bits>{table, (seed + at) * 0x9E3779B97F4A7C15ull}.relocate(key)) continue;
        // Relaxed: only the uniqueness of the indices matters.
        keys[platform::fetch_add_relaxed(&counts->left_over, 1)] = key;
        platform::add_relaxed(table.stored, ~0ull);
    }
    if (taken == 0) return;
    platform::add_relaxed(&counts->taken, taken);
}

}  // namespace warpset
