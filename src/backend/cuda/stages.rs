//! *Stages*: the buffers of a GPU for host batches. They are made when a batch needs them, and kept for later batches.

use super::device_memory::{DeviceMemory, PinnedMemory};
use super::{Current, Gpu};
use crate::layout::HostBatch;
use crate::layout::view::Counts;
use crate::{Error, Result, Spec};
use cudarc::driver::{CudaStream, result};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Largest number of stages of a batch.
const STAGES: usize = 4;

/// Largest number of stages of all batches on a GPU. If it is reached, a further batch gets a single stage, which is not kept.
const MOST_STAGES: usize = 3 * STAGES;

/// Vectors per segment: 16 MiB of vectors, but at most two million. Their results take up to 34 MiB in addition (17 bytes for
/// each vector).
///
/// H200, 2^26 vectors of 2 words, outcomes to a new vector (`cargo bench --bench host`); G/s from a slice and from pinned memory:
/// 2.3 and 4.6 with segments of 4 MiB, 3.3 and 4.7 with 8 MiB, 3.5 and 5.5 with 16 MiB.
pub(super) fn segment_vectors(width: usize) -> usize {
    ((16 << 20) / (width * 4)).min(2 << 20)
}

/// Smallest number of vectors of a segment if memory is short.
const FEWEST_VECTORS: usize = 1 << 10;

/// Size of a stage for at least `bytes` bytes, rounded up so that batches of similar shapes can use it too. The driver needs 0.4
/// ms to allocate a MiB of pinned memory, so large stages are not rounded up by much.
fn rounded(bytes: usize) -> usize {
    if bytes < 4 << 20 { bytes.next_power_of_two() } else { bytes.next_multiple_of(4 << 20) }
}

/// The stages of a GPU.
#[derive(Default)]
pub(super) struct Stages(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Idle stages, the largest last.
    idle: Vec<Stage>,
    /// Number of stages that batches have taken.
    taken: usize,
}

impl Stages {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Frees the memory of idle stages.
    pub(super) fn clear(&self) {
        let idle = std::mem::take(&mut self.lock().idle);
        drop(idle);
    }
}

/// The stages of one batch. Dropping the value gives them back.
pub(super) struct Taken<'a> {
    gpu: &'a Arc<Gpu>,
    pool: &'a Stages,
    pub stages: Vec<Stage>,
    /// Vectors per segment.
    pub segment: usize,
}

