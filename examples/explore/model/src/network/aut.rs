//! State spaces as text (AUT, see `aut_text`) that are parts of a network: with their labels, in a table.
//!
//! A text is read in pieces as it comes. A transition takes 12 bytes while it is read, 20 at most, then 8; a label some 20 and
//! its text, then 8 and its text.

use super::labels::{Batch, Labels};
use crate::ir::Texts;
use crate::ir::network::Table;
use anyhow::{Context, Result, anyhow, ensure};
use std::io::Read;
use warpset_support::aut_text::{Header, Limits, Taker, read as read_text};
use warpset_support::lines::excerpt;

/// States, at most: variables of a model are 32-bit integers with a sign.
const MOST_STATES: u64 = i32::MAX as u64;

/// Transitions, at most: places in a table have 32 bits.
const MOST_TRANSITIONS: u64 = u32::MAX as u64;

/// States that a table has in any case, and how many times more of them than transitions: each takes 4 bytes, also one of which
/// no transition tells.
const STATES_IN_ANY_CASE: u64 = 1 << 24;
const STATES_A_TRANSITION: u64 = 16;

/// Labels that wait for their numbers at once, and bytes of them.
const LABELS_AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 1 << 20;

/// Bytes of the shortest line: what is announced is believed as far as there is text for it.
const FEWEST_BYTES_A_LINE: u64 = 8;

/// A state space, and the texts of its labels by their numbers in it.
pub struct Aut {
    pub table: Table,
    pub labels: Texts,
}

/// Reads a state space of so many bytes, if that is known.
///
/// # Errors
///
/// What is wrong, with the file's name and the line.
pub fn read(name: &str, reader: impl Read, bytes: Option<u64>) -> Result<Aut> {
    let mut lines = Lines { bytes, ..Lines::default() };
    let header = read_text(name, reader, Limits { states: MOST_STATES, transitions: MOST_TRANSITIONS }, &mut lines)?;
    lines.number_labels().with_context(|| name.to_string())?;
    lines.finish(name, header)
}

/// What was read so far.
#[derive(Default)]
struct Lines {
    /// Of the text, if that is known.
    bytes: Option<u64>,
    /// One more than the last state that was told of.
    states: u64,
    labels: Labels,
    /// The last labels, each with how many transitions one after another have it: the next label is often the same.
    waiting: Batch,
    repeated: Vec<u32>,
    all: All,
}

#[derive(Default)]
struct All {
    sources: Vec<u32>,
    /// Fewer, as some wait for their numbers.
    labels: Vec<u32>,
    targets: Vec<u32>,
}

impl Taker for Lines {
    fn header(&mut self, header: Header) -> Result<()> {
        let announced = self.bytes.map_or(0, |bytes| header.transitions.min(bytes / FEWEST_BYTES_A_LINE + 1));
        let All { sources, labels, targets } = &mut self.all;
        for list in [sources, labels, targets] {
            list.try_reserve_exact(announced as usize).context("there is no memory for so many transitions")?;
        }
        Ok(())
    }

    fn transition(&mut self, source: u64, label: &[u8], target: u64) -> Result<()> {
        self.states = self.states.max(source.max(target) + 1);
        self.label(label)?;
        let All { sources, labels, targets } = &mut self.all;
        if sources.len() == sources.capacity() {
            let count = sources.len() + sources.len().max(1 << 16);
            for list in [sources, labels, targets] {
                list.try_reserve(count - list.len()).context("there is no memory for more transitions")?;
            }
        }
        self.all.sources.push(source as u32);
        self.all.targets.push(target as u32);
        Ok(())
    }
}

impl Lines {
    /// Takes the label of one more transition, as it is written.
    fn label(&mut self, written: &[u8]) -> Result<()> {
        let label = unquoted(written)?;
        if let (Some(last), Some(count)) = (self.waiting.texts.last(), self.repeated.last_mut())
            && last.as_bytes() == label
        {
            *count += 1;
            return Ok(());
        }
        let text = std::str::from_utf8(label).ok().filter(|text| text.is_ascii());
        let text = text.ok_or_else(|| anyhow!("a label with a character that is not ASCII: `{}`", excerpt(label)))?;
        if self.repeated.len() == LABELS_AT_ONCE || self.waiting.texts.bytes() > BYTES_AT_ONCE {
            self.number_labels()?;
        }
        ensure!(self.waiting.texts.push(text), "there is no memory for a label of {} bytes", text.len());
        self.repeated.push(1);
        Ok(())
    }

    /// Gives the transitions of all labels that wait their numbers.
    fn number_labels(&mut self) -> Result<()> {
        let Self { labels, waiting, repeated, all, .. } = self;
        let mut counts = repeated.iter();
        labels.try_numbers(waiting, |number| {
            let count = *counts.next().expect("each label has a count") as usize;
            all.labels.resize(all.labels.len() + count, number);
        })?;
        repeated.clear();
        Ok(())
    }

    fn finish(self, name: &str, Header { initial, transitions, states }: Header) -> Result<Aut> {
        let Self { states: told, labels: known, all: All { sources, labels, targets }, .. } = self;
        // The table wants the memory that labels are found by.
        let texts = known.into_texts();
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
