//! The messages of a round: runs to their owners, replies to whoever has sent the runs. Each begins and ends with a stamp.

use super::layout::starts;
use super::partition::{Partition, RoundMemory, Rows, Sender, place_of, stream_of};
use super::transport::Region;
use super::view::{TRAILER_BYTES, message_bytes, reply_content};
use crate::backend::RankMemory;
use crate::layout::rank::{Kernel, LINE_BYTES, Stamp, StampView, Stream};
use crate::{Error, Result};

/// What every stamp begins with.
const MAGIC: u64 = 0x7761_7270_7365_7422;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Run = 1,
    Reply = 2,
}

/// Which way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Out,
    In,
}

/// All messages of a kind that go one way, by the other rank: how long they are, and where they are in which memory.
struct Messages<'a> {
    kind: Kind,
    way: Way,
    bytes: Vec<u64>,
    starts: Vec<u64>,
    memory: &'a RankMemory,
}

impl Partition {
    fn run_bytes(&self, rows: u64) -> u64 {
        message_bytes(4 * self.width as u64 * rows)
    }

    /// Bytes of the runs from each rank. What a rank has for itself goes nowhere.
    fn received_bytes(&self, rows: &Rows) -> Vec<u64> {
        (0..self.ranks).map(|rank| if rank == rows.own { 0 } else { self.run_bytes(rows.from(rank)) }).collect()
    }

    /// Bytes of the replies to each rank's run.
    fn reply_bytes(rows: &Rows) -> Vec<u64> {
        let bytes = |rank: usize| message_bytes(reply_content(rows.from(rank), rows.wants[rank]));
        (0..rows.ranks()).map(|rank| if rank == rows.own { 0 } else { bytes(rank) }).collect()
    }

