//! Mutants of node tables, and of the results that a tree table reports for its nodes.

use super::{Group, Mutant};

pub const GROUP: Group = Group { modules: &["tree"], specs: "strategy,tree", mutants: MUTANTS };

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the comparison with the node that a failed compare-and-swap returned: the loser takes the slot for its own",
        file: "warpset/tree/nodes.cuh",
        from: "continue;  // lost to another node: the bucket is looked at again",
        to: "found = node[i];",
    },
    Mutant {
        what: "the comparison with the node that a failed compare-and-swap returned: a loser to an equal node goes on to the next bucket",
        file: "warpset/tree/nodes.cuh",
        from: "} else if (found != node[i]) {",
        to: "} else if (found == node[i]) {\nat[i] = next_slot(at[i], hash(node[i]));\ncontinue;\n} else {",
    },
    Mutant {
        what: "the second look at a bucket of nodes after a lost claim",
        file: "warpset/tree/nodes.cuh",
        from: "continue;  // lost to another node: the bucket is looked at again",
        to: "",
    },
    Mutant {
        what: "the count of remaining buckets of a search: a lost claim decreases it, too",
        file: "warpset/tree/nodes.cuh",
        from: "continue;  // lost to another node: the bucket is looked at again",
        to: "if (((left -= 1u << 16 * i) >> 16 * i & 0xFFFF) != 0) continue;\ntasks.finish(i, missing);\nbusy &= ~(1u << i);\ncontinue;",
    },
    Mutant {
        what: "the count of nodes: nodes that another thread has put count, too",
        file: "warpset/tree/nodes.cuh",
        from: "(view.slots + at[i] + in_second, empty, node[i]);\n",
        to: "(view.slots + at[i] + in_second, empty, node[i]);\nfresh += found == node[i];\n",
    },
    Mutant {
        what: "the stop at the first EMPTY slot of a bucket of nodes: the search leaves the bucket over it",
        file: "warpset/tree/nodes.cuh",
        from: "in_second = first != node[i] && first != empty;",
        to: "in_second = first != node[i];",
    },
    Mutant {
        what: "the order of EMPTY slots of a bucket of nodes: if both are EMPTY, the second is taken",
        file: "warpset/tree/nodes.cuh",
        from: "in_second = first != node[i] && first != empty;",
        to: "in_second = first != node[i] && (first != empty || seen[i].chunk[1] == empty);",
    },
    Mutant {
        what: "the exception for the virtual node: (0, 0) is claimed like other nodes",
        file: "warpset/tree/nodes.cuh",
        from: "if (node[i] == empty) {",
        to: "if (false) {",
    },
    Mutant {
        what: "the check that a node is visible",
        file: "warpset/tree/table.cuh",
        from: "return node != NodeTable::empty || reference == nodes.zero();",
        to: "return true;",
    },
    Mutant {
        what: "the exception for the virtual node, when it is read",
        file: "warpset/tree/table.cuh",
        from: "return node != NodeTable::empty || reference == nodes.zero();",
        to: "return node != NodeTable::empty;",
    },
    Mutant {
        what: "the check of all words but the first when a slot is tested for a vector",
        file: "warpset/tree/table.cuh",
        from: "return read_words(slot, 0, 1, [](u32, u32) {});",
        to: "return read_words(slot, 0, width(), [](u32, u32) {});",
    },
    Mutant {
        what: "the missing node of a leaf (by one thread)",
        file: "warpset/tree/table.cuh",
        from: "(vector.pair(2 * i), fresh);\n            complete = row[i] != NodeTable::missing;\n",
        to: "(vector.pair(2 * i), fresh);\n",
    },
    Mutant {
        what: "the missing node of an inner node (by one thread)",
        file: "warpset/tree/table.cuh",
        from: "row[Shape::right(length, i)]), fresh);\n                complete = row[i] != NodeTable::missing;\n",
        to: "row[Shape::right(length, i)]), fresh);\n",
    },
    Mutant {
        what: "the other lane's judgement of a slot",
        file: "warpset/tree/nodes.cuh",
        from: "const bool holds = (Warp::ballot(entry == mine) >> pair_start & 3) == 3;",
        to: "const bool holds = (Warp::ballot(entry == mine) >> pair_start & 3) != 0;",
    },
    Mutant {
        what: "the reading of a whole slot by one lane: each lane reads its half of both slots",
        file: "warpset/tree/nodes.cuh",
        from: "const u32 from_other = Warp::shuffle(half(read, 1 - side), Warp::lane() ^ 1);",
        to: "const u32 from_other = half(searching ? load(at + 1 - side) : empty, side);",
    },
    Mutant {
        what: "the comparison with the node that a failed compare-and-swap returned (by two lanes)",
        file: "warpset/tree/nodes.cuh",
        from: "} else if (found == empty || found == node) {",
        to: "} else {",
    },
    Mutant {
        what: "the bits of a word in a compact root",
        file: "warpset/tree/table.cuh",
        from: "return shape().ends_in_word() ? bits - roots.hash.view.last_bits : bits / 2;",
        to: "return bits / 2;",
    },
];
