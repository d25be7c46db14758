//! The interface of every search: limits, counts, the end and the violation that was found.

use crate::checks::Violation;
use crate::stopping::Stop;
use anyhow::Result;

/// Called between rounds with the counts so far. If it returns false, the exploration ends.
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

    /// Whether what was found ends the search: a fault always does, another violation unless the search is to go on.
    pub fn end_with(&self, found: Option<&Found>) -> bool {
        found.is_some_and(|found| found.is_fault() || !self.keep_going)
    }

    /// For the first levels, whatever is found in them.
    pub fn of_levels(self, levels: u64) -> Self {
        Self { states: u64::MAX, levels, keep_going: true, ..self }
    }
}

/// Counts of an exploration so far.
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
    /// The observer ended it.
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
    /// Whether this takes the place of an earlier violation in the report.
    pub fn replaces(&self, before: Option<&Found>) -> bool {
        before.is_none_or(|before| self.is_fault() && !before.is_fault())
    }

    /// Whether the state, or a condition on it, cannot be evaluated.
    pub fn is_fault(&self) -> bool {
        matches!(self.violation, Violation::Fault(_))
    }
}

/// A search of all states that a model can reach, with its table.
pub trait Explorer {
    /// Explores from the initial state, into an empty table.
    fn explore(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration>;

    /// The states of a shortest path from the initial state to what the last exploration found. Clears the table.
    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>>;
}
