//! The report of an exploration, as text and as JSON.

pub mod branching;
pub mod html;
pub mod net;
pub mod runs;
pub mod verdicts;

use crate::checkpoint::{Status, Written};
use crate::checks::Checks;
use crate::coverage::Unreached;
use crate::ctl::{self, Branching};
use crate::escaping;
use crate::exit;
use crate::exploration::{Counts, End, Exploration, Found};
use crate::export::Exported;
use crate::first_table::FEW_STATES;
use crate::ir::Model;
use crate::liveness::check::{Conclusion, Question, Verdict};
use crate::liveness::possible::{Outcome, Possible};
use crate::measurements::{Cycles, Measurements};
use crate::numbers::counted;
use crate::output::Unwritten;
use crate::program::Ended;
use crate::ranks::Numbers;
use crate::record::Recorded;
use crate::reduce::Reduction;
use crate::stopping::Stop;
use crate::survey::Surveyed;
use crate::warnings::Warnings;
use anyhow::Result;
use indicatif::{HumanBytes, HumanCount, HumanFloatCount};
use serde_json::{Map, Value, json};
use std::time::Duration;
use warpset::{Device, Spec, Stats};
use warpset_model::trace::{Path, lines_of, state_json, state_text};

pub struct Report<'a> {
    pub model: &'a Model,
    pub checks: &'a Checks,
    pub device: &'a Device,
    pub spec: Spec,
    /// Why the table has its kind, if `--table` does not name that kind.
    pub table_reason: Option<String>,
    pub stats: Stats,
    pub exploration: &'a Exploration,
    /// How successors are computed.
    pub engine: String,
    pub time: Time,
    /// Measurements on a GPU, if there are any.
    pub measurements: Option<Measurements>,
    /// Figures of the ranks, if there are several.
    pub ranks: Option<Numbers>,
    pub finding: Option<Finding<'a>>,
    /// The conditions that the state of the finding violates, as indices into [`Checks::conditions`].
    pub violated_beside: Vec<usize>,
    /// For a product, the question and its result.
    pub conclusion: Option<(&'a Question, Conclusion)>,
    /// The question about where states can lead, and its answer.
    pub answer: Option<(&'a Possible, &'a Outcome)>,
    /// Formulas of branching time, and their answers.
    pub branched: Option<(&'a Branching, &'a ctl::Outcome)>,
    pub warnings: &'a Warnings,
    pub recorded: Option<Recorded>,
    pub exported: Option<Exported>,
    /// Reason why nothing was exported although `--export` was given.
    pub not_exported: Option<String>,
    /// The file of `--trace` if nothing was found that it could show.
    pub not_traced: Option<&'a std::path::Path>,
    /// Outputs that could not be written.
    pub unwritten: Unwritten,
    /// The limit given by `--memory`.
    pub memory: Option<u64>,
    /// Number of states that the memory holds, by what is known at the end; only of one table.
    pub states_in_memory: Option<u64>,
    /// Bytes that twice as many states need, by what is known at the end; only of one table.
    pub memory_for_twice: Option<u64>,
    /// The last checkpoint, if checkpoints were asked for.
    pub checkpoint: Option<Status>,
    /// Number of states that a resumed search had found before.
    pub known: Option<u64>,
    /// Parts of the model that never occurred, or why they are not known, if they were asked for.
    pub coverage: Option<Result<Vec<Unreached>>>,
    /// Figures of a net.
    pub surveyed: Option<Surveyed>,
    /// The reduction, if one was asked for.
    pub reduction: Option<&'a Reduction<'a>>,
}

/// Version of the object that `--json` prints. It changes if a key goes or changes its meaning, not if one comes.
const SCHEMA: u32 = 1;

/// States from which on the text has figures for each of them; the JSON has them always.
const FEW_STATES_FOR_RATES: u64 = 100_000;

/// Basis of all counts: every kind of table stores its vectors completely, whole or in parts.
const BASIS: &str = "exact: states are compared as a whole";

