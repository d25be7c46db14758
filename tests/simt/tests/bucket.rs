//! The bucket table's kernels and headers on the simulated GPU: stress trials of random operations for every spec, and every
//! schedule of tiny cases.
//!
//! `cargo test` tries a share of the schedules for some specs, and six times as many for all of them with `WARPSET_TEST_FULL=1`. `WARPSET_SIMT_FULL=1 cargo
//! test --release -p warpset-simt` tries for every spec and each of three schedulers 220,000 stress trials, and all of the tiny
//! cases, in about an hour on two cores.
//!
//! Keeps this promise of `README.md`:
//!
//! - No thread waits for another: a lane that is suspended for ever blocks no other lane (also `compact.rs`, `indexed.rs`,
//!   `tree.rs`, `controls.rs`).

mod support;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use support::{Few, layouts, share, stress, trial};
use warpset_simt::exhaustive::{Alike, Call, Exhaustive};
use warpset_simt::explorer::{Program, Strategy};
use warpset_simt::table::{BUCKETS, FIND, PUT, bucket};

fn main() -> ExitCode {
    let mut trials = vec![Trial::test("layouts", || layouts(BUCKETS))];
    for kernels in BUCKETS {
        trials.extend(stress(kernels, Few { lanes: 1500, sequential: 500, warps: 60 }));
    }
    trials.extend(exhaustive());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

const A: u32 = 0;
const B: u32 = 1;
const C: u32 = 2;

/// Every schedule of three cases: two lanes with two operations each on two vectors, in one bucket, with up to three chunks per
/// vector; three lanes for one slot; two warps with one vector each.
fn exhaustive() -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |name: String, make: Box<dyn Fn() -> Exhaustive + Send>, limit: u64| {
        let name = format!("exhaustive::{name}");
        trials.push(trial(name, move || (Box::new(make()), Strategy::Exhaustive, limit)));
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
    for kernels in up_to_three_chunks {
        for alike in [Alike::Nothing, Alike::AllButFirst, Alike::AllButLast] {
            for stale in [false, true] {
                for players in two_lanes() {
                    let make = move || Exhaustive::of_lanes(kernels, alike, players.clone(), stale);
                    add(make().name(), Box::new(make), u64::MAX);
                }
                for batches in [vec![vec![A], vec![A]], vec![vec![A], vec![B]], vec![vec![A, B], vec![B, A]]] {
                    // Two vectors per warp have too many schedules for wide vectors.
                    let limit = if batches[0].len() == 1 { share(400, u64::MAX) } else { share(50, 20_000) };
                    let make = move || Exhaustive::of_warps(kernels, alike, batches.clone(), stale);
                    add(make().name(), Box::new(make), limit);
                }
            }
        }
    }
    for kernels in [bucket(6, 8, 32), bucket(12, 16, 32)] {
        for alike in [Alike::Nothing, Alike::AllButFirst, Alike::AllButLast] {
            for stale in [false, true] {
                for vectors in [[A, A, A], [A, B, A], [A, B, C]] {
                    let players: Vec<Vec<Call>> = vectors.iter().map(|vector| vec![(PUT, *vector)]).collect();
                    let make = move || Exhaustive::of_lanes(kernels, alike, players.clone(), stale);
                    // Three lanes whose vectors share all but the last of three chunks: about a million schedules each.
                    let limit = if stale && alike == Alike::AllButLast { share(20_000, u64::MAX) } else { u64::MAX };
                    add(make().name(), Box::new(make), limit);
                }
            }
        }
    }
    trials
}

/// Scripts of two lanes with two vectors: in a test run, puts in either order followed by finds; in the full run, all scripts.
fn two_lanes() -> Vec<Vec<Vec<Call>>> {
    if share(0, 1) == 0 {
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
