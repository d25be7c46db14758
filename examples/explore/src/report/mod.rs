//! The report of an exploration: its results become one [`Summary`], from which text, JSON and HTML come.

pub mod branching;
pub mod html;
pub mod net;
mod rows;
pub mod runs;
pub mod summary;
pub mod verdicts;

use crate::export::Exported;
use crate::first_table::FEW_STATES;
use crate::record::Recorded;
use crate::reduce::Reduction;
use anyhow::Result;
use branching::FormulaFigures;
use indicatif::HumanBytes;
use net::NetFigures;
use runs::AboutRuns;
use serde_json::json;
use std::time::Duration;
use summary::{CheckpointFigures, CountFigures, GpuFigures, RankFigures, Summary, TableFigures, TimeFigures};
use warpset::{Device, Spec, Stats};
use warpset_model::checks::Checks;
use warpset_model::ir::Model;
use warpset_model::trace::{Path, States, lines_of, state_json, state_text};
use warpset_model::warnings::Warnings;
use warpset_search::checkpoint::Status;
use warpset_search::coverage::Unreached;
use warpset_search::ctl::{self, Branching};
use warpset_search::exploration::{Counts, End, Exploration, Found, bytes_of_marks};
use warpset_search::liveness::check::{Conclusion, Question, Verdict};
use warpset_search::liveness::possible::{Outcome, Possible};
use warpset_search::measurements::Measurements;
use warpset_search::ranks::Numbers;
use warpset_search::survey::Surveyed;
use warpset_support::escaping;
use warpset_support::exit;
use warpset_support::numbers::counted;
use warpset_support::output::Unwritten;
use warpset_support::program::Ended;
use warpset_support::stopping::Stop;

