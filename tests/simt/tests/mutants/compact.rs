//! Mutants of compact tables, and of compact roots of trees.

use super::{Group, Mutant};

pub const GROUP: Group = Group { modules: &["compact", "tree"], specs: "compact,tree", mutants: MUTANTS };

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the compare with what a failed compare-and-swap of a code returned",
        file: "warpset/compact/table.cuh",
        from: "                if (operation == Operation::FindOrPut) seen = claim(bucket, slot, code);\n                if (operation == \
               Operation::FindOrPut && seen == empty) return",
        to: "                if (operation == Operation::FindOrPut && claim(bucket, slot, code) == empty) return",
    },
    Mutant {
        what: "the other slot of a word when a code is put",
        file: "warpset/compact/table.cuh",
        from: "word | code << slot * slot_bits",
        to: "code << slot * slot_bits",
    },
    Mutant {
        what: "the compare-and-swap of a word of two slots: one that fails counts",
        file: "warpset/compact/table.cuh",
        from: "            if (seen == expected) return empty;\n",
        to: "            if (seen == expected || seen != expected) return empty;\n",
    },
    Mutant {
        what: "the skip of functions under which a key's code is EMPTY",
        file: "warpset/compact/table.cuh",
        from: "} while (walk.at.code == empty);",
        to: "} while (false);",
    },
    Mutant {
        what: "the limit of a round (by one thread)",
        file: "warpset/compact/table.cuh",
        from: " && slot < last_slot(walk.round)) {",
        to: ") {",
    },
    Mutant {
        what: "the function of a code: the product is taken for right",
        file: "warpset/compact/table.cuh",
        from: "    return function + (code - function * view.window >= view.window);",
        to: "    return function;",
    },
    Mutant {
        what: "the remainder of a code: the last of three hashes is not tried",
        file: "warpset/compact/table.cuh",
        from: "for (u64 before = 0; before < 2 && before < remainder; ++before)",
        to: "for (u64 before = 0; before < 1 && before < remainder; ++before)",
    },
    Mutant {
        what: "the numbers of the stash's slots",
        file: "warpset/compact/table.cuh",
        from: "        if (found.reference != no_reference) found.reference += main.slots();\n",
        to: "",
    },
    Mutant {
        what: "the bits of a key (by one thread)",
        file: "warpset/compact/table.cuh",
        from: "        if (!hash.has(key)) return",
        to: "        if (false) return",
    },
    Mutant {
        what: "the count of keys that are stored (by one thread)",
        file: "warpset/compact/table.cuh",
        from: "        platform::count_relaxed(stored, found.outcome == Outcome::New);\n",
        to: "",
    },
    Mutant {
        what: "the code of a key that another has put (by a warp)",
        file: "warpset/compact/search.cuh",
        from: "        if (report.same != 0) return finish(",
        to: "        if (report.same == ~0u) return finish(",
    },
    Mutant {
        what: "the second look at a bucket after a lost claim of a slot (by a warp)",
        file: "warpset/compact/search.cuh",
        from: "        slot = look;  // at the bucket again",
        to: "        table.main.advance(walk, table.hash, scrambled);\n        slot = look;  // at the bucket again",
    },
    Mutant {
        what: "the bits of a key (by a warp)",
        file: "warpset/compact/search.cuh",
        from: "        if (!table.hash.has(key)) walk.round = too_wide;\n",
        to: "",
    },
    Mutant {
        what: "the limit of a round (by a warp)",
        file: "warpset/compact/search.cuh",
        from: "report.empty & taken_by_now & ~taken_before",
        to: "report.empty & ~taken_before",
    },
    Mutant {
        what: "the stash (by a warp)",
        file: "warpset/compact/search.cuh",
        from: "        const Found in_stash = table.template search_stash<operation>(scrambled);",
        to: "        const Found in_stash{operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent, no_reference};",
    },
    Mutant {
        what: "whose bucket a row was of, where two are in flight",
        file: "warpset/compact/search.cuh",
        from: "<< (first + i) * owner_bits;",
        to: "<< i * owner_bits;",
    },
];
