use super::key::elements;
use super::{Key, Reference, Words};
use crate::Result;
use crate::core::table::RawTable;
use crate::layout::generation::Generation;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Range;

/// References, and their vectors one after another.
type IterPart<K> = (Vec<Reference>, Vec<<K as Key>::Element>);

/// Iterator over the vectors of a table; see [`Table::iter`](crate::Table::iter).
pub struct Iter<'a, K = Words> {
    raw: &'a RawTable,
    generation: Generation,
    next_slot: u64,
    end: u64,
    part: (Vec<u32>, Vec<Reference>),
    at: usize,
    keys: PhantomData<fn() -> K>,
}

impl<'a, K> Iter<'a, K> {
    pub(super) fn new(raw: &'a RawTable) -> Self {
        let (generation, end) = raw.generation_and_slots();
        Self::of_slots(raw, generation, 0..end)
    }

    /// Iterates over the vectors in a range of slots. Fetching vectors is an error if the table is not of this generation.
    pub(super) fn of_slots(raw: &'a RawTable, generation: Generation, slots: Range<u64>) -> Self {
        let part = (Vec::new(), Vec::new());
        Self { raw, generation, next_slot: slots.start, end: slots.end, part, at: 0, keys: PhantomData }
    }
}

impl<K: Key> Iter<'_, K> {
    /// Returns many of the remaining vectors at once: their references, and the vectors (as words or keys) one after another, in
    /// the same order. `None` if no vector remains. A pass over a large table by parts is several times as fast as by single
    /// items.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[1, 2, 3, 4])?.complete(&table)?;
    /// let (mut parts, mut sum) = (table.iter(), 0);
    /// while let Some(part) = parts.next_part() {
    ///     let (references, words) = part?;
    ///     assert_eq!(words.len(), 2 * references.len());
    ///     sum += words.iter().sum::<u32>();
    /// }
    /// assert_eq!(sum, 10);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of an item of the iterator: see [`Table::iter`](crate::Table::iter).
    pub fn next_part(&mut self) -> Option<Result<IterPart<K>>> {
        if let Err(error) = self.fetch()? {
            return Some(Err(error));
        }
        let (mut words, mut references) = std::mem::take(&mut self.part);
        words.drain(..self.at * self.raw.width());
        references.drain(..self.at);
        self.at = 0;
        Some(Ok((references, elements(words))))
    }

    /// If all vectors of the part have been returned, fetches the next part with a vector. `None` if no vector remains.
    fn fetch(&mut self) -> Option<Result<()>> {
        while self.at == self.part.1.len() {
            if self.next_slot == self.end {
                return None;
            }
            let last = self.end.min(self.next_slot + ((16 << 20) / (self.raw.width() as u64 * 4)));
            match self.raw.export(self.generation, self.next_slot..last) {
                Ok(part) => (self.part, self.at, self.next_slot) = (part, 0, last),
                Err(error) => {
                    self.next_slot = self.end;
                    return Some(Err(error));
                }
            }
        }
        Some(Ok(()))
    }
}

impl<K> fmt::Debug for Iter<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("next_slot", &self.next_slot).field("end", &self.end).finish_non_exhaustive()
    }
}

impl<K: Key> Iterator for Iter<'_, K> {
    type Item = Result<(Reference, K::Owned)>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.fetch()? {
            return Some(Err(error));
        }
        let width = self.raw.width();
        let (at, (vectors, references)) = (self.at, &self.part);
        self.at += 1;
        Some(Ok((references[at], K::owned(&vectors[at * width..][..width]))))
    }
}

impl<K: Key> FusedIterator for Iter<'_, K> {}
