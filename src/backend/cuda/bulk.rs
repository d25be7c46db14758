//! Bulk find-or-put into a bucket table on a GPU.
//!
//! The algorithm is in cuda/warpset/bucket/bulk.cuh.

use super::bulk_plan::{Bulk, BulkPass, BulkPlan, BulkSlices, THREADS, fill_threads};
use super::growth::unless_short;
use super::kernels::BulkKernels;
use super::store::{CudaStore, MAX_BATCH, argument, view_argument};
use super::{Gpu, cuda, pass};
use crate::Result;
use crate::backend::{Launch, Machine, Memory};
use crate::layout::search::SearchMode;
use crate::layout::view::BatchView;
use cudarc::driver::{CudaFunction, CudaStream, result};
use std::ffi::c_void;
use std::sync::{MutexGuard, PoisonError};

/// Bytes of shared memory of a block.
#[derive(Clone, Copy)]
struct Shared {
    partition: u32,
    replay: u32,
    fill: u32,
}

impl CudaStore {
    /// Whether a batch of `count` vectors is put in bulk, if there is memory.
    pub(crate) fn takes_bulk(&self, bulk: Bulk, count: u64, has_outcomes: bool) -> bool {
        let is_possible = count > 0 && self.spec.bulk_bytes().is_some() && self.fill_bytes() <= self.gpu().shared_bytes;
        match bulk {
            Bulk::Never => false,
            Bulk::WhenFaster => {
                let is_beyond_l2 = self.slots.bytes > self.gpu().l2_bytes;
                is_possible && is_beyond_l2 && self.spec.is_faster_in_bulk(count, self.slots_now(), has_outcomes)
            }
            Bulk::Always => is_possible,
        }
    }

    /// Scratch memory of the last batch in bulk.
    pub(crate) fn kept_scratch(&self) -> MutexGuard<'_, Option<Memory>> {
        self.bulk_scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of shared memory of a block that fills a slice; `u64::MAX` if the table has no slices.
    fn fill_bytes(&self) -> u64 {
        let slice_bytes = |(_, slice_buckets)| self.kernels.geometry.bytes(slice_buckets);
        let fill = |bytes| BulkPlan::fill_bytes(bytes, fill_threads(self.spec.width()));
        self.slices_of(self.slots_now()).map_or(u64::MAX, |slices| fill(slice_bytes(slices)))
    }

    fn slots_now(&self) -> u64 {
        let geometry = self.kernels.geometry;
        geometry.slots(self.slots.bytes / u64::from(geometry.block_bytes) * u64::from(geometry.buckets_per_block))
    }

    /// Puts a batch in device memory, in bulk if [`takes_bulk`](Self::takes_bulk) allows it and there is memory. Waits for all
    /// work on the GPU before that, and for the batch. `spare`: bytes that scratch memory may take, with kept memory. Adds to the
    /// batch's counts as [`enqueue`](Self::enqueue) does. After an error some of the vectors may have been put.
    ///
    /// # Safety
    ///
    /// As for [`enqueue`](Self::enqueue). Besides, the caller has the table alone, and the batch reports no references.
    pub(crate) unsafe fn put_alone(&self, bulk: Bulk, spare: u64, batch: &BatchView, stream: &CudaStream) -> Result<()> {
        let gpu = self.gpu();
        gpu.synchronize()?;
        let done = (0..batch.count).step_by(MAX_BATCH as usize).try_for_each(|first| {
            let part = batch.part(first, MAX_BATCH.min(batch.count - first), self.spec);
            // SAFETY: the caller guarantees the contract.
            unsafe {
                if self.takes_bulk(bulk, part.count, part.outcomes != 0) && self.put_in_bulk(spare, &part, stream)? {
                    return Ok(());
                }
                self.enqueue(SearchMode::FindOrPut, &part, stream.cu_stream(), Launch::default())
            }
        });
        gpu.wait(stream, "putting a batch").and(done)
    }

