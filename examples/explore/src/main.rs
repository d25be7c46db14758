//! An explicit-state model checker: explores all states that a model can reach, counts them, checks them, and shows the shortest
//! path to a violation.
//!
//! ```text
//! cargo run --release -p warpset-explore -- examples/explore/models/peterson.dve --invariant 'P_0.critical + P_1.critical <= 1'
//! cargo run --release -p warpset-explore -- --help
//! ```

mod archive;
mod ask;
mod encodings;
mod export;
mod first_table;
mod options;
mod pictures;
mod progress;
mod properties;
mod record;
mod reduce;
mod report;
mod simulate;
mod spread;
mod step;

use anyhow::{Context, Error, Result, ensure};
use checkpoint::{Checkpoints, Identity, Opened, Resumed, Schedule};
use checks::{Checks, Role, Violation};
use clap::{CommandFactory as _, Parser as _};
use coverage::Coverage;
#[cfg(feature = "cuda")]
use device::DeviceChoice;
use diagnostic::{Located, Severity};
use encodings::NoRoom;
use exploration::{Counts, End, Explorer, Found, Limits};
use export::{Export, Exported, Form};
use first_table::Size;
use interpreter::Interpreter;
use ir::{Model, Source};
use language::{Format, Text};
use liveness::check::{Conclusion, Liveness, Question};
use liveness::possible::{Outcome, Possibilities, Possible};
use measurements::{Measurements, occupancy};
use numbering::Numbering;
#[cfg(feature = "cuda")]
use options::TableChoice;
use options::{EngineKind, Options, ProgressWhen};
use output::{Output, Unwritten};
use parents::Parents;
use pictures::Run as FoundRun;
use pictures::chart::Chart;
use program::Ended;
use progress::ProgressLine;
use properties::Properties;
use record::Recorder;
use reduce::{Reduction, write_dependencies};
use reduced::Reduced;
use report::{Finding, Report, Time};
use spread::{RankPlan, RankSet};
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use stopping::Stop;
use successors::{Interpreted, Successors};
use survey::{Survey, Surveyed};
use switching::Switching;
use table_kind::TableKind;
use threads::Threads;
use warnings::Warnings;
use warpset::{Bucket, CompactTree, Device, Indexed, Storage, TableBuilder, Tree, VectorTable};
use warpset_model::{checks, diagnostic, input, interpreter, ir, language, network, trace, warnings};
#[cfg(feature = "cuda")]
use warpset_search::gpu;
use warpset_search::{
    checkpoint, codegen, coverage, engine, exploration, liveness, measurements, numbering, parents, ranks, reduced, successors,
    survey, switching, table_kind, threads,
};
use warpset_support::{device, exit, generate, in_process, memory, npy_writer, numbers, output, program, stopping};

fn main() -> ExitCode {
    program::run(Options::command(), |arguments| Options::try_parse_from(arguments), run, render)
}

/// Formats an error for readers; an error in a text shows the lines where it occurs.
fn render(error: &Error) -> String {
    match error.downcast_ref::<Box<Located>>() {
        Some(located) => located.diagnostic.render(&located.source, Severity::Error, program::has_colors()),
        None => program::sentence(error),
    }
}

/// The files that are written at the end.
#[derive(Default)]
struct Outputs {
    trace: Option<Output>,
    record: Option<Output>,
    emit: Option<Output>,
    export: Option<Output>,
    emit_buchi: Option<Output>,
    coverage: Option<Output>,
    dependencies: Option<Output>,
}

impl Outputs {
    /// Opens the files, unless one of them is the model or another output.
    fn open(options: &Options, model: Option<&output::Identity>) -> Result<Self> {
        let open = |option, path: &Option<_>| {
            let output = path.as_deref().map(|path| Output::open(option, path)).transpose()?;
            output.iter().try_for_each(|output| output.ensure_is_not("the model", model))?;
            Ok::<_, Error>(output)
        };
        let trace = open("--trace", &options.trace)?;
        let mut record = open("--record", &options.record)?;
        let emit = open("--emit", &options.emit)?;
        let export = open("--export", &options.export)?;
        let emit_buchi = open("--emit-buchi", &options.emit_buchi)?;
        let coverage = open("--coverage", &options.coverage)?;
        let dependencies = open("--dependencies", &options.dependencies)?;
        record.iter_mut().try_for_each(Output::ensure_seeks)?;
        if let Some(path) = &options.checkpoint {
            let all = [&trace, &record, &emit, &export, &emit_buchi, &coverage, &dependencies].into_iter().flatten();
            ensure_can_be_checkpoint(path, all, model)?;
        }
        let outputs = Self { trace, record, emit, export, emit_buchi, coverage, dependencies };
        let all = outputs.all();
        if let Some(path) = &options.resume {
            all.iter().try_for_each(|output| output.ensure_is_not_file("--resume", path))?;
        }
        for (number, output) in all.iter().enumerate() {
            output.ensure_is_not_standard_output()?;
            all[..number].iter().try_for_each(|other| other.ensure_differs_from(output))?;
        }
        Ok(outputs)
    }

