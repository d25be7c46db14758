//! Copies the memory of a table in pieces to and from pinned memory, for files. While a piece is copied, the previous one is
//! written to the file, or the next one is read from it.

use super::device_memory::PinnedMemory;
use super::machine::CudaMachine;
use crate::Result;
use crate::backend::Region;
use crate::layout::part::BLOCK;
use cudarc::driver::result;

/// Bytes per copy. Each copy, with the wait for it, costs some 10 µs in addition.
const PIECE: u64 = 8 * BLOCK as u64;

/// Waits for the GPU's stream when dropped, even after an error, because copies may use memory that is freed next.
struct SynchronizeOnDrop<'a>(&'a CudaMachine);

impl Drop for SynchronizeOnDrop<'_> {
    fn drop(&mut self) {
        if let Ok(_current) = self.0.gpu().bind() {
            // SAFETY: the GPU's own stream, which lives as long as the GPU. An error shows again at the next use of the GPU.
            let _ = unsafe { result::stream::synchronize(self.0.stream()) };
        }
    }
}

/// Offset and length of each piece of `bytes` bytes.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    (0..bytes).step_by(PIECE as usize).map(move |first| (first, PIECE.min(bytes - first) as usize))
}

impl CudaMachine {
    /// # Safety
    ///
    /// As [`Machine::read_pieces`](crate::backend::Machine::read_pieces).
    pub(super) unsafe fn read_in_pieces(
        &self,
        region: Region,
        bytes: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut coming = pieces(bytes);
        let Some((_, longest)) = coming.next() else { return Ok(()) };
        let pinned = || PinnedMemory::new(self.gpu(), longest);
        let (mut one, mut other) = (pinned()?, pinned()?);
        let _synchronize = SynchronizeOnDrop(self);
        let (mut now, mut next) = (&mut one, &mut other);
        // SAFETY: `wait` returns before the buffer is read, and `_synchronize` waits before it is freed. The caller guarantees
        // the region.
        unsafe { self.read_async(region, 0, now.part(0, longest), self.stream())? };
        for (_, len) in pieces(bytes) {
            self.wait("reading a table")?;
            if let Some((offset, len)) = coming.next() {
                // SAFETY: as above. `each` used the previous content of this buffer in the round before.
                unsafe { self.read_async(region, offset, next.part(0, len), self.stream())? };
            }
            each(now.slice(0, len))?;
            std::mem::swap(&mut now, &mut next);
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As [`Machine::fill_pieces`](crate::backend::Machine::fill_pieces).
    pub(super) unsafe fn fill_in_pieces(
        &self,
        region: Region,
        bytes: u64,
        each: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let Some((_, longest)) = pieces(bytes).next() else { return Ok(()) };
        let pinned = || PinnedMemory::new(self.gpu(), longest);
        let (mut one, mut other) = (pinned()?, pinned()?);
        let _synchronize = SynchronizeOnDrop(self);
        let (mut now, mut next) = (&mut one, &mut other);
        for (offset, len) in pieces(bytes) {
            let piece = now.part(0, len);
            // Meanwhile the GPU copies the previous piece.
            each(piece)?;
            self.wait("loading a table")?;
            // SAFETY: the buffer is written again only after the wait of the next round, and `_synchronize` waits before it is
            // freed. The caller guarantees the region.
            unsafe { self.write_async(region, offset, piece, self.stream())? };
            std::mem::swap(&mut now, &mut next);
        }
        self.wait("loading a table")
    }
}
