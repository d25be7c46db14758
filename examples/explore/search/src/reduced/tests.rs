//! Reduced searches of the models of public benchmarks, in every table and by every engine: they find the deadlocks of the whole
//! search, and goals at its depths. Goals are drawn from states that are reached, or put together from several states so that
//! none meets them.

use super::*;
use crate::checks::{Checks, Role};
use crate::codegen::on_cpu::Compiled;
use crate::codegen::tests::{or_skip, read_file};
use crate::engine::HostEngine;
use crate::exploration::{Exploration, Limits};
use crate::interpreter::Interpreter;
use crate::ir::expression::Binary;
use crate::ir::{Expression, Model};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use warpset::{Bucket, CompactTree, Device, Indexed, Storage, Tree, VectorTable};
use warpset_model::reduction::actions::Tests;
use warpset_model::reduction::dependencies::Dependencies;
use warpset_model::reduction::stubborn::Kept;
use warpset_model::terms::Term;
use warpset_random::Random;

/// Most states of a model: 200, or what `WARPSET_REDUCED_STATES` says; the smallest model of a list is taken in any case. If the
/// variable is set, each goal is searched for in each table, and each model is compiled; otherwise one in 32 is.
fn most_states() -> (u64, bool) {
    let most = std::env::var("WARPSET_REDUCED_STATES").ok().map(|most| most.parse().expect("a number of states"));
    (most.unwrap_or(200), most.is_some())
}

/// Goals of a model that are reached, and goals that are not.
const GOALS: usize = 2;

/// The model's states of each level.
fn levels(model: &Model, source: &dyn Successors) -> Option<(Exploration, Vec<Vec<u32>>)> {
    let table = VectorTable::<Indexed>::builder(model.layout.words)
        .capacity((2 * most_states().0).max(1 << 12))
        .build(&Device::cpu_with_threads(1))
        .unwrap();
    let mut references = Vec::new();
    let engine = HostEngine { table: &table, source: &source, limits: Limits::NONE, recorder: None, observer: &|_| true };
    let exploration = engine.run(&model.initial_state(), Some(&mut references)).unwrap();
    let is_whole = exploration.found.as_ref().is_none_or(|found| !found.is_fault());
    is_whole.then(|| (exploration, references.iter().map(|level| table.get_many(level).unwrap()).collect()))
}

/// The conditions that a process is where it is in a state, or that a variable has the value that it has there.
fn parts(model: &Model, state: &[u32]) -> Vec<Expression> {
    let at = |process| Expression::At { process, location: model.location(state, process) };
    let mut parts: Vec<Expression> = (0..model.processes.len()).map(at).collect();
    for (id, variable) in model.variables.iter().enumerate() {
        for element in 0..variable.initial.len() {
            let index = Box::new(Expression::Constant(element as i32));
            let of = match variable.is_array {
                true => Expression::Element { array: id, index, span: Default::default() },
                false => Expression::Variable(id),
            };
            let value = Expression::Constant(model.value(state, id, element));
            parts.push(Expression::binary(Binary::Equal, of, value, Default::default()));
        }
    }
    parts
}

/// A conjunction of up to five conditions that hold in one of the states; of `states`, if there are several.
fn goal(model: &Model, states: &[&[u32]], random: &mut Random) -> Option<Expression> {
    let all: Vec<Vec<Expression>> = states.iter().map(|state| parts(model, state)).collect();
    let count = 1 + random.below(4) + states.len() / 2;
    let chosen = (0..count).filter(|_| !all[0].is_empty()).map(|number| {
        let of = &all[number % all.len()];
        of[random.below(of.len())].clone()
    });
    let chosen: Vec<Expression> = chosen.collect();
    Expression::joined(chosen, Binary::And, Default::default())
}

/// The first level with a state in which the goal holds.
fn depth(model: &Model, goal: &Expression, levels: &[Vec<u32>]) -> Option<u64> {
    let (goal, width) = (Term::of(goal, model), model.layout.words);
    let holds = |state: &[u32]| goal.value(model, state).is_ok_and(|value| value != 0);
    levels.iter().position(|level| level.chunks_exact(width).any(holds)).map(|level| level as u64)
}

