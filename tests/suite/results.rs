//! Results of a batch: exactly the requested ones are reported, and they are the same for every request.
//!
//! Keeps this promise of the documentation of `Table::contains_many`:
//!
//! - A lookup puts nothing (also `device_memory.rs`).
//!
//! Keeps this promise of `src/docs/host_batches.md`:
//!
//! - Buffers and pinned memory hold the results of batches, and nothing of a batch that failed.
//!
//! Keeps this promise of `src/docs/threads_and_streams.md`:
//!
//! - Progress grows and ends at the total, on the calling thread.

use crate::common::checker::{Checker, OrFail};
use crate::common::vectors::{Pool, distinct, some_widths};
use crate::common::{
    kinds::{Kind, roomy},
    scaled, tests_of_all_kinds,
};
use std::collections::HashSet;
use std::ops::ControlFlow;
use warpset::{Buffers, Device, Outcome, Request, VectorTable};

tests_of_all_kinds![
    every_combination_of_results,
    buffers_hold_what_batches_report,
    the_tally_needs_no_results,
    batches_of_one_vector,
    batches_around_the_size_that_a_thread_takes,
    an_empty_batch_changes_nothing,
    batches_at_any_address,
    progress_only_grows_and_ends_at_the_total,
    lookups_put_nothing,
];

/// With and without growth; duplicates in the batch, and vectors that were stored before.
fn every_combination_of_results<S: Kind>(device: &Device) {
    for (width, grows) in [1, 3, 4, 16, 17].into_iter().flat_map(|width| [(width, false), (width, true)]) {
        for wanted in 0..8 {
            let [outcomes, references, new_references] = [1, 2, 4].map(|bit| wanted & bit != 0);
            let builder = if grows { VectorTable::<S>::builder(width).capacity(300) } else { roomy::<S>(width, 2000) };
            let table = builder.grows(grows).build(device).unwrap();
            let words = distinct(width, 0, 600);
            let _ = table.find_or_put_many(&words[..100 * width]).unwrap();
            let vectors = [&words[..], &words[50 * width..]].concat();
            let request = Request::new().outcomes(outcomes).references(references).new_references(new_references);
            let batch = table.find_or_put_many_with(&vectors, request).unwrap();
            let context = format!("width {width}, grows {grows}, wanted {wanted:b}");
            assert_eq!((batch.tally.new, batch.tally.seen, batch.tally.full), (500, 650, 0), "{context}");
            assert_eq!(batch.tally.offered(), 1150);
            assert_eq!(batch.outcomes.len(), if outcomes { 1150 } else { 0 }, "{context}");
            assert_eq!(batch.references.len(), if references { 1150 } else { 0 }, "{context}");
            assert_eq!(batch.new_references.len(), if new_references { 500 } else { 0 }, "{context}");
            if outcomes {
                let fresh: HashSet<&[u32]> = batch.positions(Outcome::New).map(|at| &vectors[at * width..][..width]).collect();
                assert_eq!(fresh, words[100 * width..].chunks(width).collect(), "{context}");
            }
            if references {
                let places: Vec<_> = batch.references.iter().map(|place| place.expect("it fits")).collect();
                assert!(table.get_many(&places).unwrap() == vectors, "{context}");
            }
            if new_references {
                let fresh = table.get_many(&batch.new_references).unwrap();
                let fresh: HashSet<&[u32]> = fresh.chunks(width).collect();
                assert_eq!(fresh, words[100 * width..].chunks(width).collect(), "{context}");
            }
        }
    }
}

