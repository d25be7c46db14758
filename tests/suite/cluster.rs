//! One set over several ranks: the promises of every set, and the promises that ranks make to each other.
//!
//! Keeps these promises of `src/docs/several_gpus.md`:
//!
//! - A set over several ranks keeps the promises of one table: batches, lookups, references, lengths, growth.
//! - One `New` over all ranks, however many offer a vector at once.
//! - All tables grow before one of them is too full. A growth that fails does not end a batch, and all ranks say why.
//! - Keys of cuckoo tables are relocated on all ranks, and references are those after relocation.
//! - `Full` on one rank is reported to all.
//! - Owners do not depend on buckets; shares are as requested.
//! - A set is loaded by the number of ranks that saved it. Parts that make no set are errors on all ranks.
//! - Vectors are fetched from their owners. Stale and invalid references are an error on the rank that gave them.
//! - A rank sends none of the vectors that it owns, equal vectors once with `deduplicate`, and no needless message.
//! - If a batch of one rank is refused, or its device fails, all ranks return an error, and work afterwards (also
//!   `cluster_faults.rs`).
//! - Tables that do not fit together, and ranks that are out of step, are errors on all ranks.

use super::histories::{History, Luck, history};
use crate::common::checker::{Checked, Checker, OrFail};
use crate::common::histories::play;
use crate::common::kinds::{Kind, roomy};
use crate::common::spread::{Rank, Spread, build, on_all, small};
use crate::common::vectors::{Pool, distinct, keys};
use crate::common::{scaled, sized, slots_per_bucket, tests, tests_of_all_kinds};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::HashSet;
use warpset::cluster::{Builder, Local, Request, Shares, Transport};
use warpset::{BucketTable, Device, Error, Outcome, Result, Root, VectorTable};

tests_of_all_kinds![
    histories,
    equal_vectors_at_once,
    growth_of_all,
    full_tables,
    references_of_others,
    saved_by_ranks,
    parts_that_make_no_set
];

/// Tests that do not depend on the kind of table.
pub mod cluster_once {
    use super::*;

    tests![
        keys_in_compact_slots,
        keys_that_are_relocated,
        owners_have_nothing_to_do_with_buckets,
        shares_are_as_wanted,
        refused_batches_are_refused_on_all_ranks,
        tables_that_do_not_fit_together,
        ranks_that_are_out_of_step,
        ranks_whose_growth_fails,
        what_crosses_the_wire,
        sums_over_ranks,
    ];
}

const RANKS: [usize; 4] = [1, 2, 3, 5];

/// Random histories over each number of ranks, against `HashSet` (checker.rs).
fn histories<S: Kind>(device: &Device) {
    let widths = sized(vec![1, 2, 3, 7, 16, 33], vec![1, 3, 16], vec![1, 7]);
    let cases = sized(4, 1, 1);
    let config = Config { cases, max_shrink_iters: 100, failure_persistence: None, ..Config::default() };
    // Vectors per round, and the hash mask for owners: all vectors go to one rank, or to some.
    let rounds = prop::sample::select(vec![1usize, 7, 300, 1 << 16]);
    let masks = prop::sample::select(vec![u64::MAX, u64::MAX, u64::MAX, 0, 1 << 63]);
    for width in widths {
        for ranks in RANKS {
            let cases = (history(), rounds.clone(), masks.clone(), any::<bool>());
            let ran = TestRunner::new(config.clone()).run(&cases, |(history, round, mask, deduplicate)| {
                run::<S>(device, width, ranks, &history, (round, mask, deduplicate))
            });
            ran.unwrap_or_else(|failure| panic!("width {width}, {ranks} ranks on {device}: {failure}"));
        }
    }
}

