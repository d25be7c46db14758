//! Growth of full indexed tables. The table rejects vectors, the host builds a larger index of the rows, and the rejected vectors
//! are offered again. This happens once or several times.
//!
//! Vectors are put by warps, by blocks that gather them, and by lanes, while other lanes list holes. After the puts:
//!
//! - Each stored vector has been New once since the table was empty, and is in the same place as before.
//! - Each allocated row belongs to a vector or is a hole. A lane leaves at most one hole. The hole is a spare, unless the lane
//!   may have found too many taken cells.
//! - Spares of earlier launches were used before new numbers.
//!
//! Then an index with more buckets, and perhaps with slots of another size, is built from the rows. At the same time, holes are
//! listed, references to rows that are not stored are counted, and all vectors are looked up. Afterwards the host does the work
//! of `reindex` in the backends: it moves the numbers of spares to the first cells, and takes back numbers for which there was no
//! row.

use crate::checks::{Contents, Pool, check_scripts};
use crate::explorer::{Program, Wrong};
use crate::indexed::{IndexRows, larger};
use crate::machine::{Ending, Grid, WARP};
use crate::memory::{Memory, Use};
use crate::stress::{Batch, batch, lanes, next_prime, pool};
use crate::table::{
    Config, FULL, HolesArgument, INDEXED_TABLES, Kernels, NEW, NO_REFERENCE, Operation, PUT, RebuildArgument, SEEN,
    ScriptArgument, Table, argument, wrong,
};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeSet, HashMap};

/// Mistakes that the host makes in negative controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The host drops the list of spare rows.
    ForgetsSpares,
    /// The host puts one spare into two cells.
    ListsTwice,
    /// Numbers for which there was no row stay taken even after rows with these numbers exist.
    KeepsNumbers,
    /// The host builds the index as if all allocated rows were stored.
    BelievesHoles,
}

/// Random cases of one spec of indexed tables.
pub struct Growth {
    kernels: &'static Kernels,
    mistake: Option<Mistake>,
    case: Option<Case>,
}

/// The launch that is running.
enum Doing {
    Puts(Puts),
    Look(Box<Look>),
}

struct Case {
    rng: Pcg64Mcg,
    mistake: Option<Mistake>,
    table: Table,
    pool: Pool,
    /// Number of remaining phases of puts.
    left: u32,
    /// Number of times that each vector was New, over all phases.
    news: HashMap<usize, u64>,
    /// Vectors that the last puts have rejected.
    rejected: Vec<usize>,
    before: Rows,
    doing: Option<Doing>,
}

/// State of the rows while no lane puts.
#[derive(Default)]
struct Rows {
    /// By vector, its row.
    stored: Vec<Option<u64>>,
    /// Allocated rows that hold no vector.
    holes: BTreeSet<u64>,
    /// Holes that are no spares.
    lost: BTreeSet<u64>,
    /// Contents of the cells for spares.
    cells: Vec<u64>,
}

/// Offers in one launch.
#[derive(Default)]
struct Puts {
    batches: Vec<Batch>,
    operations: Vec<Operation>,
    operations_a_lane: usize,
    script: Option<Box<ScriptArgument>>,
    /// Argument for a list of holes that lanes build while other lanes put.
    listing: Option<Box<HolesArgument>>,
    /// Number of times that lanes may give back a row.
    givers: usize,
    /// Whether a single warp has put distinct vectors, and no other lane has put anything.
    is_one_warp: bool,
}

/// Work on the table between two launches of puts.
struct Look {
    holes: Box<HolesArgument>,
    find: Batch,
    /// The table with its new index, if it grows.
    larger: Option<(Table, Box<RebuildArgument>)>,
}

/// Number of cells that `give` tries (rows.cuh).
const TRIES_TO_GIVE: usize = 64;

/// Maximum number of rows that one launch may need in addition to the rows of its vectors.
const MOST_GIVERS: u64 = 2 * 2 * WARP as u64 + 24;

impl Growth {
    pub fn new(kernels: &'static Kernels) -> Self {
        assert!(kernels.is_indexed());
        Self { kernels, mistake: None, case: None }
    }

    /// Makes the host commit a mistake.
    pub fn with(self, mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..self }
    }
}

