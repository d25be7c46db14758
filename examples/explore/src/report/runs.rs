//! The part of a report about runs, and about where states can lead: verdicts, runs, reasons.

use crate::checks::Role;
use crate::escaping;
use crate::exit;
use crate::exploration::End;
use crate::ir::Model;
use crate::liveness::check::{Conclusion, Question, Verdict};
use crate::liveness::lasso::Lasso;
use crate::liveness::possible::{Outcome, Possible};
use crate::numbers::counted;
use crate::stopping::Stop;
use indicatif::HumanCount;
use serde_json::{Value, json};
use std::fmt::Write as _;
use warpset_model::trace::{lines_of, state_json, state_text, step_json, step_lines};

fn sentence(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "the property HOLDS",
        Verdict::Violated => "the property is VIOLATED",
        Verdict::Unknown => "UNKNOWN: the search ended before a verdict",
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Violated => "violated",
        Verdict::Unknown => "unknown",
    }
}

/// The program's exit code, if the search found nothing else.
pub fn exit_code(conclusion: &Conclusion) -> u8 {
    match (conclusion.verdict, conclusion.end) {
        (_, Some(End::Stopped(Stop::Interrupted))) => exit::INTERRUPTED,
        (Verdict::Holds, _) => 0,
        (Verdict::Violated, _) => exit::FOUND,
        (Verdict::Unknown, _) => exit::INCOMPLETE,
    }
}

/// Rows of the report.
pub fn rows(conclusion: &Conclusion, question: &Question, model: &Model) -> Vec<(&'static str, String)> {
    let (locations, kind) = (question.automaton.accepting.len(), question.kind.word());
    let states = counted(locations as u64, "state");
    let fair = if question.is_fair { " (of weakly fair runs)" } else { "" };
    let mut rows = vec![("property", format!("{}{fair}", question.text)), ("automaton", format!("{states}, {kind}"))];
    if let Some(accepting) = conclusion.accepting {
        rows.push(("accepting states", HumanCount(accepting).to_string()));
    }
    rows.push(("passes", conclusion.passes.to_string()));
    rows.push(("verdict", sentence(conclusion.verdict).into()));
    if !model.assertions.is_empty() {
        rows.push(("assertions", format!("NOT checked ({}): search without the property", model.assertions.len())));
    }
    rows
}

/// The violating run, or why none can be shown.
pub fn text(conclusion: &Conclusion, model: &Model) -> Option<String> {
    conclusion.lasso.as_ref().map(|lasso| match lasso {
        Ok(lasso) => format!("\n{}", lasso_text(lasso, model)),
        Err(error) => format!("\nThe violating run cannot be shown: {}\n", escaping::line(&format!("{error:#}"))),
    })
}

/// The violating run as JSON.
pub fn run_json(conclusion: &Conclusion, model: &Model, question: &Question) -> Option<Value> {
    let lasso = conclusion.lasso.as_ref().and_then(|lasso| lasso.as_ref().ok());
    lasso.map(|lasso| lasso_json(lasso, model, &question.text))
}

/// Adds a conclusion to the report's object.
pub fn add_conclusion(report: &mut Value, conclusion: &Conclusion, question: &Question, model: &Model) {
    let lasso = conclusion.lasso.as_ref();
    report["property"] = question.text.clone().into();
    report["fair"] = if question.is_fair { "weak".into() } else { Value::Null };
    report["verdict"] = word(conclusion.verdict).into();
    report["unchecked_assertions"] = model.assertions.len().into();
    report["automaton"] = question.kind.word().into();
    report["automaton_states"] = question.automaton.accepting.len().into();
    report["accepting"] = json!(conclusion.accepting);
    report["passes"] = conclusion.passes.into();
    report["seconds_search"] = conclusion.search.as_secs_f64().into();
    report["seconds_path"] = conclusion.run.as_secs_f64().into();
    report["lasso"] = json!(run_json(conclusion, model, question));
    report["no_lasso"] = json!(lasso.and_then(|lasso| lasso.as_ref().err()).map(|error| format!("{error:#}")));
}

/// The question about where states can lead, as text.
fn question_text(possible: &Possible) -> String {
    match possible.role {
        Role::Progress => format!("no livelock; progress: {}", possible.text),
        _ => format!("reachable from every state: {}", possible.text),
    }
}

/// Rows of the report for a question about where states can lead.
pub fn rows_of_outcome(possible: &Possible, outcome: &Outcome) -> Vec<(&'static str, String)> {
    let mut rows = vec![("property", question_text(possible)), ("verdict", sentence(outcome.verdict).into())];
    rows.extend(outcome.why.as_ref().map(|why| (missing(outcome), format!("{why:#}"))));
    rows
}

