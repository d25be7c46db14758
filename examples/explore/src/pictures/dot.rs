//! State spaces as text for Graphviz.

use super::Run;
use crate::interpreter::{Interpreter, Scratch};
use anyhow::{Result, bail};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use warpset_model::trace::{all_steps, describe_step, state_text};
use warpset_support::escaping::{self, dot};

/// Most states of a picture: Graphviz takes minutes for more, and no reader can follow them.
pub const MOST_STATES: usize = 2000;

/// Colour of the run that was found.
const RED: &str = "#c0392b";

/// The whole state space of a model, in the order of a breadth-first search, with a run in colour.
///
/// # Errors
///
/// The model has more than `MOST_STATES` states.
pub fn text(interpreter: &Interpreter, run: Option<&Run>) -> Result<String> {
    let model = interpreter.model();
    let mut states = vec![model.initial_state()];
    let mut numbers = HashMap::from([(states[0].clone(), 0)]);
    let (mut edges, mut scratch, mut at) = (Vec::new(), Scratch::default(), 0);
    while at < states.len() {
        let from = states[at].clone();
        let visit = |step, to: &[u32]| {
            let next = states.len();
            let number = *numbers.entry(to.to_vec()).or_insert(next);
            if number == next {
                states.push(to.to_vec());
            }
            edges.push((at, number, step));
        };
        // A state with a fault has the steps before the fault; the search reports the fault.
        let _ = all_steps(interpreter, &from, &mut scratch, visit);
        if states.len() > MOST_STATES {
            bail!("the model has more than {MOST_STATES} states, the limit for a picture; an .aut file has no limit");
        }
        at += 1;
    }
    let on_run: HashSet<usize> = run.iter().flat_map(|run| run.states).filter_map(|state| numbers.get(state).copied()).collect();
    let last = run.and_then(|run| numbers.get(run.states.last()?).copied());
    let mut steps_of_run: HashSet<_> = run
        .iter()
        .flat_map(|run| run.states.windows(2).zip(&run.steps))
        .filter_map(|(pair, step)| Some((*numbers.get(&pair[0])?, *numbers.get(&pair[1])?, *step)))
        .collect();
    let mut text = format!("digraph {} {{\n", dot(&escaping::line(&model.source.name)));
    text += "  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n";
    text += "  start [shape=point];\n  start -> 0;\n";
    let has_steps: HashSet<usize> = edges.iter().filter(|(.., step)| step.is_some()).map(|(from, ..)| *from).collect();
    for (number, state) in states.iter().enumerate() {
        let lines = state_text(model, state).replace(", ", "\n");
        let deadlock = if has_steps.contains(&number) { "" } else { ", peripheries=2" };
        let colour = match on_run.contains(&number) {
            true if last == Some(number) => {
                format!(", color=\"{RED}\", penwidth=2, style=\"rounded,filled\", fillcolor=\"#fadbd8\"")
            }
            true => format!(", color=\"{RED}\", penwidth=2"),
            false => String::new(),
        };
        writeln!(text, "  {number} [label={}{deadlock}{colour}];", dot(&format!("{number}\n{lines}")))?;
    }
    for (from, to, step) in edges {
        let label = step.map_or_else(|| "stays".into(), |step| describe_step(model, step));
        // Equal steps between two states are drawn once each; only one of them is on the run.
        let colour =
            if steps_of_run.remove(&(from, to, step)) { format!(", color=\"{RED}\", penwidth=2") } else { String::new() };
        writeln!(text, "  {from} -> {to} [label={}{colour}];", dot(&label))?;
    }
    Ok(text + "}\n")
}
