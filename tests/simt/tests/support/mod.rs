//! Helpers shared by the tests of all kinds of tables.

use libtest_mimic::{Failed, Trial};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use warpset_simt::explorer::{Program, Strategy, explore};
use warpset_simt::machine::Rules;
use warpset_simt::stress::{Scale, Stress};
use warpset_simt::table::Kernels;

/// Schedulers that choose at random or in lock-step. Each explores every stress trial.
pub const SCHEDULERS: [Strategy; 3] = [Strategy::Random, Strategy::Pct(3), Strategy::LockStep];

/// Whether this is the long run.
pub fn is_long() -> bool {
    warpset_testing::sizes::is_on("WARPSET_SIMT_FULL")
}

/// Number of schedules: `many` in the long run, `few` in the full run, and a tenth of `few` in a plain run.
pub fn share(few: u64, many: u64) -> u64 {
    if is_long() {
        many
    } else if warpset_testing::sizes::full() {
        few
    } else {
        few.div_ceil(10)
    }
}

/// Limit of the schedules of a tiny case. A long or full run completes every case.
pub fn tiny() -> u64 {
    if is_long() || warpset_testing::sizes::full() { u64::MAX } else { 500 }
}

/// Asserts that Rust and C++ agree on the kernels' structures.
pub fn layouts(specs: &[&Kernels]) -> Result<(), Failed> {
    for kernels in specs {
        assert!(kernels.has_the_layouts_of_rust(), "{}", kernels.name());
    }
    Ok(())
}

/// Number of stress trials of each kind in a full run, for each scheduler.
#[derive(Clone, Copy)]
pub struct Few {
    pub lanes: u64,
    pub sequential: u64,
    pub warps: u64,
}

/// Trials of one module. Their names begin with the name of the module.
pub struct Group {
    name: &'static str,
    pub trials: Vec<Trial>,
}

impl Group {
    pub fn new(name: &'static str) -> Self {
        Self { name, trials: Vec::new() }
    }

    /// Adds a trial. With `WARPSET_SIMT_FIRST_FAILURE=1`, trials that begin after another one has failed end at once, because one
    /// failure is enough for a mutant.
    pub fn test(&mut self, name: impl Display, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) {
        // Relaxed, here and below: a trial that misses the store only runs in vain.
        static HAS_FAILED: AtomicBool = AtomicBool::new(false);
        let ends_early = warpset_testing::sizes::is_on("WARPSET_SIMT_FIRST_FAILURE");
        self.trials.push(Trial::test(format!("{}::{name}", self.name), move || {
            if ends_early && HAS_FAILED.load(Relaxed) {
                return Ok(());
            }
            let result = catch_unwind(AssertUnwindSafe(test));
            HAS_FAILED.fetch_or(!matches!(result, Ok(Ok(()))), Relaxed);
            result.unwrap_or_else(|panic| resume_unwind(panic))
        }));
    }

    /// Adds an exploration that must catch nothing. It prints how much it has tried.
    pub fn explore<P: Program + 'static>(
        &mut self,
        name: impl Display,
        make: impl FnOnce() -> (Box<P>, Strategy, u64) + Send + 'static,
    ) {
        self.test(name, || {
            let (mut program, strategy, count) = make();
            match explore(program.as_mut(), strategy, &Rules::default(), 0, count) {
                Ok(effort) => {
                    println!("{}: {strategy}: {effort}", program.name());
                    Ok(())
                }
                Err(catch) => Err(Failed::from(catch.to_string())),
            }
        });
    }

    /// Adds all stress trials of a spec.
    pub fn stress(&mut self, kernels: &'static Kernels, few: Few) {
        self.stress_of_lanes(kernels, few.lanes);
        // If loads return only the newest value, operations are also checked to be linearizable.
        self.stress_of(kernels, Scale::Lanes, false, few.sequential, 100_000);
        self.stress_of_warps(kernels, few.warps);
    }

    /// Adds stress trials of independent lanes.
    pub fn stress_of_lanes(&mut self, kernels: &'static Kernels, few: u64) {
        self.stress_of(kernels, Scale::Lanes, true, few, 100_000);
    }

    /// Adds stress trials of warps with batches, and of concurrent readers and lanes.
    pub fn stress_of_warps(&mut self, kernels: &'static Kernels, few: u64) {
        self.stress_of(kernels, Scale::Warps, true, few, 20_000);
    }

    fn stress_of(&mut self, kernels: &'static Kernels, scale: Scale, stale: bool, few: u64, many: u64) {
        for strategy in SCHEDULERS {
            let name = format!("stress::{}::{strategy}", Stress::new(kernels, scale, stale).name());
            self.explore(name, move || (Box::new(Stress::new(kernels, scale, stale)), strategy, share(few, many)));
        }
    }
}
