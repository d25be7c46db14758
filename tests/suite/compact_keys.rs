//! Compact tables: keys of every width from 20 to 64 bits in slots of every size that they fit, up to 0.95 of the bytes and
//! beyond.

use crate::common::checker::{Checker, OrFail, join};
use crate::common::histories::{play, thorough};
use crate::common::set::Set;
use crate::common::vectors::{Pool, Random, keys, mask};
use crate::common::{scaled, sized, tests};
use std::collections::HashSet;
use std::sync::Barrier;
use std::thread;
use warpset::{Device, Error, Outcome, Request, Root, RootTable, TypedTable, VectorTable};

tests![
    keys_of_every_width_in_slots_of_every_size,
    keys_that_look_alike,
    keys_whose_hashes_are_alike,
    filled_to_95_percent_without_a_rejection,
    no_key_is_rejected_up_to_95_percent_whatever_the_size,
    filled_to_the_last_slot_and_beyond,
    one_function_and_a_stash,
    callers_race_in_a_nearly_full_table,
    tables_of_keys_grow_by_themselves,
    keys_of_too_many_bits,
    bits_out_of_range,
    keys_that_do_not_fit_their_slots,
    keys_are_of_two_words,
];

fn words(keys: impl IntoIterator<Item = u64>) -> impl Iterator<Item = Vec<u32>> {
    keys.into_iter().map(|key| vec![key as u32, (key >> 32) as u32])
}

fn table(device: &Device, key_bits: u32, slot_bits: u32, capacity: u64) -> Result<VectorTable<Root>, Error> {
    VectorTable::<Root>::builder(2).key_bits(key_bits).slot_bits(slot_bits).capacity(capacity).seed(3).build(device)
}

/// Key widths of a run: few on a GPU, which compiles kernels for each.
fn some_key_bits() -> Vec<u32> {
    sized((20..=64).collect(), vec![20, 21, 27, 32, 33, 36, 40, 45, 52, 63, 64], vec![20, 33, 45, 64])
}

fn keys_of_every_width_in_slots_of_every_size(device: &Device) {
    for key_bits in some_key_bits() {
        for slot_bits in [16, 32, 64] {
            // Few slots; or, if keys of this width need more, the least sufficient size, up to 2^20.
            for capacity in [100, 1000, 10_007, 1 << 20] {
                let context = format!("{key_bits} bits in {capacity} slots of {slot_bits}");
                let table = match table(device, key_bits, slot_bits, capacity) {
                    Ok(table) => table,
                    Err(Error::KeysDoNotFit { .. }) => continue,
                    Err(error) => panic!("{context}: {error}"),
                };
                let pool = Pool::new(2, words(keys(key_bits, 40)));
                play(&mut Checker::new(&table, &pool), &table, &pool, &thorough()).or_fail(&context);
                if capacity > 100 {
                    break;
                }
            }
        }
    }
}

/// Keys with typical patterns: numbered, in the high bits only, in the low bits only, pairs of small numbers.
fn keys_that_look_alike(device: &Device) {
    let count = sized(6000, 2000, 300);
    for (key_bits, slot_bits) in [(33, 32), (40, 32), (54, 64)] {
        let high = |key: u64| key << (key_bits - 13);
        let low = |key: u64| (mask(key_bits) & !0x1FFF) | key;
        let pair = |key: u64| ((key / 80) << (key_bits / 2)) | (key % 80);
        let families: [(&str, &dyn Fn(u64) -> u64); 4] =
            [("consecutive", &|key| key), ("high bits", &high), ("low bits", &low), ("pairs", &pair)];
        for (family, key) in families {
            let context = format!("{key_bits} bits in slots of {slot_bits}: {family}");
            let table = table(device, key_bits, slot_bits, 1 << 13).unwrap();
            let pool = Pool::new(2, words((0..count as u64).map(key)));
            let mut checker = Checker::new(&table, &pool);
            let _ = checker.offer(&pool.shuffled(2, 1)).or_fail(&context);
            checker.check().or_fail(&context);
            let mean = table.stats().unwrap().mean_probe();
            assert!(mean < 1.15, "{context}: {mean} looks a key, where there should be 1.03");
        }
    }
}

