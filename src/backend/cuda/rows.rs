//! Rows of an indexed table on a GPU: their memory, closing holes, and rebuilding the index.
//!
//! Rows have addresses from the start, but memory only when they are about to be used. Before a batch is enqueued, there is
//! memory for as many rows as it can take, one for each of its vectors. So no kernel meets a row without memory. An upper bound
//! of the number of rows is maintained without waiting for the GPU. If that bound needs more memory than is available, or before
//! a host batch requests any memory, the library waits for the GPU and counts the rows that are really in use.

use super::memory::DeviceMemory;
use super::reserved::ReservedMemory;
use super::store::{CudaStore, argument};
use super::{Gpu, cuda, pass};
use crate::Result;
use crate::backend::{RowStore, Store};
use crate::host::zeroed;
use crate::layout::options::{Addresses, Parameters};
use crate::layout::rows::{HoleClosing, MORE_ROWS, RowCounts};
use crate::layout::view::{Counts, RowMove};
use cudarc::driver::result;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Number of cells for spare rows: more than a GPU has lanes at once.
const SPARE_CELLS: u32 = 1 << 18;

/// References that are checked at a time.
const PIECE: usize = 1 << 20;

pub(super) struct CudaRows {
    memory: Mutex<RowMemory>,
    address: u64,
    /// Number of spare rows, followed by cells for them.
    spares: DeviceMemory,
}

struct RowMemory {
    words: ReservedMemory,
    /// Upper bound of the rows that have been given, or will be by enqueued work or reservations.
    bound: u64,
    /// Rows among these that are reserved for batches not yet enqueued.
    reserved: u64,
}

/// Reservation of memory for the rows of a batch that is being enqueued.
pub(super) struct RowReservation<'a> {
    rows: &'a CudaRows,
    count: u64,
}

impl Drop for RowReservation<'_> {
    fn drop(&mut self) {
        self.rows.memory().reserved -= self.count;
    }
}

impl CudaRows {
    /// Returns `None` for a table without rows. Reserves addresses for all rows, and returns an error if there could never be
    /// memory for all of them; hardly any memory is taken now.
    pub(super) fn new(gpu: &Arc<Gpu>, bytes: u64) -> Result<Option<Self>> {
        if bytes == 0 {
            return Ok(None);
        }
        let free = gpu.free_memory()?;
        if bytes > free {
            return Err(gpu.out_of_memory(bytes, free));
        }
        let spares = DeviceMemory::new(gpu, (u64::from(SPARE_CELLS) + 1) * 8)?;
        let words = ReservedMemory::new(gpu, 0)?;
        let address = words.address();
        Ok(Some(Self { memory: Mutex::new(RowMemory { words, bound: 0, reserved: 0 }), address, spares }))
    }

    fn memory(&self) -> MutexGuard<'_, RowMemory> {
        self.memory.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Adds the addresses of the rows to `at`.
    pub(super) fn addresses(rows: Option<&Self>, at: Addresses) -> Addresses {
        let (words, spares) = rows.map_or((0, 0), |rows| (rows.address, rows.spares.address()));
        Addresses { rows: words, spares, spare_cells: SPARE_CELLS, ..at }
    }
}

