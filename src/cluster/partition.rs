//! The memory of a rank's rounds, and the steps of a round in it: vectors to runs by owner, runs to replies, replies to vectors.

use super::memory::{Kernel, Memory, Rank};
use super::owners;
use super::transport::Region;
use super::view::{
    COUNTS_AT, LINE_BYTES, PartitionView, Stamp, StampView, TRAILER_BYTES, message_bytes, reply_content, whole_lines,
};
#[cfg(feature = "cpu")]
use crate::core::batch::HostBatch;
use crate::core::store::Search;
use crate::core::table::RawTable;
#[cfg(feature = "cuda")]
use crate::core::view::BatchView;
use crate::core::view::Counts;
use crate::{Device, Error, Result};

/// What every stamp begins with.
const MAGIC: u64 = 0x7761_7270_7365_7421;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Run = 1,
    Reply = 2,
}

/// The numbers of one rank: how many rows go from each rank to which. All ranks know all of them.
pub(super) struct Rows {
    pub own: usize,
    /// By sender, then receiver.
    pub of: Vec<Vec<u64>>,
    /// By rank: whether it wants references.
    pub with_references: Vec<bool>,
    /// Of the round, which stamps bear.
    pub sequence: u64,
}

impl Rows {
    fn ranks(&self) -> usize {
        self.of.len()
    }

    /// Rows that this rank has for another.
    fn to(&self, rank: usize) -> u64 {
        self.of[self.own][rank]
    }

    /// Rows that another rank has for this one.
    fn from(&self, rank: usize) -> u64 {
        self.of[rank][self.own]
    }
}

/// The vectors of a round.
#[derive(Clone, Copy)]
pub(super) enum Input<'a> {
    Host(&'a [u32]),
    /// In the memory of the rank's GPU: from this address on, so many.
    #[cfg(feature = "cuda")]
    Gpu {
        address: u64,
        count: usize,
    },
}

impl<'a> Input<'a> {
    pub(super) fn count(&self, width: usize) -> usize {
        match self {
            Self::Host(words) => words.len() / width,
            #[cfg(feature = "cuda")]
            Self::Gpu { count, .. } => *count,
        }
    }

    /// The vectors in a range of positions.
    pub(super) fn part(&self, first: usize, len: usize, width: usize) -> Input<'a> {
        match self {
            Self::Host(words) => Self::Host(&words[first * width..(first + len) * width]),
            #[cfg(feature = "cuda")]
            Self::Gpu { address, .. } => Self::Gpu { address: address + (first * width * 4) as u64, count: len },
        }
    }
}

/// Where the results of a round go, each by position, or nowhere.
pub(super) enum Output<'a> {
    Host {
        outcomes: &'a mut [u8],
        references: Option<&'a mut [u64]>,
        owners: Option<&'a mut [u32]>,
    },
    /// Addresses in the memory of the rank's GPU, or 0.
    #[cfg(feature = "cuda")]
    Gpu {
        outcomes: u64,
        references: u64,
        owners: u64,
    },
}

/// Where references of vectors that are new on this rank go.
pub(super) enum Fresh {
    Unwanted,
    Host(Vec<u64>),
    /// In the memory of the rank's GPU: from this address on, of which so many are written, or counted if there is no more room.
    #[cfg(feature = "cuda")]
    Gpu {
        address: u64,
        capacity: u64,
        count: u64,
    },
}

/// One allocation for so many elements of so many bytes.
struct Array {
    memory: Memory,
    element: u64,
}

impl Array {
    fn new(rank: &Rank, count: u64, element: u64) -> Result<Self> {
        Ok(Self { memory: rank.allocate(count * element)?, element })
    }

    fn at(&self, index: u64) -> u64 {
        self.memory.address() + index * self.element
    }
}

/// A run that is to be put, and its reply: addresses in the rank's memory.
#[derive(Clone, Copy)]
struct Run {
    count: u64,
    vectors: u64,
    reply: u64,
    outcomes: u64,
    /// 0 if they are not wanted.
    references: u64,
}

