//! Tables as callers see them.

mod batch;
mod builder;
mod factorize;
mod iter;
mod key;
mod rows;
mod saved;
mod storage;
mod typed;
mod values;

pub use crate::core::batch::Batch;
pub use crate::core::batch::Buffers;
pub use crate::core::request::Request;
pub use crate::core::stats::Stats;
pub use builder::TableBuilder;
pub use factorize::Factors;
pub use iter::Iter;
pub use key::{Key, Words};
pub use rows::Rows;
pub use storage::{
    Bucket, BucketTable, CompactTree, CompactTreeTable, Indexed, IndexedTable, Nodes, Plain, Root, RootTable, Storage, Tree,
    TreeTable, TypedTable, VectorTable,
};
pub use typed::Table;
pub use values::{Values, ValuesView};

use crate::{Device, Reference, Result, Spec};
use bytemuck::{AnyBitPattern, NoUninit};
use key::{elements, words};
pub(crate) use key::{elements as key_elements, words as key_words};
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
    /// A table of vectors of `width` words with at least `capacity` slots.
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
    /// As [`TableBuilder::build`].
    pub fn new(device: &Device, width: usize, capacity: u64) -> Result<Self> {
        Self::builder(width).capacity(capacity).build(device)
    }

    /// Chooses more about a table of vectors of `width` words.
    pub fn builder(width: usize) -> TableBuilder<S> {
        TableBuilder::of_width(width)
    }
}

impl<K: NoUninit + AnyBitPattern, S: Storage> Table<K, S> {
    /// Words a key.
    pub const WIDTH: usize = <K as Key>::WIDTH.expect("a key has a width");

    /// A table of keys with at least `capacity` slots.
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
    /// As [`TableBuilder::build`].
    pub fn new(device: &Device, capacity: u64) -> Result<Self> {
        Self::builder().capacity(capacity).build(device)
    }

    /// Chooses more about a table of keys.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, TypedTable};
    ///
    /// let keys = TypedTable::<[u32; 3]>::builder().capacity(100).grows(true).build(&Device::cpu())?;
    /// assert_eq!(keys.width(), 3);
    /// # Ok(()) }
    /// ```
    pub fn builder() -> TableBuilder<S, K> {
        TableBuilder::of_width(Self::WIDTH)
    }
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Words a vector.
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

    /// Where the table is.
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

    /// What its kernels were compiled for. A growth may change it: of a [`CompactTreeTable`], and of an [`IndexedTable`] from up
    /// to 2^24 slots to more. Kernels of your own are good for the spec that they were [compiled](Self::compile) for.
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

    /// How many slots the table has: the capacity asked for, rounded up.
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

    /// Bytes of the slots, and of the node table if there is one. Of an [`IndexedTable`], of its index and of the rows that have
    /// memory: on a CPU those that were given, on a GPU some more.
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

    /// How many vectors are stored. Exact once the operations that put them have returned (and streams are synchronised).
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
    /// What the device reports.
    pub fn len(&self) -> Result<u64> {
        Ok(self.raw.stored("len")?[0])
    }

    /// How many nodes are stored: 0 in a bucket table. Exact as [`len`](Self::len) is.
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
    /// What the device reports.
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
    /// What the device reports.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Find-or-put for each vector of a batch: is it stored, and if not, put it there.
    ///
    /// `vectors`: any number of vectors of `width` words, one after another; duplicates are fine. The batch's vectors are put
    /// concurrently, in no order. Blocks until all are done; on a GPU they pass through pinned memory, unless they are in such
    /// memory already ([`PinnedVec`](crate::gpu::PinnedVec)), and transfers overlap with kernels. Returns the tally and each
    /// vector's outcome; [`find_or_put_many_with`](Self::find_or_put_many_with) for more, and to use memory for results again.
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
    /// [`RaggedVectors`](crate::Error::RaggedVectors), [`Rows`](crate::Error::Rows), [`KeyTooLarge`](crate::Error::KeyTooLarge)
    /// and [`StaleReferences`](crate::Error::StaleReferences) before anything is put. [`Allocation`](crate::Error::Allocation),
    /// [`OutOfMemory`](crate::Error::OutOfMemory) or what the device reports otherwise; then some of the batch may be stored. A
    /// full table is not an error but an outcome; [`Batch::complete`] makes it one.
    pub fn find_or_put_many(&self, vectors: &[K::Element]) -> Result<Batch> {
        self.raw.find_or_put(&words(vectors), Request::new().outcomes(true))
    }

