//! The command line.

use crate::device::DeviceChoice;
use crate::diagnostic::Severity;
use crate::exit;
use crate::language::Format;
use crate::network::Reading;
use crate::numbers::{parse_bytes, parse_count, parse_time};
use crate::table_kind::TableKind;
use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use warpset::Device;

const AFTER_HELP: &str = "\
MODEL is a text in DVE, the language of the DiVinE tools: processes with states and guarded transitions, shared variables, channels.
Or in SLCO 2.0 (.slco), a network of transition systems (.exp, with .aut files) or one of these by itself (.aut); see --format.
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
one with that label is. If there is no label `PUT`, enabled(\"PUT\") is about the gate, too.

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
    /// The model; - is standard input.
    pub model: PathBuf,

    /// The language of the model [default: the one of its file's extension, and DVE if that says nothing]
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// Of a network: labels of this gate take part in nothing, as the hidden label `i`, as CADP has `rate` and `prob` where it is
    /// told to. May be given several times; there is a warning if there is no such gate.
    #[arg(long, value_name = "GATE")]
    pub interleave: Vec<String>,

    /// Of a network: labels that are in no vector of a `par using` take place by themselves, as in GPUexplore 1.0. In EXP they do
    /// not take place.
    #[arg(long)]
    pub independent: bool,

    /// Takes warnings for errors: nothing is explored if some part of the model's text, or of a condition, is not computed as it
    /// is written.
    #[arg(long, help_heading = "Checks")]
    pub strict: bool,

    /// Ends at a state without any step. Otherwise these are only counted.
    #[arg(long, help_heading = "Checks")]
    pub deadlock: bool,

    /// A condition that must hold in every state. May be given several times.
    #[arg(long, value_name = "EXPR", help_heading = "Checks")]
    pub invariant: Vec<String>,

    /// A condition to be reached. May be given several times: any will do.
    #[arg(long, value_name = "EXPR", help_heading = "Checks")]
    pub goal: Vec<String>,

    /// A formula of linear temporal logic that every run must satisfy; a run that violates it is shown as a path and a loop. In
    /// place of the model's own property process, if it has one.
    #[arg(long, value_name = "FORMULA", conflicts_with = "buchi", help_heading = "Runs")]
    pub ltl: Option<String>,

    /// A Büchi automaton of the runs that must not be, in the HOA format: state-based acceptance, its propositions are
    /// conditions. In place of the model's own property process, if it has one.
    #[arg(long, value_name = "FILE", help_heading = "Runs")]
    pub buchi: Option<PathBuf>,

    /// A condition that must stay reachable from everywhere. If it does not, the shortest path to where it is lost is shown.
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["livelock", "ltl", "buchi"], help_heading = "Runs")]
    pub ef: Option<String>,

    /// Finds states that are never left, with steps but without any in which this condition, progress, holds: the shortest path
    /// to one.
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["ltl", "buchi"], help_heading = "Runs")]
    pub livelock: Option<String>,

    /// Asks only about runs that are fair to every process (of a network: component): `weak`, one that can move for ever moves
    /// again and again. A process that could receive in a rendezvous can move, which SPIN does not count. A run that has ended is
    /// unfair to no process.
    #[arg(long, value_enum, value_name = "KIND", help_heading = "Runs")]
    pub fair: Option<Fairness>,

    /// Writes the automaton of the runs that must not be, and does nothing else: in the HOA format, or for Graphviz if the name
    /// ends with .dot.
    #[arg(long, value_name = "FILE", conflicts_with = "emit", help_heading = "Runs")]
    pub emit_buchi: Option<PathBuf>,

    /// Leaves the property process of the model out: only the states of the other processes are explored, and what else is asked
    /// for is checked of them.
    #[arg(long, conflicts_with_all = ["ltl", "buchi"], help_heading = "Runs")]
    pub no_property: bool,

    /// Explores everything, whatever is found; the path is to what was found first. Only a fault of the model still ends the
    /// exploration, and is then what the path leads to.
    #[arg(long, help_heading = "Checks")]
    pub keep_going: bool,

    /// Writes the path to what was found as JSON.
    #[arg(long, value_name = "FILE", help_heading = "Checks")]
    pub trace: Option<PathBuf>,

    /// Where the table is: best, cpu, cpu:THREADS (at most 1024), gpu (the same as gpu:0) or gpu:NUMBER. The best is the GPU with
    /// the most memory, or else the CPU: one GPU, also where there are several. With gpu:0,1 or gpu:all the table is spread over
    /// several, a rank on each.
    #[arg(long, default_value = "best", help_heading = "Table")]
    pub device: DeviceChoice,

    /// How states are stored. `auto` takes trees for states of 8 words or more, and else stores them as they are: bucket; or
    /// indexed if --parents are wanted, or if there is memory for that with --capacity, but not for buckets.
    #[arg(long, value_enum, default_value = "auto", help_heading = "Table")]
    pub table: TableChoice,

    /// Keeps what each state was found from, in an indexed table: 4 bytes a state. So the path to what is found is there at once,
    /// where otherwise the levels before it are explored again. With --table indexed that is so by itself if something is looked
    /// for.
    #[arg(
        long,
        conflicts_with_all = ["ltl", "buchi", "ef", "livelock", "export", "resume", "emit", "emit_buchi"],
        help_heading = "Table"
    )]
    pub parents: bool,

    /// What explores: `gpu`, a kernel that stays on the table's GPU; `compiled`, threads with next-state functions that the
    /// system's C++ compiler made (the variable CXX names another one); `interpreted`, threads with the interpreter. `auto` is
    /// gpu for a table on a GPU, unless --record is given. Else it begins interpreted; after 200,000 states the compiler is
    /// started beside it, and what it has made takes over when it is done. Where there is no compiler, it stays interpreted.
    #[arg(long, value_enum, default_value = "auto", help_heading = "Table")]
    pub engine: EngineKind,

    /// Spreads the table over so many ranks in this process, each with its share of --device's threads, or all on its GPU: for
    /// trying out. With several GPUs as many on each: a multiple of their number. What is found and counted is the same.
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u16).range(1..=256), help_heading = "Ranks")]
    pub local_ranks: Option<u16>,

    /// Which of several processes this is, from 0, if no launcher's environment says it (mpirun, mpiexec, srun, torchrun). Each
    /// has a GPU: of those that it sees, or --device names, the one of its number on its host. Rank 0 prints and writes files.
    #[arg(long, value_name = "RANK", help_heading = "Ranks")]
    pub rank: Option<usize>,

    /// How many processes there are, if no launcher's environment says it. With 1 this one searches by itself, whatever started
    /// it. Of all ranks together is what --capacity says, of each what --nodes says, and of each device what --memory says.
    #[arg(long, value_name = "RANKS", help_heading = "Ranks")]
    pub ranks: Option<usize>,

    /// Where processes meet: file:PATH in a folder that all can reach, or tcp:HOST:PORT, where rank 0 listens until all have
    /// come. Over TCP, WARPSET_RENDEZVOUS_TOKEN in the environment must hold a secret that only these processes know. It crosses
    /// the network unencrypted. torchrun says the place by itself.
    #[arg(long, value_name = "PLACE", help_heading = "Ranks")]
    pub rendezvous: Option<String>,

    /// Measures what a GPU does its time with, and how far the whole is from what its table takes alone. Costs a few percent.
    #[arg(long, help_heading = "Limits and output")]
    pub cycles: bool,

    /// Slots of the table at the beginning. It grows when it is 85 % full [default: on a CPU 2^20, or as many as --memory holds;
    /// on a GPU 2^29, or as many as a quarter of its free memory (or --memory) holds with the list of states found, or the model
    /// can have states]
    #[arg(long, value_name = "SLOTS", value_parser = parse_count, help_heading = "Table")]
    pub capacity: Option<u64>,

    /// Slots for the nodes of a tree table at the beginning, of states of 3 words or more; of others it says nothing. Where only
    /// nodes are full, only they grow (but those of several ranks, which grow with the slots) [default: as many as --capacity;
    /// without that as many as there are slots up to 2^20 of them, and of more an eighth, but at least 2^20]
    #[arg(long, value_name = "SLOTS", value_parser = parse_count, help_heading = "Table")]
    pub nodes: Option<u64>,

    /// Bytes that the table and the states that wait may take, two tables counted while one grows into the other [default: 80 %
    /// of what is free]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Table")]
    pub memory: Option<u64>,

    /// Keeps the search in this file, so that --resume can go on with it: now and then, and when a limit, --timeout or Ctrl-C
    /// ends it. The file is complete whenever the program is killed; each checkpoint replaces the one before. It has the table,
    /// as large as that is, and the states that wait.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["ltl", "buchi", "ef", "livelock", "record", "export", "cycles", "emit", "emit_buchi"],
        help_heading = "Checkpoints"
    )]
    pub checkpoint: Option<PathBuf>,

    /// How much time is between two checkpoints.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10m",
        value_parser = parse_time,
        requires = "checkpoint",
        help_heading = "Checkpoints"
    )]
    pub checkpoint_every: Duration,

    /// Writes a checkpoint whenever so many levels have begun since the last one, too.
    #[arg(
        long,
        value_name = "LEVELS",
        value_parser = clap::value_parser!(u64).range(1..),
        requires = "checkpoint",
        help_heading = "Checkpoints"
    )]
    pub checkpoint_levels: Option<u64>,

    /// Goes on with the search that a checkpoint has, of the same model and for the same conditions, as if it had not ended: by
    /// any engine, on any device. Its table is the one in the file, of the same kind.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "ltl", "buchi", "ef", "livelock", "record", "export", "cycles", "emit", "emit_buchi", "capacity", "nodes"
        ],
        help_heading = "Checkpoints"
    )]
    pub resume: Option<PathBuf>,

    /// Stops when so much time has passed since the start, in seconds or with a unit: 90, 1.5, 90s, 5m, 2h.
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Limits and output")]
    pub timeout: Option<Duration>,

    /// Stops at the end of a round that has found so many states.
    #[arg(long, value_name = "STATES", value_parser = parse_count, help_heading = "Limits and output")]
    pub max_states: Option<u64>,

    /// Writes all states and transitions, once all are found: an .aut file with labels, or an .npz file with the arrays `offsets`
    /// and `targets`. States are numbered in the order of the search, from 0. If the search ends before, nothing is written.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "cycles"], help_heading = "Limits and output")]
    pub export: Option<PathBuf>,

    /// Writes all vectors that are offered to the table as an .npz file, for the example `replay`. With `--device cpu:1` they are
    /// in the order of the search.
    #[arg(long, value_name = "FILE", help_heading = "Limits and output")]
    pub record: Option<PathBuf>,

    /// Records no more than so many bytes of vectors; the exploration goes on, and the report says how many were left out.
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "2^32",
        value_parser = parse_count,
        requires = "record",
        help_heading = "Limits and output"
    )]
    pub record_bytes: u64,

    /// Whether to say on standard error how it goes: `auto` does on a terminal, of what takes longer than a second; `always`
    /// elsewhere, too, in a line a second.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto", help_heading = "Limits and output")]
    pub progress: ProgressWhen,

    /// Writes the text that is compiled for a GPU, CUDA C++, and does nothing else.
    #[arg(long, value_name = "FILE", help_heading = "Limits and output")]
    pub emit: Option<PathBuf>,

    /// Prints the report as one JSON object, or an object with `error` and `exit_code` if there is none. A path then is in it,
    /// too.
    #[arg(long, help_heading = "Limits and output")]
    pub json: bool,
}

