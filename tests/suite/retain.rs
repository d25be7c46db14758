//! Tables that are rebuilt with some of their vectors.
//!
//! Keeps these promises of the documentation of `Table::retain`:
//!
//! - `retain` calls its predicate once for each vector, and keeps those that the predicate accepts. Nothing changes if it accepts
//!   all, fails or panics (also `faults.rs`).
//! - After `retain`, rows keep their order and have no holes, and each vector keeps its values (also `src/core/arrays.rs`).

use crate::common::kinds::{Kind, roomy};
use crate::common::vectors::{distinct, keys, mix, some_widths};
use crate::common::{scaled, sized, tests_of_all_kinds};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use warpset::{Device, Error, Indexed, IndexedTable, Reference, Request, RootTable, TreeTable, TypedTable};

tests_of_all_kinds![as_a_set_does, nothing_to_remove_changes_nothing, a_predicate_that_panics];

/// Tests of indexed tables, of their values, and of cuckoo tables.
pub mod retain_of_kinds {
    use super::*;
    use crate::common::tests;

    tests![rows_keep_their_order, values_move_with_their_vectors, cuckoo_tables_that_are_full, full_trees_of_which_all_stay];

    fn rows_keep_their_order(device: &Device) {
        for width in some_widths() {
            let count = scaled(5000, 300);
            let words = IndexedTable::builder(width).capacity(2 * count as u64).build(device).unwrap();
            let _ = words.find_or_put_many(&distinct(width, 0, count)).unwrap();
            let before = words.rows().unwrap().to_vec();
            let stays = |vector: &[u32]| !mix(u64::from(vector[0])).is_multiple_of(4);
            let expected: Vec<u32> = before.chunks(width).filter(|vector| stays(vector)).flatten().copied().collect();
            let mut shown = Vec::new();
            let removed = words.retain(|vector| {
                shown.extend_from_slice(vector);
                stays(vector)
            });
            assert!(shown == before, "every vector is shown once, in order");
            assert_eq!(removed, Ok(((before.len() - expected.len()) / width) as u64));
            assert!(words.rows().unwrap()[..] == expected && words.holes().unwrap().is_empty(), "{width} words");
            let places: Vec<Reference> = words.locate_many(&expected).unwrap().into_iter().flatten().collect();
            assert!(places.iter().map(|of| of.slot()).eq(0..words.len().unwrap()));
            // Numbers go on behind them.
            let batch = words.find_or_put_many(&distinct(width, 0, count)).unwrap();
            assert_eq!(batch.tally.new, removed.unwrap());
            assert_eq!(words.len(), Ok(count as u64));
        }
    }

    fn values_move_with_their_vectors(device: &Device) {
        let count = scaled(6000, 600);
        let table = TypedTable::<u64, Indexed>::builder().capacity(500).grows(true).build(device).unwrap();
        // Squares are set before, cubes between the changes, and nothing of the third.
        let mut squares = table.values(0u64).unwrap();
        let (mut cubes, nothing) = (table.values([0u32; 3]).unwrap(), table.values(0u8).unwrap());
        let put = |keys: Vec<u64>| -> Vec<Reference> {
            let batch = table.find_or_put_many_with(&keys, Request::new().references(true)).unwrap();
            batch.references.into_iter().flatten().collect()
        };
        let square = |key: u64| key * key + 1;
        let all: Vec<u64> = (0..count).collect();
        let places = put(all.clone());
        squares.set_many(&places, &all.iter().map(|key| square(*key)).collect::<Vec<_>>()).unwrap();
        assert_eq!(table.retain(|key| key % 3 > 0), Ok(count.div_ceil(3)));
        assert_eq!(squares.get_many(&places[..1]), Err(Error::StaleReferences { stale: 1, count: 1 }));
        let left: Vec<u64> = table.rows().unwrap().to_vec();
        cubes.update(|cubes| cubes.iter_mut().zip(&left).for_each(|(cube, key)| *cube = [*key as u32; 3])).unwrap();
        // Others come, some are taken back, and some go again, before the squares are looked at.
        let mark = table.len().unwrap();
        let _ = put((count..count + 50).collect());
        table.truncate(mark + 20).unwrap();
        let mut rows = table.rows().unwrap().to_vec();
        let removed = table.retain(|key| key % 2 == 0).unwrap();
        rows.retain(|key| key % 2 == 0);
        assert!(removed > 0 && table.rows().unwrap()[..] == rows);
        let (seen, cubes) = (squares.view().unwrap(), cubes.view().unwrap());
        for (at, key) in rows.iter().enumerate() {
            let is_old = *key < count;
            assert_eq!((seen[at], cubes[at]), if is_old { (square(*key), [*key as u32; 3]) } else { (0, [0; 3]) }, "{key}");
        }
        assert!(seen.len() == rows.len() && nothing.view().unwrap().iter().all(|value| *value == 0));
        drop((seen, cubes));
        // Numbers that are given again begin with zeros.
        let new = put((10 * count..11 * count).collect());
        assert!(squares.get_many(&new).unwrap().iter().all(|value| *value == 0));
    }

