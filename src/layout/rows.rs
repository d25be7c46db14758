//! Rows of an indexed table: their number, and how holes among them are closed.

use super::Reference;
use super::view::RowMove;

/// Rows in addition to one per slot, for tables of any size. Each lane may hold one row that it turns out not to need (an H200
/// has 152,064 lanes at work), and a spare row may find no cell. Only rows that are taken get memory.
pub(crate) const MORE_ROWS: u64 = 1 << 18;

/// Counts of the rows, read when nothing else uses the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    /// Stored rows, among those that were given.
    pub stored: u64,
    pub given: u64,
    /// Numbers of the spare rows.
    pub spares: Vec<u64>,
}

/// Plan of closing the holes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HoleClosing {
    /// Moves, from high rows to low ones.
    pub moves: Vec<RowMove>,
    /// Number of rows that are given afterwards. `spares`: the holes that remain among them.
    pub given: u64,
    pub spares: Vec<u64>,
    /// All rows below this number are stored.
    pub dense: u64,
}

/// Number of rows of a table whose index has `slots` slots.
pub(crate) fn rows(slots: u64) -> u64 {
    slots + MORE_ROWS
}

/// Bits of an index slot that name a row, in a table of `rows` rows.
pub(crate) fn row_bits(rows: u64, slot_bits: u32) -> u32 {
    // The number of a row plus one is at most the number of rows.
    if slot_bits == 32 { u64::BITS - rows.leading_zeros() } else { Reference::SLOT_BITS }
}

impl RowCounts {
    /// Whether there are holes that are not spares: a lane found no cell for its spare row, or was stopped.
    pub(crate) fn has_lost_some(&self) -> bool {
        self.stored + self.spares.len() as u64 != self.given
    }

    /// Plans how the holes are closed. All holes must be listed as spares; returns `None` otherwise. Stored rows move to the
    /// lowest holes, beginning with the last row. Only rows from `first` on move, because no other caller has references to them.
    /// Holes before `first` are used only if `filled`.
    pub(crate) fn close(mut self, first: u64, filled: bool) -> Option<HoleClosing> {
        if self.has_lost_some() {
            return None;
        }
        let Self { mut given, ref mut spares, .. } = self;
        spares.sort_unstable();
        let left = if filled { 0 } else { spares.partition_point(|row| *row < first) };
        let (mut moves, mut holes) = (Vec::new(), left);
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
        spares.drain(left..holes);
        let spares = std::mem::take(spares);
        let dense = spares.first().copied().unwrap_or(given);
        Some(HoleClosing { moves, given, spares, dense })
    }
}

impl HoleClosing {
    /// Returns the row to which the vector at `row` has moved, or `row` if it has not moved.
    pub(crate) fn moved(&self, row: u64) -> u64 {
        // The moves are sorted from high to low.
        let at = self.moves.binary_search_by(|moved| row.cmp(&moved.from));
        at.map_or(row, |at| self.moves[at].to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(stored: u64, given: u64, spares: &[u64], first: u64) -> Option<HoleClosing> {
        RowCounts { stored, given, spares: spares.to_vec() }.close(first, true)
    }

    #[test]
    fn holes_at_the_end_are_given_back() {
        let closing = close(5, 8, &[6, 5, 7], 0).unwrap();
        assert_eq!(closing, HoleClosing { moves: vec![], given: 5, spares: vec![], dense: 5 });
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
        // Rows 8 and 9 of 0 to 9 may be moved.
        let closing = close(6, 10, &[1, 2, 3, 5], 8).unwrap();
        assert_eq!(closing.moves, [RowMove { from: 9, to: 1 }, RowMove { from: 8, to: 2 }]);
        assert_eq!(closing, HoleClosing { given: 8, spares: vec![3, 5], dense: 3, ..closing.clone() });
    }

    #[test]
    fn holes_of_earlier_calls_are_left_if_wanted() {
        let counts = RowCounts { stored: 6, given: 10, spares: vec![9, 7, 3, 1] };
        let closing = counts.close(6, false).unwrap();
        assert_eq!(closing, HoleClosing { moves: vec![RowMove { from: 8, to: 7 }], given: 8, spares: vec![1, 3], dense: 1 });
        let counts = RowCounts { stored: 3, given: 4, spares: vec![3] };
        assert_eq!(
            counts.close(4, false).unwrap(),
            HoleClosing { given: 4, spares: vec![3], dense: 3, ..HoleClosing::default() }
        );
    }

    #[test]
    fn holes_that_nobody_knows_stay() {
        assert_eq!(close(6, 10, &[1, 2, 3], 0), None);
    }

    #[test]
    fn nothing_is_done_without_holes() {
        assert_eq!(close(0, 0, &[], 0).unwrap(), HoleClosing::default());
        assert_eq!(close(4, 4, &[], 0).unwrap(), HoleClosing { given: 4, dense: 4, ..HoleClosing::default() });
    }
}
