//! Reduced searches: their answers are those of whole searches, at the same depths, and what they cannot keep is refused.
//!
//! Keeps these promises of `examples/explore/docs/reductions.md`:
//!
//! - A reduced search finds every deadlock, and each goal at its depth. It says that it is reduced, and is refused for other
//!   questions.
//! - Reduced searches on a GPU have the counts and depths of threads, in every table and while it grows.
//! - A GPU without memory for the tables of a reduction leaves the choice to threads, and the report tells it.

use crate::languages::network_of;
use crate::{TableOnDevice, explore, file, json, json_on, model, written};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use warpset_testing::sizes::full;

/// Depth of what was found; `None` if nothing was.
fn depth(report: &Value) -> Option<u64> {
    report["path"]["length"].as_u64()
}

/// Compares a reduced search with the whole one. Also checks that reduced searches count the same with each engine, table and
/// number of threads. Unless the run is a full one, each table is searched with only one number of threads, and compiled code is
/// tested with one table, and only if `compiles` is set. Returns the number of states of the whole search and of the reduced one.
fn compare(model: &Path, question: &[&str], compiles: bool) -> [u64; 2] {
    let (code, whole) = json(model, question);
    let mut left = None;
    let mut search = |engine: &str, table: &str, device: &str| {
        let arguments = [question, &["--reduce", "auto", "--table", table, "--engine", engine]].concat();
        let (reduced_code, report) = json_on(device, model, &arguments);
        assert_eq!((reduced_code, depth(&report)), (code, depth(&whole)), "{question:?}: {report}");
        // A search that ends at a violation depends on the order of threads.
        if report["complete"] == Value::Bool(true) {
            let counts = ["states", "transitions", "deadlocks", "levels"].map(|name| report["counts"][name].as_u64().unwrap());
            assert_eq!(*left.get_or_insert(counts), counts, "{question:?} with {engine}, {table}, {device}");
        }
        report["counts"]["states"].as_u64().unwrap()
    };
    let mut states = 0;
    for (table, compiled_on) in [("bucket", "cpu:1"), ("tree", "cpu:2"), ("tree-compact", "cpu:1"), ("indexed", "cpu:2")] {
        for device in ["cpu:1", "cpu:2"].into_iter().filter(|device| full() || *device != compiled_on) {
            states = search("interpreted", table, device);
        }
        if full() || compiles && table == "tree" {
            search("compiled", table, compiled_on);
        }
    }
    [whole["counts"]["states"].as_u64().unwrap(), states]
}

pub fn reduced_searches_find_the_same() {
    for (name, question, compiles) in [
        ("philosophers", &["--deadlock"][..], true),
        ("peterson", &["--deadlock"], false),
        ("peterson_wrong", &["--invariant", "P_0.critical + P_1.critical <= 1"], false),
        ("peterson_wrong", &["--invariant", "P_0.critical + P_1.critical <= 1", "--deadlock"], true),
        ("mailbox", &["--deadlock"], false),
        ("readers_writers", &["--deadlock"], false),
    ] {
        compare(&model(name), question, compiles);
    }
    for (question, compiles) in
        [(&["--deadlock"][..], false), (&["--goal", "train_1 == 2 and gate == 1"], true), (&["--goal", "enabled(i)"], false)]
    {
        compare(&file("crossing.exp"), question, compiles);
    }
    compare(&file("vending.slco"), &["--deadlock"], true);
}

