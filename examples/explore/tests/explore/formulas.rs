//! Questions about runs: formulas, automata, fairness and possibility.

use super::*;

/// Verdicts that a reader can follow; for violated formulas the number of steps before the loop, and in the loop.
pub fn formulas_have_their_verdicts(place: TableOnDevice) {
    for (name, formula, automaton, run) in [
        ("peterson", "G (P_0.waiting -> F P_0.critical)", "weak", None),
        ("peterson", "G !(P_0.critical && P_1.critical)", "terminal", None),
        ("peterson", "G F P_0.critical", "weak", Some((1, 4))),
        ("peterson", "(G F P_0.waiting) -> G F P_0.critical", "general", None),
        ("peterson", "(G F P_0.idle) && (G F P_1.idle) -> G F turn == 1", "general", Some((1, 4))),
        ("peterson", "P_0.idle U P_0.asked", "weak", Some((0, 4))),
        ("river", "G F (farmer == 0)", "weak", None),
        // The run stops in a deadlock forever.
        ("mailbox", "F G (P_0.next == 4 && P_1->next == 4)", "general", None),
        ("philosophers", "G F Phil_0.ate", "weak", Some((1, 5))),
        // A philosopher who has eaten may keep its fork forever.
        ("philosophers", "(G F Phil_0.ate) -> G F Phil_0.own", "general", Some((3, 5))),
        ("readers_writers", "G F (R_0.outside || R_1.outside)", "weak", Some((4, 1))),
        ("readers_writers", "F X X (R_0.upgrading and R_1.upgrading)", "weak", Some((2, 2))),
    ] {
        for arguments in [&[][..], &["--keep-going"]] {
            let (code, report) = place.json(&model(name), &[&["--ltl", formula], arguments].concat());
            let verdict = if run.is_some() { "violated" } else { "holds" };
            assert_eq!((report["verdict"].as_str(), report["automaton"].as_str()), (Some(verdict), Some(automaton)), "{formula}");
            assert_eq!((code, &report["violation"]), (Some(run.is_some().into()), &Value::Null), "{formula}");
            let lasso = &report["lasso"];
            let steps = run.map(|_| ["loop_begins", "loop_length", "length"].map(|name| lasso[name].as_u64().expect(name)));
            let expected = run.map(|(before, inside)| [before, inside, before + inside]);
            assert_eq!((steps, &report["no_lasso"]), (expected, &Value::Null), "{name}: {formula}");
        }
    }
    // A limit ends the search before there is a verdict.
    let (_folder, path) = written(ENDLESS_COUNTER);
    let (code, report) = place.json(&path, &["--ltl", "F G x > 2", "--max-states", "100"]);
    assert_eq!((code, report["verdict"].as_str(), report["lasso"].is_null()), (Some(3), Some("unknown"), true));
    // The formula is violated however the run continues.
    let (code, report) = place.json(&path, &["--ltl", "G x < 50", "--max-states", "1000"]);
    assert_eq!((code, report["verdict"].as_str(), report["lasso"]["length"].as_u64()), (Some(1), Some("violated"), Some(51)));
    assert_eq!(report["lasso"]["loop_begins"], Value::Null);
    // A run that then comes to a fault violates it, too.
    let (_folder, path) = written(
        "byte x, a[3]; process P { state s; init s; trans s -> s { guard x < 3; effect x = x + 1; },
             s -> s { guard x == 3; effect a[x] = 1; }; } system async;",
    );
    let (code, report) = place.json(&path, &["--ltl", "G x != 1"]);
    assert_eq!((code, report["verdict"].as_str(), report["lasso"]["length"].as_u64()), (Some(1), Some("violated"), Some(2)));
    assert_eq!(report["lasso"]["loop_begins"], Value::Null);
}

