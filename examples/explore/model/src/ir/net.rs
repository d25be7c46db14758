//! Petri nets: places that hold tokens, and transitions that take some and put others.
//!
//! A transition is enabled if each of its places holds as many tokens as the transition takes from it. In a step it takes these
//! tokens and puts its own; the step of a transition is called a *firing*. Every enabled transition has one step.
//!
//! # Where tokens are in a state
//!
//! A place is held in one of three ways ([`Holder`]). It is a number in a field. Or it shares a field with other places, at most
//! one of them marked at a time, and the field names the marked one. Or it takes no bits, because no firing changes it.
//! [`Firings`] are the transitions in terms of the words of a state. A place's field is compared where it lies, without a shift:
//! `(word & mask) >= least`. A firing adds one constant to each word that it changes, because no field overflows.
//!
//! # Fields that are too small
//!
//! A field has a capacity. Unless invariants prove that no marking exceeds it, each firing that puts tokens there checks it. A
//! firing that would exceed it is a fault of the encoding ([`Wrong::Tokens`](crate::interpreter::Wrong)): no step is taken, and
//! the search must begin again with wider fields.
//!
//! # The order of steps
//!
//! Transitions are in groups, each with a place from which all of its transitions take tokens. If that place has none, none of
//! them is looked at. Steps are in the order of the groups, and of the transitions in each.

use super::{Binary, Expression, Layout, Span, TransitionId, VariableId};
use std::sync::Arc;

/// Index of a place in [`Net::places`].
pub type PlaceId = usize;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Net {
    /// In the order of the text.
    pub places: Vec<Place>,
    /// In the order of the text.
    pub transitions: Vec<Transition>,
    pub invariants: Arc<Vec<Invariant>>,
    pub groups: Vec<Group>,
    /// Encoding of the places in words, for reports.
    pub encoding: String,
}

/// Weights with which no transition increases the sum of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// The places with a weight, ascending.
    pub weights: Vec<(PlaceId, u64)>,
    /// The weighted sum of tokens in the initial marking.
    pub tokens: u64,
    /// Whether every firing keeps the sum.
    pub is_constant: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub name: String,
    /// Tokens of the initial marking.
    pub initial: u32,
    pub holder: Holder,
}

/// The part of a state that holds a place's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// No part: the place always has its initial tokens.
    Constant,
    /// The value of a variable. `is_proved`: no reachable marking exceeds the capacity.
    Number { variable: VariableId, capacity: u32, is_proved: bool },
    /// The place has one token if the variable has this value, and none otherwise. `is_proved`: in every reachable marking the
    /// variable's places have at most one token together.
    Code { variable: VariableId, code: u32, is_proved: bool },
}

/// A transition of a net. Places are ascending in both lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub name: String,
    pub span: Span,
    /// The places it takes tokens from, with the number of tokens.
    pub takes: Vec<(PlaceId, u32)>,
    /// The places it puts tokens into, with the number of tokens.
    pub puts: Vec<(PlaceId, u32)>,
}

/// Transitions that take tokens from one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The place; `None` for transitions that take no tokens from any place that changes.
    pub place: Option<PlaceId>,
    pub transitions: Vec<TransitionId>,
}

/// A comparison with a part of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    pub word: u32,
    pub mask: u32,
    pub value: u32,
}

/// A transition in terms of the words of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Firing {
    pub transition: TransitionId,
    /// Parts that must be equal to their values.
    pub equal: Vec<Test>,
    /// Parts that must be at least their values.
    pub least: Vec<Test>,
    /// Parts that must be at most their values, or else the firing is a fault.
    pub most: Vec<Test>,
    /// Words to change, and the number to add to each; it wraps around.
    pub adds: Vec<(u32, u32)>,
    /// Every firing is a fault.
    pub always_faults: bool,
}

/// The transitions of a net that can ever be enabled, in groups.
#[derive(Clone, Debug, Default)]
pub struct Firings {
    pub groups: Vec<FiringGroup>,
    /// Firings in the order of steps.
    pub all: Vec<Firing>,
    /// Index in `all` of each transition; `None` if the transition can never be enabled.
    pub of_transition: Vec<Option<u32>>,
}

