// Ways to claim a slot of several words: the right way, and known-wrong ones.
#pragma once

#include "controls/frame.h"

namespace controls {

// Chained claiming with the functions of core/claim.cuh. This is the positive control.
struct Chained : FindsForwards {
    static Claim claim(const Script& script, u32 slot, const u64* vector, const Group&)
    {
        auto decision = warpset::Decision::Agreed;
        for (u32 chunk = 0; chunk < script.chunks; ++chunk) {
            const bool expect_empty = decision == warpset::Decision::Won;
            decision = warpset::decide(script.chunk(slot, chunk), EMPTY, vector[chunk], expect_empty);
            if (decision == warpset::Decision::Different) return Claim::Next;
        }
        return decision == warpset::Decision::Won ? Claim::New : Claim::Seen;
    }
};

// GPUexplore 1.0 (Wijs and Bosnacki 2014, Algorithm 2, for vectors of more than one word; thesis of Bergsma 2019, 5.1.2).
//
// The flaw: only the first word is claimed, and the rest is stored. A lane that loses the claim, or finds that the rest is not
// stored yet, assumes that the slot holds another vector and goes on. But the slot may be about to receive the lane's own vector.
struct GpuExplore1 : FindsForwards {
    static Claim claim(const Script& script, u32 slot, const u64* vector, const Group&)
    {
        if (load_relaxed(script.chunk(slot, 0)) != EMPTY) {
            for (u32 chunk = 0; chunk < script.chunks; ++chunk)
                if (load_relaxed(script.chunk(slot, chunk)) != vector[chunk]) return Claim::Next;
            return Claim::Seen;
        }
        if (compare_and_swap_relaxed(script.chunk(slot, 0), EMPTY, vector[0]) != EMPTY) return Claim::Next;
        for (u32 chunk = 1; chunk < script.chunks; ++chunk) store(script.chunk(slot, chunk), vector[chunk], Order::Relaxed);
        return Claim::New;
    }
};

// GPUexplore 2.0 (thesis of Bergsma 2019, 3.1.2 and 5.1.1): one lane per word; all lanes compare and swap at once.
//
// The flaw: the algorithm assumes that the hardware does all compare-and-swaps of a half-warp as one operation. The hardware does
// not, so each of two groups may win some words. If their vectors are equal, both groups go on; otherwise the slot holds a
// mixture.
struct GpuExplore2 : FindsForwards {
    static Claim claim(const Script& script, u32 slot, const u64* vector, const Group& group)
    {
        u64* mine = script.chunk(slot, group.rank);
        const u64 value = vector[group.rank];
        u64 seen = load_relaxed(mine);
        if (group.all(seen == value)) return Claim::Seen;
        if (!group.all(seen == EMPTY)) return Claim::Next;
        seen = compare_and_swap_relaxed(mine, EMPTY, value);
        if (group.all(seen == EMPTY)) return Claim::New;
        return group.all(seen == value) ? Claim::Seen : Claim::Next;
    }
};

// The table without replication of Bergsma's thesis (2019, 5.1.3), here with one lane per vector. The first word is claimed with
// a mark, whose highest bit is set and which contains the vector's hash. When the other words are stored, the vector's first word
// replaces the mark. A lane that finds a mark with the hash of its own vector waits.
//
// The flaw: the lane waits. If the lanes of a warp run in lock-step, the waiting lane may prevent the lane that it waits for from
// going on. Also, the volatile accesses of the thesis order nothing: if `publish` and `observe` are relaxed, a lane may read the
// first word before it can read the others.
template <Order publish, Order observe>
struct ThesisSpinlock : FindsForwards {
    static constexpr u64 in_progress = 1ull << 63;

