//! The results of a run as one value, built once at its end: text, JSON and HTML come from it.

use super::branching::FormulaFigures;
use super::net::NetFigures;
use super::rows::Rows;
use super::runs::AboutRuns;
use super::verdicts::Check;
use indicatif::{HumanBytes, HumanCount, HumanFloatCount};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use warpset_model::ir::Constant;
use warpset_search::coverage::Unreached;
use warpset_search::exploration::End;
use warpset_search::measurements::Cycles;
use warpset_support::escaping;
use warpset_support::numbers::counted;

/// Version of the object that `--json` prints. It changes if a key goes or changes its meaning, not if one comes.
pub const SCHEMA: u32 = 4;

/// States from which on the text has figures for each of them; the JSON has them always.
const FEW_STATES_FOR_RATES: u64 = 100_000;

/// Basis of all counts: every kind of table stores its vectors completely, whole or in parts.
pub const BASIS: &str = "exact: states are compared as a whole";

/// The object that `--json` prints; `docs/report.schema.json` describes it.
#[derive(Serialize)]
pub struct Summary {
    pub schema: u32,
    pub model: String,
    pub constants: Map<String, Value>,
    /// All constants of the model's text with their values: of the page.
    #[serde(skip)]
    pub all_constants: Vec<Constant>,
    pub checks: Vec<Check>,
    pub complete: bool,
    pub end: &'static str,
    /// How far the search came, in words.
    pub explored: String,
    pub basis: &'static str,
    pub counts: CountFigures,
    /// Number of states of each level, if all are known.
    pub levels: Option<Vec<u64>>,
    pub time: TimeFigures,
    pub table: TableFigures,
    pub device: String,
    pub engine: String,
    pub ranks: Option<RankFigures>,
    /// Measurements on a GPU.
    pub gpu_time: Option<GpuFigures>,
    pub violation: Option<String>,
    pub state: Option<Value>,
    pub path: Option<Value>,
    pub no_path: Option<String>,
    #[serde(flatten)]
    pub about_runs: Option<AboutRuns>,
    pub ctl: Option<FormulaFigures>,
    #[serde(flatten)]
    pub net: Option<NetFigures>,
    /// The reduction. Counts are those of the model only if this is `None`.
    pub reduction: Option<&'static str>,
    /// Says what the reduction did, or why it did nothing.
    pub reduction_remark: Option<String>,
    pub warnings: Value,
    pub warning_count: u64,
    pub recorded: Option<u64>,
    pub recorded_bytes: Option<u64>,
    pub not_recorded: Option<u64>,
    pub exported_bytes: Option<u64>,
    pub not_exported: Option<String>,
    pub not_traced: Option<String>,
    pub checkpoint: Option<CheckpointFigures>,
    #[serde(serialize_with = "by_kind")]
    pub unreached: Option<Vec<Unreached>>,
    /// Why parts that never occurred are not known although they were asked for.
    pub no_unreached: Option<String>,
    /// The outputs that could not be written.
    pub error: Option<String>,
    pub exit_code: u8,
}

#[derive(Serialize)]
pub struct CountFigures {
    pub states: u64,
    pub transitions: u64,
    pub deadlocks: u64,
    /// Number of levels that have begun.
    pub levels: u64,
    pub widest_level: u64,
    /// Stores that wrapped, and values of the text that did not fit.
    pub overflows: u64,
    pub overflows_of_text: u64,
    /// States that a resumed search had found before.
    pub resumed_states: Option<u64>,
}

/// Seconds of the phases of a run.
#[derive(Serialize)]
pub struct TimeFigures {
    pub parse: f64,
    pub device: f64,
    pub table: f64,
    pub compile: f64,
    pub explore: f64,
    pub survey: f64,
    /// To answer a question about runs, or about where states lead.
    pub answer: Option<f64>,
    pub path: f64,
    pub states_per_second: f64,
}

#[derive(Serialize)]
pub struct TableFigures {
    pub kind: String,
    /// Why it is of this kind, if `--table` does not name the kind.
    pub reason: Option<String>,
    /// Words of a state.
    pub words: usize,
    pub slots: u64,
    pub bytes: u64,
    pub bytes_lists: u64,
    pub bytes_per_state: f64,
    pub fill: f64,
    pub nodes: u64,
    #[serde(skip)]
    pub has_nodes: bool,
    pub compression_ratio: f64,
    /// The limit of `--memory`.
    pub memory: Option<u64>,
    pub memory_lacks: Option<&'static str>,
    pub states_in_memory: Option<u64>,
    pub memory_for_twice: Option<u64>,
}

#[derive(Serialize)]
pub struct RankFigures {
    pub count: usize,
    pub states: Vec<u64>,
    pub balance: f64,
    pub bytes_exchanged: u64,
    /// Mean over the ranks.
    pub seconds_waiting: f64,
}

#[derive(Serialize)]
pub struct GpuFigures {
    #[serde(serialize_with = "by_activity")]
    pub cycles: Cycles,
    pub offered: u64,
    pub offered_per_second: f64,
    pub table_alone_per_second: Option<f64>,
    pub no_table_alone: Option<String>,
}

