use super::{Indexed, Key, Reference, Request, TableBuilder, Words};
use crate::host::zeroed;
use crate::{Device, Result};
use std::fmt;

/// The distinct vectors of a batch, and the number of the distinct vector that each vector equals; see
/// [`TableBuilder::factorize_many`](crate::TableBuilder::factorize_many).
pub struct Factors<K: Key = Words> {
    /// For each vector of the batch, by position, the number of its distinct vector.
    pub numbers: Vec<u64>,
    /// The distinct vectors, one after another, in the order of their numbers.
    pub distinct: Vec<K::Element>,
}

// Implemented by hand: derived implementations would put bounds on `K` instead of `K::Element`.
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

impl<K: Key> TableBuilder<K, Indexed> {
    /// Numbers the distinct vectors of a batch 0, 1, 2, ... in the order of first occurrence, so that equal vectors get equal
    /// numbers. This corresponds to `factorize` of pandas, and to `unique` of NumPy with its inverse, except that NumPy sorts
    /// the values.
    ///
    /// Builds a temporary table with these options that grows. One thread then numbers the distinct vectors in the order of the
    /// batch. Memory: the table; in host memory 16 bytes per vector of the batch and 16 per distinct vector; and the distinct
    /// vectors themselves.
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
    /// The errors of [`build`](Self::build); [`LengthMismatch`](crate::Error::LengthMismatch).
    /// [`TableFull`](crate::Error::TableFull) with its cause if the table cannot grow for lack of memory. Errors that the device
    /// reports, inside [`Stopped`](crate::Error::Stopped) if some vectors were already put.
    pub fn factorize_many(self, device: &Device, vectors: &[K::Element]) -> Result<Factors<K>> {
        let table = self.grows(true).build(device)?;
        let batch = table.find_or_put_many_with(vectors, Request::new().references(true))?;
        batch.complete(&table)?;
        // Indexed by row: one plus the number of the row's vector, or 0 if that vector has not occurred yet.
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
