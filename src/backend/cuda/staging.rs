//! Passes batches from host slices through stages. Each stage has pinned memory, device memory and a stream.
//!
//! A batch is cut into segments, and up to [`STAGES`] stages take turns: while the vectors of one segment are copied to the GPU,
//! the kernel of another runs, and the results of a third come back. Permanent threads ([`Workers`]) copy the vectors of one
//! segment into pinned memory and, at the same time, the results of an earlier segment out of it. These threads also take the
//! page faults of results that the caller has just allocated. Slices that are pinned already need no copy on the host: the GPU
//! reads and writes them.
//!
//! At most [`MOST_STAGES`] stages are kept for later batches of any table on the GPU. If that many are in use, a further batch
//! gets one stage, which is not kept. So no batch waits for another.
//!
//! H200, batches from slices of vectors of 2, 8 and 32 words: 0.45, 0.24 and 0.12 G/s when three threads were started for each
//! segment and one thread copied results; 3.60, 1.35 and 0.38 G/s with permanent threads that copy both (benches/host.md).

use super::Gpu;
use super::copies::{HostCopy, copy_all};
use super::stages::{Stage, StageLayout, Taken};
use super::store::CudaStore;
use crate::backend::Launch;
use crate::host::Workers;
use crate::layout::batch::{rows, rows_mut};
use crate::layout::view::{BatchView, Counts};
use crate::layout::{BatchProgress, HostBatch};
use crate::{Result, Spec};
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::Range;

/// For each slice of a batch, whether it is in pinned memory. The GPU copies from or to pinned slices directly.
#[derive(Clone, Copy)]
struct Pinned {
    vectors: bool,
    parents: bool,
    changed: bool,
    operands: bool,
    outcomes: bool,
    references: bool,
    new_references: bool,
}

impl Pinned {
    fn of(gpu: &Gpu, batch: &HostBatch<'_>) -> Self {
        fn is_pinned<T>(gpu: &Gpu, slice: &[T]) -> bool {
            !slice.is_empty() && gpu.is_pinned(slice.as_ptr() as u64, size_of_val(slice) as u64)
        }
        Self {
            vectors: is_pinned(gpu, batch.vectors),
            parents: is_pinned(gpu, batch.parents),
            changed: is_pinned(gpu, batch.changed),
            operands: batch.upsert.is_some_and(|upsert| is_pinned(gpu, upsert.operands)),
            outcomes: is_pinned(gpu, batch.outcomes),
            references: is_pinned(gpu, batch.references),
            new_references: is_pinned(gpu, batch.new_references),
        }
    }
}

/// Data shared by all segments of a batch.
struct SegmentPlan<'a> {
    store: &'a CudaStore,
    spec: Spec,
    /// Generation in the upper bits of references.
    tag: u64,
    parts: StageLayout,
    pinned: Pinned,
}

/// Result of a segment.
struct Finished {
    range: Range<usize>,
    counts: Counts,
}

impl CudaStore {
    /// Searches a batch segment by segment. When this returns, even with an error, nothing uses the batch's memory any more.
    pub(super) fn search_in_segments(
        &self,
        tag: u64,
        batch: &mut HostBatch<'_>,
        progress: &mut BatchProgress<'_>,
    ) -> Result<Counts> {
        let spec = self.spec;
        let count = batch.count(spec);
        let mut taken = Taken::new(self.gpu(), &self.machine.shared.stages, count, spec, batch)?;
        let (stages, segment) = (taken.stages.len(), taken.segment);
        let segments = count.div_ceil(segment);
        let (parts, pinned) = (StageLayout::new(segment, spec, batch), Pinned::of(self.gpu(), batch));
        let plan = SegmentPlan { store: self, spec, tag, parts, pinned };
        let mut sums = Counts::default();
        // In each turn, one stage finishes its segment and starts the next one. The stage with the oldest segment comes first:
        // the order of new references does not matter, but progress should only grow.
        for turn in 0..segments + stages {
            let stage = &mut taken.stages[turn % stages];
            let finished = stage.finish_segment(&plan, batch, sums.new_references)?;
            let next = (!progress.stopped && turn < segments).then(|| turn * segment..count.min((turn + 1) * segment));
            stage.copy(&plan, batch, finished.as_ref(), next.as_ref(), sums.new_references);
            if let Some(Finished { counts, .. }) = finished {
                sums += counts;
                progress.report(sums.offered);
            }
            if let Some(range) = next.filter(|_| !progress.stopped) {
                stage.start_segment(&plan, batch, range)?;
            }
        }
        Ok(sums)
    }
}

