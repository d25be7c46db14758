//! Ranks that fail, and messages that are lost or changed. In every case each rank's call returns in time with a true result, no
//! stored vector is lost, and the tables can form one set again.
//!
//! A run without faults counts the messages of an operation. The operation is then repeated, on new tables each time, with each
//! fault of each message of a rank. Most faults are noticed by a time-out, so cases wait in parallel.
//!
//! Keeps these promises of `src/docs/several_gpus.md`:
//!
//! - If any message is lost, late or wrong, every call returns in time, nothing stored is lost, and the tables make one set
//!   again.
//! - Ranks that end, stall or panic are errors on the others.

use crate::common::kinds::{Kind, roomy};
use crate::common::spread::{Rank, build, on_all};
use crate::common::vectors::distinct;
use crate::common::{scaled, simulated, sized, tests_of_all_kinds};
use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use warpset::cluster::{Batch, Builder, Fault, FaultKind, Local, Request};
#[cfg(feature = "cuda")]
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::{Bucket, Device, Error, Outcome, Result, VectorTable, Words, faults};

tests_of_all_kinds![of Bucket:
    messages_of_a_batch,
    messages_of_lookups,
    messages_of_fetches,
    messages_of_building,
    messages_of_clearing,
    devices_that_fail,
    ranks_that_go_away,
    ranks_that_stall,
    ranks_that_panic,
];

const WIDTH: usize = 4;
const RANKS: usize = 3;
/// Number of vectors stored before, and of vectors offered; the first of the offered ones are stored already.
const STORED: usize = 60;
const OFFERED: usize = 150;
/// Vectors per round: one rank needs two rounds to offer all.
const ROUND: usize = 100;
/// Far longer than a step takes on a busy machine. Kernels of a simulated device run on the CPU.
fn timeout() -> Duration {
    Duration::from_secs(if simulated() { 20 } else { 2 })
}

/// Faults that show without waiting for a message.
const KINDS: [FaultKind; 8] = [
    FaultKind::Lost,
    FaultKind::Late(Duration::from_millis(50)),
    FaultKind::Overtaken,
    FaultKind::Misrouted,
    FaultKind::Half,
    FaultKind::HalfZeros,
    FaultKind::Abort,
    FaultKind::Gone,
];

fn words(count: usize) -> Vec<u32> {
    distinct(WIDTH, 0, count)
}

fn transports(faults: Vec<Fault>) -> Vec<Local> {
    Local::with_faults(RANKS, timeout(), faults)
}

/// Transports for the preparation: kernels are compiled meanwhile, which may take longer than `timeout`.
fn patient_transports() -> Vec<Local> {
    Local::with_faults(RANKS, 60 * timeout(), Vec::new())
}

/// Builder of a rank; one of the ranks deduplicates equal vectors.
fn builder<S: Kind>(rank: usize) -> Builder<Words, S> {
    Builder::new(roomy::<S>(WIDTH, 4 * OFFERED as u64)).round(ROUND).deduplicate(rank == 1)
}

/// Makes ranks that have stored vectors.
fn prepared<S: Kind>(
    devices: [&Device; RANKS],
    builder: impl Fn(usize) -> Builder<Words, S> + Sync,
    transports: Vec<Local>,
) -> Vec<Rank<S>> {
    let built = on_all(transports, |rank, transport| builder(rank).build(devices[rank], transport));
    let mut ranks: Vec<_> = built.into_iter().map(|rank| rank.expect("no fault yet")).collect();
    on_all(&mut ranks, |rank, table| {
        let all = words(STORED);
        let batch = table.find_or_put_many(if rank == 0 { &all } else { &[] }).expect("no fault yet");
        assert_eq!(batch.total.new, STORED as u64);
    });
    ranks
}

/// Calls `case` for each message that `RANKS` ranks send in `operate` and each fault of it.
fn with_each_fault<S: Kind, R: Send>(
    device: &Device,
    operate: impl Fn(usize, &mut Rank<S>) -> Result<R> + Sync,
    judge: impl Fn(&[Result<R>], &mut [Rank<S>], &str) + Sync,
) {
    with_each_fault_on([device; RANKS], builder::<S>, operate, judge);
}

