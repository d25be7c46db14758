//! Goals that are drawn from the states of models of every language, in reduced searches: each engine finds them at their depths
//! in each table, and does not find what is in no state.
//!
//! Keeps this promise of `examples/explore/docs/reductions.md`:
//!
//! - Reduced searches find goals that are drawn from states at their depths, and no impossible ones: every language, engine and
//!   kind of table.

use crate::{TABLES, TableOnDevice, file, json_on};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use warpset_model::checks::Checks;
use warpset_model::input;
use warpset_model::interpreter::{Interpreter, Scratch};
use warpset_model::ir::{Expression, Model, Source};
use warpset_model::language::{Format, Text};
use warpset_model::network::Reading;
use warpset_model::terms::Term;
use warpset_testing::sizes::{full, sized};

/// Models with more states, or fewer, are left out.
const STATES: std::ops::RangeInclusive<usize> = 12..=1500;

const LANGUAGES: [fn(&Path, u64) -> PathBuf; 4] = [dve, slco, network, net];

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The number of random models of each language: one, or a hundredth of `WARPSET_REDUCED_MODELS`.
fn models() -> u64 {
    setting("WARPSET_REDUCED_MODELS").map_or(1, |count| (count / 100).max(1))
}

/// The numbers by which random models are made, without end.
fn numbers() -> impl Iterator<Item = u64> {
    let seed = setting("WARPSET_REDUCED_SEED").unwrap_or(0);
    (0..).map(move |number| seed << 32 | number)
}

