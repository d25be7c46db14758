//! Saving a set by ranks, and loading it. Each rank has its own part, which begins with the data common to all parts.
//!
//! ```text
//! head, of 8-byte words, little-endian
//!   magic | version | rank | ranks | save | seed of owners | mask of hashes | shares | bounds: one a rank | CRC-32 of all before
//! table  as src/docs/files.md describes it
//! ```
//!
//! A forged head may have the right checksum. So each field is checked on which memory safety or the end of a loop depends:
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
use super::record::{MOST_RANKS, Operation};
use super::table::Table;
use super::transport::Transport;
use crate::{Device, Error, FileFault, Key, Result, Storage};
use rand::Rng;
use std::io::{ErrorKind, Read, Write};

/// "wpranks" and a zero.
const MAGIC: u64 = u64::from_le_bytes(*b"wpranks\0");
const VERSION: u64 = 1;

/// Number of 8-byte words before the bounds in a head.
const FIXED: usize = 8;

/// Head of a rank's part. The heads of one save differ only in the rank.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Head {
    rank: u64,
    /// Random number that rank 0 draws for each save.
    save: u64,
    seed: u64,
    hash_mask: u64,
    shares: u64,
    /// Smallest hash that each rank owns.
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

    /// Reads a head, and no byte beyond it.
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
                return Err(Error::io("reading a rank's part", at + done as u64, &error));
            }
        }
    }
    Ok(())
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Writes this rank's part of the set to its own writer, as [`warpset::Table::save`](crate::Table::save) writes a table.
    /// [`Builder::load`] joins all parts of one save to a set again. Collective.
    ///
    /// # Errors
    ///
    /// The errors of [`warpset::Table::save`](crate::Table::save) on the rank that has met them, and [`Error::Rank`] on the
    /// others. Then the parts that were written do not make a set. After [`Error::SelfDeadlock`] on a rank no rank has written
    /// anything. [`Error::Connection`].
    pub fn save(&mut self, mut to: impl Write) -> Result<()> {
        // No rank writes anything if the calling thread of any rank holds its table.
        let held = self.local.raw.check_not_held("save").err();
        let record = self.engine.link.record().values([rand::rng().next_u64()]).failed(held.as_ref());
        let records = self.engine.link.exchange_records(Operation::Save, record)?;
        agree(&records, held)?;
        let Config { seed, hash_mask, shares, .. } = self.config;
        let bounds = self.engine.device.partition.bounds().to_vec();
        let head = Head { rank: self.rank() as u64, save: records[0].head.values[0], seed, hash_mask, shares, bounds };
        let refused = |error: std::io::Error| Error::io("writing a rank's part", 0, &error);
        let saved = to.write_all(&head.to_bytes()).map_err(refused).and_then(|()| self.local.save(to));
        self.engine.agree(Operation::Save, saved).map(drop)
    }

    /// Converts references that were given before the set was saved, on any rank, to current references, in order. Collective: a
    /// rank without references passes none.
    ///
    /// # Errors
    ///
    /// The errors of [`warpset::Table::loaded_references`](crate::Table::loaded_references), for all references that this rank
    /// passes; the other ranks get their results. [`InvalidReferences`](Error::InvalidReferences) if a reference names a rank
    /// that does not exist, and then [`Error::Rank`] on the others. [`Error::Connection`].
    pub fn loaded_references(&mut self, saved: &[Reference]) -> Result<Vec<Reference>> {
        self.engine.loaded_references(&self.local.raw, saved)
    }
}

impl<K: Key, S: Storage> Builder<K, S> {
    /// Loads a set that was [saved](Table::save), on any devices. Each rank passes the part of the rank with its number. From
    /// this builder, the kind of table, its width, [`round`](Self::round) and [`deduplicate`](Self::deduplicate) are used;
    /// everything else is as it was when the set was saved. Collective.
    ///
    /// [`loaded_references`](Table::loaded_references) converts references from before the save to current ones.
    ///
    /// # Errors
    ///
    /// [`Error::File`], [`Error::Io`] and the errors of [`warpset::Table::load`](crate::Table::load) on the rank that has met
    /// them, and [`Error::Rank`] on the others. [`Error::RanksDiffer`] if parts belong to other ranks, to another number of
    /// ranks, or to different saves. [`Error::Connection`]. After an error no rank has a table.
    pub fn load(self, device: &Device, transport: impl Transport + 'static, mut from: impl Read) -> Result<Table<K, S>> {
        let mut link = Link::new(Box::new(transport))?;
        let (rank, ranks) = (link.rank(), link.ranks());
        // No rank reads its table before all have correct heads.
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
            let config = Config::new(&table.raw, Shares::Equal, round, head.seed, head.hash_mask);
            Config { shares: head.shares, ..config }
        });
        let record = link.record().values(config.values()).failed(loaded.as_ref().err());
        let records = link.exchange_records(Operation::Load, record)?;
        agree(&records, loaded.as_ref().err().cloned())?;
        let configs: Vec<Config> = records.iter().map(Config::of).collect();
        // The number of slots may differ between devices, so it is not compared.
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
