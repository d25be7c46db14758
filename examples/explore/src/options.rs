//! The command line.

use crate::apart;
use crate::export::Form;
use crate::jobs::{self, Job};
use crate::pictures::projection::Projection;
use crate::simulate::requested;
use anyhow::{Result, ensure};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use warpset::Device;
use warpset_model::constants::Constants;
use warpset_model::diagnostic::Severity;
use warpset_model::ir::Model;
use warpset_model::language::{Format, Text};
use warpset_model::net::encoding::Encoding;
use warpset_model::network::Reading;
use warpset_model::trace::States;
use warpset_search::simulation::Walks;
use warpset_search::table_kind::TableKind;
use warpset_support::device::DeviceChoice;
use warpset_support::exit;
use warpset_support::generate::Generate;
use warpset_support::numbers::{parse_bytes, parse_count, parse_positive, parse_ranks, parse_time};
use warpset_support::program::with_negative_numbers;

const AFTER_HELP: &str = "\
MODEL is a text in DVE, the language of the DiVinE tools (processes with states and guarded transitions, shared variables,
channels), in SLCO 2.0 (.slco), a network of transition systems (.exp, which names .aut files), one transition system (.aut), or a
Petri net (.pnml); see --format. It is a file, a pipe or - (standard input), and has at most 16 MiB, a net 1 GiB; an .aut
file may have any size.

  explore peterson.dve                                      count states, transitions, deadlocks, levels
  explore peterson.dve --deadlock                           find the shortest path to a state without any step
  explore peterson.dve --invariant 'P_0.CS + P_1.CS <= 1'   find the shortest path to a state that violates the condition
  explore puzzle.dve --goal 'board[0] == 1'                 find the shortest path to a state that satisfies the condition
  explore peterson.dve --ltl 'G (P_0.wait -> F P_0.CS)'     check every run; show a violating one as a path and a loop
  explore peterson.dve --ctl 'AG (P_0.wait -> AF P_0.CS)'   evaluate a formula of branching time in every state
  explore peterson.dve --ef 'P_0.CS'                        find the shortest path to a state from which it is unreachable

  explore crossing.exp --goal 'enabled(i) and gate == 1'    conditions of a network: states of components, labels of steps
  explore crossing.exp --ltl 'G F gate == 0' --fair weak    check only runs that are fair to every component
  explore crossing.exp --export all.aut                     write all states and transitions to a file, which is a model again

  explore large.dve --checkpoint FILE --timeout 8h          save the search in a file, at intervals and when it ends
  explore large.dve --resume FILE                           continue that search, with the same result as in one go

