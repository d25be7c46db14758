//! How a batch ends: the one error that it reports.

use crate::{Error, Result};

/// The error that a batch reports although it has put vectors, if there is one.
///
/// The first error counts, with two exceptions. An error that ends the batch early, or spoils its results, replaces an error that
/// only kept the table from growing. [`Error::KeysWithoutSlot`] replaces any other error, because no other result names those
/// keys.
#[derive(Default)]
pub(super) struct Ending {
    error: Option<Error>,
    /// Whether the error has ended the batch early or spoiled its results, and not only kept the table from growing.
    is_worse: bool,
}

impl Ending {
    /// Whether nothing has failed so far. After an error the table does not grow ahead of vectors: they use the remaining slots.
    pub(super) fn is_good(&self) -> bool {
        self.error.is_none()
    }

    /// Returns the value of a growth or a relocation, or of a step of one. If it failed, notes the error and returns `None`.
    pub(super) fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.note(error, false)).ok()
    }

    /// Notes an error that ends the batch before its last vector, or that makes its references wrong.
    pub(super) fn end(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.note(error, true);
        }
    }

    fn note(&mut self, error: Error, is_worse: bool) {
        let replaces = match (&self.error, &error) {
            (None, _) | (_, Error::KeysWithoutSlot { .. }) => true,
            (Some(Error::KeysWithoutSlot { .. }), _) => false,
            _ => is_worse && !self.is_worse,
        };
        if replaces {
            *self = Self { error: Some(error), is_worse };
        }
    }

    pub(super) fn into_error(self) -> Option<Error> {
        self.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_counts_unless_a_later_one_is_worse() {
        let (full, keys) = (Error::ChangedDuringIteration, Error::KeysWithoutSlot { keys: vec![7] });
        let other = |asked| Error::no_host_memory(asked, "");
        let mut ending = Ending::default();
        assert_eq!((ending.keep(Ok(7)), ending.is_good()), (Some(7), true));
        ending.end(Ok(()));
        assert!(ending.is_good());
        assert_eq!((ending.keep::<u8>(Err(other(1))), ending.keep::<u8>(Err(other(2)))), (None, None));
        assert_eq!(ending.error, Some(other(1)));
        ending.end(Err(full.clone()));
        ending.end(Err(other(3)));
        ending.keep::<u8>(Err(other(4)));
        assert_eq!(ending.error, Some(full));
        ending.keep::<u8>(Err(keys.clone()));
        ending.end(Err(other(5)));
        assert_eq!(ending.into_error(), Some(keys));
    }
}
