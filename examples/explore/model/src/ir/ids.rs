//! Numbers of the parts of a model.

/// Index of a process in [`Model::processes`](super::Model::processes).
pub type ProcessId = usize;
/// Index of a variable in [`Model::variables`](super::Model::variables).
pub type VariableId = usize;
/// Index of a channel in [`Model::channels`](super::Model::channels).
pub type ChannelId = usize;
/// Index of a buffered channel in [`Model::buffers`](super::Model::buffers).
pub type BufferId = usize;
/// Index of a transition in [`Model::transitions`](super::Model::transitions).
pub type TransitionId = usize;
/// Index of a location in its [`Process::locations`](super::Process::locations); packed states hold this index.
pub type LocationId = usize;
/// The number of a rule of a network.
pub type RuleId = usize;
/// The number of a label in [`Network::labels`](super::Network::labels).
pub type LabelId = usize;
