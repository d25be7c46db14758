//! The kernels of indexed tables on the simulated GPU, tested as those of bucket tables (tests/bucket.rs).
//!
//! Keeps these promises of `src/docs/simulated_gpu.md`:
//!
//! - A lane that sees a slot sees its row, in every schedule of tiny cases (also `controls.rs`).
//! - A row that is handed over holds the words that its last owner wrote: tiny cases under random schedules, and mutants without
//!   the release or the acquire of spare rows (also `mutants`).

mod support;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use support::{Few, layouts, share, stress, trial};
use warpset_simt::exhaustive::{Alike, Call, Exhaustive};
use warpset_simt::explorer::{Program, Strategy};
use warpset_simt::growth::Growth;
use warpset_simt::table::{FIND, GIVE, INDEXED_TABLES, Kernels, PUT, SCAN, TAKE, indexed};

fn main() -> ExitCode {
    let mut trials = vec![Trial::test("layouts", || layouts(INDEXED_TABLES))];
    for kernels in INDEXED_TABLES {
        trials.extend(stress(kernels, Few { lanes: 1500, sequential: 500, warps: 60 }));
        trials.extend(growths(kernels));
    }
    trials.extend(exhaustive());
    trials.extend(handed_over());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// One trial per scheduler.
fn growths(kernels: &'static Kernels) -> Vec<Trial> {
    let make = |strategy| {
        let name = format!("growth::{}::{strategy}", Growth::new(kernels).name());
        // Trials of wide vectors take long.
        let few = if kernels.width() > 16 { 12 } else { 60 };
        trial(name, move || (Box::new(Growth::new(kernels)), strategy, share(few, 20_000)))
    };
    [Strategy::Random, Strategy::Pct(3), Strategy::LockStep].into_iter().map(make).collect()
}

const A: u32 = 0;
const B: u32 = 1;
const C: u32 = 2;

/// Schedules of two lanes with two operations each on two vectors (or on a row, which is read while another lane writes it), of
/// three lanes with one operation, and of two warps. All tags agree, so that rows are compared. Rows take one access or two, and
/// differ in the first or in the last.
fn exhaustive() -> Vec<Trial> {
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
    let mut trials = Vec::new();
    let mut add = |make: Box<dyn Fn() -> Exhaustive + Send>, limit: u64| {
        let name = format!("exhaustive::{}", make().name());
        trials.push(trial(name, move || (Box::new(make()), Strategy::Exhaustive, limit)));
    };
    for kernels in [indexed(1, 64), indexed(2, 32), indexed(3, 64), indexed(4, 32)] {
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
    trials
}

/// Hands rows over. Two lanes put one vector, the loser's row holds its next vector, and a third lane looks for both vectors, or
/// reads the row. Random schedules; there are too many to try all.
fn handed_over() -> Vec<Trial> {
    let looks: [&[Call]; 2] = [&[(FIND, A), (FIND, B)], &[(SCAN, 1), (SCAN, 1)]];
    let mut trials = Vec::new();
    for kernels in [indexed(2, 32), indexed(3, 64)] {
        for look in looks {
            for strategy in [Strategy::Random, Strategy::Pct(3)] {
                let players = vec![vec![(PUT, A), (PUT, B)], vec![(PUT, A), (PUT, B)], look.to_vec()];
                let make = move || Exhaustive::of_lanes(kernels, Alike::Nothing, players, true);
                let name = format!("handed-over::{}::{strategy}", make.clone()().name());
                trials.push(trial(name, move || (Box::new(make()), strategy, share(6_000, 100_000))));
            }
        }
    }
    trials
}
