//! Failing calls: every allocation, launch, copy, wait, compilation and thread start of an operation fails, one after another. No
//! stored vector is lost, no wrong result is reported, and the table works afterwards.
//!
//! A run without faults counts the calls of an operation. The operation is then repeated, on a new table each time, with each
//! call failing once, and with each call and all later calls failing.
//!
//! Keeps these promises of `src/docs/errors.md`:
//!
//! - A growth that fails does not end a batch, and the batch has the error of the growth.
//! - If any call fails, nothing stored is lost, and nothing wrong is reported.
//! - A panic of a callback reaches the caller, and the table works afterwards.
//! - A batch that is stopped reports the vectors that were put.

use crate::common::kinds::{Kind, roomy};
use crate::common::vectors::distinct;
use crate::common::{sized, tests, tests_of_all_kinds};
use std::cell::Cell;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use warpset::{Batch, Device, Error, Outcome, Reference, Request, Result, Root, TableBuilder, VectorTable, Words, faults};

tests_of_all_kinds!(
    batches,
    growing_batches,
    growth,
    clearing,
    retaining,
    reading,
    iteration,
    making_a_table,
    saving,
    loading,
    callbacks_that_panic,
    batches_that_are_stopped,
    batches_that_are_stopped_and_grow,
    kernels_that_are_first_used_later,
    new_references_while_others_clear,
);

const WIDTH: usize = 4;

/// Vectors stored before the operation; it offers the same vectors and more, each twice.
fn stored() -> Vec<u32> {
    distinct(WIDTH, 0, sized(6000, 1000, 300))
}

fn offered() -> Vec<u32> {
    let words = distinct(WIDTH, 0, sized(9000, 1500, 500));
    [&words[..], &words[..]].concat()
}

/// Runs `operate` on tables that `prepare` makes, with each of its calls failing in turn; `judge` checks the result.
fn with_each_failure<T, R>(prepare: impl Fn() -> T, operate: impl Fn(&T) -> Result<R>, judge: impl Fn(&T, Result<R>, &str)) {
    let table = prepare();
    let (result, calls) = faults::count(|| operate(&table));
    assert!(result.is_ok(), "without faults: {:?}", result.err());
    judge(&table, result, "without faults");
    for call in 0..calls {
        for last in [call + 1, u64::MAX] {
            let table = prepare();
            let (result, _) = faults::fail(call..last, || operate(&table));
            let about = format!("call {call} of {calls} fails{}", if last == u64::MAX { ", and all later ones" } else { "" });
            judge(&table, result, &about);
        }
    }
}

/// Asserts that the table holds the vectors stored before, and takes further offers.
fn works<S: Kind>(table: &VectorTable<S>, about: &str) {
    assert!(table.contains_many(&stored()).unwrap().iter().all(|stored| *stored), "{about}: something is lost");
    let batch = table.find_or_put_many(&offered()).unwrap();
    assert_eq!(batch.tally.full, 0, "{about}");
    assert_eq!(table.len().unwrap(), (offered().len() / WIDTH / 2) as u64, "{about}");
    let mut rows: Vec<Vec<u32>> = table.iter().map(|row| row.unwrap().1).collect();
    rows.sort_unstable();
    let mut expected: Vec<Vec<u32>> = offered()[..offered().len() / 2].chunks(WIDTH).map(<[u32]>::to_vec).collect();
    expected.sort_unstable();
    assert!(rows == expected, "{about}: the table holds something else");
}

