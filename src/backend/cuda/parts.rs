//! The memory of a table on a GPU as bytes, for files. While a piece is copied, the one before is written, or the next one is
//! read.

use super::memory::PinnedMemory;
use super::store::CudaStore;
use crate::Result;
use crate::backend::StoreBytes;
use crate::layout::Part;
use crate::layout::part::BLOCK;
use cudarc::driver::result;

/// Bytes that are copied at once. A copy, and the wait for it, cost some additional 10 µs.
const PIECE: u64 = 8 * BLOCK as u64;

/// Dropping it waits for the store's stream in all cases: copies may use memory that is freed afterwards.
struct SynchronizeOnDrop<'a>(&'a CudaStore);

impl Drop for SynchronizeOnDrop<'_> {
    fn drop(&mut self) {
        if let Ok(_current) = self.0.gpu.bind() {
            // SAFETY: the store's own stream, which lives as long as its GPU. An error shows again at the next use of the GPU.
            let _ = unsafe { result::stream::synchronize(self.0.stream()) };
        }
    }
}

/// Offset and length of each piece of `bytes` bytes.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    (0..bytes).step_by(PIECE as usize).map(move |first| (first, PIECE.min(bytes - first) as usize))
}

impl CudaStore {
    /// Enqueues a copy of the bytes of a part from `offset` on.
    ///
    /// # Safety
    ///
    /// `to` must not be used or freed before the stream has passed this point.
    unsafe fn read_async(&self, part: Part, offset: u64, to: &mut [u8]) -> Result<()> {
        // SAFETY: the caller guarantees the contract.
        unsafe {
            match (part, self.part_memory(part)) {
                (Part::Rows, _) => self.read_rows_async(offset, to),
                (_, Some(memory)) => memory.read_async(offset as usize, to, self.stream()),
                (_, None) => Ok(()),
            }
        }
    }

    /// Enqueues a copy to the bytes of a part from `offset` on.
    ///
    /// # Safety
    ///
    /// Pinned `from` must not be changed or freed before the stream has passed this point.
    unsafe fn write_async(&self, part: Part, offset: u64, from: &[u8]) -> Result<()> {
        // SAFETY: the caller guarantees the contract.
        unsafe {
            match (part, self.part_memory(part)) {
                (Part::Rows, _) => self.write_rows_async(offset, from),
                (_, Some(memory)) => memory.write_async(offset as usize, from, self.stream()),
                (_, None) => Ok(()),
            }
        }
    }
}

impl StoreBytes for CudaStore {
    fn read_pieces(&self, part: Part, bytes: u64, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut coming = pieces(bytes);
        let Some((_, longest)) = coming.next() else { return Ok(()) };
        let (mut one, mut other) = (PinnedMemory::new(&self.gpu, longest)?, PinnedMemory::new(&self.gpu, longest)?);
        let _synchronize = SynchronizeOnDrop(self);
        let (mut now, mut next) = (&mut one, &mut other);
        // SAFETY: waited for before it is read; `_synchronize` waits before it is freed.
        unsafe { self.read_async(part, 0, now.part(0, longest))? };
        for (offset, len) in pieces(bytes) {
            self.wait("reading a table")?;
            if let Some((offset, len)) = coming.next() {
                // SAFETY: as above; its previous content was used in the round before.
                unsafe { self.read_async(part, offset, next.part(0, len))? };
            }
            debug_assert!(offset.is_multiple_of(PIECE));
            each(now.slice(0, len))?;
            std::mem::swap(&mut now, &mut next);
        }
        Ok(())
    }

    fn read_at(&self, part: Part, offset: u64, to: &mut [u8]) -> Result<()> {
        let _synchronize = SynchronizeOnDrop(self);
        // SAFETY: waited for in the next statement, or by `_synchronize` after an error.
        unsafe { self.read_async(part, offset, to)? };
        self.wait("reading a table")
    }

    fn fill_pieces(&mut self, part: Part, bytes: u64, each: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        let Some((_, longest)) = pieces(bytes).next() else { return Ok(()) };
        if part == Part::Rows {
            self.make_rows(bytes)?;
        }
        let (mut one, mut other) = (PinnedMemory::new(&self.gpu, longest)?, PinnedMemory::new(&self.gpu, longest)?);
        let _synchronize = SynchronizeOnDrop(self);
        let (mut now, mut next) = (&mut one, &mut other);
        for (offset, len) in pieces(bytes) {
            let piece = now.part(0, len);
            // Meanwhile the one before is copied.
            each(piece)?;
            self.wait("loading a table")?;
            // SAFETY: written again only after the wait of the next round; `_synchronize` waits before it is freed.
            unsafe { self.write_async(part, offset, piece)? };
            std::mem::swap(&mut now, &mut next);
        }
        self.wait("loading a table")
    }

    fn set_counts(&mut self, [vectors, second, dense]: &[u64; 3], spares: &[u64]) -> Result<()> {
        // SAFETY: pageable memory, so it has been copied when the call returns.
        unsafe { self.stored_memory().write_async(0, &[*vectors, *second], self.stream())? };
        self.wait("loading a table")?;
        self.set_row_counts(*second, *dense, spares)
    }
}
