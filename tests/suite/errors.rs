//! Each error that can be provoked: its numbers are right, and the table is unchanged.
//!
//! Keeps these promises of `src/docs/errors.md`:
//!
//! - A reference to no vector is an error with the numbers.
//! - An error is found before anything is changed, and has the numbers (also `compact_keys.rs`, `incremental.rs`).
//! - Iteration reports that the table has changed.
//! - A missing driver is an ordinary error of one line.

use crate::common::checker::{Checker, OrFail};
use crate::common::tests;
use crate::common::vectors::{Pool, distinct};
#[cfg(feature = "cuda")]
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::{BucketTable, Device, Error, Reference, Request};

tests![
    widths_out_of_range,
    capacities_out_of_range,
    more_memory_than_there_is,
    growing_into_more_memory_than_there_is,
    words_that_are_no_whole_vectors,
    references_out_of_range,
    references_to_empty_slots,
    references_from_before_a_clearing,
    iterating_over_a_cleared_table,
    iterating_over_a_grown_table,
    an_iteration_that_noticed_a_change_is_over,
    gpus_that_are_not_there,
    gpu_operations_on_another_device,
];

/// Asserts that the message contains every number, because a user may have nothing else.
#[track_caller]
fn says(error: &Error, numbers: &[u64]) {
    let message = error.to_string();
    for number in numbers {
        assert!(message.contains(&number.to_string()), "{number} is not in: {message}");
    }
}

/// Provokes an error on a table with some vectors, and checks that its contents stay.
fn with_table(device: &Device, provoke: impl FnOnce(&BucketTable)) {
    let (table, pool) = (BucketTable::new(device, 3, 100).unwrap(), Pool::distinct(3, 60));
    let mut checker = Checker::new(&table, &pool);
    let _ = checker.offer(&pool.all()[..40]).or_fail("before");
    let (slots, bytes) = (table.slots(), table.bytes());
    provoke(&table);
    assert_eq!((table.slots(), table.bytes()), (slots, bytes));
    checker.check().or_fail("the table is as it was");
    let _ = checker.offer(&pool.all()).or_fail("it goes on working");
    checker.check().or_fail("it goes on working");
}

fn widths_out_of_range(device: &Device) {
    for asked in [0, 257, usize::MAX] {
        let error = BucketTable::new(device, asked, 10).expect_err("not a width");
        assert!(matches!(error, Error::OutOfRange { given, least: 1, most: 256, .. } if given == asked as u64), "{error:?}");
        says(&error, &[asked as u64, 256]);
    }
    assert!(BucketTable::new(device, 256, 10).is_ok());
}

fn capacities_out_of_range(device: &Device) {
    for (asked, words) in [(0, 3), (u64::MAX, 1), (u64::MAX, 256), (1 << 60, 1), (1 << 52, 256)] {
        let error = BucketTable::new(device, words, asked).expect_err("not a capacity");
        assert!(matches!(error, Error::OutOfRange { what: "slots of a table", given, .. } if given == asked), "{error:?}");
        says(&error, &[asked, 1]);
    }
    with_table(device, |table| {
        let error = table.reserve_total(u64::MAX).expect_err("not a capacity");
        assert!(matches!(error, Error::OutOfRange { what: "slots of a table", given: u64::MAX, least: 1, .. }), "{error:?}");
    });
}

/// 4 TiB of slots.
const HUGE: u64 = (1 << 42) / 12;

#[track_caller]
fn is_out_of_memory(error: &Error, table_on: &Device) {
    let Error::OutOfMemory { device, asked, free: Some(free), .. } = error else { panic!("{error:?}") };
    assert_eq!(device, &table_on.to_string());
    assert!(*asked >= 12 * HUGE && free < asked, "{asked} asked, {free} free");
    says(error, &[*asked, *free]);
}

fn more_memory_than_there_is(device: &Device) {
    is_out_of_memory(&BucketTable::new(device, 3, HUGE).expect_err("4 TiB"), device);
    // The failed attempt left nothing behind: an ordinary table is made as before.
    with_table(device, |_| ());
}

fn growing_into_more_memory_than_there_is(device: &Device) {
    with_table(device, |table| is_out_of_memory(&table.reserve_total(HUGE).expect_err("4 TiB"), device));
}

fn words_that_are_no_whole_vectors(device: &Device) {
    with_table(device, |table| {
        let vectors = distinct(3, 1000, 3);
        for count in [1, 2, 4, 7, 8] {
            let given = &vectors[..count];
            let errors = [
                table.find_or_put_many(given).map(drop).expect_err("find-or-put"),
                table.find_or_put_many_with(given, Request::new()).map(drop).expect_err("find-or-put"),
                table.contains_many(given).map(drop).expect_err("contains"),
                table.locate_many(given).map(drop).expect_err("locate"),
            ];
            for error in errors {
                assert!(matches!(error, Error::LengthMismatch { given, needed: 3, .. } if given == count % 3), "{error:?}");
                says(&error, &[count as u64 % 3, 3]);
            }
        }
    });
}

#[track_caller]
fn are_invalid(table: &BucketTable, references: &[Reference], expected: u64) {
    let error = table.get_many(references).expect_err("invalid references");
    let said = matches!(error, Error::InvalidReferences { invalid, count } if (invalid, count) == (expected, references.len()));
    assert!(said, "{expected} of {} expected: {error:?}", references.len());
    says(&error, &[expected, references.len() as u64]);
}

