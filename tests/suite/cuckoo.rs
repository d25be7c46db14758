//! Compact cuckoo tables: find-or-put as in every table, with passes between batches that relocate keys. Nearly every slot is
//! filled, and no key is ever lost.
//!
//! Keeps these promises of `src/docs/memory_and_growth.md`:
//!
//! - Cuckoo tables fill to 0.99; relocation loses and changes no key.
//! - Cuckoo tables relocate keys when they grow. If the keys still find no slots, the table is unchanged, and the error has the
//!   numbers (also `src/core/growth.rs`).

use crate::common::checker::{Checker, OrFail, References, join};
use crate::common::set::{Set, everything};
use crate::common::vectors::{Pool, Random, keys};
use crate::common::{fast, scaled, sized, tests};
use std::collections::{HashMap, HashSet};
use std::sync::Barrier;
use std::thread;
use warpset::{Device, Error, Outcome, Root, TableBuilder, VectorTable, Words};

tests![
    keys_of_every_width_in_slots_of_every_size,
    filled_to_99_percent,
    filled_until_it_is_full_and_beyond,
    a_full_table_is_offered_more_and_more,
    keys_that_share_both_buckets,
    keys_that_have_one_place_only,
    callers_race_while_keys_are_relocated,
    hot_keys_before_a_full_table,
    tables_grow_by_themselves_and_late,
    nearly_full_tables_grow_by_a_quarter_and_by_less,
    relocation_moves_nothing_in_other_tables,
    half_the_slots_fit_the_same_keys,
];

fn words(keys: &[u64]) -> Vec<u32> {
    keys.iter().flat_map(|key| [*key as u32, (key >> 32) as u32]).collect()
}

fn pool(keys: &[u64]) -> Pool {
    Pool::new(2, words(keys).chunks(2).map(<[u32]>::to_vec))
}

fn builder(key_bits: u32, slot_bits: u32, capacity: u64) -> TableBuilder<Words, Root> {
    VectorTable::<Root>::builder(2).key_bits(key_bits).slot_bits(slot_bits).capacity(capacity).seed(3).cuckoo(true)
}

/// Offers keys for which the table has room, with duplicates, in parts; then compares everything with the model.
fn fill(table: &VectorTable<Root>, keys: &[u64], parts: usize) {
    let context = format!("{}, {} of {} slots", table.spec(), keys.len(), table.slots());
    let pool = pool(keys);
    let mut checker = Checker::new(table, &pool);
    let offers = pool.shuffled(2, 1);
    for part in offers.chunks(offers.len().div_ceil(parts)) {
        let batch = table.find_or_put(&pool.batch(part));
        checker.accept_with(part, &batch, References::Moved).or_fail(&context);
    }
    checker.check().or_fail(&context);
    // References of a batch are valid for the table as the batch leaves it.
    let again = table.find_or_put_many_with(&words(keys), everything()).unwrap();
    let references: Vec<_> = again.references.into_iter().map(|reference| reference.expect("it is stored")).collect();
    assert!(table.get_many(&references).unwrap() == words(keys), "{context}");
}

fn keys_of_every_width_in_slots_of_every_size(device: &Device) {
    let widths = if fast() { vec![20, 33, 45, 64] } else { (20..=64).collect::<Vec<_>>() };
    for key_bits in widths {
        for slot_bits in [16, 32, 64] {
            // Few slots; or, if keys of this width need more, the least sufficient size, up to 2^17.
            for capacity in [100, 1000, 10_007, 1 << 17] {
                match builder(key_bits, slot_bits, capacity).build(device) {
                    Ok(table) => fill(&table, &keys(key_bits, scaled(2000, 300).min(capacity as usize)), 3),
                    Err(Error::KeysDoNotFit { .. }) => continue,
                    Err(error) => panic!("{key_bits} bits in {capacity} slots of {slot_bits}: {error}"),
                }
                break;
            }
        }
    }
}