impl Stage {
    /// Waits for the segment that the stage has started, if any. The segment's results are then in pinned memory: the stage's, or
    /// the caller's. `new`: number of new references of earlier segments.
    fn finish_segment(&mut self, plan: &SegmentPlan<'_>, batch: &mut HostBatch<'_>, new: u64) -> Result<Option<Finished>> {
        let Some(range) = self.busy.clone() else { return Ok(None) };
        let SegmentPlan { parts, pinned, .. } = plan;
        // The stream uses the stage's memory until `wait` has returned without an error.
        self.gpu.wait(&self.stream, "searching a batch")?;
        let counts = self.pinned.part::<Counts>(parts.counts, 1)[0];
        // If a kernel did not run, its counts are zeros, and the results are those of an earlier segment.
        debug_assert_eq!(counts.offered, range.len() as u64, "a search counts each vector of its segment");
        if !batch.new_references.is_empty() && counts.new_references > 0 {
            let (count, stream) = (counts.new_references as usize, self.stream.cu_stream());
            let to = match pinned.new_references {
                true => &mut batch.new_references[new as usize..][..count],
                false => self.pinned.part::<u64>(parts.new_references, count),
            };
            // SAFETY: waited for in the next statement; if that fails, the stage stays busy, and its drop waits.
            unsafe { self.device.read_async(parts.new_references, to, stream)? };
            self.gpu.wait(&self.stream, "reading new references")?;
        }
        self.busy = None;
        Ok(Some(Finished { range, counts }))
    }

    /// Copies the results of a finished segment to the caller's memory, and the vectors of the next segment to the stage's pinned
    /// memory. Skips slices that are in the caller's pinned memory. The stage must be idle.
    fn copy(
        &mut self,
        plan: &SegmentPlan<'_>,
        batch: &mut HostBatch<'_>,
        finished: Option<&Finished>,
        next: Option<&Range<usize>>,
        new: u64,
    ) {
        assert!(self.busy.is_none(), "a stage is finished before its memory is used");
        let SegmentPlan { spec, parts, pinned, .. } = plan;
        let mut copies = Vec::with_capacity(7);
        // SAFETY: the stage is idle (asserted). The parts of its memory do not overlap, and each is in one copy at most.
        unsafe {
            if let Some(Finished { range, counts }) = finished {
                let at_new = new as usize..(new + counts.new_references) as usize;
                copies.extend(self.copy_out(parts.outcomes, rows_mut(batch.outcomes, range.clone()), pinned.outcomes));
                copies.extend(self.copy_out(parts.references, rows_mut(batch.references, range.clone()), pinned.references));
                let new_references = rows_mut(batch.new_references, at_new);
                copies.extend(self.copy_out(parts.new_references, new_references, pinned.new_references));
            }
            if let Some(range) = next {
                let parents = bytemuck::cast_slice::<_, u64>(rows(batch.parents, range, 1));
                copies.extend(self.copy_in(parts.vectors, rows(batch.vectors, range, spec.width()), pinned.vectors));
                copies.extend(self.copy_in(parts.parents, parents, pinned.parents));
                copies.extend(self.copy_in(parts.changed, rows(batch.changed, range, spec.mask_words()), pinned.changed));
                let operands = batch.upsert.map_or(&[][..], |upsert| upsert.part(range).operands);
                copies.extend(self.copy_in(parts.operands, operands, pinned.operands));
            }
        }
        copy_all(Workers::get(), &copies);
    }

    /// A copy from the stage's memory to `to`. `None` if the caller did not ask for it, or its memory is pinned.
    ///
    /// # Safety
    ///
    /// The stage is idle, and nothing else writes to this part of its memory until the copy is made.
    unsafe fn copy_out<'m, T>(&'m self, part: usize, to: &'m mut [T], is_pinned: bool) -> Option<HostCopy<'m>>
    where
        T: NoUninit + AnyBitPattern,
    {
        // SAFETY: of the caller.
        (!is_pinned && !to.is_empty()).then(|| HostCopy::new(unsafe { self.pinned.disjoint_part::<T>(part, to.len()) }, to))
    }

