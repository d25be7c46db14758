use crate::backend::Machine;
#[cfg(feature = "cpu")]
use crate::backend::cpu::CpuMachine;
use crate::layout::limits::MAX_THREADS;
use crate::{Error, Result};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
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
    pub(crate) machine: Arc<dyn Machine>,
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
    /// Only if the feature `cpu` is off and no GPU can be used: the reason why the GPU cannot be used.
    pub fn best() -> Result<Self> {
        crate::backend::best().map(|machine| Self { machine })
    }

    /// The CPU, with as many threads as it has cores.
    ///
    /// ```
    /// assert!(!warpset::Device::cpu().is_gpu());
    /// ```
    #[cfg(feature = "cpu")]
    pub fn cpu() -> Self {
        Self { machine: CpuMachine::whole() }
    }

    /// The most threads that a CPU device has.
    pub const MAX_THREADS: usize = MAX_THREADS;

    /// Returns a CPU device with `threads` threads, but at least one and at most [`MAX_THREADS`](Self::MAX_THREADS). Small
    /// batches use fewer threads, as does a batch for which the system cannot start all of them. (Threads of the process that
    /// scan keys and outcomes are not counted: see [Threads and streams](crate::threads_and_streams#threads-of-a-cpu-device).)
    ///
    /// ```
    /// use warpset::Device;
    ///
    /// assert_eq!(Device::cpu_with_threads(4).to_string(), "CPU (4 threads)");
    /// assert_eq!(Device::cpu_with_threads(1_000_000).threads(), Device::MAX_THREADS);
    /// ```
    #[cfg(feature = "cpu")]
    pub fn cpu_with_threads(threads: usize) -> Self {
        Self { machine: CpuMachine::with_threads(threads) }
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
        self.machine.is_gpu()
    }

    /// How many threads a batch may use; 0 on a GPU.
    ///
    /// ```
    /// assert_eq!(warpset::Device::cpu_with_threads(3).threads(), 3);
    /// ```
    pub fn threads(&self) -> usize {
        self.machine.threads()
    }

    /// Bytes of memory that are free for tables now, as the system or the driver reports. Other programs may take them first.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// assert!(warpset::Device::cpu().free_memory()? > 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors that the device reports.
    pub fn free_memory(&self) -> Result<u64> {
        self.machine.free_memory()
    }

    /// Bytes of the largest compare-and-swap that claims slots of `words` words.
    pub(crate) fn chunk_bytes(&self, words: usize) -> u32 {
        self.machine.chunk_bytes(words)
    }
}

/// Two devices are equal if they are the same GPU in the same context, or CPUs with the same number of threads.
impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.machine.is_same(&*other.machine)
    }
}

impl Eq for Device {}

/// Equal devices have equal hashes.
///
/// ```
/// use std::collections::HashSet;
/// use warpset::Device;
///
/// let devices: HashSet<Device> = [2, 3, 2].map(Device::cpu_with_threads).into();
/// assert_eq!(devices.len(), 2);
/// ```
impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Devices of one GPU in two contexts are displayed alike, so their hashes are equal; only `eq` distinguishes them.
        self.to_string().hash(state);
    }
}

/// Parses `best`, `cpu`, `cpu:THREADS`, `gpu` (short for `gpu:0`) or `gpu:NUMBER`.
///
/// ```
/// use warpset::{Device, Error};
///
/// let device: Device = "cpu:2".parse()?;
/// assert_eq!(device, Device::cpu_with_threads(2));
/// assert!(matches!("cpu:100000".parse::<Device>(), Err(Error::OutOfRange { given: 100_000, .. })));
/// assert!(matches!("tpu".parse::<Device>(), Err(Error::UnknownName { .. })));
/// # Ok::<(), Error>(())
/// ```
impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || Error::UnknownName {
            what: "device",
            name: text.into(),
            known: format!("cpu, cpu:THREADS (1 to {MAX_THREADS}), gpu, gpu:NUMBER or best"),
        };
        let (kind, number) = match text.split_once(':') {
            Some((kind, number)) => (kind, Some(number.parse::<u64>().map_err(|_| unknown())?)),
            None => (text, None),
        };
        let machine = match (kind, number) {
            ("best", None) => crate::backend::best(),
            _ => crate::backend::named(kind, number).ok_or_else(unknown)?,
        };
        machine.map(|machine| Self { machine })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}
