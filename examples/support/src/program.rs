//! Common parts of `main` in `explore`, `decompose` and `replay`: command lines, errors, and exactly one object on standard
//! output if `--json` is given.

use crate::generate::Generate;
use crate::{escaping, exit, printing};
use anyhow::{Error, Result};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt;
use std::io::{IsTerminal as _, Write};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

pub use crate::printing::print_error;

/// An error with its own exit code; all others have [`exit::ERROR`].
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

/// Part of the program that prints on standard output.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Printer {
    Nobody,
    Main,
    /// The watching thread, which ends the program at a time limit or on Ctrl-C.
    Watch,
}

/// Set if another process prints the report; this one prints only its errors.
static PRINTS_NOTHING: AtomicBool = AtomicBool::new(false);

static PRINTER: AtomicU8 = AtomicU8::new(Printer::Nobody as u8);

/// Claims standard output for `who`; only the first claim succeeds. Returns false if it was claimed before, by any part.
pub fn claim_output(who: Printer) -> bool {
    PRINTER.compare_exchange(Printer::Nobody as u8, who as u8, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// Prints only errors, on standard error, from here on.
pub fn print_nothing() {
    PRINTS_NOTHING.store(true, Ordering::SeqCst);
}

pub fn prints_nothing() -> bool {
    PRINTS_NOTHING.load(Ordering::SeqCst)
}

/// Whether standard error is a terminal on which text may be in colour: `NO_COLOR` is not set, and `TERM` is not `dumb`.
pub fn has_colors() -> bool {
    can_redraw() && wants_colors()
}

/// Whether standard output is a terminal on which text may be in colour. [`has_colors`] says the same of standard error.
pub fn prints_colors() -> bool {
    std::io::stdout().is_terminal() && knows_more_than_text() && wants_colors()
}

fn wants_colors() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn knows_more_than_text() -> bool {
    std::env::var_os("TERM").is_none_or(|kind| kind != "dumb")
}

/// Whether standard error is a terminal on which a line may be replaced: `TERM` is not `dumb`.
pub fn can_redraw() -> bool {
    std::io::stderr().is_terminal() && knows_more_than_text()
}

/// Parses the command line and runs the program, which returns its exit code. `command` describes the command line, for shells
/// and manuals. `render` formats an error for a person.
pub fn run<O>(
    command: clap::Command,
    parse: impl FnOnce(&[OsString]) -> Result<O, clap::Error>,
    program: impl FnOnce(&O) -> Result<u8>,
    render: impl Fn(&Error) -> String,
) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let json = asks_for_json(&arguments);
    if let Some(kind) = Generate::asked(&arguments) {
        let printed = kind.text(command).and_then(|text| printing::print(&text));
        return printed.map_or_else(|error| fail(&error, &sentence(&error), json), |()| 0).into();
    }
    let options = match parse(&arguments) {
        Ok(options) => options,
        Err(error) => return wrong_command_line(&error, json).into(),
    };
    // A panic is a bug, and is already reported on standard error. A reader of the JSON object still waits for an object.
    let ended = std::panic::catch_unwind(AssertUnwindSafe(|| program(&options)));
    let ended = ended.unwrap_or_else(|_| Err(Error::msg("the program panicked: please report this as a bug")));
    ended.unwrap_or_else(|error| fail(&error, &render(&error), json)).into()
}

/// Lets numbers on the command line begin with a minus sign. If such a number is out of range, the code that parses it says this.
pub fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| {
        let is_value =
            !argument.is_positional() && argument.get_action().takes_values() && !argument.is_allow_hyphen_values_set();
        if is_value { argument.allow_negative_numbers(true) } else { argument }
    })
}

/// Parses a command line whose numbers may begin with a minus sign.
pub fn parsed<O: clap::Parser>(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<O, clap::Error> {
    O::from_arg_matches(&with_negative_numbers(O::command()).try_get_matches_from(arguments)?)
}

/// Formats an error as a sentence for a person.
pub fn sentence(error: &impl fmt::Display) -> String {
    format!("error: {}\n", escaping::lines(&format!("{error:#}")))
}

/// Prints an error; returns its exit code.
fn fail(error: &Error, text: &str, json: bool) -> u8 {
    let code = error.downcast_ref::<Ended>().map_or(exit::ERROR, |ended| ended.code);
    print_error(text);
    if json {
        // If printing fails, standard error has the message.
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
    // Standard error may be closed; such a failure is ignored.
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

/// Prints the report or the object on standard output.
pub fn print(text: &str) -> Result<()> {
    if prints_nothing() {
        return Ok(());
    }
    if !claim_output(Printer::Main) {
        while PRINTER.load(Ordering::SeqCst) == Printer::Watch as u8 {
            std::thread::park(); // until the watching thread has ended the program
        }
        return Ok(()); // one object only
    }
    printing::print(text)
}

/// Prints a warning on standard error.
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
