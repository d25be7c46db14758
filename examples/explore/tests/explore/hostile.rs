//! Hostile inputs: files of every format with random changes, as a stranger would hand them to the programs.
//!
//! Each run is a process of its own. Whatever the file says, the process ends by itself within its limits, with a documented exit
//! code and one JSON object, and without a panic. Checksums of binary files are made right again after a change, so that readers
//! behind them are reached.
//!
//! `WARPSET_FUZZ` is the number of changed files of each format: 30 if it is not set, 200 with `WARPSET_TEST_FULL=1`. File number
//! n is the same in every run; a message names it, and `WARPSET_FUZZ_FIRST` is the number of the first one.
//! `WARPSET_FUZZ_PROGRAMS` names another folder to take `explore` and `decompose` from, for example with C++ under a sanitizer.
//!
//! Keeps this promise of `examples/explore/README.md`:
//!
//! - Programs end with a documented exit code, for any file of any format.

mod change;
pub mod engines;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use warpset_testing::sizes::sized;
use warpset_testing::table_file::TableFile;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// Time limit of a run, which only a hanging run reaches.
const LONGEST: Duration = Duration::from_secs(120);

/// Address space of a run, in KiB: tables reserve more than they use, but a number in a file must not take all memory.
const MOST_KIB: u64 = 32 << 20;

