//! Mutants of relocation, of putting keys back, and of a full stash.

use super::{Group, Mutant};

pub const GROUP: Group = Group { modules: &["compact"], specs: "compact", mutants: MUTANTS };

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the check for a code that another thread has put into a slot that was seen EMPTY (relocation)",
        file: "warpset/compact/relocation.cuh",
        from: "            if (table.main.claim(at.bucket, slot, at.code) == Level::empty) return true;",
        to: "            table.main.claim(at.bucket, slot, at.code);\n            return true;",
    },
    Mutant {
        what: "the rule that a key skips a function under which its code is EMPTY (relocation)",
        file: "warpset/compact/relocation.cuh",
        from: "            if (at.code == Level::empty) continue;  // the key skips this function\n",
        to: "",
    },
    Mutant {
        what: "the look at the last slot of a bucket before another key is displaced",
        file: "warpset/compact/relocation.cuh",
        from: "        for (u32 slot = 0; slot < Level::slots_per_bucket; ++slot) {\n            if (table.main.load(",
        to: "        for (u32 slot = 0; slot + 1 < Level::slots_per_bucket; ++slot) {\n            if (table.main.load(",
    },
    Mutant {
        what: "the move of the key that was displaced",
        file: "warpset/compact/relocation.cuh",
        from: "            key = table.hash.key(level.fraction(",
        to: "            table.hash.key(level.fraction(",
    },
    Mutant {
        what: "the clearing of a slot whose key is relocated",
        file: "warpset/compact/relocation.cuh",
        from: "        table.stash.clear(at);\n",
        to: "",
    },
    Mutant {
        what: "the decrease of the count of stored keys by those that are left over",
        file: "warpset/compact/relocation.cuh",
        from: "        platform::add_relaxed(table.stored, ~0ull);\n",
        to: "",
    },
    Mutant {
        what: "the choice of the slot of the displaced code, in a word of two slots",
        file: "warpset/compact/table.cuh",
        from: "            const Word without = expected ^ with(0, slot, code_in(expected, slot));",
        to: "            const Word without = slots_per_word == 1 ? 0 : expected;",
    },
    Mutant {
        what: "the second look at a word whose other slot has changed (relocation)",
        file: "warpset/compact/table.cuh",
        from: "            if (seen == expected) return code_in(expected, slot);\n            expected = seen;\n        }\n    }\n\n    // Makes",
        to: "            return code_in(seen, slot);\n        }\n    }\n\n    // Makes",
    },
    Mutant {
        what: "the rule that slots for keys that are put back are closed to find-or-put",
        file: "warpset/compact/table.cuh",
        from: "return walk.round >= view.rounds;",
        to: "return walk.round >= view.all_rounds;",
    },
    Mutant {
        what: "the look at the slots that are kept for keys that are put back",
        file: "warpset/compact/table.cuh",
        from: "        for (u32 slot = 0; slot < slots_per_bucket; ++slot) {\n            Code seen",
        to: "        for (u32 slot = 0; slot < last_slot(walk.round); ++slot) {\n            Code seen",
    },
    Mutant {
        what: "the comparison with the code that a failed compare-and-swap returned: a thread that loses to an equal key reports New",
        file: "warpset/compact/table.cuh",
        from: "operation == Operation::FindOrPut && seen == empty) return",
        to: "operation == Operation::FindOrPut && (seen == empty || seen == code)) return",
    },
];
