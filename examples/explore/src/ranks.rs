//! The engine of several ranks: the table is spread over them, and each rank expands the states that it owns.
//!
//! All ranks take the same steps: each expands a part of what it has of the level, offers the successors to all, and keeps what
//! its own table has stored meanwhile for the next level. Between rounds they add up what they have counted, and so decide alike:
//! whether to go on, to grow, or to stop. So counts, levels, and what is found at which level are those of one rank.

use crate::checks::Violation;
use crate::codegen::on_cpu::Compiled;
use crate::engine::{Counts, End, Exploration, Explorer, Found, Limits, Observer, if_it_fits};
use crate::first_table::Size;
use crate::options::{EngineKind, Options};
use crate::path::{explored_again, predecessor};
use crate::progress::Progress;
use crate::report::{Measurements, Time};
use crate::successors::{Expansion, Interpreted, Successors};
use crate::switching::Switching;
use crate::warnings::Warnings;
use crate::{Ending, Outputs, limits};
use anyhow::{Context, Result};
use rayon::prelude::*;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use warpset::cluster::{self, Builder, Local, Request};
use warpset::{Device, Error, Outcome, Reference, Stats, Storage, TableBuilder, Words};

type Table<S> = cluster::Table<Words, S>;

/// States that a thread takes at a time, and a rank in a round.
const PIECE: usize = 512;
const ROUND: usize = 1 << 16;

/// A table that is fuller grows, if it may.
const GROW_AT_FILL: f64 = 0.85;

/// Ranks of one process know at once when one is gone. One that is slow is waited for, also if the process was suspended.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The tables of so many ranks, on as many threads.
pub fn build<S: Storage>(builder: TableBuilder<S>, size: Size, device: &Device, count: usize) -> Result<Vec<Table<S>>> {
    // Each rank's share of the threads; a GPU is everybody's.
    #[cfg(feature = "cpu")]
    let of_rank = if device.is_gpu() { device.clone() } else { Device::cpu_with_threads((device.threads() / count).max(1)) };
    #[cfg(not(feature = "cpu"))]
    let of_rank = device.clone();
    let slots = size.slots.div_ceil(count as u64);
    let built = on_all(Local::with_timeout(count, PATIENCE), |transport| {
        Builder::new(builder.clone().capacity(slots)).build(&of_rank, transport)
    });
    Ok(first_error(built)?)
}

/// Explores with these tables, and prints what was found.
#[allow(clippy::too_many_arguments)] // all that an exploration depends on
pub fn explore<S: Storage>(
    tables: Vec<Table<S>>,
    options: &Options,
    interpreted: &Interpreted<'_>,
    warnings: &Warnings,
    outputs: Outputs,
    device: &Device,
    engine: EngineKind,
    mut time: Time,
) -> Result<u8> {
    let task = Task { tables, options, interpreted, warnings, outputs, device };
    match engine {
        EngineKind::Compiled => {
            let start = Instant::now();
            let compiled = crate::compile(options, interpreted)?;
            time.compile = start.elapsed();
            task.with::<Compiled<'_>>(&compiled, &|| "compiled".into(), time)
        }
        EngineKind::Auto => {
            let source = Switching::new(interpreted);
            source.during(|| task.with(&source, &|| source.engine(), time))
        }
        _ => task.with(interpreted, &|| "interpreted".into(), time),
    }
}

struct Task<'a, S> {
    tables: Vec<Table<S>>,
    options: &'a Options,
    interpreted: &'a Interpreted<'a>,
    warnings: &'a Warnings,
    outputs: Outputs,
    device: &'a Device,
}

