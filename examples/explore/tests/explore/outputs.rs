//! Files that the checker writes, pictures, and standard output that ends.
//!
//! Keeps this promise of `examples/explore/README.md`:
//!
//! - If an output cannot be written at the end, the report is printed, and the exit code tells (also
//!   `examples/decompose/tests/decompose.rs`).
//!
//! Keeps this promise of `examples/explore/docs/searching.md`:
//!
//! - Pictures show the whole state space and the run that was found; message charts have an arrow for each message (also
//!   `examples/explore/src/pictures/chart.rs`).

use super::*;

/// A page has the verdicts, the path with its states and chart, and the figures; and nothing that a browser would run or load.
pub fn a_page_shows_verdicts_path_and_figures() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("report.html");
    let page = |name: &str, arguments: &[&str]| {
        let code = explore(&model(name), [arguments, &["--report", file.to_str().unwrap()]].concat()).status.code();
        let page = std::fs::read_to_string(&file).unwrap();
        for harmful in ["<script", "javascript:", "src=", "href=\"http", "url(http", "@import"] {
            assert!(!page.contains(harmful), "{harmful}: {page}");
        }
        (code, page)
    };
    let wrong = ["--invariant", "P_0.critical + P_1.critical <= 1"];
    let (code, violated) = page("peterson_wrong", &wrong);
    let states = violated.matches("><summary>state ").count();
    assert_eq!((code, states), (Some(1), 7), "{violated}");
    for part in [
        "<li class=\"bad\">VIOLATED (at least 2 states, first at depth 6): invariant P_0.critical + P_1.critical &lt;= 1</li>",
        "<code>P_1: guard not wants[0] or turn == 1; (waiting -&gt; critical, line 23)</code>",
        "<svg ",
        "prefers-color-scheme: dark",
        "<tr><th>states</th>",
        "<p><code>explore ",
        "<p class=\"bad\">invariant violated: P_0.critical + P_1.critical &lt;= 1</p>",
        "<td><a href=\"#L23\">23</a></td>",
        "<tr id=\"L23\" class=\"path\"><td>23</td>",
        "<b>turn = 1</b>",
    ] {
        assert!(violated.contains(part), "{part} is missing: {violated}");
    }
    let (code, holds) = page("peterson", &wrong);
    assert!(code == Some(0) && holds.contains("<li class=\"good\">holds: invariant ") && !holds.contains("<h2>Path"), "{holds}");
    // A bar for each level. Coverage is shown if it was counted: here two lines have steps that never happen.
    assert_eq!((holds.matches("<rect ").count(), holds.contains("<th>steps</th>")), (7, false), "{holds}");
    assert!(holds.contains("<title>level 0: 1 state</title>"), "{holds}");
    let (_, covered) = page("peterson", &["--goal", "turn == 7", "--unreached"]);
    let lines = |class: &str| covered.matches(&format!("<td class=\"{class}\"><code>")).count();
    assert_eq!((lines("good"), lines("bad")), (8, 0), "{covered}");
    let (_, stopped) = page("peterson", &["--max-depth", "0", "--unreached"]);
    assert!(stopped.contains("<td class=\"bad\"><code>"), "{stopped}");
    let (code, lasso) = page("peterson", &["--ltl", "G F P_0.critical"]);
    assert!(code == Some(1) && lasso.contains("state 1 (the loop begins here)"), "{lasso}");
    assert!(lasso.contains("back to state 1: the loop is repeated forever"), "{lasso}");
}

/// A browser shows a page as a picture, in light and in dark colours, and finds all of it well-formed.
pub fn a_browser_shows_a_page() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (page, picture) = (at("report.html"), at("page.png"));
    let arguments = ["--invariant", "P_0.critical + P_1.critical <= 1", "--unreached", "--report", &page];
    assert_eq!(explore(&model("peterson_wrong"), arguments).status.code(), Some(1));
    let shown = ["preferredColorScheme=1", "preferredColorScheme=0"].map(|colors| {
        let options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,1400"];
        let mut browser = Command::new("chromium");
        browser.args(options).args([format!("--blink-settings={colors}"), format!("--screenshot={picture}")]);
        browser.args([format!("--user-data-dir={}", at("profile")), format!("file://{page}")]).env("HOME", folder.path());
        let output = browser.output().unwrap();
        let bytes = std::fs::read(&picture).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        std::fs::remove_file(&picture).unwrap();
        assert_eq!((&bytes[..8], &bytes[16..24]), (&b"\x89PNG\r\n\x1a\n"[..], &[0, 0, 3, 232, 0, 0, 5, 120][..]));
        bytes
    });
    assert_ne!(shown[0], shown[1], "both pictures have the same colours");
    // An empty page of that size has a few thousand bytes.
    assert!(shown.iter().all(|picture| picture.len() > 20_000), "{:?}", shown.map(|picture| picture.len()));
}

