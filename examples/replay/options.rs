//! The command line.

use super::device::DeviceChoice;
use super::exit;
use super::numbers::{parse_bytes, parse_count, parse_number, parse_time};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;
use warpset::Strategy;

const AFTER_HELP: &str = "\
A tree of a vector of w words is a root and up to w - 2 nodes, 8 bytes each; vectors share equal nodes. The compression ratio of a tree
table is what it stores relative to the words alone: nodes stored x 2 / (vectors stored x w), roots counted as nodes. 2 / w is the best
there can be, little more than roots; 1 saves nothing, and vectors that share nothing come to almost 2. Vectors of one or two words are
their own roots: theirs is a bucket table. The memory of a vector in a tree table is reported with all free slots, and without them:
its root and its share of the nodes.

A root table holds keys of up to 64 bits, and a tree table with compact roots its roots: of each, slots of 16, 32 or 64 bits hold what their
buckets do not tell. They are as small as they may be to be filled to 95 %.

Numbers may be written 1_000_000, 1M, 1.5k, 2G or 2^20; bytes 3G or 3GiB too; times 90, 1.5, 90s, 5m or 2h.
";

fn after_help() -> String {
    format!("{AFTER_HELP}\n{}", exit::HELP)
}

/// Find-or-puts vectors of 32-bit words, from a NumPy file or random ones, and reports outcomes, speed and memory.
#[derive(Debug, Parser)]
#[command(name = "replay", version, after_help = after_help())]
pub struct Options {
    /// A .npy or .npz file: little-endian uint32, shape (vectors, words), C order. Without one, random vectors are generated.
    pub file: Option<PathBuf>,

    /// Name of the array in an .npz file of several [default: `vectors`, if there is one]
    #[arg(long, value_name = "NAME", requires = "file", help_heading = "Vectors")]
    pub array: Option<String>,

    /// Generate random vectors: the default without FILE.
    #[arg(long, conflicts_with = "file", help_heading = "Vectors")]
    pub random: bool,

    /// Words of a random vector: 1 to 256.
    #[arg(long, default_value = "8", conflicts_with = "file", help_heading = "Vectors")]
    pub width: u64,

    /// Number of random vectors to offer, including duplicates.
    #[arg(long, default_value = "2^20", value_parser = parse_count, conflicts_with = "file", help_heading = "Vectors")]
    pub count: u64,

    /// Vectors offered / distinct vectors: 1 or more. Every distinct vector is offered at least once; repetitions are drawn
    /// uniformly, and all vectors come in random order.
    #[arg(long, value_name = "D", default_value = "2", value_parser = parse_factor, conflicts_with = "file", help_heading = "Vectors")]
    pub duplication: f64,

    /// Words of all distinct vectors / values these words have: 1 or more. Every word is drawn uniformly from distinct vectors x
    /// width / I values, the same for all positions. A tree table stores equal pairs of words once: it saves much if the square
    /// of the number of values is well below the number of distinct vectors. [default: any 32-bit value]
    #[arg(long, value_name = "I", value_parser = parse_factor, conflicts_with = "file", help_heading = "Vectors")]
    pub internal_duplication: Option<f64>,

    /// Makes the random vectors and the table's hash functions the same each time.
    #[arg(long, default_value = "1", help_heading = "Vectors")]
    pub seed: u64,

    /// Device of the table: best, cpu, cpu:THREADS (at most 1024), gpu (the same as gpu:0) or gpu:NUMBER. The best is the GPU
    /// with the most memory, or else the CPU. With gpu:0,1 or gpu:all the table is spread over several GPUs, a rank on each.
    #[arg(long, default_value = "best", help_heading = "Table")]
    pub device: DeviceChoice,

