//! Requests to other ranks about their references: the vectors, or the references' current values. Messages are in host memory.

use super::batch::Reference;
use super::engine::RankEngine;
use super::link::agree;
use super::record::{Operation, check_most, wrong};
use super::transport::{MemorySpace, Region};
use crate::core::table::RawTable;
use crate::host::zeroed;
use crate::layout::limits::MAX_CAPACITY;
use crate::{Error, Result};

/// Flags of a number of references in a record: these references are stale, or invalid.
const STALE: u64 = 1 << 63;
const INVALID: u64 = 1 << 62;

/// Words of 8 bytes around the content of a message.
const SEAL: usize = 4;

/// Makes a message of a header that identifies it, the content, and a checksum.
fn seal(sequence: u64, from: usize, to: usize, content: &[u64]) -> Vec<u64> {
    let mut message = vec![sequence, (from as u64) << 32 | to as u64, content.len() as u64];
    message.extend_from_slice(content);
    message.push(sum(&message));
    message
}

fn sum(words: &[u64]) -> u64 {
    words.iter().fold(1, |sum: u64, word| (sum ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(31))
}

/// Returns the content of a message, if it is the expected one.
fn open(message: &[u64], sequence: u64, from: usize, to: usize) -> Result<&[u64]> {
    let (last, rest) = message.split_last().expect("a message is not empty");
    let due = [sequence, (from as u64) << 32 | to as u64, (message.len() - SEAL) as u64];
    if rest[..3] == due && *last == sum(rest) {
        return Ok(&rest[3..]);
    }
    Err(Error::Connection { rank: from, reason: "has sent an unexpected or incomplete message".into() })
}

/// Whether `me` and `rank` exchange a message of `count` words.
fn is_sent(rank: usize, me: usize, count: usize) -> bool {
    rank != me && count > 0
}

impl RankEngine {
    /// Exchanges messages of 8-byte words: `send[r]` goes to rank r, which sends `counts[r]` words. Empty messages are not sent.
    /// The rank's message to itself is returned directly.
    fn exchange_words(&mut self, send: Vec<Vec<u64>>, counts: &[usize]) -> Result<Vec<Vec<u64>>> {
        let (me, sequence) = (self.link.rank(), self.link.sequence());
        // Other ranks are in the exchange already, so a lack of memory for their messages ends the connection.
        let memory = |rank: usize| match is_sent(rank, me, counts[rank]) {
            true => zeroed::<u64>(counts[rank] + SEAL),
            false => Ok(Vec::new()),
        };
        let received = (0..send.len()).map(memory).collect();
        let mut received: Vec<Vec<u64>> = self.link.unless_ended(received)?;
        let sealed: Vec<Vec<u64>> = (0..send.len())
            .map(|rank| if is_sent(rank, me, send[rank].len()) { seal(sequence, me, rank, &send[rank]) } else { Vec::new() })
            .collect();
        let region = |address: u64, words: usize| Region { address, bytes: 8 * words, place: MemorySpace::Host };
        let regions = (
            sealed.iter().map(|words| region(words.as_ptr() as u64, words.len())).collect(),
            received.iter_mut().map(|words| region(words.as_mut_ptr() as u64, words.len())).collect(),
        );
        // SAFETY: `sealed` and `received` live until `exchange` has returned, which is after `finish`, and nothing accesses them
        // before.
        unsafe { self.link.exchange(&regions, || ())? };
        let opened = received.iter().enumerate().map(|(rank, message)| match message.is_empty() {
            true if rank == me => Ok(send[rank].clone()),
            true => Ok(Vec::new()),
            false => open(message, sequence, rank, me).map(<[u64]>::to_vec),
        });
        let opened = opened.collect();
        self.link.unless_ended(opened)
    }

    /// The vectors at these references, one after another.
    pub(super) fn get(&mut self, raw: &RawTable, references: &[Reference]) -> Result<Vec<u32>> {
        self.ask(Operation::Get, references, raw.width(), |places| raw.get("get_many", places))
    }

    /// Converts references from before the set was saved to current ones.
    pub(super) fn loaded_references(&mut self, raw: &RawTable, saved: &[Reference]) -> Result<Vec<Reference>> {
        let words = |places: &[crate::Reference]| {
            let now = raw.loaded_references(places)?;
            Ok(now.iter().flat_map(|now| [now.to_bits() as u32, (now.to_bits() >> 32) as u32]).collect())
        };
        let words = self.ask(Operation::LoadedReferences, saved, 2, words)?;
        let now = saved.iter().zip(words.chunks_exact(2)).map(|(saved, words)| {
            let bits = u64::from(words[1]) << 32 | u64::from(words[0]);
            let reference = crate::Reference::from_bits(bits).ok_or_else(|| no_reference(saved.rank as usize))?;
            Ok(Reference { reference, ..*saved })
        });
        let now = now.collect();
        self.link.unless_ended(now)
    }

    /// Sends references to the ranks that own them. Each owner calls `answer`, which returns `width` words for each reference.
    /// Returns the words in the order of the references.
    fn ask(
        &mut self,
        operation: Operation,
        references: &[Reference],
        width: usize,
        answer: impl Fn(&[crate::Reference]) -> Result<Vec<u32>>,
    ) -> Result<Vec<u32>> {
        let ranks = self.link.ranks();
        let unknown = references.iter().filter(|reference| reference.rank as usize >= ranks).count();
        let refused = (unknown > 0).then_some(Error::InvalidReferences { invalid: unknown as u64, count: references.len() });
        let mut wanted: Vec<Vec<u64>> = vec![Vec::new(); ranks];
        if refused.is_none() {
            references.iter().for_each(|reference| wanted[reference.rank as usize].push(reference.reference.to_bits()));
        }
        let mut record = self.link.record().failed(refused.as_ref());
        record.rows = wanted.iter().map(|wanted| wanted.len() as u64).collect();
        let records = self.link.exchange_records(operation, record)?;
        agree(&records, refused)?;
        let me = self.link.rank();
        let checked = check_most(&records, "references", MAX_CAPACITY, |record| record.rows[me]);
        self.link.unless_ended(checked)?;
        let asked: Vec<usize> = records.iter().map(|record| record.rows[me] as usize).collect();
        let asked = self.exchange_words(wanted.clone(), &asked)?;

        // Answer each rank's references separately: invalid references of another rank are that rank's error.
        let (mut failed, mut found, mut counts) = (None, vec![Vec::new(); ranks], vec![0; ranks]);
        for (rank, bits) in asked.iter().enumerate() {
            let places: Option<Vec<crate::Reference>> = bits.iter().map(|bits| crate::Reference::from_bits(*bits)).collect();
            let places = self.link.unless_ended(places.ok_or_else(|| no_reference(rank)))?;
            match answer(&places) {
                Ok(words) => found[rank] = packed(&words),
                Err(Error::StaleReferences { stale, .. }) => counts[rank] = STALE | stale,
                Err(Error::InvalidReferences { invalid, .. }) => counts[rank] = INVALID | invalid,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let mut record = self.link.record().failed(failed.as_ref());
        record.rows = counts.clone();
        let records = self.link.exchange_records(operation, record)?;
        agree(&records, failed)?;
        let bad = |rank: usize| records[rank].rows[me];
        let checked = (0..ranks).try_for_each(|rank| match (bad(rank), bad(rank) & !(STALE | INVALID)) {
            (0, _) => Ok(()),
            (bad, count @ 1..) if [STALE, INVALID].contains(&(bad - count)) && count <= wanted[rank].len() as u64 => Ok(()),
            (bad, _) => Err(wrong(rank, format!("{bad:#x} for {} references", wanted[rank].len()))),
        });
        self.link.unless_ended(checked)?;
        let due: Vec<usize> =
            (0..ranks).map(|rank| if bad(rank) == 0 { (wanted[rank].len() * width).div_ceil(2) } else { 0 }).collect();
        let vectors = self.exchange_words(found, &due)?;

        let count_of = |kind: u64| (0..ranks).map(&bad).filter(|bad| bad & kind != 0).map(|bad| bad & !kind).sum::<u64>();
        match (count_of(STALE), count_of(INVALID)) {
            (0, 0) => {}
            (0, invalid) => return Err(Error::InvalidReferences { invalid, count: references.len() }),
            (stale, _) => return Err(Error::StaleReferences { stale, count: references.len() }),
        }
        let mut next = vec![0; ranks];
        let mut words = Vec::with_capacity(references.len() * width);
        for reference in references {
            let rank = reference.rank as usize;
            let of_rank: &[u32] = bytemuck::cast_slice(&vectors[rank]);
            words.extend_from_slice(&of_rank[next[rank] * width..][..width]);
            next[rank] += 1;
        }
        Ok(words)
    }
}

/// Error for a message with zeros where references are due.
fn no_reference(rank: usize) -> Error {
    Error::Connection { rank, reason: "has sent 0 for a reference".into() }
}

/// Packs words in pairs; an odd last word is paired with a zero.
fn packed(words: &[u32]) -> Vec<u64> {
    let mut packed = vec![0u64; words.len().div_ceil(2)];
    bytemuck::cast_slice_mut(&mut packed)[..words.len()].copy_from_slice(words);
    packed
}
