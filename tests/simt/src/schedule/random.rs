//! Uniformly random schedules.

use super::{LaneName, Ready, Scheduler, Staleness};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Each step is made by a random ready lane; all ready lanes are equally likely. With a probability that is drawn for each run,
/// the lane of the previous step continues instead, so that long stretches of one lane are common, too.
pub struct Random {
    rng: Pcg64Mcg,
    stays: f64,
    staleness: Staleness,
    last: usize,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let stays = [0.0, 0.5, 0.9][rng.random_range(0..3)];
        let staleness = Staleness::draw(&mut rng);
        Self { rng, stays, staleness, last: usize::MAX }
    }
}

impl Scheduler for Random {
    fn begin(&mut self, _: &[LaneName]) {}

    fn next(&mut self, ready: &Ready) -> Option<usize> {
        let stay = self.rng.random_bool(self.stays);
        let same = ready.lanes.iter().position(|lane| stay && *lane == self.last);
        let at = same.unwrap_or_else(|| self.rng.random_range(0..ready.lanes.len()));
        self.last = ready.lanes[at];
        Some(at)
    }

    fn value(&mut self, options: u32) -> u32 {
        self.staleness.value(&mut self.rng, options)
    }
}
