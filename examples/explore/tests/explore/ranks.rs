//! On several ranks in one process, the model checker finds and counts the same as on one.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use warpset_testing::sizes::full;

const MODELS: [&str; 9] = [
    "mailbox",
    "peterson",
    "peterson_wrong",
    "philosophers",
    "readers_writers",
    "river",
    "vending.slco",
    "crossing.exp",
    "buffer.aut",
];

/// Values of the report that must not depend on the ranks.
const COUNTS: [&str; 6] = ["states", "transitions", "deadlocks", "levels", "widest_level", "overflows"];

fn model(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(name);
    if file.extension().is_some() { file } else { file.with_extension("dve") }
}

fn run(model: &Path, arguments: &[&str]) -> Output {
    let device: &[&str] = if arguments.contains(&"--device") { &[] } else { &["--device", "cpu:4"] };
    Command::new(crate::EXPLORE).arg(model).args(device).args(arguments).output().unwrap()
}

fn report(model: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = run(model, &[arguments, &["--json"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let report = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report)
}

fn same(one: &Value, other: &Value, about: &str) {
    for name in COUNTS {
        assert_eq!(one["counts"][name], other["counts"][name], "{name} of {about}");
    }
    assert_eq!(one["complete"], other["complete"], "{about}");
    // A kernel that stays on one GPU does not tell them.
    let has_levels = !one["levels"].is_null() && !other["levels"].is_null();
    assert!(!has_levels || one["levels"] == other["levels"], "{about}");
}

pub fn models_have_the_same_counts_on_any_number_of_ranks() {
    for name in MODELS {
        let (code, expected) = report(&model(name), &[]);
        for (at, ranks) in ["1", "2", "3", "5"].into_iter().enumerate() {
            // A plain run has two of the tables with each number of ranks.
            let tables = ["bucket", "tree", "tree-compact", "indexed", "compact"].into_iter().enumerate();
            for (_, table) in tables.filter(|(number, _)| full() || number % 2 == at % 2) {
                let (of_ranks, found) = report(&model(name), &["--local-ranks", ranks, "--table", table, "--capacity", "64"]);
                same(&found, &expected, &format!("{name} on {ranks} ranks, {table}"));
                assert_eq!(of_ranks, code);
                let engine = found["engine"].as_str().unwrap();
                assert!(engine.ends_with(&format!("on {ranks} ranks")), "{engine}");
                balanced(&found, ranks.parse().unwrap());
            }
        }
    }
}

/// The choice of the steps is a function of the state, so ranks take the same ones.
pub fn reduced_searches_are_the_same_on_any_number_of_ranks() {
    for (name, question, reduction) in [
        ("philosophers", &["--reduce", "deadlocks"][..], "deadlocks"),
        ("crossing.exp", &["--reduce", "deadlocks"], "deadlocks"),
        ("peterson", &["--reduce", "auto", "--deadlock"], "deadlocks"),
        ("crossing.exp", &["--reduce", "goal", "--goal", "train_1 == 2 and train_2 == 2"], "goal"),
    ] {
        let (code, expected) = report(&model(name), question);
        assert_eq!(expected["reduction"], reduction, "{name}: {expected}");
        for ranks in ["2", "3"] {
            for engine in ["auto", "interpreted", "compiled"] {
                let arguments = [question, &["--local-ranks", ranks, "--engine", engine, "--capacity", "64"]].concat();
                let (of_ranks, found) = report(&model(name), &arguments);
                assert_eq!((of_ranks, &found["reduction"]), (code, &expected["reduction"]), "{name}: {found}");
                assert_eq!(found["path"]["length"], expected["path"]["length"], "{name}: {found}");
                // A search that ends at a violation depends on the order of the states.
                if expected["complete"] == Value::Bool(true) {
                    same(&found, &expected, &format!("{name} on {ranks} ranks, {engine}"));
                }
            }
        }
    }
}

/// A table without space for one state grows, or the search reports that it ended for memory. It used to report a complete search
/// of no states.
pub fn the_initial_state_finds_room() {
    let values = (1..=30).map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        "int x, a[30] = {{{values}}}; process P {{ state s; init s; trans s -> s {{ effect x = (x + 1) % 5, a[0] = -a[0]; }}; }}"
    );
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("wide.dve");
    std::fs::write(&model, text + " system async;").unwrap();
    for table in [&["--table", "tree", "--nodes", "1"][..], &["--table", "tree-compact", "--nodes", "2"], &["--capacity", "1"]] {
        for ranks in [&[][..], &["--local-ranks", "1"], &["--local-ranks", "2"]] {
            let (code, found) = report(&model, &[table, ranks].concat());
            assert_eq!(
                (code, &found["counts"]["states"], &found["complete"]),
                (Some(0), &10.into(), &true.into()),
                "{table:?}, {ranks:?}"
            );
            let (code, found) = report(&model, &[table, ranks, &["--invariant", "x == 7"]].concat());
            assert_eq!((code, &found["path"]["length"]), (Some(1), &0.into()), "{table:?}, {ranks:?}");
            // A larger table is not allowed.
            let (code, found) = report(&model, &[table, ranks, &["--memory", "1"]].concat());
            assert_eq!((code, &found["end"], &found["complete"]), (Some(3), &"memory".into(), &false.into()), "{found}");
        }
    }
    // The first tables share the available memory.
    for (table, ranks) in [("tree", "4"), ("tree-compact", "3"), ("bucket", "5")] {
        let (code, found) = report(&model, &["--table", table, "--memory", "20M", "--local-ranks", ranks]);
        assert_eq!((code, &found["counts"]["states"]), (Some(0), &10.into()), "{found}");
        assert!(found["table"]["bytes"].as_u64().unwrap() <= 20_000_000, "{found}");
    }
    // Together they have the slots that one table would have.
    let (_, one) = report(&model, &[]);
    let (_, found) = report(&model, &["--local-ranks", "16"]);
    let slots = |report: &Value| report["table"]["slots"].as_u64().unwrap();
    assert!(slots(&found) < 2 * slots(&one), "{} and {}", slots(&found), slots(&one));
    let (code, found) = report(&model, &["--capacity", "0", "--local-ranks", "2"]);
    let error = found["error"].as_str().unwrap();
    assert!(code == Some(2) && error.contains("0 slots of a table are not supported"), "{error}");
}

/// Checks that the figures of the ranks are consistent.
fn balanced(report: &Value, count: usize) {
    let ranks = &report["ranks"];
    let states: Vec<u64> = ranks["states"].as_array().unwrap().iter().map(|states| states.as_u64().unwrap()).collect();
    assert_eq!((ranks["count"].as_u64().unwrap() as usize, states.len()), (count, count));
    assert_eq!(Value::from(states.iter().sum::<u64>()), report["counts"]["states"]);
    let (most, mean) = (*states.iter().max().unwrap() as f64, states.iter().sum::<u64>() as f64 / count as f64);
    let balance = ranks["balance"].as_f64().unwrap();
    assert!((balance - most / mean).abs() < 1e-9 * balance, "{ranks}");
    // Rank 0 offers the initial state. So nothing is sent only if rank 0 owns all states. That can happen with a small model,
    // because the ownership of states is random in each search.
    let is_sent = states[1..].iter().any(|states| *states > 0);
    assert_eq!(ranks["bytes_exchanged"].as_u64().unwrap() > 0, is_sent, "{ranks}");
    assert!(ranks["seconds_waiting"].as_f64().unwrap() >= 0.0);
}

pub fn limits_end_it_on_all_ranks_with_one_report() {
    for (arguments, code, end) in [
        (&["--max-states", "100"][..], 3, "max-states"),
        (&["--memory", "1000"], 3, "memory"),
        (&["--timeout", "0.000001"], 3, "timeout"),
    ] {
        let (found_code, found) = report(&model("mailbox"), &[arguments, &["--local-ranks", "3", "--capacity", "64"]].concat());
        // A time limit may be reached before the exploration begins; then there is no report.
        if found["end"].is_null() {
            assert_eq!((found_code, end), (Some(code), "timeout"), "{found}");
            continue;
        }
        assert_eq!((found_code, &found["complete"]), (Some(code), &Value::from(false)), "{found}");
        assert_eq!(found["end"], end);
    }
}

/// Ctrl-C in the middle of a search gives one report, of the states found so far on all ranks.
#[cfg(unix)]
pub fn an_interruption_ends_it_with_one_report() {
    let process =
        |n| format!("process P_{n} {{ byte x; state s; init s; trans s -> s {{ guard x < 9; effect x = x + 1; }}; }}\n");
    let text = (0..8).map(process).collect::<String>() + "system async;"; // 10^8 states
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("long.dve");
    std::fs::write(&model, text).unwrap();
    let mut command = Command::new(crate::EXPLORE);
    command.arg(&model).args([
        "--device",
        "cpu:2",
        "--local-ranks",
        "3",
        "--engine",
        "interpreted",
        "--progress",
        "always",
        "--json",
    ]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Progress lines show that the search has begun.
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().starts_with("level ")), "it has ended before it was interrupted");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    std::thread::spawn(move || lines.for_each(drop));
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["end"], &report["complete"]), (&Value::from("interrupted"), &Value::from(false)));
    balanced(&report, 3);
}

