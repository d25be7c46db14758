//! Conversions between the types of [`gpu`](crate::gpu) and those of [`cudarc`] 0.19: its contexts, streams, buffers and modules.
//!
//! Everything else in the interface of this library is in types of its own, handles and addresses. So a later version of `cudarc`
//! gets a module beside this one, and programs that use this one compile as before.
//!
//! - `&CudaStream` and `&Arc<CudaStream>` convert into a [`Stream`], which every call that enqueues takes.
//! - `CudaSlice`, `CudaView` and `CudaViewMut` are a [`Buffer`]. [`DeviceRows`], [`DeviceValues`] and [`ForeignSlice`] are a
//!   `DevicePtr` for the calls of `cudarc`.
//! - An `Arc<CudaStream>` converts into the stream of a region of a cluster's transport, and back.
//! - A [`Module`] converts into an `Arc<CudaModule>`; [`ModuleExt`] loads its kernels.
//! - [`DeviceExt`] makes a device from a `CudaContext`, and returns the context of a device.
//! - The views that [`Table::kernel_argument`](crate::Table::kernel_argument) returns, and [`Counts`], are arguments of a launch.

use super::buffer::{Buffer, BufferMut, sealed};
use super::{Counts, DeviceRows, DeviceValues, ForeignSlice, Module, Stream};
use crate::backend::cuda::CudaMachine;
use crate::layout::view::{AnyView, CompactTreeView, CompactView, IndexedView, TableView, TreeView};
use crate::{Device, Key, Result};
pub use cudarc;
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceRepr,
    DeviceSlice, DriverError, SyncOnDrop, ValidAsZeroBits,
};
use std::sync::Arc;

/// Devices from contexts, and back.
pub trait DeviceExt: Sized {
    /// Makes a device from the context of a GPU, for tables that share the GPU with other work.
    ///
    /// The object that [`cuda_context`](Self::cuda_context) of a device returns gives that device again. Any other object gives a
    /// separate device, even if both stand for the GPU's primary context, which all users of the CUDA runtime in a process share
    /// (PyTorch, CuPy). For a separate device kernels are compiled again, and streams and buffers must belong to its object,
    /// which alone knows their events.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use warpset::Device;
    /// use warpset::gpu::cudarc_0_19::{DeviceExt, cudarc::driver::CudaContext};
    ///
    /// let context = CudaContext::new(0)?; // as your program has it
    /// let device = Device::from_context(context.clone())?;
    /// assert_eq!(device, Device::from_context(context)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Device::gpu`].
    fn from_context(context: Arc<CudaContext>) -> Result<Self>;

    /// The GPU's context, for buffers and streams of your own; `None` on the CPU.
    fn cuda_context(&self) -> Option<&Arc<CudaContext>>;
}

impl DeviceExt for Device {
    fn from_context(context: Arc<CudaContext>) -> Result<Self> {
        Ok(Self { machine: CudaMachine::of_context(context)? })
    }

    fn cuda_context(&self) -> Option<&Arc<CudaContext>> {
        self.as_gpu().map(|gpu| gpu.context())
    }
}

/// Kernels of modules.
pub trait ModuleExt {
    /// Loads a kernel, as `CudaModule::load_function` does.
    ///
    /// # Errors
    ///
    /// The driver's error, if the module has no kernel of this name.
    fn load_function(&self, name: &str) -> Result<CudaFunction, DriverError>;
}

impl ModuleExt for Module {
    fn load_function(&self, name: &str) -> Result<CudaFunction, DriverError> {
        self.module.load_function(name)
    }
}

impl From<Module> for Arc<CudaModule> {
    fn from(module: Module) -> Self {
        module.module
    }
}

impl<'a> From<&'a CudaStream> for Stream<'a> {
    fn from(stream: &'a CudaStream) -> Self {
        Self { stream }
    }
}

impl<'a> From<&'a Arc<CudaStream>> for Stream<'a> {
    fn from(stream: &'a Arc<CudaStream>) -> Self {
        Self { stream }
    }
}

#[cfg(feature = "cluster")]
impl From<Arc<CudaStream>> for crate::cluster::GpuStream {
    fn from(stream: Arc<CudaStream>) -> Self {
        Self(stream)
    }
}

#[cfg(feature = "cluster")]
impl From<crate::cluster::GpuStream> for Arc<CudaStream> {
    fn from(stream: crate::cluster::GpuStream) -> Self {
        stream.0
    }
}

impl<T> Buffer<T> for CudaSlice<T> {}
impl<T> Buffer<T> for CudaView<'_, T> {}
impl<T> Buffer<T> for CudaViewMut<'_, T> {}
impl<T> BufferMut<T> for CudaSlice<T> {}
impl<T> BufferMut<T> for CudaViewMut<'_, T> {}

impl<T> sealed::Buffer<T> for CudaSlice<T> {
    fn owner(&self) -> Option<&Arc<CudaStream>> {
        Some(self.stream())
    }
}

impl<T> sealed::Buffer<T> for CudaView<'_, T> {
    fn owner(&self) -> Option<&Arc<CudaStream>> {
        Some(self.stream())
    }
}

impl<T> sealed::Buffer<T> for CudaViewMut<'_, T> {
    fn owner(&self) -> Option<&Arc<CudaStream>> {
        Some(self.stream())
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

impl<K: Key> DeviceSlice<K::Element> for DeviceRows<'_, K> {
    fn len(&self) -> usize {
        self.elements
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl<K: Key> DevicePtr<K::Element> for DeviceRows<'_, K> {
    fn device_ptr<'a>(&'a self, _: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        // Nothing writes these rows, and an operation that takes them back waits for the GPU first. So no order is needed here.
        (self.address, SyncOnDrop::Sync(None))
    }
}

impl<V> DeviceSlice<V> for DeviceValues<'_, V> {
    fn len(&self) -> usize {
        self.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl<V> DevicePtr<V> for DeviceValues<'_, V> {
    fn device_ptr<'a>(&'a self, _: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        // The host waits for the GPU before it uses the values itself, and the caller orders its streams. So no order is needed
        // here.
        (self.address, SyncOnDrop::Sync(None))
    }
}

impl<V> DevicePtrMut<V> for DeviceValues<'_, V> {
    fn device_ptr_mut<'a>(&'a mut self, _: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        (self.address, SyncOnDrop::Sync(None))
    }
}

// SAFETY: `repr(C)`, five u64, as on the device.
unsafe impl DeviceRepr for Counts {}
// SAFETY: as above; all zeros are valid counts.
unsafe impl ValidAsZeroBits for Counts {}
// SAFETY: `repr(C)` with the layout of `warpset::TableView` in bucket/table.cuh; sizes are compared when kernels are loaded.
unsafe impl DeviceRepr for TableView {}
// SAFETY: as above, of tree/table.cuh.
unsafe impl DeviceRepr for TreeView {}
// SAFETY: as above, of compact/table.cuh.
unsafe impl DeviceRepr for CompactView {}
// SAFETY: as above, of tree/table.cuh.
unsafe impl DeviceRepr for CompactTreeView {}
// SAFETY: as above, of indexed/table.cuh.
unsafe impl DeviceRepr for IndexedView {}
// SAFETY: `AnyView` is `repr(C)`, consists of whole u64, and begins with the view that the table's kernels take, as each of the
// views above does. A launch copies as many bytes as the kernel's parameter has.
unsafe impl DeviceRepr for AnyView {}
