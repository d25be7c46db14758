//! Batches in device memory.

use super::Stream;
use super::buffer::{Buffer, BufferMut};
use crate::backend::Launch;
use crate::backend::cuda::{CudaStore, Gpu};
use crate::core::table::TableState;
use crate::layout::SearchMode;
use crate::layout::bulk::Bulk;
use crate::layout::view::{BatchView, Counts};
use crate::{Error, Key, MemoryLimit, Result, Storage, Table};
use cudarc::driver::{CudaStream, DeviceSlice, SyncOnDrop};
use std::fmt;
use std::sync::Arc;

/// A batch in device memory: the buffers that kernels read and write, each of at least `count` elements or rows, on the table's
/// GPU.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use warpset::gpu::cudarc_0_19::DeviceExt;
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
#[must_use = "a batch does nothing until it is passed to `find_or_put_device` or `find_device`"]
pub struct DeviceBatch<'a, E = u32> {
    vectors: &'a dyn Buffer<E>,
    count: usize,
    parents: Option<&'a dyn Buffer<u64>>,
    changed: Option<&'a dyn Buffer<u32>>,
    outcomes: Option<&'a mut dyn BufferMut<u8>>,
    references: Option<&'a mut dyn BufferMut<u64>>,
    new_references: Option<&'a mut dyn BufferMut<u64>>,
    counts: Option<&'a mut dyn BufferMut<Counts>>,
    leaves_holes: bool,
    bulk: Bulk,
}

impl<'a, E> DeviceBatch<'a, E> {
    /// Makes a batch of `count` vectors that reports nothing yet.
    ///
    /// `vectors`: one after another, words, or keys of whole words; 16-byte aligned if the width is a multiple of 4 words, 8-byte
    /// aligned if it is a multiple of 2.
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
            leaves_holes: false,
            bulk: Bulk::Never,
        }
    }

    /// Sets whether [`find_or_put_device`](Table::find_or_put_device) puts the batch in [bulk](Bulk). The default is never,
    /// because such a call waits for all work on the GPU, and for the batch: its results are there when it returns. If the stream
    /// waits for something that the calling thread does later, the call never returns.
    ///
    /// A batch with parents, references or new references is never put in bulk.
    pub fn bulk(mut self, bulk: Bulk) -> Self {
        self.bulk = bulk;
        self
    }

    /// Sets whether holes stay unfilled: see [`Request::leave_holes`](crate::Request::leave_holes).
    pub fn leave_holes(mut self, leave: bool) -> Self {
        self.leaves_holes = leave;
        self
    }

    /// Per vector: the slot number of its parent, the stored vector from which it differs in some words, or `u64::MAX` if it has
    /// none; see [`Request::parents`](crate::Request::parents).
    ///
    /// The slots must be of the table's present generation. A slot number from before the table grew, was cleared or relocated
    /// keys now belongs to another vector, and no check notices that. The bits of a [`Reference`](crate::Reference) are not a
    /// slot number: if they are passed for a parent, the whole vector is looked for.
    pub fn parents(mut self, slots: &'a dyn Buffer<u64>) -> Self {
        self.parents = Some(slots);
        self
    }

    /// Per vector: a mask of the words that may differ from the parent's; see [`Request::changed`](crate::Request::changed). Only
    /// with [`parents`](Self::parents).
    pub fn changed(mut self, masks: &'a dyn Buffer<u32>) -> Self {
        self.changed = Some(masks);
        self
    }

    /// Per vector: 1 new, 2 seen, 3 full, 4 absent ([`Outcome`](crate::Outcome) has the first three).
    pub fn outcomes(mut self, buffer: &'a mut dyn BufferMut<u8>) -> Self {
        self.outcomes = Some(buffer);
        self
    }

    /// Per vector: the number of its slot, or `u64::MAX` if it is not stored. [`Table::reference`] converts the number into a
    /// [`Reference`](crate::Reference).
    pub fn references(mut self, slots: &'a mut dyn BufferMut<u64>) -> Self {
        self.references = Some(slots);
        self
    }

    /// Appends the slots of the new vectors, in no order. The first goes to element `counts.new_references`, the value when the
    /// kernel starts. The buffer needs `count` elements. Slots that do not fit, because the buffer already has others, are
    /// counted but not written. Needs [`counts`](Self::counts).
    pub fn new_references(mut self, slots: &'a mut dyn BufferMut<u64>) -> Self {
        self.new_references = Some(slots);
        self
    }

    /// One element, to which the kernel adds the batch's counts. Zero it before the batch, unless it should sum up several
    /// batches.
    pub fn counts(mut self, buffer: &'a mut dyn BufferMut<Counts>) -> Self {
        self.counts = Some(buffer);
        self
    }
}

impl<E> DeviceBatch<'_, E> {
    /// Whether the batch is put in bulk into this table, if there is memory.
    fn takes_bulk(&self, store: &CudaStore) -> bool {
        let is_plain = self.parents.is_none() && self.references.is_none() && self.new_references.is_none();
        is_plain && store.takes_bulk(self.bulk, self.count as u64, self.outcomes.is_some())
    }
}

