//! The compact table's kernels and headers on the simulated GPU: stress trials of random operations for every spec, and every
//! schedule of tiny cases.
//!
//! Numbers of schedules as in tests/bucket.rs: `cargo test` tries a share, `WARPSET_SIMT_FULL=1 cargo test --release -p
//! warpset-simt` more.

mod support;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use support::{Few, layouts, share, stress, trial};
use warpset_simt::crowd::Crowd;
use warpset_simt::exhaustive::{Alike, Call, Exhaustive, Stash};
use warpset_simt::explorer::{Program, Strategy};
use warpset_simt::relocation::Relocation;
use warpset_simt::table::{COMPACTS, FIND, Kernels, PUT, compact};

fn main() -> ExitCode {
    let mut trials = vec![Trial::test("layouts", || layouts(COMPACTS))];
    for kernels in COMPACTS {
        trials.extend(stress(kernels, Few { lanes: 1500, sequential: 500, warps: 60 }));
    }
    // Codes with room for a stash function.
    for kernels in [compact(12, 16), compact(20, 32), compact(31, 32), compact(40, 64)] {
        trials.extend(relocations(kernels));
        trials.extend(crowds(kernels));
    }
    trials.extend(exhaustive());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// One trial per scheduler.
fn relocations(kernels: &'static Kernels) -> Vec<Trial> {
    let strategies = [Strategy::Random, Strategy::Pct(3), Strategy::LockStep];
    let make = |strategy| {
        let name = format!("relocation::{}::{strategy}", Relocation::new(kernels).name());
        trial(name, move || (Box::new(Relocation::new(kernels)), strategy, share(40, 20_000)))
    };
    strategies.into_iter().map(make).collect()
}

/// One trial per scheduler.
fn crowds(kernels: &'static Kernels) -> Vec<Trial> {
    let mut trials = Vec::new();
    for strategy in [Strategy::Random, Strategy::Pct(3), Strategy::LockStep] {
        for stale in [false, true] {
            let name = format!("crowd::{}::{strategy}", Crowd::new(kernels, stale).name());
            trials.push(trial(name, move || (Box::new(Crowd::new(kernels, stale)), strategy, share(150, 50_000))));
        }
    }
    trials
}

const A: u32 = 0;
const B: u32 = 1;
const C: u32 = 2;

/// Every schedule of: two lanes with two operations each on two keys; three lanes with a key each; two warps with a key each.
/// Buckets have one slot, in one round or two rounds; the table has two buckets, and a stash of one slot and one more for keys
/// that are put back.
fn exhaustive() -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |make: Box<dyn Fn() -> Exhaustive + Send>, limit: u64| {
        let name = format!("exhaustive::{}", make().name());
        trials.push(trial(name, move || (Box::new(make()), Strategy::Exhaustive, limit)));
    };
    for kernels in [compact(12, 16), compact(15, 16), compact(20, 32), compact(33, 32), compact(64, 64)] {
        for rounds in [Alike::Nothing, Alike::AllButLast] {
            for stale in [false, true] {
                for players in players() {
                    let make = move || Exhaustive::of_lanes(kernels, rounds, players.clone(), stale);
                    add(Box::new(make), share(20_000, 5_000_000));
                }
                for batches in [vec![vec![A], vec![A]], vec![vec![A], vec![B]], vec![vec![A, B], vec![B, A]]] {
                    let make = move || Exhaustive::of_warps(kernels, rounds, batches.clone(), stale);
                    add(Box::new(make), share(40, 20_000));
                }
            }
        }
    }
    // A stash that is nearly full, or full; equal keys, and different ones.
    for kernels in [compact(12, 16), compact(20, 32), compact(64, 64)] {
        for stash in [Stash::Nearly, Stash::Full, Stash::PutBack] {
            for stale in [false, true] {
                for players in players() {
                    let make = move || Exhaustive::of_lanes(kernels, Alike::Nothing, players.clone(), stale).with_stash(stash);
                    add(Box::new(make), share(5_000, 5_000_000));
                }
                let batches = vec![vec![A, A, B], vec![B, A]];
                let make = move || Exhaustive::of_warps(kernels, Alike::Nothing, batches.clone(), stale).with_stash(stash);
                add(Box::new(make), share(40, 20_000));
            }
        }
    }
    trials
}

fn players() -> Vec<Vec<Vec<Call>>> {
    vec![
        vec![vec![(PUT, A), (PUT, B)], vec![(PUT, A), (PUT, B)]],
        vec![vec![(PUT, A), (PUT, B)], vec![(PUT, B), (PUT, A)]],
        vec![vec![(PUT, A), (FIND, A)], vec![(PUT, A), (FIND, A)]],
        vec![vec![(PUT, A), (FIND, B)], vec![(PUT, B), (FIND, A)]],
        vec![vec![(PUT, A)], vec![(PUT, A)], vec![(PUT, A)]],
        vec![vec![(PUT, A)], vec![(PUT, B)], vec![(PUT, A)]],
        vec![vec![(PUT, A)], vec![(PUT, B)], vec![(PUT, C)]],
    ]
}
