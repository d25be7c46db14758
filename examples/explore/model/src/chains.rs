//! Chains of operators: `a && b && c` and `x + y - z` are written without brackets, so they are never nested.
//!
//! A chain of at most 32 operands becomes a tree as it is written, from left to right. A longer chain becomes a tree of least
//! depth. Both trees have the same value, evaluate the operands in the same order, and have the same faults, because these
//! operators are associative even when results wrap around. So neither code that walks an expression nor code generated from it
//! nests as deep as a chain is long.

use crate::ir::expression::Binary;
use crate::ir::{Expression, Span};

/// Operands of the longest chain that becomes a tree from left to right.
const MOST_IN_ORDER: usize = 32;

/// An operand of an expression while it is read.
pub enum Part {
    One {
        expression: Expression,
        depth: usize,
    },
    /// Operands that are joined by operators of one chain. `operator` stands for the chain; the operator before the first operand
    /// is unused.
    Chain {
        operator: Binary,
        operands: Vec<(Binary, Expression)>,
        /// Value of the chain if the operands so far decide it.
        value: Option<i32>,
        /// Depth of the deepest operand, and depth of the tree that is built from left to right.
        deepest: usize,
        in_order: usize,
    },
}

/// Returns the operator that stands for the chain of `operator`: subtraction belongs to the chain of addition. `None` if
/// `operator` forms no chains.
fn chain_of(operator: Binary) -> Option<Binary> {
    match operator {
        Binary::Subtract => Some(Binary::Add),
        Binary::And | Binary::Or | Binary::Add | Binary::Multiply | Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
            Some(operator)
        }
        _ => None,
    }
}

impl Part {
    pub fn new(expression: Expression) -> Self {
        let depth = expression.depth();
        Self::One { expression, depth }
    }

    /// Value of the part if it is constant.
    pub fn value(&self) -> Option<i32> {
        match self {
            Self::One { expression, .. } => expression.constant(),
            Self::Chain { value, .. } => *value,
        }
    }

    /// Depth of the expression that the part becomes.
    pub fn depth(&self) -> usize {
        match self {
            Self::One { depth, .. } => *depth,
            Self::Chain { operands, in_order, .. } if operands.len() <= MOST_IN_ORDER => *in_order,
            Self::Chain { operands, deepest, .. } => deepest + operands.len().next_power_of_two().ilog2() as usize,
        }
    }

    /// Joins two operands by an operator, which extends the left operand's chain if it belongs to that chain. `at` is the place
    /// of the expression.
    pub fn join(self, operator: Binary, right: Self, at: Span) -> Self {
        let own = chain_of(operator);
        let known = match (self.value(), right.value()) {
            (Some(left), Some(right)) => operator.apply(left, right),
            (Some(left), None) => operator.decided(left),
            _ => None,
        };
        let of_right = right.depth();
        let right = right.expression(at);
        match self {
            Self::Chain { operator: of, mut operands, deepest, in_order, .. } if own == Some(of) => {
                operands.push((operator, right));
                let (deepest, in_order) = (deepest.max(of_right), 1 + in_order.max(of_right));
                Self::Chain { operator: of, operands, value: known, deepest, in_order }
            }
            left => {
                let deepest = left.depth().max(of_right);
                let left = left.expression(at);
                match own {
                    Some(of) => {
                        let operands = vec![(of, left), (operator, right)];
                        Self::Chain { operator: of, operands, value: known, deepest, in_order: 1 + deepest }
                    }
                    None => Self::One { expression: Expression::binary(operator, left, right, at), depth: 1 + deepest },
                }
            }
        }
    }

    pub fn expression(self, at: Span) -> Expression {
        match self {
            Self::One { expression, .. } => expression,
            Self::Chain { operands, .. } if operands.len() <= MOST_IN_ORDER => {
                let mut operands = operands.into_iter();
                let (_, first) = operands.next().expect("a chain has two operands");
                operands.fold(first, |left, (operator, right)| Expression::binary(operator, left, right, at))
            }
            Self::Chain { operands, .. } => balanced(operands, at),
        }
    }
}

/// Builds a tree of least depth from the operands. Ignores the operator before the first operand.
fn balanced(mut operands: Vec<(Binary, Expression)>, at: Span) -> Expression {
    if operands.len() == 1 {
        return operands.remove(0).1;
    }
    let mut right = operands.split_off(operands.len() / 2);
    let operator = right[0].0;
    if operator == Binary::Subtract {
        // a - b + c is a - (b - c).
        for (operator, _) in &mut right[1..] {
            *operator = if *operator == Binary::Add { Binary::Subtract } else { Binary::Add };
        }
    }
    Expression::binary(operator, balanced(operands, at), balanced(right, at), at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CHAINS: [&[Binary]; 6] = [
        &[Binary::And],
        &[Binary::Or],
        &[Binary::Add, Binary::Subtract],
        &[Binary::Multiply],
        &[Binary::BitAnd],
        &[Binary::BitXor, Binary::BitXor],
    ];

    /// Returns the value, or `None` if an operand that is evaluated divides by zero. Appends the operands that are evaluated to
    /// `evaluated`.
    fn value(expression: &Expression, evaluated: &mut Vec<usize>) -> Option<i32> {
        match expression {
            Expression::Constant(value) => Some(*value),
            Expression::Variable(number) => {
                evaluated.push(*number);
                (number % 7 != 3).then_some((*number as i32).wrapping_mul(0x9e37_79b9_u32 as i32) * i32::from(number % 5 != 0))
            }
            Expression::Binary { operator, operands, .. } => {
                let left = value(&operands[0], evaluated)?;
                match operator.decided(left) {
                    Some(value) => Some(value),
                    None => operator.apply(left, value(&operands[1], evaluated)?),
                }
            }
            _ => unreachable!("not drawn"),
        }
    }

    proptest! {
        #[test]
        fn long_chains_have_the_value_of_their_operators_one_by_one(
            chain in 0..CHAINS.len(),
            first in 0..40_usize,
            more in proptest::collection::vec((0..2_usize, 0..40_usize), 1..200),
        ) {
            let operand = |number: usize| if number % 4 == 1 { Expression::Constant(number as i32 - 20) } else { Expression::Variable(number) };
            let operators = |at: usize| CHAINS[chain][at % CHAINS[chain].len()];
            let span = Span::default();
            let (mut part, mut one_by_one) = (Part::new(operand(first)), operand(first));
            for (operator, number) in &more {
                part = part.join(operators(*operator), Part::new(operand(*number)), span);
                one_by_one = Expression::binary(operators(*operator), one_by_one, operand(*number), span);
                prop_assert_eq!(part.value(), one_by_one.constant());
            }
            let depth = part.depth();
            let tree = part.expression(span);
            prop_assert!(tree.depth() <= depth && depth <= MOST_IN_ORDER.max(10), "{}", depth);
            let (mut evaluated, mut of_tree) = (Vec::new(), Vec::new());
            prop_assert_eq!(value(&one_by_one, &mut evaluated), value(&tree, &mut of_tree));
            prop_assert_eq!(evaluated, of_tree);
        }
    }
}
