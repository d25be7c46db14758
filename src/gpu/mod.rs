//! Tables and the rest of your program on the same GPU: batches in device memory, streams, and kernels of your own.
//!
//! The types are those of [`cudarc`], which is re-exported as [`warpset::cudarc`](crate::cudarc). See the example
//! `custom_kernel` for a whole search that never leaves the GPU.

use crate::backend::cuda::Gpu;
use crate::core::options::Choice;
use crate::core::store::Search;
use crate::core::view::BatchView;
pub use crate::core::view::{CompactTreeView, CompactView, Counts, HashView, LevelView, NodeView, TableView, TreeView};
use crate::{Device, Error, Key, Plain, Result, Storage, Strategy, Table};
use cudarc::driver::{
    CudaModule, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice, SyncOnDrop,
};
use std::marker::PhantomData;
use std::sync::Arc;

/// The CUDA C++ headers, as (name for `#include`, text): what a kernel of your own includes to use a table.
///
/// [`Table::compile`] has them at hand; give them to your own build otherwise.
pub const HEADERS: &[(&str, &str)] = &crate::backend::cuda::nvrtc::HEADERS;

// SAFETY: `repr(C)`, five u64: the same on the device.
unsafe impl DeviceRepr for Counts {}
// SAFETY: as above; all zeros are counts of nothing.
unsafe impl cudarc::driver::ValidAsZeroBits for Counts {}
// SAFETY: `repr(C)` with the layout of `warpset::TableView` in bucket/table.cuh; sizes are compared when kernels are loaded.
unsafe impl DeviceRepr for TableView {}
// SAFETY: as above, of tree/table.cuh.
unsafe impl DeviceRepr for TreeView {}
// SAFETY: as above, of compact/table.cuh.
unsafe impl DeviceRepr for CompactView {}
// SAFETY: as above, of tree/table.cuh.
unsafe impl DeviceRepr for CompactTreeView {}

/// Device memory that a kernel may read: a `CudaSlice`, a `CudaView` or a `CudaViewMut` of [`cudarc`], or a [`ForeignSlice`].
///
/// Sealed: what it says of itself is trusted.
pub trait Buffer<T>: DevicePtr<T> + sealed::Buffer {}

/// Device memory that a kernel may write: a `CudaSlice`, a `CudaViewMut` or a [`ForeignSlice`].
pub trait BufferMut<T>: DevicePtrMut<T> + sealed::Buffer {}

impl<T> Buffer<T> for CudaSlice<T> {}
impl<T> Buffer<T> for CudaView<'_, T> {}
impl<T> Buffer<T> for CudaViewMut<'_, T> {}
impl<T> Buffer<T> for ForeignSlice<T> {}
impl<T> BufferMut<T> for CudaSlice<T> {}
impl<T> BufferMut<T> for CudaViewMut<'_, T> {}
impl<T> BufferMut<T> for ForeignSlice<T> {}

mod sealed {
    use super::{CudaSlice, CudaStream, CudaView, CudaViewMut, DeviceSlice, ForeignSlice};
    use std::sync::Arc;

    pub trait Buffer {
        /// On which the memory is freed; none of a foreign one.
        fn owner(&self) -> Option<&Arc<CudaStream>>;
    }

    impl<T> Buffer for CudaSlice<T> {
        fn owner(&self) -> Option<&Arc<CudaStream>> {
            Some(self.stream())
        }
    }

    impl<T> Buffer for CudaView<'_, T> {
        fn owner(&self) -> Option<&Arc<CudaStream>> {
            Some(self.stream())
        }
    }

    impl<T> Buffer for CudaViewMut<'_, T> {
        fn owner(&self) -> Option<&Arc<CudaStream>> {
            Some(self.stream())
        }
    }

    impl<T> Buffer for ForeignSlice<T> {
        fn owner(&self) -> Option<&Arc<CudaStream>> {
            None
        }
    }
}

