//! Checkpoints: files from which a search can be resumed.
//!
//! A search consists of its table, the unexpanded states of its level, the states of the next level found so far, the counts, and
//! the violation found. States are saved as words. So another device, on which references differ, may load the table, and another
//! engine may resume the search. Paths need nothing more, because levels are explored again for them (path.rs).
//!
//! Engines write a checkpoint between two rounds, when no work is under way; on a GPU, between two launches.
//!
//! # What a file can claim
//!
//! Checksums detect damage, but not a file that was made to mislead. Every field that memory safety or termination depends on is
//! checked before it is used:
//!
//! | field | what relies on it | what checks it |
//! |---|---|---|
//! | magic, version, bytes of the header | the layout of the file | `Reading::open` |
//! | model, conditions, deadlocks, reduction | the next-state functions that get the states | `Identity::ensure_is` |
//! | words | starts of states in the lists | `Opened::table_of`: the width of the model's states |
//! | table | the kind of table to load | `Opened::table_of`; the library, which reads the table's own header |
//! | states | counts | number of states stored in the table |
//! | transitions, overflows | counts that continue from there | at most 2^62 |
//! | deadlocks, levels, widest level | counts; length of a path | at most the number of states; at least one level |
//! | waiting, next, offered | number of words that follow | `Reading::words`: memory is allocated as words arrive; waiting + next is at most the number of states |
//! | violating | reports | at most the number of states; levels that have begun; a number for each condition |
//! | found: state, level | the interpreter gets the state; the path has `level` steps | as for other states; the level must have begun; the interpreter must find a violation |
//! | states of the lists | next-state functions, which do not check indices and locations that are always in range | `Intervals::strange` (ir/bounds.rs), for each state |
//! | states of the lists: presence in the table | references to them | `contains_many` |
//! | table: slots, nodes, rows | every operation on the table | the library (src/saved/mod.rs). States of the table that are in no list are only compared, never expanded |

mod file;
mod identity;
#[cfg(all(test, feature = "cpu"))]
mod tests;

use crate::exploration::{Counts, End, Exploration, Found, Limits, Lists, Tally, Violating};
use crate::growth::grow_within;
use crate::successors::{Expansion, Interpreted, Successors};
use crate::table_kind::TableKind;
use anyhow::{Context, Result, bail, ensure};
use file::Reading;
pub use file::{States, ensure_can_be_written};
pub use identity::Identity;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use warpset::{Device, Outcome, Request, Storage, VectorTable};
use warpset_model::checks::Violation;
use warpset_model::ir::Model;
use warpset_model::ir::bounds::Intervals;
use warpset_support::exit;
use warpset_support::program::Ended;
use warpset_support::replacing;

/// States that are looked up at a time.
const PIECE: usize = 1 << 20;

/// Maximum number of transitions and of overflows that a checkpoint may have counted, so that a resumed search does not overflow
/// its counters.
const MOST_COUNTED: u64 = 1 << 62;

/// State of a search at the time of a checkpoint.
pub struct Snapshot<'a> {
    pub counts: Counts,
    pub found: Option<&'a Found>,
    pub violating: &'a Violating,
    /// Words of the unexpanded states of the level.
    pub level: &'a dyn States,
    /// Words of the states of the next level found so far.
    pub next: &'a dyn States,
    /// Words of successors that found the table full.
    pub offered: &'a [u32],
}

/// State of a search that was loaded from a checkpoint.
pub struct Resumed {
    pub counts: Counts,
    pub found: Option<Found>,
    pub violating: Violating,
    pub level: Vec<u32>,
    pub next: Vec<u32>,
}

/// Path and interval of checkpoints.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub path: PathBuf,
    pub every: Duration,
    /// Maximum number of levels between two checkpoints.
    pub levels: Option<u64>,
    /// Shows a warning at once.
    pub warn: fn(&str),
}

/// Writer of a search's checkpoints, with the result of the last one.
pub struct Checkpoints {
    schedule: Schedule,
    identity: Identity,
    /// Number of conditions that are checked.
    conditions: usize,
    table: TableKind,
    last: Mutex<Last>,
}

struct Last {
    time: Instant,
    /// Level of the last checkpoint; the first level if none was written.
    level: u64,
    written: Option<Written>,
    /// Why the last checkpoint could not be written.
    error: Option<String>,
}

/// A checkpoint that was written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub states: u64,
    pub bytes: u64,
    pub took: Duration,
}

/// Result of the checkpoints so far.
#[derive(Clone, Debug)]
pub struct Status {
    pub path: PathBuf,
    pub written: Option<Written>,
    /// Why the last checkpoint was not written.
    pub error: Option<String>,
}

