//! EMPTY patterns that occur in the data. Every bit pattern is a legal vector, even one that looks like an undecided slot in one
//! chunk, in several, or in all.
//!
//! The EMPTY pattern of a slot is the table's, with the low bits of the first word XORed with the slot's class
//! (cuda/warpset/bucket/table.cuh). The tests choose the table's pattern such that a chunk of a vector is the pattern of a class.
//!
//! Keeps this promise of `README.md`:
//!
//! - Every bit pattern is legal (also `nodes.rs`).

use crate::common::checker::{Checker, OrFail};
use crate::common::vectors::{Family, Pool, Random};
use crate::common::{fast, scaled, slots_per_bucket, tests};
use warpset::{BucketTable, Device};

tests![
    barred_vectors_find_room_in_a_large_table,
    chunks_of_the_data_are_empty_patterns,
    whole_vectors_of_patterns,
    zeros_and_ones_as_empty,
    patterns_in_one_probe_sequence,
    patterns_in_the_last_free_slots,
    every_vector_of_a_tail_is_legal,
];

/// Positions of a vector's chunks as (first word, words): an independent statement of the rule in core/layout.cuh.
fn chunks(device: &Device, width: usize) -> Vec<(usize, usize)> {
    let chunk_bytes = BucketTable::new(device, width, 1).expect("a small table").spec().chunk_bytes();
    let main = match width {
        1 => 1,
        2 | 3 => 2,
        _ => chunk_bytes / 4,
    };
    let mut chunks: Vec<_> = (0..width / main).map(|chunk| (chunk * main, main)).collect();
    for words in [2, 1] {
        let first = chunks.last().map_or(0, |(first, words)| first + words);
        if width - first >= words && words < main {
            chunks.push((first, words));
        }
    }
    assert_eq!(chunks.iter().map(|(_, words)| words).sum::<usize>(), width);
    chunks
}

/// Number of classes: a power of two greater than the number of chunks.
fn classes(chunks: &[(usize, usize)]) -> u32 {
    (chunks.len() as u32 + 1).next_power_of_two()
}

/// Capacity with twice the room for `vectors` vectors that are all barred from the same classes, one class per chunk. A search
/// covers the table completely, so that the probe sequence of a vector does not matter.
fn legal_capacity(device: &Device, width: usize, vectors: usize) -> u64 {
    let chunks = chunks(device, width);
    let classes = u64::from(classes(&chunks));
    let open = classes - chunks.len() as u64;
    let capacity = classes * (2 * vectors as u64).div_ceil(open) + 2 * classes;
    assert!(capacity <= largest_searched_completely(device, width), "fewer vectors of width {width}");
    capacity
}

/// Slots of the largest table that a search covers completely (spec.rs: up to 1,024 buckets).
fn largest_searched_completely(device: &Device, width: usize) -> u64 {
    1021 * slots_per_bucket::<warpset::Bucket>(device, width)
}

/// Table pattern whose class `class` equals chunk `at` of `vector`.
fn pattern_like(vector: &[u32], (first, words): (usize, usize), class: u32) -> [u32; 4] {
    let mut pattern = [0x5EED_0001, 0x5EED_0002, 0x5EED_0003, 0x5EED_0004];
    pattern[..words].copy_from_slice(&vector[first..first + words]);
    pattern[0] ^= class;
    pattern
}

/// Writes the pattern of `class` into these chunks of the vector.
fn plant(vector: &mut [u32], chunks: &[(usize, usize)], pattern: [u32; 4], class: u32) {
    for &(first, words) in chunks {
        vector[first..first + words].copy_from_slice(&pattern[..words]);
        vector[first] ^= class;
    }
}

/// Vectors of the data; some with the pattern of some class in one chunk; some with patterns of several classes in all chunks;
/// and some that are the pattern of one class throughout.
fn suspicious_vectors(data: &Pool, chunks: &[(usize, usize)], pattern: [u32; 4]) -> Pool {
    let classes = classes(chunks);
    let mut vectors: Vec<Vec<u32>> = (0..data.len()).map(|at| data.vector(at).to_vec()).collect();
    for (number, chunk) in chunks.iter().enumerate().step_by(chunks.len().div_ceil(12)) {
        let mut vector = data.vector(number % data.len()).to_vec();
        plant(&mut vector, &[*chunk], pattern, (number as u32 * 5 + 1) % classes);
        vectors.push(vector);
    }
    for turn in (0..classes).step_by((classes as usize).div_ceil(10)) {
        let mut vector = data.vector(0).to_vec();
        for (number, chunk) in chunks.iter().enumerate() {
            plant(&mut vector, &[*chunk], pattern, (number as u32 * (turn | 1) + turn) % classes);
        }
        vectors.push(vector.clone());
        plant(&mut vector, chunks, pattern, turn);
        vectors.push(vector);
    }
    Pool::new(data.width(), vectors)
}

/// Runs a history on a table with this pattern: offers, a growth, a clearing.
fn check(device: &Device, pool: &Pool, pattern: [u32; 4], hash_mask: u64) {
    let width = pool.width();
    let context = || format!("width {width}, EMPTY {pattern:x?}, hash mask {hash_mask:#x}");
    let builder = BucketTable::builder(width).capacity(legal_capacity(device, width, pool.len())).seed(5);
    let table = builder.empty_pattern(pattern).hash_mask(hash_mask).build(device).unwrap();
    let mut checker = Checker::new(&table, pool);
    let _ = checker.offer(&pool.shuffled(2, 1)).or_fail(context());
    checker.check().or_fail(context());
    let _ = checker.offer(&pool.all()).or_fail(context());
    let larger = (table.slots() * 3 / 2).min(largest_searched_completely(device, width));
    if larger > table.slots() {
        checker.grow(larger).or_fail(context());
    }
    let _ = checker.offer(&pool.all()).or_fail(context());
    checker.check().or_fail(context());
    checker.clear().or_fail(context());
    let _ = checker.offer(&pool.shuffled(1, 2)).or_fail(context());
    checker.check().or_fail(context());
}

