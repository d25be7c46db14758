//! Message charts of a path: a lane for each process or component, a row for each step, arrows for messages.
//!
//! A rendezvous is an arrow within a row. A message through a buffered channel is an arrow from the row that sends it to the row
//! that receives it; channels are queues, so the n-th message received is the n-th one sent. Lanes without a step are left out.

use super::Run;
use crate::interpreter::Step;
use crate::ir::expression::Binary;
use crate::ir::{Action, Expression, Model, TransitionId, VariableId};
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use warpset_model::trace::{changes_text, state_text};
use warpset_support::escaping;

/// A chart, independent of its form.
pub struct Chart {
    lanes: Vec<String>,
    initial: String,
    rows: Vec<Row>,
    /// Messages through buffers, by the rows of sending and receiving.
    arrows: Vec<Arrow>,
    /// The row behind which the loop begins: the number of its first state.
    begins: Option<usize>,
    /// The violation, in words.
    ending: String,
}

#[derive(Default)]
struct Row {
    /// Lanes that move, each with its text. The first one leads.
    moves: Vec<(usize, String)>,
    /// Name of the message of a rendezvous, or of the label of a network's step.
    label: Option<String>,
    /// Whether the label is a message from the first lane to the second.
    is_message: bool,
    changes: String,
}

struct Arrow {
    channel: String,
    sent: (usize, usize),
    received: Option<(usize, usize)>,
}

impl Chart {
    pub fn new(model: &Model, run: &Run, ending: String) -> Self {
        let components = model.network.iter().flat_map(|network| &network.components);
        let names = model.processes.iter().map(|process| process.name.clone());
        let names: Vec<String> =
            names.chain(components.map(|component| model.variables[component.variable].name.clone())).collect();
        let buffers = buffers(model);
        let (mut rows, mut arrows, mut waiting) = (Vec::new(), Vec::new(), HashMap::<VariableId, VecDeque<usize>>::new());
        for (number, step) in run.steps.iter().enumerate() {
            let (from, to) = (&run.states[number], &run.states[number + 1]);
            let mut row = Row { changes: changes_text(model, from, to), ..Row::default() };
            match step {
                None => row.label = Some("no step is possible: the run stays in this state".into()),
                Some(Step::Transition { id, receiver }) => {
                    row.moves = std::iter::once(id)
                        .chain(receiver)
                        .map(|id| (model.transitions[*id].process, moved(model, *id)))
                        .collect();
                    if let (Action::Send { channel, .. }, Some(_)) = (&model.transitions[*id].action, receiver) {
                        (row.label, row.is_message) = (Some(model.channels[*channel].name.clone()), true);
                    }
                    for (buffer, is_sent) in buffered(model, *id, &buffers) {
                        let place = (model.transitions[*id].process, number);
                        if is_sent {
                            waiting.entry(buffer).or_default().push_back(arrows.len());
                            arrows.push(Arrow { channel: buffers[&buffer].clone(), sent: place, received: None });
                        } else if let Some(arrow) = waiting.entry(buffer).or_default().pop_front() {
                            arrows[arrow].received = Some(place);
                        }
                    }
                }
                Some(Step::Firing(id)) => row.label = Some(escaping::line(model.firing_name(*id)).into()),
                Some(Step::Rule(rule)) => {
                    let network = model.network.as_ref().expect("only networks have rules");
                    let first = model.processes.len();
                    let state =
                        |component: usize, state: &[u32]| network.state_of(&network.components[component], &model.layout, state);
                    let moves = network.movers(*rule).map(|id| (first + id, format!("{} -> {}", state(id, from), state(id, to))));
                    row.moves = moves.collect();
                    row.label = Some(escaping::line(model.rule_label(*rule)).into());
                    row.changes.clear();
                }
            }
            rows.push(row);
        }
        let (initial, ending) = (state_text(model, &run.states[0]), escaping::line(&ending).into());
        let mut chart = Self { lanes: names, initial, rows, arrows, begins: run.begins, ending };
        chart.leave_out_idle_lanes();
        chart
    }