/// The violation, and the path to it.
pub struct Finding<'a> {
    pub found: &'a Found,
    /// The path, or why it is missing.
    pub path: Result<Path>,
}

/// Durations of the phases of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Time {
    /// Time to read and lower the model.
    pub parse: Duration,
    /// Time to open the device.
    pub device: Duration,
    /// Time to open the device and make the table.
    pub table: Duration,
    /// Time to compile and load next-state functions, or the kernel with them. Compilation during the exploration does not count.
    pub compile: Duration,
    pub explore: Duration,
    /// Time to count the firings and tokens of a net.
    pub survey: Duration,
    /// Time to find the path to the violation.
    pub path: Duration,
}

impl Report<'_> {
    fn counts(&self) -> &Counts {
        &self.exploration.counts
    }

    fn states_per_second(&self) -> f64 {
        self.per_second(self.counts().states - self.known.unwrap_or(0))
    }

    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.time.explore.as_secs_f64()
    }

    /// The program's exit code.
    pub fn exit_code(&self) -> u8 {
        // Errors and interruptions after the exploration count, too.
        let of_path = self.finding.as_ref().and_then(|finding| finding.path.as_ref().err());
        let of_run = self.conclusion.as_ref().and_then(|(_, conclusion)| conclusion.lasso.as_ref()?.as_ref().err());
        let of_answer = self.answer.and_then(|(_, outcome)| outcome.why.as_ref());
        let of_formulas = self.branched.and_then(|(_, outcome)| outcome.why.as_ref());
        let mut errors = [of_path, of_run, of_answer, of_formulas].into_iter().flatten();
        let is_interrupted =
            errors.any(|error| error.downcast_ref().is_some_and(|ended: &Ended| ended.code == exit::INTERRUPTED));
        match (&self.finding, self.exploration.end) {
            (_, End::Stopped(Stop::Interrupted)) => exit::INTERRUPTED,
            _ if is_interrupted => exit::INTERRUPTED,
            _ if self.unwritten.sentence().is_some() => exit::ERROR,
            (None, _) if self.conclusion.is_some() => {
                self.conclusion.as_ref().map_or(0, |(_, conclusion)| runs::exit_code(conclusion))
            }
            (found, _) if !found.as_ref().is_some_and(|finding| finding.found.is_fault()) && self.branched.is_some() => {
                self.branched.map_or(0, |(_, outcome)| branching::exit_code(outcome))
            }
            (Some(_), _) => exit::FOUND,
            (None, end) => match self.answer.map(|(_, outcome)| (outcome.verdict, outcome.has_fault)) {
                Some((Verdict::Violated, _) | (_, true)) => exit::FOUND,
                None | Some((Verdict::Holds, _)) if end == End::Complete => 0,
                _ => exit::INCOMPLETE,
            },
        }
    }

    /// Number of stores that had to wrap their value, plus values of the text that did not fit.
    fn overflows(&self) -> u64 {
        self.counts().overflows + self.warnings.values
    }

    pub fn json(&self) -> Value {
        let (counts, stats, time) = (self.counts(), &self.stats, &self.time);
        let (model, checks) = (self.model, self.checks);
        let (measured, finding) = (self.measurements.as_ref(), self.finding.as_ref());
        let mut report = json!({
            "schema": SCHEMA,
            "model": self.model.source.name,
            "checks": self.verdicts(),
            "states": counts.states,
            "transitions": counts.transitions,
            "deadlocks": counts.deadlocks,
            "levels": counts.levels,
            "complete": self.exploration.end == End::Complete,
            "end": end_word(self.exploration.end),
            "widest_level": counts.widest_level,
            "overflows": self.overflows(),
            "basis": BASIS,
            "seconds": time.explore.as_secs_f64(),
            "states_per_second": self.states_per_second(),
            "seconds_parse": time.parse.as_secs_f64(),
            "seconds_device": time.device.as_secs_f64(),
            "seconds_table": time.table.as_secs_f64(),
            "seconds_compile": time.compile.as_secs_f64(),
            "seconds_path": time.path.as_secs_f64(),
            "seconds_survey": time.survey.as_secs_f64(),
            "table": self.spec.to_string(),
            "table_reason": self.table_reason,
            "device": self.devices(),
            "engine": self.engine,
            "ranks": self.ranks.as_ref().map(ranks_json),
            "words": self.model.layout.words,
            "slots": stats.slots,
            "bytes": stats.bytes,
            "bytes_lists": self.exploration.list_bytes,
            "bytes_per_state": stats.bytes_per_vector(),
            "memory": self.memory,
            "memory_lacks": self.memory_lacks(),
            "states_in_memory": self.states_in_memory,
            "memory_for_twice": self.memory_needed(),
            "fill": stats.fill(),
            "nodes": stats.nodes,
            "compression_ratio": stats.compression_ratio(),
            "cycles": measured.map(|measured| cycles_json(measured.cycles)),
            "offered": measured.map(|measured| measured.offered),
            "offered_per_second": measured.map(|measured| self.per_second(measured.offered)),
            "table_alone_per_second": measured.and_then(|measured| measured.table_alone.as_ref().ok()),
        });
        report["violation"] = json!(finding.map(|finding| checks.describe(&finding.found.violation, model)));
        report["state"] = json!(finding.map(|finding| state_json(model, &finding.found.state)));
        report["path"] = json!(self.path_json());
        report["no_path"] = json!(finding.and_then(|finding| finding.path.as_ref().err()).map(|error| format!("{error:#}")));
        if let Some((question, conclusion)) = &self.conclusion {
            runs::add_conclusion(&mut report, conclusion, question, model);
        }
        if let Some((possible, outcome)) = self.answer {
            runs::add_outcome(&mut report, possible, outcome);
        }
        if let Some((branching, outcome)) = self.branched {
            branching::add(&mut report, branching, outcome);
        }
        let constants: Map<_, _> = model.constants.iter().map(|of| (of.name.clone(), json!(of.value))).collect();
        report["constants"] = constants.into();
        net::add(&mut report, model, self.surveyed.as_ref(), self.exploration.end);
        // Counts are those of the model only if this is null.
        let reduction = self.reduction.filter(|reduction| reduction.stubborn.is_some());
        report["reduction"] = json!(reduction.map(Reduction::word));
        report["overflows_of_text"] = self.warnings.values.into();
        report["warnings"] = self.warnings.json();
        report["warning_count"] = self.warnings.count.into();
        report["recorded"] = json!(self.recorded.map(|recorded| recorded.vectors));
        report["not_recorded"] = json!(self.recorded.map(|recorded| recorded.left_out));
        report["exported_bytes"] = json!(self.exported.map(|exported| exported.bytes));
        report["not_exported"] = json!(self.not_exported);
        report["not_traced"] = json!(self.not_traced.map(not_traced_text));
        report["resumed_states"] = json!(self.known);
        report["checkpoint"] = json!(self.checkpoint.as_ref().map(checkpoint_json));
        report["unreached"] =
            json!(self.coverage.as_ref().and_then(|parts| parts.as_ref().ok()).map(|parts| unreached_json(parts)));
        report["error"] = json!(self.unwritten.sentence());
        report["exit_code"] = self.exit_code().into();
        report
    }

    fn end_text(&self) -> String {
        let waiting = format!("{} of the last level and all later levels not expanded", counted(self.counts().waiting, "state"));
        match self.exploration.end {
            End::Complete => "completely".into(),
            End::Violation | End::Observer => "until a finding".into(),
            End::States => format!("in part: stopped at --max-states, {waiting}"),
            End::Levels => "in part: stopped at --max-depth; the states of the next level are found, but not checked".into(),
            End::Stopped(Stop::Interrupted) => format!("in part: INTERRUPTED, {waiting}"),
            End::Stopped(Stop::Time(most)) => format!("in part: stopped after --timeout {} s, {waiting}", most.as_secs_f64()),
            End::Memory => format!("in part: {}, {waiting}", self.memory_text()),
        }
    }

    /// Describes how memory was exhausted: the limit, and the memory needed as far as the table and the lists show it.
    fn memory_text(&self) -> String {
        let Some(limit) = self.memory else { return "no more memory".into() };
        let at = format!("stopped at --memory {}", HumanBytes(limit));
        if self.ranks.is_some() {
            return format!("{at} of each device");
        }
        let (stats, lists) = (&self.stats, self.exploration.list_bytes);
        let needed = |bytes: u64| format!("; twice as many states need about --memory {}", HumanBytes(bytes));
        let needed = self.memory_needed().map(needed).unwrap_or_default();
        let (taken, lists, fill) = (HumanBytes(stats.bytes), HumanBytes(lists), 100.0 * stats.fill());
        let of_nodes = 100.0 * stats.nodes as f64 / stats.node_slots.max(1) as f64;
        let nodes = if of_nodes > fill { format!(", its nodes {of_nodes:.0} %") } else { String::new() };
        let lack = match self.memory_lacks() {
            Some(part @ ("slots" | "nodes")) => format!("; its {part} were full"),
            Some(_) => "; the lists had no room for more".into(),
            None => String::new(),
        };
        // Lists may have been longest while the table was smaller.
        format!(
            "{at}, where the table takes {taken} and is {fill:.0} % full{nodes}, beside lists of states of up to \
             {lists}{lack}{needed}"
        )
    }

    /// The part that had no room for more states, if memory ended the search in one table: `slots`, `nodes` or `lists`.
    fn memory_lacks(&self) -> Option<&'static str> {
        /// Fill from which a part can have rejected states: slots of keys that have one place each may be full at 0.8.
        const FULL: f64 = 0.75;
        let ended = self.exploration.end == End::Memory && self.ranks.is_none();
        let of_nodes = self.stats.nodes as f64 / self.stats.node_slots.max(1) as f64;
        let fill = self.stats.fill();
        let part = if of_nodes >= FULL && of_nodes > fill {
            "nodes"
        } else if fill >= FULL {
            "slots"
        } else {
            "lists"
        };
        ended.then_some(part)
    }

    /// Bytes that twice as many states need; for few states at least twice the limit.
    fn memory_needed(&self) -> Option<u64> {
        let is_few = 2 * self.counts().states < FEW_STATES;
        let in_proportion = self.memory.filter(|_| is_few).unwrap_or(0).saturating_mul(2);
        self.memory_for_twice.map(|bytes| bytes.max(in_proportion))
    }

    /// Number of states that the memory holds, by what the states so far take.
    fn room_text(&self) -> Option<String> {
        let states = HumanCount(self.states_in_memory?);
        Some(match self.memory {
            Some(limit) => format!("about {states} states in --memory {}", HumanBytes(limit)),
            None => format!("about {states} states in the memory that is free"),
        })
    }

    /// The table and, if `--table` does not name its kind, why it is of that kind.
    fn table_text(&self) -> String {
        let why = self.table_reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        format!("{}{why}", self.spec)
    }

    /// Whether the search has so few states that figures for each of them would mostly be those of an empty table.
    fn is_small(&self) -> bool {
        self.counts().states < FEW_STATES_FOR_RATES
    }

    /// The number of states and, if it is not the model's, what it is.
    fn states_text(&self) -> String {
        let count = HumanCount(self.counts().states);
        self.reduction.map_or_else(|| count.to_string(), |reduction| format!("{count} ({})", reduction.remark()))
    }

    fn devices(&self) -> String {
        self.ranks.as_ref().map_or_else(|| self.device.to_string(), |ranks| ranks.devices.clone())
    }

    /// The figures: names and values. An empty name stands between groups.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let (counts, stats, time) = (self.counts(), &self.stats, &self.time);
        let count = |number| HumanCount(number).to_string();
        let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
        let mut rows = vec![
            ("model", format!("{} ({} per state)", self.model.source.name, counted(self.model.layout.words as u64, "word"))),
            ("device", format!("{}, {}", self.devices(), self.engine)),
            ("table", self.table_text()),
            ("", String::new()),
            ("states", self.states_text()),
            ("transitions", count(counts.transitions)),
            ("deadlocks", count(counts.deadlocks)),
            ("levels", format!("{} (the widest has {})", count(counts.levels), counted(counts.widest_level, "state"))),
            ("explored", self.end_text()),
            ("basis", BASIS.into()),
        ];
        if !self.model.constants.is_empty() {
            let constants = self.model.constants.iter().map(|of| format!("{} = {}", escaping::line(&of.name), of.value));
            rows.insert(1, ("constants", constants.collect::<Vec<_>>().join(", ")));
        }
        rows.extend(net::rows(self.model, self.surveyed.as_ref(), self.exploration.end));
        let overflows = [
            (counts.overflows, "store", "wrapped"),
            (self.warnings.values, "value", "of the text not taken as written (see the warnings)"),
        ];
        let overflows = overflows.iter().filter(|(number, ..)| *number > 0);
        let overflows: Vec<String> = overflows.map(|(number, one, what)| format!("{} {what}", counted(*number, one))).collect();
        if !overflows.is_empty() {
            rows.push(("overflows", overflows.join("; ")));
        }
        if let Some(Exported { bytes }) = self.exported {
            rows.push(("exported", format!("all states and transitions, {}", HumanBytes(bytes))));
        }
        if let Some(why) = &self.not_exported {
            rows.push(("exported", format!("NOTHING: {why}")));
        }
        if let Some(path) = self.not_traced {
            rows.push(("trace", not_traced_text(path)));
        }
        if let Some(why) = self.unwritten.sentence() {
            rows.push(("NOT written", why));
        }
        match &self.coverage {
            Some(Ok(parts)) => {
                let mut lines = unreached_lines(parts, self.exploration.end).into_iter();
                rows.extend(lines.next().map(|line| ("unreached", line)));
                rows.extend(lines.map(|line| (BELOW, line)));
            }
            Some(Err(error)) => rows.push(("unreached", format!("NOT counted: {error:#}"))),
            None => {}
        }
        if let Some(known) = self.known {
            rows.push(("resumed", format!("from {}, included in the counts", counted(known, "state"))));
        }
        if let Some(status) = &self.checkpoint {
            rows.push(("checkpoint", checkpoint_text(status)));
        }
        if let Some(Recorded { vectors, left_out, bytes }) = self.recorded {
            let more =
                if left_out == 0 { String::new() } else { format!("; {} more left out (--record-bytes)", count(left_out)) };
            rows.push(("recorded", format!("{}, {}{more}", counted(vectors, "vector"), HumanBytes(bytes))));
        }
        rows.extend([
            ("", String::new()),
            (
                "time",
                format!(
                    "parse {}, table {}, compile {}, explore {}",
                    seconds(time.parse),
                    seconds(time.table),
                    seconds(time.compile),
                    seconds(time.explore)
                ),
            ),
            ("states a second", HumanFloatCount(self.states_per_second().round()).to_string()),
            (
                "memory",
                format!(
                    "{} of table, {}{:.0} % full; up to {} of lists of states",
                    HumanBytes(stats.bytes),
                    if self.is_small() { String::new() } else { format!("{:.1} bytes a state, ", stats.bytes_per_vector()) },
                    100.0 * stats.fill(),
                    HumanBytes(self.exploration.list_bytes)
                ),
            ),
        ]);
        if let Some(room) = self.room_text().filter(|_| !self.is_small()) {
            rows.push(("room", room));
        }
        if let Some(ranks) = &self.ranks {
            rows.push(("ranks", ranks_text(ranks)));
        }
        if stats.node_slots > 0 {
            let text = format!("{:.3} ({})", stats.compression_ratio(), counted(stats.nodes, "node"));
            rows.push(("compression ratio", text));
        }
        if let Some(measured) = &self.measurements {
            let offered = self.per_second(measured.offered);
            let count = |number: f64| HumanFloatCount(number.round()).to_string();
            let alone = match &measured.table_alone {
                Ok(alone) => format!("{} by the table alone ({:.0} %)", count(*alone), 100.0 * offered / alone),
                Err(why) => format!("the table alone was not measured: {why}"),
            };
            rows.push(("cycles", cycles_text(measured.cycles)));
            rows.push(("offers a second", format!("{}, {alone}", count(offered))));
        }
        if let Some((question, conclusion)) = &self.conclusion {
            rows.push(("", String::new()));
            rows.extend(runs::rows(conclusion, question, self.model));
        }
        if let Some((possible, outcome)) = self.answer {
            rows.push(("", String::new()));
            rows.extend(runs::rows_of_outcome(possible, outcome));
        }
        if let Some((branching, outcome)) = self.branched {
            rows.push(("", String::new()));
            rows.extend(branching::rows(branching, outcome));
        }
        rows
    }

    /// The report for people, with colours if it goes to a terminal that has them.
    pub fn text(&self, has_colors: bool) -> String {
        let line = |(name, value): &(&str, String)| format!("{name:<18} {}\n", escaping::line(value));
        let rows = self.rows();
        let lines = rows.iter().map(|row| if row.0.is_empty() { "\n".into() } else { line(row) });
        let found = self.finding.as_ref().map(|finding| self.found_text(finding));
        let run = self.conclusion.as_ref().and_then(|(_, conclusion)| runs::text(conclusion, self.model));
        let firings = self.surveyed.as_ref().and_then(|surveyed| net::firings(self.model, surveyed, self.exploration.end));
        let paths = self.branched.map(|(branching, outcome)| branching::text(branching, outcome, self.model));
        let verdicts = std::iter::once(self.verdict_lines(has_colors));
        verdicts.chain(lines).chain(firings).chain(found).chain(run).chain(paths).collect()
    }

    /// The path; or the state alone, and why the path is missing.
    fn found_text(&self, Finding { found, path }: &Finding) -> String {
        match path {
            Ok(path) => {
                let steps = counted(path.steps.len() as u64, "step");
                let title = format!("The shortest path has {steps}{}:", lines_of(self.model));
                format!("\n{}", path.text(self.model, self.checks, &title))
            }
            Err(error) => {
                let (what, state) = (self.checks.describe(&found.violation, self.model), state_text(self.model, &found.state));
                format!(
                    "\n{}\n  in {state}, {} from the initial state\nThe path cannot be shown: {}\n",
                    escaping::line(&what),
                    counted(found.level, "step"),
                    escaping::line(&format!("{error:#}"))
                )
            }
        }
    }
}

