//! The rows of an indexed table in memory: their counters, copies, holes, and the index.

use super::window::{Window, piece};
use crate::Result;
use crate::backend::{RowWords, RowsMemory, Store};
use crate::host::zeroed;
use crate::layout::options::{Addresses, Parameters};
use crate::layout::rows::{HoleClosing, RowCounts};
use crate::layout::view::{Counts, RowMove};
use crate::layout::{Kernel, TablePart};
use std::ops::Range;
use std::sync::MutexGuard;

impl dyn Store {
    /// Row counters of an indexed table; zeros of other tables. The spares are right if nothing else uses the table.
    pub(crate) fn row_counts(&self) -> Result<RowCounts> {
        let (Some(rows), Some(view)) = (&self.table().rows, self.table().view.rows()) else { return Ok(RowCounts::default()) };
        let [stored, given] = self.stored()?;
        let given = given.min(view.capacity);
        if stored == given {
            return Ok(RowCounts { stored, given, spares: Vec::new() });
        }
        let mut cells = vec![0; rows.spare_cells() as usize];
        // SAFETY: numbers behind that of the spare rows, which kernels change atomically.
        unsafe { self.machine().load(*rows.spares, 8, &mut cells)? };
        let spares = cells.into_iter().filter_map(|cell| cell.checked_sub(1)).collect();
        Ok(RowCounts { stored, given, spares })
    }

    /// Lists at most `capacity` rows of a range that are not stored, in no order; and counts all of them.
    pub(crate) fn list_holes(&self, rows: Range<u64>, capacity: u64) -> Result<(Vec<u64>, u64)> {
        if rows.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let machine = self.machine();
        // Holes are few. On a GPU the host needs memory for those that are found, not for as many as there may be.
        let mut holes = zeroed::<u64>(if machine.is_gpu() { 0 } else { capacity as usize })?;
        let holes_on = Window::<u64>::new(machine, capacity as usize)?;
        let (mut count, count_on) = ([0], Window::<u64>::new(machine, 1)?);
        let holes_at = holes_on.place(holes.as_mut_ptr());
        let arguments = [rows.start, rows.end, holes_at, capacity, count_on.lend(&mut count)?];
        // SAFETY: the arguments of the kernel. Each hole is written by one thread, to which `count` has given its place; no more
        // than `capacity` are, for which there is room where the kernel writes. The table's memory is only read, atomically.
        unsafe { self.launch(Kernel::ListHoles, rows.end - rows.start, &arguments)? };
        count_on.receive(&mut count)?;
        let found = count[0].min(capacity) as usize;
        if machine.is_gpu() {
            holes = zeroed(found)?
        } else {
            holes.truncate(found)
        }
        holes_on.receive(&mut holes)?;
        Ok((holes, count[0]))
    }

    /// Number of references to rows of an indexed table that are not stored.
    pub(crate) fn count_unstored(&self, references: &[u64]) -> Result<u64> {
        let piece = piece(self.machine(), references.len(), 8);
        let (mut unstored, sum) = ([0], Window::<u64>::new(self.machine(), 1)?);
        let (from, sum_at) = (Window::<u64>::new(self.machine(), piece)?, sum.lend(&mut unstored)?);
        for references in references.chunks(piece) {
            let count = references.len() as u64;
            // SAFETY: the arguments of the kernel, which checks each reference before its row is read, and adds atomically.
            unsafe { self.launch(Kernel::CountUnstored, count, &[from.show(references)?, count, sum_at])? };
        }
        sum.receive(&mut unstored)?;
        Ok(unstored[0])
    }

    /// Number of rows of an indexed table that are known to be stored, from the first on; 0 in other tables.
    pub(crate) fn dense(&self) -> u64 {
        self.table().dense()
    }

    /// Notes that rows before this one are stored, which the caller has checked.
    pub(crate) fn set_dense(&mut self, rows: u64) {
        self.table_mut().set_dense(rows);
    }

    /// Words of the first rows, if they are in the memory of this process.
    ///
    /// # Safety
    ///
    /// These rows are stored, and the caller has observed that.
    pub(crate) unsafe fn first_rows(&self, rows: u64) -> Option<&[u32]> {
        let words = rows as usize * self.table().spec.width();
        match self.table().rows_address() {
            _ if self.machine().is_gpu() => None,
            0 => Some(&[]),
            // SAFETY: memory of the table, aligned to pages. These rows are stored, so the words are initialised. Operations that
            // change them (`clear`, `reindex`, `close_holes`) have the table exclusively.
            address => Some(unsafe { std::slice::from_raw_parts(address as *const u32, words) }),
        }
    }

    /// Bytes of memory that the rows of an indexed table take; 0 in other tables.
    pub(crate) fn row_bytes(&self) -> u64 {
        let (Some(rows), Some(view)) = (&self.table().rows, self.table().view.rows()) else { return 0 };
        // Memory that is provided on demand has been provided for the rows that were given. (Then counters are always readable.)
        let on_demand = |[_, given]: [u64; 2]| self.table().spec.row_bytes(given.min(view.capacity));
        if self.machine().provides_on_demand() { self.stored().map_or(0, on_demand) } else { rows.words().memory.bytes }
    }

