use crate::key::{elements, words};
use crate::raw::view::{CompactTreeView, CompactView, TableView, TreeView, Views};
use crate::raw::{Generation, RawTable};
use crate::{Batch, Device, Key, Reference, Request, Result, Spec, Stats, TableBuilder, Words};
use bytemuck::{AnyBitPattern, NoUninit};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// A concurrent set of vectors of one width, with find-or-put.
///
/// `K` says what vectors are to the caller: [`Words`] (a [`VectorTable`]), or a plain data type of yours (a [`TypedTable`]). `S` says how they
/// are stored: [`BucketTable`], [`TreeTable`], [`RootTable`] and [`CompactTreeTable`] are the names of what there is.
///
/// Vectors are `width` 32-bit words; all bit patterns are legal, and two vectors are equal when their bytes are. Slices of vectors hold them
/// one after another: words row-major, or keys.
///
/// # Concurrency
///
/// `Send + Sync`; all operations take `&self`. Any number of host threads may be in any of them at once; each find-or-put of a vector takes
/// effect at one point between its call and its return, and of all calls that ever offer a vector exactly one gets
/// [`Outcome::New`](crate::Outcome::New). No operation waits for another, except that [`clear`](Self::clear) and [`grow`](Self::grow) wait for
/// those under way and hold up those that come (as does [`relocate`](Self::relocate)), and that on a GPU reading back, iterating and statistics free
/// buffers at their end, for which the driver waits until work under way is done. A lookup that overlaps with the put of the same vector may or
/// may not see it.
///
/// # Memory
///
/// `bytes()` for the slots, and on a GPU up to 200 MB of buffers, and as much pinned memory of the host, for each batch from host slices that
/// is under way at once; those of one are kept. Where there is less, fewer and smaller ones are made.
///
/// # Small batches
///
/// A call costs some 300 to 480 ns on a CPU besides its searches, and on a GPU two copies, a kernel and a wait: offer vectors by the
/// thousand.
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
    pub(crate) raw: RawTable,
    pub(crate) marker: PhantomData<fn(K) -> (K, S)>,
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<VectorTable<Bucket>>();
    is_shared::<VectorTable<Tree>>();
    is_shared::<RootTable>();
    is_shared::<CompactTreeTable>();
};

/// A table of vectors that are given as [words](Words), of a width that is known at run time.
pub type VectorTable<S> = Table<Words, S>;

/// A table of keys of a Rust type: any plain data whose size is a multiple of 4 bytes (checked when compiled).
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, TypedTable};
///
/// #[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
/// #[repr(C)]
/// struct State {
///     position: [u16; 4],
///     turn: u32,
/// }
///
/// let states = TypedTable::<State>::new(&Device::cpu(), 1000)?;
/// let start = State { position: [0, 1, 2, 3], turn: 0 };
/// let batch = states.find_or_put_many(&[start, start])?;
/// assert_eq!((batch.tally.new, batch.tally.seen), (1, 1));
/// assert_eq!(states.contains_many(&[start, State { turn: 1, ..start }])?, [true, false]);
/// # Ok(()) }
/// ```
///
/// ```compile_fail
/// # use warpset::{Device, TypedTable};
/// let odd = TypedTable::<[u8; 3]>::new(&Device::cpu(), 1000); // 3 bytes are not a whole number of words
/// ```
///
/// Vectors lie in it as they are, unless `S` says [`Tree`]:
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, Tree, TypedTable};
///
/// let keys = TypedTable::<[u32; 6], Tree>::builder().capacity(1000).grows(true).build(&Device::cpu())?;
/// assert_eq!(keys.find_or_put_many(&[[1; 6], [2; 6]])?.tally.new, 2);
/// assert_eq!((keys.len()?, keys.width()), (2, 6));
/// # Ok(()) }
/// ```
pub type TypedTable<K, S = Bucket> = Table<K, S>;

/// A table whose vectors lie in it as they are.
pub type BucketTable = VectorTable<Bucket>;

