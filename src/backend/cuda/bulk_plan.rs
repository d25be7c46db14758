//! Bulk find-or-put: when it pays, how its passes divide a batch, and the arguments of its kernels. The algorithm is in
//! cuda/warpset/bucket/bulk.cuh.

use crate::Spec;
use crate::layout::Kind;
use crate::layout::view::BatchView;

/// Whether a batch is put *in bulk*: sorted by the parts of the table that its vectors belong to, and then put part by part.
///
/// Only bucket tables of 1, 2 and 4 words on a GPU, from 65,536 slots on, take batches in bulk, and only batches that report no
/// references. (A block needs up to 62, 74 or 148 KB of shared memory, and 4 words need compute capability 9.0 or more.) Every
/// other batch is put in the ordinary way, with the same results. On one H200, 2^27 vectors of 1 or 2 words took 0.38 to 0.53 of
/// the time of ordinary find-or-put into empty tables, which they filled to 0.25 up to 0.95, and 0.46 to 0.63 with outcomes;
/// vectors of 4 words took 0.59 to 0.82, and 0.68 to 0.97. Batches may take longer in bulk if they are small against the table,
/// or if a few vectors are most of the batch.
///
/// The copies of a batch that is large against the table take at most 2.6 times its bytes, and up to 9 bytes for each outcome;
/// those of a small one take relatively more. This memory is kept for later batches in bulk of the table, until the table grows
/// or is dropped. If it is not free, or not within the [memory limit](crate::MemoryLimit) of the table, the batch is put in the
/// ordinary way. The first batch in bulk compiles its kernels, which takes about a second if they are not kept on disk.
///
/// A batch in bulk needs the table alone, as growth does: it waits for other calls and for all work on the GPU, and others wait
/// for it ([Which call waits for what](crate::threads_and_streams#which-call-waits-for-what)). A kernel of your own must not use
/// the table meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bulk {
    /// Never.
    #[default]
    Never,
    /// If it was faster in tables that are neither empty nor nearly full: the table is larger than the L2 cache, and the batch
    /// has at least 1/4 as many vectors of 1 or 2 words as the table has slots, or 1/2 as many if it reports outcomes; or as many
    /// of 4 words, without outcomes.
    WhenFaster,
    /// Whenever it is possible.
    Always,
}

/// Threads of a block that partitions or replays: `threads` of bulk.cuh.
pub(crate) const THREADS: u32 = 512;

/// Threads of a block that fills slices: `fill_threads` of bulk.cuh.
pub(crate) fn fill_threads(width: usize) -> u32 {
    if width == 4 { 1024 } else { 512 }
}

/// Most parts of a segment: their counters are in shared memory.
const MOST_PARTS: u64 = 1024;

/// Most slices that one pass divides a batch by.
const MOST_IN_ONE_PASS: u64 = 512;

/// Alignment of the arrays in scratch memory, in bytes. The kernels read whole words, also at the end of an array.
const ALIGNMENT: u64 = 256;

impl Spec {
    /// Bytes of a vector, if tables of this spec take batches in bulk: a vector is one chunk, and has no padding.
    pub(crate) fn bulk_bytes(&self) -> Option<u64> {
        let bytes = self.width() * 4;
        let has_kernels = ShortSeeds::are_for(self.width()) && bytes <= self.chunk_bytes();
        (self.kind == Kind::Bucket && has_kernels).then_some(bytes as u64)
    }

    /// Whether a batch of `count` vectors is put faster in bulk, into a table of `slots` slots: figures are in bulk.cuh. Whether
    /// the table is empty is not known without waiting for the GPU.
    pub(crate) fn is_faster_in_bulk(&self, count: u64, slots: u64, has_outcomes: bool) -> bool {
        match (self.width(), has_outcomes) {
            (4, true) => false,
            (4, false) => count >= slots,
            (_, false) => count >= slots.div_ceil(4),
            (_, true) => count >= slots.div_ceil(2),
        }
    }
}

