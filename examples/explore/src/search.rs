//! From a model that was read to its job, and to the table of a search.

use crate::ask::Inquiry;
#[cfg(feature = "cuda")]
use crate::compiling::compile_ahead;
use crate::compiling::emit;
use crate::encodings;
use crate::first_table::{self, Listed, NeedsSmaller};
use crate::jobs::Job;
use crate::options::{CheckpointOptions, KEY_WORDS, Options, TableChoice, TableOptions};
use crate::outputs::Outputs;
use crate::properties::Properties;
use crate::reduce::{Reduction, write_dependencies};
use crate::report::Time;
use crate::simulate;
use crate::spread::{RankPlan, RankSet};
use crate::step;
use crate::tables;
use crate::task::Task;
use anyhow::{Context, Result, ensure};
use std::sync::Once;
use std::time::Instant;
use warpset_model::ir::Model;
use warpset_model::language::Text;
use warpset_model::reduction::stubborn::Stubborn;
use warpset_model::warnings::Warnings;
use warpset_search::checkpoint::{Checkpoints, Identity, Opened, Schedule};
#[cfg(feature = "cuda")]
use warpset_search::gpu;
use warpset_search::table_kind::TableKind;
use warpset_support::device::DeviceChoice;
use warpset_support::escaping;
use warpset_support::exit;
use warpset_support::output::Output;
use warpset_support::program::{self, Ended};
use warpset_support::stopping;

/// Why searches with questions about runs cannot be saved.
const NOT_OF_RUNS: &str =
    "--checkpoint and --resume cannot be combined with a property of runs (here the model's property process)";

/// Warning that a checkpoint is not used.
const NOT_RESUMED: &str = "warning: --resume: a place gets more tokens than the states of the checkpoint have room for: the \
                           search begins from the start\n";

/// Message of a search that begins again with slots of fewer bytes.
const SMALLER: &str = "note: the states fill --memory, so the search begins again in a table with smaller slots, which takes \
                       more time (--table names another)\n";

/// Does the job of the options with a model that was read, and prints the results. A net whose place needs more bits than it had
/// is explored again with more, and states that do not fit `--memory` in a table with smaller slots; `open` opens the files
/// before each time. With `properties`: answers those of their round and prints nothing.
pub fn search(
    options: &Options,
    plan: &RankPlan,
    text: &mut Text,
    mut open: impl FnMut() -> Result<Outputs>,
    start: Instant,
    properties: Option<&Properties>,
) -> Result<u8> {
    let warns = properties.is_none_or(|properties| properties.is_first_round);
    if let Some(path) = &options.checkpoints.resume {
        encodings::of_checkpoint(text, path)?;
    }
    let mut from_start = options.clone();
    from_start.checkpoints.resume = None;
    let mut attempt = Attempt { options, plan, properties, start, warns, is_smaller: false };
    loop {
        match attempt.run(text, open()?) {
            Ok(code) => return Ok(code),
            Err(error) if error.is::<NeedsSmaller>() => {
                if !options.display.json {
                    program::print_warning(SMALLER);
                }
                // The report has the times of the last search.
                attempt = Attempt { start: Instant::now(), warns: false, is_smaller: true, ..attempt };
                continue;
            }
            Err(error) => encodings::widen(text, plan, error)?,
        }
        if attempt.options.checkpoints.resume.is_some() {
            program::print_warning(NOT_RESUMED);
        }
        // The states of a checkpoint have the fields that were too small.
        attempt = Attempt { options: &from_start, warns: false, ..attempt };
    }
}

/// One attempt at a job.
struct Attempt<'a> {
    options: &'a Options,
    plan: &'a RankPlan,
    /// The properties to answer, those of their round.
    properties: Option<&'a Properties>,
    start: Instant,
    /// Prints the warnings of the model, which no attempt before did.
    warns: bool,
    /// Takes a table whose slots have fewer bytes than those of the first one.
    is_smaller: bool,
}