Conditions of a DVE model are DVE expressions: P_0.CS is 1 while process P_0 is in its state CS, P_0.x is its variable x, and y is
a global variable; operators are those of C, and `and`, `or`, `not`, `imply`. Conditions of an SLCO model are SLCO expressions:
a.Count.Done is true while the state machine Count of object a is in its state Done, and a.n is a variable of a. Conditions of a
network are DVE expressions, too: train is the state of the component train.aut (train_1, train_2 if there are two); enabled(PUT)
is 1 if a step with the gate PUT is possible, whatever its offers; enabled(\"PUT !1\") is 1 if a step with that label is possible.
If no label `PUT` exists, enabled(\"PUT\") means the gate. Conditions of
a Petri net: tokens(p, q) is the number of tokens of these places together, and fireable(t, u) is 1 if one of these transitions is
enabled; names with other characters are in quotes.

Formulas of --ltl have conditions as propositions and the operators of SPIN and Spot, from loosest to tightest: <->, ->, || (or),
&& (and), U R (V) W M, ! (not) X F (<>) G ([]). A run that ends in a deadlock stays in its last state forever. A DVE model may
have a property process of its own (`system async property NAME`), which accepts the forbidden runs. With a property, states and
transitions are those of the product of model and automaton. The verdict is `holds`, `violated`, or `unknown` if the search ended
early.

Formulas of --ctl have the same conditions; each temporal operator is behind a path quantifier: EX AX EF AF EG AG, E[p U q],
A[p U q], also with R (V), W and M. There a path ends in a deadlock: EX p is false and AX p is true in one.

Transitions are counted with multiplicity and include self-loops. A deadlock is a state without any step. Levels are those of a
breadth-first search, including the level of the initial state. A value that does not fit its variable wraps around and is counted
as an overflow. Text that cannot be taken as written (`byte x = 300`, a list longer than its array, a shift by more than 31)
causes a warning and is counted, too. An index outside its array and a division by zero are faults of the model; they end the
exploration with the path to them.

States are compared as a whole, never by a hash alone, so all counts are exact.

Numbers may be written 1_000_000, 1M, 1.5k, 2G or 2^20; bytes also 3G or 3GiB; times 90, 1.5, 90s, 5m, 5min or 2h.

Ctrl-C or SIGTERM ends the exploration with a report of everything found until then.
";

// Flattened groups have descriptions of their own, which would replace this one if it were a comment only.
const ABOUT: &str = "Explores all states that a model can reach, and checks them";

/// Help of -h.
const SHORT_HELP: &str = "\
Explores all states that a model can reach, and checks them.  Usage: explore [OPTIONS] <MODEL>

  explore peterson.dve                                      count states, transitions, deadlocks, levels
  explore peterson.dve --deadlock                           find the shortest path to a state without any step
  explore peterson.dve --invariant 'P_0.CS + P_1.CS <= 1'   find the shortest path to a state that violates the condition
  explore puzzle.dve --goal 'board[0] == 1'                 find the shortest path to a state that satisfies the condition
  explore peterson.dve --ltl 'G (P_0.wait -> F P_0.CS)'     check every run; show a violating one as a path and a loop
  explore peterson.dve --deadlock --report page.html        write verdicts, path and message chart as a page to look at

States   --deadlock  --invariant EXPR  --goal EXPR          what to look for in each state; may be combined
         --keep-going                                       count all violating states instead of stopping at the first
Runs     --ltl FORMULA  --ctl FORMULA                       linear and branching time
         --ef EXPR  --livelock EXPR  --fair weak            what stays reachable; runs without progress; only fair runs
Output   --report FILE.html  --trace FILE  --states         a page; the path as JSON, .svg or .txt; whole states in a path
         --json  --export FILE  --unreached                 for programs; the state space (.aut, .npz, .dot); dead code
Limits   --memory BYTES  --timeout TIME                     3G; 90s, 5m, 2h
         --max-states N  --max-depth N                      stop early, with a report of what was found
Walks    --step  --simulate WALKS                           step by hand; walk at random instead of searching
Where    --workers N  --device gpu  --engine KIND           CPU threads, or GPUs; how successors are computed
         --checkpoint FILE  --resume FILE                   save a search, and continue it
Model    --const NAME=VALUE  --format LANGUAGE              DVE, SLCO, EXP, AUT, PNML

--help describes all options and the conditions of each language.
";

/// Replaces the help that clap renders for -h. Other errors stay as they are.
fn in_short(command: &mut clap::Command, error: clap::Error) -> clap::Error {
    let is_short = error.kind() == ErrorKind::DisplayHelp && error.to_string() == command.render_help().to_string();
    if !is_short {
        return error;
    }
    command.clone().override_help(SHORT_HELP).try_get_matches_from(["explore", "-h"]).err().unwrap_or(error)
}

fn after_help() -> String {
    format!("{AFTER_HELP}\n{}", exit::HELP)
}

/// Explores all states that a model can reach, and checks them.
// Help shows the headings, and the options of each, in the order of these groups: first what is used most.
#[derive(Clone, Debug, Parser)]
#[command(name = "explore", version, about = ABOUT, disable_help_flag = true, disable_version_flag = true)]
#[command(after_help = after_help())]
pub struct Options {
    #[command(flatten)]
    pub checks: CheckOptions,

    #[command(flatten)]
    pub runs: RunOptions,

    #[command(flatten)]
    pub outputs: OutputOptions,

    #[command(flatten)]
    pub measures: MeasureOptions,

    #[command(flatten)]
    pub display: DisplayOptions,

    #[command(flatten)]
    pub limits: LimitOptions,

    #[command(flatten)]
    pub walks: WalkOptions,

    #[command(flatten)]
    pub table: TableOptions,

    #[command(flatten)]
    pub checkpoints: CheckpointOptions,

    #[command(flatten)]
    pub ranks: RankOptions,

    #[command(flatten)]
    pub input: InputOptions,

    /// Print a man page or the completions of a shell, and exit. Must be the only option.
    #[arg(long, value_enum, value_name = "KIND", exclusive = true, help_heading = "Help")]
    pub generate: Option<Generate>,

    /// Print help: the most used options and examples (-h), or everything (--help).
    #[arg(short, long, action = ArgAction::Help, help_heading = "Help")]
    help: Option<bool>,

    /// Print the version.
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = "Help")]
    version: Option<bool>,

    /// The options that the command line has, by their identifiers.
    #[arg(skip)]
    pub given: Vec<String>,

    /// The work that these options choose.
    #[arg(skip)]
    pub job: Job,
}

