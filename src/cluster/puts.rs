//! Puts and lookups of the runs of a round in the rank's own table.

use super::buffers::{Buffers, stream_of};
use super::messages::{Messages, another_message};
use super::plan::{Fresh, Rows};
use super::record::Answered;
use crate::backend::{Launch, Memory, Waves};
use crate::core::table::RawTable;
use crate::layout::SearchMode;
use crate::layout::rank::Stream;
use crate::layout::view::{BatchView, Counts};
use crate::{Error, Result};

/// Results of an operation in the rank's own table.
pub(super) struct Puts {
    /// In device memory: the counts of each rank's rows in this operation, then the number of a wrong message if checks of runs
    /// are enqueued.
    answered: Memory,
    /// Rank whose rows were put last, if references of new vectors are wanted. The next references follow this rank's.
    last_put: Option<usize>,
    /// References of vectors that are new here, for the host; `None` until the host asks for them.
    fresh_memory: Option<Memory>,
    /// Destination of the references of new vectors in this operation.
    fresh: Fresh,
}

impl Puts {
    pub(super) fn new(buffers: &Buffers) -> Result<Self> {
        let answered = buffers.device.machine().allocate(buffers.ranks as u64 * size_of::<Counts>() as u64 + 8)?;
        Ok(Self { answered, last_put: None, fresh_memory: None, fresh: Fresh::Unwanted })
    }

    /// Begins an operation.
    pub(super) fn begin(&mut self, buffers: &Buffers, fresh: Fresh) -> Result<()> {
        self.fresh = fresh;
        self.last_put = None;
        if fresh == Fresh::Host && self.fresh_memory.is_none() {
            // Capacity: all vectors that all ranks may send in a round.
            self.fresh_memory = Some(buffers.device.machine().allocate(8 * buffers.ranks as u64 * buffers.most as u64)?);
        }
        let bytes = (buffers.ranks * size_of::<Counts>()) as u64 + 8;
        buffers.device.fill(Stream::Puts, &mut self.answered, bytes, 0)
    }

    /// Address of the number of a wrong message.
    pub(super) fn wrong(&self, buffers: &Buffers) -> u64 {
        self.answered.address + (buffers.ranks * size_of::<Counts>()) as u64
    }

    /// Searches for the rows of a rank's run, or puts them, and writes the requested answers. On the host, the references of new
    /// vectors are added to `fresh`. On a GPU the search is enqueued. `is_last`: no other round is sorted meanwhile.
    pub(super) fn search(
        &mut self,
        buffers: &Buffers,
        raw: &RawTable,
        search: SearchMode,
        (round, rows, rank): (usize, &Rows, usize),
        is_last: bool,
        fresh: &mut Vec<u64>,
    ) -> Result<()> {
        if rows.from(rank) == 0 {
            return Ok(());
        }
        let run = Messages::new(buffers, round, rows).run_of(rank);
        buffers.device.order(Stream::Puts, stream_of(round))?;
        let waves = if is_last { Waves::One } else { Waves::BesideOthers };
        let refused = (rank != rows.own).then(|| self.wrong(buffers));
        let is_put = search != SearchMode::Find;
        let (new_references, new_capacity) = match (self.fresh, &self.fresh_memory) {
            (Fresh::Gpu { address, capacity }, _) if is_put => (address, capacity),
            (Fresh::Host, Some(memory)) if is_put => (memory.address, memory.bytes / 8),
            _ => (0, 0),
        };
        let counts_of = |rank: usize| rank as u64 * size_of::<Counts>() as u64;
        if new_references != 0 {
            // The references of this run follow those of the previous run: copy its counter.
            if let Some(last) = self.last_put.filter(|last| *last != rank) {
                let [from, to] = [last, rank].map(|rank| counts_of(rank) + NEW_REFERENCES_AT);
                buffers.device.copy_number(Stream::Puts, &mut self.answered, from, to)?;
            }
            self.last_put = Some(rank);
        }
        let batch = BatchView {
            vectors: run.vectors,
            count: run.count,
            outcomes: run.outcomes,
            references: run.references,
            new_references,
            new_capacity,
            // Zeroed by `begin`.
            counts: self.answered.address + counts_of(rank),
            ..BatchView::default()
        };
        let launch = Launch { waves, refused, ..Launch::default() };
        // SAFETY: `Messages::run_of` has checked that the rows and their answers are within the memory of the round, and they are
        // aligned to lines. This rank alone uses that memory: an exchange that may be under way writes to and reads other
        // messages. `Stream::Puts` waits for the stream of the round. All memory stays until the stream has passed the kernel:
        // memory that is freed waits for that, and `RankEngine` waits before the caller's memory is released.
        unsafe { raw.enqueue_once((&*buffers.device, Stream::Puts), search, &batch, launch)? };
        // On the host the search is over. The references are taken now, because the next round may begin before this one ends.
        if buffers.is_gpu() { Ok(()) } else { self.take_fresh(buffers, fresh) }
    }

    /// Waits for everything that was begun. Returns the counts of each rank's rows since the operation began, the number of
    /// references of new vectors if they are wanted in device memory, and an error if a message was a wrong one.
    pub(super) fn answered(&mut self, buffers: &Buffers) -> Result<(Vec<Answered>, u64, Option<Error>)> {
        let mut words = vec![0u64; buffers.ranks * size_of::<Counts>() / 8 + 1];
        // Most work is over when this has been read, so there is one wait instead of one for each stream.
        let read = buffers.device.read(Stream::Puts, &self.answered, 0, &mut words);
        buffers.device.synchronize()?;
        read?;
        let (wrong, counts) = words.split_last().expect("one besides the counts");
        let wrong = (*wrong != 0).then(|| another_message(*wrong));
        let counts: &[Counts] = bytemuck::cast_slice(counts);
        let fresh = self.last_put.map_or(0, |last| counts[last].new_references);
        Ok((counts.iter().map(|counts| [counts.hits, counts.full, counts.full_nodes]).collect(), fresh, wrong))
    }

    /// If the host wants references of new vectors, adds those that the round has stored to `fresh`. All puts of the round must
    /// have begun, and no put of another round whose references are not taken yet.
    pub(super) fn take_fresh(&mut self, buffers: &Buffers, fresh: &mut Vec<u64>) -> Result<()> {
        if let (Some(last), Some(memory), Fresh::Host) = (self.last_put, &self.fresh_memory, self.fresh) {
            let at = last as u64 * size_of::<Counts>() as u64 + NEW_REFERENCES_AT;
            let mut count = [0u64];
            buffers.device.read(Stream::Puts, &self.answered, at, &mut count)?;
            let before = fresh.len();
            fresh.resize(before + count[0] as usize, 0);
            buffers.device.read(Stream::Puts, memory, 0, &mut fresh[before..])?;
            buffers.device.write(Stream::Puts, &mut self.answered, at, &[0u64])?;
        }
        Ok(())
    }
}

const NEW_REFERENCES_AT: u64 = std::mem::offset_of!(Counts, new_references) as u64;