    /// Find-or-put for each vector of a batch, with the results that `request` asks for.
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
    /// As [`find_or_put_many`](Self::find_or_put_many).
    pub fn find_or_put_many_with(&self, vectors: &[K::Element], request: Request<'_>) -> Result<Batch> {
        self.raw.find_or_put(&words(vectors), request)
    }

    /// Whether each vector is stored.
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
    /// As [`find_or_put_many`](Self::find_or_put_many).
    pub fn contains_many(&self, vectors: &[K::Element]) -> Result<Vec<bool>> {
        self.raw.contains(&words(vectors))
    }

    /// Where each vector is stored, if it is.
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
    /// As [`find_or_put_many`](Self::find_or_put_many).
    pub fn locate_many(&self, vectors: &[K::Element]) -> Result<Vec<Option<Reference>>> {
        self.raw.locate("locate_many", &words(vectors))
    }

    /// The vectors at these references, one after another.
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
    /// [`StaleReferences`](crate::Error::StaleReferences) if some are of an earlier generation or another table,
    /// [`InvalidReferences`](crate::Error::InvalidReferences) if some are to no stored vector; or what the device reports.
    pub fn get_many(&self, references: &[Reference]) -> Result<Vec<K::Element>> {
        Ok(elements(self.raw.get("get_many", references)?))
    }

    /// The reference to the vector in the slot of this number, which a kernel of yours, or a batch in device memory, has given
    /// since the table last grew, was cleared or relocated keys. `None` if there is no such slot. Whether a vector is stored
    /// there shows when the reference is used.
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

    /// Removes every vector. Waits for operations under way (on a GPU, for all its streams); makes all references stale.
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
    /// [`SelfDeadlock`](crate::Error::SelfDeadlock), or what the device reports.
    pub fn clear(&self) -> Result<()> {
        self.raw.clear()
    }

    /// Moves every vector into a table of at least `capacity` slots. Waits for operations under way (on a GPU, for all its
    /// streams); makes all references stale. (An [`IndexedTable`] moves none and keeps its references: it only makes a new
    /// index.) Needs memory for both tables (both indexes) at once. [`reserve`](Self::reserve) does nothing where this is an
    /// error.
    ///
    /// A [cuckoo](TableBuilder::cuckoo) table relocates keys in the larger table where some find no slot, as batches do.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[1, 1, 2, 2])?.complete(&table)?;
    /// table.grow(10_000)?;
    /// assert_eq!(table.contains_many(&[1, 1, 2, 2])?, [true, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotLarger`](crate::Error::NotLarger), [`SelfDeadlock`](crate::Error::SelfDeadlock),
    /// [`OutOfMemory`](crate::Error::OutOfMemory), [`TableFull`](crate::Error::TableFull) if a nearly full table grows by so
    /// little that a vector finds no free slot in the larger one (in a cuckoo table: although keys were relocated), or what the
    /// device reports: the table is as it was.
    pub fn grow(&self, capacity: u64) -> Result<()> {
        self.raw.grow(capacity)
    }

