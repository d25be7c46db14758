//! A GPU as a machine.

use super::device_memory::{DeviceMemory, PinnedMemory};
use super::gpu::gpu_count;
use super::gpu_state::GpuState;
use super::reserved::ReservedMemory;
use super::store::{CudaStore, argument, view_argument};
use super::{Current, Gpu, chunk_bytes, cuda, nvrtc, pass};
use crate::backend::{HostBuffer, Machine, Memory, Region, Store, TableMemory};
use crate::layout::options::Parameters;
use crate::layout::view::{Geometry, View};
use crate::layout::{Kernel, Spec};
use crate::{Error, Result};
use cudarc::driver::{CudaContext, result, sys};
use std::any::Any;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// One GPU, through one context. Operations that wait for their work use the stream of [`Gpu`].
#[derive(Clone)]
pub(crate) struct CudaMachine {
    pub(super) shared: Arc<GpuState>,
}

/// Number of cells for spare rows: more than the lanes that run on a GPU at once.
const SPARE_CELLS: u32 = 1 << 18;

/// Bytes per copy when memory is filled with values of several bytes.
const FILL_BYTES: usize = 8 << 20;

/// Returns the GPU with number `ordinal`. The whole process shares it, so that kernels are compiled once.
fn shared_of(ordinal: usize) -> Result<Arc<GpuState>> {
    static OPEN: OnceLock<Mutex<HashMap<usize, Arc<GpuState>>>> = OnceLock::new();
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
        // Loading NVRTC and making a context both take a while, so they run at the same time. Their results are checked below.
        let _ = std::thread::Builder::new().spawn_scoped(scope, nvrtc::ensure_present);
        CudaContext::new(ordinal).map_err(cuda("making a context"))
    });
    nvrtc::ensure_present()?;
    let shared = Arc::new(GpuState::new(Gpu::new(context?)?));
    open.insert(ordinal, shared.clone());
    Ok(shared)
}

/// Returns the GPU of a context. If `shared_of` made the context, this is its GPU. Otherwise it is a separate one, which all
/// users of the context share as long as one of them has it.
fn shared_of_context(context: Arc<CudaContext>) -> Result<Arc<GpuState>> {
    static OTHERS: Mutex<Vec<Weak<GpuState>>> = Mutex::new(Vec::new());
    let common = shared_of(context.ordinal())?;
    if Arc::ptr_eq(&common.gpu.context, &context) {
        return Ok(common);
    }
    let mut others = OTHERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    others.retain(|shared| shared.strong_count() > 0);
    if let Some(shared) = others.iter().filter_map(Weak::upgrade).find(|shared| Arc::ptr_eq(&shared.gpu.context, &context)) {
        return Ok(shared);
    }
    let shared = Arc::new(GpuState::new(Gpu::new(context)?));
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

    pub(super) fn gpu(&self) -> &Arc<Gpu> {
        &self.shared.gpu
    }

    pub(super) fn wait(&self, what: &'static str) -> Result<()> {
        self.gpu().wait(&self.gpu().stream, what)
    }

    /// The stream for operations that wait for their work.
    pub(super) fn stream(&self) -> sys::CUstream {
        self.gpu().stream.cu_stream()
    }

    /// Enqueues on `stream` a copy of bytes of a region, from byte `offset` on, to `to`.
    ///
    /// # Safety
    ///
    /// The region is memory of this GPU. `to` must not be used or freed before the stream has passed this point.
    pub(super) unsafe fn read_async(&self, region: Region, offset: u64, to: &mut [u8], stream: sys::CUstream) -> Result<()> {
        let from = region.at(offset, to.len() as u64);
        pass("copying from the GPU")?;
        let _current = self.gpu().bind()?;
        // SAFETY: within the region (checked). The caller guarantees the rest.
        unsafe { result::memcpy_dtoh_async(to, from, stream) }.map_err(cuda("copying from the GPU"))
    }

    /// Enqueues on `stream` a copy of `from` to a region, from byte `offset` on. Pageable `from` is copied before the call
    /// returns.
    ///
    /// # Safety
    ///
    /// The region is memory of this GPU. Pinned `from` must not be changed or freed before the stream has passed this point.
    pub(super) unsafe fn write_async(&self, region: Region, offset: u64, from: &[u8], stream: sys::CUstream) -> Result<()> {
        let to = region.at(offset, from.len() as u64);
        pass("copying to the GPU")?;
        let _current = self.gpu().bind()?;
        // SAFETY: within the region (checked). The caller guarantees the rest.
        unsafe { result::memcpy_htod_async(to, from, stream) }.map_err(cuda("copying to the GPU"))
    }

    /// Enqueues on `stream` the setting of bytes of a region to `byte`.
    ///
    /// # Safety
    ///
    /// The region is memory of this GPU, and stays until the stream has passed this point.
    pub(super) unsafe fn fill_async(&self, region: Region, bytes: Range<u64>, byte: u8, stream: sys::CUstream) -> Result<()> {
        let count = bytes.end - bytes.start;
        let to = region.at(bytes.start, count);
        pass("filling memory")?;
        let _current = self.gpu().bind()?;
        // SAFETY: within the region (checked). The caller guarantees the rest.
        unsafe { result::memset_d8_async(to, byte, count as usize, stream) }.map_err(cuda("filling memory"))
    }
}

impl Gpu {
    /// Returns the GPU of a machine, if the machine is a GPU.
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

    /// The size is the same for all widths.
    fn chunk_bytes(&self, _: usize) -> u32 {
        chunk_bytes(self.shared.gpu.compute_capability())
    }

    fn geometry(&self, spec: Spec) -> Result<Geometry> {
        Ok(self.shared.kernels(spec)?.geometry)
    }

