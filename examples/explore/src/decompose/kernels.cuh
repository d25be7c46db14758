// All kernels, in the order of their numbers (machine.rs): behind end_components.cuh.

#define DECOMPOSE_KERNELS(KERNEL)                                                                                        \
    KERNEL(count_in) KERNEL(sum_parts) KERNEL(scan_parts) KERNEL(scatter_in) KERNEL(count_degrees) KERNEL(seed_trim)     \
    KERNEL(trim) KERNEL(tally) KERNEL(enter_one) KERNEL(vote) KERNEL(enter_parts) KERNEL(enter_again) KERNEL(search)     \
    KERNEL(close_regions) KERNEL(begin_colours) KERNEL(propagate) KERNEL(enter_colours) KERNEL(find_smallest)            \
    KERNEL(take_smallest) KERNEL(begin_choices) KERNEL(remove_leaving) KERNEL(cascade) KERNEL(flag_members)              \
    KERNEL(collect_members) KERNEL(write_edges) KERNEL(take_components) KERNEL(leave_out)
