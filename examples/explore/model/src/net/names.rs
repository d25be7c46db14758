//! The meaning of names in conditions about a net.

use super::pnml;
use crate::ir::Expression;

/// Names of a net's elements in conditions, and the expressions that they stand for.
#[derive(Clone, Debug, Default)]
pub struct NetNames {
    pub names: pnml::Names,
    /// By place, the expression for its tokens.
    pub tokens: Vec<Expression>,
    /// By place, the most tokens that its field can hold.
    pub capacities: Vec<u32>,
}
