//! Storage kinds of tables, and the names of the table types.

use super::{Table, Words};
use crate::backend::KernelArgument;
use crate::layout::kind::{Kind, kinds};
use crate::layout::view::{AnyView, CompactTreeView, CompactView, IndexedView, TableView, TreeView, View};

/// A table of vectors that are given as [words](Words), of a width that is chosen at run time.
pub type VectorTable<S> = Table<Words, S>;

/// A table of keys of a Rust type: any plain data of 1 to 1024 bytes.
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
/// Keys of any number of bytes are padded with zero bytes to whole words:
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, TypedTable};
///
/// let words = TypedTable::<[u8; 9]>::new(&Device::cpu(), 1000)?;
/// assert_eq!(words.find_or_put_many(&[*b"warp sets", *b"hash sets", *b"warp sets"])?.tally.new, 2);
/// assert_eq!((words.width(), words.contains(b"warp sets")?), (3, true));
/// # Ok(()) }
/// ```
///
/// Vectors are stored unchanged, unless `S` is another storage, for example [`Tree`]:
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

/// A table that stores vectors unchanged.
pub type BucketTable = VectorTable<Bucket>;

/// A table that stores vectors as trees of pairs, with equal subtrees shared.
/// A vector of w words takes 8 bytes for its root, and up to w - 2 nodes of 8 bytes. All vectors that have the same part in the
/// same position share its nodes. The sets of states that model checkers visit therefore take little more than their roots.
/// Everything else is as in a [`BucketTable`]. The cost: each search looks up w - 2 nodes before the root. As long as the node
/// table fits the GPU's cache, these lookups stay in the cache (`benches/tree.md`).
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, TreeTable};
///
/// let table = TreeTable::builder(8).capacity(1000).nodes(500).build(&Device::cpu())?;
/// // Each vector consists of two of the halves (1, 2, 3, 4) and (5, 6, 7, 8).
/// table.find_or_put_many(&[1, 2, 3, 4, 5, 6, 7, 8, /**/ 1, 2, 3, 4, 1, 2, 3, 4])?.complete(&table)?;
/// assert_eq!(table.contains_many(&[5, 6, 7, 8, 5, 6, 7, 8])?, [false]);
/// let stats = table.stats()?;
/// assert_eq!((stats.stored, stats.nodes), (2, 6)); // of 12: the second vector is made of halves of the first
/// # Ok(()) }
/// ```
pub type TreeTable = VectorTable<Tree>;

/// A table of `u64` keys of 20 to 64 bits, in smaller slots: a slot stores only the part of a key that its bucket does not
/// determine (Cleary 1984).
///
/// Keys of b bits in s slots take about b - log2(s) bits each: 54-bit keys fit 2^28 slots of 32 bits, half the size of a
/// [`BucketTable`]. The table can be filled to 0.95 of its slots (and of its bytes, from 2^22 slots on; the smaller the table,
/// the larger its stash in proportion). Everything else is as in a [`BucketTable`]: concurrent find-or-put, one `New` for each
/// key, stable references. Keys never move, unless the option [`cuckoo`](crate::TableBuilder::cuckoo) allows it. A key has two
/// words, the low one first.
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
///
/// Other keys of 8 bytes may be used: `TypedTable<[u32; 2], Root>`. Keys of another size are an error of the compiler:
///
/// ```compile_fail
/// use warpset::{Device, Root, TypedTable};
///
/// let table = TypedTable::<u32, Root>::new(&Device::cpu(), 100);
/// ```
pub type RootTable = Table<u64, Root>;

/// A [`TreeTable`] whose roots are stored in a compact table: 2 or 4 bytes per vector for its root, if there are not too many
/// nodes.
///
/// The root of a tree is a pair of references to nodes, each with as many bits as the node table needs. Such a pair can be a key
/// of a table like [`RootTable`]. With a node table of 2^22 slots and 2^28 slots or more for roots, roots take 32 bits each,
/// half of their size in a `TreeTable`; with fewer nodes, or more roots, 16. The table chooses the size
/// ([`slot_bits`](crate::TableBuilder::slot_bits)). For vectors of 2^n + 1 words the right half of the root is the last word, so
/// all its bits count: 32, or [fewer](crate::TableBuilder::last_bits). Everything else is as in a [`TreeTable`]: concurrent
/// find-or-put, stable references, incremental find-or-put. Vectors of one or two words have no nodes, and are stored in a bucket
/// table.
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

