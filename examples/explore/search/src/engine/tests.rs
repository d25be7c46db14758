//! The engine of threads, with every table, compared with a reference search; and models for the tests of other engines.
//!
//! Keeps these promises of `examples/explore/docs/searching.md`:
//!
//! - If only nodes are full, only nodes grow.
//! - Neither threads nor tables decide which state is reported, and on which path (also `ranks/tests.rs`, and for engines and
//!   GPUs `tests/explore/findings.rs`).
//! - A search whose lists do not fit the memory marks its waiting states, finds the same states, and can be saved (also
//!   `waiting.rs`).

use super::*;
use crate::exploration::{End, Explorer, Found};
use crate::successors::{Expansion, Interpreted, Successors};
use crate::threads::Threads;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::HashSet;
use warpset::{Bucket, CompactTree, Device, Indexed, MemoryLimit, Root, TableBuilder, Tree, Words};
use warpset_model::checks::{Checks, Role, Violation};
use warpset_model::dve::Dve;
use warpset_model::interpreter::{Interpreter, Scratch};
use warpset_model::ir::{Layout, Range, Source};
use warpset_random_models as random;
use warpset_support::stopping::Stop;
use warpset_testing::sizes::sized;

pub const NO_LIMITS: Limits = Limits::NONE;

fn explore<S: Storage>(dve: &Dve, checks: &Checks, limits: Limits, slots: u64) -> Exploration {
    let table = VectorTable::<S>::builder(dve.model.layout.words).capacity(slots).build(&Device::cpu_with_threads(2)).unwrap();
    let source = Interpreted::new(Interpreter::new(&dve.model), checks);
    let engine = HostEngine { table: &table, source: &source, limits, recorder: None, observer: &|_| true };
    engine.run(&dve.model.initial_state(), None).unwrap()
}

/// Reference breadth-first search. `None` at a fault or above `most` states.
fn reference(dve: &Dve, most: usize) -> Option<Counts> {
    let interpreter = Interpreter::new(&dve.model);
    let mut level = vec![dve.model.initial_state()];
    let mut seen: HashSet<Vec<u32>> = level.iter().cloned().collect();
    let mut counts = Counts::default();
    while !level.is_empty() {
        counts.levels += 1;
        counts.widest_level = counts.widest_level.max(level.len() as u64);
        let mut next = Vec::new();
        for state in &level {
            let mut successors = 0;
            let visit = |_, successor: &[u32]| {
                successors += 1;
                assert!(is_canonical(dve, successor), "{successor:?}");
                if seen.insert(successor.to_vec()) {
                    next.push(successor.to_vec());
                }
            };
            counts.overflows += interpreter.steps(state, &mut Scratch::default(), visit).ok()?;
            counts.transitions += successors;
            counts.deadlocks += u64::from(successors == 0);
        }
        if seen.len() > most {
            return None;
        }
        level = next;
    }
    Some(Counts { states: seen.len() as u64, ..counts })
}

/// The first violation and its path by their definition, without an engine: the least state of the lowest level with a fault or,
/// if no search comes to a fault, with any violation; and from there back the least predecessor in each level. `None` if there
/// is no violation, or above `most` states.
pub fn least_path(source: &Interpreted, keep_going: bool, most: usize) -> Option<(Found, Vec<Vec<u32>>)> {
    let (width, initial) = (source.width(), source.interpreter.model().initial_state());
    let look_at = |state: &[u32]| {
        let mut expansion = Expansion::default();
        source.expand(state, &mut Default::default(), &mut expansion);
        let successors: Vec<Vec<u32>> = expansion.successors.chunks_exact(width).map(<[u32]>::to_vec).collect();
        (expansion.violation.map(|(_, violation)| violation), successors)
    };
    let (mut seen, mut levels) = (HashSet::from([initial.clone()]), vec![vec![initial]]);
    let mut first: Option<Found> = None;
    loop {
        let (level, number) = (levels.last()?, levels.len() as u64 - 1);
        let mut next = Vec::new();
        let (mut faults, mut others) = (Vec::new(), Vec::new());
        for state in level {
            let (violation, successors) = look_at(state);
            match violation {
                Some(fault @ Violation::Fault(_)) => faults.push((state, fault)),
                Some(other) => others.push((state, other)),
                None => {}
            }
            next.extend(successors.into_iter().filter(|state| seen.insert(state.clone())));
        }
        let least = |found: Vec<(&Vec<u32>, Violation)>| {
            let least = found.into_iter().min_by_key(|(state, _)| *state);
            least.map(|(state, violation)| Found { violation, state: state.clone(), level: number })
        };
        let fault = least(faults);
        first = first.or_else(|| least(others));
        let is_over = fault.is_some() || next.is_empty() || (first.is_some() && !keep_going);
        first = fault.or(first);
        if seen.len() > most {
            return None;
        }
        if is_over {
            break;
        }
        levels.push(next);
    }
    let found = first?;
    let mut path = vec![found.state.clone()];
    for level in levels[..found.level as usize].iter().rev() {
        let leads = |state: &&Vec<u32>| look_at(state).1.contains(path.last().unwrap());
        path.push(level.iter().filter(leads).min().expect("it was found from one").clone());
    }
    path.reverse();
    Some((found, path))
}

