//! A rank of a cluster on threads of this process: the kernels of cuda/cpu_cluster.cpp.

use super::machine::CpuMachine;
use super::threads::in_pieces;
use crate::Result;
use crate::backend::{Machine, Rank};
use crate::layout::rank::{ABI, Kernel, Stream};
use std::ffi::c_void;

entries! {
    fn warpset_cpu_cluster_abi(sizes: *mut u64);
    fn warpset_cpu_cluster_claim(view: *const c_void, thread: u64, threads: u64);
    fn warpset_cpu_cluster_scatter(view: *const c_void, thread: u64, threads: u64);
    fn warpset_cpu_cluster_gather_put(view: *const c_void, thread: u64, threads: u64);
    fn warpset_cpu_cluster_gather_found(view: *const c_void, thread: u64, threads: u64);
    fn warpset_cpu_cluster_write_stamps(view: *const c_void, thread: u64, threads: u64);
    fn warpset_cpu_cluster_check_stamps(view: *const c_void, thread: u64, threads: u64);
}

/// Number of items that justifies a second thread.
const SHARE: u64 = 1 << 14;

pub(super) struct CpuRank {
    machine: CpuMachine,
}

impl CpuRank {
    pub(super) fn new(machine: CpuMachine) -> Self {
        let mut sizes = [0u64; 3];
        // SAFETY: the function writes three numbers, for which `sizes` has space.
        unsafe { warpset_cpu_cluster_abi(sizes.as_mut_ptr()) };
        assert_eq!(sizes, ABI.map(u64::from), "views are the same on both sides");
        Self { machine }
    }
}

impl Rank for CpuRank {
    fn machine(&self) -> &dyn Machine {
        &self.machine
    }

    unsafe fn launch(&self, _: Stream, kernel: Kernel, view: *const c_void, items: u64) -> Result<()> {
        let kernel = match kernel {
            Kernel::Claim => warpset_cpu_cluster_claim,
            Kernel::Scatter => warpset_cpu_cluster_scatter,
            Kernel::GatherPut => warpset_cpu_cluster_gather_put,
            Kernel::GatherFound => warpset_cpu_cluster_gather_found,
            Kernel::WriteStamps => warpset_cpu_cluster_write_stamps,
            Kernel::CheckStamps => warpset_cpu_cluster_check_stamps,
        };
        let (view, threads) = (view as usize, self.machine.threads);
        let shares = (threads as u64).min(items.div_ceil(SHARE)).max(1);
        in_pieces(threads, shares, |share| {
            // SAFETY: the caller guarantees the contract, and the threads end before this function returns. Different shares
            // write to different places, or use atomics.
            unsafe { kernel(view as *const c_void, share, shares) };
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Launch;
    use crate::layout::SearchMode;
    use crate::layout::view::{BatchView, Counts};
    use crate::{BucketTable, Device};

    /// A put does nothing if its message turns out to be wrong. This holds on a machine without streams as well as on a GPU.
    #[test]
    #[cfg_attr(miri, ignore = "the kernels are C++")]
    fn a_search_that_is_refused_does_nothing() {
        let device = Device::cpu_with_threads(2);
        let table = BucketTable::builder(2).capacity(100).build(&device).unwrap();
        let rank = device.machine.new_rank().unwrap();
        let stream = Stream::Puts;
        let mut numbers = rank.machine().allocate_zeroed(8 + size_of::<Counts>() as u64).unwrap();
        let vectors = [1u32, 2, 3, 4];
        let batch = BatchView { vectors: vectors.as_ptr() as u64, count: 2, counts: numbers.address + 8, ..BatchView::default() };
        for refused in [1u64, 0] {
            rank.write(stream, &mut numbers, 0, &[refused]).unwrap();
            let launch = Launch { refused: Some(numbers.address), ..Launch::default() };
            // SAFETY: the vectors and the counts have memory, and the search is over when the call returns.
            unsafe { table.raw.enqueue_once((&*rank, stream), SearchMode::FindOrPut, &batch, launch).unwrap() };
            let mut counts = [Counts::default()];
            rank.read(stream, &numbers, 8, &mut counts).unwrap();
            let stored = if refused == 0 { 2 } else { 0 };
            assert_eq!((counts[0].offered, counts[0].hits, table.len().unwrap()), (stored, stored, stored));
            assert_eq!(table.contains_many(&vectors).unwrap(), [stored > 0; 2]);
        }
    }
}
