//! Indexed tables: references are dense, in order, and stay.

use crate::common::tests;
use crate::common::vectors::{distinct, some_widths};
use crate::common::{scaled, set::everything};
use std::collections::HashSet;
use warpset::{Device, Error, IndexedTable, Outcome, Reference, Request};

tests![
    references_are_all_numbers_below_len,
    vectors_are_iterated_in_order,
    references_stay_when_the_table_grows,
    growing_tables_keep_their_references,
    truncating_takes_back_what_came_later,
    holes_of_overlapping_calls_are_few_and_used_again,
    numbers_that_are_no_vectors_are_errors,
];

fn table(device: &Device, width: usize, capacity: u64) -> IndexedTable {
    IndexedTable::builder(width).capacity(capacity).build(device).unwrap()
}

fn slots(references: &[Option<Reference>]) -> Vec<u64> {
    references.iter().map(|reference| reference.expect("it fits").slot()).collect()
}

/// Each vector offered several times, far apart and together, so that threads race for them.
fn repeated(words: &[u32], width: usize) -> Vec<u32> {
    let together = words.chunks(width).flat_map(|row| [row, row].concat());
    [words.to_vec(), together.collect(), words.to_vec()].concat()
}

fn references_are_all_numbers_below_len(device: &Device) {
    for width in some_widths() {
        let count = scaled(20_000, 500);
        let table = table(device, width, 4 * count as u64);
        for batch in 0..3 {
            let words = repeated(&distinct(width, batch * count as u64, count), width);
            let batch = table.find_or_put_many_with(&words, everything()).unwrap();
            let len = table.len().unwrap();
            assert_eq!((batch.tally.new, batch.tally.full), (count as u64, 0));
            let all: HashSet<u64> = slots(&batch.references).into_iter().collect();
            assert!(all == (len - count as u64..len).collect(), "{width} words: the next numbers, each once");
            let mut new: Vec<u64> = batch.new_references.iter().map(|reference| reference.slot()).collect();
            new.sort_unstable();
            assert!(new.into_iter().eq(len - count as u64..len));
            let references: Vec<Reference> = batch.references.into_iter().flatten().collect();
            assert!(table.get_many(&references).unwrap() == words);
            assert!(slots(&table.locate_many(&words).unwrap()).iter().zip(&references).all(|(at, is)| *at == is.slot()));
        }
    }
}

fn vectors_are_iterated_in_order(device: &Device) {
    let (width, count) = (3, scaled(20_000, 500));
    let table = table(device, width, 2 * count as u64);
    let words = distinct(width, 0, count);
    table.find_or_put_many(&repeated(&words, width)).unwrap().complete(&table).unwrap();
    let rows: Vec<(Reference, Vec<u32>)> = table.iter().collect::<Result<_, _>>().unwrap();
    assert!(rows.iter().map(|(reference, _)| reference.slot()).eq(0..count as u64));
    let references: Vec<Reference> = rows.iter().map(|(reference, _)| *reference).collect();
    assert!(table.get_many(&references).unwrap() == rows.concat_words());
}

trait Words {
    fn concat_words(&self) -> Vec<u32>;
}

impl Words for Vec<(Reference, Vec<u32>)> {
    fn concat_words(&self) -> Vec<u32> {
        self.iter().flat_map(|(_, vector)| vector.iter().copied()).collect()
    }
}

fn references_stay_when_the_table_grows(device: &Device) {
    for width in some_widths() {
        let count = scaled(5000, 300);
        let table = table(device, width, 2 * count as u64);
        let words = distinct(width, 0, count);
        let batch = table.find_or_put_many_with(&words, everything()).unwrap();
        let before: Vec<Reference> = batch.references.into_iter().flatten().collect();
        for _ in 0..3 {
            table.grow(2 * table.slots()).unwrap();
            assert!(table.get_many(&before).unwrap() == words);
            let again = table.find_or_put_many_with(&words, everything()).unwrap();
            assert_eq!((again.tally.seen, again.tally.new), (count as u64, 0), "none is New again");
            assert!(again.references.into_iter().flatten().eq(before.iter().copied()));
            assert_eq!(table.stats().unwrap().stored, count as u64);
        }
    }
}

