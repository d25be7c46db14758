//! Searches over several ranks, as the program runs them: the location of the ranks ([`RankSet`]), and output by rank 0.

mod launch;
mod rank_set;

pub use rank_set::{RankPlan, RankSet};

use crate::compiling::compile;
use crate::encodings::NoRoom;
use crate::ending::{Ending, Extras};
use crate::options::{EngineKind, Options};
use crate::outputs::Outputs;
use crate::progress::ProgressLine;
use crate::reduce::Reduction;
use crate::report::Time;
use anyhow::Result;
use std::time::Instant;
use warpset::{Device, Erased};
use warpset_model::warnings::Warnings;
use warpset_search::exploration::{Explorer, Limits};
#[cfg(feature = "cuda")]
use warpset_search::gpu::OnGpu;
#[cfg(feature = "cuda")]
use warpset_search::ranks::with_workers;
use warpset_search::ranks::{Ranks, Table, Worker, on_threads_of};
use warpset_search::reduced::Reduced;
use warpset_search::successors::{Interpreted, Successors};
use warpset_search::survey::Survey;
use warpset_search::switching::Switching;

/// Explores with the tables of this process's ranks, and prints the results.
#[allow(clippy::too_many_arguments)] // all that an exploration depends on
pub fn explore(
    tables: Vec<Table<Erased>>,
    options: &Options,
    interpreted: &Interpreted<'_>,
    reduction: Option<&Reduction<'_>>,
    warnings: &Warnings,
    outputs: Outputs,
    device: &Device,
    (engine, limits): (EngineKind, Limits),
    mut time: Time,
) -> Result<u8> {
    let task = Task { options, limits, interpreted, reduction, warnings, outputs, device };
    let stubborn = reduction.and_then(|reduction| reduction.stubborn.as_ref());
    let start = Instant::now();
    match engine {
        #[cfg(feature = "cuda")]
        EngineKind::Gpu => {
            let progress = ProgressLine::new(options.display.progress);
            progress.working("compiling for the GPU");
            let ranks = with_workers(tables, |table| OnGpu::new(table.local(), interpreted), interpreted)?;
            drop(progress);
            time.compile = start.elapsed();
            task.search_and_report(ranks, &|| "compiled for the GPU".into(), time)
        }
        EngineKind::Compiled => {
            let compiled = compile(options, interpreted, stubborn)?;
            time.compile = start.elapsed();
            task.on_threads(tables, &compiled, &|| "compiled".into(), time)
        }
        EngineKind::Auto => {
            let source = Switching::new(interpreted, stubborn);
            source.during(|| task.on_threads(tables, &source, &|| source.engine(), time))
        }
        _ => {
            let reduced = stubborn.map(|stubborn| Reduced { interpreted, stubborn });
            let source: &dyn Successors = reduced.as_ref().map_or(interpreted, |reduced| reduced);
            task.on_threads(tables, source, &|| "interpreted".into(), time)
        }
    }
}

struct Task<'a> {
    options: &'a Options,
    /// Limits for one device.
    limits: Limits,
    interpreted: &'a Interpreted<'a>,
    reduction: Option<&'a Reduction<'a>>,
    warnings: &'a Warnings,
    outputs: Outputs,
    device: &'a Device,
}

impl Task<'_> {
    /// Explores by threads of this machine for each rank. One instance serves all sources of successors.
    fn on_threads(
        self,
        tables: Vec<Table<Erased>>,
        source: &dyn Successors,
        engine: &dyn Fn() -> String,
        time: Time,
    ) -> Result<u8> {
        let ranks = on_threads_of(tables, &source, self.interpreted)?;
        self.search_and_report(ranks, engine, time)
    }

    /// Explores with all ranks, and prints the report.
    fn search_and_report<W: Worker<Erased>>(
        self,
        mut ranks: Ranks<Erased, W>,
        engine: &dyn Fn() -> String,
        mut time: Time,
    ) -> Result<u8> {
        let Self { options, limits, interpreted, reduction, warnings, outputs, device } = self;
        // The memory limit is per device.
        let (own, others) = ranks.devices()?;
        let limits = Limits { bytes: limits.bytes.saturating_mul((own.len() + others) as u64), ..limits };
        let start = Instant::now();
        let exploration = {
            let progress = ProgressLine::new(options.display.progress);
            ranks.explore(limits, &|counts| {
                progress.working(&format!("level {}, {} states", counts.levels, counts.states));
                true
            })?
        };
        time.explore = start.elapsed();
        let model = interpreted.interpreter.model();
        // A limit of time or a signal may have ended the exploration: its states are still evaluated, within a grace period.
        let limits = limits.of_evaluation();
        if let Some(found) = exploration.found.as_ref().filter(|found| NoRoom::is_of(&found.violation)) {
            return Err(NoRoom::of(model, &found.violation, || ranks.path(found, limits)).into());
        }
        let start = Instant::now();
        // The tokens and firings of a reduced search are not those of the net.
        let is_reduced = reduction.is_some_and(|reduction| reduction.stubborn.is_some());
        let survey = Survey::of(model).filter(|_| !is_reduced);
        let surveyed = survey.map(|survey| ranks.survey(&survey, limits.stop)).transpose()?;
        time.survey = start.elapsed();
        let numbers = ranks.numbers()?;
        let spec = ranks.spec()?;
        let engine = format!("{} on {} ranks", engine(), numbers.states.len());
        let ending = Ending {
            options,
            text: None,
            coverage: None,
            interpreted,
            conclusion: None,
            answer: None,
            branched: None,
            warnings,
            outputs,
            device,
            spec,
            stats: numbers.stats.clone(),
            extras: Extras::default(),
            ranks: Some(numbers),
            checkpoints: None,
            known: None,
            reduction,
            exploration: &exploration,
            surveyed,
        };
        ending.report(&mut ranks, None, limits, engine, time)
    }
}
