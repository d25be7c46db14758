//! Searches of the states that a model can reach, over tables of warpset. They know no options, print nothing and write no
//! reports: a program gives them a model, a table and limits, and gets counts, violations and paths.
//!
//! [`exploration`] has what every search takes and gives, and the trait [`Explorer`](exploration::Explorer). Engines are
//! [`threads`] of this machine (over [`engine`]), `gpu`, and [`ranks`] of several devices; [`numbering`] gives the whole state
//! space to a consumer. They get successors from the interpreter, from compiled code ([`codegen`]) or from both ([`switching`]).
//! [`liveness`] searches for accepting cycles, [`checkpoint`] keeps a search in a file, [`path`] finds the way to a state.

pub mod checkpoint;
pub mod codegen;
pub mod engine;
pub mod exploration;
#[cfg(feature = "cuda")]
pub mod gpu;
pub mod growth;
pub mod liveness;
pub mod measurements;
pub mod numbering;
pub mod parents;
pub mod path;
pub mod ranks;
pub mod successors;
pub mod switching;
pub mod table_kind;
pub mod threads;

use warpset_model::{checks, interpreter, ir};
#[cfg(test)]
use warpset_model::{diagnostic, input, language, network};
use warpset_support::{exit, in_process, program, stopping};

// States are vectors of warpset's tables.
const _: () = assert!(ir::MAX_WORDS == warpset::Spec::MAX_WIDTH);