    /// A table of the same size and seeds need not have room for the same vectors in another order. None is needed.
    fn full_trees_of_which_all_stay(device: &Device) {
        for seed in 0..20 {
            let table = TreeTable::builder(8).capacity(256).nodes(1200).seed(seed).build(device).unwrap();
            let vectors = distinct(8, 0, 300);
            let full = vectors.chunks(8).filter(|vector| table.find_or_put_many(vector).unwrap().tally.full > 0).count();
            let before = table.len().unwrap();
            assert!(full > 0 && before > 10, "{before} vectors, seed {seed}");
            let (mut shown, places) = (0, table.locate_many(&vectors).unwrap());
            let all = |_: &[u32]| {
                shown += 1;
                true
            };
            assert_eq!((table.retain(all), shown), (Ok(0), before), "seed {seed}");
            assert!(table.locate_many(&vectors).unwrap() == places, "nothing has moved");
        }
    }

    fn cuckoo_tables_that_are_full(device: &Device) {
        let table = RootTable::builder().key_bits(40).capacity(scaled(1 << 15, 1 << 12)).cuckoo(true).build(device).unwrap();
        let keys = keys(40, table.slots() as usize * 98 / 100);
        table.find_or_put_many(&keys).unwrap().complete(&table).unwrap();
        let stays = |key: &u64| *key != keys[7] && *key != keys[8];
        assert_eq!(table.retain(stays), Ok(2));
        let contained = table.contains_many(&keys).unwrap();
        assert!(keys.iter().zip(contained).all(|(key, contained)| contained == stays(key)));
        assert_eq!(table.len(), Ok(keys.len() as u64 - 2));
    }
}

fn as_a_set_does<S: Kind>(device: &Device) {
    for width in some_widths() {
        let count = sized(2000, 500, 200);
        let words = distinct(width, 0, count);
        let table = roomy::<S>(width, 2 * count as u64).build(device).unwrap();
        let places = table.find_or_put_many_with(&words, Request::new().references(true)).unwrap();
        let mut expected: HashSet<&[u32]> = words.chunks(width).collect();
        for round in 1..4 {
            let stays = |vector: &[u32]| !mix(u64::from(vector[width - 1]) + round).is_multiple_of(3);
            let before = expected.len();
            expected.retain(|vector| stays(vector));
            assert_eq!(table.retain(stays), Ok((before - expected.len()) as u64));
            let contained = table.contains_many(&words).unwrap();
            assert!(words.chunks(width).zip(contained).all(|(vector, contained)| contained == expected.contains(vector)));
            assert_eq!((table.len(), table.stats().unwrap().stored), (Ok(expected.len() as u64), expected.len() as u64));
        }
        let first = &places.references[..1].iter().flatten().copied().collect::<Vec<_>>();
        assert_eq!(table.get_many(first), Err(Error::StaleReferences { stale: 1, count: 1 }));
        // As in a new table.
        assert_eq!(table.find_or_put_many(&words).unwrap().tally.new, (count - expected.len()) as u64);
        let (nodes, fresh) = (table.nodes().unwrap(), roomy::<S>(width, 2 * count as u64).build(device).unwrap());
        let _ = fresh.find_or_put_many(&words).unwrap();
        assert_eq!(nodes, fresh.nodes().unwrap(), "nodes that are not needed are gone");
        assert_eq!(table.retain(|_| false), Ok(count as u64));
        assert_eq!((table.len(), table.nodes(), table.iter().count()), (Ok(0), Ok(0), 0));
    }
}

fn nothing_to_remove_changes_nothing<S: Kind>(device: &Device) {
    let words = distinct(5, 0, 200);
    let table = roomy::<S>(5, 500).build(device).unwrap();
    assert_eq!(table.retain(|_| panic!("there is no vector")), Ok(0));
    let batch = table.find_or_put_many_with(&words, Request::new().references(true)).unwrap();
    let places: Vec<Reference> = batch.references.into_iter().flatten().collect();
    assert_eq!(table.retain(|_| true), Ok(0));
    assert_eq!(table.get_many(&places).unwrap(), words);
}

fn a_predicate_that_panics<S: Kind>(device: &Device) {
    let words = distinct(5, 0, 200);
    let table = roomy::<S>(5, 500).build(device).unwrap();
    let batch = table.find_or_put_many_with(&words, Request::new().references(true)).unwrap();
    let places: Vec<Reference> = batch.references.into_iter().flatten().collect();
    let mut left = 50;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        table.retain(|_| {
            left -= 1;
            assert!(left > 0, "on purpose");
            false
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(table.get_many(&places).unwrap(), words);
    assert_eq!(table.retain(|vector| vector != &words[..5]), Ok(1));
}
