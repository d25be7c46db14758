//! Tables and the rest of your program on the same GPU: batches in device memory, streams, and kernels of your own.
//!
//! The types are those of [`cudarc`], which is re-exported as [`warpset::cudarc`](crate::cudarc). See the example
//! `custom_kernel` for a whole search that never leaves the GPU.

use crate::raw::Search;
use crate::raw::view::BatchView;
pub use crate::raw::view::{CompactTreeView, CompactView, Counts, HashView, LevelView, NodeView, TableView, TreeView};
use crate::table::{Storage, VectorTable};
use crate::{Error, Reference, Result, Strategy};
use cudarc::driver::{CudaModule, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, SyncOnDrop};
use std::sync::Arc;

/// The CUDA C++ headers, as (name for `#include`, text): what a kernel of your own includes to use a table.
///
/// [`VectorTable::compile`] has them at hand; give them to your own build otherwise.
pub const HEADERS: &[(&str, &str)] = &crate::raw::cuda::nvrtc::HEADERS;

// SAFETY: `repr(C)`, five u64: the same on the device.
unsafe impl DeviceRepr for Counts {}
// SAFETY: as above; all zeros are counts of nothing.
unsafe impl cudarc::driver::ValidAsZeroBits for Counts {}
// SAFETY: `repr(C)` with the layout of `warpset::TableView` in bucket_table.cuh; sizes are compared when kernels are loaded.
unsafe impl DeviceRepr for TableView {}
// SAFETY: as above, of tree_table.cuh.
unsafe impl DeviceRepr for TreeView {}
// SAFETY: as above, of compact_table.cuh.
unsafe impl DeviceRepr for CompactView {}
// SAFETY: as above, of tree_table.cuh.
unsafe impl DeviceRepr for CompactTreeView {}

/// A batch in device memory.
pub struct DeviceBatch<'a> {
    /// `count` vectors, one after another, 16-byte aligned if the width is a multiple of 4, 8-byte if of 2.
    pub vectors: &'a dyn DevicePtr<u32>,
    /// How many vectors.
    pub count: usize,
    /// Per vector: the slot of the stored vector that it is a change of, or `u64::MAX`; see [`Request::parents`](crate::Request::parents).
    pub parents: Option<&'a dyn DevicePtr<u64>>,
    /// Per vector: a mask of the words that may differ from the parent's; see [`Request::changed`](crate::Request::changed). Only
    /// with `parents`.
    pub changed: Option<&'a dyn DevicePtr<u32>>,
    /// Per vector: 1 new, 2 seen, 3 full, 4 absent ([`Outcome`](crate::Outcome) has the first three).
    pub outcomes: Option<&'a mut dyn DevicePtrMut<u8>>,
    /// Per vector: the slot, or `u64::MAX` if it is not stored.
    pub references: Option<&'a mut dyn DevicePtrMut<u64>>,
    /// The slots of the new vectors, in no order, from the start; room for `count`.
    pub new_references: Option<&'a mut dyn DevicePtrMut<u64>>,
    /// One element, which the batch's counts are added to. Needed with `new_references`, whose places it counts: zero it before each
    /// such batch, or references are written beyond the start of the buffer, and beyond its end.
    pub counts: Option<&'a mut dyn DevicePtrMut<Counts>>,
}

impl<'a> DeviceBatch<'a> {
    /// A batch of `count` vectors that reports nothing yet.
    pub fn new(vectors: &'a dyn DevicePtr<u32>, count: usize) -> Self {
        Self {
            vectors,
            count,
            parents: None,
            changed: None,
            outcomes: None,
            references: None,
            new_references: None,
            counts: None,
        }
    }
}

