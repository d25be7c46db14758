use crate::raw::view::Geometry;
use crate::{Error, Result, Strategy, compact};
use std::fmt;

/// What a table's kernels are compiled for.
///
/// Chosen by [`TableBuilder`](crate::TableBuilder) from the width and the device; shown in errors and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Spec {
    /// Vectors are trees, with the roots in a bucket table of two words or in a compact table.
    pub(crate) tree: bool,
    /// How their kernels make trees.
    pub(crate) strategy: Strategy,
    pub(crate) width: u32,
    pub(crate) chunk_bytes: u32,
    pub(crate) line_bytes: u32,
    /// Of a compact table, or of a tree's compact roots; else 0.
    pub(crate) key_bits: u32,
    /// As `key_bits`.
    pub(crate) slot_bits: u32,
    /// Of a compact table: its keys may be moved, to fill it further.
    pub(crate) cuckoo: bool,
}

impl Spec {
    /// The widest vector, in words.
    pub const MAX_WIDTH: usize = 256;

    /// The bits that keys of compact tables may have.
    pub const KEY_BITS: std::ops::RangeInclusive<u32> = 20..=64;

    /// The spec for vectors of `width` words on a machine whose largest compare-and-swap is `chunk_bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::Width`] unless 1 ≤ `width` ≤ [`MAX_WIDTH`](Self::MAX_WIDTH).
    pub(crate) fn new(width: usize, chunk_bytes: u32) -> Result<Self> {
        if !(1..=Self::MAX_WIDTH).contains(&width) {
            return Err(Error::Width { width });
        }
        // Measured on an H200 (cuda/warpset/core/layout.cuh): 64 bytes, but for one and two words half the registers are worth more.
        let line_bytes = if width <= 2 && chunk_bytes == 16 { 32 } else { 64 };
        let (tree, strategy) = (false, Strategy::Default);
        Ok(Self { tree, strategy, width: width as u32, chunk_bytes, line_bytes, key_bits: 0, slot_bits: 0, cuckoo: false })
    }

    /// The spec of a compact table of keys, which are vectors of two words.
    ///
    /// # Errors
    ///
    /// [`Error::KeyBits`], [`Error::SlotBits`].
    pub(crate) fn of_keys(key_bits: u32, slot_bits: u32, chunk_bytes: u32) -> Result<Self> {
        if !Self::KEY_BITS.contains(&key_bits) {
            return Err(Error::KeyBits { key_bits });
        }
        if ![16, 32, 64].contains(&slot_bits) {
            return Err(Error::SlotBits { slot_bits });
        }
        Ok(Self { key_bits, slot_bits, line_bytes: 64, ..Self::new(2, chunk_bytes)? })
    }

    /// The spec of a tree table. Vectors of one or two words are their own roots: theirs is a bucket table, whatever the strategy.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub(crate) fn of_tree(width: usize, strategy: Strategy, chunk_bytes: u32) -> Result<Self> {
        if width <= 2 {
            return Self::new(width, chunk_bytes);
        }
        let roots = Self::new(2, chunk_bytes)?;
        Ok(Self { tree: true, strategy, ..Self::new(width, chunk_bytes)?.with_lines_of(roots) })
    }

    /// The spec of a tree table whose roots are keys of a compact table.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new) and [`of_keys`](Self::of_keys).
    pub(crate) fn of_compact_tree(width: usize, key_bits: u32, slot_bits: u32, chunk_bytes: u32) -> Result<Self> {
        let tree = Self::of_tree(width, Strategy::Default, chunk_bytes)?;
        let roots = Self::of_keys(key_bits, slot_bits, chunk_bytes)?;
        Ok(if tree.tree { Self { key_bits, slot_bits, ..tree.with_lines_of(roots) } } else { tree })
    }

    /// Bits of a root pair of a tree of `width` words, three or more, without those that no reference to one of `nodes` slots has.
    pub(crate) fn root_bits(width: usize, nodes: u64) -> u32 {
        // The number after the last slot is a reference too; and keys have 20 bits at least.
        let reference = (u64::BITS - nodes.leading_zeros()).max(10);
        // The right half is a reference, or (of 2^n + 1 words) the last word.
        if (width - 1).is_power_of_two() { reference + 32 } else { 2 * reference }
    }

    fn with_lines_of(self, roots: Self) -> Self {
        Self { line_bytes: roots.line_bytes, ..self }
    }

    /// Whether vectors are stored as trees.
    pub const fn is_tree(&self) -> bool {
        self.tree
    }

    /// How the kernels of a tree table make trees; of another, the default.
    pub const fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Whether the kernels gain by knowing what has changed (`Table::is_incremental` in tree/table.cuh).
    #[cfg(feature = "cuda")]
    pub(crate) fn is_incremental(&self) -> bool {
        self.tree && self.strategy.pairing() != crate::Pairing::Interleaved
    }

    /// Whether slots hold only what their places do not tell: of keys, or of the roots of trees.
    pub const fn is_compact(&self) -> bool {
        self.slot_bits != 0
    }

    /// Whether keys may be moved: see [`cuckoo`](crate::TableBuilder::cuckoo).
    pub const fn is_cuckoo(&self) -> bool {
        self.cuckoo
    }

    /// Bits a key of a compact table, or a root of a tree table with compact roots, and bits a slot.
    pub const fn key_and_slot_bits(&self) -> Option<(u32, u32)> {
        if self.is_compact() { Some((self.key_bits, self.slot_bits)) } else { None }
    }

    /// Words that a slot of the table holds: of a tree, its root pair.
    pub(crate) const fn slot_words(&self) -> u32 {
        if self.tree { 2 } else { self.width }
    }

    /// Of a compact table of so many buckets.
    pub(crate) fn layout(&self, buckets: u64) -> Option<compact::Layout> {
        let (key_bits, slot_bits) = self.key_and_slot_bits()?;
        compact::Layout::new(key_bits, slot_bits, buckets, self.cuckoo)
    }

    /// Slots of a table of so many buckets.
    pub(crate) fn slots(&self, geometry: &Geometry, buckets: u64) -> u64 {
        self.layout(buckets).map_or_else(|| geometry.slots(buckets), |layout| layout.slots())
    }

    /// Bytes of them.
    pub(crate) fn bytes(&self, geometry: &Geometry, buckets: u64) -> u64 {
        self.layout(buckets).map_or_else(|| geometry.bytes(buckets), |layout| layout.bytes())
    }

    /// Words a vector.
    pub const fn width(&self) -> usize {
        self.width as usize
    }

    /// Words of a mask with a bit for each word of a vector.
    pub(crate) const fn mask_words(&self) -> usize {
        self.width().div_ceil(32)
    }

    /// Bytes claimed by one compare-and-swap, at most: 16 from compute capability 9.0, else 8.
    pub const fn chunk_bytes(&self) -> usize {
        self.chunk_bytes as usize
    }

    /// Bytes looked at together, unless a vector is longer.
    pub const fn line_bytes(&self) -> usize {
        self.line_bytes as usize
    }

    /// The alignment that kernels expect of vectors in device memory, in bytes.
    #[cfg(feature = "cuda")]
    pub(crate) const fn vector_alignment(&self) -> u64 {
        1 << if self.width.is_multiple_of(4) { 4 } else { (self.width * 4).trailing_zeros() }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((key_bits, slot_bits)) = self.key_and_slot_bits() {
            let Self { tree, width, .. } = self;
            return match tree {
                true => write!(f, "tree table of {width}-word vectors, {key_bits}-bit roots in slots of {slot_bits} bits"),
                false if self.cuckoo => write!(f, "compact cuckoo table of {key_bits}-bit keys in slots of {slot_bits} bits"),
                false => write!(f, "compact table of {key_bits}-bit keys in slots of {slot_bits} bits"),
            };
        }
        let kind = if self.tree { "tree" } else { "bucket" };
        write!(
            f,
            "{kind} table of {}-word vectors, chunks of {} bytes, lines of {}",
            self.width, self.chunk_bytes, self.line_bytes
        )?;
        if self.strategy == Strategy::Default { Ok(()) } else { write!(f, ", made by {}", self.strategy) }
    }
}

