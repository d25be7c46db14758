//! Indexed tables: references are dense, in order, and permanent.
//!
//! Keeps these promises of `src/docs/indexed_tables.md`:
//!
//! - If no calls overlapped, the references of an indexed table are all numbers below `len`, and iteration is in their order.
//! - References of an indexed table stay valid when it grows (under every schedule, too) (also `tests/simt/tests/indexed.rs`).
//! - Overlapping calls leave few holes. These are listed, skipped by iteration, and used first or left, as requested (also
//!   `src/core/indexed.rs`).
//! - `factorize_many` numbers values in the order of first occurrence (also `numpy.rs`, `examples/factorize/tests/factorize.rs`).
//! - The rows of an indexed table are one slice, which does not change while it lives.
//! - `truncate` takes back the vectors that came later, and nothing else.

use crate::common::tests;
use crate::common::vectors::{distinct, some_widths};
use crate::common::{scaled, set::everything, sized};
use std::collections::{HashMap, HashSet};
#[cfg(feature = "cuda")]
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::{Device, Error, Indexed, IndexedTable, Outcome, Reference, Request, TypedTable};

tests![
    references_are_all_numbers_below_len,
    vectors_are_iterated_in_order,
    references_stay_when_the_table_grows,
    growing_tables_keep_their_references,
    truncating_takes_back_what_came_later,
    holes_of_overlapping_calls_are_few_and_used_again,
    numbers_that_are_no_vectors_are_errors,
    rows_are_one_slice,
    keys_of_types_have_rows_too,
    vectors_of_every_width_have_their_rows,
    growth_to_8_byte_slots_keeps_references,
    full_indexes_take_back_and_grow,
    factors_are_in_the_order_of_first_occurrence,
];

/// Tests of functions of GPUs only.
#[cfg(feature = "cuda")]
pub mod on_gpu {
    use super::*;
    use warpset::BucketTable;
    use warpset::gpu::{Counts, DeviceBatch};

    tests![device_batches_leave_holes_that_are_listed, rows_are_a_buffer_of_other_batches, memory_for_rows_comes_as_they_do];

    /// Vectors that are offered many times at once leave holes, which later batches keep or fill.
    fn device_batches_leave_holes_that_are_listed(device: &Device) {
        let (width, count) = (4, sized(100_000, 30_000, 1000));
        // Each batch may leave a hole for each running thread: in total more rows than vectors.
        let table = table(device, width, 12 * count as u64);
        let stream = device.cuda_context().unwrap().new_stream().unwrap();
        let put = |words: &[u32], leave: bool| -> Vec<u64> {
            let vectors = stream.clone_htod(words).unwrap();
            let (mut counts, mut new) =
                (stream.alloc_zeros::<Counts>(1).unwrap(), stream.alloc_zeros(words.len() / width).unwrap());
            let batch = DeviceBatch::new(&vectors, words.len() / width).counts(&mut counts).new_references(&mut new);
            table.find_or_put_device(&stream, batch.leave_holes(leave)).unwrap();
            let new = stream.clone_dtoh(&new).unwrap();
            let counts = stream.clone_dtoh(&counts).unwrap()[0];
            new[..counts.tally().new as usize].to_vec()
        };
        let mut numbers = put(&repeated(&distinct(width, 0, count), width), false);
        for (round, leave) in [(1, true), (2, false), (3, true)] {
            let holes = table.holes().unwrap();
            let mut all: Vec<u64> = numbers.iter().chain(&holes).copied().collect();
            all.sort_unstable();
            let given = all.len() as u64;
            assert!(all.iter().copied().eq(0..given), "each number is a vector's or a hole");
            let rows: Vec<u64> = table.iter().map(|row| row.unwrap().0.slot()).collect();
            numbers.sort_unstable();
            assert!(rows == numbers, "in order, without holes");
            let new = put(&repeated(&distinct(width, round * count as u64, count), width), leave);
            assert_eq!(new.len(), count);
            assert!(!leave || new.iter().all(|number| *number >= given));
            numbers.extend(new);
        }
    }

