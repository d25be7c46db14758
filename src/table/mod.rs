//! Tables as callers see them.

mod batch;
mod builder;
pub(crate) mod columns;
mod extend;
mod factorize;
mod iter;
pub(crate) mod key;
#[cfg(feature = "rayon")]
mod parallel;
mod retain;
mod rows;
mod saved;
mod single;
mod storage;
mod typed;
mod values;

pub use crate::core::request::Request;
pub use crate::core::results::Batch;
pub use crate::core::results::Buffers;
pub use crate::core::stats::Stats;
pub use builder::TableBuilder;
pub use columns::Columns;
pub use factorize::Factors;
pub use iter::Iter;
pub use key::{Key, Words};
#[cfg(feature = "rayon")]
pub use parallel::ParIter;
pub use rows::Rows;
pub use storage::{
    Bucket, BucketTable, CompactTree, CompactTreeTable, Erased, Indexed, IndexedTable, Nodes, Root, RootTable, Storage, Tree,
    TreeTable, TypedTable, VectorTable,
};
pub use typed::Table;
pub use values::{Values, ValuesView};

use crate::{Device, MemoryLimit, Reference, Result, Spec, Tally};
use bytemuck::{AnyBitPattern, NoUninit};
use key::{elements, words};
use std::fmt;

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<VectorTable<Bucket>>();
    is_shared::<VectorTable<Tree>>();
    is_shared::<RootTable>();
    is_shared::<CompactTreeTable>();
    is_shared::<IndexedTable>();
};

impl<S: Storage> Table<Words, S> {
    /// Builds a table of vectors of `width` words with at least `capacity` slots. It does not grow by itself. A table that grows:
    /// `BucketTable::builder(width).grows(true).build(&device)?`.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{BucketTable, Device};
    ///
    /// let table = BucketTable::new(&Device::cpu(), 2, 100)?;
    /// assert!(BucketTable::new(&Device::cpu(), 0, 100).is_err());
    /// # assert_eq!(table.len()?, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`TableBuilder::build`].
    pub fn new(device: &Device, width: usize, capacity: u64) -> Result<Self> {
        Self::builder(width).capacity(capacity).build(device)
    }

    /// Returns a builder for a table of vectors of `width` words.
    pub fn builder(width: usize) -> TableBuilder<Words, S> {
        TableBuilder::of_width(width)
    }
}

impl<K: NoUninit + AnyBitPattern, S: Storage> Table<K, S> {
    /// Words per key.
    pub const WIDTH: usize = <K as Key>::WIDTH.expect("a key has a width");

    /// Builds a table of keys with at least `capacity` slots. It does not grow by itself. A table that grows:
    /// `TypedTable::<K>::builder().grows(true).build(&device)?`.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// let keys = warpset::TypedTable::<u64>::new(&warpset::Device::cpu(), 100)?;
    /// assert_eq!(keys.find_or_put_many(&[7, 8, 7])?.tally.new, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`TableBuilder::build`].
    pub fn new(device: &Device, capacity: u64) -> Result<Self> {
        Self::builder().capacity(capacity).build(device)
    }

    /// Returns a builder for a table of keys.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, TypedTable};
    ///
    /// let keys = TypedTable::<[u32; 3]>::builder().capacity(100).grows(true).build(&Device::cpu())?;
    /// assert_eq!(keys.width(), 3);
    /// # Ok(()) }
    /// ```
    pub fn builder() -> TableBuilder<K, S> {
        TableBuilder::of_width(Self::WIDTH)
    }
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Erases the kind from the type of this table. A program that chooses the kind at run time then compiles its own generic
    /// code once, not once for each kind. The library's own code does not depend on this type anyway.
    #[doc(hidden)]
    pub fn erased(self) -> Table<K, Erased> {
        Table::of(self.raw)
    }

