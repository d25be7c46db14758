//! Tests of cases that no host batch on a correct transport has: batches without outcomes, and ranks that send wrong records.

use super::engine::{Answers, Offer};
use super::plan::{Fresh, Input};
use super::record::{self, Head, Operation};
use super::{Builder, Local, Region, Request, Table, Transport};
use crate::layout::SearchMode;
use crate::{Bucket, BucketTable, Device, Error, TableBuilder, Tally, Words};

/// Without outcomes no answers are sent, and the tallies, of one rank and of all, are the same as those of a batch with outcomes.
#[test]
fn tallies_need_no_replies() {
    const WIDTH: usize = 3;
    for (ranks, deduplicate) in [(1, false), (2, false), (3, false), (3, true)] {
        let words = |rank: u32| (0..5000u32).flat_map(move |at| [7, (rank * 2000 + at) % 6000 / 2, 9]).collect::<Vec<u32>>();
        let threads = |with_outcomes: bool| -> Vec<_> {
            std::thread::scope(|scope| {
                let run = |(rank, transport): (usize, Local)| {
                    scope.spawn(move || {
                        let table = BucketTable::builder(WIDTH).capacity(8000).seed(5);
                        let builder = Builder::new(table).round(300).deduplicate(deduplicate);
                        let mut set = builder.build(&Device::cpu_with_threads(1), transport).unwrap();
                        let words = words(rank as u32);
                        let offer = |operation, search| Offer {
                            operation,
                            search,
                            input: Input::Host(&words),
                            outcomes: with_outcomes,
                            references: false,
                            owners: false,
                            fresh: Fresh::Host,
                            numbers: [rank as u64 + 1; 16],
                            refused: None,
                        };
                        let (mut put, mut found) = (Answers::default(), Answers::default());
                        let raw = &set.local.raw;
                        let offers =
                            [offer(Operation::FindOrPut, SearchMode::FindOrPut), offer(Operation::Contains, SearchMode::Find)];
                        for (offer, answers) in offers.iter().zip([&mut put, &mut found]) {
                            answers.make(offer, WIDTH);
                            set.engine.rounds(raw, offer, answers).unwrap();
                        }
                        assert_eq!(put.sums, [(ranks * (ranks + 1) / 2) as u64; 16]);
                        assert_eq!(put.outcomes.len(), if with_outcomes { 5000 } else { 0 });
                        assert!(put.outcomes.iter().all(|outcome| *outcome != 0));
                        let sent = set.traffic().bytes_sent;
                        (put.tally, put.total, found.tally, found.total, put.fresh.len() as u64, sent)
                    })
                };
                let ranks: Vec<_> = Local::ranks(ranks).into_iter().enumerate().map(run).collect();
                ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
            })
        };
        let (with, without) = (threads(true), threads(false));
        let total = |all: &[(Tally, Tally, Tally, Tally, u64, u64)]| {
            let sum: Tally = all.iter().map(|of| of.0).sum();
            assert!(all.iter().all(|of| of.1 == sum && of.0.offered() == 5000 && of.2.seen == 5000));
            assert!(all.iter().all(|of| of.3.seen == 5000 * all.len() as u64));
            assert_eq!(all.iter().map(|of| of.4).sum::<u64>(), sum.new);
            sum
        };
        assert_eq!(total(&with), total(&without), "{ranks} ranks");
        for (with, without) in with.iter().zip(&without) {
            assert_eq!(without.5 < with.5, ranks > 1 && !deduplicate, "{} bytes and {}", without.5, with.5);
        }
    }
}

