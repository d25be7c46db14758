//! Rules of a network: whether two rules accord, and which rules can make a component ready.
//!
//! A rule may have several steps in a state, so it is not enough for "accord" that both rules stay enabled. Rules a and b accord
//! if, wherever both are enabled, neither disables the other, and each result of a step of b followed by a step of a is also a
//! result of a step of a followed by a step of b, and vice versa. Components move independently of each other, so each shared
//! component can be examined alone.

use super::actions::Test;
use super::effects::{Cells, Known};
use crate::ir::Model;
use crate::ir::ids::RuleId;
use crate::ir::network::{Network, Rules, Table};

/// Maximum number of transitions of a table whose states are examined one by one.
const MOST_TRANSITIONS: usize = 100_000;

/// Returns the components of a rule with their labels.
fn parts(network: &Network, rule: RuleId) -> &[(u32, u32)] {
    match &network.rules {
        Rules::Listed(listed) => &listed.rules[rule].parts,
        Rules::OfLabels { .. } => &[],
    }
}

/// Returns the first component that may keep two rules from according; `None` if they accord.
pub fn conflict(network: &Network, one: RuleId, other: RuleId) -> Option<usize> {
    let (one, other) = (parts(network, one), parts(network, other));
    let label_of = |component: u32| other.iter().find(|(of, _)| *of == component).map(|(_, label)| *label);
    let shared = || one.iter().filter_map(|(component, label)| Some((*component as usize, *label, label_of(*component)?)));
    let table = |component: usize| &*network.components[component].table;
    let is_large = |component: usize| table(component).targets.len() > MOST_TRANSITIONS;
    let never_together = |(component, one, other): (usize, u32, u32)| {
        !is_large(component) && states_with(table(component), one, other).next().is_none()
    };
    if shared().any(never_together) {
        return None;
    }
    let accord = |(component, one, other): (usize, u32, u32)| {
        !is_large(component)
            && states_with(table(component), one, other).all(|state| {
                may_be_moved(table(component), state, one, other) && may_be_moved(table(component), state, other, one)
            })
    };
    shared().find(|part| !accord(*part)).map(|(component, ..)| component)
}

/// States that have transitions with both labels.
fn states_with(table: &Table, one: u32, other: u32) -> impl Iterator<Item = u32> {
    let has = move |state: u32, label: u32| !table.targets(state, label).is_empty();
    (0..table.states()).filter(move |state| has(*state, one) && has(*state, other))
}

/// Whether `first` stays possible after `second`, and each result is also a result of taking `first` before `second`.
fn may_be_moved(table: &Table, state: u32, first: u32, second: u32) -> bool {
    table.targets(state, second).iter().all(|between| {
        let ends = table.targets(*between, first);
        let is_end_of_other_order =
            |end: &u32| table.targets(state, first).iter().any(|between| table.targets(*between, second).contains(end));
        !ends.is_empty() && ends.iter().all(is_end_of_other_order)
    })
}

/// Whether a step by a rule may change a test to `truth`.
pub fn may_change(model: &Model, cells: &Cells, rule: RuleId, test: &Test, truth: bool, before: &Known) -> bool {
    let Some(network) = &model.network else { return true };
    match test {
        // A rule does not change any place.
        Test::Tokens { .. } => false,
        Test::Ready { component, label, is_ready } => {
            let Some((_, moved)) = parts(network, rule).iter().find(|(of, _)| *of as usize == *component) else { return false };
            let table = &*network.components[*component].table;
            let holds = |state: u32| table.targets(state, *label).is_empty() != *is_ready;
            table.targets.len() > MOST_TRANSITIONS
                || table.moves(*moved).any(|(source, target)| holds(source) != truth && holds(target) == truth)
        }
        Test::Holds(expression) => {
            let mut read = cells.none();
            cells.read_by(model, expression, &before.facts, &mut read);
            let is_read = |part: &&(u32, u32)| read.contains(cells.of_component(network, part.0 as usize));
            let moved: Vec<_> = parts(network, rule).iter().filter(is_read).collect();
            let [(component, label)] = moved[..] else { return !moved.is_empty() };
            let of = &network.components[*component as usize];
            let may_be = |state: u32, truth: bool| {
                let mut known = before.clone();
                known.facts.values[of.variable] = crate::ir::Range { low: state.into(), high: state.into() };
                known.assume(test, truth)
            };
            of.table.targets.len() > MOST_TRANSITIONS
                || of.table.moves(*label).any(|(source, target)| may_be(source, !truth) && may_be(target, truth))
        }
    }
}