/// The model with fields that hold all values of the variables' types.
fn widened(dve: &Dve) -> Dve {
    let mut wide = dve.clone();
    wide.model.variables.iter_mut().for_each(|variable| variable.values = Range::of_type(variable.ty));
    wide.model.layout = Layout::new(&wide.model.processes, &wide.model.variables);
    wide
}

/// Whether a state has only legal values, and zeros in unused bits.
fn is_canonical(dve: &Dve, state: &[u32]) -> bool {
    let model = &dve.model;
    let mut same = vec![0; model.layout.words];
    for (process, field) in model.layout.locations.iter().enumerate() {
        let location = model.location(state, process);
        assert!(location < model.processes[process].locations.len());
        field.set(&mut same, 0, location as i32);
    }
    for (variable, field) in model.layout.variables.iter().enumerate() {
        for element in 0..model.variables[variable].initial.len() {
            let value = model.value(state, variable, element);
            assert!(model.variables[variable].values.contains(value.into()));
            if let Some(field) = field {
                field.set(&mut same, element, value);
            }
        }
    }
    same == state
}

pub fn read(text: &str) -> Dve {
    Dve::read(Source { name: "test".into(), text: text.into() }).unwrap()
}

/// The model with states of the two words that a key has.
fn as_keys(dve: &Dve) -> Dve {
    let mut padded = dve.clone();
    assert!(padded.model.layout.words <= 2, "{} words", padded.model.layout.words);
    padded.model.layout.words = 2;
    padded
}

/// Model with `processes` processes that each count to 5: 6^n states.
pub fn counters(processes: usize) -> Dve {
    let process =
        |n| format!("process P_{n} {{ byte x; state s; init s; trans s -> s {{ guard x < 5; effect x = x + 1; }}; }}\n");
    read(&((0..processes).map(process).collect::<String>() + "system async;"))
}

#[test]
fn tables_grow_in_between() {
    let dve = counters(6);
    let expected = Counts {
        states: 6u64.pow(6),
        transitions: 6 * 5 * 6u64.pow(5),
        deadlocks: 1,
        levels: 31,
        widest_level: 4332, // the middle coefficient of (1 + x + ... + x^5)^6
        waiting: 0,
        overflows: 0,
    };
    for slots in [1, 1000, 100_000] {
        for exploration in [
            explore::<Bucket>(&dve, &Checks::default(), NO_LIMITS, slots),
            explore::<Tree>(&dve, &Checks::default(), NO_LIMITS, slots),
            explore::<CompactTree>(&dve, &Checks::default(), NO_LIMITS, slots),
            explore::<Root>(&as_keys(&dve), &Checks::default(), NO_LIMITS, slots),
            explore::<Indexed>(&dve, &Checks::default(), NO_LIMITS, slots),
        ] {
            assert_eq!((exploration.counts, exploration.end), (expected, End::Complete), "{slots} slots");
        }
    }
}

/// Five counters to 5, each in a word of its own.
fn wide_counters() -> Dve {
    let process = |n| format!("process P_{n} {{ int x; state s; init s; trans s -> s {{ guard x < 5; effect x = x + 1; }}; }}\n");
    widened(&read(&((0..5).map(process).collect::<String>() + "system async;")))
}

