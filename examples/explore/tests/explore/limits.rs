//! Searches that a limit or a signal ends.
//!
//! Keeps these promises of `examples/explore/docs/searching.md`:
//!
//! - A table on a GPU grows only as far as the lists of the search fit beside it.
//! - A search that stops at its limit of memory says how much suffices for twice as many states.

use super::*;

pub fn limits_stop_it(place: TableOnDevice) {
    let (_folder, path) = written(COUNTERS);
    let (code, report) = place.json(&path, &["--max-states", "10k"]);
    assert_eq!((code, &report["complete"], report["end"].as_str()), (Some(3), &Value::Bool(false), Some("max-states")));
    assert!((10_000..29_791).contains(&counts(&report)[0]));
    // Keys of 15 bits take 2 bytes a slot: all of them may fit 100 kB.
    let memory = if place.table == "compact" && !place.is_gpu() { "40k" } else { "100k" };
    let (code, report) = place.json(&path, &["--memory", memory, "--capacity", "1000"]);
    assert_eq!((code, report["end"].as_str()), (Some(3), Some("memory")));
    // A GPU maps rows of an indexed table in pages of 2 MiB: there is no memory for one page.
    let least = if place.is_gpu() && place.table == "indexed" { 1 } else { 1000 };
    assert!((least..29_791).contains(&counts(&report)[0]), "{report}");
    let (code, report) = place.json(&path, &["--memory", "10M", "--capacity", "1000"]);
    assert_eq!((code, counts(&report)), (Some(0), [29_791, 86_490, 1, 91, 721]));
    let (code, report) = place.json(&path, &["--keep-going", "--goal", "a == 30 and b == 30"]);
    assert_eq!((code, counts(&report)), (Some(1), [29_791, 86_490, 1, 91, 721]));
    assert_eq!(report["path"]["length"].as_u64(), Some(60));
}

/// States at the greatest depth are checked, and no deeper one is.
pub fn a_depth_limits_it(place: TableOnDevice) {
    let (_folder, path) = written(COUNTERS);
    let goal = ["--goal", "a == 30 and b == 30"];
    for (depth, code, end, verdict) in [("60", 1, "found", "reached"), ("59", 3, "max-depth", "not-decided")] {
        let (found, report) = place.json(&path, &[&goal[..], &["--max-depth", depth]].concat());
        let seen = (found, report["end"].as_str(), report["checks"][0]["verdict"].as_str());
        assert_eq!(seen, (Some(code), Some(end), Some(verdict)), "{report}");
    }
    let (code, report) = place.json(&path, &["--max-depth", "2"]);
    // Depths 0 to 3 of three counters have 1 + 3 + 6 + 10 states.
    assert_eq!((code, counts(&report)[0]), (Some(3), 20), "{report}");
    let output = explore_on(place.device, &path, ["--max-depth", "2", "--table", place.table]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("stopped at --max-depth; the states of the next level are found, but not checked"), "{text}");
}

pub fn too_little_memory_ends_it_at_once(place: TableOnDevice) {
    let (_folder, path) = written(COUNTERS);
    let (code, report) = place.json(&path, &["--memory", "1k", "--capacity", "1000"]);
    assert_eq!((code, report["end"].as_str(), counts(&report)), (Some(3), Some("memory"), [1, 0, 0, 1, 1]));
    let arguments = ["--memory", "1k", "--capacity", "1000", "--table", place.table];
    let text = String::from_utf8(explore_on(place.device, &path, arguments).stdout).unwrap();
    assert!(text.contains("1 state of the last level and all later levels not expanded"), "{text}");
}

