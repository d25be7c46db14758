//! Replays paths with the interpreter, and shows states and steps as text and as JSON.

use crate::checks::{Checks, Violation};
use crate::interpreter::{Fault, Interpreter, Scratch, Step};
use crate::ir::ids::RuleId;
use crate::ir::{Action, Buffer, Model, Process, Span, TransitionId, VariableId};
use crate::messages::Message;
use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use warpset_support::escaping;

/// A path from the initial state, replayed by the interpreter.
#[derive(Clone, Debug)]
pub struct Path {
    /// The states, one more than the steps.
    pub states: Vec<Vec<u32>>,
    /// The steps; `None` if only the automaton of a property moves.
    pub steps: Vec<Option<Step>>,
    pub violation: Violation,
}

/// Finds the steps between states with the interpreter. The interpreter must also find the violation in the last state.
pub fn replay(interpreter: &Interpreter, checks: &Checks, states: Vec<Vec<u32>>, violation: Violation) -> Result<Path> {
    steps_between(interpreter, checks, states, violation).context("the path cannot be replayed: please report this as a bug")
}

fn steps_between(interpreter: &Interpreter, checks: &Checks, states: Vec<Vec<u32>>, violation: Violation) -> Result<Path> {
    ensure!(states.first() == Some(&interpreter.model().initial_state()), "the path does not begin in the initial state");
    let mut scratch = Scratch::default();
    let mut steps = Vec::new();
    for (number, pair) in states.windows(2).enumerate() {
        let mut taken = None;
        let visit = |step, successor: &[u32]| {
            if successor == pair[1] {
                taken.get_or_insert(step);
            }
        };
        // A fault in another step of this state does not matter for the path.
        let _ = all_steps(interpreter, &pair[0], &mut scratch, visit);
        steps.push(taken.with_context(|| format!("step {} does not lead to its next state", number + 1))?);
    }
    let last = states.last().context("it is empty")?;
    let expected = match &violation {
        Violation::Deadlock => {
            let mut successors = 0;
            all_steps(interpreter, last, &mut scratch, |_, _| successors += 1).is_ok() && successors == 0
        }
        Violation::Condition(at) => interpreter.value(&checks.conditions[*at].must_hold, last) == Ok(0),
        Violation::Fault(fault) => {
            let of_condition = |at: usize| interpreter.value(&checks.conditions[at].must_hold, last).err();
            let of_step = all_steps(interpreter, last, &mut scratch, |_, _| {}).err();
            of_step.into_iter().chain((0..checks.conditions.len()).filter_map(of_condition)).any(|other| other == *fault)
        }
    };
    ensure!(expected, "the interpreter finds no violation in its last state");
    Ok(Path { states, steps, violation })
}

/// Calls `visit` with the steps of a state, with or without a property.
pub fn all_steps(
    interpreter: &Interpreter,
    state: &[u32],
    scratch: &mut Scratch,
    mut visit: impl FnMut(Option<Step>, &[u32]),
) -> Result<(), Box<Fault>> {
    match interpreter.model().property {
        Some(_) => interpreter.product_steps(state, scratch, |step, successor| visit(step.system, successor)).map(drop),
        None => interpreter.steps(state, scratch, |step, successor| visit(Some(step), successor)).map(drop),
    }
}

impl Path {
    /// The path as text: a title, the initial state, then each step with the variables that it changes, then the violation.
    pub fn text(&self, model: &Model, checks: &Checks, title: &str) -> String {
        let mut text = String::new();
        let mut line = |line: String| writeln!(text, "{line}").expect("a string can be written to");
        line(title.into());
        line(format!("  0. initial state: {}", state_text(model, &self.states[0])));
        for (number, step) in self.steps.iter().enumerate() {
            let (from, to) = (&self.states[number], &self.states[number + 1]);
            for (at, part) in step_lines(model, *step, from, to).into_iter().enumerate() {
                line(if at == 0 { format!("  {}. {part}", number + 1) } else { format!("       {part}") });
            }
        }
        line(format!("There: {}", escaping::line(&checks.describe(&self.violation, model))));
        if let (Violation::Deadlock, Some(last)) = (&self.violation, self.states.last()) {
            committed(model, last)
                .for_each(|at| line(format!("{at} is committed and cannot move, so no other process may move")));
        }
        text
    }

