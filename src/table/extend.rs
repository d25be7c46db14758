//! Vectors from iterators, which are offered in batches.

use super::{Key, Storage, Table, TableBuilder, Words};
use crate::core::table::WORDS;
use crate::{Device, Error, Result, Tally};
use bytemuck::{AnyBitPattern, NoUninit};
use std::borrow::Borrow;

/// Bytes of a batch that `extend` collects.
const BATCH_BYTES: usize = 4 << 20;

/// Smallest capacity of a table that is built from an iterator.
const LEAST_CAPACITY: u64 = 1 << 10;

impl<K: Key, S: Storage> Table<K, S> {
    /// Collects the vectors of an iterator in batches of 4 MiB, and stores each batch. Returns the sum of the batches' tallies.
    ///
    /// `vectors`: keys or references to keys; for tables of words, slices, arrays or `Vec`s of `width` words each. The vectors of
    /// a batch are put concurrently, in no order; the batches are put one after another. A batch that is not
    /// [complete](crate::Batch::complete) ends the call with its error. A table built with [`grows(true)`](TableBuilder::grows)
    /// makes room by itself.
    ///
    /// Needs up to 4 MiB of memory besides the table. For a slice, use [`insert_many`](Self::insert_many), which copies nothing.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{BucketTable, Device, TypedTable};
    ///
    /// let squares = TypedTable::<u64>::builder().grows(true).build(&Device::cpu())?;
    /// let tally = squares.extend((0..1000).map(|n| n * n % 97))?;
    /// assert_eq!((tally.offered(), tally.new), (1000, 49));
    ///
    /// let words = BucketTable::new(&Device::cpu(), 2, 100)?;
    /// assert_eq!(words.extend(vec![vec![1, 2], vec![3, 4], vec![1, 2]])?.new, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`TableFull`](crate::Error::TableFull) if vectors of a batch were rejected; its numbers are those of that batch.
    /// [`LengthMismatch`](crate::Error::LengthMismatch) if a vector does not have `width` words: no vector of its batch is put.
    /// Otherwise the errors of [`find_or_put_many`](Self::find_or_put_many). The vectors of earlier batches are stored, those of
    /// later ones have not been taken from the iterator.
    pub fn extend<I>(&self, vectors: I) -> Result<Tally>
    where
        I: IntoIterator,
        I::Item: Borrow<K::Borrowed>,
    {
        let vectors = vectors.into_iter();
        let of_one = K::elements(self.width());
        let most = BATCH_BYTES / (4 * self.width()) * of_one;
        let mut batch: Vec<K::Element> = Vec::new();
        batch
            .try_reserve((vectors.size_hint().0.saturating_mul(of_one)).min(most))
            .map_err(|error| Error::no_host_memory((most * size_of::<K::Element>()) as u64, error.to_string()))?;
        let mut sum = Tally::default();
        for vector in vectors {
            let elements = K::as_elements(vector.borrow());
            if elements.len() != of_one {
                return Err(Error::LengthMismatch { what: WORDS, given: elements.len(), needed: of_one });
            }
            batch.extend_from_slice(elements);
            if batch.len() == most {
                sum += self.insert_many(&batch)?;
                batch.clear();
            }
        }
        sum += self.insert_many(&batch)?;
        Ok(sum)
    }
}

impl<S: Storage> Table<Words, S> {
    /// Builds a table that grows by itself, and stores the vectors of an iterator, `width` words each.
    ///
    /// The first capacity follows from the lower bound of the iterator's size.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// let table = warpset::BucketTable::from_iter(&warpset::Device::cpu(), 2, [[1, 2], [3, 4], [1, 2]])?;
    /// assert_eq!(table.len()?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`TableBuilder::build`] and [`Table::extend`]. After an error there is no table.
    pub fn from_iter<I>(device: &Device, width: usize, vectors: I) -> Result<Self>
    where
        I: IntoIterator,
        I::Item: Borrow<[u32]>,
    {
        Self::builder(width).build_from_iter(device, vectors)
    }
}

impl<K: NoUninit + AnyBitPattern, S: Storage> Table<K, S> {
    /// Builds a table that grows by itself, and stores the keys of an iterator.
    ///
    /// The first capacity follows from the lower bound of the iterator's size.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// let table = warpset::TypedTable::<u64>::from_iter(&warpset::Device::cpu(), [7, 8, 7])?;
    /// assert_eq!(table.len()?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`TableBuilder::build`] and [`Table::extend`]. After an error there is no table.
    pub fn from_iter<I>(device: &Device, keys: I) -> Result<Self>
    where
        I: IntoIterator,
        I::Item: Borrow<K>,
    {
        Self::builder().build_from_iter(device, keys)
    }
}

impl<K: Key, S: Storage> TableBuilder<K, S> {
    /// Builds a table that grows, with capacity for the lower bound of the iterator's size, and puts its vectors.
    fn build_from_iter<I>(self, device: &Device, vectors: I) -> Result<Table<K, S>>
    where
        I: IntoIterator,
        I::Item: Borrow<K::Borrowed>,
    {
        let vectors = vectors.into_iter();
        // At fill 0.7 searches are short.
        let capacity = (vectors.size_hint().0 as u64).saturating_mul(10) / 7;
        let table = self.capacity(capacity.max(LEAST_CAPACITY)).grows(true).build(device)?;
        table.extend(vectors)?;
        Ok(table)
    }
}