/// The model, and how it is read.
#[derive(Args, Clone, Debug)]
pub struct InputOptions {
    /// The model file; - reads standard input.
    pub model: PathBuf,

    /// Language of the model [default: by the file's extension; DVE if that is unknown]
    #[arg(long, value_enum, help_heading = "Model")]
    pub format: Option<Format>,

    /// Give a constant of a DVE model another value, a variable of an SLCO object another initial value, or a place of a Petri
    /// net another initial marking. A constant N of process P is P.N. May be repeated.
    #[arg(id = "const", long = "const", value_name = "NAME=VALUE", help_heading = "Model")]
    pub constants: Vec<String>,

    /// Give each location, variable and array element of a state a word of its own, instead of the bits that it needs. States
    /// take more memory; tables are measured with it on the widths that other tools have. Not for Petri nets.
    #[arg(long, help_heading = "Model")]
    pub unpacked: bool,

    /// Ignore the property process of the model: explore and check the states of the other processes only.
    #[arg(long, help_heading = "DVE")]
    pub no_property: bool,

    /// Do not synchronize labels of this gate, as if it were the hidden label `i`. CADP can treat `rate` and
    /// `prob` like this. May be repeated. An unknown gate causes a warning.
    #[arg(long, value_name = "GATE", help_heading = "Networks")]
    pub interleave: Vec<String>,

    /// Labels in no vector of a `par using` occur without synchronization, as in GPUexplore 1.0. Without this
    /// option they never occur, as in EXP.
    #[arg(long, help_heading = "Networks")]
    pub independent: bool,

    /// Bits for the tokens of a place for which no bound is proved, from 2 to 31. When a place gets more tokens
    /// than they hold, the search begins again with 4, 8, 16 and then 31 bits [default: 8, or fewer if states are too long]
    // A place of one bit is one that the NUPN section says is safe.
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(2..=31), help_heading = "Petri nets")]
    pub token_bits: Option<u32>,

    /// Answer the properties of this file, in the XML format of the Model Checking Contest: a line `FORMULA NAME VERDICT` for
    /// each. Or one of ReachabilityDeadlock, OneSafe, QuasiLiveness, StableMarking and Liveness. With --trace, a path for each
    /// marking that decides a property, and a run for each formula that is violated.
    #[arg(long, value_name = "FILE", help_heading = "Petri nets")]
    pub properties: Option<PathBuf>,
}

/// Checks of states, and how strict they are.
#[derive(Args, Clone, Debug)]
pub struct CheckOptions {
    /// Search for a deadlock: a state without any step, also one in which all processes are done. If all may end, let one of them
    /// step then: `end -> end { guard P.end and Q.end; }`. Without the guard, that step hides deadlocks of the others. Without
    /// this option deadlocks are only counted. (In TLC, deadlocks are checked unless -deadlock is given.)
    #[arg(long, help_heading = "Checks")]
    pub deadlock: bool,

    /// A condition that must hold in every state. May be repeated.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, value_parser = expression, help_heading = "Checks")]
    pub invariant: Vec<String>,

    /// A condition to reach: the search ends at a state in which it holds. May be repeated; any of them ends the search.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, value_parser = expression, help_heading = "Checks")]
    pub goal: Vec<String>,

    /// Explore all states even if a violation is found; the path leads to the first violation. Only a fault of the model still
    /// ends the exploration, and the path then leads to it.
    #[arg(long, help_heading = "Checks")]
    pub keep_going: bool,

    /// Take only some of the steps from each state, and still find what is asked (stubborn sets). `deadlocks`: every deadlock
    /// state. `goal`: a state of a --goal, or one that violates an --invariant or assertion, at the same depth. `auto`: what is
    /// asked. Counts are those of the reduced search.
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Checks")]
    pub reduce: Option<Reduce>,

    /// Treat warnings as errors: refuse models and conditions that would not be evaluated as written.
    #[arg(long, help_heading = "Checks")]
    pub strict: bool,
}