    fn all(&self) -> Vec<&Output> {
        let Self { trace, record, emit, export, emit_buchi, coverage, dependencies } = self;
        [trace, record, emit, export, emit_buchi, coverage, dependencies].into_iter().flatten().collect()
    }

    /// Returns an error if an output is one of the files that were read.
    fn ensure_are_not(&self, files: &[Arc<output::Identity>]) -> Result<()> {
        let all = self.all();
        files.iter().try_for_each(|file| all.iter().try_for_each(|output| output.ensure_is_not("the model", Some(file))))
    }
}

/// Reads the model, explores it, and prints the results.
fn run(options: &Options) -> Result<u8> {
    let plan = RankPlan::of(options, &|name| std::env::var(name).ok())?;
    if plan.prints() {
        return run_as(options, &plan);
    }
    // The prints and files of rank 0 cover all ranks.
    program::print_nothing();
    let (trace, progress) = (None, ProgressWhen::Never);
    run_as(&Options { trace, progress, ..options.clone() }, &plan)
}

fn run_as(options: &Options, plan: &RankPlan) -> Result<u8> {
    stopping::watch(options.timeout, options.json, "before the exploration began")?;
    let start = Instant::now();
    options.export.as_deref().map(Form::of).transpose()?;
    let mut input = input::open(&options.model)?;
    let file = input.identity.take();
    let outputs = Outputs::open(options, file.as_ref())?;
    let format = options.format.map_or_else(|| Format::of(&options.model), Ok)?;
    let mut text = Text::read(format, input, &options.reading(format)?)?;
    outputs.ensure_are_not(text.files())?;
    options.encode(&mut text)?;
    if let Some(file) = &options.properties {
        return properties::answer(options, plan, &mut text, outputs, file, start);
    }
    let mut outputs = Some(outputs);
    loop {
        let opened = match outputs.take() {
            Some(outputs) => outputs,
            None => Outputs::open(options, file.as_ref())?,
        };
        match attempt(options, plan, &mut text, opened, start, None) {
            Ok(code) => return Ok(code),
            // A net's place needs more bits than the attempt gave it.
            Err(error) => encodings::widen(&mut text, plan, error)?,
        }
    }
}

