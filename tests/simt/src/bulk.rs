//! Bulk find-or-put (cuda/warpset/bucket/bulk.cuh): a batch is put into a small table with slices that already has some vectors.
//! Parts may have too little room, and slices too few slots, so that vectors are put directly.

use crate::checks::{Contents, Pool};
use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, WARP};
use crate::memory::{Memory, Use};
use crate::stress::{Batch, batch, pool};
use crate::table::{
    BatchView, BulkArgument, BulkPass, BulkPlan, Config, FULL, Kernels, NEW, SEEN, ShortSeeds, Table, argument, wrong,
};
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
    _steps: Vec<BulkArgument>,
}

impl BulkPut {
    /// Whether a spec has the kernels.
    pub fn exists(kernels: &Kernels) -> bool {
        ShortSeeds::are_for(kernels.width()) && 4 * kernels.slot_words() <= kernels.chunk_bytes as usize
    }

    pub fn new(kernels: &'static Kernels) -> Self {
        Self { kernels, case: None }
    }

    fn search(&self, batch: &Batch) -> Grid {
        batch.grid(self.kernels, 1, 1)
    }
}

/// Allocates zeros, in bytes.
fn zeros(memory: &mut Memory, name: &str, bytes: u64) -> u64 {
    memory.allocate_with(name, Use::Shared, &vec![0u64; bytes.div_ceil(8).max(2) as usize]) as u64
}

/// Vectors of four words whose images have the same first half: bulk_filler.cuh.
fn same_heads(table: &Table, count: usize, rng: &mut Pcg64Mcg) -> Pool {
    let empty = table.view.roots.empty.map(u64::from);
    let [low, high] = [empty[0] | empty[1] << 32, empty[2] | empty[3] << 32];
    let head = if rng.random() { rng.random_range(0..3) } else { rng.random::<u64>() };
    let vectors = (0..count).map(|_| {
        let second: u64 = if rng.random_ratio(1, 8) { 0 } else { rng.random() };
        let first = head ^ low ^ second.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let second = second ^ high;
        vec![first as u32, (first >> 32) as u32, second as u32, (second >> 32) as u32]
    });
    Pool::new(4, vectors.collect::<Vec<_>>())
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
        // In slices of 64 buckets, searches go on to another bucket of the slice, if all vectors have the same first buckets.
        let is_large = rng.random_ratio(1, 4);
        let slice_buckets = if is_large { 64 } else { 1 << rng.random_range(0..=2) };
        let slices: u64 = rng.random_range(2..=if is_large { 3 } else { 6 });
        let masks = if is_large { &[0, 3 << 62][..] } else { &[u64::MAX, u64::MAX, u64::MAX, 0, 3 << 62] };
        let mask = *masks.choose(&mut rng).expect("there are masks");
        let config = Config { slice_buckets, ..Config::of_buckets(slices * slice_buckets, mask, rng.random(), rng.random()) };
        let table = Table::allocate(memory, kernels, config);
        table.clear(memory);
        memory.write_at::<u64>(table.view.roots.stored, 1)[0] = 0;
        let mut pool = pool(&table, (table.slots as usize * 5 / 4).min(150), &mut rng);
        if kernels.width() == 4 && rng.random_ratio(1, 3) {
            pool = same_heads(&table, pool.len(), &mut rng);
        }
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
        let mut capacity = |share: u64| rng.random_range(1..=(2 * count / share).max(1)).next_multiple_of(4);
        let capacities = [capacity(parts), capacity(slices)];
        let words: *const u32 = memory.allocate_with("vectors in bulk", Use::Constant, &pool.words(vectors.iter().copied()));
        // At any address.
        let outcomes = if has_outcomes { zeros(memory, "outcomes", count + 3) + rng.random_range(0..=3) } else { 0 };
        let counts = zeros(memory, "counts", 40);
        let (threads, blocks) = (WARP * rng.random_range(1..=2), rng.random_range(1..=2));
        let tile = (threads * BulkPlan::items(kernels.width())) as u64;
        let plan = BulkPlan::of(vector_bytes, tile, count, slices, shift, capacities, has_outcomes);
        let zeros_first = |at| if at < plan.zeros.div_ceil(8) { 0u64 } else { rng.random() };
        let scratch: Vec<u64> = (0..plan.bytes.div_ceil(8)).map(zeros_first).collect();
        let scratch = memory.allocate_with("scratch", Use::Shared, &scratch) as u64;
        let view = BatchView { vectors: words as u64, count, outcomes, counts, ..BatchView::default() };
        let (passes, of_slices) = plan.arguments(scratch, &view, table.short_seeds(memory));
        let step = |pass| BulkArgument { view: table.view, pass, slices: of_slices };
        let steps: Vec<BulkArgument> = passes.into_iter().chain([BulkPass::default()]).map(step).collect();
        let [partition, replay] = plan.shared_bytes(vector_bytes).map(|bytes| bytes as usize);
        let (of_slices, of_passes) = steps.split_last().expect("there is a step");
        let fill = BulkPlan::fill_bytes(kernels.table_bytes(slice_buckets) as u64, threads as u32) as usize;
        let grid = |kernel, scratch_bytes: usize, step: &BulkArgument| {
            let scratch_bytes = scratch_bytes.next_multiple_of(16);
            vec![Grid { blocks, threads, scratch_bytes, kernel, argument: argument(step) }]
        };
        let mut launches = vec![vec![self.search(&before)]];
        launches.extend(of_passes.iter().map(|step| grid(kernels.bulk_partition, partition, step)));
        launches.push(grid(kernels.bulk_fill, fill, of_slices));
        launches.push(grid(kernels.bulk_put_left, 0, of_slices));
        let replays = of_passes.iter().rev().filter(|_| has_outcomes);
        launches.extend(replays.map(|step| grid(kernels.bulk_replay, replay, step)));
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
        for vector in vectors.iter().filter(|vector| contents.slot_of[**vector].is_none()) {
            contents.check_full(table, memory, pool, *vector)?;
        }
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
