//! The parent of each state (the state from which it was found), by row number in an indexed table: 4 bytes a row, or 5 from
//! 2^32 rows on. A parent is in the level before its child and is never replaced, so the parents tell the level of a state, and
//! a path needs no other exploration: of each level it takes the least state with a step to the state behind it (path.rs). Which
//! of several possible parents is stored depends on threads.
//!
//! Rows are nearly in the order of levels. The range of rows of each level is kept, too; where ranges overlap, parents decide.
//!
//! This module serves the engine of threads: pieces report which states are new, and the thread that collects the pieces stores
//! their parents. The library's `Values` would be no alternative, because they search the index for each row above a hole, and
//! batches of several threads leave holes. On a GPU the kernel writes such an array (gpu/by_rows.rs).

use crate::exploration::{Found, Limits};
use crate::predecessors::{PIECE, least_before};
use crate::successors::Successors;
use anyhow::{Context, Result};
use rayon::prelude::*;
use std::ops::Range;
use warpset::{Reference, Storage, VectorTable};

#[derive(Debug, Default)]
pub struct Parents {
    /// By row, the low 32 bits of 1 + the parent's row number; 0 if the parent is not known. The initial state is its own parent.
    low: Vec<u32>,
    /// By row, bits 32 to 39 of the same numbers. Ends after the last row for which any of these bits is set.
    above: Vec<u8>,
    /// By level, the rows from the first to the last one of its states.
    levels: Vec<Range<u64>>,
    /// Parents were dropped because there was no memory for all of them.
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

    /// Begins a level: states that are added from now on are in it.
    pub fn begin_level(&mut self) {
        if !self.is_lost {
            self.levels.push(Range { start: u64::MAX, end: 0 });
        }
    }

    /// Stores the parents of new states of the level; the initial state is its own parent. If there is no memory for them, all
    /// parents are dropped, and a path is found as without parents.
    pub fn add(&mut self, new: impl Iterator<Item = (Reference, u64)>) {
        for (state, parent) in new {
            let fits = !self.is_lost && self.set(state.slot() as usize, parent + 1);
            if !fits {
                *self = Self { is_lost: true, ..Self::default() };
                return;
            }
            if let Some(rows) = self.levels.last_mut() {
                *rows = rows.start.min(state.slot())..rows.end.max(state.slot() + 1);
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
        (self.low.capacity() * size_of::<u32>() + self.above.capacity() + self.levels.capacity() * size_of::<Range<u64>>()) as u64
    }

    /// The states of the path to `found`. `None` if the parents were dropped.
    pub fn path<S: Storage, X: Successors>(
        &self,
        table: &VectorTable<S>,
        source: &X,
        found: &Found,
        limits: Limits,
    ) -> Result<Option<Vec<Vec<u32>>>> {
        if self.is_lost {
            return Ok(None);
        }
        let last = self.last_of_levels();
        let mut states = vec![found.state.clone()];
        for level in (0..found.level as usize).rev() {
            let state = &states[states.len() - 1];
            let Range { start, end } = self.levels[level];
            let piece = |memory: &mut _, first: u64| {
                let rows = (first..end.min(first + PIECE as u64)).filter(|row| self.parent(*row).is_some());
                let references: Vec<Reference> = rows.filter_map(|row| table.reference(row)).collect();
                least_before(table, source, &references, state, limits, memory, |of| self.is_in(level, of.slot(), &last))
            };
            let pieces: Vec<u64> = (start..end).step_by(PIECE).collect();
            let least = pieces.into_par_iter().map_init(Default::default, piece);
            let before = least.try_reduce(|| None, |one, other| Ok(one.into_iter().chain(other).min()))?;
            states.push(before.context("a state has no predecessor in the level before its own: please report this as a bug")?);
        }
        states.reverse();
        Ok(Some(states))
    }

    /// By level, the row before which no state is of a higher level.
    fn last_of_levels(&self) -> Vec<u64> {
        let mut last = vec![u64::MAX; self.levels.len()];
        for level in (1..last.len()).rev() {
            last[level - 1] = last[level].min(self.levels[level].start);
        }
        last
    }

    /// Whether a state that is in no lower level is in this one. `last`: as `last_of_levels` returns it.
    fn is_in(&self, mut level: usize, mut row: u64, last: &[u64]) -> bool {
        while self.levels[level].contains(&row) {
            match self.parent(row) {
                _ if level == 0 || row < last[level] => return true,
                Some(parent) => (row, level) = (parent, level - 1),
                None => return false,
            }
        }
        false
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
