//! Compilation of next-state functions: for a CPU, ahead of time for a GPU, and as source text for `--emit`.

#[cfg(feature = "cuda")]
use crate::first_table;
use crate::options::Options;
#[cfg(feature = "cuda")]
use crate::options::{EngineKind, TableChoice};
use crate::progress::ProgressLine;
use anyhow::Result;
use std::path::Path;
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
pub fn compile<'m>(options: &Options, interpreted: &'m Interpreted<'m>, stubborn: Option<&Stubborn>) -> Result<Compiled<'m>> {
    watched(options, interpreted.interpreter.model(), |is_stopped| Compiled::unless(interpreted, stubborn, is_stopped))
}

/// Compiles functions that take random walks, and shows how long that takes.
pub fn compile_walks<'m>(options: &Options, interpreted: &Interpreted<'m>) -> Result<CompiledWalks<'m>> {
    watched(options, interpreted.interpreter.model(), |is_stopped| CompiledWalks::unless(interpreted, is_stopped))
}

fn watched<T>(options: &Options, model: &Model, compile: impl FnOnce(&dyn Fn() -> bool) -> Result<Option<T>>) -> Result<T> {
    let progress = ProgressLine::new(options.display.progress);
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

/// Begins to compile for the GPU that will probably be opened, if one GPU performs the search. With `stubborn`, only the steps
/// that it keeps are taken.
#[cfg(feature = "cuda")]
pub fn compile_ahead(
    options: &Options,
    model: &Model,
    checks: &Checks,
    stubborn: Option<&Stubborn>,
) -> Option<warpset::gpu::Precompile> {
    let gpu = match options.table.device {
        DeviceChoice::Cpu { .. } => return None,
        DeviceChoice::Gpu { ordinal } => Some(ordinal),
        _ => None,
    };
    let on_gpu =
        options.table.engine == EngineKind::Gpu || (options.table.engine == EngineKind::Auto && !options.finds_on_threads());
    let on_gpu = on_gpu && stubborn.is_none_or(gpu::can_reduce);
    let table = options.table_of(model.layout.words);
    let sources = gpu::Sources { timed: options.measures.gpu_time, stubborn, ..gpu::Sources::new(model, checks) };
    gpu::compile_ahead(gpu::Expected { gpu, table, on_gpu }, sources)
}

/// Writes the program text that is compiled for a GPU to the file of this path.
#[cfg(feature = "cuda")]
pub fn emit(options: &Options, model: &Model, checks: &Checks, path: &Path, file: Output) -> Result<u8> {
    codegen::ensure_fits(model)?;
    let sources = gpu::Sources { timed: options.measures.gpu_time, ..gpu::Sources::new(model, checks) };
    let by_rows = options.table.table == TableChoice::Indexed;
    let text = if by_rows { sources.by_rows() } else { sources.search() };
    file.write_text(&(first_table::bytes_by_table(&model.layout) + &text))?;
    if options.display.json {
        let done = serde_json::json!({ "emitted": path.display().to_string(), "error": null, "exit_code": 0 });
        program::print(&format!("{done}\n"))?;
    }
    Ok(0)
}

#[cfg(not(feature = "cuda"))]
pub fn emit(_: &Options, _: &Model, _: &Checks, _: &Path, _: Output) -> Result<u8> {
    anyhow::bail!("this build cannot compile for GPUs, so --emit has nothing to write: warpset's feature `cuda` is off")
}