/// Shows the number of vectors, and which buffers were given.
impl<E> fmt::Debug for DeviceBatch<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBatch")
            .field("count", &self.count)
            .field("parents", &self.parents.is_some())
            .field("changed", &self.changed.is_some())
            .field("outcomes", &self.outcomes.is_some())
            .field("references", &self.references.is_some())
            .field("new_references", &self.new_references.is_some())
            .field("counts", &self.counts.is_some())
            .field("leaves_holes", &self.leaves_holes)
            .field("bulk", &self.bulk)
            .finish_non_exhaustive()
    }
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Enqueues find-or-put of a [batch in device memory](DeviceBatch) on `stream`, and returns. Nothing is copied or waited for.
    ///
    /// The buffers belong to the caller, and are on this GPU. `cudarc` orders work on them. The table never grows by itself here:
    /// watch `counts.full`, or outcome 3. A key with too many bits for a [`RootTable`](crate::RootTable) also gets outcome 3.
    /// Batches on several streams, and from the host, may overlap.
    ///
    /// Streams and buffers of `cudarc` must belong to the very `CudaContext` object that
    /// [`cuda_context`](super::cudarc_0_19::DeviceExt::cuda_context) returns. Another object for the same driver context does not
    /// know the streams of this object, and would not order work on them.
    /// [`from_context`](super::cudarc_0_19::DeviceExt::from_context) makes a device of your own object.
    ///
    /// # Errors
    ///
    /// [`WrongDevice`](Error::WrongDevice), [`LengthMismatch`](Error::LengthMismatch), [`Misaligned`](Error::Misaligned),
    /// [`Capturing`](Error::Capturing), all before anything is enqueued; or errors of the driver. For a batch in [bulk](Bulk)
    /// also [`SelfDeadlock`](Error::SelfDeadlock); after an error of the driver some of its vectors may be stored.
    pub fn find_or_put_device<'a>(&self, stream: impl Into<Stream<'a>>, batch: DeviceBatch<'a, K::Element>) -> Result<()> {
        let (name, stream) = ("find_or_put_device", stream.into().stream);
        {
            let sized = self.raw.ready(name)?;
            let store = CudaStore::of(&*sized.store).ok_or_else(|| self.not_on_gpu(name))?;
            if !batch.takes_bulk(store) {
                return self.search_device(SearchMode::FindOrPut, name, &sized, stream, batch);
            }
        }
        let mut sized = self.raw.sized_exclusively(name)?;
        // Another thread's growth may have begun, and been ended by an error, since the look above.
        sized.complete()?;
        self.search_device(SearchMode::FindOrPut, name, &sized, stream, batch)
    }

    /// Enqueues the lookup of a batch in device memory on `stream`, and returns. Otherwise as
    /// [`find_or_put_device`](Self::find_or_put_device); outcomes are seen or absent.
    ///
    /// # Errors
    ///
    /// The errors of [`find_or_put_device`](Self::find_or_put_device).
    pub fn find_device<'a>(&self, stream: impl Into<Stream<'a>>, batch: DeviceBatch<'a, K::Element>) -> Result<()> {
        let name = "find_device";
        self.search_device(SearchMode::Find, name, &*self.raw.ready(name)?, stream.into().stream, batch)
    }

    /// Bytes that a batch in bulk may take besides the table: what the memory limit leaves, and what is free, or kept for this.
    fn spare(&self, sized: &TableState, store: &CudaStore) -> Result<u64> {
        let kept = store.kept_scratch().as_ref().map_or(0, |kept| kept.bytes);
        let (free, limit) = (self.raw.device.machine.free_memory()?.saturating_add(kept), self.raw.memory());
        let free = if matches!(limit, MemoryLimit::Shared(_)) { free / 8 * 7 } else { free };
        Ok(limit.bytes().saturating_sub(self.raw.bytes_of(sized)).min(free))
    }

    /// Enqueues a search. If the batch is put in bulk, the caller has the table alone.
    fn search_device<'a>(
        &self,
        search: SearchMode,
        name: &'static str,
        sized: &TableState,
        stream: &'a CudaStream,
        batch: DeviceBatch<'a, K::Element>,
    ) -> Result<()> {
        const { assert!(K::IS_WHOLE_WORDS, "a key in device memory has a multiple of 4 bytes") };
        let store = CudaStore::of(&*sized.store).ok_or_else(|| self.not_on_gpu(name))?;
        let gpu = store.gpu();
        let takes_bulk = search == SearchMode::FindOrPut && batch.takes_bulk(store);
        let bulk = if takes_bulk { Some((batch.bulk, self.spare(sized, store)?)) } else { None };
        let DeviceBatch { vectors, count, parents, changed, outcomes, references, new_references, counts, leaves_holes, .. } =
            batch;
        let search = if leaves_holes && search == SearchMode::FindOrPut { SearchMode::FindOrPutLeavingHoles } else { search };
        gpu.check_own("stream", stream)?;
        let needed = count.saturating_mul(K::elements(self.width()));
        check_buffer(gpu, "vectors", vectors, needed)?;
        parents.map_or(Ok(()), |buffer| check_buffer(gpu, "parents", buffer, count))?;
        changed.map_or(Ok(()), |buffer| check_buffer(gpu, "changed", buffer, count.saturating_mul(sized.spec.mask_words())))?;
        if changed.is_some() && parents.is_none() {
            return Err(Error::LengthMismatch { what: "parents (needed with changed)", given: 0, needed: count });
        }
        outcomes.as_deref().map_or(Ok(()), |buffer| check_buffer(gpu, "outcomes", buffer, count))?;
        references.as_deref().map_or(Ok(()), |buffer| check_buffer(gpu, "references", buffer, count))?;
        new_references.as_deref().map_or(Ok(()), |buffer| check_buffer(gpu, "new_references", buffer, count))?;
        counts.as_deref().map_or(Ok(()), |buffer| check_buffer(gpu, "counts", buffer, 1))?;
        if new_references.is_some() && counts.is_none() {
            return Err(Error::LengthMismatch { what: "counts (needed with new_references)", given: 0, needed: 1 });
        }
        gpu.check_not_capturing(stream)?;
        let owners = foreign_owners(
            stream,
            [
                vectors.owner(),
                parents.and_then(|buffer| buffer.owner()),
                changed.and_then(|buffer| buffer.owner()),
                outcomes.as_ref().and_then(|buffer| buffer.owner()),
                references.as_ref().and_then(|buffer| buffer.owner()),
                new_references.as_ref().and_then(|buffer| buffer.owner()),
                counts.as_ref().and_then(|buffer| buffer.owner()),
            ],
        );
        let new_capacity = new_references.as_ref().map_or(0, |buffer| buffer.len() as u64);
        let calls = &self.raw.calls;
        gpu.recorded(move || {
            let (vectors_at, _read) = vectors.device_ptr(stream);
            sized.spec.check_alignment(vectors_at)?;
            if count == 0 {
                return Ok(());
            }
            let (parents_at, _parents) = parents.map_or((0, None), |buffer| some(buffer.device_ptr(stream)));
            let (changed_at, _changed) = changed.map_or((0, None), |buffer| some(buffer.device_ptr(stream)));
            let (outcomes_at, _outcomes) = address(outcomes, stream);
            let (references_at, _references) = address(references, stream);
            let (new_references_at, _new_references) = address(new_references, stream);
            let (counts_at, _counts) = address(counts, stream);
            // Check that the stream really waits for earlier work on the buffers, and that none of that work has pulled the
            // stream into a capture.
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
            // This call holds the table's lock now. No host batch closes holes without that lock.
            calls.note_kernels();
            // SAFETY:
            // - the buffers belong to this GPU's context, are long enough (checked above) and are borrowed. `stream` waits for
            //   earlier work on them (checked above). The streams that free the buffers wait for `stream` (below); for a foreign
            //   buffer, its owner has promised that. The work is not captured into a graph, which could be launched later;
            // - new references are written below `new_capacity` only, for any counts;
            // - vectors are aligned (checked above);
            // - a table waits for its GPU before it is dropped or replaced;
            // - for a batch in bulk the caller has the table alone, and there are no references (`takes_bulk`).
            let enqueued = unsafe {
                match bulk {
                    Some((bulk, spare)) => store.put_alone(bulk, spare, &view, stream),
                    None => store.enqueue(search, &view, stream.cu_stream(), Launch::default()),
                }
            };
            let ordered = gpu.let_wait(&owners, stream);
            enqueued.and(ordered)
        })
    }
}

/// Returns the streams, other than `stream`, on which buffers were made, each once. These streams must wait for the work on
/// `stream` before later work on their buffers, including the release of a buffer: `cudarc` orders only the last reader of a
/// buffer.
pub(super) fn foreign_owners<'a>(
    stream: &CudaStream,
    owners: impl IntoIterator<Item = Option<&'a Arc<CudaStream>>>,
) -> Vec<Arc<CudaStream>> {
    let mut foreign: Vec<Arc<CudaStream>> = Vec::new();
    for owner in owners.into_iter().flatten() {
        let is_known = foreign.iter().any(|known| known.cu_stream() == owner.cu_stream());
        if owner.cu_stream() != stream.cu_stream() && !is_known {
            foreign.push(owner.clone());
        }
    }
    foreign
}

/// Returns an error unless a buffer is in the memory of this GPU's context, and is long enough.
pub(crate) fn check_buffer<T>(
    gpu: &Gpu,
    what: &'static str,
    buffer: &(impl DeviceSlice<T> + ?Sized),
    needed: usize,
) -> Result<()> {
    gpu.check_own(what, buffer.stream())?;
    let given = buffer.len();
    if given < needed { Err(Error::LengthMismatch { what, given, needed }) } else { Ok(()) }
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
