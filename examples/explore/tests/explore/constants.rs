//! Models with parameters: `--const`, and several processes of one text.
//!
//! Keeps these promises of `examples/explore/docs/dve.md`:
//!
//! - A constant of a model has the value that the command line gives it, and what depends on it follows: sizes of arrays, numbers
//!   of processes. A value that does not fit, and a name that the model does not have, are errors.
//! - Several processes of one text behave as if each was written out.

use super::*;

const COUNTER: &str = "const byte N = 3; const int LOW = -2; const byte list[2] = {1, 2}; int x, a[N]; byte other = 5;
process P { const byte OWN = 1; byte y; state s; init s; trans
  s -> s { guard x < N; effect x = x + OWN, a[x - 1] = LOW; }; }
system async;";

/// The report, after a search that ended as expected.
#[track_caller]
fn reported(path: &Path, arguments: &[&str]) -> Value {
    let (code, report) = json(path, arguments);
    assert_eq!(code, Some(0), "{report}");
    report
}

pub fn constants_have_other_values() {
    let (_folder, path) = written(COUNTER);
    assert_eq!(reported(&path, &[])["constants"], serde_json::json!({}));
    for (arguments, states) in [
        (&[][..], 4),
        (&["--const", "N=7"], 8),
        (&["--const", "N=8", "--const", "P.OWN=2"], 5),
        (&["--const", " N = 255", "--const", "LOW=-32768"], 256),
    ] {
        let report = reported(&path, arguments);
        assert_eq!(report["counts"]["states"].as_u64(), Some(states), "{arguments:?}");
        // Every engine, and conditions, have the same values.
        let report = reported(
            &path,
            &[arguments, &["--engine", "compiled", "--invariant", "x <= N", "--invariant", "a[0] >= LOW"]].concat(),
        );
        assert_eq!(report["counts"]["states"].as_u64(), Some(states), "{arguments:?}");
    }
    let report = reported(&path, &["--const", "LOW=3", "--const", "N=4"]);
    assert_eq!(report["constants"], serde_json::json!({ "LOW": 3, "N": 4 }));
    let output = explore(&path, ["--const", "LOW=3", "--const", "N=4"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().any(|line| line.starts_with("constants ") && line.ends_with("LOW = 3, N = 4")), "{text}");
    // A value of the text that does not fit is not read, so there is no warning about it.
    let (_folder, path) = written("const byte N = 300; process P { state s; init s; } system async;");
    assert_eq!(reported(&path, &[])["warning_count"], 1);
    assert_eq!(reported(&path, &["--const", "N=3", "--strict"])["warning_count"], 0);
}

const SHOP: &str = "model m { classes C { variables Byte n := 2 Boolean b := false Byte[2] list Integer i state machines
  M { variables Byte own initial A transitions A -> A { n > 0; n := n - 1 } } } objects one : C(), two : C(n := 1) }";

const NET: &str = "<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\"><net id=\"n\" \
    type=\"http://www.pnml.org/version-2009/grammar/ptnet\"><page id=\"g\"><place id=\"p\"><name><text>pool</text></name>\
    <initialMarking><text>1</text></initialMarking></place><place id=\"a=b\"/>\
    <transition id=\"t\"/><arc id=\"x\" source=\"p\" target=\"t\"/><arc id=\"y\" source=\"t\" target=\"a=b\"/></page></net></pnml>";

/// A section that says that the net is safe.
const UNITS: &str = "<toolspecific tool=\"nupn\" version=\"1.1\"><size places=\"2\" transitions=\"1\" arcs=\"2\"/>\
    <structure units=\"1\" root=\"u\" safe=\"true\"><unit id=\"u\"><places>p a=b</places>\
    <subunits/></unit></structure></toolspecific>";