/// A group of firings: those of `firings` are enabled only if the test holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiringGroup {
    pub test: Test,
    /// Whether the part must be equal to the value; otherwise it must be at least the value.
    pub is_equal: bool,
    pub firings: std::ops::Range<usize>,
}

impl Test {
    pub fn part(&self, state: &[u32]) -> u32 {
        state[self.word as usize] & self.mask
    }
}

impl Transition {
    /// Tokens that the transition takes from a place.
    pub fn taken(&self, place: PlaceId) -> u32 {
        of_place(&self.takes, place)
    }

    /// Tokens that the transition puts into a place.
    pub fn put(&self, place: PlaceId) -> u32 {
        of_place(&self.puts, place)
    }
}

/// The number beside a place, or 0.
fn of_place(list: &[(PlaceId, u32)], place: PlaceId) -> u32 {
    list.binary_search_by_key(&place, |(of, _)| *of).map_or(0, |at| list[at].1)
}

impl Firing {
    pub fn is_enabled(&self, state: &[u32]) -> bool {
        self.equal.iter().all(|test| test.part(state) == test.value)
            && self.least.iter().all(|test| test.part(state) >= test.value)
    }

    /// Whether a firing would put more tokens into a field than it can hold.
    pub fn faults(&self, state: &[u32]) -> bool {
        self.always_faults || self.most.iter().any(|test| test.part(state) > test.value)
    }

    /// Changes the words of a state in which the transition is enabled.
    pub fn fire(&self, state: &mut [u32]) {
        for (word, add) in &self.adds {
            state[*word as usize] = state[*word as usize].wrapping_add(*add);
        }
    }
}

impl Net {
    /// Tokens of a place in a packed state.
    pub fn tokens(&self, layout: &Layout, state: &[u32], place: PlaceId) -> u32 {
        let value = |variable: VariableId| layout.variables[variable].map_or(0, |field| field.get(state, 0) as u32);
        match self.places[place].holder {
            Holder::Constant => self.places[place].initial,
            Holder::Number { variable, .. } => value(variable),
            Holder::Code { variable, code, .. } => u32::from(value(variable) == code),
        }
    }

    /// Tokens of a place, as an expression.
    pub fn tokens_of(&self, place: PlaceId) -> Expression {
        match self.places[place].holder {
            Holder::Constant => Expression::Constant(self.places[place].initial as i32),
            Holder::Number { variable, .. } => Expression::Variable(variable),
            Holder::Code { variable, code, .. } => Expression::binary(
                Binary::Equal,
                Expression::Variable(variable),
                Expression::Constant(code as i32),
                Span::default(),
            ),
        }
    }

    /// Most tokens that a place's field can hold.
    pub fn capacity(&self, place: PlaceId) -> u32 {
        match self.places[place].holder {
            Holder::Constant => self.places[place].initial,
            Holder::Number { capacity, .. } => capacity,
            Holder::Code { .. } => 1,
        }
    }

    /// The first place for which a firing has no room in this state.
    pub fn overflowing(&self, layout: &Layout, state: &[u32], transition: TransitionId) -> PlaceId {
        let transition = &self.transitions[transition];
        let taken = |place: PlaceId| transition.taken(place);
        let puts = &transition.puts;
        let after = |place: PlaceId, count: u32| {
            u64::from(self.tokens(layout, state, place)) + u64::from(count) - u64::from(taken(place))
        };
        let exceeds = |(place, count): &&(PlaceId, u32)| after(*place, *count) > self.capacity(*place).into();
        // With shared fields, each place alone may be within its capacity.
        let shares = |(place, _): &&(PlaceId, u32)| {
            matches!(self.places[*place].holder, Holder::Code { is_proved: false, .. }) && taken(*place) == 0
        };
        let found = puts.iter().find(exceeds).or_else(|| puts.iter().find(shares)).or(puts.first());
        found.map_or(0, |(place, _)| *place)
    }