/// How states are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableChoice {
    Auto,
    /// As they are.
    Bucket,
    /// As trees of pairs that equal parts share.
    Tree,
    /// The same with compact roots: of 4 bytes, or 2, where there are few nodes (--nodes).
    TreeCompact,
    /// As they are, in the order in which they are found, with an index: for searches of states. When it grows, only its index is
    /// made anew.
    Indexed,
}

/// Which runs are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fairness {
    /// A process that is enabled for ever moves infinitely often.
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
    /// Of what is not computed as it is written.
    pub fn severity(&self) -> Severity {
        if self.strict { Severity::Error } else { Severity::Warning }
    }

    /// How a network is read. An error if that is said of another language.
    pub fn reading(&self, format: Format) -> Result<Reading> {
        let is_network = matches!(format, Format::Exp | Format::Aut);
        ensure!(is_network || self.interleave.is_empty(), "--interleave is for networks (--format exp)");
        ensure!(is_network || !self.independent, "--independent is for networks (--format exp)");
        Ok(Reading { interleaved: self.interleave.clone(), independent: self.independent })
    }

    /// Whether something is asked for that only engines by threads do, whatever the device.
    pub fn finds_on_threads(&self) -> bool {
        self.record.is_some() || self.export.is_some()
    }

    /// What explores a table there; by threads `auto` stays `auto`. An error if something is asked of it that it does not do.
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
    /// The kind that was asked for; `None` for `auto`.
    pub fn kind(self) -> Option<TableKind> {
        match self {
            Self::Auto => None,
            Self::Bucket => Some(TableKind::Bucket),
            Self::Tree => Some(TableKind::Tree),
            Self::TreeCompact => Some(TableKind::TreeCompact),
            Self::Indexed => Some(TableKind::Indexed),
        }
    }

    /// The kind for states of so many words.
    pub fn of(self, words: usize) -> TableKind {
        let best = if words >= 8 { TableKind::Tree } else { TableKind::Bucket };
        self.kind().unwrap_or(best)
    }
}
