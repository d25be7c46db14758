//! The memory of a rank's rounds, and what a round begins and ends with in it: vectors to runs by owner, answers to vectors.
//! Between the two: messages.rs and puts.rs.

use super::layout::Layout;
use super::owners;
use super::record::Wants;
use super::view::CURSOR_STEP;
use crate::backend::{Rank, RankMemory};
use crate::layout::Search;
use crate::layout::rank::{Kernel, LINE_BYTES, PartitionView, ROUNDS, Stamp, StampView, Stream};
use crate::layout::view::Counts;
use crate::{Device, Result};

/// The numbers of one round: how many rows go from each rank to which. All ranks know all of them.
pub(super) struct Rows {
    pub own: usize,
    /// By sender, then receiver.
    pub of: Vec<Vec<u64>>,
    /// By rank: what it wants to hear of its rows.
    pub wants: Vec<Wants>,
    /// Of the round, which stamps bear.
    pub sequence: u64,
}

impl Rows {
    pub(super) fn ranks(&self) -> usize {
        self.of.len()
    }

    /// Rows that this rank has for another.
    pub(super) fn to(&self, rank: usize) -> u64 {
        self.of[self.own][rank]
    }

    /// Rows that another rank has for this one.
    pub(super) fn from(&self, rank: usize) -> u64 {
        self.of[rank][self.own]
    }

    /// Whether any rank that has rows wants answers to them.
    pub(super) fn are_answered(&self) -> bool {
        self.wants.iter().any(|wants| wants.outcomes)
    }
}

/// The vectors of a round.
#[derive(Clone, Copy)]
pub(super) enum Input<'a> {
    Host(&'a [u32]),
    /// In the memory of the rank's GPU: from this address on, so many.
    Gpu {
        address: u64,
        count: usize,
    },
}

impl<'a> Input<'a> {
    pub(super) fn count(&self, width: usize) -> usize {
        match self {
            Self::Host(words) => words.len() / width,
            Self::Gpu { count, .. } => *count,
        }
    }

    /// The vectors in a range of positions.
    pub(super) fn part(&self, first: usize, len: usize, width: usize) -> Input<'a> {
        match self {
            Self::Host(words) => Self::Host(&words[first * width..(first + len) * width]),
            Self::Gpu { address, .. } => Self::Gpu { address: address + (first * width * 4) as u64, count: len },
        }
    }
}

/// Where the results of a round go, each by position, or nowhere.
pub(super) enum Output<'a> {
    Host {
        /// Empty if they are not wanted.
        outcomes: &'a mut [u8],
        references: Option<&'a mut [u64]>,
        owners: Option<&'a mut [u32]>,
    },
    /// Addresses in the memory of the rank's GPU, or 0.
    Gpu { outcomes: u64, references: u64, owners: u64 },
}

/// Where references of vectors that are new on this rank go.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only batches in the memory of a GPU are like this"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    Unwanted,
    Host,
    /// To the memory of the rank's GPU: from this address on, if there is room for so many.
    Gpu {
        address: u64,
        capacity: u64,
    },
}

/// What an operation asks for, the same in all of its rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub wants: Wants,
    pub owners: bool,
    pub fresh: Fresh,
}

/// One allocation for so many elements of so many bytes.
struct Array {
    memory: RankMemory,
    element: u64,
}

impl Array {
    fn new(rank: &dyn Rank, count: u64, element: u64) -> Result<Self> {
        Ok(Self { memory: rank.allocate(count * element)?, element })
    }

    fn at(&self, index: u64) -> u64 {
        self.memory.address + index * self.element
    }
}

/// The memory of a round. There is as much of it as rounds are under way at a time.
pub(super) struct RoundMemory {
    pub send: RankMemory,
    pub receive: RankMemory,
    pub replies_out: RankMemory,
    pub replies_in: RankMemory,
    places: RankMemory,
    /// If there is a filter.
    representatives: Option<RankMemory>,
    /// What a round begins with, which is written at once: the ranks' cursors, a line each; two totals; capacities, runs,
    /// answers, by rank; the stamps of the runs.
    counters: RankMemory,
    /// The number of a wrong message; then the stamps that messages are to have.
    pub stamps: RankMemory,
    /// The vectors, and how many.
    now: (u64, u64),
    pub layout: Layout,
    pub sender: Sender,
}

/// What the runs of a round tell of where they are from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sender {
    pub rank: usize,
    /// Of the record that tells the runs' lengths: the next one.
    pub sequence: u64,
}

