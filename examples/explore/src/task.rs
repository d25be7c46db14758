//! A search with all its inputs: its table or the tables of its ranks, the choice of the engine, and the way to the report.

use crate::ask::Inquiry;
use crate::compiling::compile;
use crate::encodings::NoRoom;
use crate::ending::{Ending, Extras};
use crate::export::{Export, Form};
use crate::first_table::{NeedsSmaller, Size};
use crate::options::{EngineKind, Options, ProgressWhen};
use crate::outputs::Outputs;
use crate::progress::ProgressLine;
use crate::properties::Properties;
use crate::record::Recorder;
use crate::reduce::Reduction;
use crate::report::Time;
use crate::searcher::{InTable, ONE_TABLE, Searcher};
use crate::spread::RankSet;
use anyhow::{Result, ensure};
use std::time::Instant;
use warpset::{Bucket, CompactTree, Device, Erased, Indexed, Root, Spec, Storage, TableBuilder, Tree, VectorTable, Words};
use warpset_model::checks::Checks;
use warpset_model::interpreter::Interpreter;
use warpset_model::language::Text;
#[cfg(feature = "cuda")]
use warpset_model::reduction::stubborn::Stubborn;
use warpset_model::trace;
use warpset_search::checkpoint::{Checkpoints, Opened, Resumed};
use warpset_search::coverage::Coverage;
use warpset_search::ctl::{self, Branching};
use warpset_search::engine;
use warpset_search::exploration::{Counts, End, Exploration, Limits};
#[cfg(feature = "cuda")]
use warpset_search::gpu;
use warpset_search::liveness::check::{Conclusion, Question};
use warpset_search::numbering::Numbering;
use warpset_search::parents::Parents;
use warpset_search::ranks;
use warpset_search::reduced::Reduced;
use warpset_search::successors::{Interpreted, Successors};
use warpset_search::survey::Survey;
use warpset_search::switching::Switching;
use warpset_search::table_kind::TableKind;
use warpset_search::threads::Threads;
use warpset_support::memory;
use warpset_support::stopping;

/// The inputs of a search, and its checkpoints.
pub struct Task<'a> {
    pub options: &'a Options,
    pub text: &'a Text,
    pub inquiry: &'a Inquiry,
    /// Properties to answer in place of a report.
    pub properties: Option<&'a Properties>,
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

/// Where states are found.
enum Place<'t> {
    /// In one table, from the beginning or from a checkpoint.
    Table(&'t VectorTable<Erased>, Option<Resumed>),
    /// In the tables of this process's ranks.
    Ranks(Vec<ranks::Table<Erased>>),
}

