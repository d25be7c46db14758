//! Pictures of small things: state spaces for Graphviz, and paths as message charts.

pub mod chart;
pub mod dot;
pub mod projection;
mod svg;

use warpset_model::interpreter::Step;
use warpset_model::trace::Path;
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
}

impl<'p> Run<'p> {
    pub fn of_path(path: &'p Path) -> Self {
        Self { states: &path.states, steps: path.steps.clone(), begins: None }
    }

    pub fn of_witness(witness: &'p Witness) -> Self {
        Self { states: &witness.states, steps: witness.steps.iter().copied().map(Some).collect(), begins: witness.begins }
    }

    pub fn of_lasso(lasso: &'p Lasso) -> Self {
        let begins = Some(lasso.begins).filter(|begins| *begins < lasso.steps.len());
        Self { states: &lasso.states, steps: lasso.steps.iter().map(|step| step.system).collect(), begins }
    }
}
