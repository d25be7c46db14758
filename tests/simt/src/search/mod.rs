//! The model checker's kernels (examples/explore/search/src/gpu): a search level by level, and passes for accepting cycles. They
//! run on random graphs and automata, and the results are compared with those of plain loops.
//!
//! - `case`: the graphs, the automata, the plain loops.
//! - `kernels`: the arguments of the kernels.
//! - `rows`, `residue`, `level`: checks of particular searches, beyond those of every search.

mod case;
mod kernels;
mod level;
mod residue;
mod rows;

use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, Rules};
use crate::memory::Memory;
use crate::stress::next_prime;
use crate::table::{Config, Table, bucket, indexed, wrong};
use case::{Case, Found, LOCATIONS};
use kernels::{Argument, COUNTED, Kernels, SEARCH_WORDS};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rows::Growing;

/// Kind of search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A system without an automaton.
    System,
    /// A system in an indexed table: its rows are the order of the states, and parents are stored in addition.
    Rows,
    /// A product with an automaton, followed by a search for its accepting cycles.
    Product,
    /// A level of a product, processed by one of several ranks: successors become offers.
    Level,
}

impl What {
    fn is_a_system(self) -> bool {
        matches!(self, Self::System | Self::Rows)
    }
}

/// Random cases.
pub struct RandomSearch {
    what: What,
    kernels: &'static Kernels,
    run: Option<Run>,
}

/// A case, and the data that its search uses.
struct Run {
    case: Case,
    found: Found,
    table: Table,
    of: Box<Argument>,
    /// Number of rounds of passes.
    rounds: usize,
    growing: Option<Growing>,
}

/// Maximum number of rounds of passes.
const ROUNDS: usize = 3;
const MOST_BLOCKS: usize = 2;

impl RandomSearch {
    pub fn new(what: What) -> Self {
        let kernels = Kernels::of(what);
        assert_eq!(kernels.argument_bytes as usize, size_of::<Argument>());
        assert_eq!(kernels.moves as usize, if what.is_a_system() { 0 } else { LOCATIONS });
        Self { what, kernels, run: None }
    }

    /// Draws a table. It is large enough for all states or, if `small` is set, mostly too small.
    fn table(&self, memory: &mut Memory, found: &Found, small: bool, rng: &mut Pcg64Mcg) -> Table {
        let kernels = if self.what == What::Rows { indexed(2, 32) } else { bucket(2, 16, 32) }.expect("a spec of every build");
        let fill = if small { rng.random_range(0.1..1.0) } else { rng.random_range(1.5..2.5) };
        let slots = (found.states.len() as f64 * fill) as u64 + if small { 1 } else { 16 };
        let buckets = next_prime(slots.div_ceil(kernels.slots_per_bucket()) as u32).into();
        let empty = [u32::MAX, u32::MAX - 1, u32::MAX - 2, u32::MAX - 3];
        // Each lane may lose one row per level, and another one each time a level is repeated.
        let times = found.starts.len() + 1 + if small { 8 } else { 0 };
        let rows = (found.states.len() + MOST_BLOCKS * self.kernels.block() * times) as u64;
        let spare_cells = *[8, 64, 256].get(rng.random_range(0..3usize)).expect("there are three");
        let config = Config { rows, spare_cells, ..Config::of_buckets(buckets, u64::MAX, empty, rng.random()) };
        let table = Table::allocate(memory, kernels, config);
        table.clear(memory);
        table
    }
}