/// A table whose vectors are trees of pairs that equal parts share.
///
/// A vector of w words takes 8 bytes for its root, and up to w - 2 nodes of 8 bytes, all of which it shares with every other vector that
/// has the same part in the same kind of place: the sets of states that model checkers visit take little more than their roots.
/// Everything else is as in a [`BucketTable`]. What it costs: each search looks for w - 2 nodes before it looks for the root, which are
/// found in the GPU's cache as long as the node table fits it (`benches/README.md`).
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, TreeTable};
///
/// let table = TreeTable::builder(8).capacity(1000).nodes(500).build(&Device::cpu())?;
/// // Two halves that all vectors have one or the other of.
/// table.find_or_put_many(&[1, 2, 3, 4, 5, 6, 7, 8, /**/ 1, 2, 3, 4, 1, 2, 3, 4])?.complete(&table)?;
/// assert_eq!(table.contains_many(&[5, 6, 7, 8, 5, 6, 7, 8])?, [false]);
/// let stats = table.stats()?;
/// assert_eq!((stats.stored, stats.nodes), (2, 6)); // of 12: the second vector is made of halves of the first
/// # Ok(()) }
/// ```
pub type TreeTable = VectorTable<Tree>;

/// A table of `u64` keys of few bits, in slots of fewer: of each key only what its place does not tell is stored (Cleary 1984).
///
/// Keys of b bits in s slots take about b - log2(s) bits each: 54-bit keys fit 2^28 slots of 32 bits, half of what a [`BucketTable`]
/// takes, and the table can be filled to 0.95 of its slots (of its bytes, from 2^22 slots on; in tables of a few kibibytes the stash is
/// larger). Everything else is as in a [`BucketTable`]: concurrent find-or-put, one `New` for each key, references that are stable; keys never
/// move, unless the table is told that they may ([`cuckoo`](crate::TableBuilder::cuckoo)). Words of a key: two, the low one first.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, Error, RootTable};
///
/// let table = RootTable::builder().key_bits(40).capacity(1 << 20).build(&Device::cpu())?;
/// assert_eq!(table.find_or_put_many(&[1 << 39, 3, 1 << 39])?.tally.new, 2);
/// assert_eq!(table.contains_many(&[3, 4])?, [true, false]);
/// assert_eq!(table.bytes(), 4 << 20); // 32 bits a slot
/// let error = table.find_or_put_many(&[5, 1 << 40]).unwrap_err(); // too large: nothing is put
/// assert!(matches!(error, Error::KeyTooLarge { position: 1, key_bits: 40, .. }));
/// assert_eq!(table.contains_many(&[5])?, [false]);
/// # Ok(()) }
/// ```
pub type RootTable = Table<u64, Root>;

/// A [`TreeTable`] whose roots lie in a compact table: 2 or 4 bytes a vector for its root, where the nodes are not too many.
///
/// The root of a tree is a pair of references to nodes, of as many bits as the node table needs. That is a key for a table like
/// [`RootTable`]: with a node table of 2^22 slots and 2^28 slots or more for roots, these take 32 bits each, half of what they take in a
/// `TreeTable`; with fewer nodes, or more roots, 16. The table chooses ([`slot_bits`](TableBuilder::slot_bits)). For vectors of 2^n + 1 words the
/// right half of the root is the last word, so all its 32 bits count. Everything else is as in a [`TreeTable`]: concurrent find-or-put,
/// references that are stable, changes of stored vectors. Vectors of one or two words have no nodes, and lie in a bucket table.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{CompactTreeTable, Device, TreeTable};
///
/// let table = CompactTreeTable::builder(8).capacity(1 << 20).nodes(4000).build(&Device::cpu())?;
/// table.find_or_put_many(&[1, 2, 3, 4, 5, 6, 7, 8, /**/ 1, 2, 3, 4, 1, 2, 3, 4])?.complete(&table)?;
/// assert_eq!((table.len()?, table.nodes()?), (2, 6));
/// assert_eq!(table.spec().key_and_slot_bits(), Some((24, 16))); // 12 bits a reference
/// let plain = TreeTable::builder(8).capacity(1 << 20).nodes(4000).build(&Device::cpu())?;
/// assert!(table.bytes() < plain.bytes() * 3 / 10);
/// # Ok(()) }
/// ```
pub type CompactTreeTable = VectorTable<CompactTree>;

