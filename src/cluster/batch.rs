//! Results of a batch.

use super::record::NUMBERS;
use crate::{Error, Outcome, Result, Tally};

/// Location of a vector of a cluster: its rank, and its reference in that rank's table.
///
/// Valid as long as the contained reference: until the ranks' tables grow, are cleared or relocate keys. Any rank may pass it to
/// [`get_many`](super::Table::get_many). Takes 16 bytes, in an `Option` too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The rank that owns the vector.
    pub rank: u32,
    /// Reference in the owner's table.
    pub reference: crate::Reference,
}

/// Results that a batch reports besides the outcomes. Ranks may request different ones.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::cluster::{Builder, Local, Request};
/// use warpset::{BucketTable, Device};
///
/// let alone = Local::ranks(1).remove(0);
/// let mut set = Builder::new(BucketTable::builder(1).capacity(100)).build(&Device::cpu(), alone)?;
/// let batch = set.find_or_put_many_with(&[5, 6, 5], Request::new().references(true).stored_here(true))?;
/// assert_eq!(batch.references[0], batch.references[2]);
/// assert_eq!(batch.stored_here.len(), 2);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Request {
    pub(super) references: bool,
    pub(super) stored_here: bool,
    pub(super) numbers: [u64; NUMBERS],
}

impl Request {
    /// Requests no results besides the outcomes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the location of each vector: 8 bytes each over the wire.
    pub fn references(mut self, wanted: bool) -> Self {
        self.references = wanted;
        self
    }

    /// Requests the references of vectors that are new in this rank's table: see [`Batch::stored_here`].
    pub fn stored_here(mut self, wanted: bool) -> Self {
        self.stored_here = wanted;
        self
    }

    /// Requests the sums, over all ranks, of the numbers that each rank passes (at most 16), in [`Batch::sums`]. Same as
    /// [`Table::sum`](super::Table::sum), but the numbers need no exchange of their own.
    pub fn sum<const N: usize>(mut self, own: [u64; N]) -> Self {
        const { assert!(N <= NUMBERS, "a record has room for 16 numbers") };
        self.numbers[..N].copy_from_slice(&own);
        self
    }
}

/// Results of a rank's batch.
///
/// A vector may be [`Full`](Outcome::Full): not stored. [`complete`](Self::complete) turns that into an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "vectors may be `Full`, that is, not stored; `complete` turns that into an error"]
pub struct Batch {
    /// Number of vectors of this rank's batch with each outcome. (If equal vectors are [removed](super::Builder::deduplicate) and
    /// lack a node, `full_nodes` counts them only once.)
    pub tally: Tally,
    /// Sums over the batches of all ranks: `total.new` is the growth of the set.
    pub total: Tally,
    /// Sums of the numbers that all ranks passed to [`Request::sum`], wrapped around on overflow; equal on all ranks.
    pub sums: [u64; NUMBERS],
    /// Outcome of each vector, by position.
    pub outcomes: Vec<Outcome>,
    /// Location of each vector, by position (`None` if its outcome is [`Outcome::Full`]); empty unless requested.
    pub references: Vec<Option<Reference>>,
    /// References, in *this* rank's table, of the vectors that any rank offered and that are new here. In no order; empty unless
    /// requested. This is the next level of a breadth-first search in which states stay with their owners.
    pub stored_here: Vec<crate::Reference>,
    /// Number of vectors that are new in this rank's table, offered by any rank. 0 unless [`stored_here`](Self::stored_here) was
    /// requested, from the host or in device memory.
    pub stored_here_count: u64,
    /// The reason why a table of any rank could not grow when it should have. Vectors then used the remaining slots, and are
    /// [`Full`](Outcome::Full) if no slot remained. Equal on all ranks.
    pub error: Option<Error>,
}

impl Batch {
    /// Returns this rank's tally, or an error if a vector of any rank's batch was rejected: all ranks get the error, or none.
    ///
    /// # Errors
    ///
    /// [`TableFull`](Error::TableFull), with the numbers of all ranks, which [`stats`](super::Table::stats) returns. `stats` is
    /// collective and looks at every slot: call it only if `total.full` is not 0, which holds on all ranks or on none.
    pub fn complete(&self, stats: &super::Stats) -> Result<Tally> {
        if self.total.full == 0 {
            return Ok(self.tally);
        }
        Err(Error::TableFull {
            rejected: self.total.full,
            for_nodes: self.total.full_nodes,
            offered: self.total.offered(),
            stored: stats.stored(),
            slots: stats.slots(),
            cause: self.error.clone().map(Box::new),
        })
    }

    /// Positions of the vectors with this outcome.
    pub fn positions(&self, outcome: Outcome) -> impl Iterator<Item = usize> + '_ {
        self.outcomes.iter().enumerate().filter(move |(_, of)| **of == outcome).map(|(at, _)| at)
    }
}
