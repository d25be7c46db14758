//! Memory of a GPU, and pinned memory of the host.

use super::{Gpu, cuda, pass};
use crate::backend::HostBuffer;
use crate::{Error, Result, faults};
use bytemuck::{AnyBitPattern, NoUninit};
use cudarc::driver::{DriverError, result, sys};
use std::sync::Arc;

/// Plain device memory. It is freed when dropped, after all work that was submitted to the GPU before.
pub(crate) struct DeviceMemory {
    gpu: Arc<Gpu>,
    address: sys::CUdeviceptr,
    bytes: usize,
}

impl DeviceMemory {
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        let _current = gpu.bind()?;
        let free = gpu.free_memory()?;
        let out_of_memory = || gpu.out_of_memory(bytes, free);
        if bytes > free || faults::should_fail() {
            return Err(out_of_memory());
        }
        // SAFETY: the context is current; the address is used within `bytes` of it only, and freed once, by `drop`.
        let address = unsafe { result::malloc_sync((bytes as usize).max(16)) }.map_err(|error| {
            if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY { out_of_memory() } else { cuda("allocating memory")(error) }
        })?;
        Ok(Self { gpu: gpu.clone(), address, bytes: bytes as usize })
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    #[cfg(feature = "nccl")]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies `data` to byte `offset`, in order with the work of `stream`. Pageable `data` is copied before the call returns.
    ///
    /// # Safety
    ///
    /// Pinned `data` must not be changed or freed before `stream` has passed this point.
    pub(crate) unsafe fn write_async<T: NoUninit>(&self, offset: usize, data: &[T], stream: sys::CUstream) -> Result<()> {
        assert!(offset + size_of_val(data) <= self.bytes, "a copy to the device stays within its memory");
        pass("copying to the GPU")?;
        let _current = self.gpu.bind()?;
        // SAFETY: within the allocation (asserted). The caller keeps the source alive.
        unsafe { result::memcpy_htod_async(self.address + offset as u64, data, stream) }.map_err(cuda("copying to the GPU"))
    }

    /// Copies from byte `offset` to `data`, in order with the work of `stream`.
    ///
    /// # Safety
    ///
    /// `data` must not be used or freed before `stream` has passed this point.
    pub(crate) unsafe fn read_async<T: AnyBitPattern + NoUninit>(
        &self,
        offset: usize,
        data: &mut [T],
        stream: sys::CUstream,
    ) -> Result<()> {
        assert!(offset + size_of_val(data) <= self.bytes, "a copy from the device stays within its memory");
        pass("copying from the GPU")?;
        let _current = self.gpu.bind()?;
        // SAFETY: within the allocation (asserted). The caller keeps the target alive.
        unsafe { result::memcpy_dtoh_async(data, self.address + offset as u64, stream) }.map_err(cuda("copying from the GPU"))
    }

    /// Sets `bytes` bytes from `offset` to zero, in order with the work of `stream`.
    pub(crate) fn zero_async(&self, offset: usize, bytes: usize, stream: sys::CUstream) -> Result<()> {
        assert!(offset + bytes <= self.bytes, "a fill stays within its memory");
        pass("filling memory")?;
        let _current = self.gpu.bind()?;
        // SAFETY: within the allocation (asserted), which outlives the stream's work on it (`drop` waits).
        unsafe { result::memset_d8_async(self.address + offset as u64, 0, bytes, stream) }.map_err(cuda("filling memory"))
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // Errors in a drop cannot be returned. A failed context reports its error at its next use. (Errors that other code has
        // recorded in the context do not matter.)
        if let Ok(_current) = self.gpu.bind() {
            // SAFETY: allocated by `new` and freed once. `cuMemFree` waits for work that may use it.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

/// Page-locked host memory, which the GPU copies to and from directly.
pub(crate) struct PinnedMemory {
    gpu: Arc<Gpu>,
    address: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory with one owner; its methods borrow it as a slice does.
unsafe impl Send for PinnedMemory {}

impl PinnedMemory {
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self> {
        pass("allocating pinned memory")?;
        let _current = gpu.bind()?;
        // SAFETY: the context is current; freed once, by `drop`. No flags, because the host reads results here, so the memory
        // must be cached.
        let address = unsafe { result::malloc_host(bytes.max(16), 0) };
        let refused = |error: DriverError| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::no_host_memory(bytes as u64, "the driver has no pinned memory"),
            _ => cuda("allocating pinned memory")(error),
        };
        let address = address.map_err(refused)?.cast::<u8>();
        // SAFETY: just allocated, of this size; bytes must hold values before they are shown as a slice.
        unsafe { address.write_bytes(0, bytes.max(16)) };
        Ok(Self { gpu: gpu.clone(), address, bytes })
    }

    /// `count` elements from byte `offset`, which is a multiple of 16.
    pub(crate) fn slice<T: AnyBitPattern + NoUninit>(&self, offset: usize, count: usize) -> &[T] {
        assert!(offset.is_multiple_of(16) && align_of::<T>() <= 16 && offset + count * size_of::<T>() <= self.bytes);
        // SAFETY: as in `part`, shared.
        unsafe { std::slice::from_raw_parts(self.address.add(offset).cast(), count) }
    }

    /// Mutable view of a part of the memory.
    pub(crate) fn part<T: AnyBitPattern + NoUninit>(&mut self, offset: usize, count: usize) -> &mut [T] {
        assert!(offset.is_multiple_of(16) && align_of::<T>() <= 16 && offset + count * size_of::<T>() <= self.bytes);
        // SAFETY: initialised, within the allocation and aligned (asserted; the driver aligns to pages); any bits are a `T`. The
        // borrow is exclusive, and the caller makes sure that no copy under way uses the part.
        unsafe { std::slice::from_raw_parts_mut(self.address.add(offset).cast(), count) }
    }
}

impl PinnedMemory {
    /// Mutable view of a part that does not borrow the memory, so that several parts can be used at the same time.
    ///
    /// # Safety
    ///
    /// Parts that are in use at the same time must not overlap.
    #[allow(clippy::mut_from_ref)] // that is what the contract is about
    pub(crate) unsafe fn disjoint_part<T: AnyBitPattern + NoUninit>(&self, offset: usize, count: usize) -> &mut [T] {
        assert!(offset.is_multiple_of(16) && align_of::<T>() <= 16 && offset + count * size_of::<T>() <= self.bytes);
        // SAFETY: as in `part`; the caller promises that nothing else borrows the part.
        unsafe { std::slice::from_raw_parts_mut(self.address.add(offset).cast(), count) }
    }
}

impl HostBuffer for PinnedMemory {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn as_slice(&self) -> &[u8] {
        self.slice(0, self.bytes)
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        self.part(0, self.bytes)
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if let Ok(_current) = self.gpu.bind() {
            // SAFETY: allocated by `new` and freed once; stages are idle when they are dropped.
            let _ = unsafe { result::free_host(self.address.cast()) };
        }
    }
}
