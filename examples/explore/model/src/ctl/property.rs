//! Reads formulas of branching time about a model.

use super::{Literal, Part, Parts};
use crate::ir::{Binary, Expression, Source, Span, Unary};
use crate::language::Text;
use crate::ltl::formula::{Formula, Names, Quantifier, parse_branching};
use crate::ltl::property::{Warn, conditions};
use anyhow::Result;
use std::collections::HashMap;

/// Formulas about a model. Their parts and conditions are shared.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub parts: Parts,
    /// The conditions of the parts.
    pub conditions: Vec<Expression>,
    /// The formulas as they were written, and in the normal form.
    pub formulas: Vec<(String, Literal)>,
    /// Conditions by their words.
    known: HashMap<String, Expression>,
}

/// A formula that has been read. Without temporal operators it is one expression, which is evaluated from left to right:
/// `x < 3 && a[x]` has no fault where the model's language has none.
#[derive(Clone)]
enum Operand {
    OfState(Expression),
    Part(Literal),
}

impl Asked {
    /// Adds a formula.
    ///
    /// # Errors
    ///
    /// An error in the text, with its place.
    pub fn add(&mut self, model: &Text, source: &Source, warn: &mut Warn) -> Result<()> {
        let names = Names { is_variable: &|name| model.has_variable(name), is_process: &|name| model.has_process(name) };
        let (formula, propositions) = parse_branching(source, &names).map_err(|error| Box::new(error.of(source)))?;
        let mut operands: Vec<Operand> = Vec::new();
        for of in propositions {
            let operand = match (&of.of, of.quantifier) {
                (Some(formula), None) => self.of_state(formula, &operands),
                (Some(formula), Some(quantifier)) => Operand::Part(self.of_paths(quantifier, formula, &operands)),
                (None, _) => Operand::OfState(match self.known.get(&of.words) {
                    Some(known) => known.clone(),
                    None => {
                        let text = source.piece(of.span).into();
                        let condition = conditions(model, source, &[text], &[of.span], warn)?.remove(0);
                        self.known.insert(of.words, condition.clone());
                        condition
                    }
                }),
            };
            operands.push(operand);
        }
        let formula = self.literal(&formula, &operands);
        self.formulas.push((source.text.clone(), formula));
        Ok(())
    }

    /// If the only formula is `EF` of a condition: the condition, and true. If it is `AG` of one: its negation, and false.
    pub fn goal(&self) -> Option<(Expression, bool)> {
        let [(_, formula)] = self.formulas[..] else { return None };
        let Part::Until([Literal::TRUE, goal]) = self.parts.all()[formula.part()] else { return None };
        Some((self.expression(goal)?, !formula.is_negated()))
    }

    /// A formula without temporal operators as an expression.
    fn expression(&self, formula: Literal) -> Option<Expression> {
        let of = match self.parts.all()[formula.part()] {
            Part::True => Expression::Constant(1),
            Part::Condition(number) => self.conditions[number].clone(),
            Part::And([one, other]) => {
                Expression::binary(Binary::And, self.expression(one)?, self.expression(other)?, Span::default())
            }
            Part::Next(_) | Part::Until(_) | Part::Always(_) => return None,
        };
        Some(if formula.is_negated() { Expression::unary(Unary::Not, of) } else { of })
    }

    fn condition(&mut self, condition: Expression) -> Literal {
        let condition = match condition {
            Expression::Constant(0) => return Literal::FALSE,
            Expression::Constant(_) => return Literal::TRUE,
            Expression::Unary { operator: Unary::Not, operand } => return !self.condition(*operand),
            condition => condition,
        };
        let number = self.conditions.iter().position(|known| known.means(&condition)).unwrap_or_else(|| {
            self.conditions.push(condition);
            self.conditions.len() - 1
        });
        self.parts.condition(number)
    }

    /// A formula without temporal operators of its own.
    fn of_state(&mut self, formula: &Formula, operands: &[Operand]) -> Operand {
        match formula {
            Formula::Constant(truth) => Operand::OfState(Expression::Constant((*truth).into())),
            Formula::Proposition(number) => operands[*number].clone(),
            Formula::Not(of) => match self.of_state(of, operands) {
                Operand::OfState(of) => Operand::OfState(Expression::unary(Unary::Not, of)),
                Operand::Part(of) => Operand::Part(!of),
            },
            Formula::And(of) | Formula::Or(of) => {
                let is_and = matches!(formula, Formula::And(_));
                let operator = if is_and { Binary::And } else { Binary::Or };
                match [0, 1].map(|side| self.of_state(&of[side], operands)) {
                    [Operand::OfState(one), Operand::OfState(other)] => {
                        Operand::OfState(Expression::binary(operator, one, other, Span::default()))
                    }
                    sides => {
                        let [one, other] = sides.map(|side| self.part(side));
                        Operand::Part(if is_and { self.parts.and(one, other) } else { self.parts.or(one, other) })
                    }
                }
            }
            Formula::Next(_) | Formula::Until(_) | Formula::Release(_) => {
                unreachable!("a temporal operator is a proposition")
            }
        }
    }

    fn part(&mut self, operand: Operand) -> Literal {
        match operand {
            Operand::OfState(condition) => self.condition(condition),
            Operand::Part(literal) => literal,
        }
    }

    /// A formula without temporal operators of its own, as a part.
    fn literal(&mut self, formula: &Formula, operands: &[Operand]) -> Literal {
        let operand = self.of_state(formula, operands);
        self.part(operand)
    }

    /// A quantifier and a temporal operator.
    fn of_paths(&mut self, quantifier: Quantifier, formula: &Formula, operands: &[Operand]) -> Literal {
        let is_all = quantifier == Quantifier::All;
        match formula {
            Formula::Next(of) => {
                let of = self.literal(of, operands);
                if is_all { self.parts.all_next(of) } else { self.parts.exists_next(of) }
            }
            Formula::Until(of) => {
                let [first, second] = [0, 1].map(|side| self.literal(&of[side], operands));
                if is_all { self.parts.all_until(first, second) } else { self.parts.exists_until(first, second) }
            }
            Formula::Release(of) => {
                let [first, second] = [0, 1].map(|side| self.literal(&of[side], operands));
                if is_all { self.parts.all_release(first, second) } else { self.parts.exists_release(first, second) }
            }
            _ => unreachable!("a quantifier is about a temporal operator"),
        }
    }
}
