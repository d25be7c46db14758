//! The kernels of a cluster's rank on the simulated GPU, under random, PCT and lock-step schedules.
//!
//! Numbers of schedules as in tests/bucket.rs: `cargo test` tries a share, `WARPSET_SIMT_FULL=1 cargo test --release -p
//! warpset-simt` more.
//!
//! Keeps this promise of `src/docs/several_gpus.md`:
//!
//! - Representatives, runs (including runs that are too long at first) and answers are right under every schedule.

#[allow(dead_code)] // for functions that only the tests of tables need
mod support;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use support::{share, trial};
use warpset_simt::explorer::Strategy;
use warpset_simt::partition::{Partition, has_the_layouts_of_rust};

fn main() -> ExitCode {
    let mut trials = vec![Trial::test("layouts", || {
        assert!(has_the_layouts_of_rust());
        Ok(())
    })];
    for strategy in [Strategy::Random, Strategy::Pct(3), Strategy::LockStep] {
        let make = move || (Box::new(Partition::default()), strategy, share(600, 100_000));
        trials.push(trial(format!("partition::{strategy}"), make));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
