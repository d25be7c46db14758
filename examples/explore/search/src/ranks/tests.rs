//! Several ranks on CPU threads, compared with one rank without a cluster.

use super::*;
use crate::engine::HostEngine;
use crate::engine::tests::{NO_LIMITS, a_goal_and_then_a_fault, comparable, counters, least_path};
use crate::engine::tests::{read, three_counters_to_seven, with_goal};
use crate::exploration::End;
use proptest::prelude::*;
use std::time::Duration;
use warpset::cluster::{Builder, Local};
use warpset::{Bucket, CompactTree, TableBuilder, Tree, VectorTable, Words};
use warpset_model::checks::{Checks, Violation};
use warpset_model::dve::Dve;
use warpset_model::interpreter::Interpreter;
use warpset_random_models as random;
use warpset_support::in_process::devices_of;
use warpset_testing::sizes::sized;

/// Creates the connected tables of `ranks` ranks on these devices, with `slots` slots each.
fn tables<S: Storage>(builder: &TableBuilder<Words, S>, devices: &[Device], ranks: usize, slots: u64) -> Result<Vec<Table<S>>> {
    let seats = devices_of(devices, ranks)?.into_iter().zip(Local::with_timeout(ranks, Duration::from_secs(600)));
    let build = |(device, local)| Ok(Builder::new(builder.clone().capacity(slots)).build(&device, local)?);
    first_error(on_all(seats, build))
}

/// Explores with one rank, without a cluster.
fn alone(dve: &Dve, checks: &Checks, limits: Limits) -> Exploration {
    let table = VectorTable::<Bucket>::new(&Device::cpu_with_threads(2), dve.model.layout.words, 64).unwrap();
    let source = Interpreted::new(Interpreter::new(&dve.model), checks);
    let engine = HostEngine { table: &table, source: &source, limits, recorder: None, observer: &|_| true };
    engine.run(&dve.model.initial_state(), None).unwrap()
}

/// Explores with `ranks` ranks. Returns the result and the length of the path to the violation.
fn spread<S: Storage>(dve: &Dve, checks: &Checks, limits: Limits, ranks: usize, slots: u64) -> (Exploration, Option<usize>) {
    let builder = VectorTable::<S>::builder(dve.model.layout.words);
    let tables = tables(&builder, &[Device::cpu_with_threads(2)], ranks, slots.div_ceil(ranks as u64)).unwrap();
    let source = Interpreted::new(Interpreter::new(&dve.model), checks);
    let mut ranks = on_threads_of(tables, &source, &source).unwrap();
    let exploration = ranks.explore(limits, &|_| true).unwrap();
    let path = exploration.found.as_ref().map(|found| {
        let states = ranks.path(found, NO_LIMITS).unwrap();
        warpset_model::trace::replay(&source.interpreter, checks, states, found.violation.clone()).unwrap().steps.len()
    });
    (exploration, path)
}

#[test]
fn tables_grow_in_between() {
    let (dve, checks) = (counters(6), Checks::default());
    let expected = alone(&dve, &checks, NO_LIMITS);
    for (ranks, slots) in [(1, 1), (2, 100), (3, 5000), (5, 200_000)] {
        for (exploration, _) in [
            spread::<Bucket>(&dve, &checks, NO_LIMITS, ranks, slots),
            spread::<Tree>(&dve, &checks, NO_LIMITS, ranks, slots),
            spread::<CompactTree>(&dve, &checks, NO_LIMITS, ranks, slots),
        ] {
            let found = (exploration.counts, exploration.end);
            assert_eq!(found, (expected.counts, End::Complete), "{ranks} ranks, {slots} slots");
        }
    }
}

#[test]
fn the_first_violation_is_at_the_lowest_level_and_has_a_path() {
    let (dve, checks) = three_counters_to_seven();
    for ranks in [1, 2, 3, 5] {
        for keep_going in [false, true] {
            let limits = Limits { keep_going, ..NO_LIMITS };
            // Tables begin with one slot, so they also grow during the search for the path.
            let (exploration, path) = spread::<Bucket>(&dve, &checks, limits, ranks, 1);
            let found = exploration.found.unwrap();
            assert_eq!((found.level, found.violation, path), (7, Violation::Condition(0), Some(7)), "{ranks} ranks");
            assert_eq!(exploration.end, if keep_going { End::Complete } else { End::Violation });
            assert_eq!(exploration.counts.states == 216, keep_going);
        }
    }
}

