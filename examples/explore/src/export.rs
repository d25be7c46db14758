//! Writes a state space to a file: states numbered in the order in which a search meets them, and all transitions.
//!
//! This is an engine of its own. Threads find the successors of some states by the interpreter, which knows what steps are
//! called; the table is offered them in one batch; then one thread gives numbers to those it has not met, in the order of their
//! states and steps. So the numbers are the same with any number of threads, and those of a search by one thread, state after
//! state. The table tells where a state is, an array by place its number: 4 bytes a slot, and the words of each state.
//!
//! Transitions go to a temporary file as they are found, since how many there are stands in front of them. The file that was
//! asked for is written once all states are there, and is not touched otherwise. A file that cannot be written ends no
//! search: its counts are exact all the same.
//!
//! What is asked about the states then is answered as by the engine of threads, over the same table. Steps of a product have the
//! names that they have without the property.

use crate::archive::{UntilError, plain};
use crate::engine::{Counts, End, Exploration, Explorer, Found, Lack, Limits, Observer, if_it_fits, put_initial};
use crate::interpreter::{Interpreter, Scratch, Step};
use crate::ir::Model;
use crate::liveness::lasso::Run;
use crate::liveness::possible::{Outcome, Possible};
use crate::liveness::residue::{Automaton, Residue};
use crate::network::HIDDEN;
use crate::npy_writer::npy_header;
use crate::output::Output;
use crate::path::{describe_step, label};
use crate::program;
use crate::report::Measurements;
use crate::successors::{Expansion, Interpreted};
use crate::threads::Threads;
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use warpset::{Reference, Request, Storage, VectorTable};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// States that a thread expands at a time.
const PIECE: usize = 256;

/// States whose successors are offered at once.
const ROUND: usize = 1 << 14;

/// A table that would be fuller grows.
const GROW_AT_FILL: f64 = 0.85;

/// States, at most: their numbers have 32 bits.
const MOST_STATES: usize = u32::MAX as usize - 1;

/// What a slot holds that has no state with a number.
const NONE: u32 = u32::MAX;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text with the labels of transitions.
    Aut,
    /// The arrays `offsets` and `targets`: state s leads to `targets[offsets[s] .. offsets[s + 1]]`.
    Npz,
}

impl Form {
    /// By the extension of a file's name.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("aut") => Ok(Self::Aut),
            Some("npz") => Ok(Self::Npz),
            _ => bail!("--export: {} is to be an .aut or an .npz file", path.display()),
        }
    }
}

/// How much was written.
#[derive(Clone, Copy, Debug)]
pub struct Exported {
    pub bytes: u64,
}

/// The engine, with the file to be written.
pub struct Exporter<'a, S: Storage> {
    /// The engine that answers what is asked.
    threads: Threads<'a, S, Interpreted<'a>>,
    file: Writer,
    output: Option<Output>,
    /// How much was written, or the first error.
    exported: Option<Result<Exported>>,
}

impl<'a, S: Storage> Exporter<'a, S> {
    pub fn new(table: &'a VectorTable<S>, interpreted: &'a Interpreted<'a>, form: Form, output: Output) -> Result<Self> {
        let initial = interpreted.interpreter.model().initial_state();
        let threads = Threads::new(table, interpreted, initial);
        Ok(Self { threads, file: Writer::new(form)?, output: Some(output), exported: None })
    }
}

/// Successors of some states, with the steps to them; what else is found; and how many successors each state has.
#[derive(Default)]
struct Piece {
    expansion: Expansion,
    /// `None`: only the automaton of a property moves.
    steps: Vec<Option<Step>>,
}

/// The states that have numbers.
struct Numbered {
    width: usize,
    /// Of all states, one after another.
    words: Vec<u32>,
    /// By slot of the table.
    of_slots: Vec<u32>,
}

impl Numbered {
    fn len(&self) -> usize {
        self.words.len() / self.width
    }

    fn bytes(&self) -> u64 {
        4 * (self.words.capacity() + self.of_slots.capacity()) as u64
    }

    /// The number of the state in a slot. None if there is no memory for it: an indexed table has some rows more than slots.
    fn of_slot(&mut self, place: Reference) -> Option<&mut u32> {
        let slot = place.slot() as usize;
        if slot >= self.of_slots.len() {
            self.of_slots.try_reserve(slot + 1 - self.of_slots.len()).ok()?;
            self.of_slots.resize(slot + 1, NONE);
        }
        Some(&mut self.of_slots[slot])
    }