/// If nodes are full and slots are free, only the nodes grow.
#[test]
fn nodes_grow_without_slots() {
    fn grown<S: Storage>(builder: warpset::TableBuilder<Words, S>) {
        let dve = wide_counters();
        let mut table = builder.capacity(100_000).build(&Device::cpu_with_threads(2)).unwrap();
        let (slots, nodes) = (table.slots(), table.node_slots());
        let checks = Checks::default();
        let source = Interpreted::new(Interpreter::new(&dve.model), &checks);
        let initial = dve.model.initial_state();
        let run = |table: &VectorTable<S>| {
            let engine = HostEngine { table, source: &source, limits: NO_LIMITS, recorder: None, observer: &|_| true };
            engine.run(&initial, None).unwrap()
        };
        let exploration = run(&table);
        assert_eq!((exploration.counts.states, exploration.end), (6u64.pow(5), End::Complete));
        // More nodes make compact roots longer, which may take a few more slots.
        let is_compact = table.spec().key_and_slot_bits().is_some();
        assert!(table.slots() == slots || (is_compact && table.slots() < 2 * slots), "{slots} slots, then {}", table.slots());
        assert!(nodes < 50 && table.node_slots() > 4 * nodes, "{nodes} nodes, then {}", table.node_slots());
        // Memory is too short for more nodes, although it suffices for more slots.
        table = VectorTable::<S>::builder(dve.model.layout.words).capacity(100_000).build(table.device()).unwrap();
        assert!(!grow_within(&table, MemoryLimit::Reserved(table.bytes() + 1)).unwrap());
    }
    let words = wide_counters().model.layout.words;
    assert!(words > 2, "{words} words");
    grown(VectorTable::<Tree>::builder(words).nodes(20));
    grown(VectorTable::<CompactTree>::builder(words).nodes(20));
}

/// Explores in a table that begins with `slots` slots, and finds the path to the violation by its parents.
fn path_by_parents(dve: &Dve, checks: &Checks, limits: Limits, slots: u64) -> (Exploration, Vec<Vec<u32>>) {
    let words = dve.model.layout.words;
    let table = VectorTable::<Indexed>::builder(words).capacity(slots).build(&Device::cpu_with_threads(2)).unwrap();
    let source = Interpreted::new(Interpreter::new(&dve.model), checks);
    let engine = HostEngine { table: &table, source: &source, limits, recorder: None, observer: &|_| true };
    let (mut parents, initial) = (Parents::default(), dve.model.initial_state());
    let exploration = engine.search(Begin::Initial(&initial), None, None, Some(&mut parents)).unwrap();
    let found = exploration.found.clone().expect("something is found");
    let path = parents.path(&table, &source, &found, NO_LIMITS).unwrap().expect("there is memory for parents");
    // A search without parents has the same path.
    assert_eq!(path, crate::path::walk_back(&table, &source, &initial, &found, NO_LIMITS).unwrap());
    assert!(parents.bytes() >= 4 * exploration.counts.states, "{} bytes", parents.bytes());
    // The path consists of steps from the initial state to the violation.
    assert_eq!((&path[0], path.last()), (&initial, Some(&found.state)));
    for pair in path.windows(2) {
        let mut expansion = Expansion::default();
        source.expand(&pair[0], &mut Default::default(), &mut expansion);
        assert!(expansion.successors.chunks_exact(words).any(|successor| successor == pair[1]), "{pair:?}");
    }
    (exploration, path)
}

#[test]
fn parents_lead_back_by_a_shortest_path() {
    let dve = counters(6);
    let everywhere = (0..6).map(|n| format!("P_{n}.x == 4")).collect::<Vec<_>>().join(" and ");
    let goals = [("P_0.x == 1", 1), ("P_2.x == 5", 5), ("P_0.x + P_1.x + P_2.x == 15", 15), (&everywhere, 24)];
    for (goal, steps) in goals {
        let checks = with_goal(&dve, goal, Checks::default());
        for keep_going in [false, true] {
            let source = Interpreted::new(Interpreter::new(&dve.model), &checks);
            let (found, expected) = least_path(&source, keep_going, usize::MAX).unwrap();
            // Includes tables that become full and grow.
            for slots in [1, 1000, 100_000] {
                let (exploration, path) = path_by_parents(&dve, &checks, Limits { keep_going, ..NO_LIMITS }, slots);
                assert_eq!(path.len(), steps + 1, "{goal}, {slots} slots");
                assert_eq!((&exploration.found.unwrap().state, &path), (&found.state, &expected), "{goal}, {slots} slots");
                assert_eq!(exploration.end, if keep_going { End::Complete } else { End::Violation });
            }
        }
    }
}