/// Fills 99 percent of all slots, including those of the stash.
fn filled_to_99_percent(device: &Device) {
    let (log2, share) = sized((17, 0.99), (14, 0.99), (12, 0.98));
    for (slot_bits, parts) in [(32, 1), (32, 7), (16, 2), (64, 3)] {
        // The widest keys that slots can hold: one bit is left for the function number.
        let key_bits: u32 = (slot_bits + log2 - 9 + u32::ilog2(slot_bits) - 1).min(64);
        for key_bits in [key_bits, (key_bits - 5).max(20)] {
            let table = builder(key_bits, slot_bits, 1 << log2).build(device).unwrap();
            // Without relocation the table would be full earlier.
            fill(&table, &keys(key_bits, (table.slots() as f64 * share) as usize), parts);
        }
    }
}

/// Stored keys stay and are found; rejected keys are reported; a larger table has room for them.
fn filled_until_it_is_full_and_beyond(device: &Device) {
    for (key_bits, slot_bits, capacity, least_fill) in
        [(20, 16, 1 << 10, 0.95), (26, 32, 100, 0.9), (40, 32, 1 << 13, 0.985), (64, 64, 20, 0.85), (50, 64, 1 << 12, 0.98)]
    {
        let table = builder(key_bits, slot_bits, capacity).build(device).unwrap();
        let context = format!("{}, {} slots", table.spec(), table.slots());
        let keys = keys(key_bits, table.slots() as usize * 5 / 4 + 50);
        let mut stored = HashSet::new();
        for part in keys.chunks(keys.len() / 5) {
            let batch = table.find_or_put_many(&words(part)).unwrap();
            stored.extend(part.iter().zip(&batch.outcomes).filter(|(_, outcome)| **outcome == Outcome::New).map(|(key, _)| *key));
            assert_eq!(batch.tally.new + batch.tally.full, part.len() as u64, "{context}");
            assert_eq!(table.len().unwrap(), stored.len() as u64, "{context}");
        }
        let fill = stored.len() as f64 / table.slots() as f64;
        assert!(fill > least_fill && stored.len() < keys.len(), "{context}: full at {fill}");
        let contained = table.contains_many(&words(&keys)).unwrap();
        for (key, contained) in keys.iter().zip(contained) {
            assert_eq!(contained, stored.contains(key), "{context}: {key:#x}");
        }
        let rows: Vec<u64> = table.iter().map(|row| row.unwrap().1).map(|row| row[0] as u64 | (row[1] as u64) << 32).collect();
        assert_eq!(rows.len(), stored.len(), "{context}");
        assert!(rows.into_iter().collect::<HashSet<_>>() == stored, "{context}");
        table.reserve_total(4 * table.slots()).unwrap();
        let batch = table.find_or_put_many(&words(&keys)).unwrap();
        assert_eq!((batch.tally.seen, batch.tally.full), (stored.len() as u64, 0), "{context}");
    }
}

/// Each batch relocates in vain, again and again, and no key is lost.
fn a_full_table_is_offered_more_and_more(device: &Device) {
    for (key_bits, slot_bits, capacity) in [(22, 16, 1 << 12), (38, 32, 1 << 12), (64, 64, 20)] {
        let table = builder(key_bits, slot_bits, capacity).build(device).unwrap();
        let all = keys(key_bits, table.slots() as usize * 2);
        let mut stored = Vec::new();
        for part in all.chunks(table.slots() as usize / 10) {
            let batch = table.find_or_put_many(&words(part)).unwrap();
            stored.extend(part.iter().zip(&batch.outcomes).filter(|(_, outcome)| **outcome == Outcome::New).map(|(key, _)| *key));
            assert_eq!(table.len().unwrap(), stored.len() as u64, "{}", table.spec());
            let found = table.contains_many(&words(&stored)).unwrap();
            assert!(found.into_iter().all(|found| found), "{}: a stored key is gone", table.spec());
        }
        assert!(stored.len() as u64 <= table.slots(), "{}", table.spec());
        // After a clearing the counts start at zero.
        table.clear().unwrap();
        fill(&table, &all[..table.slots() as usize * 7 / 10], 2);
    }
}

