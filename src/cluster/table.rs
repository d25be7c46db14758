//! The set as its callers use it.

use super::batch::{Batch, Reference, Request};
use super::builder::Config;
use super::engine::{Answers, Offer, RankEngine, sums};
use super::link::{Link, agree};
use super::plan::{Fresh, Input};
use super::record::{NUMBERS, Operation, Record, check_most};
use super::stats::{RankStats, Stats, Traffic};
use super::transport::Transport;
use crate::core::table::RawTable;
use crate::layout::SearchMode;
use crate::table::key::{elements, words};
use crate::{Error, Key, Outcome, Result, Storage};
use std::fmt;

/// A rank's part of a set that is spread over several ranks; see [the module](crate::cluster).
///
/// Operations with `&mut self` are collective: every rank calls the same ones, in the same order, and a call waits for the other
/// ranks to make theirs. Errors that concern all ranks are returned on all. Batches differ between ranks, and may be empty.
///
/// `K` and `S` mean the same as in [`warpset::Table`](crate::Table).
pub struct Table<K: Key, S> {
    pub(super) engine: RankEngine,
    pub(super) config: Config,
    pub(super) local: crate::Table<K, S>,
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Number of this rank.
    pub fn rank(&self) -> usize {
        self.engine.link.rank()
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.engine.link.ranks()
    }

    /// Table of this rank, with the vectors that it owns. Any number of threads may read it. Do not put vectors into it directly:
    /// another rank may own them, and would not know of them. Not collective.
    pub fn local(&self) -> &crate::Table<K, S> {
        &self.local
    }

    /// Erases the kind from the type: `warpset::Table::erased`.
    #[doc(hidden)]
    pub fn erased(self) -> Table<K, crate::Erased> {
        Table { engine: self.engine, config: self.config, local: self.local.erased() }
    }

    /// Ends the connection for this rank, and returns its table. Not collective.
    pub fn into_local(self) -> crate::Table<K, S> {
        self.local
    }

    /// Joins the ranks' tables to one set again, on a new connection, after the last one has ended. Each rank must have the
    /// number that it had before. Collective on the new connection.
    ///
    /// # Errors
    ///
    /// [`Error::RanksDiffer`] if the ranks are not those of one cluster, or if their numbers have changed; [`Error::Connection`].
    /// After an error the tables are not connected.
    pub fn reconnect(&mut self, transport: impl Transport + 'static) -> Result<()> {
        let mut link = Link::new(Box::new(transport))?;
        for (what, own, other) in [("ranks", self.ranks(), link.ranks()), ("the number of this rank", self.rank(), link.rank())] {
            if own != other {
                return Err(Error::RanksDiffer { what, rank: self.rank(), own: own.to_string(), other: other.to_string() });
            }
        }
        link.traffic = self.engine.link.traffic;
        self.config.rejoin(&mut link)?;
        self.engine.link = link;
        Ok(())
    }

    /// Find-or-put for each vector of this rank's batch: looks for the vector on its owner, and puts it there if it is not
    /// stored.
    ///
    /// `vectors`: as for [`warpset::Table::find_or_put_many`](crate::Table::find_or_put_many). Returns when the batches of all
    /// ranks are put. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] or [`Error::KeyTooLarge`] on the rank that passed the faulty batch, and [`Error::Rank`] on the
    /// others, before anything is put. [`Error::Rank`] also if a rank's device has failed: then parts of any rank's batch may be
    /// stored. The same holds after [`Error::Connection`]. A full table is not an error but an outcome; [`Batch::complete`] turns
    /// it into an error.
    pub fn find_or_put_many(&mut self, vectors: &[K::Element]) -> Result<Batch> {
        self.find_or_put_many_with(vectors, Request::default())
    }

