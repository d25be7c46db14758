//! The memory of a table of one size, on whichever device it is, and what is done with it.

use super::batch::{HostBatch, Progress};
use super::indexed::{Closing, RowCounts};
use super::options::Parameters;
use super::view::{Counts, ProbeTotals};
use crate::Result;
#[cfg(feature = "cpu")]
use crate::backend::cpu::CpuStore;
#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaStore;
use crate::device::{Device, Machine};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    FindOrPut,
    /// Find-or-put of keys of a cuckoo table that relocation has left in no slot, while nothing else uses the table.
    PutBack,
    Find,
}

/// How often everything is relocated again because a key that was left over finds no slot in the stash.
pub(crate) const RELOCATION_ROUNDS: u64 = 64;

pub(crate) struct ProbeLengths {
    pub lengths: Vec<u64>,
    pub totals: ProbeTotals,
}

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

    /// Closes holes among the rows of an indexed table. Nothing else uses it.
    pub(crate) fn close_holes(&mut self, closing: &Closing) -> Result<()> {
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

    /// Rehashes every vector of `self`, which has `slots` slots, into `larger`.
    pub(crate) fn rehash_into(&self, larger: &Store, slots: u64) -> Result<Counts> {
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