impl Attempt<'_> {
    fn run(&self, text: &mut Text, outputs: Outputs) -> Result<u8> {
        let Self { options, plan, .. } = *self;
        let Options { table, measures, display, .. } = options;
        let inquiry = Inquiry::of(&options.input, &options.checks, &options.runs, text, self.properties)?;
        if self.warns {
            print_warnings(&inquiry.warnings, options.checks.strict)?;
        }
        let opened = options.checkpoints.resume.as_deref().map(Opened::open).transpose()?;
        let may_be_keys = opened.as_ref().map_or(table.choice == TableChoice::Compact, Opened::has_keys);
        if may_be_keys && text.model().layout.words < KEY_WORDS {
            // Keys have two words, and all states of the search as many.
            text.model_mut().layout.words = KEY_WORDS;
        }
        let is_asked = options.checks.asks() || options.runs.asks() || inquiry.question.is_some();
        let only = |file: Option<Output>| file.context("the file of this job was not opened");
        match &options.job.of_model(options, text.model(), is_asked)? {
            Job::Emit(_) => {
                let (choice, file) = (table.choice, only(outputs.only)?);
                emit(choice, measures, display, text.model(), &inquiry.checks, file)
            }
            Job::Dependencies(_) => write_dependencies(display, text.model(), only(outputs.only)?),
            Job::EmitBuchi(_) => inquiry.emit(&options.runs, display, text, only(outputs.only)?),
            Job::Simulate(walks) => {
                stopping::stop_watching();
                simulate::run(*walks, table, display, plan, text, &inquiry.checks, outputs.trace)
            }
            Job::Step => {
                stopping::stop_watching();
                step::walk(text, &[], None).map(|()| 0)
            }
            Job::Tables => {
                stopping::stop_watching();
                let (device, _) = RankSet::open(plan, &table.device)?;
                tables::print(table, display, text.model(), &device)
            }
            Job::Search | Job::Properties(_) => self.explore(text, &inquiry, outputs, opened),
        }
    }

    /// Explores, in a table that suits the options and the device.
    fn explore(&self, text: &Text, inquiry: &Inquiry, outputs: Outputs, opened: Option<Opened>) -> Result<u8> {
        let Self { options, plan, properties, start, .. } = *self;
        let (model, checks) = (text.model(), &inquiry.checks);
        let parse = start.elapsed();
        start_threads(&options.table.device)?;
        stopping::stop_watching();
        let start = Instant::now();
        let is_about_runs = inquiry.is_about_runs();
        let reduction = Reduction::of(&options.checks, model, checks, is_about_runs)?;
        // A reduction that saves nothing leaves the choice of the engine free.
        let mut unreduced = options.clone();
        unreduced.checks.reduce = None;
        let options = if reduction.as_ref().is_some_and(|reduction| reduction.stubborn.is_none()) { &unreduced } else { options };
        let stubborn = reduction.as_ref().and_then(|reduction| reduction.stubborn.as_ref());
        #[cfg(feature = "cuda")]
        let _ahead = (*plan == RankPlan::Alone).then(|| {
            let timed = options.measures.gpu_time;
            let sources = gpu::Sources { timed, stubborn, ..gpu::Sources::new(model, checks) };
            compile_ahead(&options.table, options.outputs.need_threads(), sources, model.layout.words)
        });
        let (device, mut rank_set) = RankSet::open(plan, &options.table.device)?;
        let device_opened = start.elapsed();
        let time = Time { parse, device: device_opened, table: device_opened, ..Time::default() };
        let of_states = rank_set.is_none() && !is_about_runs;
        let has_depth = options.limits.max_depth.is_some();
        ensure!(
            !has_depth || !is_about_runs,
            "--max-depth cannot be combined with a property of runs: its verdict needs all states"
        );
        let kind = first_table::kind(&options.table, &model.layout, &device, of_states)?;
        let smaller = first_table::smaller(&options.table, options.writes_during_search(), &model.layout, kind)
            .filter(|_| of_states && properties.is_none());
        let (kind, may_be_smaller) = if self.is_smaller { (smaller.unwrap_or(kind), false) } else { (kind, smaller.is_some()) };
        let size = match &mut rank_set {
            Some(rank_set) => rank_set.size(&options.table, &model.layout)?,
            None => {
                let listed = match model.property {
                    Some(_) => Listed::All,
                    None if inquiry.branching.is_some() || properties.is_some_and(Properties::has_branching) => {
                        Listed::LevelsAndSets
                    }
                    None => Listed::Levels,
                };
                first_table::size(&options.table, kind, &model.layout, &device, 1, listed)?
            }
        };
        let (table, checkpoints) = saved(&options.checkpoints, &options.table, inquiry, model, stubborn, opened.as_ref(), kind)?;
        let task = Task {
            options,
            text,
            inquiry,
            properties,
            outputs,
            device: &device,
            rank_set,
            checkpoints,
            opened,
            reduction,
            may_be_smaller,
        };
        task.explore_in(table, size, time)
    }
}

