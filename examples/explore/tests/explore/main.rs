//! The model checker, tested through the executable that Cargo built beside this test.
//!
//! Explorations are tested with every kind of table on the CPU, and again on a GPU with tables that begin small and grow. Without
//! a GPU those tests are listed as skipped, and the last line gives their number. Tests that need the library's example `replay`
//! are also listed as skipped if it is not built.

mod checkpoints;
mod claiming;
mod languages;
mod nets;
mod networks;
mod reductions;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use tempfile::TempDir;
use warpset_testing::machines::{self, Gpus};
use warpset_testing::trials::{skipped, trial};

const EXPLORE: &str = env!("CARGO_BIN_EXE_explore");

/// The library's example `replay`, beside the executable: `target/PROFILE/examples/replay`. `cargo test` of the workspace has
/// built it by now; `cargo test` of this package alone has not.
fn replay() -> Option<PathBuf> {
    let profile = Path::new(EXPLORE).parent().expect("executables are in target/PROFILE");
    Some(profile.join("examples").join(format!("replay{}", std::env::consts::EXE_SUFFIX))).filter(|path| path.is_file())
}

const TABLES: [&str; 4] = ["bucket", "tree", "tree-compact", "indexed"];

/// Tests of questions about runs, which not all tables can answer.
const ABOUT_RUNS: [&str; 6] = [
    "claiming_waits_for_nothing",
    "fairness_and_possibility_have_their_verdicts",
    "formulas_have_their_verdicts",
    "formulas_of_nets_have_their_verdicts",
    "runs_are_asked_about_in_every_language",
    "runs_of_large_products_are_shortest",
];

/// Whether a test applies to a table.
fn is_of(table: &str, test: &str) -> bool {
    table != "indexed" || !ABOUT_RUNS.contains(&test)
}

/// Device and table of an exploration.
#[derive(Clone, Copy)]
struct TableOnDevice {
    device: &'static str,
    table: &'static str,
}