/// How the vectors of a [`Table`] are stored: [`Bucket`], [`Tree`], [`Root`] or [`CompactTree`].
pub trait Storage: sealed::Sealed + Send + Sync + 'static {
    /// Vectors are trees.
    #[doc(hidden)]
    const TREE: bool;

    /// Vectors are keys, or roots of trees are, of which slots hold a part.
    #[doc(hidden)]
    const COMPACT: bool;

    /// For debug output.
    #[doc(hidden)]
    const NAME: &'static str;

    /// What a kernel gets of such a table.
    #[doc(hidden)]
    type View: Copy + From<Views> + KernelArgument;
}

/// A storage with a node table.
#[doc(hidden)]
pub trait Nodes: Storage {}
impl Nodes for Tree {}
impl Nodes for CompactTree {}

/// A storage that is not compact: a width is enough to know its kernels.
#[doc(hidden)]
pub trait Plain: Storage {}
impl Plain for Bucket {}
impl Plain for Tree {}

/// What may be the argument of a kernel.
#[cfg(feature = "cuda")]
#[doc(hidden)]
pub trait KernelArgument: cudarc::driver::DeviceRepr {}
#[cfg(feature = "cuda")]
impl<T: cudarc::driver::DeviceRepr> KernelArgument for T {}

/// There are no kernels.
#[cfg(not(feature = "cuda"))]
#[doc(hidden)]
pub trait KernelArgument {}
#[cfg(not(feature = "cuda"))]
impl<T> KernelArgument for T {}

/// Vectors as they are; see [`BucketTable`].
#[derive(Clone, Copy, Debug)]
pub enum Bucket {}

/// Vectors as trees; see [`TreeTable`].
#[derive(Clone, Copy, Debug)]
pub enum Tree {}

/// Keys of up to 64 bits, of which slots hold a part; see [`RootTable`].
#[derive(Clone, Copy, Debug)]
pub enum Root {}

/// Vectors as trees, of whose roots slots hold a part; see [`CompactTreeTable`].
#[derive(Clone, Copy, Debug)]
pub enum CompactTree {}

impl Storage for Bucket {
    const TREE: bool = false;
    const COMPACT: bool = false;
    const NAME: &'static str = "BucketTable";
    type View = TableView;
}

impl Storage for Tree {
    const TREE: bool = true;
    const COMPACT: bool = false;
    const NAME: &'static str = "TreeTable";
    type View = TreeView;
}

impl Storage for Root {
    const TREE: bool = false;
    const COMPACT: bool = true;
    const NAME: &'static str = "RootTable";
    type View = CompactView;
}