/// Starts the threads of searches. A second attempt has the threads of the first.
fn start_threads(device: &DeviceChoice) -> Result<()> {
    static THREADS: Once = Once::new();
    let mut built = Ok(());
    THREADS.call_once(|| built = rayon::ThreadPoolBuilder::new().num_threads(device.threads()).build_global());
    built.context("threads")
}

/// The kind of table, which is that of the checkpoint if a search is resumed, and the checkpoints to write. `kind`: of the table
/// of another search.
fn saved(
    options: &CheckpointOptions,
    table: &TableOptions,
    inquiry: &Inquiry,
    model: &Model,
    stubborn: Option<&Stubborn>,
    opened: Option<&Opened>,
    kind: TableKind,
) -> Result<(TableKind, Option<Checkpoints>)> {
    let is_kept = options.checkpoint.is_some() || options.resume.is_some();
    let identity = is_kept.then(|| Identity::of(model, &inquiry.checks, stubborn));
    ensure!(identity.is_none() || !inquiry.is_about_runs(), "{NOT_OF_RUNS}");
    let words = model.layout.words;
    let kind = match (&identity, opened) {
        (Some(identity), Some(opened)) => opened.table_of(identity, words, table.choice.kind().map(|_| table.kind_for(words)))?,
        _ => kind,
    };
    // Searches about runs store data of each state by slot number, and rows may have larger numbers than slots.
    ensure!(
        kind != TableKind::Indexed || !inquiry.is_about_runs(),
        "--table indexed cannot be combined with questions about runs or paths (--ltl, --buchi, --ef, --ctl, --livelock, a property \
         process); use another kind of table"
    );
    let begun = opened.map_or(0, Opened::levels);
    let checkpoints = identity.zip(schedule(options));
    let conditions = inquiry.checks.conditions.len();
    let checkpoints = checkpoints.map(|(identity, schedule)| Checkpoints::new(schedule, identity, conditions, kind, begun));
    Ok((kind, checkpoints))
}

/// Prints warnings; with `strict` they end the search.
fn print_warnings(warnings: &Warnings, strict: bool) -> Result<()> {
    program::print_warning(&warnings.text());
    match warnings.sentence().filter(|_| strict) {
        Some(sentence) => Err(Ended { code: exit::ERROR, why: format!("with --strict, {sentence}") }.into()),
        None => Ok(()),
    }
}

/// Path and interval of checkpoints, if they are requested.
fn schedule(options: &CheckpointOptions) -> Option<Schedule> {
    let (every, levels) = (options.checkpoint_every, options.checkpoint_levels);
    let warn = |text: &str| program::print_warning(&escaping::lines(text));
    Some(Schedule { path: options.checkpoint.clone()?, every, levels, warn })
}
