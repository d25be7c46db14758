//! Batches that put keys and combine operands with their values: as a map with entries does.
//!
//! Keeps these promises of `src/docs/indexed_tables.md`:
//!
//! - `add_many` and `upsert_many` do what a map's entries do, for every type and way to combine, exactly once a key, even while
//!   the table grows and others put. A rejected key changes nothing.
//! - Numbers that are given again begin with the initial value of the array.
//! - An upsert with a wrong number of operands is refused before anything changes. A failure changes no value of another key.

use crate::common::vectors::{distinct, mix, some_widths};
use crate::common::{scaled, tests};
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::thread;
use warpset::{Combine, Device, Error, Indexed, IndexedTable, Number, Outcome, Request, TypedTable, Values, faults};

tests![
    numbers_are_combined_as_in_a_map,
    every_width_counts_while_it_grows,
    rejected_keys_change_nothing,
    arrays_of_several_threads_count_exactly,
    initial_values_come_back,
    wrong_operands_are_refused,
    failures_change_no_other_value,
];

/// Keys from 0 to about a tenth of `count`, some of them often.
fn some_keys(count: u64, seed: u64) -> Vec<u64> {
    let key = |at| if mix(at ^ seed).is_multiple_of(3) { at % 7 } else { mix(at + seed) % (count / 10) };
    (0..count).map(key).collect()
}

fn numbers_are_combined_as_in_a_map(device: &Device) {
    // Halves are added without rounding.
    of_type::<u32>(device, |number| number as u32, |a, b| a.wrapping_add(b), |a, b| a < b);
    of_type::<i32>(device, |number| number as i32, |a, b| a.wrapping_add(b), |a, b| a < b);
    of_type::<f32>(device, |number| (number % 256) as f32 / 2.0 - 64.0, |a, b| a + b, |a, b| a < b);
    of_type::<u64>(device, |number| number.rotate_left(7), |a, b| a.wrapping_add(b), |a, b| a < b);
    of_type::<i64>(device, |number| number.rotate_left(9) as i64, |a, b| a.wrapping_add(b), |a, b| a < b);
    of_type::<f64>(device, |number| (number % 4096) as f64 / 4.0 - 512.0, |a, b| a + b, |a, b| a < b);

    fn of_type<V: Number + PartialEq + Debug>(
        device: &Device,
        number: impl Fn(u64) -> V,
        add: impl Fn(V, V) -> V,
        is_less: impl Fn(V, V) -> bool,
    ) {
        let count = scaled(20_000, 600);
        for combine in [Combine::Add, Combine::Min, Combine::Max, Combine::Set] {
            let table = TypedTable::<u64, Indexed>::builder().capacity(100).grows(true).build(device).unwrap();
            let initial = if combine == Combine::Add { V::zeroed() } else { number(mix(99)) };
            let mut values = table.values(initial).unwrap();
            let mut expected: HashMap<u64, V> = HashMap::new();
            for seed in 0..2 {
                let keys = some_keys(count, seed);
                let operands: Vec<V> = (0..count).map(|at| number(mix(at << 8 | seed))).collect();
                // The order of equal keys does not matter, but for `Set`: there they have equal operands.
                let operands: Vec<V> = match combine {
                    Combine::Set => keys.iter().map(|key| number(mix(*key << 8 | seed))).collect(),
                    _ => operands,
                };
                let batch = values.upsert_many(&keys, &operands, combine).unwrap();
                assert_eq!(batch.complete(&table).unwrap().offered(), count);
                for (key, operand) in keys.iter().zip(operands) {
                    let value = expected.entry(*key).or_insert(initial);
                    *value = match combine {
                        Combine::Add => add(*value, operand),
                        Combine::Min => {
                            if is_less(operand, *value) {
                                operand
                            } else {
                                *value
                            }
                        }
                        Combine::Max => {
                            if is_less(*value, operand) {
                                operand
                            } else {
                                *value
                            }
                        }
                        _ => operand,
                    };
                }
            }
            are_as_in(&table, &values, &expected);
        }
    }
}

/// Asserts that a table and its values are a map: by their slices, and by reference.
fn are_as_in<K, V>(table: &TypedTable<K, Indexed>, values: &Values<K, V>, expected: &HashMap<K, V>)
where
    K: bytemuck::Pod + Eq + Hash + Debug,
    V: bytemuck::Pod + PartialEq + Debug,
{
    let (rows, view) = (table.rows().unwrap().to_vec(), values.view().unwrap().to_vec());
    assert_eq!((rows.len(), view.len(), table.holes().unwrap().len()), (expected.len(), expected.len(), 0));
    for (key, value) in rows.iter().zip(&view) {
        assert_eq!(expected.get(key), Some(value), "{key:?}");
    }
    let references: Vec<_> = table.locate_many(&rows).unwrap().into_iter().flatten().collect();
    assert!(values.get_many(&references).unwrap() == view);
}

