//! Breadth-first exploration, level by level, over a table of the library.
//!
//! A level is expanded in rounds, and a round in pieces. Threads expand pieces in parallel, one thread a piece: it computes the
//! successors, offers them to the table in batches, and keeps the new ones for the next level. Only one thread grows the table,
//! and only between rounds; successors that were rejected because the table was full are offered again after it has grown. If
//! memory gets too short to list the states that wait, they are marked in the table (waiting.rs).

mod level;
mod round;
mod search;
mod waiting;

use crate::checkpoint::{Checkpoints, Resumed};
use crate::exploration::{Counts, Exploration, FEWEST, Limits, Lists, Observer, Violating, bytes_of_marks};
use crate::growth::{GROW_AT_FILL, Growth, grow_within, if_it_fits, put_initial};
use crate::parents::Parents;
use crate::successors::Successors;
use anyhow::{Result, bail, ensure};
use level::Level;
use round::{PIECE, Worker};
use search::{Search, Start};
use waiting::Waiting;
use warpset::{Buffers, Outcome, Reference, Request, Storage, VectorTable};

/// Maximum number of states of a round. Progress is shown and limits are checked once per round.
const ROUND: usize = 1 << 18;

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

/// Where a search begins.
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
        levels: Option<&mut Vec<Vec<Reference>>>,
        checkpoints: Option<&Checkpoints>,
        parents: Option<&mut Parents>,
    ) -> Result<Exploration> {
        let wants_references = self.table.spec().is_tree() || levels.is_some() || parents.is_some();
        let Some(start) = self.begin(begin, wants_references)? else { return Ok(Exploration::of_nothing()) };
        Search::new(self, start, wants_references, levels, checkpoints, parents).run()
    }

    /// Returns the start of the search, or `None` if there is no memory for the initial state.
    fn begin(&self, begin: Begin, wants_references: bool) -> Result<Option<Start>> {
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
                let (counts, violating) = (Counts { states: 1, ..Counts::default() }, Violating::default());
                Ok(Some(Start { counts, found: None, violating, waiting, is_counted: false }))
            }
            Begin::Resumed(resumed) => {
                (level.words, next.words) = (resumed.level, resumed.next);
                let mut waiting = Waiting::new(level, next, self.source.width());
                if wants_references && self.locate(&mut waiting)? != Growth::Done {
                    bail!("no memory for the references of the states");
                }
                let Resumed { counts, found, violating, .. } = resumed;
                Ok(Some(Start { counts, found, violating, waiting, is_counted: true }))
            }
        }
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

#[cfg(all(test, feature = "cpu"))]
pub mod tests;
