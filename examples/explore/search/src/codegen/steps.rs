//! The steps of one process: a function with a case for each choice in each location.

use super::expression::{Scope, can_fault};
use super::names::Names;
use super::pairs;
use super::parts::Switch;
use super::shared::Shared;
use anyhow::{Result, ensure};
use std::fmt::Write;
use warpset_model::interpreter::Step;
use warpset_model::ir::model::range;
use warpset_model::ir::{Action, Assignment, Model, Operation, ProcessId, Transition, TransitionId};
use warpset_model::reduction::actions::Actions;

/// Number of pairs from which on a process has its pairs in a table instead of cases.
const MANY_PAIRS: usize = 32;

/// Maximum number of elements of a table of pairs, which has an element for each choice in each location, even if the choice is
/// not a pair.
const MOST_DATA: usize = 1 << 20;

/// Maximum number of choices of a process in all its locations together: the numbers of choices are signed and have 32 bits.
const MOST_NUMBERS: usize = i32::MAX as usize;

/// Maximum number of pairs of senders and receivers for which text is generated.
const MOST_PAIRS: usize = 1 << 20;

/// A sender and a receiver that may meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub sender: TransitionId,
    pub receiver: TransitionId,
}

/// Something that a process can try from a location.
#[derive(Clone, Copy)]
enum Choice {
    Alone(TransitionId),
    Pair(Pair),
    /// A send or receive without a partner, whose guard must be evaluated because it may cause a fault.
    Guard(TransitionId),
}

/// Returns an error with the numbers if a model is too large to generate code for its steps.
pub fn ensure_fits(model: &Model) -> Result<()> {
    let pairs: usize = model.channels.iter().map(|channel| channel.senders.len() * channel.receivers.len()).sum();
    ensure!(
        pairs <= MOST_PAIRS,
        "not compiled: the model has {pairs} pairs of senders and receivers, but at most {MOST_PAIRS} are possible"
    );
    for process in &model.processes {
        let mut choices = vec![0; process.locations.len()];
        for transition in &model.transitions[process.transitions.clone()] {
            choices[transition.from] += match &transition.action {
                Action::Send { channel, .. } => model.channels[*channel].receivers.len().max(1),
                _ => 1,
            };
        }
        let (most, locations) = (choices.iter().max().copied().unwrap_or(0), process.locations.len());
        ensure!(
            most * locations <= MOST_NUMBERS,
            "not compiled: process {} has {locations} states with up to {most} steps each, which is too many",
            process.name
        );
    }
    Ok(())
}

/// Generates `steps_of_...`. Returns its text, and the maximum number of choices of a location. Adds the pairs to `pairs`.
pub fn of_process(context: Context<'_>, process: ProcessId, pairs: &mut Vec<Pair>) -> (String, usize) {
    let Context { model, names, .. } = context;
    let locations = model.processes[process].locations.len();
    let choices: Vec<Vec<Choice>> = (0..locations).map(|location| choices(model, process, location)).collect();
    let most = choices.iter().map(Vec::len).max().unwrap_or(0);
    if most == 0 {
        return (String::new(), 0);
    }
    let mut text = String::new();
    let name = names.process(process);
    let pairs_here = choices.iter().flatten().filter(|choice| matches!(choice, Choice::Pair(_))).count();
    let has_data = pairs_here >= MANY_PAIRS && locations * most <= MOST_DATA;
    if has_data {
        text.push_str(&pairs_of(context, process, &choices, most, pairs));
    }
    let case = if locations == 1 { "choice".into() } else { format!("at_{name}(from) * {most} + choice") };
    let begin = if has_data {
        format!("    const u32 pair = pairs_of_{name}[{case}];\n    if (pair >= first_pair) return pair;\n")
    } else {
        String::new()
    };
    let all = (0..locations).flat_map(|location| (0..choices[location].len()).map(move |number| location * most + number));
    let choice = |number: usize| choices[number / most][number % most];
    let numbers: Vec<usize> = all.filter(|number| !has_data || !matches!(choice(*number), Choice::Pair(_))).collect();
    let function = Switch {
        result: "u32",
        name: &format!("steps_of_{name}"),
        parameters: "u32 choice, const State& from, State& to, Notes& notes",
        arguments: "choice, from, to, notes",
        number: &case,
        begin: &begin,
        end: "    return no_step;\n",
    };
    text += &function.text(&numbers, |numbers| {
        let mut text = String::new();
        numbers.iter().for_each(|number| Writer { context, text: &mut text }.case(*number, choice(*number), pairs));
        text
    });
    (text, most)
}

