//! Breadth-first exploration, level by level, over a table of the library.
//!
//! A level is expanded in rounds, and a round in pieces. One thread at a time takes a piece: it computes the successors, offers
//! them to the table in one batch, and keeps the new ones for the next level. Only one thread grows the table, and only between
//! rounds; successors that were rejected because the table was full are offered again after it has grown.

mod level;
mod round;

use crate::checkpoint::{Checkpoints, Resumed, Snapshot, can_go_on};
use crate::exploration::{Counts, End, Exploration, Found, Limits, Observer, Standing};
use crate::growth::{GROW_AT_FILL, Growth, grow_within, if_it_fits, put_initial};
use crate::parents::Parents;
use crate::successors::Successors;
use anyhow::{Result, bail, ensure};
use level::Level;
use round::{Findings, PIECE, found_by};
use warpset::{Buffers, Outcome, Reference, Request, Storage, VectorTable};

/// Most states of a round. Progress is shown and limits are checked once per round.
const ROUND: usize = 1 << 18;

/// Callback that gets the vectors offered to a table. Any thread may call it.
pub type Recorder<'a> = dyn Fn(&[u32]) + Sync + 'a;

/// An exploration: table, source of successors and limits.
pub struct HostEngine<'a, S, X> {
    pub table: &'a VectorTable<S>,
    pub source: &'a X,
    pub limits: Limits,
    /// Called with the vectors of each batch before they are offered to the table.
    pub recorder: Option<&'a Recorder<'a>>,
    /// Called between rounds. The exploration ends if it returns false.
    pub observer: &'a Observer<'a>,
}

/// Counts, violation found so far, current level, and the part of the next level that was found.
type Begun = (Counts, Option<Found>, Level, Level);

/// Start of a search.
pub enum Begin<'b> {
    /// At the initial state, with an empty table.
    Initial(&'b [u32]),
    /// At the position of an earlier search.
    Resumed(Resumed),
}

