//! The memory of a table in this process as bytes, for files.

use super::store::CpuStore;
use crate::Result;
use crate::backend::{RowStore as _, StoreBytes};
use crate::layout::Part;
use crate::layout::part::BLOCK;
use std::sync::atomic::Ordering;

/// Small enough that a piece is still in the cache when its checksum is computed.
const PIECE: usize = BLOCK;

impl CpuStore {
    /// All bytes of a part. Nothing else uses the table.
    fn part(&self, part: Part) -> &[u8] {
        match part {
            Part::Slots => &self._slots,
            Part::Nodes => self._nodes.as_deref().unwrap_or(&[]),
            // SAFETY: memory of the table, of the size that it has for rows; all of it is initialised, at least with zeros.
            // Nothing is put meanwhile.
            Part::Rows => self
                .rows
                .as_ref()
                .map_or(&[], |rows| unsafe { std::slice::from_raw_parts(rows.words.address().cast_const(), rows.words.bytes()) }),
        }
    }

    fn part_mut(&mut self, part: Part) -> &mut [u8] {
        match part {
            Part::Slots => &mut self._slots,
            Part::Nodes => self._nodes.as_deref_mut().unwrap_or(&mut []),
            // SAFETY: as in `part`; the table is borrowed exclusively.
            Part::Rows => self
                .rows
                .as_ref()
                .map_or(&mut [], |rows| unsafe { std::slice::from_raw_parts_mut(rows.words.address(), rows.words.bytes()) }),
        }
    }
}

impl StoreBytes for CpuStore {
    fn read_pieces(&self, part: Part, bytes: u64, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.part(part)[..bytes as usize].chunks(PIECE).try_for_each(each)
    }

    fn read_at(&self, part: Part, offset: u64, to: &mut [u8]) -> Result<()> {
        to.copy_from_slice(&self.part(part)[offset as usize..][..to.len()]);
        Ok(())
    }

    fn fill_pieces(&mut self, part: Part, bytes: u64, each: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        self.part_mut(part)[..bytes as usize].chunks_mut(PIECE).try_for_each(each)
    }

    fn set_counts(&mut self, [vectors, second, dense]: &[u64; 3], spares: &[u64]) -> Result<()> {
        // Relaxed: nothing else uses the table yet. Handing the table to another thread orders this store.
        self.stored[0].store(*vectors, Ordering::Relaxed);
        self.stored[1].store(*second, Ordering::Relaxed);
        if self.rows.is_some() {
            self.set_rows(*second, spares);
            self.set_dense(*dense);
        }
        Ok(())
    }
}