/// Seeds of the hash of vectors of one, two or four words, as an argument of a kernel: `warpset::ShortSeeds` of core/hash.cuh.
/// Public for the simulated GPU of the tests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct ShortSeeds(pub [[u64; 2]; 5]);

impl ShortSeeds {
    /// Whether vectors of `width` words have a hash by these seeds.
    pub const fn are_for(width: usize) -> bool {
        matches!(width, 1 | 2 | 4)
    }
}

/// A pass of the partition: `warpset::BulkPass` of bulk.cuh. Public for the simulated GPU of the tests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct BulkPass {
    pub seeds: ShortSeeds,
    pub from: u64,
    pub from_counts: u64,
    pub from_capacity: u64,
    pub segments: u64,
    pub to: u64,
    pub to_counts: u64,
    pub to_capacity: u64,
    pub places: u64,
    pub runs: u64,
    pub outcomes: u64,
    pub to_outcomes: u64,
    pub counts: u64,
    pub shift: u32,
    pub parts: u32,
}

/// Slices with the vectors to put there: `warpset::BulkSlices` of bulk.cuh. Public for the simulated GPU of the tests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct BulkSlices {
    pub seeds: ShortSeeds,
    pub vectors: u64,
    pub sizes: u64,
    pub capacity: u64,
    pub slices: u64,
    pub outcomes: u64,
    pub left: u64,
    pub left_count: u64,
    pub marks: u64,
    pub counts: u64,
    pub offered: u64,
}

// As bulk.cuh asserts.
const _: () = assert!(size_of::<BulkPass>() == 192 && size_of::<BulkSlices>() == 160);

/// How a batch is put in bulk: the passes, and the layout of scratch memory. Public for the simulated GPU of the tests.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkPlan {
    /// With offsets in scratch memory instead of addresses; 0 for what is outside of it.
    passes: Vec<BulkPass>,
    slices: BulkSlices,
    /// Vectors of a tile.
    tile: u64,
    /// Bytes at the beginning of scratch memory that must be zero.
    pub zeros: u64,
    /// Bytes of scratch memory.
    pub bytes: u64,
}

/// Vectors that a part has room for, which gets `share` of them on average: six standard deviations more than that. One of 10^9
/// parts has too little room if hashes are random and no vector occurs more than twice.
fn capacity(count: u64, share: f64) -> u64 {
    let mean = count as f64 * share;
    ((mean + 6.0 * (2.0 * mean).sqrt()) as u64 + 64).next_multiple_of(16)
}

impl BulkPlan {
    /// Plan for `count` vectors, and a table of this number of slices. `None` if either is out of range.
    pub(crate) fn new(spec: Spec, count: u64, slices: u64, has_outcomes: bool) -> Option<Self> {
        let shift = if slices <= MOST_IN_ONE_PASS { 0 } else { slices.next_power_of_two().trailing_zeros().div_ceil(2) };
        if slices.div_ceil(1 << shift) > MOST_PARTS || 1 << shift > MOST_PARTS || slices < 2 || count == 0 {
            return None;
        }
        let capacities = [1u64 << shift, 1].map(|part| capacity(count, part as f64 / slices as f64));
        let tile = u64::from(THREADS) * Self::items(spec.width()) as u64;
        let plan = Self::of(spec.bulk_bytes()?, tile, count, slices, shift, capacities, has_outcomes);
        // Positions in parts have 32 bits, and so has a number of blocks.
        let fits = plan.passes.iter().all(|pass| pass.room() <= u64::from(u32::MAX) && plan.tiles(pass) <= i32::MAX as u64);
        fits.then_some(plan)
    }