/// Products in which searches during the exploration find a cycle, or only the last search does; for which a table that begins
/// small must grow; and whose residues are too large for one thread.
pub fn runs_of_large_products_are_shortest(place: TableOnDevice) {
    // One process counts to 604, and from 600 on in a circle; another one counts in a circle beside it.
    let (_folder, path) = written(
        "int x, y; process P { state s; init s; trans s -> s { guard x < 39; effect x = x + 1; },
            s -> s { guard x == 39; effect x = 0; }; }
         process Q { state s, t; init s; trans s -> s { guard y < 604; effect y = y + 1; },
            s -> s { guard y == 604; effect y = 600; }, s -> t { guard y == 303; }; } system async;",
    );
    for (formula, begins, inside) in [
        ("G F y < 600 || F Q.t", 601, 5),
        ("F y == 604 || F Q.t", 0, 40),
        ("F G x != 7", 8, 40),
        ("G (Q.t -> F x == 41)", 305, 40),
        ("G F (y < 600 || x < 38) || F Q.t", 639, 5),
    ] {
        for arguments in [&[][..], &["--keep-going"], &["--keep-going", "--capacity", "64"]] {
            let (code, report) = place.json(&path, &[&["--ltl", formula], arguments].concat());
            let lasso = &report["lasso"];
            let found = (code, lasso["loop_begins"].as_u64(), lasso["loop_length"].as_u64());
            assert_eq!(found, (Some(1), Some(begins), Some(inside)), "{formula} {arguments:?}: {}", report["no_lasso"]);
        }
    }
}

/// Counts without an end in practice: any limit of states is reached.
const ENDLESS_COUNTER: &str = "int x; byte y; process P { state s; init s; trans s -> s { guard x < 30000; effect x = x + 1; }, \
    s -> s { guard x == 30000; effect y = y + 1, x = 0; }; } system async;";

pub fn fairness_and_possibility_have_their_verdicts(place: TableOnDevice) {
    for (name, arguments, verdict) in [
        // P_1 may take steps forever while P_0 has not asked, but not in a fair run.
        ("peterson", &["--ltl", "G F P_0.critical"][..], "violated"),
        ("peterson", &["--ltl", "G F P_0.critical", "--fair", "weak"], "holds"),
        ("peterson", &["--ltl", "F P_0.critical", "--fair", "weak"], "holds"),
        ("peterson", &["--ltl", "!(F P_0.critical)", "--fair", "weak"], "violated"),
        ("readers_writers", &["--ltl", "G F R_0.outside", "--fair", "weak"], "violated"),
        ("peterson", &["--ef", "P_0.critical"], "holds"),
        // Even in a fair run all may take the fork on their right, and then none of them moves.
        ("philosophers", &["--ltl", "G F Phil_0.ate", "--fair", "weak"], "violated"),
        ("philosophers", &["--ef", "Phil_0.ate"], "violated"),
        ("readers_writers", &["--ef", "R_0.writing"], "violated"),
        ("peterson", &["--livelock", "P_0.critical"], "holds"),
        // A deadlock is not a livelock.
        ("readers_writers", &["--livelock", "R_0.writing"], "holds"),
        ("river", &["--livelock", "farmer == 2"], "violated"),
    ] {
        let (code, report) = place.json(&model(name), arguments);
        let violated = verdict == "violated";
        assert_eq!((code, report["verdict"].as_str()), (Some(violated.into()), Some(verdict)), "{name} {arguments:?}");
        assert_eq!(report["lasso"].is_object() || report["path"].is_object(), violated, "{name} {arguments:?}");
    }
    let (_, report) = place.json(&model("readers_writers"), &["--ef", "R_0.writing"]);
    assert_eq!((&report["path"]["length"], &report["path"]["violation"]["kind"]), (&Value::from(4), &Value::from("never")));
    let (code, report) = place.json(&model("mailbox"), &["--ef", "P_0.next == 4", "--max-states", "50"]);
    assert_eq!((code, report["verdict"].as_str()), (Some(3), Some("unknown")));
    // A fault of the condition is reported as a fault, with a path to the nearest state that has it.
    for question in ["--ef", "--livelock"] {
        let (code, report) = place.json(&model("mailbox"), &[question, "10 / (P_0.next - 2) == 10"]);
        let kind = &report["path"]["violation"]["kind"];
        assert_eq!((code, report["verdict"].as_str(), kind), (Some(1), Some("unknown"), &Value::from("fault")), "{report}");
    }
}

