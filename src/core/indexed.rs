//! Rows of an indexed table as the host uses them: their number, and how holes among them are closed.

use super::calls::Call;
use super::lock::{Alone, SharedGuard};
use super::table::{FIND_OR_PUT, RawTable, TableState};
use crate::layout::generation::Generation;
use crate::layout::options::Parameters;
use crate::layout::rows::{HoleClosing, RowCounts};
use crate::{Error, Result};

impl RawTable {
    /// Begins a call of an indexed table; `None` for other tables. The caller holds the table shared until the call has its
    /// references.
    pub(super) fn begin_call(&self, sized: &TableState) -> Result<Option<Call<'_>>> {
        if !sized.spec.is_indexed() {
            return Ok(None);
        }
        // Sequentially consistent: of two calls that overlap, the later one sees the earlier one when it begins, and the earlier
        // one sees the later one when it ends. (Calls that read these numbers hold the table's lock for writing, so they come
        // after all calls that have returned.)
        let number = self.calls.begin();
        let mut call = Call { calls: &self.calls, alone: None };
        if let Some(number) = number {
            call.alone = Some((number, sized.store.stored()?[1]));
        }
        Ok(Some(call))
    }

    /// Closes the holes among the rows, unless other calls have overlapped with this one, or kernels may use the table. Holes of
    /// earlier calls are closed only if `filled`. Returns the rows that moved, and an error if there was one.
    pub(super) fn close_holes(&self, call: Call<'_>, filled: bool) -> (Option<(HoleClosing, Generation)>, Result<()>) {
        let (mut sized, closing) = match self.holes_to_close(&call, filled) {
            Ok(Some(found)) => found,
            nothing => return (None, nothing.map(drop)),
        };
        let (moved, closed) = sized.store.close_holes(&closing);
        if moved {
            // The row numbers from `closing.given` on are taken back. Their values belong to rows that have moved. Arrays see
            // this when the guard is dropped.
            self.arrays.keep(closing.given);
        }
        (moved.then(|| (closing, sized.generation)), closed)
    }

    fn holes_to_close(&self, call: &Call<'_>, filled: bool) -> Result<Option<(Alone<'_, TableState>, HoleClosing)>> {
        let Some((number, rows)) = call.alone else { return Ok(None) };
        // Another thread that has the table now (or this thread itself, if it holds the table's rows) may keep it for long. Do
        // not wait for it.
        let Some(mut sized) = self.try_sized_exclusively(FIND_OR_PUT) else { return Ok(None) };
        if !self.calls.is_last(number) || self.calls.may_have_kernels() {
            return Ok(None);
        }
        let mut counts = sized.store.row_counts()?;
        if counts.stored == counts.given {
            sized.store.set_dense(counts.given);
            return Ok(None);
        }
        if counts.has_lost_some() {
            counts.spares = sized.store.list_holes(sized.store.dense()..counts.given, counts.given - counts.stored)?.0;
        }
        Ok(counts.close(rows, filled).map(|closing| (sized, closing)))
    }

    /// Row numbers that no vector has, below the number of the last row, in increasing order.
    pub(crate) fn holes(&self) -> Result<Vec<u64>> {
        let sized = self.sized("holes")?;
        let RowCounts { stored, given, .. } = sized.store.row_counts()?;
        let mut capacity = given.saturating_sub(stored);
        loop {
            let (mut holes, count) = sized.store.list_holes(sized.store.dense()..given, capacity)?;
            if count <= capacity {
                holes.sort_unstable();
                return Ok(holes);
            }
            // Rows that are being put count as holes, too, so the list may be longer than expected.
            capacity = count;
        }
    }

    /// Returns the table, and the number of rows before the first hole. While the guard is held, the table does not grow and is
    /// not cleared, but rows may be added. Waits only for operations that have the table exclusively.
    pub(crate) fn with_dense_rows(&self, call: &'static str) -> Result<(SharedGuard<'_, TableState>, u64)> {
        // A batch that is under way must not move the rows that the caller gets.
        let _call = self.calls.overlap();
        if let Some(mut sized) = self.try_sized_exclusively(call) {
            // Store the number, so that it is not computed again.
            let rows = self.dense_rows_of(&sized, true)?;
            sized.store.set_dense(rows);
        }
        let sized = self.sized(call)?;
        let rows = self.dense_rows_of(&sized, false)?;
        Ok((sized, rows))
    }

    fn dense_rows_of(&self, sized: &TableState, exclusively: bool) -> Result<u64> {
        let dense = sized.store.dense();
        let RowCounts { stored, given, .. } = sized.store.row_counts()?;
        // While vectors are being put, two numbers that are not read at the same moment may agree by chance.
        let is_unchanging = exclusively && !self.calls.may_have_kernels();
        if dense == given || (is_unchanging && stored == given) {
            return Ok(given);
        }
        let (holes, _) = sized.store.list_holes(dense..given, given - dense)?;
        Ok(holes.into_iter().min().unwrap_or(given))
    }

    /// Builds an index of the rows before `last`, of the size given by `parameters`. References are unchanged.
    pub(super) fn reindex(&self, sized: &mut TableState, parameters: &Parameters<'_>, last: u64) -> Result<()> {
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

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use super::*;
    use crate::{Device, IndexedTable, Reference, Request};
    use std::sync::atomic::Ordering;

    /// A table whose rows 0, 1, 3, 4 are 0, 10, 30, 40, and the references to them. Row 2 is a hole that is not a spare.
    fn with_a_hole() -> (IndexedTable, Vec<Reference>) {
        let table = IndexedTable::builder(1).capacity(100).build(&Device::cpu_with_threads(1)).unwrap();
        let put = |words: &[u32]| table.find_or_put_many_with(words, Request::new().references(true)).unwrap().references;
        let mut references = put(&[0, 10]);
        assert_eq!(table.raw.look().store.lose_a_row(), 2);
        // A kernel may be at work, so the hole stays.
        table.raw.calls.note_kernels();
        references.extend(put(&[30, 40]));
        (table, references.into_iter().flatten().collect())
    }

    #[test]
    fn holes_are_listed_and_skipped() {
        let (table, references) = with_a_hole();
        let numbers = |references: &[Reference]| references.iter().map(|of| of.slot()).collect::<Vec<_>>();
        let rows = |table: &IndexedTable| -> Vec<(u64, u32)> {
            table.iter().map(|row| row.map(|(at, vector)| (at.slot(), vector[0])).unwrap()).collect()
        };
        assert_eq!((numbers(&references), table.holes().unwrap()), (vec![0, 1, 3, 4], vec![2]));
        assert_eq!(rows(&table), [(0, 0), (1, 10), (3, 30), (4, 40)]);
        assert_eq!(table.rows().unwrap()[..], [0, 10]);
        let hole = table.reference(2).unwrap();
        let refused = Error::InvalidReferences { invalid: 1, count: 2 };
        assert_eq!(table.get_many(&[references[3], hole]), Err(refused));
        // The hole's number is given to no other vector, and no row after it is lost, neither by growth nor by truncation.
        table.reserve_total(200).unwrap();
        assert_eq!((rows(&table), table.holes().unwrap()), (vec![(0, 0), (1, 10), (3, 30), (4, 40)], vec![2]));
        table.truncate(4).unwrap();
        assert_eq!((rows(&table), table.len().unwrap()), (vec![(0, 0), (1, 10), (3, 30)], 3));
        assert_eq!(table.get_many(&references[..3]).unwrap(), [0, 10, 30]);
    }

    /// A batch under way moves no row whose number another thread may have seen in the rows or the values.
    #[test]
    fn rows_that_were_looked_at_stay() {
        type Look = fn(&IndexedTable, &[Reference]);
        let looks: [(Look, bool); 4] = [
            (|_, _| (), true),
            (|table, _| drop(table.rows().unwrap()), false),
            (|table, _| drop(table.values(0u32).unwrap().view().unwrap()), false),
            (|table, all| drop(table.values(0u32).unwrap().get_many(all).unwrap()), false),
        ];
        for (look, moves) in looks {
            let (table, references) = with_a_hole();
            table.raw.calls.has_kernels.store(false, Ordering::SeqCst);
            let mut call = table.raw.begin_call(&table.raw.look()).unwrap().unwrap();
            // The call takes rows 3 and 4 for its own.
            call.alone = call.alone.map(|(number, _)| (number, 3));
            look(&table, &references);
            let (moved, closed) = table.raw.close_holes(call, true);
            assert!(closed.is_ok() && moved.is_some() == moves);
        }
    }

    /// A hole has no value to look at, and the vector that fills it begins with zeros.
    #[test]
    fn values_pass_over_holes() {
        let (table, references) = with_a_hole();
        let mut values = table.values(0u32).unwrap();
        values.set_many(&references, &[1, 2, 3, 4]).unwrap();
        assert_eq!((values.len().unwrap(), &values.view().unwrap()[..]), (5, &[1, 2][..]));
        assert_eq!(values.update(|values| values.len()).unwrap(), 2);
        let hole = table.reference(2).unwrap();
        let refused = Err(Error::InvalidReferences { invalid: 2, count: 3 });
        assert_eq!(values.set_many(&[hole, references[0], hole], &[9, 9, 9]), refused);
        table.raw.calls.has_kernels.store(false, Ordering::SeqCst);
        table.find_or_put_many(&[50]).unwrap().complete(&table).unwrap();
        assert_eq!(table.rows().unwrap()[..], [0, 10, 50, 30, 40]);
        assert_eq!(values.view().unwrap()[..], [1, 2, 0, 3, 4]);
    }

    #[test]
    fn holes_are_left_or_filled() {
        for leave in [true, false] {
            let (table, references) = with_a_hole();
            table.raw.calls.has_kernels.store(false, Ordering::SeqCst);
            let request = Request::new().references(true).leave_holes(leave);
            let new = table.find_or_put_many_with(&[50, 60, 70], request).unwrap().references;
            let new: Vec<Reference> = new.into_iter().flatten().collect();
            let mut numbers: Vec<u64> = new.iter().map(|of| of.slot()).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, if leave { [5, 6, 7] } else { [2, 5, 6] });
            assert_eq!(table.holes().unwrap(), if leave { vec![2] } else { vec![] });
            assert_eq!(table.get_many(&[references, new].concat()).unwrap(), [0, 10, 30, 40, 50, 60, 70]);
            let rows = if leave { 2 } else { 7 };
            assert_eq!(table.rows().unwrap().len(), rows);
            // The hole is a spare by now: the next vector gets it.
            let next = table.find_or_put_many_with(&[80], Request::new().references(true)).unwrap();
            assert_eq!(next.references[0].unwrap().slot(), if leave { 2 } else { 7 });
            assert!(table.holes().unwrap().is_empty());
            assert_eq!(table.rows().unwrap().len() as u64, table.len().unwrap());
        }
    }
}
