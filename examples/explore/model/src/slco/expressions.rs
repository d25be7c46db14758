//! Translates parsed expressions to expressions of the intermediate form.

use super::grammar::{Pair, Rule, span};
use crate::chains::Part;
use crate::diagnostic::Diagnostic;
use crate::ir::expression::{Binary, Unary};
use crate::ir::{Expression, Span, StoreTarget, Type, Variable, VariableId};
use crate::parsing::{Declared, longest_run, unknown};
use crate::warnings::{self, Warning};
use pest::pratt_parser::{Assoc, Op, PrattParser};
use std::cell::RefCell;
use std::sync::LazyLock;
use warpset_support::numbers::counted;

/// Limit of nested brackets, because recursive functions walk them.
const MAX_NESTING: usize = 64;

/// Limit of nested operators. Lowering may add operators around an expression, up to `ir::expression::MAX_DEPTH`.
pub const MAX_DEPTH: usize = 300;

/// Precedence of operators as in C, lowest first. All operators are left-associative except the power, which C does not have. The
/// language's own grammar says otherwise, but tools do not follow it (see [`super`]).
static OPERATORS: LazyLock<PrattParser<Rule>> = LazyLock::new(|| {
    let left = |rule| Op::infix(rule, Assoc::Left);
    PrattParser::new()
        .op(left(Rule::or))
        .op(left(Rule::and))
        .op(left(Rule::xor))
        .op(left(Rule::equal) | left(Rule::not_equal))
        .op(left(Rule::less) | left(Rule::less_or_equal) | left(Rule::greater) | left(Rule::greater_or_equal))
        .op(left(Rule::add) | left(Rule::subtract))
        .op(left(Rule::multiply) | left(Rule::divide) | left(Rule::remainder))
        .op(Op::infix(Rule::power, Assoc::Right))
});

/// Resolves the names in an expression.
pub trait Names {
    /// Resolves names joined by dots. `at` is their place.
    fn find(&self, names: &[Pair], at: Span) -> Result<Meaning, Diagnostic>;
}

/// The meaning of a name.
#[derive(Clone, Debug)]
pub enum Meaning {
    Variable(VariableId),
    /// In a condition: 1 if a state machine is in a state, else 0.
    StoreTarget(Expression),
}

/// The variables of an object and of one of its state machines. The machine's variables shadow the object's.
pub struct Local<'a> {
    pub object: &'a Declared<VariableId>,
    pub machine: Option<&'a Declared<VariableId>>,
}

impl Local<'_> {
    pub fn variable(&self, name: &str) -> Option<VariableId> {
        self.machine.and_then(|machine| machine.get(name)).or_else(|| self.object.get(name)).copied()
    }
}

impl Names for Local<'_> {
    fn find(&self, names: &[Pair], at: Span) -> Result<Meaning, Diagnostic> {
        let [name] = names else {
            return Err(Diagnostic::new(
                at,
                "a name with a dot inside a model",
                "write variables of the same object without a dot",
            ));
        };
        self.variable(name.as_str()).map(Meaning::Variable).ok_or_else(|| {
            let known = [self.object.names(), self.machine.map(|machine| machine.names()).unwrap_or_default()].concat();
            unknown("variable", name.as_str(), span(name), &known)
        })
    }
}

/// The context of an expression.
#[derive(Clone, Copy)]
pub struct Scope<'a, N> {
    pub names: &'a N,
    pub variables: &'a [Variable],
    /// Collects warnings about parts that mean something else than they say.
    pub warnings: &'a RefCell<Vec<Warning>>,
}

