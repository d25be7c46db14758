// A GPU for the tests of kernels: blocks of 32-lane warps whose threads take turns on one thread of the CPU.
//
// Each block runs on a CPU thread of its own, so blocks race for what they share. Its threads are fibres, which change only where
// all of a warp or of the block come together; in every other turn the last one goes first. If some wait for others that have
// ended, or are elsewhere, the process ends with a message: a kernel that does so would hang or be wrong. What is the same on a
// CPU (accesses of memory) is that of cuda/platform/cpu.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ucontext.h>
#include <vector>

#define Warp WarpOfCpu
#include "platform/cpu/warpset/platform.cuh"
#undef Warp

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __shared__ thread_local
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

struct SimulatedDim {
    unsigned x;
};
inline thread_local SimulatedDim threadIdx, blockIdx, blockDim, gridDim;
alignas(16) inline thread_local warpset::u8 shared[256 * 1024];

namespace simulated {

using warpset::u32;
using warpset::u64;

// Threads that come together: what each brings, and what all brought the last time.
struct Group {
    u32 size = 0, arrived = 0;
    u64 times = 0;
    std::vector<u64> brought, last;

    void begin(u32 threads)
    {
        size = threads;
        brought.assign(threads, 0);
        last.assign(threads, 0);
    }
};

struct Block {
    static constexpr size_t stack_bytes = 256 * 1024;

    std::vector<ucontext_t> contexts;
    std::vector<std::unique_ptr<char[]>> stacks;
    std::vector<bool> ended;
    std::vector<Group> warps;
    Group all;
    ucontext_t scheduler;
    void (*kernel)(const void*);
    const void* argument;
    u32 now = 0;
    bool moves = false;  // whether anybody has got on in this turn
};
inline thread_local Block* block = nullptr;

inline void yield() { swapcontext(&block->contexts[block->now], &block->scheduler); }

// Brings a value, and waits for all of the group. Gives what all have brought.
inline const u64* meet(Group& group, u32 place, u64 value)
{
    group.brought[place] = value;
    if (++group.arrived == group.size) {
        group.last = group.brought;
        group.arrived = 0;
        ++group.times;
        block->moves = true;
    } else {
        for (const u64 times = group.times; group.times == times;) yield();
    }
    return group.last.data();
}

inline const u64* meet_warp(u64 value) { return meet(block->warps[threadIdx.x / 32], threadIdx.x % 32, value); }
inline const u64* meet_block(u64 value) { return meet(block->all, threadIdx.x, value); }

inline void begin_thread()
{
    block->kernel(block->argument);
    block->ended[block->now] = true;
    block->moves = true;
    yield();
}

// Runs one block to its end.
inline void run_block(u32 number, u32 blocks, u32 threads, void (*kernel)(const void*), const void* argument)
{
    Block own;
    block = &own;
    blockIdx.x = number, gridDim.x = blocks, blockDim.x = threads;
    own.kernel = kernel, own.argument = argument;
    own.contexts.resize(threads);
    own.ended.assign(threads, false);
    own.all.begin(threads);
    own.warps.resize(threads / 32);
    for (Group& warp : own.warps) warp.begin(32);
    for (ucontext_t& context : own.contexts) {
        own.stacks.emplace_back(new char[Block::stack_bytes]);
        getcontext(&context);
        context.uc_stack.ss_sp = own.stacks.back().get();
        context.uc_stack.ss_size = Block::stack_bytes;
        makecontext(&context, begin_thread, 0);
    }
    bool goes_on = true;
    for (u32 turn = 0; goes_on; ++turn) {
        goes_on = own.moves = false;
        for (u32 place = 0; place < threads; ++place) {
            own.now = turn % 2 == 0 ? place : threads - 1 - place;
            if (own.ended[own.now]) continue;
            goes_on = true;
            threadIdx.x = own.now;
            swapcontext(&own.scheduler, &own.contexts[own.now]);
        }
        if (goes_on && !own.moves) {
            std::fprintf(stderr, "threads of block %u wait for others that do not come\n", number);
            std::abort();
        }
    }
    block = nullptr;
}

}  // namespace simulated

inline void __syncthreads() { simulated::meet_block(0); }
inline void __syncwarp() { simulated::meet_warp(0); }
inline int __syncthreads_or(int value)
{
    const unsigned long long* all = simulated::meet_block(value != 0);
    for (unsigned at = 0; at < blockDim.x; ++at)
        if (all[at] != 0) return 1;
    return 0;
}
// What only the kernel of one GPU and one table uses, which is not run here.
inline void __threadfence() { std::abort(); }
inline void __nanosleep(unsigned) { std::abort(); }
inline unsigned atomicAdd(unsigned*, unsigned) { std::abort(); }
inline unsigned atomicExch(unsigned*, unsigned) { std::abort(); }
inline long long clock64() { return 0; }

namespace warpset::platform {

struct Warp {
    static constexpr u32 size = 32;

    static u32 lane() { return threadIdx.x % 32; }
    static u32 ballot(bool vote)
    {
        const u64* all = simulated::meet_warp(vote);
        u32 votes = 0;
        for (u32 lane = 0; lane < size; ++lane) votes |= static_cast<u32>(all[lane]) << lane;
        return votes;
    }
    static u32 shuffle(u32 value, u32 source) { return static_cast<u32>(simulated::meet_warp(value)[source]); }
    static u64 shuffle(u64 value, u32 source) { return simulated::meet_warp(value)[source]; }
    static u32 sum_up_to(u32 value)
    {
        const u64* all = simulated::meet_warp(value);
        u32 sum = 0;
        for (u32 lane = 0; lane <= threadIdx.x % 32; ++lane) sum += static_cast<u32>(all[lane]);
        return sum;
    }
    static u32 any(u32 bits)
    {
        const u64* all = simulated::meet_warp(bits);
        u32 any = 0;
        for (u32 lane = 0; lane < size; ++lane) any |= static_cast<u32>(all[lane]);
        return any;
    }
    static void sync() { __syncwarp(); }
};

struct Block {
    static u32 thread() { return threadIdx.x; }
    static u32 threads() { return blockDim.x; }
    static void sync() { __syncthreads(); }
};

// The threads of a block are on one of the CPU.
inline u32 fetch_add_block(u32* address, u32 value)
{
    const u32 old = *address;
    *address += value;
    return old;
}
inline u32 compare_and_swap_block(u32* address, u32 expected, u32 desired)
{
    const u32 old = *address;
    if (old == expected) *address = desired;
    return old;
}

}  // namespace warpset::platform
