//! The first error of a batch, which it reports.

use crate::{Error, Result};

/// First error of a batch that needed more slots.
#[derive(Default)]
pub(super) struct FirstError {
    /// First error of a growth or a relocation. After it, the table does not grow ahead of vectors: they use the remaining slots.
    pub error: Option<Error>,
}

impl FirstError {
    /// Returns the value, or none after an error. Keeps the first error; but an error that names keys without a slot replaces it,
    /// because no other result mentions those keys.
    pub(super) fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result
            .map_err(|error| match error {
                Error::KeysWithoutSlot { .. } => self.error = Some(error),
                error => drop(self.error.get_or_insert(error)),
            })
            .ok()
    }
}