impl RowStore for CudaStore {
    fn row_counts(&self) -> Result<RowCounts> {
        let (Some(rows), Some(view)) = (&self.rows, self.view.rows()) else { return Ok(RowCounts::default()) };
        let [stored, given] = self.stored()?;
        let given = given.min(view.capacity);
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

    fn list_holes(&self, rows: Range<u64>, capacity: u64) -> Result<(Vec<u64>, u64)> {
        if rows.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let holes = DeviceMemory::new(&self.gpu, 8 * (1 + capacity))?;
        holes.zero_async(0, 8, self.stream())?;
        let (count_at, holes_at) = (holes.address(), holes.address() + 8);
        let kernel = &self.kernels.rows(&self.gpu)?.list_holes;
        let mut count = [0u64];
        // SAFETY: the arguments of `warpset_list_holes`, which writes no more than `capacity` holes; waited for below.
        unsafe {
            let arguments = &mut [
                self.table_argument(),
                argument(&rows.start),
                argument(&rows.end),
                argument(&holes_at),
                argument(&capacity),
                argument(&count_at),
            ];
            let blocks = self.gpu.blocks_for(rows.end - rows.start);
            self.gpu.launch(kernel, (blocks, 256, 0), self.stream(), arguments)?;
            holes.read_async(0, &mut count, self.stream())?;
        }
        self.wait("listing holes")?;
        let mut listed = zeroed::<u64>(count[0].min(capacity) as usize)?;
        if !listed.is_empty() {
            // SAFETY: waited for in the next statement.
            unsafe { holes.read_async(8, &mut listed, self.stream())? };
            self.wait("listing holes")?;
        }
        Ok((listed, count[0]))
    }

    fn count_unstored(&self, references: &[u64]) -> Result<u64> {
        let kernel = &self.kernels.rows(&self.gpu)?.count_unstored;
        let piece = PIECE.min(references.len().max(1));
        let (on_gpu, invalid_on_gpu) = (DeviceMemory::new(&self.gpu, piece as u64 * 8)?, DeviceMemory::new(&self.gpu, 8)?);
        invalid_on_gpu.zero_async(0, 8, self.stream())?;
        let (from, sum) = (on_gpu.address(), invalid_on_gpu.address());
        let mut invalid = [0u64];
        for references in references.chunks(piece) {
            let count = references.len() as u64;
            let arguments = &mut [self.table_argument(), argument(&from), argument(&count), argument(&sum)];
            // SAFETY: the arguments of `warpset_count_unstored`; the references are borrowed until the wait below.
            unsafe {
                on_gpu.write_async(0, references, self.stream())?;
                self.gpu.launch(kernel, (self.gpu.blocks_for(count), 256, 0), self.stream(), arguments)?;
            }
            self.wait("looking for rows")?;
        }
        // SAFETY: waited for in the next statement.
        unsafe { invalid_on_gpu.read_async(0, &mut invalid, self.stream())? };
        self.wait("looking for rows")?;
        Ok(invalid[0])
    }

    fn dense(&self) -> u64 {
        self.view.rows().map_or(0, |rows| rows.dense)
    }

    fn set_dense(&mut self, dense: u64) {
        if let Some(rows) = self.view.rows_mut() {
            rows.dense = dense;
        }
    }

    /// Bytes of memory that the rows have.
    fn row_bytes(&self) -> u64 {
        self.rows.as_ref().map_or(0, |rows| rows.memory().words.bytes())
    }

    fn fill_rows(&mut self, from: &dyn Store, numbers: &[u64]) -> Result<u64> {
        let from = Self::of(from).expect("a table stays on its machine");
        self.make_rows(self.spec().row_bytes(numbers.len() as u64))?;
        let kernel = &from.kernels.read(&self.gpu)?.get;
        let piece = PIECE.min(numbers.len().max(1));
        let (on_gpu, invalid_on_gpu) = (DeviceMemory::new(&self.gpu, piece as u64 * 8)?, DeviceMemory::new(&self.gpu, 8)?);
        invalid_on_gpu.zero_async(0, 8, self.stream())?;
        let (from_at, sum, mut to) = (on_gpu.address(), invalid_on_gpu.address(), self.rows_address());
        let mut invalid = [0u64];
        for numbers in numbers.chunks(piece) {
            let count = numbers.len() as u64;
            let arguments = &mut [from.table_argument(), argument(&from_at), argument(&count), argument(&to), argument(&sum)];
            // SAFETY: the arguments of `warpset_get`; rows of this table, which have memory for all numbers, and which nothing
            // else uses; the numbers are borrowed until the wait below.
            unsafe {
                on_gpu.write_async(0, numbers, self.stream())?;
                let launch = (self.gpu.blocks_for(count * self.spec().width() as u64), 256, 0);
                self.gpu.launch(kernel, launch, self.stream(), arguments)?;
            }
            self.wait("moving rows")?;
            to += self.spec().row_bytes(count);
        }
        // SAFETY: waited for in the next statement.
        unsafe { invalid_on_gpu.read_async(0, &mut invalid, self.stream())? };
        self.wait("moving rows")?;
        Ok(invalid[0])
    }

    /// Numbers are removed from the spares before rows are moved there, and no other numbers are given out before all rows have
    /// moved. So an error may leave holes that are not listed, but a row that holds a vector is never given out again.
    fn close_holes(&mut self, closing: &HoleClosing) -> (bool, Result<()>) {
        if let Err(error) = self.set_spares(&closing.spares) {
            return (false, Err(error));
        }
        let moves = match self.move_rows(closing) {
            Ok(moves) => moves,
            Err(error) => return (false, Err(error)),
        };
        let closed = self.wait("moving rows").and_then(|()| self.set_given(closing.given));
        drop(moves);
        if closed.is_ok() {
            self.set_dense(closing.dense);
        }
        (true, closed)
    }

    /// Waits for all work on the GPU first.
    fn reindex(&mut self, parameters: &Parameters<'_>, last: u64) -> Result<Counts> {
        self.gpu.synchronize()?;
        let kernels = self.shared.kernels(parameters.spec)?;
        let before = self.row_counts()?;
        // Nothing is put meanwhile, so all rows are stored if they are as many. Then none is looked for in the old index, which
        // would be a random access to memory for each.
        if before.stored == before.given {
            self.set_dense(before.given);
        }
        let slot_bytes = parameters.slot_bytes(&kernels.geometry);
        let slots = DeviceMemory::new(&self.gpu, slot_bytes)?;
        slots.zero_async(0, slot_bytes as usize, self.stream())?;
        let counts = DeviceMemory::new(&self.gpu, size_of::<Counts>() as u64)?;
        counts.zero_async(0, size_of::<Counts>(), self.stream())?;
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
        // If all rows have been named, all are stored.
        let dense = if sums.hits == given { given } else { self.dense().min(given) };
        // SAFETY: pageable memory, so it has been copied when the call returns.
        unsafe { self.stored_memory().write_async(0, &[sums.hits], self.stream())? };
        self.replace_index(view, slots, slot_bytes, kernels, parameters.spec);
        self.set_dense(dense);
        // By now the table is complete. If this fails, the numbers from `given` on stay in use, as holes. A GPU that fails here
        // reports the error again at its next use.
        let _ = self.set_spares(&spares).and_then(|()| self.set_given(given));
        Ok(sums)
    }
}

impl CudaStore {
    /// Address of the rows.
    pub(crate) fn rows_address(&self) -> u64 {
        self.rows.as_ref().map_or(0, |rows| rows.address)
    }