/// Asserts that the results of a batch are true.
fn tells_the_truth<S: Kind>(table: &VectorTable<S>, words: &[u32], batch: &Batch, about: &str) {
    let contained = table.contains_many(words).unwrap();
    // A vector that is Full may be offered again by a later part of the batch that finds room.
    let rows = || words.chunks(WIDTH).zip(&batch.outcomes);
    let put: HashSet<&[u32]> = rows().filter(|(_, outcome)| **outcome != Outcome::Full).map(|(row, _)| row).collect();
    for (at, (row, outcome)) in rows().enumerate() {
        assert_eq!(contained[at], put.contains(row), "{about}: vector {at} is {outcome}");
    }
    let mut new: Vec<&[u32]> = batch.positions(Outcome::New).map(|at| &words[at * WIDTH..][..WIDTH]).collect();
    assert_eq!(new.len() as u64, batch.tally.new, "{about}");
    new.sort_unstable();
    assert!(new.windows(2).all(|pair| pair[0] != pair[1]), "{about}: one vector is new twice");
    let are_there = |places: &[Reference]| match table.get_many(places) {
        Ok(vectors) => Some(vectors),
        // The table has grown, and the new locations of the vectors could not be determined.
        Err(error) => {
            assert!(matches!(error, Error::StaleReferences { .. }) && batch.error.is_some(), "{about}: {error}");
            None
        }
    };
    if let Some(vectors) = are_there(&batch.new_references).filter(|_| !batch.references.is_empty()) {
        let mut vectors: Vec<&[u32]> = vectors.chunks(WIDTH).collect();
        vectors.sort_unstable();
        assert!(vectors == new, "{about}: new references are of {} vectors, and {} are new", vectors.len(), new.len());
    }
    if !batch.references.is_empty() {
        for (at, (outcome, place)) in batch.outcomes.iter().zip(&batch.references).enumerate() {
            assert!(*outcome == Outcome::Full || place.is_some(), "{about}: vector {at} is {outcome}, and has no reference");
        }
        let places: Vec<_> = batch.references.iter().flatten().copied().collect();
        let stored: Vec<u32> = words
            .chunks(WIDTH)
            .zip(&batch.references)
            .filter(|(_, place)| place.is_some())
            .flat_map(|(row, _)| row)
            .copied()
            .collect();
        assert!(are_there(&places).is_none_or(|vectors| vectors == stored), "{about}: references are to other vectors");
    }
}

fn prepared<S: Kind>(device: &Device, builder: TableBuilder<Words, S>) -> VectorTable<S> {
    let table = builder.build(device).unwrap();
    table.find_or_put_many(&stored()).unwrap().complete(&table).unwrap();
    table
}

fn batches<S: Kind>(device: &Device) {
    let words = offered();
    with_each_failure(
        || prepared::<S>(device, roomy(WIDTH, words.len() as u64)),
        |table| table.find_or_put_many_with(&words, crate::common::set::everything()),
        |table, result, about| {
            if let Ok(batch) = result {
                tells_the_truth(table, &words, &batch, about);
            }
            works(table, about);
        },
    );
}

/// If a growth fails, the batch goes on: the vectors go into the free slots.
fn growing_batches<S: Kind>(device: &Device) {
    let words = offered();
    with_each_failure(
        || prepared::<S>(device, S::with_few_nodes(VectorTable::<S>::builder(WIDTH).capacity(400), 400).grows(true)),
        |table| table.find_or_put_many_with(&words, crate::common::set::everything()),
        |table, result, about| {
            if let Ok(batch) = result {
                assert!(batch.tally.full == 0 || batch.error.is_some(), "{about}: full, and no word why");
                tells_the_truth(table, &words, &batch, about);
            }
            works(table, about);
        },
    );
}

fn growth<S: Kind>(device: &Device) {
    with_each_failure(
        || prepared::<S>(device, roomy(WIDTH, offered().len() as u64)),
        |table| table.reserve_total(4 * table.slots()),
        |table, _, about| works(table, about),
    );
}

/// Tests of GPUs only. (src/backend/cpu/in_place.rs has those of growth in place on CPU threads.)
#[cfg(feature = "cuda")]
pub mod on_gpu {
    use super::*;

    tests![growth_in_place];

    /// A table whose memory is enlarged where it is. If the growth ends between two waves, the next use of the table goes on with
    /// it.
    fn growth_in_place(device: &Device) {
        with_each_failure(
            || prepared::<warpset::Bucket>(device, roomy(WIDTH, 132_000)),
            |table| table.reserve_total(2 * table.slots()),
            |table, _, about| works(table, about),
        );
    }
}

