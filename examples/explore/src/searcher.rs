//! Common part of searches by threads, on a GPU and on ranks, from the exploration to the report.

use crate::ending::Extras;
use crate::progress::beside;
use anyhow::{Result, bail};
use warpset::{Erased, Spec, Stats, VectorTable};
use warpset_model::interpreter::Interpreter;
use warpset_search::ctl::{self, Branching, BranchingTime};
use warpset_search::exploration::{Exploration, Explorer, Found, Limits, Observer, memory_for};
use warpset_search::liveness::check::{Conclusion, Liveness, Question};
use warpset_search::liveness::possible::{Outcome, Possibilities, Possible};
use warpset_search::measurements::occupancy;
use warpset_search::ranks::{Numbers, Ranks, Worker};
use warpset_search::survey::{Survey, Surveyed};
use warpset_support::stopping::Stop;

/// Why ranks answer no questions about runs.
pub const ONE_TABLE: &str = "a property of runs is checked in one table on one device: it cannot be combined with ranks";

/// A search in one table or on ranks.
pub trait Searcher: Explorer {
    /// Number of devices. The limit of memory is for each.
    fn devices(&self) -> Result<u64>;

    /// Figures of a net over all found states.
    fn survey(&mut self, survey: &Survey, stop: fn() -> Option<Stop>) -> Result<Surveyed>;

    /// Figures of the table or tables for the report, after the exploration.
    fn figures(&mut self, exploration: &Exploration, limits: Limits) -> Result<Figures>;

    /// The part that answers questions about runs. Returns an error if there are ranks.
    fn answers(&mut self) -> Result<&mut dyn Answers>;
}

/// Figures of a table, or of all ranks together.
pub struct Figures {
    pub spec: Spec,
    pub stats: Stats,
    pub ranks: Option<Numbers>,
    pub extras: Extras,
}

/// Answers to questions about runs, after an exploration.
pub trait Answers {
    /// Determines whether all runs satisfy a property.
    fn conclude(
        &mut self,
        question: &Question,
        interpreter: &Interpreter,
        exploration: &Exploration,
        limits: Limits,
    ) -> Result<Conclusion>;

    /// Determines where states can lead.
    fn answer(&mut self, possible: &Possible, interpreter: &Interpreter, exploration: &Exploration, limits: Limits) -> Outcome;

    /// Evaluates formulas of branching time.
    fn branch(
        &mut self,
        branching: &Branching,
        interpreter: &Interpreter,
        exploration: &Exploration,
        limits: Limits,
    ) -> ctl::Outcome;
}

impl<E: Liveness + Possibilities + BranchingTime> Answers for E {
    fn conclude(
        &mut self,
        question: &Question,
        interpreter: &Interpreter,
        exploration: &Exploration,
        limits: Limits,
    ) -> Result<Conclusion> {
        question.conclude(self, interpreter, exploration, limits)
    }

    fn answer(&mut self, possible: &Possible, interpreter: &Interpreter, exploration: &Exploration, limits: Limits) -> Outcome {
        Possibilities::answer(self, possible, interpreter, exploration, limits)
    }

    fn branch(
        &mut self,
        branching: &Branching,
        interpreter: &Interpreter,
        exploration: &Exploration,
        limits: Limits,
    ) -> ctl::Outcome {
        BranchingTime::branch(self, branching, interpreter, exploration, limits)
    }
}

/// A search in one table, on any device.
pub struct InTable<'t, E> {
    pub table: &'t VectorTable<Erased>,
    pub explorer: E,
    /// Results that only this engine has.
    pub extras: fn(&mut E) -> Result<Extras>,
}

impl<E: Explorer> Explorer for InTable<'_, E> {
    fn explore(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration> {
        self.explorer.explore(limits, observer)
    }

    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>> {
        self.explorer.path(found, limits)
    }
}

impl<E: Liveness + Possibilities + BranchingTime> Searcher for InTable<'_, E> {
    fn devices(&self) -> Result<u64> {
        Ok(1)
    }

    fn survey(&mut self, survey: &Survey, stop: fn() -> Option<Stop>) -> Result<Surveyed> {
        survey.run(self.table, stop)
    }

    fn figures(&mut self, exploration: &Exploration, limits: Limits) -> Result<Figures> {
        let table = self.table;
        let (stats, extras) = (occupancy(table)?, (self.extras)(&mut self.explorer)?);
        let lists = beside(table, exploration.list_bytes);
        let states_in_memory = limits.of_table(table, lists).ok().and_then(|limit| table.vectors_within(limit).ok());
        let memory_for_twice = memory_for(table, lists, 2 * exploration.counts.states).ok().flatten();
        Ok(Figures { spec: table.spec(), stats, ranks: None, extras: Extras { states_in_memory, memory_for_twice, ..extras } })
    }

    fn answers(&mut self) -> Result<&mut dyn Answers> {
        Ok(&mut self.explorer)
    }
}

impl<W: Worker<Erased>> Searcher for Ranks<Erased, W> {
    fn devices(&self) -> Result<u64> {
        let (own, others) = Self::devices(self)?;
        Ok((own.len() + others) as u64)
    }

    fn survey(&mut self, survey: &Survey, stop: fn() -> Option<Stop>) -> Result<Surveyed> {
        Self::survey(self, survey, stop)
    }

    fn figures(&mut self, _: &Exploration, _: Limits) -> Result<Figures> {
        let numbers = self.numbers()?;
        Ok(Figures { spec: self.spec()?, stats: numbers.stats.clone(), ranks: Some(numbers), extras: Extras::default() })
    }

    fn answers(&mut self) -> Result<&mut dyn Answers> {
        bail!("{ONE_TABLE}")
    }
}