/// If memory suffices for the search but not for parents, the search continues without them, unless they were asked for. The test
/// uses one thread and a chosen seed, so that a limit has the same result in each run.
#[test]
fn parents_give_way_to_the_search() {
    let dve = counters(5);
    let (words, checks) = (dve.model.layout.words, Checks::default());
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let explore = |bytes, are_wanted| {
        one_thread.install(|| {
            let table = VectorTable::<Indexed>::builder(words).capacity(100).seed(1).build(&Device::cpu_with_threads(1)).unwrap();
            let source = Interpreted::new(Interpreter::new(&dve.model), &checks);
            let limits = Limits { bytes, ..NO_LIMITS };
            let engine = HostEngine { table: &table, source: &source, limits, recorder: None, observer: &|_| true };
            let (mut parents, initial) = (Parents::new(are_wanted), dve.model.initial_state());
            let exploration = engine.search(Begin::Initial(&initial), None, None, Some(&mut parents)).unwrap();
            (exploration.end, exploration.counts.states, parents.bytes())
        })
    };
    let all = 6u64.pow(5);
    let gave_way = |bytes| explore(bytes, false) == (End::Complete, all, 0) && explore(bytes, true).0 == End::Memory;
    assert!((0..50).map(|step| 50_000 + step * 2_000).any(gave_way));
    let (end, states, bytes) = explore(u64::MAX, false);
    assert!((end, states) == (End::Complete, all) && bytes >= 4 * all && bytes < 6 * all, "{bytes} bytes");
}

/// A search whose lists do not fit the memory marks its waiting states, and finds the same states.
#[test]
fn states_that_cannot_be_listed_are_marked() {
    fn marked<S: Storage>(dve: &Dve, builder: TableBuilder<Words, S>) {
        let checks = Checks::default();
        let source = Interpreted::new(Interpreter::new(&dve.model), &checks);
        let search = |limits| {
            let table = builder.clone().capacity(312_000).build(&Device::cpu_with_threads(2)).unwrap();
            let engine = HostEngine { table: &table, source: &source, limits, recorder: None, observer: &|_| true };
            (engine.run(&dve.model.initial_state(), None).unwrap(), table.bytes(), table.spec().is_indexed())
        };
        let (all, table, is_indexed) = search(NO_LIMITS);
        assert_eq!((all.end, all.counts.states), (End::Complete, 8u64.pow(6)));
        // This limit is far above what marks and the lists of threads take.
        let (short, ..) = search(Limits { bytes: table + all.list_bytes / 2, ..NO_LIMITS });
        assert_eq!((short.end, short.counts), (all.end, all.counts), "{} bytes of lists", all.list_bytes);
        // An indexed table takes memory for rows as states arrive, so at first there is more memory for lists.
        let is_short = short.list_bytes <= all.list_bytes / 2;
        assert!(is_short || is_indexed, "{} of {} bytes", short.list_bytes, all.list_bytes);
    }
    let process =
        |n| format!("process P_{n} {{ byte x; state s; init s; trans s -> s {{ guard x < 7; effect x = x + 1; }}; }}\n");
    let dve = widened(&read(&((0..6).map(process).collect::<String>() + "system async;")));
    let words = dve.model.layout.words;
    marked(&dve, VectorTable::<Bucket>::builder(words));
    marked(&dve, VectorTable::<Tree>::builder(words));
    marked(&dve, VectorTable::<CompactTree>::builder(words));
    marked(&as_keys(&dve), VectorTable::<Root>::builder(2).key_bits(dve.model.layout.end));
    marked(&dve, VectorTable::<Indexed>::builder(words));
}

