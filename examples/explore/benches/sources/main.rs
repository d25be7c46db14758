//! The model checker beside the tables of published explorers: each row of a paper, and the same search here.
//!
//! `cargo bench -p warpset-explore --bench sources -- gpuexplore3` prints tables 1, 2 and 3 of GPUexplore 3.0 beside this GPU,
//! `hashing` the tables of its figure 10 on the same models, `gpuexplore1` table 1 of GPUexplore 1.0, and `counterexamples` table
//! 2 of Wu et al. `--models a,b` selects rows.
//!
//! A model is one of `benches/sources/models`, with the constants of rows.rs, or a file NAME.dve in the folder that
//! `WARPSET_BEEM` names (or in a folder `open` there), of the BEEM benchmark. Rows without a model say why. States are
//! compared with those of the paper. Every search has five slots for four states, and is measured without start-up, as in the
//! papers.

#[path = "../../../../benches/support/card.rs"]
#[allow(dead_code, reason = "other benches use the other cards")]
mod card;
mod rows;

use anyhow::{Context, Result, ensure};
use card::{Card, K20, K20C, TITAN_RTX, V100};
use clap::{Parser, Subcommand};
use rows::{Origin, Row};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use warpset::Device;

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    source: Source,

    /// Rows to run: names of models, without the + of scaled ones [default: all]
    #[arg(long, global = true, value_delimiter = ',')]
    models: Vec<String>,

    /// Device of the searches, as for `explore`: gpu:0,1 searches on two GPUs.
    #[arg(long, global = true, default_value = "gpu:0")]
    device: String,

    /// Most states of a row that is run.
    #[arg(long, global = true, default_value_t = 5_000_000_000)]
    most_states: u64,

    /// Ignored: Cargo passes it to every bench.
    #[arg(long, global = true, hide = true)]
    bench: bool,
}

#[derive(Subcommand)]
enum Source {
    /// Tables 1, 2 and 3 of Wijs and Osama (2024): states a second.
    Gpuexplore3,
    /// Table 1 and figure 10 of Wijs and Osama (2024): kinds of tables, with packed states and a word for each variable.
    Hashing,
    /// Table 1 of Wijs and Bošnački (2014): states and transitions.
    Gpuexplore1,
    /// Table 2 of Wu, Liu, Liang and Sun (2014): counterexamples of dining philosophers.
    Counterexamples,
}

/// Figures of a search, from its report.
struct Figures {
    states: u64,
    transitions: u64,
    seconds: f64,
    words: u64,
    bytes_per_state: f64,
    report: Value,
}

impl Figures {
    /// Millions of states a second.
    fn speed(&self) -> f64 {
        self.states as f64 / self.seconds / 1e6
    }
}

/// The searches of one run of this program.
struct Searches<'a> {
    options: &'a Options,
    /// For the network `broadcast`.
    folder: TempDir,
    beem: Option<PathBuf>,
}

impl Searches<'_> {
    fn is_asked(&self, row: &Row) -> bool {
        let Options { models, most_states, .. } = self.options;
        row.states <= *most_states && (models.is_empty() || models.contains(&row.model))
    }

    /// The file of a row's model, and the options that give its constants; or why there is none.
    fn model(&self, row: &Row) -> Result<std::result::Result<(PathBuf, Vec<String>), String>> {
        Ok(match row.origin {
            Origin::Text(text, constants) => {
                let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/sources/models").join(format!("{text}.dve"));
                Ok((file, constants.iter().flat_map(|of| ["--const".into(), (*of).into()]).collect()))
            }
            Origin::Broadcast(components) => Ok((broadcast(self.folder.path(), components)?, Vec::new())),
            Origin::Beem => {
                let folders = self.beem.iter().flat_map(|folder| [folder.clone(), folder.join("open")]);
                let file = folders.map(|folder| folder.join(format!("{}.dve", row.model))).find(|file| file.is_file());
                file.map(|file| (file, Vec::new())).ok_or_else(|| "WARPSET_BEEM has no such model".into())
            }
            Origin::Unknown(why) => Err(why.into()),
        })
    }

    /// Explores a model in the initial table of `capacity` slots. The error of a search that fails is its last line.
    fn explore(&self, file: &Path, capacity: Option<u64>, arguments: &[&str]) -> Result<Figures> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_explore"));
        command.arg(file).args(["--json", "--device", &self.options.device]).args(arguments);
        command.args(capacity.iter().flat_map(|slots| ["--capacity".into(), slots.to_string()]));
        let output = command.output()?;
        let report: Value = serde_json::from_slice(&output.stdout).with_context(|| {
            String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("explore printed nothing").to_string()
        })?;
        if let Some(error) = report["error"].as_str() {
            anyhow::bail!("{error}");
        }
        let number =
            |part: &str, name: &str| report[part][name].as_f64().with_context(|| format!("no {part}.{name} in the report"));
        Ok(Figures {
            states: number("counts", "states")? as u64,
            transitions: number("counts", "transitions")? as u64,
            seconds: number("time", "explore")?,
            words: number("table", "words")? as u64,
            bytes_per_state: number("table", "bytes_per_state")?,
            report,
        })
    }

    /// Explores a row's model completely. `Err` has what to print instead of the figures.
    fn row(&self, row: &Row, arguments: &[&str]) -> Result<std::result::Result<Figures, String>> {
        let (file, constants) = match self.model(row)? {
            Ok(model) => model,
            Err(why) => return Ok(Err(why)),
        };
        let arguments: Vec<&str> = constants.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
        Ok(match self.explore(&file, Some(row.states / 4 * 5), &arguments) {
            Ok(figures) if figures.report["complete"] != true => {
                Err(format!("ended early ({}) after {} states", figures.report["end"], figures.states))
            }
            Ok(figures) if figures.states != row.states => Err(format!("{} states, so another model", figures.states)),
            Ok(figures) => Ok(figures),
            Err(error) => Err(format!("{error:#}")),
        })
    }
}