/// Verdicts of branching time that a reader can follow, with the number of states that satisfy the formula.
pub fn branching_time_has_its_verdicts(place: TableOnDevice) {
    for (name, formula, holds, states) in [
        ("peterson", "AG (P_0.waiting -> AF P_0.critical)", true, 20),
        ("peterson", "AG EF P_0.critical", true, 20),
        ("peterson", "AF P_0.critical", false, 14),
        ("peterson", "EG P_0.idle", true, 6),
        ("peterson", "AX P_0.idle", false, 1),
        ("peterson", "E[P_0.idle U P_1.critical]", true, 8),
        ("peterson", "A[P_0.idle W P_0.asked]", true, 12),
        ("river", "EF (farmer && wolf && goat && cabbage)", true, 10),
        // Philosophers may all hold one fork, where each path ends.
        ("philosophers", "EF AX false", true, 392),
        ("philosophers", "AG EX true", false, 0),
    ] {
        let arguments = ["--keep-going", "--ctl", formula];
        let (code, report) = place.json(&model(name), &arguments);
        let verdict = if holds { "holds" } else { "violated" };
        let check = &report["checks"][0];
        assert_eq!((code, check["verdict"].as_str()), (Some((!holds).into()), Some(verdict)), "{name}: {formula}");
        let found = check["satisfying"].as_u64().unwrap();
        assert_eq!(found, states, "{name}: {formula}");
        // A goal asks the same.
        let condition = formula.strip_prefix("EF ").filter(|rest| !rest.contains('X'));
        if let Some(condition) = condition {
            let (_, report) = place.json(&model(name), &["--goal", condition]);
            assert_eq!(report["checks"][0]["verdict"] == "reached", holds, "{formula}");
        }
    }
    // AG EF is what --ef asks, and AG what --invariant does.
    for (name, condition) in [("peterson", "P_0.critical"), ("philosophers", "Phil_0.ate"), ("readers_writers", "R_0.writing")] {
        let (_, possible) = place.json(&model(name), &["--ef", condition]);
        let (_, invariant) = place.json(&model(name), &["--invariant", condition]);
        let formulas = [format!("AG EF {condition}"), format!("AG {condition}")];
        let (_, report) = place.json(&model(name), &["--ctl", &formulas[0], "--ctl", &formulas[1]]);
        let verdicts = [0, 1].map(|at| &report["checks"][at]["verdict"]);
        assert_eq!(verdicts, [&possible["checks"][0]["verdict"], &invariant["checks"][0]["verdict"]], "{name}: {condition}");
    }
    // EF and AG of a condition end at the first state that decides them, whatever limit there is.
    let (_folder, path) = written(ENDLESS_COUNTER);
    for (formula, code, verdict, length) in [("EF x == 70", 0, "holds", 70), ("AG x < 50", 1, "violated", 50)] {
        let (found, report) = place.json(&path, &["--ctl", formula, "--max-states", "1000"]);
        let check = &report["checks"][0];
        assert_eq!((found, check["verdict"].as_str(), check["depth"].as_u64()), (Some(code), Some(verdict), Some(length)));
        assert_eq!(check["path"]["length"].as_u64(), Some(length), "{check}");
    }
    // Where a limit ended the exploration, its states decide some formulas of several; others have no verdict.
    let formulas =
        ["AF x == 1", "EF x == 1", "EF x == -1", "AG x < 9", "AG EF x == 9"].map(|formula| ["--ctl", formula]).concat();
    let (code, report) = place.json(&path, &[&formulas[..], &["--max-states", "100"]].concat());
    let checks = [0, 1, 2, 3, 4].map(|at| (report["checks"][at]["verdict"].as_str(), report["checks"][at]["why"].as_str()));
    let open = (Some("not-decided"), Some("stopped at --max-states"));
    assert_eq!((code, checks), (Some(1), [open, (Some("holds"), None), open, (Some("violated"), None), open]), "{report}");
    let (code, report) = place.json(&path, &["--ctl", "EF x == 1", "--ctl", "EF x == 2", "--max-states", "100"]);
    assert_eq!((code, report["complete"].as_bool()), (Some(0), Some(false)), "{report}");
    // So do those of a search that a fault ended behind them, whose exit code is that of the fault.
    let (_folder, path) = written(
        "int x, y; process P { state s; init s; trans s -> s { guard x < 9; effect x = x + 1; },
         s -> s { guard x == 5; effect y = 1 / (x - 5); }; } system async;",
    );
    let (code, report) = place.json(&path, &["--keep-going", "--ctl", "EF x == 3"]);
    let checks = [0, 1].map(|at| (report["checks"][at]["kind"].as_str(), report["checks"][at]["verdict"].as_str()));
    assert_eq!((code, checks), (Some(1), [(Some("fault"), Some("violated")), (Some("ctl"), Some("holds"))]), "{report}");
    // Where an operand is expected, the name of an operator is a variable.
    let (_folder, path) = written(
        "byte U, W; process P { state s; init s; trans s -> s { guard U < 3; effect U = U + 1; }, s -> s { guard U == 3; effect W = 1; }; }
         system async;",
    );
    for (formula, states) in
        [("EF U == 3 && EX true", 5), ("E[U < 3 U U == 3]", 5), ("A[W == 0 W W == 1]", 5), ("AG (W == 1 -> U == 3)", 5)]
    {
        let (found, report) = place.json(&path, &["--keep-going", "--ctl", formula]);
        assert_eq!((found, report["checks"][0]["satisfying"].as_u64()), (Some(0), Some(states)), "{formula}: {report}");
    }
    // Conditions are evaluated from left to right: `a[x]` has no value in some states, where it is not asked for.
    let (_folder, path) = written(
        "byte x, a[2] = {0, 1}; process P { state s, t; init s; trans s -> t { guard x < 3; effect x = x + 1; }, t -> s {}; }
         system async;",
    );
    for (formula, code, states) in [
        ("AG (x >= 2 || a[x] < 2)", 0, 7),
        ("EG (x < 2 && a[x] == 0 || x > 1)", 1, 4),
        ("EF (P.t && !(x >= 2 || a[x] != 1)) && EX true", 0, 2),
    ] {
        let (found, report) = place.json(&path, &["--keep-going", "--ctl", formula]);
        assert_eq!((found, report["checks"][0]["satisfying"].as_u64()), (Some(code), Some(states)), "{formula}: {report}");
    }
    // A fault of a condition is reported as a fault, with a path to the nearest state that has it.
    let (code, report) = place.json(&model("mailbox"), &["--ctl", "AG EF 10 / (P_0.next - 2) == 10"]);
    let kinds = [0, 1].map(|at| report["checks"][at]["kind"].as_str());
    assert_eq!((code, kinds), (Some(1), [Some("fault"), Some("ctl")]), "{report}");
    assert_eq!(report["checks"][1]["verdict"], "not-decided", "{report}");
    // Formulas without that condition are decided.
    let (code, report) =
        place.json(&model("mailbox"), &["--ctl", "AG EF 10 / (P_0.next - 2) == 10", "--ctl", "EF AX false || EX true"]);
    assert_eq!((code, report["checks"][2]["verdict"].as_str()), (Some(1), Some("holds")), "{report}");
}

