//! Kernels of tables, except searches.

use std::ffi::CStr;

/// A kernel that every machine has, by the same name and with the same arguments (cuda/table_kernels.cu).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// Makes a table empty.
    Clear,
    /// Copies the vectors at references: references, their number, vectors, number of words that could not be read.
    Get,
    /// Copies the vectors in slots: first slot, last slot, vectors, references or 0, their number, marks or 0.
    Export,
    /// Measures probe sequences: first slot, last slot, lengths, their number, totals.
    Measure,
    /// Relocates the keys of a stash: seed, keys, counts.
    Relocate,
    /// Enters rows into the index of the second table: bits of the index's slots, first row, last row, counts.
    Rebuild,
    /// Lists rows that are not stored: first row, last row, holes, number of holes that the list can take, number of holes.
    ListHoles,
    /// Moves rows to holes: moves, their number.
    MoveRows,
    /// Counts references to rows that are not stored: references, their number, the count.
    CountUnstored,
    /// Copies values: all values, bytes of a value, references, their number, the copies. Takes no table.
    GatherValues,
    /// Copies values back: as `GatherValues`.
    ScatterValues,
}

impl Kernel {
    pub(crate) fn name(self) -> &'static CStr {
        match self {
            Self::Clear => c"warpset_clear",
            Self::Get => c"warpset_get",
            Self::Export => c"warpset_export",
            Self::Measure => c"warpset_measure",
            Self::Relocate => c"warpset_relocate",
            Self::Rebuild => c"warpset_rebuild",
            Self::ListHoles => c"warpset_list_holes",
            Self::MoveRows => c"warpset_move_rows",
            Self::CountUnstored => c"warpset_count_unstored",
            Self::GatherValues => c"warpset_gather_values",
            Self::ScatterValues => c"warpset_scatter_values",
        }
    }

    /// Whether the first arguments are views of tables.
    pub(crate) fn takes_tables(self) -> bool {
        !matches!(self, Self::GatherValues | Self::ScatterValues)
    }
}
