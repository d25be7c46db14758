//! Find-or-puts the vectors of a NumPy file, or random ones, into a table, and reports outcomes, speed and memory.
//!
//! ```text
//! cargo run --release --example replay                      # a million random vectors on the best device
//! cargo run --release --example replay -- states.npz --verify
//! cargo run --release --example replay -- --help
//! ```

mod input;
mod npy;
#[cfg(feature = "cuda")]
mod on_gpu;
mod options;
mod placement;
mod progress;
mod random;
mod ranks;
mod report;
mod table;
mod vectors;
mod verify;

use anyhow::Result;
use clap::CommandFactory as _;
use memory::MemoryBudget;
use options::{Options, Roots, TableKind};
use program::Ended;
use progress::WorkProgress;
use report::{Measured, Pass, Report};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Instant;
use table::ReplayKind;
use vectors::Vectors;
use warpset::{
    Batch, Bucket, CompactTree, Device, Error, Indexed, Outcome, Reference, Request, Root, Storage, Tree, VectorTable,
};
use warpset_support::{device, escaping, exit, generate, in_process, memory, npy_header, numbers, program, stopping};

/// Number of vectors put before the clock starts, so that a GPU's kernels are loaded and its buffers allocated.
const WARM_UP: usize = 4096;

/// Reads all vectors of a `.npy` or `.npz` file: their words, one vector after another, and the number of words of each.
///
/// # Errors
///
/// The file has no vectors of 32-bit words, or they need more than the free memory.
pub fn read(file: &std::path::Path) -> Result<(Vec<u32>, usize)> {
    input::read(file, None, None).map(|vectors| (vectors.words, vectors.width))
}

/// Runs the program on the arguments of the command line and returns its exit code.
pub fn main() -> ExitCode {
    program::run(Options::command(), |arguments| Options::parse_checked(arguments), replay, program::sentence)
}

/// Replays, prints the report, and returns the exit code.
fn replay(options: &Options) -> Result<u8> {
    // No partial report exists before the end.
    stopping::watch(options.timeout, options.json, "before the end")?;
    let devices = options.device.open_all()?;
    let vectors = input(options)?;
    match (options.table, options.roots) {
        (TableKind::Bucket, _) => replay_on::<Bucket>(&devices, options, &vectors),
        (TableKind::Tree, Roots::Plain) => replay_on::<Tree>(&devices, options, &vectors),
        (TableKind::Tree, Roots::Compact) => replay_on::<CompactTree>(&devices, options, &vectors),
        (TableKind::Indexed, _) => replay_on::<Indexed>(&devices, options, &vectors),
        (TableKind::Root, _) => replay_on::<Root>(&devices, options, &vectors),
    }
}

/// Replays into one table, or into one that is spread over ranks if several devices or ranks are selected.
fn replay_on<S: ReplayKind>(devices: &[Device], options: &Options, vectors: &Vectors) -> Result<u8> {
    match (devices, options.local_ranks) {
        ([device], None) => replay_into(&table::make::<S>(options, vectors, device)?, options, vectors),
        (_, ranks) => ranks::replay::<S>(devices, ranks.map_or(devices.len(), usize::from), options, vectors),
    }
}

fn replay_into<S: ReplayKind>(table: &VectorTable<S>, options: &Options, vectors: &Vectors) -> Result<u8> {
    ensure_memory(options, table.slots(), vectors)?;
    warm_up(table, vectors)?;
    let (first, batch) = pass(table, vectors, options.verify)?;
    // Verify before another pass makes the table grow: before a batch the table does not know which vectors of the batch are new.
    let mut verification = options.verify.then(|| verify::difference(|| verify::verify(vectors, &batch, table))).transpose()?;
    let mut passes = vec![first];
    for _ in 1..options.repeat {
        passes.push(pass(table, vectors, false)?.0);
    }
    if let Some(Ok(())) = verification {
        verification = Some(verify::difference(|| verify::verify_later(&passes, table.len()?))?);
    }
    let measured = match options.measures_placement(vectors.count()) {
        true => measure(options, table, vectors, &batch)?,
        false => Measured::default(),
    };
    let verified = verification.as_ref().map(Result::is_ok);
    let failure = failure(verification, batch.complete(table).err());
    let report = Report {
        vectors,
        kind: options.table,
        device: table.device(),
        spec: table.spec(),
        stats: table.stats()?,
        passes,
        measured,
        ranks: None,
        verified,
        failure: failure.as_ref().map(|ended| (ended.why.as_str(), ended.code)),
    };
    tell(options, &report, failure.as_ref())
}

