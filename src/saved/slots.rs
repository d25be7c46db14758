//! Reads vectors from slots of another machine's layout. A file has the slots as they were in memory. Their layout is that of
//! cuda/warpset/core/layout.cuh, with the EMPTY patterns of cuda/warpset/bucket/table.cuh.

use crate::layout::view::Geometry;
use crate::layout::{Kind, Spec};
use bytemuck::{Pod, Zeroable};

/// Layout of the slots of a bucket table, or of a tree table's roots. All zeros for tables whose layout is the same on every
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct SlotLayout {
    /// Bytes of the main chunks: 4, 8 or 16.
    chunk_bytes: u32,
    /// Words per slot.
    slot_words: u32,
    pub slots_per_bucket: u32,
    /// Number of EMPTY patterns: a power of two.
    empty_classes: u32,
}

/// Smallest number of slots whose tails are stored together, if slots have tails.
const SLOTS_PER_BLOCK: u32 = 16;

impl SlotLayout {
    pub(super) fn of(spec: Spec, geometry: &Geometry) -> Self {
        if spec.kind.of_roots() != Kind::Bucket {
            return Self::zeroed();
        }
        let slot_words = spec.slot_words() as u32;
        let chunk_bytes = match slot_words {
            1 => 4,
            2 | 3 => 8,
            _ => spec.chunk_bytes() as u32,
        };
        let empty_classes = (geometry.chunks + 1).next_power_of_two();
        Self { chunk_bytes, slot_words, slots_per_bucket: geometry.slots_per_bucket, empty_classes }
    }

    /// Whether this can be the layout of slots for vectors of `words` words.
    pub(super) fn is_of(&self, words: u32) -> bool {
        let Self { chunk_bytes, slot_words, slots_per_bucket, empty_classes } = *self;
        [4, 8, 16].contains(&chunk_bytes)
            && (words..words + 4).contains(&slot_words)
            && slot_words <= Spec::MAX_WIDTH as u32
            && slot_words * 4 >= chunk_bytes
            && slots_per_bucket.is_power_of_two()
            && slots_per_bucket <= 32
            && empty_classes.is_power_of_two()
            && (2..=1024).contains(&empty_classes)
    }

    fn main_bytes(&self) -> u32 {
        self.slot_words * 4 / self.chunk_bytes * self.chunk_bytes
    }

    /// Whether slots have an 8-byte tail, and whether they have a 4-byte tail.
    fn tails(&self) -> (bool, bool) {
        let left = self.slot_words * 4 - self.main_bytes();
        (left >= 8, self.slot_words % 2 == 1 && self.chunk_bytes > 4)
    }

    fn slots_per_block(&self) -> u32 {
        if self.tails() == (false, false) { self.slots_per_bucket } else { self.slots_per_bucket.max(SLOTS_PER_BLOCK) }
    }

    fn block_bytes(&self) -> usize {
        (self.slots_per_block() * self.slot_words * 4) as usize
    }

    /// Bytes of `buckets` buckets.
    pub(super) fn bytes(&self, buckets: u64) -> u64 {
        let buckets_per_block = self.slots_per_block() / self.slots_per_bucket;
        buckets.div_ceil(u64::from(buckets_per_block)) * self.block_bytes() as u64
    }

    /// Number of the EMPTY pattern of a slot.
    fn empty_class(&self, bucket: u64, index: u32) -> u32 {
        let mut mixed = (bucket as u32).wrapping_mul(0x9E37_79B1);
        mixed = (mixed ^ mixed >> 15).wrapping_mul(0x85EB_CA77);
        ((mixed >> 16) + index) & (self.empty_classes - 1)
    }

    /// Offsets and lengths of the chunks of a slot of a block, in the order of the vector's words.
    fn chunks(&self, slot: u32) -> impl Iterator<Item = (usize, usize)> {
        let (main, block, chunk) = (self.main_bytes(), self.slots_per_block(), self.chunk_bytes);
        let (tail8, tail4) = self.tails();
        let (tail8_at, tail4_at) = (block * main, block * main + if tail8 { block * 8 } else { 0 });
        let mains = (0..main / chunk).map(move |number| (slot * main + number * chunk, chunk));
        let tails = [(tail8, tail8_at + slot * 8, 8), (tail4, tail4_at + slot * 4, 4)];
        let tails = tails.into_iter().filter(|(is_there, ..)| *is_there).map(|(_, at, bytes)| (at, bytes));
        mains.chain(tails).map(|(at, bytes)| (at as usize, bytes as usize))
    }
}

