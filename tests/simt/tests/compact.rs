//! The compact table's kernels and headers on the simulated GPU: stress trials of random operations for every spec, and every
//! schedule of tiny cases.
//!
//! bucket.rs says how many specs and schedules are tested.

use crate::support::{Few, Group, SCHEDULERS, layouts, share};
use libtest_mimic::{Failed, Trial};
use warpset_simt::compact::{Layout, Level};
use warpset_simt::crowd::Crowd;
use warpset_simt::exhaustive::{Alike, Call, Exhaustive, Stash};
use warpset_simt::explorer::{Program, Strategy};
use warpset_simt::relocation::Relocation;
use warpset_simt::table::{COMPACTS, FIND, Kernels, PUT, compact};

pub fn trials() -> Vec<Trial> {
    let mut group = Group::new("compact");
    group.test("layouts", || layouts(COMPACTS));
    group.test("places_give_their_keys_back", places_give_their_keys_back);
    for kernels in COMPACTS {
        group.stress(kernels, Few { lanes: 1500, sequential: 500, warps: 60 });
    }
    // The codes of these specs have space for a stash function.
    for kernels in [compact(12, 16), compact(20, 32), compact(31, 32), compact(40, 64)].into_iter().flatten() {
        relocations(&mut group, kernels);
        crowds(&mut group, kernels);
    }
    exhaustive(&mut group);
    group.trials
}

fn places_give_their_keys_back() -> Result<(), Failed> {
    for key_bits in [8, 12, 20, 33, 64] {
        for (buckets, stash) in [(2, 2), (3, 2), (5, 3)] {
            let level = |buckets| Level { buckets, functions: 2, limits: [1, 2, 0], rounds: 2, kept_rounds: 0 };
            let levels = [level(buckets), level(stash)];
            let multipliers = [0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB];
            let layout = Layout { key_bits, slot_bits: 64, levels, multipliers, step: 0xD6E8_FEB8_6659_FD93 };
            for number in 0..1000u64 {
                let key = (number * number * 0x1234_5679 + number) & layout.mask();
                for (level, function) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let (bucket, code) = layout.quotiented(level, function, key);
                    if u128::from(code) < 2 * layout.window(level) && layout.window(level) < 1 << 63 {
                        assert_eq!(layout.key_at(level, bucket, code), Some(key), "{key_bits} bits, level {level}");
                    }
                }
            }
        }
    }
    Ok(())
}

/// Adds one trial of relocation for each scheduler.
fn relocations(group: &mut Group, kernels: &'static Kernels) {
    for strategy in SCHEDULERS {
        let name = format!("relocation::{}::{strategy}", Relocation::new(kernels).name());
        group.explore(name, move || (Box::new(Relocation::new(kernels)), strategy, share(40, 20_000)));
    }
}

/// Adds one trial under contention for each scheduler.
fn crowds(group: &mut Group, kernels: &'static Kernels) {
    for strategy in SCHEDULERS {
        for stale in [false, true] {
            let name = format!("crowd::{}::{strategy}", Crowd::new(kernels, stale).name());
            group.explore(name, move || (Box::new(Crowd::new(kernels, stale)), strategy, share(150, 50_000)));
        }
    }
}

const A: u32 = 0;
const B: u32 = 1;
const C: u32 = 2;

/// Tries every schedule of: two lanes with two operations each on two keys; three lanes with one key each; two warps with one key
/// each. Buckets have one slot, in one round or in two. The table has two buckets and a stash with one slot, plus one slot for
/// keys that are put back.
fn exhaustive(group: &mut Group) {
    let mut add = |make: Box<dyn Fn() -> Exhaustive + Send>, limit: u64| {
        let name = format!("exhaustive::{}", make().name());
        group.explore(name, move || (Box::new(make()), Strategy::Exhaustive, limit));
    };
    for kernels in [compact(12, 16), compact(15, 16), compact(20, 32), compact(33, 32), compact(64, 64)].into_iter().flatten() {
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
    // The stash is nearly full, or full. Keys are equal, or different.
    for kernels in [compact(12, 16), compact(20, 32), compact(64, 64)].into_iter().flatten() {
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
