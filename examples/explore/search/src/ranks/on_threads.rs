//! A rank that keeps its states in host memory and expands them by threads, whatever the device of its table is.

use super::search::{RankNumbers, Table};
use super::worker::{Round, Worker};
use crate::exploration::{Limits, add_violating};
use crate::predecessors;
use crate::successors::{Expansion, Scratch, Successors};
use anyhow::Result;
use rayon::prelude::*;
use warpset::cluster::Request;
use warpset::{Reference, Storage, Tally};
use warpset_model::checks::Violation;

/// Number of states that a thread takes at a time (`PIECE`), and number of states that a rank expands in each round (`ROUND`).
const PIECE: usize = 512;
const ROUND: usize = 1 << 16;

pub struct OnThreads<'a, X> {
    source: &'a X,
    /// Words of the level's states, number of these states that are expanded, and words and references of the next level.
    level: Vec<u32>,
    done: usize,
    next: (Vec<u32>, Vec<Reference>),
    /// Successors of the last round.
    offered: Vec<u32>,
    /// By level, the references of its states, if the search keeps them. Valid as long as the table has not grown.
    kept: Option<Vec<Vec<Reference>>>,
}

impl<'a, X: Successors> OnThreads<'a, X> {
    pub fn new(source: &'a X) -> Self {
        Self { source, level: Vec::new(), done: 0, next: (Vec::new(), Vec::new()), offered: Vec::new(), kept: None }
    }

    /// Offers states to all ranks. Adds the states that this rank's table has stored to the next level.
    fn put<S: Storage>(&mut self, table: &mut Table<S>, states: &[u32], own: RankNumbers) -> Result<(Tally, RankNumbers)> {
        let batch = table.find_or_put_many_with(states, Request::new().stored_here(true).sum(own))?;
        self.next.0.extend(table.local().get_many(&batch.stored_here)?);
        if self.kept.is_some() {
            self.next.1.extend(batch.stored_here);
        }
        Ok((batch.total, std::array::from_fn(|at| batch.sums[at])))
    }
}

impl<S: Storage, X: Successors> Worker<S> for OnThreads<'_, X> {
    fn clear(&mut self, _: &Table<S>, keep: bool, _: u64) -> Result<()> {
        *self = Self { kept: keep.then(Vec::new), ..Self::new(self.source) };
        Ok(())
    }

    fn most_offered(&self) -> u64 {
        u64::MAX
    }

    fn offer_at_most(&mut self, _: u64) {}

    fn put_first(&mut self, table: &mut Table<S>, states: &[u32]) -> Result<Tally> {
        Ok(self.put(table, states, RankNumbers::default())?.0)
    }

    fn begin_level(&mut self) {
        let (words, references) = std::mem::take(&mut self.next);
        (self.level, self.done) = (words, 0);
        if let Some(kept) = &mut self.kept {
            kept.push(references);
        }
    }

    fn remaining(&self) -> u64 {
        (self.level.len() / self.source.width() - self.done) as u64
    }

    fn expand(&mut self, _: &Table<S>, level: u64, only_faults: bool) -> Result<Round> {
        let width = self.source.width();
        let first = self.done;
        self.done = (first + ROUND).min(self.level.len() / width);
        let (round, offered) = expand(&self.level[first * width..self.done * width], self.source, level, only_faults);
        self.offered = offered;
        Ok(round)
    }

    fn offer(&mut self, table: &mut Table<S>, own: RankNumbers) -> Result<(Tally, RankNumbers)> {
        let offered = std::mem::take(&mut self.offered);
        let put = self.put(table, &offered, own);
        self.offered = offered;
        put
    }

    fn prepare_growth(&mut self, _: &Table<S>) -> Result<bool> {
        Ok(true)
    }

    fn finish_growth(&mut self, _: &Table<S>) -> Result<bool> {
        Ok(true)
    }

    fn list_bytes(&self) -> u64 {
        let words = self.level.capacity() + self.next.0.capacity() + self.offered.capacity();
        let references = self.kept.iter().flatten().map(Vec::len).sum::<usize>() + self.next.1.len();
        4 * words as u64 + 8 * references as u64
    }

    fn least_lists(&self) -> (u64, u64) {
        (0, 0)
    }

    fn lacks_memory(&self) -> bool {
        false
    }

    fn has_kept(&self, level: usize) -> bool {
        self.kept.as_ref().is_some_and(|kept| level < kept.len())
    }

    fn look_at(&self, state: &[u32]) -> Option<Violation> {
        let mut expansion = Expansion::default();
        self.source.expand(state, &mut Scratch::default(), &mut expansion);
        Some(expansion.violation?.1)
    }

    fn predecessor(&mut self, table: &Table<S>, level: usize, successor: &[u32], limits: Limits) -> Result<Option<Vec<u32>>> {
        let references = self.kept.as_ref().and_then(|kept| kept.get(level)).map_or(&[][..], Vec::as_slice);
        predecessors::predecessor(table.local(), self.source, references, successor, limits)
    }
}

/// Expands states, by all threads of the pool. Also returns the successors.
fn expand<X: Successors>(states: &[u32], source: &X, level: u64, only_faults: bool) -> (Round, Vec<u32>) {
    let width = source.width();
    let piece = |(scratch, expansion): &mut (Scratch, Expansion), states: &[u32]| {
        expansion.clear();
        let found = source.expand_all(states, level, only_faults, scratch, expansion);
        let round = Round {
            transitions: expansion.parents.len() as u64,
            deadlocks: expansion.deadlocks,
            overflows: expansion.overflows,
            violating: std::mem::take(&mut expansion.violating),
            found,
        };
        (round, std::mem::take(&mut expansion.successors))
    };
    let pieces: Vec<_> = states.par_chunks(PIECE * width).map_init(Default::default, piece).collect();
    let mut all = Round::default();
    let mut successors = Vec::with_capacity(pieces.iter().map(|(_, successors)| successors.len()).sum());
    for (piece, of_piece) in pieces {
        successors.extend(of_piece);
        all.transitions += piece.transitions;
        all.deadlocks += piece.deadlocks;
        all.overflows += piece.overflows;
        add_violating(&mut all.violating, &piece.violating);
        if let Some(found) = piece.found.filter(|found| found.replaces(all.found.as_ref())) {
            all.found = Some(found);
        }
    }
    (all, successors)
}
