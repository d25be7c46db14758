//! The text of AUT, the format of CADP and mCRL2 for state spaces, a line at a time.
//!
//! ```text
//! des (0, <transitions>, <states>)
//! (<from>, <label>, <to>)
//! ```
//!
//! Each line is a transition. The label is all text between the first and the last comma: so quotes in it need no escape.

use crate::lines::{excerpt, for_each, number};
use crate::numbers::counted;
use anyhow::{Result, anyhow, bail, ensure};
use std::io::Read;

/// Contents of the first line.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub initial: u64,
    pub transitions: u64,
    pub states: u64,
}

/// Upper bounds for the numbers in the first line.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub states: u64,
    pub transitions: u64,
}

/// Receives the contents of a text.
pub trait Taker {
    /// Receives the first line, which is within the limits.
    fn header(&mut self, header: Header) -> Result<()>;

    /// Receives a transition between states within the announced number. The label is as it is written.
    fn transition(&mut self, source: u64, label: &[u8], target: u64) -> Result<()>;
}

/// Reads a text to its end. Returns its first line.
///
/// # Errors
///
/// Malformed text, with the file's name and the line.
pub fn read(name: &str, reader: impl Read, limits: Limits, taker: &mut impl Taker) -> Result<Header> {
    let (mut header, mut count) = (None, 0);
    let lines = for_each(name, reader, |line, _| {
        let Some(Header { transitions, states, .. }) = header else {
            let first = first_line(line, limits)?;
            header = Some(first);
            return taker.header(first);
        };
        ensure!(count < transitions, "more transitions than the {transitions} that the first line announces");
        count += 1;
        let (source, label, target) = parts(line)
            .ok_or_else(|| anyhow!("`{}` is not a transition: (<from>, <label>, <to>) was expected", excerpt(line)))?;
        for state in [source, target] {
            ensure!(
                state < states,
                "state {state} found, but the first line announces {states} states, numbered 0 to {}",
                states - 1
            );
        }
        taker.transition(source, label, target)
    })?;
    let Some(header) = header else {
        bail!("{name}:1: the text ends here, but des (0, <transitions>, <states>) was expected");
    };
    let announced = header.transitions;
    ensure!(
        count == announced,
        "{name}:{}: the text ends after {}, but the first line announces {announced}",
        lines + 1,
        counted(count, "transition")
    );
    Ok(header)
}

fn first_line(line: &[u8], limits: Limits) -> Result<Header> {
    let numbers = || {
        let inside = line.strip_prefix(b"des")?.trim_ascii().strip_prefix(b"(")?.strip_suffix(b")")?;
        let mut numbers = inside.split(|byte| *byte == b',').map(|text| number(text.trim_ascii()));
        let header = Header { initial: numbers.next()??, transitions: numbers.next()??, states: numbers.next()?? };
        numbers.next().is_none().then_some(header)
    };
    let Some(header) = numbers() else {
        bail!("`{}` is not a valid first line: des (0, <transitions>, <states>) was expected", excerpt(line));
    };
    let Header { initial, transitions, states } = header;
    ensure!(
        (1..=limits.states).contains(&states),
        "the first line announces {states} states, but 1 to {} are possible",
        limits.states
    );
    ensure!(
        transitions <= limits.transitions,
        "the first line announces {transitions} transitions, but at most {} are possible",
        limits.transitions
    );
    ensure!(initial < states, "the initial state is {initial}, but the {states} states are numbered from 0");
    Ok(header)
}

/// Returns the source, the label as it is written, and the target.
fn parts(line: &[u8]) -> Option<(u64, &[u8], u64)> {
    let inside = line.strip_prefix(b"(")?.strip_suffix(b")")?;
    let (first, last) = (memchr::memchr(b',', inside)?, memchr::memrchr(b',', inside)?);
    if first == last {
        return None;
    }
    let source = number(inside[..first].trim_ascii())?;
    let target = number(inside[last + 1..].trim_ascii())?;
    Some((source, inside[first + 1..last].trim_ascii(), target))
}
