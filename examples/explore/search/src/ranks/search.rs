//! One rank's part of a search, in step with all other ranks.
//!
//! All ranks execute the same steps: each expands a part of its states of the level, offers the successors to all ranks, and adds
//! the states that its own table has stored meanwhile to the next level. With its offer, each rank sends its counts. All ranks
//! get the same sums, so all make the same decision whether to continue, grow or stop. Counts, levels and the level of a
//! violation are therefore those of a search by one rank. The number of new states in a level gives the size of the next level,
//! so a level of one round costs only one offer.
//!
//! No rank waits for a rank that has failed. Between two collective calls, a failed rank keeps its error and reports it with the
//! next sums. A rank that cannot do that drops its table, which ends the connection for the others (`Member::with`).

use super::agreement::{Stops, least_of, of_each};
use super::worker::{Round, Worker};
use crate::exploration::{Counts, End, Exploration, Found, LevelSizes, Limits, Observer, Standing, Violating};
use crate::growth::{Alike, GROW_AT_FILL, if_it_fits};
use crate::path::explored_again;
use anyhow::{Context, Result, ensure};
use warpset::cluster;
use warpset::{Error, Storage, Words};
use warpset_support::in_process::OfAnother;

pub type Table<S> = cluster::Table<Words, S>;

/// A rank: its part of the set of states, and the worker that expands the states that the rank owns.
pub struct Member<S, W> {
    /// The rank's table; `None` after an error that the rank could not report to the other ranks.
    table: Option<Table<S>>,
    pub worker: W,
    initial: Vec<u32>,
}

/// Numbers that each rank sends with an offer, or their sums over all ranks.
pub type RankNumbers = [u64; 15];

/// Sums over all ranks, between two rounds.
struct Sums {
    remaining: u64,
    list_bytes: u64,
    table_bytes: u64,
    slots: u64,
    stop: Option<warpset_support::stopping::Stop>,
    /// Number of ranks that lack memory for their lists.
    stuck: u64,
}

/// Reasons of this rank, other than violations, to stop all ranks.
#[derive(Default)]
struct State {
    failed: Option<anyhow::Error>,
    is_stuck: bool,
}

impl<S: Storage, W: Worker<S>> Member<S, W> {
    pub fn new(table: Table<S>, worker: W, initial: Vec<u32>) -> Self {
        Self { table: Some(table), worker, initial }
    }

    pub fn table(&self) -> Result<&Table<S>> {
        self.table.as_ref().context("an earlier error closed the connection of the ranks")
    }

    /// Runs `work` with the table. After an error or a panic, drops the table, so that the other ranks notice.
    fn with<T>(&mut self, work: impl FnOnce(&mut Table<S>, &mut W, &[u32]) -> Result<T>) -> Result<T> {
        let mut table = self.table.take().context("an earlier error closed the connection of the ranks")?;
        let done = work(&mut table, &mut self.worker, &self.initial)?;
        self.table = Some(table);
        Ok(done)
    }

