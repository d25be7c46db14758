// The rule by which lookups of a bucket table on a CPU use its filter (src/backend/cpu/filter.rs), and wrong versions of the
// rule. filter.rs is in Rust, so this is a model of its accesses, with the same memory orders.
#pragma once

#include "frame.h"

namespace controls {

using warpset::platform::Grid;

enum class FilterFlaw {
    None,
    IgnoresPuts,    // a lookup uses the filter while a put is under way
    LoadsPuts,      // a lookup loads the number of puts, instead of a read-modify-write, so it may see an old one
    LookupRelaxed,  // that read-modify-write orders nothing
    BeginsLate,     // a put is counted after it has stored its vector
    EndsEarly,      // a put has ended before it sets its bits
    EndsRelaxed,    // the end of a put does not release its bits
};

inline u64 fetch_add(u64* address, u64 value, Order order, Site site = Site::here())
{
    warpset::simt::Request request{RequestKind::FetchAdd, order, 8, 1, address, 0, 0, {}, {}, site};
    warpset::simt::put(request.value, value);
    warpset::simt::warpset_simt_request(&request);
    return warpset::simt::get<u64>(request.value);
}

// Lane 0 puts a vector. Lane 1 may read it from its slot. After either lane has ended, lane 2 looks the vector up and must find
// it.
template <FilterFlaw flaw>
void looks_up_by_filter(const Script& script)
{
    u64 *slot = script.cells, *bits = script.cells + 1, *puts = script.cells + 2, *has_ended = script.cells + 3;
    constexpr u64 vector = 7;
    if (Grid::thread() == 0) {
        if (flaw != FilterFlaw::BeginsLate) fetch_add(puts, 1, Order::Acquire);
        compare_and_swap_relaxed(slot, u64{0}, vector);
        if (flaw == FilterFlaw::BeginsLate) fetch_add(puts, 1, Order::Acquire);
        if (flaw != FilterFlaw::EndsEarly) store(bits, 1, Order::Relaxed);
        fetch_add(puts, ~u64{0}, flaw == FilterFlaw::EndsRelaxed ? Order::Relaxed : Order::Release);
        if (flaw == FilterFlaw::EndsEarly) store(bits, 1, Order::Relaxed);
        store(has_ended, 1, Order::Release);
    } else if (Grid::thread() == 1) {
        if (load_relaxed(slot) == vector) store(has_ended, 1, Order::Release);
    } else {
        if (load(has_ended, Order::Acquire) == 0) return;
        bool uses = true;
        if (flaw == FilterFlaw::LoadsPuts) uses = load(puts, Order::Acquire) == 0;
        else if (flaw != FilterFlaw::IgnoresPuts)
            uses = fetch_add(puts, 0, flaw == FilterFlaw::LookupRelaxed ? Order::Relaxed : Order::AcquireRelease) == 0;
        const bool absent = uses ? load_relaxed(bits) == 0 : load_relaxed(slot) == 0;
        script.operations[Grid::thread()].misread |= absent;
    }
}

}  // namespace controls