/// The slots of a table of keys get narrower as it grows. Meanwhile its waiting states are alternately listed and marked. The
/// model has k counters modulo m, so m^k states, which are easy to check.
#[test]
fn slots_of_keys_get_narrower_as_a_table_grows() {
    let process = |n| format!("process P_{n} {{ byte x; state s; init s; trans s -> s {{ effect x = (x + 1) % 17; }}; }}\n");
    let dve = as_keys(&read(&((0..4).map(process).collect::<String>() + "system async;")));
    let (checks, all) = (Checks::default(), 17u64.pow(4));
    let source = Interpreted::new(Interpreter::new(&dve.model), &checks);
    for (bytes, end) in [(u64::MAX, End::Complete), (700_000, End::Complete), (100_000, End::Memory)] {
        let builder = VectorTable::<Root>::builder(2).key_bits(dve.model.layout.end);
        let table = builder.capacity(64).build(&Device::cpu_with_threads(2)).unwrap();
        let first = table.spec().key_and_slot_bits().unwrap();
        let limits = Limits { bytes, is_reserved: bytes < u64::MAX, ..NO_LIMITS };
        let engine = HostEngine { table: &table, source: &source, limits, recorder: None, observer: &|_| true };
        let exploration = engine.run(&dve.model.initial_state(), None).unwrap();
        let (states, last) = (exploration.counts.states, table.spec().key_and_slot_bits().unwrap());
        assert_eq!(exploration.end, end, "{bytes} bytes: {states} states, {last:?}");
        assert!(table.len().unwrap() == states && first.0 == last.0, "{states} states");
        if end == End::Complete {
            assert!(states == all && last.1 < first.1, "{states} states, {last:?} after {first:?}");
            assert_eq!(exploration.counts.transitions, 4 * all);
        } else {
            assert!(states > bytes / 5, "{states} states in {bytes} bytes");
        }
    }
}

/// The last growth of a table of keys leaves memory for the marks of its narrower slots: only a full table ends the search.
#[test]
fn marks_fit_beside_narrower_slots() {
    let process = |n| format!("process P_{n} {{ byte x; state s; init s; trans s -> s {{ effect x = (x + 1) % 27; }}; }}\n");
    let dve = as_keys(&read(&((0..4).map(process).collect::<String>() + "system async;")));
    let checks = Checks::default();
    let source = Interpreted::new(Interpreter::new(&dve.model), &checks);
    for bytes in [300_000, 400_000, 500_000] {
        let builder = VectorTable::<Root>::builder(2).key_bits(dve.model.layout.end);
        let table = builder.capacity(100).build(&Device::cpu_with_threads(2)).unwrap();
        let limits = Limits { bytes, is_reserved: true, ..NO_LIMITS };
        let engine = HostEngine { table: &table, source: &source, limits, recorder: None, observer: &|_| true };
        let exploration = engine.run(&dve.model.initial_state(), None).unwrap();
        let fill = exploration.counts.states as f64 / table.slots() as f64;
        let slots = table.spec().key_and_slot_bits();
        assert!(exploration.end == End::Memory && fill > 0.99, "{bytes} bytes: {fill}, {slots:?}");
    }
}

#[test]
fn limits_end_it_with_what_there_is() {
    let dve = counters(6);
    let limits = Limits { states: 1000, ..NO_LIMITS };
    let exploration = explore::<Bucket>(&dve, &Checks::default(), limits, 100_000);
    assert_eq!(exploration.end, End::States);
    assert!((1000..46_656).contains(&exploration.counts.states));
    // The table may not grow: it stores as many states as it has slots for, none twice.
    let limits = Limits { bytes: 60_000, ..NO_LIMITS };
    for exploration in
        [explore::<Bucket>(&dve, &Checks::default(), limits, 1000), explore::<Tree>(&dve, &Checks::default(), limits, 1000)]
    {
        assert_eq!(exploration.end, End::Memory);
        assert!((900..20_000).contains(&exploration.counts.states), "{exploration:?}");
    }
}

/// Adds to `others` the check whether a condition can be reached.
pub fn with_goal(dve: &Dve, condition: &str, mut others: Checks) -> Checks {
    let condition = dve.condition(&Source { name: String::new(), text: condition.into() }).unwrap().0;
    others.add(Role::Goal, String::new(), condition);
    others
}

/// A model of 216 states with a violation at level 7 and a deadlock at the end.
pub fn three_counters_to_seven() -> (Dve, Checks) {
    let dve = counters(3);
    let checks = with_goal(&dve, "P_0.x + P_1.x + P_2.x == 7", Checks { deadlocks: true, ..Checks::default() });
    (dve, checks)
}

