//! Linear temporal logic: formulas, Büchi automata, the translation of one to the other, and automata as texts (HOA).

pub mod buchi;
pub mod formula;
pub mod hoa;
pub mod property;
pub mod translate;
#[cfg(test)]
mod translate_tests;