pub(super) struct Partition {
    rank: Rank,
    width: usize,
    ranks: usize,
    /// The most vectors of a round.
    round: usize,
    hash_mask: u64,
    seeds: Memory,
    bounds: Memory,
    /// On a GPU: vectors from the host.
    vectors: Option<Memory>,
    /// On a GPU: results for the host, of vectors.
    results: Option<[Array; 3]>,
    slots: Memory,
    representatives: Array,
    rows: Array,
    /// Counts, cursors (a `u64` a rank each), two totals, and the number of a wrong message.
    counters: Array,
    /// First rows, runs, replies.
    table: Array,
    stamps: Memory,
    send: Memory,
    receive: Memory,
    replies_out: Memory,
    replies_in: Memory,
    /// On a GPU: references of what is stored here, if ever asked for.
    #[cfg(feature = "cuda")]
    fresh: Option<Memory>,
    /// The vectors of the round that is under way, and how many.
    now: (u64, u64),
    first_rows: Vec<u64>,
    send_starts: Vec<u64>,
}

impl Partition {
    pub(super) fn new(device: &Device, width: usize, ranks: usize, round: usize) -> Result<Self> {
        let rank = Rank::new(device)?;
        let (n, r, row) = (ranks as u64, round as u64, 4 * width as u64);
        // Each message's lines besides its rows.
        let extra = 4 * LINE_BYTES * n;
        let of_host = rank.is_host();
        let array = |count, element| Array::new(&rank, count, element);
        let for_host = || -> Result<_> { Ok((rank.allocate(r * row)?, [array(r, 1)?, array(r, 8)?, array(r, 4)?])) };
        let (vectors, results) = if of_host { (None, None) } else { Some(for_host()?).unzip() };
        Ok(Self {
            width,
            ranks,
            round,
            hash_mask: u64::MAX,
            seeds: rank.allocate((width as u64 + 1) * 16)?,
            bounds: rank.allocate(8 * n)?,
            vectors,
            results,
            slots: rank.allocate(4 * (2 * r).next_power_of_two())?,
            representatives: array(r, 4)?,
            rows: array(r, 4)?,
            counters: array(2 * n + 3, 8)?,
            table: array(3 * n + 1, 8)?,
            stamps: rank.allocate(n * size_of::<Stamp>() as u64)?,
            send: rank.allocate(r * row + extra)?,
            receive: rank.allocate((n - 1) * r * row + extra)?,
            replies_out: rank.allocate(n * r * 9 + extra)?,
            replies_in: rank.allocate(r * 9 + extra)?,
            #[cfg(feature = "cuda")]
            fresh: None,
            now: (0, 0),
            first_rows: vec![0; ranks + 1],
            send_starts: vec![0; ranks],
            rank,
        })
    }

    /// From now on, owners are these. `hash_mask`: all ones, but in tests.
    pub(super) fn set_owners(&mut self, seed: u64, weights: &[u64], hash_mask: u64) -> Result<()> {
        self.hash_mask = hash_mask;
        self.rank.write(&mut self.seeds, 0, &owners::seeds(seed, self.width))?;
        self.rank.write(&mut self.bounds, 0, &owners::bounds(weights))
    }

    pub(super) fn round(&self) -> usize {
        self.round
    }

    fn view(&self) -> PartitionView {
        let (n, (vectors, count)) = (self.ranks as u64, self.now);
        PartitionView {
            vectors,
            count,
            seeds: self.seeds.address(),
            hash_mask: self.hash_mask,
            bounds: self.bounds.address(),
            slots: self.slots.address(),
            representatives: self.representatives.at(0),
            rows: self.rows.at(0),
            counts: self.counters.at(0),
            cursors: self.counters.at(n),
            totals: self.counters.at(2 * n),
            first_rows: self.table.at(0),
            runs: self.table.at(n + 1),
            replies: self.table.at(2 * n + 1),
            width: self.width as u32,
            ranks: self.ranks as u32,
            slot_mask: ((2 * count.max(1)).next_power_of_two() - 1) as u32,
            ..PartitionView::default()
        }
    }

