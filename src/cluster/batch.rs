//! Results of a batch.

use super::record::NUMBERS;
use crate::{Error, Outcome, Result, Tally};

/// Where a vector of a cluster is stored: on which rank, and where in that rank's table.
///
/// Valid as long as the reference in it is: until the ranks' tables grow, are cleared or relocate keys. Any rank may give it to
/// [`get_many`](super::Table::get_many). Takes 16 bytes, in an `Option` too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The owner.
    pub rank: u32,
    /// Where the owner's table has it.
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
    /// Nothing else.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where each vector is stored: 8 bytes each over the wire.
    pub fn references(mut self, wanted: bool) -> Self {
        self.references = wanted;
        self
    }

    /// Where this rank's table stores what is new in it: see [`Batch::stored_here`].
    pub fn stored_here(mut self, wanted: bool) -> Self {
        self.stored_here = wanted;
        self
    }

    /// The sums over all ranks of what each passes, at most 16 numbers, in [`Batch::sums`]: as [`Table::sum`](super::Table::sum),
    /// without an exchange of its own.
    pub fn sum<const N: usize>(mut self, own: [u64; N]) -> Self {
        const { assert!(N <= NUMBERS, "a record has room for 16 numbers") };
        self.numbers[..N].copy_from_slice(&own);
        self
    }
}

/// The results of a rank's batch.
///
/// A vector may be [`Full`](Outcome::Full): not stored. [`complete`](Self::complete) makes an error of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "vectors may be `Full`, that is, not stored; `complete` turns that into an error"]
pub struct Batch {
    /// Number of vectors of this rank's batch with each outcome. (Of equal vectors that lacked a node, `full_nodes` counts one if
    /// equal vectors are [removed](super::Builder::deduplicate).)
    pub tally: Tally,
    /// Sums over the batches of all ranks: `total.new` is the growth of the set.
    pub total: Tally,
    /// The sums of what all ranks have passed to [`Request::sum`], wrapped around where they are too large; the same on all.
    pub sums: [u64; NUMBERS],
    /// The outcome of each vector, by position.
    pub outcomes: Vec<Outcome>,
    /// Where each vector is stored, by position (`None` where its outcome is [`Outcome::Full`]); empty unless asked for.
    pub references: Vec<Option<Reference>>,
    /// Where *this* rank's table stores the vectors that it did not store before, whichever rank has offered them, in no order;
    /// empty unless asked for. The next level of a breadth-first search in which states stay with their owners.
    pub stored_here: Vec<crate::Reference>,
    /// How many vectors this rank's table did not store before, whichever rank has offered them; 0 unless
    /// [`stored_here`](Self::stored_here) was asked for, from the host or in device memory.
    pub stored_here_count: u64,
    /// Why tables that should have grown could not, on any rank. Vectors then used the remaining slots, and are
    /// [`Full`](Outcome::Full) if there were none. Equal on all ranks.
    pub error: Option<Error>,
}

impl Batch {
    /// The tally, or an error if a vector of any rank's batch was rejected: the same on all ranks.
    ///
    /// # Errors
    ///
    /// [`TableFull`](Error::TableFull), with the numbers of all ranks, as [`stats`](super::Table::stats) has them. That is
    /// collective and looks at every slot: ask for it only if `total.full` is not 0, which is so on all ranks or on none.
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

    /// The positions of the vectors with this outcome.
    pub fn positions(&self, outcome: Outcome) -> impl Iterator<Item = usize> + '_ {
        self.outcomes.iter().enumerate().filter(move |(_, of)| **of == outcome).map(|(at, _)| at)
    }
}
