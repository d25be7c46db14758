//! The example `explore`, run as a stranger runs it: the executable that Cargo built beside this test.
#![cfg(feature = "cpu")]

/// The example's own unit tests run here too: Cargo runs none of examples.
#[allow(dead_code)]
#[path = "../examples/explore/main.rs"]
mod example;

use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// `target/PROFILE/examples/NAME`, from this test's `target/PROFILE/deps/explore-HASH`.
fn executable(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its executable");
    let profile = test.parent().and_then(Path::parent).expect("tests are in target/PROFILE/deps");
    let path = profile.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.is_file(), "{} is missing: build it with `cargo build --example {name}` (`cargo test` does)", path.display());
    path
}

const TABLES: [&str; 3] = ["bucket", "tree", "tree-compact"];

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/explore/models").join(name).with_extension("dve")
}

fn explore_on(device: &str, model: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    let mut command = Command::new(executable("explore"));
    command.arg(model).args(["--device", device]).args(arguments).output().expect("the example starts")
}

fn explore(model: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    explore_on("cpu:2", model, arguments)
}

/// The exit code and the object printed.
#[track_caller]
fn json(model: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = explore(model, arguments.iter().chain(&["--json"]));
    assert!(output.stderr.is_empty(), "{output:?}");
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

/// States, transitions, deadlocks, levels, the widest level.
fn counts(report: &Value) -> [u64; 5] {
    ["states", "transitions", "deadlocks", "levels", "widest_level"].map(|name| report[name].as_u64().expect(name))
}

/// Counted by programs that were written for this by hand, without the library and its interpreter.
const GOLDEN: [(&str, [u64; 4]); 5] = [
    ("mailbox", [413, 582, 1, 25]),
    ("peterson", [20, 34, 0, 7]),
    ("peterson_wrong", [32, 60, 0, 8]),
    ("readers_writers", [11, 22, 1, 5]),
    ("river", [10, 20, 0, 8]),
];

#[test]
fn own_models_have_their_counts() {
    for (name, expected) in GOLDEN {
        for table in TABLES {
            let (code, report) = json(&model(name), &["--table", table]);
            assert_eq!(counts(&report)[..4], expected, "{name} in a {table} table");
            assert_eq!((code, &report["complete"], &report["violation"]), (Some(0), &Value::Bool(true), &Value::Null), "{name}");
        }
    }
}

const EXCLUSION: &str = "P_0.critical + P_1.critical <= 1";

#[test]
fn violations_come_with_the_shortest_path() {
    for (name, arguments, length, found) in [
        ("peterson_wrong", &["--invariant", EXCLUSION][..], 6, "invariant violated: P_0.critical + P_1.critical <= 1"),
        ("readers_writers", &["--deadlock"], 4, "deadlock: no step is possible"),
        ("river", &["--goal", "farmer and wolf and goat and cabbage"], 7, "goal reached: farmer and wolf and goat and cabbage"),
        ("mailbox", &["--deadlock"], 24, "deadlock: no step is possible"),
        ("mailbox", &["--invariant", "Consumer.number / (2 - Consumer.number) < 9"], 8, "fault in a condition: division by zero"),
        ("river", &["--invariant", "false"], 0, "invariant violated: false"),
    ] {
        for table in TABLES {
            let file = TempDir::new().unwrap();
            let trace = file.path().join("trace.json");
            let trace_arguments = ["--table", table, "--trace", trace.to_str().unwrap()];
            let (code, report) = json(&model(name), &[arguments, &trace_arguments].concat());
            assert_eq!((code, report["violation"].as_str()), (Some(1), Some(found)), "{name} {arguments:?}");
            let path = &report["path"];
            assert_eq!(path["length"], length, "{name} {arguments:?}");
            assert_eq!(path["steps"].as_array().unwrap().len(), length);
            let written: Value = serde_json::from_str(&std::fs::read_to_string(&trace).unwrap()).unwrap();
            assert_eq!(written, *path);
        }
    }
}

#[test]
fn paths_are_printed_with_lines_and_changes() {
    let output = explore(&model("peterson_wrong"), ["--invariant", EXCLUSION]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "The shortest path has 6 steps",
        "0. initial state: P_0.idle, P_1.idle",
        "yielded -> waiting (line ",
        "turn: 0 -> 1",
        "There: invariant violated: P_0.critical + P_1.critical <= 1",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let text = String::from_utf8(explore(&model("readers_writers"), ["--deadlock"]).stdout).unwrap();
    assert!(
        text.contains("outside -> inside (line 23, sends on enter), with Lock: shared -> shared (line 13, receives on enter)")
            || text.contains(
                "outside -> inside (line 34, sends on enter), with Lock: shared -> shared (line 13, receives on enter)"
            ),
        "{text}"
    );
}

#[test]
fn what_holds_is_not_reported() {
    for (name, arguments) in [
        ("peterson", &["--deadlock", "--invariant", EXCLUSION, "--goal", "P_0.critical and P_1.critical"][..]),
        ("river", &["--deadlock", "--goal", "wolf == goat and goat != farmer"]),
        ("mailbox", &["--invariant", "P_0.next <= 4 and P_1->next <= 4"]),
    ] {
        let (code, report) = json(&model(name), arguments);
        assert_eq!((code, &report["path"]), (Some(0), &Value::Null), "{name}");
    }
}

/// A model in a file of its own.
fn written(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.dve");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

#[test]
fn assertions_are_checked() {
    let text = std::fs::read_to_string(model("mailbox")).unwrap();
    let (_folder, path) = written(&text.replace("sync box!{1, next};", "sync box!{0, next};"));
    let (code, report) = json(&path, &[]);
    // 0, 0 from both producers is in the box and taken: the second 0 is not what is expected.
    assert_eq!((code, report["violation"].as_str()), (Some(1), Some("assertion violated: taken: number == expected[from]")));
    assert_eq!(report["path"]["length"], 5);
    let (code, report) = json(&path, &["--keep-going"]);
    assert_eq!((code, &report["complete"]), (Some(1), &Value::Bool(true)));
}

#[test]
fn faults_of_a_model_come_with_a_path() {
    let text = "byte a[3], i;\nprocess P {\n state s;\n init s;\n trans s -> s {\n  effect a[i] = 1,\n   i = i + 1; };\n}\nsystem async;";
    let (_folder, path) = written(text);
    for arguments in [&[][..], &["--keep-going"]] {
        let (code, report) = json(&path, arguments);
        assert_eq!((code, report["path"]["length"].as_u64(), report["complete"].as_bool()), (Some(1), Some(3), Some(false)));
        let found = report["violation"].as_str().unwrap();
        assert!(found.ends_with(":6:10: the array a has 3 elements, but its index is 3"), "{found}");
    }
    // A fault ends it even if something else was found before.
    for condition in ["i < 1", "i < 3", "1 / (2 - i) < 9"] {
        let (code, report) = json(&path, &["--keep-going", "--invariant", condition]);
        assert_eq!((code, report["end"].as_str()), (Some(1), Some("found")), "{condition}");
    }
}

#[test]
fn overflows_are_reported() {
    let (_folder, path) = written("byte i; process P { state s; init s; trans s -> s { effect i = i + 1; }; } system async;");
    let (code, report) = json(&path, &[]);
    assert_eq!((code, counts(&report), report["overflows"].as_u64()), (Some(0), [256, 256, 0, 256, 1], Some(1)));
    let output = explore(&path, [""; 0]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 stores had to wrap their value"));
}

/// Three counters to 30: 29,791 states.
const COUNTERS: &str = "byte a, b, c; process P { state s; init s; trans
    s -> s { guard a < 30; effect a = a + 1; }, s -> s { guard b < 30; effect b = b + 1; }, s -> s { guard c < 30; effect c = c + 1; };
    } system async;";

#[test]
fn limits_stop_it() {
    let (_folder, path) = written(COUNTERS);
    let (code, report) = json(&path, &["--max-states", "10k"]);
    assert_eq!((code, &report["complete"], report["end"].as_str()), (Some(3), &Value::Bool(false), Some("max-states")));
    assert!((10_000..29_791).contains(&counts(&report)[0]));
    for table in TABLES {
        let (code, report) = json(&path, &["--memory", "100k", "--capacity", "1000", "--table", table]);
        assert_eq!((code, report["end"].as_str()), (Some(3), Some("memory")));
        assert!((1000..29_791).contains(&counts(&report)[0]), "{report}");
        let (code, report) = json(&path, &["--memory", "10M", "--capacity", "1000", "--table", table]);
        assert_eq!((code, counts(&report)), (Some(0), [29_791, 86_490, 1, 91, 721]));
    }
}

#[test]
fn errors_have_their_exit_code_and_place() {
    let (_folder, path) = written("byte x;\nprocess P { state s; init t; }\nsystem async;");
    let fails = |path: &Path, arguments: &[&str], parts: &[&str]| {
        let output = explore(path, arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{text}");
        parts.iter().for_each(|part| assert!(text.contains(part), "{part} is missing:\n{text}"));
    };
    fails(&path, &[], &["there is no state `t`", "model.dve:2:27", "process P { state s; init t; }"]);
    fails(
        &model("peterson"),
        &["--invariant", "P_0.crit == 1"],
        &["there is no state or variable of P_0 `crit`", "--invariant:1:5"],
    );
    fails(&model("missing"), &[], &["missing.dve cannot be read"]);
    fails(&model("peterson"), &["--capacity", "many"], &["it is not a number"]);
}

/// Clang takes 256 brackets in each other unless it is told to take more, and nothing else knows that option.
#[cfg(unix)]
#[test]
fn deep_brackets_are_asked_of_clang_only() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = written(COUNTERS);
    let [compiler, arguments] = ["compiler", "arguments"].map(|name| folder.path().join(name));
    for (version, takes_brackets) in [("Debian clang version 19.1.7", true), ("c++ (Debian 14.2.0) 14.2.0", false)] {
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{version}'; exit; fi\necho \"$@\" > '{}'\necho no >&2\nexit 1\n",
            arguments.display()
        );
        std::fs::write(&compiler, script).unwrap();
        std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = Command::new(executable("explore"))
            .arg(&path)
            .args(["--device", "cpu:2", "--engine", "compiled"])
            .env("CXX", &compiler)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains("did not compile") && message.contains("no\n"), "{output:?}");
        let arguments = std::fs::read_to_string(&arguments).unwrap();
        assert_eq!(arguments.contains("-fbracket-depth"), takes_brackets, "{arguments}");
    }
}

/// What `auto` begins with and what takes over when it is compiled count the same; whether there is a compiler, and whether it works, makes no
/// difference to that.
#[test]
fn compiled_code_may_come_later_or_never() {
    let (_folder, path) = written(&COUNTERS.replace("30", "70"));
    for compiler in [None, Some("false"), Some("/no/compiler")] {
        let mut command = Command::new(executable("explore"));
        command.arg(&path).args(["--device", "cpu:2", "--json"]);
        if let Some(compiler) = compiler {
            command.env("CXX", compiler);
        }
        let output = command.output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(counts(&report), [357_911, 1_058_610, 1, 211, 3781], "{report}");
        let engine = report["engine"].as_str().unwrap();
        assert!(engine.starts_with("interpreted") && (compiler.is_none() || !engine.contains("then compiled")), "{engine}");
    }
}

#[test]
fn files_may_have_a_byte_order_mark_and_other_bytes_in_comments() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.dve");
    let model = std::fs::read(model("peterson")).unwrap();
    std::fs::write(&path, [b"\xef\xbb\xbf// caf\xe9\n", &model[..]].concat()).unwrap();
    let (code, report) = json(&path, &[]);
    assert_eq!((code, counts(&report)[..4].to_vec()), (Some(0), vec![20, 34, 0, 7]));
}