/// Explores a model that was read, and prints the results; with `properties`, answers those of its round and prints nothing.
fn attempt(
    options: &Options,
    plan: &RankPlan,
    text: &mut Text,
    outputs: Outputs,
    start: Instant,
    properties: Option<&Properties>,
) -> Result<u8> {
    let mut warnings = Warnings::default();
    warnings.add(&text.model().source, text.warnings(), options.severity(), program::has_colors());
    warnings.of_option("--interleave", text.missing_gates());
    let asked = ask::question(options, text, &mut warnings)?;
    let possible = ask::possible(options, text, &mut warnings)?;
    let own_question = properties.map(|properties| properties.question(text)).transpose()?.flatten();
    let question = own_question.as_ref().or(asked.as_ref().map(|asked| &asked.question));
    let checks = match (question, &text.model().property, properties) {
        _ if possible.is_some() => Checks::default(),
        (Some(question), Some(property), _) => question.checks(property),
        (_, _, Some(properties)) => properties.checks(text.model())?,
        _ => checks(options, text, &mut warnings)?,
    };
    print_warnings(&warnings, options.strict)?;
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
    if let Some(requested) = options.simulate {
        stopping::stop_watching();
        return simulated(options, requested, plan, text, &checks, outputs.trace);
    }
    if options.step {
        let is_input = options.model.as_os_str() != "-";
        ensure!(is_input, "--step reads commands from standard input, so the model cannot come from there");
        ensure!(text.model().net.is_none(), "--step does not support Petri nets");
        if !options.asks() && asked.is_none() {
            stopping::stop_watching();
            return walk(text, &[]).map(|()| 0);
        }
    }
    let parse = start.elapsed();
    // A second attempt has the threads of the first.
    static THREADS: std::sync::Once = std::sync::Once::new();
    let mut built = Ok(());
    THREADS.call_once(|| built = rayon::ThreadPoolBuilder::new().num_threads(options.device.threads()).build_global());
    built.context("threads")?;
    stopping::stop_watching();
    let start = Instant::now();
    let model = text.model();
    let reduction = Reduction::of(options, model, &checks, asked.is_some() || possible.is_some())?;
    // A reduction that saves nothing leaves the choice of the engine free.
    let unreduced = Options { reduce: None, ..options.clone() };
    let options = if reduction.as_ref().is_some_and(|reduction| reduction.stubborn.is_none()) { &unreduced } else { options };
    #[cfg(feature = "cuda")]
    let _ahead = compile_ahead(options, plan, model, &checks);
    let (device, mut rank_set) = RankSet::open(plan, &options.device)?;
    let device_opened = start.elapsed();
    let time = Time { parse, device: device_opened, table: device_opened, ..Time::default() };
    let words = model.layout.words;
    let is_about_runs = question.is_some() || possible.is_some();
    let of_states = rank_set.is_none() && !is_about_runs;
    let kind = first_table::kind(options, words, &device, of_states)?;
    let size = match &mut rank_set {
        Some(rank_set) => rank_set.size(options, &model.layout)?,
        None => first_table::size(options, kind, &model.layout, &device, 1)?,
    };
    let is_kept = options.checkpoint.is_some() || options.resume.is_some();
    let identity = is_kept.then(|| Identity::of(model, &checks));
    ensure!(identity.is_none() || !is_about_runs, "{NOT_OF_RUNS}");
    let opened = options.resume.as_deref().map(Opened::open).transpose()?;
    let table = match (&identity, &opened) {
        (Some(identity), Some(opened)) => opened.table_of(identity, words, options.table.kind())?,
        _ => kind,
    };
    // Searches about runs store data of each state by slot number, and rows may have larger numbers than slots.
    ensure!(
        table != TableKind::Indexed || !is_about_runs,
        "--table indexed cannot be combined with a property of runs; use another kind of table"
    );
    let begun = opened.as_ref().map_or(0, Opened::levels);
    let checkpoints = identity.zip(schedule(options));
    let checkpoints = checkpoints.map(|(identity, schedule)| Checkpoints::new(schedule, identity, table, begun));
    let (possible, warnings) = (possible.as_ref(), &warnings);
    let task = Task {
        options,
        text,
        model,
        checks: &checks,
        question,
        possible,
        properties,
        warnings,
        outputs,
        device: &device,
        rank_set,
        checkpoints,
        opened,
        reduction,
    };
    match table {
        TableKind::Tree => task.explore(VectorTable::<Tree>::builder(words).nodes(size.nodes), size, time),
        TableKind::Indexed => task.explore(VectorTable::<Indexed>::builder(words), size, time),
        TableKind::TreeCompact => task.explore(VectorTable::<CompactTree>::builder(words).nodes(size.nodes), size, time),
        TableKind::Bucket => task.explore(VectorTable::<Bucket>::builder(words), size, time),
    }
}

/// Takes random walks, and writes the path of the one that finds something.
fn simulated(
    options: &Options,
    requested: simulate::Requested,
    plan: &RankPlan,
    text: &Text,
    checks: &Checks,
    trace: Option<Output>,
) -> Result<u8> {
    let model = text.model();
    ensure!(model.net.is_none(), "--simulate does not support Petri nets");
    ensure!(model.property.is_none(), "--simulate cannot check the model's property process; --no-property ignores it");
    ensure!(*plan == RankPlan::Alone, "--simulate runs in one process, without ranks");
    let on_cpu = options.engine != EngineKind::Gpu && options.device.named_gpus().is_empty();
    ensure!(on_cpu, "--simulate runs on CPU threads: choose --device cpu:THREADS, and no --engine gpu");
    let interpreted = Interpreted::new(Interpreter::new(model), checks);
    simulate::run(options, requested, &interpreted, |path| match trace {
        None => Ok(()),
        Some(output) => {
            let chart = || Chart::new(model, &FoundRun::of_path(path), checks.describe(&path.violation, model));
            let json = || format!("{:#}\n", path.json(model, checks));
            output.write_text(&trace_text(options, chart, json))
        }
    })
}

