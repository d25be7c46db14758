//! Counts, violations and faults that a search reports, and the paths to them.

use super::*;

pub fn own_models_have_their_counts(place: TableOnDevice) {
    for (name, expected) in GOLDEN {
        let (code, report) = place.json(&model(name), &[]);
        assert_eq!(counts(&report)[..4], expected, "{name}");
        assert_eq!((code, &report["complete"], &report["violation"]), (Some(0), &Value::Bool(true), &Value::Null), "{name}");
        assert_eq!(report["engine"] == "compiled for the GPU", place.is_gpu());
    }
}

pub fn violations_come_with_the_shortest_path(place: TableOnDevice) {
    for (name, arguments, length, found) in [
        ("peterson_wrong", &["--invariant", EXCLUSION][..], 6, "invariant violated: P_0.critical + P_1.critical <= 1"),
        ("readers_writers", &["--deadlock"], 4, "deadlock: no step is possible"),
        ("philosophers", &["--deadlock"], 5, "deadlock: no step is possible"),
        ("river", &["--goal", "farmer and wolf and goat and cabbage"], 7, "goal reached: farmer and wolf and goat and cabbage"),
        (
            "river",
            &["--goal", "farmer and wolf\n  and goat\r\nand cabbage"],
            7,
            "goal reached: farmer and wolf and goat and cabbage",
        ),
        ("mailbox", &["--deadlock"], 24, "deadlock: no step is possible"),
        (
            "mailbox",
            &["--invariant", "Consumer.number / (2 - Consumer.number) < 9"],
            8,
            "fault in the condition `Consumer.number / (2 - Consumer.number) < 9`: division by zero",
        ),
        ("river", &["--invariant", "false"], 0, "invariant violated: false"),
    ] {
        let file = TempDir::new().unwrap();
        let trace = file.path().join("trace.json");
        let (code, report) = place.json(&model(name), &[arguments, &["--trace", trace.to_str().unwrap()]].concat());
        assert_eq!((code, report["violation"].as_str()), (Some(1), Some(found)), "{name} {arguments:?}");
        let path = &report["path"];
        assert_eq!((&report["no_path"], &path["length"]), (&Value::Null, &Value::from(length)), "{name} {arguments:?}");
        assert_eq!((path["steps"].as_array().unwrap().len(), &path["final"]), (length, &report["state"]));
        let written: Value = serde_json::from_str(&std::fs::read_to_string(&trace).unwrap()).unwrap();
        assert_eq!(written, *path);
    }
}

/// Models whose lowest level with a violation has many of them, and states with many predecessors.
fn models_with_many_paths() -> Vec<(TempDir, PathBuf, Vec<&'static str>)> {
    let sum = |count: u32, step: &str| {
        let process = |n| {
            format!("process P_{n} {{ state s; init s; trans s -> s {{ guard x[{n}] < 7; {step} x[{n}] = x[{n}] + 1; }}; }}\n")
        };
        format!("byte x[{count}], d[9];\n{}system async;", (0..count).map(process).collect::<String>())
    };
    let of_four = "x[0] + x[1] + x[2] + x[3]";
    let stored = |name: &str| std::fs::read_to_string(model(name)).unwrap();
    [
        (sum(4, "effect"), vec!["--goal", "x[0] + x[1] + x[2] + x[3] == 13"]),
        (sum(4, &format!("effect d[({of_four}) % 14] = 0,")), vec![]),
        (sum(4, "effect"), vec!["--invariant", "x[0] + x[1] < 9 and x[3] != 5", "--keep-going"]),
        (stored("philosophers"), vec!["--deadlock"]),
        (stored("mailbox").replace("sync box!{1, next};", "sync box!{0, next};"), vec![]),
    ]
    .map(|(text, arguments)| {
        let (folder, path) = written(&text);
        (folder, path, arguments)
    })
    .into()
}