    fn rows_are_a_buffer_of_other_batches(device: &Device) {
        let (width, count) = (3, scaled(50_000, 500));
        let words = distinct(width, 0, count);
        let (table, other) = (table(device, width, 2 * count as u64), BucketTable::new(device, width, 2 * count as u64).unwrap());
        table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
        let stream = device.cuda_context().unwrap().new_stream().unwrap();
        let rows = table.rows_device().unwrap();
        assert_eq!(rows.rows(), count as u64);
        other.find_or_put_device(&stream, DeviceBatch::new(&rows, count)).unwrap();
        stream.synchronize().unwrap();
        assert!(other.len().unwrap() == count as u64 && other.contains_many(&words).unwrap().iter().all(|stored| *stored));
    }

    fn memory_for_rows_comes_as_they_do(device: &Device) {
        let (width, count) = (32, sized(100_000, 30_000, 1000));
        let table = table(device, width, 100 * count as u64);
        let index = table.slots() * 8;
        assert!(table.bytes() <= index + (4 << 20), "hardly any rows have memory: {}", table.bytes());
        for round in 0..5 {
            table.find_or_put_many(&distinct(width, round * count as u64, count)).unwrap().complete(&table).unwrap();
            let rows = (round + 1) * count as u64 * width as u64 * 4;
            assert!(table.bytes() <= index + rows * 3 / 2 + (64 << 20), "{} bytes for {rows} of rows", table.bytes());
        }
        assert_eq!(table.iter().count(), 5 * count);
    }
}

fn table(device: &Device, width: usize, capacity: u64) -> IndexedTable {
    IndexedTable::builder(width).capacity(capacity).build(device).unwrap()
}

fn slots(references: &[Option<Reference>]) -> Vec<u64> {
    references.iter().map(|reference| reference.expect("it fits").slot()).collect()
}

/// Offers each vector several times, far apart and together, so that threads race.
fn repeated(words: &[u32], width: usize) -> Vec<u32> {
    let together = words.chunks(width).flat_map(|row| [row, row].concat());
    [words.to_vec(), together.collect(), words.to_vec()].concat()
}

fn references_are_all_numbers_below_len(device: &Device) {
    for width in some_widths() {
        let count = sized(20_000, 5000, 500);
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
            table.reserve_total(2 * table.slots()).unwrap();
            assert!(table.get_many(&before).unwrap() == words);
            let again = table.find_or_put_many_with(&words, everything()).unwrap();
            assert_eq!((again.tally.seen, again.tally.new), (count as u64, 0), "none is New again");
            assert!(again.references.into_iter().flatten().eq(before.iter().copied()));
            assert_eq!(table.stats().unwrap().stored, count as u64);
        }
    }
}

fn growing_tables_keep_their_references(device: &Device) {
    let (width, count) = (5, sized(100_000, 30_000, 3000));
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
    let first: HashSet<u64> = batches[0].iter().copied().collect();
    // On a GPU thousands of threads may have lost a claim to another caller's thread: each leaves a hole.
    let before: HashSet<u64> = table.holes().unwrap().into_iter().collect();
    let given = (count + before.len()) as u64;
    assert!(batches[0].iter().chain(&before).copied().collect::<HashSet<_>>() == (0..given).collect());
    // Without concurrency, new vectors get the numbers of holes first, and then the next ones.
    let more = distinct(width, count as u64, count);
    let batch = table.find_or_put_many_with(&[words, more].concat(), everything()).unwrap();
    assert_eq!(batch.tally.new, count as u64);
    let all = slots(&batch.references);
    assert!(all[..count] == batches[0]);
    assert_eq!(table.holes().unwrap().len(), before.len().saturating_sub(count));
    let new: HashSet<u64> = all[count..].iter().copied().collect();
    match before.len() <= count {
        true => assert!(new == (0..2 * count as u64).filter(|number| !first.contains(number)).collect()),
        false => assert!(new.is_subset(&before)),
    }
}

fn numbers_that_are_no_vectors_are_errors(device: &Device) {
    let table = table(device, 3, 100);
    table.find_or_put_many(&distinct(3, 0, 10)).unwrap().complete(&table).unwrap();
    let references: Vec<Reference> = (0..20).map(|number| table.reference(number).unwrap()).collect();
    assert!(table.get_many(&references[..10]).is_ok());
    assert_eq!(table.get_many(&references), Err(Error::InvalidReferences { invalid: 10, count: 20 }));
}