    /// Explores from the initial state. All ranks return the same result; only rank 0 calls its observer.
    pub fn explore(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration> {
        self.with(|table, worker, initial| run(table, worker, initial, limits, observer, false))
    }

    /// Returns the states of a shortest path to `found`; all ranks return the same path. Clears the tables. Explores the levels
    /// before `found` again, while each rank keeps the states that it stores, of as many levels as fit its memory. Then finds the
    /// path backwards from its last state, over all ranks, and explores again for the levels that a rank has not kept.
    pub fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>> {
        self.with(|table, worker, initial| {
            let (mut states, mut level) = (vec![found.state.clone()], found.level as usize);
            while level > 0 {
                explore_levels(table, worker, initial, level as u64, limits)?;
                // The last of the levels is always kept, so that each exploration finds at least one state.
                let last = level;
                while level > 0 && all_have_kept(table, worker, level - 1)? {
                    level -= 1;
                    let state = states.last().expect("it begins with one");
                    states.push(predecessor(table, worker, level, state, limits)?);
                }
                ensure!(level < last, "a rank has lost states of level {}: please report this as a bug", level - 1);
            }
            states.reverse();
            Ok(states)
        })
    }

    /// Runs a collective call, which all ranks must make, and returns its result.
    pub fn collect<T>(&mut self, collective: impl FnOnce(&mut Table<S>) -> warpset::Result<T>) -> Result<T> {
        self.with(|table, _, _| Ok(collective(table)?))
    }
}

/// Explores the first `count` levels. Repeats this until no table grows meanwhile, because growth makes references stale.
fn explore_levels<S: Storage, W: Worker<S>>(
    table: &mut Table<S>,
    worker: &mut W,
    initial: &[u32],
    count: u64,
    limits: Limits,
) -> Result<()> {
    loop {
        table.clear()?;
        let [slots] = table.sum([table.local().slots()])?;
        let exploration = run(table, worker, initial, limits.of_levels(count - 1), &|_| true, true)?;
        explored_again(exploration.end)?;
        if [slots] == table.sum([table.local().slots()])? {
            return Ok(());
        }
    }
}

/// Whether each rank has kept all of its states of `level`.
fn all_have_kept<S: Storage, W: Worker<S>>(table: &mut Table<S>, worker: &W, level: usize) -> Result<bool> {
    let [lost] = table.sum([u64::from(!worker.has_kept(level))])?;
    Ok(lost == 0)
}

/// Finds the least state of `level` on all ranks that has `state` as a successor.
fn predecessor<S: Storage, W: Worker<S>>(
    table: &mut Table<S>,
    worker: &mut W,
    level: usize,
    state: &[u32],
    limits: Limits,
) -> Result<Vec<u32>> {
    let own = worker.predecessor(table, level, state, limits);
    // A stop is not a failure: all ranks get its reason.
    let stops = Stops::own(limits);
    let failed = u64::from(own.is_err() && !stops.are_any());
    let [interrupted, timed_out, nanoseconds, failures] = table.sum(stops.with([failed]))?;
    if let Some(stop) = Stops::of([interrupted, timed_out, nanoseconds]) {
        return Err(stop.error("while the path was followed back").into());
    }
    let own = own?;
    if failures > 0 {
        return Err(OfAnother.into());
    }
    least_of(table, own.as_deref())?
        .context("a state has no predecessor in the level before its own: please report this as a bug")
}

/// Searches from the initial state, with empty tables. If `keep` is set, keeps the states of all levels for later calls.
fn run<S: Storage, W: Worker<S>>(
    table: &mut Table<S>,
    worker: &mut W,
    initial: &[u32],
    limits: Limits,
    observer: &Observer,
    keep: bool,
) -> Result<Exploration> {
    let (counts, violating, state) = (Counts::default(), Violating::default(), State::default());
    let mut search = RankSearch { limits, counts, found: None, list_bytes: 0, violating, state };
    let cleared = worker.clear(table, keep, limits.bytes / table.ranks() as u64);
    search.keep_error(cleared);
    let most_offered = of_each(table, worker.most_offered())?;
    worker.offer_at_most(most_offered.into_iter().min().unwrap_or(u64::MAX));
    let first = if table.rank() == 0 { initial } else { &[] };
    let mut sums = loop {
        let put = worker.put_first(table, first)?;
        let sums = search.agree(table, worker)?;
        search.counts.states += put.new;
        if put.full == 0 {
            break sums;
        }
        if sums.stuck > 0 || !search.grow(table, worker, &sums)? {
            search.agree(table, worker)?;
            return Ok(Exploration::of_nothing());
        }
    };
    worker.begin_level();
    sums.remaining = search.counts.states;
    let mut level_sizes = LevelSizes::default();
    let end = 'levels: loop {
        let (mut has_begun, mut states_of_next) = (false, 0);
        loop {
            if table.rank() == 0 && has_begun {
                // Ignore the result: the observer of one rank cannot end the search of all ranks.
                observer(&search.counts);
            }
            // A violation may end the search with this level: then only missing memory ends it earlier, or a stop.
            let violated = search.violated();
            let counts = &mut search.counts;
            let is_out_of_memory = sums.stuck > 0;
            let next_level = (!has_begun).then_some((counts.levels, sums.remaining));
            if let Some(end) = limits.end_of(&Standing { is_out_of_memory, next_level, ..Standing::default() }) {
                break 'levels violated.unwrap_or(end);
            }
            if !has_begun {
                has_begun = true;
                counts.levels += 1;
                counts.widest_level = counts.widest_level.max(sums.remaining);
                level_sizes.add(sums.remaining);
            }
            counts.waiting = sums.remaining;
            if sums.remaining == 0 {
                break;
            }
            let bytes = sums.table_bytes.saturating_add(sums.list_bytes);
            let states = Some(counts.states).filter(|_| violated.is_none());
            if let Some(end) = limits.end_of(&Standing { states, bytes, stop: sums.stop, ..Standing::default() }) {
                break 'levels violated.unwrap_or(end);
            }
            if counts.states as f64 > sums.slots as f64 * GROW_AT_FILL {
                // If the tables cannot grow, the search fills them until they reject states.
                search.grow(table, worker, &sums)?;
            }
            let mut round = search.expand(table, worker);
            loop {
                let own = search.own(table, worker, &round);
                let (put, summed) = worker.offer(table, own)?;
                search.counts.states += put.new;
                states_of_next += put.new;
                sums = search.receive(table, worker, &std::mem::take(&mut round), summed)?;
                if put.full == 0 {
                    break;
                }
                if sums.stuck > 0 || !search.grow(table, worker, &sums)? {
                    search.agree(table, worker)?;
                    break 'levels search.violated().unwrap_or(End::Memory);
                }
            }
        }
        if let Some(end) = search.violated() {
            break end;
        }
        worker.begin_level();
        // All other sums are those of the last offer.
        sums = Sums { remaining: states_of_next, ..sums };
    };
    let RankSearch { counts, found, list_bytes, violating, .. } = search;
    Ok(Exploration { counts, end, found, list_bytes, level_sizes, violating })
}