impl Rows {
    fn read(table: &Table, memory: &Memory, contents: &Contents) -> Self {
        let rows = table.view.indexed;
        let stored = contents.slot_of.clone();
        let named: BTreeSet<u64> = stored.iter().flatten().copied().collect();
        let holes: BTreeSet<u64> = (0..rows.given(memory)).filter(|row| !named.contains(row)).collect();
        let cells = rows.spare_cells(memory);
        let spares: BTreeSet<u64> = spares(&cells).collect();
        Self { stored, lost: &holes - &spares, holes, cells }
    }
}

/// Returns the rows whose numbers are in the given cells.
fn spares(cells: &[u64]) -> impl Iterator<Item = u64> {
    cells.iter().filter_map(|cell| cell.checked_sub(1))
}

impl Case {
    /// Offers vectors as a batch, by warps or by blocks, or as a script of lanes.
    fn put(&mut self, memory: &mut Memory, puts: &mut Puts, vectors: Vec<usize>, name: &str) -> Grid {
        let kernels = self.table.kernels;
        if vectors.len() <= 24 && self.rng.random_bool(0.2) && puts.script.is_none() {
            let count = self.rng.random_range(1..=vectors.len().clamp(1, 6));
            puts.operations_a_lane = vectors.len().div_ceil(count).max(1);
            let operation = |at: usize| match vectors.get(at) {
                Some(vector) => Operation { kind: PUT, vector: *vector as u32, ..Operation::default() },
                None => Operation::default(),
            };
            puts.operations = (0..count * puts.operations_a_lane).map(operation).collect();
            puts.givers += puts.operations.len();
            let script = Box::new(ScriptArgument {
                view: self.table.view,
                vectors: memory.allocate_with("vectors", Use::Constant, &self.pool.words(0..self.pool.len())),
                count: self.pool.len() as u64,
                operations: puts.operations.as_mut_ptr(),
                operations_a_lane: puts.operations_a_lane as u64,
                cell: std::ptr::null_mut(),
            });
            let (blocks, threads) = if self.rng.random() { (count, 1) } else { (1, count) };
            let grid = lanes(blocks, threads, kernels.script, argument(&*script));
            puts.script = Some(script);
            return grid;
        }
        let mut batch = batch(memory, &self.table, &self.pool, vectors, false, name);
        batch.by_blocks = self.rng.random_bool(0.2);
        let warps = self.rng.random_range(1..=2);
        let (blocks, a_block) = if self.rng.random() { (warps, 1) } else { (1, warps) };
        let grid = batch.grid(kernels, blocks, a_block);
        puts.givers += warps * WARP;
        puts.batches.push(batch);
        grid
    }

    /// Returns the next launch of puts, with vectors that were rejected and others.
    fn puts(&mut self, memory: &mut Memory) -> Vec<Grid> {
        let (mut puts, mut grids) = (Puts::default(), Vec::new());
        let mut rejected = std::mem::take(&mut self.rejected);
        if self.rng.random() {
            rejected.sort_unstable();
            rejected.dedup();
            rejected.shuffle(&mut self.rng);
        }
        if !rejected.is_empty() {
            grids.push(self.put(memory, &mut puts, rejected, "rejected"));
        }
        if grids.is_empty() || self.rng.random_bool(0.4) {
            let mut vectors: Vec<usize> = (0..self.pool.len()).collect();
            vectors.shuffle(&mut self.rng);
            if self.rng.random() {
                vectors = (0..self.rng.random_range(1..100)).map(|_| self.rng.random_range(0..self.pool.len())).collect();
            }
            grids.push(self.put(memory, &mut puts, vectors, "others"));
        }
        puts.is_one_warp = self.is_one_warp(&puts);
        if self.rng.random_bool(0.3) {
            // The list also covers rows that are allocated while it is built.
            let last = self.rng.random_range(0..=self.table.view.indexed.rows.capacity);
            let listing = Box::new(self.holes(memory, last, "holes meanwhile"));
            grids.push(lanes(1, self.rng.random_range(1..=WARP), self.table.kernels.list_holes, argument(&*listing)));
            puts.listing = Some(listing);
        }
        self.doing = Some(Doing::Puts(puts));
        grids
    }

    fn is_one_warp(&self, puts: &Puts) -> bool {
        let [batch] = &puts.batches[..] else { return false };
        let distinct: BTreeSet<_> = batch.vectors.iter().collect();
        puts.givers == WARP && puts.script.is_none() && !batch.by_blocks && distinct.len() == batch.vectors.len()
    }