fn every_width_counts_while_it_grows(device: &Device) {
    for width in some_widths() {
        let count = scaled(3000, 200);
        let table = IndexedTable::builder(width).capacity(64).grows(true).build(device).unwrap();
        let mut counts = table.values(0u32).unwrap();
        let words = distinct(width, 0, count);
        // Vector number n is offered n % 4 + 1 times.
        let often = |at: usize| at % 4 + 1;
        let offered: Vec<u32> = words.chunks(width).enumerate().flat_map(|(at, vector)| vector.repeat(often(at))).collect();
        let slots = table.slots();
        let tally = counts.add_many(&offered, &[1]).unwrap().complete(&table).unwrap();
        assert_eq!((tally.new, tally.offered()), (count as u64, (offered.len() / width) as u64));
        assert!(table.slots() > slots);
        let references: Vec<_> = table.locate_many(&words).unwrap().into_iter().flatten().collect();
        let found = counts.get_many(&references).unwrap();
        assert!(found.iter().enumerate().all(|(at, count)| *count == often(at) as u32), "{width} words");
        // Looked up with the operands of some keys only, and no key.
        let none = counts.add_many(&[], &[]).unwrap();
        assert_eq!(none.tally.offered(), 0);
        let tens = vec![10; count / 2];
        let tally = counts.add_many(&words[..count / 2 * width], &tens).unwrap().complete(&table).unwrap();
        assert_eq!(tally.seen, count as u64 / 2);
        let view = counts.view().unwrap();
        assert_eq!(view.iter().map(|count| u64::from(*count)).sum::<u64>(), tally.seen * 10 + (offered.len() / width) as u64);
    }
}

fn rejected_keys_change_nothing(device: &Device) {
    let table = TypedTable::<u64, Indexed>::new(device, 500).unwrap();
    let mut sums = table.values(0u64).unwrap();
    let keys: Vec<u64> = (0..5000).chain(0..5000).collect();
    let amounts: Vec<u64> = (1..=10_000).collect();
    let batch = sums.upsert_many(&keys, &amounts, Combine::Add).unwrap();
    assert!(batch.tally.full > 0 && batch.tally.new >= 500);
    assert!(matches!(batch.complete(&table), Err(Error::TableFull { offered: 10_000, .. })));
    // Each stored key has its amounts, once.
    let mut expected: HashMap<u64, u64> = HashMap::new();
    let stored = |outcome: &Outcome| *outcome != Outcome::Full;
    for ((key, amount), _) in keys.iter().zip(&amounts).zip(&batch.outcomes).filter(|(_, outcome)| stored(outcome)) {
        *expected.entry(*key).or_default() += amount;
    }
    are_as_in(&table, &sums, &expected);
    let rejected: Vec<usize> = batch.positions(Outcome::Full).collect();
    table.reserve_total(10_000).unwrap();
    let (again, theirs): (Vec<u64>, Vec<u64>) = rejected.iter().map(|at| (keys[*at], amounts[*at])).unzip();
    sums.add_many(&again, &theirs).unwrap().complete(&table).unwrap();
    are_as_in(&table, &sums, &(0..5000).map(|key| (key, 2 * key + 5002)).collect());
}

