//! Reduced searches: how the way to choose, and what is known of values, change the numbers of states and the times.
//!
//! `cargo bench -p warpset-explore --bench reductions` prints Markdown tables of the philosophers of this repository. With
//! `WARPSET_BEEM` and `WARPSET_NETS`, the folders of BEEM's models and of Petri nets, it prints those of docs/reductions.md.
//! `WARPSET_BENCH_REDUCTIONS` is one table: `ways`, `values` or `searches`. Words in `WARPSET_BENCH_MODELS` choose models by
//! parts of their names. Needs a C++ compiler. Times are of the processor, on Linux, so other programs change them little.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use warpset_model::checks::Checks;
use warpset_model::input;
use warpset_model::interpreter::Interpreter;
use warpset_model::language::{Format, Text};
use warpset_model::net::Nets;
use warpset_model::net::encoding::Encoding;
use warpset_model::network::Reading;
use warpset_model::reduction::knowledge::Knowledge;
use warpset_model::reduction::stubborn::{Heuristics, Kept, Stubborn};
use warpset_search::codegen::on_cpu::Compiled;
use warpset_search::successors::{Expansion, Interpreted, Scratch, Successors};

const DEADLOCKS: Kept = Kept { deadlocks: true, goals: false };

/// States that are expanded together.
const BATCH: usize = 1024;

/// Times are the best of this number.
const ROUNDS: usize = 3;

/// Shortest time that is measured, in nanoseconds.
const LEAST: u64 = 50_000_000;

/// A model of a list.
struct Model {
    name: String,
    path: PathBuf,
    states: u64,
}

/// The models of a folder's list whose names contain one of the words in `WARPSET_BENCH_MODELS`.
fn listed(list: &Path, path: impl Fn(&str) -> PathBuf) -> Result<Vec<Model>> {
    let text = std::fs::read_to_string(list).with_context(|| list.display().to_string())?;
    let header: Vec<&str> = text.lines().next().context("a header")?.split(',').collect();
    let of_states = header.iter().position(|column| *column == "states").context("a column of states")?;
    let words = std::env::var("WARPSET_BENCH_MODELS").unwrap_or_default();
    let is_asked = |name: &str| words.is_empty() || words.split_whitespace().any(|word| name.contains(word));
    let rows = text.lines().skip(1).map(|row| row.split(',').collect::<Vec<_>>());
    let rows = rows.filter_map(|row| Some((row[0].to_owned(), row[of_states].parse::<u64>().ok()?)));
    let rows = rows.filter(|(name, _)| is_asked(name));
    Ok(rows.map(|(name, states)| Model { path: path(&name), name, states }).collect())
}

fn beem() -> Result<Vec<Model>> {
    let Some(folder) = std::env::var_os("WARPSET_BEEM").map(|folder| PathBuf::from(folder).join("reduce")) else {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/philosophers.dve");
        return Ok(vec![Model { name: "philosophers".into(), path, states: 322 }]);
    };
    listed(&folder.join("reduce.csv"), |name| folder.join(format!("{name}.dve")))
}

fn nets() -> Result<Vec<Model>> {
    let Some(folder) = std::env::var_os("WARPSET_NETS").map(PathBuf::from) else { return Ok(Vec::new()) };
    listed(&folder.join("open.csv"), |name| folder.join("open").join(name).join("model.pnml"))
}

fn read(path: &Path, encoding: Encoding) -> Result<Text> {
    if Format::of(path)? == Format::Pnml {
        return Ok(Text::Net(Nets::read(input::read_xml(path)?, encoding).map_err(|error| anyhow::anyhow!("{error}"))?));
    }
    Text::read(Format::of(path)?, input::open(path)?, &Reading::default())
}

/// Calls `measure` with a model that was read; with wider fields for tokens again, if it finds a fault.
fn with_model<T>(path: &Path, measure: impl Fn(&Interpreted) -> Result<Option<T>>) -> Result<T> {
    for encoding in Encoding::all() {
        let text = read(path, encoding)?;
        let checks = Checks::default();
        let interpreted = Interpreted::new(Interpreter::new(text.model()), &checks);
        if let Some(measured) = measure(&interpreted)? {
            return Ok(measured);
        }
    }
    anyhow::bail!("{}: the model has a fault", path.display())
}

/// All states of a search, one after another; `None` after a fault.
fn states(source: &Compiled, initial: Vec<u32>) -> Option<Vec<u32>> {
    let width = initial.len();
    let (mut known, mut all, mut done) = (HashSet::from([initial.clone()]), initial, 0);
    let (mut scratch, mut expansion) = (Scratch::default(), Expansion::default());
    while done < all.len() {
        let batch = all[done..].len().min(BATCH * width);
        expansion.clear();
        source.expand(&all[done..done + batch], &mut scratch, &mut expansion);
        if expansion.violation.is_some() {
            return None;
        }
        done += batch;
        for successor in expansion.successors.chunks_exact(width) {
            if known.insert(successor.to_vec()) {
                all.extend_from_slice(successor);
            }
        }
    }
    Some(all)
}

