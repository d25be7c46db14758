//! The record that every rank sends to all others before each round. All ranks decide by the same numbers, so they decide alike.

use crate::layout::SearchMode;
use crate::layout::limits::MAX_CAPACITY;
use crate::layout::size::MAX_NODES;
use crate::{Error, Result, Tally};
use bytemuck::{Pod, Zeroable};

/// Operations that ranks carry out together.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only batches in the memory of a GPU are like this"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Operation {
    Build = 1,
    Reconnect,
    FindOrPut,
    Contains,
    Locate,
    Get,
    Length,
    Stats,
    Clear,
    Grow,
    Relocate,
    Reserve,
    Sum,
    Save,
    Load,
    LoadedReferences,
    FindOrPutDevice,
    FindDevice,
}

impl Operation {
    fn name(number: u32) -> &'static str {
        const NAMES: [&str; 18] = [
            "build",
            "reconnect",
            "find_or_put",
            "contains",
            "locate",
            "get",
            "len",
            "stats",
            "clear",
            "a growth",
            "a relocation",
            "reserve",
            "sum",
            "save",
            "load",
            "loaded_references",
            "find_or_put_device",
            "find_device",
        ];
        NAMES.get((number as usize).wrapping_sub(1)).copied().unwrap_or("of another version of warpset")
    }
}

/// Maximum number of ranks of a cluster.
pub(super) const MOST_RANKS: u64 = 1 << 20;

/// Number of further numbers that a record can carry.
pub(super) const NUMBERS: usize = 16;

/// Head of a record. Its length does not depend on the number of ranks.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Head {
    magic: u64,
    sequence: u64,
    operation: u32,
    rank: u32,
    /// Not 0 if the rank has failed; `text` then has the error's message.
    failed: u32,
    pub flags: u32,
    /// Vectors stored in the rank's table.
    pub stored: u64,
    pub slots: u64,
    pub nodes: u64,
    pub node_slots: u64,
    /// Vectors of the rank's batch so far. The next two fields count vectors of the batch that an equal vector represented: hits
    /// (put: new; find: stored), and rejected ones.
    pub offered: u64,
    pub copies_hit: u64,
    pub copies_full: u64,
    /// Further numbers of the operation.
    pub values: [u64; NUMBERS],
    text: [u8; 128],
    /// Checksum of all other words, including the rows.
    sum: u64,
}

const MAGIC: u64 = 0x7761_7270_7265_6332;

/// Results that a rank requests for the rows that it sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wants {
    /// Outcomes of the rows; otherwise only the number of each outcome.
    pub outcomes: bool,
    /// References of the rows, too.
    pub references: bool,
}

/// Bits of `flags`: the requested results; whether the rank has vectors for another round; whether a round may begin only after
/// the previous round has ended.
const OUTCOMES: u32 = 1;
const REFERENCES: u32 = 2;
const MORE: u32 = 4;
const IN_TURN: u32 = 8;
const FLAGS: u32 = OUTCOMES | REFERENCES | MORE | IN_TURN;

/// Counts of one rank's rows in another rank's table: hits, rejected rows, and rows rejected because a node was missing.
pub(super) type Answered = [u64; 3];

/// One rank's record.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub head: Head,
    /// Number of rows that the rank has for each rank.
    pub rows: Vec<u64>,
    /// In the last record of an operation: results of each rank's rows in this rank's table.
    pub answered: Vec<Answered>,
}

impl Record {
    pub(super) fn new(ranks: usize) -> Self {
        Self { head: Head::zeroed(), rows: vec![0; ranks], answered: vec![[0; 3]; ranks] }
    }

    pub(super) fn flags(mut self, wants: Wants, has_more: bool, in_turn: bool) -> Self {
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        self.head.flags =
            bit(wants.outcomes, OUTCOMES) | bit(wants.references, REFERENCES) | bit(has_more, MORE) | bit(in_turn, IN_TURN);
        self
    }

    pub(super) fn wants(&self) -> Wants {
        Wants { outcomes: self.head.flags & OUTCOMES != 0, references: self.head.flags & REFERENCES != 0 }
    }

    pub(super) fn has_more(&self) -> bool {
        self.head.flags & MORE != 0
    }

    pub(super) fn is_in_turn(&self) -> bool {
        self.head.flags & IN_TURN != 0
    }

    pub(super) fn values<const N: usize>(mut self, values: [u64; N]) -> Self {
        self.head.values[..N].copy_from_slice(&values);
        self
    }

    /// Marks the record as that of a failed rank, if there is an error.
    pub(super) fn failed(mut self, error: Option<&Error>) -> Self {
        if let Some(error) = error {
            self.head.failed = 1;
            let (text, capacity) = (error.with_causes(), self.head.text.len());
            let end = (0..=text.len().min(capacity)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            self.head.text[..end].copy_from_slice(&text.as_bytes()[..end]);
        }
        self
    }

    /// Text of the rank's failure.
    pub(super) fn failure(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.head.text);
        (self.head.failed != 0).then(|| text.trim_end_matches('\0').to_string())
    }