/// Owners can be requested without a search: they are the ranks whose tables have the vectors.
#[test]
fn owners_need_no_replies() {
    const WIDTH: usize = 2;
    for deduplicate in [false, true] {
        let words: Vec<u32> = (0..4000u32).flat_map(|at| [at / 2, 5]).collect();
        let all: Vec<(Vec<u32>, Vec<bool>)> = std::thread::scope(|scope| {
            let run = |transport: Local| {
                let words = &words;
                scope.spawn(move || {
                    let builder = Builder::new(BucketTable::builder(WIDTH).capacity(8000)).round(3000).deduplicate(deduplicate);
                    let mut set = builder.build(&Device::cpu_with_threads(1), transport).unwrap();
                    let offer = Offer {
                        operation: Operation::FindOrPut,
                        search: SearchMode::FindOrPut,
                        input: Input::Host(words),
                        outcomes: false,
                        references: false,
                        owners: true,
                        fresh: Fresh::Unwanted,
                        numbers: [0; 16],
                        refused: None,
                    };
                    let mut answers = Answers::default();
                    answers.make(&offer, WIDTH);
                    set.engine.rounds(&set.local.raw, &offer, &mut answers).unwrap();
                    (answers.owners, set.local.contains_many(words).unwrap())
                })
            };
            let ranks: Vec<_> = Local::ranks(3).into_iter().map(run).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        for (owners, _) in &all {
            assert_eq!(owners.len(), 4000);
            for (at, owner) in owners.iter().enumerate() {
                let has: Vec<u32> = (0..3).filter(|rank| all[*rank as usize].1[at]).collect();
                assert_eq!(has, [*owner], "vector {at}");
            }
        }
    }
}

/// Transport of a rank that sends a wrong record: `forge` changes the record with this number, and its checksum is made to match.
struct Forging {
    to: Local,
    /// Number of the record, from 1.
    record: u64,
    forge: Forge,
    gathered: u64,
}

type Forge = fn(&mut Head, &mut [u64]);

impl Transport for Forging {
    fn rank(&self) -> usize {
        self.to.rank()
    }

    fn ranks(&self) -> usize {
        self.to.ranks()
    }

    fn all_gather(&mut self, own: &[u8], all: &mut [u8]) -> crate::Result<()> {
        self.gathered += 1;
        let mut sent = own.to_vec();
        if self.gathered == self.record {
            record::forge(&mut sent, self.forge);
        }
        self.to.all_gather(&sent, all)?;
        let at = self.rank() * own.len();
        all[at..][..own.len()].copy_from_slice(own);
        Ok(())
    }

    unsafe fn begin(&mut self, send: &[Region], receive: &[Region]) -> crate::Result<()> {
        // SAFETY: the caller guarantees the contract, and each method of this transport calls the same method of `to`.
        unsafe { self.to.begin(send, receive) }
    }

    fn finish(&mut self) -> crate::Result<()> {
        self.to.finish()
    }

    fn abort(&mut self, reason: &str) {
        self.to.abort(reason);
    }
}

/// Builds a set of two ranks and calls `work` on both. Rank 0 forges the record with this number. Returns the result of rank 1.
fn with_forged<T: Send>(
    record: u64,
    forge: Forge,
    table: TableBuilder<Words, Bucket>,
    work: impl Fn(&mut Table<Words, Bucket>, usize) -> Result<T, Error> + Sync,
) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let run = |(rank, to): (usize, Local)| {
            let (table, work) = (table.clone(), &work);
            scope.spawn(move || {
                let builder = Builder::new(table.seed(5)).round(100);
                let device = Device::cpu_with_threads(1);
                let mut set = match rank {
                    0 => builder.build(&device, Forging { to, record, forge, gathered: 0 }),
                    _ => builder.build(&device, to),
                }?;
                work(&mut set, rank)
            })
        };
        let ranks: Vec<_> = Local::ranks(2).into_iter().enumerate().map(run).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).next_back().expect("two ranks")
    })
}

/// If a rank sends a record that could mislead another rank, the other rank gets a connection error that names the first one.
#[test]
fn wrong_records_end_the_connection() {
    fn put(set: &mut Table<Words, Bucket>, _: usize) -> Result<(), Error> {
        let words: Vec<u32> = (0..400).collect();
        let _ = set.find_or_put_many(&words)?;
        Ok(())
    }
    fn check(what: &str, got: Result<(), Error>) {
        assert!(matches!(got, Err(Error::Connection { rank: 0, .. })), "{what}: {got:?}");
    }
    let fixed = || BucketTable::builder(2).capacity(2000);
    let grows = || fixed().grows(true);
    // Records 1 and 2 are of `build`.
    let builds: [(&str, Forge); 4] = [
        ("no slots", |head, _| head.values[2] = 0),
        ("more slots than any table", |head, _| head.values[2] = 1 << 41),
        ("an empty round", |head, _| head.values[4] = 0),
        ("a round without end", |head, _| head.values[4] = 1 << 40),
    ];
    for (what, forge) in builds {
        check(what, with_forged(1, forge, fixed(), put));
    }
    let rounds: [(&str, Forge); 8] = [
        ("rows whose bytes wrap around to none", |_, rows| rows[1] = 1 << 62),
        ("rows for another rank", |_, rows| rows[0] = 1 << 62),
        ("more rows than memory", |_, rows| rows[1] = 1_000_000_000),
        ("one row too many", |_, rows| (rows[0], rows[1]) = (50, 51)),
        ("rows whose sum overflows", |_, rows| (rows[0], rows[1]) = (u64::MAX, 2)),
        ("references without outcomes", |head, _| head.flags = 2),
        ("an unknown flag", |head, _| head.flags |= 1 << 20),
        ("fewer rows than it sends", |_, rows| rows[1] -= 1),
    ];
    for (what, forge) in rounds {
        check(what, with_forged(3, forge, fixed(), put));
    }
    let sizes: [(&str, Forge); 4] = [
        ("a table without slots", |head, _| head.slots = 0),
        ("more slots than any table", |head, _| head.slots = u64::MAX),
        ("more vectors than any table", |head, _| head.stored = u64::MAX),
        ("more nodes than any table", |head, _| (head.nodes, head.node_slots) = (u64::MAX, u64::MAX)),
    ];
    for (what, forge) in sizes {
        check(what, with_forged(3, forge, grows(), put));
    }
    // Two rounds of 100 vectors, then the last record.
    let last: [(&str, Forge); 5] = [
        ("more hits than rows", |_, rows| rows[4] += 1000),
        ("hits whose sum overflows", |_, rows| (rows[4], rows[5]) = (u64::MAX, u64::MAX)),
        ("rejections for nodes that are none", |_, rows| rows[6 + 1] += 1),
        ("fewer vectors than rows", |head, _| head.offered = 0),
        ("more vectors than its rounds hold", |head, _| head.offered = u64::MAX),
    ];
    for (what, forge) in last {
        check(what, with_forged(5, forge, fixed(), put));
    }
    let length: Forge = |head, _| head.values[0] = u64::MAX;
    check("a length", with_forged(3, length, fixed(), |set, _| set.len().map(drop)));
    check("statistics", with_forged(3, length, fixed(), |set, _| set.stats().map(drop)));
}

