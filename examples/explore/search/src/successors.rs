//! Computation of successors. Also records the violations, deadlocks and overflows that occur.

use crate::exploration::Found;
use warpset_model::checks::{Checks, Condition, Violation};
use warpset_model::interpreter::{self, Interpreter, Step};
use warpset_model::product::Counted;
use warpset_model::reduction::stubborn;
use warpset_model::terms::Term;

/// Computes the successors of states and checks the states: by interpretation or by compiled code.
pub trait Successors: Sync {
    /// Words per state.
    fn width(&self) -> usize;

    /// Checks the states, each of `width` words, and adds their successors to the expansion, with multiplicity.
    ///
    /// Stops at a state with a fault in a condition or a step: adds neither successors of this state nor of later ones.
    fn expand(&self, states: &[u32], scratch: &mut Scratch, expansion: &mut Expansion);

    /// Expands states of a level of the search, all but those with a fault. Returns the violation to report. `expansion` must be
    /// empty. With `only_faults` violations of other kinds do not matter.
    fn expand_all(
        &self,
        states: &[u32],
        level: u64,
        only_faults: bool,
        scratch: &mut Scratch,
        expansion: &mut Expansion,
    ) -> Option<Found> {
        self.expand(states, scratch, expansion);
        let is_wanted = |violation: &Violation| !only_faults || matches!(violation, Violation::Fault(_));
        expansion.violation.take().filter(|(_, violation)| is_wanted(violation))?;
        // Rarely does anything violate a check. Then expand once more, state by state, and compare all states that do.
        expansion.clear();
        let mut least: Option<Found> = None;
        for (number, state) in states.chunks_exact(self.width()).enumerate() {
            let before = expansion.parents.len();
            self.expand(state, scratch, expansion);
            expansion.parents[before..].fill(number as u32);
            let violation = expansion.violation.take().filter(|(_, violation)| is_wanted(violation));
            let found = violation.map(|(_, violation)| Found { violation, state: state.to_vec(), level });
            least = found.filter(|found| found.replaces(least.as_ref())).or(least);
        }
        least
    }

    /// Adds the successors of all states except those with a fault. Reports no violation.
    fn expand_those_without_fault(&self, states: &[u32], scratch: &mut Scratch, expansion: &mut Expansion) {
        let (width, mut first) = (self.width(), 0);
        loop {
            let before = expansion.parents.len();
            self.expand(&states[first * width..], scratch, expansion);
            expansion.parents[before..].iter_mut().for_each(|parent| *parent += first as u32);
            match expansion.violation.take() {
                Some((state, Violation::Fault(_))) => first += state + 1,
                _ => return,
            }
        }
    }
}

/// Any source of successors. Code that is instantiated for this type serves all sources.
impl Successors for &dyn Successors {
    fn width(&self) -> usize {
        (**self).width()
    }

    fn expand(&self, states: &[u32], scratch: &mut Scratch, expansion: &mut Expansion) {
        (**self).expand(states, scratch, expansion);
    }
}

/// Reusable memory of a thread that computes successors.
#[derive(Debug, Default)]
pub struct Scratch {
    interpreter: interpreter::Scratch,
    /// All steps and successors of a state before reduction, and the memory of the choice.
    pub(crate) all: Expansion,
    pub(crate) steps: Vec<Step>,
    pub(crate) stubborn: stubborn::Scratch,
    /// Memory of compiled code.
    pub(crate) memory: Vec<u32>,
}

/// Results of expanding some states.
#[derive(Clone, Debug, Default)]
pub struct Expansion {
    /// The successors of all states, one after another.
    pub successors: Vec<u32>,
    /// For each successor, the number of its parent among the expanded states.
    pub parents: Vec<u32>,
    /// Number of states in which the processes have no step.
    pub deadlocks: u64,
    /// Number of stores that wrapped their value.
    pub overflows: u64,
    /// A fault, or else the first violation, with the number of its state.
    pub violation: Option<(usize, Violation)>,
    /// By condition, the number of states that violate it; may be empty if no state violates any.
    pub violating: Vec<u64>,
}