/// The path, and what was found, are those of one thread that interprets over a bucket table.
pub fn paths_are_the_same_in_every_table(place: TableOnDevice) {
    for (_folder, path, arguments) in models_with_many_paths() {
        let found = |(code, report): (Option<i32>, Value)| {
            (code, report["violation"].clone(), report["state"].clone(), report["no_path"].clone(), report["path"].clone())
        };
        let one = ["--engine", "interpreted", "--table", "bucket"];
        let expected = found(json_on("cpu:1", &path, &[&one[..], &arguments].concat()));
        assert!(expected.0 == Some(1) && expected.4.is_object(), "{expected:?}");
        assert_eq!(found(place.json(&path, &arguments)), expected, "{arguments:?}");
        assert_eq!(found(place.json(&path, &[&arguments[..], &["--capacity", "100000"]].concat())), expected, "{arguments:?}");
    }
}

/// The text of a path is the same, byte for byte, with any threads, engine and number of ranks, and in every run.
pub fn texts_of_paths_are_the_same_in_every_run() {
    for (_folder, path, arguments) in models_with_many_paths() {
        let text = |device: &str, more: &[&str]| {
            let output = explore_on(device, &path, arguments.iter().chain(more));
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            let text = String::from_utf8(output.stdout).unwrap();
            let at = text.find("The shortest path has ").unwrap_or_else(|| panic!("no path: {text}"));
            text[at..].to_owned()
        };
        let expected = text("cpu:1", &["--engine", "interpreted"]);
        for device in ["cpu:2", "cpu:4", "cpu:2", "cpu:4"] {
            assert_eq!(text(device, &[]), expected, "{device} {arguments:?}");
        }
        for ranks in ["1", "2", "3"] {
            assert_eq!(text("cpu:2", &["--local-ranks", ranks]), expected, "{ranks} ranks {arguments:?}");
        }
        assert_eq!(text("cpu:2", &["--engine", "compiled"]), expected, "{arguments:?}");
        assert_eq!(text("cpu:4", &["--parents"]), expected, "{arguments:?}");
    }
}

/// If threads search all states, the text of a run is the same, byte for byte, with any threads and table, fair or not; and the
/// path to a state from which a condition is out of reach.
pub fn texts_of_runs_are_the_same_in_every_run() {
    let process = |n: usize| {
        let before = if n > 0 { format!(", s -> s {{ guard x[{}] == 3; effect x[{n}] = 0; }}", n - 1) } else { String::new() };
        format!("process P_{n} {{ state s; init s; trans s -> s {{ effect x[{n}] = (x[{n}] + 1) % 9; }}{before}; }}\n")
    };
    let rings = format!("byte x[3];\n{}system async;", (0..3).map(process).collect::<String>());
    let ends = format!(
        "byte x[4];\n{}system async;",
        (0..4)
            .map(|n| {
                format!(
                    "process P_{n} {{ state s; init s; trans s -> s {{ guard x[{n}] < 5; effect x[{n}] = x[{n}] + 1; }}; }}\n"
                )
            })
            .collect::<String>()
    );
    let runs: &[&[&str]] = &[
        &["--ltl", "F G (x[0] + x[1] + x[2] != 14)"],
        &["--ltl", "F G (x[0] + x[1] + x[2] != 14)", "--fair", "weak"],
        &["--ltl", "G (x[2] < 4)"],
    ];
    for (text, questions) in [(&rings, runs), (&ends, &[&["--ef", "x[0] + x[1] == 6 and x[2] + x[3] == 5"]])] {
        let (_folder, path) = written(text);
        for question in questions {
            let run = |device: &str, table: &str| {
                let output = explore_on(device, &path, question.iter().chain(&["--keep-going", "--table", table]));
                let text = String::from_utf8(output.stdout.clone()).unwrap();
                let at = text.find("A run that violates").or(text.find("The shortest path has "));
                text[at.unwrap_or_else(|| panic!("no run: {output:?}"))..].to_owned()
            };
            let expected = run("cpu:1", "bucket");
            for (device, table) in [("cpu:2", "bucket"), ("cpu:4", "tree"), ("cpu:4", "tree-compact"), ("cpu:4", "bucket")] {
                assert_eq!(run(device, table), expected, "{device} {table} {question:?}");
            }
        }
    }
}