    /// Finds all states again, in a table that has grown. False if there is no memory for it.
    fn locate<S: Storage>(&mut self, table: &VectorTable<S>) -> Result<bool> {
        self.of_slots = Vec::new();
        if self.of_slots.try_reserve_exact(table.slots() as usize).is_err() {
            return Ok(false);
        }
        self.of_slots.resize(table.slots() as usize, NONE);
        let words = std::mem::take(&mut self.words);
        let found = self.locate_all(&words, table);
        self.words = words;
        found
    }

    fn locate_all<S: Storage>(&mut self, words: &[u32], table: &VectorTable<S>) -> Result<bool> {
        for (piece, words) in words.chunks(ROUND * self.width).enumerate() {
            let Some(places) = if_it_fits(table.locate_many(words))? else { return Ok(false) };
            for (number, place) in places.into_iter().enumerate() {
                let place = place.context("the table has lost a state as it grew: please report this as a bug")?;
                let Some(of_slot) = self.of_slot(place) else { return Ok(false) };
                *of_slot = (piece * ROUND + number) as u32;
            }
        }
        Ok(true)
    }
}

impl<S: Storage> Explorer for Exporter<'_, S> {
    fn explore(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration> {
        let exploration = self.search(limits, observer)?;
        if exploration.end == End::Complete {
            let output = self.output.take().context("a state space is written once")?;
            let Counts { states, transitions, .. } = exploration.counts;
            if self.exported.is_none() {
                self.exported = Some(self.file.finish(states, transitions, output));
            }
        }
        Ok(exploration)
    }

    fn measurements(&mut self) -> Result<Option<Measurements>> {
        Ok(None)
    }

    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>> {
        self.threads.path(found, limits)
    }

    fn residue(&mut self, automaton: &Automaton, limits: Limits) -> Result<Residue> {
        self.threads.residue(automaton, limits)
    }

    fn lasso(
        &mut self,
        automaton: &Automaton,
        residue: Residue,
        fair: Option<&Interpreter>,
        limits: Limits,
    ) -> Result<Option<Result<Run>>> {
        self.threads.lasso(automaton, residue, fair, limits)
    }

    fn answer(&mut self, possible: &Possible, interpreter: &Interpreter, exploration: &Exploration, limits: Limits) -> Outcome {
        self.threads.answer(possible, interpreter, exploration, limits)
    }

    fn count_accepting(&mut self, automaton: &Automaton) -> Result<Option<u64>> {
        self.threads.count_accepting(automaton)
    }

    fn exported(&mut self) -> Option<Result<Exported>> {
        self.exported.take()
    }
}

