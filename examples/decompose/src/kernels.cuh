// List of all kernels, in the order of their numbers (machine.rs). Include after paths.cuh.

#define DECOMPOSE_KERNELS(KERNEL)                                                                                        \
    KERNEL(count_in) KERNEL(scan) KERNEL(scatter_in) KERNEL(count_degrees) KERNEL(seed_trim)     \
    KERNEL(trim) KERNEL(tally) KERNEL(enter_one) KERNEL(search) KERNEL(close_one) KERNEL(elect) KERNEL(enter_pivots)     \
    KERNEL(spread) KERNEL(close_pivots) KERNEL(begin_colours) KERNEL(propagate) KERNEL(enter_colours)                    \
    KERNEL(close_colours) KERNEL(find_smallest) KERNEL(take_smallest) KERNEL(begin_choices) KERNEL(remove_leaving)       \
    KERNEL(cascade) KERNEL(flag_members) KERNEL(collect_members) KERNEL(write_edges) KERNEL(take_regions)                \
    KERNEL(take_components) KERNEL(leave_out) KERNEL(count_pairs) KERNEL(scatter_pairs) KERNEL(mark_components)          \
    KERNEL(find_path) KERNEL(follow_path)