    fn leave_out_idle_lanes(&mut self) {
        let moves = |lane: &usize| self.rows.iter().flat_map(|row| &row.moves).any(|(other, _)| other == lane);
        let used: Vec<usize> = (0..self.lanes.len()).filter(moves).collect();
        let new: HashMap<usize, usize> = used.iter().enumerate().map(|(new, old)| (*old, new)).collect();
        self.lanes = used.iter().map(|lane| std::mem::take(&mut self.lanes[*lane])).collect();
        self.rows.iter_mut().flat_map(|row| &mut row.moves).for_each(|(lane, _)| *lane = new[lane]);
        for Arrow { sent, received, .. } in &mut self.arrows {
            sent.0 = new[&sent.0];
            received.iter_mut().for_each(|place| place.0 = new[&place.0]);
        }
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
        line("", &cells(&|lane| self.lanes[lane].clone()), "");
        line("0", &idle, &self.initial);
        for (number, row) in self.rows.iter().enumerate() {
            if self.begins == Some(number) {
                line("", &"=".repeat(width * self.lanes.len()), "the loop begins, and is repeated forever");
            }
            let of_lane =
                |lane: usize| row.moves.iter().find(|(other, _)| *other == lane).map_or("|".into(), |(_, text)| text.clone());
            let mut more = vec![row.changes.clone()];
            for Arrow { channel, sent, received } in &self.arrows {
                if sent.1 == number {
                    more.push(received.map_or_else(
                        || format!("sends on {channel}, not received"),
                        |(_, row)| format!("sends on {channel}, received in step {}", row + 1),
                    ));
                }
                if received.is_some_and(|(_, row)| row == number) {
                    more.push(format!("receives on {channel} what step {} sent", sent.1 + 1));
                }
            }
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
        text + &format!("There: {}\n", self.ending)
    }

    /// The chart as SVG.
    pub fn svg(&self) -> String {
        const LANE: usize = 220;
        const ROW: usize = 56;
        const TOP: usize = 90;
        let (x, y) = (|lane: usize| 80 + LANE * lane + LANE / 2, |row: usize| TOP + ROW * row + ROW / 2);
        let (width, bottom) = (80 + LANE * self.lanes.len() + 420, TOP + ROW * self.rows.len());
        let height = bottom + 60;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n<defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"10\" refY=\"5\" \
             markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0,0 L10,5 L0,10 z\" fill=\"#1f4e79\"/></marker></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let mut add = |part: String| svg += &format!("{part}\n");
        let text_at = |x: usize, y: usize, anchor: &str, colour: &str, text: &str| {
            format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}</text>", escaping::xml(text))
        };
        let line_between = |x1: usize, y1: usize, x2: usize, y2: usize, more: &str| {
            format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"#1f4e79\" stroke-width=\"1.5\"{more}/>")
        };
        add(text_at(20, 24, "start", "#555", &format!("initial state: {}", self.initial)));
        if let Some(begins) = self.begins {
            let (top, rows) = (TOP + ROW * begins, self.rows.len() - begins);
            add(format!(
                "<rect class=\"loop\" x=\"50\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"#fef5e7\" stroke=\"#b9770e\" \
                 stroke-dasharray=\"6 4\"/>",
                width - 70,
                ROW * rows
            ));
            add(text_at(width - 30, top + 16, "end", "#b9770e", "loop, repeated forever"));
        }
        for (lane, name) in self.lanes.iter().enumerate() {
            add(format!("<line x1=\"{0}\" y1=\"64\" x2=\"{0}\" y2=\"{bottom}\" stroke=\"#bbb\"/>", x(lane)));
            let (left, wide) = (x(lane) - LANE / 2 + 10, LANE - 20);
            add(format!(
                "<rect x=\"{left}\" y=\"38\" width=\"{wide}\" height=\"26\" rx=\"4\" fill=\"#d6e4f0\" stroke=\"#1f4e79\"/>"
            ));
            add(text_at(x(lane), 56, "middle", "black", name));
        }
        for Arrow { channel, sent, received } in &self.arrows {
            let (x1, y1) = (x(sent.0), y(sent.1) + 8);
            let (x2, y2) = received.map_or((x1 + LANE / 3, y1 + ROW / 3), |(lane, row)| (x(lane), y(row) - 8));
            add(line_between(x1, y1, x2, y2, " stroke-dasharray=\"4 3\" class=\"message\" marker-end=\"url(#head)\""));
            let lost = if received.is_some() { "" } else { " (not received)" };
            add(text_at((x1 + x2) / 2, (y1 + y2) / 2 - 4, "middle", "#1f4e79", &format!("{channel}{lost}")));
        }
        for (number, row) in self.rows.iter().enumerate() {
            let at = y(number);
            add(text_at(40, at + 5, "end", "#555", &(number + 1).to_string()));
            let lanes: Vec<usize> = row.moves.iter().map(|(lane, _)| *lane).collect();
            match (&row.label, &lanes[..]) {
                (Some(label), &[from, to]) if row.is_message => {
                    add(line_between(x(from), at - 14, x(to), at - 14, " class=\"message\" marker-end=\"url(#head)\""));
                    add(text_at((x(from) + x(to)) / 2, at - 18, "middle", "#1f4e79", label));
                }
                (Some(label), lanes) => {
                    let (first, last) = (lanes.iter().min().copied().unwrap_or(0), lanes.iter().max().copied().unwrap_or(0));
                    if first < last {
                        add(line_between(x(first), at - 14, x(last), at - 14, ""));
                    }
                    let place = if lanes.is_empty() { x(0) } else { (x(first) + x(last)) / 2 };
                    add(text_at(place, at - 18, "middle", "#1f4e79", label));
                }
                (None, _) => {}
            }
            for (lane, text) in &row.moves {
                let wide = (text.chars().count() * 8 + 12).min(LANE - 10);
                let left = x(*lane) - wide / 2;
                add(format!(
                    "<rect x=\"{left}\" y=\"{}\" width=\"{wide}\" height=\"20\" rx=\"4\" fill=\"white\" stroke=\"#777\"/>",
                    at - 10
                ));
                let fit = if text.chars().count() * 8 + 12 > LANE - 10 {
                    format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", LANE - 20)
                } else {
                    String::new()
                };
                add(format!(
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"black\"{fit}>{}</text>",
                    x(*lane),
                    at + 5,
                    escaping::xml(text)
                ));
            }
            add(text_at(80 + LANE * self.lanes.len() + 10, at + 5, "start", "#555", &row.changes));
        }
        add(text_at(20, bottom + 36, "start", "#c0392b", &self.ending));
        svg + "</svg>\n"
    }
}