/// If the states of two words fill --memory in buckets, the search begins again in a table of keys, with a note.
pub fn full_memory_begins_again_with_smaller_slots() {
    // 31^3 states after the first, in 34 bits.
    let text = "byte a, b, c, p = 0, q = 0, r = 0; process P { state s, t; init s; trans \
                s -> t { effect p = 255, q = 255, r = 3; }, t -> t { guard a < 30; effect a = a + 1; }, \
                t -> t { guard b < 30; effect b = b + 1; }, t -> t { guard c < 30; effect c = c + 1; }; } system async;";
    let (_folder, path) = written(text);
    for device in ["cpu:1", "cpu:2"] {
        let (code, report) = json_on(device, &path, &["--memory", "150k", "--table", "bucket"]);
        assert_eq!((code, report["end"].as_str(), &report["table"]["reason"]), (Some(3), Some("memory"), &Value::Null));
        let (code, report) = json_on(device, &path, &["--memory", "150k"]);
        let why = "auto: a table with larger slots had filled --memory";
        assert_eq!((code, counts(&report)[0], report["table"]["reason"].as_str()), (Some(0), 29_792, Some(why)), "{report}");
        let output = explore_on(device, &path, ["--memory", "150k"]);
        assert!(String::from_utf8(output.stderr).unwrap().contains("note: the states fill --memory, so the search begins again"));
        // A finding is reported.
        let (code, report) = json_on(device, &path, &["--memory", "150k", "--goal", "a + b + c == 20"]);
        assert_eq!((code, report["checks"][0]["verdict"].as_str()), (Some(1), Some("reached")), "{report}");
    }
}

/// Without a given size, the first table on a CPU stays within --memory; and messages about memory give the amounts.
pub fn first_tables_fit_their_memory() {
    let (_folder, counters) = written(COUNTERS); // 29,791 states
    for table in TABLES {
        for (memory, bytes) in [("3MiB", 3 << 20), ("100k", 100_000)] {
            let (code, report) = json(&model("peterson"), &["--memory", memory, "--table", table]);
            assert_eq!((code, counts(&report)[..4].to_vec()), (Some(0), vec![20, 34, 0, 7]), "{report}");
            let taken = ["bytes", "bytes_lists"].map(|name| report["table"][name].as_u64().expect(name)).iter().sum::<u64>();
            assert!(taken <= bytes, "{table}: {taken} of {bytes} bytes");
        }
        for (memory, capacity, text) in [
            ("1k", "1000", "stopped at --memory 1000 B, where the table takes "),
            ("100k", "10000", "stopped at --memory 97.66 KiB, where "),
        ] {
            // As keys, all states fit: 2 bytes each.
            let memory = if table == "compact" && memory == "100k" { "50k" } else { memory };
            let text = if memory == "50k" { "stopped at --memory 48.83 KiB, where " } else { text };
            let output = explore(&counters, ["--table", table, "--memory", memory, "--capacity", capacity]);
            let report = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.code() == Some(3) && report.contains(text), "{table}: {report}");
        }
    }
}

/// A model of 32,768 states of 4 words, half of whose words differ in nearly all states.
fn counters_and_products() -> (TempDir, PathBuf) {
    let counter = |at: usize| {
        let steps = format!("guard n[{at}] < 7; effect n[{at}] = n[{at}] + 1, m[{at}] = n[{at}] * 1000003;");
        format!("process P{at} {{ state a; init a; trans a -> a {{ {steps} }}; }}\n")
    };
    written(&format!("int n[5], m[5];\n{}system async;\n", (0..5).map(counter).collect::<String>()))
}

/// A search fills limits of a few hundred kilobytes as well, with states and what waits: lists of them, marks or buffers.
pub fn small_limits_are_filled() {
    let (_folder, path) = counters_and_products();
    for (table, bytes_of_state) in [("bucket", 16), ("indexed", 16 + 8)] {
        for limit in [150_000, 220_000, 300_000u64] {
            let (code, report) = json(&path, &["--table", table, "--engine", "interpreted", "--memory", &limit.to_string()]);
            assert_eq!((code, report["end"].as_str()), (Some(3), Some("memory")), "{report}");
            assert_eq!(report["table"]["memory_lacks"], "slots", "{report}");
            let least = limit as f64 / f64::from(bytes_of_state) * 0.9 * 0.95;
            let states = counts(&report)[0];
            assert!(states as f64 >= least, "{table}, {limit} bytes: {states} states, not {least:.0}");
        }
    }
    for table in ["tree", "tree-compact"] {
        for limit in [40_000, 80_000, 120_000u64] {
            let (_, report) = json(&path, &["--table", table, "--engine", "interpreted", "--memory", &limit.to_string()]);
            assert_eq!(report["end"].as_str(), Some("memory"), "{report}");
            assert!(counts(&report)[0] * 30 > limit, "{table}: {report}");
            assert!(["slots", "nodes"].map(Value::from).contains(&report["table"]["memory_lacks"]), "{table}: {report}");
        }
    }
}