    static Claim claim(const Script& script, u32 slot, const u64* vector, const Group&)
    {
        u64 hash = 0;
        for (u32 chunk = 0; chunk < script.chunks; ++chunk) hash += vector[chunk];
        const u64 mark = in_progress | (hash & 0xFF);
        u64* first = script.chunk(slot, 0);

        u64 seen = load(first, observe);
        if (seen == EMPTY) {
            seen = compare_and_swap(first, EMPTY, mark, observe);
            if (seen == EMPTY) {
                for (u32 chunk = 1; chunk < script.chunks; ++chunk)
                    store(script.chunk(slot, chunk), vector[chunk], Order::Relaxed);
                store(first, vector[0], publish);
                return Claim::New;
            }
        }
        while (seen == mark) seen = load(first, observe);
        if (seen != vector[0]) return Claim::Next;  // or the mark has another hash
        for (u32 chunk = 1; chunk < script.chunks; ++chunk)
            if (load_relaxed(script.chunk(slot, chunk)) != vector[chunk]) return Claim::Next;
        return Claim::Seen;
    }
};

// Chained claiming that loads a chunk again after a lost compare-and-swap, instead of using the value that the compare-and-swap
// returned. If `together` is set, not the lane that lost loads again but another lane of its group, as in a warp that reads a
// bucket again after its leader's attempt (Wijs and Osama 2024, Algorithm 5).
//
// The flaw: the load may return an older value than the compare-and-swap did, even EMPTY. So a slot that is receiving the same
// vector appears to hold another vector.
template <Order order, bool together>
struct LooksAgain : FindsForwards {
    static Claim claim(const Script& script, u32 slot, const u64* vector, const Group& group)
    {
        bool won = false;
        for (u32 chunk = 0; chunk < script.chunks; ++chunk) {
            u64* address = script.chunk(slot, chunk);
            u64 seen = 0;
            if (group.rank == 0) {
                seen = won ? EMPTY : load_relaxed(address);
                if (seen == EMPTY) seen = compare_and_swap_relaxed(address, EMPTY, vector[chunk]);
            }
            won = group.any(group.rank == 0 && seen == EMPTY);
            if (won) continue;
            const u32 looks = together ? group.lanes - 1 : 0;
            if (group.rank == looks) seen = load(address, order);
            if (!group.any(group.rank == looks && seen == vector[chunk])) return Claim::Next;
        }
        return won ? Claim::New : Claim::Seen;
    }
};

// Chained claiming from the last chunk to the first, either by every second lane or by all lanes. A find reads the chunks either
// in that order, too, or in the usual order.
//
// The flaw if lanes use different orders: each lane has decided a chunk that the other lane has not compared. The flaw if all
// lanes put backwards and find forwards: a slot that another vector has begun to fill from its end looks as if no equal vector
// could be stored after it. (If all lanes always go backwards, nothing is wrong: any order is right if all lanes use it.)
template <bool all, bool finds>
struct OutOfOrder {
    static constexpr bool finds_backwards = finds;

    static Claim claim(const Script& script, u32 slot, const u64* vector, const Group&)
    {
        const bool backwards = all || warpset::platform::Grid::thread() % 2 == 1;
        auto decision = warpset::Decision::Agreed;
        for (u32 i = 0; i < script.chunks; ++i) {
            const u32 chunk = backwards ? script.chunks - 1 - i : i;
            decision = warpset::decide(script.chunk(slot, chunk), EMPTY, vector[chunk], false);
            if (decision == warpset::Decision::Different) return Claim::Next;
        }
        return decision == warpset::Decision::Won ? Claim::New : Claim::Seen;
    }
};

// Chained claiming that stores the last chunk if it reads the chunk as EMPTY.
//
// The flaw: each of several lanes that find the chunk EMPTY believes that it has decided the chunk.
struct LastStored : FindsForwards {
    static Claim claim(const Script& script, u32 slot, const u64* vector, const Group&)
    {
        const u32 last = script.chunks - 1;
        for (u32 chunk = 0; chunk < last; ++chunk)
            if (warpset::decide(script.chunk(slot, chunk), EMPTY, vector[chunk], false) == warpset::Decision::Different)
                return Claim::Next;
        const u64 seen = load_relaxed(script.chunk(slot, last));
        if (seen != EMPTY) return seen == vector[last] ? Claim::Seen : Claim::Next;
        store(script.chunk(slot, last), vector[last], Order::Relaxed);
        return Claim::New;
    }
};

// Cuckoo hashing (as in Wijs and Osama 2024, Algorithms 4 and 5) of keys of one word, with buckets of one slot. The two lowest
// bytes of a key are the numbers of its two slots. A key goes to its second slot if the first is taken, and evicts another key if
// both are taken.
//
// The flaw if other lanes search at the same time: an evicted key is in no slot until it arrives at its other slot.
struct Cuckoo {
    static constexpr u32 most_evictions = 8;

    static u32 slot_of(u64 key, u32 which) { return key >> 8 * which & 0xFF; }

    static Found find(const Script& script, const u64* vector, const Group&)
    {
        for (u32 which = 0; which < 2; ++which)
            if (load_relaxed(script.cells + slot_of(*vector, which)) == *vector) return {Seen, slot_of(*vector, which)};
        return {Absent, no_reference};
    }

    static Found find_or_put(const Script& script, const u64* vector, const Group& group)
    {
        const Found found = find(script, vector, group);
        if (found.outcome == Seen) return found;
        for (u32 which = 0; which < 2; ++which) {
            const u64 seen = compare_and_swap_relaxed(script.cells + slot_of(*vector, which), EMPTY, *vector);
            if (seen == EMPTY || seen == *vector) return {seen == EMPTY ? New : Seen, slot_of(*vector, which)};
        }
        u64 key = *vector;
        u32 to = slot_of(key, 0);
        for (u32 i = 0; i < most_evictions; ++i) {
            const u64 evicted = exchange(script.cells + to, key);
            if (evicted == EMPTY) return {New, slot_of(*vector, 0)};
            key = evicted;  // now the key is in no slot
            to = slot_of(key, to == slot_of(key, 0) ? 1 : 0);
        }
        return {Full, no_reference};
    }

    static u64 exchange(u64* address, u64 value)
    {
        for (u64 expected = load_relaxed(address);;) {
            const u64 seen = compare_and_swap_relaxed(address, expected, value);
            if (seen == expected) return seen;
            expected = seen;
        }
    }
};

}  // namespace controls