    /// Commits memory for the rows of a batch of `count` vectors, before the batch is enqueued. Returns `None` for a table
    /// without rows. If `may_wait`, waits for the GPU and counts the rows in use before it takes more memory.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: nothing may be enqueued.
    pub(super) fn reserve_rows(&self, count: u64, may_wait: bool) -> Result<Option<RowReservation<'_>>> {
        let (Some(rows), Some(view)) = (&self.rows, self.view.rows()) else { return Ok(None) };
        let width_bytes = self.spec().row_bytes(1);
        let mut memory = rows.memory();
        // No kernel takes a row beyond the capacity.
        let bytes_for = |rows: u64| rows.min(view.capacity) * width_bytes;
        if bytes_for(memory.bound + count) > memory.words.bytes() {
            if may_wait {
                self.count_given(&mut memory)?;
            }
            let needed = bytes_for(memory.bound + count);
            // Grows in steps of a quarter, because mapping waits for the driver. But no step is for more rows than can be
            // stored: a table within a limit of memory has slots for that.
            let quarter = (memory.words.bytes() / 4 * 5 / width_bytes).min(view.capacity.saturating_sub(MORE_ROWS));
            let step = bytes_for((memory.bound + count).max(quarter));
            if needed > memory.words.bytes() && memory.words.grow(step).is_err() {
                self.count_given(&mut memory)?;
                let needed = bytes_for(memory.bound + count);
                memory.words.grow(needed)?;
            }
        }
        memory.bound += count;
        memory.reserved += count;
        drop(memory);
        Ok(Some(RowReservation { rows, count }))
    }

    /// Notes that the table has no rows any more. They keep their memory.
    pub(super) fn forget_rows(&self) {
        if let Some(rows) = &self.rows {
            rows.memory().bound = 0;
        }
    }

    /// Waits for the GPU, and counts the rows that it has given.
    fn count_given(&self, memory: &mut RowMemory) -> Result<()> {
        self.gpu.synchronize()?;
        let [_, given] = self.stored()?;
        memory.bound = given + memory.reserved;
        Ok(())
    }

    /// Commits memory for all rows, because kernels that are not enqueued here may use any of them.
    pub(crate) fn make_all_rows(&self) -> Result<()> {
        match self.view.rows() {
            Some(view) => self.reserve_rows(view.capacity, false).map(drop),
            None => Ok(()),
        }
    }

    /// Copies bytes from an address in the memory of this GPU, after all work of the table's stream, and waits.
    ///
    /// # Safety
    ///
    /// There are as many bytes, and nothing writes them meanwhile.
    pub(crate) unsafe fn read_marks(&self, address: u64, count: u64) -> Result<Vec<u8>> {
        let mut marks = zeroed::<u8>(count as usize)?;
        pass("reading marks")?;
        let _current = self.gpu.bind()?;
        // SAFETY: the caller guarantees the source; the target is waited for in the next statement.
        unsafe { result::memcpy_dtoh_async(&mut marks, address, self.stream()) }.map_err(cuda("reading marks"))?;
        self.wait("reading marks")?;
        Ok(marks)
    }

