//! The node table of tree tables: shared nodes, a full node table, and nodes whose contents look like others.
//!
//! Keeps this promise of `src/docs/errors.md`:
//!
//! - `Full` for lack of a free node is counted separately.
//!
//! Keeps this promise of `README.md`:
//!
//! - Equal parts are stored once (also `strategies.rs`).

use crate::common::checker::{Checker, OrFail};
use crate::common::vectors::{Pool, distinct, some_widths};
use crate::common::{scaled, sized, tests};
use std::collections::HashMap;
use warpset::{Device, Error, Outcome, Request, TreeTable};

tests![
    equal_parts_are_stored_once,
    vectors_of_zeros,
    vectors_that_look_like_references,
    too_few_nodes,
    a_full_node_table_still_knows_what_it_holds,
    node_tables_grow_by_themselves,
    nodes_with_colliding_hashes,
    accesses_are_counted,
    node_tables_of_impossible_sizes,
    narrow_vectors_need_no_nodes,
];

/// All hashes agree, so that the n-th node is in bucket n / 2 of the one probe sequence; vectors share no node.
fn accesses_are_counted(device: &Device) {
    for width in some_widths().into_iter().filter(|width| *width > 2) {
        let (count, nodes_of_one) = (scaled(40, 10), width as u64 - 2);
        let nodes = count as u64 * nodes_of_one;
        let table = TreeTable::builder(width).capacity(2000).nodes(2 * nodes + 100).node_hash_mask(0).build(device).unwrap();
        if (nodes as usize).div_ceil(2) > 1024 {
            continue; // searches do not reach that far
        }
        let _ = table.find_or_put_many(&distinct(width, 1, count)).unwrap();
        let stats = table.stats().unwrap();
        assert_eq!((stats.nodes, stats.stored), (nodes, count as u64), "width {width}");
        let expected: u64 = (1..=nodes).map(|node| node.div_ceil(2)).sum();
        assert_eq!(stats.node_probes, expected, "width {width}");
        let roots = stats.mean_probe() * count as f64;
        assert!((stats.accesses_per_call() * count as f64 - roots - expected as f64).abs() < 1e-6, "width {width}");
        // A second offer of the vectors, and a vector whose nodes are all (0, 0) or pairs of such nodes: these cost no access.
        let _ = table.find_or_put_many(&vec![0; width]).unwrap();
        let zeros = table.stats().unwrap();
        let inner = zeros.nodes - stats.nodes;
        let more: u64 = (nodes + 1..=nodes + inner).map(|node| node.div_ceil(2)).sum();
        assert!(zeros.node_probes >= expected + more, "width {width}");
        if width <= 4 {
            assert_eq!(zeros.node_probes, expected, "width {width}: only (0, 0)");
        }
    }
}

/// Number of distinct pairs in the trees of these vectors, by an independent model: neighbours are paired level by level, and a
/// last one without a neighbour moves up. Roots and pairs of zeros are no nodes.
fn nodes_of(width: usize, vectors: &[u32]) -> u64 {
    let mut numbers: HashMap<(u64, u64), u64> = HashMap::new();
    for vector in vectors.chunks(width) {
        let mut level: Vec<u64> = vector.iter().map(|word| u64::from(*word)).collect();
        while level.len() > 2 {
            level = level
                .chunks(2)
                .map(|pair| match *pair {
                    [0, 0] => u64::MAX,
                    [left, right] => {
                        let next = numbers.len() as u64 + (1 << 33); // unlike any word
                        *numbers.entry((left, right)).or_insert(next)
                    }
                    _ => pair[0],
                })
                .collect();
        }
    }
    numbers.len() as u64
}