impl<N: Names> Scope<'_, N> {
    pub fn expression(&self, pair: Pair) -> Result<Expression, Diagnostic> {
        self.lower(pair, MAX_NESTING)
    }

    /// Resolves the target of an assignment or a receive.
    pub fn target(&self, pair: Pair) -> Result<StoreTarget, Diagnostic> {
        let at = span(&pair);
        let mut parts = pair.into_inner();
        let name = parts.next().expect("a target begins with a name");
        let (variable, index) = self.access(&[name], at, parts.next(), MAX_NESTING)?.map_err(|_| {
            Diagnostic::new(at, "a state machine as the target of an assignment", "a state machine cannot be assigned")
        })?;
        Ok(StoreTarget { variable, index, span: at })
    }

    /// Translates an expression. `nesting` is how many brackets may still be opened, including those around this expression.
    fn lower(&self, pair: Pair, nesting: usize) -> Result<Expression, Diagnostic> {
        let at = span(&pair);
        let too_large = || {
            let label = format!("more than {MAX_NESTING} nested brackets or {MAX_DEPTH} nested operators");
            Diagnostic::new(at, "the expression is too large", label)
        };
        let Some(nesting) = nesting.checked_sub(1).filter(|nesting| *nesting > 0) else { return Err(too_large()) };
        // The parser nests powers from the right, between their operands.
        let infix = pair.clone().into_inner().filter(|part| part.as_rule() != Rule::operand);
        if longest_run(infix.map(|part| part.as_rule() == Rule::power)) > MAX_DEPTH {
            return Err(too_large());
        }
        let fits = |part: Part| if part.depth() > MAX_DEPTH { Err(too_large()) } else { Ok(part) };
        let binary = |left: Result<Part, Diagnostic>, operator: Pair, right: Result<Part, Diagnostic>| {
            let (left, right, binary) = (left?, right?, binary_operator(operator.as_rule()));
            self.warn(warnings::of_operator(binary, operator.as_str(), span(&operator), left.value(), right.value()));
            fits(left.join(binary, right, at))
        };
        let operand = |operand| self.operand(operand, nesting).map(Part::new).and_then(fits);
        let part = OPERATORS.map_primary(operand).map_infix(binary).parse(pair.into_inner())?;
        Ok(part.expression(at))
    }

    fn warn(&self, warning: Option<Warning>) {
        self.warnings.borrow_mut().extend(warning);
    }

    fn operand(&self, pair: Pair, nesting: usize) -> Result<Expression, Diagnostic> {
        let at = span(&pair);
        let mut parts = pair.into_inner();
        let first = parts.next().expect("an operand is not empty");
        let (sign, primary) = match parts.next() {
            Some(primary) => (Some(first.as_rule()), primary),
            None => (None, first),
        };
        if primary.as_rule() == Rule::number {
            let value = number(&primary, sign == Some(Rule::minus))?;
            return Ok(match sign {
                Some(Rule::not) => Expression::unary(Unary::Not, Expression::Constant(value)),
                _ => Expression::Constant(value),
            });
        }
        let value = self.primary(primary, nesting)?;
        Ok(match sign {
            Some(Rule::not) => Expression::unary(Unary::Not, value),
            Some(Rule::minus) => {
                if value == Expression::Constant(i32::MIN) {
                    self.warn(Some(warnings::of_32_bits(at, &format!("-({})", i32::MIN), -i64::from(i32::MIN), i32::MIN)));
                }
                Expression::unary(Unary::Negate, value)
            }
            _ => value,
        })
    }

    fn primary(&self, pair: Pair, nesting: usize) -> Result<Expression, Diagnostic> {
        match pair.as_rule() {
            Rule::true_value => Ok(Expression::Constant(1)),
            Rule::false_value => Ok(Expression::Constant(0)),
            Rule::parenthesised => self.lower(pair.into_inner().next().expect("brackets are around an expression"), nesting),
            Rule::reference => self.reference(pair, nesting),
            rule => unreachable!("{rule:?} is no operand in the grammar"),
        }
    }

    fn reference(&self, pair: Pair, nesting: usize) -> Result<Expression, Diagnostic> {
        let at = span(&pair);
        let (names, mut index): (Vec<Pair>, Vec<Pair>) = pair.into_inner().partition(|part| part.as_rule() == Rule::name);
        Ok(match self.access(&names, at, index.pop(), nesting)? {
            Ok((variable, None)) => Expression::Variable(variable),
            Ok((array, Some(index))) => Expression::Element { array, index: Box::new(index), span: at },
            Err(place) => place,
        })
    }

    /// Resolves an access: a variable, with its index if the variable is an array, or the expression that the names denote.
    fn access(
        &self,
        names: &[Pair],
        at: Span,
        index: Option<Pair>,
        nesting: usize,
    ) -> Result<Result<(VariableId, Option<Expression>), Expression>, Diagnostic> {
        let variable = match (self.names.find(names, at)?, &index) {
            (Meaning::Variable(variable), _) => variable,
            (Meaning::StoreTarget(place), None) => return Ok(Err(place)),
            (Meaning::StoreTarget(_), Some(index)) => {
                return Err(Diagnostic::new(span(index), "a state is not an array", "it has no elements"));
            }
        };
        let of = &self.variables[variable];
        match (index, of.is_array) {
            (None, false) => Ok(Ok((variable, None))),
            (None, true) => {
                let label = format!("it has {}: an index [...] is needed", counted(of.initial.len() as u64, "element"));
                Err(Diagnostic::new(at, format!("`{}` is an array", of.name), label))
            }
            (Some(index), false) => {
                Err(Diagnostic::new(span(&index), format!("`{}` is not an array", of.name), "it has no elements"))
            }
            (Some(index), true) => {
                let index_at = span(&index);
                let index = self.lower(index.into_inner().next().expect("an index is an expression"), nesting)?;
                let (elements, has) = (of.initial.len(), counted(of.initial.len() as u64, "element"));
                self.warn(warnings::of_index(&of.name, elements, &has, &index, index_at));
                Ok(Ok((variable, Some(index))))
            }
        }
    }
}

