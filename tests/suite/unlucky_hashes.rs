//! Hashes that agree: probe sequences are long, and a table can distinguish vectors only by comparing them.

use crate::common::checker::{Checker, OrFail};
use crate::common::vectors::{Pool, some_widths};
use crate::common::{
    kinds::{Kind, roomy},
    scaled, slots_per_bucket, tests_of_all_kinds,
};
use warpset::{Device, VectorTable};

tests_of_all_kinds![of Bucket, Tree:
    masks_that_keep_few_bits,
    one_probe_sequence_is_filled_without_gaps,
    tables_that_grow_with_one_probe_sequence
];

fn masks_that_keep_few_bits<S: Kind>(device: &Device) {
    let high = |bits: u32| u64::MAX << (64 - bits);
    // With low bits only, the first bucket is the same for all vectors, but the step is not.
    for mask in [0, high(1), high(2), high(8), 0xFF, u64::from(u32::MAX)] {
        for width in some_widths() {
            let pool = Pool::distinct(width, scaled(400, 60));
            let table = roomy::<S>(width, 700).seed(3).hash_mask(mask).build(device).unwrap();
            let mut checker = Checker::new(&table, &pool);
            let context = || format!("width {width}, mask {mask:#x}");
            let _ = checker.offer(&pool.shuffled(3, 1)).or_fail(context());
            checker.check().or_fail(context());
            checker.grow(table.slots() * 2).or_fail(context());
            let _ = checker.offer(&pool.shuffled(1, 2)).or_fail(context());
            checker.check().or_fail(context());
            checker.clear().or_fail(context());
        }
    }
}

/// A vector passes over a slot only if another vector stays there. So vectors that all probe the same slots fill them without a
/// gap, even if they race.
fn one_probe_sequence_is_filled_without_gaps<S: Kind>(device: &Device) {
    for width in some_widths() {
        let places = slots_per_bucket::<S>(device, width) as usize;
        let table = roomy::<S>(width, 1021).hash_mask(0).build(device).unwrap();
        let pool = Pool::distinct(width, 400);
        // Many copies, so that several threads take part in the batch.
        let _ = Checker::new(&table, &pool).offer(&pool.shuffled(scaled(45, 3), 1)).or_fail(format!("width {width}"));
        let stats = table.stats().unwrap();
        let buckets = 400_usize.div_ceil(places);
        assert_eq!(stats.longest_probe, buckets as u64, "width {width}");
        let bins = stats.probe_lengths.len();
        let expected = |bin: usize| if bin + 1 < bins { places } else { 400 };
        for (bin, count) in stats.probe_lengths.iter().enumerate() {
            let before = (bin * places).min(400);
            assert_eq!(*count as usize, expected(bin).min(400 - before), "width {width}, bucket {bin} of the sequence");
        }
    }
}

fn tables_that_grow_with_one_probe_sequence<S: Kind>(device: &Device) {
    for width in some_widths() {
        let pool = Pool::distinct(width, scaled(300, 60));
        let table = VectorTable::<S>::builder(width).capacity(1).grows(true).hash_mask(0).build(device).unwrap();
        let mut checker = Checker::new(&table, &pool);
        for part in pool.shuffled(3, 1).chunks(100) {
            let _ = checker.offer(part).or_fail(format!("width {width}"));
        }
        checker.check().or_fail(format!("width {width}"));
    }
}
