//! Tables that were saved and loaded have the same contents on every device; other files are errors.
//!
//! Keeps these promises of `src/docs/files.md`:
//!
//! - A loaded table equals the saved one, and goes on as the saved one would.
//! - Empty tables, full tables and tables of many blocks are saved and loaded, too.
//! - A table can be loaded on any device, with the same layout of slots or another (also `src/saved/tests.rs`).
//! - A file has the state of one moment and every displaced key, and holes stay holes (also `src/saved/tests.rs`).
//! - References are kept, and those of one table are not mistaken for another's.
//! - If any call fails, a file is complete or absent. An error leaves the old file, unless it says that the file was replaced.
//! - Writing a file follows no link (also `examples/explore/search/src/checkpoint/tests.rs`,
//!   `examples/explore/tests/explore/checkpoints.rs`).
//! - Damaged, truncated, foreign and newer files, and files of other tables, are errors that say where (also
//!   `src/saved/tests.rs`).

use super::changed_files::use_in_every_way;
use crate::common::kinds::{Kind, roomy};
use crate::common::set::everything;
use crate::common::vectors::{Random, distinct, some_widths};
use crate::common::{scaled, sized, tests_of_all_kinds};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use warpset::{Device, Error, FileFault, Key, Reference, Request, Result, Storage, Table, VectorTable};
use warpset_testing::table_file::{parts, sign};

tests_of_all_kinds!(
    loaded_tables_are_what_was_saved,
    loaded_tables_go_on,
    empty_tables,
    full_tables,
    tables_that_have_grown_and_grow,
    tables_go_from_device_to_device,
    saved_while_others_put,
    references_are_of_one_table,
    files_are_complete_or_not_there,
    files_of_every_other_length,
    files_with_every_byte_changed,
    files_that_are_signed_but_wrong,
    files_of_random_bytes,
    what_files_are_not,
    readers_and_writers_of_every_kind,
);

pub fn saved<K: Key, S: Storage>(table: &Table<K, S>) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.save(&mut bytes).unwrap();
    bytes
}

fn fault<T>(loaded: Result<T>) -> FileFault {
    match loaded.err().expect("it cannot be loaded") {
        Error::File { fault } => fault,
        error => panic!("{error}"),
    }
}

/// Vector in each slot.
fn contents<K: Key<Element = u32, Owned = Vec<u32>>, S: Storage>(table: &Table<K, S>) -> BTreeMap<u64, Vec<u32>> {
    table.iter().map(|row| row.map(|(at, vector)| (at.slot(), vector)).unwrap()).collect()
}

fn put<S: Kind>(table: &VectorTable<S>, words: &[u32]) -> Vec<Reference> {
    let batch = table.find_or_put_many_with(words, Request::new().references(true)).unwrap();
    batch.references.into_iter().map(|reference| reference.expect("it fits")).collect()
}

/// A small table, so that its file is short, with vectors in it.
fn small<S: Kind>(device: &Device) -> (VectorTable<S>, Vec<u32>) {
    let builder = VectorTable::<S>::builder(4).capacity(8).seed(3);
    let table = S::with_few_nodes(builder, 60).build(device).unwrap();
    let words = distinct(4, 0, 7);
    put(&table, &words);
    (table, words)
}

fn loaded_tables_are_what_was_saved<S: Kind>(device: &Device) {
    for width in some_widths() {
        let count = sized(3000, 600, 200);
        let table = roomy::<S>(width, 2 * count as u64).build(device).unwrap();
        let words = distinct(width, 0, count);
        let references = put(&table, &words);
        let bytes = saved(&table);
        let loaded = VectorTable::<S>::load(device, &bytes[..]).unwrap();
        assert_eq!((loaded.slots(), loaded.spec(), loaded.width()), (table.slots(), table.spec(), width));
        assert_eq!((loaded.len().unwrap(), loaded.nodes().unwrap()), (table.len().unwrap(), table.nodes().unwrap()));
        assert_eq!(loaded.stats().unwrap(), table.stats().unwrap(), "width {width}");
        assert!(contents(&loaded) == contents(&table), "width {width}");
        let now = loaded.loaded_references(&references).unwrap();
        assert!(loaded.get_many(&now).unwrap() == words, "width {width}");
        assert!(loaded.locate_many(&words).unwrap().into_iter().flatten().eq(now), "width {width}");
        assert!(!loaded.contains_many(&distinct(width, count as u64, 100)).unwrap().iter().any(|stored| *stored));
        assert!(saved(&table) == bytes, "saving changes nothing");
    }
}

