//! A round: threads take pieces of a level's states. Each thread collects its findings in memory of its own, which is reused in
//! the next round.

use super::HostEngine;
use super::level::Level;
use crate::exploration::{Found, add_violating};
use crate::successors::{Expansion, Scratch, Successors, differences};
use anyhow::Result;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use warpset::{Buffers, Reference, Storage};

/// States that a thread takes at a time. Their successors fit the second-level cache, and a batch is large enough to hide the
/// cost of the call.
pub const PIECE: usize = 512;

/// Smallest piece. Towards the end of a round pieces get smaller, so that all threads end at about the same time.
const SMALLEST_PIECE: usize = 32;

/// Maximum number of successors per batch if the table is on the CPU: a larger batch would use other threads, which are busy
/// expanding.
const BATCH: usize = 4096;

/// States of a piece if the table is on a GPU: a batch must be worth a transfer and a launch.
const PIECE_FOR_GPU: usize = 1 << 15;

/// Memory and findings of a thread in a round. Aligned so that it has cache lines of its own, because it is written all the time.
#[repr(align(128))]
#[derive(Default)]
pub struct Worker {
    scratch: Scratch,
    expansion: Expansion,
    parents: Vec<Reference>,
    changed: Vec<u32>,
    results: Buffers,
    found: Findings,
}

/// Counts, new states and violations found in some states of a level.
#[derive(Default)]
pub struct Findings {
    pub new: Level,
    /// Successors that found the table full.
    pub rejected: Level,
    pub transitions: u64,
    pub deadlocks: u64,
    pub overflows: u64,
    /// By condition, the number of states that violate it; may be empty if no state violates any.
    pub violating: Vec<u64>,
    /// The violation to report.
    pub found: Option<Found>,
}

/// Results that a search needs of the states of a round.
#[derive(Clone, Copy)]
pub struct Needs {
    /// Level of the states.
    pub level: u64,
    /// Violations other than faults do not matter any more.
    pub only_faults: bool,
    /// References of the new states.
    pub references: bool,
    /// Rows of the parents of the new states.
    pub parents: bool,
}

impl Worker {
    /// Bytes of the lists of states found.
    pub fn bytes(&self) -> u64 {
        self.found.new.bytes() + self.found.rejected.bytes()
    }
}

impl Findings {
    /// Forgets all findings and keeps the memory.
    pub fn clear(&mut self) {
        self.new.clear();
        self.rejected.clear();
        self.violating.clear();
        (self.transitions, self.deadlocks, self.overflows, self.found) = (0, 0, 0, None);
    }
}

/// The findings of each worker.
pub fn found_by(workers: &mut [Worker]) -> impl Iterator<Item = &mut Findings> {
    workers.iter_mut().map(|worker| &mut worker.found)
}

impl<S: Storage, X: Successors> HostEngine<'_, S, X> {
    /// Creates a worker for each thread.
    pub(super) fn workers(&self) -> Vec<Worker> {
        (0..rayon::current_num_threads()).map(|_| Worker::default()).collect()
    }

    /// Expands some states of a level: all, unless the search is stopped. Adds to the findings of the workers. Returns the first
    /// state that was not expanded; all states before it were.
    pub(super) fn expand(&self, level: &Level, states: Range<usize>, workers: &mut [Worker], needs: Needs) -> Result<usize> {
        let (next, threads, is_gpu) = (AtomicUsize::new(states.start), workers.len(), self.table.device().is_gpu());
        // Returns the end of the piece that begins at `start`, or `None` behind the last state.
        let end_of = |start: usize| {
            let left = states.end.checked_sub(start).filter(|left| *left > 0)?;
            let size = if is_gpu { PIECE_FOR_GPU } else { (left / (4 * threads)).clamp(SMALLEST_PIECE, PIECE) };
            Some(start + size.min(left))
        };
        let work = |worker: &mut Worker| -> Result<()> {
            // Check before a piece is taken: a piece that was taken must be expanded.
            while (self.limits.stop)().is_none() {
                // Relaxed: only the uniqueness of the pieces matters; what is found in them is read after the threads are joined.
                let Ok(start) = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end_of) else { break };
                let end = end_of(start).expect("it was taken");
                self.piece(level, start..end, worker, needs)?;
            }
            Ok(())
        };
        match end_of(states.start) {
            Some(end) if end < states.end => workers.par_iter_mut().with_max_len(1).map(work).collect::<Result<()>>()?,
            // For a single piece, waking other threads would take longer.
            _ => work(&mut workers[0])?,
        }
        Ok(next.into_inner())
    }

    fn piece(&self, level: &Level, piece: Range<usize>, worker: &mut Worker, needs: Needs) -> Result<()> {
        let width = self.source.width();
        let states = &level.words[piece.start * width..piece.end * width];
        let Worker { scratch, expansion, parents, changed, results, found } = worker;
        expansion.clear();
        let of_piece = self.source.expand_all(states, needs.level, needs.only_faults, scratch, expansion);
        self.record(&expansion.successors);
        found.transitions += expansion.parents.len() as u64;
        found.deadlocks += expansion.deadlocks;
        found.overflows += expansion.overflows;
        add_violating(&mut found.violating, &expansion.violating);
        if let Some(of_piece) = of_piece.filter(|of_piece| of_piece.replaces(found.found.as_ref())) {
            found.found = Some(of_piece);
        }
        let is_tree = self.table.spec().is_tree();
        let references = level.references.get(piece.clone()).unwrap_or_default();
        if is_tree {
            parents.clear();
            parents.extend(expansion.parents.iter().map(|parent| references[*parent as usize]));
            changed.clear();
            for (successor, parent) in expansion.successors.chunks_exact(width).zip(&expansion.parents) {
                differences(successor, &states[*parent as usize * width..][..width], changed);
            }
        }
        let count = expansion.parents.len();
        let size = if self.table.device().is_gpu() { count.max(1) } else { BATCH };
        for first in (0..count).step_by(size) {
            let batch = first..(first + size).min(count);
            let masks = width.div_ceil(32);
            let changes = is_tree.then(|| (&parents[batch.clone()], &changed[batch.start * masks..batch.end * masks]));
            let successors = &expansion.successors[batch.start * width..batch.end * width];
            let found_from = |at: usize| needs.parents.then(|| references[expansion.parents[batch.start + at] as usize].slot());
            let full = self.put_with(successors, changes, found_from, needs.references, results, &mut found.new)?;
            found.rejected.words.extend(full.words);
            found.rejected.parents.extend(full.parents);
        }
        Ok(())
    }
}