/// Prints the report; returns the exit code.
fn tell(options: &Options, report: &Report<'_>, failure: Option<&Ended>) -> Result<u8> {
    program::print(&if options.json { format!("{}\n", report.json()) } else { report.text() })?;
    if let Some(ended) = failure {
        program::print_error(&program::sentence(ended));
    }
    Ok(failure.map_or(0, |ended| ended.code))
}

/// Failure of a replay that reached its end: the table differs from the reference set, or was too full.
fn failure(verification: Option<Result<()>>, full: Option<Error>) -> Option<Ended> {
    if let Some(Err(difference)) = verification {
        return Some(Ended { code: exit::FOUND, why: format!("{difference:#}") });
    }
    let error = full?;
    let code = if matches!(error, Error::TableFull { .. }) { exit::INCOMPLETE } else { exit::ERROR };
    let advice = table::advice(&error);
    let error = anyhow::Error::from(error);
    let why = advice.map_or_else(|| format!("{error:#}"), |advice| format!("{advice}: {error:#}"));
    Some(Ended { code, why })
}

/// Returns an error if the results of a pass, and the data of a verification, exceed the memory.
fn ensure_memory(options: &Options, slots: u64, vectors: &Vectors) -> Result<()> {
    let count = vectors.count() as u64;
    let mut bytes = count * size_of::<Outcome>() as u64;
    if options.verify {
        let stored = vectors.most_distinct().min(count);
        bytes += count * size_of::<Option<Reference>>() as u64 + verify::bytes_for(stored);
    }
    let what = if options.verify { "outcomes, references and the reference set" } else { "outcomes" };
    MemoryBudget::of(options.memory).ensure(&format!("{what} of {count} vectors in a table of {slots} slots"), bytes)
}

fn input(options: &Options) -> Result<Vectors> {
    match &options.file {
        Some(path) => input::read(path, options.array.as_deref(), options.memory),
        None => random::generate(&random::Parameters {
            width: options.width,
            count: options.count,
            duplication: options.duplication,
            internal_duplication: options.internal_duplication,
            seed: options.seed,
            memory: options.memory,
        }),
    }
}

fn warm_up<S: Storage>(table: &VectorTable<S>, vectors: &Vectors) -> Result<()> {
    let words = &vectors.words[..vectors.count().min(WARM_UP) * vectors.width];
    let _ = table.find_or_put_many(words)?; // a full table is no error: it is cleared next
    Ok(table.clear()?)
}

/// Offers all vectors once.
fn pass<S: Storage>(table: &VectorTable<S>, vectors: &Vectors, references: bool) -> Result<(Pass, Batch)> {
    let progress = WorkProgress::new("find-or-put", vectors.count() as u64);
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

/// Measures the rate of the placement-only pass and, for a table on a GPU, the rates of the GPU alone and of the link.
fn measure<S: ReplayKind>(options: &Options, table: &VectorTable<S>, vectors: &Vectors, batch: &Batch) -> Result<Measured> {
    #[cfg(feature = "cuda")]
    if table.device().is_gpu() {
        let reported = size_of::<Outcome>() + if options.verify { size_of::<Reference>() } else { 0 };
        let rates = on_gpu::measure(table, vectors, reported)?;
        return Ok(rates.map_or_else(Measured::default, |rates| Measured {
            gpu_gops: Some(rates.gops),
            placement_gops: rates.placement_gops,
            link_gops: Some(rates.link_gops),
        }));
    }
    let memory = options.memory.unwrap_or_else(memory::free_memory);
    let placement_gops = placement::placement_gops(table, vectors, batch, options.device.threads(), memory)?;
    Ok(Measured { placement_gops, ..Measured::default() })
}
