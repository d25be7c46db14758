//! Reads state spaces as text (AUT, see `aut_text`) into tables with labels, for use as components of a network.
//!
//! The text is read in pieces. A transition takes 12 bytes while the text is read, at most 20 bytes while the table is built,
//! then 8 bytes. A label takes some 20 bytes plus its text while the text is read, then 8 bytes plus its text.

use super::labels::{Batch, Labels};
use crate::ir::Texts;
use crate::ir::network::Table;
use anyhow::{Context, Result, anyhow, ensure};
use std::io::Read;
use warpset_support::aut_text::{Header, Limits, Taker, read as read_text};
use warpset_support::lines::excerpt;

/// Limit of the number of states: variables of a model are signed 32-bit integers.
const MOST_STATES: u64 = i32::MAX as u64;

/// Limit of the number of transitions: indices into a table have 32 bits.
const MOST_TRANSITIONS: u64 = u32::MAX as u64;

/// Limit of a table's states: the larger of a constant and a multiple of the number of transitions. A state takes 4 bytes even if
/// it has no transitions.
const STATES_IN_ANY_CASE: u64 = 1 << 24;
const STATES_A_TRANSITION: u64 = 16;

/// Limits of a batch of labels that wait for their numbers, in labels and in bytes.
const LABELS_AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 1 << 20;

/// Length of the shortest line in bytes. The reader trusts the number of transitions in the header only as far as the length of
/// the text allows.
const FEWEST_BYTES_A_LINE: u64 = 8;

/// A state space, and the texts of its labels by number.
pub struct Aut {
    pub table: Table,
    pub labels: Texts,
}

/// Reads a state space. `bytes` is the length of the text, if known.
///
/// # Errors
///
/// The first error, with the name of the file and the line.
pub fn read(name: &str, reader: impl Read, bytes: Option<u64>) -> Result<Aut> {
    let mut lines = Lines { bytes, ..Lines::default() };
    let header = read_text(name, reader, Limits { states: MOST_STATES, transitions: MOST_TRANSITIONS }, &mut lines)?;
    lines.number_labels().with_context(|| name.to_string())?;
    lines.finish(name, header)
}

/// The transitions that have been read so far.
#[derive(Default)]
struct Lines {
    /// Length of the text in bytes, if known.
    bytes: Option<u64>,
    /// Highest state number that occurred, plus one.
    states: u64,
    labels: Labels,
    /// The last labels and, for each, how many consecutive transitions have it. Counting saves work, because a label often equals
    /// the one before it.
    waiting: Batch,
    repeated: Vec<u32>,
    all: All,
}

#[derive(Default)]
struct All {
    sources: Vec<u32>,
    /// Shorter than `sources` and `targets` while labels wait for their numbers.
    labels: Vec<u32>,
    targets: Vec<u32>,
}

impl Taker for Lines {
    fn header(&mut self, header: Header) -> Result<()> {
        let announced = self.bytes.map_or(0, |bytes| header.transitions.min(bytes / FEWEST_BYTES_A_LINE + 1));
        let All { sources, labels, targets } = &mut self.all;
        for list in [sources, labels, targets] {
            list.try_reserve_exact(announced as usize).context("no memory for the transitions")?;
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
                list.try_reserve(count - list.len()).context("no memory for more transitions")?;
            }
        }
        self.all.sources.push(source as u32);
        self.all.targets.push(target as u32);
        Ok(())
    }
}

impl Lines {
    /// Adds the label of one more transition. `written` is the label as in the text, possibly in quotes.
    fn label(&mut self, written: &[u8]) -> Result<()> {
        let label = unquoted(written)?;
        if let (Some(last), Some(count)) = (self.waiting.texts.last(), self.repeated.last_mut())
            && last.as_bytes() == label
        {
            *count += 1;
            return Ok(());
        }
        let text = std::str::from_utf8(label).ok().with_context(|| {
            format!("the label `{}` is not UTF-8: convert the file, for example by iconv -f ISO-8859-1 -t UTF-8", excerpt(label))
        })?;
        if self.repeated.len() == LABELS_AT_ONCE || self.waiting.texts.bytes() > BYTES_AT_ONCE {
            self.number_labels()?;
        }
        ensure!(self.waiting.texts.push(text), "no memory for a label of {} bytes", text.len());
        self.repeated.push(1);
        Ok(())
    }

    /// Numbers the waiting labels, and stores the numbers for their transitions.
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
        let Self { states: declared, labels: known, all: All { sources, labels, targets }, .. } = self;
        // Free the memory of the label index before the table is built.
        let texts = known.into_texts();
        // States above the highest one that occurs in a transition cannot be reached.
        let states = declared.max(initial + 1).min(states);
        ensure!(
            states <= STATES_IN_ANY_CASE || states <= STATES_A_TRANSITION * transitions,
            "{name}:1: {states} states of {transitions} transitions: at most {STATES_IN_ANY_CASE}, or {STATES_A_TRANSITION} \
             times as many as transitions, are possible"
        );
        let table = Table::new(states as u32, texts.len() as u32, initial as u32, sources, &labels, &targets);
        Ok(Aut { table, labels: texts })
    }
}

/// Removes the quotes from a label if it has them.
fn unquoted(written: &[u8]) -> Result<&[u8]> {
    if let Some(rest) = written.strip_prefix(b"\"") {
        return rest.strip_suffix(b"\"").ok_or_else(|| anyhow!("the label `{}` has no closing quote", excerpt(written)));
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    let is_word = written.first().is_some_and(is_letter)
        && written.iter().all(|byte| is_letter(byte) || byte.is_ascii_digit() || *byte == b'_');
    ensure!(is_word || written == b"*", "the label `{}` must be in quotes, because it is not a single word", excerpt(written));
    Ok(written)
}
