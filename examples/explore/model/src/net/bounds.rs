//! Bounds of the tokens in places, proved by invariants.
//!
//! Let y be a vector of weights, none negative, such that no transition increases the weighted sum of all tokens. Then a place p
//! never has more than (y · initial marking) / y_p tokens. All such vectors are non-negative combinations of a few vectors. The
//! double description method (Motzkin 1953; for nets, Farkas' algorithm) finds these few. It begins with the vectors of one place
//! each and handles the transitions one after another. It replaces each vector whose sum the transition increases by combinations
//! with vectors whose sum it decreases. If there are too many combinations, only those that prove most are kept. The result is a
//! proof even then, because each remaining vector is checked against all transitions.

use super::structure::Structure;
use crate::ir::net::{Invariant, PlaceId};
use hashbrown::HashSet;

/// Maximum number of vectors that are kept.
const MOST_VECTORS: usize = 4_000;

/// Maximum number of combinations for one transition.
const MOST_COMBINATIONS: usize = 20_000;

/// Work after which no more combinations are made, counted in entries of vectors: some tenths of a second.
const MOST_WORK: usize = 60_000_000;

/// A vector, and how much each remaining transition changes its weighted sum.
#[derive(Clone, Debug)]
struct Row {
    weights: Vec<(u32, i64)>,
    changes: Vec<(u32, i64)>,
    tokens: i128,
    is_constant: bool,
}

/// Finds invariants of a net. They omit places that never change and places that follow another place, because the tokens of
/// these places are known without an invariant.
pub fn invariants(initial: &[u32], structure: &Structure) -> Vec<Invariant> {
    let changing = |place: &PlaceId| structure.followed[*place] == *place && !structure.is_constant(*place);
    let changing: Vec<PlaceId> = (0..initial.len()).filter(changing).collect();
    let mut invariants = combined(initial, structure, &changing, Preference::Few);
    let bounds = bounds(initial.len(), &invariants);
    if changing.iter().any(|place| bounds[*place].is_none()) {
        invariants.extend(combined(initial, structure, &changing, Preference::Each));
    }
    invariants
}

/// Selects the vectors that are kept if there are too many.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Preference {
    /// Vectors with the fewest tokens, which prove most.
    Few,
    /// At least one vector for each place. More places get a bound, but bounds are less tight.
    Each,
}

impl Preference {
    /// Divisor of all limits for an attempt. The second attempt gets less, because it only serves the places that the first
    /// attempt left without a bound.
    fn share(self) -> usize {
        match self {
            Self::Few => 1,
            Self::Each => 4,
        }
    }
}

/// Combines vectors of these places into invariants.
fn combined(initial: &[u32], structure: &Structure, places: &[PlaceId], preference: Preference) -> Vec<Invariant> {
    let Structure { changes, effects, .. } = structure;
    let entries: usize = changes.iter().map(Vec::len).sum();
    let mut rows: Vec<Row> = places
        .iter()
        .map(|&place| {
            let tokens = i128::from(initial[place]);
            Row { weights: vec![(place as u32, 1)], changes: changes[place].clone(), tokens, is_constant: true }
        })
        .collect();
    let share = preference.share();
    let mut work = 0;
    // For each transition, the number of rows whose sum it increases, and the number of rows whose sum it decreases.
    let mut signs = vec![[0i32; 2]; *effects];
    rows.iter().for_each(|row| count(row, &mut signs, 1));
    let mut open: Vec<u32> = (0..*effects as u32).collect();
    if entries > MOST_WORK / 4 {
        open.clear();
    }
    loop {
        // Select the transition with the fewest combinations. A transition that increases no row needs none.
        open.retain(|transition| signs[*transition as usize][0] > 0);
        work += open.len();
        let cost = |transition: &u32| {
            let [more, less] = signs[*transition as usize].map(i64::from);
            more * less
        };
        let Some((at, _)) = open.iter().enumerate().min_by_key(|(_, transition)| cost(transition)) else { break };
        if work > MOST_WORK / share {
            break;
        }
        let transition = open.swap_remove(at);
        let change_by =
            |row: &Row| row.changes.binary_search_by_key(&transition, |(of, _)| *of).map_or(0, |at| row.changes[at].1);
        work += rows.len() * 4;
        let (increased, others): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| change_by(row) > 0);
        rows = others;
        let mut decreased: Vec<usize> = (0..rows.len()).filter(|at| change_by(&rows[*at]) < 0).collect();
        if preference == Preference::Each {
            // Combine each vector with the vectors that prove most, as far as the limit of combinations allows.
            decreased.sort_by_key(|at| (rows[*at].tokens, rows[*at].weights.len()));
            decreased.truncate((MOST_COMBINATIONS / share / increased.len().max(1)).max(1));
        }
        let mut known: HashSet<Vec<(u32, i64)>> = HashSet::new();
        let mut new = Vec::new();
        'all: for row in &increased {
            for other in &decreased {
                let other = &rows[*other];
                work += row.changes.len() + other.changes.len() + row.weights.len() + other.weights.len();
                if work > MOST_WORK / share || (preference == Preference::Few && new.len() >= MOST_COMBINATIONS) {
                    break 'all;
                }
                let joined = joined(row, change_by(row), other, change_by(other));
                new.extend(joined.filter(|joined| known.insert(joined.weights.clone())));
            }
        }
        increased.iter().for_each(|row| count(row, &mut signs, -1));
        keep_smallest(&mut new);
        new.iter().for_each(|row| count(row, &mut signs, 1));
        rows.extend(new);
        if rows.len() > MOST_VECTORS / share {
            let left_out = keep_most_useful(&mut rows, initial.len(), preference);
            left_out.iter().for_each(|row| count(row, &mut signs, -1));
        }
    }
    let is_invariant = |row: &&Row| row.changes.iter().all(|(_, change)| *change <= 0);
    let invariants = rows.iter().filter(is_invariant).filter_map(|row| {
        let weights = row.weights.iter().map(|(place, weight)| (*place as PlaceId, *weight as u64)).collect();
        let tokens = u64::try_from(row.tokens).ok()?;
        Some(Invariant { weights, tokens, is_constant: row.changes.is_empty() && row.is_constant })
    });
    invariants.collect()
}