/// Says that the file of `--trace` is not written, since there is no path or run.
pub fn not_traced_text(path: &std::path::Path) -> String {
    format!("NOTHING written: no path or run to show; an earlier {} is left as it was", path.display())
}

/// Most names of a kind that the report lists.
const MOST_UNREACHED: usize = 20;

/// Name of a row that continues the one above it.
const BELOW: &str = " ";

/// Numbers of the parts that never occurred, and their names, a line each.
fn unreached_lines(parts: &[Unreached], end: End) -> Vec<String> {
    let numbers =
        parts.iter().map(|part| format!("{} of {}", HumanCount(part.names.len() as u64), kinds(part.total as u64, part.kind)));
    let mut text = numbers.collect::<Vec<_>>().join(", ");
    if end != End::Complete {
        text += " (the search is not complete)";
    }
    let mut lines = vec![text];
    for Unreached { kind, names, .. } in parts {
        let more = names.len().saturating_sub(MOST_UNREACHED);
        lines.extend(names.iter().take(MOST_UNREACHED).map(|name| format!("{kind} {name}")));
        if more > 0 {
            lines.push(format!("... and {} more", kinds(more as u64, kind)));
        }
    }
    lines
}

/// A number of parts of a kind, whose first noun is the one that has a plural.
fn kinds(number: u64, kind: &str) -> String {
    match kind.split_once(" of ") {
        Some((one, of)) => format!("{} of {of}", counted(number, one)),
        None => counted(number, kind),
    }
}

