//! What runs the kernels (kernels.cuh): a GPU, or threads of a CPU.

use super::graph::Graph;
use anyhow::Result;
use bytemuck::{Pod, Zeroable};

/// The kernels, in the order of kernels.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kernel {
    CountIn,
    SumParts,
    ScanParts,
    ScatterIn,
    CountDegrees,
    SeedTrim,
    Trim,
    Tally,
    SeedSearch,
    Search,
    CloseSearch,
    BeginSignatures,
    Propagate,
    Settle,
    FindSmallest,
    TakeSmallest,
    BeginChoices,
    RemoveLeaving,
    Cascade,
    FlagMembers,
    CollectMembers,
    WriteEdges,
    TakeComponents,
}

impl Kernel {
    pub const COUNT: usize = Self::TakeComponents as usize + 1;
}

/// `decompose::Progress` in kernels.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Progress {
    pub counts: [u64; 2],
    pub which: u64,
    pub levels: u64,
    pub most_levels: u64,
    pub narrow: u64,
    pub sweep_from: u64,
    pub plan: u64,
    pub pivot: u64,
    pub live: u64,
    pub arrived: u32,
    pub generation: u32,
}

/// `decompose::Work` in kernels.cuh: addresses in the machine's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Work {
    pub states: u64,
    pub edges: u64,
    pub offsets: u64,
    pub targets: u64,
    pub in_offsets: u64,
    pub sources: u64,
    pub label: u64,
    pub region: u64,
    pub first: u64,
    pub second: u64,
    pub mark: u64,
    pub queue: [u64; 2],
    pub progress: u64,
    pub bit: u32,
    pub needed: u32,
    pub sums: u64,
    pub scanned: u64,
    pub scanned_count: u64,
    pub choice_offsets: u64,
    pub edge_offsets: u64,
    pub ranks: u64,
    pub component: u64,
    pub left: u64,
    pub removed: u64,
    pub touched: u64,
    pub list: u64,
    pub list_count: u64,
    pub members: u64,
    pub sub_offsets: u64,
    pub sub_targets: u64,
}

impl Work {
    /// With all transitions turned round.
    pub fn backwards(self) -> Self {
        let Self { offsets, targets, in_offsets, sources, .. } = self;
        Self { offsets: in_offsets, targets: sources, in_offsets: offsets, sources: targets, ..self }
    }
}

/// A machine, over a graph that outlives it.
pub trait Machine<'g> {
    /// Some of its memory.
    type Buffer;

    /// Bytes of what they may be; at least one.
    ///
    /// # Errors
    ///
    /// There is no memory for them.
    fn allocate(&self, bytes: u64) -> Result<Self::Buffer>;

    /// What the host has, to be read by kernels.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    fn share(&self, data: &'g [u8]) -> Result<Self::Buffer>;

    /// Bytes of its memory that it takes to share a graph.
    fn bytes_to_share(&self, graph: &Graph) -> u64;

    /// Where kernels find it.
    fn address(&self, buffer: &Self::Buffer) -> u64;

    /// Sets the first so many bytes.
    fn fill(&self, buffer: &Self::Buffer, bytes: u64, value: u8) -> Result<()>;

    /// Writes bytes from the place `at` on.
    fn write(&self, buffer: &Self::Buffer, at: u64, data: &[u8]) -> Result<()>;

    /// Reads the first bytes, when all kernels before have ended.
    fn read(&self, buffer: &Self::Buffer, data: &mut [u8]) -> Result<()>;

    /// Runs a kernel, after those before it.
    ///
    /// # Safety
    ///
    /// All addresses that the kernel uses are of buffers of this machine that are as long as `work` says and have not been
    /// dropped, and nothing else uses them until it has ended.
    unsafe fn launch(&self, kernel: Kernel, work: &Work) -> Result<()>;

    /// Blocks of every kernel.
    fn blocks(&self) -> u64;

    /// States of a level that one block does alone.
    fn narrow(&self) -> u64;

    /// Bytes that may still be allocated.
    fn free(&self) -> Result<u64>;
}
