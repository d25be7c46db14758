//! What `main` of `explore` and `replay` does: command lines, errors, and one object on standard output if `--json` is given,
//! whatever happens.

use crate::{exit, printing};
use anyhow::{Error, Result};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

pub use crate::printing::print_error;

/// An error with an exit code of its own; all others have [`exit::ERROR`].
#[derive(Debug)]
pub struct Ended {
    pub code: u8,
    pub why: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Ended {}

/// Who prints on standard output.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Printer {
    Nobody,
    Main,
    /// The thread that ends the program from outside.
    Watch,
}

/// Another process prints what is to be printed; this one its errors.
static PRINTS_NOTHING: AtomicBool = AtomicBool::new(false);

static PRINTER: AtomicU8 = AtomicU8::new(Printer::Nobody as u8);

/// Asks for standard output, which the first to ask gets. False if it was asked for before, by whomever.
pub fn claim_output(who: Printer) -> bool {
    PRINTER.compare_exchange(Printer::Nobody as u8, who as u8, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// From here on nothing is printed but errors, on standard error.
pub fn print_nothing() {
    PRINTS_NOTHING.store(true, Ordering::SeqCst);
}

pub fn prints_nothing() -> bool {
    PRINTS_NOTHING.load(Ordering::SeqCst)
}

/// Parses the command line and runs the program, which gives its exit code. `render` is what a person reads of an error.
pub fn run<O>(
    parse: impl FnOnce(&[OsString]) -> Result<O, clap::Error>,
    program: impl FnOnce(&O) -> Result<u8>,
    render: impl Fn(&Error) -> String,
) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let json = asks_for_json(&arguments);
    let options = match parse(&arguments) {
        Ok(options) => options,
        Err(error) => return wrong_command_line(&error, json).into(),
    };
    // Panics are bugs, and have been reported on standard error by then; but whoever reads the object waits for one.
    let ended = std::panic::catch_unwind(AssertUnwindSafe(|| program(&options)));
    let ended = ended.unwrap_or_else(|_| Err(Error::msg("the program has panicked: please report this as a bug")));
    ended.unwrap_or_else(|error| fail(&error, &render(&error), json)).into()
}

/// What a person reads of most errors.
pub fn sentence(error: &Error) -> String {
    format!("error: {error:#}\n")
}

/// Prints an error; returns its exit code.
fn fail(error: &Error, text: &str, json: bool) -> u8 {
    let code = error.downcast_ref::<Ended>().map_or(exit::ERROR, |ended| ended.code);
    print_error(text);
    if json {
        // If that fails, standard error has it.
        let _ = print(&format!("{}\n", failure(&format!("{error:#}"), code)));
    }
    code
}

/// The object that is printed instead of a report.
pub fn failure(error: &str, code: u8) -> Value {
    json!({ "error": error, "exit_code": code })
}

fn wrong_command_line(error: &clap::Error, json: bool) -> u8 {
    if !error.use_stderr() {
        return if is_printed(error.print()) { 0 } else { exit::ERROR };
    }
    // Standard error may be closed: there is nothing to be done about that.
    let _ = error.print();
    if json {
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").trim_end();
        let _ = print(&format!("{}\n", failure(first, exit::ERROR)));
    }
    exit::ERROR
}

fn asks_for_json(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// Prints the one thing that goes to standard output.
pub fn print(text: &str) -> Result<()> {
    if prints_nothing() {
        return Ok(());
    }
    if !claim_output(Printer::Main) {
        while PRINTER.load(Ordering::SeqCst) == Printer::Watch as u8 {
            std::thread::park(); // until that has ended the program
        }
        return Ok(()); // one object only
    }
    printing::print(text)
}

/// Prints on standard error what is no error.
pub fn print_warning(text: &str) {
    if !prints_nothing() {
        print_error(text);
    }
}

fn is_printed(result: std::io::Result<()>) -> bool {
    result.is_ok_and(|()| std::io::stdout().flush().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_an_option_and_not_a_file() {
        let asks = |arguments: &[&str]| asks_for_json(&arguments.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(asks(&["program", "x", "--json"]) && asks(&["program", "--no-such", "--json", "--", "x"]));
        assert!(!asks(&["--json"]) && !asks(&["program", "--", "--json"]) && !asks(&["program", "--jsonl"]));
    }
}
