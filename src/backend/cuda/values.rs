//! Values of the rows of an indexed table, on its GPU.
//!
//! Host reads and writes come after all work that was enqueued on the GPU before them, on any stream: the caller's own kernels
//! may write values, too, on streams that are unknown here.

use super::Gpu;
use super::kernels::RowKernels;
use super::memory::DeviceMemory;
use super::reserved::ReservedMemory;
use super::store::{CudaStore, argument};
use crate::Result;
use crate::backend::{Store, Values};
use cudarc::driver::sys;
use std::ops::Range;
use std::sync::Arc;

/// Values of some type, by number.
pub(crate) struct CudaValues {
    gpu: Arc<Gpu>,
    memory: ReservedMemory,
    /// Number of usable bytes. Bytes that are mapped after them have not been cleared yet.
    bytes: u64,
}

/// Largest size of a piece when values are copied by their references, in bytes and in values.
const PIECE_BYTES: u64 = 64 << 20;
const PIECE: u64 = 1 << 20;

/// Bytes that are copied at once where initial values are written.
const FILL_BYTES: usize = 8 << 20;

impl CudaValues {
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(Self { gpu: gpu.clone(), memory: ReservedMemory::new(gpu, 0)?, bytes: 0 })
    }

    fn stream(&self) -> sys::CUstream {
        self.gpu.stream.cu_stream()
    }

    fn wait(&self, what: &'static str) -> Result<()> {
        self.gpu.wait(&self.gpu.stream, what)
    }

    /// Number of references that are copied at once, and memory for them and for their values.
    fn pieces(&self, references: &[u64], value_bytes: usize) -> Result<(usize, DeviceMemory, DeviceMemory)> {
        let value_bytes = value_bytes as u64;
        let piece = (PIECE_BYTES / value_bytes).clamp(1, PIECE).min(references.len() as u64);
        let memory = |bytes| DeviceMemory::new(&self.gpu, bytes);
        Ok((piece as usize, memory(piece * 8)?, memory(piece * value_bytes)?))
    }
}

impl Values for CudaValues {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Maps somewhat more than requested, because mapping waits for the driver.
    fn make(&mut self, bytes: u64, most: u64) -> Result<()> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let step = (self.bytes / 4 * 5).clamp(bytes, most);
        if self.memory.grow(step).is_err() {
            self.memory.grow(bytes)?;
        }
        let mapped = self.memory.bytes();
        self.memory.zero_async(self.bytes..mapped, self.stream())?;
        self.wait("clearing values")?;
        self.bytes = mapped;
        Ok(())
    }

    /// From the host, in pieces.
    fn fill(&mut self, bytes: Range<u64>, value: &[u8]) -> Result<()> {
        self.gpu.synchronize()?;
        let whole = (FILL_BYTES / value.len()).max(1) * value.len();
        let piece: Vec<u8> = value.iter().copied().cycle().take(whole.min((bytes.end - bytes.start) as usize)).collect();
        for first in bytes.clone().step_by(whole) {
            let len = piece.len().min((bytes.end - first) as usize);
            // SAFETY: usable bytes; pageable memory, so it has been copied when the call returns.
            unsafe { self.memory.write_async(first, &piece[..len], self.stream())? };
        }
        self.wait("writing values")
    }

    fn zero(&mut self, bytes: Range<u64>) -> Result<()> {
        self.gpu.synchronize()?;
        self.memory.zero_async(bytes, self.stream())?;
        self.wait("clearing values")
    }

    unsafe fn host_bytes<'a>(&self, _: u64) -> Option<&'a [u8]> {
        None
    }

    fn host_bytes_mut(&mut self, _: u64) -> Option<&mut [u8]> {
        None
    }

    fn read(&self, to: &mut [u8]) -> Result<()> {
        self.gpu.synchronize()?;
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: waited for in the next statement.
        unsafe { self.memory.read_async(0, to, self.stream())? };
        self.wait("reading values")
    }

    fn write(&mut self, from: &[u8]) -> Result<()> {
        self.gpu.synchronize()?;
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: waited for in the next statement.
        unsafe { self.memory.write_async(0, from, self.stream())? };
        self.wait("writing values")
    }

    fn gather(&self, store: &dyn Store, references: &[u64], value_bytes: usize, to: &mut [u8]) -> Result<()> {
        self.gpu.synchronize()?;
        if references.is_empty() {
            return Ok(());
        }
        let kernel = &rows_kernels(store, &self.gpu)?.gather_values;
        let (piece, references_on_gpu, packed) = self.pieces(references, value_bytes)?;
        let (all, at, packed_at) = (self.memory.address(), references_on_gpu.address(), packed.address());
        for (references, values) in references.chunks(piece).zip(to.chunks_mut(piece * value_bytes)) {
            let (value_bytes, count) = (value_bytes as u64, references.len() as u64);
            let arguments = &mut [argument(&all), argument(&value_bytes), argument(&at), argument(&count), argument(&packed_at)];
            // SAFETY: the arguments of `warpset_gather_values`; there is room for `count` references and values; the host's
            // slices are borrowed until the wait below.
            unsafe {
                references_on_gpu.write_async(0, references, self.stream())?;
                let blocks = self.gpu.blocks_for(count * value_bytes.div_ceil(8));
                self.gpu.launch(kernel, (blocks, 256, 0), self.stream(), arguments)?;
                packed.read_async(0, values, self.stream())?;
            }
            self.wait("reading values")?;
        }
        Ok(())
    }

    fn scatter(&mut self, store: &dyn Store, references: &[u64], value_bytes: usize, from: &[u8]) -> Result<()> {
        self.gpu.synchronize()?;
        if references.is_empty() {
            return Ok(());
        }
        let kernel = &rows_kernels(store, &self.gpu)?.scatter_values;
        let (piece, references_on_gpu, packed) = self.pieces(references, value_bytes)?;
        let (all, at, packed_at) = (self.memory.address(), references_on_gpu.address(), packed.address());
        for (references, values) in references.chunks(piece).zip(from.chunks(piece * value_bytes)) {
            let (value_bytes, count) = (value_bytes as u64, references.len() as u64);
            let arguments = &mut [argument(&all), argument(&value_bytes), argument(&at), argument(&count), argument(&packed_at)];
            // SAFETY: the arguments of `warpset_scatter_values`; as above; the references' bytes are usable (`Array::open`).
            unsafe {
                references_on_gpu.write_async(0, references, self.stream())?;
                packed.write_async(0, values, self.stream())?;
                let blocks = self.gpu.blocks_for(count * value_bytes.div_ceil(8));
                self.gpu.launch(kernel, (blocks, 256, 0), self.stream(), arguments)?;
            }
            self.wait("writing values")?;
        }
        Ok(())
    }
}

/// The kernels for rows of a store on this GPU.
fn rows_kernels<'a>(store: &'a dyn Store, gpu: &Gpu) -> Result<&'a RowKernels> {
    CudaStore::of(store).expect("a table stays on its machine").kernels.rows(gpu)
}

impl Drop for CudaValues {
    fn drop(&mut self) {
        // Kernels may still use the values, and unmapping does not wait. If the wait fails, the context is lost.
        let _ = self.gpu.synchronize();
    }
}
