//! Building the tables of a cluster.

use super::buffers::bytes_a_vector;
use super::engine::DeviceRounds;
use super::engine::RankEngine;
use super::link::{Link, agree};
use super::owners;
use super::owners::Owners;
use super::record::{Operation, Record, wrong};
use super::table::Table;
use super::transport::Transport;
use crate::core::table::RawTable;
use crate::layout::limits::MAX_CAPACITY;
use crate::{Device, Error, Key, Result, Storage, TableBuilder, Words};

/// Share of the vectors that each rank owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shares {
    /// Equal shares. Tables of different sizes are refused.
    #[default]
    Equal,
    /// Shares in proportion to the slots of the tables: for GPUs of unequal memory.
    BySlots,
}

/// Options of a rank's part of a cluster.
///
/// All ranks must choose the same options, except for the capacities, which may differ with [`Shares::BySlots`].
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::cluster::{Builder, Local, Shares};
/// use warpset::{Device, Error, TreeTable};
///
/// let build = |shares: Shares| {
///     std::thread::scope(|scope| {
///         let build = |(rank, transport): (usize, Local)| {
///             scope.spawn(move || {
///                 let builder = TreeTable::builder(8).capacity(1000 << rank); // the second rank has twice the memory
///                 Builder::new(builder).shares(shares).build(&Device::cpu_with_threads(1), transport)?.stats()
///             })
///         };
///         let ranks: Vec<_> = Local::ranks(2).into_iter().enumerate().map(build).collect();
///         ranks.into_iter().map(|rank| rank.join().unwrap()).collect::<Vec<_>>()
///     })
/// };
/// for rank in build(Shares::Equal) {
///     let message = rank.unwrap_err().to_string();
///     assert!(message.starts_with("the ranks' tables differ in slots"), "{message}");
/// }
/// for rank in build(Shares::BySlots) {
///     let slots: Vec<u64> = rank?.ranks.iter().map(|rank| rank.slots).collect();
///     assert!(slots[0] >= 1000 && slots[1] >= 2000);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<K = Words, S = crate::Bucket> {
    table: TableBuilder<K, S>,
    shares: Shares,
    round: Option<usize>,
    deduplicate: bool,
    hash_mask: u64,
}

/// Largest number of vectors of a round, whatever memory is available.
const MOST_A_ROUND: usize = 1 << 26;

impl<K: Key, S: Storage> Builder<K, S> {
    /// Makes a builder of a cluster. `table` builds the table of each rank, and its capacity is that of one rank.
    pub fn new(table: TableBuilder<K, S>) -> Self {
        Self { table, shares: Shares::Equal, round: None, deduplicate: false, hash_mask: u64::MAX }
    }

    /// Sets the share of the vectors that each rank owns. Default: [`Shares::Equal`].
    pub fn shares(mut self, shares: Shares) -> Self {
        self.shares = shares;
        self
    }

    /// Sets the number of vectors of a rank that are exchanged at a time: 1 to 2^26. Default: the number that takes 64 MiB on a
    /// CPU, and on a GPU 1/32 of its free memory, at most 4 GiB ([Memory](crate::cluster#memory)). All ranks use the smallest
    /// number that any rank chooses.
    pub fn round(mut self, vectors: usize) -> Self {
        self.round = Some(vectors.clamp(1, MOST_A_ROUND));
        self
    }

    /// Sets whether equal vectors of a round cross between ranks only once. Default: no; each vector crosses, and its owner's
    /// table finds the equal ones.
    ///
    /// To find equal vectors, each vector goes through a filter in the memory of its GPU. This pays if links are slow, as between
    /// hosts, and many vectors are equal (the chapter "Several GPUs" has figures). Rounds then take more memory, and the outcomes
    /// of all vectors cross, even if no rank requested them. Each rank may choose for itself.
    pub fn deduplicate(mut self, deduplicate: bool) -> Self {
        self.deduplicate = deduplicate;
        self
    }

    /// For tests of collisions: `hash & mask` is the hash that determines the owner. 0 gives all vectors to rank 0.
    #[doc(hidden)]
    pub fn hash_mask(mut self, mask: u64) -> Self {
        self.hash_mask = mask;
        self
    }

    pub(super) fn table_options(&self) -> &crate::layout::options::Options {
        self.table.options()
    }

    pub(super) fn deduplicates(&self) -> bool {
        self.deduplicate
    }

    /// Number of vectors of a round that this rank chooses.
    pub(super) fn round_for(&self, device: &Device, ranks: usize) -> usize {
        self.round.unwrap_or_else(|| default_round(device, self.table.options().width, ranks, self.deduplicate))
    }

