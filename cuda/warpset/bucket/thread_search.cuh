// Find and find-or-put by one thread that interleaves several searches. In each turn a search probes one bucket and prefetches
// its next one.
//
// This header serves bucket tables; compact/search.cuh has the counterpart for compact tables.
//
// A table may have a filter beside its slots, so that lookups of absent vectors read no slot: cuda/cpu_kernels/filter.hpp.
//
// Tried and dropped: a tag per slot that puts read, too. A tag is a byte beside the table: 0, or bits of the hash of the slot's
// vector. Rule: each call that returns New or Seen has written the tag or seen it. So a lookup that begins later may treat tag 0
// as EMPTY. A tag changes once, so a different tag means a different vector. A put then reads and writes two places instead of
// one, and a lookup of a stored vector waits for one after the other. (AMD EPYC, one thread, 2^22 vectors of 2 words, fill 0.7,
// ns new / seen / found / absent: 15.3 / 13.9 / 13.8 / 22.9, with tags 23.3 / 21.5 / 22.6 / 16.3. 2^19 vectors of 8 words: 33.6 /
// 26.8 / 26.5 / 36.5, with tags 39.2 / 30.6 / 34.8 / 31.9.)
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/core/probe.cuh"

namespace warpset {

template <class Table, Operation operation>
struct ThreadSearch {
    // State that a thread keeps between vectors and hands over when it ends. Empty here.
    struct Lane {
        WARPSET_FN void finish(const Table&) {}
    };

    Probe probe;  // without a step in the first bucket, which nearly all searches end in
    typename Table::Classes forbidden;

    template <class Vector>
    WARPSET_FN void begin(const Table& table, const Vector& vector)
    {
        begin(table, vector, table.hash(vector));
    }

    // As above, with the vector's hash.
    template <class Vector>
    WARPSET_FN void begin(const Table& table, const Vector& vector, u64 hash)
    {
        probe = Probe::of_first_bucket(hash, table.view);
        table.prefetch(probe.bucket);
        forbidden = table.forbidden_classes(vector);
    }

    // Pending: the search continues.
    template <class Vector>
    WARPSET_FN Found step(const Table& table, const Vector& vector, Lane&)
    {
        Found found = operation == Operation::FindOrPut ? table.find_or_put_in(probe.bucket, vector, forbidden)
                                                        : table.find_in(probe.bucket, vector, forbidden);
        if (found.outcome != Outcome::Pending) return found;
        if (probe.probes == 0) probe.make_step(table.view);
        if (!probe.advance(table.view))
            return {operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent, no_reference};
        table.prefetch(probe.bucket);
        return found;
    }
};

}  // namespace warpset
