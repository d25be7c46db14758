//! Properties of infinite runs: formulas, automata, and the search for accepting cycles.

pub mod check;
pub mod fairness;
pub mod graph;
pub mod lasso;
pub mod possible;
pub mod residue;
pub mod runs;
#[cfg(all(test, feature = "cpu"))]
mod runs_tests;
#[cfg(all(test, feature = "cpu"))]
mod tests;
