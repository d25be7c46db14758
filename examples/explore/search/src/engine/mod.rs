//! Breadth-first exploration, level by level, over a table of the library.
//!
//! A level is expanded in rounds, and a round in pieces. One thread at a time takes a piece: it computes the successors, offers
//! them to the table in one batch, and keeps the new ones for the next level. Only one thread grows the table, and only between
//! rounds; successors that were rejected because the table was full are offered again after it has grown. If memory gets too
//! short to list the states that wait, they are marked in the table (waiting.rs).

mod level;
mod round;
mod waiting;

use crate::checkpoint::{Checkpoints, Resumed, Snapshot, can_go_on};
use crate::exploration::{
    Counts, End, Exploration, Found, LevelSizes, Limits, Lists, Observer, Standing, Violating, bytes_of_marks,
};
use crate::growth::{GROW_AT_FILL, Growth, grow_within, if_it_fits, put_initial};
use crate::parents::Parents;
use crate::successors::Successors;
use anyhow::{Result, bail, ensure};
use level::Level;
use round::{Findings, Needs, PIECE, Worker, found_by};
use waiting::Waiting;
use warpset::{Buffers, Outcome, Reference, Request, Storage, VectorTable};

/// Maximum number of states of a round. Progress is shown and limits are checked once per round.
const ROUND: usize = 1 << 18;

/// Minimum number of states of a round when memory is too short for more. A round of fewer than [`PIECE`] states has work for one
/// thread only.
const FEWEST: usize = 64;

/// If a memory limit allows at most this many vectors for each slot of a table, it allows no larger table: tables are filled to
/// 95 %, and 2 % are for rounding.
const NEARLY_ALL: f64 = 0.97;

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

