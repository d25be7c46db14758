//! Users' own kernels that call find-or-put, and kernels that are compiled without a GPU.

use crate::backend::cuda::nvrtc::{self, Job};
use crate::backend::cuda::{CudaStore, chunk_bytes};
use crate::layout::options::Choice;
use crate::layout::view::{CompactTreeView, CompactView, Counts, IndexedView, TableView, TreeView};
use crate::{Error, Key, Plain, Result, Spec, Storage, Strategy, Table};
use cudarc::driver::{CudaModule, DeviceRepr};
use std::sync::Arc;

/// The CUDA C++ headers, as (name for `#include`, text). Your own kernels include them to use a table.
///
/// [`Table::compile`] provides them; for another build, pass them yourself.
pub const HEADERS: &[(&str, &str)] = &nvrtc::HEADERS;

// SAFETY: `repr(C)`, five u64, as on the device.
unsafe impl DeviceRepr for Counts {}
// SAFETY: as above; all zeros are valid counts.
unsafe impl cudarc::driver::ValidAsZeroBits for Counts {}
// SAFETY: `repr(C)` with the layout of `warpset::TableView` in bucket/table.cuh; sizes are compared when kernels are loaded.
unsafe impl DeviceRepr for TableView {}
// SAFETY: as above, of tree/table.cuh.
unsafe impl DeviceRepr for TreeView {}
// SAFETY: as above, of compact/table.cuh.
unsafe impl DeviceRepr for CompactView {}
// SAFETY: as above, of tree/table.cuh.
unsafe impl DeviceRepr for CompactTreeView {}
// SAFETY: as above, of indexed/table.cuh.
unsafe impl DeviceRepr for IndexedView {}

impl<K: Key, S: Storage> Table<K, S> {
    /// Argument for your own kernels that use this table: a `warpset::View`, of the type `View` in [`gpu`](crate::gpu) that the
    /// table's kind has.
    ///
    /// Valid until the table grows or is dropped, or an indexed table is truncated, and only for kernels that were compiled for
    /// the [`spec`](Self::spec) that the table has now. A kernel that uses it must not be under way, or be launched, during
    /// `clear`, `grow`, `truncate`, `relocate` and `save`, nor after an error of `relocate` until another call has succeeded. The
    /// caller that launches it promises that, by `unsafe`. (Dropping a table waits for all work that was submitted to the GPU
    /// before.) References that the kernel's threads get are slot numbers ([`reference`](Self::reference)). [`len`](Self::len)
    /// counts the vectors that they put by `Table::find_or_put`.
    ///
    /// # Errors
    ///
    /// [`NotOnGpu`](Error::NotOnGpu); for an indexed table [`OutOfMemory`](Error::OutOfMemory) if there is no memory for as many
    /// rows as it has slots.
    pub fn kernel_argument(&self) -> Result<S::View> {
        let sized = self.raw.ready("kernel_argument")?;
        let store = CudaStore::of(&*sized.store).ok_or_else(|| self.not_on_gpu("kernel_argument"))?;
        self.raw.calls.note_kernels();
        store.make_all_rows()?;
        Ok(store.view().into())
    }

    /// Compiles your own CUDA C++ for this table's GPU and its [`spec`](Self::spec), and loads it. If a growth has changed the
    /// spec, compile it again: a kernel for another spec would misinterpret the slots. The source may include
    /// `warpset/table.cuh`, where `warpset::Table` is this table's type. `name` is for messages. The result is kept on disk for
    /// the next process, unless the source includes a file of yours, which may change: [Compilation and the kernel
    /// cache](crate::host_batches#compilation-and-the-kernel-cache).
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let table = warpset::BucketTable::new(&warpset::Device::gpu(0)?, 2, 1000)?;
    /// let source = r#"
    ///     #include "warpset/table.cuh"
    ///     extern "C" __global__ void put_one(warpset::View view) {
    ///         unsigned vector[WARPSET_WIDTH] = {1, 2};
    ///         warpset::table(view).find_or_put(warpset::WordVector{vector});
    ///     }"#;
    /// let put_one = table.compile("put_one.cu", source)?.load_function("put_one")?;
    /// let view = table.kernel_argument()?; // the kernel's first argument
    /// # let _ = (put_one, view);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotOnGpu`](Error::NotOnGpu); [`Compile`](Error::Compile) with NVRTC's log.
    pub fn compile(&self, name: &str, source: &str) -> Result<Arc<CudaModule>> {
        let gpu = self.device().as_gpu().ok_or_else(|| self.not_on_gpu("compile"))?;
        gpu.load(&Job::new(name, source, self.spec(), gpu.compute_capability()))
    }

    pub(super) fn not_on_gpu(&self, operation: &'static str) -> Error {
        Error::NotOnGpu { operation, device: self.device().to_string() }
    }
}

