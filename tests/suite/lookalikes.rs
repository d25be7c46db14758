//! Vectors that are nearly equal: each chunk must be stored, compared and hashed, otherwise two vectors are confused.

use crate::common::checker::{Checker, OrFail};
use crate::common::vectors::{Family, Pool, Random, all_widths, mix, some_widths};
use crate::common::{
    kinds::{Kind, roomy},
    sized, slots_per_bucket, tests_of_all_kinds,
};
use warpset::Device;

tests_of_all_kinds![
    one_word_apart,
    one_bit_apart,
    zeros_and_ones,
    common_prefixes_and_suffixes,
    the_same_words_in_another_order,
    one_word_apart_in_one_probe_sequence,
    every_word_is_hashed_and_its_place_too,
];

/// Offers the pool twice to a table that uses these bits of the hash, and checks everything.
fn check<S: Kind>(device: &Device, pool: &Pool, hash_mask: u64) {
    let builder = roomy::<S>(pool.width(), 2 * pool.len() as u64).seed(1);
    let builder = if S::SEARCHES_ALL { builder.hash_mask(hash_mask) } else { builder };
    let table = builder.build(device).unwrap();
    let mut checker = Checker::new(&table, pool);
    let context = || format!("width {}, hash mask {hash_mask:#x}", pool.width());
    let _ = checker.offer(&pool.shuffled(2, 1)).or_fail(context());
    checker.check().or_fail(context());
    let _ = checker.offer(&pool.all()).or_fail(context());
    checker.check().or_fail(context());
}

/// A base vector, and for each of its words a vector that differs in that word only.
fn words_apart(width: usize, base: impl Fn(usize) -> u32, by: u32) -> Pool {
    let base: Vec<u32> = (0..width).map(base).collect();
    let changed = |at: usize| {
        let mut vector = base.clone();
        vector[at] ^= by;
        vector
    };
    Pool::new(width, std::iter::once(base.clone()).chain((0..width).map(changed)))
}

fn one_word_apart<S: Kind>(device: &Device) {
    for width in all_widths() {
        check::<S>(device, &words_apart(width, |_| 0, 1), u64::MAX);
        check::<S>(device, &words_apart(width, |_| u32::MAX, u32::MAX), u64::MAX);
        check::<S>(device, &words_apart(width, |word| word as u32 * 0x0101_0101, 1 << 31), u64::MAX);
    }
}

/// Every search passes, or contends for, every stored vector: slots differ in one word only.
fn one_word_apart_in_one_probe_sequence<S: Kind>(device: &Device) {
    for width in all_widths() {
        check::<S>(device, &words_apart(width, |_| 0, 1), 0);
        check::<S>(device, &words_apart(width, |word| !(word as u32), 1 << 31), 0);
    }
}

fn one_bit_apart<S: Kind>(device: &Device) {
    for width in some_widths() {
        // The first bits of the family belong to the vector of zeros, the next to the vector of ones.
        let bits = (64 * width + 64).min(sized(1500, 400, 200));
        check::<S>(device, &Pool::of(Family::OneBit, width, bits), u64::MAX);
        check::<S>(device, &Pool::of(Family::OneBit, width, bits.min(300)), 0);
    }
}

/// Patterns that other tables reserve.
fn zeros_and_ones<S: Kind>(device: &Device) {
    for width in all_widths() {
        let halves = |first: u32, second: u32| (0..width).map(|at| if at < width / 2 { first } else { second }).collect();
        let words = [0, u32::MAX, u32::MAX - 1, 1 << 31];
        let vectors = words.iter().flat_map(|first| words.map(|second| halves(*first, second)));
        check::<S>(device, &Pool::new(width, vectors), u64::MAX);
    }
}

fn common_prefixes_and_suffixes<S: Kind>(device: &Device) {
    for width in some_widths() {
        for family in [Family::CommonPrefix, Family::CommonSuffix, Family::LastWord, Family::FirstWord] {
            check::<S>(device, &Pool::of(family, width, sized(500, 120, 100)), u64::MAX);
            check::<S>(device, &Pool::of(family, width, sized(150, 80, 60)), 0);
        }
    }
}

fn the_same_words_in_another_order<S: Kind>(device: &Device) {
    for width in some_widths() {
        let pool = Pool::of(Family::Rotated, width, sized(400, 250, 100));
        check::<S>(device, &pool, u64::MAX);
        // Neighbouring words swapped: neither a hash that adds up pairs nor a comparison may confuse the vectors.
        let swapped = |at: usize| {
            let mut vector: Vec<u32> = (0..width as u32).collect();
            vector.swap(at, (at + 1) % width);
            vector
        };
        check::<S>(device, &Pool::new(width, (0..width).map(swapped)), u64::MAX);
    }
}

/// A hash that leaves out a word, or the order of the words, would still give right answers: it would only put all vectors into
/// one probe sequence.
fn every_word_is_hashed_and_its_place_too<S: Kind>(device: &Device) {
    const VECTORS: usize = 256;
    let check = |pool: &Pool, what: String| {
        let table = roomy::<S>(pool.width(), 2 * pool.len() as u64).seed(1).build(device).unwrap();
        let _ = table.find_or_put_many(pool.words()).unwrap();
        let slots_looked_at = table.stats().unwrap().longest_probe * slots_per_bucket::<S>(device, pool.width());
        // The table is half full; with a single probe sequence each search would look at all stored slots.
        assert!(slots_looked_at < (pool.len() as u64 / 2).max(48), "width {}, {what}: {slots_looked_at} slots", pool.width());
    };
    for width in sized(some_widths(), vec![1, 2, 3, 4, 7, 16, 33], some_widths()) {
        for word in 0..width {
            let with_word = |value: u32| {
                let mut vector = vec![5; width];
                vector[word] = mix(value.into()) as u32;
                vector
            };
            check(&Pool::new(width, (0..VECTORS as u32).map(with_word)), format!("word {word}"));
        }
        // The hash takes words in pairs, so words are permuted singly and in pairs.
        for words in [1, 2].into_iter().filter(|words| width / words >= 8) {
            let pool = Pool::new(width, (0..VECTORS as u64).map(|number| permuted(width, words, number)));
            check(&pool, format!("permutations of {words} words"));
        }
    }
}

/// The numbers below `width`, permuted in groups of `words`.
fn permuted(width: usize, words: usize, number: u64) -> Vec<u32> {
    let vector: Vec<u32> = (0..width as u32).collect();
    let mut groups: Vec<&[u32]> = vector.chunks_exact(words).collect();
    Random::new(number).shuffle(&mut groups);
    [groups.concat(), vector.chunks_exact(words).remainder().to_vec()].concat()
}
