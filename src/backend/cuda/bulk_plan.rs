//! Bulk find-or-put: when it pays, and how its passes divide a batch. The algorithm is in cuda/warpset/bucket/bulk.cuh.

use crate::Spec;
use crate::layout::Kind;

/// Whether a batch is put *in bulk*: sorted by the parts of the table that its vectors belong to, and then put part by part.
///
/// Only bucket tables of 1 and 2 words on a GPU, from 65,536 slots on, take batches in bulk, and only batches that report no
/// references. Every other batch is put in the ordinary way, with the same results. On one H200, 2^27 vectors took 0.55 of the
/// time of ordinary find-or-put for 1 word, and 0.67 for 2 words, into empty tables that they filled to 0.7; 0.7 to 0.95 with
/// outcomes. Vectors of 4 words took longer in bulk.
///
/// The copies take 2.1 to 2.6 times the bytes of the vectors, and up to 9 bytes for each outcome. This memory is kept for later
/// batches in bulk of the table, until the table grows or is dropped. If it is not free, or not within the
/// [memory limit](crate::MemoryLimit) of the table, the batch is put in the ordinary way.
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
    /// If it is faster: the table is larger than the L2 cache, and the batch has at least 1/8 as many vectors of 1 word as the
    /// table has slots, or 1/4 as many of 2 words; with outcomes 1/4 and 1/2.
    WhenFaster,
    /// Whenever it is possible.
    Always,
}

/// Threads of a block: `threads` of bulk.cuh.
pub(super) const THREADS: u32 = 512;

/// Most parts of a segment: their counters are in shared memory.
const MOST_PARTS: u64 = 1024;

/// Most slices that one pass divides a batch by.
const MOST_IN_ONE_PASS: u64 = 512;

/// Alignment of the arrays in scratch memory, in bytes.
const ALIGNMENT: u64 = 256;

impl Spec {
    /// Bytes of a vector, if tables of this spec take batches in bulk.
    pub(super) fn bulk_bytes(&self) -> Option<u64> {
        let has_kernels = self.kind == Kind::Bucket && matches!(self.width(), 1 | 2) && self.slot_words() == self.width();
        has_kernels.then_some(self.width() as u64 * 4)
    }

    /// Vectors of a tile of the partition: `threads` and `items` of bulk.cuh.
    fn bulk_tile(&self) -> u64 {
        u64::from(THREADS) * if self.width() == 1 { 16 } else { 12 }
    }

    /// Whether a batch of `count` vectors is put faster in bulk, into a table of `slots` slots.
    ///
    /// On an H200, a batch of which half was seen, into tables that were 0.3 full: 1 word from 1/8 of the slots on, with outcomes
    /// from 1/4; 2 words from 1/4 and 1/2. (`cargo bench --bench bulk`, without the time to allocate scratch memory.)
    pub(super) fn is_faster_in_bulk(&self, count: u64, slots: u64, has_outcomes: bool) -> bool {
        // For each slot one vector in this number.
        let share = if self.width() == 1 { 8 } else { 4 } / if has_outcomes { 2 } else { 1 };
        count >= slots.div_ceil(share)
    }
}

/// A pass of the partition: vectors in segments are divided into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub segments: u64,
    /// Vectors that a segment has room for.
    pub from_capacity: u64,
    /// Parts of a segment.
    pub parts: u64,
    /// Vectors that a part has room for.
    pub to_capacity: u64,
    /// The part of a slice is its number shifted right by this number of bits.
    pub shift: u32,
    pub tiles: u64,
    /// Byte offsets in scratch memory.
    pub to: u64,
    pub to_counts: u64,
    pub places: u64,
    pub runs: u64,
    /// Outcomes by position in the parts.
    pub to_outcomes: u64,
}

/// How a batch is put in bulk: the passes, and the layout of scratch memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub slices: u64,
    pub levels: Vec<Level>,
    /// Bytes at the beginning of scratch memory that must be zero.
    pub zeros: u64,
    /// Byte offset of the number of slices some of whose vectors are left.
    pub left_count: u64,
    /// Byte offset of the list of these slices.
    pub left: u64,
    /// Bytes of scratch memory.
    pub bytes: u64,
}

/// Vectors that a part has room for, which gets `share` of them on average: six standard deviations more than that. One of 10^9
/// parts has too little room if hashes are random and no vector occurs more than twice.
fn capacity(count: u64, share: f64) -> u64 {
    let mean = count as f64 * share;
    ((mean + 6.0 * (2.0 * mean).sqrt()) as u64 + 64).next_multiple_of(16)
}