pub struct Report<'a> {
    pub model: &'a Model,
    pub checks: &'a Checks,
    /// Parts of the states that paths show.
    pub states: States,
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
    pub conclusion: Option<(&'a Question, &'a Conclusion)>,
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

    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.time.explore.as_secs_f64()
    }

    /// The program's exit code.
    pub fn exit_code(&self) -> u8 {
        // Errors and interruptions after the exploration count, too.
        let of_path = self.finding.as_ref().and_then(|finding| finding.path.as_ref().err());
        let of_run = self.conclusion.and_then(|(_, conclusion)| conclusion.lasso.as_ref()?.as_ref().err());
        let of_answer = self.answer.and_then(|(_, outcome)| outcome.why.as_ref());
        let of_formulas = self.branched.and_then(|(_, outcome)| outcome.why.as_ref());
        let mut errors = [of_path, of_run, of_answer, of_formulas].into_iter().flatten();
        let is_interrupted =
            errors.any(|error| error.downcast_ref().is_some_and(|ended: &Ended| ended.code == exit::INTERRUPTED));
        match (&self.finding, self.exploration.end) {
            (_, End::Stopped(Stop::Interrupted)) => exit::INTERRUPTED,
            _ if is_interrupted => exit::INTERRUPTED,
            _ if self.unwritten.sentence().is_some() => exit::ERROR,
            (None, _) if self.conclusion.is_some() => self.conclusion.map_or(0, |(_, conclusion)| runs::exit_code(conclusion)),
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

    /// The results as one value.
    pub fn summary(&self) -> Summary {
        let (counts, stats, time, model) = (self.counts(), &self.stats, &self.time, self.model);
        let end = self.exploration.end;
        let finding = self.finding.as_ref();
        let seconds = Duration::as_secs_f64;
        let answered = match (self.conclusion, self.answer) {
            (Some((_, conclusion)), _) => Some((&conclusion.search, &conclusion.run)),
            (None, Some((_, outcome))) => Some((&outcome.search, &time.path)),
            (None, None) => None,
        };
        let why_no_path = self.answer.and_then(|(_, outcome)| runs::why_no_path(outcome));
        let no_path = finding.and_then(|finding| finding.path.as_ref().err()).map(|error| format!("{error:#}"));
        let (unreached, no_unreached) = match &self.coverage {
            Some(Ok(parts)) => (Some(parts.clone()), None),
            Some(Err(error)) => (None, Some(format!("{error:#}"))),
            None => (None, None),
        };
        Summary {
            schema: summary::SCHEMA,
            model: model.source.name.clone(),
            constants: model.constants.iter().map(|of| (of.name.clone(), json!(of.value))).collect(),
            all_constants: model.all_constants.clone(),
            checks: self.verdicts(),
            complete: end == End::Complete,
            end: summary::end_word(end),
            explored: self.end_text(),
            basis: summary::BASIS,
            counts: CountFigures {
                states: counts.states,
                transitions: counts.transitions,
                deadlocks: counts.deadlocks,
                levels: counts.levels,
                widest_level: counts.widest_level,
                overflows: counts.overflows + self.warnings.values,
                overflows_of_text: self.warnings.values,
                resumed_states: self.known,
            },
            levels: self.exploration.level_sizes.of_all(counts.levels).map(<[u64]>::to_vec),
            time: TimeFigures {
                parse: seconds(&time.parse),
                device: seconds(&time.device),
                table: seconds(&time.table),
                compile: seconds(&time.compile),
                explore: seconds(&time.explore),
                survey: seconds(&time.survey),
                answer: answered.map(|(answer, _)| seconds(answer)),
                path: seconds(answered.map_or(&time.path, |(_, path)| path)),
                states_per_second: self.per_second(counts.states - self.known.unwrap_or(0)),
            },
            table: TableFigures {
                kind: self.spec.to_string(),
                reason: self.table_reason.clone(),
                words: model.layout.words,
                slots: stats.slots,
                bytes: stats.bytes,
                bytes_lists: self.exploration.list_bytes,
                bytes_per_state: stats.bytes_per_vector(),
                fill: stats.fill(),
                nodes: stats.nodes,
                has_nodes: stats.node_slots > 0,
                compression_ratio: stats.compression_ratio(),
                memory: self.memory,
                memory_lacks: self.memory_lacks(),
                states_in_memory: self.states_in_memory,
                memory_for_twice: self.memory_needed(),
            },
            device: self.ranks.as_ref().map_or_else(|| self.device.to_string(), |ranks| ranks.devices.clone()),
            engine: self.engine.clone(),
            ranks: self.ranks.as_ref().map(rank_figures),
            gpu_time: self.measurements.as_ref().map(|measured| GpuFigures {
                cycles: measured.cycles,
                offered: measured.offered,
                offered_per_second: self.per_second(measured.offered),
                table_alone_per_second: measured.table_alone.as_ref().ok().copied(),
                no_table_alone: measured.table_alone.as_ref().err().cloned(),
            }),
            violation: finding.map(|finding| self.checks.describe(&finding.found.violation, model, &finding.found.state)),
            state: finding.map(|finding| state_json(model, &finding.found.state)),
            path: self.path_json(),
            no_path: why_no_path.or(no_path),
            about_runs: AboutRuns::of(self.conclusion, self.answer, model, self.states),
            ctl: self.branched.map(|(branching, outcome)| FormulaFigures::of(branching, outcome)),
            net: NetFigures::of(model, self.surveyed.as_ref(), end),
            reduction: self.reduction.filter(|reduction| reduction.stubborn.is_some()).map(Reduction::word),
            reduction_remark: self.reduction.map(|reduction| reduction.remark().to_string()),
            warnings: self.warnings.json(),
            warning_count: self.warnings.count,
            recorded: self.recorded.map(|recorded| recorded.vectors),
            recorded_bytes: self.recorded.map(|recorded| recorded.bytes),
            not_recorded: self.recorded.map(|recorded| recorded.left_out),
            exported_bytes: self.exported.map(|exported| exported.bytes),
            not_exported: self.not_exported.clone(),
            not_traced: self.not_traced.map(not_traced_text),
            checkpoint: self.checkpoint.as_ref().map(checkpoint_figures),
            unreached,
            no_unreached,
            error: self.unwritten.sentence(),
            exit_code: self.exit_code(),
        }
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
        let limit = self.memory.map(HumanBytes);
        let at = limit.map_or_else(|| "no more memory".into(), |limit| format!("stopped at --memory {limit}"));
        if self.ranks.is_some() {
            return if self.memory.is_some() { format!("{at} of each device") } else { at };
        }
        let (stats, lists) = (&self.stats, self.exploration.list_bytes);
        let needed = |bytes: u64| format!("; twice as many states need about --memory {}", HumanBytes(bytes));
        let needed = self.memory_needed().map(needed).unwrap_or_default();
        let (taken, lists, fill) = (HumanBytes(stats.bytes), HumanBytes(lists), 100.0 * stats.fill());
        let of_nodes = 100.0 * stats.nodes as f64 / stats.node_slots.max(1) as f64;
        let nodes = if of_nodes > fill { format!(", its nodes {of_nodes:.0} %") } else { String::new() };
        let lack = match self.memory_lacks() {
            Some(part @ ("slots" | "nodes")) => format!("; its {part} were full"),
            // Other searches mark waiting states in the table when they do not fit a list.
            Some(_) if self.model.property.is_none() => format!(
                "; the lists had no room for more, and marks of waiting states take {} beside this table",
                HumanBytes(bytes_of_marks(stats.slots))
            ),
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

    /// The report for people, with colours if it goes to a terminal that has them.
    pub fn text(&self, summary: &Summary, has_colors: bool) -> String {
        let found = self.finding.as_ref().map(|finding| self.found_text(finding));
        let run = self.conclusion.and_then(|(_, conclusion)| runs::text(conclusion, self.model, self.states));
        let firings = summary.net.as_ref().and_then(NetFigures::firings_text);
        let paths = self.branched.map(|(branching, outcome)| branching::text(branching, outcome, self.model, self.states));
        let figures = [verdicts::lines(summary, has_colors), summary.lines()];
        figures.into_iter().chain(firings).chain(found).chain(run).chain(paths).collect()
    }

    /// The path; or the state alone, and why the path is missing.
    fn found_text(&self, Finding { found, path }: &Finding) -> String {
        match path {
            Ok(path) => {
                let steps = counted(path.steps.len() as u64, "step");
                let title = format!("The shortest path has {steps}{}:", lines_of(self.model));
                format!("\n{}", path.text(self.model, self.checks, &title, self.states))
            }
            Err(error) => {
                let what = self.checks.describe(&found.violation, self.model, &found.state);
                let state = state_text(self.model, &found.state);
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

/// Why nothing was exported, according to the engine.
pub fn why_not_exported(exported: Option<&Result<Exported>>) -> Option<String> {
    match exported {
        Some(Ok(_)) => None,
        Some(Err(error)) => Some(format!("{error:#}")),
        None => Some("the search ended before all states and transitions were found".into()),
    }
}

fn rank_figures(ranks: &Numbers) -> RankFigures {
    RankFigures {
        count: ranks.states.len(),
        states: ranks.states.clone(),
        balance: ranks.balance,
        bytes_exchanged: ranks.bytes_exchanged,
        seconds_waiting: ranks.waited / ranks.states.len().max(1) as f64,
    }
}

fn checkpoint_figures(Status { path, written, error }: &Status) -> CheckpointFigures {
    CheckpointFigures {
        file: path.display().to_string(),
        states: written.map(|written| written.states),
        bytes: written.map(|written| written.bytes),
        seconds: written.map(|written| written.took.as_secs_f64()),
        error: error.clone(),
    }
}
