//! How much the analysis of dependencies knows of a model's values.

/// Knowledge of the values in the states in which actions are enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// The intervals of reachable values, narrowed by guards; invariants of nets.
    Values,
    /// The types of variables, and constants. Measurements compare what the values bring.
    Types,
}
