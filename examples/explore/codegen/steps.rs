//! The steps of one process: a function with a case for each choice in each location.

use super::super::ir::{Action, Assignment, Model, ProcessId, Transition, TransitionId};
use super::expression::{Scope, can_fault};
use super::names::Names;
use super::range::{Range, range};
use std::fmt::Write;

/// Something that a process can try from a location.
#[derive(Clone, Copy)]
enum Choice {
    Alone(TransitionId),
    Pair {
        sender: TransitionId,
        receiver: TransitionId,
    },
    /// Nobody is to be sent to or received from here, but evaluating the guard may be a fault, which counts.
    Guard(TransitionId),
}

/// The text of `steps_of_...`, and how many choices there are at most in a location.
pub fn of_process(model: &Model, names: &Names, process: ProcessId) -> (String, usize) {
    let locations = model.processes[process].locations.len();
    let choices: Vec<Vec<Choice>> = (0..locations).map(|location| choices(model, process, location)).collect();
    let most = choices.iter().map(Vec::len).max().unwrap_or(0);
    if most == 0 {
        return (String::new(), 0);
    }
    let mut text = String::from("template <class State>\n");
    let name = names.process(process);
    writeln!(text, "EXPLORE_FN bool steps_of_{name}(u32 choice, const State& from, State& to, Notes& notes)\n{{").unwrap();
    let case = if locations == 1 { "choice".into() } else { format!("at_{name}(from) * {most} + choice") };
    writeln!(text, "    switch ({case}) {{").unwrap();
    for (location, choices) in choices.iter().enumerate() {
        for (number, choice) in choices.iter().enumerate() {
            Writer { model, names, text: &mut text }.case(location * most + number, *choice);
        }
    }
    text.push_str("    default: return false;\n    }\n}\n\n");
    (text, most)
}

fn choices(model: &Model, process: ProcessId, location: usize) -> Vec<Choice> {
    let here = model.processes[process].transitions.clone().filter(|id| model.transitions[*id].from == location);
    here.flat_map(|id| {
        let transition = &model.transitions[id];
        let guard_only = transition.guard.as_ref().filter(|guard| can_fault(model, guard)).map(|_| Choice::Guard(id));
        match &transition.action {
            Action::Alone => vec![Choice::Alone(id)],
            Action::Receive { .. } => guard_only.into_iter().collect(),
            Action::Send { channel, .. } => {
                let partners = model.channels[*channel].receivers.iter();
                let partners = partners.filter(|receiver| model.transitions[**receiver].process != process);
                let pairs: Vec<_> = partners.map(|receiver| Choice::Pair { sender: id, receiver: *receiver }).collect();
                if pairs.is_empty() { guard_only.into_iter().collect() } else { pairs }
            }
        }
    })
    .collect()
}

struct Writer<'m> {
    model: &'m Model,
    names: &'m Names,
    text: &'m mut String,
}

impl Writer<'_> {
    fn case(&mut self, number: usize, choice: Choice) {
        let model = self.model;
        let committed = |id: TransitionId| {
            let Transition { process, from, .. } = model.transitions[id];
            model.processes[process].locations[from].committed
        };
        let (transitions, is_committed) = match choice {
            Choice::Alone(id) | Choice::Guard(id) => (self.describe(id), committed(id)),
            Choice::Pair { sender, receiver } => {
                (format!("{} with {}", self.describe(sender), self.describe(receiver)), committed(sender) || committed(receiver))
            }
        };
        writeln!(self.text, "    // {transitions}\n    case {number}:").unwrap();
        let always = model.has_committed_locations() && !is_committed;
        match choice {
            Choice::Guard(id) => {
                let guard = self.model.transitions[id].guard.as_ref().expect("it may be a fault");
                let text = self.scope(id, "from").text(guard);
                self.line(&format!("(void)({text});"));
                self.line("return false;");
            }
            Choice::Alone(id) => {
                self.guard(id);
                self.unless_committed(always);
                self.step_of(id);
                self.line("return true;");
            }
            Choice::Pair { sender, receiver } => {
                self.guard(sender);
                let Transition { process, from, .. } = self.model.transitions[receiver];
                if self.model.processes[process].locations.len() > 1 {
                    let line = format!("if (at_{}(from) != {from}) return false;", self.names.process(process));
                    self.line(&line);
                }
                self.guard(receiver);
                self.unless_committed(always);
                self.hand_over(sender, receiver);
                self.step_of(receiver);
                self.step_of(sender);
                self.line("return true;");
            }
        }
    }

    fn describe(&self, id: TransitionId) -> String {
        let Transition { process, from, to, span, action, .. } = &self.model.transitions[id];
        let process = &self.model.processes[*process];
        let channel = match action {
            Action::Alone => String::new(),
            Action::Send { channel, .. } => format!(", {}!", self.model.channels[*channel].name),
            Action::Receive { channel, .. } => format!(", {}?", self.model.channels[*channel].name),
        };
        format!(
            "{}: {} -> {}, line {}{channel}",
            process.name, process.locations[*from].name, process.locations[*to].name, span.line
        )
    }

    fn scope(&self, transition: TransitionId, state: &'static str) -> Scope<'_> {
        Scope { model: self.model, names: self.names, transition, state }
    }

    fn line(&mut self, text: &str) {
        writeln!(self.text, "        {text}").unwrap();
    }

    fn guard(&mut self, id: TransitionId) {
        if let Some(guard) = &self.model.transitions[id].guard {
            let line = format!("if (!{}) return false;", self.scope(id, "from").text(guard));
            self.line(&line);
        }
    }

    fn unless_committed(&mut self, check: bool) {
        if check {
            self.line("if (any_committed(from)) return false;");
        }
    }

    /// Values are all evaluated before the first is stored.
    fn hand_over(&mut self, sender: TransitionId, receiver: TransitionId) {
        let model = self.model;
        let (Action::Send { channel, values }, Action::Receive { targets, .. }) =
            (&model.transitions[sender].action, &model.transitions[receiver].action)
        else {
            unreachable!("a sender and a receiver")
        };
        if values.is_empty() {
            return;
        }
        self.line("{");
        let mut ranges = Vec::new();
        for (number, (value, field)) in values.iter().zip(&model.channels[*channel].fields).enumerate() {
            let mut text = self.scope(sender, "from").text(value);
            let mut values = range(model, value);
            if let Some(ty) = field
                && !values.is_in(Range::of_type(*ty))
            {
                text = format!("wrap_noted<{}, {}>({text}, notes)", ty.bits, ty.signed);
                values = Range::of_type(*ty);
            }
            ranges.push(values);
            self.line(&format!("    const i32 value_{number} = {text};"));
        }
        for (number, (target, values)) in targets.iter().zip(ranges).enumerate() {
            let store = self.scope(receiver, "to").store(target, &format!("value_{number}"), values);
            self.line(&format!("    {store}"));
        }
        self.line("}");
    }

    /// The process moves, and the effects follow.
    fn step_of(&mut self, id: TransitionId) {
        let model = self.model;
        let Transition { process, from, to, effects, .. } = &model.transitions[id];
        if from != to {
            let line = format!("move_{}(to, {to});", self.names.process(*process));
            self.line(&line);
        }
        for Assignment { target, value } in effects {
            let scope = self.scope(id, "to");
            let store = scope.store(target, &scope.text(value), range(model, value));
            self.line(&store);
        }
    }
}