impl<S: Storage> Task<'_, S> {
    fn with<X: Successors>(self, source: &X, engine: &dyn Fn() -> String, mut time: Time) -> Result<u8> {
        let Self { tables, options, interpreted, warnings, outputs, device } = self;
        let initial = interpreted.interpreter.model().initial_state();
        let mut ranks = Ranks { tables, source, initial };
        let limits = limits(options, device);
        let start = Instant::now();
        let exploration = {
            let progress = Progress::new(options.progress);
            ranks.explore(limits, &|counts| {
                progress.working(&format!("level {}, {} states", counts.levels, counts.states));
                true
            })?
        };
        time.explore = start.elapsed();
        let (stats, traffic) = ranks.numbers()?;
        let spec = ranks.tables[0].local().spec();
        let engine = format!("{} on {} ranks, {traffic}", engine(), ranks.tables.len());
        let exploration = &exploration;
        let ending = Ending {
            options,
            interpreted,
            question: None,
            possible: None,
            warnings,
            outputs,
            device,
            spec,
            stats,
            measurements: None,
            exploration,
        };
        ending.report(&mut ranks, None, limits, engine, time)
    }
}

/// The ranks, all in this process.
pub struct Ranks<'a, S, X> {
    pub tables: Vec<Table<S>>,
    pub source: &'a X,
    pub initial: Vec<u32>,
}