/// Paths of branching time in text, JSON, files and pages; the exit code of several formulas; what is refused.
pub fn paths_of_branching_time_are_shown() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let trace = file("trace.json");
    let formulas = ["--ctl", "EX P_1.asked", "--ctl", "AF P_0.critical", "--ctl", "AG EF P_0.critical"];
    let text = String::from_utf8(explore(&model("peterson"), [&formulas[..], &["--trace", &trace]].concat()).stdout).unwrap();
    for part in [
        "  VIOLATED (holds in 14 of 20 states): ctl AF P_0.critical\n",
        "  holds (in 20 of 20 states): ctl AG EF P_0.critical\n",
        "formula holds: EX P_1.asked\nA path that shows it has 1 step (lines of ",
        "formula violated: AF P_0.critical\nA path that shows it has 0 steps, then a loop of 4 steps",
        "The loop, repeated forever, from P_0.idle, P_1.idle:\n",
        "This is the state after step 0 again.",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    // The file has the path of the first formula that is violated.
    let path: Value = serde_json::from_slice(&std::fs::read(&trace).unwrap()).unwrap();
    assert_eq!(path["violation"]["text"], "formula violated: AF P_0.critical");
    assert_eq!((path["loop_begins"].as_u64(), path["loop_length"].as_u64()), (Some(0), Some(4)), "{path}");
    let (code, report) = json(&model("peterson"), &formulas);
    assert_eq!((code, report["ctl"]["formulas"].as_u64(), report["ctl"]["in_sweeps"].as_bool()), (Some(1), Some(3), Some(false)));
    assert_eq!((&report["checks"][1]["lasso"], &report["checks"][1]["path"]), (&path, &Value::Null));
    assert_eq!(report["checks"][0]["path"]["length"].as_u64(), Some(1), "{report}");
    // A path that ends in a deadlock.
    let (_, report) = json(&model("philosophers"), &["--ctl", "AF Phil_0.ate"]);
    let check = &report["checks"][0];
    assert_eq!(check["verdict"], "violated", "{report}");
    let shown = [&check["path"], &check["lasso"]].into_iter().find(|path| path.is_object()).unwrap();
    assert!(shown["ends_in_deadlock"] == true || shown["loop_length"].as_u64() > Some(0), "{shown}");
    let chart = file("trace.txt");
    explore(&model("peterson"), ["--ctl", "AF P_0.critical", "--trace", &chart, "--report", &file("page.html")]);
    assert!(std::fs::read_to_string(&chart).unwrap().contains("formula violated: AF P_0.critical"));
    assert!(std::fs::read_to_string(file("page.html")).unwrap().contains("AF P_0.critical"));
    // Without memory for all steps, successors are computed again, with the same verdicts.
    let (_folder, counters) = written(COUNTERS);
    let wanted =
        ["--ctl", "AG (a == 3 -> EF b == 29)", "--ctl", "EG a < 30", "--ctl", "E[b < 2 U c == 30]", "--ctl", "AF a == 30"];
    let verdicts = |more: &[&str]| {
        let (_, report) = json(&counters, &[&wanted[..], more].concat());
        let checks = report["checks"].as_array().unwrap().clone();
        let of = |check: &Value| (check["verdict"].to_string(), check["satisfying"].as_u64());
        let all: Vec<_> = checks.iter().filter(|check| check["kind"] == "ctl").map(of).collect();
        (report["ctl"]["in_sweeps"].as_bool(), all)
    };
    let (whole, part) = (verdicts(&[]), verdicts(&["--memory", "1500k"]));
    assert_eq!((whole.0, part.0, whole.1), (Some(false), Some(true), part.1));
    for (arguments, why) in [
        (&["--fair", "weak"][..], "fairness is of runs"),
        (&["--local-ranks", "2"], "it needs a search in one table"),
        (&["--ltl", "F P_0.critical"], "one kind of question"),
        (&["--reduce", "auto"], "leaves states and steps out"),
        (&["--table", "indexed"], "--table indexed"),
    ] {
        let output = explore(&model("peterson"), [&["--ctl", "AF P_0.critical"], arguments].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(why), "{arguments:?}: {text}");
    }
}

