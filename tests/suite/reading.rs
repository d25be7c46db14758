//! Reading a table: by reference, by iteration over several parts, and as statistics.
//!
//! Keeps this promise of the documentation of `Stats`:
//!
//! - Statistics are exact (also `nodes.rs`).

use crate::common::vectors::{Pool, distinct, some_widths};
use crate::common::{
    kinds::{Kind, roomy},
    scaled, tests_of_all_kinds,
};
use std::collections::{HashMap, HashSet};
use warpset::{Device, Reference, Request, VectorTable};

tests_of_all_kinds![
    references_may_repeat_and_come_in_any_order,
    references_by_the_thousand,
    slot_numbers_make_references,
    iteration_over_several_parts,
    iteration_over_an_empty_table,
    statistics_of_an_empty_and_of_a_known_table,
    every_word_of_the_widest_vector_arrives,
];

fn put<S: Kind>(table: &VectorTable<S>, vectors: &[u32]) -> Vec<Reference> {
    let batch = table.find_or_put_many_with(vectors, Request::new().references(true)).unwrap();
    batch.references.into_iter().map(|reference| reference.expect("it fits")).collect()
}

fn references_may_repeat_and_come_in_any_order<S: Kind>(device: &Device) {
    for width in some_widths() {
        let (table, pool) = (roomy::<S>(width, 200).build(device).unwrap(), Pool::distinct(width, 100));
        let references = put::<S>(&table, pool.words());
        let order = pool.shuffled(3, 1);
        let asked: Vec<Reference> = order.iter().map(|at| references[*at]).collect();
        assert!(table.get_many(&asked).unwrap() == pool.batch(&order), "width {width}");
    }
}

/// The count is large enough that several threads take part.
fn references_by_the_thousand<S: Kind>(device: &Device) {
    let count = scaled(30_000, 500);
    let table = roomy::<S>(5, 2 * count as u64).build(device).unwrap();
    let vectors = distinct(5, 0, count);
    let references = put::<S>(&table, &vectors);
    assert!(table.get_many(&references).unwrap() == vectors);
    let distinct: HashSet<u64> = references.iter().map(|reference| reference.slot()).collect();
    assert_eq!(distinct.len(), count);
    assert!(distinct.iter().all(|slot| *slot < table.slots()));
}

fn slot_numbers_make_references<S: Kind>(device: &Device) {
    let table = roomy::<S>(2, 100).build(device).unwrap();
    let references = put::<S>(&table, &[1, 2, 3, 4]);
    let again: Vec<Reference> = references.iter().map(|reference| table.reference(reference.slot()).unwrap()).collect();
    assert_eq!(again, references);
    assert_eq!(table.get_many(&again).unwrap(), [1, 2, 3, 4]);
}

/// A part is about 16 MiB of slots, so wide slots make several parts. The table is nearly full, so that a slot at the seam of two
/// parts that is left out, or returned twice, shows.
fn iteration_over_several_parts<S: Kind>(device: &Device) {
    let width = 256;
    let table = roomy::<S>(width, (20 << 20) / 1024).build(device).unwrap();
    let vectors = distinct(width, 0, table.slots() as usize + 1000);
    let batch = table.find_or_put_many_with(&vectors, Request::new().references(true)).unwrap();
    assert!(batch.tally.new > table.slots() * 99 / 100, "{} of {} slots", batch.tally.new, table.slots());
    let stored: HashMap<Reference, usize> =
        batch.references.iter().zip(0..).filter_map(|(place, at)| Some(((*place)?, at))).collect();
    let mut given = HashSet::new();
    for row in &table {
        let (reference, vector) = row.unwrap();
        assert!(given.insert(reference), "{reference:?} twice");
        assert!(stored.get(&reference).is_some_and(|at| vectors[at * width..][..width] == vector), "{reference:?}");
    }
    assert_eq!((given.len(), given.len() as u64), (stored.len(), table.len().unwrap()));
}

fn iteration_over_an_empty_table<S: Kind>(device: &Device) {
    let table = roomy::<S>(3, 1000).build(device).unwrap();
    assert_eq!(table.iter().count(), 0);
    let _ = table.find_or_put_many(&[1, 2, 3]).unwrap();
    let mut rows = table.iter();
    assert!(rows.next().is_some());
    assert!(rows.next().is_none() && rows.next().is_none(), "it stays at its end");
}

fn statistics_of_an_empty_and_of_a_known_table<S: Kind>(device: &Device) {
    for width in some_widths() {
        let table = roomy::<S>(width, 1000).build(device).unwrap();
        let empty = table.stats().unwrap();
        assert_eq!((empty.stored, empty.longest_probe, empty.fill()), (0, 0, 0.0));
        assert!(empty.bytes_per_vector().is_infinite());
        assert!(table.is_empty().unwrap());
        let _ = table.find_or_put_many(&distinct(width, 0, 300)).unwrap();
        let stats = table.stats().unwrap();
        assert_eq!((stats.stored, stats.slots, stats.bytes), (300, table.slots(), table.bytes()));
        assert_eq!(stats.fill(), 300.0 / table.slots() as f64);
        assert_eq!(stats.bytes_per_vector(), table.bytes() as f64 / 300.0);
        assert!(stats.mean_probe() >= 1.0 && stats.mean_probe() <= stats.longest_probe as f64);
        assert!(!table.is_empty().unwrap());
    }
}

fn every_word_of_the_widest_vector_arrives<S: Kind>(device: &Device) {
    let table = roomy::<S>(256, 100).build(device).unwrap();
    let vectors: Vec<u32> = (0..256 * 50u32).map(|word| word.wrapping_mul(0x0100_0193)).collect();
    let references = put::<S>(&table, &vectors);
    assert!(table.get_many(&references).unwrap() == vectors);
}