/// A model that reaches its goal at level 1 and has a fault at level 3.
pub fn a_goal_and_then_a_fault() -> (Dve, Checks) {
    let dve = read(
        "byte x, a[2]; process P { state s; init s; trans
            s -> s { guard x < 3; effect x = x + 1; }, s -> s { guard x == 3; effect a[x] = 1; }; } system async;",
    );
    let checks = with_goal(&dve, "x == 1", Checks::default());
    (dve, checks)
}

#[test]
fn the_first_violation_is_at_the_lowest_level() {
    let (dve, checks) = three_counters_to_seven();
    for keep_going in [false, true] {
        let limits = Limits { keep_going, ..NO_LIMITS };
        let exploration = explore::<Bucket>(&dve, &checks, limits, 1000);
        let found = exploration.found.unwrap();
        assert_eq!((found.level, found.violation), (7, Violation::Condition(0)));
        assert_eq!(exploration.end, if keep_going { End::Complete } else { End::Violation });
        assert_eq!(exploration.counts.states == 216, keep_going);
    }
}

#[test]
fn a_fault_is_reported_whatever_was_found_before() {
    let (dve, checks) = a_goal_and_then_a_fault();
    let exploration = explore::<Bucket>(&dve, &checks, NO_LIMITS, 1000);
    let found = exploration.found.unwrap();
    assert!(matches!(found.violation, Violation::Fault(_)), "{found:?}");
    assert_eq!((found.level, exploration.end), (3, End::Violation));
}

#[test]
fn it_stops_with_what_there_is_when_it_is_asked_to() {
    let limits = Limits { stop: || Some(Stop::Interrupted), ..NO_LIMITS };
    let dve = counters(3);
    let exploration = explore::<Tree>(&dve, &Checks::default(), limits, 1000);
    assert_eq!(exploration.end, End::Stopped(Stop::Interrupted));
    assert_eq!((exploration.counts.states, exploration.counts.levels, exploration.counts.waiting), (1, 1, 1));
    // The search for a path stops as well.
    let checks = Checks::default();
    let source = Interpreted::new(Interpreter::new(&dve.model), &checks);
    let table = VectorTable::<Bucket>::new(&Device::cpu_with_threads(2), dve.model.layout.words, 1000).unwrap();
    let found = Found { violation: Violation::Deadlock, state: dve.model.initial_state(), level: 3 };
    let path = crate::path::walk_back(&table, &source, &dve.model.initial_state(), &found, limits);
    let error = path.unwrap_err().downcast::<warpset_support::program::Ended>().unwrap();
    assert_eq!(error.code, warpset_support::exit::INTERRUPTED);
}

#[test]
fn states_wait_when_a_level_begins() {
    let limits = Limits { states: 1, ..NO_LIMITS };
    let exploration = explore::<Bucket>(&counters(3), &Checks::default(), limits, 1000);
    assert_eq!((exploration.end, exploration.counts.waiting), (End::States, 1));
}

#[test]
fn many_random_models_are_explored_to_their_end() {
    let mut runner = TestRunner::deterministic();
    let mut dve = || read(&random::model().new_tree(&mut runner).unwrap().current());
    let ended: Vec<u64> = (0..200).filter_map(|_| reference(&dve(), 20_000)).map(|counts| counts.states).collect();
    let of_use = ended.iter().filter(|states| **states >= 10).count();
    assert!(of_use >= 50, "{of_use} of 200 have 10 states or more: the others are of little use for the test below");
    let checks = Checks { deadlocks: true, ..Checks::default() };
    let mut level = || {
        let dve = dve();
        Some(least_path(&Interpreted::new(Interpreter::new(&dve.model), &checks), false, 20_000)?.0.level)
    };
    let of_use = (0..200).filter_map(|_| level()).filter(|level| *level >= 3).count();
    assert!(of_use >= 30, "{of_use} of 200 have a violation after 3 steps or more");
}

/// Explores in a small table, and finds the path.
fn found_in<S: Storage>(source: &Interpreted, keep_going: bool) -> Option<(Found, Vec<Vec<u32>>)> {
    let (words, initial) = (source.width(), source.interpreter.model().initial_state());
    let table = VectorTable::<S>::builder(words).capacity(64).build(&Device::cpu_with_threads(2)).unwrap();
    let mut threads = Threads::new(&table, source, initial);
    threads.parents = table.spec().is_indexed().then(Parents::default);
    let found = threads.explore(Limits { keep_going, ..NO_LIMITS }, &|_| true).unwrap().found?;
    let path = threads.path(&found, NO_LIMITS).unwrap();
    Some((found, path))
}

