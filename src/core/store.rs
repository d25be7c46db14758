//! The memory of a table of one size, on whichever device it is, and what is done with it.

use crate::Result;
#[cfg(feature = "cpu")]
use crate::backend::cpu::CpuStore;
#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaStore;
use crate::device::{Device, Machine};
use crate::layout::Part;
use crate::layout::options::Parameters;
use crate::layout::rows::{Closing, RowCounts};
use crate::layout::search::{ProbeLengths, Search};
use crate::layout::view::Counts;
use crate::layout::{HostBatch, Progress};
use std::ops::Range;

pub(crate) enum Store {
    #[cfg(feature = "cpu")]
    Cpu(Box<CpuStore>),
    #[cfg(feature = "cuda")]
    Cuda(Box<CudaStore>),
}

/// Calls the same method of whichever store it is.
macro_rules! on_store {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match $self {
            #[cfg(feature = "cuda")]
            Store::Cuda(store) => store.$method($($argument),*),
            #[cfg(feature = "cpu")]
            Store::Cpu(store) => store.$method($($argument),*),
        }
    };
}

impl Store {
    pub(crate) fn new(device: &Device, parameters: &Parameters<'_>) -> Result<Self> {
        match &device.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { threads } => Ok(Self::Cpu(Box::new(CpuStore::new(parameters, *threads)?))),
            #[cfg(feature = "cuda")]
            Machine::Cuda(gpu) => Ok(Self::Cuda(Box::new(CudaStore::new(gpu, parameters)?))),
        }
    }

    /// The same for a table whose every part is to be filled: what is in it is not said.
    pub(crate) fn unfilled(device: &Device, parameters: &Parameters<'_>) -> Result<Self> {
        match &device.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { threads } => Ok(Self::Cpu(Box::new(CpuStore::unfilled(parameters, *threads)?))),
            #[cfg(feature = "cuda")]
            Machine::Cuda(gpu) => Ok(Self::Cuda(Box::new(CudaStore::new(gpu, parameters)?))),
        }
    }

    /// Calls `each` with the first `bytes` of a part: pieces of whole blocks of files, in order. Nothing else uses the table.
    pub(crate) fn read_pieces(&self, part: Part, bytes: u64, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        on_store!(self.read_pieces(part, bytes, each))
    }

    /// Copies the bytes of a part from `offset` on. Nothing else uses the table.
    pub(crate) fn read_at(&self, part: Part, offset: u64, to: &mut [u8]) -> Result<()> {
        on_store!(self.read_at(part, offset, to))
    }

    /// Has `each` write the first `bytes` of a part: pieces of whole blocks of files, in order.
    pub(crate) fn fill_pieces(&mut self, part: Part, bytes: u64, each: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        on_store!(self.fill_pieces(part, bytes, each))
    }

    /// Says what is stored in a table whose parts were filled: vectors; nodes, or rows that were given; rows in order; and which
    /// rows are spare.
    pub(crate) fn set_counts(&mut self, counts: &[u64; 3], spares: &[u64]) -> Result<()> {
        on_store!(self.set_counts(counts, spares))
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn on_gpu(&self) -> Option<&CudaStore> {
        match self {
            Self::Cuda(store) => Some(store),
            #[cfg(feature = "cpu")]
            Self::Cpu(_) => None,
        }
    }

    /// How many vectors are stored, and how many nodes (any number in tables without nodes).
    pub(crate) fn stored(&self) -> Result<[u64; 2]> {
        on_store!(self.stored())
    }

    /// Calls `begin` before anything is changed; then either all vectors go, or an error says that all or none have gone.
    pub(crate) fn clear(&mut self, begin: impl FnOnce()) -> Result<()> {
        on_store!(self.clear(begin))
    }

    /// References written have `tag`, and so have those of parents that count.
    pub(crate) fn search(
        &self,
        search: Search,
        tag: u64,
        batch: &mut HostBatch<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<Counts> {
        on_store!(self.search(search, tag, batch, progress))
    }

    /// What rows an indexed table has. Nothing else uses it.
    pub(crate) fn row_counts(&self) -> Result<RowCounts> {
        on_store!(self.row_counts())
    }

    /// The rows of a range that are not stored, in no order, as many of them as there is `room` for; and how many there are.
    pub(crate) fn list_holes(&self, rows: Range<u64>, room: u64) -> Result<(Vec<u64>, u64)> {
        on_store!(self.list_holes(rows, room))
    }

    /// See there.
    #[cfg(all(test, feature = "cpu"))]
    pub(crate) fn lose_a_row(&self) -> u64 {
        match self {
            Self::Cpu(store) => store.lose_a_row(),
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => unimplemented!("a test of tables on the CPU"),
        }
    }

    /// How many references are to rows of an indexed table that are not stored.
    pub(crate) fn count_unstored(&self, references: &[u64]) -> Result<u64> {
        on_store!(self.count_unstored(references))
    }

    /// So many rows of an indexed table are known to be stored, from the first on; 0 of others.
    pub(crate) fn dense(&self) -> u64 {
        on_store!(self.dense())
    }

    /// Rows before this one are stored, which the caller has seen.
    pub(crate) fn set_dense(&mut self, rows: u64) {
        on_store!(self.set_dense(rows));
    }

    /// The words of the first rows, if they are in the memory of this process.
    ///
    /// # Safety
    ///
    /// They are stored, and the caller has seen it.
    #[cfg_attr(not(feature = "cpu"), allow(unused_variables))]
    pub(crate) unsafe fn first_rows(&self, rows: u64) -> Option<&[u32]> {
        match self {
            #[cfg(feature = "cpu")]
            // SAFETY: the caller's.
            Self::Cpu(store) => Some(unsafe { store.first_rows(rows) }),
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => None,
        }
    }

    /// Waits for all work on the table's device.
    pub(crate) fn settle(&self) -> Result<()> {
        on_store!(self.settle())
    }

    /// Bytes of memory that the rows of an indexed table take; 0 of others.
    pub(crate) fn row_bytes(&self) -> u64 {
        on_store!(self.row_bytes())
    }

    /// Closes holes among the rows of an indexed table, and says whether rows have moved, also if something fails after that.
    /// Nothing else uses it.
    pub(crate) fn close_holes(&mut self, closing: &Closing) -> (bool, Result<()>) {
        on_store!(self.close_holes(closing))
    }

    /// Makes an index of another size of the rows before `last` of an indexed table, and forgets the others. Gives what was
    /// counted: if some found no slot, the table is as it was. Nothing else uses the table.
    pub(crate) fn reindex(&mut self, parameters: &Parameters<'_>, last: u64) -> Result<Counts> {
        on_store!(self.reindex(parameters, last))
    }

    /// Relocates the keys of a cuckoo table's stash (compact/relocation.cuh). Calls `begin` when there is memory for it, and
    /// before a key moves. Gives how many have left the stash.
    pub(crate) fn relocate(&self, seed: u64, begin: impl FnOnce()) -> Result<u64> {
        on_store!(self.relocate(seed, begin))
    }

    /// Whether keys are in no slot, because relocation has met an error: nothing may be looked for before they are put back.
    pub(crate) fn has_displaced(&self) -> bool {
        on_store!(self.has_displaced())
    }

    /// Puts displaced keys back. Nothing else may use the table at the same time.
    pub(crate) fn put_displaced_back(&self) -> Result<()> {
        on_store!(self.put_displaced_back())
    }

    /// The number of words that could not be read.
    pub(crate) fn get(&self, references: &[u64], vectors: &mut [u32]) -> Result<u64> {
        on_store!(self.get(references, vectors))
    }

    /// The vectors in a range of slots, and which slots they are in.
    pub(crate) fn export(&self, slots: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)> {
        on_store!(self.export(slots))
    }

    pub(crate) fn measure(&self, slots: u64, bins: usize) -> Result<ProbeLengths> {
        on_store!(self.measure(slots, bins))
    }

    /// Finds or puts the vectors in a range of slots of `self` in `larger`.
    pub(crate) fn rehash_into(&self, larger: &Store, slots: Range<u64>) -> Result<Counts> {
        match (self, larger) {
            #[cfg(feature = "cuda")]
            (Self::Cuda(from), Self::Cuda(to)) => from.rehash_into(to, slots),
            #[cfg(feature = "cpu")]
            (Self::Cpu(from), Self::Cpu(to)) => from.rehash_into(to, slots),
            #[cfg(all(feature = "cuda", feature = "cpu"))]
            _ => unreachable!("a table stays on its device"),
        }
    }
}
