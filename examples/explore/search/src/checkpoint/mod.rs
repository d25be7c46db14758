//! Checkpoints: a search as a file, from which it goes on.
//!
//! A search is its table, the states of its level that have not been expanded, those of the next one that were found, and what
//! was counted and found. States are kept as words: so a table may be loaded where references lie otherwise, on another device,
//! and a search may go on by another engine. Paths need nothing more, as levels are explored again for them (path.rs).
//!
//! Engines write one between two rounds, when nothing is under way. On a GPU that is between two launches.
//!
//! # What a file can claim
//!
//! Checksums find damage, and not a file that was made to mislead. What memory safety or the end of a search depends on is
//! checked before it is used:
//!
//! | field | what relies on it | what checks it |
//! |---|---|---|
//! | magic, version, bytes of the header | the layout of the file | `Reading::open` |
//! | model, conditions, deadlocks | which next-state functions the states are given to | `Identity::ensure_is` |
//! | words | where states begin in the lists | `Opened::table_of`: those of the model |
//! | table | which kind of table is loaded | `Opened::table_of`; the library, which looks at the table's own header |
//! | states | counts | the number that the table has stored |
//! | transitions, overflows | counts that go on | at most 2^62 |
//! | deadlocks, levels, widest level | counts; how many levels a path may have | at most as many as states; at least one level |
//! | waiting, next, offered | how many words follow | `Reading::words`: memory is taken as they come; no more waiting and next ones than states |
//! | found: state, level | the interpreter is given the state; the path has as many steps | as other states; a level that has begun; the interpreter must find what is wrong with it |
//! | states of the lists | next-state functions, which check no index and no location that cannot be outside | `Intervals::strange` (ir/bounds.rs), of each state |
//! | that they are in the table | references to them | `contains_many` |
//! | table: slots, nodes, rows | all that a table relies on | the library (src/saved/mod.rs). States in the table that are in no list are compared, and never expanded |

mod file;
mod identity;
#[cfg(all(test, feature = "cpu"))]
mod tests;

use crate::checks::Violation;
use crate::exit;
use crate::exploration::{Counts, End, Exploration, Found};
use crate::growth::{Lack, grow_within};
use crate::ir::bounds::Intervals;
use crate::program::Ended;
use crate::successors::{Expansion, Interpreted, Successors};
use crate::table_kind::TableKind;
use anyhow::{Context, Result, bail, ensure};
use file::Reading;
pub use file::ensure_can_be_written;
pub use identity::Identity;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use warpset::{Device, Outcome, Request, Storage, VectorTable};

/// States that are looked up at a time.
const PIECE: usize = 1 << 20;

/// Most transitions and overflows that a checkpoint may have counted, so that a search can go on counting.
const MOST_COUNTED: u64 = 1 << 62;

/// Where a search is.
pub struct Snapshot<'a> {
    pub counts: Counts,
    pub found: Option<&'a Found>,
    /// Words of the states of the level that have not been expanded.
    pub level: &'a [&'a [u32]],
    /// Words of the states of the next level that were found.
    pub next: &'a [u32],
    /// Words of successors that found the table full.
    pub offered: &'a [u32],
}

/// A search that goes on.
pub struct Resumed {
    pub counts: Counts,
    pub found: Option<Found>,
    pub level: Vec<u32>,
    pub next: Vec<u32>,
}

/// Where checkpoints are written, and how often.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub path: PathBuf,
    pub every: Duration,
    /// After how many levels one is written at the latest.
    pub levels: Option<u64>,
    /// Shows a warning at once.
    pub warn: fn(&str),
}

/// When checkpoints are written, where, and what has come of it.
pub struct Checkpoints {
    schedule: Schedule,
    identity: Identity,
    table: TableKind,
    last: Mutex<Last>,
}

struct Last {
    time: Instant,
    /// The level that it was written in; the first one if none was.
    level: u64,
    written: Option<Written>,
    /// Why there was none the last time.
    error: Option<String>,
}

/// A checkpoint that was written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub states: u64,
    pub bytes: u64,
    pub took: Duration,
}

/// What has come of checkpoints.
#[derive(Clone, Debug)]
pub struct Status {
    pub path: PathBuf,
    pub written: Option<Written>,
    /// Why the last one was not written.
    pub error: Option<String>,
}

