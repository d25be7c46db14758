//! Sorting of vectors into runs by owner, at the start of a round, and distribution of the answers at its end.

use super::buffers::{Buffers, layout_at, stream_of};
use super::layout::Layout;
use super::messages::run_stamps;
use super::owners::{self, Owners};
use super::plan::{Asked, Fresh, Input, Output, Sender};
use super::record::Wants;
use super::view::CURSOR_STEP;
use crate::Result;
use crate::backend::Memory;
use crate::layout::SearchMode;
use crate::layout::rank::{Kernel, LINE_BYTES, PartitionView, StampView, Stream};

/// Sorts the vectors of a round by owner, and collects the answers to them.
pub(super) struct Partition {
    hash_mask: u64,
    /// Seeds of the owners' hash, in device memory.
    seeds: Memory,
    /// Smallest hash that each rank owns.
    bounds: Vec<u64>,
    /// `bounds` in device memory.
    bounds_there: Memory,
    /// Hash set of the vectors of a round, which finds equal ones; `None` without deduplication.
    filter: Option<Memory>,
    /// Device memory for the vectors of a round from host memory; `None` on the host. Free again once the round is sorted.
    vectors: Option<Memory>,
    /// Device memory for outcomes, references and owners of a round that go to the host; `None` on the host.
    results: Option<[Memory; 3]>,
    asked: Asked,
}

impl Partition {
    /// Allocates what the device needs besides the buffers of rounds.
    ///
    /// # Panics
    ///
    /// If `owners` are not those of `buffers.ranks` ranks (`owners::check_bounds`).
    pub(super) fn new(buffers: &Buffers, deduplicates: bool, owners: Owners) -> Result<Self> {
        let Owners { seed, bounds, hash_mask } = owners;
        assert_eq!(bounds.len(), buffers.ranks);
        owners::check_bounds(&bounds).unwrap_or_else(|what| panic!("{what}"));
        let (device, machine, r, row) =
            (&*buffers.device, buffers.device.machine(), buffers.most as u64, 4 * buffers.width as u64);
        let for_host = || -> Result<_> {
            Ok((machine.allocate(r * row)?, [machine.allocate(r)?, machine.allocate(8 * r)?, machine.allocate(4 * r)?]))
        };
        let (vectors, results) = if !machine.is_gpu() { (None, None) } else { Some(for_host()?).unzip() };
        let mut seeds = machine.allocate((buffers.width as u64 + 1) * 16)?;
        let mut bounds_there = machine.allocate(8 * buffers.ranks as u64)?;
        device.write_and_wait(Stream::Puts, &mut seeds, 0, &owners::seeds(seed, buffers.width))?;
        device.write_and_wait(Stream::Puts, &mut bounds_there, 0, &bounds)?;
        Ok(Self {
            hash_mask,
            seeds,
            bounds,
            bounds_there,
            filter: deduplicates.then(|| machine.allocate(4 * (2 * r).next_power_of_two())).transpose()?,
            vectors,
            results,
            asked: Asked { wants: Wants::default(), owners: false, fresh: Fresh::Unwanted },
        })
    }

    /// Begins an operation.
    pub(super) fn begin(&mut self, asked: Asked) {
        self.asked = asked;
    }

    /// Smallest hash that each rank owns.
    pub(super) fn bounds(&self) -> &[u64] {
        &self.bounds
    }

    /// Whether equal vectors of a round are found and sent once.
    pub(super) fn deduplicates(&self) -> bool {
        self.filter.is_some()
    }

    fn view(&self, buffers: &Buffers, round: usize) -> PartitionView {
        let (n, memory) = (buffers.ranks as u64, buffers.of(round));
        let count = memory.count;
        let Asked { wants, owners, .. } = self.asked;
        let has_places = wants.outcomes || owners || self.deduplicates();
        PartitionView {
            vectors: memory.vectors,
            count,
            seeds: self.seeds.address,
            hash_mask: self.hash_mask,
            bounds: self.bounds_there.address,
            representatives: memory.representatives.as_ref().map_or(0, |memory| memory.address),
            cursors: memory.counters.address,
            totals: memory.counters.address + 8 * n * CURSOR_STEP,
            capacities: memory.counters.address + layout_at(n),
            runs: memory.counters.address + layout_at(n) + 8 * n,
            answers: memory.counters.address + layout_at(n) + 16 * n,
            places: if has_places { memory.places.address } else { 0 },
            replies: if wants.outcomes { memory.replies_in.address } else { 0 },
            width: buffers.width as u32,
            ranks: buffers.ranks as u32,
            slot_mask: ((2 * count.max(1)).next_power_of_two() - 1) as u32,
            with_references: u32::from(wants.references),
            ..PartitionView::default()
        }
    }