fn run<S: Kind>(
    device: &Device,
    width: usize,
    ranks: usize,
    history: &History,
    (round, mask, deduplicate): (usize, u64, bool),
) -> Result<(), TestCaseError> {
    let pool = Pool::of(history.family, width, history.vectors);
    let capacity = match history.luck {
        Luck::Empty(_) => 600 * slots_per_bucket::<S>(device, width),
        _ if history.grows => 1,
        _ => pool.len() as u64 * 2,
    };
    let table = roomy::<S>(width, capacity).seed(history.table_seed).grows(history.grows);
    let table = match history.luck {
        Luck::HashMask(mask) if S::SEARCHES_ALL => table.hash_mask(mask),
        Luck::Empty(pattern) => table.empty_pattern(pattern),
        _ => table,
    };
    // Rounds of one vector make as many exchanges as vectors.
    let offered = history.steps.len() * 16_500;
    let round = if round < 100 && offered > 0 && history.steps.iter().any(is_large) { 1000 } else { round };
    let builder = |table| Builder::new(table).round(round).hash_mask(mask).deduplicate(deduplicate);
    let set = Spread::new(device, ranks, builder, table);
    let set = set.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let played = play(&mut Checker::new(&set, &pool), &set, &pool, &history.steps);
    played.map_err(|violation| TestCaseError::fail(violation.to_string()))
}

fn is_large(step: &crate::common::histories::Step) -> bool {
    matches!(step, crate::common::histories::Step::Offer { positions, copies } if positions.len() * copies > 1000)
}

/// All ranks offer the same vectors in the same rounds: for each vector one rank gets New, and all get the same reference.
fn equal_vectors_at_once<S: Kind>(device: &Device) {
    let (width, count) = (4, sized(20_000, 5000, 500));
    for (ranks, deduplicate) in [(2, false), (3, true), (5, false), (2, true)] {
        let table = roomy::<S>(width, count as u64 * 2);
        let builder = |table| Builder::new(table).round(count / 3).deduplicate(deduplicate);
        let set = Spread::new(device, ranks, builder, table).unwrap();
        // Each vector is offered twice, so that representatives have duplicates.
        let words = distinct(width, 0, count).repeat(2);
        let batches = set.all(|_, rank| rank.find_or_put_many_with(&words, Request::new().references(true)).unwrap());
        let mut new = vec![0; count];
        for batch in &batches {
            assert_eq!(batch.references, batches[0].references, "{ranks} ranks");
            assert_eq!((batch.total.new, batch.total.offered()), (count as u64, (2 * count * ranks) as u64));
            batch.positions(Outcome::New).for_each(|at| new[at % count] += 1);
            let (first, second) = batch.references.split_at(count);
            assert!(first == second && first.iter().all(Option::is_some));
        }
        assert!(
            new.iter().all(|new| *new == 1),
            "{ranks} ranks: a vector is new to {:?} of them",
            new.iter().find(|new| **new != 1)
        );
        assert_eq!(set.agreed(|_, rank| rank.len().unwrap()), count as u64);
    }
}

/// If one rank's table would be too full, all tables double; references are current, and stored vectors remain.
fn growth_of_all<S: Kind>(device: &Device) {
    let (width, count) = (5, sized(30_000, 4000, 2000));
    for (ranks, mask, deduplicate) in [(1, u64::MAX, false), (3, u64::MAX, true), (2, 0, false)] {
        let table = S::with_few_nodes(VectorTable::<S>::builder(width).capacity(100), 100).grows(true);
        let builder = |table| Builder::new(table).round(1000).hash_mask(mask).deduplicate(deduplicate);
        let set = Spread::new(device, ranks, builder, table).unwrap();
        let (pool, slots) = (Pool::distinct(width, count), set.agreed(|_, rank| rank.local().slots()));
        let mut checker = Checker::new(&set, &pool);
        let _ = checker.offer(&pool.shuffled(2, 3)).or_fail("a batch that makes tables grow");
        checker.check().or_fail("after it");
        let grown = set.agreed(|_, rank| rank.local().slots());
        assert!(grown > slots, "{grown} slots, of {slots}");
    }
}

/// Vectors that find no slot are Full for all ranks that offer them, and the error reaches all ranks.
fn full_tables<S: Kind>(device: &Device) {
    [false, true].into_iter().for_each(|deduplicate| full_tables_of::<S>(device, deduplicate));
}