    /// Puts the vectors of all ranks as [`find_or_put_many`](Self::find_or_put_many) does, and also returns what `request` asks
    /// for.
    ///
    /// # Errors
    ///
    /// The errors of [`find_or_put_many`](Self::find_or_put_many).
    pub fn find_or_put_many_with(&mut self, vectors: &[K::Element], request: Request) -> Result<Batch> {
        let (vectors, raw) = (words(vectors), &self.local.raw);
        let fresh = if request.stored_here { Fresh::Host } else { Fresh::Unwanted };
        let offer = Offer {
            fresh,
            numbers: request.numbers,
            ..offer(Operation::FindOrPut, SearchMode::FindOrPut, raw, &vectors, request.references)
        };
        let mut answers = Answers::default();
        self.engine.find_or_put(raw, &vectors, &offer, &mut answers)?;
        let Answers { outcomes, references, owners, fresh, tally, total, sums, limit, .. } = answers;
        Ok(Batch {
            tally,
            total,
            sums,
            outcomes: outcomes.into_iter().map(outcome).collect(),
            references: places(&references, &owners),
            stored_here_count: fresh.len() as u64,
            stored_here: fresh.into_iter().filter_map(crate::Reference::from_bits).collect(),
            error: limit,
        })
    }

    /// Whether each vector is stored on any rank. Collective.
    ///
    /// # Errors
    ///
    /// The errors of [`find_or_put_many`](Self::find_or_put_many); nothing is changed.
    pub fn contains_many(&mut self, vectors: &[K::Element]) -> Result<Vec<bool>> {
        let answers = self.find(Operation::Contains, vectors, false)?;
        Ok(answers.outcomes.into_iter().map(|outcome| outcome == Outcome::Seen as u8).collect())
    }

    /// Location of each stored vector; `None` for a vector that is not stored. Collective.
    ///
    /// # Errors
    ///
    /// The errors of [`contains_many`](Self::contains_many).
    pub fn locate_many(&mut self, vectors: &[K::Element]) -> Result<Vec<Option<Reference>>> {
        let answers = self.find(Operation::Locate, vectors, true)?;
        Ok(places(&answers.references, &answers.owners))
    }

    fn find(&mut self, operation: Operation, vectors: &[K::Element], references: bool) -> Result<Answers> {
        let (vectors, raw) = (words(vectors), &self.local.raw);
        let offer = offer(operation, SearchMode::Find, raw, &vectors, references);
        let mut answers = Answers::default();
        answers.make(&offer, raw.width());
        self.engine.rounds(raw, &offer, &mut answers)?;
        Ok(answers)
    }

    /// Returns the vectors at these references, on any ranks, one after another. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::StaleReferences`], [`Error::InvalidReferences`], on the rank that passed them (on the others this is no error,
    /// unless a reference names a rank that does not exist); [`Error::Rank`], [`Error::Connection`].
    pub fn get_many(&mut self, references: &[Reference]) -> Result<Vec<K::Element>> {
        Ok(elements(self.engine.get(&self.local.raw, references)?))
    }

    /// Number of vectors stored on all ranks. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`], [`Error::Connection`]; errors of the device.
    pub fn len(&mut self) -> Result<u64> {
        let stored = self.local.raw.stored("len").map(|[vectors, _]| [vectors]);
        Ok(self.gather(Operation::Length, stored)?.into_iter().map(|[stored]| stored).sum())
    }