/// The question about runs or paths.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// A formula of linear temporal logic that every run must satisfy. A violating run is shown as a path and a loop. Replaces
    /// the model's own property process, if it has one.
    #[arg(long, value_name = "FORMULA", allow_hyphen_values = true, value_parser = expression, help_heading = "Runs")]
    pub ltl: Option<String>,

    /// A formula of branching time (CTL), whose verdict is that of the initial state: `AG (try -> AF critical)`. A path ends in a
    /// deadlock. May be repeated: all formulas are evaluated after one exploration. Shows a path, if one path shows the verdict.
    #[arg(long, value_name = "FORMULA", allow_hyphen_values = true, value_parser = expression, help_heading = "Runs")]
    pub ctl: Vec<String>,

    /// A condition that must stay reachable from every state. If not, shows the shortest path to a state from which it cannot be
    /// reached.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, value_parser = expression, help_heading = "Runs")]
    pub ef: Option<String>,

    /// Search for a livelock: a set of states that cannot be left and has steps, but no state in which this condition (progress)
    /// holds. Shows the shortest path to it.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, value_parser = expression, help_heading = "Runs")]
    pub livelock: Option<String>,

    /// Consider only runs that are fair to every process (in a network: component). `weak`: a process that can always move from
    /// some point on moves infinitely often. A process that could receive in a rendezvous can move; SPIN does not count it. A run
    /// that has ended is fair to every process.
    #[arg(long, value_enum, value_name = "KIND", help_heading = "Runs")]
    pub fair: Option<Fairness>,

    /// A Büchi automaton that accepts the forbidden runs, in the HOA format with state-based Büchi acceptance or `t`; its
    /// propositions are conditions. Replaces the model's own property process, if it has one.
    #[arg(long, value_name = "FILE", help_heading = "Runs")]
    pub buchi: Option<PathBuf>,

    /// Write the automaton of the forbidden runs and exit: in the HOA format, or for Graphviz if the name ends with .dot.
    #[arg(long, value_name = "FILE", help_heading = "Runs")]
    pub emit_buchi: Option<PathBuf>,
}

/// Measurements beside the search.
#[derive(Args, Clone, Debug)]
pub struct MeasureOptions {
    /// Name in the report which states of processes, transitions and labels never occur in the states that were found. Reads all
    /// states again after the search, by the interpreter.
    #[arg(long, help_heading = "Output")]
    pub unreached: bool,

    /// Write coverage as JSON: the number of found states for each state of a process or component, and the number of steps for
    /// each transition or label. Implies --unreached.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub coverage: Option<PathBuf>,

    /// Measure which activities take the GPU's time, and the throughput of the table alone for comparison. Slows the search by a
    /// few percent.
    #[arg(long, alias = "cycles", help_heading = "Output")]
    pub gpu_time: bool,
}

/// Where a search ends early.
#[derive(Args, Clone, Debug)]
pub struct LimitOptions {
    /// Time limit since the start, in seconds or with a unit: 90, 1.5, 90s, 5m, 2h [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Limits")]
    pub timeout: Option<Duration>,

    /// Stop after the round in which the number of states reaches this one [default: no limit]
    #[arg(long, value_name = "STATES", value_parser = parse_positive, help_heading = "Limits")]
    pub max_states: Option<u64>,

    /// Stop when all states that at most this number of steps reach are checked [default: no limit]
    #[arg(long, value_name = "STEPS", value_parser = parse_count, help_heading = "Limits")]
    pub max_depth: Option<u64>,
}

/// The files to write.
#[derive(Args, Clone, Debug)]
pub struct OutputOptions {
    /// Write the path to the violation: as a message chart if the name ends with .svg or .txt, else as JSON. If nothing is found,
    /// nothing is written, and an earlier file stays as it was.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,

    /// Write the report as one page of HTML that opens without a network: verdicts, the path with its states and message chart,
    /// and the figures of the run.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,

    /// Write all states and transitions: an .aut file with labels, or an .npz file with the arrays `offsets` and `targets`.
    /// States are numbered from 0 in the order of the search. If the search ends early, nothing is written. A .dot file is a
    /// picture for Graphviz, with the path to the violation in red. It always shows the whole model, of at most 2,000 states,
    /// even if the search ends early.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub export: Option<PathBuf>,

    /// Merge states in the picture of --export graph.dot: draw a node for each combination of the states of these processes or
    /// components, or of the values of these variables or places. May be repeated.
    #[arg(long, value_name = "NAMES", requires = "export", help_heading = "Output")]
    pub project: Vec<String>,

    /// Write all vectors offered to the table to an .npz file, for the example `replay`. With --device cpu:1 they are in search
    /// order.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub record: Option<PathBuf>,

