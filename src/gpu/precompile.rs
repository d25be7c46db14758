//! Kernels that are compiled ahead of use, before a device exists.
//!
//! H200, time until a first search of `explore` reports: 1.1 to 1.3 s with nothing compiled before, because kernels are compiled
//! while the context is made; 1.3 to 1.7 s when one was done after the other. With the model in NVRTC's own cache: 0.45 to 0.54
//! s, and 0.55 to 0.63 s one after the other.

use crate::backend::cuda::ahead::Jobs;
use crate::backend::cuda::chunk_bytes;
use crate::backend::cuda::nvrtc::{Job, KernelSet};
use crate::{Key, Result, Spec, Storage, TableBuilder};

/// Kernels that background threads compile ahead of use, or find [on disk](crate::host_batches#compilation-and-the-kernel-cache).
///
/// A program that starts with a table, and kernels for it, waits for the GPU's context (0.2 to 0.3 s on an H200), and then for
/// one compilation after the other (0.2 s for a table). None of these steps needs another. A `Precompile` starts compilations
/// that run while [`Device::gpu`](crate::Device::gpu) makes the context. Later, [`TableBuilder::build`] and
/// [`Table::compile`](crate::Table::compile), on any thread, use the results, or wait for them, as long as this value exists.
/// Dropping it waits for compilations that were not used.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use warpset::gpu::cudarc_0_19::ModuleExt;
/// use warpset::{BucketTable, Device, gpu::Precompile};
///
/// const SOURCE: &str = r#"
///     #include "warpset/table.cuh"
///     extern "C" __global__ void put_one(warpset::View view) {
///         unsigned vector[WARPSET_WIDTH] = {1, 2};
///         warpset::table(view).find_or_put(warpset::WordVector{vector});
///     }"#;
///
/// let mut kernels = Precompile::new();
/// let builder = BucketTable::builder(2).capacity(1000);
/// if let Some(gpu) = Device::gpus().unwrap_or_default().first() {
///     kernels.table(&builder, gpu.compute_capability)?;
///     kernels.source(&builder, gpu.compute_capability, "put_one.cu", SOURCE)?;
///     let table = builder.build(&Device::gpu(gpu.ordinal)?)?;
///     let put_one = table.compile("put_one.cu", SOURCE)?.load_function("put_one")?;
/// #   let _ = put_one;
/// }
/// # Ok(()) }
/// ```
#[must_use = "dropping this waits for the compilations that it started"]
#[derive(Debug)]
pub struct Precompile {
    jobs: Jobs,
}

impl Default for Precompile {
    fn default() -> Self {
        Self::new()
    }
}

impl Precompile {
    /// Starts to load NVRTC, if there is a CUDA driver.
    pub fn new() -> Self {
        Self { jobs: Jobs::new() }
    }

    /// Starts to compile the kernels that every table of `builder` needs on GPUs of this compute capability.
    ///
    /// Kernels of compact and indexed tables depend on how large the table is: on the builder's `capacity` and `nodes`.
    ///
    /// # Errors
    ///
    /// Errors of [`TableBuilder::build`] that depend on the builder alone; [`LibraryNotFound`](crate::Error::LibraryNotFound) if
    /// there is no CUDA driver. Errors of the compilation are reported by `build`.
    pub fn table<K: Key, S: Storage>(&mut self, builder: &TableBuilder<K, S>, compute_capability: (u32, u32)) -> Result<()> {
        let spec = spec_of(builder, compute_capability)?;
        self.jobs.begin(&Job::table(spec, Some(KernelSet::Put), compute_capability))
    }

    /// Starts to compile your own CUDA C++ for tables of `builder`. [`Table::compile`](crate::Table::compile) with the same
    /// `name` and `source` then uses the result.
    ///
    /// # Errors
    ///
    /// The errors of [`table`](Self::table).
    pub fn source<K: Key, S: Storage>(
        &mut self,
        builder: &TableBuilder<K, S>,
        compute_capability: (u32, u32),
        name: &str,
        source: &str,
    ) -> Result<()> {
        self.jobs.begin(&Job::new(name, source, spec_of(builder, compute_capability)?, compute_capability))
    }
}

/// Spec of the table that a builder describes, on a GPU of this compute capability.
pub(super) fn spec_of<K: Key, S: Storage>(builder: &TableBuilder<K, S>, compute_capability: (u32, u32)) -> Result<Spec> {
    let options = builder.options();
    options.spec(chunk_bytes(compute_capability), options.size())
}