    /// Puts a batch in bulk. Returns false if there is no memory for that; then nothing has been done.
    ///
    /// # Safety
    ///
    /// As for [`put_alone`](Self::put_alone). The table has slices, and its spec has kernels for bulk.
    unsafe fn put_in_bulk(&self, spare: u64, batch: &BatchView, stream: &CudaStream) -> Result<bool> {
        let (gpu, machine): (&Gpu, &dyn Machine) = (self.gpu(), &self.machine);
        let (slices, _) = self.slices_of(self.slots_now()).expect("the caller has checked that the table has slices");
        let Some(plan) = BulkPlan::new(self.spec, batch.count, slices, batch.outcomes != 0) else { return Ok(false) };
        let fill = self.fill_bytes();
        let [partition, replay] = plan.shared_bytes(self.spec.width() as u64 * 4);
        let kept = self.kept_scratch().take();
        if plan.bytes > spare || partition.max(replay) > gpu.shared_bytes {
            return Ok(false);
        }
        let shared = Shared { partition: partition as u32, replay: replay as u32, fill: fill as u32 };
        let kernels = self.kernels.bulk(gpu)?;
        let scratch = match kept.filter(|kept| kept.bytes >= plan.bytes) {
            Some(kept) => kept,
            None => match unless_short(machine.allocate(plan.bytes))? {
                Some(scratch) => scratch,
                None => return Ok(false),
            },
        };
        let (passes, slices) = plan.arguments(scratch.address, batch, self.short_seeds()?);
        let passes: Vec<_> = passes.into_iter().map(|pass| (pass, plan.tiles(&pass) as u32)).collect();
        let zeros = (scratch.address, plan.zeros as usize);
        // SAFETY: the caller guarantees the contract, and the scratch memory has the layout of the plan.
        let enqueued = unsafe { self.enqueue_bulk(kernels, zeros, &passes, &slices, shared, stream) };
        // If the stream may still use the scratch memory, it is freed, which waits.
        gpu.wait(stream, "putting a batch in bulk").and(enqueued)?;
        *self.kept_scratch() = Some(scratch);
        Ok(true)
    }

    /// Enqueues the kernels of a batch. `zeros`: address and bytes of the scratch memory to clear before. `passes`: with the
    /// number of tiles of each.
    ///
    /// # Safety
    ///
    /// As for [`put_in_bulk`](Self::put_in_bulk). The scratch memory stays until the stream has passed the kernels.
    unsafe fn enqueue_bulk(
        &self,
        kernels: &BulkKernels,
        zeros: (u64, usize),
        passes: &[(BulkPass, u32)],
        slices: &BulkSlices,
        shared: Shared,
        stream: &CudaStream,
    ) -> Result<()> {
        let gpu = self.gpu();
        let launch = |function: &CudaFunction, shape, arguments: &mut [*mut c_void]| {
            // SAFETY: the arguments of the kernels, whose sizes both sides assert. Offsets are within the scratch memory. The
            // caller guarantees the rest.
            unsafe { gpu.launch(function, shape, stream.cu_stream(), arguments) }
        };
        let fill_threads = fill_threads(self.spec.width());
        let resident = {
            pass("filling memory")?;
            let _current = gpu.bind()?;
            // SAFETY: scratch memory.
            unsafe { result::memset_d8_async(zeros.0, 0, zeros.1, stream.cu_stream()) }.map_err(cuda("filling memory"))?;
            kernels
                .fill
                .occupancy_max_active_blocks_per_multiprocessor(fill_threads, shared.fill as usize, None)
                .map_err(cuda("asking for the occupancy"))?
        };
        let view = view_argument(&self.view);
        for (pass, tiles) in passes {
            launch(&kernels.partition, (*tiles, THREADS, shared.partition), &mut [view, argument(pass)])?;
        }
        let blocks = u64::from(gpu.multiprocessors * resident.max(1)).min(slices.slices) as u32;
        launch(&kernels.fill, (blocks, fill_threads, shared.fill), &mut [view, argument(slices)])?;
        launch(&kernels.put_left, (gpu.multiprocessors * 8, 256, 0), &mut [view, argument(slices)])?;
        for (pass, tiles) in passes.iter().rev().filter(|_| slices.outcomes != 0) {
            launch(&kernels.replay, (*tiles, THREADS, shared.replay), &mut [argument(pass)])?;
        }
        Ok(())
    }
}
