//! Offers vectors again and again, from many threads at once: exactly one offer of each is New.
//!
//! Millions of offers on a CPU. On a GPU 2^28, from host memory here and from device memory in device_memory.rs.

use crate::common::vectors::{Pool, Random, distinct};
use crate::common::{
    kinds::{Kind, roomy},
    scaled, sized, tests_of_all_kinds,
};
use std::collections::HashSet;
use std::thread;
use warpset::{Device, Request};

tests_of_all_kinds![equal_vectors, distinct_vectors_each_offered_256_times];

/// Number of offers in total.
fn offers<S: Kind>(device: &Device) -> usize {
    if device.is_gpu() { scaled(1 << 28, 1 << 16) } else { sized(1 << 22, 1 << 21, 1 << 12) }
}

fn equal_vectors<S: Kind>(device: &Device) {
    for width in scaled(vec![1, 7], vec![7]) {
        let table = roomy::<S>(width, 1000).build(device).unwrap();
        let vector = distinct(width, 1, 1);
        let buffer = vector.repeat((1 << 20).min(offers::<S>(device)));
        let batches = offers::<S>(device) * width / buffer.len();
        let mut new = Vec::new();
        for _ in 0..batches {
            let batch = table.find_or_put_many_with(&buffer, Request::new().new_references(true)).unwrap();
            assert_eq!(batch.tally.new + batch.tally.seen, (buffer.len() / width) as u64, "width {width}");
            new.extend(batch.new_references);
        }
        assert_eq!(new.len(), 1, "width {width}: {} of {} equal vectors are New", new.len(), batches * buffer.len() / width);
        assert!(table.get_many(&new).unwrap() == vector, "width {width}");
        assert_eq!((table.len().unwrap(), table.stats().unwrap().stored), (1, 1), "width {width}");
        assert_eq!(table.iter().count(), 1, "width {width}");
    }
}

/// Several host threads offer, each in an order of its own.
fn distinct_vectors_each_offered_256_times<S: Kind>(device: &Device) {
    const COPIES: usize = 256;
    const CALLERS: usize = 4;
    let width = 5; // one chunk of 16 bytes or two of 8, and a tail
    let count = offers::<S>(device) / COPIES;
    let vectors = distinct(width, 0, count);
    let table = roomy::<S>(width, 2 * count as u64).build(device).unwrap();
    let offer = |caller: usize| {
        // Four copies in one batch, so that equal vectors also meet within it; each batch starts at a different part.
        let mut order: Vec<usize> = (0..4 * count).map(|at| at % count).collect();
        Random::new(caller as u64).shuffle(&mut order);
        let mut buffer: Vec<u32> = Vec::with_capacity(order.len() * width);
        order.iter().for_each(|&at| buffer.extend_from_slice(&vectors[at * width..][..width]));
        let mut new = Vec::new();
        for _ in 0..COPIES / (4 * CALLERS) {
            let batch = table.find_or_put_many_with(&buffer, Request::new().new_references(true)).unwrap();
            assert_eq!(batch.tally.full, 0);
            new.extend(batch.new_references);
            let fifth = buffer.len() / width / 5;
            buffer.rotate_left(fifth * width);
        }
        new
    };
    let new = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|caller| scope.spawn(move || offer(caller))).collect();
        callers.into_iter().flat_map(|caller| caller.join().expect("a caller panicked")).collect::<Vec<_>>()
    });
    assert_eq!(new.len(), count, "{} times New for {count} vectors", new.len());
    let got = table.get_many(&new).unwrap();
    let (got, offered): (HashSet<&[u32]>, HashSet<&[u32]>) = (got.chunks(width).collect(), vectors.chunks(width).collect());
    assert!(got == offered, "each of the vectors is New once");
    assert_eq!(table.len().unwrap(), count as u64);
    // The pool's own check is for small numbers of vectors; here the rows are counted and each is looked up.
    let rows: Vec<u32> = table.iter().flat_map(|row| row.unwrap().1).collect();
    assert_eq!(Pool::new(width, rows.chunks(width).map(<[u32]>::to_vec)).len(), count);
    assert_eq!(rows.len(), count * width);
}
