//! Growth of bucket tables on a GPU, in the order of the slices.
//!
//! The algorithm is in cuda/warpset/bucket/block_growth.cuh.

use super::bulk_plan::ShortSeeds;
use super::cuda;
use super::growth_plan::{Growing, LeftList, Plan};
use super::store::{CudaStore, argument, view_argument};
use crate::backend::waves::slices;
use crate::backend::{Launch, Machine};
use crate::layout::options::Parameters;
use crate::layout::search::SearchMode;
use crate::layout::size;
use crate::layout::view::{BatchView, Counts, View};
use crate::layout::{Kernel, Kind};
use crate::{Error, Result};
use std::ops::Range;

/// Threads of a block.
const THREADS: u32 = 1024;

/// Turns a lack of memory into `None`, because growth then falls back to find-or-put.
pub(super) fn unless_short<T>(made: Result<T>) -> Result<Option<T>> {
    match made {
        Ok(made) => Ok(Some(made)),
        Err(Error::OutOfMemory { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl CudaStore {
    /// Number of slices of a table of this kind with this number of slots, and the buckets of each; `None` if it has none.
    pub(super) fn slices_of(&self, slots: u64) -> Option<(u64, u64)> {
        let slots_per_bucket = self.kernels.geometry.slots_per_bucket;
        let buckets = slots / u64::from(slots_per_bucket);
        slices(buckets, slots_per_bucket).map(|slices| (slices, buckets / slices))
    }

    /// How the table grows by slices from this number of slots. `None` unless it has slices before and afterwards.
    pub(super) fn by_slices(&self, parameters: &Parameters<'_>, slots: u64) -> Option<Growing> {
        if self.spec.kind != Kind::Bucket || self.spec != parameters.spec {
            return None;
        }
        let geometry = self.kernels.geometry;
        let ((now, slice_buckets), (then, _)) = (self.slices_of(slots)?, self.slices_of(geometry.slots(parameters.buckets))?);
        let plan = Plan::new(then / now, slice_buckets, geometry.bytes(slice_buckets), self.gpu().shared_bytes);
        Some(Growing { now, then, plan })
    }

    /// Seeds of the hash, if vectors have one, two or four words; otherwise zeros.
    pub(super) fn short_seeds(&self) -> Result<ShortSeeds> {
        let (mut seeds, width) = (ShortSeeds::default(), self.spec.width());
        if ShortSeeds::are_for(width) {
            // SAFETY: memory of this GPU, which has a pair of seeds for each word and one more. Nothing writes to it.
            unsafe { self.machine.read(*self.seeds, 0, bytemuck::cast_slice_mut(&mut seeds.0[..=width]))? };
        }
        Ok(seeds)
    }

    /// Launches the kernel that fills some parts of a larger table, or, unless it `writes`, finds the vectors that these leave.
    ///
    /// # Safety
    ///
    /// The views are of bucket tables of this spec on this GPU, with slices, and the list has room for its capacity. All of this
    /// memory stays until the kernel has ended. Until then nothing else uses the parts, which are not where they read.
    pub(super) unsafe fn fill_parts(
        &self,
        (from, to): (&View, &View),
        (plan, seeds): (&Plan, &ShortSeeds),
        parts: Range<u64>,
        writes: bool,
        left: LeftList,
    ) -> Result<()> {
        let (gpu, shared) = (self.gpu(), plan.shared_bytes as u32);
        let kernel = &self.kernels.grow(gpu)?.fill;
        let blocks = {
            let _current = gpu.bind()?;
            kernel
                .occupancy_max_active_blocks_per_multiprocessor(THREADS, shared as usize, None)
                .map_err(cuda("asking for the occupancy"))?
        };
        let blocks = u64::from(gpu.multiprocessors * blocks.max(1)).min(parts.end - parts.start).max(1) as u32;
        let (slices_a_part, is_staged) = (plan.slices_a_part as u32, u32::from(plan.is_staged));
        let (first, last, writes) = (parts.start, parts.end, u32::from(writes));
        let mut arguments = [
            view_argument(from),
            view_argument(to),
            argument(seeds),
            argument(&slices_a_part),
            argument(&is_staged),
            argument(&first),
            argument(&last),
            argument(&writes),
            argument(&left.slots),
            argument(&left.capacity),
            argument(&left.count),
        ];
        // SAFETY: the arguments of `warpset_grow`. Both tables have slices of one number of buckets, and shared memory has the
        // bytes that the plan says. The caller guarantees the rest.
        unsafe { gpu.launch(kernel, (blocks, THREADS, shared), self.stream(), &mut arguments) }
    }

    /// [`Store::grown`](crate::backend::Store::grown), for tables that have slices before and after the growth. Returns `None`
    /// for other tables, if memory is short, or if more vectors are left (bucket/growth.cuh) than their list can hold.
    pub(super) fn grown_by_slices(&self, parameters: &Parameters<'_>, slots: u64) -> Result<Option<(Self, Counts)>> {
        // Parts of a table that shrinks would read too many slots for their counters.
        let growing = self.by_slices(parameters, slots).filter(|growing| growing.then >= growing.now);
        let Some(Growing { then, plan, .. }) = growing else { return Ok(None) };
        self.gpu().synchronize()?;
        let seeds = self.short_seeds()?;
        let larger = Self::unfilled(&self.machine, parameters)?;
        let machine: &dyn Machine = &self.machine;
        let capacity = size::most_left(slots);
        // Find-or-put of all vectors needs less memory besides the tables.
        let Some(left) = unless_short(machine.allocate(capacity * 8))? else { return Ok(None) };
        let count = machine.allocate_zeroed(8)?;
        let list = LeftList { slots: left.address, capacity, count: count.address };
        // SAFETY: the caller has this table alone, and nothing uses the larger one yet. `load` waits for the kernel.
        unsafe {
            self.fill_parts((&self.view, &larger.view), (&plan, &seeds), 0..then.div_ceil(plan.slices_a_part), true, list)?
        };
        let mut found = [0u64];
        // SAFETY: memory of this GPU; the copy waits for the kernel.
        unsafe { machine.load(*count, 0, &mut found)? };
        let counts = match found {
            [0] => Some(Counts::default()),
            [found] if found <= capacity => unless_short(self.put_slots(&larger, left.address, found))?,
            _ => None,
        };
        Ok(counts.map(|counts| (larger, counts)))
    }

    /// Puts the vectors in the slots that a list on the GPU has into `larger`. Returns the counts.
    fn put_slots(&self, larger: &Self, list: u64, count: u64) -> Result<Counts> {
        let machine: &dyn Machine = &self.machine;
        let vectors = machine.allocate(count * self.spec.width() as u64 * 4)?;
        // The words that could not be read, and the counts.
        let (invalid, sums) = (machine.allocate_zeroed(8)?, machine.allocate_zeroed(size_of::<Counts>() as u64)?);
        let batch = BatchView { vectors: vectors.address, count, counts: sums.address, ..BatchView::default() };
        let mut counts = Counts::default();
        // SAFETY: the arguments of the kernels, whose buffers have room for this number of vectors, and live until the last copy
        // has waited for all of it. Allocations are aligned to 256 bytes. The list has slots of this table that hold vectors.
        unsafe {
            let arguments = [list, count, vectors.address, invalid.address];
            machine.launch(Kernel::Get, &[self.argument()], count * self.spec.width() as u64, &arguments)?;
            larger.enqueue(SearchMode::FindOrPut, &batch, self.stream(), Launch::default())?;
            machine.read(*sums, 0, bytemuck::bytes_of_mut(&mut counts))?;
        }
        Ok(counts)
    }
}