/// Loaded tables continue exactly as the saved table would.
fn loaded_tables_go_on<S: Kind>(device: &Device) {
    for width in some_widths() {
        let count = sized(1000, 300, 100);
        let table = roomy::<S>(width, 4 * count as u64).build(device).unwrap();
        let all = distinct(width, 0, 3 * count);
        put(&table, &all[..count * width]);
        let loaded = VectorTable::<S>::load(device, &saved(&table)[..]).unwrap();
        let tally = loaded.find_or_put_many(&all[..2 * count * width]).unwrap().tally;
        assert_eq!((tally.new, tally.seen, tally.full), (count as u64, count as u64, 0), "width {width}");
        loaded.reserve_total(4 * loaded.slots()).unwrap();
        let tally = loaded.find_or_put_many(&all).unwrap().tally;
        assert_eq!((tally.new, tally.seen, tally.full), (count as u64, 2 * count as u64, 0), "width {width}");
        let again = VectorTable::<S>::load(device, &saved(&loaded)[..]).unwrap();
        assert!(contents(&again) == contents(&loaded), "width {width}");
        again.clear().unwrap();
        assert!(again.is_empty().unwrap() && again.iter().next().is_none());
        assert_eq!(again.find_or_put_many(&all).unwrap().tally.new, 3 * count as u64, "width {width}");
        assert_eq!(table.len().unwrap(), count as u64, "the one that was saved is another");
    }
}

fn empty_tables<S: Kind>(device: &Device) {
    for width in some_widths() {
        let table = roomy::<S>(width, 1).build(device).unwrap();
        let loaded = VectorTable::<S>::load(device, &saved(&table)[..]).unwrap();
        assert!(loaded.is_empty().unwrap() && loaded.iter().next().is_none());
        assert!(loaded.loaded_references(&[]).unwrap().is_empty());
        assert_eq!(loaded.find_or_put_many(&vec![7; width]).unwrap().tally.new, 1);
    }
}

fn full_tables<S: Kind>(device: &Device) {
    for width in some_widths() {
        let table = roomy::<S>(width, 100).build(device).unwrap();
        let words = distinct(width, 0, 2 * table.slots() as usize);
        let first = table.find_or_put_many(&words).unwrap();
        assert!(first.tally.full > 0, "width {width}");
        let loaded = VectorTable::<S>::load(device, &saved(&table)[..]).unwrap();
        assert!(contents(&loaded) == contents(&table), "width {width}");
        let again = loaded.find_or_put_many(&words).unwrap();
        assert_eq!((again.tally.new, again.tally.full), (0, first.tally.full), "width {width}");
        loaded.reserve_total(4 * loaded.slots()).unwrap();
        assert_eq!(loaded.find_or_put_many(&words).unwrap().tally.new, first.tally.full, "width {width}");
    }
}

fn tables_that_have_grown_and_grow<S: Kind>(device: &Device) {
    let (width, count) = (8, scaled(20_000, 1000));
    let table = S::with_few_nodes(VectorTable::<S>::builder(width).capacity(100), 100).grows(true).build(device).unwrap();
    let words = distinct(width, 0, 2 * count);
    table.find_or_put_many(&words[..count * width]).unwrap().complete(&table).unwrap();
    let loaded = VectorTable::<S>::load(device, &saved(&table)[..]).unwrap();
    assert_eq!((loaded.spec(), loaded.slots()), (table.spec(), table.slots()));
    let batch = loaded.find_or_put_many(&words).unwrap();
    assert_eq!(batch.complete(&loaded).unwrap().new, count as u64, "it grows as the other did");
    assert!(loaded.contains_many(&words).unwrap().iter().all(|stored| *stored));
    assert_eq!(loaded.len().unwrap(), 2 * count as u64);
}

/// The device, and CPUs with several numbers of threads if the library has them.
fn devices(device: &Device) -> Vec<Device> {
    #[cfg(feature = "cpu")]
    return vec![device.clone(), Device::cpu_with_threads(1), Device::cpu_with_threads(3)];
    #[cfg(not(feature = "cpu"))]
    return vec![device.clone()];
}

/// Tables move to and from CPUs with several numbers of threads; on a GPU also to the CPU and back.
fn tables_go_from_device_to_device<S: Kind>(device: &Device) {
    let devices = devices(device);
    for width in some_widths() {
        let count = sized(1000, 200, 100);
        let words = distinct(width, 0, 2 * count);
        for from in &devices {
            let table = roomy::<S>(width, 3 * count as u64).build(from).unwrap();
            let references = put(&table, &words[..count * width]);
            let bytes = saved(&table);
            for to in &devices {
                let loaded = VectorTable::<S>::load(to, &bytes[..]).unwrap();
                let about = format!("{width} words, from {from} to {to}");
                assert!(loaded.device() == to && loaded.slots() >= table.slots() * 95 / 100, "{about}");
                let mut found: Vec<Vec<u32>> = contents(&loaded).into_values().collect();
                let mut expected: Vec<Vec<u32>> = contents(&table).into_values().collect();
                found.sort_unstable();
                expected.sort_unstable();
                assert!(found == expected, "{about}");
                assert_eq!((loaded.len().unwrap(), loaded.nodes().unwrap()), (count as u64, table.nodes().unwrap()), "{about}");
                match loaded.loaded_references(&references) {
                    Ok(now) => assert!(loaded.get_many(&now).unwrap() == words[..count * width], "{about}"),
                    Err(error) => {
                        assert_eq!(error, Error::StaleReferences { stale: count as u64, count }, "{about}");
                        assert!(from.is_gpu() != to.is_gpu() && !S::IN_ORDER, "{about}: they lie alike");
                    }
                }
                let tally = loaded.find_or_put_many(&words).unwrap().tally;
                assert_eq!((tally.new, tally.seen), (count as u64, count as u64), "{about}");
            }
        }
    }
}

