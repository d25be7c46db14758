//! The rows of an indexed table on a GPU: closing holes, and the index made anew.

use super::Gpu;
use super::memory::DeviceMemory;
use super::reserved::ReservedMemory;
use super::store::{CudaStore, argument};
use crate::Result;
use crate::core::indexed::{Closing, RowCounts};
use crate::core::options::{Addresses, Parameters};
use crate::core::view::{Counts, RowMove, View};
use std::sync::Arc;

/// Cells for spare rows: more than a GPU has lanes at once.
const SPARE_CELLS: u32 = 1 << 18;

pub(super) struct CudaRows {
    words: ReservedMemory,
    /// How many spare rows there are, and cells for them.
    spares: DeviceMemory,
}

impl CudaRows {
    /// None for a table without rows.
    pub(super) fn new(gpu: &Arc<Gpu>, bytes: u64) -> Result<Option<Self>> {
        if bytes == 0 {
            return Ok(None);
        }
        let spares = DeviceMemory::new(gpu, (u64::from(SPARE_CELLS) + 1) * 8)?;
        Ok(Some(Self { words: ReservedMemory::new(gpu, bytes)?, spares }))
    }

    /// Where they are, for a view whose other parts are at `at`.
    pub(super) fn addresses(rows: Option<&Self>, at: Addresses) -> Addresses {
        let (words, spares) = rows.map_or((0, 0), |rows| (rows.words.address(), rows.spares.address()));
        Addresses { rows: words, spares, spare_cells: SPARE_CELLS, ..at }
    }
}

impl CudaStore {
    /// What rows there are. Nothing else uses the table.
    pub(crate) fn row_counts(&self) -> Result<RowCounts> {
        let (Some(rows), View::Indexed { view, .. }) = (&self.rows, &self.view) else { return Ok(RowCounts::default()) };
        let [stored, given] = self.stored()?;
        let given = given.min(view.rows.capacity);
        if stored == given {
            return Ok(RowCounts { stored, given, spares: Vec::new() });
        }
        let mut cells = vec![0u64; SPARE_CELLS as usize];
        // SAFETY: waited for in the next statement.
        unsafe { rows.spares.read_async(8, &mut cells, self.stream())? };
        self.wait("reading spare rows")?;
        let spares = cells.into_iter().filter_map(|cell| cell.checked_sub(1)).collect();
        Ok(RowCounts { stored, given, spares })
    }

    /// Closes holes. Nothing else uses the table.
    pub(crate) fn close_holes(&mut self, closing: &Closing) -> Result<()> {
        if !closing.moves.is_empty() {
            let moves = DeviceMemory::new(&self.gpu, size_of_val(&closing.moves[..]) as u64)?;
            let (from, count) = (moves.address(), closing.moves.len() as u64);
            let kernel = &self.kernels.rows(&self.gpu)?.move_rows;
            // SAFETY: the arguments of `warpset_move_rows`; pageable memory has been copied when the call returns; waited for
            // before `moves` is freed.
            unsafe {
                moves.write_async::<RowMove>(0, &closing.moves, self.stream())?;
                let arguments = &mut [self.table_argument(), argument(&from), argument(&count)];
                self.gpu.launch(kernel, (self.gpu.blocks_for(count), 256, 0), self.stream(), arguments)?;
            }
            self.wait("moving rows")?;
        }
        self.set_rows(closing.given, &closing.spares)?;
        if let Some(rows) = self.view.rows_mut() {
            rows.dense = closing.dense;
        }
        Ok(())
    }

    /// Says which rows were given, and which are spare.
    fn set_rows(&self, given: u64, spares: &[u64]) -> Result<()> {
        let Some(rows) = &self.rows else { return Ok(()) };
        let kept = spares.len().min(SPARE_CELLS as usize);
        let cells: Vec<u64> = std::iter::once(kept as u64).chain(spares[..kept].iter().map(|row| row + 1)).collect();
        rows.spares.zero_async(0, (SPARE_CELLS as usize + 1) * 8, self.stream())?;
        // SAFETY: pageable memory, so it has been copied when the calls return.
        unsafe {
            rows.spares.write_async(0, &cells, self.stream())?;
            self.stored_memory().write_async(8, &[given], self.stream())?;
        }
        self.wait("counting rows")
    }

    /// Makes an index of another size of the rows before `last`, and forgets the others. Gives what was counted: if some found no
    /// slot, the table is as it was. Waits for all work on the GPU first.
    pub(crate) fn reindex(&mut self, parameters: &Parameters<'_>, last: u64) -> Result<Counts> {
        self.gpu.synchronize()?;
        let kernels = self.gpu.kernels(parameters.spec)?;
        let before = self.row_counts()?;
        let slot_bytes = parameters.slot_bytes(&kernels.geometry);
        let slots = DeviceMemory::new(&self.gpu, slot_bytes)?;
        slots.zero_async(0, slot_bytes as usize, self.stream())?;
        let counts = DeviceMemory::new(&self.gpu, size_of::<Counts>() as u64)?;
        counts.zero_async(0, size_of::<Counts>(), self.stream())?;
        let rows = self.rows.as_mut().expect("an indexed table has rows");
        rows.words.grow(parameters.row_bytes(&kernels.geometry))?;
        let at = Addresses { slots: slots.address(), ..self.addresses() };
        let view = parameters.view(&at);
        let given = before.given.min(last);
        let kernel = &self.kernels.rows(&self.gpu)?.rebuild;
        let (slot_bits, first, counts_at) = (parameters.spec.index_slot_bits(), 0u64, counts.address());
        let mut sums = [Counts::default()];
        // SAFETY: the arguments of `warpset_rebuild`; both views are of this table, whose index is only read, and the new one has
        // been cleared; waited for below.
        unsafe {
            let larger = view.argument().as_ptr().cast_mut().cast();
            let arguments = &mut [
                self.table_argument(),
                larger,
                argument(&slot_bits),
                argument(&first),
                argument(&given),
                argument(&counts_at),
            ];
            self.gpu.launch(kernel, (self.gpu.blocks_for(given.max(1)), 256, 0), self.stream(), arguments)?;
            counts.read_async(0, &mut sums, self.stream())?;
        }
        self.wait("making an index")?;
        let [sums] = sums;
        if sums.full > 0 {
            return Ok(sums);
        }
        let spares: Vec<u64> = before.spares.into_iter().filter(|row| *row < given).collect();
        let dense = self.view.rows_mut().map_or(0, |rows| rows.dense.min(given));
        // SAFETY: pageable memory, so it has been copied when the call returns.
        unsafe { self.stored_memory().write_async(0, &[sums.hits], self.stream())? };
        self.set_rows(given, &spares)?;
        self.replace_index(view, slots, slot_bytes, kernels, parameters.spec);
        if let Some(rows) = self.view.rows_mut() {
            rows.dense = dense;
        }
        Ok(sums)
    }
}