/// Nanoseconds for which this thread has run.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let of_thread = times.and_then(|times| times.split(' ').next()?.parse().ok());
    of_thread.unwrap_or_else(|| START.elapsed().as_nanos() as u64)
}

/// Nanoseconds of expanding a state without storing anything.
fn time_of(source: &Compiled, width: usize, states: &[u32]) -> f64 {
    let (mut scratch, mut expansion) = (Scratch::default(), Expansion::default());
    let (start, mut count) = (now(), 0);
    loop {
        for batch in states.chunks(BATCH * width) {
            expansion.clear();
            source.expand(batch, &mut scratch, &mut expansion);
        }
        count += states.len() / width;
        let time = now() - start;
        if time >= LEAST {
            return time as f64 / count as f64;
        }
    }
}

fn compiled<'m>(interpreted: &'m Interpreted<'m>, stubborn: Option<&Stubborn>) -> Result<Compiled<'m>> {
    Compiled::unless(interpreted, stubborn, &|| false)?.context("nobody stops the compiler")
}

/// A reduced search: the number of its states, and nanoseconds of a choice and of an expansion without one.
type Figures = (f64, f64, f64);

/// Measures a search that is reduced for deadlocks; `None` if the model has a fault.
fn reduced(interpreted: &Interpreted, whole: &Compiled, stubborn: &Stubborn) -> Result<Option<Figures>> {
    let source = compiled(interpreted, Some(stubborn))?;
    let width = interpreted.width();
    let Some(states) = states(&source, interpreted.interpreter.model().initial_state()) else { return Ok(None) };
    let (mut chosen, mut all) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        chosen = chosen.min(time_of(&source, width, &states));
        all = all.min(time_of(whole, width, &states));
    }
    Ok(Some(((states.len() / width) as f64, (chosen - all).max(0.1), all)))
}

fn mean(logarithms: &[f64]) -> f64 {
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

/// Compares ways to choose with the usual one.
fn ways() -> Result<()> {
    let of_nets = ["CANInsertWithFailure-PT-005", "ShieldRVt-PT-004A", "BridgeAndVehicles-PT-V10P10N10"];
    let is_measured = |model: &Model| of_nets.contains(&&*model.name);
    let mut models = beem()?;
    // Models in which nothing can be left out tell nothing.
    models.retain(|model| !["hanoi.1", "msmie.2", "pouring.1"].contains(&&*model.name));
    models.extend(nets()?.into_iter().filter(is_measured));
    let usual = Heuristics::default();
    // The number of actions takes the place of 0: all of them, and "an enabled one counts as all".
    let ways: [(&str, usize, Option<usize>); 7] = [
        ("as it is", usual.most_seeds, Some(usual.cost_of_enabled)),
        ("an enabled action counts as one: fewest new bits", usual.most_seeds, Some(1)),
        ("an enabled action counts as all actions: LTSmin's cost", usual.most_seeds, None),
        ("the first test that fails, without costs", usual.most_seeds, Some(0)),
        ("1 seed", 1, Some(usual.cost_of_enabled)),
        ("2 seeds", 2, Some(usual.cost_of_enabled)),
        ("all seeds", 0, Some(usual.cost_of_enabled)),
    ];
    let mut logarithms = vec![[Vec::new(), Vec::new()]; ways.len()];
    let mut worst = vec![(1.0, String::new()); ways.len()];
    for model in &models {
        let figures = with_model(&model.path, |interpreted| {
            let (of, whole) = (interpreted.interpreter.model(), compiled(interpreted, None)?);
            let mut stubborn = Stubborn::of(of, interpreted.checks, DEADLOCKS)?;
            let actions = stubborn.dependencies.actions.all.len();
            let mut all = Vec::new();
            for (_, most_seeds, cost_of_enabled) in ways {
                let most_seeds = if most_seeds == 0 { actions } else { most_seeds };
                stubborn.heuristics = Heuristics { most_seeds, cost_of_enabled: cost_of_enabled.unwrap_or(actions) };
                let Some(figures) = reduced(interpreted, &whole, &stubborn)? else { return Ok(None) };
                all.push(figures);
            }
            Ok(Some(all))
        })?;
        let shown = figures.iter().map(|(states, time, _)| format!("{states} ({time:.0} ns)"));
        eprintln!("{}, {:.0} ns without a choice: {}", model.name, figures[0].2, shown.collect::<Vec<_>>().join(", "));
        for (way, figures_of) in figures.iter().enumerate() {
            let share = figures_of.0 / figures[0].0;
            logarithms[way][0].push(share.ln());
            logarithms[way][1].push((figures_of.1 / figures[0].1).ln());
            if share > worst[way].0 {
                worst[way] = (share, model.name.clone());
            }
        }
    }
    println!("\n{} models, as shares of the usual way:\n", models.len());
    println!("| | states | time of a choice | worst number of states |\n|---|---|---|---|");
    for (way, (name, ..)) in ways.iter().enumerate() {
        let [states, times] = &logarithms[way];
        println!("| {name} | {:.3} | {:.2} | {:.2} {} |", mean(states), mean(times), worst[way].0, worst[way].1);
    }
    Ok(())
}

/// Compares dependencies with and without knowledge of values.
fn values() -> Result<()> {
    let mut of_nets = nets()?;
    of_nets.retain(|net| (1_000..=1_000_000).contains(&net.states));
    println!("\n| models | number | share of states, with values | without | time of a search without, over that with | worst |");
    println!("|---|---|---|---|---|---|");
    for (name, models) in [("BEEM", beem()?), ("Petri nets", of_nets)] {
        let (mut shares, mut times, mut worst, mut of_analysis) = ([Vec::new(), Vec::new()], Vec::new(), (1.0, ""), [0.0; 2]);
        for model in &models {
            let figures = with_model(&model.path, |interpreted| {
                let (of, mut all) = (interpreted.interpreter.model(), Vec::new());
                for knowledge in [Knowledge::Values, Knowledge::Types] {
                    let start = now();
                    let stubborn = Stubborn::knowing(knowledge, of, interpreted.checks, DEADLOCKS)?;
                    let analysis = (now() - start) as f64;
                    let source = compiled(interpreted, Some(&stubborn))?;
                    let Some(states) = states(&source, of.initial_state()) else { return Ok(None) };
                    let time = (0..ROUNDS).map(|_| time_of(&source, interpreted.width(), &states)).fold(f64::MAX, f64::min);
                    let count = (states.len() / interpreted.width()) as f64;
                    all.push((count, count * time, analysis / 1e9));
                }
                Ok(Some(all))
            });
            let figures = figures.with_context(|| model.name.clone())?;
            eprintln!("{}: of {} {figures:?}", model.name, model.states);
            for (which, (states, _, analysis)) in figures.iter().enumerate() {
                shares[which].push((states / model.states as f64).ln());
                of_analysis[which] += analysis;
            }
            times.push((figures[1].1 / figures[0].1).ln());
            if figures[1].0 / figures[0].0 > worst.0 {
                worst = (figures[1].0 / figures[0].0, &model.name);
            }
        }
        if models.is_empty() {
            continue;
        }
        let [with, without] = shares.map(|shares| 100.0 * mean(&shares));
        let (time, count) = (mean(&times), models.len());
        println!("| {name} | {count} | {with:.1} % | {without:.1} % | {time:.2} | {:.1} ({}) |", worst.0, worst.1);
        eprintln!("seconds of the analyses: {of_analysis:.2?}");
    }
    Ok(())
}

/// The report of a search on one CPU thread, and the seconds of the processor's time that the program took without its compiler.
fn explore(model: &Path, more: &[&str]) -> Result<(Value, f64)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_explore"));
    command.arg(model).args(["--json", "--device", "cpu:1", "--engine", "compiled"]).args(more);
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut text = String::new();
    child.stdout.take().context("a pipe")?.read_to_string(&mut text)?;
    // Until the program is waited for, Linux keeps the times of its threads, without those of its own children.
    let seconds = of_exited(child.id()).unwrap_or_else(|| start.elapsed().as_secs_f64());
    child.wait()?;
    Ok((serde_json::from_str(&text).with_context(|| format!("{}: {text}", model.display()))?, seconds))
}

