//! Conditions on a net as words that a kernel reads (branching.cu).
//!
//! A condition is a program of tests. A test is followed by another one if it holds, and by a third one if it does not, so a
//! thread needs no memory for the parts of a condition.

use std::collections::HashMap;
use warpset_model::ir::net::{Firing, Firings, Test};
use warpset_model::net::marking::Check;

/// The places that are answers in the place of tests.
const HOLDS: u32 = u32::MAX;
const FAILS: u32 = u32::MAX - 1;

/// Kinds of tests: whether the first sum is at most the second, and whether a firing is enabled.
const AT_MOST: u32 = 0;
const IS_ENABLED: u32 = 1;

/// Conditions as words.
pub(super) struct NetConditions<'a> {
    firings: &'a Firings,
    pub(super) words: Vec<u32>,
    /// Place of the first test of each condition, or its answer.
    pub(super) begins: Vec<u32>,
    /// Places of the firings' tests.
    places: HashMap<u32, u32>,
}

impl<'a> NetConditions<'a> {
    pub(super) fn new(firings: &'a Firings, conditions: &[Check]) -> Self {
        // The first word is not used: the list may not be empty.
        let mut all = Self { firings, words: vec![0], begins: Vec::new(), places: HashMap::new() };
        all.begins = conditions.iter().map(|condition| all.add(condition, HOLDS, FAILS)).collect();
        all
    }

    /// Adds the tests of a condition. Returns the place of the first one, or the answer. `then` and `otherwise`: what follows.
    fn add(&mut self, condition: &Check, then: u32, otherwise: u32) -> u32 {
        match condition {
            Check::Constant(true) => then,
            Check::Constant(false) => otherwise,
            Check::Not(inner) => self.add(inner, otherwise, then),
            Check::And(parts) => parts.iter().rev().fold(then, |next, part| self.add(part, next, otherwise)),
            Check::Or(parts) => parts.iter().rev().fold(otherwise, |next, part| self.add(part, then, next)),
            Check::Fireable(transitions) => self.any_enabled(transitions.iter().copied(), then, otherwise),
            Check::Deadlock => self.any_enabled(0..self.firings.of_transition.len(), otherwise, then),
            Check::AtMost(sums) => {
                let places = [0, 1].map(|side| self.put(sums[side].words()));
                self.put(vec![AT_MOST, then, otherwise, places[0], places[1]])
            }
        }
    }

    fn any_enabled(&mut self, transitions: impl DoubleEndedIterator<Item = usize>, then: u32, otherwise: u32) -> u32 {
        let firings = self.firings;
        transitions.rev().filter_map(|transition| firings.of_transition[transition]).fold(otherwise, |next, firing| {
            let at = match self.places.get(&firing) {
                Some(at) => *at,
                None => {
                    let at = self.put(words_of_tests(&firings.all[firing as usize]));
                    self.places.insert(firing, at);
                    at
                }
            };
            self.put(vec![IS_ENABLED, then, next, at])
        })
    }

    /// Adds words, and returns their place.
    fn put(&mut self, words: Vec<u32>) -> u32 {
        let at = self.words.len() as u32;
        self.words.extend(words);
        at
    }
}

/// The numbers of a firing's tests, and the tests, as `is_enabled` in net_values.cuh reads them.
pub(super) fn words_of_tests(firing: &Firing) -> Vec<u32> {
    let tests = [&firing.equal, &firing.least];
    let words = |test: &Test| [test.word, test.mask, test.value];
    let counts = tests.iter().map(|tests| tests.len() as u32);
    counts.chain(tests.iter().flat_map(|tests| tests.iter().flat_map(words))).collect()
}
