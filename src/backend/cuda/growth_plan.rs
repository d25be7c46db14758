//! How a bucket table grows on a GPU: shares of the blocks, numbers of slices, and what a growth in place holds while it is under
//! way.

use super::bulk_plan::ShortSeeds;
use crate::backend::Memory;
use crate::backend::waves::GrowthWaves;
use crate::layout::view::View;
use bytemuck::{Pod, Zeroable};

/// Slices of the larger table that a block fills at a time, at most: all that share hashes with a slice of the smaller table.
const MOST_SLICES: u64 = 4;

/// How the blocks share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub slices_a_part: u64,
    /// Whether a part is made in shared memory.
    pub is_staged: bool,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u64,
}

impl Plan {
    /// Plan for a table that gets `times` as many slices. A slice has `buckets` buckets and `bytes` bytes.
    pub fn new(times: u64, buckets: u64, bytes: u64, most_shared_bytes: u64) -> Self {
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

/// Numbers of slices of a table that grows, now and then.
#[derive(Clone, Copy)]
pub(super) struct Growing {
    pub now: u64,
    pub then: u64,
    pub plan: Plan,
}

/// List of the slots whose vectors are left: addresses of it and of its count, and its capacity.
#[derive(Clone, Copy)]
pub(super) struct LeftList {
    pub slots: u64,
    pub capacity: u64,
    pub count: u64,
}

/// Progress of a growth: `warpset::InPlace` of bucket/block_growth.cuh.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Progress {
    /// Vectors left.
    pub left: u64,
    /// How many of these have been copied: those of the waves that are done.
    pub kept: u64,
    /// Waves that are done.
    pub waves: u64,
}

/// A growth in place that has begun, with all memory that it takes. After an error it goes on where it was.
pub(super) struct InPlace {
    /// The smaller table, and the copy of its first slices.
    pub from: View,
    pub copied: View,
    /// The larger table. It counts vectors behind the progress.
    pub to: View,
    pub plan: Plan,
    pub seeds: ShortSeeds,
    pub waves: GrowthWaves,
    /// The progress, and from [`COPY_AT`](Self::COPY_AT) on the first slices of the smaller table.
    pub beside: Memory,
    /// Whether these slices have been copied. Later they may be overwritten.
    pub has_copied: bool,
    /// Vectors that are left, of `vector_bytes` each, and then the list of their slots, both with this capacity.
    pub left_list: Memory,
    pub vector_bytes: u64,
    pub capacity: u64,
    /// Vectors that the table has, and how many of them have been left, and are on the host.
    pub stored: u64,
    pub left: u64,
}

impl InPlace {
    /// Position of the slices in the memory of the progress. Tables are aligned to this number of bytes.
    pub const COPY_AT: u64 = 256;

    /// Bytes of the vectors of a list of this capacity, and with their slots.
    pub fn list_bytes(capacity: u64, vector_bytes: u64) -> [u64; 2] {
        let vectors = (capacity * vector_bytes).next_multiple_of(8);
        [vectors, vectors + capacity * 8]
    }

    pub fn list(&self) -> LeftList {
        let [vectors, _] = Self::list_bytes(self.capacity, self.vector_bytes);
        LeftList { slots: self.left_list.address + vectors, capacity: self.capacity, count: self.beside.address }
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
