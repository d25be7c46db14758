//! The part of a search that a rank does with its own states, on threads or on its GPU.

use super::search::{RankNumbers, Table};
use crate::exploration::{Found, Limits};
use anyhow::Result;
use warpset::{Storage, Tally};
use warpset_model::checks::Violation;

/// Counts and violation of a rank in one round.
#[derive(Default)]
pub struct Round {
    pub transitions: u64,
    pub deadlocks: u64,
    pub overflows: u64,
    /// By condition, the number of states that violate it; may be empty if no state violates any.
    pub violating: Vec<u64>,
    pub found: Option<Found>,
}

/// The levels of one rank, and the expansion of their states. Calls that take the table by `&mut` are collective: all ranks must
/// make them.
pub trait Worker<S: Storage>: Send {
    /// Forgets all states, because the table is empty. If `keep` is set, the states of as many levels as fit are kept from now
    /// on, until the next call. `bytes`: limit of this rank's table and lists.
    fn clear(&mut self, table: &Table<S>, keep: bool, bytes: u64) -> Result<()>;

    /// Most successors that this rank offers at once.
    fn most_offered(&self) -> u64;

    /// Offers at most `rows` successors at once from now on, or as few as one state may have if these are more. No rank offers
    /// more, so that each has room for the references of the states that it stores.
    fn offer_at_most(&mut self, rows: u64);

    /// Offers these states to all ranks. The states that this rank's own table stores become part of the next level. Returns the
    /// outcomes of the offers of all ranks.
    ///
    /// # Errors
    ///
    /// The batch fails. All ranks get the error.
    fn put_first(&mut self, table: &mut Table<S>, states: &[u32]) -> Result<Tally>;

    /// Makes the next level the current one. None of its states is expanded yet.
    fn begin_level(&mut self);

    /// Number of states of the level that are not yet expanded.
    fn remaining(&self) -> u64;

    /// Expands some states of the level, at least one if any remains. The next offer contains their successors. With
    /// `only_faults` violations of other kinds do not matter.
    fn expand(&mut self, table: &Table<S>, level: u64, only_faults: bool) -> Result<Round>;

    /// Offers the successors of the last round to all ranks, as [`put_first`](Self::put_first) does. If tables were full, the
    /// call may be repeated: states that the first call has stored then count as seen. Also returns the sums of the numbers that
    /// all ranks send with their offers.
    fn offer(&mut self, table: &mut Table<S>, own: RankNumbers) -> Result<(Tally, RankNumbers)>;

    /// Called before the table grows. Saves the data that are needed to find this rank's states afterwards. Returns false if
    /// there is no memory for that.
    fn prepare_growth(&mut self, table: &Table<S>) -> Result<bool>;

    /// Called after the attempt to grow the table. Returns false if there is no longer memory for this rank's states; no state
    /// can then be expanded.
    fn finish_growth(&mut self, table: &Table<S>) -> Result<bool>;

    /// Size of all lists of states, in bytes.
    fn list_bytes(&self) -> u64;

    /// Least size of the lists of any rank: eighths of a byte for each slot of its table, and other bytes. Equal on all ranks.
    fn least_lists(&self) -> (u64, u64);

    /// Whether a state that this rank's table has stored is in no list, because there was no memory for that.
    fn lacks_memory(&self) -> bool;

    /// Whether all states of `level` on this rank are kept, so that `predecessor` may be called.
    fn has_kept(&self, level: usize) -> bool;

    /// Returns the violation of a state, if it has one.
    fn look_at(&self, state: &[u32]) -> Option<Violation>;

    /// Finds the least state of `level` on this rank that has `successor` as a successor. The states of the level must have been
    /// kept. Called at most once for a level, from the last one back.
    fn predecessor(&mut self, table: &Table<S>, level: usize, successor: &[u32], limits: Limits) -> Result<Option<Vec<u32>>>;
}
