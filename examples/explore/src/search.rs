//! From a model that was read to its search.

use crate::ask;
#[cfg(feature = "cuda")]
use crate::compiling::compile_ahead;
use crate::compiling::emit;
use crate::encodings;
use crate::first_table::{self, Listed, NeedsSmaller};
use crate::jobs;
use crate::options::{KEY_WORDS, Options, TableChoice};
use crate::outputs::Outputs;
use crate::properties::Properties;
use crate::reduce::{Reduction, write_dependencies};
use crate::report::Time;
use crate::simulate;
use crate::spread::{RankPlan, RankSet};
use crate::step;
use crate::task::Task;
use anyhow::{Context, Result, ensure};
use std::time::Instant;
use warpset::{Bucket, CompactTree, Indexed, Root, Spec, Tree, VectorTable};
use warpset_model::checks::{Checks, Role};
use warpset_model::ir::Source;
use warpset_model::language::Text;
use warpset_model::warnings::Warnings;
use warpset_search::checkpoint::{Checkpoints, Identity, Opened, Schedule};
use warpset_search::table_kind::TableKind;
use warpset_support::escaping;
use warpset_support::exit;
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

/// Explores a model that was read, and prints the results. A net whose place needs more bits than it had is explored again with
/// more, and states that do not fit `--memory` in a table with smaller slots; `open` opens the files before each time. With
/// `properties`: answers those of their round and prints nothing.
pub fn search(
    options: &Options,
    plan: &RankPlan,
    text: &mut Text,
    mut open: impl FnMut() -> Result<Outputs>,
    mut start: Instant,
    properties: Option<&Properties>,
) -> Result<u8> {
    let mut again = Attempt { warns: properties.is_none_or(|properties| properties.is_first_round), is_smaller: false };
    if let Some(path) = &options.checkpoints.resume {
        encodings::of_checkpoint(text, path)?;
    }
    let mut from_start = options.clone();
    from_start.checkpoints.resume = None;
    let mut options = options;
    loop {
        match attempt(options, plan, text, open()?, start, properties, again) {
            Ok(code) => return Ok(code),
            Err(error) if error.is::<NeedsSmaller>() => {
                if !options.display.json {
                    program::print_warning(SMALLER);
                }
                // The report has the times of the last search.
                (start, again) = (Instant::now(), Attempt { warns: false, is_smaller: true });
                continue;
            }
            Err(error) => encodings::widen(text, plan, error)?,
        }
        if options.checkpoints.resume.is_some() {
            program::print_warning(NOT_RESUMED);
        }
        // The states of a checkpoint have the fields that were too small.
        options = &from_start;
        again.warns = false;
    }
}

/// Differences of a search that begins again.
#[derive(Clone, Copy)]
struct Attempt {
    /// Prints the warnings of the model, which no attempt before did.
    warns: bool,
    /// Takes a table whose slots have fewer bytes than those of the first one.
    is_smaller: bool,
}