pub fn the_text_tells_how_states_are_spread() {
    let output = run(&model("peterson"), &["--local-ranks", "2"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("\nstates  ").count(), 1, "{text}");
    let row = text.lines().find(|line| line.starts_with("ranks ")).unwrap_or_else(|| panic!("{text}"));
    for part in ["2, with ", " each (the fullest has ", " times the mean); ", " exchanged; ", "each waited "] {
        assert!(row.contains(part), "{row}");
    }
    assert!(!run(&model("peterson"), &[]).stdout.windows(6).any(|part| part == b"\nranks"));
}

/// Several ranks on the first GPU, and one rank on each.
pub fn gpus_count_what_a_cpu_does() {
    let on_gpus = |model: &Path, arguments: &[&str]| {
        let output = Command::new(crate::EXPLORE).arg(model).args(arguments).arg("--json").output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), report)
    };
    let (code, absent) = on_gpus(&model("peterson"), &["--device", "gpu:0,99"]);
    assert_eq!(code, Some(2));
    assert!(absent["error"].as_str().unwrap().starts_with("there is no GPU 99"), "{absent}");
    for (number, name) in MODELS.into_iter().enumerate() {
        let (expected_code, expected) = report(&model(name), &["--deadlock", "--keep-going"]);
        // Each exploration compiles a kernel, which takes a second.
        let tables: &[&str] = if number < 2 { &["bucket", "tree", "tree-compact"] } else { &["bucket"] };
        for table in tables {
            for device in [
                &["--device", "gpu:all"][..],
                &["--device", "gpu", "--local-ranks", "2"],
                &["--device", "gpu", "--local-ranks", "3"],
            ] {
                let arguments = [device, &["--table", table, "--capacity", "64", "--deadlock", "--keep-going"]].concat();
                let (code, found) = on_gpus(&model(name), &arguments);
                same(&found, &expected, &format!("{name}, {arguments:?}"));
                assert_eq!(
                    (code, &found["path"]["length"]),
                    (expected_code, &expected["path"]["length"]),
                    "{name}, {arguments:?}"
                );
                let engine = found["engine"].as_str().unwrap();
                assert!(engine.starts_with("compiled for the GPU"), "{engine}");
            }
        }
    }
}

