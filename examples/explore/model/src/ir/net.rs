//! Petri nets: places that hold tokens, and transitions that take tokens from places and put tokens into places.
//!
//! A transition is enabled if each of its places holds as many tokens as the transition takes from it. The step of an enabled
//! transition is called a *firing*: the transition takes these tokens, then puts others. Every enabled transition has one step.
//!
//! # Where tokens are in a state
//!
//! A state holds the tokens of a place in one of these ways ([`Holder`]): as a number in a field; in a field that the place
//! shares with others, if at most one of them is marked at a time, so that the field names the marked place; or without any bits,
//! because no firing changes the place, or because its tokens follow from the tokens of another place. [`Firings`] are the
//! transitions in terms of the words of a state. They compare a field in place, without a shift: `(word & mask) >= least`. A
//! firing adds one constant to each word that it changes, because no field overflows.
//!
//! # Fields that are too small
//!
//! A field has a capacity. Each firing that puts tokens into the field checks the capacity, unless invariants prove that no
//! marking exceeds it. A firing that would exceed the capacity is a fault of the encoding
//! ([`Wrong::Tokens`](crate::interpreter::Wrong)): no step is taken, and the search must begin again with wider fields.
//!
//! # The order of steps
//!
//! Transitions are in groups. All transitions of a group take tokens from one place. If that place has no tokens, the whole group
//! is skipped. Steps are in the order of the groups, and within a group in the order of its transitions.

use super::{Binary, Expression, Layout, Span, TransitionId, VariableId};
use std::sync::Arc;

/// Index of a place in [`Net::places`].
pub type PlaceId = usize;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Net {
    /// Places, in the order of the text.
    pub places: Vec<Place>,
    /// Transitions, in the order of the text.
    pub transitions: Vec<Transition>,
    pub invariants: Arc<Vec<Invariant>>,
    pub groups: Vec<Group>,
    /// Encoding of the places in words, for reports.
    pub encoding: String,
}

/// Weights of places. No transition increases the weighted sum of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// The places with a weight above 0, ascending.
    pub weights: Vec<(PlaceId, u64)>,
    /// The weighted sum of tokens in the initial marking.
    pub tokens: u64,
    /// Whether every firing keeps the sum unchanged.
    pub is_constant: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub name: String,
    /// Tokens of the place in the initial marking.
    pub initial: u32,
    pub holder: Holder,
}

/// The part of a state that holds a place's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// No part of the state: the place always has its initial tokens.
    Constant,
    /// The value of a variable. `is_proved`: no reachable marking exceeds the capacity.
    Number { variable: VariableId, capacity: u32, is_proved: bool },
    /// The place has one token if the variable has the value `code`, and none otherwise. `is_proved`: in every reachable marking,
    /// the places that share the variable have at most one token together.
    Code { variable: VariableId, code: u32, is_proved: bool },
    /// No part of the state: the place has `by` tokens less than the place `of`, which is a number or a code.
    Less { of: PlaceId, by: u32 },
    /// No part of the state: the place has one token if the place `of` has none, and none otherwise. `of` is a number of one bit.
    Opposite { of: PlaceId },
}

impl Holder {
    /// Whether the state has a part for the place's tokens.
    pub fn is_stored(self) -> bool {
        matches!(self, Self::Number { .. } | Self::Code { .. })
    }
}

/// A transition of a net. Both lists are ascending by place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub name: String,
    pub span: Span,
    /// The places that the transition takes tokens from, with the number of tokens.
    pub takes: Vec<(PlaceId, u32)>,
    /// The places that the transition puts tokens into, with the number of tokens.
    pub puts: Vec<(PlaceId, u32)>,
}

/// Transitions that all take tokens from the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The place. `None` for transitions that take tokens only from places that never change.
    pub place: Option<PlaceId>,
    pub transitions: Vec<TransitionId>,
}

/// A value to compare with the bits of a word that `mask` selects.
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
    /// Parts of the state that must equal their values.
    pub equal: Vec<Test>,
    /// Parts of the state that must be at least their values.
    pub least: Vec<Test>,
    /// Parts of the state that must be at most their values; otherwise the firing is a fault.
    pub most: Vec<Test>,
    /// Words to change, with the number to add to each. The sum wraps around.
    pub adds: Vec<(u32, u32)>,
    /// Whether every firing of the transition is a fault.
    pub always_faults: bool,
}

/// The transitions of a net that can ever be enabled, in groups.
#[derive(Clone, Debug, Default)]
pub struct Firings {
    pub groups: Vec<FiringGroup>,
    /// Firings in the order of steps.
    pub all: Vec<Firing>,
    /// By transition, its index in `all`; `None` if the transition can never be enabled.
    pub of_transition: Vec<Option<u32>>,
}