/// A file has the state of one moment: vectors put before it are present, each vector present was offered, and the counts match
/// the slots.
fn saved_while_others_put<S: Kind>(device: &Device) {
    let (width, count, callers) = (5, scaled(3000, 300), 3);
    let table = roomy::<S>(width, 4 * (callers * count) as u64).build(device).unwrap();
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for caller in 0..callers {
            let (table, done, stop) = (&table, &done, &stop);
            scope.spawn(move || {
                let words = distinct(width, (caller * count) as u64, count);
                for part in words.chunks(50 * width) {
                    put(table, part);
                    done.fetch_add((part.len() / width) as u64, Ordering::SeqCst);
                }
                stop.store(true, Ordering::SeqCst);
            });
        }
        let offered: std::collections::HashSet<Vec<u32>> =
            distinct(width, 0, callers * count).chunks(width).map(<[u32]>::to_vec).collect();
        while !stop.load(Ordering::SeqCst) {
            let least = done.load(Ordering::SeqCst);
            let loaded = VectorTable::<S>::load(device, &saved(&table)[..]).unwrap();
            let rows = contents(&loaded);
            let len = loaded.len().unwrap();
            assert!(len >= least, "{len} of at least {least}");
            assert_eq!((rows.len() as u64, loaded.stats().unwrap().stored), (len, len));
            assert!(rows.values().all(|row| offered.contains(row)));
            let words: Vec<u32> = rows.into_values().flatten().collect();
            let batch = loaded.find_or_put_many_with(&words, everything()).unwrap();
            assert_eq!((batch.tally.new, batch.tally.seen), (0, len), "each is where it is found");
        }
    });
}

fn references_are_of_one_table<S: Kind>(device: &Device) {
    let (table, words) = small::<S>(device);
    let references = put(&table, &words);
    let bytes = saved(&table);
    let [one, other] = [(); 2].map(|()| VectorTable::<S>::load(device, &bytes[..]).unwrap());
    let stale = Error::StaleReferences { stale: 7, count: 7 };
    assert_eq!(one.get_many(&references), Err(stale.clone()), "a loaded table is another one");
    let of_one = one.loaded_references(&references).unwrap();
    let of_other = other.loaded_references(&references).unwrap();
    assert!(one.get_many(&of_one).unwrap() == words && other.get_many(&of_other).unwrap() == words);
    assert_eq!(one.get_many(&of_other), Err(stale.clone()), "loaded twice, they are two");
    // References without a saved counterpart.
    assert_eq!(one.loaded_references(&of_one), Err(stale.clone()));
    assert_eq!(table.loaded_references(&references), Err(stale.clone()), "it was not loaded");
    let mut mixed = references.clone();
    mixed[2] = of_other[2];
    assert_eq!(one.loaded_references(&mixed), Err(Error::StaleReferences { stale: 1, count: 7 }));
    // References of the table as it was when it was saved.
    table.clear().unwrap();
    let later = put(&table, &words);
    assert_eq!(one.loaded_references(&later), Err(stale.clone()));
    other.clear().unwrap();
    assert_eq!(other.loaded_references(&references), Err(stale.clone()));
    one.reserve_total(4 * one.slots()).unwrap();
    match S::IN_ORDER {
        true => assert!(one.get_many(&one.loaded_references(&references).unwrap()).unwrap() == words),
        false => assert_eq!(one.loaded_references(&references), Err(stale)),
    }
    // References converted to bits, as they are kept in files.
    let again = VectorTable::<S>::load(device, &bytes[..]).unwrap();
    let bits: Vec<u64> = references.iter().map(|reference| reference.to_bits()).collect();
    let back: Vec<Reference> = bits.into_iter().map(|bits| Reference::from_bits(bits).unwrap()).collect();
    assert!(again.get_many(&again.loaded_references(&back).unwrap()).unwrap() == words);
}