fn value<S: Strategy>(strategy: &S, number: u64) -> S::Value {
    let seed: [u8; 32] = std::array::from_fn(|at| (number >> (8 * (at % 8))) as u8);
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    strategy.new_tree(&mut TestRunner::new_with_rng(Config::default(), random)).expect("a value").current()
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn dve(folder: &Path, number: u64) -> PathBuf {
    written(folder, "model.dve", &value(&warpset_random_models::model(), number))
}

fn slco(folder: &Path, number: u64) -> PathBuf {
    written(folder, "model.slco", &value(&warpset_random_models::slco::model(), number))
}

/// A network of three or four components with four states each, which meet on some of three labels.
fn network(folder: &Path, number: u64) -> PathBuf {
    let mut random = StdRng::seed_from_u64(number);
    let mut joined = String::new();
    for component in 0..random.random_range(3..5) {
        let mut lines = String::new();
        let count = random.random_range(4..10);
        for _ in 0..count {
            let (from, to) = (random.random_range(0..4), random.random_range(0..4));
            let own = format!("\"D !{component}\"");
            let label = ["A", "B", "C", &own][random.random_range(0..4)];
            writeln!(lines, "({from}, {label}, {to})").unwrap();
        }
        written(folder, &format!("c{component}.aut"), &format!("des (0, {count}, 4)\n{lines}"));
        let gates = ["A in", "A, B in", "A, B, C in", "C in", ""][random.random_range(0..5)];
        joined = match component {
            0 => "c0".into(),
            _ => format!("(par {gates} {joined} || c{component} end par)"),
        };
    }
    written(folder, "main.exp", &joined)
}

/// A net of up to six places and nine transitions, with weights up to 2.
fn net(folder: &Path, number: u64) -> PathBuf {
    let mut random = StdRng::seed_from_u64(number);
    let places: Vec<(String, u32)> =
        (0..random.random_range(4..7)).map(|at| (format!("p{at}"), random.random_range(0..4))).collect();
    let transitions: Vec<String> = (0..random.random_range(4..10)).map(|at| format!("t{at}")).collect();
    let mut arcs = Vec::new();
    for transition in &transitions {
        for takes in [true, false] {
            let ends: BTreeSet<&str> = (0..random.random_range(1..3)).map(|_| &*places.choose(&mut random).unwrap().0).collect();
            arcs.extend(ends.into_iter().map(|place| match takes {
                true => (place, &**transition, random.random_range(1..3)),
                false => (&**transition, place, 1),
            }));
        }
    }
    let places: Vec<(&str, u32)> = places.iter().map(|(id, tokens)| (&**id, *tokens)).collect();
    let transitions: Vec<&str> = transitions.iter().map(|id| &**id).collect();
    written(folder, "net.pnml", &crate::nets::net(&places, &transitions, &arcs))
}

/// A goal, and the depth of the first state that meets it.
#[derive(Debug)]
struct Drawn {
    goal: String,
    depth: Option<u64>,
}

/// Conditions that hold in a state: the location of each process, each value, the tokens of each place. Some of their names
/// cannot be written in conditions.
fn facts(model: &Model, state: &[u32], equal: &str) -> Vec<String> {
    let processes = model.processes.iter().enumerate().filter(|(_, process)| process.locations.len() > 1);
    let at =
        processes.map(|(number, process)| format!("{}.{}", process.name, process.locations[model.location(state, number)].name));
    if let Some(net) = &model.net {
        let tokens = |place: usize| format!("tokens({}) == {}", net.places[place].name, net.tokens(&model.layout, state, place));
        return (0..net.places.len()).map(tokens).collect();
    }
    let values = model.variables.iter().enumerate().filter(|(_, variable)| variable.is_written).flat_map(|(number, variable)| {
        let name = model.full_name(number);
        (0..variable.initial.len()).map(move |element| {
            let index = if variable.is_array { format!("[{element}]") } else { String::new() };
            format!("{name}{index} {equal} {}", model.value(state, number, element))
        })
    });
    at.chain(values).collect()
}

/// A model and its states with their depths, in the order of a search.
struct Searched {
    text: Text,
    states: Vec<(u64, Vec<u32>)>,
}

/// Searches a model; `None` if it has a fault, assertions, or another number of states than are wanted.
fn searched(path: &Path) -> Option<Searched> {
    let text = Text::read(Format::of(path).ok()?, input::open(path).ok()?, &Reading::default()).ok()?;
    let (model, mut scratch) = (text.model(), Scratch::default());
    if model.property.is_some() || !Checks::of_model(model).conditions.is_empty() {
        return None;
    }
    let (interpreter, initial) = (Interpreter::new(model), model.initial_state());
    let (mut known, mut states, mut next) = (HashSet::from([initial.clone()]), vec![(0, initial)], 0);
    while let Some((depth, state)) = states.get(next).cloned() {
        next += 1;
        let visit = |_, successor: &[u32]| {
            if known.insert(successor.to_vec()) {
                states.push((depth + 1, successor.to_vec()));
            }
        };
        interpreter.steps(&state, &mut scratch, visit).ok()?;
        if states.len() > *STATES.end() {
            return None;
        }
    }
    STATES.contains(&states.len()).then_some(Searched { text, states })
}

impl Searched {
    fn facts(&self, state: usize, equal: &str) -> Vec<String> {
        let mut facts = facts(self.text.model(), &self.states[state].1, equal);
        facts.retain(|fact| self.condition(fact).is_some());
        facts
    }

    fn condition(&self, goal: &str) -> Option<Expression> {
        let source = Source { name: "goal".into(), text: goal.into() };
        self.text.condition(&source).ok().map(|(condition, _)| condition)
    }

    fn drawn(&self, goal: String) -> Drawn {
        let model = self.text.model();
        let condition = Term::of(&self.condition(&goal).expect("facts that are joined"), model);
        let is_met = |state: &[u32]| condition.value(model, state).expect("no fault") != 0;
        let depth = self.states.iter().find(|(_, state)| is_met(state)).map(|(depth, _)| *depth);
        Drawn { goal, depth }
    }
}

/// Draws goals: a state in the middle; up to three facts of a late state; facts that no state has together; and these or those.
fn drawn(path: &Path, random: &mut StdRng) -> Option<[Drawn; 4]> {
    let equal = if path.extension().is_some_and(|of| of == "slco") { "=" } else { "==" };
    let all = searched(path)?;
    let count = all.states.len();
    let whole = all.drawn(all.facts(count / 2, equal).join(" and "));
    let last = all.facts(count - 1 - random.random_range(0..count / 4), equal);
    let late: Vec<&str> = (0..3).map(|_| last.choose(random).expect("a fact").as_str()).collect();
    let late = all.drawn(late.join(" and "));
    let impossible = (0..200).find_map(|_| {
        let mut some = || all.facts(random.random_range(0..count), equal).choose(random).cloned();
        let goal = all.drawn([some()?, some()?, some()?].join(" and "));
        goal.depth.is_none().then_some(goal)
    })?;
    let either = all.drawn(format!("({}) or {}", impossible.goal, late.goal));
    Some([whole, late, impossible, either])
}

/// Searches for a goal, and compares what is found. Returns whether the search was reduced.
fn search(path: &Path, drawn: &Drawn, device: &str, more: &[&str]) -> bool {
    let (code, report) = json_on(device, path, &[&["--goal", &drawn.goal], more].concat());
    let depth = report["path"]["length"].as_u64();
    let expected = (Some(i32::from(drawn.depth.is_some())), drawn.depth);
    assert_eq!((code, depth), expected, "{} {:?} {device} {more:?}: {report}", path.display(), drawn.goal);
    report["reduction"] == "goal"
}

/// Searches by threads.
struct Threads {
    random: StdRng,
    /// Number of searches by the interpreter so far. A compiler takes most of the time, so compiled code repeats each of them
    /// only if `compiles_all` is set, else one in 17, or in 9 of a plain run: another goal and table with each model.
    interpreted: u32,
    compiles_all: bool,
    /// Number of models so far.
    models: usize,
}

/// Compares the depths of a model's goals in each kind of table; in a plain run each goal in one, another one with each goal and
/// model. Returns the number of reduced searches; `None` if the model has no such goals.
fn by_threads(path: &Path, threads: &mut Threads) -> Option<u32> {
    let (mut reduced, reduces) = (0, ["--reduce", "goal"]);
    threads.models += 1;
    for (number, goal) in drawn(path, &mut threads.random)?.iter().enumerate() {
        assert!(!search(path, goal, "cpu:1", &["--engine", "interpreted"]), "nothing was to be left out");
        let is_searched = |at: usize| full() || threads.compiles_all || at == (threads.models + number) % TABLES.len();
        for (at, table) in TABLES.into_iter().enumerate().filter(|(at, _)| is_searched(*at)) {
            let device = ["cpu:1", "cpu:2"][(at + number) % 2];
            let mut by = |engine: &str| {
                reduced +=
                    u32::from(search(path, goal, device, &[&reduces[..], &["--engine", engine, "--table", table]].concat()));
            };
            by("interpreted");
            if threads.compiles_all || threads.interpreted.is_multiple_of(sized(17, 9, 9)) {
                by("compiled");
            }
            threads.interpreted += 1;
        }
    }
    Some(reduced)
}

pub fn drawn_goals_are_found_at_their_depths() {
    let random = StdRng::seed_from_u64(setting("WARPSET_REDUCED_SEED").unwrap_or(0));
    let mut threads = Threads { random, interpreted: 0, compiles_all: models() > 1, models: 0 };
    let mut reduced = 0;
    for name in ["mailbox.dve", "peterson.dve", "philosophers.dve", "vending.slco", "crossing.exp"] {
        reduced += by_threads(&file(name), &mut threads).unwrap_or(0);
    }
    println!("{reduced} reduced searches of own models");
    assert!(reduced > 0, "own models are reduced");
    for (language, model) in LANGUAGES.iter().enumerate() {
        let (mut left, mut reduced) = (models(), 0);
        for number in numbers() {
            let folder = TempDir::new().unwrap();
            let found = by_threads(&model(folder.path(), number), &mut threads);
            reduced += found.unwrap_or(0);
            left -= u64::from(found.is_some_and(|reduced| reduced > 0));
            if left == 0 {
                break;
            }
        }
        println!("{reduced} reduced searches of language {language}");
    }
}

/// Searches on a GPU, with a model of one language for each table, or with models of all languages.
pub fn found_goals_of_reduced_searches_are_those_of_whole_ones(place: TableOnDevice) {
    let mut random = StdRng::seed_from_u64(setting("WARPSET_REDUCED_SEED").unwrap_or(0));
    let own = TABLES.iter().position(|table| *table == place.table).expect("a kind of table");
    for (_, model) in LANGUAGES.iter().enumerate().filter(|(at, _)| *at == own || models() > 1) {
        let mut left = models();
        for number in numbers() {
            let folder = TempDir::new().unwrap();
            let path = model(folder.path(), number);
            let Some([_, late, impossible, either]) = drawn(&path, &mut random) else { continue };
            let is_reduced = |goal: &Drawn| {
                let arguments = ["--goal", &goal.goal, "--reduce", "goal", "--engine", "interpreted"];
                json_on("cpu:1", &path, &arguments).1["reduction"] == "goal"
            };
            // Kernels take most of the time.
            let mut goals = if models() > 1 { vec![late, impossible, either] } else { vec![either, impossible] };
            goals.retain(is_reduced);
            if goals.len() < 2 {
                continue;
            }
            for goal in goals {
                let (code, report) = place.json(&path, &["--goal", &goal.goal, "--reduce", "goal"]);
                let depth = report["path"]["length"].as_u64();
                let expected = (Some(i32::from(goal.depth.is_some())), goal.depth);
                assert_eq!((code, depth), expected, "{} {:?}: {report}", path.display(), goal.goal);
                assert_eq!((&report["reduction"], report["engine"].as_str()), (&"goal".into(), Some("compiled for the GPU")));
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
}
