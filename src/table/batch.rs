use crate::{Error, Key, Outcome, Reference, Result, Storage, Table, Tally};

/// The results of one [`find_or_put_many`](Table::find_or_put_many).
///
/// A vector may be [`Full`](Outcome::Full): not stored. [`complete`](Self::complete) makes an error of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "vectors may be `Full`, which is: not stored; `complete` makes an error of that"]
pub struct Batch {
    /// How many vectors had which outcome.
    pub tally: Tally,
    /// The outcome of each vector, by position. Empty unless asked for, and if results went into
    /// [`Buffers`](crate::Buffers) (so are the other two).
    pub outcomes: Vec<Outcome>,
    /// Where each vector is stored, by position (`None` where its outcome is [`Outcome::Full`]); empty unless asked for.
    pub references: Vec<Option<Reference>>,
    /// Where the new vectors are stored, in no order; empty unless asked for.
    pub new_references: Vec<Reference>,
    /// Whether the [progress callback](crate::Request::progress), or an [`error`](Self::error), ended the batch before all of its
    /// vectors were offered. The results are those of the first [`tally.offered()`](Tally::offered) vectors then. Of the others
    /// nothing is known (after an error some may have been stored), which [`complete`](Self::complete) makes an error of, too.
    pub stopped: bool,
    /// What went wrong after something was put. One of these:
    ///
    /// - why a table that [grows](crate::TableBuilder::grows) by itself, or whose keys [relocate](Table::relocate), did not: out
    ///   of memory, say. Vectors then went into the slots that were left, and are [`Full`](Outcome::Full) if there were none;
    /// - why the batch has [`stopped`](Self::stopped);
    /// - why the batch could not find its vectors again after it had made the table grow. References are stale then.
    pub error: Option<Error>,
    /// Vectors of the batch, offered or not.
    pub(crate) given: u64,
}

impl Batch {
    /// The tally, or an error if not all vectors are stored: because the table was too full for some, or because the batch ended
    /// before they were offered.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 1, 10)?;
    /// let vectors: Vec<u32> = (0..1000).collect();
    /// assert_eq!(table.find_or_put_many(&vectors[..9])?.complete(&table)?.new, 9);
    /// assert!(table.find_or_put_many(&vectors)?.complete(&table).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`TableFull`](Error::TableFull). Which vectors were rejected: those whose outcome is [`Outcome::Full`]. All others that
    /// were offered are stored; whether there are others, [`stopped`](Self::stopped) says. If none was rejected and there are,
    /// [`Stopped`](Error::Stopped): all that were offered are stored.
    pub fn complete<K: Key, S: Storage>(&self, table: &Table<K, S>) -> Result<Tally> {
        let tally = self.tally;
        if tally.full == 0 {
            let (offered, given, cause) = (tally.offered(), self.given, || self.error.clone().map(Box::new));
            return if self.stopped { Err(Error::Stopped { offered, given, cause: cause() }) } else { Ok(tally) };
        }
        Err(Error::TableFull {
            rejected: tally.full,
            for_nodes: tally.full_nodes,
            offered: tally.offered(),
            stored: table.len()?,
            slots: table.slots(),
            cause: self.error.clone().map(Box::new),
        })
    }

    /// The positions of the vectors with this outcome.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Outcome;
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// let batch = table.find_or_put_many(&[1, 1, 1, 1, 2, 2])?;
    /// assert_eq!(batch.positions(Outcome::New).count(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    ///
    /// If outcomes were not asked for, or went into [`Buffers`](crate::Buffers): there are none here to tell.
    pub fn positions(&self, outcome: Outcome) -> impl Iterator<Item = usize> + '_ {
        assert!(
            !self.outcomes.is_empty() || self.tally.offered() == 0,
            "the batch has no outcomes: none were asked for (`Request::outcomes`), or they are in its `Buffers`"
        );
        self.outcomes.iter().enumerate().filter(move |(_, of)| **of == outcome).map(|(at, _)| at)
    }
}
