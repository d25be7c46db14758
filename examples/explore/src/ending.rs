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
use crate::report::branching::Answered;
use crate::report::{self, Finding, Report, Time};
use crate::searcher::Figures;
use crate::step;
use anyhow::{Context, Result};
use std::time::Instant;
use warpset::Device;
use warpset_model::checks::{Checks, Violation};
use warpset_model::ir::Model;
use warpset_model::language::Text;
use warpset_model::trace::{self, States};
use warpset_model::warnings::Warnings;
use warpset_search::checkpoint::Checkpoints;
use warpset_search::coverage::Coverage;
use warpset_search::ctl::{self, Branching, Witness};
use warpset_search::exploration::{End, Exploration, Explorer, Found, Limits};
use warpset_search::liveness::check::{Conclusion, Question};
use warpset_search::liveness::lasso::Lasso;
use warpset_search::liveness::possible::{Outcome, Possible};
use warpset_search::measurements::Measurements;
use warpset_search::successors::Interpreted;
use warpset_search::survey::Surveyed;
use warpset_support::output::{Output, Unwritten};
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
    pub conclusion: Option<(&'a Question, &'a Conclusion)>,
    pub answer: Option<(&'a Possible, &'a Outcome)>,
    pub branched: Option<(&'a Branching, &'a ctl::Outcome)>,
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

impl<'a> Ending<'a> {
    /// Finds the path, writes the files, and prints the report.
    pub fn report(
        self,
        explorer: &mut dyn Explorer,
        recorder: Option<&Recorder>,
        limits: Limits,
        engine: String,
        mut time: Time,
    ) -> Result<u8> {
        let (model, start) = (self.interpreted.interpreter.model(), Instant::now());
        let (checks, finding) = self.finding(explorer, limits);
        let violated_beside = self.violated_beside();
        time.path = start.elapsed();
        let Self { options, interpreted, conclusion, answer, branched, warnings, mut outputs, device, .. } = self;
        let Self { figures, checkpoints, known, reduction, exploration, surveyed, text, coverage, .. } = self;
        let Figures { spec, stats, extras, ranks } = figures;
        let Extras { measurements, mut exported, states_in_memory, memory_for_twice } = extras;
        let show = options.display.shown();
        let shown = Shown {
            model,
            checks,
            states: show,
            path: finding.as_ref().and_then(|finding| finding.path.as_ref().ok()),
            conclusion,
            witness: branched.and_then(|(branching, outcome)| report::branching::first_witness(branching, outcome)),
        };
        let run = shown.run();
        let mut unwritten = Unwritten::default();
        let counted = coverage.as_ref().and_then(|coverage| coverage.as_ref().ok());
        let page = outputs.report.take().map(|output| (output, shown.parts_of_page(run.as_ref(), counted)));
        let not_traced = outputs.trace.as_ref().filter(|_| run.is_none()).map(|file| file.path().to_path_buf());
        if let (Some(output), Some(run)) = (outputs.trace.take(), &run) {
            unwritten.keep(write_trace(output, || shown.chart(run), || shown.json()));
        }
        if let (Some(Ok(coverage)), Some(output)) = (&coverage, outputs.coverage.take()) {
            let json = coverage.json(model, exploration.end == End::Complete);
            unwritten.keep(output.write_text(&format!("{json:#}\n")));
        }
        let recorded = recorder.zip(outputs.record.take()).and_then(|(recorder, output)| unwritten.keep(recorder.finish(output)));
        if let Some(output) = outputs.export.take() {
            exported = Some(picture(options, interpreted, checks, run.as_ref()).and_then(|text| {
                output.write_text(&text)?;
                Ok(Exported { bytes: text.len() as u64 })
            }));
        }
        let along = run.filter(|_| options.walks.step).map(|run| (run.states.to_vec(), run.begins)).unwrap_or_default();
        let not_exported = options.outputs.export.as_ref().and(report::why_not_exported(exported.as_ref()));
        let exported = exported.and_then(|exported| unwritten.keep(exported));
        let report = Report {
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
            answer,
            branched,
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
            coverage: coverage.map(|coverage| coverage.map(|coverage| coverage.unreached(model))),
            surveyed,
            reduction,
        };
        let code = print(report, options, page)?;
        if options.walks.step {
            step::walk(text, &along.0, along.1)?;
        }
        Ok(code)
    }

    /// The violation to report with its path, and the checks that its condition is one of.
    fn finding(&self, explorer: &mut dyn Explorer, limits: Limits) -> (&'a Checks, Option<Finding<'a>>) {
        let Interpreted { interpreter, checks, .. } = self.interpreted;
        let is_told = |found: &&Found| self.conclusion.is_none() || matches!(found.violation, Violation::Fault(_));
        let of_search = self.exploration.found.as_ref().filter(is_told).map(|found| {
            let states = explorer.path(found, limits);
            let path = states.and_then(|states| trace::replay(interpreter, checks, states, found.violation.clone()));
            Finding { found, path }
        });
        // The answer about where states can lead has its own condition, and already has its path.
        let lost = self.answer.and_then(|(possible, outcome)| Some((possible, outcome.found.as_ref()?)));
        if let (None, Some((possible, (found, states)))) = (&of_search, lost) {
            let path = trace::replay(interpreter, &possible.checks, states.clone(), found.violation.clone());
            return (&possible.checks, Some(Finding { found, path }));
        }
        // So has a fault in a condition of branching time.
        let fault = || {
            let (found, states) = self.branched?.1.fault.as_ref()?;
            Some(Finding { found, path: trace::replay(interpreter, checks, states.clone(), found.violation.clone()) })
        };
        (checks, of_search.or_else(fault))
    }

