//! The front end for SLCO 2.0 (Simple Language of Communicating Objects), the input language of GPUexplore 3.0 (Wijs and Osama
//! 2024): classes of state machines, objects, channels.
//!
//! # How it is lowered
//!
//! - Each state machine of each object is a process, called `object.machine`, or `machine` in a model of one object. Each object
//!   has its own variables. One transition of the state space is one statement: a block of n statements goes over n - 1 locations
//!   of its own, also if it is equal to another block. In those the machine is in the target state already, so that a condition
//!   `object.machine.state` holds there.
//! - `Byte` is 8 bits unsigned, `Integer` 32 bits signed, and what is stored in a `Boolean` becomes 1 if it is not 0. Stores
//!   wrap, and are counted. Without an initial value numbers are 0, and Booleans true.
//! - Operators have C's precedence and are left-associative, as all tools for the language read them in the end. Its grammar,
//!   taken as a tree, has them right-associative, with `or`, `xor` and `and` on one level. `not` and signs bind to the next
//!   primary only. `xor` is C++'s: of all bits. `**` is right-associative and binds closest.
//! - Of a location's transitions those of the highest priority that is enabled are taken: all others get the condition that none
//!   of a higher priority is. 1 is the highest, and none, or 0, the lowest.
//! - A composite is one transition with a guard and assignments. Actions, `after` and empty blocks are transitions that do
//!   nothing.
//! - Asynchronous channels are buffers (buffer.rs) with one more array for the signal's name, if several are sent. A
//!   lossy one has a second transition for each statement that sends, in which nothing happens.
//! - Synchronous channels become rendezvous, one for each direction and signal. A guard of a receiver is about the state with the
//!   values received: such a receiver has a rendezvous of its own, and every sender to it checks the guard, of the values that it
//!   would send. A synchronous statement is enabled, where priorities ask for it, if there is a partner.
//! - A port without a channel never sends nor receives, which is warned of.

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
use crate::diagnostic::{Diagnostic, Located};
use crate::ir::{Expression, Model, Source};
use crate::warnings::Warning;
use declarations::Declarations;
use expressions::Scope;
use grammar::Rule;
use names::Names;
use std::cell::RefCell;
use steps::Steps;

/// A model with the names that its text declares, for conditions about it.
#[derive(Clone, Debug)]
pub struct Slco {
    pub model: Model,
    /// In the order of the text.
    pub warnings: Vec<Warning>,
    names: Names,
}

impl Slco {
    /// Reads a model.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with the text, and where.
    pub fn read(source: Source) -> Result<Self, Box<Located>> {
        lower(&source).map_err(|error| Box::new(error.of(&source)))
    }

    /// Whether the only object has a variable of that name.
    pub fn has_variable(&self, name: &str) -> bool {
        matches!(&self.names.objects[..], [object] if object.variables.get(name).is_some())
    }

    /// Reads a condition on the states of the model: an expression over variables as `object.variable` and
    /// `object.machine.variable`, and over states as `object.machine.state`. The object may be left out if there is only one.
    /// Also gives what of it is not computed as it is written.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
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

fn lower(source: &Source) -> Result<Slco, Diagnostic> {
    let text = grammar::parse(Rule::model, &source.text)?;
    let mut all = Declarations::of(text)?;
    let statements = behaviour::statements(&mut all)?;
    let Declarations { names, variables, mut processes, channels, mut warnings, .. } = all;
    let Steps { transitions, rendezvous, .. } = Steps::of(&statements, &variables, &channels)?;
    let mut first = 0;
    for (id, process) in processes.iter_mut().enumerate() {
        let count = transitions[first..].iter().take_while(|transition| transition.process == id).count();
        process.transitions = first..first + count;
        first += count;
    }
    warnings.sort_by_key(|warning| warning.diagnostic.span.start);
    // A class is read for each of its objects, and says the same each time.
    warnings.dedup();
    let model = assembled(Parts { variables, processes, channels: rendezvous, transitions, ..Parts::default() }, source)?;
    Ok(Slco { model, warnings, names })
}
