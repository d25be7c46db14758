//! The simulator itself: its machine, and the wrong algorithms and changed headers that it must catch.

mod controls;
mod machine;
mod mutants;
