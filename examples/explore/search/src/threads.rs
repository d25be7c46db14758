//! The engine that uses threads of this machine. The table may be on any device.

use crate::checkpoint::{Checkpoints, Resumed};
use crate::ctl::{self, Branching, BranchingTime};
use crate::engine::{Begin, HostEngine, Recorder};
use crate::exploration::{Counts, End, Exploration, Explorer, Found, Limits, Observer};
use crate::liveness::check::Liveness;
use crate::liveness::lasso::Run;
use crate::liveness::possible::{Outcome, Possibilities, Possible};
use crate::liveness::residue::{Automaton, MOST_COUNT, ROUNDS_ON_THE_WAY, Residue, ResidueSearch, Watch};
use crate::parents::Parents;
use crate::path::walk_back;
use crate::successors::Successors;
use anyhow::Result;
use std::sync::Mutex;
use warpset::{Storage, VectorTable};
use warpset_model::interpreter::Interpreter;

pub struct Threads<'a, S, X> {
    pub table: &'a VectorTable<S>,
    pub source: &'a X,
    pub initial: Vec<u32>,
    /// Called with every vector that is offered, except vectors that are offered again for a path.
    pub recorder: Option<&'a Recorder<'a>>,
    /// The automaton of a product, if the search for accepting cycles runs during the exploration.
    pub automaton: Option<&'a Automaton>,
    /// Residue that the search for accepting cycles found during the exploration.
    pub found: Option<Residue>,
    /// Checkpoints, if the search answers no questions, and the search to resume.
    pub checkpoints: Option<&'a Checkpoints>,
    pub resumed: Option<Resumed>,
    /// Parents of the states, if the search stores them. It does so only in an indexed table, and not after resuming.
    pub parents: Option<Parents>,
}

impl<'a, S: Storage, X: Successors> Threads<'a, S, X> {
    /// Creates an engine that starts at the initial state, without any optional feature.
    pub fn new(table: &'a VectorTable<S>, source: &'a X, initial: Vec<u32>) -> Self {
        Self {
            table,
            source,
            initial,
            recorder: None,
            automaton: None,
            found: None,
            checkpoints: None,
            resumed: None,
            parents: None,
        }
    }

    fn search<'b>(&self, automaton: &'b Automaton, limits: Limits) -> ResidueSearch<'b, S, X>
    where
        'a: 'b,
    {
        ResidueSearch { table: self.table, source: self.source, automaton, limits, most_count: MOST_COUNT }
    }
}

impl<S: Storage, X: Successors> Explorer for Threads<'_, S, X> {
    fn explore(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration> {
        let Self { table, source, recorder, checkpoints, .. } = *self;
        let Some(automaton) = self.automaton.filter(|_| !limits.keep_going) else {
            let begin = self.resumed.take().map_or(Begin::Initial(&self.initial), Begin::Resumed);
            if matches!(begin, Begin::Resumed(_)) || !table.spec().is_indexed() {
                self.parents = None;
            }
            let parents = self.parents.as_mut();
            return HostEngine { table, source, limits, recorder, observer }.search(begin, None, checkpoints, parents);
        };
        self.parents = None;
        let search = self.search(automaton, limits);
        let watch = Mutex::new(Watch::default());
        let found = Mutex::new(Ok(None));
        let observer = |counts: &Counts| {
            let mut goes_on = observer(counts);
            if goes_on && watch.lock().expect("no thread panics while it has the lock").is_due(counts.states) {
                let residue = search.run(ROUNDS_ON_THE_WAY);
                goes_on = matches!(&residue, Ok(residue) if !residue.has_cycle());
                *found.lock().expect("no thread panics while it has the lock") = residue.map(Some);
            }
            goes_on
        };
        let exploration = HostEngine { table, source, limits, recorder, observer: &observer }.run(&self.initial, None)?;
        let found = found.into_inner().expect("no thread has panicked")?;
        self.found = found.filter(|_| exploration.end == End::Observer);
        Ok(exploration)
    }

    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>> {
        let kept = self.parents.as_ref().map(|parents| parents.path(self.table, self.source, found, limits)).transpose()?;
        if let Some(path) = kept.flatten() {
            return Ok(path);
        }
        walk_back(self.table, self.source, &self.initial, found, limits)
    }
}

impl<S: Storage, X: Successors> Liveness for Threads<'_, S, X> {
    fn residue(&mut self, automaton: &Automaton, limits: Limits) -> Result<Residue> {
        match self.found.take() {
            Some(residue) => Ok(residue),
            None => self.search(automaton, limits).run(u64::MAX),
        }
    }

    fn lasso(
        &mut self,
        automaton: &Automaton,
        residue: Residue,
        fair: Option<&Interpreter>,
        limits: Limits,
    ) -> Result<Option<Result<Run>>> {
        self.search(automaton, limits).run_through(fair, &self.initial, &residue)
    }

    fn count_accepting(&mut self, automaton: &Automaton) -> Result<Option<u64>> {
        self.search(automaton, Limits::NONE).count_accepting().map(Some)
    }
}

impl<S: Storage, X: Successors> Possibilities for Threads<'_, S, X> {
    fn answer(&mut self, possible: &Possible, interpreter: &Interpreter, exploration: &Exploration, limits: Limits) -> Outcome {
        possible.answer(self.table, self.source, interpreter, exploration, limits)
    }
}

impl<S: Storage, X: Successors> BranchingTime for Threads<'_, S, X> {
    fn branch(
        &mut self,
        branching: &Branching,
        interpreter: &Interpreter,
        exploration: &Exploration,
        limits: Limits,
    ) -> ctl::Outcome {
        branching.answer(self.table, self.source, interpreter, exploration, limits)
    }
}
