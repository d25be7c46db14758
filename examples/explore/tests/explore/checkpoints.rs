//! Checkpoints: a resumed search gives the results of an uninterrupted one, wherever the earlier search ended.
//!
//! Keeps this promise of `examples/explore/docs/checkpoints.md`:
//!
//! - A misleading checkpoint is refused: its table, its counts, and states that the model cannot reach (also
//!   `examples/explore/model/src/ir/bounds.rs`).

use super::*;
use flate2::Crc;
use serde_json::json;
use std::time::{Duration, Instant};

/// `n` counters to 12, each in a process: 13^n states.
fn counters(n: u32) -> String {
    let process =
        |n| format!("process P_{n} {{ byte x; state s; init s; trans s -> s {{ guard x < 12; effect x = x + 1; }}; }}\n");
    (0..n).map(process).collect::<String>() + "system async;"
}

/// Counts of the whole search. The states of a level are the ways to sum up to its number.
fn all(n: u32) -> [u64; 5] {
    let mut levels = vec![1u64];
    for _ in 0..n {
        let with_one_more = |sum: usize| (0..13.min(sum + 1)).filter_map(|x| levels.get(sum - x)).sum();
        levels = (0..levels.len() + 12).map(with_one_more).collect();
    }
    let (states, count) = (13u64.pow(n), u64::from(n));
    [states, count * 12 * states / 13, 1, levels.len() as u64, *levels.iter().max().unwrap()]
}

/// The exit code and the report of a resumed search.
#[track_caller]
fn resumed(place: TableOnDevice, model: &Path, file: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    // No capacity is given on a GPU either: the table is the one in the file.
    json_on(place.device, model, &[&["--table", place.table, "--resume", file.to_str().unwrap()], arguments].concat())
}

pub fn searches_go_on_with_the_same_counts_and_paths(place: TableOnDevice) {
    let (folder, path) = written(&counters(4));
    let file = folder.path().join("search.checkpoint");
    let name = file.to_str().unwrap();
    let goal = "P_0.x == 5 and P_1.x == 3 and P_2.x == 1 and P_3.x == 7";
    let of_devices = if place.is_gpu() { &["gpu", "cpu:2"][..] } else { &["cpu:2"] };
    for most in ["1", "2", "5", "30", "300", "10k"] {
        let (code, before) = place.json(&path, &["--max-states", most, "--checkpoint", name]);
        assert_eq!(
            (code, &before["checkpoint"]["states"], &before["counts"]["resumed_states"]),
            (Some(3), &before["counts"]["states"], &Value::Null)
        );
        for device in of_devices {
            let (code, report) = resumed(TableOnDevice { device, ..place }, &path, &file, &[]);
            assert_eq!((code, counts(&report)), (Some(0), all(4)), "{most} {device}");
            assert!(report["counts"]["resumed_states"].as_u64() >= before["counts"]["states"].as_u64(), "{report}");
        }
    }
    // Resumes from one checkpoint to the next in the same file, with different engines and numbers of threads.
    place.json(&path, &["--max-states", "1", "--checkpoint", name]);
    for (turn, most) in ["4", "20", "200", "2k", "20k"].iter().enumerate() {
        let engines = if place.is_gpu() { ["gpu", "interpreted"] } else { ["interpreted", "compiled"] };
        let device = if place.is_gpu() { "gpu" } else { ["cpu:1", "cpu:3"][turn % 2] };
        let arguments = ["--max-states", most, "--checkpoint", name, "--engine", engines[turn % 2]];
        let (code, report) = resumed(TableOnDevice { device, ..place }, &path, &file, &arguments);
        assert_eq!(code, Some(3), "{report}");
    }
    let (code, report) = resumed(place, &path, &file, &["--checkpoint", name]);
    assert_eq!((code, counts(&report), &report["checkpoint"]["states"]), (Some(0), all(4), &Value::Null));
    // The goal must be given again.
    let (code, _) = place.json(&path, &["--max-states", "3k", "--checkpoint", name, "--goal", goal]);
    assert_eq!(code, Some(3));
    let (code, report) = resumed(place, &path, &file, &["--goal", goal]);
    assert_eq!((code, &report["no_path"], report["path"]["length"].as_u64()), (Some(1), &Value::Null, Some(16)), "{report}");
}

