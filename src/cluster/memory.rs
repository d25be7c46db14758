//! A rank's device: memory on it, and the kernels of cuda/warpset/cluster/partition.cuh.

use super::transport::{Place, Region};
#[cfg(feature = "cpu")]
use super::view::LINE_BYTES;
use super::view::{PartitionView, Stamp, StampView};
use crate::Result;
#[cfg(feature = "cuda")]
use crate::backend::cuda::{ClusterGpu, DeviceMemory};
use crate::device::{Device, Machine};
#[cfg(feature = "cpu")]
use crate::host::zeroed;
use bytemuck::{AnyBitPattern, NoUninit};

/// Sizes of the views that cross, as `warpset_cluster_abi` has them.
pub(crate) const ABI: [u32; 3] = [size_of::<PartitionView>() as u32, size_of::<Stamp>() as u32, size_of::<StampView>() as u32];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    Claim,
    Scatter,
    GatherPut,
    GatherFound,
    WriteStamps,
    CheckStamps,
}

impl Kernel {
    #[cfg(feature = "cuda")]
    pub(crate) const ALL: [Self; 6] =
        [Self::Claim, Self::Scatter, Self::GatherPut, Self::GatherFound, Self::WriteStamps, Self::CheckStamps];

    #[cfg(feature = "cuda")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claim => "warpset_cluster_claim",
            Self::Scatter => "warpset_cluster_scatter",
            Self::GatherPut => "warpset_cluster_gather_put",
            Self::GatherFound => "warpset_cluster_gather_found",
            Self::WriteStamps => "warpset_cluster_write_stamps",
            Self::CheckStamps => "warpset_cluster_check_stamps",
        }
    }
}

#[cfg(feature = "cpu")]
unsafe extern "C" {
    fn warpset_cpu_cluster_abi(sizes: *mut u64);
    fn warpset_cpu_cluster_claim(view: *const PartitionView, thread: u64, threads: u64);
    fn warpset_cpu_cluster_scatter(view: *const PartitionView, thread: u64, threads: u64);
    fn warpset_cpu_cluster_gather_put(view: *const PartitionView, thread: u64, threads: u64);
    fn warpset_cpu_cluster_gather_found(view: *const PartitionView, thread: u64, threads: u64);
    fn warpset_cpu_cluster_write_stamps(view: *const StampView, thread: u64, threads: u64);
    fn warpset_cpu_cluster_check_stamps(view: *const StampView, thread: u64, threads: u64);
}

/// Memory of a rank's device. Kernels and transports know it by its address.
pub(super) enum Memory {
    #[cfg(feature = "cpu")]
    Host {
        address: u64,
        bytes: u64,
        /// Not touched by this name, so that whoever has the address is the only one who uses it.
        _words: Vec<u64>,
    },
    #[cfg(feature = "cuda")]
    Gpu(DeviceMemory),
}

impl Memory {
    pub(super) fn address(&self) -> u64 {
        match self {
            #[cfg(feature = "cpu")]
            Self::Host { address, .. } => *address,
            #[cfg(feature = "cuda")]
            Self::Gpu(memory) => memory.address(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            #[cfg(feature = "cpu")]
            Self::Host { bytes, .. } => *bytes,
            #[cfg(feature = "cuda")]
            Self::Gpu(memory) => memory.bytes() as u64,
        }
    }

    fn check(&self, offset: u64, len: u64) {
        let bytes = self.bytes();
        assert!(offset + len <= bytes, "{offset} + {len} bytes are within the {bytes} that there are");
    }
}

/// How many rounds may be under way at a time: one is sorted, one exchanged, and one put or answered.
pub(crate) const ROUNDS: usize = 3;

/// What is done in order on a GPU: of a round, or (for all rounds) what is put into the table. On a CPU all is done at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Round(usize),
    Puts,
}

impl Line {
    #[cfg(feature = "cuda")]
    pub(crate) fn number(self) -> usize {
        match self {
            Self::Round(round) => round,
            Self::Puts => ROUNDS,
        }
    }
}

/// Where a rank works.
pub(super) enum Rank {
    #[cfg(feature = "cpu")]
    Cpu { threads: usize },
    #[cfg(feature = "cuda")]
    Gpu(Box<ClusterGpu>),
}

/// Vectors that are worth a second thread.
#[cfg(feature = "cpu")]
const SHARE: u64 = 1 << 14;

