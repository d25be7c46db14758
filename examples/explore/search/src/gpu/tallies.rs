//! Numbers of the states that violate each condition, counted by the kernel.

use super::search_state::{NONE, Offers, SearchState};
use crate::exploration::{Tally, Violating};
use anyhow::Result;
use std::sync::Arc;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr, ValidAsZeroBits};

/// `explore::Tally` in explore.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub states: u64,
    /// States when the level began.
    pub before: u64,
    /// First finished level with such a state, or `NONE`.
    pub level: u64,
}

// SAFETY: `repr(C)` of integers without padding, as in explore.cu.
unsafe impl DeviceRepr for Counted {}
// SAFETY: all zeros are valid integers.
unsafe impl ValidAsZeroBits for Counted {}

/// The counts of all conditions, in device memory.
pub(super) struct Tallies {
    counted: CudaSlice<Counted>,
}

impl Tallies {
    /// Allocates the counts of `conditions` conditions, which begin with those of `violating`. Sets their address and the first
    /// level with a deadlock in `search`.
    pub fn new(stream: &Arc<CudaStream>, conditions: usize, violating: &Violating, search: &mut SearchState) -> Result<Self> {
        let of = |at| {
            let Tally { states, level } = violating.of_condition(at);
            Counted { states, before: states, level: level.unwrap_or(NONE) }
        };
        let all: Vec<Counted> = (0..conditions.max(1)).map(of).collect();
        let counted = stream.clone_htod(&all)?;
        search.tallies = counted.device_ptr(stream).0;
        search.deadlock_level = violating.deadlocks.level.unwrap_or(NONE);
        Ok(Self { counted })
    }

    /// Reads the counts after the work of the stream. A level that is repeated does not count.
    pub fn read(&self, stream: &Arc<CudaStream>, search: &SearchState, offers: &Offers) -> Result<Violating> {
        let is_repeated = search.is_repeated(offers);
        let all = stream.clone_dtoh(&self.counted)?;
        let level = |level: u64| (level != NONE).then_some(level);
        let of = |one: &Counted| {
            let states = if is_repeated { one.before } else { one.states };
            Tally { states, level: level(one.level) }
        };
        let deadlocks = if is_repeated { search.before[1] } else { search.deadlocks };
        let deadlocks = Tally { states: deadlocks, level: level(search.deadlock_level) };
        Ok(Violating::new(all.iter().map(of).collect(), deadlocks))
    }

    /// Sets the counts to those at the beginning of the level, which is repeated.
    pub fn repeat(&mut self, stream: &Arc<CudaStream>) -> Result<()> {
        let mut all = stream.clone_dtoh(&self.counted)?;
        all.iter_mut().for_each(|one| one.states = one.before);
        Ok(stream.memcpy_htod(&all, &mut self.counted)?)
    }

    /// Numbers of violating states by condition, in a round of a rank; all counts become 0.
    pub fn take(&mut self, stream: &Arc<CudaStream>) -> Result<Vec<u64>> {
        let all = stream.clone_dtoh(&self.counted)?;
        stream.memset_zeros(&mut self.counted)?;
        Ok(all.iter().map(|one| one.states).collect())
    }
}
