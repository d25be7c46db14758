// The model of these tests, which is a graph. The model checker's kernels (examples/explore) are compiled with it.
//
// A state is a node and, in a product, a location of a property's automaton. `tables` holds the graph:
//
// - the number of nodes
// - for each node and each of its `choices_a_node` choices: the node to which the step leads, or no_node
// - for each location: its moves as bits; move i leads to the location i further on, modulo the number of locations
#pragma once

#include "explore.h"
#include "warpset/table.cuh"

#define EXPLORE_FN inline
#define EXPLORE_UNROLL
#define EXPLORE_NO_UNROLL
#define EXPLORE_ROWS_A_THREAD 4
#define EXPLORE_BLOCKS(threads) 1
#define EXPLORE_REGISTERS 6
#define EXPLORE_TIMED false
#define EXPLORE_WALKS_BACK 0
#define EXPLORE_THREADS 64
#define EXPLORE_NANOSECONDS 0
#define RESIDUE_FN inline
#define RESIDUE_FLAGS unsigned

namespace explore {

using i32 = int;
using u32 = unsigned;

constexpr u32 no_node = ~0u;
constexpr u32 state_words = WARPSET_WIDTH;
constexpr u32 units = 2, choices_a_unit = 2, choices_a_node = units * choices_a_unit, first_component = units;
constexpr u32 property_moves = GRAPH_MOVES, conditions = 0;

struct Notes {
    u32 fault = 0, transition = 0, overflows = 0;
};

template <u32 end>
struct Numbers {
    static constexpr u32 count = 1;
    u32 bits[1] = {};
    bool has(u32 number) const { return bits[0] >> number & 1; }
    bool is_empty() const { return bits[0] == 0; }
};

// Carries the graph to the code that takes steps.
struct Cursor {
    const u32* tables;
    explicit Cursor(const u32* tables) : tables(tables) {}
    bool more() const { return false; }
};

inline u32 choices(u32) { return choices_a_unit; }

template <class From, class To>
bool step(u32 unit, u32 choice, Cursor& cursor, const From& from, To& to, Notes&)
{
    const u32 target = cursor.tables[1 + from.words[0] * choices_a_node + unit * choices_a_unit + choice];
    if (target == no_node) return false;
    to.words[0] = target;
    return true;
}

template <class State>
Numbers<conditions> violated(const u32*, const State&, Notes&)
{
    return {};
}

template <class State>
i32 property_location(const State& state)
{
    return property_moves > 0 ? static_cast<i32>(state.words[1]) : 0;
}

template <class State>
void find_moves(const u32* tables, const State& state, Numbers<property_moves>& found, Notes&)
{
    if (property_moves > 0) found.bits[0] = tables[1 + tables[0] * choices_a_node + static_cast<u32>(property_location(state))];
}

template <class State>
void move_property(i32 location, u32 move, State& to)
{
    to.words[1] = (static_cast<u32>(location) + move) % (property_moves + (property_moves == 0));
}

}  // namespace explore
