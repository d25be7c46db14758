//! The parent of each state (the state from which it was found), by row number in an indexed table: 4 bytes for each row, or 5
//! from 2^32 rows on. A path is then a walk from state to parent, without another exploration. This path is a shortest one,
//! because a parent is in the level before its child and is never replaced.
//!
//! This module serves the engine of threads: pieces report which states are new, and the thread that collects the pieces stores
//! their parents. The library's `Values` would be no alternative, because they search the index for each row above a hole, and
//! batches of several threads leave holes. On a GPU the kernel writes such an array (gpu/by_rows.rs).

use crate::exploration::Found;
use anyhow::{Context, Result};
use warpset::{Reference, Storage, VectorTable};

#[derive(Debug, Default)]
pub struct Parents {
    /// By row, the low 32 bits of 1 + the parent's row number; 0 if the parent is not known. The initial state is its own parent.
    low: Vec<u32>,
    /// By row, bits 32 to 39 of the same numbers. Ends after the last row for which any of these bits is set.
    above: Vec<u8>,
    /// Whether parents were dropped because there was no memory for all of them.
    is_lost: bool,
    /// Whether the user asked for parents. If so, and `--memory` is not enough for parents, the search ends instead of continuing
    /// without them.
    are_wanted: bool,
}

impl Parents {
    pub fn new(are_wanted: bool) -> Self {
        Self { are_wanted, ..Self::default() }
    }

    /// Drops all parents and frees their memory. Returns false if there are none, or if the user asked for them.
    pub fn drop_parents(&mut self) -> bool {
        let drop_parents = !self.are_wanted && !self.is_lost;
        if drop_parents {
            *self = Self { is_lost: true, ..Self::default() };
        }
        drop_parents
    }

    /// Stores the parents of new states; the initial state is its own parent. If there is no memory for them, drops all parents.
    /// A path is then found without parents.
    pub fn add(&mut self, new: impl Iterator<Item = (Reference, u64)>) {
        for (state, parent) in new {
            let fits = !self.is_lost && self.set(state.slot() as usize, parent + 1);
            if !fits {
                *self = Self { is_lost: true, ..Self::default() };
                return;
            }
        }
    }

    fn set(&mut self, row: usize, next: u64) -> bool {
        let (low, above) = (next as u32, (next >> 32) as u8);
        let fits = put(&mut self.low, row, low) && (above == 0 || put(&mut self.above, row, above));
        debug_assert!(next >> 40 == 0, "rows have numbers of 40 bits");
        fits
    }

    fn parent(&self, row: u64) -> Option<u64> {
        let low = *self.low.get(row as usize)?;
        let above = self.above.get(row as usize).copied().unwrap_or(0);
        (u64::from(low) | u64::from(above) << 32).checked_sub(1)
    }

    pub fn bytes(&self) -> u64 {
        (self.low.capacity() * size_of::<u32>() + self.above.capacity()) as u64
    }

    /// Returns the states of a shortest path to `found`. `None` if the parents were dropped.
    pub fn path<S: Storage>(&self, table: &VectorTable<S>, found: &Found) -> Result<Option<Vec<Vec<u32>>>> {
        if self.is_lost {
            return Ok(None);
        }
        let mut references = table.locate_many(&found.state)?;
        for _ in 0..found.level {
            let before = references.last().copied().flatten().and_then(|of| self.parent(of.slot()));
            references.push(before.and_then(|row| table.reference(row)));
        }
        let references: Option<Vec<Reference>> = references.into_iter().rev().collect();
        let references = references.context("a state has no stored parent: please report this as a bug")?;
        let words = table.get_many(&references)?;
        Ok(Some(words.chunks_exact(table.width()).map(<[u32]>::to_vec).collect()))
    }
}

/// Sets an element, and extends the list if necessary. If there is no memory, changes nothing and returns false.
fn put<T: Copy + Default>(list: &mut Vec<T>, at: usize, value: T) -> bool {
    if at >= list.len() {
        // Grow in steps of a quarter: if memory is short, doubling would waste up to half of it.
        let more = at + 1 - list.len();
        let fits = at < list.capacity()
            || list.try_reserve_exact(more.max(list.len() / 4)).is_ok()
            || list.try_reserve_exact(more).is_ok();
        if !fits {
            return false;
        }
        list.resize(at + 1, T::default());
    }
    list[at] = value;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_have_numbers_of_40_bits() {
        let mut parents = Parents::default();
        let all = [(0, 0), (1, u64::from(u32::MAX) - 1), (7, u64::from(u32::MAX)), (3, (1 << 40) - 2), (2, 1 << 33)];
        for (row, parent) in all {
            assert!(parents.set(row, parent + 1));
        }
        for (row, parent) in all {
            assert_eq!(parents.parent(row as u64), Some(parent));
        }
        assert_eq!([4, 5, 8, 1 << 50].map(|row| parents.parent(row)), [None; 4]);
    }
}
