//! Makes specs and strategies from numbers and names that users choose, with errors that say what is wrong with these.

use super::Spec;
use super::kind::Kind;
use super::limits::FEWEST_HALF_BITS;
use super::strategy::Strategy;
use crate::{Error, Result};
use std::str::FromStr;

fn out_of_range(what: &'static str, given: u32, least: u32, most: u32) -> Error {
    Error::OutOfRange { what, given: given.into(), least: least.into(), most: most.into() }
}

impl Spec {
    /// Spec of a bucket table for vectors of `width` words, on a machine whose largest compare-and-swap has `chunk_bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] unless 1 ≤ `width` ≤ [`MAX_WIDTH`](Self::MAX_WIDTH).
    pub(crate) fn bucket(width: usize, chunk_bytes: u32) -> Result<Self> {
        if !(1..=Self::MAX_WIDTH).contains(&width) {
            let given = width as u64;
            return Err(Error::OutOfRange { what: "words of a vector", given, least: 1, most: Self::MAX_WIDTH as u64 });
        }
        // Measured on an H200 (cuda/warpset/core/layout.cuh): 64 bytes are best, except that for one and two words it is worth
        // more to save half the registers.
        let line_bytes = if width <= 2 && chunk_bytes == 16 { 32 } else { 64 };
        let slot_words = if width >= 3 && chunk_bytes == 16 { width.next_multiple_of(4) } else { width } as u32;
        Ok(Self {
            kind: Kind::Bucket,
            width: width as u32,
            chunk_bytes,
            line_bytes,
            slot_words,
            key_bits: 0,
            slot_bits: 0,
            strategy: Strategy::DEFAULT,
            cuckoo: false,
        })
    }

    /// If slots are padded, returns the spec without padding.
    pub(crate) fn dense(self) -> Self {
        if self.kind == Kind::Bucket { Self { slot_words: self.width, ..self } } else { self }
    }

    /// Spec of a tree table. A vector of one or two words is its own root, so it is stored in a bucket table, whatever the
    /// strategy.
    ///
    /// # Errors
    ///
    /// As [`bucket`](Self::bucket).
    pub(crate) fn tree(width: usize, strategy: Strategy, chunk_bytes: u32) -> Result<Self> {
        let spec = Self::bucket(width, chunk_bytes)?;
        if width <= Self::ROOT_WORDS {
            return Ok(spec);
        }
        Ok(Self { kind: Kind::Tree, width: spec.width, strategy, ..Self::bucket(Self::ROOT_WORDS, chunk_bytes)? })
    }

    /// Spec of a compact table of keys, which are vectors of two words.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub(crate) fn compact(key_bits: u32, slot_bits: u32, cuckoo: bool, chunk_bytes: u32) -> Result<Self> {
        if !Self::KEY_BITS.contains(&key_bits) {
            let (least, most) = (Self::KEY_BITS.start(), Self::KEY_BITS.end());
            return Err(out_of_range("bits of a key", key_bits, *least, *most));
        }
        if ![16, 32, 64].contains(&slot_bits) {
            return Err(out_of_range("bits of a slot (16, 32 or 64)", slot_bits, 16, 64));
        }
        let roots = Self::bucket(Self::ROOT_WORDS, chunk_bytes)?;
        Ok(Self { kind: Kind::Root, line_bytes: Self::COMPACT_LINE_BYTES, key_bits, slot_bits, cuckoo, ..roots })
    }

    /// Spec of a tree table whose roots are in a compact table. Vectors of one or two words are stored as in
    /// [`tree`](Self::tree).
    ///
    /// # Errors
    ///
    /// As [`bucket`](Self::bucket) and [`compact`](Self::compact).
    pub(crate) fn compact_tree(width: usize, key_bits: u32, slot_bits: u32, chunk_bytes: u32) -> Result<Self> {
        let spec = Self::bucket(width, chunk_bytes)?;
        let roots = Self::compact(key_bits, slot_bits, false, chunk_bytes)?;
        if width <= Self::ROOT_WORDS {
            return Ok(spec);
        }
        Ok(Self { kind: Kind::CompactTree, width: spec.width, ..roots })
    }

    /// Spec of an indexed table: vectors as rows, with an index whose slots have `slot_bits` bits: 32 or 64.
    ///
    /// # Errors
    ///
    /// As [`bucket`](Self::bucket).
    pub(crate) fn indexed(width: usize, slot_bits: u32, chunk_bytes: u32) -> Result<Self> {
        let spec = Self::bucket(width, chunk_bytes)?.dense();
        Ok(Self { kind: Kind::Indexed, line_bytes: 32, slot_bits, ..spec })
    }

    /// Number of bits that can be set in the root pair of a tree of `width` words (at least three), if its references address
    /// `nodes` slots, and the last word of a vector has `last_bits` bits.
    pub(crate) fn root_bits(width: usize, nodes: u64, last_bits: u32) -> u32 {
        let reference = Self::reference_bits(nodes);
        reference + if Self::ends_in_word(width) { last_bits } else { reference }
    }

    /// Bits of a reference in a root, if references address `nodes` slots.
    pub(crate) fn reference_bits(nodes: u64) -> u32 {
        // The number after the last slot is also a reference, and keys have at least 20 bits.
        (u64::BITS - nodes.leading_zeros()).max(FEWEST_HALF_BITS)
    }

    /// Whether the right half of the root of a tree of `width` words is the vector's last word. This is so for 2^n + 1 words. In
    /// other trees the right half is a reference.
    pub(crate) fn ends_in_word(width: usize) -> bool {
        width > Self::ROOT_WORDS && (width - 1).is_power_of_two()
    }
}

impl FromStr for Strategy {
    type Err = Error;

    /// Returns the strategy of this name. The case of letters does not matter.
    ///
    /// # Errors
    ///
    /// [`UnknownName`](Error::UnknownName).
    fn from_str(name: &str) -> Result<Self> {
        let found = Self::NAMED.into_iter().find(|(named, _)| named.eq_ignore_ascii_case(name));
        let known = || Self::ALL.map(|strategy| strategy.to_string()).join(", ");
        found.map(|(_, strategy)| strategy).ok_or_else(|| Error::UnknownName {
            what: "strategy",
            name: name.into(),
            known: known(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_checked() {
        assert!(Spec::bucket(0, 16).is_err());
        assert!(Spec::bucket(257, 16).is_err());
        assert!(Spec::bucket(256, 8).is_ok());
    }

    #[test]
    fn narrow_trees_are_bucket_tables() {
        for width in [1, 2] {
            let bucket = Spec::bucket(width, 16).unwrap();
            assert_eq!(Spec::tree(width, Strategy::CLR64, 16).unwrap(), bucket);
            assert_eq!(Spec::compact_tree(width, 40, 32, 16).unwrap(), bucket);
        }
        assert!(Spec::tree(3, Strategy::CLR64, 16).unwrap().is_tree());
    }
}