    /// Names of the variable's places, if places share it.
    pub fn places_of(&self, variable: VariableId) -> impl Iterator<Item = PlaceId> {
        let holds = move |place: &Place| match place.holder {
            Holder::Constant => false,
            Holder::Number { variable: of, .. } | Holder::Code { variable: of, .. } => of == variable,
        };
        self.places.iter().enumerate().filter(move |(_, place)| holds(place)).map(|(id, _)| id)
    }
}

impl Firings {
    pub fn of(net: &Net, layout: &Layout) -> Self {
        let mut firings = Self { of_transition: vec![None; net.transitions.len()], ..Self::default() };
        for group in &net.groups {
            let first = firings.all.len();
            for id in &group.transitions {
                if let Some(firing) = firing(net, layout, *id) {
                    firings.of_transition[*id] = Some(firings.all.len() as u32);
                    firings.all.push(firing);
                }
            }
            if firings.all.len() > first {
                let (test, is_equal) = group.place.map_or((ALWAYS, true), |place| marked(net, layout, place));
                firings.groups.push(FiringGroup { test, is_equal, firings: first..firings.all.len() });
            }
        }
        firings
    }

    /// Calls `visit` with each enabled firing until it returns an error.
    pub fn enabled<'f, E>(&'f self, state: &[u32], mut visit: impl FnMut(&'f Firing) -> Result<(), E>) -> Result<(), E> {
        for FiringGroup { test, is_equal, firings } in &self.groups {
            let part = test.part(state);
            if if *is_equal { part == test.value } else { part >= test.value } {
                self.all[firings.clone()].iter().filter(|firing| firing.is_enabled(state)).try_for_each(&mut visit)?;
            }
        }
        Ok(())
    }

    /// Whether a transition is enabled.
    pub fn is_enabled(&self, transition: TransitionId, state: &[u32]) -> bool {
        self.of_transition[transition].is_some_and(|at| self.all[at as usize].is_enabled(state))
    }
}

const ALWAYS: Test = Test { word: 0, mask: 0, value: 0 };

/// Word, lowest bit and mask of a variable's field.
fn place_of(layout: &Layout, variable: VariableId) -> (u32, u32, u32) {
    let field = layout.variables[variable].expect("a place that changes has a field");
    (field.bit / 32, field.bit % 32, (u32::MAX >> (32 - field.bits)) << (field.bit % 32))
}

/// The test that a place has tokens, and whether it is one of equality.
fn marked(net: &Net, layout: &Layout, place: PlaceId) -> (Test, bool) {
    match net.places[place].holder {
        Holder::Constant => (ALWAYS, true),
        Holder::Number { variable, .. } => {
            let (word, shift, mask) = place_of(layout, variable);
            (Test { word, mask, value: 1 << shift }, false)
        }
        Holder::Code { variable, code, .. } => {
            let (word, shift, mask) = place_of(layout, variable);
            (Test { word, mask, value: code << shift }, true)
        }
    }
}

