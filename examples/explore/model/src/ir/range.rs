//! Value ranges of expressions. Ranges show which results need no wrapping, which indices need no check, and for which stores
//! overflows need not be counted.

use super::{Binary, Expression, Type, Unary, VariableId};

/// The values from `low` to `high`; empty if `high` is less than `low`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub low: i64,
    pub high: i64,
}

impl Range {
    /// All 32-bit integers.
    const ALL: Self = Self { low: i32::MIN as i64, high: i32::MAX as i64 };
    pub const TRUTH: Self = Self { low: 0, high: 1 };

    pub fn of_values(values: impl IntoIterator<Item = i64> + Clone) -> Self {
        let (low, high) = (values.clone().into_iter().min(), values.into_iter().max());
        Self { low: low.unwrap_or(0), high: high.unwrap_or(0) }
    }

    pub fn of_type(ty: Type) -> Self {
        let values = 1i64 << ty.bits;
        if ty.signed { Self { low: -values / 2, high: values / 2 - 1 } } else { Self { low: 0, high: values - 1 }.or_all() }
    }

    /// The smallest range that contains all of these ranges.
    pub fn all_of(ranges: impl Iterator<Item = Self>) -> Self {
        ranges.reduce(Self::or).unwrap_or(Self::ALL)
    }

    pub fn is_empty(self) -> bool {
        self.high < self.low
    }

    /// The smallest range that contains both.
    pub fn or(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    pub fn and(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    /// Bits needed for the values of the range, at least 1. Negative values are in two's complement.
    pub fn bits(self) -> u32 {
        let of = |value: i64| i64::BITS - value.leading_zeros();
        if self.low < 0 { of(self.high.max(0)).max(of(!self.low)) + 1 } else { of(self.high).max(1) }
    }

    pub fn is_in(self, other: Self) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// Range of the truth values of the range's values: 1 for each value that is not 0, and 0 for 0.
    pub fn truth(self) -> Self {
        Self { low: i64::from(!self.contains(0)), high: i64::from(self != Self { low: 0, high: 0 }) }
    }

    /// Whether all values of the range are valid indices of an array with this many elements.
    pub fn is_below(self, elements: usize) -> bool {
        self.is_in(Self { low: 0, high: elements as i64 - 1 })
    }

    pub fn contains(self, value: i64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The range itself, or all 32-bit integers if a value may wrap around.
    fn or_all(self) -> Self {
        if self.is_in(Self::ALL) { self } else { Self::ALL }
    }

    /// Range of `f` over all pairs of values. `f` must have its extremes at the ends of the ranges.
    fn of_ends(self, other: Self, f: impl Fn(i64, i64) -> i64) -> Self {
        let ends = [f(self.low, other.low), f(self.low, other.high), f(self.high, other.low), f(self.high, other.high)];
        Self::of_values(ends)
    }
}

/// Range of the operator's result. For operators that wrap around, it is the range before wrapping.
pub fn unbounded(operator: Binary, left: Range, right: Range) -> Range {
    match operator {
        Binary::Add => Range { low: left.low + right.low, high: left.high + right.high },
        Binary::Subtract => Range { low: left.low - right.high, high: left.high - right.low },
        Binary::Multiply => left.of_ends(right, |a, b| a * b),
        Binary::Divide if right.low > 0 => left.of_ends(right, |a, b| a / b),
        Binary::Remainder if right.low > 0 => {
            let most = right.high - 1;
            Range { low: if left.low < 0 { -most } else { 0 }, high: left.high.clamp(0, most) }
        }
        Binary::BitAnd if left.low >= 0 || right.low >= 0 => {
            let most = [left, right].into_iter().filter(|range| range.low >= 0).map(|range| range.high).min();
            Range { low: 0, high: most.unwrap_or(0) }
        }
        Binary::BitOr | Binary::BitXor if left.low >= 0 && right.low >= 0 => {
            let most = left.high.max(right.high) as u64;
            Range { low: 0, high: (most + 1).next_power_of_two() as i64 - 1 }
        }
        Binary::Less
        | Binary::LessOrEqual
        | Binary::Greater
        | Binary::GreaterOrEqual
        | Binary::Equal
        | Binary::NotEqual
        | Binary::And
        | Binary::Or
        | Binary::Imply => Range::TRUTH,
        Binary::Divide
        | Binary::Remainder
        | Binary::Power
        | Binary::BitAnd
        | Binary::BitOr
        | Binary::BitXor
        | Binary::ShiftLeft
        | Binary::ShiftRight => Range::ALL,
    }
}

/// Range of an expression, given the ranges of variables and of elements with these indices.
pub fn range_where(expression: &Expression, values: &dyn Fn(VariableId, Option<&Expression>) -> Range) -> Range {
    match expression {
        Expression::Constant(value) => Range { low: (*value).into(), high: (*value).into() },
        Expression::Variable(variable) => values(*variable, None),
        Expression::Element { array, index, .. } => values(*array, Some(index)),
        Expression::At { .. } | Expression::Enabled(_) => Range::TRUTH,
        Expression::Unary { operator, operand } => {
            let operand = range_where(operand, values);
            match operator {
                Unary::Not if !operand.contains(0) => Range { low: 0, high: 0 },
                Unary::Not => Range::TRUTH,
                Unary::Negate => Range { low: -operand.high, high: -operand.low }.or_all(),
                Unary::Complement => Range { low: -1 - operand.high, high: -1 - operand.low },
            }
        }
        Expression::Binary { operator, operands, .. } => {
            unbounded(*operator, range_where(&operands[0], values), range_where(&operands[1], values)).or_all()
        }
        Expression::Conditional(parts) => {
            let [condition, then, otherwise] = &**parts;
            let decided = range_where(condition, values).truth();
            let branch = |truth: bool, expression| {
                let limits = limits(condition, truth);
                range_where(expression, &|variable, index| {
                    let range = values(variable, index);
                    let limits = limits.filter(|(of, _)| *of == variable && index.is_none());
                    limits.map(|(_, limits)| range.and(limits)).filter(|range| !range.is_empty()).unwrap_or(range)
                })
            };
            match (decided.low, decided.high) {
                (1, _) => branch(true, then),
                (_, 0) => branch(false, otherwise),
                _ => branch(true, then).or(branch(false, otherwise)),
            }
        }
        Expression::Within { elements, index, .. } => {
            let all = Range { low: 0, high: *elements as i64 - 1 };
            Some(range_where(index, values).and(all)).filter(|range| !range.is_empty()).unwrap_or(all)
        }
    }
}

/// The limits that a comparison of a scalar with a constant sets to that scalar, if it holds or, with `truth` false, if not.
fn limits(condition: &Expression, truth: bool) -> Option<(VariableId, Range)> {
    let Expression::Binary { operator, operands, .. } = condition else { return None };
    let (Expression::Variable(variable), Expression::Constant(value)) = (&operands[0], &operands[1]) else { return None };
    let value = i64::from(*value);
    let (low, high) = match operator.comparison(truth)? {
        Binary::Less => (i64::MIN, value - 1),
        Binary::LessOrEqual => (i64::MIN, value),
        Binary::Greater => (value + 1, i64::MAX),
        Binary::GreaterOrEqual => (value, i64::MAX),
        Binary::Equal => (value, value),
        _ => return None,
    };
    Some((*variable, Range { low, high }))
}
