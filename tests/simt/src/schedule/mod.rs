//! Schedulers. A scheduler chooses the lane that makes the next step, one of the values that a load may return, and one of the
//! positions that a write may take.

mod exhaustive;
mod lock_step;
mod pct;
mod random;
mod replay;

pub use exhaustive::Exhaustive;
pub use lock_step::LockStep;
pub use pct::Pct;
pub use random::Random;
pub use replay::{Decision, Recorder, Replay, Schedule};

use crate::fault::LaneName;
use crate::request::Request;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Lanes that can make a step.
pub struct Ready<'a> {
    pub lanes: &'a [usize],
    /// Returns the next request of a lane, with the address and size of its next access.
    pub machine: &'a dyn Fn(usize) -> (Request, *mut u8, u32),
}

/// Makes the choices of one run.
pub trait Scheduler {
    /// Called when a run with these lanes begins.
    fn begin(&mut self, lanes: &[LaneName]);

    /// Returns the position in `ready.lanes`, which is not empty, of the lane that makes the next step. `None` abandons the run.
    fn next(&mut self, ready: &Ready) -> Option<usize>;

    /// Chooses among the `options` values that the current load may return, or positions that the current write may take; 0 is
    /// the newest.
    fn value(&mut self, options: u32) -> u32;

    /// Called when these lanes have met in a collective.
    fn met(&mut self, _lanes: &[usize]) {}
}

/// How often loads return old values and writes are placed before newer ones. Each run draws its own share: some bugs need many
/// such accesses, and other bugs are hidden by many such accesses.
#[derive(Clone, Copy, Debug)]
struct Staleness(f64);

impl Staleness {
    fn draw(rng: &mut Pcg64Mcg) -> Self {
        Self([0.0, 0.1, 0.5][rng.random_range(0..3)])
    }

    fn value(self, rng: &mut Pcg64Mcg, options: u32) -> u32 {
        if rng.random_bool(self.0) { rng.random_range(1..options) } else { 0 }
    }
}