#[test]
fn the_time_is_split() {
    let (_, report) = json(&model("peterson"), &["--engine", "compiled"]);
    for name in ["seconds", "seconds_parse", "seconds_table", "seconds_compile", "seconds_path"] {
        assert!(report[name].as_f64().is_some_and(|seconds| seconds >= 0.0), "{name}: {report}");
    }
    assert!(report["seconds_compile"].as_f64() > report["seconds_parse"].as_f64());
    let text = String::from_utf8(explore(&model("peterson"), [""; 0]).stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("time ")).unwrap();
    assert!([" parse ", " table ", " compile ", " explore "].iter().all(|part| line.contains(part)), "{line}");
}

#[test]
fn recorded_vectors_can_be_replayed() {
    for (name, [states, transitions, ..]) in GOLDEN {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("vectors.npz");
        let (_, report) = json(&model(name), &["--record", file.to_str().unwrap()]);
        let output =
            Command::new(executable("replay")).arg(&file).args(["--json", "--verify", "--device", "cpu:2"]).output().unwrap();
        let replayed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        // The initial state, and what every transition leads to.
        assert_eq!(replayed["vectors"].as_u64(), Some(transitions + 1));
        assert_eq!((replayed["distinct"].as_u64(), &replayed["width"]), (Some(states), &report["words"]));
    }
}

