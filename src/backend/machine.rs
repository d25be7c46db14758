//! Interface between the library and its machines: traits that each machine implements.
//!
//! Every call that works on many vectors is one virtual call. A machine finds its own types behind a trait by downcasting, and
//! panics if it gets those of another machine: a table never leaves its machine.

use crate::Result;
use crate::layout::options::Parameters;
use crate::layout::rows::{HoleClosing, RowCounts};
use crate::layout::search::ProbeLengths;
use crate::layout::view::{Counts, Geometry};
use crate::layout::{BatchProgress, HostBatch, Part, Spec};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A GPU of this computer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GpuInfo {
    /// Its number, for `Device::gpu`.
    pub ordinal: usize,
    /// Its name, as the driver gives it.
    pub name: String,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// Its compute capability, as (major, minor).
    pub compute_capability: (u32, u32),
}

/// Memory for tables, and the processor that runs their kernels. Displayed by its name.
pub(crate) trait Machine: Any + Send + Sync + UnwindSafe + RefUnwindSafe + fmt::Display {
    /// Whether this is a GPU.
    fn is_gpu(&self) -> bool;

    /// Number of threads that a batch may use; 0 on a GPU.
    fn threads(&self) -> usize;

    /// Whether the tables of both machines are in the same memory and are searched by the same threads.
    fn is_same(&self, other: &dyn Machine) -> bool;

    /// Bytes of memory that are free for tables now.
    fn free_memory(&self) -> Result<u64>;

    /// Bytes of the largest compare-and-swap that claims slots of `words` words.
    fn chunk_bytes(&self, words: usize) -> u32;

    /// Geometry of a spec, as the kernels that are compiled for it compute it.
    fn geometry(&self, spec: Spec) -> Result<Geometry>;

    /// Makes the memory of an empty table.
    fn new_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>>;

    /// Makes the memory of a table whose every part the caller fills. Its content is unspecified until then.
    fn new_unfilled_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>>;

    /// Makes an array of zeroed values for the rows of an indexed table. `bytes`: size of the values of all rows that the table
    /// can have.
    fn new_values(&self, bytes: u64) -> Result<Box<dyn Values>>;

    /// Allocates zeroed host memory that the machine copies from and to directly. `None` if plain memory is as good.
    fn new_host_buffer(&self, bytes: usize) -> Result<Option<Box<dyn HostBuffer>>>;

    /// Loads the kernels of a rank of a cluster.
    #[cfg(feature = "cluster")]
    fn new_rank(&self) -> Result<Box<dyn super::Rank>>;
}

/// The memory of one table of a fixed size, and the kernels that work on it. The traits that this one requires are parts of its
/// interface; a machine may implement each in a file of its own.
pub(crate) trait Store:
    SearchBatch + RowStore + RootStore + CuckooStore + StoreBytes + Any + Send + Sync + UnwindSafe + RefUnwindSafe
{
    /// Number of stored vectors, and of nodes (any number in tables without nodes).
    fn stored(&self) -> Result<[u64; 2]>;

    /// Removes all vectors. Calls `begin` once, before anything is changed. After an error all or none are gone.
    fn clear(&mut self, begin: &mut dyn FnMut()) -> Result<()>;

    /// Compiles the kernels of a search before it is enqueued, because compiling may wait for all work of the machine. Also those
    /// for vectors of another rank, if `is_exchanged`. Default: the kernels were compiled with the library.
    #[cfg(feature = "cluster")]
    fn prepare(&self, _search: crate::layout::SearchMode, _is_exchanged: bool) -> Result<()> {
        Ok(())
    }

    /// Waits for all work on the machine. Default: all work of a call has ended when the call returns.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    /// Copies the vectors at `references`. Returns the number of words that could not be read.
    fn get(&self, references: &[u64], vectors: &mut [u32]) -> Result<u64>;

    /// Vectors in a range of slots, and the slot of each.
    fn export(&self, slots: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)>;

    /// Probe lengths of the vectors in the first `slots` slots.
    fn measure(&self, slots: u64, bins: usize) -> Result<ProbeLengths>;

    /// Makes the memory of a table of another size, with the vectors in the `slots` slots of this one. Returns it, and the
    /// counts: vectors that found no slot are `full`. This table is unchanged. Nothing else uses it. May take `spare` bytes
    /// besides until it returns. Default: `None`, and nothing was done, because the machine puts vectors into an empty table by
    /// [`rehash_into`](Self::rehash_into).
    fn grown(&self, _parameters: &Parameters<'_>, _slots: u64, _spare: u64) -> Result<Option<(Box<dyn Store>, Counts)>> {
        Ok(None)
    }

    /// Puts the vectors in a range of slots of this table into `larger`, which is on the same machine.
    fn rehash_into(&self, larger: &dyn Store, slots: Range<u64>) -> Result<Counts>;
}