/// A path in the form that the name of its file selects.
fn trace_text(options: &Options, chart: impl FnOnce() -> Chart, json: impl FnOnce() -> String) -> String {
    match options.trace.as_deref().and_then(Path::extension).and_then(std::ffi::OsStr::to_str) {
        Some("svg") => chart().svg(),
        Some("txt") => chart().text(),
        _ => json(),
    }
}

/// Steps through the model by commands from standard input. `path`: states of a path that was found.
fn walk(text: &Text, path: &[Vec<u32>]) -> Result<()> {
    let (input, prompts) = (std::io::stdin().lock(), std::io::stdin().is_terminal());
    match step::run(text, path, input, &mut std::io::stdout().lock(), prompts) {
        Err(error) if is_closed(&error) => Ok(()),
        other => other.context("--step"),
    }
}

/// Whether the reader of standard output has closed it.
fn is_closed(error: &Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Prints warnings; with `strict` they end the search.
fn print_warnings(warnings: &Warnings, strict: bool) -> Result<()> {
    program::print_warning(&warnings.text());
    match warnings.sentence().filter(|_| strict) {
        Some(sentence) => Err(Ended { code: exit::ERROR, why: format!("with --strict, {sentence}") }.into()),
        None => Ok(()),
    }
}

/// Writes the program text that is compiled for a GPU.
#[cfg(feature = "cuda")]
fn emit(options: &Options, model: &Model, checks: &Checks, file: Output) -> Result<u8> {
    codegen::ensure_fits(model)?;
    let source = if options.table == TableChoice::Indexed { gpu::source_by_rows } else { gpu::source };
    file.write_text(&source(model, checks, options.cycles))?;
    if options.json {
        let name = options.emit.as_ref().map(|path| path.display().to_string());
        let done = serde_json::json!({ "emitted": name, "error": null, "exit_code": 0 });
        program::print(&format!("{done}\n"))?;
    }
    Ok(0)
}

#[cfg(not(feature = "cuda"))]
fn emit(_: &Options, _: &Model, _: &Checks, _: Output) -> Result<u8> {
    anyhow::bail!("this build cannot compile for GPUs, so --emit has nothing to write: warpset's feature `cuda` is off")
}

/// The assertions of the model, and the checks that the command line requests.
fn checks(options: &Options, text: &Text, warnings: &mut Warnings) -> Result<Checks> {
    let mut checks = Checks { deadlocks: options.deadlock, ..Checks::of_model(text.model()) };
    let conditions = [(Role::Invariant, "--invariant", &options.invariant), (Role::Goal, "--goal", &options.goal)];
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

/// The inputs of a search, and its checkpoints.
struct Task<'a> {
    options: &'a Options,
    text: &'a Text,
    model: &'a Model,
    checks: &'a Checks,
    question: Option<&'a Question>,
    possible: Option<&'a Possible>,
    /// Properties to answer in place of a report.
    properties: Option<&'a Properties>,
    warnings: &'a Warnings,
    outputs: Outputs,
    device: &'a Device,
    /// The ranks, if there are several.
    rank_set: Option<RankSet>,
    checkpoints: Option<Checkpoints>,
    /// The search to resume.
    opened: Option<Opened>,
    reduction: Option<Reduction<'a>>,
}

impl Task<'_> {
    fn explore<S: Storage>(self, builder: TableBuilder<S>, size: Size, mut time: Time) -> Result<u8> {
        let Self { options, text, model, checks, question, possible, properties, device, .. } = self;
        let start = Instant::now();
        let engine = options.engine_on(device, self.rank_set.is_some())?;
        let interpreted = Interpreted::new(Interpreter::new(model), checks);
        // Compute limits before the table exists, because its memory counts but is no longer free afterwards.
        let limits = limits(options, device);
        if let Some(rank_set) = self.rank_set {
            let is_about_runs = question.is_some() || possible.is_some();
            ensure!(!is_about_runs, "{ONE_TABLE}");
            let tables = rank_set.build(&builder, size.slots)?;
            time.table += start.elapsed();
            let outputs = self.outputs;
            return spread::explore(tables, options, &interpreted, self.warnings, outputs, device, (engine, limits), time);
        }
        let (table, resumed) = match self.opened {
            Some(opened) => opened.load(device, &interpreted, &limits).map(|(table, resumed)| (table, Some(resumed)))?,
            None => (builder.capacity(size.slots).build(device)?, None),
        };
        time.table += start.elapsed();
        let mut run = Run {
            options,
            text,
            limits,
            table: &table,
            interpreted: &interpreted,
            question,
            possible,
            properties,
            warnings: self.warnings,
            outputs: self.outputs,
            checkpoints: self.checkpoints.as_ref(),
            known: resumed.as_ref().map(|resumed| resumed.counts.states),
            resumed,
            reduction: self.reduction.as_ref(),
        };
        let form = options.export.as_deref().map(Form::of).transpose()?.filter(|form| *form != Form::Dot);
        if let Some((form, output)) = form.and_then(|form| Some((form, run.outputs.export.take()?))) {
            let export = Export::new(model, form, output)?;
            let mut numbering = Numbering::new(&table, &interpreted, export);
            let extras = |numbering: &mut Numbering<_, Export>| {
                Ok(Extras { exported: numbering.consumer.exported.take(), ..Extras::default() })
            };
            return run.with(&mut numbering, extras, None, &|| "interpreted".into(), time);
        }
        if let Some(stubborn) = self.reduction.as_ref().and_then(|reduction| reduction.stubborn.as_ref()) {
            let source = Reduced { interpreted: &interpreted, stubborn };
            return run.on_threads(&source, &|| "interpreted".into(), time);
        }
        let start = Instant::now();
        match engine {
            #[cfg(feature = "cuda")]
            EngineKind::Gpu => {
                let progress = ProgressLine::new(options.progress);
                progress.working("compiling for the GPU");
                let watched = question.and_then(Question::to_watch);
                let (resumes, most_bytes) = (run.resumed.is_some(), run.limits.bytes);
                let mut engine = gpu::GpuEngine::new(&table, &interpreted, options.cycles, watched, resumes, most_bytes)?;
                engine.keep_in(run.checkpoints, run.resumed.take());
                drop(progress);
                time.compile = start.elapsed();
                let extras =
                    |engine: &mut gpu::GpuEngine<_>| Ok(Extras { measurements: engine.measurements()?, ..Extras::default() });
                run.with(&mut engine, extras, None, &|| "compiled for the GPU".into(), time)
            }
            EngineKind::Compiled => {
                let compiled = compile(options, &interpreted)?;
                time.compile = start.elapsed();
                run.on_threads(&compiled, &|| "compiled".into(), time)
            }
            EngineKind::Auto => {
                let source = Switching::new(&interpreted);
                source.during(|| run.on_threads(&source, &|| source.engine(), time))
            }
            _ => run.on_threads(&interpreted, &|| "interpreted".into(), time),
        }
    }
}