    /// A copy of `from` to the stage's memory. `None` if the batch has no such input, or it is pinned.
    ///
    /// # Safety
    ///
    /// The stage is idle, and nothing else uses this part of its memory until the copy is made.
    unsafe fn copy_in<'m, T>(&'m self, part: usize, from: &'m [T], is_pinned: bool) -> Option<HostCopy<'m>>
    where
        T: NoUninit + AnyBitPattern,
    {
        // SAFETY: of the caller.
        (!is_pinned && !from.is_empty()).then(|| HostCopy::new(from, unsafe { self.pinned.disjoint_part::<T>(part, from.len()) }))
    }

    /// Enqueues one segment: vectors in, kernel, results out. `copy` has filled the stage's pinned memory before.
    fn start_segment(&mut self, plan: &SegmentPlan<'_>, batch: &mut HostBatch<'_>, range: Range<usize>) -> Result<()> {
        let SegmentPlan { store, spec, tag, parts, pinned } = plan;
        let (count, stream) = (range.len(), self.stream.cu_stream());
        // From here on the stream uses the stage's memory and the batch's pinned slices, even if a call below fails, until
        // `finish_segment` has waited for the stream.
        self.busy = Some(range.clone());
        // Its new references go to the stage first, so only whether they are wanted matters here.
        let part = batch.part(&range, 0, *spec);
        self.send(parts.vectors, part.vectors, pinned.vectors)?;
        if !part.parents.is_empty() {
            self.send(parts.parents, bytemuck::cast_slice::<_, u64>(part.parents), pinned.parents)?;
        }
        if !part.changed.is_empty() {
            self.send(parts.changed, part.changed, pinned.changed)?;
        }
        if let Some(upsert) = part.upsert {
            self.send(parts.operands, upsert.operands, pinned.operands)?;
        }
        self.device.zero_async(parts.counts, size_of::<Counts>(), stream)?;
        let at = |is_empty: bool, part: usize| if is_empty { 0 } else { self.device.address() + part as u64 };
        let view = BatchView {
            vectors: at(false, parts.vectors),
            count: count as u64,
            outcomes: at(part.outcomes.is_empty(), parts.outcomes),
            references: at(part.references.is_empty(), parts.references),
            new_references: at(part.new_references.is_empty(), parts.new_references),
            new_capacity: if part.new_references.is_empty() { 0 } else { count as u64 },
            counts: at(false, parts.counts),
            parents: at(part.parents.is_empty(), parts.parents),
            changed: at(part.changed.is_empty(), parts.changed),
            workspace: 0,
            tag: *tag,
        };
        let operands_at = self.device.address() + parts.operands as u64;
        let upsert = part.upsert.map(|upsert| (upsert.view(operands_at), upsert.kind.bytes()));
        // SAFETY: the stage's parts are sized for its segment, aligned to 256 bytes, and used by nothing else until the segment
        // is finished. The store is borrowed until then. An upsert has one operand for each vector, or one for all
        // (`Array::upsert`), and values have memory for every row that the table can give.
        unsafe { store.enqueue(part.search, &view, stream, Launch { may_wait: true, upsert, ..Launch::default() })? };
        // SAFETY: these parts of the pinned memory, and these slices of the caller's, are not touched before `finish_segment`,
        // or the stage's drop, has waited for the stream.
        unsafe {
            self.device.read_async(parts.counts, self.pinned.part::<Counts>(parts.counts, 1), stream)?;
            if !part.outcomes.is_empty() {
                let to = if pinned.outcomes { part.outcomes } else { self.pinned.part(parts.outcomes, count) };
                self.device.read_async(parts.outcomes, to, stream)?;
            }
            if !part.references.is_empty() {
                let to = if pinned.references { part.references } else { self.pinned.part(parts.references, count) };
                self.device.read_async(parts.references, to, stream)?;
            }
        }
        Ok(())
    }

    /// Enqueues the copy of a part of the input: from the caller's memory if that is pinned, else from the stage's pinned memory.
    fn send<T: NoUninit + AnyBitPattern>(&mut self, part: usize, data: &[T], is_pinned: bool) -> Result<()> {
        let from = if is_pinned { data } else { &*self.pinned.part::<T>(part, data.len()) };
        // SAFETY: each part is sent once, so its source does not change before `finish_segment`, or the stage's drop, has waited
        // for the stream.
        unsafe { self.device.write_async(part, from, self.stream.cu_stream()) }
    }
}