/// A batch in device memory: the buffers that kernels read and write, each of at least `count` elements or rows, on the table's GPU.
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
/// table.find_or_put_device(&stream, DeviceBatch::new(&vectors, 3).counts(&mut counts))?;
/// assert_eq!(stream.clone_dtoh(&counts)?[0].tally().new, 2);
/// # Ok(()) }
/// ```
#[must_use = "a batch is nothing until it is given to `find_or_put_device` or `find_device`"]
pub struct DeviceBatch<'a, E = u32> {
    vectors: &'a dyn Buffer<E>,
    count: usize,
    parents: Option<&'a dyn Buffer<u64>>,
    changed: Option<&'a dyn Buffer<u32>>,
    outcomes: Option<&'a mut dyn BufferMut<u8>>,
    references: Option<&'a mut dyn BufferMut<u64>>,
    new_references: Option<&'a mut dyn BufferMut<u64>>,
    counts: Option<&'a mut dyn BufferMut<Counts>>,
}

impl<'a, E> DeviceBatch<'a, E> {
    /// A batch of `count` vectors that reports nothing yet.
    ///
    /// `vectors`: one after another, words or keys; 16-byte aligned if the width is a multiple of 4 words, 8-byte if of 2.
    pub fn new(vectors: &'a dyn Buffer<E>, count: usize) -> Self {
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

    /// Per vector: the slot of the stored vector that it is a change of, or `u64::MAX`; see [`Request::parents`](crate::Request::parents).
    ///
    /// Slots of this generation of the table: a number from before it grew, was cleared or relocated keys is another vector's by now, which
    /// nobody can tell by the number. A [`Reference::to_bits`](crate::Reference::to_bits) counts as of none: then the whole vector is looked for.
    pub fn parents(mut self, slots: &'a dyn Buffer<u64>) -> Self {
        self.parents = Some(slots);
        self
    }

    /// Per vector: a mask of the words that may differ from the parent's; see [`Request::changed`](crate::Request::changed). Only with
    /// [`parents`](Self::parents).
    pub fn changed(mut self, masks: &'a dyn Buffer<u32>) -> Self {
        self.changed = Some(masks);
        self
    }

    /// Per vector: 1 new, 2 seen, 3 full, 4 absent ([`Outcome`](crate::Outcome) has the first three).
    pub fn outcomes(mut self, buffer: &'a mut dyn BufferMut<u8>) -> Self {
        self.outcomes = Some(buffer);
        self
    }

    /// Per vector: the number of its slot, or `u64::MAX` if it is not stored. [`Table::reference`] makes a [`Reference`](crate::Reference) of it.
    pub fn references(mut self, slots: &'a mut dyn BufferMut<u64>) -> Self {
        self.references = Some(slots);
        self
    }

    /// The slots of the new vectors, in no order, appended: from element `counts.new_references` on, as that is when the kernel starts. Room
    /// for `count`. Those that find no room, because others were there already, are counted but not written. Needs [`counts`](Self::counts).
    pub fn new_references(mut self, slots: &'a mut dyn BufferMut<u64>) -> Self {
        self.new_references = Some(slots);
        self
    }

    /// One element, which the batch's counts are added to: of several batches together, if it is not zeroed between them.
    pub fn counts(mut self, buffer: &'a mut dyn BufferMut<Counts>) -> Self {
        self.counts = Some(buffer);
        self
    }
}

/// Device memory that another library owns (PyTorch, CuPy, CUDA C++), as [`DeviceBatch`] takes it: `len` elements from an address on.
///
/// Nothing is copied, freed or waited for. The chapter [interoperation](crate::interoperation) has examples.
#[derive(Clone, Debug)]
pub struct ForeignSlice<T> {
    address: u64,
    len: usize,
    stream: Arc<CudaStream>,
    elements: PhantomData<*mut T>,
}

// SAFETY: an address and a length; what they may be used for is in the contract of `new`.
unsafe impl<T: Send> Send for ForeignSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for ForeignSlice<T> {}

impl<T: DeviceRepr> ForeignSlice<T> {
    /// `len` elements from `address` on, in the memory of the GPU `device`.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (address, rows) = (0u64, 1usize);
    /// use warpset::gpu::{DeviceBatch, ForeignSlice};
    ///
    /// let table = warpset::BucketTable::new(&warpset::Device::gpu(0)?, 4, 1_000_000)?;
    /// // SAFETY: `address` is the `data_ptr()` of a contiguous int32 tensor of shape (rows, 4), which lives until the synchronisation below.
    /// let vectors = unsafe { ForeignSlice::<u32>::new(table.device(), address, rows * 4)? };
    /// let stream = table.device().cuda_context().unwrap().new_stream()?;
    /// table.find_or_put_device(&stream, DeviceBatch::new(&vectors, rows))?;
    /// stream.synchronize()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotOnGpu`](Error::NotOnGpu), [`Misaligned`](Error::Misaligned), or [`WrongDevice`](Error::WrongDevice) if the driver knows the address as
    /// that of another GPU or context, or not as device memory at all.
    ///
    /// # Safety
    ///
    /// Until the last kernel that uses it has ended: the memory is of the device's context (of the primary one, unless the device is
    /// [`from_context`](Device::from_context)), holds `len` valid elements and stays allocated; and nobody writes it (nor
    /// reads it, if kernels write it) but in order with the streams that these run on.
    pub unsafe fn new(device: &Device, address: u64, len: usize) -> Result<Self> {
        let gpu =
            device.as_gpu().ok_or_else(|| Error::NotOnGpu { operation: "ForeignSlice::new", device: device.to_string() })?;
        let alignment = align_of::<T>() as u64;
        if !address.is_multiple_of(alignment) {
            return Err(Error::Misaligned { what: "a foreign slice", address, alignment });
        }
        if len > 0 {
            gpu.check_address("a foreign slice", address)?;
        }
        Ok(Self { address, len, stream: gpu.context().default_stream(), elements: PhantomData })
    }
}

impl<T> DeviceSlice<T> for ForeignSlice<T> {
    fn len(&self) -> usize {
        self.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl<T> DevicePtr<T> for ForeignSlice<T> {
    fn device_ptr<'a>(&'a self, _: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        (self.address, SyncOnDrop::Sync(None))
    }
}

impl<T> DevicePtrMut<T> for ForeignSlice<T> {
    fn device_ptr_mut<'a>(&'a mut self, _: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        (self.address, SyncOnDrop::Sync(None))
    }
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Enqueues find-or-put of a [batch in device memory](DeviceBatch) on `stream`, and returns: nothing is copied or waited for.
    ///
    /// Buffers are the caller's, of this GPU. Work on them through `cudarc` is ordered by it. The table never grows by itself
    /// here: watch `counts.full`, or outcome 3. (So is a key of too many bits for a [`RootTable`](crate::RootTable): nobody has looked at it
    /// before.) Batches on several streams, and from the host, may overlap.
    ///
    /// Streams and buffers are of the very [`CudaContext`](cudarc::driver::CudaContext) that [`Device::cuda_context`] gives: another object
    /// for the same context of the driver does not know of the first one's streams, and would not order work on them.
    /// [`Device::from_context`] makes a device of an object of yours.
    ///
    /// # Errors
    ///
    /// [`NotOnGpu`](Error::NotOnGpu), [`WrongDevice`](Error::WrongDevice), [`BufferTooShort`](Error::BufferTooShort),
    /// [`Misaligned`](Error::Misaligned), [`Capturing`](Error::Capturing), all before anything is enqueued; or what the driver reports.
    pub fn find_or_put_device<'a>(&self, stream: &'a CudaStream, batch: DeviceBatch<'a, K::Element>) -> Result<()> {
        self.search_device(Search::FindOrPut, "find_or_put_device", stream, batch)
    }