fn full_tables_of<S: Kind>(device: &Device, deduplicate: bool) {
    let (width, ranks) = (3, 3);
    let table = roomy::<S>(width, 100);
    let set = Spread::new(device, ranks, |table| Builder::new(table).round(1000).deduplicate(deduplicate), table).unwrap();
    let slots: u64 = set.all(|_, rank| rank.local().slots()).into_iter().sum();
    let words = distinct(width, 0, 3 * slots as usize);
    let batches = set.all(|_, rank| rank.find_or_put_many(&words).unwrap());
    let stored: u64 = set.agreed(|_, rank| rank.len().unwrap());
    assert!(stored <= slots && stored >= S::least_full(slots) * 9 / 10, "{stored} of {slots}");
    let contained = set.all(|_, rank| rank.contains_many(&words).unwrap());
    for batch in &batches {
        assert_eq!((batch.total.new, batch.total.full), (stored, ranks as u64 * (3 * slots - stored)));
        for (at, outcome) in batch.outcomes.iter().enumerate() {
            assert_eq!(*outcome == Outcome::Full, !contained[0][at], "vector {at} is {outcome}");
        }
    }
    let errors = set.all(|rank, table| {
        let stats = table.stats().unwrap();
        batches[rank].complete(&stats).unwrap_err()
    });
    for error in errors {
        assert!(
            matches!(error, Error::TableFull { stored: of, slots: in_all, .. } if (of, in_all) == (stored, slots)),
            "{error}"
        );
    }
}

/// Any rank reads any vector; stale and invalid references are an error of the rank that passed them.
fn references_of_others<S: Kind>(device: &Device) {
    let (width, count, ranks) = (6, 1000, 3);
    let set = Spread::new(device, ranks, small, roomy::<S>(width, 4 * count as u64)).unwrap();
    let words = distinct(width, 0, count);
    let places = set.all(|rank, table| {
        let own = if rank == 0 { &words[..] } else { &[] };
        let batch = table.find_or_put_many_with(own, Request::new().references(true)).unwrap();
        batch.references.into_iter().flatten().collect::<Vec<_>>()
    });
    let places = &places[0];
    let owners: HashSet<u32> = places.iter().map(|place| place.rank).collect();
    assert_eq!(owners.len(), ranks, "every rank owns some");
    // Each rank reads from a different offset.
    let got = set.all(|rank, table| table.get_many(&places[rank * 100..]).unwrap());
    (0..ranks).for_each(|rank| assert!(got[rank] == words[rank * 100 * width..], "rank {rank}"));
    // An empty slot on another rank.
    let errors = set.all(|rank, table| {
        let mut mine = places.clone();
        if rank == 1 {
            let other = mine.iter_mut().find(|place| place.rank == 2).unwrap();
            let empty = (0..).find(|slot| places.iter().all(|place| place.rank != 2 || place.reference.slot() != *slot)).unwrap();
            let bits = other.reference.to_bits() - other.reference.slot() + empty;
            other.reference = warpset::Reference::from_bits(bits).unwrap();
        }
        table.get_many(&mine)
    });
    assert!(errors[0].as_ref().is_ok_and(|got| *got == words) && errors[2].is_ok());
    assert!(matches!(errors[1], Err(Error::InvalidReferences { count: 1000, .. })), "{:?}", errors[1]);
    set.all(|_, table| table.clear().unwrap());
    for got in set.all(|rank, table| table.get_many(if rank == 1 { &[] } else { places })) {
        assert!(
            matches!(&got, Ok(none) if none.is_empty())
                || matches!(got, Err(Error::StaleReferences { stale: 1000, count: 1000 }))
        );
    }
    // This rank does not exist.
    let wrong = warpset::cluster::Reference { rank: 7, ..places[0] };
    let errors = set.all(|rank, table| table.get_many(if rank == 0 { std::slice::from_ref(&wrong) } else { &[] }).unwrap_err());
    assert!(matches!(errors[0], Error::InvalidReferences { invalid: 1, count: 1 }), "{:?}", errors[0]);
    assert!(matches!(errors[1], Error::Rank { rank: 0, .. }), "{:?}", errors[1]);
}

/// The bytes that each rank saves.
pub fn save<S: Kind>(set: &Spread<S>) -> Vec<Vec<u8>> {
    set.all(|_, table| {
        let mut bytes = Vec::new();
        table.save(&mut bytes).unwrap();
        bytes
    })
}

pub fn load<S: Kind>(device: &Device, width: usize, parts: &[&[u8]]) -> Vec<Result<Rank<S>>> {
    on_all(Local::ranks(parts.len()).into_iter().zip(parts), |_, (transport, part)| {
        small(roomy::<S>(width, 1)).load(device, transport, *part)
    })
}

