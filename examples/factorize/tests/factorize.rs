//! Tests the example `factorize` as a user runs it, and compares it with NumPy if `python3` has it.
#![cfg(feature = "cpu")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// `target/PROFILE/examples/factorize`, from this test's `target/PROFILE/deps/factorize-HASH`.
fn executable() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its executable");
    let profile = test.parent().and_then(Path::parent).expect("tests are in target/PROFILE/deps");
    let path = profile.join("examples").join(format!("factorize{}", std::env::consts::EXE_SUFFIX));
    let how = "build it with `cargo build --example factorize` (`cargo test` does)";
    assert!(path.is_file(), "{} is missing: {how}", path.display());
    path
}

/// Path of a file of this test.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("factorize-{}-{name}.npy", std::process::id()))
}

fn factorize(array: &Path, numbers: &Path, distinct: &Path) -> Output {
    Command::new(executable()).args([array, numbers, distinct]).output().expect("the example starts")
}

fn npy(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{dictionary:<117}\n");
    [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), data].concat()
}

#[test]
fn rows_are_numbered() {
    let [array, numbers, distinct] = ["array", "numbers", "distinct"].map(file);
    let rows = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (5, 3), }", b"bbbaaabbb\0\0\0aaa");
    std::fs::write(&array, rows).unwrap();
    let output = factorize(&array, &numbers, &distinct);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("5 rows of 3 bytes, 3 distinct; on "));
    let of_numbers = std::fs::read(&numbers).unwrap();
    assert!(of_numbers.ends_with(&[0u64, 1, 0, 2, 1].map(u64::to_le_bytes).concat()) && of_numbers.len() == 128 + 40);
    let of_distinct = std::fs::read(&distinct).unwrap();
    assert!(of_distinct.ends_with(b"bbbaaa\0\0\0") && of_distinct.len() == 128 + 9);
    [array, numbers, distinct].iter().for_each(|file| std::fs::remove_file(file).unwrap());
}

#[test]
fn what_does_not_fit_is_refused() {
    let array = file("wrong");
    for (content, reason) in [
        (b"12".to_vec(), "not a .npy file"),
        (
            npy("{'descr': '<u4', 'fortran_order': False, 'shape': (5, 3), }", &[0; 59]),
            "shape (5, 3) of '<u4' does not fit the 59",
        ),
        (npy("{'descr': '<u4', 'fortran_order': True, 'shape': (5, 3), }", &[0; 60]), "Fortran order"),
        (npy("{'descr': '<U4', 'fortran_order': False, 'shape': (5,), }", &[0; 80]), "dtype '<U4'"),
        (npy("{'descr': '<u4', 'fortran_order': False, 'shape': (), }", &[0; 4]), "the shape () has no rows"),
        (npy("{'descr': '<u4', 'fortran_order': False, 'shape': (2, 0), }", &[]), "rows of 0 bytes"),
        (
            npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1025), }", &[0; 2050]),
            "1025 bytes, but at most 1024 are possible",
        ),
    ] {
        std::fs::write(&array, content).unwrap();
        let output = factorize(&array, &file("not"), &file("written"));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.starts_with("error: ") && error.contains(reason), "{error}");
        assert!(!file("not").exists() && !file("written").exists());
    }
    std::fs::remove_file(&array).unwrap();
}

#[test]
fn files_do_not_overwrite_the_array_or_each_other() {
    let [array, link, numbers, distinct] = ["mine", "link", "two", "one"].map(file);
    let rows = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (5, 3), }", b"bbbaaabbb\0\0\0aaa");
    std::fs::write(&array, &rows).unwrap();
    std::fs::hard_link(&array, &link).unwrap();
    for (to_numbers, to_distinct, reason) in [
        (&array, &distinct, "is the array, and would be overwritten"),
        (&link, &distinct, "is the array, and would be overwritten"),
        (&numbers, &array, "is the array, and would be overwritten"),
        (&numbers, &numbers, "are the same file"),
    ] {
        let output = factorize(&array, to_numbers, to_distinct);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.starts_with("error: ") && error.contains(reason), "{error}");
        assert!(std::fs::read(&array).unwrap() == rows && !numbers.exists() && !distinct.exists());
    }
    // Existing contents are replaced, whatever their length.
    std::fs::write(&numbers, [1; 4096]).unwrap();
    assert!(factorize(&array, &numbers, &distinct).status.success());
    assert_eq!([&numbers, &distinct].map(|file| std::fs::metadata(file).unwrap().len()), [128 + 40, 128 + 9]);
    [array, link, numbers, distinct].iter().for_each(|file| std::fs::remove_file(file).unwrap());
}

#[cfg(unix)]
#[test]
fn readers_and_disks_that_take_no_more_are_no_reason_to_panic() {
    let [array, numbers, distinct] = ["printed", "printed-numbers", "printed-distinct"].map(file);
    std::fs::write(&array, npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3), }", b"abc")).unwrap();
    let command = |numbers: &Path| {
        let mut command = Command::new(executable());
        command.args([&array, numbers, &distinct]);
        command
    };
    let mut child = command(&numbers).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
    if let Ok(full) = std::fs::File::create("/dev/full") {
        let output = command(&numbers).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.starts_with("error: the report cannot be printed: No space"), "{said}");
        let output = command(Path::new("/dev/full")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.starts_with("error: NUMBERS: /dev/full cannot be written: No sp"),
            "{said}"
        );
    }
    [array, numbers, distinct].iter().for_each(|file| std::fs::remove_file(file).unwrap());
}

/// Compares arrays of several types and dimensions with the results of `numpy.unique`, in the order of first occurrence.
#[test]
fn numpy_has_the_same() {
    let script = r#"
import subprocess, sys
import numpy as np
program, array, numbers, distinct = sys.argv[1:]
random = np.random.default_rng(1)
for made in [
    random.integers(0, 9, (5000, 2), "<u4"),
    random.integers(-3, 3, (5000, 3), "i2"),
    random.integers(0, 500, 5000, "i8"),
    random.integers(0, 2, (3000, 2, 3), "u1"),
    random.integers(0, 4, 3000).astype("f4"),
    np.zeros((0, 5), "u4"),
]:
    np.save(array, made)
    subprocess.run([program, array, numbers, distinct], check=True)
    _, first, inverse = np.unique(made, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    ours, values = np.load(numbers), np.load(distinct)
    assert ours.dtype == np.uint64 and np.array_equal(ours, number[inverse.reshape(-1)])
    assert values.dtype == made.dtype and values.shape[1:] == made.shape[1:]
    assert np.array_equal(values, made[np.sort(first)]) and np.array_equal(values[ours], made)
"#;
    if !Command::new("python3").args(["-c", "import numpy"]).output().is_ok_and(|output| output.status.success()) {
        return println!("skipped: comparison with NumPy, since there is no python3 that has it");
    }
    let files = ["of-numpy", "its-numbers", "its-distinct"].map(file);
    let output = Command::new("python3").args(["-c", script]).arg(executable()).args(&files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
}
