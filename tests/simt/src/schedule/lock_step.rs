//! Warps in lock-step, as before Volta: no independent thread scheduling.
//!
//! The lanes of a warp that are at the same site in the program execute it together. If they diverge, one group continues alone
//! until it reaches the site of the others, reaches a collective, or ends. The others wait, however long that takes. On a GPU the
//! compiler determines which group goes first; here the choice is random. Warps interleave at random, one instruction at a time.

use super::{LaneName, Ready, Scheduler, Staleness};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

pub struct LockStep {
    rng: Pcg64Mcg,
    staleness: Staleness,
    /// By lane, its warp. The warps of all blocks are numbered consecutively.
    warps: Vec<usize>,
    /// By warp, the lanes of the group that continues alone; empty if the warp has not diverged.
    groups: Vec<Vec<usize>>,
    /// Lanes that still have to make the instruction that is being executed.
    instruction: Vec<usize>,
}

impl LockStep {
    pub fn new(seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let staleness = Staleness::draw(&mut rng);
        Self { rng, staleness, warps: Vec::new(), groups: Vec::new(), instruction: Vec::new() }
    }

    /// Returns the lanes of a warp's current group, by position in `ready`.
    fn group(&mut self, warp: usize, ready: &Ready) -> Vec<usize> {
        let lanes: Vec<usize> = ready.lanes.iter().copied().filter(|lane| self.warps[*lane] == warp).collect();
        let site = |lane: usize| (ready.machine)(lane).0.site;
        if lanes.iter().all(|lane| site(*lane) == site(lanes[0])) {
            self.groups[warp].clear(); // the groups have met again
            return lanes;
        }
        self.groups[warp].retain(|lane| lanes.contains(lane));
        // A group may diverge, too: a part of it continues, and the rest joins the waiting lanes.
        let group = if self.groups[warp].is_empty() { &lanes } else { &self.groups[warp] };
        let leader = site(group[self.rng.random_range(0..group.len())]);
        self.groups[warp] = lanes.into_iter().filter(|lane| site(*lane) == leader).collect();
        self.groups[warp].clone()
    }
}

impl Scheduler for LockStep {
    fn begin(&mut self, lanes: &[LaneName]) {
        let mut warps: Vec<_> = lanes.iter().map(|lane| (lane.grid, lane.block, lane.warp)).collect();
        let all = warps.clone();
        warps.dedup();
        self.warps = all.iter().map(|warp| warps.iter().position(|other| other == warp).unwrap_or_default()).collect();
        self.groups = vec![Vec::new(); warps.len()];
    }

    fn next(&mut self, ready: &Ready) -> Option<usize> {
        loop {
            while let Some(lane) = self.instruction.pop() {
                if let Some(at) = ready.lanes.iter().position(|other| *other == lane) {
                    return Some(at);
                }
            }
            let lane = ready.lanes[self.rng.random_range(0..ready.lanes.len())];
            self.instruction = self.group(self.warps[lane], ready);
            self.instruction.shuffle(&mut self.rng);
        }
    }

    fn value(&mut self, options: u32) -> u32 {
        self.staleness.value(&mut self.rng, options)
    }
}
