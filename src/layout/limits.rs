//! Limits that error messages mention.

use super::Reference;

/// Largest number of slots of a table: references have 40 bits for the slot number, and rounding up adds a few more slots.
pub(crate) const MAX_CAPACITY: u64 = (1 << Reference::SLOT_BITS) - (1 << 16);

/// Largest number of threads of a CPU device.
pub(crate) const MAX_THREADS: usize = 1024;

/// Number of bits of the last word of vectors, unless the user sets it.
pub(crate) const LAST_BITS: u32 = 32;

/// A half of a root counts as at least this number of bits, because roots have 20 bits or more, in two halves.
pub(crate) const FEWEST_HALF_BITS: u32 = 10;