/// All functions agree, and hashes differ as little as keys do: keys fill one bucket and the stash, then are Full.
fn keys_whose_hashes_are_alike(device: &Device) {
    for (key_bits, slot_bits, capacity) in [(20, 16, 1 << 12), (24, 32, 1 << 10), (37, 32, 1 << 12), (45, 64, 1 << 10)] {
        let builder = VectorTable::<Root>::builder(2).key_bits(key_bits).slot_bits(slot_bits).capacity(capacity).hash_mask(0);
        let table = builder.build(device).unwrap();
        // Key 0 has EMPTY's code under the first function.
        let pool = Pool::new(2, words(0..100));
        let mut checker = Checker::of_small(&table, &pool);
        for part in pool.shuffled(3, 1).chunks(50) {
            let _ = checker.offer(part).or_fail(key_bits);
        }
        checker.check().or_fail(key_bits);
        let slots = 512 / slot_bits as usize;
        assert!(checker.stored().len() >= slots, "{key_bits} bits: {} of a bucket's {slots}", checker.stored().len());
    }
}

/// Number of keys that fill the given share of a table's slots.
fn keys_for(table: &VectorTable<Root>, fill: f64) -> usize {
    (table.slots() as f64 * fill) as usize
}

/// For each possible number of functions, iteration and decompression return exactly the stored set.
fn filled_to_95_percent_without_a_rejection(device: &Device) {
    let log2: u32 = sized(17, 15, 12);
    // Slot bits, and bits that are left for function numbers.
    for (slot_bits, left) in [(32, 8), (32, 4), (32, 3), (32, 2), (32, 1), (16, 8), (16, 2), (64, 20)] {
        let buckets_log2 = log2 - 9 + u32::ilog2(slot_bits);
        let key_bits = slot_bits + buckets_log2 - left;
        if key_bits < *warpset::Spec::KEY_BITS.start() {
            continue; // small tables of small slots would need keys of too few bits
        }
        // With three functions: a quarter fewer slots than with four.
        let sizes = if left == 2 { vec![1 << log2, (1 << log2) / 4 * 3 + 16] } else { vec![1 << log2] };
        for capacity in sizes {
            let table = table(device, key_bits.min(64), slot_bits, capacity).unwrap();
            let context = format!("{} of {capacity}", table.spec());
            let count = keys_for(&table, 0.95);
            let keys = keys(key_bits.min(64), count);
            let put: Vec<u32> = words(keys.iter().copied()).flatten().collect();
            let batch = table.find_or_put_many(&put).unwrap();
            assert_eq!((batch.tally.new, batch.tally.full), (count as u64, 0), "{context}");
            let again = table.find_or_put_many_with(&put, Request::new().references(true)).unwrap();
            assert_eq!((again.tally.new, again.tally.seen), (0, count as u64), "{context}");
            let references: Vec<_> = again.references.into_iter().flatten().collect();
            assert!(table.get_many(&references).unwrap() == put, "{context}");
            assert!(table.contains_many(&put).unwrap().iter().all(|stored| *stored), "{context}");
            let found: Vec<u64> = table.iter().map(|row| key_of(&row.unwrap().1)).collect();
            assert_eq!(found.len(), count, "{context}");
            assert!(found.into_iter().collect::<HashSet<_>>() == keys.into_iter().collect(), "{context}");
        }
    }
}

/// One whole batch: on a GPU, all keys of a small table are under way together.
fn no_key_is_rejected_up_to_95_percent_whatever_the_size(device: &Device) {
    for key_bits in some_key_bits() {
        for slot_bits in [16, 32, 64] {
            for capacity in [1, 50, 200, 1000, 3088, 20_000, sized(100_000, 30_000, 20_000)] {
                for seed in 0..sized(4, 1, 4) {
                    let builder =
                        VectorTable::<Root>::builder(2).key_bits(key_bits).slot_bits(slot_bits).capacity(capacity).seed(seed);
                    let table = match builder.build(device) {
                        Ok(table) => table,
                        Err(Error::KeysDoNotFit { .. }) => break,
                        Err(error) => panic!("{error}"),
                    };
                    // With one function the library makes no such promise.
                    let codes = (1u128 << slot_bits) * u128::from(table.slots()) * u128::from(slot_bits) / 512;
                    let count = keys_for(&table, if codes >> key_bits >= 4 { 0.95 } else { 0.75 });
                    if count as u64 > mask(key_bits) / 2 {
                        continue;
                    }
                    let put: Vec<u32> = words(keys(key_bits, count)).flatten().collect();
                    let tally = table.find_or_put_many_with(&put, Request::new()).unwrap().tally;
                    assert_eq!((tally.new, tally.full), (count as u64, 0), "{}, {capacity}, seed {seed}", table.spec());
                }
            }
        }
    }
}

fn key_of(words: &[u32]) -> u64 {
    u64::from(words[0]) | u64::from(words[1]) << 32
}