    /// Begins a round: copies its vectors, at most `buffers.most`, to the runs of their owners. The previous round in the same
    /// buffers must have ended, or its end must be enqueued.
    pub(super) fn sort(&mut self, buffers: &mut Buffers, round: usize, input: Input<'_>, sender: Sender) -> Result<()> {
        let (count, stream) = (input.count(buffers.width), stream_of(round));
        assert!(count <= buffers.most);
        let (device, memory) = buffers.split(round);
        (memory.vectors, memory.count, memory.sender) = (0, count as u64, sender);
        if count == 0 {
            return Ok(());
        }
        memory.vectors = match input {
            Input::Host(words) => match &mut self.vectors {
                None => words.as_ptr() as u64,
                Some(vectors) => {
                    device.write_and_wait(stream, vectors, 0, words)?;
                    vectors.address
                }
            },
            Input::Gpu { address, .. } => address,
        };
        if let Some(filter) = &mut self.filter {
            let slots = (2 * count as u64).next_power_of_two();
            device.fill(stream, filter, 4 * slots, 0xFF)?;
            // All rounds share the filter, and the next round fills it while a round ends. So no other kernel gets the filter.
            let slots = filter.address;
            let view = PartitionView { slots, ..self.view(buffers, round) };
            // SAFETY: as in `scatter`; the filter has at least two slots for each vector, all empty, and the previous round is
            // sorted.
            unsafe { buffers.device.partition(stream, Kernel::Claim, &view)? };
        }
        let capacity = Self::capacity(buffers, round);
        let layout = Layout::for_any(count as u64, &self.bounds, 4 * buffers.width as u64, self.asked.wants, capacity);
        self.scatter(buffers, round, layout)
    }

    /// Bytes of memory for the runs of a round, and for the answers to them.
    fn capacity(buffers: &Buffers, round: usize) -> [u64; 2] {
        [buffers.of(round).send.bytes, buffers.of(round).replies_in.bytes]
    }

    /// Copies the vectors of a round to the runs of their owners, which lie as `layout` says, and counts the rows of each run.
    fn scatter(&mut self, buffers: &mut Buffers, round: usize, layout: Layout) -> Result<()> {
        let (n, stream) = (buffers.ranks as u64, stream_of(round));
        let (_, memory) = buffers.split(round);
        let runs = layout.runs.iter().map(|start| memory.send.address + start + LINE_BYTES);
        let answers = layout.answers.iter().map(|start| start + LINE_BYTES);
        let mut begin = vec![0u64; layout_at(n) as usize / 8];
        begin.extend(layout.capacities.iter().copied().chain(runs).chain(answers));
        memory.layout = layout;
        let stamps = run_stamps(buffers, round);
        let stamps_at = 8 * begin.len() as u64;
        begin.extend_from_slice(bytemuck::cast_slice(&stamps));
        let (device, memory) = buffers.split(round);
        device.write(stream, &mut memory.counters, 0, &begin)?;
        let counters = memory.counters.address;
        let view = self.view(buffers, round);
        // SAFETY:
        // - the vectors are `count` rows, and stay until the stream has passed this kernel: `RankEngine` keeps them borrowed, and
        //   waits;
        // - all memory is as large as the view says, in which `count` is at most `most` (`new`, `Buffers::new`, and the assertion
        //   in `sort`); the runs have space for as many rows as the capacities say (the assertion in `Layout::of`).
        unsafe { buffers.device.partition(stream, Kernel::Scatter, &view)? };
        if stamps.is_empty() {
            return Ok(());
        }
        let view =
            StampView { stamps: counters + stamps_at, count: stamps.len() as u64, cursors: counters, ..StampView::default() };
        // SAFETY: a run of at most as many rows as its stamp says is within its memory, with a line before its rows and a trailer
        // behind them. Longer runs are not stamped. The stream orders this kernel after the counting.
        unsafe { buffers.device.stamps(stream, Kernel::WriteStamps, &view) }
    }