    fn new_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>> {
        Ok(Box::new(CudaStore::new(self, parameters)?))
    }

    fn store_of(&self, table: TableMemory) -> Result<Box<dyn Store>> {
        Ok(Box::new(CudaStore::of_memory(self, table)?))
    }

    fn spare_cells(&self) -> u32 {
        SPARE_CELLS
    }

    fn provides_on_demand(&self) -> bool {
        false
    }

    fn check_memory(&self, bytes: u64) -> Result<()> {
        let free = self.gpu().free_memory()?;
        if bytes > free { Err(self.gpu().out_of_memory(bytes, free)) } else { Ok(()) }
    }

    fn allocate(&self, bytes: u64) -> Result<Memory> {
        let memory = DeviceMemory::new(self.gpu(), bytes)?;
        Ok(Memory::new(memory.address(), bytes, memory))
    }

    fn allocate_to_grow(&self, bytes: u64) -> Result<Memory> {
        if ReservedMemory::is_for(bytes) {
            match ReservedMemory::new(self.gpu(), bytes) {
                Ok(memory) => return Ok(Memory::new(memory.address(), bytes, memory)),
                Err(error @ Error::OutOfMemory { .. }) => return Err(error),
                // Without addresses to reserve the table grows beside a second one.
                Err(_) => {}
            }
        }
        self.allocate(bytes)
    }

    fn reserve(&self, _: u64) -> Result<Memory> {
        let memory = ReservedMemory::new(self.gpu(), 0)?;
        Ok(Memory::new(memory.address(), memory.bytes(), memory))
    }

    /// Grows by at least a quarter if `most` and the free memory allow it, because each mapping waits for the driver.
    fn grow(&self, memory: &mut Memory, least: u64, most: u64) -> Result<()> {
        let step = (memory.bytes / 4 * 5).min(most).max(least);
        memory.grow(|memory: &mut ReservedMemory| {
            memory.grow(step).or_else(|_| memory.grow(least))?;
            Ok(memory.bytes())
        })
    }

    unsafe fn read(&self, region: Region, offset: u64, to: &mut [u8]) -> Result<()> {
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: waited for in the next statement. The caller guarantees the region.
        unsafe { self.read_async(region, offset, to, self.stream())? };
        self.wait("copying from the GPU")
    }

    unsafe fn load(&self, region: Region, offset: u64, to: &mut [u64]) -> Result<()> {
        // SAFETY: the caller guarantees the contract.
        unsafe { self.read(region, offset, bytemuck::cast_slice_mut(to)) }
    }

    unsafe fn write(&self, region: Region, offset: u64, from: &[u8]) -> Result<()> {
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: waited for in the next statement. The caller guarantees the region.
        unsafe { self.write_async(region, offset, from, self.stream())? };
        self.wait("copying to the GPU")
    }

    unsafe fn fill(&self, region: Region, bytes: Range<u64>, value: &[u8]) -> Result<()> {
        if let [byte] = value {
            // SAFETY: waited for in the next statement. The caller guarantees the region.
            unsafe { self.fill_async(region, bytes, *byte, self.stream())? };
            return self.wait("filling memory");
        }
        // Copies the values from the host, in pieces.
        let whole = (FILL_BYTES / value.len()).max(1) * value.len();
        let piece: Vec<u8> = value.iter().copied().cycle().take(whole.min((bytes.end - bytes.start) as usize)).collect();
        for first in bytes.clone().step_by(whole) {
            let len = piece.len().min((bytes.end - first) as usize);
            // SAFETY: pageable memory, so it has been copied when the call returns. The caller guarantees the region.
            unsafe { self.write_async(region, first, &piece[..len], self.stream())? };
        }
        self.wait("filling memory")
    }

    unsafe fn read_pieces(&self, region: Region, bytes: u64, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        // SAFETY: the caller guarantees the contract.
        unsafe { self.read_in_pieces(region, bytes, each) }
    }

    unsafe fn fill_pieces(&self, region: Region, bytes: u64, each: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        // SAFETY: the caller guarantees the contract.
        unsafe { self.fill_in_pieces(region, bytes, each) }
    }

    fn prepare(&self, kernel: Kernel, spec: Spec) -> Result<()> {
        self.shared.kernels(spec)?.function(self.gpu(), kernel).map(drop)
    }

    unsafe fn launch(&self, kernel: Kernel, tables: &[(Spec, &View)], items: u64, arguments: &[u64]) -> Result<()> {
        let gpu = self.gpu();
        let function = self.shared.kernels(tables[0].0)?.function(gpu, kernel)?;
        let views = tables.iter().filter(|_| kernel.takes_tables()).map(|(_, view)| view_argument(view));
        let mut arguments: Vec<*mut c_void> = views.chain(arguments.iter().map(argument)).collect();
        // SAFETY: the caller guarantees the contract. A parameter of 32 bits is copied from the low half of its number: GPUs and
        // their hosts are little-endian.
        unsafe { gpu.launch(&function, (gpu.blocks_for(items), 256, 0), self.stream(), &mut arguments) }
    }

    fn finish(&self, what: &'static str) -> Result<()> {
        self.wait(what)
    }

    fn synchronize(&self) -> Result<()> {
        self.gpu().synchronize()
    }

    fn new_host_buffer(&self, bytes: usize) -> Result<Option<Box<dyn HostBuffer>>> {
        Ok(Some(Box::new(PinnedMemory::new(&self.shared.gpu, bytes)?)))
    }

    #[cfg(feature = "cluster")]
    fn new_rank(&self) -> Result<Box<dyn crate::backend::Rank>> {
        Ok(Box::new(super::cluster::CudaRank::new(self)?))
    }
}

impl fmt::Display for CudaMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shared.gpu.name())
    }
}