    fn messages<'a>(&self, memory: &'a RoundMemory, rows: &Rows, kind: Kind, way: Way) -> Messages<'a> {
        let to_others = |bytes: &dyn Fn(u64) -> u64| -> Vec<u64> {
            (0..self.ranks).map(|rank| if rank == rows.own { 0 } else { bytes(rows.to(rank)) }).collect()
        };
        let (bytes, starts, memory) = match (kind, way) {
            (Kind::Run, Way::Out) => (to_others(&|count| self.run_bytes(count)), memory.layout.runs.clone(), &memory.send),
            (Kind::Run, Way::In) => {
                let bytes = self.received_bytes(rows);
                let starts = starts(bytes.iter().copied());
                (bytes, starts, &memory.receive)
            }
            (Kind::Reply, Way::Out) => {
                let bytes = Self::reply_bytes(rows);
                let starts = starts(bytes.iter().copied());
                (bytes, starts, &memory.replies_out)
            }
            (Kind::Reply, Way::In) => {
                let bytes = to_others(&|count| message_bytes(reply_content(count, rows.wants[rows.own])));
                (bytes, memory.layout.answers.clone(), &memory.replies_in)
            }
        };
        // A rank without vectors has laid out nothing, and sends nothing.
        let starts = if starts.is_empty() { vec![0; self.ranks] } else { starts };
        Messages { kind, way, bytes, starts, memory }
    }

    fn stamps(&self, messages: &Messages<'_>, rows: &Rows) -> impl Iterator<Item = Stamp> {
        let stamp = |rank: usize| {
            let is_out = messages.way == Way::Out;
            let (from, to) = if is_out { (rows.own, rank) } else { (rank, rows.own) };
            Stamp {
                magic: MAGIC,
                sequence: rows.sequence,
                kind: messages.kind as u32,
                from: from as u32,
                to: to as u32,
                width: self.width as u32,
                rows: if (messages.kind == Kind::Run) == is_out { rows.to(rank) } else { rows.from(rank) },
                bytes: messages.bytes[rank],
                at: messages.memory.address + messages.starts[rank],
            }
        };
        let all: Vec<Stamp> = (0..self.ranks).map(stamp).filter(|stamp| stamp.bytes > 0).collect();
        all.into_iter()
    }

    fn regions(&self, round: usize, messages: &Messages<'_>) -> Vec<Region> {
        let region = |rank: usize| match messages.bytes[rank] {
            0 => Region::empty(),
            bytes => Region::of(&*self.rank, stream_of(round), messages.memory, messages.starts[rank], bytes),
        };
        (0..self.ranks).map(region).collect()
    }

    /// The stamps of the runs that are sorted now, whose lengths are not known yet: `rows` is what they have room for.
    pub(super) fn stamps_of_runs(&self, round: usize) -> Vec<Stamp> {
        let RoundMemory { layout, sender, send, .. } = &self.memory[place_of(round)];
        let stamp = |rank: usize| Stamp {
            magic: MAGIC,
            sequence: sender.sequence,
            kind: Kind::Run as u32,
            from: sender.rank as u32,
            to: rank as u32,
            width: self.width as u32,
            rows: layout.capacities[rank],
            bytes: 0,
            at: send.address + layout.runs[rank],
        };
        (0..self.ranks).filter(|rank| *rank != sender.rank).map(stamp).collect()
    }

    /// Where each run is to be sent from, and where those of others go to.
    pub(super) fn runs(&self, round: usize, rows: &Rows) -> (Vec<Region>, Vec<Region>) {
        let memory = &self.memory[place_of(round)];
        let sender = Sender { rank: rows.own, sequence: rows.sequence };
        assert_eq!(memory.sender, sender, "runs are stamped as they are announced");
        let [send, receive] = [Way::Out, Way::In].map(|way| self.regions(round, &self.messages(memory, rows, Kind::Run, way)));
        (send, receive)
    }

    /// An error unless the runs that came are those that are due. Stamps the replies that are to be made to them. On a GPU, where
    /// none are, this waits for nothing: it is enqueued, and puts of others' runs do nothing if it finds another message. That is
    /// told by `answered`.
    pub(super) fn check_runs(&mut self, round: usize, rows: &Rows) -> Result<()> {
        if !self.rank.is_host() && !rows.are_answered() {
            return self.check_runs_enqueued(round, rows);
        }
        let replies = self.messages(&self.memory[place_of(round)], rows, Kind::Reply, Way::Out);
        let replies: Vec<Stamp> = self.stamps(&replies, rows).collect();
        self.check(round, rows, Kind::Run, &replies)
    }

    /// Where each reply is to be sent from, and where those to this rank go to.
    pub(super) fn replies(&self, round: usize, rows: &Rows) -> (Vec<Region>, Vec<Region>) {
        let memory = &self.memory[place_of(round)];
        let [out, back] = [Way::Out, Way::In].map(|way| self.regions(round, &self.messages(memory, rows, Kind::Reply, way)));
        (out, back)
    }

    /// An error unless the replies that came are those that are due.
    pub(super) fn check_replies(&mut self, round: usize, rows: &Rows) -> Result<()> {
        self.check(round, rows, Kind::Reply, &[])
    }

    fn check_runs_enqueued(&mut self, round: usize, rows: &Rows) -> Result<()> {
        let runs = self.messages(&self.memory[place_of(round)], rows, Kind::Run, Way::In);
        let stamps: Vec<Stamp> = self.stamps(&runs, rows).collect();
        if stamps.is_empty() {
            return Ok(());
        }
        let (stream, wrong) = (Stream::Puts, self.wrong());
        self.rank.order(stream, stream_of(round))?;
        let memory = &mut self.memory[place_of(round)];
        self.rank.write(stream, &mut memory.stamps, 0, &stamps)?;
        let view = StampView { stamps: memory.stamps.address, count: stamps.len() as u64, wrong, ..StampView::default() };
        // SAFETY: as in `check`.
        unsafe { self.rank.stamps(stream, Kernel::CheckStamps, &view) }
    }

    /// An error unless each message that came is the one that is due. Writes other stamps meanwhile, of messages that this rank
    /// sends.
    fn check(&mut self, round: usize, rows: &Rows, kind: Kind, own: &[Stamp]) -> Result<()> {
        let stream = stream_of(round);
        let messages = self.messages(&self.memory[place_of(round)], rows, kind, Way::In);
        let stamps: Vec<Stamp> = self.stamps(&messages, rows).collect();
        if stamps.is_empty() {
            return Ok(());
        }
        let memory = &mut self.memory[place_of(round)];
        let words = [&[0u64], bytemuck::cast_slice(&stamps), bytemuck::cast_slice(own)].concat();
        self.rank.write(stream, &mut memory.stamps, 0, &words)?;
        let wrong = memory.stamps.address;
        let due = StampView { stamps: wrong + 8, count: stamps.len() as u64, wrong, ..StampView::default() };
        let own_at = due.stamps + size_of_val(&stamps[..]) as u64;
        let own = StampView { stamps: own_at, count: own.len() as u64, ..StampView::default() };
        // SAFETY: each message is within its memory: so many bytes from `at` on, a line and a trailer at least.
        unsafe {
            self.rank.stamps(stream, Kernel::CheckStamps, &due)?;
            if own.count > 0 {
                self.rank.stamps(stream, Kernel::WriteStamps, &own)?;
            }
        }
        let mut wrong = [0u64];
        self.rank.read(stream, &memory.stamps, 0, &mut wrong)?;
        match wrong[0] {
            0 => Ok(()),
            number => Err(another_message(number)),
        }
    }

    /// Where the run of a rank is that is to be put, and where the answers to it go.
    pub(super) fn run_of(&self, round: usize, rows: &Rows, rank: usize) -> Run {
        let memory = &self.memory[place_of(round)];
        let count = rows.from(rank);
        let (vectors, answers) = if rank == rows.own {
            // The answers are made where those of others come to.
            let (run, answers) = (memory.layout.runs[rank], memory.layout.answers[rank]);
            (memory.send.address + run, memory.replies_in.address + answers)
        } else {
            let [run, reply] = [self.received_bytes(rows), Self::reply_bytes(rows)].map(|bytes| starts(bytes.into_iter())[rank]);
            (memory.receive.address + run, memory.replies_out.address + reply)
        };
        let (wants, outcomes) = (rows.wants[rank], answers + LINE_BYTES);
        Run {
            count,
            vectors: vectors + LINE_BYTES,
            outcomes: if wants.outcomes { outcomes } else { 0 },
            references: if wants.references {
                outcomes + reply_content(count, OUTCOMES_ONLY).next_multiple_of(LINE_BYTES)
            } else {
                0
            },
        }
    }

    /// Bytes of the messages of a round to other ranks, and from them.
    pub(super) fn exchanged(&self, round: usize, rows: &Rows) -> [u64; 2] {
        let memory = &self.memory[place_of(round)];
        let bytes = |kind, way| self.messages(memory, rows, kind, way).bytes.iter().sum::<u64>();
        [Way::Out, Way::In].map(|way| bytes(Kind::Run, way) + bytes(Kind::Reply, way))
    }
}

/// What a kernel has found: the number of a rank, and 1.
pub(super) fn another_message(number: u64) -> Error {
    let reason = "has sent another message than the one that is due, or a part of it".into();
    Error::Connection { rank: number as usize - 1, reason }
}

/// A run that is to be put: addresses in the rank's memory, 0 for what is not wanted.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub count: u64,
    pub vectors: u64,
    pub outcomes: u64,
    pub references: u64,
}

const OUTCOMES_ONLY: super::record::Wants = super::record::Wants { outcomes: true, references: false };

const _: () = assert!(size_of::<Stamp>() as u64 <= LINE_BYTES && TRAILER_BYTES == 16);
