//! A search over several ranks: the table is distributed over them, and each rank expands the states that it owns.
//!
//! All ranks execute the steps of search.rs together. A [`Worker`] expands the states of its rank by threads or on the rank's
//! GPU. Either all ranks are threads of this process, or one rank is this process and the others are other processes. All ranks
//! compute the same result.

mod agreement;
mod numbers;
mod on_threads;
mod search;
mod worker;

pub use numbers::Numbers;
pub use on_threads::OnThreads;
pub use search::{RankNumbers, Table};
pub use worker::{Round, Worker};

use crate::exploration::{Exploration, Explorer, Found, Limits, Observer};
use crate::successors::{Interpreted, Successors};
use crate::survey::{Survey, Surveyed};
use agreement::{NUMBERS, Stops, of_each};
use anyhow::Result;
use search::Member;
use warpset::{Device, Spec, Storage};
use warpset_support::in_process::{OfAnother, first_error, on_all};
use warpset_support::stopping::Stop;

/// Creates ranks with these tables. Threads expand the states.
pub fn on_threads_of<'a, S: Storage, X: Successors>(
    tables: Vec<Table<S>>,
    source: &'a X,
    interpreted: &Interpreted<'_>,
) -> Result<Ranks<S, OnThreads<'a, X>>> {
    with_workers(tables, |_| Ok(OnThreads::new(source)), interpreted)
}

/// Creates ranks with these tables and workers. All workers are created at the same time.
pub fn with_workers<S: Storage, W: Worker<S>>(
    tables: Vec<Table<S>>,
    worker: impl Fn(&Table<S>) -> Result<W> + Sync,
    interpreted: &Interpreted<'_>,
) -> Result<Ranks<S, W>> {
    let initial = interpreted.interpreter.model().initial_state();
    let made = on_all(tables, |mut table| {
        // Tell every rank about a failure before any rank begins.
        let worker = worker(&table);
        let [failures] = table.sum([u64::from(worker.is_err())])?;
        let worker = worker?;
        if failures > 0 { Err(OfAnother.into()) } else { Ok(Member::new(table, worker, initial.clone())) }
    });
    Ok(Ranks { members: first_error(made)? })
}

/// The ranks of this process.
pub struct Ranks<S, W> {
    members: Vec<Member<S, W>>,
}

impl<S: Storage, W: Worker<S>> Ranks<S, W> {
    /// Runs `each` on all ranks of this process, together with the ranks of other processes, and returns the common result.
    fn agreed<T: Send>(&mut self, each: impl Fn(&mut Member<S, W>) -> Result<T> + Sync) -> Result<T> {
        Ok(first_error(on_all(&mut self.members, each))?.swap_remove(0))
    }

    /// The [`Numbers`] of all ranks.
    pub fn numbers(&mut self) -> Result<Numbers> {
        Ok(Numbers { devices: self.devices_text()?, ..self.agreed(Numbers::of)? })
    }

    /// Figures of a net over the states of all ranks. Collective: all processes must call it.
    pub fn survey(&mut self, survey: &Survey, stop: fn() -> Option<Stop>) -> Result<Surveyed> {
        self.agreed(|member| {
            let own = member.table()?.local();
            let own = survey.run(own, stop);
            // Tell every rank about a failure before any rank continues.
            let [failures] = member.collect(|table| table.sum([u64::from(own.is_err())]))?;
            let mut all = own?;
            if failures > 0 {
                return Err(OfAnother.into());
            }
            let most = |all: Vec<u64>| all.into_iter().max().unwrap_or(0);
            all.max_in_place = most(member.collect(|table| of_each(table, all.max_in_place))?);
            all.max_tokens = most(member.collect(|table| of_each(table, all.max_tokens))?);
            [all.states] = member.collect(|table| table.sum([all.states]))?;
            let mut firings = std::mem::take(&mut all.firings);
            for part in firings.chunks_mut(NUMBERS) {
                let mut own = [0u64; NUMBERS];
                own.iter_mut().zip(&*part).for_each(|(number, firings)| *number = *firings);
                let sums = member.collect(|table| table.sum(own))?;
                part.iter_mut().zip(sums).for_each(|(firings, sum)| *firings = sum);
            }
            let own = Stops::of_reason(all.stopped);
            all.stopped = Stops::of(member.collect(|table| table.sum(own.numbers()))?);
            Ok(Surveyed { firings, ..all })
        })
    }

    /// The devices of the ranks of this process, and the number of ranks in other processes. Each rank of another process has its
    /// own device.
    pub fn devices(&self) -> Result<(Vec<&Device>, usize)> {
        let mut own: Vec<&Device> = Vec::new();
        for member in &self.members {
            let device = member.table()?.local().device();
            // All ranks on a CPU use the same device.
            if !own.iter().any(|other| !other.is_gpu() && !device.is_gpu() || *other == device) {
                own.push(device);
            }
        }
        Ok((own, self.members[0].table()?.ranks() - self.members.len()))
    }

    /// The specification that the tables of all ranks share.
    pub fn spec(&self) -> Result<Spec> {
        Ok(self.members[0].table()?.local().spec())
    }

    fn devices_text(&self) -> Result<String> {
        let (own, others) = self.devices()?;
        let own = own.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ");
        Ok(match others {
            0 => own,
            1 => format!("{own} + that of another process"),
            _ => format!("{own} + those of {others} other processes"),
        })
    }
}

impl<S: Storage, W: Worker<S>> Explorer for Ranks<S, W> {
    fn explore(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration> {
        self.agreed(|member| member.explore(limits, observer))
    }

    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>> {
        self.agreed(|member| member.path(found, limits))
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests;
