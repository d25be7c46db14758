//! The part of a report about runs, and about where states can lead: verdicts, runs, reasons.

use super::rows::Rows;
use indicatif::HumanCount;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt::Write as _;
use warpset_model::checks::Role;
use warpset_model::ir::Model;
use warpset_model::trace::{States, automaton_move, initial_line, lines_of, state_json, state_text, step_json, step_lines};
use warpset_search::exploration::End;
use warpset_search::liveness::check::{Conclusion, Question, Verdict};
use warpset_search::liveness::lasso::Lasso;
use warpset_search::liveness::possible::{Outcome, Possible};
use warpset_support::escaping;
use warpset_support::exit;
use warpset_support::numbers::counted;
use warpset_support::stopping::Stop;

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

/// The answer to a question about runs, or about where states can lead.
#[derive(Serialize)]
#[serde(untagged)]
pub enum AboutRuns {
    Runs(OfRuns),
    Leads(Leads),
}

#[derive(Serialize)]
pub struct OfRuns {
    property: String,
    fair: Option<&'static str>,
    #[serde(serialize_with = "as_word")]
    verdict: Verdict,
    /// Assertions of the model; a search with a property does not check them.
    unchecked_assertions: usize,
    automaton: &'static str,
    automaton_states: usize,
    accepting: Option<u64>,
    passes: u64,
    lasso: Option<Value>,
    no_lasso: Option<String>,
}

#[derive(Serialize)]
pub struct Leads {
    property: String,
    #[serde(serialize_with = "as_word")]
    verdict: Verdict,
    no_answer: Option<String>,
    /// Why the path is missing; [`super::summary::Summary::no_path`] in JSON.
    #[serde(skip)]
    no_path: Option<String>,
}

impl AboutRuns {
    pub fn of(
        conclusion: Option<(&Question, &Conclusion)>,
        answer: Option<(&Possible, &Outcome)>,
        model: &Model,
        states: States,
    ) -> Option<Self> {
        let of_runs = conclusion.map(|(question, conclusion)| {
            let error = conclusion.lasso.as_ref().and_then(|lasso| lasso.as_ref().err());
            Self::Runs(OfRuns {
                property: question.text.clone(),
                fair: question.is_fair.then_some("weak"),
                verdict: conclusion.verdict,
                unchecked_assertions: model.assertions.len(),
                automaton: question.kind.word(),
                automaton_states: question.automaton.accepting.len(),
                accepting: conclusion.accepting,
                passes: conclusion.passes,
                lasso: run_json(conclusion, model, question, states),
                no_lasso: error.map(|error| format!("{error:#}")),
            })
        });
        of_runs.or(answer.map(|(possible, outcome)| {
            let why = outcome.why.as_ref().filter(|_| outcome.verdict == Verdict::Unknown);
            Self::Leads(Leads {
                property: question_text(possible),
                verdict: outcome.verdict,
                no_answer: why.map(|why| format!("{why:#}")),
                no_path: why_no_path(outcome),
            })
        }))
    }

    /// Rows of the report.
    pub fn rows(&self) -> Rows {
        match self {
            Self::Runs(of) => of.rows(),
            Self::Leads(Leads { property, verdict, no_answer, no_path }) => {
                let mut rows = vec![("property", property.clone()), ("verdict", sentence(*verdict).into())];
                rows.extend(no_answer.clone().map(|why| ("no answer", why)));
                rows.extend(no_path.clone().map(|why| ("no path", why)));
                rows
            }
        }
    }
}

impl OfRuns {
    fn rows(&self) -> Rows {
        let states = counted(self.automaton_states as u64, "state");
        let fair = if self.fair.is_some() { OF_FAIR_RUNS } else { "" };
        let mut rows =
            vec![("property", format!("{}{fair}", self.property)), ("automaton", format!("{states}, {}", self.automaton))];
        rows.extend(self.accepting.map(|accepting| ("accepting states", HumanCount(accepting).to_string())));
        rows.push(("passes", self.passes.to_string()));
        rows.push(("verdict", sentence(self.verdict).into()));
        if self.unchecked_assertions > 0 {
            rows.push(("assertions", format!("NOT checked ({}): search without the property", self.unchecked_assertions)));
        }
        rows
    }
}

