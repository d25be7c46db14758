//! Bulk find-or-put into a bucket table on a GPU.
//!
//! The algorithm is in cuda/warpset/bucket/bulk.cuh.

use super::bulk_plan::{Bulk, Level, Plan, THREADS};
use super::growth::unless_short;
use super::kernels::BulkKernels;
use super::store::{CudaStore, MAX_BATCH, argument, view_argument};
use super::{Gpu, cuda, pass};
use crate::Result;
use crate::backend::{Launch, Machine, Memory, Region};
use crate::layout::search::SearchMode;
use crate::layout::view::BatchView;
use cudarc::driver::{CudaFunction, CudaStream, result};
use std::ffi::c_void;
use std::sync::{MutexGuard, PoisonError};

/// Seeds of the hash: `warpset::BulkSeeds` of bulk.cuh.
type Seeds = [[u64; 2]; 3];

/// `warpset::BulkPass` of bulk.cuh.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Pass {
    seeds: Seeds,
    from: u64,
    from_counts: u64,
    from_capacity: u64,
    segments: u64,
    to: u64,
    to_counts: u64,
    to_capacity: u64,
    places: u64,
    runs: u64,
    outcomes: u64,
    to_outcomes: u64,
    counts: u64,
    shift: u32,
    parts: u32,
}

/// `warpset::BulkSlices` of bulk.cuh.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Slices {
    seeds: Seeds,
    vectors: u64,
    sizes: u64,
    capacity: u64,
    slices: u64,
    outcomes: u64,
    left: u64,
    left_count: u64,
    counts: u64,
    offered: u64,
}

// As bulk.cuh asserts.
const _: () = assert!(size_of::<Pass>() == 160 && size_of::<Slices>() == 128);

/// A batch that is being put in bulk.
struct Batch<'a> {
    plan: &'a Plan,
    view: &'a BatchView,
    scratch: Region,
    seeds: Seeds,
}

impl Batch<'_> {
    fn at(&self, offset: u64) -> u64 {
        self.scratch.address + offset
    }

    fn if_outcomes(&self, address: u64) -> u64 {
        if self.view.outcomes == 0 { 0 } else { address }
    }

    /// The passes of the partition.
    fn passes(&self) -> Vec<Pass> {
        let of = |(number, level): (usize, &Level)| {
            let before = number.checked_sub(1).map(|before| &self.plan.levels[before]);
            Pass {
                seeds: self.seeds,
                from: before.map_or(self.view.vectors, |before| self.at(before.to)),
                from_counts: before.map_or(0, |before| self.at(before.to_counts)),
                from_capacity: level.from_capacity,
                segments: level.segments,
                to: self.at(level.to),
                to_counts: self.at(level.to_counts),
                to_capacity: level.to_capacity,
                places: self.if_outcomes(self.at(level.places)),
                runs: self.if_outcomes(self.at(level.runs)),
                outcomes: self.if_outcomes(before.map_or(self.view.outcomes, |before| self.at(before.to_outcomes))),
                to_outcomes: self.if_outcomes(self.at(level.to_outcomes)),
                counts: self.view.counts,
                shift: level.shift,
                parts: level.parts as u32,
            }
        };
        self.plan.levels.iter().enumerate().map(of).collect()
    }

    fn slices(&self) -> Slices {
        let last = self.plan.levels.last().expect("a plan has a pass");
        Slices {
            seeds: self.seeds,
            vectors: self.at(last.to),
            sizes: self.at(last.to_counts),
            capacity: last.to_capacity,
            slices: self.plan.slices,
            outcomes: self.if_outcomes(self.at(last.to_outcomes)),
            left: self.at(self.plan.left),
            left_count: self.at(self.plan.left_count),
            counts: self.view.counts,
            offered: self.view.count,
        }
    }
}