fn rows_are_one_slice(device: &Device) {
    for width in some_widths() {
        let count = scaled(5000, 300);
        let table = table(device, width, 8 * count as u64);
        assert!(table.rows().unwrap().is_empty());
        let batch = table.find_or_put_many_with(&repeated(&distinct(width, 0, count), width), everything()).unwrap();
        let rows = table.rows().unwrap();
        assert_eq!(rows.len(), count * width);
        let references: Vec<Reference> = (0..count as u64).map(|number| table.reference(number).unwrap()).collect();
        assert!(table.get_many(&references).unwrap() == rows[..]);
        // While the rows are borrowed, others put, and the borrowed contents stay.
        let before = rows.to_vec();
        std::thread::scope(|scope| {
            let put = |from: u64| table.find_or_put_many(&distinct(width, from * count as u64, count)).unwrap().tally.new;
            let callers = [1, 2].map(|from| scope.spawn(move || put(from)));
            assert!(callers.into_iter().all(|caller| caller.join().unwrap() == count as u64));
        });
        assert_eq!(table.find_or_put_many(&before).unwrap().tally.seen, count as u64, "also by the thread that holds them");
        assert!(rows[..] == before);
        let more = table.rows().unwrap();
        assert!(more.len() >= before.len() && more[..before.len()] == before);
        drop((rows, more));
        drop(batch);
        let last = distinct(width, 3 * count as u64, count);
        table.find_or_put_many(&last).unwrap().complete(&table).unwrap();
        let rows = table.rows().unwrap();
        assert_eq!(rows.len(), 4 * count * width, "the batch before has closed all holes");
        assert!(rows[..before.len()] == before);
    }
}

fn keys_of_types_have_rows_too(device: &Device) {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bytemuck::NoUninit, bytemuck::AnyBitPattern)]
    #[repr(C)]
    struct State {
        at: u64,
        flags: [u8; 8],
    }
    let states: Vec<State> = (0..1000).map(|at| State { at, flags: (at * at).to_le_bytes() }).collect();
    let table = TypedTable::<State, Indexed>::builder().capacity(100).grows(true).build(device).unwrap();
    for part in states.chunks(300) {
        table.find_or_put_many(part).unwrap().complete(&table).unwrap();
    }
    let rows = table.rows().unwrap();
    assert_eq!(rows.len(), states.len());
    let offered = rows.chunks(300).zip(states.chunks(300));
    assert!(offered.into_iter().all(|(rows, states)| rows.iter().collect::<HashSet<_>>() == states.iter().collect()));
    for (number, (reference, state)) in table.iter().map(Result::unwrap).enumerate() {
        assert_eq!((reference.slot(), state), (number as u64, rows[number]));
    }
}

fn vectors_of_every_width_have_their_rows(device: &Device) {
    // On a GPU each width needs a compilation of seconds.
    let widths = if device.is_gpu() { some_widths() } else { (1..=warpset::Spec::MAX_WIDTH).collect() };
    for width in widths {
        let count = 60;
        let table = table(device, width, 80);
        let words = distinct(width, 0, count);
        let batch = table.find_or_put_many_with(&repeated(&words, width), everything()).unwrap();
        assert_eq!((batch.tally.new, batch.tally.full), (count as u64, 0), "width {width}");
        let references: Vec<Reference> = batch.references.into_iter().flatten().collect();
        table.reserve_total(300).unwrap();
        assert!(table.get_many(&references[..count]).unwrap() == words, "width {width}");
        assert!(table.contains_many(&words).unwrap().iter().all(|stored| *stored), "width {width}");
        assert!(
            !table.contains_many(&distinct(width, count as u64, count)).unwrap().iter().any(|stored| *stored),
            "width {width}"
        );
        assert_eq!(table.rows().unwrap().len(), count * width, "width {width}");
    }
}

