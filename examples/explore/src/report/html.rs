//! The report as one page of HTML, which opens without a network. It has no scripts, so a model's names can run none.

use super::summary::Summary;
use super::verdicts::{self, Check, Decision};
use crate::apart;
use crate::pictures::Run;
use crate::pictures::chart::Chart;
use indicatif::HumanCount;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::SystemTime;
use warpset_model::interpreter::Step;
use warpset_model::ir::Model;
use warpset_model::trace::{Attempt, States, source_lines, step_lines, whole_state_parts};
use warpset_search::coverage::Coverage;
use warpset_support::escaping::xml;
use warpset_support::numbers::counted;

/// Begins with the document type, behind which the page is XML, too.
const HEAD: &str = r#"<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
<meta name="color-scheme" content="light dark"/><meta name="viewport" content="width=device-width"/>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222; background: #fff; }
table { border-collapse: collapse; } td, th { text-align: left; vertical-align: top; padding: .2em 1em .2em 0; }
tr { border-bottom: 1px solid #8884; } h1 { overflow-wrap: anywhere; } code { white-space: pre-wrap; overflow-wrap: anywhere; }
.good { color: #176b2c; } .bad { color: #b3141a; font-weight: bold; } .open { color: #7a5200; }
.chart { overflow-x: auto; background: #fff; } summary { cursor: pointer; } .bars { fill: #36c; max-width: 100%; }
pre { overflow-x: auto; max-width: 60em; margin: 0; } .code tr { border: 0; } .code td { padding: 0 1em 0 0; }
.path { background: #fd08; } .fault { background: #f888; } :target { outline: 2px solid #c60; } :focus-visible { outline: 2px solid #36c; }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #161616; } .good { color: #6fce86; } .bad { color: #ff8a8a; } .open { color: #e5b95c; }
  .bars { fill: #7aa5ff; } .path { background: #fd02; } .fault { background: #f004; }
}
</style>
"#;

/// The path as a table, beside its message chart. The full state of a step is shown on demand. `sentences`: what the path shows,
/// and what is said below its steps.
pub fn path(model: &Model, run: &Run, chart: &Chart, states: States, sentences: [&[String]; 2]) -> String {
    let paragraphs = |class: &str, sentences: &[String]| -> String {
        sentences.iter().map(|sentence| format!("<p{class}>{}</p>\n", xml(sentence))).collect()
    };
    let [ending, closing] = sentences;
    let mut text = format!("<h2>Path</h2>\n{}<table>", paragraphs(" class=\"bad\"", ending));
    text += "<tr><th>step</th><th>what happens</th><th>line</th><th>state</th></tr>\n";
    let code =
        |lines: &[String]| lines.iter().map(|line| format!("<code>{}</code>", xml(line))).collect::<Vec<_>>().join("<br/>");
    let mut row = |number: &str, what: &str, lines: &[usize], state: &str| {
        let lines: Vec<String> = lines.iter().map(|line| format!("<a href=\"#L{line}\">{line}</a>")).collect();
        let cells = [number, what, &lines.join("<br/>"), state];
        writeln!(text, "<tr><td>{}</td></tr>", cells.join("</td><td>")).expect("a string can be written to");
    };
    for number in 0..run.states.len() {
        let begins = if run.begins == Some(number) { " (the loop begins here)" } else { "" };
        // The last state is why the path is shown.
        let is_open = states == States::Whole || number + 1 == run.states.len();
        let open = if is_open { " open=\"open\"" } else { "" };
        let state = changed_state(model, number.checked_sub(1).map(|before| &*run.states[before]), &run.states[number]);
        let state = format!("<details{open}><summary>state {number}{begins}</summary><code>{state}</code></details>");
        let Some(step) = number.checked_sub(1).map(|before| run.steps[before]) else {
            row("0", "initial state", &[], &state);
            continue;
        };
        let lines = step.map_or_else(Vec::new, |step| source_lines(model, step));
        let what = step_lines(model, step, &run.states[number - 1], &run.states[number], States::Changes);
        row(&number.to_string(), &code(&what), &lines, &state);
    }
    if let Some(begins) = run.begins {
        row("", &format!("back to state {begins}: the loop is repeated forever"), &[], "");
    }
    if let Some(attempt) = &run.attempt {
        let lines: Vec<String> = attempt.lines.iter().map(|line| xml(line)).collect();
        let what = format!("<pre>{}</pre>", lines.join("\n"));
        row(&run.states.len().to_string(), &what, &source_lines(model, alone(attempt)), "no state");
    }
    let chart = format!("<h2>Messages</h2>\n<div class=\"chart\" tabindex=\"0\">{}</div>\n", chart.svg());
    text + "</table>\n" + &paragraphs("", closing) + &chart
}

/// The attempted transition as a step.
fn alone(attempt: &Attempt) -> Step {
    Step::Transition { id: attempt.id, receiver: None }
}

/// A whole state, with the parts in bold that differ from the state before.
fn changed_state(model: &Model, before: Option<&[u32]>, state: &[u32]) -> String {
    let parts = whole_state_parts(model, state);
    let before = before.map_or_else(|| parts.clone(), |before| whole_state_parts(model, before));
    let one = |(part, before): (&String, &String)| if part == before { xml(part) } else { format!("<b>{}</b>", xml(part)) };
    parts.iter().zip(&before).map(one).collect::<Vec<_>>().join(", ")
}

/// Most lines of a model's text that a page has, and how many it then has around each line of the path.
const MOST_LINES: usize = 2000;
const AROUND: usize = 20;

/// Most characters of a line.
const MOST_CHARACTERS: usize = 500;

/// The model's text with the numbers of its lines. With `coverage`, lines are coloured by the steps that begin there. Of a long
/// text the page has the first lines and those around the path's lines.
pub fn listing(model: &Model, run: Option<&Run>, coverage: Option<&Coverage>) -> String {
    let steps = coverage.map(|coverage| steps_by_line(model, coverage)).filter(|steps| !steps.is_empty());
    let total = model.source.text.lines().count();
    if total == 0 {
        return String::new();
    }
    let moved = run.iter().flat_map(|run| run.steps.iter().flatten()).flat_map(|step| source_lines(model, *step));
    let failed = run.and_then(|run| run.attempt.as_ref()).map_or_else(Vec::new, |attempt| source_lines(model, alone(attempt)));
    let of_path: BTreeSet<usize> = moved.chain(failed.iter().copied()).collect();
    let mut shown: BTreeSet<usize> = (1..=if total > MOST_LINES { AROUND } else { total }).collect();
    for line in &of_path {
        shown.extend(
            (line.saturating_sub(AROUND).max(1)..=(line + AROUND).min(total)).take(MOST_LINES.saturating_sub(shown.len())),
        );
    }
    let mut text = String::from("<h2>Model</h2>\n<table class=\"code\"><tr><th>line</th>");
    text += if steps.is_some() { "<th>steps</th><th>text</th></tr>\n" } else { "<th>text</th></tr>\n" };
    let mut last = 0;
    let left_out = |from: usize, until: usize| match until - from {
        0 => String::new(),
        count => format!("<tr><td></td><td>{} left out</td></tr>\n", counted(count as u64, "line")),
    };
    for (number, line) in (1..).zip(model.source.text.lines()).filter(|(number, _)| shown.contains(number)) {
        text += &left_out(last, number - 1);
        last = number;
        let (count, class) = match steps.as_ref().and_then(|steps| steps.get(&number)) {
            Some((sum, true)) => (HumanCount(*sum).to_string(), " class=\"bad\""),
            Some((sum, false)) => (HumanCount(*sum).to_string(), " class=\"good\""),
            None => (String::new(), ""),
        };
        let count = if steps.is_some() { format!("<td>{count}</td>") } else { String::new() };
        let (kept, more) = match line.char_indices().nth(MOST_CHARACTERS) {
            Some((at, _)) => (&line[..at], " ..."),
            None => (line, ""),
        };
        let row = match of_path.contains(&number) {
            _ if failed.contains(&number) => " class=\"fault\"",
            true => " class=\"path\"",
            false => "",
        };
        let line = xml(&kept.replace('\t', "    "));
        writeln!(text, "<tr id=\"L{number}\"{row}><td>{number}</td>{count}<td{class}><code>{line}{more}</code></td></tr>")
            .expect("a string can be written to");
    }
    text + &left_out(last, total) + "</table>\n"
}

/// By line, the number of steps that begin there, and whether a transition of that line never steps.
fn steps_by_line(model: &Model, coverage: &Coverage) -> BTreeMap<usize, (u64, bool)> {
    let of_property = model.property.as_ref().map(|property| property.process);
    let mut steps: BTreeMap<usize, (u64, bool)> = BTreeMap::new();
    for (transition, count) in model.transitions.iter().zip(&coverage.transitions) {
        if transition.span.line > 0 && Some(transition.process) != of_property {
            let (sum, is_missing) = steps.entry(transition.span.line as usize).or_default();
            *sum += count;
            *is_missing |= *count == 0;
        }
    }
    steps
}

/// Most bars of the chart of levels. If there are more levels, a bar shows the widest of several.
const MOST_BARS: usize = 200;

/// The sizes of the levels as bars, whose numbers are shown as they are pointed at.
fn levels(sizes: &[u64]) -> String {
    const HEIGHT: u64 = 120;
    let of_bar = sizes.len().div_ceil(MOST_BARS).max(1);
    // Few bars are wide, and many fit the page.
    let pitch = (600 / sizes.len().div_ceil(of_bar).max(1)).clamp(4, 30);
    let most = sizes.iter().copied().max().unwrap_or(0).max(1);
    let mut bars = String::new();
    for (number, levels) in sizes.chunks(of_bar).enumerate() {
        let size = levels.iter().copied().max().unwrap_or(0);
        let height = ((u128::from(size) * u128::from(HEIGHT)).div_ceil(u128::from(most))) as u64;
        let (first, last) = (number * of_bar, number * of_bar + levels.len() - 1);
        let name = if first == last { format!("level {first}") } else { format!("levels {first} to {last}, the widest") };
        let (x, y, size) = (pitch * number, HEIGHT - height, counted(size, "state"));
        let shape = format!("<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{height}\">", pitch - 1);
        writeln!(bars, "{shape}<title>{name}: {size}</title></rect>").expect("a string can be written to");
    }
    let width = pitch * sizes.len().div_ceil(of_bar);
    format!(
        "<h2>Levels</h2>\n<svg class=\"bars\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width}\" \
         height=\"{HEIGHT}\" viewBox=\"0 0 {width} {HEIGHT}\"><title>States of each level, {} at most</title>\n{bars}</svg>\n",
        HumanCount(most)
    )
}

/// The page, with what [`path`] and [`listing`] give.
pub fn page(summary: &Summary, [path, listing]: [String; 2]) -> String {
    let check = |check: &Check| {
        let class = match check.verdict {
            Decision::Holds | Decision::Unreachable => "good",
            Decision::Violated | Decision::Reached => "bad",
            Decision::NotDecided | Decision::NotChecked => "open",
        };
        format!("<li class=\"{class}\">{}</li>\n", xml(check.line(summary.counts.states, false).trim()))
    };
    let note = verdicts::note(summary).map(|note| format!("<li class=\"open\">{}</li>\n", xml(&note)));
    let checks: String = summary.checks.iter().map(check).chain(note).collect();
    let constants = summary.all_constants.iter().map(|of| format!("{} = {}", of.name, of.value)).collect::<Vec<_>>().join(", ");
    let mut rows = summary.rows();
    rows.retain(|(name, _)| !name.is_empty() && (*name != "constants" || constants.is_empty()));
    rows.extend(Some(("constants", constants)).filter(|(_, constants)| !constants.is_empty()));
    let row = |(name, value): &(&str, String)| format!("<tr><th>{name}</th><td>{}</td></tr>\n", xml(value));
    let rows: String = rows.iter().map(row).collect();
    let levels = summary.levels.as_deref().map(levels).unwrap_or_default();
    let (name, about) = (xml(&summary.model), xml(&about()));
    let verdict = match summary.checks.iter().any(|check| check.verdict == Decision::Violated) {
        true => ": VIOLATED",
        false => "",
    };
    format!(
        "{HEAD}<title>{name}{verdict}</title></head>\n<body><h1>{name}</h1>\n<p><code>{}</code><br/>{about}</p>\n<h2>Checks</h2>\n\
         <ul>\n{checks}</ul>\n{path}<h2>Run</h2>\n<table>\n{rows}</table>\n{levels}{listing}</body></html>\n",
        xml(&command())
    )
}

/// The command line, as a shell reads it.
fn command() -> String {
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|argument| apart::quoted(&argument.to_string_lossy()));
    std::iter::once("explore".into()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// The program, its version, and the date and time in UTC.
fn about() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    format!("{} {}, {now}", env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
}
