//! Tests of the test helpers: the checker accepts a correct set, and finds the fault of each wrong one.
//!
//! Keeps this promise of `src/docs/how_it_is_checked.md`:
//!
//! - The checker of the tests finds every planted fault.

use crate::common::checker::{Checked, Checker, Rule, join};
use crate::common::faulty::{Fault, FaultySet};
use crate::common::histories::{play, thorough};
use crate::common::set::Set;
use crate::common::vectors::{Family, Pool, Random, all_widths, distinct, mix};
use libtest_mimic::Trial;
use std::collections::HashSet;
use warpset::Outcome;

/// Trials that need no device.
pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 9] = [
        ("a_right_set_passes", a_right_set_passes),
        ("every_fault_is_found", every_fault_is_found),
        ("faults_of_full_sets_are_found", faults_of_full_sets_are_found),
        ("faults_are_found_by_the_rule_they_break", faults_are_found_by_the_rule_they_break),
        ("an_unexpected_rejection_is_found", an_unexpected_rejection_is_found),
        ("a_vector_new_to_two_callers_is_found", a_vector_new_to_two_callers_is_found),
        ("a_vector_new_to_nobody_is_found", a_vector_new_to_nobody_is_found),
        ("distinct_vectors_are_distinct", distinct_vectors_are_distinct),
        ("pools_hold_each_vector_once", pools_hold_each_vector_once),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(format!("helpers::{name}"), move || {
            test();
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

fn pool() -> Pool {
    Pool::of(Family::Random, 3, 30)
}

/// The thorough history, on a set with enough room.
fn checked(fault: Fault) -> Checked {
    let (pool, set) = (pool(), FaultySet::new(3, 64, fault));
    play(&mut Checker::new(&set, &pool), &set, &pool, &thorough())
}

/// The thorough history, on a set that is too small for the pool.
fn checked_when_full(fault: Fault) -> Checked {
    let (pool, set) = (pool(), FaultySet::new(3, 12, fault));
    play(&mut Checker::of_small(&set, &pool), &set, &pool, &thorough())
}

fn a_right_set_passes() {
    assert!(checked(Fault::Nothing).is_ok());
    assert!(checked_when_full(Fault::Nothing).is_ok());
}

fn every_fault_is_found() {
    let unfound = |fault: &Fault| checked(*fault).is_ok() && checked_when_full(*fault).is_ok();
    let unfound: Vec<Fault> = Fault::ALL.into_iter().filter(unfound).collect();
    assert!(unfound.is_empty(), "the checker passes {unfound:?}");
}

fn faults_of_full_sets_are_found() {
    for (fault, rule) in [(Fault::ReferenceOfFull, Rule::SameReference), (Fault::RejectsAtFirst, Rule::Full)] {
        let violation = checked_when_full(fault).expect_err("a fault");
        assert_eq!(violation.rule, rule, "{fault:?}: {violation}");
    }
}

fn faults_are_found_by_the_rule_they_break() {
    let rules = [
        (Fault::DropsVectors, Rule::Length),
        (Fault::StoresCopies, Rule::Length),
        (Fault::NewAgain, Rule::SeenWhenStored),
        (Fault::NeverNew, Rule::OneNew),
        (Fault::RejectsEarly, Rule::Full),
        (Fault::WrongReference, Rule::SameReference),
        (Fault::OnePlace, Rule::OwnReference),
        (Fault::ChangesWords, Rule::Get),
        (Fault::WrongTally, Rule::Tally),
        (Fault::ShortResults, Rule::ResultLengths),
        (Fault::MissesNewReference, Rule::NewReferences),
        (Fault::TooManyNewReferences, Rule::NewReferences),
        (Fault::ContainsAll, Rule::Contains),
        (Fault::ContainsTooLittle, Rule::Contains),
        (Fault::LocatesAbsent, Rule::Locate),
        (Fault::IteratesTwice, Rule::Contents),
        (Fault::IteratesTooLittle, Rule::Contents),
        (Fault::IteratesMixed, Rule::Contents),
        (Fault::LengthOff, Rule::Length),
        (Fault::StatisticsOff, Rule::Statistics),
        (Fault::ClearsTooLittle, Rule::Length),
        (Fault::GrowsTooLittle, Rule::Locate),
        (Fault::MovesVectors, Rule::Locate),
    ];
    for (fault, rule) in rules {
        let violation = checked(fault).expect_err("a fault");
        assert_eq!(violation.rule, rule, "{fault:?}: {violation}");
    }
}

fn an_unexpected_rejection_is_found() {
    let (pool, set) = (pool(), FaultySet::new(3, 12, Fault::Nothing));
    let violation = Checker::new(&set, &pool).offer(&pool.all()).expect_err("18 are rejected");
    assert_eq!(violation.rule, Rule::Full);
}

/// Two callers overlap; each caller's results alone are consistent.
fn a_vector_new_to_two_callers_is_found() {
    let (pool, set) = (pool(), FaultySet::new(3, 64, Fault::NewAgain));
    let bad = (0..pool.len()).find(|at| pool.vector(*at)[0] % 2 == 1).expect("half of them are");
    let parts = [vec![bad], vec![bad]].map(|part| {
        let batch = set.find_or_put(&pool.batch(&part));
        assert_eq!(batch.outcomes, [Outcome::New]);
        (part, batch)
    });
    let (positions, batch) = join(parts);
    let violation = Checker::new(&set, &pool).accept(&positions, &batch).expect_err("New twice");
    assert_eq!(violation.rule, Rule::OneNew);
}

fn a_vector_new_to_nobody_is_found() {
    let (pool, set) = (pool(), FaultySet::new(3, 64, Fault::NeverNew));
    let parts = [pool.all(), pool.all()].map(|part| (part.clone(), set.find_or_put(&pool.batch(&part))));
    let (positions, batch) = join(parts);
    let violation = Checker::new(&set, &pool).accept(&positions, &batch).expect_err("never New");
    assert_eq!(violation.rule, Rule::OneNew);
}

fn distinct_vectors_are_distinct() {
    for width in [1, 2, 3, 7] {
        let words = distinct(width, 5, 100_000);
        let vectors: HashSet<&[u32]> = words.chunks(width).collect();
        assert_eq!((words.len(), vectors.len()), (width * 100_000, 100_000));
    }
    let mixed: HashSet<u64> = (0..100_000).map(mix).collect();
    assert_eq!(mixed.len(), 100_000);
    let mut shuffled: Vec<u32> = (0..1000).collect();
    Random::new(1).shuffle(&mut shuffled);
    assert!(!shuffled.is_sorted());
    shuffled.sort_unstable();
    assert!(shuffled.into_iter().eq(0..1000));
}

fn pools_hold_each_vector_once() {
    for width in all_widths() {
        for family in Family::ALL {
            let pool = Pool::of(family, width, 40);
            let vectors: HashSet<&[u32]> = pool.words().chunks(width).collect();
            assert_eq!(vectors.len(), pool.len(), "{family:?} of width {width}");
            assert!((0..pool.len()).all(|at| pool.position(pool.vector(at)) == Some(at)));
            // A family that repeats one vector would test nothing.
            let fewest = if width > 3 { 30 } else { 2 };
            assert!(pool.len() >= fewest || width == 1, "{family:?} of width {width}: {}", pool.len());
        }
    }
}
