//! Tests the example `count` as a user runs it: the executable that Cargo built beside this test.
#![cfg(feature = "cpu")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// `target/PROFILE/examples/count`, from this test's `target/PROFILE/deps/count-HASH`.
fn executable() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its executable");
    let profile = test.parent().and_then(Path::parent).expect("tests are in target/PROFILE/deps");
    let path = profile.join("examples").join(format!("count{}", std::env::consts::EXE_SUFFIX));
    let how = "build it with `cargo build --example count` (`cargo test` does)";
    assert!(path.is_file(), "{} is missing: {how}", path.display());
    path
}

/// Runs the example on a separate file with this content.
fn count(name: &str, content: &[u8], arguments: &[&str]) -> Output {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("count-{}-{name}", std::process::id()));
    std::fs::write(&file, content).unwrap();
    let output = Command::new(executable()).arg(&file).args(arguments).output().expect("the example starts");
    std::fs::remove_file(&file).unwrap();
    output
}

/// Runs the example on the host API and, with a GPU, by kernels; returns all printed items with their counts. The example has
/// compared them with a `HashMap`.
#[track_caller]
fn counted(name: &str, content: &[u8], arguments: &[&str], summary: &str) -> Vec<(String, u64)> {
    let [by_kernel, by_host] = [&[][..], &["--host"]].map(|way| {
        let output = count(name, content, &[&["--verify", "--top", "1000000"], arguments, way].concat());
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines.pop(), Some("verified: a HashMap has the same counts"));
        assert!(lines[0].starts_with(summary), "{printed}");
        if way.is_empty() && !lines[0].contains("through a kernel") {
            println!("skipped: no CUDA device, so this was the host API");
        }
        let rows = lines[1..].iter().map(|line| line.trim_start().split_once("  ").unwrap());
        rows.map(|(count, item)| (item.to_string(), count.parse().unwrap())).collect::<Vec<(String, u64)>>()
    });
    assert!(by_kernel == by_host);
    assert!(by_host.windows(2).all(|pair| pair[0].1 >= pair[1].1), "the most frequent ones first");
    by_host
}

fn owned(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|(item, count)| (item.to_string(), *count)).collect()
}

#[test]
fn lines_are_counted() {
    let text = "one\ntwo\n\none\ntwo\0\none\ntwo\u{1}\n two\ntwo";
    let expected = owned(&[("one", 3), ("two", 2), ("", 1), (" two", 1), ("two\\u{0}", 1), ("two\\u{1}", 1)]);
    let counted_lines = counted("lines", text.as_bytes(), &[], "9 lines, 6 distinct; on ");
    assert_eq!(counted_lines, expected);
    assert_eq!(counted("nothing", b"", &[], "0 lines, 0 distinct; on "), []);
    assert_eq!(counted("empty", b"\n\n", &[], "2 lines, 1 distinct; on "), owned(&[("", 2)]));
}

/// The number of lines makes the table grow, and several threads put several batches.
#[test]
fn many_lines_are_counted() {
    let lines = (0..1_100_000u64).map(|at| format!("{}\n", at * at % 99_991));
    let text: String = lines.collect();
    let mut expected: HashMap<&str, u64> = HashMap::new();
    text.lines().for_each(|line| *expected.entry(line).or_default() += 1);
    let found = counted("many", text.as_bytes(), &[], &format!("1100000 lines, {} distinct; on ", expected.len()));
    assert!(found.len() == expected.len() && found.iter().all(|(line, count)| expected[&line[..]] == *count));
}

#[test]
fn kmers_are_counted() {
    // Words cross the ends of lines, but not the ends of sequences or other letters.
    let fasta = b">first sequence\nACG\nTacg\r\nTNACGT\n>second\nTTTT\n";
    let expected = owned(&[("ACGT", 3), ("CGTA", 1), ("GTAC", 1), ("TACG", 1), ("TTTT", 1)]);
    assert_eq!(counted("k4.fa", fasta, &["--kmers", "4"], "7 4-mers, 5 distinct; on "), expected);
    assert_eq!(counted("k17.fa", fasta, &["--kmers", "17"], "0 17-mers, 0 distinct; on "), []);
    let repeated = "ACGT".repeat(60);
    let k = 33;
    let found = counted("k33.fa", repeated.as_bytes(), &["--kmers", "33"], "208 33-mers, 4 distinct; on ");
    let expected: Vec<(String, u64)> = (0..4).map(|at| (repeated[at..at + k].to_string(), 52)).collect();
    assert_eq!(found, expected);
}

