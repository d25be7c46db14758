//! Sums of tokens and conditions on markings, computed from packed states.

use crate::ir::net::{Firings, Holder, Net, PlaceId};
use crate::ir::{Binary, Expression, Layout, Span, TransitionId, Unary};
use std::collections::BTreeMap;

/// The total number of tokens in some places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Added to the tokens of the parts. The sum wraps around, because the parts may count too many tokens and the constant may
    /// be negative.
    constant: u64,
    /// Words and masks: each bit that is set in the masked part of the word is a token.
    bits: Vec<(u32, u32)>,
    /// Words, lowest bits and masks of numbers: each number is a count of tokens.
    numbers: Vec<(u32, u32, u32)>,
    /// Words, masks and values: each entry counts one token if the masked part of the word equals the value.
    equal: Vec<(u32, u32, u32)>,
    /// Words and masks: each entry counts one token if the masked part of the word is not 0.
    marked: Vec<(u32, u32)>,
}

/// A condition on a marking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Constant(bool),
    /// The first amount is at most the second.
    AtMost(Box<[Amount; 2]>),
    /// At least one of these transitions is enabled.
    Fireable(Vec<TransitionId>),
    /// No transition is enabled.
    Deadlock,
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount {
    Constant(u64),
    /// The total number of tokens in these places. A place counts as often as it occurs.
    Tokens(Vec<PlaceId>),
}

/// A condition that is evaluated on packed states.
#[derive(Clone, Debug)]
pub enum Check {
    Constant(bool),
    AtMost(Box<[Sum; 2]>),
    Fireable(Vec<TransitionId>),
    Deadlock,
    Not(Box<Check>),
    And(Vec<Check>),
    Or(Vec<Check>),
}

impl Sum {
    pub fn of(net: &Net, layout: &Layout, places: &[PlaceId]) -> Self {
        let mut sum = Self::default();
        // By variable: the codes of the places that it holds, with a code repeated if its place occurs several times.
        let mut codes: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        let field_of = |variable: usize| layout.variables[variable].expect("a place that changes has a field");
        for place in places {
            // The stored place that determines the tokens of `place`.
            let (of, less) = net.stored(*place).unwrap_or((*place, 0));
            sum.constant = sum.constant.wrapping_sub(less.into());
            match net.places[of].holder {
                Holder::Constant => sum.constant = sum.constant.wrapping_add(net.places[of].initial.into()),
                Holder::Code { variable, code, .. } => codes.entry(variable).or_default().push(code),
                Holder::Number { variable, capacity, .. } => {
                    let field = field_of(variable);
                    let (word, shift) = (field.bit / 32, field.bit % 32);
                    let free = |(of, mask): &&mut (u32, u32)| *of == word && *mask >> shift & 1 == 0;
                    match (capacity, sum.bits.iter_mut().find(free)) {
                        (1, Some((_, mask))) => *mask |= 1 << shift,
                        (1, None) => sum.bits.push((word, 1 << shift)),
                        _ => sum.numbers.push((word, shift, u32::MAX >> (32 - field.bits))),
                    }
                }
                Holder::Opposite { of } => {
                    let Holder::Number { variable, .. } = net.places[of].holder else { unreachable!("a number of one bit") };
                    let field = field_of(variable);
                    sum.equal.push((field.bit / 32, 1 << (field.bit % 32), 0));
                }
                Holder::Less { .. } => unreachable!("the place that tells the tokens of others is stored"),
            }
        }
        for (variable, mut all) in codes {
            let field = field_of(variable);
            let (word, shift, mask) = (field.bit / 32, field.bit % 32, u32::MAX >> (32 - field.bits) << (field.bit % 32));
            all.sort_unstable();
            let has_each_once = all.windows(2).all(|pair| pair[0] != pair[1]);
            match has_each_once && all.len() == net.places_of(variable).count() {
                true if all[0] == 0 => sum.constant = sum.constant.wrapping_add(1),
                true => sum.marked.push((word, mask)),
                false => sum.equal.extend(all.iter().map(|code| (word, mask, code << shift))),
            }
        }
        sum
    }

    pub fn constant(constant: u64) -> Self {
        Self { constant, ..Self::default() }
    }

