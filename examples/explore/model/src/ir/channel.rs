//! Channels: rendezvous between two transitions, and buffers, in which messages wait.

use super::{Model, TransitionId, Type, VariableId};

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

/// A buffered channel. The first `length` elements of its arrays hold the waiting messages, oldest first; all other elements are
/// 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub name: String,
    /// For each value of a message, the array of that value.
    pub values: Vec<VariableId>,
    /// Names of the signals that messages may carry; empty if the language has no signals.
    pub signals: Vec<String>,
    /// The array of the messages' signals, as indices of `signals`; `None` if there are fewer than two signals.
    pub signal: Option<VariableId>,
    /// The number of waiting messages.
    pub length: VariableId,
    /// Capacity in messages.
    pub capacity: usize,
}

/// Operation on a buffered channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Appends a message.
    Send,
    /// Removes the oldest message.
    Receive,
    /// Sends a message that a lossy channel loses.
    Lose,
}

impl Buffer {
    /// The arrays of a message's parts: its values, then its signal.
    pub fn arrays(&self) -> impl Iterator<Item = VariableId> + Clone + '_ {
        self.values.iter().copied().chain(self.signal)
    }

    /// Number of waiting messages in a packed state.
    pub fn waiting(&self, model: &Model, state: &[u32]) -> usize {
        model.value(state, self.length, 0) as usize
    }

    /// Signal, if the language has signals, and values of the waiting message at `place` in a packed state. The oldest message is
    /// at 0; `place` must be below the capacity.
    pub fn message(&self, model: &Model, state: &[u32], place: usize) -> (Option<&str>, Vec<i32>) {
        let signal = self.signal.map_or(0, |array| model.value(state, array, place) as usize);
        let values = self.values.iter().map(|array| model.value(state, *array, place)).collect();
        (self.signals.get(signal).map(String::as_str), values)
    }
}
