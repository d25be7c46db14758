//! Tests the example `replay` as a user runs it: the executable that Cargo built beside this test.
#![cfg(feature = "cpu")]

use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// `target/PROFILE/examples/replay`, from this test's `target/PROFILE/deps/replay-HASH`.
fn executable() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its executable");
    let profile = test.parent().and_then(Path::parent).expect("tests are in target/PROFILE/deps");
    let path = profile.join("examples").join(format!("replay{}", std::env::consts::EXE_SUFFIX));
    assert!(path.is_file(), "{} is missing: build it with `cargo build --example replay` (`cargo test` does)", path.display());
    path
}

/// The kinds of tables.
const TABLES: [&str; 3] = ["bucket", "tree", "indexed"];

fn replay(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    replay_on("cpu:2", arguments)
}

fn replay_on(device: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    Command::new(executable()).args(["--device", device]).args(arguments).output().expect("the example starts")
}

/// The CPU, and a GPU if there is one.
fn devices() -> Vec<&'static str> {
    #[cfg(feature = "cuda")]
    if warpset::Device::gpus().is_ok_and(|gpus| !gpus.is_empty()) {
        return vec!["cpu:2", "gpu"];
    }
    println!("skipped on GPUs: there is none that can be used");
    vec!["cpu:2"]
}

