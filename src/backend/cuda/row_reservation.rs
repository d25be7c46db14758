//! Memory for the rows of an indexed table on a GPU.
//!
//! Rows have addresses from the start, but memory only when they are about to be used. Before a batch is enqueued, the library
//! provides memory for as many rows as the batch can take, one for each of its vectors. So no kernel uses a row without memory.
//! An upper bound of the number of rows is maintained without waiting for the GPU. In two cases the library waits for the GPU and
//! counts the rows that are really in use: when that bound needs more memory than is available, and before a host batch requests
//! any memory.

use super::store::CudaStore;
use crate::Result;
use crate::backend::{Machine as _, RowWords, RowsMemory};
use crate::layout::rows::MORE_ROWS;

/// Reservation of memory for the rows of a batch that is being enqueued.
pub(super) struct RowReservation<'a> {
    rows: &'a RowsMemory,
    count: u64,
}

impl Drop for RowReservation<'_> {
    fn drop(&mut self) {
        self.rows.words().reserved -= self.count;
    }
}

impl CudaStore {
    /// Commits memory for the rows of a batch of `count` vectors, before the batch is enqueued. Returns `None` for a table
    /// without rows. If `may_wait`, waits for the GPU and counts the rows in use before it takes more memory.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](crate::Error::OutOfMemory): nothing may be enqueued.
    pub(super) fn reserve_rows(&self, count: u64, may_wait: bool) -> Result<Option<RowReservation<'_>>> {
        let (Some(rows), Some(view)) = (&self.rows, self.view.rows()) else { return Ok(None) };
        let width_bytes = self.spec.row_bytes(1);
        let mut words = rows.words();
        // No kernel takes a row beyond the capacity.
        let bytes_for = |rows: u64| rows.min(view.capacity) * width_bytes;
        if bytes_for(words.bound + count) > words.memory.bytes {
            if may_wait {
                self.count_given(&mut words)?;
            }
            let needed = bytes_for(words.bound + count);
            // Grows in steps of a quarter, but at most to one row for each slot: more vectors cannot be stored. If the table has
            // a memory limit, its number of slots was chosen so that these rows fit.
            let most = needed.max(bytes_for(view.capacity.saturating_sub(MORE_ROWS)));
            if needed > words.memory.bytes && self.machine.grow(&mut words.memory, needed, most).is_err() {
                self.count_given(&mut words)?;
                let needed = bytes_for(words.bound + count);
                self.machine.grow(&mut words.memory, needed, needed)?;
            }
        }
        words.bound += count;
        words.reserved += count;
        drop(words);
        Ok(Some(RowReservation { rows, count }))
    }

    /// Waits for the GPU, reads the number of rows that kernels have taken, and sets the bound to that and the reserved rows.
    fn count_given(&self, words: &mut RowWords) -> Result<()> {
        self.gpu().synchronize()?;
        let mut given = [0];
        // SAFETY: the second of the table's two counters.
        unsafe { self.machine.load(*self.stored, 8, &mut given)? };
        words.bound = given[0] + words.reserved;
        Ok(())
    }

    /// Commits memory for all rows, because kernels that are not enqueued here may use any of them.
    pub(crate) fn make_all_rows(&self) -> Result<()> {
        match self.view.rows() {
            Some(view) => self.reserve_rows(view.capacity, false).map(drop),
            None => Ok(()),
        }
    }
}