/// Adds the answer to a question about where states can lead to the report's object.
pub fn add_outcome(report: &mut Value, possible: &Possible, outcome: &Outcome) {
    report["property"] = question_text(possible).into();
    report["verdict"] = word(outcome.verdict).into();
    report["seconds_search"] = outcome.search.as_secs_f64().into();
    report["no_answer"] = Value::Null;
    if let Some(why) = &outcome.why {
        report[missing(outcome).replace(' ', "_")] = format!("{why:#}").into();
    }
}

/// The missing part that `why` explains.
fn missing(outcome: &Outcome) -> &'static str {
    if outcome.verdict == Verdict::Unknown { "no answer" } else { "no path" }
}

/// The run as text: the initial state, each step with its changes, and where the loop begins.
fn lasso_text(lasso: &Lasso, model: &Model) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("a string can be written to");
    let count = |number: usize| counted(number as u64, "step");
    let (before, inside) = (lasso.begins, lasso.steps.len() - lasso.begins);
    let then = if inside == 0 { String::new() } else { format!(", then a loop of {}", count(inside)) };
    line(format!("A run that violates the property: {}{then}{}:", count(before), lines_of(model)));
    line(format!("  0. initial state: {}", state_text(model, &lasso.states[0])));
    for (number, step) in lasso.steps.iter().enumerate() {
        if number == lasso.begins {
            line(format!("The loop, repeated forever, from {}:", state_text(model, &lasso.states[number])));
        }
        let (from, to) = (&lasso.states[number], &lasso.states[number + 1]);
        for (at, part) in step_lines(model, step.system, from, to).into_iter().enumerate() {
            let moved = moved(lasso, model, number)
                .filter(|_| at == 0)
                .map(|(from, to)| format!(" [{} -> {}]", escaping::line(from), escaping::line(to)));
            let moved = moved.unwrap_or_default();
            line(if at == 0 { format!("  {}. {part}{moved}", number + 1) } else { format!("       {part}") });
        }
    }
    if inside == 0 {
        line("Every continuation of this run violates the property; no short loop was found.".into());
    } else {
        line(format!("This is the state after step {} again.", lasso.begins));
    }
    if let Some(certain) = lasso.certain.filter(|certain| *certain < lasso.steps.len()) {
        line(format!("The violation is certain after step {certain}; the steps after it are any continuation."));
    }
    if let Some(why) = lasso.why_longer {
        line(why.into());
    }
    text
}

/// Source and target of the automaton's move, if it moves.
fn moved<'m>(lasso: &Lasso, model: &'m Model, number: usize) -> Option<(&'m str, &'m str)> {
    let property = model.property.as_ref()?;
    let of = &property.moves[lasso.steps[number].moved];
    let name = |at: usize| &*model.processes[property.process].locations[at].name;
    (of.from != of.to).then(|| (name(of.from), name(of.to)))
}

fn lasso_json(lasso: &Lasso, model: &Model, property: &str) -> Value {
    let steps = lasso.steps.iter().enumerate().map(|(number, step)| {
        let mut json = step_json(model, step.system, &lasso.states[number], &lasso.states[number + 1]);
        json["automaton"] = json!(moved(lasso, model, number).map(|(from, to)| [from, to]));
        json
    });
    let is_closed = lasso.begins < lasso.steps.len();
    json!({
        "model": model.source.name,
        "violation": { "kind": "cycle", "text": property },
        "length": lasso.steps.len(),
        "loop_begins": is_closed.then_some(lasso.begins),
        "loop_length": is_closed.then_some(lasso.steps.len() - lasso.begins),
        "shortest": lasso.why_longer.is_none(),
        "certain_after": lasso.certain,
        "initial": state_json(model, &lasso.states[0]),
        "steps": steps.collect::<Vec<_>>(),
        "final": state_json(model, lasso.states.last().expect("a path has a state")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_interruption_decides_the_exit_code() {
        let code = |verdict, end| {
            let (search, run) = (Duration::ZERO, Duration::ZERO);
            exit_code(&Conclusion { verdict, accepting: None, passes: 1, end, lasso: None, search, run })
        };
        assert_eq!(code(Verdict::Unknown, Some(End::Stopped(Stop::Interrupted))), exit::INTERRUPTED);
        assert_eq!(code(Verdict::Unknown, Some(End::Memory)), exit::INCOMPLETE);
        assert_eq!([code(Verdict::Holds, None), code(Verdict::Violated, None)], [0, exit::FOUND]);
    }
}
