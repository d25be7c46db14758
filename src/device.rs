use crate::Result;
#[cfg(feature = "cuda")]
use crate::raw::cuda::Gpu;
use std::fmt;
#[cfg(feature = "cuda")]
use std::sync::Arc;

/// Where tables live: a CUDA GPU, or threads of this process.
///
/// Cheap to clone. Any number of tables and host threads may use one device at once.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{BucketTable, Device};
///
/// let device = Device::best()?; // a GPU if there is one, else all cores of the CPU
/// let table = BucketTable::new(&device, 4, 1000)?;
/// println!("{} slots on {device}", table.slots());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Device {
    pub(crate) machine: Machine,
}

#[derive(Clone)]
pub(crate) enum Machine {
    #[cfg(feature = "cpu")]
    Cpu { threads: usize },
    #[cfg(feature = "cuda")]
    Cuda(Arc<Gpu>),
}

/// A GPU that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// Its number, for [`Device::gpu`].
    pub ordinal: usize,
    /// Its name, as the driver gives it.
    pub name: String,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// Its compute capability, as (major, minor).
    pub compute_capability: (u32, u32),
}

impl Device {
    /// The best device present: the GPU with the most memory if the driver and NVRTC are there, else the CPU.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// let device = warpset::Device::best()?;
    /// println!("using {device}");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Only if there is no GPU and the feature `cpu` is off: what kept the GPU from being used.
    pub fn best() -> Result<Self> {
        #[cfg(feature = "cuda")]
        let gpu = Self::gpus().and_then(|gpus| {
            let best = gpus.iter().max_by_key(|gpu| (gpu.memory_bytes, std::cmp::Reverse(gpu.ordinal)));
            Self::gpu(best.map_or(0, |gpu| gpu.ordinal))
        });
        #[cfg(all(feature = "cuda", feature = "cpu"))]
        return Ok(gpu.unwrap_or_else(|_| Self::cpu()));
        #[cfg(all(feature = "cuda", not(feature = "cpu")))]
        return gpu.map_err(|reason| crate::Error::NoDevice { reason: reason.to_string() });
        #[cfg(not(feature = "cuda"))]
        Ok(Self::cpu())
    }

    /// The CPU, with as many threads as it has cores.
    ///
    /// ```
    /// assert!(!warpset::Device::cpu().is_gpu());
    /// ```
    #[cfg(feature = "cpu")]
    pub fn cpu() -> Self {
        Self::cpu_with_threads(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// The CPU, with this many threads (at least one). Small batches use fewer.
    ///
    /// ```
    /// assert_eq!(warpset::Device::cpu_with_threads(4).to_string(), "CPU (4 threads)");
    /// ```
    #[cfg(feature = "cpu")]
    pub fn cpu_with_threads(threads: usize) -> Self {
        Self { machine: Machine::Cpu { threads: threads.max(1) } }
    }

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
    #[cfg(feature = "cuda")]
    pub fn gpu(ordinal: usize) -> Result<Self> {
        Ok(Self { machine: Machine::Cuda(Gpu::open(ordinal)?) })
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
    #[cfg(feature = "cuda")]
    pub fn gpus() -> Result<Vec<GpuInfo>> {
        Gpu::list()
    }

    /// Whether this is a GPU.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// let device = warpset::Device::best()?;
    /// let batch = if device.is_gpu() { 1 << 24 } else { 1 << 16 };
    /// # assert!(batch > 0);
    /// # Ok(()) }
    /// ```
    pub fn is_gpu(&self) -> bool {
        match &self.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { .. } => false,
            #[cfg(feature = "cuda")]
            Machine::Cuda(_) => true,
        }
    }

    /// Bytes of the largest compare-and-swap.
    pub(crate) fn chunk_bytes(&self) -> u32 {
        match &self.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { .. } => 8,
            #[cfg(feature = "cuda")]
            Machine::Cuda(gpu) => gpu.chunk_bytes(),
        }
    }

    /// The GPU's context, for buffers and streams of your own; `None` on the CPU.
    #[cfg(feature = "cuda")]
    pub fn cuda_context(&self) -> Option<&Arc<cudarc::driver::CudaContext>> {
        self.as_gpu().map(|gpu| gpu.context())
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn as_gpu(&self) -> Option<&Arc<Gpu>> {
        match &self.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { .. } => None,
            Machine::Cuda(gpu) => Some(gpu),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { threads } => f.write_str(&cpu_name(*threads)),
            #[cfg(feature = "cuda")]
            Machine::Cuda(gpu) => f.write_str(gpu.name()),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}

#[cfg(feature = "cpu")]
pub(crate) fn cpu_name(threads: usize) -> String {
    if threads == 1 { "CPU (1 thread)".into() } else { format!("CPU ({threads} threads)") }
}
