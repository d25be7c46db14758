//! An explicit-state model checker: explores all states that a model can reach, counts them, checks them, and shows the shortest path to
//! what is wrong.
//!
//! ```text
//! cargo run --release --example explore -- examples/explore/models/peterson.dve --invariant 'P_0.CS + P_1.CS <= 1'
//! cargo run --release --example explore -- --help
//! ```

mod checks;
mod codegen;
#[path = "../support/device.rs"]
mod device;
mod diagnostic;
mod dve;
mod engine;
#[cfg(feature = "cuda")]
mod gpu;
mod interpreter;
mod ir;
#[path = "../support/memory.rs"]
mod memory;
#[path = "../support/numbers.rs"]
mod numbers;
mod options;
mod path;
mod progress;
mod record;
mod report;
mod successors;
mod switching;
mod threads;

use anyhow::{Context, Result};
use checks::{Checks, Role};
use clap::Parser;
use diagnostic::Located;
use dve::Dve;
use engine::{Counts, End, Exploration, Explorer, Limits};
use interpreter::Interpreter;
use ir::Source;
use options::{EXIT_ERROR, EXIT_FOUND, EXIT_INCOMPLETE, EngineKind, Options, TableKind};
use progress::Progress;
use record::Recorder;
use report::{Finding, Report, Time};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use successors::{Interpreted, Successors};
use switching::Switching;
use threads::Threads;
use warpset::{Bucket, CompactTree, Device, Nodes, Storage, TableBuilder, Tree, VectorTable};

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(code) => code,
        Err(error) => {
            match error.downcast_ref::<Box<Located>>() {
                Some(located) => {
                    let color = std::io::stderr().is_terminal();
                    eprint!("{}", located.diagnostic.render(&located.source, color));
                }
                None => eprintln!("error: {error:#}"),
            }
            ExitCode::from(EXIT_ERROR)
        }
    }
}

/// Reads the model, explores it, prints what was found.
fn run(options: &Options) -> Result<ExitCode> {
    let start = Instant::now();
    let name = options.model.display().to_string();
    let bytes = std::fs::read(&options.model).with_context(|| format!("{name} cannot be read"))?;
    let dve = Dve::read(Source::of_bytes(name, &bytes))?;
    let checks = checks(options, &dve)?;
    if let Some(file) = &options.emit {
        return emit(options, &dve, &checks, file);
    }
    let parse = start.elapsed();
    rayon::ThreadPoolBuilder::new().num_threads(options.device.threads()).build_global().context("threads")?;
    let start = Instant::now();
    let device = options.device.open()?;
    let time = Time { parse, table: start.elapsed(), ..Time::default() };
    let words = dve.model.layout.words;
    match options.table.of(words) {
        TableKind::Tree => explore(options, &dve, &checks, &device, with_nodes::<Tree>(options, words), time),
        TableKind::TreeCompact => explore(options, &dve, &checks, &device, with_nodes::<CompactTree>(options, words), time),
        _ => explore(options, &dve, &checks, &device, VectorTable::<Bucket>::builder(words), time),
    }
}

fn with_nodes<S: Nodes>(options: &Options, words: usize) -> TableBuilder<S> {
    let builder = VectorTable::builder(words);
    options.nodes.map_or(builder.clone(), |nodes| builder.nodes(nodes))
}

/// Writes what is compiled for a GPU.
#[cfg(feature = "cuda")]
fn emit(options: &Options, dve: &Dve, checks: &Checks, file: &Path) -> Result<ExitCode> {
    let text = gpu::source(&dve.model, checks, options.cycles);
    std::fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(feature = "cuda"))]
fn emit(_: &Options, _: &Dve, _: &Checks, _: &Path) -> Result<ExitCode> {
    anyhow::bail!("this build compiles nothing for GPUs, so --emit has nothing to write: warpset's feature `cuda` is off")
}

/// What the model asserts, and the command line asks for.
fn checks(options: &Options, dve: &Dve) -> Result<Checks> {
    let mut checks = Checks { deadlocks: options.deadlock, ..Checks::of_model(&dve.model) };
    let conditions = [(Role::Invariant, "--invariant", &options.invariant), (Role::Goal, "--goal", &options.goal)];
    for (role, name, texts) in conditions {
        for text in texts {
            let source = Source { name: name.into(), text: text.clone() };
            let condition = dve.condition(&source)?;
            checks.add(role, source.text, condition);
        }
    }
    Ok(checks)
}