impl Task<'_> {
    /// Explores in a table of this kind.
    pub fn explore_in(self, kind: TableKind, size: Size, time: Time) -> Result<u8> {
        let layout = &self.text.model().layout;
        let words = layout.words;
        match kind {
            TableKind::Tree => self.explore(VectorTable::<Tree>::builder(words).nodes(size.nodes), size, time),
            TableKind::Indexed => self.explore(VectorTable::<Indexed>::builder(words), size, time),
            TableKind::TreeCompact => {
                let builder = VectorTable::<CompactTree>::builder(words).nodes(size.nodes);
                self.explore(builder.last_bits(layout.last_bits()), size, time)
            }
            TableKind::Compact => {
                let bits = layout.end.max(*Spec::KEY_BITS.start());
                self.explore(VectorTable::<Root>::builder(words).key_bits(bits), size, time)
            }
            TableKind::Bucket => self.explore(VectorTable::<Bucket>::builder(words), size, time),
        }
    }

    /// Makes the table, or the tables of the ranks, and explores. From then on no code is compiled for each kind of table: that
    /// would take three quarters of the time in which this program is built.
    fn explore<S: Storage>(mut self, builder: TableBuilder<Words, S>, size: Size, mut time: Time) -> Result<u8> {
        let Self { options, inquiry, device, .. } = self;
        let start = Instant::now();
        let engine = options.engine_on(device, self.rank_set.is_some())?;
        let interpreted = Interpreted::new(Interpreter::new(self.text.model()), &inquiry.checks);
        // Compute limits before the table exists, because its memory counts but is no longer free afterwards.
        let limits = self.limits();
        let table: VectorTable<Erased>;
        let place = match (self.rank_set.take(), self.opened.take()) {
            (Some(rank_set), _) => {
                ensure!(!inquiry.is_about_runs(), "{ONE_TABLE}");
                Place::Ranks(rank_set.build(&builder, size.slots)?.into_iter().map(ranks::Table::erased).collect())
            }
            (None, Some(opened)) => {
                let (loaded, resumed): (VectorTable<S>, _) = opened.load(device, &interpreted, &limits)?;
                table = loaded.erased();
                Place::Table(&table, Some(resumed))
            }
            (None, None) => {
                table = builder.capacity(size.slots).build(device)?.erased();
                Place::Table(&table, None)
            }
        };
        time.table += start.elapsed();
        let outputs = std::mem::take(&mut self.outputs);
        Run::new(&self, outputs, limits, &interpreted, &place).by_engine(engine, place, time)
    }

    fn limits(&self) -> Limits {
        let Self { options, device, .. } = self;
        // A GPU reports an error when its memory is exhausted.
        let free = if device.is_gpu() { u64::MAX } else { memory::free_memory() / 5 * 4 };
        let (states, bytes) = (options.limits.max_states.unwrap_or(u64::MAX), options.table.memory.unwrap_or(free));
        // States at the greatest depth are still expanded, since this is how they are checked.
        let levels = options.limits.max_depth.map_or(u64::MAX, |depth| depth.saturating_add(1));
        // A table that takes the memory early leaves none for states and steps, and for sets of states.
        let is_of_paths = self.inquiry.branching.is_some() || self.properties.is_some_and(Properties::has_branching);
        let is_reserved = options.table.memory.is_some() && !is_of_paths;
        Limits { states, levels, bytes, is_reserved, keep_going: options.checks.keep_going, stop: stopping::asked }
    }
}

/// A search whose table exists.
struct Run<'a> {
    task: &'a Task<'a>,
    outputs: Outputs,
    /// Limits for one device.
    limits: Limits,
    interpreted: &'a Interpreted<'a>,
    /// The only table; `None` if there are ranks.
    table: Option<&'a VectorTable<Erased>>,
    /// Number of states that a resumed search had found before.
    known: Option<u64>,
}

impl<'a> Run<'a> {
    fn new(task: &'a Task<'a>, outputs: Outputs, limits: Limits, interpreted: &'a Interpreted<'a>, place: &Place<'a>) -> Self {
        let (table, known) = match place {
            Place::Table(table, resumed) => (Some(*table), resumed.as_ref().map(|resumed| resumed.counts.states)),
            Place::Ranks(_) => (None, None),
        };
        Self { task, outputs, limits, interpreted, table, known }
    }

