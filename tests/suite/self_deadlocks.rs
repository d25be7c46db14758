//! A call that would wait for its own thread is an error, and changes nothing. Every other call returns, even while another
//! thread waits for exclusive access to the table.
//!
//! Each case runs in a thread of its own. A case that has not ended after a minute has hung, and fails. No other result depends
//! on time.
//!
//! Keeps these promises of `src/docs/threads_and_streams.md`:
//!
//! - A call that would wait for a guard, a closure, a callback or a writer of its own thread returns an error that names both,
//!   and changes nothing. Other calls are accepted, even while another thread waits.
//! - A search may read the rows of a level and put their successors. If the table has to grow for that, the batch says why it
//!   does not.
//! - Guards may be nested, dropped in any order, and forgotten. Guards of other tables do not count (also `src/core/lock.rs`).
//! - Each call returns while several threads read, put and grow at once (also `src/core/lock.rs`).
//!
//! Keeps this promise of `src/docs/several_gpus.md`:
//!
//! - All ranks are refused before any of them has changed.

use crate::common::kinds::{Kind, roomy};
use crate::common::vectors::{distinct, keys};
use crate::common::{scaled, tests, tests_of_all_kinds};
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use warpset::cluster::{Builder, Local};
use warpset::{Device, Error, IndexedTable, Outcome, Reference, Request, Result, RootTable, Values, VectorTable};

tests![
    every_guard_and_every_call,
    reading_a_level_and_putting_the_next,
    guards_may_be_nested_and_dropped_in_any_order,
    forgotten_guards_are_errors,
    threads_that_read_and_put_while_others_grow,
    keys_are_not_relocated_in_a_callback,
    ranks_whose_thread_has_values,
];

/// Tests of callbacks and writers, for tables of every kind.
pub mod self_deadlocks_of_all_kinds {
    use super::*;

    tests_of_all_kinds![calls_in_a_callback_and_in_a_writer];

    fn calls_in_a_callback_and_in_a_writer<S: Kind>(device: &Device) {
        let device = device.clone();
        ends("callbacks and writers", move || super::calls_in_a_callback_and_in_a_writer::<S>(&device));
    }
}

/// Runs a case; fails if it hangs.
fn ends(name: &str, case: impl FnOnce() + Send + 'static) {
    let (ended, end) = channel::<()>();
    let running = thread::spawn(move || {
        let _ended = ended;
        case();
    });
    match end.recv_timeout(Duration::from_secs(60)) {
        Err(RecvTimeoutError::Timeout) => panic!("{name}: has not ended after a minute"),
        _ => running.join().unwrap_or_else(|_| panic!("{name}: see the panic above")),
    }
}

fn refused(call: &'static str, held: &'static str) -> Error {
    Error::SelfDeadlock { call, held }
}

/// Calls back when bytes are written, once.
struct Writer<'a>(Option<&'a mut dyn FnMut()>);

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.take().into_iter().for_each(|call| call());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const WIDTH: usize = 2;
const STORED: usize = 100;

/// Vectors from number `from` on.
fn vectors(from: u64, count: usize) -> Vec<u32> {
    distinct(WIDTH, from, count)
}

/// Arguments of the calls.
struct With<'a> {
    table: &'a IndexedTable,
    /// Values beside the same rows; distinct from the values that the guard may belong to.
    values: &'a mut Values<warpset::Words, u16>,
    /// References of the stored vectors.
    stored: &'a [Reference],
}

/// Access that a call needs, to a table that its thread shares already.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Needs {
    /// Exclusive access.
    Alone,
    /// Shared access, which its thread has.
    Share,
    /// Access to its size only.
    Look,
}

type Call = (&'static str, Needs, fn(&mut With<'_>) -> Result<()>);

