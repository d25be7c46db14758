//! Decomposes a graph into strongly connected components, and a Markov decision process into maximal end components, on a GPU or
//! on CPU threads.
//!
//! ```text
//! cargo run --release -p warpset-decompose -- examples/decompose/casino.tra
//! cargo run --release -p warpset-decompose -- --help
//! ```

mod options;
mod report;

use anyhow::{Context, Result, ensure};
use clap::CommandFactory as _;
#[cfg(feature = "cuda")]
use engine::BUDGET;
use engine::{Decomposer, Done, FEW, MOST_ROUNDS, Settings};
use graph::Graph;
use machine::Machine;
use memory::MemoryBudget;
use npy_writer::npy_header;
use options::{Algorithm, Options};
use output::{Output, Unwritten};
use partition::{Components, EndComponents, smallest_states};
use report::{Report, Time};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use warpset::Device;
use warpset_decompose::{engine, graph, machine, partition, read};
use warpset_support::{components as tarjan, memory, npy_writer, output, program, stopping};

/// Number of CPU threads from which `auto` uses them to trim and search. A single thread takes about three times as long for this
/// as for Tarjan's algorithm.
const ENOUGH_THREADS: usize = 8;

/// Number of remaining states of a larger graph up to which one CPU thread decomposes them.
#[cfg(feature = "cpu")]
const FEW_LEFT: u64 = 1 << 12;

fn main() -> ExitCode {
    program::run(Options::command(), |arguments| program::parsed::<Options>(arguments), run, program::sentence)
}

/// Results of a decomposition.
struct Found {
    labels: Vec<u32>,
    end_labels: Vec<u32>,
    rounds: u64,
    done: Done,
    time: Time,
}

fn run(options: &Options) -> Result<u8> {
    stopping::watch(options.timeout, options.json, "before the end")?;
    ensure!(!options.device.may_be_several(), "decompose uses one device: choose one GPU with --device gpu:NUMBER");
    let budget = MemoryBudget::free(memory::free_memory()).within(options.memory);
    let began = Instant::now();
    let input = read::read(&options.graph, options.format, budget)?;
    let mut time = Time { read: began.elapsed(), ..Time::default() };
    let open = |option, path: &Option<_>| {
        let output = path.as_deref().map(|path: &Path| Output::open(option, path)).transpose()?;
        if let Some(output) = &output {
            output.ensure_is_not("the graph", input.identity.as_ref())?;
            output.ensure_is_not_standard_output()?;
        }
        anyhow::Ok(output)
    };
    let output = open("--output", &options.output)?;
    let end_output = open("--output-end-components", &options.output_end_components)?;
    if let (Some(output), Some(other)) = (&output, &end_output) {
        output.ensure_differs_from(other)?;
    }
    let began = Instant::now();
    let device = options.device.open()?;
    time.device = began.elapsed();
    let algorithm = match options.algorithm {
        Algorithm::Auto if device.is_gpu() || options.device.threads() >= ENOUGH_THREADS => Algorithm::Parallel,
        Algorithm::Auto => Algorithm::Tarjan,
        chosen => chosen,
    };
    let found = decompose(&input.graph, &device, algorithm, options, time)?;
    let tarjan = options.compare.then(|| compare(&input.graph, &found.labels)).transpose()?;
    let mut unwritten = Unwritten::default();
    for (output, labels) in [(output, &found.labels), (end_output, &found.end_labels)] {
        unwritten.keep(output.map_or(Ok(()), |output| write(output, labels)));
    }
    let how = if algorithm == Algorithm::Tarjan { "Tarjan's algorithm" } else { "all at once" };
    let report = Report {
        name: &input.name,
        graph: &input.graph,
        device: format!("{device}, {how}"),
        components: Components::of(&input.graph, &found.labels),
        end_components: EndComponents::of(&input.graph, &found.end_labels),
        rounds: found.rounds,
        time: found.time,
        done: found.done,
        tarjan,
        unwritten,
    };
    program::print(&if options.json { format!("{}\n", report.json()) } else { report.text() })?;
    report.unwritten.print();
    Ok(report.exit_code())
}