/// A search that stops at its limit of memory says how much twice as many states need. With that they are found.
///
/// One thread: with more, lists of so few states take more or less room from run to run, and a level more or less is found.
pub fn memory_that_is_said_to_be_needed_suffices() {
    let (_folder, path) = counters_and_products();
    // The number is rounded, and so is that of slots. Few states tell little about the nodes that the others need.
    let [whole, of_trees] = [1.9, 1.4];
    for (table, memory, least) in
        [("bucket", "250k", whole), ("tree", "150k", of_trees), ("tree-compact", "100k", of_trees), ("indexed", "250k", whole)]
    {
        let run = |memory: &str| {
            let options = ["--table", table, "--engine", "interpreted", "--memory", memory];
            let text = String::from_utf8(explore_on("cpu:1", &path, options).stdout).unwrap();
            let states = text.lines().find_map(|line| line.strip_prefix("states  ")).expect(&text);
            (states.trim().replace(',', "").parse::<u64>().expect(&text), text)
        };
        let (states, text) = run(memory);
        assert!(2 * states < 32_768, "{table}: the limit is too large");
        let needed = text.split("twice as many states need about --memory ").nth(1).expect(&text);
        let mut words = needed.split([' ', ',']);
        let [number, unit] = [words.next().unwrap(), words.next().unwrap()];
        let (_, report) = json_on("cpu:1", &path, &["--table", table, "--engine", "interpreted", "--memory", memory]);
        let bytes = report["table"]["memory_for_twice"].as_u64().expect("it is known at the end") as f64;
        // Each run draws hash functions of its own.
        let said = number.parse::<f64>().unwrap() * 1024.0;
        assert!(unit == "KiB" && (0.9..1.1).contains(&(bytes / said)), "{table}: {bytes} bytes, {number} {unit}");
        let (twice, text) = run(&format!("{number}{unit}"));
        assert!(twice as f64 >= least * states as f64, "{table}: {states} in {memory}, {twice} in {number} {unit}: {text}");
    }
}

/// Levels have one state each, and the table's fill is checked after every level, so the table grows as soon as it must.
pub fn tables_do_not_get_too_full(place: TableOnDevice) {
    // One of these tables, filled to 85 % each time, has 6,352 slots: it must have grown at 5,400 states.
    let (_folder, path) = written(&chain(6000));
    let (code, report) = place.json(&path, &["--capacity", "64"]);
    assert_eq!((code, counts(&report)), (Some(0), [6001, 6000, 1, 6001, 1]));
    let fill = report["table"]["fill"].as_f64().unwrap();
    assert!(fill <= 0.86, "{fill}");
}

pub fn limits_of_nothing_are_refused() {
    for (option, value, message) in [
        ("--max-states", "0", "must be at least 1"),
        ("--memory", "0", "must be at least 1"),
        ("--timeout", "0", "more than 0"),
        ("--local-ranks", "2^32", "4,294,967,296 is not in 1 to 256"),
    ] {
        let output = explore(&model("peterson"), [option, value]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(message), "{option} {value}: {said}");
    }
    assert_eq!(json(&model("peterson"), &["--timeout", "2^32", "--memory", "1G"]).0, Some(0));
}

pub fn time_and_threads_have_limits() {
    let (_folder, path) = written(ENDLESS);
    // A slow machine may not reach the exploration.
    let output = explore(&path, ["--timeout", "0.5", "--json", "--engine", "interpreted"]);
    let object = only_object(&output);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let error = object["error"].as_str().unwrap_or_default();
    assert!(object["end"] == "timeout" || error.contains("--timeout 0.5 s"), "{output:?}");
    let output = explore_on("cpu:1025", &path, [""; 0]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("1025 threads are too many") && said.contains("at most 1024"),
        "{said}"
    );
}