fn program(name: &str) -> PathBuf {
    let explore = Path::new(crate::EXPLORE);
    match std::env::var_os("WARPSET_FUZZ_PROGRAMS") {
        Some(folder) => Path::new(&folder).join(name),
        None => explore.with_file_name(name).with_extension(std::env::consts::EXE_EXTENSION),
    }
}

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(models().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn setting(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// Numbers of the changed files of a format.
fn numbers() -> std::ops::Range<u64> {
    let first = setting("WARPSET_FUZZ_FIRST").unwrap_or(0);
    first..first + setting("WARPSET_FUZZ").unwrap_or(sized(200, 30, 30))
}

/// The exit code and report of a run that keeps the rules; otherwise what it did.
fn run(program: &Path, arguments: &[String]) -> Result<(i32, Value), String> {
    let mut command = if cfg!(unix) && std::env::var_os("WARPSET_FUZZ_PROGRAMS").is_none() {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -v {MOST_KIB}; exec \"$0\" \"$@\"")]).arg(program);
        shell
    } else {
        Command::new(program)
    };
    if !arguments.iter().any(|argument| argument == "--device") {
        command.args(["--device", "cpu:1"]);
    }
    command
        .args(arguments)
        .args(["--memory", "64MiB", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    let [out, err] = [child.stdout.take().map(reader), child.stderr.take().map(reader)].map(|thread| thread.expect("a pipe"));
    let began = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if began.elapsed() > LONGEST => {
                child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
                return Err(format!("it has not ended after {LONGEST:?}"));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let [out, err] = [out, err].map(|thread| thread.join().expect("a reader"));
    let said = || format!("{status}\n{}\n{}", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
    let code = status.code().filter(|code| (0..=3).contains(code)).ok_or_else(said)?;
    let object: Value = serde_json::from_slice(&out).map_err(|error| format!("{error}: {}", said()))?;
    match object["exit_code"] == code && !String::from_utf8_lossy(&err).contains("panicked") {
        true => Ok((code, object)),
        false => Err(said()),
    }
}

fn reader(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe is read");
        bytes
    })
}

/// Runs a program with each changed file. `make` writes the files of a number into the folder, and returns the arguments.
fn changed(format: &str, name: &str, mut make: impl FnMut(&Path, &mut StdRng) -> Vec<String>) {
    let program = program(name);
    let mut codes = [0; 4];
    for number in numbers() {
        let folder = TempDir::new().expect("a folder");
        let arguments = make(folder.path(), &mut StdRng::seed_from_u64(number));
        match run(&program, &arguments) {
            Ok((code, _)) => codes[code as usize] += 1,
            Err(said) => {
                let kept = folder.keep();
                let kept = kept.display();
                panic!(
                    "{format}: WARPSET_FUZZ=1 WARPSET_FUZZ_FIRST={number} does it again: {name} {arguments:?} in {kept}: {said}"
                )
            }
        }
    }
    if setting("WARPSET_FUZZ").is_some() {
        println!("{format}: exit codes 0 to 3 of {name} {codes:?}");
    }
    // Most changes are detected, and some change nothing important.
    let count = numbers().count();
    assert!(count < 30 || (codes[2] > 0 && codes[2] < count), "{format}: {codes:?}");
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a file is written");
    path.to_str().expect("a name").to_owned()
}

/// Random options of a search, with a time limit that a search of so few states does not reach.
fn with_options(mut arguments: Vec<String>, random: &mut StdRng) -> Vec<String> {
    arguments.extend(["--max-states", "2000", "--timeout", "60"].map(String::from));
    let options: [&[&str]; 8] = [
        &[],
        &["--deadlock"],
        &["--keep-going", "--deadlock"],
        &["--table", "tree"],
        &["--table", "tree-compact"],
        &["--table", "indexed", "--deadlock"],
        &["--local-ranks", "2"],
        &["--livelock", "1 == 2"],
    ];
    arguments.extend(options.choose(random).expect("options").iter().map(|option| option.to_string()));
    arguments
}

/// One of these files of the folder `models`, changed.
fn changed_model(format: &str, names: &[&str], name: &str) {
    let texts: Vec<_> = names.iter().map(|name| read(name)).collect();
    changed(format, "explore", |folder, random| {
        let text = change::text(texts.choose(random).expect("a model"), random);
        with_options(vec![written(folder, name, &text)], random)
    });
}

pub fn models_in_dve() {
    let names = ["mailbox.dve", "peterson.dve", "philosophers.dve", "readers_writers.dve", "river.dve", "claiming.dve"];
    changed_model("DVE", &names, "model.dve");
}

pub fn models_in_slco() {
    changed_model("SLCO", &["vending.slco"], "model.slco");
}

pub fn state_spaces_as_models() {
    changed_model("AUT", &["buffer.aut", "controller.aut", "gate.aut", "train.aut"], "model.aut");
}

pub fn networks() {
    let files = ["crossing.exp", "train.aut", "gate.aut", "controller.aut"];
    let texts = files.map(read);
    changed("EXP", "explore", |folder, random| {
        let which = random.random_range(0..files.len()) * usize::from(random.random_range(0..3) == 0);
        for (at, (name, text)) in files.iter().zip(&texts).enumerate() {
            written(folder, name, &if at == which { change::text(text, random) } else { text.clone() });
        }
        with_options(vec![folder.join(files[0]).to_str().expect("a name").to_owned()], random)
    });
}

/// The output of a run of `explore` that must succeed.
fn explored(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(program("explore")).args(arguments).args(["--device", "cpu:1"]).output().expect("explore starts");
    assert!(output.status.code().is_some_and(|code| code <= 3 && code != 2), "{output:?}");
    output.stdout
}

fn path_of(name: &str) -> String {
    models().join(name).to_str().expect("a name").to_owned()
}

pub fn automata() {
    let folder = TempDir::new().expect("a folder");
    let model = path_of("peterson.dve");
    let formulas = ["G (P_0.waiting -> F P_0.critical)", "(G F P_0.waiting) -> G F P_0.critical", "P_0.idle U P_0.asked"];
    let texts = formulas.map(|formula| {
        let file = folder.path().join("automaton.hoa");
        explored(&[&model, "--ltl", formula, "--emit-buchi", file.to_str().expect("a name")]);
        std::fs::read(&file).expect("an automaton")
    });
    changed("HOA", "explore", |folder, random| {
        let text = change::text(texts.choose(random).expect("an automaton"), random);
        let automaton = written(folder, "automaton.hoa", &text);
        ["--buchi", &automaton, "--timeout", "60"].into_iter().map(String::from).chain([model.clone()]).collect()
    });
}

pub fn formulas_and_conditions() {
    let model = path_of("peterson.dve");
    let texts = [
        ("--ltl", "G (P_0.waiting -> F P_0.critical) && !((F G P_1.idle) U (turn == 1 R X P_0.asked))"),
        ("--invariant", "P_0.critical + P_1.critical <= 1 and (wants[turn] * 2 - 1) % 3 != -2 or not P_0.idle"),
        ("--goal", "((wants[0] << 3) ^ ~turn) / 2 >= 5 imply P_1.critical"),
        ("--ef", "P_0.critical and wants[1 - turn] == 1"),
    ];
    changed("conditions", "explore", |_, random| {
        let (option, text) = texts.choose(random).expect("a condition");
        // An argument cannot contain a zero byte.
        let text = String::from_utf8_lossy(&change::text(text.as_bytes(), random)).replace('\0', " ");
        vec![model.clone(), format!("{option}={}", text.chars().take(100_000).collect::<String>())]
    });
}

pub fn graphs_as_text() {
    let casino = Path::new(env!("CARGO_MANIFEST_DIR")).join("../decompose/casino.tra");
    let casino = std::fs::read(&casino).unwrap_or_else(|error| panic!("{}: {error}", casino.display()));
    let texts = [("graph.tra", casino), ("graph.aut", read("gate.aut")), ("graph.aut", read("train.aut"))];
    changed("TRA and AUT", "decompose", |folder, random| {
        let (name, text) = texts.choose(random).expect("a graph");
        vec![written(folder, name, &change::text(text, random))]
    });
}

/// The arrays of an archive, with headers, and an archive of them.
fn arrays(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = ZipArchive::new(Cursor::new(archive)).expect("an archive");
    let count = archive.len();
    let read = |at| {
        let mut file = archive.by_index(at).expect("an array");
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("an array");
        (file.name().expect("a name").into_owned(), bytes)
    };
    (0..count).map(read).collect()
}

fn archive(arrays: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        archive.start_file(name.as_str(), SimpleFileOptions::default()).expect("an entry");
        archive.write_all(bytes).expect("an entry");
    }
    archive.finish().expect("an archive").into_inner()
}