/// Two threads count the same keys in arrays of their own, one puts other keys, and the table grows.
fn arrays_of_several_threads_count_exactly(device: &Device) {
    let count = scaled(60_000, 1500);
    let table = TypedTable::<u64, Indexed>::builder().capacity(100).grows(true).build(device).unwrap();
    let mut arrays = [0; 2].map(|_| table.values(0u64).unwrap());
    thread::scope(|scope| {
        for values in &mut arrays {
            scope.spawn(|| {
                for part in some_keys(count, 5).chunks(count as usize / 6) {
                    values.add_many(part, &[1]).unwrap().complete(&table).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for part in (count..2 * count).collect::<Vec<_>>().chunks(count as usize / 5) {
                table.find_or_put_many(part).unwrap().complete(&table).unwrap();
            }
        });
    });
    let mut expected: HashMap<u64, u64> = HashMap::new();
    some_keys(count, 5).into_iter().for_each(|key| *expected.entry(key).or_default() += 1);
    let stored = expected.len() as u64 + count;
    assert_eq!(table.len(), Ok(stored));
    for values in &arrays {
        let keys: Vec<u64> = expected.keys().copied().collect();
        let references: Vec<_> = table.locate_many(&keys).unwrap().into_iter().flatten().collect();
        let found = values.get_many(&references).unwrap();
        assert!(keys.iter().zip(&found).all(|(key, found)| expected[key] == *found));
        // The keys of the third thread have none.
        let others: Vec<_> = table.locate_many(&(count..2 * count).collect::<Vec<_>>()).unwrap().into_iter().flatten().collect();
        assert!(values.get_many(&others).unwrap().iter().all(|value| *value == 0));
    }
}

/// Numbers that are given again, in every way, begin with the initial value.
fn initial_values_come_back(device: &Device) {
    let table = TypedTable::<u64, Indexed>::builder().capacity(500).grows(true).build(device).unwrap();
    let mut lows = table.values(1000u32).unwrap();
    let mut triples = table.values([1u8, 2, 3]).unwrap();
    let check = |lows: &mut Values<u64, u32>, triples: &Values<u64, [u8; 3]>, from: u64| {
        let new = table.find_or_put_many_with(&[from, from + 1], Request::new().new_references(true)).unwrap().new_references;
        assert_eq!((lows.get_many(&new).unwrap(), triples.get_many(&new).unwrap()), (vec![1000; 2], vec![[1, 2, 3]; 2]));
        lows.upsert_many(&[from, from + 1], &[7, 2000], Combine::Min).unwrap().complete(&table).unwrap();
        assert_eq!(lows.get_many(&table.locate_many(&[from, from + 1]).unwrap().map_all()).unwrap(), [7, 1000]);
    };
    check(&mut lows, &triples, 0);
    triples.update(|triples| triples.fill([9; 3])).unwrap();
    table.truncate(1).unwrap();
    check(&mut lows, &triples, 10);
    table.clear().unwrap();
    check(&mut lows, &triples, 20);
    table.reserve_total(3000).unwrap();
    check(&mut lows, &triples, 30);
    let all: Vec<u64> = (100..400).collect();
    lows.upsert_many(&all, &all.iter().map(|key| *key as u32).collect::<Vec<_>>(), Combine::Min)
        .unwrap()
        .complete(&table)
        .unwrap();
    table.retain(|key| key % 2 == 0).unwrap();
    check(&mut lows, &triples, 50);
    let rows = table.rows().unwrap().to_vec();
    let view = lows.view().unwrap();
    assert!(rows.iter().zip(&view[..]).filter(|(key, _)| **key >= 100).all(|(key, low)| u64::from(*low) == *key));
}

trait MapAll<T> {
    fn map_all(self) -> Vec<T>;
}

impl<T> MapAll<T> for Vec<Option<T>> {
    fn map_all(self) -> Vec<T> {
        self.into_iter().map(|some| some.expect("it is stored")).collect()
    }
}

fn wrong_operands_are_refused(device: &Device) {
    let table = TypedTable::<u64, Indexed>::new(device, 500).unwrap();
    let mut values = table.values(0u32).unwrap();
    let wrong = |given| Err(Error::LengthMismatch { what: "operands", given, needed: 3 });
    assert_eq!(values.add_many(&[1, 2, 3], &[1, 2]), wrong(2));
    assert_eq!(values.add_many(&[1, 2, 3], &[]), wrong(0));
    let words = IndexedTable::new(device, 2, 100).unwrap();
    let mut beside = words.values(0u32).unwrap();
    assert_eq!(
        beside.add_many(&[1, 2, 3], &[1]),
        Err(Error::LengthMismatch { what: "words of the last vector", given: 1, needed: 2 })
    );
    assert_eq!((table.len(), words.len()), (Ok(0), Ok(0)));
}

/// Each call fails in turn: values of keys that are not in the batch stay, those of the batch are at most what they should be.
fn failures_change_no_other_value(device: &Device) {
    let keys: Vec<u64> = (0..scaled(600, 100)).map(|at| 1000 + at % 50).collect();
    let each = keys.len() as u64 / 50;
    let prepare = || {
        let table = TypedTable::<u64, Indexed>::builder().capacity(64).grows(true).build(device).unwrap();
        let mut values = table.values(0u64).unwrap();
        values.add_many(&(0..40).collect::<Vec<_>>(), &[5]).unwrap().complete(&table).unwrap();
        (table, values)
    };
    let (_table, mut values) = prepare();
    let (_, calls) = faults::count(|| values.add_many(&keys, &[1]).unwrap());
    for call in 0..calls {
        let (table, mut values) = prepare();
        let (result, _) = faults::fail(call..call + 1, || values.add_many(&keys, &[1]));
        let done = result.and_then(|batch| batch.complete(&table)).is_ok();
        let stored = table.locate_many(&(0..40).collect::<Vec<_>>()).unwrap().map_all();
        assert!(values.get_many(&stored).unwrap().iter().all(|value| *value == 5), "call {call} of {calls}");
        let mut theirs: Vec<_> = table.locate_many(&(1000..1050).collect::<Vec<_>>()).unwrap();
        theirs.retain(Option::is_some);
        let found = values.get_many(&theirs.map_all()).unwrap();
        assert!(found.iter().all(|value| *value <= each) && (!done || found == vec![each; 50]), "call {call} of {calls}");
    }
}
