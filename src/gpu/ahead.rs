//! Kernels that are compiled before there is a device.
//!
//! A first search of `explore`, with nothing compiled before, reports after 1.1 to 1.3 s on an H200, because kernels are compiled
//! while the context is made. With one after the other it took 1.3 to 1.7 s; if NVRTC's own cache had the model, 0.55 to 0.63 s
//! instead of 0.45 to 0.54.

use crate::backend::cuda::ahead::Jobs;
use crate::backend::cuda::chunk_bytes;
use crate::backend::cuda::nvrtc::{Job, Part};
use crate::{Key, Result, Spec, Storage, TableBuilder};

/// Kernels that threads of their own compile, or find
/// [on disk](crate::host_batches#compilation-and-the-kernel-cache), before they are asked for.
///
/// A program that begins with a table, and kernels for it, waits for the GPU's context first (0.2 to 0.3 s on an H200), and then
/// for one compilation after the other (0.2 s for a table). None of these needs another: what is begun here is done while
/// [`Device::gpu`](crate::Device::gpu) makes the context, and [`TableBuilder::build`] and
/// [`Table::compile`](crate::Table::compile) find it done, or wait for it. They do so on any thread, until this is dropped, which
/// waits for what nobody has asked for.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use warpset::{BucketTable, Device, gpu::Ahead};
///
/// const SOURCE: &str = r#"
///     #include "warpset/table.cuh"
///     extern "C" __global__ void put_one(warpset::View view) {
///         unsigned vector[WARPSET_WIDTH] = {1, 2};
///         warpset::table(view).find_or_put(warpset::WordVector{vector});
///     }"#;
///
/// let mut ahead = Ahead::new();
/// let builder = BucketTable::builder(2).capacity(1000);
/// if let Some(gpu) = Device::gpus().unwrap_or_default().first() {
///     ahead.table(&builder, gpu.compute_capability)?;
///     ahead.source(&builder, gpu.compute_capability, "put_one.cu", SOURCE)?;
///     let table = builder.build(&Device::gpu(gpu.ordinal)?)?;
///     let put_one = table.compile("put_one.cu", SOURCE)?.load_function("put_one")?;
/// #   let _ = put_one;
/// }
/// # Ok(()) }
/// ```
#[must_use = "what is begun is waited for when this is dropped"]
#[derive(Debug)]
pub struct Ahead {
    jobs: Jobs,
}

impl Default for Ahead {
    fn default() -> Self {
        Self::new()
    }
}

impl Ahead {
    /// Begins to load NVRTC, if there is a CUDA driver.
    pub fn new() -> Self {
        Self { jobs: Jobs::new() }
    }

    /// Begins to compile what every table of a builder needs on GPUs of a compute capability.
    ///
    /// Kernels of compact and indexed tables depend on how large the table is: on the builder's `capacity` and `nodes`.
    ///
    /// # Errors
    ///
    /// Those of [`TableBuilder::build`] that the builder alone is the reason for; and
    /// [`LibraryNotFound`](crate::Error::LibraryNotFound) if there is no CUDA driver. That something does not compile is told by
    /// `build`.
    pub fn table<S: Storage, K: Key>(&mut self, builder: &TableBuilder<S, K>, compute_capability: (u32, u32)) -> Result<()> {
        let spec = spec_of(builder, compute_capability)?;
        self.jobs.begin(&Job::table(spec, Some(Part::Put), compute_capability))
    }

    /// Begins to compile CUDA C++ of your own for tables of a builder, as [`Table::compile`](crate::Table::compile) is told to
    /// afterwards with the same `name` and `source`.
    ///
    /// # Errors
    ///
    /// As [`table`](Self::table).
    pub fn source<S: Storage, K: Key>(
        &mut self,
        builder: &TableBuilder<S, K>,
        compute_capability: (u32, u32),
        name: &str,
        source: &str,
    ) -> Result<()> {
        self.jobs.begin(&Job::new(name, source, spec_of(builder, compute_capability)?, compute_capability))
    }
}

fn spec_of<S: Storage, K: Key>(builder: &TableBuilder<S, K>, compute_capability: (u32, u32)) -> Result<Spec> {
    let options = builder.options();
    options.spec(chunk_bytes(compute_capability), options.size())
}