/// Every chain of relocations returns to its start: nearly all relocated keys are left over, again and again.
fn keys_that_share_both_buckets(device: &Device) {
    for (key_bits, slot_bits, capacity) in [(20, 16, 1 << 12), (24, 32, 1 << 10), (45, 64, 1 << 10)] {
        let table = builder(key_bits, slot_bits, capacity).hash_mask(0).build(device).unwrap();
        let keys: Vec<u64> = (0..400).collect();
        let mut stored = HashSet::new();
        for part in keys.chunks(100) {
            let batch = table.find_or_put_many(&words(part)).unwrap();
            stored.extend(part.iter().zip(&batch.outcomes).filter(|(_, outcome)| **outcome == Outcome::New).map(|(key, _)| *key));
            table.relocate().unwrap();
            assert_eq!(table.len().unwrap(), stored.len() as u64);
            let contained = table.contains_many(&words(&keys)).unwrap();
            for (key, contained) in keys.iter().zip(contained) {
                assert_eq!(contained, stored.contains(key), "{}: {key}", table.spec());
            }
        }
        assert!(stored.len() >= 512 / slot_bits as usize && stored.len() < keys.len(), "{} stored", stored.len());
    }
}

/// A key whose code under a function would be EMPTY cannot be stored under that function.
fn keys_that_have_one_place_only(device: &Device) {
    // Hashes are folded keys: keys of remainder 0 under function 0 are the first of each window.
    let (key_bits, slot_bits, capacity) = (21, 16, 1 << 11);
    let table = builder(key_bits, slot_bits, capacity).hash_mask(0).build(device).unwrap();
    let window = 1u64 << (key_bits - 6);
    let firsts: Vec<u64> = (0..64).map(|bucket| bucket * window).map(|hash| hash ^ (hash >> key_bits.div_ceil(2))).collect();
    let others: Vec<u64> =
        (0..64 * 40).map(|n| (n % 64) * window + 1 + n / 64).map(|h| h ^ (h >> key_bits.div_ceil(2))).collect();
    let keys = [firsts, others].concat();
    let batch = table.find_or_put_many(&words(&keys)).unwrap();
    let mut stored: Vec<bool> = batch.outcomes.iter().map(|outcome| *outcome == Outcome::New).collect();
    for _ in 0..3 {
        table.relocate().unwrap();
        assert_eq!(table.contains_many(&words(&keys)).unwrap(), stored);
        let batch = table.find_or_put_many(&words(&keys)).unwrap();
        for ((stored, outcome), key) in stored.iter_mut().zip(batch.outcomes).zip(&keys) {
            assert_eq!(*stored, outcome == Outcome::Seen, "{key:#x}");
            *stored |= outcome == Outcome::New;
        }
    }
}

/// Callers put equal keys, look them up, and relocate, all at once.
fn callers_race_while_keys_are_relocated(device: &Device) {
    for (key_bits, slot_bits, capacity) in [(36, 32, 1 << 10), (22, 16, 1 << 12), (60, 64, 1 << 9)] {
        for round in 0..scaled(6, 2) {
            let table = builder(key_bits, slot_bits, capacity).build(device).unwrap();
            let pool = pool(&keys(key_bits, (table.slots() as f64 * 0.93) as usize));
            let callers = 4;
            let barrier = Barrier::new(callers + 1);
            let answers = thread::scope(|scope| {
                let call = |caller: usize| {
                    let (table, pool, barrier) = (&table, &pool, &barrier);
                    scope.spawn(move || {
                        let mut all = pool.all();
                        Random::new(round * 100 + caller as u64).shuffle(&mut all);
                        barrier.wait();
                        let mut answers = Vec::new();
                        for part in all.chunks(197) {
                            let batch = table.find_or_put(&pool.batch(part));
                            // A key reported as stored is found from then on, wherever it is moved to.
                            assert!(table.contains(&pool.batch(part)).into_iter().all(|stored| stored));
                            answers.push((part.to_vec(), batch));
                        }
                        answers
                    })
                };
                let callers: Vec<_> = (0..callers).map(call).collect();
                barrier.wait();
                // The count is limited: a thread that waits to change a table goes before readers, so endless relocation would
                // block them.
                for _ in 0..scaled(100, 10) {
                    table.relocate().unwrap();
                }
                callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
            });
            let (positions, batch) = join(answers);
            let mut checker = Checker::new(&table, &pool);
            checker.accept_with(&positions, &batch, References::Moved).or_fail(key_bits);
            checker.check().or_fail(key_bits);
        }
    }
}

