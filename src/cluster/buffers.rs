//! Device memory for a rank's rounds, and the device that has this memory.

use super::layout::Layout;
use super::plan::Sender;
use super::view::CURSOR_STEP;
use crate::backend::{Memory, Rank};
use crate::layout::rank::{LINE_BYTES, ROUNDS, Stamp, Stream};
use crate::{Device, Result};

/// Buffers of the rounds that may be under way at once.
pub(super) struct Buffers {
    /// The rank's device, with a stream for each of these rounds and one for puts.
    pub device: Box<dyn Rank>,
    /// Words of a vector.
    pub width: usize,
    /// Number of ranks.
    pub ranks: usize,
    /// Maximum number of vectors of a round.
    pub most: usize,
    rounds: Vec<RoundBuffers>,
}

/// Buffers of one round.
pub(super) struct RoundBuffers {
    /// Runs that this rank sends, and the run that it keeps.
    pub send: Memory,
    /// Runs of other ranks.
    pub receive: Memory,
    /// Replies to the runs of other ranks.
    pub replies_out: Memory,
    /// Replies to this rank's runs, its own answers included.
    pub replies_in: Memory,
    /// Place of each vector's answer.
    pub places: Memory,
    /// Representative of each vector among equal ones; `None` unless equal vectors are looked for.
    pub representatives: Option<Memory>,
    /// Data that a round starts with, written by one copy: the ranks' cursors, a line each; two totals; capacities, runs and
    /// answers, by rank; the stamps of the runs.
    pub counters: Memory,
    /// Number of a wrong message, then the stamps that messages must have.
    pub stamps: Memory,
    /// Address of the round's vectors.
    pub vectors: u64,
    /// Number of the round's vectors.
    pub count: u64,
    /// Places of the round's runs and answers.
    pub layout: Layout,
    /// Rank and sequence number in the stamps of the round's runs.
    pub sender: Sender,
}

impl Buffers {
    /// Allocates the buffers for rounds of at most `most` vectors.
    pub(super) fn new(device: &Device, width: usize, ranks: usize, most: usize, deduplicates: bool) -> Result<Self> {
        let device = device.machine.new_rank()?;
        let (machine, n, r, row) = (device.machine(), ranks as u64, most as u64, 4 * width as u64);
        // Bytes of the messages in addition to their rows.
        let extra = 4 * LINE_BYTES * n;
        let [send, replies_in] = Layout::most_bytes(r, n, row);
        let round = || -> Result<RoundBuffers> {
            Ok(RoundBuffers {
                send: machine.allocate(send)?,
                receive: machine.allocate((n - 1) * r * row + extra)?,
                replies_out: machine.allocate((n - 1) * r * 9 + extra)?,
                replies_in: machine.allocate(replies_in)?,
                places: machine.allocate(4 * r)?,
                representatives: deduplicates.then(|| machine.allocate(4 * r)).transpose()?,
                counters: machine.allocate(layout_at(n) + n * (3 * 8 + size_of::<Stamp>() as u64))?,
                stamps: machine.allocate(8 + 2 * n * size_of::<Stamp>() as u64)?,
                vectors: 0,
                count: 0,
                layout: Layout::default(),
                sender: Sender::default(),
            })
        };
        let rounds = (0..ROUNDS).map(|_| round()).collect::<Result<_>>()?;
        Ok(Self { device, width, ranks, most, rounds })
    }

    /// Whether the rank's table, and so these buffers, are in the memory of a GPU.
    pub(super) fn is_gpu(&self) -> bool {
        self.device.machine().is_gpu()
    }

    /// Buffers of a round.
    pub(super) fn of(&self, round: usize) -> &RoundBuffers {
        &self.rounds[place_of(round)]
    }

    /// The device, and the buffers of a round.
    pub(super) fn split(&mut self, round: usize) -> (&dyn Rank, &mut RoundBuffers) {
        (&*self.device, &mut self.rounds[place_of(round)])
    }
}

/// Byte offset in the counters of the capacities, runs and answers, behind the cursors of `ranks` ranks and the totals.
pub(super) fn layout_at(ranks: u64) -> u64 {
    8 * (ranks * CURSOR_STEP + 2)
}

fn place_of(round: usize) -> usize {
    round % ROUNDS
}

/// Stream of a round.
pub(super) fn stream_of(round: usize) -> Stream {
    Stream::Round(place_of(round))
}

/// Bytes that all buffers take for each vector of a round, as [`Buffers::new`] and `Partition::new` allocate them.
pub(super) fn bytes_a_vector(width: usize, ranks: usize, deduplicates: bool) -> usize {
    let row = 4 * width;
    let filter = if deduplicates { 16 + 4 * ROUNDS } else { 0 };
    ROUNDS * (ranks * (row + 9) + (row + 9) / 16 + 5) + filter + row + 13
}
