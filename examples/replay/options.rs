//! The command line.

use super::device::DeviceChoice;
use super::exit;
use super::generate::Generate;
use super::numbers::{parse_bytes, parse_count, parse_number, parse_ranks, parse_time};
use super::program::parsed;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;
use warpset::Strategy;

const AFTER_HELP: &str = "\
In a tree table, a vector of w words is a root and up to w - 2 nodes of 8 bytes; equal nodes are stored once. The compression
ratio is the memory of all roots and nodes divided by that of the words alone: (roots + nodes) x 2 / (vectors x w). The best
possible ratio is 2 / w, roots alone; at 1 nothing is saved; without any equal nodes it is almost 2. Vectors of one or two words
are stored in a bucket table. The memory of a vector in a tree table is reported twice: with all free slots, and as the bytes in
use for its root and its share of the nodes.

A root table stores keys of up to 64 bits. A tree table with compact roots stores its roots in the same way. The bucket encodes a
part of the key, and slots of 16, 32 or 64 bits hold the remainder. The table uses the smallest of these sizes that can be filled
to 95 %.

Numbers may be written 1_000_000, 1M, 1.5k, 2G or 2^20; bytes also 3G or 3GiB; times 90, 1.5, 90s, 5m or 2h.
";

fn after_help() -> String {
    format!("{AFTER_HELP}\n{}", exit::HELP)
}

/// Find-or-puts vectors of 32-bit words, from a NumPy file or random ones, and reports outcomes, speed and memory.
#[derive(Debug, Parser)]
#[command(name = "replay", version, after_help = after_help())]
pub struct Options {
    /// Input vectors: a .npy or .npz file of little-endian uint32, shape (vectors, words), C order [default: random vectors]
    pub file: Option<PathBuf>,

    /// Name of the array in an .npz file [default: the only one, or `vectors`]
    #[arg(long, value_name = "NAME", requires = "file", help_heading = "Vectors")]
    pub array: Option<String>,

    /// Generate random vectors. This is the default without FILE.
    #[arg(long, conflicts_with = "file", help_heading = "Vectors")]
    pub random: bool,

    /// Words per random vector, 1 to 256.
    #[arg(long, default_value = "8", conflicts_with = "file", help_heading = "Vectors")]
    pub width: u64,

    /// Number of random vectors, including duplicates.
    #[arg(long, default_value = "2^20", value_parser = parse_count, conflicts_with = "file", help_heading = "Vectors")]
    pub count: u64,

