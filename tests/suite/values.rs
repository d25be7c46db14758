//! Values beside the vectors of indexed tables: accessed by reference, initially zero, and attached to their vectors' rows.
//!
//! Keeps these promises of `src/docs/indexed_tables.md`:
//!
//! - Values of every type are zeros until they are set. If a batch sets one reference several times, the last value counts.
//! - Updates are applied in order: a table and its values are a map (also `examples/count/tests/count.rs`).
//! - Values keep their contents and addresses when the table grows.
//! - Numbers that were taken back begin with zeros again.
//! - Holes have no values, and a vector that fills a hole begins with zeros (also `src/core/indexed.rs`).
//! - References to no vector, stale references and references of other tables are refused before any value changes.
//! - Arrays are independent of each other, and keep the memory of the table alive.
//! - Views stay valid while other threads put: puts move no row that was looked at (also `src/core/indexed.rs`).
//! - A failure changes no other value.
//! - Kernels find values at one address, however the table grows.

use crate::common::vectors::{distinct, some_widths};
use crate::common::{scaled, set::everything, tests};
use bytemuck::{Pod, Zeroable};
use std::collections::HashMap;
use std::fmt::Debug;
#[cfg(feature = "cuda")]
use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};
use warpset::{Device, Error, Indexed, IndexedTable, Reference, Request, TypedTable, Values, faults};

tests![
    values_are_zeros_until_they_are_set,
    values_stay_when_the_table_grows,
    values_of_numbers_that_are_taken_back_are_zeros,
    a_table_and_its_values_are_a_map,
    holes_of_overlapping_calls_have_no_values,
    references_that_are_not_the_tables_are_refused,
    arrays_are_by_themselves_and_outlive_the_table,
    views_stay_while_others_put,
    no_memory_for_values_is_an_error,
    failures_change_no_other_value,
];

fn table(device: &Device, width: usize, capacity: u64) -> IndexedTable {
    IndexedTable::builder(width).capacity(capacity).build(device).unwrap()
}

/// Puts vectors, and returns their references.
fn put(table: &IndexedTable, words: &[u32]) -> Vec<Reference> {
    let batch = table.find_or_put_many_with(words, Request::new().references(true)).unwrap();
    assert_eq!(batch.tally.full, 0);
    batch.references.into_iter().flatten().collect()
}

/// Values that differ in all bytes of a type.
fn some_values<V: Pod>(count: usize, from: usize) -> Vec<V> {
    let bytes: Vec<u8> = (0..count * size_of::<V>()).map(|at| (((at + from) * 2_654_435_761) >> 7) as u8).collect();
    bytes.chunks(size_of::<V>()).map(bytemuck::pod_read_unaligned).collect()
}

fn values_are_zeros_until_they_are_set(device: &Device) {
    #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
    #[repr(C)]
    struct Flags {
        level: u32,
        parent: [u16; 3],
        flags: [u8; 2],
    }
    of_type::<u8>(device);
    of_type::<[u8; 3]>(device);
    of_type::<u16>(device);
    of_type::<u32>(device);
    of_type::<u64>(device);
    of_type::<u128>(device);
    of_type::<Flags>(device);
    of_type::<[u64; 64]>(device);

    fn of_type<V: Pod + PartialEq + Debug>(device: &Device) {
        let (width, count) = (3, scaled(20_000, 400));
        let table = table(device, width, 4 * count as u64);
        let mut values = table.values(V::zeroed()).unwrap();
        assert!(values.is_empty().unwrap() && values.view().unwrap().is_empty());
        assert_eq!(values.get_many(&[]).unwrap(), []);
        values.set_many(&[], &[]).unwrap();
        let references = put(&table, &distinct(width, 0, count));
        assert_eq!((values.len().unwrap(), values.view().unwrap().len()), (count as u64, count));
        assert!(values.get_many(&references).unwrap().iter().all(|value| *value == V::zeroed()));
        // Every third reference, in reverse order.
        let some: Vec<Reference> = references.iter().rev().step_by(3).copied().collect();
        let set = some_values::<V>(some.len(), 1);
        values.set_many(&some, &set).unwrap();
        assert!(values.get_many(&some).unwrap() == set);
        let expected: HashMap<u64, V> = some.iter().map(|of| of.slot()).zip(set).collect();
        let of_slot = |slot: u64| expected.get(&slot).copied().unwrap_or(V::zeroed());
        assert!(values.view().unwrap().iter().enumerate().all(|(slot, value)| *value == of_slot(slot as u64)));
        assert!(references.iter().zip(values.get_many(&references).unwrap()).all(|(of, value)| value == of_slot(of.slot())));
        // If a reference occurs several times, its last value counts.
        let [first, last] = <[V; 2]>::try_from(some_values::<V>(2, 99)).unwrap();
        values.set_many(&[references[7], references[8], references[7]], &[first, first, last]).unwrap();
        assert_eq!(values.get_many(&[references[8], references[7], references[8]]).unwrap(), [first, last, first]);
        values.update(|values| values.fill(last)).unwrap();
        assert!(values.view().unwrap().iter().all(|value| *value == last));
        // Values of later vectors are zero.
        let later = put(&table, &distinct(width, count as u64, count));
        assert!(values.get_many(&later).unwrap().iter().all(|value| *value == V::zeroed()));
        assert!(values.bytes() >= 2 * (count * size_of::<V>()) as u64);
    }
}

