//! Printing without panics: a reader may close its pipe, and a disk may be full; `println!` panics then.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};

/// Prints on standard output. A reader that closes its pipe early is not an error.
pub fn print(text: &str) -> Result<()> {
    let mut output = std::io::stdout();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("the report cannot be printed"),
    }
}

/// Prints on standard error. A failure is ignored, because it cannot be reported.
pub fn print_error(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