/// Sums of the numbers that all ranks have, a piece at a time. The ranks may have lists of different lengths.
fn sum_of_all<S: Storage>(table: &mut Table<S>, own: &[u64]) -> Result<Vec<u64>> {
    const PIECE: usize = 8;
    let mut all = Vec::new();
    loop {
        let first = all.len();
        let of = |at: usize| own.get(first + at).copied().unwrap_or(0);
        let mut piece = [0; PIECE + 1];
        (0..PIECE).for_each(|at| piece[at] = of(at));
        piece[PIECE] = u64::from(own.len() > first + PIECE);
        let sums = table.sum(piece)?;
        all.extend_from_slice(&sums[..PIECE]);
        if sums[PIECE] == 0 {
            return Ok(all);
        }
    }
}

/// State of a search on one rank. It is equal on all ranks, except for `state`.
struct RankSearch {
    limits: Limits,
    counts: Counts,
    found: Option<Found>,
    list_bytes: u64,
    violating: Violating,
    state: State,
}

impl RankSearch {
    /// Adds up the numbers of all ranks when they have nothing to offer.
    fn agree<S: Storage, W: Worker<S>>(&mut self, table: &mut Table<S>, worker: &mut W) -> Result<Sums> {
        let round = Round::default();
        let summed = table.sum(self.own(table, worker, &round))?;
        self.receive(table, worker, &round, summed)
    }

    /// The numbers that this rank sends after a round.
    fn own<S: Storage, W: Worker<S>>(&self, table: &Table<S>, worker: &W, round: &Round) -> RankNumbers {
        let own = [
            worker.remaining(),
            worker.list_bytes(),
            table.local().bytes(),
            table.local().slots(),
            u64::from(round.found.is_some()),
            u64::from(round.found.as_ref().is_some_and(Found::is_fault)),
            round.transitions,
            round.deadlocks,
            round.overflows,
            u64::from(round.violating.iter().any(|states| *states > 0)),
            u64::from(self.state.failed.is_some()),
            u64::from(self.state.is_stuck || worker.lacks_memory()),
        ];
        Stops::own(self.limits).with(own)
    }