/// Rejected keys are reported, and rejected again; stored keys stay.
fn filled_to_the_last_slot_and_beyond(device: &Device) {
    for (key_bits, slot_bits, capacity) in
        [(20, 16, 512), (27, 32, 100), (40, 32, 1 << 13), (33, 32, 40), (64, 64, 20), (50, 64, 300), (36, 32, 256)]
    {
        let table = table(device, key_bits, slot_bits, capacity).unwrap();
        let context = format!("{}, {capacity} slots", table.spec());
        let pool = Pool::new(2, words(keys(key_bits, table.slots() as usize * 2 + 50)));
        let mut checker = Checker::of_small(&table, &pool);
        for part in pool.shuffled(2, 1).chunks(pool.len() / 3) {
            let _ = checker.offer(part).or_fail(&context);
        }
        checker.check().or_fail(&context);
        let fill = table.stats().unwrap().fill();
        assert!(fill > 0.9, "{context}: full at {fill}");
        checker.grow(4 * table.slots()).or_fail(&context);
        let _ = checker.offer(&pool.all()).or_fail(&context);
        assert_eq!(checker.stored().len(), pool.len(), "{context}");
        checker.check().or_fail(&context);
    }
}

/// Codes fill their slots: every bit of a slot is used, and the key whose code is EMPTY has no slot in the main level.
fn one_function_and_a_stash(device: &Device) {
    for (key_bits, slot_bits, capacity) in [(21, 16, 1 << 10), (36, 32, 1 << 8), (42, 32, 1 << 14)] {
        let builder = VectorTable::<Root>::builder(2).key_bits(key_bits).slot_bits(slot_bits).capacity(capacity);
        // Hashes are folded keys. The keys are those of a window, its first and its last.
        let table = builder.clone().hash_mask(0).build(device).unwrap();
        let window = 1u64 << slot_bits;
        let folded = |hash: u64| hash ^ hash >> key_bits.div_ceil(2);
        let hashes = (0..1 << (key_bits - slot_bits)).flat_map(|bucket: u64| {
            [0, 1, 2, window / 2, window - 2, window - 1].map(|remainder| folded(bucket * window + remainder))
        });
        let pool = Pool::new(2, words(hashes));
        let mut checker = Checker::of_small(&table, &pool);
        let _ = checker.offer(&pool.shuffled(2, 7)).or_fail(key_bits);
        checker.check().or_fail(key_bits);
        let stored = checker.stored().len();
        assert!(stored * 10 >= pool.len() * 8, "{key_bits} bits: {stored} of {}", pool.len());
        // With the usual hash, the table takes keys up to a fill of 0.75.
        let table = builder.seed(1).build(device).unwrap();
        let pool = Pool::new(2, words(keys(key_bits, keys_for(&table, 0.75))));
        let mut checker = Checker::new(&table, &pool);
        let _ = checker.offer(&pool.shuffled(2, 1)).or_fail(key_bits);
        checker.check().or_fail(key_bits);
    }
}

/// Equal keys from many callers, on their way through several rounds and into the stash.
fn callers_race_in_a_nearly_full_table(device: &Device) {
    for (key_bits, slot_bits, capacity) in
        [(36, 32, 1 << 10), (37, 32, 1 << 10), (30, 32, 1 << 10), (22, 16, 1 << 12), (60, 64, 1 << 9)]
    {
        for round in 0..scaled(8, 2) {
            let table = table(device, key_bits, slot_bits, capacity).unwrap();
            let pool = Pool::new(2, words(keys(key_bits, keys_for(&table, 0.98))));
            let callers = 6;
            let barrier = Barrier::new(callers);
            let answers = thread::scope(|scope| {
                let call = |caller: usize| {
                    let (table, pool, barrier) = (&table, &pool, &barrier);
                    scope.spawn(move || {
                        let mut all = pool.all();
                        Random::new(round * 100 + caller as u64).shuffle(&mut all);
                        barrier.wait();
                        all.chunks(97).map(|part| (part.to_vec(), table.find_or_put(&pool.batch(part)))).collect::<Vec<_>>()
                    })
                };
                let callers: Vec<_> = (0..callers).map(call).collect();
                callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
            });
            let (positions, batch) = join(answers);
            let mut checker = Checker::of_small(&table, &pool);
            checker.accept(&positions, &batch).or_fail(key_bits);
            checker.check().or_fail(key_bits);
        }
    }
}

fn tables_of_keys_grow_by_themselves(device: &Device) {
    for key_bits in [20, 37, 64] {
        let count = sized(50_000, 12_000, 2000);
        let pool = Pool::new(2, words(keys(key_bits, count)));
        let builder = VectorTable::<Root>::builder(2).key_bits(key_bits).capacity(600).grows(true);
        let table = builder.build(device).unwrap();
        let mut checker = Checker::new(&table, &pool);
        for part in pool.shuffled(2, 5).chunks(count / 3) {
            let _ = checker.offer(part).or_fail(key_bits);
        }
        checker.check().or_fail(key_bits);
        let stats = table.stats().unwrap();
        assert!(stats.fill() <= 0.86, "{key_bits} bits: {}", stats.fill());
    }
}

