//! The parts of a table's memory, as they are in files.

/// A part of a table's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TablePart {
    /// Slots for vectors, keys or roots, or the index.
    Slots,
    Nodes,
    /// Rows of an indexed table: a prefix of them.
    Rows,
}

/// Bytes of a block of a file, each with its own checksum. Machines provide the memory of a table in whole blocks.
pub(crate) const BLOCK: usize = 1 << 20;
