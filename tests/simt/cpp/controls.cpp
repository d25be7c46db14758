// Negative controls: known-wrong algorithms. The simulator must catch each of them (src/controls.rs, tests/controls.rs).
#include "controls/claiming.h"
#include "controls/filter.h"
#include "controls/indexed.h"
#include "controls/machine.h"
#include "controls/tree.h"

#define WARPSET_SIMT_TABLE(name, ...) \
    extern "C" void warpset_simt_control_##name(const void* argument) { controls::run<__VA_ARGS__>(argument); }

#define WARPSET_SIMT_KERNEL(name, ...)                                \
    extern "C" void warpset_simt_control_##name(const void* argument) \
    {                                                                 \
        __VA_ARGS__(*static_cast<const controls::Script*>(argument)); \
    }

#define WARPSET_SIMT_TREE(name, Nodes, reading, giving, taking)                    \
    extern "C" void warpset_simt_control_##name(const void* argument)              \
    {                                                                              \
        run_tree<Nodes, Reading::reading>(argument, Order::giving, Order::taking); \
    }

#define WARPSET_SIMT_INDEXED(name, flaw) \
    extern "C" void warpset_simt_control_##name(const void* argument) { run_indexed<Flaw::flaw>(argument); }

namespace controls {

WARPSET_SIMT_TABLE(chained, Probing<Chained>)
WARPSET_SIMT_TABLE(gpuexplore1, Probing<GpuExplore1>)
WARPSET_SIMT_TABLE(gpuexplore2, Probing<GpuExplore2>)
WARPSET_SIMT_TABLE(thesis_spinlock, Probing<ThesisSpinlock<Order::Release, Order::Acquire>>)
WARPSET_SIMT_TABLE(thesis_spinlock_relaxed, Probing<ThesisSpinlock<Order::Relaxed, Order::Relaxed>>)
WARPSET_SIMT_TABLE(looks_again_weak, Probing<LooksAgain<Order::Weak, false>>)
WARPSET_SIMT_TABLE(looks_again_together_weak, Probing<LooksAgain<Order::Weak, true>>)
WARPSET_SIMT_TABLE(looks_again_together_relaxed, Probing<LooksAgain<Order::Relaxed, true>>)
WARPSET_SIMT_TABLE(out_of_order, Probing<OutOfOrder<false, false>>)
WARPSET_SIMT_TABLE(put_backwards_find_forwards, Probing<OutOfOrder<true, false>>)
WARPSET_SIMT_TABLE(backwards, Probing<OutOfOrder<true, true>>)
WARPSET_SIMT_TABLE(last_stored, Probing<LastStored>)
WARPSET_SIMT_TABLE(cuckoo, Cuckoo)

WARPSET_SIMT_KERNEL(scratch_voted, exchange_in_scratch<false>)
WARPSET_SIMT_KERNEL(scratch_synced, exchange_in_scratch<true>)
WARPSET_SIMT_KERNEL(plain_store_atomic_load, plain_store_atomic_load)
WARPSET_SIMT_KERNEL(two_votes, two_votes)
WARPSET_SIMT_KERNEL(one_vote, one_vote)
WARPSET_SIMT_KERNEL(leaves_before_the_vote, leaves_before_the_vote)
WARPSET_SIMT_KERNEL(vote_of_a_whole_warp, vote_of_a_whole_warp)
WARPSET_SIMT_KERNEL(barrier_in_a_branch, barrier_in_a_branch)
WARPSET_SIMT_KERNEL(waits_before_the_barrier, waits_before_the_barrier)
WARPSET_SIMT_KERNEL(barrier_between, barrier_between)
WARPSET_SIMT_KERNEL(plain_load_past_the_end, one_past_the_end<Reach::PlainLoad>)
WARPSET_SIMT_KERNEL(plain_store_past_the_end, one_past_the_end<Reach::PlainStore>)
WARPSET_SIMT_KERNEL(atomic_load_past_the_end, one_past_the_end<Reach::AtomicLoad>)
WARPSET_SIMT_KERNEL(compare_and_swap_past_the_end, one_past_the_end<Reach::CompareAndSwap>)
WARPSET_SIMT_KERNEL(load_of_the_last, one_past_the_end<Reach::Last>)
WARPSET_SIMT_KERNEL(misaligned_load, sixteen_bytes<Wide::Load, 1>)
WARPSET_SIMT_KERNEL(misaligned_compare_and_swap, sixteen_bytes<Wide::CompareAndSwap, 1>)
WARPSET_SIMT_KERNEL(misaligned_row, sixteen_bytes<Wide::Row, 1>)
WARPSET_SIMT_KERNEL(misaligned_input, sixteen_bytes<Wide::Input, 1>)
WARPSET_SIMT_KERNEL(shared_as_such, shared_memory<As::Block>)
WARPSET_SIMT_KERNEL(shared_load, shared_memory<As::Load>)
WARPSET_SIMT_KERNEL(shared_compare_and_swap, shared_memory<As::CompareAndSwap>)
WARPSET_SIMT_KERNEL(shared_store, shared_memory<As::Store>)
WARPSET_SIMT_KERNEL(shared_fetch_add, shared_memory<As::FetchAdd>)
WARPSET_SIMT_KERNEL(aligned_load, sixteen_bytes<Wide::Load, 2>)
WARPSET_SIMT_KERNEL(published_relaxed, publishes_a_node<Publication::Relaxed, false>)
WARPSET_SIMT_KERNEL(published_plain_relaxed, publishes_a_node<Publication::Relaxed, true>)
WARPSET_SIMT_KERNEL(published_by_orders, publishes_a_node<Publication::Orders, false>)
WARPSET_SIMT_KERNEL(published_plain_by_orders, publishes_a_node<Publication::Orders, true>)
WARPSET_SIMT_KERNEL(published_plain_by_fences, publishes_a_node<Publication::Fences, true>)
WARPSET_SIMT_KERNEL(filter, looks_up_by_filter<FilterFlaw::None>)
WARPSET_SIMT_KERNEL(filter_ignores_puts, looks_up_by_filter<FilterFlaw::IgnoresPuts>)
WARPSET_SIMT_KERNEL(filter_loads_puts, looks_up_by_filter<FilterFlaw::LoadsPuts>)
WARPSET_SIMT_KERNEL(filter_lookup_relaxed, looks_up_by_filter<FilterFlaw::LookupRelaxed>)
WARPSET_SIMT_KERNEL(filter_begins_late, looks_up_by_filter<FilterFlaw::BeginsLate>)
WARPSET_SIMT_KERNEL(filter_ends_early, looks_up_by_filter<FilterFlaw::EndsEarly>)
WARPSET_SIMT_KERNEL(filter_ends_relaxed, looks_up_by_filter<FilterFlaw::EndsRelaxed>)

WARPSET_SIMT_TREE(tree, ClaimedNodes, Validated, Release, Acquire)
WARPSET_SIMT_TREE(tree_scan_believes, ClaimedNodes, Believed, Release, Acquire)
WARPSET_SIMT_TREE(tree_given_relaxed, ClaimedNodes, Validated, Relaxed, Relaxed)
WARPSET_SIMT_TREE(tree_nodes_stored, StoredNodes<false>, Validated, Release, Acquire)
WARPSET_SIMT_TREE(tree_nodes_stored_plainly, StoredNodes<true>, Validated, Release, Acquire)

WARPSET_SIMT_INDEXED(indexed, None)
WARPSET_SIMT_INDEXED(indexed_published_first, PublishedFirst)
WARPSET_SIMT_INDEXED(indexed_published_relaxed, PublishedRelaxed)
WARPSET_SIMT_INDEXED(indexed_read_without_acquire, ReadWithoutAcquire)
WARPSET_SIMT_INDEXED(indexed_lost_without_acquire, LostWithoutAcquire)
WARPSET_SIMT_INDEXED(indexed_next_without_comparing, NextWithoutComparing)
WARPSET_SIMT_INDEXED(indexed_fenced, Fenced)
WARPSET_SIMT_INDEXED(indexed_fenced_before_writing, FencedBeforeWriting)
WARPSET_SIMT_INDEXED(indexed_fenced_after_claiming, FencedAfterClaiming)
WARPSET_SIMT_INDEXED(indexed_read_without_fence, ReadWithoutFence)
WARPSET_SIMT_INDEXED(indexed_lost_without_fence, LostWithoutFence)

}  // namespace controls
