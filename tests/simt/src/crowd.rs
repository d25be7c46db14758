//! Compact cuckoo tables under contention: the main level is full, the stash accepts few or no further keys, and many lanes offer
//! the same keys at once.

use crate::checks::{Contents, Pool, check_scripts};
use crate::compact::{Layout, Level};
use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, Rules, WARP};
use crate::memory::{Memory, Use};
use crate::stress::batch_view;
use crate::table::{
    BatchArgument, Config, FIND, FULL, Kernels, NEW, Operation, PUT, SEEN, ScriptArgument, Table, argument, wrong,
};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{HashMap, HashSet};

/// Random cases of one spec of compact tables.
pub struct Crowd {
    kernels: &'static Kernels,
    stale: bool,
    case: Option<Case>,
}

struct Case {
    table: Table,
    pool: Pool,
    /// Keys with an index below this number in `pool` were stored before the launch.
    stored_before: usize,
    operations: Vec<Operation>,
    a_lane: usize,
    /// Argument of the launch. Lanes point to it.
    _script: Option<Box<ScriptArgument>>,
    batches: Vec<(Vec<usize>, Box<BatchArgument>)>,
}

impl Crowd {
    /// If `stale` is set, loads of the machine may return older values. Otherwise operations are also checked to be linearizable.
    pub fn new(kernels: &'static Kernels, stale: bool) -> Self {
        assert!(kernels.is_compact() && !kernels.is_tree());
        Self { kernels, stale, case: None }
    }

    /// Draws a layout. Few slots of the main level may be taken. Find-or-put may take some slots of the stash; keys that are put
    /// back may also take others.
    fn layout(&self, rng: &mut Pcg64Mcg) -> Layout {
        let (key_bits, slot_bits) = (self.kernels.key_bits, self.kernels.slot_bits);
        let (multipliers, step) = ([0; 3].map(|_| rng.random::<u64>() | 1), rng.random::<u64>() | 1);
        let mut layout = Layout { key_bits, slot_bits, levels: [Level::default(); 2], multipliers, step };
        let limit = *[1, 2, layout.slots_per_bucket(0)].choose(rng).expect("there are numbers");
        layout.levels[0] = Level { buckets: 2, functions: 1, limits: [limit, 0, 0], rounds: 1, kept_rounds: 0 };
        layout.levels[0].functions = layout.most_functions(0).min(2);
        layout.levels[1].buckets = rng.random_range(2..=3);
        let functions = rng.random_range(1..=layout.most_functions(1).min(4));
        let limit = rng.random_range(1..=5);
        layout.levels[1] = Level { functions, limits: [limit, 8, 0], rounds: 1, kept_rounds: 1, ..layout.levels[1] };
        layout
    }

    /// Fills the table with random keys, some of them put back, until find-or-put may take only few more slots of the stash.
    /// Returns the keys.
    fn fill(&self, memory: &mut Memory, table: &Table, rng: &mut Pcg64Mcg) -> Vec<u64> {
        let layout = table.layout.expect("a compact table");
        let put_back = if rng.random() { 0 } else { rng.random_range(1..80) };
        let left = rng.random_range(0..=3);
        let (mut keys, mut met) = (Vec::new(), HashSet::new());
        let mut open = layout.levels[1].buckets * layout.levels[1].limits[0];
        for number in 0..1000 {
            let key = self.key(rng);
            let of_find_or_put = layout.walk_of_find_or_put(key);
            let in_stash = |slot: u64| slot >= layout.main_slots();
            let accepts = |slot| number < put_back || of_find_or_put.contains(&slot) && !(in_stash(slot) && open <= left);
            if let Some(slot) = met.insert(key).then(|| table.fill(memory, key, accepts)).flatten() {
                open -= u64::from(in_stash(slot) && of_find_or_put.contains(&slot));
                keys.push(key);
            }
        }
        keys
    }

    fn key(&self, rng: &mut Pcg64Mcg) -> u64 {
        rng.random::<u64>() >> (64 - self.kernels.key_bits)
    }
}

impl Program for Crowd {
    fn name(&self) -> String {
        format!("{}-crowd{}", self.kernels.name(), if self.stale { "" } else { "-sequential" })
    }

    fn memory_bytes(&self) -> usize {
        1 << 20
    }

    fn steps(&self) -> u64 {
        500
    }

    fn rules(&self, mut rules: Rules, _: u64) -> Rules {
        rules.loads.stale &= self.stale;
        rules
    }