    /// Limit of --record, in bytes of vectors. Beyond it the exploration continues, and the report counts the vectors left out.
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "2^32",
        value_parser = parse_count,
        requires = "record",
        help_heading = "Output"
    )]
    pub record_bytes: u64,

    /// Write which steps depend on each other, with the reasons: a line for each two that do not accord, and for each that may
    /// make a condition of another true. Does nothing else.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub dependencies: Option<PathBuf>,

    /// Write the CUDA C++ program of this search and exit. Needs no GPU.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub emit: Option<PathBuf>,

    /// Print how many bytes a state of the model takes in each kind of table, and which table a search takes, and exit.
    #[arg(long, help_heading = "Output")]
    pub tables: bool,
}

/// Options of what is printed.
#[derive(Args, Clone, Debug)]
pub struct DisplayOptions {
    /// Show the whole state after each step of a path, in the text and in the files of --trace, and not only what changes.
    #[arg(long, help_heading = "Output")]
    pub states: bool,

    /// Print the report, including the path, as one JSON object. After an error, print an object with `error` and `exit_code`.
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Show progress on standard error. `auto`: on a terminal, once a search takes longer than a second. `always`: also
    /// elsewhere, as one line per second. `never`: not at all.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub progress: ProgressWhen,
}

/// Walks, by hand or at random.
#[derive(Args, Clone, Debug)]
pub struct WalkOptions {
    /// Step through the model by commands from standard input (? lists them). With a check, the search runs first, and the path
    /// that it finds can be followed. Without one, there is no search.
    #[arg(long, help_heading = "Walks")]
    pub step: bool,

    /// Take random walks instead of a search: WALKS walks of at most DEPTH steps (default: 10,000), without a table, on CPU
    /// threads, or on a GPU with --engine gpu or --device gpu. Checks deadlocks, assertions, invariants and goals in each state.
    /// The walk that finds something is shown as a path. Finding nothing proves nothing.
    #[arg(
        long,
        value_name = "WALKS[,DEPTH]",
        value_parser = requested::parse, help_heading = "Walks")]
    pub simulate: Option<requested::Requested>,

    /// Seed of the random walks. A seed repeats all walks exactly, with any number of threads and any engine.
    #[arg(long, value_name = "SEED", default_value = "1", requires = "simulate", help_heading = "Walks")]
    pub seed: u64,
}

/// The table and its device, and the engine that fills it.
#[derive(Args, Clone, Debug)]
pub struct TableOptions {
    /// Number of CPU threads that search: short for --device cpu:N.
    #[arg(long, value_name = "N", value_parser = parse_workers, help_heading = "Table and engine")]
    pub workers: Option<u32>,

    /// Device of the table: best, cpu, cpu:THREADS (at most 1024), gpu (same as gpu:0) or gpu:NUMBER. `best` is the GPU with the
    /// most memory, or else the CPU; it is one GPU even if there are several. With gpu:0,1 or gpu:all the table is distributed
    /// over several GPUs, one rank on each.
    #[arg(long, default_value = "best", help_heading = "Table and engine")]
    pub device: DeviceChoice,

    /// Engine of the search. `gpu`: a kernel that stays on the table's GPU. `compiled`: threads with next-state functions
    /// compiled by the system's C++ compiler, or by the one that the variable CXX names. `interpreted`: threads with the
    /// interpreter. `auto` is gpu for a table on a GPU, unless --record is given. Otherwise it begins interpreted, starts the
    /// compiler after 0.1 s, and switches to compiled code when it is ready; without a compiler it stays interpreted. Compiled
    /// code is kept for the next search in the folder WARPSET_CACHE_DIR, or in the user's cache folder, unless WARPSET_CACHE is
    /// off.
    #[arg(long, value_enum, default_value = "auto", help_heading = "Table and engine")]
    pub engine: EngineKind,

    /// How states are stored. `auto` is tree for states of 8 words or more and with --nodes, else bucket. If the states fill
    /// --memory, the search begins again as compact (2 words) or tree-compact (3 or more), which take less memory and more time.
    /// It is indexed if --parents is given, or if the table of --capacity fits the memory with an index but not in
    /// buckets.
    #[arg(
        id = "table",
        long = "table",
        value_name = "TABLE",
        value_enum,
        default_value = "auto",
        help_heading = "Table and engine"
    )]
    pub choice: TableChoice,

    /// Memory limit of the table and the waiting states, in bytes. While a table grows, the old and the new one count [default:
    /// 80 % of the free memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Limits")]
    pub memory: Option<u64>,

    /// Initial number of slots. The table grows when it is 85 % full [default: on a CPU 2^20, or fewer to fit --memory; on a GPU
    /// as many as fit --memory with the list of states, without --memory 2^29, or fewer to fit a quarter of its free memory; and
    /// at most the states that the model can have]
    #[arg(long, value_name = "SLOTS", value_parser = parse_count, help_heading = "Table and engine")]
    pub capacity: Option<u64>,

    /// Initial number of node slots of a tree table. States of 1 or 2 words have no nodes. If only the node table is full, only
    /// it grows; with several ranks both grow together [default: --capacity, if given; else one for each slot up to 2^20 slots,
    /// and beyond that 6.5 * slots^0.8, but at least 2^20 and at least an eighth of the slots]
    #[arg(long, value_name = "SLOTS", value_parser = parse_count, help_heading = "Table and engine")]
    pub nodes: Option<u64>,

    /// Keep the parent of each state in an indexed table: 4 bytes a state. These tell which states a level has, for the path to
    /// a violation; otherwise the levels before it are explored again. With --table indexed this is automatic if the search
    /// checks anything.
    #[arg(long, help_heading = "Table and engine")]
    pub parents: bool,
}

