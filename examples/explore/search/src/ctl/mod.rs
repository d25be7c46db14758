//! Formulas of branching time (CTL), evaluated over all states of one exploration.
//!
//! All formulas of a question are parts of one graph ([`Parts`]); each part is a set of states, a bit a state, that is computed
//! once (`evaluate`). If states and steps fit the memory, they are loaded with the steps backwards (`in_memory`), and each
//! operator takes time in proportion to the steps. Otherwise sweeps over the undecided states compute successors again
//! (`sweeps`).

pub(crate) mod bits;
pub(crate) mod evaluate;
mod in_memory;
mod sweeps;
#[cfg(all(test, feature = "cpu"))]
mod tests;
mod witness;

use witness::Walked;
pub use witness::Witness;

use crate::exploration::{End, Exploration, Explorer, Found, Limits};
use crate::liveness::check::Verdict;
use crate::liveness::possible::path_to_fault;
use crate::successors::Successors;
use anyhow::{Error, Result, anyhow};
use bits::Bits;
use evaluate::{Space, Values, evaluate};
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

/// How states and their successors were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// States and steps were loaded into the host's memory.
    InMemory,
    /// Successors were computed again in sweeps, since states and steps did not fit the memory.
    InSweeps,
    /// Sweeps on the GPU; whether it had listed all steps before.
    OnGpu { is_listed: bool },
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
    pub way: Way,
    /// Time to load states and steps, and time in all.
    pub load: Duration,
    pub search: Duration,
}

impl Outcome {
    /// This outcome of a GPU with the paths that the host has found; that of the host if this one has no verdicts.
    #[cfg(feature = "cuda")]
    pub(crate) fn with_paths_of(mut self, host: Self) -> Self {
        if self.search.is_zero() {
            return host;
        }
        for (answer, on_host) in self.answers.iter_mut().zip(host.answers) {
            let is_equal = (answer.verdict, answer.satisfying) == (on_host.verdict, on_host.satisfying);
            answer.witness = match on_host.witness {
                _ if on_host.verdict != Verdict::Unknown && !is_equal => {
                    self.why = Some(anyhow!("the GPU and the host differ: please report this as a bug"));
                    answer.verdict = Verdict::Unknown;
                    None
                }
                witness => witness,
            };
        }
        self
    }

    /// Says why paths are missing, for the formulas that a path may show.
    #[cfg(feature = "cuda")]
    pub(crate) fn lack_paths(&mut self, branching: &Branching, most: u64) {
        for (answer, asked) in self.answers.iter_mut().zip(&branching.formulas) {
            let shown = if answer.verdict == Verdict::Holds { asked.formula } else { !asked.formula };
            if answer.verdict != Verdict::Unknown && witness::may_show(&branching.parts, shown) {
                answer.witness = Some(Err(anyhow!("the host looks for it among at most {most} states of a GPU")));
            }
        }
    }
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

    /// The outcome without an evaluation: what the exploration has found decides the only formula, if it was explored for that.
    pub(crate) fn undecided(&self, exploration: &Exploration) -> Outcome {
        let unknown = |_| Answer { verdict: Verdict::Unknown, satisfying: None, witness: None };
        let mut outcome = Outcome {
            answers: self.formulas.iter().map(unknown).collect(),
            fault: None,
            why: None,
            bytes: 0,
            way: Way::InMemory,
            load: Duration::ZERO,
            search: Duration::ZERO,
        };
        let is_found = matches!(exploration.found.as_ref().map(|found| &found.violation), Some(Violation::Condition(_)));
        if let (true, Some(verdict), Some(answer)) = (is_found, self.if_found, outcome.answers.first_mut()) {
            answer.verdict = verdict;
        }
        outcome
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
        let mut outcome = self.undecided(exploration);
        if exploration.end == End::Complete {
            // The path to a finding is shown, so no other one is needed.
            let with_paths = self.with_witnesses && exploration.found.is_none();
            outcome.why = self.search(table, source, interpreter, with_paths, limits, &mut outcome).err();
        } else if self.may_be_decided_by_states(&outcome) {
            let conditions = self.evaluated(interpreter);
            let space = Sweeps::of(table, source, interpreter, &conditions, limits);
            // The limit that ended the exploration is why verdicts are missing.
            let _ =
                space.and_then(|space| self.decide_by_states(&space, limits.bytes.saturating_sub(table.bytes()), &mut outcome));
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
            Some(space) => {
                outcome.load = start.elapsed();
                self.decide(&space, table, interpreter, with_paths, limits, outcome)?;
                space.faults()
            }
            None => {
                outcome.way = Way::InSweeps;
                let space = Sweeps::of(table, source, interpreter, &conditions, limits)?;
                outcome.load = start.elapsed();
                self.decide(&space, table, interpreter, with_paths, limits, outcome)?;
                space.faults()
            }
        };
        if let Some(Faults(faulty)) = faults {
            outcome.fault = Some(self.path_to_fault(table, source, interpreter, limits, &faulty)?);
        }
        Ok(())
    }

