//! Replays paths with the interpreter, and shows states and steps as text and as JSON.

use crate::checks::{Checks, Violation};
use crate::interpreter::{Fault, Interpreter, Scratch, Step};
use crate::ir::ids::RuleId;
use crate::ir::{Action, Buffer, Model, Operation, Process, Span, Transition, TransitionId, VariableId};
use crate::messages::{Kind, Message};
use crate::statements;
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
    pub fn text(&self, model: &Model, checks: &Checks, title: &str, states: States) -> String {
        let mut text = String::new();
        let mut line = |line: String| writeln!(text, "{line}").expect("a string can be written to");
        line(title.into());
        line(initial_line(model, &self.states[0], states));
        for (number, step) in self.steps.iter().enumerate() {
            let (from, to) = (&self.states[number], &self.states[number + 1]);
            for (at, part) in step_lines(model, *step, from, to, states).into_iter().enumerate() {
                line(if at == 0 { format!("  {}. {part}", number + 1) } else { format!("       {part}") });
            }
        }
        for (at, part) in self.attempt(model).into_iter().flat_map(|attempt| attempt.lines).enumerate() {
            line(if at == 0 { format!("  {}. {part}", self.states.len()) } else { format!("       {part}") });
        }
        for (at, sentence) in self.ending(model, checks).iter().enumerate() {
            line(format!("{}{}", if at == 0 { "There: " } else { "" }, escaping::line(sentence)));
        }
        text
    }

    /// The last state.
    fn last(&self) -> &[u32] {
        self.states.last().expect("a path has a state")
    }

    /// The violation in words, and for a deadlock the committed locations that cause it: a sentence each.
    pub fn ending(&self, model: &Model, checks: &Checks) -> Vec<String> {
        let blocked = committed(model, self.last()).filter(|_| self.violation == Violation::Deadlock);
        let blocked = blocked.map(|at| format!("{at} is committed and cannot move, so no other process may move"));
        std::iter::once(checks.describe(&self.violation, model, self.last())).chain(blocked).collect()
    }

    /// The step that has a fault behind the last state; `None` if the violation is none of a step.
    pub fn attempt(&self, model: &Model) -> Option<Attempt> {
        let Violation::Fault(fault) = &self.violation else { return None };
        // The fault of a net is one of its encoding.
        let id = fault.transition.filter(|_| model.net.is_none())?;
        let values = statements::operands(model, id, fault, self.last());
        let shown = list(values.iter().map(|(name, value)| format!("{} = {value}", escaping::line(name))));
        let lines = [format!("fails: {}", move_line(model, id, None))].into_iter();
        let lines = lines.chain(marked(model, fault.span)).chain(Some(shown)).filter(|line| !line.is_empty()).collect();
        Some(Attempt { id, lines, values })
    }

    pub fn json(&self, model: &Model, checks: &Checks, show: States) -> Value {
        let steps = self.steps.iter().enumerate();
        let steps = steps.map(|(number, step)| step_json(model, *step, &self.states[number], &self.states[number + 1], show));
        let attempt = self.attempt(model).map(|Attempt { id, values, .. }| {
            let values: Map<String, Value> = values.into_iter().map(|(name, value)| (name, json!(value))).collect();
            json!({ "move": transition_json(model, id), "values": values })
        });
        let text = checks.describe(&self.violation, model, self.last());
        json!({
            "model": model.source.name,
            "violation": { "kind": self.violation.kind(checks), "text": text },
            "length": self.steps.len(),
            "initial": state_json(model, &self.states[0]),
            "steps": steps.collect::<Vec<_>>(),
            "final": state_json(model, self.last()),
            "attempt": attempt,
        })
    }
}

/// A step that has a fault.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The transition whose guard or effect has the fault.
    pub id: TransitionId,
    /// The statement, the line of the source with the place marked, and the operands.
    pub lines: Vec<String>,
    /// Names and values of the operands.
    values: Vec<(String, i32)>,
}

/// The line of a span, and a line that marks the span. Empty if the model has no text.
fn marked(model: &Model, span: Span) -> Vec<String> {
    let (text, start) = (&model.source.text, span.start as usize);
    let (Some(before), Some(behind)) = (text.get(..start), text.get(start..)) else { return Vec::new() };
    let before = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
    let behind = behind.lines().next().unwrap_or("");
    let part = behind.get(..(span.end as usize).saturating_sub(start)).unwrap_or(behind);
    let shown = |text: &str| escaping::line(&text.replace('\t', " ")).into_owned();
    let [blank, width] = [before, part].map(|text| shown(text).chars().count());
    let number = span.line.to_string();
    let mark = format!("{} | {}{}", " ".repeat(number.len()), " ".repeat(blank), "^".repeat(width.max(1)));
    vec![format!("{number} | {}{}", shown(before), shown(behind)), mark]
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

/// The line of a path's first state.
pub fn initial_line(model: &Model, initial: &[u32], states: States) -> String {
    let text = if states == States::Whole { whole_state_text(model, initial) } else { state_text(model, initial) };
    format!("  0. initial state: {text}")
}

/// Parts of the states that a path shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum States {
    /// The values that a step changes.
    #[default]
    Changes,
    /// All values behind each step, too.
    Whole,
}

