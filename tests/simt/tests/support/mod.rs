//! What the tests of both kinds of tables have in common.

use libtest_mimic::{Failed, Trial};
use warpset_simt::hunt::{Program, Strategy, hunt};
use warpset_simt::machine::Rules;
use warpset_simt::storm::{Scale, Storm};
use warpset_simt::table::Kernels;

/// How many schedules: few in a test run, many in the full run.
pub fn share(few: u64, many: u64) -> u64 {
    if std::env::var_os("WARPSET_SIMT_FULL").is_some() { many } else { few }
}

/// Rust and C++ agree on the structures that kernels get.
pub fn layouts(specs: &[&Kernels]) -> Result<(), Failed> {
    for kernels in specs {
        assert!(kernels.has_the_layouts_of_rust(), "{}", kernels.name());
    }
    Ok(())
}

/// Storms of each kind in a test run, for each scheduler.
#[derive(Clone, Copy)]
pub struct Few {
    pub lanes: u64,
    pub sequential: u64,
    pub warps: u64,
}

pub fn storms(kernels: &'static Kernels, few: Few) -> Vec<Trial> {
    let mut trials = Vec::new();
    // Where loads see only the newest value, operations are also checked to be linearizable.
    let kinds = [
        (Scale::Lanes, true, few.lanes, 100_000),
        (Scale::Lanes, false, few.sequential, 100_000),
        (Scale::Warps, true, few.warps, 20_000),
    ];
    for (scale, stale, few, many) in kinds {
        for strategy in [Strategy::Random, Strategy::Pct(3), Strategy::LockStep] {
            let name = format!("storm::{}::{strategy}", Storm::new(kernels, scale, stale).name());
            trials.push(trial(name, move || (Box::new(Storm::new(kernels, scale, stale)), strategy, share(few, many))));
        }
    }
    trials
}

/// A hunt that must catch nothing; says how much it tried.
pub fn trial<P: Program + 'static>(name: String, make: impl FnOnce() -> (Box<P>, Strategy, u64) + Send + 'static) -> Trial {
    Trial::test(name, || {
        let (mut program, strategy, count) = make();
        match hunt(program.as_mut(), strategy, &Rules::default(), 0, count) {
            Ok(effort) => {
                println!("{}: {strategy}: {effort}", program.name());
                Ok(())
            }
            Err(catch) => Err(Failed::from(catch.to_string())),
        }
    })
}
