//! Places that take no bits: places that never change, and places whose tokens follow from another place.
//!
//! Keeps these promises of `examples/explore/docs/nets.md`:
//!
//! - A place that never changes takes no bits, and neither does one that has as many tokens as another but for a constant, or one
//!   exactly if another has none. Their names mean the same as before in every condition (also
//!   `examples/explore/tests/explore/nets/told.rs`).
//! - Invariants are found beside any number of places that never change.
//! - States that would be longer than 256 words have narrower fields.

use super::encoding::Encoding;
use super::marking::Sum;
use super::tests::{arc, page, place, read, transition};
use super::{Nets, pnml};
use crate::interpreter::{Interpreter, Scratch};
use crate::ir::net::Holder;
use crate::ir::{Source, TransitionId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use warpset_random_models::net::net;
use warpset_testing::sizes::sized;

/// Finds the markings of a net by a plain search, with the transitions that each marking enables. `None` if there are more than
/// `most` markings.
fn markings(pnml: &pnml::Pnml, most: usize) -> Option<BTreeMap<Vec<u32>, Vec<TransitionId>>> {
    let initial: Vec<u32> = pnml.places.iter().map(|place| place.initial).collect();
    let mut all = BTreeMap::new();
    let (mut known, mut waiting) = (BTreeSet::from([initial.clone()]), VecDeque::from([initial]));
    while let Some(marking) = waiting.pop_front() {
        let is_enabled = |id: &TransitionId| pnml.transitions[*id].takes.iter().all(|(place, count)| marking[*place] >= *count);
        let enabled: Vec<TransitionId> = (0..pnml.transitions.len()).filter(is_enabled).collect();
        for id in &enabled {
            let mut next = marking.clone();
            pnml.transitions[*id].takes.iter().for_each(|(place, count)| next[*place] -= count);
            pnml.transitions[*id].puts.iter().for_each(|(place, count)| next[*place] += count);
            if known.insert(next.clone()) {
                waiting.push_back(next);
            }
        }
        all.insert(marking, enabled);
        if known.len() > most {
            return None;
        }
    }
    Some(all)
}

/// Compares markings, enabled transitions, conditions and sums with the results of a plain search.
fn check(nets: &mut Nets, most: usize) {
    let Some(plain) = markings(&nets.pnml, most) else { return };
    let found = Encoding::all().find_map(|encoding| {
        nets.encode(encoding).unwrap();
        explored(nets)
    });
    assert_eq!(found.expect("the widest fields have room"), plain, "{}", nets.model.net.as_ref().unwrap().encoding);
}

/// Finds the markings with the interpreter. `None` if a place has too few bits for its tokens.
fn explored(nets: &Nets) -> Option<BTreeMap<Vec<u32>, Vec<TransitionId>>> {
    let (model, net) = (&nets.model, nets.model.net.as_ref().unwrap());
    let interpreter = Interpreter::new(model);
    let firings = interpreter.firings().unwrap();
    let places: Vec<usize> = (0..net.places.len()).collect();
    let sums: Vec<Sum> = places.iter().map(|place| Sum::of(net, &model.layout, &[*place])).collect();
    let all_twice = Sum::of(net, &model.layout, &[&places[..], &places[..]].concat());
    let conditions: Vec<_> = net.places.iter().map(|place| condition(nets, &format!("tokens({})", place.name))).collect();
    let (mut known, mut scratch) = (HashMap::new(), Scratch::default());
    let mut waiting = vec![model.initial_state()];
    known.insert(model.initial_state(), ());
    let mut all = BTreeMap::new();
    while let Some(state) = waiting.pop() {
        let visit = |_, successor: &[u32]| {
            if known.insert(successor.to_vec(), ()).is_none() {
                waiting.push(successor.to_vec());
            }
        };
        interpreter.steps(&state, &mut scratch, visit).ok()?;
        let marking: Vec<u32> = places.iter().map(|place| net.tokens(&model.layout, &state, *place)).collect();
        let total: u64 = marking.iter().map(|tokens| u64::from(*tokens)).sum();
        assert_eq!(all_twice.value(&state), 2 * total, "{marking:?}");
        for (place, tokens) in marking.iter().enumerate() {
            assert_eq!(sums[place].value(&state), u64::from(*tokens), "p{place} in {marking:?}");
            assert_eq!(interpreter.value(&conditions[place], &state), Ok(*tokens as i32), "p{place} in {marking:?}");
            assert!(net.capacity(place) >= *tokens, "p{place} in {marking:?}");
        }
        let enabled: Vec<_> = (0..net.transitions.len()).filter(|id| firings.is_enabled(*id, &state)).collect();
        let mut stepped: Vec<_> = Vec::new();
        let listed = firings.enabled(&state, |firing| {
            stepped.push(firing.transition);
            Ok::<(), ()>(())
        });
        listed.unwrap();
        stepped.sort_unstable();
        assert_eq!(stepped, enabled, "{marking:?}");
        assert!(all.insert(marking, enabled).is_none(), "two states have one marking");
    }
    Some(all)
}

fn condition(nets: &Nets, text: &str) -> crate::ir::Expression {
    nets.condition(&Source { name: String::new(), text: text.into() }).unwrap_or_else(|error| panic!("{error}")).0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sized(2000, 400, 200)))]

    #[test]
    fn random_nets_have_their_markings_whatever_places_take_bits(text in net()) {
        check(&mut read(&text), 2000);
    }
}

fn holders(nets: &Nets) -> Vec<Holder> {
    nets.model.net.as_ref().unwrap().places.iter().map(|place| place.holder).collect()
}

