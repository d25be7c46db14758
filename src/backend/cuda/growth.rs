//! Growth of bucket tables on a GPU, in the order of the slices.
//!
//! The algorithm is in cuda/warpset/bucket/growth.cuh.

use super::cuda;
use super::store::{CudaStore, argument, view_argument};
use crate::backend::{Launch, Machine};
use crate::layout::options::Parameters;
use crate::layout::search::SearchMode;
use crate::layout::size::{self, Slices};
use crate::layout::view::{BatchView, Counts};
use crate::layout::{Kernel, Kind};
use crate::{Error, Result};

/// Threads of a block.
const THREADS: u32 = 1024;

/// Slices of the larger table that a block fills at a time, at most: all that share hashes with a slice of the smaller table.
const MOST_SLICES: u64 = 4;

/// Turns a lack of memory into `None`, because growth then falls back to find-or-put.
pub(super) fn unless_short<T>(made: Result<T>) -> Result<Option<T>> {
    match made {
        Ok(made) => Ok(Some(made)),
        Err(Error::OutOfMemory { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// How the blocks share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    slices_a_part: u64,
    /// Whether a part is made in shared memory.
    is_staged: bool,
    /// Bytes of shared memory of a block.
    shared_bytes: u64,
}

impl Plan {
    /// Plan for a table that gets `times` as many slices. A slice has `buckets` buckets and `bytes` bytes.
    fn new(times: u64, buckets: u64, bytes: u64, most_shared_bytes: u64) -> Self {
        let counters = |slices: u64| (slices * buckets * 2).next_multiple_of(16);
        let staged =
            |slices: u64| Self { slices_a_part: slices, is_staged: true, shared_bytes: counters(slices) + slices * bytes };
        let direct = |slices: u64| Self { slices_a_part: slices, is_staged: false, shared_bytes: counters(slices) };
        let fits = |plan: &Self| plan.shared_bytes <= most_shared_bytes;
        let wanted = (1..=times.clamp(1, MOST_SLICES)).rev();
        let plan = wanted.clone().map(staged).find(fits).or_else(|| wanted.map(direct).find(fits));
        plan.expect("the counters of a slice have at most 16 KiB")
    }
}

impl CudaStore {
    /// Number of slices of a table of this kind with this number of slots, and the buckets of each; `None` if it has none.
    pub(super) fn slices_of(&self, slots: u64) -> Option<(u64, u64)> {
        let geometry = self.kernels.geometry;
        let buckets = slots / u64::from(geometry.slots_per_bucket);
        let Slices { slice_buckets, slice_mask } = Slices::of(buckets, geometry.slots_per_bucket);
        (slice_mask != u32::MAX).then(|| (buckets / u64::from(slice_buckets), slice_buckets.into()))
    }

    /// [`Store::grown`](crate::backend::Store::grown), of tables that have slices before and afterwards. `None` also if memory is
    /// short, or too many vectors are left.
    pub(super) fn grown_by_slices(&self, parameters: &Parameters<'_>, slots: u64) -> Result<Option<(Self, Counts)>> {
        let geometry = self.kernels.geometry;
        if self.spec.kind != Kind::Bucket || self.spec != parameters.spec {
            return Ok(None);
        }
        let (Some((now, slice_buckets)), Some((then, _))) =
            (self.slices_of(slots), self.slices_of(geometry.slots(parameters.buckets)))
        else {
            return Ok(None);
        };
        let gpu = self.gpu();
        gpu.synchronize()?;
        let larger = Self::unfilled(&self.machine, parameters)?;
        let plan = Plan::new(then / now, slice_buckets, geometry.bytes(slice_buckets), gpu.shared_bytes);
        let parts = then.div_ceil(plan.slices_a_part);
        let kernel = self.kernels.grow(gpu)?;
        let machine: &dyn Machine = &self.machine;
        let capacity = size::most_left(slots);
        // Find-or-put of all vectors needs less memory besides the tables.
        let Some(left) = unless_short(machine.allocate(capacity * 8))? else { return Ok(None) };
        let count = machine.allocate_zeroed(8)?;
        let shared = plan.shared_bytes as u32;
        let blocks = {
            let _current = gpu.bind()?;
            kernel
                .occupancy_max_active_blocks_per_multiprocessor(THREADS, shared as usize, None)
                .map_err(cuda("asking for the occupancy"))?
        };
        let blocks = u64::from(gpu.multiprocessors * blocks.max(1)).min(parts) as u32;
        let (slices_a_part, is_staged) = (plan.slices_a_part as u32, u32::from(plan.is_staged));
        let mut arguments = [
            view_argument(&self.view),
            view_argument(&larger.view),
            argument(&slices_a_part),
            argument(&is_staged),
            argument(&left.address),
            argument(&capacity),
            argument(&count.address),
        ];
        // SAFETY: the arguments of `warpset_grow`. Both tables have slices of this number of buckets, and shared memory has the
        // bytes that the plan says. The caller has this table alone, and nothing uses the larger one yet.
        unsafe { gpu.launch(kernel, (blocks, THREADS, shared), self.stream(), &mut arguments)? };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Shared memory of an H100, and of compute capability 7.5.
    #[test]
    fn parts_fit_shared_memory() {
        let (h100, turing) = (227 << 10, 64 << 10);
        let plan = |slices_a_part, is_staged, shared_bytes| Plan { slices_a_part, is_staged, shared_bytes };
        // Two words, buckets of four slots: both new slices of one, of three, and one alone.
        assert_eq!(Plan::new(2, 2048, 65536, h100), plan(2, true, 139_264));
        assert_eq!(Plan::new(9, 2048, 65536, h100), plan(3, true, 208_896));
        assert_eq!(Plan::new(1, 2048, 65536, h100), plan(1, true, 69_632));
        assert_eq!(Plan::new(2, 2048, 65536, turing), plan(2, false, 8192));
        // 32 words.
        assert_eq!(Plan::new(2, 8192, 1 << 20, h100), plan(2, false, 32768));
        assert_eq!(Plan::new(4, 8192, 1 << 20, turing), plan(4, false, 65536));
    }
}