/// As `with_each_fault`, with one device per rank.
fn with_each_fault_on<S: Kind, R: Send>(
    devices: [&Device; RANKS],
    builder: impl Fn(usize) -> Builder<Words, S> + Sync,
    operate: impl Fn(usize, &mut Rank<S>) -> Result<R> + Sync,
    judge: impl Fn(&[Result<R>], &mut [Rank<S>], &str) + Sync,
) {
    let quiet = patient_transports();
    let watches: Vec<_> = quiet.iter().map(Local::watch).collect();
    let mut ranks = prepared(devices, &builder, quiet);
    let before: Vec<u64> = watches.iter().map(|watch| watch()).collect();
    let results = on_all(&mut ranks, &operate);
    assert!(results.iter().all(Result::is_ok), "without faults");
    let sent: Vec<u64> = watches.iter().zip(&before).map(|(watch, before)| watch() - before).collect();
    judge(&results, &mut ranks, "without faults");
    assert!(sent.iter().all(|sent| *sent > 0), "all ranks take part");
    let stride = sized(1, 7, 5);
    let of_rank = |rank: usize| (0..sent[rank]).map(move |message| (rank, message));
    let messages = (0..RANKS).flat_map(of_rank);
    let faults = messages.flat_map(|(rank, message)| {
        let message = before[rank] + message;
        KINDS.map(|kind| Fault { rank, message, kind })
    });
    // Every message is tested with some of the faults, and in full runs with all.
    let faults: Vec<Fault> =
        faults.enumerate().filter(|(number, _)| number.is_multiple_of(stride)).map(|(_, fault)| fault).collect();
    in_parallel(&devices, &faults, |fault| {
        let mut ranks = prepared(devices, &builder, transports(vec![*fault]));
        let began = Instant::now();
        let results = on_all(&mut ranks, &operate);
        let about = format!("{fault:?} of messages {before:?} + {sent:?}");
        // A call may wait for the end of the connection, and then for its own next message; and the machine may be busy.
        assert!(began.elapsed() < 4 * timeout(), "{about}: it took {:?}", began.elapsed());
        let errors = results.iter().filter(|result| result.is_err()).count();
        match fault.kind {
            FaultKind::Late(_) => assert_eq!(errors, 0, "{about}: {:?}", results.iter().find_map(|result| result.as_ref().err())),
            FaultKind::Abort | FaultKind::Gone => assert!(results[fault.rank].is_err(), "{about}"),
            _ => assert!(errors > 0, "{about}: nobody has noticed"),
        }
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            assert!(matches!(error, Error::Connection { .. }), "{about}: {error}");
        }
        judge(&results, &mut ranks, &about);
    });
}

/// Calls `each` for all items, many at a time, because nearly all of them wait. If the machine or a device stands still for a
/// while, a rank appears to be stalled; a case that fails by a time-out in such a period is repeated once, alone.
fn in_parallel<I: Sync>(devices: &[&Device], items: &[I], each: impl Fn(&I) + Sync) {
    let (next, others) = (AtomicUsize::new(0), RwLock::new(()));
    with_a_clock(devices, |stood_still_since| {
        // Cases mostly wait, but on a simulated device they compute.
        let at_once = if simulated() { 4 } else { 24 };
        on_all(0..at_once.min(items.len()), |_, _| {
            // Relaxed: only the uniqueness of the numbers matters.
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                let began = Instant::now();
                let done = {
                    let _among_others = others.read().unwrap_or_else(PoisonError::into_inner);
                    catch_unwind(AssertUnwindSafe(|| each(item)))
                };
                match done {
                    Ok(()) => {}
                    Err(panic) if is_of_time(&*panic) && stood_still_since(began) => {
                        let _by_itself = others.write().unwrap_or_else(PoisonError::into_inner);
                        each(item);
                    }
                    Err(panic) => resume_unwind(panic),
                }
            }
        });
    });
}

/// Whether a panic mentions `timeout`, or a duration.
fn is_of_time(panic: &(dyn Any + Send)) -> bool {
    let text = panic.downcast_ref::<String>().map_or("", String::as_str);
    [format!("{:?}", timeout()).as_str(), "it took"].iter().any(|part| text.contains(part))
}

