//! Mutants of the build strategies that are not the default.

use super::{Group, Mutant};

pub const GROUP: Group =
    Group { modules: &["tree"], specs: "strategy,tree_3_8_64,tree_4_8_32,tree_compact_3_44,tree_compact_4_14", mutants: MUTANTS };

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the exception for a word that looks like a missing node (by rows)",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "(Table::half(pair, 1) == NodeTable::missing && !Shape::is_word(width, length, right));",
        to: "Table::half(pair, 1) == NodeTable::missing;",
    },
    Mutant {
        what: "the missing node below a node (by rows)",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "!of_words && is_missing(pair, length, right) ? NodeTable::missing",
        to: "false ? NodeTable::missing",
    },
    Mutant {
        what: "the missing node below a root (by rows)",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "is_missing(root, 2, 1) ? NodeTable::missing : root;",
        to: "root;",
    },
    Mutant {
        what: "the barrier between the reads and the writes of a round",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "            sync();\n            if (mine) halves.write(",
        to: "            if (mine) halves.write(",
    },
    Mutant {
        what: "the barrier after the writes of a round",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "task.position, half);\n            sync();\n",
        to: "task.position, half);\n",
    },
    Mutant {
        what: "the workspace of a warp's own, in global memory",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "batch.workspace + platform::Grid::warp() * workspace_bytes",
        to: "batch.workspace",
    },
    Mutant {
        what: "the order of the rows of a vector: shuffled halves lie where others' do",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "(in_order & ~63u) | (in_order & 1) << 5 |",
        to: "(in_order & ~63u) |",
    },
    Mutant {
        what: "the half that moves up, in the middle of a row",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "if (mine) halves.write(",
        to: "if (paired) halves.write(",
    },
    Mutant {
        what: "the barrier before roots are handed over",
        file: "warpset/tree/strategies/root_builder.cuh",
        from: "bool missing = false;\n        Warp::sync();\n",
        to: "bool missing = false;\n",
    },
    Mutant {
        what: "the barrier after roots have been handed over",
        file: "warpset/tree/strategies/root_builder.cuh",
        from: "        Warp::sync();\n        return missing;\n",
        to: "        return missing;\n",
    },
    Mutant {
        what: "the missing node in a recursion: its number becomes a half",
        file: "warpset/tree/strategies/recursive_builder.cuh",
        from: "complete = complete && reference != NodeTable::missing;",
        to: "",
    },
];
