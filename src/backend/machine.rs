//! Interface between the library and its machines: traits that each machine implements.
//!
//! Every call that works on many vectors is one virtual call. A machine downcasts trait objects to its own types, and panics if
//! they are of another machine: a table never leaves its machine.

use super::memory::{Memory, Region, TableMemory};
use crate::Result;
use crate::layout::options::Parameters;
use crate::layout::view::{BatchView, Counts, Geometry, View};
use crate::layout::{BatchProgress, HostBatch, Kernel, SearchMode, Spec};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A GPU of this computer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GpuInfo {
    /// Number of the GPU, for `Device::gpu`.
    pub ordinal: usize,
    /// Name of the GPU, as the driver gives it.
    pub name: String,
    /// Bytes of the GPU's memory.
    pub memory_bytes: u64,
    /// Compute capability of the GPU, as (major, minor).
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

    /// Geometry of a spec, computed by the kernels that are compiled for this spec.
    fn geometry(&self, spec: Spec) -> Result<Geometry>;

    /// Number of cells for spare rows of an indexed table: a power of two, and more than the lanes that may hold a row at once.
    fn spare_cells(&self) -> u32;

    /// Whether new memory is zero and takes no memory of the system until it is written. If so, callers make all bytes that they
    /// may need usable at once.
    fn provides_on_demand(&self) -> bool;

    /// Returns an error unless `bytes` bytes are free.
    fn check_memory(&self, bytes: u64) -> Result<()>;

    /// Allocates memory. Its content is unspecified.
    fn allocate(&self, bytes: u64) -> Result<Memory>;

    /// Allocates memory of a table that may grow in place. Otherwise as [`allocate`](Self::allocate), which is the default.
    fn allocate_to_grow(&self, bytes: u64) -> Result<Memory> {
        self.allocate(bytes)
    }

    /// Allocates memory that grows in place, up to `bytes` bytes. If the machine provides memory on demand, all of them are
    /// usable at once, otherwise none.
    fn reserve(&self, bytes: u64) -> Result<Memory>;

    /// Makes at least `least` bytes of reserved memory usable, and up to `most` bytes if this costs nothing or saves later
    /// growth. The content of new bytes is unspecified.
    ///
    /// # Errors
    ///
    /// If there is no memory. Then nothing has changed.
    fn grow(&self, memory: &mut Memory, least: u64, most: u64) -> Result<()>;

    /// Copies bytes of the region, from byte `offset` on, to `to`, after all kernels that were launched before.
    ///
    /// # Safety
    ///
    /// The region is memory of this machine, and nothing writes to it meanwhile.
    unsafe fn read(&self, region: Region, offset: u64, to: &mut [u8]) -> Result<()>;

    /// Reads numbers that kernels may be changing, each by one access. Otherwise as [`read`](Self::read).
    ///
    /// # Safety
    ///
    /// The region is memory of this machine, and `offset` is a multiple of 8. Kernels change the numbers atomically.
    unsafe fn load(&self, region: Region, offset: u64, to: &mut [u64]) -> Result<()>;

    /// Copies `from` to the region, from byte `offset` on, after all kernels that were launched before.
    ///
    /// # Safety
    ///
    /// The region is memory of this machine, and nothing else uses these bytes meanwhile.
    unsafe fn write(&self, region: Region, offset: u64, from: &[u8]) -> Result<()>;

    /// Sets a range of bytes of the region to copies of `value`, after all kernels that were launched before.
    ///
    /// # Safety
    ///
    /// As for [`write`](Self::write). `value` does not overlap the bytes.
    unsafe fn fill(&self, region: Region, bytes: Range<u64>, value: &[u8]) -> Result<()>;

    /// Calls `each` with pieces of the first `bytes` bytes of a region, in order. A piece consists of whole blocks of a file;
    /// only the last block may be shorter. A machine with memory of its own copies the next piece while `each` runs.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    unsafe fn read_pieces(&self, region: Region, bytes: u64, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// Lets `each` write the first `bytes` bytes of a region; otherwise as [`read_pieces`](Self::read_pieces).
    ///
    /// # Safety
    ///
    /// As for [`write`](Self::write).
    unsafe fn fill_pieces(&self, region: Region, bytes: u64, each: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()>;

    /// Compiles a kernel for tables of a spec, unless it has been compiled. The default does nothing, because the kernels were
    /// compiled with the library.
    fn prepare(&self, _kernel: Kernel, _spec: Spec) -> Result<()> {
        Ok(())
    }

    /// Launches a kernel after those launched before. `tables`: the tables that the kernel works on; it is compiled for the spec
    /// of the first one. `items`: number of independent work items, from which the number of threads follows. `arguments`: the
    /// other arguments, addresses among them. For a parameter of 32 bits the kernel takes the low half of its number.
    ///
    /// # Safety
    ///
    /// `tables` and `arguments` are the kernel's arguments, in its order. The memory that they point to has the sizes that the
    /// kernel requires, and stays until [`finish`](Self::finish), or a later [`read`](Self::read), has returned. Nothing else
    /// uses it meanwhile, except as the kernel allows.
    unsafe fn launch(&self, kernel: Kernel, tables: &[(Spec, &View)], items: u64, arguments: &[u64]) -> Result<()>;

    /// Waits for the kernels that were launched here. `what` names the work in errors.
    fn finish(&self, what: &'static str) -> Result<()>;

    /// Waits for all work on the machine, of any thread or stream.
    fn synchronize(&self) -> Result<()>;

    /// Makes the memory of an empty table.
    fn new_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>>;

    /// Makes the memory of a table all of whose parts the caller fills. Its content is unspecified until then. By default the
    /// table is empty.
    fn new_unfilled_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>> {
        self.new_store(parameters)
    }

    /// Wraps memory that holds a table. The table has no filter.
    fn store_of(&self, table: TableMemory) -> Result<Box<dyn Store>>;

    /// Allocates zeroed host memory that the machine copies from and to directly. `None` if plain memory is as good.
    fn new_host_buffer(&self, bytes: usize) -> Result<Option<Box<dyn HostBuffer>>>;

    /// Loads the kernels of a rank of a cluster.
    #[cfg(feature = "cluster")]
    fn new_rank(&self) -> Result<Box<dyn super::Rank>>;
}

/// One table of a fixed size on a machine: its memory, and the operations that each machine implements in its own way. All other
/// operations are written once, in `core`, on top of [`Machine`].
pub(crate) trait Store: Any + Send + Sync + UnwindSafe + RefUnwindSafe {
    fn machine(&self) -> &dyn Machine;

    fn table(&self) -> &TableMemory;

    /// Mutable [`table`](Self::table). Nothing else uses the table.
    fn table_mut(&mut self) -> &mut TableMemory;

    /// Called when the table's spec has changed. The geometry of the new spec was requested before. The default does nothing,
    /// because all kernels are in the library.
    fn spec_has_changed(&mut self) {}

    /// Called when all vectors have been removed: removes other data that the machine has on them, such as a filter. The default
    /// does nothing.
    fn forget(&mut self) {}

    /// Compiles the kernels of a search before the search is enqueued, because compiling may wait for all work of the machine. If
    /// `is_exchanged`, also compiles the kernels for vectors of another rank. The default does nothing, because the kernels were
    /// compiled with the library.
    #[cfg(feature = "cluster")]
    fn prepare(&self, _search: SearchMode, _is_exchanged: bool) -> Result<()> {
        Ok(())
    }

    /// Enlarges this table, which has `slots` slots and which nothing else uses, where it is: its memory is enlarged, and vectors
    /// move inside of it. Calls `begin` before anything is changed. Adds the vectors that are in no slot afterwards to
    /// `unplaced`, for the caller to put. Returns false if the table cannot grow so. Then, and after an error before `begin`,
    /// nothing has changed. After a later error the table [is growing](Self::is_growing). The default is false.
    fn grow_in_place(
        &mut self,
        _parameters: &Parameters<'_>,
        _slots: u64,
        _unplaced: &mut Vec<u32>,
        _begin: &mut dyn FnMut(),
    ) -> Result<bool> {
        Ok(false)
    }

    /// Whether a growth in place has begun and was ended by an error. Nothing but [`finish_growth`](Self::finish_growth) may use
    /// the table then. The default is never.
    fn is_growing(&self) -> bool {
        false
    }

    /// Goes on with a growth in place that was ended by an error, and adds vectors to `unplaced` as
    /// [`grow_in_place`](Self::grow_in_place) does.
    fn finish_growth(&mut self, _unplaced: &mut Vec<u32>) -> Result<()> {
        Ok(())
    }

    /// Bytes that [`grow_in_place`](Self::grow_in_place) takes besides the enlarged table, at most, if the table has `slots`
    /// slots by then. `None` if it cannot grow so, which is the default.
    fn bytes_beside(&self, _parameters: &Parameters<'_>, _slots: u64) -> Option<u64> {
        None
    }

    /// Frees memory that was kept for later calls. The caller wants to know how much is free.
    fn free_scratch(&self) {}

    /// Builds a table of another size that has the vectors of this table's first `slots` slots. Returns the new table and the
    /// counts; vectors that found no slot count as `full`. This table is unchanged, and nothing else uses it. The call may use up
    /// to `spare` bytes of additional memory. `None`: nothing was done, and the caller puts the vectors into an empty table. This
    /// is the default.
    fn grown(&self, _parameters: &Parameters<'_>, _slots: u64, _spare: u64) -> Result<Option<(Box<dyn Store>, Counts)>> {
        Ok(None)
    }

    /// Searches for the vectors of a batch from host slices, or puts them. `tag`: upper bits of the references in results and of
    /// parents; a parent with other upper bits is ignored.
    fn search_batch(&self, tag: u64, batch: &mut HostBatch<'_>, progress: &mut BatchProgress<'_>) -> Result<Counts>;

    /// Searches for the vectors of a batch in memory of this machine, or puts them, after the kernels that were launched before.
    /// Allocates no memory, except for rows.
    ///
    /// # Safety
    ///
    /// The batch's buffers are large enough for its count, and stay until [`Machine::finish`], or a later [`Machine::read`], has
    /// returned. Nothing else uses them meanwhile.
    unsafe fn search_in_place(&self, search: SearchMode, batch: &BatchView) -> Result<()>;

    /// Puts the vectors in a range of slots of this table into `larger`, which is on the same machine, with several threads.
    /// `None`: nothing was done, and `core` launches kernels that export and put vectors. This is the default.
    fn rehash_by_threads(&self, _larger: &dyn Store, _slots: Range<u64>) -> Result<Option<Counts>> {
        Ok(None)
    }
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
    /// For a batch that another rank has sent: address of a number in GPU memory. If the number is not 0 when the kernel begins,
    /// the kernel does nothing.
    pub refused: Option<u64>,
    /// Whether the launch may wait for the GPU if it needs memory for rows.
    pub may_wait: bool,
    /// Operands that a find-or-put into an indexed table combines with values, and the number of bytes of an operand.
    pub upsert: Option<(crate::layout::view::UpsertView, usize)>,
}

/// Number of blocks of a search, as a multiple of the blocks that fit the GPU at the same time.
#[cfg(any(feature = "cuda", feature = "cluster"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waves {
    #[default]
    One,
    /// More and shorter blocks, so that more urgent kernels of other streams can start before all blocks are done.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "only searches of ranks run beside others"))]
    BesideOthers,
}
