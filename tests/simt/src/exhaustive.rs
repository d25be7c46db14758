//! Tiny cases, small enough for every schedule: a few lanes (or warps), a few operations each, one bucket (and of a tree table
//! one or two buckets of nodes).

use crate::checks::{Contents, Pool, check_scripts};
use crate::compact::{Layout, Level};
use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, Kernel, Rules, WARP};
use crate::memory::{Memory, Use};
use crate::table::{
    BatchArgument, BatchView, Config, FIND, FULL, GIVE, INCREMENTAL, Kernels, NEW, Operation, PUT, SCAN, ScriptArgument, TAKE,
    Table, argument,
};
use std::collections::HashMap;

/// How much the vectors of an exhaustive trial have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alike {
    /// No word is common.
    Nothing,
    /// All chunks but the first are common (in a tree: all words but the first).
    AllButFirst,
    /// All chunks but the last are common (in a tree: all words but the last).
    AllButLast,
}

/// Contents of a compact table's stash when an exhaustive trial begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stash {
    /// Empty; the main level is empty, too.
    Empty,
    /// One slot is left for find-or-put. All vectors share that slot and have no other, because the main level is full.
    Nearly,
    /// No slot is left for find-or-put.
    Full,
    /// No slot is left for find-or-put, and the first vector of the trial is in a slot that is reserved for keys that are put
    /// back.
    PutBack,
}

/// An operation of a lane: PUT, FIND, GIVE or TAKE and the vector, or SCAN and the slot.
pub type Call = (u32, u32);

pub struct Exhaustive {
    kernels: &'static Kernels,
    alike: Alike,
    /// Operations of each lane, or of each warp.
    players: Vec<Vec<Call>>,
    /// True if the players are warps with a batch of puts each; otherwise they are lanes.
    warps: bool,
    stale: bool,
    /// In a tree table: number of node buckets, of two slots each.
    node_buckets: u32,
    /// Initial contents of a compact table's stash.
    stash: Stash,
    /// Negative control that the lanes run instead of the table's own operations.
    control: Option<(&'static str, Kernel)>,
    case: Option<Case>,
}

struct Case {
    table: Table,
    pool: Pool,
    operations: Vec<Operation>,
    a_lane: usize,
    /// Numbers of vectors that were stored before.
    stored_before: Vec<usize>,
    /// Argument of the lanes; the launch points to it.
    _script: Box<ScriptArgument>,
    /// Batches of the warps; the launch points to them.
    batches: Vec<BatchArgument>,
}

impl Exhaustive {
    pub fn of_lanes(kernels: &'static Kernels, alike: Alike, players: Vec<Vec<Call>>, stale: bool) -> Self {
        Self { kernels, alike, players, warps: false, stale, node_buckets: 2, stash: Stash::Empty, control: None, case: None }
    }

    /// A trial in which each warp puts a batch of vectors.
    pub fn of_warps(kernels: &'static Kernels, alike: Alike, batches: Vec<Vec<u32>>, stale: bool) -> Self {
        let players = batches.into_iter().map(|batch| batch.into_iter().map(|vector| (PUT, vector)).collect()).collect();
        Self { warps: true, ..Self::of_lanes(kernels, alike, players, stale) }
    }

    /// Sets the number of node buckets: one or two.
    pub fn with_node_buckets(self, node_buckets: u32) -> Self {
        Self { node_buckets, ..self }
    }

    /// Sets the initial contents of a compact table's stash.
    pub fn with_stash(self, stash: Stash) -> Self {
        Self { stash, ..self }
    }

    /// Runs `kernel` instead of the table's own operations.
    pub fn by(self, name: &'static str, kernel: Kernel) -> Self {
        Self { control: Some((name, kernel)), ..self }
    }

    /// Layout of a compact table in which all small keys begin in bucket 0; the second function (if codes have room for one)
    /// sends them to bucket 1. A bucket of the main level has one slot, or two in two rounds; a bucket of
    /// the stash has one slot for find-or-put, and one more for keys that are put back.
    fn layout(&self) -> Layout {
        let (key_bits, slot_bits) = (self.kernels.key_bits, self.kernels.slot_bits);
        let stash = Level { buckets: 2, functions: 1, limits: [1, 2, 0], rounds: 1, kept_rounds: 1 };
        let (limits, rounds) = if self.alike == Alike::AllButLast { ([1, 2, 0], 2) } else { ([1, 0, 0], 1) };
        let main = Level { buckets: 2, functions: 1, limits, rounds, kept_rounds: 0 };
        let layout = Layout { key_bits, slot_bits, levels: [main, stash], multipliers: [1; 3], step: 1 << (key_bits - 1) | 1 };
        let functions = layout.most_functions(0).min(2);
        Layout { levels: [Level { functions, ..main }, stash], ..layout }
    }