/// Either all vectors are stored, or none.
fn clearing<S: Kind>(device: &Device) {
    let before = stored();
    with_each_failure(
        || prepared::<S>(device, roomy(WIDTH, offered().len() as u64)),
        |table| table.clear(),
        |table, result, about| {
            let contained = table.contains_many(&before).unwrap();
            let left = contained.iter().filter(|contained| **contained).count();
            assert!(left == 0 || (left == contained.len() && result.is_err()), "{about}: {left} are left");
            let _ = table.find_or_put_many(&before).unwrap();
            works(table, about);
        },
    );
}

/// Either the vectors that were to go are gone, or none.
fn retaining<S: Kind>(device: &Device) {
    let before = stored();
    let stays = |vector: &[u32]| !vector[0].is_multiple_of(3);
    with_each_failure(
        || prepared::<S>(device, roomy(WIDTH, offered().len() as u64)),
        |table| table.retain(stays),
        |table, result, about| {
            let contained = table.contains_many(&before).unwrap();
            let are_right = |retained: bool| {
                before.chunks(WIDTH).zip(&contained).all(|(vector, contained)| *contained == (stays(vector) || !retained))
            };
            assert!(are_right(result.is_ok()), "{about}");
            let gone = contained.iter().filter(|contained| !**contained).count() as u64;
            assert!(result.is_err() || result == Ok(gone) && gone > 0, "{about}");
            let _ = table.find_or_put_many(&before).unwrap();
            works(table, about);
        },
    );
}

fn reading<S: Kind>(device: &Device) {
    let before = stored();
    with_each_failure(
        || prepared::<S>(device, roomy(WIDTH, offered().len() as u64)),
        |table| {
            let places: Vec<_> = table.locate_many(&before)?.into_iter().flatten().collect();
            Ok((table.get_many(&places)?, table.contains_many(&before)?, table.stats()?.stored, table.len()?))
        },
        |table, result, about| {
            if let Ok((vectors, contained, measured, counted)) = result {
                assert!(vectors == before && contained.iter().all(|contained| *contained), "{about}");
                assert_eq!((measured, counted), (contained.len() as u64, contained.len() as u64), "{about}");
            }
            works(table, about);
        },
    );
}

fn iteration<S: Kind>(device: &Device) {
    with_each_failure(
        || prepared::<S>(device, roomy(WIDTH, offered().len() as u64)),
        |table| table.iter().collect::<Result<Vec<_>>>(),
        |table, result, about| {
            if let Ok(rows) = result {
                assert_eq!(rows.len() * WIDTH, stored().len(), "{about}");
            }
            works(table, about);
        },
    );
}

fn saving<S: Kind>(device: &Device) {
    with_each_failure(
        || prepared::<S>(device, roomy(WIDTH, offered().len() as u64)),
        |table| {
            let mut bytes = Vec::new();
            table.save(&mut bytes).map(|()| bytes)
        },
        |table, result, about| {
            if let Ok(bytes) = result {
                works(&VectorTable::<S>::load(device, &bytes[..]).unwrap(), about);
            }
            works(table, about);
        },
    );
}

/// The table is loaded, or an error is returned, after which the next table can be loaded.
fn loading<S: Kind>(device: &Device) {
    let mut bytes = Vec::new();
    prepared::<S>(device, roomy(WIDTH, offered().len() as u64)).save(&mut bytes).unwrap();
    with_each_failure(
        || (),
        |()| VectorTable::<S>::load(device, &bytes[..]),
        |(), result, about| {
            works(&result.or_else(|_| VectorTable::<S>::load(device, &bytes[..])).unwrap(), about);
        },
    );
}

/// Memory allocated before the failure is freed (memcheck and AddressSanitizer check that), and the next table can be made.
fn making_a_table<S: Kind>(device: &Device) {
    with_each_failure(
        || (),
        |()| roomy::<S>(WIDTH, 1000).seed(11).build(device).map(drop),
        |(), _, about| {
            let table = prepared::<S>(device, roomy(WIDTH, offered().len() as u64));
            works(&table, about);
        },
    );
}

