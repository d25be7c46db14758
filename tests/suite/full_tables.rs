//! Tables without a free slot: vectors that do not fit are rejected and reported, and nothing else changes.
//!
//! Keeps these promises of `README.md`:
//!
//! - `Full` changes nothing that is stored.
//! - No vector is rejected up to fill 0.95 (also `compact_keys.rs`).
//!
//! Keeps this promise of `src/docs/memory_and_growth.md`:
//!
//! - Tables of up to 1,024 buckets fill to the last slot.
//!
//! Keeps this promise of `src/docs/errors.md`:
//!
//! - The error of `complete` says how many vectors were rejected.

use crate::common::checker::{Checker, OrFail};
use crate::common::vectors::{Pool, distinct, some_widths};
use crate::common::{
    kinds::{Kind, roomy},
    scaled, sized, slots_per_bucket, tests_of_all_kinds,
};
use warpset::{Device, Error, Outcome, Request};

tests_of_all_kinds![
    small_tables_fill_to_the_last_slot,
    the_largest_completely_searched_table_fills_to_the_last_slot,
    stored_vectors_are_seen_in_a_full_table,
    rejected_vectors_fit_after_growing,
    one_batch_far_too_large,
    complete_says_how_many_were_rejected,
    nothing_is_rejected_up_to_95_percent,
];

/// Offers `surplus` more vectors than the table has slots, in several batches: each slot is used (in compact tables, most are).
fn fill<S: Kind>(device: &Device, width: usize, capacity: u64, surplus: usize, parts: usize) {
    let context = || format!("width {width}, capacity {capacity}, {surplus} vectors too many");
    let table = roomy::<S>(width, capacity).seed(11).build(device).unwrap();
    let slots = table.slots() as usize;
    let pool = Pool::distinct(width, slots + surplus);
    let mut checker = Checker::of_small(&table, &pool);
    for part in pool.shuffled(2, 1).chunks((2 * pool.len()).div_ceil(parts)) {
        let _ = checker.offer(part).or_fail(context());
    }
    let (stored, rejected) = (checker.stored().len(), checker.rejected().len());
    assert_eq!(stored + rejected, pool.len(), "{}", context());
    assert!(stored as u64 >= S::least_full(slots as u64), "{}: {stored} of {slots}", context());
    checker.check().or_fail(context());
    assert_eq!(table.stats().unwrap().fill(), stored as f64 / slots as f64, "{}", context());
}

fn small_tables_fill_to_the_last_slot<S: Kind>(device: &Device) {
    for width in some_widths() {
        for capacity in [1, 2, 3, 7, 17, 100, 331] {
            // Without a surplus the last vectors must find the last free slots, wherever these are.
            fill::<S>(device, width, capacity, 0, 1);
            fill::<S>(device, width, capacity, 100, 5);
        }
    }
}

/// 1,021 is the largest prime up to 1,024: a search looks at every bucket.
fn the_largest_completely_searched_table_fills_to_the_last_slot<S: Kind>(device: &Device) {
    for width in scaled(vec![1, 3, 5, 8, 16, 17], vec![7]) {
        fill::<S>(device, width, 1021 * slots_per_bucket::<S>(device, width), 0, 2);
        fill::<S>(device, width, 1021 * slots_per_bucket::<S>(device, width), 300, 2);
    }
}

fn stored_vectors_are_seen_in_a_full_table<S: Kind>(device: &Device) {
    for width in some_widths() {
        let table = roomy::<S>(width, 50).seed(11).build(device).unwrap();
        let pool = Pool::distinct(width, 2 * table.slots() as usize);
        let mut checker = Checker::of_small(&table, &pool);
        let _ = checker.offer(&pool.all()).or_fail(width);
        let (stored, rejected) = (checker.stored(), checker.rejected());
        let again = checker.offer(&stored).or_fail(width);
        assert!(again.outcomes.iter().all(|outcome| *outcome == Outcome::Seen));
        let refused = checker.offer(&rejected).or_fail(width);
        assert!(refused.outcomes.iter().all(|outcome| *outcome == Outcome::Full));
        assert!(refused.references.iter().all(Option::is_none));
        checker.check().or_fail(width);
    }
}