    fn vectors(&self) -> u32 {
        self.players.iter().flatten().filter(|call| call.0 != SCAN).map(|call| call.1 + 1).max().unwrap_or(0)
    }

    fn pool(&self, table: &Table, memory: &Memory) -> Pool {
        let width = self.kernels.width();
        if self.kernels.is_compact() && !self.kernels.is_tree() {
            let others = if self.stash == Stash::Empty { 0 } else { 8 };
            return Pool::new(width, (0..self.vectors() + others).map(|number| vec![number + 1, 0]));
        }
        let (first, last) = if self.kernels.is_tree() || self.kernels.is_indexed() {
            (1, 1)
        } else {
            let chunks = table.slot(memory, 0).ranges;
            (chunks[0].len() / 4, chunks.last().map_or(1, std::ops::Range::len) / 4)
        };
        let vector = |number: u32| -> Vec<u32> {
            let differs = |word: usize| match self.alike {
                Alike::Nothing => true,
                Alike::AllButFirst => word < first,
                Alike::AllButLast => word >= width - last,
            };
            (0..width).map(|word| 0x100 * (word as u32 + 1) + if differs(word) { number + 1 } else { 0 }).collect()
        };
        Pool::new(width, (0..self.vectors()).map(vector))
    }
}

impl Exhaustive {
    /// Fills the levels with keys that no call uses, and for `Stash::PutBack` with the first key that a call uses. Returns their
    /// numbers.
    fn fill(&self, table: &Table, memory: &mut Memory, pool: &Pool) -> Vec<usize> {
        let Some(layout) = table.layout.filter(|_| self.stash != Stash::Empty) else { return Vec::new() };
        let mut stored = Vec::new();
        let mut put = |number: usize, accepts: &dyn Fn(u64) -> bool| {
            let put = table.fill(memory, table.key(pool.vector(number)), accepts);
            stored.extend(put.map(|_| number));
        };
        let others = self.vectors() as usize..pool.len();
        others.clone().for_each(|number| put(number, &|slot| slot < layout.main_slots()));
        if self.stash != Stash::Nearly {
            put(pool.len() - 1, &|slot| slot >= layout.main_slots());
        }
        if self.stash == Stash::PutBack {
            put(0, &|slot| slot >= layout.main_slots());
        }
        stored
    }
}

impl Program for Exhaustive {
    fn name(&self) -> String {
        let letters = [(PUT, 'p'), (FIND, 'f'), (SCAN, 's'), (GIVE, 'g'), (TAKE, 't'), (INCREMENTAL, 'c')];
        let letter = |kind| letters.iter().find(|letter| letter.0 == kind).map_or('?', |letter| letter.1);
        let call = |&(kind, vector): &Call| format!("{}{}", letter(kind), (b'A' + vector as u8) as char);
        let player = |calls: &Vec<Call>| calls.iter().map(call).collect::<String>();
        let players: Vec<String> = self.players.iter().map(player).collect();
        let (who, stale) = (if self.warps { "warps" } else { "lanes" }, if self.stale { "" } else { "-sequential" });
        let nodes = if self.kernels.is_tree() { format!("-{}", self.node_buckets) } else { String::new() };
        let control = self.control.map_or_else(String::new, |(name, _)| format!("{name}-"));
        let nodes = if self.stash == Stash::Empty { nodes } else { format!("{nodes}-{:?}", self.stash) };
        format!("{control}{}{nodes}-{who}-{:?}-{}{stale}", self.kernels.name(), self.alike, players.join("-"))
    }

    fn memory_bytes(&self) -> usize {
        1 << 14
    }

    fn steps(&self) -> u64 {
        40
    }

    fn rules(&self, mut rules: Rules, _: u64) -> Rules {
        rules.loads.stale &= self.stale;
        rules
    }

