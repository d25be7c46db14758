//! Reads PRISM's explicit text of Markov decision processes and Markov chains.
//!
//! ```text
//! <states> <choices> <transitions>
//! <source> <choice> <target> <probability> [<action>]
//! ```
//!
//! A chain has no number of choices and no choice column: each of its states has one choice.

use crate::graph::{self, Graph, MOST_STATES};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::io::Read;
use warpset_support::lines::{excerpt, for_each, number};
use warpset_support::memory::MemoryBudget;
use warpset_support::numbers::counted;

/// Reads a text to its end.
///
/// # Errors
///
/// The text has an error (the first one is returned, with the file's name and the line), or memory does not suffice (the error
/// has the numbers).
pub fn read(name: &str, reader: impl Read, budget: MemoryBudget) -> Result<Graph> {
    let mut rows: Option<Rows> = None;
    let lines = for_each(name, reader, |line, _| {
        let Some(rows) = &mut rows else {
            let header = Header::of(line)?;
            let Header { states, choices, transitions } = header;
            let bytes = graph::bytes(states, transitions, Some(choices.unwrap_or(states)));
            budget.ensure(&format!("{} and {}", counted(states, "state"), counted(transitions, "transition")), bytes)?;
            rows = Some(Rows { header, lines: 0, last: None, of_states: vec![0], offsets: vec![0], targets: Vec::new() });
            return Ok(());
        };
        rows.add(line)
    })?;
    let Some(rows) = rows else {
        bail!("{name}:1: the text ends here, but <states> <choices> <transitions> was expected");
    };
    rows.finish().map_err(|error| anyhow!("{name}:{}: {error:#}", lines + 1))
}

/// Possible first lines of Storm's explicit format.
const STORM: [&[u8]; 5] = [b"mdp", b"dtmc", b"ctmc", b"ma", b"pomdp"];

#[derive(Clone, Copy)]
struct Header {
    states: u64,
    /// Number of choices; `None` for a chain.
    choices: Option<u64>,
    transitions: u64,
}

impl Header {
    fn of(line: &[u8]) -> Result<Self> {
        let numbers: Option<Vec<u64>> = fields(line).map(number).collect();
        let header = match numbers.as_deref() {
            Some(&[states, choices, transitions]) => Self { states, choices: Some(choices), transitions },
            Some(&[states, transitions]) => Self { states, choices: None, transitions },
            Some(&[states, choices, transitions, _]) => bail!(
                "`{}` is PRISM's first line of a POMDP, with a number of observations; its lines have an observation behind the \
                 probability. The end components are those of the MDP: begin the file with `{states} {choices} {transitions}`, and \
                 leave that column out",
                excerpt(line)
            ),
            None if STORM.iter().any(|name| line.eq_ignore_ascii_case(name)) => bail!(
                "`{}` begins Storm's explicit format, which does not say how many states there are: write \
                 <states> <choices> <transitions> in its place, as PRISM does (for a chain, <states> <transitions>)",
                excerpt(line)
            ),
            _ => bail!(
                "`{}` is not a valid first line: <states> <choices> <transitions> was expected, numbers of at most 19 digits",
                excerpt(line)
            ),
        };
        let Self { states, choices, transitions } = header;
        ensure!(
            (1..=MOST_STATES).contains(&states),
            "the first line announces {states} states, but 1 to {MOST_STATES} are possible"
        );
        if let Some(choices) = choices {
            ensure!(
                choices <= transitions,
                "the first line announces {choices} choices but only {}; each choice needs at least one",
                counted(transitions, "transition")
            );
        }
        Ok(header)
    }
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// Rows read so far.
struct Rows {
    header: Header,
    /// Number of lines, including lines with probability 0.
    lines: u64,
    /// State and choice of the last line.
    last: Option<(u64, u64)>,
    of_states: Vec<u64>,
    offsets: Vec<u64>,
    targets: Vec<u32>,
}

impl Rows {
    fn add(&mut self, line: &[u8]) -> Result<()> {
        let Header { states, choices, transitions } = self.header;
        ensure!(self.lines < transitions, "more transitions than the {transitions} that the first line announces");
        self.lines += 1;
        let mut parts = fields(line);
        let mut next = |what: &str| parts.next().with_context(|| format!("the line ends, but {what} was expected"));
        let mut whole = |what: &str| {
            let field = next(what)?;
            number(field).with_context(|| format!("`{}` found, but {what} was expected", excerpt(field)))
        };
        let source = whole("a state")?;
        let choice = if choices.is_some() { whole("the number of a choice")? } else { 0 };
        let target = whole("a state")?;
        let probability = next("a probability")?;
        let is_positive = is_positive(probability).with_context(|| {
            format!("`{}` found, but a probability was expected: a number like 0.5 or 1/2", excerpt(probability))
        })?;
        // An action may follow, which is one word.
        _ = parts.next();
        if let Some(more) = parts.next() {
            bail!("`{}` found after the action, but the line should end there", excerpt(more));
        }
        for state in [source, target] {
            ensure!(
                state < states,
                "state {state} found, but the first line announces {states} states, numbered 0 to {}",
                states - 1
            );
        }
        if self.last != Some((source, choice)) {
            self.begin_choice(source, choice)?;
        }
        if is_positive {
            self.targets.push(target as u32);
        }
        Ok(())
    }

    fn begin_choice(&mut self, source: u64, choice: u64) -> Result<()> {
        let expected = match self.last {
            Some((state, _)) if source < state => {
                bail!("state {source} after state {state}: lines must be sorted by their states, then by their choices")
            }
            Some((state, choice)) if source == state => choice + 1,
            _ => 0,
        };
        ensure!(
            choice == expected,
            "choice {choice} of state {source} found, but {expected} was expected: choices are numbered from 0 without gaps"
        );
        self.end_choice()?;
        self.of_states.resize(source as usize + 1, self.offsets.len() as u64 - 1);
        self.last = Some((source, choice));
        Ok(())
    }

    fn end_choice(&mut self) -> Result<()> {
        let Some((state, choice)) = self.last else { return Ok(()) };
        let (begin, end) = (self.offsets[self.offsets.len() - 1], self.targets.len() as u64);
        ensure!(begin < end, "choice {choice} of state {state} ends without a transition of positive probability");
        self.offsets.push(end);
        Ok(())
    }

    fn finish(mut self) -> Result<Graph> {
        let Header { states, choices, transitions } = self.header;
        let lines = self.lines;
        ensure!(
            lines == transitions,
            "the text ends after {}, but the first line announces {transitions}",
            counted(lines, "transition")
        );
        self.end_choice()?;
        let found = self.offsets.len() as u64 - 1;
        if let Some(choices) = choices {
            ensure!(found == choices, "the text ends after {}, but the first line announces {choices}", counted(found, "choice"));
        }
        self.of_states.resize(states as usize + 1, found);
        Graph::of_choices(self.of_states, self.offsets, self.targets)
    }
}

/// Whether a probability is more than 0; `None` if the text is not a probability.
fn is_positive(field: &[u8]) -> Option<bool> {
    let text = std::str::from_utf8(field).ok()?;
    let parse = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    match text.split_once('/') {
        None => Some(parse(text)? > 0.0),
        Some((over, under)) => {
            let (over, under) = (parse(over)?, parse(under)?);
            (under > 0.0).then_some(over > 0.0)
        }
    }
}
