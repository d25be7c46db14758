//! The command line of `decompose`.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use warpset_decompose::read::Format;
use warpset_support::device::DeviceChoice;
use warpset_support::exit;
use warpset_support::generate::Generate;
use warpset_support::numbers::{parse_bytes, parse_time};

const AFTER_HELP: &str = "\
GRAPH has one of these formats, which its extension or --format selects; all but .npz may be packed by gzip (.tra.gz, .aut.gz, ...):

  .tra   PRISM's explicit text of a Markov decision process: a line `STATES CHOICES TRANSITIONS`, then lines `SOURCE CHOICE TARGET
         PROBABILITY [ACTION]`, sorted by source and choice; or of a Markov chain, without choices
  .aut   a transition system, as CADP and mCRL2 write it
  .npz   arrays of NumPy, as `explore --export` writes them: the successors of state s are targets[offsets[s] .. offsets[s + 1]];
         with a third array, `choices`, state s has the choices choices[s] .. choices[s + 1], and choice c may lead to
         targets[offsets[c] .. offsets[c + 1]]. Or a sparse matrix of SciPy (csr, csc or coo)
  .mtx   a matrix in the MatrixMarket format (coordinate): an entry in row i and column j is an edge from i to j
  .edges, .edgelist, .el, .csv, .tsv, .txt
         a line `SOURCE TARGET` for each edge, with numbers from 0 on, separated by blanks, tabs, commas or semicolons; further
         columns (as many in each line) and lines that begin with #, % or // are ignored. A first line of names tells which
         columns are read: `source`, `from` or `src`, and `target`, `to`, `dst`, `dest` or `destination` (or `start` and `end`,
         `tail` and `head`, `node1` and `node2`, `id1` and `id2`, `u` and `v`), whatever their case, also as `FromNodeId` or
         `source_id`. An edge whose column `type` says `undirected` leads both ways. Fields may be in quotes, as in CSV

Texts are in UTF-8, or in UTF-16 with a byte-order mark; lines end with LF, CR or CRLF.

  decompose coin.tra                               count components and end components, and show how large they are
  decompose coin.tra.gz --output components.npy    write the smallest state of each state's component, as an array of uint32
  explore model.dve --export all.npz && decompose all.npz

From Python:

  scipy.sparse.save_npz(\"graph.npz\", matrix)
  subprocess.run([\"decompose\", \"graph.npz\", \"--output\", \"components.npy\"], check=True)
  components = numpy.load(\"components.npy\")  # the smallest state of each state's component

A strongly connected component is a maximal set of states that reach each other; it is trivial if it is one state without a
transition to itself. An end component is a set of states, each with choices that lead only into the set, in which the states
reach each other by these choices. In a transition system every transition is a choice.

Numbers may be written 1_000_000, 1M, 1.5k, 2G or 2^20; bytes also 3G or 3GiB; times 90, 1.5, 90s, 5m or 2h.
";

fn after_help() -> String {
    format!("{AFTER_HELP}\n{}", exit::HELP)
}

/// Decomposes a graph into strongly connected components, and a Markov decision process into maximal end components.
#[derive(Debug, Parser)]
#[command(name = "decompose", version, after_help = after_help())]
pub struct Options {
    /// The graph file. - reads standard input, which needs --format (not npz).
    pub graph: PathBuf,

    /// Format of the graph [default: by the file's extension]
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// Device that decomposes the graph: best, cpu, cpu:THREADS (at most 1024), gpu (the same as gpu:0) or gpu:NUMBER. The best
    /// device is the GPU with the most memory, or else the CPU.
    #[arg(long, default_value = "best")]
    pub device: DeviceChoice,

    /// Algorithm that finds components. `parallel`: trimming, pivots and colours on the GPU or all CPU threads. `tarjan`:
    /// Tarjan's algorithm on one CPU thread. `auto`: on a GPU, parallel within a time budget that depends on the graph's size,
    /// then Tarjan's algorithm for what remains; with at least 8 CPU threads, one parallel trim and search, then Tarjan's
    /// algorithm for what remains; with fewer threads, Tarjan's algorithm.
    #[arg(long, value_enum, default_value = "auto")]
    pub algorithm: Algorithm,

    /// Run Tarjan's algorithm on one thread of the CPU, too, and report its time; end with an error if the results differ.
    #[arg(long)]
    pub compare: bool,

    /// Write the component of each state, named by its smallest state, to an .npy file of uint32.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write the end component of each state, named by its smallest state, or 4294967295 for states in none, to an .npy file of
    /// uint32.
    #[arg(long, value_name = "FILE")]
    pub output_end_components: Option<PathBuf>,

    /// Limit of main memory for the graph and its arrays, in bytes. If they need more, decompose stops with exit code 3
    /// [default: the free memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory: Option<u64>,

    /// Time limit since the start, in seconds or with a unit: 90, 1.5, 90s, 5m, 2h. After it, decompose stops with exit code 3
    /// [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub timeout: Option<Duration>,

    /// Print the report as one JSON object. After an error, print an object with `error` and `exit_code`.
    #[arg(long)]
    pub json: bool,

    /// Print a man page or the completions of a shell, and exit. Must be the only option.
    #[arg(long, value_enum, value_name = "KIND", exclusive = true)]
    pub generate: Option<Generate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Algorithm {
    Auto,
    Parallel,
    Tarjan,
}