#[cfg_attr(not(feature = "cuda"), allow(unused_variables, reason = "on a CPU all is done at once"))]
impl Rank {
    pub(super) fn new(device: &Device) -> Result<Self> {
        match &device.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { threads } => {
                let mut sizes = [0u64; 3];
                // SAFETY: there is room for three.
                unsafe { warpset_cpu_cluster_abi(sizes.as_mut_ptr()) };
                assert_eq!(sizes, ABI.map(u64::from), "views are the same on both sides");
                Ok(Self::Cpu { threads: *threads })
            }
            #[cfg(feature = "cuda")]
            Machine::Cuda(gpu) => Ok(Self::Gpu(Box::new(ClusterGpu::new(gpu)?))),
        }
    }

    /// Memory of so many bytes; on the host zeros, of which only what is used is touched.
    pub(super) fn allocate(&self, bytes: u64) -> Result<Memory> {
        match self {
            #[cfg(feature = "cpu")]
            Self::Cpu { .. } => {
                // Messages begin at lines. An allocator that is asked for that alignment writes all of the zeros itself.
                let mut words = zeroed::<u64>((bytes.next_multiple_of(8) + LINE_BYTES) as usize / 8)?;
                let address = (words.as_mut_ptr() as u64).next_multiple_of(LINE_BYTES);
                Ok(Memory::Host { address, bytes, _words: words })
            }
            #[cfg(feature = "cuda")]
            Self::Gpu(gpu) => Ok(Memory::Gpu(gpu.allocate(bytes)?)),
        }
    }

    /// Copies `data`, which is the caller's and may be pinned, to byte `offset`; it may be changed when the call returns.
    pub(super) fn write<T: NoUninit>(&self, line: Line, memory: &mut Memory, offset: u64, data: &[T]) -> Result<()> {
        self.write_own(line, memory, offset, data)?;
        match self {
            #[cfg(feature = "cpu")]
            Self::Cpu { .. } => Ok(()),
            #[cfg(feature = "cuda")]
            Self::Gpu(gpu) => gpu.wait(line, "copying to the GPU"),
        }
    }

    /// Copies `data`, which is pageable, to byte `offset`; it may be changed when the call returns, which waits for nothing.
    pub(super) fn write_own<T: NoUninit>(&self, line: Line, memory: &mut Memory, offset: u64, data: &[T]) -> Result<()> {
        memory.check(offset, size_of_val(data) as u64);
        match (self, memory) {
            #[cfg(feature = "cpu")]
            (Self::Cpu { .. }, Memory::Host { address, .. }) => {
                // SAFETY: within the memory (checked), which nobody else uses: no kernel is under way between calls.
                unsafe {
                    let to = (*address + offset) as *mut u8;
                    std::ptr::copy_nonoverlapping(data.as_ptr().cast(), to, size_of_val(data));
                }
                Ok(())
            }
            #[cfg(feature = "cuda")]
            (Self::Gpu(gpu), Memory::Gpu(memory)) => {
                // SAFETY: pageable, or waited for (`write`).
                unsafe { memory.write_async(offset as usize, data, gpu.stream(line).cu_stream()) }
            }
            #[cfg(all(feature = "cpu", feature = "cuda"))]
            _ => unreachable!("memory is of its rank"),
        }
    }

    /// Copies what is at byte `offset` to `data`, after all that was begun on this line.
    pub(super) fn read<T: AnyBitPattern + NoUninit>(
        &self,
        line: Line,
        memory: &Memory,
        offset: u64,
        data: &mut [T],
    ) -> Result<()> {
        memory.check(offset, size_of_val(data) as u64);
        match (self, memory) {
            #[cfg(feature = "cpu")]
            (Self::Cpu { .. }, Memory::Host { address, .. }) => {
                // SAFETY: as in `write`; any bits are a `T`.
                unsafe {
                    let from = (*address + offset) as *const u8;
                    std::ptr::copy_nonoverlapping(from, data.as_mut_ptr().cast(), size_of_val(data));
                }
                Ok(())
            }
            #[cfg(feature = "cuda")]
            (Self::Gpu(gpu), Memory::Gpu(memory)) => gpu.read(line, memory, offset as usize, data),
            #[cfg(all(feature = "cpu", feature = "cuda"))]
            _ => unreachable!("memory is of its rank"),
        }
    }

    /// Sets the first bytes.
    pub(super) fn fill(&self, line: Line, memory: &mut Memory, bytes: u64, byte: u8) -> Result<()> {
        memory.check(0, bytes);
        match (self, memory) {
            #[cfg(feature = "cpu")]
            (Self::Cpu { .. }, Memory::Host { address, .. }) => {
                // SAFETY: as in `write`.
                unsafe { std::ptr::write_bytes(*address as *mut u8, byte, bytes as usize) };
                Ok(())
            }
            #[cfg(feature = "cuda")]
            (Self::Gpu(gpu), Memory::Gpu(memory)) => gpu.fill(line, memory, bytes, byte),
            #[cfg(all(feature = "cpu", feature = "cuda"))]
            _ => unreachable!("memory is of its rank"),
        }
    }

    /// Copies a number within memory.
    #[cfg(feature = "cuda")]
    pub(super) fn copy_number(&self, line: Line, memory: &mut Memory, from: u64, to: u64) -> Result<()> {
        memory.check(from, 8);
        memory.check(to, 8);
        match (self, memory) {
            #[cfg(feature = "cpu")]
            (Self::Cpu { .. }, Memory::Host { address, .. }) => {
                // SAFETY: as in `write`; the two may be the same.
                unsafe { std::ptr::copy((*address + from) as *const u8, (*address + to) as *mut u8, 8) };
                Ok(())
            }
            (Self::Gpu(gpu), Memory::Gpu(memory)) => gpu.copy_number(line, memory, from, to),
            #[cfg(feature = "cpu")]
            _ => unreachable!("memory is of its rank"),
        }
    }

    /// Lets what is begun on a line from now on come after all that was begun on another.
    pub(super) fn order(&self, line: Line, after: Line) -> Result<()> {
        match self {
            #[cfg(feature = "cpu")]
            Self::Cpu { .. } => Ok(()),
            #[cfg(feature = "cuda")]
            Self::Gpu(gpu) => gpu.order(line, after),
        }
    }

    /// Waits for all that was begun.
    pub(super) fn settle(&self) -> Result<()> {
        match self {
            #[cfg(feature = "cpu")]
            Self::Cpu { .. } => Ok(()),
            #[cfg(feature = "cuda")]
            Self::Gpu(gpu) => gpu.settle(),
        }
    }

    /// A piece of memory for a transport, which uses it in order with a line.
    pub(super) fn region(&self, line: Line, memory: &Memory, offset: u64, bytes: u64) -> Region {
        memory.check(offset, bytes);
        let place = match self {
            #[cfg(feature = "cpu")]
            Self::Cpu { .. } => Place::Host,
            #[cfg(feature = "cuda")]
            Self::Gpu(gpu) => Place::Gpu(gpu.stream(line).clone()),
        };
        Region { address: memory.address() + offset, bytes: bytes as usize, place }
    }

    /// Runs one of the first four kernels; on a GPU, enqueues it.
    ///
    /// # Safety
    ///
    /// The memory that the view points to is as large as it says, nobody else uses it meanwhile, and it stays until what was
    /// begun is done.
    pub(super) unsafe fn partition(&self, line: Line, kernel: Kernel, view: &PartitionView) -> Result<()> {
        match self {
            #[cfg(feature = "cpu")]
            Self::Cpu { threads } => {
                let part = match kernel {
                    Kernel::Claim => warpset_cpu_cluster_claim,
                    Kernel::Scatter => warpset_cpu_cluster_scatter,
                    Kernel::GatherPut => warpset_cpu_cluster_gather_put,
                    Kernel::GatherFound => warpset_cpu_cluster_gather_found,
                    Kernel::WriteStamps | Kernel::CheckStamps => unreachable!("they have another view"),
                };
                let shares = (*threads as u64).min(view.count.div_ceil(SHARE)).max(1);
                crate::backend::cpu::in_pieces(*threads, shares, |share| {
                    // SAFETY: the caller's; the shares write to different places, or by atomics.
                    unsafe { part(view, share, shares) };
                });
                Ok(())
            }
            #[cfg(feature = "cuda")]
            // SAFETY: the caller's.
            Self::Gpu(gpu) => unsafe { gpu.run(line, kernel, view, view.count) },
        }
    }

    /// Runs one of the last two kernels; on a GPU, enqueues it.
    ///
    /// # Safety
    ///
    /// As [`partition`](Self::partition).
    pub(super) unsafe fn stamps(&self, line: Line, kernel: Kernel, view: &StampView) -> Result<()> {
        match self {
            #[cfg(feature = "cpu")]
            // SAFETY: the caller's.
            Self::Cpu { .. } => unsafe {
                match kernel {
                    Kernel::WriteStamps => warpset_cpu_cluster_write_stamps(view, 0, 1),
                    Kernel::CheckStamps => warpset_cpu_cluster_check_stamps(view, 0, 1),
                    _ => unreachable!("they have another view"),
                }
                Ok(())
            },
            #[cfg(feature = "cuda")]
            // SAFETY: the caller's.
            Self::Gpu(gpu) => unsafe { gpu.run(line, kernel, view, view.count) },
        }
    }

    /// On which kernels and copies of a line are enqueued, on a GPU.
    #[cfg(feature = "cuda")]
    pub(super) fn stream(&self, line: Line) -> Option<&std::sync::Arc<cudarc::driver::CudaStream>> {
        match self {
            #[cfg(feature = "cpu")]
            Self::Cpu { .. } => None,
            Self::Gpu(gpu) => Some(gpu.stream(line)),
        }
    }

    /// Whether kernels read the host's memory, and write to it.
    pub(super) fn is_host(&self) -> bool {
        match self {
            #[cfg(feature = "cpu")]
            Self::Cpu { .. } => true,
            #[cfg(feature = "cuda")]
            Self::Gpu(_) => false,
        }
    }
}