    /// Explores by the engine.
    fn by_engine(mut self, engine: EngineKind, place: Place, mut time: Time) -> Result<u8> {
        let (task, interpreted) = (self.task, self.interpreted);
        let form = task.options.outputs.export.as_deref().map(Form::of).transpose()?.filter(|form| *form != Form::Dot);
        if let (Some(table), Some(form)) = (self.table, form)
            && let Some(output) = self.outputs.export.take()
        {
            let export = Export::new(task.text.model(), form, output)?;
            let explorer = Numbering::new(table, interpreted, export);
            let extras = |numbering: &mut Numbering<_, Export>| {
                Ok(Extras { exported: numbering.consumer.exported.take(), ..Extras::default() })
            };
            return self.search_and_report(&mut InTable { table, explorer, extras }, None, &|| "interpreted".into(), time);
        }
        let stubborn = task.reduction.as_ref().and_then(|reduction| reduction.stubborn.as_ref());
        match engine {
            #[cfg(feature = "cuda")]
            EngineKind::Gpu => self.on_gpu(place, stubborn, time),
            EngineKind::Compiled => {
                let start = Instant::now();
                let compiled = compile(task.options.display.progress, interpreted, stubborn)?;
                time.compile = start.elapsed();
                self.on_threads(place, &compiled, &|| "compiled".into(), time)
            }
            EngineKind::Auto => {
                let source = Switching::new(interpreted, stubborn);
                source.during(|| self.on_threads(place, &source, &|| source.engine(), time))
            }
            _ => {
                let reduced = stubborn.map(|stubborn| Reduced { interpreted, stubborn });
                let source: &dyn Successors = reduced.as_ref().map_or(interpreted, |reduced| reduced);
                self.on_threads(place, source, &|| "interpreted".into(), time)
            }
        }
    }

    /// Explores by kernels on the GPU of the table, or on those of the ranks.
    #[cfg(feature = "cuda")]
    fn on_gpu(self, place: Place, stubborn: Option<&Stubborn>, mut time: Time) -> Result<u8> {
        let Self { task, interpreted, limits, .. } = self;
        let Task { options, text, inquiry, .. } = *task;
        let name = || "compiled for the GPU".into();
        let start = Instant::now();
        let progress = working(options.display.progress, "compiling for the GPU");
        let (table, resumed) = match place {
            Place::Table(table, resumed) => (table, resumed),
            Place::Ranks(tables) => {
                let mut ranks = ranks::with_workers(tables, |table| gpu::OnGpu::new(table, interpreted), interpreted)?;
                drop(progress);
                time.compile = start.elapsed();
                return self.search_and_report(&mut ranks, None, &name, time);
            }
        };
        let watched = inquiry.question.as_ref().and_then(Question::to_watch);
        let timed = options.measures.gpu_time;
        let sources = gpu::Sources { timed, stubborn, ..gpu::Sources::new(text.model(), interpreted.checks) };
        let new = || gpu::GpuEngine::new(table, interpreted, sources, watched, resumed.is_some(), limits.bytes);
        let engine = match stubborn {
            None => Some(new()?),
            Some(stubborn) if gpu::can_reduce(stubborn) => gpu::unless_memory_ends(new())?,
            Some(_) => None,
        };
        drop(progress);
        time.compile = start.elapsed();
        let Some(mut explorer) = engine else {
            let source = Switching::new(interpreted, stubborn);
            let name = || format!("{}, since the GPU has no memory for the reduction's tables", source.engine());
            return source.during(|| self.on_threads(Place::Table(table, resumed), &source, &name, time));
        };
        explorer.keep_in(task.checkpoints.as_ref(), resumed);
        if inquiry.branching.is_some() || task.properties.is_some_and(Properties::has_branching) {
            explorer.keep_all_listed();
        }
        let extras = |engine: &mut gpu::GpuEngine<_>| Ok(Extras { measurements: engine.measurements()?, ..Extras::default() });
        self.search_and_report(&mut InTable { table, explorer, extras }, None, &name, time)
    }

