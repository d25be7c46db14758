//! The command line of `decompose`.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use warpset_decompose::read::Format;
use warpset_support::device::DeviceChoice;
use warpset_support::exit;
use warpset_support::numbers::{parse_bytes, parse_time};

const AFTER_HELP: &str = "\
GRAPH is one of these, packed by gzip or not (what a file is shows by its extension, or by --format):

  .tra   PRISM's explicit text of a Markov decision process: a line `STATES CHOICES TRANSITIONS`, then lines `SOURCE CHOICE TARGET
         PROBABILITY [ACTION]`, sorted by the first two; or of a Markov chain, without choices
  .aut   a transition system as CADP and mCRL2 write it
  .npz   arrays of NumPy: state s leads to targets[offsets[s] .. offsets[s + 1]], as `explore --export` writes them; with a third
         array, `choices`, state s has the choices choices[s] .. choices[s + 1], and choice c may lead to
         targets[offsets[c] .. offsets[c + 1]]

  decompose coin.tra                               count components and end components, and show how large they are
  decompose coin.tra.gz --output components.npy    the smallest state of each state's component, as an array of uint32
  explore model.dve --export all.npz && decompose all.npz

A strongly connected component is a largest set of states that reach each other; it is trivial if it is one state without a
transition to itself. An end component is a set of states with choices that stay in it, by which they reach each other; states
of a transition system choose between their transitions.

Numbers may be written 1_000_000, 1M, 1.5k, 2G or 2^20; bytes 3G or 3GiB too; times 90, 1.5, 90s, 5m or 2h.
";

fn after_help() -> String {
    format!("{AFTER_HELP}\n{}", exit::HELP)
}

/// Decomposes a graph into strongly connected components, and a Markov decision process into maximal end components.
#[derive(Debug, Parser)]
#[command(name = "decompose", version, after_help = after_help())]
pub struct Options {
    /// The graph; - is standard input, for --format tra or aut.
    pub graph: PathBuf,

    /// What the graph is written in [default: by its file's extension]
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// What decomposes: best, cpu, cpu:THREADS (at most 1024), gpu (the same as gpu:0) or gpu:NUMBER. The best is the GPU with
    /// the most memory, or else the CPU.
    #[arg(long, default_value = "best")]
    pub device: DeviceChoice,

    /// How components are found: `parallel`, by all threads, or those of a GPU, by trimming, pivots and colours; `tarjan`, by
    /// Tarjan's algorithm on one thread of the CPU. `auto` is parallel on a GPU, for a time that the graph's size bounds, after
    /// which the rest is Tarjan's algorithm; on a CPU of 8 threads or more, these trim and search once, and the rest is Tarjan's
    /// algorithm; so is all on a CPU of less.
    #[arg(long, value_enum, default_value = "auto")]
    pub algorithm: Algorithm,

    /// Decomposes by Tarjan's algorithm on one thread of the CPU, too; says how long that took, and ends with an error if there
    /// is a difference.
    #[arg(long)]
    pub compare: bool,

    /// Writes the component of each state, as its smallest state: an .npy file of uint32.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Writes the end component of each state, as its smallest state, or 4294967295 where there is none: an .npy file of uint32.
    #[arg(long, value_name = "FILE")]
    pub output_end_components: Option<PathBuf>,

    /// Bytes of the machine's memory that the graph and the arrays beside it may take; if they need more, that is where it stops
    /// [default: what is free]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory: Option<u64>,

    /// Ends with an error when so much time has passed since the start, in seconds or with a unit: 90, 1.5, 90s, 5m, 2h.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub timeout: Option<Duration>,

    /// Prints the report as one JSON object, or an object with `error` and `exit_code` if there is none.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Algorithm {
    Auto,
    Parallel,
    Tarjan,
}
