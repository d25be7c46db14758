//! Breadth-first exploration, level by level, over a table of the library.
//!
//! The states of a level are taken in rounds, and each round in pieces, one a thread at a time: a thread finds the successors of
//! a piece, offers them to the table in one batch, and keeps those that were new for the next level. Growing the table is for one
//! thread, and between rounds; successors that found it full meanwhile are offered again then.

mod round;

use crate::checkpoint::{Checkpoints, Resumed, Snapshot, can_go_on};
use crate::checks::Violation;
use crate::export::Exported;
use crate::interpreter::Interpreter;
use crate::liveness::check::Verdict;
use crate::liveness::lasso::Run;
use crate::liveness::possible::{Outcome as Answer, Possible};
use crate::liveness::residue::{Automaton, Residue};
use crate::parents::Parents;
use crate::record::Recorder;
use crate::report::Measurements;
use crate::stopping::Stop;
use crate::successors::Successors;
use anyhow::{Result, anyhow, bail, ensure};
use rayon::prelude::*;
use round::{Findings, PIECE, found_by};
use std::time::Duration;
use warpset::{Buffers, Error, Outcome, Reference, Request, Spec, Storage, VectorTable};

/// States a round, at most: how often progress is shown and limits are looked at.
const ROUND: usize = 1 << 18;

/// A table that is fuller grows, if it may: its searches get long (`benches/README.md`).
const GROW_AT_FILL: f64 = 0.85;

/// An exploration: what is explored, into what, and how far.
pub struct Engine<'a, S, X> {
    pub table: &'a VectorTable<S>,
    pub source: &'a X,
    pub limits: Limits,
    /// Gets every vector that is offered.
    pub recorder: Option<&'a Recorder>,
    /// Called between rounds. If it gives false, the exploration ends.
    pub observer: &'a Observer<'a>,
}

/// What is told how far an exploration is, and whether it is to go on.
pub type Observer<'a> = dyn Fn(&Counts) -> bool + Sync + 'a;

/// When to stop before all states are found.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// No new round is begun with as many states.
    pub states: u64,
    /// No state is expanded from this level on; the initial state's is 0.
    pub levels: u64,
    /// Bytes that the table and the states waiting may take, both tables counted while one grows into the other.
    pub bytes: u64,
    /// No violation ends the exploration but a fault.
    pub keep_going: bool,
    /// Whether to stop, whatever has been done, and why. Asked some times a second.
    pub stop: fn() -> Option<Stop>,
}

impl Limits {
    /// All states, whatever is found.
    pub const NONE: Self = Self { states: u64::MAX, levels: u64::MAX, bytes: u64::MAX, keep_going: true, stop: || None };

    /// For the first levels, whatever is found in them.
    pub fn of_levels(self, levels: u64) -> Self {
        Self { states: u64::MAX, levels, keep_going: true, ..self }
    }
}

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Distinct states.
    pub states: u64,
    /// Steps from the states expanded so far, with multiplicity.
    pub transitions: u64,
    /// States without any step.
    pub deadlocks: u64,
    /// Levels begun.
    pub levels: u64,
    /// States of the widest level that was begun.
    pub widest_level: u64,
    /// States of the level that have not been expanded yet.
    pub waiting: u64,
    /// Stores that had to wrap their value.
    pub overflows: u64,
}

/// How an exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All states were found and expanded.
    Complete,
    /// At a violation.
    Violation,
    /// At [`Limits::states`].
    States,
    /// At [`Limits::levels`].
    Levels,
    /// At [`Limits::bytes`], or the device has no more.
    Memory,
    /// At [`Limits::stop`].
    Stopped(Stop),
    /// Whoever observes it has seen enough.
    Observer,
}

#[derive(Clone, Debug)]
pub struct Exploration {
    pub counts: Counts,
    pub end: End,
    /// The first that was found: none is at a lower level. But the fault, if there is one.
    pub found: Option<Found>,
    /// Most bytes that lists of states have taken, beside the table.
    pub list_bytes: u64,
}

impl Exploration {
    /// Without memory for the initial state.
    pub fn of_nothing() -> Self {
        Self { counts: Counts::default(), end: End::Memory, found: None, list_bytes: 0 }
    }
}

