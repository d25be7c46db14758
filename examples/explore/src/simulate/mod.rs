//! The option `--simulate`: random walks on CPU threads, and their report.

pub mod requested;

use crate::checks::Checks;
use crate::compiling::compile;
use crate::exit;
use crate::interpreter::Interpreter;
use crate::ir::Model;
use crate::language::Text;
use crate::numbers::counted;
use crate::options::{EngineKind, Options};
use crate::output::Output;
use crate::outputs::trace_text;
use crate::pictures;
use crate::pictures::chart::Chart;
use crate::program;
use crate::spread::RankPlan;
use crate::stopping::{self, Stop};
use crate::successors::Interpreted;
use anyhow::{Result, ensure};
use indicatif::{HumanCount, HumanFloatCount};
use requested::Requested;
use serde_json::json;
use std::time::{Duration, Instant};
use warpset_model::trace::{self, Path, lines_of};
use warpset_search::simulation::{Simulation, Walker, Walks, again, simulate};

/// Number of steps from which compiled functions save more time than compiling them takes (about a second).
const COMPILE_FROM: u64 = 2_000_000;

/// A finished simulation.
struct Done<'a> {
    model: &'a Model,
    checks: &'a Checks,
    walks: Walks,
    engine: String,
    threads: usize,
    simulation: Simulation,
    time: Duration,
    compile: Duration,
    /// The path of the walk that found something.
    path: Option<Path>,
}

/// Takes random walks, and writes the path of the one that finds something.
pub fn run(
    options: &Options,
    requested: Requested,
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
    simulated(options, requested, &interpreted, |path| match trace {
        None => Ok(()),
        Some(output) => {
            let chart = || Chart::new(model, &pictures::Run::of_path(path), checks.describe(&path.violation, model));
            let json = || format!("{:#}\n", path.json(model, checks));
            output.write_text(&trace_text(options, chart, json))
        }
    })
}

/// Takes the walks and prints the report. `write` gets the path, if something was found. Returns the exit code.
fn simulated(
    options: &Options,
    requested: Requested,
    interpreted: &Interpreted,
    write: impl FnOnce(&Path) -> Result<()>,
) -> Result<u8> {
    let walks = Walks { walks: requested.walks, depth: requested.depth, seed: options.seed };
    let start = Instant::now();
    let is_long = walks.walks.saturating_mul(walks.depth) >= COMPILE_FROM;
    let compiled = match options.engine {
        EngineKind::Compiled => Some(compile(options, interpreted)),
        EngineKind::Auto if is_long => Some(compile(options, interpreted)),
        _ => None,
    };
    let compile = start.elapsed();
    match compiled {
        Some(Ok(compiled)) => with(options, walks, &compiled, interpreted, "compiled".into(), compile, write),
        Some(Err(error)) if options.engine == EngineKind::Compiled || error.is::<program::Ended>() => Err(error),
        Some(Err(error)) => {
            let why = error.to_string().lines().next().unwrap_or_default().trim_end_matches(':').to_string();
            with(options, walks, interpreted, interpreted, format!("interpreted: {why}"), compile, write)
        }
        None => with(options, walks, interpreted, interpreted, "interpreted".into(), compile, write),
    }
}

fn with(
    options: &Options,
    walks: Walks,
    walker: &impl Walker,
    interpreted: &Interpreted,
    engine: String,
    compile: Duration,
    write: impl FnOnce(&Path) -> Result<()>,
) -> Result<u8> {
    let (model, checks) = (interpreted.interpreter.model(), interpreted.checks);
    let (initial, threads) = (model.initial_state(), options.device.threads());
    let start = Instant::now();
    let simulation = simulate(walker, &initial, walks, checks.deadlocks, threads, stopping::asked);
    let time = start.elapsed();
    let path = simulation.found.map(|walk| {
        let (states, violation) = again(interpreted, &initial, walks, walk)?;
        trace::replay(&interpreted.interpreter, checks, states, violation)
    });
    let path = path.transpose()?;
    let written = path.as_ref().map_or(Ok(()), write);
    let done = Done { model, checks, walks, engine, threads, simulation, time, compile, path };
    let code = if written.is_err() { exit::ERROR } else { done.exit_code() };
    let error = written.as_ref().err().map(|error| format!("{error:#}"));
    program::print(&if options.json { format!("{}\n", done.json(error.as_deref(), code)) } else { done.text() })?;
    written.map(|()| code)
}