/// Compiles next-state functions, and shows how long that takes.
fn compile<'m>(options: &Options, interpreted: &'m Interpreted<'m>) -> Result<codegen::on_cpu::Compiled<'m>> {
    let progress = ProgressLine::new(options.progress);
    let what = format!("compiling {}", numbers::counted(interpreted.interpreter.model().transitions.len() as u64, "transition"));
    let is_stopped = || {
        progress.working(&what);
        stopping::asked().is_some()
    };
    // If no limit or signal has stopped it, Ctrl-C has reached the compiler first.
    let stopped = || stopping::asked().unwrap_or(Stop::Interrupted).error("while the next-state functions were compiled");
    Ok(codegen::on_cpu::Compiled::unless(interpreted, &is_stopped)?.ok_or_else(stopped)?)
}

/// An exploration and the data for its report.
struct Run<'a, S: Storage> {
    options: &'a Options,
    text: &'a Text,
    limits: Limits,
    table: &'a VectorTable<S>,
    interpreted: &'a Interpreted<'a>,
    question: Option<&'a Question>,
    possible: Option<&'a Possible>,
    properties: Option<&'a Properties>,
    warnings: &'a Warnings,
    outputs: Outputs,
    checkpoints: Option<&'a Checkpoints>,
    resumed: Option<Resumed>,
    /// Number of states that a resumed search had found before.
    known: Option<u64>,
    reduction: Option<&'a Reduction<'a>>,
}