/// Wrong numbers of requested references, and wrong answers about them, end the connection.
#[test]
fn wrong_requests_for_references_end_the_connection() {
    let asks: [(&str, u64, Forge); 5] = [
        ("more references than any table", 5, |_, rows| rows[1] = 1 << 62),
        ("more references than memory", 5, |_, rows| rows[1] = 1 << 40),
        ("stale references that were not asked for", 6, |_, rows| rows[1] = 1 << 63 | 1 << 40),
        ("a number without a kind", 6, |_, rows| rows[1] = 1),
        ("both kinds", 6, |_, rows| rows[1] = 3 << 62 | 1),
    ];
    for (what, record, forge) in asks {
        let got = with_forged(record, forge, BucketTable::builder(2).capacity(2000), |set, _| {
            let words: Vec<u32> = (0..100).collect();
            let request = Request { references: true, ..Request::default() };
            let batch = set.find_or_put_many_with(&words, request)?;
            let references: Vec<_> = batch.references.into_iter().flatten().collect();
            set.get_many(&references).map(drop)
        });
        let is_right = match (&got, what) {
            // Some systems grant memory that is never touched, and others do not.
            (Err(Error::OutOfMemory { .. }), "more references than memory") => true,
            (got, _) => matches!(got, Err(Error::Connection { rank: 0, .. })),
        };
        assert!(is_right, "{what}: {got:?}");
    }
}

/// A transport's numbers are checked once, when a table is built.
#[test]
fn transports_without_this_rank_are_refused() {
    struct Numbers(usize, usize);
    impl Transport for Numbers {
        fn rank(&self) -> usize {
            self.0
        }
        fn ranks(&self) -> usize {
            self.1
        }
        fn all_gather(&mut self, _: &[u8], _: &mut [u8]) -> crate::Result<()> {
            unreachable!("refused before")
        }
        unsafe fn begin(&mut self, _: &[Region], _: &[Region]) -> crate::Result<()> {
            unreachable!("refused before")
        }
        fn finish(&mut self) -> crate::Result<()> {
            unreachable!("refused before")
        }
        fn abort(&mut self, _: &str) {}
    }
    for (rank, ranks) in [(0, 0), (2, 2), (0, usize::MAX)] {
        let builder = Builder::new(BucketTable::builder(2).capacity(100));
        let error = builder.build(&Device::cpu_with_threads(1), Numbers(rank, ranks)).unwrap_err();
        assert!(matches!(&error, Error::Connection { reason, .. } if reason.contains("1 to 1048576 ranks")), "{error}");
    }
}

/// Batches of a `drop` while each rank's thread panics are exchanged like any others.
#[test]
fn batches_while_ranks_panic_are_put() {
    struct Puts(Option<Table<Words, Bucket>>, std::sync::mpsc::Sender<Result<u64, Error>>);
    impl Drop for Puts {
        fn drop(&mut self) {
            let mut set = self.0.take().expect("dropped once");
            let words: Vec<u32> = (0..400).collect();
            let _ = self.1.send(set.find_or_put_many(&words).and_then(|_| set.len()));
        }
    }
    let (sender, put) = std::sync::mpsc::channel();
    let run = |transport: Local| {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let builder = Builder::new(BucketTable::builder(2).capacity(2000)).round(100);
            let _puts = Puts(Some(builder.build(&Device::cpu_with_threads(1), transport).unwrap()), sender);
            panic!("on purpose");
        })
    };
    let ranks: Vec<_> = Local::ranks(2).into_iter().map(run).collect();
    assert!(ranks.into_iter().all(|rank| rank.join().is_err()));
    assert_eq!(put.iter().take(2).collect::<Vec<_>>(), [Ok(200), Ok(200)]);
}