/// Compiles the kernels of [`Bucket`](crate::Bucket) or [`Tree`](crate::Tree) tables of `width`-word vectors for a GPU of some
/// compute capability. The GPU need not be present, because NVRTC does not use it. Returns a CUBIN with all kernels, or PTX if
/// this NVRTC does not know the architecture. Each call compiles: the kernel cache is not used.
///
/// ```
/// match warpset::gpu::compile_kernels::<warpset::Bucket>(8, (9, 0)) {
///     Ok(cubin) => assert!(cubin.len() > 1000),
///     Err(error) => println!("no NVRTC here: {error}"),
/// }
/// ```
///
/// # Errors
///
/// [`Width`](Error::Width), [`LibraryNotFound`](Error::LibraryNotFound), [`Compile`](Error::Compile).
pub fn compile_kernels<S: Plain>(width: usize, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    compile_spec(spec_of::<S>(width, compute_capability)?, compute_capability)
}

/// Compiles the kernels of a tree table whose trees are made by `strategy`, as [`compile_kernels`] does.
///
/// # Errors
///
/// As [`compile_kernels`].
pub fn compile_tree_kernels(width: usize, strategy: Strategy, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    compile_spec(Spec::tree(width, strategy, chunk_bytes(compute_capability))?, compute_capability)
}

/// Compiles the kernels of a [dense](crate::TableBuilder::dense) bucket table, as [`compile_kernels`] does.
///
/// # Errors
///
/// As [`compile_kernels`].
pub fn compile_dense_kernels(width: usize, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    compile_spec(Spec::bucket(width, chunk_bytes(compute_capability))?.dense(), compute_capability)
}

/// Compiles your own CUDA C++ as [`Table::compile`] does, but for a GPU that need not be present; for a bucket table, a tree
/// table with the default strategy, or an indexed table whose index has slots of 32 bits. `name` is for messages.
///
/// # Errors
///
/// As [`compile_kernels`].
pub fn compile_source<S: Plain>(name: &str, source: &str, width: usize, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    nvrtc::compile(&Job::new(name, source, spec_of::<S>(width, compute_capability)?, compute_capability), None)
}

fn spec_of<S: Plain>(width: usize, compute_capability: (u32, u32)) -> Result<Spec> {
    let chunk_bytes = chunk_bytes(compute_capability);
    match S::CHOICE {
        Choice::Tree { strategy } => Spec::tree(width, strategy, chunk_bytes),
        Choice::Indexed => Spec::indexed(width, 32, chunk_bytes),
        _ => Spec::bucket(width, chunk_bytes),
    }
}

/// Compiles the kernels of a compact table of `key_bits`-bit keys in `slot_bits`-bit slots, as [`compile_kernels`] does.
///
/// # Errors
///
/// [`KeyBits`](Error::KeyBits), [`SlotBits`](Error::SlotBits), [`LibraryNotFound`](Error::LibraryNotFound),
/// [`Compile`](Error::Compile).
pub fn compile_compact_kernels(key_bits: u32, slot_bits: u32, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    compile_spec(Spec::compact(key_bits, slot_bits, false, 8)?, compute_capability)
}

/// Compiles the kernels of a tree table of `width`-word vectors (at least 3), with `key_bits`-bit roots in `slot_bits`-bit slots,
/// as [`compile_kernels`] does.
///
/// # Errors
///
/// As [`compile_compact_kernels`]; [`Width`](Error::Width).
pub fn compile_compact_tree_kernels(
    width: usize,
    key_bits: u32,
    slot_bits: u32,
    compute_capability: (u32, u32),
) -> Result<Vec<u8>> {
    compile_spec(Spec::compact_tree(width, key_bits, slot_bits, 8)?, compute_capability)
}

/// Compiles the kernels of a rank of a [`cluster`](crate::cluster), which are the same for all tables, as [`compile_kernels`]
/// does.
///
/// # Errors
///
/// [`LibraryNotFound`](Error::LibraryNotFound), [`Compile`](Error::Compile).
pub fn compile_cluster_kernels(compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    nvrtc::compile(&Job::cluster(compute_capability), None)
}

/// Compiles the kernels of an indexed table of `width`-word vectors, whose index has slots of 32 or 64 bits, as
/// [`compile_kernels`] does.
///
/// # Errors
///
/// As [`compile_kernels`]; [`SlotBits`](Error::SlotBits).
pub fn compile_indexed_kernels(width: usize, slot_bits: u32, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    if ![32, 64].contains(&slot_bits) {
        return Err(Error::SlotBits { slot_bits });
    }
    compile_spec(Spec::indexed(width, slot_bits, chunk_bytes(compute_capability))?, compute_capability)
}

fn compile_spec(spec: Spec, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    nvrtc::compile(&Job::table(spec, None, compute_capability), None)
}
