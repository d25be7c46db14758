use super::{Key, Storage, Table};
use crate::{Batch, Error, Result, Tally};

impl Batch {
    /// Returns the tally, or an error if some vectors are not stored: the table was too full for them, or the batch ended before
    /// they were offered.
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
    /// [`TableFull`](Error::TableFull) if vectors were rejected: those with outcome [`Outcome::Full`](crate::Outcome::Full). All
    /// other vectors that were offered are stored. [`stopped`](Self::stopped) tells whether some vectors were not offered.
    ///
    /// [`Stopped`](Error::Stopped) if no vector was rejected, but some were not offered. All vectors that were offered are
    /// stored.
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
}
