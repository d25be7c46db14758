//! Formulas of branching time (CTL), evaluated over all states of one exploration.
//!
//! All formulas of a question are parts of one graph ([`Parts`]); each part is a set of states, a bit a state, that is computed
//! once (`evaluate`). If states and steps fit the memory, they are loaded with the steps backwards (`in_memory`), and each
//! operator takes time in proportion to the steps. Otherwise sweeps over the undecided states compute successors again
//! (`sweeps`).

mod bits;
mod evaluate;
mod in_memory;
mod sweeps;
#[cfg(all(test, feature = "cpu"))]
mod tests;
mod witness;

pub use witness::Witness;

use crate::exploration::{End, Exploration, Explorer, Found, Limits};
use crate::liveness::check::Verdict;
use crate::liveness::possible::path_to_fault;
use crate::successors::Successors;
use anyhow::{Error, Result, anyhow};
use evaluate::{Space, evaluate};
use in_memory::InMemory;
use std::time::{Duration, Instant};
use sweeps::Sweeps;
use warpset::{Reference, Storage, VectorTable};
use warpset_model::checks::Violation;
use warpset_model::ctl::{Literal, Part, Parts};
use warpset_model::interpreter::Interpreter;
use warpset_model::ir::Expression;
use warpset_model::net::marking::Check;
use warpset_model::terms::Term;

/// Formulas of branching time about a model.
#[derive(Clone, Debug)]
pub struct Branching {
    pub parts: Parts,
    pub conditions: Conditions,
    pub formulas: Vec<Asked>,
    /// Whether witnesses and counterexamples are wanted.
    pub with_witnesses: bool,
    /// The verdict of the only formula if the exploration finds what it checks.
    pub if_found: Option<Verdict>,
}

/// A formula as it was written, and in the normal form.
#[derive(Clone, Debug)]
pub struct Asked {
    pub text: String,
    pub formula: Literal,
}

/// The conditions of formulas.
#[derive(Clone, Debug)]
pub enum Conditions {
    Expressions(Vec<Expression>),
    /// Conditions on a net, for which sums of tokens may need 64 bits.
    OfNet(Vec<Check>),
}

/// Conditions that are evaluated in packed states.
enum Evaluated<'m> {
    Terms(&'m Interpreter<'m>, Vec<Term>),
    OfNet(&'m Interpreter<'m>, &'m [Check]),
}

/// The answer to a formula.
#[derive(Debug)]
pub struct Answer {
    pub verdict: Verdict,
    /// Number of states that satisfy the formula; `None` if they were not counted.
    pub satisfying: Option<u64>,
    /// A path that shows the verdict, if one path shows it; or why it is missing.
    pub witness: Option<Result<Witness>>,
}

/// The answers to all formulas.
pub struct Outcome {
    pub answers: Vec<Answer>,
    /// A state in which a condition has a fault, and the path to it.
    pub fault: Option<(Found, Vec<Vec<u32>>)>,
    /// Why there are no verdicts.
    pub why: Option<Error>,
    /// Most bytes taken beside the table.
    pub bytes: u64,
    /// Whether successors were computed again in sweeps, since states and steps did not fit the memory.
    pub in_sweeps: bool,
    /// Time to load states and steps, and time in all.
    pub load: Duration,
    pub search: Duration,
}

/// A search that can evaluate formulas of branching time.
pub trait BranchingTime: Explorer {
    /// Evaluates the formulas after the exploration has ended.
    fn branch(&mut self, branching: &Branching, interpreter: &Interpreter, exploration: &Exploration, limits: Limits) -> Outcome;
}

/// The states in which a condition has a fault.
struct Faults(Vec<Reference>);

impl Evaluated<'_> {
    fn count(&self) -> usize {
        match self {
            Self::Terms(_, terms) => terms.len(),
            Self::OfNet(_, checks) => checks.len(),
        }
    }

    /// Whether a condition holds in a state; `None` if it has a fault there.
    fn holds(&self, number: usize, state: &[u32]) -> Option<bool> {
        match self {
            Self::Terms(interpreter, terms) => terms[number].value(interpreter.model(), state).ok().map(|value| value != 0),
            Self::OfNet(interpreter, checks) => Some(checks[number].holds(interpreter.firings()?, state)),
        }
    }

    /// Whether a condition holds in each of some states: a bit a state. The bits behind the last state are undefined. Calls
    /// `fault` with the numbers of the states in which the condition has a fault.
    fn holds_in_each(&self, number: usize, states: &[u32], width: usize, mut fault: impl FnMut(usize)) -> Vec<u64> {
        match self {
            Self::OfNet(interpreter, checks) if interpreter.firings().is_some() => {
                let firings = interpreter.firings().expect("looked at above");
                checks[number].holds_in_each(firings, states, width)
            }
            _ => {
                let mut bits = vec![0; (states.len() / width).div_ceil(64)];
                for (at, state) in states.chunks_exact(width).enumerate() {
                    match self.holds(number, state) {
                        Some(holds) => bits[at / 64] |= u64::from(holds) << (at % 64),
                        None => fault(at),
                    }
                }
                bits
            }
        }
    }
}