impl CudaStore {
    /// Whether a batch of `count` vectors is put in bulk, if there is memory.
    pub(crate) fn takes_bulk(&self, bulk: Bulk, count: u64, has_outcomes: bool) -> bool {
        let is_possible = count > 0 && self.spec.bulk_bytes().is_some() && self.slices_of(self.slots_now()).is_some();
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
    pub(super) fn kept_scratch(&self) -> MutexGuard<'_, Option<Memory>> {
        self.bulk_scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots_now(&self) -> u64 {
        let geometry = self.kernels.geometry;
        geometry.slots(self.slots.bytes / u64::from(geometry.block_bytes) * u64::from(geometry.buckets_per_block))
    }

    /// Puts a batch in device memory, in bulk if [`takes_bulk`](Self::takes_bulk) allows it and there is memory. Waits for all
    /// work on the GPU before that, and for the batch. `spare`: bytes that scratch memory may take. Adds to the batch's counts as
    /// [`enqueue`](Self::enqueue) does. After an error some of the vectors may have been put.
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
        let (slices, slice_buckets) = self.slices_of(self.slots_now()).expect("the caller has checked that the table has slices");
        let Some(plan) = Plan::new(self.spec, batch.count, slices, batch.outcomes != 0) else { return Ok(false) };
        // With the number of vectors that are left.
        let fill_bytes = self.kernels.geometry.bytes(slice_buckets) + 16;
        let [partition_bytes, replay_bytes] = plan.shared_bytes(self.spec);
        let most_tiles = plan.levels.iter().map(|level| level.tiles).max().unwrap_or(0);
        let kept = self.kept_scratch().take();
        let spare = spare.saturating_add(kept.as_ref().map_or(0, |kept| kept.bytes));
        let is_too_large = fill_bytes.max(partition_bytes).max(replay_bytes) > gpu.shared_bytes || most_tiles > i32::MAX as u64;
        if plan.bytes > spare || is_too_large {
            return Ok(false);
        }
        let kernels = self.kernels.bulk(gpu)?;
        let scratch = match kept.filter(|kept| kept.bytes >= plan.bytes) {
            Some(kept) => kept,
            None => match unless_short(machine.allocate(plan.bytes))? {
                Some(scratch) => scratch,
                None => return Ok(false),
            },
        };
        let mut seeds = Seeds::default();
        let words = &mut seeds[..=self.spec.width()];
        // SAFETY: memory of this GPU, which has a seed for each word and one more. Nothing writes to it.
        unsafe { machine.read(*self.seeds, 0, bytemuck::cast_slice_mut(words))? };
        let batch = Batch { plan: &plan, view: batch, scratch: *scratch, seeds };
        let shapes = Shapes { partition: partition_bytes as u32, replay: replay_bytes as u32, fill: fill_bytes as u32 };
        // SAFETY: the caller guarantees the contract, and the scratch memory has the layout of the plan.
        let enqueued = unsafe { self.enqueue_bulk(kernels, &batch, shapes, stream) };
        // If the stream may still use the scratch memory, it is freed, which waits.
        gpu.wait(stream, "putting a batch in bulk").and(enqueued)?;
        *self.kept_scratch() = Some(scratch);
        Ok(true)
    }

    /// Enqueues the kernels of a batch.
    ///
    /// # Safety
    ///
    /// As for [`put_in_bulk`](Self::put_in_bulk). The scratch memory stays until the stream has passed the kernels.
    unsafe fn enqueue_bulk(&self, kernels: &BulkKernels, batch: &Batch<'_>, shapes: Shapes, stream: &CudaStream) -> Result<()> {
        let gpu = self.gpu();
        let launch = |function: &CudaFunction, shape, arguments: &mut [*mut c_void]| {
            // SAFETY: the arguments of the kernels, whose sizes both sides assert. Offsets are within the scratch memory. The
            // caller guarantees the rest.
            unsafe { gpu.launch(function, shape, stream.cu_stream(), arguments) }
        };
        {
            pass("filling memory")?;
            let _current = gpu.bind()?;
            // SAFETY: scratch memory, whose plan begins with these bytes.
            let filled =
                unsafe { result::memset_d8_async(batch.scratch.address, 0, batch.plan.zeros as usize, stream.cu_stream()) };
            filled.map_err(cuda("filling memory"))?;
        }
        let (view, passes, slices) = (view_argument(&self.view), batch.passes(), batch.slices());
        let tiles = |number: usize| batch.plan.levels[number].tiles as u32;
        for (number, pass) in passes.iter().enumerate() {
            let shape = (tiles(number), THREADS, shapes.partition);
            launch(&kernels.partition, shape, &mut [view, argument(pass)])?;
        }
        let resident = {
            let _current = gpu.bind()?;
            kernels
                .fill
                .occupancy_max_active_blocks_per_multiprocessor(THREADS, shapes.fill as usize, None)
                .map_err(cuda("asking for the occupancy"))?
        };
        let blocks = u64::from(gpu.multiprocessors * resident.max(1)).min(slices.slices) as u32;
        launch(&kernels.fill, (blocks, THREADS, shapes.fill), &mut [view, argument(&slices)])?;
        launch(&kernels.put_left, (gpu.multiprocessors * 2, 256, 0), &mut [view, argument(&slices)])?;
        if slices.outcomes != 0 {
            for (number, pass) in passes.iter().enumerate().rev() {
                launch(&kernels.replay, (tiles(number), THREADS, shapes.replay), &mut [argument(pass)])?;
            }
        }
        Ok(())
    }
}

/// Bytes of shared memory of a block.
#[derive(Clone, Copy)]
struct Shapes {
    partition: u32,
    replay: u32,
    fill: u32,
}