/// Returns the JSON object that a successful run prints.
#[track_caller]
fn json(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Value {
    json_on("cpu:2", arguments)
}

#[track_caller]
fn json_on(device: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Value {
    let output = replay_on(device, arguments.into_iter().map(|argument| argument.as_ref().to_owned()).chain(["--json".into()]));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    only_object(&output)
}

#[track_caller]
fn only_object(output: &Output) -> Value {
    let object: Value = serde_json::from_slice(&output.stdout).expect("stdout is one JSON value and nothing else");
    assert!(object.is_object(), "{object}");
    assert_eq!(object["exit_code"].as_i64(), output.status.code().map(i64::from), "{object}");
    assert_eq!(object["error"].is_null(), output.status.success(), "{object}");
    object
}

/// Returns the sentence on stderr of a run that fails with exit code 2.
#[track_caller]
fn refused(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    ended(2, arguments)
}

/// As `refused`, for any exit code.
#[track_caller]
fn ended(code: i32, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    let output = replay(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(output.stdout.is_empty(), "nothing is reported of a failed run");
    let sentence = stderr.strip_prefix("error: ").and_then(|text| text.strip_suffix('\n')).unwrap_or_else(|| panic!("{stderr}"));
    assert!(!sentence.contains('\n') && !sentence.contains("panicked"), "{stderr}");
    sentence.into()
}

/// A folder of files for one test, in Cargo's folder for tests.
struct Files(PathBuf);

impl Files {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("replay-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // Removes files that a killed process with the same process number has left.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).expect("there is a folder for temporary files");
        Self(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Asserts that a file with this content is refused with a sentence that contains its name and these phrases.
    #[track_caller]
    fn refuse(&self, name: &str, content: impl AsRef<[u8]>, phrases: &[&str]) {
        let sentence = refused([self.write(name, content)]);
        for phrase in phrases.iter().chain([&name]) {
            assert!(sentence.contains(phrase), "`{phrase}` is not in: {sentence}");
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A `.npy` file with this header and data, padded as NumPy does.
fn npy(header: &str, data: impl AsRef<[u8]>) -> Vec<u8> {
    let length = (header.len() + 11).next_multiple_of(64) - 10;
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((length as u16).to_le_bytes());
    file.extend(format!("{header:<width$}\n", width = length - 1).bytes());
    file.extend(data.as_ref());
    file
}

fn header(descr: &str, fortran_order: bool, shape: &str) -> String {
    let order = if fortran_order { "True" } else { "False" };
    format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
}

fn header_of_words(shape: &str) -> String {
    header("'<u4'", false, shape)
}

/// A valid `.npy` file.
fn npy_of(words: &[u32], width: usize) -> Vec<u8> {
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    npy(&header_of_words(&format!("({}, {width})", words.len() / width)), data)
}

fn zip_of(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        zip.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// `count` vectors of small words, many of them equal, in an irregular order; and the number of distinct ones.
fn some_vectors(count: u32, width: usize) -> (Vec<u32>, usize) {
    let word = |vector: u32, position: usize| (vector.wrapping_mul(0x9e37_79b1) >> 20).wrapping_mul(position as u32 + 1) % 1009;
    let words: Vec<u32> = (0..count).flat_map(|vector| (0..width).map(move |position| word(vector, position))).collect();
    let distinct = words.chunks_exact(width).collect::<HashSet<_>>().len();
    (words, distinct)
}

/// Returns the vectors of `some_vectors`, with words that differ from every reference to a node: references to few nodes have 0
/// in the highest bit. Pairs whose first word is a multiple of 5 become (0, 0).
fn some_vectors_unlike_references(count: u32, width: usize) -> Vec<u32> {
    let (mut words, _) = some_vectors(count, width);
    words.iter_mut().for_each(|word| *word |= 1 << 31);
    let pairs = words.chunks_exact_mut(width).flat_map(|vector| vector.chunks_exact_mut(2));
    pairs.filter(|pair| pair[0] % 5 == 0).for_each(|pair| pair.fill(0));
    words
}

/// Number of nodes in the trees of vectors, counted by a set of pairs. Each half of a pair is a word or the number of a node, and
/// the set distinguishes words from numbers.
fn nodes_of(words: &[u32], width: usize) -> u64 {
    #[derive(Clone, Copy, PartialEq, Eq, Hash)]
    enum Half {
        Word(u32),
        Node(usize),
        Zeros,
    }
    let mut nodes = HashMap::new();
    for vector in words.chunks_exact(width) {
        let mut level: Vec<Half> = vector.iter().copied().map(Half::Word).collect();
        while level.len() > 2 {
            let above = level.chunks(2).map(|halves| match *halves {
                [Half::Word(0), Half::Word(0)] => Half::Zeros,
                [left, right] => {
                    let next = nodes.len();
                    Half::Node(*nodes.entry((left, right)).or_insert(next))
                }
                _ => halves[0],
            });
            level = above.collect();
        }
    }
    nodes.len() as u64
}

/// Asserts properties of every report of one pass in which all vectors found room.
#[track_caller]
fn assert_consistent(report: &Value, vectors: u64, distinct: u64, width: u64) {
    let number = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"));
    let real = |name: &str| report[name].as_f64().unwrap_or_else(|| panic!("{name}: {report}"));
    assert_eq!((number("vectors"), number("distinct"), number("width")), (vectors, distinct, width), "{report}");
    assert_eq!((number("new"), number("seen"), number("full")), (distinct, vectors - distinct, 0), "{report}");
    assert_eq!(number("full_nodes"), 0, "{report}");
    assert!((real("gops_end_to_end") * real("seconds") * 1e9 / vectors as f64 - 1.0).abs() < 1e-6, "{report}");
    assert!((real("fill") * number("slots") as f64 / distinct as f64 - 1.0).abs() < 1e-6, "{report}");
    assert_eq!(report["gops"] == report["gops_end_to_end"], report["device"] == "CPU (2 threads)", "{report}");
    let is_tree = report["table"].as_str().unwrap().starts_with("tree table");
    let is_indexed = report["table"].as_str().unwrap().starts_with("indexed table");
    let nodes = number("nodes");
    let root = report["table"]
        .as_str()
        .unwrap()
        .split("slots of ")
        .nth(1)
        .map_or(8.0, |bits| bits.split(' ').next().unwrap().parse::<f64>().unwrap() / 8.0);
    let in_use = match (is_tree, is_indexed) {
        (true, _) => root + (8 * nodes) as f64 / distinct as f64,
        (_, true) => root + 4.0 * width as f64,
        _ => 4.0 * width as f64,
    };
    assert!((real("bytes_in_use_per_vector") / in_use - 1.0).abs() < 1e-6, "{report}");
    assert!(real("bytes_per_vector") >= in_use, "{report}");
    let ratio = if is_tree { (nodes + distinct) as f64 * 2.0 / (distinct * width) as f64 } else { 1.0 };
    assert!((real("compression_ratio") - ratio).abs() < 1e-6, "{report}");
    assert_eq!((nodes == 0, report["node_fill"] == Value::Null), (!is_tree, !is_tree), "{report}");
    // Trees are in several slots, and rows are found through an index, so neither has a placement-only pass.
    let has_none = report.get("placement_gops").is_none() && report.get("placement_share").is_none();
    assert_eq!(has_none, is_tree || is_indexed, "{report}");
}

#[test]
fn names_cannot_control_a_terminal() {
    let output = replay(["no\u{1b}[31m\u{9b}\u{202e}.npy"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && text.contains("no\\u{1b}[31m\\u{9b}\\u{202e}.npy"), "{text:?}");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{text:?}");
}

#[test]
fn files_of_any_width_are_replayed_and_verified() {
    let files = Files::new();
    for width in [1, 3, 8, 37] {
        let (words, distinct) = some_vectors(10_000, width);
        let array = npy_of(&words, width);
        let stored = zip_of(&[("arr_0.npy", &array)], CompressionMethod::Stored);
        let deflated = zip_of(&[("arr_0.npy", &array)], CompressionMethod::Deflated);
        // How a file is read does not depend on the table, so one table is enough for `.npz` files.
        let one = &TABLES[..1];
        for (name, content, tables) in
            [("a.npy", &array, &TABLES[..]), ("stored.npz", &stored, one), ("deflated.npz", &deflated, one)]
        {
            let path = files.write(name, content);
            for table in tables {
                let report = json([path.as_os_str(), "--verify".as_ref(), "--table".as_ref(), table.as_ref()]);
                assert_consistent(&report, 10_000, distinct as u64, width as u64);
                assert_eq!(report["verified"], true);
            }
            let trees = ["--table", "tree", "--roots", "compact", "--verify"].map(OsStr::new);
            let report = json([path.as_os_str()].into_iter().chain(trees));
            assert_consistent(&report, 10_000, distinct as u64, width as u64);
            assert_eq!(
                (&report["verified"], report["table"].as_str().unwrap().contains("-bit roots")),
                (&true.into(), width > 2)
            );
        }
    }
}

#[test]
fn keys_are_replayed_and_verified() {
    for (arguments, spec) in [
        (&["--count", "20k"][..], "64-bit keys in slots of 64 bits"),
        // Each word has one of 200 values.
        (&["--count", "4k", "--internal-duplication", "20", "--placement", "--repeat", "2"], "keys in slots of"),
    ] {
        for device in devices() {
            let report = json_on(device, [&["--table", "root", "--width", "2", "--verify"][..], arguments].concat());
            assert!(report["table"].as_str().unwrap().contains(spec), "{report}");
            assert_eq!((&report["verified"], report["full"].as_u64()), (&true.into(), Some(0)), "{report}");
        }
    }
    for width in ["1", "3", "8"] {
        let sentence = refused(["--table", "root", "--width", width]);
        assert!(sentence.contains(&format!("vectors of 2 words, not of {width}")), "{sentence}");
    }
    // The key is refused before any vector is put.
    assert!(refused(["--table", "root", "--width", "2", "--key-bits", "40"]).contains("has more bits than the table's keys: 40"));
    assert!(
        refused(["--table", "root", "--width", "2", "--key-bits", "65"])
            .contains("65 bits of a key are not supported, only 20 to 64")
    );
}

#[test]
fn trees_have_the_nodes_that_there_are() {
    let files = Files::new();
    for width in [1, 2, 3, 4, 5, 7, 8, 37] {
        let words = some_vectors_unlike_references(5_000, width);
        let path = files.write("a.npy", npy_of(&words, width));
        for device in devices() {
            let report = json_on(device, [path.as_os_str(), "--table=tree".as_ref(), "--verify".as_ref()]);
            let distinct = words.chunks_exact(width).collect::<HashSet<_>>().len();
            assert_consistent(&report, 5_000, distinct as u64, width as u64);
            assert_eq!(report["nodes"], nodes_of(&words, width), "{report}");
            assert_eq!(report["table"].as_str().unwrap().starts_with("tree table"), width > 2, "{report}");
        }
    }
}

#[test]
fn trees_are_made_by_every_strategy() {
    let files = Files::new();
    for (width, devices) in [(7, devices()), (37, vec!["cpu:2"])] {
        let words = some_vectors_unlike_references(2_000, width);
        let path = files.write("a.npy", npy_of(&words, width));
        let distinct = words.chunks_exact(width).collect::<HashSet<_>>().len();
        for (device, strategy) in devices.iter().flat_map(|device| warpset::Strategy::ALL.map(|strategy| (device, strategy))) {
            let name = strategy.to_string();
            let report = json_on(
                device,
                [path.as_os_str(), "--table=tree".as_ref(), "--strategy".as_ref(), name.as_ref(), "--verify".as_ref()],
            );
            assert_consistent(&report, 2_000, distinct as u64, width as u64);
            let by_other_than_default = report["table"].as_str().unwrap().ends_with(&format!(", made by {name}"));
            assert_eq!(by_other_than_default, strategy != warpset::Strategy::DEFAULT, "{report}");
        }
    }
    let sentence = replay(["--table", "tree", "--strategy", "2_np_sm"]);
    assert!(String::from_utf8_lossy(&sentence.stderr).contains("`2_np_sm` names no strategy"), "{sentence:?}");
}

/// Replays one short trace. The loop over files and names in docs/build_strategies.md replays all traces by every strategy.
#[test]
fn recorded_state_vectors_have_their_distinct_count_by_every_strategy() {
    let Some(folder) = std::env::var_os("WARPSET_TRACES") else {
        println!("skipped: WARPSET_TRACES is not set");
        return;
    };
    let path = Path::new(&folder).join("leader_election.4.npz");
    for device in devices() {
        // On a CPU only the pairing has an effect.
        let on_cpu = ["default", "1_ip_sm", "Clr64"].map(str::to_owned).to_vec();
        let names =
            if device.starts_with("cpu") { on_cpu } else { warpset::Strategy::ALL.map(|strategy| strategy.to_string()).to_vec() };
        for name in names {
            let report = json_on(
                device,
                [path.as_os_str(), "--table=tree".as_ref(), "--strategy".as_ref(), name.as_ref(), "--verify".as_ref()],
            );
            assert_consistent(&report, 300_000, 63_947, 37);
            assert_eq!(report["verified"], true);
        }
    }
}

#[test]
fn an_array_is_chosen_by_name() {
    let (one, two) = (npy_of(&[1], 1), npy_of(&[1, 2], 1));
    let files = Files::new();
    let default = files.write("default.npz", zip_of(&[("a.npy", &one), ("vectors.npy", &two)], CompressionMethod::Stored));
    let path = default.as_os_str();
    assert_eq!(json([path])["vectors"], 2);
    assert_eq!(json([path, "--array".as_ref(), "a".as_ref()])["vectors"], 1);
    let sentence = refused([path, "--array".as_ref(), "b".as_ref()]);
    assert!(sentence.contains("no array `b`, only a, vectors"), "{sentence}");

    let entries: [(&str, &[u8]); 3] = [("a.npy", &one), ("b.npy", &two), ("notes.txt", b"")];
    files.refuse("several.npz", zip_of(&entries, CompressionMethod::Stored), &["2 arrays (a, b)", "--array"]);
    files.refuse("none.npz", zip_of(&entries[2..], CompressionMethod::Stored), &["no arrays"]);
    files.refuse("empty.npz", zip_of(&[], CompressionMethod::Stored), &["no arrays"]);
    let sentence = refused([files.write("single.npy", &one).as_os_str(), "--array".as_ref(), "a".as_ref()]);
    assert!(sentence.contains("leave out --array"), "{sentence}");
}

#[test]
fn no_vectors_give_zeros() {
    let files = Files::new();
    let path = files.write("empty.npy", npy_of(&[], 5));
    for table in TABLES {
        let report = json([path.as_os_str(), "--verify".as_ref(), "--table".as_ref(), table.as_ref()]);
        for name in ["vectors", "distinct", "new", "seen", "full", "nodes"] {
            assert_eq!(report[name], 0, "{name}");
        }
        assert_eq!((&report["gops"], &report["fill"], &report["width"]), (&0.0.into(), &0.0.into(), &5.into()));
        for name in ["bytes_per_vector", "bytes_in_use_per_vector", "placement_share"] {
            assert_eq!(report[name], Value::Null, "{name}");
        }
        assert!(replay(["--count", "0", "--table", table]).status.success());
    }
}

#[test]
fn files_that_are_no_arrays_are_refused() {
    let files = Files::new();
    let sentence = refused([files.0.join("missing.npy")]);
    assert!(sentence.contains("missing.npy: No such file"), "{sentence}");
    let sentence = refused([&files.0]);
    assert!(sentence.contains("not a regular file"), "{sentence}");
    for (name, content) in [("empty.npy", &b""[..]), ("short.npy", b"\x93NUM"), ("text.npy", b"0 1 2 3\n4 5 6 7\n")] {
        files.refuse(name, content, &["neither a .npy nor an .npz file"]);
    }
}

#[test]
fn truncated_and_damaged_files_are_refused() {
    let files = Files::new();
    let (words, _) = some_vectors(1_000, 3);
    let good = npy_of(&words, 3);
    for end in [6, 7, 9, 10, 100] {
        files.refuse("header.npy", &good[..end], &["ends within its header"]);
    }
    files.refuse("data.npy", &good[..good.len() - 1], &["(1000, 3) needs 12000 bytes", "but 11999 follow"]);
    files.refuse("longer.npy", [&good[..], &[0; 4]].concat(), &["needs 12000 bytes", "but 12004 follow"]);

    let zip = zip_of(&[("vectors.npy", &good)], CompressionMethod::Deflated);
    files.refuse("half.npz", &zip[..zip.len() / 2], &["not a complete .npz file"]);
    files.refuse("start.npz", &zip[..10], &["not a complete .npz file"]);
    let short = zip_of(&[("vectors.npy", &good[..good.len() - 4])], CompressionMethod::Deflated);
    files.refuse("short.npz", short, &["array `vectors`", "needs 12000 bytes", "but 11996 follow"]);
    let mut damaged = zip_of(&[("vectors.npy", &good)], CompressionMethod::Stored);
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    files.refuse("damaged.npz", damaged, &["array `vectors`", "damaged"]);
    let mut undeflatable = zip;
    undeflatable[60..200].fill(0xff);
    files.refuse("undeflatable.npz", undeflatable, &["array `vectors`"]);
}

#[test]
fn arrays_of_anything_but_vectors_of_words_are_refused() {
    let files = Files::new();
    let refuse = |name: &str, header: &str, phrases: &[&str]| files.refuse(name, npy(header, [0; 24]), phrases);
    refuse("i8.npy", &header("'<i8'", false, "(3, 1)"), &["dtype '<i8'", "'<u4'"]);
    refuse("f4.npy", &header("'<f4'", false, "(3, 2)"), &["dtype '<f4'"]);
    refuse("record.npy", &header("[('a', '<u4'), ('b', '<u4')]", false, "(3, 1)"), &["dtype [('a', '<u4'), ('b', '<u4')]"]);
    refuse("big.npy", &header("'>u4'", false, "(3, 2)"), &["big-endian ('>u4')"]);
    refuse("fortran.npy", &header("'<u4'", true, "(3, 2)"), &["Fortran order"]);
    refuse("none.npy", &header_of_words("()"), &["the shape () has 0 dimensions; 2 are needed"]);
    refuse("one.npy", &header_of_words("(6,)"), &["the shape (6,) has 1 dimensions"]);
    refuse("three.npy", &header_of_words("(3, 2, 1)"), &["(3, 2, 1) has 3 dimensions"]);
    refuse("narrow.npy", &header_of_words("(6, 0)"), &["0 words of a vector are not supported, only 1 to 256"]);
    refuse("wide.npy", &header_of_words("(1, 257)"), &["257 words of a vector are not supported"]);
    refuse("negative.npy", &header_of_words("(-3, 2)"), &["header"]);
    refuse("syntax.npy", "{'descr': '<u4', 'shape': (3, 2", &["header"]);
    refuse("missing.npy", "{'descr': '<u4', 'shape': (3, 2)}", &["header"]);
    refuse("list.npy", "[1, 2, 3]", &["header"]);
    let mut version = npy_of(&[1, 2], 2);
    version[6] = 9;
    files.refuse("version.npy", version, &["version 9.0"]);
    files.refuse("long.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", &["the header claims 4294967295 bytes"]);
}

#[test]
fn headers_that_claim_more_than_there_is_are_refused_before_memory_is_taken() {
    let files = Files::new();
    for shape in ["(1099511627776, 8)", "(4611686018427387904, 4)", "(18446744073709551615, 256)"] {
        let array = npy(&header_of_words(shape), [0; 32]);
        files.refuse("huge.npy", &array, &["the shape", "but 32 follow the header"]);
        let zip = zip_of(&[("vectors.npy", &array)], CompressionMethod::Deflated);
        files.refuse("huge.npz", zip, &["the shape", "but 32 follow the header"]);
    }
    let beyond = npy(&header_of_words("(18446744073709551616, 1)"), [0; 32]);
    files.refuse("beyond.npy", beyond, &["header"]);
}

#[test]
fn a_file_larger_than_memory_is_refused() {
    const VECTORS: u64 = 1 << 40; // 8 TiB; the file system stores only the header
    let files = Files::new();
    let header = npy(&header_of_words(&format!("({VECTORS}, 2)")), []);
    let path = files.write("sparse.npy", &header);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    if let Err(error) = file.set_len(header.len() as u64 + VECTORS * 8) {
        println!("skipped: the file system has no files of 8 TiB: {error}");
        return;
    }
    let sentence = refused([path]);
    assert!(sentence.contains("need 8.00 TiB of memory (8,796,093,022,208 bytes), but"), "{sentence}");
}

#[test]
fn random_vectors_have_the_duplication_asked_for() {
    for (count, duplication, distinct) in
        [("1k", "1", 1_000), ("2^14", "2", 8_192), ("20_000", "1.25", 16_000), ("10k", "100", 100)]
    {
        for table in TABLES {
            let random = ["--random", "--count", count, "--duplication", duplication, "--width", "4"];
            let report = json(random.into_iter().chain(["--verify", "--table", table]));
            let vectors = report["vectors"].as_u64().unwrap();
            assert_consistent(&report, vectors, distinct, 4);
            for fill in [&report["fill"], &report["node_fill"]].into_iter().filter_map(Value::as_f64) {
                assert!((0.6..=0.7).contains(&fill), "{fill} instead of the default 0.7, but for rounding");
            }
        }
    }
    let report = json(["--count", "10k", "--internal-duplication", "500", "--duplication", "1", "--width", "3", "--verify"]);
    assert_consistent(&report, 10_000, 10_000, 3);
    let sentence = refused(["--count", "10k", "--internal-duplication", "2k", "--duplication", "1", "--width", "3"]);
    assert!(sentence.contains("there are only 3,375 of 3 words with 15 different values"), "{sentence}");
}

#[test]
fn memory_is_checked_before_vectors_are_generated() {
    let sentence = refused(["--count", "2^45", "--width", "2"]);
    assert!(sentence.contains("35,184,372,088,832 vectors of width 2 need 256.00 TiB of memory"), "{sentence}");
}

#[test]
fn memory_and_time_have_limits() {
    let stopped = |arguments: [&str; 6], more: &[&str]| ended(3, arguments.iter().chain(more));
    let sentence = stopped(["--count", "100k", "--width", "2", "--memory", "100k"], &[]);
    let numbers = "need 781.25 KiB of memory (800,000 bytes), but --memory leaves 97.66 KiB (100,000 bytes)";
    assert!(sentence.ends_with(numbers), "{sentence}");
    let sentence = stopped(["--count", "100k", "--width", "2", "--memory", "800k"], &["--capacity", "1M"]);
    assert!(sentence.contains("(8,000,000 bytes)") && sentence.contains("(800,000 bytes)"), "{sentence}");
    let sentence = stopped(["--count", "100k", "--width", "2", "--memory", "1M"], &["--verify"]);
    assert!(
        sentence.contains("outcomes, references and the reference set") && sentence.contains("(1,000,000 bytes)"),
        "{sentence}"
    );
    let output = replay(["--count", "2^20", "--repeat", "1000000", "--timeout", "0.2", "--json"]);
    let error = only_object(&output)["error"].as_str().unwrap().to_string();
    assert!(output.status.code() == Some(3) && error.starts_with("stopped after --timeout 0.2 s"), "{output:?}");
}

/// If the system refuses memory, the error names the bytes, as it does if memory is known to be missing.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_is_not_granted_is_reported() {
    for (limit, arguments) in
        [(400_000, "--count 2^24"), (300_000, "--count 2^20 --width 16 --verify"), (400_000, "--capacity 2^24")]
    {
        let script = format!("ulimit -v {limit} && exec \"$0\" --device cpu:2 --json {arguments}");
        // The limit includes the stacks of threads.
        let output = Command::new("sh").args(["-c", &script]).arg(executable()).env("RAYON_NUM_THREADS", "2").output().unwrap();
        let error = only_object(&output)["error"].as_str().unwrap().to_string();
        assert!(output.status.code() == Some(2) && error.contains("need"), "{arguments}: {output:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn interruption_is_an_error() {
    use std::process::Stdio;
    let mut command = Command::new(executable());
    command.args(["--device", "cpu:2", "--json", "--count", "2^20", "--repeat", "1000000", "--timeout", "30m"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The program handles Ctrl-C itself once it has started its thread `stopping`.
    let threads = format!("/proc/{}/task", child.id());
    let listens = || {
        let mut all = std::fs::read_dir(&threads).into_iter().flatten().flatten();
        all.any(|thread| std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name == "stopping\n"))
    };
    while !listens() {
        assert_eq!(child.try_wait().unwrap(), None, "it has ended by itself: is the executable of this build?");
        std::thread::yield_now();
    }
    let sent = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(sent.expect("there is a shell").success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &only_object(&output)["error"]), (Some(130), &"interrupted before the end".into()));
}

#[test]
fn later_passes_only_see() {
    for table in TABLES {
        let report = json(["--count", "5k", "--repeat", "3", "--verify", "--table", table]);
        let passes = report["passes"].as_array().unwrap();
        let outcomes: Vec<_> = passes.iter().map(|pass| (&pass["new"], &pass["seen"], &pass["full"])).collect();
        assert_eq!(outcomes[0], (&report["new"], &report["seen"], &report["full"]));
        assert_eq!((outcomes.len(), outcomes[1], outcomes[2]), (3, (&0.into(), &5000.into(), &0.into()), outcomes[1]));
    }
    // A later pass may make the table grow, because the table does not know beforehand that no vector is new. That pass does not
    // affect the report of the first.
    let of_slots = ["--count", "13000", "--duplication", "1.05", "--capacity", "100"];
    let of_nodes = ["--count", "2000", "--duplication", "1", "--width", "4", "--capacity", "100000", "--nodes", "1000"];
    let tree = ["--table", "tree"];
    for ranks in [&[][..], &["--local-ranks", "2"]] {
        for table in [of_slots.to_vec(), [&of_slots[..], &tree].concat(), [&of_nodes[..], &tree].concat()] {
            let report = json([&table[..], ranks, &["--grow", "--verify", "--repeat", "3", "--placement", "no"]].concat());
            assert_eq!(report["verified"], true, "{report}");
        }
    }
}

#[test]
fn a_full_table_is_reported_with_its_own_exit_code() {
    for (table, width) in [("bucket", "2"), ("tree", "2"), ("tree", "5")] {
        let arguments = ["--count", "4k", "--width", width, "--capacity", "100", "--json", "--verify", "--table", table];
        let (report, sentence) = full(arguments);
        let number = |name: &str| report[name].as_u64().unwrap();
        assert_eq!((number("new"), number("distinct")), (number("slots"), number("slots")), "{report}");
        assert_eq!(number("full_nodes"), 0);
        assert!(sentence.contains("--capacity") && !sentence.contains("--nodes"), "{sentence}");
    }
}

#[test]
fn a_full_node_table_is_reported_as_such() {
    let arguments = ["--count", "4k", "--width", "5", "--nodes", "100", "--json", "--verify", "--repeat", "2", "--table", "tree"];
    let (report, sentence) = full(arguments);
    let number = |name: &str| report[name].as_u64().unwrap();
    assert_eq!((number("full_nodes"), number("nodes")), (number("full"), number("node_slots")), "{report}");
    assert!(number("new") > 0 && number("new") < number("slots"), "{report}");
    assert!(sentence.contains("--nodes") && !sentence.contains("--capacity"), "{sentence}");

    let (report, sentence) = full(arguments.into_iter().chain(["--capacity", "20"]));
    assert!(report["full"].as_u64() > report["full_nodes"].as_u64(), "{report}");
    assert!(sentence.contains("--nodes") && sentence.contains("--capacity"), "{sentence}");
}

/// Returns the report, and the sentence on stderr, of a verified run whose table was too full for some of its 4,000 vectors.
#[track_caller]
fn full<'a>(arguments: impl IntoIterator<Item = &'a str>) -> (Value, String) {
    let output = replay(arguments);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let report = only_object(&output);
    assert!(report["error"].as_str().is_some_and(|error| error.contains("rejected vectors")), "{report}");
    let number = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(number("new") + number("seen") + number("full"), number("vectors"));
    assert_eq!((&report["verified"], &report["placement_share"]), (&true.into(), &Value::Null));
    let sentence = String::from_utf8(output.stderr).unwrap();
    for expected in [format!("rejected vectors {} of 4000", number("full")), format!("stored {}", number("new"))] {
        assert!(sentence.contains(&expected), "`{expected}` is not in: {sentence}");
    }
    (report, sentence)
}

#[test]
fn a_table_that_grows_is_not_full() {
    for table in [&["bucket"][..], &["tree"], &["tree", "--nodes", "100"]] {
        let arguments = ["--count", "20k", "--capacity", "100", "--grow", "--verify", "--table"];
        let report = json(arguments.iter().chain(table));
        assert_consistent(&report, 20_000, 10_000, 8);
        assert_eq!(report["verified"], true);
    }
}

#[test]
fn the_placement_pass_is_measured_if_asked_for() {
    let share = |placement: &str| json(["--count", "100k", placement])["placement_share"].clone();
    assert!(share("--placement").as_f64().unwrap() > 0.0);
    assert!(share("--placement=auto").as_f64().unwrap() > 0.0);
    assert_eq!(share("--placement=no"), Value::Null);
    // `no` is the option's value, not a file.
    assert_eq!(json(["--count", "1k", "--placement", "no"])["placement_share"], Value::Null);
    // Vectors of two words are not trees, even in a tree table.
    let narrow = json(["--count", "100k", "--width", "2", "--table", "tree", "--placement"]);
    assert!(narrow["placement_share"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_report_is_for_people_without_json() {
    let output = replay(["--count", "3000", "--duplication", "3", "--verify", "--repeat", "2"]);
    let report = String::from_utf8(output.stdout).unwrap();
    for line in ["distinct         1,000\n", "outcomes         1,000 new, 2,000 seen, 0 full\n", "verification     verified\n"] {
        assert!(report.contains(line), "`{line}` is not in:\n{report}");
    }
    assert!(output.status.success() && output.stderr.is_empty());
}

#[test]
fn the_report_on_trees_has_their_nodes() {
    let lines = |width: &str| {
        let output = replay(["--table", "tree", "--count", "2000", "--duplication", "1", "--width", width, "--verify"]);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // 2,000 roots and 4,000 nodes relative to 8,000 words.
    for line in
        ["nodes            4,000, fill ", "compression ratio 1.500\n", "24.0 of them in use for its root", "placement only   n/a"]
    {
        assert!(lines("4").contains(line), "`{line}` is not in:\n{}", lines("4"));
    }
    assert!(lines("2").contains("nodes            none: "), "{}", lines("2"));
}

#[test]
fn wrong_command_lines_are_refused_with_code_2() {
    for arguments in [
        &["--no-such-option"][..],
        &["a.npy", "--random"],
        &["a.npy", "--width", "3"],
        &["--array", "a"],
        &["--duplication", "0.5"],
        &["--count", "1.5"],
        &["--count", "-1"],
        &["--fill", "1.1"],
        &["--fill", "0.5", "--capacity", "10"],
        &["--device", "tpu"],
        &["--repeat", "0"],
        &["--table", "hash"],
        &["--nodes", "100"],
        &["--nodes", "100", "--table", "bucket"],
        &["--device", "cpu:100000"],
        &["--timeout", "0"],
        &["--placement=maybe"],
    ] {
        let output = replay(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(output.stderr.starts_with(b"error: ") && output.stdout.is_empty(), "{output:?}");
        let output = replay(arguments.iter().chain(&["--json"]));
        assert!(output.status.code() == Some(2) && only_object(&output)["error"].is_string(), "{output:?}");
    }
    let version = replay(["--version"]);
    assert!(version.status.success() && version.stdout.starts_with(b"replay "), "{version:?}");
    let help = replay(["--help"]);
    assert!(String::from_utf8_lossy(&help.stdout).contains("130  interrupted"), "{help:?}");
    assert!(help.status.success() && help.stderr.is_empty(), "{help:?}");
    for width in ["0", "257"] {
        let sentence = refused(["--width", width]);
        assert!(sentence.contains("only 1 to 256"), "{sentence}");
    }
    assert!(refused(["--capacity", "0"]).contains("0 slots of a table are not supported"));
    for nodes in ["0", "2^32"] {
        assert!(
            refused(["--table", "tree", "--nodes", nodes])
                .contains("slots of a node table are not supported, only 1 to 4294967294")
        );
    }
}

#[test]
fn recorded_state_vectors_have_their_distinct_counts() {
    let Some(folder) = std::env::var_os("WARPSET_TRACES") else {
        println!("skipped: WARPSET_TRACES is not set");
        return;
    };
    let traces = [
        ("adding.4", 1_000_000, 675_078, 2, 0),
        ("lamport.5", 1_000_000, 334_674, 3, 54_602),
        ("peterson.4", 1_000_000, 320_304, 5, 174_890),
        ("iprotocol.3", 1_000_000, 308_328, 7, 225_299),
        ("rether.4", 1_000_000, 763_892, 10, 230_527),
        ("plc.4", 600_000, 371_831, 19, 32_613),
        ("leader_election.4", 300_000, 63_947, 37, 235_175),
    ];
    let check = |(model, vectors, distinct, width, nodes)| {
        let path = Path::new(&folder).join(format!("{model}.npz"));
        for (device, table) in devices().into_iter().flat_map(|device| TABLES.map(|table| (device, table))) {
            let report = json_on(device, [path.as_os_str(), "--verify".as_ref(), "--table".as_ref(), table.as_ref()]);
            assert_consistent(&report, vectors, distinct, width);
            assert_eq!(report["verified"], true);
            // A pair of words may equal a pair of references by chance, and then both share a node. Few pairs do, depending on
            // the seed.
            let (found, nodes) = (report["nodes"].as_u64().unwrap(), if table == "tree" { nodes } else { 0 });
            assert!(found <= nodes && found + 10 >= nodes, "{found} instead of {nodes} nodes: {report}");
        }
    };
    // Each run reads a trace and compares it with a set by one thread, so all traces run at once.
    std::thread::scope(|scope| traces.into_iter().for_each(|trace| drop(scope.spawn(move || check(trace)))));
}

/// Outcomes and stored vectors equal those of one table.
#[test]
fn ranks_give_the_outcomes_of_one_table() {
    for (table, roots) in [("bucket", "plain"), ("tree", "plain"), ("tree", "compact")] {
        let of_kind = ["--table", table, "--roots", roots];
        let of_vectors = ["--count", "20000", "--width", "5", "--repeat", "2", "--verify", "--placement", "no"];
        let arguments = |more: &[&'static str]| {
            let common = if roots == "plain" { &of_kind[..2] } else { &of_kind[..] };
            [common, &of_vectors, more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let expected = json(arguments(&[]));
        assert!(expected["ranks"].is_null());
        for (ranks, grow) in [("1", &[][..]), ("2", &["--grow", "--capacity", "100"]), ("3", &[]), ("5", &[])] {
            let found = json(arguments(&[&["--local-ranks", ranks], grow].concat()));
            for name in ["vectors", "distinct", "new", "seen", "full", "verified"] {
                assert_eq!(found[name], expected[name], "{name} of {table} on {ranks} ranks");
            }
            assert_eq!(found["passes"][1]["seen"], 20_000);
            let stored: Vec<u64> =
                found["ranks"]["stored"].as_array().unwrap().iter().map(|stored| stored.as_u64().unwrap()).collect();
            assert_eq!((stored.len().to_string(), stored.iter().sum::<u64>()), (ranks.into(), found["new"].as_u64().unwrap()));
            assert!((1.0..1.2).contains(&found["ranks"]["balance"].as_f64().unwrap()), "{found}");
        }
    }
    // Without growth, vectors that find no room are reported as by one table.
    let output = replay(["--count", "5000", "--local-ranks", "3", "--capacity", "600", "--json"]);
    let report = only_object(&output);
    assert!(output.status.code() == Some(3) && report["full"].as_u64() > Some(0), "{report}");
    assert!(report["error"].as_str().unwrap().contains("--capacity"), "{report}");
    let twice = replay_on("gpu:1,1", ["--local-ranks", "2"]);
    assert!(String::from_utf8_lossy(&twice.stderr).contains("GPU 1 is named twice"), "{twice:?}");
}