    /// Begins a round: finds the owners of these vectors, at most `round` of them, and copies each distinct one to the run of its
    /// owner. Gives how many rows each run has.
    pub(super) fn sort(&mut self, input: Input<'_>) -> Result<Vec<u64>> {
        let (n, count) = (self.ranks, input.count(self.width));
        assert!(count <= self.round);
        let mut counts = vec![0u64; n];
        self.now = (0, count as u64);
        self.first_rows = vec![0; n + 1];
        if count == 0 {
            return Ok(counts);
        }
        self.now.0 = match input {
            Input::Host(words) => match &mut self.vectors {
                None => words.as_ptr() as u64,
                Some(vectors) => {
                    self.rank.write(vectors, 0, words)?;
                    vectors.address()
                }
            },
            #[cfg(feature = "cuda")]
            Input::Gpu { address, .. } => address,
        };
        let view = self.view();
        self.rank.fill(&mut self.slots, 4 * (u64::from(view.slot_mask) + 1), 0xFF)?;
        self.rank.fill(&mut self.counters.memory, (2 * n as u64 + 3) * 8, 0)?;
        // SAFETY:
        // - the vectors are `count` rows, and stay until `collect` has returned, or another round begins: `Engine` keeps them
        //   borrowed;
        // - there is twice as much filter as vectors, all of it empty; everything else is as large as the view says (`new`), of
        //   which `count` is at most `round` (asserted).
        unsafe { self.rank.partition(Kernel::Claim, &view)? };
        self.rank.read(&self.counters.memory, 0, &mut counts)?;
        let mut start = 0;
        for (rank, rows) in counts.iter().enumerate() {
            self.first_rows[rank + 1] = self.first_rows[rank] + rows;
            self.send_starts[rank] = start;
            start += message_bytes(4 * self.width as u64 * rows);
        }
        let runs: Vec<u64> = self.send_starts.iter().map(|start| self.send.address() + start + LINE_BYTES).collect();
        self.rank.write(&mut self.table.memory, 0, &[&self.first_rows[..], &runs].concat())?;
        // SAFETY: as above; the runs have room for their rows, of which there are `count` at most, and each line besides (`new`).
        unsafe { self.rank.partition(Kernel::Scatter, &view)? };
        Ok(counts)
    }

    /// The stamps of messages from or to this rank, which lie in `memory` one after another, by the other rank.
    fn stamps(&self, kind: Kind, rows: &Rows, sent: bool, starts: &[u64], memory: &Memory) -> Vec<Stamp> {
        let stamp = |rank: usize| {
            let of_run = (kind == Kind::Run) == sent;
            let count = if of_run { rows.to(rank) } else { rows.from(rank) };
            let bytes = match kind {
                Kind::Run => message_bytes(4 * self.width as u64 * count),
                Kind::Reply => {
                    let asks = if sent { rank } else { rows.own };
                    message_bytes(reply_content(count, rows.with_references[asks]))
                }
            };
            let (from, to) = if sent { (rows.own, rank) } else { (rank, rows.own) };
            Stamp {
                magic: MAGIC,
                sequence: rows.sequence,
                kind: kind as u32,
                from: from as u32,
                to: to as u32,
                width: self.width as u32,
                rows: count,
                // What the rank has for itself goes nowhere.
                bytes: if rank == rows.own && kind == Kind::Run { 0 } else { bytes },
                at: memory.address() + starts[rank],
            }
        };
        (0..rows.ranks()).map(stamp).collect()
    }

    /// Where each of these messages starts, which lie one after another.
    fn starts(bytes: impl Iterator<Item = u64>) -> Vec<u64> {
        bytes.scan(0, |start, bytes| Some(std::mem::replace(start, *start + bytes))).collect()
    }

    fn received_starts(&self, rows: &Rows) -> Vec<u64> {
        let bytes = |rank| if rank == rows.own { 0 } else { message_bytes(4 * self.width as u64 * rows.from(rank)) };
        Self::starts((0..rows.ranks()).map(bytes))
    }

    /// Where the reply to each rank's run is.
    fn reply_starts(rows: &Rows) -> Vec<u64> {
        let bytes = |rank: usize| message_bytes(reply_content(rows.from(rank), rows.with_references[rank]));
        Self::starts((0..rows.ranks()).map(bytes))
    }

    /// Where the reply of each owner goes. The rank's own stays where it is made.
    fn answer_starts(rows: &Rows) -> Vec<u64> {
        let wants = rows.with_references[rows.own];
        let bytes = |rank| if rank == rows.own { 0 } else { message_bytes(reply_content(rows.to(rank), wants)) };
        Self::starts((0..rows.ranks()).map(bytes))
    }