impl Plan {
    /// Plan for `count` vectors, and a table of this number of slices. `None` if there are too many slices.
    pub(super) fn new(spec: Spec, count: u64, slices: u64, has_outcomes: bool) -> Option<Self> {
        let (bytes_each, tile) = (spec.bulk_bytes()?, spec.bulk_tile());
        let shift = if slices <= MOST_IN_ONE_PASS { 0 } else { slices.next_power_of_two().trailing_zeros().div_ceil(2) };
        if slices.div_ceil(1 << shift) > MOST_PARTS || 1 << shift > MOST_PARTS || slices < 2 || count == 0 {
            return None;
        }
        let shares = [1u64 << shift, 1].map(|part| part as f64 / slices as f64);
        let first = Level::new(tile, 1, count, slices.div_ceil(1 << shift), capacity(count, shares[0]), shift);
        let mut levels = vec![first];
        if shift > 0 {
            levels.push(Level::new(tile, first.parts, first.to_capacity, 1 << shift, capacity(count, shares[1]), 0));
        }
        let mut plan = Self { slices, levels, zeros: 0, left_count: 0, left: 0, bytes: 0 };
        plan.lay_out(bytes_each, has_outcomes);
        // Positions in parts have 32 bits.
        let fits = plan.levels.iter().all(|level| level.room() <= u64::from(u32::MAX));
        fits.then_some(plan)
    }

    fn lay_out(&mut self, bytes_each: u64, has_outcomes: bool) {
        let mut end = 0;
        let mut take = |bytes: u64| {
            let at = end;
            end = (end + bytes).next_multiple_of(ALIGNMENT);
            at
        };
        self.left_count = take(8);
        for level in &mut self.levels {
            level.to_counts = take(level.segments * level.parts * 8);
        }
        self.left = take(self.slices * 8);
        self.zeros = self.left;
        for level in &mut self.levels {
            level.to = take(level.room() * bytes_each);
            if has_outcomes {
                level.places = take(level.segments * level.from_capacity * 2);
                level.runs = take(level.tiles * level.parts * 8);
                level.to_outcomes = take(level.room());
            }
        }
        self.bytes = end;
    }

    /// Bytes of shared memory that the partition and its replay need.
    pub(super) fn shared_bytes(&self, spec: Spec) -> [u64; 2] {
        let (parts, tile) = (self.levels.iter().map(|level| level.parts).max().unwrap_or(0), spec.bulk_tile());
        [tile * (spec.width() as u64 * 4 + 2) + (3 * parts + 33) * 4, parts * 8 + tile]
    }
}

impl Level {
    fn new(tile: u64, segments: u64, from_capacity: u64, parts: u64, to_capacity: u64, shift: u32) -> Self {
        let tiles = segments * from_capacity.div_ceil(tile);
        let (to, to_counts, places, runs, to_outcomes) = (0, 0, 0, 0, 0);
        Self { segments, from_capacity, parts, to_capacity, shift, tiles, to, to_counts, places, runs, to_outcomes }
    }

    /// Vectors that all parts have room for.
    fn room(&self) -> u64 {
        self.segments * self.parts * self.to_capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Strategy;

    #[test]
    fn plans_have_a_part_for_each_slice() {
        for words in [1, 2] {
            let spec = Spec::bucket(words, 16).unwrap();
            for slices in (8..2000).chain([4095, 4096, 4097, 23_405, 1 << 17, (1 << 20) - 1, 1 << 20]) {
                for (count, has_outcomes) in [(1, true), (1000, false), (slices * 8192 / 4, true)] {
                    let plan = Plan::new(spec, count, slices, has_outcomes).unwrap();
                    let last = plan.levels.last().unwrap();
                    assert!(last.segments * last.parts >= slices && last.shift == 0);
                    assert!(plan.levels.iter().all(|level| level.parts <= MOST_PARTS));
                    assert_eq!(plan.levels.len(), if slices <= MOST_IN_ONE_PASS { 1 } else { 2 });
                    assert!(last.room() as f64 >= count as f64);
                }
            }
            assert_eq!(Plan::new(spec, 1 << 20, (1 << 20) + 1, false), None);
        }
        for words in [3, 4] {
            assert_eq!(Spec::bucket(words, 16).unwrap().bulk_bytes(), None);
        }
        assert_eq!(Spec::tree(4, Strategy::default(), 16).unwrap().bulk_bytes(), None);
    }

    #[test]
    fn batches_are_put_in_bulk_from_a_share_of_the_slots_on() {
        for (words, has_outcomes, least) in [(1, false, 128), (1, true, 256), (2, false, 256), (2, true, 512)] {
            let spec = Spec::bucket(words, 16).unwrap();
            assert!(spec.is_faster_in_bulk(least, 1024, has_outcomes) && !spec.is_faster_in_bulk(least - 1, 1024, has_outcomes));
        }
    }

    /// As the documentation says, from batches of the least size that is faster in bulk on.
    #[test]
    fn scratch_memory_is_a_small_multiple_of_the_vectors() {
        for (words, fill, most, most_with_outcomes) in [(1, 0.125, 2.6, 9.0), (2, 0.25, 2.5, 9.0), (2, 1.4, 2.2, 7.5)] {
            let (spec, slots) = (Spec::bucket(words, 16).unwrap(), 1u64 << 28);
            let count = (slots as f64 * fill) as u64;
            let bytes = |has_outcomes| Plan::new(spec, count, slots / 8192, has_outcomes).unwrap().bytes as f64;
            let vectors = (count * words as u64 * 4) as f64;
            assert!(bytes(false) < most * vectors, "{words} words, {fill}: {}", bytes(false) / vectors);
            let outcomes = (bytes(true) - bytes(false)) / count as f64;
            assert!(outcomes < most_with_outcomes, "{words} words, {fill}: {outcomes}");
        }
    }
}
