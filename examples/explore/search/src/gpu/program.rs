//! Texts of the programs that search on a GPU.

use crate::codegen::{Choosing, generate, numbered_conditions, tables};
use warpset_model::checks::Checks;
use warpset_model::ir::{Expression, Model};
use warpset_model::reduction::stubborn::Stubborn;

const KERNEL: &str = include_str!("explore.cu");

/// States in registers, for every kernel.
pub(super) const REGISTERS: &str = include_str!("registers.cuh");

/// The choice of steps, for the kernels of reduced searches.
const CHOOSING: &str = include_str!("choosing.cuh");

/// The search for accepting cycles: what a state's flags say, and the kernels.
const RESIDUE_FLAGS: &str = include_str!("residue.cuh");
const RESIDUE_KERNELS: &str = include_str!("residue.cu");

/// Sets of states for formulas of branching time.
const NET_VALUES: &str = include_str!("net_values.cuh");
const BRANCHING_KERNELS: &str = include_str!("branching.cu");

/// Name of the program in messages of the compiler.
pub(super) const PROGRAM: &str = "explore.cu";

/// Lists have references of 8 bytes.
const WIDE_LIST: &str = "#define EXPLORE_WIDE_LIST 1\n";

/// Rows of a block's cache for each of its threads: EXPLORE_ROWS_A_THREAD.
pub(super) const ROWS_A_THREAD: u64 = 4;

/// Definitions that the generated functions and the kernel need.
pub(super) const SURROUNDINGS: &str = "\
#define EXPLORE_FN __device__ __forceinline__
#define EXPLORE_OUT_OF_LINE __device__ __noinline__
#define EXPLORE_PART __device__ __noinline__
#define EXPLORE_DATA __device__ constexpr
#if WARPSET_WIDTH <= 64
#define EXPLORE_UNROLL _Pragma(\"unroll\")
#else  // no registers hold such states, and unrolled loops take seconds to compile
#define EXPLORE_UNROLL _Pragma(\"unroll 4\")
#endif
#define EXPLORE_NO_UNROLL _Pragma(\"unroll 1\")
#define EXPLORE_ROWS_A_THREAD 4
#define EXPLORE_BLOCKS(threads) (768 / threads)
#ifndef EXPLORE_RANKS
#define EXPLORE_RANKS 0
#endif
#ifndef EXPLORE_BRANCHING
#define EXPLORE_BRANCHING 0
#endif
#ifndef EXPLORE_BY_ROWS
#define EXPLORE_BY_ROWS 0
#endif
#ifndef EXPLORE_WIDE_LIST
#define EXPLORE_WIDE_LIST 0
#endif
#ifndef EXPLORE_REGISTERS
#define EXPLORE_REGISTERS 6
#endif
";

/// Model, checks and options from which a program text is made.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    pub model: &'a Model,
    pub checks: &'a Checks,
    /// Measures the time of the kernel.
    pub timed: bool,
    /// Chooses the steps of a reduced search.
    pub stubborn: Option<&'a Stubborn<'a>>,
}

impl<'a> Sources<'a> {
    /// Sources of a program that takes all steps and measures no time.
    pub fn new(model: &'a Model, checks: &'a Checks) -> Self {
        Self { model, checks, timed: false, stubborn: None }
    }

    /// Program text that explores an indexed table, with parents beside its rows.
    pub fn by_rows(self) -> String {
        format!("#define EXPLORE_BY_ROWS 1\n{}", self.text(false))
    }

    /// Program text that explores, for any table of the model's states and any GPU.
    pub fn search(self) -> String {
        let has_property = self.model.property.is_some();
        let with_cycles = if has_property { [RESIDUE_FLAGS, RESIDUE_KERNELS].concat() } else { String::new() };
        self.text(false) + &with_cycles
    }

    /// Program text that goes back from a state to the initial one. It tries all steps: each way is one of the model. `by_rows`:
    /// the states are the rows of an indexed table.
    pub fn walk(self, by_rows: bool) -> String {
        let by_rows = if by_rows { "#define EXPLORE_BY_ROWS 1\n" } else { "" };
        by_rows.to_owned() + &Self { timed: false, stubborn: None, ..self }.text(true)
    }

    /// Program text for one rank of several.
    pub fn rank(self) -> String {
        format!("#define EXPLORE_RANKS 1\n{}", self.text(false))
    }

    /// Program text that evaluates formulas of branching time. `conditions`: those that are compiled.
    pub fn branching(self, conditions: &[Expression]) -> String {
        let steps = Sources::new(self.model, &Checks::default()).text(true);
        let conditions = numbered_conditions(self.model, conditions);
        format!("#define EXPLORE_BRANCHING 1\n{steps}{NET_VALUES}{conditions}{BRANCHING_KERNELS}")
    }

    /// The tables that the text reads; at least one word.
    pub(super) fn tables(self) -> Vec<u32> {
        let mut tables = tables(self.model, self.stubborn.map(Choosing::by_lanes));
        tables.resize(tables.len().max(1), 0);
        tables
    }

    fn text(self, walks_back: bool) -> String {
        let Self { model, checks, timed, stubborn } = self;
        let conditions: Vec<_> = checks.conditions.iter().map(|condition| &condition.must_hold).collect();
        let generated = generate(model, &conditions, stubborn.map(Choosing::by_lanes));
        let (walks_back, choosing) = (u8::from(walks_back), stubborn.map_or("", |_| CHOOSING));
        // The kernels of the search for accepting cycles read the list, too.
        let wide = if model.property.is_some() { WIDE_LIST } else { "" };
        format!(
            "{wide}{SURROUNDINGS}#define EXPLORE_TIMED {timed}\n#define EXPLORE_WALKS_BACK {walks_back}\n\
             {generated}{REGISTERS}{choosing}{KERNEL}"
        )
    }
}

/// Whether a GPU can choose the steps: whether the tables have a moderate size.
pub fn can_reduce(stubborn: &Stubborn) -> bool {
    Choosing::by_lanes(stubborn).fits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_have_the_rows_that_the_host_expects() {
        assert!(SURROUNDINGS.contains(&format!("#define EXPLORE_ROWS_A_THREAD {ROWS_A_THREAD}\n")));
    }
}