/// A temporary folder of the test, removed when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("warpset-saved-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn files_are_complete_or_not_there<S: Kind>(device: &Device) {
    let folder = Folder::new();
    let path = folder.0.join("table");
    let (table, words) = small::<S>(device);
    let load = || VectorTable::<S>::load_file(device, &path);
    assert!(matches!(load(), Err(Error::Io { doing: "opening a file", .. })));
    let (saving, calls) = warpset::faults::count(|| table.save_file(&path));
    saving.unwrap();
    assert!(folder.files().iter().eq([&path]));
    assert!(load().unwrap().contains_many(&words).unwrap().iter().all(|stored| *stored));
    // If a call fails, the file keeps its former contents. Only the last call comes after the replacement, as its error reports.
    put(&table, &distinct(4, 10, 1));
    for call in 0..calls {
        let (failed, _) = warpset::faults::fail(call..u64::MAX, || table.save_file(&path));
        let is_replaced = matches!(failed.unwrap_err(), Error::Io { doing, .. } if doing.contains("that was replaced"));
        assert_eq!(is_replaced, call == calls - 1, "call {call} of {calls}");
        let stored = if is_replaced { 8 } else { 7 };
        assert_eq!((load().unwrap().len().unwrap(), folder.files()), (stored, vec![path.clone()]), "call {call} of {calls}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(warpset::faults::fail(calls / 2..u64::MAX, || table.save_file(&path)).0.is_err());
    assert!(folder.files().is_empty());
    assert!(table.save_file(folder.0.join("no folder").join("table")).is_err());
    assert!(table.save_file(folder.0.join("..")).is_err());
    table.save_file(&path).unwrap();
    assert_eq!(load().unwrap().len().unwrap(), 8);
    // Bytes after the table are not part of it; a reader stops there.
    let mut bytes = std::fs::read(&path).unwrap();
    let (whole, more) = (bytes.len() as u64, b"more");
    bytes.extend(more);
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(fault(load()), FileFault::Damaged { at, bytes: 4, .. } if at == whole));
    let mut reader = &bytes[..];
    assert_eq!(VectorTable::<S>::load(device, &mut reader).unwrap().len().unwrap(), 8);
    assert_eq!(reader, more);
    std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
    assert_eq!(fault(load()), FileFault::Truncated { bytes: whole - 1, needed: whole });
}

fn files_of_every_other_length<S: Kind>(device: &Device) {
    let bytes = saved(&small::<S>(device).0);
    for len in (0..bytes.len()).step_by(sized(1, 5, 13)) {
        match fault(VectorTable::<S>::load(device, &bytes[..len])) {
            FileFault::Truncated { bytes: read, needed } => {
                assert_eq!(read, len as u64);
                assert!(needed > read && needed <= bytes.len() as u64, "{needed} bytes, of {}", bytes.len());
            }
            other => panic!("{len} bytes of {}: {other}", bytes.len()),
        }
    }
    VectorTable::<S>::load(device, &bytes[..]).unwrap();
}

fn files_with_every_byte_changed<S: Kind>(device: &Device) {
    let mut bytes = saved(&small::<S>(device).0);
    for at in (0..bytes.len()).step_by(sized(1, 5, 7)) {
        for change in [1, 0x80, 0xFF] {
            bytes[at] ^= change;
            let fault = fault(VectorTable::<S>::load(device, &bytes[..]));
            match at {
                0..8 => assert!(matches!(fault, FileFault::Foreign { .. }), "byte {at}: {fault}"),
                8..12 => assert!(matches!(fault, FileFault::Newer { .. } | FileFault::Damaged { .. }), "byte {at}: {fault}"),
                // A header that claims to be longer may end later than the file.
                12..16 => assert!(matches!(fault, FileFault::Truncated { .. } | FileFault::Damaged { .. }), "byte {at}: {fault}"),
                _ => match fault {
                    FileFault::Damaged { at: from, bytes: len, .. } => {
                        assert!((from..from + len).contains(&(at as u64)), "byte {at}, not {len} from {from} on");
                    }
                    fault => panic!("byte {at}: {fault}"),
                },
            }
            bytes[at] ^= change;
        }
    }
}

/// The checksums are correct. Each file is an error, or gives a table whose every call returns.
fn files_that_are_signed_but_wrong<S: Kind>(device: &Device) {
    let bytes = saved(&small::<S>(device).0);
    let parts = parts(&bytes);
    let mut same = bytes.clone();
    sign(&mut same, &parts);
    assert!(same == bytes, "the test knows the format");
    let mut random = Random::new(1);
    let (mut refused, mut made) = (0, 0);
    let mut trial = |mut bytes: Vec<u8>| {
        sign(&mut bytes, &parts);
        let Ok(table) = VectorTable::<S>::load(device, &bytes[..]) else {
            refused += 1;
            return;
        };
        made += 1;
        use_in_every_way(&table);
    };
    // Changes numbers in the header to values near the old ones, and far from them.
    for at in (16..16 + 240).step_by(sized(4, 8, 12)) {
        for value in [0, 1, 2, 3, 33, 0x7FFF_FFFF, u32::MAX] {
            let mut changed = bytes.clone();
            changed[at..at + 4].copy_from_slice(&value.to_le_bytes());
            trial(changed);
        }
        for bit in (0..32).step_by(sized(1, 3, 5)) {
            let mut changed = bytes.clone();
            changed[at + bit / 8] ^= 1 << (bit % 8);
            trial(changed);
        }
    }
    // Changes the contents of the parts.
    for round in 0..sized(400, 80, 40) {
        let mut changed = bytes.clone();
        for part in &parts[1..] {
            for _ in 0..if part.is_empty() { 0 } else { 1 + round / 8 } {
                changed[part.start + random.below(part.len())] = random.number() as u8;
            }
        }
        trial(changed);
    }
    assert!(refused > 100 && made > 10, "{refused} are refused, {made} are tables");
}