impl<S: Storage, X: Successors> HostEngine<'_, S, X> {
    /// Explores from the initial state, into an empty table. `levels` receives the references of each level's states; they are
    /// valid only if the table has not grown meanwhile.
    pub fn run(&self, initial: &[u32], levels: Option<&mut Vec<Vec<Reference>>>) -> Result<Exploration> {
        self.search(Begin::Initial(initial), levels, None, None)
    }

    /// Explores from `begin` on and writes `checkpoints` meanwhile. `parents` receives the parent of each state; this needs an
    /// indexed table.
    pub fn search(
        &self,
        begin: Begin,
        mut levels: Option<&mut Vec<Vec<Reference>>>,
        checkpoints: Option<&Checkpoints>,
        mut parents: Option<&mut Parents>,
    ) -> Result<Exploration> {
        let wants_references = self.table.spec().is_tree() || levels.is_some() || parents.is_some();
        let (mut kept_bytes, mut list_bytes) = (0, 0);
        // A resumed search has already counted its level.
        let mut is_begun = matches!(begin, Begin::Resumed(_));
        let Some((mut counts, mut found, mut level, mut next)) = self.begin(begin, wants_references)? else {
            return Ok(Exploration::of_nothing());
        };
        let (mut workers, mut rejected) = (self.workers(), Level::default());
        if let Some(parents) = &mut parents {
            parents.add(level.references.iter().map(|initial| (*initial, initial.slot())));
        }
        // `done`: number of expanded states; they are the first ones of the level. `is_whole`: no offered state was lost.
        let (mut done, mut is_whole) = (0, true);
        let end = 'levels: loop {
            let size = level.words.len() / self.source.width();
            // A resumed search may have found all that it has of the next level.
            let waiting = (size + next.words.len() / self.source.width()) as u64;
            if let Some(levels) = levels.as_mut().filter(|_| waiting > 0) {
                levels.push(level.references.clone());
                kept_bytes += size_of_val(&*level.references) as u64;
            }
            let search = Standing { next_level: Some((counts.levels, waiting)), ..Standing::default() };
            if let Some(end) = self.limits.end_of(&search) {
                break end;
            }
            if !std::mem::take(&mut is_begun) {
                counts.levels += 1;
                counts.widest_level = counts.widest_level.max(size as u64);
            }
            counts.waiting = size as u64;
            done = 0;
            while done < size {
                if let Some(checkpoints) = checkpoints.filter(|checkpoints| checkpoints.is_due(&counts)) {
                    self.keep(checkpoints, counts, found.as_ref(), [&level, &next], done, &[]);
                }
                let search = Standing { states: Some(counts.states), ..Standing::default() };
                if let Some(end) = self.limits.end_of(&search) {
                    break 'levels end;
                }
                let lists = kept_bytes + level.bytes() + next.bytes();
                let bytes = lists + bytes_of(&parents);
                list_bytes = bytes.max(list_bytes);
                // Give up the parents rather than end the search.
                let fits = self.grow_for([&mut level, &mut next], bytes, wants_references)?
                    || (drop_parents(&mut parents) && self.grow_for([&mut level, &mut next], lists, wants_references)?);
                if !fits {
                    break 'levels End::Memory;
                }
                let round = done..(done + self.round(&counts)?).min(size);
                done = self.expand(&level, round.clone(), &mut workers, wants_references, parents.is_some())?;
                let mut lists_fit = true;
                let mut violations = Vec::new();
                for Findings { new, rejected: full, transitions, deadlocks, overflows, violations: some } in
                    found_by(&mut workers)
                {
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
                // Sort the violations by the order of the states, so that the thread that found them does not matter.
                violations.sort_by_key(|(piece, ..)| *piece);
                for (_, state, violation) in violations {
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
                let is_refused = !(self.observer)(&counts);
                let stop = (self.limits.stop)().filter(|_| done < round.end);
                let search = Standing { is_out_of_memory: !lists_fit, is_refused, stop, ..Standing::default() };
                // Counts and violations are kept; without memory for the lists, rejected states are lost.
                if let Some(end) = self.limits.end_of(&search) {
                    break 'levels self.limits.end_by(found.as_ref()).unwrap_or(end);
                }
                // States that found the table full are put even if a violation ends the search, so that they count.
                while !rejected.words.is_empty() {
                    let lists = kept_bytes + level.bytes() + next.bytes();
                    let bytes = lists + bytes_of(&parents);
                    let fits = self.grow([&mut level, &mut next], bytes, wants_references)? == Growth::Done
                        || (drop_parents(&mut parents)
                            && self.grow([&mut level, &mut next], lists, wants_references)? == Growth::Done);
                    if !fits {
                        break 'levels self.limits.end_by(found.as_ref()).unwrap_or(End::Memory);
                    }
                    let before = next.words.len();
                    rejected = self.put(&rejected.words, &rejected.parents, &mut next, wants_references)?;
                    if let Some(parents) = &mut parents {
                        next.note(before / self.source.width(), parents);
                    }
                    counts.states += ((next.words.len() - before) / self.source.width()) as u64;
                }
                if let Some(end) = self.limits.end_by(found.as_ref()) {
                    break 'levels end;
                }
            }
            // Swap the lists to reuse their memory: fresh pages would cost more than the writes to them.
            std::mem::swap(&mut level, &mut next);
            next.clear();
        };
        let exploration = Exploration { counts, end, found, list_bytes };
        if let Some(checkpoints) = checkpoints.filter(|_| can_go_on(&exploration)) {
            match is_whole {
                true => self.keep(checkpoints, counts, exploration.found.as_ref(), [&level, &next], done, &rejected.words),
                false => checkpoints.fail(&counts, "no memory for all states of the level"),
            }
        }
        Ok(exploration)
    }

    /// Returns the start of the search, or `None` if there is no memory for the initial state.
    fn begin(&self, begin: Begin, wants_references: bool) -> Result<Option<Begun>> {
        let (mut level, mut next) = (Level::default(), Level::default());
        match begin {
            Begin::Initial(initial) => {
                self.record(initial);
                let Some(reference) = put_initial(self.table, initial, self.limits.of_table(self.table, 0)?)? else {
                    return Ok(None);
                };
                level.words.extend_from_slice(initial);
                level.references.extend(wants_references.then_some(reference));
                Ok(Some((Counts { states: 1, ..Counts::default() }, None, level, next)))
            }
            Begin::Resumed(resumed) => {
                (level.words, next.words) = (resumed.level, resumed.next);
                if wants_references && self.locate([&mut level, &mut next])? != Growth::Done {
                    bail!("no memory for the references of the states");
                }
                Ok(Some((resumed.counts, resumed.found, level, next)))
            }
        }
    }

    /// Writes a checkpoint. The first `done` states of the level were expanded.
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

    /// Puts states for which only the parents are known, if these are kept. Adds the new ones to `new`. Returns the states that
    /// found the table full.
    fn put(&self, states: &[u32], parents: &[u64], new: &mut Level, wants_references: bool) -> Result<Level> {
        self.put_with(states, None, |at| parents.get(at).copied(), wants_references, &mut Buffers::new(), new)
    }

    /// As `put`, with `changes`: the reference of each state's parent, and masks of the words that differ. `results`
    /// is memory for the table's report.
    fn put_with(
        &self,
        states: &[u32],
        changes: Option<(&[Reference], &[u32])>,
        found_from: impl Fn(usize) -> Option<u64>,
        wants_references: bool,
        results: &mut Buffers,
        new: &mut Level,
    ) -> Result<Level> {
        let width = self.source.width();
        let mut request = Request::new().outcomes(true).references(wants_references).into(results);
        if let Some((parents, changed)) = changes {
            request = request.parents(parents).changed(changed);
        }
        // `outcomes(true)`: the table must not return an error for states that are `Full`.
        let _ = self.table.find_or_put_many_with(states, request)?; // the outcomes are in `results`
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
        Ok(rejected)
    }

    fn record(&self, states: &[u32]) {
        if let Some(recorder) = self.recorder {
            recorder(states);
        }
    }

    /// States to expand in the next round: as many as have successors that fit the table below `GROW_AT_FILL`, by the average
    /// number of successors so far.
    fn round(&self, counts: &Counts) -> Result<usize> {
        let room = (self.table.slots() as f64 * GROW_AT_FILL) as u64;
        let room = room.saturating_sub(counts.states);
        let expanded = counts.states.saturating_sub(counts.waiting).max(1);
        let successors = counts.transitions.div_ceil(expanded).max(1);
        Ok(((room / successors) as usize).clamp(PIECE, ROUND))
    }

    /// Grows the table if it is slow and may grow. Returns false if the search cannot go on: the memory limit is exceeded, or
    /// states could not be found again. `bytes`: size of all lists.
    fn grow_for(&self, waiting: [&mut Level; 2], bytes: u64, wants_references: bool) -> Result<bool> {
        if !self.limits.hold(self.table.bytes() + bytes) {
            return Ok(false);
        }
        if self.table.len()? as f64 > self.table.slots() as f64 * GROW_AT_FILL {
            // A refusal is no end: the table may be filled until it rejects states.
            return Ok(self.grow(waiting, bytes, wants_references)? != Growth::Stuck);
        }
        Ok(true)
    }

    /// Grows the table, slots or nodes, whichever are fuller. Refuses if there is no memory.
    fn grow(&self, waiting: [&mut Level; 2], bytes: u64, wants_references: bool) -> Result<Growth> {
        if !grow_within(self.table, self.limits.of_table(self.table, bytes)?)? {
            return Ok(Growth::Refused);
        }
        // References into an indexed table remain valid.
        if wants_references && !self.table.spec().is_indexed() { self.locate(waiting) } else { Ok(Growth::Done) }
    }

    /// Finds the states of the lists in a table that has grown or was loaded, and stores their new references.
    fn locate(&self, lists: [&mut Level; 2]) -> Result<Growth> {
        for level in lists {
            let Some(places) = if_it_fits(self.table.locate_many(&level.words))? else { return Ok(Growth::Stuck) };
            level.references = places.into_iter().flatten().collect();
            ensure!(level.references.len() * self.source.width() == level.words.len(), "the table lost states while it grew");
        }
        Ok(Growth::Done)
    }
}

fn bytes_of(parents: &Option<&mut Parents>) -> u64 {
    parents.as_ref().map_or(0, |parents| parents.bytes())
}

/// Whether the parents have given their memory to the search.
fn drop_parents(parents: &mut Option<&mut Parents>) -> bool {
    parents.as_mut().is_some_and(|parents| parents.drop_parents())
}

#[cfg(all(test, feature = "cpu"))]
pub mod tests;
