//! Dependencies of the transitions of a Petri net, from its arcs.
//!
//! Firings only add and subtract tokens, so two orders of the same firings lead to the same marking. Transitions accord if
//! neither can disable the other. Transition t disables u at place p only if t puts fewer tokens into p than it takes from p, and
//! fewer than u needs. Transitions that no marking enables together accord, too; place invariants can prove that.
//!
//! Only transitions that add tokens to a place (or remove some) can make a test on its tokens true. Only transitions that change
//! the difference of two sums in the right direction can make a comparison of these sums true.

use super::actions::{Test, Tests};
use super::knowledge::Knowledge;
use crate::ir::expression::{Binary, Unary};
use crate::ir::net::{Holder, Net, PlaceId, Transition};
use crate::ir::{Expression, TransitionId, VariableId};
use fixedbitset::FixedBitSet;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Arcs and invariants of a net, ready for the analysis.
pub struct Arcs<'n> {
    net: &'n Net,
    /// By place, its invariants and the weights that they give it.
    weights: Vec<Vec<(usize, u64)>>,
    /// By transition, whether some marking may enable it.
    possible: Vec<bool>,
}

/// A sum of token counts, each multiplied by a factor, plus a constant.
#[derive(Default)]
struct Linear {
    factors: BTreeMap<PlaceId, i64>,
    constant: i64,
}

/// Adds the tests that enable a transition to the tests of a model. Returns their numbers.
pub fn tests_of(net: &Net, transition: TransitionId, tests: &mut Tests) -> Vec<usize> {
    let takes = net.transitions[transition].takes.iter();
    takes.map(|(place, least)| tests.number(Test::Tokens { place: *place, least: *least, is_reached: true })).collect()
}

impl<'n> Arcs<'n> {
    pub fn of(net: &'n Net, knowledge: Knowledge) -> Self {
        let mut weights = vec![Vec::new(); net.places.len()];
        let invariants = if knowledge == Knowledge::Values { &net.invariants[..] } else { &[] };
        for (number, invariant) in invariants.iter().enumerate() {
            invariant.weights.iter().for_each(|(place, weight)| weights[*place].push((number, *weight)));
        }
        let mut arcs = Self { net, weights, possible: Vec::new() };
        let mut sums = vec![0; net.invariants.len()];
        let takes = |transition: &'n Transition| transition.takes.iter().copied();
        arcs.possible = net.transitions.iter().map(|transition| arcs.may_be_enabled(takes(transition), &mut sums)).collect();
        arcs
    }

    /// Whether invariants allow a marking with at least these tokens. `sums` must have a zero for each invariant; the call
    /// restores these zeros.
    fn may_be_enabled(&self, tokens: impl Iterator<Item = (PlaceId, u32)>, sums: &mut [u64]) -> bool {
        // Replace a place that follows another by that other place, then keep only the largest count for each place.
        let stored = |(place, count): (PlaceId, u32)| {
            self.net.stored(place).map_or((place, count), |(of, less)| (of, count.saturating_add(less)))
        };
        let mut tokens: Vec<(PlaceId, u32)> = tokens.map(stored).collect();
        tokens.sort_unstable_by_key(|(place, count)| (*place, Reverse(*count)));
        tokens.dedup_by_key(|(place, _)| *place);
        let is_possible = tokens.iter().all(|&(place, count)| {
            let has_enough = self.net.places[place].holder != Holder::Constant || self.net.places[place].initial >= count;
            has_enough
                && self.weights[place].iter().all(|(invariant, weight)| {
                    let sum = &mut sums[*invariant];
                    *sum = sum.saturating_add(weight.saturating_mul(count.into()));
                    *sum <= self.net.invariants[*invariant].tokens
                })
        });
        tokens.iter().for_each(|(place, _)| self.weights[*place].iter().for_each(|(invariant, _)| sums[*invariant] = 0));
        is_possible
    }