/// Kills searches at random times, also while they write.
pub fn killed_searches_go_on(place: TableOnDevice) {
    if !cfg!(unix) {
        return;
    }
    // A launch on a GPU ends when its table grows, or after 0.2 s.
    let n = if place.is_gpu() { 6 } else { 4 };
    let (folder, path) = written(&counters(n));
    let file = folder.path().join("search.checkpoint");
    let written_at = || std::fs::metadata(&file).and_then(|metadata| metadata.modified()).ok();
    let (mut killed, mut random) = (0, 12_345u64);
    for _ in 0..12 {
        let mut command = Command::new(EXPLORE);
        command.arg(&path).args(["--device", place.device, "--table", place.table, "--engine"]);
        command.arg(if place.is_gpu() { "gpu" } else { "interpreted" });
        command.args(["--checkpoint-every", "0.001", "--checkpoint-levels", "1", "--json", "--checkpoint"]).arg(&file);
        let before = written_at();
        match before {
            Some(_) => command.arg("--resume").arg(&file),
            None => command.args(["--capacity", "64"]),
        };
        let mut child = spawned(&mut command);
        // Wait for one more checkpoint.
        while written_at() == before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros((random >> 33) % 30_000));
        killed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
    }
    assert!(killed > 0 && file.exists(), "killed {killed} times");
    let (code, report) = resumed(place, &path, &file, &["--checkpoint", file.to_str().unwrap()]);
    assert_eq!((code, counts(&report)), (Some(0), all(n)));
    let left: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[track_caller]
fn refused(model: &Path, file: &Path, arguments: &[&str], why: &str) {
    let output = explore(model, [&["--resume", file.to_str().unwrap(), "--json"], arguments].concat());
    let error = only_object(&output)["error"].as_str().unwrap_or_default().to_string();
    assert!(output.status.code() == Some(2) && error.contains(why), "{why}: {output:?}");
}

pub fn what_is_no_checkpoint_of_the_search_is_refused() {
    let (folder, path) = written(&counters(4));
    let file = folder.path().join("search.checkpoint");
    let name = file.to_str().unwrap();
    let (code, _) = json(&path, &["--max-states", "1000", "--checkpoint", name, "--invariant", "P_0.x < 13"]);
    assert_eq!(code, Some(3));
    let conditions = ["--invariant", "P_0.x < 13"];
    refused(&path, &file, &[], "other conditions");
    refused(&path, &file, &["--invariant", "P_0.x < 14"], "--invariant 'P_0.x < 13'; this search has --invariant 'P_0.x < 14'");
    refused(&path, &file, &["--goal", "P_0.x"], "this search has --goal P_0.x");
    refused(&path, &file, &[&conditions[..], &["--deadlock"]].concat(), "written without --deadlock");
    refused(&path, &file, &[&conditions[..], &["--table", "tree"]].concat(), "its table has the kind `bucket`");
    refused(
        &path,
        &file,
        &[&conditions[..], &["--local-ranks", "2"]].concat(),
        "'--local-ranks <RANKS>' cannot be used with '--resume <FILE>'",
    );
    let (_folder, other) = written(&counters(4).replace("x < 12; effect x = x + 1", "x < 11; effect x = x + 1"));
    refused(&other, &file, &["--invariant", "P_0.x < 13"], "the checkpoint belongs to another model");
    let bytes = std::fs::read(&file).unwrap();
    let part = |count: usize| bytes[..count].to_vec();
    let changed = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        bytes
    };
    let end = bytes.len();
    for (bytes, why) in [
        (Vec::new(), "fewer than 8 bytes"),
        (b"des (0, 1, 2)\n".to_vec(), "not a checkpoint"),
        (changed(8), "version 0"),
        (changed(11), "reads versions up to 1"),
        (changed(40), "damaged"),
        (part(30), "truncated"),
        (part(100), "truncated"),
        (part(3000), "it ends after"),
        (part(end - 1), "it ends after"),
        (part(end - 100_000), "it ends after"),
        (changed(end - 5), "damaged"),
        (changed(end / 2), "damaged"),
        ([&bytes[..], b"more"].concat(), "damaged"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        refused(&path, &file, &conditions, why);
    }
    refused(&path, folder.path(), &conditions, "a directory, not a file");
    refused(&path, &folder.path().join("none"), &conditions, "cannot be read");
}