/// Calls `each` for all items, each on a thread of its own.
fn on_all<I: Send, T: Send>(items: impl IntoIterator<Item = I>, each: impl Fn(I) -> T + Sync) -> Vec<T> {
    let each = &each;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(move || each(item))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// All results, or the error of the rank that has failed rather than of those that were told of it.
fn first_error<T>(results: Vec<warpset::Result<T>>) -> warpset::Result<Vec<T>> {
    let is_told = |error: &Error| matches!(error, Error::Rank { .. } | Error::Connection { .. });
    let own = results.iter().filter_map(|result| result.as_ref().err()).find(|error| !is_told(error)).cloned();
    own.map_or_else(|| results.into_iter().collect(), Err)
}

/// What a rank has found of a round.
#[derive(Default)]
struct Round {
    successors: Vec<u32>,
    transitions: u64,
    deadlocks: u64,
    overflows: u64,
    found: Option<Found>,
}

/// What a rank says of an exploration. Counts and the end are those of all ranks.
struct OfRank {
    counts: Counts,
    end: End,
    found: Option<Found>,
    list_bytes: u64,
    /// References of the states of each level that this rank owns, if they are wanted.
    levels: Vec<Vec<Reference>>,
}

/// What all ranks say together between rounds.
struct Sums {
    remaining: u64,
    list_bytes: u64,
    table_bytes: u64,
    slots: u64,
    stops: u64,
    violations: u64,
    faults: u64,
}

impl<S: Storage, X: Successors> Explorer for Ranks<'_, S, X> {
    fn explore(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration> {
        let of_ranks = self.run(limits, observer, false)?;
        let found = of_ranks.iter().filter_map(|of_rank| of_rank.found.clone()).fold(None, |best: Option<Found>, found| {
            let is_better = match &best {
                None => true,
                // A fault before all, then what is at the lowest level.
                Some(best) => found.replaces(Some(best)) || (!best.replaces(Some(&found)) && found.level < best.level),
            };
            if is_better { Some(found) } else { best }
        });
        let list_bytes = of_ranks.iter().map(|of_rank| of_rank.list_bytes).sum();
        let OfRank { counts, end, .. } = &of_ranks[0];
        Ok(Exploration { counts: *counts, end: *end, found, list_bytes })
    }

    fn measurements(&mut self) -> Result<Option<Measurements>> {
        Ok(None)
    }

    /// The levels before are explored again, and the references of their states kept where they are; then from the last state
    /// back, over all ranks.
    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>> {
        let mut states = vec![found.state.clone()];
        if found.level > 0 {
            let levels = self.levels(found.level, limits)?;
            for level in (0..found.level as usize).rev() {
                let state = states.last().expect("it begins with one");
                let mut before = None;
                for (table, levels) in self.tables.iter().zip(&levels) {
                    before = before.or(predecessor(table.local(), self.source, &levels[level], state, limits)?);
                }
                states
                    .push(before.context("a state has no predecessor in the level before its own: please report this as a bug")?);
            }
        }
        states.reverse();
        Ok(states)
    }
}

impl<S: Storage, X: Successors> Ranks<'_, S, X> {
    /// Of each rank, the references of its states of the first levels, of so many.
    fn levels(&mut self, count: u64, limits: Limits) -> Result<Vec<Vec<Vec<Reference>>>> {
        loop {
            first_error(on_all(&mut self.tables, |table| table.clear()))?;
            let slots: u64 = self.tables.iter().map(|table| table.local().slots()).sum();
            let of_ranks = self.run(limits.of_levels(count - 1), &|_| true, true)?;
            explored_again(of_ranks[0].end)?;
            // A growth has made references stale. The tables are large enough now.
            if slots == self.tables.iter().map(|table| table.local().slots()).sum::<u64>() {
                return Ok(of_ranks.into_iter().map(|of_rank| of_rank.levels).collect());
            }
        }
    }

    fn run(&mut self, limits: Limits, observer: &Observer, keep: bool) -> Result<Vec<OfRank>> {
        let Self { tables, source, initial } = self;
        // An error that is none of the library's is this process's, whichever thread met it.
        let other: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        let of_ranks = on_all(tables, |table| of_rank(table, *source, initial, limits, observer, keep));
        let mut results = Vec::new();
        for of_rank in of_ranks {
            match of_rank.map_err(|error| error.downcast::<Error>()) {
                Ok(of_rank) => results.push(Ok(of_rank)),
                Err(Ok(error)) => results.push(Err(error)),
                Err(Err(error)) => *other.lock().expect("nobody panics with it") = Some(error),
            }
        }
        match other.into_inner().expect("nobody panics with it") {
            Some(error) => Err(error),
            None => Ok(first_error(results)?),
        }
    }

    /// The statistics of all tables as of one, and what has crossed between them.
    fn numbers(&self) -> Result<(Stats, String)> {
        let mut all = Stats::default();
        let (mut fullest, mut sent, mut waited) = (0u64, 0u64, 0.0f64);
        for table in &self.tables {
            let of_rank = table.local().stats()?;
            all.probe_lengths.resize(of_rank.probe_lengths.len(), 0);
            all.probe_lengths.iter_mut().zip(&of_rank.probe_lengths).for_each(|(sum, count)| *sum += count);
            (all.slots, all.stored, all.bytes) =
                (all.slots + of_rank.slots, all.stored + of_rank.stored, all.bytes + of_rank.bytes);
            (all.nodes, all.node_slots) = (all.nodes + of_rank.nodes, all.node_slots + of_rank.node_slots);
            all.node_probes += of_rank.node_probes;
            (all.longest_probe, all.width) = (all.longest_probe.max(of_rank.longest_probe), of_rank.width);
            let traffic = table.traffic();
            fullest = fullest.max(of_rank.stored);
            sent += traffic.bytes_sent;
            waited += traffic.waited.as_secs_f64();
        }
        let ranks = self.tables.len() as f64;
        let balance = fullest as f64 * ranks / all.stored.max(1) as f64;
        let traffic = format!("balance {balance:.3}, {} bytes exchanged, {:.3} s of waiting each", sent, waited / ranks);
        Ok((all, traffic))
    }
}