fn equal_parts_are_stored_once(device: &Device) {
    for width in (3..=20).chain([31, 32, 33, 64, 100, 255, 256]) {
        // Words have few values, so most pairs repeat. No word equals the number of a node, because pairs of such words may share
        // a slot with pairs of nodes.
        let count = sized(2000, 500, 200);
        // Words also differ by position, so that no pair has equal halves: two references to the node in slot 0 are (0, 0), which
        // takes no slot.
        let place = |at: usize| (at % width) as u32 * 8;
        let words: Vec<u32> =
            distinct(width, 3, count).iter().enumerate().map(|(at, word)| (1 << 31) | place(at) | (word % 5)).collect();
        let table = TreeTable::builder(width).capacity(2 * count as u64).nodes((count * width) as u64).build(device).unwrap();
        let batch = table.find_or_put_many(&words).unwrap();
        let stats = table.stats().unwrap();
        assert_eq!(stats.nodes, nodes_of(width, &words), "width {width}");
        let ratio = (stats.nodes + batch.tally.new) as f64 * 2.0 / (batch.tally.new as f64 * width as f64);
        assert!((stats.compression_ratio() - ratio).abs() < 1e-9, "width {width}: {} not {ratio}", stats.compression_ratio());
        // A second offer adds no node.
        assert_eq!(table.find_or_put_many(&words).unwrap().tally.new, 0);
        assert_eq!(table.stats().unwrap().nodes, stats.nodes, "width {width}");
    }
}

/// A pair of zeros is a node that takes no slot.
fn vectors_of_zeros(device: &Device) {
    for width in some_widths().into_iter().filter(|width| *width > 2) {
        let mut vectors = vec![vec![0; width]];
        vectors.extend((0..width).map(|at| (0..width).map(|word| u32::from(word == at)).collect()));
        let pool = Pool::new(width, vectors);
        let expected = nodes_of(width, pool.vector(0));
        // The maximum over three tables: if a node lies in slot 0, the pair of two references to it is (0, 0), and takes no slot.
        let tables = [1, 2, 3].map(|seed| TreeTable::builder(width).capacity(500).nodes(2000).seed(seed).build(device).unwrap());
        let nodes = tables.each_ref().map(|table| {
            assert_eq!(table.find_or_put_many(pool.vector(0)).unwrap().tally.new, 1);
            table.stats().unwrap().nodes
        });
        assert_eq!(nodes.into_iter().max(), Some(expected), "width {width}: {nodes:?}");
        let [table, ..] = tables;
        table.clear().unwrap();
        let mut checker = Checker::new(&table, &pool);
        let _ = checker.offer(&pool.shuffled(3, 1)).or_fail(width);
        checker.check().or_fail(width);
    }
}

/// Vectors whose words are numbers of nodes, or the value that stands for no node.
fn vectors_that_look_like_references(device: &Device) {
    for width in [3, 4, 5, 6, 7, 8, 9, 17, 33] {
        let table = TreeTable::builder(width).capacity(1000).nodes(50_000).seed(5).build(device).unwrap();
        let last = table.stats().unwrap().node_slots as u32;
        let words = [0, 1, 2, 3, last - 1, last, last + 1, u32::MAX, u32::MAX - 1];
        let vector = |number: usize| (0..width).map(|at| words[(number * 7 + at * (number % 5 + 1)) % words.len()]).collect();
        let pool = Pool::new(width, (0..200).map(vector).collect::<std::collections::HashSet<Vec<u32>>>());
        let mut checker = Checker::new(&table, &pool);
        let _ = checker.offer(&pool.shuffled(4, 1)).or_fail(width);
        checker.check().or_fail(width);
    }
}

/// A vector that finds no room for its nodes is Full, which is reported; stored vectors stay.
fn too_few_nodes(device: &Device) {
    for width in [3, 4, 7, 16, 33] {
        let pool = Pool::distinct(width, 400);
        let table = TreeTable::builder(width).capacity(1000).nodes(50).build(device).unwrap();
        let mut checker = Checker::of_small(&table, &pool);
        let batch = checker.offer(&pool.all()).or_fail(width);
        assert!(batch.tally.full > 0 && batch.tally.full_nodes == batch.tally.full, "width {width}: {:?}", batch.tally);
        let stats = table.stats().unwrap();
        assert!(stats.nodes <= stats.node_slots && stats.stored == batch.tally.new, "width {width}: {stats:?}");
        checker.check().or_fail(width);
        let error = batch.complete(&table).unwrap_err();
        let Error::TableFull { rejected, for_nodes, .. } = error else { panic!("{error:?}") };
        assert_eq!(rejected, for_nodes);
        assert!(error.to_string().contains(&format!("without a free node {for_nodes}")), "{error}");
    }
}

