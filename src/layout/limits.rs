//! Limits that errors name.

use super::Reference;

/// Slots of a table at most: references number them by 40 bits, and rounding up makes them a few more.
pub(crate) const MAX_CAPACITY: u64 = (1 << Reference::SLOT_BITS) - (1 << 16);

/// Threads of a CPU device at most.
pub(crate) const MAX_THREADS: usize = 1024;
