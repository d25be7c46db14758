//! Facts about the values of variables: their intervals, what an assumption about a condition implies, and what a store changes.

use super::range::{Range, range_where};
use super::{Binary, Expression, Model, StoreTarget, Type, Unary, VariableId};

/// Facts about the values of a state.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Values of each variable. For an array, the values of all its elements.
    pub values: Vec<Range>,
    /// Elements with constant indices whose values are narrower than those of their arrays.
    pub elements: Vec<(VariableId, i32, Range)>,
}

impl Facts {
    /// Facts about every reachable state of a model.
    pub fn of(model: &Model) -> Self {
        Self { values: model.variables.iter().map(|variable| variable.values).collect(), elements: Vec::new() }
    }

    /// Records a store of a value in the range `values`, which fits the target.
    pub fn store(&mut self, place: &StoreTarget, values: Range) {
        let variable = place.variable;
        match &place.index {
            None => self.values[variable] = values,
            Some(Expression::Constant(index)) => {
                self.elements.retain(|(array, element, _)| (*array, *element) != (variable, *index));
                self.elements.push((variable, *index, values));
            }
            Some(_) => self.elements.retain(|(array, ..)| *array != variable),
        }
    }

    pub fn range(&self, expression: &Expression) -> Range {
        range_where(expression, &|variable, index| match index {
            Some(Expression::Constant(index)) => self.element(variable, *index),
            _ => self.values[variable],
        })
    }

    fn element(&self, array: VariableId, index: i32) -> Range {
        let known = self.elements.iter().find(|(of, element, _)| (*of, *element) == (array, index));
        known.map_or(self.values[array], |(_, _, values)| *values)
    }

    /// Narrows the facts on the assumption that the expression is true (if `truth`) or false. Returns false if the assumption is
    /// impossible.
    pub fn assume(&mut self, expression: &Expression, truth: bool) -> bool {
        let range = self.range(expression);
        if range == (Range { low: 0, high: 0 }) && truth || !range.contains(0) && !truth {
            return false;
        }
        match expression {
            Expression::Unary { operator: Unary::Not, operand } => self.assume(operand, !truth),
            Expression::Binary { operator, operands, .. } => {
                let [left, right] = &**operands;
                match (operator, truth) {
                    (Binary::And, true) => self.assume(left, true) && self.assume(right, true),
                    (Binary::Or, false) => self.assume(left, false) && self.assume(right, false),
                    (Binary::Imply, false) => self.assume(left, true) && self.assume(right, false),
                    _ => match operator.comparison(truth) {
                        Some(operator) => {
                            let (of_left, of_right) = (self.range(left), self.range(right));
                            self.narrow(left, operator, of_right) && self.narrow(right, mirrored(operator), of_left)
                        }
                        None => true,
                    },
                }
            }
            _ => self.narrow(expression, if truth { Binary::NotEqual } else { Binary::Equal }, Range { low: 0, high: 0 }),
        }
    }

    /// Narrows the values of a variable or element on the assumption that `expression operator other` holds for some value of
    /// `other`. Does nothing for other expressions. Returns false if the assumption is impossible.
    fn narrow(&mut self, expression: &Expression, operator: Binary, other: Range) -> bool {
        let before = self.range(expression);
        let limits = match operator {
            Binary::Less => Range { low: i64::MIN, high: other.high - 1 },
            Binary::LessOrEqual => Range { low: i64::MIN, high: other.high },
            Binary::Greater => Range { low: other.low + 1, high: i64::MAX },
            Binary::GreaterOrEqual => Range { low: other.low, high: i64::MAX },
            Binary::Equal => other,
            Binary::NotEqual if other.low == other.high => Range {
                low: before.low + i64::from(before.low == other.low),
                high: before.high - i64::from(before.high == other.high),
            },
            _ => return true,
        };
        let after = before.and(limits);
        match expression {
            Expression::Variable(variable) => self.values[*variable] = after,
            Expression::Element { array, index, .. } => {
                if let Expression::Constant(index) = **index {
                    self.elements.retain(|(of, element, _)| (*of, *element) != (*array, index));
                    self.elements.push((*array, index, after));
                }
            }
            _ => {}
        }
        !after.is_empty()
    }
}

/// Range of the results of storing `values` in a variable of type `ty`.
pub fn wrapped(values: Range, ty: Type) -> Range {
    let all = Range::of_type(ty);
    if values.is_in(all) { values } else { all }
}

/// Returns the equivalent comparison for exchanged sides.
fn mirrored(operator: Binary) -> Binary {
    match operator {
        Binary::Less => Binary::Greater,
        Binary::LessOrEqual => Binary::GreaterOrEqual,
        Binary::Greater => Binary::Less,
        Binary::GreaterOrEqual => Binary::LessOrEqual,
        other => other,
    }
}