/// Batches that get longer and shorter, and that fail, report the same results in reused memory. On a GPU it is pinned, and so
/// are the vectors, of several segments.
fn buffers_hold_what_batches_report<S: Kind>(device: &Device) {
    for (width, grows) in [(2, false), (5, false), (5, true)] {
        let longest = scaled(if device.is_gpu() { 5_000_000 / width } else { 20_000 }, 2000);
        let mut buffers = [Buffers::new(), pinned_buffers(device)];
        let builder = if grows { VectorTable::<S>::builder(width).capacity(300) } else { roomy::<S>(width, 2 * longest as u64) };
        let tables = [0, 1, 2].map(|_| builder.clone().seed(3).grows(grows).build(device).unwrap());
        for count in [longest / 2, longest, 1, 0, longest / 3] {
            let once = distinct(width, 0, count);
            let vectors = [&once[..], &once[..count / 2 * width]].concat();
            let batch = tables[0].find_or_put_many_with(&vectors, all()).unwrap();
            for (buffers, table) in buffers.iter_mut().zip(&tables[1..]) {
                let given = with_pinned(device, &vectors, |vectors| {
                    let batch = table.find_or_put_many_with(vectors, all().into(buffers)).unwrap();
                    assert!(batch.outcomes.is_empty() && batch.references.is_empty() && batch.new_references.is_empty());
                    batch.tally
                });
                assert_eq!(given, batch.tally, "width {width}, {count} vectors");
                let count_of = |outcomes: &[Outcome], of| outcomes.iter().filter(|outcome| **outcome == of).count();
                for outcome in [Outcome::New, Outcome::Seen] {
                    assert_eq!(count_of(buffers.outcomes(), outcome), count_of(&batch.outcomes, outcome));
                }
                let references: Vec<_> = buffers.references().iter().map(|of| of.expect("it fits")).collect();
                assert!(table.get_many(&references).unwrap() == vectors, "width {width}, {count} vectors");
                let fresh = table.get_many(buffers.new_references()).unwrap();
                let [fresh, expected] = [fresh, tables[0].get_many(&batch.new_references).unwrap()].map(|vectors| {
                    let mut rows: Vec<Vec<u32>> = vectors.chunks(width).map(<[u32]>::to_vec).collect();
                    rows.sort_unstable();
                    rows
                });
                assert!(fresh == expected, "width {width}, {count} vectors");
                assert!(
                    with_pinned(device, &vectors, |vectors| table.contains_many(vectors).unwrap()).iter().all(|found| *found)
                );
            }
        }
        // A failed batch leaves no results of the batch before.
        assert!(tables[1].find_or_put_many_with(&[1; 7], all().parents(&[]).into(&mut buffers[0])).is_err());
        assert!(buffers[0].outcomes().is_empty() && buffers[0].references().is_empty() && buffers[0].new_references().is_empty());
    }
}

fn all<'a>() -> Request<'a> {
    Request::new().outcomes(true).references(true).new_references(true)
}

#[cfg(feature = "cuda")]
fn pinned_buffers(device: &Device) -> Buffers {
    Buffers::pinned(device)
}

#[cfg(not(feature = "cuda"))]
fn pinned_buffers(_: &Device) -> Buffers {
    Buffers::new()
}

/// Passes the vectors to `use_them`: on a GPU in pinned memory.
fn with_pinned<T>(device: &Device, vectors: &[u32], use_them: impl FnOnce(&[u32]) -> T) -> T {
    #[cfg(feature = "cuda")]
    if device.is_gpu() {
        return use_them(&warpset::gpu::PinnedVec::from_slice(device, vectors).unwrap());
    }
    let _ = device;
    use_them(vectors)
}

fn the_tally_needs_no_results<S: Kind>(device: &Device) {
    let table = roomy::<S>(3, scaled(40_000, 2000)).build(device).unwrap();
    let count = scaled(20_000, 1000);
    let vectors = distinct(3, 0, count);
    for (new, seen) in [(count, 0), (0, count)] {
        let batch = table.find_or_put_many_with(&vectors, Request::new()).unwrap();
        assert_eq!((batch.tally.new, batch.tally.seen, batch.tally.full), (new as u64, seen as u64, 0));
        assert!(batch.outcomes.is_empty() && batch.references.is_empty() && batch.new_references.is_empty());
    }
}

fn batches_of_one_vector<S: Kind>(device: &Device) {
    for width in some_widths() {
        let (table, pool) = (roomy::<S>(width, 100).build(device).unwrap(), Pool::distinct(width, 20));
        let mut checker = Checker::new(&table, &pool);
        for at in pool.shuffled(2, 1) {
            let _ = checker.offer(&[at]).or_fail(width);
        }
        checker.check().or_fail(width);
    }
}