    /// Creates the argument for a list of the holes below row `last`. The list may be too short for all of them.
    fn holes(&mut self, memory: &mut Memory, last: u64, name: &str) -> HolesArgument {
        let room = if self.rng.random_bool(0.7) { last } else { self.rng.random_range(0..=last) };
        let references: Vec<u64> = (0..last).chain([self.table.view.indexed.rows.capacity, NO_REFERENCE]).collect();
        HolesArgument {
            view: self.table.view,
            last,
            holes: memory.allocate(format!("{name}: rows"), Use::Shared, 8 * room as usize).cast(),
            room,
            count: memory.allocate_with(format!("{name}: count"), Use::Shared, &[0u64]),
            references: memory.allocate_with(format!("{name}: references"), Use::Constant, &references),
            references_count: references.len() as u64,
            invalid: memory.allocate_with(format!("{name}: invalid"), Use::Shared, &[0u64]),
        }
    }

    /// Checks the results of all puts, and the state of the rows afterwards.
    fn judge_puts(&mut self, memory: &Memory, puts: &Puts) -> Result<(), Wrong> {
        let Self { table, pool, news, rejected, before, .. } = self;
        let contents = Contents::read(table, memory, pool, false)?;
        for batch in &puts.batches {
            batch.check(table, pool, &contents, memory, news)?;
            let [_, _, full, ..] = memory.read_at::<[u64; 5]>(batch.argument.batch.counts, 1)[0];
            if batch.by_blocks {
                // A batch that blocks put does not report which of its vectors were Full.
                rejected.extend(batch.vectors.iter().filter(|_| full > 0));
            } else {
                let outcomes = batch.vectors.iter().zip(memory.read_at::<u8>(batch.argument.batch.outcomes, batch.vectors.len()));
                rejected.extend(outcomes.filter(|(_, outcome)| u32::from(**outcome) == FULL).map(|(vector, _)| vector));
            }
        }
        check_scripts(&contents, &puts.operations, puts.operations_a_lane.max(1), false)?;
        for operation in puts.operations.iter().filter(|operation| operation.kind == PUT) {
            let vector = operation.vector as usize;
            *news.entry(vector).or_default() += u64::from(operation.outcome == NEW);
            if operation.outcome == FULL {
                contents.check_full(table, memory, pool, vector)?;
                rejected.push(vector);
            }
        }
        contents.check_news(news)?;
        contents.check_counts(table, memory)?;
        let now = Rows::read(table, memory, &contents);
        for (vector, row) in before.stored.iter().enumerate().filter(|(_, row)| row.is_some()) {
            if now.stored[vector] != *row {
                return Err(wrong(
                    "moved row",
                    format!("vector {vector} was at {row:?}, is at {:?}", now.stored[vector]),
                    Vec::new(),
                ));
            }
        }
        before.check_rows(&now, puts)?;
        if puts.is_one_warp && rejected.is_empty() {
            before.check_reuse(&now, memory, &puts.batches[0])?;
        }
        if let Some(listing) = &puts.listing {
            let stored = |rows: &Rows| rows.stored.iter().flatten().copied().collect::<BTreeSet<u64>>();
            let rows: BTreeSet<u64> = (0..listing.last).collect();
            check_list(memory, listing, &(&rows - &stored(&now)), &(&rows - &stored(before)))?;
        }
        self.before = now;
        Ok(())
    }

    /// Returns the launch after the puts. It reads the table and, if more puts follow, builds a larger index.
    fn look(&mut self, memory: &mut Memory) -> Vec<Grid> {
        let kernels = self.table.kernels;
        let given = self.table.view.indexed.given(memory);
        let holes = Box::new(self.holes(memory, given, "holes"));
        let find = batch(memory, &self.table, &self.pool, (0..self.pool.len()).collect(), true, "find");
        let mut grids = vec![
            lanes(self.rng.random_range(1..=2), self.rng.random_range(1..=WARP), kernels.list_holes, argument(&*holes)),
            find.grid(kernels, 1, 1),
        ];
        // In some cases rejected vectors are offered to the same table again.
        let larger = (self.left > 0 && self.rng.random_bool(0.85)).then(|| self.larger(memory));
        if let Some((_, rebuild)) = &larger {
            grids.push(lanes(
                self.rng.random_range(1..=2),
                self.rng.random_range(1..=WARP),
                kernels.rebuild,
                argument(&**rebuild),
            ));
        }
        self.doing = Some(Doing::Look(Box::new(Look { holes, find, larger })));
        grids
    }