/// One exploration for [`search`]; with `properties`, answers those of its round and prints nothing.
fn attempt(
    options: &Options,
    plan: &RankPlan,
    text: &mut Text,
    outputs: Outputs,
    start: Instant,
    properties: Option<&Properties>,
    Attempt { warns, is_smaller }: Attempt,
) -> Result<u8> {
    let mut warnings = Warnings::default();
    warnings.add(&text.model().source, text.warnings(), options.severity(), program::has_colors());
    warnings.of_option("--interleave", text.missing_gates());
    let asked = ask::question(options, text, &mut warnings)?;
    let possible = ask::possible(options, text, &mut warnings)?;
    let branching = ask::branching(options, text, &mut warnings)?;
    let own_question = properties.map(|properties| properties.question(text)).transpose()?.flatten();
    let question = own_question.as_ref().or(asked.as_ref().map(|asked| &asked.question));
    let checks = match (question, &text.model().property, properties) {
        _ if possible.is_some() => Checks::default(),
        _ if branching.is_some() => branching.as_ref().map_or_else(Checks::default, |(_, checks)| checks.clone()),
        (Some(question), Some(property), _) => question.checks(property),
        (_, _, Some(properties)) => properties.checks(text.model())?,
        _ => checks(options, text, &mut warnings)?,
    };
    if warns {
        print_warnings(&warnings, options.checks.strict)?;
    }
    let opened = options.checkpoints.resume.as_deref().map(Opened::open).transpose()?;
    let may_be_keys = opened.as_ref().map_or(options.table.table == TableChoice::Compact, Opened::has_keys);
    if may_be_keys && text.model().layout.words < KEY_WORDS {
        // Keys have two words, and all states of the search as many.
        text.model_mut().layout.words = KEY_WORDS;
    }
    if let Some(file) = outputs.emit {
        return emit(options, text.model(), &checks, file);
    }
    if let Some(file) = outputs.dependencies {
        return write_dependencies(options, text.model(), file);
    }
    if let Some(file) = outputs.emit_buchi {
        let asked = asked.context("--emit-buchi: there is no property; give one by --ltl or --buchi")?;
        return asked.emit(options, text, file);
    }
    if let Some(requested) = options.walks.simulate {
        stopping::stop_watching();
        return simulate::run(options, requested, plan, text, &checks, outputs.trace);
    }
    if options.walks.step {
        let is_input = options.input.model.as_os_str() != "-";
        ensure!(is_input, "--step reads commands from standard input, so the model cannot come from there");
        ensure!(text.model().net.is_none(), "--step does not support Petri nets");
        if !options.asks() && asked.is_none() {
            jobs::ensure_only_steps(options)?;
            stopping::stop_watching();
            return step::walk(text, &[]).map(|()| 0);
        }
    }
    let parse = start.elapsed();
    // A second attempt has the threads of the first.
    static THREADS: std::sync::Once = std::sync::Once::new();
    let mut built = Ok(());
    THREADS.call_once(|| built = rayon::ThreadPoolBuilder::new().num_threads(options.table.device.threads()).build_global());
    built.context("threads")?;
    stopping::stop_watching();
    let start = Instant::now();
    let model = text.model();
    let reduction = Reduction::of(options, model, &checks, asked.is_some() || possible.is_some() || branching.is_some())?;
    // A reduction that saves nothing leaves the choice of the engine free.
    let mut unreduced = options.clone();
    unreduced.checks.reduce = None;
    let options = if reduction.as_ref().is_some_and(|reduction| reduction.stubborn.is_none()) { &unreduced } else { options };
    let stubborn = reduction.as_ref().and_then(|reduction| reduction.stubborn.as_ref());
    #[cfg(feature = "cuda")]
    let _ahead = (*plan == RankPlan::Alone).then(|| compile_ahead(options, model, &checks, stubborn));
    let (device, mut rank_set) = RankSet::open(plan, &options.table.device)?;
    let device_opened = start.elapsed();
    let time = Time { parse, device: device_opened, table: device_opened, ..Time::default() };
    let words = model.layout.words;
    let is_about_runs = question.is_some() || possible.is_some() || branching.is_some();
    let of_states = rank_set.is_none() && !is_about_runs;
    let has_depth = options.limits.max_depth.is_some();
    ensure!(!has_depth || !is_about_runs, "--max-depth cannot be combined with a property of runs: its verdict needs all states");
    let kind = first_table::kind(options, &model.layout, &device, of_states)?;
    let smaller = first_table::smaller(options, &model.layout, kind).filter(|_| of_states && properties.is_none());
    let (kind, may_be_smaller) = if is_smaller { (smaller.unwrap_or(kind), false) } else { (kind, smaller.is_some()) };
    let size = match &mut rank_set {
        Some(rank_set) => rank_set.size(options, &model.layout)?,
        None => {
            let listed = if model.property.is_some() { Listed::All } else { Listed::Levels };
            first_table::size(options, kind, &model.layout, &device, 1, listed)?
        }
    };
    let is_kept = options.checkpoints.checkpoint.is_some() || options.checkpoints.resume.is_some();
    let identity = is_kept.then(|| Identity::of(model, &checks, stubborn));
    ensure!(identity.is_none() || !is_about_runs, "{NOT_OF_RUNS}");
    let table = match (&identity, &opened) {
        (Some(identity), Some(opened)) => {
            opened.table_of(identity, words, options.table.table.kind().map(|_| options.table_of(words)))?
        }
        _ => kind,
    };
    // Searches about runs store data of each state by slot number, and rows may have larger numbers than slots.
    ensure!(
        table != TableKind::Indexed || !is_about_runs,
        "--table indexed cannot be combined with a property of runs; use another kind of table"
    );
    let begun = opened.as_ref().map_or(0, Opened::levels);
    let checkpoints = identity.zip(schedule(options));
    let checkpoints =
        checkpoints.map(|(identity, schedule)| Checkpoints::new(schedule, identity, checks.conditions.len(), table, begun));
    let (possible, warnings) = (possible.as_ref(), &warnings);
    let branching = branching.as_ref().map(|(branching, _)| branching);
    let task = Task {
        options,
        text,
        model,
        checks: &checks,
        question,
        possible,
        branching,
        properties,
        warnings,
        outputs,
        device: &device,
        rank_set,
        checkpoints,
        opened,
        reduction,
        may_be_smaller,
    };
    match table {
        TableKind::Tree => task.explore(VectorTable::<Tree>::builder(words).nodes(size.nodes), size, time),
        TableKind::Indexed => task.explore(VectorTable::<Indexed>::builder(words), size, time),
        TableKind::TreeCompact => {
            let builder = VectorTable::<CompactTree>::builder(words).nodes(size.nodes);
            task.explore(builder.last_bits(model.layout.last_bits()), size, time)
        }
        TableKind::Compact => {
            let bits = model.layout.end.max(*Spec::KEY_BITS.start());
            task.explore(VectorTable::<Root>::builder(words).key_bits(bits), size, time)
        }
        TableKind::Bucket => task.explore(VectorTable::<Bucket>::builder(words), size, time),
    }
}