/// A set saved by its ranks is loaded by the same number of ranks: it has the same vectors with the same owners, also after a
/// growth.
fn saved_by_ranks<S: Kind>(device: &Device) {
    let (width, count) = (5, scaled(5000, 600));
    for ranks in [1, 2, 3] {
        let table = S::with_few_nodes(VectorTable::<S>::builder(width).capacity(100), 100).grows(true);
        let set = Spread::new(device, ranks, |table| Builder::new(table).round(300), table).unwrap();
        let words = distinct(width, 0, count);
        let request = Request::new().references(true);
        let batches = set.all(|rank, table| table.find_or_put_many_with(if rank == 0 { &words } else { &[] }, request).unwrap());
        let parts = save(&set);
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let mut loaded: Vec<Rank<S>> = load(device, width, &parts).into_iter().map(|rank| rank.unwrap()).collect();
        let slots = set.all(|_, table| table.local().slots());
        let places = &batches[0].references;
        on_all(&mut loaded, |rank, table| {
            assert_eq!((table.rank(), table.ranks(), table.len().unwrap()), (rank, ranks, count as u64));
            assert_eq!(table.local().slots(), slots[rank]);
            // References to each rank's own table.
            let own = (0..count).filter_map(|at| places[at].filter(|place| place.rank as usize == rank).map(|place| (at, place)));
            let (positions, saved): (Vec<usize>, Vec<_>) = own.map(|(at, place)| (at, place.reference)).unzip();
            let now = table.local().loaded_references(&saved).unwrap();
            let expected: Vec<u32> = positions.iter().flat_map(|at| &words[at * width..][..width]).copied().collect();
            assert!(table.local().get_many(&now).unwrap() == expected);
            // References to all tables, which one rank passes.
            let asks = rank + 1 == ranks;
            let saved: Vec<_> = if asks { places.iter().flatten().copied().collect() } else { Vec::new() };
            let now = table.loaded_references(&saved).unwrap();
            assert!(table.get_many(&now).unwrap() == if asks { words.clone() } else { Vec::new() });
            let again = table.loaded_references(&now);
            assert!(
                matches!(&again, Err(Error::StaleReferences { stale, count: of }) if *stale == count as u64 && *of == count)
                    || (!asks && again == Ok(Vec::new())),
                "{again:?}"
            );
            // Half of the vectors are stored already, by the same owners.
            let more = distinct(width, count as u64 / 2, count);
            let total = table.find_or_put_many(if rank + 1 == ranks { &more } else { &[] }).unwrap().total;
            assert_eq!((total.new, total.seen, total.full), ((count / 2) as u64, (count - count / 2) as u64, 0));
        });
        // The saved set still works.
        assert_eq!(set.agreed(|_, table| table.find_or_put_many(&words).unwrap().total.new), 0);
    }
}

/// Parts of other ranks, of other saves or of other numbers of ranks, and damaged or missing parts, are errors on all ranks.
fn parts_that_make_no_set<S: Kind>(device: &Device) {
    let width = 3;
    let set = |ranks| {
        let set = Spread::<S>::new(device, ranks, small, roomy::<S>(width, 300)).unwrap();
        set.all(|rank, table| table.find_or_put_many(&distinct(width, rank as u64 * 50, 100)).unwrap().tally);
        set
    };
    let (two, three) = (set(2), set(3));
    let (first, second, of_three) = (save(&two), save(&two), save(&three));
    let damaged = |at: usize| {
        let mut bytes = first[1].clone();
        bytes[at] ^= 4;
        bytes
    };
    let short = |bytes: usize| first[1][..bytes].to_vec();
    let end = first[1].len();
    let differ = |error: &Error| matches!(error, Error::RanksDiffer { .. });
    let is_file = |error: &Error| matches!(error, Error::File { .. });
    let (swapped, foreign) = ([first[1].clone(), first[0].clone()], [second[0].clone(), first[1].clone()]);
    // Rank with the error, which also reaches the other rank.
    for (parts, own, judge) in [
        (swapped, 1, &differ as &dyn Fn(&Error) -> bool),
        (foreign, 1, &differ),
        ([of_three[0].clone(), of_three[1].clone()], 1, &differ),
        ([first[0].clone(), damaged(20)], 1, &is_file),
        ([first[0].clone(), damaged(70)], 1, &is_file),
        ([first[0].clone(), damaged(end - 2)], 1, &is_file),
        ([first[0].clone(), short(0)], 1, &is_file),
        ([first[0].clone(), short(40)], 1, &is_file),
        ([first[0].clone(), short(90)], 1, &is_file),
        ([first[0].clone(), short(end - 1)], 1, &is_file),
        ([b"something else, which is longer than a head's first words: eight of them".to_vec(), short(end)], 0, &is_file),
    ] {
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let errors: Vec<Error> = load::<S>(device, width, &parts).into_iter().map(|rank| rank.map(drop).unwrap_err()).collect();
        assert!(judge(&errors[own]), "{}", errors[own]);
        let other = &errors[1 - own];
        assert!(differ(other) || matches!(other, Error::Rank { rank, .. } if *rank == own), "{other}");
    }
    // A width that differs from the requested one; all else is correct.
    let parts: Vec<&[u8]> = first.iter().map(Vec::as_slice).collect();
    assert!(load::<S>(device, width + 1, &parts).iter().all(|rank| rank.as_ref().is_err_and(is_file)));
    assert!(load::<S>(device, width, &parts).iter().all(Result::is_ok));
}

