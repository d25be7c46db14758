//! The meaning of a model's names.

use crate::ir::{self, Buffer, BufferId, ChannelId, LocationId, ProcessId, Texts, Type, Variable, VariableId};
use crate::net::names::NetNames;
pub use crate::parsing::Declared;
use std::sync::Arc;

/// All names of a model. Variables and constants, channels, processes and states have a name space each.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub globals: Declared<Meaning>,
    pub channels: Declared<Channel>,
    pub processes: Declared<ProcessId>,
    /// Local variables and constants, by process.
    pub locals: Vec<Declared<Meaning>>,
    /// States, by process.
    pub states: Vec<Declared<LocationId>>,
    /// Labels of the steps of a network, for conditions.
    pub labels: Arc<Texts>,
    /// Places and transitions of a net, for conditions.
    pub net: Option<Arc<NetNames>>,
}

/// The meaning of a name in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Constant(i32),
    Variable(VariableId),
    /// A constant array: a variable that must not be assigned to.
    ConstantArray(VariableId),
}

/// The form of a channel in the intermediate form.
#[derive(Clone, Copy, Debug)]
pub enum Channel {
    Rendezvous(ChannelId),
    Buffered(BufferId),
}

impl Channel {
    /// The types of a message's values; `None` for a value that is sent unchanged.
    pub fn types(self, channels: &[ir::Channel], buffers: &[Buffer], variables: &[Variable]) -> Vec<Option<Type>> {
        match self {
            Self::Rendezvous(channel) => channels[channel].fields.iter().map(|field| field.ty).collect(),
            Self::Buffered(buffer) => buffers[buffer].values.iter().map(|array| Some(variables[*array].ty)).collect(),
        }
    }
}
