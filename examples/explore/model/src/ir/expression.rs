//! Expressions over a state. Numbers are 32-bit two's complement integers; a value is true if it is not 0; comparisons and logic
//! give 0 or 1.

use super::ids::LabelId;
use super::{LocationId, ProcessId, Span, VariableId};

/// Limit of the nesting of expressions, so that recursive functions may walk them. Front ends refuse deeper expressions.
pub const MAX_DEPTH: usize = 500;

#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Constant(i32),
    /// The value of a scalar.
    Variable(VariableId),
    /// An element of an array. An index that is negative, or not less than the number of elements, is a fault.
    Element {
        array: VariableId,
        index: Box<Expression>,
        span: Span,
    },
    /// 1 if the process is in the location, else 0.
    At {
        process: ProcessId,
        location: LocationId,
    },
    /// 1 if the network has a rule with this label that can take a step, else 0. In a model with a net: 1 if the transition with
    /// this number is enabled, else 0. Allowed only in conditions, not in guards or effects.
    Enabled(LabelId),
    Unary {
        operator: Unary,
        operand: Box<Expression>,
    },
    /// A binary operation. `span` covers the whole expression, for faults.
    Binary {
        operator: Binary,
        operands: Box<[Expression; 2]>,
        span: Span,
    },
    /// `a ? b : c`: the second value if the first one is not 0, else the third. Only that one is evaluated.
    Conditional(Box<[Expression; 3]>),
    /// One index of an access to an array of two dimensions: the value, if it is not negative and below the array's size in this
    /// dimension (0 or 1), else a fault.
    Within {
        array: VariableId,
        dimension: usize,
        elements: usize,
        index: Box<Expression>,
        span: Span,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-x`; wraps around.
    Negate,
    /// `not x`: 1 if x is 0, else 0.
    Not,
    /// `~x`: all 32 bits inverted.
    Complement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// Wraps around.
    Add,
    /// Wraps around.
    Subtract,
    /// Wraps around.
    Multiply,
    /// Truncates towards zero. Division by zero is a fault; -2^31 / -1 wraps around to -2^31.
    Divide,
    /// The remainder has the sign of the dividend. Division by zero is a fault; -2^31 % -1 is 0.
    Remainder,
    /// Wraps around. A negative exponent gives 1 over the power, truncated towards zero. 0 to a negative exponent is a fault,
    /// because it divides by zero.
    Power,
    /// Shifts by the low 5 bits of the right side.
    ShiftLeft,
    /// Shifts by the low 5 bits of the right side; copies the sign bit.
    ShiftRight,
    BitAnd,
    BitOr,
    BitXor,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    /// The right side is evaluated only if the left one is not 0.
    And,
    /// The right side is evaluated only if the left one is 0.
    Or,
    /// 1 if the left side is 0 or the right side is not 0, else 0. The right side is evaluated only if the left side is not 0.
    Imply,
}

impl Unary {
    pub fn apply(self, operand: i32) -> i32 {
        match self {
            Self::Negate => operand.wrapping_neg(),
            Self::Not => i32::from(operand == 0),
            Self::Complement => !operand,
        }
    }
}

impl Binary {
    /// Returns the comparison that holds if and only if the result of this operator is `truth`.
    pub fn comparison(self, truth: bool) -> Option<Self> {
        Some(match (self, truth) {
            (Self::Less, true) | (Self::GreaterOrEqual, false) => Self::Less,
            (Self::LessOrEqual, true) | (Self::Greater, false) => Self::LessOrEqual,
            (Self::Greater, true) | (Self::LessOrEqual, false) => Self::Greater,
            (Self::GreaterOrEqual, true) | (Self::Less, false) => Self::GreaterOrEqual,
            (Self::Equal, true) | (Self::NotEqual, false) => Self::Equal,
            (Self::NotEqual, true) | (Self::Equal, false) => Self::NotEqual,
            _ => return None,
        })
    }

    /// Applies the operator to two known operands. `None` if this divides by zero, which is a fault.
    pub fn apply(self, left: i32, right: i32) -> Option<i32> {
        Some(match self {
            Self::Add => left.wrapping_add(right),
            Self::Subtract => left.wrapping_sub(right),
            Self::Multiply => left.wrapping_mul(right),
            Self::Divide if right == 0 => return None,
            Self::Divide => left.wrapping_div(right),
            Self::Remainder if right == 0 => return None,
            Self::Remainder => left.wrapping_rem(right),
            Self::Power if right >= 0 => left.wrapping_pow(right as u32),
            Self::Power => match left {
                0 => return None,
                1 => 1,
                -1 => 1 - 2 * (right & 1),
                _ => 0,
            },
            Self::ShiftLeft => left.wrapping_shl(right as u32),
            Self::ShiftRight => left.wrapping_shr(right as u32),
            Self::BitAnd => left & right,
            Self::BitOr => left | right,
            Self::BitXor => left ^ right,
            Self::Less => i32::from(left < right),
            Self::LessOrEqual => i32::from(left <= right),
            Self::Greater => i32::from(left > right),
            Self::GreaterOrEqual => i32::from(left >= right),
            Self::Equal => i32::from(left == right),
            Self::NotEqual => i32::from(left != right),
            Self::And => i32::from(left != 0 && right != 0),
            Self::Or => i32::from(left != 0 || right != 0),
            Self::Imply => i32::from(left == 0 || right != 0),
        })
    }

    /// Whether the result is always 0 or 1.
    pub fn is_truth(self) -> bool {
        use Binary::*;
        matches!(self, Less | LessOrEqual | Greater | GreaterOrEqual | Equal | NotEqual | And | Or | Imply)
    }

    /// Returns the value if the left side alone decides it. The right side must not be evaluated then.
    pub fn decided(self, left: i32) -> Option<i32> {
        match (self, left != 0) {
            (Self::And, false) => Some(0),
            (Self::Or, true) | (Self::Imply, false) => Some(1),
            _ => None,
        }
    }
}

impl Expression {
    /// Joins expressions by an operator, in their order of evaluation, as a tree of least depth; `None` if the list is empty.
    pub fn joined(mut all: Vec<Self>, operator: Binary, span: Span) -> Option<Self> {
        match all.len() {
            0 | 1 => all.pop(),
            count => {
                let right = Self::joined(all.split_off(count / 2), operator, span)?;
                Some(Self::binary(operator, Self::joined(all, operator, span)?, right, span))
            }
        }
    }

    /// Returns the value if the expression is a constant.
    pub fn constant(&self) -> Option<i32> {
        if let Self::Constant(value) = self { Some(*value) } else { None }
    }

    /// The expressions that this one is made of, in the order of evaluation.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::Element { index: part, .. } | Self::Within { index: part, .. } | Self::Unary { operand: part, .. } => {
                std::slice::from_ref(part)
            }
            Self::Binary { operands, .. } => &**operands,
            Self::Conditional(parts) => &**parts,
            Self::Constant(_) | Self::Variable(_) | Self::At { .. } | Self::Enabled(_) => &[],
        }
    }

    /// Number of operators and indices around the deepest operand, plus one.
    pub fn depth(&self) -> usize {
        1 + self.parts().iter().map(Self::depth).max().unwrap_or(0)
    }

    /// Number of parts in all, with this one.
    pub fn size(&self) -> usize {
        1 + self.parts().iter().map(Self::size).sum::<usize>()
    }

    /// Returns the expression, simplified on the assumption that the process is in the location.
    pub fn where_at(self, process: ProcessId, location: LocationId) -> Self {
        let known = |expression: Self| expression.where_at(process, location);
        match self {
            Self::At { process: of, location: other } if of == process => Self::Constant(i32::from(other == location)),
            Self::Element { array, index, span } => Self::Element { array, index: Box::new(known(*index)), span },
            Self::Unary { operator, operand } => Self::unary(operator, known(*operand)),
            Self::Binary { operator, operands, span } => {
                let [left, right] = *operands;
                Self::binary(operator, known(left), known(right), span)
            }
            Self::Conditional(parts) => {
                let [condition, then, otherwise] = *parts;
                Self::conditional(known(condition), known(then), known(otherwise))
            }
            Self::Within { array, dimension, elements, index, span } => {
                Self::within(array, dimension, elements, known(*index), span)
            }
            Self::Constant(_) | Self::Variable(_) | Self::At { .. } | Self::Enabled(_) => self,
        }
    }

    /// Whether two expressions are equal apart from their spans.
    pub fn means(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Element { array, index, .. }, Self::Element { array: of, index: at, .. }) => array == of && index.means(at),
            (Self::Unary { operator, operand }, Self::Unary { operator: other, operand: of }) => {
                operator == other && operand.means(of)
            }
            (Self::Binary { operator, operands, .. }, Self::Binary { operator: other, operands: of, .. }) => {
                operator == other && operands.iter().zip(&**of).all(|(operand, of)| operand.means(of))
            }
            (Self::Conditional(parts), Self::Conditional(of)) => parts.iter().zip(&**of).all(|(part, of)| part.means(of)),
            (Self::Within { array, dimension, index, .. }, Self::Within { array: of, dimension: other, index: at, .. }) => {
                (array, dimension) == (of, other) && index.means(at)
            }
            (one, other) => one == other,
        }
    }

    /// Whether `part` is this expression or a part of it, apart from spans.
    pub fn has(&self, part: &Self) -> bool {
        self.parts().iter().any(|below| below.has(part)) || self.means(part)
    }

    /// Builds a unary operation; folds constants.
    pub fn unary(operator: Unary, operand: Self) -> Self {
        match operand {
            Self::Constant(value) => Self::Constant(operator.apply(value)),
            operand => Self::Unary { operator, operand: Box::new(operand) },
        }
    }

    /// Builds a conditional expression; a constant condition chooses.
    pub fn conditional(condition: Self, then: Self, otherwise: Self) -> Self {
        match condition {
            Self::Constant(0) => otherwise,
            Self::Constant(_) => then,
            condition => Self::Conditional(Box::new([condition, then, otherwise])),
        }
    }

    /// Builds an index of one dimension; a constant that is within the array is itself.
    pub fn within(array: VariableId, dimension: usize, elements: usize, index: Self, span: Span) -> Self {
        match index {
            Self::Constant(value) if usize::try_from(value).is_ok_and(|value| value < elements) => index,
            index => Self::Within { array, dimension, elements, index: Box::new(index), span },
        }
    }

    /// Builds a binary operation; folds constants, unless that is a fault.
    pub fn binary(operator: Binary, left: Self, right: Self, span: Span) -> Self {
        let value = match (&left, &right) {
            (Self::Constant(left), Self::Constant(right)) => operator.apply(*left, *right),
            (Self::Constant(left), _) => operator.decided(*left),
            _ => None,
        };
        value.map_or_else(|| Self::Binary { operator, operands: Box::new([left, right]), span }, Self::Constant)
    }
}
