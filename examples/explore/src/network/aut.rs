//! State spaces as text: the format AUT of CADP and mCRL2.
//!
//! ```text
//! des (0, <transitions>, <states>)
//! (<from>, <label>, <to>)
//! ```
//!
//! A line is a transition, and its label all between the first and the last comma: so quotes in it need no escape. It is read in
//! pieces as it comes, and takes 12 bytes a transition while it is read, then 8.

use crate::ir::network::Table;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::collections::HashMap;
use std::io::Read;

/// Longest line.
const MOST_BYTES_A_LINE: usize = 16 << 20;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

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
pub fn read(name: &str, mut reader: impl Read, bytes: Option<u64>) -> Result<Aut> {
    let mut lines = Lines {
        line: 0,
        header: None,
        states: 0,
        labels: HashMap::new(),
        texts: Vec::new(),
        last: (Vec::new(), 0),
        all: All::default(),
    };
    let (mut buffer, mut filled) = (vec![0; PIECE], 0);
    loop {
        if filled == buffer.len() {
            ensure!(filled < MOST_BYTES_A_LINE, "{name}:{}: a line of more than {MOST_BYTES_A_LINE} bytes", lines.line + 1);
            buffer.resize(2 * filled, 0);
        }
        let count = reader.read(&mut buffer[filled..]).with_context(|| format!("{name} cannot be read"))?;
        filled += count;
        let mut begin = 0;
        while let Some(length) = find(b'\n', &buffer[begin..filled]) {
            lines.add(&buffer[begin..begin + length], bytes).map_err(|error| lines.place(name, error))?;
            begin += length + 1;
        }
        if count == 0 {
            if begin < filled {
                lines.add(&buffer[begin..filled], bytes).map_err(|error| lines.place(name, error))?;
            }
            break;
        }
        buffer.copy_within(begin..filled, 0);
        filled -= begin;
    }
    drop(buffer);
    lines.finish(name)
}

fn find(byte: u8, text: &[u8]) -> Option<usize> {
    memchr::memchr(byte, text)
}

/// What was read so far.
struct Lines {
    line: u64,
    header: Option<Header>,
    /// One more than the last state that was told of.
    states: u64,
    labels: HashMap<Vec<u8>, u32>,
    texts: Vec<String>,
    /// The last label: the next one is often the same.
    last: (Vec<u8>, u32),
    all: All,
}

#[derive(Clone, Copy)]
struct Header {
    initial: u64,
    transitions: u64,
    states: u64,
}

#[derive(Default)]
struct All {
    sources: Vec<u32>,
    labels: Vec<u32>,
    targets: Vec<u32>,
}

impl Lines {
    fn place(&self, name: &str, error: anyhow::Error) -> anyhow::Error {
        anyhow!("{name}:{}: {error:#}", self.line)
    }

    fn add(&mut self, line: &[u8], bytes: Option<u64>) -> Result<()> {
        self.line += 1;
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        let Some(header) = self.header else {
            let header = header(line)?;
            let announced = bytes.map_or(0, |bytes| header.transitions.min(bytes / FEWEST_BYTES_A_LINE + 1));
            for list in [&mut self.all.sources, &mut self.all.labels, &mut self.all.targets] {
                list.try_reserve_exact(announced as usize).context("there is no memory for so many transitions")?;
            }
            self.header = Some(header);
            return Ok(());
        };
        let count = self.all.sources.len() as u64;
        ensure!(count < header.transitions, "one transition more than the {} that the first line announces", header.transitions);
        let (source, label, target) =
            parts(line).ok_or_else(|| anyhow!("`{}` is no transition: (<from>, <label>, <to>) was expected", excerpt(line)))?;
        for state in [source, target] {
            ensure!(
                state < header.states,
                "the state {state}, where the first line announces {} states: 0 to {}",
                header.states,
                header.states - 1
            );
        }
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

    fn finish(self, name: &str) -> Result<Aut> {
        let Some(Header { initial, transitions, states }) = self.header else {
            bail!("{name}:1: the text ends here: des (0, <transitions>, <states>) was expected");
        };
        let Self { line, states: told, labels: numbers, texts, all: All { sources, labels, targets }, .. } = self;
        // The table wants its memory.
        drop(numbers);
        let found = sources.len();
        ensure!(
            found as u64 == transitions,
            "{name}:{}: the text ends here, after {found} transitions: the first line announces {transitions}",
            line + 1
        );
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

fn header(line: &[u8]) -> Result<Header> {
    let numbers = || {
        let inside = line.strip_prefix(b"des")?.trim_ascii().strip_prefix(b"(")?.strip_suffix(b")")?;
        let mut numbers = inside.split(|byte| *byte == b',').map(|text| number(text.trim_ascii()));
        let header = Header { initial: numbers.next()??, transitions: numbers.next()??, states: numbers.next()?? };
        numbers.next().is_none().then_some(header)
    };
    let Some(header) = numbers() else {
        bail!("`{}` is no first line: des (0, <transitions>, <states>) was expected", excerpt(line));
    };
    let Header { initial, transitions, states } = header;
    ensure!((1..=MOST_STATES).contains(&states), "{states} states: 1 to {MOST_STATES} are possible");
    ensure!(transitions <= MOST_TRANSITIONS, "{transitions} transitions: at most {MOST_TRANSITIONS} are possible");
    ensure!(initial < states, "the initial state {initial} of {states}: they are counted from 0");
    Ok(header)
}

/// Source, label as it is written, and target.
fn parts(line: &[u8]) -> Option<(u64, &[u8], u64)> {
    let inside = line.strip_prefix(b"(")?.strip_suffix(b")")?;
    let (first, last) = (find(b',', inside)?, memchr::memrchr(b',', inside)?);
    if first == last {
        return None;
    }
    let source = number(inside[..first].trim_ascii())?;
    let target = number(inside[last + 1..].trim_ascii())?;
    Some((source, inside[first + 1..last].trim_ascii(), target))
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let digit = |value: u64, digit: &u8| digit.is_ascii_digit().then(|| 10 * value + u64::from(digit - b'0'));
    digits.iter().try_fold(0, digit)
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

fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 80;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)]).escape_debug().to_string();
    if bytes.len() > MOST { format!("{text}...") } else { text }
}