fn keys_in_compact_slots(device: &Device) {
    for (key_bits, slot_bits) in [(40, 32), (64, 64)] {
        let all = keys(key_bits, scaled(5000, 500));
        let pool = Pool::new(2, all.iter().map(|key| vec![*key as u32, (*key >> 32) as u32]));
        for grows in [false, true] {
            let table = VectorTable::<Root>::builder(2).key_bits(key_bits).slot_bits(slot_bits).capacity(1 << 16).grows(grows);
            let set = Spread::new(device, 3, |table| Builder::new(table).round(700), table).unwrap();
            checked(&set, &pool).or_fail(format_args!("{key_bits} bits in {slot_bits}"));
        }
    }
    // A key that does not fit is refused on its rank; the error reaches the others.
    let table = VectorTable::<Root>::builder(2).key_bits(40).slot_bits(32).capacity(1 << 16);
    let set = Spread::new(device, 2, small, table).unwrap();
    let errors = set.all(|rank, table| table.find_or_put_many(&[1, if rank == 1 { 1 << 8 } else { 0 }]).unwrap_err());
    assert!(matches!(errors[1], Error::KeyTooLarge { position: 0, .. }), "{}", errors[1]);
    assert!(matches!(&errors[0], Error::Rank { rank: 1, reason } if reason.contains("0x10000000001")), "{}", errors[0]);
    assert_eq!(set.agreed(|_, table| table.len().unwrap()), 0);
}

fn checked(set: &Spread<Root>, pool: &Pool) -> Checked {
    let mut checker = Checker::new(set, pool);
    let _ = checker.offer(&pool.shuffled(2, 1))?;
    checker.check()?;
    checker.clear()?;
    let _ = checker.offer(&pool.all())?;
    checker.check()
}

/// Cuckoo tables are filled until keys must be relocated: all ranks relocate theirs.
fn keys_that_are_relocated(device: &Device) {
    // The seed is fixed because it determines how many keys each rank has: such a table rejects none up to a fill of 0.99.
    let table = VectorTable::<Root>::builder(2).key_bits(40).slot_bits(32).capacity(1 << 14).cuckoo(true).seed(3);
    let set = Spread::new(device, 2, |table| Builder::new(table).round(3000), table).unwrap();
    let slots: u64 = set.all(|_, rank| rank.local().slots()).into_iter().sum();
    let all = keys(40, slots as usize * 97 / 100);
    let words: Vec<u32> = all.iter().flat_map(|key| [*key as u32, (*key >> 32) as u32]).collect();
    let half = words.len() / 4 * 2;
    let request = Request::new().references(true).stored_here(true);
    let batches = set.all(|rank, table| {
        table.find_or_put_many_with(if rank == 0 { &words[..half] } else { &words[half..] }, request).unwrap()
    });
    for (batch, words) in batches.iter().zip([&words[..half], &words[half..]]) {
        assert_eq!((batch.total.new, batch.total.full, &batch.error), (all.len() as u64, 0, &None));
        assert!(batch.references.iter().all(Option::is_some));
        let got = set.all(|_, table| table.get_many(&batch.references.iter().flatten().copied().collect::<Vec<_>>()).unwrap());
        assert!(got.iter().all(|got| got == words), "references are of after the last relocation");
    }
    let here: Vec<usize> = batches.iter().map(|batch| batch.stored_here.len()).collect();
    assert_eq!(here.iter().sum::<usize>(), all.len());
    let read = set.all(|rank, table| table.local().get_many(&batches[rank].stored_here).unwrap());
    let stored: HashSet<&[u32]> = read.iter().flat_map(|words| words.chunks(2)).collect();
    assert_eq!(stored.len(), all.len());
}