fn growing_tables_keep_their_references(device: &Device) {
    let (width, count) = (5, scaled(100_000, 3000));
    let table = IndexedTable::builder(width).capacity(100).grows(true).build(device).unwrap();
    let words = distinct(width, 0, count);
    let mut all = Vec::new();
    for part in words.chunks(width * (count / 10)) {
        let batch = table.find_or_put_many_with(part, everything()).unwrap();
        all.extend(batch.references.iter().flatten());
        assert!(batch.outcomes.iter().all(|outcome| *outcome == Outcome::New));
        assert!(table.get_many(&all).unwrap() == words[..all.len() * width]);
    }
    let numbers: HashSet<u64> = all.iter().map(|reference| reference.slot()).collect();
    assert!(numbers == (0..count as u64).collect());
    assert!(table.slots() as f64 * 0.85 >= count as f64);
}

fn truncating_takes_back_what_came_later(device: &Device) {
    for width in some_widths() {
        let count = scaled(5000, 300);
        let table = table(device, width, 4 * count as u64);
        let [first, second] = [0, count as u64].map(|from| distinct(width, from, count));
        let kept = table.find_or_put_many_with(&first, everything()).unwrap();
        let mark = table.len().unwrap();
        let gone = table.find_or_put_many_with(&second, everything()).unwrap();
        table.truncate(mark).unwrap();
        assert_eq!(table.len().unwrap(), mark);
        assert!(table.contains_many(&first).unwrap().iter().all(|stored| *stored));
        assert!(!table.contains_many(&second).unwrap().iter().any(|stored| *stored));
        let references: Vec<Reference> = kept.references.into_iter().flatten().collect();
        assert!(table.get_many(&references).unwrap() == first);
        let error = table.get_many(&gone.new_references).unwrap_err();
        assert_eq!(error, Error::InvalidReferences { invalid: count as u64, count });
        let again = table.find_or_put_many_with(&second, everything()).unwrap();
        assert_eq!(again.tally.new, count as u64);
        assert!(slots(&again.references).into_iter().collect::<HashSet<_>>() == (mark..2 * mark).collect());
        table.truncate(0).unwrap();
        assert!(table.is_empty().unwrap() && table.iter().next().is_none());
        table.truncate(10).unwrap();
    }
}

fn holes_of_overlapping_calls_are_few_and_used_again(device: &Device) {
    let (width, count, callers) = (2, scaled(20_000, 500), 4);
    let table = table(device, width, 8 * count as u64);
    let words = distinct(width, 0, count);
    let batches: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let put = || slots(&table.find_or_put_many_with(&words, Request::new().references(true)).unwrap().references);
        let callers: Vec<_> = (0..callers).map(|_| scope.spawn(put)).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert!(batches.iter().all(|batch| *batch == batches[0]), "what was handed out is final");
    // Alone: holes are closed, or filled.
    let more = distinct(width, count as u64, count);
    let batch = table.find_or_put_many_with(&[words, more.clone()].concat(), everything()).unwrap();
    assert_eq!(batch.tally.new, count as u64);
    let all = slots(&batch.references);
    assert!(all[..count] == batches[0]);
    assert!(all.into_iter().collect::<HashSet<_>>() == (0..2 * count as u64).collect());
}

fn numbers_that_are_no_vectors_are_errors(device: &Device) {
    let table = table(device, 3, 100);
    table.find_or_put_many(&distinct(3, 0, 10)).unwrap().complete(&table).unwrap();
    let references: Vec<Reference> = (0..20).map(|number| table.reference(number).unwrap()).collect();
    assert!(table.get_many(&references[..10]).is_ok());
    assert_eq!(table.get_many(&references), Err(Error::InvalidReferences { invalid: 10, count: 20 }));
}
