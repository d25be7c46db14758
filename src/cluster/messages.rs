//! Messages of a round: runs to their owners, and replies to the ranks that sent the runs. Each message begins and ends with a
//! stamp.

use super::buffers::{Buffers, stream_of};
use super::layout::starts;
use super::plan::{Rows, Sender};
use super::record::Wants;
use super::transport::Region;
use super::view::{TRAILER_BYTES, message_bytes, reply_content};
use crate::backend::Memory;
use crate::layout::rank::{Kernel, LINE_BYTES, Stamp, StampView, Stream};
use crate::{Error, Result};

/// First word of every stamp.
const MAGIC: u64 = 0x7761_7270_7365_7422;

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageKind {
    Run = 1,
    Reply = 2,
}

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Out,
    In,
}

/// Lengths and offsets of all messages of one kind in one direction, indexed by the other rank.
struct Places<'a> {
    kind: MessageKind,
    way: Direction,
    bytes: Vec<u64>,
    starts: Vec<u64>,
    memory: &'a Memory,
}

/// Bytes of a run of `rows` rows of `width` words.
fn run_bytes(width: usize, rows: u64) -> u64 {
    message_bytes((4 * width as u64).checked_mul(rows).expect("`check_rows` has bounded the rows"))
}

/// Stamps of the runs that are being sorted. `rows` is the capacity of a run, because its length is not known yet.
pub(super) fn run_stamps(buffers: &Buffers, round: usize) -> Vec<Stamp> {
    let memory = buffers.of(round);
    let (layout, sender) = (&memory.layout, memory.sender);
    let stamp = |rank: usize| Stamp {
        magic: MAGIC,
        sequence: sender.sequence,
        kind: MessageKind::Run as u32,
        from: sender.rank as u32,
        to: rank as u32,
        width: buffers.width as u32,
        rows: layout.capacities[rank],
        bytes: 0,
        at: memory.send.address + layout.runs[rank],
    };
    (0..buffers.ranks).filter(|rank| *rank != sender.rank).map(stamp).collect()
}

/// The messages of one round, in its buffers.
pub(super) struct Messages<'a> {
    buffers: &'a Buffers,
    round: usize,
    rows: &'a Rows,
}

impl<'a> Messages<'a> {
    pub(super) fn new(buffers: &'a Buffers, round: usize, rows: &'a Rows) -> Self {
        Self { buffers, round, rows }
    }

    /// Memory that each run is sent from, and memory that the runs of the other ranks go to.
    pub(super) fn runs(&self) -> (Vec<Region>, Vec<Region>) {
        let sender = Sender { rank: self.rows.own, sequence: self.rows.sequence };
        assert_eq!(self.buffers.of(self.round).sender, sender, "runs are stamped as they are announced");
        let [send, receive] = [Direction::Out, Direction::In].map(|way| self.regions(&self.places(MessageKind::Run, way)));
        (send, receive)
    }

    /// Memory that each reply is sent from, and memory that the replies to this rank go to.
    pub(super) fn replies(&self) -> (Vec<Region>, Vec<Region>) {
        let [out, back] = [Direction::Out, Direction::In].map(|way| self.regions(&self.places(MessageKind::Reply, way)));
        (out, back)
    }

    /// Addresses of a rank's run, whose vectors are put or searched here, and of the answers to it.
    ///
    /// # Panics
    ///
    /// If the rows or their answers are not within the memory of the round.
    pub(super) fn run_of(&self, rank: usize) -> Run {
        let (memory, rows) = (self.buffers.of(self.round), self.rows);
        let count = rows.from(rank);
        let (run_in, answers_in) = match rank == rows.own {
            true => (&memory.send, &memory.replies_in),
            false => (&memory.receive, &memory.replies_out),
        };
        let [run, answers] = match rank == rows.own {
            // The answers to the rank's own run are written where those of other ranks arrive.
            true => [memory.layout.runs[rank], memory.layout.answers[rank]],
            false => [self.received_bytes(), self.reply_bytes()].map(|bytes| starts(bytes.into_iter())[rank]),
        };
        let wants = rows.wants[rank];
        let outcomes = answers_in.at(answers + LINE_BYTES, reply_content(count, wants));
        Run {
            count,
            vectors: run_in.at(run + LINE_BYTES, 4 * self.buffers.width as u64 * count),
            outcomes: if wants.outcomes { outcomes } else { 0 },
            references: if wants.references {
                outcomes + reply_content(count, OUTCOMES_ONLY).next_multiple_of(LINE_BYTES)
            } else {
                0
            },
        }
    }