/// Sends the signal of Ctrl-C.
fn interrupt(child: &Child) {
    send("INT", child);
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
    assert!(sent.expect("there is a shell").success());
}

/// Starts a search that shows its progress, and sends signals once it has found states.
#[cfg(unix)]
fn stopped_by(signals: &[&str], path: &Path, arguments: &[&str]) -> Output {
    let mut child = spawned(command_of(path.to_str().unwrap(), arguments).args(["--progress", "always", "--timeout", "30m"]));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains(" states, level "));
    assert!(line.is_some(), "{:?}", child.wait_with_output());
    signals.iter().for_each(|signal| send(signal, &child));
    // Keep reading, so that the child does not wait for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    child.wait_with_output().unwrap()
}

/// SIGTERM ends a search as Ctrl-C does, and signals that come together count as one.
#[cfg(unix)]
pub fn termination_ends_it_with_a_report_and_a_checkpoint() {
    let (folder, path) = written(ENDLESS);
    let checkpoint = folder.path().join("checkpoint");
    let arguments = ["--json", "--memory", "1G", "--engine", "interpreted", "--checkpoint", checkpoint.to_str().unwrap()];
    for signals in [&["TERM"][..], &["INT", "TERM", "INT"]] {
        let _ = std::fs::remove_file(&checkpoint);
        let output = stopped_by(signals, &path, &arguments);
        let report = only_object(&output);
        assert_eq!((output.status.code(), &report["end"]), (Some(130), &Value::from("interrupted")), "{output:?}");
        assert!(counts(&report)[0] > 1 && checkpoint.exists(), "{report}");
    }
}

/// A signal leaves the verdicts that the states found so far decide, and the figures of these states.
#[cfg(unix)]
pub fn a_signal_leaves_decided_verdicts_and_figures() {
    let long = super::nets::chain_of_tokens(2_000_000_000);
    let (_folder, path) = written_as("long.pnml", &long);
    let of = |arguments: &[&str]| stopped_by(&["TERM"], &path, &[arguments, &["--engine", "interpreted"]].concat());
    for (property, verdict) in [("QuasiLiveness", "TRUE"), ("OneSafe", "FALSE"), ("ReachabilityDeadlock", "CANNOT_COMPUTE")] {
        let output = of(&["--properties", property]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!((output.status.code(), text.contains(&format!(" {verdict} "))), (Some(130), true), "{property}: {output:?}");
    }
    let report = only_object(&of(&["--json"]));
    assert_eq!(["max_tokens", "max_tokens_in_place"].map(|name| report[name].as_u64()), [Some(2_000_000_000); 2], "{report}");
}

pub fn interruption_ends_it_with_a_report(place: TableOnDevice) {
    if !cfg!(unix) {
        return;
    }
    let (_folder, path) = written(ENDLESS);
    for (engine, format) in [("auto", "--json"), ("compiled", "--json"), ("interpreted", "--progress=always")] {
        let mut command = Command::new(EXPLORE);
        command.arg(&path).args(["--device", place.device, "--table", place.table, "--memory", "8G", "--timeout", "30m"]);
        command.args(["--progress", "always"].iter().filter(|_| format == "--json")).arg(format);
        command.args(["--engine", engine].iter().filter(|_| !place.is_gpu()));
        // A compiler may run beside the search.
        let mut child = spawned(command.env("WARPSET_CACHE", "off"));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains(" states, level "));
        if line.is_none() && engine == "compiled" {
            println!("skipped: there may be no C++ compiler");
            continue;
        }
        assert!(line.is_some(), "{:?}", child.wait_with_output());
        interrupt(&child);
        // Keep reading, so that the child does not wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        if format == "--json" {
            let report = only_object(&output);
            assert_eq!((report["end"].as_str(), &report["complete"]), (Some("interrupted"), &Value::Bool(false)));
            assert!(counts(&report)[0] > 1, "{report}");
        } else {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("explored           in part: INTERRUPTED"), "{text}");
        }
    }
}

