//! Device memory that batches are read from and written to.

use crate::{Device, Error, Result};
use cudarc::driver::{
    CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice, SyncOnDrop,
};
use std::marker::PhantomData;
use std::sync::Arc;

/// Device memory that a kernel may read: a `CudaSlice`, a `CudaView` or a `CudaViewMut` of [`cudarc`], or a [`ForeignSlice`].
///
/// Sealed, because its statements about itself are trusted.
pub trait Buffer<T>: DevicePtr<T> + sealed::Buffer {}

/// Device memory that a kernel may write: a `CudaSlice`, a `CudaViewMut` or a [`ForeignSlice`].
pub trait BufferMut<T>: DevicePtrMut<T> + sealed::Buffer {}

impl<T> Buffer<T> for CudaSlice<T> {}
impl<T> Buffer<T> for CudaView<'_, T> {}
impl<T> Buffer<T> for CudaViewMut<'_, T> {}
impl<T> Buffer<T> for ForeignSlice<T> {}
impl<T> BufferMut<T> for CudaSlice<T> {}
impl<T> BufferMut<T> for CudaViewMut<'_, T> {}
impl<T> BufferMut<T> for ForeignSlice<T> {}

pub(super) mod sealed {
    use super::{CudaSlice, CudaStream, CudaView, CudaViewMut, DeviceSlice, ForeignSlice};
    use std::sync::Arc;

    pub trait Buffer {
        /// Stream on which the memory is freed; none for foreign memory.
        fn owner(&self) -> Option<&Arc<CudaStream>>;
    }

    impl<T> Buffer for CudaSlice<T> {
        fn owner(&self) -> Option<&Arc<CudaStream>> {
            Some(self.stream())
        }
    }

    impl<T> Buffer for CudaView<'_, T> {
        fn owner(&self) -> Option<&Arc<CudaStream>> {
            Some(self.stream())
        }
    }

    impl<T> Buffer for CudaViewMut<'_, T> {
        fn owner(&self) -> Option<&Arc<CudaStream>> {
            Some(self.stream())
        }
    }

    impl<T> Buffer for ForeignSlice<T> {
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
    address: u64,
    len: usize,
    stream: Arc<CudaStream>,
    elements: PhantomData<*mut T>,
}

// SAFETY: an address and a length; the contract of `new` restricts their use.
unsafe impl<T: Send> Send for ForeignSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for ForeignSlice<T> {}

impl<T: DeviceRepr> ForeignSlice<T> {
    /// `len` elements from `address` on, in the memory of the GPU `device`.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (address, rows) = (0u64, 1usize);
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
    /// Until the last kernel that uses it has ended:
    ///
    /// - the memory belongs to the device's context: the primary one, unless the device was made by
    ///   [`from_context`](Device::from_context);
    /// - the memory holds `len` valid elements, and stays allocated;
    /// - all writes to it, and all reads of it if kernels write it, are in order with the streams that these kernels run on.
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

impl<T> DeviceSlice<T> for ForeignSlice<T> {
    fn len(&self) -> usize {
        self.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl<T> DevicePtr<T> for ForeignSlice<T> {
    fn device_ptr<'a>(&'a self, _: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        (self.address, SyncOnDrop::Sync(None))
    }
}

impl<T> DevicePtrMut<T> for ForeignSlice<T> {
    fn device_ptr_mut<'a>(&'a mut self, _: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        (self.address, SyncOnDrop::Sync(None))
    }
}