#[test]
fn rows_are_counted() {
    let bytes = [1, 2, 3, 1, 2, 4, 1, 2, 3, 0, 0, 0];
    let expected = owned(&[("010203", 2), ("000000", 1), ("010204", 1)]);
    assert_eq!(counted("rows", &bytes, &["--rows", "3"], "4 rows of 3 bytes, 3 distinct; on "), expected);
    // An array of 3 x 2 x 1 numbers of 16 bits, as NumPy writes it.
    let dictionary = "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2, 1), }";
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    npy.extend(format!("{dictionary:<117}\n").bytes());
    npy.extend([7, 0, 8, 0, 9, 0, 8, 0, 7, 0, 8, 0]);
    let expected = owned(&[("07000800", 2), ("09000800", 1)]);
    assert_eq!(counted("array.npy", &npy, &["--rows"], "3 rows of 4 bytes, 2 distinct; on "), expected);
}

/// Files that NumPy writes, of several types and dimensions.
#[test]
fn arrays_of_numpy_are_counted() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, array, summary) in [
        ("matrix", "np.arange(3000, dtype='u4').reshape(-1, 3) % 6", "1000 rows of 12 bytes, 2 distinct; on "),
        ("list", "np.arange(5000, dtype='f8') % 7", "5000 rows of 8 bytes, 7 distinct; on "),
        ("bytes", "np.zeros((9, 2, 2, 5), dtype='?')", "9 rows of 20 bytes, 1 distinct; on "),
        ("none", "np.zeros((0, 4), dtype='>i2')", "0 rows of 8 bytes, 0 distinct; on "),
    ] {
        let file = folder.join(format!("count-numpy-{}-{name}.npy", std::process::id()));
        let script = format!("import sys, numpy as np; np.save(sys.argv[1], {array})");
        let made = Command::new("python3").args(["-c", &script]).arg(&file).output();
        if !made.is_ok_and(|output| output.status.success()) {
            return println!("skipped: arrays of NumPy, since there is no python3 that has it");
        }
        let content = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        counted(name, &content, &["--rows"], summary);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |name: &str, content: &[u8], arguments: &[&str], reason: &str| {
        let output = count(name, content, arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.starts_with("error: ") && error.contains(reason), "{error}");
        // An error in a file names the file.
        assert!(error.contains(name) || error.contains("invalid value") || error.contains("cannot be used with"), "{error}");
    };
    let long = format!("short\n{}\n", "x".repeat(1024));
    refused("long", long.as_bytes(), &[], "line 2 has 1024 bytes, but at most 1023 are possible");
    refused("odd", b"12345", &["--rows", "2"], "5 bytes are not a whole number of rows of 2 bytes");
    refused("wide", &[0; 2050], &["--rows", "1025"], "a row has 1025 bytes, but at most 1024 are possible");
    refused("rows-of-none", b"12", &["--rows", "0"], "a row has at least 1 byte");
    refused("word", b"12", &["--rows", "two"], "invalid value 'two' for '--rows [<BYTES>]': not a whole number of bytes");
    refused("text", b"12", &["--rows"], "not a .npy file");
    refused("reads.fq", b"@read\nACGT\n", &["--kmers", "2"], "looks like FASTQ");
    refused("both", b"", &["--kmers", "2", "--rows", "2"], "cannot be used with");
    refused("zero", b"", &["--kmers", "0"], "0 is not in 1..=4096");
    let missing = Command::new(executable()).arg("no/such/file").output().unwrap();
    assert!(missing.status.code() == Some(2) && missing.stderr.starts_with(b"error: no/such/file: "), "{missing:?}");
}

#[cfg(unix)]
#[test]
fn readers_and_disks_that_take_no_more_are_no_reason_to_panic() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("count-{}-printed", std::process::id()));
    // The output exceeds the capacity of a pipe.
    std::fs::write(&file, (0..50_000).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(executable());
        command.arg(&file).args(["--device", "cpu:1", "--top", "50000"]).args(arguments);
        command
    };
    let mut child = command(&["--verify"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
    if let Ok(full) = std::fs::File::create("/dev/full") {
        let output = command(&[]).stdout(full.try_clone().unwrap()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.starts_with("error: the report cannot be printed: No space"), "{said}");
        let output = command(&["--rows", "1000000"]).stderr(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    std::fs::remove_file(&file).unwrap();
}