    /// Returns a second handle of this table, which has the calls for indexed tables. `None` if the table is of another kind.
    #[doc(hidden)]
    pub fn indexed(&self) -> Option<Table<K, Indexed>> {
        self.spec().is_indexed().then(|| Table::of(self.raw.clone()))
    }

    /// Words per vector.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// assert_eq!(table.width(), 2);
    /// # Ok(()) }
    /// ```
    pub fn width(&self) -> usize {
        self.raw.width()
    }

    /// The device that holds the table.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// assert!(!table.device().is_gpu());
    /// # Ok(()) }
    /// ```
    pub fn device(&self) -> &Device {
        &self.raw.device
    }

    /// The spec that the table's kernels were compiled for. Growth may change it: in a [`CompactTreeTable`], and in an
    /// [`IndexedTable`] that grows beyond 2^24 slots. Kernels of your own are valid only for the spec that they were
    /// [compiled](Self::compile) for.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// assert_eq!((table.spec().width(), table.spec().slot_words()), (2, 2));
    /// # Ok(()) }
    /// ```
    pub fn spec(&self) -> Spec {
        self.raw.spec()
    }

    /// Number of slots: the requested capacity, rounded up.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// assert!(table.slots() >= 100);
    /// # Ok(()) }
    /// ```
    pub fn slots(&self) -> u64 {
        self.raw.slots()
    }

    /// Bytes of the slots, and of the node table if there is one. For an [`IndexedTable`]: bytes of its index and of the rows
    /// that have memory. On a CPU these are the rows in use; on a GPU slightly more.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// assert_eq!(table.bytes(), table.slots() * 2 * 4);
    /// # Ok(()) }
    /// ```
    pub fn bytes(&self) -> u64 {
        self.raw.bytes()
    }

    /// Number of stored vectors. Exact once the operations that put them have returned (and streams are synchronised).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[1, 1, 2, 2, 1, 1])?.complete(&table)?;
    /// assert_eq!(table.len()?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors that the device reports.
    pub fn len(&self) -> Result<u64> {
        Ok(self.raw.stored("len")?[0])
    }

    /// Number of stored nodes: 0 in a bucket table. Exact under the same condition as [`len`](Self::len).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::TreeTable::new(&warpset::Device::cpu(), 4, 100)?;
    /// table.find_or_put_many(&[1, 2, 3, 4, /**/ 1, 2, 5, 6])?.complete(&table)?;
    /// assert_eq!(table.nodes()?, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors that the device reports.
    pub fn nodes(&self) -> Result<u64> {
        Ok(self.raw.stored("nodes")?[1])
    }

