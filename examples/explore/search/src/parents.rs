//! What each state was found from, by the number of its row in an indexed table: 4 bytes a row, or 5 from 2^32 rows on. A path is
//! then a walk from state to state, without another exploration; a shortest one, as a state is found from one of the level before
//! its own, and that is never changed.
//!
//! This is for threads, whose pieces tell which states are new; the thread that collects the pieces notes them. (The library's
//! `by_reference` looks at the index for each row behind a hole, and batches of several threads leave holes. On a GPU, where the
//! kernel writes them, they are such an array: gpu/by_rows.rs.)

use crate::exploration::Found;
use anyhow::{Context, Result};
use warpset::{Reference, Storage, VectorTable};

#[derive(Debug, Default)]
pub struct Parents {
    /// By row, the low 32 bits of one more than its parent's number, or than its own; 0: nothing is known.
    low: Vec<u32>,
    /// The bits above these, as far as any are set.
    above: Vec<u8>,
    /// There was no memory for all.
    is_lost: bool,
    /// They were asked for: a search whose `--memory` is not enough for them ends, instead of going on without.
    are_wanted: bool,
}

impl Parents {
    pub fn new(are_wanted: bool) -> Self {
        Self { are_wanted, ..Self::default() }
    }

    /// Forgets all, and gives the memory back. False if there is nothing to forget, or it was asked for.
    pub fn give_way(&mut self) -> bool {
        let gives_way = !self.are_wanted && !self.is_lost;
        if gives_way {
            *self = Self { is_lost: true, ..Self::default() };
        }
        gives_way
    }

    /// Notes what new states were found from; the initial state from itself. If there is no memory for that, all is forgotten: a
    /// path then is found as without parents.
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

    /// The states of a shortest path to what was found. None if there was no memory for parents.
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
        let references = references.context("it is not known what a state was found from: please report this as a bug")?;
        let words = table.get_many(&references)?;
        Ok(Some(words.chunks_exact(table.width()).map(<[u32]>::to_vec).collect()))
    }
}

/// Sets an element, behind the last one too. False, and nothing is changed, if there is no memory for it.
fn put<T: Copy + Default>(list: &mut Vec<T>, at: usize, value: T) -> bool {
    if at >= list.len() {
        // In steps of a quarter: of memory that is short there is not to be twice as much as is used.
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
