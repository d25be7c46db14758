//! Saved tables and ranks' parts with changed fields and contents, and correct checksums.
//!
//! Loading such a file is an error, or returns a table in which every call ends, with a result or an error, without an access
//! outside its memory. `.ci/sanitize` runs these tests where such an access is detected. Contents are not checked, because a file
//! of unknown origin may have any; but a table that was cleared must be correct.
//!
//! `WARPSET_FUZZ` is the number of changed files of each format; the default is 60 (200 at full sizes, 12 at small ones). File
//! number n is the same in every run. A message names the number, and `WARPSET_FUZZ_FIRST` is the number of the first file.
//!
//! Keeps this promise of `src/docs/files.md`:
//!
//! - Whatever the bytes of a file, no access leaves a table, and no memory is requested beyond what can exist (also `saved.rs`,
//!   `hostile_files.rs`).

use super::saved::saved;
use crate::common::kinds::{Kind, roomy};
use crate::common::spread::{Rank, Spread, on_all, small};
use crate::common::vectors::{Random, distinct};
use crate::common::{sized, tests_of_all_kinds};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use warpset::{Device, Indexed, Reference, Request, Result, Root, Storage, VectorTable};
use warpset_testing::table_file::{FIELDS, TableFile};

tests_of_all_kinds!(changed_files, changed_parts_of_ranks);

/// Tests that apply to tables of one kind only.
pub mod of_one_kind {
    use super::*;

    crate::common::tests!(changed_files_of_roots, changed_files_of_rows);
}

/// Numbers of the changed files of a format.
fn numbers() -> std::ops::Range<u64> {
    let number = |name: &str| Some(std::env::var(name).ok()?.parse::<u64>().unwrap_or_else(|error| panic!("{name}: {error}")));
    let first = number("WARPSET_FUZZ_FIRST").unwrap_or(0);
    first..first + number("WARPSET_FUZZ").unwrap_or(sized(200, 30, 12))
}

/// Calls `each` for every number, and names the one at which it fails.
fn for_each_number(format: &str, mut each: impl FnMut(u64, &mut Random)) {
    for number in numbers() {
        let mut random = Random::new(number);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| each(number, &mut random))) {
            eprintln!("{format}: WARPSET_FUZZ=1 WARPSET_FUZZ_FIRST={number} does it again");
            resume_unwind(panic);
        }
    }
}

/// Draws a number at the borders of a field's range, or near `old`.
fn number_near(old: u64, bits: u32, random: &mut Random) -> u64 {
    match random.below(8) {
        0 => [0, 1, 2, 3, 7, 33, 255, 256, 0x7FFF_FFFF, 0x8000_0000, u64::MAX >> 32, 1 << 32][random.below(12)],
        1 => u64::MAX - random.below(3) as u64,
        2 => 1 << random.below(bits as usize),
        3 => old ^ 1 << random.below(bits as usize),
        4 => old.wrapping_add(1 + random.below(4) as u64),
        5 => old.wrapping_sub(1 + random.below(4) as u64),
        6 => old.wrapping_mul(2 + random.below(3) as u64),
        _ => random.number(),
    }
}

/// Changes one to four parts of a file, and mostly corrects its lengths.
fn change(file: &mut TableFile, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        // Contents are changed more often: most changes of the header are refused.
        if random.below(3) == 0 {
            change_number(&mut file.header[FIELDS..], random);
        } else {
            let part = random.below(file.parts.len());
            change_part(&mut file.parts[part], random);
        }
    }
    if random.below(4) > 0 {
        file.repair_lengths();
    }
}

