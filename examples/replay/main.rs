//! Find-or-puts the vectors of a NumPy file, or random ones, into a table, and reports what became of them, how fast, and in how
//! much memory.
//!
//! ```text
//! cargo run --release --example replay                      # a million random vectors on the best device
//! cargo run --release --example replay -- states.npz --verify
//! cargo run --release --example replay -- --help
//! ```

#[path = "../support/device.rs"]
mod device;
mod floor;
mod input;
#[path = "../support/memory.rs"]
mod memory;
mod npy;
#[path = "../support/numbers.rs"]
mod numbers;
#[cfg(feature = "cuda")]
mod on_gpu;
mod options;
mod progress;
mod random;
mod report;
mod table;
mod vectors;
mod verify;

use anyhow::{Context, Result};
use options::{EXIT_FULL, Options, Roots, TableKind};
use progress::Progress;
use report::{Pass, Report};
use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Instant;
use table::Kind;
use vectors::Vectors;
use warpset::{Batch, Bucket, CompactTree, Error, Request, Root, Storage, Tree, VectorTable};

/// Vectors put before the clock starts, so that a GPU's kernels and buffers are there.
const WARM_UP: usize = 4096;

fn main() -> ExitCode {
    let options = Options::parse_or_exit();
    match replay(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            let is_full = matches!(error.downcast_ref(), Some(Error::TableFull { .. }));
            if is_full { ExitCode::from(EXIT_FULL) } else { ExitCode::FAILURE }
        }
    }
}

fn replay(options: &Options) -> Result<()> {
    let device = options.device.open()?;
    let vectors = input(options)?;
    match (options.table, options.roots) {
        (TableKind::Bucket, _) => replay_into(&table::make::<Bucket>(options, &vectors, &device)?, options, &vectors),
        (TableKind::Tree, Roots::Plain) => replay_into(&table::make::<Tree>(options, &vectors, &device)?, options, &vectors),
        (TableKind::Tree, Roots::Compact) => {
            replay_into(&table::make::<CompactTree>(options, &vectors, &device)?, options, &vectors)
        }
        (TableKind::Root, _) => replay_into(&table::make::<Root>(options, &vectors, &device)?, options, &vectors),
    }
}

fn replay_into<S: Kind>(table: &VectorTable<S>, options: &Options, vectors: &Vectors) -> Result<()> {
    warm_up(table, vectors)?;
    let (first, batch) = pass(table, vectors, options.verify)?;
    let mut passes = vec![first];
    for _ in 1..options.repeat {
        passes.push(pass(table, vectors, false)?.0);
    }
    let verification = options.verify.then(|| verify(vectors, &batch, table, &passes));
    let (gpu_gops, floor_gops) = match options.measures_floor(vectors.count()) {
        true => measure(options, table, vectors, &batch)?,
        false => (None, None),
    };
    let verified = verification.as_ref().map(Result::is_ok);
    let report = Report {
        vectors,
        kind: options.table,
        device: table.device(),
        spec: table.spec(),
        stats: table.stats()?,
        passes,
        gpu_gops,
        floor_gops,
        verified,
    };
    print(&report, options.json)?;
    verification.transpose()?;
    batch.complete(table).map(drop).map_err(|error| match table::advice(&error) {
        Some(advice) => anyhow::Error::from(error).context(advice),
        None => error.into(),
    })
}

fn input(options: &Options) -> Result<Vectors> {
    match &options.file {
        Some(path) => input::read(path, options.array.as_deref()),
        None => random::generate(&random::Parameters {
            width: options.width,
            count: options.count,
            duplication: options.duplication,
            internal_duplication: options.internal_duplication,
            seed: options.seed,
        }),
    }
}

fn warm_up<S: Storage>(table: &VectorTable<S>, vectors: &Vectors) -> Result<()> {
    let words = &vectors.words[..vectors.count().min(WARM_UP) * vectors.width];
    table.find_or_put_many(words)?.complete(table)?;
    Ok(table.clear()?)
}

/// Offers all vectors once.
fn pass<S: Storage>(table: &VectorTable<S>, vectors: &Vectors, references: bool) -> Result<(Pass, Batch)> {
    let progress = Progress::new("find-or-put", vectors.count() as u64);
    let mut report = |done, _| {
        progress.set(done);
        ControlFlow::Continue(())
    };
    let request = Request::new().outcomes(true).references(references).progress(&mut report);
    let start = Instant::now();
    let batch = table.find_or_put_many_with(&vectors.words, request)?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((Pass { seconds, tally: batch.tally }, batch))
}

/// The rate on the GPU alone, if it is one, and the placement floor.
fn measure<S: Kind>(
    options: &Options,
    table: &VectorTable<S>,
    vectors: &Vectors,
    batch: &Batch,
) -> Result<(Option<f64>, Option<f64>)> {
    #[cfg(feature = "cuda")]
    if table.device().is_gpu() {
        let measured = on_gpu::measure(table, vectors)?;
        return Ok((measured.as_ref().map(|rates| rates.gops), measured.and_then(|rates| rates.floor_gops)));
    }
    Ok((None, floor::placement_floor_gops(table, vectors, batch, options.device.threads())?))
}

fn verify<S: Storage>(vectors: &Vectors, batch: &Batch, table: &VectorTable<S>, passes: &[Pass]) -> Result<()> {
    let check = || {
        verify::verify(vectors, batch, table)?;
        verify::verify_later(&passes[0], &passes[1..])
    };
    check().context("the table differs from the reference set")
}

fn print(report: &Report, json: bool) -> Result<()> {
    let text = if json { format!("{}\n", report.json()) } else { report.text() };
    std::io::stdout().write_all(text.as_bytes()).context("the report cannot be printed")
}