/// Adds `by` to the counts of increased or decreased rows, for each transition that changes this row.
fn count(row: &Row, signs: &mut [[i32; 2]], by: i32) {
    for (transition, change) in &row.changes {
        signs[*transition as usize][usize::from(*change < 0)] += by;
    }
}

/// Keeps the preferred rows and returns the others.
fn keep_most_useful(rows: &mut Vec<Row>, places: usize, preference: Preference) -> Vec<Row> {
    rows.sort_by_key(|row| (row.tokens, row.weights.len()));
    if preference == Preference::Few {
        return rows.split_off(MOST_VECTORS);
    }
    let mut has_one = vec![false; places];
    let mut others = MOST_VECTORS / preference.share();
    let (kept, left_out) = std::mem::take(rows).into_iter().partition(|row| {
        let is_first = row
            .weights
            .iter()
            .fold(false, |is_first, (place, _)| !std::mem::replace(&mut has_one[*place as usize], true) || is_first);
        others = others.saturating_sub(usize::from(!is_first));
        is_first || others > 0
    });
    *rows = kept;
    left_out
}

/// Drops each row whose places include all places of another row, unless there are too many rows to compare.
fn keep_smallest(rows: &mut Vec<Row>) {
    const MOST_COMPARED: usize = 600;
    rows.sort_by_key(|row| (row.weights.len(), row.tokens));
    if rows.len() > MOST_COMPARED {
        return;
    }
    let mut kept: Vec<Row> = Vec::new();
    for row in rows.drain(..) {
        let includes = |other: &Row| {
            let mut places = row.weights.iter().map(|(place, _)| place);
            other.changes.is_empty() && other.weights.iter().all(|(place, _)| places.any(|of| of == place))
        };
        if !kept.iter().any(includes) {
            kept.push(row);
        }
    }
    *rows = kept;
}

/// Combines two rows so that the transition does not change the sum of the result. `None` if the numbers get too large.
fn joined(one: &Row, by: i64, other: &Row, by_other: i64) -> Option<Row> {
    let divisor = gcd(by.unsigned_abs(), by_other.unsigned_abs()) as i64;
    let (factor, factor_other) = (-by_other / divisor, by / divisor);
    let mut weights = sum(&one.weights, factor, &other.weights, factor_other)?;
    let mut changes = sum(&one.changes, factor, &other.changes, factor_other)?;
    let mut tokens = one.tokens.checked_mul(factor.into())?.checked_add(other.tokens.checked_mul(factor_other.into())?)?;
    let common = weights.iter().fold(0, |common, (_, weight)| gcd(common, weight.unsigned_abs())) as i64;
    if common > 1 {
        // The changes and the tokens are sums of multiples of these weights, so `common` divides them too.
        weights.iter_mut().for_each(|(_, weight)| *weight /= common);
        changes.iter_mut().for_each(|(_, change)| *change /= common);
        tokens /= i128::from(common);
    }
    Some(Row { weights, changes, tokens, is_constant: one.is_constant && other.is_constant })
}

/// The sum of two sparse vectors, each multiplied by a factor. Leaves out entries that are 0.
fn sum(one: &[(u32, i64)], factor: i64, other: &[(u32, i64)], factor_other: i64) -> Option<Vec<(u32, i64)>> {
    let (mut all, mut one, mut other) = (Vec::with_capacity(one.len() + other.len()), one, other);
    loop {
        let (at, value) = match (one.first(), other.first()) {
            (None, None) => return Some(all),
            (Some((at, value)), None) => (*at, value.checked_mul(factor)?),
            (None, Some((at, value))) => (*at, value.checked_mul(factor_other)?),
            (Some((at, value)), Some((at_other, _))) if at < at_other => (*at, value.checked_mul(factor)?),
            (Some((at, _)), Some((at_other, value))) if at > at_other => (*at_other, value.checked_mul(factor_other)?),
            (Some((at, value)), Some((_, of_other))) => {
                (*at, value.checked_mul(factor)?.checked_add(of_other.checked_mul(factor_other)?)?)
            }
        };
        one = one.strip_prefix_at(at);
        other = other.strip_prefix_at(at);
        if value != 0 {
            all.push((at, value));
        }
    }
}

/// Skips the first entry of a sparse vector if its index is `at`.
trait Rest {
    fn strip_prefix_at(self, at: u32) -> Self;
}

impl Rest for &[(u32, i64)] {
    fn strip_prefix_at(self, at: u32) -> Self {
        if self.first().is_some_and(|(first, _)| *first == at) { &self[1..] } else { self }
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// For each place, the most tokens that it can have; `None` if no invariant proves a bound.
pub fn bounds(places: usize, invariants: &[Invariant]) -> Vec<Option<u64>> {
    let mut bounds: Vec<Option<u64>> = vec![None; places];
    for Invariant { weights, tokens, .. } in invariants {
        for (place, weight) in weights {
            let bound = tokens / weight;
            bounds[*place] = Some(bounds[*place].map_or(bound, |before| before.min(bound)));
        }
    }
    bounds
}