/// On a GPU the kernels of some operations are compiled and loaded at first use. If that fails, the operation returns the error,
/// and its next call tries again.
fn kernels_that_are_first_used_later<S: Kind>(device: &Device) {
    const WIDTH: usize = 211; // no other test has this width, so none of these kernels is loaded
    let words = distinct(WIDTH, 0, 300);
    let table = roomy::<S>(WIDTH, 1000).build(device).unwrap();
    let batch = table.find_or_put_many_with(&words, Request::new().references(true)).unwrap();
    batch.complete(&table).unwrap();
    let references: Vec<Reference> = batch.references.into_iter().flatten().collect();
    assert!(until_no_call_fails(device, || table.contains_many(&words)).iter().all(|stored| *stored));
    assert!(until_no_call_fails(device, || table.get_many(&references)) == words);
    assert_eq!(table.iter().map(Result::unwrap).count(), 300);
}

/// Repeats an operation until it succeeds; at each repetition one more call succeeds. On a GPU the compilation is one of the
/// failing calls.
fn until_no_call_fails<T>(device: &Device, operate: impl Fn() -> Result<T>) -> T {
    let mut errors = Vec::new();
    for good_calls in 0.. {
        match faults::fail(good_calls..u64::MAX, &operate) {
            (Ok(result), calls) if calls <= good_calls => {
                let compiles = |error: &Error| matches!(error, Error::Cuda { what: "compiling kernels", .. });
                assert!(errors.iter().any(compiles) || !device.to_string().starts_with("GPU"), "{errors:?}");
                return result;
            }
            (result, _) => errors.extend(result.err()),
        }
    }
    unreachable!("an operation has finitely many calls")
}

/// A panic of the callback reaches the caller; the table is as after any batch that ended halfway.
fn callbacks_that_panic<S: Kind>(device: &Device) {
    let table = prepared::<S>(device, roomy(WIDTH, offered().len() as u64));
    let words = offered();
    let mut panics = |_, _| -> ControlFlow<()> { std::panic::resume_unwind(Box::new("on purpose")) };
    let request = Request::new().outcomes(true).progress(&mut panics);
    let caught = catch_unwind(AssertUnwindSafe(|| table.find_or_put_many_with(&words, request)));
    // Other threads of a CPU may do all pieces, so that the callback is never called.
    assert!(caught.is_err() || device.threads() > 1, "the callback is called");
    works(&table, "after a panic");
}

/// Vectors are put while there is room, even if the batch must stop.
fn batches_that_are_stopped_and_grow<S: Kind>(device: &Device) {
    let table = S::with_few_nodes(VectorTable::<S>::builder(WIDTH).capacity(200), 200).grows(true).build(device).unwrap();
    let words = distinct(WIDTH, 0, 2000);
    let mut stop = |_, _| ControlFlow::Break(());
    let batch = table.find_or_put_many_with(&words, Request::new().outcomes(true).progress(&mut stop)).unwrap();
    assert_eq!((batch.tally.full, batch.error.is_none()), (0, true), "{}", batch.tally);
    assert_eq!(batch.stopped, batch.tally.offered() < 2000);
    let rest = &words[batch.outcomes.len() * WIDTH..];
    assert_eq!(table.find_or_put_many(rest).unwrap().complete(&table).unwrap().new as usize, rest.len() / WIDTH);
    assert_eq!(table.len().unwrap(), 2000);
}

/// Another thread clears the table while batches make it grow: new references refer to stored vectors, each once.
fn new_references_while_others_clear<S: Kind>(device: &Device) {
    for round in 0..sized(6, 3, 2) {
        let table = S::with_few_nodes(VectorTable::<S>::builder(WIDTH).capacity(100), 100).grows(true).build(device).unwrap();
        let words = distinct(WIDTH, round, sized(60_000, 30_000, 2000));
        let (begun, wait) = std::sync::mpsc::channel();
        let batch = std::thread::scope(|scope| {
            let table = &table;
            scope.spawn(move || {
                if wait.recv().is_ok() {
                    table.clear().unwrap();
                }
            });
            let mut report = move |_, _| {
                let _ = begun.send(());
                ControlFlow::Continue(())
            };
            let request = Request::new().outcomes(true).references(true).new_references(true).progress(&mut report);
            table.find_or_put_many_with(&words, request).unwrap()
        });
        let distinct: HashSet<_> = batch.new_references.iter().collect();
        assert_eq!(distinct.len(), batch.new_references.len(), "round {round}: a reference is given twice");
        if let Ok(vectors) = table.get_many(&batch.new_references) {
            assert!(table.contains_many(&vectors).unwrap().iter().all(|stored| *stored));
            let placed = batch.positions(Outcome::New).filter(|at| batch.references[*at].is_some()).count();
            assert_eq!(placed, batch.new_references.len(), "round {round}");
        }
    }
}

