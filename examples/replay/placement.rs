//! The placement-only pass: a measure of the accesses to memory that no table can avoid.
//!
//! Measures a pass that already has each vector's final slot and makes only the unavoidable memory accesses: it reads the vector,
//! reads that slot (or writes it, for the call that stores the vector), and writes the outcome. It hashes nothing and searches
//! nothing. Its rate is measured, not a bound: a table with more vectors in flight can exceed this rate.

use super::vectors::Vectors;
use anyhow::{Context, Result};
use memmap2::{MmapMut, MmapOptions};
use rayon::ThreadPool;
use rayon::prelude::*;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use warpset::{Batch, Outcome, Reference, Storage, VectorTable};

/// Number of passes. Their median is reported.
const PASSES: usize = 3;

/// Number of vectors that a thread takes at a time.
const PIECE: usize = 4096;

/// Number of vectors whose slots are requested together, so that their cache misses overlap.
const GROUP: usize = 16;

/// Bytes of memory per vector in addition to the slots: its reference twice, as reported and unpacked, its task and its outcome.
const BYTES_A_VECTOR: u64 = 8 + 16 + 8 + 1;

/// Input of the pass for one vector: its slot's number, and in the highest bit whether this call stores it.
#[derive(Clone, Copy)]
struct Task(u64);

impl Task {
    const STORES: u64 = 1 << 63;

    fn new(outcome: Outcome, at: Reference) -> Self {
        Self(at.slot() | if outcome == Outcome::New { Self::STORES } else { 0 })
    }

    fn stores(self) -> bool {
        self.0 & Self::STORES != 0
    }

    /// Words of the task's slot.
    fn slot(self, slots: &[AtomicU32], width: usize) -> &[AtomicU32] {
        &slots[(self.0 & !Self::STORES) as usize * width..][..width]
    }
}

/// Rate of the placement-only pass for the batch of `vectors` that was put into `table`, in 10^9 vectors a second.
///
/// Returns `None` if the rate is not measured: for vectors stored as trees, which are in several slots; for keys, because slots
/// hold a part of them; for rows, which are found through an index; if there are no vectors; if the table was too full for some
/// vectors; if the table is on a GPU; and if memory for a second table is short.
pub fn placement_gops<S: Storage>(
    table: &VectorTable<S>,
    vectors: &Vectors,
    batch: &Batch,
    threads: usize,
    memory: u64,
) -> Result<Option<f64>> {
    let bytes = table.slots() * vectors.width as u64 * 4;
    let needed = bytes + vectors.count() as u64 * BYTES_A_VECTOR;
    let in_one_slot = !table.spec().is_tree() && !table.spec().is_compact() && !table.spec().is_indexed();
    let has_one = in_one_slot && vectors.count() > 0 && batch.tally.full == 0;
    if table.device().is_gpu() || !has_one || needed > memory {
        return Ok(None);
    }
    let references = table.locate_many(&vectors.words)?;
    let stored = references.into_iter().map(|reference| reference.context("a vector that was put into the table is not found"));
    let tasks = batch.outcomes.iter().zip(stored).map(|(outcome, at)| Ok::<_, anyhow::Error>(Task::new(*outcome, at?)));
    let (Some(mut told), Some(mut outcomes)) = (allocate(vectors.count()), allocate(vectors.count())) else { return Ok(None) };
    for task in tasks {
        told.push(task?);
    }
    outcomes.resize(vectors.count(), u8::MAX);
    let tasks: Vec<Task> = told;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut memory = memory_like_a_table(bytes as usize)?;
    let mut seconds: Vec<f64> = (0..PASSES).map(|_| pass(&pool, vectors, &tasks, &mut memory, &mut outcomes)).collect();
    seconds.sort_by(f64::total_cmp);
    Ok(Some(vectors.count() as f64 / seconds[PASSES / 2] / 1e9))
}

/// Allocates a list with room for `count` elements; `None` if memory is short.
fn allocate<T>(count: usize) -> Option<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).ok().map(|()| list)
}

/// Allocates memory in huge pages if the system has them: a table on the CPU uses them too, and without them random accesses cost
/// more.
fn memory_like_a_table(bytes: usize) -> Result<MmapMut> {
    let memory = MmapOptions::new().len(bytes).map_anon()?;
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}

/// Seconds of one pass over empty slots that are in memory already.
fn pass(pool: &ThreadPool, vectors: &Vectors, tasks: &[Task], memory: &mut MmapMut, outcomes: &mut [u8]) -> f64 {
    memory.fill(0);
    let slots = as_atomic(bytemuck::cast_slice_mut(memory));
    outcomes.fill(u8::MAX);
    let width = vectors.width;
    let start = Instant::now();
    pool.install(|| {
        let pieces = vectors.words.par_chunks(width * PIECE).zip(tasks.par_chunks(PIECE)).zip(outcomes.par_chunks_mut(PIECE));
        pieces.for_each(|((words, tasks), outcomes)| {
            let groups = words.chunks(width * GROUP).zip(tasks.chunks(GROUP)).zip(outcomes.chunks_mut(GROUP));
            groups.for_each(|((words, tasks), outcomes)| store_or_compare(slots, width, words, tasks, outcomes));
        });
    });
    let seconds = start.elapsed().as_secs_f64();
    black_box(outcomes);
    seconds
}

/// Places the vectors of one group.
fn store_or_compare(slots: &[AtomicU32], width: usize, words: &[u32], tasks: &[Task], outcomes: &mut [u8]) {
    // Relaxed, here and below: slots are atomic only so that threads may read one while another writes it.
    black_box(tasks.iter().fold(0, |bits, task| bits ^ task.slot(slots, width)[0].load(Ordering::Relaxed)));
    for ((vector, task), outcome) in words.chunks_exact(width).zip(tasks).zip(outcomes) {
        let words = task.slot(slots, width).iter().zip(vector);
        *outcome = if task.stores() {
            words.for_each(|(slot, word)| slot.store(*word, Ordering::Relaxed));
            Outcome::New as u8
        } else {
            let differing = words.fold(0, |bits, (slot, word)| bits | (slot.load(Ordering::Relaxed) ^ word));
            // The words may differ: the call that stores the vector may come later in this pass than in the table's pass.
            if differing == 0 { Outcome::Seen as u8 } else { 0 }
        };
    }
}

fn as_atomic(words: &mut [u32]) -> &[AtomicU32] {
    // SAFETY: an `AtomicU32` has the size and alignment of a `u32`. The exclusive borrow lasts as long as the result, so
    // meanwhile all accesses are through the result.
    unsafe { &*(std::ptr::from_mut(words) as *const [AtomicU32]) }
}
