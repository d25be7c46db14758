//! Verdicts of all conditions, as text and as JSON.
//!
//! Keeps this promise of `examples/explore/docs/searching.md`:
//!
//! - Each condition has a verdict, which is `holds` only if all states were found; the JSON has the form of a schema.
//! - `levels` has the size of each level, or nothing if some are unknown.

use super::*;

/// Checks a value against the part of JSON Schema that the schema of this package uses.
fn ensure_valid(schema: &Value, value: &Value, at: &str) {
    let object = schema.as_object().unwrap();
    for (key, rule) in object {
        match key.as_str() {
            "$schema" | "title" => {}
            "type" => {
                let is_of = |kind: &Value| match kind.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "number" => value.is_number(),
                    "null" => value.is_null(),
                    other => panic!("{other}"),
                };
                let kinds = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                assert!(kinds.iter().any(is_of), "{at}: {value} is not {rule}");
            }
            "enum" => assert!(rule.as_array().unwrap().contains(value), "{at}: {value} is none of {rule}"),
            // These are about objects only; `type` tells whether the value must be one.
            "required" | "properties" | "additionalProperties" if !value.is_object() => {}
            "required" => {
                for name in rule.as_array().unwrap() {
                    assert!(value.get(name.as_str().unwrap()).is_some(), "{at}: {name} is missing");
                }
            }
            "properties" => {
                for (name, of) in rule.as_object().unwrap() {
                    value.get(name).into_iter().for_each(|value| ensure_valid(of, value, &format!("{at}.{name}")));
                }
            }
            "additionalProperties" => {
                assert_eq!(rule, false);
                value
                    .as_object()
                    .unwrap()
                    .keys()
                    .for_each(|name| assert!(schema["properties"].get(name).is_some(), "{at}.{name}"));
            }
            "items" => value.as_array().into_iter().flatten().for_each(|value| ensure_valid(rule, value, &format!("{at}[]"))),
            other => panic!("this test does not know `{other}`"),
        }
    }
}

/// The checks of a run, each as `verdict kind`, after the object was validated.
fn verdicts(path: &Path, arguments: &[&str]) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let (_, report) = json(path, arguments);
    ensure_valid(&schema, &report, "report");
    let word = |check: &Value, key: &str| check[key].as_str().unwrap().to_string();
    report["checks"].as_array().unwrap().iter().map(|check| word(check, "verdict") + " " + &word(check, "kind")).collect()
}

fn head(path: &Path, arguments: &[&str]) -> Vec<String> {
    let text = String::from_utf8(explore(path, arguments).stdout).unwrap();
    assert!(text.starts_with("checks\n") && !text.contains('\x1b'), "{text}");
    text.lines().skip(1).take_while(|line| !line.is_empty()).map(|line| line.trim_start().to_string()).collect()
}

/// Outputs of all kinds have the form of the schema, also that of a search that ended early.
pub fn reports_have_the_form_of_the_schema() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (peterson, crossing) = (model("peterson"), file("crossing.exp"));
    let [record, export, trace, checkpoint] = ["r.npz", "e.aut", "t.json", "c"].map(at);
    for (path, arguments) in [
        (&peterson, &["--unreached", "--record", &record][..]),
        (&peterson, &["--export", &export]),
        (&peterson, &["--trace", &trace, "--table", "tree", "--memory", "64M"]),
        (&peterson, &["--max-states", "2", "--checkpoint", &checkpoint]),
        (&peterson, &["--resume", &checkpoint]),
        (&peterson, &["--local-ranks", "2"]),
        (&peterson, &["--reduce", "deadlocks"]),
        (&peterson, &["--ltl", "G F P_0.critical", "--fair", "weak"]),
        (&peterson, &["--ctl", "AG EF P_0.critical", "--ctl", "EF turn == 7"]),
        (&peterson, &["--livelock", "P_0.critical"]),
        (&peterson, &["--ef", "turn == 7"]),
        (&crossing, &["--interleave", "NO_GATE", "--goal", "gate == 1"]),
    ] {
        verdicts(path, arguments);
    }
    let (_folder, net) = written_as("net.pnml", &nets::asking());
    verdicts(&net, &["--deadlock"]);
}

/// The sizes of levels are those of a breadth-first search, whatever the engine.
pub fn levels_have_their_sizes() {
    let sizes: Vec<u64> = (0..=90)
        .map(|sum| {
            let of = |a: u64, b: u64| u64::from(a + b <= sum && sum - a - b <= 30);
            (0..=30).map(|a| (0..=30).map(|b| of(a, b)).sum::<u64>()).sum()
        })
        .collect();
    let (folder, path) = written(COUNTERS);
    let export = folder.path().join("e.npz");
    for arguments in [
        &["--engine", "interpreted"][..],
        &["--engine", "compiled", "--capacity", "64"],
        &["--local-ranks", "3", "--capacity", "64"],
        &["--export", export.to_str().unwrap()],
    ] {
        let (_, report) = json(&path, arguments);
        assert_eq!(report["levels"], Value::from(sizes.clone()), "{arguments:?}");
    }
    // A resumed search does not know the sizes of levels that an earlier run had begun.
    let checkpoint = folder.path().join("c").to_str().unwrap().to_string();
    let (_, report) = json(&path, &["--max-depth", "4"]);
    assert_eq!(report["levels"], Value::from(&sizes[..5]));
    json(&path, &["--max-states", "100", "--checkpoint", &checkpoint]);
    let (_, report) = json(&path, &["--resume", &checkpoint]);
    assert_eq!((report["complete"].as_bool(), &report["levels"]), (Some(true), &Value::Null));
}

