//! Bulk find-or-put (cuda/warpset/bucket/bulk.cuh): a batch is put into a small table with slices that already has some vectors.
//! Parts may have too little room, and slices too few slots, so that vectors are put directly.

use crate::checks::{Contents, Pool};
use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, Kernel, WARP};
use crate::memory::{Memory, Use};
use crate::stress::{Batch, batch, pool};
use crate::table::{BulkArgument, BulkPass, BulkSlices, Config, FULL, Kernels, NEW, SEEN, Table, argument, wrong};
use bytemuck::Zeroable;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::HashMap;

/// Random cases of one spec of bucket tables.
pub struct BulkPut {
    kernels: &'static Kernels,
    case: Option<Case>,
}

struct Case {
    table: Table,
    pool: Pool,
    before: Batch,
    /// Numbers of the vectors that are put in bulk.
    vectors: Vec<usize>,
    /// Address of the outcomes, if they are wanted.
    outcomes: Option<u64>,
    counts: u64,
    find: Batch,
    /// Arguments of the launches.
    _steps: Vec<Box<BulkArgument>>,
}

/// Scratch memory of a pass.
struct Level {
    segments: u64,
    from_capacity: u64,
    parts: u64,
    shift: u32,
}

impl BulkPut {
    /// Whether a spec has the kernels.
    pub fn exists(kernels: &Kernels) -> bool {
        matches!(kernels.width(), 1 | 2) && kernels.slot_words() == kernels.width()
    }

    pub fn new(kernels: &'static Kernels) -> Self {
        Self { kernels, case: None }
    }

    /// Vectors of a thread in a tile: `items` of bulk.cuh.
    fn items(&self) -> usize {
        if self.kernels.width() == 1 { 16 } else { 12 }
    }

    fn search(&self, batch: &Batch) -> Grid {
        batch.grid(self.kernels, 1, 1)
    }

    fn grid(&self, kernel: Kernel, threads: usize, scratch_bytes: usize, blocks: usize, step: &BulkArgument) -> Grid {
        Grid { blocks, threads, scratch_bytes: scratch_bytes.next_multiple_of(16), kernel, argument: argument(step) }
    }
}

/// Allocates zeros, in bytes.
fn zeros(memory: &mut Memory, name: &str, bytes: u64) -> u64 {
    memory.allocate_with(name, Use::Shared, &vec![0u64; bytes.div_ceil(8).max(2) as usize]) as u64
}

impl Program for BulkPut {
    fn name(&self) -> String {
        format!("{}-bulk", self.kernels.name())
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
        let slice_buckets = 1 << rng.random_range(0..=2);
        let slices: u64 = rng.random_range(2..=6);
        let mask = *[u64::MAX, u64::MAX, u64::MAX, 0, 3 << 62].choose(&mut rng).expect("there are masks");
        let config = Config { slice_buckets, ..Config::of_buckets(slices * slice_buckets, mask, rng.random(), rng.random()) };
        let table = Table::allocate(memory, kernels, config);
        table.clear(memory);
        memory.write_at::<u64>(table.view.roots.stored, 1)[0] = 0;
        let pool = pool(&table, (table.slots as usize * 5 / 4).min(150), &mut rng);
        let some = |rng: &mut Pcg64Mcg, most: usize| -> Vec<usize> {
            let count = rng.random_range(0..=most);
            (0..count).map(|_| rng.random_range(0..pool.len())).collect()
        };
        let first = if rng.random() { Vec::new() } else { some(&mut rng, pool.len()) };
        let before = batch(memory, &table, &pool, first, false, "before");
        let vectors = some(&mut rng, 3 * pool.len());
        let find = batch(memory, &table, &pool, (0..pool.len()).collect(), true, "find");
        let count = vectors.len() as u64;
        let has_outcomes = rng.random();
        let vector_bytes = 4 * kernels.width() as u64;
        // One pass or two.
        let shift = rng.random_range(0..=1u32);
        let parts = slices.div_ceil(1 << shift);
        let mut capacity = |share: u64| rng.random_range(1..=(2 * count / share).max(1));
        let capacities = [capacity(parts), capacity(slices)];
        let mut levels = vec![Level { segments: 1, from_capacity: count, parts, shift }];
        if shift > 0 {
            levels.push(Level { segments: parts, from_capacity: capacities[0], parts: 1 << shift, shift: 0 });
        }
        let words: *const u32 = memory.allocate_with("vectors in bulk", Use::Constant, &pool.words(vectors.iter().copied()));
        let outcomes = if has_outcomes { zeros(memory, "outcomes", count) } else { 0 };
        let counts = zeros(memory, "counts", 40);
        let (threads, blocks) = (WARP * rng.random_range(1..=2), rng.random_range(1..=2));
        let tile = (threads * self.items()) as u64;
        let mut seeds = [[0u64; 2]; 3];
        seeds[..=kernels.width()].copy_from_slice(memory.read_at(table.view.roots.seeds, kernels.width() + 1));
        let (mut passes, mut from, mut from_counts, mut from_outcomes) = (Vec::new(), words as u64, 0, outcomes);
        for (level, to_capacity) in levels.iter().zip(capacities) {
            let room = level.segments * level.parts * to_capacity;
            let tiles = level.segments * level.from_capacity.div_ceil(tile);
            let if_outcomes = |memory: &mut Memory, name: &str, bytes| if has_outcomes { zeros(memory, name, bytes) } else { 0 };
            let pass = BulkPass {
                seeds,
                from,
                from_counts,
                from_capacity: level.from_capacity,
                segments: level.segments,
                to: zeros(memory, "parts", room * vector_bytes),
                to_counts: zeros(memory, "sizes of parts", level.segments * level.parts * 8),
                to_capacity,
                places: if_outcomes(memory, "places", level.segments * level.from_capacity * 2),
                runs: if_outcomes(memory, "runs", tiles * level.parts * 8),
                outcomes: from_outcomes,
                to_outcomes: if_outcomes(memory, "outcomes of parts", room),
                counts,
                shift: level.shift,
                parts: level.parts as u32,
            };
            (from, from_counts, from_outcomes) = (pass.to, pass.to_counts, pass.to_outcomes);
            passes.push(pass);
        }
        let last = passes.last().expect("there is a pass");
        let slices = BulkSlices {
            seeds,
            vectors: last.to,
            sizes: last.to_counts,
            capacity: last.to_capacity,
            slices,
            outcomes: last.to_outcomes,
            left: zeros(memory, "left", slices * 8),
            left_count: zeros(memory, "left count", 8),
            counts,
            offered: count,
        };
        let mut steps: Vec<Box<BulkArgument>> =
            passes.iter().map(|pass| Box::new(BulkArgument { view: table.view, pass: *pass, slices })).collect();
        steps.push(Box::new(BulkArgument { view: table.view, pass: BulkPass::zeroed(), slices }));
        let slice_bytes = kernels.table_bytes(slice_buckets);
        let mut launches = vec![vec![self.search(&before)]];
        for (pass, step) in passes.iter().zip(&steps) {
            let scratch = tile as usize * (vector_bytes as usize + 2) + (3 * pass.parts as usize + 33) * 4;
            launches.push(vec![self.grid(kernels.bulk_partition, threads, scratch, blocks, step)]);
        }
        let of_slices = steps.last().expect("it was pushed");
        launches.push(vec![self.grid(kernels.bulk_fill, threads, slice_bytes + 16, blocks, of_slices)]);
        launches.push(vec![self.grid(kernels.bulk_put_left, threads, 0, blocks, of_slices)]);
        for (pass, step) in passes.iter().zip(&steps).rev().filter(|_| has_outcomes) {
            let scratch = pass.parts as usize * 8 + tile as usize;
            launches.push(vec![self.grid(kernels.bulk_replay, threads, scratch, blocks, step)]);
        }
        launches.push(vec![self.search(&find)]);
        let outcomes = has_outcomes.then_some(outcomes);
        self.case = Some(Case { table, pool, before, vectors, outcomes, counts, find, _steps: steps });
        launches
    }

