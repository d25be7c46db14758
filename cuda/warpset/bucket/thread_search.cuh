// Find and find-or-put by one thread that has several searches under way. They take turns: in each turn a search looks at one
// bucket, and then prefetches its next one.
//
// This header is for bucket tables; compact/search.cuh has the same for compact tables.
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/core/outcome.cuh"
#include "warpset/core/probe.cuh"

namespace warpset {

template <class Table, Operation operation>
struct ThreadSearch {
    // State that a thread keeps from one vector to the next and hands over at its end: none.
    struct Lane {
        WARPSET_FN void finish(const Table&) {}
    };

    Probe probe;
    u32 probes;
    typename Table::Classes forbidden;

    template <class Vector>
    WARPSET_FN void begin(const Table& table, const Vector& vector)
    {
        probe = Probe::start(table.hash(vector), table.view.buckets);
        probes = 0;
        table.prefetch(probe);
        forbidden = table.forbidden_classes(vector);
    }

    // Pending: the search continues.
    template <class Vector>
    WARPSET_FN Found step(const Table& table, const Vector& vector, Lane&)
    {
        Found found = operation == Operation::FindOrPut ? table.find_or_put_in(probe.bucket, vector, forbidden)
                                                        : table.find_in(probe.bucket, vector, forbidden);
        if (found.outcome != Outcome::Pending) return found;
        if (++probes == table.view.probe_limit) return {operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent, no_reference};
        probe.advance(table.view.buckets);
        table.prefetch(probe);
        return found;
    }
};

}  // namespace warpset
