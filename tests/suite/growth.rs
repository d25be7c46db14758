//! Growth: every vector is moved, none is lost, and none is New again.
//!
//! Keeps these promises of `src/docs/memory_and_growth.md`:
//!
//! - Growth moves every vector, and none is New again (also `overlapping_calls.rs`).
//! - A table that grows by itself grows before it is 0.85 full, and not for ever.
//! - A bucket table from 2^16 slots on grows in the order of its slots. If a vector finds no slot, the table stays as it was
//!   (also `src/backend/cpu/growth.rs`, and `bucket.rs` of the simulated GPU).
//! - Nodes grow alone if only nodes are missing.
//! - Roots that need more bits get more slots (also `compact_roots.rs`).
//! - References returned by a batch that made the table grow belong to the grown table.
//!
//! Keeps this promise of the documentation of `Table::reserve_total`:
//!
//! - `reserve_total` is idempotent.

use crate::common::checker::{Checker, OrFail};
use crate::common::set::everything;
use crate::common::vectors::{Pool, distinct, some_widths};
use crate::common::{
    fast,
    kinds::{Kind, roomy},
    scaled, sized, tests_of_all_kinds,
};
use std::collections::HashSet;
use warpset::{CompactTree, CompactTreeTable, Device, Error, Outcome, Request, VectorTable};

tests_of_all_kinds![
    grow_moves_every_vector,
    grow_by_one_slot,
    large_tables_grow,
    tables_with_slices_grow,
    shared_nodes_grow,
    tables_grow_from_nothing_in_one_batch,
    tables_grow_over_many_batches,
    duplicates_are_counted_once_over_a_growth,
    references_after_a_growth_are_of_the_grown_table,
    tables_grow_before_they_are_85_percent_full,
    nodes_grow_alone,
    a_table_that_does_not_grow_keeps_its_slots,
    vectors_without_a_slot_do_not_make_a_table_grow_for_ever,
];

fn grow_moves_every_vector<S: Kind>(device: &Device) {
    for width in some_widths() {
        let table = roomy::<S>(width, 200).build(device).unwrap();
        let pool = Pool::distinct(width, 150);
        let mut checker = Checker::new(&table, &pool);
        let _ = checker.offer(&pool.all()[..100]).or_fail(width);
        for capacity in [500, 501 + table.slots(), 5000] {
            checker.grow(capacity).or_fail(width);
            assert!(table.slots() >= capacity, "{} slots, not {capacity}", table.slots());
            checker.check().or_fail(width);
            let _ = checker.offer(&pool.all()).or_fail(width);
        }
        checker.check().or_fail(width);
    }
}

/// Tables of a few megabytes on a CPU, whose parts are filled by several threads. (The other tables here have one part.)
fn large_tables_grow<S: Kind>(device: &Device) {
    let count = if device.is_gpu() { 2000 } else { 100_000 };
    for width in [2, 3] {
        let words = distinct(width, 0, 2 * count);
        let (stored, others) = words.split_at(count * width);
        let table = roomy::<S>(width, count as u64 * 5 / 4).build(device).unwrap();
        let _ = table.find_or_put_many(stored).unwrap().complete(&table).unwrap();
        for capacity in [table.slots() * 17 / 16, table.slots() * 5 / 2] {
            table.reserve_total(capacity).unwrap();
            let again = table.find_or_put_many(stored).unwrap().tally;
            assert_eq!((again.new, again.seen), (0, count as u64), "width {width}: {again:?}");
            assert_eq!(table.len().unwrap(), count as u64, "width {width}");
            assert!(table.contains_many(others).unwrap().iter().all(|is_there| !is_there), "width {width}");
        }
        let more = table.find_or_put_many(others).unwrap().tally;
        assert_eq!((more.new, more.full), (count as u64, 0), "width {width}");
    }
}

