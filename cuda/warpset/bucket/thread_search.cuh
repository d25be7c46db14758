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
    // State that a thread keeps from one vector to the next and hands over at its end. Here it is empty.
    struct Lane {
        WARPSET_FN void finish(const Table&) {}
    };

    u64 bucket;
    u64 step_or_hash;  // the step of the probe sequence; the vector's hash in the first bucket, which nearly all searches end in
    u32 probes;
    typename Table::Classes forbidden;

    template <class Vector>
    WARPSET_FN void begin(const Table& table, const Vector& vector)
    {
        step_or_hash = table.hash(vector);
        bucket = Probe::first_bucket(step_or_hash, table.view.buckets);
        probes = 0;
        table.prefetch(bucket);
        forbidden = table.forbidden_classes(vector);
    }

    // Pending: the search continues.
    template <class Vector>
    WARPSET_FN Found step(const Table& table, const Vector& vector, Lane&)
    {
        Found found = operation == Operation::FindOrPut ? table.find_or_put_in(bucket, vector, forbidden)
                                                        : table.find_in(bucket, vector, forbidden);
        if (found.outcome != Outcome::Pending) return found;
        if (++probes == table.view.probe_limit) return {operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent, no_reference};
        Probe probe{bucket, probes == 1 ? Probe::step_of(step_or_hash, table.view.buckets) : step_or_hash};
        probe.advance(table.view.buckets);
        bucket = probe.bucket;
        step_or_hash = probe.step;
        table.prefetch(bucket);
        return found;
    }
};

}  // namespace warpset