fn unreached_json(parts: &[Unreached]) -> Value {
    parts
        .iter()
        .map(|part| (kinds(2, part.kind).trim_start_matches("2 ").replace(' ', "_"), json!(part.names)))
        .collect::<Map<_, _>>()
        .into()
}

/// Why nothing was exported, according to the engine.
pub fn why_not_exported(exported: Option<&Result<Exported>>) -> Option<String> {
    match exported {
        Some(Ok(_)) => None,
        Some(Err(error)) => Some(format!("{error:#}")),
        None => Some("the search ended before all states and transitions were found".into()),
    }
}

fn end_word(end: End) -> &'static str {
    match end {
        End::Complete => "complete",
        End::Violation => "found",
        End::States => "max-states",
        End::Levels => "max-depth",
        End::Memory => "memory",
        End::Stopped(Stop::Interrupted) => "interrupted",
        End::Stopped(Stop::Time(_)) => "timeout",
        End::Observer => "found",
    }
}

/// Clock cycles by activity.
fn named(cycles: Cycles) -> [(&'static str, u64); 5] {
    let Cycles { fetching, generating, caching, putting, waiting } = cycles;
    [("fetching", fetching), ("generating", generating), ("caching", caching), ("putting", putting), ("waiting", waiting)]
}

fn cycles_json(cycles: Cycles) -> Value {
    named(cycles).into_iter().map(|(name, cycles)| (name.to_string(), json!(cycles))).collect::<Map<_, _>>().into()
}

/// Shares of the total, as text.
fn cycles_text(cycles: Cycles) -> String {
    let all = named(cycles).iter().map(|(_, cycles)| cycles).sum::<u64>().max(1) as f64;
    named(cycles).map(|(name, cycles)| format!("{name} {:.0} %", 100.0 * cycles as f64 / all)).join(", ")
}

/// The last checkpoint, as text.
fn checkpoint_text(Status { path, written, error }: &Status) -> String {
    let path = path.display();
    let of = |Written { states, bytes, took }: &Written| {
        format!("{path}, {}, {} in {:.2} s", counted(*states, "state"), HumanBytes(*bytes), took.as_secs_f64())
    };
    match (written, error) {
        (written, Some(error)) => {
            let before = written.as_ref().map_or_else(String::new, |written| format!("; before: {}", of(written)));
            format!("NOT written: {error}{before}")
        }
        (Some(written), None) => of(written),
        (None, None) => "none was due".into(),
    }
}

fn checkpoint_json(Status { path, written, error }: &Status) -> Value {
    json!({
        "file": path.display().to_string(),
        "states": written.map(|written| written.states),
        "bytes": written.map(|written| written.bytes),
        "seconds": written.map(|written| written.took.as_secs_f64()),
        "error": error,
    })
}

/// Mean waiting time of a rank, in seconds.
fn mean_waited(ranks: &Numbers) -> f64 {
    ranks.waited / ranks.states.len().max(1) as f64
}

fn ranks_json(ranks: &Numbers) -> Value {
    json!({
        "count": ranks.states.len(),
        "states": ranks.states,
        "balance": ranks.balance,
        "bytes_exchanged": ranks.bytes_exchanged,
        "seconds_waiting": mean_waited(ranks),
    })
}

fn ranks_text(ranks: &Numbers) -> String {
    let [least, most] = [ranks.states.iter().min(), ranks.states.iter().max()].map(|number| number.copied().unwrap_or(0));
    format!(
        "{}, with {} to {} each (the fullest has {:.3} times the mean); {} exchanged; each waited {:.2} s",
        ranks.states.len(),
        HumanCount(least),
        counted(most, "state"),
        ranks.balance,
        HumanBytes(ranks.bytes_exchanged),
        mean_waited(ranks)
    )
}
