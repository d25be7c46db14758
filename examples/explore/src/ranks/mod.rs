//! A search over several ranks: the table is spread over them, and each rank expands the states that it owns.
//!
//! [`search`] is what each rank does, in step with all others. How it expands its states is a [`Worker`]: threads, or its GPU.
//! Ranks are threads of this process, or one of them is this process and the others are processes like it ([`seats`]). Whatever
//! is told of a search in the end is the same on all ranks; rank 0 prints it.

mod agreement;
mod launch;
mod numbers;
mod on_threads;
mod search;
mod seats;
mod worker;

pub use numbers::Numbers;
pub use on_threads::OnThreads;
pub use search::Table;
#[cfg(any(feature = "cuda", test))]
pub use search::Told;
pub use seats::{Plan, Seats};
#[cfg(any(feature = "cuda", test))]
pub use worker::Round;
pub use worker::Worker;

use crate::codegen::on_cpu::Compiled;
use crate::engine::{Exploration, Explorer, Found, Limits, Observer};
use crate::in_process::{OfAnother, first_error, on_all};
use crate::options::{EngineKind, Options};
use crate::progress::Progress;
use crate::report::{Measurements, Time};
use crate::successors::{Interpreted, Successors};
use crate::switching::Switching;
use crate::warnings::Warnings;
use crate::{Ending, Outputs};
use anyhow::Result;
use search::Member;
use std::time::Instant;
use warpset::{Device, Storage};

/// Explores with these tables, of the ranks of this process, and prints what was found.
#[allow(clippy::too_many_arguments)] // all that an exploration depends on
pub fn explore<S: Storage>(
    tables: Vec<Table<S>>,
    options: &Options,
    interpreted: &Interpreted<'_>,
    warnings: &Warnings,
    outputs: Outputs,
    device: &Device,
    (engine, limits): (EngineKind, Limits),
    mut time: Time,
) -> Result<u8> {
    let task = Task { options, limits, interpreted, warnings, outputs, device };
    let start = Instant::now();
    match engine {
        #[cfg(feature = "cuda")]
        EngineKind::Gpu => {
            let progress = Progress::new(options.progress);
            progress.working("compiling for the GPU");
            let ranks = with_workers(tables, |table| crate::gpu::OnGpu::new(table.local(), interpreted), interpreted)?;
            drop(progress);
            time.compile = start.elapsed();
            task.with(ranks, &|| "compiled for the GPU".into(), time)
        }
        EngineKind::Compiled => {
            let compiled = crate::compile(options, interpreted)?;
            time.compile = start.elapsed();
            task.with(on_threads_of::<S, Compiled<'_>>(tables, &compiled, interpreted)?, &|| "compiled".into(), time)
        }
        EngineKind::Auto => {
            let source = Switching::new(interpreted);
            source.during(|| task.with(on_threads_of(tables, &source, interpreted)?, &|| source.engine(), time))
        }
        _ => task.with(on_threads_of(tables, interpreted, interpreted)?, &|| "interpreted".into(), time),
    }
}

fn on_threads_of<'a, S: Storage, X: Successors>(
    tables: Vec<Table<S>>,
    source: &'a X,
    interpreted: &Interpreted<'_>,
) -> Result<Ranks<S, OnThreads<'a, X>>> {
    with_workers(tables, |_| Ok(OnThreads::new(source)), interpreted)
}

/// The ranks with these tables, and with workers that are made all at once.
fn with_workers<S: Storage, W: Worker<S>>(
    tables: Vec<Table<S>>,
    worker: impl Fn(&Table<S>) -> Result<W> + Sync,
    interpreted: &Interpreted<'_>,
) -> Result<Ranks<S, W>> {
    let initial = interpreted.interpreter.model().initial_state();
    let made = on_all(tables, |mut table| {
        // All hear of it before they begin.
        let worker = worker(&table);
        let [failures] = table.sum([u64::from(worker.is_err())])?;
        let worker = worker?;
        if failures > 0 { Err(OfAnother.into()) } else { Ok(Member::new(table, worker, initial.clone())) }
    });
    Ok(Ranks { members: first_error(made)? })
}

struct Task<'a> {
    options: &'a Options,
    /// As of one device.
    limits: Limits,
    interpreted: &'a Interpreted<'a>,
    warnings: &'a Warnings,
    outputs: Outputs,
    device: &'a Device,
}

impl Task<'_> {
    fn with<S: Storage, W: Worker<S>>(self, mut ranks: Ranks<S, W>, engine: &dyn Fn() -> String, mut time: Time) -> Result<u8> {
        let Self { options, limits, interpreted, warnings, outputs, device } = self;
        // What there is of memory is said of a device.
        let (own, others) = ranks.devices()?;
        let limits = Limits { bytes: limits.bytes.saturating_mul((own.len() + others) as u64), ..limits };
        let start = Instant::now();
        let exploration = {
            let progress = Progress::new(options.progress);
            ranks.explore(limits, &|counts| {
                progress.working(&format!("level {}, {} states", counts.levels, counts.states));
                true
            })?
        };
        time.explore = start.elapsed();
        let numbers = ranks.numbers()?;
        let spec = ranks.members[0].table()?.local().spec();
        let engine = format!("{} on {} ranks", engine(), numbers.states.len());
        let ending = Ending {
            options,
            interpreted,
            question: None,
            possible: None,
            warnings,
            outputs,
            device,
            spec,
            stats: numbers.stats.clone(),
            measurements: None,
            ranks: Some(numbers),
            checkpoints: None,
            known: None,
            exploration: &exploration,
        };
        ending.report(&mut ranks, None, limits, engine, time)
    }
}

/// The ranks of this process.
pub struct Ranks<S, W> {
    members: Vec<Member<S, W>>,
}

impl<S: Storage, W: Worker<S>> Ranks<S, W> {
    /// What all ranks of this process give together with those of others, which is the same for all of them.
    fn agreed<T: Send>(&mut self, each: impl Fn(&mut Member<S, W>) -> Result<T> + Sync) -> Result<T> {
        Ok(first_error(on_all(&mut self.members, each))?.swap_remove(0))
    }

    fn numbers(&mut self) -> Result<Numbers> {
        Ok(Numbers { devices: self.devices_text()?, ..self.agreed(Numbers::of)? })
    }

    /// The devices of the ranks of this process, and how many ranks others have, each on a device of its own.
    fn devices(&self) -> Result<(Vec<&Device>, usize)> {
        let mut own: Vec<&Device> = Vec::new();
        for member in &self.members {
            let device = member.table()?.local().device();
            // Ranks on a CPU are all on the same.
            if !own.iter().any(|other| !other.is_gpu() && !device.is_gpu() || *other == device) {
                own.push(device);
            }
        }
        Ok((own, self.members[0].table()?.ranks() - self.members.len()))
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

    fn measurements(&mut self) -> Result<Option<Measurements>> {
        Ok(None)
    }

    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>> {
        self.agreed(|member| member.path(found, limits))
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests;
