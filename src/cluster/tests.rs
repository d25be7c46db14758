//! Tests of a case that no host batch has, because host batches request outcomes.

use super::engine::{Answers, Offer};
use super::plan::{Fresh, Input};
use super::record::Operation;
use super::{Builder, Local};
use crate::layout::SearchMode;
use crate::{BucketTable, Device, Tally};

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