/// Waits until the child handles Ctrl-C itself.
#[cfg(target_os = "linux")]
fn wait_until_it_listens(child: &mut Child) {
    // The name of the thread that handles it.
    let threads = format!("/proc/{}/task", child.id());
    let listens = || {
        let mut all = std::fs::read_dir(&threads).into_iter().flatten().flatten();
        all.any(|thread| std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name == "stopping\n"))
    };
    while !listens() {
        assert_eq!(child.try_wait().unwrap(), None, "it has ended by itself");
        std::thread::yield_now();
    }
}

#[cfg(target_os = "linux")]
pub fn interruption_while_reading_or_compiling_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let mut child = spawned(&mut command_of("-", &["--json"]));
    wait_until_it_listens(&mut child);
    interrupt(&child);
    let (_pipe, output) = with_open_pipe(child);
    let error = only_object(&output)["error"].as_str().unwrap().to_string();
    assert!(output.status.code() == Some(130) && error.starts_with("interrupted before"), "{output:?}");

    let (folder, path) = written(ENDLESS);
    let [compiler, marker] = ["compiler", "marker"].map(|name| folder.path().join(name));
    let script = format!("#!/bin/sh\nif [ \"$1\" = --version ]; then exit; fi\ntouch '{}'\nexec sleep 1000\n", marker.display());
    std::fs::write(&compiler, script).unwrap();
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
    until_it_runs(&compiler);
    let arguments = ["--json", "--engine", "compiled", "--progress", "always"];
    let mut child = spawned(command_of(path.to_str().unwrap(), &arguments).env("CXX", &compiler));
    while !marker.exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it has ended by itself");
        std::thread::yield_now();
    }
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let error = only_object(&output)["error"].as_str().unwrap().to_string();
    assert!(output.status.code() == Some(130) && error.contains("while the next-state functions were compiled"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("compiling 3 transitions: "), "{output:?}");
}

/// The child's output, while its standard input stays open and empty.
#[cfg(target_os = "linux")]
fn with_open_pipe(mut child: Child) -> (std::process::ChildStdin, Output) {
    let pipe = child.stdin.take().unwrap();
    (pipe, child.wait_with_output().unwrap())
}

#[cfg(target_os = "linux")]
pub fn a_second_interruption_ends_it_at_once() {
    let (_folder, path) = written(&chain(6000));
    let mut child = spawned(&mut command_of(path.to_str().unwrap(), &LONG_REPORT));
    // The child prints, and waits for a reader.
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let status = loop {
        interrupt(&child);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(130));
}

/// A search grows its table only as far as the list of states fits beside it. A simulated device has 6 MB here: a table eight
/// times as large would fit, but not its list. A real device has more.
pub fn factors_of_growth_leave_room_for_lists(place: TableOnDevice) {
    // An indexed table reserves memory for its rows, and has none for more than its first size.
    if place.table == "indexed" {
        return;
    }
    let counter = |at: usize| {
        format!("process P{at} {{ state a; init a; trans a -> a {{ guard n[{at}] < 9; effect n[{at}] = n[{at}] + 1; }}; }}\n")
    };
    let (_folder, path) = written(&format!("byte n[5];\n{}system async;\n", (0..5).map(counter).collect::<String>()));
    let arguments = ["--device", place.device, "--table", place.table, "--engine", "gpu", "--capacity", "1024", "--json"];
    let mut command = Command::new(EXPLORE);
    let output = command.arg(path).args(arguments).env("WARPSET_SIMULATED_MEMORY", "6M").output().expect("the checker starts");
    let report = only_object(&output);
    assert_eq!((&report["end"], &report["counts"]["states"]), (&Value::from("complete"), &Value::from(100_000)), "{output:?}");
}

