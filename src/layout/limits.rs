//! Limits that error messages mention.

use super::Reference;

/// Largest number of slots of a table: references number them by 40 bits, and rounding up adds a few more.
pub(crate) const MAX_CAPACITY: u64 = (1 << Reference::SLOT_BITS) - (1 << 16);

/// Largest number of threads of a CPU device.
pub(crate) const MAX_THREADS: usize = 1024;