    /// Commits memory for `bytes` bytes of rows, which will be filled.
    pub(super) fn make_rows(&self, bytes: u64) -> Result<()> {
        self.rows.as_ref().map_or(Ok(()), |rows| rows.memory().words.grow(bytes))
    }

    /// Enqueues a copy of the bytes of rows from `offset` on.
    ///
    /// # Safety
    ///
    /// As [`ReservedMemory::read_async`].
    pub(super) unsafe fn read_rows_async(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        // SAFETY: the caller guarantees the contract.
        self.rows.as_ref().map_or(Ok(()), |rows| unsafe { rows.memory().words.read_async(offset, to, self.stream()) })
    }

    /// Enqueues a copy to the bytes of rows from `offset` on.
    ///
    /// # Safety
    ///
    /// As [`ReservedMemory::write_async`].
    pub(super) unsafe fn write_rows_async(&self, offset: u64, from: &[u8]) -> Result<()> {
        // SAFETY: the caller guarantees the contract.
        self.rows.as_ref().map_or(Ok(()), |rows| unsafe { rows.memory().words.write_async(offset, from, self.stream()) })
    }

    /// Sets the row counters of a table that was loaded from a file.
    pub(super) fn set_row_counts(&mut self, given: u64, dense: u64, spares: &[u64]) -> Result<()> {
        if self.rows.is_some() {
            self.set_spares(spares)?;
            self.set_given(given)?;
            self.set_dense(dense);
        }
        Ok(())
    }

    /// Enqueues the moves, and returns their memory, which must live until they are done. After an error nothing moves.
    fn move_rows(&self, closing: &HoleClosing) -> Result<Option<DeviceMemory>> {
        if closing.moves.is_empty() {
            return Ok(None);
        }
        let moves = DeviceMemory::new(&self.gpu, size_of_val(&closing.moves[..]) as u64)?;
        let (from, count) = (moves.address(), closing.moves.len() as u64);
        let kernel = &self.kernels.rows(&self.gpu)?.move_rows;
        // SAFETY: the arguments of `warpset_move_rows`; pageable memory has been copied when the call returns; the caller keeps
        // `moves`, whose drop waits.
        unsafe {
            moves.write_async::<RowMove>(0, &closing.moves, self.stream())?;
            let arguments = &mut [self.table_argument(), argument(&from), argument(&count)];
            self.gpu.launch(kernel, (self.gpu.blocks_for(count), 256, 0), self.stream(), arguments)?;
        }
        Ok(Some(moves))
    }

    /// Sets the spare rows.
    fn set_spares(&self, spares: &[u64]) -> Result<()> {
        let Some(rows) = &self.rows else { return Ok(()) };
        let kept = spares.len().min(SPARE_CELLS as usize);
        let cells: Vec<u64> = std::iter::once(kept as u64).chain(spares[..kept].iter().map(|row| row + 1)).collect();
        rows.spares.zero_async(0, (SPARE_CELLS as usize + 1) * 8, self.stream())?;
        // SAFETY: pageable memory, so it has been copied when the call returns.
        unsafe { rows.spares.write_async(0, &cells, self.stream())? };
        self.wait("listing spare rows")
    }

    /// Sets the number of given rows.
    fn set_given(&self, given: u64) -> Result<()> {
        let Some(rows) = &self.rows else { return Ok(()) };
        // SAFETY: as above.
        unsafe { self.stored_memory().write_async(8, &[given], self.stream())? };
        self.wait("counting rows")?;
        let mut memory = rows.memory();
        memory.bound = given + memory.reserved;
        Ok(())
    }

    /// Returns the stored rows of a range, one after another, and their numbers, in order.
    pub(super) fn export_rows(&self, rows: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)> {
        let (Some(memory), Some(view)) = (&self.rows, self.view.rows()) else { return Ok((Vec::new(), Vec::new())) };
        let [_, given] = self.stored()?;
        let (first, last) = (rows.start, rows.end.min(given).min(view.capacity));
        if first >= last {
            return Ok((Vec::new(), Vec::new()));
        }
        let width = self.spec().width();
        // Determined before the rows are read: rows that are stored by then are complete when read.
        let unsure = first.max(view.dense);
        let (mut holes, _) = if unsure < last { self.list_holes(unsure..last, last - unsure)? } else { (Vec::new(), 0) };
        let mut vectors = zeroed::<u32>((last - first) as usize * width)?;
        let from = self.spec().row_bytes(first);
        // SAFETY: waited for in the next statement.
        unsafe { memory.memory().words.read_async(from, &mut vectors, self.stream())? };
        self.wait("reading rows")?;
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
}