fn values_stay_when_the_table_grows(device: &Device) {
    let (width, count) = (5, scaled(100_000, 3000));
    let table = IndexedTable::builder(width).capacity(100).grows(true).build(device).unwrap();
    let mut values = table.values(0u32).unwrap();
    let words = distinct(width, 0, count);
    let mut all = Vec::new();
    let mut address = None;
    for (round, part) in words.chunks(width * (count / 10)).enumerate() {
        let references = put(&table, part);
        let new: Vec<u32> = references.iter().map(|of| 1 + of.slot() as u32).collect();
        // In one round the values are read only after the table has grown again.
        if round != 4 {
            assert!(values.get_many(&references).unwrap().iter().all(|value| *value == 0));
        }
        values.set_many(&references, &new).unwrap();
        all.extend(references);
        let view = values.view().unwrap();
        assert!(view.len() == all.len() && view.iter().zip(1..).all(|(value, number)| *value == number), "round {round}");
        assert!(device.is_gpu() || *address.get_or_insert(view.as_ptr()) == view.as_ptr(), "they stay where they are");
    }
    table.reserve_total(4 * table.slots()).unwrap();
    assert!(values.get_many(&all).unwrap().iter().zip(&all).all(|(value, of)| u64::from(*value) == of.slot() + 1));
}

fn values_of_numbers_that_are_taken_back_are_zeros(device: &Device) {
    for width in some_widths() {
        let count = scaled(5000, 300);
        let table = table(device, width, 8 * count as u64);
        let [mut ones, mut twos] = [0; 2].map(|_| table.values(0u16).unwrap());
        let kept = put(&table, &distinct(width, 0, count));
        let mark = table.len().unwrap();
        let gone = put(&table, &distinct(width, count as u64, count));
        let all = [&kept[..], &gone[..]].concat();
        ones.set_many(&all, &vec![1; all.len()]).unwrap();
        twos.set_many(&all, &vec![2; all.len()]).unwrap();
        table.truncate(mark).unwrap();
        // One array is accessed before the numbers are reused, the other after that.
        assert!(ones.view().unwrap()[..] == vec![1; count]);
        let refused = Error::InvalidReferences { invalid: count as u64, count: 2 * count };
        assert_eq!(ones.get_many(&all), Err(refused.clone()));
        assert_eq!(ones.update_many(&all, |_, _| panic!("nothing is changed")), Err(refused));
        let again = put(&table, &distinct(width, 5 * count as u64, 2 * count));
        assert_eq!(table.len().unwrap(), 3 * count as u64);
        for (values, number) in [(&ones, 1), (&twos, 2)] {
            assert!(values.get_many(&kept).unwrap() == vec![number; count], "{width} words");
            assert!(values.get_many(&again).unwrap() == vec![0; 2 * count], "{width} words");
        }
        // Two truncations, the second above the first mark: the lowest mark counts.
        twos.update(|values| values.fill(7)).unwrap();
        table.truncate(mark / 2).unwrap();
        put(&table, &distinct(width, 0, 2 * count));
        table.truncate(mark).unwrap();
        let expected = [vec![7; count / 2], vec![0; count - count / 2]].concat();
        assert!(twos.view().unwrap()[..] == expected);
        ones.update(|values| values.fill(5)).unwrap();
        table.clear().unwrap();
        assert!(ones.is_empty().unwrap());
        assert_eq!(ones.get_many(&kept), Err(Error::StaleReferences { stale: count as u64, count }));
        let new = put(&table, &distinct(width, 0, count));
        assert!(ones.get_many(&new).unwrap() == vec![0; count] && twos.view().unwrap()[..] == vec![0; count]);
    }
}