pub fn initial_values_of_objects_and_places_are_constants() {
    let (_folder, path) = written_as("m.slco", SHOP);
    // 3 values of n for one, and 2 for two; the machine ends between its statements.
    let before = reported(&path, &[])["counts"]["states"].as_u64().unwrap();
    let more = reported(&path, &["--const", "two.n=2"]);
    let same = reported(&path, &["--const", "two.n=1", "--const", "two.b=false"]);
    assert_eq!(same["counts"]["states"].as_u64(), Some(before));
    assert!(more["counts"]["states"].as_u64() > Some(before) && more["constants"] == serde_json::json!({ "two.n": 2 }), "{more}");
    assert_eq!(json(&path, &["--const", "one.b=true", "--invariant", "not one.b"]).0, Some(1));
    let (_folder, path) = written_as("m.pnml", NET);
    for (arguments, states) in [
        (&[][..], 2),
        (&["--const", "p=3"], 4),
        (&["--const", "pool=9", "--const", "a=b=2"], 10),
        (&["--const", "p=0"], 1),
        (&["--const", "p=300", "--token-bits", "4"], 301),
    ] {
        let report = reported(&path, arguments);
        assert_eq!(report["counts"]["states"].as_u64(), Some(states), "{arguments:?}: {report}");
        assert_eq!(
            report["constants"].as_object().map(|all| all.len()),
            Some(arguments.iter().filter(|of| **of == "--const").count())
        );
    }
    refused(&path, &["--unpacked"], "--unpacked is for DVE, SLCO and networks");
    // A section of units that is no longer right is left out, as if the file had this marking.
    let (_folder, safe) = written_as("m.pnml", &NET.replace("</net>", &format!("{UNITS}</net>")));
    assert_eq!(reported(&safe, &[])["counts"]["states"], 2);
    let output = explore(&safe, ["--const", "p=3", "--json"]);
    assert_eq!(only_object(&output)["counts"]["states"], 4, "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the NUPN section says"), "{output:?}");
    assert_eq!(json(&path, &["--const", "p=3", "--const", "a=b=2", "--goal", "tokens(\"a=b\") == 5"]).0, Some(1));
}

/// Runs the checker, which refuses something and leaves the file as it is.
#[track_caller]
fn refused(path: &Path, arguments: &[&str], part: &str) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kept.json");
    std::fs::write(&file, "before").unwrap();
    let output = explore(path, [arguments, &["--trace", file.to_str().unwrap(), "--json"]].concat());
    let error = only_object(&output)["error"].as_str().unwrap_or_default().to_string();
    assert!(output.status.code() == Some(2) && error.contains(part), "{arguments:?}: {part} is missing: {error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
}