    /// Enqueues the lookup of a batch in device memory on `stream`, and returns. Otherwise as
    /// [`find_or_put_device`](Self::find_or_put_device); outcomes are seen or absent.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn find_device<'a>(&self, stream: &'a CudaStream, batch: DeviceBatch<'a, K::Element>) -> Result<()> {
        self.search_device(Search::Find, "find_device", stream, batch)
    }

    fn search_device<'a>(
        &self,
        search: Search,
        name: &'static str,
        stream: &'a CudaStream,
        batch: DeviceBatch<'a, K::Element>,
    ) -> Result<()> {
        // Held once: a second reader of the lock would wait for ever behind a writer who waits for the first.
        let sized = self.raw.ready()?;
        let store = sized.store.on_gpu().ok_or_else(|| self.not_on_gpu(name))?;
        let gpu = store.gpu();
        let DeviceBatch { vectors, count, parents, changed, outcomes, references, new_references, counts } = batch;
        gpu.check_own("stream", stream)?;
        let needed = count.saturating_mul(K::elements(self.width()));
        check(gpu, "vectors", vectors, needed)?;
        parents.map_or(Ok(()), |buffer| check(gpu, "parents", buffer, count))?;
        changed.map_or(Ok(()), |buffer| check(gpu, "changed", buffer, count.saturating_mul(sized.spec.mask_words())))?;
        if changed.is_some() && parents.is_none() {
            return Err(Error::BufferTooShort { what: "parents (needed with changed)", given: 0, needed: count });
        }
        outcomes.as_deref().map_or(Ok(()), |buffer| check(gpu, "outcomes", buffer, count))?;
        references.as_deref().map_or(Ok(()), |buffer| check(gpu, "references", buffer, count))?;
        new_references.as_deref().map_or(Ok(()), |buffer| check(gpu, "new_references", buffer, count))?;
        counts.as_deref().map_or(Ok(()), |buffer| check(gpu, "counts", buffer, 1))?;
        if new_references.is_some() && counts.is_none() {
            return Err(Error::BufferTooShort { what: "counts (needed with new_references)", given: 0, needed: 1 });
        }
        gpu.check_not_capturing(stream)?;
        // Streams of buffers that are not made on this one. What is done to a buffer by its own stream after this call, freeing it included,
        // must come after this batch; `cudarc` orders the last reader of a buffer only.
        let mut owners: Vec<Arc<CudaStream>> = Vec::new();
        let mut owned = |owner: Option<&Arc<CudaStream>>| {
            let is_known = |owner: &Arc<CudaStream>| owners.iter().any(|known| known.cu_stream() == owner.cu_stream());
            if let Some(owner) = owner.filter(|owner| owner.cu_stream() != stream.cu_stream() && !is_known(owner)) {
                owners.push(owner.clone());
            }
        };
        owned(vectors.owner());
        parents.iter().for_each(|buffer| owned(buffer.owner()));
        changed.iter().for_each(|buffer| owned(buffer.owner()));
        outcomes.iter().for_each(|buffer| owned(buffer.owner()));
        references.iter().for_each(|buffer| owned(buffer.owner()));
        new_references.iter().for_each(|buffer| owned(buffer.owner()));
        counts.iter().for_each(|buffer| owned(buffer.owner()));
        let new_capacity = new_references.as_ref().map_or(0, |buffer| buffer.len() as u64);
        let sized = &sized;
        gpu.recorded(move || {
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
            // Whether the stream really waits for what was done to the buffers; and whether one of them has drawn it into a capture.
            gpu.check_recorded()?;
            gpu.check_not_capturing(stream)?;
            let view = BatchView {
                vectors: vectors_at,
                count: count as u64,
                outcomes: outcomes_at,
                references: references_at,
                new_references: new_references_at,
                new_capacity,
                counts: counts_at,
                parents: parents_at,
                changed: changed_at,
                workspace: 0,
                tag: 0,
            };
            // SAFETY:
            // - the buffers are of this GPU's context, have room (checked above) and are borrowed; the stream waits for what was done to them
            //   (checked above), and their own streams, on which they are freed, wait for this one (below; a foreign one is as its owner has
            //   promised); the work is not kept in a graph, to be launched after that;
            // - new references are written below `new_capacity` only, whatever the counts were;
            // - vectors are aligned (checked above);
            // - a table waits for its GPU before it is dropped or replaced.
            let enqueued = unsafe { store.enqueue(search, &view, stream.cu_stream()) };
            let ordered = gpu.let_wait(&owners, stream);
            enqueued.and(ordered)
        })
    }

    /// What a kernel of your own takes as its `warpset::View` argument to use this table: the `View` of [`gpu`](crate::gpu) that its kind has.
    ///
    /// Valid until the table grows or is dropped. A kernel that uses it must not be under way, or be launched, during `clear`, `grow` and
    /// `relocate`, nor after an error of `relocate` until another call has succeeded: whoever launches it vouches for that, by `unsafe`.
    /// (Dropping a table waits for all work of the GPU that was submitted before.) References that its threads get are slot numbers
    /// ([`reference`](Self::reference)). What they put by `Table::find_or_put` is counted in [`len`](Self::len).
    ///
    /// # Errors
    ///
    /// [`NotOnGpu`](Error::NotOnGpu).
    pub fn kernel_argument(&self) -> Result<S::View> {
        let view = self.raw.ready()?.store.on_gpu().map(|store| store.view().into());
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
pub fn compile_kernels<S: Plain>(width: usize, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    compile_spec(spec_of::<S>(width, compute_capability)?, compute_capability)
}

/// The same of a tree table whose trees are made by `strategy`.
///
/// # Errors
///
/// The same.
pub fn compile_tree_kernels(width: usize, strategy: Strategy, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    compile_spec(crate::Spec::tree(width, strategy, chunk_bytes(compute_capability))?, compute_capability)
}

/// Compiles CUDA C++ of your own for such a table, as [`Table::compile`] does, for a GPU that need not be there. `name` is for messages.
///
/// # Errors
///
/// The same.
pub fn compile_source<S: Plain>(name: &str, source: &str, width: usize, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    crate::backend::cuda::nvrtc::compile(name, source, spec_of::<S>(width, compute_capability)?, compute_capability)
}

fn spec_of<S: Plain>(width: usize, compute_capability: (u32, u32)) -> Result<crate::Spec> {
    let chunk_bytes = chunk_bytes(compute_capability);
    match S::CHOICE {
        Choice::Tree { strategy } => crate::Spec::tree(width, strategy, chunk_bytes),
        _ => crate::Spec::bucket(width, chunk_bytes),
    }
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
    compile_spec(crate::Spec::compact(key_bits, slot_bits, false, 8)?, compute_capability)
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
    compile_spec(crate::Spec::compact_tree(width, key_bits, slot_bits, 8)?, compute_capability)
}

fn compile_spec(spec: crate::Spec, compute_capability: (u32, u32)) -> Result<Vec<u8>> {
    let (name, source) = crate::backend::cuda::nvrtc::TABLE_KERNELS;
    crate::backend::cuda::nvrtc::compile(name, source, spec, compute_capability)
}

/// An error unless a buffer is in the memory of this GPU's context, and has room.
fn check<T>(gpu: &Gpu, what: &'static str, buffer: &(impl DeviceSlice<T> + ?Sized), needed: usize) -> Result<()> {
    gpu.check_own(what, buffer.stream())?;
    let given = buffer.len();
    if given < needed { Err(Error::BufferTooShort { what, given, needed }) } else { Ok(()) }
}

fn some<A, B>((first, second): (A, B)) -> (A, Option<B>) {
    (first, Some(second))
}

fn address<'a, T>(buffer: Option<&'a mut dyn BufferMut<T>>, stream: &'a CudaStream) -> (u64, Option<SyncOnDrop<'a>>) {
    match buffer {
        None => (0, None),
        Some(buffer) => {
            let (address, sync) = buffer.device_ptr_mut(stream);
            (address, Some(sync))
        }
    }
}