    /// Duplication: random vectors offered divided by distinct vectors, at least 1. Every distinct vector is offered at least
    /// once; repetitions are drawn uniformly, and the order is random.
    #[arg(
        long,
        value_name = "D",
        default_value = "2",
        value_parser = parse_factor,
        conflicts_with = "file",
        help_heading = "Vectors"
    )]
    pub duplication: f64,

    /// Internal duplication: words of all distinct vectors divided by the number of values of a word, at least 1. Every word is
    /// drawn uniformly from (distinct vectors x width / I) values, the same values at all positions. A tree table stores equal
    /// pairs of words once, so it saves much memory if the square of the number of values is well below the number of distinct
    /// vectors [default: words are drawn from all 32-bit values]
    #[arg(long, value_name = "I", value_parser = parse_factor, conflicts_with = "file", help_heading = "Vectors")]
    pub internal_duplication: Option<f64>,

    /// Seed of the random vectors and of the table's hash functions. Equal seeds give equal runs.
    #[arg(long, default_value = "1", help_heading = "Vectors")]
    pub seed: u64,

    /// Device of the table: best, cpu, cpu:THREADS (at most 1024), gpu (the same as gpu:0) or gpu:NUMBER. The best is the GPU
    /// with the most memory, or else the CPU. With gpu:0,1 or gpu:all the table is distributed over several GPUs, one rank on
    /// each.
    #[arg(long, default_value = "best", help_heading = "Table")]
    pub device: DeviceChoice,

    /// Distribute the table over this number of ranks in this process, 1 to 256. The ranks share the threads or the GPU of
    /// --device; several GPUs get equally many ranks each. Each rank offers a part of the vectors. --capacity applies to all
    /// ranks together, --nodes to each. With ranks, neither the placement-only pass nor the rate of the GPU alone is measured.
    #[arg(long, value_name = "RANKS", value_parser = parse_ranks, help_heading = "Table")]
    pub local_ranks: Option<u16>,

    /// Kind of table.
    #[arg(long, value_enum, default_value = "bucket", help_heading = "Table")]
    pub table: TableKind,

    /// Strategy by which kernels build trees: `default`; the recursive strategies of Bergsma (2019), C, C64, Clr, Clr64; or his
    /// non-recursive ones, {1,l,ld}_{np,ip}_{gm,sm}, 1_np_s_sm, ld_np_s_sm, l_np_lm. On a CPU only the pairing matters: np, ip,
    /// or halves [default: default]
    #[arg(long, value_name = "NAME", help_heading = "Table")]
    pub strategy: Option<Strategy>,

    /// Storage of a tree table's roots.
    #[arg(long, value_enum, default_value = "plain", help_heading = "Table")]
    pub roots: Roots,

    /// Bits per key of a root table, 20 to 64 [default: as many as the largest key needs]
    #[arg(long, value_name = "BITS", help_heading = "Table")]
    pub key_bits: Option<u32>,

    /// Number of slots, rounded up [default: chosen by --fill]
    #[arg(long, value_name = "SLOTS", value_parser = parse_count, conflicts_with = "fill", help_heading = "Table")]
    pub capacity: Option<u64>,

    /// Number of node slots of a tree table, rounded up, at most 2^32 - 2. When they are full, vectors are rejected even if slots
    /// are free [default: as many as make the node table 70 % full. An untimed pass counts the nodes first, in a table with
    /// space for (words - 2) nodes per vector, or per distinct vector if they are random]
    #[arg(long, value_name = "SLOTS", value_parser = parse_count, help_heading = "Table")]
    pub nodes: Option<u64>,

    /// Fill of the table at the end: the number of slots is distinct vectors / F. The distinct vectors of a file are not known
    /// beforehand, so a file gets all vectors / F slots, and its final fill is F / duplication. Does not apply to nodes.
    #[arg(long, value_name = "F", default_value = "0.7", value_parser = parse_fill, help_heading = "Table")]
    pub fill: f64,

    /// Let the table grow whenever it, or its node table, is full. Without this option, vectors are then rejected.
    #[arg(long, help_heading = "Table")]
    pub grow: bool,

    /// Number of passes over the vectors. The first puts them into the empty table; later passes only find them.
    #[arg(
        long,
        value_name = "PASSES",
        default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Measurement"
    )]
    pub repeat: u32,

    /// Measure the placement-only pass: the speed of a pass that is given each vector's slot and makes only the unavoidable
    /// memory accesses. `auto`: for at most 2^24 vectors. Tree and indexed tables have no such pass, because their vectors are
    /// not in a single slot. On a GPU, `no` also skips the measurement of the GPU alone.
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        default_missing_value = "yes",
        num_args = 0..=1,
        require_equals = true,
        help_heading = "Measurement"
    )]
    pub placement: When,

    /// Compare with a HashSet of the standard library: the number of distinct vectors, each outcome and reference, and the
    /// table's contents. The timed passes then also return references.
    #[arg(long, help_heading = "Measurement")]
    pub verify: bool,

    /// Limit of main memory for vectors, outcomes and tables on the CPU, in bytes. If they need more, replay stops with exit code
    /// 3 [default: the free memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Limits")]
    pub memory: Option<u64>,

    /// Time limit since the start, in seconds or with a unit: 90, 1.5, 90s, 5m, 2h. After it, replay stops with exit code 3
    /// [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Limits")]
    pub timeout: Option<Duration>,

    /// Print the report as one JSON object. After an error, print an object with `error` and `exit_code`.
    #[arg(long, help_heading = "Measurement")]
    pub json: bool,

    /// Print a man page or the completions of a shell, and exit. Must be the only option.
    #[arg(long, value_enum, value_name = "KIND", exclusive = true, help_heading = "Measurement")]
    pub generate: Option<Generate>,
}

