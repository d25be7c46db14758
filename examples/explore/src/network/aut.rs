//! State spaces as text (AUT, see `aut_text`) that are parts of a network: with their labels, in a table.
//!
//! A text is read in pieces as it comes, and takes 12 bytes a transition while it is read, then 8.

use super::aut_text::{Header, Limits, Taker, read as read_text};
use crate::ir::network::Table;
use crate::lines::excerpt;
use anyhow::{Context, Result, anyhow, ensure};
use std::collections::HashMap;
use std::io::Read;

/// States, at most: variables of a model are 32-bit integers with a sign.
const MOST_STATES: u64 = i32::MAX as u64;

/// Transitions, at most: places in a table have 32 bits.
const MOST_TRANSITIONS: u64 = u32::MAX as u64;

/// States that a table has in any case, and how many times more of them than transitions: each takes 4 bytes, also one of which
/// no transition tells.
const STATES_IN_ANY_CASE: u64 = 1 << 24;
const STATES_A_TRANSITION: u64 = 16;

/// Bytes of the shortest line: what is announced is believed as far as there is text for it.
const FEWEST_BYTES_A_LINE: u64 = 8;

/// A state space, and the texts of its labels by their numbers in it.
pub struct Aut {
    pub table: Table,
    pub labels: Vec<String>,
}

/// Reads a state space of so many bytes, if that is known.
///
/// # Errors
///
/// What is wrong, with the file's name and the line.
pub fn read(name: &str, reader: impl Read, bytes: Option<u64>) -> Result<Aut> {
    let mut lines =
        Lines { bytes, states: 0, labels: HashMap::new(), texts: Vec::new(), last: (Vec::new(), 0), all: All::default() };
    let header = read_text(name, reader, Limits { states: MOST_STATES, transitions: MOST_TRANSITIONS }, &mut lines)?;
    lines.finish(name, header)
}

/// What was read so far.
struct Lines {
    /// Of the text, if that is known.
    bytes: Option<u64>,
    /// One more than the last state that was told of.
    states: u64,
    labels: HashMap<Vec<u8>, u32>,
    texts: Vec<String>,
    /// The last label: the next one is often the same.
    last: (Vec<u8>, u32),
    all: All,
}

#[derive(Default)]
struct All {
    sources: Vec<u32>,
    labels: Vec<u32>,
    targets: Vec<u32>,
}

impl Taker for Lines {
    fn header(&mut self, header: Header) -> Result<()> {
        let announced = self.bytes.map_or(0, |bytes| header.transitions.min(bytes / FEWEST_BYTES_A_LINE + 1));
        for list in [&mut self.all.sources, &mut self.all.labels, &mut self.all.targets] {
            list.try_reserve_exact(announced as usize).context("there is no memory for so many transitions")?;
        }
        Ok(())
    }

    fn transition(&mut self, source: u64, label: &[u8], target: u64) -> Result<()> {
        self.states = self.states.max(source.max(target) + 1);
        let label = self.label(label)?;
        let All { sources, labels, targets } = &mut self.all;
        if sources.len() == sources.capacity() {
            for list in [&mut *sources, &mut *labels, &mut *targets] {
                list.try_reserve(list.len().max(1 << 16)).context("there is no memory for more transitions")?;
            }
        }
        sources.push(source as u32);
        labels.push(label);
        targets.push(target as u32);
        Ok(())
    }
}

impl Lines {
    /// The number of a label as it is written.
    fn label(&mut self, written: &[u8]) -> Result<u32> {
        if self.last.0 == written && !written.is_empty() {
            return Ok(self.last.1);
        }
        let number = match self.labels.get(unquoted(written)?) {
            Some(number) => *number,
            None => {
                let text = unquoted(written)?;
                ensure!(text.is_ascii(), "a label with a character that is not ASCII: `{}`", excerpt(text));
                let number = self.texts.len() as u32;
                self.texts.push(String::from_utf8_lossy(text).into_owned());
                self.labels.insert(text.to_vec(), number);
                number
            }
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(written);
        self.last.1 = number;
        Ok(number)
    }

    fn finish(self, name: &str, Header { initial, transitions, states }: Header) -> Result<Aut> {
        let Self { states: told, labels: numbers, texts, all: All { sources, labels, targets }, .. } = self;
        // The table wants its memory.
        drop(numbers);
        // Those after the last one that a transition tells of are not reached.
        let states = told.max(initial + 1).min(states);
        ensure!(
            states <= STATES_IN_ANY_CASE || states <= STATES_A_TRANSITION * transitions,
            "{name}:1: {states} states of {transitions} transitions: at most {STATES_IN_ANY_CASE}, or {STATES_A_TRANSITION} times as many as \
             transitions, are possible"
        );
        let table = Table::new(states as u32, texts.len() as u32, initial as u32, sources, &labels, &targets);
        Ok(Aut { table, labels: texts })
    }
}

/// What a label is, quoted or not.
fn unquoted(written: &[u8]) -> Result<&[u8]> {
    if let Some(rest) = written.strip_prefix(b"\"") {
        return rest.strip_suffix(b"\"").ok_or_else(|| anyhow!("the label `{}` has no quote at its end", excerpt(written)));
    }
    let is_word = written.first().is_some_and(u8::is_ascii_alphabetic)
        && written.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    ensure!(is_word || written == b"*", "the label `{}` is no word, so it must be in quotes", excerpt(written));
    Ok(written)
}
