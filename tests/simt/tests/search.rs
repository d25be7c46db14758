//! The model checker's kernels on the simulated GPU, under random schedules and in lock-step. (Blocks wait for each other at the
//! end of a level. PCT prefers one lane permanently, so they would wait for ever.)
//!
//! Numbers of schedules as in tests/bucket.rs: `cargo test` tries a share, `WARPSET_SIMT_FULL=1 cargo test --release -p
//! warpset-simt` more.
//!
//! Keeps this promise of `examples/explore/docs/engines.md`:
//!
//! - The kernels of the model checker find the same as plain loops, under every schedule.

#[allow(dead_code)] // for functions that only the tests of tables need
mod support;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use support::{share, trial};
use warpset_simt::explorer::Strategy;
use warpset_simt::search::{RandomSearch, What};

fn main() -> ExitCode {
    let mut trials: Vec<Trial> = Vec::new();
    for (name, what) in [("system", What::System), ("rows", What::Rows), ("product", What::Product), ("level", What::Level)] {
        for strategy in [Strategy::Random, Strategy::LockStep] {
            let make = move || (Box::new(RandomSearch::new(what)), strategy, share(150, 20_000));
            trials.push(trial(format!("search::{name}::{strategy}"), make));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
