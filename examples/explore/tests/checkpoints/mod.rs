//! Searches as files: what goes on finds what one go finds, whenever the one before ended.

use super::*;
use std::time::Duration;

/// So many counters to 12, each in a process: 13^n states.
fn counters(n: u32) -> String {
    let process =
        |n| format!("process P_{n} {{ byte x; state s; init s; trans s -> s {{ guard x < 12; effect x = x + 1; }}; }}\n");
    (0..n).map(process).collect::<String>() + "system async;"
}

/// What all of it comes to. A level has as many states as there are ways to sum up to its number.
fn all(n: u32) -> [u64; 5] {
    let mut levels = vec![1u64];
    for _ in 0..n {
        let with_one_more = |sum: usize| (0..13.min(sum + 1)).filter_map(|x| levels.get(sum - x)).sum();
        levels = (0..levels.len() + 12).map(with_one_more).collect();
    }
    let (states, count) = (13u64.pow(n), u64::from(n));
    [states, count * 12 * states / 13, 1, levels.len() as u64, *levels.iter().max().unwrap()]
}

/// The exit code and the report of a search that goes on.
#[track_caller]
fn resumed(place: Place, model: &Path, file: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    // On a GPU no capacity is said either: the table is that of the file.
    json_on(place.device, model, &[&["--table", place.table, "--resume", file.to_str().unwrap()], arguments].concat())
}

pub fn searches_go_on_with_the_same_counts_and_paths(place: Place) {
    let (folder, path) = written(&counters(4));
    let file = folder.path().join("search.checkpoint");
    let name = file.to_str().unwrap();
    let goal = "P_0.x == 5 and P_1.x == 3 and P_2.x == 1 and P_3.x == 7";
    let of_devices = if place.is_gpu() { &["gpu", "cpu:2"][..] } else { &["cpu:2"] };
    for most in ["1", "2", "5", "30", "300", "10k"] {
        let (code, before) = place.json(&path, &["--max-states", most, "--checkpoint", name]);
        assert_eq!(
            (code, &before["checkpoint"]["states"], &before["resumed_states"]),
            (Some(3), &before["states"], &Value::Null)
        );
        for device in of_devices {
            let (code, report) = resumed(Place { device, ..place }, &path, &file, &[]);
            assert_eq!((code, counts(&report)), (Some(0), all(4)), "{most} {device}");
            assert!(report["resumed_states"].as_u64() >= before["states"].as_u64(), "{report}");
        }
    }
    // From one to the next one, in the same file; and by another engine, with other numbers of threads.
    place.json(&path, &["--max-states", "1", "--checkpoint", name]);
    for (turn, most) in ["4", "20", "200", "2k", "20k"].iter().enumerate() {
        let engines = if place.is_gpu() { ["gpu", "interpreted"] } else { ["interpreted", "compiled"] };
        let device = if place.is_gpu() { "gpu" } else { ["cpu:1", "cpu:3"][turn % 2] };
        let arguments = ["--max-states", most, "--checkpoint", name, "--engine", engines[turn % 2]];
        let (code, report) = resumed(Place { device, ..place }, &path, &file, &arguments);
        assert_eq!(code, Some(3), "{report}");
    }
    let (code, report) = resumed(place, &path, &file, &["--checkpoint", name]);
    assert_eq!((code, counts(&report), &report["checkpoint"]["states"]), (Some(0), all(4), &Value::Null));
    // What is looked for must be said again.
    let (code, _) = place.json(&path, &["--max-states", "3k", "--checkpoint", name, "--goal", goal]);
    assert_eq!(code, Some(3));
    let (code, report) = resumed(place, &path, &file, &["--goal", goal]);
    assert_eq!((code, &report["no_path"], report["path"]["length"].as_u64()), (Some(1), &Value::Null, Some(16)), "{report}");
}

/// Whenever it is killed, also while it writes.
pub fn killed_searches_go_on(place: Place) {
    if !cfg!(unix) {
        return;
    }
    // A launch on a GPU ends as its table grows, or after 0.2 s.
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
        // After one more checkpoint.
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
    refused(
        &path,
        &file,
        &["--invariant", "P_0.x < 14"],
        "written: --invariant 'P_0.x < 13'; now it is --invariant 'P_0.x < 14'",
    );
    refused(&path, &file, &["--goal", "P_0.x"], "now it is --goal P_0.x");
    refused(&path, &file, &[&conditions[..], &["--deadlock"]].concat(), "without --deadlock");
    refused(&path, &file, &[&conditions[..], &["--table", "tree"]].concat(), "its table is of the kind `bucket`");
    refused(&path, &file, &[&conditions[..], &["--local-ranks", "2"]].concat(), "ranks keep no checkpoints");
    let (_folder, other) = written(&counters(4).replace("x < 12; effect x = x + 1", "x < 11; effect x = x + 1"));
    refused(&other, &file, &["--invariant", "P_0.x < 13"], "it is of another model");
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
        (b"des (0, 1, 2)\n".to_vec(), "it is no checkpoint"),
        (changed(8), "version 0"),
        (changed(11), "reads versions up to 1"),
        (changed(40), "damaged"),
        (part(30), "cut off"),
        (part(100), "cut off"),
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
    refused(&path, folder.path(), &conditions, "it is a directory");
    refused(&path, &folder.path().join("none"), &conditions, "cannot be read");
}

pub fn checkpoints_overwrite_nothing_else() {
    let (folder, path) = written(&counters(4));
    let there = folder.path().join("there");
    std::fs::write(&there, "a text").unwrap();
    let [model, name] = [&path, &there].map(|path| path.to_str().unwrap());
    for (arguments, why) in [
        (&["--checkpoint", name][..], "is no checkpoint, which would be lost"),
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
    // A property of the model's own.
    let property = "process R { state q; init q; accept q; trans q -> q {}; } system async property R;";
    let (_folder, path) = written(&counters(4).replace("system async;", property));
    let output = explore(&path, ["--checkpoint", folder.path().join("new").to_str().unwrap(), "--json"]);
    assert!(only_object(&output)["error"].as_str().is_some_and(|error| error.contains("searches of states")), "{output:?}");
}
