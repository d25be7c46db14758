//! Random place/transition nets in PNML, with places `p0`, `p1` and so on, and transitions `t0`, `t1` and so on.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Weights of arcs, by place.
type Arcs = BTreeMap<usize, u32>;

#[derive(Clone, Debug)]
struct Net {
    /// Tokens of the initial marking.
    places: Vec<u32>,
    /// Arcs from places and to places.
    transitions: Vec<[Arcs; 2]>,
}

/// An addition to a net.
#[derive(Clone, Debug)]
enum More {
    /// A place with the arcs of another one and a number of tokens more.
    Copy(usize, u32),
    /// A place with the arcs of another one in the other direction.
    Opposite(usize, u32),
    /// A transition looks for tokens in a place.
    Look { transition: usize, place: usize, count: u32 },
    /// A transition that takes one token more than a new place ever has, and moves tokens between places.
    Dead { tokens: u32, from: usize, to: usize },
}

/// A net with few places: transitions with up to three arcs each way, weights up to three, sometimes with a NUPN section, which
/// may be wrong. Some places have as many tokens as others but for a constant, or never change, and some transitions never fire.
pub fn net() -> impl Strategy<Value = String> {
    let arcs = || proptest::collection::vec((0usize..6, 1u32..4), 0..4);
    let places = proptest::collection::vec(0u32..4, 1..6);
    let transitions = proptest::collection::vec((arcs(), arcs()), 1..7);
    let units = proptest::option::of(proptest::collection::vec(0usize..6, 0..6));
    let one = prop_oneof![
        3 => (0usize..9, 0u32..3).prop_map(|(place, more)| More::Copy(place, more)),
        3 => (0usize..9, 0u32..3).prop_map(|(place, tokens)| More::Opposite(place, tokens)),
        3 => (0usize..9, 0usize..12, 1u32..3).prop_map(|(transition, place, count)| More::Look { transition, place, count }),
        1 => (0u32..2, 0usize..9, 0usize..9).prop_map(|(tokens, from, to)| More::Dead { tokens, from, to }),
    ];
    (places, transitions, units, proptest::collection::vec(one, 0..7)).prop_map(|(places, transitions, units, more)| {
        let count = places.len();
        let arcs = |all: &[(usize, u32)]| {
            let mut arcs = Arcs::new();
            all.iter().for_each(|(place, weight)| *arcs.entry(place % count).or_default() += weight);
            arcs
        };
        let transitions = transitions.iter().map(|(takes, puts)| [arcs(takes), arcs(puts)]).collect();
        let mut net = Net { places, transitions };
        more.iter().for_each(|more| net.add(more));
        net.text(units.map(|units| units.iter().map(|place| place % count).collect()))
    })
}

impl Net {
    fn add(&mut self, more: &More) {
        let Self { places, transitions } = self;
        let new = places.len();
        match *more {
            More::Copy(place, more) => {
                places.push(places[place % new] + more);
                for arcs in transitions.iter_mut().flatten() {
                    arcs.get(&(place % new)).copied().map(|weight| arcs.insert(new, weight));
                }
            }
            More::Opposite(place, tokens) => {
                places.push(tokens);
                for [takes, puts] in transitions {
                    let [taken, put] = [&*takes, &*puts].map(|arcs| arcs.get(&(place % new)).copied());
                    taken.map(|weight| puts.insert(new, weight));
                    put.map(|weight| takes.insert(new, weight));
                }
            }
            More::Look { transition, place, count } => {
                let number = transition % transitions.len();
                transitions[number].iter_mut().for_each(|arcs| *arcs.entry(place % new).or_default() += count);
            }
            More::Dead { tokens, from, to } => {
                places.push(tokens);
                let mut takes = Arcs::from([(new, tokens + 1)]);
                *takes.entry(from % new).or_default() += 1;
                transitions.push([takes, Arcs::from([(to % new, 2)])]);
            }
        }
    }

    fn text(&self, unit: Option<BTreeSet<usize>>) -> String {
        let mut text = String::new();
        let mut line = |line: String| writeln!(text, "{line}").expect("a string can be written to");
        for (at, tokens) in self.places.iter().enumerate() {
            line(format!("<place id=\"p{at}\"><initialMarking><text>{tokens}</text></initialMarking></place>"));
        }
        for (id, [takes, puts]) in self.transitions.iter().enumerate() {
            line(format!("<transition id=\"t{id}\"/>"));
            let ends = |(place, weight): (&usize, &u32), is_taken: bool| {
                let [place, transition] = [format!("p{place}"), format!("t{id}")];
                let (source, target) = if is_taken { (place, transition) } else { (transition, place) };
                format!(
                    "<arc id=\"{source}-{target}\" source=\"{source}\" target=\"{target}\"><inscription><text>{weight}</text>\
                     </inscription></arc>"
                )
            };
            takes.iter().for_each(|arc| line(ends(arc, true)));
            puts.iter().for_each(|arc| line(ends(arc, false)));
        }
        if let Some(unit) = unit {
            let names: Vec<String> = unit.iter().map(|place| format!("p{place}")).collect();
            line(format!(
                "<toolspecific tool=\"nupn\"><structure safe=\"true\"><unit id=\"u\"><places>{}</places></unit></structure>\
                 </toolspecific>",
                names.join(" ")
            ));
        }
        format!(
            "<?xml version=\"1.0\"?>\n<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\">\n<net id=\"n\" \
             type=\"http://www.pnml.org/version-2009/grammar/ptnet\"><page id=\"page\">\n{text}</page></net></pnml>\n"
        )
    }
}
