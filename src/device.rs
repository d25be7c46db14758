#[cfg(feature = "cuda")]
use crate::backend::cuda::Gpu;
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
        return gpu.map_err(|reason| Error::NoDevice { reason: reason.to_string() });
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

    /// The most threads that a CPU device has.
    pub const MAX_THREADS: usize = 1024;

    /// The CPU, with this many threads: at least one, and [`MAX_THREADS`](Self::MAX_THREADS) where more are asked for. Small
    /// batches use fewer, and a batch does with fewer if the system starts no more. (Threads of the process that look through
    /// keys and outcomes are not counted: see [Threads and streams](crate::threads_and_streams#threads-of-a-cpu-device).)
    ///
    /// ```
    /// use warpset::Device;
    ///
    /// assert_eq!(Device::cpu_with_threads(4).to_string(), "CPU (4 threads)");
    /// assert_eq!(Device::cpu_with_threads(1_000_000).threads(), Device::MAX_THREADS);
    /// ```
    #[cfg(feature = "cpu")]
    pub fn cpu_with_threads(threads: usize) -> Self {
        Self { machine: Machine::Cpu { threads: threads.clamp(1, Self::MAX_THREADS) } }
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
    #[cfg(feature = "cuda")]
    pub fn from_context(context: Arc<cudarc::driver::CudaContext>) -> Result<Self> {
        Ok(Self { machine: Machine::Cuda(Gpu::of_context(context)?) })
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

    /// How many threads a batch may use; 0 on a GPU.
    ///
    /// ```
    /// assert_eq!(warpset::Device::cpu_with_threads(3).threads(), 3);
    /// ```
    pub fn threads(&self) -> usize {
        match &self.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { threads } => *threads,
            #[cfg(feature = "cuda")]
            Machine::Cuda(_) => 0,
        }
    }

    /// Bytes of memory that are free for tables now, as the system or the driver says. Others may take them first.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// assert!(warpset::Device::cpu().free_memory()? > 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What the device reports.
    pub fn free_memory(&self) -> Result<u64> {
        match &self.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { .. } => Ok(crate::backend::cpu::free_memory()),
            #[cfg(feature = "cuda")]
            Machine::Cuda(gpu) => gpu.free_memory(),
        }
    }

    /// Bytes of the largest compare-and-swap that slots of so many words are claimed by.
    pub(crate) fn chunk_bytes(&self, words: usize) -> u32 {
        let _ = words; // one of a GPU's is for all
        match &self.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { .. } => crate::backend::cpu::chunk_bytes(words),
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

/// The same GPU (and context), or CPUs with as many threads.
impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        match (&self.machine, &other.machine) {
            #[cfg(feature = "cpu")]
            (Machine::Cpu { threads }, Machine::Cpu { threads: others }) => threads == others,
            #[cfg(feature = "cuda")]
            (Machine::Cuda(gpu), Machine::Cuda(other)) => Arc::ptr_eq(gpu, other),
            #[cfg(all(feature = "cuda", feature = "cpu"))]
            _ => false,
        }
    }
}

impl Eq for Device {}

/// `best`; `cpu`, `cpu:THREADS`; `gpu` (which is `gpu:0`), `gpu:NUMBER`.
///
/// ```
/// use warpset::{Device, Error};
///
/// let device: Device = "cpu:2".parse()?;
/// assert_eq!(device, Device::cpu_with_threads(2));
/// assert!(matches!("cpu:100000".parse::<Device>(), Err(Error::Threads { threads: 100_000 })));
/// assert!(matches!("tpu".parse::<Device>(), Err(Error::UnknownDevice { .. })));
/// # Ok::<(), Error>(())
/// ```
impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || Error::UnknownDevice { name: text.into() };
        let (kind, number) = match text.split_once(':') {
            Some((kind, number)) => (kind, Some(number.parse::<u64>().map_err(|_| unknown())?)),
            None => (text, None),
        };
        match (kind, number) {
            ("best", None) => Self::best(),
            #[cfg(feature = "cpu")]
            ("cpu", None) => Ok(Self::cpu()),
            #[cfg(feature = "cpu")]
            ("cpu", Some(threads)) if (1..=Self::MAX_THREADS as u64).contains(&threads) => {
                Ok(Self::cpu_with_threads(threads as usize))
            }
            #[cfg(feature = "cpu")]
            ("cpu", Some(threads)) => Err(Error::Threads { threads }),
            #[cfg(feature = "cuda")]
            ("gpu", number) => Self::gpu(number.unwrap_or(0) as usize),
            _ => Err(unknown()),
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
