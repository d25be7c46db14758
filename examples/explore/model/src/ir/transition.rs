//! Transitions of processes: guards, operations on channels, effects and assertions.

use super::{BufferId, ChannelId, Expression, LocationId, Operation, ProcessId, Span, VariableId};

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

/// The operation of a transition on a channel, if any, and so whether the transition needs a partner.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// No operation on a channel, and no partner.
    Alone,
    /// Sends to a receiver on the channel; one value for each field.
    Send { channel: ChannelId, values: Vec<Expression> },
    /// Receives from a sender on the channel; one target for each field.
    Receive { channel: ChannelId, targets: Vec<StoreTarget> },
    /// An operation on a buffered channel, without a partner. The guard and the effects of the transition carry it out; the
    /// action says which operation they are.
    Buffered { buffer: BufferId, operation: Operation },
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
