//! The kernels of indexed tables on the simulated GPU, tested as those of bucket tables (bucket.rs).
//!
//! Keeps these promises of `src/docs/simulated_gpu.md`:
//!
//! - A lane that sees a slot sees its row, in every schedule of tiny cases (also `controls.rs`).
//! - A row that is handed over holds the words that its last owner wrote: tiny cases under random schedules, and mutants without
//!   the release or the acquire of spare rows (also `mutants`).

use crate::support::{Few, Group, SCHEDULERS, layouts, share};
use libtest_mimic::Trial;
use warpset_simt::exhaustive::{Alike, Call, Exhaustive};
use warpset_simt::explorer::{Program, Strategy};
use warpset_simt::growth::Growth;
use warpset_simt::table::{FIND, GIVE, INDEXED_TABLES, Kernels, PUT, SCAN, TAKE, indexed};

pub fn trials() -> Vec<Trial> {
    let mut group = Group::new("indexed");
    group.test("layouts", || layouts(INDEXED_TABLES));
    for kernels in INDEXED_TABLES {
        group.stress(kernels, Few { lanes: 1500, sequential: 500, warps: 60 });
        growths(&mut group, kernels);
    }
    exhaustive(&mut group);
    handed_over(&mut group);
    group.trials
}

/// Adds one trial of growth for each scheduler.
fn growths(group: &mut Group, kernels: &'static Kernels) {
    // Trials of wide vectors take a long time.
    let few = if kernels.width() > 16 { 12 } else { 60 };
    for strategy in SCHEDULERS {
        let name = format!("growth::{}::{strategy}", Growth::new(kernels).name());
        group.explore(name, move || (Box::new(Growth::new(kernels)), strategy, share(few, 20_000)));
    }
}

const A: u32 = 0;
const B: u32 = 1;
const C: u32 = 2;

/// Tries the schedules of two lanes with two operations each on two vectors (or on a row, which one lane reads while another
/// writes it), of three lanes with one operation each, and of two warps. All tags agree, so that rows must be compared. Reading a
/// row takes one access or two, and rows differ in the first or in the last.
fn exhaustive(group: &mut Group) {
    let lanes: [Vec<Vec<Call>>; 9] = [
        vec![vec![(PUT, A)], vec![(PUT, A)]],
        vec![vec![(PUT, A)], vec![(FIND, A)]],
        vec![vec![(PUT, A)], vec![(PUT, B)]],
        vec![vec![(PUT, A), (PUT, B)], vec![(PUT, A), (PUT, B)]],
        vec![vec![(PUT, A), (PUT, B)], vec![(PUT, B), (PUT, A)]],
        vec![vec![(PUT, A), (FIND, B)], vec![(PUT, B), (FIND, A)]],
        vec![vec![(GIVE, A)], vec![(PUT, A), (TAKE, A)]],
        vec![vec![(PUT, A)], vec![(SCAN, 0), (SCAN, 0)]],
        vec![vec![(PUT, A)], vec![(PUT, B)], vec![(PUT, C)]],
    ];
    let mut add = |make: Box<dyn Fn() -> Exhaustive + Send>, limit: u64| {
        let name = format!("exhaustive::{}", make().name());
        group.explore(name, move || (Box::new(make()), Strategy::Exhaustive, limit));
    };
    for kernels in [indexed(1, 64), indexed(2, 32), indexed(3, 64), indexed(4, 32)].into_iter().flatten() {
        for alike in [Alike::Nothing, Alike::AllButFirst, Alike::AllButLast] {
            for stale in [false, true] {
                for players in lanes.clone() {
                    add(Box::new(move || Exhaustive::of_lanes(kernels, alike, players.clone(), stale)), share(2_000, u64::MAX));
                }
                for batches in [vec![vec![A], vec![A]], vec![vec![A], vec![B]], vec![vec![A, B], vec![B, A]]] {
                    add(Box::new(move || Exhaustive::of_warps(kernels, alike, batches.clone(), stale)), share(100, 20_000));
                }
            }
        }
    }
}

/// Tests rows that pass from one lane to another. Two lanes put the same vector, and the lane that loses uses its row for its
/// next vector. A third lane looks both vectors up, or reads the row. Schedules are random, because there are too many to try
/// all.
fn handed_over(group: &mut Group) {
    let looks: [&[Call]; 2] = [&[(FIND, A), (FIND, B)], &[(SCAN, 1), (SCAN, 1)]];
    for kernels in [indexed(2, 32), indexed(3, 64)].into_iter().flatten() {
        for look in looks {
            for strategy in [Strategy::Random, Strategy::Pct(3)] {
                let players = vec![vec![(PUT, A), (PUT, B)], vec![(PUT, A), (PUT, B)], look.to_vec()];
                let make = move || Exhaustive::of_lanes(kernels, Alike::Nothing, players, true);
                let name = format!("handed-over::{}::{strategy}", make.clone()().name());
                group.explore(name, move || (Box::new(make()), strategy, share(6_000, 100_000)));
            }
        }
    }
}
