// The GPU kernels of a cluster's rank (warpset/cluster/partition.cuh), compiled by NVRTC for any width.
#include "warpset/cluster/partition.cuh"

using warpset::PartitionView;
using warpset::StampView;
using warpset::u32;

// Read by the host, which has the same structs in src/cluster/view.rs.
WARPSET_EXPORT const u32 warpset_cluster_abi[3] = {sizeof(PartitionView), sizeof(warpset::Stamp), sizeof(StampView)};

WARPSET_KERNEL(256, 1) warpset_cluster_claim(PartitionView view) { warpset::Partition::claim(view); }
WARPSET_KERNEL(256, 2) warpset_cluster_scatter(PartitionView view) { warpset::Partition::scatter(view); }
WARPSET_KERNEL(256, 1) warpset_cluster_gather_put(PartitionView view) { warpset::Partition::gather(view, warpset::Outcome::New); }
WARPSET_KERNEL(256, 1) warpset_cluster_gather_found(PartitionView view)
{
    warpset::Partition::gather(view, warpset::Outcome::Seen);
}
WARPSET_KERNEL(256, 1) warpset_cluster_write_stamps(StampView view) { warpset::write_stamps(view); }
WARPSET_KERNEL(256, 1) warpset_cluster_check_stamps(StampView view) { warpset::check_stamps(view); }