/// Lists a step: a line for each transition or, for a network or a net, for its label; one for its changes, if any; and one for
/// the whole state, if it is wanted. `None` for `step` means that no step is possible.
pub fn step_lines(model: &Model, step: Option<Step>, from: &[u32], to: &[u32], states: States) -> Vec<String> {
    let mut lines = match step {
        None => vec!["no step is possible: the run stays in this state".into()],
        Some(step) => moves(model, step, Message::of(model, step, from, to).as_ref()),
    };
    lines.push(changes_text(model, step, from, to));
    lines.retain(|line| !line.is_empty());
    if states == States::Whole {
        lines.push(format!("state: {}", whole_state_text(model, to)));
    }
    lines
}

/// The name of a step on one line, as paths show it: with the message between `from` and `to`, or with none.
pub fn step_name(model: &Model, step: Step, states: Option<[&[u32]; 2]>) -> String {
    let message = states.and_then(|[from, to]| Message::of(model, step, from, to));
    list(moves(model, step, message.as_ref()).into_iter())
}

/// The parts of a step: of a network or a net its label, else a line for each process that moves.
fn moves(model: &Model, step: Step, message: Option<&Message>) -> Vec<String> {
    let Step::Transition { id, receiver } = step else { return vec![describe_step(model, step)] };
    let receiver = receiver.map(|id| format!("with {}", move_line(model, id, message)));
    std::iter::once(move_line(model, id, message)).chain(receiver).collect()
}

/// A process's part of a step: its statement or, if the text has none, its locations; then the line and the message. For example
/// `Client: sync answer?x; (wait -> done, line 7, receives answer(4))`.
fn move_line(model: &Model, id: TransitionId, message: Option<&Message>) -> String {
    let transition = &model.transitions[id];
    let process = &model.processes[transition.process];
    let (from, to) = (&process.locations[transition.from].name, &process.locations[transition.to].name);
    let (statement, moved) = (statement(model, id), format!("{from} -> {to}"));
    let has_statement = !statement.is_empty();
    let line = (transition.span.line > 0).then(|| place_in_text(model, id));
    let message = message.and_then(|message| message_text(&transition.action, message));
    let notes = [Some(moved.clone()).filter(|_| has_statement && from != to), line, message];
    let notes = list(notes.into_iter().flatten());
    let notes = if notes.is_empty() { notes } else { format!(" ({notes})") };
    format!("{}: {}{notes}", escaping::line(&process.name), if has_statement { statement } else { moved })
}

/// `line 7`; with the column if another transition of the process there has the same text.
fn place_in_text(model: &Model, id: TransitionId) -> String {
    let of = &model.transitions[id];
    let text = model.source.piece(of.span);
    // Transitions are in the order of the text, so those of this line are beside this one.
    let is_near = |other: &&Transition| other.process == of.process && other.span.line == of.span.line;
    let (before, after) = (model.transitions[..id].iter().rev(), model.transitions[id + 1..].iter());
    let is_alike = |other: &Transition| other.from == of.from && other.to == of.to && model.source.piece(other.span) == text;
    let column = match before.take_while(is_near).chain(after.take_while(is_near)).any(is_alike) {
        true => format!(", column {}", of.span.column),
        false => String::new(),
    };
    format!("line {}{column}", of.span.line)
}