    /// The sum as words for a kernel: the constant (low half, high half), the number of parts of each kind, then the parts, in
    /// the order of the fields of this type.
    pub fn words(&self) -> Vec<u32> {
        let mut words = vec![self.constant as u32, (self.constant >> 32) as u32];
        words.extend([self.bits.len(), self.numbers.len(), self.equal.len(), self.marked.len()].map(|count| count as u32));
        words.extend(self.bits.iter().flat_map(|(word, mask)| [*word, *mask]));
        words.extend(self.numbers.iter().chain(&self.equal).flat_map(|(word, second, third)| [*word, *second, *third]));
        words.extend(self.marked.iter().flat_map(|(word, mask)| [*word, *mask]));
        words
    }

    /// The tokens in each of some states of `width` words.
    fn values(&self, states: &[u32], width: usize) -> Vec<u64> {
        let mut values = vec![self.constant; states.len() / width];
        for (word, mask) in &self.bits {
            add_each(&mut values, states, width, *word, |part| u64::from((part & mask).count_ones()));
        }
        for (word, shift, mask) in &self.numbers {
            add_each(&mut values, states, width, *word, |part| u64::from(part >> shift & mask));
        }
        for (word, mask, value) in &self.equal {
            add_each(&mut values, states, width, *word, |part| u64::from(part & mask == *value));
        }
        for (word, mask) in &self.marked {
            add_each(&mut values, states, width, *word, |part| u64::from(part & mask != 0));
        }
        values
    }

    /// The tokens in a state.
    pub fn value(&self, state: &[u32]) -> u64 {
        let bits = self.bits.iter().map(|(word, mask)| u64::from((state[*word as usize] & mask).count_ones()));
        let numbers = self.numbers.iter().map(|(word, shift, mask)| u64::from(state[*word as usize] >> shift & mask));
        let equal = self.equal.iter().map(|(word, mask, value)| u64::from(state[*word as usize] & mask == *value));
        let marked = self.marked.iter().map(|(word, mask)| u64::from(state[*word as usize] & mask != 0));
        let parts = bits.sum::<u64>() + numbers.sum::<u64>() + equal.sum::<u64>() + marked.sum::<u64>();
        self.constant.wrapping_add(parts)
    }
}

/// Adds a value of each state to those of `to`. `word`: the word of a state that the value depends on.
fn add_each(to: &mut [u64], states: &[u32], width: usize, word: u32, value: impl Fn(u32) -> u64) {
    let words = states[word as usize..].iter().step_by(width);
    to.iter_mut().zip(words).for_each(|(to, word)| *to = to.wrapping_add(value(*word)));
}

/// The bits of a truth for each of `count` states, the first one in the lowest bit.
fn bits(count: usize, holds: impl Fn(usize) -> bool) -> Vec<u64> {
    let word = |at: usize| (64 * at..count.min(64 * at + 64)).map(|state| u64::from(holds(state)) << (state % 64)).sum();
    (0..count.div_ceil(64)).map(word).collect()
}

