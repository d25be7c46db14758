//! GPUs as devices.

use crate::backend::cuda::{CudaMachine, Gpu};
use crate::{Device, GpuInfo, Result};
use std::sync::Arc;

impl Device {
    /// Opens the GPU with this number.
    ///
    /// ```
    /// match warpset::Device::gpu(0) {
    ///     Ok(gpu) => assert!(gpu.is_gpu()),
    ///     Err(error) => println!("no GPU: {error}"),
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LibraryNotFound`](crate::Error::LibraryNotFound) if the CUDA driver or NVRTC is not installed,
    /// [`NoSuchGpu`](crate::Error::NoSuchGpu), or errors of the driver.
    pub fn gpu(ordinal: usize) -> Result<Self> {
        Ok(Self { machine: CudaMachine::open(ordinal)? })
    }

    /// Lists the GPUs of this host.
    ///
    /// ```
    /// for gpu in warpset::Device::gpus().unwrap_or_default() {
    ///     println!("{}: {}, {} bytes, {:?}", gpu.ordinal, gpu.name, gpu.memory_bytes, gpu.compute_capability);
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LibraryNotFound`](crate::Error::LibraryNotFound) if the CUDA driver is not installed, or errors of the driver.
    pub fn gpus() -> Result<Vec<GpuInfo>> {
        Gpu::list()
    }

    pub(crate) fn as_gpu(&self) -> Option<&Arc<Gpu>> {
        Gpu::of(&*self.machine)
    }
}
