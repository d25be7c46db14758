//! Helpers shared by the tests of all kinds of tables.

use libtest_mimic::{Failed, Trial};
use warpset_simt::explorer::{Program, Strategy, explore};
use warpset_simt::machine::Rules;
use warpset_simt::stress::{Scale, Stress};
use warpset_simt::table::Kernels;

/// Number of schedules: a sixth of `few` in a plain run, `few` with `WARPSET_TEST_FULL=1`, `many` in the long run.
pub fn share(few: u64, many: u64) -> u64 {
    if warpset_testing::sizes::is_on("WARPSET_SIMT_FULL") {
        many
    } else if warpset_testing::sizes::full() {
        few
    } else {
        few.div_ceil(6)
    }
}

/// Asserts that Rust and C++ agree on the kernels' structures.
pub fn layouts(specs: &[&Kernels]) -> Result<(), Failed> {
    for kernels in specs {
        assert!(kernels.has_the_layouts_of_rust(), "{}", kernels.name());
    }
    Ok(())
}

/// Stress trials of each kind in a test run, for each scheduler.
#[derive(Clone, Copy)]
pub struct Few {
    pub lanes: u64,
    pub sequential: u64,
    pub warps: u64,
}

/// All stress trials of a spec.
pub fn stress(kernels: &'static Kernels, few: Few) -> Vec<Trial> {
    // Where loads see only the newest value, operations are also checked to be linearizable.
    let mut trials = stress_of_lanes(kernels, few.lanes);
    trials.extend(stress_of(kernels, Scale::Lanes, false, few.sequential, 100_000));
    trials.extend(stress_of_warps(kernels, few.warps));
    trials
}

/// Stress trials of independent lanes.
pub fn stress_of_lanes(kernels: &'static Kernels, few: u64) -> Vec<Trial> {
    stress_of(kernels, Scale::Lanes, true, few, 100_000)
}

/// Stress trials of warps with batches, and of concurrent readers and lanes.
pub fn stress_of_warps(kernels: &'static Kernels, few: u64) -> Vec<Trial> {
    stress_of(kernels, Scale::Warps, true, few, 20_000)
}

/// One trial per scheduler.
fn stress_of(kernels: &'static Kernels, scale: Scale, stale: bool, few: u64, many: u64) -> Vec<Trial> {
    let mut trials = Vec::new();
    for strategy in [Strategy::Random, Strategy::Pct(3), Strategy::LockStep] {
        let name = format!("stress::{}::{strategy}", Stress::new(kernels, scale, stale).name());
        trials.push(trial(name, move || (Box::new(Stress::new(kernels, scale, stale)), strategy, share(few, many))));
    }
    trials
}

/// An exploration that must catch nothing; prints how much it tried.
pub fn trial<P: Program + 'static>(name: String, make: impl FnOnce() -> (Box<P>, Strategy, u64) + Send + 'static) -> Trial {
    Trial::test(name, || {
        let (mut program, strategy, count) = make();
        match explore(program.as_mut(), strategy, &Rules::default(), 0, count) {
            Ok(effort) => {
                println!("{}: {strategy}: {effort}", program.name());
                Ok(())
            }
            Err(catch) => Err(Failed::from(catch.to_string())),
        }
    })
}
