//! Moves the vectors of a table into a larger one.

use crate::backend::{Memory, Store};
use crate::layout::Kernel;
use crate::layout::search::SearchMode;
use crate::layout::view::{BatchView, Counts};
use crate::{Error, Result};
use std::ops::Range;

/// Maximum number of bytes of vectors that are moved at a time.
///
/// In pieces of 64 MiB, each with an allocation of its own, the growth of a table of 42 million slots of 8 words took 8.2 ms on
/// an H200 instead of 7.8 ms: `cargo bench --bench growth`.
const PIECE_BYTES: u64 = 256 << 20;

/// Smallest number of slots that are read at a time if memory is short.
const FEWEST_SLOTS: u64 = 1 << 12;

impl dyn Store {
    /// Puts the vectors in a range of slots of this table into `larger`, which is on the same machine.
    pub(super) fn rehash_into(&self, larger: &dyn Store, slots: Range<u64>) -> Result<Counts> {
        match self.rehash_by_threads(larger, slots.clone())? {
            Some(counts) => Ok(counts),
            // SAFETY: there are no marks.
            None => unsafe { self.rehash_marked(larger, slots, 0) },
        }
    }

    /// Puts the vectors in a range of slots into `larger`, which is on the same machine, a piece at a time through a buffer in
    /// that machine's memory. Waits for all work on the machine first. `marks`: 0, or the address of a byte for each slot of the
    /// table. Only vectors whose byte is not 0 are put then.
    ///
    /// # Safety
    ///
    /// If `marks` is not 0, these bytes are in memory of this machine, and nothing writes to them meanwhile.
    pub(crate) unsafe fn rehash_marked(&self, larger: &dyn Store, slots: Range<u64>, marks: u64) -> Result<Counts> {
        self.synchronize()?;
        let machine = self.machine();
        let (vectors, piece) = self.buffer_for(slots.end - slots.start)?;
        let cursor = machine.allocate(8)?;
        let counts = machine.allocate_zeroed(size_of::<Counts>() as u64)?;
        for first in slots.clone().step_by(piece as usize) {
            let batch = BatchView {
                vectors: vectors.address,
                count: self.export_to(first..slots.end.min(first + piece), marks, &cursor, &vectors)?,
                counts: counts.address,
                ..BatchView::default()
            };
            if batch.count > 0 {
                // SAFETY: the buffers are large enough for the batch, and outlive the machine's work (waited for below); both
                // tables are borrowed.
                unsafe { larger.search_in_place(SearchMode::FindOrPut, &batch)? };
            }
        }
        let mut sums = Counts::default();
        // SAFETY: only the searches above use `counts`, and the copy waits for them.
        unsafe { machine.read(*counts, 0, bytemuck::bytes_of_mut(&mut sums))? };
        Ok(sums)
    }

    /// Copies the vectors stored in `slots` to `vectors`, and waits. Returns their number. `marks`: as for
    /// [`rehash_marked`](Self::rehash_marked). `cursor`: memory for a number of 64 bits.
    fn export_to(&self, slots: Range<u64>, marks: u64, cursor: &Memory, vectors: &Memory) -> Result<u64> {
        let mut count = [0u64];
        // SAFETY: the arguments of the kernel; the caller's buffers are large enough for all of `slots`; waited for by `load`.
        unsafe {
            self.machine().fill(**cursor, 0..8, &[0])?;
            let arguments = [slots.start, slots.end, vectors.address, 0, cursor.address, marks];
            self.launch(Kernel::Export, slots.end - slots.start, &arguments)?;
            self.machine().load(**cursor, 0, &mut count)?;
        }
        Ok(count[0])
    }

    /// Allocates a buffer for the vectors of a piece of `slots` slots. Returns the buffer and the number of slots of a piece: as
    /// many as fit [`PIECE_BYTES`], or fewer if memory is short.
    fn buffer_for(&self, slots: u64) -> Result<(Memory, u64)> {
        let bytes_a_slot = self.table().spec.width() as u64 * 4;
        let mut piece = (PIECE_BYTES / bytes_a_slot).min(slots);
        loop {
            match self.machine().allocate(piece * bytes_a_slot) {
                Ok(memory) => return Ok((memory, piece)),
                Err(Error::OutOfMemory { .. }) if piece > FEWEST_SLOTS => piece = (piece / 4).max(FEWEST_SLOTS),
                Err(error) => return Err(error),
            }
        }
    }
}
