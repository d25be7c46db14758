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
    known: HashMap<String, Literal>,
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
        let mut literals: Vec<Literal> = Vec::new();
        for of in propositions {
            let literal = match (&of.of, of.quantifier) {
                (Some(formula), None) => self.of_state(formula, &literals),
                (Some(formula), Some(quantifier)) => self.of_paths(quantifier, formula, &literals),
                (None, _) => match self.known.get(&of.words) {
                    Some(known) => *known,
                    None => {
                        let text = source.piece(of.span).into();
                        let condition = conditions(model, source, &[text], &[of.span], warn)?.remove(0);
                        let literal = self.condition(condition);
                        self.known.insert(of.words, literal);
                        literal
                    }
                },
            };
            literals.push(literal);
        }
        let formula = self.of_state(&formula, &literals);
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
        if let Expression::Constant(value) = condition {
            return if value != 0 { Literal::TRUE } else { Literal::FALSE };
        }
        let number = self.conditions.iter().position(|known| known.means(&condition)).unwrap_or_else(|| {
            self.conditions.push(condition);
            self.conditions.len() - 1
        });
        self.parts.condition(number)
    }

    /// A formula without temporal operators over literals.
    fn of_state(&mut self, formula: &Formula, literals: &[Literal]) -> Literal {
        match formula {
            Formula::Constant(truth) => {
                if *truth {
                    Literal::TRUE
                } else {
                    Literal::FALSE
                }
            }
            Formula::Proposition(number) => literals[*number],
            Formula::Not(of) => !self.of_state(of, literals),
            Formula::And(of) => {
                let [one, other] = [0, 1].map(|side| self.of_state(&of[side], literals));
                self.parts.and(one, other)
            }
            Formula::Or(of) => {
                let [one, other] = [0, 1].map(|side| self.of_state(&of[side], literals));
                self.parts.or(one, other)
            }
            Formula::Next(_) | Formula::Until(_) | Formula::Release(_) => {
                unreachable!("a temporal operator is a proposition")
            }
        }
    }

    /// A quantifier and a temporal operator.
    fn of_paths(&mut self, quantifier: Quantifier, formula: &Formula, literals: &[Literal]) -> Literal {
        let is_all = quantifier == Quantifier::All;
        match formula {
            Formula::Next(of) => {
                let of = self.of_state(of, literals);
                if is_all { self.parts.all_next(of) } else { self.parts.exists_next(of) }
            }
            Formula::Until(of) => {
                let [first, second] = [0, 1].map(|side| self.of_state(&of[side], literals));
                if is_all { self.parts.all_until(first, second) } else { self.parts.exists_until(first, second) }
            }
            Formula::Release(of) => {
                let [first, second] = [0, 1].map(|side| self.of_state(&of[side], literals));
                if is_all { self.parts.all_release(first, second) } else { self.parts.exists_release(first, second) }
            }
            _ => unreachable!("a quantifier is about a temporal operator"),
        }
    }
}