pub fn wrong_constants_are_errors() {
    let (_folder, path) = written(COUNTER);
    for (constant, part) in [
        ("N=256", "--const N=256 does not fit: it is a byte: 0 to 255"),
        ("N=-1", "--const N=-1 does not fit"),
        ("LOW=-32769", "it is an int: -32768 to 32767"),
        ("N=0", "a size of 0"),
        ("n=2", "--const: there is no constant `n`"),
        ("OWN=2", "there is no constant `OWN`"),
        ("x=2", "a variable: --const changes constants"),
        ("P.y=2", "a variable: --const changes constants"),
        ("list=2", "an array: --const gives one value"),
        ("N", "NAME=VALUE is needed"),
        ("=2", "the name is missing"),
        ("N=", "`` is not a whole number"),
        ("N=2.5", "`2.5` is not a whole number from -2147483648 to 2147483647"),
        ("N=2147483648", "`2147483648` is not a whole number"),
        ("N=\u{1b}", "`\\u{1b}` is not a whole number"),
    ] {
        refused(&path, &["--const", constant], part);
    }
    refused(&path, &["--const", "N=2", "--const", "N=2"], "`N` has two values, 2 and 2");
    // Names are suggested.
    let output = explore(&path, ["--const", "n=2"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is `N`"), "{output:?}");
    let (_folder, path) = written_as("m.slco", SHOP);
    for (constant, part) in [
        ("one.n=256", "it is a Byte: 0 to 255"),
        ("one.b=2", "it is a Boolean: 0 to 1"),
        ("one.list=2", "--const gives one value"),
        ("n=1", "there is no variable of an object `n`"),
        ("one.M.own=1", "there is no variable of an object `one.M.own`"),
    ] {
        refused(&path, &["--const", constant], part);
    }
    let (_folder, path) = written_as("m.pnml", NET);
    refused(&path, &["--const", "p=-1"], "0 to 2147483647 tokens are possible");
    refused(&path, &["--const", "q=1"], "there is no place `q`");
    refused(&path, &["--const", "p=1", "--const", "pool=1"], "`p` and `pool` are one place");
    refused(&file("crossing.exp"), &["--const", "p=1"], "a network has no constants");
}

pub fn checkpoints_belong_to_their_constants() {
    // A constant that only a condition of the command line could name changes nothing else.
    let text = COUNTER.replace("int LOW", "byte UNUSED = 1; const int LOW");
    for (name, text, one, other) in [
        ("m.dve", &*text, "N=9", "N=8"),
        ("m.dve", &*text, "UNUSED=2", "UNUSED=3"),
        ("m.pnml", NET, "p=5", "p=6"),
        ("m.slco", SHOP, "two.n=5", "two.n=6"),
    ] {
        let (folder, path) = written_as(name, text);
        let file = folder.path().join("checkpoint");
        let file = file.to_str().unwrap();
        let whole = reported(&path, &["--const", one]);
        explore(&path, ["--const", one, "--max-states", "2", "--checkpoint", file]);
        let resumed = reported(&path, &["--const", one, "--resume", file]);
        assert_eq!(counts(&resumed), counts(&whole));
        for (arguments, part) in [
            (&["--const", other][..], format!("it was written with --const {one}, but this search runs with --const {other}")),
            (&[], format!("it was written with --const {one}, but this search runs without --const")),
        ] {
            let output = explore(&path, [arguments, &["--resume", file, "--json"]].concat());
            let error = only_object(&output)["error"].as_str().unwrap_or_default().to_string();
            assert!(output.status.code() == Some(2) && error.contains(&part), "{part} is missing: {error}");
        }
    }
}

/// The example of the document.
fn election() -> &'static str {
    let document = include_str!("../../docs/dve.md");
    let (_, rest) = document.split_once("```dve election.dve\n").expect("the document has the example");
    rest.split_once("```").expect("the example ends").0
}

pub fn instances_are_processes_of_one_text() {
    let text = election();
    let (before, rest) = text.split_once("process Server[id < N] {").expect("a process with instances");
    let (body, after) = rest.split_once("\n}\n").expect("the process ends");
    let (_folder, short) = written(text);
    for servers in [1, 2, 3] {
        let each = (0..servers).map(|id| format!("process Server_{id} {{ const byte id = {id};{body}\n}}\n")).collect::<String>();
        let (_folder, long) = written(&format!("{before}{each}{after}").replace("N = 3", &format!("N = {servers}")));
        let (given, asks) = (format!("N={servers}"), ["--invariant", "won[1] <= 1 and won[2] <= 1"]);
        let report = reported(&short, &[&["--const", &given][..], &asks].concat());
        assert_eq!(counts(&report), counts(&reported(&long, &asks)), "{servers}");
        // Names of processes and their states, in conditions and paths.
        let goal = format!("Server_{}.leader and Server_{}->term == 2", servers - 1, servers - 1);
        let [one, other] = [(&short, &[&*given][..]), (&long, &[])].map(|(path, given)| {
            let constants = given.iter().flat_map(|given| ["--const", *given]);
            let (code, report) = json(path, &constants.chain(["--goal", &goal]).collect::<Vec<_>>());
            assert_eq!(code, Some(1), "{report}");
            report
        });
        assert_eq!(
            (&one["path"]["length"], &one["path"]["final"]["locations"]),
            (&other["path"]["length"], &other["path"]["final"]["locations"])
        );
    }
    // A vote in a term in which one has voted is the planted fault.
    let (_folder, wrong) = written(&text.replace("asks[peer] > term", "asks[peer] >= term and asks[peer] > 0 and asks[id] == 0"));
    assert_eq!(json(&wrong, &["--invariant", "won[1] <= 1"]).0, Some(1));
}

pub fn wrong_instances_are_errors() {
    let model = |process: &str| format!("const byte N = 2; byte x; {process} system async;");
    for (process, part) in [
        ("process P[id < 0] { state s; init s; }", "0 instances: 1 to 256 are possible"),
        ("process P[id < 257] { state s; init s; }", "257 instances"),
        ("process P[id < x] { state s; init s; }", "a constant is needed"),
        ("process P[id < M] { state s; init s; }", "there is no variable or constant `M`"),
        ("process P[id < N] { byte id; state s; init s; }", "`id` is declared twice"),
        ("process P[id < N] { state s; init s; trans s -> s { effect id = 1; }; }", "`id` is a constant"),
        ("process P[id < N] { state s; init s; } process P_1 { state s; init s; }", "the process `P_1` is declared twice"),
        ("process P[id < N] { state s; }", "process P_0 has no initial state"),
        ("process P[2] { state s; init s; }", "`2` is not expected here: a name was expected"),
    ] {
        let (_folder, path) = written(&model(process));
        refused(&path, &[], part);
    }
    let (_folder, path) =
        written(&model("process P[id < N] { state s; init s; accept s; }").replace("async", "async property P"));
    refused(&path, &[], "instances of a property process");
    // A warning about the text is one warning.
    let (_folder, path) = written(&model("process P[id < N] { state s; init s; trans s -> s { effect x = 300; }; }"));
    assert_eq!(json(&path, &[]).1["warning_count"], 1);
}