/// What one rank does, while all others do the same.
fn of_rank<S: Storage, X: Successors>(
    table: &mut Table<S>,
    source: &X,
    initial: &[u32],
    limits: Limits,
    observer: &Observer,
    keep: bool,
) -> Result<OfRank> {
    let width = source.width();
    let (mut counts, mut found, mut list_bytes, mut kept) = (Counts::default(), None, 0, Vec::new());
    let (mut level, mut references) = put(table, if table.rank() == 0 { initial } else { &[] }, &mut counts)?.stored;
    let end = 'levels: loop {
        let mut round = Round::default();
        let (size, mut done) = (level.len() / width, 0);
        let mut next = (Vec::new(), Vec::new());
        let mut has_begun = false;
        loop {
            let lists = [&level, &next.0].map(|list: &Vec<u32>| list.capacity() as u64 * 4).iter().sum::<u64>();
            let list_bytes_now = lists + kept.iter().map(|kept: &Vec<Reference>| 8 * kept.len() as u64).sum::<u64>();
            list_bytes = list_bytes_now.max(list_bytes);
            let sums = agree(table, &round, size - done, list_bytes_now, limits, &mut counts)?;
            if table.rank() == 0 && has_begun {
                // Ranks are told by nobody to end so.
                observer(&counts);
            }
            if sums.faults > 0 || (sums.violations > 0 && !limits.keep_going) {
                break 'levels End::Violation;
            }
            if !has_begun {
                if sums.remaining == 0 {
                    break 'levels End::Complete;
                }
                if keep {
                    kept.push(std::mem::take(&mut references));
                }
                if counts.levels == limits.levels {
                    break 'levels End::Levels;
                }
                has_begun = true;
                counts.levels += 1;
                counts.widest_level = counts.widest_level.max(sums.remaining);
            }
            counts.waiting = sums.remaining;
            if sums.remaining == 0 {
                break;
            }
            if counts.states >= limits.states {
                break 'levels End::States;
            }
            if sums.table_bytes + sums.list_bytes > limits.bytes {
                break 'levels End::Memory;
            }
            if sums.stops > 0 {
                // Whoever was told first: there is one reason in a process.
                break 'levels End::Stopped((limits.stop)().unwrap_or(crate::stopping::Stop::Interrupted));
            }
            if counts.states as f64 > sums.slots as f64 * GROW_AT_FILL {
                // If they must not, they may be filled until they reject states.
                grow(table, &sums, limits)?;
            }
            let end = (done + ROUND).min(size);
            round = expand(&level[done * width..end * width], source, counts.levels - 1)?;
            done = end;
            if let Some(other) = round.found.take() {
                round.found = Some(other.clone());
                if other.replaces(found.as_ref()) {
                    found = Some(other);
                }
            }
            let mut offered = std::mem::take(&mut round.successors);
            loop {
                let put = put(table, &offered, &mut counts)?;
                next.0.extend(put.stored.0);
                next.1.extend(put.stored.1);
                if put.all_rejected == 0 {
                    break;
                }
                // The next agreement is where counts of this round are added up.
                let sums = agree(table, &Round::default(), 0, list_bytes_now, limits, &mut counts)?;
                if !grow(table, &sums, limits)? {
                    agree(table, &round, 0, list_bytes_now, limits, &mut counts)?;
                    break 'levels End::Memory;
                }
                offered = put.rejected;
            }
        }
        (level, references) = next;
    };
    Ok(OfRank { counts, end, found, list_bytes, levels: kept })
}

/// Adds up what the ranks have counted in a round, and where they are.
fn agree<S: Storage>(
    table: &mut Table<S>,
    round: &Round,
    remaining: usize,
    list_bytes: u64,
    limits: Limits,
    counts: &mut Counts,
) -> Result<Sums> {
    let is_fault = |found: &Found| matches!(found.violation, Violation::Fault(_));
    let own = [
        remaining as u64,
        list_bytes,
        table.local().bytes(),
        table.local().slots(),
        u64::from((limits.stop)().is_some()),
        u64::from(round.found.is_some()),
        u64::from(round.found.as_ref().is_some_and(is_fault)),
        round.transitions,
        round.deadlocks,
        round.overflows,
    ];
    let [remaining, list_bytes, table_bytes, slots, stops, violations, faults, transitions, deadlocks, overflows] =
        table.sum(own)?;
    counts.transitions += transitions;
    counts.deadlocks += deadlocks;
    counts.overflows += overflows;
    Ok(Sums { remaining, list_bytes, table_bytes, slots, stops, violations, faults })
}