    /// Returns, by transition, the transitions that do not accord with it. Calls `explain` for each pair, with the place of the
    /// conflict.
    pub fn conflicts(&self, mut explain: impl FnMut(TransitionId, TransitionId, PlaceId)) -> Vec<FixedBitSet> {
        let transitions = &self.net.transitions;
        // By place, the transitions that take tokens from it, with the numbers of tokens that they take and put there.
        let mut takers: Vec<Vec<(TransitionId, u32, u32)>> = vec![Vec::new(); self.net.places.len()];
        for (id, transition) in transitions.iter().enumerate().filter(|(id, _)| self.possible[*id]) {
            transition.takes.iter().for_each(|(place, taken)| takers[*place].push((id, *taken, transition.put(*place))));
        }
        let mut sums = vec![0; self.net.invariants.len()];
        let count = transitions.len();
        let mut conflicts = vec![FixedBitSet::with_capacity(count); count];
        let mut apart = vec![FixedBitSet::with_capacity(count); count];
        for (place, takers) in takers.iter().enumerate() {
            // A transition disables another only if it puts fewer tokens than it takes, and fewer than the other needs.
            for &(one, _, put) in takers.iter().filter(|(_, taken, put)| put < taken) {
                for &(other, ..) in takers.iter().filter(|(other, needed, _)| *other != one && put < *needed) {
                    if conflicts[one].contains(other) || apart[one].contains(other) {
                        continue;
                    }
                    let are_together = self.may_be_enabled(both(&transitions[one], &transitions[other]), &mut sums);
                    let matrix = if are_together { &mut conflicts } else { &mut apart };
                    matrix[one].insert(other);
                    matrix[other].insert(one);
                    if are_together {
                        explain(one, other, place);
                    }
                }
            }
        }
        conflicts
    }

    /// The transitions that may change a test from false to true.
    pub fn enablers(&self, test: &Test) -> FixedBitSet {
        let all = self.net.transitions.iter().enumerate();
        let enables: Box<dyn Fn(&Transition) -> bool> = match test {
            // The transition can be enabled with fewer than `least` tokens, and puts more than it takes.
            Test::Tokens { place, least, is_reached: true } => Box::new(move |transition| {
                let (taken, put) = (transition.taken(*place), transition.put(*place));
                put > taken && taken < *least
            }),
            Test::Tokens { place, least, is_reached: false } => Box::new(move |transition| {
                let (taken, put) = (transition.taken(*place), transition.put(*place));
                put < taken && put < *least
            }),
            Test::Holds(expression) => self.may_make_true(expression),
            Test::Ready { .. } => Box::new(|_| true),
        };
        let mut enablers = FixedBitSet::with_capacity(self.net.transitions.len());
        enablers.extend(all.filter(|(id, transition)| self.possible[*id] && enables(transition)).map(|(id, _)| id));
        enablers
    }

    /// Whether a transition may change an expression from 0 to another value.
    fn may_make_true<'a>(&'a self, expression: &Expression) -> Box<dyn Fn(&Transition) -> bool + 'a> {
        let net = self.net;
        match difference(net, expression, true) {
            Some((Comparison::AtLeast, sum)) => Box::new(move |transition| sum.change(transition) > 0),
            Some((Comparison::Other, sum)) => Box::new(move |transition| sum.change(transition) != 0),
            None => {
                let mut read = vec![false; net.places.len()];
                read_by(net, expression, &mut read);
                Box::new(move |transition| {
                    let mut touched = transition.takes.iter().chain(&transition.puts);
                    touched.any(|(place, _)| read[*place] && transition.taken(*place) != transition.put(*place))
                })
            }
        }
    }
}

/// Returns the tokens that a marking must have to enable both transitions.
fn both<'t>(one: &'t Transition, other: &'t Transition) -> impl Iterator<Item = (PlaceId, u32)> + 't {
    let of_one = one.takes.iter().map(|(place, count)| (*place, (*count).max(other.taken(*place))));
    let of_other = other.takes.iter().copied().filter(|(place, _)| one.taken(*place) == 0);
    of_one.chain(of_other)
}

/// How a test compares a sum with a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// The sum is at least the number.
    AtLeast,
    /// The sum equals the number, or differs from it.
    Other,
}

impl Linear {
    /// Returns how much a firing changes the sum.
    fn change(&self, transition: &Transition) -> i64 {
        let change = |(place, factor): (&PlaceId, &i64)| {
            let (put, taken) = (i64::from(transition.put(*place)), i64::from(transition.taken(*place)));
            factor * (put - taken)
        };
        self.factors.iter().map(change).sum()
    }

    fn add(&mut self, other: Self, factor: i64) -> Option<()> {
        for (place, of) in other.factors {
            let sum = self.factors.entry(place).or_default();
            *sum = of.checked_mul(factor)?.checked_add(*sum)?;
            // A firing's change of the sum is computed with 64 bits, so factors must fit 32 bits.
            i32::try_from(*sum).ok()?;
        }
        self.constant = other.constant.checked_mul(factor)?.checked_add(self.constant)?;
        Some(())
    }
}