    /// Converts to bytes. All ranks' records have the same length.
    pub(super) fn into_bytes(self, operation: Operation, sequence: u64, rank: usize) -> Vec<u8> {
        let mut head = self.head;
        (head.magic, head.sequence, head.operation, head.rank) = (MAGIC, sequence, operation as u32, rank as u32);
        head.sum = 0;
        let answered: &[u64] = bytemuck::cast_slice(&self.answered);
        let numbers = [&self.rows[..], answered].concat();
        head.sum = sum(bytemuck::bytes_of(&head), &numbers);
        [bytemuck::bytes_of(&head), bytemuck::cast_slice(&numbers)].concat()
    }

    /// Parses the record that rank `rank` has sent while this rank was in this operation.
    pub(super) fn from_bytes(bytes: &[u8], operation: Operation, sequence: u64, rank: usize) -> Result<Self> {
        let (head, numbers) = bytes.split_at(size_of::<Head>());
        let (mut head, numbers): (Head, Vec<u64>) = (bytemuck::pod_read_unaligned(head), bytemuck::pod_collect_to_vec(numbers));
        let stated = std::mem::take(&mut head.sum);
        if head.magic != MAGIC || stated != sum(bytemuck::bytes_of(&head), &numbers) {
            return Err(Error::Connection {
                rank,
                reason: "has sent a record that is damaged or of another version of warpset".into(),
            });
        }
        if head.rank as usize != rank {
            let reason = format!("has sent a record of rank {}", head.rank);
            return Err(Error::Connection { rank, reason });
        }
        let at = |operation, sequence| format!("`{}` (exchange {sequence})", Operation::name(operation));
        if (head.operation, head.sequence) != (operation as u32, sequence) {
            let (own, other) = (at(operation as u32, sequence), at(head.operation, head.sequence));
            let reason = format!("is out of step: it is in its operation {other}, and this rank in {own}");
            return Err(Error::Connection { rank, reason });
        }
        // Answers are laid out for the requests that these flags describe.
        if head.flags & !FLAGS != 0 || head.flags & (OUTCOMES | REFERENCES) == REFERENCES {
            return Err(wrong(rank, format!("no operation has the flags {:#x}", head.flags)));
        }
        let (rows, answered) = numbers.split_at(numbers.len() / 4);
        Ok(Self { head, rows: rows.to_vec(), answered: bytemuck::cast_slice(answered).to_vec() })
    }
}

/// Error for a record with the right checksum that no rank of this cluster sends.
pub(super) fn wrong(rank: usize, why: impl std::fmt::Display) -> Error {
    Error::Connection { rank, reason: format!("has sent a record that cannot be right: {why}") }
}

/// Returns an error unless the number `of` each record is at most `most`. For the message, `what` says what the number counts.
pub(super) fn check_most(records: &[Record], what: &str, most: u64, of: impl Fn(&Record) -> u64) -> Result<()> {
    match records.iter().map(of).enumerate().find(|(_, number)| *number > most) {
        None => Ok(()),
        Some((rank, number)) => Err(wrong(rank, format!("{number} {what}, of at most {most}"))),
    }
}

/// Returns an error unless each rank announces at most `most` rows, the size of a round. The memory of a round has room for
/// `most` rows from each rank. Larger numbers must not get into [`Rows`](super::plan::Rows).
pub(super) fn check_rows(records: &[Record], most: u64) -> Result<()> {
    let rows_of = |record: &Record| record.rows.iter().fold(0, |sum: u64, rows| sum.saturating_add(*rows));
    check_most(records, "rows in a round", most, rows_of)
}

/// Returns an error unless the sizes in all records are possible for a table, so that their sums and products do not overflow.
pub(super) fn check_sizes(records: &[Record]) -> Result<()> {
    check_most(records, "vectors stored", MAX_CAPACITY, |record| record.head.stored)?;
    check_most(records, "slots", MAX_CAPACITY, |record| record.head.slots)?;
    // In an indexed table this is the count of numbers that it has assigned, which may exceed its number of rows.
    check_most(records, "nodes", 4 * MAX_CAPACITY, |record| record.head.nodes)?;
    check_most(records, "slots of nodes", MAX_NODES, |record| record.head.node_slots)?;
    match records.iter().position(|record| record.head.slots == 0) {
        None => Ok(()),
        Some(rank) => Err(wrong(rank, "a table without slots")),
    }
}

