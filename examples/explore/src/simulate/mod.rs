//! The option `--simulate`: random walks on CPU threads or a GPU, and their report.

#[cfg(feature = "cuda")]
mod on_gpu;
pub mod requested;

use crate::compiling::compile_walks;
use crate::encodings::NoRoom;
use crate::options::{DisplayOptions, EngineKind, ProgressWhen, TableOptions};
use crate::outputs::write_trace;
use crate::pictures;
use crate::pictures::chart::Chart;
use crate::report::net::{ignored, ignored_row};
use crate::report::not_traced_text;
use crate::spread::RankPlan;
use anyhow::{Error, Result, ensure};
use indicatif::{HumanCount, HumanFloatCount};
use serde_json::json;
use std::time::{Duration, Instant};
use warpset_model::checks::Checks;
use warpset_model::interpreter::Interpreter;
use warpset_model::ir::Model;
use warpset_model::language::Text;
use warpset_model::trace::{self, Path, States, lines_of};
use warpset_search::simulation::{Simulation, Walker, Walks, again, simulate};
use warpset_search::successors::Interpreted;
use warpset_support::escaping;
use warpset_support::exit;
use warpset_support::numbers::counted;
use warpset_support::output::Output;
use warpset_support::program;
use warpset_support::stopping::{self, Stop};

/// Number of steps from which compiled functions save more time than compiling them takes (about a second).
const COMPILE_FROM: u64 = 2_000_000;

/// The walks that were taken, and the engine that took them.
struct Taken {
    simulation: Simulation,
    device: String,
    threads: u64,
    engine: String,
    compile: Duration,
    time: Duration,
}

/// A finished simulation.
struct Done<'a> {
    model: &'a Model,
    checks: &'a Checks,
    show: States,
    walks: Walks,
    taken: Taken,
    /// The path of the walk that found something.
    path: Option<Path>,
    /// The file of `--trace` if no walk found anything.
    not_traced: Option<&'a std::path::Path>,
}

/// Takes random walks, and writes the path of the one that finds something.
pub fn run(
    walks: Walks,
    table: &TableOptions,
    display: &DisplayOptions,
    plan: &RankPlan,
    text: &Text,
    checks: &Checks,
    trace: Option<Output>,
) -> Result<u8> {
    let model = text.model();
    ensure!(model.property.is_none(), "--simulate cannot check the model's property process; --no-property ignores it");
    ensure!(*plan == RankPlan::Alone, "--simulate runs in one process, without ranks");
    let interpreted = Interpreted::new(Interpreter::new(model), checks);
    let taken = take(table, display.progress, walks, &interpreted)?;
    let path = taken.simulation.found.map(|walk| {
        let (states, violation) = again(&interpreted, &model.initial_state(), walks, walk)?;
        // The walks of a net whose states have too few bits begin again with more.
        if let Some(no_room) = NoRoom::of_walk(&violation) {
            return Err(no_room.into());
        }
        trace::replay(&interpreted.interpreter, checks, states, violation)
    });
    let path = path.transpose()?;
    let show = display.shown();
    let not_traced = trace.as_ref().filter(|_| path.is_none()).map(|file| file.path().to_path_buf());
    let written = match (&path, trace) {
        (Some(path), Some(output)) => {
            let chart = || Chart::new(model, &pictures::Run::of_path(path, model), &path.ending(model, checks), show);
            let json = || format!("{:#}\n", path.json(model, checks, show));
            write_trace(output, chart, json)
        }
        _ => Ok(()),
    };
    let done = Done { model, checks, show, walks, taken, path, not_traced: not_traced.as_deref() };
    let code = if written.is_err() { exit::ERROR } else { done.exit_code() };
    let error = written.as_ref().err().map(|error| format!("{error:#}"));
    program::print(&if display.json { format!("{}\n", done.json(error.as_deref(), code)) } else { done.text() })?;
    written.map(|()| code)
}

/// Takes the walks: on a GPU, or by threads with compiled or interpreted next-state functions.
fn take(table: &TableOptions, when: ProgressWhen, walks: Walks, interpreted: &Interpreted) -> Result<Taken> {
    let is_long = walks.walks.saturating_mul(walks.depth) >= COMPILE_FROM;
    #[cfg(feature = "cuda")]
    let no_gpu = match on_gpu::device(table, walks, is_long)? {
        None => None,
        Some(device) => match on_gpu::take(&device, interpreted, walks) {
            Ok(taken) => return Ok(taken),
            Err(error) if table.engine == EngineKind::Gpu || !table.device.named_gpus().is_empty() => {
                return Err(error);
            }
            Err(error) => Some(format!("not on the GPU: {}", first_line(&error))),
        },
    };
    #[cfg(not(feature = "cuda"))]
    let no_gpu: Option<String> = {
        let on_cpu = table.engine != EngineKind::Gpu && table.device.named_gpus().is_empty();
        ensure!(on_cpu, "this build cannot use GPUs: warpset's feature `cuda` is off");
        None
    };
    let start = Instant::now();
    let compiled = match table.engine {
        EngineKind::Compiled => Some(compile_walks(when, interpreted)),
        EngineKind::Auto if is_long => Some(compile_walks(when, interpreted)),
        _ => None,
    };
    let compile = start.elapsed();
    let mut taken = match compiled {
        Some(Ok(compiled)) => by_threads(table, walks, &compiled, interpreted, "compiled".into()),
        Some(Err(error)) if table.engine == EngineKind::Compiled || error.is::<program::Ended>() => return Err(error),
        Some(Err(error)) => by_threads(table, walks, interpreted, interpreted, format!("interpreted: {}", first_line(&error))),
        None => by_threads(table, walks, interpreted, interpreted, "interpreted".into()),
    };
    taken.compile = compile;
    if let Some(why) = no_gpu {
        taken.engine += &format!(" ({why})");
    }
    Ok(taken)
}

fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_end_matches(':').to_string()
}

fn by_threads(table: &TableOptions, walks: Walks, walker: &impl Walker, interpreted: &Interpreted, engine: String) -> Taken {
    let (initial, threads) = (interpreted.interpreter.model().initial_state(), table.device.threads());
    let start = Instant::now();
    let simulation = simulate(walker, &initial, walks, interpreted.checks.deadlocks, threads, stopping::asked);
    let (device, threads) = ("CPU".into(), threads as u64);
    Taken { simulation, device, threads, engine, compile: Duration::ZERO, time: start.elapsed() }
}

impl Done<'_> {
    fn exit_code(&self) -> u8 {
        match (self.taken.simulation.found, self.taken.simulation.stopped) {
            (_, Some(Stop::Interrupted)) => exit::INTERRUPTED,
            (Some(_), _) => exit::FOUND,
            (None, Some(_)) => exit::INCOMPLETE,
            (None, None) => 0,
        }
    }

    fn per_second(&self) -> f64 {
        self.taken.simulation.steps as f64 / self.taken.time.as_secs_f64().max(1e-9)
    }

    fn end_text(&self) -> String {
        let Walks { walks, .. } = self.walks;
        match (self.taken.simulation.found, self.taken.simulation.stopped) {
            (Some(walk), _) => format!("until a finding in walk {walk}"),
            (None, Some(Stop::Interrupted)) => "in part: INTERRUPTED".into(),
            (None, Some(Stop::Time(most))) => format!("in part: stopped after --timeout {} s", most.as_secs_f64()),
            (None, None) => format!("{}, nothing found (which proves nothing)", counted(walks, "walk")),
        }
    }

    fn text(&self) -> String {
        let Walks { walks, depth, seed } = self.walks;
        let Simulation { steps, deadlocks, longest, overflows, walks: taken, .. } = self.taken.simulation;
        let count = |number: u64| HumanCount(number).to_string();
        let mut rows = vec![
            ("model", format!("{} ({} per state)", self.model.source.name, counted(self.model.layout.words as u64, "word"))),
            ("device", format!("{} ({}), {}", self.taken.device, counted(self.taken.threads, "thread"), self.taken.engine)),
            ("simulation", format!("{} of at most {}, seed {seed}", counted(walks, "walk"), counted(depth, "step"))),
            ("simulated", self.end_text()),
            ("walks", count(taken)),
            ("steps", format!("{} (the longest walk has {})", count(steps), count(longest))),
            ("deadlocks", format!("{} of the walks ended without a further step", count(deadlocks))),
        ];
        if overflows > 0 {
            rows.push(("overflows", format!("{} wrapped", counted(overflows, "store"))));
        }
        if let Some(path) = self.not_traced {
            rows.push(("trace", not_traced_text(path)));
        }
        rows.extend(ignored_row(&ignored(self.model)));
        let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
        rows.push(("time", format!("compile {}, simulate {}", seconds(self.taken.compile), seconds(self.taken.time))));
        rows.push(("steps a second", HumanFloatCount(self.per_second().round()).to_string()));
        let mut text: String = rows.iter().map(|(name, value)| format!("{name:<18} {}\n", escaping::line(value))).collect();
        if let Some(path) = &self.path {
            let walk = self.taken.simulation.found.unwrap_or_default();
            let steps = counted(path.steps.len() as u64, "step");
            text += "\n";
            text += &path.text(self.model, self.checks, &format!("Walk {walk} has {steps}{}:", lines_of(self.model)), self.show);
        }
        text
    }

    fn json(&self, error: Option<&str>, code: u8) -> serde_json::Value {
        let Walks { walks, depth, seed } = self.walks;
        let Simulation { steps, deadlocks, longest, overflows, walks: taken, found, stopped } = self.taken.simulation;
        let end = match (found, stopped) {
            (Some(_), _) => "found",
            (None, Some(Stop::Interrupted)) => "interrupted",
            (None, Some(Stop::Time(_))) => "timeout",
            (None, None) => "complete",
        };
        json!({
            "model": self.model.source.name, "device": self.taken.device, "engine": self.taken.engine,
            "threads": self.taken.threads, "simulation": true,
            "walks": walks, "depth": depth, "seed": seed, "end": end, "walks_taken": taken, "steps": steps, "longest": longest,
            "deadlocks": deadlocks, "overflows": overflows, "seconds_compile": self.taken.compile.as_secs_f64(),
            "seconds": self.taken.time.as_secs_f64(), "steps_per_second": self.per_second(), "walk": found,
            "path": self.path.as_ref().map(|path| path.json(self.model, self.checks, self.show)),
            "ignored": ignored(self.model), "not_traced": self.not_traced.map(not_traced_text), "error": error, "exit_code": code,
        })
    }
}