/// A test of a place, by its name.
type OfPlace = (&'static str, fn(TableOnDevice));

const EVERYWHERE: [OfPlace; 29] = [
    ("claiming_keeps_its_promises", claiming::claiming_keeps_its_promises),
    ("claiming_waits_for_nothing", claiming::claiming_waits_for_nothing),
    ("each_transition_may_have_a_label", languages::each_transition_may_have_a_label),
    ("searches_go_on_with_the_same_counts_and_paths", checkpoints::searches_go_on_with_the_same_counts_and_paths),
    ("killed_searches_go_on", checkpoints::killed_searches_go_on),
    ("fairness_and_possibility_have_their_verdicts", fairness_and_possibility_have_their_verdicts),
    ("formulas_have_their_verdicts", formulas_have_their_verdicts),
    ("runs_of_large_products_are_shortest", runs_of_large_products_are_shortest),
    ("runs_are_asked_about_in_every_language", languages::runs_are_asked_about_in_every_language),
    ("slco_has_faults_and_overflows", languages::slco_has_faults_and_overflows),
    ("properties_of_nets_have_their_verdicts", nets::properties_of_nets_have_their_verdicts),
    ("formulas_of_nets_have_their_verdicts", nets::formulas_of_nets_have_their_verdicts),
    ("networks_have_their_closed_counts", languages::networks_have_their_closed_counts),
    ("networks_are_checked_with_paths", languages::networks_are_checked_with_paths),
    ("own_models_have_their_counts", own_models_have_their_counts),
    ("models_in_other_languages_have_their_counts", languages::models_in_other_languages_have_their_counts),
    ("violations_come_with_the_shortest_path", violations_come_with_the_shortest_path),
    ("what_holds_is_not_reported", what_holds_is_not_reported),
    ("assertions_are_checked", assertions_are_checked),
    ("faults_of_a_model_come_with_a_path", faults_of_a_model_come_with_a_path),
    ("going_on_keeps_the_shortest_path", going_on_keeps_the_shortest_path),
    ("a_fault_is_reported_whatever_was_found_before", a_fault_is_reported_whatever_was_found_before),
    ("overflows_are_reported", overflows_are_reported),
    ("limits_stop_it", limits_stop_it),
    ("interruption_ends_it_with_a_report", interruption_ends_it_with_a_report),
    ("too_little_memory_ends_it_at_once", too_little_memory_ends_it_at_once),
    ("tables_do_not_get_too_full", tables_do_not_get_too_full),
    ("long_paths_are_found", long_paths_are_found),
    ("parents_are_kept_while_the_table_grows", parents_are_kept_while_the_table_grows),
];

/// Tests for GPUs only.
const ON_GPUS: [OfPlace; 2] =
    [("cycles_are_measured", cycles_are_measured), ("large_networks_have_their_closed_counts", languages::large_networks)];

const ONCE: &[(&str, fn())] = &[
    ("claiming_has_one_mistake_at_most", claiming::claiming_has_one_mistake_at_most),
    ("reduced_searches_find_the_same", reductions::reduced_searches_find_the_same),
    ("reduced_searches_say_so", reductions::reduced_searches_say_so),
    ("what_a_reduction_does_not_keep_is_refused", reductions::what_a_reduction_does_not_keep_is_refused),
    ("dependencies_are_written", reductions::dependencies_are_written),
    ("what_a_limit_ended_has_no_verdict", nets::what_a_limit_ended_has_no_verdict),
    ("properties_have_paths_and_places", nets::properties_have_paths_and_places),
    ("labels_are_exported_as_they_were", languages::labels_are_exported_as_they_were),
    ("what_is_no_checkpoint_of_the_search_is_refused", checkpoints::what_is_no_checkpoint_of_the_search_is_refused),
    ("checkpoints_overwrite_nothing_else", checkpoints::checkpoints_overwrite_nothing_else),
    ("checkpoints_that_mislead_are_refused", checkpoints::checkpoints_that_mislead_are_refused),
    #[cfg(unix)]
    ("links_beside_a_checkpoint_are_not_followed", checkpoints::links_beside_a_checkpoint_are_not_followed),
    ("products_are_exported_with_their_verdict", languages::products_are_exported_with_their_verdict),
    ("exported_state_spaces_are_models", languages::exported_state_spaces_are_models),
    ("exports_are_whole_or_nothing", languages::exports_are_whole_or_nothing),
    ("exports_are_the_same_from_every_table", exports_are_the_same_from_every_table),
    ("languages_are_told_by_extension_or_name", languages::languages_are_told_by_extension_or_name),
    ("large_components_are_tables", languages::large_components_are_tables),
    ("paths_are_printed_with_lines_and_changes", paths_are_printed_with_lines_and_changes),
    ("what_was_found_is_reported_without_a_path_too", what_was_found_is_reported_without_a_path_too),
    ("errors_have_their_exit_code_and_place", errors_have_their_exit_code_and_place),
    ("options_that_would_do_nothing_are_refused", options_that_would_do_nothing_are_refused),
    ("first_tables_fit_their_memory", first_tables_fit_their_memory),
    #[cfg(unix)]
    ("outputs_that_cannot_be_written_leave_the_report", outputs_that_cannot_be_written_leave_the_report),
    #[cfg(unix)]
    ("deep_brackets_are_asked_of_clang_only", deep_brackets_are_asked_of_clang_only),
    ("compiled_code_may_come_later_or_never", compiled_code_may_come_later_or_never),
    (
        "files_may_have_a_byte_order_mark_and_other_bytes_in_comments",
        files_may_have_a_byte_order_mark_and_other_bytes_in_comments,
    ),
    ("the_time_is_split", the_time_is_split),
    ("help_teaches", help_teaches),
    ("manuals_and_completions_are_generated", manuals_and_completions_are_generated),
    ("models_of_other_tools_are_refused_with_advice", models_of_other_tools_are_refused_with_advice),
    ("limits_of_nothing_are_refused", limits_of_nothing_are_refused),
    ("numbers_agree_with_their_nouns", numbers_agree_with_their_nouns),
    ("what_is_never_reached_is_named", what_is_never_reached_is_named),
    ("paths_are_drawn", paths_are_drawn),
    ("state_spaces_are_drawn", state_spaces_are_drawn),
    ("models_are_stepped_through", models_are_stepped_through),
    ("walks_find_the_same_path_with_any_number_of_threads", walks_find_the_same_path_with_any_number_of_threads),
    ("what_does_not_fit_is_said", what_does_not_fit_is_said),
    ("counts_say_what_they_rest_on", counts_say_what_they_rest_on),
    ("outputs_are_opened_before_the_search", outputs_are_opened_before_the_search),
    ("outputs_do_not_overwrite_the_model_or_each_other", outputs_do_not_overwrite_the_model_or_each_other),
    ("recording_has_a_limit", recording_has_a_limit),
    ("models_that_are_no_files_or_too_long_are_refused", models_that_are_no_files_or_too_long_are_refused),
    ("runs_are_printed_with_their_loop", runs_are_printed_with_their_loop),
    ("formulas_are_refused_with_their_place", formulas_are_refused_with_their_place),
    ("automata_are_written_and_read", automata_are_written_and_read),
    ("a_property_of_the_model_can_be_left_out", a_property_of_the_model_can_be_left_out),
    ("models_come_from_standard_input_too", models_come_from_standard_input_too),
    ("json_is_one_object_on_every_path", json_is_one_object_on_every_path),
    ("time_and_threads_have_limits", time_and_threads_have_limits),
    #[cfg(unix)]
    ("readers_and_disks_that_take_no_more_are_no_reason_to_panic", readers_and_disks_that_take_no_more_are_no_reason_to_panic),
    #[cfg(target_os = "linux")]
    ("interruption_while_reading_or_compiling_is_an_error", interruption_while_reading_or_compiling_is_an_error),
    #[cfg(target_os = "linux")]
    ("a_second_interruption_ends_it_at_once", a_second_interruption_ends_it_at_once),
];

/// A test that needs the executable of `replay`, by its name.
type WithReplay = (&'static str, fn(&Path));

const WITH_REPLAY: [WithReplay; 2] = [
    ("recorded_vectors_can_be_replayed", recorded_vectors_can_be_replayed),
    ("recordings_that_reached_their_limit_can_be_replayed", recordings_that_reached_their_limit_can_be_replayed),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = ONCE.iter().map(|(name, test)| trial(name.to_string(), Box::new(test))).collect();
    let replay = replay();
    trials.extend(WITH_REPLAY.iter().map(|(name, test)| match replay.clone() {
        Some(replay) => trial(name.to_string(), Box::new(move || test(&replay))),
        None => skipped(name.to_string(), "not built: cargo build --example replay"),
    }));
    for table in TABLES {
        let place = TableOnDevice { device: "cpu:2", table };
        trials.extend(
            EVERYWHERE
                .iter()
                .filter(|(name, _)| is_of(table, name))
                .map(|(name, test)| trial(format!("cpu::{table}::{name}"), Box::new(move || test(place)))),
        );
    }
    let on_gpus = || {
        let all = TABLES.iter().flat_map(|table| EVERYWHERE.iter().chain(&ON_GPUS).map(move |test| (*table, *test)));
        all.filter(|(table, (name, _))| is_of(table, name))
    };
    let mut no_gpu = None;
    match machines::gpus() {
        Gpus::Here(_) => trials.extend(on_gpus().map(|(table, (name, test))| {
            let place = TableOnDevice { device: "gpu", table };
            trial(format!("gpu::{table}::{name}"), Box::new(move || test(place)))
        })),
        Gpus::NotHere(why) => {
            let trials_of_gpus: Vec<_> =
                on_gpus().map(|(table, (name, _))| skipped(format!("gpu::{table}::{name}"), "no CUDA device")).collect();
            no_gpu = Some((trials_of_gpus.len(), why));
            trials.extend(trials_of_gpus);
        }
        Gpus::Broken(why) => trials.push(Trial::test("gpu::can_be_used", || Err(Failed::from(why)))),
    }
    for (test, variable, of_folder) in OF_FOLDERS {
        match std::env::var_os(variable).map(PathBuf::from) {
            Some(folder) => trials.push(trial(test.into(), Box::new(move || of_folder(&folder)))),
            None => trials.push(skipped(test.into(), "its variable does not name a folder of models (.ci/run)")),
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some((count, why)) = no_gpu.filter(|_| conclusion.num_ignored > 0) {
        println!("{count} GPU tests skipped: no CUDA device ({why})\n");
    }
    conclusion.exit_code()
}

fn model(name: &str) -> PathBuf {
    file(name).with_extension("dve")
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(name)
}

fn explore_on(device: &str, model: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    let mut command = Command::new(EXPLORE);
    command.arg(model).args(["--device", device]).args(arguments).output().expect("the checker starts")
}

fn explore(model: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    explore_on("cpu:2", model, arguments)
}

impl TableOnDevice {
    /// Runs the checker and returns the exit code and the printed object. On a GPU the table begins small, unless the arguments
    /// give its size.
    #[track_caller]
    fn json(self, model: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
        let small = ["--capacity", "64"];
        let begins: &[&str] = if self.is_gpu() && !arguments.contains(&"--capacity") { &small } else { &[] };
        json_on(self.device, model, &[&["--table", self.table], begins, arguments].concat())
    }

    fn is_gpu(self) -> bool {
        self.device == "gpu"
    }
}

/// Runs the checker on two threads with the default table, and returns the exit code and the printed object.
#[track_caller]
fn json(model: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    json_on("cpu:2", model, arguments)
}

#[track_caller]
fn json_on(device: &str, model: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = explore_on(device, model, arguments.iter().chain(&["--json"]));
    let report = only_object(&output);
    assert!(output.stderr.is_empty() || report["warning_count"] != 0, "{output:?}");
    (output.status.code(), report)
}

/// The only object printed with `--json`: a report or an error. It must contain the exit code.
#[track_caller]
fn only_object(output: &Output) -> Value {
    let object: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(object["exit_code"].as_i64(), output.status.code().map(i64::from), "{output:?}");
    // A report contains an error only if an output could not be written.
    let is_unwritten = object["error"].as_str().is_some_and(|error| error.contains("cannot be written"));
    assert!(
        is_unwritten || object["error"].is_string() == (object.get("states").is_none() && object.get("simulation").is_none()),
        "{output:?}"
    );
    object
}

/// States, transitions, deadlocks, levels, the widest level.
fn counts(report: &Value) -> [u64; 5] {
    ["states", "transitions", "deadlocks", "levels", "widest_level"].map(|name| report[name].as_u64().expect(name))
}

/// States, transitions, deadlocks and levels, counted by programs written by hand for this purpose, without the library and its
/// interpreter.
const GOLDEN: [(&str, [u64; 4]); 6] = [
    ("mailbox", [413, 582, 1, 25]),
    ("peterson", [20, 34, 0, 7]),
    ("peterson_wrong", [32, 60, 0, 8]),
    ("philosophers", [392, 1250, 1, 17]),
    ("readers_writers", [11, 22, 1, 5]),
    ("river", [10, 20, 0, 8]),
];

fn own_models_have_their_counts(place: TableOnDevice) {
    for (name, expected) in GOLDEN {
        let (code, report) = place.json(&model(name), &[]);
        assert_eq!(counts(&report)[..4], expected, "{name}");
        assert_eq!((code, &report["complete"], &report["violation"]), (Some(0), &Value::Bool(true), &Value::Null), "{name}");
        assert_eq!(report["engine"] == "compiled for the GPU", place.is_gpu());
    }
}

/// Verdicts that a reader can follow; for violated formulas the number of steps before the loop, and in the loop.
fn formulas_have_their_verdicts(place: TableOnDevice) {
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
fn runs_of_large_products_are_shortest(place: TableOnDevice) {
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

fn fairness_and_possibility_have_their_verdicts(place: TableOnDevice) {
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

fn runs_are_printed_with_their_loop() {
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("trace.json");
    let arguments = ["--ltl", "G F P_0.critical", "--trace", trace.to_str().unwrap()];
    let text = String::from_utf8(explore(&model("peterson"), arguments).stdout).unwrap();
    for part in [
        "property           G F P_0.critical\nautomaton          2 states, weak\n",
        "verdict            the property is VIOLATED",
        "A run that violates the property: 1 step, then a loop of 4 steps",
        "  0. initial state: P_0.idle, P_1.idle, automaton.q0\n  1. P_1: idle -> asked (line 21) [q0 -> q1]\n       wants[1]: 0 -> 1\n",
        "The loop, repeated forever, from P_0.idle, P_1.asked, automaton.q1, wants[1] = 1:\n  2. P_1: asked -> waiting (line 22)\n",
        "This is the state after step 1 again.",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&trace).unwrap()).unwrap();
    assert_eq!((&written["loop_begins"], &written["violation"]["kind"]), (&Value::from(1), &Value::from("cycle")));
    assert_eq!(written["steps"].as_array().unwrap().len(), 5);
    assert_eq!(written["steps"][0]["automaton"], serde_json::json!(["q0", "q1"]));
    // A run that ends continues in its last state.
    let text = String::from_utf8(explore(&model("mailbox"), ["--ltl", "G F Consumer.taken"]).stdout).unwrap();
    assert!(text.contains("no step is possible: the run stays in this state"), "{text}");
}

fn formulas_are_refused_with_their_place() {
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

fn automata_are_written_and_read() {
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
        assert_eq!(by_formula[name], by_file[name], "{name}");
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

fn a_property_of_the_model_can_be_left_out() {
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

const EXCLUSION: &str = "P_0.critical + P_1.critical <= 1";

fn violations_come_with_the_shortest_path(place: TableOnDevice) {
    for (name, arguments, length, found) in [
        ("peterson_wrong", &["--invariant", EXCLUSION][..], 6, "invariant violated: P_0.critical + P_1.critical <= 1"),
        ("readers_writers", &["--deadlock"], 4, "deadlock: no step is possible"),
        ("philosophers", &["--deadlock"], 5, "deadlock: no step is possible"),
        ("river", &["--goal", "farmer and wolf and goat and cabbage"], 7, "goal reached: farmer and wolf and goat and cabbage"),
        ("mailbox", &["--deadlock"], 24, "deadlock: no step is possible"),
        ("mailbox", &["--invariant", "Consumer.number / (2 - Consumer.number) < 9"], 8, "fault in a condition: division by zero"),
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

fn paths_are_printed_with_lines_and_changes() {
    let output = explore(&model("peterson_wrong"), ["--invariant", EXCLUSION]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "The shortest path has 6 steps",
        "0. initial state: P_0.idle, P_1.idle",
        "yielded -> waiting (line ",
        "turn: 0 -> 1",
        "There: invariant violated: P_0.critical + P_1.critical <= 1",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let text = String::from_utf8(explore(&model("readers_writers"), ["--deadlock"]).stdout).unwrap();
    assert!(
        text.contains("outside -> inside (line 23, sends on enter), with Lock: shared -> shared (line 13, receives on enter)")
            || text.contains(
                "outside -> inside (line 34, sends on enter), with Lock: shared -> shared (line 13, receives on enter)"
            ),
        "{text}"
    );
}

fn what_holds_is_not_reported(place: TableOnDevice) {
    for (name, arguments) in [
        ("peterson", &["--deadlock", "--invariant", EXCLUSION, "--goal", "P_0.critical and P_1.critical"][..]),
        ("river", &["--deadlock", "--goal", "wolf == goat and goat != farmer"]),
        ("mailbox", &["--invariant", "P_0.next <= 4 and P_1->next <= 4"]),
    ] {
        let (code, report) = place.json(&model(name), arguments);
        assert_eq!((code, &report["path"]), (Some(0), &Value::Null), "{name}");
    }
}

/// Writes a model to a file in a folder of its own.
fn written(text: &str) -> (TempDir, PathBuf) {
    written_as("model.dve", text)
}

fn written_as(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn assertions_are_checked(place: TableOnDevice) {
    let text = std::fs::read_to_string(model("mailbox")).unwrap();
    let (_folder, path) = written(&text.replace("sync box!{1, next};", "sync box!{0, next};"));
    let (code, report) = place.json(&path, &[]);
    // The values 0, 0 from both producers are in the box and taken; the second 0 is not the expected value.
    assert_eq!((code, report["violation"].as_str()), (Some(1), Some("assertion violated: taken: number == expected[from]")));
    assert_eq!(report["path"]["length"], 5);
    let (code, report) = place.json(&path, &["--keep-going"]);
    assert_eq!((code, &report["complete"]), (Some(1), &Value::Bool(true)));
}

fn faults_of_a_model_come_with_a_path(place: TableOnDevice) {
    let text = "byte a[3], i;\nprocess P {\n state s;\n init s;\n trans s -> s {\n  effect a[i] = 1,\n   i = i + 1; };\n}\nsystem async;";
    let (_folder, path) = written(text);
    for arguments in [&[][..], &["--keep-going"]] {
        let (code, report) = place.json(&path, arguments);
        assert_eq!((code, report["path"]["length"].as_u64(), report["complete"].as_bool()), (Some(1), Some(3), Some(false)));
        let found = report["violation"].as_str().unwrap();
        assert!(found.ends_with(":6:10: the array a has 3 elements, but its index is 3"), "{found}");
    }
    // A fault ends the search even after another violation.
    for condition in ["i < 1", "i < 3", "1 / (2 - i) < 9"] {
        let (code, report) = place.json(&path, &["--keep-going", "--invariant", condition]);
        assert_eq!((code, report["end"].as_str()), (Some(1), Some("found")), "{condition}");
    }
}

/// A counter that passes 3 and later returns to it: the lowest level of 3 is the third.
fn going_on_keeps_the_shortest_path(place: TableOnDevice) {
    for last in ["s -> s { guard x == 9; effect x = 0; }", "s -> s { guard x == 8; effect x = 3; }"] {
        let text = "byte x; process P { state s; init s; trans s -> s { guard x < 9; effect x = x + 1; },".to_string();
        let (_folder, path) = written(&format!("{text} {last}; }} system async;"));
        let (code, report) = place.json(&path, &["--keep-going", "--goal", "x == 3"]);
        assert_eq!((code, &report["complete"], counts(&report)[0]), (Some(1), &Value::Bool(true), 10), "{last}");
        assert_eq!((&report["no_path"], report["path"]["length"].as_u64()), (&Value::Null, Some(3)), "{last}");
    }
}

fn a_fault_is_reported_whatever_was_found_before(place: TableOnDevice) {
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

fn overflows_are_reported(place: TableOnDevice) {
    let (_folder, path) = written("byte i; process P { state s; init s; trans s -> s { effect i = i + 1; }; } system async;");
    let (code, report) = place.json(&path, &[]);
    assert_eq!((code, counts(&report), report["overflows"].as_u64()), (Some(0), [256, 256, 0, 256, 1], Some(1)));
    let output = explore_on(place.device, &path, ["--table", place.table]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 store wrapped"));
}

/// Three counters to 30: 29,791 states.
const COUNTERS: &str = "byte a, b, c; process P { state s; init s; trans
    s -> s { guard a < 30; effect a = a + 1; }, s -> s { guard b < 30; effect b = b + 1; }, s -> s { guard c < 30; effect c = c + 1; };
    } system async;";

fn limits_stop_it(place: TableOnDevice) {
    let (_folder, path) = written(COUNTERS);
    let (code, report) = place.json(&path, &["--max-states", "10k"]);
    assert_eq!((code, &report["complete"], report["end"].as_str()), (Some(3), &Value::Bool(false), Some("max-states")));
    assert!((10_000..29_791).contains(&counts(&report)[0]));
    let (code, report) = place.json(&path, &["--memory", "100k", "--capacity", "1000"]);
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

fn too_little_memory_ends_it_at_once(place: TableOnDevice) {
    let (_folder, path) = written(COUNTERS);
    let (code, report) = place.json(&path, &["--memory", "1k", "--capacity", "1000"]);
    assert_eq!((code, report["end"].as_str(), counts(&report)), (Some(3), Some("memory"), [1, 0, 0, 1, 1]));
    let arguments = ["--memory", "1k", "--capacity", "1000", "--table", place.table];
    let text = String::from_utf8(explore_on(place.device, &path, arguments).stdout).unwrap();
    assert!(text.contains("1 state of the last level and all later levels not expanded"), "{text}");
}

/// Without a given size, the first table on a CPU stays within --memory; and messages about memory give the amounts.
fn first_tables_fit_their_memory() {
    let (_folder, counters) = written(COUNTERS); // 29,791 states
    for table in TABLES {
        for (memory, bytes) in [("3MiB", 3 << 20), ("100k", 100_000)] {
            let (code, report) = json(&model("peterson"), &["--memory", memory, "--table", table]);
            assert_eq!((code, counts(&report)[..4].to_vec()), (Some(0), vec![20, 34, 0, 7]), "{report}");
            let taken = ["bytes", "bytes_lists"].map(|name| report[name].as_u64().expect(name)).iter().sum::<u64>();
            assert!(taken <= bytes, "{table}: {taken} of {bytes} bytes");
        }
        for (memory, capacity, text) in [
            ("1k", "1000", "stopped at --memory 1000 B, where the table and lists of states take "),
            ("100k", "10000", "stopped at --memory 97.66 KiB, where "),
        ] {
            let output = explore(&counters, ["--table", table, "--memory", memory, "--capacity", capacity]);
            let report = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.code() == Some(3) && report.contains(text), "{table}: {report}");
        }
    }
}

/// Levels have one state each, and the table's fill is checked after every level, so the table grows as soon as it must.
fn tables_do_not_get_too_full(place: TableOnDevice) {
    // One of these tables, filled to 85 % each time, has 6,352 slots: it must have grown at 5,400 states.
    let (_folder, path) = written(&chain(6000));
    let (code, report) = place.json(&path, &["--capacity", "64"]);
    assert_eq!((code, counts(&report)), (Some(0), [6001, 6000, 1, 6001, 1]));
    let fill = report["fill"].as_f64().unwrap();
    assert!(fill <= 0.86, "{fill}");
}

fn long_paths_are_found(place: TableOnDevice) {
    let (_folder, path) = written(&chain(2000));
    let (code, report) = place.json(&path, &["--deadlock", "--capacity", "64"]);
    assert_eq!((code, &report["no_path"], report["path"]["length"].as_u64()), (Some(1), &Value::Null, Some(2000)));
}

/// Counts and length of the path are the same with every table, with or without parents.
fn parents_are_kept_while_the_table_grows(place: TableOnDevice) {
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
    assert!(code == Some(1) && report["table"].as_str().is_some_and(|table| table.contains("index")), "{report}");
    let (_folder, faulty) = written(
        "byte i, a[3]; process P { state s; init s; trans s -> s { guard i < 9; effect a[i] = 1, i = i + 1; }; } system async;",
    );
    let (code, report) = json_on(place.device, &faulty, &["--parents", "--capacity", "1"]);
    assert_eq!((code, &report["no_path"], report["path"]["length"].as_u64()), (Some(1), &Value::Null, Some(3)));
}

/// A counter to `length`.
fn chain(length: u32) -> String {
    format!("int x; process P {{ state s; init s; trans s -> s {{ guard x < {length}; effect x = x + 1; }}; }} system async;")
}

fn exports_are_the_same_from_every_table() {
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
        for memory in (1..60).step_by(3).map(|kib| format!("{kib}KiB")) {
            let (code, report) = json(&path, &[&export[..], goal, &["--memory", &memory]].concat());
            // There is one fewer transition than states until all of these states are expanded.
            if report["transitions"].as_u64().unwrap() >= states {
                assert!(code == Some(1) && !report["violation"].is_null(), "{memory}: {report}");
                lost += u64::from(report["states"] == states);
            }
        }
        assert!(lost > 0, "{goal:?}");
    }
}

fn cycles_are_measured(place: TableOnDevice) {
    let (_folder, path) = written(COUNTERS);
    let (code, report) = place.json(&path, &["--cycles"]);
    assert_eq!((code, counts(&report)), (Some(0), [29_791, 86_490, 1, 91, 721]));
    for name in ["fetching", "generating", "caching", "putting", "waiting"] {
        assert!(report["cycles"][name].as_u64().is_some_and(|cycles| cycles > 0), "{name}: {report}");
    }
    // Levels that found the table full are repeated.
    assert!(report["offered"].as_u64().is_some_and(|offered| offered >= 86_490), "{report}");
    let output = explore_on(place.device, &path, ["--cycles", "--table", place.table]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the table alone was not measured: too few states"), "{text}");
}

/// The table takes the memory left by the lists of states, but a path needs longer lists.
fn what_was_found_is_reported_without_a_path_too() {
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

fn options_that_would_do_nothing_are_refused() {
    for (arguments, part) in [
        (&["--engine", "gpu", "--record", "x.npz"][..], if cfg!(feature = "cuda") { "--record needs" } else { "`cuda` is off" }),
        (&["--engine", "gpu"], if cfg!(feature = "cuda") { "needs a table on a GPU" } else { "`cuda` is off" }),
        (&["--cycles"], "--cycles needs --engine gpu"),
        (&["--engine", "compiled", "--cycles"], "--cycles needs --engine gpu"),
        (&["--table", "indexed", "--ef", "P_0.critical"], "--table indexed cannot be combined with a property"),
        (&["--table", "tree", "--parents"], "--parents needs --table indexed"),
        (&["--local-ranks", "2", "--parents"], "--parents cannot be combined with ranks"),
        (&["--nodes", "1000", "--table", "bucket"], "--nodes is for tree tables only: it needs --table tree"),
    ] {
        let output = explore(&model("peterson"), arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{text}");
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("explore.cu");
    let output = explore(&model("peterson"), ["--emit", file.to_str().unwrap()]);
    assert_eq!((output.status.success(), file.is_file()), (cfg!(feature = "cuda"), cfg!(feature = "cuda")), "{output:?}");
}

fn errors_have_their_exit_code_and_place() {
    let (_folder, path) = written("byte x;\nprocess P { state s; init t; }\nsystem async;");
    let fails = |path: &Path, arguments: &[&str], parts: &[&str]| {
        let output = explore(path, arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{text}");
        parts.iter().for_each(|part| assert!(text.contains(part), "{part} is missing:\n{text}"));
    };
    fails(&path, &[], &["there is no state `t`", "model.dve:2:27", "process P { state s; init t; }"]);
    fails(
        &model("peterson"),
        &["--invariant", "P_0.crit == 1"],
        &["there is no state or variable of P_0 `crit`", "--invariant:1:5"],
    );
    fails(&model("missing"), &[], &["missing.dve cannot be read"]);
    fails(&model("peterson"), &["--capacity", "many"], &["not a number"]);
}

/// Waits until no process that another test has just started holds the script open for writing; such a process does until it
/// executes its own program.
#[cfg(unix)]
fn until_it_runs(script: &Path) {
    let is_busy = |error: std::io::Error| error.kind() == std::io::ErrorKind::ExecutableFileBusy;
    while Command::new(script).arg("--version").output().is_err_and(is_busy) {}
}

/// Clang accepts 256 nested brackets unless an option allows more; no other compiler knows that option.
#[cfg(unix)]
fn deep_brackets_are_asked_of_clang_only() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = written(COUNTERS);
    let [compiler, arguments] = ["compiler", "arguments"].map(|name| folder.path().join(name));
    for (version, takes_brackets) in [("Debian clang version 19.1.7", true), ("c++ (Debian 14.2.0) 14.2.0", false)] {
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{version}'; exit; fi\necho \"$@\" > '{}'\necho no >&2\nexit 1\n",
            arguments.display()
        );
        std::fs::write(&compiler, script).unwrap();
        std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
        until_it_runs(&compiler);
        let output = Command::new(EXPLORE)
            .arg(&path)
            .args(["--device", "cpu:2", "--engine", "compiled"])
            .env("CXX", &compiler)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains("did not compile") && message.contains("no\n"), "{output:?}");
        let arguments = std::fs::read_to_string(&arguments).unwrap();
        assert_eq!(arguments.contains("-fbracket-depth"), takes_brackets, "{arguments}");
    }
}

/// The interpreter, with which `auto` begins, and the compiled code that replaces it count the same. Whether a compiler exists
/// and works does not change the counts.
fn compiled_code_may_come_later_or_never() {
    let (_folder, path) = written(&COUNTERS.replace("30", "70"));
    for compiler in [None, Some("false"), Some("/no/compiler")] {
        let mut command = Command::new(EXPLORE);
        command.arg(&path).args(["--device", "cpu:2", "--json"]);
        if let Some(compiler) = compiler {
            command.env("CXX", compiler);
        }
        let output = command.output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(counts(&report), [357_911, 1_058_610, 1, 211, 3781], "{report}");
        let engine = report["engine"].as_str().unwrap();
        assert!(engine.starts_with("interpreted") && (compiler.is_none() || !engine.contains("then compiled")), "{engine}");
    }
}

fn files_may_have_a_byte_order_mark_and_other_bytes_in_comments() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.dve");
    let model = std::fs::read(model("peterson")).unwrap();
    std::fs::write(&path, [b"\xef\xbb\xbf// caf\xe9\n", &model[..]].concat()).unwrap();
    let (code, report) = json(&path, &[]);
    assert_eq!((code, counts(&report)[..4].to_vec()), (Some(0), vec![20, 34, 0, 7]));
}

fn the_time_is_split() {
    let (_, report) = json(&model("peterson"), &["--engine", "compiled"]);
    for name in ["seconds", "seconds_parse", "seconds_device", "seconds_table", "seconds_compile", "seconds_path"] {
        assert!(report[name].as_f64().is_some_and(|seconds| seconds >= 0.0), "{name}: {report}");
    }
    assert!(report["seconds_compile"].as_f64() > Some(0.01), "a compiler takes longer");
    let text = String::from_utf8(explore(&model("peterson"), [""; 0]).stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("time ")).unwrap();
    assert!([" parse ", " table ", " compile ", " explore "].iter().all(|part| line.contains(part)), "{line}");
}

fn recorded_vectors_can_be_replayed(replay: &Path) {
    for (name, [states, transitions, ..]) in GOLDEN {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("vectors.npz");
        let (_, report) = json(&model(name), &["--record", file.to_str().unwrap()]);
        let output = Command::new(replay).arg(&file).args(["--json", "--verify", "--device", "cpu:2"]).output().unwrap();
        let replayed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        // The initial state, and the target of every transition.
        assert_eq!(replayed["vectors"].as_u64(), Some(transitions + 1));
        assert_eq!((replayed["distinct"].as_u64(), &replayed["width"]), (Some(states), &report["words"]));
    }
}

fn help_teaches() {
    let output = Command::new(EXPLORE).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for part in
        ["--invariant 'P_0.CS + P_1.CS <= 1'", "130  interrupted", "--max-states", "--memory", "--timeout", "--record", "--table"]
    {
        assert!(text.contains(part), "{part} is missing");
    }
}

fn manuals_and_completions_are_generated() {
    let generate = |kind: &str| Command::new(EXPLORE).args(["--generate", kind]).output().unwrap();
    for (kind, part) in [
        ("man", ".TH explore 1"),
        ("complete-bash", "--checkpoint-every"),
        ("complete-zsh", "#compdef explore"),
        ("complete-fish", "complete -c explore"),
        ("complete-powershell", "Register-ArgumentCompleter"),
        ("complete-elvish", "edit:completion"),
    ] {
        let output = generate(kind);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && output.stderr.is_empty() && text.contains(part), "{kind}: {output:?}");
    }
    let output = generate("html");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("complete-zsh"), "{said}");
    let output = explore(&model("peterson"), ["--generate", "man"]);
    assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{output:?}");
}

fn models_of_other_tools_are_refused_with_advice() {
    let folder = TempDir::new().unwrap();
    for (name, parts) in [
        ("leader.pml", ["Promela", "write the model in DVE"]),
        ("Queue.TLA", ["TLA+", ".aut"]),
        ("cache.m", ["Murphi", "write the model in DVE"]),
        ("abp.mcrl2", ["mCRL2", "lps2lts"]),
    ] {
        let path = folder.path().join(name);
        std::fs::copy(model("peterson"), &path).unwrap();
        let output = explore(&path, ["--json"]);
        let error = only_object(&output)["error"].as_str().unwrap().to_string();
        assert!(output.status.code() == Some(2) && parts.iter().all(|part| error.contains(part)), "{error}");
        // The option decides, whatever the name is.
        assert_eq!(counts(&json(&path, &["--format", "dve"]).1)[0], 20);
    }
}

fn limits_of_nothing_are_refused() {
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

fn numbers_agree_with_their_nouns() {
    let (_folder, path) = written("process P { state s; init s; trans s -> s {}; } system async;");
    let output = explore(&path, ["--goal", "P.s"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["(1 word per state)", "levels             1 (the widest has 1 state)", "has 0 steps"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let (_folder, path) = written("");
    let output = explore(&path, [""; 0]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("the text is empty"), "{output:?}");
}

/// A client asks a server through a queue, and is answered by a rendezvous. State `never` and the last transition do not occur.
const ASKING: &str = "channel {byte} ask[2]; channel answer; byte served;
process Client { state idle, waiting, never; init idle; trans
  idle -> waiting { sync ask!7; }, waiting -> idle { sync answer?; }, waiting -> never { guard served > 9; }; }
process Server { byte got; state free, busy; init free; trans
  free -> busy { sync ask?got; }, busy -> free { guard served < 2; sync answer!; effect served = served + 1; }; }
system async;";

fn what_is_never_reached_is_named() {
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

fn paths_are_drawn() {
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
        "sends on ask, received in step 2",
        "receives on ask what step 1 sent",
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
    // Components of a network that step together.
    let output = explore(&file("crossing.exp"), ["--goal", "train_1 == 2", "--trace", txt.to_str().unwrap()]);
    let text = std::fs::read_to_string(&txt).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("- APPROACH -") && text.contains("0 -> 1"), "{text}");
}

fn state_spaces_are_drawn() {
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
    // Too large for a picture, not for an .aut file.
    let (_folder, path) =
        written("byte x; int y; process P { state s; init s; trans s -> s { effect y = y + 1; }; } system async;");
    let output = explore(&path, ["--export", name, "--json"]);
    let error = only_object(&output)["error"].as_str().unwrap().to_string();
    assert!(output.status.code() == Some(2) && error.contains("more than 2000 states"), "{error}");
}

fn models_are_stepped_through() {
    let step = |model: &Path, options: &[&str], commands: &str| {
        let mut command = Command::new(EXPLORE);
        let mut child = spawned(command.arg(model).args(["--device", "cpu:2", "--step"]).args(options));
        child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, text) = step(&model("peterson"), &[], "1\nu\ne P_0.idle\nq\n");
    assert!(code == Some(0) && text.starts_with("state 0: P_0.idle, P_1.idle\n  1. P_0: idle -> asked"), "{text}");
    assert!(text.contains("state 1: P_0.asked") && text.ends_with("\n1\n"), "{text}");
    let (code, text) = step(&model("peterson_wrong"), &["--invariant", "P_0.critical + P_1.critical <= 1"], "n 6\nn\n");
    assert!(
        code == Some(1) && text.contains("The shortest path has 6 steps") && text.contains("state 6: P_0.critical, P_1.critical"),
        "{text}"
    );
    assert!(text.ends_with("the path ends here\n"), "{text}");
    let (code, text) = step(&model("peterson"), &["--ltl", "G F P_0.critical"], "n 5\n");
    assert!(code == Some(1) && text.contains("state 5: ") && text.contains("automaton."), "{text}");
    let (code, _) = step(Path::new("-"), &[], "");
    assert_eq!(code, Some(2));
}

fn walks_find_the_same_path_with_any_number_of_threads() {
    let path = model("peterson_wrong");
    let walk = |device: &str, more: &[&str]| {
        let arguments =
            [&["--simulate", "1000,50", "--seed", "3", "--invariant", "P_0.critical + P_1.critical <= 1", "--json"], more]
                .concat();
        let output = explore_on(device, &path, arguments);
        (output.status.code(), only_object(&output))
    };
    let (code, one) = walk("cpu:1", &["--engine", "interpreted"]);
    assert_eq!((code, one["end"].as_str()), (Some(1), Some("found")), "{one}");
    let last = &one["path"]["final"]["locations"];
    assert_eq!((last["P_0"].as_str(), last["P_1"].as_str()), (Some("critical"), Some("critical")), "{one}");
    assert!(one["path"]["length"].as_u64().is_some_and(|length| (6..=50).contains(&length)), "{one}");
    let (_, other) = walk("cpu:4", &[]);
    assert_eq!((&one["walk"], &one["path"]), (&other["walk"], &other["path"]));
    // All walks are complete where nothing is wrong, and where a deadlock is only counted.
    let (code, report) = json(&model("peterson"), &["--simulate", "100,200"]);
    let numbers = ["walks_taken", "steps", "longest"].map(|name| report[name].as_u64());
    assert_eq!((code, numbers), (Some(0), [Some(100), Some(20_000), Some(200)]), "{report}");
    let (code, report) = json(&model("readers_writers"), &["--simulate", "200,500"]);
    assert!(code == Some(0) && report["deadlocks"].as_u64().is_some_and(|count| count > 0), "{report}");
    let output = explore(&model("readers_writers"), ["--simulate", "200,500", "--deadlock"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.code() == Some(1) && text.contains("There: deadlock: no step is possible") && text.contains("\nWalk "),
        "{text}"
    );
    for refused in [&["--ltl", "G true"][..], &["--local-ranks", "2"], &["--engine", "gpu"], &["--export", "x.aut"]] {
        let output = explore(&model("peterson"), [&["--simulate", "10"], refused].concat());
        assert_eq!(output.status.code(), Some(2), "{refused:?}: {output:?}");
    }
    let (_folder, path) = written(ENDLESS);
    let (code, report) = json(&path, &["--simulate", "2^50", "--timeout", "1"]);
    assert_eq!((code, report["end"].as_str()), (Some(3), Some("timeout")), "{report}");
}

/// Values of a text that do not fit, of every kind.
const UNFIT: &str = "const byte N = 300;
byte x = 300, a[2] = {1, 2, 3}, b[3] = {1};
int y = -2147483648, z = 1 << 70;
process P { state s, t; init s; trans s -> t { guard x == 44 and N == 44; effect x = 256; }; }
system async;";

fn what_does_not_fit_is_said() {
    let (_folder, path) = written(UNFIT);
    let output = explore(&path, ["--invariant", "x << 32 < 300"]);
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for part in [
        "300 does not fit a byte, which holds 0 to 255",
        "model.dve:1:16",
        "const byte N = 300;",
        "becomes 44",
        "model.dve:2:10",
        "the array `a` has 2 elements, but its list has 3 values",
        "model.dve:2:29",
        "the array `b` has 3 elements, but its list has 1 value",
        "-2147483648 does not fit an int, which holds -32768 to 32767",
        "becomes 0",
        "a shift by 70; only 0 to 31 are possible",
        "shifts by 6",
        "256 does not fit a byte",
        "a shift by 32",
        "--invariant:1:3",
    ] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    // The six values are N, x, the third value, y and two shifts; the store of 256 is counted when it takes place.
    let line = text.lines().find(|line| line.starts_with("overflows ")).unwrap();
    assert!(line.contains("1 store wrapped; 6 values of the text not taken as written (see the warnings)"), "{line}");
    let (code, report) = json(&path, &["--invariant", "x << 32 < 300"]);
    assert_eq!((code, counts(&report)[0]), (Some(0), 2));
    let numbers = ["overflows", "overflows_of_text", "warning_count"].map(|name| report[name].as_u64().unwrap());
    assert_eq!(numbers, [7, 6, 8]);
    let first = &report["warnings"][0];
    assert!(first["place"].as_str().unwrap().ends_with("model.dve:1:16"), "{first}");
    assert_eq!(first["message"], "300 does not fit a byte, which holds 0 to 255: becomes 44");
    assert_eq!(report["warnings"].as_array().unwrap().len(), 8);
    // Warnings appear with every kind of question.
    for question in ["--ltl", "--ef", "--livelock"] {
        let (code, report) = json(&path, &[question, "x << 32 < 300"]);
        assert_eq!((code, report["warning_count"].as_u64()), (Some(0), Some(8)), "{question}");
    }

    let output = explore(&path, ["--strict", "--json"]);
    let error = only_object(&output)["error"].as_str().unwrap().to_string();
    assert!(output.status.code() == Some(2) && error.contains("model.dve:1:16: 300 does not fit a byte"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("Error: a shift by 70"), "{output:?}");
    let (_folder, path) = written("byte x = 255; process P { state s; init s; } system async;");
    assert_eq!(json(&path, &["--strict"]).0, Some(0));
    let output = explore(&path, ["--strict", "--goal", "1 << 70 == x"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    // There may be one warning per value.
    let (_folder, path) =
        written(&UNFIT.replace("{1, 2, 3}", &format!("{{{}1}}", "300, ".repeat(999))).replace("a[2]", "a[1000]"));
    let output = explore(&path, [""; 0]);
    assert!(String::from_utf8_lossy(&output.stderr).ends_with("... and 985 more like these\n"), "{output:?}");
}

fn counts_say_what_they_rest_on() {
    let (_, report) = json(&model("peterson"), &[]);
    assert_eq!(report["basis"], "exact: states are compared as a whole");
    let text = String::from_utf8(explore(&model("peterson"), [""; 0]).stdout).unwrap();
    assert!(text.contains("basis              exact: states are compared as a whole"), "{text}");
}

/// More states than any test waits for.
const ENDLESS: &str = "int x, y, z; process P { state s; init s; trans
    s -> s { effect x = x + 1; }, s -> s { effect y = y + 1; }, s -> s { effect z = z + 1; }; } system async;";

fn outputs_are_opened_before_the_search() {
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

fn outputs_do_not_overwrite_the_model_or_each_other() {
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
fn outputs_that_cannot_be_written_leave_the_report() {
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
    // The folder vanishes after its files are opened and before the end: the model is only sent after that.
    for (option, name) in [("--trace", "t.json"), ("--export", "t.aut"), ("--record", "t.npz")] {
        let folder = TempDir::new().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let file = inner.join(name);
        let arguments = ["--json", "--goal", "goat", "--keep-going", option, file.to_str().unwrap()];
        let mut child = spawned(&mut command_of("-", &arguments));
        while !file.exists() {
            assert!(child.try_wait().unwrap().is_none(), "it ends without its model");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::fs::remove_dir_all(&inner).unwrap();
        child.stdin.take().unwrap().write_all(&std::fs::read(model("river")).unwrap()).unwrap();
        let output = child.wait_with_output().unwrap();
        let report = only_object(&output);
        expected(&report, &output, "cannot be written: the file was removed or replaced after it was opened");
        assert_eq!((counts(&report)[0], report["path"]["length"].as_u64()), (10, Some(1)), "{report}");
    }
}

fn recording_has_a_limit() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("vectors.npz");
    let arguments = ["--record", file.to_str().unwrap(), "--record-bytes", "402"];
    // The search offers 583 vectors, of a few words each.
    let (code, report) = json(&model("mailbox"), &arguments);
    let words = report["words"].as_u64().unwrap();
    let taken = 402 / (4 * words);
    assert_eq!((code, counts(&report)[..4].to_vec()), (Some(0), vec![413, 582, 1, 25]));
    assert_eq!((report["recorded"].as_u64(), report["not_recorded"].as_u64()), (Some(taken), Some(583 - taken)));
    let text = String::from_utf8(explore(&model("mailbox"), arguments).stdout).unwrap();
    assert!(text.contains(&format!("{} more left out (--record-bytes)", 583 - taken)), "{text}");
}

fn recordings_that_reached_their_limit_can_be_replayed(replay: &Path) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("vectors.npz");
    let (_, report) = json(&model("mailbox"), &["--record", file.to_str().unwrap(), "--record-bytes", "402"]);
    let output = Command::new(replay).arg(&file).args(["--json", "--device", "cpu:2"]).output().unwrap();
    let replayed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!((&replayed["vectors"], &replayed["width"]), (&report["recorded"], &report["words"]));
}

fn models_that_are_no_files_or_too_long_are_refused() {
    let folder = TempDir::new().unwrap();
    let fails = |path: &Path, part: &str| {
        let output = explore(path, ["--json"]);
        assert!(output.status.code() == Some(2) && only_object(&output)["error"].as_str().unwrap().contains(part), "{output:?}");
    };
    fails(folder.path(), "a directory, not a file");
    let large = folder.path().join("large.dve");
    std::fs::File::create(&large).unwrap().set_len((16 << 20) + 1).unwrap();
    fails(&large, "(16,777,217 bytes), but a model has at most 16.00 MiB (16,777,216 bytes)");
    if cfg!(unix) {
        fails(Path::new("/dev/zero"), "a device: a file");
    }
    let empty = folder.path().join("empty.dve");
    std::fs::write(&empty, "").unwrap();
    fails(&empty, "the text is empty");
    // A pipe has no length to check.
    let mut child = spawned(&mut command_of("-", &["--json"]));
    let mut pipe = child.stdin.take().unwrap();
    let blanks = vec![b' '; 1 << 20];
    let written = (0..17).map(|_| pipe.write_all(&blanks)).find(Result::is_err);
    drop((pipe, written));
    let output = child.wait_with_output().unwrap();
    assert!(only_object(&output)["error"].as_str().unwrap().contains("the input is longer than 16.00 MiB"), "{output:?}");
}

fn models_come_from_standard_input_too() {
    let mut child = spawned(&mut command_of("-", &["--json"]));
    child.stdin.take().unwrap().write_all(&std::fs::read(model("river")).unwrap()).unwrap();
    let report = only_object(&child.wait_with_output().unwrap());
    assert_eq!((counts(&report)[..4].to_vec(), report["model"].as_str()), (vec![10, 20, 0, 8], Some("standard input")));
}

fn command_of(model: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(EXPLORE);
    command.args([model, "--device", "cpu:2"]).args(arguments);
    command
}

fn spawned(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the checker starts")
}

fn json_is_one_object_on_every_path() {
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
        &[good, "--json", "--cycles"],
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

fn time_and_threads_have_limits() {
    let (_folder, path) = written(ENDLESS);
    // A slow machine may not reach the exploration.
    let output = explore(&path, ["--timeout", "1.5", "--json", "--engine", "interpreted"]);
    let object = only_object(&output);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let error = object["error"].as_str().unwrap_or_default();
    assert!(object["end"] == "timeout" || error.contains("--timeout 1.5 s"), "{output:?}");
    let output = explore_on("cpu:1025", &path, [""; 0]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("1025 threads are too many") && said.contains("at most 1024"),
        "{said}"
    );
}

/// Sends the signal of Ctrl-C.
fn interrupt(child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(sent.expect("there is a shell").success());
}

fn interruption_ends_it_with_a_report(place: TableOnDevice) {
    if !cfg!(unix) {
        return;
    }
    let (_folder, path) = written(ENDLESS);
    for (engine, format) in [("auto", "--json"), ("compiled", "--json"), ("interpreted", "--progress=always")] {
        let mut command = Command::new(EXPLORE);
        command.arg(&path).args(["--device", place.device, "--table", place.table, "--memory", "8G", "--timeout", "30m"]);
        command.args(["--progress", "always"].iter().filter(|_| format == "--json")).arg(format);
        command.args(["--engine", engine].iter().filter(|_| !place.is_gpu()));
        let mut child = spawned(&mut command);
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
fn interruption_while_reading_or_compiling_is_an_error() {
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

/// A report with a path too long for the buffer of a pipe.
const LONG_REPORT: [&str; 2] = ["--goal", "x == 3000"];

#[cfg(target_os = "linux")]
fn a_second_interruption_ends_it_at_once() {
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

#[cfg(unix)]
fn readers_and_disks_that_take_no_more_are_no_reason_to_panic() {
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

/// A test of models that are not part of this repository: its name, and the variable that names their folder.
type OfFolder = (&'static str, &'static str, fn(&Path));

const OF_FOLDERS: [OfFolder; 7] = [
    ("beem_models_have_their_counts", "WARPSET_BEEM", beem_models_have_their_counts),
    ("beem_properties_have_their_verdicts", "WARPSET_BEEM", beem_properties_have_their_verdicts),
    ("slco_models_have_their_counts", "WARPSET_SLCO", languages::slco_models_have_their_counts),
    ("networks_have_their_counts", "WARPSET_NETWORKS", languages::networks_have_their_counts),
    ("reduced_beem_models_have_their_deadlocks", "WARPSET_BEEM", reductions::of_beem),
    ("reduced_networks_have_their_deadlocks", "WARPSET_NETWORKS", reductions::of_networks),
    ("reduced_slco_models_have_their_deadlocks", "WARPSET_SLCO", reductions::of_slco),
];

/// The columns that are compared in a list of models: states, transitions, deadlocks, levels, the widest level.
const COLUMNS: [&str; 5] = ["states", "transitions", "deadlocks", "levels", "max_frontier"];

/// Most states of a BEEM model: larger ones take too long for a test.
const MOST_STATES: u64 = 300_000;

/// Compares models of the BEEM benchmark with the counts of other tools: `WARPSET_BEEM` names the folder with `open.csv` and
/// `open/`.
fn beem_models_have_their_counts(folder: &Path) {
    have_their_counts(folder, "open", MOST_STATES, |name| (with_extension(folder.join("open").join(name), "dve"), &[]));
}

/// Adds an extension. Names of models contain dots, so nothing is replaced.
fn with_extension(path: PathBuf, extension: &str) -> PathBuf {
    PathBuf::from(format!("{}.{extension}", path.display()))
}

/// Checks all rows of a list that have a number of states, of at most `most`, with every kind of table.
fn have_their_counts(folder: &Path, list: &str, most: u64, file: impl Fn(&str) -> (PathBuf, &'static [&'static str])) {
    let list = std::fs::read_to_string(with_extension(folder.join(list), "csv")).unwrap();
    let header: Vec<&str> = list.lines().next().unwrap().split(',').collect();
    let columns = COLUMNS.map(|name| header.iter().position(|column| *column == name).unwrap());
    let mut compared = 0;
    for row in list.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let expected = columns.map(|column| fields[column].parse::<u64>().ok());
        if expected[0].is_none_or(|states| states > most) {
            continue;
        }
        let (path, arguments) = file(fields[0]);
        for table in TABLES {
            let (code, report) = json(&path, &[&["--table", table], arguments].concat());
            let found = counts(&report).map(Some);
            // Columns missing from the list are not compared.
            let agrees = found.iter().zip(&expected).all(|(found, expected)| expected.is_none() || found == expected);
            assert!(code == Some(0) && agrees, "{} in a {table} table: {found:?}, not {expected:?}", fields[0]);
            compared += 1;
        }
    }
    assert!(compared > 0, "no model of {} is small enough", folder.display());
}

/// Most states of a product: larger ones take too long for a test.
const MOST_PRODUCT_STATES: u64 = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };

/// Columns of a row whose second column contains a comma.
fn fields_of(row: &str) -> Vec<&str> {
    let (model, rest) = row.split_once(',').expect("a row has columns");
    let mut last: Vec<&str> = rest.rsplitn(8, ',').collect();
    last.push(model);
    last.reverse();
    last
}

/// Replaces the atoms of a formula by conditions.
fn with_conditions(formula: &str, conditions: &HashMap<&str, &str>) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut text = String::new();
    let mut rest = formula;
    while let Some(start) = rest.find(is_word) {
        let length = rest[start..].find(|c| !is_word(c)).unwrap_or(rest.len() - start);
        let word = &rest[start..start + length];
        text += &rest[..start];
        text += &conditions.get(word).map_or_else(|| word.into(), |condition| format!("({condition})"));
        rest = &rest[start + length..];
    }
    text + rest
}

/// Compares models with a property process with an oracle's counts, verdicts and classes, in the folder `ltl` of `WARPSET_BEEM`.
fn beem_properties_have_their_verdicts(folder: &Path) {
    let [list, conditions] = ["ltl.csv", "atoms.csv"].map(|name| std::fs::read_to_string(folder.join("ltl").join(name)).unwrap());
    let mut atoms: HashMap<&str, HashMap<&str, &str>> = HashMap::new();
    for row in conditions.lines().skip(1) {
        let mut fields = row.splitn(3, ',');
        let [model, atom, condition] = std::array::from_fn(|_| fields.next().expect("a row has three columns"));
        atoms.entry(model).or_default().insert(atom, condition);
    }
    let mut compared = 0;
    for row in list.lines().skip(1) {
        let fields = fields_of(row);
        let [states, transitions, accepting] = [2, 3, 4].map(|column| fields[column].parse::<u64>().unwrap());
        let (verdict, automaton) = (fields[5], fields[7]);
        if states > MOST_PRODUCT_STATES {
            continue;
        }
        let path = folder.join("ltl").join(format!("{}.dve", fields[0]));
        for table in TABLES.into_iter().filter(|table| is_of(table, ABOUT_RUNS[1])) {
            let (code, report) = json(&path, &["--table", table, "--keep-going"]);
            let name = format!("{} in a {table} table", fields[0]);
            let counted = ["states", "transitions", "accepting"].map(|count| report[count].as_u64());
            assert_eq!(counted, [states, transitions, accepting].map(Some), "{name}");
            assert_eq!((report["verdict"].as_str(), report["automaton"].as_str()), (Some(verdict), Some(automaton)), "{name}");
            assert_eq!(
                (code, report["lasso"].is_object()),
                (Some((verdict == "violated").into()), verdict == "violated"),
                "{name}"
            );
            compared += 1;
        }
        let formula = with_conditions(fields[1], &atoms[fields[0]]);
        for arguments in [&[][..], &["--ltl", &formula]] {
            let (code, report) = json(&path, arguments);
            let found = (report["verdict"].as_str(), code, report["lasso"].is_object());
            let violated = verdict == "violated";
            assert_eq!(found, (Some(verdict), Some(violated.into()), violated), "{} {arguments:?}", fields[0]);
        }
    }
    assert!(compared > 0, "no model of {} is small enough", folder.display());
}
