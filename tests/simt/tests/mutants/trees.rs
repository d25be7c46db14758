//! Mutants of two parts: a warp builds trees from whole vectors, and one thread builds trees from changes.

use super::{Group, Mutant};

pub const GROUP: Group = Group { modules: &["tree"], specs: "tree", mutants: MUTANTS };

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the missing node below a node (by a warp)",
        file: "warpset/tree/builder.cuh",
        from: "            else if (!of_words && is_missing(node, length.get(), position)) to[current] = NodeTable::missing;\n",
        to: "",
    },
    Mutant {
        what: "the missing node below a root (by a warp)",
        file: "warpset/tree/builder.cuh",
        from: "missing = is_missing(root, 2, 0);",
        to: "missing = false;",
    },
    Mutant {
        what: "the exception for a word that looks like a missing node (by a warp)",
        file: "warpset/tree/builder.cuh",
        from: "const bool right_is_word = Shape::is_word(width, length, 2 * position + 1);",
        to: "const bool right_is_word = false;",
    },
    Mutant {
        what: "the position of a word that looks like a missing node (by a warp)",
        file: "warpset/tree/builder.cuh",
        from: "const bool right_is_word = Shape::is_word(width, length, 2 * position + 1);",
        to: "const bool right_is_word = 2 * position + 1 == length - 1;",
    },
    Mutant {
        what: "the separate scratch memory of a level: it is written over the level below",
        file: "warpset/tree/builder.cuh",
        from: "u32* above = halves + Warp::size * leaves;",
        to: "u32* above = halves;",
    },
    Mutant {
        what: "the barrier after the leaves have been written",
        file: "warpset/tree/builder.cuh",
        from: "(first, fresh);\n        Warp::sync();\n",
        to: "(first, fresh);\n",
    },
    Mutant {
        what: "the barrier after the halves of a level have been written",
        file: "warpset/tree/builder.cuh",
        from: "(next_level, fresh);\n            Warp::sync();\n",
        to: "(next_level, fresh);\n",
    },
    Mutant {
        what: "the barrier after roots have been written to scratch memory",
        file: "warpset/tree/builder.cuh",
        from: "        Warp::sync();\n        return missing;\n",
        to: "        return missing;\n",
    },
    Mutant {
        what: "the check that a node of a parent is visible",
        file: "warpset/tree/incremental.cuh",
        from: "        if (!read) {",
        to: "        if (false) {",
    },
    Mutant {
        what: "the restart without a parent: the search goes on with the next word",
        file: "warpset/tree/incremental.cuh",
        from: "            words.start(true);\n",
        to: "",
    },
    Mutant {
        what: "the distinction between words that are 0 and a pair that was not read",
        file: "warpset/tree/incremental.cuh",
        from: "if (has_parent && Table::half(pair, side) == value) return;",
        to: "if (Table::half(pair, side) == value) return;",
    },
    Mutant {
        what: "the record of which pairs differ: only the last one counts",
        file: "warpset/tree/incremental.cuh",
        from: "            if (!(changed >> depth & 1)) continue;\n",
        to: "            if (!(changed >> depth & 1) || meet != 0) continue;\n",
    },
    Mutant {
        what: "the exception for the pair in which ways part: it is closed with the others",
        file: "warpset/tree/incremental.cuh",
        from: "for (; depth > meet; --depth)",
        to: "for (; depth > (meet == 0 ? 0 : meet - 1); --depth)",
    },
    Mutant {
        what: "the exchange of a closed pair's reference in the pair above",
        file: "warpset/tree/incremental.cuh",
        from: "            exchange(depth - 1, way.sides >> (depth - 1) & 1, reference);\n",
        to: "",
    },
    Mutant {
        what: "masks of words beyond the 32nd",
        file: "warpset/tree/incremental.cuh",
        from: "bits = mask(first / 32);",
        to: "bits = mask(0);",
    },
    Mutant {
        what: "the outcome of an incremental put that lacks a node",
        file: "warpset/tree/incremental.cuh",
        from: "            if (reference == NodeTable::missing) return false;\n",
        to: "",
    },
];
