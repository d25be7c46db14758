//! Injects faults for tests: each call that may fail (allocation, launch, copy, wait, compilation, start of a thread) first asks
//! `should_fail` whether it must.
//!
//! Builds without debug assertions inject no fault, and their calls cost nothing more. Each thread has its own plan, so that
//! tests may run side by side.

use std::cell::Cell;
use std::ops::Range;

#[derive(Clone, Copy)]
struct FaultPlan {
    calls: u64,
    fail_first: u64,
    fail_end: u64,
}

thread_local! {
    static PLAN: Cell<FaultPlan> = const { Cell::new(FaultPlan { calls: 0, fail_first: u64::MAX, fail_end: u64::MAX }) };
}

/// Whether the call that is about to be made must fail.
#[inline]
pub(crate) fn should_fail() -> bool {
    cfg!(debug_assertions) && planned()
}

fn planned() -> bool {
    PLAN.with(|plan| {
        let FaultPlan { calls, fail_first, fail_end } = plan.get();
        plan.set(FaultPlan { calls: calls + 1, fail_first, fail_end });
        (fail_first..fail_end).contains(&calls)
    })
}

/// Message of a call that fails on purpose.
pub(crate) const ON_PURPOSE: &str = "made to fail by a test";

/// Runs `run`, whose calls with the numbers `calls` fail, counted from 0. Returns the result of `run` and the number of its
/// calls.
///
/// # Panics
///
/// In a build without debug assertions, where a test that needs faults would prove nothing.
#[doc(hidden)]
pub fn fail<T>(calls: Range<u64>, run: impl FnOnce() -> T) -> (T, u64) {
    struct Restore(FaultPlan);
    impl Drop for Restore {
        fn drop(&mut self) {
            PLAN.set(self.0);
        }
    }
    if !cfg!(debug_assertions) {
        panic!("faults need a build with debug assertions");
    }
    let before = PLAN.replace(FaultPlan { calls: 0, fail_first: calls.start, fail_end: calls.end });
    let _restore = Restore(before);
    let result = run();
    (result, PLAN.get().calls)
}

/// Runs `run` without faults. Returns its result and the number of its calls that could fail.
#[doc(hidden)]
pub fn count<T>(run: impl FnOnce() -> T) -> (T, u64) {
    fail(u64::MAX..u64::MAX, run)
}
