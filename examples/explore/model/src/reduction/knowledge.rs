//! How much the analysis of dependencies knows about a model's values.

/// Knowledge about the values in the states in which actions are enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// The intervals of reachable values, narrowed by guards, and the invariants of nets.
    Values,
    /// Only the types of variables, and constants. Measurements use it to show what `Values` gains.
    Types,
}