/// Variables that count the messages of a buffered channel, with the channel's name.
fn buffers(model: &Model) -> HashMap<VariableId, String> {
    let globals = model.variables.iter().enumerate().filter(|(_, variable)| variable.process.is_none());
    let channels = globals.filter_map(|(id, variable)| Some((id, variable.name.strip_suffix(".length")?.to_string())));
    // The arrays of a channel's values, or of its signals, have names that no variable of a text can have.
    let has_values =
        |name: &str| model.variables.iter().any(|variable| variable.name.starts_with(&format!("{name}[")) && variable.is_array);
    channels.filter(|(_, name)| has_values(name)).collect()
}

/// Buffered channels that a transition uses: the counting variable, and whether it sends.
fn buffered(model: &Model, id: TransitionId, buffers: &HashMap<VariableId, String>) -> Vec<(VariableId, bool)> {
    let effects = model.transitions[id].effects.iter().filter(|effect| buffers.contains_key(&effect.target.variable));
    effects
        .map(|effect| (effect.target.variable, matches!(effect.value, Expression::Binary { operator: Binary::Add, .. })))
        .collect()
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
    use crate::interpreter::{Interpreter, Scratch};
    use warpset_model::dve::Dve;
    use warpset_model::ir::Source;

    /// A chart of the first `count` steps, each the first possible one.
    fn chart(text: &str, count: usize) -> Chart {
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
        Chart::new(&dve.model, &Run { states: &states, steps, begins: None }, "the end".into())
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
        );
        // A sends twice through the queue, meets B, and B receives both: the first message first. Process Idle has no lane.
        assert_eq!(found.lanes, ["A", "B"]);
        let arrows: Vec<_> = found.arrows.iter().map(|arrow| (arrow.channel.as_str(), arrow.sent, arrow.received)).collect();
        assert_eq!(arrows, [("q", (0, 0), Some((1, 3))), ("q", (0, 1), Some((1, 4)))]);
        assert_eq!((found.rows[2].label.as_deref(), found.rows[2].is_message), (Some("c"), true));
        let text = found.text();
        assert!(text.contains("sends on q, received in step 4") && text.contains("- c -") && text.contains('>'), "{text}");
        let svg = found.svg();
        assert_eq!(svg.matches("marker-end").count(), 3, "{svg}");
        assert_eq!(svg.matches('<').count(), svg.matches('>').count(), "{svg}");
    }

    #[test]
    fn messages_may_stay_in_their_channel() {
        let text = "channel {byte} q[1]; process A { state s, t; init s; trans s -> t { sync q!1; }; } system async;";
        let found = chart(text, 1);
        assert_eq!(found.arrows[0].received, None);
        assert!(found.text().contains("sends on q, not received") && found.svg().contains("(not received)"));
    }
}
