//! What a rank's own table does with the runs of a round.

use super::messages::{Run, another_message};
use super::partition::{Fresh, Partition, Rows, stream_of};
use super::record::Answered;
use crate::backend::{Launch, Waves};
use crate::core::table::RawTable;
use crate::layout::HostBatch;
use crate::layout::Search;
use crate::layout::rank::Stream;
use crate::layout::view::{BatchView, Counts};
use crate::{Error, Result};

impl Partition {
    /// Searches for the rows of a rank's run, or puts them, and makes the answers that are wanted. On the host, references of the
    /// new ones are added to `fresh`. On a GPU it is enqueued: what it needs is there. `is_last`: no other round is sorted
    /// meanwhile.
    pub(super) fn search(
        &mut self,
        raw: &RawTable,
        search: Search,
        (round, rows, rank): (usize, &Rows, usize),
        is_last: bool,
        fresh: &mut Vec<u64>,
    ) -> Result<()> {
        if rows.from(rank) == 0 {
            return Ok(());
        }
        let run = self.run_of(round, rows, rank);
        if self.rank.is_host() {
            return self.search_here(raw, search, run, rank, fresh);
        }
        self.rank.order(Stream::Puts, stream_of(round))?;
        let waves = if is_last { Waves::One } else { Waves::BesideOthers };
        let refused = (rank != rows.own).then(|| self.wrong());
        self.search_on_gpu(raw, search, Launch { waves, refused, ..Launch::default() }, run, rank)
    }

    /// After the searches of a round: what is done with their answers comes after them.
    pub(super) fn end_searches(&mut self, round: usize) -> Result<()> {
        self.rank.order(stream_of(round), Stream::Puts)
    }

    fn search_here(&mut self, raw: &RawTable, search: Search, run: Run, rank: usize, fresh: &mut Vec<u64>) -> Result<()> {
        let count = run.count as usize;
        // SAFETY: the run and the answers have room for `count` rows (messages.rs has laid them out by the same numbers), in
        // memory that this rank alone uses: an exchange that may be under way writes to and reads other messages. They are
        // aligned to lines, and any bits are words, bytes and numbers.
        let (vectors, outcomes, references) = unsafe {
            (
                std::slice::from_raw_parts(run.vectors as *const u32, count * self.width),
                (run.outcomes != 0).then(|| std::slice::from_raw_parts_mut(run.outcomes as *mut u8, count)),
                (run.references != 0).then(|| std::slice::from_raw_parts_mut(run.references as *mut u64, count)),
            )
        };
        let wanted = search == Search::FindOrPut && self.asked.fresh == Fresh::Host;
        let before = fresh.len();
        fresh.resize(before + if wanted { count } else { 0 }, 0);
        let mut batch =
            HostBatch { outcomes, references, new_references: wanted.then(|| &mut fresh[before..]), ..HostBatch::of(vectors) };
        let counts = raw.search_once(search, &mut batch);
        let new = counts.as_ref().map_or(0, |counts| counts.new_references);
        fresh.truncate(before + new as usize);
        let (at, mut sum) = (rank as u64 * size_of::<Counts>() as u64, [Counts::default()]);
        self.rank.read(Stream::Puts, &self.answered, at, &mut sum)?;
        sum[0] += counts?;
        self.rank.write(Stream::Puts, &mut self.answered, at, &sum)
    }

    fn search_on_gpu(&mut self, raw: &RawTable, search: Search, launch: Launch, run: Run, rank: usize) -> Result<()> {
        let (new_references, new_capacity) = match self.asked.fresh {
            _ if search == Search::Find => (0, 0),
            Fresh::Unwanted => (0, 0),
            Fresh::Gpu { address, capacity } => (address, capacity),
            // Allocated by `begin`.
            Fresh::Host => (self.fresh.as_ref().map_or(0, |memory| memory.address), self.ranks as u64 * self.round as u64),
        };
        let counts_of = |rank: usize| rank as u64 * size_of::<Counts>() as u64;
        if new_references != 0 {
            // Behind those of the run before.
            if let Some(last) = self.last_put.filter(|last| *last != rank) {
                let [from, to] = [last, rank].map(|rank| counts_of(rank) + NEW_REFERENCES_AT);
                self.rank.copy_number(Stream::Puts, &mut self.answered, from, to)?;
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
            // Zeros at first: `begin`.
            counts: self.answered.address + counts_of(rank),
            ..BatchView::default()
        };
        // SAFETY: as in `search_here`, in the memory of this GPU, on a stream that comes after that of the round; it all stays
        // until the stream has passed the kernel, as memory that is freed waits for that, and `Engine` for the caller's.
        unsafe { raw.enqueue_once((&*self.rank, Stream::Puts), search, &batch, launch) }
    }

    /// What has become of the rows of each rank since the operation has begun; and how many references of new ones there are, if
    /// they are wanted in the memory of the GPU; and whether a message was another than the one that was due. All that was begun
    /// has ended then.
    pub(super) fn answered(&mut self) -> Result<(Vec<Answered>, u64, Option<Error>)> {
        let mut words = vec![0u64; self.ranks * size_of::<Counts>() / 8 + 1];
        // Most of what is under way is over when this is read: one wait, and not one for each stream.
        let read = self.rank.read(Stream::Puts, &self.answered, 0, &mut words);
        self.rank.synchronize()?;
        read?;
        let (wrong, counts) = words.split_last().expect("one besides the counts");
        let wrong = (*wrong != 0).then(|| another_message(*wrong));
        let counts: &[Counts] = bytemuck::cast_slice(counts);
        let fresh = self.last_put.map_or(0, |last| counts[last].new_references);
        Ok((counts.iter().map(|counts| [counts.hits, counts.full, counts.full_nodes]).collect(), fresh, wrong))
    }

    /// Adds the references of what the round has stored to `fresh`, if they are wanted there and are not yet. All puts of the
    /// round were begun, and none of another.
    pub(super) fn take_fresh(&mut self, fresh: &mut Vec<u64>) -> Result<()> {
        if let (Some(last), Some(memory), Fresh::Host) = (self.last_put, &self.fresh, self.asked.fresh) {
            let at = last as u64 * size_of::<Counts>() as u64 + NEW_REFERENCES_AT;
            let mut count = [0u64];
            self.rank.read(Stream::Puts, &self.answered, at, &mut count)?;
            let before = fresh.len();
            fresh.resize(before + count[0] as usize, 0);
            self.rank.read(Stream::Puts, memory, 0, &mut fresh[before..])?;
            self.rank.write(Stream::Puts, &mut self.answered, at, &[0u64])?;
        }
        Ok(())
    }
}

const NEW_REFERENCES_AT: u64 = std::mem::offset_of!(Counts, new_references) as u64;
