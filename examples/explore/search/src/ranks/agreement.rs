//! What ranks tell each other besides states: sums of a few numbers, and by them who was first, and what it has.

use super::search::Table;
use crate::exploration::Limits;
use crate::stopping::Stop;
use std::time::Duration;
use warpset::{Result, Storage};

/// Numbers that are added up at a time.
const NUMBERS: usize = 16;

/// Whether a rank is to stop, in numbers that add up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stops([u64; 3]);

impl Stops {
    pub fn own(limits: Limits) -> Self {
        Self(match (limits.stop)() {
            None => [0; 3],
            Some(Stop::Interrupted) => [1, 0, 0],
            Some(Stop::Time(most)) => [0, 1, most.as_nanos() as u64],
        })
    }

    pub fn are_any(self) -> bool {
        self.0 != [0; 3]
    }

    /// Before other numbers.
    pub fn with<const N: usize, const M: usize>(self, others: [u64; N]) -> [u64; M] {
        const { assert!(M == N + 3) };
        std::array::from_fn(|at| if at < 3 { self.0[at] } else { others[at - 3] })
    }

    /// What the ranks are to do by the sums of their numbers: an interruption counts more than the end of a time.
    pub fn of([interrupted, timed_out, nanoseconds]: [u64; 3]) -> Option<Stop> {
        match (interrupted, timed_out) {
            (0, 0) => None,
            (0, ranks) => Some(Stop::Time(Duration::from_nanos(nanoseconds / ranks))),
            _ => Some(Stop::Interrupted),
        }
    }
}

/// The first rank of those that have something; the same on all.
pub fn first_of<S: Storage>(table: &mut Table<S>, has: bool) -> Result<Option<usize>> {
    // A bit for each rank.
    for first in (0..table.ranks()).step_by(64 * NUMBERS) {
        let mut own = [0u64; NUMBERS];
        if let Some(at) = table.rank().checked_sub(first).filter(|at| has && *at < 64 * NUMBERS) {
            own[at / 64] = 1 << (at % 64);
        }
        let all = table.sum(own)?;
        if let Some(word) = all.iter().position(|word| *word != 0) {
            return Ok(Some(first + word * 64 + all[word].trailing_zeros() as usize));
        }
    }
    Ok(None)
}

/// Gives all ranks the words of one; as many on all.
pub fn share<S: Storage>(table: &mut Table<S>, winner: usize, words: &mut [u32]) -> Result<()> {
    let has = table.rank() == winner;
    for part in words.chunks_mut(NUMBERS) {
        let mut own = [0u64; NUMBERS];
        own.iter_mut().zip(&*part).filter(|_| has).for_each(|(number, word)| *number = u64::from(*word));
        let all = table.sum(own)?;
        part.iter_mut().zip(all).for_each(|(word, number)| *word = number as u32);
    }
    Ok(())
}

/// A number of each rank, by rank; the same on all.
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
