// Build strategies of tree tables: how a table's kernels make root pairs. A strategy is chosen when the kernels are compiled.
//
// Only the pairing is a property of the table: it determines the trees (tree/shape.cuh). Lanes and workspace are properties
// of the warps that make the trees. They have no effect where one thread makes a tree: on CPUs, and in calls by one
// thread of a user's kernel. So kernels of strategies with the same pairing could share a table.
//
// Builder (bucket/builder.cuh) has a specialisation for
//   - the default, Lanes::Stream (tree/builder.cuh);
//   - the non-recursive ones of Bergsma (2019), section 7.1.3: {One, Group, ShrinkingGroup} x {Neighboured, Interleaved} x
//     workspace (tree/strategies/row_builder.cuh);
//   - the recursive ones of his chapter 6: Halved, {One, Two} x {Stack, StackOfLeaves} (tree/strategies/recursive_builder.cuh).
// The names and the legal combinations are in src/layout/strategy.rs.
#pragma once

#include "warpset/tree/shape.cuh"

namespace warpset {

// Lanes that make the tree of a vector. The numbers are those of `Lanes` in src/layout/strategy.rs.
enum class Lanes : u32 {
    Stream = 0,          // the whole warp, for 32 vectors at once; a lane takes its next node as soon as it is done
    One = 1,             // one lane
    Two = 2,             // two lanes, each for 32 bits of every node
    Group = 3,           // as many lanes as the tree has leaves, up to a warp
    ShrinkingGroup = 4,  // as many lanes as the current row has nodes; the other lanes work on the next vector
};

// Memory of a tree under construction. The numbers are those of `Workspace` in src/layout/strategy.rs.
enum class Workspace : u32 {
    Shared = 0,
    ShuffledShared = 1,  // shared memory in an order without bank conflicts
    Global = 2,
    Registers = 3,
    Stack = 4,          // the call stack, in local memory, with a call for each word
    StackOfLeaves = 5,  // the same, with a call for each pair of words
};

template <Lanes lanes_of_vector, Pairing pairing_of_halves, Workspace workspace_of_halves>
struct Strategy {
    static constexpr Lanes lanes = lanes_of_vector;
    static constexpr Pairing pairing = pairing_of_halves;
    static constexpr Workspace workspace = workspace_of_halves;
};

using DefaultStrategy = Strategy<Lanes::Stream, Pairing::Neighboured, Workspace::Shared>;

}  // namespace warpset
