//! Device memory that batches are read from and written to.

use crate::{Device, Error, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use cudarc::driver::CudaStream;
use std::marker::PhantomData;
use std::sync::Arc;

/// Device memory that a kernel may read: a [`ForeignSlice`], [rows](super::DeviceRows), or a buffer of `cudarc`
/// ([`cudarc_0_19`](super::cudarc_0_19)).
///
/// Sealed, because the library trusts what an implementation says about its memory.
pub trait Buffer<T>: sealed::Buffer<T> {}

/// Device memory that a kernel may write: a [`ForeignSlice`], or a buffer of `cudarc`.
pub trait BufferMut<T>: sealed::BufferMut<T> {}

impl<T> Buffer<T> for ForeignSlice<T> {}
impl<T> BufferMut<T> for ForeignSlice<T> {}

pub(super) mod sealed {
    use super::{Arc, CudaStream, ForeignSlice};
    use cudarc::driver::{DevicePtr, DevicePtrMut};

    /// Memory on which `cudarc` orders work by streams.
    pub trait Buffer<T>: DevicePtr<T> {
        /// Stream on which the memory is freed; `None` for foreign memory.
        fn owner(&self) -> Option<&Arc<CudaStream>>;
    }

    pub trait BufferMut<T>: Buffer<T> + DevicePtrMut<T> {}
    impl<T, B: Buffer<T> + DevicePtrMut<T>> BufferMut<T> for B {}

    impl<T> Buffer<T> for ForeignSlice<T> {
        fn owner(&self) -> Option<&Arc<CudaStream>> {
            None
        }
    }
}

/// Device memory that another library owns (PyTorch, CuPy, CUDA C++), for a [`DeviceBatch`](super::DeviceBatch): `len` elements
/// from an address on.
///
/// Nothing is copied, freed or waited for. The chapter [interoperation](crate::interoperation) has examples.
#[derive(Clone, Debug)]
pub struct ForeignSlice<T> {
    pub(super) address: u64,
    pub(super) len: usize,
    pub(super) stream: Arc<CudaStream>,
    elements: PhantomData<*mut T>,
}

// SAFETY: a `ForeignSlice` is an address and a length; the contract of `new` restricts their use.
unsafe impl<T: Send> Send for ForeignSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for ForeignSlice<T> {}

impl<T: NoUninit + AnyBitPattern> ForeignSlice<T> {
    /// Makes a slice of `len` elements from `address` on, in the memory of the GPU `device`.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (address, rows) = (0u64, 1usize);
    /// use warpset::gpu::cudarc_0_19::DeviceExt;
    /// use warpset::gpu::{DeviceBatch, ForeignSlice};
    ///
    /// let table = warpset::BucketTable::new(&warpset::Device::gpu(0)?, 4, 1_000_000)?;
    /// // SAFETY: `address` is the `data_ptr()` of a contiguous int32 tensor of shape (rows, 4), which lives until the
    /// // synchronisation below.
    /// let vectors = unsafe { ForeignSlice::<u32>::new(table.device(), address, rows * 4)? };
    /// let stream = table.device().cuda_context().unwrap().new_stream()?;
    /// table.find_or_put_device(&stream, DeviceBatch::new(&vectors, rows))?;
    /// stream.synchronize()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Misaligned`](Error::Misaligned), or [`WrongDevice`](Error::WrongDevice): the device is no GPU, or the driver knows that
    /// the address belongs to another GPU or context, or is not device memory.
    ///
    /// # Safety
    ///
    /// Until the last kernel that uses the slice has ended:
    ///
    /// - the memory belongs to the device's context: the primary one, unless the device was made by
    ///   [`from_context`](super::cudarc_0_19::DeviceExt::from_context);
    /// - the memory holds `len` valid elements, and stays allocated;
    /// - all writes to the memory, and all reads of it if kernels write it, are in order with the streams that these kernels run
    ///   on.
    pub unsafe fn new(device: &Device, address: u64, len: usize) -> Result<Self> {
        let gpu = device.as_gpu().ok_or_else(|| Error::needs_gpu("ForeignSlice::new", device))?;
        let alignment = align_of::<T>() as u64;
        if !address.is_multiple_of(alignment) {
            return Err(Error::Misaligned { what: "a foreign slice", address, alignment });
        }
        if len > 0 {
            gpu.check_address("a foreign slice", address)?;
        }
        Ok(Self { address, len, stream: gpu.context().default_stream(), elements: PhantomData })
    }
}
