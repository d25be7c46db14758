//! A search in progress: its loop over levels and rounds, and the steps of a round.

use super::HostEngine;
use super::level::Level;
use super::round::{Findings, Needs, Worker, found_by};
use super::waiting::Waiting;
use crate::checkpoint::{Checkpoints, Snapshot, can_go_on};
use crate::exploration::{Counts, End, Exploration, Found, LevelSizes, Lists, Standing, Violating};
use crate::growth::Growth;
use crate::parents::Parents;
use crate::successors::Successors;
use anyhow::Result;
use std::convert::Infallible;
use warpset::{Reference, Storage};

/// A search: what it has found, the states that wait, and the lists that its caller wants.
pub struct Search<'s, 'e, S, X> {
    engine: &'s HostEngine<'e, S, X>,
    counts: Counts,
    /// The violation found so far.
    found: Option<Found>,
    violating: Violating,
    waiting: Waiting,
    workers: Vec<Worker>,
    /// Successors that found the table full.
    rejected: Level,
    /// References of each level's states, if wanted.
    levels: Option<&'s mut Vec<Vec<Reference>>>,
    checkpoints: Option<&'s Checkpoints>,
    /// The parent of each state, if wanted.
    parents: Option<&'s mut Parents>,
    /// Whether the listed states have references.
    wants_references: bool,
    /// Whether the level is counted already: a resumed search has counted it before.
    is_counted: bool,
    /// False if an offered state was lost because there was no memory to list it.
    is_whole: bool,
    /// Bytes of `levels`.
    kept_bytes: u64,
    /// Largest size of all lists in bytes.
    list_bytes: u64,
    level_sizes: LevelSizes,
}

/// The counts and states with which a search starts.
pub struct Start {
    pub counts: Counts,
    pub found: Option<Found>,
    pub violating: Violating,
    pub waiting: Waiting,
    /// Whether `counts` has the level whose states wait.
    pub is_counted: bool,
}