pub(super) struct Partition {
    pub(super) rank: Box<dyn Rank>,
    pub(super) width: usize,
    pub(super) ranks: usize,
    /// The most vectors of a round.
    pub(super) round: usize,
    hash_mask: u64,
    seeds: RankMemory,
    /// The least hash that each rank owns; and the same on the device.
    bounds: Vec<u64>,
    bounds_there: RankMemory,
    /// Equal vectors of a round are found by it, if they are looked for.
    filter: Option<RankMemory>,
    /// On a GPU: vectors from the host. It is free again as soon as a round is sorted.
    vectors: Option<RankMemory>,
    /// On a GPU: results for the host, of vectors.
    results: Option<[Array; 3]>,
    pub(super) memory: Vec<RoundMemory>,
    /// What has become of each rank's rows in this operation, on the device; and the number of a wrong message, if checks of runs
    /// are enqueued.
    pub(super) answered: RankMemory,
    /// On a GPU: whose rows were put last, if references of new ones are wanted: the next ones go behind them.
    pub(super) last_put: Option<usize>,
    /// On a GPU: references of what is stored here, if ever asked for by the host.
    pub(super) fresh: Option<RankMemory>,
    pub(super) asked: Asked,
}

/// Of the counters of so many ranks: where capacities, runs and answers begin, behind cursors and totals.
fn table_at(ranks: u64) -> u64 {
    8 * (ranks * CURSOR_STEP + 2)
}

/// Which memory, and which stream, a round of this number has.
pub(super) fn place_of(round: usize) -> usize {
    round % ROUNDS
}

pub(super) fn stream_of(round: usize) -> Stream {
    Stream::Round(place_of(round))
}

/// Bytes that rounds take for each of their vectors, of so many words, on each of so many ranks: as `Partition::new` allocates
/// them.
pub(super) fn bytes_a_vector(width: usize, ranks: usize, deduplicates: bool) -> usize {
    let row = 4 * width;
    let filter = if deduplicates { 16 + 4 * ROUNDS } else { 0 };
    ROUNDS * (ranks * (row + 9) + (row + 9) / 16 + 5) + filter + row + 13
}

impl Partition {
    pub(super) fn new(device: &Device, width: usize, ranks: usize, round: usize, deduplicates: bool) -> Result<Self> {
        let rank = device.machine.new_rank()?;
        let (n, r, row) = (ranks as u64, round as u64, 4 * width as u64);
        // Each message's lines besides its rows.
        let extra = 4 * LINE_BYTES * n;
        let [send, replies_in] = Layout::most_bytes(r, n, row);
        let array = |count, element| Array::new(&*rank, count, element);
        let for_host = || -> Result<_> { Ok((rank.allocate(r * row)?, [array(r, 1)?, array(r, 8)?, array(r, 4)?])) };
        let (vectors, results) = if rank.is_host() { (None, None) } else { Some(for_host()?).unzip() };
        let memory = || -> Result<RoundMemory> {
            Ok(RoundMemory {
                send: rank.allocate(send)?,
                receive: rank.allocate((n - 1) * r * row + extra)?,
                replies_out: rank.allocate((n - 1) * r * 9 + extra)?,
                replies_in: rank.allocate(replies_in)?,
                places: rank.allocate(4 * r)?,
                representatives: deduplicates.then(|| rank.allocate(4 * r)).transpose()?,
                counters: rank.allocate(table_at(n) + n * (3 * 8 + size_of::<Stamp>() as u64))?,
                stamps: rank.allocate(8 + 2 * n * size_of::<Stamp>() as u64)?,
                now: (0, 0),
                layout: Layout::default(),
                sender: Sender::default(),
            })
        };
        Ok(Self {
            width,
            ranks,
            round,
            hash_mask: u64::MAX,
            seeds: rank.allocate((width as u64 + 1) * 16)?,
            bounds: Vec::new(),
            bounds_there: rank.allocate(8 * n)?,
            filter: deduplicates.then(|| rank.allocate(4 * (2 * r).next_power_of_two())).transpose()?,
            vectors,
            results,
            memory: (0..ROUNDS).map(|_| memory()).collect::<Result<_>>()?,
            answered: rank.allocate(n * size_of::<Counts>() as u64 + 8)?,
            last_put: None,
            fresh: None,
            asked: Asked { wants: Wants::default(), owners: false, fresh: Fresh::Unwanted },
            rank,
        })
    }

    /// From now on, owners are these. `bounds`: the least hash that each rank owns. `hash_mask`: all ones, but in tests.
    ///
    /// # Panics
    ///
    /// If these are no bounds of as many ranks (`owners::check_bounds`).
    pub(super) fn set_owners(&mut self, seed: u64, bounds: Vec<u64>, hash_mask: u64) -> Result<()> {
        assert_eq!(bounds.len(), self.ranks);
        owners::check_bounds(&bounds).unwrap_or_else(|what| panic!("{what}"));
        (self.hash_mask, self.bounds) = (hash_mask, bounds);
        self.rank.write_and_wait(Stream::Puts, &mut self.seeds, 0, &owners::seeds(seed, self.width))?;
        self.rank.write_and_wait(Stream::Puts, &mut self.bounds_there, 0, &self.bounds)
    }

