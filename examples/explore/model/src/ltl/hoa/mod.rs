//! Automata in the Hanoi Omega-Automata format, version 1 (Babiak et al. 2015): reading, writing, and writing for Graphviz.
//!
//! The reader accepts automata with state-based Büchi acceptance: any number of initial states, labels on edges or states or
//! implicit ones, aliases. It refuses all other automata and names the feature that is not supported, and it refuses all texts
//! that break a rule of the format. The name of a proposition is a condition of the model's language: `AP: 1 "P_0.critical"`.

mod labels;
mod read;
#[cfg(test)]
mod tests;
mod tokens;

pub use read::read;

use super::buchi::{Buchi, Cube, Label, MOST_PROPOSITIONS};
use crate::ir::Span;
use std::fmt::Write as _;
use warpset_support::escaping::{self, quoted};

/// An automaton and its propositions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    pub buchi: Buchi,
    pub propositions: Vec<String>,
    /// Places of the propositions in the text that was read.
    pub spans: Vec<Span>,
    /// Names of the states.
    pub states: Vec<String>,
}

/// Formats a cube; `name` gives the text of a proposition, `and` the text between literals.
fn cube_text(cube: Cube, name: impl Fn(usize) -> String, and: &str) -> String {
    let literal = |number: usize| match (cube.positive >> number & 1, cube.negative >> number & 1) {
        (1, _) => Some(name(number)),
        (_, 1) => Some(format!("!{}", name(number))),
        _ => None,
    };
    (0..MOST_PROPOSITIONS).filter_map(literal).collect::<Vec<_>>().join(and)
}

fn label_text(label: &Label, name: impl Fn(usize) -> String, and: &str, or: &str) -> String {
    if label.is_true() {
        return "t".into();
    }
    label.0.iter().map(|cube| cube_text(*cube, &name, and)).collect::<Vec<_>>().join(or)
}

impl Named {
    /// Writes the automaton in the HOA format. `name` says what the automaton is for.
    pub fn hoa(&self, name: &str) -> String {
        let Self { buchi, propositions, states, .. } = self;
        let mut text = String::from("HOA: v1\n");
        let names: Vec<String> = propositions.iter().map(|name| format!(" {}", quoted(name))).collect();
        writeln!(text, "tool: \"explore\" \"{}\"\nname: {}", env!("CARGO_PKG_VERSION"), quoted(name)).unwrap();
        writeln!(text, "States: {}\nStart: {}\nAP: {}{}", states.len(), buchi.initial, names.len(), names.concat()).unwrap();
        text.push_str("acc-name: Buchi\nAcceptance: 1 Inf(0)\nproperties: trans-labels explicit-labels state-acc\n--BODY--\n");
        for (state, edges) in buchi.edges.iter().enumerate() {
            let accepting = if buchi.accepting[state] { " {0}" } else { "" };
            writeln!(text, "State: {state} {}{accepting}", quoted(&states[state])).unwrap();
            for (label, to) in edges {
                writeln!(text, "  [{}] {to}", label_text(label, |number| number.to_string(), "&", " | ")).unwrap();
            }
        }
        text + "--END--\n"
    }

    /// Writes the automaton for Graphviz.
    pub fn dot(&self, name: &str) -> String {
        let Self { buchi, propositions, states, .. } = self;
        let quoted = |text: &str| escaping::dot(&escaping::line(text));
        let mut text =
            format!("digraph {} {{\n  rankdir=LR;\n  start [shape=point];\n  start -> {};\n", quoted(name), buchi.initial);
        for (state, edges) in buchi.edges.iter().enumerate() {
            let shape = if buchi.accepting[state] { "doublecircle" } else { "circle" };
            writeln!(text, "  {state} [shape={shape}, label={}];", quoted(&states[state])).unwrap();
            for (label, to) in edges {
                let name = |number: usize| {
                    let name = &propositions[number];
                    if name.contains(' ') { format!("({name})") } else { name.clone() }
                };
                writeln!(text, "  {state} -> {to} [label={}];", quoted(&label_text(label, name, " && ", " || "))).unwrap();
            }
        }
        text + "}\n"
    }
}
