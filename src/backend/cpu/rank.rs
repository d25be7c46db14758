//! A rank of a cluster on threads of this process: the kernels of cuda/cpu_cluster.cpp.

use super::threads::in_pieces;
use crate::Result;
use crate::backend::{Launch, MemorySpace, Rank, RankMemory, Store};
use crate::host::zeroed;
use crate::layout::SearchMode;
use crate::layout::rank::{ABI, Kernel, LINE_BYTES, PartitionView, StampView, Stream};
use crate::layout::view::BatchView;
use std::ptr;

entries! {
    fn warpset_cpu_cluster_abi(sizes: *mut u64);
    fn warpset_cpu_cluster_claim(view: *const PartitionView, thread: u64, threads: u64);
    fn warpset_cpu_cluster_scatter(view: *const PartitionView, thread: u64, threads: u64);
    fn warpset_cpu_cluster_gather_put(view: *const PartitionView, thread: u64, threads: u64);
    fn warpset_cpu_cluster_gather_found(view: *const PartitionView, thread: u64, threads: u64);
    fn warpset_cpu_cluster_write_stamps(view: *const StampView, thread: u64, threads: u64);
    fn warpset_cpu_cluster_check_stamps(view: *const StampView, thread: u64, threads: u64);
}

/// Number of vectors that justifies a second thread.
const SHARE: u64 = 1 << 14;

pub(super) struct CpuRank {
    threads: usize,
}

impl CpuRank {
    pub(super) fn new(threads: usize) -> Self {
        let mut sizes = [0u64; 3];
        // SAFETY: there is room for three.
        unsafe { warpset_cpu_cluster_abi(sizes.as_mut_ptr()) };
        assert_eq!(sizes, ABI.map(u64::from), "views are the same on both sides");
        Self { threads }
    }
}

impl Rank for CpuRank {
    fn is_host(&self) -> bool {
        true
    }

    fn place(&self, _: Stream) -> MemorySpace {
        MemorySpace::Host
    }

    fn allocate(&self, bytes: u64) -> Result<RankMemory> {
        // Messages begin at lines. An allocator that is asked for that alignment writes all of the zeros itself.
        let mut words = zeroed::<u64>((bytes.next_multiple_of(8) + LINE_BYTES) as usize / 8)?;
        let address = (words.as_mut_ptr() as u64).next_multiple_of(LINE_BYTES);
        // The words are never accessed through their owner, so all accesses go through the address.
        Ok(RankMemory { address, bytes, owner: Box::new(words) })
    }

    fn write_bytes(&self, _: Stream, memory: &mut RankMemory, offset: u64, data: &[u8]) -> Result<()> {
        memory.check(offset, data.len() as u64);
        // SAFETY: within the memory (checked), which nothing else uses: no kernel is under way between calls.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), (memory.address + offset) as *mut u8, data.len()) };
        Ok(())
    }

    fn write_bytes_and_wait(&self, stream: Stream, memory: &mut RankMemory, offset: u64, data: &[u8]) -> Result<()> {
        self.write_bytes(stream, memory, offset, data)
    }

    fn read_bytes(&self, _: Stream, memory: &RankMemory, offset: u64, data: &mut [u8]) -> Result<()> {
        memory.check(offset, data.len() as u64);
        // SAFETY: as in `write_bytes`.
        unsafe { ptr::copy_nonoverlapping((memory.address + offset) as *const u8, data.as_mut_ptr(), data.len()) };
        Ok(())
    }

    fn fill(&self, _: Stream, memory: &mut RankMemory, bytes: u64, byte: u8) -> Result<()> {
        memory.check(0, bytes);
        // SAFETY: as in `write_bytes`.
        unsafe { ptr::write_bytes(memory.address as *mut u8, byte, bytes as usize) };
        Ok(())
    }

    fn copy_number(&self, _: Stream, memory: &mut RankMemory, from: u64, to: u64) -> Result<()> {
        memory.check(from, 8);
        memory.check(to, 8);
        // SAFETY: as in `write_bytes`; the two may be the same.
        unsafe { ptr::copy((memory.address + from) as *const u8, (memory.address + to) as *mut u8, 8) };
        Ok(())
    }

    fn order(&self, _: Stream, _: Stream) -> Result<()> {
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    unsafe fn partition(&self, _: Stream, kernel: Kernel, view: &PartitionView) -> Result<()> {
        let part = match kernel {
            Kernel::Claim => warpset_cpu_cluster_claim,
            Kernel::Scatter => warpset_cpu_cluster_scatter,
            Kernel::GatherPut => warpset_cpu_cluster_gather_put,
            Kernel::GatherFound => warpset_cpu_cluster_gather_found,
            Kernel::WriteStamps | Kernel::CheckStamps => unreachable!("they have another view"),
        };
        let shares = (self.threads as u64).min(view.count.div_ceil(SHARE)).max(1);
        in_pieces(self.threads, shares, |share| {
            // SAFETY: the caller guarantees the contract. The shares write to different places, or by atomics.
            unsafe { part(view, share, shares) };
        });
        Ok(())
    }

    unsafe fn stamps(&self, _: Stream, kernel: Kernel, view: &StampView) -> Result<()> {
        // SAFETY: the caller guarantees the contract.
        unsafe {
            match kernel {
                Kernel::WriteStamps => warpset_cpu_cluster_write_stamps(view, 0, 1),
                Kernel::CheckStamps => warpset_cpu_cluster_check_stamps(view, 0, 1),
                _ => unreachable!("they have another view"),
            }
        }
        Ok(())
    }

    unsafe fn enqueue_search(&self, _: Stream, _: &dyn Store, _: SearchMode, _: &BatchView, _: Launch) -> Result<()> {
        unreachable!("a rank on the host searches for host slices")
    }
}