/// The action of each choice in a location of a process; 0 where there is none.
pub fn actions_of(model: &Model, process: ProcessId, location: usize, actions: &Actions) -> Vec<u32> {
    let action = |choice: &Choice| match *choice {
        Choice::Alone(id) => actions.of_step(Step::Transition { id, receiver: None }) as u32,
        Choice::Pair(Pair { sender, receiver }) => {
            actions.of_step(Step::Transition { id: sender, receiver: Some(receiver) }) as u32
        }
        Choice::Guard(_) => 0,
    };
    choices(model, process, location).iter().map(action).collect()
}

/// Maximum number of choices for which [`all_at_once`] generates text. The choices share a function, so the more of them there
/// are, the longer compiling takes for each.
const MOST_AT_ONCE: usize = 1000;

/// The function `every_step`, which gives all steps of the processes in a state, in the order of units and choices. Each process
/// has one switch over its location, instead of one for each choice. `None` if that is too much text for one function.
pub fn all_at_once(context: Context<'_>) -> Option<String> {
    let Context { model, names, .. } = context;
    let of_process = |process: ProcessId| -> Vec<Vec<Choice>> {
        (0..model.processes[process].locations.len()).map(|location| choices(model, process, location)).collect()
    };
    let all: Vec<_> = (0..model.processes.len()).map(of_process).collect();
    if all.iter().flatten().map(Vec::len).sum::<usize>() > MOST_AT_ONCE {
        return None;
    }
    let mut text = String::from(
        "// Gives the successor by each step of the processes.\ntemplate <class State, class Give>\nEXPLORE_FN void \
         every_step(const State& from, Notes& notes, Give& give)\n{\n    (void)from, (void)notes, (void)give;\n",
    );
    for (process, locations) in all.iter().enumerate().filter(|(_, locations)| locations.iter().any(|here| !here.is_empty())) {
        writeln!(text, "    switch (at_{}(from)) {{", names.process(process)).unwrap();
        for (location, here) in locations.iter().enumerate().filter(|(_, here)| !here.is_empty()) {
            writeln!(text, "    case {location}:").unwrap();
            // Pairs of one sender share its guard.
            for group in here.chunk_by(|one, other| sender(one).is_some() && sender(one) == sender(other)) {
                let statements = match group[0] {
                    Choice::Guard(id) => format!("(void)({});", context.guard(id).expect("it may be a fault")),
                    Choice::Alone(id) => context.alone_at_once(id),
                    Choice::Pair(Pair { sender, .. }) => {
                        let pairs: Vec<String> = group.iter().map(|choice| context.pair_at_once(*choice)).collect();
                        format!("if ({}) {{\n{}        }}", context.guard(sender).unwrap_or("true".into()), pairs.concat())
                    }
                };
                writeln!(text, "        {statements}").unwrap();
            }
            text.push_str("        break;\n");
        }
        text.push_str("    }\n");
    }
    Some(text + "}\n\n")
}

fn sender(choice: &Choice) -> Option<TransitionId> {
    match choice {
        Choice::Pair(pair) => Some(pair.sender),
        _ => None,
    }
}