    /// The conditions that the state of the violation violates. The first violation may come with others in the same state.
    fn violated_beside(&self) -> Vec<usize> {
        let Interpreted { interpreter, checks, .. } = self.interpreted;
        let found = self.exploration.found.as_ref().filter(|_| self.conclusion.is_none() && self.answer.is_none());
        let Some(Found { state, .. }) = found else { return Vec::new() };
        let is_violated = |at: &usize| interpreter.value(&checks.conditions[*at].must_hold, state) == Ok(0);
        (0..checks.conditions.len()).filter(is_violated).collect()
    }
}

/// The states and steps in a report: a path, the run that violates a property, or the witness of a formula.
struct Shown<'r> {
    model: &'r Model,
    checks: &'r Checks,
    states: States,
    path: Option<&'r trace::Path>,
    conclusion: Option<(&'r Question, &'r Conclusion)>,
    witness: Option<(Answered<'r>, &'r Witness)>,
}

impl<'r> Shown<'r> {
    fn lasso(&self) -> Option<(&'r Question, &'r Lasso)> {
        let (question, conclusion) = self.conclusion?;
        Some((question, conclusion.lasso.as_ref()?.as_ref().ok()?))
    }

    fn run(&self) -> Option<Run<'r>> {
        let lasso = || self.lasso().map(|(_, lasso)| Run::of_lasso(lasso));
        self.path
            .map(|path| Run::of_path(path, self.model))
            .or_else(lasso)
            .or_else(|| self.witness.map(|(_, witness)| Run::of_witness(witness)))
    }

    /// Sentences about the last state or the loop.
    fn ending(&self) -> Vec<String> {
        match (self.path, self.lasso()) {
            (Some(path), _) => path.ending(self.model, self.checks),
            (None, Some((question, _))) => vec![format!("property violated: {}", report::runs::asked(question))],
            (None, None) => self.witness.iter().map(|(answered, _)| report::branching::shows(*answered)).collect(),
        }
    }

    /// Sentences below the steps.
    fn closing(&self) -> Vec<String> {
        match (self.path, self.lasso()) {
            (Some(_), _) => Vec::new(),
            (None, Some((_, lasso))) => report::runs::closing(lasso),
            (None, None) => self.witness.map_or_else(Vec::new, |(_, witness)| report::branching::closing(witness)),
        }
    }

    fn chart(&self, run: &Run) -> Chart {
        Chart::new(self.model, run, &self.ending(), self.states)
    }

    /// The parts of a page that show the run and the model's text.
    fn parts_of_page(&self, run: Option<&Run>, coverage: Option<&Coverage>) -> [String; 2] {
        let Self { model, states, .. } = *self;
        let of_run = |run| report::html::path(model, run, &self.chart(run), states, [&self.ending(), &self.closing()]);
        [run.map_or_else(String::new, of_run), report::html::listing(model, run, coverage)]
    }

    /// The file of `--trace path.json`.
    fn json(&self) -> String {
        let Self { model, checks, states, .. } = *self;
        let path = self.path.map(|path| path.json(model, checks, states));
        let of_question = || {
            let (question, conclusion) = self.conclusion?;
            report::runs::run_json(conclusion, model, question, states)
        };
        let of_formula = || {
            let (answered, witness) = self.witness?;
            Some(report::branching::witness_json(answered, witness, model, states))
        };
        path.or_else(of_question).or_else(of_formula).map_or_else(String::new, |run| format!("{run:#}\n"))
    }
}

/// The picture of `--export graph.dot`.
fn picture(options: &Options, interpreted: &Interpreted, checks: &Checks, run: Option<&Run>) -> Result<String> {
    let parts = &options.outputs.project;
    let projection = (!parts.is_empty()).then(|| Projection::new(interpreted.interpreter.model(), parts)).transpose();
    projection
        .and_then(|projection| dot::text(&interpreted.interpreter, checks, run, projection.as_ref()))
        .context("--export: the picture cannot be written")
}

/// Writes the page of `--report`, prints the report, and returns its exit code. `page`: the file, and the parts that show the run
/// and the model's text.
fn print(mut report: Report, options: &Options, page: Option<(Output, [String; 2])>) -> Result<u8> {
    let mut summary = report.summary();
    if let Some((output, parts)) = page {
        report.unwritten.keep(output.write_text(&report::html::page(&summary, parts)));
        (summary.error, summary.exit_code) = (report.unwritten.sentence(), report.exit_code());
    }
    let printed = match options.display.json {
        true => serde_json::to_string(&summary)? + "\n",
        false => report.text(&summary, program::prints_colors()),
    };
    program::print(&printed)?;
    report.unwritten.print();
    Ok(report.exit_code())
}
