
// The kernels of a GPU: behind kernels.cuh. Blocks have `most_threads` threads, and all of them are resident: some kernels are
// cooperative.
#define DECOMPOSE_KERNEL(name)                                                                                   \
    extern "C" __global__ void __launch_bounds__(decompose::most_threads) decompose_##name(decompose::Work work) \
    {                                                                                                            \
        __shared__ decompose::Shared shared;                                                                     \
        decompose::Block block{&shared};                                                                         \
        decompose::name(work, block);                                                                            \
    }

DECOMPOSE_KERNELS(DECOMPOSE_KERNEL)