    /// Whether no vector is stored.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// assert!(table.is_empty()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors that the device reports.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Stores the vectors of a slice that are not stored yet. Returns how many were new and how many seen: all of them are stored
    /// now.
    ///
    /// Same as [`find_or_put_many`](Self::find_or_put_many) without outcomes, followed by [`complete`](Batch::complete). A table
    /// built with [`grows(true)`](TableBuilder::grows) makes room by itself.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, Error, TypedTable};
    ///
    /// let table = TypedTable::<u64>::builder().grows(true).build(&Device::cpu())?;
    /// let tally = table.insert_many(&[7, 8, 7])?;
    /// assert_eq!((tally.new, tally.seen), (2, 1));
    ///
    /// let small = TypedTable::<u64>::new(&Device::cpu(), 10)?;
    /// let keys: Vec<u64> = (0..1000).collect();
    /// let error = small.insert_many(&keys).unwrap_err(); // "the table is full: ..."
    /// let Error::TableFull { rejected, offered: 1000, stored, .. } = error else { panic!("{error}") };
    /// assert_eq!((rejected + stored, small.len()?), (1000, stored)); // all but `rejected` are stored
    ///
    /// small.reserve_total(2000)?;
    /// assert_eq!(small.insert_many(&keys)?.new, rejected); // those that were stored are seen
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`TableFull`](crate::Error::TableFull): some of the vectors found no free slot, and are not stored; all others of the
    ///   slice are stored. The error has the numbers of vectors offered, rejected and stored, and of slots. It also has the cause
    ///   if a table that grows could not grow. Make room by [`reserve_total`](Self::reserve_total), and insert the slice again.
    /// - [`Stopped`](crate::Error::Stopped), from a table that grows: an error ended the call after `offered` of the `given`
    ///   vectors. These are stored; some of the others may be.
    /// - The errors of [`find_or_put_many`](Self::find_or_put_many). Errors of arguments come before anything is stored. After
    ///   any other error, such as a failed GPU, any part of the slice may be stored.
    ///
    /// After any error the table still holds what it held before, and whole vectors only. If the same slice is inserted again,
    /// vectors that the failed call has stored count as seen: a caller who must know which are new uses
    /// [`find_or_put_many`](Self::find_or_put_many).
    pub fn insert_many(&self, vectors: &[K::Element]) -> Result<Tally> {
        self.raw.find_or_put(&words(vectors), Request::new(), None)?.complete(self)
    }

    /// Find-or-put for each vector of a batch: reports whether the vector is stored, and stores it if it is not.
    ///
    /// `vectors`: any number of vectors of `width` words, one after another; duplicates are allowed. The vectors of the batch
    /// are put concurrently, in no order. Blocks until all are done. On a GPU they pass through pinned memory, unless they are
    /// in such memory already ([`PinnedVec`](crate::gpu::PinnedVec)), and transfers overlap with kernels. Returns the tally and
    /// each vector's outcome. [`find_or_put_many_with`](Self::find_or_put_many_with) has further options, and can reuse memory
    /// for results.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Outcome;
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[1, 1])?.complete(&table)?;
    /// let batch = table.find_or_put_many(&[1, 1, 2, 2])?;
    /// assert_eq!(batch.outcomes, [Outcome::Seen, Outcome::New]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LengthMismatch`](crate::Error::LengthMismatch), [`KeyTooLarge`](crate::Error::KeyTooLarge) and
    /// [`StaleReferences`](crate::Error::StaleReferences) before anything is put. Otherwise
    /// [`OutOfMemory`](crate::Error::OutOfMemory) or an error that the device reports; then some of the batch may be stored. A
    /// full table is not an error but an outcome; [`Batch::complete`] turns it into an error.
    pub fn find_or_put_many(&self, vectors: &[K::Element]) -> Result<Batch> {
        self.raw.find_or_put(&words(vectors), Request::new().outcomes(true), None)
    }

    /// Find-or-put for each vector of a batch, with the results that `request` selects.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Request;
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// let batch = table.find_or_put_many_with(&[1, 1, 1, 1], Request::new().references(true))?;
    /// assert_eq!(batch.references[0], batch.references[1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`find_or_put_many`](Self::find_or_put_many).
    pub fn find_or_put_many_with(&self, vectors: &[K::Element], request: Request<'_>) -> Result<Batch> {
        self.raw.find_or_put(&words(vectors), request, None)
    }

    /// Reports whether each vector is stored.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[1, 1, 2, 2])?.complete(&table)?;
    /// assert_eq!(table.contains_many(&[2, 2, 3, 3])?, [true, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`find_or_put_many`](Self::find_or_put_many).
    pub fn contains_many(&self, vectors: &[K::Element]) -> Result<Vec<bool>> {
        self.raw.contains(&words(vectors))
    }

    /// Returns a reference to each vector that is stored.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[1, 1])?.complete(&table)?;
    /// let references = table.locate_many(&[1, 1, 9, 9])?;
    /// assert!(references[0].is_some() && references[1].is_none());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`find_or_put_many`](Self::find_or_put_many).
    pub fn locate_many(&self, vectors: &[K::Element]) -> Result<Vec<Option<Reference>>> {
        self.raw.locate("locate_many", &words(vectors))
    }

    /// Returns the vectors at these references, one after another.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::{BucketTable, Device, Request};
    /// # let table = BucketTable::new(&Device::cpu(), 2, 100)?;
    /// let batch = table.find_or_put_many_with(&[5, 6], Request::new().references(true))?;
    /// assert_eq!(table.get_many(&[batch.references[0].unwrap()])?, [5, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StaleReferences`](crate::Error::StaleReferences) if some references are of an earlier generation or of another table.
    /// [`InvalidReferences`](crate::Error::InvalidReferences) if some refer to no stored vector. Otherwise errors that the
    /// device reports.
    pub fn get_many(&self, references: &[Reference]) -> Result<Vec<K::Element>> {
        Ok(elements(self.raw.get("get_many", references)?))
    }

    /// Returns the reference for a number: the number of a slot, which your kernels and batches in device memory report, or the
    /// number of a row of an [`IndexedTable`](crate::IndexedTable), which may be any number below [`len`](Self::len) if there are
    /// no [holes](Self::holes). The table must have assigned the number after it last grew, was cleared or relocated keys.
    /// (Growth of an indexed table keeps its numbers.) `None` if the table can have no such number. Whether a vector is stored
    /// there is checked when the reference is used.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[5, 6])?.complete(&table)?;
    /// let reference = table.locate_many(&[5, 6])?[0].unwrap();
    /// assert_eq!(table.reference(reference.slot()), Some(reference));
    /// assert_eq!(table.reference(table.slots()), None);
    /// # Ok(()) }
    /// ```
    pub fn reference(&self, slot: u64) -> Option<Reference> {
        self.raw.reference(slot)
    }

    /// Removes every vector and makes all references stale. Waits for running operations (on a GPU, for all its streams). To
    /// remove only some vectors, use [`retain`](Self::retain).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[1, 1])?.complete(&table)?;
    /// table.clear()?;
    /// assert_eq!(table.contains_many(&[1, 1])?, [false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SelfDeadlock`](crate::Error::SelfDeadlock), or errors that the device reports.
    pub fn clear(&self) -> Result<()> {
        self.raw.clear()
    }

    /// Ensures that the table has at least `slots` slots in all, occupied ones included. (`reserve` of the standard library's
    /// collections takes the number of additional elements instead.) Does nothing if the table has that many slots already, so
    /// threads that request the same number at once make it grow once. For n vectors, 10 / 7 n slots or more keep searches short;
    /// in fewer than 1.05 n slots, vectors may be [`Full`](crate::Outcome::Full).
    ///
    /// Growth moves every vector into a larger table and makes all references stale. (An [`IndexedTable`] moves no vector and
    /// keeps its references: it only builds a new index.) Growth waits for running operations (on a GPU, for all its streams),
    /// and needs memory for the old and the new table (or index) at once. A [cuckoo](TableBuilder::cuckoo) table relocates keys
    /// in the larger table if some find no slot, as batches do.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.insert_many(&[1, 1, 2, 2])?;
    /// table.reserve_total(10_000)?;
    /// let slots = table.slots();
    /// table.reserve_total(10_000)?; // does nothing: the table has them
    /// assert!(slots >= 10_000 && table.slots() == slots);
    /// assert_eq!(table.contains_many(&[1, 1, 2, 2])?, [true, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SelfDeadlock`](crate::Error::SelfDeadlock) and [`OutOfMemory`](crate::Error::OutOfMemory);
    /// [`OutOfRange`](crate::Error::OutOfRange) if no table has that many slots. [`TableFull`](crate::Error::TableFull) if a
    /// nearly full table grows by so little that a vector finds no free slot in the larger one (in a cuckoo table: even after
    /// relocation). Otherwise errors that the device reports. After an error the table is unchanged.
    pub fn reserve_total(&self, slots: u64) -> Result<()> {
        self.raw.reserve("reserve_total", slots)
    }

    /// Grows the table to the next size of a table that [grows by itself](TableBuilder::grows): by a factor of four while it is
    /// small against the limit, then by two, and finally to all the rest of the memory, as [`MemoryLimit`] describes. The node
    /// table grows if it is fuller than the slots for vectors, and on a CPU if more slots need more nodes. Returns false, and
    /// changes nothing, if the limit permits no table that is a quarter larger, or 3 % larger if this one is nearly full.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::{BucketTable, Device, MemoryLimit};
    /// let table = BucketTable::builder(4).capacity(1000).build(&Device::cpu())?;
    /// let limit = MemoryLimit::Reserved(100_000);
    /// while table.grow_within(limit)? {}
    /// // Old and new table together never took more.
    /// assert!(table.bytes() > 80_000 && table.bytes() < 100_000);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`reserve_total`](Self::reserve_total), and [`MemoryLimit`](crate::Error::MemoryLimit) if the table cannot
    /// grow in place after all, and the limit permits no second table. After an error the table is unchanged.
    pub fn grow_within(&self, limit: MemoryLimit) -> Result<bool> {
        self.raw.grow_next(limit)
    }

    /// Sets the memory that the table may take if it [grows by itself](TableBuilder::grows), as
    /// [`TableBuilder::memory`] does. A loaded table has no limit until this is called.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::{BucketTable, Device, MemoryLimit};
    /// let device = Device::cpu();
    /// let mut file = Vec::new();
    /// BucketTable::builder(1).capacity(1000).grows(true).build(&device)?.save(&mut file)?;
    ///
    /// let table = BucketTable::load(&device, &file[..])?;
    /// table.set_memory(MemoryLimit::Reserved(1 << 16)); // 16,384 slots of 4 bytes
    /// let batch = table.find_or_put_many(&(0..20_000).collect::<Vec<u32>>())?;
    /// assert!(batch.tally.full > 0 && table.bytes() <= 1 << 16);
    /// # Ok(()) }
    /// ```
    pub fn set_memory(&self, limit: MemoryLimit) {
        self.raw.set_memory(limit);
    }

    /// Number of vectors that the table is certain to hold when it has grown as far as `limit` permits: 95 % of its slots. The
    /// table usually holds some more. In a tree table the number is a forecast: how many nodes vectors need is estimated from the
    /// nodes stored so far.
    ///
    /// # Errors
    ///
    /// Errors that the device reports.
    pub fn vectors_within(&self, limit: MemoryLimit) -> Result<u64> {
        self.raw.vectors_within(limit)
    }

    /// Returns how many bytes of [`MemoryLimit::Reserved`] a table with the options of this one needs to hold this number of
    /// vectors, if it begins small. `None` if no table can hold that many. In a tree table the result is a forecast, as that of
    /// [`vectors_within`](Self::vectors_within) is.
    ///
    /// ```
    /// # use warpset::{BucketTable, Device, MemoryLimit};
    /// # fn main() -> Result<(), warpset::Error> {
    /// let table = BucketTable::builder(2).capacity(1000).build(&Device::cpu())?;
    /// let bytes = table.memory_for(1_000_000)?.unwrap();
    /// assert!((8_000_000..9_200_000).contains(&bytes));
    /// assert!(table.vectors_within(MemoryLimit::Reserved(bytes))? >= 990_000);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors that the device reports.
    pub fn memory_for(&self, vectors: u64) -> Result<Option<u64>> {
        self.raw.memory_for(vectors)
    }

    /// Number of slots for nodes: 0 in a table without trees.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let device = warpset::Device::cpu();
    /// let table = warpset::TreeTable::builder(8).capacity(1000).nodes(100).build(&device)?;
    /// assert!(table.node_slots() >= 100 && table.node_slots() < 200);
    /// # Ok(()) }
    /// ```
    pub fn node_slots(&self) -> u64 {
        self.raw.size().nodes
    }

    /// Grows the node table of a tree table to `nodes` slots in all, if it has fewer. The number of slots for vectors does not
    /// change, unless roots that refer to more nodes no longer fit the slots. [`reserve_total`](Self::reserve_total) enlarges
    /// both in proportion. Use this function if vectors are rejected only because the node table is full
    /// ([`Tally::full_nodes`](crate::Tally::full_nodes)). Does nothing in a table without trees.
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let device = warpset::Device::cpu();
    /// let table = warpset::TreeTable::builder(8).capacity(1000).nodes(100).build(&device)?;
    /// let slots = table.slots();
    /// table.reserve_nodes(10_000)?;
    /// assert!(table.node_slots() >= 10_000 && table.slots() == slots);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`reserve_total`](Self::reserve_total); [`OutOfRange`](crate::Error::OutOfRange) if a node table cannot have
    /// that many slots. After an error the table is unchanged.
    pub fn reserve_nodes(&self, nodes: u64) -> Result<()> {
        self.raw.reserve_nodes(nodes)
    }

    /// Measures how full the table is, and how long its searches are. Reads the whole table.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[1, 1, 2, 2])?.complete(&table)?;
    /// let stats = table.stats()?;
    /// assert_eq!((stats.stored, stats.longest_probe, stats.probe_lengths[0]), (2, 1, 2));
    /// assert!(stats.fill() < 0.03 && stats.mean_probe() == 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors that the device reports.
    pub fn stats(&self) -> Result<Stats> {
        self.raw.stats()
    }

    /// Iterates over all stored vectors with their references, in no order (for an [`IndexedTable`], in the order of references).
    /// Vectors that are put during the iteration may be missed. `par_iter` (feature `rayon`) iterates with the threads of rayon,
    /// and [`next_part`](Iter::next_part) returns many vectors at once.
    ///
    /// Vectors are fetched from the device in parts of about 16 MiB. An item is an error if the device reports one, or if the
    /// table grew, was cleared or relocated keys during the iteration. Such an item is the last one.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[1, 2, 3, 4])?.complete(&table)?;
    /// let mut vectors = table.iter().map(|row| row.map(|(_, vector)| vector)).collect::<Result<Vec<_>, _>>()?;
    /// vectors.sort();
    /// assert_eq!(vectors, [[1, 2], [3, 4]]);
    /// # Ok(()) }
    /// ```
    pub fn iter(&self) -> Iter<'_, K> {
        Iter::new(&self.raw)
    }
}

