//! Many host threads in one table, and many tables on one device. `&self` promises that every interleaving is right.
//!
//! Threads start together at a barrier. No test depends on how they then interleave: each holds in every order. A test of a
//! certain overlap repeats its case often enough that the overlap occurs.
//!
//! Keeps these promises of `README.md`:
//!
//! - Exactly one of all calls that ever offer a vector gets `New` (also `device_memory.rs`, `cuckoo.rs`,
//!   `tests/simt/tests/bucket.rs`, `many_offers.rs`).
//! - A stored vector is one that was offered, never a mixture of two (also `lookalikes.rs`).
//!
//! Keeps this promise of `src/docs/threads_and_streams.md`:
//!
//! - A lookup sees every put that was acknowledged before it began.

use crate::common::checker::{Checker, OrFail, References, join};
use crate::common::set::{Set, everything};
use crate::common::vectors::{Family, Pool, Random, distinct, some_widths};
use crate::common::{
    kinds::{Kind, roomy},
    scaled, sized, tests_of_all_kinds,
};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use warpset::{Batch, Device, Outcome, Reference, Request, VectorTable};

tests_of_all_kinds![
    each_vector_is_new_to_one_caller,
    races_for_the_same_slots,
    equal_vectors_race_chunk_by_chunk,
    callers_race_for_the_last_slots,
    readers_see_what_was_acknowledged,
    readers_see_whole_vectors_only,
    nothing_is_lost_when_another_thread_grows,
    clearing_during_inserts_leaves_a_sound_table,
    tables_that_grow_under_many_callers,
    growths_by_many_threads_each_keep_their_promise,
    new_references_are_complete_when_another_thread_grows,
    several_tables_on_one_device,
];

