//! A search with all its inputs: the choice of the engine, and the search in one table.

use crate::compiling::compile;
use crate::encodings::NoRoom;
use crate::ending::{Ending, Extras};
use crate::export::{Export, Form};
use crate::first_table::{NeedsSmaller, Size};
use crate::options::{EngineKind, Options};
use crate::outputs::Outputs;
use crate::progress::{ProgressLine, beside};
use crate::properties::Properties;
use crate::record::Recorder;
use crate::reduce::Reduction;
use crate::report::Time;
use crate::spread::{self, RankSet};
use anyhow::{Result, ensure};
use std::time::Instant;
use warpset::{Device, Erased, Storage, TableBuilder, VectorTable, Words};
use warpset_model::checks::Checks;
use warpset_model::interpreter::Interpreter;
use warpset_model::ir::Model;
use warpset_model::language::Text;
use warpset_model::trace;
use warpset_model::warnings::Warnings;
use warpset_search::checkpoint::{Checkpoints, Opened, Resumed};
use warpset_search::coverage::Coverage;
use warpset_search::ctl::{Branching, BranchingTime};
use warpset_search::engine;
use warpset_search::exploration::{Counts, End, Limits, memory_for};
#[cfg(feature = "cuda")]
use warpset_search::gpu;
use warpset_search::liveness::check::{Liveness, Question};
use warpset_search::liveness::possible::{Possibilities, Possible};
use warpset_search::measurements::occupancy;
use warpset_search::numbering::Numbering;
use warpset_search::parents::Parents;
use warpset_search::ranks;
use warpset_search::reduced::Reduced;
use warpset_search::successors::{Interpreted, Successors};
use warpset_search::survey::Survey;
use warpset_search::switching::Switching;
use warpset_search::threads::Threads;
use warpset_support::memory;
use warpset_support::stopping;

/// Why ranks answer no questions about runs.
const ONE_TABLE: &str = "a property of runs is checked in one table on one device: it cannot be combined with ranks";

/// The inputs of a search, and its checkpoints.
pub struct Task<'a> {
    pub options: &'a Options,
    pub text: &'a Text,
    pub model: &'a Model,
    pub checks: &'a Checks,
    pub question: Option<&'a Question>,
    pub possible: Option<&'a Possible>,
    pub branching: Option<&'a Branching>,
    /// Properties to answer in place of a report.
    pub properties: Option<&'a Properties>,
    pub warnings: &'a Warnings,
    pub outputs: Outputs,
    pub device: &'a Device,
    /// The ranks, if there are several.
    pub rank_set: Option<RankSet>,
    pub checkpoints: Option<Checkpoints>,
    /// The search to resume.
    pub opened: Option<Opened>,
    pub reduction: Option<Reduction<'a>>,
    /// Whether the search ends with [`NeedsSmaller`] if it fills the memory.
    pub may_be_smaller: bool,
}

