//! Specification of a table: its kind, its width, and the constants that its kernels are compiled for.

use super::strategy::Strategy;
use std::fmt;

/// Storage of vectors, with the properties that the kernels need besides the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(crate) enum StorageKind {
    /// Whole vectors, in slots of `slot_words` words. This is more than the width if slots are padded
    /// (cuda/warpset/core/layout.cuh).
    Bucket { slot_words: u32 },
    /// Trees, whose roots are vectors of two words in a bucket table.
    Tree { strategy: Strategy },
    /// Keys. A slot holds the part of the key that its bucket does not imply. If `cuckoo`, keys may be relocated to fill the
    /// table further.
    Compact { keys: Quotiented, cuckoo: bool },
    /// Trees, whose roots are keys of a compact table.
    CompactTree { roots: Quotiented },
    /// Rows in discovery order, with an index of `slot_bits`-bit slots (indexed/table.cuh).
    Indexed { slot_bits: u32 },
}

/// Keys of `key_bits` bits in slots of `slot_bits` bits: quotienting (compact/table.cuh) needs fewer bits than the key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(crate) struct Quotiented {
    pub key_bits: u32,
    pub slot_bits: u32,
}

/// Specification that a table's kernels are compiled for.
///
/// Chosen by [`TableBuilder`](crate::TableBuilder) from the width and the device; shown in errors and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Spec {
    pub(crate) kind: StorageKind,
    pub(crate) width: u32,
    pub(crate) chunk_bytes: u32,
    pub(crate) line_bytes: u32,
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
        matches!(self.kind, StorageKind::Indexed { .. })
    }

    /// Bits of a slot of the index of an indexed table; 0 for other tables.
    pub const fn index_slot_bits(&self) -> u32 {
        match self.kind {
            StorageKind::Indexed { slot_bits } => slot_bits,
            _ => 0,
        }
    }

    /// Whether vectors are stored as trees.
    pub const fn is_tree(&self) -> bool {
        matches!(self.kind, StorageKind::Tree { .. } | StorageKind::CompactTree { .. })
    }

    /// Strategy by which the kernels of a tree table build trees; the default for other tables.
    pub const fn strategy(&self) -> Strategy {
        match self.kind {
            StorageKind::Tree { strategy } => strategy,
            _ => Strategy::DEFAULT,
        }
    }

    /// Whether slots hold only the part of keys, or of roots, that their buckets do not imply.
    pub const fn is_compact(&self) -> bool {
        matches!(self.kind, StorageKind::Compact { .. } | StorageKind::CompactTree { .. })
    }

    /// Whether keys may be relocated: see [`cuckoo`](crate::TableBuilder::cuckoo).
    pub const fn is_cuckoo(&self) -> bool {
        matches!(self.kind, StorageKind::Compact { cuckoo: true, .. })
    }

    /// Keys of a compact table, or roots of a tree table with compact roots.
    pub(super) const fn quotiented(&self) -> Option<Quotiented> {
        match self.kind {
            StorageKind::Compact { keys, .. } | StorageKind::CompactTree { roots: keys } => Some(keys),
            StorageKind::Bucket { .. } | StorageKind::Tree { .. } | StorageKind::Indexed { .. } => None,
        }
    }

    /// Bits of a key of a compact table, or of a root of a tree table with compact roots, and bits of a slot.
    pub const fn key_and_slot_bits(&self) -> Option<(u32, u32)> {
        match self.quotiented() {
            Some(Quotiented { key_bits, slot_bits }) => Some((key_bits, slot_bits)),
            None => None,
        }
    }

    /// Number of hashed words: those of a vector, or of the root pair in a tree table.
    pub(crate) const fn hashed_words(&self) -> u32 {
        if self.is_tree() { Self::ROOT_WORDS as u32 } else { self.width }
    }

    /// Words of a slot of a bucket table: the width, or more if slots are padded
    /// ([`TableBuilder::dense`](crate::TableBuilder::dense)). For other tables, the words of a vector or root pair.
    pub const fn slot_words(&self) -> usize {
        match self.kind {
            StorageKind::Bucket { slot_words } => slot_words as usize,
            _ => self.hashed_words() as usize,
        }
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
        let Self { kind, width, chunk_bytes, line_bytes } = self;
        match kind {
            StorageKind::Bucket { slot_words } => {
                write!(f, "bucket table of {width}-word vectors, chunks of {chunk_bytes} bytes, lines of {line_bytes}")?;
                if slot_words == width { Ok(()) } else { write!(f, ", slots of {slot_words} words") }
            }
            StorageKind::Tree { strategy } => {
                write!(f, "tree table of {width}-word vectors, chunks of {chunk_bytes} bytes, lines of {line_bytes}")?;
                if *strategy == Strategy::DEFAULT { Ok(()) } else { write!(f, ", made by {strategy}") }
            }
            StorageKind::Compact { keys: Quotiented { key_bits, slot_bits }, cuckoo } => {
                let cuckoo = if *cuckoo { "cuckoo " } else { "" };
                write!(f, "compact {cuckoo}table of {key_bits}-bit keys in slots of {slot_bits} bits")
            }
            StorageKind::CompactTree { roots: Quotiented { key_bits, slot_bits } } => {
                write!(f, "tree table of {width}-word vectors, {key_bits}-bit roots in slots of {slot_bits} bits")
            }
            StorageKind::Indexed { slot_bits } => {
                write!(f, "indexed table of {width}-word vectors, an index with slots of {slot_bits} bits")
            }
        }
    }
}