    /// Sees to it that the table has so many slots, the taken ones included: grows if it has fewer, as [`grow`](Self::grow) does.
    /// Any number of threads may ask for the same at once: it grows once. For n vectors, 10 / 7 n slots or more keep searches
    /// short; in fewer than 1.05 n, vectors may be [`Full`](crate::Outcome::Full).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// table.reserve(10_000)?;
    /// let slots = table.slots();
    /// table.reserve(10_000)?; // there are
    /// assert!(slots >= 10_000 && table.slots() == slots);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`grow`](Self::grow), but [`NotLarger`](crate::Error::NotLarger).
    pub fn reserve(&self, slots: u64) -> Result<()> {
        self.raw.reserve("reserve", slots)
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

    /// Grows the node table of a tree table to `nodes` slots, if it has fewer. The slots for vectors stay as many, unless roots
    /// of more nodes no longer fit them; [`grow`](Self::grow) and [`reserve`](Self::reserve) enlarge both in proportion. Use this
    /// where vectors are rejected only because nodes are full ([`Tally::full_nodes`](crate::Tally::full_nodes)). Does nothing in
    /// a table without trees.
    ///
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
    /// As [`reserve`](Self::reserve); [`Nodes`](crate::Error::Nodes) if there cannot be that many. The table is as it was.
    pub fn reserve_nodes(&self, nodes: u64) -> Result<()> {
        self.raw.reserve_nodes(nodes)
    }

    /// How full the table is, and how long its searches are. Reads the whole table.
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
    /// What the device reports.
    pub fn stats(&self) -> Result<Stats> {
        self.raw.stats()
    }

    /// All stored vectors with their references, in no order (of an [`IndexedTable`], in that of references). Vectors put
    /// meanwhile may be missed.
    ///
    /// Fetched from the device in parts of about 16 MiB. An item is an error if the device reports one, or if the table grew,
    /// was cleared or relocated keys meanwhile; it is then the last.
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
    /// Moves keys of a [cuckoo](TableBuilder::cuckoo) table so that its stash has room again, and gives how many it has moved out
    /// of it. Nothing, at once, in other tables.
    ///
    /// Batches from host slices call this when keys are rejected. Call it when kernels of your own, or batches in device memory,
    /// have had keys rejected, and offer those again; if it has moved few, the table is full. Waits for operations under way (on
    /// a GPU, for all its streams) and holds up those that come; makes all references stale. Needs memory for 9 bytes a slot of
    /// the stash.
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
    /// [`SelfDeadlock`](crate::Error::SelfDeadlock) and [`OutOfMemory`](crate::Error::OutOfMemory), with nothing moved; what the
    /// device reports: then the next call of the host
    /// that looks at keys first puts those back that are in no slot, so launch no kernel of your own before one has succeeded; or
    /// [`KeysWithoutSlot`](crate::Error::KeysWithoutSlot).
    pub fn relocate(&self) -> Result<u64> {
        self.raw.relocate("relocate")
    }
}

impl<K: Key> Table<K, Indexed> {
    /// Takes back all vectors from reference number `rows` on, as if they had never been put: those below stay, with their
    /// references. Waits for operations under way (on a GPU, for all its streams), and holds up those that come. References to
    /// the others are void, and may become those of other vectors. Nothing if there are no such vectors.
    ///
    /// Makes the index anew from the rows that stay, and needs memory for both at once.
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
    /// [`SelfDeadlock`](crate::Error::SelfDeadlock), [`OutOfMemory`](crate::Error::OutOfMemory), what the device reports, or
    /// [`TableFull`](crate::Error::TableFull) if the rows that stay find no room in an index that is nearly full, in another
    /// order than before: the table is as it was.
    pub fn truncate(&self, rows: u64) -> Result<()> {
        self.raw.truncate(rows)
    }

    /// The numbers below that of the last vector which are no vector's, from low to high.
    ///
    /// Calls that overlap leave some, and so do kernels: at most one for each thread (on a GPU, lane) that puts at the same time.
    /// [`iter`](Self::iter) skips them. Later batches give these numbers first, unless they are told to
    /// [leave them](Request::leave_holes); a batch from a host slice that overlaps with no other call, in a table that no kernel
    /// puts into, closes all that it has made itself. Numbers of vectors that are being put meanwhile are among them.
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
    /// What the device reports.
    pub fn holes(&self) -> Result<Vec<u64>> {
        self.raw.holes()
    }

    /// All vectors as one slice, in the order of their references: the vector of number i is the i-th. If there are
    /// [holes](Self::holes), those before the first.
    ///
    /// On a CPU this is the memory of the table. While it lives vectors may be put, which it does not show. Batches leave their
    /// holes meanwhile. From a GPU the rows are copied, and nothing waits for the copy; `rows_device` gives them without a copy.
    ///
    /// Calls that wait until it is dropped: `clear`, `grow`, `reserve` that grows, `save`, `save_file` and `truncate`. Those of
    /// other threads do wait. Those of the thread that has it are the error [`SelfDeadlock`](crate::Error::SelfDeadlock). A batch
    /// of that thread does not make the table grow: its vectors go into the slots there are, and
    /// [`Batch::error`](crate::Batch::error) has that error. All other calls of that thread are answered at once. Drop the rows,
    /// or copy what is needed, before a batch that may have to make the table grow; and do not wait for another thread meanwhile
    /// that uses the table.
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
    /// What the device reports.
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
        f.debug_struct(S::NAME)
            .field("width", &self.width())
            .field("slots", &self.slots())
            .field("device", self.device())
            .finish_non_exhaustive()
    }
}