/// Calls `run` beside a thread that watches the clock, and looks for a vector on each of the devices, again and again. The
/// argument of `run` tells whether that thread was late by a tenth of `timeout` at any time since the given instant. A GPU that
/// other tests keep busy makes calls wait, although no thread of the host is late.
fn with_a_clock(devices: &[&Device], run: impl FnOnce(&(dyn Fn(Instant) -> bool + Sync))) {
    let small = |device: &&Device| VectorTable::<Bucket>::builder(WIDTH).capacity(1).build(device).unwrap();
    let tables: Vec<_> = devices.iter().map(small).collect();
    let look = || tables.iter().for_each(|table| assert_eq!(table.contains_many(&[0; WIDTH]).unwrap(), [false]));
    // The kernel is compiled before the clock starts.
    look();
    // When the thread was last late, and its last sign of life.
    let (signs, ended) = (Mutex::new((None::<Instant>, Instant::now())), AtomicBool::new(false));
    let limit = timeout() / 10;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Relaxed: the flag passes on no other data.
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(timeout() / 100);
                look();
                let (late, last) = &mut *signs.lock().unwrap();
                if last.elapsed() > limit {
                    *late = Some(Instant::now());
                }
                *last = Instant::now();
            }
        });
        let done = catch_unwind(AssertUnwindSafe(|| {
            run(&|began| {
                let (late, last) = *signs.lock().unwrap();
                late.is_some_and(|late| late >= began) || last.elapsed() > limit
            });
        }));
        ended.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

/// Number of times that each of the first `OFFERED` vectors is stored, on all ranks together; fails for any other vector.
fn stored<S: Kind>(ranks: &[Rank<S>], about: &str) -> HashMap<Vec<u32>, usize> {
    let mut counts: HashMap<Vec<u32>, usize> = words(OFFERED).chunks(WIDTH).map(|row| (row.to_vec(), 0)).collect();
    for row in ranks.iter().flat_map(|rank| rank.local().iter()) {
        let row = row.unwrap().1;
        *counts.get_mut(&row).unwrap_or_else(|| panic!("{about}: {row:?} was never offered")) += 1;
    }
    counts
}

/// Asserts that the tables hold all vectors that they must, and work as one set: on the present connection if it is good.
fn works<S: Kind>(ranks: &mut [Rank<S>], connected: bool, about: &str) {
    let (all, before) = (words(OFFERED), stored(ranks, about));
    assert!(before.values().all(|count| *count <= 1), "{about}: stored twice");
    if !connected {
        let done = on_all(ranks.iter_mut().zip(patient_transports()), |_, (rank, transport)| rank.reconnect(transport));
        done.into_iter().for_each(|done| done.unwrap_or_else(|error| panic!("{about}: {error}")));
    }
    let batches =
        on_all(ranks.iter_mut(), |_, rank| rank.find_or_put_many(&all).unwrap_or_else(|error| panic!("{about}: {error}")));
    let missing = before.values().filter(|count| **count == 0).count() as u64;
    let expected = (missing, (RANKS * OFFERED) as u64);
    batches.iter().for_each(|batch| assert_eq!((batch.total.new, batch.total.offered()), expected, "{about}"));
    assert!(stored(ranks, about).values().all(|count| *count == 1), "{about}");
}

/// Asserts that no vector is lost, and that no vector was New twice, whatever the result of the batch.
fn judge_batches<S: Kind>(results: &[Result<Batch>], ranks: &mut [Rank<S>], about: &str) {
    let (all, now) = (words(OFFERED), stored(ranks, about));
    assert!(all.chunks(WIDTH).take(STORED).all(|row| now[row] == 1), "{about}: something is lost");
    let mut new: HashMap<&[u32], usize> = HashMap::new();
    for batch in results.iter().flatten() {
        for (row, outcome) in all.chunks(WIDTH).zip(&batch.outcomes) {
            assert!(*outcome != Outcome::Full && now[row] == 1, "{about}: {row:?} is {outcome}");
            *new.entry(row).or_default() += usize::from(*outcome == Outcome::New);
        }
    }
    assert!(new.values().all(|new| *new <= 1), "{about}: New to two");
    works(ranks, results.iter().all(Result::is_ok), about);
}

fn messages_of_a_batch<S: Kind>(device: &Device) {
    let all = words(OFFERED);
    let request = Request::new().references(true);
    with_each_fault::<S, _>(device, |_, table| table.find_or_put_many_with(&all, request), judge_batches);
}

fn messages_of_lookups<S: Kind>(device: &Device) {
    let all = words(OFFERED);
    with_each_fault::<S, _>(
        device,
        |_, table| table.contains_many(&all),
        |results, ranks, about| {
            for answers in results.iter().flatten() {
                assert!(answers.iter().enumerate().all(|(at, stored)| *stored == (at < STORED)), "{about}");
            }
            works(ranks, results.iter().all(Result::is_ok), about);
        },
    );
}

fn messages_of_fetches<S: Kind>(device: &Device) {
    let some = words(STORED);
    with_each_fault::<S, _>(
        device,
        |_, table| {
            let places: Vec<_> = table.locate_many(&some)?.into_iter().flatten().collect();
            table.get_many(&places)
        },
        |results, ranks, about| {
            assert!(results.iter().flatten().all(|got| *got == some), "{about}");
            works(ranks, results.iter().all(Result::is_ok), about);
        },
    );
}