    pub fn json(&self, model: &Model, checks: &Checks) -> Value {
        let steps = self.steps.iter().enumerate();
        let steps = steps.map(|(number, step)| step_json(model, *step, &self.states[number], &self.states[number + 1]));
        json!({
            "model": model.source.name,
            "violation": { "kind": self.violation.kind(checks), "text": checks.describe(&self.violation, model) },
            "length": self.steps.len(),
            "initial": state_json(model, &self.states[0]),
            "steps": steps.collect::<Vec<_>>(),
            "final": state_json(model, self.states.last().expect("a path has a state")),
        })
    }
}

/// The committed locations that processes are in, as `P.s`.
fn committed<'m>(model: &'m Model, state: &'m [u32]) -> impl Iterator<Item = String> + 'm {
    model.processes.iter().enumerate().filter_map(|(id, process)| {
        let location = process.locations.get(model.location(state, id)).filter(|location| location.committed)?;
        Some(format!("{}.{}", process.name, location.name))
    })
}

/// Names the text that line numbers of steps refer to; empty for a network.
pub fn lines_of(model: &Model) -> String {
    // The steps of a network come from tables and have no line numbers. The steps of a net are shown by name.
    if model.network.is_none() && model.net.is_none() {
        format!(" (lines of {})", escaping::line(&model.source.name))
    } else {
        String::new()
    }
}

/// Lists a step: one line for its transitions, one for the statement of each, and one for its changes, if any. `None` for `step`
/// means that no step is possible.
pub fn step_lines(model: &Model, step: Option<Step>, from: &[u32], to: &[u32]) -> Vec<String> {
    let moves = step.map(|step| {
        let sent = Message::of(model, step, from, to).map_or_else(Vec::new, |message| message.values);
        describe(model, step, |id| describe_at(model, id, &line_of(model, id), &sent))
    });
    let moves = moves.unwrap_or_else(|| "no step is possible: the run stays in this state".into());
    let of_step = step.into_iter().flat_map(|step| match step {
        Step::Transition { id, receiver } => transitions(id, receiver).map(|id| statement(model, id)).collect(),
        Step::Firing(_) | Step::Rule(_) => Vec::new(),
    });
    let more = of_step.chain([changes_text(model, from, to)]).filter(|line| !line.is_empty());
    std::iter::once(moves).chain(more).collect()
}

/// The statement of a transition on one line, without its locations; empty if the text has none.
pub fn statement(model: &Model, id: TransitionId) -> String {
    let span = model.transitions[id].span;
    if span.line == 0 {
        return String::new();
    }
    let text = model.source.in_one_line(span);
    let inside = text.split_once('{').and_then(|(_, rest)| rest.strip_suffix('}')).filter(|_| text.contains("->"));
    escaping::line(inside.unwrap_or(&text).trim()).into()
}

/// The variables that differ between two states: `x: 0 -> 1, y: 2 -> 3`.
pub fn changes_text(model: &Model, from: &[u32], to: &[u32]) -> String {
    let pairs = values_text(model, from).into_iter().zip(values_text(model, to));
    let changed = pairs.filter(|((_, old), (_, new))| old != new);
    list(changed.map(|((name, old), (_, new))| format!("{}: {old} -> {new}", escaping::line(&name))))
}

