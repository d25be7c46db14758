//! Pictures of small things: state spaces for Graphviz, and paths as message charts.

pub mod chart;
pub mod dot;
pub mod projection;
mod svg;

use warpset_model::interpreter::Step;
use warpset_model::ir::Model;
use warpset_model::trace::{Attempt, Path};
use warpset_search::ctl::Witness;
use warpset_search::liveness::lasso::Lasso;

/// A path, or a path that ends in a loop.
pub struct Run<'p> {
    /// One state more than steps.
    pub states: &'p [Vec<u32>],
    /// The steps. `None`: no step is possible, and only the automaton of a property moves.
    pub steps: Vec<Option<Step>>,
    /// Number of the state in which the loop begins. The last state of the run is that state again.
    pub begins: Option<usize>,
    /// The step behind the last state that has a fault.
    pub attempt: Option<Attempt>,
}

impl<'p> Run<'p> {
    pub fn of_path(path: &'p Path, model: &Model) -> Self {
        Self { states: &path.states, steps: path.steps.clone(), begins: None, attempt: path.attempt(model) }
    }

    pub fn of_witness(witness: &'p Witness) -> Self {
        let steps = witness.steps.iter().copied().map(Some).collect();
        Self { states: &witness.states, steps, begins: witness.begins, attempt: None }
    }

    pub fn of_lasso(lasso: &'p Lasso) -> Self {
        let begins = Some(lasso.begins).filter(|begins| *begins < lasso.steps.len());
        let steps = lasso.steps.iter().map(|step| step.system).collect();
        Self { states: &lasso.states, steps, begins, attempt: None }
    }
}