    /// Creates a table of the same rows and more, with an index of twice the slots.
    fn larger(&mut self, memory: &mut Memory) -> (Table, Box<RebuildArgument>) {
        let others = INDEXED_TABLES.iter().copied().filter(|other| other.width == self.table.kernels.width);
        let kernels = *others.collect::<Vec<_>>().choose(&mut self.rng).expect("its own");
        let buckets = u64::from(next_prime((self.table.room * 2).div_ceil(kernels.slots_per_bucket()) as u32));
        let rows = self.rows(buckets * kernels.slots_per_bucket(), self.table.slots + 1);
        let (larger, mut rebuild) = larger(memory, &self.table, kernels, buckets, rows);
        if self.mistake == Some(Mistake::BelievesHoles) {
            rebuild.view.indexed.rows.dense = rebuild.last;
        }
        (larger, rebuild)
    }

    /// Draws the number of rows. Mostly they suffice for all slots and for rows that lanes may own or lose; otherwise there are
    /// fewer.
    fn rows(&mut self, room: u64, at_least: u64) -> u64 {
        let enough = (room + 4 * MOST_GIVERS).max(at_least);
        if self.rng.random_bool(0.7) { enough } else { self.rng.random_range(at_least..=room.max(at_least)) }
    }

    fn judge_look(&self, memory: &Memory, look: &Look) -> Result<(), Wrong> {
        let contents = Contents::read(&self.table, memory, &self.pool, false)?;
        check_list(memory, &look.holes, &self.before.holes, &self.before.holes)?;
        let invalid = memory.at(look.holes.invalid, 1)[0];
        if invalid != self.before.holes.len() as u64 + 2 {
            return Err(wrong("holes", format!("{invalid} references are invalid; holes: {:?}", self.before.holes), Vec::new()));
        }
        look.find.check(&self.table, &self.pool, &contents, memory, &mut HashMap::new())?;
        let outcomes = memory.read_at::<u8>(look.find.argument.batch.outcomes, self.pool.len());
        for (vector, (row, outcome)) in self.before.stored.iter().zip(outcomes).enumerate() {
            if (u32::from(*outcome) == SEEN) != row.is_some() {
                return Err(wrong("lost vector", format!("vector {vector} of row {row:?} is {outcome}"), Vec::new()));
            }
        }
        let stored = self.before.stored.iter().flatten().count() as u64;
        let counts = look.larger.as_ref().map(|(_, rebuild)| memory.at(rebuild.counts, 1)[0]);
        match counts {
            Some(counts) if counts != [stored, stored, 0, 0, 0] => {
                Err(wrong("rebuilt", format!("{counts:?} rows were named, of {stored} that are stored"), Vec::new()))
            }
            _ => Ok(()),
        }
    }

    /// Does the host's work after the index was built.
    fn grow(&mut self, memory: &mut Memory, mut larger: Table) {
        let (old, rows) = (self.table.view.indexed, &mut larger.view.indexed.rows);
        let given = old.given(memory);
        if self.mistake != Some(Mistake::KeepsNumbers) {
            old.take_back_numbers(memory);
        }
        rows.dense = if self.before.holes.is_empty() { given } else { old.rows.dense };
        let mut cells: Vec<u64> = spares(&self.before.cells).map(|row| row + 1).collect();
        match self.mistake {
            Some(Mistake::ForgetsSpares) => cells.clear(),
            Some(Mistake::ListsTwice) if cells.len() < rows.spare_cells as usize => cells.extend(cells.first().copied()),
            _ => {}
        }
        old.set_spare_cells(memory, &cells);
        self.before.cells = old.spare_cells(memory);
        self.table = larger;
    }
}

impl Rows {
    /// Checks that a row was lost only if a lane found no free cell.
    fn check_rows(&self, now: &Self, puts: &Puts) -> Result<(), Wrong> {
        let spares = spares(&self.cells).count();
        let tried = TRIES_TO_GIVE.min(now.cells.len());
        let fails = |detail: String| Err(wrong("lost row", detail, Vec::new()));
        if now.holes.len() > self.holes.len() + puts.givers {
            return fails(format!("{} holes, {} before, by {} lanes", now.holes.len(), self.holes.len(), puts.givers));
        }
        // At least one of the cells that a lane tries was free all the time, so no row may be lost.
        if spares + puts.givers <= tried && now.lost != self.lost {
            return fails(format!("{:?} are no spares, {:?} before", now.lost, self.lost));
        }
        Ok(())
    }