/// Widths 1 to 20, and some with many classes; fewer for a sanitizer.
fn widths() -> Vec<usize> {
    if fast() { vec![1, 3, 4, 7] } else { (1..=20).chain([33, 64, 101, 256]).collect() }
}

/// Tests each chunk position with each class, if these are few.
fn chunks_of_the_data_are_empty_patterns(device: &Device) {
    for width in widths() {
        let chunks = chunks(device, width);
        let data = Pool::distinct(width, 10);
        let every = |count: usize| count.div_ceil(scaled(6, 2));
        for at in (0..chunks.len()).step_by(if width <= 20 && !fast() { 1 } else { every(chunks.len()) }) {
            let classes = classes(&chunks);
            for class in (0..classes).step_by(if width <= 20 && !fast() { 1 } else { every(classes as usize) }) {
                let pattern = pattern_like(data.vector(at % data.len()), chunks[at], class);
                let pool = suspicious_vectors(&data, &chunks, pattern);
                check(device, &pool, pattern, u64::MAX);
            }
        }
    }
}

fn whole_vectors_of_patterns(device: &Device) {
    for width in widths() {
        let chunks = chunks(device, width);
        let pattern = [0xABCD_EF01, 0x2345_6789, 0x0F1E_2D3C, 0x4B5A_6978];
        // Word by word from the pattern of one class: equal to it in each chunk, whatever the machine's chunk size is.
        let of_class = |class: u32| {
            let mut vector = vec![0; width];
            plant(&mut vector, &chunks, pattern, class);
            vector
        };
        let pool = Pool::new(width, (0..classes(&chunks)).take(64).map(of_class));
        check(device, &pool, pattern, u64::MAX);
        check(device, &pool, pattern, 0);
    }
}

fn zeros_and_ones_as_empty(device: &Device) {
    for width in widths() {
        for pattern in [[0; 4], [u32::MAX; 4]] {
            for family in [Family::OneBit, Family::FewWords, Family::FirstWord, Family::LastWord] {
                let pool = Pool::of(family, width, 50);
                check(device, &pool, pattern, u64::MAX);
            }
        }
    }
}

fn patterns_in_one_probe_sequence(device: &Device) {
    for width in widths() {
        let chunks = chunks(device, width);
        let data = Pool::distinct(width, 10);
        let last = *chunks.last().expect("a vector has a chunk");
        let pattern = pattern_like(data.vector(3), last, classes(&chunks) - 1);
        let pool = suspicious_vectors(&data, &chunks, pattern);
        check(device, &pool, pattern, 0);
    }
}

/// A full table with barred vectors among others. Which vectors are rejected depends on the order of arrival. But a stored vector
/// must stay stored, and a rejected one must stay rejected.
fn patterns_in_the_last_free_slots(device: &Device) {
    for width in widths() {
        let chunks = chunks(device, width);
        let data = Pool::distinct(width, 60);
        let pattern = pattern_like(data.vector(0), chunks[0], 0);
        let pool = suspicious_vectors(&data, &chunks, pattern);
        let table = BucketTable::builder(width).capacity(40).seed(7).empty_pattern(pattern).build(device).unwrap();
        let mut checker = Checker::of_small(&table, &pool);
        for round in 0..3 {
            let _ = checker.offer(&pool.shuffled(2, round)).or_fail(format!("width {width}, round {round}"));
            checker.check().or_fail(format!("width {width}, round {round}"));
        }
    }
}

/// A 4-byte tail equals the pattern of each class for one in 2^32 vectors: tests all of the neighbouring words.
fn every_vector_of_a_tail_is_legal(device: &Device) {
    for width in [1, 3, 5, 7, 9, 13, 17] {
        let pattern = [1000, 0, 0, 0];
        let with_tail = |tail: u32| {
            let mut vector = vec![7; width];
            vector[width - 1] = tail;
            vector
        };
        let pool = Pool::new(width, (970..1030).map(with_tail));
        check(device, &pool, pattern, u64::MAX);
        check(device, &pool, pattern, 0);
    }
}

/// Vectors that only one class of slots may hold, in a table larger than a search looks at: a probe sequence, which is an
/// arithmetic progression, must not be confined to the other classes.
fn barred_vectors_find_room_in_a_large_table(device: &Device) {
    const CHUNKS: usize = 15; // one fewer than there are classes
    let width = CHUNKS * BucketTable::new(device, 17, 1).unwrap().spec().chunk_bytes() / 4;
    let chunks = chunks(device, width);
    assert_eq!((chunks.len(), classes(&chunks)), (CHUNKS, 16));
    let pattern = [0xABCD_EF01, 0x2345_6789, 0x0F1E_2D3C, 0x4B5A_6978];
    let mut random = Random::new(1);
    let barred_from_15_classes = (0..scaled(3000, 500)).map(|_| {
        let mut order: Vec<u32> = (0..16).collect();
        random.shuffle(&mut order);
        let mut vector = vec![0; width];
        chunks.iter().zip(order).for_each(|(chunk, class)| plant(&mut vector, &[*chunk], pattern, class));
        vector
    });
    let pool = Pool::new(width, barred_from_15_classes);
    let table =
        BucketTable::builder(width).capacity(30 * pool.len() as u64).seed(1).empty_pattern(pattern).build(device).unwrap();
    let mut checker = Checker::new(&table, &pool);
    let _ = checker.offer(&pool.all()).or_fail(format!("width {width}, {} slots", table.slots()));
    checker.check().or_fail(format!("width {width}"));
}
