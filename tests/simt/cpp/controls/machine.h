// Kernels that break a rule of the machine, not of a table. For each there is a kernel that keeps the rule. A kernel that reads a
// wrong value reports it in `misread` of the lane's operation. Cells are zero at the start.
//
// Plain accesses are volatile so that the compiler does not remove them. The machine treats them as plain.
#pragma once

#include "controls/frame.h"

namespace controls {

using warpset::u128;
using warpset::platform::Grid;
using warpset::platform::Warp;

inline void sync_block(Site site = Site::here()) { warpset::simt::collective(RequestKind::SyncBlock, ~0u, 0, 0, site); }

inline void fence(Order order, Site site = Site::here())
{
    warpset::simt::Request request{RequestKind::Fence, order, 0, 1, nullptr, 0, 0, {}, {}, site};
    warpset::simt::warpset_simt_request(&request);
}

// Each lane reads what its neighbour has written to the scratch memory of the warp. Unless `syncs` is set, only a vote comes
// between the write and the read, and a vote orders nothing.
template <bool syncs>
void exchange_in_scratch(const Script& script)
{
    volatile u32* scratch = reinterpret_cast<u32*>(Warp::scratch(Warp::size * 4));
    scratch[Warp::lane()] = Warp::lane();
    if (syncs)
        Warp::sync();
    else
        Warp::ballot(true);
    const u32 neighbour = (Warp::lane() + 1) % Warp::size;
    script.operations[Grid::thread()].misread = scratch[neighbour] != neighbour;
}

// One lane writes a cell by a plain store, and the others read the cell atomically.
inline void plain_store_atomic_load(const Script& script)
{
    if (Grid::thread() == 0)
        *static_cast<volatile u64*>(script.cells) = 1;
    else
        load_relaxed(script.cells);
}

// Half of the warp votes at one site, the other half at another. Each vote requires the whole warp.
inline void two_votes(const Script&)
{
    if (Warp::lane() < 16)
        Warp::ballot(true);
    else
        Warp::ballot(false);
}

// All lanes vote at the same site. Only the value of the vote depends on the lane.
inline void one_vote(const Script& script)
{
    script.operations[Grid::thread()].misread = Warp::ballot(Warp::lane() < 16) != 0xFFFF;
}

// A lane ends although the others wait for its vote.
inline void leaves_before_the_vote(const Script&)
{
    if (Warp::lane() == 31) return;
    Warp::ballot(true);
}

// A vote requires 32 lanes, but the block has fewer.
inline void vote_of_a_whole_warp(const Script&) { Warp::ballot(true); }

// The first warp waits at a barrier of the block. The second warp reaches that barrier only after a vote, which one of its lanes
// never joins.
inline void barrier_in_a_branch(const Script&)
{
    if (Grid::thread() >= Warp::size && Warp::lane() != 0) Warp::ballot(true);
    sync_block();
}

// A lane waits before a barrier for a write that another lane makes after the barrier.
inline void waits_before_the_barrier(const Script& script)
{
    if (Grid::thread() == 0)
        while (load_relaxed(script.cells) == 0) {}
    sync_block();
    if (Grid::thread() == 1) store(script.cells, 1, Order::Relaxed);
}

// A plain store before a barrier and plain loads after it.
inline void barrier_between(const Script& script)
{
    volatile u64* cell = script.cells;
    if (Grid::thread() == 0) *cell = 7;
    sync_block();
    script.operations[Grid::thread()].misread = *cell != 7;
}

enum class Reach { PlainLoad, PlainStore, AtomicLoad, CompareAndSwap, Last };

// Accesses the cell behind the last one or, as a control, the last one.
template <Reach reach>
void one_past_the_end(const Script& script)
{
    u64* end = script.cells + script.slots * script.chunks;
    if (reach == Reach::PlainLoad) (void)*static_cast<volatile u64*>(end);
    if (reach == Reach::PlainStore) *static_cast<volatile u64*>(end) = 0;
    if (reach == Reach::AtomicLoad) load_relaxed(end);
    if (reach == Reach::CompareAndSwap) compare_and_swap_relaxed(end, EMPTY, u64{0});
    if (reach == Reach::Last) load_relaxed(end - 1);
}

// An access of the block's shared memory, as such or as global memory.
enum class As { Block, Load, CompareAndSwap, Store, FetchAdd };

template <As as>
void shared_memory(const Script&)
{
    auto* words = reinterpret_cast<u32*>(warpset::platform::Block::scratch());
    if (as == As::Block) {
        warpset::platform::fetch_add_block(words, 1);
        warpset::platform::compare_and_swap_block(words, 1, 2);
        warpset::platform::load_block(words);
    }
    if (as == As::Load) load_relaxed(words);
    if (as == As::CompareAndSwap) compare_and_swap_relaxed(words, 0u, 1u);
    if (as == As::Store) warpset::platform::store_relaxed(words, 1u);
    if (as == As::FetchAdd) warpset::platform::fetch_add_relaxed(reinterpret_cast<u64*>(words), 1);
}

enum class Wide { Load, CompareAndSwap, Row, Input };

// Accesses 16 bytes at an address that is a multiple of 16 or only of 8.
template <Wide wide, u32 offset>
void sixteen_bytes(const Script& script)
{
    auto* address = reinterpret_cast<u128*>(script.cells + offset);
    if (wide == Wide::Load) load_relaxed(address);
    if (wide == Wide::CompareAndSwap) compare_and_swap_relaxed(address, u128{0, 0}, u128{1, 1});
    if (wide == Wide::Row) {
        warpset::platform::Row<u64, 2> row;
        warpset::platform::load_row_relaxed(address, row);
    }
    if (wide == Wide::Input) warpset::platform::load_input(address);
}

enum class Publication { Relaxed, Orders, Fences };

// A lane writes a node of two words and then publishes its index. A lane that reads the index reads the node.
template <Publication publication, bool plain>
void publishes_a_node(const Script& script)
{
    u64* index = script.cells;
    u64* node = script.cells + 2;
    const bool orders = publication == Publication::Orders, fences = publication == Publication::Fences;
    if (Grid::thread() == 0) {
        for (u32 word = 0; word < 2; ++word) {
            if (plain)
                *static_cast<volatile u64*>(node + word) = 40 + word;
            else
                store(node + word, 40 + word, Order::Relaxed);
        }
        if (fences) fence(Order::Release);
        store(index, 2, orders ? Order::Release : Order::Relaxed);
        return;
    }
    if (load(index, orders ? Order::Acquire : Order::Relaxed) == 0) return;
    if (fences) fence(Order::Acquire);
    for (u32 word = 0; word < 2; ++word) {
        const u64 seen = plain ? *static_cast<volatile u64*>(node + word) : load_relaxed(node + word);
        script.operations[Grid::thread()].misread |= seen != 40 + word;
    }
}

}  // namespace controls