/// A violation, and where.
#[derive(Clone, Debug)]
pub struct Found {
    pub violation: Violation,
    pub state: Vec<u32>,
    /// How many steps it is from the initial state.
    pub level: u64,
}

impl Found {
    /// Whether this is to be reported rather than what was found before it.
    pub fn replaces(&self, before: Option<&Found>) -> bool {
        let is_fault = |found: &Found| matches!(found.violation, Violation::Fault(_));
        before.is_none_or(|before| is_fault(self) && !is_fault(before))
    }
}

/// Why engines of several tables, which do not say otherwise, answer nothing about runs.
pub const ONE_TABLE: &str = "what is asked about runs is answered from one table, on one device: ranks are for other searches";

/// An engine with its model and its table.
pub trait Explorer {
    /// Explores from the initial state, into an empty table.
    fn explore(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration>;

    /// What the last exploration took the device's time for, if that was measured.
    fn measurements(&mut self) -> Result<Option<Measurements>>;

    /// What of a product may be on accepting cycles: of all states that were found.
    fn residue(&mut self, _automaton: &Automaton, _limits: Limits) -> Result<Residue> {
        bail!(ONE_TABLE)
    }

    /// A run through the residue: with an interpreter a weakly fair one; `None` if there is none; an error within if there is
    /// one, but it is not found.
    fn lasso(
        &mut self,
        _automaton: &Automaton,
        _residue: Residue,
        _fair: Option<&Interpreter>,
        _limits: Limits,
    ) -> Result<Option<Result<Run>>> {
        bail!(ONE_TABLE)
    }

    /// The answer to a question about where states can lead.
    fn answer(&mut self, _: &Possible, _: &Interpreter, _: &Exploration, _: Limits) -> Answer {
        Answer { verdict: Verdict::Unknown, found: None, has_fault: false, why: Some(anyhow!(ONE_TABLE)), search: Duration::ZERO }
    }

    /// How many of a product's states that were found are accepting; `None` if that is not counted.
    fn count_accepting(&mut self, _automaton: &Automaton) -> Result<Option<u64>> {
        bail!(ONE_TABLE)
    }

    /// The states of a shortest path from the initial state to what the last exploration found. Clears the table.
    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>>;

    /// How much the last exploration has written to a file, or why it could not; `None` without a file to write, or if the
    /// exploration ended before.
    fn exported(&mut self) -> Option<Result<Exported>> {
        None
    }
}

/// Bytes of a slot for a node.
const NODE_BYTES: u64 = 8;

/// What has come of making the table larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    Done,
    /// There is no memory for it. Nothing has changed.
    Refused,
    /// The table has grown, but there is no memory to find the listed states in it again: the search cannot go on.
    Stuck,
}