impl Run {
    /// Checks the counts of states, transitions and deadlocks.
    fn judge_counts(&self, memory: &Memory, what: What) -> Result<(), Wrong> {
        let Self { found, of, .. } = self;
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let (count, counts) = (found.states.len(), memory.at(of.counts.cast_const(), 5));
        let search = memory.at(of.search.cast_const(), SEARCH_WORDS);
        // States are listed either in an order or in rows.
        let listed = if what == What::Rows { counts[1] } else { counts[3] };
        if (listed, counts[2]) != (count as u64, 0) {
            return no("states", format!("{listed} and {} rejected, not {count} and none", counts[2]));
        }
        let widths = (0..found.starts.len()).map(|at| found.starts.get(at + 1).unwrap_or(&count) - found.starts[at]);
        let transitions: usize = found.successors.iter().map(Vec::len).sum();
        let expected = [
            found.starts.len() as u64,
            widths.max().unwrap_or(0) as u64,
            transitions as u64,
            found.deadlocks,
            u64::MAX,
            u64::MAX,
        ];
        let counted = COUNTED.map(|at| search[at]);
        if counted != expected {
            return no("counts", format!("levels, widest, transitions, deadlocks, found, faulty: {counted:?}, not {expected:?}"));
        }
        Ok(())
    }

    /// Checks that each level has the same states as in the plain search, in any order, and that `starts` has the beginnings of
    /// the later levels.
    fn judge_order(&self, memory: &Memory) -> Result<(), Wrong> {
        let Self { found, table, of, rounds, .. } = self;
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let count = found.states.len();
        let order = memory.at(of.order.cast_const(), count);
        let starts = memory.at(of.starts.cast_const(), found.starts.len());
        let mut numbers = vec![usize::MAX; table.slots as usize];
        for (level, first) in found.starts.iter().enumerate() {
            let last = *found.starts.get(level + 1).unwrap_or(&count);
            if level > 0 && starts[level] != *first as u64 {
                return no("levels", format!("level {level} begins at {}, not {first}", starts[level]));
            }
            for reference in &order[*first..last] {
                let words = table.slot(memory, *reference).words;
                let number = found.numbers.get(&(words[0], words[1])).copied();
                let number =
                    number.filter(|number| (*first..last).contains(number) && numbers[*reference as usize] == usize::MAX);
                let Some(number) = number else { return no("levels", format!("{words:?} in level {level}")) };
                numbers[*reference as usize] = number;
            }
        }
        if *rounds == 0 { Ok(()) } else { self.judge_passes(memory, &numbers, order) }
    }
}

impl Program for RandomSearch {
    fn name(&self) -> String {
        match self.what {
            What::System => "search-system".into(),
            What::Rows => "search-rows".into(),
            What::Product => "search-product".into(),
            What::Level => "search-level".into(),
        }
    }

    fn memory_bytes(&self) -> usize {
        1 << 20
    }

    fn rules(&self, rules: Rules, _: u64) -> Rules {
        Rules { step_limit: 300_000, ..rules }
    }

    fn set_up(&mut self, memory: &mut Memory, seed: u64) -> Vec<Vec<Grid>> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let case = Case::random(&mut rng, self.what);
        let found = case.explore();
        let small = self.what == What::Rows && rng.random();
        let table = self.table(memory, &found, small, &mut rng);
        let rounds = if self.what == What::Product { rng.random_range(1..=ROUNDS) } else { 0 };
        let of = Box::new(Argument::random(memory, self.what, self.kernels.block(), &case, &found, &table, &mut rng));
        let launches = self.kernels.launches(&of, rng.random_range(1..=MOST_BLOCKS), rounds);
        let mut run = Run { case, found, table, of, rounds, growing: None };
        if small {
            run.begin_small(rng);
        }
        self.run = Some(run);
        launches
    }

    fn go_on(&mut self, memory: &mut Memory) -> Result<Vec<Vec<Grid>>, Wrong> {
        self.run.as_mut().expect("a case was set up").go_on_by_rows(memory, self.kernels)
    }

    fn judge(&mut self, memory: &Memory, _: Ending) -> Result<(), Wrong> {
        let run = self.run.as_ref().expect("a case was set up");
        if self.what == What::Level {
            return run.judge_level(memory);
        }
        run.judge_counts(memory, self.what)?;
        if self.what == What::Rows { run.judge_rows(memory) } else { run.judge_order(memory) }
    }
}