pub fn exports_are_the_same_from_every_table() {
    let (folder, path) = written(COUNTERS);
    let exported = TABLES.map(|table| {
        let file = folder.path().join(format!("{table}.aut"));
        let arguments = ["--export", file.to_str().unwrap(), "--table", table, "--capacity", "64"];
        assert_eq!(json(&path, &arguments).0, Some(0), "{table}");
        std::fs::read(file).unwrap()
    });
    assert!(exported[0].starts_with(b"des (0, 86490, 29791)"));
    assert!(exported.iter().all(|other| *other == exported[0]));
    // Violations count even if there is no memory for the successors of their round, or of a fault's neighbours.
    let steps: Vec<_> = (1..=1200).map(|to| format!("s -> s {{ guard x == 0; effect x = {to}; }}")).collect();
    let (folder, path) = written(&format!(
        "int x; byte a[2]; process P {{ state s; init s; trans {},
            s -> s {{ guard x == 1; effect a[x + 1] = 1; }}, s -> s {{ guard x > 1 && x < 1201; effect x = x + 1200; }}; }}
         system async;",
        steps.join(", ")
    ));
    let file = folder.path().join("a.aut");
    let export = ["--export", file.to_str().unwrap(), "--capacity", "64"];
    for (goal, states) in [(&["--goal", "x == 0"][..], 1), (&[], 1201)] {
        let mut lost = 0;
        for memory in (1..60).step_by(sized(3, 6, 6)).map(|kib| format!("{kib}KiB")) {
            let (code, report) = json(&path, &[&export[..], goal, &["--memory", &memory]].concat());
            // There is one fewer transition than states until all of these states are expanded.
            if report["counts"]["transitions"].as_u64().unwrap() >= states {
                assert!(code == Some(1) && !report["violation"].is_null(), "{memory}: {report}");
                lost += u64::from(report["counts"]["states"] == states);
            }
        }
        assert!(lost > 0, "{goal:?}");
    }
}

pub fn recorded_vectors_can_be_replayed(replay: &Path) {
    for (name, [states, transitions, ..]) in GOLDEN {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("vectors.npz");
        let (_, report) = json(&model(name), &["--record", file.to_str().unwrap()]);
        let output = Command::new(replay).arg(&file).args(["--json", "--verify", "--device", "cpu:2"]).output().unwrap();
        let replayed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        // The initial state, and the target of every transition.
        assert_eq!(replayed["vectors"].as_u64(), Some(transitions + 1));
        assert_eq!((replayed["distinct"].as_u64(), &replayed["width"]), (Some(states), &report["table"]["words"]));
    }
}

/// A client asks a server through a queue, and is answered by a rendezvous. State `never` and the last transition do not occur.
const ASKING: &str = "channel {byte} ask[2]; channel answer; byte served;
process Client { state idle, waiting, never; init idle; trans
  idle -> waiting { sync ask!7; }, waiting -> idle { sync answer?; }, waiting -> never { guard served > 9; }; }
process Server { byte got; state free, busy; init free; trans
  free -> busy { sync ask?got; }, busy -> free { guard served < 2; sync answer!; effect served = served + 1; }; }
system async;";

