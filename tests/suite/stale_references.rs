//! References from before a growth, a clearing or a relocation, and of other tables: every call that takes references returns an
//! error for them, before it changes anything.
//!
//! Keeps this promise of `README.md`:
//!
//! - A stale reference, or one of another table, is an error in every host call, before anything is changed.
//!
//! Keeps this promise of the documentation of `Reference`:
//!
//! - `None` costs nothing: `Option<Reference>` has 8 bytes.

use crate::common::kinds::{Kind, roomy};
use crate::common::tests_of_all_kinds;
use crate::common::vectors::distinct;
use warpset::{Device, Error, Reference, Request, Root, VectorTable};

tests_of_all_kinds!(after_a_growth, after_growths_of_its_own, after_a_clearing, of_another_table, as_parents, from_slot_numbers);

const WIDTH: usize = 8;
const COUNT: usize = 180;

#[track_caller]
fn are_stale<S: Kind>(table: &VectorTable<S>, references: &[Reference], expected: u64) {
    let error = table.get_many(references).expect_err("stale references");
    assert_eq!(error, Error::StaleReferences { stale: expected, count: references.len() });
    let message = error.to_string();
    assert!(message.contains(&expected.to_string()) && message.contains(&references.len().to_string()), "{message}");
}

fn put<S: Kind>(table: &VectorTable<S>, words: &[u32]) -> Vec<Reference> {
    let batch = table.find_or_put_many_with(words, Request::new().references(true)).unwrap();
    batch.references.into_iter().map(|reference| reference.expect("it fits")).collect()
}

fn after_a_growth<S: Kind>(device: &Device) {
    let (table, words) = (roomy::<S>(WIDTH, 400).build(device).unwrap(), distinct(WIDTH, 0, COUNT));
    let before = put(&table, &words);
    assert!(table.get_many(&before).unwrap() == words);
    table.reserve_total(4 * table.slots()).unwrap();
    if S::IN_ORDER {
        assert!(table.get_many(&before).unwrap() == words);
        return;
    }
    are_stale(&table, &before, COUNT as u64);
    // One stale reference among valid ones.
    let now = put(&table, &words);
    assert!(table.get_many(&now).unwrap() == words);
    let mut mixed = now.clone();
    mixed[77] = before[77];
    are_stale(&table, &mixed, 1);
    // Calls without an effect make no reference stale.
    table.reserve_total(10).unwrap();
    assert!(table.get_many(&now).unwrap() == words);
}

/// References that a batch returns are valid for the table at its end.
fn after_growths_of_its_own<S: Kind>(device: &Device) {
    let table = S::with_few_nodes(VectorTable::<S>::builder(WIDTH).capacity(200), 200).grows(true).build(device).unwrap();
    let words = distinct(WIDTH, 0, 5000);
    let first = put(&table, &words[..100 * WIDTH]);
    let all = put(&table, &words);
    assert!(table.get_many(&all).unwrap() == words);
    if S::IN_ORDER {
        assert!(table.get_many(&first).unwrap() == words[..100 * WIDTH]);
        return;
    }
    are_stale(&table, &first, 100);
}

fn after_a_clearing<S: Kind>(device: &Device) {
    let (table, words) = (roomy::<S>(WIDTH, 400).build(device).unwrap(), distinct(WIDTH, 0, COUNT));
    let before = put(&table, &words);
    table.clear().unwrap();
    are_stale(&table, &before, COUNT as u64);
    let now = put(&table, &words);
    are_stale(&table, &before, COUNT as u64);
    assert!(table.get_many(&now).unwrap() == words);
}

fn of_another_table<S: Kind>(device: &Device) {
    let words = distinct(WIDTH, 0, COUNT);
    let [one, other] = [1, 2].map(|_| roomy::<S>(WIDTH, 400).seed(1).build(device).unwrap());
    let (of_one, of_other) = (put(&one, &words), put(&other, &words));
    are_stale(&one, &of_other, COUNT as u64);
    are_stale(&other, &of_one, COUNT as u64);
}

/// With masks, stale parents would give other vectors, so nothing is put; without masks they are harmless.
fn as_parents<S: Kind>(device: &Device) {
    let (table, words) = (roomy::<S>(WIDTH, 4000).build(device).unwrap(), distinct(WIDTH, 0, COUNT));
    let before = put(&table, &words);
    // Makes references of each kind stale.
    if S::IN_ORDER {
        table.clear().unwrap();
        put(&table, &words);
    } else {
        table.reserve_total(4 * table.slots()).unwrap();
    }
    // Successors: the last word differs.
    let successors: Vec<u32> =
        words.chunks(WIDTH).flat_map(|row| row[..WIDTH - 1].iter().copied().chain([row[WIDTH - 1] ^ 1])).collect();
    let masks = vec![1 << (WIDTH - 1); COUNT];
    let error = table.find_or_put_many_with(&successors, Request::new().parents(&before).changed(&masks)).expect_err("stale");
    assert_eq!(error, Error::StaleReferences { stale: COUNT as u64, count: COUNT });
    assert_eq!(table.len().unwrap(), COUNT as u64, "nothing is put");
    let batch = table.find_or_put_many_with(&successors, Request::new().parents(&before)).unwrap();
    assert_eq!(batch.tally.new, COUNT as u64);
    assert!(table.contains_many(&successors).unwrap().iter().all(|stored| *stored));
    assert_eq!(table.len().unwrap(), 2 * COUNT as u64, "what was offered and nothing else");
    // Valid parents are accepted.
    let now = put(&table, &words);
    let batch = table.find_or_put_many_with(&successors, Request::new().parents(&now).changed(&masks)).unwrap();
    assert_eq!(batch.tally.seen, COUNT as u64);
}

fn from_slot_numbers<S: Kind>(device: &Device) {
    let (table, words) = (roomy::<S>(WIDTH, 400).build(device).unwrap(), distinct(WIDTH, 0, COUNT));
    let references = put(&table, &words);
    for reference in &references {
        assert_eq!(table.reference(reference.slot()), Some(*reference));
        assert_eq!(Reference::from_bits(reference.to_bits()), Some(*reference));
    }
    // There are a few more rows than slots of an index.
    assert_eq!(table.reference(if S::IN_ORDER { 1 << 39 } else { table.slots() }), None);
    assert_eq!(table.reference(u64::MAX), None);
    assert_eq!(size_of::<Option<Reference>>(), 8);
}

/// Tests of relocation.
pub mod of_cuckoo_tables {
    use super::*;
    use crate::common::tests;

    tests![after_relocation];

    fn after_relocation(device: &Device) {
        let table = VectorTable::<Root>::builder(2).key_bits(30).capacity(1 << 12).cuckoo(true).build(device).unwrap();
        let keys: Vec<u32> = (0..1000u32).flat_map(|key| [key.wrapping_mul(0x9E37_79B1) >> 2, 0]).collect();
        let batch = table.find_or_put_many_with(&keys, Request::new().references(true)).unwrap();
        let before: Vec<Reference> = batch.references.into_iter().flatten().collect();
        assert!(table.get_many(&before).unwrap() == keys);
        table.relocate().unwrap();
        assert_eq!(table.get_many(&before), Err(Error::StaleReferences { stale: 1000, count: 1000 }));
    }
}
