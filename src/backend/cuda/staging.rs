//! Buffers through which a batch from host slices passes: pinned memory, device memory and a stream of their own.
//!
//! A batch is cut into segments, and up to [`STAGES`] stages take turns: while the vectors of one are copied to the GPU,
//! another's kernel runs and a third's results come back. Threads that stay ([`Workers`]) copy the vectors of one segment into
//! pinned memory, and the results of an earlier one out of it, at the same time. They also take the page faults of results that
//! the caller has just allocated. Slices that are pinned already are neither copied nor staged: the GPU reads and writes them.
//!
//! Stages are kept for later batches of any table on the GPU, [`MOST_STAGES`] at most. Batches that come when as many are taken
//! get one stage each, which is not kept: nobody waits for another batch.

use super::Gpu;
use super::copies::{Copy, copy_all};
use super::memory::{DeviceMemory, PinnedMemory};
use crate::host::Workers;
use crate::layout::HostBatch;
use crate::layout::view::{BatchView, Counts};
use crate::{Error, Result, Spec};
use bytemuck::{AnyBitPattern, NoUninit};
use cudarc::driver::{CudaStream, result, sys};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Stages that a batch uses at most.
const STAGES: usize = 4;

/// Stages of all batches on a GPU, but for the first one of each.
const MOST_STAGES: usize = 3 * STAGES;

/// Vectors a segment: 16 MiB of them, but no more than two million, whose results take up to twice as much again.
///
/// H200, 2^26 vectors of 2 words, outcomes to a new vector, from a slice and from pinned memory (`cargo bench --bench host`):
/// segments of 4 MiB 2.3 and 4.6 G/s, of 8 MiB 3.3 and 4.7, of 16 MiB 3.5 and 5.5.
pub(super) fn segment_vectors(width: usize) -> usize {
    ((16 << 20) / (width * 4)).min(2 << 20)
}

/// Where memory is short, segments have no fewer vectors than this.
const FEWEST_VECTORS: usize = 1 << 10;

/// Bytes of a stage that is made for so many, so that batches of similar shapes can use it too. Pinned memory takes the driver
/// 0.4 ms a MiB, so large stages are not rounded up by much.
fn rounded(bytes: usize) -> usize {
    if bytes < 4 << 20 { bytes.next_power_of_two() } else { bytes.next_multiple_of(4 << 20) }
}

/// The stages of a GPU.
#[derive(Default)]
pub(super) struct Stages(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The largest last.
    idle: Vec<Stage>,
    /// Those that batches have taken.
    taken: usize,
}

impl Stages {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Gives the memory of idle stages back.
    pub(super) fn clear(&self) {
        let idle = std::mem::take(&mut self.lock().idle);
        drop(idle);
    }
}

/// The stages of one batch; given back when dropped.
struct Taken {
    gpu: Arc<Gpu>,
    stages: Vec<Stage>,
    /// Vectors a segment.
    segment: usize,
}

