//! Calls for one vector, and iterators of vectors: as batches of the same vectors.
//!
//! Keeps this promise of the documentation of `Table`:
//!
//! - Calls for one vector, and iterators of vectors, do what batches of the same vectors do.

use crate::common::kinds::{Kind, roomy};
use crate::common::vectors::{distinct, keys};
use crate::common::{scaled, sized, tests_of_all_kinds};
use std::collections::HashMap;
use warpset::{BucketTable, Device, Error, Indexed, Outcome, Root, Table, TypedTable, VectorTable};

tests_of_all_kinds![one_vector_at_a_time, iterators_of_several_batches, vectors_that_find_no_slot];

/// Tests of tables whose keys have a type.
pub mod single_keys {
    use super::*;
    use crate::common::tests;

    tests![keys_and_references_to_keys, tables_of_iterators];

    fn keys_and_references_to_keys(device: &Device) {
        let keys = keys(40, 500);
        let table = Table::<u64, Root>::builder().key_bits(40).capacity(2000).build(device).unwrap();
        let by_reference = table.extend(&keys[..300]).unwrap();
        let by_value = table.extend(keys[200..400].iter().copied()).unwrap();
        assert_eq!((by_reference.new, by_reference.seen, by_value.new, by_value.seen), (300, 0, 100, 100));
        assert_eq!((table.insert(&keys[0]).unwrap(), table.insert(&keys[499]).unwrap()), (Outcome::Seen, Outcome::New));
        assert_eq!((table.contains(&keys[399]), table.contains(&keys[450])), (Ok(true), Ok(false)));
        let place = table.locate(&keys[499]).unwrap().unwrap();
        assert_eq!((table.get(place), table.locate(&keys[450])), (Ok(keys[499]), Ok(None)));
        assert!(matches!(table.insert(&(1 << 40)), Err(Error::KeyTooLarge { position: 0, .. })));
        assert_eq!(table.len(), Ok(401));
    }

    fn tables_of_iterators(device: &Device) {
        let count = scaled(100_000, 3000);
        let numbers = TypedTable::<u64>::from_iter(device, (0..count).map(|number| number % (count / 2))).unwrap();
        assert_eq!(numbers.len(), Ok(count / 2));
        // An iterator that does not say how many it has.
        let rows =
            TypedTable::<[u32; 3], Indexed>::from_iter(device, (0..count as u32).filter(|n| n % 2 == 0).map(|n| [n, 0, n]));
        assert_eq!(rows.unwrap().len(), Ok(count / 2));
        let words = BucketTable::from_iter(device, 2, [[1, 2], [3, 4], [1, 2]]).unwrap();
        assert_eq!((words.len(), words.contains(&[3, 4])), (Ok(2), Ok(true)));
        let none = BucketTable::from_iter(device, 2, [[0; 2]; 0]).unwrap();
        assert_eq!(none.is_empty(), Ok(true));
    }
}

fn one_vector_at_a_time<S: Kind>(device: &Device) {
    for width in [1, 3, 16, 40] {
        let words = distinct(width, 0, scaled(60, 20));
        let table = roomy::<S>(width, 500).build(device).unwrap();
        let mut places = HashMap::new();
        for round in 0..2 {
            for vector in words.chunks(width) {
                assert_eq!(table.contains(vector), Ok(round == 1));
                assert_eq!(table.locate(vector).unwrap().is_some(), round == 1);
                assert_eq!(table.insert(vector), Ok(if round == 0 { Outcome::New } else { Outcome::Seen }));
                let place = table.locate(vector).unwrap().unwrap();
                assert_eq!(table.get(place).unwrap(), vector);
                assert_eq!(*places.entry(vector).or_insert(place), place);
            }
        }
        assert_eq!(table.len(), Ok(places.len() as u64));
        let wrong = Error::LengthMismatch { what: "words of the last vector", given: 2 * width, needed: width };
        assert_eq!(table.insert(&words[..2 * width]), Err(wrong.clone()));
        assert_eq!(table.contains(&words[..2 * width]), Err(wrong.clone()));
        assert_eq!(table.locate(&words[..2 * width]), Err(wrong));
        assert!(matches!(table.insert(&[]), Err(Error::LengthMismatch { given: 0, .. })));
    }
}

/// More vectors than a batch of an iterator has.
fn iterators_of_several_batches<S: Kind>(device: &Device) {
    let (width, count) = (64, sized(40_000, 10_000, 500));
    let words = distinct(width, 0, count);
    let table = VectorTable::<S>::builder(width).capacity(1000).grows(true).build(device).unwrap();
    let vectors = || words.chunks(width);
    let tally = table.extend(vectors().chain(vectors().take(count / 2))).unwrap();
    assert_eq!((tally.new, tally.seen, tally.full), (count as u64, count as u64 / 2, 0));
    assert!(table.contains_many(&words).unwrap().iter().all(|stored| *stored));
    // A vector of another width ends the call; its batch is not put.
    let more = distinct(width, count as u64, 3);
    let odd = more.chunks(width).chain([&more[1..]]);
    assert_eq!(
        table.extend(odd),
        Err(Error::LengthMismatch { what: "words of the last vector", given: 3 * width - 1, needed: width })
    );
    assert_eq!(table.len(), Ok(count as u64));
}

fn vectors_that_find_no_slot<S: Kind>(device: &Device) {
    let table = roomy::<S>(1, 100).build(device).unwrap();
    let words: Vec<u32> = (0..100_000).collect();
    let full = table.extend(words.chunks(1)).unwrap_err();
    let Error::TableFull { rejected, stored, offered: 100_000, .. } = full else { panic!("{full}") };
    assert_eq!((rejected + stored, table.len()), (100_000, Ok(stored)));
    let contained = table.contains_many(&words).unwrap();
    let (absent, present) =
        ([false, true]).map(|wanted| contained.iter().position(|found| *found == wanted).unwrap() as u32).into();
    assert!(matches!(table.insert(&[absent]), Err(Error::TableFull { rejected: 1, offered: 1, .. })));
    assert_eq!((table.insert(&[present]), table.contains(&[absent])), (Ok(Outcome::Seen), Ok(false)));

    let full = table.insert_many(&words).unwrap_err();
    let Error::TableFull { rejected, stored, offered: 100_000, slots, .. } = full else { panic!("{full}") };
    assert_eq!((rejected + stored, table.len(), slots), (100_000, Ok(stored), table.slots()));
    table.reserve_total(200_000).unwrap();
    let tally = table.insert_many(&words).unwrap();
    assert_eq!((tally.new, tally.seen, table.len()), (rejected, stored, Ok(100_000)));
}
