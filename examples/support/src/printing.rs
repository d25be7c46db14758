//! What programs print. Whoever reads it may close it, and a disk may be full: no reason to panic, as `println!` does.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};

/// Prints on standard output. Whoever reads it may have read enough before its end: that is no error.
pub fn print(text: &str) -> Result<()> {
    let mut output = std::io::stdout();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("the report cannot be printed"),
    }
}

/// Prints on standard error. There is nobody to tell if that fails.
pub fn print_error(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