    /// Plan with tiles of `tile` vectors. `shift`: the first pass brings 2^shift slices to a part. If that is more than one, a
    /// second pass divides them. `capacities`: vectors that a part of each pass has room for.
    pub fn of(
        vector_bytes: u64,
        tile: u64,
        count: u64,
        slices: u64,
        shift: u32,
        capacities: [u64; 2],
        has_outcomes: bool,
    ) -> Self {
        let parts = slices.div_ceil(1 << shift);
        assert!(shift == 0 || capacities[0].is_multiple_of(4), "segments of {} vectors begin inside of a word", capacities[0]);
        let pass = |segments, from_capacity, parts, to_capacity, shift| BulkPass {
            segments,
            from_capacity,
            parts,
            to_capacity,
            shift,
            ..BulkPass::default()
        };
        let mut passes = vec![pass(1, count, parts as u32, capacities[0], shift)];
        if shift > 0 {
            passes.push(pass(parts, capacities[0], 1 << shift, capacities[1], 0));
        }
        let slices = BulkSlices { slices, ..BulkSlices::default() };
        let mut plan = Self { passes, slices, tile, zeros: 0, bytes: 0 };
        plan.lay_out(vector_bytes, has_outcomes);
        plan
    }

    fn lay_out(&mut self, vector_bytes: u64, has_outcomes: bool) {
        let (tile, mut end) = (self.tile, 0);
        let mut take = |bytes: u64| {
            let at = end;
            end = (end + bytes).next_multiple_of(ALIGNMENT);
            at
        };
        self.slices.left_count = take(8);
        for pass in &mut self.passes {
            pass.to_counts = take(pass.segments * u64::from(pass.parts) * 8);
        }
        let capacity = self.passes.last().expect("a plan has a pass").to_capacity;
        self.slices.marks = take(self.slices.slices * capacity.div_ceil(64) * 8);
        self.slices.left = take(self.slices.slices * 8);
        self.zeros = self.slices.left;
        for pass in &mut self.passes {
            pass.to = take(pass.room() * vector_bytes);
            if has_outcomes {
                pass.places = take(pass.segments * pass.from_capacity * 2);
                pass.runs = take(pass.tiles(tile) * u64::from(pass.parts) * 8);
                pass.to_outcomes = take(pass.room());
            }
        }
        self.bytes = end;
    }

    /// Arguments of the kernels for a batch, with scratch memory at this address.
    pub fn arguments(&self, scratch: u64, batch: &BatchView, seeds: ShortSeeds) -> (Vec<BulkPass>, BulkSlices) {
        let if_outcomes = |offset| if batch.outcomes == 0 { 0 } else { scratch + offset };
        let (mut from, mut from_counts, mut outcomes) = (batch.vectors, 0, batch.outcomes);
        let place = |pass: &BulkPass| {
            let pass = BulkPass {
                seeds,
                from,
                from_counts,
                to: scratch + pass.to,
                to_counts: scratch + pass.to_counts,
                places: if_outcomes(pass.places),
                runs: if_outcomes(pass.runs),
                outcomes,
                to_outcomes: if_outcomes(pass.to_outcomes),
                counts: batch.counts,
                ..*pass
            };
            (from, from_counts, outcomes) = (pass.to, pass.to_counts, pass.to_outcomes);
            pass
        };
        let passes: Vec<BulkPass> = self.passes.iter().map(place).collect();
        let last = passes.last().expect("a plan has a pass");
        let slices = BulkSlices {
            seeds,
            vectors: last.to,
            sizes: last.to_counts,
            capacity: last.to_capacity,
            slices: self.slices.slices,
            outcomes: last.to_outcomes,
            left: scratch + self.slices.left,
            left_count: scratch + self.slices.left_count,
            marks: scratch + self.slices.marks,
            counts: batch.counts,
            offered: batch.count,
        };
        (passes, slices)
    }

    /// Vectors of a thread in a tile: `items` of bulk.cuh.
    pub fn items(width: usize) -> usize {
        if width == 1 { 16 } else { 24 / width }
    }

    /// Bytes of shared memory of a block of `threads` threads that fills a slice of `slice_bytes` bytes: bulk_filler.cuh.
    pub fn fill_bytes(slice_bytes: u64, threads: u32) -> u64 {
        // 64 searches that a warp keeps, and whether vectors are left.
        slice_bytes + u64::from(threads / 32) * 64 * 8 + 16
    }

