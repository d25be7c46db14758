//! State spaces written by `explore --export` are valid graphs for `decompose`, the executable that Cargo built beside `explore`.

use crate::EXPLORE;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn decompose() -> PathBuf {
    let path = Path::new(EXPLORE).with_file_name("decompose").with_extension(std::env::consts::EXE_EXTENSION);
    let how = "build it with `cargo build -p warpset-decompose` (`cargo test` does)";
    assert!(path.is_file(), "{} is missing: {how}", path.display());
    path
}

/// The report of a graph.
#[track_caller]
fn json(graph: &Path, arguments: &[&str]) -> Value {
    let output = Command::new(decompose()).arg(graph).args(arguments).args(["--json", "--compare"]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}: {output:?}", graph.display());
    serde_json::from_slice(&output.stdout).expect("one object")
}

#[track_caller]
fn has_values(report: &Value, expected: &[(&str, u64)]) {
    let wrong: Vec<_> = expected.iter().filter(|(name, value)| report[*name].as_u64() != Some(*value)).collect();
    assert!(wrong.is_empty(), "{wrong:?} in {report}");
}

/// Exports the state spaces of models, as arrays and as text, and decomposes both.
#[track_caller]
fn are_graphs(place: &[&str]) {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let folder = TempDir::new().unwrap();
    for (name, states, transitions) in [("peterson.dve", 20, 34), ("readers_writers.dve", 11, 22), ("mailbox.dve", 413, 582)] {
        let reports = ["npz", "aut"].map(|extension| {
            let file = folder.path().join(format!("{name}.{extension}"));
            let explored =
                Command::new(EXPLORE).arg(models.join(name)).args(["--device", "cpu:1", "--export"]).arg(&file).output();
            assert!(explored.unwrap().status.success());
            json(&file, place)
        });
        for report in &reports {
            has_values(report, &[("states", states), ("transitions", transitions), ("choices", transitions)]);
        }
        let of_both = ["components", "bottom_components", "largest_component", "end_components", "component_sizes"];
        assert!(of_both.iter().all(|name| reports[0][name] == reports[1][name]), "{reports:?}");
        // Peterson's processes can always continue to any state; readers and writers can get stuck.
        let expected = match name {
            "peterson.dve" => Some((1, 20)),
            _ => None,
        };
        if let Some((components, largest)) = expected {
            has_values(&reports[0], &[("components", components), ("largest_component", largest), ("end_components", 1)]);
        }
    }
}

pub fn exported_state_spaces_are_graphs() {
    are_graphs(&["--device", "cpu:2", "--algorithm", "parallel"]);
    are_graphs(&["--device", "cpu:2"]);
}

pub fn exported_state_spaces_are_graphs_on_a_gpu() {
    are_graphs(&["--device", "gpu"]);
}