impl Options {
    /// Parses the options, and checks those that depend on each other.
    pub fn parse_checked(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, clap::Error> {
        let options: Self = parsed(with_joined_placement(arguments))?;
        let needs = |option: &str, table: &str| {
            let message = format!("'{option}' is for {table} tables only: it needs '--table {table}'");
            Err(Self::command().error(ErrorKind::ArgumentConflict, message))
        };
        if options.placement == When::Yes && options.local_ranks.is_some() {
            let message = "'--placement[=<WHEN>]' cannot be used with '--local-ranks <RANKS>': ranks have no placement-only pass";
            return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
        }
        match options.table {
            TableKind::Bucket | TableKind::Root | TableKind::Indexed if options.nodes.is_some() => {
                needs("--nodes <SLOTS>", "tree")
            }
            TableKind::Bucket | TableKind::Root | TableKind::Indexed if options.strategy.is_some() => {
                needs("--strategy <NAME>", "tree")
            }
            TableKind::Tree if options.strategy.is_some() && options.roots == Roots::Compact => {
                let message =
                    "'--strategy <NAME>' is for trees with plain roots: '--roots compact' always uses the default strategy";
                Err(Self::command().error(ErrorKind::ArgumentConflict, message))
            }
            TableKind::Bucket | TableKind::Root | TableKind::Indexed if options.roots == Roots::Compact => {
                needs("--roots compact", "tree")
            }
            TableKind::Bucket | TableKind::Tree | TableKind::Indexed if options.key_bits.is_some() => {
                needs("--key-bits <BITS>", "root")
            }
            _ => Ok(options),
        }
    }

    /// Whether to measure the placement-only pass for this many vectors.
    pub fn measures_placement(&self, vectors: usize) -> bool {
        match self.placement {
            When::Auto => vectors <= 1 << 24,
            When::Yes => true,
            When::No => false,
        }
    }
}

/// Returns the arguments, with `--placement no` joined to `--placement=no`. The value is optional, so clap accepts only a value
/// joined to the option, and would take a separate one for a file. A file of such a name is `./no`.
fn with_joined_placement(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut are_options = true;
    for argument in arguments.into_iter().map(Into::into) {
        are_options &= argument != "--";
        match joined.last_mut() {
            Some(option) if are_options && option == "--placement" && When::is_value(&argument) => {
                option.push("=");
                option.push(argument);
            }
            _ => joined.push(argument),
        }
    }
    joined
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableKind {
    /// Vectors uncompressed in their slots.
    Bucket,
    /// Vectors as trees of pairs; equal parts are stored once.
    Tree,
    /// Vectors of two words as keys, low word first; slots hold a part of the key.
    Root,
    /// Vectors as rows in the order of discovery, with an index.
    Indexed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Roots {
    /// Pairs of 32-bit references, in a bucket table.
    Plain,
    /// Keys of a compact table.
    Compact,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    Auto,
    Yes,
    No,
}

impl When {
    fn is_value(text: &OsStr) -> bool {
        text.to_str().is_some_and(|text| Self::from_str(text, false).is_ok())
    }
}

fn parse_factor(text: &str) -> Result<f64, String> {
    let number = parse_number(text)?;
    if number >= 1.0 { Ok(number) } else { Err("must be 1 or more".into()) }
}

fn parse_fill(text: &str) -> Result<f64, String> {
    let number = parse_number(text)?;
    if number > 0.0 && number <= 1.0 { Ok(number) } else { Err("must be more than 0 and at most 1".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
        Options::parse_checked(["replay"].iter().chain(arguments))
    }

    #[test]
    fn nodes_are_of_tree_tables() {
        let options = parse(&["--table", "tree", "--nodes", "1.5k"]).unwrap();
        assert_eq!((options.table, options.nodes), (TableKind::Tree, Some(1500)));
        assert_eq!(parse(&["--table", "tree"]).unwrap().nodes, None);
        assert_eq!(parse(&[]).unwrap().table, TableKind::Bucket);
        for arguments in [&["--nodes", "10"][..], &["--nodes", "10", "--table", "bucket"]] {
            let error = parse(arguments).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ArgumentConflict);
            assert!(error.to_string().contains("it needs '--table tree'"), "{error}");
        }
        for (arguments, table) in [
            (&["--nodes", "10", "--table", "root"][..], "tree"),
            (&["--roots", "compact"], "tree"),
            (&["--roots", "compact", "--table", "root"], "tree"),
            (&["--key-bits", "40"], "root"),
            (&["--key-bits", "40", "--table", "tree"], "root"),
        ] {
            assert!(parse(arguments).unwrap_err().to_string().contains(&format!("it needs '--table {table}'")), "{arguments:?}");
        }
        assert_eq!(parse(&["--table", "tree", "--roots", "compact"]).unwrap().roots, Roots::Compact);
        assert_eq!(parse(&["--table", "root", "--key-bits", "40"]).unwrap().key_bits, Some(40));
        for nodes in ["-1", "1.5", "many", "2^60"] {
            assert!(parse(&["--table", "tree", "--nodes", nodes]).is_err(), "{nodes}");
        }
        assert!(parse(&["--table", "hash"]).unwrap_err().to_string().contains("[possible values: bucket, tree, root, indexed]"));
    }

    #[test]
    fn strategies_are_of_tree_tables() {
        let options = parse(&["--table", "tree", "--strategy", "ld_np_s_sm"]).unwrap();
        assert_eq!(options.strategy, Some(Strategy::LD_NP_S_SM));
        assert_eq!(parse(&["--table", "tree"]).unwrap().strategy, None);
        let error = parse(&["--strategy", "Clr64"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentConflict);
        assert!(error.to_string().contains("'--strategy <NAME>' is for tree tables only"), "{error}");
        assert!(parse(&["--table", "tree", "--strategy", "2_np"]).unwrap_err().to_string().contains("1_np_sm"));
    }

    #[test]
    fn placement_is_asked_for_with_and_without_a_value() {
        let placement = |arguments: &[&str]| parse(arguments).map(|options| (options.placement, options.file)).unwrap();
        for arguments in [&["--placement", "no"][..], &["--placement=no"]] {
            assert_eq!(placement(arguments), (When::No, None));
        }
        assert_eq!(placement(&["--placement", "yes", "a.npy"]), (When::Yes, Some("a.npy".into())));
        assert_eq!(placement(&["--placement", "a.npy"]), (When::Yes, Some("a.npy".into())));
        assert_eq!(placement(&["--placement", "./no"]), (When::Yes, Some("./no".into())));
        assert_eq!(placement(&["--placement", "--", "no"]), (When::Yes, Some("no".into())));
        assert_eq!(placement(&["--", "no"]), (When::Auto, Some("no".into())));
        for when in [&["--placement"][..], &["--placement", "yes"]] {
            let error = parse(&[when, &["--local-ranks", "2"]].concat()).unwrap_err().to_string();
            assert!(error.contains("--placement") && error.contains("--local-ranks"), "{error}");
        }
        parse(&["--placement", "no", "--local-ranks", "2"]).unwrap();
    }

    #[test]
    fn factors_and_fills_have_bounds() {
        assert!(parse_fill("0").is_err() && parse_fill("1.1").is_err() && parse_factor("0.9").is_err());
        assert_eq!((parse_fill("1"), parse_factor("1")), (Ok(1.0), Ok(1.0)));
    }
}