/// The states of a path, found by any number of ranks whose tables begin small, are those of the definition.
#[test]
fn the_path_does_not_depend_on_ranks() {
    let dve = counters(5);
    let checks = with_goal(&dve, "P_0.x + P_1.x + P_2.x + P_3.x + P_4.x == 11", Checks::default());
    let source = Interpreted::new(Interpreter::new(&dve.model), &checks);
    let expected = comparable(least_path(&source, false, usize::MAX));
    assert!(expected.is_some());
    for count in [1, 2, 3, 5] {
        let builder = VectorTable::<Bucket>::builder(source.width());
        let tables = tables(&builder, &[Device::cpu_with_threads(2)], count, 64).unwrap();
        let mut ranks = on_threads_of(tables, &source, &source).unwrap();
        for keep_going in [false, true] {
            let found = ranks.explore(Limits { keep_going, ..NO_LIMITS }, &|_| true).unwrap().found.unwrap();
            let path = ranks.path(&found, NO_LIMITS).unwrap();
            assert_eq!(comparable(Some((found, path))), expected, "{count} ranks");
            ranks.agreed(|member| member.collect(|table| table.clear())).unwrap();
        }
    }
}

#[test]
fn what_is_found_counts_where_tables_are_full_in_the_same_round() {
    // The first state has 1200 successors, each with one successor. The exception is the first of them, which has a fault, so
    // that its thread offers nothing while others do.
    let steps: Vec<_> = (1..=1200).map(|to| format!("s -> s {{ guard x == 0; effect x = {to}; }}")).collect();
    let text = "int x; byte a[2]; process P { state s; init s; trans STEPS,
        s -> s { guard x == 1; effect a[x + 1] = 1; }, s -> s { guard x > 1 && x <= 1200; effect x = x + 1200; }; } system async;";
    let dve = read(&text.replace("STEPS", &steps.join(", ")));
    let of_goal = with_goal(&dve, "x == 0", Checks::default());
    for (checks, level, keep_going) in [(&of_goal, 0, false), (&Checks::default(), 1, true)] {
        let mut lost = 0;
        for ranks in [1, 2, 3] {
            let find = |bytes| spread::<Bucket>(&dve, checks, Limits { keep_going, bytes, ..NO_LIMITS }, ranks, 1);
            let (all, path) = find(u64::MAX);
            let found = (all.end, all.counts.levels, path);
            assert_eq!(found, (End::Violation, level + 1, Some(level as usize)), "{ranks} ranks, {all:?}");
            // Repeat with tables that may no longer grow, which loses states.
            for some in
                (4000..80_000).step_by(sized(4000, 8000, 8000)).map(|bytes| find(bytes).0).filter(|some| some.found.is_some())
            {
                assert_eq!(some.end, End::Violation, "{ranks} ranks, {some:?}");
                lost += u64::from(some.counts.states < all.counts.states);
            }
        }
        assert!(lost > 0, "no table was full at level {level}");
    }
}

#[test]
fn a_fault_is_reported_whatever_was_found_before() {
    let (dve, checks) = a_goal_and_then_a_fault();
    let (exploration, path) = spread::<Bucket>(&dve, &checks, NO_LIMITS, 3, 1000);
    let found = exploration.found.unwrap();
    assert!(matches!(found.violation, Violation::Fault(_)), "{found:?}");
    assert_eq!((found.level, exploration.end, path), (3, End::Violation, Some(3)));
}