    /// Bytes of the round's messages to other ranks, and from them.
    pub(super) fn exchanged(&self) -> [u64; 2] {
        let bytes = |kind, way| self.places(kind, way).bytes.iter().sum::<u64>();
        [Direction::Out, Direction::In].map(|way| bytes(MessageKind::Run, way) + bytes(MessageKind::Reply, way))
    }

    /// Bytes of the runs from each rank. A rank's own run is not sent.
    fn received_bytes(&self) -> Vec<u64> {
        let (rows, width) = (self.rows, self.buffers.width);
        (0..self.buffers.ranks).map(|rank| if rank == rows.own { 0 } else { run_bytes(width, rows.from(rank)) }).collect()
    }

    /// Bytes of the replies to each rank's run.
    fn reply_bytes(&self) -> Vec<u64> {
        let rows = self.rows;
        let bytes = |rank: usize| message_bytes(reply_content(rows.from(rank), rows.wants[rank]));
        (0..rows.ranks()).map(|rank| if rank == rows.own { 0 } else { bytes(rank) }).collect()
    }

    fn places(&self, kind: MessageKind, way: Direction) -> Places<'a> {
        let (memory, rows, width, ranks) = (self.buffers.of(self.round), self.rows, self.buffers.width, self.buffers.ranks);
        let to_others = |bytes: &dyn Fn(u64) -> u64| -> Vec<u64> {
            (0..ranks).map(|rank| if rank == rows.own { 0 } else { bytes(rows.to(rank)) }).collect()
        };
        let (bytes, starts, memory) = match (kind, way) {
            (MessageKind::Run, Direction::Out) => {
                (to_others(&|count| run_bytes(width, count)), memory.layout.runs.clone(), &memory.send)
            }
            (MessageKind::Run, Direction::In) => {
                let bytes = self.received_bytes();
                let starts = starts(bytes.iter().copied());
                (bytes, starts, &memory.receive)
            }
            (MessageKind::Reply, Direction::Out) => {
                let bytes = self.reply_bytes();
                let starts = starts(bytes.iter().copied());
                (bytes, starts, &memory.replies_out)
            }
            (MessageKind::Reply, Direction::In) => {
                let bytes = to_others(&|count| message_bytes(reply_content(count, rows.wants[rows.own])));
                (bytes, memory.layout.answers.clone(), &memory.replies_in)
            }
        };
        // A rank without vectors has laid out nothing, and sends nothing.
        let starts = if starts.is_empty() { vec![0; ranks] } else { starts };
        Places { kind, way, bytes, starts, memory }
    }

    fn stamps(&self, places: &Places<'_>) -> Vec<Stamp> {
        let rows = self.rows;
        let stamp = |rank: usize| {
            let is_out = places.way == Direction::Out;
            let (from, to) = if is_out { (rows.own, rank) } else { (rank, rows.own) };
            Stamp {
                magic: MAGIC,
                sequence: rows.sequence,
                kind: places.kind as u32,
                from: from as u32,
                to: to as u32,
                width: self.buffers.width as u32,
                rows: if (places.kind == MessageKind::Run) == is_out { rows.to(rank) } else { rows.from(rank) },
                bytes: places.bytes[rank],
                at: places.memory.address + places.starts[rank],
            }
        };
        (0..self.buffers.ranks).map(stamp).filter(|stamp| stamp.bytes > 0).collect()
    }

    fn regions(&self, places: &Places<'_>) -> Vec<Region> {
        let (device, stream) = (&*self.buffers.device, stream_of(self.round));
        let region = |rank: usize| match places.bytes[rank] {
            0 => Region::empty(),
            bytes => Region::of(device, stream, places.memory, places.starts[rank], bytes),
        };
        (0..self.buffers.ranks).map(region).collect()
    }
}

