//! Tests the program `decompose` through its command line. `WARPSET_MDP` names a folder of graphs with known components. Without
//! the folder or a GPU, tests that need it are listed as skipped.
//!
//! Keeps this promise of `examples/decompose/README.md`:
//!
//! - All sizes that the file of a graph announces are compared with memory (also `examples/decompose/src/npz.rs`).

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use tempfile::TempDir;
use warpset_testing::machines::{self, Gpus};
use warpset_testing::trials::{skipped, trial};

const DECOMPOSE: &str = env!("CARGO_BIN_EXE_decompose");

/// Options for the CPU: with kernels, and with Tarjan's algorithm.
const ON_CPU: [&[&str]; 3] = [
    &["--device", "cpu:2", "--algorithm", "parallel"],
    &["--device", "cpu:2"],
    &["--device", "cpu:1", "--algorithm", "parallel"],
];
const ON_GPU: [&[&str]; 1] = [&["--device", "gpu"]];

/// Environment variable that names the folder of known graphs.
const VARIABLE: &str = "WARPSET_MDP";

const ONCE: &[(&str, fn())] = &[
    ("the_report_is_for_people_too", the_report_is_for_people_too),
    ("states_without_edges_are_counted", states_without_edges_are_counted),
    ("errors_have_their_exit_code_and_numbers", errors_have_their_exit_code_and_numbers),
    ("announced_sizes_are_bounded_by_memory", announced_sizes_are_bounded_by_memory),
    ("outputs_do_not_overwrite_the_graph_or_each_other", outputs_do_not_overwrite_the_graph_or_each_other),
    ("outputs_that_cannot_be_written_leave_the_report", outputs_that_cannot_be_written_leave_the_report),
    ("help_teaches", help_teaches),
    ("names_cannot_control_a_terminal", names_cannot_control_a_terminal),
];

