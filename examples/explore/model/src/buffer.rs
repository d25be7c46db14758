//! Lowers operations on buffered channels. A [`Buffer`] is an array for each value of a message and a length, so an operation is
//! a condition and assignments.

use crate::ir::expression::Binary;
use crate::ir::{Assignment, Buffer, Expression, Span, StoreTarget, Type, Variable, VariableId};

impl Buffer {
    /// Adds the variables of an empty buffer to those of a model. `types` are those of a message's values. If there are several
    /// `signals`, the buffer has an array for them.
    pub fn declare(name: &str, types: &[Type], signals: Vec<String>, capacity: usize, variables: &mut Vec<Variable>) -> Self {
        let mut add = |name: String, ty, is_array, elements| {
            variables.push(Variable::new(name, None, ty, is_array, vec![0; elements]));
            variables.len() - 1
        };
        let up_to = |value: usize| Type { bits: (usize::BITS - value.leading_zeros()) as u8, signed: false };
        let values = types.iter().enumerate().map(|(at, ty)| add(format!("{name}[{at}]"), *ty, true, capacity)).collect();
        let signal = (signals.len() > 1).then(|| add(format!("{name}.signal"), up_to(signals.len()), true, capacity));
        let length = add(format!("{name}.length"), up_to(capacity), false, 1);
        Self { name: name.into(), values, signals, signal, length, capacity }
    }

    pub fn has_room(&self, at: Span) -> Expression {
        Expression::binary(Binary::Less, Expression::Variable(self.length), Expression::Constant(self.capacity as i32), at)
    }

    pub fn has_message(&self, at: Span) -> Expression {
        Expression::binary(Binary::Greater, Expression::Variable(self.length), Expression::Constant(0), at)
    }

    /// Value `field` of the oldest waiting message. Valid only if a message is waiting (see [`Self::has_message`]).
    pub fn first(&self, field: usize, at: Span) -> Expression {
        element(self.values[field], 0, at)
    }

    /// The condition that the oldest waiting message has the signal of this index; `None` if it always has. Valid as
    /// [`Self::first`].
    pub fn has_signal(&self, signal: usize, at: Span) -> Option<Expression> {
        let signal = Expression::Constant(signal as i32);
        self.signal.map(|array| Expression::binary(Binary::Equal, element(array, 0, at), signal, at))
    }

    /// Assignments that append a message. `parts` are its values and, if the buffer has an array for it, the index of its signal.
    pub fn append(&self, parts: impl IntoIterator<Item = Expression>, at: Span) -> Vec<Assignment> {
        let length = || Expression::Variable(self.length);
        let behind_the_last = |array| StoreTarget { variable: array, index: Some(length()), span: at };
        let stores = self.arrays().zip(parts).map(|(array, value)| Assignment { target: behind_the_last(array), value });
        stores.chain([self.add_to_length(Binary::Add, at)]).collect()
    }

    /// Assignments that store the first message's values in `targets` and remove the message.
    pub fn take(&self, targets: Vec<StoreTarget>, at: Span) -> Vec<Assignment> {
        let first = targets.into_iter().enumerate().map(|(field, target)| Assignment { target, value: self.first(field, at) });
        first.chain(self.remove(at)).collect()
    }

    /// Assignments that remove the first message.
    pub fn remove(&self, at: Span) -> Vec<Assignment> {
        let moves = self.arrays().flat_map(|array| {
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
