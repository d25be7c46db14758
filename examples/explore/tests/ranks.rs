//! The model checker on several ranks in one process finds and counts what it does on one.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MODELS: [&str; 8] =
    ["mailbox", "peterson", "peterson_wrong", "readers_writers", "river", "vending.slco", "crossing.exp", "buffer.aut"];

/// What must not differ.
const COUNTS: [&str; 7] = ["states", "transitions", "deadlocks", "levels", "widest_level", "overflows", "complete"];

fn model(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(name);
    if file.extension().is_some() { file } else { file.with_extension("dve") }
}

fn run(model: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_explore")).arg(model).args(["--device", "cpu:4"]).args(arguments).output().unwrap()
}

fn report(model: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = run(model, &[arguments, &["--json"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let report = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report)
}

fn same(one: &Value, other: &Value, about: &str) {
    for name in COUNTS {
        assert_eq!(one[name], other[name], "{name} of {about}");
    }
}

#[test]
fn models_have_the_same_counts_on_any_number_of_ranks() {
    for name in MODELS {
        let (code, expected) = report(&model(name), &[]);
        for ranks in ["1", "2", "3", "5"] {
            for table in ["bucket", "tree", "tree-compact"] {
                let (of_ranks, found) = report(&model(name), &["--local-ranks", ranks, "--table", table, "--capacity", "64"]);
                same(&found, &expected, &format!("{name} on {ranks} ranks, {table}"));
                assert_eq!(of_ranks, code);
                let engine = found["engine"].as_str().unwrap();
                assert!(engine.contains(&format!("on {ranks} ranks, balance")), "{engine}");
            }
        }
    }
}

#[test]
fn violations_come_with_the_shortest_path() {
    for (name, arguments, length) in [
        ("peterson_wrong", &["--invariant", "P_0.critical + P_1.critical <= 1"][..], 6),
        ("readers_writers", &["--deadlock"], 4),
        ("river", &["--goal", "farmer and wolf and goat and cabbage"], 7),
        ("mailbox", &["--deadlock"], 24),
        ("mailbox", &["--invariant", "Consumer.number / (2 - Consumer.number) < 9"], 8),
        ("river", &["--invariant", "false"], 0),
    ] {
        let (_, expected) = report(&model(name), arguments);
        for ranks in ["2", "3"] {
            let (code, found) = report(&model(name), &[arguments, &["--local-ranks", ranks]].concat());
            assert_eq!((code, &found["path"]["length"]), (Some(1), &Value::from(length)), "{name} on {ranks} ranks");
            assert_eq!(found["violation"], expected["violation"]);
        }
    }
}

#[test]
fn what_ranks_do_not_do_is_refused() {
    for (arguments, part) in [
        (&["--local-ranks", "0"][..], "1..=256"),
        (&["--local-ranks", "2", "--record", "x.npz"], "ranks record nothing"),
        (&["--local-ranks", "2", "--engine", "gpu"], "has one rank"),
        (&["--local-ranks", "2", "--cycles"], "--cycles is for --engine gpu"),
        (&["--local-ranks", "2", "--export", "x.aut"], "ranks number no states"),
        (&["--local-ranks", "2", "--ltl", "F farmer"], "answered from one table"),
        (&["--local-ranks", "2", "--ef", "farmer"], "answered from one table"),
    ] {
        let output = run(&model("river"), arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

/// Models of the BEEM benchmark: `WARPSET_BEEM` names the folder with `open.csv` and `open/`.
#[test]
fn beem_models_have_their_counts() {
    let Some(folder) = std::env::var_os("WARPSET_BEEM").map(PathBuf::from) else {
        println!("skipped: WARPSET_BEEM does not name a folder of models");
        return;
    };
    const MOST_STATES: u64 = 500_000;
    let list = std::fs::read_to_string(folder.join("open.csv")).unwrap();
    let mut compared = 0;
    for row in list.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let path = folder.join("open").join(format!("{}.dve", fields[0]));
        let (_, expected) = report(&path, &["--max-states", &MOST_STATES.to_string()]);
        if expected["complete"] != Value::Bool(true) {
            continue;
        }
        for ranks in ["2", "3"] {
            same(&report(&path, &["--local-ranks", ranks]).1, &expected, &format!("{} on {ranks} ranks", fields[0]));
            compared += 1;
        }
    }
    assert!(compared > 0, "no model of {} is small enough", folder.display());
}