/// A stored vector is Seen even by a full table, and can be found and read.
fn a_full_node_table_still_knows_what_it_holds(device: &Device) {
    for width in [3, 5, 8, 17] {
        let pool = Pool::distinct(width, 300);
        let table = TreeTable::builder(width).capacity(1000).nodes(200).build(device).unwrap();
        let mut checker = Checker::of_small(&table, &pool);
        // A few vectors at a time, so that some are stored completely before the nodes run out.
        for part in pool.all().chunks(10) {
            let _ = checker.offer(part).or_fail(width);
        }
        let (stored, rejected) = (checker.stored(), checker.rejected());
        assert!(!stored.is_empty() && !rejected.is_empty(), "width {width}: {} stored", stored.len());
        let again = checker.offer(&stored).or_fail(width);
        assert!(again.outcomes.iter().all(|outcome| *outcome == Outcome::Seen));
        let _ = checker.offer(&rejected).or_fail(width);
        checker.check().or_fail(width);
    }
}

fn node_tables_grow_by_themselves(device: &Device) {
    for width in [3, 6, 16, 33] {
        let pool = Pool::distinct(width, scaled(3000, 300));
        let table = TreeTable::builder(width).capacity(100_000).nodes(2).grows(true).build(device).unwrap();
        let slots = table.slots();
        let mut checker = Checker::new(&table, &pool);
        let _ = checker.offer(&pool.shuffled(2, 1)).or_fail(width);
        checker.check().or_fail(width);
        assert_eq!(table.slots(), slots, "there was room for roots");
        assert_eq!(table.stats().unwrap().nodes, nodes_of(width, pool.words()), "width {width}");
    }
}

/// All nodes in one probe sequence, or in few.
fn nodes_with_colliding_hashes(device: &Device) {
    for (width, mask) in [3, 4, 9, 16].into_iter().flat_map(|width| [0, 1, 1 << 31, 0xF000_0000].map(|mask| (width, mask))) {
        // Fewer nodes than a search looks at.
        let pool = Pool::distinct(width, 1500 / width);
        let table = TreeTable::builder(width).capacity(2000).nodes(4000).node_hash_mask(mask).build(device).unwrap();
        let mut checker = Checker::new(&table, &pool);
        let _ = checker.offer(&pool.shuffled(3, 1)).or_fail(format!("width {width}, mask {mask:x}"));
        checker.check().or_fail(format!("width {width}, mask {mask:x}"));
    }
}

fn node_tables_of_impossible_sizes(device: &Device) {
    for nodes in [0, 1 << 32, u64::MAX] {
        let error = TreeTable::builder(4).capacity(10).nodes(nodes).build(device).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { what: "slots of a node table", given, .. } if given == nodes), "{error:?}");
        assert!(error.to_string().contains(&nodes.to_string()) && error.to_string().contains("4294967294"), "{error}");
    }
}

fn narrow_vectors_need_no_nodes(device: &Device) {
    for width in [1, 2] {
        let pool = Pool::distinct(width, 100);
        let table = TreeTable::builder(width).capacity(300).nodes(7).build(device).unwrap();
        let mut checker = Checker::new(&table, &pool);
        let _ = checker.offer(&pool.shuffled(2, 1)).or_fail(width);
        checker.check().or_fail(width);
        let stats = table.stats().unwrap();
        assert_eq!((stats.nodes, stats.node_slots, stats.compression_ratio()), (0, 0, 1.0));
        assert_eq!(table.find_or_put_many_with(pool.words(), Request::new()).unwrap().tally.seen, 100);
    }
}