#[test]
fn limits_end_it_on_all_ranks() {
    use warpset_support::stopping::Stop;
    let (dve, checks) = (counters(6), Checks::default());
    let end = |limits| spread::<Bucket>(&dve, &checks, limits, 3, 3000).0;
    let of_states = end(Limits { states: 1000, ..NO_LIMITS });
    assert_eq!(of_states.end, End::States);
    assert!((1000..46_656).contains(&of_states.counts.states) && of_states.counts.waiting > 0, "{of_states:?}");
    // Tables may not grow. They store as many states as they have slots, and no state twice.
    let of_memory = end(Limits { bytes: 100_000, ..NO_LIMITS });
    assert_eq!(of_memory.end, End::Memory);
    assert!((2000..20_000).contains(&of_memory.counts.states), "{of_memory:?}");
    let stopped = end(Limits { stop: || Some(Stop::Interrupted), ..NO_LIMITS });
    let counts = (stopped.counts.states, stopped.counts.levels, stopped.counts.waiting);
    assert_eq!((stopped.end, counts), (End::Stopped(Stop::Interrupted), (1, 1, 1)));
    let of_levels = end(Limits { levels: 3, ..NO_LIMITS });
    assert_eq!((of_levels.end, of_levels.counts.levels), (End::Levels, 3));
    assert_eq!(of_levels.counts, alone(&dve, &checks, Limits { levels: 3, ..NO_LIMITS }).counts);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sized(48, 24, 24), ..ProptestConfig::default() })]

    #[test]
    fn random_models_have_the_same_counts_on_any_number_of_ranks(text in random::model(), ranks in 1..6usize) {
        let dve = read(&text);
        let checks = Checks { deadlocks: true, ..Checks::default() };
        let most = Limits { states: 20_000, ..NO_LIMITS };
        let expected = alone(&dve, &checks, most);
        // A search that is incomplete or has a fault ends somewhere within a level, so its counts are not comparable.
        if expected.end != End::Complete {
            return Ok(());
        }
        for (exploration, path) in [
            spread::<Bucket>(&dve, &checks, most, ranks, 64),
            spread::<Tree>(&dve, &checks, most, ranks, 64),
        ] {
            prop_assert_eq!((exploration.counts, exploration.end), (expected.counts, End::Complete));
            let level = expected.found.as_ref().map(|found| found.level as usize);
            prop_assert_eq!((exploration.found.map(|found| found.level as usize), path), (level, level));
        }
    }
}

/// Only one rank gets the request to stop, and only once, but all ranks end.
#[test]
fn one_that_is_told_to_stop_stops_all() {
    use std::sync::atomic::{AtomicU64, Ordering};
    use warpset_support::stopping::Stop;
    static ASKED: AtomicU64 = AtomicU64::new(0);
    fn interrupted() -> Option<Stop> {
        (ASKED.fetch_add(1, Ordering::Relaxed) == 20).then_some(Stop::Interrupted)
    }
    static ASKED_OF_TIME: AtomicU64 = AtomicU64::new(0);
    fn timed_out() -> Option<Stop> {
        (ASKED_OF_TIME.fetch_add(1, Ordering::Relaxed) == 31).then_some(Stop::Time(Duration::from_secs(7)))
    }
    let dve = counters(5);
    for (stop, expected) in
        [(interrupted as fn() -> Option<Stop>, Stop::Interrupted), (timed_out, Stop::Time(Duration::from_secs(7)))]
    {
        let (exploration, _) = spread::<Bucket>(&dve, &Checks::default(), Limits { stop, ..NO_LIMITS }, 3, 3000);
        assert_eq!(exploration.end, End::Stopped(expected));
        assert!(exploration.counts.levels > 1 && exploration.counts.waiting > 0, "{exploration:?}");
    }
}

/// A failure injected on one rank, in a given round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Error,
    Panic,
    /// Reports lack of memory for a list after the table has grown.
    Stuck,
    /// Reports lack of memory for states before the table grows.
    Unready,
    /// Reports lack of memory for the states of a round.
    Unlisted,
}

/// A rank on threads that fails on purpose.
struct Troubled<'a, X> {
    inner: OnThreads<'a, X>,
    trouble: Option<Trouble>,
    rounds: u64,
}