/// The pairs of a process as data, by location and choice: data costs no time to compile.
fn pairs_of(context: Context<'_>, process: ProcessId, choices: &[Vec<Choice>], most: usize, pairs: &mut Vec<Pair>) -> String {
    let mut text = format!("EXPLORE_DATA u32 pairs_of_{}[] = {{\n", context.names.process(process));
    for choices in choices {
        for number in 0..most {
            match choices.get(number) {
                Some(Choice::Pair(pair)) => {
                    let what = describe_pair(context.model, *pair);
                    writeln!(text, "    first_pair + {},  // {what}", pairs.len()).unwrap();
                    pairs.push(*pair);
                }
                _ => text.push_str("    no_step,\n"),
            }
        }
    }
    text + "};\n\n"
}

fn choices(model: &Model, process: ProcessId, location: usize) -> Vec<Choice> {
    let here = model.processes[process].transitions.clone().filter(|id| model.transitions[*id].from == location);
    here.flat_map(|id| {
        let transition = &model.transitions[id];
        let guard_only = transition.guard.as_ref().filter(|guard| can_fault(model, guard)).map(|_| Choice::Guard(id));
        match &transition.action {
            Action::Alone | Action::Buffered { .. } => vec![Choice::Alone(id)],
            Action::Receive { .. } => guard_only.into_iter().collect(),
            Action::Send { channel, .. } => {
                let partners = model.channels[*channel].receivers.iter();
                let partners = partners.filter(|receiver| model.transitions[**receiver].process != process);
                let pairs: Vec<_> = partners.map(|receiver| Choice::Pair(Pair { sender: id, receiver: *receiver })).collect();
                if pairs.is_empty() { guard_only.into_iter().collect() } else { pairs }
            }
        }
    })
    .collect()
}

/// Describes a transition for readers of the text.
pub fn describe(model: &Model, id: TransitionId) -> String {
    let Transition { process, from, to, span, action, .. } = &model.transitions[id];
    let process = &model.processes[*process];
    let channel = match action {
        Action::Alone => String::new(),
        Action::Send { channel, .. } => format!(", {}!", model.channels[*channel].name),
        Action::Receive { channel, .. } => format!(", {}?", model.channels[*channel].name),
        Action::Buffered { buffer, operation } => {
            let mark = if *operation == Operation::Receive { '?' } else { '!' };
            format!(", {}{mark}", model.buffers[*buffer].name)
        }
    };
    format!("{}: {} -> {}, line {}{channel}", process.name, process.locations[*from].name, process.locations[*to].name, span.line)
}

fn describe_pair(model: &Model, pair: Pair) -> String {
    format!("{} with {}", describe(model, pair.sender), describe(model, pair.receiver))
}

/// A statement that moves the transition's process.
fn moving(model: &Model, names: &Names, id: TransitionId) -> Option<String> {
    let Transition { process, from, to, .. } = &model.transitions[id];
    (from != to).then(|| format!("move_{}(to, {to});", names.process(*process)))
}

/// Statements of the transition's effects.
pub fn effects(model: &Model, names: &Names, id: TransitionId) -> Vec<String> {
    let effects = model.transitions[id].effects.iter().map(|Assignment { target, value }| {
        let scope = Scope { model, names, transition: id, state: "to", shared: None };
        scope.store(target, &scope.text(value), range(model, value))
    });
    effects.collect()
}

/// Inputs shared by all steps.
#[derive(Clone, Copy)]
pub struct Context<'m> {
    pub model: &'m Model,
    pub names: &'m Names,
    pub shared: &'m Shared<'m>,
}

