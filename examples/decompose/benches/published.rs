//! The rows of Wijs, Katoen and Bošnački (2014), tables 1 and 2, beside graphs of the same kind here.
//!
//! `WARPSET_MDP` names a folder of graphs of decision processes, NAME.tra or NAME.tra.gz, also in a folder `tra` there.
//! `cargo bench -p warpset-decompose --bench published` prints a Markdown table: the paper's seconds on one core and on a Tesla
//! K20m, and for each graph of the row's kind its sizes and the seconds here, of Tarjan's algorithm on one core and of the GPU.
//! Medians of 3. A row without a graph says why.

#[path = "../../../benches/support/card.rs"]
#[allow(dead_code, reason = "other benches use the other cards")]
mod card;

use anyhow::{Context, Result, ensure};
use card::{Card, K20M};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use warpset::Device;

const REPEATS: usize = 3;
const ROWS: &str = include_str!("../../../benches/sources/components.csv");

fn main() -> Result<()> {
    let Some(folder) = std::env::var_os("WARPSET_MDP").map(PathBuf::from) else {
        println!("skipped: WARPSET_MDP does not name a folder of graphs");
        return Ok(());
    };
    let card = match Device::gpus() {
        Ok(gpus) if !gpus.is_empty() => Device::best().ok().as_ref().and_then(Card::of),
        _ => None,
    };
    let Some(card) = card else {
        println!("skipped: no CUDA device");
        return Ok(());
    };
    println!("{card}: {}. Seconds, medians of {REPEATS}.\n", card.times(K20M));
    println!(
        "| paper's model | states | transitions | SCC: Tarjan | best GPU | times | MEC: CPU | GPU | times | here | states | \
         transitions | SCC: Tarjan | GPU | times | SCC and MEC: GPU |\n|{}",
        "---|".repeat(16)
    );
    let mut graphs: Vec<PathBuf> = [folder.clone(), folder.join("tra")].iter().flat_map(|folder| list(folder)).collect();
    graphs.sort();
    for row in ROWS.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let [model, states, transitions, tarjan, gpu, mec, mec_gpu, kind] = cells[..] else {
            anyhow::bail!("{row}: {} cells", cells.len())
        };
        let times =
            |slow: &str, fast: &str| -> Result<String> { Ok(format!("{:.1}", slow.parse::<f64>()? / fast.parse::<f64>()?)) };
        let (scc_times, mec_times) = (times(tarjan, gpu)?, times(mec, mec_gpu)?);
        let paper = [model, states, transitions, tarjan, gpu, &scc_times, mec, mec_gpu, &mec_times].join(" | ");
        let mut any = false;
        for graph in graphs.iter().filter(|graph| is_of_kind(graph, kind)) {
            any = true;
            println!("| {paper} | {} |", measured(graph)?.join(" | "));
        }
        if !any {
            println!("| {paper} | no graph of its kind ({kind}) in WARPSET_MDP | | | | | | |");
        }
    }
    Ok(())
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| name(path).contains(".tra")).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a graph's name is the kind, and parameters.
fn is_of_kind(graph: &Path, kind: &str) -> bool {
    name(graph).split('.').next() == Some(kind)
}

/// The last cells of a row.
fn measured(graph: &Path) -> Result<Vec<String>> {
    let mut reports = Vec::new();
    for _ in 0..REPEATS {
        let output =
            Command::new(env!("CARGO_BIN_EXE_decompose")).arg(graph).args(["--device", "gpu", "--json", "--compare"]).output()?;
        let report: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("decompose {}: {}", graph.display(), String::from_utf8_lossy(&output.stderr)))?;
        ensure!(report["error"].is_null(), "{}: {}", graph.display(), report["error"]);
        reports.push(report);
    }
    let median = |of: &dyn Fn(&Value) -> Option<f64>| -> Result<f64> {
        let mut all = reports.iter().map(|report| of(report).context("a time in the report")).collect::<Result<Vec<_>>>()?;
        all.sort_by(f64::total_cmp);
        Ok(all[all.len() / 2])
    };
    let tarjan = median(&|report| report["tarjan_seconds"].as_f64())?;
    let components = median(&|report| report["time"]["components"].as_f64())?;
    let ends = median(&|report| report["time"]["end_components"].as_f64())?;
    Ok(vec![
        name(graph),
        reports[0]["states"].to_string(),
        reports[0]["transitions"].to_string(),
        format!("{tarjan:.4}"),
        format!("{components:.4}"),
        format!("{:.1}", tarjan / components),
        format!("{:.4}", components + ends),
    ])
}