/// Row numbers beyond 2^24 leave no bits for tags in slots of 4 bytes.
fn growth_to_8_byte_slots_keeps_references(device: &Device) {
    let (width, count) = (3, scaled(5000, 300));
    let table = table(device, width, 2 * count as u64);
    let words = distinct(width, 0, 2 * count);
    let first = table.find_or_put_many_with(&words[..count * width], everything()).unwrap();
    let of_4_bytes = table.spec();
    table.reserve_total((1 << 24) + 1).unwrap();
    assert_ne!(table.spec(), of_4_bytes);
    let all = table.find_or_put_many_with(&words, everything()).unwrap();
    assert_eq!((all.tally.seen, all.tally.new), (count as u64, count as u64));
    assert!(all.references[..count] == first.references);
    assert!(slots(&all.references).into_iter().collect::<HashSet<_>>() == (0..2 * count as u64).collect());
    let references: Vec<Reference> = all.references.into_iter().flatten().collect();
    assert!(table.get_many(&references).unwrap() == words);
}

/// A table that is full to the last slot rejects vectors without losing rows: after a truncation or a growth the vectors fit, and
/// have the next numbers.
fn full_indexes_take_back_and_grow(device: &Device) {
    let width = 2;
    let table = table(device, width, 500);
    let slots = table.slots();
    let words = distinct(width, 0, 2 * slots as usize);
    let batch = table.find_or_put_many_with(&words, everything()).unwrap();
    assert_eq!((batch.tally.new, batch.tally.full), (slots, slots));
    assert_eq!((table.len().unwrap(), table.holes().unwrap()), (slots, vec![]));
    let rows = table.rows().unwrap().to_vec();
    table.truncate(slots / 2).unwrap();
    assert!(table.rows().unwrap()[..] == rows[..(slots / 2) as usize * width]);
    let again = table.find_or_put_many(&words).unwrap();
    assert_eq!((again.tally.new, again.tally.seen), (slots - slots / 2, slots / 2));
    table.reserve_total(3 * slots).unwrap();
    let last = table.find_or_put_many(&words).unwrap();
    assert_eq!((last.tally.new, last.tally.seen, last.tally.full), (slots, slots, 0));
    let numbers: Vec<u64> = table.iter().map(|row| row.unwrap().0.slot()).collect();
    assert!(numbers.into_iter().eq(0..2 * slots));
}

/// The numbers are those that one thread with a `HashMap` assigns.
fn factors_are_in_the_order_of_first_occurrence(device: &Device) {
    for width in some_widths() {
        let count = scaled(3000, 200);
        let once = distinct(width, 0, count);
        // Some vectors occur many times, some once, and first occurrences are far from the order of the values.
        let rows: Vec<u32> = (0..3 * count)
            .flat_map(|at| {
                let which = (at * 7919 + at / 5) % count * (at % 3 + 1) % count;
                once[which * width..][..width].to_vec()
            })
            .collect();
        let factors = IndexedTable::builder(width).capacity(50).factorize_many(device, &rows).unwrap();
        let (mut number_of, mut values) = (HashMap::new(), Vec::new());
        let expected: Vec<u64> = rows
            .chunks(width)
            .map(|row| {
                let next = number_of.len() as u64;
                *number_of.entry(row).or_insert_with(|| {
                    values.extend_from_slice(row);
                    next
                })
            })
            .collect();
        assert!(factors.numbers == expected && factors.distinct == values, "{width} words");
        let restored: Vec<u32> =
            factors.numbers.iter().flat_map(|number| &factors.distinct[*number as usize * width..][..width]).copied().collect();
        assert!(restored == rows);
    }
    let none = IndexedTable::builder(3).factorize_many(device, &[]).unwrap();
    assert!(none.numbers.is_empty() && none.distinct.is_empty());
    let keys = TypedTable::<u64, Indexed>::builder().factorize_many(device, &[9, 5, 9, 1, 5]).unwrap();
    assert_eq!((keys.numbers, keys.distinct), (vec![0, 1, 0, 2, 1], vec![9, 5, 1]));
    assert!(IndexedTable::builder(3).factorize_many(device, &[1, 2]).is_err(), "no whole vector");
}
