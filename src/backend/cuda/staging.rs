//! Buffers through which a batch from host slices passes: pinned memory, device memory and a stream of their own.
//!
//! A batch is cut into segments, and up to three stages take turns: while one copies its vectors to the GPU, another's kernel
//! runs and a third's results come back. Stages are kept for later batches of any table on the GPU.

use super::Gpu;
use super::memory::{DeviceMemory, PinnedMemory};
use crate::core::batch::HostBatch;
use crate::core::view::{BatchView, Counts};
use crate::{Error, Result, Spec, faults};
use bytemuck::{AnyBitPattern, NoUninit};
use cudarc::driver::{CudaStream, result, sys};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Stages that a batch uses at most.
pub(super) const STAGES: usize = 3;

/// Vectors a segment: 16 MiB of them, but no more than a million, whose results take as much again.
pub(super) fn segment_vectors(width: usize) -> usize {
    ((16 << 20) / (width * 4)).min(1 << 20)
}

/// Where memory is short, segments have no fewer vectors than this.
const FEWEST_VECTORS: usize = 1 << 10;

/// What is in which part of a stage's memory, each part from a multiple of 256 bytes.
#[derive(Clone, Copy)]
struct Parts {
    vectors: usize,
    parents: usize,
    changed: usize,
    counts: usize,
    outcomes: usize,
    references: usize,
    new_references: usize,
    end: usize,
}

impl Parts {
    fn new(count: usize, spec: Spec, batch: &HostBatch<'_>) -> Self {
        let mut end = 0;
        let mut part = |bytes: usize| {
            let start = end;
            end += bytes.next_multiple_of(256);
            start
        };
        let if_wanted = |wanted: bool, bytes| if wanted { count * bytes } else { 0 };
        let vectors = part(count * spec.width() * 4);
        let parents = part(if_wanted(batch.parents.is_some(), 8));
        let changed = part(if_wanted(batch.changed.is_some(), spec.mask_words() * 4));
        let counts = part(size_of::<Counts>());
        let outcomes = part(if_wanted(batch.outcomes.is_some(), 1));
        let references = part(if_wanted(batch.references.is_some(), 8));
        let new_references = part(if_wanted(batch.new_references.is_some(), 8));
        Self { vectors, parents, changed, counts, outcomes, references, new_references, end }
    }
}

pub(super) struct Stage {
    gpu: Arc<Gpu>,
    stream: Arc<CudaStream>,
    pinned: PinnedMemory,
    device: DeviceMemory,
    bytes: usize,
    busy: Option<(Range<usize>, Parts)>,
}

impl Stage {
    /// Takes stages for a batch of `count` vectors, from earlier batches or new, and says how many vectors a segment has: fewer
    /// and smaller ones than `STAGES` and `segment_vectors` where there is not the memory.
    pub(super) fn take(gpu: &Arc<Gpu>, count: usize, spec: Spec, batch: &HostBatch<'_>) -> Result<(Vec<Self>, usize)> {
        let mut segment = segment_vectors(spec.width()).min(count.max(1));
        loop {
            let bytes = Parts::new(segment, spec, batch).end;
            let wanted = STAGES.min(count.div_ceil(segment)).max(1);
            let mut stages = {
                let mut kept = gpu.stages.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                let keep = kept.len().saturating_sub(wanted);
                kept.split_off(keep)
            };
            stages.retain(|stage| stage.bytes >= bytes);
            while stages.len() < wanted {
                match Self::new(gpu, bytes.next_power_of_two()) {
                    Ok(stage) => stages.push(stage),
                    Err(_) if !stages.is_empty() => break,
                    // Pinned memory or the GPU's.
                    Err(Error::OutOfMemory { .. } | Error::Cuda { .. }) if segment > FEWEST_VECTORS => break,
                    Err(error) => return Err(error),
                }
            }
            if !stages.is_empty() {
                return Ok((stages, segment));
            }
            segment = (segment / 4).max(FEWEST_VECTORS);
        }
    }

    /// Keeps stages for later batches, unless enough are kept.
    pub(super) fn put_back(gpu: &Arc<Gpu>, stages: Vec<Self>) {
        let mut kept = gpu.stages.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        kept.extend(stages);
        kept.truncate(STAGES);
    }

    fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self> {
        Ok(Self {
            gpu: gpu.clone(),
            stream: gpu.new_stream()?,
            pinned: PinnedMemory::new(gpu, bytes)?,
            device: DeviceMemory::new(gpu, bytes as u64)?,
            bytes,
            busy: None,
        })
    }

