//! Probabilistic concurrency testing.
//!
//! Burckhardt, Kothari, Musuvathi and Nagarakatti, "A randomized scheduler with probabilistic guarantees of finding bugs" (2010).
//! Lanes have distinct random priorities, and the ready lane with the highest priority makes each step. At d - 1 random steps,
//! the lane that would make the next step falls below all others. A bug of *depth* d shows whenever d certain steps come in a
//! certain order. With n lanes and at most k steps, a run finds the bug with a probability of at least
//!
//!   1 / (n k^(d-1)).
//!
//! The bound holds for interleavings of sequentially consistent steps. If a load may return several values, one is drawn at
//! random, independently of the priorities.

use super::{LaneName, Ready, Scheduler, Staleness};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

pub struct Pct {
    rng: Pcg64Mcg,
    depth: usize,
    /// Estimated number of steps of a run.
    steps: u64,
    step: u64,
    /// Steps at which a priority falls, latest first.
    changes: Vec<u64>,
    /// Priority of each lane; the highest goes first. Priorities that were lowered by a change are below all priorities that were
    /// drawn.
    priorities: Vec<usize>,
    staleness: Staleness,
}

impl Pct {
    /// Creates a scheduler for bugs of up to this depth, in runs of about `steps` steps.
    pub fn new(seed: u64, depth: usize, steps: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let staleness = Staleness::draw(&mut rng);
        Self { rng, depth, steps: steps.max(1), step: 0, changes: Vec::new(), priorities: Vec::new(), staleness }
    }
}

impl Scheduler for Pct {
    fn begin(&mut self, lanes: &[LaneName]) {
        self.step = 0;
        self.priorities = (self.depth..self.depth + lanes.len()).collect();
        self.priorities.shuffle(&mut self.rng);
        self.changes = (1..self.depth).map(|_| self.rng.random_range(0..self.steps)).collect();
        self.changes.sort_unstable_by(|one, other| other.cmp(one));
    }

    fn next(&mut self, ready: &Ready) -> Option<usize> {
        let highest = |priorities: &[usize]| (0..ready.lanes.len()).max_by_key(|at| priorities[ready.lanes[*at]]);
        while self.changes.last().is_some_and(|change| *change <= self.step) {
            self.changes.pop();
            if let Some(at) = highest(&self.priorities) {
                self.priorities[ready.lanes[at]] = self.changes.len();
            }
        }
        self.step += 1;
        highest(&self.priorities)
    }

    fn value(&mut self, options: u32) -> u32 {
        self.staleness.value(&mut self.rng, options)
    }
}
