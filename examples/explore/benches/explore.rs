//! The model checker on generated models, with SPIN beside it if `spin` and a C compiler are installed.
//!
//! Each model is a list of processes with guarded commands, which is printed in DVE for `explore` and in Promela for SPIN. Both
//! have the same states, so their counts must agree. `cargo bench -p warpset-explore --bench explore` prints a Markdown table of
//! states a second (of SPIN without its reduction) and of bytes a state. `WARPSET_BENCH_EXPLORE=2` makes the models larger.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Guard and assignments of a command. The text is the same in DVE and in Promela.
type Guarded = (String, Vec<String>);

struct Model {
    name: String,
    declarations: String,
    processes: Vec<Vec<Guarded>>,
}

impl Model {
    fn dve(&self) -> String {
        let mut text = self.declarations.clone();
        for (number, commands) in self.processes.iter().enumerate() {
            let commands =
                commands.iter().map(|(guard, effects)| format!("s -> s {{ guard {guard}; effect {}; }}", effects.join(", ")));
            let commands = commands.collect::<Vec<_>>().join(",\n");
            writeln!(text, "process P{number} {{ state s; init s; trans\n{commands};\n}}").expect("a string can be written to");
        }
        text + "system async;\n"
    }

    fn promela(&self) -> String {
        let mut text = self.declarations.clone();
        for (number, commands) in self.processes.iter().enumerate() {
            let commands = commands.iter().map(|(guard, effects)| format!(":: d_step {{ ({guard}) -> {} }}", effects.join("; ")));
            let commands = commands.collect::<Vec<_>>().join("\n");
            writeln!(text, "active proctype P{number}() {{\ndo\n{commands}\nod\n}}").expect("a string can be written to");
        }
        text
    }
}

/// Philosophers who take one fork after the other, and return them.
fn philosophers(count: usize) -> Model {
    let of = |number: usize| {
        let other = (number + 1) % count;
        let step = |at: usize, needs: Option<usize>, fork: String, next: usize| {
            let guard = needs.map_or_else(String::new, |fork| format!(" && fork[{fork}] == 0"));
            (format!("at[{number}] == {at}{guard}"), vec![fork, format!("at[{number}] = {next}")])
        };
        vec![
            step(0, Some(number), format!("fork[{number}] = 1"), 1),
            step(1, Some(other), format!("fork[{other}] = 1"), 2),
            step(2, None, format!("fork[{number}] = 0"), 3),
            step(3, None, format!("fork[{other}] = 0"), 0),
        ]
    };
    Model {
        name: format!("philosophers {count}"),
        declarations: format!("byte at[{count}];\nbyte fork[{count}];\n"),
        processes: (0..count).map(of).collect(),
    }
}

/// Towers of Hanoi: 3^disks states.
fn hanoi(disks: usize) -> Model {
    let to = |peg: usize| {
        let moves = (0..disks).map(|disk| {
            let smaller = (0..disk).map(|other| format!(" && on[{other}] != on[{disk}] && on[{other}] != {peg}"));
            (format!("on[{disk}] != {peg}{}", smaller.collect::<String>()), vec![format!("on[{disk}] = {peg}")])
        });
        moves.collect()
    };
    Model { name: format!("hanoi {disks}"), declarations: format!("byte on[{disks}];\n"), processes: (0..3).map(to).collect() }
}

/// Peterson's mutual exclusion for several processes, which climb levels.
fn filter(count: usize) -> Model {
    let of = |own: usize| {
        let mut commands = vec![(format!("at[{own}] == 0"), vec![format!("level[{own}] = 1"), format!("at[{own}] = 1")])];
        for level in 1..count {
            commands.push((
                format!("at[{own}] == 1 && level[{own}] == {level}"),
                vec![format!("last[{level}] = {own}"), format!("at[{own}] = 2")],
            ));
            let below = (0..count).filter(|other| *other != own).map(|other| format!("level[{other}] < {level}"));
            let below = below.collect::<Vec<_>>().join(" && ");
            let next = match level + 1 < count {
                true => vec![format!("level[{own}] = {}", level + 1), format!("at[{own}] = 1")],
                false => vec![format!("at[{own}] = 3")],
            };
            commands.push((format!("at[{own}] == 2 && level[{own}] == {level} && (last[{level}] != {own} || ({below}))"), next));
        }
        commands.push((format!("at[{own}] == 3"), vec![format!("level[{own}] = 0"), format!("at[{own}] = 0")]));
        commands
    };
    Model {
        name: format!("filter {count}"),
        declarations: format!("byte at[{count}];\nbyte level[{count}];\nbyte last[{count}];\n"),
        processes: (0..count).map(of).collect(),
    }
}

