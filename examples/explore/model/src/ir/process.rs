//! Processes of a model.

use super::{LocationId, TransitionId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub name: String,
    pub locations: Vec<Location>,
    pub initial: LocationId,
    /// The range of the process's transitions in [`Model::transitions`](super::Model::transitions).
    pub transitions: std::ops::Range<TransitionId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub name: String,
    /// Whether the location is committed: while a process is in it, rule 3 of the steps applies.
    pub committed: bool,
}