/// Changes a number of 4 or 8 bytes.
fn change_number(bytes: &mut [u8], random: &mut Random) {
    let size = [4, 8][random.below(2)];
    if bytes.len() < size {
        return;
    }
    let at = random.below(bytes.len() / size) * size;
    let mut old = [0; 8];
    old[..size].copy_from_slice(&bytes[at..at + size]);
    let new = number_near(u64::from_le_bytes(old), 8 * size as u32, random);
    bytes[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
}

fn change_part(part: &mut Vec<u8>, random: &mut Random) {
    let len = part.len();
    match random.below(9) {
        // One slot, half, reference or code.
        0..=3 => change_number(part, random),
        // One value everywhere in a range: EMPTY, a repeated value, all ones.
        4 if len >= 16 => {
            let [from, to] = [0; 2].map(|_| random.below(len / 8 + 1) * 8);
            let value = [0, u64::MAX, 0xFFFF_FFFF, 1 << 32 | 1, random.number()][random.below(5)];
            part[from.min(to)..from.max(to)].chunks_exact_mut(8).for_each(|slot| slot.copy_from_slice(&value.to_le_bytes()));
        }
        // A slot copied to another place.
        5 if len >= 16 => {
            let [from, to] = [0; 2].map(|_| random.below(len / 8) * 8);
            part.copy_within(from..from + 8, to);
        }
        6 => part.truncate(random.below(len + 1) / 8 * 8),
        7 => part.extend((0..8 * random.below(64)).map(|_| random.number() as u8)),
        _ => part.iter_mut().for_each(|byte| *byte = if random.below(4) == 0 { random.number() as u8 } else { *byte }),
    }
}

/// Makes every call that tables of all kinds have. Results are not checked until the table is cleared.
pub fn use_in_every_way<S: Storage>(table: &VectorTable<S>) {
    use_with(table, |_| ());
}

/// As `use_in_every_way`, with `more` calls in between.
fn use_with<S: Storage>(table: &VectorTable<S>, more: impl Fn(&VectorTable<S>)) {
    let width = table.width();
    let vectors = distinct(width, 0, 100);
    let _ = (table.len(), table.nodes(), table.stats());
    let _ = table.iter().take(5000).filter(|row| row.is_ok()).count();
    let _ = (table.contains_many(&vectors), table.locate_many(&vectors));
    let references: Vec<Reference> = (0..table.slots().min(300)).filter_map(|slot| table.reference(slot)).collect();
    references.iter().for_each(|reference| drop(table.get_many(&[*reference])));
    let _ = table.get_many(&references);
    let _ = table.loaded_references(&references);
    let _ = table.find_or_put_many_with(&vectors, Request::new().references(true));
    more(table);
    let _ = (table.save(io::sink()), table.stats());
    if table.slots() < 1 << 16 {
        let _ = table.reserve_total(3 * table.slots());
        let _ = (table.stats(), table.contains_many(&vectors));
        more(table);
        let _ = table.find_or_put_many(&vectors).map(|batch| batch.tally);
    }
    if table.clear().is_ok() {
        assert_eq!(table.len(), Ok(0));
        if let Ok(batch) = table.find_or_put_many(&vectors) {
            assert_eq!(table.len(), Ok(batch.tally.new), "{:?}", batch.tally);
            assert_eq!(batch.tally.new + batch.tally.seen + batch.tally.full, (vectors.len() / width) as u64);
        }
    }
}

/// Loads and uses changed files of a table.
fn load_changed<S: Storage>(device: &Device, format: &str, bytes: &[u8], more: impl Fn(&VectorTable<S>)) {
    let file = TableFile::of(bytes);
    assert!(file.signed() == bytes, "the test knows the format");
    let mut loaded = 0;
    for_each_number(format, |_, random| {
        let mut changed = file.clone();
        change(&mut changed, random);
        if let Ok(table) = VectorTable::<S>::load(device, &changed.signed()[..]) {
            loaded += 1;
            use_with(&table, &more);
        }
    });
    let count = numbers().count();
    assert!(count < 60 || (loaded > 0 && loaded < count), "{loaded} of {count} files of a {format} are tables");
}

fn load_changed_of<S: Kind>(device: &Device, more: impl Fn(&VectorTable<S>)) {
    for (width, vectors) in [(4, 7), (9, 60)] {
        let builder = VectorTable::<S>::builder(width).capacity(2 * vectors).seed(3);
        let table = S::with_few_nodes(builder, 20 * vectors).build(device).unwrap();
        table.find_or_put_many(&distinct(width, 0, vectors as usize)).unwrap().complete(&table).unwrap();
        let format = format!("{} table of {width} words", <S as Kind>::NAME);
        load_changed::<S>(device, &format, &saved(&table), &more);
    }
}

fn changed_files<S: Kind>(device: &Device) {
    load_changed_of::<S>(device, |_| ());
}

fn changed_files_of_rows(device: &Device) {
    load_changed_of::<Indexed>(device, |table| {
        let _ = table.holes();
        let _ = table.rows().map(|rows| rows.iter().map(|word| u64::from(*word)).sum::<u64>());
        if let Ok(mut values) = table.values(0u64) {
            let references: Vec<Reference> = (0..3).filter_map(|row| table.reference(row)).collect();
            let _ = values.set_many(&references, &[1, 2, 3][..references.len()]);
            let _ = (values.get_many(&references), values.update(|values| values.fill(7)));
        }
        let _ = (table.truncate(5), table.len(), table.holes());
    });
}

fn changed_files_of_roots(device: &Device) {
    for (key_bits, cuckoo) in [(24, false), (40, true), (64, true)] {
        let builder = VectorTable::<Root>::builder(2).key_bits(key_bits).capacity(1 << 9).cuckoo(cuckoo).seed(3);
        let table = builder.build(device).unwrap();
        let keys: Vec<u32> = (0..500u32).flat_map(|key| [key.wrapping_mul(0x9E37_79B1) >> 8, 0]).collect();
        let _ = table.find_or_put_many(&keys).unwrap();
        let format = format!("root table of {key_bits} bits");
        load_changed::<Root>(device, &format, &saved(&table), |table| drop(table.relocate()));
    }
}

/// Words of a rank's head before its bounds (`src/cluster/saved.rs`).
const HEAD_WORDS: usize = 8;

/// Changes a rank's part: its head, its bounds of owners, or the table in it.
fn change_rank_part(part: &[u8], ranks: usize, random: &mut Random) -> Vec<u8> {
    let checksum = 8 * (HEAD_WORDS + ranks);
    let (mut head, mut table) = (part[..checksum].to_vec(), part[checksum + 8..].to_vec());
    match random.below(4) {
        0 => change_number(&mut head[16..], random),
        1 | 2 => (0..1 + random.below(ranks)).for_each(|_| change_number(&mut head[8 * HEAD_WORDS..], random)),
        _ => {
            let mut file = TableFile::of(&table);
            change(&mut file, random);
            table = file.signed();
        }
    }
    let signed = u64::from(crc32fast::hash(&head)).to_le_bytes();
    [&head[..], &signed, &table].concat()
}

/// Makes the calls of a set over ranks. Each may return an error, on one rank or on all.
fn use_rank<S: Kind>(rank: usize, table: &mut Rank<S>) {
    let width = table.local().width();
    let vectors = distinct(width, 0, 3000);
    let _ = (table.len(), table.contains_many(&vectors), table.find_or_put_many(if rank == 0 { &vectors } else { &[] }));
    let _ = (table.find_or_put_many(&vectors[..width * 10]), table.stats(), table.save(io::sink()), table.clear());
    let _ = table.find_or_put_many(&vectors);
}

/// Changes parts of ranks: all parts get the same change of their common data, or only one part is changed.
fn changed_parts_of_ranks<S: Kind>(device: &Device) {
    let (width, ranks) = (4, 2);
    let set = Spread::new(device, ranks, small, roomy::<S>(width, 200)).unwrap();
    set.all(|rank, table| table.find_or_put_many(&distinct(width, 50 * rank as u64, 50)).unwrap().tally);
    let parts = super::cluster::save(&set);
    let rank_at = 16..24;
    for_each_number(&format!("part of a rank, {}", <S as Kind>::NAME), |_, random| {
        let mut changed = parts.clone();
        if random.below(2) == 0 {
            let rank = random.below(ranks);
            changed[rank] = change_rank_part(&parts[rank], ranks, random);
        } else {
            // Each head gets the same change, because ranks compare their heads.
            let number = random.number();
            for (part, changed) in parts.iter().zip(&mut changed) {
                let mut head = part[..8 * (HEAD_WORDS + ranks)].to_vec();
                change_number(&mut head[8 * (HEAD_WORDS - 2)..], &mut Random::new(number));
                change_number(&mut head[8 * HEAD_WORDS..], &mut Random::new(number + 1));
                head[rank_at.clone()].copy_from_slice(&part[rank_at.clone()]);
                let signed = u64::from(crc32fast::hash(&head)).to_le_bytes();
                *changed = [&head[..], &signed, &part[head.len() + 8..]].concat();
            }
        }
        let parts: Vec<&[u8]> = changed.iter().map(Vec::as_slice).collect();
        let loaded: Vec<Result<Rank<S>>> = super::cluster::load::<S>(device, width, &parts);
        if let Ok(mut tables) = loaded.into_iter().collect::<Result<Vec<_>>>() {
            on_all(tables.iter_mut(), use_rank);
        }
    });
}