/// Returns the sum that the expression compares with a number, and how. If `truth` is false, this is for the negation of the
/// expression. `None` for other expressions.
fn difference(net: &Net, expression: &Expression, truth: bool) -> Option<(Comparison, Linear)> {
    if let Some(sum) = linear(net, expression) {
        return Some((Comparison::Other, sum));
    }
    match expression {
        Expression::Unary { operator: Unary::Not, operand } => difference(net, operand, !truth),
        Expression::Binary { operator, operands, .. } => {
            let [left, right] = &**operands;
            let (comparison, is_left_larger) = match operator {
                Binary::Less | Binary::LessOrEqual => (Comparison::AtLeast, !truth),
                Binary::Greater | Binary::GreaterOrEqual => (Comparison::AtLeast, truth),
                Binary::Equal | Binary::NotEqual => (Comparison::Other, true),
                _ => return None,
            };
            let mut sum = Linear::default();
            let sign = if is_left_larger { 1 } else { -1 };
            sum.add(linear(net, left)?, sign)?;
            sum.add(linear(net, right)?, -sign)?;
            Some((comparison, sum))
        }
        _ => None,
    }
}

/// Returns an expression as a sum of tokens. The sum does not wrap around, because conditions whose numbers may exceed 32 bits
/// were refused.
fn linear(net: &Net, expression: &Expression) -> Option<Linear> {
    let of_place = |place: PlaceId| Linear { factors: BTreeMap::from([(place, 1)]), constant: 0 };
    match expression {
        Expression::Constant(value) => Some(Linear { constant: (*value).into(), ..Linear::default() }),
        Expression::Variable(variable) => {
            let is_number = |place: &PlaceId| matches!(net.places[*place].holder, Holder::Number { .. });
            net.places_of(*variable).next().filter(is_number).map(of_place)
        }
        Expression::Unary { operator: Unary::Negate, operand } => {
            let mut sum = Linear::default();
            sum.add(linear(net, operand)?, -1)?;
            Some(sum)
        }
        Expression::Binary { operator, operands, .. } => {
            let [left, right] = &**operands;
            let mut sum = Linear::default();
            match (operator, left, right) {
                (Binary::Equal, Expression::Variable(variable), Expression::Constant(value)) => {
                    return marked_by(net, *variable, *value).map(of_place);
                }
                (Binary::Add, ..) => {
                    sum.add(linear(net, left)?, 1)?;
                    sum.add(linear(net, right)?, 1)?;
                }
                (Binary::Subtract, ..) => {
                    sum.add(linear(net, left)?, 1)?;
                    sum.add(linear(net, right)?, -1)?;
                }
                (Binary::Multiply, Expression::Constant(factor), other)
                | (Binary::Multiply, other, Expression::Constant(factor)) => {
                    sum.add(linear(net, other)?, (*factor).into())?;
                }
                _ => return None,
            }
            Some(sum)
        }
        _ => None,
    }
}

/// Returns the place that has its token if a shared variable has this value.
fn marked_by(net: &Net, variable: VariableId, value: i32) -> Option<PlaceId> {
    let is_it = |place: &PlaceId| match net.places[*place].holder {
        Holder::Code { code, .. } => i64::from(code) == i64::from(value),
        _ => false,
    };
    net.places_of(variable).find(is_it)
}

/// Marks the places whose tokens an expression may read.
fn read_by(net: &Net, expression: &Expression, to: &mut [bool]) {
    match expression {
        Expression::Variable(variable) | Expression::Element { array: variable, .. } => {
            net.places_of(*variable).for_each(|place| to[place] = true);
        }
        Expression::Enabled(transition) => net.transitions[*transition].takes.iter().for_each(|(place, _)| to[*place] = true),
        Expression::Constant(_)
        | Expression::At { .. }
        | Expression::Unary { .. }
        | Expression::Binary { .. }
        | Expression::Conditional(_)
        | Expression::Within { .. } => {}
    }
    expression.parts().iter().for_each(|part| read_by(net, part, to));
}

/// Splits an equation between sums of tokens into two comparisons that both hold if and only if the equation holds. If the
/// equation does not hold, only the comparison that fails needs enablers.
pub fn halves(net: &Net, left: &Expression, right: &Expression) -> Option<[Expression; 2]> {
    let is_place = |expression: &Expression| linear(net, expression).is_some_and(|sum| !sum.factors.is_empty());
    let are_sums = linear(net, left).is_some() && linear(net, right).is_some() && (is_place(left) || is_place(right));
    let is = |operator| Expression::binary(operator, left.clone(), right.clone(), Default::default());
    are_sums.then(|| [is(Binary::LessOrEqual), is(Binary::GreaterOrEqual)])
}