/// Counts as a `HashMap` does, with updates that depend on earlier ones.
fn a_table_and_its_values_are_a_map(device: &Device) {
    let count = scaled(60_000, 2000);
    let keys: Vec<u64> = (0..count as u64).map(|at| (at * at % (count as u64 / 3)).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let table = TypedTable::<u64, Indexed>::builder().capacity(100).grows(true).build(device).unwrap();
    let mut map: Values<u64, [u64; 2]> = table.values([0; 2]).unwrap();
    let mut expected: HashMap<u64, [u64; 2]> = HashMap::new();
    for part in keys.chunks(count / 7) {
        let batch = table.find_or_put_many_with(part, everything()).unwrap();
        let references: Vec<Reference> = batch.references.into_iter().flatten().collect();
        let add = |at: usize, [count, sum]: &mut [u64; 2]| (*count, *sum) = (*count + 1, sum.wrapping_mul(3) + at as u64);
        map.update_many(&references, add).unwrap();
        part.iter().enumerate().for_each(|(at, key)| add(at, expected.entry(*key).or_default()));
    }
    assert_eq!(table.len().unwrap(), expected.len() as u64);
    let found: HashMap<u64, [u64; 2]> = table.rows().unwrap().iter().copied().zip(map.view().unwrap().iter().copied()).collect();
    assert!(found == expected);
    let looked_up = map.get_many(&table.locate_many(&keys).unwrap().into_iter().flatten().collect::<Vec<_>>()).unwrap();
    assert!(keys.iter().zip(looked_up).all(|(key, value)| expected[key] == value));
}

fn holes_of_overlapping_calls_have_no_values(device: &Device) {
    let (width, count, callers) = (2, scaled(20_000, 500), 4);
    let table = table(device, width, 16 * count as u64);
    let mut values = table.values(0u32).unwrap();
    for round in 0..3 {
        let words = distinct(width, round * count as u64, count);
        let batches: Vec<Vec<Reference>> = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..callers).map(|_| scope.spawn(|| put(&table, &words))).collect();
            // Updates while the callers run.
            values.update(|values| values.iter_mut().for_each(|value| *value += 0)).unwrap();
            callers.into_iter().map(|caller| caller.join().unwrap()).collect()
        });
        assert!(values.get_many(&batches[0]).unwrap() == vec![0; count], "what fills a hole begins with zeros");
        let numbers: Vec<u32> = batches[0].iter().map(|of| 1 + of.slot() as u32).collect();
        values.set_many(&batches[0], &numbers).unwrap();
        let holes: Vec<Reference> = table.holes().unwrap().into_iter().map(|hole| table.reference(hole).unwrap()).collect();
        if !holes.is_empty() {
            let refused = Error::InvalidReferences { invalid: holes.len() as u64, count: holes.len() };
            assert_eq!(values.get_many(&holes), Err(refused.clone()));
            assert_eq!(values.set_many(&holes, &vec![1; holes.len()]), Err(refused));
        }
    }
    let all: Vec<Reference> = table.iter().map(|row| row.unwrap().0).collect();
    assert_eq!(all.len(), 3 * count);
    assert!(values.get_many(&all).unwrap().iter().zip(&all).all(|(value, of)| u64::from(*value) == of.slot() + 1));
}

fn references_that_are_not_the_tables_are_refused(device: &Device) {
    let (width, count) = (3, 50);
    let [own, other] = [0, 1].map(|_| table(device, width, 200));
    let [references, others] = [&own, &other].map(|table| put(table, &distinct(width, 0, count)));
    let mut values = own.values(0u64).unwrap();
    values.set_many(&references, &vec![3; count]).unwrap();
    let beyond = own.reference(count as u64).unwrap();
    for (wrong, error) in
        [(others[0], Error::StaleReferences { stale: 1, count: 3 }), (beyond, Error::InvalidReferences { invalid: 1, count: 3 })]
    {
        let given = [references[0], wrong, references[1]];
        assert_eq!(values.get_many(&given), Err(error.clone()));
        assert_eq!(values.set_many(&given, &[4; 3]), Err(error.clone()));
        assert_eq!(values.update_many(&given, |_, value| *value = 5), Err(error));
    }
    let error = Error::LengthMismatch { what: "values", given: 2, needed: 3 };
    assert_eq!(values.set_many(&references[..3], &[4; 2]), Err(error));
    assert!(values.view().unwrap()[..] == vec![3; count], "nothing is changed by what is refused");
}

