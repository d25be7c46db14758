// Names of the entry points: each ends with the version of the library, so that two versions can be linked into one program. The
// namespace of all other code has the version, too (build.rs).
#pragma once

#define WARPSET_JOIN(name, version) name##_##version
#define WARPSET_OF_VERSION(name, version) WARPSET_JOIN(name, version)

#define warpset_cpu_most_chunk_bytes WARPSET_OF_VERSION(warpset_cpu_most_chunk_bytes, WARPSET_VERSION)
#define warpset_cpu_geometry WARPSET_OF_VERSION(warpset_cpu_geometry, WARPSET_VERSION)
#define warpset_cpu_kernel WARPSET_OF_VERSION(warpset_cpu_kernel, WARPSET_VERSION)
#define warpset_cpu_launch WARPSET_OF_VERSION(warpset_cpu_launch, WARPSET_VERSION)
#define warpset_cpu_quotient WARPSET_OF_VERSION(warpset_cpu_quotient, WARPSET_VERSION)
#define warpset_cpu_find_or_put WARPSET_OF_VERSION(warpset_cpu_find_or_put, WARPSET_VERSION)
#define warpset_cpu_upsert WARPSET_OF_VERSION(warpset_cpu_upsert, WARPSET_VERSION)
#define warpset_cpu_find WARPSET_OF_VERSION(warpset_cpu_find, WARPSET_VERSION)
#define warpset_cpu_count_parts WARPSET_OF_VERSION(warpset_cpu_count_parts, WARPSET_VERSION)
#define warpset_cpu_fill_part WARPSET_OF_VERSION(warpset_cpu_fill_part, WARPSET_VERSION)
#define warpset_cpu_export_left WARPSET_OF_VERSION(warpset_cpu_export_left, WARPSET_VERSION)
#define warpset_cpu_count_tree_lists WARPSET_OF_VERSION(warpset_cpu_count_tree_lists, WARPSET_VERSION)
#define warpset_cpu_move_trees WARPSET_OF_VERSION(warpset_cpu_move_trees, WARPSET_VERSION)
#define warpset_cpu_cluster_abi WARPSET_OF_VERSION(warpset_cpu_cluster_abi, WARPSET_VERSION)
#define warpset_cpu_cluster_claim WARPSET_OF_VERSION(warpset_cpu_cluster_claim, WARPSET_VERSION)
#define warpset_cpu_cluster_scatter WARPSET_OF_VERSION(warpset_cpu_cluster_scatter, WARPSET_VERSION)
#define warpset_cpu_cluster_gather_put WARPSET_OF_VERSION(warpset_cpu_cluster_gather_put, WARPSET_VERSION)
#define warpset_cpu_cluster_gather_found WARPSET_OF_VERSION(warpset_cpu_cluster_gather_found, WARPSET_VERSION)
#define warpset_cpu_cluster_write_stamps WARPSET_OF_VERSION(warpset_cpu_cluster_write_stamps, WARPSET_VERSION)
#define warpset_cpu_cluster_check_stamps WARPSET_OF_VERSION(warpset_cpu_cluster_check_stamps, WARPSET_VERSION)