pub fn paths_are_printed_with_lines_and_changes() {
    // A deadlock names the committed process that blocks all others.
    let blocked = "byte x; process P { state a, b; init a; commit b; trans a -> b {}, b -> a { guard x == 1; }; }
process Q { state s; init s; trans s -> s { effect x = 1 - x; }; } system async;";
    let (_folder, path) = written(blocked);
    let text = String::from_utf8(explore(&path, ["--deadlock"]).stdout).unwrap();
    let end = "There: deadlock: no step is possible\nP.b is committed and cannot move, so no other process may move\n";
    assert!(text.ends_with(end), "{text}");
    assert!(!String::from_utf8_lossy(&explore(&model("mailbox"), ["--deadlock"]).stdout).contains("is committed and"));
    let output = explore(&model("peterson_wrong"), ["--invariant", EXCLUSION]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "The shortest path has 6 steps",
        "0. initial state: P_0.idle, P_1.idle",
        " (yielded -> waiting, line ",
        "turn: 0 -> 1",
        "There: invariant violated: P_0.critical + P_1.critical <= 1",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let text = String::from_utf8(explore(&model("readers_writers"), ["--deadlock"]).stdout).unwrap();
    let step = " (outside -> inside, line 23, sends enter)\n       with Lock: ";
    assert!(text.contains(step) && text.contains("(line 13, receives enter)\n"), "{text}");
}

/// A step shows its statement, the values that a rendezvous passes on, and queues as lists of messages: in the text, in files of
/// `--trace`, in message charts and in pages. With `--states` each of these has the whole states.
pub fn steps_show_statements_values_and_queues() {
    let folder = TempDir::new().unwrap();
    let texts = |path: &Path, arguments: &[&str]| {
        let read = |name: &str, option: &str| {
            let file = folder.path().join(name);
            let output = explore(path, [arguments, &[option, file.to_str().unwrap()]].concat());
            (String::from_utf8(output.stdout).unwrap(), std::fs::read_to_string(file).unwrap())
        };
        let (text, chart) = read("chart.txt", "--trace");
        let json: Value = serde_json::from_str(&read("trace.json", "--trace").1).unwrap();
        (text, json, chart, read("page.html", "--report").1)
    };
    let asked = ["--goal", "Consumer.expected[1] == 1"];
    let (text, json, ..) = texts(&model("mailbox"), &asked);
    for part in [
        "  1. P_1: guard next < 4; sync box!{1, next}; effect next = next + 1; (line 20, sends box(1, 0))\n       \
         box: [] -> [(1, 0)], ",
        ": sync box?{from, number}; (",
        ", line 31, receives box(1, 0))\n       box: [(1, 0)] -> [], Consumer.from: 0 -> 1\n",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let message = serde_json::json!({ "channel": "box", "kind": "sent", "signal": null, "values": [1, 0] });
    assert_eq!(
        (&json["steps"][0]["message"], &json["steps"][0]["changes"]["box"]),
        (&message, &serde_json::json!([[], [[1, 0]]]))
    );
    assert_eq!(json["initial"]["variables"]["box"], serde_json::json!([]));
    assert!(json["steps"][0].get("state").is_none() && !text.contains("\n       state: "), "{text}");
    let (text, json, chart, page) = texts(&model("mailbox"), &[&asked[..], &["--states"]].concat());
    assert_eq!(json["steps"][0]["state"]["variables"]["box"], serde_json::json!([[1, 0]]));
    let whole = ["Consumer.from = 0", "box = [(1, 0)]", "P_0.work, P_1.work"];
    assert!(whole.iter().all(|part| [&text, &chart, &page].iter().all(|all| all.contains(part))), "{text}\n{chart}\n{page}");
    let states = text.lines().filter(|line| line.starts_with("       state: ")).count();
    assert_eq!((states, page.matches("<details open=\"open\">").count()), (json["steps"].as_array().unwrap().len(), states + 1));
    let answers = "channel answer, jobs; byte got; \
                   process P { byte n = 3; state a, b; init a; trans a -> b { sync answer!n + 1; }; } \
                   process Q { state a, b; init a; trans a -> b { sync answer?got; }; } system async;";
    let (_folder, path) = written(answers);
    let (text, json, chart, page) = texts(&path, &["--goal", "got == 4"]);
    let step = "1. P: sync answer!n + 1; (a -> b, line 1, sends answer(4))\n       \
                with Q: sync answer?got; (a -> b, line 1, receives answer(4))\n       got: 0 -> 4\n";
    assert!(text.contains(step) && chart.contains("answer(4)"), "{text}\n{chart}");
    assert!(page.contains("<code>P: sync answer!n + 1; (a -&gt; b, line 1, sends answer(4))</code>"), "{page}");
    assert_eq!(json["steps"][0]["message"]["values"], serde_json::json!([4]));
    // Networks and nets have no statements, but states.
    let (text, json, chart, page) = texts(&file("crossing.exp"), &["--goal", "gate == 1", "--states"]);
    assert!([&text, &chart, &page].iter().all(|all| all.contains("gate = 1")), "{text}\n{chart}\n{page}");
    assert!(json["steps"].as_array().unwrap().iter().all(|step| step["state"].is_object()), "{json}");
    let (_folder, net) = written_as("net.pnml", &nets::asking());
    let (text, json, chart, page) = texts(&net, &["--deadlock", "--states"]);
    assert!([&text, &chart, &page].iter().all(|all| all.contains(" = 0")), "{text}\n{chart}\n{page}");
    assert!(json["steps"].as_array().unwrap().iter().all(|step| step["state"].is_object()), "{json}");
}

pub fn what_holds_is_not_reported(place: TableOnDevice) {
    for (name, arguments) in [
        ("peterson", &["--deadlock", "--invariant", EXCLUSION, "--goal", "P_0.critical and P_1.critical"][..]),
        ("river", &["--deadlock", "--goal", "wolf == goat and goat != farmer"]),
        ("mailbox", &["--invariant", "P_0.next <= 4 and P_1->next <= 4"]),
    ] {
        let (code, report) = place.json(&model(name), arguments);
        assert_eq!((code, &report["path"]), (Some(0), &Value::Null), "{name}");
    }
}

pub fn assertions_are_checked(place: TableOnDevice) {
    let text = std::fs::read_to_string(model("mailbox")).unwrap();
    let (_folder, path) = written(&text.replace("sync box!{1, next};", "sync box!{0, next};"));
    let (code, report) = place.json(&path, &[]);
    // The values 0, 0 from both producers are in the box and taken; the second 0 is not the expected value.
    assert_eq!(
        (code, report["violation"].as_str()),
        (Some(1), Some("assertion violated: Consumer.taken: number == expected[from] (line 29)"))
    );
    assert_eq!(report["path"]["length"], 5);
    let (code, report) = place.json(&path, &["--keep-going"]);
    assert_eq!((code, &report["complete"]), (Some(1), &Value::Bool(true)));
}

pub fn faults_of_a_model_come_with_a_path(place: TableOnDevice) {
    let text = "byte a[3], i;\nprocess P {\n state s;\n init s;\n trans s -> s {\n  effect a[i] = 1,\n   i = i + 1; };\n}\nsystem async;";
    let (_folder, path) = written(text);
    for arguments in [&[][..], &["--keep-going"]] {
        let (code, report) = place.json(&path, arguments);
        assert_eq!((code, report["path"]["length"].as_u64(), report["complete"].as_bool()), (Some(1), Some(3), Some(false)));
        let found = report["violation"].as_str().unwrap();
        assert!(found.ends_with(":6:10: the array a has 3 elements, but its index is 3"), "{found}");
        let attempt = &report["path"]["attempt"];
        assert_eq!((&attempt["move"]["line"], &attempt["values"]), (&Value::from(5), &serde_json::json!({ "i": 3 })), "{report}");
    }
    let output = explore_on(place.device, &path, ["--table", place.table, "--invariant", "1 / (2 - i) < 9"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("There: fault in the condition `1 / (2 - i) < 9`: division by zero\n"), "{text}");
    let text = String::from_utf8(explore_on(place.device, &path, ["--table", place.table]).stdout).unwrap();
    let attempt = "  4. fails: P: effect a[i] = 1, i = i + 1; (line 5)\n       6 |   effect a[i] = 1,\n         |          ^^^^\n       i = 3\n\
                   There: fault at ";
    assert!(text.contains(attempt), "{text}");
    // A fault ends the search even after another violation.
    for condition in ["i < 1", "i < 3", "1 / (2 - i) < 9"] {
        let (code, report) = place.json(&path, &["--keep-going", "--invariant", condition]);
        assert_eq!((code, report["end"].as_str()), (Some(1), Some("found")), "{condition}");
    }
}

/// A counter that passes 3 and later returns to it: the lowest level of 3 is the third.
pub fn going_on_keeps_the_shortest_path(place: TableOnDevice) {
    for last in ["s -> s { guard x == 9; effect x = 0; }", "s -> s { guard x == 8; effect x = 3; }"] {
        let text = "byte x; process P { state s; init s; trans s -> s { guard x < 9; effect x = x + 1; },".to_string();
        let (_folder, path) = written(&format!("{text} {last}; }} system async;"));
        let (code, report) = place.json(&path, &["--keep-going", "--goal", "x == 3"]);
        assert_eq!((code, &report["complete"], counts(&report)[0]), (Some(1), &Value::Bool(true), 10), "{last}");
        assert_eq!((&report["no_path"], report["path"]["length"].as_u64()), (&Value::Null, Some(3)), "{last}");
    }
}

/// Each check has the number of violating states and the depth of the first one: of all states, or of those up to the level at
/// which the search stopped. More conditions than a word has bits, levels that are repeated, and ranks make no difference.
pub fn violating_states_are_counted(place: TableOnDevice) {
    let text = COUNTERS.replace("30", "9");
    let (_folder, path) = written(&text);
    let states: Vec<[u64; 3]> = (0..1000).map(|number| [number / 100, number / 10 % 10, number % 10]).collect();
    // A condition, and whether a state violates it.
    type Condition = (String, Box<dyn Fn(&[u64; 3]) -> bool>);
    let mut invariants: Vec<Condition> = vec![
        ("a + b + c <= 27".into(), Box::new(|_| false)),
        ("a + b < 5 or c == 1".into(), Box::new(|[a, b, c]| a + b >= 5 && *c != 1)),
        ("a != 7".into(), Box::new(|[a, ..]| *a == 7)),
    ];
    invariants.extend((0..32).map(|sum| -> Condition { (format!("a + c != {sum}"), Box::new(move |[a, _, c]| a + c == sum)) }));
    let asked: Vec<&str> = invariants.iter().flat_map(|(text, _)| ["--invariant", text]).chain(["--deadlock"]).collect();
    let expected = |most: u64| {
        let one = |violates: &dyn Fn(&[u64; 3]) -> bool| {
            let levels = states.iter().filter(|state| violates(state)).map(|state| state.iter().sum::<u64>());
            let levels: Vec<u64> = levels.filter(|level| *level <= most).collect();
            (levels.len() as u64, levels.into_iter().min())
        };
        let deadlocks = one(&|state| *state == [9; 3]);
        invariants.iter().map(|(_, violates)| one(violates)).chain([deadlocks]).collect::<Vec<_>>()
    };
    let ranks: &[&str] = if place.table == "indexed" { &[] } else { &["--local-ranks", "3"] };
    for more in [&["--engine", "interpreted"][..], &["--engine", "compiled"], ranks, &[]] {
        let (code, report) = place.json(&path, &[&asked, more, &["--keep-going"]].concat());
        let checks = report["checks"].as_array().unwrap();
        let found = checks.iter().map(|check| (check["states"].as_u64().unwrap(), check["depth"].as_u64()));
        assert_eq!((code, found.collect::<Vec<_>>()), (Some(1), expected(u64::MAX)), "{more:?}");
        assert!(checks.iter().all(|check| check["at_least"] == false), "{more:?}");
    }
    let of_sum = ["--invariant", "a + b < 5 or c == 1"];
    let output = explore_on(place.device, &path, [&of_sum[..], &["--keep-going", "--table", place.table]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("  VIOLATED (765 states, first at depth 5): invariant a + b < 5 or c == 1\n"), "{text}");
    // The search stops behind the level of the first violation.
    for more in [&["--engine", "interpreted"][..], ranks, &[]] {
        let output = explore_on(place.device, &path, [&of_sum[..], more, &["--table", place.table]].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let line = "  VIOLATED (at least 6 states, first at depth 5): invariant a + b < 5 or c == 1\n";
        assert!(text.contains(line), "{more:?} {text}");
    }
}

pub fn a_fault_is_reported_whatever_was_found_before(place: TableOnDevice) {
    let (_folder, path) = written(
        "byte x, a[2]; process P { state s; init s; trans
            s -> s { guard x < 3; effect x = x + 1; }, s -> s { guard x == 3; effect a[x] = 1; }; } system async;",
    );
    let (code, report) = place.json(&path, &["--keep-going", "--goal", "x == 1"]);
    let found = report["violation"].as_str().unwrap();
    assert!(found.ends_with("the array a has 2 elements, but its index is 3"), "{found}");
    assert_eq!((code, report["path"]["length"].as_u64()), (Some(1), Some(3)));
    // The counts include nothing of the step that has the fault.
    assert_eq!(counts(&report), [4, 3, 0, 4, 1]);
}

pub fn overflows_are_reported(place: TableOnDevice) {
    let (_folder, path) = written("byte i; process P { state s; init s; trans s -> s { effect i = i + 1; }; } system async;");
    let (code, report) = place.json(&path, &[]);
    assert_eq!((code, counts(&report), report["counts"]["overflows"].as_u64()), (Some(0), [256, 256, 0, 256, 1], Some(1)));
    let output = explore_on(place.device, &path, ["--table", place.table]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("  note: 1 store wrapped: values are taken modulo "));
    let (_, report) = json(&path, &["--ltl", "F G i == 1"]);
    let steps = report["lasso"]["steps"].as_array().unwrap();
    let wrapped = steps.iter().find(|step| step["wrapped"] != serde_json::json!({})).unwrap();
    assert_eq!((&wrapped["wrapped"]["i"], &wrapped["changes"]["i"]), (&Value::from(256), &serde_json::json!([255, 0])));
    let output = explore(&path, ["--ltl", "F G i == 1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("i: 255 -> 0 (wrapped from 256)\n") && text.contains(" (of model and automaton)\n"), "{text}");
}

pub fn long_paths_are_found(place: TableOnDevice) {
    let (_folder, path) = written(&chain(2000));
    let (code, report) = place.json(&path, &["--deadlock", "--capacity", "64"]);
    assert_eq!((code, &report["no_path"], report["path"]["length"].as_u64()), (Some(1), &Value::Null, Some(2000)));
}

/// Counts and length of the path are the same with every table, with or without parents.
pub fn parents_are_kept_while_the_table_grows(place: TableOnDevice) {
    let (_folder, path) = written(COUNTERS);
    let last = ["--goal", "a == 30 and b == 30 and c == 30"];
    let begins = ["--capacity", "64"];
    for (goal, length) in [(last, 90), (["--goal", "a == 7 and c == 11"], 18), (["--goal", "true"], 0)] {
        let (code, report) = place.json(&path, &[&goal[..], &begins, &["--keep-going"]].concat());
        assert_eq!((code, &report["no_path"], report["path"]["length"].as_u64()), (Some(1), &Value::Null, Some(length)));
        assert_eq!(counts(&report), [29_791, 86_490, 1, 91, 721]);
        // A search that ends at the violation has the same path.
        let (code, report) = place.json(&path, &[&goal[..], &begins].concat());
        assert_eq!((code, &report["no_path"], report["path"]["length"].as_u64()), (Some(1), &Value::Null, Some(length)));
    }
    if place.table != "indexed" {
        return;
    }
    // --parents implies the kind of table. A fault also has its path by parents if nothing else is checked.
    let (code, report) = json_on(place.device, &path, &[&last[..], &begins, &["--parents"]].concat());
    assert!(code == Some(1) && report["table"]["kind"].as_str().is_some_and(|table| table.contains("index")), "{report}");
    let (_folder, faulty) = written(
        "byte i, a[3]; process P { state s; init s; trans s -> s { guard i < 9; effect a[i] = 1, i = i + 1; }; } system async;",
    );
    let (code, report) = json_on(place.device, &faulty, &["--parents", "--capacity", "1"]);
    assert_eq!((code, &report["no_path"], report["path"]["length"].as_u64()), (Some(1), &Value::Null, Some(3)));
}

/// The table takes the memory left by the lists of states, but a path needs longer lists.
pub fn what_was_found_is_reported_without_a_path_too() {
    let (_folder, path) = written(COUNTERS);
    let arguments = ["--deadlock", "--table", "bucket", "--capacity", "65536", "--memory", "340k"];
    let (code, report) = json(&path, &arguments);
    assert_eq!((code, counts(&report)), (Some(1), [29_791, 86_490, 1, 91, 721]), "{report}");
    assert_eq!(report["violation"].as_str(), Some("deadlock: no step is possible"));
    assert_eq!((&report["state"]["variables"]["a"], &report["path"]), (&Value::from(30), &Value::Null));
    assert!(report["no_path"].as_str().is_some_and(|why| why.starts_with("memory ran out")), "{report}");
    let output = explore(&path, arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "29,791",
        "deadlock: no step is possible",
        "in P.s, a = 30, b = 30, c = 30, 90 steps",
        "The path cannot be shown: memory ran out",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

pub fn cycles_are_measured(place: TableOnDevice) {
    let (_folder, path) = written(COUNTERS);
    let (code, report) = place.json(&path, &["--gpu-time"]);
    assert_eq!((code, counts(&report)), (Some(0), [29_791, 86_490, 1, 91, 721]));
    for name in ["fetching", "generating", "caching", "putting", "waiting"] {
        assert!(report["gpu_time"]["cycles"][name].as_u64().is_some_and(|cycles| cycles > 0), "{name}: {report}");
    }
    // Levels that found the table full are repeated.
    assert!(report["gpu_time"]["offered"].as_u64().is_some_and(|offered| offered >= 86_490), "{report}");
    let output = explore_on(place.device, &path, ["--gpu-time", "--table", place.table]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the table alone was not measured: too few states"), "{text}");
}

pub fn the_time_is_split() {
    let mut command = command_of(model("peterson").to_str().unwrap(), &["--engine", "compiled", "--json"]);
    let report = only_object(&command.env("WARPSET_CACHE", "off").output().unwrap());
    for name in ["explore", "parse", "device", "table", "compile", "path"] {
        assert!(report["time"][name].as_f64().is_some_and(|seconds| seconds >= 0.0), "{name}: {report}");
    }
    assert!(report["time"]["compile"].as_f64() > Some(0.01), "a compiler takes longer");
    let text = String::from_utf8(explore(&model("peterson"), [""; 0]).stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("time ")).unwrap();
    assert!([" parse ", " table ", " compile ", " explore "].iter().all(|part| line.contains(part)), "{line}");
}

pub fn counts_say_what_they_rest_on() {
    let (_, report) = json(&model("peterson"), &[]);
    assert_eq!(report["basis"], "exact: states are compared as a whole");
    let text = String::from_utf8(explore(&model("peterson"), [""; 0]).stdout).unwrap();
    assert!(text.contains("basis              exact: states are compared as a whole"), "{text}");
}