/// Philosophers who take one fork after the other, as a net: a cycle of them ends in a deadlock.
fn philosophers(count: usize) -> String {
    let (mut places, mut transitions, mut arcs) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..count {
        let next = (at + 1) % count;
        places.extend([
            (format!("thinks{at}"), 1),
            (format!("waits{at}"), 0),
            (format!("eats{at}"), 0),
            (format!("fork{at}"), 1),
        ]);
        let steps = [
            ("left", vec![format!("thinks{at}"), format!("fork{at}")], vec![format!("waits{at}")]),
            ("right", vec![format!("waits{at}"), format!("fork{next}")], vec![format!("eats{at}")]),
            ("back", vec![format!("eats{at}")], vec![format!("thinks{at}"), format!("fork{at}"), format!("fork{next}")]),
        ];
        for (name, takes, puts) in steps {
            let id = format!("{name}{at}");
            arcs.extend(takes.into_iter().map(|place| (place, id.clone(), 1)));
            arcs.extend(puts.into_iter().map(|place| (id.clone(), place, 1)));
            transitions.push(id);
        }
    }
    let places: Vec<(&str, u32)> = places.iter().map(|(id, tokens)| (id.as_str(), *tokens)).collect();
    let transitions: Vec<&str> = transitions.iter().map(String::as_str).collect();
    let arcs: Vec<_> =
        arcs.iter().map(|(from, to, weight): &(String, String, u32)| (from.as_str(), to.as_str(), *weight)).collect();
    crate::nets::net(&places, &transitions, &arcs)
}

/// Compares a reduced search on a GPU with one by interpreting threads, and its path with their path.
fn compare_with_threads(place: TableOnDevice, model: &Path, question: &[&str]) {
    let reduced = [question, &["--reduce", "auto"]].concat();
    let (code, report) = place.json(model, &reduced);
    let (code_of_threads, of_threads) = json(model, &[&reduced[..], &["--engine", "interpreted"]].concat());
    let about = format!("{question:?} in {}: {report}", place.table);
    assert!(report["engine"].as_str().is_some_and(|engine| engine.contains("for the GPU")), "{about}");
    assert_eq!((code, depth(&report)), (code_of_threads, depth(&of_threads)), "{about}");
    assert_eq!((&report["complete"], &report["reduction"]), (&of_threads["complete"], &of_threads["reduction"]), "{about}");
    // A search that ends at a violation depends on the order of threads.
    if report["complete"] == Value::Bool(true) {
        assert_eq!(report["counts"], of_threads["counts"], "{about}");
    }
}

pub fn reduced_searches_on_a_gpu_are_those_of_threads(place: TableOnDevice) {
    let invariant = ["--invariant", "P_0.critical + P_1.critical <= 1", "--deadlock"];
    compare_with_threads(place, &model("peterson_wrong"), &invariant);
    compare_with_threads(place, &model("peterson"), &["--deadlock"]);
    compare_with_threads(place, &model("philosophers"), &["--deadlock", "--keep-going"]);
    compare_with_threads(place, &file("vending.slco"), &["--deadlock"]);
    compare_with_threads(place, &file("crossing.exp"), &["--goal", "train_1 == 2 and gate == 1"]);
    let (_folder, path) = crate::written_as("net.pnml", &philosophers(5));
    compare_with_threads(place, &path, &["--deadlock", "--keep-going"]);
    compare_with_threads(place, &path, &["--goal", "tokens(eats0, eats1) == 2"]);
}

/// More actions than a warp has bits, and a goal: each lane has two words of a set, and memory of the device holds the marks. The
/// net consists of cycles, some with a token.
pub fn large_nets_are_reduced_on_a_gpu(place: TableOnDevice) {
    let numbers = 0..520;
    let names = |letter: &str| numbers.clone().map(|at| format!("{letter}{at}")).collect::<Vec<_>>();
    let [a, b, t, u] = ["a", "b", "t", "u"].map(names);
    let arcs = numbers.clone().flat_map(|at| {
        let (a, b, t, u) = (a[at].as_str(), b[at].as_str(), t[at].as_str(), u[at].as_str());
        [(a, t, 1), (t, b, 1), (b, u, 1), (u, a, 1)]
    });
    let places = numbers.clone().flat_map(|at| [(a[at].as_str(), u32::from(at % 100 == 0)), (b[at].as_str(), 0)]);
    let transitions = t.iter().chain(&u).map(String::as_str);
    let net = crate::nets::net(&places.collect::<Vec<_>>(), &transitions.collect::<Vec<_>>(), &arcs.collect::<Vec<_>>());
    let (_folder, path) = crate::written_as("net.pnml", &net);
    compare_with_threads(place, &path, &["--goal", "tokens(b0) == 1 and tokens(b100) == 1 and tokens(b500) == 1"]);
}

