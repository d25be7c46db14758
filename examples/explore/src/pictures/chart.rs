//! Message charts of a path: a lane for each process or component, a row for each step, arrows for messages.
//!
//! A rendezvous is an arrow within a row. A message through a buffered channel is an arrow from the row that sends it to the row
//! that receives it; channels are queues, so the n-th message received is the n-th one sent. [`svg`](super::svg) draws it.

use super::Run;
use std::collections::VecDeque;
use std::fmt::Write;
use warpset_model::interpreter::Step;
use warpset_model::ir::{Model, Operation, TransitionId};
use warpset_model::messages::{Kind, Message};
use warpset_model::trace::{self, States, changes_text, state_text, whole_state_text};
use warpset_support::escaping;

/// A chart, independent of its form.
pub struct Chart {
    /// Name of the model.
    pub model: String,
    /// Names of all processes and components, but for the automaton of a property.
    pub lanes: Vec<String>,
    pub initial: String,
    pub rows: Vec<Row>,
    /// Messages through buffers, by the rows of sending and receiving.
    pub arrows: Vec<Arrow>,
    /// The row behind which the loop begins: the number of its first state.
    pub begins: Option<usize>,
    /// The violation in words, a sentence each.
    pub ending: Vec<String>,
}

#[derive(Default)]
pub struct Row {
    /// Lanes that move, each with its text. The first one leads.
    pub moves: Vec<(usize, String)>,
    /// The message of a rendezvous with its values, or the label of a network's step.
    pub label: Option<String>,
    /// Whether the label is a message from the first lane to the second.
    pub is_message: bool,
    /// Statements of the lanes that move, with their lines in the source.
    pub statements: Vec<String>,
    pub changes: String,
    /// The whole state behind the step, if it is wanted; else empty.
    pub state: String,
}

pub struct Arrow {
    /// The channel and the values: `q(1)`.
    pub message: String,
    /// Lane and row.
    pub sent: (usize, usize),
    pub received: Option<(usize, usize)>,
    /// If a loop sends it and receives it later: how many rounds later, and the row.
    pub later: Option<(usize, usize)>,
}

impl Arrow {
    /// Names the step that receives it.
    pub fn fate(&self) -> String {
        match (self.received, self.later) {
            (Some((_, row)), _) => format!("received in step {}", row + 1),
            (None, Some((1, row))) => format!("received in step {} of the next round", row + 1),
            (None, Some((rounds, row))) => format!("received in step {}, {rounds} rounds later", row + 1),
            (None, None) => "not received".into(),
        }
    }
}