/// The CPU's threads take 4,096 vectors at a time, a GPU's warps 32: results could be misplaced at the seams.
fn batches_around_the_size_that_a_thread_takes<S: Kind>(device: &Device) {
    for width in [1, 3, 8] {
        let sizes = [31, 32, 33, 255, 257, 4095, 4096, 4097, 8192, 8193, 12_289];
        for count in &sizes[..scaled(sizes.len(), 5)] {
            let (table, pool) = (roomy::<S>(width, 20_000).build(device).unwrap(), Pool::distinct(width, *count));
            let mut checker = Checker::new(&table, &pool);
            let _ = checker.offer(&pool.all()).or_fail(format!("width {width}, {count} vectors"));
            checker.check().or_fail(format!("width {width}, {count} vectors"));
        }
    }
}

fn an_empty_batch_changes_nothing<S: Kind>(device: &Device) {
    for grows in [false, true] {
        let table = roomy::<S>(3, 10).grows(grows).build(device).unwrap();
        let _ = table.find_or_put_many(&[1, 2, 3]).unwrap();
        let request = || Request::new().outcomes(true).references(true).new_references(true);
        assert_eq!(table.find_or_put_many_with(&[], request()).unwrap(), warpset::Batch::default());
        assert_eq!(table.contains_many(&[]).unwrap(), [false; 0]);
        assert!(table.locate_many(&[]).unwrap().is_empty());
        assert!(table.get_many(&[]).unwrap().is_empty());
        assert_eq!(table.len().unwrap(), 1);
        assert_eq!(table.contains_many(&[1, 2, 3]).unwrap(), [true]);
    }
}

/// Words are aligned to 4 bytes only; chunks are larger.
fn batches_at_any_address<S: Kind>(device: &Device) {
    for width in some_widths() {
        let table = roomy::<S>(width, 500).build(device).unwrap();
        let vectors = distinct(width, 0, 100);
        for offset in 0..4 {
            let buffer = [&vec![0; offset][..], &vectors].concat();
            let batch = table.find_or_put_many(&buffer[offset..]).unwrap();
            assert_eq!(batch.tally.new, if offset == 0 { 100 } else { 0 }, "width {width}, offset {offset}");
            assert!(table.contains_many(&buffer[offset..]).unwrap().iter().all(|contained| *contained));
        }
        assert_eq!(table.len().unwrap(), 100);
    }
}

fn progress_only_grows_and_ends_at_the_total<S: Kind>(device: &Device) {
    for grows in [false, true] {
        let count = scaled(1 << 18, 5000);
        let table = roomy::<S>(2, if grows { 1000 } else { 1 << 19 }).grows(grows).build(device).unwrap();
        let vectors = distinct(2, 0, count);
        let (mut reports, caller) = (Vec::new(), std::thread::current().id());
        let mut report = |done, total| {
            assert_eq!(std::thread::current().id(), caller, "the callback may not be Send");
            reports.push((done, total));
            ControlFlow::Continue(())
        };
        let batch = table.find_or_put_many_with(&vectors, Request::new().progress(&mut report)).unwrap();
        assert_eq!(batch.tally.new, count as u64);
        assert!(reports.iter().all(|(done, total)| *total == count as u64 && done <= total), "grows {grows}: {reports:?}");
        assert!(reports.is_sorted(), "grows {grows}: {reports:?}");
        // On several threads of a CPU another thread than the caller's may do the last piece, or all.
        if device.is_gpu() || device.to_string() == "CPU (1 thread)" {
            assert_eq!(reports.last(), Some(&(count as u64, count as u64)), "grows {grows}");
        }
    }
}

fn lookups_put_nothing<S: Kind>(device: &Device) {
    for width in some_widths() {
        let table = roomy::<S>(width, 400).build(device).unwrap();
        let words = distinct(width, 0, 200);
        let (stored, absent) = words.split_at(100 * width);
        let batch = table.find_or_put_many_with(stored, Request::new().references(true)).unwrap();
        for _ in 0..2 {
            assert!(table.contains_many(absent).unwrap().iter().all(|contained| !contained), "width {width}");
            assert!(table.locate_many(absent).unwrap().iter().all(Option::is_none), "width {width}");
            assert_eq!(table.locate_many(stored).unwrap(), batch.references, "width {width}");
        }
        assert_eq!(table.len().unwrap(), 100);
    }
}