/// Transitions that all want the token of one place have a table of conflicts that exceeds the memory of a simulated device. Then
/// CPU threads choose the steps, and the report has the reason. A real device has more memory.
pub fn full_memory_of_a_gpu_leaves_the_choice_to_threads(place: TableOnDevice) {
    let names: Vec<String> = (0..1500).map(|at| format!("t{at}")).collect();
    let transitions: Vec<&str> = names.iter().map(String::as_str).collect();
    let arcs: Vec<_> = transitions.iter().flat_map(|id| [("shared", *id, 1), (*id, "done", 1)]).collect();
    let net = crate::nets::net(
        &[("shared", 1), ("done", 0), ("x", 3), ("y", 0)],
        &[&transitions[..], &["move"]].concat(),
        &[&arcs[..], &[("x", "move", 1), ("move", "y", 1)]].concat(),
    );
    let (_folder, path) = crate::written_as("net.pnml", &net);
    let search = |memory: &str, more: &[&str]| {
        let mut command = std::process::Command::new(crate::EXPLORE);
        command.arg(&path).args(["--device", place.device, "--table", place.table, "--capacity", "64", "--json"]).args(more);
        crate::only_object(&command.env("WARPSET_SIMULATED_MEMORY", memory).output().expect("the checker starts"))
    };
    let engine = |report: &Value| report["engine"].as_str().unwrap_or("").to_owned();
    let on_gpu = "compiled for the GPU";
    let question = ["--reduce", "goal", "--goal", "tokens(done) == 1 and tokens(y) == 3"];
    // Without the tables the memory suffices, and more memory suffices for them.
    let (whole, large) = (search(SMALL_MEMORY, &question[2..]), search("64M", &question));
    assert_eq!([&whole, &large].map(engine), [on_gpu, on_gpu], "{whole} {large}");
    let small = search(SMALL_MEMORY, &question);
    let is_simulated = crate::is_simulated();
    let reason = ", since the GPU has no memory for the reduction's tables";
    assert_eq!(engine(&small).ends_with(reason), is_simulated, "{small}");
    assert_eq!([&whole, &large, &small].map(depth), [Some(4); 3], "{whole} {large} {small}");
    assert_eq!((&small["reduction"], &small["complete"]), (&"goal".into(), &large["complete"]));
}

/// Memory of a simulated device with room for a small table, but not for tables of a reduction.
const SMALL_MEMORY: &str = "1M";

pub fn reduced_nets_find_the_same() {
    let (_folder, path) = crate::written_as("net.pnml", &philosophers(5));
    for (question, compiles) in [
        (&["--deadlock"][..], true),
        (&["--goal", "tokens(eats0) == 1 and tokens(waits3) == 1"], false),
        (&["--goal", "tokens(eats0, eats1) == 2"], false),
        (&["--invariant", "fireable(left0, left1, left2, left3, left4)"], false),
        (&["--invariant", "tokens(eats0) + tokens(eats2) < 2", "--deadlock"], true),
    ] {
        let [whole, reduced] = compare(&path, question, compiles);
        assert!(reduced <= whole, "{question:?}: {reduced} of {whole}");
    }
    let (code, report) = json(&path, &["--reduce", "deadlocks"]);
    let (_, whole) = json(&path, &[]);
    assert_eq!(
        (code, &report["counts"]["deadlocks"], &report["reduction"]),
        (Some(0), &whole["counts"]["deadlocks"], &"deadlocks".into())
    );
    assert!(report["counts"]["states"].as_u64() < whole["counts"]["states"].as_u64(), "{report}");
    // The tokens and firings of a reduced search are not the net's.
    assert_eq!((&report["max_tokens"], &report["firings"]), (&Value::Null, &Value::Null), "{report}");
}

