//! Rows of an indexed table in the memory of this process: their counters, closing holes, and rebuilding the index.

use super::kernels::{
    CpuView, geometry, warpset_cpu_count_unstored, warpset_cpu_list_holes, warpset_cpu_move_rows, warpset_cpu_rebuild,
};
use super::memory::{allocate, check_memory};
use super::reserved::Reserved;
use super::store::{CpuStore, PIECE};
use super::threads::in_pieces;
use crate::Result;
use crate::backend::{RowStore, Store};
use crate::host::zeroed;
use crate::layout::options::{Addresses, Parameters};
use crate::layout::rows::{HoleClosing, RowCounts};
use crate::layout::view::Counts;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The rows of an indexed table.
pub(super) struct CpuRows {
    pub(super) words: Reserved,
    /// Number of spare rows, followed by cells for them.
    pub(super) spares: Box<[AtomicU64]>,
}

/// Number of cells for spare rows: more than the threads can have at once.
pub(super) const SPARE_CELLS: usize = 256;

impl CpuRows {
    pub(super) fn new(bytes: u64) -> Result<Self> {
        let spares = (0..=SPARE_CELLS).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { words: Reserved::new(bytes as usize)?, spares })
    }
}

impl RowStore for CpuStore {
    fn row_counts(&self) -> Result<RowCounts> {
        let (Some(rows), Some(view)) = (&self.rows, self.view.rows()) else { return Ok(RowCounts::default()) };
        let [stored, given] = self.stored()?;
        let given = given.min(view.capacity);
        // Nearly always all rows are stored, and none is spare.
        let cells = if stored == given { &[] } else { &rows.spares[1..] };
        let spares = cells.iter().filter_map(|cell| cell.load(Ordering::Relaxed).checked_sub(1)).collect();
        Ok(RowCounts { stored, given, spares })
    }

    fn list_holes(&self, rows: Range<u64>, capacity: u64) -> Result<(Vec<u64>, u64)> {
        if rows.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let (mut holes, mut count) = (zeroed::<u64>(capacity as usize)?, 0u64);
        let (holes_at, count_at) = (holes.as_mut_ptr() as u64, &raw mut count as u64);
        let shares = self.threads.min((rows.end - rows.start).div_ceil(PIECE as u64) as usize).max(1) as u64;
        in_pieces(self.threads, shares, |share| {
            // SAFETY: `holes` has `capacity` elements. Each is written by one thread, to which `count` has given its index. Both
            // outlive the threads. The table's memory is only read, atomically.
            unsafe {
                let view = CpuView::of(self.spec, &self.view);
                let (holes, count) = (holes_at as *mut u64, count_at as *mut u64);
                warpset_cpu_list_holes(&view, share, shares, rows.start, rows.end, holes, capacity, count);
            }
        });
        holes.truncate(count as usize);
        Ok((holes, count))
    }

    fn count_unstored(&self, references: &[u64]) -> Result<u64> {
        let invalid = AtomicU64::new(0);
        in_pieces(self.threads, references.len().div_ceil(PIECE) as u64, |piece| {
            let first = piece as usize * PIECE;
            let references = &references[first..references.len().min(first + PIECE)];
            // SAFETY: the references are borrowed, and each is checked before its row is read; `invalid` is added to atomically.
            unsafe {
                let (from, count) = (references.as_ptr(), references.len() as u64);
                warpset_cpu_count_unstored(&CpuView::of(self.spec, &self.view), from, count, invalid.as_ptr());
            }
        });
        Ok(invalid.into_inner())
    }

    fn dense(&self) -> u64 {
        self.view.rows().map_or(0, |rows| rows.dense)
    }

    fn set_dense(&mut self, dense: u64) {
        if let Some(rows) = self.view.rows_mut() {
            rows.dense = dense;
        }
    }

    unsafe fn first_rows(&self, rows: u64) -> Option<&[u32]> {
        let Some(CpuRows { words, .. }) = &self.rows else { return Some(&[]) };
        let count = rows as usize * self.spec.width();
        // SAFETY: memory of the table, aligned to pages. These rows are stored, so the words are initialised. Operations that
        // change them (`clear`, `reindex`, `close_holes`) have the table exclusively.
        Some(unsafe { std::slice::from_raw_parts(words.address().cast_const().cast(), count) })
    }

    /// Bytes of the rows that were given. The system provides no memory for others.
    fn row_bytes(&self) -> u64 {
        let rows = self.view.rows().map_or(0, |rows| rows.capacity);
        // Relaxed: for a report.
        self.spec.row_bytes(self.stored[1].load(Ordering::Relaxed).min(rows))
    }

