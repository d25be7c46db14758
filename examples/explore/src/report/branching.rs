//! The part of a report about formulas of branching time.

use super::rows::Rows;
use indicatif::HumanBytes;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use warpset_model::ir::Model;
use warpset_model::trace::{States, initial_line, lines_of, state_json, state_text, step_json, step_lines};
use warpset_search::ctl::{Answer, Asked, Branching, Outcome, Way, Witness};
use warpset_search::liveness::check::Verdict;
use warpset_support::escaping;
use warpset_support::exit;
use warpset_support::numbers::counted;

/// A formula and its answer.
#[derive(Clone, Copy)]
pub struct Answered<'a> {
    pub asked: &'a Asked,
    pub answer: &'a Answer,
}

pub fn all<'a>(branching: &'a Branching, outcome: &'a Outcome) -> impl Iterator<Item = Answered<'a>> {
    branching.formulas.iter().zip(&outcome.answers).map(|(asked, answer)| Answered { asked, answer })
}

/// The program's exit code, if nothing else was found.
pub fn exit_code(outcome: &Outcome) -> u8 {
    let has = |verdict| outcome.answers.iter().any(|answer| answer.verdict == verdict);
    match (has(Verdict::Violated), has(Verdict::Unknown)) {
        _ if outcome.fault.is_some() => exit::FOUND,
        (true, _) => exit::FOUND,
        (false, true) => exit::INCOMPLETE,
        (false, false) => 0,
    }
}

/// The first formula with a path, one that is violated before one that holds.
pub fn first_witness<'a>(branching: &'a Branching, outcome: &'a Outcome) -> Option<(Answered<'a>, &'a Witness)> {
    let witness = |answered: Answered<'a>| Some((answered, answered.answer.witness.as_ref()?.as_ref().ok()?));
    let of = |verdict| all(branching, outcome).filter(move |of| of.answer.verdict == verdict).find_map(witness);
    of(Verdict::Violated).or_else(|| of(Verdict::Holds))
}

/// A sentence about the verdict that a path shows.
pub fn shows(answered: Answered) -> String {
    let verdict = if answered.answer.verdict == Verdict::Holds { "holds" } else { "violated" };
    format!("formula {verdict}: {}", answered.asked.text)
}

/// Figures of the evaluation of formulas.
#[derive(Serialize)]
pub struct FormulaFigures {
    formulas: usize,
    /// Different parts of all formulas.
    parts: usize,
    bytes: u64,
    /// Whether successors were computed again in sweeps, because there was no memory for all steps.
    in_sweeps: bool,
    /// Whether the formulas were evaluated on a GPU, and whether it had listed all steps.
    on_gpu: bool,
    steps_on_gpu: bool,
    seconds_load: f64,
    seconds: f64,
    no_answer: Option<String>,
}

impl FormulaFigures {
    pub fn of(branching: &Branching, outcome: &Outcome) -> Self {
        Self {
            formulas: branching.formulas.len(),
            parts: branching.parts.all().len(),
            bytes: outcome.bytes,
            in_sweeps: matches!(outcome.way, Way::InSweeps | Way::OnGpu { is_listed: false }),
            on_gpu: matches!(outcome.way, Way::OnGpu { .. }),
            steps_on_gpu: outcome.way == Way::OnGpu { is_listed: true },
            seconds_load: outcome.load.as_secs_f64(),
            seconds: outcome.search.as_secs_f64(),
            no_answer: outcome.why.as_ref().map(|why| format!("{why:#}")),
        }
    }

    /// Rows of the report.
    pub fn rows(&self) -> Rows {
        let how = match (self.on_gpu, self.in_sweeps) {
            (true, true) => "successors computed again in sweeps on the GPU",
            (true, false) => "sweeps over steps in the GPU's memory",
            (false, true) => "successors computed again in sweeps",
            (false, false) => "states and steps in memory",
        };
        let parts = counted(self.parts as u64, "part");
        let mut rows = vec![
            ("formulas", format!("{}, {parts} in all; {how}, {}", self.formulas, HumanBytes(self.bytes))),
            ("time of formulas", format!("{:.2} s, {:.2} s of it to load states and steps", self.seconds, self.seconds_load)),
        ];
        rows.extend(self.no_answer.clone().map(|why| ("no answer", why)));
        rows
    }
}

/// The paths, or why they are missing.
pub fn text(branching: &Branching, outcome: &Outcome, model: &Model, states: States) -> String {
    let one = |answered: Answered| match answered.answer.witness.as_ref() {
        None => String::new(),
        Some(Ok(witness)) => format!("\n{}", witness_text(answered, witness, model, states)),
        Some(Err(error)) => {
            let (shows, error) = (shows(answered), format!("{error:#}"));
            format!("\n{}\nThe path cannot be shown: {}\n", escaping::line(&shows), escaping::line(&error))
        }
    };
    all(branching, outcome).map(one).collect()
}

fn witness_text(answered: Answered, witness: &Witness, model: &Model, states: States) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("a string can be written to");
    let count = |number: usize| counted(number as u64, "step");
    let before = witness.begins.unwrap_or(witness.steps.len());
    let then = witness.begins.map(|begins| format!(", then a loop of {}", count(witness.steps.len() - begins)));
    line(escaping::line(&shows(answered)).into_owned());
    line(format!("A path that shows it has {}{}{}:", count(before), then.unwrap_or_default(), lines_of(model)));
    line(initial_line(model, &witness.states[0], states));
    for (number, step) in witness.steps.iter().enumerate() {
        if witness.begins == Some(number) {
            line(format!("The loop, repeated forever, from {}:", state_text(model, &witness.states[number])));
        }
        let (from, to) = (&witness.states[number], &witness.states[number + 1]);
        for (at, part) in step_lines(model, Some(*step), from, to, states).into_iter().enumerate() {
            line(if at == 0 { format!("  {}. {part}", number + 1) } else { format!("       {part}") });
        }
    }
    closing(witness).into_iter().for_each(line);
    text
}

/// Sentences about the end of a path.
pub fn closing(witness: &Witness) -> Vec<String> {
    match witness.begins {
        Some(begins) => vec![format!("This is the state after step {begins} again.")],
        None if witness.is_in_deadlock => vec!["There the path ends: no step is possible.".into()],
        None => Vec::new(),
    }
}

/// A path as JSON.
pub fn witness_json(answered: Answered, witness: &Witness, model: &Model, states: States) -> Value {
    let steps = witness.steps.iter().enumerate();
    let steps =
        steps.map(|(number, step)| step_json(model, Some(*step), &witness.states[number], &witness.states[number + 1], states));
    json!({
        "model": model.source.name,
        "violation": { "kind": "ctl", "text": shows(answered) },
        "length": witness.steps.len(),
        "loop_begins": witness.begins,
        "loop_length": witness.begins.map(|begins| witness.steps.len() - begins),
        "ends_in_deadlock": witness.is_in_deadlock,
        "initial": state_json(model, &witness.states[0]),
        "steps": steps.collect::<Vec<_>>(),
        "final": state_json(model, witness.states.last().expect("a path has a state")),
    })
}