/// The ranks of a distributed table.
#[derive(Args, Clone, Debug)]
pub struct RankOptions {
    /// Distribute the table over this number of ranks in this process, 1 to 256, for tests. The ranks share the threads or the
    /// GPU of --device. With several GPUs, the number must be a multiple of the number of GPUs. Counts and findings do not
    /// change.
    #[arg(long, value_name = "RANKS", value_parser = parse_ranks, help_heading = "Several GPUs or processes")]
    pub local_ranks: Option<u16>,

    /// Number of this process among several, from 0. Only needed if no launcher (mpirun, mpiexec, srun, torchrun) sets it in the
    /// environment. Process n of a host uses GPU n of the visible GPUs, or of the GPUs that --device names. Rank 0 prints and
    /// writes files.
    #[arg(long, value_name = "RANK", help_heading = "Several GPUs or processes")]
    pub rank: Option<usize>,

    /// Number of processes. Only needed if no launcher sets it in the environment. With 1, this process searches alone even under
    /// a launcher. --capacity applies to all ranks together, --nodes to each rank, and --memory to each device.
    #[arg(long, value_name = "RANKS", help_heading = "Several GPUs or processes")]
    pub ranks: Option<usize>,

    /// Meeting place of the processes: file:PATH in a folder that all of them can access, or tcp:HOST:PORT, where rank 0 listens
    /// until all have connected. Over TCP, the environment variable WARPSET_RENDEZVOUS_TOKEN must be the same secret for all of
    /// them; it crosses the network unencrypted. Not needed with torchrun, which sets the place.
    #[arg(long, value_name = "PLACE", help_heading = "Several GPUs or processes")]
    pub rendezvous: Option<String>,
}

/// Searches that are saved and resumed.
#[derive(Args, Clone, Debug)]
pub struct CheckpointOptions {
    /// Save the search in this file at intervals, and when a limit, --timeout, Ctrl-C or SIGTERM ends it; --resume continues it.
    /// The file has the whole table and the waiting states. Each checkpoint replaces the previous one completely, even if the
    /// program is killed.
    #[arg(long, value_name = "FILE", help_heading = "Checkpoints")]
    pub checkpoint: Option<PathBuf>,

    /// Time between two checkpoints, in seconds or with a unit: 90, 90s, 5m, 2h.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10m",
        value_parser = parse_time,
        requires = "checkpoint",
        help_heading = "Checkpoints"
    )]
    pub checkpoint_every: Duration,

    /// Write a checkpoint whenever this number of levels has begun since the last one [default: by time only]
    #[arg(
        long,
        value_name = "LEVELS",
        value_parser = clap::value_parser!(u64).range(1..),
        requires = "checkpoint",
        help_heading = "Checkpoints"
    )]
    pub checkpoint_levels: Option<u64>,

    /// Continue the search of a checkpoint as if it had not ended. Model and conditions must be the same; engine and device may
    /// differ. The table is read from the file, and keeps its kind.
    #[arg(long, value_name = "FILE", help_heading = "Checkpoints")]
    pub resume: Option<PathBuf>,
}

/// Parses a condition or a formula, which may begin with a minus sign. A value that is an option of this program is none: its own
/// value is missing.
fn expression(text: &str) -> Result<String, String> {
    let option = text.split_once('=').map_or(text, |(option, _)| option);
    let command = Options::command();
    let is_long = |name: &str| command.get_arguments().any(|of| of.get_long() == Some(name));
    let is_option = option.strip_prefix("--").is_some_and(|name| is_long(name) || name.is_empty());
    if is_option || ["-h", "-V"].contains(&option) {
        return Err(format!("{option} is an option, so the condition before it is missing"));
    }
    Ok(text.into())
}

