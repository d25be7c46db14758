// The CPU backend's entry points of a cluster's rank (warpset/cluster/partition.cuh): thread `thread` of `threads` does its part
// of a kernel's work; the caller starts and joins them. Compiled by build.rs.
#include "cpu_entries.hpp"
#include "warpset/cluster/partition.cuh"

using namespace warpset;

namespace {

// Makes the calling thread number `index` of the `count` threads of a kernel.
void play(u64 index, u64 count)
{
    platform::Grid::thread_index = index;
    platform::Grid::thread_count = count;
}

}  // namespace

extern "C" {

// Sizes of the views, which src/cluster/view.rs mirrors.
void warpset_cpu_cluster_abi(u64* sizes)
{
    sizes[0] = sizeof(PartitionView);
    sizes[1] = sizeof(Stamp);
    sizes[2] = sizeof(StampView);
}

void warpset_cpu_cluster_claim(const PartitionView* view, u64 thread, u64 threads)
{
    play(thread, threads);
    Partition::claim(*view);
}

void warpset_cpu_cluster_scatter(const PartitionView* view, u64 thread, u64 threads)
{
    play(thread, threads);
    Partition::scatter(*view);
}

void warpset_cpu_cluster_gather_put(const PartitionView* view, u64 thread, u64 threads)
{
    play(thread, threads);
    Partition::gather(*view, Outcome::New);
}

void warpset_cpu_cluster_gather_found(const PartitionView* view, u64 thread, u64 threads)
{
    play(thread, threads);
    Partition::gather(*view, Outcome::Seen);
}

void warpset_cpu_cluster_write_stamps(const StampView* view, u64 thread, u64 threads)
{
    play(thread, threads);
    write_stamps(*view);
}

void warpset_cpu_cluster_check_stamps(const StampView* view, u64 thread, u64 threads)
{
    play(thread, threads);
    check_stamps(*view);
}

}  // extern "C"