    fn write_stamps(&mut self, stamps: &[Stamp]) -> Result<()> {
        self.rank.write(&mut self.stamps, 0, stamps)?;
        let view = StampView { stamps: self.stamps.address(), count: stamps.len() as u64, wrong: 0 };
        // SAFETY: each message is within its memory: so many bytes from `at` on, a line and a trailer at least.
        unsafe { self.rank.stamps(Kernel::WriteStamps, &view) }
    }

    /// An error unless each message that came is the one that these stamps say.
    fn check_stamps(&mut self, stamps: &[Stamp]) -> Result<()> {
        let wrong_at = 2 * self.ranks as u64 + 2;
        self.rank.write(&mut self.stamps, 0, stamps)?;
        self.rank.write(&mut self.counters.memory, wrong_at * 8, &[0u64])?;
        let wrong = self.counters.at(wrong_at);
        let view = StampView { stamps: self.stamps.address(), count: stamps.len() as u64, wrong };
        // SAFETY: as in `write_stamps`.
        unsafe { self.rank.stamps(Kernel::CheckStamps, &view)? };
        let mut wrong = [0u64];
        self.rank.read(&self.counters.memory, wrong_at * 8, &mut wrong)?;
        match wrong[0] {
            0 => Ok(()),
            number => {
                let rank = stamps[number as usize - 1].from as usize;
                Err(Error::Connection {
                    rank,
                    reason: "has sent another message than the one that is due, or a part of it".into(),
                })
            }
        }
    }

    /// Stamps the runs, and the replies that are to be made. Gives where each run is to be sent from, and where those of others
    /// go to.
    pub(super) fn runs(&mut self, rows: &Rows) -> Result<(Vec<Region>, Vec<Region>)> {
        let sent = self.stamps(Kind::Run, rows, true, &self.send_starts, &self.send);
        self.write_stamps(&sent)?;
        let replies = self.stamps(Kind::Reply, rows, true, &Self::reply_starts(rows), &self.replies_out);
        self.write_stamps(&replies)?;
        let (received, starts) =
            (self.stamps(Kind::Run, rows, false, &vec![0; rows.ranks()], &self.receive), self.received_starts(rows));
        let send = sent.iter().map(|stamp| self.rank.region(&self.send, stamp.at - self.send.address(), stamp.bytes));
        let receive = received.iter().zip(starts).map(|(stamp, start)| self.rank.region(&self.receive, start, stamp.bytes));
        Ok((send.collect(), receive.collect()))
    }

    /// An error unless the runs that came are those that are due.
    pub(super) fn check_runs(&mut self, rows: &Rows) -> Result<()> {
        let stamps = self.stamps(Kind::Run, rows, false, &self.received_starts(rows), &self.receive);
        self.check_stamps(&stamps)
    }

    /// Searches for the rows of a rank's run, or puts them, and writes the reply. References of the new ones are added to
    /// `fresh`.
    pub(super) fn search(&mut self, raw: &RawTable, search: Search, rows: &Rows, rank: usize, fresh: &mut Fresh) -> Result<()> {
        let count = rows.from(rank);
        if count == 0 {
            return Ok(());
        }
        let vectors = match rank == rows.own {
            true => self.send.address() + self.send_starts[rank] + LINE_BYTES,
            false => self.receive.address() + self.received_starts(rows)[rank] + LINE_BYTES,
        };
        let reply = self.replies_out.address() + Self::reply_starts(rows)[rank];
        let outcomes = reply + LINE_BYTES;
        let references = if rows.with_references[rank] { outcomes + whole_lines(count) } else { 0 };
        let run = Run { count, vectors, reply, outcomes, references };
        match self.rank {
            #[cfg(feature = "cpu")]
            Rank::Cpu { .. } => self.search_here(raw, search, run, fresh),
            #[cfg(feature = "cuda")]
            Rank::Gpu(_) => self.search_on_gpu(raw, search, run, rank, fresh),
        }
    }