    /// Spread the table over this many ranks in this process, each with its share of --device's threads, or all on its GPU; with
    /// several GPUs as many on each. Each rank offers its part of the vectors. --capacity applies to all ranks together, --nodes
    /// to each. Neither the floor nor the rate of a GPU alone is then measured.
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u16).range(1..=256), help_heading = "Table")]
    pub local_ranks: Option<u16>,

    /// The kind of table.
    #[arg(long, value_enum, default_value = "bucket", help_heading = "Table")]
    pub table: TableKind,

    /// Build strategy of a tree table's kernels [default: default]. `default`; the recursive ones of Bergsma (2019) C, C64, Clr,
    /// Clr64; and his non-recursive ones {1,l,ld}_{np,ip}_{gm,sm}, 1_np_s_sm, ld_np_s_sm, l_np_lm. On a CPU only the pairing has
    /// an effect: np, ip, or halves.
    #[arg(long, value_name = "NAME", help_heading = "Table")]
    pub strategy: Option<Strategy>,
    /// How a tree table stores its roots.
    #[arg(long, value_enum, default_value = "plain", help_heading = "Table")]
    pub roots: Roots,

    /// Bits of the keys of a root table: 20 to 64. [default: those of the largest key]
    #[arg(long, value_name = "BITS", help_heading = "Table")]
    pub key_bits: Option<u32>,

    /// Slots of the table, rounded up [default: chosen by --fill]
    #[arg(long, value_name = "SLOTS", value_parser = parse_count, conflicts_with = "fill", help_heading = "Table")]
    pub capacity: Option<u64>,

    /// Slots of a tree table's node table, rounded up, at most 2^32 - 2: when it is full, vectors are rejected even if slots for
    /// them are free [default: so that the vectors' nodes fill 70 % of them. A pass before the clock starts counts the nodes, in
    /// a table that has room for them even if vectors share none: (words - 2) x vectors, or distinct vectors if they are random]
    #[arg(long, value_name = "SLOTS", value_parser = parse_count, help_heading = "Table")]
    pub nodes: Option<u64>,

    /// Choose the number of slots so that the table is this full in the end: distinct vectors / F. The number of distinct vectors
    /// of a file is not known beforehand, so for a file the slots are all vectors / F, and the fill is F / duplication. Does not
    /// apply to nodes.
    #[arg(long, value_name = "F", default_value = "0.7", value_parser = parse_fill, help_heading = "Table")]
    pub fill: f64,

    /// Let the table, and its node table, grow to twice the slots whenever it gets full.
    #[arg(long, help_heading = "Table")]
    pub grow: bool,

    /// Passes over the vectors. The first puts them into the empty table, later ones only find them.
    #[arg(long, value_name = "PASSES", default_value = "1", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Measurement")]
    pub repeat: u32,

    /// Measure the placement floor: the speed of a pass that already has each vector's slot and makes only the unavoidable memory
    /// accesses. `auto` measures it for at most 2^24 vectors. Trees and rows have no such floor, because they are not in a single
    /// slot. On a GPU, `no` also leaves out the rate of the GPU alone.
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
    pub floor: When,

    /// Compare with a hash set of the standard library: the distinct count, each outcome and reference, and the table's content.
    /// References are then part of the timed work.
    #[arg(long, help_heading = "Measurement")]
    pub verify: bool,

    /// Memory limit: bytes of this machine's memory that vectors, outcomes, and tables on the CPU may take, each by what it
    /// needs; if one needs more, the program stops there [default: free memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Limits")]
    pub memory: Option<u64>,

    /// Time limit: end with an error after this time since the start, in seconds or with a unit: 90, 1.5, 90s, 5m, 2h.
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Limits")]
    pub timeout: Option<Duration>,

    /// Print the report as one JSON object, or an object with `error` and `exit_code` if there is no report.
    #[arg(long, help_heading = "Measurement")]
    pub json: bool,
}

impl Options {
    /// Parses the options, and checks those that depend on each other.
    pub fn parse_checked(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, clap::Error> {
        let options = Self::try_parse_from(with_joined_floor(arguments))?;
        let needs = |option: &str, table: &str| {
            let message = format!("'{option}' is of {table} tables only: it needs '--table {table}'");
            Err(Self::command().error(ErrorKind::ArgumentConflict, message))
        };
        match options.table {
            TableKind::Bucket | TableKind::Root | TableKind::Indexed if options.nodes.is_some() => {
                needs("--nodes <SLOTS>", "tree")
            }
            TableKind::Bucket | TableKind::Root | TableKind::Indexed if options.strategy.is_some() => {
                needs("--strategy <NAME>", "tree")
            }
            TableKind::Tree if options.strategy.is_some() && options.roots == Roots::Compact => {
                let message = "'--strategy <NAME>' is of trees with plain roots: '--roots compact' has the default only";
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

    /// Whether to measure the placement floor of this many vectors.
    pub fn measures_floor(&self, vectors: usize) -> bool {
        match self.floor {
            When::Auto => vectors <= 1 << 24,
            When::Yes => true,
            When::No => false,
        }
    }
}

/// The arguments with `--floor no` as `--floor=no`. The value is optional, so clap accepts only a value that is joined to the
/// option, and would take a separate one for a file; a file of such a name is `./no`.
fn with_joined_floor(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut are_options = true;
    for argument in arguments.into_iter().map(Into::into) {
        are_options &= argument != "--";
        match joined.last_mut() {
            Some(option) if are_options && option == "--floor" && When::is_value(&argument) => {
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
    if number >= 1.0 { Ok(number) } else { Err("it must be 1 or more".into()) }
}

fn parse_fill(text: &str) -> Result<f64, String> {
    let number = parse_number(text)?;
    if number > 0.0 && number <= 1.0 { Ok(number) } else { Err("it must be more than 0 and at most 1".into()) }
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
        assert!(error.to_string().contains("'--strategy <NAME>' is of tree tables only"), "{error}");
        assert!(parse(&["--table", "tree", "--strategy", "2_np"]).unwrap_err().to_string().contains("1_np_sm"));
    }

    #[test]
    fn the_floor_is_asked_for_with_and_without_a_value() {
        let floor = |arguments: &[&str]| parse(arguments).map(|options| (options.floor, options.file)).unwrap();
        for arguments in [&["--floor", "no"][..], &["--floor=no"]] {
            assert_eq!(floor(arguments), (When::No, None));
        }
        assert_eq!(floor(&["--floor", "yes", "a.npy"]), (When::Yes, Some("a.npy".into())));
        assert_eq!(floor(&["--floor", "a.npy"]), (When::Yes, Some("a.npy".into())));
        assert_eq!(floor(&["--floor", "./no"]), (When::Yes, Some("./no".into())));
        assert_eq!(floor(&["--floor", "--", "no"]), (When::Yes, Some("no".into())));
        assert_eq!(floor(&["--", "no"]), (When::Auto, Some("no".into())));
    }

    #[test]
    fn factors_and_fills_have_bounds() {
        assert!(parse_fill("0").is_err() && parse_fill("1.1").is_err() && parse_factor("0.9").is_err());
        assert_eq!((parse_fill("1"), parse_factor("1")), (Ok(1.0), Ok(1.0)));
    }
}