    fn set_up(&mut self, memory: &mut Memory, _: u64) -> Vec<Vec<Grid>> {
        let layout = self.kernels.is_compact().then(|| self.layout());
        let config = Config {
            buckets: 2,
            slice_buckets: 2,
            hash_mask: 0,
            empty: [0xEEEE_EEE0; 4],
            seed: 1,
            node_buckets: 2,
            node_hash_mask: 0,
            node_probe_limit: 2,
            layout,
            // One row for each lane, in addition to those of stored vectors.
            rows: 64 + if self.warps { 64 } else { 0 },
            spare_cells: 8,
        };
        let mut table = Table::allocate(memory, self.kernels, config);
        table.clear(memory);
        // All searches begin in bucket 0, and end there; searches for nodes go on to bucket 1, if they may.
        table.view.roots.probe_limit = 1;
        table.view.indexed.probe_limit = 1;
        if self.kernels.is_indexed() {
            table.room = self.kernels.slots_per_bucket();
        } else if layout.is_none() {
            table.slots = self.kernels.slots_per_bucket();
        }
        if self.kernels.is_tree() {
            table.view.nodes.probe_limit = self.node_buckets;
            table.node_slots = 2 * self.node_buckets as usize;
        }
        let pool = self.pool(&table, memory);
        let stored_before = self.fill(&table, memory, &pool);
        let words = pool.words(0..pool.len());
        let vectors: *const u32 = memory.allocate_with("vectors", Use::Constant, &words);
        let a_lane = self.players.iter().map(Vec::len).max().unwrap_or(0);
        let operation = |call: Option<&Call>| {
            call.map_or_else(Operation::default, |&(kind, vector)| Operation { kind, vector, ..Operation::default() })
        };
        let mut operations: Vec<Operation> =
            self.players.iter().flat_map(|calls| (0..a_lane).map(move |at| operation(calls.get(at)))).collect();
        let script = Box::new(ScriptArgument {
            view: table.view,
            vectors,
            count: pool.len() as u64,
            operations: operations.as_mut_ptr(),
            operations_a_lane: a_lane as u64,
            cell: memory.allocate_with("cell", Use::Shared, &[0u64]),
        });
        let mut batches = Vec::new();
        let mut grids = Vec::new();
        if self.warps {
            for (number, calls) in self.players.iter().enumerate() {
                let words = pool.words(calls.iter().map(|call| call.1 as usize));
                let count = calls.len();
                let batch = BatchView {
                    vectors: memory.allocate_with(format!("batch {number}"), Use::Constant, &words) as u64,
                    count: count as u64,
                    outcomes: memory.allocate(format!("outcomes {number}"), Use::Shared, count) as u64,
                    references: memory.allocate(format!("references {number}"), Use::Shared, 8 * count) as u64,
                    new_references: 0,
                    new_capacity: 0,
                    counts: 0,
                    parents: 0,
                    changed: 0,
                    workspace: memory.allocate(format!("workspace {number}"), Use::Shared, self.kernels.workspace_of_warp())
                        as u64,
                    tag: 0,
                };
                batches.push(BatchArgument { view: table.view, batch });
            }
            let scratch_bytes = self.kernels.scratch_of_warp();
            let kernel = self.kernels.find_or_put;
            let grid = |batch| Grid { blocks: 1, threads: WARP, scratch_bytes, kernel, argument: argument(batch) };
            grids.extend(batches.iter().map(grid));
        } else {
            let (kernel, argument) = (self.control.map_or(self.kernels.script, |control| control.1), argument(&*script));
            grids.push(Grid { blocks: self.players.len(), threads: 1, scratch_bytes: 0, kernel, argument });
        }
        self.case = Some(Case { table, pool, operations, a_lane, stored_before, _script: script, batches });
        vec![grids]
    }

    fn judge(&mut self, memory: &Memory, _: Ending) -> Result<(), Wrong> {
        let Case { table, pool, operations, a_lane, stored_before, batches, .. } = self.case.as_mut().expect("a case was set up");
        for (number, batch) in batches.iter().enumerate() {
            let view = &batch.batch;
            let count = view.count as usize;
            let results = memory.read_at::<u8>(view.outcomes, count).iter().zip(memory.read_at::<u64>(view.references, count));
            for (operation, (outcome, reference)) in operations[number * *a_lane..].iter_mut().zip(results) {
                (operation.outcome, operation.reference) = ((*outcome).into(), *reference);
            }
        }
        let contents = Contents::read(table, memory, pool, false)?;
        check_scripts(&contents, operations, *a_lane, !self.stale && !self.warps)?;
        let mut news: HashMap<usize, u64> = stored_before.iter().map(|vector| (*vector, 1)).collect();
        for operation in operations.iter().filter(|operation| matches!(operation.kind, PUT | GIVE | INCREMENTAL)) {
            *news.entry(operation.vector as usize).or_default() += u64::from(operation.outcome == NEW);
            if operation.outcome == FULL {
                contents.check_full(table, memory, pool, operation.vector as usize)?;
            }
        }
        if !table.kernels.is_tree() {
            contents.check_kept(table, pool, |vector| stored_before.contains(&vector))?;
        }
        contents.check_news(&news)?;
        contents.check_counts(table, memory)
    }
}
