//! The front end for DVE, the language of the DiVinE tools and of the BEEM benchmark (Pelánek 2007): parser, names, lowering.
//!
//! The whole language for systems that run asynchronously, with C's precedence of operators: typed, buffered and untyped
//! channels, messages of several values, committed states, assertions, variables of other processes (`P->x` or `P.x`). A
//! property process (`system async property NAME`, `accept`) is an automaton beside the others (`ir::property`). Refused with a
//! reason: accepting states of other processes, acceptance other than Büchi's, `system sync`, probabilistic transitions.
//!
//! # How it is lowered
//!
//! - Names become indices; constants, and operations on constants alone, become numbers.
//! - `byte` is 8 bits unsigned, `int` 16 bits signed. An array without an index means its first element.
//! - A list of initial values may be longer than its array, and what is over is dropped; or shorter, and the rest is 0.
//! - An initial value that does not fit its type wraps around, as stores do. Whatever of the text is not computed as it is
//!   written is a [`Warning`].
//! - `true` is 1 and `false` is 0. `-> b` without a source has that of the transition before it.
//! - A channel with room for n > 0 messages becomes an array for each value of a message, a length, and transitions by
//!   themselves. To send: guard and length < n; the values are stored behind the last ones; length + 1. To receive: guard and
//!   length > 0; the first elements are stored in the targets; all others move up and the last becomes 0; length - 1. The
//!   transition's own effects follow.
//! - Values sent over a typed channel are wrapped to its types; those over an untyped one without room are not, and one with room
//!   stores `int`. How many values the messages of an untyped channel have shows in its first use.

mod expressions;
mod grammar;
mod lowering;
mod names;
#[cfg(any(test, feature = "random"))]
pub mod random;
#[cfg(test)]
mod tests;

use crate::diagnostic::Located;
use crate::ir::{Expression, Model, Source, Variable};
use crate::warnings::Warning;
use expressions::Scope;
use grammar::Rule;
use std::cell::RefCell;

pub use grammar::is_keyword;
pub use names::{Meaning, Names};

/// A model with the names that its text declares, for conditions about it.
#[derive(Clone, Debug)]
pub struct Dve {
    pub model: Model,
    /// In the order of the text.
    pub warnings: Vec<Warning>,
    names: Names,
}

impl Dve {
    /// Reads a model.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with the text, and where.
    pub fn read(source: Source) -> Result<Self, Box<Located>> {
        match lowering::lower(&source) {
            Ok((model, names, warnings)) => Ok(Self { model, warnings, names }),
            Err(error) => Err(Box::new(error.of(&source))),
        }
    }

    /// Whether the model has a global variable or constant of that name.
    pub fn has_variable(&self, name: &str) -> bool {
        self.names.globals.get(name).is_some()
    }

    pub fn has_process(&self, name: &str) -> bool {
        self.names.processes.get(name).is_some()
    }

    /// Reads a condition on the states of the model, as `P_0.CS + P_1.CS <= 1`: an expression over its global names, and over
    /// states and variables of processes as `P.name`. Also gives what of it is not computed as it is written.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn condition(&self, source: &Source) -> Result<(Expression, Vec<Warning>), Box<Located>> {
        condition(&self.names, &self.model.variables, source)
    }
}

/// Reads a condition over names of any model; and what of it is not computed as it is written.
///
/// # Errors
///
/// As [`Dve::read`].
pub fn condition(names: &Names, variables: &[Variable], source: &Source) -> Result<(Expression, Vec<Warning>), Box<Located>> {
    let warnings = RefCell::default();
    let scope = Scope { names, variables, process: None, warnings: &warnings };
    let read = || {
        let pair = grammar::parse(Rule::condition, &source.text)?;
        scope.expression(pair.into_inner().next().expect("a condition is an expression"))
    };
    let expression = read().map_err(|error| Box::new(error.of(source)))?;
    Ok((expression, warnings.into_inner()))
}
