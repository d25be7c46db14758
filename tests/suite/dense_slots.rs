//! Slots without padding, compared with padded slots on devices that have them.

use crate::common::tests;
use crate::common::{scaled, vectors::distinct};
use std::collections::HashSet;
use warpset::{BucketTable, Device, Request};

tests![dense_tables_hold_what_others_hold, dense_tables_take_the_bytes_of_vectors];

/// Vectors that end at each word of a chunk, of one chunk and of several.
const WIDTHS: [usize; 11] = [3, 5, 6, 7, 8, 9, 10, 11, 19, 33, 34];

fn pair(width: usize, capacity: u64, device: &Device) -> [BucketTable; 2] {
    [true, false].map(|dense| BucketTable::builder(width).capacity(capacity).dense(dense).seed(9).build(device).unwrap())
}

fn dense_tables_hold_what_others_hold(device: &Device) {
    for width in WIDTHS {
        let count = scaled(if device.is_gpu() { 200_000 } else { 6000 }, 500);
        let once = distinct(width, 0, count);
        // Vectors end in zeros, the value of padding words; each vector is offered twice.
        let ends: Vec<u32> =
            (1..200).flat_map(|first| (0..width).map(move |word| if word == 0 { first << 20 } else { 0 })).collect();
        let vectors = [&once[..], &ends, &once].concat();
        // The fill is at most 0.9: tables of this size reject vectors before their last slot.
        let tables = pair(width, ((count + 300) / 9 * 10) as u64, device);
        for table in &tables {
            let batch = table.find_or_put_many_with(&vectors, Request::new().references(true)).unwrap();
            assert_eq!(batch.tally.new as usize, count + 199, "width {width}");
            assert_eq!((batch.tally.seen as usize, batch.tally.full), (count, 0), "width {width}");
            let references: Vec<_> = batch.references.iter().map(|of| of.expect("it fits")).collect();
            assert!(table.get_many(&references).unwrap() == vectors, "width {width}");
            assert!(table.contains_many(&vectors).unwrap().iter().all(|found| *found), "width {width}");
            assert!(
                table.contains_many(&distinct(width, count as u64, 100)).unwrap().iter().all(|found| !found),
                "width {width}"
            );
            table.reserve_total(2 * table.slots()).unwrap();
            let rows: HashSet<Vec<u32>> = table.iter().map(|row| row.unwrap().1).collect();
            assert!(rows == vectors.chunks(width).map(<[u32]>::to_vec).collect(), "width {width}");
        }
    }
}

fn dense_tables_take_the_bytes_of_vectors(device: &Device) {
    for width in WIDTHS {
        let [dense, other] = pair(width, 100_000, device);
        let [words, padded] = [&dense, &other].map(|table| table.spec().slot_words());
        assert_eq!(words, width);
        let expected = if other.spec().chunk_bytes() == 16 { width.next_multiple_of(4) } else { width };
        assert_eq!(padded, expected, "{}", other.spec());
        for (table, words) in [(&dense, words), (&other, padded)] {
            let waste = table.bytes() - table.slots() * 4 * words as u64;
            assert!(waste < 16 * 4 * words as u64, "width {width}: {waste} bytes more than slots");
        }
    }
}
