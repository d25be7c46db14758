//! The parts of a table's memory, as files hold them.

/// A part of a table's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Slots for vectors, keys or roots, or the index.
    Slots,
    Nodes,
    /// Rows of an indexed table: a prefix of them.
    Rows,
}

/// Bytes of a block of a file, which has a checksum of its own: machines hand out the memory of a table in whole blocks.
pub(crate) const BLOCK: usize = 1 << 20;
