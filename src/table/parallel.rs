//! Iteration over a table by the threads of rayon.

use super::{Iter, Key, Reference, Storage, Table};
use crate::Result;
use crate::core::table::RawTable;
use crate::layout::generation::Generation;
use rayon::iter::ParallelIterator;
use rayon::iter::plumbing::{Folder, UnindexedConsumer, UnindexedProducer, bridge_unindexed};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// Smallest part that a thread takes: slots for this many bytes of vectors.
const PART_BYTES: u64 = 1 << 20;

/// Parallel iterator over the vectors of a table; see [`Table::par_iter`](crate::Table::par_iter).
pub struct ParIter<'a, K> {
    slots: Slots<'a, K>,
}

/// A range of slots of a table of this generation.
struct Slots<'a, K> {
    raw: &'a RawTable,
    generation: Generation,
    range: Range<u64>,
    keys: PhantomData<fn() -> K>,
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Iterates over all stored vectors with their references, with the threads of rayon, in no order. Vectors that are put
    /// during the iteration may be missed, as with [`iter`](Self::iter). Each thread fetches parts of at least 1 MiB of slots
    /// from the device.
    ///
    /// An item is an error if the device reports one, or if the table grew, was cleared or relocated keys during the iteration.
    /// The error ends the part that it comes from. Every part that a thread takes after such a change has an error of its own.
    ///
    /// The [rows](Table::rows) of an [`IndexedTable`](crate::IndexedTable), and [values](crate::Values::view), are slices, and
    /// rayon iterates over any slice: `table.rows()?.par_iter()`, or, for tables of words, `table.rows()?.par_chunks(width)`.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use rayon::prelude::*;
    /// use warpset::{Device, Indexed, TypedTable};
    ///
    /// let table = TypedTable::<u64>::from_iter(&Device::cpu(), 0..1000)?;
    /// let sum = table.par_iter().map(|row| row.map(|(_, key)| key)).try_reduce(|| 0, |a, b| Ok(a + b))?;
    /// assert_eq!(sum, 499_500);
    ///
    /// let rows = TypedTable::<u64, Indexed>::from_iter(&Device::cpu(), 0..1000)?;
    /// assert_eq!(rows.rows()?.par_iter().sum::<u64>(), 499_500);
    /// # Ok(()) }
    /// ```
    pub fn par_iter(&self) -> ParIter<'_, K> {
        let raw = &*self.raw;
        let (generation, end) = raw.generation_and_slots();
        ParIter { slots: Slots { raw, generation, range: 0..end, keys: PhantomData } }
    }
}

impl<K> fmt::Debug for ParIter<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParIter").field("slots", &self.slots.range).finish_non_exhaustive()
    }
}

impl<K: Key<Owned: Send>> ParallelIterator for ParIter<'_, K> {
    type Item = Result<(Reference, K::Owned)>;

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        bridge_unindexed(self.slots, consumer)
    }
}

impl<K: Key<Owned: Send>> UnindexedProducer for Slots<'_, K> {
    type Item = Result<(Reference, K::Owned)>;

    fn split(self) -> (Self, Option<Self>) {
        let Range { start, end } = self.range;
        let least = (PART_BYTES / (self.raw.width() as u64 * 4)).max(1);
        if end - start < 2 * least {
            return (self, None);
        }
        let middle = start + (end - start) / 2;
        let part = |range| Self { range, ..self };
        (part(start..middle), Some(part(middle..end)))
    }

    fn fold_with<F: Folder<Self::Item>>(self, folder: F) -> F {
        folder.consume_iter(Iter::<K>::of_slots(self.raw, self.generation, self.range))
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    //! Keeps this promise of the documentation of `Table::par_iter`:
    //!
    //! - Rayon iterates over each vector once. A part that begins after a change of the table returns an error.

    use crate::{BucketTable, CompactTreeTable, Device, Error, Indexed, Key, Result, RootTable, Storage, Table, TypedTable};
    use rayon::iter::ParallelIterator;
    use std::collections::BTreeMap;
    use std::fmt::Debug;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// More slots than one part has.
    const CAPACITY: u64 = 1 << 20;

    fn is_as_by_one_thread<K: Key<Owned: Send + Ord + Debug>, S: Storage>(table: &Table<K, S>) {
        let expected: BTreeMap<_, _> = table.iter().collect::<Result<_>>().unwrap();
        let found: Vec<_> = table.par_iter().collect::<Result<_>>().unwrap();
        assert_eq!(found.len(), expected.len(), "none comes twice");
        assert!(found.into_iter().collect::<BTreeMap<_, _>>() == expected);
    }

    #[test]
    fn all_vectors_come_once() {
        let device = Device::cpu();
        let keys = RootTable::builder().key_bits(40).capacity(CAPACITY).build(&device).unwrap();
        keys.extend((0..100_000).map(|key: u64| key * key)).unwrap();
        is_as_by_one_thread(&keys);
        let trees = CompactTreeTable::builder(6).capacity(CAPACITY).build(&device).unwrap();
        trees.extend((0..10_000).map(|number| [number; 6])).unwrap();
        is_as_by_one_thread(&trees);
        let rows = TypedTable::<[u32; 2], Indexed>::builder().capacity(CAPACITY).build(&device).unwrap();
        rows.extend((0..200_000).map(|number| [number, !number])).unwrap();
        is_as_by_one_thread(&rows);
        is_as_by_one_thread(&BucketTable::new(&device, 3, CAPACITY).unwrap());
    }

    /// Each part that begins after a change of the table returns an error.
    #[test]
    fn a_change_is_an_error_of_each_part_that_begins_later() {
        let table = TypedTable::<u64>::builder().capacity(CAPACITY).build(&Device::cpu()).unwrap();
        table.extend(0..1000).unwrap();
        let all = table.par_iter();
        table.clear().unwrap();
        let cleared = AtomicBool::new(false);
        all.for_each(|row| {
            assert!(matches!(row, Err(Error::ChangedDuringIteration)));
            cleared.store(true, Ordering::Relaxed);
        });
        assert!(cleared.into_inner());
    }
}
