//! Limits that error messages mention.

use super::Reference;

/// Largest number of slots of a table: references number them by 40 bits, and rounding up adds a few more.
pub(crate) const MAX_CAPACITY: u64 = (1 << Reference::SLOT_BITS) - (1 << 16);

/// Largest number of threads of a CPU device.
pub(crate) const MAX_THREADS: usize = 1024;

/// Bits of the last word of vectors, unless they are given.
pub(crate) const LAST_BITS: u32 = 32;

/// Fewest bits of the last word of vectors that count: roots have 20 bits or more, in two halves.
pub(crate) const FEWEST_HALF_BITS: u32 = 10;