    /// Enqueues one segment: vectors in, `launch`, results out, whose references have `tag`. The stage must be idle.
    pub(super) fn start(
        &mut self,
        range: Range<usize>,
        spec: Spec,
        tag: u64,
        batch: &mut HostBatch<'_>,
        launch: impl FnOnce(&BatchView, sys::CUstream) -> Result<()>,
    ) -> Result<()> {
        assert!(self.busy.is_none(), "a stage is finished before it is started again");
        let (count, stream) = (range.len(), self.stream.cu_stream());
        let parts = Parts::new(count, spec, batch);
        // From here on the stage's memory is the stream's, until `finish` has waited for it; also when a call below fails.
        self.busy = Some((range.clone(), parts));
        let batch = batch.part(&range, 0, spec);
        self.send(parts.vectors, batch.vectors)?;
        if let Some(parents) = batch.parents {
            self.send(parts.parents, bytemuck::cast_slice::<_, u64>(parents))?;
        }
        if let Some(changed) = batch.changed {
            self.send(parts.changed, changed)?;
        }
        self.device.zero_async(parts.counts, size_of::<Counts>(), stream)?;
        let at = |wanted: bool, part: usize| if wanted { self.device.address() + part as u64 } else { 0 };
        let view = BatchView {
            vectors: at(true, parts.vectors),
            count: count as u64,
            outcomes: at(batch.outcomes.is_some(), parts.outcomes),
            references: at(batch.references.is_some(), parts.references),
            new_references: at(batch.new_references.is_some(), parts.new_references),
            new_capacity: if batch.new_references.is_some() { count as u64 } else { 0 },
            counts: at(true, parts.counts),
            parents: at(batch.parents.is_some(), parts.parents),
            changed: at(batch.changed.is_some(), parts.changed),
            workspace: 0,
            tag,
        };
        launch(&view, stream)?;
        // SAFETY: these parts of the pinned memory are not touched before `finish` has waited for the stream.
        unsafe {
            self.device.read_async(parts.counts, self.pinned.part::<Counts>(parts.counts, 1), stream)?;
            if batch.outcomes.is_some() {
                self.device.read_async(parts.outcomes, self.pinned.part::<u8>(parts.outcomes, count), stream)?;
            }
            if batch.references.is_some() {
                self.device.read_async(parts.references, self.pinned.part::<u64>(parts.references, count), stream)?;
            }
        }
        Ok(())
    }

    /// Enqueues the copy of a part of the input. No copy of this part is under way.
    fn send<T: NoUninit + AnyBitPattern + Send + Sync>(&mut self, part: usize, data: &[T]) -> Result<()> {
        let staged = self.pinned.part::<T>(part, data.len());
        copy(staged, data);
        // SAFETY: `staged` is not touched before `finish` has waited for the stream: each part is sent once.
        unsafe { self.device.write_async(part, staged, self.stream.cu_stream()) }
    }

    /// Waits for the segment that was started, if any, and hands its results over. `fresh`: new vectors of earlier segments.
    pub(super) fn finish(&mut self, batch: &mut HostBatch<'_>, fresh: u64) -> Result<Counts> {
        let Some((range, parts)) = self.busy.clone() else { return Ok(Counts::default()) };
        // Until this has returned without an error the stage's memory is the stream's.
        self.gpu.wait(&self.stream, "searching a batch")?;
        let count = range.len();
        let counts = self.pinned.part::<Counts>(parts.counts, 1)[0];
        if let Some(outcomes) = &mut batch.outcomes {
            outcomes[range.clone()].copy_from_slice(self.pinned.part(parts.outcomes, count));
        }
        if let Some(references) = &mut batch.references {
            references[range].copy_from_slice(self.pinned.part(parts.references, count));
        }
        if let Some(new_references) = &mut batch.new_references {
            let (new, stream) = (counts.new_references as usize, self.stream.cu_stream());
            let staged = self.pinned.part::<u64>(parts.new_references, new);
            // SAFETY: waited for in the next statement; if that fails, the stage stays busy.
            unsafe { self.device.read_async(parts.new_references, staged, stream)? };
            self.gpu.wait(&self.stream, "reading new references")?;
            new_references[fresh as usize..][..new].copy_from_slice(self.pinned.part(parts.new_references, new));
        }
        self.busy = None;
        Ok(counts)
    }
}

/// Copies by several threads where that pays: one moves about 8 GB/s (end to end on an H200: 0.24 G/s of 8 words), the bus more.
/// Those that the system does not start are done without.
fn copy<T: Copy + Send + Sync>(to: &mut [T], from: &[T]) {
    const THREADS: usize = 4;
    let worth_a_thread = (1 << 20) / size_of::<T>(); // a megabyte: about 100 microseconds
    let piece = from.len().div_ceil(THREADS).max(worth_a_thread);
    let pieces = Mutex::new(to.chunks_mut(piece).zip(from.chunks(piece)));
    let work = || {
        loop {
            // The lock is for taking a piece only.
            let next = pieces.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            let Some((to, from)) = next else { return };
            to.copy_from_slice(from);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..from.len().div_ceil(piece) {
            if faults::strikes() || std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A batch that ended in an error may leave copies under way in memory that is freed next. (If the wait fails, too, the
        // context is lost, and nothing is under way any more.)
        if self.busy.is_some() && self.gpu.bind().is_ok() {
            // SAFETY: the stream is of this context.
            let _ = unsafe { result::stream::synchronize(self.stream.cu_stream()) };
        }
    }
}
