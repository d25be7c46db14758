//! The end of a search: its path, the files that show it, and the report.

use crate::export::Exported;
use crate::first_table;
use crate::options::Options;
use crate::outputs::{Outputs, write_trace};
use crate::pictures::chart::Chart;
use crate::pictures::projection::Projection;
use crate::pictures::{Run, dot};
use crate::record::Recorder;
use crate::reduce::Reduction;
use crate::report::{self, Finding, Report, Time};
use crate::searcher::Figures;
use crate::step;
use anyhow::{Context, Result};
use std::time::Instant;
use warpset::Device;
use warpset_model::checks::Violation;
use warpset_model::language::Text;
use warpset_model::trace;
use warpset_model::warnings::Warnings;
use warpset_search::checkpoint::Checkpoints;
use warpset_search::coverage::Coverage;
use warpset_search::ctl::{self, Branching};
use warpset_search::exploration::{End, Exploration, Explorer, Found, Limits};
use warpset_search::liveness::check::{Conclusion, Question};
use warpset_search::liveness::possible::{Outcome, Possible};
use warpset_search::measurements::Measurements;
use warpset_search::successors::Interpreted;
use warpset_search::survey::Surveyed;
use warpset_support::output::Unwritten;
use warpset_support::program;

/// Results that only some engines have.
#[derive(Default)]
pub struct Extras {
    pub measurements: Option<Measurements>,
    /// Amount exported, or why nothing was exported.
    pub exported: Option<Result<Exported>>,
    /// Number of states that the memory holds, by what is known at the end.
    pub states_in_memory: Option<u64>,
    /// Bytes that twice as many states need, by what is known at the end.
    pub memory_for_twice: Option<u64>,
}