pub fn checkpoints_overwrite_nothing_else() {
    let (folder, path) = written(&counters(4));
    let there = folder.path().join("there");
    std::fs::write(&there, "a text").unwrap();
    let [model, name] = [&path, &there].map(|path| path.to_str().unwrap());
    for (arguments, why) in [
        (&["--checkpoint", name][..], "that is not a checkpoint, and would be overwritten"),
        (&["--checkpoint", model], "is the model"),
        (&["--checkpoint", "/no/such/folder/file"], "cannot be written"),
        (&["--checkpoint-every", "5"], "--checkpoint <FILE>"),
        (&["--checkpoint", "x", "--ltl", "true"], "cannot be used with"),
        (&["--resume", "x", "--capacity", "100"], "cannot be used with"),
    ] {
        let output = explore(&path, [arguments, &["--json"]].concat());
        let said = only_object(&output)["error"].as_str().unwrap_or_default().to_string();
        assert!(output.status.code() == Some(2) && said.contains(why), "{arguments:?}: {output:?}");
    }
    assert_eq!(std::fs::read(&there).unwrap(), b"a text");
    // The model has a property of its own.
    let property = "process R { state q; init q; accept q; trans q -> q {}; } system async property R;";
    let (_folder, path) = written(&counters(4).replace("system async;", property));
    let output = explore(&path, ["--checkpoint", folder.path().join("new").to_str().unwrap(), "--json"]);
    assert!(
        only_object(&output)["error"].as_str().is_some_and(|error| error.contains("cannot be combined with a property")),
        "{output:?}"
    );
}

/// A checkpoint in its parts: header, words of states (of one block), the table.
struct Parts {
    header: Value,
    words: Vec<u32>,
    table: Vec<u8>,
}

fn crc(parts: &[&[u8]]) -> u32 {
    let mut crc = Crc::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.sum()
}

fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

impl Parts {
    fn of(bytes: &[u8]) -> Self {
        let words = 20 + number(bytes, 12);
        let header: Value = serde_json::from_slice(&bytes[20..words]).unwrap();
        let of = |name: &str| header[name].as_u64().unwrap();
        let count = ((of("waiting") + of("next") + of("offered")) * of("words")) as usize;
        assert!((1..1 << 18).contains(&count));
        let table = words + 4 * count;
        let values = bytes[words..table].chunks_exact(4).map(|word| number(word, 0) as u32).collect();
        Self { header, words: values, table: bytes[table + 4..].to_vec() }
    }

    /// The file, with correct checksums.
    fn signed(&self) -> Vec<u8> {
        let header = self.header.to_string();
        let sum = crc(&[header.as_bytes()]);
        let words: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let of_words = crc(&[&sum.to_le_bytes(), &0u64.to_le_bytes(), &words]);
        let numbers = [1, header.len() as u32, sum].map(u32::to_le_bytes).concat();
        [b"\x93WPX\r\n\x1a\n", &numbers[..], header.as_bytes(), &words, &of_words.to_le_bytes(), &self.table].concat()
    }

    /// Puts a node into the slot behind the last bucket of a tree table (src/docs/files.md has the format).
    fn with_a_last_node(mut self, node: u64) -> Self {
        let long = |at: usize| u64::from_le_bytes(self.table[at..at + 8].try_into().unwrap()) as usize;
        let (header, slots, nodes) = (number(&self.table, 12), long(16 + 184), long(16 + 192));
        assert!(slots < 1 << 20 && nodes < 1 << 20, "a part is one block");
        let begin = header + slots + 4;
        let end = begin + nodes;
        self.table[end - 8..end].copy_from_slice(&node.to_le_bytes());
        let of_header = self.table[header - 4..header].to_vec();
        let sum = crc(&[&of_header, &1u32.to_le_bytes(), &0u64.to_le_bytes(), &self.table[begin..end]]);
        self.table[end..end + 4].copy_from_slice(&sum.to_le_bytes());
        self
    }
}

impl Parts {
    /// Replaces the table by a bucket table that also contains the states of the lists.
    fn with_its_states(mut self) -> Self {
        let table = warpset::BucketTable::load(&warpset::Device::cpu(), &self.table[..]).unwrap();
        table.find_or_put_many(&self.words).unwrap().complete(&table).unwrap();
        self.table.clear();
        table.save(&mut self.table).unwrap();
        self.header["states"] = json!(table.len().unwrap());
        self
    }
}

