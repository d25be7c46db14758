//! The model checker's kernels on the simulated GPU, under random schedules and in lock-step. (PCT would not end: blocks wait for
//! each other at the end of a level, but PCT always prefers one lane.)
//!
//! bucket.rs says how many specs and schedules are tested.
//!
//! Keeps this promise of `examples/explore/docs/engines.md`:
//!
//! - The kernels of the model checker find the same as plain loops, under every schedule.

use crate::support::{Group, share};
use libtest_mimic::Trial;
use warpset_simt::explorer::Strategy;
use warpset_simt::search::{RandomSearch, What};

pub fn trials() -> Vec<Trial> {
    let mut group = Group::new("search");
    for (name, what) in [("system", What::System), ("rows", What::Rows), ("product", What::Product), ("level", What::Level)] {
        for strategy in [Strategy::Random, Strategy::LockStep] {
            let make = move || (Box::new(RandomSearch::new(what)), strategy, share(150, 20_000));
            group.explore(format!("{name}::{strategy}"), make);
        }
    }
    group.trials
}
