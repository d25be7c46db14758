//! The front end for SLCO 2.0 (Simple Language of Communicating Objects), the input language of GPUexplore 3.0 (Wijs and Osama
//! 2024): classes of state machines, objects, and channels.
//!
//! # How it is lowered
//!
//! - Each state machine of each object is a process, called `object.machine`, or `machine` in a model of one object. Each object
//!   has its own variables. One transition of the state space is one statement. A block of n statements goes through n - 1
//!   locations of its own, even if an equal block exists. In these locations the machine counts as being in the target state, so
//!   that a condition `object.machine.state` holds there.
//! - `Byte` has 8 bits without a sign, `Integer` has 32 bits with a sign. A value that is stored in a `Boolean` becomes 1 if it
//!   is not 0. Stores wrap and are counted. Without an initial value, numbers are 0 and Booleans are true.
//! - Operators have C's precedence and are left-associative, as all tools for the language evaluate them. In the parse trees of
//!   the language's own grammar they are right-associative, and `or`, `xor` and `and` have the same precedence. `not` and signs
//!   apply only to the next primary. `xor` is bitwise, as in C++. `**` is right-associative and binds tightest.
//! - Only the enabled transitions with the highest priority leave a location: each transition gets the condition that no
//!   transition with a higher priority is enabled. 1 is the highest priority; no priority, or 0, is the lowest.
//! - A composite is one transition with a guard and assignments. Actions, `after` and empty blocks are transitions that do
//!   nothing.
//! - Asynchronous channels are buffers (buffer.rs), with one more array for the signal's name if several signals are sent. For a
//!   lossy channel, each statement that sends has a second transition, which loses the message.
//! - Synchronous channels become rendezvous, one for each direction and signal. The guard of a receiver is evaluated in the state
//!   with the received values. Such a receiver has its own rendezvous, and every sender to it checks the guard with the values
//!   that it would send. For priorities, a synchronous statement is enabled if a partner is ready.
//! - A port without a channel never sends or receives; this gives a warning.

mod behaviour;
mod declarations;
mod expressions;
mod grammar;
mod names;
mod received;
mod steps;
#[cfg(test)]
mod tests;

use crate::assembly::{Parts, assembled};
use crate::constants::Constants;
use crate::diagnostic::{Diagnostic, Located};
use crate::ir::{Expression, Model, Source};
use crate::warnings::Warning;
use declarations::Declarations;
use expressions::Scope;
use grammar::Rule;
use names::Names;
use std::cell::RefCell;
use steps::Steps;

/// A model and the names that its text declares, for conditions on the model.
#[derive(Clone, Debug)]
pub struct Slco {
    pub model: Model,
    /// The warnings, in the order of the text.
    pub warnings: Vec<Warning>,
    names: Names,
}

impl Slco {
    /// Reads a model.
    ///
    /// # Errors
    ///
    /// The text has an error. The first error is returned, with its place.
    pub fn read(source: Source) -> Result<Self, Box<Located>> {
        Self::read_with(source, &Constants::default())
    }

    /// Reads a model, but changes the initial values of some variables of objects. `constants` names them `object.variable`, or
    /// `variable` if there is only one object.
    ///
    /// # Errors
    ///
    /// The text has an error (the first one is returned, with its place), or `constants` names a variable that no object has.
    pub fn read_with(source: Source, constants: &Constants) -> Result<Self, Box<Located>> {
        lower(&source, constants).map_err(|error| Box::new(error.of(&source)))
    }

    /// Whether the model has only one object, and this object has a variable with this name.
    pub fn has_variable(&self, name: &str) -> bool {
        matches!(&self.names.objects[..], [object] if object.variables.get(name).is_some())
    }

    /// Reads a condition on the states of the model: an expression that may use `object.variable`, `object.machine.variable` and
    /// `object.machine.state`. The object may be left out if there is only one. Also returns warnings about parts that mean
    /// something else than they say.
    ///
    /// # Errors
    ///
    /// The first error in the condition, with its place.
    pub fn condition(&self, source: &Source) -> Result<(Expression, Vec<Warning>), Box<Located>> {
        let warnings = RefCell::default();
        let scope = Scope { names: &self.names, variables: &self.model.variables, warnings: &warnings };
        let read = || {
            let pair = grammar::parse(Rule::condition, &source.text)?;
            scope.expression(pair.into_inner().next().expect("a condition is an expression"))
        };
        let expression = read().map_err(|error| Box::new(error.of(source)))?;
        Ok((expression, warnings.into_inner()))
    }
}

fn lower(source: &Source, constants: &Constants) -> Result<Slco, Diagnostic> {
    let text = grammar::parse(Rule::model, &source.text)?;
    let mut all = Declarations::of(text, constants)?;
    let statements = behaviour::statements(&mut all)?;
    let Declarations { names, variables, mut processes, channels, buffers, mut warnings, .. } = all;
    let Steps { transitions, rendezvous, .. } = Steps::of(&statements, &variables, &channels, &buffers)?;
    let mut first = 0;
    for (id, process) in processes.iter_mut().enumerate() {
        let count = transitions[first..].iter().take_while(|transition| transition.process == id).count();
        process.transitions = first..first + count;
        first += count;
    }
    warnings.sort_by_key(|warning| warning.diagnostic.span.start);
    // A class is read once for each of its objects, with equal warnings each time.
    warnings.dedup();
    let parts = Parts { variables, processes, channels: rendezvous, buffers, transitions, ..Parts::default() };
    let mut model = assembled(parts, source)?;
    model.constants = constants.list().to_vec();
    Ok(Slco { model, warnings, names })
}