/// Tables that have slices before and after they grow, by factors that are integers and others. If hashes are equal, vectors are
/// in other slices than their first one, and all are put again.
fn tables_with_slices_grow<S: Kind>(device: &Device) {
    let few = device.is_gpu() || fast();
    for width in sized(vec![1, 2, 7, 16, 33], vec![2, 16], vec![2]) {
        for (hash_mask, count) in [(u64::MAX, if few { 3000 } else { 65_000 }), (0xF << 60, 900), (0, 500)] {
            let words = distinct(width, 0, 2 * count);
            let (stored, others) = words.split_at(count * width);
            let table = roomy::<S>(width, 70_000).hash_mask(hash_mask).build(device).unwrap();
            let _ = table.find_or_put_many(stored).unwrap().complete(&table).unwrap();
            for capacity in [table.slots() * 2, table.slots() * 5 / 2] {
                table.reserve_total(capacity).unwrap();
                assert_eq!(table.len().unwrap(), count as u64, "width {width}");
                let again = table.find_or_put_many(stored).unwrap().tally;
                assert_eq!((again.new, again.seen), (0, count as u64), "width {width}, mask {hash_mask:x}: {again:?}");
                assert!(table.contains_many(others).unwrap().iter().all(|is_there| !is_there), "width {width}");
                assert_eq!(table.iter().count(), count, "width {width}: every other slot is empty");
            }
        }
    }
}

/// Trees of 8 words that share parts, whose nodes are moved by several threads: most nodes belong to many vectors.
fn shared_nodes_grow<S: Kind>(device: &Device) {
    let count = if device.is_gpu() { 2000 } else { 100_000 };
    let of = |number: u32| [number % 97, number % 89, 1, 2, number / 97, number % 13, number % 97, number];
    let words: Vec<u32> = (0..count).flat_map(of).collect();
    let table = roomy::<S>(8, u64::from(count) * 5 / 4).build(device).unwrap();
    let _ = table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
    for factor in [2, 3] {
        let nodes = table.nodes().unwrap();
        table.reserve_nodes(factor * table.node_slots()).unwrap();
        let again = table.find_or_put_many(&words).unwrap().tally;
        assert_eq!((again.new, again.seen), (0, u64::from(count)), "{again:?}");
        assert!(table.len().unwrap() == u64::from(count) && table.nodes().unwrap().abs_diff(nodes) <= nodes / 50 + 1);
    }
}

fn grow_by_one_slot<S: Kind>(device: &Device) {
    for width in some_widths() {
        let table = roomy::<S>(width, 1).seed(2).build(device).unwrap();
        let pool = Pool::distinct(width, S::least_full(table.slots()) as usize);
        let mut checker = Checker::new(&table, &pool);
        let _ = checker.offer(&pool.all()).or_fail(width);
        for _ in 0..5 {
            let slots = table.slots();
            checker.grow(slots + 1).or_fail(width);
            assert!(table.slots() > slots);
            checker.check().or_fail(width);
        }
    }
}

fn nodes_grow_alone<S: Kind>(device: &Device) {
    for width in some_widths() {
        let table = roomy::<S>(width, 200).build(device).unwrap();
        let words = distinct(width, 0, 150);
        let _ = table.find_or_put_many(&words[..100 * width]).unwrap().complete(&table).unwrap();
        let (slots, nodes, is_compact) = (table.slots(), table.node_slots(), table.spec().key_and_slot_bits().is_some());
        assert_eq!(nodes, table.stats().unwrap().node_slots, "width {width}");
        table.reserve_nodes(nodes).unwrap();
        assert_eq!((table.slots(), table.node_slots()), (slots, nodes), "width {width}: it has them");
        for wanted in [nodes + 1, 3 * nodes + 7, 40 * nodes] {
            table.reserve_nodes(wanted).unwrap();
            let now = table.node_slots();
            assert!(if nodes == 0 { now == 0 } else { now >= wanted }, "width {width}: {now} nodes, not {wanted}");
            // Compact roots of more nodes have more bits, which may take more slots.
            assert!(table.slots() == slots || (is_compact && nodes > 0), "width {width}: {} slots", table.slots());
            assert_eq!(table.len().unwrap(), 100, "width {width}");
            assert!(table.contains_many(&words[..100 * width]).unwrap().iter().all(|is_there| *is_there), "width {width}");
        }
        let _ = table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
        assert_eq!(table.len().unwrap(), 150, "width {width}");
        if nodes > 0 {
            let too_many = table.reserve_nodes(u64::MAX);
            assert!(matches!(too_many, Err(Error::OutOfRange { given: u64::MAX, .. })), "width {width}: {too_many:?}");
        }
    }
}

fn growing<S: Kind>(device: &Device, width: usize) -> VectorTable<S> {
    VectorTable::<S>::builder(width).capacity(1).grows(true).build(device).unwrap()
}