pub fn runs_are_printed_with_their_loop() {
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("trace.json");
    let arguments = ["--ltl", "G F P_0.critical", "--trace", trace.to_str().unwrap()];
    let text = String::from_utf8(explore(&model("peterson"), arguments).stdout).unwrap();
    for part in [
        "property           G F P_0.critical\nautomaton          2 states, weak\n",
        "verdict            the property is VIOLATED",
        "A run that violates the property: 1 step, then a loop of 4 steps",
        "  0. initial state: P_0.idle, P_1.idle, automaton.q0\n  1. P_1: effect wants[1] = 1; (idle -> asked, line 21) [q0 -> q1]\n       wants[1]: 0 -> 1\n",
        "The loop, repeated forever, from P_0.idle, P_1.asked, automaton.q1, wants[1] = 1:\n  2. P_1: effect turn = 0; (asked -> waiting, line 22)\n",
        "This is the state after step 1 again.",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&trace).unwrap()).unwrap();
    assert_eq!((&written["loop_begins"], &written["violation"]["kind"]), (&Value::from(1), &Value::from("cycle")));
    assert_eq!(written["steps"].as_array().unwrap().len(), 5);
    assert_eq!(written["steps"][0]["automaton"], serde_json::json!(["q0", "q1"]));
    assert!(!text.contains("assertions  ") && !text.contains("is certain after"), "{text}");
    // A run that ends continues in its last state.
    let text = String::from_utf8(explore(&model("mailbox"), ["--ltl", "G F Consumer.taken"]).stdout).unwrap();
    assert!(text.contains("no step is possible: the run stays in this state"), "{text}");
    assert!(text.contains("assertions         NOT checked (1): search without the property\n"), "{text}");
    // The steps after the violation of a safety formula are any continuation.
    let text = String::from_utf8(explore(&model("peterson"), ["--ltl", "G P_0.idle"]).stdout).unwrap();
    assert!(text.contains("The violation is certain after step ") && text.contains("terminal"), "{text}");
    // A property that holds has no run to be written.
    let other = folder.path().join("other.json");
    let holds = ["--ltl", "G not (P_0.critical and P_1.critical)", "--trace", other.to_str().unwrap()];
    let text = String::from_utf8(explore(&model("peterson"), holds).stdout).unwrap();
    assert!(text.contains("trace              NOTHING written: no path or run to show") && !other.exists(), "{text}");
    let report = only_object(&explore(&model("peterson"), [&holds[..], &["--json"]].concat()));
    assert!(report["not_traced"].as_str().unwrap().starts_with("NOTHING written"), "{report}");
    assert_eq!(report["unchecked_assertions"], 0);
    let report = only_object(&explore(&model("mailbox"), ["--ltl", "G F Consumer.taken", "--json"]));
    assert_eq!((&report["not_traced"], &report["unchecked_assertions"]), (&Value::Null, &Value::from(1)));
}

