//! What a search on a GPU is compiled from, begun while the GPU is opened.
//!
//! It is begun by a guess of what is compiled later, from the options and the model alone. A wrong guess costs time of threads
//! that would have waited.

use crate::checks::Checks;
use crate::codegen::ensure_fits;
use crate::device::DeviceChoice;
use crate::ir::Model;
use crate::options::{EngineKind, Options, TableKind};
use crate::ranks::Plan;
use warpset::gpu::Ahead;
use warpset::{Bucket, Device, Storage, TableBuilder, Tree, VectorTable};

/// Begins to compile the table's kernels and the model's, if the search is by one GPU. What is wrong with them is told when they
/// are wanted.
pub fn begin(options: &Options, plan: &Plan, model: &Model, checks: &Checks) -> Option<Ahead> {
    if *plan != Plan::Alone || matches!(options.device, DeviceChoice::Cpu { .. }) {
        return None;
    }
    let mut ahead = Ahead::new();
    let gpus = Device::gpus().ok()?;
    let gpu = match options.device {
        DeviceChoice::Gpu { ordinal } => gpus.get(ordinal),
        // Machines have GPUs of one kind, or this may be another one than is opened.
        _ => gpus.iter().max_by_key(|gpu| gpu.memory_bytes),
    };
    let capability = gpu?.compute_capability;
    let engine = options.engine == EngineKind::Gpu || (options.engine == EngineKind::Auto && !options.finds_on_threads());
    let text = (engine && ensure_fits(model).is_ok()).then(|| super::source(model, checks, options.cycles));
    let words = model.layout.words;
    match options.table.of(words) {
        TableKind::Bucket => table(&mut ahead, VectorTable::<Bucket>::builder(words), capability, text),
        TableKind::Tree => table(&mut ahead, VectorTable::<Tree>::builder(words), capability, text),
        // What they are compiled for depends on their size, and that on memory that nobody can ask for yet.
        _ => Ok(()),
    }
    .ok()?;
    Some(ahead)
}

fn table<S: Storage>(
    ahead: &mut Ahead,
    builder: TableBuilder<S>,
    capability: (u32, u32),
    text: Option<String>,
) -> warpset::Result<()> {
    ahead.table(&builder, capability)?;
    text.map_or(Ok(()), |text| ahead.source(&builder, capability, super::PROGRAM, &text))
}
