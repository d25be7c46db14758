//! The command line.

use crate::device::DeviceChoice;
use crate::diagnostic::Severity;
use crate::exit;
use crate::language::{Format, Text};
use crate::network::Reading;
use crate::numbers::{parse_bytes, parse_count, parse_time};
use crate::table_kind::TableKind;
use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use warpset::Device;
use warpset_model::net::encoding::Encoding;

const AFTER_HELP: &str = "\
MODEL is a text in DVE, the language of the DiVinE tools: processes with states and guarded transitions, shared variables, channels.
Or in SLCO 2.0 (.slco), a network of transition systems (.exp, with .aut files), one of these by itself (.aut), or a Petri net (.pnml);
see --format.
It is a file, a pipe or - (standard input), and has at most 16 MiB; an .aut file may be of any size.

  explore peterson.dve                                      count states, transitions, deadlocks, levels
  explore peterson.dve --deadlock                           is there a state without any step? the shortest path to one
  explore peterson.dve --invariant 'P_0.CS + P_1.CS <= 1'   does it hold everywhere? the shortest path to where it does not
  explore puzzle.dve --goal 'board[0] == 1'                 the shortest path to where it holds: the solution
  explore peterson.dve --ltl 'G (P_0.wait -> F P_0.CS)'     does every run satisfy it? a path and a loop that do not
  explore peterson.dve --ef 'P_0.CS'                        can it always be reached? the shortest path to where it is lost

  explore crossing.exp --goal 'enabled(i) and gate == 1'    the same of a network: states of components, labels of steps
  explore crossing.exp --ltl 'G F gate == 0' --fair weak    formulas over its conditions, of runs fair to every component
  explore crossing.exp --export all.aut                     all states and transitions as a file, which is a model again

  explore large.dve --checkpoint FILE --timeout 8h          keeps the search in a file, now and then and when it ends
  explore large.dve --resume FILE                           goes on with it, with the same result as in one go