fn as_word<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(word(*verdict))
}

/// Why the path to a state that was found is missing.
pub fn why_no_path(outcome: &Outcome) -> Option<String> {
    let why = outcome.why.as_ref().filter(|_| outcome.verdict != Verdict::Unknown);
    why.map(|why| format!("{why:#}"))
}

/// The violating run, or why none can be shown.
pub fn text(conclusion: &Conclusion, model: &Model, states: States) -> Option<String> {
    conclusion.lasso.as_ref().map(|lasso| match lasso {
        Ok(lasso) => format!("\n{}", lasso_text(lasso, model, states)),
        Err(error) => format!("\nThe violating run cannot be shown: {}\n", escaping::line(&format!("{error:#}"))),
    })
}

/// The violating run as JSON.
pub fn run_json(conclusion: &Conclusion, model: &Model, question: &Question, states: States) -> Option<Value> {
    let lasso = conclusion.lasso.as_ref().and_then(|lasso| lasso.as_ref().ok());
    lasso.map(|lasso| lasso_json(lasso, model, &question.text, states))
}

/// The question about where states can lead, as text.
fn question_text(possible: &Possible) -> String {
    match possible.role {
        Role::Progress => format!("no livelock; progress: {}", possible.text),
        _ => format!("reachable from every state: {}", possible.text),
    }
}

/// The run as text: the initial state, each step with its changes, and where the loop begins.
fn lasso_text(lasso: &Lasso, model: &Model, states: States) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("a string can be written to");
    let count = |number: usize| counted(number as u64, "step");
    let (before, inside) = (lasso.begins, lasso.steps.len() - lasso.begins);
    let then = if inside == 0 { String::new() } else { format!(", then a loop of {}", count(inside)) };
    line(format!("A run that violates the property: {}{then}{}:", count(before), lines_of(model)));
    line(initial_line(model, &lasso.states[0], states));
    for (number, step) in lasso.steps.iter().enumerate() {
        if number == lasso.begins {
            line(format!("The loop, repeated forever, from {}:", state_text(model, &lasso.states[number])));
        }
        let (from, to) = (&lasso.states[number], &lasso.states[number + 1]);
        for (at, part) in step_lines(model, step.system, from, to, states).into_iter().enumerate() {
            let moved = automaton_move(model, from, to)
                .filter(|_| at == 0)
                .map(|(from, to)| format!(" [{} -> {}]", escaping::line(from), escaping::line(to)));
            let moved = moved.unwrap_or_default();
            line(if at == 0 { format!("  {}. {part}{moved}", number + 1) } else { format!("       {part}") });
        }
    }
    closing(lasso).into_iter().for_each(line);
    text
}

/// Sentences about the end of a run.
pub fn closing(lasso: &Lasso) -> Vec<String> {
    let end = match lasso.begins < lasso.steps.len() {
        true => format!("This is the state after step {} again.", lasso.begins),
        false => "Every continuation of this run violates the property; no short loop was found.".into(),
    };
    let certain = lasso.certain.filter(|certain| *certain < lasso.steps.len());
    let certain =
        certain.map(|step| format!("The violation is certain after step {step}; the steps after it are any continuation."));
    std::iter::once(end).chain(certain).chain(lasso.why_longer.map(String::from)).collect()
}

/// Addition to a property of weakly fair runs.
const OF_FAIR_RUNS: &str = " (of weakly fair runs)";

/// The property as it was asked for.
pub fn asked(question: &Question) -> String {
    format!("{}{}", question.text, if question.is_fair { OF_FAIR_RUNS } else { "" })
}

fn lasso_json(lasso: &Lasso, model: &Model, property: &str, states: States) -> Value {
    let steps = lasso.steps.iter().enumerate().map(|(number, step)| {
        let mut json = step_json(model, step.system, &lasso.states[number], &lasso.states[number + 1], states);
        json["automaton"] =
            json!(automaton_move(model, &lasso.states[number], &lasso.states[number + 1]).map(|(from, to)| [from, to]));
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