    /// Makes at least the first bytes of the rows usable.
    pub(super) fn make_rows(&self, bytes: u64) -> Result<()> {
        let Some(rows) = &self.table().rows else { return Ok(()) };
        let mut words = rows.words();
        if bytes > words.memory.bytes { self.machine().grow(&mut words.memory, bytes, bytes) } else { Ok(()) }
    }

    /// Makes the first rows of this table, which is empty, those with the given numbers of `from`, a table on the same machine.
    /// Sets no counters. Returns the number of words that could not be read: none if the rows are stored and nothing else uses
    /// the tables.
    pub(crate) fn fill_rows(&mut self, from: &dyn Store, numbers: &[u64]) -> Result<u64> {
        let spec = self.table().spec;
        self.make_rows(spec.row_bytes(numbers.len() as u64))?;
        let (machine, piece) = (self.machine(), piece(self.machine(), numbers.len(), 8));
        let (mut invalid, sum) = ([0], Window::<u64>::new(machine, 1)?);
        let (window, sum_at, mut to) =
            (Window::<u64>::new(machine, piece)?, sum.lend(&mut invalid)?, self.table().rows_address());
        for numbers in numbers.chunks(piece) {
            let count = numbers.len() as u64;
            // SAFETY: the arguments of the kernel. The vectors go to rows of `self`, which have memory for all `numbers`,
            // and which nothing else uses yet.
            unsafe { from.launch(Kernel::Get, count * spec.width() as u64, &[window.show(numbers)?, count, to, sum_at])? };
            to += spec.row_bytes(count);
        }
        sum.receive(&mut invalid)?;
        Ok(invalid[0])
    }