    /// Checks that spares are used before new numbers. A single warp has put the vectors. The lanes with the first vectors tried
    /// their own cells first, and used the rows that they took there.
    fn check_reuse(&self, now: &Self, memory: &Memory, batch: &Batch) -> Result<(), Wrong> {
        let outcomes = memory.read_at::<u8>(batch.argument.batch.outcomes, batch.vectors.len().min(WARP));
        let new = (0..outcomes.len()).filter(|at| u32::from(outcomes[*at]) == NEW);
        let due: BTreeSet<usize> = new.map(|lane| lane % self.cells.len()).filter(|cell| self.cells[*cell] != 0).collect();
        let stored: BTreeSet<u64> = now.stored.iter().flatten().copied().collect();
        let reused = spares(&self.cells).filter(|row| stored.contains(row)).count();
        if reused < due.len() {
            let detail = format!("{reused} of the spares {:?} hold vectors; those in the cells {due:?} should", self.cells);
            return Err(wrong("unused spare", detail, Vec::new()));
        }
        Ok(())
    }
}

/// Checks a list of holes. Unless the list was too short, it must have each row of `all`. It may have only rows of `most`, each
/// at most once.
fn check_list(memory: &Memory, list: &HolesArgument, all: &BTreeSet<u64>, most: &BTreeSet<u64>) -> Result<(), Wrong> {
    let count = memory.at(list.count, 1)[0];
    let written = memory.at(list.holes, count.min(list.room) as usize);
    let rows: BTreeSet<u64> = written.iter().copied().collect();
    let is_right = rows.len() == written.len() && rows.is_subset(most) && (count > list.room || all.is_subset(&rows));
    if is_right && count >= all.len() as u64 && count <= most.len() as u64 {
        return Ok(());
    }
    Err(wrong("holes", format!("{count} in {}: {written:?}, not {all:?}, or up to {most:?}", list.room), Vec::new()))
}

impl Program for Growth {
    fn name(&self) -> String {
        let mistake = self.mistake.map_or_else(String::new, |mistake| format!("-{mistake:?}"));
        format!("{}-grows{mistake}", self.kernels.name())
    }

    fn memory_bytes(&self) -> usize {
        1 << 21
    }

    fn steps(&self) -> u64 {
        1000
    }

    fn set_up(&mut self, memory: &mut Memory, seed: u64) -> Vec<Vec<Grid>> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let masks = [u64::MAX, u64::MAX, 0, 3 << 62, 0x8000_0000_0000_0001];
        let few = if self.kernels.width() > 16 { 1 } else { 4 };
        let buckets = [2, 2, 3, 5][rng.random_range(0..few)];
        let config = Config::of_buckets(buckets, *masks.choose(&mut rng).expect("there are masks"), [0; 4], rng.random());
        let room = buckets * self.kernels.slots_per_bucket();
        let config = Config {
            // Upper bound of the number of rows that the table ever has.
            rows: 6 * room + 16 + 4 * MOST_GIVERS,
            spare_cells: *[1, 8, 64, 256].choose(&mut rng).expect("there are numbers"),
            ..config
        };
        let mut table = Table::allocate(memory, self.kernels, config);
        table.clear(memory);
        let pool = pool(&table, 3 * room as usize, &mut rng);
        let before = Rows { stored: vec![None; pool.len()], cells: vec![0; config.spare_cells as usize], ..Rows::default() };
        let left = rng.random_range(1..=2);
        let (news, rejected) = (HashMap::new(), Vec::new());
        let mut case = Case { rng, mistake: self.mistake, table, pool, left, news, rejected, before, doing: None };
        table.slots = case.rows(room, 1);
        table.view.indexed = table.view.indexed.with_rows(table.slots);
        case.table = table;
        let launches = vec![case.puts(memory)];
        self.case = Some(case);
        launches
    }

    fn go_on(&mut self, memory: &mut Memory) -> Result<Vec<Vec<Grid>>, Wrong> {
        let case = self.case.as_mut().expect("a case was set up");
        match case.doing.take().expect("something was under way") {
            Doing::Puts(puts) => {
                case.judge_puts(memory, &puts)?;
                Ok(vec![case.look(memory)])
            }
            Doing::Look(look) => {
                case.judge_look(memory, &look)?;
                if case.left == 0 {
                    return Ok(Vec::new());
                }
                case.left -= 1;
                if let Some((larger, _)) = look.larger {
                    case.grow(memory, larger);
                }
                Ok(vec![case.puts(memory)])
            }
        }
    }

    fn judge(&mut self, _: &Memory, _: Ending) -> Result<(), Wrong> {
        Ok(())
    }
}
