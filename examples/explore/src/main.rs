//! An explicit-state model checker: explores all states that a model can reach, counts them, checks them, and shows the shortest
//! path to a violation.
//!
//! ```text
//! cargo run --release -p warpset-explore -- examples/explore/models/peterson.dve --invariant 'P_0.critical + P_1.critical <= 1'
//! cargo run --release -p warpset-explore -- --help
//! ```

mod apart;
mod archive;
mod ask;
mod compiling;
mod encodings;
mod ending;
mod export;
mod first_table;
mod jobs;
mod options;
mod outputs;
mod pictures;
mod progress;
mod properties;
mod record;
mod reduce;
mod report;
mod search;
mod searcher;
mod simulate;
mod spread;
mod step;
mod tables;
mod task;

use anyhow::{Error, Result};
use clap::CommandFactory as _;
use export::Form;
use jobs::Job;
use options::{Options, ProgressWhen};
use outputs::Outputs;
use search::search;
use spread::RankPlan;
use std::process::ExitCode;
use std::time::Instant;
use warpset_model::diagnostic::{Located, Severity};
use warpset_model::input;
use warpset_model::language::{Format, Text};
use warpset_support::{program, stopping};

fn main() -> ExitCode {
    program::run(Options::command(), |arguments| Options::parsed(arguments), run, render)
}

/// Formats an error for readers; an error in a text shows the lines where it occurs.
fn render(error: &Error) -> String {
    match error.downcast_ref::<Box<Located>>() {
        Some(located) => located.diagnostic.render(&located.source, Severity::Error, program::has_colors()),
        None => program::sentence(error),
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
    let mut silent = options.clone();
    (silent.outputs.trace, silent.display.progress) = (None, ProgressWhen::Never);
    run_as(&silent, &plan)
}

fn run_as(options: &Options, plan: &RankPlan) -> Result<u8> {
    stopping::watch(options.limits.timeout, options.display.json, "before the exploration began")?;
    let start = Instant::now();
    options.outputs.export.as_deref().map(Form::of).transpose()?;
    let mut input = input::open(&options.input.model)?;
    let file = input.identity.take();
    let outputs = Outputs::open(options, file.as_ref())?;
    let format = options.input.format.map_or_else(|| Format::of(&options.input.model), Ok)?;
    let mut text = Text::read(format, input, &options.input.reading(format)?)?;
    outputs.ensure_are_not(text.files())?;
    options.input.encode(&mut text)?;
    options.outputs.ensure_projects(text.model())?;
    if let Job::Properties(file) = &options.job {
        return properties::rounds::answer(options, plan, &mut text, outputs, file, start);
    }
    let mut opened = Some(outputs);
    let open = || opened.take().map_or_else(|| Outputs::open(options, file.as_ref()), Ok);
    search(options, plan, &mut text, open, start, None)
}
