//! What the names of a model stand for.

use crate::buffer::Buffer;
use crate::ir::{ChannelId, LocationId, ProcessId, Texts, Type, Variable, VariableId};
pub use crate::parsing::Declared;
use std::sync::Arc;

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
    /// Of the steps of a network, which conditions ask for.
    pub labels: Arc<Texts>,
}

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

impl Channel {
    /// The types of a message's values; `None` for what is sent as it is.
    pub fn types(&self, channels: &[crate::ir::Channel], variables: &[Variable]) -> Vec<Option<Type>> {
        match self {
            Self::Rendezvous(channel) => channels[*channel].fields.iter().map(|field| field.ty).collect(),
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
