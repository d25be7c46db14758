//! Page-locked host memory.

use crate::backend::cuda::PinnedMemory;
use crate::{Device, Error, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A slice in pinned (page-locked) host memory. The GPU copies directly from and to it.
///
/// The GPU reads vectors in such a slice without a copy in between (`cargo bench --bench host` measures the gain). The same holds
/// for vectors in pinned memory of other libraries, if the driver knows the slice as part of one page-locked allocation.
///
/// The driver takes about 0.4 s to allocate a GiB, and no other program can use that memory meanwhile: allocate it once and reuse
/// it. For results there is [`Buffers::pinned`](crate::Buffers::pinned).
///
/// ```no_run
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::gpu::PinnedVec;
/// use warpset::{BucketTable, Device};
///
/// let device = Device::gpu(0)?;
/// let table = BucketTable::new(&device, 2, 1_000_000)?;
/// let mut vectors = PinnedVec::<u32>::zeroed(&device, 200_000)?;
/// vectors.iter_mut().zip(0..).for_each(|(word, number)| *word = number);
/// table.find_or_put_many(&vectors)?.complete(&table)?;
/// # Ok(()) }
/// ```
pub struct PinnedVec<T> {
    memory: PinnedMemory,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: the memory is plain, has one owner, and is borrowed as a slice is.
unsafe impl<T: Sync> Sync for PinnedVec<T> {}

impl<T: NoUninit + AnyBitPattern> PinnedVec<T> {
    /// Allocates `len` elements, with all bytes zero, for the GPU `device`.
    ///
    /// # Errors
    ///
    /// [`WrongDevice`](Error::WrongDevice), [`OutOfMemory`](Error::OutOfMemory) if the size exceeds the address space, or errors
    /// of the driver.
    ///
    /// # Panics
    ///
    /// If elements are aligned to more than 16 bytes.
    pub fn zeroed(device: &Device, len: usize) -> Result<Self> {
        assert!(align_of::<T>() <= 16, "elements of pinned memory are aligned to 16 bytes at most");
        let gpu = device.as_gpu().ok_or_else(|| Error::needs_gpu("PinnedVec::zeroed", device))?;
        let too_large = || Error::no_host_memory(u64::MAX, format!("{len} elements exceed the address space"));
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
        Ok(Self { memory: PinnedMemory::new(gpu, bytes)?, len, elements: PhantomData })
    }

    /// Copies a slice to pinned memory.
    ///
    /// # Errors
    ///
    /// The errors of [`zeroed`](Self::zeroed).
    pub fn from_slice(device: &Device, elements: &[T]) -> Result<Self> {
        let mut copy = Self::zeroed(device, elements.len())?;
        copy.copy_from_slice(elements);
        Ok(copy)
    }
}

impl<T: NoUninit + AnyBitPattern> Deref for PinnedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.memory.slice(0, self.len)
    }
}

impl<T: NoUninit + AnyBitPattern> DerefMut for PinnedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.memory.part(0, self.len)
    }
}

impl<T: NoUninit + AnyBitPattern + fmt::Debug> fmt::Debug for PinnedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