fn tables_grow_from_nothing_in_one_batch<S: Kind>(device: &Device) {
    for width in some_widths() {
        let (table, pool) = (growing::<S>(device, width), Pool::distinct(width, sized(5_000, 1500, 300)));
        let mut checker = Checker::new(&table, &pool);
        let _ = checker.offer(&pool.shuffled(2, 1)).or_fail(width);
        assert!(table.slots() >= pool.len() as u64);
        checker.check().or_fail(width);
    }
}

fn tables_grow_over_many_batches<S: Kind>(device: &Device) {
    for width in some_widths() {
        let (table, pool) = (growing::<S>(device, width), Pool::distinct(width, scaled(900, 300)));
        let mut checker = Checker::new(&table, &pool);
        for part in pool.shuffled(3, 1).chunks(scaled(97, 200)) {
            let _ = checker.offer(part).or_fail(width);
        }
        checker.check().or_fail(width);
        checker.clear().or_fail(width);
        let _ = checker.offer(&pool.all()).or_fail(width);
        checker.check().or_fail(width);
    }
}

/// Parts of the batch see the table before and after it grew.
fn duplicates_are_counted_once_over_a_growth<S: Kind>(device: &Device) {
    for width in [1, 3, 8] {
        let table = growing::<S>(device, width);
        let (count, copies) = (scaled(2000, 200), 8);
        let vectors = distinct(width, 0, count).repeat(copies);
        let batch = table.find_or_put_many(&vectors).unwrap();
        assert_eq!((batch.tally.new, batch.tally.full), (count as u64, 0), "width {width}");
        assert_eq!(batch.tally.seen, (count * (copies - 1)) as u64, "width {width}");
        let fresh: HashSet<usize> = batch.positions(Outcome::New).map(|at| at % count).collect();
        assert_eq!(fresh.len(), count, "width {width}: a vector is New twice, another never");
    }
}

/// For every subset of the results.
fn references_after_a_growth_are_of_the_grown_table<S: Kind>(device: &Device) {
    for width in [1, 3, 8] {
        let vectors = distinct(width, 0, scaled(3000, 300));
        for (references, new_references) in [(true, false), (false, true), (true, true)] {
            let (table, request) =
                (growing::<S>(device, width), Request::new().references(references).new_references(new_references));
            let batch = table.find_or_put_many_with(&vectors, request).unwrap();
            if references {
                let references: Vec<_> =
                    batch.references.iter().map(|reference| reference.expect("nothing is rejected")).collect();
                assert_eq!(table.get_many(&references).unwrap(), vectors);
            }
            if new_references {
                assert_eq!(batch.new_references.len() as u64, batch.tally.new);
                let got = table.get_many(&batch.new_references).unwrap();
                let (got, given): (HashSet<_>, HashSet<_>) = (got.chunks(width).collect(), vectors.chunks(width).collect());
                assert_eq!(got, given);
            }
        }
    }
}

fn tables_grow_before_they_are_85_percent_full<S: Kind>(device: &Device) {
    let table = growing::<S>(device, 2);
    let mut slots = table.slots();
    for first in 0..scaled(100, 20) {
        let _ = table.find_or_put_many_with(&distinct(2, first * 50, 50), everything()).unwrap();
        let stats = table.stats().unwrap();
        assert!(stats.fill() <= 0.85, "{} of {} slots", stats.stored, stats.slots);
        assert!(stats.slots >= slots, "a table does not shrink");
        slots = stats.slots;
    }
    assert!(table.stats().unwrap().fill() > 0.2, "it grows no more than it needs to");
}

fn a_table_that_does_not_grow_keeps_its_slots<S: Kind>(device: &Device) {
    let table = roomy::<S>(2, 100).build(device).unwrap();
    let slots = table.slots();
    let tally = table.find_or_put_many(&distinct(2, 0, 1000)).unwrap().tally;
    assert_eq!((table.slots(), tally.new + tally.full), (slots, 1000));
    assert!(tally.full > 0);
}

