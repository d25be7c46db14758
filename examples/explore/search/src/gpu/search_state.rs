//! State of a search and its limits, shared by the host and the kernel (explore.cu).

use crate::measurements::Cycles;
use warpset::gpu::cudarc_0_19::cudarc::driver::{DeviceRepr, ValidAsZeroBits};

pub(super) use warpset::gpu::Counts as Offers;

/// No state, level or reference.
pub(super) const NONE: u64 = u64::MAX;

/// `explore::SearchState` in explore.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SearchState {
    pub first: u64,
    pub last: u64,
    pub next: u64,
    pub tile: u64,
    pub levels: u64,
    pub widest: u64,
    pub size: u64,
    pub listed: u64,
    pub transitions: u64,
    pub deadlocks: u64,
    pub overflows: u64,
    pub found: u64,
    pub found_level: u64,
    pub faulty: u64,
    pub going: u64,
    /// Transitions, deadlocks and overflows when the level began.
    pub before: [u64; 3],
    /// For a rank: capacity of its offers in rows.
    pub room: u64,
    /// Whether there was no room in `order`: the level must be repeated.
    pub crowded: u64,
    /// For a rank: rows reserved, rows written, and most steps of a state.
    pub reserved: u64,
    pub offered: u64,
    pub most_steps: u64,
    pub cycles: Cycles,
    pub arrived: u32,
    pub generation: u32,
    /// First finished level with a deadlock, or `NONE`.
    pub deadlock_level: u64,
    /// Address of the counts of violating states.
    pub tallies: u64,
}

/// `explore::Limits` in explore.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelLimits {
    pub states: u64,
    pub levels: u64,
    pub nanoseconds: u64,
    /// Number of states in `order` up to which blocks put more.
    pub room: u64,
    pub deadlocks: u32,
    pub keep_going: u32,
}

// SAFETY: `repr(C)` of integers without padding, as in explore.cu.
unsafe impl DeviceRepr for SearchState {}
// SAFETY: all zeros are valid integers.
unsafe impl ValidAsZeroBits for SearchState {}
// SAFETY: `repr(C)` of integers without padding, as in explore.cu.
unsafe impl DeviceRepr for KernelLimits {}