fn files_of_random_bytes<S: Kind>(device: &Device) {
    let (table, _) = small::<S>(device);
    let whole = saved(&table);
    let mut random = Random::new(2);
    for round in 0..scaled(2000, 100) {
        // Keeps a prefix of a file (nothing, its magic, its header, or more), followed by random bytes.
        let known = [0, 8, 16, 60, 300, whole.len()][round % 6].min(whole.len());
        let len = random.below(2 * whole.len());
        let mut bytes: Vec<u8> = (0..len).map(|_| random.number() as u8).collect();
        let known = known.min(len);
        bytes[..known].copy_from_slice(&whole[..known]);
        match VectorTable::<S>::load(device, &bytes[..]) {
            Ok(loaded) => assert!(known == whole.len() && contents(&loaded) == contents(&table)),
            Err(error) => assert!(matches!(error, Error::File { .. }), "{error}"),
        }
    }
}

fn what_files_are_not<S: Kind>(device: &Device) {
    let load = |bytes: &[u8]| VectorTable::<S>::load(device, bytes);
    let png = b"\x89PNG\r\n\x1a\n and so on";
    let error = load(png).unwrap_err();
    assert_eq!(error, Error::File { fault: FileFault::Foreign { found: png[..8].try_into().unwrap() } });
    assert!(error.to_string().contains("89, 50, 4e"), "{error}");
    let (table, _) = small::<S>(device);
    let mut bytes = saved(&table);
    bytes[8..12].copy_from_slice(&77u32.to_le_bytes());
    let error = load(&bytes).unwrap_err();
    assert_eq!(error, Error::File { fault: FileFault::Newer { version: 77, newest: 2 } });
    assert!(error.to_string().contains("77"), "{error}");
    // Tables of another kind or width.
    let bytes = saved(&table);
    let other = |fault: FileFault, with: &[&str]| match fault {
        FileFault::OtherTable { found, wanted } => {
            assert!(with.iter().all(|text| found.contains(text) || wanted.contains(text)), "{found}, {wanted}");
        }
        fault => panic!("{fault}"),
    };
    other(fault(warpset::RootTable::load(device, &bytes[..])), &["4-word", "RootTable of 2-word"]);
    other(fault(Table::<[u32; 5], S>::load(device, &bytes[..])), &["4-word", "5-word"]);
    assert!(Table::<[u32; 4], S>::load(device, &bytes[..]).is_ok());
    assert!(Table::<[u64; 2], S>::load(device, &bytes[..]).is_ok());
    match <S as Kind>::NAME {
        "bucket" => other(fault(warpset::TreeTable::load(device, &bytes[..])), &["BucketTable", "TreeTable"]),
        _ => other(fault(warpset::BucketTable::load(device, &bytes[..])), &["BucketTable"]),
    }
}

/// Reads a few bytes at a time, and is interrupted.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.1 += 1;
        if self.1.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = (self.1 % 17 + 1).min(to.len());
        self.0.read(&mut to[..len])
    }
}

/// Accepts a limited number of bytes.
struct Short(usize);

impl Write for Short {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::Error::new(io::ErrorKind::StorageFull, "the disk is full")) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn readers_and_writers_of_every_kind<S: Kind>(device: &Device) {
    let (table, words) = small::<S>(device);
    let bytes = saved(&table);
    let loaded = VectorTable::<S>::load(device, Slow(&bytes, 0)).unwrap();
    assert!(contents(&loaded) == contents(&table));
    for room in (0..bytes.len()).step_by(scaled(7, 50)) {
        match table.save(Short(room)).unwrap_err() {
            Error::Io { doing: "writing a table", at, kind: io::ErrorKind::StorageFull, reason } => {
                assert!(at <= room as u64 && reason.contains("disk is full"));
            }
            error => panic!("{error}"),
        }
    }
    assert!(table.contains_many(&words).unwrap().iter().all(|stored| *stored));
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("no cable"))
        }
    }
    let error = VectorTable::<S>::load(device, Broken).unwrap_err();
    assert_eq!(error, Error::Io { doing: "reading a table", at: 0, kind: io::ErrorKind::Other, reason: "no cable".into() });
    // Several tables in one stream.
    let mut stream = Vec::new();
    (0..3).for_each(|_| table.save(&mut stream).unwrap());
    let mut reader = &stream[..];
    for _ in 0..3 {
        assert!(contents(&VectorTable::<S>::load(device, &mut reader).unwrap()) == contents(&table));
    }
    assert!(reader.is_empty());
}

/// Tests that do not apply to all kinds of tables.
pub mod saved_once {
    use super::*;
    use crate::common::tests;
    use warpset::{BucketTable, Indexed, IndexedTable, RootTable, Strategy, TreeTable, TypedTable};