const CALLS: &[Call] = {
    use Needs::{Alone, Look, Share};
    &[
        ("clear", Alone, |with| with.table.clear()),
        ("reserve_total", Alone, |with| with.table.reserve_total(5 * with.table.slots())),
        ("truncate", Alone, |with| with.table.truncate(STORED as u64 / 2)),
        ("retain", Alone, |with| with.table.retain(|vector| vector[0] % 2 == 0).map(drop)),
        ("save", Alone, |with| with.table.save(Vec::new())),
        ("save", Alone, save_to_a_file),
        ("find_or_put_many", Alone, put_many_more_than_fit),
        ("find_or_put_many", Share, put_a_few),
        ("contains_many", Share, |with| with.table.contains_many(&vectors(0, 5)).map(|found| assert_eq!(found, [true; 5]))),
        ("locate_many", Share, |with| with.table.locate_many(&vectors(0, 5)).map(|found| assert!(found[4].is_some()))),
        ("get_many", Share, |with| with.table.get_many(&with.stored[..5]).map(|found| assert_eq!(found, vectors(0, 5)))),
        ("len", Share, |with| with.table.len().map(|len| assert!(len >= STORED as u64))),
        ("len", Share, |with| with.table.is_empty().map(|is_empty| assert!(!is_empty))),
        ("nodes", Share, |with| with.table.nodes().map(|nodes| assert_eq!(nodes, 0))),
        ("stats", Share, |with| with.table.stats().map(|stats| assert!(stats.stored >= STORED as u64))),
        ("iter", Share, |with| with.table.iter().collect::<Result<Vec<_>>>().map(|rows| assert!(rows.len() >= STORED))),
        ("holes", Share, |with| with.table.holes().map(drop)),
        ("rows", Share, |with| with.table.rows().map(|rows| assert!(rows.len() >= WIDTH * STORED))),
        ("loaded_references", Share, |with| with.table.loaded_references(&[]).map(drop)),
        ("values", Share, |with| with.table.values(0u32).map(drop)),
        ("Values::len", Share, |with| with.values.len().map(|len| assert!(len >= STORED as u64))),
        ("Values::view", Share, |with| with.values.view().map(|values| assert!(values.len() >= STORED))),
        ("Values::get_many", Share, |with| with.values.get_many(with.stored).map(drop)),
        ("Values::set_many", Share, |with| with.values.set_many(&with.stored[..2], &[3, 4])),
        ("Values::update", Share, |with| with.values.update(|values| values[0] += 1)),
        ("Values::update_many", Share, |with| with.values.update_many(&with.stored[..2], |_, value| *value += 1)),
        ("reserve_total", Look, |with| with.table.reserve_total(10)),
        ("slots", Look, |with| {
            let table = with.table;
            assert!(table.slots() >= 300 && table.bytes() > 0 && table.spec().width() == WIDTH);
            assert!(table.reference(0).is_some() && format!("{table:?}").contains("slots"));
            Ok(())
        }),
    ]
};

/// Saves to a file that is removed afterwards.
fn save_to_a_file(with: &mut With<'_>) -> Result<()> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("warpset-{}-{number}.held", std::process::id()));
    let saved = with.table.save_file(&path);
    assert_eq!(std::fs::remove_file(path).is_ok(), saved.is_ok(), "a file is there if the table was saved");
    saved
}

fn put_a_few(with: &mut With<'_>) -> Result<()> {
    let new = vectors(1 << 20, 5);
    let batch = with.table.find_or_put_many_with(&new, Request::new().references(true))?;
    assert_eq!(batch.error, None);
    let references: Vec<_> = batch.references.iter().flatten().copied().collect();
    assert_eq!(with.table.get_many(&references).unwrap(), new);
    Ok(())
}