/// `None` if there was no memory for it, or no room in a table.
pub fn if_it_fits<T>(result: warpset::Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::OutOfMemory { .. } | Error::TableFull { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Bytes that a table of so many slots takes besides while it grows by a factor. `taken`: those of all that is made anew with it.
pub fn bytes_to_grow(spec: Spec, is_on_gpu: bool, slots: u64, taken: u64, factor: u64) -> u64 {
    match (spec.is_indexed(), is_on_gpu) {
        (false, _) => factor * taken,
        // Only the index is made anew, of at most 8 bytes a slot; on a GPU there are up to 8 more for what is kept beside it.
        (true, false) => factor * 8 * slots,
        (true, true) => factor * 16 * slots + (factor - 1) * 4 * spec.width() as u64 * slots,
    }
}

/// The part of a table that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    Slots,
    /// For nodes of trees; there are slots for vectors.
    Nodes,
}

impl Lack {
    /// The full part, by the number of rejected states and how many of these lacked a node.
    pub fn of(rejected: u64, for_nodes: u64) -> Self {
        if rejected > 0 && for_nodes >= rejected { Self::Nodes } else { Self::Slots }
    }

    /// Makes a table larger by a factor: its slots, with nodes in proportion, or its nodes alone. False if there is no memory for
    /// it, or there cannot be more nodes.
    pub fn relieve<S: Storage>(self, table: &VectorTable<S>, factor: u64) -> Result<bool> {
        let grown = match self {
            Self::Slots => table.grow(factor * table.slots()),
            Self::Nodes => table.reserve_nodes(factor * table.node_slots()),
        };
        if matches!(grown, Err(Error::Nodes { .. })) {
            return Ok(false);
        }
        Ok(if_it_fits(grown)?.is_some())
    }
}

/// Makes a table larger, by the first of these factors for which there is memory: few growths cost less than many. False if it
/// stays as it is. The old table and the new one have to be within `limit` bytes; the old one has `taken`, with what grows as it
/// does.
pub fn grow_within<S: Storage, const N: usize>(
    table: &VectorTable<S>,
    lack: Lack,
    factors: [u64; N],
    taken: u64,
    limit: u64,
) -> Result<bool> {
    let (slots, nodes) = (table.slots(), table.node_slots());
    let (is_indexed, is_on_gpu) = (table.spec().is_indexed(), table.device().is_gpu());
    // A kernel gets memory for all rows that there can be, and growth does not look whether there is any.
    let free = if is_indexed && is_on_gpu { table.device().free_memory()? } else { u64::MAX };
    let anew = |factor| match lack {
        Lack::Slots => bytes_to_grow(table.spec(), is_on_gpu, slots, taken, factor),
        Lack::Nodes => taken + (factor - 1) * NODE_BYTES * nodes,
    };
    for factor in factors {
        if taken + anew(factor) <= limit && anew(factor) <= free && lack.relieve(table, factor)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Puts the initial state into an empty table, which is made larger if it has no room for one, within `limit` bytes. `None` if
/// there is no memory for that.
pub fn put_initial<S: Storage>(table: &VectorTable<S>, initial: &[u32], limit: u64) -> Result<Option<Reference>> {
    loop {
        let batch = table.find_or_put_many_with(initial, Request::new().references(true))?;
        if batch.tally.full == 0 {
            ensure!(batch.tally.new == 1, "the table is not empty");
            return Ok(batch.references[0]);
        }
        if !grow_within(table, Lack::of(batch.tally.full, batch.tally.full_nodes), [2], table.bytes(), limit)? {
            return Ok(None);
        }
    }
}

/// States of one level, with their references where these are used.
#[derive(Default)]
struct Level {
    words: Vec<u32>,
    references: Vec<Reference>,
    /// Rows that they were found from, until that is noted.
    parents: Vec<u64>,
}

/// Counts, what was found, the level and what is there of the next one.
type Begun = (Counts, Option<Found>, Level, Level);

/// Where a search begins.
pub enum Begin<'b> {
    /// In the initial state, with an empty table.
    Initial(&'b [u32]),
    /// Where another one was.
    Resumed(Resumed),
}

impl<S: Storage, X: Successors> Engine<'_, S, X> {
    /// Explores from the initial state, into an empty table. `levels` gets the references of each level's states, if it is
    /// wanted: they are valid if the table has not grown.
    pub fn run(&self, initial: &[u32], levels: Option<&mut Vec<Vec<Reference>>>) -> Result<Exploration> {
        self.search(Begin::Initial(initial), levels, None, None)
    }

    /// Explores from there on. Where the search is, is kept meanwhile in files, if it is to be. `parents` gets what each state
    /// was found from, of an indexed table.
    pub fn search(
        &self,
        begin: Begin,
        mut levels: Option<&mut Vec<Vec<Reference>>>,
        checkpoints: Option<&Checkpoints>,
        mut parents: Option<&mut Parents>,
    ) -> Result<Exploration> {
        let wants_references = self.table.spec().is_tree() || levels.is_some() || parents.is_some();
        let (mut kept_bytes, mut list_bytes) = (0, 0);
        // What is begun already needs no count.
        let mut is_begun = matches!(begin, Begin::Resumed(_));
        let Some((mut counts, mut found, mut level, mut next)) = self.begin(begin, wants_references)? else {
            return Ok(Exploration::of_nothing());
        };
        let (mut workers, mut rejected, mut for_nodes) = (self.workers(), Level::default(), 0);
        if let Some(parents) = &mut parents {
            parents.add(level.references.iter().map(|initial| (*initial, initial.slot())));
        }
        // How many states of the level were expanded, which are its first ones; and whether nothing of what was offered is lost.
        let (mut done, mut is_whole) = (0, true);
        let end = 'levels: loop {
            if let Some(levels) = &mut levels {
                levels.push(level.references.clone());
                kept_bytes += size_of_val(&*level.references) as u64;
            }
            if counts.levels == self.limits.levels {
                break End::Levels;
            }
            let size = level.words.len() / self.source.width();
            if !std::mem::take(&mut is_begun) {
                counts.levels += 1;
                counts.widest_level = counts.widest_level.max(size as u64);
            }
            counts.waiting = size as u64;
            let mut has_fault = false;
            done = 0;
            while done < size {
                if let Some(checkpoints) = checkpoints.filter(|checkpoints| checkpoints.is_due(&counts)) {
                    self.keep(checkpoints, counts, found.as_ref(), [&level, &next], done, &[]);
                }
                if counts.states >= self.limits.states {
                    break 'levels End::States;
                }
                let lists = kept_bytes + level.bytes() + next.bytes();
                let bytes = lists + bytes_of(&parents);
                list_bytes = bytes.max(list_bytes);
                // Rather without parents than not at all.
                let fits = self.grow_for([&mut level, &mut next], bytes, wants_references)?
                    || (gives_way(&mut parents) && self.grow_for([&mut level, &mut next], lists, wants_references)?);
                if !fits {
                    break 'levels End::Memory;
                }
                let round = done..(done + self.round(&counts)?).min(size);
                done = self.expand(&level, round.clone(), &mut workers, wants_references, parents.is_some())?;
                let mut lists_fit = true;
                let mut violations = Vec::new();
                for Findings { new, rejected: full, for_nodes: lacking, transitions, deadlocks, overflows, violations: some } in
                    found_by(&mut workers)
                {
                    for_nodes += *lacking;
                    counts.states += (new.words.len() / self.source.width()) as u64;
                    counts.transitions += *transitions;
                    counts.deadlocks += *deadlocks;
                    counts.overflows += *overflows;
                    violations.append(some);
                    if let Some(parents) = &mut parents {
                        new.note(0, parents);
                    }
                    lists_fit = lists_fit && rejected.take(&[full]);
                }
                // In the order of the states, whichever thread had them.
                violations.sort_by_key(|(piece, ..)| *piece);
                for (_, state, violation) in violations {
                    has_fault |= matches!(violation, Violation::Fault(_));
                    let other = Found { violation, state, level: counts.levels - 1 };
                    if other.replaces(found.as_ref()) {
                        found = Some(other);
                    }
                }
                let new: Vec<&Level> = found_by(&mut workers).map(|found| &found.new).collect();
                lists_fit = lists_fit && next.take(&new);
                found_by(&mut workers).for_each(Findings::clear);
                is_whole = lists_fit;
                counts.waiting = (size - done) as u64;
                let goes_on = (self.observer)(&counts);
                // A search that has found what it ends with has ended by that, whatever else comes: it is none to go on with.
                let violates = has_fault || (found.is_some() && !self.limits.keep_going);
                let or_violation = |end| if violates { End::Violation } else { end };
                // What has been counted and found is kept; what is rejected is lost.
                if !lists_fit {
                    break 'levels or_violation(End::Memory);
                }
                if !goes_on {
                    break 'levels or_violation(End::Observer);
                }
                if let Some(stop) = (self.limits.stop)().filter(|_| done < round.end) {
                    break 'levels or_violation(End::Stopped(stop));
                }
                while !rejected.words.is_empty() {
                    let lack = Lack::of((rejected.words.len() / self.source.width()) as u64, for_nodes);
                    let lists = kept_bytes + level.bytes() + next.bytes();
                    let bytes = lists + bytes_of(&parents);
                    let fits = self.grow(lack, [&mut level, &mut next], bytes, wants_references)? == Growth::Done
                        || (gives_way(&mut parents)
                            && self.grow(lack, [&mut level, &mut next], lists, wants_references)? == Growth::Done);
                    if !fits {
                        break 'levels or_violation(End::Memory);
                    }
                    let before = next.words.len();
                    (rejected, for_nodes) = self.put(&rejected.words, &rejected.parents, &mut next, wants_references)?;
                    if let Some(parents) = &mut parents {
                        next.note(before / self.source.width(), parents);
                    }
                    counts.states += ((next.words.len() - before) / self.source.width()) as u64;
                }
                if violates {
                    break 'levels End::Violation;
                }
            }
            if next.words.is_empty() {
                break End::Complete;
            }
            // The memory of both is used again: new pages would cost more than what is written to them.
            std::mem::swap(&mut level, &mut next);
            next.clear();
        };
        let exploration = Exploration { counts, end, found, list_bytes };
        if let Some(checkpoints) = checkpoints.filter(|_| can_go_on(&exploration)) {
            match is_whole {
                true => self.keep(checkpoints, counts, exploration.found.as_ref(), [&level, &next], done, &rejected.words),
                false => checkpoints.fail(&counts, "there was no memory for all states of its level"),
            }
        }
        Ok(exploration)
    }

    /// `None` if there is no memory for the initial state.
    fn begin(&self, begin: Begin, wants_references: bool) -> Result<Option<Begun>> {
        let (mut level, mut next) = (Level::default(), Level::default());
        match begin {
            Begin::Initial(initial) => {
                self.record(initial);
                let Some(reference) = put_initial(self.table, initial, self.limits.bytes)? else { return Ok(None) };
                level.words.extend_from_slice(initial);
                level.references.extend(wants_references.then_some(reference));
                Ok(Some((Counts { states: 1, ..Counts::default() }, None, level, next)))
            }
            Begin::Resumed(resumed) => {
                (level.words, next.words) = (resumed.level, resumed.next);
                if wants_references && self.locate([&mut level, &mut next])? != Growth::Done {
                    bail!("there is no memory for the references of its states");
                }
                Ok(Some((resumed.counts, resumed.found, level, next)))
            }
        }
    }

    /// Writes a checkpoint: so many states of the level were expanded.
    fn keep(
        &self,
        checkpoints: &Checkpoints,
        counts: Counts,
        found: Option<&Found>,
        [level, next]: [&Level; 2],
        done: usize,
        offered: &[u32],
    ) {
        let level = &level.words[done * self.source.width()..];
        checkpoints.write(self.table, &Snapshot { counts, found, level: &[level], next: &next.words, offered });
    }

    /// Puts states of which nothing else is known but, if that is kept, what they were found from. New ones are added to `new`;
    /// returned are those that found the table full, and how many of these lacked a node.
    fn put(&self, states: &[u32], parents: &[u64], new: &mut Level, wants_references: bool) -> Result<(Level, u64)> {
        self.put_with(states, None, |at| parents.get(at).copied(), wants_references, &mut Buffers::new(), new)
    }

    /// The same of changes: of which stored states, and in which words. `results` is memory for what the table reports.
    fn put_with(
        &self,
        states: &[u32],
        changes: Option<(&[Reference], &[u32])>,
        found_from: impl Fn(usize) -> Option<u64>,
        wants_references: bool,
        results: &mut Buffers,
        new: &mut Level,
    ) -> Result<(Level, u64)> {
        let width = self.source.width();
        let mut request = Request::new().outcomes(true).references(wants_references).into(results);
        if let Some((parents, changed)) = changes {
            request = request.parents(parents).changed(changed);
        }
        // Of those that are Full the table is not to make an error.
        let for_nodes = self.table.find_or_put_many_with(states, request)?.tally.full_nodes;
        let mut rejected = Level::default();
        for (at, outcome) in results.outcomes().iter().enumerate() {
            let state = &states[at * width..][..width];
            match outcome {
                Outcome::New => {
                    new.words.extend_from_slice(state);
                    new.references.extend(results.references().get(at).copied().flatten());
                    new.parents.extend(found_from(at));
                }
                Outcome::Full => {
                    rejected.words.extend_from_slice(state);
                    rejected.parents.extend(found_from(at));
                }
                _ => {}
            }
        }
        Ok((rejected, for_nodes))
    }

    fn record(&self, states: &[u32]) {
        if let Some(recorder) = self.recorder {
            recorder.add(states);
        }
    }

    /// How many states to expand in the next round: as many as have successors that fit the table without it getting slow, by
    /// what they had until now.
    fn round(&self, counts: &Counts) -> Result<usize> {
        let room = (self.table.slots() as f64 * GROW_AT_FILL) as u64;
        let room = room.saturating_sub(counts.states);
        let expanded = counts.states.saturating_sub(counts.waiting).max(1);
        let successors = counts.transitions.div_ceil(expanded).max(1);
        Ok(((room / successors) as usize).clamp(PIECE, ROUND))
    }

    /// Grows the table if it gets slow and may grow. False if the search cannot go on: what there is is too much, or got lost.
    /// `bytes` are those of all lists.
    fn grow_for(&self, waiting: [&mut Level; 2], bytes: u64, wants_references: bool) -> Result<bool> {
        if self.table.bytes() + bytes > self.limits.bytes {
            return Ok(false);
        }
        if self.table.len()? as f64 > self.table.slots() as f64 * GROW_AT_FILL {
            // If it must not, it may be filled until it rejects states.
            return Ok(self.grow(Lack::Slots, waiting, bytes, wants_references)? != Growth::Stuck);
        }
        Ok(true)
    }

    /// Makes the table, or what it lacks of it, twice as large, if there is memory for that.
    fn grow(&self, lack: Lack, waiting: [&mut Level; 2], bytes: u64, wants_references: bool) -> Result<Growth> {
        if !grow_within(self.table, lack, [2], self.table.bytes(), self.limits.bytes.saturating_sub(bytes))? {
            return Ok(Growth::Refused);
        }
        // Those of an indexed table stay.
        if wants_references && !self.table.spec().is_indexed() { self.locate(waiting) } else { Ok(Growth::Done) }
    }

    /// Finds the states of lists in a table that has grown, or was loaded.
    fn locate(&self, lists: [&mut Level; 2]) -> Result<Growth> {
        for level in lists {
            let Some(places) = if_it_fits(self.table.locate_many(&level.words))? else { return Ok(Growth::Stuck) };
            level.references = places.into_iter().flatten().collect();
            ensure!(level.references.len() * self.source.width() == level.words.len(), "the table has lost states as it grew");
        }
        Ok(Growth::Done)
    }
}

fn bytes_of(parents: &Option<&mut Parents>) -> u64 {
    parents.as_ref().map_or(0, |parents| parents.bytes())
}

/// Whether what states were found from gives its memory to the search.
fn gives_way(parents: &mut Option<&mut Parents>) -> bool {
    parents.as_mut().is_some_and(|parents| parents.give_way())
}

impl Level {
    /// Adds states of others. False if there is no memory for them.
    fn take(&mut self, new: &[&Level]) -> bool {
        let words: Vec<&[u32]> = new.iter().map(|level| &*level.words).collect();
        let references: Vec<&[Reference]> = new.iter().map(|level| &*level.references).collect();
        let parents: Vec<&[u64]> = new.iter().map(|level| &*level.parents).collect();
        add_all(&mut self.words, &words) && add_all(&mut self.references, &references) && add_all(&mut self.parents, &parents)
    }

    /// Notes what the states from number `first` on were found from.
    fn note(&mut self, first: usize, parents: &mut Parents) {
        parents.add(self.references[first..].iter().copied().zip(self.parents.drain(..)));
    }

    fn clear(&mut self) {
        self.words.clear();
        self.references.clear();
        self.parents.clear();
    }

    fn bytes(&self) -> u64 {
        let references = self.references.capacity() * size_of::<Reference>() + self.parents.capacity() * size_of::<u64>();
        (self.words.capacity() * 4 + references) as u64
    }
}

/// Adds the values of several lists to one, by several threads. False, and nothing is added, if there is no memory for them.
fn add_all<T: Copy + Send + Sync>(list: &mut Vec<T>, more: &[&[T]]) -> bool {
    let count = more.iter().map(|part| part.len()).sum();
    if list.try_reserve(count).is_err() {
        return false;
    }
    let mut room = list.spare_capacity_mut();
    let mut copies = Vec::with_capacity(more.len());
    for part in more {
        let (to, rest) = room.split_at_mut(part.len());
        copies.push((to, *part));
        room = rest;
    }
    copies.into_par_iter().for_each(|(to, part)| to.iter_mut().zip(part).for_each(|(to, from)| _ = to.write(*from)));
    // SAFETY: `count` values behind the last one were reserved, and have been written.
    unsafe { list.set_len(list.len() + count) };
    true
}

/// Adds a bit for each word, set if the states differ in it, in whole words.
pub fn differences(state: &[u32], other: &[u32], masks: &mut Vec<u32>) {
    for (part, of_other) in state.chunks(32).zip(other.chunks(32)) {
        let bits = part.iter().zip(of_other).enumerate().map(|(bit, (a, b))| u32::from(a != b) << bit);
        masks.push(bits.sum());
    }
}

#[cfg(all(test, feature = "cpu"))]
pub mod tests;
