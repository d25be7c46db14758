//! Specification of a table: its kind, its width, and the constants that its kernels are compiled for.

use super::strategy::Strategy;
use std::fmt;

/// How vectors are stored, and what the kernels must know of it besides their width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(crate) enum StorageKind {
    /// Whole vectors, in slots of `slot_words` words. This is more than the width if slots are padded
    /// (cuda/warpset/core/layout.cuh).
    Bucket { slot_words: u32 },
    /// As trees, whose roots are vectors of two words in a bucket table.
    Tree { strategy: Strategy },
    /// Keys. A slot holds the part of the key that its bucket does not imply. If `cuckoo`, keys may be relocated to fill the
    /// table further.
    Compact { keys: Quotiented, cuckoo: bool },
    /// As trees, whose roots are keys of a compact table.
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
    /// The widest vector, in words.
    pub const MAX_WIDTH: usize = 256;

    /// The bits that keys of compact tables may have.
    pub const KEY_BITS: std::ops::RangeInclusive<u32> = 20..=64;

    /// Words of the root of a tree, and of a key of a compact table.
    pub(crate) const ROOT_WORDS: usize = 2;

    /// Bytes looked at together in a compact table: a bucket.
    pub(super) const COMPACT_LINE_BYTES: u32 = 64;

    /// Whether vectors are rows in the order in which they were found, and references their numbers.
    pub const fn is_indexed(&self) -> bool {
        matches!(self.kind, StorageKind::Indexed { .. })
    }

    /// Bits a slot of the index of an indexed table; 0 of other tables.
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

    /// How the kernels of a tree table make trees; the default for other tables.
    pub const fn strategy(&self) -> Strategy {
        match self.kind {
            StorageKind::Tree { strategy } => strategy,
            _ => Strategy::DEFAULT,
        }
    }

    /// Whether slots hold only what their buckets do not tell: of keys, or of the roots of trees.
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

    /// Bits a key of a compact table, or a root of a tree table with compact roots, and bits a slot.
    pub const fn key_and_slot_bits(&self) -> Option<(u32, u32)> {
        match self.quotiented() {
            Some(Quotiented { key_bits, slot_bits }) => Some((key_bits, slot_bits)),
            None => None,
        }
    }

    /// Words of a slot's vector that are hashed; those of its root pair in a tree table.
    pub(crate) const fn hashed_words(&self) -> u32 {
        if self.is_tree() { Self::ROOT_WORDS as u32 } else { self.width }
    }

    /// Words that a slot of a bucket table takes: as many as vectors have, or more, if slots are padded
    /// ([`TableBuilder::dense`](crate::TableBuilder::dense)). Of other tables, as many as vectors or root pairs have.
    pub const fn slot_words(&self) -> usize {
        match self.kind {
            StorageKind::Bucket { slot_words } => slot_words as usize,
            _ => self.hashed_words() as usize,
        }
    }

    /// Words a vector.
    pub const fn width(&self) -> usize {
        self.width as usize
    }

    /// Words of a mask with a bit for each word of a vector.
    pub(crate) const fn mask_words(&self) -> usize {
        self.width().div_ceil(32)
    }

    /// Bytes claimed by one compare-and-swap, at most: 16 from compute capability 9.0, and on x86-64 processors of Intel and AMD
    /// with AVX for roots, 1 or 2 words, and 17 or more; else 8.
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