/// What has come of an offer.
struct Put {
    /// The states that this rank has stored, and where.
    stored: (Vec<u32>, Vec<Reference>),
    /// This rank's that found no room, and how many did of all ranks.
    rejected: Vec<u32>,
    all_rejected: u64,
}

/// Offers states to all ranks.
fn put<S: Storage>(table: &mut Table<S>, states: &[u32], counts: &mut Counts) -> Result<Put> {
    let width = table.local().width();
    let batch = table.find_or_put_many_with(states, Request::new().stored_here(true))?;
    counts.states += batch.total.new;
    let rejected = batch.positions(Outcome::Full).flat_map(|at| &states[at * width..(at + 1) * width]).copied().collect();
    let words = table.local().get_many(&batch.stored_here)?;
    Ok(Put { stored: (words, batch.stored_here), rejected, all_rejected: batch.total.full })
}

/// Makes all tables twice as large, if there is memory for that on all ranks.
fn grow<S: Storage>(table: &mut Table<S>, sums: &Sums, limits: Limits) -> Result<bool> {
    if 3 * sums.table_bytes + sums.list_bytes > limits.bytes {
        return Ok(false);
    }
    match table.reserve(2 * table.local().slots()) {
        // What another rank says is that it has no memory.
        Err(Error::Rank { .. }) => Ok(false),
        other => Ok(if_it_fits(other)?.is_some()),
    }
}

