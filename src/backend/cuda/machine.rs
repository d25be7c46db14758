//! A GPU as a machine.

use super::gpu::gpu_count;
use super::memory::PinnedMemory;
use super::shared::Shared;
use super::store::CudaStore;
use super::values::CudaValues;
use super::{Current, Gpu, chunk_bytes, cuda, nvrtc};
use crate::backend::{HostBuffer, Machine, Store, Values};
use crate::layout::Spec;
use crate::layout::options::Parameters;
use crate::layout::view::Geometry;
use crate::{Error, Result};
use cudarc::driver::CudaContext;
use std::any::Any;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// One GPU, through one context.
pub(crate) struct CudaMachine {
    shared: Arc<Shared>,
}

/// The GPU with this number. The whole process shares it, so that kernels are compiled once.
fn shared_of(ordinal: usize) -> Result<Arc<Shared>> {
    static OPEN: OnceLock<Mutex<HashMap<usize, Arc<Shared>>>> = OnceLock::new();
    let mut open = OPEN.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(shared) = open.get(&ordinal) {
        return Ok(shared.clone());
    }
    let count = gpu_count()?;
    if ordinal >= count {
        return Err(Error::NoSuchGpu { ordinal, count });
    }
    let _callers = Current::keep();
    let context = std::thread::scope(|scope| {
        // Both take a while, and neither needs the other. Their results are checked below.
        let _ = std::thread::Builder::new().spawn_scoped(scope, nvrtc::ensure_present);
        CudaContext::new(ordinal).map_err(cuda("making a context"))
    });
    nvrtc::ensure_present()?;
    let shared = Arc::new(Shared::new(Gpu::new(context?)?));
    open.insert(ordinal, shared.clone());
    Ok(shared)
}

/// The GPU of a context: the one of `open`, if the context is from there; otherwise a separate one, as long as it is used.
fn shared_of_context(context: Arc<CudaContext>) -> Result<Arc<Shared>> {
    static OTHERS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());
    let common = shared_of(context.ordinal())?;
    if Arc::ptr_eq(&common.gpu.context, &context) {
        return Ok(common);
    }
    let mut others = OTHERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    others.retain(|shared| shared.strong_count() > 0);
    if let Some(shared) = others.iter().filter_map(Weak::upgrade).find(|shared| Arc::ptr_eq(&shared.gpu.context, &context)) {
        return Ok(shared);
    }
    let shared = Arc::new(Shared::new(Gpu::new(context)?));
    others.push(Arc::downgrade(&shared));
    Ok(shared)
}

impl CudaMachine {
    /// The GPU of this number.
    pub(crate) fn open(ordinal: usize) -> Result<Arc<dyn Machine>> {
        Ok(Arc::new(Self { shared: shared_of(ordinal)? }))
    }

    /// The GPU of a context.
    pub(crate) fn of_context(context: Arc<CudaContext>) -> Result<Arc<dyn Machine>> {
        Ok(Arc::new(Self { shared: shared_of_context(context)? }))
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
        (machine as &dyn Any).downcast_ref().map(|machine: &CudaMachine| &machine.shared.gpu)
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
        Gpu::of(other).is_some_and(|other| Arc::ptr_eq(&self.shared.gpu, other))
    }

    fn free_memory(&self) -> Result<u64> {
        self.shared.gpu.free_memory()
    }

    /// One size is for all widths.
    fn chunk_bytes(&self, _: usize) -> u32 {
        chunk_bytes(self.shared.gpu.compute_capability())
    }

    fn geometry(&self, spec: Spec) -> Result<Geometry> {
        Ok(self.shared.kernels(spec)?.geometry)
    }

    fn new_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>> {
        Ok(Box::new(CudaStore::new(&self.shared, parameters)?))
    }

    fn new_unfilled_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>> {
        self.new_store(parameters)
    }

    /// Memory is mapped when values are first used.
    fn new_values(&self, _: u64) -> Result<Box<dyn Values>> {
        Ok(Box::new(CudaValues::new(&self.shared.gpu)?))
    }

    fn new_host_buffer(&self, bytes: usize) -> Result<Option<Box<dyn HostBuffer>>> {
        Ok(Some(Box::new(PinnedMemory::new(&self.shared.gpu, bytes)?)))
    }

    #[cfg(feature = "cluster")]
    fn new_rank(&self) -> Result<Box<dyn crate::backend::Rank>> {
        Ok(Box::new(super::cluster::CudaRank::new(&self.shared.gpu)?))
    }
}

impl fmt::Display for CudaMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shared.gpu.name())
    }
}