/// Counts, violation found so far, violating states, and the states that wait.
type Begun = (Counts, Option<Found>, Violating, Waiting);

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
        let may_be_marked = levels.is_none();
        // A resumed search has already counted its level.
        let mut is_begun = matches!(begin, Begin::Resumed(_));
        let Some((mut counts, mut found, mut violating, mut waiting)) = self.begin(begin, wants_references)? else {
            return Ok(Exploration::of_nothing());
        };
        let (mut workers, mut rejected) = (self.workers(), Level::default());
        if let Some(parents) = &mut parents {
            parents.begin_level();
            parents.add(waiting.level.references.iter().map(|initial| (*initial, initial.slot())));
            parents.begin_level();
        }
        // False if an offered state was lost because there was no memory to list it.
        let mut is_whole = true;
        let mut level_sizes = LevelSizes::default();
        let end = 'levels: loop {
            // A resumed search may already have found all that it will find of the next level.
            let left = (waiting.left() + waiting.found()) as u64;
            if let Some(levels) = levels.as_mut().filter(|_| left > 0) {
                levels.push(waiting.level.references.clone());
                kept_bytes += size_of_val(&*waiting.level.references) as u64;
            }
            let search = Standing { next_level: Some((counts.levels, left)), ..Standing::default() };
            if let Some(end) = self.limits.end_of(&search) {
                break end;
            }
            counts.waiting = waiting.left() as u64;
            if !std::mem::take(&mut is_begun) {
                counts.levels += 1;
                counts.widest_level = counts.widest_level.max(counts.waiting);
                level_sizes.add(counts.waiting);
            }
            while waiting.left() > 0 {
                // A violation may end the search with this level: then only missing memory ends it earlier, or a stop.
                let ends = self.limits.end_by(found.as_ref());
                if let Some(checkpoints) = checkpoints.filter(|checkpoints| ends.is_none() && checkpoints.is_due(&counts)) {
                    self.keep(checkpoints, counts, (found.as_ref(), &violating), &waiting, &[]);
                }
                let search = Standing { states: Some(counts.states).filter(|_| ends.is_none()), ..Standing::default() };
                if let Some(end) = self.limits.end_of(&search) {
                    break 'levels end;
                }
                if may_be_marked {
                    self.mark_if_short(&mut waiting, &mut workers, kept_bytes + bytes_of(&parents))?;
                }
                let lists = |waiting: &Waiting, workers: &[Worker], kept| Lists {
                    waiting: waiting.bytes() + workers.iter().map(Worker::bytes).sum::<u64>(),
                    kept,
                    may_be_marked,
                };
                let all = lists(&waiting, &workers, kept_bytes + bytes_of(&parents));
                list_bytes = (all.waiting + all.kept).max(list_bytes);
                // Give up the parents rather than end the search.
                let fits = self.grow_for(&mut waiting, all, wants_references)?
                    || (drop_parents(&mut parents)
                        && self.grow_for(&mut waiting, Lists { kept: kept_bytes, ..all }, wants_references)?);
                if !fits {
                    break 'levels ends.unwrap_or(End::Memory);
                }
                let round = waiting.round(self.table, self.round(&counts, all))?;
                let level = counts.levels - 1;
                let needs = Needs {
                    level,
                    only_faults: found.as_ref().is_some_and(|found| found.level < level),
                    references: wants_references || waiting.are_marked(),
                    parents: parents.is_some(),
                };
                let done = self.expand(&waiting.level, round.clone(), &mut workers, needs)?;
                waiting.expanded(done);
                let mut lists_fit = true;
                for findings in found_by(&mut workers) {
                    let Findings { new, rejected: full, transitions, deadlocks, overflows, violating: more, found: other } =
                        findings;
                    violating.add(level, more, *deadlocks);
                    counts.states += (new.words.len() / self.source.width()) as u64;
                    counts.transitions += *transitions;
                    counts.deadlocks += *deadlocks;
                    counts.overflows += *overflows;
                    if let Some(other) = other.take().filter(|other| other.replaces(found.as_ref())) {
                        found = Some(other);
                    }
                    if let Some(parents) = &mut parents {
                        new.note(0, parents);
                    }
                    lists_fit = lists_fit && rejected.take(&[full]);
                }
                let new: Vec<&Level> = found_by(&mut workers).map(|found| &found.new).collect();
                lists_fit = lists_fit && waiting.take(&new);
                found_by(&mut workers).for_each(Findings::clear);
                is_whole = lists_fit;
                counts.waiting = waiting.left() as u64;
                let is_refused = !(self.observer)(&counts);
                let stop = (self.limits.stop)().filter(|_| done < round.end);
                let search = Standing { is_out_of_memory: !lists_fit, is_refused, stop, ..Standing::default() };
                // Counts and violations are kept; without memory for the lists, rejected states are lost.
                if let Some(end) = self.limits.end_of(&search) {
                    break 'levels self.limits.end_by(found.as_ref()).unwrap_or(end);
                }
                // States that found the table full are put.
                while !rejected.words.is_empty() {
                    let all = lists(&waiting, &workers, kept_bytes + bytes_of(&parents));
                    let fits = self.grow(&mut waiting, all, wants_references)? == Growth::Done
                        || (drop_parents(&mut parents)
                            && self.grow(&mut waiting, Lists { kept: kept_bytes, ..all }, wants_references)? == Growth::Done);
                    if !fits {
                        break 'levels self.limits.end_by(found.as_ref()).unwrap_or(End::Memory);
                    }
                    let mut new = Level::default();
                    let references = wants_references || waiting.are_marked();
                    rejected = self.put(&rejected.words, &rejected.parents, &mut new, references)?;
                    if let Some(parents) = &mut parents {
                        new.note(0, parents);
                    }
                    counts.states += (new.words.len() / self.source.width()) as u64;
                    is_whole = waiting.take(&[&new]);
                    if !is_whole {
                        break 'levels self.limits.end_by(found.as_ref()).unwrap_or(End::Memory);
                    }
                }
            }
            if let Some(end) = self.limits.end_by(found.as_ref()) {
                break end;
            }
            waiting.next_level();
            if let Some(parents) = &mut parents {
                parents.begin_level();
            }
        };
        let exploration = Exploration { counts, end, found, list_bytes, level_sizes, violating };
        if let Some(checkpoints) = checkpoints.filter(|_| can_go_on(&exploration)) {
            match is_whole {
                true => {
                    let found = (exploration.found.as_ref(), &exploration.violating);
                    self.keep(checkpoints, counts, found, &waiting, &rejected.words);
                }
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
                let Some(reference) = put_initial(self.table, initial, self.limits.of_table(self.table, Lists::default())?)?
                else {
                    return Ok(None);
                };
                level.words.extend_from_slice(initial);
                level.references.extend(wants_references.then_some(reference));
                let waiting = Waiting::new(level, next, self.source.width());
                Ok(Some((Counts { states: 1, ..Counts::default() }, None, Violating::default(), waiting)))
            }
            Begin::Resumed(resumed) => {
                (level.words, next.words) = (resumed.level, resumed.next);
                let mut waiting = Waiting::new(level, next, self.source.width());
                if wants_references && self.locate(&mut waiting)? != Growth::Done {
                    bail!("no memory for the references of the states");
                }
                Ok(Some((resumed.counts, resumed.found, resumed.violating, waiting)))
            }
        }
    }

    /// Writes a checkpoint. `found`: the violation and the violating states. `offered`: words of successors that found the table
    /// full.
    fn keep(
        &self,
        checkpoints: &Checkpoints,
        counts: Counts,
        (found, violating): (Option<&Found>, &Violating),
        waiting: &Waiting,
        offered: &[u32],
    ) {
        let [level, next] = waiting.words(self.table);
        checkpoints.write(self.table, &Snapshot { counts, found, violating, level: &level, next: &next, offered });
    }

    /// Puts `states` and, if parents are kept, notes their `parents`; nothing else is known about them. Adds the new states to
    /// `new`. Returns the states that found the table full.
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

    /// Number of states to expand in the next round. By the average number of successors so far, their successors fit the table
    /// below `GROW_AT_FILL`, and take at most half of the memory left when threads list them. At least [`PIECE`] states if the
    /// table is the limit, and at least [`FEWEST`] if memory is.
    fn round(&self, counts: &Counts, lists: Lists) -> usize {
        let room = (self.table.slots() as f64 * GROW_AT_FILL) as u64;
        let room = room.saturating_sub(counts.states);
        let expanded = counts.states.saturating_sub(counts.waiting).max(1);
        let successors = counts.transitions.div_ceil(expanded).max(1);
        let taken = self.table.bytes() + lists.waiting + lists.kept;
        // Threads list new states, and then all are copied to one list.
        let of_state = 2 * (4 * self.source.width() + size_of::<Reference>()) as u64;
        let listed = self.limits.bytes.saturating_sub(taken) / 2 / of_state;
        let [in_table, in_lists] = [room, listed].map(|states| (states / successors) as usize);
        in_table.max(PIECE).min(in_lists.max(FEWEST)).min(ROUND)
    }

    /// Marks the states that wait if memory becomes too short to list them, and if marks take less. Frees the lists of threads,
    /// which are empty between rounds, if memory is short. `kept`: bytes of other lists.
    fn mark_if_short(&self, waiting: &mut Waiting, workers: &mut Vec<Worker>, kept: u64) -> Result<()> {
        let marks = bytes_of_marks(self.table.slots());
        let listed = waiting.bytes() + workers.iter().map(Worker::bytes).sum::<u64>();
        let taken = self.table.bytes() + kept + listed;
        let is_short = if waiting.are_marked() {
            taken > self.limits.bytes
        } else {
            // The lists are still in memory while marks are made.
            taken + marks > self.limits.bytes && marks < listed && waiting.mark(self.table)?
        };
        if is_short {
            *workers = self.workers();
        }
        Ok(())
    }

    /// Grows the table if it is filled above `GROW_AT_FILL` and no states are marked. Returns false if the search cannot go on:
    /// the memory limit is exceeded, or states could not be found again.
    fn grow_for(&self, waiting: &mut Waiting, lists: Lists, wants_references: bool) -> Result<bool> {
        if !self.limits.hold(self.table.bytes() + lists.waiting + lists.kept) {
            return Ok(false);
        }
        // If states are marked, memory is short. Then the table grows only when it is full.
        if !waiting.are_marked() && self.table.len()? as f64 > self.table.slots() as f64 * GROW_AT_FILL {
            // If growth is refused, the search goes on: the table may be filled until it rejects states.
            return Ok(self.grow(waiting, lists, wants_references)? != Growth::Stuck);
        }
        Ok(true)
    }

    /// Grows the table, slots or nodes, whichever are fuller. Refuses if there is no memory.
    fn grow(&self, waiting: &mut Waiting, mut lists: Lists, wants_references: bool) -> Result<Growth> {
        // Places in an indexed table remain valid, and so do their marks.
        let moves = !self.table.spec().is_indexed();
        if waiting.are_marked() && moves {
            lists.waiting = waiting.bytes_listed(wants_references);
            let limit = self.limits.of_table(self.table, lists)?;
            let is_full = self.table.vectors_within(limit)? as f64 <= NEARLY_ALL * self.table.slots() as f64;
            let fits = self.table.bytes() + lists.waiting + lists.kept <= self.limits.bytes;
            if is_full || !fits || !waiting.list(self.table)? {
                return Ok(Growth::Refused);
            }
        }
        if !grow_within(self.table, self.limits.of_table(self.table, lists)?)? {
            return Ok(Growth::Refused);
        }
        if wants_references && moves { self.locate(waiting) } else { Ok(Growth::Done) }
    }

    /// Finds the listed states in a table that has grown or was loaded, and stores their new references.
    fn locate(&self, waiting: &mut Waiting) -> Result<Growth> {
        for level in [&mut waiting.level, &mut waiting.next] {
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

/// Drops the parents to free memory for the search, unless they are wanted. Returns whether they were dropped.
fn drop_parents(parents: &mut Option<&mut Parents>) -> bool {
    parents.as_mut().is_some_and(|parents| parents.drop_parents())
}

#[cfg(all(test, feature = "cpu"))]
pub mod tests;