impl Task<'_> {
    /// Makes the table, or the tables of the ranks, and explores. From then on no code is compiled for each kind of table: that
    /// would take three quarters of the time in which this program is built.
    pub fn explore<S: Storage>(mut self, builder: TableBuilder<Words, S>, size: Size, mut time: Time) -> Result<u8> {
        let Self { options, model, checks, question, possible, device, .. } = self;
        let start = Instant::now();
        let engine = options.engine_on(device, self.rank_set.is_some())?;
        let interpreted = Interpreted::new(Interpreter::new(model), checks);
        // Compute limits before the table exists, because its memory counts but is no longer free afterwards.
        // A table that takes the memory early leaves none for states and steps, and for sets of states.
        let is_of_paths = self.branching.is_some() || self.properties.is_some_and(Properties::has_branching);
        let limits = limits(options, device);
        let limits = Limits { is_reserved: limits.is_reserved && !is_of_paths, ..limits };
        if let Some(rank_set) = self.rank_set.take() {
            let is_about_runs = question.is_some() || possible.is_some() || self.branching.is_some();
            ensure!(!is_about_runs, "{ONE_TABLE}");
            let tables = rank_set.build(&builder, size.slots)?.into_iter().map(ranks::Table::erased).collect();
            time.table += start.elapsed();
            let outputs = self.outputs;
            let reduction = self.reduction.as_ref();
            return spread::explore(
                tables,
                options,
                &interpreted,
                reduction,
                self.warnings,
                outputs,
                device,
                (engine, limits),
                time,
            );
        }
        let (table, resumed) = match self.opened.take() {
            Some(opened) => opened.load(device, &interpreted, &limits).map(|(table, resumed)| (table, Some(resumed)))?,
            None => (builder.capacity(size.slots).build(device)?, None),
        };
        time.table += start.elapsed();
        self.search(&table.erased(), resumed, &interpreted, (engine, limits), time)
    }

    /// Explores with one table, by the engine.
    fn search(
        self,
        table: &VectorTable<Erased>,
        resumed: Option<Resumed>,
        interpreted: &Interpreted<'_>,
        (engine, limits): (EngineKind, Limits),
        mut time: Time,
    ) -> Result<u8> {
        let Self { options, text, model, question, possible, properties, .. } = self;
        let mut run = Run {
            options,
            text,
            limits,
            table,
            interpreted,
            question,
            possible,
            branching: self.branching,
            properties,
            warnings: self.warnings,
            outputs: self.outputs,
            checkpoints: self.checkpoints.as_ref(),
            known: resumed.as_ref().map(|resumed| resumed.counts.states),
            resumed,
            reduction: self.reduction.as_ref(),
            may_be_smaller: self.may_be_smaller,
        };
        let form = options.outputs.export.as_deref().map(Form::of).transpose()?.filter(|form| *form != Form::Dot);
        if let Some((form, output)) = form.and_then(|form| Some((form, run.outputs.export.take()?))) {
            let export = Export::new(model, form, output)?;
            let mut numbering = Numbering::new(table, interpreted, export);
            let extras = |numbering: &mut Numbering<_, Export>| {
                Ok(Extras { exported: numbering.consumer.exported.take(), ..Extras::default() })
            };
            return run.search_and_report(&mut numbering, extras, None, &|| "interpreted".into(), time);
        }
        let stubborn = self.reduction.as_ref().and_then(|reduction| reduction.stubborn.as_ref());
        let start = Instant::now();
        match engine {
            #[cfg(feature = "cuda")]
            EngineKind::Gpu => {
                let progress = ProgressLine::new(options.display.progress);
                progress.working("compiling for the GPU");
                let watched = question.and_then(Question::to_watch);
                let (resumes, most_bytes) = (run.resumed.is_some(), run.limits.bytes);
                let sources =
                    gpu::Sources { timed: options.measures.gpu_time, stubborn, ..gpu::Sources::new(model, interpreted.checks) };
                let new = || gpu::GpuEngine::new(table, interpreted, sources, watched, resumes, most_bytes);
                let engine = match stubborn {
                    None => Some(new()?),
                    Some(stubborn) if gpu::can_reduce(stubborn) => gpu::unless_memory_ends(new())?,
                    Some(_) => None,
                };
                drop(progress);
                time.compile = start.elapsed();
                let Some(mut engine) = engine else {
                    let source = Switching::new(interpreted, stubborn);
                    let engine = || format!("{}, since the GPU has no memory for the reduction's tables", source.engine());
                    return source.during(|| run.on_threads(&source, &engine, time));
                };
                engine.keep_in(run.checkpoints, run.resumed.take());
                let extras =
                    |engine: &mut gpu::GpuEngine<_>| Ok(Extras { measurements: engine.measurements()?, ..Extras::default() });
                run.search_and_report(&mut engine, extras, None, &|| "compiled for the GPU".into(), time)
            }
            EngineKind::Compiled => {
                let compiled = compile(options, interpreted, stubborn)?;
                time.compile = start.elapsed();
                run.on_threads(&compiled, &|| "compiled".into(), time)
            }
            EngineKind::Auto => {
                let source = Switching::new(interpreted, stubborn);
                source.during(|| run.on_threads(&source, &|| source.engine(), time))
            }
            _ => match stubborn {
                Some(stubborn) => {
                    let source = Reduced { interpreted, stubborn };
                    run.on_threads(&source, &|| "interpreted".into(), time)
                }
                None => run.on_threads(interpreted, &|| "interpreted".into(), time),
            },
        }
    }
}