fn explore<S: Storage>(
    options: &Options,
    dve: &Dve,
    checks: &Checks,
    device: &Device,
    builder: TableBuilder<S>,
    mut time: Time,
) -> Result<ExitCode> {
    let model = &dve.model;
    let start = Instant::now();
    let engine = options.engine_on(device)?;
    let table = builder.capacity(options.capacity).build(device)?;
    time.table += start.elapsed();
    let interpreted = Interpreted { interpreter: Interpreter::new(model), checks };
    let run = Run { options, table: &table, interpreted: &interpreted };
    let start = Instant::now();
    match engine {
        #[cfg(feature = "cuda")]
        EngineKind::Gpu => {
            let mut engine = gpu::Engine::new(&table, &interpreted, options.cycles)?;
            time.compile = start.elapsed();
            run.with(&mut engine, &|| "compiled for the GPU".into(), time)
        }
        EngineKind::Compiled => {
            let compiled = codegen::on_cpu::Compiled::new(&interpreted)?;
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

/// An exploration and what is printed of it.
struct Run<'a, S: Storage> {
    options: &'a Options,
    table: &'a VectorTable<S>,
    interpreted: &'a Interpreted<'a>,
}

impl<S: Storage> Run<'_, S> {
    /// By threads of this machine, whatever the table's device.
    fn on_threads<X: Successors>(&self, source: &X, engine: &dyn Fn() -> String, time: Time) -> Result<ExitCode> {
        let recorder = self.options.record.as_ref().map(|_| Recorder::new(source.width())).transpose()?;
        let initial = self.interpreted.interpreter.model().initial_state();
        let mut threads = Threads { table: self.table, source, initial, recorder: recorder.as_ref() };
        let code = self.with(&mut threads, engine, time)?;
        if let (Some(recorder), Some(path)) = (recorder, &self.options.record) {
            recorder.finish(path)?;
        }
        Ok(code)
    }

    /// `engine` tells afterwards how successors were found.
    fn with(&self, explorer: &mut impl Explorer, engine: &dyn Fn() -> String, mut time: Time) -> Result<ExitCode> {
        let Self { options, table, interpreted: Interpreted { interpreter, checks } } = self;
        let (model, device) = (interpreter.model(), table.device());
        let limits = limits(options, device);
        let start = Instant::now();
        let exploration = {
            let progress = Progress::new();
            explorer.explore(limits, &|counts: &Counts| progress.set(counts, table))?
        };
        time.explore = start.elapsed();
        let (stats, measurements) = (table.stats()?, explorer.measurements()?);

        let start = Instant::now();
        let finding = exploration.found.as_ref().map(|found| {
            let states = explorer.path(found, limits);
            let path = states.and_then(|states| path::replay(interpreter, checks, states, found.violation.clone()));
            Finding { found, path }
        });
        time.path = start.elapsed();
        let path = finding.as_ref().and_then(|finding| finding.path.as_ref().ok());
        if let (Some(file), Some(path)) = (&options.trace, path) {
            let text = format!("{:#}\n", path.json(model, checks));
            std::fs::write(file, text).with_context(|| format!("the path cannot be written to {}", file.display()))?;
        }
        let (spec, engine, exploration) = (table.spec(), engine(), &exploration);
        let report = Report { model, checks, device, spec, stats, exploration, engine, time, measurements, finding };
        print(&report, options.json)?;
        Ok(exit_code(exploration))
    }
}

fn limits(options: &Options, device: &Device) -> Limits {
    // A GPU says by itself when its memory ends.
    let free = if device.is_gpu() { u64::MAX } else { memory::free_memory() / 5 * 4 };
    let (states, bytes) = (options.max_states.unwrap_or(u64::MAX), options.memory.unwrap_or(free));
    Limits { states, levels: u64::MAX, bytes, keep_going: options.keep_going }
}

fn print(report: &Report, json: bool) -> Result<()> {
    let text = if json { format!("{}\n", report.json()) } else { report.text() };
    std::io::stdout().write_all(text.as_bytes()).context("the report cannot be printed")
}

fn exit_code(exploration: &Exploration) -> ExitCode {
    match (&exploration.found, exploration.end) {
        (Some(_), _) => ExitCode::from(EXIT_FOUND),
        (None, End::Complete) => ExitCode::SUCCESS,
        (None, _) => ExitCode::from(EXIT_INCOMPLETE),
    }
}
