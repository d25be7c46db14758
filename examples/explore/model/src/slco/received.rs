//! Rewrites guards on the state with the received values as expressions on the state before.

use super::expressions::converted;
use crate::diagnostic::Diagnostic;
use crate::ir::expression::Binary;
use crate::ir::{Expression, Span, StoreTarget, Type, Variable};

/// Limit of the parts of an expression. An element of an array expands to one part for each value that was stored in the array.
const MAX_PARTS: usize = 20_000;

/// Values that were stored in a state, in order. Later values hide earlier ones.
pub struct Received {
    at: Span,
    stored: Vec<(StoreTarget, Expression)>,
    parts: usize,
}

impl Received {
    /// The state after each value, converted to its type, has been stored in its target, one after another.
    ///
    /// # Errors
    ///
    /// Indices of targets become too large expressions.
    pub fn new(
        variables: &[Variable],
        targets: &[StoreTarget],
        values: impl IntoIterator<Item = (Expression, Type)>,
        at: Span,
    ) -> Result<Self, Diagnostic> {
        let mut received = Self { at, stored: Vec::new(), parts: 0 };
        for (target, (value, ty)) in targets.iter().zip(values) {
            let index = target.index.as_ref().map(|index| received.expression(index)).transpose()?;
            let value = kept(value, ty, variables[target.variable].ty, at);
            received.stored.push((StoreTarget { index, ..target.clone() }, value));
        }
        Ok(received)
    }

    /// Rewrites an expression on the state with the received values as an expression on the state before.
    pub fn expression(&mut self, of: &Expression) -> Result<Expression, Diagnostic> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            let label = format!("with the received values inserted it has more than {MAX_PARTS} parts");
            return Err(Diagnostic::new(self.at, "the guard is too large", label));
        }
        Ok(match of {
            Expression::Variable(variable) => {
                let stored = self.stored.iter().rev().find(|(place, _)| place.variable == *variable);
                stored.map_or_else(|| of.clone(), |(_, value)| value.clone())
            }
            Expression::Element { array, index, span } => {
                let index = self.expression(index)?;
                let stored: Vec<_> = self.stored.iter().filter(|(place, _)| place.variable == *array).cloned().collect();
                let old = Expression::Element { array: *array, index: Box::new(index.clone()), span: *span };
                let mut value = old;
                for (place, new) in stored {
                    let place = place.index.expect("an element has an index");
                    self.parts += value.size() + index.size() + place.size() + new.size();
                    if self.parts > MAX_PARTS {
                        return self.expression(of);
                    }
                    value = self.either(place, index.clone(), new, value);
                }
                value
            }
            Expression::Unary { operator, operand } => Expression::unary(*operator, self.expression(operand)?),
            Expression::Binary { operator, operands, span } => {
                Expression::binary(*operator, self.expression(&operands[0])?, self.expression(&operands[1])?, *span)
            }
            Expression::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                Expression::conditional(self.expression(condition)?, self.expression(then)?, self.expression(otherwise)?)
            }
            Expression::Within { array, dimension, elements, index, span } => {
                Expression::within(*array, *dimension, *elements, self.expression(index)?, *span)
            }
            Expression::Constant(_) | Expression::At { .. } | Expression::Enabled(_) => of.clone(),
        })
    }

    /// `new` if the indices are equal, else `old`.
    fn either(&self, place: Expression, index: Expression, new: Expression, old: Expression) -> Expression {
        Expression::conditional(Expression::binary(Binary::Equal, place, index, self.at), new, old)
    }
}

/// Returns the result of sending a value as type `sent` and storing it in a variable of type `stored`.
fn kept(value: Expression, sent: Type, stored: Type, at: Span) -> Expression {
    let value = wrapped(value, sent, at);
    // A variable at least as wide as `sent` holds the value unchanged.
    if stored.bits >= sent.bits { value } else { wrapped(value, stored, at) }
}

fn wrapped(value: Expression, ty: Type, at: Span) -> Expression {
    match (ty, &value) {
        (Type::BYTE, Expression::Constant(0..=255)) => value,
        (Type::BYTE, _) => Expression::binary(Binary::BitAnd, value, Expression::Constant(255), at),
        _ => converted(value, ty, at),
    }
}