fn arrays_are_by_themselves_and_outlive_the_table(device: &Device) {
    let (width, count) = (2, 100);
    let table = table(device, width, 400);
    let mut first = table.values(0u32).unwrap();
    let references = put(&table, &distinct(width, 0, count));
    let mut second = table.values(0u8).unwrap();
    first.set_many(&references, &vec![1; count]).unwrap();
    second.set_many(&references[..1], &[2]).unwrap();
    drop(table);
    assert!(first.get_many(&references).unwrap() == vec![1; count]);
    drop(first);
    assert_eq!(second.get_many(&references[..2]).unwrap(), [2, 0]);
}

fn views_stay_while_others_put(device: &Device) {
    let (width, count) = (3, scaled(5000, 300));
    let table = table(device, width, 8 * count as u64);
    let mut values = table.values(0u64).unwrap();
    let references = put(&table, &distinct(width, 0, count));
    let numbers: Vec<u64> = (1..=count as u64).collect();
    values.update(|values| values.copy_from_slice(&numbers)).unwrap();
    let view = values.view().unwrap();
    std::thread::scope(|scope| {
        for from in [1, 2] {
            let (table, values, numbers, references) = (&table, &values, &numbers, &references);
            scope.spawn(move || {
                let new = put(table, &distinct(width, from * count as u64, count));
                assert!(values.get_many(&new).unwrap() == vec![0; count]);
                let mut sorted = values.get_many(references).unwrap();
                sorted.sort_unstable();
                assert!(sorted == *numbers);
            });
        }
    });
    assert!(view[..] == numbers);
    drop(view);
    put(&table, &distinct(width, 3 * count as u64, 1));
    assert_eq!(values.view().unwrap().len(), table.rows().unwrap().len() / width);
}

fn no_memory_for_values_is_an_error(device: &Device) {
    let table = table(device, 1, 1 << 23);
    let references = put(&table, &[7, 8, 9]);
    // 128 KiB per value: at least 1 TiB if all get memory.
    let refused = match table.values([[0u64; 4096]; 4]) {
        #[cfg(feature = "cuda")]
        Ok(mut values) => {
            assert!(device.is_gpu());
            values.set_many(&references, &[[[1; 4096]; 4]; 3]).unwrap();
            let refused = values.device().map(drop).unwrap_err();
            assert!(values.get_many(&references).unwrap() == [[[1; 4096]; 4]; 3], "they are as they were");
            refused
        }
        #[cfg(not(feature = "cuda"))]
        Ok(_) => panic!("so much memory"),
        Err(error) => error,
    };
    assert!(matches!(refused, Error::OutOfMemory { .. }), "{refused}");
    assert_eq!(table.get_many(&references).unwrap(), [7, 8, 9]);
}

