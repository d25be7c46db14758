// Bucket tables with a filter.
#pragma once

#include "bucket.hpp"
#include "filter.hpp"

namespace warpset {

// Kernels of the tables that `Tables`, a `BucketTablesOf`, knows.
template <class Tables>
constexpr FilteredKernels filtered_kernels_of()
{
    return {
        [](const View& view, const BatchView& batch) {
            Tables::with_table(view, [&](const auto& table) {
                const FilteredTable filtered{table, view.filter, view.filter_words};
                SearchBatch<std::decay_t<decltype(filtered)>, Operation::FindOrPut>::run_thread(filtered, batch);
            });
        },
        [](const View& view, const BatchView& batch) {
            Tables::with_table(view, [&](const auto& table) {
                const FilteredTable filtered{table, view.filter, view.filter_words};
                SearchBatch<std::decay_t<decltype(filtered)>, Operation::Find>::run_thread(filtered, batch);
            });
        },
    };
}

}  // namespace warpset
