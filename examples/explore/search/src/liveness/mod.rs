//! Properties of infinite runs: formulas, automata, and the search for accepting cycles.

pub mod check;
pub mod fairness;
pub mod lasso;
pub mod possible;
pub mod residue;
#[cfg(all(test, feature = "cpu"))]
mod tests;