    /// A shortest path to one of these states, in which a condition has a fault.
    pub(crate) fn path_to_fault<S: Storage, X: Successors>(
        &self,
        table: &VectorTable<S>,
        source: &X,
        interpreter: &Interpreter,
        limits: Limits,
        faulty: &[Reference],
    ) -> Result<(Found, Vec<Vec<u32>>)> {
        let Conditions::Expressions(all) = &self.conditions else { unreachable!("a condition on a net has no fault") };
        path_to_fault(table, source, interpreter, limits, faulty, all)
    }

    /// Whether an operator follows steps backwards.
    fn has_backward_steps(&self) -> bool {
        self.parts.all().iter().any(|part| matches!(part, Part::Until(_) | Part::Always(_)))
    }

    /// Whether there are undecided formulas that a single state may decide.
    pub(crate) fn may_be_decided_by_states(&self, outcome: &Outcome) -> bool {
        let is_open = |(answer, asked): (&Answer, &Asked)| answer.verdict == Verdict::Unknown && self.goal(asked).is_some();
        outcome.answers.iter().zip(&self.formulas).any(is_open)
    }

    /// The condition of a state that decides a formula alone, and the verdict: `EF` of it holds, and `AG` of its negation is
    /// violated. `None` for other formulas.
    fn goal(&self, asked: &Asked) -> Option<(Literal, Verdict)> {
        let Part::Until([Literal::TRUE, goal]) = self.parts.all()[asked.formula.part()] else { return None };
        let verdict = if asked.formula.is_negated() { Verdict::Violated } else { Verdict::Holds };
        self.parts.is_of_state(goal).then_some((goal, verdict))
    }

    /// Decides formulas by the states that an exploration has found before a limit ended it: all of them are reachable. `limit`:
    /// bytes for sets.
    pub(crate) fn decide_by_states<X: Space>(&self, space: &X, limit: u64, outcome: &mut Outcome) -> Result<()> {
        let open = outcome.answers.iter_mut().zip(&self.formulas).filter(|(answer, _)| answer.verdict == Verdict::Unknown);
        let open = open.filter_map(|(answer, asked)| Some((answer, self.goal(asked)?)));
        let (mut answers, goals): (Vec<&mut Answer>, Vec<(Literal, Verdict)>) = open.unzip();
        let roots: Vec<Literal> = goals.iter().map(|(goal, _)| *goal).collect();
        let kept = vec![false; self.parts.all().len()];
        let values = evaluate(space, &self.parts, &roots, &kept, limit.saturating_sub(space.bytes()))?;
        for ((answer, (_, verdict)), of_root) in answers.iter_mut().zip(goals).zip(values.of_roots) {
            if of_root.is_some_and(|(_, count)| count > 0) {
                answer.verdict = verdict;
            }
        }
        Ok(())
    }

    /// Decides the formulas, and looks for paths.
    fn decide<S: Storage, X: Space<Set = Bits> + Walked>(
        &self,
        space: &X,
        table: &VectorTable<S>,
        interpreter: &Interpreter,
        with_paths: bool,
        limits: Limits,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let limit = limits.bytes.saturating_sub(table.bytes() + space.bytes());
        let none = vec![false; self.parts.all().len()];
        let mut kept = none.clone();
        if with_paths {
            self.formulas.iter().for_each(|asked| witness::keep(&self.parts, asked.formula, &mut kept));
        }
        // Sets for paths must leave room for those of the verdicts.
        let bytes = space.bytes_of_set() * kept.iter().filter(|is_kept| **is_kept).count() as u64;
        let has_room = bytes <= limit / 2;
        let kept = if has_room { kept } else { none };
        let values = self.verdicts(space, &kept, limit, outcome)?;
        if !with_paths {
            return Ok(());
        }
        for (answer, asked) in outcome.answers.iter_mut().zip(&self.formulas) {
            let shown = match answer.verdict {
                Verdict::Holds => asked.formula,
                Verdict::Violated => !asked.formula,
                Verdict::Unknown => continue,
            };
            answer.witness = if has_room {
                let run = witness::find(space, &self.parts, &values, shown);
                run.map(|run| run.and_then(|run| run.replayed(table, space, interpreter)))
            } else {
                Some(Err(anyhow!("no memory for the sets of states that it goes through")))
            };
        }
        Ok(())
    }

    /// Fills in the verdicts, and returns the sets of the `kept` parts. `limit`: bytes for sets. A formula stays undecided if one
    /// of its conditions has a fault.
    pub(crate) fn verdicts<X: Space>(
        &self,
        space: &X,
        kept: &[bool],
        limit: u64,
        outcome: &mut Outcome,
    ) -> Result<Values<X::Set>> {
        let roots: Vec<Literal> = self.formulas.iter().map(|asked| asked.formula).collect();
        let values = evaluate(space, &self.parts, &roots, kept, limit)?;
        outcome.bytes = space.bytes() + values.most_bytes;
        for (answer, of_root) in outcome.answers.iter_mut().zip(&values.of_roots) {
            if let Some((holds, satisfying)) = *of_root {
                answer.verdict = if holds { Verdict::Holds } else { Verdict::Violated };
                answer.satisfying = Some(satisfying);
            }
        }
        Ok(values)
    }
}
