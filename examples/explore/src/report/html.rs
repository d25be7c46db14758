//! The report as one page of HTML, which opens without a network. It has no scripts, so a model's names can run none.

use super::summary::Summary;
use super::verdicts::{Check, Decision};
use crate::ir::Model;
use crate::pictures::Run;
use crate::pictures::chart::Chart;
use std::fmt::Write as _;
use warpset_model::trace::{state_text, step_lines};
use warpset_support::escaping::xml;

/// Begins with the document type, behind which the page is XML, too.
const HEAD: &str = r#"<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
<meta name="color-scheme" content="light dark"/>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222; background: #fff; }
table { border-collapse: collapse; } td, th { text-align: left; vertical-align: top; padding: .2em 1em .2em 0; }
tr { border-bottom: 1px solid #8884; } code { white-space: pre-wrap; overflow-wrap: anywhere; }
.good { color: #176b2c; } .bad { color: #b3141a; font-weight: bold; } .open { color: #7a5200; }
.chart { overflow-x: auto; background: #fff; } summary { cursor: pointer; } :focus-visible { outline: 2px solid #36c; }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #161616; } .good { color: #6fce86; } .bad { color: #ff8a8a; } .open { color: #e5b95c; }
}
</style>
"#;

/// The path as a table, beside its message chart. The full state of a step is shown on demand.
pub fn path(model: &Model, run: &Run, chart: &Chart) -> String {
    let mut text = String::from("<h2>Path</h2>\n<table><tr><th>step</th><th>what happens</th><th>state</th></tr>\n");
    let mut row = |number: usize, lines: &[String]| {
        let lines: Vec<String> = lines.iter().map(|line| format!("<code>{}</code>", xml(line))).collect();
        let begins = if run.begins == Some(number) { " (the loop begins here)" } else { "" };
        let (lines, state) = (lines.join("<br/>"), xml(&state_text(model, &run.states[number])));
        let state = format!("<details><summary>state {number}{begins}</summary><code>{state}</code></details>");
        writeln!(text, "<tr><td>{number}</td><td>{lines}</td><td>{state}</td></tr>").expect("a string can be written to");
    };
    row(0, &["initial state".into()]);
    for (number, step) in run.steps.iter().enumerate() {
        row(number + 1, &step_lines(model, *step, &run.states[number], &run.states[number + 1]));
    }
    text + &format!("</table>\n<h2>Messages</h2>\n<div class=\"chart\" tabindex=\"0\">{}</div>\n", chart.svg())
}

/// The page, with the path that [`path`] gives, if there is one.
pub fn page(summary: &Summary, path: &str) -> String {
    let check = |check: &Check| {
        let class = match check.verdict {
            Decision::Holds | Decision::Unreachable => "good",
            Decision::Violated | Decision::Reached => "bad",
            Decision::NotDecided | Decision::NotChecked => "open",
        };
        format!("<li class=\"{class}\">{}</li>\n", xml(check.line(summary.complete, false).trim()))
    };
    let checks: String = summary.checks.iter().map(check).collect();
    let row = |(name, value): &(&str, String)| format!("<tr><th>{name}</th><td>{}</td></tr>\n", xml(value));
    let rows: String = summary.rows().iter().filter(|(name, _)| !name.is_empty()).map(row).collect();
    let name = xml(&summary.model);
    format!(
        "{HEAD}<title>{name}</title></head>\n<body><h1>{name}</h1>\n<h2>Checks</h2>\n<ul>\n{checks}</ul>\n{path}\
         <h2>Run</h2>\n<table>\n{rows}</table>\n</body></html>\n"
    )
}