/// The vectors of one owner spread over all buckets of its table, even if tables and cluster have the same seed. Searches are
/// then as short as in a single table with the same number of vectors.
fn owners_have_nothing_to_do_with_buckets(device: &Device) {
    let (ranks, count) = (4, scaled(80_000, 8000));
    for (width, numbered) in [(1, true), (2, false)] {
        // Consecutive numbers, as counters make them; and unrelated vectors.
        let words: Vec<u32> = if numbered { (0..count as u32).collect() } else { distinct(width, 0, count) };
        let capacity = (count / ranks) as u64 * 10 / 7;
        let table = BucketTable::builder(width).capacity(capacity).seed(11);
        let set = Spread::new(device, ranks, small, table.clone()).unwrap();
        set.all(|rank, table| table.find_or_put_many(if rank == 1 { &words } else { &[] }).unwrap().tally);
        let stats = set.agreed(|_, rank| rank.stats().unwrap());
        assert_eq!(stats.stored(), count as u64);
        // Limit: six standard deviations of a binomial distribution; one is about sqrt(count / ranks).
        let most = 1.0 + 6.0 / ((count / ranks) as f64).sqrt();
        assert!(stats.balance() < most, "balance {} of at most {most}", stats.balance());
        let alone = table.build(device).unwrap();
        alone.find_or_put_many(&words[..count / ranks * width]).unwrap().complete(&alone).unwrap();
        let expected = alone.stats().unwrap().mean_probe();
        for probe in set.all(|_, rank| rank.local().stats().unwrap().mean_probe()) {
            assert!((probe - expected).abs() < 0.15 * expected, "{probe} buckets a search, {expected} in a table alone");
        }
    }
}

fn shares_are_as_wanted(device: &Device) {
    let count = scaled(60_000, 6000);
    let words = distinct(2, 0, count);
    let built = build(device, Local::ranks(3), |rank| {
        small(BucketTable::builder(2).capacity((count as u64) << rank)).shares(Shares::BySlots)
    });
    let stats = on_all(built, |_, table| {
        let mut table = table.unwrap();
        let _ = table.find_or_put_many(&words).unwrap();
        table.stats().unwrap()
    });
    assert!(stats.iter().all(|other| *other == stats[0]));
    let (stored, slots) = (stats[0].stored() as f64, stats[0].slots() as f64);
    assert_eq!(stored, count as f64);
    for rank in &stats[0].ranks {
        let expected = stored * rank.slots as f64 / slots;
        assert!((rank.stored as f64 - expected).abs() < 6.0 * expected.sqrt(), "{rank:?}: {expected} expected");
    }
}

/// A batch refused on one rank puts nothing: that rank gets its error, the error reaches the others, and all ranks can go on.
fn refused_batches_are_refused_on_all_ranks(device: &Device) {
    let set = Spread::new(device, 3, small, BucketTable::builder(3).capacity(100)).unwrap();
    let errors = set.all(|rank, table| table.find_or_put_many(if rank == 2 { &[1, 2] } else { &[1, 2, 3] }).unwrap_err());
    assert_eq!(errors[2], Error::LengthMismatch { what: "words of the last vector", given: 2, needed: 3 });
    for error in &errors[..2] {
        assert!(matches!(error, Error::Rank { rank: 2, reason } if *reason == errors[2].to_string()), "{error}");
    }
    let errors = set.all(|rank, table| table.contains_many(if rank == 0 { &[1] } else { &[] }).unwrap_err());
    assert!(matches!(errors[1], Error::Rank { rank: 0, .. }), "{}", errors[1]);
    let tallies = set.all(|_, table| table.find_or_put_many(&[1, 2, 3]).unwrap().total);
    assert_eq!((tallies[0].new, tallies[0].seen), (1, 2), "nothing was put before");
}