impl Done<'_> {
    fn exit_code(&self) -> u8 {
        match (self.simulation.found, self.simulation.stopped) {
            (_, Some(Stop::Interrupted)) => exit::INTERRUPTED,
            (Some(_), _) => exit::FOUND,
            (None, Some(_)) => exit::INCOMPLETE,
            (None, None) => 0,
        }
    }

    fn per_second(&self) -> f64 {
        self.simulation.steps as f64 / self.time.as_secs_f64().max(1e-9)
    }

    fn end_text(&self) -> String {
        let Walks { walks, .. } = self.walks;
        match (self.simulation.found, self.simulation.stopped) {
            (Some(walk), _) => format!("until a finding in walk {walk}"),
            (None, Some(Stop::Interrupted)) => "in part: INTERRUPTED".into(),
            (None, Some(Stop::Time(most))) => format!("in part: stopped after --timeout {} s", most.as_secs_f64()),
            (None, None) => format!("{}, nothing found (which proves nothing)", counted(walks, "walk")),
        }
    }

    fn text(&self) -> String {
        let Walks { walks, depth, seed } = self.walks;
        let Simulation { steps, deadlocks, longest, overflows, walks: taken, .. } = self.simulation;
        let count = |number: u64| HumanCount(number).to_string();
        let mut rows = vec![
            ("model", format!("{} ({} per state)", self.model.source.name, counted(self.model.layout.words as u64, "word"))),
            ("device", format!("CPU ({}), {}", counted(self.threads as u64, "thread"), self.engine)),
            ("simulation", format!("{} of at most {}, seed {seed}", counted(walks, "walk"), counted(depth, "step"))),
            ("simulated", self.end_text()),
            ("walks", count(taken)),
            ("steps", format!("{} (the longest walk has {})", count(steps), count(longest))),
            ("deadlocks", format!("{} of the walks ended without a further step", count(deadlocks))),
        ];
        if overflows > 0 {
            rows.push(("overflows", format!("{} wrapped", counted(overflows, "store"))));
        }
        let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
        rows.push(("time", format!("compile {}, simulate {}", seconds(self.compile), seconds(self.time))));
        rows.push(("steps a second", HumanFloatCount(self.per_second().round()).to_string()));
        let mut text: String = rows.iter().map(|(name, value)| format!("{name:<18} {value}\n")).collect();
        if let Some(path) = &self.path {
            let walk = self.simulation.found.unwrap_or_default();
            let steps = counted(path.steps.len() as u64, "step");
            text += "\n";
            text += &path.text(self.model, self.checks, &format!("Walk {walk} has {steps}{}:", lines_of(self.model)));
        }
        text
    }

    fn json(&self, error: Option<&str>, code: u8) -> serde_json::Value {
        let Walks { walks, depth, seed } = self.walks;
        let Simulation { steps, deadlocks, longest, overflows, walks: taken, found, stopped } = self.simulation;
        let end = match (found, stopped) {
            (Some(_), _) => "found",
            (None, Some(Stop::Interrupted)) => "interrupted",
            (None, Some(Stop::Time(_))) => "timeout",
            (None, None) => "complete",
        };
        json!({
            "model": self.model.source.name, "engine": self.engine, "threads": self.threads, "simulation": true,
            "walks": walks, "depth": depth, "seed": seed, "end": end, "walks_taken": taken, "steps": steps, "longest": longest,
            "deadlocks": deadlocks, "overflows": overflows, "seconds_compile": self.compile.as_secs_f64(),
            "seconds": self.time.as_secs_f64(), "steps_per_second": self.per_second(), "walk": found,
            "path": self.path.as_ref().map(|path| path.json(self.model, self.checks)), "error": error, "exit_code": code,
        })
    }
}