    /// Explores by threads of this machine; tables may be on any device.
    fn on_threads(self, place: Place, source: &dyn Successors, engine: &dyn Fn() -> String, time: Time) -> Result<u8> {
        let Self { task, interpreted, .. } = self;
        let (table, resumed) = match place {
            Place::Table(table, resumed) => (table, resumed),
            Place::Ranks(tables) => {
                let mut ranks = ranks::on_threads_of(tables, &source, interpreted)?;
                return self.search_and_report(&mut ranks, None, engine, time);
            }
        };
        let Options { outputs, table: of_table, .. } = task.options;
        let recorder = outputs.record.as_ref().map(|_| Recorder::new(source.width(), outputs.record_bytes)).transpose()?;
        let Checks { conditions, deadlocks, .. } = interpreted.checks;
        let looks_for_some = *deadlocks || !conditions.is_empty();
        let add = recorder.as_ref().map(|recorder| |vectors: &[u32]| recorder.add(vectors));
        let explorer = Threads {
            recorder: add.as_ref().map(|add| add as &engine::Recorder),
            automaton: task.inquiry.question.as_ref().and_then(Question::to_watch),
            checkpoints: task.checkpoints.as_ref(),
            resumed,
            parents: (of_table.parents || looks_for_some).then(|| Parents::new(of_table.parents)),
            ..Threads::new(table, &source, interpreted.interpreter.model().initial_state())
        };
        let extras = |_: &mut Threads<_, _>| Ok(Extras::default());
        self.search_and_report(&mut InTable { table, explorer, extras }, recorder.as_ref(), engine, time)
    }

    /// Explores, answers the questions, and prints the report. `engine` is called after the exploration, and describes how
    /// successors were computed.
    fn search_and_report(
        self,
        searcher: &mut dyn Searcher,
        recorder: Option<&Recorder>,
        engine: &dyn Fn() -> String,
        mut time: Time,
    ) -> Result<u8> {
        let Self { task, limits, table, interpreted, known, .. } = self;
        let Task { options, text, inquiry, properties, device, ref reduction, ref checkpoints, .. } = *task;
        let (model, interpreter) = (text.model(), &interpreted.interpreter);
        let limits = Limits { bytes: limits.bytes.saturating_mul(searcher.devices()?), ..limits };
        let start = Instant::now();
        let exploration = &self.explore(searcher, limits)?;
        time.explore = start.elapsed();
        if task.may_be_smaller && exploration.end == End::Memory && exploration.found.is_none() {
            return Err(NeedsSmaller.into());
        }
        // A limit of time or a signal may have ended the exploration: its states are still evaluated, within a grace period.
        let limits = limits.of_evaluation();
        if let Some(found) = exploration.found.as_ref().filter(|found| NoRoom::is_of(&found.violation)) {
            if let (Some(properties), Some(table)) = (properties, table) {
                properties.keep_decided(table, interpreted, exploration, limits)?;
            }
            return Err(NoRoom::of(model, &found.violation, || searcher.path(found, limits)).into());
        }
        let start = Instant::now();
        // Questions about runs are answered separately. The tokens and firings of a reduced search are not those of the net.
        let is_reduced = reduction.as_ref().is_some_and(|reduction| reduction.stubborn.is_some());
        let is_of_states = !inquiry.is_about_runs() && properties.is_none();
        let survey = Survey::of(model).filter(|_| is_of_states && !is_reduced);
        let surveyed = survey.map(|survey| searcher.survey(&survey, limits.stop)).transpose()?;
        time.survey = start.elapsed();
        let figures = searcher.figures(exploration, limits)?;
        let engine = match &figures.ranks {
            Some(numbers) => format!("{} on {} ranks", engine(), numbers.states.len()),
            None => engine(),
        };
        // The search for a path clears the table, so the states are counted before.
        let coverage = self.coverage(limits);
        let conclusion = self.conclusion(searcher, exploration, limits)?;
        if let (Some(properties), Some(table)) = (properties, table) {
            let conclusion = conclusion.as_ref().map(|(_, conclusion)| conclusion);
            return answer(properties, table, interpreted, searcher, exploration, conclusion, limits);
        }
        let answer = match &inquiry.possible {
            Some(possible) => Some((possible, searcher.answers()?.answer(possible, interpreter, exploration, limits))),
            None => None,
        };
        let branched = self.branched(searcher, exploration, limits)?;
        let ending = Ending {
            options,
            text,
            coverage,
            interpreted,
            conclusion: conclusion.as_ref().map(|(question, conclusion)| (*question, conclusion)),
            answer: answer.as_ref().map(|(possible, outcome)| (*possible, outcome)),
            branched: branched.as_ref().map(|(branching, outcome)| (*branching, outcome)),
            warnings: &inquiry.warnings,
            outputs: self.outputs,
            device,
            figures,
            checkpoints: checkpoints.as_ref(),
            known,
            reduction: reduction.as_ref(),
            exploration,
            surveyed,
        };
        ending.report(searcher, recorder, limits, engine, time)
    }

