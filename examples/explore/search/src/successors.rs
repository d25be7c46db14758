//! Where successors come from, and what is found on the way.

use crate::checks::{Checks, Violation};
use crate::interpreter::{Interpreter, Scratch, Step};
use warpset_model::product::Counted;

/// Finds the successors of states and checks the states: by interpretation, or by compiled code.
pub trait Successors: Sync {
    /// Memory of a thread, to be used again.
    type Scratch: Default + Send;

    /// Words a state.
    fn width(&self) -> usize;

    /// Checks the states, which are so many times `width` words, and adds their successors to the expansion, with multiplicity.
    ///
    /// Stops at a state that has a fault, in a condition or a step: none of its successors is added, nor any of later states.
    fn expand(&self, states: &[u32], scratch: &mut Self::Scratch, expansion: &mut Expansion);

    /// Adds the successors of all states but those that have a fault, and does not tell what is wrong with any.
    fn expand_those_without_fault(&self, states: &[u32], scratch: &mut Self::Scratch, expansion: &mut Expansion) {
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

/// What is found in some states.
#[derive(Clone, Debug, Default)]
pub struct Expansion {
    /// The successors of all states, one after another.
    pub successors: Vec<u32>,
    /// For each successor, the number of the state that it is of.
    pub parents: Vec<u32>,
    /// States in which the processes have no step.
    pub deadlocks: u64,
    /// Stores that had to wrap their value.
    pub overflows: u64,
    /// The first state for which something is wrong, by its number, and what; but the fault, if there is one.
    pub violation: Option<(usize, Violation)>,
}

impl Expansion {
    pub fn clear(&mut self) {
        self.successors.clear();
        self.parents.clear();
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
}

impl Successors for Interpreted<'_> {
    type Scratch = Scratch;

    fn width(&self) -> usize {
        self.interpreter.model().layout.words
    }

    fn expand(&self, states: &[u32], scratch: &mut Scratch, expansion: &mut Expansion) {
        self.expand_with(states, scratch, expansion, |_| {});
    }
}

impl Interpreted<'_> {
    /// The same, and calls `visit` with the step to each successor, those too that are removed again for a fault. `None`: only
    /// the automaton of a property moves.
    pub fn expand_with(
        &self,
        states: &[u32],
        scratch: &mut Scratch,
        expansion: &mut Expansion,
        mut visit: impl FnMut(Option<Step>),
    ) {
        for (number, state) in states.chunks_exact(self.width()).enumerate() {
            for (at, condition) in self.checks.conditions.iter().enumerate() {
                match self.interpreter.value(&condition.must_hold, state) {
                    Ok(0) => expansion.violate(number, Violation::Condition(at)),
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
                self.interpreter.product_steps(state, scratch, |step, successor| add(step.system, successor))
            } else {
                let mut system_steps = 0;
                let overflows = self.interpreter.steps(state, scratch, |step, successor| {
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
            if system_steps == 0 {
                expansion.deadlocks += 1;
                if self.checks.deadlocks {
                    expansion.violate(number, Violation::Deadlock);
                }
            }
        }
    }
}

/// Adds a bit for each word, set if the states differ in it, in whole words.
pub fn differences(state: &[u32], other: &[u32], masks: &mut Vec<u32>) {
    for (part, of_other) in state.chunks(32).zip(other.chunks(32)) {
        let bits = part.iter().zip(of_other).enumerate().map(|(bit, (a, b))| u32::from(a != b) << bit);
        masks.push(bits.sum());
    }
}
