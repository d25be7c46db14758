//! Large conditions that several guards have in common: each gets a function of its own, so that it is compiled once.

use super::expression::can_fault;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use warpset_model::ir::{Expression, Model};

/// Size of an expression, in operators and operands, from which on a call is worthwhile.
const LARGE: usize = 40;

/// The conditions, by hashes of their contents.
#[derive(Default)]
pub struct Shared<'m> {
    numbers: HashMap<u64, usize>,
    pub conditions: Vec<&'m Expression>,
}

impl<'m> Shared<'m> {
    /// Collects the conditions that a model's guards have in common.
    pub fn of_guards(model: &'m Model) -> Self {
        let guards = || model.transitions.iter().filter_map(|transition| transition.guard.as_ref());
        let mut times = HashMap::new();
        for guard in guards() {
            visit(guard, &mut |part, hash| {
                if part.size() >= LARGE && !can_fault(model, part) {
                    *times.entry(hash).or_insert(0) += 1;
                }
            });
        }
        let mut shared = Self::default();
        guards().for_each(|guard| shared.add(guard, &times));
        shared
    }

    /// Adds the largest parts that occur more than once.
    fn add(&mut self, expression: &'m Expression, times: &HashMap<u64, usize>) {
        let hash = hash(expression);
        if times.get(&hash).is_some_and(|times| *times > 1) {
            let next = self.conditions.len();
            if *self.numbers.entry(hash).or_insert(next) == next {
                self.conditions.push(expression);
            }
        } else if let Expression::Binary { operands, .. } = expression {
            operands.iter().for_each(|operand| self.add(operand, times));
        }
    }

    /// The number of a shared expression.
    pub fn number(&self, expression: &Expression) -> Option<usize> {
        if self.numbers.is_empty() { None } else { self.numbers.get(&hash(expression)).copied() }
    }
}

fn hash(expression: &Expression) -> u64 {
    visit(expression, &mut |_, _| {})
}

/// Calls `f` with each binary operator of the expression and its hash, which does not depend on its position in the source.
/// Returns the hash of the whole expression.
fn visit<'e>(expression: &'e Expression, f: &mut impl FnMut(&'e Expression, u64)) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::mem::discriminant(expression).hash(&mut hasher);
    match expression {
        Expression::Constant(value) => value.hash(&mut hasher),
        Expression::Variable(variable) => variable.hash(&mut hasher),
        Expression::At { process, location } => (process, location).hash(&mut hasher),
        Expression::Enabled(label) => label.hash(&mut hasher),
        Expression::Element { array, index, .. } => (array, visit(index, f)).hash(&mut hasher),
        Expression::Unary { operator, operand } => (*operator as u8, visit(operand, f)).hash(&mut hasher),
        Expression::Conditional(parts) => parts.iter().for_each(|part| visit(part, f).hash(&mut hasher)),
        Expression::Within { array, dimension, index, .. } => (array, dimension, visit(index, f)).hash(&mut hasher),
        Expression::Binary { operator, operands, .. } => {
            (*operator as u8, visit(&operands[0], f), visit(&operands[1], f)).hash(&mut hasher);
            let hash = hasher.finish();
            f(expression, hash);
            return hash;
        }
    }
    hasher.finish()
}
