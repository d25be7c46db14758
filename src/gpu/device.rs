//! GPUs as devices.

use crate::backend::cuda::{CudaMachine, Gpu};
use crate::{Device, GpuInfo, Result};
use cudarc::driver::CudaContext;
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

    /// Makes a device of the GPU of a context, for tables that share it with other work.
    ///
    /// The object that [`cuda_context`](Self::cuda_context) of a device returns gives that device again. Any other object gives a
    /// separate device, even if both stand for the GPU's primary context, which all users of the CUDA runtime in a process share
    /// (PyTorch, CuPy). For a separate device kernels are compiled again, and streams and buffers must belong to its object,
    /// which alone knows their events.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use warpset::cudarc::driver::CudaContext;
    ///
    /// let context = CudaContext::new(0)?; // as your program has it
    /// let device = warpset::Device::from_context(context.clone())?;
    /// assert_eq!(device, warpset::Device::from_context(context)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gpu`](Self::gpu).
    pub fn from_context(context: Arc<CudaContext>) -> Result<Self> {
        Ok(Self { machine: CudaMachine::of_context(context)? })
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

    /// The GPU's context, for buffers and streams of your own; `None` on the CPU.
    pub fn cuda_context(&self) -> Option<&Arc<CudaContext>> {
        self.as_gpu().map(|gpu| gpu.context())
    }

    pub(crate) fn as_gpu(&self) -> Option<&Arc<Gpu>> {
        Gpu::of(&*self.machine)
    }
}