/// Reason that stops the loop of a search.
pub enum Halt {
    End(End),
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Halt {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl<'s, 'e, S: Storage, X: Successors> Search<'s, 'e, S, X> {
    pub fn new(
        engine: &'s HostEngine<'e, S, X>,
        start: Start,
        wants_references: bool,
        levels: Option<&'s mut Vec<Vec<Reference>>>,
        checkpoints: Option<&'s Checkpoints>,
        mut parents: Option<&'s mut Parents>,
    ) -> Self {
        let Start { counts, found, violating, waiting, is_counted } = start;
        if let Some(parents) = &mut parents {
            parents.begin_level();
            parents.add(waiting.level.references.iter().map(|initial| (*initial, initial.slot())));
            parents.begin_level();
        }
        Self {
            engine,
            counts,
            found,
            violating,
            waiting,
            workers: engine.workers(),
            rejected: Level::default(),
            levels,
            checkpoints,
            parents,
            wants_references,
            is_counted,
            is_whole: true,
            kept_bytes: 0,
            list_bytes: 0,
            level_sizes: LevelSizes::default(),
        }
    }

    /// Searches to the end.
    pub fn run(mut self) -> Result<Exploration> {
        let Err(halt) = self.levels();
        match halt {
            Halt::End(end) => Ok(self.finish(end)),
            Halt::Failed(error) => Err(error),
        }
    }

    /// The loop of the search. Every step may halt it.
    fn levels(&mut self) -> Result<Infallible, Halt> {
        loop {
            self.begin_level()?;
            while self.waiting.left() > 0 {
                self.keep_if_due();
                self.check_limits()?;
                let lists = self.make_room()?;
                let is_cut_short = self.expand_round(lists)?;
                let lists_fit = self.take_findings();
                self.check_round(is_cut_short, lists_fit)?;
                while !self.rejected.words.is_empty() {
                    self.put_rejected()?;
                }
            }
            self.check_violation()?;
            self.next_level();
        }
    }

    /// Counts a level, and copies its references if they are wanted. Halts if there is no further level.
    fn begin_level(&mut self) -> Result<(), Halt> {
        // A resumed search may already have found all that it will find of the next level.
        let left = (self.waiting.left() + self.waiting.found()) as u64;
        if let Some(levels) = self.levels.as_mut().filter(|_| left > 0) {
            levels.push(self.waiting.level.references.clone());
            self.kept_bytes += size_of_val(&*self.waiting.level.references) as u64;
        }
        self.check(&Standing { next_level: Some((self.counts.levels, left)), ..Standing::default() })?;
        self.counts.waiting = self.waiting.left() as u64;
        if !std::mem::take(&mut self.is_counted) {
            self.counts.levels += 1;
            self.counts.widest_level = self.counts.widest_level.max(self.counts.waiting);
            self.level_sizes.add(self.counts.waiting);
        }
        Ok(())
    }

    /// Writes a checkpoint if one is due, unless the search ends with this level.
    fn keep_if_due(&self) {
        let is_due = |checkpoints: &&Checkpoints| self.violation_end().is_none() && checkpoints.is_due(&self.counts);
        if let Some(checkpoints) = self.checkpoints.filter(is_due) {
            self.keep(checkpoints, &[]);
        }
    }

    /// Halts if a limit is reached. If a violation ends the search with this level, the number of states does not end it earlier.
    fn check_limits(&self) -> Result<(), Halt> {
        let states = Some(self.counts.states).filter(|_| self.violation_end().is_none());
        self.check(&Standing { states, ..Standing::default() })
    }

    /// Keeps tables and lists within their memory: marks states that wait, or grows the table. Halts if memory is too short.
    /// Returns the bytes of the lists.
    fn make_room(&mut self) -> Result<Lists, Halt> {
        if self.levels.is_none() {
            let kept = self.kept_bytes + bytes_of(&self.parents);
            self.engine.mark_if_short(&mut self.waiting, &mut self.workers, kept)?;
        }
        let lists = self.lists();
        self.list_bytes = (lists.waiting + lists.kept).max(self.list_bytes);
        let wants_references = self.wants_references;
        self.grow_with(lists, |engine, waiting, lists| engine.grow_for(waiting, lists, wants_references))?;
        Ok(lists)
    }

    /// Expands the states of a round. Returns whether the search was stopped before all of them were expanded.
    fn expand_round(&mut self, lists: Lists) -> Result<bool, Halt> {
        let Self { engine, waiting, workers, .. } = self;
        let round = waiting.round(engine.table, engine.round(&self.counts, lists))?;
        let level = self.counts.levels - 1;
        let needs = Needs {
            level,
            only_faults: self.found.as_ref().is_some_and(|found| found.level < level),
            references: self.wants_references || waiting.are_marked(),
            parents: self.parents.is_some(),
        };
        let done = engine.expand(&waiting.level, round.clone(), workers, needs)?;
        waiting.expanded(done);
        Ok(done < round.end)
    }

    /// Takes the findings of all workers. Returns false if there is no memory for the states among them.
    fn take_findings(&mut self) -> bool {
        let mut lists_fit = true;
        let level = self.counts.levels - 1;
        for Findings { new, rejected, transitions, deadlocks, overflows, violating, found } in found_by(&mut self.workers) {
            self.violating.add(level, violating, *deadlocks);
            self.counts.states += (new.words.len() / self.engine.source.width()) as u64;
            self.counts.transitions += *transitions;
            self.counts.deadlocks += *deadlocks;
            self.counts.overflows += *overflows;
            if let Some(found) = found.take().filter(|found| found.replaces(self.found.as_ref())) {
                self.found = Some(found);
            }
            if let Some(parents) = &mut self.parents {
                new.note(0, parents);
            }
            lists_fit = lists_fit && self.rejected.take(&[rejected]);
        }
        let new: Vec<&Level> = found_by(&mut self.workers).map(|found| &found.new).collect();
        lists_fit = lists_fit && self.waiting.take(&new);
        found_by(&mut self.workers).for_each(Findings::clear);
        lists_fit
    }

    /// Shows the counts after a round. Halts if its states do not fit into memory, or if the observer or a stop wants that.
    fn check_round(&mut self, is_cut_short: bool, lists_fit: bool) -> Result<(), Halt> {
        self.is_whole = lists_fit;
        self.counts.waiting = self.waiting.left() as u64;
        let is_refused = !(self.engine.observer)(&self.counts);
        let stop = (self.engine.limits.stop)().filter(|_| is_cut_short);
        let standing = Standing { is_out_of_memory: !lists_fit, is_refused, stop, ..Standing::default() };
        // Counts and violations are kept; without memory for the lists, rejected states are lost.
        match self.engine.limits.end_of(&standing) {
            Some(end) => Err(Halt::End(self.violation_end().unwrap_or(end))),
            None => Ok(()),
        }
    }

    /// Grows the table and puts the states that found it full. Keeps those that find it full again.
    fn put_rejected(&mut self) -> Result<(), Halt> {
        let wants_references = self.wants_references;
        let grow = |engine: &HostEngine<'e, S, X>, waiting: &mut Waiting, lists| {
            Ok(engine.grow(waiting, lists, wants_references)? == Growth::Done)
        };
        self.grow_with(self.lists(), grow)?;
        let mut new = Level::default();
        let references = wants_references || self.waiting.are_marked();
        self.rejected = self.engine.put(&self.rejected.words, &self.rejected.parents, &mut new, references)?;
        if let Some(parents) = &mut self.parents {
            new.note(0, parents);
        }
        self.counts.states += (new.words.len() / self.engine.source.width()) as u64;
        self.is_whole = self.waiting.take(&[&new]);
        if self.is_whole { Ok(()) } else { Err(self.out_of_memory()) }
    }

    /// Halts behind a level in which a violation was found that ends the search.
    fn check_violation(&self) -> Result<(), Halt> {
        self.violation_end().map_or(Ok(()), |end| Err(Halt::End(end)))
    }

    fn next_level(&mut self) {
        self.waiting.next_level();
        if let Some(parents) = &mut self.parents {
            parents.begin_level();
        }
    }

    /// Writes the last checkpoint if the search can go on from there, and returns the results.
    fn finish(self, end: End) -> Exploration {
        let exploration = Exploration {
            counts: self.counts,
            end,
            found: self.found.clone(),
            list_bytes: self.list_bytes,
            level_sizes: self.level_sizes.clone(),
            violating: self.violating.clone(),
        };
        if let Some(checkpoints) = self.checkpoints.filter(|_| can_go_on(&exploration)) {
            match self.is_whole {
                true => self.keep(checkpoints, &self.rejected.words),
                false => checkpoints.fail(&self.counts, "no memory for all states of the level"),
            }
        }
        exploration
    }

    /// Writes a checkpoint. `offered`: words of successors that found the table full.
    fn keep(&self, checkpoints: &Checkpoints, offered: &[u32]) {
        let table = self.engine.table;
        let [level, next] = self.waiting.words(table);
        let Self { counts, found, violating, .. } = self;
        let (counts, found) = (*counts, found.as_ref());
        checkpoints.write(table, &Snapshot { counts, found, violating, level: &level, next: &next, offered });
    }

    /// Calls `grow`, which returns whether the search can go on. If it cannot, gives up the parents, if that frees memory, and
    /// calls `grow` again.
    fn grow_with(
        &mut self,
        lists: Lists,
        grow: impl Fn(&HostEngine<'e, S, X>, &mut Waiting, Lists) -> Result<bool>,
    ) -> Result<(), Halt> {
        let fits = grow(self.engine, &mut self.waiting, lists)?
            || (drop_parents(&mut self.parents)
                && grow(self.engine, &mut self.waiting, Lists { kept: self.kept_bytes, ..lists })?);
        if fits { Ok(()) } else { Err(self.out_of_memory()) }
    }

    fn lists(&self) -> Lists {
        Lists {
            waiting: self.waiting.bytes() + self.workers.iter().map(Worker::bytes).sum::<u64>(),
            kept: self.kept_bytes + bytes_of(&self.parents),
            may_be_marked: self.levels.is_none(),
        }
    }

    fn check(&self, standing: &Standing) -> Result<(), Halt> {
        self.engine.limits.end_of(standing).map_or(Ok(()), |end| Err(Halt::End(end)))
    }

    /// The end of the search by a violation found so far, when its level is expanded; `None` if it goes on. Missing memory or a
    /// stop may end the search earlier.
    fn violation_end(&self) -> Option<End> {
        self.engine.limits.end_by(self.found.as_ref())
    }

    fn out_of_memory(&self) -> Halt {
        Halt::End(self.violation_end().unwrap_or(End::Memory))
    }
}

fn bytes_of(parents: &Option<&mut Parents>) -> u64 {
    parents.as_ref().map_or(0, |parents| parents.bytes())
}

/// Drops the parents to free memory for the search, unless they are wanted. Returns whether they were dropped.
fn drop_parents(parents: &mut Option<&mut Parents>) -> bool {
    parents.as_mut().is_some_and(|parents| parents.drop_parents())
}
