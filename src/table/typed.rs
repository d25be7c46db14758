//! The typed shell of a table.

use super::{Key, Storage};
use crate::core::table::RawTable;
use std::marker::PhantomData;
use std::sync::Arc;

/// A concurrent set of vectors of one width, with find-or-put.
///
/// `K` is the type of vectors in the interface: [`Words`](crate::Words) (a [`VectorTable`](crate::VectorTable)), or a plain data
/// type of yours (a [`TypedTable`](crate::TypedTable)). `S` is how they are stored. The type names
/// [`BucketTable`](crate::BucketTable), [`TreeTable`](crate::TreeTable), [`RootTable`](crate::RootTable),
/// [`CompactTreeTable`](crate::CompactTreeTable) and [`IndexedTable`](crate::IndexedTable) cover the available storages.
///
/// Vectors are `width` 32-bit words. All bit patterns are legal, and two vectors are equal if their bytes are. A slice of vectors
/// holds one vector after another, as words or as keys.
///
/// # Concurrency
///
/// `Send + Sync`; all operations take `&self`. Any number of host threads may run any of them at once. Each find-or-put of a
/// vector takes effect at one point between its call and its return. Of all calls that ever offer a vector, exactly one gets
/// [`Outcome::New`](crate::Outcome::New). A lookup that overlaps with the put of the same vector may or may not see it.
///
/// No operation waits for another, with these exceptions. [`clear`](Self::clear), a [`reserve_total`](Self::reserve_total) that
/// grows, [`relocate`](Self::relocate), [`retain`](Self::retain), [`save`](Self::save) and [`truncate`](Self::truncate) wait for
/// running operations and block new ones. On a GPU, calls that read back, iterate or compute statistics free buffers at their
/// end; the driver then waits until all submitted work is done.
///
/// A call that would wait for its own thread is the error [`SelfDeadlock`](crate::Error::SelfDeadlock); for example, if the
/// thread holds [rows](Self::rows) or runs a callback: [what a thread holds](crate::threads_and_streams#what-a-thread-holds).
///
/// # Handles
///
/// A `Table` is a handle: [`clone`](Clone::clone) makes another handle of the same table, and only increments a counter. The
/// table is dropped when its last handle and the last array of its [`Values`](crate::Values) have been dropped.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// let table = warpset::TypedTable::<u64>::new(&warpset::Device::cpu(), 100)?;
/// let other = table.clone();
/// std::thread::spawn(move || other.insert(&7)).join().unwrap()?;
/// assert!(table.contains(&7)?);
/// # Ok(()) }
/// ```
///
/// # Memory
///
/// The slots and nodes take [`bytes`](Self::bytes). On a GPU, batches from host slices pass through buffers, the *stages*. All
/// tables of the GPU share the stages, which are kept until the last table is dropped: [How host batches are
/// staged](crate::host_batches#how-host-batches-are-staged) has their number and their sizes.
///
/// # Small batches
///
/// Besides its searches, a call costs some 150 to 250 ns on a CPU, and on a GPU two copies, a kernel and a wait. Offer vectors by
/// the thousand. [`insert`](Self::insert) and [`contains`](Self::contains) pay this cost for each vector;
/// [`extend`](Self::extend) makes batches of an iterator.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{BucketTable, Device, Outcome};
///
/// let table = BucketTable::new(&Device::cpu(), 3, 1_000)?; // vectors of 3 words, room for 1,000 or more
/// let batch = table.find_or_put_many(&[1, 2, 3, /**/ 4, 5, 6, /**/ 1, 2, 3])?;
/// assert_eq!(batch.outcomes[1], Outcome::New);
/// assert_eq!((batch.tally.new, batch.tally.seen, batch.tally.full), (2, 1, 0));
/// assert_eq!(table.len()?, 2);
/// # Ok(()) }
/// ```
pub struct Table<K: Key, S> {
    /// Shared with other handles, and with the arrays of values that belong to its rows.
    pub(crate) raw: Arc<RawTable>,
    pub(crate) marker: PhantomData<fn(K) -> (K, S)>,
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Returns a handle of a table. Does not compile if the size of the key type differs from that of the storage's keys.
    pub(crate) fn of(raw: Arc<RawTable>) -> Self {
        const {
            assert!(
                match (K::WIDTH, S::KEY_WORDS) {
                    (Some(width), Some(words)) => width == words,
                    _ => true,
                },
                "a key of a `RootTable` has 8 bytes, as `u64` has"
            );
        }
        Self { raw, marker: PhantomData }
    }
}

/// Another handle of the same table.
impl<K: Key, S: Storage> Clone for Table<K, S> {
    fn clone(&self) -> Self {
        Self::of(self.raw.clone())
    }
}
