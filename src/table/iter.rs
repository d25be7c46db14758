use super::{Key, Reference, Words};
use crate::Result;
use crate::core::table::RawTable;
use crate::layout::generation::Generation;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Range;

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

    /// Iterates over the vectors in a range of slots, if the table is of this generation.
    pub(super) fn of_slots(raw: &'a RawTable, generation: Generation, slots: Range<u64>) -> Self {
        let part = (Vec::new(), Vec::new());
        Self { raw, generation, next_slot: slots.start, end: slots.end, part, at: 0, keys: PhantomData }
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
        let width = self.raw.width();
        while self.at == self.part.1.len() {
            if self.next_slot == self.end {
                return None;
            }
            let last = self.end.min(self.next_slot + ((16 << 20) / (width as u64 * 4)));
            match self.raw.export(self.generation, self.next_slot..last) {
                Ok(part) => (self.part, self.at, self.next_slot) = (part, 0, last),
                Err(error) => {
                    self.next_slot = self.end;
                    return Some(Err(error));
                }
            }
        }
        let (at, (vectors, references)) = (self.at, &self.part);
        self.at += 1;
        Some(Ok((references[at], K::owned(&vectors[at * width..][..width]))))
    }
}

impl<K: Key> FusedIterator for Iter<'_, K> {}
