//! Tests whether the simulator detects that a part of the real headers, or of the model checker's kernels, is missing. Each
//! mutant is a copy of `cuda/` and of `examples/explore/search/src/gpu` with one change. The change must make a test of
//! bucket.rs, compact.rs, indexed.rs, search.rs or tree.rs fail.
//!
//! `cargo test -p warpset-simt --test simulator -- --ignored --nocapture mutants::` takes about three quarters of an hour,
//! because everything is compiled and run again for each mutant. `WARPSET_SIMT_MUTANT` selects the mutants whose description or
//! file contains its value.
//!
//! Keeps this promise of `src/docs/negative_controls.md`:
//!
//! - Each mutant of the real headers and kernels makes a test fail.

mod compact;
mod indexed;
mod nodes;
mod relocation;
mod search;
mod strategies;
mod tables;
mod together;
mod trees;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mutants, and the tests that must detect them.
struct Group {
    /// Modules of the test `simt` to run.
    modules: &'static [&'static str],
    /// Specs to compile, in the form of `WARPSET_SIMT_SPECS`; empty means all.
    specs: &'static str,
    mutants: &'static [Mutant],
}

/// Groups of mutants, one for each changed part.
const GROUPS: &[Group] = &[
    tables::GROUP,
    tables::LANES,
    tables::BULK,
    nodes::GROUP,
    trees::GROUP,
    together::GROUP,
    strategies::GROUP,
    compact::GROUP,
    relocation::GROUP,
    indexed::GROUP,
    search::GROUP,
];

struct Mutant {
    /// Description of the missing part.
    what: &'static str,
    /// Path of the changed file: `warpset/...` in the headers, or one of the model checker's kernels.
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

impl Mutant {
    fn is_of_headers(&self) -> bool {
        self.file.starts_with("warpset/")
    }

    /// Returns the text of the file with the change.
    fn text(&self) -> String {
        let folder = if self.is_of_headers() { headers() } else { checker() };
        let text = fs::read_to_string(folder.join(self.file)).expect("a file of the folder");
        assert_eq!(text.matches(self.from).count(), 1, "{}: the text to change must be there once", self.what);
        text.replace(self.from, self.to)
    }
}

fn headers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cuda")
}

/// Folder of the model checker's kernels.
fn checker() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/explore/search/src/gpu")
}

/// The text that each mutant replaces is present in the current files.
#[test]
fn every_mutant_differs() {
    GROUPS.iter().flat_map(|group| group.mutants).for_each(|mutant| drop(mutant.text()));
}

#[test]
#[ignore = "compiles and runs everything again for each mutant"]
fn every_mutant_is_killed() {
    let only = std::env::var("WARPSET_SIMT_MUTANT").ok();
    let wanted = |mutant: &&Mutant| only.as_ref().is_none_or(|only| mutant.what.contains(only) || mutant.file.contains(only));
    let all = GROUPS.iter().flat_map(|group| group.mutants.iter().filter(wanted).map(move |mutant| (group, mutant)));
    let survivors: Vec<&str> = all.filter(|(group, mutant)| survives(group, mutant)).map(|(_, mutant)| mutant.what).collect();
    assert!(survivors.is_empty(), "not noticed: {survivors:#?}");
}

/// Whether all tests pass with this mutant. Prints the error of a test that fails.
fn survives(group: &Group, mutant: &Mutant) -> bool {
    let copies = ["mutant", "mutant-checker"].map(|name| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    for (folder, copy) in [headers(), checker()].iter().zip(&copies) {
        let _ = fs::remove_dir_all(copy);
        copy_folder(folder, copy);
    }
    let changed = &copies[usize::from(!mutant.is_of_headers())];
    fs::write(changed.join(mutant.file), mutant.text()).expect("a copy can be written");

    // A test fails, or the tests crash before their summary.
    let fails = |text: &str| text.lines().any(|line| line.ends_with("... FAILED")) || !text.contains("test result: ");
    let mut texts = group.modules.iter().map(|module| run(module, group, &copies, mutant));
    let text = texts.find(|text| fails(text)).unwrap_or_default();
    let named = |line: &&str| ["bucket-", "compact-", "indexed-", "search-", "tree-"].iter().any(|kind| line.starts_with(kind));
    let how = text.lines().find(|line| line.contains(": ") && named(line) && !line.contains("schedules,"));
    println!("{}: {}; {}", if text.is_empty() { "SURVIVES" } else { "killed" }, mutant.what, how.unwrap_or("no report"));
    text.is_empty()
}

/// Runs the tests of a module of `simt` with the copies of the folders. Returns their output.
fn run(module: &str, group: &Group, [headers, checker]: &[PathBuf; 2], mutant: &Mutant) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--package", "warpset-simt", "--test", "simt", "--", &format!("{module}::")])
        .env("WARPSET_SIMT_HEADERS", headers)
        .env("WARPSET_SIMT_CHECKER", checker)
        .env("WARPSET_TEST_FULL", "1")
        .env("WARPSET_SIMT_FIRST_FAILURE", "1")
        .env("WARPSET_SIMT_SPECS", group.specs)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants"))
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("running "), "{} does not compile:\n{errors}", mutant.what);
    text.into_owned()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder") {
        let path: PathBuf = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &target)
        } else {
            fs::copy(&path, &target).map(drop).expect("a file can be copied")
        }
    }
}