fn tables_that_do_not_fit_together(device: &Device) {
    let differ = |what: &str, builder: &(dyn Fn(usize) -> Builder + Sync)| {
        for error in build(device, Local::ranks(2), builder).into_iter().map(|built| built.map(drop).unwrap_err()) {
            assert!(matches!(&error, Error::RanksDiffer { what: said, .. } if said.contains(what)), "{error}, not {what}");
        }
    };
    let table = |width| BucketTable::builder(width).capacity(1000);
    differ("words", &|rank| small(table(2 + rank)));
    differ("slots", &|rank| small(table(2).capacity(1000 + 5000 * rank as u64)));
    differ("grow", &|rank| small(table(2).grows(rank == 0)));
    differ("shares", &|rank| small(table(2)).shares(if rank == 0 { Shares::Equal } else { Shares::BySlots }));
    // A rank that cannot make its table.
    let failed: Vec<_> = build(device, Local::ranks(3), |rank| small(table(if rank == 1 { 0 } else { 2 }))).into_iter().collect();
    let failed: Vec<Error> = failed.into_iter().map(|built| built.map(drop).unwrap_err()).collect();
    assert!(matches!(failed[1], Error::OutOfRange { given: 0, .. }), "{}", failed[1]);
    assert!([0, 2].iter().all(|rank| matches!(failed[*rank], Error::Rank { rank: 1, .. })), "{failed:?}");
}

fn ranks_that_are_out_of_step(device: &Device) {
    let set = Spread::new(device, 3, small, BucketTable::builder(1).capacity(100)).unwrap();
    set.all(|_, table| table.find_or_put_many(&[1, 2, 3]).unwrap().tally);
    let errors = set.all(|rank, table| if rank == 0 { table.clear().unwrap_err() } else { table.len().map(drop).unwrap_err() });
    for error in &errors {
        let says_so = matches!(error, Error::Connection { reason, .. } if reason.contains("out of step"));
        assert!(says_so, "{error}");
    }
    let names_both = |error: &Error| ["clear", "len"].iter().all(|name| error.to_string().contains(&format!("`{name}`")));
    assert!(errors.iter().any(names_both), "{errors:?}");
    // The connection has ended, and no vector is lost.
    assert!(set.all(|_, table| table.len()).iter().all(Result::is_err));
    let stored: u64 = set.all(|_, table| table.local().len().unwrap()).into_iter().sum();
    assert_eq!(stored, 3);
    set.reconnect(Local::ranks(3)).into_iter().for_each(|done| done.unwrap());
    assert_eq!(set.agreed(|_, table| table.find_or_put_many(&[2, 3]).unwrap().total.new), 0);
}

/// If a rank cannot grow, the batch goes on: vectors go into the free slots, on all ranks, and all ranks report the reason.
fn ranks_whose_growth_fails(device: &Device) {
    let width = 2;
    let words = distinct(width, 0, 2000);
    let (built, calls) = warpset::faults::count(|| BucketTable::builder(width).capacity(400).build(device));
    drop(built);
    assert!(calls > 0);
    let table = BucketTable::builder(width).capacity(400).grows(true);
    let set = Spread::new(device, 2, small, table).unwrap();
    set.all(|rank, table| table.find_or_put_many(if rank == 0 { &words[..600] } else { &[] }).unwrap().tally);
    let before = set.agreed(|_, table| table.local().slots());
    // Calls of rank 1 fail from call number `first` on, until such a call is found in the growth.
    let mut found = false;
    for first in 0..2000 {
        let batches = set.all(|rank, table| {
            let mut offer = || table.find_or_put_many(if rank == 1 { &words } else { &[] });
            if rank == 1 { warpset::faults::fail(first..first + 1, offer).0 } else { offer() }
        });
        let in_growth = |batch: &Result<warpset::cluster::Batch>| batch.as_ref().is_ok_and(|batch| batch.error.is_some());
        if batches.iter().all(in_growth) {
            let [own, other] = [1, 0].map(|rank| batches[rank].as_ref().unwrap());
            assert!(matches!(other.error, Some(Error::Rank { rank: 1, .. })), "{:?}", other.error);
            assert!(!matches!(own.error, Some(Error::Rank { .. })), "{:?}", own.error);
            assert_eq!(own.total, other.total);
            found = true;
            break;
        }
        // Any other failing call is an error on both ranks, after which both go on; or the call number was not reached.
        assert_eq!(batches[0].is_ok(), batches[1].is_ok(), "call {first}: {batches:?}");
        // On GPUs the copies of an exchange belong to the connection.
        if batches.iter().any(|batch| matches!(batch, Err(Error::Connection { .. }))) {
            set.reconnect(Local::ranks(2)).into_iter().for_each(|done| done.unwrap());
        }
        set.all(|_, table| table.clear().unwrap());
        let refill =
            set.all(|rank, table| table.find_or_put_many(if rank == 0 { &words[..600] } else { &[] }).unwrap().total.full);
        assert_eq!(refill, [0, 0]);
        if set.all(|_, table| table.local().slots()) != [before, before] {
            break;
        }
    }
    assert!(found, "no call failed in a growth");
    let total = set.all(|rank, table| table.find_or_put_many(if rank == 1 { &words } else { &[] }).unwrap().total);
    assert_eq!((total[0].full, set.agreed(|_, table| table.len().unwrap())), (0, 2000));
}