/// Returns the reason why the table did not grow. The batch's results are true in either case.
fn put_many_more_than_fit(with: &mut With<'_>) -> Result<()> {
    let (new, slots) = (vectors(1 << 20, 5000), with.table.slots());
    let batch = with.table.find_or_put_many(&new)?;
    let stored = with.table.contains_many(&new).unwrap();
    assert_eq!(batch.tally.offered(), 5000);
    assert!(batch.outcomes.iter().zip(stored).all(|(outcome, stored)| (*outcome != Outcome::Full) == stored));
    match &batch.error {
        None => assert!(batch.tally.full == 0 && with.table.slots() > slots),
        Some(error) => {
            // All slots are taken, and the error of `complete` has the reason.
            assert!(batch.tally.full > 0 && batch.tally.new > 100, "{:?}", batch.tally);
            let full = batch.complete(with.table).unwrap_err();
            assert!(matches!(&full, Error::TableFull { cause: Some(cause), .. } if **cause == *error), "{full:?}");
            assert_eq!(std::error::Error::source(&full).map(ToString::to_string), Some(error.to_string()));
        }
    }
    batch.error.map_or(Ok(()), Err)
}

/// Takes a guard, and makes a call while its thread holds it.
type Take = fn(&IndexedTable, &mut Values<warpset::Words, u64>, &[Reference], &mut dyn FnMut());

