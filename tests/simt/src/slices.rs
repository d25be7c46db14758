//! Growth of bucket tables by blocks (cuda/warpset/bucket/block_growth.cuh): vectors are put into a small table with slices, and
//! moved to a table with another number of slices, whose memory holds anything; then all vectors are put into that one.

use crate::checks::{Contents, Pool};
use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, WARP};
use crate::memory::{Memory, Use};
use crate::stress::{Batch, batch, pool};
use crate::table::{Config, FULL, GrowArgument, Kernels, NEW, SEEN, ShortSeeds, Table, argument, wrong};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::HashSet;

struct Case {
    table: Table,
    larger: Table,
    pool: Pool,
    before: Batch,
    grow: Box<GrowArgument>,
    /// Arguments of the launches of waves, in their order. If there is one wave, nothing is kept.
    waves: Vec<GrowArgument>,
    /// Argument of the trial, which must live as long as its launch.
    trial: Box<GrowArgument>,
    after: Batch,
}

/// Random cases of one spec of bucket tables.
pub struct SliceGrowth {
    kernels: &'static Kernels,
    case: Option<Case>,
}

impl SliceGrowth {
    pub fn new(kernels: &'static Kernels) -> Self {
        Self { kernels, case: None }
    }

    fn search(&self, batch: &Batch, warps: usize) -> Grid {
        let scratch_bytes = self.kernels.scratch_of_warp();
        let argument = argument(&*batch.argument);
        Grid { blocks: warps, threads: WARP, scratch_bytes, kernel: self.kernels.find_or_put, argument }
    }
}

impl Program for SliceGrowth {
    fn name(&self) -> String {
        format!("{}-grows", self.kernels.name())
    }

    fn memory_bytes(&self) -> usize {
        1 << 20
    }

    fn steps(&self) -> u64 {
        4000
    }