/// Runs `work(0)`, `work(1)`, ... on threads that start together.
fn together<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let barrier = Barrier::new(threads);
    let (barrier, work) = (&barrier, &work);
    let run = move |thread| {
        barrier.wait();
        work(thread)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Offers these positions in parts; returns the results.
fn offer_in_parts<S: Kind>(table: &VectorTable<S>, pool: &Pool, positions: &[usize], part: usize) -> Vec<(Vec<usize>, Batch)> {
    positions.chunks(part).map(|part| (part.to_vec(), table.find_or_put(&pool.batch(part)))).collect()
}

/// All callers offer the whole pool, each in its own order and parts; the checker then judges all results together.
fn race<'a, S: Kind>(table: &'a VectorTable<S>, pool: &'a Pool, callers: usize, seed: u64) -> Checker<'a, VectorTable<S>> {
    let answers = together(callers, |caller| {
        let positions = pool.shuffled(1, seed * 100 + caller as u64);
        offer_in_parts(table, pool, &positions, pool.len().div_ceil(1 + caller))
    });
    let (positions, batch) = join(answers.into_iter().flatten());
    let mut checker = Checker::of_small(table, pool);
    checker.accept(&positions, &batch).or_fail(format!("width {}, {callers} callers", pool.width()));
    checker
}

fn each_vector_is_new_to_one_caller<S: Kind>(device: &Device) {
    for width in some_widths() {
        for family in [Family::Random, Family::CommonPrefix, Family::LastWord] {
            let pool = Pool::of(family, width, scaled(700, 100));
            let table = roomy::<S>(width, 2 * pool.len() as u64).build(device).unwrap();
            let checker = race::<S>(&table, &pool, 6, 1);
            assert!(checker.rejected().is_empty());
            checker.check().or_fail(format!("width {width}, {family:?}"));
        }
    }
}

/// All vectors share one probe sequence: every vector is put at its end, where all callers meet. A caller that loses a
/// compare-and-swap to another vector must notice that, and go on.
fn races_for_the_same_slots<S: Kind>(device: &Device) {
    for width in some_widths() {
        let pools =
            [Pool::distinct(width, 150), Pool::of(Family::LastWord, width, 150), Pool::of(Family::CommonPrefix, width, 150)];
        for round in 0..sized(6, 2, 1) {
            for pool in &pools {
                let table = roomy::<S>(width, 400);
                let table = if S::SEARCHES_ALL { table.hash_mask(0) } else { table }.build(device).unwrap();
                let checker = race::<S>(&table, pool, 4, round);
                assert!(checker.rejected().is_empty());
                checker.check().or_fail(format!("width {width}, round {round}"));
            }
        }
    }
}

/// Every caller offers the same vectors in the same order, so that each vector is claimed by several at once, chunk by chunk.
fn equal_vectors_race_chunk_by_chunk<S: Kind>(device: &Device) {
    for width in some_widths() {
        let pool = Pool::of(Family::CommonSuffix, width, scaled(1500, 100));
        let table = roomy::<S>(width, 2 * pool.len() as u64).build(device).unwrap();
        let answers = together(4, |_| offer_in_parts::<S>(&table, &pool, &pool.all(), 100));
        let (positions, batch) = join(answers.into_iter().flatten());
        let mut checker = Checker::new(&table, &pool);
        checker.accept(&positions, &batch).or_fail(format!("width {width}"));
        checker.check().or_fail(format!("width {width}"));
    }
}

/// Whichever vectors win, every slot is used, and no vector is rejected for one caller and stored by another.
fn callers_race_for_the_last_slots<S: Kind>(device: &Device) {
    for width in some_widths() {
        for round in 0..scaled(4, 1) {
            let table = roomy::<S>(width, 30).seed(round).build(device).unwrap();
            let pool = Pool::distinct(width, table.slots() as usize + 40);
            let checker = race::<S>(&table, &pool, 6, round);
            checker.check().or_fail(format!("width {width}, round {round}"));
            assert!(checker.stored().len() as u64 >= S::least_full(table.slots()), "width {width}, round {round}");
        }
    }
}

/// Signals on drop that no more vectors will come, also if a writer panics: otherwise readers would wait for ever.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A writer puts vectors part by part and publishes their number; readers meanwhile look for those vectors, for all vectors, and
/// for vectors that are never put.
fn readers_see_what_was_acknowledged<S: Kind>(device: &Device) {
    for width in scaled(vec![1, 3, 4, 16, 33], vec![3]) {
        let pool = Pool::distinct(width, scaled(2000, 200));
        let strangers = distinct(width, 1 << 20, 50);
        let table = roomy::<S>(width, 2 * pool.len() as u64).build(device).unwrap();
        let references = std::sync::Mutex::new(Vec::<Reference>::new());
        let (acknowledged, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
        let write = || {
            let _ends = Ends(&ended);
            for (part, positions) in pool.all().chunks(scaled(100, 50)).enumerate() {
                let batch = table.find_or_put(&pool.batch(positions));
                assert_eq!(batch.tally.new, positions.len() as u64, "part {part}");
                references.lock().unwrap().extend(batch.references.into_iter().map(Option::unwrap));
                // Release: a reader that sees the count also sees the references.
                acknowledged.fetch_add(positions.len(), Ordering::Release);
            }
        };
        let read = || {
            loop {
                let last_round = ended.load(Ordering::Acquire);
                let known = acknowledged.load(Ordering::Acquire);
                let (before, places) = (table.len().unwrap(), references.lock().unwrap()[..known].to_vec());
                assert!(before >= known as u64 && before <= pool.len() as u64, "{before} stored, {known} acknowledged");
                let words = &pool.words()[..known * width];
                assert!(table.contains_many(words).unwrap().iter().all(|contained| *contained), "of {known} acknowledged");
                assert!(table.get_many(&places).unwrap() == words, "of {known} acknowledged");
                assert!(!table.contains_many(&strangers).unwrap().contains(&true));
                let found: HashSet<usize> = table
                    .iter()
                    .map(|row| pool.position(&row.unwrap().1).expect("a row is a whole vector that was offered"))
                    .collect();
                assert!((0..known).all(|at| found.contains(&at)), "a row of {known} acknowledged is missing");
                if last_round {
                    break;
                }
            }
        };
        together(4, |thread| if thread == 0 { write() } else { read() });
        assert_eq!(table.len().unwrap(), pool.len() as u64);
    }
}

/// The slots of wide vectors are half decided for long, so that a concurrent iteration meets some.
fn readers_see_whole_vectors_only<S: Kind>(device: &Device) {
    let width = 256;
    let pool = Pool::distinct(width, scaled(1500, 100));
    let by_first_word: HashMap<u32, usize> = (0..pool.len()).map(|at| (pool.vector(at)[0], at)).collect();
    let table = roomy::<S>(width, 2 * pool.len() as u64).build(device).unwrap();
    for _ in 0..sized(20, 4, 2) {
        let ended = AtomicBool::new(false);
        together(2, |thread| {
            if thread == 0 {
                let _ends = Ends(&ended);
                assert_eq!(table.find_or_put_many_with(pool.words(), Request::new()).unwrap().tally.full, 0);
                return;
            }
            loop {
                let last_round = ended.load(Ordering::Acquire);
                for row in &table {
                    let (reference, vector) = row.unwrap();
                    let whole = by_first_word.get(&vector[0]).is_some_and(|at| pool.vector(*at) == vector);
                    assert!(whole, "at {reference:?} is {:x?} ... {:x?}", &vector[..4], &vector[width - 4..]);
                }
                if last_round {
                    break;
                }
            }
        });
        table.clear().unwrap();
    }
}

/// One thread makes the table grow, again and again, while the others put vectors.
fn nothing_is_lost_when_another_thread_grows<S: Kind>(device: &Device) {
    const CALLERS: usize = 3;
    for width in scaled(vec![1, 3, 4, 7, 16, 33], vec![3]) {
        let pool = Pool::distinct(width, scaled(2500, 150));
        let table = roomy::<S>(width, 2 * pool.len() as u64).build(device).unwrap();
        let callers_left = AtomicUsize::new(CALLERS);
        let answers = together(CALLERS + 1, |thread| {
            if thread == CALLERS {
                // The number of growths is limited, because every growth copies a larger table.
                for _ in 0..sized(300, 100, 5) {
                    table.reserve_total(table.slots() + 1).expect("grow");
                    if callers_left.load(Ordering::Acquire) == 0 {
                        break;
                    }
                }
                return Vec::new();
            }
            let answers = offer_in_parts::<S>(&table, &pool, &pool.shuffled(1, thread as u64), 40);
            callers_left.fetch_sub(1, Ordering::Release);
            answers
        });
        let (positions, batch) = join(answers.into_iter().flatten());
        let mut checker = Checker::new(&table, &pool);
        checker.accept_with(&positions, &batch, References::Moved).or_fail(format!("width {width}"));
        checker.check().or_fail(format!("width {width}"));
    }
}

/// A vector is New at most once more per clearing, and the remaining vectors are a set of offered ones. The table is large, so
/// that clearing it takes as long as many inserts.
fn clearing_during_inserts_leaves_a_sound_table<S: Kind>(device: &Device) {
    const CLEARINGS: usize = 5;
    const CALLERS: usize = 3;
    for width in sized(vec![1, 3, 4, 16], vec![1, 16], vec![3]) {
        let pool = Pool::distinct(width, scaled(600, 100));
        let table = roomy::<S>(width, scaled(1 << 20, 1 << 12) / width as u64).build(device).unwrap();
        for round in 0..scaled(4, 1) {
            let cleared = AtomicBool::new(false);
            let answers = together(CALLERS + 1, |thread| {
                if thread == CALLERS {
                    let _ends = Ends(&cleared);
                    (0..CLEARINGS).for_each(|_| table.clear().expect("clear"));
                    return Vec::new();
                }
                let mut answers = Vec::new();
                loop {
                    let last_round = cleared.load(Ordering::Acquire);
                    answers.extend(offer_in_parts::<S>(&table, &pool, &pool.shuffled(1, thread as u64), 20));
                    if last_round {
                        break answers;
                    }
                }
            });
            let mut news: HashMap<usize, usize> = HashMap::new();
            for (positions, batch) in answers.into_iter().flatten() {
                assert_eq!(batch.tally.full, 0);
                let fresh = positions.iter().zip(&batch.outcomes).filter(|(_, outcome)| **outcome == Outcome::New);
                fresh.for_each(|(at, _)| *news.entry(*at).or_default() += 1);
            }
            let context = format!("width {width}, round {round}");
            // Vectors of the previous round may still be stored until the first clearing.
            assert_eq!(news.len(), pool.len(), "{context}: every vector is New at least once");
            assert!(news.values().all(|news| *news <= CLEARINGS + 1), "{context}: {news:?}");
            // All vectors are offered once more after the last clearing, so all are stored.
            let rows: Vec<usize> =
                table.rows().into_iter().map(|(_, row)| pool.position(&row).expect("an offered one")).collect();
            assert_eq!((rows.len(), table.len().unwrap()), (pool.len(), pool.len() as u64), "{context}");
            assert_eq!(rows.into_iter().collect::<HashSet<_>>().len(), pool.len(), "{context}");
            assert_eq!(table.find_or_put_many(pool.words()).unwrap().tally.seen, pool.len() as u64, "{context}");
        }
    }
}

fn tables_that_grow_under_many_callers<S: Kind>(device: &Device) {
    for width in some_widths() {
        let pool = Pool::distinct(width, scaled(800, 150));
        let table = VectorTable::<S>::builder(width).capacity(1).grows(true).build(device).unwrap();
        let answers =
            together(5, |caller| offer_in_parts::<S>(&table, &pool, &pool.shuffled(1, caller as u64), 40 + caller * 31));
        for (_, batch) in answers.iter().flatten() {
            // This includes vectors that found no slot at first.
            assert!(batch.references.iter().all(Option::is_some), "width {width}: {}", batch.tally);
            assert_eq!(batch.new_references.len() as u64, batch.tally.new, "width {width}");
        }
        let (positions, batch) = join(answers.into_iter().flatten());
        let mut checker = Checker::new(&table, &pool);
        checker.accept_with(&positions, &batch, References::Moved).or_fail(format!("width {width}"));
        checker.check().or_fail(format!("width {width}"));
        assert!(table.slots() >= pool.len() as u64);
    }
}

/// `grow(capacity)` returns Ok only if the table then has that capacity, even if other threads make it grow meanwhile.
fn growths_by_many_threads_each_keep_their_promise<S: Kind>(device: &Device) {
    const THREADS: usize = 3;
    for round in 0..sized(100, 30, 1) {
        let table = roomy::<S>(2, 100).build(device).unwrap();
        let vectors = distinct(2, 0, 90);
        let _ = table.find_or_put_many(&vectors).unwrap();
        let arrived = AtomicUsize::new(0);
        let broken: Vec<String> = together(THREADS, |number| {
            let mut random = Random::new(round * 10 + number as u64);
            let mut broken = Vec::new();
            for step in 1..10 {
                // Spins until the last thread arrives, so that all see the same table. An assertion here would leave the others
                // waiting for ever.
                arrived.fetch_add(1, Ordering::Relaxed);
                while arrived.load(Ordering::Relaxed) < step * THREADS {
                    thread::yield_now();
                }
                let capacity = (500 * step + random.below(500)) as u64;
                let (done, slots) = (table.reserve_total(capacity), table.slots());
                if done.is_err() || slots < capacity {
                    broken.push(format!("reserve_total({capacity}) is {done:?}, and there are {slots} slots"));
                }
            }
            broken
        })
        .concat();
        assert!(broken.is_empty(), "{broken:#?}");
        assert_eq!(table.len().unwrap(), 90);
        assert!(table.contains_many(&vectors).unwrap().iter().all(|contained| *contained));
    }
}

/// The table grows between the put and the report of it. A batch reports its progress from inside the put, so the test can time
/// the growth for that moment.
fn new_references_are_complete_when_another_thread_grows<S: Kind>(device: &Device) {
    for (round, references) in (0..sized(10, 4, 2)).flat_map(|round| [(round, false), (round, true)]) {
        let count = scaled(40_000, 500);
        let table = roomy::<S>(2, 2 * count as u64).build(device).unwrap();
        let vectors = distinct(2, round * 100_000, count);
        let (under_way, wait_for_it) = channel();
        let batch = thread::scope(|scope| {
            let table = &table;
            scope.spawn(move || {
                if wait_for_it.recv().is_ok() {
                    table.reserve_total(table.slots() + 1).expect("grow");
                }
            });
            let mut report = move |_, _| {
                // The first report starts the growth; later sends may fail, because the receiving thread has then ended.
                let _ = under_way.send(());
                ControlFlow::Continue(())
            };
            let request = Request::new().references(references).new_references(true).progress(&mut report);
            table.find_or_put_many_with(&vectors, request).unwrap()
        });
        assert_eq!(batch.tally.new, count as u64);
        assert_eq!(batch.new_references.len(), count, "round {round}, with references: {references}");
        assert_eq!(batch.references.len(), if references { count } else { 0 }, "round {round}");
    }
}

/// Tables share a device's kernels and buffers, and nothing else.
fn several_tables_on_one_device<S: Kind>(device: &Device) {
    let widths = scaled(vec![1, 2, 3, 3, 4, 8, 17, 33], vec![3, 3, 4, 7]);
    together(widths.len(), |thread| {
        let width = widths[thread];
        let pool = Pool::distinct(width, scaled(800, 100));
        for grows in [false, true] {
            let capacity = if grows { 10 } else { 2 * pool.len() as u64 };
            let table = roomy::<S>(width, capacity).grows(grows).build(device).unwrap();
            let mut checker = Checker::new(&table, &pool);
            for part in pool.shuffled(2, thread as u64).chunks(150) {
                let _ = checker.offer(part).or_fail(format!("width {width}"));
            }
            checker.check().or_fail(format!("width {width}"));
            checker.clear().or_fail(format!("width {width}"));
        }
    });
    // Requests of different results share buffers, too.
    let table = roomy::<S>(2, 1000).build(device).unwrap();
    let answers = together(4, |thread| {
        let request = if thread % 2 == 0 { everything() } else { Request::new() };
        table.find_or_put_many_with(&distinct(2, 0, 500), request).unwrap().tally.new
    });
    assert_eq!(answers.iter().sum::<u64>(), 500);
}