/// A test, which runs with the options for a device.
type OfPlace = (&'static str, fn(&[&str]));

const EVERYWHERE: &[OfPlace] = &[("the_shipped_graph_has_its_components", the_shipped_graph_has_its_components)];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = ONCE.iter().map(|(name, test)| trial(name.to_string(), Box::new(test))).collect();
    let known = std::env::var_os(VARIABLE).map(PathBuf::from);
    let mut of_places = |kind: &str, places: &'static [&[&str]], why_not: Option<&'static str>| {
        for (number, place) in places.iter().enumerate() {
            for (name, test) in EVERYWHERE {
                let name = format!("{kind}{number}::{name}");
                trials.push(match why_not {
                    None => trial(name, Box::new(|| test(place))),
                    Some(why) => skipped(name, why),
                });
            }
            let name = format!("{kind}{number}::known_graphs_have_their_components");
            trials.push(match (why_not, &known) {
                (Some(why), _) => skipped(name, why),
                (_, None) => skipped(name, "its variable does not name a folder of graphs (.ci/run)"),
                (_, Some(folder)) => {
                    let folder = folder.clone();
                    trial(name, Box::new(move || known_graphs_have_their_components(&folder, place)))
                }
            });
        }
    };
    of_places("cpu", &ON_CPU, None);
    let mut broken = None;
    match machines::gpus() {
        Gpus::Here(_) => of_places("gpu", &ON_GPU, None),
        Gpus::NotHere(_) => of_places("gpu", &ON_GPU, Some("no CUDA device")),
        Gpus::Broken(why) => broken = Some(why),
    }
    trials.extend(broken.map(|why| Trial::test("gpu::can_be_used", || Err(Failed::from(why)))));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn decompose(graph: &Path, arguments: &[&str]) -> Output {
    Command::new(DECOMPOSE).arg(graph).args(arguments).output().expect("the program starts")
}

/// Returns the report as a JSON object.
#[track_caller]
fn json(graph: &Path, arguments: &[&str]) -> Value {
    let output = decompose(graph, &[arguments, &["--json", "--compare"]].concat());
    assert!(output.status.success() && output.stderr.is_empty(), "{}: {output:?}", graph.display());
    serde_json::from_slice(&output.stdout).expect("one object")
}

#[track_caller]
fn has_values(report: &Value, expected: &[(&str, u64)]) {
    let found = |name: &&str| report[*name].as_u64();
    let wrong: Vec<_> = expected.iter().filter(|(name, value)| found(name) != Some(*value)).collect();
    assert!(wrong.is_empty(), "expected {wrong:?} in {report}");
}

/// The expected values come from an independent program.
fn the_shipped_graph_has_its_components(place: &[&str]) {
    let folder = TempDir::new().unwrap();
    let [components, ends] = ["components.npy", "ends.npy"].map(|name| folder.path().join(name).display().to_string());
    let outputs = ["--output", &components, "--output-end-components", &ends];
    let report = json(&model("casino.tra"), &[place, &outputs].concat());
    let expected = [
        ("states", 11),
        ("choices", 15),
        ("transitions", 19),
        ("components", 6),
        ("trivial_components", 1),
        ("self_loop_components", 2),
        ("bottom_components", 1),
        ("largest_component", 3),
        ("end_components", 3),
        ("single_state_end_components", 1),
        ("states_in_end_components", 6),
        ("choices_in_end_components", 6),
        ("largest_end_component", 3),
        ("rounds", 2),
        ("exit_code", 0),
    ];
    has_values(&report, &expected);
    assert!(report["seconds"].is_number() && report["tarjan_seconds"].is_number() && report["error"].is_null(), "{report}");
    let none = u32::MAX;
    assert_eq!(array(Path::new(&components)), [0, 1, 1, 3, 3, 3, 6, 6, 6, 9, 10]);
    assert_eq!(array(Path::new(&ends)), [none, none, none, 3, 3, 3, 6, 6, none, 9, none]);
}

/// Reads the elements of an array of words.
fn array(path: &Path) -> Vec<u32> {
    let bytes = std::fs::read(path).unwrap();
    let data = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[data..].chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// FNV-1a over the bytes of all words. The initial value is the one used for the tables of known values.
fn fnv(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let hash = bytes.fold(1_469_598_103_934_665_603, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// Columns of the tables of known values, with their keys in a report.
const COLUMNS: [(&str, &str); 14] = [
    ("states", "states"),
    ("choices", "choices"),
    ("transitions", "transitions"),
    ("sccs", "components"),
    ("trivial_sccs", "trivial_components"),
    ("selfloop_sccs", "self_loop_components"),
    ("bottom_sccs", "bottom_components"),
    ("largest_scc", "largest_component"),
    ("mecs", "end_components"),
    ("single_mecs", "single_state_end_components"),
    ("mec_states", "states_in_end_components"),
    ("mec_choices", "choices_in_end_components"),
    ("largest_mec", "largest_end_component"),
    ("mec_rounds", "rounds"),
];

/// Rows of a table; each maps column names to values.
fn rows(path: &Path) -> Vec<HashMap<String, String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.lines().map(|line| line.split(',').map(String::from));
    let names: Vec<String> = lines.next().expect("a first line").collect();
    lines.map(|line| names.iter().cloned().zip(line).collect()).collect()
}

#[track_caller]
fn has_row(report: &Value, row: &HashMap<String, String>) {
    let known = COLUMNS.iter().filter_map(|(column, name)| Some((*name, row.get(*column)?.parse().expect("a number"))));
    has_values(report, &known.collect::<Vec<_>>());
}

/// Every graph in the folder has the values of its row in the table and, state by state, the same partition. So does every
/// generated graph.
fn known_graphs_have_their_components(folder: &Path, place: &[&str]) {
    let outputs = TempDir::new().unwrap();
    let [components, ends] = ["components.npy", "ends.npy"].map(|name| outputs.path().join(name).display().to_string());
    let arguments = [place, &["--output", &components, "--output-end-components", &ends]].concat();
    let mut count = 0;
    for row in rows(&folder.join("mdp.csv")).iter().filter(|row| row["shipped"] == "yes") {
        let report = json(&folder.join("tra").join(format!("{}.tra.gz", row["name"])), &arguments);
        has_row(&report, row);
        let found = [&components, &ends].map(|path| fnv(&array(Path::new(path))));
        assert_eq!(found, [row["scc_fnv"].clone(), row["mec_fnv"].clone()], "{}", row["name"]);
        count += 1;
    }
    assert!(count > 0, "no graphs in {}", folder.display());
    for row in rows(&folder.join("synthetic.csv")) {
        let graph = outputs.path().join("generated.tra");
        let generated = Command::new("python3")
            .arg(folder.join("generate.py"))
            .args(row["parameters"].split(' '))
            .arg("--out")
            .arg(&graph)
            .output();
        let Ok(generated) = generated else {
            return println!("skipped: generated graphs, since there is no python3");
        };
        assert!(generated.status.success(), "{generated:?}");
        has_row(&json(&graph, place), &row);
    }
}

fn the_report_is_for_people_too() {
    let output = decompose(&model("casino.tra"), &["--device", "cpu:1", "--compare"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "components         6 (1 trivial, 2 with one state and a self-loop, 1 bottom)",
        "end components     3 (1 with one state), with 6 states and 6 choices in all",
        "                                         2 to 3: 3",
        "on one thread, same components",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

fn names_cannot_control_a_terminal() {
    let folder = TempDir::new().unwrap();
    let is_clean = |output: &Output| {
        let text = [&output.stdout[..], &output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{text:?}");
        text
    };
    // Some file systems do not allow such characters in names.
    let path = folder.path().join("a\u{1b}[31m\u{7}\u{202e}.edges");
    if std::fs::write(&path, "0 1\n1 0\n").is_ok() {
        let text = is_clean(&decompose(&path, &["--device", "cpu:1"]));
        assert!(text.contains("a\\u{1b}[31m\\u{7}\\u{202e}.edges"), "{text}");
    }
    for (name, text) in [
        ("a.tra", "1 1 1\n0 0 0 \u{1b}[31m\n"),
        ("a.tra", "mdp\u{1b}\n"),
        ("a.edges", "0 \u{9b}31m\u{202e}\n"),
        ("a.aut", "des (0, 1, 1)\n(0, a\u{7}\n"),
        ("a.mtx", "%%MatrixMarket \u{1b}\n"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let output = decompose(&path, &["--device", "cpu:1"]);
        assert_eq!(output.status.code(), Some(2), "{text:?}");
        is_clean(&output);
    }
    is_clean(&decompose(&folder.path().join("missing\u{1b}.tra"), &[]));
    // A number that is out of range is refused when it is parsed.
    let output = decompose(&model("casino.tra"), &["--timeout", "-1"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && text.contains("'--timeout <TIME>': not a time"), "{text}");
}

fn states_without_edges_are_counted() {
    let folder = TempDir::new().unwrap();
    for (name, content, states, without, line) in [
        ("gap.edges", "293 5\n5 293\n7 7\n", 294, 291, "without edges      of 294 states, 291 have no edge"),
        ("one.csv", "to,from\n0,2\n", 3, 1, "without edges      of 3 states, 1 has no edge"),
        ("far.edges", "1000000 1000001\n", 1_000_002, 1_000_000, "of 1,000,002 states, 1,000,000 have no edge"),
        ("whole.edges", "0 1\n2 1\n", 3, 0, ""),
        ("choices.tra", "3 1 1\n0 0 2 1\n", 3, 1, "of 3 states, 1 has no edge"),
    ] {
        let graph = folder.path().join(name);
        std::fs::write(&graph, content).unwrap();
        let report = json(&graph, &["--device", "cpu:1"]);
        has_values(&report, &[("states", states), ("states_without_edges", without)]);
        let text = String::from_utf8(decompose(&graph, &["--device", "cpu:1"]).stdout).unwrap();
        assert!(text.contains(line) && text.contains("without edges") == (without > 0), "{text}");
    }
}

fn errors_have_their_exit_code_and_numbers() {
    let folder = TempDir::new().unwrap();
    let wrong = folder.path().join("wrong.tra");
    std::fs::write(&wrong, "2 1 1\n0 0 7 1\n").unwrap();
    let casino = model("casino.tra");
    let none = folder.path().join("none.tra");
    for (graph, arguments, part) in [
        (&wrong, vec![], "wrong.tra:2: state 7 found, but the first line announces 2 states, numbered 0 to 1"),
        (&casino, vec!["--memory", "300"], "transitions need 396 bytes of memory, but --memory leaves 300 bytes"),
        (&casino, vec!["--memory", "600"], "11 states, 15 choices and 19 transitions need"),
        // The graph counts towards the limit.
        (&casino, vec!["--memory", "1259"], "need 864 bytes of memory, but --memory leaves 863 bytes"),
        (&none, vec![], "none.tra cannot be read"),
        (&PathBuf::from("-"), vec![], "standard input needs --format"),
        (&casino, vec!["--device", "gpu:0,1"], "decompose uses one device"),
        (&casino, vec!["--device", "cpu:0"], "at least 1 thread is needed"),
    ] {
        let device: &[&str] = if arguments.contains(&"--device") { &[] } else { &["--device", "cpu:1"] };
        let output = decompose(graph, &[device, &arguments[..], &["--json"]].concat());
        let object: Value = serde_json::from_slice(&output.stdout).expect("one object");
        let error = object["error"].as_str().expect("an error");
        // Reaching a limit is not an error.
        let code = if arguments.contains(&"--memory") { 3 } else { 2 };
        assert!(output.status.code() == Some(code) && object["exit_code"] == code, "{output:?}");
        assert!(error.contains(part), "{error}");
    }
}

/// A first line may announce sizes whose bytes overflow 64 bits. They are refused as too large, as smaller ones are.
fn announced_sizes_are_bounded_by_memory() {
    let folder = TempDir::new().unwrap();
    for (name, text, part) in [
        (
            "a.tra",
            "1 4611686018427387904\n0 0 1\n",
            "a.tra:1: 1 state and 4,611,686,018,427,387,904 transitions need 16.00 EiB of memory",
        ),
        ("b.tra", "1 4611686018427387904 4611686018427387904\n0 0 0 1\n", "need 16.00 EiB of memory (18,446,744,073,709,551,615"),
        (
            "c.tra",
            "1 18446744073709551615 18446744073709551615\n",
            "c.tra:1: `1 18446744073709551615 18446744073709551615` is not a valid first line",
        ),
        ("d.tra", "4294967294 1\n0 0 1\n", "d.tra:1: 4,294,967,294 states and 1 transition need"),
        (
            "e.aut",
            "des (0, 4611686018427387904, 1)\n(0, \"a\", 0)\n",
            "e.aut:1: 1 state and 4,611,686,018,427,387,904 transitions need",
        ),
        (
            "f.aut",
            "des (0, 1537228672809129301, 1)\n(0, \"a\", 0)\n",
            "f.aut:1: 1 state and 1,537,228,672,809,129,301 transitions need",
        ),
    ] {
        let graph = folder.path().join(name);
        std::fs::write(&graph, text).unwrap();
        let output = decompose(&graph, &["--device", "cpu:1", "--memory", "1G", "--json"]);
        let object: Value = serde_json::from_slice(&output.stdout).expect("one object");
        let error = object["error"].as_str().expect("an error");
        let code = if text.contains("615") { 2 } else { 3 };
        assert!(output.status.code() == Some(code) && object["exit_code"] == code, "{output:?}");
        assert!(error.contains(part), "{error}");
    }
}

fn outputs_do_not_overwrite_the_graph_or_each_other() {
    let folder = TempDir::new().unwrap();
    let graph = folder.path().join("a.tra");
    std::fs::copy(model("casino.tra"), &graph).unwrap();
    let same = folder.path().join("same.npy").display().to_string();
    let name = graph.display().to_string();
    for (arguments, part) in [
        (vec!["--output", &name], "is the graph, and would be overwritten"),
        (vec!["--output", &same, "--output-end-components", &same], "are the same file"),
        (vec!["--output", "/no/such/folder/a.npy"], "cannot be written"),
    ] {
        let output = decompose(&graph, &[&["--device", "cpu:1"], &arguments[..]].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(part), "{error}");
    }
    assert_eq!(std::fs::read(&graph).unwrap(), std::fs::read(model("casino.tra")).unwrap());
    assert!(!Path::new(&same).exists(), "nothing was to be written");
}

fn outputs_that_cannot_be_written_leave_the_report() {
    if !Path::new("/dev/full").exists() {
        println!("skipped: there is no /dev/full");
        return;
    }
    let casino = model("casino.tra");
    let outputs = ["--device", "cpu:1", "--output", "/dev/full", "--output-end-components", "/dev/full"];
    let expected = "--output: /dev/full cannot be written: the array: No space left on device";
    let output = decompose(&casino, &[&outputs[..], &["--json"]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert!(report["error"].as_str().is_some_and(|error| error.starts_with(expected)), "{report}");
    assert!(report["error"].as_str().is_some_and(|error| error.contains("; --output-end-components: /dev/full")), "{report}");
    assert_eq!((output.status.code(), report["exit_code"].as_u64(), report["components"].as_u64()), (Some(2), Some(2), Some(6)));
    let output = decompose(&casino, &outputs);
    let [text, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(text.contains("components         6") && text.contains("NOT written        --output"), "{text}");
    assert!(output.status.code() == Some(2) && errors.starts_with(&format!("error: {expected}")), "{errors}");
}

fn help_teaches() {
    let output = decompose(Path::new("--help"), &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [".tra", ".aut", ".npz", "--compare", "explore model.dve --export all.npz", "130"] {
        assert!(text.contains(part), "{part}");
    }
}
