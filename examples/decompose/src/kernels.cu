// The kernels as GPU code. Include after kernels.cuh. Blocks have `most_threads` threads, and all blocks are resident, because
// some kernels are cooperative.

namespace decompose {

DECOMPOSE_FN u64 Block::sum_before(u64 value, u64& total) const
{
    const u32 lane = thread() % 32, warp = thread() / 32;
    u64 upto = value;
    for (u32 step = 1; step < 32; step *= 2) {
        const u64 more = __shfl_up_sync(~0u, upto, step);
        if (lane >= step) upto += more;
    }
    sync();  // all threads have read the previous sums
    if (lane == 31) shared->sums[warp] = upto;
    sync();
    u64 before = 0, all = 0;
    for (u32 other = 0; other < most_threads / 32; ++other) {
        if (other == warp) before = all;
        all += shared->sums[other];
    }
    total = all;
    return before + upto - value;
}

}  // namespace decompose

#define DECOMPOSE_KERNEL(name)                                                                                   \
    extern "C" __global__ void __launch_bounds__(decompose::most_threads) decompose_##name(decompose::Work work) \
    {                                                                                                            \
        __shared__ decompose::Shared shared;                                                                     \
        decompose::Block block{&shared, decompose::load(&work.progress->step) + 1};                              \
        decompose::name(work, block);                                                                            \
        if (threadIdx.x == 0 && block.looked > 0) decompose::add(&work.progress->edges, block.looked);           \
    }

DECOMPOSE_KERNELS(DECOMPOSE_KERNEL)
