//! Searches of the states that a model can reach, over tables of warpset. A search knows no options, prints nothing and writes no
//! reports: a program passes it a model, a table and limits, and receives counts, violations and paths.
//!
//! [`exploration`] defines the input and output of every search, and the trait [`Explorer`](exploration::Explorer). The engines
//! are [`threads`] of this machine (over [`engine`]), `gpu`, and [`ranks`] of several devices; [`numbering`] passes the whole
//! state space to a consumer. Successors come from the interpreter, from compiled code ([`codegen`]) or from both
//! ([`switching`]), and [`reduced`] keeps only the steps that a question needs. [`liveness`] searches for accepting cycles,
//! [`ctl`] evaluates formulas of branching time, [`checkpoint`] saves a search in a file, [`path`] finds the way to a state,
//! [`simulation`] takes random walks, and [`coverage`] counts which parts of the model occur in the states that were found.

pub mod checkpoint;
pub mod codegen;
pub mod coverage;
pub mod ctl;
pub mod engine;
pub mod exploration;
#[cfg(feature = "cuda")]
pub mod gpu;
pub mod growth;
pub mod liveness;
mod marks;
pub mod measurements;
pub mod numbering;
pub mod parents;
pub mod path;
pub mod predecessors;
pub mod ranks;
pub mod reduced;
pub mod simulation;
pub mod successors;
pub mod survey;
pub mod switching;
pub mod table_kind;
pub mod threads;

use warpset_model::ir;

// A state must fit a vector of warpset's tables.
const _: () = assert!(ir::MAX_WORDS == warpset::Spec::MAX_WIDTH);