impl<S: Storage> Run<'_, S> {
    /// Explores by threads of this machine; the table may be on any device.
    fn on_threads(mut self, source: &dyn Successors, engine: &dyn Fn() -> String, time: Time) -> Result<u8> {
        let most_bytes = self.options.record_bytes;
        let recorder = self.options.record.as_ref().map(|_| Recorder::new(source.width(), most_bytes)).transpose()?;
        let initial = self.interpreted.interpreter.model().initial_state();
        let automaton = self.question.and_then(Question::to_watch);
        let Checks { conditions, deadlocks, .. } = self.interpreted.checks;
        let looks_for_some = *deadlocks || !conditions.is_empty();
        let add = recorder.as_ref().map(|recorder| |vectors: &[u32]| recorder.add(vectors));
        let mut threads = Threads {
            recorder: add.as_ref().map(|add| add as &engine::Recorder),
            automaton,
            checkpoints: self.checkpoints,
            resumed: self.resumed.take(),
            parents: (self.options.parents || looks_for_some).then(|| Parents::new(self.options.parents)),
            ..Threads::new(self.table, &source, initial)
        };
        self.with(&mut threads, |_| Ok(Extras::default()), recorder.as_ref(), engine, time)
    }

    /// Explores, answers the questions, and prints the report. `extras` is called after the exploration; then `engine` describes
    /// how successors were computed.
    fn with<E: Liveness + Possibilities>(
        self,
        explorer: &mut E,
        extras: impl FnOnce(&mut E) -> Result<Extras>,
        recorder: Option<&Recorder>,
        engine: &dyn Fn() -> String,
        mut time: Time,
    ) -> Result<u8> {
        let Self { options, text, limits, table, interpreted, question, possible, properties, .. } = self;
        let Self { warnings, outputs, checkpoints, known, .. } = self;
        let (device, reduction) = (table.device(), self.reduction);
        let start = Instant::now();
        let exploration = {
            let progress = ProgressLine::new(options.progress).within(limits);
            explorer.explore(limits, &|counts: &Counts| {
                progress.set(counts, table);
                properties.is_none_or(|properties| properties.goes_on(counts, table, interpreted.interpreter.model()))
            })?
        };
        time.explore = start.elapsed();
        let model = interpreted.interpreter.model();
        if let Some(no_room) = NoRoom::of(model, exploration.found.as_ref(), |found| explorer.path(found, limits)) {
            return Err(no_room.into());
        }
        let start = Instant::now();
        // Questions about runs are answered separately.
        let survey = Survey::of(model).filter(|_| question.is_none() && possible.is_none() && properties.is_none());
        let surveyed = survey.map(|survey| survey.run(table, stopping::asked)).transpose()?;
        time.survey = start.elapsed();
        let (stats, mut extras) = (occupancy(table)?, extras(explorer)?);
        extras.states_in_memory =
            limits.of_table(table, exploration.list_bytes).ok().and_then(|limit| table.vectors_within(limit).ok());
        let (spec, engine, exploration) = (table.spec(), engine(), &exploration);
        let interpreter = &interpreted.interpreter;
        // The search for a path clears the table, so the states are counted before.
        let counts = options.unreached || options.coverage.is_some();
        let coverage = counts.then(|| {
            let progress = ProgressLine::new(options.progress);
            progress.working("counting coverage");
            Coverage::of(table, interpreter, limits)
        });
        let conclusion = match question {
            Some(question) => {
                let progress = ProgressLine::new(options.progress);
                progress.working("searching for accepting cycles");
                Some((question, question.conclude(explorer, interpreter, exploration, limits)?))
            }
            None => None,
        };
        if let Some(properties) = properties {
            let conclusion = conclusion.as_ref().map(|(_, conclusion)| conclusion);
            properties.conclude(table, interpreted, exploration, conclusion, limits)?;
            if let Some(found) = exploration.found.as_ref().filter(|_| properties.wants_path()) {
                let checks = interpreted.checks;
                let states = explorer.path(found, limits);
                let path = states.and_then(|states| trace::replay(interpreter, checks, states, found.violation.clone()));
                properties.take_path(model, checks, path);
            }
            return Ok(0);
        }
        let answer = possible.map(|possible| (possible, explorer.answer(possible, interpreter, exploration, limits)));
        let ending = Ending {
            options,
            text: Some(text),
            coverage,
            interpreted,
            conclusion,
            answer,
            warnings,
            outputs,
            device,
            spec,
            stats,
            extras,
            ranks: None,
            checkpoints,
            known,
            reduction,
            exploration,
            surveyed,
        };
        ending.report(explorer, recorder, limits, engine, time)
    }
}