    #[cfg(feature = "cpu")]
    fn search_here(&mut self, raw: &RawTable, search: Search, run: Run, fresh: &mut Fresh) -> Result<()> {
        let count = run.count as usize;
        // SAFETY: the run and the reply have room for `count` rows (`runs` has laid them out by the same numbers), in memory that
        // this rank alone uses: an exchange that may be under way writes to and reads other messages. They are aligned to lines,
        // and any bits are words, bytes and numbers.
        let (vectors, outcomes, references) = unsafe {
            (
                std::slice::from_raw_parts(run.vectors as *const u32, count * self.width),
                std::slice::from_raw_parts_mut(run.outcomes as *mut u8, count),
                (run.references != 0).then(|| std::slice::from_raw_parts_mut(run.references as *mut u64, count)),
            )
        };
        let mut none = Vec::new();
        let (wanted, fresh) = match fresh {
            Fresh::Host(fresh) => (search == Search::FindOrPut, fresh),
            _ => (false, &mut none),
        };
        let before = fresh.len();
        fresh.resize(before + if wanted { count } else { 0 }, 0);
        let mut batch = HostBatch {
            outcomes: Some(outcomes),
            references,
            new_references: wanted.then(|| &mut fresh[before..]),
            ..HostBatch::of(vectors)
        };
        let counts = raw.search_once(search, &mut batch);
        let new = counts.as_ref().map_or(0, |counts| counts.new_references);
        fresh.truncate(before + new as usize);
        let at = run.reply - self.replies_out.address() + COUNTS_AT;
        self.rank.write(&mut self.replies_out, at, &[counts?])
    }