Conditions are DVE expressions: P_0.CS is 1 while process P_0 is in its state CS, P_0.x is its variable x, and y a global one; there are
C's operators, and `and`, `or`, `not`, `imply`. Of SLCO they are its own expressions: a.Count.Done is true while the machine Count of
object a is in its state Done, a.n is a variable of a. Of a network they are DVE's: train is the state of the component train.aut
(train_1, train_2 if there are two), enabled(PUT) is 1 if a step of the gate PUT is possible, whatever it offers, enabled(\"PUT !1\") if
one with that label is. If there is no label `PUT`, enabled(\"PUT\") is about the gate, too. Of a Petri net: tokens(p, q) are the tokens
of places together, fireable(t, u) is 1 if one of the transitions is enabled; names of other characters are in quotes.

Formulas of --ltl have conditions as propositions and the operators of SPIN and Spot, the loosest first: <->, ->, || (or), && (and),
U R (V) W M, ! (not) X F (<>) G ([]). A run that ends in a deadlock goes on in its last state for ever. A DVE model may have a property
process of its own (`system async property NAME`), which accepts the runs that must not be. Then states and transitions are those of the
product with the automaton. The verdict is `holds`, `violated` or, where something ended it before, `unknown`.

Transitions are counted with multiplicity, self loops too. A deadlock is a state without any step. Levels are those of a breadth-first
search, the initial state's included. What does not fit a variable wraps around, and is counted as an overflow; what of the text
itself does not fit (`byte x = 300`, lists longer than their arrays, shifts by more than 31) is told in warnings, and counted, too. An
index outside its array and a division by zero are faults of the model, and end the exploration with the path to them.

States are compared as a whole: none is taken for another, as by a hash of it, so counts are exact.

Numbers may be written 1_000_000, 1M, 1.5k, 2G or 2^20; bytes 3G or 3GiB too; times 90, 1.5, 90s, 5m or 2h.

Ctrl-C ends the exploration with a report of what was found until then.
";

fn after_help() -> String {
    format!("{AFTER_HELP}\n{}", exit::HELP)
}

/// Explores all states that a model can reach, and checks them.
#[derive(Clone, Debug, Parser)]
#[command(name = "explore", version, after_help = after_help())]
pub struct Options {
    /// The model file; - reads standard input.
    pub model: PathBuf,

    /// Language of the model [default: by the file's extension; DVE if that is unknown]
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// Networks only: labels of this gate do not synchronize, like the hidden label `i`; CADP can treat `rate` and `prob` so. May
    /// be given several times. An unknown gate is a warning.
    #[arg(long, value_name = "GATE")]
    pub interleave: Vec<String>,

    /// Networks only: labels that are in no vector of a `par using` occur without synchronization, as in GPUexplore 1.0. In EXP
    /// they do not occur.
    #[arg(long)]
    pub independent: bool,

    /// Petri nets only: bits for the tokens of a place for which no bound is proved. When a place gets more tokens than they
    /// hold, the search begins again with 16 bits, and then with 31 [default: 8]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=31))]
    pub token_bits: Option<u32>,

    /// Treat warnings as errors: refuse models and conditions that would not be evaluated as written.
    #[arg(long, help_heading = "Checks")]
    pub strict: bool,

    /// End at a state without any step. Without this option such states are only counted.
    #[arg(long, help_heading = "Checks")]
    pub deadlock: bool,

    /// A condition that must hold in every state. May be given several times.
    #[arg(long, value_name = "EXPR", help_heading = "Checks")]
    pub invariant: Vec<String>,

    /// A condition to be reached. May be given several times; the search ends at a state in which any of them holds.
    #[arg(long, value_name = "EXPR", help_heading = "Checks")]
    pub goal: Vec<String>,

    /// A formula of linear temporal logic that every run must satisfy. A violating run is shown as a path and a loop. Replaces
    /// the model's own property process, if it has one.
    #[arg(long, value_name = "FORMULA", conflicts_with = "buchi", help_heading = "Runs")]
    pub ltl: Option<String>,

    /// A Büchi automaton that accepts the forbidden runs, in the HOA format with state-based acceptance; its propositions are
    /// conditions. Replaces the model's own property process, if it has one.
    #[arg(long, value_name = "FILE", help_heading = "Runs")]
    pub buchi: Option<PathBuf>,

    /// A condition that must stay reachable from every state. If not, shows the shortest path to a state from which it cannot be
    /// reached.
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["livelock", "ltl", "buchi"], help_heading = "Runs")]
    pub ef: Option<String>,

    /// Search for a set of states that is never left and has steps, but no state in which this condition (progress) holds. Shows
    /// the shortest path to it.
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["ltl", "buchi"], help_heading = "Runs")]
    pub livelock: Option<String>,

    /// Consider only runs that are fair to every process (in a network: component). `weak`: a process that can always move from
    /// some point on moves infinitely often. A process that could receive in a rendezvous can move; SPIN does not count it. A run
    /// that has ended is fair to every process.
    #[arg(long, value_enum, value_name = "KIND", help_heading = "Runs")]
    pub fair: Option<Fairness>,

    /// Write the automaton of the forbidden runs, and do nothing else: in the HOA format, or for Graphviz if the name ends with
    /// .dot.
    #[arg(long, value_name = "FILE", conflicts_with = "emit", help_heading = "Runs")]
    pub emit_buchi: Option<PathBuf>,

    /// Leave out the property process of the model. Only the states of the other processes are explored, and other checks apply
    /// to these.
    #[arg(long, conflicts_with_all = ["ltl", "buchi"], help_heading = "Runs")]
    pub no_property: bool,

    /// Explore everything despite violations; the path leads to the first violation found. Only a fault of the model still ends
    /// the exploration, and the path then leads to it.
    #[arg(long, help_heading = "Checks")]
    pub keep_going: bool,

    /// Take only some of the steps from each state, and still find what is asked (stubborn sets). `deadlocks`: every deadlock
    /// state. `goal`: a state of a --goal, or one that violates an --invariant or assertion, at the same depth. `auto`: what is
    /// asked. Counts are those of the reduced search. The interpreter computes the steps.
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        conflicts_with_all = [
            "ltl", "buchi", "ef", "livelock", "fair", "export", "record", "checkpoint", "resume", "emit", "emit_buchi", "cycles",
            "local_ranks", "rank", "ranks"
        ],
        help_heading = "Checks"
    )]
    pub reduce: Option<Reduce>,

    /// Write which steps depend on each other, with the reasons: a line for each two that do not accord, and for each that may
    /// make a condition of another true. Does nothing else.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["emit", "emit_buchi"], help_heading = "Checks")]
    pub dependencies: Option<PathBuf>,

    /// Write the path to the violation as JSON.
    #[arg(long, value_name = "FILE", help_heading = "Checks")]
    pub trace: Option<PathBuf>,

    /// Device of the table: best, cpu, cpu:THREADS (at most 1024), gpu (same as gpu:0) or gpu:NUMBER. `best` is the GPU with the
    /// most memory, or else the CPU; it is one GPU even if there are several. With gpu:0,1 or gpu:all the table is distributed
    /// over several GPUs, one rank on each.
    #[arg(long, default_value = "best", help_heading = "Table")]
    pub device: DeviceChoice,

    /// How states are stored. `auto` is tree for states of 8 words or more, else bucket. It is indexed if --parents is given, or
    /// if the table of --capacity fits the memory with an index but not in buckets.
    #[arg(long, value_enum, default_value = "auto", help_heading = "Table")]
    pub table: TableChoice,

    /// Keep the parent of each state in an indexed table: 4 bytes a state. The path to a violation is then known at once;
    /// otherwise the levels before it are explored again. With --table indexed this is automatic if the search checks anything.
    #[arg(
        long,
        conflicts_with_all = ["ltl", "buchi", "ef", "livelock", "export", "resume", "emit", "emit_buchi"],
        help_heading = "Table"
    )]
    pub parents: bool,

    /// Engine of the search. `gpu`: a kernel that stays on the table's GPU. `compiled`: threads with next-state functions
    /// compiled by the system's C++ compiler, or by the one that the variable CXX names. `interpreted`: threads with the
    /// interpreter. `auto` is gpu for a table on a GPU, unless --record is given. Otherwise it begins interpreted, starts the
    /// compiler after 0.1 s, and switches to compiled code when it is ready; without a compiler it stays interpreted.
    #[arg(long, value_enum, default_value = "auto", help_heading = "Table")]
    pub engine: EngineKind,

    /// Distribute the table over this number of ranks in this process, for tests. The ranks share the threads of --device, or its
    /// GPU. With several GPUs the number must be a multiple of theirs. Results and counts are the same.
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u16).range(1..=256), help_heading = "Ranks")]
    pub local_ranks: Option<u16>,

    /// Number of this process among several, from 0. Only needed if no launcher (mpirun, mpiexec, srun, torchrun) sets it in the
    /// environment. Each process uses one GPU: out of those that are visible or that --device names, the one with its number on
    /// its host. Rank 0 prints and writes files.
    #[arg(long, value_name = "RANK", help_heading = "Ranks")]
    pub rank: Option<usize>,

    /// Number of processes. Only needed if no launcher sets it in the environment. With 1 this process searches alone, whatever
    /// started it. --capacity applies to all ranks together, --nodes to each rank, and --memory to each device.
    #[arg(long, value_name = "RANKS", help_heading = "Ranks")]
    pub ranks: Option<usize>,

    /// Where processes meet: file:PATH in a folder that all of them can reach, or tcp:HOST:PORT, where rank 0 listens until all
    /// have connected. Over TCP, WARPSET_RENDEZVOUS_TOKEN in the environment must hold a secret that only these processes know.
    /// It crosses the network unencrypted. torchrun sets the place itself.
    #[arg(long, value_name = "PLACE", help_heading = "Ranks")]
    pub rendezvous: Option<String>,

    /// Measure how a GPU spends its time, and the throughput of its table alone for comparison. Costs a few percent.
    #[arg(long, help_heading = "Limits and output")]
    pub cycles: bool,

    /// Initial number of slots. The table grows when it is 85 % full [default: on a CPU 2^20, or as many as --memory holds; on a
    /// GPU 2^29, or as many as a quarter of its free memory (or --memory) holds with the list of states, or as many states as the
    /// model can have]
    #[arg(long, value_name = "SLOTS", value_parser = parse_count, help_heading = "Table")]
    pub capacity: Option<u64>,

    /// Initial number of slots for nodes of a tree table, for states of 3 words or more; others have no nodes. If only nodes are
    /// full, only they grow; with several ranks they grow with the slots [default: as --capacity; without that, as many as slots
    /// up to 2^20 slots, and beyond an eighth of the slots, but at least 2^20]
    #[arg(long, value_name = "SLOTS", value_parser = parse_count, help_heading = "Table")]
    pub nodes: Option<u64>,

    /// Most bytes of the table and the waiting states. While a table grows, both the old and the new one count [default: 80 % of
    /// the free memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Table")]
    pub memory: Option<u64>,

    /// Save the search in this file from time to time, and when a limit, --timeout or Ctrl-C ends it; --resume continues from it.
    /// The file is complete even if the program is killed; each checkpoint replaces the one before. It holds the whole table and
    /// the waiting states.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["ltl", "buchi", "ef", "livelock", "record", "export", "cycles", "emit", "emit_buchi"],
        help_heading = "Checkpoints"
    )]
    pub checkpoint: Option<PathBuf>,

    /// Time between two checkpoints.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10m",
        value_parser = parse_time,
        requires = "checkpoint",
        help_heading = "Checkpoints"
    )]
    pub checkpoint_every: Duration,

    /// Write a checkpoint once this number of levels has begun since the last one.
    #[arg(
        long,
        value_name = "LEVELS",
        value_parser = clap::value_parser!(u64).range(1..),
        requires = "checkpoint",
        help_heading = "Checkpoints"
    )]
    pub checkpoint_levels: Option<u64>,

    /// Continue the search of a checkpoint as if it had not ended. Model and conditions must be the same; engine and device may
    /// differ. The table is the one in the file, of the same kind.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "ltl", "buchi", "ef", "livelock", "record", "export", "cycles", "emit", "emit_buchi", "capacity", "nodes"
        ],
        help_heading = "Checkpoints"
    )]
    pub resume: Option<PathBuf>,

    /// Stop when this time has passed since the start, in seconds or with a unit: 90, 1.5, 90s, 5m, 2h.
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Limits and output")]
    pub timeout: Option<Duration>,

    /// Stop at the end of a round after which this number of states is found.
    #[arg(long, value_name = "STATES", value_parser = parse_count, help_heading = "Limits and output")]
    pub max_states: Option<u64>,

    /// Write all states and transitions after the search is complete: an .aut file with labels, or an .npz file with the arrays
    /// `offsets` and `targets`. States are numbered from 0 in the order of the search. If the search ends early, nothing is
    /// written.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "cycles"], help_heading = "Limits and output")]
    pub export: Option<PathBuf>,

    /// Write all vectors offered to the table as an .npz file, for the example `replay`. With `--device cpu:1` they are in the
    /// order of the search.
    #[arg(long, value_name = "FILE", help_heading = "Limits and output")]
    pub record: Option<PathBuf>,

    /// Record at most this many bytes of vectors. The exploration continues, and the report says how many vectors were left out.
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "2^32",
        value_parser = parse_count,
        requires = "record",
        help_heading = "Limits and output"
    )]
    pub record_bytes: u64,

    /// Show progress on standard error. `auto`: on a terminal, once a search takes longer than a second. `always`: elsewhere,
    /// too, as one line a second.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto", help_heading = "Limits and output")]
    pub progress: ProgressWhen,

    /// Write the CUDA C++ program that is compiled for a GPU, and do nothing else.
    #[arg(long, value_name = "FILE", help_heading = "Limits and output")]
    pub emit: Option<PathBuf>,

    /// Print the report as one JSON object, including the path; without a report, an object with `error` and `exit_code`.
    #[arg(long, help_heading = "Limits and output")]
    pub json: bool,
}