/// Each call to the system or the driver fails in turn. Values that the failed operation was changing have their old or new
/// contents, all other values are unchanged, and afterwards the array works.
fn failures_change_no_other_value(device: &Device) {
    let (width, count) = (2, scaled(2000, 100));
    let before = || {
        let table = IndexedTable::builder(width).capacity(100).grows(true).build(device).unwrap();
        let mut values = table.values(0u32).unwrap();
        let references = put(&table, &distinct(width, 0, count));
        values.set_many(&references, &vec![1; count]).unwrap();
        // Work for the operation: more memory, and values that are taken back.
        let more = put(&table, &distinct(width, count as u64, 3 * count));
        values.set_many(&more, &vec![9; 3 * count]).unwrap();
        table.truncate(2 * count as u64).unwrap();
        let again = put(&table, &distinct(width, 10 * count as u64, 20 * count));
        (table, values, references, again)
    };
    let operate = |values: &mut Values<warpset::Words, u32>, references: &[Reference], new: &[Reference]| {
        values.set_many(new, &vec![2; new.len()])?;
        values.update_many(references, |_, value| *value = 2)?;
        values.get_many(new).map(drop)
    };
    let (_table, mut values, references, new) = before();
    let (result, calls) = faults::count(|| operate(&mut values, &references, &new));
    result.unwrap();
    for call in 0..calls {
        for last in [call + 1, u64::MAX] {
            let (table, mut values, references, new) = before();
            let (result, _) = faults::fail(call..last, || operate(&mut values, &references, &new));
            let view = values.view().unwrap().to_vec();
            assert_eq!(view.len() as u64, table.len().unwrap());
            let is = |number: usize, allowed: &[u32]| assert!(allowed.contains(&view[number]), "call {call}: value {number}");
            references.iter().for_each(|of| is(of.slot() as usize, &[1, 2]));
            new.iter().for_each(|of| is(of.slot() as usize, &[0, 2]));
            (0..view.len()).for_each(|number| is(number, &[0, 1, 2, 9]));
            assert!(result.is_err() || view.iter().filter(|value| **value == 2).count() == references.len() + new.len());
            operate(&mut values, &references, &new).unwrap();
            assert!(values.get_many(&references).unwrap() == vec![2; count]);
        }
    }
}

/// Tests of functions of GPUs only.
#[cfg(feature = "cuda")]
pub mod on_gpu {
    use super::*;
    use warpset::gpu::DeviceBatch;
    use warpset::gpu::cudarc_0_19::cudarc::driver::{DeviceSlice, LaunchConfig, PushKernelArg};

    tests![kernels_count_by_reference, values_of_kernels_are_taken_back, kernels_under_way_while_the_host_adds];

    const COUNT: &str = r#"
        extern "C" __global__ void count(const unsigned long long* references, unsigned vectors, unsigned* counts) {
            unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
            if (at < vectors && references[at] != ~0ull) atomicAdd(counts + references[at], 1u);
        }"#;

    const SPIN: &str = r#"
        extern "C" __global__ void spin(unsigned rounds, volatile unsigned* sum) {
            for (unsigned round = 0; round < rounds; ++round) *sum += round;
        }
        extern "C" __global__ void count_new(const unsigned long long* references, unsigned vectors, unsigned* counts) {
            unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
            if (at < vectors) ++counts[references[at]];
        }"#;

    /// Puts vectors from device memory, and increments the value of each.
    fn count_on_gpu(table: &IndexedTable, counts: &mut Values<warpset::Words, u32>, words: &[u32]) {
        let stream = table.device().cuda_context().unwrap().new_stream().unwrap();
        let count = table.compile("count.cu", COUNT).unwrap().load_function("count").unwrap();
        let vectors = words.len() / table.width();
        let words = stream.clone_htod(words).unwrap();
        let mut references = stream.alloc_zeros::<u64>(vectors).unwrap();
        table.find_or_put_device(&stream, DeviceBatch::new(&words, vectors).references(&mut references)).unwrap();
        // The caller locates the vectors, which does not wait for other streams. Values are read and changed after the kernel
        // below, without another wait.
        stream.synchronize().unwrap();
        let counts = counts.device().unwrap();
        assert!(counts.len() as u64 >= table.slots());
        let (number, address) = (vectors as u32, counts.address());
        let mut launch = stream.launch_builder(&count);
        launch.arg(&references).arg(&number).arg(&address);
        // SAFETY: the kernel's arguments, of its types; all references are of this table, which does not change meanwhile.
        unsafe { launch.launch(LaunchConfig::for_num_elems(number)) }.unwrap();
    }