impl Checkpoints {
    /// Checkpoints of a search. `begun`: levels that have begun already.
    pub fn new(schedule: Schedule, identity: Identity, table: TableKind, begun: u64) -> Self {
        let last = Last { time: Instant::now(), level: begun.max(1), written: None, error: None };
        Self { schedule, identity, table, last: last.into() }
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Last> {
        self.last.lock().expect("no thread panics while it has the lock")
    }

    /// Whether it is time for one.
    pub fn is_due(&self, counts: &Counts) -> bool {
        let last = self.last();
        last.time.elapsed() >= self.schedule.every
            || self.schedule.levels.is_some_and(|levels| counts.levels >= last.level.saturating_add(levels))
    }

    /// Writes one. What goes wrong does not end the search: the file before is as it was.
    pub fn write<S: Storage>(&self, table: &VectorTable<S>, snapshot: &Snapshot) {
        let start = Instant::now();
        let written = file::write(&self.schedule.path, |to| {
            let lists: Vec<&[u32]> = snapshot.level.iter().copied().chain([snapshot.next, snapshot.offered]).collect();
            file::put(to, &self.header(snapshot, table.width()), &lists)?;
            Ok(table.save(to)?)
        });
        self.conclude(&snapshot.counts, written.map(|written| (written, start.elapsed())));
    }

    /// Says that there is none this time.
    pub fn fail(&self, counts: &Counts, why: &str) {
        self.conclude(counts, Err(anyhow::anyhow!("{why}")));
    }

    fn conclude(&self, counts: &Counts, written: Result<(file::Written, Duration)>) {
        let mut last = self.last();
        (last.time, last.level) = (Instant::now(), counts.levels);
        match written {
            Ok((file::Written { bytes, unsettled }, took)) => {
                (last.written, last.error) = (Some(Written { states: counts.states, bytes, took }), None);
                if let Some(error) = unsettled {
                    let (path, why) = (self.schedule.path.display(), "a crash of the machine may bring the file before it back");
                    (self.schedule.warn)(&format!("warning: --checkpoint: {path} is written, but {why}: {error}\n"));
                }
            }
            Err(error) => {
                let error = format!("{error:#}");
                (self.schedule.warn)(&format!(
                    "warning: --checkpoint: {} is not written: {error}\n",
                    self.schedule.path.display()
                ));
                last.error = Some(error);
            }
        }
    }

    fn header(&self, snapshot: &Snapshot, width: usize) -> Value {
        let Counts { states, transitions, deadlocks, levels, widest_level, overflows, .. } = snapshot.counts;
        let states_of = |words: usize| words / width;
        json!({
            "model": self.identity.json(),
            "table": self.table.name(),
            "words": width,
            "states": states,
            "transitions": transitions,
            "deadlocks": deadlocks,
            "levels": levels,
            "widest_level": widest_level,
            "overflows": overflows,
            "found": snapshot.found.map(|found| json!({ "state": found.state, "level": found.level })),
            "waiting": states_of(snapshot.level.iter().map(|part| part.len()).sum()),
            "next": states_of(snapshot.next.len()),
            "offered": states_of(snapshot.offered.len()),
        })
    }

    /// What has come of it.
    pub fn status(&self) -> Status {
        let Last { written, error, .. } = &*self.last();
        Status { path: self.schedule.path.clone(), written: *written, error: error.clone() }
    }
}

/// A checkpoint whose header was read.
pub struct Opened {
    path: PathBuf,
    reading: Reading,
}

impl Opened {
    /// # Errors
    ///
    /// The file cannot be read, or is no checkpoint that this program reads.
    pub fn open(path: &Path) -> Result<Self> {
        let reading = Reading::open(path).with_context(|| format!("--resume: {} cannot be read", path.display()))?;
        Ok(Self { path: path.into(), reading })
    }

    /// The kind of table that it has, which must be the one that was asked for.
    ///
    /// # Errors
    ///
    /// It has another one, or is of another model, or of a search for something else.
    pub fn table_of(&self, identity: &Identity, words: usize, asked: Option<TableKind>) -> Result<TableKind> {
        let of = || {
            let header = &self.reading.header;
            identity.ensure_is(&header["model"])?;
            let width = count(header, "words")?;
            ensure!(width == words as u64, "its states have {width} words, and those of the model {words}");
            let name = header["table"].as_str().unwrap_or_default();
            let kind = TableKind::of_name(name);
            let kind = kind.with_context(|| format!("its table is of the kind `{name}`, which is not known"))?;
            let asked = asked.unwrap_or(kind);
            ensure!(asked == kind, "its table is of the kind `{name}`, and --table asks for `{asked}`");
            Ok(kind)
        };
        of().with_context(|| self.failed())
    }

    /// Levels that have begun.
    pub fn levels(&self) -> u64 {
        self.reading.header["levels"].as_u64().unwrap_or(0)
    }

    fn failed(&self) -> String {
        format!("--resume: {} cannot be gone on from", self.path.display())
    }

