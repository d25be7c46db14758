//! The memory of a table as bytes, for files.

use crate::Result;
use crate::backend::Store;
use crate::layout::TablePart;

impl dyn Store {
    /// Calls `each` with pieces of the first `bytes` bytes of a part, in order. A piece consists of whole blocks of a file.
    /// Nothing else uses the table.
    pub(crate) fn read_pieces(&self, part: TablePart, bytes: u64, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        // SAFETY: memory of the table, which the caller has exclusively, or frozen.
        unsafe { self.machine().read_pieces(self.table().part(part), bytes, each) }
    }

    /// Copies bytes of a part, from byte `offset` on, to `to`. Nothing else uses the table.
    pub(crate) fn read_at(&self, part: TablePart, offset: u64, to: &mut [u8]) -> Result<()> {
        // SAFETY: as in `read_pieces`.
        unsafe { self.machine().read(self.table().part(part), offset, to) }
    }

    /// Lets `each` write the first `bytes` bytes of a part in pieces, in order. A piece consists of whole blocks of a file.
    pub(crate) fn fill_pieces(
        &mut self,
        part: TablePart,
        bytes: u64,
        each: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        if part == TablePart::Rows {
            self.make_rows(bytes)?;
        }
        // SAFETY: memory of the table, which is borrowed exclusively.
        unsafe { self.machine().fill_pieces(self.table().part(part), bytes, each) }
    }
}