/// How states are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableChoice {
    Auto,
    /// Whole states.
    Bucket,
    /// Trees of pairs, with equal parts shared.
    Tree,
    /// Trees with compact roots: 4 bytes, or 2 if there are few nodes (--nodes).
    TreeCompact,
    /// Whole states in discovery order, with an index; only for searches of states. When the table grows, only its index is
    /// rebuilt.
    Indexed,
}

/// Answers that a reduced search keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reduce {
    Deadlocks,
    Goal,
    Auto,
}

/// Runs that a question considers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fairness {
    /// A process that is enabled from some point on forever moves infinitely often.
    Weak,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    Auto,
    Gpu,
    Compiled,
    Interpreted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressWhen {
    Auto,
    Always,
    Never,
}

impl Options {
    /// Severity of parts that are not computed as written.
    pub fn severity(&self) -> Severity {
        if self.strict { Severity::Error } else { Severity::Warning }
    }

    /// Settings for reading a network. Returns an error if they are given for another language.
    pub fn reading(&self, format: Format) -> Result<Reading> {
        let is_network = matches!(format, Format::Exp | Format::Aut);
        ensure!(is_network || self.interleave.is_empty(), "--interleave is for networks (--format exp)");
        ensure!(is_network || !self.independent, "--independent is for networks (--format exp)");
        Ok(Reading { interleaved: self.interleave.clone(), independent: self.independent })
    }

