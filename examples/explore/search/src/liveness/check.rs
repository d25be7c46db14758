//! Decides whether a property holds, by an exploration of the product and a search for accepting cycles.

use super::fairness::is_fair;
use super::lasso::{Lasso, Run, close, replay};
use super::residue::{Automaton, Residue};
use crate::exploration::{End, Exploration, Explorer, Limits};
use anyhow::{Result, anyhow, ensure};
use std::time::{Duration, Instant};
use warpset_model::checks::{Checks, Role, Violation};
use warpset_model::interpreter::Interpreter;
use warpset_model::ir::expression::Binary;
use warpset_model::ir::property::AutomatonClass;
use warpset_model::ir::{Expression, Model, Property, Span};
use warpset_support::stopping::Stop;

/// The property of a model, and how product states decide it.
#[derive(Clone, Debug)]
pub struct Question {
    /// The formula, or the origin of the automaton if there is no formula.
    pub text: String,
    pub kind: AutomatonClass,
    pub automaton: Automaton,
    /// Whether to consider only runs that are weakly fair to every process.
    pub is_fair: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    Violated,
    /// The search ended before a decision.
    Unknown,
}

const EARLY: &str = "The run was found before all states were; a shorter one may exist (--keep-going explores all states first).";

const FAIR: &str = "The run is weakly fair to every process: in its loop each process moves or is disabled at some point.";
const FAIR_TO_COMPONENTS: &str =
    "The run is weakly fair to every component: in its loop each component moves or is disabled at some point.";

/// A search of a product that can afterwards search for accepting cycles.
pub trait Liveness: Explorer {
    /// Finds the residue: the states among all found ones that may be on accepting cycles.
    fn residue(&mut self, automaton: &Automaton, limits: Limits) -> Result<Residue>;

    /// Finds a run through the residue; a weakly fair run if `fair` has an interpreter. Returns `Ok(None)` if no run exists, and
    /// `Ok(Some(Err))` if one exists but was not found.
    fn lasso(
        &mut self,
        automaton: &Automaton,
        residue: Residue,
        fair: Option<&Interpreter>,
        limits: Limits,
    ) -> Result<Option<Result<Run>>>;

    /// Number of accepting states found; `None` if they are not counted.
    fn count_accepting(&mut self, automaton: &Automaton) -> Result<Option<u64>>;
}

/// Result of the check of a property.
pub struct Conclusion {
    pub verdict: Verdict,
    /// Number of accepting states found; `None` if they were not counted.
    pub accepting: Option<u64>,
    /// Number of passes. Each pass expanded all states or all remaining states.
    pub passes: u64,
    /// Why the search for cycles ended before the verdict.
    pub end: Option<End>,
    /// The violating run, or the reason why none can be shown.
    pub lasso: Option<Result<Lasso>>,
    /// Time of the search for cycles.
    pub search: Duration,
    /// Time of the search for the run.
    pub run: Duration,
}

impl Question {
    /// Creates the question for a model with a property.
    pub fn of(model: &Model, text: String, is_fair: bool) -> Self {
        let property = model.property.as_ref().expect("the model has a property");
        let kind = property.kind(model.processes[property.process].initial);
        Self { text, kind, automaton: Automaton::of(model), is_fair }
    }

    /// Whether reaching an accepting state decides the question. It would do so with fairness, too, but the run that is shown
    /// must then be fair.
    fn is_decided_by_states(&self) -> bool {
        self.kind == AutomatonClass::Terminal && !self.is_fair
    }

    /// The automaton, if accepting cycles are searched for during the exploration. `None` if accepting states decide, or if runs
    /// must be fair.
    pub fn to_watch(&self) -> Option<&Automaton> {
        Some(&self.automaton).filter(|_| !self.is_decided_by_states() && !self.is_fair)
    }

    /// The checks of states. If accepting states decide, each of them is a violation.
    pub fn checks(&self, property: &Property) -> Checks {
        let mut checks = Checks::default();
        if self.is_decided_by_states() {
            let at = |location: usize| Expression::At { process: property.process, location };
            let accepting = (0..property.accepting.len()).filter(|location| property.accepting[*location]).map(at);
            let either = |left, right| Expression::binary(Binary::Or, left, right, Span::default());
            let accepting = accepting.reduce(either).unwrap_or(Expression::Constant(0));
            checks.add(Role::Goal, self.text.clone(), accepting);
        }
        checks
    }