fn decompose(graph: &Graph, device: &Device, algorithm: Algorithm, options: &Options, time: Time) -> Result<Found> {
    if !device.is_gpu() {
        return on_threads(graph, algorithm, options, time);
    }
    on_gpu(graph, device, algorithm, options, time)
}

#[cfg(feature = "cuda")]
fn on_gpu(graph: &Graph, device: &Device, algorithm: Algorithm, options: &Options, mut time: Time) -> Result<Found> {
    let began = Instant::now();
    let machine = warpset_decompose::gpu::Gpu::new(device, options.memory)?;
    time.device += began.elapsed();
    let few = if algorithm == Algorithm::Tarjan { u64::MAX } else { FEW };
    let budget = (options.algorithm == Algorithm::Auto).then_some(BUDGET);
    on_machine(graph, &machine, Settings { few, few_left: 0, most_rounds: MOST_ROUNDS, budget }, time)
}

#[cfg(not(feature = "cuda"))]
fn on_gpu(_: &Graph, _: &Device, _: Algorithm, _: &Options, _: Time) -> Result<Found> {
    anyhow::bail!("this build cannot use GPUs: warpset's feature `cuda` is off")
}

#[cfg(feature = "cpu")]
fn on_threads(graph: &Graph, algorithm: Algorithm, options: &Options, time: Time) -> Result<Found> {
    // The graph counts towards the memory that `--memory` limits.
    let bytes = options.memory.map(|most| most.saturating_sub(graph.bytes()));
    let machine = warpset_decompose::cpu::Cpu::new(options.device.threads(), bytes)?;
    let few = if algorithm == Algorithm::Tarjan { u64::MAX } else { FEW };
    // If there are many components, Tarjan's algorithm on one thread is faster after the first round.
    let most_rounds = if options.algorithm == Algorithm::Auto { 1 } else { MOST_ROUNDS };
    on_machine(graph, &machine, Settings { few, few_left: FEW_LEFT, most_rounds, budget: None }, time)
}

#[cfg(not(feature = "cpu"))]
fn on_threads(_: &Graph, _: Algorithm, _: &Options, _: Time) -> Result<Found> {
    anyhow::bail!("this build cannot use the CPU: warpset's feature `cpu` is off")
}

fn on_machine<'g, M: Machine<'g>>(graph: &'g Graph, machine: &M, settings: Settings, mut time: Time) -> Result<Found> {
    let began = Instant::now();
    let mut engine = Decomposer::new(machine, graph, settings)?;
    time.device += began.elapsed();
    let began = Instant::now();
    engine.components()?;
    time.components = began.elapsed();
    let began = Instant::now();
    let labels = engine.labels()?;
    time.results = began.elapsed();
    let began = Instant::now();
    let rounds = engine.end_components()?;
    time.end_components = began.elapsed();
    let began = Instant::now();
    let end_labels = engine.end_labels(&labels)?;
    time.results += began.elapsed();
    Ok(Found { labels, end_labels, rounds, done: engine.done()?, time })
}

/// Measures the time of Tarjan's algorithm on one thread. Returns an error if it finds other components.
fn compare(graph: &Graph, labels: &[u32]) -> Result<Duration> {
    let began = Instant::now();
    let numbers = tarjan::components(labels.len(), |state| graph.successors(state));
    let time = began.elapsed();
    let expected = smallest_states(numbers);
    let differs = labels.iter().zip(&expected).position(|(label, expected)| label != expected);
    let Some(state) = differs else { return Ok(time) };
    anyhow::bail!(
        "state {state} is in the component of state {}, but Tarjan's algorithm puts it in that of state {}: please report this \
         as a bug",
        labels[state],
        expected[state]
    )
}

/// Writes an array that has one number for each state.
fn write(output: Output, labels: &[u32]) -> Result<()> {
    output.write(|file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(&npy_header("<u4", &format!("({},)", labels.len())))?;
        labels.iter().try_for_each(|label| out.write_all(&label.to_le_bytes()))?;
        out.flush().context("the array")
    })
}
