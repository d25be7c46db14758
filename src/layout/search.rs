//! Operations of machines on vectors and keys of a table.

use super::view::{ProbeTotals, View};
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchMode {
    FindOrPut,
    /// Find-or-put in which new vectors get the next numbers, even if an indexed table has holes among its rows.
    FindOrPutLeavingHoles,
    /// Find-or-put of keys of a cuckoo table that relocation has left in no slot, while nothing else uses the table.
    PutBack,
    Find,
}

impl SearchMode {
    /// Returns the view that the kernels of this operation get, for a table with the view `view`.
    pub(crate) fn view_of(self, view: &View) -> Cow<'_, View> {
        match self {
            Self::PutBack => Cow::Owned(view.to_put_back()),
            Self::FindOrPutLeavingHoles => Cow::Owned(view.leaving_holes()),
            Self::FindOrPut | Self::Find => Cow::Borrowed(view),
        }
    }
}

/// Largest number of rounds of a relocation. A round is repeated if a key that is left over finds no slot in the stash.
pub(crate) const RELOCATION_ROUNDS: u64 = 64;

pub(crate) struct ProbeLengths {
    pub lengths: Vec<u64>,
    pub totals: ProbeTotals,
}