/// A transition in terms of words; `None` if it can never be enabled.
pub fn firing(net: &Net, layout: &Layout, id: TransitionId) -> Option<Firing> {
    let transition = &net.transitions[id];
    let Transition { takes, puts, .. } = transition;
    let mut firing = Firing { transition: id, ..Firing::default() };
    // Values that shared fields must have before the firing.
    let mut codes: Vec<(VariableId, u32)> = Vec::new();
    for (place, count) in takes {
        match net.places[*place].holder {
            Holder::Constant if net.places[*place].initial < *count => return None,
            Holder::Constant => {}
            Holder::Number { capacity, .. } if capacity < *count => return None,
            Holder::Number { variable, capacity, .. } => {
                let (word, shift, mask) = place_of(layout, variable);
                match capacity {
                    1 => firing.equal.push(Test { word, mask, value: mask }),
                    _ => firing.least.push(Test { word, mask, value: count << shift }),
                }
            }
            Holder::Code { variable, code, .. } => {
                if *count > 1 || codes.iter().any(|(of, _)| *of == variable) {
                    return None;
                }
                codes.push((variable, code));
                let (word, shift, mask) = place_of(layout, variable);
                firing.equal.push(Test { word, mask, value: code << shift });
            }
        }
    }
    firing.equal = joined(firing.equal);
    let mut add = |word: u32, amount: u32| match firing.adds.iter_mut().find(|(of, _)| *of == word) {
        Some((_, sum)) => *sum = sum.wrapping_add(amount),
        None => firing.adds.push((word, amount)),
    };
    let mut new_codes: Vec<(VariableId, u32)> = Vec::new();
    for (place, count) in puts {
        match net.places[*place].holder {
            Holder::Constant => {}
            Holder::Number { variable, capacity, is_proved } => {
                let (word, shift, mask) = place_of(layout, variable);
                let more = i64::from(*count) - i64::from(transition.taken(*place));
                add(word, (more as u32).wrapping_shl(shift));
                // The place holds the tokens that are taken, so it has room for as many.
                if more > 0 {
                    match i64::from(capacity) - more {
                        ..=-1 if is_proved => return None,
                        ..=-1 => firing.always_faults = true,
                        left if !is_proved => firing.most.push(Test { word, mask, value: (left as u32) << shift }),
                        _ => {}
                    }
                }
            }
            Holder::Code { variable, code, is_proved } => {
                let has_two = *count > 1 || new_codes.iter().any(|(of, _)| *of == variable);
                if has_two && is_proved {
                    return None;
                }
                firing.always_faults |= has_two;
                new_codes.push((variable, code));
                let (word, shift, mask) = place_of(layout, variable);
                match codes.iter().find(|(of, _)| *of == variable) {
                    Some((_, before)) => add(word, (code << shift).wrapping_sub(before << shift)),
                    None => {
                        add(word, code << shift);
                        if !is_proved {
                            firing.most.push(Test { word, mask, value: 0 });
                        }
                    }
                }
            }
        }
    }
    for (place, count) in takes {
        if transition.put(*place) > 0 {
            continue;
        }
        match net.places[*place].holder {
            Holder::Constant => {}
            Holder::Number { variable, .. } => {
                let (word, shift, _) = place_of(layout, variable);
                add(word, (count << shift).wrapping_neg());
            }
            Holder::Code { variable, code, .. } => {
                if !new_codes.iter().any(|(of, _)| *of == variable) {
                    let (word, shift, _) = place_of(layout, variable);
                    add(word, (code << shift).wrapping_neg());
                }
            }
        }
    }
    firing.adds.retain(|(_, add)| *add != 0);
    // Parts of one word that must all be 0 are one part.
    let (zero, others) = std::mem::take(&mut firing.most).into_iter().partition(|test| test.value == 0);
    firing.most = joined(zero);
    firing.most.extend::<Vec<_>>(others);
    Some(firing)
}

/// Joins tests of equality on the same word.
fn joined(tests: Vec<Test>) -> Vec<Test> {
    let mut all: Vec<Test> = Vec::new();
    for test in tests {
        match all.iter_mut().find(|other| other.word == test.word) {
            Some(other) => (other.mask, other.value) = (other.mask | test.mask, other.value | test.value),
            None => all.push(test),
        }
    }
    all
}

/// Groups the transitions by the place from which each takes tokens and which `share` says is marked most rarely.
pub fn groups(places: &[Place], transitions: &[Transition], share: &[f64]) -> Vec<Group> {
    let changes = |place: &PlaceId| places[*place].holder != Holder::Constant;
    let leader = |transition: &Transition| {
        let all = transition.takes.iter().map(|(place, _)| *place).filter(changes);
        all.min_by(|one, other| share[*one].total_cmp(&share[*other]))
    };
    let mut of_place: Vec<Vec<TransitionId>> = vec![Vec::new(); places.len() + 1];
    transitions.iter().enumerate().for_each(|(id, transition)| of_place[leader(transition).unwrap_or(places.len())].push(id));
    let groups = of_place.into_iter().enumerate().filter(|(_, transitions)| !transitions.is_empty());
    groups.map(|(place, transitions)| Group { place: (place < places.len()).then_some(place), transitions }).collect()
}