impl Chart {
    pub fn new(model: &Model, run: &Run, ending: &[String], states: States) -> Self {
        let components = model.network.iter().flat_map(|network| &network.components);
        let processes = model.processes.len() - usize::from(model.property.is_some());
        let names = model.processes[..processes].iter().map(|process| process.name.clone());
        let names: Vec<String> =
            names.chain(components.map(|component| model.variables[component.variable].name.clone())).collect();
        let (mut rows, mut arrows) = (Vec::new(), Vec::new());
        // By buffered channel, the arrows of its waiting messages, oldest first.
        let mut waiting = vec![VecDeque::<usize>::new(); model.buffers.len()];
        // Operations of the run on buffers: row, buffer, operation.
        let mut of_loop = Vec::new();
        for (number, step) in run.steps.iter().enumerate() {
            let (from, to) = (&run.states[number], &run.states[number + 1]);
            let mut row = Row { changes: changes_text(model, *step, from, to), ..Row::default() };
            match step {
                None => row.label = Some("no step is possible: the run stays in this state".into()),
                Some(Step::Transition { id, receiver }) => {
                    let ids: Vec<TransitionId> = std::iter::once(*id).chain(*receiver).collect();
                    row.moves = ids.iter().map(|id| (model.transitions[*id].process, moved(model, *id))).collect();
                    row.statements = ids.iter().filter_map(|id| statement(model, *id, ids.len() > 1)).collect();
                    let place = (model.transitions[*id].process, number);
                    match Message::of(model, Step::Transition { id: *id, receiver: *receiver }, from, to) {
                        None => {}
                        Some(message) => match message.kind {
                            Kind::Rendezvous => (row.label, row.is_message) = (Some(message.text()), true),
                            Kind::Buffered { buffer, operation: Operation::Send } => {
                                waiting[buffer].push_back(arrows.len());
                                arrows.push(Arrow { message: message.text(), sent: place, received: None, later: None });
                                of_loop.push((number, buffer, Operation::Send));
                            }
                            Kind::Buffered { buffer, operation: Operation::Receive } => {
                                if let Some(arrow) = waiting[buffer].pop_front() {
                                    arrows[arrow].received = Some(place);
                                }
                                of_loop.push((number, buffer, Operation::Receive));
                            }
                            // A lost message is in no buffer.
                            Kind::Buffered { operation: Operation::Lose, .. } => {}
                        },
                    }
                }
                Some(Step::Firing(id)) => row.label = Some(escaping::line(model.firing_name(*id)).into()),
                Some(Step::Rule(rule)) => {
                    let network = model.network.as_ref().expect("only networks have rules");
                    let state =
                        |component: usize, state: &[u32]| network.state_of(&network.components[component], &model.layout, state);
                    let moves =
                        network.movers(*rule).map(|id| (processes + id, format!("{} -> {}", state(id, from), state(id, to))));
                    row.moves = moves.collect();
                    row.label = Some(escaping::line(model.rule_label(*rule)).into());
                    row.changes.clear();
                }
            }
            if states == States::Whole {
                row.state = format!("state: {}", whole_state_text(model, to));
            }
            rows.push(row);
        }
        if let Some(attempt) = &run.attempt {
            rows.push(Row {
                moves: vec![(model.transitions[attempt.id].process, moved(model, attempt.id))],
                statements: statement(model, attempt.id, false).into_iter().collect(),
                changes: "this step has a fault".into(),
                ..Row::default()
            });
        }
        of_loop.retain(|(row, ..)| run.begins.is_some_and(|begins| begins <= *row));
        receive_later(&mut arrows, waiting, &of_loop);
        let text_of = if states == States::Whole { whole_state_text } else { state_text };
        let initial = text_of(model, &run.states[0]);
        let ending = ending.iter().map(|sentence| escaping::line(sentence).into()).collect();
        let model = escaping::line(&model.source.name).into();
        Self { model, lanes: names, initial, rows, arrows, begins: run.begins, ending }
    }