fn search<S: Storage>(model: &Model, source: &dyn Successors, threads: usize) -> Exploration {
    let device = Device::cpu_with_threads(threads);
    let table = VectorTable::<S>::builder(model.layout.words).capacity(1 << 10).build(&device).unwrap();
    let limits = Limits { keep_going: false, ..Limits::NONE };
    let engine = HostEngine { table: &table, source: &source, limits, recorder: None, observer: &|_| true };
    engine.run(&model.initial_state(), None).unwrap()
}

/// Searches by all sources in some tables, and compares the level of what is found. Searches that find nothing must have equal
/// counts. Returns the number of states.
fn search_all(model: &Model, sources: &[&dyn Successors], level: Option<u64>, tables: &[usize], name: &str) -> u64 {
    let mut counts = None;
    for (turn, table) in tables.iter().enumerate() {
        for source in sources {
            let threads = 1 + turn % 2;
            let found = match table {
                0 => search::<Bucket>(model, source, threads),
                1 => search::<Tree>(model, source, threads),
                2 => search::<CompactTree>(model, source, threads),
                _ => search::<Indexed>(model, source, threads),
            };
            assert_eq!(found.found.as_ref().map(|found| found.level), level, "{name}, table {table}: {found:?}");
            if level.is_none() {
                assert_eq!(*counts.get_or_insert(found.counts), found.counts, "{name}, table {table}");
            }
        }
    }
    counts.map_or(0, |counts| counts.states)
}

/// Compares the searches of a model. Returns the numbers of goals that are reached and not; `None` if it is not reduced.
fn compare(path: &Path, deadlocks: u64, number: usize) -> Option<[usize; 2]> {
    let (text, is_long) = (read_file(path), most_states().1);
    let (model, name) = (text.model(), path.display().to_string());
    let mut random = Random::new(number as u64);
    let checks = Checks { deadlocks: true, ..Checks::default() };
    let interpreted = Interpreted::new(Interpreter::new(model), &checks);
    if model.property.is_some() {
        return None;
    }
    let (whole, levels) = levels(model, &interpreted)?;
    assert_eq!(whole.counts.deadlocks, deadlocks, "{name}");
    let first_deadlock = whole.found.map(|found| found.level);
    let is_compiled = is_long || number.is_multiple_of(32);
    let tables = |turn: usize| if is_long { vec![0, 1, 2, 3] } else { vec![(number + turn) % 4] };
    let run = |checks: &Checks, kept: Kept, level: Option<u64>, turn: usize, compiles: bool| {
        let stubborn = Stubborn::of(model, checks, kept).ok()?;
        let interpreted = Interpreted::new(Interpreter::new(model), checks);
        let reduced = Reduced { interpreted: &interpreted, stubborn: &stubborn };
        let compiled = if compiles { or_skip(&interpreted, Compiled::reduced(&interpreted, &stubborn)) } else { None };
        let mut sources: Vec<&dyn Successors> = vec![&reduced];
        sources.extend(compiled.as_ref().map(|compiled| compiled as &dyn Successors));
        let what = checks.conditions.iter().map(|condition| &condition.must_hold).collect::<Vec<_>>();
        Some(search_all(model, &sources, level, &tables(turn), &format!("{name}, {kept:?} {what:?}")))
    };
    let keeps_deadlocks = Kept { deadlocks: true, goals: false };
    // All deadlocks, and then only the first one.
    let quiet = Checks::default();
    run(&quiet, keeps_deadlocks, None, 0, is_compiled)?;
    let stubborn = Stubborn::of(model, &quiet, keeps_deadlocks).ok()?;
    let silent = Interpreted::new(Interpreter::new(model), &quiet);
    let counted = search::<Tree>(model, &Reduced { interpreted: &silent, stubborn: &stubborn }, 1).counts;
    assert_eq!(counted.deadlocks, deadlocks, "{name}");
    run(&checks, keeps_deadlocks, first_deadlock, 1, false)?;
    let mut numbers = [0, 0];
    for turn in 0..2 * GOALS {
        let is_reached = turn < GOALS;
        // Parts of several states together often hold in another one: a few are tried.
        let drawn = (0..if is_reached { 1 } else { 8 }).find_map(|_| {
            let mut state = || {
                let level = &levels[random.below(levels.len())];
                let width = model.layout.words;
                &level[random.below(level.len() / width) * width..][..width]
            };
            let states: Vec<&[u32]> = (0..if is_reached { 1 } else { 3 }).map(|_| state()).collect();
            let goal = goal(model, &states, &mut random)?;
            let depth = depth(model, &goal, &levels);
            (depth.is_some() == is_reached).then_some((goal, depth))
        });
        let Some((goal, depth)) = drawn else { continue };
        let mut checks = Checks::default();
        checks.add(Role::Goal, String::new(), goal);
        let kept = Kept { deadlocks: turn % 2 == 1 && first_deadlock.is_none(), goals: true };
        run(&checks, kept, depth, turn, is_compiled && turn % GOALS == 0)?;
        numbers[usize::from(!is_reached)] += 1;
    }
    Some(numbers)
}