/// Name of a guard, and whether it holds the table: false if it is a copy of a GPU's memory.
type Guard = (&'static str, fn(&Device) -> bool, Take);

const GUARDS: &[Guard] = &[
    ("rows", on_a_cpu, |table, _, _, call| {
        let rows = table.rows().unwrap();
        let before = rows.to_vec();
        call();
        assert_eq!(rows[..], before);
    }),
    ("Values::view", on_a_cpu, |_, values, _, call| {
        let view = values.view().unwrap();
        let before = view.to_vec();
        call();
        assert_eq!(view[..], before);
    }),
    ("Values::update", everywhere, |_, values, _, call| values.update(|_| call()).unwrap()),
    ("Values::update_many", everywhere, |_, values, stored, call| {
        values.update_many(&stored[..1], |_, _| call()).unwrap();
    }),
    ("find_or_put_many", everywhere, |table, _, _, call| {
        let mut call = Some(call);
        let mut progress = |_, _| {
            call.take().into_iter().for_each(|call| call());
            ControlFlow::Continue(())
        };
        let batch = table.find_or_put_many_with(&vectors(1 << 30, 3), Request::new().progress(&mut progress)).unwrap();
        assert!(batch.tally.offered() == 3 && call.is_none());
    }),
    ("save", everywhere, |table, _, _, call| {
        let mut writer = Writer(Some(call));
        table.save(&mut writer).unwrap();
        assert!(writer.0.is_none());
    }),
    ("retain", everywhere, |table, _, _, call| {
        let mut call = Some(call);
        let keep = |_: &[u32]| {
            call.take().into_iter().for_each(|call| call());
            true
        };
        assert_eq!(table.retain(keep), Ok(0));
        assert!(call.is_none());
    }),
    #[cfg(feature = "cuda")]
    ("rows_device", on_a_gpu, |table, _, _, call| match table.rows_device() {
        Ok(rows) => {
            call();
            drop(rows);
        }
        Err(error) => assert!(matches!(error, Error::WrongDevice { .. }), "{error}"),
    }),
    #[cfg(feature = "cuda")]
    ("Values::device", on_a_gpu, |_, values, _, call| match values.device() {
        Ok(values) => {
            call();
            drop(values);
        }
        Err(error) => assert!(matches!(error, Error::WrongDevice { .. }), "{error}"),
    }),
];

fn everywhere(_: &Device) -> bool {
    true
}

fn on_a_cpu(device: &Device) -> bool {
    !device.is_gpu()
}

#[cfg(feature = "cuda")]
fn on_a_gpu(device: &Device) -> bool {
    device.is_gpu()
}

/// Tests each guard with each call while its thread holds it: without other threads, and while another thread waits for exclusive
/// access.
fn every_guard_and_every_call(device: &Device) {
    for guard in GUARDS {
        for call in CALLS {
            for another_waits in [false, true] {
                let name = format!("`{}` while this thread has `{}`, another one waits: {another_waits}", call.0, guard.0);
                let device = device.clone();
                ends(&name.clone(), move || pair(&device, *guard, *call, another_waits, &name));
            }
        }
    }
}

fn pair(device: &Device, (guard, holds, take): Guard, (name, needs, call): Call, another_waits: bool, context: &str) {
    let table = IndexedTable::builder(WIDTH).capacity(300).grows(true).build(device).unwrap();
    let batch = table.find_or_put_many_with(&vectors(0, STORED), Request::new().references(true)).unwrap();
    let stored: Vec<Reference> = batch.references.into_iter().flatten().collect();
    let (mut of_guard, mut of_call) = (table.values(0u64).unwrap(), table.values(0u16).unwrap());
    let (slots, is_about_to) = (table.slots(), AtomicBool::new(false));
    let mut came_to = None;
    thread::scope(|scope| {
        take(&table, &mut of_guard, &stored, &mut || {
            if another_waits {
                scope.spawn(|| {
                    is_about_to.store(true, Ordering::Relaxed);
                    table.reserve_total(2 * slots).unwrap();
                });
                while !is_about_to.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                // Gives the other thread time to wait. The results of the calls do not depend on it.
                thread::sleep(Duration::from_millis(2));
            }
            came_to = Some(call(&mut With { table: &table, values: &mut of_call, stored: &stored }));
        });
    });
    let expected = match needs {
        _ if !holds(device) => Ok(()),
        Needs::Look => Ok(()),
        Needs::Share if !["save", "retain"].contains(&guard) => Ok(()),
        _ => Err(refused(name, guard)),
    };
    // A guard that this device does not have takes nothing, and makes no call.
    let Some(came_to) = came_to else {
        assert!(!holds(device), "{context}: the call was not made");
        return;
    };
    assert_eq!(came_to, expected, "{context}");
    if came_to.is_err() {
        assert_eq!(table.slots() > slots, another_waits, "{context}: the table has grown");
        assert_eq!(table.get_many(&stored).unwrap(), vectors(0, STORED), "{context}: a vector is gone");
        // After the guard is dropped, the call succeeds.
        let again = call(&mut With { table: &table, values: &mut of_call, stored: &stored });
        assert_eq!(again, Ok(()), "{context}");
    }
}

/// The natural loop of a search: the rows of a level are read where they are, and their successors put.
fn reading_a_level_and_putting_the_next(device: &Device) {
    let device = device.clone();
    ends("a search", move || {
        let goal = scaled(20_000, 3000);
        let successors = |rows: &[u32]| rows.iter().flat_map(|row| [2 * row + 1, 2 * row + 2]).collect::<Vec<u32>>();
        for grows in [false, true] {
            let table = IndexedTable::builder(1).capacity(4 * goal as u64).grows(grows).build(&device).unwrap();
            table.find_or_put_many(&[0]).unwrap().complete(&table).unwrap();
            let mut level = 0;
            while (table.len().unwrap() as usize) < goal {
                let rows = table.rows().unwrap();
                let next = rows.len();
                let batch = table.find_or_put_many(&successors(&rows[level..])).unwrap();
                assert_eq!(batch.error, None, "where nothing has to grow there is nothing to wait for");
                batch.complete(&table).unwrap();
                level = next;
            }
        }
        // If the table has to grow, the vectors go into the free slots. The error then gives the reason why it did not grow.
        let table = IndexedTable::builder(1).capacity(500).grows(true).build(&device).unwrap();
        table.find_or_put_many(&[0]).unwrap().complete(&table).unwrap();
        let (slots, mut level, mut failed) = (table.slots(), 0, None);
        while failed.is_none() && (table.len().unwrap() as usize) < goal {
            let rows = table.rows().unwrap();
            let next = rows.len();
            let batch = table.find_or_put_many(&successors(&rows[level..])).unwrap();
            failed = batch.complete(&table).err();
            level = next;
        }
        if device.is_gpu() {
            assert_eq!(failed, None, "rows from a GPU are a copy, which holds nothing");
            return;
        }
        let Some(Error::TableFull { cause: Some(cause), stored, .. }) = failed else { panic!("{failed:?}") };
        assert_eq!(*cause, refused("find_or_put_many", "rows"));
        assert!(table.slots() == slots && stored > slots * 9 / 10, "{stored} of {slots}");
        let message = cause.to_string();
        assert!(message.contains("`find_or_put_many`") && message.contains("`rows`") && message.contains("drop"), "{message}");
        // Without the guard it grows.
        let copied = table.rows().unwrap().to_vec();
        table.find_or_put_many(&successors(&copied)).unwrap().complete(&table).unwrap();
        assert!(table.slots() > slots);
    });
}

fn guards_may_be_nested_and_dropped_in_any_order(device: &Device) {
    let device = device.clone();
    ends("nested guards", move || {
        let build = || IndexedTable::builder(1).capacity(100).build(&device).unwrap();
        let (table, other) = (build(), build());
        for table in [&table, &other] {
            table.find_or_put_many(&[5, 6, 7]).unwrap().complete(table).unwrap();
        }
        let mut values = table.values(0u32).unwrap();
        let more = table.values(0u64).unwrap();
        values
            .update(|values| {
                values.fill(7);
                let rows = table.rows().unwrap();
                // These calls do not affect another table.
                other.clear().unwrap();
                other.reserve_total(2 * other.slots()).unwrap();
                let view = more.view().unwrap();
                let held = if device.is_gpu() { ["Values::update"; 3] } else { ["Values::view", "rows", "Values::update"] };
                assert_eq!(table.clear(), Err(refused("clear", held[0])));
                drop(view);
                assert_eq!(table.clear(), Err(refused("clear", held[1])));
                drop(rows);
                assert_eq!(table.clear(), Err(refused("clear", held[2])));
            })
            .unwrap();
        assert_eq!(values.view().unwrap()[..], [7, 7, 7]);
        let (first, last) = (table.rows().unwrap(), table.rows().unwrap());
        drop(first);
        let is_held = !device.is_gpu();
        assert_eq!(table.reserve_total(2 * table.slots()).is_err(), is_held);
        assert_eq!(last.len(), 3);
        drop(last);
        // A batch whose callback drops the thread's guard may not grow before the callback has returned, either.
        let mut rows = Some(table.rows().unwrap());
        let mut progress = |_, _| {
            rows = None;
            assert_eq!(table.clear(), Err(refused("clear", "find_or_put_many")));
            ControlFlow::Continue(())
        };
        table.find_or_put_many_with(&[8], Request::new().progress(&mut progress)).unwrap().complete(&table).unwrap();
        table.clear().unwrap();
        assert!(table.is_empty().unwrap());
    });
}

/// A guard that is never dropped holds its table for ever, and calls of its thread are errors. It does not hold later tables.
fn forgotten_guards_are_errors(device: &Device) {
    let device = device.clone();
    ends("forgotten guards", move || {
        for _ in 0..20 {
            let table = IndexedTable::builder(1).capacity(10).build(&device).unwrap();
            table.find_or_put_many(&[5]).unwrap().complete(&table).unwrap();
            table.truncate(1).unwrap();
            std::mem::forget(table.rows().unwrap());
            let expected = if device.is_gpu() { Ok(()) } else { Err(refused("truncate", "rows")) };
            assert_eq!(table.truncate(1), expected);
        }
    });
}

/// For all interleavings, each call returns, and its result is true.
fn threads_that_read_and_put_while_others_grow(device: &Device) {
    let device = device.clone();
    ends("threads", move || {
        let (threads, rounds) = (4, scaled(40, 10));
        let table = IndexedTable::builder(WIDTH).capacity(200).grows(true).build(&device).unwrap();
        let mut values: Vec<_> = (0..threads).map(|_| table.values(0u32).unwrap()).collect();
        let acknowledged = thread::scope(|scope| {
            let work = |(number, values): (u64, &mut Values<warpset::Words, u32>)| {
                let mut stored = Vec::new();
                let mut put = |from: u64, held: &str| {
                    let new = vectors(number << 32 | from, 20);
                    let batch = table.find_or_put_many(&new).unwrap();
                    match &batch.error {
                        None => {}
                        Some(Error::SelfDeadlock { call: "find_or_put_many", held: by }) => assert_eq!(*by, held),
                        Some(other) => panic!("{other}"),
                    }
                    stored.extend(batch.positions(Outcome::New).flat_map(|at| new[at * WIDTH..][..WIDTH].to_vec()));
                };
                for round in 0..rounds {
                    let from = 100 * round;
                    match (round + number) % 4 {
                        0 => {
                            let rows = table.rows().unwrap();
                            put(from, "rows");
                            assert_eq!(rows.len() % WIDTH, 0);
                        }
                        1 => values.update(|_| put(from, "Values::update")).unwrap(),
                        2 => table.reserve_total(table.slots() + 10).unwrap(),
                        _ => put(from, "nothing"),
                    }
                }
                stored
            };
            let all: Vec<_> = (0..).zip(&mut values).map(|part| scope.spawn(move || work(part))).collect();
            all.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<u32>>()
        });
        assert!(acknowledged.len() > 100 && table.len().unwrap() as usize * WIDTH == acknowledged.len());
        assert!(table.contains_many(&acknowledged).unwrap().into_iter().all(|stored| stored));
    });
}

fn calls_in_a_callback_and_in_a_writer<S: Kind>(device: &Device) {
    let (width, count) = (3, 200);
    let table = roomy::<S>(width, 1000).build(device).unwrap();
    let (words, more) = (distinct(width, 0, count), distinct(width, count as u64, 5));
    let references = table.find_or_put_many_with(&words, Request::new().references(true)).unwrap().references;
    let references: Vec<Reference> = references.into_iter().flatten().collect();
    let that_wait = |held| {
        assert_eq!(table.clear(), Err(refused("clear", held)));
        assert_eq!(table.reserve_total(1 << 20), Err(refused("reserve_total", held)));
        assert_eq!(table.save(Vec::new()), Err(refused("save", held)));
        assert!(table.reserve_total(1).is_ok() && table.slots() >= 1000 && table.bytes() > 0);
    };
    let mut progress = |_, _| {
        that_wait("find_or_put_many");
        assert_eq!(table.find_or_put_many(&more).unwrap().complete(&table).map(|tally| tally.new <= 5), Ok(true));
        assert!(table.get_many(&references).unwrap() == words && table.iter().count() >= count);
        assert!(table.contains_many(&words).unwrap().into_iter().all(|stored| stored));
        ControlFlow::Continue(())
    };
    let batch = table.find_or_put_many_with(&words, Request::new().progress(&mut progress)).unwrap();
    assert_eq!(batch.complete(&table).unwrap().seen, count as u64);
    let mut calls = || {
        that_wait("save");
        assert_eq!(table.find_or_put_many(&more).map(drop), Err(refused("find_or_put_many", "save")));
        assert_eq!(table.contains_many(&words).map(drop), Err(refused("contains_many", "save")));
        assert_eq!(table.get_many(&references).map(drop), Err(refused("get_many", "save")));
        assert_eq!(table.iter().next().unwrap().map(drop), Err(refused("iter", "save")));
    };
    let mut bytes = Vec::new();
    table.save(&mut bytes).unwrap();
    table.save(Writer(Some(&mut calls))).unwrap();
    let loaded = VectorTable::<S>::load(device, &bytes[..]).unwrap();
    assert_eq!(loaded.len().unwrap(), count as u64 + 5);
    // No guard is left.
    table.reserve_total(1 << 13).unwrap();
    table.clear().unwrap();
}

fn keys_are_not_relocated_in_a_callback(device: &Device) {
    let device = device.clone();
    ends("relocation in a callback", move || {
        let table = RootTable::builder().key_bits(30).capacity(1 << 12).cuckoo(true).build(&device).unwrap();
        let keys = keys(30, table.slots() as usize * 97 / 100);
        let (first, more) = keys.split_at(1000);
        table.find_or_put_many(first).unwrap().complete(&table).unwrap();
        let mut inner = None;
        let mut progress = |_, _| {
            assert_eq!(table.relocate(), Err(refused("relocate", "find_or_put_many")));
            inner = Some(table.find_or_put_many(more).unwrap());
            ControlFlow::Continue(())
        };
        table.find_or_put_many_with(first, Request::new().progress(&mut progress)).unwrap().complete(&table).unwrap();
        // No keys were relocated for the inner batch, which has the reason. All vectors that it reports as new are stored.
        let inner = inner.expect("the callback was called");
        assert!(inner.tally.full > 0 && inner.tally.new > 0, "{:?}", inner.tally);
        assert_eq!(inner.error, Some(refused("find_or_put_many", "find_or_put_many")));
        let stored = table.contains_many(more).unwrap();
        assert!(inner.outcomes.iter().zip(stored).all(|(outcome, stored)| (*outcome == Outcome::New) == stored));
        table.find_or_put_many(&keys).unwrap().complete(&table).unwrap();
    });
}

/// If the thread of one rank has a view of its table, a call that would replace the table is refused on all ranks, and no rank's
/// table changes.
fn ranks_whose_thread_has_values(device: &Device) {
    if device.is_gpu() {
        return; // Values from a GPU are a copy, which holds nothing.
    }
    let device = device.clone();
    ends("ranks", move || {
        thread::scope(|scope| {
            for (rank, transport) in Local::ranks(2).into_iter().enumerate() {
                let device = &device;
                scope.spawn(move || {
                    let builder = IndexedTable::builder(WIDTH).capacity(300).grows(true);
                    let mut set = Builder::new(builder).build(device, transport).unwrap();
                    let own = vectors(1000 * rank as u64, 100);
                    assert_eq!(set.find_or_put_many(&own).unwrap().error, None);
                    let values = set.local().values(0u64).unwrap();
                    let (len, slots) = (set.local().len().unwrap(), set.local().slots());
                    let view = (rank == 1).then(|| values.view().unwrap());
                    let check = |what: Result<()>, call| match what {
                        Err(Error::Rank { rank: 1, .. }) if rank == 0 => {}
                        Err(error) if rank == 1 => assert_eq!(error, refused(call, "Values::view")),
                        other => panic!("rank {rank}: {call}: {other:?}"),
                    };
                    check(set.clear(), "clear");
                    check(set.reserve_total(10 * slots), "reserve_total");
                    let mut bytes = Vec::new();
                    check(set.save(&mut bytes), "save");
                    assert!(bytes.is_empty(), "no rank has written anything");
                    assert_eq!((set.local().len().unwrap(), set.local().slots()), (len, slots), "no rank has changed");
                    // The vectors of a batch go into the free slots.
                    let more = vectors(1 << 20 | (5000 * rank as u64), 2000);
                    let batch = set.find_or_put_many(&more).unwrap();
                    check(batch.error.clone().map_or(Ok(()), Err), "a batch of the cluster");
                    assert!(batch.tally.full > 0 && batch.tally.offered() == 2000);
                    drop(view);
                    set.reserve_total(10 * slots).unwrap();
                    assert_eq!(set.find_or_put_many(&more).unwrap().tally.full, 0);
                    set.clear().unwrap();
                });
            }
        });
    });
}

/// Other threads may read slices of rows and values, but not drop them.
const _: () = {
    const fn is_sync<T: Sync>() {}
    is_sync::<warpset::Rows<'static>>();
    is_sync::<warpset::ValuesView<'static, u64>>();
};
