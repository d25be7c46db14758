//! The machines that run the kernels (work.cuh): a GPU, or CPU threads.

use super::graph::Graph;
use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use warpset_support::memory::MemoryBudget;

/// The kernels, in the order of kernels.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kernel {
    CountIn,
    Scan,
    ScatterIn,
    CountDegrees,
    SeedTrim,
    Trim,
    Tally,
    EnterOne,
    Search,
    CloseOne,
    Elect,
    EnterPivots,
    Spread,
    ClosePivots,
    BeginColours,
    Propagate,
    EnterColours,
    CloseColours,
    FindSmallest,
    TakeSmallest,
    BeginChoices,
    RemoveLeaving,
    Cascade,
    FlagMembers,
    CollectMembers,
    WriteEdges,
    TakeRegions,
    TakeComponents,
    LeaveOut,
    CountPairs,
    ScatterPairs,
    MarkComponents,
    FindPath,
    FollowPath,
}

impl Kernel {
    /// All kernels, in their order.
    pub const ALL: [Self; 34] = [
        Self::CountIn,
        Self::Scan,
        Self::ScatterIn,
        Self::CountDegrees,
        Self::SeedTrim,
        Self::Trim,
        Self::Tally,
        Self::EnterOne,
        Self::Search,
        Self::CloseOne,
        Self::Elect,
        Self::EnterPivots,
        Self::Spread,
        Self::ClosePivots,
        Self::BeginColours,
        Self::Propagate,
        Self::EnterColours,
        Self::CloseColours,
        Self::FindSmallest,
        Self::TakeSmallest,
        Self::BeginChoices,
        Self::RemoveLeaving,
        Self::Cascade,
        Self::FlagMembers,
        Self::CollectMembers,
        Self::WriteEdges,
        Self::TakeRegions,
        Self::TakeComponents,
        Self::LeaveOut,
        Self::CountPairs,
        Self::ScatterPairs,
        Self::MarkComponents,
        Self::FindPath,
        Self::FollowPath,
    ];

    /// Name of the kernel in kernels.cuh.
    pub fn name(self) -> &'static str {
        match self {
            Self::CountIn => "count_in",
            Self::Scan => "scan",
            Self::ScatterIn => "scatter_in",
            Self::CountDegrees => "count_degrees",
            Self::SeedTrim => "seed_trim",
            Self::Trim => "trim",
            Self::Tally => "tally",
            Self::EnterOne => "enter_one",
            Self::Search => "search",
            Self::CloseOne => "close_one",
            Self::Elect => "elect",
            Self::EnterPivots => "enter_pivots",
            Self::Spread => "spread",
            Self::ClosePivots => "close_pivots",
            Self::BeginColours => "begin_colours",
            Self::Propagate => "propagate",
            Self::EnterColours => "enter_colours",
            Self::CloseColours => "close_colours",
            Self::FindSmallest => "find_smallest",
            Self::TakeSmallest => "take_smallest",
            Self::BeginChoices => "begin_choices",
            Self::RemoveLeaving => "remove_leaving",
            Self::Cascade => "cascade",
            Self::FlagMembers => "flag_members",
            Self::CollectMembers => "collect_members",
            Self::WriteEdges => "write_edges",
            Self::TakeRegions => "take_regions",
            Self::TakeComponents => "take_components",
            Self::LeaveOut => "leave_out",
            Self::CountPairs => "count_pairs",
            Self::ScatterPairs => "scatter_pairs",
            Self::MarkComponents => "mark_components",
            Self::FindPath => "find_path",
            Self::FollowPath => "follow_path",
        }
    }

    /// Whether the kernel's blocks wait for each other ("meet"), so that all of them must run at the same time.
    pub fn meets(self) -> bool {
        match self {
            Self::Trim | Self::Search | Self::Spread | Self::Propagate | Self::Cascade | Self::FindPath => true,
            // Blocks meet after each block has summed its part, and before it computes the sums within the part.
            Self::Scan => true,
            // Blocks meet before the pieces of heavy states.
            Self::ScatterIn | Self::CountDegrees | Self::RemoveLeaving | Self::CollectMembers | Self::WriteEdges => true,
            Self::MarkComponents => true,
            _ => false,
        }
    }
}

