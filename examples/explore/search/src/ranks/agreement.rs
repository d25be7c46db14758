//! Small collective operations of the ranks: sums of a few numbers, and on top of them the least of their states.

use super::search::Table;
use crate::exploration::Limits;
use std::time::Duration;
use warpset::{Result, Storage};
use warpset_support::stopping::Stop;

/// How many numbers one collective call adds up.
pub const NUMBERS: usize = 16;

/// Whether a rank should stop, as numbers that can be added up over the ranks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stops([u64; 3]);

impl Stops {
    pub fn own(limits: Limits) -> Self {
        Self::of_reason((limits.stop)())
    }

    /// The numbers, to be added up.
    pub fn numbers(self) -> [u64; 3] {
        self.0
    }

    pub fn of_reason(reason: Option<Stop>) -> Self {
        Self(match reason {
            None => [0; 3],
            Some(Stop::Interrupted) => [1, 0, 0],
            Some(Stop::Time(most)) => [0, 1, most.as_nanos() as u64],
        })
    }

    pub fn are_any(self) -> bool {
        self.0 != [0; 3]
    }

    /// Puts these numbers in front of others.
    pub fn with<const N: usize, const M: usize>(self, others: [u64; N]) -> [u64; M] {
        const { assert!(M == N + 3) };
        std::array::from_fn(|at| if at < 3 { self.0[at] } else { others[at - 3] })
    }

    /// Combines the sums over all ranks into a decision: an interruption takes precedence over a time limit.
    pub fn of([interrupted, timed_out, nanoseconds]: [u64; 3]) -> Option<Stop> {
        match (interrupted, timed_out) {
            (0, 0) => None,
            (0, ranks) => Some(Stop::Time(Duration::from_nanos(nanoseconds / ranks))),
            _ => Some(Stop::Interrupted),
        }
    }
}

/// Returns the ranks for which `has` is true; all ranks get the same answer.
fn ranks_with<S: Storage>(table: &mut Table<S>, has: bool) -> Result<Vec<usize>> {
    let mut ranks = Vec::new();
    // Each rank sets a bit of its own.
    for first in (0..table.ranks()).step_by(64 * NUMBERS) {
        let mut own = [0u64; NUMBERS];
        if let Some(at) = table.rank().checked_sub(first).filter(|at| has && *at < 64 * NUMBERS) {
            own[at / 64] = 1 << (at % 64);
        }
        let all = table.sum(own)?;
        ranks.extend((0..64 * NUMBERS).filter(|at| all[at / 64] >> (at % 64) & 1 == 1).map(|at| first + at));
    }
    Ok(ranks)
}

/// Returns the least of the states that ranks have, word by word; all ranks get the same answer. `None` if no rank has one.
pub fn least_of<S: Storage>(table: &mut Table<S>, own: Option<&[u32]>) -> Result<Option<Vec<u32>>> {
    let mut least: Option<Vec<u32>> = None;
    for rank in ranks_with(table, own.is_some())? {
        let mut state = own.filter(|_| rank == table.rank()).map(<[u32]>::to_vec).unwrap_or_default();
        state.resize(table.local().width(), 0);
        share(table, rank, &mut state)?;
        least = least.into_iter().chain([state]).min();
    }
    Ok(least)
}

/// Copies the words of rank `winner` to all ranks. All ranks must pass equally many words.
fn share<S: Storage>(table: &mut Table<S>, winner: usize, words: &mut [u32]) -> Result<()> {
    let has = table.rank() == winner;
    for part in words.chunks_mut(NUMBERS) {
        let mut own = [0u64; NUMBERS];
        own.iter_mut().zip(&*part).filter(|_| has).for_each(|(number, word)| *number = u64::from(*word));
        let all = table.sum(own)?;
        part.iter_mut().zip(all).for_each(|(word, number)| *word = number as u32);
    }
    Ok(())
}

/// Returns the number that each rank passes, by rank. All ranks get the same list.
pub fn of_each<S: Storage>(table: &mut Table<S>, own: u64) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    for first in (0..table.ranks()).step_by(NUMBERS) {
        let mut numbers = [0u64; NUMBERS];
        if let Some(number) = table.rank().checked_sub(first).and_then(|at| numbers.get_mut(at)) {
            *number = own;
        }
        all.extend(table.sum(numbers)?);
    }
    all.truncate(table.ranks());
    Ok(all)
}