    /// Builds this rank's table on `device`, and joins the tables of all ranks to one set. Collective: every rank calls it, each
    /// with its own transport to the others.
    ///
    /// # Errors
    ///
    /// The errors of [`TableBuilder::build`] on the rank that has met them, and [`Error::Rank`] on the others.
    /// [`Error::RanksDiffer`] on all ranks if the tables do not match. [`Error::Connection`] if a
    /// rank is lost.
    pub fn build(self, device: &Device, transport: impl Transport + 'static) -> Result<Table<K, S>> {
        let mut link = Link::new(Box::new(transport))?;
        let ranks = link.ranks();
        // An error is kept for the record below, so that no rank waits for a rank that has failed.
        let built = self.table.clone().build(device);
        let (width, seed) = (self.table.options().width, self.table.options().seed);
        let round = self.round_for(device, ranks);
        let config =
            |table: &crate::Table<K, S>| Config::new(&table.raw, self.shares, round as u64, owners::draw(seed), self.hash_mask);
        let config = built.as_ref().map_or(Config::default(), config);
        let record = link.record().values(config.values()).failed(built.as_ref().err());
        let records = link.exchange_records(Operation::Build, record)?;
        let failed = built.as_ref().err().cloned();
        agree(&records, failed)?;
        let configs: Vec<Config> = records.iter().map(Config::of).collect();
        config.check(&configs, self.shares == Shares::Equal)?;
        let round = configs.iter().map(|config| config.round).min().unwrap_or(1);
        let weights: Vec<u64> = configs.iter().map(|config| config.slots).collect();
        let owners = Owners { seed: configs[0].seed, bounds: owners::bounds(&weights), hash_mask: self.hash_mask };
        let made = DeviceRounds::new(device, width, ranks, round as usize, self.deduplicate, owners);
        // From here on all ranks have the same seed.
        let config = Config { seed: configs[0].seed, round, ..config };
        let record = link.record().failed(made.as_ref().err());
        let records = link.exchange_records(Operation::Build, record)?;
        let failed = made.as_ref().err().cloned();
        agree(&records, failed)?;
        Ok(Table { engine: RankEngine { link, device: made? }, config, local: built? })
    }
}

/// Buffer budget of a round. On the host 64 MiB; pages are touched only when used. On a GPU a fixed part of its free memory, with
/// a maximum.
const ROUND_BYTES: u64 = 64 << 20;
const ROUND_BYTES_ON_GPU: u64 = 4 << 30;
const ROUND_SHARE_OF_GPU: u64 = 32;

fn default_round(device: &Device, width: usize, ranks: usize, deduplicate: bool) -> usize {
    let bytes = match device.is_gpu() {
        true => device.free_memory().map_or(ROUND_BYTES, |free| (free / ROUND_SHARE_OF_GPU).min(ROUND_BYTES_ON_GPU)),
        false => ROUND_BYTES,
    };
    let of_vector = bytes_a_vector(width, ranks, deduplicate) as u64;
    ((bytes / of_vector) as usize).clamp(1024, MOST_A_ROUND)
}

/// Settings that must be equal on all ranks, and the number of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) width: u64,
    /// Kind of the table, and how it gains capacity.
    pub(super) kind: u64,
    pub(super) slots: u64,
    pub(super) node_slots: u64,
    pub(super) round: u64,
    /// Seed of rank 0, from which the hash for owners is made.
    pub(super) seed: u64,
    pub(super) shares: u64,
    pub(super) hash_mask: u64,
}

impl Config {
    pub(super) fn new(raw: &RawTable, shares: Shares, round: u64, seed: u64, hash_mask: u64) -> Self {
        let size = raw.size();
        let options = u64::from(raw.options.grows) << 1 | u64::from(raw.options.is_cuckoo());
        let keys = u64::from(raw.options.key_bits().unwrap_or(0)) << 2;
        Self {
            width: raw.width() as u64,
            kind: u64::from(raw.options.kind as u32) << 16 | options | keys,
            slots: size.slots,
            node_slots: size.nodes,
            round,
            seed,
            shares: shares as u64,
            hash_mask,
        }
    }

    pub(super) fn values(self) -> [u64; 8] {
        [self.width, self.kind, self.slots, self.node_slots, self.round, self.seed, self.shares, self.hash_mask]
    }

    pub(super) fn of(record: &Record) -> Self {
        let [width, kind, slots, node_slots, round, seed, shares, hash_mask, ..] = record.head.values;
        Self { width, kind, slots, node_slots, round, seed, shares, hash_mask }
    }

    /// Returns an error if another rank's table does not match this one's.
    pub(super) fn check(self, all: &[Self], equal_slots: bool) -> Result<()> {
        for (rank, other) in all.iter().enumerate() {
            // All ranks divide by these numbers, so none may be 0.
            for (what, number, most) in
                [("slots", other.slots, MAX_CAPACITY), ("vectors of a round", other.round, MOST_A_ROUND as u64)]
            {
                if !(1..=most).contains(&number) {
                    return Err(wrong(rank, format!("{number} {what}, of 1 to {most}")));
                }
            }
            let pairs = [
                ("words a vector", self.width, other.width, true),
                ("their kind, or whether they grow", self.kind, other.kind, true),
                ("the choice of shares", self.shares, other.shares, true),
                ("the mask of the hash", self.hash_mask, other.hash_mask, true),
                ("slots (`Shares::BySlots` allows that)", self.slots, other.slots, equal_slots),
            ];
            if let Some((what, own, other, _)) = pairs.into_iter().find(|(_, own, other, matters)| *matters && own != other) {
                return Err(Error::RanksDiffer { what, rank, own: own.to_string(), other: other.to_string() });
            }
        }
        Ok(())
    }

    /// Announces this rank's table on a new connection. Returns an error unless the ranks are those that formed the set before.
    pub(super) fn rejoin(self, link: &mut Link) -> Result<()> {
        let record = link.record().values(self.values());
        let records = link.exchange_records(Operation::Reconnect, record)?;
        for (rank, record) in records.iter().enumerate() {
            let other = Self::of(record);
            if (other.seed, other.round) != (self.seed, self.round) {
                let (own, other) = (format!("{:#x}", self.seed), format!("{:#x}", other.seed));
                return Err(Error::RanksDiffer { what: "their cluster", rank, own, other });
            }
        }
        Ok(())
    }
}