/// Text of what an action does with the message of its step.
fn message_text(action: &Action, message: &Message) -> Option<String> {
    let verb = match action {
        Action::Alone => return None,
        Action::Send { .. } | Action::Buffered { operation: Operation::Send, .. } => "sends",
        Action::Receive { .. } | Action::Buffered { operation: Operation::Receive, .. } => "receives",
        Action::Buffered { operation: Operation::Lose, .. } => return Some(format!("loses a message on {}", message.channel)),
    };
    Some(format!("{verb} {}", message.text()))
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

/// The variables that a step changes: `x: 0 -> 1, y: 255 -> 0 (wrapped from 256)`.
pub fn changes_text(model: &Model, step: Option<Step>, from: &[u32], to: &[u32]) -> String {
    let mut wrapped = step.map_or_else(Vec::new, |step| statements::wrapped(model, step, from));
    let mut parts = Vec::new();
    for (name, old, new) in changes(model, from, to) {
        let (own, others): (Vec<_>, Vec<_>) = wrapped.into_iter().partition(|wrapped| wrapped.name == name);
        wrapped = others;
        let mark: String = own.iter().map(|wrapped| format!(" (wrapped from {})", wrapped.value)).collect();
        parts.push(format!("{}: {} -> {}{mark}", escaping::line(&name), old.text(), new.text()));
    }
    let unchanged = wrapped.iter().map(|of| format!("{}: unchanged (wrapped from {})", escaping::line(&of.name), of.value));
    list(parts.into_iter().chain(unchanged))
}

/// The value of a variable, or the messages of a buffered channel, oldest first, which is shown as one variable.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown<'m> {
    Number(i32),
    /// Signals, if the language has any, and values.
    Messages(Vec<(Option<&'m str>, Vec<i32>)>),
}

impl Shown<'_> {
    /// `3`, or `[(1, 3), (2, 4)]`.
    fn text(&self) -> String {
        let message = |(signal, values): &(Option<&str>, Vec<i32>)| match (signal, &values[..]) {
            (Some(signal), []) => (*signal).to_string(),
            (Some(signal), values) => format!("{signal}({})", numbers(values)),
            (None, [value]) => value.to_string(),
            (None, values) => format!("({})", numbers(values)),
        };
        match self {
            Self::Number(number) => number.to_string(),
            Self::Messages(messages) => format!("[{}]", list(messages.iter().map(message))),
        }
    }

    /// A number, or a list of messages: each is a list of its signal, if it has one, and its values.
    fn json(&self) -> Value {
        let message = |(signal, values): &(Option<&str>, Vec<i32>)| -> Value {
            signal.iter().map(|signal| json!(signal)).chain(values.iter().map(|value| json!(value))).collect()
        };
        match self {
            Self::Number(number) => json!(number),
            Self::Messages(messages) => messages.iter().map(message).collect(),
        }
    }

    /// Whether a text of a state may leave it out.
    fn is_empty(&self) -> bool {
        match self {
            Self::Number(number) => *number == 0,
            Self::Messages(messages) => messages.is_empty(),
        }
    }
}

/// Names and values of everything that is part of a state, but the locations.
fn shown<'m>(model: &'m Model, state: &[u32]) -> Vec<(String, Shown<'m>)> {
    if let Some(net) = &model.net {
        let tokens = |place: usize| Shown::Number(net.tokens(&model.layout, state, place) as i32);
        return net.places.iter().enumerate().map(|(id, place)| (place.name.clone(), tokens(id))).collect();
    }
    let buffers: Vec<&Buffer> = model.buffers.iter().filter(|buffer| buffer.arrays().next().is_some()).collect();
    let of_messages: HashSet<VariableId> = buffers.iter().flat_map(|buffer| buffer.arrays()).collect();
    let variables = written(model).filter(|variable| !of_messages.contains(variable));
    let values = variables.flat_map(|variable| match buffers.iter().find(|buffer| buffer.length == variable) {
        Some(buffer) => {
            let messages = (0..buffer.waiting(model, state)).map(|place| buffer.message(model, state, place));
            vec![(buffer.name.clone(), Shown::Messages(messages.collect()))]
        }
        None => elements(model, state, variable).map(|(name, value)| (name, Shown::Number(value))).collect(),
    });
    values.collect()
}

pub fn step_json(model: &Model, step: Option<Step>, from: &[u32], to: &[u32], states: States) -> Value {
    let moves: Vec<Value> = step.into_iter().flat_map(|step| moves_json(model, step)).collect();
    let changes = changes(model, from, to).into_iter();
    let changes: Map<String, Value> = changes.map(|(name, old, new)| (name, json!([old.json(), new.json()]))).collect();
    let message = step.and_then(|step| Message::of(model, step, from, to));
    let wrapped = step.map_or_else(Vec::new, |step| statements::wrapped(model, step, from));
    let wrapped: Map<String, Value> = wrapped.into_iter().map(|of| (of.name, json!(of.value))).collect();
    let mut json = json!({ "moves": moves, "message": message.map(message_json), "changes": changes, "wrapped": wrapped });
    if states == States::Whole {
        json["state"] = state_json(model, to);
    }
    json
}

fn message_json(Message { channel, kind, signal, values }: Message) -> Value {
    let kind = match kind {
        Kind::Rendezvous => "rendezvous",
        Kind::Buffered { operation: Operation::Send, .. } => "sent",
        Kind::Buffered { operation: Operation::Receive, .. } => "received",
        Kind::Buffered { operation: Operation::Lose, .. } => "lost",
    };
    json!({ "channel": channel, "kind": kind, "signal": signal, "values": values })
}