    tests![
        compact_tables_of_every_width,
        hash_families_are_compared,
        cuckoo_tables_keep_their_keys,
        strategies_are_kept,
        padded_and_dense_slots,
        keys_of_types,
        holes_are_kept,
        parts_of_many_blocks,
        sizes_that_nobody_has_memory_for,
        files_are_written_through_no_link,
        files_without_a_descriptor_for_their_folder,
    ];

    /// The temporary file beside the target is created as a new file: an existing link of that name is not followed.
    fn files_are_written_through_no_link(device: &Device) {
        if !cfg!(unix) {
            return;
        }
        let folder = Folder::new();
        let (path, target) = (folder.path("table"), folder.path("target"));
        std::fs::write(&target, "precious").unwrap();
        // The next numbers of temporary files, in case other tests save meanwhile.
        let probe = warpset::NewFile::beside(&folder.path("probe")).unwrap();
        let name = folder.files().into_iter().find_map(|file| Some(file.to_str()?.strip_suffix(".part")?.to_owned())).unwrap();
        let next: u64 = name.rsplit('.').next().unwrap().parse::<u64>().unwrap() + 1;
        drop(probe);
        let name = |number: u64| format!(".table.{}.{number}.part", std::process::id());
        let links: Vec<PathBuf> = (next..next + 2000).map(|number| folder.path(&name(number))).collect();
        #[cfg(unix)]
        links.iter().for_each(|link| std::os::unix::fs::symlink(&target, link).unwrap());
        let (table, words) = small::<warpset::Bucket>(device);
        let is_right = || {
            let loaded = BucketTable::load_file(device, &path).unwrap();
            assert!(loaded.contains_many(&words).unwrap().iter().all(|stored| *stored));
            assert_eq!(std::fs::read(&target).unwrap(), b"precious");
            assert!(links.iter().all(|link| link.is_symlink()));
        };
        table.save_file(&path).unwrap();
        is_right();
        // A link at the target path is replaced.
        std::fs::remove_file(&path).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&target, &path).unwrap();
        table.save_file(&path).unwrap();
        is_right();
        assert!(!path.is_symlink());
    }

    /// If the folder cannot be opened, so that it could not be synchronised at the end, the file stays unchanged.
    fn files_without_a_descriptor_for_their_folder(device: &Device) {
        if !cfg!(unix) || device.is_gpu() {
            return;
        }
        let folder = Folder::new();
        let (table, _) = small::<warpset::Bucket>(device);
        table.save_file(folder.path("table")).unwrap();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -n 100 && exec \"$0\""]).arg(std::env::current_exe().unwrap());
        let said = crate::suite::hostile_files::lines_of(command, device, "few descriptors", &folder);
        // The table saved before has 7 vectors, that of the process has 1.
        assert_eq!(said, ["0 left: false, 7 stored", "1 left: false, 7 stored", "2 left: true, 1 stored"]);
    }

    /// Replaces a table's file while few more files can be opened.
    pub fn save_with_few_descriptors(device: &Device, folder: &std::path::Path) {
        let path = folder.join("table");
        let table = BucketTable::new(device, 4, 8).unwrap();
        table.find_or_put_many(&[1, 2, 3, 4]).unwrap().complete(&table).unwrap();
        for left in 0..3 {
            let mut open: Vec<std::fs::File> = (0..).map_while(|_| std::fs::File::open("/dev/null").ok()).collect();
            open.truncate(open.len() - left);
            let saved = table.save_file(&path);
            drop(open);
            let stored = BucketTable::load_file(device, &path).unwrap().len().unwrap();
            println!("{left} left: {}, {stored} stored", saved.is_ok());
        }
    }

    fn compact_tables_of_every_width(device: &Device) {
        for (key_bits, slot_bits) in [(20, 16), (26, 16), (30, 32), (40, 32), (50, 64), (64, 64)] {
            for cuckoo in [false, true] {
                let builder = RootTable::builder().key_bits(key_bits).slot_bits(slot_bits).capacity(1 << 16).cuckoo(cuckoo);
                let table = builder.build(device).unwrap();
                let keys: Vec<u64> =
                    (0..20_000u64).map(|key| key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - key_bits)).collect();
                let batch = table.find_or_put_many_with(&keys, everything()).unwrap();
                let references: Vec<Reference> = batch.references.iter().flatten().copied().collect();
                let loaded = RootTable::load(device, &saved(&table)[..]).unwrap();
                assert_eq!(loaded.stats().unwrap(), table.stats().unwrap());
                assert_eq!(loaded.spec(), table.spec());
                let now = loaded.loaded_references(&references).unwrap();
                assert!(loaded.get_many(&now).unwrap() == keys);
                assert_eq!(loaded.find_or_put_many(&keys).unwrap().tally.new, 0);
                assert!(loaded.contains_many(&[u64::MAX >> (64 - key_bits)]).is_ok());
                if key_bits < 64 {
                    assert!(loaded.find_or_put_many(&[1 << key_bits]).is_err(), "it has the table's bits");
                }
                loaded.reserve_total(4 * loaded.slots()).unwrap();
                assert!(loaded.contains_many(&keys).unwrap().iter().all(|stored| *stored));
            }
        }
    }

    /// With another hash family no stored vector would be found.
    fn hash_families_are_compared(device: &Device) {
        let table = RootTable::builder().key_bits(40).capacity(1000).build(device).unwrap();
        table.find_or_put_many(&[1, 2, 3]).unwrap().complete(&table).unwrap();
        let mut bytes = saved(&table);
        let parts = parts(&bytes);
        // Offsets of the seed, the factors and the step.
        for at in [16 + 144, 16 + 208, 16 + 216, 16 + 224, 16 + 232] {
            bytes[at] ^= 2;
            sign(&mut bytes, &parts);
            match fault(RootTable::load(device, &bytes[..])) {
                FileFault::Damaged { what, .. } => assert!(what.contains("hash family"), "{what}"),
                fault => panic!("{fault}"),
            }
            bytes[at] ^= 2;
        }
        sign(&mut bytes, &parts);
        assert!(RootTable::load(device, &bytes[..]).unwrap().contains_many(&[1, 2, 3, 4]).unwrap() == [true, true, true, false]);
    }

    /// Nearly full tables, and tables after a relocation that was stopped at each of its calls (on a GPU, keys are in no slot
    /// then).
    fn cuckoo_tables_keep_their_keys(device: &Device) {
        let make = || {
            let table = RootTable::builder().key_bits(30).capacity(1 << 12).cuckoo(true).seed(5).build(device).unwrap();
            let keys: Vec<u64> =
                (0..table.slots() * 96 / 100).map(|key| u64::from((key as u32).wrapping_mul(0x9E37_79B1) >> 2)).collect();
            table.find_or_put_many(&keys).unwrap().complete(&table).unwrap();
            (table, keys)
        };
        let (table, _) = make();
        let (_, calls) = warpset::faults::count(|| table.relocate().unwrap());
        for call in 0..=calls {
            let (table, keys) = make();
            let _ = warpset::faults::fail(call..u64::MAX, || table.relocate());
            let loaded = RootTable::load(device, &saved(&table)[..]).unwrap();
            assert!(loaded.contains_many(&keys).unwrap().iter().all(|stored| *stored), "call {call} of {calls}");
            assert_eq!(loaded.len().unwrap(), keys.len() as u64, "call {call} of {calls}");
            let more: Vec<u64> = (0..loaded.slots() / 100).map(|key| key * key + 1).collect();
            loaded.find_or_put_many(&more).unwrap().complete(&loaded).unwrap();
            loaded.relocate().unwrap();
            assert!(loaded.contains_many(&keys).unwrap().iter().all(|stored| *stored));
        }
    }

    fn strategies_are_kept(device: &Device) {
        let words = distinct(9, 0, 300);
        for strategy in Strategy::ALL {
            let table = TreeTable::builder(9).capacity(1000).nodes(8000).strategy(strategy).build(device).unwrap();
            table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
            let loaded = TreeTable::load(device, &saved(&table)[..]).unwrap();
            assert_eq!(loaded.spec(), table.spec());
            assert!(contents(&loaded) == contents(&table), "{strategy}");
            assert_eq!(loaded.find_or_put_many(&words).unwrap().tally.seen, 300, "{strategy}");
        }
    }

    /// Padded slots and dense slots are loaded as the same kind; a CPU has no padded slots.
    fn padded_and_dense_slots(device: &Device) {
        for width in 1..=20 {
            for dense in [false, true] {
                for (from, to) in devices(device).iter().flat_map(|other| [(device, other), (other, device)]) {
                    let table = BucketTable::builder(width).capacity(500).dense(dense).build(from).unwrap();
                    let words = distinct(width, 0, 450);
                    table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
                    let loaded = BucketTable::load(to, &saved(&table)[..]).unwrap();
                    assert!(loaded.contains_many(&words).unwrap().iter().all(|stored| *stored));
                    assert_eq!((loaded.len().unwrap(), loaded.find_or_put_many(&words).unwrap().tally.new), (450, 0));
                    let made = BucketTable::builder(width).capacity(500).dense(dense).build(to).unwrap();
                    assert_eq!(loaded.spec(), made.spec(), "padded as others of the device");
                }
            }
        }
    }

    fn keys_of_types(device: &Device) {
        let keys: Vec<[u16; 6]> = (0..500u16).map(|key| [key, 1, key.wrapping_mul(key), 3, 4, 5]).collect();
        let table = TypedTable::<[u16; 6], Indexed>::new(device, 1000).unwrap();
        table.find_or_put_many(&keys).unwrap().complete(&table).unwrap();
        let bytes = saved(&table);
        let loaded = TypedTable::<[u16; 6], Indexed>::load(device, &bytes[..]).unwrap();
        assert!(loaded.rows().unwrap()[..] == table.rows().unwrap()[..]);
        let words = IndexedTable::load(device, &bytes[..]).unwrap();
        assert!(words.rows().unwrap()[..] == *bytemuck::cast_slice::<[u16; 6], u32>(&table.rows().unwrap()));
    }

    /// Holes that overlapping calls have left remain holes, and later puts take them first. (Few rounds have holes: the test of
    /// this name in src/saved/tests.rs makes one.)
    fn holes_are_kept(device: &Device) {
        let (width, count) = (2, scaled(20_000, 500));
        for round in 0..sized(20, 6, 3) {
            let table = IndexedTable::builder(width).capacity(8 * count as u64).build(device).unwrap();
            let words = distinct(width, round * count as u64, count);
            std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| table.find_or_put_many(&words).unwrap().tally))));
            let holes = table.holes().unwrap();
            let loaded = IndexedTable::load(device, &saved(&table)[..]).unwrap();
            assert_eq!(loaded.holes().unwrap(), holes);
            assert!(contents(&loaded) == contents(&table));
            let more = distinct(width, 1 << 40, count);
            let batch = loaded.find_or_put_many_with(&more, everything()).unwrap();
            assert_eq!(batch.tally.new, count as u64);
            // On a GPU there may be more holes than the batch has vectors; unused rows behind the last row taken are no holes.
            let (left, most) = (loaded.holes().unwrap().len(), holes.len().saturating_sub(count));
            assert!(left <= most, "a batch alone fills them: {left}, and not {most}");
            assert_eq!(contents(&loaded).len(), 2 * count);
            if holes.len() <= count {
                assert!(contents(&loaded).keys().copied().eq(0..2 * count as u64));
                loaded.truncate(count as u64 / 2).unwrap();
                assert_eq!(loaded.len().unwrap(), count as u64 / 2);
            }
        }
    }

    fn parts_of_many_blocks(device: &Device) {
        let (width, count) = (8, sized(300_000, 80_000, 20_000));
        let words = distinct(width, 0, count);
        let table = IndexedTable::builder(width).capacity(2 * count as u64).build(device).unwrap();
        table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
        let mut bytes = saved(&table);
        let loaded = IndexedTable::load(device, &bytes[..]).unwrap();
        assert!(loaded.rows().unwrap()[..] == table.rows().unwrap()[..]);
        assert!(loaded.contains_many(&words).unwrap().iter().all(|stored| *stored));
        // A file whose blocks are in another order is no table. The rows are its last part.
        let (block, row_bytes) = (1 << 20, count * width * 4);
        if row_bytes >= 2 * block {
            let rows = bytes.len() - (row_bytes + row_bytes.div_ceil(block) * 4);
            let (first, second) = bytes[rows..][..2 * (block + 4)].split_at_mut(block + 4);
            first.swap_with_slice(second);
            match fault(IndexedTable::load(device, &bytes[..])) {
                FileFault::Damaged { at, bytes, .. } => assert_eq!((at, bytes), (rows as u64, block as u64 + 4)),
                fault => panic!("{fault}"),
            }
            let (first, second) = bytes[rows..][..2 * (block + 4)].split_at_mut(block + 4);
            first.swap_with_slice(second);
            assert!(IndexedTable::load(device, &bytes[..]).is_ok());
        }
        let table = TreeTable::builder(width).capacity(2 * count as u64).nodes(8 * count as u64).build(device).unwrap();
        table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
        let loaded = TreeTable::load(device, &saved(&table)[..]).unwrap();
        assert!(loaded.stats().unwrap() == table.stats().unwrap() && contents(&loaded) == contents(&table));
    }

    /// A header that claims 2^38 slots is an error before memory is allocated.
    fn sizes_that_nobody_has_memory_for(device: &Device) {
        let (table, _) = small::<warpset::Bucket>(device);
        let bytes = saved(&table);
        let parts = parts(&bytes);
        let per_bucket = u64::from(u32::from_le_bytes(bytes[16 + 32..16 + 36].try_into().unwrap()));
        let buckets = 1u64 << 36; // whole slices
        for (at, value) in [(16 + 80, buckets), (16 + 184, buckets * per_bucket * 16)] {
            let mut changed = bytes.clone();
            changed[at..at + 8].copy_from_slice(&value.to_le_bytes());
            sign(&mut changed, &parts);
            let error = BucketTable::load(device, &changed[..]).unwrap_err();
            assert!(matches!(error, Error::File { fault: FileFault::Damaged { .. } }), "one without the other: {error}");
        }
        let mut changed = bytes.clone();
        changed[16 + 80..16 + 88].copy_from_slice(&buckets.to_le_bytes());
        changed[16 + 184..16 + 192].copy_from_slice(&(buckets * per_bucket * 16).to_le_bytes());
        sign(&mut changed, &parts);
        match BucketTable::load(device, &changed[..]).unwrap_err() {
            Error::OutOfMemory { asked, free: Some(free), .. } => assert!(asked >= buckets * per_bucket * 16 && asked > free),
            error => panic!("{error}"),
        }
    }
}