impl<S: Storage> VectorTable<S> {
    /// Enqueues find-or-put of a batch in device memory on `stream`, and returns: nothing is copied or waited for.
    ///
    /// Buffers are the caller's, of this GPU. Work on them through `cudarc` is ordered by it. The table never grows by itself
    /// here: watch `counts.full`, or outcome 3. Batches on several streams, and from the host, may overlap.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use warpset::gpu::{Counts, DeviceBatch};
    /// use warpset::{BucketTable, Device};
    ///
    /// let table = BucketTable::new(&Device::gpu(0)?, 2, 1000)?;
    /// let stream = table.device().cuda_context().unwrap().new_stream()?;
    /// let vectors = stream.clone_htod(&[1u32, 1, 2, 2, 1, 1])?;
    /// let mut counts = stream.alloc_zeros::<Counts>(1)?;
    /// table.find_or_put_device(&stream, DeviceBatch { counts: Some(&mut counts), ..DeviceBatch::new(&vectors, 3) })?;
    /// assert_eq!(stream.clone_dtoh(&counts)?[0].tally().new, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotOnGpu`](Error::NotOnGpu), [`WrongDevice`](Error::WrongDevice), [`BufferTooShort`](Error::BufferTooShort),
    /// [`Misaligned`](Error::Misaligned), all before anything is enqueued; or what the driver reports.
    pub fn find_or_put_device<'a>(&self, stream: &'a CudaStream, batch: DeviceBatch<'a>) -> Result<()> {
        self.search_device(Search::FindOrPut, "find_or_put_device", stream, batch)
    }

    /// Enqueues the lookup of a batch in device memory on `stream`, and returns. Otherwise as
    /// [`find_or_put_device`](Self::find_or_put_device); outcomes are seen or absent.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn find_device<'a>(&self, stream: &'a CudaStream, batch: DeviceBatch<'a>) -> Result<()> {
        self.search_device(Search::Find, "find_device", stream, batch)
    }

    fn search_device<'a>(
        &self,
        search: Search,
        name: &'static str,
        stream: &'a CudaStream,
        batch: DeviceBatch<'a>,
    ) -> Result<()> {
        // Held once: a second reader of the lock would wait for ever behind a writer who waits for the first.
        let sized = self.raw.sized();
        let store = sized.store.on_gpu().ok_or_else(|| self.not_on_gpu(name))?;
        if stream.context().ordinal() != store.gpu().ordinal() {
            let given = stream.context().ordinal();
            return Err(Error::WrongDevice { given, table: format!("GPU {}: {}", store.gpu().ordinal(), store.gpu().name()) });
        }
        let DeviceBatch { vectors, count, parents, changed, outcomes, references, new_references, counts } = batch;
        let room = |what, given: usize, needed: usize| {
            if given < needed { Err(Error::BufferTooShort { what, given, needed }) } else { Ok(()) }
        };
        room("vectors", vectors.len(), count.saturating_mul(self.width()))?;
        parents.map_or(Ok(()), |buffer| room("parents", buffer.len(), count))?;
        changed.map_or(Ok(()), |buffer| room("changed", buffer.len(), count.saturating_mul(sized.spec.mask_words())))?;
        if changed.is_some() && parents.is_none() {
            return Err(Error::BufferTooShort { what: "parents (needed with changed)", given: 0, needed: count });
        }
        outcomes.as_ref().map_or(Ok(()), |buffer| room("outcomes", buffer.len(), count))?;
        references.as_ref().map_or(Ok(()), |buffer| room("references", buffer.len(), count))?;
        new_references.as_ref().map_or(Ok(()), |buffer| room("new_references", buffer.len(), count))?;
        counts.as_ref().map_or(Ok(()), |buffer| room("counts", buffer.len(), 1))?;
        if new_references.is_some() && counts.is_none() {
            return Err(Error::BufferTooShort { what: "counts (needed with new_references)", given: 0, needed: 1 });
        }
        let (vectors_at, _read) = vectors.device_ptr(stream);
        let alignment = sized.spec.vector_alignment();
        if !vectors_at.is_multiple_of(alignment) {
            return Err(Error::Misaligned { what: "vectors", address: vectors_at, alignment });
        }
        if count == 0 {
            return Ok(());
        }
        let (parents_at, _parents) = parents.map_or((0, None), |buffer| some(buffer.device_ptr(stream)));
        let (changed_at, _changed) = changed.map_or((0, None), |buffer| some(buffer.device_ptr(stream)));
        let (outcomes_at, _outcomes) = address(outcomes, stream);
        let (references_at, _references) = address(references, stream);
        let (new_references_at, _new_references) = address(new_references, stream);
        let (counts_at, _counts) = address(counts, stream);
        let view = BatchView {
            vectors: vectors_at,
            count: count as u64,
            outcomes: outcomes_at,
            references: references_at,
            new_references: new_references_at,
            counts: counts_at,
            parents: parents_at,
            changed: changed_at,
            workspace: 0,
        };
        // SAFETY:
        // - the buffers have room (checked above) and are borrowed; their owners free them in order with their streams, which
        //   the `SyncOnDrop`s above tie to this one;
        // - vectors are aligned (checked above);
        // - a table waits for its GPU before it is dropped or replaced.
        unsafe { store.enqueue(search, &view, stream.cu_stream()) }
    }

    /// What a kernel of your own takes as its `warpset::View` argument to use this table: the `View` of [`gpu`](crate::gpu) that its kind has.
    ///
    /// Valid until the table grows or is dropped; a kernel that uses it must not be under way, or be launched, during `clear` and
    /// `grow`. What its threads put by `Table::find_or_put` is counted in [`len`](Self::len).
    ///
    /// # Errors
    ///
    /// [`NotOnGpu`](Error::NotOnGpu).
    pub fn kernel_argument(&self) -> Result<S::View> {
        let view = self.raw.sized().store.on_gpu().map(|store| store.view().into());
        view.ok_or_else(|| self.not_on_gpu("kernel_argument"))
    }

    /// Compiles CUDA C++ of your own for this table's GPU and loads it. The source may include `warpset/table.cuh`, where
    /// `warpset::Table` is this table's type. `name` is for messages.
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
        gpu.compile(name, source, self.spec())
    }

    fn not_on_gpu(&self, operation: &'static str) -> Error {
        Error::NotOnGpu { operation, device: self.device().to_string() }
    }
}

