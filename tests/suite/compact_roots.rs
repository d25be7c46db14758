//! Properties of tree tables with compact roots that other tables do not have.

use crate::common::checker::{Checker, OrFail};
use crate::common::vectors::{Pool, mix};
use crate::common::{scaled, sized, tests};
use warpset::{CompactTreeTable, Device, Error, Request, TreeTable};

tests![
    roots_have_the_bits_of_their_references,
    slots_of_every_size,
    filled_to_95_percent_and_read_back,
    node_tables_that_grow_make_longer_roots,
    roots_that_do_not_fit_their_slots,
    memory_of_roots,
];

/// Draws `count` distinct vectors from few words, so that they have few nodes.
fn vectors(width: usize, count: usize) -> Pool {
    let values = 2 + (count as f64).powf(1.0 / width as f64) as u64 * 2;
    let vector = |number: u64| (0..width as u64).map(|word| (mix(number * width as u64 + word) % values) as u32).collect();
    Pool::new(width, (0..).map(vector).take(8 * count))
}

fn roots_have_the_bits_of_their_references(device: &Device) {
    // Words, slots for nodes, and root bits. References number the slots and one more, and have at least 10 bits.
    for (width, nodes, bits) in
        [(4, 1, 20), (4, 5000, 26), (6, 8185, 26), (8, 1 << 16, 34), (3, 1, 42), (9, 5000, 45), (17, 70_000, 49)]
    {
        let table = CompactTreeTable::builder(width).capacity(1 << 16).nodes(nodes).build(device).unwrap();
        assert_eq!(table.spec().key_and_slot_bits().map(|(bits, _)| bits), Some(bits), "width {width}, {nodes} nodes");
        assert!(table.spec().is_tree() && table.spec().is_compact() && table.spec().to_string().contains(&bits.to_string()));
    }
    for width in [1, 2] {
        let table = CompactTreeTable::new(device, width, 100).unwrap();
        assert_eq!((table.spec().key_and_slot_bits(), table.spec().is_tree()), (None, false));
    }
}

fn slots_of_every_size(device: &Device) {
    for (width, nodes) in
        scaled(vec![(3, 9000), (4, 30_000), (5, 30_000), (8, 60_000), (17, 150_000), (32, 300_000)], vec![(5, 30_000)])
    {
        for slot_bits in [32, 64] {
            let pool = vectors(width, 1000);
            let builder = CompactTreeTable::builder(width).capacity(1 << 16).nodes(nodes).slot_bits(slot_bits);
            match builder.build(device) {
                Ok(table) => offer_twice(&table, &pool),
                // A root of a word and a reference has many bits.
                Err(Error::KeysDoNotFit { .. }) => assert!(slot_bits == 32 && [3, 5, 17].contains(&width)),
                Err(error) => panic!("{error}"),
            }
        }
    }
    // 255 pairs of 16 values, and so 65,535 roots.
    let digits = |number: u32| vec![number & 15, number >> 4 & 15, number >> 8 & 15, number >> 12];
    let pool = Pool::new(4, (0..scaled(60_000, 2000)).map(digits));
    let table = CompactTreeTable::builder(4).capacity(pool.len() as u64 * 10 / 9).nodes(300).build(device).unwrap();
    assert_eq!(table.spec().key_and_slot_bits(), Some((20, 16)));
    offer_twice(&table, &pool);
}

fn offer_twice(table: &CompactTreeTable, pool: &Pool) {
    let mut checker = Checker::new(table, pool);
    let _ = checker.offer(&pool.shuffled(2, 1)).or_fail(table.spec());
    checker.check().or_fail(table.spec());
}

/// Iteration and decompression return exactly the stored set.
fn filled_to_95_percent_and_read_back(device: &Device) {
    for width in [3, 4, 7, 9, 16] {
        let capacity = sized(40_000, 10_000, 2000);
        let pool = vectors(width, capacity);
        let table =
            CompactTreeTable::builder(width).capacity(capacity as u64 / 2).nodes(8 * pool.len() as u64).build(device).unwrap();
        let count = (table.slots() * 95 / 100).min(pool.len() as u64) as usize;
        let pool = Pool::new(width, (0..count).map(|at| pool.vector(at).to_vec()));
        offer_twice(&table, &pool);
    }
}

/// As references get longer, roots, their slots and their kernels change with them.
fn node_tables_that_grow_make_longer_roots(device: &Device) {
    for width in [3, 4, 8, 9] {
        let pool = Pool::distinct(width, sized(20_000, 5000, 1000));
        let table = CompactTreeTable::builder(width).capacity(600).nodes(600).grows(true).build(device).unwrap();
        let before = table.spec();
        let mut checker = Checker::new(&table, &pool);
        for part in pool.shuffled(2, 5).chunks(pool.len() / 3) {
            let _ = checker.offer(part).or_fail(width);
        }
        checker.check().or_fail(width);
        let bits = |spec: warpset::Spec| spec.key_and_slot_bits().expect("compact").0;
        assert!(bits(table.spec()) > bits(before), "{before}, {}", table.spec());
        checker.grow(3 * table.slots()).or_fail(width);
        checker.check().or_fail(width);
        checker.clear().or_fail(width);
        let _ = checker.offer(&pool.all()).or_fail(width);
        checker.check().or_fail(width);
    }
}

fn roots_that_do_not_fit_their_slots(device: &Device) {
    let builder = CompactTreeTable::builder(8).capacity(1000).nodes(1 << 20);
    let error = builder.clone().slot_bits(32).build(device).map(drop).unwrap_err();
    let Error::KeysDoNotFit { key_bits: 42, slot_bits: 32, slots: 1000, needed } = error else { panic!("{error:?}") };
    assert_eq!(needed, 1 << 14);
    assert!(builder.clone().capacity(needed).slot_bits(32).build(device).is_ok());
    assert_eq!(builder.build(device).unwrap().spec().key_and_slot_bits(), Some((42, 64)));
    let error = CompactTreeTable::builder(8).slot_bits(33).build(device).map(drop).unwrap_err();
    assert!(matches!(error, Error::OutOfRange { given: 33, most: 64, .. }), "{error:?}");
    let error = CompactTreeTable::builder(8).nodes(0).build(device).map(drop).unwrap_err();
    assert!(matches!(error, Error::OutOfRange { what: "slots of a node table", given: 0, .. }), "{error:?}");
}

/// At a fill of 0.9 roots take at most 5 bytes per vector, because slots of 32 bits or fewer exist; plain roots take 8.9.
fn memory_of_roots(device: &Device) {
    let (capacity, nodes) = (1 << 18, 1 << 12);
    let compact = CompactTreeTable::builder(16).capacity(capacity).nodes(nodes).build(device).unwrap();
    let plain = TreeTable::builder(16).capacity(capacity).nodes(nodes).build(device).unwrap();
    let root_bytes = |bytes: u64| (bytes - nodes * 8) as f64 / (capacity as f64 * 0.9);
    assert!(root_bytes(compact.bytes()) < 5.0 && root_bytes(plain.bytes()) > 8.8, "{}, {}", compact.bytes(), plain.bytes());
    // Counts and references count vectors.
    let batch = compact.find_or_put_many_with(&[7; 16], Request::new().references(true)).unwrap();
    assert_eq!(compact.get_many(&[batch.references[0].unwrap()]).unwrap(), [7; 16]);
}