    /// Takes the sums of the numbers of all ranks after a round. If ranks have found violations to report, shares the first to
    /// report with all.
    fn receive<S: Storage, W: Worker<S>>(
        &mut self,
        table: &mut Table<S>,
        worker: &mut W,
        round: &Round,
        [
            interrupted,
            timed_out,
            nanoseconds,
            remaining,
            list_bytes,
            table_bytes,
            slots,
            violations,
            faults,
            transitions,
            deadlocks,
            overflows,
            violating,
            failures,
            stuck,
        ]: RankNumbers,
    ) -> Result<Sums> {
        if failures > 0 {
            return Err(self.state.failed.take().unwrap_or_else(|| OfAnother.into()));
        }
        self.counts.transitions += transitions;
        self.counts.deadlocks += deadlocks;
        self.counts.overflows += overflows;
        self.list_bytes = self.list_bytes.max(list_bytes);
        let level = self.counts.levels.saturating_sub(1);
        let of_conditions = if violating > 0 { sum_of_all(table, &round.violating)? } else { Vec::new() };
        self.violating.add(level, &of_conditions, deadlocks);
        if violations > 0 {
            let own = round.found.as_ref().filter(|found| faults == 0 || found.is_fault());
            self.found = Some(self.first_found(table, worker, own)?);
        }
        let stop = Stops::of([interrupted, timed_out, nanoseconds]);
        Ok(Sums { remaining, list_bytes, table_bytes, slots, stop, stuck })
    }

    /// Returns the end of the search if a violation has ended it. `found` keeps violations of earlier exchanges: if the tables
    /// are full, ranks exchange numbers several times in a round.
    fn violated(&self) -> Option<End> {
        self.limits.end_by(self.found.as_ref())
    }

    /// The violation of the least state that a rank has.
    fn first_found<S: Storage, W: Worker<S>>(&self, table: &mut Table<S>, worker: &mut W, own: Option<&Found>) -> Result<Found> {
        let state = least_of(table, own.map(|found| &*found.state))?.context("a violation was counted, but no rank has it")?;
        let violation = worker
            .look_at(&state)
            .context("the violation found by another rank is not one on this rank: please report this as a bug")?;
        Ok(Found { violation, state, level: self.counts.levels - 1 })
    }

    /// Expands some states of the level. Keeps a violation only if it replaces the one found before. An error is reported with
    /// the next sums.
    fn expand<S: Storage, W: Worker<S>>(&mut self, table: &Table<S>, worker: &mut W) -> Round {
        let level = self.counts.levels - 1;
        let only_faults = self.found.as_ref().is_some_and(|found| found.level < level);
        let round = self.keep_error(worker.expand(table, level, only_faults)).unwrap_or_default();
        Round { found: round.found.filter(|found| found.replaces(self.found.as_ref())), ..round }
    }

    /// Grows all tables by the same factor, if all ranks have memory for that.
    fn grow<S: Storage, W: Worker<S>>(&mut self, table: &mut Table<S>, worker: &mut W, sums: &Sums) -> Result<bool> {
        let Limits { bytes, is_reserved, .. } = self.limits;
        let (eighths, fixed) = worker.least_lists();
        let alike = Alike {
            tables: sums.table_bytes,
            lists: sums.list_bytes,
            least_of_slots: sums.slots.saturating_mul(eighths) / 8,
            least: fixed * table.ranks() as u64,
        };
        let Some(factor) = alike.factor_within(bytes, is_reserved) else { return Ok(false) };
        let ready = self.keep_error(worker.prepare_growth(table)).unwrap_or(false);
        let [ready] = table.sum([u64::from(ready)])?;
        let grown = match ready < table.ranks() as u64 {
            true => false,
            false => match table.reserve_total((factor * table.local().slots() as f64) as u64) {
                // Another rank lacks memory. The table of this rank may nevertheless have grown.
                Err(Error::Rank { .. }) => false,
                other => if_it_fits(other)?.is_some(),
            },
        };
        match self.keep_error(worker.finish_growth(table)) {
            Some(true) => {}
            Some(false) => self.state.is_stuck = true,
            None => {}
        }
        Ok(grown)
    }

    /// Keeps an error of this rank, which is then reported with the next sums.
    fn keep_error<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.state.failed = Some(error)).ok()
    }
}