    /// Waits until a round is sorted, and returns the number of rows of each run. If a run has more rows than expected, lays out
    /// all runs again by their lengths.
    pub(super) fn rows(&mut self, buffers: &mut Buffers, round: usize) -> Result<Vec<u64>> {
        let memory = buffers.of(round);
        if memory.count == 0 {
            return Ok(vec![0; buffers.ranks]);
        }
        let rows = Self::read_rows(buffers, round)?;
        let sent: u64 = rows.iter().sum();
        assert!(sent <= memory.count, "{sent} rows were counted of {} vectors: please report this as a bug", memory.count);
        if rows.iter().zip(&memory.layout.capacities).all(|(rows, capacity)| rows <= capacity) {
            return Ok(rows);
        }
        let capacity = Self::capacity(buffers, round);
        let layout = Layout::of(rows, 4 * buffers.width as u64, self.asked.wants, capacity);
        self.scatter(buffers, round, layout)?;
        Self::read_rows(buffers, round)
    }

    fn read_rows(buffers: &Buffers, round: usize) -> Result<Vec<u64>> {
        let mut cursors = vec![0u64; buffers.ranks * CURSOR_STEP as usize];
        buffers.device.read(stream_of(round), &buffers.of(round).counters, 0, &mut cursors)?;
        Ok(cursors.into_iter().step_by(CURSOR_STEP as usize).collect())
    }

    /// Ends a round: writes the requested results of its vectors. Returns two counts of the vectors that were not sent because an
    /// equal vector represented them: hits (put: new; find: stored) and rejected ones.
    pub(super) fn collect(
        &mut self,
        buffers: &Buffers,
        round: usize,
        search: SearchMode,
        mut output: Output<'_>,
    ) -> Result<[u64; 2]> {
        let (device, stream, count) = (&*buffers.device, stream_of(round), buffers.of(round).count);
        let (outcomes, references, owners) = match (&mut output, &self.results) {
            (Output::Host { outcomes, references, owners }, None) => (
                if outcomes.is_empty() { 0 } else { outcomes.as_mut_ptr() as u64 },
                references.as_mut().map_or(0, |references| references.as_mut_ptr() as u64),
                owners.as_mut().map_or(0, |owners| owners.as_mut_ptr() as u64),
            ),
            (Output::Host { outcomes, references, owners }, Some([of_outcomes, of_references, of_owners])) => (
                if outcomes.is_empty() { 0 } else { of_outcomes.address },
                references.as_ref().map_or(0, |_| of_references.address),
                owners.as_ref().map_or(0, |_| of_owners.address),
            ),
            (Output::Gpu { outcomes, references, owners }, _) => (*outcomes, *references, *owners),
        };
        if count == 0 || ([outcomes, references, owners] == [0; 3] && !self.deduplicates()) {
            return Ok([0; 2]);
        }
        let view = PartitionView { outcomes, references, owners, ..self.view(buffers, round) };
        let kernel = if search == SearchMode::Find { Kernel::GatherFound } else { Kernel::GatherPut };
        // SAFETY: as in `scatter`, except that vectors are not read. The replies have a row for each place (`check_replies`). The
        // results have an element for each vector: they are buffers, or slices of the caller that stay borrowed until
        // `RankEngine` has waited.
        unsafe { device.partition(stream, kernel, &view)? };
        if let (Output::Host { outcomes, references, owners }, Some([of_outcomes, of_places, of_ranks])) = (output, &self.results)
        {
            device.read(stream, of_outcomes, 0, outcomes)?;
            references.map_or(Ok(()), |references| device.read(stream, of_places, 0, references))?;
            owners.map_or(Ok(()), |owners| device.read(stream, of_ranks, 0, owners))?;
        }
        let mut totals = [0u64; 2];
        if self.deduplicates() {
            let at = 8 * buffers.ranks as u64 * CURSOR_STEP;
            device.read(stream, &buffers.of(round).counters, at, &mut totals)?;
        }
        Ok(totals)
    }
}