/// Vectors of the sending rank are not sent, equal vectors are sent once if deduplication is on, and nothing is sent if no
/// vectors are due.
fn what_crosses_the_wire(device: &Device) {
    [false, true].into_iter().for_each(|deduplicate| what_crosses(device, deduplicate));
}

fn what_crosses(device: &Device, deduplicate: bool) {
    let (width, count) = (8, 4000);
    let words = distinct(width, 0, count);
    let builder = |table| small(table).deduplicate(deduplicate);
    let set = Spread::new(device, 4, builder, BucketTable::builder(width).capacity(8000)).unwrap();
    let traffic = set.all(|rank, table| {
        let batch = table.find_or_put_many(&if rank == 2 { words.repeat(3) } else { Vec::new() }).unwrap();
        assert_eq!(batch.total.new, count as u64);
        table.traffic()
    });
    let own = set.all(|_, table| table.local().len().unwrap())[2];
    let times = if deduplicate { 1 } else { 3 };
    assert_eq!((traffic[2].offered, traffic[2].sent), (3 * count as u64, times * (count as u64 - own)));
    let payload = 4 * width as u64 * traffic[2].sent;
    assert!((payload..payload + 3 * 271).contains(&traffic[2].bytes_sent), "{traffic:?}");
    assert_eq!(set.agreed(|rank, table| table.sum([1, rank as u64, u64::MAX]).unwrap()), [4, 6, 0u64.wrapping_sub(4)]);
    let request = |rank: usize| Request::new().sum([1, rank as u64, u64::MAX]);
    let sums = set.agreed(|rank, table| table.find_or_put_many_with(&words[..width * rank], request(rank)).unwrap().sums);
    assert_eq!((&sums[..3], &sums[3..]), (&[4, 6, 0u64.wrapping_sub(4)][..], &[0; 13][..]));
    assert!(traffic[2].bytes_sent.is_multiple_of(128) && traffic[2].bytes_received.is_multiple_of(128));
    assert_eq!((traffic[0].offered, traffic[0].sent, traffic[0].rounds), (0, 0, 1));
    assert_eq!(
        traffic.iter().map(|traffic| traffic.bytes_sent).sum::<u64>(),
        traffic.iter().map(|traffic| traffic.bytes_received).sum()
    );
    let before = set.all(|_, table| table.traffic());
    set.all(|_, table| table.find_or_put_many(&[]).unwrap().tally);
    for (before, now) in before.iter().zip(set.all(|_, table| table.traffic())) {
        assert_eq!((before.bytes_sent, before.rounds), (now.bytes_sent, now.rounds), "nothing is sent for nothing");
    }
}

/// Tests the transport alone.
fn sums_over_ranks(_device: &Device) {
    for ranks in RANKS {
        let sums = on_all(Local::ranks(ranks), |rank, mut transport| {
            let mut values = [rank as u64, 1, u64::MAX];
            transport.all_reduce(&mut values).unwrap();
            transport.barrier().unwrap();
            let mut all = vec![0; 3 * ranks];
            transport.all_gather(&[rank as u8, 7, 9], &mut all).unwrap();
            (values, all)
        });
        let n = ranks as u64;
        let gathered: Vec<u8> = (0..ranks as u8).flat_map(|rank| [rank, 7, 9]).collect();
        assert!(
            sums.iter().all(|(values, all)| *values == [n * (n - 1) / 2, n, 0u64.wrapping_sub(n)] && *all == gathered),
            "{sums:?}"
        );
    }
}
