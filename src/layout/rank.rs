//! Data that a rank of a cluster gives to its machine: the views that cross to cuda/warpset/cluster/partition.cuh, kernels and
//! streams.

use bytemuck::{Pod, Zeroable};

/// `warpset::PartitionView`. Addresses are in the memory of the rank's device, or 0. Public for the simulated GPU of the tests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct PartitionView {
    pub vectors: u64,
    pub count: u64,
    pub seeds: u64,
    pub hash_mask: u64,
    pub bounds: u64,
    pub slots: u64,
    pub representatives: u64,
    pub cursors: u64,
    pub capacities: u64,
    pub runs: u64,
    pub answers: u64,
    pub places: u64,
    pub replies: u64,
    pub outcomes: u64,
    pub references: u64,
    pub owners: u64,
    pub totals: u64,
    pub width: u32,
    pub ranks: u32,
    pub slot_mask: u32,
    pub with_references: u32,
}

/// `warpset::Stamp`: the first words of a message. `at` is the position of these words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Stamp {
    pub magic: u64,
    pub sequence: u64,
    pub kind: u32,
    pub from: u32,
    pub to: u32,
    pub width: u32,
    pub rows: u64,
    pub bytes: u64,
    pub at: u64,
}

/// `warpset::StampView`.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct StampView {
    pub stamps: u64,
    pub count: u64,
    pub wrong: u64,
    pub cursors: u64,
}

/// Messages begin at multiples of this number of bytes: `message_line_bytes` of partition.cuh.
pub(crate) const LINE_BYTES: u64 = 128;

/// Sizes of the views that cross, as in `warpset_cluster_abi`.
pub(crate) const ABI: [u32; 3] = [size_of::<PartitionView>() as u32, size_of::<Stamp>() as u32, size_of::<StampView>() as u32];

/// Kernels of a rank. The first four take a partition, the others stamps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    Claim,
    Scatter,
    GatherPut,
    GatherFound,
    WriteStamps,
    CheckStamps,
}

/// Number of rounds that may be under way at the same time: one is sorted, one exchanged, and one put or answered.
pub(crate) const ROUNDS: usize = 3;

/// An in-order queue of a rank's machine: one stream for each round under way, one for the puts of all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Round(usize),
    Puts,
}
