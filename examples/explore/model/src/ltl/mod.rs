//! Linear temporal logic: formulas, Büchi automata, the translation of formulas to automata, and the HOA text format of automata.

pub mod buchi;
pub mod formula;
pub mod hoa;
pub mod property;
pub mod translate;
#[cfg(test)]
mod translate_tests;