/// A group of firings: `firings` is their range in [`Firings::all`]. They are enabled only if the test holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiringGroup {
    pub test: Test,
    /// Whether the test requires that the part equals the value. Otherwise the part must be at least the value.
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

/// Returns the number that `list` gives for a place, or 0.
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

    /// Changes the state by a firing of the transition, which must be enabled.
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
            // In a reachable marking, `of` has at least `by` tokens.
            Holder::Less { of, by } => self.tokens(layout, state, of).saturating_sub(by),
            Holder::Opposite { of } => 1 - self.tokens(layout, state, of),
        }
    }

    /// Returns the stored place that determines the tokens of `place`, and how many tokens it has more. For a stored place this
    /// is the place itself and 0. `None` for a constant or an opposite.
    pub fn stored(&self, place: PlaceId) -> Option<(PlaceId, u32)> {
        match self.places[place].holder {
            Holder::Constant | Holder::Opposite { .. } => None,
            Holder::Number { .. } | Holder::Code { .. } => Some((place, 0)),
            Holder::Less { of, by } => Some((of, by)),
        }
    }

    /// Returns an expression for the tokens of a place.
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
            Holder::Less { of, by: 0 } => self.tokens_of(of),
            Holder::Less { of, by } => {
                Expression::binary(Binary::Subtract, self.tokens_of(of), Expression::Constant(by as i32), Span::default())
            }
            Holder::Opposite { of } => {
                Expression::binary(Binary::Subtract, Expression::Constant(1), self.tokens_of(of), Span::default())
            }
        }
    }

    /// Largest number of tokens that a place's field can hold.
    pub fn capacity(&self, place: PlaceId) -> u32 {
        match self.places[place].holder {
            Holder::Constant => self.places[place].initial,
            Holder::Number { capacity, .. } => capacity,
            Holder::Code { .. } | Holder::Opposite { .. } => 1,
            Holder::Less { of, by } => self.capacity(of).saturating_sub(by),
        }
    }

    /// Returns the first place whose field cannot hold the tokens that a firing would put there.
    pub fn overflowing(&self, layout: &Layout, state: &[u32], transition: TransitionId) -> PlaceId {
        let transition = &self.transitions[transition];
        let taken = |place: PlaceId| transition.taken(place);
        let puts = &transition.puts;
        let after = |place: PlaceId, count: u32| {
            u64::from(self.tokens(layout, state, place)) + u64::from(count) - u64::from(taken(place))
        };
        let exceeds = |(place, count): &&(PlaceId, u32)| after(*place, *count) > self.capacity(*place).into();
        // In shared fields, each place alone may be within its capacity while all together are not.
        let shares = |(place, _): &&(PlaceId, u32)| {
            matches!(self.places[*place].holder, Holder::Code { is_proved: false, .. }) && taken(*place) == 0
        };
        // Only stored places matter: a place that is not stored exceeds its capacity only if the place that determines its tokens
        // does.
        let stored = || puts.iter().filter(|(place, _)| self.places[*place].holder.is_stored());
        let found = stored().find(exceeds).or_else(|| stored().find(shares)).or(puts.first());
        found.map_or(0, |(place, _)| *place)
    }

    /// The places whose tokens a variable stores; several if they share it.
    pub fn places_of(&self, variable: VariableId) -> impl Iterator<Item = PlaceId> {
        let holds = move |place: &Place| match place.holder {
            Holder::Constant | Holder::Less { .. } | Holder::Opposite { .. } => false,
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
                let leader = group.place.and_then(|place| marked(net, layout, place, 1));
                let (test, is_equal) = leader.unwrap_or((ALWAYS, true));
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

/// Returns the word, lowest bit and mask of a variable's field.
fn place_of(layout: &Layout, variable: VariableId) -> (u32, u32, u32) {
    let field = layout.variables[variable].expect("a place that changes has a field");
    (field.bit / 32, field.bit % 32, (u32::MAX >> (32 - field.bits)) << (field.bit % 32))
}

/// Returns the test that a place has at least `count` tokens, and whether that test is one of equality. `count` must not be 0.
/// `None` if the place never has that many tokens.
fn marked(net: &Net, layout: &Layout, place: PlaceId, count: u32) -> Option<(Test, bool)> {
    match net.places[place].holder {
        Holder::Constant => (net.places[place].initial >= count).then_some((ALWAYS, true)),
        Holder::Number { capacity, .. } if capacity < count => None,
        Holder::Number { variable, capacity, .. } => {
            let (word, shift, mask) = place_of(layout, variable);
            Some((Test { word, mask, value: count << shift }, capacity == 1))
        }
        Holder::Code { .. } if count > 1 => None,
        Holder::Code { variable, code, .. } => {
            let (word, shift, mask) = place_of(layout, variable);
            Some((Test { word, mask, value: code << shift }, true))
        }
        Holder::Less { of, by } => marked(net, layout, of, count.checked_add(by)?),
        Holder::Opposite { .. } if count > 1 => None,
        Holder::Opposite { of } => marked(net, layout, of, 1).map(|(test, _)| (Test { value: 0, ..test }, true)),
    }
}

/// Translates a transition to tests and changes of words. `None` if it can never be enabled.
pub fn firing(net: &Net, layout: &Layout, id: TransitionId) -> Option<Firing> {
    let transition = &net.transitions[id];
    let Transition { takes, puts, .. } = transition;
    let mut firing = Firing { transition: id, ..Firing::default() };
    // Shared fields, and the values that they must have before the firing.
    let mut codes: Vec<(VariableId, u32)> = Vec::new();
    for (place, count) in takes {
        let (test, is_equal) = marked(net, layout, *place, *count)?;
        match (is_equal, net.places[*place].holder) {
            (_, Holder::Constant) => {}
            (true, Holder::Code { variable, code, .. }) => {
                codes.push((variable, code));
                firing.equal.push(test);
            }
            (true, _) => firing.equal.push(test),
            // Join several tests of one number into the test for the most tokens.
            (false, _) => match firing.least.iter_mut().find(|of| (of.word, of.mask) == (test.word, test.mask)) {
                Some(known) => known.value = known.value.max(test.value),
                None => firing.least.push(test),
            },
        }
    }
    firing.equal = joined(firing.equal)?;
    let mut add = |word: u32, amount: u32| match firing.adds.iter_mut().find(|(of, _)| *of == word) {
        Some((_, sum)) => *sum = sum.wrapping_add(amount),
        None => firing.adds.push((word, amount)),
    };
    let mut new_codes: Vec<(VariableId, u32)> = Vec::new();
    for (place, count) in puts {
        match net.places[*place].holder {
            // Add nothing: the transition has another arc for the place that determines the tokens of this place.
            Holder::Constant | Holder::Less { .. } | Holder::Opposite { .. } => {}
            Holder::Number { variable, capacity, is_proved } => {
                let (word, shift, mask) = place_of(layout, variable);
                let more = i64::from(*count) - i64::from(transition.taken(*place));
                add(word, (more as u32).wrapping_shl(shift));
                // The field holds the tokens that the firing takes, so it has room for as many. Only the increase matters.
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
            Holder::Constant | Holder::Less { .. } | Holder::Opposite { .. } => {}
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
    // Join parts of one word that must all be 0 into one part.
    let (zero, others) = std::mem::take(&mut firing.most).into_iter().partition(|test| test.value == 0);
    firing.most = joined(zero)?;
    firing.most.extend::<Vec<_>>(others);
    Some(firing)
}

/// Joins tests of equality on the same word. `None` if two tests contradict each other.
fn joined(tests: Vec<Test>) -> Option<Vec<Test>> {
    let mut all: Vec<Test> = Vec::new();
    for test in tests {
        match all.iter_mut().find(|other| other.word == test.word) {
            Some(other) if (other.value ^ test.value) & other.mask & test.mask != 0 => return None,
            Some(other) => (other.mask, other.value) = (other.mask | test.mask, other.value | test.value),
            None => all.push(test),
        }
    }
    Some(all)
}

/// Groups the transitions that may fire. The group of a transition is a place from which it takes tokens and whose tokens some
/// transition changes. If there are several such places, `share` selects the place that is marked most rarely.
pub fn groups(places: usize, transitions: &[Transition], may_fire: &[bool], share: &[f64]) -> Vec<Group> {
    let mut changes = vec![false; places];
    for transition in transitions {
        let arcs = transition.takes.iter().chain(&transition.puts).map(|(place, _)| *place);
        arcs.filter(|place| transition.taken(*place) != transition.put(*place)).for_each(|place| changes[place] = true);
    }
    let leader = |transition: &Transition| {
        let all = transition.takes.iter().map(|(place, _)| *place).filter(|place| changes[*place]);
        all.min_by(|one, other| share[*one].total_cmp(&share[*other]))
    };
    let mut of_place: Vec<Vec<TransitionId>> = vec![Vec::new(); places + 1];
    let all = transitions.iter().enumerate().filter(|(id, _)| may_fire[*id]);
    all.for_each(|(id, transition)| of_place[leader(transition).unwrap_or(places)].push(id));
    let groups = of_place.into_iter().enumerate().filter(|(_, transitions)| !transitions.is_empty());
    groups.map(|(place, transitions)| Group { place: (place < places).then_some(place), transitions }).collect()
}