/// The leading transition, then the receiver's.
fn transitions(leader: TransitionId, receiver: Option<TransitionId>) -> impl Iterator<Item = TransitionId> {
    std::iter::once(leader).chain(receiver)
}

/// Describes a step briefly, on one line: its transitions by their locations; for a network, the label and the components that
/// move.
pub fn describe_step(model: &Model, step: Step) -> String {
    match step {
        Step::Transition { id, receiver } => {
            transitions(id, receiver).map(|id| describe_transition(model, id)).collect::<Vec<_>>().join(", with ")
        }
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
    describe_at(model, id, &model.transitions[id].span.line.to_string())
}

/// Descriptions of all transitions, as [`describe_transition`]. Adds the column where several transitions would have the same
/// description.
pub fn describe_transitions(model: &Model) -> Vec<String> {
    let names: Vec<String> = (0..model.transitions.len()).map(|id| describe_transition(model, id)).collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *uses.entry(name).or_default() += 1);
    let described = names.iter().enumerate().map(|(id, name)| {
        let Span { line, column, .. } = model.transitions[id].span;
        if uses[name.as_str()] == 1 { name.clone() } else { describe_at(model, id, &format!("{line}, column {column}")) }
    });
    described.collect()
}

/// Describes a transition, with a text for its line.
fn describe_at(model: &Model, id: TransitionId, line: &str) -> String {
    let transition = &model.transitions[id];
    let process = &model.processes[transition.process];
    let (from, to) = (&process.locations[transition.from].name, &process.locations[transition.to].name);
    let on = match transition.action {
        Action::Alone | Action::Buffered { .. } => String::new(),
        Action::Send { channel, .. } => format!(", sends on {}", model.channels[channel].name),
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

/// All of a state: locations and variables. A buffered channel is the list of its messages.
pub fn state_json(model: &Model, state: &[u32]) -> Value {
    let locations: Map<String, Value> = locations(model, state).map(|(process, at)| (process.into(), json!(at))).collect();
    let variables: Map<String, Value> = shown(model, state).into_iter().map(|(name, value)| (name, value.json())).collect();
    json!({ "locations": locations, "variables": variables })
}

/// Source and target of the move of a property's automaton between two states, if it moves to another location.
pub fn automaton_move<'m>(model: &'m Model, from: &[u32], to: &[u32]) -> Option<(&'m str, &'m str)> {
    let process = model.property.as_ref()?.process;
    let name = |state| &*model.processes[process].locations[model.location(state, process)].name;
    Some((name(from), name(to))).filter(|(from, to)| from != to)
}

/// The location of each process, and the variables that are not 0.
pub fn state_text(model: &Model, state: &[u32]) -> String {
    list(state_parts(model, state).into_iter())
}

/// The parts of [`state_text`].
pub fn state_parts(model: &Model, state: &[u32]) -> Vec<String> {
    let parts: Vec<String> = parts(model, state, |value| !value.is_empty()).collect();
    if parts.is_empty() { vec!["all variables are 0".into()] } else { parts }
}

/// The location of each process, and all variables.
pub fn whole_state_text(model: &Model, state: &[u32]) -> String {
    list(whole_state_parts(model, state).into_iter())
}

/// The parts of [`whole_state_text`]: as many in every state of a model.
pub fn whole_state_parts(model: &Model, state: &[u32]) -> Vec<String> {
    parts(model, state, |_| true).collect()
}

/// Lines of the model's text where the transitions of a step begin.
pub fn source_lines(model: &Model, step: Step) -> Vec<usize> {
    let Step::Transition { id, receiver } = step else { return Vec::new() };
    transitions(id, receiver).map(|id| model.transitions[id].span.line as usize).filter(|line| *line > 0).collect()
}

fn parts<'m>(model: &'m Model, state: &'m [u32], is_wanted: impl Fn(&Shown) -> bool + 'm) -> impl Iterator<Item = String> + 'm {
    let locations = locations(model, state).map(|(process, at)| format!("{process}.{at}"));
    let variables = shown(model, state).into_iter().filter(move |(_, value)| is_wanted(value));
    locations.chain(variables.map(|(name, value)| format!("{} = {}", escaping::line(&name), value.text())))
}

/// Variables that differ between two states.
fn changes<'m>(model: &'m Model, from: &[u32], to: &[u32]) -> Vec<(String, Shown<'m>, Shown<'m>)> {
    let pairs = shown(model, from).into_iter().zip(shown(model, to));
    pairs.filter(|((_, old), (_, new))| old != new).map(|((name, old), (_, new))| (name, old, new)).collect()
}

fn numbers(values: &[i32]) -> String {
    list(values.iter().map(i32::to_string))
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