/// Explores on a GPU of one multiprocessor, if it is simulated: its blocks leave little room in the list of states.
fn on_small_gpu(place: TableOnDevice, path: &Path, options: &[&str]) -> Value {
    let arguments = ["--device", place.device, "--table", place.table, "--engine", "gpu", "--json"];
    let mut command = Command::new(EXPLORE);
    let output = command.arg(path).args(arguments).args(options).env("WARPSET_SIMULATED_MULTIPROCESSORS", "1").output();
    only_object(&output.expect("the checker starts"))
}

/// The list has room for a fraction of the states. A path to the last level needs several passes, also if the memory has room for
/// nothing but the table and the list of the first.
pub fn finished_levels_leave_the_list(place: TableOnDevice) {
    // Levels are ranges of rows in an indexed table.
    if place.table == "indexed" {
        return;
    }
    let (_folder, path) = written(COUNTERS);
    let options = ["--capacity", "40000", "--keep-going", "--goal", "a == 30 and b == 30 and c == 30"];
    let free = on_small_gpu(place, &path, &options);
    let number = |report: &Value, name: &str| report["table"][name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"));
    let (table, lists) = (number(&free, "bytes"), number(&free, "bytes_lists"));
    if crate::is_simulated() {
        assert!(lists < 8 * 29_791 / 3, "{lists} bytes of lists: {free}");
    }
    let memory = (table + lists).to_string();
    let tight = on_small_gpu(place, &path, &[&options[..], &["--memory", &memory]].concat());
    for report in [free, tight] {
        assert_eq!((&report["end"], counts(&report)), (&Value::from("complete"), [29_791, 86_490, 1, 91, 721]), "{report}");
        assert_eq!(report["path"]["length"].as_u64(), Some(90), "{report}");
        assert!(number(&report, "bytes") + number(&report, "bytes_lists") <= table + lists, "{report}");
    }
}

/// Each level has 15 times the states of the one before, more than the list has room for: it gets longer, and no state is lost.
pub fn levels_wider_than_the_list_are_repeated(place: TableOnDevice) {
    let set = |at: usize| {
        let values = (1..16).map(|value| format!("s{at} -> s{} {{ effect n[{at}] = {value}; }}", at + 1));
        values.collect::<Vec<_>>().join(", ")
    };
    let steps = (0..4).map(set).collect::<Vec<_>>().join(", ");
    let (_folder, path) =
        written(&format!("byte n[4];\nprocess P {{ state s0, s1, s2, s3, s4; init s0; trans {steps}; }}\nsystem async;\n"));
    let options = ["--capacity", "100000", "--goal", "n[0] == 3 and n[3] == 9", "--keep-going"];
    let report = on_small_gpu(place, &path, &options);
    let all = (0..5).map(|level| 15u64.pow(level)).sum::<u64>();
    assert_eq!((&report["end"], counts(&report)), (&Value::from("complete"), [all, all - 1, 15u64.pow(4), 5, 15u64.pow(4)]));
    assert_eq!(report["path"]["length"].as_u64(), Some(4), "{report}");
    // Without memory for a longer list, states are marked. Without memory for marks either, the search ends, with a message.
    if place.table != "indexed" && crate::is_simulated() {
        let begun = on_small_gpu(place, &path, &[&options[..], &["--max-states", "100"]].concat());
        let [table, slots] = ["bytes", "slots"].map(|name| begun["table"][name].as_u64().expect(name));
        let tight = |memory: u64| on_small_gpu(place, &path, &[&options[..], &["--memory", &memory.to_string()]].concat());
        // The last level has more states than the list of a part.
        let marked = tight(table + least_lists(slots));
        assert_eq!((&marked["end"], counts(&marked)), (&report["end"], counts(&report)), "{marked}");
        assert_eq!(marked["path"]["length"].as_u64(), Some(4), "{marked}");
        let ended = tight(table + slots / 4);
        assert_eq!((&ended["end"], &ended["table"]["memory_lacks"]), (&Value::from("memory"), &Value::from("lists")), "{ended}");
        assert!(ended["explored"].as_str().is_some_and(|text| text.contains("and marks of waiting states take ")), "{ended}");
        assert_eq!(ended["path"], Value::Null, "{ended}");
    }
}

/// Bytes of the marks of waiting states, and of a list of a part of a level: the least lists that a search on a GPU needs.
fn least_lists(slots: u64) -> u64 {
    2 * 4 * slots.div_ceil(32) + 4 * 1024
}

/// With memory for nothing but the table, marks of waiting states and the shortest list, a search finds all states, is saved and
/// resumed, and finds a path in the same memory.
pub fn waiting_states_are_marked_when_lists_do_not_fit(place: TableOnDevice) {
    if place.table == "indexed" || !crate::is_simulated() {
        return;
    }
    let (folder, path) = written(COUNTERS);
    let options = ["--capacity", "40000", "--keep-going", "--goal", "a == 30 and b == 30 and c == 30"];
    let number = |report: &Value, name: &str| report["table"][name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"));
    let begun = on_small_gpu(place, &path, &[&options[..], &["--max-states", "100"]].concat());
    let memory = number(&begun, "bytes") + least_lists(number(&begun, "slots"));
    let limit = ["--memory", &memory.to_string()];
    let marked = on_small_gpu(place, &path, &[&options[..], &limit].concat());
    assert_eq!((&marked["end"], counts(&marked)), (&Value::from("complete"), [29_791, 86_490, 1, 91, 721]), "{marked}");
    assert_eq!(marked["path"]["length"].as_u64(), Some(90), "{marked}");
    assert_eq!(number(&marked, "bytes") + number(&marked, "bytes_lists"), memory, "{marked}");
    let file = folder.path().join("saved");
    let file = file.to_str().unwrap();
    let saved = on_small_gpu(place, &path, &[&options[..], &limit, &["--checkpoint", file, "--max-states", "9000"]].concat());
    assert_eq!(saved["end"], Value::from("max-states"), "{saved}");
    // The table of the checkpoint has its own capacity.
    let resumed = on_small_gpu(place, &path, &[&options[2..], &limit, &["--resume", file]].concat());
    assert_eq!((&resumed["end"], counts(&resumed)), (&Value::from("complete"), counts(&marked)), "{resumed}");
    // A small table grows: its states are listed before, and marked afterwards.
    let (_folder, path) = written(&COUNTERS.replace("30", "11"));
    let grown =
        on_small_gpu(place, &path, &["--capacity", "64", "--memory", "28000", "--goal", "a == 11 and b == 11 and c == 11"]);
    let [begun, end] = [64, 1728].map(Value::from);
    assert!(grown["table"]["slots"].as_u64() > begun.as_u64() && grown["counts"]["states"] == end, "{grown}");
    assert_eq!(grown["path"]["length"].as_u64(), Some(33), "{grown}");
}

/// Ranks on a GPU fill their memory with states and the lists that are needed: to 92 % and more. With memory for nothing but the
/// tables, marks of waiting states and the shortest lists, they find all states, and a path in the same memory. So do small
/// tables that grow.
pub fn ranks_fill_their_memory() {
    let place = TableOnDevice { device: "gpu", table: "bucket" };
    let number = |report: &Value, name: &str| report["table"][name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"));
    let (_folder, path) = written(COUNTERS);
    for (ranks, capacity) in [("2", "40000"), ("3", "64")] {
        let goal = "a == 30 and b == 30 and c == 30";
        let options = ["--local-ranks", ranks, "--keep-going", "--goal", goal, "--capacity", capacity];
        let memory = if capacity == "64" {
            200_000
        } else {
            let begun = on_small_gpu(place, &path, &[&options[..], &["--max-states", "100"]].concat());
            number(&begun, "bytes") + 2 * least_lists(number(&begun, "slots").div_ceil(2))
        };
        let report = on_small_gpu(place, &path, &[&options[..], &["--memory", &memory.to_string()]].concat());
        assert_eq!((&report["end"], counts(&report)), (&Value::from("complete"), [29_791, 86_490, 1, 91, 721]), "{report}");
        assert_eq!(report["path"]["length"].as_u64(), Some(90), "{report}");
        let used = number(&report, "bytes") + number(&report, "bytes_lists");
        assert!(used <= memory && 100 * used >= 92 * memory, "{used} of {memory} bytes: {report}");
    }
}
