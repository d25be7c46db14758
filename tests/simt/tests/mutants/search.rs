//! Mutants of table functions that only the model checker's searches use, and of the barrier of all blocks in a search.

use super::{Group, Mutant};

pub const GROUP: Group = Group { modules: &["search"], specs: "indexed_2,bucket_2", mutants: MUTANTS };

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the loss of spare rows of an earlier level",
        file: "warpset/indexed/rows.cuh",
        from: "                if (seen - 1 >= first_spare) return seen - 1;\n",
        to: "                return seen - 1;\n",
    },
    Mutant {
        what: "the fence before a block arrives at the barrier of all blocks",
        file: "explore.cu",
        from: "    const u32 generation = load_relaxed(generation_now);\n    __threadfence();\n",
        to: "    const u32 generation = load_relaxed(generation_now);\n",
    },
    Mutant {
        what: "the fence between the last arrival at the barrier of all blocks and what is done then",
        file: "explore.cu",
        from: "    if (atomicAdd(arrived, 1) + 1 == gridDim.x) {\n        __threadfence();\n",
        to: "    if (atomicAdd(arrived, 1) + 1 == gridDim.x) {\n",
    },
    Mutant {
        what: "the fence before the blocks that wait at the barrier are let go on",
        file: "explore.cu",
        from: "        atomicExch(arrived, 0);\n        __threadfence();\n",
        to: "        atomicExch(arrived, 0);\n",
    },
    Mutant {
        what: "the fence after the wait at the barrier of all blocks",
        file: "explore.cu",
        from: "        while (load_relaxed(generation_now) == generation) __nanosleep(20);\n    }\n    __threadfence();\n",
        to: "        while (load_relaxed(generation_now) == generation) __nanosleep(20);\n    }\n",
    },
    Mutant {
        what: "the atomic access that makes the barrier of all blocks ready for the next level",
        file: "explore.cu",
        from: "        atomicExch(arrived, 0);\n",
        to: "        *arrived = 0;\n",
    },
    Mutant {
        what: "the comparison of the states of a level that lead to the same state",
        file: "explore.cu",
        from: "                if (!is_known) is_less = own < value;\n",
        to: "",
    },
];