fn references_out_of_range(device: &Device) {
    with_table(device, |table| {
        let valid = table.iter().next().expect("40 are stored").unwrap().0;
        let slots = table.slots();
        let at = |slot: u64| Reference::from_bits(table.reference(0).expect("a slot").to_bits() | slot).expect("a generation");
        let outside = [slots, slots + 1, 2 * slots, u64::from(u32::MAX), (1 << 40) - 1].map(at);
        for reference in outside {
            are_invalid(table, &[reference], 1);
            are_invalid(table, &[valid, reference, valid, reference], 2);
        }
        are_invalid(table, &outside, outside.len() as u64);
        // A few invalid references among many, so that any thread may find one.
        let mut many = vec![valid; 20_000];
        [0, 4095, 4096, 12_345, 19_999].into_iter().for_each(|position| many[position] = at(slots));
        are_invalid(table, &many, 5);
    });
}

fn references_to_empty_slots(device: &Device) {
    with_table(device, |table| {
        let stored: Vec<u64> = table.iter().map(|row| row.unwrap().0.slot()).collect();
        let empty: Vec<Reference> =
            (0..table.slots()).filter(|slot| !stored.contains(slot)).filter_map(|slot| table.reference(slot)).collect();
        assert_eq!(empty.len() as u64, table.slots() - 40);
        are_invalid(table, &empty, empty.len() as u64);
        empty.iter().for_each(|reference| are_invalid(table, &[*reference], 1));
    });
}

fn references_from_before_a_clearing(device: &Device) {
    let table = BucketTable::new(device, 3, 100).unwrap();
    let batch = table.find_or_put_many_with(&distinct(3, 0, 40), Request::new().new_references(true)).unwrap();
    table.clear().unwrap();
    let error = table.get_many(&batch.new_references).expect_err("they are stale");
    assert_eq!(error, Error::StaleReferences { stale: 40, count: 40 });
    says(&error, &[40]);
}

fn iterating_over_a_cleared_table(device: &Device) {
    let table = BucketTable::new(device, 3, 100).unwrap();
    let _ = table.find_or_put_many(&distinct(3, 0, 40)).unwrap();
    let mut rows = table.iter();
    table.clear().unwrap();
    assert!(matches!(rows.next(), Some(Err(Error::ChangedDuringIteration))));
    assert!(rows.next().is_none());
    assert_eq!(table.iter().count(), 0, "a new iteration is right again");
}

fn iterating_over_a_grown_table(device: &Device) {
    with_table(device, |_| ());
    let table = BucketTable::new(device, 3, 100).unwrap();
    let _ = table.find_or_put_many(&distinct(3, 0, 40)).unwrap();
    let mut rows = table.iter();
    table.reserve_total(1000).unwrap();
    assert!(matches!(rows.next(), Some(Err(Error::ChangedDuringIteration))));
    assert!(rows.next().is_none());
    assert_eq!(table.iter().filter(Result::is_ok).count(), 40, "a new iteration is right again");
}

/// A change between two parts of 16 MiB: vectors of the first part are returned before the error.
fn an_iteration_that_noticed_a_change_is_over(device: &Device) {
    let table = BucketTable::new(device, 256, 33_000).unwrap();
    let _ = table.find_or_put_many(&distinct(256, 0, 1000)).unwrap();
    let mut rows = table.iter();
    assert!(rows.next().is_some_and(|row| row.is_ok()));
    table.clear().unwrap();
    let rest: Vec<_> = rows.by_ref().collect();
    assert!(matches!(rest.last(), Some(Err(Error::ChangedDuringIteration))));
    assert_eq!(rest.iter().filter(|row| row.is_err()).count(), 1);
    assert!(rest.len() < 999, "vectors of later parts are gone");
    assert!(rows.next().is_none());
}

/// On machines without GPUs and on machines with fewer.
#[cfg(feature = "cuda")]
fn gpus_that_are_not_there(_device: &Device) {
    match Device::gpu(9999).map(drop).expect_err("nobody has so many") {
        error @ Error::NoSuchGpu { ordinal: 9999, count } => {
            says(&error, &[9999, count as u64]);
            assert_eq!(Device::gpus().unwrap().len(), count);
        }
        error @ Error::LibraryNotFound { .. } => {
            let Error::LibraryNotFound { library, searched } = &error else { unreachable!("matched above") };
            assert!(
                error.to_string().contains(library)
                    && searched.iter().any(|name| error.to_string().contains(name))
                    && error.to_string().len() < 200
            );
        }
        error => panic!("{error:?}"),
    }
}

/// Without GPUs `Device::best` returns a CPU.
#[cfg(not(feature = "cuda"))]
fn gpus_that_are_not_there(device: &Device) {
    assert!(!Device::best().unwrap().is_gpu() && !device.is_gpu());
}

#[cfg(feature = "cuda")]
fn gpu_operations_on_another_device(device: &Device) {
    if device.is_gpu() {
        return; // device_memory.rs has what a GPU rejects
    }
    with_table(device, |table| {
        let errors =
            [table.kernel_argument().map(drop).expect_err("no GPU"), table.compile("mine.cu", "").map(drop).expect_err("no GPU")];
        for error in errors {
            assert!(matches!(error, Error::WrongDevice { .. }), "{error:?}");
            assert!(error.to_string().contains(&device.to_string()), "{error}");
        }
    });
    assert!(device.cuda_context().is_none());
}

#[cfg(not(feature = "cuda"))]
fn gpu_operations_on_another_device(device: &Device) {
    assert!(device.to_string().starts_with("CPU ("), "{device}");
}
