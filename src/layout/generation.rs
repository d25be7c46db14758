//! Generations of a table: from one growth, clear or relocation to the next. A reference is of one of them.

use super::Reference;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A table has a new one after every growth, clear and relocation. It is never 0, and has 24 bits: those of a reference above the
/// slot's number.
///
/// Counted for all tables of the process, so that a reference of one table is stale in every other, too. Counting begins at a
/// random number: references may be kept in files, together with their table, and one process must not take those of another for
/// its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u64);

impl Generation {
    /// One that no table has had before (or not in the last 2^24 - 2 times).
    pub(crate) fn next() -> Self {
        static LAST: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(rand::random::<u32>().into()));
        const MOST: u64 = (1 << (u64::BITS - Reference::SLOT_BITS)) - 1;
        // Relaxed: only the uniqueness of numbers matters; a table hands its own over by its lock.
        Self(LAST.fetch_add(1, Ordering::Relaxed) % MOST + 1)
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// Part of a reference above the number of its slot.
    pub(crate) fn tag(self) -> u64 {
        self.0 << Reference::SLOT_BITS
    }

    /// The reference to a slot whose number fits.
    pub(crate) fn reference(self, slot: u64) -> Reference {
        debug_assert!(slot >> Reference::SLOT_BITS == 0);
        Reference::from_bits(self.tag() | slot).expect("a generation is not 0")
    }

    /// How many references are of other generations.
    pub(crate) fn stale(self, references: &[Reference]) -> u64 {
        references.iter().map(|reference| u64::from(reference.to_bits() >> Reference::SLOT_BITS != self.0)).sum()
    }
}
