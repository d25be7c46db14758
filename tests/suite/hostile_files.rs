//! Malicious files: their checksums are correct, and their contents are those of no table. A process of its own loads each file,
//! as for a file of unknown origin, and uses the table in every way. The process must end by itself, without memory errors, and
//! within a time limit far beyond its needs.
//!
//! Keeps these promises of `src/docs/files.md`:
//!
//! - Whatever the heads of ranks' parts, no access leaves the memory of a round (also `src/cluster/owners.rs`,
//!   `src/cluster/layout.rs`).
//! - Whatever the file, every call returns: searches and statistics visit a bounded number of buckets (also
//!   `src/saved/tests.rs`).

use super::changed_files::use_in_every_way;
use super::saved::{Folder, saved};
use crate::common::kinds::roomy;
use crate::common::spread::{Spread, on_all, small};
use crate::common::vectors::{distinct, mix};
use crate::common::{sized, tests};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};
use warpset::cluster::{Builder, Local};
use warpset::{Bucket, CompactTree, Device, Indexed, Storage, Tree, VectorTable};
use warpset_testing::table_file::{parts, sign};

tests![
    owners_that_own_too_much,
    heads_of_no_version,
    heads_of_any_words,
    nodes_behind_the_last_bucket,
    slots_that_no_search_finds,
    spare_rows_that_are_not_spare,
    more_vectors_than_slots,
];

/// Environment variable that makes a process of this suite use files: a kind of table and a device.
const ATTACK: &str = "WARPSET_TEST_ATTACK";
/// Environment variable with the folder of these files.
const FILES: &str = "WARPSET_TEST_ATTACK_FILES";

const WIDTH: usize = 4;
/// The longest search in a table with this number of buckets (src/layout/size.rs).
const MOST_PROBES: u64 = 1024;
/// Far longer than a process takes, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// Uses the files if this process was started to do that.
pub fn attacked() -> Option<ExitCode> {
    let attack = std::env::var(ATTACK).ok()?;
    let (kind, device) = attack.rsplit_once(' ').expect("a kind and a device");
    let device: Device = device.parse().expect("the device of the test");
    let folder = std::path::PathBuf::from(std::env::var_os(FILES).expect("a folder of files"));
    match kind {
        "bucket" => use_file::<Bucket>(&device, &folder),
        "tree" => use_file::<Tree>(&device, &folder),
        "compact_tree" => use_file::<CompactTree>(&device, &folder),
        "indexed" => use_file::<Indexed>(&device, &folder),
        "ranks" => use_parts(&device, &folder),
        "few descriptors" => super::saved::saved_once::save_with_few_descriptors(&device, &folder),
        kind => panic!("no kind of table is called {kind}"),
    }
    Some(ExitCode::SUCCESS)
}

fn use_file<S: Storage>(device: &Device, folder: &Path) {
    match VectorTable::<S>::load_file(device, folder.join("0")) {
        Err(error) => println!("refused: {error}"),
        Ok(table) => {
            use_in_every_way(&table);
            println!("used");
        }
    }
}

/// Each rank offers enough vectors to fill its round's memory.
fn use_parts(device: &Device, folder: &Path) {
    let files: Vec<File> = (0..).map_while(|rank| File::open(folder.join(rank.to_string())).ok()).collect();
    let said = on_all(Local::ranks(files.len()).into_iter().zip(files), |rank, (transport, file)| {
        let mut table = match Builder::new(VectorTable::<Bucket>::builder(WIDTH)).load(device, transport, file) {
            Err(error) => return format!("refused: {error}"),
            Ok(table) => table,
        };
        let words = distinct(WIDTH, 1_000_000 * rank as u64, 300_000);
        match table.find_or_put_many(&words) {
            Ok(batch) => assert_eq!(batch.tally.offered(), 300_000),
            Err(error) => return format!("an error: {error}"),
        }
        "used".into()
    });
    println!("{}", said.join("\n"));
}

/// Starts a process that uses these files, and returns the lines that it writes.
#[track_caller]
fn attack(device: &Device, kind: &str, files: &[&[u8]]) -> Vec<String> {
    let folder = Folder::new();
    files.iter().enumerate().for_each(|(number, bytes)| std::fs::write(folder.path(&number.to_string()), bytes).unwrap());
    lines_of(Command::new(std::env::current_exe().unwrap()), device, kind, &folder)
}