impl Taken {
    /// Takes stages for a batch of `count` vectors, from earlier batches or new. There are fewer than `STAGES` of them, for
    /// segments of fewer vectors than `segment_vectors`, where there is not the memory.
    fn new(gpu: &Arc<Gpu>, count: usize, spec: Spec, batch: &HostBatch<'_>) -> Result<Self> {
        let mut taken = Self { gpu: gpu.clone(), stages: Vec::new(), segment: segment_vectors(spec.width()).min(count.max(1)) };
        loop {
            let bytes = Parts::new(taken.segment, spec, batch).end;
            let wanted = STAGES.min(count.div_ceil(taken.segment)).max(1);
            match taken.take(wanted, bytes) {
                Ok(()) => return Ok(taken),
                // Pinned memory or the GPU's.
                Err(Error::OutOfMemory { .. } | Error::Allocation { .. } | Error::Cuda { .. })
                    if taken.segment > FEWEST_VECTORS =>
                {
                    taken.segment = (taken.segment / 4).max(FEWEST_VECTORS);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes up to `wanted` stages of this size. The first is made however many there are, so nobody waits; the others only while
    /// there are fewer than `MOST_STAGES`.
    fn take(&mut self, wanted: usize, bytes: usize) -> Result<()> {
        while self.stages.len() < wanted {
            // Allocations, and what is freed, wait for the driver: not under the lock.
            let idle = {
                let mut kept = self.gpu.stages.lock();
                let idle = kept.idle.pop();
                if idle.is_none() && kept.taken >= MOST_STAGES && !self.stages.is_empty() {
                    return Ok(());
                }
                kept.taken += 1;
                idle
            };
            // What is too small for this batch makes way for one that is not.
            let made = match idle.filter(|stage| stage.bytes >= bytes) {
                Some(stage) => Ok(stage),
                None => Stage::new(&self.gpu, rounded(bytes)),
            };
            match made {
                Ok(stage) => self.stages.push(stage),
                Err(error) => {
                    self.gpu.stages.lock().taken -= 1;
                    return if self.stages.is_empty() { Err(error) } else { Ok(()) };
                }
            }
        }
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let count = self.stages.len();
        // What an error has left busy is not for others; its drop waits.
        self.stages.retain(|stage| stage.busy.is_none());
        let surplus = {
            let mut kept = self.gpu.stages.lock();
            kept.taken -= count;
            kept.idle.append(&mut self.stages);
            kept.idle.sort_by_key(|stage| stage.bytes);
            let surplus = (kept.idle.len() + kept.taken).saturating_sub(MOST_STAGES).min(kept.idle.len());
            kept.idle.drain(..surplus).collect::<Vec<_>>()
        };
        drop(surplus);
    }
}

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

/// Which slices of a batch are in pinned memory, so that the GPU copies from or to them.
#[derive(Clone, Copy)]
struct Pinned {
    vectors: bool,
    parents: bool,
    changed: bool,
    outcomes: bool,
    references: bool,
    new_references: bool,
}

impl Pinned {
    fn of(gpu: &Gpu, batch: &HostBatch<'_>) -> Self {
        fn is_pinned<T>(gpu: &Gpu, slice: Option<&[T]>) -> bool {
            slice.is_some_and(|slice| gpu.is_pinned(slice.as_ptr() as u64, size_of_val(slice) as u64))
        }
        Self {
            vectors: is_pinned(gpu, Some(batch.vectors)),
            parents: is_pinned(gpu, batch.parents),
            changed: is_pinned(gpu, batch.changed),
            outcomes: is_pinned(gpu, batch.outcomes.as_deref()),
            references: is_pinned(gpu, batch.references.as_deref()),
            new_references: is_pinned(gpu, batch.new_references.as_deref()),
        }
    }
}

struct Stage {
    gpu: Arc<Gpu>,
    stream: Arc<CudaStream>,
    pinned: PinnedMemory,
    device: DeviceMemory,
    bytes: usize,
    /// The vectors that the stream is at work on.
    busy: Option<Range<usize>>,
}

/// What is the same for all segments of a batch.
struct Plan {
    spec: Spec,
    /// What references have besides the numbers of their slots.
    tag: u64,
    parts: Parts,
    pinned: Pinned,
}

/// What has come of a segment.
struct Finished {
    range: Range<usize>,
    counts: Counts,
}

/// Searches for a batch, segment by segment: `launch` enqueues the kernel for each. `done` gets the sums so far after each, and
/// says whether to go on. When this returns, also with an error, nobody uses the batch's memory any more.
pub(super) fn search(
    gpu: &Arc<Gpu>,
    spec: Spec,
    tag: u64,
    batch: &mut HostBatch<'_>,
    mut done: impl FnMut(&Counts) -> bool,
    launch: impl Fn(&BatchView, sys::CUstream) -> Result<()>,
) -> Result<Counts> {
    let count = batch.count(spec);
    let mut taken = Taken::new(gpu, count, spec, batch)?;
    let (stages, segment) = (taken.stages.len(), taken.segment);
    let segments = count.div_ceil(segment);
    let plan = Plan { spec, tag, parts: Parts::new(segment, spec, batch), pinned: Pinned::of(gpu, batch) };
    let (mut sums, mut goes_on) = (Counts::default(), true);
    // A turn is a stage's: what it was started with is finished, and it is started with the next segment. The oldest comes first:
    // the order in which new references are handed over does not matter, but progress should only grow.
    for turn in 0..segments + stages {
        let stage = &mut taken.stages[turn % stages];
        let finished = stage.finish(&plan, batch, sums.new_references)?;
        let next = (goes_on && turn < segments).then(|| turn * segment..count.min((turn + 1) * segment));
        stage.copy(&plan, batch, finished.as_ref(), next.as_ref(), sums.new_references);
        if let Some(Finished { counts, .. }) = finished {
            sums += counts;
            goes_on &= done(&sums);
        }
        if let Some(range) = next.filter(|_| goes_on) {
            stage.start(&plan, batch, range, &launch)?;
        }
    }
    Ok(sums)
}

impl Stage {
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

    /// Waits for the segment that was started, if any. Its results are then in pinned memory: the stage's, or the caller's.
    /// `new`: how many new references earlier segments have given.
    fn finish(&mut self, plan: &Plan, batch: &mut HostBatch<'_>, new: u64) -> Result<Option<Finished>> {
        let Some(range) = self.busy.clone() else { return Ok(None) };
        let Plan { parts, pinned, .. } = plan;
        // Until this has returned without an error the stage's memory is the stream's.
        self.gpu.wait(&self.stream, "searching a batch")?;
        let counts = self.pinned.part::<Counts>(parts.counts, 1)[0];
        // If a kernel did not run, its counts are zeros, and the results are those of an earlier segment.
        debug_assert_eq!(counts.offered, range.len() as u64, "a search counts each vector of its segment");
        if let Some(new_references) = batch.new_references.as_deref_mut().filter(|_| counts.new_references > 0) {
            let (count, stream) = (counts.new_references as usize, self.stream.cu_stream());
            let to = match pinned.new_references {
                true => &mut new_references[new as usize..][..count],
                false => self.pinned.part::<u64>(parts.new_references, count),
            };
            // SAFETY: waited for in the next statement; if that fails, the stage stays busy, and its drop waits.
            unsafe { self.device.read_async(parts.new_references, to, stream)? };
            self.gpu.wait(&self.stream, "reading new references")?;
        }
        self.busy = None;
        Ok(Some(Finished { range, counts }))
    }

    /// Copies the results of a segment to where the caller gets them, and the vectors of the next one to pinned memory: what is
    /// not in pinned memory of the caller's already. The stage must be idle.
    fn copy(
        &mut self,
        plan: &Plan,
        batch: &mut HostBatch<'_>,
        finished: Option<&Finished>,
        next: Option<&Range<usize>>,
        new: u64,
    ) {
        assert!(self.busy.is_none(), "a stage is finished before its memory is used");
        let Plan { spec, parts, pinned, .. } = plan;
        let mut copies = Vec::with_capacity(6);
        // The parts of the stage's memory do not overlap, and each is borrowed once below.
        if let Some(Finished { range, counts }) = finished {
            let (len, given) = (range.len(), counts.new_references as usize);
            if let Some(outcomes) = batch.outcomes.as_deref_mut().filter(|_| !pinned.outcomes) {
                // SAFETY: as above.
                let from = unsafe { self.pinned.disjoint_part::<u8>(parts.outcomes, len) };
                copies.push(Copy::new(from, &mut outcomes[range.clone()]));
            }
            if let Some(references) = batch.references.as_deref_mut().filter(|_| !pinned.references) {
                // SAFETY: as above.
                let from = unsafe { self.pinned.disjoint_part::<u64>(parts.references, len) };
                copies.push(Copy::new(from, &mut references[range.clone()]));
            }
            if let Some(references) = batch.new_references.as_deref_mut().filter(|_| !pinned.new_references) {
                // SAFETY: as above.
                let from = unsafe { self.pinned.disjoint_part::<u64>(parts.new_references, given) };
                copies.push(Copy::new(from, &mut references[new as usize..][..given]));
            }
        }
        if let Some(range) = next {
            let rows = |width: usize| range.start * width..range.end * width;
            if !pinned.vectors {
                let vectors = &batch.vectors[rows(spec.width())];
                // SAFETY: as above.
                copies.push(Copy::new(vectors, unsafe { self.pinned.disjoint_part::<u32>(parts.vectors, vectors.len()) }));
            }
            if let Some(parents) = batch.parents.filter(|_| !pinned.parents) {
                let parents = bytemuck::cast_slice::<_, u64>(&parents[range.clone()]);
                // SAFETY: as above.
                copies.push(Copy::new(parents, unsafe { self.pinned.disjoint_part::<u64>(parts.parents, parents.len()) }));
            }
            if let Some(changed) = batch.changed.filter(|_| !pinned.changed) {
                let changed = &changed[rows(spec.mask_words())];
                // SAFETY: as above.
                copies.push(Copy::new(changed, unsafe { self.pinned.disjoint_part::<u32>(parts.changed, changed.len()) }));
            }
        }
        copy_all(Workers::get(), &copies);
    }

    /// Enqueues one segment: vectors in, `launch`, results out. What must be in the stage's pinned memory is there.
    fn start(
        &mut self,
        plan: &Plan,
        batch: &mut HostBatch<'_>,
        range: Range<usize>,
        launch: impl Fn(&BatchView, sys::CUstream) -> Result<()>,
    ) -> Result<()> {
        let Plan { spec, tag, parts, pinned } = plan;
        let (count, stream) = (range.len(), self.stream.cu_stream());
        // From here on the stage's memory, and what is pinned of the batch's, is the stream's, until `finish` has waited for it;
        // also when a call below fails.
        self.busy = Some(range.clone());
        let part = batch.part(&range, 0, *spec);
        self.send(parts.vectors, part.vectors, pinned.vectors)?;
        if let Some(parents) = part.parents {
            self.send(parts.parents, bytemuck::cast_slice::<_, u64>(parents), pinned.parents)?;
        }
        if let Some(changed) = part.changed {
            self.send(parts.changed, changed, pinned.changed)?;
        }
        self.device.zero_async(parts.counts, size_of::<Counts>(), stream)?;
        let at = |wanted: bool, part: usize| if wanted { self.device.address() + part as u64 } else { 0 };
        let view = BatchView {
            vectors: at(true, parts.vectors),
            count: count as u64,
            outcomes: at(part.outcomes.is_some(), parts.outcomes),
            references: at(part.references.is_some(), parts.references),
            new_references: at(part.new_references.is_some(), parts.new_references),
            new_capacity: if part.new_references.is_some() { count as u64 } else { 0 },
            counts: at(true, parts.counts),
            parents: at(part.parents.is_some(), parts.parents),
            changed: at(part.changed.is_some(), parts.changed),
            workspace: 0,
            tag: *tag,
        };
        launch(&view, stream)?;
        // SAFETY: these parts of the pinned memory, and these slices of the caller's, are not touched before `finish`, or the
        // stage's drop, has waited for the stream.
        unsafe {
            self.device.read_async(parts.counts, self.pinned.part::<Counts>(parts.counts, 1), stream)?;
            if let Some(outcomes) = part.outcomes {
                let to = if pinned.outcomes { outcomes } else { self.pinned.part(parts.outcomes, count) };
                self.device.read_async(parts.outcomes, to, stream)?;
            }
            if let Some(references) = part.references {
                let to = if pinned.references { references } else { self.pinned.part(parts.references, count) };
                self.device.read_async(parts.references, to, stream)?;
            }
        }
        Ok(())
    }

    /// Enqueues the copy of a part of the input: from the caller's memory if that is pinned, else from the stage's.
    fn send<T: NoUninit + AnyBitPattern>(&mut self, part: usize, data: &[T], is_pinned: bool) -> Result<()> {
        let from = if is_pinned { data } else { &*self.pinned.part::<T>(part, data.len()) };
        // SAFETY: neither is changed before `finish`, or the stage's drop, has waited for the stream: each part is sent once.
        unsafe { self.device.write_async(part, from, self.stream.cu_stream()) }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A batch that ended in an error may leave copies under way in memory that is freed next. (If the wait fails, too, the
        // context is lost, and nothing is under way any more.)
        if self.busy.is_some()
            && let Ok(_current) = self.gpu.bind()
        {
            // SAFETY: the stream is of this context.
            let _ = unsafe { result::stream::synchronize(self.stream.cu_stream()) };
        }
    }
}