/// Reads a number. If `is_negative`, returns its negative.
pub fn number(pair: &Pair, is_negative: bool) -> Result<i32, Diagnostic> {
    let digits: Option<i64> = pair.as_str().parse().ok();
    let value = digits.map(|value| if is_negative { -value } else { value }).and_then(|value| i32::try_from(value).ok());
    value.ok_or_else(|| {
        let label = format!("numbers range from {} to {}", i32::MIN, i32::MAX);
        Diagnostic::new(span(pair), "the number is too large", label)
    })
}

/// Converts a value for a store to a variable of type `ty`.
pub fn converted(value: Expression, ty: Type, at: Span) -> Expression {
    if ty == Type::BOOLEAN { truth(value, at) } else { value }
}

/// 1 if the value is not 0, else 0.
fn truth(value: Expression, at: Span) -> Expression {
    match &value {
        Expression::Constant(number) => Expression::Constant(i32::from(*number != 0)),
        Expression::Unary { operator: Unary::Not, .. } | Expression::At { .. } => value,
        Expression::Binary { operator, .. } if operator.is_truth() => value,
        _ => Expression::binary(Binary::NotEqual, value, Expression::Constant(0), at),
    }
}

fn binary_operator(rule: Rule) -> Binary {
    match rule {
        Rule::or => Binary::Or,
        Rule::and => Binary::And,
        // As in C++: bitwise. For truth values, the result is that of the logical operation.
        Rule::xor => Binary::BitXor,
        Rule::equal => Binary::Equal,
        Rule::not_equal => Binary::NotEqual,
        Rule::less => Binary::Less,
        Rule::less_or_equal => Binary::LessOrEqual,
        Rule::greater => Binary::Greater,
        Rule::greater_or_equal => Binary::GreaterOrEqual,
        Rule::add => Binary::Add,
        Rule::subtract => Binary::Subtract,
        Rule::multiply => Binary::Multiply,
        Rule::divide => Binary::Divide,
        Rule::remainder => Binary::Remainder,
        Rule::power => Binary::Power,
        rule => unreachable!("{rule:?} is no operator in the grammar"),
    }
}