/// A net with a place that has a token, and a ring of pairs of places that never get a token. Each choice of one place from every
/// pair is an invariant.
fn beside_empty_pairs(pairs: usize) -> String {
    let mut text = [place("p0", 1), place("p1", 0), transition("t"), arc("p0", "t", 1), arc("t", "p1", 1)].concat();
    text += &(transition("u") + &arc("p1", "u", 1) + &arc("u", "p0", 1));
    for at in 0..pairs {
        let (id, [here, next]) = (format!("d{at}"), [at, (at + 1) % pairs].map(|at| [2 + 2 * at, 3 + 2 * at]));
        text += &here.map(|number| place(&format!("p{number}"), 0)).concat();
        text += &transition(&id);
        text += &here.map(|number| arc(&format!("p{number}"), &id, 1)).concat();
        text += &next.map(|number| arc(&id, &format!("p{number}"), 1)).concat();
    }
    page(&text)
}

#[test]
fn places_that_never_change_cost_others_no_bounds() {
    let mut nets = read(&beside_empty_pairs(14));
    let holders = holders(&nets);
    assert!(matches!(holders[0], Holder::Number { is_proved: true, capacity: 1, .. }), "{:?}", holders[0]);
    assert!(holders[2..].iter().all(|holder| *holder == Holder::Constant), "{holders:?}");
    check(&mut nets, 100);
}

#[test]
fn places_without_tokens_of_their_own_take_no_bits() {
    // `p1` always has two tokens less than `p0`. `p3` is the opposite of `p2`. Only the transition `never`, which never fires,
    // could take the token of `p4`. `p6` gets tokens only from `never`.
    let text = [
        [place("p0", 3), place("p1", 1), place("p2", 1), place("p3", 0), place("p4", 1), place("p5", 0), place("p6", 0)].concat(),
        ["take", "there", "back", "never", "after"].map(transition).concat(),
        [arc("p0", "take", 1), arc("p1", "take", 1)].concat(),
        [arc("p2", "there", 1), arc("there", "p3", 1), arc("p3", "back", 1), arc("back", "p2", 1)].concat(),
        [arc("p4", "never", 1), arc("p5", "never", 1), arc("never", "p6", 1), arc("p6", "after", 1), arc("after", "p5", 1)]
            .concat(),
    ];
    let mut nets = read(&page(&text.concat()));
    let all = holders(&nets);
    assert_eq!(all[1], Holder::Less { of: 0, by: 2 });
    assert_eq!(all[3], Holder::Opposite { of: 2 });
    assert!(all[4..].iter().all(|holder| *holder == Holder::Constant), "{all:?}");
    check(&mut nets, 100);
}

/// In conditions, the tokens of a place are small numbers even if the place that it follows has far more tokens.
#[test]
fn places_with_far_fewer_tokens_stay_small() {
    let places = [place("p0", 2_000_000_000), place("p1", 2), place("p2", 3)].concat();
    let arcs = [transition("t"), arc("p0", "t", 1), arc("p1", "t", 1), arc("p2", "t", 1)].concat();
    let nets = read(&page(&(places + &arcs)));
    for condition in ["tokens(p1, p2) == 1", "2 * tokens(p1) == 2", "tokens(p2) - 5 < 0"] {
        nets.condition(&Source { name: "a condition".into(), text: condition.into() }).unwrap();
    }
}

/// Many places follow one place. Each has arcs with the same transitions.
#[test]
fn thousands_of_equal_places_are_one_number() {
    let mut text = [transition("t"), transition("u"), place("p0", 200)].concat();
    text += &[place("p1", 0), arc("t", "p1", 1), arc("p1", "u", 1), arc("p0", "t", 1), arc("u", "p0", 1)].concat();
    for at in 2..5000 {
        let id = format!("p{at}");
        text += &[place(&id, at % 200), arc(&id, "t", 1), arc("u", &id, 1)].concat();
    }
    let nets = read(&page(&text));
    assert_eq!(nets.model.layout.words, 1, "{}", nets.model.net.as_ref().unwrap().encoding);
}

/// Places that get one token each. A transition would double the tokens of each place if it were ever enabled. It never is, but
/// no invariant shows that.
pub(crate) fn without_bounds(places: usize) -> String {
    let mut text = [place("q", 1), place("r", 0), transition("qr"), transition("rq")].concat();
    text += &[arc("q", "qr", 1), arc("qr", "r", 1), arc("r", "rq", 1), arc("rq", "q", 1)].concat();
    for at in 0..places {
        let (id, double) = (format!("p{at}"), format!("double{at}"));
        text += &[place(&id, 0), transition(&double), arc("q", &double, 2), arc(&double, "q", 2)].concat();
        text += &[arc(&id, &double, 1), arc(&double, &id, 2), arc("qr", &id, 1), arc(&id, "rq", 1)].concat();
    }
    page(&text)
}

#[test]
fn long_states_have_narrower_fields() {
    for (places, bits) in [(1000, 8), (1100, 4), (2100, 2)] {
        let nets = read(&without_bounds(places));
        assert_eq!(nets.encoding.bits, bits, "{places}");
        assert!(nets.model.layout.words <= 256);
        assert_eq!(explored(&nets).unwrap().len(), 2, "{places}");
    }
    let source = Source { name: "net.pnml".into(), text: without_bounds(5000) };
    let error = Nets::read(source, Encoding::FIRST).unwrap_err().to_string();
    assert!(error.contains("313 words") && error.contains("256") && error.contains("10000 bits"), "{error}");
}