/// The violation and the path, in a form that can be compared.
pub fn comparable(found: Option<(Found, Vec<Vec<u32>>)>) -> Option<(Violation, u64, Vec<Vec<u32>>)> {
    found.map(|(found, path)| (found.violation, found.level, path))
}

/// Levels of a hundred states, which threads share, with many violations in one of them.
#[test]
fn the_path_does_not_depend_on_threads_or_tables() {
    let (dve, wrong) = (
        counters(5),
        read(
            "byte a, b, c, d[18]; process P { state s; init s; trans s -> s { guard a < 11; effect a = a + 1; },
            s -> s { guard b < 11; effect b = b + 1; }, s -> s { guard c < 11; effect c = c + 1, d[a + b + c] = 0; }; }
         system async;",
        ),
    );
    let sums = with_goal(&dve, "P_0.x + P_1.x + P_2.x + P_3.x == 10", Checks { deadlocks: true, ..Checks::default() });
    for (dve, checks) in [(&dve, &sums), (&wrong, &Checks::default())] {
        let source = Interpreted::new(Interpreter::new(&dve.model), checks);
        for keep_going in [false, true] {
            let expected = comparable(least_path(&source, keep_going, usize::MAX));
            assert!(expected.as_ref().is_some_and(|(_, level, path)| *level >= 10 && path.len() as u64 == level + 1));
            for threads in [1, 2, 4] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    assert_eq!(comparable(found_in::<Bucket>(&source, keep_going)), expected, "{threads} threads");
                    assert_eq!(comparable(found_in::<Tree>(&source, keep_going)), expected, "{threads} threads");
                    assert_eq!(comparable(found_in::<CompactTree>(&source, keep_going)), expected, "{threads} threads");
                    assert_eq!(comparable(found_in::<Indexed>(&source, keep_going)), expected, "{threads} threads");
                });
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sized(128, 48, 48), ..ProptestConfig::default() })]

    #[test]
    fn random_models_have_the_same_path_in_every_table(text in random::model(), keep_going in any::<bool>()) {
        let dve = read(&text);
        let checks = Checks { deadlocks: true, ..Checks::default() };
        let source = Interpreted::new(Interpreter::new(&dve.model), &checks);
        let expected = comparable(least_path(&source, keep_going, 20_000));
        prop_assume!(expected.is_some());
        prop_assert_eq!(comparable(found_in::<Bucket>(&source, keep_going)), expected.clone());
        prop_assert_eq!(comparable(found_in::<Tree>(&source, keep_going)), expected.clone());
        prop_assert_eq!(comparable(found_in::<Indexed>(&source, keep_going)), expected);
    }

    #[test]
    fn random_models_have_the_same_states_in_every_table(text in random::model()) {
        let dve = read(&text);
        // No value is lost in fields that are narrower than their types; a search without the table would lose none either.
        let Some(expected) = reference(&widened(&dve), 20_000) else { return Ok(()) };
        prop_assert_eq!(reference(&dve, usize::MAX), Some(expected));
        let of_bucket = explore::<Bucket>(&dve, &Checks::default(), NO_LIMITS, 64);
        let of_tree = explore::<Tree>(&dve, &Checks::default(), NO_LIMITS, 64);
        prop_assert_eq!((of_bucket.counts, of_bucket.end), (expected, End::Complete));
        prop_assert_eq!((of_tree.counts, of_tree.end), (expected, End::Complete));
        let of_compact_tree = explore::<CompactTree>(&dve, &Checks::default(), NO_LIMITS, 64);
        prop_assert_eq!((of_compact_tree.counts, of_compact_tree.end), (expected, End::Complete));
        if dve.model.layout.words <= 2 {
            let of_keys = explore::<Root>(&as_keys(&dve), &Checks::default(), NO_LIMITS, 64);
            prop_assert_eq!((of_keys.counts, of_keys.end), (expected, End::Complete));
        }
        let indexed = explore::<Indexed>(&dve, &Checks::default(), NO_LIMITS, 64);
        prop_assert_eq!((indexed.counts, indexed.end), (expected, End::Complete));
    }
}