/// A table whose references are the numbers 0, 1, 2, ... of its vectors, in the order of discovery.
/// Vectors are stored one after another, as rows. An index of 4 or 8 bytes per slot finds them. An array of yours that is indexed
/// by [`Reference::slot`](crate::Reference::slot) therefore needs one element for each vector. References stay valid when the
/// table grows: growth rebuilds the index, and moves no vector. [`iter`](Table::iter) returns vectors in order, and
/// [`rows`](Table::rows) returns all of them as one slice. [`truncate`](Table::truncate) removes all vectors from a given number
/// on. The new vectors of a batch are a range of numbers: a breadth-first search needs no queue.
///
/// After a batch from a host slice with which no other call overlapped, references are exactly the numbers below
/// [`len`](Table::len). Overlapping calls, and kernels, may leave [*holes*](Table::holes), numbers without a vector: at most one
/// for each thread (on a GPU, lane) that puts at the same time. Later batches use these numbers first.
///
/// Bytes per vector: 4 × width for its row, and 4 / fill for its slot in the index (8 / fill in tables of more than 2^24 slots).
/// [`slots`](Table::slots) and fill are those of the index. On a GPU, memory for rows is mapped when a batch may need it: one
/// row for each vector offered, until the GPU has reported how many were new. A batch is refused with
/// [`OutOfMemory`](crate::Error::OutOfMemory) if its rows get no memory. `kernel_argument` maps rows for all slots, since
/// kernels may use any.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, IndexedTable, Request};
///
/// let table = IndexedTable::builder(2).capacity(100).grows(true).build(&Device::cpu())?;
/// let batch = table.find_or_put_many_with(&[7, 7, 8, 8, 7, 7], Request::new().references(true))?;
/// let mut numbers: Vec<u64> = batch.references.iter().flatten().map(|reference| reference.slot()).collect();
/// assert_eq!((numbers[0], numbers[1]), (numbers[2], 1 - numbers[0]));
/// table.reserve_total(10_000)?;
/// assert_eq!(table.get_many(&[batch.references[1].unwrap()])?, [8, 8]); // still valid
/// # Ok(()) }
/// ```
pub type IndexedTable = VectorTable<Indexed>;

/// How the vectors of a [`Table`] are stored: [`Bucket`], [`Tree`], [`Root`], [`CompactTree`] or [`Indexed`].
pub trait Storage: sealed::Sealed + Send + Sync + 'static {
    /// Kind of a table with this storage.
    #[doc(hidden)]
    const KIND: Kind;

    /// Words of a key, if the storage has keys of one size only.
    #[doc(hidden)]
    const KEY_WORDS: Option<usize> = Self::KIND.key_words();

    /// Kernel argument that represents a table with this storage.
    #[doc(hidden)]
    type View: Copy + From<View> + KernelArgument;
}

/// A storage with a node table.
#[doc(hidden)]
pub trait Nodes: Storage {}
impl Nodes for Tree {}
impl Nodes for CompactTree {}

/// Vectors as they are; see [`BucketTable`].
#[derive(Clone, Copy, Debug)]
pub enum Bucket {}

/// Vectors as trees; see [`TreeTable`].
#[derive(Clone, Copy, Debug)]
pub enum Tree {}

/// Keys of up to 64 bits, compressed; see [`RootTable`].
#[derive(Clone, Copy, Debug)]
pub enum Root {}

/// Vectors as trees, with roots as in a [`RootTable`]; see [`CompactTreeTable`].
#[derive(Clone, Copy, Debug)]
pub enum CompactTree {}

/// Vectors as rows in order, with an index; see [`IndexedTable`].
#[derive(Clone, Copy, Debug)]
pub enum Indexed {}

/// A storage that is known at run time only ([`Table::erased`]).
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Erased {}

impl Storage for Erased {
    const KIND: Kind = panic!("such a table is not built or loaded as one: it is made from a table of a kind");
    const KEY_WORDS: Option<usize> = None;
    type View = AnyView;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Erased {}
}

macro_rules! storages {
    ($($kind:ident: $view:ident, $table:literal;)*) => {
        $(impl Storage for $kind {
            const KIND: Kind = Kind::$kind;
            type View = $view;
        }

        impl sealed::Sealed for $kind {})*
    };
}
kinds!(storages);
