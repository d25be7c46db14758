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
/// Vectors are `width` 32-bit words. All bit patterns are legal, and two vectors are equal if their bytes are. Slices of vectors
/// hold them one after another: words row-major, or keys.
///
/// # Concurrency
///
/// `Send + Sync`; all operations take `&self`. Any number of host threads may run any of them at once. Each find-or-put of a
/// vector takes effect at one point between its call and its return. Of all calls that ever offer a vector, exactly one gets
/// [`Outcome::New`](crate::Outcome::New). A lookup that overlaps with the put of the same vector may or may not see it.
///
/// No operation waits for another, with these exceptions. [`clear`](Self::clear), a [`reserve_total`](Self::reserve_total) that
/// grows, [`relocate`](Self::relocate), [`retain`](Self::retain), [`save`](Self::save) and [`truncate`](Self::truncate) wait for
/// running operations and block new ones. On a GPU, reading back, iterating and statistics free buffers at their end, for which
/// the driver waits until all submitted work is done.
///
/// A call that would wait for its own thread is the error [`SelfDeadlock`](crate::Error::SelfDeadlock); for example, if the
/// thread holds [rows](Self::rows) or runs a callback: [what a thread holds](crate::threads_and_streams#what-a-thread-holds).
///
/// # Handles
///
/// A `Table` is a handle: [`clone`](Clone::clone) makes another one of the same table, at the cost of counting it. The table is
/// dropped with its last handle, and with the last array of its [`Values`](crate::Values).
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
/// [`bytes`](Self::bytes) for the slots and nodes. On a GPU, batches from host slices pass through buffers, the *stages*, which
/// all tables of the GPU share and which are kept until the last table is dropped: [How host batches are
/// staged](crate::host_batches#how-host-batches-are-staged) has their number and their sizes.
///
/// # Small batches
///
/// Besides its searches, a call costs some 150 to 250 ns on a CPU, and on a GPU two copies, a kernel and a wait. Offer vectors
/// by the thousand. [`insert`](Self::insert) and [`contains`](Self::contains) are calls for one vector, at that price;
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
    /// A handle of a table. A key type that no such table can have is found here when a program is compiled.
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
