//! What the names of a model stand for.

use crate::ir::{ChannelId, LocationId, ProcessId, Span, Type, Variable, VariableId};
use std::collections::HashMap;

/// All names of a model. Variables and constants, channels, processes and states have a name space each.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub globals: Declared<Meaning>,
    pub channels: Declared<Channel>,
    pub processes: Declared<ProcessId>,
    /// By process.
    pub locals: Vec<Declared<Meaning>>,
    /// By process.
    pub states: Vec<Declared<LocationId>>,
}

/// Names of one kind in one scope.
#[derive(Clone, Debug)]
pub struct Declared<T>(HashMap<String, (T, Span)>);

/// What a name in an expression stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Constant(i32),
    Variable(VariableId),
    /// A variable that must not be assigned to.
    ConstantArray(VariableId),
}

/// What a channel is in the intermediate form.
#[derive(Clone, Debug)]
pub enum Channel {
    Rendezvous(ChannelId),
    Buffer(Buffer),
}

/// A buffered channel: an array for each value of a message, the first `length` elements of which are waiting, the oldest first.
/// All elements after them are 0.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub arrays: Vec<VariableId>,
    pub length: VariableId,
    /// Messages that have room.
    pub capacity: usize,
}

impl Channel {
    /// The types of a message's values; `None` for what is sent as it is.
    pub fn types(&self, channels: &[crate::ir::Channel], variables: &[Variable]) -> Vec<Option<Type>> {
        match self {
            Self::Rendezvous(channel) => channels[*channel].fields.clone(),
            Self::Buffer(buffer) => buffer.arrays.iter().map(|array| Some(variables[*array].ty)).collect(),
        }
    }

    /// How many values a message has.
    pub fn arity(&self, channels: &[crate::ir::Channel]) -> usize {
        match self {
            Self::Rendezvous(channel) => channels[*channel].fields.len(),
            Self::Buffer(buffer) => buffer.arrays.len(),
        }
    }
}

impl<T> Default for Declared<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Declared<T> {
    /// Declares a name; the place of an earlier declaration of it is an error.
    pub fn declare(&mut self, name: &str, meaning: T, span: Span) -> Result<(), Span> {
        match self.0.get(name) {
            Some((_, earlier)) => Err(*earlier),
            None => {
                self.0.insert(name.into(), (meaning, span));
                Ok(())
            }
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.get(name).map(|(meaning, _)| meaning)
    }

    /// In alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.0.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}
