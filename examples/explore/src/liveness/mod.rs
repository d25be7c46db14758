//! What runs do for ever: formulas, automata, and the search for accepting cycles.

use warpset_model::ltl::{buchi, formula, hoa, translate};

pub mod ask;
pub mod check;
pub mod fairness;
pub mod lasso;
pub mod possible;
pub mod residue;
#[cfg(all(test, feature = "cpu"))]
mod tests;
