//! The typed shell of a table.

use crate::core::table::RawTable;
use std::marker::PhantomData;
use std::sync::Arc;

/// A concurrent set of vectors of one width, with find-or-put.
///
/// `K` says what vectors are to the caller: [`Words`](crate::Words) (a [`VectorTable`](crate::VectorTable)), or a plain data
/// type of yours (a [`TypedTable`](crate::TypedTable)). `S` says how they are stored: [`BucketTable`](crate::BucketTable),
/// [`TreeTable`](crate::TreeTable), [`RootTable`](crate::RootTable), [`CompactTreeTable`](crate::CompactTreeTable) and
/// [`IndexedTable`](crate::IndexedTable) are the names of what there is.
///
/// Vectors are `width` 32-bit words; all bit patterns are legal, and two vectors are equal when their bytes are. Slices of
/// vectors hold them one after another: words row-major, or keys.
///
/// # Concurrency
///
/// `Send + Sync`; all operations take `&self`. Any number of host threads may be in any of them at once; each find-or-put of a
/// vector takes effect at one point between its call and its return, and of all calls that ever offer a vector exactly one gets
/// [`Outcome::New`](crate::Outcome::New). A lookup that overlaps with the put of the same vector may or may not see it.
///
/// No operation waits for another, with these exceptions. [`clear`](Self::clear), [`grow`](Self::grow), a
/// [`reserve`](Self::reserve) that grows, [`relocate`](Self::relocate), [`save`](Self::save) and
/// [`truncate`](Self::truncate) wait for those under way and hold up those that come. On a GPU, reading back, iterating and
/// statistics free buffers at their end, for which the driver waits until work under way is done.
///
/// A call that would wait for its own thread, which holds [rows](Self::rows), say, or is in a callback, is the error
/// [`SelfDeadlock`](crate::Error::SelfDeadlock): [what a thread holds](crate::threads_and_streams#what-a-thread-holds).
///
/// # Memory
///
/// [`bytes`](Self::bytes) for the slots and nodes. On a GPU, batches from host slices pass through buffers, the *stages* that all
/// tables of the GPU share: up to 4 for a batch, and 12 in all besides the first one of each batch. Each has at most 20 MiB of
/// device memory, and as much pinned memory of the host (52 MiB with all results, 76 MiB with parents and masks besides). They
/// are kept for later batches until the last table is dropped. Where there is less memory, fewer and smaller ones are made ([How
/// host batches are staged](crate::host_batches#how-host-batches-are-staged)).
///
/// # Small batches
///
/// A call costs some 300 to 480 ns on a CPU besides its searches, and on a GPU two copies, a kernel and a wait: offer vectors by
/// the thousand.
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
pub struct Table<K, S> {
    /// Shared with the arrays of values beside its rows.
    pub(crate) raw: Arc<RawTable>,
    pub(crate) marker: PhantomData<fn(K) -> (K, S)>,
}
