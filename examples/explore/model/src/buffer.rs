//! Buffered channels. The intermediate form does not have them, so a buffered channel is expressed by an array for each value of
//! a message, a length, and assignments.

use crate::ir::expression::Binary;
use crate::ir::{Assignment, Expression, Span, StoreTarget, Type, Variable, VariableId};

/// A buffered channel: an array for each value of a message. The first `length` elements hold the waiting messages, oldest first.
/// All other elements are 0.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub arrays: Vec<VariableId>,
    pub length: VariableId,
    /// Capacity in messages.
    pub capacity: usize,
}

impl Buffer {
    /// Adds the variables of an empty buffer to those of a model. `fields` gives the name and type of each value of a message.
    pub fn declare(
        name: &str,
        fields: impl IntoIterator<Item = (String, Type)>,
        capacity: usize,
        variables: &mut Vec<Variable>,
    ) -> Self {
        let mut add = |name: String, ty, is_array, elements| {
            variables.push(Variable::new(name, None, ty, is_array, vec![0; elements]));
            variables.len() - 1
        };
        let arrays = fields.into_iter().map(|(name, ty)| add(name, ty, true, capacity)).collect();
        let bits = (usize::BITS - capacity.leading_zeros()) as u8;
        Self { arrays, length: add(format!("{name}.length"), Type { bits, signed: false }, false, 1), capacity }
    }

    pub fn has_room(&self, at: Span) -> Expression {
        Expression::binary(Binary::Less, Expression::Variable(self.length), Expression::Constant(self.capacity as i32), at)
    }

    pub fn has_message(&self, at: Span) -> Expression {
        Expression::binary(Binary::Greater, Expression::Variable(self.length), Expression::Constant(0), at)
    }

    /// Value `field` of the oldest waiting message. Valid only if a message is waiting (see [`Self::has_message`]).
    pub fn first(&self, field: usize, at: Span) -> Expression {
        element(self.arrays[field], 0, at)
    }

    /// Assignments that append a message.
    pub fn append(&self, values: impl IntoIterator<Item = Expression>, at: Span) -> Vec<Assignment> {
        let length = || Expression::Variable(self.length);
        let behind_the_last = |array: &VariableId| StoreTarget { variable: *array, index: Some(length()), span: at };
        let stores = self.arrays.iter().zip(values).map(|(array, value)| Assignment { target: behind_the_last(array), value });
        stores.chain([self.add_to_length(Binary::Add, at)]).collect()
    }

    /// Assignments that store the first message's values in `targets` and remove the message.
    pub fn take(&self, targets: Vec<StoreTarget>, at: Span) -> Vec<Assignment> {
        let first = targets.into_iter().zip(&self.arrays);
        let first = first.map(|(target, array)| Assignment { target, value: element(*array, 0, at) });
        first.chain(self.remove(at)).collect()
    }

    /// Assignments that remove the first message.
    pub fn remove(&self, at: Span) -> Vec<Assignment> {
        let moves = self.arrays.iter().flat_map(|&array| {
            (0..self.capacity).map(move |to| {
                let value = if to + 1 < self.capacity { element(array, to + 1, at) } else { Expression::Constant(0) };
                Assignment {
                    target: StoreTarget { variable: array, index: Some(Expression::Constant(to as i32)), span: at },
                    value,
                }
            })
        });
        moves.chain([self.add_to_length(Binary::Subtract, at)]).collect()
    }

    fn add_to_length(&self, operator: Binary, at: Span) -> Assignment {
        let value = Expression::binary(operator, Expression::Variable(self.length), Expression::Constant(1), at);
        Assignment { target: StoreTarget { variable: self.length, index: None, span: at }, value }
    }
}

fn element(array: VariableId, of: usize, at: Span) -> Expression {
    Expression::Element { array, index: Box::new(Expression::Constant(of as i32)), span: at }
}