/// Prints warnings; with `strict` they end the search.
fn print_warnings(warnings: &Warnings, strict: bool) -> Result<()> {
    program::print_warning(&warnings.text());
    match warnings.sentence().filter(|_| strict) {
        Some(sentence) => Err(Ended { code: exit::ERROR, why: format!("with --strict, {sentence}") }.into()),
        None => Ok(()),
    }
}

/// The assertions of the model, and the checks that the command line requests.
fn checks(options: &Options, text: &Text, warnings: &mut Warnings) -> Result<Checks> {
    let mut checks = Checks { deadlocks: options.checks.deadlock, ..Checks::of_model(text.model()) };
    let conditions = [(Role::Invariant, "--invariant", &options.checks.invariant), (Role::Goal, "--goal", &options.checks.goal)];
    for (role, name, texts) in conditions {
        for condition in texts {
            let source = Source { name: name.into(), text: condition.clone() };
            let (condition, of_condition) = text.condition(&source)?;
            warnings.add(&source, &of_condition, options.severity(), program::has_colors());
            checks.add(role, source.text, condition);
        }
    }
    Ok(checks)
}

/// Path and interval of checkpoints, if they are requested.
fn schedule(options: &Options) -> Option<Schedule> {
    let (every, levels) = (options.checkpoints.checkpoint_every, options.checkpoints.checkpoint_levels);
    let warn = |text: &str| program::print_warning(&escaping::lines(text));
    Some(Schedule { path: options.checkpoints.checkpoint.clone()?, every, levels, warn })
}