/// Compiles the kernels of [`Bucket`](crate::Bucket) or [`Tree`](crate::Tree) tables of `width`-word vectors for a GPU of some compute capability, which need not be there: NVRTC
/// does without. Returns the CUBIN, or PTX if this NVRTC does not know the architecture.
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
pub fn compile_kernels<S: Storage>(width: usize, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    compile_spec(spec_of::<S>(width, compute_capability)?, compute_capability)
}

/// The same of a tree table whose trees are made by `strategy`.
///
/// # Errors
///
/// The same.
pub fn compile_tree_kernels(width: usize, strategy: Strategy, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    compile_spec(crate::Spec::of_tree(width, strategy, chunk_bytes(compute_capability))?, compute_capability)
}

/// Compiles CUDA C++ of your own for such a table, as [`VectorTable::compile`] does, for a GPU that need not be there. `name` is for messages.
///
/// # Errors
///
/// The same.
pub fn compile_source<S: Storage>(name: &str, source: &str, width: usize, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    crate::raw::cuda::nvrtc::compile(name, source, spec_of::<S>(width, compute_capability)?, compute_capability)
}

fn spec_of<S: Storage>(width: usize, compute_capability: (u32, u32)) -> Result<crate::Spec> {
    let chunk_bytes = chunk_bytes(compute_capability);
    if S::TREE { crate::Spec::of_tree(width, Strategy::Default, chunk_bytes) } else { crate::Spec::new(width, chunk_bytes) }
}

fn chunk_bytes(compute_capability: (u32, u32)) -> u32 {
    if compute_capability.0 >= 9 { 16 } else { 8 }
}

/// The same of a compact table of keys of `key_bits` bits in slots of `slot_bits`.
///
/// # Errors
///
/// [`KeyBits`](Error::KeyBits), [`SlotBits`](Error::SlotBits), [`LibraryNotFound`](Error::LibraryNotFound), [`Compile`](Error::Compile).
pub fn compile_compact_kernels(key_bits: u32, slot_bits: u32, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    compile_spec(crate::Spec::of_keys(key_bits, slot_bits, 8)?, compute_capability)
}

/// The same of a tree table of `width`-word vectors, three or more, with roots of `key_bits` bits in slots of `slot_bits`.
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
    compile_spec(crate::Spec::of_compact_tree(width, key_bits, slot_bits, 8)?, compute_capability)
}

fn compile_spec(spec: crate::Spec, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    let (name, source) = crate::raw::cuda::nvrtc::TABLE_KERNELS;
    crate::raw::cuda::nvrtc::compile(name, source, spec, compute_capability)
}

fn some<A, B>((first, second): (A, B)) -> (A, Option<B>) {
    (first, Some(second))
}

fn address<'a, T>(buffer: Option<&'a mut dyn DevicePtrMut<T>>, stream: &'a CudaStream) -> (u64, Option<SyncOnDrop<'a>>) {
    match buffer {
        None => (0, None),
        Some(buffer) => {
            let (address, sync) = buffer.device_ptr_mut(stream);
            (address, Some(sync))
        }
    }
}

// SAFETY: `repr(transparent)` over u64.
unsafe impl DeviceRepr for Reference {}
