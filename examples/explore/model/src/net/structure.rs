//! Facts that arcs show without a search: transitions that can never fire, places that never change, and places that have
//! as many tokens as another one, but for a constant number.
//!
//! A transition can never fire if it takes more tokens from a place than the place has at first, and no transition that may fire
//! adds tokens there. Proof: consider the first firing, of any run, of a transition that is not in the set that `may_fire`
//! computes. All firings before it are of the set. A place that the transition needs has no more tokens than at first, because no
//! transition of the set adds any, so the transition is not enabled.

use crate::ir::net::{PlaceId, Transition};
use std::collections::HashMap;

/// Effects of the transitions that may fire, and what they show about places.
#[derive(Clone, Debug, Default)]
pub struct Structure {
    /// Whether a reachable marking may enable each transition.
    pub may_fire: Vec<bool>,
    /// By place, how each effect changes its tokens: the effect's number and the change, ascending. Transitions with the same
    /// changes have one effect. A place without changes always has its initial tokens.
    pub changes: Vec<Vec<(u32, i64)>>,
    /// Number of different effects.
    pub effects: usize,
    /// By place, the place that it follows: one with the same changes and at least as many tokens. Itself, if it follows none.
    pub followed: Vec<PlaceId>,
}

/// By how many tokens a place may have fewer than the one that it follows. Conditions compute with the difference, whose range
/// begins at minus this number: with large numbers sums of few tokens would not be known to fit 32 bits.
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
    // By transition, the number of places that have too few tokens as far as is known; by place, the transitions that wait for
    // it.
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

/// The place that each place follows.
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

/// By how much a transition changes the tokens of each place that it changes.
fn change_of(transition: &Transition) -> Vec<(PlaceId, i64)> {
    let taken = transition.takes.iter().map(|(place, count)| (*place, -i64::from(*count)));
    let put = transition.puts.iter().map(|(place, count)| (*place, i64::from(*count)));
    let mut all: Vec<(PlaceId, i64)> = taken.chain(put).collect();
    all.sort_unstable();
    let sums = all.chunk_by(|one, other| one.0 == other.0).map(|part| (part[0].0, part.iter().map(|(_, by)| by).sum()));
    sums.filter(|(_, change)| *change != 0).collect()
}
