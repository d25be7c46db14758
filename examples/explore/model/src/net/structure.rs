//! Facts that arcs show without a search: transitions that can never fire, places that never change, and places that always have
//! the tokens of another place less a constant.
//!
//! A transition can never fire if it takes more tokens from a place than the initial marking puts there, and no transition that
//! may fire adds tokens to that place. Proof: `may_fire` computes a set of transitions. Consider, in any run, the first firing of
//! a transition outside this set. All earlier firings are of transitions in the set. The firing transition needs more tokens in
//! some place than that place has at first, and no transition of the set adds tokens there. So the transition is not enabled, a
//! contradiction.

use crate::ir::net::{PlaceId, Transition};
use std::collections::HashMap;

/// Effects of the transitions that may fire, and what they show about places.
#[derive(Clone, Debug, Default)]
pub struct Structure {
    /// By transition, whether a reachable marking may enable it.
    pub may_fire: Vec<bool>,
    /// By place, how each effect changes the place's tokens: pairs of the effect's number and the change, ascending. Transitions
    /// with the same changes have one effect. A place without changes always has its initial tokens.
    pub changes: Vec<Vec<(u32, i64)>>,
    /// Number of different effects.
    pub effects: usize,
    /// By place, the place that it follows: a place with the same changes and at least as many tokens, or the place itself.
    pub followed: Vec<PlaceId>,
}

/// Limit of how many tokens a place may have less than the place that it follows. Conditions compute the difference, whose range
/// begins at minus this number. With a large limit, sums of few tokens could not be proved to fit 32 bits.
const MOST_FEWER: u32 = 1 << 16;

impl Structure {
    pub fn of(initial: &[u32], transitions: &[Transition]) -> Self {
        let may_fire = may_fire(initial, transitions);
        let mut numbers: HashMap<Vec<(PlaceId, i64)>, u32> = HashMap::new();
        let mut changes: Vec<Vec<(u32, i64)>> = vec![Vec::new(); initial.len()];
        for (_, transition) in transitions.iter().enumerate().filter(|(id, _)| may_fire[*id]) {
            let effect = change_of(transition);
            let number = numbers.len() as u32;
            if effect.is_empty() || numbers.contains_key(&effect) {
                continue;
            }
            effect.iter().for_each(|(place, change)| changes[*place].push((number, *change)));
            numbers.insert(effect, number);
        }
        let followed = followed(initial, &changes);
        Self { may_fire, changes, effects: numbers.len(), followed }
    }

    /// Whether a place always has its initial tokens.
    pub fn is_constant(&self, place: PlaceId) -> bool {
        self.changes[place].is_empty()
    }
}

/// Whether each transition may fire.
fn may_fire(initial: &[u32], transitions: &[Transition]) -> Vec<bool> {
    // `lacking`: by transition, the number of places that are not known to get enough tokens. `waiting`: by place, the
    // transitions that lack tokens there.
    let mut lacking = vec![0usize; transitions.len()];
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); initial.len()];
    for (id, transition) in transitions.iter().enumerate() {
        for (place, _) in transition.takes.iter().filter(|(place, count)| initial[*place] < *count) {
            lacking[id] += 1;
            waiting[*place].push(id);
        }
    }
    let mut may_fire: Vec<bool> = lacking.iter().map(|count| *count == 0).collect();
    let mut new: Vec<usize> = (0..transitions.len()).filter(|id| may_fire[*id]).collect();
    while let Some(id) = new.pop() {
        for (place, _) in change_of(&transitions[id]).into_iter().filter(|(_, change)| *change > 0) {
            for waits in std::mem::take(&mut waiting[place]) {
                lacking[waits] -= 1;
                if lacking[waits] == 0 {
                    may_fire[waits] = true;
                    new.push(waits);
                }
            }
        }
    }
    may_fire
}

/// By place, the place that it follows.
fn followed(initial: &[u32], changes: &[Vec<(u32, i64)>]) -> Vec<PlaceId> {
    let mut followed: Vec<PlaceId> = (0..initial.len()).collect();
    let mut most: HashMap<&[(u32, i64)], PlaceId> = HashMap::new();
    for (place, changes) in changes.iter().enumerate().filter(|(_, changes)| !changes.is_empty()) {
        let known = most.entry(changes).or_insert(place);
        if initial[place] > initial[*known] {
            *known = place;
        }
    }
    for (place, changes) in changes.iter().enumerate() {
        let most = most.get(&changes[..]).copied().filter(|most| initial[*most] - initial[place] <= MOST_FEWER);
        followed[place] = most.unwrap_or(place);
    }
    followed
}

/// The places whose tokens a transition changes, and by how much.
fn change_of(transition: &Transition) -> Vec<(PlaceId, i64)> {
    let taken = transition.takes.iter().map(|(place, count)| (*place, -i64::from(*count)));
    let put = transition.puts.iter().map(|(place, count)| (*place, i64::from(*count)));
    let mut all: Vec<(PlaceId, i64)> = taken.chain(put).collect();
    all.sort_unstable();
    let sums = all.chunk_by(|one, other| one.0 == other.0).map(|part| (part[0].0, part.iter().map(|(_, by)| by).sum()));
    sums.filter(|(_, change)| *change != 0).collect()
}