    fn fill_rows(&mut self, from: &dyn Store, numbers: &[u64]) -> Result<u64> {
        let Some(rows) = &mut self.rows else { return Ok(0) };
        let words = numbers.len() * self.spec.width();
        rows.words.grow(words * 4)?;
        // SAFETY: memory of this table, which is borrowed exclusively; it has these words by now, and every bit pattern is valid.
        from.get(numbers, unsafe { std::slice::from_raw_parts_mut(rows.words.address().cast(), words) })
    }

    fn close_holes(&mut self, closing: &HoleClosing) -> (bool, Result<()>) {
        // SAFETY: rows of the table, which nothing else uses meanwhile; the moves are borrowed.
        unsafe { warpset_cpu_move_rows(&CpuView::of(self.spec, &self.view), closing.moves.as_ptr(), closing.moves.len() as u64) };
        self.set_rows(closing.given, &closing.spares);
        self.set_dense(closing.dense);
        (true, Ok(()))
    }

    fn reindex(&mut self, parameters: &Parameters<'_>, last: u64) -> Result<Counts> {
        let geometry = geometry(parameters.spec);
        let (slot_bytes, row_bytes) = (parameters.slot_bytes(&geometry), parameters.row_bytes(&geometry));
        check_memory(
            slot_bytes + row_bytes.saturating_sub(self.spec.row_bytes(self.view.rows().map_or(0, |rows| rows.capacity))),
            self.threads,
        )?;
        let before = self.row_counts()?;
        // Nothing is put meanwhile, so all rows are stored if they are as many. Then none is looked for in the old index, which
        // would be a random access to memory for each.
        if before.stored == before.given {
            self.set_dense(before.given);
        }
        let mut slots = allocate(slot_bytes)?;
        let rows = self.rows.as_mut().expect("an indexed table has rows");
        let view = parameters.view(&Addresses {
            slots: slots.as_mut_ptr() as u64,
            seeds: self._seeds.as_ptr() as u64,
            nodes: 0,
            stored: self.stored.as_ptr() as u64,
            rows: rows.words.address() as u64,
            spares: rows.spares.as_ptr() as u64,
            spare_cells: SPARE_CELLS as u32,
        });
        let given = before.given.min(last);
        let mut counts = Counts::default();
        let counts_at = &raw mut counts as u64;
        let shares = self.threads.min(given.div_ceil(PIECE as u64) as usize).max(1) as u64;
        in_pieces(self.threads, shares, |share| {
            // SAFETY: both views are of this table, whose index is only read; the new one, which is zeros (EMPTY), and the counts
            // are changed atomically and outlive the threads.
            unsafe {
                let (old, new) = (CpuView::of(self.spec, &self.view), CpuView::of(parameters.spec, &view));
                warpset_cpu_rebuild(&old, &new, share, shares, given, counts_at as *mut Counts);
            }
        });
        if counts.full > 0 {
            return Ok(counts);
        }
        // Last, so that an error leaves the rows' memory as it was.
        rows.words.grow(row_bytes as usize)?;
        let spares: Vec<u64> = before.spares.into_iter().filter(|row| *row < given).collect();
        // If all rows have been named, all are stored.
        let dense = if counts.hits == given { given } else { self.dense().min(given) };
        self.stored[0].store(counts.hits, Ordering::Relaxed);
        self.set_rows(given, &spares);
        (self.view, self._slots, self.spec) = (view, slots, parameters.spec);
        self.set_dense(dense);
        Ok(counts)
    }
}

impl CpuStore {
    /// Sets the number of given rows, and the spare ones.
    pub(super) fn set_rows(&self, given: u64, spares: &[u64]) {
        // Relaxed: nothing else uses the table; the caller's lock passes it on.
        self.stored[1].store(given, Ordering::Relaxed);
        let Some(CpuRows { spares: cells, .. }) = &self.rows else { return };
        let kept = spares.len().min(SPARE_CELLS);
        cells[0].store(kept as u64, Ordering::Relaxed);
        let values = spares.iter().map(|row| row + 1).chain(std::iter::repeat(0));
        cells[1..].iter().zip(values).for_each(|(cell, value)| cell.store(value, Ordering::Relaxed));
    }

    /// Acts as a lane that takes a row, and is stopped before it puts its vector.
    #[cfg(test)]
    pub(crate) fn lose_a_row(&self) -> u64 {
        self.stored[1].fetch_add(1, Ordering::Relaxed)
    }
}
