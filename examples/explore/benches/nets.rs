//! Petri nets: the model checker against a plain search that is compiled for the net.
//!
//! The plain search is what one writes in an hour: a byte for each place, an `if` for each transition, a `std::unordered_set` of
//! markings, and a queue. It stops with an error if a place gets more than 255 tokens. Both must count the same markings and
//! firings. Times are of the searches, without compilation.
//!
//! `cargo bench -p warpset-explore --bench nets` prints a Markdown table of a generated net. If `WARPSET_NETS` names a folder of
//! nets (`open.csv` and `open/NET/model.pnml`), those with 1,000,000 to 10,000,000 markings are measured as well. Needs a C++
//! compiler.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use warpset_model::ir::Source;
use warpset_model::net::Nets;
use warpset_model::net::encoding::Encoding;

/// The plain search, but for the net: `places`, `initial` and `each_firing`.
const SEARCH: &str = r#"
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string_view>
#include <unordered_set>
#include "net.h"
struct Hash {
    size_t operator()(const Marking& marking) const
    {
        return std::hash<std::string_view>()({reinterpret_cast<const char*>(marking.data()), marking.size()});
    }
};
int main()
{
    const auto start = std::chrono::steady_clock::now();
    std::unordered_set<Marking, Hash> seen{initial};
    std::deque<const Marking*> waiting{&*seen.begin()};
    unsigned long long firings = 0;
    while (!waiting.empty()) {
        const Marking& from = *waiting.front();
        waiting.pop_front();
        each_firing(from, [&](const Marking& to) {
            ++firings;
            const auto [at, is_new] = seen.insert(to);
            if (is_new) waiting.push_back(&*at);
        });
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    std::printf("%zu %llu %f\n", seen.size(), firings, time.count());
    std::fflush(stdout);
    std::_Exit(0);    // without the time to free millions of markings
}
"#;

/// Markings, firings, and seconds of a search.
type Figures = (u64, u64, f64);

/// A ring of `count` cells. Every second one has a token at first. A token moves on if the next cell is empty.
fn ring(count: usize) -> String {
    let (mut text, mut arcs) = (String::new(), String::new());
    for at in 0..count {
        let next = (at + 1) % count;
        for (kind, tokens) in [("free", at % 2), ("full", 1 - at % 2)] {
            let marking = format!("<initialMarking><text>{tokens}</text></initialMarking>");
            writeln!(text, "<place id=\"{kind}{at}\">{marking}</place>").expect("a string");
        }
        writeln!(text, "<transition id=\"move{at}\"/>").expect("a string");
        let ends = [format!("full{at}"), format!("free{next}"), format!("free{at}"), format!("full{next}")];
        for (number, place) in ends.iter().enumerate() {
            let (from, to) = if number < 2 { (place.clone(), format!("move{at}")) } else { (format!("move{at}"), place.clone()) };
            writeln!(arcs, "<arc id=\"arc{at}_{number}\" source=\"{from}\" target=\"{to}\"/>").expect("a string");
        }
    }
    let kind = "http://www.pnml.org/version-2009/grammar/ptnet";
    format!(
        "<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\"><net id=\"ring\" type=\"{kind}\"><page id=\"page\">\n\
         {text}{arcs}</page></net></pnml>\n"
    )
}

/// The text of `net.h`.
fn header(nets: &Nets) -> String {
    let places = &nets.pnml.places;
    let initial: Vec<String> = places.iter().map(|place| place.initial.to_string()).collect();
    let mut text = format!("using Marking = std::array<uint8_t, {}>;\n", places.len());
    writeln!(text, "const Marking initial{{{}}};", initial.join(", ")).expect("a string");
    text += "inline void put(uint8_t& place, unsigned tokens)\n{\n    if (place + tokens > 255) std::abort();\n    place += tokens;\n}\n";
    text += "template <class Give>\nvoid each_firing(const Marking& from, Give give)\n{\n";
    for transition in &nets.pnml.transitions {
        let tests = transition.takes.iter().map(|(place, tokens)| format!("from[{place}] >= {tokens}"));
        let tests: Vec<String> = std::iter::once("true".to_string()).chain(tests).collect();
        writeln!(text, "    if ({}) {{\n        Marking to = from;", tests.join(" && ")).expect("a string");
        transition.takes.iter().for_each(|(place, tokens)| writeln!(text, "        to[{place}] -= {tokens};").expect("a string"));
        transition
            .puts
            .iter()
            .for_each(|(place, tokens)| writeln!(text, "        put(to[{place}], {tokens});").expect("a string"));
        text += "        give(to);\n    }\n";
    }
    text + "}\n"
}

fn plain(net: &Path) -> Result<Figures> {
    let text = std::fs::read_to_string(net)?;
    let source = Source { name: net.display().to_string(), text };
    let nets = Nets::read(source, Encoding::FIRST).map_err(|error| anyhow::anyhow!("{error}"))?;
    let folder = TempDir::new()?;
    std::fs::write(folder.path().join("net.h"), header(&nets))?;
    std::fs::write(folder.path().join("search.cpp"), SEARCH)?;
    let compiler = std::env::var("CXX").unwrap_or("c++".into());
    let mut compile = Command::new(compiler);
    let compiled = compile.args(["-std=c++17", "-O2", "-o", "search", "search.cpp"]).current_dir(&folder).status();
    ensure!(compiled.context("a C++ compiler is needed")?.success(), "the plain search does not compile");
    let output = Command::new(folder.path().join("search")).output()?;
    ensure!(output.status.success(), "the plain search of {} has failed: a place has more than 255 tokens", net.display());
    let text = String::from_utf8(output.stdout)?;
    let [states, firings, seconds] = text.split_whitespace().collect::<Vec<_>>()[..] else {
        anyhow::bail!("three numbers: {text}")
    };
    Ok((states.parse()?, firings.parse()?, seconds.parse()?))
}

fn explore(net: &Path, threads: usize) -> Result<Figures> {
    let device = format!("cpu:{threads}");
    let arguments = ["--json", "--engine", "compiled", "--device", &device];
    let output = Command::new(env!("CARGO_BIN_EXE_explore")).arg(net).args(arguments).output()?;
    let report: Value = serde_json::from_slice(&output.stdout).context("the report of explore")?;
    ensure!(report["complete"] == true, "explore has not explored all: {report}");
    let number = |name: &str| report["counts"][name].as_u64().with_context(|| format!("no {name} in the report"));
    Ok((number("states")?, number("transitions")?, report["time"]["explore"].as_f64().context("no time in the report")?))
}

/// The nets to measure, with their names.
fn nets(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let generated = folder.join("ring.pnml");
    std::fs::write(&generated, ring(22))?;
    let mut all = vec![("ring of 22".to_string(), generated)];
    if let Some(given) = std::env::var_os("WARPSET_NETS").map(PathBuf::from) {
        let rows = std::fs::read_to_string(given.join("open.csv"))?;
        for row in rows.lines().skip(1) {
            let mut columns = row.split(',');
            let (net, states) =
                (columns.next().unwrap_or_default(), columns.nth(1).and_then(|states| states.parse::<u64>().ok()));
            if states.is_some_and(|states| (1_000_000..=10_000_000).contains(&states)) {
                all.push((net.into(), given.join("open").join(net).join("model.pnml")));
            }
        }
    }
    Ok(all)
}

fn main() -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cores} cores; seconds of the search\n");
    println!("| net | markings | firings | plain | explore, 1 thread | plain / explore | {cores} threads | plain / explore |");
    println!("|---|---|---|---|---|---|---|---|");
    let folder = TempDir::new()?;
    let mut logarithms = [Vec::new(), Vec::new()];
    for (name, net) in nets(folder.path())? {
        let (states, firings, seconds) = match plain(&net) {
            Ok(figures) => figures,
            Err(error) => {
                println!("| {name} | {error:#} | | | | | | |");
                continue;
            }
        };
        let mut row = format!("| {name} | {states} | {firings} | {seconds:.2} |");
        for (threads, logarithms) in [1, cores].into_iter().zip(&mut logarithms) {
            let (of_explore, firings_of_explore, time) = explore(&net, threads)?;
            let agrees = (of_explore, firings_of_explore) == (states, firings);
            ensure!(
                agrees,
                "{name}: {states} markings and {firings} firings, and {of_explore} and {firings_of_explore} by explore"
            );
            write!(row, " {time:.2} | {:.1} |", seconds / time)?;
            logarithms.push((seconds / time).ln());
        }
        println!("{row}");
    }
    let [one, all] = logarithms.map(|all| (all.iter().sum::<f64>() / all.len().max(1) as f64).exp());
    println!("\nGeometric means of plain / explore: {one:.1} on one thread, {all:.1} on {cores}.");
    Ok(())
}