/// Changes an array's header, its numbers, or (without a repair) a byte of the archive.
fn change_archive(original: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut arrays = arrays(original);
    let at = random.random_range(0..arrays.len());
    let bytes = &mut arrays[at].1;
    // The magic, the version and the header's length in two bytes.
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    match random.random_range(0..8) {
        0..=2 => {
            let mut text = change::text(&bytes[10..header - 1], random);
            text.truncate(60_000);
            let length = (text.len() as u16 + 1).to_le_bytes();
            *bytes = [&bytes[..8], &length, &text, b"\n", &bytes[header..]].concat();
        }
        3..=5 => {
            let mut numbers = bytes.split_off(header);
            change::numbers(&mut numbers, random);
            bytes.extend(numbers);
        }
        6 => arrays.swap_remove(at).1.clear(),
        _ => {
            let mut archive = original.to_vec();
            change::numbers(&mut archive, random);
            return archive;
        }
    }
    archive(&arrays)
}

pub fn graphs_as_arrays() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("graph.npz");
    explored(&[&path_of("philosophers.dve"), "--export", file.to_str().expect("a name")]);
    let original = std::fs::read(&file).expect("an archive");
    changed("NPZ", "decompose", |folder, random| vec![written(folder, "graph.npz", &change_archive(&original, random))]);
}

/// Vectors written by `--record`, for the library's example `replay`.
pub fn recorded_vectors(_replay: &Path) {
    let name = "examples/replay";
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("vectors.npz");
    explored(&[&path_of("philosophers.dve"), "--record", file.to_str().expect("a name")]);
    let original = std::fs::read(&file).expect("an archive");
    changed("recorded vectors", name, |folder, random| {
        let mut arguments = vec![written(folder, "vectors.npz", &change_archive(&original, random))];
        let options: [&[&str]; 4] = [&["--verify"], &["--table", "tree"], &["--table", "indexed", "--verify"], &["--grow"]];
        arguments.extend(options.choose(random).expect("options").iter().map(|option| option.to_string()));
        arguments
    });
}

/// A checkpoint in pieces: its header, the words of its states, and its table.
struct Checkpoint {
    header: Vec<u8>,
    words: Vec<u8>,
    table: Vec<u8>,
}

impl Checkpoint {
    const START: usize = 20;

    /// Splits a file with fewer than 2^18 words of states: they are one block.
    fn of(file: &[u8]) -> Self {
        let length = u32::from_le_bytes(file[12..16].try_into().expect("four bytes")) as usize;
        let (header, rest) = file[Self::START..].split_at(length);
        let magic = b"\x93WPS\r\n\x1a\n";
        let table = rest.windows(magic.len()).position(|bytes| bytes == magic).expect("a table");
        let words = rest[..table.saturating_sub(4)].to_vec();
        Self { header: header.to_vec(), words, table: rest[table..].to_vec() }
    }

    fn signed(&self) -> Vec<u8> {
        let Self { header, words, table } = self;
        let sum = crc32fast::hash(header).to_le_bytes();
        let length = (header.len() as u32).to_le_bytes();
        let mut file = [&b"\x93WPX\r\n\x1a\n"[..], &1u32.to_le_bytes(), &length, &sum, header].concat();
        if !words.is_empty() {
            let block = crc32fast::hash(&[&sum[..], &0u64.to_le_bytes(), words].concat());
            file.extend(words);
            file.extend(block.to_le_bytes());
        }
        file.extend(table);
        file
    }

    fn change(&mut self, random: &mut StdRng) {
        match random.random_range(0..6) {
            0 => self.header = change::text(&self.header, random),
            1 => change::numbers(&mut self.words, random),
            2 => change::numbers(&mut self.table, random),
            _ => {
                let mut file = TableFile::of(&self.table);
                match random.random_range(0..3) {
                    0 => change::numbers(&mut file.header, random),
                    _ => {
                        let part = random.random_range(0..file.parts.len());
                        change::numbers(&mut file.parts[part], random);
                    }
                }
                // A header that was cut off has no lengths.
                if random.random() && file.header.len() > 300 {
                    file.repair_lengths();
                }
                self.table = file.signed();
            }
        }
    }
}

pub fn checkpoints() {
    let model = path_of("philosophers.dve");
    let folder = TempDir::new().expect("a folder");
    let tables = ["bucket", "tree", "tree-compact", "indexed"].map(|table| {
        let file = folder.path().join(format!("{table}.checkpoint"));
        let name = file.to_str().expect("a name");
        // States of 3 words or more are trees with nodes.
        explored(&[&model, "--table", table, "--capacity", "600", "--max-states", "100", "--checkpoint", name]);
        (table, std::fs::read(&file).expect("a checkpoint"))
    });
    for (table, file) in &tables {
        assert!(Checkpoint::of(file).signed() == *file, "{table}: the test knows the format");
    }
    changed("checkpoint", "explore", |folder, random| {
        let (table, file) = tables.choose(random).expect("a checkpoint");
        let mut checkpoint = Checkpoint::of(file);
        checkpoint.change(random);
        let file = written(folder, "changed.checkpoint", &checkpoint.signed());
        [&model, "--table", table, "--resume", &file, "--max-states", "300", "--timeout", "60"].map(String::from).into()
    });
}