    /// Determines the verdict after the exploration has ended.
    pub fn conclude(
        &self,
        explorer: &mut impl Liveness,
        interpreter: &Interpreter,
        exploration: &Exploration,
        limits: Limits,
    ) -> Result<Conclusion> {
        let start = Instant::now();
        let has_fault = matches!(exploration.found.as_ref().map(|found| &found.violation), Some(Violation::Fault(_)));
        let mut conclusion = Conclusion {
            verdict: Verdict::Unknown,
            accepting: None,
            passes: 1,
            end: None,
            lasso: None,
            search: Duration::ZERO,
            run: Duration::ZERO,
        };
        if has_fault {
            return Ok(conclusion);
        }
        if self.is_decided_by_states() {
            // Count now, because the search for the path overwrites the table.
            conclusion.accepting = match (&exploration.found, exploration.end) {
                (None, End::Complete) => Some(0),
                (None, End::Stopped(Stop::Interrupted)) => None,
                // After an error the count is unknown, perhaps because there is no memory for counting.
                _ => explorer.count_accepting(&self.automaton).unwrap_or(None),
            };
            conclusion.verdict = match (conclusion.accepting, exploration.end) {
                _ if exploration.found.is_some() => Verdict::Violated,
                // States are checked when they are expanded. These accepting states were stored but not yet expanded.
                (Some(1..), _) => Verdict::Violated,
                (_, End::Complete) => Verdict::Holds,
                _ => Verdict::Unknown,
            };
            conclusion.search = start.elapsed();
            let start = Instant::now();
            if exploration.found.is_none() && conclusion.verdict == Verdict::Violated {
                conclusion.lasso = Some(Err(anyhow!("the search ended before a state that violates it was expanded")));
                return Ok(conclusion);
            }
            conclusion.lasso = exploration.found.as_ref().map(|found| {
                let mut states = explorer.path(found, limits)?;
                let certain = Some(states.len() - 1);
                let begins = close(interpreter, &self.automaton, &mut states)?;
                let lasso = replay(interpreter, &self.automaton, Run { states, begins, movers: None }, None)?;
                Ok(Lasso { certain, ..lasso })
            });
            conclusion.run = start.elapsed();
            return Ok(conclusion);
        }
        let residue: Residue = explorer.residue(&self.automaton, limits)?;
        conclusion.accepting = Some(residue.accepting);
        conclusion.passes += residue.passes;
        conclusion.end = residue.end;
        conclusion.verdict = match exploration.end {
            _ if residue.has_cycle() => Verdict::Violated,
            End::Complete if residue.end.is_none() => Verdict::Holds,
            _ => Verdict::Unknown,
        };
        conclusion.search = start.elapsed();
        if residue.has_cycle() {
            let start = Instant::now();
            let why_longer = match exploration.end {
                _ if self.is_fair && interpreter.model().network.is_some() => Some(FAIR_TO_COMPONENTS),
                _ if self.is_fair => Some(FAIR),
                End::Complete => None,
                _ => Some(EARLY),
            };
            let fair = Some(interpreter).filter(|_| self.is_fair);
            let run = explorer.lasso(&self.automaton, residue, fair, limits);
            conclusion.run = start.elapsed();
            match run {
                Ok(Some(Err(error))) => conclusion.lasso = Some(Err(error)),
                Ok(Some(Ok(run))) => {
                    let lasso = replay(interpreter, &self.automaton, run, why_longer)?;
                    ensure!(!self.is_fair || is_fair(interpreter, &lasso), "the run is not fair: please report this as a bug");
                    conclusion.lasso = Some(Ok(lasso));
                }
                // There are accepting cycles, but none is fair.
                Ok(None) => {
                    let is_all = exploration.end == End::Complete;
                    conclusion.verdict = if is_all { Verdict::Holds } else { Verdict::Unknown };
                }
                Err(error) => {
                    conclusion.lasso = Some(Err(error));
                    // One of the cycles may be fair, or none.
                    if self.is_fair {
                        conclusion.verdict = Verdict::Unknown;
                    }
                }
            }
        }
        Ok(conclusion)
    }
}