/// More vectors in one probe sequence than a search looks at: a larger table does not help.
fn vectors_without_a_slot_do_not_make_a_table_grow_for_ever<S: Kind>(device: &Device) {
    if fast() || !S::SEARCHES_ALL {
        return; // millions of probes, and no smaller case shows it
    }
    // Buckets of one word have 16 slots on a CPU, 8 on a GPU; of 7 words 2; of roots 8 or 4: a search looks at 1,024 buckets.
    for (width, count) in [(1, 17_000), (7, 9_000)] {
        let table = VectorTable::<S>::builder(width).capacity(1000).grows(true).hash_mask(0).build(device).unwrap();
        let batch = table.find_or_put_many(&distinct(width, 0, count)).unwrap();
        assert!(batch.tally.full > 0 && batch.tally.full_nodes == 0, "width {width}: {:?}", batch.tally);
        assert_eq!(batch.tally.new + batch.tally.full, count as u64, "width {width}");
        assert_eq!(table.len().unwrap(), batch.tally.new, "width {width}");
        assert!(table.slots() <= 2 * 64 * count as u64, "width {width}: {} slots", table.slots());
    }
}

/// Tests of GPUs only. (src/backend/cpu/in_place.rs has those of growth in place on CPU threads.)
#[cfg(feature = "cuda")]
pub mod on_gpu {
    use super::*;
    use crate::common::{simulated, tests};

    tests![bucket_tables_grow_in_place];

    /// Tables of 2 MiB and more, whose memory is enlarged where it is. If hashes are equal, they take a second table.
    fn bucket_tables_grow_in_place(device: &Device) {
        let is_slow = simulated();
        for (width, slots) in [(2, 270_000), (9, 70_000)] {
            for (hash_mask, count) in [(u64::MAX, if is_slow { 20_000 } else { 60_000 }), (1 << 63, 1500)] {
                let words = distinct(width, 0, 2 * count);
                let (stored, others) = words.split_at(count * width);
                let builder = VectorTable::<warpset::Bucket>::builder(width).capacity(slots).hash_mask(hash_mask);
                let table = builder.build(device).unwrap();
                let _ = table.find_or_put_many(stored).unwrap().complete(&table).unwrap();
                for capacity in [table.slots() * 103 / 100, table.slots() * 2, table.slots() * 5] {
                    table.reserve_total(capacity).unwrap();
                    assert!(table.slots() >= capacity && table.len().unwrap() == count as u64, "{width} words");
                    let again = table.find_or_put_many(stored).unwrap().tally;
                    assert_eq!((again.new, again.seen), (0, count as u64), "{width} words, mask {hash_mask:x}: {again:?}");
                    assert!(table.contains_many(others).unwrap().iter().all(|is_there| !is_there), "{width} words");
                    assert_eq!(table.iter().count(), count, "{width} words: every other slot is empty");
                }
            }
        }
    }
}

/// Tests that do not apply to all kinds of tables.
pub mod once {
    use super::*;
    use crate::common::tests;

    tests![roots_that_need_more_bits_get_more_slots, reserving_is_idempotent];

    /// Slots of 16 bits hold only the roots of few nodes: as nodes grow, the position of a slot must carry more bits.
    fn roots_that_need_more_bits_get_more_slots(device: &Device) {
        let builder = CompactTreeTable::builder(8).capacity(512).nodes(900).slot_bits(16).grows(true);
        let table: VectorTable<CompactTree> = builder.build(device).unwrap();
        let (count, vectors) = (20_000, distinct(8, 0, 20_000));
        let tally = table.find_or_put_many(&vectors[..600 * 8]).unwrap().complete(&table).unwrap();
        assert_eq!(tally.new, 600);
        for part in vectors.chunks(8 * 3000) {
            table.find_or_put_many(part).unwrap().complete(&table).unwrap();
        }
        assert_eq!(table.len().unwrap(), count);
        assert_eq!(table.spec().key_and_slot_bits().unwrap().1, 16);
        assert!(table.contains_many(&vectors).unwrap().iter().all(|stored| *stored));
    }

    /// Several threads that want the same room make the table grow once.
    fn reserving_is_idempotent(device: &Device) {
        let table = VectorTable::<warpset::Bucket>::new(device, 3, 100).unwrap();
        let words = distinct(3, 0, 100);
        let before = table.find_or_put_many_with(&words, Request::new().references(true)).unwrap();
        let references: Vec<_> = before.references.iter().flatten().copied().collect();
        table.reserve_total(table.slots()).unwrap();
        assert_eq!(table.get_many(&references).unwrap(), words, "nothing has moved");
        let start = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    table.reserve_total(10_000).unwrap();
                });
            }
        });
        let slots = table.slots();
        assert!((10_000..20_000).contains(&slots), "{slots} slots");
        assert!(table.contains_many(&words).unwrap().iter().all(|stored| *stored));
    }
}
