// Common parts of the negative controls: a table with few slots in a row, and lanes that do scripts of operations on it.
//
// All searches begin at slot 0 and visit the slots in order, as with the worst possible hash.
#pragma once

#include "harness.h"
#include "warpset/core/claim.cuh"

namespace controls {

using warpset::u32;
using warpset::u64;
using warpset::platform::compare_and_swap_relaxed;
using warpset::platform::load_relaxed;
using warpset::platform::Site;
using warpset::simt::RequestKind;
using warpset::simt::Order;

constexpr u64 EMPTY = ~0ull;
constexpr u64 no_reference = ~0ull;

enum Outcome : u32 { New = 1, Seen = 2, Full = 3, Absent = 4 };  // as warpset::Outcome

inline void store(u64* address, u64 value, Order order, Site site = Site::here())
{
    warpset::simt::store(address, value, order, site);
}
inline u64 load(const u64* address, Order order, Site site = Site::here()) { return warpset::simt::load(address, order, site); }
inline u64 compare_and_swap(u64* address, u64 expected, u64 desired, Order order, Site site = Site::here())
{
    return warpset::simt::compare_and_swap(address, expected, desired, order, site);
}

// Argument of the lanes. Mirrored by `Argument` in src/controls.rs.
struct Script {
    u64* cells;
    u32 slots, chunks;
    const u64* vectors;
    warpset_simt_operation* operations;
    u64 operations_a_lane;
    u32 lanes_an_operation, padding;

    u64* chunk(u32 slot, u32 chunk) const { return cells + slot * chunks + chunk; }
};

// Lanes of a warp that do one operation together.
struct Group {
    u32 rank, lanes, mask;

    explicit Group(u32 lanes) : rank(warpset::platform::Warp::lane() % lanes), lanes(lanes)
    {
        mask = ((1u << lanes) - 1) << (warpset::platform::Warp::lane() - rank);
    }
    u32 ballot(bool vote, Site site) const
    {
        return static_cast<u32>(warpset::simt::collective(RequestKind::Ballot, mask, vote, 0, site));
    }
    bool all(bool vote, Site site = Site::here()) const { return ballot(vote, site) == mask; }
    bool any(bool vote, Site site = Site::here()) const { return ballot(vote, site) != 0; }
};

// Result of a claiming policy for one slot.
enum class Claim { New, Seen, Next };

struct Found {
    u32 outcome;
    u64 reference;
};

struct FindsForwards {
    static constexpr bool finds_backwards = false;
};

// Open addressing with a claiming policy, which has `Claim Policy::claim(script, slot, vector, group)` and the order in which a
// find reads chunks.
template <class Policy>
struct Probing {
    static Found find_or_put(const Script& script, const u64* vector, const Group& group)
    {
        for (u32 slot = 0; slot < script.slots; ++slot) {
            const Claim claim = Policy::claim(script, slot, vector, group);
            if (claim != Claim::Next) return {claim == Claim::New ? New : Seen, slot};
        }
        return {Full, no_reference};
    }

    static Found find(const Script& script, const u64* vector, const Group&)
    {
        for (u32 slot = 0; slot < script.slots; ++slot) {
            auto decision = warpset::Decision::Agreed;
            for (u32 i = 0; i < script.chunks && decision == warpset::Decision::Agreed; ++i) {
                const u32 chunk = Policy::finds_backwards ? script.chunks - 1 - i : i;
                decision = warpset::look(script.chunk(slot, chunk), EMPTY, vector[chunk]);
            }
            if (decision == warpset::Decision::Empty) break;
            if (decision == warpset::Decision::Agreed) return {Seen, slot};
        }
        return {Absent, no_reference};
    }
};

// Runs the operations of each lane, or group of lanes, one after another.
template <class Table>
void run(const void* argument)
{
    const Script& script = *static_cast<const Script*>(argument);
    const Group group{script.lanes_an_operation};
    const u64 first = warpset::platform::Grid::thread() / group.lanes * script.operations_a_lane;
    for (u64 i = first; i < first + script.operations_a_lane; ++i) {
        warpset_simt_operation& operation = script.operations[i];
        if (operation.kind == warpset_simt_nothing) continue;
        const u64* vector = script.vectors + operation.vector * script.chunks;
        const u64 began = warpset_simt_steps();
        const bool finds = operation.kind == warpset_simt_find;
        const Found found = finds ? Table::find(script, vector, group) : Table::find_or_put(script, vector, group);
        if (group.rank != 0) continue;
        operation.began = began;
        operation.ended = warpset_simt_steps();
        operation.outcome = found.outcome;
        operation.reference = found.reference;
    }
}

}  // namespace controls