/// A few keys, each offered thousands of times in one batch, until the table is full: copies of a key take no room from it, nor
/// from another.
fn hot_keys_before_a_full_table(device: &Device) {
    let copies = sized(4000, 1000, 1000);
    for (key_bits, slot_bits, capacity, least_fill) in
        [(36, 32, 1 << 10, 0.96), (22, 16, 1 << 12, 0.985), (60, 64, 1 << 9, 0.93), (40, 32, 1 << 14, 0.99)]
    {
        let table = builder(key_bits, slot_bits, capacity).build(device).unwrap();
        let slots = table.slots() as f64;
        let all = keys(key_bits, table.slots() as usize * 21 / 20);
        let (first, hot) = all.split_at((slots * (least_fill - 0.02)) as usize);
        assert_eq!(table.find_or_put_many(&words(first)).unwrap().tally.full, 0, "{}", table.spec());
        let (mut random, mut stored, mut rejected) = (Random::new(key_bits.into()), first.len(), 0);
        for part in hot.chunks(5) {
            let mut offers = part.repeat(copies);
            random.shuffle(&mut offers);
            let batch = table.find_or_put_many(&words(&offers)).unwrap();
            let mut told: HashMap<u64, [usize; 3]> = HashMap::new();
            for (key, outcome) in offers.iter().zip(&batch.outcomes) {
                let told = told.entry(*key).or_default();
                match outcome {
                    Outcome::New => told[0] += 1,
                    Outcome::Seen => told[1] += 1,
                    _ => told[2] += 1,
                }
            }
            let contained = table.contains_many(&words(part)).unwrap();
            for (key, contained) in part.iter().zip(contained) {
                let expected = if contained { [1, copies - 1, 0] } else { [0, 0, copies] };
                assert_eq!(told[key], expected, "{}: New, Seen and Full of {key:#x}", table.spec());
                stored += usize::from(contained);
                rejected += usize::from(!contained);
            }
            assert!(rejected == 0 || stored as f64 > slots * least_fill, "{}: full at {stored}", table.spec());
            if rejected > 20 {
                break;
            }
        }
        assert_eq!(table.len().unwrap(), stored as u64, "{}", table.spec());
    }
}

fn tables_grow_by_themselves_and_late(device: &Device) {
    for key_bits in [20, 37, 64] {
        let table =
            VectorTable::<Root>::builder(2).key_bits(key_bits).capacity(600).grows(true).cuckoo(true).build(device).unwrap();
        fill(&table, &keys(key_bits, scaled(30_000, 2000)), 3);
        let stats = table.stats().unwrap();
        assert!(stats.fill() <= 0.98, "{key_bits} bits: {}", stats.fill());
    }
    let table = builder(32, 32, 1 << 12).grows(true).build(device).unwrap();
    let slots = table.slots();
    fill(&table, &keys(32, (slots as f64 * 0.95) as usize), 1);
    assert_eq!(table.slots(), slots);
}