/// Results that only some engines have.
#[derive(Default)]
struct Extras {
    measurements: Option<Measurements>,
    /// Amount exported, or why nothing was exported.
    exported: Option<Result<Exported>>,
    /// Number of states that the memory holds, by what is known at the end.
    states_in_memory: Option<u64>,
}

/// Results of an exploration, for the report.
struct Ending<'a> {
    options: &'a Options,
    /// The model with its names, unless there are ranks.
    text: Option<&'a Text>,
    /// Coverage, or why it was not counted, if it is requested.
    coverage: Option<Result<Coverage>>,
    interpreted: &'a Interpreted<'a>,
    conclusion: Option<(&'a Question, Conclusion)>,
    answer: Option<(&'a Possible, Outcome)>,
    warnings: &'a Warnings,
    outputs: Outputs,
    device: &'a Device,
    spec: warpset::Spec,
    stats: warpset::Stats,
    extras: Extras,
    ranks: Option<ranks::Numbers>,
    checkpoints: Option<&'a Checkpoints>,
    known: Option<u64>,
    reduction: Option<&'a Reduction<'a>>,
    exploration: &'a exploration::Exploration,
    /// Figures of a net.
    surveyed: Option<Surveyed>,
}

impl Ending<'_> {
    /// Finds the path, and prints the report.
    fn report(
        self,
        explorer: &mut dyn Explorer,
        recorder: Option<&Recorder>,
        limits: Limits,
        engine: String,
        mut time: Time,
    ) -> Result<u8> {
        let Self { options, interpreted, conclusion, answer, warnings, outputs, device, .. } = self;
        let Self { spec, stats, extras, ranks, checkpoints, known, reduction, exploration, surveyed, text, coverage, .. } = self;
        let Interpreted { interpreter, checks, .. } = interpreted;
        let model = interpreter.model();
        let start = Instant::now();
        let is_told = |found: &&Found| conclusion.is_none() || matches!(found.violation, Violation::Fault(_));
        let finding = exploration.found.as_ref().filter(is_told).map(|found| {
            let states = explorer.path(found, limits);
            let path = states.and_then(|states| trace::replay(interpreter, checks, states, found.violation.clone()));
            Finding { found, path }
        });
        // The answer about where states can lead has its own condition, and already has its path.
        let lost = answer.as_ref().and_then(|(possible, outcome)| Some((*possible, outcome.found.as_ref()?)));
        let lost = lost.map(|(possible, (found, states))| {
            let path = trace::replay(interpreter, &possible.checks, states.clone(), found.violation.clone());
            (&possible.checks, Finding { found, path })
        });
        let (checks, finding) = match lost {
            Some((checks, lost)) => (checks, finding.or(Some(lost))),
            None => (*checks, finding),
        };
        time.path = start.elapsed();
        let path = finding.as_ref().and_then(|finding| finding.path.as_ref().ok());
        let lasso =
            conclusion.as_ref().and_then(|(question, conclusion)| Some((*question, conclusion.lasso.as_ref()?.as_ref().ok()?)));
        let found_run = path.map(FoundRun::of_path).or(lasso.map(|(_, lasso)| FoundRun::of_lasso(lasso)));
        let mut unwritten = Unwritten::default();
        if let (Some(output), Some(run)) = (outputs.trace, &found_run) {
            let json = || {
                let run =
                    conclusion.as_ref().and_then(|(question, conclusion)| report::runs::run_json(conclusion, model, question));
                path.map(|path| path.json(model, checks)).or(run).map_or_else(String::new, |path| format!("{path:#}\n"))
            };
            let ending = || match (path, lasso) {
                (Some(path), _) => checks.describe(&path.violation, model),
                (None, Some((question, _))) => format!("property violated: {}", question.text),
                (None, None) => String::new(),
            };
            unwritten.keep(output.write_text(&trace_text(options, || Chart::new(model, run, ending()), json)));
        }
        let coverage = coverage.map(|coverage| {
            if let (Ok(coverage), Some(output)) = (&coverage, outputs.coverage) {
                let json = coverage.json(model, exploration.end == End::Complete);
                unwritten.keep(output.write_text(&format!("{json:#}\n")));
            }
            coverage.map(|coverage| coverage.unreached(model))
        });
        let recorded = recorder.zip(outputs.record).and_then(|(recorder, output)| unwritten.keep(recorder.finish(output)));
        let Extras { measurements, mut exported, states_in_memory } = extras;
        if let Some(output) = outputs.export {
            let drawn = pictures::dot::text(interpreter, found_run.as_ref());
            let bytes = |text: &String| Exported { bytes: text.len() as u64 };
            let drawn = drawn.context("--export: the picture cannot be written");
            exported = Some(drawn.and_then(|text| output.write_text(&text).map(|()| bytes(&text))));
        }
        let steps_along = found_run.filter(|_| options.step).map_or_else(Vec::new, |run| run.states.to_vec());
        let not_exported = options.export.as_ref().and(report::why_not_exported(exported.as_ref()));
        let exported = exported.and_then(|exported| unwritten.keep(exported));
        let report = Report {
            model,
            checks,
            device,
            spec,
            stats,
            exploration,
            engine,
            time,
            measurements,
            ranks,
            finding,
            conclusion,
            answer: answer.as_ref().map(|(possible, outcome)| (*possible, outcome)),
            warnings,
            recorded,
            exported,
            not_exported,
            unwritten,
            memory: options.memory,
            states_in_memory,
            checkpoint: checkpoints.map(Checkpoints::status),
            known,
            coverage,
            surveyed,
            reduction,
        };
        program::print(&if options.json { format!("{}\n", report.json()) } else { report.text() })?;
        report.unwritten.print();
        if let Some(text) = text.filter(|_| options.step) {
            walk(text, &steps_along)?;
        }
        Ok(report.exit_code())
    }
}

