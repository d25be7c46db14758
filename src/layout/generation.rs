//! Generations of a table: a generation ends with a growth, a clear or a relocation. A reference belongs to one generation.

use super::Reference;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of a generation. A table gets a new one after every growth, clear and relocation. The number is never 0, and takes the
/// 24 bits of a reference above the slot number.
///
/// All tables of a process draw from one counter, so that a reference to one table is stale in every other. Counting begins at a
/// random number: references may be kept in files, together with their table, and a process must not mistake references of
/// another process for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u64);

impl Generation {
    /// Returns a generation that no table has had before, or at least none of the last 2^24 - 2 ones.
    pub(crate) fn next() -> Self {
        static LAST: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(rand::random::<u32>().into()));
        const MOST: u64 = (1 << (u64::BITS - Reference::SLOT_BITS)) - 1;
        // Relaxed: only the uniqueness of numbers matters. Threads get a table's generation under the table's lock.
        Self(LAST.fetch_add(1, Ordering::Relaxed) % MOST + 1)
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// The generation's bits in a reference, above the slot number.
    pub(crate) fn tag(self) -> u64 {
        self.0 << Reference::SLOT_BITS
    }

    /// Reference to a slot whose number fits.
    pub(crate) fn reference(self, slot: u64) -> Reference {
        debug_assert!(slot >> Reference::SLOT_BITS == 0);
        Reference::from_bits(self.tag() | slot).expect("a generation is not 0")
    }

    /// Number of references that belong to other generations.
    pub(crate) fn stale(self, references: &[Reference]) -> u64 {
        references.iter().map(|reference| u64::from(reference.to_bits() >> Reference::SLOT_BITS != self.0)).sum()
    }
}