    /// Tiles of a pass.
    pub(crate) fn tiles(&self, pass: &BulkPass) -> u64 {
        pass.tiles(self.tile)
    }

    /// Bytes of shared memory that a block of the partition and one of its replay need.
    pub fn shared_bytes(&self, vector_bytes: u64) -> [u64; 2] {
        let parts = u64::from(self.passes.iter().map(|pass| pass.parts).max().unwrap_or(0));
        [self.tile * (vector_bytes + 2) + (3 * parts + 33) * 4, parts * 8 + self.tile]
    }
}

impl BulkPass {
    fn tiles(&self, tile: u64) -> u64 {
        self.segments * self.from_capacity.div_ceil(tile)
    }

    /// Vectors that all parts have room for.
    fn room(&self) -> u64 {
        self.segments * u64::from(self.parts) * self.to_capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Strategy;

    #[test]
    fn plans_have_a_part_for_each_slice() {
        for words in [1, 2, 4] {
            let spec = Spec::bucket(words, 16).unwrap();
            for slices in (8..2000).chain([4095, 4096, 4097, 23_405, 1 << 17, (1 << 20) - 1, 1 << 20]) {
                for (count, has_outcomes) in [(1, true), (1000, false), (slices * 8192 / 4, true)] {
                    let plan = BulkPlan::new(spec, count, slices, has_outcomes).unwrap();
                    let last = plan.passes.last().unwrap();
                    assert!(last.segments * u64::from(last.parts) >= slices && last.shift == 0);
                    assert!(plan.passes.iter().all(|pass| u64::from(pass.parts) <= MOST_PARTS));
                    assert_eq!(plan.passes.len(), if slices <= MOST_IN_ONE_PASS { 1 } else { 2 });
                    assert!(last.room() as f64 >= count as f64);
                }
            }
            assert_eq!(BulkPlan::new(spec, 1 << 20, (1 << 20) + 1, false), None);
        }
        for (words, chunk_bytes) in [(3, 16), (4, 8), (8, 16)] {
            assert_eq!(Spec::bucket(words, chunk_bytes).unwrap().bulk_bytes(), None);
        }
        assert_eq!(Spec::tree(4, Strategy::default(), 16).unwrap().bulk_bytes(), None);
    }

    #[test]
    fn batches_are_put_in_bulk_from_a_share_of_the_slots_on() {
        let is_faster = |words, count, has_outcomes| {
            let spec = Spec::bucket(words, 16).unwrap();
            spec.is_faster_in_bulk(count, 1024, has_outcomes)
        };
        for (words, has_outcomes, least) in [(1, false, 256), (1, true, 512), (2, false, 256), (2, true, 512), (4, false, 1024)] {
            assert!(is_faster(words, least, has_outcomes) && !is_faster(words, least - 1, has_outcomes));
        }
        assert!(!is_faster(4, 1 << 20, true));
    }

    /// As the documentation says, from batches of the least size that is faster in bulk on.
    #[test]
    fn scratch_memory_is_a_small_multiple_of_the_vectors() {
        for (words, fill, most, most_with_outcomes) in
            [(1, 0.25, 2.6, 9.0), (2, 0.25, 2.6, 9.0), (2, 1.4, 2.2, 7.5), (4, 1.0, 2.2, 8.0)]
        {
            let (spec, slots) = (Spec::bucket(words, 16).unwrap(), 1u64 << 28);
            let count = (slots as f64 * fill) as u64;
            let bytes = |has_outcomes| BulkPlan::new(spec, count, slots / 8192, has_outcomes).unwrap().bytes as f64;
            let vectors = (count * words as u64 * 4) as f64;
            assert!(bytes(false) < most * vectors, "{words} words, {fill}: {}", bytes(false) / vectors);
            let outcomes = (bytes(true) - bytes(false)) / count as f64;
            assert!(outcomes < most_with_outcomes, "{words} words, {fill}: {outcomes}");
        }
    }
}
