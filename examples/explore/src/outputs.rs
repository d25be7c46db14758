//! The files that are written at the end.

use crate::jobs::Job;
use crate::options::Options;
use crate::pictures::chart::Chart;
use anyhow::{Context, Error, Result, ensure};
use std::path::Path;
use std::sync::Arc;
use warpset_search::checkpoint;
use warpset_support::output::{self, Output};

/// The files that are written at the end.
#[derive(Default)]
pub struct Outputs {
    pub trace: Option<Output>,
    pub report: Option<Output>,
    pub record: Option<Output>,
    pub export: Option<Output>,
    pub coverage: Option<Output>,
    /// The only file of the job, if it has one: that of `--emit`, `--emit-buchi` or `--dependencies`.
    pub only: Option<Output>,
}

impl Outputs {
    /// Opens the files, unless one of them is the model or another output.
    pub fn open(options: &Options, model: Option<&output::Identity>) -> Result<Self> {
        let Options { outputs: files, measures, checkpoints, job, .. } = options;
        let open = |option, path: Option<&Path>| {
            let output = path.map(|path| Output::open(option, path)).transpose()?;
            output.iter().try_for_each(|output| output.ensure_is_not("the model", model))?;
            Ok::<_, Error>(output)
        };
        let trace = open("--trace", files.trace.as_deref())?;
        files.trace.as_deref().map_or(Ok(()), ensure_form_is_known)?;
        let report = open("--report", files.report.as_deref())?;
        let mut record = open("--record", files.record.as_deref())?;
        let export = open("--export", files.export.as_deref())?;
        let coverage = open("--coverage", measures.coverage.as_deref())?;
        let only = match job {
            Job::Emit(path) => open("--emit", Some(path))?,
            Job::EmitBuchi(path) => open("--emit-buchi", Some(path))?,
            Job::Dependencies(path) => open("--dependencies", Some(path))?,
            Job::Search | Job::Step | Job::Simulate(_) | Job::Properties(_) | Job::Tables => None,
        };
        record.iter_mut().try_for_each(Output::ensure_seeks)?;
        if let Some(path) = &checkpoints.checkpoint {
            let all = [&trace, &report, &record, &export, &coverage, &only].into_iter().flatten();
            ensure_can_be_checkpoint(path, all, model)?;
        }
        let outputs = Self { trace, report, record, export, coverage, only };
        let all = outputs.all();
        if let Some(path) = &checkpoints.resume {
            all.iter().try_for_each(|output| output.ensure_is_not_file("--resume", path))?;
        }
        for (number, output) in all.iter().enumerate() {
            output.ensure_is_not_standard_output()?;
            all[..number].iter().try_for_each(|other| other.ensure_differs_from(output))?;
        }
        Ok(outputs)
    }

    fn all(&self) -> Vec<&Output> {
        let Self { trace, report, record, export, coverage, only } = self;
        [trace, report, record, export, coverage, only].into_iter().flatten().collect()
    }

    /// Returns an error if an output is one of the files that were read.
    pub fn ensure_are_not(&self, files: &[Arc<output::Identity>]) -> Result<()> {
        let all = self.all();
        files.iter().try_for_each(|file| all.iter().try_for_each(|output| output.ensure_is_not("the model", Some(file))))
    }
}

/// Returns an error if checkpoints cannot be written to `path`, or if they would overwrite the model, another output or a file
/// that is not a checkpoint.
fn ensure_can_be_checkpoint<'o>(
    path: &Path,
    mut outputs: impl Iterator<Item = &'o Output>,
    model: Option<&output::Identity>,
) -> Result<()> {
    outputs.try_for_each(|output| output.ensure_is_not_file("--checkpoint", path))?;
    let is_model = model.is_some_and(|model| output::Identity::from_path(path).is_ok_and(|file| file == *model));
    ensure!(!is_model, "--checkpoint: {} is the model, and would be overwritten", path.display());
    checkpoint::ensure_can_be_written(path).with_context(|| format!("--checkpoint: {} cannot be written", path.display()))
}

/// Returns an error if a path cannot be written in the form that the name of a file selects. A name without an ending, as that
/// of a device or a pipe, means JSON.
fn ensure_form_is_known(file: &Path) -> Result<()> {
    let Some(ending) = file.extension() else { return Ok(()) };
    let is_known = ["svg", "txt", "json"].iter().any(|known| ending == *known);
    ensure!(is_known, "--trace: {}: the name must end in .svg (chart), .txt (chart in characters) or .json", file.display());
    Ok(())
}

/// Writes a path in the form that the name of the file selects.
pub fn write_trace(file: Output, chart: impl FnOnce() -> Chart, json: impl FnOnce() -> String) -> Result<()> {
    let text = match file.path().extension().and_then(std::ffi::OsStr::to_str) {
        Some("svg") => chart().svg(),
        Some("txt") => chart().text(),
        _ => json(),
    };
    file.write_text(&text)
}