/// Output of a search that is resumed from a file. It must end by itself, long before this time limit.
#[track_caller]
fn resumed_in_time(model: &Path, file: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(EXPLORE);
    command.arg(model).args(["--device", "cpu:2", "--json", "--resume"]).arg(file).args(arguments);
    let (mut child, begin) = (spawned(&mut command), Instant::now());
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(300) {
            child.kill().unwrap();
            panic!("it goes on: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// Files with correct checksums whose contents belong to no search.
pub fn checkpoints_that_mislead_are_refused() {
    // Two words a state of seven fields, so that trees have nodes; index expressions that cannot leave their array.
    let process = |n| {
        format!(
            "process P_{n} {{ byte x; state s, t, u; init s; trans s -> t {{ guard x < 12; effect x = x + 1; }}, \
             t -> s {{ effect a[x] = 100 + x; }}, t -> u {{ guard x == 12; }}; }}\n"
        )
    };
    let (folder, path) = written(&format!("byte a[13];\n{}system async;", (0..3).map(process).collect::<String>()));
    let file = folder.path().join("search.checkpoint");
    let name = file.to_str().unwrap();
    for table in TABLES {
        let small = ["--capacity", "1000", "--max-states", "300", "--table", table, "--checkpoint", name];
        assert_eq!(json(&path, &small).0, Some(3));
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(Parts::of(&bytes).signed(), bytes, "the test knows the format");
        let refused = |parts: Parts, why: &str| {
            std::fs::write(&file, parts.signed()).unwrap();
            let output = resumed_in_time(&path, &file, &["--timeout", "60"]);
            let error = only_object(&output)["error"].as_str().unwrap_or_default().to_string();
            assert!(output.status.code() == Some(2) && error.contains(why), "{table}, {why}: {output:?}");
        };
        if table.starts_with("tree") {
            for node in [1, 375 << 32 | 513, u64::MAX] {
                refused(Parts::of(&bytes).with_a_last_node(node), "behind the last bucket");
            }
        }
        // States for which the next-state functions are not defined.
        let width = Parts::of(&bytes).header["words"].as_u64().unwrap() as usize;
        for at in [0, width - 1, width] {
            for bits in [u32::MAX, 0xAAAA_AAAA] {
                let mut parts = Parts::of(&bytes);
                parts.words[at] = bits;
                if table == "bucket" {
                    parts = parts.with_its_states();
                }
                refused(parts, "a state that the model cannot reach");
            }
        }
        // Counts from which other values are computed.
        for (count, value, why) in [
            ("levels", json!(u64::MAX), "contradict each other"),
            ("levels", json!(0), "contradict each other"),
            ("widest_level", json!(1u64 << 40), "contradict each other"),
            ("transitions", json!(u64::MAX), "contradict each other"),
            ("deadlocks", json!(u64::MAX), "contradict each other"),
            ("overflows", json!(u64::MAX), "contradict each other"),
            ("states", json!(301 << 20), "states, but its header announces"),
            ("next", json!(u64::MAX), "contradict each other"),
            ("offered", json!(u64::MAX), "contradict each other"),
            ("transitions", json!(-1), "has no number `transitions`"),
            ("found", json!({ "state": vec![0; width], "level": u64::MAX }), "is not in its levels"),
            ("found", json!({ "state": vec![u32::MAX; width], "level": 0 }), "a state that the model cannot reach"),
        ] {
            let mut parts = Parts::of(&bytes);
            parts.header[count] = value;
            refused(parts, why);
        }
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(json(&path, &["--resume", name]).0, Some(0));
    }
}

/// Links with the names of files that are about to be written, or that killed processes left.
#[cfg(unix)]
pub fn links_beside_a_checkpoint_are_not_followed() {
    let (folder, path) = written(&counters(3));
    let (file, target) = (folder.path().join("search.checkpoint"), folder.path().join("target"));
    std::fs::write(&target, "precious").unwrap();
    // The process number is only known when the shell runs, which then replaces itself by the checker.
    let script = "for n in '' .0 .1 .2 .3 .4 .5 .6 .7 .8 .9; do ln -s target .search.checkpoint.$$$n.part || exit 9; done
        exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", EXPLORE]).arg(&path).args(["--device", "cpu:2", "--max-states", "100", "--json"]);
    let output = command.arg("--checkpoint").arg(&file).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    assert_eq!(json(&path, &["--resume", file.to_str().unwrap()]).0, Some(0));
}
