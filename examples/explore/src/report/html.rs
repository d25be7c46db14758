//! The report as one page of HTML, which opens without a network. It has no scripts, so a model's names can run none.

use super::summary::Summary;
use super::verdicts::{Check, Decision};
use crate::pictures::Run;
use crate::pictures::chart::Chart;
use indicatif::HumanCount;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use warpset_model::ir::Model;
use warpset_model::trace::{States, step_lines, whole_state_text};
use warpset_search::coverage::Coverage;
use warpset_support::escaping::xml;
use warpset_support::numbers::counted;

/// Begins with the document type, behind which the page is XML, too.
const HEAD: &str = r#"<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
<meta name="color-scheme" content="light dark"/>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222; background: #fff; }
table { border-collapse: collapse; } td, th { text-align: left; vertical-align: top; padding: .2em 1em .2em 0; }
tr { border-bottom: 1px solid #8884; } h1 { overflow-wrap: anywhere; } code { white-space: pre-wrap; overflow-wrap: anywhere; }
.good { color: #176b2c; } .bad { color: #b3141a; font-weight: bold; } .open { color: #7a5200; }
.chart { overflow-x: auto; background: #fff; } summary { cursor: pointer; } .bars { fill: #36c; max-width: 100%; }
.code tr { border: 0; } .code td { padding: 0 1em 0 0; } :focus-visible { outline: 2px solid #36c; }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #161616; } .good { color: #6fce86; } .bad { color: #ff8a8a; } .open { color: #e5b95c; }
  .bars { fill: #7aa5ff; }
}
</style>
"#;

/// The path as a table, beside its message chart. The full state of a step is shown on demand.
pub fn path(model: &Model, run: &Run, chart: &Chart, states: States) -> String {
    let mut text = String::from("<h2>Path</h2>\n<table><tr><th>step</th><th>what happens</th><th>state</th></tr>\n");
    let open = if states == States::Whole { " open=\"open\"" } else { "" };
    let mut row = |number: usize, lines: &[String]| {
        let lines: Vec<String> = lines.iter().map(|line| format!("<code>{}</code>", xml(line))).collect();
        let begins = if run.begins == Some(number) { " (the loop begins here)" } else { "" };
        let (lines, state) = (lines.join("<br/>"), xml(&whole_state_text(model, &run.states[number])));
        let state = format!("<details{open}><summary>state {number}{begins}</summary><code>{state}</code></details>");
        writeln!(text, "<tr><td>{number}</td><td>{lines}</td><td>{state}</td></tr>").expect("a string can be written to");
    };
    row(0, &["initial state".into()]);
    for (number, step) in run.steps.iter().enumerate() {
        row(number + 1, &step_lines(model, *step, &run.states[number], &run.states[number + 1], States::Changes));
    }
    text + &format!("</table>\n<h2>Messages</h2>\n<div class=\"chart\" tabindex=\"0\">{}</div>\n", chart.svg())
}

/// The model's text, in which lines are coloured by the steps that begin there. Empty if no step has a line.
pub fn coverage(model: &Model, coverage: &Coverage) -> String {
    let of_property = model.property.as_ref().map(|property| property.process);
    let mut steps: BTreeMap<usize, (u64, bool)> = BTreeMap::new();
    for (transition, count) in model.transitions.iter().zip(&coverage.transitions) {
        if transition.span.line > 0 && Some(transition.process) != of_property {
            let (sum, is_missing) = steps.entry(transition.span.line as usize).or_default();
            *sum += count;
            *is_missing |= *count == 0;
        }
    }
    if steps.is_empty() {
        return String::new();
    }
    let mut text = String::from("<h2>Coverage</h2>\n<table class=\"code\"><tr><th>line</th><th>steps</th><th>text</th></tr>\n");
    for (number, line) in (1..).zip(model.source.text.lines()) {
        let (count, class) = match steps.get(&number) {
            Some((sum, is_missing)) => (HumanCount(*sum).to_string(), if *is_missing { "bad" } else { "good" }),
            None => (String::new(), ""),
        };
        let line = xml(line);
        writeln!(text, "<tr><td>{number}</td><td>{count}</td><td class=\"{class}\"><code>{line}</code></td></tr>")
            .expect("a string can be written to");
    }
    text + "</table>\n"
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
         height=\"{HEIGHT}\"><title>States of each level, {} at most</title>\n{bars}</svg>\n",
        HumanCount(most)
    )
}

/// The page, with what [`path`] and [`coverage`] give, if there is a path and if coverage was counted.
pub fn page(summary: &Summary, path: &str, coverage: &str) -> String {
    let check = |check: &Check| {
        let class = match check.verdict {
            Decision::Holds | Decision::Unreachable => "good",
            Decision::Violated | Decision::Reached => "bad",
            Decision::NotDecided | Decision::NotChecked => "open",
        };
        format!("<li class=\"{class}\">{}</li>\n", xml(check.line(false).trim()))
    };
    let checks: String = summary.checks.iter().map(check).collect();
    let row = |(name, value): &(&str, String)| format!("<tr><th>{name}</th><td>{}</td></tr>\n", xml(value));
    let rows: String = summary.rows().iter().filter(|(name, _)| !name.is_empty()).map(row).collect();
    let levels = summary.levels.as_deref().map(levels).unwrap_or_default();
    let name = xml(&summary.model);
    format!(
        "{HEAD}<title>{name}</title></head>\n<body><h1>{name}</h1>\n<h2>Checks</h2>\n<ul>\n{checks}</ul>\n{path}\
         <h2>Run</h2>\n<table>\n{rows}</table>\n{levels}{coverage}</body></html>\n"
    )
}