pub fn formulas_are_refused_with_their_place() {
    for (formula, message) in [
        ("G (P_0.waiting -> F P_0.criticl)", "--ltl:1:25: there is no state or variable of P_0 `criticl`"),
        ("G (P_0.waiting -> ", "--ltl:1:19: the formula ends here"),
        ("G turn == 3 )", "--ltl:1:13: `)` is not expected here"),
        ("", "--ltl:1:1: the formula is empty: a proposition was expected"),
        ("GF critical", "--ltl:1:4: there is no variable or constant `critical`"),
    ] {
        let output = explore(&model("peterson"), ["--ltl", formula, "--json"]);
        let error = only_object(&output)["error"].as_str().unwrap().to_string();
        assert!(output.status.code() == Some(2) && error.starts_with(message), "{formula}: {error}");
    }
    for others in [&["--deadlock"][..], &["--invariant", "turn < 2"], &["--buchi", "x"], &["--no-property"], &["--ef", "turn"]] {
        let output = explore(&model("peterson"), [&["--ltl", "F turn"], others].concat());
        assert_eq!(output.status.code(), Some(2), "{others:?}: {output:?}");
    }
    let output = explore(&model("peterson"), ["--emit-buchi", "/dev/null"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no property"), "{output:?}");
}

pub fn automata_are_written_and_read() {
    let folder = TempDir::new().unwrap();
    let [hoa, dot] = ["a.hoa", "a.dot"].map(|name| folder.path().join(name));
    let formula = "(G F P_0.waiting) -> G F (turn == 1 && P_0.critical)";
    for file in [&hoa, &dot] {
        let output = explore(&model("peterson"), ["--ltl", formula, "--emit-buchi", file.to_str().unwrap()]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{output:?}");
    }
    assert!(std::fs::read_to_string(&dot).unwrap().starts_with("digraph \"not ((G F P_0.waiting) -> "));
    let text = std::fs::read_to_string(&hoa).unwrap();
    assert!(text.contains("AP: 3 \"P_0.waiting\" \"turn == 1\" \"P_0.critical\"\n"), "{text}");
    let (code, by_formula) = json(&model("peterson"), &["--ltl", formula, "--keep-going"]);
    let (same_code, by_file) = json(&model("peterson"), &["--buchi", hoa.to_str().unwrap(), "--keep-going"]);
    assert_eq!(code, same_code);
    for name in ["verdict", "automaton", "automaton_states", "states", "transitions", "accepting"] {
        let of = |report: &Value| (report[name].clone(), report["counts"][name].clone());
        assert_eq!(of(&by_formula), of(&by_file), "{name}");
    }
    // Errors show their place in the file; an unsupported acceptance condition is named.
    std::fs::write(&hoa, text.replace("turn == 1", "tern == 1")).unwrap();
    let error = String::from_utf8(explore(&model("peterson"), ["--buchi", hoa.to_str().unwrap()]).stderr).unwrap();
    assert!(error.contains("there is no variable or constant `tern`") && error.contains("a.hoa:6"), "{error}");
    std::fs::write(&hoa, text.replace("1 Inf(0)", "2 Inf(0)&Inf(1)")).unwrap();
    let error = String::from_utf8(explore(&model("peterson"), ["--buchi", hoa.to_str().unwrap()]).stderr).unwrap();
    assert!(error.contains("2 Inf(0)&Inf(1)"), "{error}");
    // The output includes the guards of a model's own process, with any comments in them.
    let (_folder, path) = written(
        "byte x, y; process P { state a; init a; trans a -> a { guard x < 3; effect x = x + 1; }; }
         process Runs { state guard0, r; init guard0; accept r; trans guard0 -> guard0 {}, guard0 -> r {
             // was: guard y == 5;
             guard x == /* not 3; */ 2
                 and y == 0; }, r -> r {}; } system async property Runs;",
    );
    let output = explore(&path, ["--emit-buchi", hoa.to_str().unwrap()]);
    let text = std::fs::read_to_string(&hoa).unwrap();
    assert!(output.status.success() && text.contains("AP: 1 \"x == 2 and y == 0\"\n"), "{text}");
    assert_eq!(json(&path, &[]).1["verdict"], "violated");
    assert_eq!(json(&path, &["--buchi", hoa.to_str().unwrap()]).1["verdict"], "violated");
    // In the file, the name of the process's own variable would mean another variable, or none.
    for other in ["byte v = 9;", "const byte v = 9;", ""] {
        for own in ["byte v = 2;", "const byte v = 2;", "byte v[3] = {0, 2, 4};"] {
            let guard = if own.contains('[') { "x == v[1]" } else { "x == v" };
            let (_folder, path) = written(&format!(
                "{other} byte x; process P {{ state a; init a; trans a -> a {{ guard x < 3; effect x = x + 1; }}; }}
                 process Runs {{ {own} state q, r; init q; accept r; trans q -> q {{}}, q -> r {{ guard {guard}; }}, r -> r {{}}; }}
                 system async property Runs;"
            ));
            let output = explore(&path, ["--emit-buchi", hoa.to_str().unwrap()]);
            let error = String::from_utf8(output.stderr).unwrap();
            let why = format!("the guard `{guard}` uses a name of process Runs itself");
            assert!(output.status.code() == Some(2) && error.contains(&why), "{other} {own}: {error}");
        }
    }
}

pub fn a_property_of_the_model_can_be_left_out() {
    let automaton = "process Runs { state q, r; init q; accept r; trans q -> q {}, q -> r { guard not P_0.critical; }, \
        r -> r { guard not P_0.critical; }; }\nsystem async property Runs;";
    let text = std::fs::read_to_string(model("peterson")).unwrap();
    let (_folder, path) = written(&text.replace("system async;", automaton));
    let (code, report) = json(&path, &["--keep-going"]);
    assert_eq!(
        (code, report["verdict"].as_str(), report["property"].as_str()),
        (Some(1), Some("violated"), Some("no run of process Runs"))
    );
    let (code, report) = json(&path, &["--no-property", "--deadlock"]);
    assert_eq!((code, counts(&report)[..4] == GOLDEN[1].1, report.get("verdict")), (Some(0), true, None));
    let (code, report) = json(&path, &["--ltl", "G (P_0.waiting -> F P_0.critical)"]);
    assert_eq!((code, report["verdict"].as_str()), (Some(0), Some("holds")));
    for arguments in [&["--deadlock"][..], &["--goal", "turn == 1"]] {
        let error = String::from_utf8(explore(&path, arguments).stderr).unwrap();
        assert!(error.contains("--no-property"), "{error}");
    }
    assert_eq!(explore(&model("peterson"), ["--no-property"]).status.code(), Some(2));
}
