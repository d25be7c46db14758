use super::{Indexed, Key, Reference, Request, TableBuilder, Words};
use crate::host::zeroed;
use crate::{Device, Result};
use std::fmt;

/// The distinct vectors of a batch, and which of them each vector is; see
/// [`TableBuilder::factorize_many`](crate::TableBuilder::factorize_many).
pub struct Factors<K: Key = Words> {
    /// For each vector of the batch, by position, the number of its value.
    pub numbers: Vec<u64>,
    /// The values, one after another: that of number 0 first.
    pub distinct: Vec<K::Element>,
}

// By hand: all of these want something of the elements, and nothing of `K`.
impl<K: Key> Clone for Factors<K> {
    fn clone(&self) -> Self {
        Self { numbers: self.numbers.clone(), distinct: self.distinct.clone() }
    }
}

impl<K: Key> PartialEq for Factors<K>
where
    K::Element: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        self.numbers == other.numbers && self.distinct == other.distinct
    }
}

impl<K: Key> Eq for Factors<K> where K::Element: Eq {}

impl<K: Key> fmt::Debug for Factors<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Factors").field("numbers", &self.numbers.len()).field("distinct", &self.distinct.len()).finish()
    }
}

impl<K: Key> TableBuilder<Indexed, K> {
    /// Gives equal vectors of a batch equal numbers, and different ones different: 0, 1, 2, ... in the order in which values
    /// first occur. That is `factorize` of pandas, and `unique` of NumPy with its inverse, which orders values by size instead.
    ///
    /// Makes a table of these options, which grows, for this batch only. One thread then numbers the values in the order of the
    /// batch. Takes the table, 16 bytes a vector of the batch and 16 a value of the host's memory besides, and the values.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, IndexedTable};
    ///
    /// let rows = [7, 7, /**/ 8, 8, /**/ 7, 7];
    /// let factors = IndexedTable::builder(2).factorize_many(&Device::cpu(), &rows)?;
    /// assert_eq!(factors.numbers, [0, 1, 0]);
    /// assert_eq!(factors.distinct, [7, 7, /**/ 8, 8]);
    /// assert_eq!(factors.clone(), factors);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build); [`RaggedVectors`](crate::Error::RaggedVectors); [`TableFull`](crate::Error::TableFull) with its
    /// cause if there is no memory for the table to grow; or what the device reports, in [`Stopped`](crate::Error::Stopped) if
    /// some were put.
    pub fn factorize_many(self, device: &Device, vectors: &[K::Element]) -> Result<Factors<K>> {
        let table = self.grows(true).build(device)?;
        let batch = table.find_or_put_many_with(vectors, Request::new().references(true))?;
        batch.complete(&table)?;
        // By row: one more than the number of its value, or 0 before that has occurred.
        let rows = batch.references.iter().flatten().map(|reference| reference.slot() + 1).max().unwrap_or(0);
        let mut number_of = zeroed::<u64>(rows as usize)?;
        let mut numbers = zeroed::<u64>(batch.references.len())?;
        let mut values: Vec<Reference> = Vec::with_capacity(batch.tally.new as usize);
        for (number, reference) in numbers.iter_mut().zip(&batch.references) {
            let reference = reference.as_ref().expect("a batch that is complete has a reference for each vector");
            let one_more = &mut number_of[reference.slot() as usize];
            if *one_more == 0 {
                values.push(*reference);
                *one_more = values.len() as u64;
            }
            *number = *one_more - 1;
        }
        Ok(Factors { numbers, distinct: table.get_many(&values)? })
    }
}