impl Storage for CompactTree {
    const TREE: bool = true;
    const COMPACT: bool = true;
    const NAME: &'static str = "CompactTreeTable";
    type View = CompactTreeView;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::CompactTree {}
    impl Sealed for super::Bucket {}
    impl Sealed for super::Tree {}
    impl Sealed for super::Root {}
}

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
    pub const WIDTH: usize = {
        assert!(size_of::<K>() > 0 && size_of::<K>().is_multiple_of(4), "a key's size must be a positive multiple of 4 bytes");
        size_of::<K>() / 4
    };

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
        self.raw.width
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

    /// What its kernels were compiled for. (A growth of a [`CompactTreeTable`] may change it.)
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// assert_eq!((table.spec().width(), table.spec().chunk_bytes()), (2, 8));
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

    /// Bytes of the slots.
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
        self.raw.stored()
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
        self.raw.stored_nodes()
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
    /// concurrently, in no order. Blocks until all are done; on a GPU they are staged through pinned memory, transfers overlapping
    /// with kernels. Returns the tally and each vector's outcome; [`find_or_put_many_with`](Self::find_or_put_many_with) for more.
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
    /// [`RaggedVectors`](crate::Error::RaggedVectors), [`Rows`](crate::Error::Rows) before anything is put. What the device reports otherwise; then some of the
    /// batch may be stored. A full table is not an error but an outcome; [`Batch::complete`] makes it one.
    pub fn find_or_put_many(&self, vectors: &[K::Element]) -> Result<Batch> {
        self.find_or_put_many_with(vectors, Request::new().outcomes(true))
    }

    /// The same, with the results that `request` asks for.
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
        self.raw.find_or_put(&words(vectors), request.raw)
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
    /// let places = table.locate_many(&[1, 1, 9, 9])?;
    /// assert!(places[0].is_some() && places[1].is_none());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`find_or_put_many`](Self::find_or_put_many).
    pub fn locate_many(&self, vectors: &[K::Element]) -> Result<Vec<Option<Reference>>> {
        self.raw.locate(&words(vectors))
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
        Ok(elements(self.raw.get(references)?))
    }

    /// The reference to the vector in a slot, as of now: of a number that a kernel of yours, or a batch in device memory, has given since the
    /// table last grew, was cleared or relocated keys. `None` if there is no such slot. Whether a vector is stored there shows when it is used.
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
    /// What the device reports.
    pub fn clear(&self) -> Result<()> {
        self.raw.clear()
    }

    /// Moves every vector into a table of at least `capacity` slots. Waits for operations under way (on a GPU, for all its
    /// streams); makes all references stale. Needs memory for both tables at once. [`reserve`](Self::reserve) does nothing where this is an error.
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
    /// [`NotLarger`](crate::Error::NotLarger), [`OutOfMemory`](crate::Error::OutOfMemory),
    /// [`TableFull`](crate::Error::TableFull) if a nearly full table grows by so little that a vector finds no place in the larger
    /// one, or what the device reports: the table is as it was.
    pub fn grow(&self, capacity: u64) -> Result<()> {
        self.raw.grow(capacity)
    }

    /// Sees to it that the table has slots for `vectors` vectors, those that are stored included: grows if it has fewer, as
    /// [`grow`](Self::grow) does. Any number of threads may ask for the same at once: it grows once.
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
    pub fn reserve(&self, vectors: u64) -> Result<()> {
        self.raw.reserve(vectors)
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

    /// All stored vectors with their references, in no order. Vectors put meanwhile may be missed.
    ///
    /// Fetched from the device in parts of about 16 MiB. An item is an error if the device reports one, or if the table grew or
    /// was cleared meanwhile; it is then the last.
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
        let (generation, end) = self.raw.generation_and_slots();
        Iter { raw: &self.raw, generation, next_slot: 0, end, part: (Vec::new(), Vec::new()), at: 0, keys: PhantomData }
    }
}

impl<K: Key> Table<K, Root> {
    /// Moves keys of a [cuckoo](TableBuilder::cuckoo) table so that its stash has room again, and gives how many it has moved out of it.
    /// Nothing, at once, in other tables.
    ///
    /// Batches from host slices call this when keys are rejected. Call it when kernels of your own, or batches in device memory, have had keys
    /// rejected, and offer those again; if it has moved few, the table is full. Waits for operations under way (on a GPU,
    /// for all its streams) and holds up those that come; makes all references stale. Needs memory for 9 bytes a slot of the stash.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::{Device, RootTable};
    /// let table = RootTable::builder().key_bits(30).capacity(1 << 12).cuckoo(true).build(&Device::cpu())?;
    /// let keys: Vec<u64> = (0..4000).map(|key| key * key).collect();
    /// table.find_or_put_many(&keys)?.complete(&table)?;
    /// table.relocate()?;
    /// assert_eq!(table.relocate()?, 0); // all have found places
    /// assert_eq!(table.len()?, 4000);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](crate::Error::OutOfMemory), with nothing moved; what the device reports: then the next call of the host that looks at
    /// keys first puts those back that are in no slot, so launch no kernel of your own before one has succeeded; or
    /// [`KeysWithoutPlace`](crate::Error::KeysWithoutPlace).
    pub fn relocate(&self) -> Result<u64> {
        self.raw.relocate()
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

/// Iterator over the vectors of a table; see [`Table::iter`].
pub struct Iter<'a, K = Words> {
    raw: &'a RawTable,
    generation: Generation,
    next_slot: u64,
    end: u64,
    part: (Vec<u32>, Vec<Reference>),
    at: usize,
    keys: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for Iter<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("next_slot", &self.next_slot).field("end", &self.end).finish_non_exhaustive()
    }
}

impl<K: Key> Iterator for Iter<'_, K> {
    type Item = Result<(Reference, K::Owned)>;

    fn next(&mut self) -> Option<Self::Item> {
        let width = self.raw.width;
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
