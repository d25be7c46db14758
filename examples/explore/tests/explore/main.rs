//! The model checker, tested through the executable that Cargo built beside this test.
//!
//! Explorations are tested with every kind of table on the CPU, and again on a GPU with tables that begin small and grow.
//! Without a GPU those tests are listed as skipped, and the last line gives their number. Tests that need the library's example
//! `replay` are also listed as skipped if it is not built. A plain run has counts, paths and checkpoints in every table;
//! languages, messages and reports, which do not depend on the table, in one. With `WARPSET_TEST_FULL=1` all are in every
//! table.

mod checkpoints;
mod claiming;
mod command_line;
mod constants;
mod escapes;
mod findings;
mod formulas;
mod goals;
mod graphs;
mod hostile;
mod languages;
mod limits;
mod lists;
mod nets;
mod networks;
mod outputs;
mod pictures;
mod ranks;
mod reductions;
mod running;
mod simulation;
mod texts;
mod verdicts;

use running::*;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use tempfile::TempDir;
use warpset_testing::machines::{self, Gpus};
use warpset_testing::sizes::{full, sized};
use warpset_testing::trials::{skipped, trial};

/// The library's example `replay`, beside the executable: `target/PROFILE/examples/replay`. `cargo test` of the workspace has
/// built it by now; `cargo test` of this package alone has not.
fn replay() -> Option<PathBuf> {
    let profile = Path::new(EXPLORE).parent().expect("executables are in target/PROFILE");
    Some(profile.join("examples").join(format!("replay{}", std::env::consts::EXE_SUFFIX))).filter(|path| path.is_file())
}

const TABLES: [&str; 5] = ["bucket", "tree", "tree-compact", "compact", "indexed"];

/// Tests of questions about runs, which not all tables can answer.
const ABOUT_RUNS: [&str; 7] = [
    "branching_time_has_its_verdicts",
    "claiming_waits_for_nothing",
    "fairness_and_possibility_have_their_verdicts",
    "formulas_have_their_verdicts",
    "formulas_of_nets_have_their_verdicts",
    "runs_are_asked_about_in_every_language",
    "runs_of_large_products_are_shortest",
];

/// Whether the GPU is a simulated one. With 0 the variable only says that no test starts itself on one.
fn is_simulated() -> bool {
    std::env::var_os("WARPSET_SIMULATED_DEVICE").is_some_and(|devices| devices != "0")
}

/// Whether a test applies to a table.
fn is_of(table: &str, test: &str) -> bool {
    (table != "indexed" || !ABOUT_RUNS.contains(&test)) && (table == TABLES[0] || !OF_ANY_TABLE.contains(&test))
}