    /// Whether nothing is stored on any rank. Collective.
    ///
    /// # Errors
    ///
    /// The errors of [`len`](Self::len).
    pub fn is_empty(&mut self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fill of the ranks' tables, with equal results on all ranks. Looks at every slot. Collective.
    ///
    /// # Errors
    ///
    /// The errors of [`len`](Self::len).
    pub fn stats(&mut self) -> Result<Stats> {
        let own = self
            .local
            .stats()
            .map(|stats| [stats.slots, stats.stored, stats.bytes, stats.nodes, stats.node_slots, stats.longest_probe]);
        let of = |[slots, stored, bytes, nodes, node_slots, longest_probe]: [u64; 6]| RankStats {
            slots,
            stored,
            bytes,
            nodes,
            node_slots,
            longest_probe,
        };
        Ok(Stats { ranks: self.gather(Operation::Stats, own)?.into_iter().map(of).collect() })
    }

    /// Traffic of this rank with the others so far. Not collective.
    pub fn traffic(&self) -> Traffic {
        self.engine.link.traffic
    }

    /// Removes every vector from all ranks. Makes all references stale. Collective.
    ///
    /// # Errors
    ///
    /// The errors of [`len`](Self::len). After an error some ranks' tables may be empty, and others not. After
    /// [`Error::SelfDeadlock`] on a rank, no table has been cleared.
    pub fn clear(&mut self) -> Result<()> {
        // All ranks agree first: no rank clears its table while another rank does something else, or cannot clear its own.
        self.engine.agree(Operation::Clear, self.local.raw.check_not_held("clear"))?;
        self.engine.agree(Operation::Clear, self.local.raw.clear()).map(drop)
    }

    /// Grows every rank's table to at least `slots` slots in all; the number may differ between ranks. Makes references stale.
    /// Shares stay as they were. Collective.
    ///
    /// # Errors
    ///
    /// The errors of [`warpset::Table::reserve_total`](crate::Table::reserve_total) on the rank that has met them, and
    /// [`Error::Rank`] on the others. Then some tables have grown, and others not. After [`Error::SelfDeadlock`] on a rank, no
    /// table has grown.
    pub fn reserve_total(&mut self, slots: u64) -> Result<()> {
        let needs_none = self.local.slots() >= slots;
        let ready = if needs_none { Ok(()) } else { self.local.raw.check_not_held("reserve_total") };
        self.engine.agree(Operation::Reserve, ready)?;
        self.engine.agree(Operation::Reserve, self.local.raw.reserve("reserve_total", slots)).map(drop)
    }

    /// Returns the sums, over all ranks, of the numbers that each rank passes (at most 16), wrapped around on overflow. Searches
    /// use these sums to agree between batches. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::Connection`].
    pub fn sum<const N: usize>(&mut self, own: [u64; N]) -> Result<[u64; N]> {
        const { assert!(N <= NUMBERS, "a record has room for 16 numbers") };
        Ok(sums(&self.exchange_numbers(Operation::Sum, Ok(own))?))
    }

    /// Returns numbers of slots, vectors, nodes or bytes of all ranks, by rank. Numbers whose sum over all ranks could overflow
    /// are an error.
    fn gather<const N: usize>(&mut self, operation: Operation, own: Result<[u64; N]>) -> Result<Vec<[u64; N]>> {
        let records = self.exchange_numbers(operation, own)?;
        let most = u64::MAX / self.ranks() as u64;
        let what = "slots, vectors or bytes";
        let checked = (0..N).try_for_each(|at| check_most(&records, what, most, |record| record.head.values[at]));
        self.engine.link.unless_ended(checked)?;
        Ok(records.iter().map(|record| std::array::from_fn(|at| record.head.values[at])).collect())
    }

    fn exchange_numbers<const N: usize>(&mut self, operation: Operation, own: Result<[u64; N]>) -> Result<Vec<Record>> {
        let (values, failed) = own.map_or_else(|error| ([0; N], Some(error)), |values| (values, None));
        let record = self.engine.link.record().values(values).failed(failed.as_ref());
        let records = self.engine.link.exchange_records(operation, record)?;
        agree(&records, failed)?;
        Ok(records)
    }
}

/// Offer of a rank for a host batch. If its words are not whole vectors, the offer carries the error instead.
fn offer<'a>(operation: Operation, search: SearchMode, raw: &RawTable, words: &'a [u32], references: bool) -> Offer<'a> {
    let refused = raw.count(words).err();
    let input = Input::Host(if refused.is_none() { words } else { &[] });
    Offer {
        operation,
        search,
        input,
        outcomes: true,
        references,
        owners: references,
        fresh: Fresh::Unwanted,
        numbers: [0; NUMBERS],
        refused,
    }
}

fn outcome(byte: u8) -> Outcome {
    match byte {
        1 => Outcome::New,
        2 => Outcome::Seen,
        3 => Outcome::Full,
        _ => unreachable!("every vector of a batch without an error has an outcome, not {byte}"),
    }
}

fn places(references: &[u64], owners: &[u32]) -> Vec<Option<Reference>> {
    let place = |(bits, rank): (&u64, &u32)| Some(Reference { rank: *rank, reference: crate::Reference::from_bits(*bits)? });
    references.iter().zip(owners).map(place).collect()
}

impl<K: Key, S: Storage> fmt::Debug for Table<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("cluster::Table")
            .field("rank", &self.rank())
            .field("ranks", &self.ranks())
            .field("local", &self.local)
            .finish()
    }
}