fn batches_that_are_stopped<S: Kind>(device: &Device) {
    let count = sized(1 << 21, 1 << 19, 1 << 15);
    let words = distinct(WIDTH, 0, count);
    let table = roomy::<S>(WIDTH, 2 * count as u64).build(device).unwrap();
    let mut calls = 0;
    let mut stop = |_, _| {
        calls += 1;
        ControlFlow::Break(())
    };
    let request = Request::new().outcomes(true).references(true).new_references(true).progress(&mut stop);
    let batch = table.find_or_put_many_with(&words, request).unwrap();
    let done = batch.tally.offered() as usize;
    assert_eq!((calls, batch.stopped), (usize::from(done < count || calls > 0), done < count));
    match batch.complete(&table) {
        Ok(tally) => assert_eq!((tally, done), (batch.tally, count)),
        Err(Error::Stopped { offered, given, cause: None }) => {
            assert!(offered < given && (offered, given) == (done as u64, count as u64))
        }
        Err(error) => panic!("{error}"),
    }
    assert_eq!((batch.outcomes.len(), batch.references.len(), batch.new_references.len()), (done, done, done));
    assert_eq!((batch.tally.new, table.len().unwrap()), (done as u64, done as u64));
    let (offered, rest) = words.split_at(done * WIDTH);
    assert!(table.contains_many(offered).unwrap().iter().all(|stored| *stored));
    assert!(table.contains_many(rest).unwrap().iter().all(|stored| !stored));
    let places: Vec<_> = batch.references.iter().map(|place| place.unwrap()).collect();
    assert!(table.get_many(&places).unwrap() == offered);
}

/// Tests of relocation.
pub mod of_cuckoo_tables {
    use super::*;

    tests![
        relocation,
        relocation_without_memory,
        relocating_again_at_once,
        clearing_after_relocation,
        batches_that_relocate,
        growing_beyond_any_capacity
    ];

    /// A cuckoo table whose stash has keys in it.
    fn crowded(device: &Device) -> (VectorTable<Root>, Vec<u32>) {
        let table = VectorTable::<Root>::builder(2).key_bits(30).capacity(1 << 12).cuckoo(true).seed(5).build(device).unwrap();
        let keys: Vec<u32> =
            (0..table.slots() as u32 * 93 / 100).flat_map(|key| [key.wrapping_mul(0x9E37_79B1) >> 2, 0]).collect();
        let _ = table.find_or_put_many_with(&keys, Request::new()).unwrap();
        (table, keys)
    }

    fn holds_exactly(table: &VectorTable<Root>, keys: &[u32], about: &str) {
        let contained = table.contains_many(keys).unwrap();
        let lost = contained.iter().filter(|contained| !**contained).count();
        assert_eq!((lost, table.len().unwrap()), (0, contained.len() as u64), "{about}: {lost} keys are gone");
        assert_eq!(table.iter().filter(|row| row.is_ok()).count(), contained.len(), "{about}");
    }

    fn relocation(device: &Device) {
        with_each_failure(
            || crowded(device),
            |(table, _)| table.relocate(),
            |(table, keys), _, about| {
                let stored = stored_keys(table, keys);
                holds_exactly(table, &stored, about);
                assert_eq!(stored.len(), keys.len(), "{about}: all were stored before");
                table.relocate().unwrap();
                holds_exactly(table, keys, about);
            },
        );
    }