fn messages_of_clearing<S: Kind>(device: &Device) {
    with_each_fault::<S, _>(
        device,
        |_, table| table.clear().and_then(|()| table.len()),
        |results, ranks, about| {
            assert!(results.iter().flatten().all(|len| *len == 0), "{about}");
            works(ranks, results.iter().all(Result::is_ok), about);
        },
    );
}

/// Each rank gets a table or an error.
fn messages_of_building<S: Kind>(device: &Device) {
    let faults: Vec<Fault> = (0..RANKS)
        .flat_map(|rank| (0..2 * (RANKS as u64 - 1)).map(move |message| (rank, message)))
        .flat_map(|(rank, message)| KINDS.map(|kind| Fault { rank, message, kind }))
        .collect();
    drop(prepared([device; RANKS], builder::<S>, patient_transports()));
    in_parallel(&[device], &faults, |fault| {
        let began = Instant::now();
        let built = build(device, transports(vec![*fault]), builder::<S>);
        assert!(began.elapsed() < 4 * timeout(), "{fault:?}: it took {:?}", began.elapsed());
        let errors = built.iter().filter(|built| built.is_err()).count();
        match fault.kind {
            FaultKind::Late(_) => assert_eq!(errors, 0, "{fault:?}"),
            // A message that is late, or that goes to another rank, is noticed by the rank that waits for it, or for the next
            // one.
            _ => assert!(errors > 0, "{fault:?}"),
        }
    });
}

/// Each call of a rank's device that may fail fails in turn. The error reaches the other ranks.
fn devices_that_fail<S: Kind>(device: &Device) {
    each_call_fails::<S>([device; RANKS]);
}

fn each_call_fails<S: Kind>(devices: [&Device; RANKS]) {
    let all = words(OFFERED);
    let offer = |table: &mut Rank<S>| table.find_or_put_many_with(&all, Request::new().references(true).stored_here(true));
    let mut ranks = prepared(devices, builder::<S>, patient_transports());
    let calls = on_all(
        &mut ranks,
        |rank, table| if rank == 1 { faults::count(|| offer(table)).1 } else { offer(table).map(|_| 0).unwrap() },
    );
    for call in (0..calls[1]).step_by(scaled(1, 3)) {
        // No time-out is needed: a rank sends its error to the others.
        let mut ranks = prepared(devices, builder::<S>, patient_transports());
        let results = on_all(
            &mut ranks,
            |rank, table| {
                if rank == 1 { faults::fail(call..call + 1, || offer(table)).0 } else { offer(table) }
            },
        );
        let about = format!("call {call} of {}: {:?}", calls[1], results[1].as_ref().err());
        for (rank, result) in results.iter().enumerate() {
            assert_eq!(result.is_ok(), results[1].is_ok(), "{about}: rank {rank} says {:?}", result.as_ref().err());
            if let (Err(error), true) = (result, rank != 1) {
                assert!(matches!(error, Error::Rank { rank: 1, .. } | Error::Connection { rank: 1, .. }), "{about}: {error}");
            }
        }
        let ended = results.iter().any(|result| matches!(result, Err(Error::Connection { .. })));
        let done: Vec<Result<Batch>> = results.into_iter().filter(Result::is_ok).collect();
        let now = stored(&ranks, &about);
        assert!(all.chunks(WIDTH).take(STORED).all(|row| now[row] == 1), "{about}: something is lost");
        assert!(done.is_empty() || now.values().all(|count| *count == 1), "{about}");
        works(&mut ranks, !ended, &about);
    }
}

fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Connection { rank: 2, reason } if reason.contains("gone"))
}

/// If a rank drops its table, a rank that waits for it notices at once.
fn ranks_that_go_away<S: Kind>(device: &Device) {
    let all = words(OFFERED);
    let mut ranks = prepared([device; RANKS], builder::<S>, Local::ranks(RANKS));
    let taken = ranks.pop().unwrap().into_local();
    // The time-out of these ranks is two minutes.
    for result in on_all(&mut ranks, |_, table| table.find_or_put_many(&all)) {
        let error = result.unwrap_err();
        assert!(is_gone(&error), "{error}");
    }
    for error in on_all(&mut ranks, |_, table| table.len().unwrap_err()) {
        assert!(is_gone(&error), "{error}");
    }
    let left: u64 = ranks.iter().map(|rank| rank.local().len().unwrap()).sum();
    assert_eq!(left + taken.len().unwrap(), STORED as u64, "every rank has what it had");
    // A different number of ranks is a different cluster.
    let differ = on_all(ranks.iter_mut().zip(Local::ranks(2)), |_, (rank, transport)| rank.reconnect(transport).unwrap_err());
    assert!(differ.iter().all(|error| matches!(error, Error::RanksDiffer { what: "ranks", .. })), "{differ:?}");
}