/// States, seconds of the search, and bytes a state.
type Figures = (u64, f64, f64);

fn explore(file: &Path, threads: usize) -> Result<Figures> {
    let device = format!("cpu:{threads}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_explore"));
    // A first search: its compiler takes part of the processor.
    let output = command.arg(file).args(["--json", "--device", &device]).env("WARPSET_CACHE", "off").output()?;
    let report: Value = serde_json::from_slice(&output.stdout).context("the report of explore")?;
    ensure!(report["complete"] == true, "explore has not explored all: {report}");
    let number = |part: &str, name: &str| report[part][name].as_f64().with_context(|| format!("no {part}.{name} in the report"));
    Ok((number("counts", "states")? as u64, number("time", "explore")?, number("table", "bytes_per_state")?))
}

/// Runs a program in a folder. Returns what it prints, or `None` if it is not installed.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> Result<Option<String>> {
    match Command::new(program).args(arguments).current_dir(folder).stderr(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned())),
        Ok(output) => bail!("{program} {arguments:?} has failed: {}", String::from_utf8_lossy(&output.stdout)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// SPIN's figures without its reduction; `None` if it is not installed.
fn spin(folder: &Path) -> Result<Option<Figures>> {
    if run(folder, "spin", &["-a", "model.pml"])?.is_none() {
        return Ok(None);
    }
    let flags = ["-O2", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=8192", "-o", "pan", "pan.c"];
    run(folder, "cc", &flags)?.context("spin needs a C compiler, cc")?;
    let pan = folder.join("pan");
    let text = run(folder, pan.to_str().context("the folder's name")?, &["-m10000000", "-w24", "-E"])?.context("pan")?;
    let before = |words: &str| {
        let (before, _) = text.split_once(words)?;
        before.split_whitespace().next_back()?.parse::<f64>().ok()
    };
    let states = before("states, stored").context("pan prints no states")?;
    let seconds = text.split_once("elapsed time").and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<f64>().ok());
    let bytes = before("equivalent memory usage").map_or(f64::NAN, |mebibytes| mebibytes * 1048576.0 / states);
    Ok(Some((states as u64, seconds.unwrap_or(f64::NAN), bytes)))
}

fn main() -> Result<()> {
    let larger = usize::from(std::env::var("WARPSET_BENCH_EXPLORE").is_ok_and(|size| size == "2"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut threads = vec![1, cores];
    threads.dedup();
    println!("{cores} cores; 10^6 states a second\n");
    let columns: Vec<String> = threads.iter().map(|threads| format!(" explore, {threads} threads |")).collect();
    println!("| model | states |{} bytes a state | SPIN | bytes a state |", columns.concat());
    println!("|---|---|{}---|---|---|", "---|".repeat(threads.len()));
    for model in [philosophers(12 + larger), hanoi(12 + larger), filter(5 + larger)] {
        let folder = TempDir::new()?;
        let dve = folder.path().join("model.dve");
        std::fs::write(&dve, model.dve())?;
        std::fs::write(folder.path().join("model.pml"), model.promela())?;
        let mut row = String::new();
        let (mut states, mut bytes) = (0, 0.0);
        for &threads in &threads {
            let figures = explore(&dve, threads)?;
            (states, bytes) = (figures.0, figures.2);
            write!(row, " {:.2} |", figures.0 as f64 / figures.1 / 1e6)?;
        }
        let of_spin = match spin(folder.path())? {
            Some((of_spin, seconds, bytes)) => {
                ensure!(of_spin == states, "{}: explore counts {states} states, and SPIN {of_spin}", model.name);
                format!("{:.2} | {bytes:.1}", of_spin as f64 / seconds / 1e6)
            }
            None => "not installed | -".into(),
        };
        println!("| {} | {states} |{row} {bytes:.1} | {of_spin} |", model.name);
    }
    Ok(())
}