    /// Encodes the states of a net as requested. Returns an error if that is asked of another model.
    pub fn encode(&self, text: &mut Text) -> Result<()> {
        match (text, self.token_bits) {
            (Text::Net(net), Some(bits)) => Ok(net.encode(Encoding { bits, ..net.encoding })?),
            (_, bits) => {
                ensure!(bits.is_none(), "--token-bits is for Petri nets (--format pnml)");
                Ok(())
            }
        }
    }

    /// Whether a requested feature needs an engine by threads, on any device.
    pub fn finds_on_threads(&self) -> bool {
        self.record.is_some() || self.export.is_some() || self.reduce.is_some()
    }

    /// The engine for a table on this device; `auto` remains for threads. Returns an error if the engine lacks a requested
    /// feature.
    pub fn engine_on(&self, device: &Device, on_ranks: bool) -> Result<EngineKind> {
        let records = self.record.is_some();
        if on_ranks {
            ensure!(!records, "ranks record nothing: --record is for a search in one table");
            ensure!(self.export.is_none(), "ranks number no states: --export is for a search in one table");
            ensure!(!self.cycles, "ranks measure no cycles: --cycles is for --engine gpu in one table");
            let keeps = self.checkpoint.is_some() || self.resume.is_some();
            ensure!(!self.parents, "ranks do not keep what states were found from: --parents is for a search in one table");
            ensure!(!keeps, "ranks keep no checkpoints: --checkpoint and --resume are for a search in one table");
        }
        if self.reduce.is_some() {
            ensure!(!on_ranks, "ranks do not reduce: --reduce is for a search in one table");
            let is_interpreted = matches!(self.engine, EngineKind::Auto | EngineKind::Interpreted);
            ensure!(is_interpreted, "only the interpreter reduces: --reduce is for --engine interpreted");
            return Ok(EngineKind::Interpreted);
        }
        if self.export.is_some() {
            let is_interpreted = matches!(self.engine, EngineKind::Auto | EngineKind::Interpreted);
            ensure!(is_interpreted, "only the interpreter knows what steps are called: --export is for --engine interpreted");
            return Ok(EngineKind::Interpreted);
        }
        let engine = match self.engine {
            EngineKind::Auto if cfg!(feature = "cuda") && device.is_gpu() && !self.finds_on_threads() => EngineKind::Gpu,
            other => other,
        };
        if engine == EngineKind::Gpu {
            ensure!(cfg!(feature = "cuda"), "this build has no engine for GPUs: warpset's feature `cuda` is off");
            ensure!(!records, "the engine on the GPU records nothing: --record is for --engine interpreted or compiled");
            ensure!(device.is_gpu(), "the engine on the GPU needs a table on a GPU, not on {device} (--device)");
        } else {
            ensure!(!self.cycles, "only the engine on the GPU measures its time: --cycles is for --engine gpu");
        }
        Ok(engine)
    }
}

impl TableChoice {
    /// The requested kind; `None` for `auto`.
    pub fn kind(self) -> Option<TableKind> {
        match self {
            Self::Auto => None,
            Self::Bucket => Some(TableKind::Bucket),
            Self::Tree => Some(TableKind::Tree),
            Self::TreeCompact => Some(TableKind::TreeCompact),
            Self::Indexed => Some(TableKind::Indexed),
        }
    }

    /// The kind for states of `words` words.
    pub fn of(self, words: usize) -> TableKind {
        let best = if words >= 8 { TableKind::Tree } else { TableKind::Bucket };
        self.kind().unwrap_or(best)
    }
}