/// Two processes, each on a GPU, started by hand and as a launcher starts them. The first prints the same as a single process.
#[cfg(feature = "nccl")]
pub fn processes_print_once_what_one_prints() {
    let explore = || Command::new(crate::EXPLORE);
    let checks = ["--invariant", "P_0.critical + P_1.critical <= 1"];
    for (name, arguments, by_hand) in
        [("peterson", &[][..], true), ("mailbox", &["--deadlock"], false), ("peterson_wrong", &checks, false)]
    {
        let folder = tempfile::tempdir().unwrap();
        let place = format!("file:{}", folder.path().join("meet").display());
        let start = |rank: &str| {
            let mut command = explore();
            command.arg(model(name)).args(["--json", "--rendezvous", &place]).args(arguments);
            match by_hand {
                true => command.args(["--rank", rank, "--ranks", "2"]),
                false => command
                    .env("OMPI_COMM_WORLD_RANK", rank)
                    .env("OMPI_COMM_WORLD_SIZE", "2")
                    .env("OMPI_COMM_WORLD_LOCAL_RANK", rank),
            };
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let [first, second] = ["0", "1"].map(start).map(|process| process.wait_with_output().unwrap());
        let (code, expected) = report(&model(name), arguments);
        assert_eq!((first.status.code(), second.status.code()), (code, code), "{first:?} {second:?}");
        assert!(second.stdout.is_empty() && second.stderr.is_empty(), "{second:?}");
        let found: Value = serde_json::from_slice(&first.stdout).unwrap();
        assert_eq!(found["path"]["length"], expected["path"]["length"]);
        // At the time of a violation, ranks may have expanded other states than a CPU.
        if code == Some(0) {
            same(&found, &expected, name);
        }
        balanced(&found, 2);
    }
}

pub fn violations_come_with_the_shortest_path() {
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

pub fn what_ranks_do_not_do_is_refused() {
    for (arguments, part) in [
        (&["--local-ranks", "0"][..], "is not in 1 to 256"),
        (&["--local-ranks", "2", "--record", "x.npz"], "'--record <FILE>'"),
        (
            &["--local-ranks", "2", "--engine", "gpu"],
            if cfg!(feature = "cuda") { "needs a table on a GPU" } else { "`cuda` is off" },
        ),
        (&["--local-ranks", "2", "--gpu-time"], "'--gpu-time'"),
        (&["--device", "gpu:0,0"], "GPU 0 is named twice"),
        (&["--rank", "2", "--ranks", "2", "--rendezvous", "file:x"], "rank 2 does not exist"),
        (&["--rank", "1"], "--rank 1 needs the number of ranks"),
        (&["--rank", "0", "--ranks", "2"], "has no meeting place"),
        (&["--rendezvous", "file:x"], "--rendezvous needs several ranks"),
        (
            &["--rank", "0", "--ranks", "2", "--rendezvous", "file:x"],
            if cfg!(feature = "nccl") { "--device cpu is not possible" } else { "needs the feature `nccl`" },
        ),
        (&["--local-ranks", "2", "--export", "x.aut"], "'--export <FILE>'"),
        (&["--local-ranks", "2", "--ltl", "F farmer"], "'--ltl <FORMULA>': it needs a search in one table"),
        (&["--local-ranks", "2", "--ef", "farmer"], "'--ef <EXPR>': it needs a search in one table"),
    ] {
        let output = run(&model("river"), arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    // A search that is reduced: no step can be left out in the river.
    let output = run(&model("philosophers"), &["--local-ranks", "2", "--engine", "gpu", "--reduce", "deadlocks"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && text.contains("--reduce on ranks needs --engine interpreted"), "{text}");
}

/// Models of the BEEM benchmark: `WARPSET_BEEM` names the folder with `open.csv` and `open/`.
pub fn beem_models_have_their_counts(folder: &Path) {
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