impl<S: Storage, X: Successors> Worker<S> for Troubled<'_, X> {
    fn clear(&mut self, table: &Table<S>, keep: bool, bytes: u64) -> Result<()> {
        self.inner.clear(table, keep, bytes)
    }
    fn most_offered(&self) -> u64 {
        Worker::<S>::most_offered(&self.inner)
    }
    fn offer_at_most(&mut self, rows: u64) {
        Worker::<S>::offer_at_most(&mut self.inner, rows);
    }
    fn put_first(&mut self, table: &mut Table<S>, states: &[u32]) -> Result<warpset::Tally> {
        self.inner.put_first(table, states)
    }
    fn begin_level(&mut self) {
        Worker::<S>::begin_level(&mut self.inner);
    }
    fn remaining(&self) -> u64 {
        Worker::<S>::remaining(&self.inner)
    }
    fn expand(&mut self, table: &Table<S>, level: u64, only_faults: bool) -> Result<Round> {
        self.rounds += 1;
        match self.trouble.filter(|_| self.rounds == 4) {
            Some(Trouble::Error) => anyhow::bail!("of round 4"),
            Some(Trouble::Panic) => panic!("in round 4, on purpose"),
            _ => self.inner.expand(table, level, only_faults),
        }
    }
    fn offer(&mut self, table: &mut Table<S>, own: RankNumbers) -> Result<(warpset::Tally, RankNumbers)> {
        self.inner.offer(table, own)
    }
    fn prepare_growth(&mut self, _: &Table<S>) -> Result<bool> {
        Ok(self.trouble != Some(Trouble::Unready))
    }
    fn finish_growth(&mut self, _: &Table<S>) -> Result<bool> {
        Ok(self.trouble != Some(Trouble::Stuck))
    }
    fn list_bytes(&self) -> u64 {
        Worker::<S>::list_bytes(&self.inner)
    }
    fn least_lists(&self) -> (u64, u64) {
        Worker::<S>::least_lists(&self.inner)
    }
    fn lacks_memory(&self) -> bool {
        self.trouble == Some(Trouble::Unlisted) && self.rounds > 2
    }
    fn has_kept(&self, level: usize) -> bool {
        Worker::<S>::has_kept(&self.inner, level)
    }
    fn look_at(&self, state: &[u32]) -> Option<Violation> {
        Worker::<S>::look_at(&self.inner, state)
    }
    fn predecessor(&mut self, table: &Table<S>, level: usize, state: &[u32], limits: Limits) -> Result<Option<Vec<u32>>> {
        self.inner.predecessor(table, level, state, limits)
    }
}

/// Explores with three ranks; the second one fails.
fn troubled(trouble: Trouble, slots: u64) -> Result<Exploration> {
    let (dve, checks) = (counters(5), Checks::default());
    let source = Interpreted::new(Interpreter::new(&dve.model), &checks);
    let builder = VectorTable::<Bucket>::builder(dve.model.layout.words);
    let tables = tables(&builder, &[Device::cpu_with_threads(2)], 3, slots).unwrap();
    let worker = |table: &Table<Bucket>| {
        let trouble = Some(trouble).filter(|_| table.rank() == 1);
        Ok(Troubled { inner: OnThreads::new(&source), trouble, rounds: 0 })
    };
    with_workers(tables, worker, &source).unwrap().explore(NO_LIMITS, &|_| true)
}

#[test]
fn an_error_of_one_rank_ends_all() {
    let error = troubled(Trouble::Error, 10_000).unwrap_err();
    assert_eq!(error.to_string(), "of round 4");
    // The rank disappears without a message. No other rank waits for it.
    let panic = std::panic::catch_unwind(|| troubled(Trouble::Panic, 10_000).map(drop));
    assert!(panic.is_err());
}

#[test]
fn one_without_memory_ends_all_of_them() {
    for trouble in [Trouble::Stuck, Trouble::Unready] {
        let exploration = troubled(trouble, 64).unwrap();
        assert_eq!(exploration.end, End::Memory);
        assert!((64..7776).contains(&exploration.counts.states), "{exploration:?}");
    }
    let exploration = troubled(Trouble::Unlisted, 10_000).unwrap();
    assert_eq!((exploration.end, exploration.counts.levels), (End::Memory, 3), "{exploration:?}");
}

#[test]
fn ranks_that_cannot_be_made_are_an_error_on_all() {
    let (dve, checks) = (counters(2), Checks::default());
    let source = Interpreted::new(Interpreter::new(&dve.model), &checks);
    let builder = VectorTable::<Bucket>::builder(dve.model.layout.words);
    let tables = tables(&builder, &[Device::cpu_with_threads(2)], 3, 64).unwrap();
    let worker = |table: &Table<Bucket>| match table.rank() {
        2 => anyhow::bail!("this one cannot"),
        _ => Ok(OnThreads::new(&source)),
    };
    let made = with_workers(tables, worker, &source);
    assert_eq!(made.map(drop).unwrap_err().to_string(), "this one cannot");
    let two = [Device::cpu_with_threads(1), Device::cpu_with_threads(1)];
    let builder = VectorTable::<Bucket>::builder(1);
    let of = |ranks| self::tables(&builder, &two, ranks, 64);
    assert!(of(3).map(drop).unwrap_err().to_string().contains("must be a multiple of the number of devices, 2"));
    assert_eq!(of(4).unwrap().len(), 4);
}
