//! What a rank does with the states that it owns: on threads, or on its GPU.

use super::search::{Table, Told};
use crate::checks::Violation;
use crate::exploration::{Found, Limits};
use anyhow::Result;
use warpset::{Storage, Tally};

/// What a rank has counted and found in a round.
#[derive(Default)]
pub struct Round {
    pub transitions: u64,
    pub deadlocks: u64,
    pub overflows: u64,
    pub found: Option<Found>,
}

/// The levels of one rank, and how their states are expanded. Of its calls, those that get the table by `&mut` are collective.
pub trait Worker<S: Storage>: Send {
    /// Forgets all states: the table is empty. `keep`: from here on, until the next call, those of all levels are kept.
    fn clear(&mut self, keep: bool);

    /// Offers these states to all ranks. What the rank's own table stores belongs to the next level. Gives what became of all
    /// ranks' offers.
    ///
    /// # Errors
    ///
    /// Those of the batch, on all ranks.
    fn put_first(&mut self, table: &mut Table<S>, states: &[u32]) -> Result<Tally>;

    /// The next level becomes this one, of which nothing is expanded yet.
    fn begin_level(&mut self);

    /// States of the level that are not expanded yet.
    fn remaining(&self) -> u64;

    /// Expands some states of the level, at least one if there is one. Their successors are what is offered next.
    fn expand(&mut self, table: &Table<S>, level: u64, limits: Limits) -> Result<Round>;

    /// Offers all ranks the successors of the last round, as [`put_first`](Self::put_first) does. If some found no room, it may
    /// be called once more: the others are found, then. Gives the sums of what all ranks say besides, too.
    fn offer(&mut self, table: &mut Table<S>, own: Told) -> Result<(Tally, Told)>;

    /// Before the table grows: keeps what it must to know its states afterwards. False if there is no memory for that.
    fn prepare_growth(&mut self, table: &Table<S>) -> Result<bool>;

    /// After the table has grown, or has not. False if there is no memory for its states any more: then nothing can be expanded.
    fn finish_growth(&mut self, table: &Table<S>) -> Result<bool>;

    /// Bytes of all lists of states.
    fn list_bytes(&self) -> u64;

    /// What is wrong with a state, if anything.
    fn look_at(&self, state: &[u32]) -> Option<Violation>;

    /// A state that this rank has of that level, which was kept, with this successor.
    fn predecessor(&mut self, table: &Table<S>, level: usize, successor: &[u32], limits: Limits) -> Result<Option<Vec<u32>>>;
}
