//! A GPU as a machine.

use super::cluster::CudaRank;
use super::memory::PinnedMemory;
use super::store::CudaStore;
use super::values::CudaValues;
use super::{Gpu, chunk_bytes};
use crate::Result;
use crate::backend::{HostBuffer, Machine, Rank, Store, Values};
use crate::layout::Spec;
use crate::layout::options::Parameters;
use crate::layout::view::Geometry;
use std::any::Any;
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

/// One GPU, through one context.
pub(crate) struct CudaMachine {
    gpu: Arc<Gpu>,
}

impl CudaMachine {
    pub(crate) fn new(gpu: Arc<Gpu>) -> Arc<dyn Machine> {
        Arc::new(Self { gpu })
    }

    /// The GPU of this number.
    pub(crate) fn open(ordinal: usize) -> Result<Arc<dyn Machine>> {
        Ok(Self::new(Gpu::open(ordinal)?))
    }

    /// The GPU with the most memory.
    pub(crate) fn largest() -> Result<Arc<dyn Machine>> {
        let gpus = Gpu::list()?;
        let largest = gpus.iter().max_by_key(|gpu| (gpu.memory_bytes, Reverse(gpu.ordinal)));
        Self::open(largest.map_or(0, |gpu| gpu.ordinal))
    }
}

impl Gpu {
    /// The GPU that a machine is, if it is one.
    pub(crate) fn of(machine: &dyn Machine) -> Option<&Arc<Self>> {
        (machine as &dyn Any).downcast_ref().map(|machine: &CudaMachine| &machine.gpu)
    }
}

impl Machine for CudaMachine {
    fn is_gpu(&self) -> bool {
        true
    }

    fn threads(&self) -> usize {
        0
    }

    fn is_same(&self, other: &dyn Machine) -> bool {
        Gpu::of(other).is_some_and(|other| Arc::ptr_eq(&self.gpu, other))
    }

    fn free_memory(&self) -> Result<u64> {
        self.gpu.free_memory()
    }

    /// One size is for all widths.
    fn chunk_bytes(&self, _: usize) -> u32 {
        chunk_bytes(self.gpu.compute_capability())
    }

    fn geometry(&self, spec: Spec) -> Result<Geometry> {
        Ok(self.gpu.kernels(spec)?.geometry)
    }

    fn new_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>> {
        Ok(Box::new(CudaStore::new(&self.gpu, parameters)?))
    }

    fn new_unfilled_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>> {
        self.new_store(parameters)
    }

    /// Memory is mapped when values are first used.
    fn new_values(&self, _: u64) -> Result<Box<dyn Values>> {
        Ok(Box::new(CudaValues::new(&self.gpu)?))
    }

    fn new_host_buffer(&self, bytes: usize) -> Result<Option<Box<dyn HostBuffer>>> {
        Ok(Some(Box::new(PinnedMemory::new(&self.gpu, bytes)?)))
    }

    fn new_rank(&self) -> Result<Box<dyn Rank>> {
        Ok(Box::new(CudaRank::new(&self.gpu)?))
    }
}

impl fmt::Display for CudaMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.gpu.name())
    }
}
