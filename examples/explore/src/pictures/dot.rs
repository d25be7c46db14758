//! State spaces as text for Graphviz.

use super::Run;
use super::projection::Projection;
use anyhow::{Result, bail};
use indicatif::HumanCount;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use warpset_model::checks::{Checks, Role};
use warpset_model::interpreter::{Interpreter, Scratch, Step};
use warpset_model::trace::{all_steps, describe_step, state_parts};
use warpset_support::escaping::{self, dot};
use warpset_support::numbers::counted;

/// Most nodes of a picture: Graphviz takes minutes for more, and no reader can follow them.
pub const MOST_NODES: usize = 2000;

/// Most states that are merged into nodes. They are kept in memory beside the search's table.
const MOST_STATES: usize = 1 << 20;

/// Most steps that one merged edge names.
const MOST_NAMES: usize = 4;

/// Colour of the run that was found, and of states in which a check fails.
const RED: &str = "#c0392b";
const FAILING: &str = "#fadbd8";

/// The states of a model, in the order of a breadth-first search, and its steps.
struct Space {
    states: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, usize>,
    steps: Vec<(usize, usize, Option<Step>)>,
    /// By state.
    fails: Vec<bool>,
    is_deadlock: Vec<bool>,
}

/// One node: a state, or all states that the projection does not tell apart.
#[derive(Default)]
struct Node {
    text: String,
    states: u64,
    failing: u64,
    has_deadlock: bool,
    is_on_run: bool,
}

/// The whole state space of a model, with a run in colour. `projection`: a node for each combination of these parts.
///
/// # Errors
///
/// More than `MOST_NODES` nodes.
pub fn text(interpreter: &Interpreter, checks: &Checks, run: Option<&Run>, projection: Option<&Projection>) -> Result<String> {
    let model = interpreter.model();
    let space = Space::new(interpreter, checks, if projection.is_some() { MOST_STATES } else { MOST_NODES })?;
    let on_run = |state| space.numbers.get(state).copied();
    let steps_of_run: HashSet<_> = run
        .iter()
        .flat_map(|run| run.states.windows(2).zip(&run.steps))
        .filter_map(|(pair, step)| Some((on_run(&pair[0])?, on_run(&pair[1])?, *step)))
        .collect();
    let (mut nodes, node_of) = space.nodes(|state| projection.map(|projection| projection.text(model, state)));
    if nodes.len() > MOST_NODES {
        let most = HumanCount(MOST_NODES as u64);
        bail!("by --project, {} nodes remain; a picture has at most {most}", HumanCount(nodes.len() as u64));
    }
    for at in run.iter().flat_map(|run| run.states).filter_map(on_run) {
        nodes[node_of[at]].is_on_run = true;
    }
    // Where a run ends, there is what was looked for.
    let last = run.filter(|run| run.begins.is_none()).and_then(|run| Some(node_of[on_run(run.states.last()?)?]));
    let mut remarks =
        vec![format!("{}, {}", counted(space.states.len() as u64, "state"), counted(space.steps.len() as u64, "step"))];
    let (edges, inside) = match projection {
        Some(_) => space.merged(&node_of, &steps_of_run, |step| step_text(model, step)),
        None => (space.single(steps_of_run, |step| step_text(model, step)), 0),
    };
    match projection {
        Some(projection) => {
            let merged =
                format!("a node for each combination of {}: {}", projection.names(), counted(nodes.len() as u64, "node"));
            remarks.push(merged);
            if inside > 0 {
                remarks.push(format!("not drawn: {} within a node", counted(inside, "step")));
            }
        }
        None => {
            let (texts, common) = without_common(space.states.iter().map(|state| state_parts(model, state)).collect());
            nodes.iter_mut().zip(texts).for_each(|(node, text)| node.text = text);
            if !common.is_empty() {
                remarks.push(format!("in every state: {}", common.join(", ")));
            }
        }
    }
    let failing = space.fails.iter().filter(|fails| **fails).count() as u64;
    if failing > 0 {
        remarks.push(format!("filled: a check fails or a goal is reached, {}", counted(failing, "state")));
    }
    if space.is_deadlock.contains(&true) {
        remarks.push("double frame: deadlock".into());
    }
    if run.is_some() {
        remarks.push("red: what was found".into());
    }
    let mut text = format!("digraph {} {{\n", dot(&escaping::line(&model.source.name)));
    writeln!(text, "  label={}; labelloc=t; labeljust=l; fontname=\"sans-serif\";", dot(&remarks.join("\n")))?;
    text += "  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n";
    text += "  start [shape=point];\n  start -> 0;\n";
    for (number, node) in nodes.iter().enumerate() {
        let deadlock = if node.has_deadlock { ", peripheries=2" } else { "" };
        let run = if node.is_on_run { format!(", color=\"{RED}\", penwidth=2") } else { String::new() };
        let is_filled = node.failing > 0 || last == Some(number);
        let fill = if is_filled { format!(", style=\"rounded,filled\", fillcolor=\"{FAILING}\"") } else { String::new() };
        let label = match projection {
            None => [number.to_string(), node.text.clone()].join("\n"),
            Some(_) if node.failing > 0 => format!("{}\n{}, {} filled", node.text, counted(node.states, "state"), node.failing),
            Some(_) => format!("{}\n{}", node.text, counted(node.states, "state")),
        };
        writeln!(text, "  {number} [label={}{deadlock}{run}{fill}];", dot(label.trim_end()))?;
    }
    for (from, to, label, is_on_run) in edges {
        let colour = if is_on_run { format!(", color=\"{RED}\", penwidth=2") } else { String::new() };
        writeln!(text, "  {from} -> {to} [label={}{colour}];", dot(&label))?;
    }
    Ok(text + "}\n")
}