    /// Explores, and shows progress.
    fn explore(&self, searcher: &mut dyn Searcher, limits: Limits) -> Result<Exploration> {
        let Self { task, table, interpreted, .. } = self;
        let progress = ProgressLine::new(task.options.display.progress).within(limits);
        // The task has connections of ranks, which threads cannot share.
        let properties = task.properties;
        searcher.explore(limits, &|counts: &Counts| match table {
            Some(table) => {
                progress.set(counts, table);
                let model = interpreted.interpreter.model();
                properties.is_none_or(|properties| properties.goes_on(counts, table, model))
            }
            None => {
                progress.working(&format!("level {}, {} states", counts.levels, counts.states));
                true
            }
        })
    }

    /// Counts what the states cover, if that is wanted.
    fn coverage(&self, limits: Limits) -> Option<Result<Coverage>> {
        let Options { measures, display, .. } = self.task.options;
        let table = self.table.filter(|_| measures.unreached || measures.coverage.is_some())?;
        let _progress = working(display.progress, "counting coverage");
        Some(Coverage::of(table, &self.interpreted.interpreter, limits))
    }

    /// Determines whether all runs satisfy the property of runs, if there is one.
    fn conclusion(
        &self,
        searcher: &mut dyn Searcher,
        exploration: &Exploration,
        limits: Limits,
    ) -> Result<Option<(&'a Question, Conclusion)>> {
        let Some(question) = &self.task.inquiry.question else { return Ok(None) };
        let _progress = working(self.task.options.display.progress, "searching for accepting cycles");
        let conclusion = searcher.answers()?.conclude(question, &self.interpreted.interpreter, exploration, limits)?;
        Ok(Some((question, conclusion)))
    }

    /// Evaluates the formulas of branching time, if there are some.
    fn branched(
        &self,
        searcher: &mut dyn Searcher,
        exploration: &Exploration,
        limits: Limits,
    ) -> Result<Option<(&'a Branching, ctl::Outcome)>> {
        let Some(branching) = &self.task.inquiry.branching else { return Ok(None) };
        let _progress = working(self.task.options.display.progress, "evaluating formulas");
        let outcome = searcher.answers()?.branch(branching, &self.interpreted.interpreter, exploration, limits);
        Ok(Some((branching, outcome)))
    }
}

/// Shows an activity until the line is dropped.
fn working(when: ProgressWhen, what: &str) -> ProgressLine {
    let progress = ProgressLine::new(when);
    progress.working(what);
    progress
}

/// Answers the properties of a round.
fn answer(
    properties: &Properties,
    table: &VectorTable<Erased>,
    interpreted: &Interpreted,
    searcher: &mut dyn Searcher,
    exploration: &Exploration,
    conclusion: Option<&Conclusion>,
    limits: Limits,
) -> Result<u8> {
    let Interpreted { interpreter, checks, .. } = interpreted;
    let model = interpreter.model();
    properties.conclude(table, interpreted, exploration, conclusion, limits)?;
    if let Some((branching, numbers)) = properties.branching(model) {
        let outcome = searcher.answers()?.branch(&branching, interpreter, exploration, limits);
        properties.keep_branched(&branching, &numbers, &outcome, exploration.end, model);
    }
    if let Some(found) = exploration.found.as_ref().filter(|_| properties.wants_path()) {
        let states = searcher.path(found, limits);
        let path = states.and_then(|states| trace::replay(interpreter, checks, states, found.violation.clone()));
        properties.take_path(model, checks, path);
    }
    Ok(0)
}