/// Searches of batches from host slices.
pub(crate) trait SearchBatch {
    /// Searches for the vectors of a batch, or puts them. `tag`: upper bits of references, in results and of
    /// parents; a parent with other bits is ignored.
    fn search_batch(&self, tag: u64, batch: &mut HostBatch<'_>, progress: &mut BatchProgress<'_>) -> Result<Counts>;
}

/// Rows of an indexed table. Other tables have none.
pub(crate) trait RowStore {
    /// Row counters of an indexed table. Nothing else uses it.
    fn row_counts(&self) -> Result<RowCounts>;

    /// Lists at most `capacity` rows of a range that are not stored, in no order; and counts all of them.
    fn list_holes(&self, rows: Range<u64>, capacity: u64) -> Result<(Vec<u64>, u64)>;

    /// Number of references to rows of an indexed table that are not stored.
    fn count_unstored(&self, references: &[u64]) -> Result<u64>;

    /// Number of rows of an indexed table that are known to be stored, from the first on; 0 in other tables.
    fn dense(&self) -> u64;

    /// Notes that rows before this one are stored, which the caller has checked.
    fn set_dense(&mut self, rows: u64);

    /// Words of the first rows, if they are in the memory of this process.
    ///
    /// # Safety
    ///
    /// These rows are stored, and the caller has observed that.
    unsafe fn first_rows(&self, _rows: u64) -> Option<&[u32]> {
        None
    }

    /// Bytes of memory that the rows of an indexed table take; 0 in other tables.
    fn row_bytes(&self) -> u64;

    /// Makes the first rows of this table, which is empty, those with the given numbers of `from`, a table on the same machine.
    /// Sets no counters. Returns the number of words that could not be read: none if the rows are stored and nothing else uses
    /// the tables.
    fn fill_rows(&mut self, from: &dyn Store, numbers: &[u64]) -> Result<u64>;

    /// Closes holes among the rows of an indexed table. Returns whether rows have moved, even if a later step fails. Nothing else
    /// uses the table.
    fn close_holes(&mut self, closing: &HoleClosing) -> (bool, Result<()>);

    /// Builds an index of another size of the rows before `last` of an indexed table, and removes the others. Returns the counts:
    /// if some rows found no slot, the table is unchanged. Nothing else uses the table.
    fn reindex(&mut self, parameters: &Parameters<'_>, last: u64) -> Result<Counts>;
}

/// Roots of a table of trees.
pub(crate) trait RootStore {
    /// Makes the slots of a table of trees those that `parameters` describe, with as many nodes as before, and moves the roots
    /// there from the `slots` slots of now. Nodes stay where they are. Returns the counts: if some roots found no slot, the table
    /// is unchanged. `None` if roots cannot be moved without their nodes, and nothing was done. Nothing else uses the table.
    /// Default: they cannot, because kernels for roots alone would have to be compiled.
    fn move_roots(&mut self, _parameters: &Parameters<'_>, _slots: u64) -> Result<Option<Counts>> {
        Ok(None)
    }
}

/// Relocation of the keys of a cuckoo table.
pub(crate) trait CuckooStore {
    /// Relocates the keys of a cuckoo table's stash (compact/relocation.cuh). Calls `begin` once, when there is memory for it and
    /// before a key moves. Returns the number of keys that have left the stash.
    fn relocate(&self, seed: u64, begin: &mut dyn FnMut()) -> Result<u64>;

    /// Whether an error during relocation has left keys in no slot. They must be put back before anything is searched for.
    /// Default: relocation leaves none.
    fn has_displaced(&self) -> bool {
        false
    }