    /// The chart in characters.
    pub fn text(&self) -> String {
        let texts = self.rows.iter().flat_map(|row| &row.moves).map(|(_, text)| text).chain(&self.lanes);
        let width = texts.map(|text| text.chars().count()).max().unwrap_or(0).max(8) + 4;
        let mut text = String::new();
        let mut line = |number: &str, cells: &str, more: &str| {
            let more = if more.is_empty() { String::new() } else { format!("  {more}") };
            writeln!(text, "{}", format!("{number:>4}  {cells}{more}").trim_end()).expect("a string can be written to");
        };
        let cells =
            |of: &dyn Fn(usize) -> String| (0..self.lanes.len()).map(|lane| centred(&of(lane), width)).collect::<String>();
        let idle = cells(&|_| "|".into());
        line("", &format!("model {}", self.model), "");
        line("", &cells(&|lane| self.lanes[lane].clone()), "");
        line("0", &idle, &self.initial);
        for (number, row) in self.rows.iter().enumerate() {
            if self.begins == Some(number) {
                line("", &"=".repeat(width * self.lanes.len()), "the loop begins, and is repeated forever");
            }
            let of_lane =
                |lane: usize| row.moves.iter().find(|(other, _)| *other == lane).map_or("|".into(), |(_, text)| text.clone());
            // Semicolons separate the texts, so a statement loses its own at the end.
            let mut more: Vec<String> = row.statements.iter().map(|text| text.trim_end_matches(';').into()).collect();
            more.push(row.changes.clone());
            for arrow in &self.arrows {
                let Arrow { message, sent, received, .. } = arrow;
                if sent.1 == number {
                    more.push(format!("sends {message}, {}", arrow.fate()));
                }
                if received.is_some_and(|(_, row)| row == number) {
                    more.push(format!("receives {message}, sent in step {}", sent.1 + 1));
                }
            }
            more.push(row.state.clone());
            more.retain(|text| !text.is_empty());
            if let Some(label) = &row.label {
                let lanes: Vec<usize> = row.moves.iter().map(|(lane, _)| *lane).collect();
                line(
                    "",
                    &arrow(label, &lanes, row.is_message, width, self.lanes.len()),
                    if lanes.is_empty() { label } else { "" },
                );
            }
            line(&(number + 1).to_string(), &cells(&of_lane), &more.join("; "));
        }
        if let Some(begins) = self.begins {
            line(
                "",
                &"=".repeat(width * self.lanes.len()),
                &format!("the loop ends: this is the state after step {begins} again"),
            );
        }
        text + &format!("There: {}\n", self.ending.join("\n"))
    }
}

/// Finds where the messages are received that wait at the end of a loop. `waiting`: their arrows by buffer, oldest first.
/// `of_loop`: the loop's operations on buffers, by rows.
fn receive_later(arrows: &mut [Arrow], mut waiting: Vec<VecDeque<usize>>, of_loop: &[(usize, usize, Operation)]) {
    /// Stands for a message that a later round sends.
    const OF_LATER_ROUND: usize = usize::MAX;
    let rounds = if of_loop.is_empty() { 0 } else { waiting.iter().map(VecDeque::len).max().unwrap_or(0) };
    for round in 1..=rounds {
        for (row, buffer, operation) in of_loop {
            if *operation == Operation::Send {
                waiting[*buffer].push_back(OF_LATER_ROUND);
            } else if let Some(arrow) = waiting[*buffer].pop_front().filter(|arrow| *arrow != OF_LATER_ROUND) {
                arrows[arrow].later = Some((round, *row));
            }
        }
    }
}

/// The statement of a transition, with its line in the source. `is_named`: with the process, because another one moves, too.
fn statement(model: &Model, id: TransitionId, is_named: bool) -> Option<String> {
    let transition = &model.transitions[id];
    if transition.span.line == 0 {
        return None;
    }
    let name = if is_named { format!("{}, ", model.processes[transition.process].name) } else { String::new() };
    let text = format!("{}line {}: {}", escaping::line(&name), transition.span.line, trace::statement(model, id));
    Some(text.trim_end_matches([':', ' ']).into())
}

fn moved(model: &Model, id: TransitionId) -> String {
    let transition = &model.transitions[id];
    let name = |location: usize| &*model.processes[transition.process].locations[location].name;
    format!("{} -> {}", name(transition.from), name(transition.to))
}

fn centred(text: &str, width: usize) -> String {
    format!("{text:^width$}")
}

