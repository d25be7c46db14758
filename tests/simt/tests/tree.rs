//! The tree table's kernels and headers on the simulated GPU: stress trials of random operations for every spec and every build
//! strategy, and every schedule of tiny cases.
//!
//! bucket.rs says how many specs and schedules are tested.

use crate::support::{Few, Group, layouts, share};
use libtest_mimic::Trial;
use std::collections::BTreeSet;
use warpset_simt::exhaustive::{Alike, Call, Exhaustive};
use warpset_simt::explorer::{Program, Strategy};
use warpset_simt::table::{FIND, GIVE, INCREMENTAL, PUT, SCAN, STRATEGY_TREES, TAKE, TREE_COMPACTS, TREES, compact_tree, tree};

pub fn trials() -> Vec<Trial> {
    let mut group = Group::new("tree");
    group.test("layouts", || layouts(TREES).and_then(|()| layouts(TREE_COMPACTS)));
    for kernels in TREES.iter().chain(TREE_COMPACTS) {
        // Make about as many steps for each width.
        let wide = 1 + u64::from(kernels.width) / 8;
        group.stress(kernels, Few { lanes: 1200 / wide, sequential: 400 / wide, warps: 60 / wide });
    }
    group.test("layouts_of_strategies", || layouts(STRATEGY_TREES));
    for kernels in STRATEGY_TREES {
        let wide = 1 + u64::from(kernels.width) / 8;
        group.stress_of_warps(kernels, 30 / wide);
    }
    // The operations of a single lane depend only on the pairing.
    for pairing in [1, 2] {
        let kernels: Vec<_> = STRATEGY_TREES.iter().filter(|kernels| kernels.pairing == pairing).collect();
        let widths: BTreeSet<u32> = kernels.iter().map(|kernels| kernels.width).collect();
        for width in widths.into_iter().filter(|width| *width < 32) {
            let kernels = kernels.iter().find(|kernels| kernels.width == width).expect("one of them");
            group.stress_of_lanes(kernels, 1200 / (1 + u64::from(width) / 8));
        }
    }
    exhaustive(&mut group);
    group.trials
}

const A: u32 = 0;
const B: u32 = 1;

/// Tries the schedules of two lanes with up to two operations each on two vectors of 3 or 4 words, and of two warps with one or
/// two vectors each. The vectors have one or two nodes and share at most one. The table has one bucket of roots. It has one
/// bucket of nodes (two slots, which are not always enough) or two.
fn exhaustive(group: &mut Group) {
    let mut add = |make: Box<dyn Fn() -> Exhaustive + Send>, limit: u64| {
        let name = format!("exhaustive::{}", make().name());
        group.explore(name, move || (Box::new(make()), Strategy::Exhaustive, limit));
    };
    for kernels in [tree(3, 8, 64), tree(4, 8, 32), compact_tree(3, 44, 64), compact_tree(4, 14, 16)].into_iter().flatten() {
        for node_buckets in [1, 2] {
            for alike in [Alike::Nothing, Alike::AllButFirst, Alike::AllButLast] {
                for stale in [false, true] {
                    for players in two_lanes() {
                        let make =
                            move || Exhaustive::of_lanes(kernels, alike, players.clone(), stale).with_node_buckets(node_buckets);
                        // Two puts each, of vectors that share nothing, have up to a few million schedules.
                        add(Box::new(make), share(2000, 5_000_000));
                    }
                    for batches in [vec![vec![A], vec![A]], vec![vec![A], vec![B]], vec![vec![A, B], vec![B, A]]] {
                        let make =
                            move || Exhaustive::of_warps(kernels, alike, batches.clone(), stale).with_node_buckets(node_buckets);
                        add(Box::new(make), share(20, 5_000));
                    }
                }
            }
        }
    }
}

fn two_lanes() -> Vec<Vec<Vec<Call>>> {
    vec![
        vec![vec![(PUT, A)], vec![(PUT, A)]],
        vec![vec![(PUT, A)], vec![(PUT, B)]],
        vec![vec![(PUT, A), (PUT, B)], vec![(PUT, A), (PUT, B)]],
        vec![vec![(PUT, A), (PUT, B)], vec![(PUT, B), (PUT, A)]],
        vec![vec![(PUT, A), (FIND, A)], vec![(PUT, A), (FIND, A)]],
        vec![vec![(PUT, A), (FIND, B)], vec![(PUT, B), (FIND, A)]],
        vec![vec![(PUT, A)], vec![(FIND, A), (FIND, A)]],
        vec![vec![(PUT, A), (PUT, B)], vec![(SCAN, 0), (SCAN, 1)]],
        vec![vec![(GIVE, A)], vec![(TAKE, A), (TAKE, A)]],
        vec![vec![(PUT, A), (INCREMENTAL, B)], vec![(PUT, B), (INCREMENTAL, A)]],
        vec![vec![(PUT, A)], vec![(INCREMENTAL, A), (INCREMENTAL, B)]],
    ]
}
