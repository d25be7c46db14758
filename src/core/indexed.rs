//! The rows of an indexed table, as the host sees them: how many there are, and how holes among them are closed.

use super::generation::Generation;
use super::options::Parameters;
use super::table::{RawTable, Sized};
use super::view::RowMove;
use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Rows that there are besides those for slots: what lanes own meanwhile, and spares that found no cell.
const MORE_ROWS: u64 = 1 << 18;

/// What rows there are, when nothing else uses the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    /// Rows that are stored, of those that were given.
    pub stored: u64,
    pub given: u64,
    /// Numbers of those that are spare.
    pub spares: Vec<u64>,
}

/// How holes are closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Closing {
    /// From high to low.
    pub moves: Vec<RowMove>,
    /// Rows that are given, and holes among them that stay.
    pub given: u64,
    pub spares: Vec<u64>,
    /// Rows below are stored.
    pub dense: u64,
}

/// Rows that a table whose index has so many slots has memory for.
pub(crate) fn rows(slots: u64) -> u64 {
    slots + MORE_ROWS.min(slots.max(1 << 12))
}

impl RowCounts {
    /// How to close the holes: stored rows from the last one on, of those from `first` on, which nobody has a reference to, go to
    /// the lowest holes. None if there are holes that nobody knows, because a lane found no cell for its spare row, or was
    /// stopped.
    pub(crate) fn close(mut self, first: u64) -> Option<Closing> {
        let Self { stored, mut given, ref mut spares } = self;
        spares.sort_unstable();
        if stored + spares.len() as u64 != given {
            return None;
        }
        let (mut moves, mut holes) = (Vec::new(), 0);
        loop {
            if spares.len() > holes && spares.last() == Some(&(given - 1)) {
                spares.pop();
                given -= 1;
            } else if spares.len() > holes && given > first {
                moves.push(RowMove { from: given - 1, to: spares[holes] });
                holes += 1;
                given -= 1;
            } else {
                break;
            }
        }
        let spares = spares.split_off(holes);
        let dense = spares.first().copied().unwrap_or(given);
        Some(Closing { moves, given, spares, dense })
    }
}

impl Closing {
    /// Where the vector is now that was at this row.
    pub(crate) fn moved(&self, row: u64) -> u64 {
        // From high to low.
        let at = self.moves.binary_search_by(|moved| row.cmp(&moved.from));
        at.map_or(row, |at| self.moves[at].to)
    }
}

/// Who may have references to rows, besides those that got them from calls that have returned: calls under way, and kernels.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// That ever began.
    begun: AtomicU64,
    under_way: AtomicU64,
    /// A view was handed out, or a batch put on a stream: kernels may be at work at any time.
    has_kernels: AtomicBool,
}

/// A call that may get references to rows, or put rows.
pub(super) struct Call<'a> {
    calls: &'a Calls,
    /// If it was alone when it began: its number, and how many rows there were.
    alone: Option<(u64, u64)>,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.calls.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Calls {
    /// From now on kernels may have references.
    pub(crate) fn lend(&self) {
        self.has_kernels.store(true, Ordering::SeqCst);
    }
}

impl RawTable {
    /// Begins a call of an indexed table; none of others.
    pub(super) fn begin_call(&self) -> Result<Option<Call<'_>>> {
        let sized = self.sized();
        if !sized.spec.is_indexed() {
            return Ok(None);
        }
        // Sequentially consistent: of two calls that overlap, at least one must see the other. (Those that look at these numbers
        // hold the table's lock for writing, and so have met all that have returned.)
        let calls = &self.calls;
        let others = calls.under_way.fetch_add(1, Ordering::SeqCst);
        let number = calls.begun.fetch_add(1, Ordering::SeqCst);
        let mut call = Call { calls, alone: None };
        if others == 0 {
            call.alone = Some((number, sized.store.stored()?[1]));
        }
        Ok(Some(call))
    }

    /// Closes the holes among the rows, if since this call began no other one has, and no kernel can have.
    pub(super) fn close_holes(&self, call: Call<'_>) -> Result<Option<(Closing, Generation)>> {
        let Some((number, rows)) = call.alone else { return Ok(None) };
        let mut sized = self.sized_exclusively();
        if self.calls.begun.load(Ordering::SeqCst) != number + 1 || self.calls.has_kernels.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let Some(closing) = sized.store.row_counts()?.close(rows) else { return Ok(None) };
        sized.store.close_holes(&closing)?;
        Ok(Some((closing, sized.generation)))
    }

    /// Makes an index of the rows before `last`, of the size that `parameters` say. References stay what they are.
    pub(super) fn reindex(&self, sized: &mut Sized, parameters: &Parameters<'_>, last: u64) -> Result<()> {
        let counts = sized.store.reindex(parameters, last)?;
        if counts.full > 0 {
            let slots = parameters.slots();
            let (offered, stored) = (counts.offered, counts.hits);
            return Err(Error::TableFull { rejected: counts.full, for_nodes: 0, offered, stored, slots, cause: None });
        }
        (sized.spec, sized.buckets) = (parameters.spec, parameters.buckets);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(stored: u64, given: u64, spares: &[u64], first: u64) -> Option<Closing> {
        RowCounts { stored, given, spares: spares.to_vec() }.close(first)
    }

    #[test]
    fn holes_at_the_end_are_given_back() {
        let closing = close(5, 8, &[6, 5, 7], 0).unwrap();
        assert_eq!(closing, Closing { moves: vec![], given: 5, spares: vec![], dense: 5 });
    }

    #[test]
    fn the_last_rows_go_to_the_lowest_holes() {
        let closing = close(6, 9, &[7, 1, 4], 0).unwrap();
        assert_eq!(closing.moves, [RowMove { from: 8, to: 1 }, RowMove { from: 6, to: 4 }]);
        assert_eq!((closing.given, closing.dense, closing.spares.len()), (6, 6, 0));
        assert_eq!([8, 6, 5, 1].map(|row| closing.moved(row)), [1, 4, 5, 1]);
    }

    #[test]
    fn rows_that_others_know_stay() {
        // Of rows 0 to 9 those from 8 on may be moved.
        let closing = close(6, 10, &[1, 2, 3, 5], 8).unwrap();
        assert_eq!(closing.moves, [RowMove { from: 9, to: 1 }, RowMove { from: 8, to: 2 }]);
        assert_eq!(closing, Closing { given: 8, spares: vec![3, 5], dense: 3, ..closing.clone() });
    }

    #[test]
    fn holes_that_nobody_knows_stay() {
        assert_eq!(close(6, 10, &[1, 2, 3], 0), None);
    }

    #[test]
    fn nothing_is_done_without_holes() {
        assert_eq!(close(0, 0, &[], 0).unwrap(), Closing::default());
        assert_eq!(close(4, 4, &[], 0).unwrap(), Closing { given: 4, dense: 4, ..Closing::default() });
    }
}