impl<K: Key> Table<K, Root> {
    /// Moves keys of a [cuckoo](TableBuilder::cuckoo) table so that its stash has free slots again. Returns the number of keys
    /// moved out of the stash. If the table is not a cuckoo table, returns 0 at once.
    ///
    /// Batches from host slices call this function when keys are rejected. Call it yourself after your kernels, or batches in
    /// device memory, had keys rejected, and offer those keys again. If it moves few keys, the table is full. Waits for running
    /// operations (on a GPU, for all its streams) and blocks new ones; makes all references stale. Needs 9 bytes of memory per
    /// slot of the stash.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::{Device, RootTable};
    /// let table = RootTable::builder().key_bits(30).capacity(1 << 12).cuckoo(true).build(&Device::cpu())?;
    /// let keys: Vec<u64> = (0..4000).map(|key| key * key).collect();
    /// table.find_or_put_many(&keys)?.complete(&table)?;
    /// table.relocate()?;
    /// assert_eq!(table.relocate()?, 0); // all have found slots
    /// assert_eq!(table.len()?, 4000);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SelfDeadlock`](crate::Error::SelfDeadlock) and [`OutOfMemory`](crate::Error::OutOfMemory): nothing was moved. Errors
    /// that the device reports: keys may be without a slot until the next host call that reads keys puts them back, so launch no
    /// kernel of your own before such a call has succeeded. [`KeysWithoutSlot`](crate::Error::KeysWithoutSlot).
    pub fn relocate(&self) -> Result<u64> {
        self.raw.relocate("relocate")
    }
}