impl<S: Storage> Exporter<'_, S> {
    fn search(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration> {
        let (table, model) = (self.threads.table, self.threads.source.interpreter.model());
        let width = table.width();
        let initial = model.initial_state();
        if put_initial(table, &initial, limits.bytes)?.is_none() {
            return Ok(Exploration::of_nothing());
        }
        let mut numbered = Numbered { width, words: initial, of_slots: Vec::new() };
        ensure!(numbered.locate(table)?, "there is no memory for the numbers of {} slots", table.slots());
        let mut counts = Counts { states: 1, levels: 1, widest_level: 1, waiting: 1, ..Counts::default() };
        let mut found: Option<Found> = None;
        let mut list_bytes = 0;
        // States before `done` are expanded, those before `level_end` are of this level.
        let (mut done, mut level_end) = (0, 1);
        let end = loop {
            if done == level_end {
                if level_end == numbered.len() {
                    break End::Complete;
                }
                let size = (numbered.len() - level_end) as u64;
                level_end = numbered.len();
                counts.levels += 1;
                counts.widest_level = counts.widest_level.max(size);
            }
            counts.waiting = (level_end - done) as u64;
            let goes_on = observer(&counts);
            list_bytes = list_bytes.max(numbered.bytes());
            if let Some(stop) = (limits.stop)() {
                break End::Stopped(stop);
            }
            if !goes_on {
                break End::Observer;
            }
            if counts.states >= limits.states {
                break End::States;
            }
            if table.bytes() + numbered.bytes() > limits.bytes {
                break End::Memory;
            }
            let round = done..(done + ROUND).min(level_end);
            let mut pieces = self.expand(&numbered.words[round.start * width..round.end * width]);
            let mut has_fault = false;
            for (piece, first) in pieces.iter_mut().zip(round.clone().step_by(PIECE)) {
                counts.transitions += piece.steps.len() as u64;
                counts.deadlocks += piece.expansion.deadlocks;
                counts.overflows += piece.expansion.overflows;
                if let Some((state, violation)) = piece.expansion.violation.take() {
                    has_fault |= matches!(violation, crate::checks::Violation::Fault(_));
                    let state = numbered.words[(first + state) * width..][..width].to_vec();
                    let other = Found { violation, state, level: counts.levels - 1 };
                    if other.replaces(found.as_ref()) {
                        found = Some(other);
                    }
                }
            }
            let violates = has_fault || (found.is_some() && !limits.keep_going);
            let Some(numbers) = self.number(&mut numbered, &pieces, limits)? else {
                break if violates { End::Violation } else { End::Memory };
            };
            if self.exported.is_none()
                && let Err(error) = self.file.round(model, round.clone(), &pieces, numbers)
            {
                program::print_warning(&format!("warning: --export: nothing will be written: {error:#}\n"));
                self.exported = Some(Err(error));
            }
            done = round.end;
            counts.states = numbered.len() as u64;
            counts.waiting = (level_end - done) as u64;
            if violates {
                break End::Violation;
            }
        };
        Ok(Exploration { counts, end, found, list_bytes })
    }

    /// Pieces of so many states, in their order.
    fn expand(&self, states: &[u32]) -> Vec<Piece> {
        let expand = |scratch: &mut Scratch, states: &[u32]| {
            let mut piece = Piece::default();
            let Piece { expansion, steps } = &mut piece;
            self.threads.source.expand_with(states, scratch, expansion, |step| steps.push(step));
            // The steps of a state with a fault are none.
            piece.steps.truncate(piece.expansion.parents.len());
            piece
        };
        states.par_chunks(PIECE * self.threads.table.width()).map_init(Scratch::default, expand).collect()
    }

    /// Numbers of the successors, those of new states in their order. `None` if there is no memory for them.
    fn number(&self, numbered: &mut Numbered, pieces: &[Piece], limits: Limits) -> Result<Option<Vec<u32>>> {
        let (table, width) = (self.threads.table, numbered.width);
        let words: Vec<u32> = pieces.iter().flat_map(|piece| &piece.expansion.successors).copied().collect();
        let count = words.len() / width;
        let mut places = loop {
            let most = numbered.len() as u64 + count as u64;
            let mut lack = Lack::Slots;
            if most as f64 <= table.slots() as f64 * GROW_AT_FILL {
                let batch = table.find_or_put_many_with(&words, Request::new().references(true))?;
                if batch.tally.full == 0 {
                    break batch.references;
                }
                lack = Lack::of(batch.tally.full, batch.tally.full_nodes);
            }
            if 3 * table.bytes() + 4 * table.slots() + numbered.bytes() > limits.bytes
                || !lack.relieve(table, 2)?
                || !numbered.locate(table)?
            {
                return Ok(None);
            }
        };
        let mut numbers = Vec::with_capacity(count);
        for (place, state) in places.drain(..).zip(words.chunks_exact(width)) {
            let place = place.context("a state that was put has a place")?;
            let known = numbered.len();
            let Some(number) = numbered.of_slot(place) else { return Ok(None) };
            let is_new = *number == NONE;
            if is_new {
                ensure!(known < MOST_STATES, "more than {MOST_STATES} states cannot be numbered");
                *number = known as u32;
            }
            numbers.push(*number);
            if is_new {
                if numbered.words.try_reserve(width).is_err() {
                    return Ok(None);
                }
                numbered.words.extend_from_slice(state);
            }
        }
        Ok(Some(numbers))
    }
}

/// What a step is called.
fn text_of(model: &Model, step: Option<Step>) -> Cow<'_, str> {
    match step {
        Some(Step::Rule(rule)) => label(model, rule).into(),
        Some(step) => describe_step(model, step).into(),
        None => HIDDEN.into(),
    }
}

/// What is written, until it can be.
enum Writer {
    Aut {
        lines: BufWriter<File>,
        /// By step, its label as it is written; not by rules of a network.
        labels: HashMap<Option<Step>, String>,
    },
    Npz {
        offsets: BufWriter<File>,
        targets: BufWriter<File>,
        transitions: u64,
    },
}

