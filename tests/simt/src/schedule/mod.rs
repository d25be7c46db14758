//! Which lane makes the next step, which of the values that it may see a load sees, and which of its places a write takes.

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

/// The lanes that can make a step.
pub struct Ready<'a> {
    pub lanes: &'a [usize],
    /// What a lane will do: its request, and where its next access is, and how large.
    pub machine: &'a dyn Fn(usize) -> (Request, *mut u8, u32),
}

/// Makes the choices of one run.
pub trait Scheduler {
    /// A run with these lanes begins.
    fn begin(&mut self, lanes: &[LaneName]);

    /// The position in `ready.lanes`, which is not empty, of the lane that makes the next step; none to abandon the run.
    fn next(&mut self, ready: &Ready) -> Option<usize>;

    /// Which of the `options` values the load that has just been named sees, or which place the write takes: 0 is the newest.
    fn value(&mut self, options: u32) -> u32;

    /// These lanes have met in a collective.
    fn met(&mut self, _lanes: &[usize]) {}
}

/// How often loads see old values and writes are placed before newer ones. Each run draws its own share: some bugs need many, and
/// many hide others.
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
