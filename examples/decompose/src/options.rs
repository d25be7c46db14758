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

    /// Format of the graph [default: by its file's extension]
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// Device that decomposes the graph: best, cpu, cpu:THREADS (at most 1024), gpu (the same as gpu:0) or gpu:NUMBER. The best
    /// device is the GPU with the most memory, or else the CPU.
    #[arg(long, default_value = "best")]
    pub device: DeviceChoice,

    /// Algorithm that finds components. `parallel`: all threads of the CPU, or the GPU, by trimming, pivots and colours.
    /// `tarjan`: Tarjan's algorithm on one thread of the CPU. `auto`: on a GPU, parallel for a time that the graph's size bounds,
    /// then Tarjan's algorithm for the rest; on a CPU with 8 threads or more, these trim and search once, then Tarjan's algorithm
    /// for the rest; on a CPU with fewer threads, Tarjan's algorithm.
    #[arg(long, value_enum, default_value = "auto")]
    pub algorithm: Algorithm,

    /// Run Tarjan's algorithm on one thread of the CPU, too, and report its time; end with an error if the results differ.
    #[arg(long)]
    pub compare: bool,

    /// Writes the component of each state, as its smallest state: an .npy file of uint32.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Writes the end component of each state, as its smallest state, or 4294967295 where there is none: an .npy file of uint32.
    #[arg(long, value_name = "FILE")]
    pub output_end_components: Option<PathBuf>,

    /// Limit of the machine's memory that the graph and its arrays may take, in bytes; decompose stops if they need more
    /// [default: the free memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory: Option<u64>,

    /// Time limit since the start, after which decompose ends with an error; in seconds or with a unit: 90, 1.5, 90s, 5m, 2h.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub timeout: Option<Duration>,

    /// Prints the report as one JSON object; after an error, an object with `error` and `exit_code`.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Algorithm {
    Auto,
    Parallel,
    Tarjan,
}