fn rejected_vectors_fit_after_growing<S: Kind>(device: &Device) {
    for width in some_widths() {
        let table = roomy::<S>(width, 50).seed(11).build(device).unwrap();
        let pool = Pool::distinct(width, S::least_full(2 * table.slots()) as usize);
        let mut checker = Checker::of_small(&table, &pool);
        let _ = checker.offer(&pool.all()).or_fail(width);
        let rejected = checker.rejected();
        checker.grow(2 * table.slots()).or_fail(width);
        checker.check().or_fail(width);
        let batch = checker.offer(&rejected).or_fail(width);
        assert_eq!(batch.tally.new, rejected.len() as u64, "width {width}");
        checker.check().or_fail(width);
    }
}

/// A batch larger than what the threads of a machine take at a time, for a table of a few slots.
fn one_batch_far_too_large<S: Kind>(device: &Device) {
    for width in [1, 5, 16] {
        let count = scaled(20_000, 1000);
        // Nodes for all vectors: nodes of vectors that find no slot are put too.
        let table = S::with_nodes(roomy::<S>(width, 3), width, count as u64).seed(11).build(device).unwrap();
        let batch = table.find_or_put_many(&distinct(width, 0, count)).unwrap();
        let slots = table.slots();
        let stored = table.len().unwrap();
        assert!(stored <= slots && stored >= S::least_full(slots), "width {width}: {stored} of {slots}");
        assert_eq!((batch.tally.new, batch.tally.seen, batch.tally.full), (stored, 0, count as u64 - stored), "width {width}");
    }
}

fn complete_says_how_many_were_rejected<S: Kind>(device: &Device) {
    let table = roomy::<S>(2, 10).seed(11).build(device).unwrap();
    let vectors = distinct(2, 0, 500);
    let first = table.find_or_put_many(&vectors).unwrap();
    assert_eq!(first.positions(Outcome::Full).count() as u64, first.tally.full);
    assert_eq!(first.positions(Outcome::New).count() as u64, table.slots());
    let error = first.complete(&table).expect_err("500 vectors do not fit");
    let slots_now = table.slots();
    let message = error.to_string();
    let Error::TableFull { rejected, offered, stored, slots, .. } = error else { panic!("{error:?}") };
    assert_eq!((rejected, offered, stored, slots), (500 - slots_now, 500, slots_now, slots_now));
    for number in [rejected, offered, stored] {
        assert!(message.contains(&number.to_string()), "{number} is not in: {message}");
    }
    // A batch that fits is complete, whatever results were requested; an incomplete batch is an error even without outcomes.
    let empty = table.find_or_put_many(&[]).unwrap();
    assert_eq!(empty.complete(&table).unwrap(), empty.tally);
    let unasked = table.find_or_put_many_with(&vectors, Request::new()).unwrap();
    assert!(unasked.outcomes.is_empty());
    assert!(matches!(unasked.complete(&table), Err(Error::TableFull { offered: 500, .. })));
}

/// Tables of up to a million slots, in buckets of one slot and of several.
fn nothing_is_rejected_up_to_95_percent<S: Kind>(device: &Device) {
    for width in [2, 16] {
        let table = roomy::<S>(width, sized(1_000_000, 250_000, 50_000)).build(device).unwrap();
        let count = (table.slots() as f64 * 0.95) as usize;
        let part = count.div_ceil(4);
        for first in (0..count).step_by(part) {
            let vectors = distinct(width, first as u64, part.min(count - first));
            let tally = table.find_or_put_many_with(&vectors, Request::new()).unwrap().tally;
            assert_eq!((tally.new, tally.full), (vectors.len() as u64 / width as u64, 0), "width {width}, from {first}");
            assert_eq!(table.find_or_put_many_with(&vectors, Request::new()).unwrap().tally.seen, tally.new);
        }
        let stats = table.stats().unwrap();
        assert_eq!(stats.stored, count as u64);
        assert!(stats.fill() > 0.9499 && stats.fill() <= 0.95, "{stats:?}");
    }
}