impl<K: Key> Table<K, Indexed> {
    /// Removes all vectors from reference number `rows` on, as if they had never been put. Vectors with lower numbers stay, and
    /// keep their references. References to removed vectors become invalid, and may later refer to other vectors. Does nothing
    /// if no vector has such a number. Waits for running operations (on a GPU, for all its streams), and blocks new ones.
    ///
    /// Rebuilds the index from the remaining rows, and needs memory for the old and the new index at once.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// table.find_or_put_many(&[5, 6])?.complete(&table)?;
    /// let mark = table.len()?;
    /// table.find_or_put_many(&[6, 7, 8])?.complete(&table)?;
    /// table.truncate(mark)?;
    /// assert_eq!(table.contains_many(&[5, 6, 7, 8])?, [true, true, false, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SelfDeadlock`](crate::Error::SelfDeadlock), [`OutOfMemory`](crate::Error::OutOfMemory), or errors that the device
    /// reports. [`TableFull`](crate::Error::TableFull) if the index is nearly full and the remaining rows, put in another order
    /// than before, find no free slot. After an error the table is unchanged.
    pub fn truncate(&self, rows: u64) -> Result<()> {
        self.raw.truncate(rows)
    }

    /// Returns the unused numbers (holes) below the number of the last vector, in increasing order.
    ///
    /// Overlapping calls and kernels leave holes: at most one for each thread (on a GPU, lane) that puts at the same time.
    /// [`iter`](Self::iter) skips them. Later batches assign these numbers first, unless told to [leave
    /// them](Request::leave_holes). A batch from a host slice that overlaps with no other call, in a table that no kernel puts
    /// into, closes all holes that it has made itself. The result includes the numbers of vectors that are being put during the
    /// call.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// table.find_or_put_many(&[5, 6, 5])?.complete(&table)?;
    /// assert!(table.holes()?.is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors that the device reports.
    pub fn holes(&self) -> Result<Vec<u64>> {
        self.raw.holes()
    }