/// Names and values of all variables as text. A buffered channel is one variable, with its messages from the oldest:
/// `[(1, 3)]`.
fn values_text(model: &Model, state: &[u32]) -> Vec<(String, String)> {
    if model.net.is_some() {
        return variables(model, state).into_iter().map(|(name, tokens)| (name, tokens.to_string())).collect();
    }
    let buffers: Vec<&Buffer> = model.buffers.iter().filter(|buffer| !buffer.values.is_empty()).collect();
    let of_messages: HashSet<VariableId> = buffers.iter().flat_map(|buffer| buffer.values.iter().copied()).collect();
    let shown = written(model).filter(|variable| !of_messages.contains(variable));
    let values = shown.flat_map(|variable| match buffers.iter().find(|buffer| buffer.length == variable) {
        Some(buffer) => vec![(buffer.name.clone(), messages(model, state, buffer))],
        None => elements(model, state, variable).map(|(name, value)| (name, value.to_string())).collect(),
    });
    values.collect()
}

/// The waiting messages of a buffered channel.
fn messages(model: &Model, state: &[u32], buffer: &Buffer) -> String {
    let message = |place: usize| {
        let (_, values) = buffer.message(model, state, place);
        if let [value] = values[..] { value.to_string() } else { format!("({})", list(values.iter().map(i32::to_string))) }
    };
    format!("[{}]", list((0..buffer.waiting(model, state)).map(message)))
}

pub fn step_json(model: &Model, step: Option<Step>, from: &[u32], to: &[u32]) -> Value {
    let moves: Vec<Value> = step.into_iter().flat_map(|step| moves_json(model, step)).collect();
    let changes = changes(model, from, to).into_iter();
    let changes: Map<String, Value> = changes.map(|(name, old, new)| (name, json!([old, new]))).collect();
    json!({ "moves": moves, "changes": changes })
}

/// The leading transition, then the receiver's.
fn transitions(leader: TransitionId, receiver: Option<TransitionId>) -> impl Iterator<Item = TransitionId> {
    std::iter::once(leader).chain(receiver)
}

/// Describes a step in words, on one line: its transitions; for a network, the label and the components that move.
pub fn describe_step(model: &Model, step: Step) -> String {
    describe(model, step, |id| describe_transition(model, id))
}

fn describe(model: &Model, step: Step, of_transition: impl Fn(TransitionId) -> String) -> String {
    match step {
        Step::Transition { id, receiver } => transitions(id, receiver).map(of_transition).collect::<Vec<_>>().join(", with "),
        Step::Firing(id) => escaping::line(model.firing_name(id)).into(),
        Step::Rule(rule) => {
            let label = escaping::line(model.rule_label(rule));
            format!("{label} ({})", list(participants(model, rule).map(String::from)))
        }
    }
}

fn moves_json(model: &Model, step: Step) -> Vec<Value> {
    match step {
        Step::Transition { id, receiver } => transitions(id, receiver).map(|id| transition_json(model, id)).collect(),
        Step::Firing(id) => vec![json!({ "transition": model.firing_name(id) })],
        Step::Rule(rule) => {
            vec![json!({ "label": model.rule_label(rule), "components": participants(model, rule).collect::<Vec<_>>() })]
        }
    }
}

/// The components that a rule moves.
fn participants(model: &Model, rule: RuleId) -> impl Iterator<Item = &str> {
    let network = model.network.iter();
    network.flat_map(move |network| {
        network.movers(rule).map(|component| &*model.variables[network.components[component].variable].name)
    })
}

/// Describes a transition as `P_0: NCS -> CS (line 7)`, with the channel that it sends or receives on.
pub fn describe_transition(model: &Model, id: TransitionId) -> String {
    describe_at(model, id, &line_of(model, id), &[])
}

fn line_of(model: &Model, id: TransitionId) -> String {
    model.transitions[id].span.line.to_string()
}

/// Descriptions of all transitions, as [`describe_transition`]. Adds the column where several transitions would have the same
/// description.
pub fn describe_transitions(model: &Model) -> Vec<String> {
    let names: Vec<String> = (0..model.transitions.len()).map(|id| describe_transition(model, id)).collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *uses.entry(name).or_default() += 1);
    let described = names.iter().enumerate().map(|(id, name)| {
        let Span { line, column, .. } = model.transitions[id].span;
        if uses[name.as_str()] == 1 { name.clone() } else { describe_at(model, id, &format!("{line}, column {column}"), &[]) }
    });
    described.collect()
}