/// The number of buckets for `slots` slots or more: a prime, so that a probe sequence visits every bucket (core/probe.cuh).
pub(crate) fn buckets_for(slots: u64, slots_per_bucket: u32) -> u64 {
    let mut buckets = slots.div_ceil(u64::from(slots_per_bucket)).max(2);
    while !is_prime(buckets) {
        buckets += 1;
    }
    buckets
}

/// Trial division: at most 2^18 divisions for the largest table that a terabyte of memory holds.
fn is_prime(n: u64) -> bool {
    n >= 2 && (2..).take_while(|divisor| divisor * divisor <= n).all(|divisor| !n.is_multiple_of(divisor))
}

/// Most buckets of a node table: a prime, so that references to its nodes, and two numbers that are none, fit 32 bits.
pub(crate) const MAX_NODE_BUCKETS: u64 = (1 << 31) - 1;

/// How many buckets a search looks at before it gives up; less than 2^15.
///
/// 32 log2(buckets), and never fewer than 1,024. With single-slot buckets at fill 0.95 a search fails to find a free slot with
/// probability 0.95^limit: for 2^27 buckets 2^-66, so filling them to 0.95 rejects no vector (expected rejections 2^-39); at 0.97 it
/// is 2^-39 a vector. Buckets of several slots are fuller before they reject. A table of up to 1,024 buckets is searched
/// completely, so it can be filled to its last slot.
pub(crate) fn probe_limit(buckets: u64) -> u32 {
    let log2 = u64::from(u64::BITS - buckets.leading_zeros());
    (32 * log2).max(1024).min(buckets) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_the_next_prime() {
        for (slots, per_bucket, buckets) in
            [(1, 1, 2), (8, 4, 2), (9, 4, 3), (1000, 8, 127), (7920, 1, 7927), (1 << 20, 2, 524_309)]
        {
            assert_eq!(buckets_for(slots, per_bucket), buckets, "{slots} slots");
            assert_eq!(buckets_for(buckets * u64::from(per_bucket), per_bucket), buckets, "idempotent");
        }
        // More than 2^32 buckets.
        assert_eq!(buckets_for((1 << 32) + 1, 1), (1 << 32) + 15);
    }

    #[test]
    fn small_tables_are_searched_completely() {
        for buckets in [2, 3, 127, 1021] {
            assert_eq!(u64::from(probe_limit(buckets)), buckets);
        }
        assert_eq!(probe_limit(1_000_003), 1024);
        assert_eq!(probe_limit(1 << 36), 32 * 37);
    }

    #[test]
    fn widths_are_checked() {
        assert!(Spec::new(0, 16).is_err());
        assert!(Spec::new(257, 16).is_err());
        assert!(Spec::new(256, 8).is_ok());
    }
}