    /// Returns all vectors as one slice, in the order of their references: the vector with number i is the i-th. If there are
    /// [holes](Self::holes), the slice ends before the first one.
    ///
    /// On a CPU the slice is the table's own memory. Vectors may be put while the slice is borrowed; the slice does not show
    /// them, and batches leave their holes until the slice is dropped. On a GPU the rows are copied, and no call waits for the
    /// copy to be dropped; `rows_device` gives access without a copy.
    ///
    /// On a CPU, until the rows are dropped, their thread [holds the table](crate::threads_and_streams#what-a-thread-holds).
    /// Calls of other threads that need the table alone, such as `clear`, `reserve_total` and `truncate`, wait. The same calls of
    /// this thread return the error [`SelfDeadlock`](crate::Error::SelfDeadlock), and its batches do not make the table grow. So
    /// drop the rows, or copy what is needed, before a batch for which the table may have to grow. While holding them, do not
    /// wait for another thread that uses the table.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, Indexed, TypedTable};
    ///
    /// let table = TypedTable::<[u32; 2], Indexed>::new(&Device::cpu(), 100)?;
    /// table.find_or_put_many(&[[7, 8], [7, 8]])?.complete(&table)?;
    /// table.find_or_put_many(&[[9, 9]])?.complete(&table)?;
    /// assert_eq!(table.rows()?[..], [[7, 8], [9, 9]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors that the device reports.
    pub fn rows(&self) -> Result<Rows<'_, K>> {
        Rows::of(&self.raw)
    }
}

impl<'a, K: Key, S: Storage> IntoIterator for &'a Table<K, S> {
    type Item = Result<(Reference, K::Owned)>;
    type IntoIter = Iter<'a, K>;

    fn into_iter(self) -> Iter<'a, K> {
        self.iter()
    }
}

impl<K: Key, S: Storage> fmt::Debug for Table<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.raw.options.kind.table())
            .field("width", &self.width())
            .field("slots", &self.slots())
            .field("device", self.device())
            .finish_non_exhaustive()
    }
}
