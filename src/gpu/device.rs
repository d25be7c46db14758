//! GPUs as devices.

use crate::backend::cuda::{CudaMachine, Gpu};
use crate::{Device, GpuInfo, Result};
use cudarc::driver::CudaContext;
use std::sync::Arc;

impl Device {
    /// The GPU with this number.
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
    /// [`NoSuchGpu`](crate::Error::NoSuchGpu), or what the driver reports.
    pub fn gpu(ordinal: usize) -> Result<Self> {
        Ok(Self { machine: CudaMachine::open(ordinal)? })
    }

    /// The GPU of a context, for tables beside other work in it.
    ///
    /// The object that [`cuda_context`](Self::cuda_context) of a device gives, gives that device. Another object is a device of
    /// its own, also if both are of the GPU's primary context, which all users of the CUDA runtime in a process share (PyTorch,
    /// CuPy). Kernels are compiled for it again, and streams and buffers must be of this object, which alone knows their events.
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

    /// The GPUs that are there.
    ///
    /// ```
    /// for gpu in warpset::Device::gpus().unwrap_or_default() {
    ///     println!("{}: {}, {} bytes, {:?}", gpu.ordinal, gpu.name, gpu.memory_bytes, gpu.compute_capability);
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LibraryNotFound`](crate::Error::LibraryNotFound) if the CUDA driver is not installed, or what it reports.
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
