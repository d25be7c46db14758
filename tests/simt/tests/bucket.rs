//! The bucket table's kernels and headers on the simulated GPU: stress trials of random operations for every spec, and every
//! schedule of tiny cases.
//!
//! `cargo test` compiles one spec for each branch of the headers and tries a share of the schedules. `WARPSET_TEST_FULL=1` makes
//! that all specs, ten times as many schedules, and every schedule of most tiny cases. `WARPSET_SIMT_FULL=1 cargo test --release
//! -p warpset-simt` tries for every spec and each of three schedulers 220,000 stress trials, and all of the tiny cases, in about
//! an hour on two cores.
//!
//! Keeps this promise of `README.md`:
//!
//! - No thread waits for another: a lane that is suspended for ever blocks no other lane (also `compact.rs`, `indexed.rs`,
//!   `tree.rs`, `controls.rs`).

use crate::support::{Few, Group, SCHEDULERS, is_long, layouts, share, tiny};
use libtest_mimic::Trial;
use warpset_simt::bulk::BulkPut;
use warpset_simt::exhaustive::{Alike, Call, Exhaustive};
use warpset_simt::explorer::{Program, Strategy};
use warpset_simt::slices::SliceGrowth;
use warpset_simt::table::{BUCKETS, FIND, PUT, bucket};

pub fn trials() -> Vec<Trial> {
    let mut group = Group::new("bucket");
    group.test("layouts", || layouts(BUCKETS));
    for kernels in BUCKETS {
        group.stress(kernels, Few { lanes: 1500, sequential: 500, warps: 60 });
        for strategy in SCHEDULERS {
            let name = format!("growth::{}::{strategy}", SliceGrowth::new(kernels).name());
            group.explore(name, move || (Box::new(SliceGrowth::new(kernels)), strategy, share(100, 20_000)));
            if BulkPut::exists(kernels) {
                let name = format!("bulk::{}::{strategy}", BulkPut::new(kernels).name());
                group.explore(name, move || (Box::new(BulkPut::new(kernels)), strategy, share(100, 20_000)));
            }
        }
    }
    exhaustive(&mut group);
    group.trials
}

const A: u32 = 0;
const B: u32 = 1;
const C: u32 = 2;

/// Every schedule of three cases: two lanes with two operations each on two vectors, in one bucket, with up to three chunks per
/// vector; three lanes for one slot; two warps with one vector each.
fn exhaustive(group: &mut Group) {
    let mut add = |make: Box<dyn Fn() -> Exhaustive + Send>, limit: u64| {
        group.explore(format!("exhaustive::{}", make().name()), move || (Box::new(make()), Strategy::Exhaustive, limit));
    };
    // Chunks per vector and slots per bucket: 1 and 8; 2 and 4; 3 and 2; 3 (of three sizes) and 4; 1 and 4; 3 and 1 twice.
    let up_to_three_chunks = [
        bucket(2, 8, 64),
        bucket(3, 8, 32),
        bucket(5, 8, 64),
        bucket(7, 16, 64),
        bucket(4, 16, 64),
        bucket(6, 8, 32),
        bucket(12, 16, 32),
    ];
    for kernels in up_to_three_chunks.into_iter().flatten() {
        for alike in [Alike::Nothing, Alike::AllButFirst, Alike::AllButLast] {
            for stale in [false, true] {
                for players in two_lanes() {
                    let make = move || Exhaustive::of_lanes(kernels, alike, players.clone(), stale);
                    add(Box::new(make), tiny());
                }
                for batches in [vec![vec![A], vec![A]], vec![vec![A], vec![B]], vec![vec![A, B], vec![B, A]]] {
                    // Two vectors per warp have too many schedules for wide vectors.
                    let limit = if batches[0].len() == 1 { share(400, u64::MAX) } else { share(50, 20_000) };
                    let make = move || Exhaustive::of_warps(kernels, alike, batches.clone(), stale);
                    add(Box::new(make), limit);
                }
            }
        }
    }
    for kernels in [bucket(6, 8, 32), bucket(12, 16, 32)].into_iter().flatten() {
        for alike in [Alike::Nothing, Alike::AllButFirst, Alike::AllButLast] {
            for stale in [false, true] {
                for vectors in [[A, A, A], [A, B, A], [A, B, C]] {
                    let players: Vec<Vec<Call>> = vectors.iter().map(|vector| vec![(PUT, *vector)]).collect();
                    let make = move || Exhaustive::of_lanes(kernels, alike, players.clone(), stale);
                    // Three lanes whose vectors share all but the last of three chunks: about a million schedules each.
                    let limit = if stale && alike == Alike::AllButLast { share(20_000, u64::MAX) } else { tiny() };
                    add(Box::new(make), limit);
                }
            }
        }
    }
}

/// Scripts of two lanes with two vectors: in a test run, puts in either order followed by finds; in the full run, all scripts.
fn two_lanes() -> Vec<Vec<Vec<Call>>> {
    if !is_long() {
        return vec![
            vec![vec![(PUT, A), (PUT, B)], vec![(PUT, A), (PUT, B)]],
            vec![vec![(PUT, A), (PUT, B)], vec![(PUT, B), (PUT, A)]],
            vec![vec![(PUT, A), (FIND, A)], vec![(PUT, A), (FIND, A)]],
            vec![vec![(PUT, A), (FIND, B)], vec![(PUT, B), (FIND, A)]],
        ];
    }
    let calls = [(PUT, A), (PUT, B), (FIND, A), (FIND, B)];
    let lanes: Vec<Vec<Call>> = calls.iter().flat_map(|one| calls.map(|other| vec![*one, other])).collect();
    (0..lanes.len())
        .flat_map(|one| (one..lanes.len()).map(move |other| (one, other)))
        .map(|(one, other)| vec![lanes[one].clone(), lanes[other].clone()])
        .collect()
}
