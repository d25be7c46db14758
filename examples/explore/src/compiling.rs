//! Compilation of next-state functions: for a CPU, ahead of time for a GPU, and as source text for `--emit`.

use crate::options::{DisplayOptions, MeasureOptions, ProgressWhen, TableChoice};
#[cfg(feature = "cuda")]
use crate::options::{EngineKind, TableOptions};
use crate::progress::ProgressLine;
#[cfg(feature = "cuda")]
use crate::tables;
use anyhow::Result;
use warpset_model::checks::Checks;
use warpset_model::ir::Model;
use warpset_model::reduction::stubborn::Stubborn;
#[cfg(feature = "cuda")]
use warpset_search::codegen;
use warpset_search::codegen::on_cpu::{Compiled, CompiledWalks};
#[cfg(feature = "cuda")]
use warpset_search::gpu;
use warpset_search::successors::Interpreted;
#[cfg(feature = "cuda")]
use warpset_support::device::DeviceChoice;
use warpset_support::numbers;
use warpset_support::output::Output;
#[cfg(feature = "cuda")]
use warpset_support::program;
use warpset_support::stopping;

/// Compiles next-state functions, and shows how long that takes. With `stubborn`, only the steps that it keeps are taken.
pub fn compile<'m>(when: ProgressWhen, interpreted: &'m Interpreted<'m>, stubborn: Option<&Stubborn>) -> Result<Compiled<'m>> {
    watched(when, interpreted.interpreter.model(), |is_stopped| Compiled::unless(interpreted, stubborn, is_stopped))
}

/// Compiles functions that take random walks, and shows how long that takes.
pub fn compile_walks<'m>(when: ProgressWhen, interpreted: &Interpreted<'m>) -> Result<CompiledWalks<'m>> {
    watched(when, interpreted.interpreter.model(), |is_stopped| CompiledWalks::unless(interpreted, is_stopped))
}

fn watched<T>(when: ProgressWhen, model: &Model, compile: impl FnOnce(&dyn Fn() -> bool) -> Result<Option<T>>) -> Result<T> {
    let progress = ProgressLine::new(when);
    let what = format!("compiling {}", numbers::counted(model.transitions.len() as u64, "transition"));
    let is_stopped = || {
        progress.working(&what);
        stopping::asked().is_some()
    };
    let stopped = || {
        let stop = stopping::asked().expect("only a limit or a signal stops the compiler");
        stop.error("while the next-state functions were compiled")
    };
    Ok(compile(&is_stopped)?.ok_or_else(stopped)?)
}

/// Begins to compile for the GPU that will probably be opened, if one GPU performs the search of states of `words` words.
/// `needs_threads`: a file that is asked for is written by an engine by threads.
#[cfg(feature = "cuda")]
pub fn compile_ahead(
    table: &TableOptions,
    needs_threads: bool,
    sources: gpu::Sources,
    words: usize,
) -> Option<warpset::gpu::Precompile> {
    let gpu = match table.device {
        DeviceChoice::Cpu { .. } => return None,
        DeviceChoice::Gpu { ordinal } => Some(ordinal),
        _ => None,
    };
    let on_gpu = table.engine == EngineKind::Gpu || (table.engine == EngineKind::Auto && !needs_threads);
    let on_gpu = on_gpu && sources.stubborn.is_none_or(gpu::can_reduce);
    gpu::compile_ahead(gpu::Expected { gpu, table: table.kind_for(words), on_gpu }, sources)
}

/// Writes the program text that is compiled for a GPU, for `table`.
#[cfg(feature = "cuda")]
pub fn emit(
    table: TableChoice,
    measures: &MeasureOptions,
    display: &DisplayOptions,
    model: &Model,
    checks: &Checks,
    file: Output,
) -> Result<u8> {
    codegen::ensure_fits(model)?;
    let sources = gpu::Sources { timed: measures.gpu_time, ..gpu::Sources::new(model, checks) };
    let by_rows = table == TableChoice::Indexed;
    let text = if by_rows { sources.by_rows() } else { sources.search() };
    let path = file.path().to_path_buf();
    file.write_text(&(tables::comment(&model.layout) + &text))?;
    if display.json {
        let done = serde_json::json!({ "emitted": path.display().to_string(), "error": null, "exit_code": 0 });
        program::print(&format!("{done}\n"))?;
    }
    Ok(0)
}

#[cfg(not(feature = "cuda"))]
pub fn emit(_: TableChoice, _: &MeasureOptions, _: &DisplayOptions, _: &Model, _: &Checks, _: Output) -> Result<u8> {
    anyhow::bail!("this build cannot compile for GPUs, so --emit has nothing to write: warpset's feature `cuda` is off")
}