/// Refused before any key is put; the message has the numbers.
fn keys_of_too_many_bits(device: &Device) {
    for key_bits in [20, 33, 45, 63] {
        let table = RootTable::builder().key_bits(key_bits).capacity(1000).build(device).unwrap();
        assert_eq!(table.find_or_put_many(&[mask(key_bits)]).unwrap().outcomes, [Outcome::New]);
        for too_large in [mask(key_bits) + 1, u64::MAX] {
            let keys = [7, 8, too_large, 9];
            let errors = [
                table.find_or_put_many(&keys).map(drop).unwrap_err(),
                table.contains_many(&keys).map(drop).unwrap_err(),
                table.locate_many(&keys).map(drop).unwrap_err(),
            ];
            for error in errors {
                let message = error.to_string();
                assert!(message.contains(&format!("{too_large:#x}")) && message.contains(&key_bits.to_string()), "{message}");
                let Error::KeyTooLarge { key, position: 2, key_bits: of_table } = error else { panic!("{error:?}") };
                assert_eq!((key, of_table), (too_large, key_bits));
            }
            assert_eq!(table.contains_many(&[7, 8, 9, mask(key_bits)]).unwrap(), [false, false, false, true]);
            assert_eq!(table.len().unwrap(), 1);
        }
    }
    let table = RootTable::new(device, 1000).unwrap();
    assert_eq!(table.find_or_put_many(&[u64::MAX, 0, u64::MAX]).unwrap().tally.new, 2);
}

fn bits_out_of_range(device: &Device) {
    for bits in [0, 19, 65, u32::MAX] {
        let error = VectorTable::<Root>::builder(2).key_bits(bits).build(device).map(drop).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { what: "bits of a key", given, .. } if given == u64::from(bits)), "{error:?}");
        for number in [bits, 20, 64] {
            assert!(error.to_string().contains(&number.to_string()), "{error}");
        }
    }
    for bits in [0, 8, 31, 33, 128] {
        let error = VectorTable::<Root>::builder(2).slot_bits(bits).build(device).map(drop).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { given, least: 16, .. } if given == u64::from(bits)), "{error:?}");
        assert!(error.to_string().contains(&bits.to_string()), "{error}");
    }
}

fn keys_that_do_not_fit_their_slots(device: &Device) {
    for (key_bits, slot_bits, capacity, fewest) in [(64, 32, 1 << 20, 1 << 36), (41, 32, 1000, 1 << 13), (25, 16, 1000, 1 << 14)]
    {
        let error = table(device, key_bits, slot_bits, capacity).map(drop).unwrap_err();
        for number in [key_bits.into(), slot_bits.into(), capacity, fewest] {
            assert!(error.to_string().contains(&number.to_string()), "{number} is not in: {error}");
        }
        let Error::KeysDoNotFit { needed, slots, .. } = error else { panic!("{error:?}") };
        assert_eq!((needed, slots), (fewest, capacity));
        if fewest < 1 << 20 {
            assert!(table(device, key_bits, slot_bits, fewest).is_ok());
            assert!(table(device, key_bits, slot_bits, fewest - 512 / u64::from(slot_bits)).is_err());
        }
    }
    for capacity in [0, 1 << 37, u64::MAX] {
        let error = table(device, 64, 64, capacity).map(drop).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { what: "slots of a table", given, .. } if given == capacity), "{error:?}");
    }
    // By default, slots have the smallest possible size.
    for (key_bits, capacity, slot_bits) in [(20, 1 << 12, 16), (37, 1 << 12, 32), (64, 1 << 12, 64), (45, 1 << 20, 32)] {
        let table = VectorTable::<Root>::builder(2).key_bits(key_bits).capacity(capacity).build(device).unwrap();
        assert_eq!(table.spec().key_and_slot_bits(), Some((key_bits, slot_bits)));
    }
}

fn keys_are_of_two_words(device: &Device) {
    for width in [0, 1, 3, 256] {
        let error = VectorTable::<Root>::new(device, width, 100).map(drop).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { given, least: 2, most: 2, .. } if given == width as u64), "{error:?}");
    }
    let pairs = TypedTable::<[u32; 2], Root>::new(device, 100).unwrap();
    assert_eq!(pairs.find_or_put_many(&[[1, 2], [2, 1], [1, 2]]).unwrap().tally.new, 2);
}