impl Checkpoints {
    /// Creates the writer of a search's checkpoints. `conditions`: number of conditions that it checks. `begun`: number of levels
    /// that have begun already.
    pub fn new(schedule: Schedule, identity: Identity, conditions: usize, table: TableKind, begun: u64) -> Self {
        let last = Last { time: Instant::now(), level: begun.max(1), written: None, error: None };
        Self { schedule, identity, conditions, table, last: last.into() }
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Last> {
        self.last.lock().expect("no thread panics while it has the lock")
    }

    /// Whether a checkpoint is due.
    pub fn is_due(&self, counts: &Counts) -> bool {
        let last = self.last();
        last.time.elapsed() >= self.schedule.every
            || self.schedule.levels.is_some_and(|levels| counts.levels >= last.level.saturating_add(levels))
    }

    /// Writes a checkpoint. An error does not end the search, and leaves the earlier file unchanged.
    pub fn write<S: Storage>(&self, table: &VectorTable<S>, snapshot: &Snapshot) {
        let start = Instant::now();
        let written = file::write(&self.schedule.path, |to| {
            file::put(to, &self.header(snapshot, table.width()), &[snapshot.level, snapshot.next, &snapshot.offered])?;
            Ok(table.save(to)?)
        });
        self.conclude(&snapshot.counts, written.map(|written| (written, start.elapsed())));
    }

    /// Records why no checkpoint is written this time.
    pub fn fail(&self, counts: &Counts, why: &str) {
        self.conclude(counts, Err(anyhow::anyhow!("{why}")));
    }

    fn conclude(&self, counts: &Counts, written: Result<(replacing::Written, Duration)>) {
        let mut last = self.last();
        (last.time, last.level) = (Instant::now(), counts.levels);
        match written {
            Ok((replacing::Written { bytes, folder_error }, took)) => {
                (last.written, last.error) = (Some(Written { states: counts.states, bytes, took }), None);
                if let Some(error) = folder_error {
                    let (path, why) =
                        (self.schedule.path.display(), "a crash of the machine may bring back the checkpoint before it");
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
        let conditions = (0..self.conditions).map(|at| snapshot.violating.of_condition(at));
        let tallies = conditions.chain([snapshot.violating.deadlocks]).map(|Tally { states, level }| json!([states, level]));
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
            "violating": tallies.collect::<Vec<_>>(),
            "found": snapshot.found.map(|found| json!({ "state": found.state, "level": found.level })),
            "waiting": states_of(snapshot.level.count()),
            "next": states_of(snapshot.next.count()),
            "offered": states_of(snapshot.offered.len()),
        })
    }

    /// The result of the checkpoints so far.
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

    /// Whether the checkpoint encodes states as `model` does.
    pub fn has_states_of(&self, model: &Model) -> bool {
        identity::has_states_of(&self.reading.header["model"], model)
    }

    /// Returns the kind of the checkpoint's table, which must be the kind `asked` for, if any.
    ///
    /// # Errors
    ///
    /// The table is of another kind, or the checkpoint is of another model or of a search with other checks.
    pub fn table_of(&self, identity: &Identity, words: usize, asked: Option<TableKind>) -> Result<TableKind> {
        let of = || {
            let header = &self.reading.header;
            identity.ensure_is(&header["model"])?;
            let width = count(header, "words")?;
            ensure!(width == words as u64, "its states have {width} words, but those of the model have {words}");
            let name = header["table"].as_str().unwrap_or_default();
            let kind = TableKind::of_name(name);
            let kind = kind.with_context(|| format!("its table has the unknown kind `{name}`"))?;
            let asked = asked.unwrap_or(kind);
            ensure!(asked == kind, "its table has the kind `{name}`, but --table asks for `{asked}`");
            Ok(kind)
        };
        of().with_context(|| self.failed())
    }

    /// Whether its table stores states as keys.
    pub fn has_keys(&self) -> bool {
        self.reading.header["table"].as_str() == Some(TableKind::Compact.name())
    }

    /// Levels that have begun.
    pub fn levels(&self) -> u64 {
        self.reading.header["levels"].as_u64().unwrap_or(0)
    }

    fn failed(&self) -> String {
        format!("--resume: the search of {} cannot be continued", self.path.display())
    }

    /// Loads the table and the state of the search. If the table must grow for states that had found it full, `limits` limits the
    /// bytes of the table.
    ///
    /// # Errors
    ///
    /// The file is damaged or cut off, or there is no memory for it.
    pub fn load<S: Storage>(
        self,
        device: &Device,
        interpreted: &Interpreted,
        limits: &Limits,
    ) -> Result<(VectorTable<S>, Resumed)> {
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
            let violating = violating_of(&header["violating"], interpreted.checks.conditions.len(), &counts)?;
            let (next, offered) = (count("next")?, count("offered")?);
            let is_possible = counts.waiting.saturating_add(next) <= counts.states
                && (1..=counts.states).contains(&counts.levels)
                && counts.widest_level <= counts.states
                && counts.deadlocks <= counts.states
                && counts.transitions.max(counts.overflows) <= MOST_COUNTED;
            let all = counts.waiting.saturating_add(next).saturating_add(offered).checked_mul(width as u64);
            let all = all.filter(|_| is_possible).context("the file is damaged: its counts contradict each other")?;
            let mut level = reading.words(all)?;
            ensure_can_be_reached(&intervals, &level, width)?;
            let mut offered = level.split_off((counts.waiting + next) as usize * width);
            let mut next = level.split_off(counts.waiting as usize * width);
            let table = VectorTable::<S>::load(device, reading.rest()).context("its table")?;
            reading.end()?;
            ensure!(table.width() == width, "its table has vectors of {} words, not {width}", table.width());
            let stored = table.len()?;
            ensure!(stored == counts.states, "its table has {stored} states, but its header announces {}", counts.states);
            for states in level.chunks(PIECE * width).chain(next.chunks(PIECE * width)) {
                let lost = table.contains_many(states)?.iter().filter(|is_there| !**is_there).count();
                ensure!(lost == 0, "{lost} states of its level are not in its table");
            }
            counts.states += offer_again(&table, &mut offered, &mut next, limits)?;
            if level.is_empty() && !next.is_empty() {
                // The whole level had been expanded, and its last successors found the table full.
                std::mem::swap(&mut level, &mut next);
                counts.levels += 1;
                counts.widest_level = counts.widest_level.max((level.len() / width) as u64);
            }
            Ok((table, Resumed { counts, found, violating, level, next }))
        };
        load().context(failed)
    }
}

fn count(header: &Value, name: &str) -> Result<u64> {
    header[name].as_u64().with_context(|| format!("the file is damaged: its header has no number `{name}`"))
}

/// Returns an error if some of these states cannot be reached: next-state functions must not get them.
fn ensure_can_be_reached(intervals: &Intervals, states: &[u32], width: usize) -> Result<()> {
    match states.par_chunks(width).find_map_any(|state| intervals.strange(state)) {
        None => Ok(()),
        Some(why) => bail!("the file is damaged or forged: it has a state that the model cannot reach: {why}"),
    }
}

/// Reads the state and level of the violation that was found. The level must be one of the `levels` that have begun. The
/// interpreter determines again which violation the state has.
fn found_of(found: &Value, interpreted: &Interpreted, intervals: &Intervals, levels: u64) -> Result<Option<Found>> {
    if found.is_null() {
        return Ok(None);
    }
    let words = found["state"].as_array().into_iter().flatten();
    let state: Vec<u32> = words.filter_map(|word| u32::try_from(word.as_u64()?).ok()).collect();
    let (width, level) = (interpreted.width(), count(found, "level")?);
    ensure!(state.len() == width && level < levels, "the file is damaged: the state that was found is not in its levels");
    ensure_can_be_reached(intervals, &state, width)?;
    let violation =
        violation_of(interpreted, &state).context("the file is damaged: the state that was found violates nothing")?;
    Ok(Some(Found { violation, state, level }))
}

/// Reads the violating states of each condition and the deadlocks.
fn violating_of(saved: &Value, conditions: usize, counts: &Counts) -> Result<Violating> {
    let one = |one: &Value| {
        let (states, level) = (one[0].as_u64()?, one[1].as_u64());
        let is_possible = states <= counts.states && level.is_some() == (states > 0) && level.is_none_or(|at| at < counts.levels);
        is_possible.then_some(Tally { states, level })
    };
    let all: Option<Vec<Tally>> = saved.as_array().and_then(|saved| saved.iter().map(one).collect());
    let all = all.and_then(|mut all| Some((all.pop()?, all)));
    let all = all.filter(|(_, of_conditions)| of_conditions.len() == conditions);
    let (deadlocks, of_conditions) = all.context("the file is damaged: its violating states contradict its counts")?;
    Ok(Violating::new(of_conditions, deadlocks))
}

/// The violation of a state, if it has one.
fn violation_of(interpreted: &Interpreted, state: &[u32]) -> Option<Violation> {
    let mut expansion = Expansion::default();
    interpreted.expand(state, &mut Default::default(), &mut expansion);
    expansion.violation.map(|(_, violation)| violation)
}

/// Puts states that had found the table full, and grows the table if it still is. Adds the new states to `next` and returns their
/// number.
fn offer_again<S: Storage>(table: &VectorTable<S>, offered: &mut Vec<u32>, next: &mut Vec<u32>, limits: &Limits) -> Result<u64> {
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
        if !grow_within(table, limits.of_table(table, Lists::default())?)? {
            let why =
                format!("its table is full with {count} more states to put, and no memory is left for a larger one (--memory)");
            return Err(Ended { code: exit::INCOMPLETE, why }.into());
        }
    }
}

/// Whether the search ended in a way that allows resuming it.
pub fn can_go_on(exploration: &Exploration) -> bool {
    matches!(exploration.end, End::States | End::Memory | End::Stopped(_))
}