    /// The least hash that each rank owns.
    pub(super) fn bounds(&self) -> &[u64] {
        &self.bounds
    }

    pub(super) fn deduplicates(&self) -> bool {
        self.filter.is_some()
    }

    /// Begins an operation.
    pub(super) fn begin(&mut self, asked: Asked) -> Result<()> {
        self.asked = asked;
        self.last_put = None;
        if asked.fresh == Fresh::Host && !self.rank.is_host() && self.fresh.is_none() {
            // As many as all ranks may send in a round.
            self.fresh = Some(self.rank.allocate(8 * self.ranks as u64 * self.round as u64)?);
        }
        let bytes = (self.ranks * size_of::<Counts>()) as u64 + 8;
        self.rank.fill(Stream::Puts, &mut self.answered, bytes, 0)
    }

    /// The address of the number of a wrong message.
    pub(super) fn wrong(&self) -> u64 {
        self.answered.address + (self.ranks * size_of::<Counts>()) as u64
    }

    fn view(&self, round: usize) -> PartitionView {
        let (n, memory) = (self.ranks as u64, &self.memory[place_of(round)]);
        let (vectors, count) = memory.now;
        let Asked { wants, owners, .. } = self.asked;
        let has_places = wants.outcomes || owners || self.deduplicates();
        PartitionView {
            vectors,
            count,
            seeds: self.seeds.address,
            hash_mask: self.hash_mask,
            bounds: self.bounds_there.address,
            slots: self.filter.as_ref().map_or(0, |memory| memory.address),
            representatives: memory.representatives.as_ref().map_or(0, |memory| memory.address),
            cursors: memory.counters.address,
            totals: memory.counters.address + 8 * n * CURSOR_STEP,
            capacities: memory.counters.address + table_at(n),
            runs: memory.counters.address + table_at(n) + 8 * n,
            answers: memory.counters.address + table_at(n) + 16 * n,
            places: if has_places { memory.places.address } else { 0 },
            replies: if wants.outcomes { memory.replies_in.address } else { 0 },
            width: self.width as u32,
            ranks: self.ranks as u32,
            slot_mask: ((2 * count.max(1)).next_power_of_two() - 1) as u32,
            with_references: u32::from(wants.references),
            ..PartitionView::default()
        }
    }

    /// Begins a round: copies these vectors, at most `round` of them, to the runs of their owners. What it had of the round
    /// before in the same memory has ended, or is enqueued before.
    pub(super) fn sort(&mut self, round: usize, input: Input<'_>, sender: Sender) -> Result<()> {
        let (count, stream) = (input.count(self.width), stream_of(round));
        assert!(count <= self.round);
        self.memory[place_of(round)].now = (0, count as u64);
        self.memory[place_of(round)].sender = sender;
        if count == 0 {
            return Ok(());
        }
        self.memory[place_of(round)].now.0 = match input {
            Input::Host(words) => match &mut self.vectors {
                None => words.as_ptr() as u64,
                Some(vectors) => {
                    self.rank.write_and_wait(stream, vectors, 0, words)?;
                    vectors.address
                }
            },
            Input::Gpu { address, .. } => address,
        };
        if let Some(filter) = &mut self.filter {
            let slots = (2 * count as u64).next_power_of_two();
            self.rank.fill(stream, filter, 4 * slots, 0xFF)?;
            let view = self.view(round);
            // SAFETY: as in `scatter`; there is twice as much filter as vectors, all of it empty, and the round before is sorted.
            unsafe { self.rank.partition(stream, Kernel::Claim, &view)? };
        }
        let room = self.room(round);
        let layout = Layout::for_any(count as u64, &self.bounds, 4 * self.width as u64, self.asked.wants, room);
        self.scatter(round, layout)
    }

    /// Bytes of memory for the runs of a round, and for the answers to them.
    fn room(&self, round: usize) -> [u64; 2] {
        let RoundMemory { send, replies_in, .. } = &self.memory[place_of(round)];
        [send.bytes, replies_in.bytes]
    }