/// Returns an error unless the last records of an operation agree with the rows of its rounds: `rows[s][r]` rows from rank s to
/// rank r, and at most `most` vectors of each rank. [`tally_of`] then neither overflows nor takes more than was sent.
pub(super) fn check_answers(records: &[Record], rows: &[Vec<u64>], most: u64) -> Result<()> {
    check_most(records, "vectors offered", most, |record| record.head.offered)?;
    for (rank, record) in records.iter().enumerate() {
        for (from, [hits, full, full_nodes]) in record.answered.iter().enumerate() {
            let due = rows[from][rank];
            if hits.checked_add(*full).is_none_or(|sum| sum > due) || full_nodes > full {
                let what = format!("{hits} hits and {full} rejections, {full_nodes} for nodes, of {due} rows of rank {from}");
                return Err(wrong(rank, what));
            }
        }
        let (Head { offered, copies_hit, copies_full, .. }, sent) = (record.head, rows[rank].iter().sum::<u64>());
        let counted = [sent, copies_hit, copies_full].iter().try_fold(0, |sum: u64, part| sum.checked_add(*part));
        if counted.is_none_or(|counted| counted > offered) {
            let what = format!("{offered} vectors offered, {sent} of them sent, and {copies_hit} and {copies_full} represented");
            return Err(wrong(rank, what));
        }
    }
    Ok(())
}

/// Tally of the batch of a rank, from the last records of all ranks.
pub(super) fn tally_of(records: &[Record], rank: usize, search: SearchMode) -> Tally {
    let sum = |number: usize| records.iter().map(|record| record.answered[rank][number]).sum::<u64>();
    let (Head { offered, copies_hit, copies_full, .. }, hits) = (records[rank].head, sum(0));
    match search {
        SearchMode::Find => Tally { seen: hits + copies_hit, ..Tally::default() },
        _ => {
            let full = sum(1) + copies_full;
            Tally { new: hits, seen: offered - hits - full, full, full_nodes: sum(2) }
        }
    }
}

/// For tests: changes a record, and its checksum with it.
#[cfg(test)]
#[allow(dead_code, reason = "its tests have ranks on the CPU")]
pub(super) fn forge(bytes: &mut [u8], change: impl FnOnce(&mut Head, &mut [u64])) {
    let (head, numbers) = bytes.split_at_mut(size_of::<Head>());
    let (mut changed, mut rows): (Head, Vec<u64>) = (bytemuck::pod_read_unaligned(head), bytemuck::pod_collect_to_vec(numbers));
    change(&mut changed, &mut rows);
    changed.sum = 0;
    changed.sum = sum(bytemuck::bytes_of(&changed), &rows);
    head.copy_from_slice(bytemuck::bytes_of(&changed));
    numbers.copy_from_slice(bytemuck::cast_slice(&rows));
}

/// Checksum of 8-byte words, each combined with its position.
fn sum(head: &[u8], rows: &[u64]) -> u64 {
    let words = head.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
    words.chain(rows.iter().copied()).fold(0, |sum: u64, word| (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> Vec<u8> {
        let error = Error::no_host_memory(5, "ä".repeat(200));
        let wants = Wants { outcomes: true, references: false };
        let mut record = Record::new(3).flags(wants, true, false).failed(Some(&error));
        (record.rows, record.answered[2]) = (vec![7, 8, 9], [4, 2, 1]);
        record.into_bytes(Operation::Clear, 41, 2)
    }

    #[test]
    fn records_come_as_they_went() {
        let record = Record::from_bytes(&bytes(), Operation::Clear, 41, 2).unwrap();
        assert_eq!((&record.rows[..], &record.answered[..]), (&[7, 8, 9][..], &[[0; 3], [0; 3], [4, 2, 1]][..]));
        let flags = (record.wants().outcomes, record.wants().references, record.has_more(), record.is_in_turn());
        assert_eq!(flags, (true, false, true, false));
        let text = record.failure().unwrap();
        assert!(text.starts_with("the host has no memory for 5 bytes") && text.ends_with('ä'), "{text}");
        assert_eq!(Record::new(1).failure(), None);
    }

    #[test]
    fn tallies_are_of_rows_and_of_those_they_represent() {
        let mut records = vec![Record::new(2), Record::new(2)];
        (records[0].answered, records[1].answered) = (vec![[5, 1, 1], [9, 9, 9]], vec![[7, 2, 0], [9, 9, 9]]);
        (records[0].head.offered, records[0].head.copies_full, records[0].head.copies_hit) = (100, 4, 6);
        let put = Tally { new: 12, seen: 81, full: 7, full_nodes: 1 };
        assert_eq!(tally_of(&records, 0, SearchMode::FindOrPut), put);
        assert_eq!(tally_of(&records, 0, SearchMode::Find), Tally { seen: 18, ..Tally::default() });
    }

    #[test]
    fn others_are_known() {
        let of = |operation, sequence, rank| Record::from_bytes(&bytes(), operation, sequence, rank).unwrap_err();
        assert!(matches!(of(Operation::Clear, 41, 1), Error::Connection { rank: 1, .. }));
        let message = of(Operation::Get, 40, 2).to_string();
        assert!(message.contains("`get` (exchange 40)") && message.contains("`clear` (exchange 41)"), "{message}");
        for at in 0..bytes().len() {
            let mut damaged = bytes();
            damaged[at] ^= 0x10;
            let error = Record::from_bytes(&damaged, Operation::Clear, 41, 2).unwrap_err();
            assert!(matches!(error, Error::Connection { rank: 2, .. }), "byte {at}: {error}");
        }
    }
}