#[derive(Serialize)]
pub struct CheckpointFigures {
    pub file: String,
    pub states: Option<u64>,
    pub bytes: Option<u64>,
    pub seconds: Option<f64>,
    pub error: Option<String>,
}

impl Summary {
    /// Whether the search has so few states that figures for each of them would mostly be those of an empty table.
    fn is_small(&self) -> bool {
        self.counts.states < FEW_STATES_FOR_RATES
    }

    /// The number of states and, if it is not the model's, what it is.
    fn states_text(&self) -> String {
        let count = HumanCount(self.counts.states);
        if matches!(self.about_runs, Some(AboutRuns::Runs(_))) {
            return format!("{count} (of model and automaton)");
        }
        self.reduction_remark.as_ref().map_or_else(|| count.to_string(), |remark| format!("{count} ({remark})"))
    }

    /// The figures.
    pub fn rows(&self) -> Rows {
        let Self { counts, time, table, .. } = self;
        let count = |number| HumanCount(number).to_string();
        let between = || ("", String::new());
        let why = table.reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        let mut rows = vec![
            ("model", format!("{} ({} per state)", self.model, counted(table.words as u64, "word"))),
            ("device", format!("{}, {}", self.device, self.engine)),
            ("table", format!("{}{why}", table.kind)),
            between(),
            ("states", self.states_text()),
            ("transitions", count(counts.transitions)),
            ("deadlocks", count(counts.deadlocks)),
            ("levels", format!("{} (the widest has {})", count(counts.levels), counted(counts.widest_level, "state"))),
            ("explored", self.explored.clone()),
            ("basis", self.basis.into()),
        ];
        if !self.constants.is_empty() {
            let constants = self.constants.iter().map(|(name, value)| format!("{} = {value}", escaping::line(name)));
            rows.insert(1, ("constants", constants.collect::<Vec<_>>().join(", ")));
        }
        rows.extend(self.net.iter().flat_map(NetFigures::rows));
        rows.extend(self.rows_of_outputs());
        rows.push(between());
        rows.push((
            "time",
            format!(
                "parse {:.2} s, table {:.2} s, compile {:.2} s, explore {:.2} s",
                time.parse, time.table, time.compile, time.explore
            ),
        ));
        rows.push(("states a second", HumanFloatCount(time.states_per_second.round()).to_string()));
        rows.extend(self.rows_of_memory());
        rows.extend(self.ranks.as_ref().map(|ranks| ("ranks", ranks.text())));
        if table.has_nodes {
            rows.push(("compression ratio", format!("{:.3} ({})", table.compression_ratio, counted(table.nodes, "node"))));
        }
        rows.extend(self.gpu_time.iter().flat_map(GpuFigures::rows));
        for more in [self.about_runs.as_ref().map(AboutRuns::rows), self.ctl.as_ref().map(FormulaFigures::rows)] {
            rows.extend(more.into_iter().flat_map(|more| std::iter::once(between()).chain(more)));
        }
        rows
    }

    fn rows_of_outputs(&self) -> Rows {
        let mut rows = Rows::new();
        let of_text = self.counts.overflows_of_text;
        let overflows = [
            (self.counts.overflows - of_text, "store", "wrapped"),
            (of_text, "value", "of the text not taken as written (see the warnings)"),
        ];
        let overflows = overflows.iter().filter(|(number, ..)| *number > 0);
        let overflows: Vec<String> = overflows.map(|(number, one, what)| format!("{} {what}", counted(*number, one))).collect();
        if !overflows.is_empty() {
            rows.push(("overflows", overflows.join("; ")));
        }
        let exported = self.exported_bytes.map(|bytes| format!("all states and transitions, {}", HumanBytes(bytes)));
        rows.extend(exported.map(|text| ("exported", text)));
        rows.extend(self.not_exported.as_ref().map(|why| ("exported", format!("NOTHING: {why}"))));
        rows.extend(self.not_traced.clone().map(|text| ("trace", text)));
        rows.extend(self.error.clone().map(|why| ("NOT written", why)));
        if let Some(parts) = &self.unreached {
            let mut lines = unreached_lines(parts, self.complete).into_iter();
            rows.extend(lines.next().map(|line| ("unreached", line)));
            rows.extend(lines.map(|line| (BELOW, line)));
        }
        rows.extend(self.no_unreached.as_ref().map(|why| ("unreached", format!("NOT counted: {why}"))));
        let known = self.counts.resumed_states;
        rows.extend(known.map(|known| ("resumed", format!("from {}, included in the counts", counted(known, "state")))));
        rows.extend(self.checkpoint.as_ref().map(|checkpoint| ("checkpoint", checkpoint.text())));
        if let (Some(vectors), Some(bytes), Some(left_out)) = (self.recorded, self.recorded_bytes, self.not_recorded) {
            let more = format!("; {} more left out (--record-bytes)", HumanCount(left_out));
            let more = if left_out == 0 { "" } else { &more };
            rows.push(("recorded", format!("{}, {}{more}", counted(vectors, "vector"), HumanBytes(bytes))));
        }
        rows
    }