/// Lines that this suite writes as a separate process, which `command` starts and which uses a folder.
#[track_caller]
pub fn lines_of(mut command: Command, device: &Device, kind: &str, folder: &Folder) -> Vec<String> {
    let name = if device.is_gpu() { "gpu" } else { "cpu:4" };
    command.env(ATTACK, format!("{kind} {name}")).env(FILES, folder.path("."));
    let [out, error] = ["out", "error"].map(|name| folder.path(name));
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&error).unwrap());
    let ended = end_of(&mut command);
    let [out, error] = [out, error].map(|path| std::fs::read_to_string(path).unwrap());
    match ended {
        Some(status) => assert!(status.success(), "{kind}, {status}:\n{out}{error}"),
        None => panic!("{kind}: the process has not ended within {LIMIT:?}:\n{out}{error}"),
    }
    out.lines().map(String::from).collect()
}

/// Exit status of a process; `None` if it exceeded the limit and was stopped.
fn end_of(command: &mut Command) -> Option<ExitStatus> {
    let mut child = command.spawn().unwrap();
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if begin.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asserts that the file is refused with this reason.
#[track_caller]
fn refused(device: &Device, kind: &str, files: &[&[u8]], why: &str) {
    let said = attack(device, kind, files);
    assert!(!said.is_empty() && said.iter().all(|line| line.starts_with("refused")), "{why}: {said:?}");
    assert!(said.iter().any(|line| line.contains(why)), "{why}: {said:?}");
}

/// The parts of a set.
fn saved_by_ranks(device: &Device, ranks: usize) -> Vec<Vec<u8>> {
    let set = Spread::<Bucket>::new(device, ranks, small, roomy(WIDTH, 300)).unwrap();
    set.all(|_, table| {
        let mut bytes = Vec::new();
        table.save(&mut bytes).unwrap();
        bytes
    })
}

/// Replaces words of the parts' heads and corrects the checksums.
fn with_words(parts: &[Vec<u8>], words: &[(usize, u64)]) -> Vec<Vec<u8>> {
    let end = 8 * (8 + parts.len());
    let changed = |part: &Vec<u8>| {
        let mut part = part.clone();
        words.iter().for_each(|(at, word)| part[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes()));
        let sum = u64::from(crc32fast::hash(&part[..end]));
        part[end..end + 8].copy_from_slice(&sum.to_le_bytes());
        part
    };
    parts.iter().map(changed).collect()
}

fn slices(parts: &[Vec<u8>]) -> Vec<&[u8]> {
    parts.iter().map(Vec::as_slice).collect()
}

/// A round has memory for the rows that owners may expect, if their shares add up to all hashes.
fn owners_that_own_too_much(device: &Device) {
    let (two, three) = (saved_by_ranks(device, 2), saved_by_ranks(device, 3));
    assert!(with_words(&two, &[]) == two && with_words(&three, &[]) == three, "the test knows the format");
    assert_eq!(attack(device, "ranks", &slices(&two)), ["used", "used"]);
    for (parts, bounds) in [
        (&two, &[5, 0][..]),
        (&two, &[u64::MAX, 0]),
        (&two, &[1, 1 << 63]),
        (&two, &[1, 1]),
        (&three, &[0, 9, 3]),
        (&three, &[0, u64::MAX, u64::MAX - 1]),
        (&three, &[7, 8, 9]),
    ] {
        let words: Vec<(usize, u64)> = bounds.iter().enumerate().map(|(rank, bound)| (8 + rank, *bound)).collect();
        refused(device, "ranks", &slices(&with_words(parts, &words)), "owns hashes from");
    }
    // The share of a rank may be empty.
    assert_eq!(attack(device, "ranks", &slices(&with_words(&three, &[(9, 0), (10, u64::MAX)]))), ["used"; 3]);
}

fn heads_of_no_version(device: &Device) {
    let parts = saved_by_ranks(device, 2);
    refused(device, "ranks", &slices(&with_words(&parts, &[(1, 0)])), "version 0");
    refused(device, "ranks", &slices(&with_words(&parts, &[(7, 2)])), "shares of kind 2");
}

/// Whatever the value of one word of all heads, the ranks refuse their parts, or make a set of them.
fn heads_of_any_words(device: &Device) {
    let parts = saved_by_ranks(device, 2);
    for at in 0..8 + parts.len() {
        for word in sized(&[0, 1, 3, 1 << 20, 1 << 63, u64::MAX][..], &[1, 1 << 63], &[1 << 20, u64::MAX]) {
            let said = attack(device, "ranks", &slices(&with_words(&parts, &[(at, *word)])));
            let ended = |line: &String| line.starts_with("refused") || line == "used";
            assert!(said.len() == 2 && said.iter().all(ended), "word {at} is {word}: {said:?}");
        }
    }
}

/// A table's file, and the ranges of its parts.
fn tree_file<S: Storage>(table: &VectorTable<S>) -> (Vec<u8>, Vec<Range<usize>>) {
    let bytes = saved(table);
    let parts = parts(&bytes);
    (bytes, parts)
}

/// The slot behind the last bucket stands for the node (0, 0), and no probe sequence reaches it.
fn nodes_behind_the_last_bucket(device: &Device) {
    // Trees with that node, and without it.
    let words: Vec<u32> = (0..20).flat_map(|at| [0, 0, at, 7]).chain(distinct(WIDTH, 0, 20)).collect();
    let tree = VectorTable::<Tree>::builder(WIDTH).capacity(100).nodes(200).build(device).unwrap();
    let compact = VectorTable::<CompactTree>::builder(WIDTH).capacity(100).nodes(200).build(device).unwrap();
    tree.find_or_put_many(&words).unwrap().complete(&tree).unwrap();
    compact.find_or_put_many(&words).unwrap().complete(&compact).unwrap();
    for (kind, (bytes, parts)) in [("tree", tree_file(&tree)), ("compact_tree", tree_file(&compact))] {
        assert_eq!(attack(device, kind, &[&bytes]), ["used"]);
        for node in [1, 1 << 32, u64::MAX, 375 << 32 | 513] {
            let mut changed = bytes.clone();
            let end = parts[2].end;
            changed[end - 8..end].copy_from_slice(&u64::to_le_bytes(node));
            sign(&mut changed, &parts);
            refused(device, kind, &[&changed], "behind the last bucket");
        }
    }
}

/// Tables whose slots are in reverse order: no search finds their vectors. Statistics count at most as many buckets per vector as
/// a search looks at.
fn slots_that_no_search_finds(device: &Device) {
    let (count, words) = (8000u64, distinct(WIDTH, 0, 8000));
    let bucket = VectorTable::<Bucket>::builder(WIDTH).capacity(2 * count).build(device).unwrap();
    bucket.find_or_put_many(&words).unwrap().complete(&bucket).unwrap();
    let indexed = VectorTable::<Indexed>::builder(WIDTH).capacity(2 * count).build(device).unwrap();
    indexed.find_or_put_many(&words).unwrap().complete(&indexed).unwrap();
    let tree = VectorTable::<Tree>::builder(WIDTH).capacity(2 * count).nodes(6 * count).build(device).unwrap();
    tree.find_or_put_many(&words).unwrap().complete(&tree).unwrap();

    let reversed = |bytes: &[u8], part: usize, size: usize, kept: usize| {
        let (mut changed, parts) = (bytes.to_vec(), parts(bytes));
        let range = parts[part].start..parts[part].end - kept;
        let units: Vec<u8> = bytes[range.clone()].rchunks(size).flatten().copied().collect();
        changed[range].copy_from_slice(&units);
        sign(&mut changed, &parts);
        changed
    };
    let bytes = reversed(&saved(&bucket), 1, WIDTH * 4, 0);
    let stats = VectorTable::<Bucket>::load(device, &bytes[..]).unwrap().stats().unwrap();
    assert_eq!(stats.longest_probe, MOST_PROBES);
    assert_eq!(attack(device, "bucket", &[&bytes]), ["used"]);

    let bytes = reversed(&saved(&indexed), 1, 4, 0);
    let stats = VectorTable::<Indexed>::load(device, &bytes[..]).unwrap().stats().unwrap();
    assert_eq!(stats.longest_probe, MOST_PROBES);
    assert_eq!(attack(device, "indexed", &[&bytes]), ["used"]);

    // The nodes are reversed; the slot behind them stays.
    let bytes = reversed(&saved(&tree), 2, 8, 8);
    let loaded = VectorTable::<Tree>::load(device, &bytes[..]).unwrap();
    let (vectors, stats) = (loaded.iter().count() as u64, loaded.stats().unwrap());
    assert!(vectors > 0 && stats.node_probes > MOST_PROBES, "{vectors}, {stats:?}");
    assert!(stats.node_probes <= vectors * (WIDTH as u64 - 2) * MOST_PROBES, "{vectors}, {stats:?}");
    assert_eq!(attack(device, "tree", &[&bytes]), ["used"]);
}

/// Offsets of 8-byte numbers in a header: vectors stored, rows given, rows in order.
const STORED: usize = 16 + 96;
const GIVEN: usize = 16 + 112;
const DENSE: usize = 16 + 120;
const SPARES: usize = 16 + 128;

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// A spare row is written to when it is taken. So it must have been given, must not be stored, and must be listed only once.
fn spare_rows_that_are_not_spare(device: &Device) {
    let table = VectorTable::<Indexed>::builder(WIDTH).capacity(100).build(device).unwrap();
    table.find_or_put_many(&distinct(WIDTH, 0, 50)).unwrap().complete(&table).unwrap();
    let bytes = saved(&table);
    let [stored, given, dense, spares] = [STORED, GIVEN, DENSE, SPARES].map(|at| number(&bytes, at));
    assert_eq!((stored, given, dense, spares), (50, 50, 50, 0), "the test knows the format");
    // More rows than are stored, the last ones holes; and the given spares.
    let with = |stored: u64, given: u64, dense: u64, spares: &[u64]| {
        let mut changed = bytes.clone();
        let rows = parts(&bytes)[3].end..bytes.len();
        let more = vec![0; (given as usize - 50) * WIDTH * 4];
        changed.splice(rows.start..rows.start, more);
        if !spares.is_empty() {
            changed.extend(spares.iter().flat_map(|row| row.to_le_bytes()).chain([0; 4]));
        }
        let row_bytes = given * WIDTH as u64 * 4;
        for (at, value) in
            [(STORED, stored), (GIVEN, given), (DENSE, dense), (SPARES, spares.len() as u64), (16 + 200, row_bytes)]
        {
            changed[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let parts = parts(&changed);
        sign(&mut changed, &parts);
        changed
    };
    assert!(with(50, 50, 50, &[]) == bytes);
    for (stored, given, dense, spares) in [(50, 53, 50, &[52, 50, 51][..]), (50, 60, 50, &[58]), (50, 60, 0, &[55, 51])] {
        assert_eq!(attack(device, "indexed", &[&with(stored, given, dense, spares)]), ["used"]);
    }
    for (stored, given, dense, spares, why) in [
        (50, 53, 50, &[53][..], "row 53 is spare"),
        (50, 53, 50, &[51, 51], "row 51 is spare twice"),
        (50, 53, 50, &[51, 49], "row 49 is spare"),
        (49, 50, 40, &[45], "that are stored"),
        (40, 50, 0, &[3, 4, 5], "that are stored"),
        (52, 53, 50, &[50, 51], "2 rows are spare"),
        (51, 50, 50, &[], "50 rows, 51 of them stored"),
        (50, 50, 51, &[], "51 rows in order"),
    ] {
        refused(device, "indexed", &[&with(stored, given, dense, spares)], why);
    }
}

/// The header counts the vectors that are stored.
fn more_vectors_than_slots(device: &Device) {
    let bucket = VectorTable::<Bucket>::builder(WIDTH).capacity(100).build(device).unwrap();
    let compact = VectorTable::<CompactTree>::builder(WIDTH).capacity(100).nodes(200).build(device).unwrap();
    let indexed = VectorTable::<Indexed>::builder(WIDTH).capacity(100).build(device).unwrap();
    let with = |bytes: Vec<u8>, stored: u64| {
        let (mut changed, parts) = (bytes.clone(), parts(&bytes));
        changed[STORED..STORED + 8].copy_from_slice(&stored.to_le_bytes());
        sign(&mut changed, &parts);
        changed
    };
    for (kind, bytes, slots) in [
        ("bucket", saved(&bucket), bucket.slots()),
        ("compact_tree", saved(&compact), compact.slots()),
        ("indexed", saved(&indexed), indexed.slots()),
    ] {
        for stored in [slots + 1, 1 << 40, mix(1) >> 24] {
            refused(device, kind, &[&with(bytes.clone(), stored)], "stored");
        }
    }
}