impl Branching {
    fn evaluated<'m>(&'m self, interpreter: &'m Interpreter<'m>) -> Evaluated<'m> {
        match &self.conditions {
            Conditions::Expressions(all) => {
                Evaluated::Terms(interpreter, all.iter().map(|condition| Term::of(condition, interpreter.model())).collect())
            }
            Conditions::OfNet(checks) => Evaluated::OfNet(interpreter, checks),
        }
    }

    /// Evaluates the formulas after the exploration has ended.
    pub fn answer<S: Storage, X: Successors>(
        &self,
        table: &VectorTable<S>,
        source: &X,
        interpreter: &Interpreter,
        exploration: &Exploration,
        limits: Limits,
    ) -> Outcome {
        let start = Instant::now();
        let unknown = |_| Answer { verdict: Verdict::Unknown, satisfying: None, witness: None };
        let mut outcome = Outcome {
            answers: self.formulas.iter().map(unknown).collect(),
            fault: None,
            why: None,
            bytes: 0,
            in_sweeps: false,
            load: Duration::ZERO,
            search: Duration::ZERO,
        };
        let is_found = matches!(exploration.found.as_ref().map(|found| &found.violation), Some(Violation::Condition(_)));
        if let (true, Some(verdict), Some(answer)) = (is_found, self.if_found, outcome.answers.first_mut()) {
            answer.verdict = verdict;
        }
        if exploration.end == End::Complete {
            // The path to a finding is shown, so no other one is needed.
            let with_paths = self.with_witnesses && exploration.found.is_none();
            outcome.why = self.search(table, source, interpreter, with_paths, limits, &mut outcome).err();
        }
        outcome.search = start.elapsed();
        outcome
    }

    /// Fills in the outcome.
    fn search<S: Storage, X: Successors>(
        &self,
        table: &VectorTable<S>,
        source: &X,
        interpreter: &Interpreter,
        with_paths: bool,
        limits: Limits,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let start = Instant::now();
        let conditions = self.evaluated(interpreter);
        let faults = match InMemory::load(table, source, interpreter, &conditions, self.has_backward_steps(), limits)? {
            Some(Ok(space)) => {
                outcome.load = start.elapsed();
                return self.decide(&space, table, interpreter, with_paths, limits, outcome);
            }
            Some(Err(faults)) => faults,
            None => {
                outcome.in_sweeps = true;
                let space = Sweeps::of(table, source, interpreter, &conditions, limits)?;
                outcome.load = start.elapsed();
                let result = self.decide(&space, table, interpreter, with_paths, limits, outcome);
                match space.faults() {
                    Some(faults) => faults,
                    None => return result,
                }
            }
        };
        let Conditions::Expressions(all) = &self.conditions else { unreachable!("a condition on a net has no fault") };
        outcome.fault = Some(path_to_fault(table, source, interpreter, limits, &faults.0, all)?);
        Ok(())
    }

    /// Whether an operator follows steps backwards.
    fn has_backward_steps(&self) -> bool {
        self.parts.all().iter().any(|part| matches!(part, Part::Until(_) | Part::Always(_)))
    }

    fn decide<S: Storage>(
        &self,
        space: &impl Space,
        table: &VectorTable<S>,
        interpreter: &Interpreter,
        with_paths: bool,
        limits: Limits,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let roots: Vec<Literal> = self.formulas.iter().map(|asked| asked.formula).collect();
        let limit = limits.bytes.saturating_sub(table.bytes() + space.bytes());
        let none = vec![false; self.parts.all().len()];
        let mut kept = none.clone();
        if with_paths {
            roots.iter().for_each(|root| witness::keep(&self.parts, *root, &mut kept));
        }
        // Sets for paths must leave room for those of the verdicts.
        let bytes = 8 * space.states().0.len() as u64 * kept.iter().filter(|is_kept| **is_kept).count() as u64;
        let has_room = bytes <= limit / 2;
        let kept = if has_room { kept } else { none };
        let values = evaluate(space, &self.parts, &roots, &kept, limit)?;
        outcome.bytes = space.bytes() + values.most_bytes;
        for ((answer, root), (holds, satisfying)) in outcome.answers.iter_mut().zip(roots).zip(&values.of_roots) {
            answer.verdict = if *holds { Verdict::Holds } else { Verdict::Violated };
            answer.satisfying = Some(*satisfying);
            if with_paths && !has_room {
                answer.witness = Some(Err(anyhow!("no memory for the sets of states that it goes through")));
            } else if with_paths {
                let shown = if *holds { root } else { !root };
                answer.witness = witness::find(space, &self.parts, &values, shown)
                    .map(|run| run.and_then(|run| run.replayed(table, space, interpreter)));
            }
        }
        Ok(())
    }
}