fn step_text(model: &warpset_model::ir::Model, step: Option<Step>) -> String {
    step.map_or_else(|| "stays".into(), |step| describe_step(model, step))
}

/// Edges: source, target, label, and whether the run takes it.
type Edges = Vec<(usize, usize, String, bool)>;

impl Space {
    fn new(interpreter: &Interpreter, checks: &Checks, most: usize) -> Result<Self> {
        let model = interpreter.model();
        let is_checked = |role| matches!(role, Role::Assertion | Role::Invariant | Role::Goal);
        let conditions: Vec<_> = checks.conditions.iter().filter(|condition| is_checked(condition.role)).collect();
        let initial = model.initial_state();
        let numbers = HashMap::from([(initial.clone(), 0)]);
        let mut space = Self { states: vec![initial], numbers, steps: Vec::new(), fails: Vec::new(), is_deadlock: Vec::new() };
        let (mut scratch, mut at) = (Scratch::default(), 0);
        while at < space.states.len() {
            let from = space.states[at].clone();
            let mut has_steps = false;
            let visit = |step: Option<Step>, to: &[u32]| {
                let next = space.states.len();
                let number = *space.numbers.entry(to.to_vec()).or_insert(next);
                if number == next {
                    space.states.push(to.to_vec());
                }
                has_steps |= step.is_some();
                space.steps.push((at, number, step));
            };
            // A state with a fault has the steps before the fault; the search reports the fault.
            let is_faulty = all_steps(interpreter, &from, &mut scratch, visit).is_err();
            if space.states.len() > most {
                let most = HumanCount(most as u64);
                bail!(
                    "the model has more than {most} states, the limit for a picture; --project NAMES draws a node for each \
                     combination of the states of some processes, and an .aut file has no limit"
                );
            }
            let fails =
                conditions.iter().any(|condition| matches!(interpreter.value(&condition.must_hold, &from), Ok(0) | Err(_)));
            let is_deadlock = !has_steps && !is_faulty;
            space.fails.push(fails || is_faulty || (is_deadlock && checks.deadlocks));
            space.is_deadlock.push(is_deadlock);
            at += 1;
        }
        Ok(space)
    }

    /// The nodes, and the node of each state. States with the same text are one node; without a text, each is its own.
    fn nodes(&self, text: impl Fn(&[u32]) -> Option<String>) -> (Vec<Node>, Vec<usize>) {
        let (mut nodes, mut node_of, mut known) = (Vec::<Node>::new(), Vec::new(), HashMap::new());
        for (at, state) in self.states.iter().enumerate() {
            let text = text(state);
            let new = nodes.len();
            let number = text.as_ref().map_or(new, |text| *known.entry(text.clone()).or_insert(new));
            if number == new {
                nodes.push(Node { text: text.unwrap_or_default(), ..Node::default() });
            }
            let node = &mut nodes[number];
            node.states += 1;
            node.failing += u64::from(self.fails[at]);
            node.has_deadlock |= self.is_deadlock[at];
            node_of.push(number);
        }
        (nodes, node_of)
    }

    /// An edge for each step. Equal steps between two states are drawn once each; only one of them is on the run.
    fn single(&self, mut on_run: HashSet<(usize, usize, Option<Step>)>, text: impl Fn(Option<Step>) -> String) -> Edges {
        let edge = |step: &(usize, usize, Option<Step>)| (step.0, step.1, text(step.2), on_run.remove(step));
        self.steps.iter().map(edge).collect()
    }

    /// An edge for all steps from one node to another one, and the number of steps that stay in their node.
    fn merged(
        &self,
        node_of: &[usize],
        on_run: &HashSet<(usize, usize, Option<Step>)>,
        text: impl Fn(Option<Step>) -> String,
    ) -> (Edges, u64) {
        let (mut edges, mut known, mut inside) = (Vec::<(usize, usize, Vec<Option<Step>>, bool)>::new(), HashMap::new(), 0);
        for step in &self.steps {
            let (from, to) = (node_of[step.0], node_of[step.1]);
            if from == to {
                inside += 1;
                continue;
            }
            let new = edges.len();
            let number = *known.entry((from, to)).or_insert(new);
            if number == new {
                edges.push((from, to, Vec::new(), false));
            }
            let (_, _, steps, is_on_run) = &mut edges[number];
            if !steps.contains(&step.2) {
                steps.push(step.2);
            }
            *is_on_run |= on_run.contains(step);
        }
        let label = |steps: &[Option<Step>]| {
            let mut names: Vec<String> = Vec::new();
            steps.iter().map(|step| text(*step)).for_each(|name| {
                if !names.contains(&name) {
                    names.push(name);
                }
            });
            let more = names.len().saturating_sub(MOST_NAMES);
            names.truncate(MOST_NAMES);
            let more = (more > 0).then(|| format!("and {more} more"));
            names.into_iter().chain(more).collect::<Vec<_>>().join("\n")
        };
        (edges.iter().map(|(from, to, steps, is_on_run)| (*from, *to, label(steps), *is_on_run)).collect(), inside)
    }
}

/// The lines of each state without those that all states have, and these.
fn without_common(lines: Vec<Vec<String>>) -> (Vec<String>, Vec<String>) {
    let mut common = if lines.len() > 1 { lines[0].clone() } else { Vec::new() };
    for of_state in &lines {
        let of_state: HashSet<&String> = of_state.iter().collect();
        common.retain(|line| of_state.contains(line));
    }
    let is_common: HashSet<&String> = common.iter().collect();
    let rest = |lines: &Vec<String>| lines.iter().filter(|line| !is_common.contains(line)).cloned().collect::<Vec<_>>();
    let texts = lines.iter().map(|lines| rest(lines).join("\n")).collect();
    (texts, common)
}
