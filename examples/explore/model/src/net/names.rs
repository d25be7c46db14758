//! The meaning of names in conditions about a net.

use super::pnml;
use crate::ir::Expression;

/// Names of a net's elements in conditions, and the expressions that they stand for.
#[derive(Clone, Debug, Default)]
pub struct NetNames {
    pub names: pnml::Names,
    /// Tokens of each place.
    pub tokens: Vec<Expression>,
    /// Most tokens of each place.
    pub capacities: Vec<u32>,
}