/// Expands states, by as many threads as there are.
fn expand<X: Successors>(states: &[u32], source: &X, level: u64) -> Result<Round> {
    let width = source.width();
    let piece = |(scratch, expansion): &mut (X::Scratch, Expansion), states: &[u32]| {
        expansion.clear();
        source.expand(states, scratch, expansion);
        let found = expansion.violation.take().map(|(at, violation)| {
            let state = states[at * width..][..width].to_vec();
            Found { violation, state, level }
        });
        Round {
            successors: std::mem::take(&mut expansion.successors),
            transitions: expansion.parents.len() as u64,
            deadlocks: expansion.deadlocks,
            overflows: expansion.overflows,
            found,
        }
    };
    let pieces: Vec<Round> = states.par_chunks(PIECE * width).map_init(Default::default, piece).collect();
    let mut all =
        Round { successors: Vec::with_capacity(pieces.iter().map(|piece| piece.successors.len()).sum()), ..Round::default() };
    for piece in pieces {
        all.successors.extend(piece.successors);
        all.transitions += piece.transitions;
        all.deadlocks += piece.deadlocks;
        all.overflows += piece.overflows;
        if let Some(found) = piece.found.filter(|found| found.replaces(all.found.as_ref())) {
            all.found = Some(found);
        }
    }
    Ok(all)
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use super::*;
    use crate::checks::{Checks, Role};
    use crate::dve::{Dve, random};
    use crate::engine::Engine;
    use crate::interpreter::Interpreter;
    use crate::ir::Source;
    use proptest::prelude::*;
    use warpset::{Bucket, CompactTree, Tree, VectorTable};

    const NO_LIMITS: Limits = Limits { states: u64::MAX, levels: u64::MAX, bytes: u64::MAX, keep_going: true, stop: || None };

    fn read(text: &str) -> Dve {
        Dve::read(Source { name: "test".into(), text: text.into() }).unwrap()
    }

    /// Counts to 5 in a number of processes: 6^n states.
    fn counters(processes: usize) -> Dve {
        let process =
            |n| format!("process P_{n} {{ byte x; state s; init s; trans s -> s {{ guard x < 5; effect x = x + 1; }}; }}\n");
        read(&((0..processes).map(process).collect::<String>() + "system async;"))
    }

    /// By one rank without a cluster.
    fn alone(dve: &Dve, checks: &Checks, limits: Limits) -> Exploration {
        let table = VectorTable::<Bucket>::new(&Device::cpu_with_threads(2), dve.model.layout.words, 64).unwrap();
        let source = Interpreted { interpreter: Interpreter::new(&dve.model), checks };
        let engine = Engine { table: &table, source: &source, limits, recorder: None, observer: &|_| true };
        engine.run(&dve.model.initial_state(), None).unwrap()
    }

    /// What so many ranks find, and the length of the path to it.
    fn spread<S: Storage>(dve: &Dve, checks: &Checks, limits: Limits, ranks: usize, slots: u64) -> (Exploration, Option<usize>) {
        let builder = VectorTable::<S>::builder(dve.model.layout.words);
        let tables = build(builder, Size { slots, nodes: slots }, &Device::cpu_with_threads(2), ranks).unwrap();
        let source = Interpreted { interpreter: Interpreter::new(&dve.model), checks };
        let mut ranks = Ranks { tables, source: &source, initial: dve.model.initial_state() };
        let exploration = ranks.explore(limits, &|_| true).unwrap();
        let path = exploration.found.as_ref().map(|found| {
            let states = ranks.path(found, NO_LIMITS).unwrap();
            crate::path::replay(&source.interpreter, checks, states, found.violation.clone()).unwrap().steps.len()
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
        let dve = counters(3);
        let mut checks = Checks { deadlocks: true, ..Checks::default() };
        let condition = dve.condition(&Source { name: String::new(), text: "P_0.x + P_1.x + P_2.x == 7".into() }).unwrap().0;
        checks.add(Role::Goal, String::new(), condition);
        for ranks in [1, 2, 3, 5] {
            for keep_going in [false, true] {
                let limits = Limits { keep_going, ..NO_LIMITS };
                // From one slot on, also while the path is looked for.
                let (exploration, path) = spread::<Bucket>(&dve, &checks, limits, ranks, 1);
                let found = exploration.found.unwrap();
                assert_eq!((found.level, found.violation, path), (7, Violation::Condition(0), Some(7)), "{ranks} ranks");
                assert_eq!(exploration.end, if keep_going { End::Complete } else { End::Violation });
                assert_eq!(exploration.counts.states == 216, keep_going);
            }
        }
    }

    #[test]
    fn a_fault_is_reported_whatever_was_found_before() {
        let dve = read(
            "byte x, a[2]; process P { state s; init s; trans
                s -> s { guard x < 3; effect x = x + 1; }, s -> s { guard x == 3; effect a[x] = 1; }; } system async;",
        );
        let mut checks = Checks::default();
        let condition = dve.condition(&Source { name: String::new(), text: "x == 1".into() }).unwrap().0;
        checks.add(Role::Goal, String::new(), condition);
        let (exploration, path) = spread::<Bucket>(&dve, &checks, NO_LIMITS, 3, 1000);
        let found = exploration.found.unwrap();
        assert!(matches!(found.violation, Violation::Fault(_)), "{found:?}");
        assert_eq!((found.level, exploration.end, path), (3, End::Violation, Some(3)));
    }

    #[test]
    fn limits_end_it_on_all_ranks() {
        use crate::stopping::Stop;
        let (dve, checks) = (counters(6), Checks::default());
        let end = |limits| spread::<Bucket>(&dve, &checks, limits, 3, 3000).0;
        let of_states = end(Limits { states: 1000, ..NO_LIMITS });
        assert_eq!(of_states.end, End::States);
        assert!((1000..46_656).contains(&of_states.counts.states) && of_states.counts.waiting > 0, "{of_states:?}");
        // Tables may not grow: every state that they have room for is found, none twice.
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
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn random_models_have_the_same_counts_on_any_number_of_ranks(text in random::model(), ranks in 1..6usize) {
            let dve = read(&text);
            let checks = Checks { deadlocks: true, ..Checks::default() };
            let most = Limits { states: 20_000, ..NO_LIMITS };
            let expected = alone(&dve, &checks, most);
            // One that is not complete, or that has a fault, ends somewhere within a level.
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
}