fn limits(options: &Options, device: &Device) -> Limits {
    // A GPU reports an error when its memory is exhausted.
    let free = if device.is_gpu() { u64::MAX } else { memory::free_memory() / 5 * 4 };
    let (states, bytes) = (options.limits.max_states.unwrap_or(u64::MAX), options.table.memory.unwrap_or(free));
    // States at the greatest depth are still expanded, since this is how they are checked.
    let levels = options.limits.max_depth.map_or(u64::MAX, |depth| depth.saturating_add(1));
    let is_reserved = options.table.memory.is_some();
    Limits { states, levels, bytes, is_reserved, keep_going: options.checks.keep_going, stop: stopping::asked }
}

/// An exploration and the data for its report.
struct Run<'a> {
    options: &'a Options,
    text: &'a Text,
    limits: Limits,
    table: &'a VectorTable<Erased>,
    interpreted: &'a Interpreted<'a>,
    question: Option<&'a Question>,
    possible: Option<&'a Possible>,
    branching: Option<&'a Branching>,
    properties: Option<&'a Properties>,
    warnings: &'a Warnings,
    outputs: Outputs,
    checkpoints: Option<&'a Checkpoints>,
    resumed: Option<Resumed>,
    /// Number of states that a resumed search had found before.
    known: Option<u64>,
    reduction: Option<&'a Reduction<'a>>,
    may_be_smaller: bool,
}

