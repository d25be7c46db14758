//! Saving a set by ranks, and loading it: each rank has a part of its own, which begins with what belongs to all parts.
//!
//! ```text
//! head, of 8-byte words, little-endian
//!   magic | version | rank | ranks | save | seed of owners | mask of hashes | shares | bounds: one a rank | CRC-32 of all before
//! table  as src/docs/files.md describes it
//! ```
//!
//! The author of a head that was made to mislead has computed its checksum, too. So each field is checked that memory safety or
//! the end of a loop depends on:
//!
//! | field | what relies on it | what checks it |
//! |---|---|---|
//! | magic, version | the layout of the head | `Head::read` |
//! | rank, ranks | memory for the bounds; which part is whose | `Head::read`: at most 2^20 ranks; `load`: those of the transport |
//! | save | nothing but answers: parts of different saves make no set | `load` compares the ranks' numbers |
//! | seed, mask of hashes | which rank owns a vector: nothing but answers, as every hash has an owner | `load` compares checksums of the ranks' heads |
//! | shares | whether tables of different sizes may be made one set again | `Head::read`: one of the two kinds |
//! | bounds | a round's memory has room for the rows that owners expect, if these add up to all rows | `check_bounds` (owners.rs): the first is 0, none is less than the one before. `Layout::of` asserts that the last run ends within the memory |
//! | table | all that a table relies on | src/saved/mod.rs; and its width, kind and options are those of the other ranks (`Config::check`) |

use super::batch::Reference;
use super::builder::{Builder, Config, Shares};
use super::engine::DeviceRounds;
use super::engine::RankEngine;
use super::link::{Link, agree};
use super::owners::Owners;
use super::owners::check_bounds;
use super::record::Operation;
use super::table::Table;
use super::transport::Transport;
use crate::{Device, Error, FileFault, Key, Result, Storage};
use rand::Rng;
use std::io::{ErrorKind, Read, Write};

/// "wpranks" and a zero.
const MAGIC: u64 = u64::from_le_bytes(*b"wpranks\0");
const VERSION: u64 = 1;

/// Words before the bounds, and the most ranks that a head is read for.
const FIXED: usize = 8;
const MOST_RANKS: u64 = 1 << 20;

/// Properties that the parts of one save have in common. Only the rank differs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Head {
    rank: u64,
    /// Drawn by rank 0 for each save.
    save: u64,
    seed: u64,
    hash_mask: u64,
    shares: u64,
    /// The least hash that each rank owns.
    bounds: Vec<u64>,
}

impl Head {
    fn to_bytes(&self) -> Vec<u8> {
        let Self { rank, save, seed, hash_mask, shares, .. } = *self;
        let fixed = [MAGIC, VERSION, rank, self.bounds.len() as u64, save, seed, hash_mask, shares];
        let mut bytes: Vec<u8> = fixed.iter().chain(&self.bounds).flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(u64::from(crc32fast::hash(&bytes)).to_le_bytes());
        bytes
    }

    /// Reads a head, and no byte more.
    fn read(from: &mut impl Read) -> Result<Self> {
        let mut bytes = vec![0; 8 * FIXED];
        read_all(from, &mut bytes, 0, 8 * (FIXED as u64 + 2))?;
        let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().expect("eight bytes"));
        let fixed: [u64; FIXED] = std::array::from_fn(|at| word(&bytes, at));
        let [magic, version, rank, ranks, save, seed, hash_mask, shares] = fixed;
        if magic != MAGIC {
            return Err(FileFault::Foreign { found: magic.to_le_bytes() }.into());
        }
        if version > VERSION {
            return Err(FileFault::Newer { version: version.min(u32::MAX.into()) as u32, newest: VERSION as u32 }.into());
        }
        let damaged =
            |what: &str, bytes: usize| Error::from(FileFault::Damaged { what: what.into(), at: 0, bytes: bytes as u64 });
        if ranks == 0 || ranks > MOST_RANKS || rank >= ranks {
            return Err(damaged(&format!("it says that it is rank {rank} of {ranks}"), 8 * FIXED));
        }
        if version == 0 || shares > Shares::BySlots as u64 {
            return Err(damaged(&format!("no part has version {version} and shares of kind {shares}"), 8 * FIXED));
        }
        let (count, before) = (ranks as usize, bytes.len());
        bytes.resize(before + 8 * (count + 1), 0);
        let needed = bytes.len() as u64;
        read_all(from, &mut bytes[before..], before as u64, needed)?;
        let end = bytes.len() - 8;
        if word(&bytes, FIXED + count) != u64::from(crc32fast::hash(&bytes[..end])) {
            return Err(damaged("the head of a rank's part has another checksum", bytes.len()));
        }
        let bounds: Vec<u64> = (0..count).map(|rank| word(&bytes, FIXED + rank)).collect();
        check_bounds(&bounds).map_err(|what| damaged(&what, bytes.len()))?;
        Ok(Self { rank, save, seed, hash_mask, shares, bounds })
    }
}