/// A test of a place, by its name.
type OfPlace = (&'static str, fn(TableOnDevice));

/// Counts, paths and checkpoints.
const IN_EVERY_TABLE: [OfPlace; 18] = [
    ("searches_go_on_with_the_same_counts_and_paths", checkpoints::searches_go_on_with_the_same_counts_and_paths),
    ("killed_searches_go_on", checkpoints::killed_searches_go_on),
    ("formulas_have_their_verdicts", formulas::formulas_have_their_verdicts),
    ("nets_have_their_counts", nets::nets_have_their_counts),
    ("nets_go_on_from_checkpoints", nets::nets_go_on_from_checkpoints),
    ("places_without_bits_have_their_tokens", nets::places_without_bits_have_their_tokens),
    ("own_models_have_their_counts", findings::own_models_have_their_counts),
    ("violations_come_with_the_shortest_path", findings::violations_come_with_the_shortest_path),
    ("paths_are_the_same_in_every_table", findings::paths_are_the_same_in_every_table),
    ("faults_of_a_model_come_with_a_path", findings::faults_of_a_model_come_with_a_path),
    ("going_on_keeps_the_shortest_path", findings::going_on_keeps_the_shortest_path),
    ("violating_states_are_counted", findings::violating_states_are_counted),
    ("limits_stop_it", limits::limits_stop_it),
    ("a_depth_limits_it", limits::a_depth_limits_it),
    ("too_little_memory_ends_it_at_once", limits::too_little_memory_ends_it_at_once),
    ("tables_do_not_get_too_full", limits::tables_do_not_get_too_full),
    ("long_paths_are_found", findings::long_paths_are_found),
    ("parents_are_kept_while_the_table_grows", findings::parents_are_kept_while_the_table_grows),
];

/// Languages, messages and reports, and questions whose answers come from the same searches. In a plain run one table has them on
/// the CPU.
const IN_ONE_TABLE: [OfPlace; 19] = [
    ("branching_time_has_its_verdicts", formulas::branching_time_has_its_verdicts),
    ("claiming_keeps_its_promises", claiming::claiming_keeps_its_promises),
    ("claiming_waits_for_nothing", claiming::claiming_waits_for_nothing),
    ("each_transition_may_have_a_label", languages::each_transition_may_have_a_label),
    ("fairness_and_possibility_have_their_verdicts", formulas::fairness_and_possibility_have_their_verdicts),
    ("runs_of_large_products_are_shortest", formulas::runs_of_large_products_are_shortest),
    ("runs_are_asked_about_in_every_language", languages::runs_are_asked_about_in_every_language),
    ("unpacked_states_have_the_same_counts", languages::unpacked_states_have_the_same_counts),
    ("slco_has_faults_and_overflows", languages::slco_has_faults_and_overflows),
    ("properties_of_nets_have_their_verdicts", nets::properties_of_nets_have_their_verdicts),
    ("formulas_of_nets_have_their_verdicts", nets::formulas_of_nets_have_their_verdicts),
    ("networks_have_their_closed_counts", languages::networks_have_their_closed_counts),
    ("networks_are_checked_with_paths", languages::networks_are_checked_with_paths),
    ("models_in_other_languages_have_their_counts", languages::models_in_other_languages_have_their_counts),
    ("what_holds_is_not_reported", findings::what_holds_is_not_reported),
    ("assertions_are_checked", findings::assertions_are_checked),
    ("a_fault_is_reported_whatever_was_found_before", findings::a_fault_is_reported_whatever_was_found_before),
    ("overflows_are_reported", findings::overflows_are_reported),
    ("interruption_ends_it_with_a_report", limits::interruption_ends_it_with_a_report),
];

/// Tests for GPUs only.
const ON_GPUS: [OfPlace; 11] = [
    ("finished_levels_leave_the_list", limits::finished_levels_leave_the_list),
    ("waiting_states_are_marked_when_lists_do_not_fit", limits::waiting_states_are_marked_when_lists_do_not_fit),
    ("levels_wider_than_the_list_are_repeated", limits::levels_wider_than_the_list_are_repeated),
    ("factors_of_growth_leave_room_for_lists", limits::factors_of_growth_leave_room_for_lists),
    ("found_goals_of_reduced_searches_are_those_of_whole_ones", goals::found_goals_of_reduced_searches_are_those_of_whole_ones),
    ("cycles_are_measured", findings::cycles_are_measured),
    ("large_networks_have_their_closed_counts", languages::large_networks),
    ("reduced_searches_on_a_gpu_are_those_of_threads", reductions::reduced_searches_on_a_gpu_are_those_of_threads),
    ("large_nets_are_reduced_on_a_gpu", reductions::large_nets_are_reduced_on_a_gpu),
    (OF_ANY_TABLE[0], simulation::walks_on_a_gpu_are_those_of_threads),
    (OF_ANY_TABLE[1], reductions::full_memory_of_a_gpu_leaves_the_choice_to_threads),
];

/// Tests for GPUs that do not depend on the table: they run with one.
const OF_ANY_TABLE: [&str; 2] = ["walks_on_a_gpu_are_those_of_threads", "full_memory_of_a_gpu_leaves_the_choice_to_threads"];

const ONCE: &[(&str, fn())] = &[
    ("each_condition_has_a_verdict", verdicts::each_condition_has_a_verdict),
    ("reports_have_the_form_of_the_schema", verdicts::reports_have_the_form_of_the_schema),
    ("levels_have_their_sizes", verdicts::levels_have_their_sizes),
    ("similar_names_are_suggested", verdicts::similar_names_are_suggested),
    ("claiming_has_one_mistake_at_most", claiming::claiming_has_one_mistake_at_most),
    ("reduced_searches_find_the_same", reductions::reduced_searches_find_the_same),
    ("drawn_goals_are_found_at_their_depths", goals::drawn_goals_are_found_at_their_depths),
    ("reduced_searches_say_so", reductions::reduced_searches_say_so),
    ("reduced_searches_are_resumed", reductions::reduced_searches_are_resumed),
    ("what_a_reduction_does_not_keep_is_refused", reductions::what_a_reduction_does_not_keep_is_refused),
    ("dependencies_are_written", reductions::dependencies_are_written),
    ("what_a_limit_ended_has_no_verdict", nets::what_a_limit_ended_has_no_verdict),
    ("nets_at_borders_have_their_counts", nets::nets_at_borders_have_their_counts),
    ("branching_formulas_of_nets_have_their_verdicts", nets::branching_formulas_of_nets_have_their_verdicts),
    (
        "formulas_are_answered_over_the_markings_of_one_exploration",
        nets::formulas_are_answered_over_the_markings_of_one_exploration,
    ),
    ("reduced_nets_find_the_same", reductions::reduced_nets_find_the_same),
    ("what_cannot_be_set_up_is_an_error", nets::what_cannot_be_set_up_is_an_error),
    ("warnings_are_printed_once", nets::warnings_are_printed_once),
    ("properties_have_paths_and_places", nets::properties_have_paths_and_places),
    ("nets_are_simulated", nets::nets_are_simulated),
    ("nets_have_their_counts_in_every_way", nets::nets_have_their_counts_in_every_way),
    ("labels_are_exported_as_they_were", languages::labels_are_exported_as_they_were),
    ("what_is_no_checkpoint_of_the_search_is_refused", checkpoints::what_is_no_checkpoint_of_the_search_is_refused),
    ("checkpoints_overwrite_nothing_else", checkpoints::checkpoints_overwrite_nothing_else),
    ("checkpoints_that_mislead_are_refused", checkpoints::checkpoints_that_mislead_are_refused),
    #[cfg(unix)]
    ("links_beside_a_checkpoint_are_not_followed", checkpoints::links_beside_a_checkpoint_are_not_followed),
    ("products_are_exported_with_their_verdict", languages::products_are_exported_with_their_verdict),
    ("exported_state_spaces_are_models", languages::exported_state_spaces_are_models),
    ("exports_are_whole_or_nothing", languages::exports_are_whole_or_nothing),
    ("exports_are_the_same_from_every_table", outputs::exports_are_the_same_from_every_table),
    ("languages_are_told_by_extension_or_name", languages::languages_are_told_by_extension_or_name),
    (
        "arrays_of_two_dimensions_and_choices_work_in_every_engine",
        languages::arrays_of_two_dimensions_and_choices_work_in_every_engine,
    ),
    ("large_components_are_tables", languages::large_components_are_tables),
    ("texts_of_paths_are_the_same_in_every_run", findings::texts_of_paths_are_the_same_in_every_run),
    ("texts_of_runs_are_the_same_in_every_run", findings::texts_of_runs_are_the_same_in_every_run),
    ("paths_are_printed_with_lines_and_changes", findings::paths_are_printed_with_lines_and_changes),
    ("steps_show_statements_values_and_queues", findings::steps_show_statements_values_and_queues),
    ("what_was_found_is_reported_without_a_path_too", findings::what_was_found_is_reported_without_a_path_too),
    ("names_cannot_control_a_terminal", escapes::names_cannot_control_a_terminal),
    ("texts_and_names_of_files_are_quoted_without_control", escapes::texts_and_names_of_files_are_quoted_without_control),
    ("outputs_are_written_or_refused", command_line::outputs_are_written_or_refused),
    ("parts_of_a_net_that_are_ignored_are_reported", command_line::parts_of_a_net_that_are_ignored_are_reported),
    ("references_of_a_net_can_be_named", command_line::references_of_a_net_can_be_named),
    ("values_may_begin_with_a_minus_sign", command_line::values_may_begin_with_a_minus_sign),
    ("chains_of_operators_may_be_long", command_line::chains_of_operators_may_be_long),
    ("errors_have_their_exit_code_and_place", command_line::errors_have_their_exit_code_and_place),
    ("options_that_would_do_nothing_are_refused", command_line::options_that_would_do_nothing_are_refused),
    ("first_tables_fit_their_memory", limits::first_tables_fit_their_memory),
    ("full_memory_begins_again_with_smaller_slots", limits::full_memory_begins_again_with_smaller_slots),
    ("small_limits_are_filled", limits::small_limits_are_filled),
    ("memory_that_is_said_to_be_needed_suffices", limits::memory_that_is_said_to_be_needed_suffices),
    #[cfg(unix)]
    ("a_page_shows_verdicts_path_and_figures", outputs::a_page_shows_verdicts_path_and_figures),
    ("outputs_that_cannot_be_written_leave_the_report", outputs::outputs_that_cannot_be_written_leave_the_report),
    #[cfg(unix)]
    ("earlier_outputs_outlive_failures", outputs::earlier_outputs_outlive_failures),
    #[cfg(unix)]
    ("deep_brackets_are_asked_of_clang_only", command_line::deep_brackets_are_asked_of_clang_only),
    ("compiled_code_may_come_later_or_never", command_line::compiled_code_may_come_later_or_never),
    #[cfg(unix)]
    ("compiled_functions_are_kept", command_line::compiled_functions_are_kept),
    (
        "files_may_have_a_byte_order_mark_and_other_bytes_in_comments",
        command_line::files_may_have_a_byte_order_mark_and_other_bytes_in_comments,
    ),
    ("texts_have_any_encoding_and_line_end", texts::texts_have_any_encoding_and_line_end),
    ("bytes_that_are_no_text_are_refused_with_their_line", texts::bytes_that_are_no_text_are_refused_with_their_line),
    ("the_time_is_split", findings::the_time_is_split),
    ("help_teaches", command_line::help_teaches),
    ("manuals_and_completions_are_generated", command_line::manuals_and_completions_are_generated),
    ("models_of_other_tools_are_refused_with_advice", command_line::models_of_other_tools_are_refused_with_advice),
    ("limits_of_nothing_are_refused", limits::limits_of_nothing_are_refused),
    ("numbers_agree_with_their_nouns", command_line::numbers_agree_with_their_nouns),
    ("what_is_never_reached_is_named", outputs::what_is_never_reached_is_named),
    ("paths_are_drawn", outputs::paths_are_drawn),
    ("state_spaces_are_drawn", outputs::state_spaces_are_drawn),
    ("models_are_stepped_through", command_line::models_are_stepped_through),
    ("walks_find_the_same_path_with_any_number_of_threads", command_line::walks_find_the_same_path_with_any_number_of_threads),
    ("what_does_not_fit_is_said", command_line::what_does_not_fit_is_said),
    ("counts_say_what_they_rest_on", findings::counts_say_what_they_rest_on),
    ("outputs_are_opened_before_the_search", outputs::outputs_are_opened_before_the_search),
    ("outputs_do_not_overwrite_the_model_or_each_other", outputs::outputs_do_not_overwrite_the_model_or_each_other),
    ("recording_has_a_limit", outputs::recording_has_a_limit),
    ("models_that_are_no_files_or_too_long_are_refused", command_line::models_that_are_no_files_or_too_long_are_refused),
    ("runs_are_printed_with_their_loop", formulas::runs_are_printed_with_their_loop),
    ("paths_of_branching_time_are_shown", formulas::paths_of_branching_time_are_shown),
    ("formulas_are_refused_with_their_place", formulas::formulas_are_refused_with_their_place),
    ("automata_are_written_and_read", formulas::automata_are_written_and_read),
    ("a_property_of_the_model_can_be_left_out", formulas::a_property_of_the_model_can_be_left_out),
    ("questions_for_two_runs_come_with_both_commands", command_line::questions_for_two_runs_come_with_both_commands),
    ("models_come_from_standard_input_too", command_line::models_come_from_standard_input_too),
    ("json_is_one_object_on_every_path", outputs::json_is_one_object_on_every_path),
    ("time_and_threads_have_limits", limits::time_and_threads_have_limits),
    #[cfg(unix)]
    (
        "readers_and_disks_that_take_no_more_are_no_reason_to_panic",
        outputs::readers_and_disks_that_take_no_more_are_no_reason_to_panic,
    ),
    #[cfg(target_os = "linux")]
    ("interruption_while_reading_or_compiling_is_an_error", limits::interruption_while_reading_or_compiling_is_an_error),
    #[cfg(unix)]
    ("termination_ends_it_with_a_report_and_a_checkpoint", limits::termination_ends_it_with_a_report_and_a_checkpoint),
    #[cfg(unix)]
    ("a_signal_leaves_decided_verdicts_and_figures", limits::a_signal_leaves_decided_verdicts_and_figures),
    #[cfg(target_os = "linux")]
    ("a_second_interruption_ends_it_at_once", limits::a_second_interruption_ends_it_at_once),
    ("hostile::models_in_dve", hostile::models_in_dve),
    ("hostile::models_in_slco", hostile::models_in_slco),
    ("hostile::state_spaces_as_models", hostile::state_spaces_as_models),
    ("hostile::networks", hostile::networks),
    ("hostile::automata", hostile::automata),
    ("hostile::formulas_and_conditions", hostile::formulas_and_conditions),
    ("hostile::graphs_as_text", hostile::graphs_as_text),
    ("hostile::graphs_as_arrays", hostile::graphs_as_arrays),
    ("hostile::checkpoints", hostile::checkpoints),
    ("hostile::engines::changed_models_in_dve", hostile::engines::changed_models_in_dve),
    ("hostile::engines::changed_models_in_slco", hostile::engines::changed_models_in_slco),
    ("hostile::engines::changed_networks", hostile::engines::changed_networks),
    ("hostile::engines::generated_models", hostile::engines::generated_models),
    ("hostile::engines::the_comparison_compares", hostile::engines::the_comparison_compares),
    ("ranks::models_have_the_same_counts_on_any_number_of_ranks", ranks::models_have_the_same_counts_on_any_number_of_ranks),
    ("ranks::reduced_searches_are_the_same_on_any_number_of_ranks", ranks::reduced_searches_are_the_same_on_any_number_of_ranks),
    ("ranks::the_initial_state_finds_room", ranks::the_initial_state_finds_room),
    ("ranks::limits_end_it_on_all_ranks_with_one_report", ranks::limits_end_it_on_all_ranks_with_one_report),
    #[cfg(unix)]
    ("ranks::an_interruption_ends_it_with_one_report", ranks::an_interruption_ends_it_with_one_report),
    ("ranks::the_text_tells_how_states_are_spread", ranks::the_text_tells_how_states_are_spread),
    ("ranks::violations_come_with_the_shortest_path", ranks::violations_come_with_the_shortest_path),
    ("ranks::what_ranks_do_not_do_is_refused", ranks::what_ranks_do_not_do_is_refused),
    ("graphs::exported_state_spaces_are_graphs", graphs::exported_state_spaces_are_graphs),
    ("pictures::no_text_of_a_chart_is_cut_or_covered", pictures::no_text_of_a_chart_is_cut_or_covered),
    ("constants::constants_have_other_values", constants::constants_have_other_values),
    (
        "constants::initial_values_of_objects_and_places_are_constants",
        constants::initial_values_of_objects_and_places_are_constants,
    ),
    ("constants::wrong_constants_are_errors", constants::wrong_constants_are_errors),
    ("constants::checkpoints_belong_to_their_constants", constants::checkpoints_belong_to_their_constants),
    ("constants::instances_are_processes_of_one_text", constants::instances_are_processes_of_one_text),
    ("constants::wrong_instances_are_errors", constants::wrong_instances_are_errors),
    ("pictures::states_are_merged_by_a_projection", pictures::states_are_merged_by_a_projection),
    ("pictures::state_spaces_show_all_that_fails", pictures::state_spaces_show_all_that_fails),
    ("pictures::projections_are_checked_before_the_search", pictures::projections_are_checked_before_the_search),
    ("pictures::charts_show_values_lines_and_every_process", pictures::charts_show_values_lines_and_every_process),
];

/// Tests that need as many GPUs, by their names.
const ONCE_ON_GPUS: &[(usize, &str, fn())] = &[
    (1, "graphs::exported_state_spaces_are_graphs_on_a_gpu", graphs::exported_state_spaces_are_graphs_on_a_gpu),
    (1, "ranks::gpus_count_what_a_cpu_does", ranks::gpus_count_what_a_cpu_does),
    (1, "ranks_fill_their_memory", limits::ranks_fill_their_memory),
    #[cfg(feature = "nccl")]
    (2, "ranks::processes_print_once_what_one_prints", ranks::processes_print_once_what_one_prints),
];

/// A test that needs the executable of `replay`, by its name.
type WithReplay = (&'static str, fn(&Path));

const WITH_REPLAY: [WithReplay; 3] = [
    ("hostile::recorded_vectors", hostile::recorded_vectors),
    ("recorded_vectors_can_be_replayed", outputs::recorded_vectors_can_be_replayed),
    ("recordings_that_reached_their_limit_can_be_replayed", outputs::recordings_that_reached_their_limit_can_be_replayed),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = ONCE.iter().map(|(name, test)| trial(name.to_string(), Box::new(test))).collect();
    let replay = replay();
    trials.extend(WITH_REPLAY.iter().map(|(name, test)| match replay.clone() {
        Some(replay) => trial(name.to_string(), Box::new(move || test(&replay))),
        None => skipped(name.to_string(), "not built: cargo build --example replay"),
    }));
    let has_browser = Command::new("chromium").arg("--version").output().is_ok_and(|output| output.status.success());
    trials.push(match has_browser {
        true => trial("a_browser_shows_a_page".into(), Box::new(outputs::a_browser_shows_a_page)),
        false => skipped("a_browser_shows_a_page".into(), "no program `chromium`"),
    });
    for table in TABLES {
        let place = TableOnDevice { device: "cpu:2", table };
        let in_one_table: &[OfPlace] = if table == TABLES[0] || full() { &IN_ONE_TABLE } else { &[] };
        trials.extend(
            IN_EVERY_TABLE
                .iter()
                .chain(in_one_table)
                .filter(|(name, _)| is_of(table, name))
                .map(|(name, test)| trial(format!("cpu::{table}::{name}"), Box::new(move || test(place)))),
        );
    }
    let on_gpus = || {
        let tests = || IN_EVERY_TABLE.iter().chain(&IN_ONE_TABLE).chain(&ON_GPUS);
        let all = TABLES.iter().flat_map(move |table| tests().map(move |test| (*table, *test)));
        all.filter(|(table, (name, _))| is_of(table, name))
    };
    let mut no_gpu = None;
    match machines::gpus() {
        Gpus::Here(gpus) => {
            trials.extend(on_gpus().map(|(table, (name, test))| {
                let place = TableOnDevice { device: "gpu", table };
                trial(format!("gpu::{table}::{name}"), Box::new(move || test(place)))
            }));
            trials.extend(ONCE_ON_GPUS.iter().map(|(least, name, test)| match gpus.len() >= *least {
                true => trial(name.to_string(), Box::new(test)),
                false => skipped(name.to_string(), "fewer than two CUDA devices"),
            }));
        }
        Gpus::NotHere(why) => {
            let mut trials_of_gpus: Vec<_> =
                on_gpus().map(|(table, (name, _))| skipped(format!("gpu::{table}::{name}"), "no CUDA device")).collect();
            trials_of_gpus.extend(ONCE_ON_GPUS.iter().map(|(_, name, _)| skipped(name.to_string(), "no CUDA device")));
            no_gpu = Some((trials_of_gpus.len(), why));
            trials.extend(trials_of_gpus);
        }
        Gpus::Broken(why) => trials.push(Trial::test("gpu::can_be_used", || Err(Failed::from(why)))),
    }
    for (name, variable, of_folder) in OF_FOLDERS {
        let name = name.to_string();
        match std::env::var_os(variable).map(PathBuf::from) {
            Some(folder) => trials.push(trial(name, Box::new(move || of_folder(&folder)))),
            None => trials.push(skipped(name, "its variable does not name a folder of models (.ci/run)")),
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some((count, why)) = no_gpu.filter(|_| conclusion.num_ignored > 0) {
        println!("{count} GPU tests skipped: no CUDA device ({why})\n");
    }
    conclusion.exit_code()
}

/// A test of models that are not part of this repository: its name, and the variable that names their folder.
type OfFolder = (&'static str, &'static str, fn(&Path));

const OF_FOLDERS: [OfFolder; 12] = [
    ("folders::beem_models_have_their_counts", "WARPSET_BEEM", lists::beem_models_have_their_counts),
    ("folders::beem_properties_have_their_verdicts", "WARPSET_BEEM", lists::beem_properties_have_their_verdicts),
    ("folders::slco_models_have_their_counts", "WARPSET_SLCO", languages::slco_models_have_their_counts),
    ("folders::networks_have_their_counts", "WARPSET_NETWORKS", languages::networks_have_their_counts),
    ("folders::nets_of_the_contest_have_their_counts", "WARPSET_NETS", nets::of_contest),
    ("folders::formulas_of_the_contest_have_their_verdicts", "WARPSET_NETS", nets::formulas_of_contest),
    ("folders::branching_formulas_of_the_contest_have_their_verdicts", "WARPSET_NETS", nets::branching_formulas_of_contest),
    ("folders::reduced_nets_have_their_deadlocks", "WARPSET_NETS", reductions::of_nets),
    ("folders::reduced_beem_models_have_their_deadlocks", "WARPSET_BEEM", reductions::of_beem),
    ("folders::reduced_networks_have_their_deadlocks", "WARPSET_NETWORKS", reductions::of_networks),
    ("folders::reduced_slco_models_have_their_deadlocks", "WARPSET_SLCO", reductions::of_slco),
    ("ranks::beem_models_have_their_counts", "WARPSET_BEEM", ranks::beem_models_have_their_counts),
];
