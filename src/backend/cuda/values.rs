//! Values beside the rows of an indexed table on its GPU.
//!
//! What the host reads or writes comes after all that was enqueued on the GPU before: kernels of the caller's own write values,
//! too, on streams that nobody here knows.

use super::Gpu;
use super::memory::DeviceMemory;
use super::reserved::ReservedMemory;
use super::store::{CudaStore, argument};
use crate::Result;
use crate::host::zeroed;
use bytemuck::Pod;
use cudarc::driver::sys;
use std::ops::Range;
use std::sync::Arc;

/// Values of some type, by number. Zeros at first; nothing moves when it grows.
pub(crate) struct CudaValues {
    gpu: Arc<Gpu>,
    memory: ReservedMemory,
    /// So many bytes may be used. Those that are mapped after them have not been cleared yet.
    bytes: u64,
}

/// Values are copied by their references in pieces of so many bytes, and of so many values, at most.
const PIECE_BYTES: u64 = 64 << 20;
const PIECE: u64 = 1 << 20;

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

    /// Sees to it that so many bytes may be used: some more, up to `most`, as mapping waits for the driver.
    ///
    /// # Errors
    ///
    /// If there is no memory: then what may be used is what it was.
    pub(crate) fn make(&mut self, bytes: u64, most: u64) -> Result<()> {
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

    pub(crate) fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    pub(crate) fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Makes zeros of bytes that may be used.
    pub(crate) fn zero(&mut self, bytes: Range<u64>) -> Result<()> {
        self.gpu.synchronize()?;
        self.memory.zero_async(bytes, self.stream())?;
        self.wait("clearing values")
    }

    /// The first values, so many.
    pub(crate) fn read<V: Pod>(&self, count: u64) -> Result<Vec<V>> {
        self.gpu.synchronize()?;
        let mut values = zeroed::<V>(count as usize)?;
        if count > 0 {
            // SAFETY: waited for in the next statement.
            unsafe { self.memory.read_async(0, &mut values, self.stream())? };
            self.wait("reading values")?;
        }
        Ok(values)
    }

    /// Writes the first values.
    pub(crate) fn write<V: Pod>(&mut self, values: &[V]) -> Result<()> {
        self.gpu.synchronize()?;
        if values.is_empty() {
            return Ok(());
        }
        // SAFETY: waited for in the next statement.
        unsafe { self.memory.write_async(0, values, self.stream())? };
        self.wait("writing values")
    }

    /// References that are copied at once, and memory for them and for their values.
    fn pieces<V>(&self, references: &[u64]) -> Result<(usize, DeviceMemory, DeviceMemory)> {
        let value_bytes = size_of::<V>() as u64;
        let piece = (PIECE_BYTES / value_bytes).clamp(1, PIECE).min(references.len() as u64);
        let memory = |bytes| DeviceMemory::new(&self.gpu, bytes);
        Ok((piece as usize, memory(piece * 8)?, memory(piece * value_bytes)?))
    }

    /// The values at `references`, whose bytes may be used. The bits above the slots' are not looked at.
    pub(crate) fn gather<V: Pod>(&self, store: &CudaStore, references: &[u64]) -> Result<Vec<V>> {
        self.gpu.synchronize()?;
        let mut values = zeroed::<V>(references.len())?;
        if references.is_empty() {
            return Ok(values);
        }
        let kernel = &store.kernels.rows(&self.gpu)?.gather_values;
        let (piece, references_on_gpu, packed) = self.pieces::<V>(references)?;
        let (all, at, to) = (self.memory.address(), references_on_gpu.address(), packed.address());
        for (references, values) in references.chunks(piece).zip(values.chunks_mut(piece)) {
            let (value_bytes, count) = (size_of::<V>() as u64, references.len() as u64);
            let arguments = &mut [argument(&all), argument(&value_bytes), argument(&at), argument(&count), argument(&to)];
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
        Ok(values)
    }

    /// Writes the values at `references`, each of which is there once.
    pub(crate) fn scatter<V: Pod>(&mut self, store: &CudaStore, references: &[u64], values: &[V]) -> Result<()> {
        self.gpu.synchronize()?;
        if references.is_empty() {
            return Ok(());
        }
        let kernel = &store.kernels.rows(&self.gpu)?.scatter_values;
        let (piece, references_on_gpu, packed) = self.pieces::<V>(references)?;
        let (all, at, from) = (self.memory.address(), references_on_gpu.address(), packed.address());
        for (references, values) in references.chunks(piece).zip(values.chunks(piece)) {
            let (value_bytes, count) = (size_of::<V>() as u64, references.len() as u64);
            let arguments = &mut [argument(&all), argument(&value_bytes), argument(&at), argument(&count), argument(&from)];
            // SAFETY: the arguments of `warpset_scatter_values`; as above; the references' bytes may be used (`Array::open`).
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

impl Drop for CudaValues {
    fn drop(&mut self) {
        // Kernels may be at work on them, and unmapping does not wait. If that fails the context is lost.
        let _ = self.gpu.synchronize();
    }
}