#[cfg(all(test, feature = "cpu"))]
impl SlotLayout {
    /// Layout of slots for vectors of `width` words on a GPU with compare-and-swaps of `chunk_bytes` bytes, as
    /// cuda/warpset/core/layout.cuh and `Spec::bucket` define it.
    pub(super) fn test(chunk_bytes: u32, slot_words: u32, width: u32, largest: u32) -> Self {
        let layout = Self { chunk_bytes, slot_words, slots_per_bucket: 1, empty_classes: 0 };
        let line = if width <= 2 && largest == 16 { 32 } else { 64 };
        let (tail8, tail4) = layout.tails();
        let chunks = layout.main_bytes() / chunk_bytes + u32::from(tail8) + u32::from(tail4);
        let slots = (line / layout.main_bytes()).max(1);
        let slots_per_bucket = 1 << slots.ilog2();
        Self { slots_per_bucket, empty_classes: (chunks + 1).next_power_of_two(), ..layout }
    }

    /// Offsets of the chunks of a slot in the memory of a table, and the EMPTY pattern of each.
    pub(super) fn places(&self, slot: u64, empty: [u32; 4]) -> Vec<(usize, Vec<u8>)> {
        let (block, in_block) = (slot / u64::from(self.slots_per_block()), (slot % u64::from(self.slots_per_block())) as u32);
        let per_bucket = u64::from(self.slots_per_bucket);
        let mut pattern = empty;
        pattern[0] ^= self.empty_class(slot / per_bucket, (slot % per_bucket) as u32);
        let start = block as usize * self.block_bytes();
        let pattern: &[u8] = bytemuck::bytes_of(&pattern);
        self.chunks(in_block).map(|(at, bytes)| (start + at, pattern[..bytes].to_vec())).collect()
    }
}

/// Reads vectors from slots that arrive piece by piece.
pub(super) struct Vectors {
    layout: SlotLayout,
    width: usize,
    buckets: u64,
    empty: [u32; 4],
    /// First slot of the next block.
    next_slot: u64,
    /// Bytes of an incomplete block.
    begun: Vec<u8>,
}

impl Vectors {
    /// Reader of slots for vectors of `width` words.
    pub(super) fn new(layout: SlotLayout, width: usize, buckets: u64, empty: [u32; 4]) -> Self {
        Self { layout, width, buckets, empty, next_slot: 0, begun: Vec::new() }
    }

    /// Takes the next bytes, and appends the words of vectors that they complete.
    pub(super) fn take(&mut self, mut bytes: &[u8], words: &mut Vec<u32>) {
        let block_bytes = self.layout.block_bytes();
        if !self.begun.is_empty() {
            let missing = (block_bytes - self.begun.len()).min(bytes.len());
            self.begun.extend(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.begun.len() == block_bytes {
                let block = std::mem::take(&mut self.begun);
                self.take_block(&block, words);
            }
        }
        let blocks = bytes.chunks_exact(block_bytes);
        self.begun.extend(blocks.remainder());
        blocks.for_each(|block| self.take_block(block, words));
    }

    fn take_block(&mut self, block: &[u8], words: &mut Vec<u32>) {
        let layout = self.layout;
        let per_bucket = u64::from(layout.slots_per_bucket);
        for in_block in 0..layout.slots_per_block() {
            let slot = self.next_slot + u64::from(in_block);
            if slot >= self.buckets * per_bucket {
                break; // slots that pad the last block
            }
            let class = layout.empty_class(slot / per_bucket, (slot % per_bucket) as u32);
            let mut pattern = self.empty;
            pattern[0] ^= class;
            let (first, pattern) = (words.len(), bytemuck::bytes_of(&pattern));
            let mut is_complete = true;
            for (at, bytes) in layout.chunks(in_block) {
                let chunk = &block[at..at + bytes];
                is_complete &= *chunk != pattern[..bytes];
                words.extend(chunk.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])));
            }
            // The words that pad a slot come after those of the vector.
            words.truncate(if is_complete { first + self.width } else { first });
        }
        self.next_slot += u64::from(layout.slots_per_block());
    }
}