/// Mirrors `decompose::Level` in work.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Level {
    pub count: u64,
    pub pieces: u64,
    pub done: u64,
    pub unused: u64,
}

/// Mirrors `decompose::LevelProgress` in work.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct LevelProgress {
    pub levels: [Level; 3],
    pub step: u64,
    pub pivot: u64,
    pub live: u64,
    pub missed: u64,
    pub total: u64,
    pub arrived: u64,
    pub edges: u64,
}

impl LevelProgress {
    /// Returns the level at which the next kernel begins.
    pub fn next(&self) -> Level {
        self.levels[(self.step + 1) as usize % 3]
    }
}

/// Mirrors `decompose::Work` in work.cuh. Addresses are in the machine's memory.
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
    pub known: u64,
    pub first: u64,
    pub second: u64,
    pub ballot: u64,
    pub queue: [u64; 2],
    pub pieces: [u64; 2],
    pub piece_capacity: u64,
    pub piece: u64,
    pub progress: u64,
    pub most_levels: u64,
    pub narrow: u64,
    pub sweep_from: u64,
    pub bit: u64,
    pub round: u64,
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
    pub pairs: u64,
    pub kinds: u64,
    pub from: u64,
}

impl Work {
    /// Returns the work with all transitions reversed.
    pub fn backwards(self) -> Self {
        let Self { offsets, targets, in_offsets, sources, .. } = self;
        Self { offsets: in_offsets, targets: sources, in_offsets: offsets, sources: targets, ..self }
    }
}

/// A machine for graphs. Graphs outlive the machine.
pub trait Machine<'g> {
    /// Memory of the machine.
    type Buffer;

    /// Allocates `bytes` bytes, at least one. Their content is undefined.
    ///
    /// # Errors
    ///
    /// Memory does not suffice.
    fn allocate(&self, bytes: u64) -> Result<Self::Buffer>;

    /// Makes host data readable for kernels.
    ///
    /// # Errors
    ///
    /// Memory does not suffice.
    fn share(&self, data: &'g [u8]) -> Result<Self::Buffer>;

    /// Bytes of the machine's memory that are needed to share a graph.
    fn bytes_to_share(&self, graph: &Graph) -> u64;

    /// Address of a buffer for kernels.
    fn address(&self, buffer: &Self::Buffer) -> u64;

    /// Sets the first `bytes` bytes of a buffer to `value`.
    fn fill(&self, buffer: &Self::Buffer, bytes: u64, value: u8) -> Result<()>;

    /// Writes `data` to a buffer from byte `at` on.
    fn write(&self, buffer: &Self::Buffer, at: u64, data: &[u8]) -> Result<()>;

    /// Reads the first bytes of a buffer, after all kernels that were launched before have ended.
    fn read(&self, buffer: &Self::Buffer, data: &mut [u8]) -> Result<()>;

    /// Runs a kernel, after all kernels that were launched before.
    ///
    /// # Safety
    ///
    /// All addresses that the kernel uses must be in buffers of this machine that are as long as `work` requires and have not
    /// been dropped. Nothing else may use them until the kernel has ended.
    unsafe fn launch(&self, kernel: Kernel, work: &Work) -> Result<()>;

    /// Number of blocks with which every kernel runs.
    fn blocks(&self) -> u64;

    /// Maximum number of states of a level that one block takes alone.
    fn narrow(&self) -> u64;

    /// Maximum number of edges of a piece, and of a state that one block takes alone.
    fn piece(&self) -> u64;

    /// Memory that can still be allocated.
    fn memory_budget(&self) -> Result<MemoryBudget>;
}
