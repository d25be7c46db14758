//! Early compilation of the kernels of a search, while the GPU is being opened.
//!
//! The search is guessed. A wrong guess costs only the time of threads that would have waited.

use super::program::Sources;
use crate::codegen::ensure_fits;
use crate::table_kind::TableKind;
use warpset::gpu::Precompile;
use warpset::{Bucket, Device, Storage, TableBuilder, Tree, VectorTable, Words};

/// The search that is expected.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The number of the GPU; `None` for the best one.
    pub gpu: Option<usize>,
    pub table: TableKind,
    /// Whether the model's functions run on the GPU, not only the table's.
    pub on_gpu: bool,
}

/// Begins to compile the kernels of the table and the model. Errors are reported when the kernels are used.
pub fn begin(expected: Expected, sources: Sources) -> Option<Precompile> {
    let mut ahead = Precompile::new();
    let gpus = Device::gpus().ok()?;
    let gpu = match expected.gpu {
        Some(ordinal) => gpus.get(ordinal),
        // Usually all GPUs of a machine are of one kind. If not, the guess may differ from the GPU that is opened.
        None => gpus.iter().max_by_key(|gpu| gpu.memory_bytes),
    };
    let capability = gpu?.compute_capability;
    let text = (expected.on_gpu && ensure_fits(sources.model).is_ok()).then(|| sources.search());
    let words = sources.model.layout.words;
    match expected.table {
        TableKind::Bucket => table(&mut ahead, VectorTable::<Bucket>::builder(words), capability, text),
        TableKind::Tree => table(&mut ahead, VectorTable::<Tree>::builder(words), capability, text),
        // These kernels depend on the table's size, and that on the GPU's free memory, which is not known yet.
        _ => Ok(()),
    }
    .ok()?;
    Some(ahead)
}

fn table<S: Storage>(
    ahead: &mut Precompile,
    builder: TableBuilder<Words, S>,
    capability: (u32, u32),
    text: Option<String>,
) -> warpset::Result<()> {
    ahead.table(&builder, capability)?;
    text.map_or(Ok(()), |text| ahead.source(&builder, capability, super::program::PROGRAM, &text))
}