    /// Counts by kernels, with a growth in between, holes, and updates by the host.
    fn kernels_count_by_reference(device: &Device) {
        let (width, count) = (4, scaled(50_000, 1000));
        let table = table(device, width, 2 * count as u64);
        let mut counts = table.values(0u32).unwrap();
        let address = counts.device().unwrap().address();
        let mut expected: HashMap<Vec<u32>, u32> = HashMap::new();
        for round in 0..4 {
            let words = distinct(width, round * count as u64 / 2, count);
            let words = [&words[..], &words[..words.len() / 2], &words[..]].concat();
            words.chunks(width).for_each(|row| *expected.entry(row.to_vec()).or_default() += 1);
            count_on_gpu(&table, &mut counts, &words);
            // The host increments some of the values, too.
            let some: Vec<u32> = words.chunks(width).step_by(5).flatten().copied().collect();
            some.chunks(width).for_each(|row| *expected.get_mut(row).unwrap() += 10);
            let references: Vec<Reference> = table.locate_many(&some).unwrap().into_iter().flatten().collect();
            counts.update_many(&references, |_, count| *count += 10).unwrap();
            table.reserve_total(2 * table.slots()).unwrap();
            assert_eq!(counts.device().unwrap().address(), address, "they stay where they are");
        }
        let (references, rows): (Vec<Reference>, Vec<Vec<u32>>) = table.iter().map(Result::unwrap).unzip();
        let found: HashMap<Vec<u32>, u32> = rows.into_iter().zip(counts.get_many(&references).unwrap()).collect();
        assert!(found == expected);
        // Values of holes are zero.
        let dense = counts.view().unwrap().len() as u64;
        assert!(dense <= counts.len().unwrap() && table.holes().unwrap().first().is_none_or(|hole| *hole == dense));
    }

    fn values_of_kernels_are_taken_back(device: &Device) {
        let (width, count) = (3, scaled(20_000, 500));
        let table = table(device, width, 8 * count as u64);
        let mut counts = table.values(0u32).unwrap();
        count_on_gpu(&table, &mut counts, &distinct(width, 0, count));
        let mark = count as u64 / 2;
        table.truncate(mark).unwrap();
        count_on_gpu(&table, &mut counts, &distinct(width, 2 * count as u64, count));
        let values = counts.get_many(&table.iter().map(|row| row.unwrap().0).collect::<Vec<_>>()).unwrap();
        assert!(values.len() as u64 <= mark + count as u64 && values.iter().all(|value| *value == 1));
        table.clear().unwrap();
        let references = put(&table, &distinct(width, 0, count));
        assert!(counts.get_many(&references).unwrap() == vec![0; count]);
    }

    /// A kernel that is still under way when the host adds to other values has counted afterwards, and its values are taken back
    /// with those of the host.
    fn kernels_under_way_while_the_host_adds(device: &Device) {
        let (width, count) = (3, scaled(5000, 300));
        let table = table(device, width, 8 * count as u64);
        let mut counts = table.values(0u32).unwrap();
        let (theirs, ours) = (distinct(width, 0, count), distinct(width, count as u64, 10));
        let context = table.device().cuda_context().unwrap();
        let stream = context.new_stream().unwrap();
        let module = table.compile("spin.cu", SPIN).unwrap();
        let [spin, count_new] = ["spin", "count_new"].map(|name| module.load_function(name).unwrap());
        let words = stream.clone_htod(&theirs).unwrap();
        // All kernels are compiled before.
        counts.add_many(&ours, &[1]).unwrap().complete(&table).unwrap();
        let (mut references, mut sum) = (stream.alloc_zeros::<u64>(count).unwrap(), stream.alloc_zeros::<u32>(1).unwrap());
        let address = counts.device().unwrap().address();
        stream.synchronize().unwrap();
        let (number, rounds) = (count as u32, 1u32 << 21);
        let mut launch = stream.launch_builder(&spin);
        launch.arg(&rounds).arg(&mut sum);
        // SAFETY: the kernel's arguments, of its types.
        unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.unwrap();
        table.find_or_put_device(&stream, DeviceBatch::new(&words, count).references(&mut references)).unwrap();
        let mut launch = stream.launch_builder(&count_new);
        launch.arg(&references).arg(&number).arg(&address);
        // SAFETY: the kernel's arguments, of its types; all references are of this table, which does not change meanwhile.
        unsafe { launch.launch(LaunchConfig::for_num_elems(number)) }.unwrap();
        counts.add_many(&ours, &[1]).unwrap().complete(&table).unwrap();
        let found = |counts: &Values<warpset::Words, u32>, words: &[u32]| {
            let references: Vec<Reference> = table.locate_many(words).unwrap().into_iter().map(Option::unwrap).collect();
            counts.get_many(&references).unwrap()
        };
        stream.synchronize().unwrap();
        assert_eq!((found(&counts, &theirs), found(&counts, &ours)), (vec![1; count], vec![2; 10]));
        table.clear().unwrap();
        counts.add_many(&theirs, &[1]).unwrap().complete(&table).unwrap();
        assert_eq!(found(&counts, &theirs), vec![1; count]);
    }
}
