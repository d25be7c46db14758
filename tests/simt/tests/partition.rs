//! The kernels of a cluster's rank on the simulated GPU, under random, PCT and lock-step schedules.
//!
//! bucket.rs says how many specs and schedules are tested.
//!
//! Keeps this promise of `src/docs/several_gpus.md`:
//!
//! - Representatives, runs (including runs that are too long at first) and answers are right under every schedule.

use crate::support::{Group, SCHEDULERS, share};
use libtest_mimic::Trial;
use warpset_simt::partition::{Partition, has_the_layouts_of_rust};

pub fn trials() -> Vec<Trial> {
    let mut group = Group::new("partition");
    group.test("layouts", || {
        assert!(has_the_layouts_of_rust());
        Ok(())
    });
    for strategy in SCHEDULERS {
        let make = move || (Box::new(Partition::default()), strategy, share(600, 100_000));
        group.explore(strategy.to_string(), make);
    }
    group.trials
}
