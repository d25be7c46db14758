//! The structs that cross to C++ and CUDA. tests/abi.rs checks every field on every machine.

use crate::{Spec, Tally};
use bytemuck::{Pod, Zeroable};

/// `warpset::TableView` of bucket/table.cuh. Addresses are of the table's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct TableView {
    /// Where the slots are.
    pub slots: u64,
    /// How many buckets; prime.
    pub buckets: u64,
    /// Where the seeds of the hash are: `width + 1` pairs of `u64`.
    pub seeds: u64,
    /// Where the number of stored vectors is.
    pub stored: u64,
    /// All ones, but in tests of bad luck.
    pub hash_mask: u64,
    /// The EMPTY pattern.
    pub empty: [u32; 4],
    /// Buckets looked at before Full.
    pub probe_limit: u32,
    /// Words a vector.
    pub width: u32,
}

/// `warpset::NodeView` of tree/nodes.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct NodeView {
    /// Where the slots are: two a bucket, and one more.
    pub slots: u64,
    /// Where the number of stored nodes is.
    pub stored: u64,
    /// Seeds of the hash.
    pub seeds: [u64; 3],
    /// How many buckets; prime.
    pub buckets: u32,
    /// Buckets looked at before a node is missing.
    pub probe_limit: u32,
    /// All ones, but in tests of bad luck.
    pub hash_mask: u32,
    /// Words of the vectors whose trees these are; 0 if the table has no nodes.
    pub width: u32,
}

/// `warpset::TreeView` of tree/table.cuh. A bucket table has the first part only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct TreeView {
    /// The bucket table; of a tree table, that of the root pairs.
    pub roots: TableView,
    /// The node table.
    pub nodes: NodeView,
}

/// `warpset::HashView` of compact/permutation.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct HashView {
    /// Odd.
    pub multipliers: [u64; 3],
    /// Of `multipliers`, modulo 2^64.
    pub inverses: [u64; 3],
    /// Odd.
    pub step: u64,
    /// Of keys and hashes.
    pub bits: u32,
    /// Words of the vectors that are keys.
    pub width: u32,
}

/// `warpset::LevelView` of compact/table.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct LevelView {
    /// Where the slots are.
    pub slots: u64,
    /// The most hashes that a bucket stands for.
    pub window: u64,
    /// (2^64 - 1) / window.
    pub window_inverse: u64,
    /// 2^64 / buckets.
    pub start: u64,
    /// Byte r: the slots of a bucket that rounds 0 to r may take.
    pub limits: u64,
    /// The 32 bits after the point of `start`.
    pub start_fraction: u32,
    /// How many buckets.
    pub buckets: u32,
    /// How many functions of the hash family are used.
    pub functions: u32,
    /// The first of them.
    pub first_function: u32,
    /// How many rounds a find-or-put may take; 0 if there is no such level.
    pub rounds: u32,
    /// How many a key that is put back may take.
    pub all_rounds: u32,
}

/// `warpset::CompactView` of compact/table.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CompactView {
    /// Where most keys are.
    pub main: LevelView,
    /// Where those are that find no place there.
    pub stash: LevelView,
    /// The hash family.
    pub hash: HashView,
    /// Where the number of stored keys is.
    pub stored: u64,
}

/// `warpset::ProbeTotals` of batch/maintenance.cuh.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ProbeTotals {
    pub longest: u64,
    pub node_probes: u64,
}

/// `warpset::Relocated` of compact/relocation.cuh.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Relocated {
    pub taken: u64,
    pub left_over: u64,
}

/// `warpset::CompactTreeView` of tree/table.cuh. A compact table that is no tree's has the first part only; of vectors of one or two words,
/// which are no trees, it begins with a [`TableView`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CompactTreeView {
    /// The compact table; of a tree table, that of the root pairs.
    pub roots: CompactView,
    /// The node table.
    pub nodes: NodeView,
}

/// The views of all kinds of tables, of which a table has one; the others are zeros. `Views` in cpu_tables.cpp.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Views {
    pub tree: TreeView,
    pub compact: CompactTreeView,
    /// Of a compact table; else 0.
    pub slot_bits: u32,
    /// Of a tree table: `warpset::Pairing` of tree/shape.cuh.
    pub pairing: u32,
}

impl Views {
    /// The kernels' argument begins here.
    #[cfg(feature = "cuda")]
    pub(crate) fn argument(&self) -> &u64 {
        if self.slot_bits == 0 { &self.tree.roots.slots } else { &self.compact.roots.main.slots }
    }