/// Returns an error unless the received runs are the expected ones. Stamps the replies to these runs. On a GPU, if no replies are
/// wanted, the check is only enqueued. If it then finds a wrong message, it writes the message's number to device memory at
/// `wrong`, and puts of other ranks' runs do nothing.
pub(super) fn check_runs(buffers: &mut Buffers, round: usize, rows: &Rows, wrong: u64) -> Result<()> {
    let messages = Messages::new(buffers, round, rows);
    if !buffers.is_gpu() || rows.are_answered() {
        let replies = messages.stamps(&messages.places(MessageKind::Reply, Direction::Out));
        return check(buffers, round, rows, MessageKind::Run, &replies);
    }
    let stamps = messages.stamps(&messages.places(MessageKind::Run, Direction::In));
    if stamps.is_empty() {
        return Ok(());
    }
    let stream = Stream::Puts;
    let (device, memory) = buffers.split(round);
    device.order(stream, stream_of(round))?;
    device.write(stream, &mut memory.stamps, 0, &stamps)?;
    let view = StampView { stamps: memory.stamps.address, count: stamps.len() as u64, wrong, ..StampView::default() };
    // SAFETY: as in `check`.
    unsafe { device.stamps(stream, Kernel::CheckStamps, &view) }
}

/// Returns an error unless the received replies are the expected ones.
pub(super) fn check_replies(buffers: &mut Buffers, round: usize, rows: &Rows) -> Result<()> {
    check(buffers, round, rows, MessageKind::Reply, &[])
}

/// Returns an error unless each received message is the expected one. Writes the stamps `own` to messages that this rank sends;
/// one copy brings both kinds of stamps to the device.
fn check(buffers: &mut Buffers, round: usize, rows: &Rows, kind: MessageKind, own: &[Stamp]) -> Result<()> {
    let stream = stream_of(round);
    let messages = Messages::new(buffers, round, rows);
    let stamps = messages.stamps(&messages.places(kind, Direction::In));
    if stamps.is_empty() {
        return Ok(());
    }
    let (device, memory) = buffers.split(round);
    let words = [&[0u64], bytemuck::cast_slice(&stamps), bytemuck::cast_slice(own)].concat();
    device.write(stream, &mut memory.stamps, 0, &words)?;
    let wrong = memory.stamps.address;
    let due = StampView { stamps: wrong + 8, count: stamps.len() as u64, wrong, ..StampView::default() };
    let own_at = due.stamps + size_of_val(&stamps[..]) as u64;
    let own = StampView { stamps: own_at, count: own.len() as u64, ..StampView::default() };
    // SAFETY: each message is within its memory. From `at` on it has as many bytes as its stamp says, at least a line and a
    // trailer.
    unsafe {
        device.stamps(stream, Kernel::CheckStamps, &due)?;
        if own.count > 0 {
            device.stamps(stream, Kernel::WriteStamps, &own)?;
        }
    }
    let mut wrong = [0u64];
    device.read(stream, &memory.stamps, 0, &mut wrong)?;
    match wrong[0] {
        0 => Ok(()),
        number => Err(another_message(number)),
    }
}

/// Error for a wrong message that a kernel has found: `number` is the rank plus 1.
pub(super) fn another_message(number: u64) -> Error {
    let reason = "has sent an unexpected or incomplete message".into();
    Error::Connection { rank: number as usize - 1, reason }
}

/// A received run: addresses in device memory; 0 for answers that are not requested.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub count: u64,
    pub vectors: u64,
    pub outcomes: u64,
    pub references: u64,
}

const OUTCOMES_ONLY: Wants = Wants { outcomes: true, references: false };

const _: () = assert!(size_of::<Stamp>() as u64 <= LINE_BYTES && TRAILER_BYTES == 16);
