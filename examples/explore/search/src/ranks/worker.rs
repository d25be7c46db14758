//! The part of a search that a rank does with the states that it owns: on threads or on its GPU.

use super::search::{RankNumbers, Table};
use crate::checks::Violation;
use crate::exploration::{Found, Limits};
use anyhow::Result;
use warpset::{Storage, Tally};

/// Counts and violation of a rank in one round.
#[derive(Default)]
pub struct Round {
    pub transitions: u64,
    pub deadlocks: u64,
    pub overflows: u64,
    pub found: Option<Found>,
}

/// The levels of one rank, and the expansion of their states. Calls that take the table by `&mut` are collective.
pub trait Worker<S: Storage>: Send {
    /// Forgets all states; the table is empty. `keep`: until the next call, keep the states of all levels.
    fn clear(&mut self, keep: bool);

    /// Offers these states to all ranks. The states that the rank's own table stores belong to the next level. Returns the
    /// outcomes of the offers of all ranks.
    ///
    /// # Errors
    ///
    /// The errors of the batch, on all ranks.
    fn put_first(&mut self, table: &mut Table<S>, states: &[u32]) -> Result<Tally>;

    /// Makes the next level the current one, with no state expanded.
    fn begin_level(&mut self);

    /// Number of states of the level that are not expanded yet.
    fn remaining(&self) -> u64;

    /// Expands some states of the level, at least one if any remains. The next offer contains their successors. With
    /// `only_faults` violations of other kinds do not matter.
    fn expand(&mut self, table: &Table<S>, level: u64, only_faults: bool) -> Result<Round>;

    /// Offers the successors of the last round to all ranks, as [`put_first`](Self::put_first) does. If the tables were full for
    /// some, it may be called again; those stored by the first call are then found as seen. Also returns the sums of the numbers
    /// that all ranks send along.
    fn offer(&mut self, table: &mut Table<S>, own: RankNumbers) -> Result<(Tally, RankNumbers)>;

    /// Called before the table grows: saves whatever it needs to find its states afterwards. Returns false if there is no memory
    /// for that.
    fn prepare_growth(&mut self, table: &Table<S>) -> Result<bool>;

    /// Called after the attempt to grow the table. Returns false if there is no memory for its states any more; then nothing can
    /// be expanded.
    fn finish_growth(&mut self, table: &Table<S>) -> Result<bool>;

    /// Size of all lists of states, in bytes.
    fn list_bytes(&self) -> u64;

    /// The violation of a state, if it has one.
    fn look_at(&self, state: &[u32]) -> Option<Violation>;

    /// Finds the least state of `level` on this rank that has `successor` as a successor. The states of the level must have been
    /// kept.
    fn predecessor(&mut self, table: &Table<S>, level: usize, successor: &[u32], limits: Limits) -> Result<Option<Vec<u32>>>;
}
