//! Of what only searches of the model checker need of a table.

use crate::{Group, Mutant};

pub const GROUP: Group = Group { tests: &["search"], specs: "indexed_2,bucket_2", mutants: MUTANTS };

const MUTANTS: &[Mutant] = &[Mutant {
    what: "the loss of spare rows of an earlier level",
    file: "warpset/indexed/rows.cuh",
    from: "                if (seen - 1 >= first_spare) return seen - 1;\n",
    to: "                return seen - 1;\n",
}];
