//! Models, without any search: the languages DVE, SLCO, EXP and PNML, the intermediate form that they are translated to, its
//! interpreter, and temporal logic with its automata.
//!
//! `language` reads a text with one of the front ends (`dve`, `slco`, `network`, `net`). Each front end builds a
//! [`Model`](ir::Model) with `assembly`, and returns warnings and located errors (`diagnostic`). [`interpreter`] takes steps of a
//! model; [`checks`] are the conditions that are evaluated in its states; [`trace`] replays paths and shows states and steps;
//! [`messages`] says what a step sends or receives.
//! `ltl` has formulas, their translation to Büchi automata, and the HOA format.

mod assembly;
mod buffer;
mod chains;
pub mod checks;
pub mod constants;
pub mod ctl;
pub mod diagnostic;
pub mod dve;
pub mod input;
pub mod interpreter;
pub mod ir;
pub mod language;
pub mod ltl;
pub mod messages;
pub mod net;
pub mod network;
pub mod parsing;
pub mod product;
pub mod reduction;
pub mod slco;
pub mod statements;
pub mod terms;
pub mod trace;
pub mod warnings;