impl<'a> Taken<'a> {
    /// Takes stages for a batch of `count` vectors: idle ones, or new ones. If memory is short, takes fewer stages than `STAGES`,
    /// or stages for segments of fewer vectors than `segment_vectors` says.
    pub(super) fn new(gpu: &'a Arc<Gpu>, pool: &'a Stages, count: usize, spec: Spec, batch: &HostBatch<'_>) -> Result<Self> {
        let mut taken = Self { gpu, pool, stages: Vec::new(), segment: segment_vectors(spec.width()).min(count.max(1)) };
        loop {
            let bytes = StageLayout::new(taken.segment, spec, batch).end;
            let wanted = STAGES.min(count.div_ceil(taken.segment)).max(1);
            match taken.take(wanted, bytes) {
                Ok(()) => return Ok(taken),
                // Pinned memory or the GPU's memory is exhausted.
                Err(Error::OutOfMemory { .. } | Error::Cuda { .. }) if taken.segment > FEWEST_VECTORS => {
                    taken.segment = (taken.segment / 4).max(FEWEST_VECTORS);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes up to `wanted` stages of at least `bytes` bytes. If none is idle, makes new ones: the first one always, so that no
    /// batch waits for another, and more only while fewer than `MOST_STAGES` are taken.
    fn take(&mut self, wanted: usize, bytes: usize) -> Result<()> {
        while self.stages.len() < wanted {
            // Allocating and freeing wait for the driver, so they are not done under the lock.
            let idle = {
                let mut kept = self.pool.lock();
                let idle = kept.idle.pop();
                if idle.is_none() && kept.taken >= MOST_STAGES && !self.stages.is_empty() {
                    return Ok(());
                }
                kept.taken += 1;
                idle
            };
            // A stage that is too small for this batch is replaced by a larger one.
            let made = match idle.filter(|stage| stage.bytes >= bytes) {
                Some(stage) => Ok(stage),
                None => Stage::new(self.gpu, rounded(bytes)),
            };
            match made {
                Ok(stage) => self.stages.push(stage),
                Err(error) => {
                    self.pool.lock().taken -= 1;
                    return if self.stages.is_empty() { Err(error) } else { Ok(()) };
                }
            }
        }
        Ok(())
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let count = self.stages.len();
        // A stage that an error has left busy is not reused. Its drop waits for the GPU.
        self.stages.retain(|stage| stage.busy.is_none());
        let surplus = {
            let mut kept = self.pool.lock();
            kept.taken -= count;
            kept.idle.append(&mut self.stages);
            kept.idle.sort_by_key(|stage| stage.bytes);
            let surplus = (kept.idle.len() + kept.taken).saturating_sub(MOST_STAGES).min(kept.idle.len());
            kept.idle.drain(..surplus).collect::<Vec<_>>()
        };
        drop(surplus);
    }
}

/// Offsets of the parts of a stage's memory. Each part starts at a multiple of 256 bytes.
#[derive(Clone, Copy)]
pub(super) struct StageLayout {
    pub vectors: usize,
    pub parents: usize,
    pub changed: usize,
    pub operands: usize,
    pub counts: usize,
    pub outcomes: usize,
    pub references: usize,
    pub new_references: usize,
    pub end: usize,
}

impl StageLayout {
    pub(super) fn new(count: usize, spec: Spec, batch: &HostBatch<'_>) -> Self {
        let mut end = 0;
        let mut part = |bytes: usize| {
            let start = end;
            end += bytes.next_multiple_of(256);
            start
        };
        let if_wanted = |wanted: bool, bytes| if wanted { count * bytes } else { 0 };
        let vectors = part(count * spec.width() * 4);
        let parents = part(if_wanted(!batch.parents.is_empty(), 8));
        let changed = part(if_wanted(!batch.changed.is_empty(), spec.mask_words() * 4));
        let operands = part(batch.upsert.map_or(0, |upsert| if upsert.is_one { 1 } else { count } * upsert.kind.bytes()));
        let counts = part(size_of::<Counts>());
        let outcomes = part(if_wanted(!batch.outcomes.is_empty(), 1));
        let references = part(if_wanted(!batch.references.is_empty(), 8));
        let new_references = part(if_wanted(!batch.new_references.is_empty(), 8));
        Self { vectors, parents, changed, operands, counts, outcomes, references, new_references, end }
    }
}

/// Pinned memory, device memory and a stream for one segment at a time.
pub(super) struct Stage {
    pub gpu: Arc<Gpu>,
    /// Dropped by hand, so that its context is current only while it is dropped.
    pub stream: ManuallyDrop<Arc<CudaStream>>,
    pub pinned: PinnedMemory,
    pub device: DeviceMemory,
    bytes: usize,
    /// Positions of the vectors that the stream is working on; `None` if the stage is idle.
    pub busy: Option<Range<usize>>,
}

impl Stage {
    fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self> {
        Ok(Self {
            gpu: gpu.clone(),
            stream: ManuallyDrop::new(gpu.new_stream()?),
            pinned: PinnedMemory::new(gpu, bytes)?,
            device: DeviceMemory::new(gpu, bytes as u64)?,
            bytes,
            busy: None,
        })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A batch that ended in an error may leave copies under way in memory that is freed next. (If the wait fails, too, the
        // context is lost, and no copy is under way any more.)
        let callers = Current::keep();
        if self.busy.is_some()
            && let Ok(_current) = self.gpu.bind()
        {
            // SAFETY: the stream is of this context.
            let _ = unsafe { result::stream::synchronize(self.stream.cu_stream()) };
        }
        // SAFETY: the stream is not used again. Its destructor makes its context current and leaves it so; `callers` undoes that.
        unsafe { ManuallyDrop::drop(&mut self.stream) };
        drop(callers);
    }
}
