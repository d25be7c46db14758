//! Expressions as C++ text.

use super::names::Names;
use super::shared::Shared;
use warpset_model::ir::model::range;
use warpset_model::ir::range::{Range, unbounded};
use warpset_model::ir::{Binary, Expression, Model, StoreTarget, Unary};

/// Context of an expression.
#[derive(Clone, Copy)]
pub struct Scope<'m> {
    pub model: &'m Model,
    pub names: &'m Names,
    /// Number of the transition to which faults are attributed.
    pub transition: usize,
    /// The state to read: `from` or `to`.
    pub state: &'static str,
    /// Conditions on `from` that have functions of their own.
    pub shared: Option<&'m Shared<'m>>,
}

/// Whether evaluating the expression may cause a fault.
pub fn can_fault(model: &Model, expression: &Expression) -> bool {
    match expression {
        Expression::Element { array, index, .. } if !range(model, index).is_below(model.variables[*array].initial.len()) => true,
        Expression::Within { elements, index, .. } if !range(model, index).is_below(*elements) => true,
        Expression::Binary { operator: Binary::Divide | Binary::Remainder, operands, .. }
            if range(model, &operands[1]).contains(0) =>
        {
            true
        }
        Expression::Binary { operator: Binary::Power, operands, .. }
            if range(model, &operands[0]).contains(0) && range(model, &operands[1]).low < 0 =>
        {
            true
        }
        _ => expression.parts().iter().any(|part| can_fault(model, part)),
    }
}

impl Scope<'_> {
    /// The expression in C++, usable as an operand of any operator without further brackets.
    pub fn text(self, expression: &Expression) -> String {
        match expression {
            Expression::Constant(i32::MIN) => "(-2147483647 - 1)".into(),
            Expression::Constant(value) if *value < 0 => format!("({value})"),
            Expression::Constant(value) => value.to_string(),
            Expression::Variable(variable) => {
                let (state, variable) = (self.state, self.names.variable(*variable));
                format!("get_{variable}({state})")
            }
            Expression::Element { array, index, .. } => {
                format!("get_{}({}, {})", self.names.variable(*array), self.state, self.index(*array, index))
            }
            Expression::At { process, location } => {
                format!("(at_{}({}) == {location})", self.names.process(*process), self.state)
            }
            Expression::Enabled(transition) if super::net::has_tables(self.model) => {
                format!("fireable(tables, {transition}, {})", self.state)
            }
            Expression::Enabled(transition) if self.model.net.is_some() => format!("fireable_{transition}({})", self.state),
            Expression::Enabled(label) => format!("is_enabled_label(tables, {label}, {})", self.state),
            Expression::Unary { operator, operand } => self.unary(*operator, operand),
            Expression::Binary { operator, operands, .. } => match self.shared.and_then(|shared| shared.number(expression)) {
                Some(number) => format!("shared_{number}(from)"),
                None => self.binary(*operator, &operands[0], &operands[1]),
            },
            Expression::Conditional(parts) => {
                let [condition, then, otherwise] = parts.each_ref().map(|part| self.text(part));
                format!("({condition} ? {then} : {otherwise})")
            }
            Expression::Within { elements, index, .. } => self.within(*elements, index),
        }
    }

    /// An index, checked unless it is always within its array.
    pub fn index(self, array: usize, index: &Expression) -> String {
        self.within(self.model.variables[array].initial.len(), index)
    }

    /// An index below `elements`, checked unless it always is.
    fn within(self, elements: usize, index: &Expression) -> String {
        let text = self.text(index);
        if range(self.model, index).is_below(elements) {
            return text;
        }
        format!("index_in({text}, {elements}, {}, notes)", self.transition)
    }

    fn unary(self, operator: Unary, operand: &Expression) -> String {
        let text = self.text(operand);
        match operator {
            Unary::Not => format!("(!{text})"),
            Unary::Complement => format!("(~static_cast<i32>({text}))"),
            Unary::Negate if range(self.model, operand).contains(i32::MIN.into()) => format!("wrapping_negate({text})"),
            Unary::Negate => format!("(-{text})"),
        }
    }

    fn binary(self, operator: Binary, left: &Expression, right: &Expression) -> String {
        let (a, b) = (self.text(left), self.text(right));
        // Writes operators without jumps if it makes no difference that both sides are evaluated. Then the threads of a warp stay
        // together. It also saves compile time: conditions of a thousand parts take a second, and with jumps minutes.
        let truth =
            |text: &str, of| if range(self.model, of).is_in(Range::TRUTH) { text.into() } else { format!("({text} != 0)") };
        let together = |sign: &str| format!("({} {sign} {})", truth(&a, left), truth(&b, right));
        match operator {
            Binary::And if !can_fault(self.model, right) => return together("&"),
            Binary::Or if !can_fault(self.model, right) => return together("|"),
            _ => {}
        }
        let (left, right) = (range(self.model, left), range(self.model, right));
        let wraps = !unbounded(operator, left, right).is_in(Range { low: i32::MIN.into(), high: i32::MAX.into() });
        let infix = |sign: &str| format!("({a} {sign} {b})");
        let call = |name: &str| format!("{name}({a}, {b})");
        let dividing = |name: &str| format!("{name}({a}, {b}, {}, notes)", self.transition);
        match operator {
            Binary::Add if wraps => call("wrapping_add"),
            Binary::Subtract if wraps => call("wrapping_subtract"),
            Binary::Multiply if wraps => call("wrapping_multiply"),
            Binary::Add => infix("+"),
            Binary::Subtract => infix("-"),
            Binary::Multiply => infix("*"),
            Binary::Divide if right.low > 0 => infix("/"),
            Binary::Remainder if right.low > 0 => infix("%"),
            Binary::Divide => dividing("divide"),
            Binary::Remainder => dividing("remainder"),
            Binary::Power => dividing("power"),
            Binary::ShiftLeft => call("shift_left"),
            Binary::ShiftRight => call("shift_right"),
            Binary::BitAnd => infix("&"),
            Binary::BitOr => infix("|"),
            Binary::BitXor => infix("^"),
            Binary::Less => infix("<"),
            Binary::LessOrEqual => infix("<="),
            Binary::Greater => infix(">"),
            Binary::GreaterOrEqual => infix(">="),
            Binary::Equal => infix("=="),
            Binary::NotEqual => infix("!="),
            Binary::And => infix("&&"),
            Binary::Or => infix("||"),
            Binary::Imply => format!("(!{a} || {b})"),
        }
    }

    /// A statement that stores the value of a C++ expression. `values`: range of that value.
    pub fn store(self, place: &StoreTarget, value: &str, values: Range) -> String {
        let (variable, name) = (&self.model.variables[place.variable], self.names.variable(place.variable));
        let kept = if values.is_in(Range::of_type(variable.ty)) {
            value.to_owned()
        } else {
            format!("wrap_noted<{}, {}>({value}, notes)", variable.ty.bits, variable.ty.signed)
        };
        match &place.index {
            None => format!("set_{name}(to, {kept});"),
            // Evaluate the index first: the order decides which of two faults is reported.
            Some(index) => {
                format!("{{ const i32 index = {}; set_{name}(to, index, {kept}); }}", self.index(place.variable, index))
            }
        }
    }
}
