//! Successors by the steps of stubborn sets.

use crate::exploration::add_violating;
use crate::successors::{Expansion, Interpreted, Scratch, Successors};
use warpset_model::checks::Violation;
use warpset_model::interpreter::Step;
use warpset_model::reduction::stubborn::Stubborn;

/// Computes the successors by the steps that a stubborn set keeps, with the interpreter.
pub struct Reduced<'m> {
    pub interpreted: &'m Interpreted<'m>,
    pub stubborn: &'m Stubborn<'m>,
}

impl Successors for Reduced<'_> {
    fn width(&self) -> usize {
        self.interpreted.width()
    }

    fn expand(&self, states: &[u32], scratch: &mut Scratch, expansion: &mut Expansion) {
        let width = self.width();
        let mut all = std::mem::take(&mut scratch.all);
        let mut steps: Vec<Step> = std::mem::take(&mut scratch.steps);
        for (number, state) in states.chunks_exact(width).enumerate() {
            all.clear();
            steps.clear();
            // `step` is never `None` here: models with a property are not reduced, and only their steps may be missing.
            self.interpreted.expand_with(state, scratch, &mut all, |step| steps.extend(step));
            expansion.deadlocks += all.deadlocks;
            expansion.overflows += all.overflows;
            add_violating(&mut expansion.violating, &all.violating);
            if let Some((_, violation)) = all.violation.take() {
                let is_fault = matches!(violation, Violation::Fault(_));
                expansion.violate(number, violation);
                // After a fault, add no successors of this state or of later ones.
                if is_fault {
                    break;
                }
            }
            let chosen = self.stubborn.choose(state, &steps, &mut scratch.stubborn);
            for (step, successor) in steps.iter().zip(all.successors.chunks_exact(width)) {
                if chosen.contains(self.stubborn.dependencies.actions.of_step(*step)) {
                    expansion.parents.push(number as u32);
                    expansion.successors.extend_from_slice(successor);
                }
            }
        }
        (scratch.all, scratch.steps) = (all, steps);
    }
}