/// One order of the steps of independent counters is enough.
pub fn reduced_searches_say_so() {
    let process = |name: &str| {
        format!("process {name} {{ byte n; state s; init s; trans s -> s {{ guard n < 9; effect n = n + 1; }}; }}\n")
    };
    let text = format!("{}{}{}system async;", process("A"), process("B"), process("C"));
    let (_folder, path) = written(&text);
    assert_eq!(compare(&path, &["--goal", "A.n == 7 and C.n == 9"], true), [780, 19]);
    let (code, report) = json(&path, &["--reduce", "deadlocks"]);
    assert_eq!((code, &report["counts"]["states"], &report["counts"]["deadlocks"]), (Some(0), &28.into(), &1.into()), "{report}");
    assert_eq!(report["reduction"], "deadlocks");
    let output = explore(&path, ["--reduce", "deadlocks", "--deadlock"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("28 (reduced: deadlocks)"), "{output:?}");
    // Where nothing can be left out, the counts are the model's.
    let (_folder, path) =
        written("byte n; process P { state s; init s; trans s -> s { guard n < 9; effect n = n + 1; }; } system async;");
    let (_, report) = json(&path, &["--reduce", "deadlocks"]);
    assert_eq!((&report["counts"]["states"], &report["reduction"]), (&10.into(), &Value::Null), "{report}");
    let output = explore(&path, ["--reduce", "deadlocks"]);
    let why = "10 (not reduced: fewer than 1 of 10 steps could be left out in a trial of at most 2000 states)";
    assert!(String::from_utf8_lossy(&output.stdout).contains(why), "{output:?}");
    // Two counters without an end. In the first model the second counter stops after one step, so few steps of a long walk can be
    // left out.
    for (ends, states, reduction) in [("t", 40, Value::Null), ("s", 20, "deadlocks".into())] {
        let counter = |name: &str, to: &str| {
            format!("process {name} {{ byte n; state s, t; init s; trans s -> {to} {{ effect n = (n + 1) % 20; }}; }}\n")
        };
        let (_folder, path) = written(&format!("{}{}system async;", counter("A", "s"), counter("B", ends)));
        let (_, report) = json(&path, &["--reduce", "deadlocks"]);
        assert_eq!((&report["counts"]["states"], &report["reduction"]), (&states.into(), &reduction), "{report}");
    }
}

/// Counters that are independent in part: one waits for another.
const COUNTERS: &str = "byte n[4];
    process A { state s, t; init s; trans s -> s { guard n[0] < 9; effect n[0] = n[0] + 1; },
        s -> t { guard n[0] > 3 and n[1] > 5; }; }
    process B { state s; init s; trans s -> s { guard n[1] < 9; effect n[1] = n[1] + 1; }; }
    process C { state s; init s; trans s -> s { guard n[2] < 9 and n[2] <= n[1]; effect n[2] = n[2] + 1; }; }
    process D { state s; init s; trans s -> s { guard n[3] < 9; effect n[3] = n[3] + 1; }; }
    system async;";

/// A reduced search goes on with the same choices, so the counts are those of a search in one go.
pub fn reduced_searches_are_resumed() {
    let (folder, path) = written(COUNTERS);
    let file = folder.path().join("search.checkpoint");
    let name = file.to_str().unwrap();
    for question in [&["--reduce", "deadlocks"][..], &["--reduce", "goal", "--goal", "A.t and n[2] == 9 and n[3] == 9"]] {
        let (code, whole) = json(&path, question);
        let counts =
            |report: &Value| ["states", "transitions", "deadlocks", "levels"].map(|name| report["counts"][name].as_u64());
        assert!(whole["counts"]["states"].as_u64().unwrap() > 32 && whole["reduction"].is_string(), "{whole}");
        for most in ["5", "20", "30"] {
            let arguments = [question, &["--max-states", most, "--checkpoint", name, "--engine", "interpreted"]].concat();
            let (stopped, _) = json(&path, &arguments);
            assert_eq!(stopped, Some(3));
            let arguments = [question, &["--resume", name, "--engine", "compiled"]].concat();
            let (resumed, report) = json(&path, &arguments);
            assert_eq!((resumed, depth(&report), &report["no_path"]), (code, depth(&whole), &Value::Null), "{report}");
            assert_eq!(report["reduction"], whole["reduction"]);
            if whole["complete"] == Value::Bool(true) {
                assert_eq!(counts(&report), counts(&whole), "resumed after {most} states");
            }
        }
    }
    let (code, _) = json(&path, &["--reduce", "deadlocks", "--max-states", "20", "--checkpoint", name]);
    assert_eq!(code, Some(3));
    let refused = |arguments: &[&str], why: &str| {
        let output = explore(&path, [&["--resume", name], arguments].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(why), "{why}: {output:?}");
    };
    refused(&[], "it was written with a reduction, but this search runs without");
    let goal = ["--goal", "n[0] == 9"];
    let (code, _) = json(&path, &[&goal[..], &["--reduce", "goal", "--max-states", "2", "--checkpoint", name]].concat());
    assert_eq!(code, Some(3));
    refused(&[&goal[..], &["--reduce", "goal", "--deadlock"]].concat(), "--deadlock");
}

pub fn what_a_reduction_does_not_keep_is_refused() {
    for (arguments, part) in [
        (&["--reduce", "auto"][..], "--reduce auto: nothing is asked"),
        (&["--reduce", "goal"], "no --goal or --invariant is given"),
        (&["--reduce", "goal", "--goal", "P_0.critical", "--deadlock"], "--reduce auto keeps both"),
        (&["--reduce", "deadlocks", "--goal", "P_0.critical"], "--reduce auto keeps them, too"),
        (&["--reduce", "goal", "--goal", "P_0.critical", "--keep-going"], "keeps nothing behind a goal"),
        (&["--reduce", "deadlocks", "--engine", "gpu"], "--engine gpu needs a table on a GPU"),
        (&["--reduce", "deadlocks", "--ltl", "G true"], "cannot be used with"),
        (&["--reduce", "deadlocks", "--ef", "P_0.critical"], "cannot be used with"),
        (&["--reduce", "deadlocks", "--export", "all.aut"], "cannot be used with"),
    ] {
        let output = explore(&model("philosophers"), arguments.iter().map(|argument| argument.replace("P_0.critical", "1 == 1")));
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {text}");
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let output = explore(&file("train.aut"), ["--reduce", "deadlocks"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && text.contains("one transition system"), "{text}");
}

pub fn dependencies_are_written() {
    let folder = TempDir::new().unwrap();
    let list = folder.path().join("list");
    let output = explore(&model("peterson"), ["--dependencies", list.to_str().unwrap(), "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let text = std::fs::read_to_string(&list).unwrap();
    let lines = |beginning: &str| text.lines().filter(|line| line.starts_with(beginning)).count() as u64;
    assert_eq!(
        (report["do_not_accord"].as_u64(), report["may_make_true"].as_u64()),
        (Some(lines("do not")), Some(lines("may ")))
    );
    assert!(lines("do not accord\tP_") > 0 && lines("may make true\tP_") > 0, "{text}");
    assert!(text.lines().all(|line| line.split('\t').count() >= 3), "{text}");
}

/// Most states of a model of a list: whole searches for paths take time.
const MOST_STATES: u64 = if cfg!(debug_assertions) { 3_000 } else { 60_000 };

/// Compares reduced searches with the numbers of a list of models. If a model has deadlocks, compares the depths of the first one
/// and of a goal that holds there, too.
fn models_of_a_list(list: &Path, file: impl Fn(&str) -> (PathBuf, &'static [&'static str])) {
    let text = std::fs::read_to_string(list).unwrap();
    let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let [states, deadlocks] = ["states", "deadlocks"].map(|name| header.iter().position(|column| *column == name).unwrap());
    let (mut compared, mut logarithms) = (0, 0.0);
    for row in text.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let (Ok(states), Ok(deadlocks)) = (fields[states].parse::<u64>(), fields[deadlocks].parse::<u64>()) else { continue };
        if states > MOST_STATES {
            continue;
        }
        let (path, arguments) = file(fields[0]);
        let json = |question: &[&str]| json(&path, &[arguments, question].concat());
        let (code, report) = json(&["--reduce", "deadlocks", "--engine", "interpreted"]);
        if report["error"]
            .as_str()
            .is_some_and(|error| error.contains("this model is not reduced") || error.contains("assertions"))
        {
            continue;
        }
        assert_eq!((code, report["counts"]["deadlocks"].as_u64()), (Some(0), Some(deadlocks)), "{}", fields[0]);
        // A compiler takes a second for some nets.
        if states > 1000 {
            let (_, compiled) = json(&["--reduce", "deadlocks", "--engine", "compiled"]);
            let counts =
                |report: &Value| ["states", "transitions", "deadlocks", "levels"].map(|name| report["counts"][name].as_u64());
            assert_eq!(counts(&compiled), counts(&report), "{}", fields[0]);
        }
        compared += 1;
        logarithms += (report["counts"]["states"].as_f64().unwrap() / states as f64).ln();
        if deadlocks > 0 {
            let (_, whole) = json(&["--deadlock"]);
            let (_, reduced) = json(&["--deadlock", "--reduce", "deadlocks"]);
            assert_eq!(depth(&reduced), depth(&whole), "{}", fields[0]);
            let locations = whole["state"]["locations"].as_object().into_iter().flatten();
            let mut goal: Vec<String> = locations.map(|(process, at)| format!("{process}.{}", at.as_str().unwrap())).collect();
            if path.extension().is_some_and(|of| of == "pnml") {
                let places = whole["state"]["variables"].as_object().into_iter().flatten();
                goal = places.take(30).map(|(place, tokens)| format!("tokens(\"{place}\") == {tokens}")).collect();
            }
            let question = ["--goal", &goal.join(" and ")];
            let (code, whole) = json(&question);
            if !goal.is_empty() && code == Some(1) {
                let (_, reduced) = json(&[&question[..], &["--reduce", "goal"]].concat());
                assert_eq!(depth(&reduced), depth(&whole), "{} {question:?}: {reduced}", fields[0]);
            }
        }
    }
    println!("{compared} models of {}: {:.3} of the states are left", list.display(), (logarithms / f64::from(compared)).exp());
    assert!(compared > 0, "no model of {} is small enough", list.display());
}

pub fn of_nets(folder: &Path) {
    models_of_a_list(&folder.join("open.csv"), |net| (folder.join("open").join(net).join("model.pnml"), &[][..]));
}

pub fn of_beem(folder: &Path) {
    let dve = |folder: PathBuf| move |name: &str| (folder.join(format!("{name}.dve")), &[][..]);
    models_of_a_list(&folder.join("reduce/reduce.csv"), dve(folder.join("reduce")));
    models_of_a_list(&folder.join("open.csv"), dve(folder.join("open")));
}

pub fn of_slco(folder: &Path) {
    let slco = |sub: &str| {
        let folder = folder.join(sub);
        move |name: &str| (folder.join(format!("{name}.slco")), &[][..])
    };
    models_of_a_list(&folder.join("open.csv"), slco("open"));
    models_of_a_list(&folder.join("constructs.csv"), slco("constructs"));
}

pub fn of_networks(folder: &Path) {
    let written = TempDir::new().unwrap();
    models_of_a_list(&folder.join("networks.csv"), network_of(folder, &written));
}