/// A network of stations of six states; state 5 has two steps to state 0. Ten have the counts of the paper's `broadcast`.
fn broadcast(folder: &Path, components: usize) -> Result<PathBuf> {
    let steps = (0..6).map(|at| format!("({at}, MOVE_{at}, {})\n", (at + 1) % 6)).collect::<String>();
    std::fs::write(folder.join("station.aut"), format!("des (0, 7, 6)\n{steps}(5, REPEAT, 0)\n"))?;
    let file = folder.join("broadcast.exp");
    std::fs::write(&file, format!("par {} end par", vec!["\"station.aut\""; components].join(" || ")))?;
    Ok(file)
}

fn main() -> Result<()> {
    let options = Options::parse();
    let Ok(device) = options.device.split(',').next().unwrap_or_default().parse::<warpset_support::device::DeviceChoice>() else {
        anyhow::bail!("--device {}: no such device", options.device)
    };
    let card = match Device::gpus() {
        Ok(gpus) if !gpus.is_empty() => device.open().ok().as_ref().and_then(Card::of),
        _ => None,
    };
    let Some(card) = card else {
        println!("skipped: no CUDA device");
        return Ok(());
    };
    let searches =
        Searches { options: &options, folder: TempDir::new()?, beem: std::env::var_os("WARPSET_BEEM").map(PathBuf::from) };
    match options.source {
        Source::Gpuexplore3 => gpuexplore_3(&searches, &card),
        Source::Hashing => hashing(&searches, &card),
        Source::Gpuexplore1 => gpuexplore_1(&searches, &card),
        Source::Counterexamples => counterexamples(&searches, &card),
    }
}

fn print_row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

fn print_head(names: &[&str]) {
    println!("| {} |\n|{}", names.join(" | "), "---|".repeat(names.len()));
}

/// A figure of a paper, if it is a number.
fn number(cell: &str) -> Option<f64> {
    cell.parse().ok()
}

/// How many times as fast as a figure of the paper.
fn times(speed: f64, cell: &str) -> String {
    number(cell).map_or_else(|| "-".into(), |paper| format!("{:.0}", speed / paper))
}

fn gpuexplore_3(searches: &Searches, card: &Card) -> Result<()> {
    println!("{card}, --device {}: {}, {}\n", searches.options.device, card.times(TITAN_RTX), card.times(V100));
    println!("10^6 states a second. `O.M.`, `T.`: the paper's run was out of memory, or of an hour.\n");
    print_head(&[
        "model",
        "states",
        "SPIN, 1 core",
        "4",
        "LTSmin, 1 core",
        "4",
        "32",
        "Titan RTX",
        "V100",
        "2 V100",
        "4 V100",
        "here",
        "words",
        "seconds",
        "bytes a state",
        "/ best single card",
        "/ LTSmin, 32",
    ]);
    let mut ratios = Vec::new();
    for row in rows::of_gpuexplore_3()?.iter().filter(|row| searches.is_asked(row)) {
        let paper = |name: &str| row.cell(name);
        let [rtx, v100, ltsmin] = ["rtx_cmp_i30", "v100_1", "ltsmin_32"].map(paper);
        let best = [rtx, v100].into_iter().filter_map(number).max_by(f64::total_cmp);
        let mut cells = vec![row.name.clone(), row.states.to_string()];
        let columns = ["spin_1", "spin_4", "ltsmin_1", "ltsmin_4", "ltsmin_32", "rtx_cmp_i30", "v100_1", "v100_2", "v100_4"];
        cells.extend(columns.map(|column| paper(column).to_string()));
        cells.extend(match searches.row(row, &[])? {
            Ok(figures) => {
                ratios.extend(best.map(|best| figures.speed() / best));
                let best = best.map_or_else(|| "-".into(), |best| format!("{:.0}", figures.speed() / best));
                let of_table = [format!("{:.0}", figures.speed()), figures.words.to_string(), format!("{:.3}", figures.seconds)];
                let ltsmin = times(figures.speed(), ltsmin);
                of_table.into_iter().chain([format!("{:.1}", figures.bytes_per_state), best, ltsmin]).collect()
            }
            Err(why) => vec![why, "-".into(), "-".into(), "-".into(), "-".into(), "-".into()],
        });
        print_row(&cells);
    }
    let logarithms = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64;
    println!("\n{} rows beside a single card: {:.0} times as fast in the geometric mean", ratios.len(), logarithms.exp());
    Ok(())
}