impl Context<'_> {
    /// The guard of a transition as a C++ expression.
    pub fn guard(self, id: TransitionId) -> Option<String> {
        let Self { model, names, shared } = self;
        let scope = Scope { model, names, transition: id, state: "from", shared: Some(shared) };
        model.transitions[id].guard.as_ref().map(|guard| scope.text(guard))
    }

    /// Condition that no committed location forbids the step by these transitions.
    fn is_allowed(self, ids: &[TransitionId]) -> Option<&'static str> {
        let model = self.model;
        let is_committed = |id: &TransitionId| {
            let Transition { process, from, .. } = &model.transitions[*id];
            model.processes[*process].locations[*from].committed
        };
        (model.has_committed_locations() && !ids.iter().any(is_committed)).then_some("!any_committed(from)")
    }

    /// Statement of a step that a process takes alone, for [`all_at_once`].
    fn alone_at_once(self, id: TransitionId) -> String {
        let Self { model, names, .. } = self;
        let tests: Vec<String> = self.guard(id).into_iter().chain(self.is_allowed(&[id]).map(String::from)).collect();
        let test = if tests.is_empty() { "true".into() } else { tests.join(" && ") };
        let statements: Vec<String> = moving(model, names, id).into_iter().chain(effects(model, names, id)).collect();
        format!("if ({test}) {{ State& to = give.row(); {} give.done(); }}  // {}", statements.join(" "), describe(model, id))
    }

    /// Statement of the step of a pair whose sender may send, for [`all_at_once`].
    fn pair_at_once(self, choice: Choice) -> String {
        let Self { model, names, .. } = self;
        let Choice::Pair(pair) = choice else { unreachable!("a group of pairs has nothing else") };
        let Pair { sender, receiver } = pair;
        let Transition { process, from, .. } = &model.transitions[receiver];
        let mut tests = vec![format!("at_{}(from) == {from}", names.process(*process))];
        tests.extend(self.guard(receiver));
        tests.extend(self.is_allowed(&[sender, receiver]).map(String::from));
        let fields = match &model.transitions[sender].action {
            Action::Send { values, .. } => values.len().max(1),
            _ => 1,
        };
        let mut statements = vec![format!("i32 values[{fields}] = {{}}; (void)values;")];
        statements.extend(pairs::send(model, names, sender));
        statements.extend(pairs::receive(model, names, receiver));
        for id in [receiver, sender] {
            statements.extend(moving(model, names, id));
            statements.extend(effects(model, names, id));
        }
        let (test, statements) = (tests.join(" && "), statements.join(" "));
        let what = describe_pair(model, pair);
        format!("            if ({test}) {{ State& to = give.row(); {statements} give.done(); }}  // {what}\n")
    }
}

struct Writer<'m> {
    context: Context<'m>,
    text: &'m mut String,
}

impl Writer<'_> {
    fn case(&mut self, number: usize, choice: Choice, pairs: &mut Vec<Pair>) {
        let Context { model, names, .. } = self.context;
        match choice {
            Choice::Guard(id) => {
                self.open(number, &describe(model, id));
                let guard = self.context.guard(id).expect("it may be a fault");
                self.line(&format!("(void)({guard});"));
                self.line("return no_step;");
            }
            Choice::Alone(id) => {
                self.open(number, &describe(model, id));
                if let Some(guard) = self.context.guard(id) {
                    self.line(&format!("if (!{guard}) return no_step;"));
                }
                let Transition { process, from, .. } = model.transitions[id];
                if model.has_committed_locations() && !model.processes[process].locations[from].committed {
                    self.line("if (any_committed(from)) return no_step;");
                }
                if let Some(statement) = moving(model, names, id) {
                    self.line(&statement);
                }
                for statement in effects(model, names, id) {
                    self.line(&statement);
                }
                self.line("return a_step;");
            }
            Choice::Pair(pair) => {
                self.open(number, &describe_pair(model, pair));
                self.line(&format!("return first_pair + {};", pairs.len()));
                pairs.push(pair);
            }
        }
    }

    fn open(&mut self, number: usize, what: &str) {
        writeln!(self.text, "    // {what}\n    case {number}:").unwrap();
    }

    fn line(&mut self, text: &str) {
        writeln!(self.text, "        {text}").unwrap();
    }
}