/// Fills `bytes` from a file at offset `at`. The file must have at least `needed` bytes.
fn read_all(from: &mut impl Read, bytes: &mut [u8], at: u64, needed: u64) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match from.read(&mut bytes[done..]) {
            Ok(0) => return Err(FileFault::Truncated { bytes: at + done as u64, needed }.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let (at, reason) = (at + done as u64, error.to_string());
                return Err(Error::Io { doing: "reading a rank's part", at, reason });
            }
        }
    }
    Ok(())
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Writes this rank's part of the set to a place of its own, as [`warpset::Table::save`](crate::Table::save) writes a table.
    /// Collective. [`Builder::load`] makes one set of all parts of one save again.
    ///
    /// # Errors
    ///
    /// As of [`warpset::Table::save`](crate::Table::save) on the rank that it is of, [`Error::Rank`] on the others: then the
    /// parts that were written make no set. After [`Error::SelfDeadlock`] on a rank none has written anything.
    /// [`Error::Connection`], [`Error::OutOfStep`].
    pub fn save(&mut self, mut to: impl Write) -> Result<()> {
        // No rank writes anything if the thread of one holds its table.
        let held = self.local.raw.check_not_held("save").err();
        let record = self.engine.link.record().values([rand::rng().next_u64()]).failed(held.as_ref());
        let records = self.engine.link.exchange_records(Operation::Save, record)?;
        agree(&records, held)?;
        let Config { seed, hash_mask, shares, .. } = self.config;
        let bounds = self.engine.device.partition.bounds().to_vec();
        let head = Head { rank: self.rank() as u64, save: records[0].head.values[0], seed, hash_mask, shares, bounds };
        let refused = |error: std::io::Error| Error::Io { doing: "writing a rank's part", at: 0, reason: error.to_string() };
        let saved = to.write_all(&head.to_bytes()).map_err(refused).and_then(|()| self.local.save(to));
        self.engine.agree(Operation::Save, saved).map(drop)
    }

    /// Converts references that were given before the set was saved, on any rank, to current references, in order. Collective: a
    /// rank without references passes none.
    ///
    /// # Errors
    ///
    /// As of [`warpset::Table::loaded_references`](crate::Table::loaded_references) for all that this rank asks for; the others
    /// get what they ask for. [`InvalidReferences`](Error::InvalidReferences) if there are no such ranks, and then
    /// [`Error::Rank`] on the others. [`Error::Connection`], [`Error::OutOfStep`].
    pub fn loaded_references(&mut self, saved: &[Reference]) -> Result<Vec<Reference>> {
        self.engine.loaded_references(&self.local.raw, saved)
    }
}

impl<S: Storage, K: Key> Builder<S, K> {
    /// The set that was [saved](Table::save), on any devices: each rank gives the part of the rank of its number. Of this builder
    /// count the kind of table, its width, [`round`](Self::round) and [`deduplicate`](Self::deduplicate); all else is as it was
    /// when the set was saved. Collective.
    ///
    /// References from before become those of now by [`loaded_references`](Table::loaded_references).
    ///
    /// # Errors
    ///
    /// [`Error::File`], [`Error::Io`] and those of [`warpset::Table::load`](crate::Table::load) on the rank that they are of, and
    /// [`Error::Rank`] on the others. [`Error::RanksDiffer`] if parts are of other ranks, of another number of ranks, or of
    /// different saves. [`Error::Connection`], [`Error::OutOfStep`]. Then there is no table on any rank.
    pub fn load(self, device: &Device, transport: impl Transport + 'static, mut from: impl Read) -> Result<Table<K, S>> {
        let mut link = Link::new(Box::new(transport));
        let (rank, ranks) = (link.rank(), link.ranks());
        // No rank reads its table before all have the right heads.
        let head = Head::read(&mut from).and_then(|head| {
            let pairs = [("the number of ranks", ranks, head.bounds.len()), ("the rank of a part", rank, head.rank as usize)];
            match pairs.into_iter().find(|(_, own, saved)| own != saved) {
                None => Ok(head),
                Some((what, own, saved)) => {
                    Err(Error::RanksDiffer { what, rank, own: own.to_string(), other: format!("{saved} in what was saved") })
                }
            }
        });
        let values = head.as_ref().map_or([0; 2], |head| {
            let of_all = Head { rank: 0, ..head.clone() };
            [head.save, u64::from(crc32fast::hash(&of_all.to_bytes()))]
        });
        let record = link.record().values(values).failed(head.as_ref().err());
        let records = link.exchange_records(Operation::Load, record)?;
        agree(&records, head.as_ref().err().cloned())?;
        let head = head?;
        for (rank, record) in records.iter().enumerate() {
            let other = record.head.values;
            if other[..2] != values {
                let (own, other) = (format!("{:#x}", values[0]), format!("{:#x}", other[0]));
                return Err(Error::RanksDiffer { what: "the save that their parts belong to", rank, own, other });
            }
        }

        let width = self.table_options().width;
        let loaded = crate::Table::<K, S>::load(device, from).and_then(|table| match table.raw.width() {
            of_file if of_file == width => Ok(table),
            of_file => {
                let (found, wanted) = (format!("table of {of_file} words"), format!("table of {width}"));
                Err(FileFault::OtherTable { found, wanted }.into())
            }
        });
        let round = self.round_for(device, ranks) as u64;
        let config = loaded.as_ref().map_or(Config::default(), |table| {
            let config = Config::new::<S>(&table.raw, Shares::Equal, round, head.seed, head.hash_mask);
            Config { shares: head.shares, ..config }
        });
        let record = link.record().values(config.values()).failed(loaded.as_ref().err());
        let records = link.exchange_records(Operation::Load, record)?;
        agree(&records, loaded.as_ref().err().cloned())?;
        let configs: Vec<Config> = records.iter().map(Config::of).collect();
        // Slots differ where devices do.
        config.check(&configs, false)?;
        let round = configs.iter().map(|config| config.round).min().unwrap_or(1);
        let owners = Owners { seed: head.seed, bounds: head.bounds.clone(), hash_mask: head.hash_mask };
        let made = DeviceRounds::new(device, width, ranks, round as usize, self.deduplicates(), owners);
        let record = link.record().failed(made.as_ref().err());
        let records = link.exchange_records(Operation::Load, record)?;
        agree(&records, made.as_ref().err().cloned())?;
        Ok(Table { engine: RankEngine { link, device: made? }, config: Config { round, ..config }, local: loaded? })
    }
}