#[test]
fn help_teaches() {
    let output = Command::new(executable("explore")).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for part in ["--invariant 'P_0.CS + P_1.CS <= 1'", "Exits with 0", "--max-states", "--memory", "--record", "--table"] {
        assert!(text.contains(part), "{part} is missing");
    }
}

/// The columns of the list of models that are compared: states, transitions, deadlocks, levels, the widest level.
const COLUMNS: [usize; 5] = [1, 2, 3, 4, 6];

/// Models with more states take too long for a test.
const MOST_STATES: u64 = 300_000;

/// Models of the BEEM benchmark against what other tools count: `WARPSET_BEEM` names the folder with `open.csv` and `open/`.
#[test]
fn beem_models_have_their_counts() {
    let Some(folder) = std::env::var_os("WARPSET_BEEM").map(PathBuf::from) else {
        println!("skipped: WARPSET_BEEM does not name a folder of models");
        return;
    };
    let list = std::fs::read_to_string(folder.join("open.csv")).unwrap();
    let mut compared = 0;
    for row in list.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let expected = COLUMNS.map(|column| fields[column].parse::<u64>().ok());
        if expected[0].is_none_or(|states| states > MOST_STATES) {
            continue;
        }
        let path = folder.join("open").join(format!("{}.dve", fields[0]));
        for table in TABLES {
            let (code, report) = json(&path, &["--table", table]);
            assert_eq!((code, counts(&report).map(Some)), (Some(0), expected), "{} in a {table} table", fields[0]);
            compared += 1;
        }
    }
    assert!(compared > 0, "no model of {} is small enough", folder.display());
}
