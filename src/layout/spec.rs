//! Specification of a table: its kind, its width, and the constants that its kernels are compiled for.

use super::kind::Kind;
use super::strategy::Strategy;
use std::fmt;

/// Specification that a table's kernels are compiled for.
///
/// Chosen by [`TableBuilder`](crate::TableBuilder) from the width and the device; shown in errors and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Spec {
    pub(crate) kind: Kind,
    pub(crate) width: u32,
    pub(crate) chunk_bytes: u32,
    pub(crate) line_bytes: u32,
    /// Words of a slot: more than the width if the slots of a bucket table are padded (cuda/warpset/core/layout.cuh).
    pub(crate) slot_words: u32,
    /// Bits of keys, or of compact roots; 0 if there are none. Quotienting (compact/table.cuh) needs slots of fewer bits than a
    /// key has.
    pub(crate) key_bits: u32,
    /// Bits of a slot of a compact table, or of an index; 0 for other tables.
    pub(crate) slot_bits: u32,
    /// The default strategy, unless a table of the kind `Tree` has another one.
    pub(crate) strategy: Strategy,
    /// Whether keys of a root table may be relocated to fill the table further.
    pub(crate) cuckoo: bool,
}

impl Spec {
    /// Largest width of a vector, in words.
    pub const MAX_WIDTH: usize = 256;

    /// Supported numbers of bits of keys of compact tables.
    pub const KEY_BITS: std::ops::RangeInclusive<u32> = 20..=64;

    /// Words of the root of a tree, and of a key of a compact table.
    pub(crate) const ROOT_WORDS: usize = 2;

    /// Bytes of a bucket of a compact table, which are looked at together.
    pub(super) const COMPACT_LINE_BYTES: u32 = 64;

    /// Whether vectors are rows in discovery order, and references are their numbers.
    pub const fn is_indexed(&self) -> bool {
        matches!(self.kind, Kind::Indexed)
    }

    /// Bits of a slot of the index of an indexed table; 0 for other tables.
    pub const fn index_slot_bits(&self) -> u32 {
        if self.is_indexed() { self.slot_bits } else { 0 }
    }

    /// Whether vectors are stored as trees.
    pub const fn is_tree(&self) -> bool {
        self.kind.has_nodes()
    }

    /// Strategy by which the kernels of a tree table build trees; the default for other tables.
    pub const fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Whether slots hold only the part of keys, or of roots, that their buckets do not imply.
    pub const fn is_compact(&self) -> bool {
        self.kind.is_compact()
    }

    /// Whether keys may be relocated: see [`cuckoo`](crate::TableBuilder::cuckoo).
    pub const fn is_cuckoo(&self) -> bool {
        self.cuckoo
    }

    /// Bits of a key of a compact table, or of a root of a tree table with compact roots, and bits of a slot.
    pub const fn key_and_slot_bits(&self) -> Option<(u32, u32)> {
        if self.is_compact() { Some((self.key_bits, self.slot_bits)) } else { None }
    }

    /// Spec of a tree table's root table.
    pub(crate) const fn of_roots(self) -> Self {
        Self { kind: self.kind.of_roots(), width: self.hashed_words(), strategy: Strategy::DEFAULT, ..self }
    }

    /// Number of hashed words: those of a vector, or of the root pair in a tree table.
    pub(crate) const fn hashed_words(&self) -> u32 {
        if self.is_tree() { Self::ROOT_WORDS as u32 } else { self.width }
    }

    /// Words of a slot of a bucket table: the width, or more if slots are padded
    /// ([`TableBuilder::dense`](crate::TableBuilder::dense)). For other tables, the words of a vector or root pair.
    pub const fn slot_words(&self) -> usize {
        self.slot_words as usize
    }

    /// Words per vector.
    pub const fn width(&self) -> usize {
        self.width as usize
    }

    /// Words of a mask with a bit for each word of a vector.
    pub(crate) const fn mask_words(&self) -> usize {
        self.width().div_ceil(32)
    }

    /// Largest number of bytes claimed by one compare-and-swap. 16 from compute capability 9.0 on; on x86-64 processors of Intel
    /// and AMD with AVX, 16 for roots, for 1 or 2 words, and for 17 or more; otherwise 8.
    pub const fn chunk_bytes(&self) -> usize {
        self.chunk_bytes as usize
    }

    /// Bytes looked at together, unless a vector is longer.
    pub const fn line_bytes(&self) -> usize {
        self.line_bytes as usize
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, width, chunk_bytes, line_bytes, slot_words, key_bits, slot_bits, strategy, cuckoo } = self;
        match kind {
            Kind::Bucket => {
                write!(f, "bucket table of {width}-word vectors, chunks of {chunk_bytes} bytes, lines of {line_bytes}")?;
                if slot_words == width { Ok(()) } else { write!(f, ", slots of {slot_words} words") }
            }
            Kind::Tree => {
                write!(f, "tree table of {width}-word vectors, chunks of {chunk_bytes} bytes, lines of {line_bytes}")?;
                if *strategy == Strategy::DEFAULT { Ok(()) } else { write!(f, ", made by {strategy}") }
            }
            Kind::Root => {
                let cuckoo = if *cuckoo { "cuckoo " } else { "" };
                write!(f, "compact {cuckoo}table of {key_bits}-bit keys in slots of {slot_bits} bits")
            }
            Kind::CompactTree => {
                write!(f, "tree table of {width}-word vectors, {key_bits}-bit roots in slots of {slot_bits} bits")
            }
            Kind::Indexed => {
                write!(f, "indexed table of {width}-word vectors, an index with slots of {slot_bits} bits")
            }
        }
    }
}