/// Parses the number of threads.
fn parse_workers(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "not a number of threads; --device cpu takes one for each core".into())
}

/// Adds to the error for an argument such as `-deadlock`, which TLC and others have with one dash, the option of that name.
fn with_dashes(command: &mut clap::Command, arguments: &[OsString], error: clap::Error) -> clap::Error {
    let is_long = |name: &str| command.get_arguments().any(|of| of.get_long() == Some(name));
    let texts = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    let option = texts.filter_map(|text| text.strip_prefix('-')).find(|name| is_long(name));
    match option {
        Some(name) if error.kind() == ErrorKind::UnknownArgument => {
            let message = format!("unexpected argument '-{name}' found\n\n  tip: an option has two dashes: '--{name}'");
            command.error(ErrorKind::UnknownArgument, message)
        }
        _ => error,
    }
}

/// Most words of a state that is a key of a compact table.
pub const KEY_WORDS: usize = 2;

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
    /// States of up to 64 bits as keys. Slots hold the bits that their place does not imply: 2, 4 or 8 bytes, the fewer the more
    /// slots there are. Wider states as tree-compact.
    Compact,
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

impl DisplayOptions {
    /// Parts of the states that paths show.
    pub fn shown(&self) -> States {
        if self.states { States::Whole } else { States::Changes }
    }
}

impl Options {
    /// Parses a command line. Options that do not go together are an error.
    pub fn parsed(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let mut command = with_negative_numbers(Self::command());
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let matches = command.try_get_matches_from_mut(&arguments).map_err(|error| {
            let error = with_dashes(&mut command, &arguments, error);
            in_short(&mut command, error)
        })?;
        let mut options = Self::from_arg_matches(&matches)?;
        let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let all = command.get_arguments().map(|argument| argument.get_id().to_string());
        options.given = all.filter(|id| matches.try_contains_id(id).is_ok() && is_given(id)).collect();
        options.job = Job::of(&options);
        let in_two = apart::commands(&command, &matches, &options.given);
        jobs::ensure_go_together(&mut command, &options.job, &options.given, in_two)?;
        if let Some(workers) = options.table.workers {
            let device = format!("cpu:{workers}").parse();
            options.table.device =
                device.map_err(|why| command.error(ErrorKind::ValueValidation, format!("--workers {workers}: {why}")))?;
        }
        Ok(options)
    }

    /// Whether a search writes before it ends, or continues what was written.
    pub fn writes_during_search(&self) -> bool {
        let Self { outputs, checkpoints, .. } = self;
        outputs.export.is_some() || outputs.record.is_some() || checkpoints.checkpoint.is_some() || checkpoints.resume.is_some()
    }

    /// The engine for a table on this device; `auto` remains for threads. Returns an error if the engine lacks a requested
    /// feature.
    pub fn engine_on(&self, device: &Device, on_ranks: bool) -> Result<EngineKind> {
        let records = self.outputs.record.is_some();
        if on_ranks {
            ensure!(!records, "--record cannot be combined with ranks: it needs a search in one table");
            ensure!(!self.walks.step, "--step cannot be combined with ranks: it needs a search in one table");
            let counts = self.measures.coverage.is_some() || self.measures.unreached;
            ensure!(!counts, "--coverage and --unreached cannot be combined with ranks: they need a search in one table");
            ensure!(self.outputs.export.is_none(), "--export cannot be combined with ranks: it needs a search in one table");
            ensure!(!self.measures.gpu_time, "--gpu-time cannot be combined with ranks: it needs --engine gpu in one table");
            let keeps = self.checkpoints.checkpoint.is_some() || self.checkpoints.resume.is_some();
            ensure!(!self.table.parents, "--parents cannot be combined with ranks: it needs a search in one table");
            ensure!(!keeps, "--checkpoint and --resume cannot be combined with ranks: they need a search in one table");
        }
        if self.checks.reduce.is_some() {
            let is_gpu = self.table.engine == EngineKind::Gpu;
            ensure!(
                !on_ranks || !is_gpu,
                "--reduce on ranks needs --engine interpreted or compiled: ranks that compute on GPUs take all steps"
            );
        }
        if self.outputs.exports_during_search() {
            let is_interpreted = matches!(self.table.engine, EngineKind::Auto | EngineKind::Interpreted);
            ensure!(is_interpreted, "--export needs --engine interpreted: only the interpreter knows the labels of steps");
            return Ok(EngineKind::Interpreted);
        }
        let on_threads = self.outputs.need_threads() || (on_ranks && self.checks.reduce.is_some());
        let engine = match self.table.engine {
            EngineKind::Auto if cfg!(feature = "cuda") && device.is_gpu() && !on_threads => EngineKind::Gpu,
            other => other,
        };
        if engine == EngineKind::Gpu {
            ensure!(cfg!(feature = "cuda"), "this build has no engine for GPUs: warpset's feature `cuda` is off");
            ensure!(!records, "--record needs --engine interpreted or compiled: the engine on the GPU cannot record");
            ensure!(device.is_gpu(), "--engine gpu needs a table on a GPU, but --device chose {device}");
        } else {
            ensure!(!self.measures.gpu_time, "--gpu-time needs --engine gpu: only the engine on the GPU measures its time");
        }
        Ok(engine)
    }
}

