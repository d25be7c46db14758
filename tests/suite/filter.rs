//! Bucket tables with a filter for lookups of absent vectors. Results are those of a table without.
//!
//! Keeps this promise of `src/docs/choosing_a_table.md`:
//!
//! - A table with a filter answers as a table without. A lookup uses the filter only if no put is under way; the filter counts as
//!   memory; GPUs refuse it (also `src/backend/cpu/filter.rs`, `tests/simt/tests/controls.rs`).

use crate::common::checker::{Checker, OrFail};
use crate::common::histories::{play, thorough};
use crate::common::scaled;
use crate::common::tests;
use crate::common::vectors::{Family, Pool, all_widths, distinct};
use std::collections::HashSet;
use std::thread;
use warpset::{BucketTable, Device, Error, MemoryLimit, TableBuilder};

tests![
    filters_are_refused_by_gpus,
    filtered_tables_keep_all_promises,
    filtered_tables_grow_and_forget,
    filtered_lookups_see_what_was_acknowledged,
    filters_take_a_byte_a_slot,
];

fn builder(width: usize, capacity: u64) -> TableBuilder {
    BucketTable::builder(width).capacity(capacity).filter(true)
}

fn filters_are_refused_by_gpus(device: &Device) {
    let built = builder(2, 100).build(device);
    if device.is_gpu() {
        assert!(matches!(&built, Err(Error::WrongDevice { given: named, .. }) if *named == device.to_string()), "{built:?}");
    } else {
        assert!(built.is_ok(), "{built:?}");
    }
}

/// Every width, all families of vectors, tables that fill up, and hashes that all collide: then all vectors have the same bits.
fn filtered_tables_keep_all_promises(device: &Device) {
    if device.is_gpu() {
        return;
    }
    for width in all_widths() {
        for (mask, family) in [(u64::MAX, Family::Random), (u64::MAX, Family::LastWord), (0, Family::CommonPrefix)] {
            let pool = Pool::of(family, width, scaled(if mask == 0 { 60 } else { 300 }, 40));
            let table = builder(width, 2 * pool.len() as u64).hash_mask(mask).build(device).unwrap();
            play(&mut Checker::new(&table, &pool), &table, &pool, &thorough()).or_fail(format!("width {width}, {family:?}"));
            let small = builder(width, pool.len() as u64 / 2).hash_mask(mask).build(device).unwrap();
            play(&mut Checker::of_small(&small, &pool), &small, &pool, &thorough()).or_fail(format!("width {width}, small"));
        }
    }
}

/// The filter of a table that has grown, has been cleared, has retained some vectors, or was saved and loaded.
fn filtered_tables_grow_and_forget(device: &Device) {
    if device.is_gpu() {
        return;
    }
    for width in [1, 2, 3, 8, 17, 32, 65] {
        let count = scaled(20_000, 1000);
        let (stored, others) = (distinct(width, 0, count), distinct(width, count as u64, count));
        let table = builder(width, 100).grows(true).build(device).unwrap();
        let check = |expected: &dyn Fn(usize) -> bool, when: &str| {
            let found = table.contains_many(&stored).unwrap();
            assert!(found.iter().enumerate().all(|(at, found)| *found == expected(at)), "width {width}, {when}");
            assert!(table.contains_many(&others).unwrap().iter().all(|found| !found), "width {width}, {when}");
        };
        table.find_or_put_many(&stored).unwrap().complete(&table).unwrap();
        check(&|_| true, "grown by itself");
        table.reserve_total(4 * table.slots()).unwrap();
        check(&|_| true, "reserved");
        let mut file = Vec::new();
        table.save(&mut file).unwrap();
        let loaded = BucketTable::load(device, &file[..]).unwrap();
        assert!(loaded.contains_many(&stored).unwrap().iter().all(|found| *found), "width {width}, loaded");
        let kept: HashSet<&[u32]> = stored.chunks(width).step_by(3).collect();
        table.retain(|vector| kept.contains(vector)).unwrap();
        check(&|at| at % 3 == 0, "retained");
        table.clear().unwrap();
        check(&|_| false, "cleared");
        assert!(table.contains_many(&stored).unwrap().iter().all(|found| !found), "width {width}");
        table.find_or_put_many(&stored).unwrap().complete(&table).unwrap();
        check(&|_| true, "filled again");
    }
}

/// A vector that was put, or Seen by a lookup or a put, is found by every lookup that begins later, while others put and the
/// table grows.
fn filtered_lookups_see_what_was_acknowledged(device: &Device) {
    if device.is_gpu() {
        return;
    }
    for (width, grows) in [(1, false), (2, true), (8, false), (32, true)] {
        let count = scaled(12_000, 600);
        let vectors = distinct(width, 0, count);
        let table = builder(width, if grows { 64 } else { 2 * count as u64 }).grows(grows).build(device).unwrap();
        thread::scope(|scope| {
            let write = |step: usize| {
                for batch in vectors.chunks(step * width) {
                    assert_eq!(table.find_or_put_many(batch).unwrap().tally.full, 0);
                    // Vectors that this call has put, or has Seen while the other writer was putting them.
                    assert!(table.contains_many(batch).unwrap().iter().all(|found| *found), "width {width}");
                }
            };
            let writers = [7, 50].map(|step| scope.spawn(move || write(step)));
            let mut seen = vec![false; count];
            while !writers.iter().all(|writer| writer.is_finished()) {
                let found = table.contains_many(&vectors).unwrap();
                assert!(seen.iter().zip(&found).all(|(before, now)| *now || !before), "width {width}: forgotten");
                seen = found;
            }
        });
        assert!(table.contains_many(&vectors).unwrap().iter().all(|found| *found), "width {width}");
        assert_eq!(table.len().unwrap(), count as u64);
    }
}

fn filters_take_a_byte_a_slot(device: &Device) {
    if device.is_gpu() {
        return;
    }
    let [with, without] = [true, false].map(|filter| builder(4, 10_000).filter(filter).build(device).unwrap());
    assert_eq!(with.bytes() - without.bytes(), with.slots().next_multiple_of(8));
    // Growth counts it as well.
    let limit = 1 << 20;
    let table = builder(2, 100).grows(true).memory(MemoryLimit::Reserved(limit)).build(device).unwrap();
    let batch = table.find_or_put_many(&distinct(2, 0, 200_000)).unwrap();
    assert!(batch.tally.full > 0 && table.bytes() <= limit, "{} bytes", table.bytes());
}
