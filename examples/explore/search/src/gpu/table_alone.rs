//! Throughput of the table when it has the GPU to itself. The library's own kernel puts batches of successors, in the form in
//! which the exploration offers them.
//!
//! Threads expand a sample of the states. Their successors, with parents and changes, are in device memory before the clock
//! starts. All of them are stored by then, so the table finds every vector and puts none. The result is an upper bound for every
//! exploration that puts an offer for each of its states. The offers include duplicates that the exploration's cache drops before
//! they reach the table.

use super::{GpuEngine, Offers, SearchMemory};
use crate::successors::{Expansion, Successors, differences};
use anyhow::{Result, ensure};
use rayon::prelude::*;
use std::time::{Duration, Instant};
use warpset::gpu::DeviceBatch;
use warpset::{Reference, Storage};

/// Number of batches; the first one only warms up.
const BATCHES: usize = 4;

/// Number of states whose successors make a batch: several times as many as a GPU has threads, and more than its cache holds.
const STATES: usize = 1 << 20;

/// Number of consecutive states in discovery order that are expanded together, as a block of the kernel expands them.
const TILE: usize = 256;

/// Minimum number of states: a smaller batch takes no longer than its launch.
const LEAST_STATES: usize = 1 << 18;

impl<S: Storage> GpuEngine<'_, S> {
    /// Measures the throughput, in vectors per second.
    pub(super) fn table_alone(&self, progress: &SearchMemory) -> Result<f64> {
        let known = progress.listed(&self.read(&progress.offers)?) as usize;
        ensure!(progress.marked.is_none(), "states are marked, not listed");
        ensure!(known >= LEAST_STATES, "too few states are listed");
        // Tiles spread over the order of states, assigned to the batches in turn.
        let tiles = (known / TILE).min(BATCHES * STATES / TILE);
        let starts: Vec<usize> = (0..tiles).map(|tile| known / tiles * tile).collect();
        let (mut offered, mut time) = (0, Duration::ZERO);
        for batch in 0..BATCHES {
            let mut references = Vec::with_capacity(STATES);
            for start in starts.iter().skip(batch).step_by(BATCHES) {
                let tile = *start as u64..(start + TILE) as u64;
                references.extend(match &progress.parents {
                    Some(parents) => self.states_in(parents, tile)?,
                    None => progress.order.read(&self.stream, tile)?,
                });
            }
            let (count, duration) = self.offer_successors(&references)?;
            if batch > 0 {
                offered += count;
                time += duration;
            }
        }
        Ok(offered as f64 / time.as_secs_f64())
    }

    /// Offers the successors of these states. Returns their number and the time.
    fn offer_successors(&self, references: &[u64]) -> Result<(usize, Duration)> {
        let width = self.table.width();
        let parents: Vec<Reference> = references.iter().filter_map(|slot| self.table.reference(*slot)).collect();
        let states = self.table.get_many(&parents)?;
        let expand = |(states, references): (&[u32], &[u64])| {
            let mut expansion = Expansion::default();
            self.interpreted.expand(states, &mut Default::default(), &mut expansion);
            let (mut words, mut parents, mut changed) = (Vec::new(), Vec::new(), Vec::new());
            for (successor, parent) in expansion.successors.chunks_exact(width).zip(expansion.parents) {
                let state = &states[parent as usize * width..][..width];
                // The kernel does not offer successors equal to their state.
                if successor != state {
                    words.extend_from_slice(successor);
                    parents.push(references[parent as usize]);
                    differences(successor, state, &mut changed);
                }
            }
            (words, parents, changed)
        };
        let parts: Vec<_> = states.par_chunks(TILE * width).zip(references.par_chunks(TILE)).map(expand).collect();
        let vectors: Vec<u32> = parts.iter().flat_map(|(words, ..)| words).copied().collect();
        let parents: Vec<u64> = parts.iter().flat_map(|(_, parents, _)| parents).copied().collect();
        let changed: Vec<u32> = parts.iter().flat_map(|(.., changed)| changed).copied().collect();
        let count = parents.len();
        ensure!(count > 0, "the states have no successors");
        let vectors = self.stream.clone_htod(&vectors)?;
        let (parents, changed) = (self.stream.clone_htod(&parents)?, self.stream.clone_htod(&changed)?);
        let mut counts = self.stream.alloc_zeros::<Offers>(1)?;
        let mut batch = DeviceBatch::new(&vectors, count).counts(&mut counts);
        if self.table.spec().is_tree() {
            batch = batch.parents(&parents).changed(&changed);
        }
        self.stream.synchronize()?;
        let start = Instant::now();
        self.table.find_or_put_device(&self.stream, batch)?;
        self.stream.synchronize()?;
        let duration = start.elapsed();
        let tally = self.read(&counts)?.tally();
        ensure!(tally.new == 0 && tally.full == 0, "of {count} successors of stored states, {} were not stored", tally.new);
        Ok((count, duration))
    }
}
