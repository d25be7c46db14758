//! Zip archives on disks without free space.

use anyhow::Error;
use std::io::{ErrorKind, Result, Write};
use zip::result::ZipError;

/// A writer that ignores everything after its first error. An unfinished archive writes when it is dropped, and reports a failure
/// on standard error; the first error has already been reported by then.
pub struct UntilError<W> {
    inner: W,
    has_failed: bool,
}

impl<W: Write> UntilError<W> {
    pub fn new(inner: W) -> Self {
        Self { inner, has_failed: false }
    }

    fn unless_failed<T>(&mut self, otherwise: T, write: impl FnOnce(&mut W) -> Result<T>) -> Result<T> {
        if self.has_failed {
            return Ok(otherwise);
        }
        let result = write(&mut self.inner);
        // An interrupted write is tried again.
        self.has_failed = result.as_ref().is_err_and(|error| error.kind() != ErrorKind::Interrupted);
        result
    }
}

impl<W: Write> Write for UntilError<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.unless_failed(bytes.len(), |inner| inner.write(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        self.unless_failed((), Write::flush)
    }
}

/// The error of an archive, without repeating its cause in the text.
pub fn plain(error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => error.into(),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for this many bytes.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_error_comes_once() {
        let mut writer = UntilError::new(Disk(3));
        assert_eq!(writer.write(b"abc").unwrap(), 3);
        assert_eq!(writer.write(b"d").unwrap_err().kind(), ErrorKind::StorageFull);
        assert!(writer.write_all(b"efg").is_ok() && writer.flush().is_ok());
        let error = plain(ZipError::Io(ErrorKind::StorageFull.into()));
        assert_eq!(format!("{error:#}"), "no storage space");
    }
}