    fn rows_of_memory(&self) -> Rows {
        let table = &self.table;
        let a_state = if self.is_small() { String::new() } else { format!("{:.1} bytes a state, ", table.bytes_per_state) };
        let mut rows = vec![(
            "memory",
            format!(
                "{} of table, {a_state}{:.0} % full; up to {} of lists of states",
                HumanBytes(table.bytes),
                100.0 * table.fill,
                HumanBytes(table.bytes_lists)
            ),
        )];
        if let Some(states) = table.states_in_memory.filter(|_| !self.is_small()) {
            let states = HumanCount(states);
            let room = match table.memory {
                Some(limit) => format!("about {states} states in --memory {}", HumanBytes(limit)),
                None => format!("about {states} states in the memory that is free"),
            };
            rows.push(("room", room));
        }
        rows
    }

    /// The rows, a line each.
    pub fn lines(&self) -> String {
        let line = |(name, value): &(&str, String)| match *name {
            "" => "\n".into(),
            name => format!("{name:<18} {}\n", escaping::line(value)),
        };
        self.rows().iter().map(line).collect()
    }
}

impl RankFigures {
    fn text(&self) -> String {
        let [least, most] = [self.states.iter().min(), self.states.iter().max()].map(|number| number.copied().unwrap_or(0));
        format!(
            "{}, with {} to {} each (the fullest has {:.3} times the mean); {} exchanged; each waited {:.2} s",
            self.count,
            HumanCount(least),
            counted(most, "state"),
            self.balance,
            HumanBytes(self.bytes_exchanged),
            self.seconds_waiting
        )
    }
}

impl GpuFigures {
    fn rows(&self) -> Rows {
        let count = |number: f64| HumanFloatCount(number.round()).to_string();
        let of_table = self.table_alone_per_second.map(|alone| {
            let share = 100.0 * self.offered_per_second / alone;
            format!("{} by the table alone ({share:.0} %)", count(alone))
        });
        let why = self.no_table_alone.as_ref().map(|why| format!("the table alone was not measured: {why}"));
        let alone = of_table.or(why).unwrap_or_default();
        let offers = format!("{}, {alone}", count(self.offered_per_second));
        vec![("cycles", cycles_text(self.cycles)), ("offers a second", offers)]
    }
}

impl CheckpointFigures {
    fn text(&self) -> String {
        let written = self.states.zip(self.bytes).zip(self.seconds).map(|((states, bytes), seconds)| {
            format!("{}, {}, {} in {seconds:.2} s", self.file, counted(states, "state"), HumanBytes(bytes))
        });
        match (written, &self.error) {
            (written, Some(error)) => {
                let before = written.map_or_else(String::new, |written| format!("; before: {written}"));
                format!("NOT written: {error}{before}")
            }
            (Some(written), None) => written,
            (None, None) => "none was due".into(),
        }
    }
}

/// Most names of a kind that the text lists.
const MOST_UNREACHED: usize = 20;

/// Name of a row that continues the one above it.
const BELOW: &str = " ";

/// Numbers of the parts that never occurred, and their names, a line each.
fn unreached_lines(parts: &[Unreached], is_complete: bool) -> Vec<String> {
    let numbers =
        parts.iter().map(|part| format!("{} of {}", HumanCount(part.names.len() as u64), kinds(part.total as u64, part.kind)));
    let mut text = numbers.collect::<Vec<_>>().join(", ");
    if !is_complete {
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

/// The names of the parts that never occurred, by the kind of the part.
fn by_kind<S: Serializer>(parts: &Option<Vec<Unreached>>, serializer: S) -> Result<S::Ok, S::Error> {
    let key = |part: &Unreached| kinds(2, part.kind).trim_start_matches("2 ").replace(' ', "_");
    match parts {
        Some(parts) => serializer.collect_map(parts.iter().map(|part| (key(part), &part.names))),
        None => serializer.serialize_none(),
    }
}

/// Clock cycles by activity.
fn named(cycles: Cycles) -> [(&'static str, u64); 5] {
    let Cycles { fetching, generating, caching, putting, waiting } = cycles;
    [("fetching", fetching), ("generating", generating), ("caching", caching), ("putting", putting), ("waiting", waiting)]
}

fn by_activity<S: Serializer>(cycles: &Cycles, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(named(*cycles))
}

/// Shares of the total, as text.
fn cycles_text(cycles: Cycles) -> String {
    let all = named(cycles).iter().map(|(_, cycles)| cycles).sum::<u64>().max(1) as f64;
    named(cycles).map(|(name, cycles)| format!("{name} {:.0} %", 100.0 * cycles as f64 / all)).join(", ")
}

/// The word for the end of a search.
pub fn end_word(end: End) -> &'static str {
    match end {
        End::Complete => "complete",
        End::Violation | End::Observer => "found",
        End::States => "max-states",
        End::Levels => "max-depth",
        End::Memory => "memory",
        End::Stopped(warpset_support::stopping::Stop::Interrupted) => "interrupted",
        End::Stopped(warpset_support::stopping::Stop::Time(_)) => "timeout",
    }
}