    /// Puts displaced keys back. Nothing else may use the table at the same time.
    fn put_displaced_back(&self) -> Result<()> {
        Ok(())
    }
}

/// The memory of a table as bytes, for files.
pub(crate) trait StoreBytes {
    /// Calls `each` with the first `bytes` of a part: pieces of whole blocks of files, in order. Nothing else uses the table.
    fn read_pieces(&self, part: Part, bytes: u64, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// Copies the bytes of a part from `offset` on. Nothing else uses the table.
    fn read_at(&self, part: Part, offset: u64, to: &mut [u8]) -> Result<()>;

    /// Lets `each` write the first `bytes` of a part: pieces of whole blocks of files, in order.
    fn fill_pieces(&mut self, part: Part, bytes: u64, each: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()>;

    /// Sets the counters of a table whose parts were filled: vectors; nodes, or rows that were given; rows before the first hole.
    /// `spares`: the spare rows.
    fn set_counts(&mut self, counts: &[u64; 3], spares: &[u64]) -> Result<()>;
}

/// Values of the rows of an indexed table, by number: bytes, zero at first. Nothing moves when the array grows.
pub(crate) trait Values: Any + Send {
    /// Bytes of memory that the array has.
    fn bytes(&self) -> u64;

    /// Address of the first value on the machine. It stays the same.
    fn address(&self) -> u64;

    /// Makes the first `bytes` usable, and optionally more, up to `most`.
    ///
    /// # Errors
    ///
    /// If there is no memory. Then the array is unchanged.
    fn make(&mut self, bytes: u64, most: u64) -> Result<()>;

    /// Sets usable bytes to values of these bytes, one after another. Slices of bytes before them, which
    /// [`host_bytes`](Self::host_bytes) returned, stay valid. Nothing else has access to the bytes themselves.
    fn fill(&mut self, bytes: Range<u64>, value: &[u8]) -> Result<()>;

    /// Sets usable bytes to zero; otherwise as [`fill`](Self::fill).
    fn zero(&mut self, bytes: Range<u64>) -> Result<()>;

    /// The first bytes, which are usable, if they are in the memory of this process. Aligned to 4,096 bytes.
    ///
    /// # Safety
    ///
    /// Nothing writes them during `'a`, [`fill`](Self::fill) and [`zero`](Self::zero) of other bytes excepted, and the array
    /// outlives `'a`.
    unsafe fn host_bytes<'a>(&self, bytes: u64) -> Option<&'a [u8]>;

    /// Mutable view of the same bytes.
    fn host_bytes_mut(&mut self, bytes: u64) -> Option<&mut [u8]>;

    /// Copies the first bytes, after all work that the machine was given before. This and the methods below are for values that
    /// [`host_bytes`](Self::host_bytes) does not show.
    fn read(&self, to: &mut [u8]) -> Result<()>;

    /// Writes the first bytes, after all work that the machine was given before.
    fn write(&mut self, from: &[u8]) -> Result<()>;

    /// Copies the values of `value_bytes` at `references`, which are to rows of `store`. The bits above the slots' are ignored.
    fn gather(&self, store: &dyn Store, references: &[u64], value_bytes: usize, to: &mut [u8]) -> Result<()>;

    /// Writes the values of `value_bytes` bytes at `references`. Each reference occurs once.
    fn scatter(&mut self, store: &dyn Store, references: &[u64], value_bytes: usize, from: &[u8]) -> Result<()>;
}

/// Host memory that a machine copies from and to directly. Aligned to 16 bytes.
pub(crate) trait HostBuffer: Send + UnwindSafe + RefUnwindSafe {
    /// Bytes of the buffer.
    fn bytes(&self) -> usize;

    /// All bytes.
    fn as_slice(&self) -> &[u8];

    /// Mutable view of all bytes.
    fn as_mut_slice(&mut self) -> &mut [u8];
}

/// Launch of the kernel of a search on a GPU.
#[cfg(any(feature = "cuda", feature = "cluster"))]
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "a search on the host is not launched"))]
pub(crate) struct Launch {
    pub waves: Waves,
    /// For a batch that another rank has sent: address of a number in GPU memory. If that is not 0 when the kernel begins,
    /// nothing is searched for.
    pub refused: Option<u64>,
    /// Whether the launch may wait for the GPU if it needs memory for rows.
    pub may_wait: bool,
    /// Operands that find-or-put into an indexed table combines with values, and the bytes of one of them.
    pub upsert: Option<(crate::layout::view::UpsertView, usize)>,
}

/// Number of blocks of a search, as a multiple of the blocks that fit the GPU at the same time.
#[cfg(any(feature = "cuda", feature = "cluster"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waves {
    #[default]
    One,
    /// Several, of shorter blocks: more urgent kernels of other streams can start before all blocks are done.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "only searches of ranks run beside others"))]
    BesideOthers,
}
