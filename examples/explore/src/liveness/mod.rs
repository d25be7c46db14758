//! What runs do for ever: formulas, automata, and the search for accepting cycles.

pub mod buchi;
pub mod check;
pub mod components;
pub mod fairness;
pub mod formula;
pub mod hoa;
pub mod lasso;
pub mod possible;
pub mod product;
pub mod property;
pub mod residue;
#[cfg(all(test, feature = "cpu"))]
mod tests;
pub mod translate;
#[cfg(test)]
mod translate_tests;