    fn set_up(&mut self, memory: &mut Memory, seed: u64) -> Vec<Vec<Grid>> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let kernels = self.kernels;
        // A slice is a number of whole blocks of memory.
        let slice_buckets = kernels.buckets_per_block() * if kernels.slot_words() < 8 { rng.random_range(1..=2) } else { 1 };
        let [slices, larger_slices] = [2..=3, 2..=6].map(|range| rng.random_range::<u64, _>(range));
        let mask = *[u64::MAX, u64::MAX, u64::MAX, 0, 3 << 62].choose(&mut rng).expect("there are masks");
        let config = Config { slice_buckets, ..Config::of_buckets(slices * slice_buckets, mask, rng.random(), rng.random()) };
        let table = Table::allocate(memory, kernels, config);
        table.clear(memory);
        let larger = Table::allocate(memory, kernels, Config { buckets: larger_slices * slice_buckets, ..config });
        // As new memory.
        memory.write_at::<u64>(larger.view.roots.stored, 1)[0] = 0;
        memory.write_at::<u64>(table.view.roots.stored, 1)[0] = 0;
        let pool = pool(&table, table.slots as usize * 5 / 4, &mut rng);
        let mut vectors: Vec<usize> = (0..pool.len()).collect();
        vectors.shuffle(&mut rng);
        let before = batch(memory, &table, &pool, vectors.clone(), false, "before");
        vectors.shuffle(&mut rng);
        let after = batch(memory, &larger, &pool, vectors, false, "after");
        let slices_a_part = rng.random_range(1..=3);
        let is_staged = kernels.table_bytes(slice_buckets).is_multiple_of(16) && rng.random();
        let buckets = slices_a_part * slice_buckets as usize;
        let staged = if is_staged { slices_a_part * kernels.table_bytes(slice_buckets) } else { 0 };
        let grow = Box::new(GrowArgument {
            view: table.view,
            larger: larger.view,
            seeds: if ShortSeeds::are_for(kernels.width()) { table.short_seeds(memory) } else { ShortSeeds::default() },
            slices_a_part: slices_a_part as u32,
            is_staged: is_staged.into(),
            first: 0,
            last: larger_slices,
            writes: 1,
            left: memory.allocate("left", Use::Shared, 8 * table.slots as usize).cast(),
            capacity: table.slots,
            progress: memory.allocate_with("progress", Use::Shared, &[[0u64; 3]]),
            vectors: memory.allocate("kept", Use::Shared, 4 * kernels.width() * table.slots as usize).cast(),
        });
        // Waves are disjoint parts, the last ones first. A trial before them writes no slot: it has a list of its own, which may
        // be too short.
        let parts = larger_slices.div_ceil(slices_a_part as u64);
        let middle = if rng.random() { rng.random_range(0..=parts) } else { 0 };
        let waves: Vec<GrowArgument> = [middle..parts, 0..middle]
            .into_iter()
            .take(if middle == 0 { 1 } else { 2 })
            .map(|wave| GrowArgument { first: wave.start, last: wave.end, ..*grow })
            .collect();
        let trial = Box::new(GrowArgument {
            writes: 0,
            progress: memory.allocate_with("progress of a trial", Use::Shared, &[[0u64; 3]]),
            left: memory.allocate("left by a trial", Use::Shared, 8 * table.slots as usize).cast(),
            capacity: if rng.random() { rng.random_range(0..=2) } else { table.slots },
            ..*grow
        });
        let (blocks, threads) = (rng.random_range(1..=2), WARP * rng.random_range(1..=2));
        let growth = |of: &GrowArgument| Grid {
            blocks,
            threads,
            scratch_bytes: (2 * buckets).next_multiple_of(16) + staged,
            kernel: kernels.grow,
            argument: argument(of),
        };
        let keep =
            |of: &GrowArgument| Grid { blocks: 1, threads, scratch_bytes: 0, kernel: kernels.keep_left, argument: argument(of) };
        let mut launches = vec![vec![self.search(&before, 2)]];
        if waves.len() > 1 {
            launches.push(vec![growth(&trial)]);
        }
        for wave in &waves {
            launches.push(vec![growth(wave)]);
            if waves.len() > 1 {
                launches.push(vec![keep(wave)]);
            }
        }
        launches.push(vec![self.search(&after, 1)]);
        self.case = Some(Case { table, larger, pool, before, grow, waves, trial, after });
        launches
    }

    fn judge(&mut self, memory: &Memory, _: Ending) -> Result<(), Wrong> {
        let Case { table, larger, pool, before, grow, waves, trial, after } = self.case.as_ref().expect("a case was set up");
        let contents = Contents::read(table, memory, pool, false)?;
        contents.check_counts(table, memory)?;
        let now = Contents::read(larger, memory, pool, false)?;
        now.check_counts(larger, memory)?;
        let [count, kept, done] = memory.at(grow.progress.cast_const(), 1)[0];
        if waves.len() > 1 {
            if (kept, done) != (count, waves.len() as u64) {
                return Err(wrong("kept", format!("{kept} of {count} vectors, {done} of {} waves", waves.len()), Vec::new()));
            }
            let width = pool.width;
            let vectors = memory.at(grow.vectors.cast_const(), count as usize * width);
            for (slot, words) in memory.at(grow.left.cast_const(), count as usize).iter().zip(vectors.chunks(width)) {
                let vector = contents.slot_of.iter().position(|of| *of == Some(*slot));
                if vector.is_none_or(|vector| pool.vector(vector) != words) {
                    return Err(wrong("kept", format!("{words:?} of slot {slot}"), Vec::new()));
                }
            }
            let [_, kept, done] = memory.at(trial.progress.cast_const(), 1)[0];
            if (kept, done) != (0, 0) {
                return Err(wrong("trial", format!("it has kept {kept} vectors"), Vec::new()));
            }
        }
        let mut left = HashSet::new();
        for slot in memory.at(grow.left.cast_const(), count.min(grow.capacity) as usize) {
            let Some(vector) = contents.slot_of.iter().position(|of| *of == Some(*slot)) else {
                return Err(wrong("left", format!("slot {slot}, which holds no vector"), Vec::new()));
            };
            if !left.insert(vector) {
                return Err(wrong("left", format!("slot {slot}, twice"), Vec::new()));
            }
        }
        let outcomes = memory.read_at::<u8>(after.argument.batch.outcomes, after.vectors.len());
        for (vector, outcome) in after.vectors.iter().zip(outcomes) {
            let stored = contents.slot_of[*vector].is_some();
            let moved = stored && !left.contains(vector);
            let is_right = match u32::from(*outcome) {
                SEEN => moved,
                NEW => !moved,
                FULL => !moved && now.slot_of[*vector].is_none(),
                _ => false,
            };
            if !is_right || (moved && now.slot_of[*vector].is_none()) {
                let detail = format!("vector {vector}: moved {moved}, then {outcome}; at {:?}", now.slot_of[*vector]);
                return Err(wrong("lost vector", detail, now.about(now.slot_of[*vector])));
            }
        }
        let stored = memory.read_at::<u8>(before.argument.batch.outcomes, before.vectors.len());
        let stored = before.vectors.iter().zip(stored).filter(|(_, outcome)| u32::from(**outcome) == NEW).count();
        let in_table = contents.slot_of.iter().flatten().count();
        if stored != in_table {
            return Err(wrong("changed", format!("{stored} vectors were put, {in_table} are in the smaller table"), Vec::new()));
        }
        Ok(())
    }
}