/// Results of an exploration, for the report.
pub struct Ending<'a> {
    pub options: &'a Options,
    /// The model with its names.
    pub text: &'a Text,
    /// Coverage, or why it was not counted, if it is requested.
    pub coverage: Option<Result<Coverage>>,
    pub interpreted: &'a Interpreted<'a>,
    pub conclusion: Option<(&'a Question, Conclusion)>,
    pub answer: Option<(&'a Possible, Outcome)>,
    pub branched: Option<(&'a Branching, ctl::Outcome)>,
    pub warnings: &'a Warnings,
    pub outputs: Outputs,
    pub device: &'a Device,
    pub figures: Figures,
    pub checkpoints: Option<&'a Checkpoints>,
    pub known: Option<u64>,
    pub reduction: Option<&'a Reduction<'a>>,
    pub exploration: &'a Exploration,
    /// Figures of a net.
    pub surveyed: Option<Surveyed>,
}

impl Ending<'_> {
    /// Finds the path, and prints the report.
    pub fn report(
        self,
        explorer: &mut dyn Explorer,
        recorder: Option<&Recorder>,
        limits: Limits,
        engine: String,
        mut time: Time,
    ) -> Result<u8> {
        let Self { options, interpreted, conclusion, answer, branched, warnings, outputs, device, .. } = self;
        let Self { figures, checkpoints, known, reduction, exploration, surveyed, text, coverage, .. } = self;
        let Figures { spec, stats, extras, ranks } = figures;
        let Interpreted { interpreter, checks, .. } = interpreted;
        let model = interpreter.model();
        let (start, show) = (Instant::now(), options.display.shown());
        let is_told = |found: &&Found| conclusion.is_none() || matches!(found.violation, Violation::Fault(_));
        let finding = exploration.found.as_ref().filter(is_told).map(|found| {
            let states = explorer.path(found, limits);
            let path = states.and_then(|states| trace::replay(interpreter, checks, states, found.violation.clone()));
            Finding { found, path }
        });
        // The first violation may come with others in the same state.
        let state = finding.as_ref().map(|finding| &finding.found.state);
        let conditions = checks.conditions.iter().enumerate().filter(|_| conclusion.is_none() && answer.is_none());
        let is_violated =
            |must_hold| state.is_some_and(|state| interpreter.value(must_hold, state).is_ok_and(|value| value == 0));
        let violated_beside = conditions.filter(|(_, condition)| is_violated(&condition.must_hold)).map(|(at, _)| at).collect();
        // The answer about where states can lead has its own condition, and already has its path.
        let lost = answer.as_ref().and_then(|(possible, outcome)| Some((*possible, outcome.found.as_ref()?)));
        let lost = lost.map(|(possible, (found, states))| {
            let path = trace::replay(interpreter, &possible.checks, states.clone(), found.violation.clone());
            (&possible.checks, Finding { found, path })
        });
        // So has a fault in a condition of branching time.
        let fault = branched.as_ref().and_then(|(_, outcome)| outcome.fault.as_ref()).map(|(found, states)| {
            let path = trace::replay(interpreter, checks, states.clone(), found.violation.clone());
            Finding { found, path }
        });
        let finding = finding.or(fault);
        let (checks, finding) = match lost {
            Some((checks, lost)) => (checks, finding.or(Some(lost))),
            None => (*checks, finding),
        };
        time.path = start.elapsed();
        let path = finding.as_ref().and_then(|finding| finding.path.as_ref().ok());
        let lasso =
            conclusion.as_ref().and_then(|(question, conclusion)| Some((*question, conclusion.lasso.as_ref()?.as_ref().ok()?)));
        let witness = branched.as_ref().and_then(|(branching, outcome)| report::branching::first_witness(branching, outcome));
        let found_run = path.map(Run::of_path).or(lasso.map(|(_, lasso)| Run::of_lasso(lasso)));
        let found_run = found_run.or(witness.as_ref().map(|(_, witness)| Run::of_witness(witness)));
        let mut unwritten = Unwritten::default();
        let not_traced = outputs.trace.as_ref().filter(|_| found_run.is_none()).map(|file| file.path().to_path_buf());
        let ending = || match (path, lasso) {
            (Some(path), _) => checks.describe(&path.violation, model),
            (None, Some((question, _))) => format!("property violated: {}", question.text),
            (None, None) => witness.map_or_else(String::new, |(answered, _)| report::branching::shows(answered)),
        };
        let page = outputs.report.map(|output| {
            let path =
                found_run.as_ref().map(|run| report::html::path(model, run, &Chart::new(model, run, ending(), show), show));
            (output, path.unwrap_or_default())
        });
        if let (Some(output), Some(run)) = (outputs.trace, &found_run) {
            let json = || {
                let run = conclusion
                    .as_ref()
                    .and_then(|(question, conclusion)| report::runs::run_json(conclusion, model, question, show));
                let run =
                    run.or(witness.map(|(answered, witness)| report::branching::witness_json(answered, witness, model, show)));
                path.map(|path| path.json(model, checks, show)).or(run).map_or_else(String::new, |path| format!("{path:#}\n"))
            };
            unwritten.keep(write_trace(output, || Chart::new(model, run, ending(), show), json));
        }
        let mut colored = String::new();
        let coverage = coverage.map(|coverage| {
            if let (Ok(coverage), Some(_)) = (&coverage, &page) {
                colored = report::html::coverage(model, coverage);
            }
            if let (Ok(coverage), Some(output)) = (&coverage, outputs.coverage) {
                let json = coverage.json(model, exploration.end == End::Complete);
                unwritten.keep(output.write_text(&format!("{json:#}\n")));
            }
            coverage.map(|coverage| coverage.unreached(model))
        });
        let recorded = recorder.zip(outputs.record).and_then(|(recorder, output)| unwritten.keep(recorder.finish(output)));
        let Extras { measurements, mut exported, states_in_memory, memory_for_twice } = extras;
        if let Some(output) = outputs.export {
            let projection =
                (!options.outputs.project.is_empty()).then(|| Projection::new(model, &options.outputs.project)).transpose();
            let drawn = projection.and_then(|projection| dot::text(interpreter, checks, found_run.as_ref(), projection.as_ref()));
            let bytes = |text: &String| Exported { bytes: text.len() as u64 };
            let drawn = drawn.context("--export: the picture cannot be written");
            exported = Some(drawn.and_then(|text| output.write_text(&text).map(|()| bytes(&text))));
        }
        let steps_along = found_run.filter(|_| options.walks.step).map_or_else(Vec::new, |run| run.states.to_vec());
        let not_exported = options.outputs.export.as_ref().and(report::why_not_exported(exported.as_ref()));
        let exported = exported.and_then(|exported| unwritten.keep(exported));
        let mut report = Report {
            model,
            checks,
            states: show,
            device,
            spec,
            table_reason: first_table::why(&options.table, options.checkpoints.resume.is_some(), &model.layout, spec),
            stats,
            exploration,
            engine,
            time,
            measurements,
            ranks,
            finding,
            violated_beside,
            conclusion,
            answer: answer.as_ref().map(|(possible, outcome)| (*possible, outcome)),
            branched: branched.as_ref().map(|(branching, outcome)| (*branching, outcome)),
            warnings,
            recorded,
            exported,
            not_exported,
            not_traced: not_traced.as_deref(),
            unwritten,
            memory: options.table.memory,
            states_in_memory,
            memory_for_twice,
            checkpoint: checkpoints.map(Checkpoints::status),
            known,
            coverage,
            surveyed,
            reduction,
        };
        let mut summary = report.summary();
        if let Some((output, path)) = page {
            report.unwritten.keep(output.write_text(&report::html::page(&summary, &path, &colored)));
            (summary.error, summary.exit_code) = (report.unwritten.sentence(), report.exit_code());
        }
        let printed = match options.display.json {
            true => serde_json::to_string(&summary)? + "\n",
            false => report.text(&summary, program::prints_colors()),
        };
        program::print(&printed)?;
        report.unwritten.print();
        if options.walks.step {
            step::walk(text, &steps_along)?;
        }
        Ok(report.exit_code())
    }
}