impl Condition {
    pub fn negated(self) -> Self {
        match self {
            Self::Constant(truth) => Self::Constant(!truth),
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    pub fn check(&self, net: &Net, layout: &Layout) -> Check {
        let all = |of: &[Self]| of.iter().map(|part| part.check(net, layout)).collect();
        match self {
            Self::Constant(truth) => Check::Constant(*truth),
            Self::AtMost(amounts) => Check::AtMost(Box::new([0, 1].map(|at| amounts[at].sum(net, layout)))),
            Self::Fireable(transitions) => Check::Fireable(transitions.clone()),
            Self::Deadlock => Check::Deadlock,
            Self::Not(inner) => Check::Not(Box::new(inner.check(net, layout))),
            Self::And(parts) => Check::And(all(parts)),
            Self::Or(parts) => Check::Or(all(parts)),
        }
    }

    /// The condition as an expression whose value is 1 where the condition holds, else 0. `None` if a sum may be too large for an
    /// expression.
    pub fn expression(&self, net: &Net) -> Option<Expression> {
        let at = Span::default();
        let all = |parts: &[Self], operator, none| {
            let parts: Option<Vec<Expression>> = parts.iter().map(|part| part.expression(net)).collect();
            Some(Expression::joined(parts?, operator, at).unwrap_or(Expression::Constant(none)))
        };
        let fireable = |transitions: &[TransitionId]| {
            let transitions = transitions.iter().map(|transition| Expression::Enabled(*transition)).collect();
            Expression::joined(transitions, Binary::Or, at).unwrap_or(Expression::Constant(0))
        };
        match self {
            Self::Constant(truth) => Some(Expression::Constant((*truth).into())),
            Self::AtMost(amounts) => {
                if let [Amount::Constant(left), Amount::Constant(right)] = **amounts {
                    return Some(Expression::Constant((left <= right).into()));
                }
                let [left, right] = [amounts[0].expression(net)?, amounts[1].expression(net)?];
                Some(Expression::binary(Binary::LessOrEqual, left, right, at))
            }
            Self::Fireable(transitions) => Some(fireable(transitions)),
            Self::Deadlock => {
                let all: Vec<TransitionId> = (0..net.transitions.len()).collect();
                Some(Expression::unary(Unary::Not, fireable(&all)))
            }
            Self::Not(inner) => Some(Expression::unary(Unary::Not, inner.expression(net)?)),
            Self::And(parts) => all(parts, Binary::And, 1),
            Self::Or(parts) => all(parts, Binary::Or, 0),
        }
    }
}

impl Amount {
    fn sum(&self, net: &Net, layout: &Layout) -> Sum {
        match self {
            Self::Constant(number) => Sum::constant(*number),
            Self::Tokens(places) => Sum::of(net, layout, places),
        }
    }

    fn expression(&self, net: &Net) -> Option<Expression> {
        match self {
            Self::Constant(number) => Some(Expression::Constant(i32::try_from(*number).unwrap_or(i32::MAX))),
            Self::Tokens(places) => {
                let most: u64 = places.iter().map(|place| u64::from(net.capacity(*place))).sum();
                let tokens = places.iter().map(|place| net.tokens_of(*place)).collect();
                // Constants are cut to `i32::MAX`. No sum reaches that number.
                (most < i32::MAX as u64)
                    .then(|| Expression::joined(tokens, Binary::Add, Span::default()).unwrap_or(Expression::Constant(0)))
            }
        }
    }
}

impl Check {
    /// Whether the condition holds in each of some states of `width` words: a bit a state. The bits behind the last state are
    /// undefined. Takes the parts of the condition one after the other for all states, which is faster than state by state.
    pub fn holds_in_each(&self, firings: &Firings, states: &[u32], width: usize) -> Vec<u64> {
        let count = states.len() / width;
        let state = |number: usize| &states[number * width..(number + 1) * width];
        let joined = |parts: &[Self], none: u64, join: fn(&mut u64, u64)| {
            let mut all = vec![none; count.div_ceil(64)];
            for part in parts {
                let of_part = part.holds_in_each(firings, states, width);
                all.iter_mut().zip(of_part).for_each(|(all, part)| join(all, part));
            }
            all
        };
        match self {
            Self::Constant(truth) => vec![if *truth { u64::MAX } else { 0 }; count.div_ceil(64)],
            Self::AtMost(sums) => {
                let [low, high] = [0, 1].map(|side| sums[side].values(states, width));
                bits(count, |number| low[number] <= high[number])
            }
            Self::Fireable(transitions) => {
                let mut all = vec![0; count.div_ceil(64)];
                for transition in transitions {
                    let enabled = bits(count, |number| firings.is_enabled(*transition, state(number)));
                    all.iter_mut().zip(enabled).for_each(|(all, enabled)| *all |= enabled);
                }
                all
            }
            Self::Deadlock => bits(count, |number| self.holds(firings, state(number))),
            Self::Not(inner) => inner.holds_in_each(firings, states, width).into_iter().map(|word| !word).collect(),
            Self::And(parts) => joined(parts, u64::MAX, |all, part| *all &= part),
            Self::Or(parts) => joined(parts, 0, |all, part| *all |= part),
        }
    }

    pub fn holds(&self, firings: &Firings, state: &[u32]) -> bool {
        match self {
            Self::Constant(truth) => *truth,
            Self::AtMost(sums) => sums[0].value(state) <= sums[1].value(state),
            Self::Fireable(transitions) => transitions.iter().any(|transition| firings.is_enabled(*transition, state)),
            Self::Deadlock => firings.enabled(state, |_| Err(())).is_ok(),
            Self::Not(inner) => !inner.holds(firings, state),
            Self::And(parts) => parts.iter().all(|part| part.holds(firings, state)),
            Self::Or(parts) => parts.iter().any(|part| part.holds(firings, state)),
        }
    }
}