fn hashing(searches: &Searches, card: &Card) -> Result<()> {
    const TABLES: [&str; 4] = ["bucket", "tree", "tree-compact", "compact"];
    println!("{card}: {}\n", card.times(TITAN_RTX));
    println!("10^6 states a second; here also bytes a state. BU, CMP ...: the paper's tables on a Titan RTX.\n");
    print_head(&[
        "model",
        "bits",
        "compression ratio",
        "BU",
        "CMP",
        "CMP + BU",
        "CMP + CU",
        "CMP, i30",
        "CMP + CU, i30",
        "words here",
        "bucket",
        "tree",
        "tree-compact",
        "compact",
    ]);
    for row in rows::of_gpuexplore_3()?.iter().filter(|row| searches.is_asked(row) && !row.cell("bits").is_empty()) {
        let columns = ["bits", "ratio", "rtx_bu", "rtx_cmp", "rtx_cmp_bu", "rtx_cmp_cu", "rtx_cmp_i30", "rtx_cmp_cu_i30"];
        for unpacked in [&[][..], &["--unpacked"]] {
            let mut cells = vec![row.name.clone()];
            cells.extend(columns.map(|column| row.cell(column).to_string()));
            let mut words = None;
            let mut of_tables = Vec::new();
            for table in TABLES {
                let arguments = [&["--table", table], unpacked].concat();
                of_tables.push(match searches.row(row, &arguments)? {
                    Ok(figures) => {
                        words = Some(figures.words);
                        let ratio = figures.report["table"]["compression_ratio"].as_f64().filter(|_| table.starts_with("tree"));
                        let ratio = ratio.map_or_else(String::new, |ratio| format!(", ratio {:.2}", 1.0 / ratio));
                        format!("{:.0} ({:.1} B{ratio})", figures.speed(), figures.bytes_per_state)
                    }
                    Err(why) => why,
                });
            }
            let of_states = words
                .map_or_else(|| "-".into(), |words| format!("{words}{}", if unpacked.is_empty() { "" } else { ", unpacked" }));
            cells.push(of_states);
            print_row(&cells.into_iter().chain(of_tables).collect::<Vec<_>>());
        }
    }
    Ok(())
}

fn gpuexplore_1(searches: &Searches, card: &Card) -> Result<()> {
    println!("{card}: {}\n", card.times(K20));
    println!("The paper has its times in a figure only, so that no ratio is printed.\n");
    print_head(&[
        "model",
        "states",
        "transitions",
        "transitions here",
        "seconds",
        "10^6 states a second",
        "10^6 transitions a second",
    ]);
    for row in rows::of_gpuexplore_1()?.iter().filter(|row| searches.is_asked(row)) {
        let mut cells = vec![row.name.clone(), row.states.to_string(), row.cell("transitions").to_string()];
        cells.extend(match searches.row(row, &[])? {
            Ok(figures) => vec![
                figures.transitions.to_string(),
                format!("{:.3}", figures.seconds),
                format!("{:.0}", figures.speed()),
                format!("{:.0}", figures.transitions as f64 / figures.seconds / 1e6),
            ],
            Err(why) => vec![why, "-".into(), "-".into(), "-".into()],
        });
        print_row(&cells);
    }
    Ok(())
}

fn counterexamples(searches: &Searches, card: &Card) -> Result<()> {
    println!("{card}: {}\n", card.times(K20C));
    println!("Milliseconds. Theirs are those of the path in an existing graph; here the product is explored, too.\n");
    print_head(&[
        "philosophers",
        "states, theirs",
        "time",
        "states, here",
        "exploration",
        "search for cycles",
        "run",
        "all three",
    ]);
    for row in rows::of_counterexamples()? {
        let (model, _) = searches.model(&row)?.map_err(anyhow::Error::msg)?;
        let (number, formula) = (format!("N={}", row.model), ["--ltl", "G F Phil_0.ate"]);
        for (how, arguments) in [("all", &["--keep-going"][..]), ("early", &[])] {
            let arguments = [&formula, &["--const", &number][..], arguments].concat();
            // The first search compiles kernels that the second one loads.
            searches.explore(&model, None, &arguments)?;
            let figures = searches.explore(&model, None, &arguments)?;
            ensure!(figures.report["verdict"] == "violated", "a philosopher eats again and again in every run");
            let time = |name: &str| 1e3 * figures.report["time"][name].as_f64().unwrap_or(0.0);
            let times = ["explore", "answer", "path"].map(time);
            let mut cells = vec![format!("{}, {how}", row.model)];
            cells.extend(["states", "milliseconds"].map(|name| row.cell(name).to_string()));
            cells.push(figures.states.to_string());
            cells.extend(times.iter().chain([&times.iter().sum()]).map(|time| format!("{time:.1}")));
            print_row(&cells);
        }
    }
    Ok(())
}