/// Describes a transition, with a text for its line. `sent`: the values that its step sends, to show them: `sends answer(4)`.
fn describe_at(model: &Model, id: TransitionId, line: &str, sent: &[i32]) -> String {
    let transition = &model.transitions[id];
    let process = &model.processes[transition.process];
    let (from, to) = (&process.locations[transition.from].name, &process.locations[transition.to].name);
    let on = match transition.action {
        Action::Alone | Action::Buffered { .. } => String::new(),
        Action::Send { channel, .. } if sent.is_empty() => format!(", sends on {}", model.channels[channel].name),
        Action::Send { channel, .. } => {
            format!(", sends {}({})", model.channels[channel].name, list(sent.iter().map(i32::to_string)))
        }
        Action::Receive { channel, .. } => format!(", receives on {}", model.channels[channel].name),
    };
    format!("{}: {from} -> {to} (line {line}{on})", process.name)
}

fn transition_json(model: &Model, id: TransitionId) -> Value {
    let transition = &model.transitions[id];
    let process = &model.processes[transition.process];
    let (from, to) = (&process.locations[transition.from].name, &process.locations[transition.to].name);
    let Span { line, column, .. } = transition.span;
    let text = model.source.piece(transition.span).split_whitespace().collect::<Vec<_>>().join(" ");
    json!({ "process": process.name, "from": from, "to": to, "line": line, "column": column, "text": text })
}

/// Names and values of all variables that are part of a state.
fn variables(model: &Model, state: &[u32]) -> Vec<(String, i32)> {
    if let Some(net) = &model.net {
        let tokens = |place: usize| net.tokens(&model.layout, state, place) as i32;
        return net.places.iter().enumerate().map(|(id, place)| (place.name.clone(), tokens(id))).collect();
    }
    written(model).flat_map(|variable| elements(model, state, variable)).collect()
}

/// The variables that have a field in packed states.
fn written(model: &Model) -> impl Iterator<Item = VariableId> + '_ {
    (0..model.variables.len()).filter(|variable| model.variables[*variable].is_written)
}

/// Names and values of a variable's elements.
fn elements<'m>(model: &'m Model, state: &'m [u32], variable: VariableId) -> impl Iterator<Item = (String, i32)> + 'm {
    let (name, of) = (model.full_name(variable), &model.variables[variable]);
    (0..of.initial.len()).map(move |element| (of.element_name(&name, element), model.value(state, variable, element)))
}

/// Names of each process and its current location.
fn locations<'m>(model: &'m Model, state: &[u32]) -> impl Iterator<Item = (&'m str, &'m str)> {
    let at = |(process, of): (usize, &'m Process)| (&*of.name, &*of.locations[model.location(state, process)].name);
    model.processes.iter().enumerate().map(at)
}

pub fn state_json(model: &Model, state: &[u32]) -> Value {
    let locations: Map<String, Value> = locations(model, state).map(|(process, at)| (process.into(), json!(at))).collect();
    let variables: Map<String, Value> = variables(model, state).into_iter().map(|(name, value)| (name, json!(value))).collect();
    json!({ "locations": locations, "variables": variables })
}

/// The location of each process, and the variables that are not 0.
pub fn state_text(model: &Model, state: &[u32]) -> String {
    let locations = locations(model, state).map(|(process, at)| format!("{process}.{at}"));
    let variables = values_text(model, state).into_iter().filter(|(_, value)| value != "0" && value != "[]");
    let text = list(locations.chain(variables.map(|(name, value)| format!("{} = {value}", escaping::line(&name)))));
    if text.is_empty() { "all variables are 0".into() } else { text }
}

/// Variables that differ between two states.
fn changes(model: &Model, from: &[u32], to: &[u32]) -> Vec<(String, i32, i32)> {
    let pairs = variables(model, from).into_iter().zip(variables(model, to));
    pairs.filter(|((_, old), (_, new))| old != new).map(|((name, old), (_, new))| (name, old, new)).collect()
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