pub fn each_condition_has_a_verdict() {
    let (peterson, philosophers) = (model("peterson"), model("philosophers"));
    assert_eq!(verdicts(&peterson, &["--invariant", EXCLUSION, "--deadlock"]), ["holds invariant", "holds deadlocks"]);
    let formulas = ["--ctl", "AF P_0.critical", "--ctl", "EF P_0.critical"];
    assert_eq!(verdicts(&peterson, &formulas), ["violated ctl", "holds ctl"]);
    assert_eq!(head(&peterson, &["--invariant", EXCLUSION]), [format!("holds: invariant {EXCLUSION}")]);
    // A search that ended early says of nothing that it holds.
    let cut = ["--invariant", EXCLUSION, "--goal", "turn == 7", "--deadlock", "--max-states", "2"];
    assert_eq!(verdicts(&peterson, &cut), ["not-decided invariant", "not-decided goal", "not-decided deadlocks"]);
    assert_eq!(head(&peterson, &cut)[1], "not decided (stopped at --max-states): goal turn == 7");
    // Every violation of the state that was found is named, with its depth.
    let two = ["--invariant", "P_0.critical == 0", "--invariant", "not P_0.critical", "--invariant", EXCLUSION];
    assert_eq!(verdicts(&peterson, &two), ["violated invariant", "violated invariant", "not-decided invariant"]);
    let (_, report) = json(&peterson, &two);
    assert_eq!(report["checks"][0]["depth"], report["path"]["length"], "{report}");
    assert_eq!(report["checks"][1]["depth"], report["checks"][0]["depth"]);
    assert_eq!(report["checks"][0]["path"], report["path"]);
    // A search that goes on decides all conditions.
    let going_on = [&two[..], &["--keep-going"]].concat();
    assert_eq!(verdicts(&peterson, &going_on), ["violated invariant", "violated invariant", "holds invariant"]);
    assert_eq!(head(&peterson, &going_on)[0], "VIOLATED (3 states, first at depth 3): invariant P_0.critical == 0");
    assert_eq!(verdicts(&peterson, &["--goal", "P_0.critical"]), ["reached goal"]);
    assert_eq!(verdicts(&peterson, &["--goal", "turn == 7"]), ["unreachable goal"]);
    assert_eq!(head(&philosophers, &["--deadlock", "--keep-going"]), ["VIOLATED (1 state, first at depth 5): deadlocks"]);
    assert_eq!(head(&philosophers, &["--goal", "1 == 2"])[1], "not checked: deadlocks (--deadlock)");
    assert!(head(&peterson, &[])[0].starts_with("nothing asked, so states are only counted: --deadlock"));
    // Questions about runs, and where states lead.
    for (arguments, verdict) in [
        (&["--ltl", "G F P_0.critical"][..], "violated property"),
        (&["--ltl", "G (P_0.critical -> !P_1.critical)"], "holds property"),
        (&["--ltl", "G (P_0.critical -> !P_1.critical)", "--max-states", "2"], "not-decided property"),
        (&["--ef", "P_0.critical"], "holds reachable from every state"),
        (&["--ef", "turn == 7"], "violated reachable from every state"),
        (&["--ef", "P_0.critical", "--max-states", "2"], "not-decided reachable from every state"),
        (&["--livelock", "P_0.critical"], "holds livelock"),
    ] {
        assert_eq!(verdicts(&peterson, arguments), [verdict], "{arguments:?}");
    }
    assert_eq!(head(&peterson, &["--livelock", "P_0.critical"])[0], "holds: no livelock (progress: P_0.critical)");
    assert!(head(&peterson, &formulas)[0].starts_with("VIOLATED (holds in "), "{:?}", head(&peterson, &formulas));
    let (code, report) = json(&peterson, &["--ltl", "G F P_0.critical"]);
    assert_eq!((code, &report["checks"][0]["lasso"]), (Some(1), &report["lasso"]));
    assert!(report["lasso"].is_object());
    // The assertions of a model are not checked beside a question about where states lead.
    let of_mailbox = verdicts(&model("mailbox"), &["--ef", "1 == 1"]);
    assert_eq!(of_mailbox, ["holds reachable from every state", "not-checked assertions", "not-checked deadlocks"]);
    assert_eq!(verdicts(&file("crossing.exp"), &["--goal", "gate == 7"])[0], "unreachable goal");
    let (_folder, faulty) =
        written("byte a[2]; byte x; process P { state s; init s; trans s -> s { effect x = x + 1, a[x] = 1; }; } system async;");
    assert_eq!(verdicts(&faulty, &["--invariant", "x < 9"]), ["violated fault", "not-decided invariant"]);
}

pub fn similar_names_are_suggested() {
    let (_folder, path) = written("byte leaders_1, other; process P { state s; init s; } system async;");
    for (condition, help) in [("leaders1 <= 1", "there is `leaders_1`"), ("oter == 1", "there is `other`")] {
        let said = String::from_utf8(explore(&path, ["--invariant", condition]).stderr).unwrap();
        assert!(said.contains(help), "{said}");
    }
    let said = String::from_utf8(explore(&file("crossing.exp"), ["--goal", "enabled(APROACH)"]).stderr).unwrap();
    assert!(said.contains("there is `APPROACH`"), "{said}");
}