/// Compares the models of a list, as far as they are small. `of_model`: file of a model.
fn compare_list(list: &Path, of_model: impl Fn(&str) -> PathBuf + Sync) {
    let text = std::fs::read_to_string(list).unwrap();
    let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let [states, deadlocks] = ["states", "deadlocks"].map(|name| header.iter().position(|column| *column == name).unwrap());
    let row = |(number, row): (usize, &str)| {
        let fields: Vec<&str> = row.split(',').collect();
        let (states, deadlocks) = (fields[states].parse::<u64>().ok()?, fields[deadlocks].parse::<u64>().ok()?);
        Some((states, number, of_model(fields[0]), deadlocks))
    };
    let mut models: Vec<_> = text.lines().skip(1).enumerate().filter_map(row).collect();
    // The smallest one, at least.
    models.sort_by_key(|(states, ..)| *states);
    let small = models.iter().take_while(|(states, ..)| *states <= most_states().0).count();
    models.truncate(small.max(1));
    let numbers = models.par_iter().map(|(_, number, path, deadlocks)| compare(path, *deadlocks, *number));
    let numbers: Vec<Option<[usize; 2]>> = numbers.collect();
    let reduced: Vec<[usize; 2]> = numbers.iter().copied().flatten().collect();
    let sums = [0, 1].map(|at| reduced.iter().map(|numbers| numbers[at]).sum::<usize>());
    println!("{}: {} of {} models, goals reached and not: {sums:?}", list.display(), reduced.len(), models.len());
    assert!(sums[0] > 0 && sums[1] > 0, "{}: {} models, {sums:?} goals", list.display(), reduced.len());
}

/// The folder in this variable of the environment.
fn folder(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: {variable} does not name a folder of models");
    }
    folder
}

#[test]
fn goals_of_beem_models_are_found_at_their_depths() {
    let Some(folder) = folder("WARPSET_BEEM") else { return };
    for (list, sub) in [("open.csv", "open"), ("reduce/reduce.csv", "reduce")] {
        compare_list(&folder.join(list), |name| folder.join(sub).join(format!("{name}.dve")));
    }
}

#[test]
fn goals_of_slco_models_are_found_at_their_depths() {
    let Some(folder) = folder("WARPSET_SLCO") else { return };
    for sub in ["open", "constructs"] {
        compare_list(&folder.join(format!("{sub}.csv")), |name| folder.join(sub).join(format!("{name}.slco")));
    }
}

#[test]
fn goals_of_nets_are_found_at_their_depths() {
    let Some(folder) = folder("WARPSET_NETS") else { return };
    compare_list(&folder.join("open.csv"), |name| folder.join("open").join(name).join("model.pnml"));
}

