//! Of indexed tables: rows, and the index that names them.

use crate::{Group, Mutant};

pub const GROUP: Group = Group { tests: &["indexed"], specs: "indexed", mutants: MUTANTS };

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the fence (by a warp)",
        file: "warpset/indexed/search.cuh",
        from: "        platform::fence_acquire_release();\n",
        to: "",
    },
    Mutant {
        what: "the barrier between the fence and the lanes that read the row of a slot that another has acquired",
        file: "warpset/indexed/search.cuh",
        from: "        Warp::sync();  // a row is read by others than the lane that has seen its slot\n",
        to: "",
    },
    Mutant {
        what: "the barrier between the lanes that write a row and the one that publishes it",
        file: "warpset/indexed/search.cuh",
        from: "        Warp::sync();  // a row is written by others than the lane that claims\n",
        to: "",
    },
    Mutant {
        what: "the fence between rows and the claims that publish them (by a warp), if nothing is compared",
        file: "warpset/indexed/search.cuh",
        from: "        if ((comparing | claiming) != 0) fence();\n",
        to: "        if (comparing != 0) fence();\n",
    },
    Mutant {
        what: "the fence between the looks and the comparisons (by a warp), if nothing is claimed",
        file: "warpset/indexed/search.cuh",
        from: "        if ((comparing | claiming) != 0) fence();\n",
        to: "        if (claiming != 0) fence();\n",
    },
    Mutant {
        what: "the order of rows and fence (by a warp): it is before they are written",
        file: "warpset/indexed/search.cuh",
        from: "            if (claiming != 0) write_rows(claiming);\n        }\n        if ((comparing | claiming) != 0) fence();\n",
        to: "            if (claiming != 0) fence();\n            if (claiming != 0) write_rows(claiming);\n        }\n        if (comparing != 0 && claiming == 0) fence();\n",
    },
    Mutant {
        what: "the order of fence and claims (by a warp): they are before it",
        file: "warpset/indexed/search.cuh",
        from: "        if ((comparing | claiming) != 0) fence();\n        // The claims are under way while rows are compared: nothing is done with `seen` before.\n        const Slot seen = claims ? request_claim() : Table::empty;\n",
        to: "        const Slot seen = claims ? request_claim() : Table::empty;\n        if ((comparing | claiming) != 0) fence();\n",
    },
    Mutant {
        what: "the fence between a claim that is lost and the comparison with the row that it was lost to (by a warp)",
        file: "warpset/indexed/search.cuh",
        from: "        if (claims) outcome = finish_claim(seen);\n",
        to: "        if (claims) outcome = finish_claim(seen);\n        const u32 lost = Warp::ballot(claims && next == Next::Compare);\n        if (lost != 0) {\n            const Outcome compared = compare(lost);\n            if (lost >> Warp::lane() & 1) outcome = compared;\n        }\n",
    },
    Mutant {
        what: "the comparison with the row that a claim was lost to (by a warp)",
        file: "warpset/indexed/search.cuh",
        from: "        if (!table.fits(seen, tag)) return next_slot();\n",
        to: "        if (seen != 0) return next_slot();\n",
    },
    Mutant {
        what: "the end of owning a row that is published (by a warp)",
        file: "warpset/indexed/search.cuh",
        from: "            found = own;\n            own = no_row;\n",
        to: "            found = own;\n",
    },
    Mutant {
        what: "the numbers of new rows: all lanes get the first of them",
        file: "warpset/indexed/search.cuh",
        from: "        const u64 row = first + platform::population_count(rows.lanes & ((1u << lane) - 1));\n",
        to: "        const u64 row = first;\n",
    },
    Mutant {
        what: "the lanes that get a row that was taken ahead: those that own one get another",
        file: "warpset/indexed/search.cuh",
        from: "request_rows(takes_ahead && next == Next::Look && own == no_row);",
        to: "request_rows(takes_ahead && next == Next::Look);",
    },
    Mutant {
        what: "the lanes that have lost a claim: they leave the bucket (by a warp)",
        file: "warpset/indexed/search.cuh",
        from: "        return ++index == layout.slots_per_bucket() ? next_bucket() : Outcome::Unwritten;",
        to: "        return next_bucket();",
    },
    Mutant {
        what: "the acquire of slots that are looked at (by one thread)",
        file: "warpset/indexed/table.cuh",
        from: "            Slot seen = platform::load_acquire(slot_at(bucket, index));\n            if (seen == empty) {\n                if (lane",
        to: "            Slot seen = platform::load_relaxed(slot_at(bucket, index));\n            if (seen == empty) {\n                if (lane",
    },
    Mutant {
        what: "the release of a row (by one thread)",
        file: "warpset/indexed/table.cuh",
        from: "platform::compare_and_swap_acquire_release(slot_at",
        to: "platform::compare_and_swap_acquire(slot_at",
    },
    Mutant {
        what: "the acquire of a slot whose claim is lost (by one thread)",
        file: "warpset/indexed/table.cuh",
        from: "platform::compare_and_swap_acquire_release(slot_at",
        to: "platform::compare_and_swap_release(slot_at",
    },
    Mutant {
        what: "the end of owning a row that is published (by one thread)",
        file: "warpset/indexed/table.cuh",
        from: "                    lane.row = no_row;\n                    return {Outcome::New, row};",
        to: "                    return {Outcome::New, row};",
    },
    Mutant {
        what: "the writing of a row anew for the next vector of its owner",
        file: "warpset/indexed/table.cuh",
        from: "                if (!written) rows.write(lane.row, vector);\n",
        to: "                if (!written && lane.row + 1 == rows.count()) rows.write(lane.row, vector);\n",
    },
    Mutant {
        what: "the look for a slot that names a row, before it is read",
        file: "warpset/indexed/table.cuh",
        from: "(row < rows.count() && slot_naming(row) != nullptr)",
        to: "(row < rows.count())",
    },
    Mutant {
        what: "the compare-and-swap that takes a spare row for one lane",
        file: "warpset/indexed/rows.cuh",
        from: "if (seen != 0 && platform::compare_and_swap_acquire(cell, seen, u64{0}) == seen) {",
        to: "if (seen != 0) {\n                platform::compare_and_swap_acquire(cell, seen, u64{0});",
    },
    Mutant {
        what: "the rows that are taken back by clearing",
        file: "warpset/indexed/maintenance.cuh",
        from: "        *rows.given = 0;\n",
        to: "",
    },
    Mutant {
        what: "the look whether a row is stored, when an index is made of the rows",
        file: "warpset/indexed/maintenance.cuh",
        from: "        if (!old.holds(row)) continue;\n",
        to: "",
    },
    Mutant {
        what: "the compare with what a failed compare-and-swap returned, when an index is made: the row counts as named",
        file: "warpset/indexed/table.cuh",
        from: "if (platform::load_relaxed(slot) == empty && platform::compare_and_swap_relaxed(slot, empty, named) == empty) return true;",
        to: "if (platform::load_relaxed(slot) == empty) {\n                    platform::compare_and_swap_relaxed(slot, empty, named);\n                    return true;\n                }",
    },
    Mutant {
        what: "the room for a list of holes",
        file: "warpset/indexed/maintenance.cuh",
        from: "        if (at < room) holes[at] = row;\n",
        to: "        holes[at] = row;\n",
    },
    Mutant {
        what: "the spares, before new numbers are taken (by a warp)",
        file: "warpset/indexed/search.cuh",
        from: "        if (wants && table.rows.are_spares(spares)) own = table.rows.take_spare();\n",
        to: "",
    },
    Mutant {
        what: "the spares, before numbers are taken ahead",
        file: "warpset/indexed/search.cuh",
        from: "claiming != 0 && table.rows.fills_spares() && !table.rows.are_spares(spares);",
        to: "claiming != 0 && table.rows.fills_spares();",
    },
    Mutant {
        what: "a lane whose row becomes a spare in the end",
        file: "warpset/indexed/search.cuh",
        from: "const u32 left = Warp::ballot(own != no_row && table.rows.leave(own));",
        to: "const u32 left = Warp::ballot(own != no_row && Warp::lane() != 0 && table.rows.leave(own));",
    },
    Mutant {
        what: "the count of spares: those that are taken count on",
        file: "warpset/indexed/rows.cuh",
        from: "                platform::add_relaxed(view.spares, ~0ull);\n",
        to: "",
    },
    Mutant {
        what: "the count of spares: those that a warp leaves count as one",
        file: "warpset/indexed/search.cuh",
        from: "table.rows.count_spares(platform::population_count(left));",
        to: "table.rows.count_spares(1);",
    },
    Mutant {
        what: "the bound on numbers of rows that are taken together",
        file: "warpset/indexed/search.cuh",
        from: "if ((rows.lanes >> lane & 1) && row < table.view.rows.capacity) own = row;",
        to: "if (rows.lanes >> lane & 1) own = row;",
    },
    Mutant {
        what: "the number of a row in a new index: that of the one before",
        file: "warpset/indexed/table.cuh",
        from: "        const Slot named = name(tag_of(hashed), row);\n        Probe",
        to: "        const Slot named = tag_of(hashed) | static_cast<Slot>(row);\n        Probe",
    },
    Mutant {
        what: "the look whether a row is stored that a reference is to",
        file: "warpset/indexed/maintenance.cuh",
        from: "unstored += !table.holds(references[at] & slot_mask);",
        to: "unstored += (references[at] & slot_mask) >= table.rows.count();",
    },
];