/// Seconds that a program ran, when it has ended. Linux counts hundredths.
fn of_exited(id: u32) -> Option<f64> {
    loop {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // Behind the name: the state, and the times as the 12th and 13th field.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        if fields[0] == "Z" {
            return Some((fields[11].parse::<f64>().ok()? + fields[12].parse::<f64>().ok()?) / 100.0);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Compares reduced searches by the program with whole ones.
fn searches() -> Result<()> {
    let mut models = beem()?;
    models.extend(nets()?.into_iter().filter(|net| (100_000..=1_000_000).contains(&net.states)));
    println!("\n| model | states, all | and left | seconds, all | with --reduce deadlocks | ratio |\n|---|---|---|---|---|---|");
    for model in &models {
        let (mut times, mut states, mut is_reduced) = ([f64::MAX; 2], [0; 2], false);
        for _ in 0..ROUNDS {
            for (which, more) in [&[][..], &["--reduce", "deadlocks"]].into_iter().enumerate() {
                let (report, seconds) = explore(&model.path, more)?;
                ensure!(report["complete"] == true, "{}: {report}", model.name);
                times[which] = times[which].min(seconds);
                states[which] = report["counts"]["states"].as_u64().unwrap_or(0);
                is_reduced = report["reduction"].is_string();
            }
        }
        ensure!(states[0] == model.states, "{}: {} states, not {}", model.name, states[0], model.states);
        let left = if is_reduced { states[1].to_string() } else { "not reduced".into() };
        let (name, ratio) = (&model.name, times[1] / times[0]);
        println!("| {name} | {} | {left} | {:.2} | {:.2} | {ratio:.2} |", states[0], times[0], times[1]);
    }
    Ok(())
}

fn main() -> Result<()> {
    let asked = std::env::var("WARPSET_BENCH_REDUCTIONS").unwrap_or_default();
    for (name, table) in [("ways", ways as fn() -> Result<()>), ("values", values), ("searches", searches)] {
        if asked.is_empty() || asked == name {
            table()?;
        }
    }
    Ok(())
}