    /// The table, and where the search is. `limit`: bytes that the table may take, if it must grow for states that have found it
    /// full.
    ///
    /// # Errors
    ///
    /// The file is damaged or cut off; there is no memory for it.
    pub fn load<S: Storage>(self, device: &Device, interpreted: &Interpreted, limit: u64) -> Result<(VectorTable<S>, Resumed)> {
        let failed = self.failed();
        let load = || {
            let Self { mut reading, .. } = self;
            let header = reading.header.clone();
            let count = |name| count(&header, name);
            let width = interpreted.width();
            let mut counts = Counts {
                states: count("states")?,
                transitions: count("transitions")?,
                deadlocks: count("deadlocks")?,
                levels: count("levels")?,
                widest_level: count("widest_level")?,
                waiting: count("waiting")?,
                overflows: count("overflows")?,
            };
            let intervals = Intervals::of(interpreted.interpreter.model());
            let found = found_of(&header["found"], interpreted, &intervals, counts.levels)?;
            let (next, offered) = (count("next")?, count("offered")?);
            let is_possible = counts.waiting.saturating_add(next) <= counts.states
                && (1..=counts.states).contains(&counts.levels)
                && counts.widest_level <= counts.states
                && counts.deadlocks <= counts.states
                && counts.transitions.max(counts.overflows) <= MOST_COUNTED;
            let all = counts.waiting.saturating_add(next).saturating_add(offered).checked_mul(width as u64);
            let all = all.filter(|_| is_possible).context("it is damaged: its counts do not fit each other")?;
            let mut level = reading.words(all)?;
            ensure_can_be_reached(&intervals, &level, width)?;
            let mut offered = level.split_off((counts.waiting + next) as usize * width);
            let mut next = level.split_off(counts.waiting as usize * width);
            let table = VectorTable::<S>::load(device, reading.rest()).context("its table")?;
            reading.end()?;
            ensure!(table.width() == width, "its table has vectors of {} words, not {width}", table.width());
            let stored = table.len()?;
            ensure!(stored == counts.states, "its table has {stored} states, not {} as it says", counts.states);
            for states in level.chunks(PIECE * width).chain(next.chunks(PIECE * width)) {
                let lost = table.contains_many(states)?.iter().filter(|is_there| !**is_there).count();
                ensure!(lost == 0, "{lost} states of its level are not in its table");
            }
            counts.states += offer_again(&table, &mut offered, &mut next, limit)?;
            if level.is_empty() && !next.is_empty() {
                // All of the level had been expanded, and what it offered found the table full.
                std::mem::swap(&mut level, &mut next);
                counts.levels += 1;
                counts.widest_level = counts.widest_level.max((level.len() / width) as u64);
            }
            Ok((table, Resumed { counts, found, level, next }))
        };
        load().context(failed)
    }
}

fn count(header: &Value, name: &str) -> Result<u64> {
    header[name].as_u64().with_context(|| format!("it is damaged: its header has no number `{name}`"))
}

/// An error if some of these states cannot be reached: next-state functions must not be given them.
fn ensure_can_be_reached(intervals: &Intervals, states: &[u32], width: usize) -> Result<()> {
    match states.par_chunks(width).find_map_any(|state| intervals.strange(state)) {
        None => Ok(()),
        Some(why) => bail!("it is damaged, or was made to mislead: it has a state that the model cannot reach: {why}"),
    }
}

/// Reads the violation that was found: its state, and its level, which must be one of the `levels` that have begun. The
/// interpreter finds out again what is wrong with the state.
fn found_of(found: &Value, interpreted: &Interpreted, intervals: &Intervals, levels: u64) -> Result<Option<Found>> {
    if found.is_null() {
        return Ok(None);
    }
    let words = found["state"].as_array().into_iter().flatten();
    let state: Vec<u32> = words.filter_map(|word| u32::try_from(word.as_u64()?).ok()).collect();
    let (width, level) = (interpreted.width(), count(found, "level")?);
    ensure!(state.len() == width && level < levels, "it is damaged: what was found is no state of its levels");
    ensure_can_be_reached(intervals, &state, width)?;
    let violation = violation_of(interpreted, &state).context("it is damaged: nothing is wrong with the state that was found")?;
    Ok(Some(Found { violation, state, level }))
}

/// What is wrong with a state.
fn violation_of(interpreted: &Interpreted, state: &[u32]) -> Option<Violation> {
    let mut expansion = Expansion::default();
    interpreted.expand(state, &mut Default::default(), &mut expansion);
    expansion.violation.map(|(_, violation)| violation)
}

/// Puts what has found the table full: it grows, if it still is. New states are added to `next`; returned is how many.
fn offer_again<S: Storage>(table: &VectorTable<S>, offered: &mut Vec<u32>, next: &mut Vec<u32>, limit: u64) -> Result<u64> {
    let (width, before) = (table.width(), next.len());
    loop {
        let batch = table.find_or_put_many_with(offered, Request::new().outcomes(true))?;
        let mut rejected = Vec::new();
        for (outcome, state) in batch.outcomes.iter().zip(offered.chunks_exact(width)) {
            match outcome {
                Outcome::New => next.extend_from_slice(state),
                Outcome::Full => rejected.extend_from_slice(state),
                _ => {}
            }
        }
        if rejected.is_empty() {
            return Ok(((next.len() - before) / width) as u64);
        }
        *offered = rejected;
        let count = offered.len() / width;
        if !grow_within(table, Lack::of(batch.tally.full, batch.tally.full_nodes), [2], table.bytes(), limit)? {
            let why =
                format!("its table is full, with {count} states more to put, and there is no memory for a larger one (--memory)");
            return Err(Ended { code: exit::INCOMPLETE, why }.into());
        }
    }
}

/// What ends a search so that it can go on.
pub fn can_go_on(exploration: &Exploration) -> bool {
    matches!(exploration.end, End::States | End::Memory | End::Stopped(_))
}