    fn set_up(&mut self, memory: &mut Memory, seed: u64) -> Vec<Vec<Grid>> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let layout = self.layout(&mut rng);
        let config = Config::of_compact(layout, rng.random());
        let table = Table::allocate(memory, self.kernels, config);
        table.clear(memory);
        let mut keys = self.fill(memory, &table, &mut rng);
        let stored_before = keys.len();
        // Keys that all lanes offer. Most of them are new, some are stored.
        let wanted = rng.random_range(1..=4);
        keys.extend((0..wanted).map(|_| self.key(&mut rng)));
        let pool = Pool::new(2, keys.iter().map(|key| vec![*key as u32, (*key >> 32) as u32]));
        let mut hot: Vec<usize> =
            keys[stored_before..].iter().filter_map(|key| pool.number(&[*key as u32, (*key >> 32) as u32])).collect();
        if rng.random_bool(0.3) {
            hot.push(rng.random_range(0..pool.len()));
        }

        let mut grids = Vec::new();
        let (mut operations, mut script, mut batches) = (Vec::new(), None, Vec::new());
        let a_lane = rng.random_range(1..=2);
        if rng.random_bool(0.5) {
            for number in 0..rng.random_range(1..=2) {
                let vectors: Vec<usize> = (0..rng.random_range(2..=64)).map(|_| *hot.choose(&mut rng).expect("keys")).collect();
                let batch = batch_view(memory, self.kernels, &pool, &vectors, &format!("batch {number}"));
                let argument_of_batch = Box::new(BatchArgument { view: table.view, batch });
                grids.push(Grid {
                    blocks: rng.random_range(1..=2),
                    threads: WARP,
                    scratch_bytes: self.kernels.scratch_of_warp(),
                    kernel: self.kernels.find_or_put,
                    argument: argument(&*argument_of_batch),
                });
                batches.push((vectors, argument_of_batch));
            }
        }
        if batches.is_empty() || rng.random() {
            let lanes = rng.random_range(2..=12);
            let finds = if rng.random() { 0.0 } else { 0.2 };
            let operation = |rng: &mut Pcg64Mcg| Operation {
                kind: if rng.random_bool(finds) { FIND } else { PUT },
                vector: *hot.choose(rng).expect("keys") as u32,
                reads_back: rng.random_bool(0.2).into(),
                ..Operation::default()
            };
            operations.extend((0..lanes * a_lane).map(|_| operation(&mut rng)));
            let of_lanes = Box::new(ScriptArgument {
                view: table.view,
                vectors: memory.allocate_with("vectors", Use::Constant, &pool.words(0..pool.len())),
                count: pool.len() as u64,
                operations: operations.as_mut_ptr(),
                operations_a_lane: a_lane as u64,
                cell: std::ptr::null_mut(),
            });
            let (blocks, threads) = if rng.random() { (lanes, 1) } else { (1, lanes) };
            let kernel = self.kernels.script;
            grids.push(Grid { blocks, threads, scratch_bytes: 0, kernel, argument: argument(&*of_lanes) });
            script = Some(of_lanes);
        }
        self.case = Some(Case { table, pool, stored_before, operations, a_lane, _script: script, batches });
        vec![grids]
    }

    /// Checks the outcomes of all lanes that offer a key that was not stored. Either one lane gets New and the others get Seen,
    /// or all get Full. Full requires that find-or-put may take no slot of the key's walk.
    fn judge(&mut self, memory: &Memory, _: Ending) -> Result<(), Wrong> {
        let Case { table, pool, stored_before, operations, a_lane, batches, .. } = self.case.as_ref().expect("a case was set up");
        let contents = Contents::read(table, memory, pool, false)?;
        let mut news: HashMap<usize, u64> = (0..*stored_before).map(|key| (key, 1)).collect();
        let mut told = Vec::new();
        for (keys, batch) in batches {
            let outcomes = memory.read_at::<u8>(batch.batch.outcomes, keys.len());
            let references = memory.read_at::<u64>(batch.batch.references, keys.len());
            for ((&key, &outcome), &reference) in keys.iter().zip(outcomes).zip(references) {
                contents.check_result(key, outcome.into(), reference)?;
                told.push((key, outcome.into()));
            }
        }
        check_scripts(&contents, operations, *a_lane, !self.stale && batches.is_empty())?;
        let puts = operations.iter().filter(|operation| operation.kind == PUT);
        told.extend(puts.map(|operation| (operation.vector as usize, operation.outcome)));
        for (key, outcome) in told {
            *news.entry(key).or_default() += u64::from(outcome == NEW);
            match outcome {
                NEW | SEEN => {}
                FULL => drop(contents.check_full(table, memory, pool, key)?),
                _ => return Err(wrong("no outcome", format!("key {key}: {outcome}"), Vec::new())),
            }
        }
        contents.check_kept(table, pool, |key| key < *stored_before)?;
        contents.check_news(&news)?;
        contents.check_counts(table, memory)
    }
}
