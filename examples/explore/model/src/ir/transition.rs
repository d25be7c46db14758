//! Transitions of processes: guards, effects, rendezvous channels and assertions.

use super::{ChannelId, Expression, LocationId, ProcessId, Span, TransitionId, Type, VariableId};

/// A rendezvous channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub name: String,
    /// The values of one message.
    pub fields: Vec<MessageField>,
    /// The transitions that send on the channel, ascending.
    pub senders: Vec<TransitionId>,
    /// The transitions that receive on the channel, ascending.
    pub receivers: Vec<TransitionId>,
}

/// Conversion of one value that is sent over a rendezvous channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageField {
    /// Type that the value is wrapped to. A value that does not fit counts as an overflow. `None` leaves the value unchanged.
    pub ty: Option<Type>,
    /// Whether the receiver gets 1 for every wrapped value that is not 0.
    pub becomes_truth: bool,
}

impl From<Option<Type>> for MessageField {
    fn from(ty: Option<Type>) -> Self {
        Self { ty, becomes_truth: false }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub process: ProcessId,
    pub from: LocationId,
    pub to: LocationId,
    /// The guard; `None` means always true.
    pub guard: Option<Expression>,
    pub action: Action,
    pub effects: Vec<Assignment>,
    pub span: Span,
}

/// The partner of a transition.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Without a partner.
    Alone,
    /// With a receiver on the channel; one value for each field.
    Send { channel: ChannelId, values: Vec<Expression> },
    /// With a sender on the channel; one target for each field.
    Receive { channel: ChannelId, targets: Vec<StoreTarget> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub target: StoreTarget,
    pub value: Expression,
}

/// The target of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreTarget {
    pub variable: VariableId,
    /// Index of the element of an array; `None` for a scalar.
    pub index: Option<Expression>,
    pub span: Span,
}

/// A condition that must hold whenever a process is in a location.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    pub process: ProcessId,
    pub location: LocationId,
    pub condition: Expression,
    pub span: Span,
}