/// A rank that arrives too late finds the connection ended.
fn ranks_that_stall<S: Kind>(device: &Device) {
    let all = words(OFFERED);
    drop(prepared([device; RANKS], builder::<S>, patient_transports()));
    in_parallel(&[device], &[()], |()| {
        let mut ranks = prepared([device; RANKS], builder::<S>, transports(Vec::new()));
        // The stalled rank goes on when the others have returned.
        let returned = Barrier::new(RANKS);
        let results = on_all(&mut ranks, |rank, table| {
            if rank == 1 {
                returned.wait();
                return table.find_or_put_many(&all);
            }
            let result = table.find_or_put_many(&all);
            returned.wait();
            result
        });
        for result in &results {
            let error = result.as_ref().unwrap_err();
            assert!(
                matches!(error, Error::Connection { rank: 1, reason } if reason.contains(&format!("{:?}", timeout()))),
                "{error}"
            );
        }
        judge_batches(&results, &mut ranks, "a rank that stalls");
    });
}

/// If a rank panics, even in the middle of an exchange, the others get an error.
fn ranks_that_panic<S: Kind>(device: &Device) {
    let all = words(OFFERED);
    let mut ranks = prepared([device; RANKS], builder::<S>, Local::ranks(RANKS));
    let last = ranks.pop().unwrap();
    std::thread::scope(|scope| {
        let panics = scope.spawn(move || {
            let _table = last;
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        for error in on_all(&mut ranks, |_, table| table.find_or_put_many(&all).unwrap_err()) {
            assert!(is_gone(&error), "{error}");
        }
        assert!(panics.join().is_err());
    });
}

/// Functions of GPUs only: checks of enqueued runs, and copies from one GPU to another.
#[cfg(feature = "cuda")]
pub mod cluster_faults_on_gpu {
    use super::*;
    use warpset::cluster::DeviceBatch;

    tests_of_all_kinds![of Bucket:
        messages_of_device_batches,
        messages_between_two_gpus,
        devices_that_fail_of_two_gpus,
    ];

    /// No rank requests outcomes, so no rank waits for its check of received messages: only offered vectors may be stored.
    fn messages_of_device_batches<S: Kind>(device: &Device) {
        offers_in_device_memory::<S>([device; RANKS]);
    }

    fn messages_between_two_gpus<S: Kind>(device: &Device) {
        if let Some(other) = another(device) {
            offers_in_device_memory::<S>([device, &other, device]);
        }
    }

    /// The second GPU fails, in the middle of copies from and to the first one.
    fn devices_that_fail_of_two_gpus<S: Kind>(device: &Device) {
        if let Some(other) = another(device) {
            each_call_fails::<S>([device, &other, device]);
        }
    }

    fn offers_in_device_memory<S: Kind>(devices: [&Device; RANKS]) {
        let all = words(OFFERED);
        const { assert!(OFFERED > ROUND, "two rounds") };
        // A filter would require outcomes.
        let builder = |_| Builder::new(roomy::<S>(WIDTH, 4 * OFFERED as u64)).round(ROUND);
        let offer = |rank: usize, table: &mut Rank<S>| {
            let context = devices[rank].cuda_context().expect("these tests are registered for GPUs only");
            let stream = context.new_stream().unwrap();
            let vectors = stream.clone_htod(&all).unwrap();
            table.find_or_put_device(&stream, DeviceBatch::new(&vectors, OFFERED))
        };
        with_each_fault_on(devices, builder, offer, |results: &[Result<Batch>], ranks, about| {
            for batch in results.iter().flatten() {
                assert_eq!((batch.total.new, batch.total.full), ((OFFERED - STORED) as u64, 0), "{about}");
            }
            judge_batches(results, ranks, about);
        });
    }

    /// Another GPU of this machine; `None` if there is only one.
    fn another(device: &Device) -> Option<Device> {
        let own = device.cuda_context().expect("these tests are registered for GPUs only").ordinal();
        let other = Device::gpus().unwrap().into_iter().find(|gpu| gpu.ordinal != own);
        if other.is_none() {
            println!("skipped: no second CUDA device");
        }
        other.map(|gpu| Device::gpu(gpu.ordinal).unwrap())
    }
}