impl InputOptions {
    /// Settings for reading a network. Returns an error if they are given for another language.
    pub fn reading(&self, format: Format) -> Result<Reading> {
        let is_network = matches!(format, Format::Exp | Format::Aut);
        ensure!(is_network || self.interleave.is_empty(), "--interleave is for networks (--format exp)");
        ensure!(is_network || !self.independent, "--independent is for networks (--format exp)");
        ensure!(!is_network || self.constants.is_empty(), "--const is for DVE, SLCO and Petri nets: a network has no constants");
        let constants = Constants::parse(&self.constants)?;
        Ok(Reading { interleaved: self.interleave.clone(), independent: self.independent, constants })
    }

    /// Encodes the states as requested. Returns an error if that is asked of a model without such an encoding.
    pub fn encode(&self, text: &mut Text) -> Result<()> {
        if let Text::Net(net) = text {
            ensure!(
                !self.unpacked,
                "--unpacked is for DVE, SLCO and networks: the encoding of a Petri net is chosen by --token-bits"
            );
            return self.token_bits.map_or(Ok(()), |bits| Ok(net.encode(Encoding { bits, ..net.encoding })?));
        }
        ensure!(self.token_bits.is_none(), "--token-bits is for Petri nets (--format pnml)");
        if self.unpacked { text.model_mut().unpack() } else { Ok(()) }
    }
}

impl CheckOptions {
    /// Severity of parts that are not computed as written.
    pub fn severity(&self) -> Severity {
        if self.strict { Severity::Error } else { Severity::Warning }
    }

    /// Whether states are searched for.
    pub fn asks(&self) -> bool {
        self.deadlock || !self.invariant.is_empty() || !self.goal.is_empty()
    }
}

impl RunOptions {
    /// Whether something is asked, other than by a property process of the model.
    pub fn asks(&self) -> bool {
        let formulas = [&self.ltl, &self.ef, &self.livelock].iter().any(|text| text.is_some());
        formulas || self.buchi.is_some() || !self.ctl.is_empty()
    }
}

impl WalkOptions {
    /// The random walks to take, if they are asked for.
    pub fn asked(&self) -> Option<Walks> {
        self.simulate.map(|requested::Requested { walks, depth }| Walks { walks, depth, seed: self.seed })
    }
}

impl OutputOptions {
    /// Whether the search itself must pass its states and transitions on: for every export but a picture.
    pub fn exports_during_search(&self) -> bool {
        self.export.as_deref().is_some_and(|path| Form::of(path).is_ok_and(|form| form != Form::Dot))
    }

    /// Whether a requested file needs an engine by threads, on any device.
    pub fn need_threads(&self) -> bool {
        self.record.is_some() || self.exports_during_search()
    }

    /// Returns an error if a picture cannot be merged as requested.
    pub fn ensure_projects(&self, model: &Model) -> Result<()> {
        let is_picture = self.export.as_deref().is_some_and(|path| Form::of(path).is_ok_and(|form| form == Form::Dot));
        ensure!(
            self.project.is_empty() || is_picture,
            "--project is for pictures: the name of the file of --export ends with .dot"
        );
        Projection::new(model, &self.project).map(drop)
    }
}

impl TableOptions {
    /// The kind of table for states of `words` words.
    pub fn kind_for(&self, words: usize) -> TableKind {
        let best = if words >= 8 || self.nodes.is_some() { TableKind::Tree } else { TableKind::Bucket };
        match self.choice.kind() {
            Some(TableKind::Compact) if words > KEY_WORDS => TableKind::TreeCompact,
            kind => kind.unwrap_or(best),
        }
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
            Self::Compact => Some(TableKind::Compact),
            Self::Indexed => Some(TableKind::Indexed),
        }
    }
}