    /// A table so full that relocation leaves keys over.
    fn full(device: &Device) -> (VectorTable<Root>, Vec<u32>) {
        let (table, _) = crowded(device);
        let keys: Vec<u32> =
            (0..table.slots() as u32 * 102 / 100).flat_map(|key| [key.wrapping_mul(0x9E37_79B1) >> 2, 0]).collect();
        let _ = table.find_or_put_many_with(&keys, Request::new()).unwrap();
        let stored = stored_keys(&table, &keys);
        assert!(stored.len() as u64 / 2 > table.slots() * 94 / 100);
        (table, stored)
    }

    /// All memory is allocated before a key moves: a relocation that gets none leaves every reference valid.
    fn relocation_without_memory(device: &Device) {
        let refused = Cell::new(0);
        with_each_failure(
            || {
                let (table, _) = full(device);
                let (places, rows): (Vec<_>, Vec<_>) = table.iter().map(|row| row.unwrap()).unzip();
                (table, places, rows.concat())
            },
            |(table, ..)| table.relocate(),
            |(table, places, keys), result, about| {
                if let Err(Error::OutOfMemory { .. }) = result {
                    refused.set(refused.get() + 1);
                    assert!(table.get_many(places).is_ok_and(|found| found == *keys), "{about}");
                }
            },
        );
        assert!(refused.get() > 0);
    }

    /// The table is not accessed between the two relocations.
    fn relocating_again_at_once(device: &Device) {
        with_each_failure(
            || full(device),
            |(table, _)| table.relocate(),
            |(table, keys), _, about| {
                table.relocate().unwrap();
                holds_exactly(table, keys, about);
            },
        );
    }

    /// Keys that are in no slot when the table is cleared do not come back.
    fn clearing_after_relocation(device: &Device) {
        with_each_failure(
            || full(device),
            |(table, _)| table.relocate(),
            |(table, keys), _, about| {
                table.clear().unwrap();
                assert_eq!(table.len().unwrap(), 0, "{about}");
                assert!(table.contains_many(keys).unwrap().iter().all(|stored| !stored), "{about}");
            },
        );
    }

    fn growing_beyond_any_capacity(device: &Device) {
        let (table, keys) = crowded(device);
        for capacity in [1 << 40, 1 << 60, u64::MAX] {
            assert!(matches!(table.reserve_total(capacity), Err(warpset::Error::OutOfRange { given, .. }) if given == capacity));
        }
        holds_exactly(&table, &keys, "after a growth that cannot be");
    }

    fn stored_keys(table: &VectorTable<Root>, keys: &[u32]) -> Vec<u32> {
        let contained = table.contains_many(keys).unwrap();
        keys.chunks(2).zip(contained).filter(|(_, contained)| *contained).flat_map(|(key, _)| key).copied().collect()
    }

    /// A batch that has to relocate keys; no key is lost if relocation fails.
    fn batches_that_relocate(device: &Device) {
        let keys_for = |table: &VectorTable<Root>| -> Vec<u32> {
            (0..table.slots() as u32 * 97 / 100).flat_map(|key| [key.wrapping_mul(0x9E37_79B1) >> 2, 0]).collect()
        };
        with_each_failure(
            || {
                let (table, first) = crowded(device);
                let keys = keys_for(&table);
                (table, first, keys)
            },
            |(table, _, keys)| table.find_or_put_many(keys),
            |(table, first, keys), result, about| {
                assert_eq!(stored_keys(table, first).len(), first.len(), "{about}: stored keys are gone");
                if let Ok(batch) = result {
                    let contained = table.contains_many(keys).unwrap();
                    for (at, outcome) in batch.outcomes.iter().enumerate() {
                        assert_eq!(contained[at], *outcome != Outcome::Full, "{about}: key {at} is {outcome}");
                    }
                    assert!(batch.tally.full == 0 || batch.error.is_some(), "{about}: full, and no word why");
                }
                table.find_or_put_many(keys).unwrap().complete(table).unwrap();
                holds_exactly(table, keys, about);
            },
        );
    }
}