impl Expansion {
    pub fn clear(&mut self) {
        self.successors.clear();
        self.parents.clear();
        self.violating.clear();
        (self.deadlocks, self.overflows, self.violation) = (0, 0, None);
    }

    pub fn violate(&mut self, state: usize, violation: Violation) {
        if self.violation.is_none() || matches!(violation, Violation::Fault(_)) {
            self.violation = Some((state, violation));
        }
    }
}

/// Successors by interpretation.
pub struct Interpreted<'m> {
    pub interpreter: Interpreter<'m>,
    pub checks: &'m Checks,
    /// The conditions of `checks`, ready to be evaluated.
    conditions: Vec<Term>,
}

impl Successors for Interpreted<'_> {
    fn width(&self) -> usize {
        self.interpreter.model().layout.words
    }

    fn expand(&self, states: &[u32], scratch: &mut Scratch, expansion: &mut Expansion) {
        self.expand_with(states, scratch, expansion, |_| {});
    }
}

impl<'m> Interpreted<'m> {
    pub fn new(interpreter: Interpreter<'m>, checks: &'m Checks) -> Self {
        let resolve = |condition: &Condition| Term::of(&condition.must_hold, interpreter.model());
        let conditions = checks.conditions.iter().map(resolve).collect();
        Self { interpreter, checks, conditions }
    }

    /// As [`expand`](Successors::expand), but also calls `visit` with the step to each successor, even if the successor is
    /// removed again because of a fault. The step is `None` if only the automaton of a property moves.
    pub fn expand_with(
        &self,
        states: &[u32],
        scratch: &mut Scratch,
        expansion: &mut Expansion,
        mut visit: impl FnMut(Option<Step>),
    ) {
        let mut violated = Vec::new();
        for (number, state) in states.chunks_exact(self.width()).enumerate() {
            violated.clear();
            for (at, condition) in self.conditions.iter().enumerate() {
                match condition.value(self.interpreter.model(), state) {
                    Ok(0) => {
                        expansion.violate(number, Violation::Condition(at));
                        violated.push(at);
                    }
                    Ok(_) => {}
                    Err(fault) => return expansion.violate(number, Violation::Fault(fault)),
                }
            }
            let before = (expansion.parents.len(), expansion.successors.len());
            let mut add = |step: Option<Step>, successor: &[u32]| {
                visit(step);
                expansion.parents.push(number as u32);
                expansion.successors.extend_from_slice(successor);
            };
            let is_product = self.interpreter.model().property.is_some();
            let steps = if is_product {
                self.interpreter.product_steps(state, &mut scratch.interpreter, |step, successor| add(step.system, successor))
            } else {
                let mut system_steps = 0;
                let overflows = self.interpreter.steps(state, &mut scratch.interpreter, |step, successor| {
                    system_steps += 1;
                    add(Some(step), successor);
                });
                overflows.map(|overflows| Counted { system_steps, overflows })
            };
            let system_steps = match steps {
                Ok(counted) => {
                    expansion.overflows += counted.overflows;
                    counted.system_steps
                }
                Err(fault) => {
                    expansion.parents.truncate(before.0);
                    expansion.successors.truncate(before.1);
                    return expansion.violate(number, Violation::Fault(fault));
                }
            };
            if !violated.is_empty() {
                expansion.violating.resize(self.conditions.len(), 0);
                violated.iter().for_each(|at| expansion.violating[*at] += 1);
            }
            if system_steps == 0 {
                expansion.deadlocks += 1;
                if self.checks.deadlocks {
                    expansion.violate(number, Violation::Deadlock);
                }
            }
        }
    }
}

/// Appends a bit mask in whole words. A bit is set for each word in which the two states differ.
pub fn differences(state: &[u32], other: &[u32], masks: &mut Vec<u32>) {
    for (part, of_other) in state.chunks(32).zip(other.chunks(32)) {
        let bits = part.iter().zip(of_other).enumerate().map(|(bit, (a, b))| u32::from(a != b) << bit);
        masks.push(bits.sum());
    }
}