    /// Of a cuckoo table: the same for a find-or-put of keys that are put back (compact/relocation.cuh). Nothing else may use the table at the same time.
    pub(crate) fn to_put_back(mut self) -> Self {
        let stash = &mut self.compact.roots.stash;
        stash.rounds = stash.all_rounds;
        self
    }

    /// Buckets of the node table; 0 if there is none.
    #[cfg(feature = "cuda")]
    pub(crate) fn node_buckets(&self) -> u64 {
        u64::from(self.tree.nodes.buckets.max(self.compact.nodes.buckets))
    }
}

impl From<Views> for TableView {
    fn from(views: Views) -> Self {
        views.tree.roots
    }
}

impl From<Views> for TreeView {
    fn from(views: Views) -> Self {
        views.tree
    }
}

impl From<Views> for CompactView {
    fn from(views: Views) -> Self {
        views.compact.roots
    }
}

impl From<Views> for CompactTreeView {
    fn from(views: Views) -> Self {
        if views.slot_bits != 0 {
            return views.compact;
        }
        let mut view = Self::zeroed();
        bytemuck::bytes_of_mut(&mut view)[..size_of::<TableView>()].copy_from_slice(bytemuck::bytes_of(&views.tree.roots));
        view
    }
}

/// `warpset::BatchView` of batch/view.cuh.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BatchView {
    pub vectors: u64,
    pub count: u64,
    pub outcomes: u64,
    pub references: u64,
    pub new_references: u64,
    pub new_capacity: u64,
    pub counts: u64,
    pub parents: u64,
    pub changed: u64,
    pub workspace: u64,
    pub tag: u64,
}

/// What the compiled kernels of a spec know of it: core/layout.cuh is the only place where it is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Geometry {
    pub slots_per_bucket: u32,
    pub buckets_per_block: u32,
    pub block_bytes: u32,
    pub chunks: u32,
    pub search_threads: u32,
    pub search_scratch_bytes: u32,
    pub table_view_bytes: u32,
    pub batch_view_bytes: u32,
    /// Of a warp, in device memory.
    pub search_workspace_bytes: u32,
}

impl Geometry {
    /// # Panics
    ///
    /// If the headers and this file disagree: they are built together, so that is a bug here.
    pub(crate) fn check_abi(&self, spec: Spec) {
        let view = match (spec.tree, spec.is_compact()) {
            (true, false) => size_of::<TreeView>(),
            (true, true) => size_of::<CompactTreeView>(),
            (false, true) => size_of::<CompactView>(),
            (false, false) => size_of::<TableView>(),
        };
        assert_eq!(self.table_view_bytes as usize, view);
        assert_eq!(self.batch_view_bytes as usize, size_of::<BatchView>());
    }

    pub(crate) fn slots(&self, buckets: u64) -> u64 {
        buckets * u64::from(self.slots_per_bucket)
    }

    pub(crate) fn bytes(&self, buckets: u64) -> u64 {
        buckets.div_ceil(u64::from(self.buckets_per_block)) * u64::from(self.block_bytes)
    }
}

/// Counts that kernels add to: `warpset::BatchCounts` of batch/view.cuh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Counts {
    /// Vectors searched for.
    pub offered: u64,
    /// By find-or-put: vectors that were new. By find: vectors that were found.
    pub hits: u64,
    /// Vectors not stored, because the table was full.
    pub full: u64,
    /// References written to `new_references`.
    pub new_references: u64,
    /// Of those that were full: how many for want of a node, not of a slot. Always 0 in a bucket table.
    pub full_nodes: u64,
}

impl Counts {
    /// What find-or-put made of its vectors.
    pub const fn tally(&self) -> Tally {
        Tally { new: self.hits, seen: self.offered - self.hits - self.full, full: self.full, full_nodes: self.full_nodes }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.offered += other.offered;
        self.hits += other.hits;
        self.full += other.full;
        self.new_references += other.new_references;
        self.full_nodes += other.full_nodes;
    }
}

const _: () = {
    assert!(size_of::<TableView>() == 64 && size_of::<NodeView>() == 56 && size_of::<TreeView>() == 120);
    assert!(size_of::<HashView>() == 64 && size_of::<LevelView>() == 64 && size_of::<CompactView>() == 200);
    assert!(size_of::<CompactTreeView>() == 256);
    assert!(size_of::<BatchView>() == 88);
    assert!(size_of::<usize>() == 8, "warpset needs a 64-bit target");
};