/// Ways to choose sets: a name, and what differs from the usual way.
type Way = (&'static str, fn(&mut Stubborn, &Model));

const WAYS: [Way; 8] = [
    ("as it is: 8 seeds, weight 16", |_, _| {}),
    ("weight 1: fewest new bits", |stubborn, _| stubborn.heuristics.cost_of_enabled = 1),
    ("weight of all actions: LTSmin's", |stubborn, _| {
        stubborn.heuristics.cost_of_enabled = stubborn.dependencies.actions.all.len().max(2);
    }),
    ("the first test that fails", |stubborn, _| stubborn.heuristics.cost_of_enabled = 0),
    ("1 seed", |stubborn, _| stubborn.heuristics.most_seeds = 1),
    ("2 seeds", |stubborn, _| stubborn.heuristics.most_seeds = 2),
    ("all seeds", |stubborn, _| stubborn.heuristics.most_seeds = stubborn.dependencies.actions.all.len().max(1)),
    ("without intervals", |stubborn, model| {
        stubborn.dependencies = Dependencies::of_cells(model, Tests::default()).expect("as with intervals");
    }),
];

/// Prints the states and the time of each way to choose, as shares of those of the usual way: geometric means over the models of
/// a list. `WARPSET_REDUCED_WAYS` is how many models of each list are compiled and timed, too.
fn compare_ways(list: &Path, states: std::ops::RangeInclusive<u64>, of_model: impl Fn(&str) -> PathBuf + Sync) {
    let timed: usize = std::env::var("WARPSET_REDUCED_WAYS").unwrap().parse().expect("a number of models");
    let text = std::fs::read_to_string(list).unwrap();
    let column = text.lines().next().unwrap().split(',').position(|column| column == "states").unwrap();
    let mut models: Vec<(u64, String)> = Vec::new();
    for row in text.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        models.extend(fields[column].parse().ok().filter(|count| states.contains(count)).map(|count| (count, fields[0].into())));
    }
    // The largest ones are timed.
    models.sort();
    models.reverse();
    let (mut logarithms, mut times, mut count, mut whole) = ([0.0; WAYS.len()], [0.0; WAYS.len()], 0, 0.0);
    let mut timed_models = 0;
    for (number, (all, name)) in models.iter().enumerate() {
        let text = read_file(&of_model(name));
        let (model, checks) = (text.model(), Checks::default());
        let Ok(stubborn) = Stubborn::of(model, &checks, Kept { deadlocks: true, goals: false }) else { continue };
        let interpreted = Interpreted::new(Interpreter::new(model), &checks);
        let ways: Vec<Stubborn> = WAYS
            .iter()
            .map(|(_, change)| {
                let mut way = stubborn.clone();
                change(&mut way, model);
                way
            })
            .collect();
        let counts =
            ways.iter().map(|way| search::<Bucket>(model, &Reduced { interpreted: &interpreted, stubborn: way }, 2).counts);
        let counts: Vec<_> = counts.collect();
        assert!(counts.iter().all(|other| other.deadlocks == counts[0].deadlocks), "{name}: {counts:?}");
        count += 1;
        whole += (counts[0].states as f64 / *all as f64).ln();
        for (sum, counts_of_way) in logarithms.iter_mut().zip(&counts) {
            *sum += (counts_of_way.states as f64 / counts[0].states as f64).ln();
        }
        if number >= timed {
            continue;
        }
        let compile = |way| {
            let compiled = Compiled::unless(&interpreted, Some(way), &|| false);
            or_skip(&interpreted, compiled.map(|compiled| compiled.expect("nobody stops it")))
        };
        let compiled: Vec<_> = ways.iter().filter_map(compile).collect();
        if compiled.len() < WAYS.len() {
            continue;
        }
        let mut best = [f64::MAX; WAYS.len()];
        for _ in 0..5 {
            for (best, source) in best.iter_mut().zip(&compiled) {
                let start = std::time::Instant::now();
                search::<Bucket>(model, source, 1);
                *best = best.min(start.elapsed().as_secs_f64());
            }
        }
        timed_models += 1;
        times.iter_mut().zip(best).for_each(|(sum, seconds)| *sum += (seconds / best[0]).ln());
    }
    println!(
        "{}: {count} models, {:.1} % of their states; {timed_models} timed",
        list.display(),
        100.0 * (whole / f64::from(count)).exp()
    );
    for (at, (name, _)) in WAYS.iter().enumerate() {
        let [states, seconds] = [logarithms[at] / f64::from(count), times[at] / f64::from(timed_models)].map(f64::exp);
        println!("| {name} | {states:.3} | {seconds:.2} |");
    }
}

#[test]
fn ways_to_choose_are_compared() {
    if std::env::var_os("WARPSET_REDUCED_WAYS").is_none() {
        println!("skipped: a measurement for docs/reductions.md, if WARPSET_REDUCED_WAYS says how many models are timed");
        return;
    }
    if let Some(folder) = folder("WARPSET_BEEM") {
        compare_ways(&folder.join("reduce/reduce.csv"), 0..=120_000, |name| folder.join("reduce").join(format!("{name}.dve")));
    }
    if let Some(folder) = folder("WARPSET_NETS") {
        compare_ways(&folder.join("open.csv"), 1_000..=300_000, |name| folder.join("open").join(name).join("model.pnml"));
    }
}