    fn scatter(&mut self, round: usize, layout: Layout) -> Result<()> {
        let (n, stream) = (self.ranks as u64, stream_of(round));
        let memory = &mut self.memory[place_of(round)];
        let runs = layout.runs.iter().map(|start| memory.send.address + start + LINE_BYTES);
        let answers = layout.answers.iter().map(|start| start + LINE_BYTES);
        let mut begin = vec![0u64; table_at(n) as usize / 8];
        begin.extend(layout.capacities.iter().copied().chain(runs).chain(answers));
        memory.layout = layout;
        let stamps = self.stamps_of_runs(round);
        let stamps_at = 8 * begin.len() as u64;
        begin.extend_from_slice(bytemuck::cast_slice(&stamps));
        let memory = &mut self.memory[place_of(round)];
        self.rank.write(stream, &mut memory.counters, 0, &begin)?;
        let counters = memory.counters.address;
        let view = self.view(round);
        // SAFETY:
        // - the vectors are `count` rows, and stay until the line has passed this: `Engine` keeps them borrowed, and waits;
        // - everything is as large as the view says, of which `count` is at most `round` (`new`, and the assertion in `sort`);
        //   the runs have room for as many rows as the capacities say (the assertion in `Layout::of`).
        unsafe { self.rank.partition(stream, Kernel::Scatter, &view)? };
        if stamps.is_empty() {
            return Ok(());
        }
        let view =
            StampView { stamps: counters + stamps_at, count: stamps.len() as u64, cursors: counters, ..StampView::default() };
        // SAFETY: a run of as many rows as its stamp says at most is within its memory, with a line before them and a trailer
        // behind; longer ones are not stamped. The line orders this after the counting.
        unsafe { self.rank.stamps(stream, Kernel::WriteStamps, &view) }
    }

    /// How many rows each run of a round has, which is sorted then.
    pub(super) fn rows(&mut self, round: usize) -> Result<Vec<u64>> {
        let memory = &self.memory[place_of(round)];
        if memory.now.1 == 0 {
            return Ok(vec![0; self.ranks]);
        }
        let rows = self.read_rows(round)?;
        let sent: u64 = rows.iter().sum();
        assert!(sent <= memory.now.1, "{sent} rows were counted of {} vectors: please report this as a bug", memory.now.1);
        if rows.iter().zip(&memory.layout.capacities).all(|(rows, room)| rows <= room) {
            return Ok(rows);
        }
        let layout = Layout::of(rows, 4 * self.width as u64, self.asked.wants, self.room(round));
        self.scatter(round, layout)?;
        self.read_rows(round)
    }

    fn read_rows(&self, round: usize) -> Result<Vec<u64>> {
        let mut cursors = vec![0u64; self.ranks * CURSOR_STEP as usize];
        self.rank.read(stream_of(round), &self.memory[place_of(round)].counters, 0, &mut cursors)?;
        Ok(cursors.into_iter().step_by(CURSOR_STEP as usize).collect())
    }

    /// Ends a round: writes what has become of each of its vectors, as far as that is asked for. Gives how many of those that
    /// others represent were hits (put: new; found: stored), and how many were rejected.
    pub(super) fn collect(&mut self, round: usize, search: Search, mut output: Output<'_>) -> Result<[u64; 2]> {
        let (stream, count) = (stream_of(round), self.memory[place_of(round)].now.1);
        let (outcomes, references, owners) = match (&mut output, &self.results) {
            (Output::Host { outcomes, references, owners }, None) => (
                if outcomes.is_empty() { 0 } else { outcomes.as_mut_ptr() as u64 },
                references.as_mut().map_or(0, |references| references.as_mut_ptr() as u64),
                owners.as_mut().map_or(0, |owners| owners.as_mut_ptr() as u64),
            ),
            (Output::Host { outcomes, references, owners }, Some([of_outcomes, of_references, of_owners])) => (
                if outcomes.is_empty() { 0 } else { of_outcomes.at(0) },
                references.as_ref().map_or(0, |_| of_references.at(0)),
                owners.as_ref().map_or(0, |_| of_owners.at(0)),
            ),
            (Output::Gpu { outcomes, references, owners }, _) => (*outcomes, *references, *owners),
        };
        if count == 0 || ([outcomes, references, owners] == [0; 3] && !self.deduplicates()) {
            return Ok([0; 2]);
        }
        let view = PartitionView { outcomes, references, owners, ..self.view(round) };
        let kernel = if search == Search::Find { Kernel::GatherFound } else { Kernel::GatherPut };
        // SAFETY: as in `scatter`, but that vectors are not read; the replies have a row for each place (`check_replies`), the
        // results an element for each vector: slices of the caller's, which are borrowed, or buffers, until `Engine` has waited.
        unsafe { self.rank.partition(stream, kernel, &view)? };
        if let (Output::Host { outcomes, references, owners }, Some([of_outcomes, of_places, of_ranks])) = (output, &self.results)
        {
            self.rank.read(stream, &of_outcomes.memory, 0, outcomes)?;
            references.map_or(Ok(()), |references| self.rank.read(stream, &of_places.memory, 0, references))?;
            owners.map_or(Ok(()), |owners| self.rank.read(stream, &of_ranks.memory, 0, owners))?;
        }
        let mut totals = [0u64; 2];
        if self.deduplicates() {
            let at = 8 * self.ranks as u64 * CURSOR_STEP;
            self.rank.read(stream, &self.memory[place_of(round)].counters, at, &mut totals)?;
        }
        Ok(totals)
    }
}