    fn judge(&mut self, memory: &Memory, _: Ending) -> Result<(), Wrong> {
        let Case { table, pool, before, vectors, outcomes, counts, find, .. } = self.case.as_ref().expect("a case was set up");
        let contents = Contents::read(table, memory, pool, false)?;
        contents.check_counts(table, memory)?;
        let mut news = HashMap::new();
        // The outcomes of earlier vectors, and that the vectors of the pool are found if they are stored.
        before.check(table, pool, &contents, memory, &mut news)?;
        find.check(table, pool, &contents, memory, &mut news)?;
        let found = memory.read_at::<u8>(find.argument.batch.outcomes, find.vectors.len());
        if let Some((vector, _)) =
            (0..).zip(found).find(|(at, outcome)| (u32::from(**outcome) == SEEN) != contents.slot_of[*at].is_some())
        {
            let detail = format!("vector {vector} is at {:?}, where a search does not find it", contents.slot_of[vector]);
            return Err(wrong("not found", detail, contents.about(contents.slot_of[vector])));
        }
        let stored_before = news.len();
        let [offered, hits, full, _, full_nodes] = memory.read_at::<[u64; 5]>(*counts, 1)[0];
        let stored = contents.slot_of.iter().flatten().count();
        let lost = vectors.iter().filter(|vector| contents.slot_of[**vector].is_none()).count() as u64;
        let expected = [vectors.len() as u64, (stored - stored_before) as u64, 0];
        if [offered, hits, full_nodes] != expected || full != lost {
            let detail = format!("{offered} offered, {hits} new, {full} full; expected {expected:?}, {lost} full");
            return Err(wrong("wrong count", detail, Vec::new()));
        }
        let Some(outcomes) = outcomes else { return Ok(()) };
        for (vector, outcome) in vectors.iter().zip(memory.read_at::<u8>(*outcomes, vectors.len())) {
            let is_right = match u32::from(*outcome) {
                NEW => {
                    *news.entry(*vector).or_default() += 1;
                    contents.slot_of[*vector].is_some()
                }
                SEEN => contents.slot_of[*vector].is_some(),
                FULL => contents.slot_of[*vector].is_none(),
                _ => false,
            };
            if !is_right {
                let detail = format!("vector {vector} got {outcome}; it is at {:?}", contents.slot_of[*vector]);
                return Err(wrong("wrong outcome", detail, contents.about(contents.slot_of[*vector])));
            }
        }
        contents.check_news(&news)
    }
}