fn limits(options: &Options, device: &Device) -> Limits {
    // A GPU reports an error when its memory is exhausted.
    let free = if device.is_gpu() { u64::MAX } else { memory::free_memory() / 5 * 4 };
    let (states, bytes) = (options.max_states.unwrap_or(u64::MAX), options.memory.unwrap_or(free));
    let is_reserved = options.memory.is_some();
    Limits { states, levels: u64::MAX, bytes, is_reserved, keep_going: options.keep_going, stop: stopping::asked }
}

/// Path and interval of checkpoints, if they are requested.
fn schedule(options: &Options) -> Option<Schedule> {
    let (every, levels) = (options.checkpoint_every, options.checkpoint_levels);
    Some(Schedule { path: options.checkpoint.clone()?, every, levels, warn: program::print_warning })
}

/// Begins to compile for the GPU that will probably be opened, if one GPU performs the search.
#[cfg(feature = "cuda")]
fn compile_ahead(options: &Options, plan: &RankPlan, model: &Model, checks: &Checks) -> Option<warpset::gpu::Ahead> {
    let gpu = match options.device {
        _ if *plan != RankPlan::Alone => return None,
        DeviceChoice::Cpu { .. } => return None,
        DeviceChoice::Gpu { ordinal } => Some(ordinal),
        _ => None,
    };
    let on_gpu = options.engine == EngineKind::Gpu || (options.engine == EngineKind::Auto && !options.finds_on_threads());
    let table = options.table.of(model.layout.words);
    gpu::compile_ahead(gpu::Expected { gpu, table, on_gpu, timed: options.cycles }, model, checks)
}

/// Why searches with questions about runs cannot be saved.
const NOT_OF_RUNS: &str =
    "--checkpoint and --resume cannot be combined with a property of runs (here the model's property process)";

/// Why ranks answer no questions about runs.
const ONE_TABLE: &str = "a property of runs is checked in one table on one device: it cannot be combined with ranks";

/// Returns an error if checkpoints cannot be written to `path`, or if they would overwrite the model, another output or a file
/// that is not a checkpoint.
fn ensure_can_be_checkpoint<'o>(
    path: &Path,
    mut outputs: impl Iterator<Item = &'o Output>,
    model: Option<&output::Identity>,
) -> Result<()> {
    outputs.try_for_each(|output| output.ensure_is_not_file("--checkpoint", path))?;
    let is_model = model.is_some_and(|model| output::Identity::from_path(path).is_ok_and(|file| file == *model));
    ensure!(!is_model, "--checkpoint: {} is the model, and would be overwritten", path.display());
    checkpoint::ensure_can_be_written(path).with_context(|| format!("--checkpoint: {} cannot be written", path.display()))
}
