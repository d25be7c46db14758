//! The front end for DVE, the language of the DiVinE tools and of the BEEM benchmark (Pelánek 2007): parser, names, lowering.
//!
//! The front end supports the whole language for asynchronous systems, with C's operator precedence: typed, buffered and untyped
//! channels, messages of several values, committed states, assertions, and variables of other processes (`P->x` or `P.x`). A
//! property process (`system async property NAME`, `accept`) is an automaton beside the other processes (`ir::property`). The
//! front end refuses, with a reason: accepting states of other processes, acceptance other than Büchi's, `system sync`, and
//! probabilistic transitions.
//!
//! # How it is lowered
//!
//! - Names become indices; constants, and operations on constants alone, become numbers.
//! - `byte` is 8 bits unsigned, `int` 16 bits signed. An array without an index means its first element.
//! - A list of initial values may differ in length from its array: surplus values are dropped, and missing values are 0.
//! - An initial value that does not fit its type wraps around, as stores do. Every part of the text that is not computed as it is
//!   written gives a [`Warning`].
//! - `true` is 1 and `false` is 0. A transition `-> b` without a source has the source of the transition before it.
//! - A channel with capacity n > 0 becomes an array for each value of a message, a length, and transitions that act alone. A send
//!   requires its guard and length < n; it stores the values behind the last ones and adds 1 to the length. A receive requires
//!   its guard and length > 0; it stores the first elements in the targets, moves all others up, sets the last to 0 and subtracts
//!   1 from the length. The transition's own effects follow.
//! - `process P[id < n]` is n processes, P_0 to P_(n-1), each with a constant `id` of its own.
//! - Values sent over a typed channel are wrapped to its types. An untyped channel without capacity does not wrap values; one
//!   with capacity stores them as `int`. The first use of an untyped channel determines the number of values in its messages.

mod expressions;
mod grammar;
mod lowering;
mod names;
#[cfg(test)]
mod tests;

use crate::constants::Constants;
use crate::diagnostic::Located;
use crate::ir::{Expression, Model, Source, Variable};
use crate::warnings::Warning;
use expressions::Scope;
use grammar::Rule;
use std::cell::RefCell;

pub use grammar::is_name;
pub use names::{Meaning, Names};

/// A model with the names that its text declares, for conditions about it.
#[derive(Clone, Debug)]
pub struct Dve {
    pub model: Model,
    /// The warnings, in the order of the text.
    pub warnings: Vec<Warning>,
    names: Names,
}

impl Dve {
    /// Reads a model.
    ///
    /// # Errors
    ///
    /// The first error in the text, with its place.
    pub fn read(source: Source) -> Result<Self, Box<Located>> {
        Self::read_with(source, &Constants::default())
    }

    /// Reads a model with other values of some constants: `N`, or `P.N` for a constant of process P.
    ///
    /// # Errors
    ///
    /// The first error in the text, with its place, or a constant that the text does not have.
    pub fn read_with(source: Source, constants: &Constants) -> Result<Self, Box<Located>> {
        match lowering::lower(&source, constants) {
            Ok((model, names, warnings)) => Ok(Self { model, warnings, names }),
            Err(error) => Err(Box::new(error.of(&source))),
        }
    }

    /// Whether the model has a global variable or constant with this name.
    pub fn has_variable(&self, name: &str) -> bool {
        self.names.globals.get(name).is_some()
    }

    pub fn has_process(&self, name: &str) -> bool {
        self.names.processes.get(name).is_some()
    }

    /// Reads a condition on the states of the model, such as `P_0.CS + P_1.CS <= 1`: an expression over its global names, and
    /// over states and variables of processes as `P.name`. Also returns warnings about parts that are not computed as they are
    /// written.
    ///
    /// # Errors
    ///
    /// The first error in the condition, with its place.
    pub fn condition(&self, source: &Source) -> Result<(Expression, Vec<Warning>), Box<Located>> {
        condition(&self.names, &self.model.variables, source)
    }
}

/// Reads a condition over the names of any model. Also returns warnings about parts that are not computed as they are written.
///
/// # Errors
///
/// The first error in the condition, with its place.
pub fn condition(names: &Names, variables: &[Variable], source: &Source) -> Result<(Expression, Vec<Warning>), Box<Located>> {
    let warnings = RefCell::default();
    let scope = Scope { names, variables, process: None, warnings: &warnings };
    let read = || {
        let pair = grammar::parse(Rule::condition, &source.text)?;
        scope.condition(pair.into_inner().next().expect("a condition is an expression"))
    };
    let expression = read().map_err(|error| Box::new(error.of(source)))?;
    Ok((expression, warnings.into_inner()))
}