impl Writer {
    fn new(form: Form) -> Result<Self> {
        let temporary = || {
            let file = tempfile::tempfile().context("no temporary file can be made for the state space to export")?;
            Ok::<_, anyhow::Error>(BufWriter::with_capacity(1 << 20, file))
        };
        Ok(match form {
            Form::Aut => Self::Aut { lines: temporary()?, labels: HashMap::new() },
            Form::Npz => {
                let mut offsets = temporary()?;
                offsets.write_all(&0u64.to_le_bytes())?;
                Self::Npz { offsets, targets: temporary()?, transitions: 0 }
            }
        })
    }

    /// A transition of the state that is written. `text` makes its label, if it is not kept.
    fn transition<'t>(
        &mut self,
        source: usize,
        target: u32,
        text: impl FnOnce() -> Cow<'t, str>,
        step: Option<Step>,
    ) -> Result<()> {
        match self {
            Self::Aut { lines, labels } => {
                if let Some(Step::Rule(_)) = step {
                    // A network may have as many labels as transitions, and it has their texts.
                    return writeln!(lines, "({source}, {}, {target})", written(&text())).context(NO_ROOM);
                }
                let label = labels.entry(step).or_insert_with(|| written(&text()).into_owned());
                writeln!(lines, "({source}, {label}, {target})").context(NO_ROOM)
            }
            Self::Npz { targets, transitions, .. } => {
                *transitions += 1;
                targets.write_all(&target.to_le_bytes()).context(NO_ROOM)
            }
        }
    }

    /// The transitions of a range of states, in pieces; `numbers` are those of all their targets.
    fn round(&mut self, model: &Model, states: Range<usize>, pieces: &[Piece], numbers: Vec<u32>) -> Result<()> {
        let mut numbers = numbers.into_iter();
        for (Piece { expansion, steps }, first) in pieces.iter().zip(states.clone().step_by(PIECE)) {
            let mut at = 0;
            for state in first..states.end.min(first + PIECE) {
                while at < steps.len() && first + expansion.parents[at] as usize == state {
                    let target = numbers.next().expect("each successor has a number");
                    self.transition(state, target, || text_of(model, steps[at]), steps[at])?;
                    at += 1;
                }
                self.end_of_state()?;
            }
        }
        Ok(())
    }

    fn end_of_state(&mut self) -> Result<()> {
        match self {
            Self::Aut { .. } => Ok(()),
            Self::Npz { offsets, transitions, .. } => offsets.write_all(&transitions.to_le_bytes()).context(NO_ROOM),
        }
    }

    fn finish(&mut self, states: u64, transitions: u64, output: Output) -> Result<Exported> {
        let mut bytes = 0;
        output.write(|file| {
            let mut out = BufWriter::with_capacity(1 << 20, Counted { file, bytes: &mut bytes });
            match self {
                Self::Aut { lines, .. } => {
                    writeln!(out, "des (0, {transitions}, {states})")?;
                    std::io::copy(rewound(lines)?, &mut out)?;
                }
                Self::Npz { offsets, targets, .. } => {
                    let mut archive = ZipWriter::new_stream(UntilError::new(&mut out));
                    // Packing would take longer than everything before it.
                    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
                    archive.start_file("offsets.npy", options).map_err(plain)?;
                    archive.write_all(&npy_header("<u8", &format!("({},)", states + 1)))?;
                    std::io::copy(rewound(offsets)?, &mut archive)?;
                    archive.start_file("targets.npy", options).map_err(plain)?;
                    archive.write_all(&npy_header("<u4", &format!("({transitions},)")))?;
                    std::io::copy(rewound(targets)?, &mut archive)?;
                    archive.finish().map_err(plain)?;
                }
            }
            out.flush()?;
            Ok(())
        })?;
        Ok(Exported { bytes })
    }
}

const NO_ROOM: &str = "the state space to export cannot be written to a temporary file";

/// All that was written, from its beginning.
fn rewound(file: &mut BufWriter<File>) -> Result<&mut File> {
    file.flush().context(NO_ROOM)?;
    let file = file.get_mut();
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Counts what is written.
struct Counted<'a> {
    file: &'a File,
    bytes: &'a mut u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.file.write(bytes)?;
        *self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// A label as AUT has it: words as they are, everything else in quotes, and nothing but ASCII on one line.
fn written(label: &str) -> Cow<'_, str> {
    let is_word =
        label.starts_with(|c: char| c.is_ascii_alphabetic()) && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_word || label == "*" {
        return label.into();
    }
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c.to_string() } else { c.escape_unicode().to_string() };
    format!("\"{}\"", label.chars().map(plain).collect::<String>()).into()
}