impl Run<'_> {
    /// Explores by threads of this machine; the table may be on any device.
    fn on_threads(mut self, source: &dyn Successors, engine: &dyn Fn() -> String, time: Time) -> Result<u8> {
        let most_bytes = self.options.outputs.record_bytes;
        let recorder = self.options.outputs.record.as_ref().map(|_| Recorder::new(source.width(), most_bytes)).transpose()?;
        let initial = self.interpreted.interpreter.model().initial_state();
        let automaton = self.question.and_then(Question::to_watch);
        let Checks { conditions, deadlocks, .. } = self.interpreted.checks;
        let looks_for_some = *deadlocks || !conditions.is_empty();
        let add = recorder.as_ref().map(|recorder| |vectors: &[u32]| recorder.add(vectors));
        let mut threads = Threads {
            recorder: add.as_ref().map(|add| add as &engine::Recorder),
            automaton,
            checkpoints: self.checkpoints,
            resumed: self.resumed.take(),
            parents: (self.options.table.parents || looks_for_some).then(|| Parents::new(self.options.table.parents)),
            ..Threads::new(self.table, &source, initial)
        };
        self.search_and_report(&mut threads, |_| Ok(Extras::default()), recorder.as_ref(), engine, time)
    }

    /// Explores, answers the questions, and prints the report. `extras` is called after the exploration; then `engine` describes
    /// how successors were computed.
    fn search_and_report<E: Liveness + Possibilities + BranchingTime>(
        self,
        explorer: &mut E,
        extras: impl FnOnce(&mut E) -> Result<Extras>,
        recorder: Option<&Recorder>,
        engine: &dyn Fn() -> String,
        mut time: Time,
    ) -> Result<u8> {
        let Self { options, text, limits, table, interpreted, question, possible, branching, properties, .. } = self;
        let Self { warnings, outputs, checkpoints, known, .. } = self;
        let (device, reduction) = (table.device(), self.reduction);
        let start = Instant::now();
        let exploration = {
            let progress = ProgressLine::new(options.display.progress).within(limits);
            explorer.explore(limits, &|counts: &Counts| {
                progress.set(counts, table);
                properties.is_none_or(|properties| properties.goes_on(counts, table, interpreted.interpreter.model()))
            })?
        };
        time.explore = start.elapsed();
        if self.may_be_smaller && exploration.end == End::Memory && exploration.found.is_none() {
            return Err(NeedsSmaller.into());
        }
        // A limit of time or a signal may have ended the exploration: its states are still evaluated, within a grace period.
        let limits = limits.of_evaluation();
        let model = interpreted.interpreter.model();
        if let Some(found) = exploration.found.as_ref().filter(|found| NoRoom::is_of(&found.violation)) {
            if let Some(properties) = properties {
                properties.keep_decided(table, interpreted, &exploration, limits)?;
            }
            return Err(NoRoom::of(model, &found.violation, || explorer.path(found, limits)).into());
        }
        let start = Instant::now();
        // Questions about runs are answered separately. The tokens and firings of a reduced search are not those of the net.
        let is_reduced = reduction.is_some_and(|reduction| reduction.stubborn.is_some());
        let is_of_states = question.is_none() && possible.is_none() && branching.is_none() && properties.is_none();
        let survey = Survey::of(model).filter(|_| is_of_states && !is_reduced);
        let surveyed = survey.map(|survey| survey.run(table, limits.stop)).transpose()?;
        time.survey = start.elapsed();
        let (stats, mut extras) = (occupancy(table)?, extras(explorer)?);
        let lists = beside(table, exploration.list_bytes);
        extras.states_in_memory = limits.of_table(table, lists).ok().and_then(|limit| table.vectors_within(limit).ok());
        extras.memory_for_twice = memory_for(table, lists, 2 * exploration.counts.states).ok().flatten();
        let (spec, engine, exploration) = (table.spec(), engine(), &exploration);
        let interpreter = &interpreted.interpreter;
        // The search for a path clears the table, so the states are counted before.
        let counts = options.measures.unreached || options.measures.coverage.is_some();
        let coverage = counts.then(|| {
            let progress = ProgressLine::new(options.display.progress);
            progress.working("counting coverage");
            Coverage::of(table, interpreter, limits)
        });
        let conclusion = match question {
            Some(question) => {
                let progress = ProgressLine::new(options.display.progress);
                progress.working("searching for accepting cycles");
                Some((question, question.conclude(explorer, interpreter, exploration, limits)?))
            }
            None => None,
        };
        if let Some(properties) = properties {
            let conclusion = conclusion.as_ref().map(|(_, conclusion)| conclusion);
            properties.conclude(table, interpreted, exploration, conclusion, limits)?;
            if let Some((branching, numbers)) = properties.branching(model) {
                let outcome = explorer.branch(&branching, interpreter, exploration, limits);
                properties.keep_branched(&branching, &numbers, &outcome, exploration.end, model);
            }
            if let Some(found) = exploration.found.as_ref().filter(|_| properties.wants_path()) {
                let checks = interpreted.checks;
                let states = explorer.path(found, limits);
                let path = states.and_then(|states| trace::replay(interpreter, checks, states, found.violation.clone()));
                properties.take_path(model, checks, path);
            }
            return Ok(0);
        }
        let answer = possible.map(|possible| (possible, explorer.answer(possible, interpreter, exploration, limits)));
        let branched = branching.map(|branching| {
            let progress = ProgressLine::new(options.display.progress);
            progress.working("evaluating formulas");
            (branching, explorer.branch(branching, interpreter, exploration, limits))
        });
        let ending = Ending {
            options,
            text: Some(text),
            coverage,
            interpreted,
            conclusion,
            answer,
            branched,
            warnings,
            outputs,
            device,
            spec,
            stats,
            extras,
            ranks: None,
            checkpoints,
            known,
            reduction,
            exploration,
            surveyed,
        };
        ending.report(explorer, recorder, limits, engine, time)
    }
}
