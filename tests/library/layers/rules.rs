//! The imports that the layers allow.

use super::source::{Crate, Sources, tokens, without_tests};
use std::collections::{BTreeMap, BTreeSet};

/// For each layer, the layers that its files may import from besides their own. `backend` stands for its traits, in
/// `backend/machine.rs` and `backend/mod.rs`; `backend/*` also for the machines.
const LAYERS: [(&str, &[&str]); 12] = [
    ("faults", &[]),
    ("error", &["layout"]),
    ("layout", &["error"]),
    ("host", &["error", "faults"]),
    ("backend", &["error", "faults", "host", "layout", "backend/*"]),
    ("device", &["error", "layout", "backend/*"]),
    ("core", &["error", "faults", "host", "layout", "backend", "device"]),
    ("table", &["error", "faults", "host", "layout", "backend", "device", "core", "saved"]),
    ("saved", &["error", "faults", "host", "layout", "backend", "device", "core"]),
    ("gpu", &["error", "faults", "host", "layout", "backend/*", "device", "core", "table"]),
    ("cluster", &["error", "faults", "host", "layout", "backend/*", "device", "core", "table", "gpu", "saved"]),
    ("lib", &["backend", "cluster", "core", "device", "error", "faults", "gpu", "host", "layout", "saved", "table"]),
];

/// The only files that may name `cudarc`: those of machines on GPUs, and the interface to them.
const CUDARC: [&str; 4] = ["backend/cuda/", "gpu/", "cluster/nccl/", "cluster/device.rs"];

/// Maximum number of lines with `cfg(feature = "cuda")` or `"cpu"` outside `backend/`.
pub const MOST_FEATURE_LINES: usize = 41;

/// Maximum number of files of a circle within one folder.
const MOST_IN_A_CIRCLE: usize = 3;

/// Layer of a file: its first folder, or its name if it is in no folder.
fn layer(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

fn folder(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Imports that no layer allows, as one text each.
pub fn forbidden_arrows(sources: &Sources) -> Vec<String> {
    let all = Crate::read(sources);
    let mut wrong = Vec::new();
    for module in &all.modules {
        let from = layer(&module.file);
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == from) else {
            wrong.push(format!("{} is in no layer", module.file));
            continue;
        };
        for (file, path) in all.arrows(module) {
            let to = layer(&file);
            let is_machine = to == "backend" && folder(&file) != "backend";
            let is_allowed = match from == to {
                true => true,
                false if is_machine => allowed.contains(&"backend/*"),
                false => allowed.contains(&to) || (to == "backend" && allowed.contains(&"backend/*")),
            };
            // A machine must not import another machine.
            let machine = |file: &str| {
                file.strip_prefix("backend/").and_then(|rest| rest.split_once('/')).map(|(name, _)| name.to_string())
            };
            let crosses = matches!((machine(&module.file), machine(&file)), (Some(one), Some(other)) if one != other);
            if !is_allowed || crosses {
                wrong.push(format!("{} imports {file} ({path})", module.file));
            }
        }
    }
    wrong
}

/// Files that name `cudarc` without permission.
pub fn wrong_cudarc(sources: &Sources) -> Vec<String> {
    let names_it = |text: &str| without_tests(&tokens(text)).0.iter().any(|token| token == "cudarc");
    let may = |file: &str| CUDARC.iter().any(|allowed| file.starts_with(allowed));
    sources.iter().filter(|(file, text)| !may(file) && names_it(text)).map(|(file, _)| file.clone()).collect()
}

/// Lines with a condition on a machine's feature outside `backend/`, by file.
pub fn feature_lines(sources: &Sources) -> BTreeMap<String, usize> {
    let is_one = |line: &&str| {
        let line = line.trim_start();
        let is_machine = line.contains("feature = \"cuda\"") || line.contains("feature = \"cpu\"");
        !line.starts_with("//") && line.contains("cfg") && is_machine
    };
    let outside = sources.iter().filter(|(file, _)| !file.starts_with("backend/"));
    outside.map(|(file, text)| (file.clone(), text.lines().filter(is_one).count())).filter(|(_, count)| *count > 0).collect()
}

/// The circles of imports, each with its files in order.
pub fn circles(sources: &Sources) -> Vec<Vec<String>> {
    let all = Crate::read(sources);
    let arrows: BTreeMap<String, BTreeSet<String>> = all
        .modules
        .iter()
        .map(|module| (module.file.clone(), all.arrows(module).into_iter().map(|(file, _)| file).collect()))
        .collect();
    let reach = |from: &String| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(file) = open.pop() {
            for next in arrows.get(&file).into_iter().flatten() {
                if reached.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = arrows.keys().map(|file| (file, reach(file))).collect();
    let mut circles = BTreeSet::new();
    for (file, to) in &reached {
        let circle: Vec<String> =
            to.iter().filter(|other| reached.get(other).is_some_and(|back| back.contains(*file))).cloned().collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// Circles that are not allowed: of files in different folders, or of too many files.
pub fn forbidden_circles(sources: &Sources) -> Vec<Vec<String>> {
    let is_wrong =
        |circle: &Vec<String>| circle.len() > MOST_IN_A_CIRCLE || circle.iter().any(|file| folder(file) != folder(&circle[0]));
    circles(sources).into_iter().filter(is_wrong).collect()
}

/// Lines of a header that are allowed only in a machine's platform: preprocessor conditions, inline assembly, builtins.
pub fn machine_lines(text: &str) -> Vec<String> {
    let is_one = |line: &&str| {
        let code = line.split("//").next().unwrap_or_default().trim();
        let directive = code.strip_prefix('#').map(str::trim_start);
        directive.is_some_and(|rest| ["if", "el", "endif"].iter().any(|name| rest.starts_with(name)))
            || ["asm(", "asm ", "asm\t", "__builtin", "__sync_", "__shfl", "__ballot", "__atomic_"]
                .iter()
                .any(|name| code.contains(name))
    };
    text.lines().filter(is_one).map(str::to_string).collect()
}