pub fn what_is_never_reached_is_named() {
    let (folder, path) = written(ASKING);
    let file = folder.path().join("coverage.json");
    for engine in [&["--engine", "interpreted"][..], &["--table", "indexed"], &["--table", "tree"]] {
        let output = explore(&path, [&["--coverage", file.to_str().unwrap()], engine].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        for part in [
            "unreached          1 of 5 states, 1 of 5 transitions\n",
            "\n                   state Client.never\n",
            "\n                   transition Client: waiting -> never (line 3)\n",
        ] {
            assert!(output.status.code() == Some(0) && text.contains(part), "{part} is missing: {output:?}");
        }
        let written: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let client = &written["processes"][0];
        assert_eq!((&written["complete"], client["states"][2]["states"].as_u64()), (&Value::Bool(true), Some(0)));
        assert!(client["transitions"][0]["steps"].as_u64() == Some(3), "{client}");
    }
    // Transitions that look alike have their column.
    let (_folder, alike) = written(
        "byte x; process A { state s; init s; trans\ns -> s { guard x == 1; }, s -> s {}, s -> s { guard x == 2; }; } system async;",
    );
    let text = String::from_utf8(explore(&alike, ["--unreached"]).stdout).unwrap();
    assert!(text.contains("A: s -> s (line 2, column 1)\n") && text.contains("A: s -> s (line 2, column 38)\n"), "{text}");
    let (_, report) = json(&path, &["--unreached", "--max-states", "2"]);
    assert!(report["unreached"]["states"].as_array().is_some_and(|names| names.len() >= 2), "{report}");
    let output = explore(&path, ["--unreached", "--max-states", "1"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("(the search is not complete)"), "{output:?}");
    let output = explore(&self::file("crossing.exp"), ["--unreached"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("component states, ") && text.contains(" of 4 labels"), "{text}");
    let output = explore(&path, ["--unreached", "--local-ranks", "2"]);
    assert!(output.status.code() == Some(2), "{output:?}");
}

pub fn paths_are_drawn() {
    let (folder, path) = written(ASKING);
    let [svg, txt, json_file] = ["a.svg", "a.txt", "a.json"].map(|name| folder.path().join(name));
    for file in [&svg, &txt, &json_file] {
        let output = explore(&path, ["--goal", "served == 1", "--trace", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
    let text = std::fs::read_to_string(&txt).unwrap();
    for part in [
        "Client",
        "Server",
        "idle -> waiting",
        "sends ask(7), received in step 2",
        "receives ask(7), sent in step 1",
        "line 3: sync ask!7;",
        "answer",
        "<-",
        "There: goal reached: served == 1\n",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let drawn = std::fs::read_to_string(&svg).unwrap();
    // The queue's message and the rendezvous.
    assert_eq!(drawn.matches("marker-end").count(), 2, "{drawn}");
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n") && drawn.contains("goal reached"), "{drawn}");
    assert!(serde_json::from_str::<Value>(&std::fs::read_to_string(&json_file).unwrap()).is_ok());
    // The run of a property has a loop.
    let output = explore(&model("peterson"), ["--ltl", "G F P_0.critical", "--trace", svg.to_str().unwrap()]);
    let drawn = std::fs::read_to_string(&svg).unwrap();
    assert!(output.status.code() == Some(1) && drawn.contains("loop, repeated forever"), "{drawn}");
    explore(&model("peterson"), ["--ltl", "G F P_0.critical", "--trace", txt.to_str().unwrap()]);
    let text = std::fs::read_to_string(&txt).unwrap();
    assert!(text.contains("the loop begins") && text.contains("this is the state after step 1 again"), "{text}");
    let refused = explore(&path, ["--trace", folder.path().join("a.png").to_str().unwrap()]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("must end in .svg (chart), .txt "), "{said}");
    // Components of a network that step together.
    let output = explore(&file("crossing.exp"), ["--goal", "train_1 == 2", "--trace", txt.to_str().unwrap()]);
    let text = std::fs::read_to_string(&txt).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("- APPROACH -") && text.contains("0 -> 1"), "{text}");
}

pub fn state_spaces_are_drawn() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("a.dot");
    let name = file.to_str().unwrap();
    let (code, report) = json(&model("peterson_wrong"), &["--invariant", "P_0.critical + P_1.critical <= 1", "--export", name]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!((code, report["exported_bytes"].as_u64()), (Some(1), Some(text.len() as u64)));
    // All states and transitions, although the search has ended early; the path of 6 steps in red.
    let all = json(&model("peterson_wrong"), &[]).1;
    let [states, transitions, ..] = counts(&all);
    let is_numbered = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let (edges, nodes): (Vec<&str>, Vec<&str>) =
        text.lines().filter(is_numbered).partition(|line| line.split('[').next().is_some_and(|ends| ends.contains("->")));
    assert_eq!((nodes.len() as u64, edges.len() as u64), (states, transitions), "{text}");
    let red = |lines: &[&str]| lines.iter().filter(|line| line.contains("c0392b")).count();
    assert_eq!((red(&nodes), red(&edges)), (7, 6), "{text}");
    // A buffer is one line of its node, also if it holds several messages. An .aut file names steps as paths do.
    let process = "process A { byte n; state s; init s; trans s -> s { guard n < 2; sync q!{n, 7}; effect n = n + 1; }; }";
    let (_folder, path) = written(&format!("channel {{byte, byte}} q[2]; {process} system async;"));
    assert_eq!(json(&path, &["--export", name]).0, Some(0));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(r"2\nq = [(0, 7), (1, 7)]\nA.n = 2"), "{text}");
    let labels = folder.path().join("a.aut");
    assert_eq!(json(&path, &["--export", labels.to_str().unwrap()]).0, Some(0));
    let text = std::fs::read_to_string(&labels).unwrap();
    assert!(text.contains("(0, \"A: guard n < 2; sync q!{n, 7}; effect n = n + 1; (line 1)\", 1)\n"), "{text}");
    // Too large for a picture, not for an .aut file.
    let (_folder, path) = written(&chain(2100));
    let output = explore(&path, ["--export", name, "--json"]);
    let error = only_object(&output)["error"].as_str().unwrap().to_string();
    assert!(output.status.code() == Some(2) && error.contains("more than 2,000 states"), "{error}");
}

pub fn outputs_are_opened_before_the_search() {
    let (folder, path) = written(ENDLESS);
    let (missing, plain) = (folder.path().join("missing/file"), path.join("file"));
    for option in ["--record", "--trace", "--emit"] {
        for output in [&missing, &plain, &folder.path().to_owned()] {
            let output = explore(&path, [option, output.to_str().unwrap(), "--timeout", "1h"]);
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{text}");
            assert!(text.contains(option) && text.contains("cannot be written"), "{text}");
        }
    }
    // A file that is not written is unchanged.
    let [new, old] = ["new", "old"].map(|name| folder.path().join(name));
    std::fs::write(&old, "before").unwrap();
    for file in [&new, &old] {
        assert_eq!(json(&model("peterson"), &["--deadlock", "--trace", file.to_str().unwrap()]).0, Some(0));
    }
    assert_eq!((new.exists(), std::fs::read_to_string(&old).unwrap().as_str()), (false, "before"));
    assert_eq!(json(&model("river"), &["--goal", "goat", "--trace", old.to_str().unwrap()]).0, Some(1));
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(&old).unwrap()).unwrap();
    assert_eq!(trace["length"], 1);
}

pub fn outputs_do_not_overwrite_the_model_or_each_other() {
    let text = std::fs::read_to_string(model("peterson_wrong")).unwrap();
    let (folder, path) = written(&text);
    let [link, hard, new] = ["link", "hard", "new"].map(|name| folder.path().join(name));
    std::fs::hard_link(&path, &hard).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&path, &link).unwrap();
    #[cfg(not(unix))]
    std::fs::hard_link(&path, &link).unwrap();
    let dotted = folder.path().join(".").join("model.dve");
    for option in ["--record", "--trace", "--emit"] {
        for name in [&path, &link, &hard, &dotted] {
            let output = explore(&path, [option, name.to_str().unwrap(), "--invariant", EXCLUSION]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(2) && said.contains("is the model, and would be overwritten"), "{output:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
    let output = explore(&path, ["--record", new.to_str().unwrap(), "--trace", new.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--trace and --record"), "{output:?}");
    assert!(output.status.code() == Some(2) && !new.exists());
    if cfg!(target_os = "linux") {
        let output = explore(&path, ["--trace", "/dev/stdout", "--json"]);
        assert!(only_object(&output)["error"].as_str().unwrap().contains("is standard output"), "{output:?}");
    }
}

/// Outputs that cannot be written at the end, or have vanished: the report and its object are otherwise complete, and the exit
/// code shows the error.
#[cfg(unix)]
pub fn outputs_that_cannot_be_written_leave_the_report() {
    let expected = |report: &Value, output: &Output, what: &str| {
        assert_eq!((output.status.code(), report["exit_code"].as_u64()), (Some(2), Some(2)), "{output:?}");
        assert!(report["error"].as_str().is_some_and(|error| error.contains(what)), "{}", report["error"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("error: --") && said.contains(what), "{said}");
    };
    let river = model("river");
    let river = river.to_str().unwrap();
    if Path::new("/dev/full").exists() {
        for option in ["--trace", "--record"] {
            let arguments = ["--goal", "goat", option, "/dev/full"];
            let output = command_of(river, &[&arguments[..], &["--json"]].concat()).output().unwrap();
            let report = only_object(&output);
            expected(&report, &output, "/dev/full cannot be written: No space left on device");
            assert_eq!((report["end"].as_str(), report["path"]["length"].as_u64()), (Some("found"), Some(1)), "{report}");
            let text = String::from_utf8(command_of(river, &arguments).output().unwrap().stdout).unwrap();
            assert!(text.contains("NOT written        --") && text.contains("There: goal reached: goat"), "{text}");
        }
        // These names choose the format of the export.
        let folder = TempDir::new().unwrap();
        for kind in ["aut", "npz"] {
            let link = folder.path().join(format!("full.{kind}"));
            std::os::unix::fs::symlink("/dev/full", &link).unwrap();
            let output = command_of(river, &["--json", "--export", link.to_str().unwrap()]).output().unwrap();
            let report = only_object(&output);
            expected(&report, &output, "cannot be written: No space left on device");
            assert_eq!((counts(&report)[..4].to_vec(), &report["not_exported"]), (vec![10, 20, 0, 8], &report["error"]));
            assert_eq!((report["complete"].as_bool(), &report["exported_bytes"]), (Some(true), &Value::Null));
        }
    } else {
        println!("skipped: there is no /dev/full");
    }
    // The folder vanishes after its files are checked and before the end: the model, which is longer than a pipe, is read after
    // that.
    for (option, name) in [("--trace", "t.json"), ("--export", "t.aut"), ("--record", "t.npz")] {
        let folder = TempDir::new().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let file = inner.join(name);
        let arguments = ["--json", "--goal", "goat", "--keep-going", option, file.to_str().unwrap()];
        let mut child = spawned(&mut command_of("-", &arguments));
        child.stdin.as_mut().unwrap().write_all(&[b'\n'; 2 << 20]).unwrap();
        std::fs::remove_dir_all(&inner).unwrap();
        child.stdin.take().unwrap().write_all(&std::fs::read(model("river")).unwrap()).unwrap();
        let output = child.wait_with_output().unwrap();
        let report = only_object(&output);
        expected(&report, &output, "cannot be written: No such file or directory");
        assert_eq!((counts(&report)[0], report["path"]["length"].as_u64()), (10, Some(1)), "{report}");
    }
}

pub fn recording_has_a_limit() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("vectors.npz");
    let arguments = ["--record", file.to_str().unwrap(), "--record-bytes", "402"];
    // The search offers 583 vectors, of a few words each.
    let (code, report) = json(&model("mailbox"), &arguments);
    let words = report["table"]["words"].as_u64().unwrap();
    let taken = 402 / (4 * words);
    assert_eq!((code, counts(&report)[..4].to_vec()), (Some(0), vec![413, 582, 1, 25]));
    assert_eq!((report["recorded"].as_u64(), report["not_recorded"].as_u64()), (Some(taken), Some(583 - taken)));
    let text = String::from_utf8(explore(&model("mailbox"), arguments).stdout).unwrap();
    assert!(text.contains(&format!("{} more left out (--record-bytes)", 583 - taken)), "{text}");
}

pub fn recordings_that_reached_their_limit_can_be_replayed(replay: &Path) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("vectors.npz");
    let (_, report) = json(&model("mailbox"), &["--record", file.to_str().unwrap(), "--record-bytes", "402"]);
    let output = Command::new(replay).arg(&file).args(["--json", "--device", "cpu:2"]).output().unwrap();
    let replayed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!((&replayed["vectors"], &replayed["width"]), (&report["recorded"], &report["table"]["words"]));
}

pub fn json_is_one_object_on_every_path() {
    let (folder, path) = written("byte x; process P { state s; init t; } system async;");
    let bad = path.to_str().unwrap();
    let good = model("peterson");
    let good = good.to_str().unwrap();
    let missing = folder.path().join("missing");
    let missing = missing.to_str().unwrap();
    for arguments in [
        &["--json"][..],
        &[good, "--json", "--no-such-option"],
        &[good, "--json", "--device", "cpu:100000"],
        &[good, "--json", "--device", "tpu"],
        &[good, "--json", "--capacity", "0"],
        &[good, "--json", "--capacity", "2^50"],
        &[good, "--json", "--gpu-time"],
        &[good, "--json", "--invariant", "x +"],
        &[good, "--json", "--record-bytes", "10"],
        &[good, "--json", "--timeout", "0"],
        &[good, "--json", "--trace", missing, "--record", missing],
        &[missing, "--json"],
        &[bad, "--json"],
        &["--json", "--device", "gpu:99", good],
    ] {
        let mut command = Command::new(EXPLORE);
        let output =
            command.args(["--device=cpu:2"].iter().filter(|_| !arguments.contains(&"--device"))).args(arguments).output();
        let output = output.unwrap();
        let object = only_object(&output);
        assert!(output.status.code() == Some(2) && object["error"].as_str().is_some_and(|error| !error.is_empty()), "{output:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    let output = Command::new(EXPLORE).arg("--version").output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"explore "), "{output:?}");
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::ffi::OsStrExt;
        let odd = folder.path().join(OsStr::from_bytes(b"m\xff.dve"));
        std::fs::copy(good, &odd).unwrap();
        assert_eq!(counts(&json(&odd, &[]).1)[0], 20);
    }
}

#[cfg(unix)]
pub fn readers_and_disks_that_take_no_more_are_no_reason_to_panic() {
    let (_folder, path) = written(&chain(6000));
    let path = path.to_str().unwrap();
    let mut child = spawned(&mut command_of(path, &LONG_REPORT));
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(1), 0), "{output:?}");
    let Ok(full) = std::fs::File::create("/dev/full") else {
        println!("skipped: there is no /dev/full");
        return;
    };
    for arguments in [&[][..], &["--json"]] {
        let output = command_of(path, arguments).stdout(full.try_clone().unwrap()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.starts_with("error: the report cannot be printed: No space"), "{said}");
    }
    // Output files give this error, too, whether the archive that cannot be written is small or large.
    for path in [path, model("river").to_str().unwrap()] {
        let output = command_of(path, &["--record", "/dev/full"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = "error: --record: /dev/full cannot be written: No space left on device (os error 28)\n";
        assert_eq!((output.status.code(), &*said), (Some(2), expected));
    }
    for arguments in [&["--invariant", "y"][..], &["--no-such"], &["--record", "/"]] {
        let output = command_of(path, arguments).stderr(full.try_clone().unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

/// The earlier file stays as it was if the disk is full, and if a signal ends the program while it writes. The test causes both
/// by a limit of the file size. If the program ignores the signal of that limit, a write beyond it is an error, as on a full
/// disk. Otherwise the signal ends the program.
#[cfg(unix)]
pub fn earlier_outputs_outlive_failures() {
    let folder = TempDir::new().unwrap();
    let river = model("river");
    for (option, name) in [
        ("--trace", "t.json"),
        ("--trace", "t.svg"),
        ("--export", "t.dot"),
        ("--coverage", "t.json"),
        ("--dependencies", "t.txt"),
        ("--emit-buchi", "t.hoa"),
    ] {
        let file = folder.path().join(name);
        let check: &[&str] = match option {
            "--emit-buchi" => &["--ltl", "F goat"],
            "--dependencies" => &[],
            _ => &["--goal", "goat"],
        };
        let arguments = [&[river.to_str().unwrap(), "--device", "cpu:2", option, file.to_str().unwrap()], check].concat();
        let output = Command::new(EXPLORE).args(&arguments).output().unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        let good = std::fs::read(&file).unwrap();
        assert!(!good.is_empty());
        for (trap, ends) in [("trap '' XFSZ; ", Some(2)), ("", None)] {
            let script = format!("{trap}ulimit -f 0; exec \"$0\" \"$@\"");
            let output = Command::new("sh").args(["-c", &script, EXPLORE]).args(&arguments).output().unwrap();
            assert_eq!(output.status.code(), ends, "{option}: {output:?}");
            assert_eq!(std::fs::read(&file).unwrap(), good, "{option} {name}");
        }
        // The next run removes what the killed one left.
        let output = Command::new(EXPLORE).args(&arguments).output().unwrap();
        assert!(output.stderr.is_empty() && std::fs::read(&file).unwrap() == good, "{output:?}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "{option}");
        std::fs::remove_file(&file).unwrap();
    }
}