    /// Closes holes among the rows of an indexed table. Returns whether rows have moved, even if a later step fails. Nothing else
    /// uses the table.
    ///
    /// Numbers are removed from the spares before rows are moved there, and no other numbers are given out before all rows have
    /// moved. So an error may leave holes that are not listed, but a row that holds a vector is never given out again.
    pub(crate) fn close_holes(&mut self, closing: &HoleClosing) -> (bool, Result<()>) {
        let machine = self.machine();
        let begin = || -> Result<Option<Window<'_, RowMove>>> {
            self.set_spares(&closing.spares)?;
            if closing.moves.is_empty() {
                return Ok(None);
            }
            let (count, window) = (closing.moves.len() as u64, Window::<RowMove>::new(machine, closing.moves.len())?);
            // SAFETY: the arguments of the kernel. They are rows of the table, which nothing else uses meanwhile; the window
            // stays until the wait below.
            unsafe { self.launch(Kernel::MoveRows, count, &[window.show(&closing.moves)?, count])? };
            Ok(Some(window))
        };
        let moving = match begin() {
            Ok(moving) => moving,
            Err(error) => return (false, Err(error)),
        };
        let closed = machine.finish("moving rows").and_then(|()| self.set_given(closing.given));
        drop(moving);
        if closed.is_ok() {
            self.set_dense(closing.dense);
        }
        (true, closed)
    }

    /// Builds an index of another size of the rows before `last` of an indexed table, and removes the others. Returns the counts:
    /// if some rows found no slot, the table is unchanged. Nothing else uses the table. Waits for all work on the machine first.
    pub(crate) fn reindex(&mut self, parameters: &Parameters<'_>, last: u64) -> Result<Counts> {
        self.synchronize()?;
        let geometry = self.machine().geometry(parameters.spec)?;
        let slot_bytes = parameters.slot_bytes(&geometry);
        // Memory that is provided on demand is made usable now, for all rows that the larger table can have.
        let on_demand = self.machine().provides_on_demand();
        let row_bytes = if on_demand { parameters.row_bytes(&geometry) } else { 0 };
        let more = self.words().map_or(0, |words| row_bytes.saturating_sub(words.memory.bytes));
        self.machine().check_memory(slot_bytes + more)?;
        let before = self.row_counts()?;
        // Nothing is put meanwhile, so all rows are stored if they are as many. Then none is looked for in the old index, which
        // would be a random access to memory for each.
        if before.stored == before.given {
            self.set_dense(before.given);
        }
        let slots = self.machine().allocate_zeroed(slot_bytes)?;
        let view = parameters.view(&Addresses { slots: slots.address, ..self.table().addresses() }, &geometry);
        let given = before.given.min(last);
        let (mut counts, window) = ([Counts::default()], Window::<Counts>::new(self.machine(), 1)?);
        let tables = [self.table().argument(), (parameters.spec, &view)];
        let arguments = [parameters.spec.index_slot_bits().into(), 0, given, window.lend(&mut counts)?];
        // SAFETY: the arguments of the kernel. Both views are of this table, whose index is only read; the new one, which is
        // zeros (EMPTY), and the counts are changed atomically.
        unsafe { self.machine().launch(Kernel::Rebuild, &tables, given.max(1), &arguments)? };
        window.receive(&mut counts)?;
        let [counts] = counts;
        if counts.full > 0 {
            return Ok(counts);
        }
        // Last, so that an error leaves the rows' memory as it was.
        self.make_rows(row_bytes)?;
        let spares: Vec<u64> = before.spares.into_iter().filter(|row| *row < given).collect();
        // If all rows have been named, all are stored.
        let dense = if counts.hits == given { given } else { self.dense().min(given) };
        // SAFETY: the first counter of the table, which is borrowed exclusively.
        let count = |stored: u64| unsafe { self.machine().write(*self.table().stored, 0, bytemuck::bytes_of(&stored)) };
        if let Err(error) = count(counts.hits) {
            // The write may have been done nevertheless.
            let _ = count(before.stored);
            return Err(error);
        }
        let table = self.table_mut();
        (table.view, table.slots, table.spec) = (view, slots, parameters.spec);
        table.set_dense(dense);
        self.spec_has_changed();
        // By now the table is complete. If this fails, the numbers from `given` on stay in use, as holes. A GPU that fails here
        // reports the error again at its next use.
        let _ = self.set_spares(&spares).and_then(|()| self.set_given(given));
        Ok(counts)
    }

    /// Sets the counters of a table whose parts were filled: vectors; nodes, or rows that were given; rows before the first hole.
    /// `spares`: the spare rows.
    pub(crate) fn set_counts(&mut self, [vectors, second, dense]: &[u64; 3], spares: &[u64]) -> Result<()> {
        // SAFETY: both counters of the table, which is borrowed exclusively.
        unsafe { self.machine().write(*self.table().stored, 0, bytemuck::bytes_of(&[*vectors, *second]))? };
        self.set_spares(spares)?;
        if self.table().rows.is_some() {
            self.set_given(*second)?;
        }
        self.set_dense(*dense);
        Ok(())
    }

    /// Sets the spare rows. Nothing else uses the table.
    fn set_spares(&self, spares: &[u64]) -> Result<()> {
        let Some(rows) = &self.table().rows else { return Ok(()) };
        let kept = spares.len().min(rows.spare_cells() as usize);
        let cells: Vec<u64> = std::iter::once(kept as u64).chain(spares[..kept].iter().map(|row| row + 1)).collect();
        // SAFETY: memory of the table. The caller guarantees that nothing else uses it.
        unsafe {
            self.machine().fill(*rows.spares, 0..rows.spares.bytes, &[0])?;
            self.machine().write(*rows.spares, 0, bytemuck::cast_slice(&cells))
        }
    }

    /// Sets the number of given rows. Nothing else uses the table.
    fn set_given(&self, given: u64) -> Result<()> {
        // SAFETY: the second counter of the table. The caller guarantees that nothing else uses it.
        unsafe { self.machine().write(*self.table().stored, 8, bytemuck::bytes_of(&given))? };
        if let Some(mut words) = self.words() {
            words.bound = given + words.reserved;
        }
        Ok(())
    }

    fn words(&self) -> Option<MutexGuard<'_, RowWords>> {
        self.table().rows.as_ref().map(RowsMemory::words)
    }

    /// Returns the stored rows of a range, one after another, and their numbers, in order.
    pub(super) fn export_rows(&self, rows: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)> {
        let (spec, Some(view)) = (self.table().spec, self.table().view.rows()) else { return Ok((Vec::new(), Vec::new())) };
        let [_, given] = self.stored()?;
        let (first, last) = (rows.start, rows.end.min(given).min(view.capacity));
        if first >= last {
            return Ok((Vec::new(), Vec::new()));
        }
        let width = spec.width();
        // Determined before the rows are read: rows that are stored by then are complete when read.
        let unsure = first.max(view.dense);
        let (mut holes, _) = if unsure < last { self.list_holes(unsure..last, last - unsure)? } else { (Vec::new(), 0) };
        let mut vectors = zeroed::<u32>((last - first) as usize * width)?;
        let words = self.table().part(TablePart::Rows);
        // SAFETY: memory of the table. A GPU copies rows that are written meanwhile, too, which are holes (determined above).
        unsafe { self.machine().read(words, spec.row_bytes(first), bytemuck::cast_slice_mut(&mut vectors))? };
        holes.sort_unstable();
        let mut holes = holes.into_iter().peekable();
        let numbers: Vec<u64> = (first..last).filter(|row| holes.next_if_eq(row).is_none()).collect();
        if numbers.len() < (last - first) as usize {
            for (to, row) in numbers.iter().enumerate() {
                let from = (row - first) as usize * width;
                vectors.copy_within(from..from + width, to * width);
            }
            vectors.truncate(numbers.len() * width);
        }
        Ok((vectors, numbers))
    }

    /// Acts as a lane that takes a row, and is stopped before it puts its vector.
    #[cfg(test)]
    #[allow(dead_code, reason = "tests of tables on a CPU use it")]
    pub(crate) fn lose_a_row(&self) -> u64 {
        let [_, given] = self.stored().unwrap();
        self.set_given(given + 1).unwrap();
        given
    }
}