/// Without relocation a key finds no slot in the larger table: its two buckets and its places in the stash are taken, at a fill
/// that find-or-put alone does not reach.
fn nearly_full_tables_grow_by_a_quarter_and_by_less(device: &Device) {
    // Sizes are rounded up, to some hundreds of slots on a GPU: smaller tables cannot grow by so little.
    let log2 = sized(15, 13, 13);
    for (slot_bits, share) in [(64, 0.97), (32, 0.97), (16, 0.97)] {
        let key_bits = slot_bits + log2 - 9 + u32::ilog2(slot_bits) - 3;
        for part in [4, 10, 25] {
            let table = builder(key_bits.min(64), slot_bits, 1 << log2).build(device).unwrap();
            let context = format!("{}, by one of {part}", table.spec());
            let stored = keys(key_bits.min(64), (table.slots() as f64 * share) as usize);
            assert_eq!(table.find_or_put_many(&words(&stored)).unwrap().tally.full, 0, "{context}");
            let before = table.locate_many(&words(&stored[..9])).unwrap();
            let slots = table.slots();
            table.reserve_total(slots + slots / part).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(table.slots() > slots && table.slots() < slots + 2 * slots / part, "{context}: {} slots", table.slots());
            assert_eq!(table.len().unwrap(), stored.len() as u64, "{context}");
            let now = table.locate_many(&words(&stored)).unwrap();
            assert!(now.iter().all(Option::is_some), "{context}: a key is gone");
            let now: Vec<_> = now.into_iter().flatten().collect();
            assert!(table.get_many(&now).unwrap() == words(&stored), "{context}");
            let before: Vec<_> = before.into_iter().flatten().collect();
            let stale = Err(Error::StaleReferences { stale: 9, count: 9 });
            assert_eq!(table.get_many(&before).map(drop), stale, "{context}");
            let batch = table.find_or_put_many(&words(&stored)).unwrap();
            assert_eq!((batch.tally.new, batch.tally.seen), (0, stored.len() as u64), "{context}");
        }
    }
}

fn relocation_moves_nothing_in_other_tables(device: &Device) {
    let table = VectorTable::<Root>::builder(2).key_bits(36).slot_bits(32).capacity(1 << 10).build(device).unwrap();
    let put = words(&keys(36, 900));
    let before = table.find_or_put_many_with(&put, everything()).unwrap();
    assert_eq!(table.relocate().unwrap(), 0);
    assert_eq!(table.locate_many(&put).unwrap(), before.references);
    // A table with an empty stash has nothing to relocate, either.
    let table = builder(36, 32, 1 << 12).build(device).unwrap();
    assert_eq!(table.relocate().unwrap(), 0);
    assert!(table.find_or_put_many(&put).unwrap().tally.full == 0 && table.spec().is_cuckoo());
}

fn half_the_slots_fit_the_same_keys(device: &Device) {
    // Three functions or more; or two.
    for (key_bits, slot_bits, of_many, of_two) in [(40, 32, 3 << 11, 1 << 13), (24, 16, 3 << 11, 1 << 14)] {
        let build = |capacity, cuckoo| builder(key_bits, slot_bits, capacity).cuckoo(cuckoo).build(device).map(drop);
        assert!(build(of_two, true).is_ok());
        assert!(build(of_two / 2, false).is_ok(), "with one function");
        let error = build(of_many, true).unwrap_err();
        let Error::KeysDoNotFit { needed, slots, .. } = error else { panic!("{error:?}") };
        assert_eq!((needed, slots), (of_two, of_many));
        assert!(error.to_string().contains(&of_two.to_string()), "{error}");
    }
    // By default slots have the smallest size that two functions allow.
    let bits = |cuckoo| {
        let table = VectorTable::<Root>::builder(2).key_bits(24).capacity(1 << 14).cuckoo(cuckoo).build(device).unwrap();
        table.spec().key_and_slot_bits().unwrap().1
    };
    assert_eq!((bits(true), bits(false)), (16, 32));
}
