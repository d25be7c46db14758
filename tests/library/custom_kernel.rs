//! Tests the example `custom_kernel` as a user runs it: the executable that Cargo built beside this test.

/// Source of the example, for its unit tests. With `test = true` Cargo would run them, but not build the program.
#[allow(dead_code)]
#[path = "../../examples/custom_kernel/main.rs"]
mod example;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Number of states of the 3x3 puzzle that take 0, 1, 2, ... moves.
const LEVELS: [u64; 32] = [
    1, 2, 4, 8, 16, 20, 39, 62, 116, 152, 286, 396, 748, 1024, 1893, 2512, 4485, 5638, 9529, 10878, 16993, 17110, 23952, 20224,
    24047, 15578, 14560, 6274, 3910, 760, 221, 2,
];

/// `target/PROFILE/examples/custom_kernel`, from this test's `target/PROFILE/deps/library-HASH`.
fn executable() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its executable");
    let profile = test.parent().and_then(Path::parent).expect("tests are in target/PROFILE/deps");
    let path = profile.join("examples").join(format!("custom_kernel{}", std::env::consts::EXE_SUFFIX));
    let how = "build it with `cargo build --example custom_kernel` (`cargo test` does)";
    assert!(path.is_file(), "{} is missing: {how}", path.display());
    path
}

fn custom_kernel(arguments: &[&str]) -> Output {
    Command::new(executable()).args(arguments).output().expect("the example starts")
}

/// Output of a run that must succeed.
#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = custom_kernel(arguments);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Asserts that the levels of the 3x3 puzzle were printed, and nothing else.
#[track_caller]
fn assert_levels(printed: &str) {
    let rows = printed.lines().map(|line| line.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>());
    let rows: Vec<Vec<u64>> = rows.filter_map(Result::ok).filter(|row| !row.is_empty()).collect();
    let mut total = 0;
    let expected: Vec<Vec<u64>> = (0..)
        .zip(LEVELS)
        .map(|(level, states)| {
            total += states;
            vec![level, states, total]
        })
        .collect();
    assert_eq!(rows, expected, "{printed}");
    assert!(printed.contains("\n181440 states, 31 moves at most; "), "{printed}");
}

#[test]
fn the_host_api_finds_all_states() {
    let printed = printed(&["--host"]);
    assert!(printed.starts_with("3x3 sliding tiles on ") && printed.contains("through the host API\n"), "{printed}");
    assert_levels(&printed);
}

#[test]
fn the_kernel_finds_all_states() {
    let printed = printed(&[]);
    assert_levels(&printed);
    if !printed.contains("through our own kernel\n") {
        println!("skipped: no CUDA device, so this was the host API again");
    }
}

#[test]
fn other_sizes_are_searched() {
    for (rows, columns, expected) in
        [("2", "2", "12 states, 6 moves"), ("3", "2", "360 states, 21"), ("2", "4", "20160 states, 36")]
    {
        let printed = printed(&["--rows", rows, "--columns", columns]);
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn a_table_that_is_too_small_is_an_error() {
    for way in [&["--host"][..], &[]] {
        let output = custom_kernel(&[&["--capacity", "1000"], way].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.starts_with("error: the table is full: ") && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn wrong_command_lines_are_refused() {
    for arguments in [&["--rows", "4"][..], &["--columns", "1"], &["--columns", "5"], &["--capacity", "-1"], &["file"]] {
        let output = custom_kernel(arguments);
        assert!(!output.status.success() && output.stderr.starts_with(b"error: "), "{arguments:?}: {output:?}");
    }
}