/// A row with a line between the lanes that step together: an arrow if it is a message.
fn arrow(label: &str, lanes: &[usize], is_message: bool, width: usize, count: usize) -> String {
    let mut cells: Vec<char> = (0..count).flat_map(|_| centred("|", width).chars().collect::<Vec<_>>()).collect();
    let place = |lane: usize| lane * width + (width - 1) / 2;
    let (Some(first), Some(last)) = (lanes.iter().min(), lanes.iter().max()) else { return cells.into_iter().collect() };
    let (from, to) = (place(*first) + 1, place(*last));
    cells[from.min(to)..to].fill('-');
    if is_message && first < last {
        if lanes[0] < lanes[1] {
            cells[to - 1] = '>';
        } else {
            cells[from] = '<';
        }
    }
    let label: Vec<char> = format!(" {label} ").chars().collect();
    let start = if first < last { (from + to).saturating_sub(label.len()) / 2 } else { from };
    for (at, letter) in label.into_iter().enumerate() {
        match cells.get_mut(start + at) {
            Some(cell) => *cell = letter,
            None => cells.push(letter),
        }
    }
    cells.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_model::dve::Dve;
    use warpset_model::interpreter::{Interpreter, Scratch};
    use warpset_model::ir::Source;

    /// A chart of the first `count` steps, each the first possible one. `begins`: the state in which a loop begins.
    fn chart(text: &str, count: usize, begins: Option<usize>) -> Chart {
        let dve = Dve::read(Source { name: "test".into(), text: text.into() }).unwrap_or_else(|error| panic!("{error}"));
        let interpreter = Interpreter::new(&dve.model);
        let (mut states, mut steps) = (vec![dve.model.initial_state()], Vec::new());
        for _ in 0..count {
            let mut next = None;
            let visit = |step, to: &[u32]| _ = next.get_or_insert((step, to.to_vec()));
            interpreter.steps(&states[states.len() - 1], &mut Scratch::default(), visit).unwrap();
            let (step, to) = next.expect("a step is possible");
            steps.push(Some(step));
            states.push(to);
        }
        Chart::new(&dve.model, &Run { states: &states, steps, begins, attempt: None }, &["the end".into()], States::Changes)
    }

    #[test]
    fn messages_are_arrows() {
        let found = chart(
            "channel {byte} q[2]; channel c; byte n;
            process Idle { state s; init s; }
            process A { state s, t; init s; trans s -> s { guard n < 2; sync q!n; effect n = n + 1; }, s -> t { guard n == 2; sync c!; }; }
            process B { byte x; state s, t; init s; trans t -> t { sync q?x; }, s -> t { sync c?; }; }
            system async;",
            5,
            None,
        );
        // A sends twice through the queue, meets B, and B receives both: the first message first. Process Idle has a lane, too.
        assert_eq!(found.lanes, ["Idle", "A", "B"]);
        let arrows: Vec<_> = found.arrows.iter().map(|arrow| (arrow.message.as_str(), arrow.sent, arrow.received)).collect();
        assert_eq!(arrows, [("q(0)", (1, 0), Some((2, 3))), ("q(1)", (1, 1), Some((2, 4)))]);
        assert_eq!((found.rows[2].label.as_deref(), found.rows[2].is_message), (Some("c"), true));
        let text = found.text();
        assert!(text.contains("sends q(0), received in step 4") && text.contains("- c -") && text.contains('>'), "{text}");
        let svg = found.svg();
        assert_eq!(svg.matches("marker-end").count(), 3, "{svg}");
        assert_eq!(svg.matches('<').count(), svg.matches('>').count(), "{svg}");
    }

    #[test]
    fn messages_may_stay_in_their_channel() {
        let text = "channel {byte} q[1]; process A { state s, t; init s; trans s -> t { sync q!1; }; } system async;";
        let found = chart(text, 1, None);
        assert_eq!(found.arrows[0].received, None);
        assert!(found.text().contains("sends q(1), not received") && found.svg().contains("(not received)"));
        // The next round of a loop receives what the last step of the loop sends.
        let ring = "channel {byte} q[1]; process A { byte x = 1; state u, s, t; init u; trans
            u -> s { sync q!1; }, s -> t { sync q?x; }, t -> s { sync q!1; }; } system async;";
        let ring = chart(ring, 3, Some(1));
        let (text, svg) = (ring.text(), ring.svg());
        assert!(text.contains("sends q(1), received in step 2 of the next round\n"), "{text}");
        assert!(svg.contains("(received in step 2") && !svg.contains("not received"), "{svg}");
    }
}
