//! Output files. They are checked at the start and written at the end, so that a search of hours does not fail on the name of a
//! file. A file is replaced when the new one is complete: a full disk or the end of the program leaves the earlier one.

#[cfg(any(feature = "cuda", feature = "cpu"))]
mod file;

#[cfg(any(feature = "cuda", feature = "cpu"))]
pub use file::{Output, Unwritten};

/// Identity of a file: its device and its number on that device. It does not depend on links and other names.
pub type Identity = same_file::Handle;
