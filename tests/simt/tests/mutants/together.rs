//! Mutants of two parts: a warp builds trees from changes, and a block gathers vectors before it puts them.

use super::{Group, Mutant};

pub const GROUP: Group = Group {
    modules: &["tree"],
    // Some of these specs are for the exhaustive trials.
    specs: "tree_3_8_64,tree_4_8_32,tree_8,tree_17,tree_compact_3_44,tree_compact_4_14,tree_compact_5",
    mutants: MUTANTS,
};

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the barrier between opening ways and exchanging words",
        file: "warpset/tree/incremental_builder.cuh",
        from: "        Warp::sync();\n        if (way.path.length != 0) exchange(",
        to: "        if (way.path.length != 0) exchange(",
    },
    Mutant {
        what: "the barrier between exchanging words and closing ways",
        file: "warpset/tree/incremental_builder.cuh",
        from: "exchange(way, way.path.length - 1, way.value);\n        Warp::sync();\n",
        to: "exchange(way, way.path.length - 1, way.value);\n",
    },
    Mutant {
        what: "the barrier after a level of ways is closed",
        file: "warpset/tree/incremental_builder.cuh",
        from: "            complete = (Warp::ballot(!complete) & lanes) == 0;\n            Warp::sync();\n",
        to: "            complete = (Warp::ballot(!complete) & lanes) == 0;\n",
    },
    Mutant {
        what: "the barrier after root pairs have been made by ways",
        file: "warpset/tree/incremental_builder.cuh",
        from: "        Warp::sync();\n        return vectors;\n",
        to: "        return vectors;\n",
    },
    Mutant {
        what: "the barrier after root pairs of incremental puts have been written to scratch memory",
        file: "warpset/tree/incremental_builder.cuh",
        from: "        Warp::sync();\n        return missing;\n",
        to: "        return missing;\n",
    },
    Mutant {
        what: "the lane that a way joins: the first one of its vector",
        file: "warpset/tree/incremental_builder.cuh",
        from: "way.joins = highest(earlier & below(lane));",
        to: "way.joins = way.head;",
    },
    Mutant {
        what: "where a way leaves the one before it: one pair too late",
        file: "warpset/tree/incremental_builder.cuh",
        from: "platform::lowest_bit(before ^ way.path.sides) + 1;",
        to: "platform::lowest_bit(before ^ way.path.sides) + 2;",
    },
    Mutant {
        what: "parents that cannot be read, by ways",
        file: "warpset/tree/incremental_builder.cuh",
        from: "Warp::ballot(!open(batch, way));",
        to: "Warp::ballot(!open(batch, way) && false);",
    },
    Mutant {
        what: "the want of a node of an incremental put, by ways",
        file: "warpset/tree/incremental_builder.cuh",
        from: "made[(end + way.vector) % capacity] = complete ? root : NodeTable::missing;",
        to: "made[(end + way.vector) % capacity] = root;",
    },
    Mutant {
        what: "the barrier after the count of rows is cleared",
        file: "warpset/block_cache.cuh",
        from: "        if (Block::thread() == 0) *taken() = 0;\n        Block::sync();\n    }",
        to: "        if (Block::thread() == 0) *taken() = 0;\n    }",
    },
    Mutant {
        what: "the barrier before the room of a cache is read",
        file: "warpset/block_cache.cuh",
        from: "        Block::sync();  // all have added what they add before it\n",
        to: "",
    },
    Mutant {
        what: "the barrier after the room of a cache has been read",
        file: "warpset/block_cache.cuh",
        from: "        Block::sync();  // and what they add after it does not count\n",
        to: "",
    },
    Mutant {
        what: "the barrier before rows are read",
        file: "warpset/block_cache.cuh",
        from: "        Block::sync();  // the rows are written\n",
        to: "",
    },
    Mutant {
        what: "the barrier before rows are overwritten",
        file: "warpset/block_cache.cuh",
        from: "        Block::sync();  // the rows may be overwritten\n",
        to: "",
    },
    Mutant {
        what: "the barrier after the index is cleared",
        file: "warpset/block_cache.cuh",
        from: "index()[at] = none;\n        Block::sync();\n",
        to: "index()[at] = none;\n",
    },
    Mutant {
        what: "the barrier after rows are marked as kept",
        file: "warpset/block_cache.cuh",
        from: "        Block::sync();\n        return kept_before(offered);",
        to: "        return kept_before(offered);",
    },
    Mutant {
        what: "the barrier before rows move into gaps",
        file: "warpset/block_cache.cuh",
        from: "gaps[row - kept_before(row)] = row;\n        Block::sync();\n",
        to: "gaps[row - kept_before(row)] = row;\n",
    },
    Mutant {
        what: "the barrier after rows have moved",
        file: "warpset/block_cache.cuh",
        from: "            if (is_kept(row)) move(row, gaps[kept_before(row) - kept_in_front]);\n        Block::sync();\n",
        to: "            if (is_kept(row)) move(row, gaps[kept_before(row) - kept_in_front]);\n",
    },
    Mutant {
        what: "the first word when rows are compared",
        file: "warpset/block_cache.cuh",
        from: "for (u32 word = 0; word < width && equal; ++word) equal",
        to: "for (u32 word = 1; word < width && equal; ++word) equal",
    },
    Mutant {
        what: "the move of a row's parent",
        file: "warpset/block_cache.cuh",
        from: "            parents()[to] = parents()[from];\n",
        to: "",
    },
    Mutant {
        what: "the move of a row's mask",
        file: "warpset/block_cache.cuh",
        from: "changed()[to * mask_words + i] = changed()[from * mask_words + i];",
        to: "(void)i;",
    },
    Mutant {
        what: "the bound on rows",
        file: "warpset/block_cache.cuh",
        from: "        if (row >= rows) return false;\n",
        to: "",
    },
    Mutant {
        what: "the barrier after parents have been read in advance",
        file: "warpset/tree/incremental_builder.cuh",
        from: "            read = last - read < Warp::size ? last : read + Warp::size;\n        }\n        Warp::sync();\n",
        to: "            read = last - read < Warp::size ? last : read + Warp::size;\n        }\n",
    },
    Mutant {
        what: "parents that are not stored, read in advance",
        file: "warpset/tree/incremental_builder.cuh",
        from: "= stored ? pair : NodeTable::missing;",
        to: "= pair;",
    },
    Mutant {
        what: "the end of a vector's other ways when one of them lacks a node",
        file: "warpset/tree/incremental_builder.cuh",
        from: "            complete = (Warp::ballot(!complete) & lanes) == 0;\n",
        to: "",
    },
];
