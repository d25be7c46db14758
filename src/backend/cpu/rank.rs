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
        // SAFETY: there is room for three.
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
            // SAFETY: the caller guarantees the contract, and the threads end before this returns. The shares write to different
            // places, or by atomics.
            unsafe { kernel(view as *const c_void, share, shares) };
        });
        Ok(())
    }
}