    #[cfg(feature = "cuda")]
    fn search_on_gpu(&mut self, raw: &RawTable, search: Search, run: Run, rank: usize, fresh: &mut Fresh) -> Result<()> {
        if matches!(fresh, Fresh::Host(_)) && self.fresh.is_none() {
            self.fresh = Some(self.rank.allocate(8 * self.ranks as u64 * self.round as u64)?);
        }
        // A part of the buffer for each rank: each run's counts begin at 0.
        let first = 8 * rank as u64 * self.round as u64;
        let (new_references, new_capacity) = match (&*fresh, &self.fresh) {
            _ if search == Search::Find => (0, 0),
            (Fresh::Host(_), Some(memory)) => (memory.address() + first, run.count),
            // The caller's buffer, behind what it has already.
            (Fresh::Gpu { address, capacity, count }, _) => {
                let written = (*count).min(*capacity);
                (address + 8 * written, (capacity - written).min(run.count))
            }
            _ => (0, 0),
        };
        let counts_at = run.reply + COUNTS_AT;
        let batch = BatchView {
            vectors: run.vectors,
            count: run.count,
            outcomes: run.outcomes,
            references: run.references,
            new_references,
            new_capacity,
            // Zeros so far: `write_stamps`.
            counts: counts_at,
            ..BatchView::default()
        };
        let stream = self.rank.stream().expect("the rank is on a GPU");
        // SAFETY: as in `search_here`, in the memory of this GPU, on the stream of this rank; it all stays until the stream has
        // passed the kernel, as memory that is freed waits for that.
        unsafe { raw.enqueue_once(search, &batch, stream.cu_stream())? };
        if new_references == 0 {
            return Ok(());
        }
        let mut counts = [Counts::default()];
        self.rank.read(&self.replies_out, counts_at - self.replies_out.address(), &mut counts)?;
        let new = counts[0].new_references;
        match (fresh, &self.fresh) {
            (Fresh::Host(fresh), Some(memory)) => {
                let before = fresh.len();
                fresh.resize(before + new as usize, 0);
                self.rank.read(memory, first, &mut fresh[before..])
            }
            (Fresh::Gpu { count, .. }, _) => {
                *count += new;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Where each reply is to be sent from, and where those to this rank go to.
    pub(super) fn replies(&self, rows: &Rows) -> (Vec<Region>, Vec<Region>) {
        let region = |(memory, starts, sent)| {
            let mut stamps = self.stamps(Kind::Reply, rows, sent, starts, memory);
            stamps[rows.own].bytes = 0;
            stamps.iter().map(|stamp| self.rank.region(memory, stamp.at - memory.address(), stamp.bytes)).collect()
        };
        let (out, answers) = (Self::reply_starts(rows), Self::answer_starts(rows));
        (region((&self.replies_out, &out, true)), region((&self.replies_in, &answers, false)))
    }

    /// An error unless the replies that came are those that are due.
    pub(super) fn check_replies(&mut self, rows: &Rows) -> Result<()> {
        let mut stamps = self.stamps(Kind::Reply, rows, false, &Self::answer_starts(rows), &self.replies_in);
        stamps[rows.own].bytes = 0;
        self.check_stamps(&stamps)
    }

    /// Ends a round: writes what has become of each of its vectors. Gives how many were hits (put: new; found: stored), how many
    /// were rejected, and for how many of those that were sent it was for want of a node.
    pub(super) fn collect(&mut self, search: Search, rows: &Rows, mut output: Output<'_>) -> Result<[u64; 3]> {
        let (n, (_, count)) = (self.ranks as u64, self.now);
        if count == 0 {
            return Ok([0; 3]);
        }
        let (own_reply, answers) = (Self::reply_starts(rows)[rows.own], Self::answer_starts(rows));
        let reply_of = |rank: usize| match rank == rows.own {
            true => (&self.replies_out, own_reply),
            false => (&self.replies_in, answers[rank]),
        };
        let replies: Vec<u64> = (0..self.ranks).map(reply_of).map(|(memory, at)| memory.address() + at + LINE_BYTES).collect();
        self.rank.write(&mut self.table.memory, (2 * n + 1) * 8, &replies)?;
        let (outcomes, references, owners) = match (&mut output, &self.results) {
            (Output::Host { outcomes, references, owners }, None) => (
                outcomes.as_mut_ptr() as u64,
                references.as_mut().map_or(0, |references| references.as_mut_ptr() as u64),
                owners.as_mut().map_or(0, |owners| owners.as_mut_ptr() as u64),
            ),
            (Output::Host { references, owners, .. }, Some([of_outcomes, of_references, of_owners])) => (
                of_outcomes.at(0),
                references.as_ref().map_or(0, |_| of_references.at(0)),
                owners.as_ref().map_or(0, |_| of_owners.at(0)),
            ),
            #[cfg(feature = "cuda")]
            (Output::Gpu { outcomes, references, owners }, _) => (*outcomes, *references, *owners),
        };
        let with_references = u32::from(rows.with_references[rows.own]);
        let view = PartitionView { outcomes, references, owners, with_references, ..self.view() };
        let kernel = if search == Search::Find { Kernel::GatherFound } else { Kernel::GatherPut };
        // SAFETY: as in `sort`, whose vectors these are; the replies have a row for each of them (`replies`, checked by
        // `check_replies`), the results an element for each vector: slices of the caller's, which are borrowed, or buffers.
        unsafe { self.rank.partition(kernel, &view)? };
        let mut totals = [0u64; 2];
        self.rank.read(&self.counters.memory, 2 * n * 8, &mut totals)?;
        if let (Output::Host { outcomes, references, owners }, Some([of_outcomes, of_places, of_ranks])) = (output, &self.results)
        {
            self.rank.read(&of_outcomes.memory, 0, outcomes)?;
            references.map_or(Ok(()), |references| self.rank.read(&of_places.memory, 0, references))?;
            owners.map_or(Ok(()), |owners| self.rank.read(&of_ranks.memory, 0, owners))?;
        }
        let mut for_nodes = 0;
        if totals[1] > 0 {
            for rank in (0..self.ranks).filter(|rank| rows.to(*rank) > 0) {
                let ((memory, at), mut counts) = (reply_of(rank), [Counts::default()]);
                self.rank.read(memory, at + COUNTS_AT, &mut counts)?;
                for_nodes += counts[0].full_nodes;
            }
        }
        Ok([totals[0], totals[1], for_nodes])
    }

    /// Bytes of the messages of a round to other ranks, and from them.
    pub(super) fn exchanged(&self, rows: &Rows) -> [u64; 2] {
        let others = || (0..self.ranks).filter(|rank| *rank != rows.own);
        let run = |count| message_bytes(4 * self.width as u64 * count);
        let reply = |count, rank: usize| message_bytes(reply_content(count, rows.with_references[rank]));
        let out = others().map(|rank| run(rows.to(rank)) + reply(rows.from(rank), rank)).sum();
        let back = others().map(|rank| run(rows.from(rank)) + reply(rows.to(rank), rows.own)).sum();
        [out, back]
    }
}

const _: () = assert!(COUNTS_AT as usize + size_of::<Counts>() <= LINE_BYTES as usize && TRAILER_BYTES == 16);
