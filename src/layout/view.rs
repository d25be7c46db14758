//! The structs that cross to C++ and CUDA. tests/library/abi.rs checks every field on every machine.

use super::kind::{Kind, kinds};
use super::outcome::Tally;
use super::spec::Spec;
use bytemuck::{Pod, Zeroable};

/// View of a bucket table for kernels: `warpset::TableView` of bucket/table.cuh. Addresses are on the table's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct TableView {
    /// Address of the slots.
    pub slots: u64,
    /// Number of buckets.
    pub buckets: u64,
    /// Number of buckets of a slice; all, if there is one slice.
    pub slice_buckets: u32,
    /// Bits of a bucket's number that are its number in its slice.
    pub slice_mask: u32,
    /// Address of the seeds of the hash: `width + 1` pairs of `u64`.
    pub seeds: u64,
    /// Address of the number of stored vectors.
    pub stored: u64,
    /// All ones; tests clear bits to force collisions.
    pub hash_mask: u64,
    /// The EMPTY pattern.
    pub empty: [u32; 4],
    /// Number of buckets looked at before a vector is Full.
    pub probe_limit: u32,
    /// Words per vector.
    pub width: u32,
}

/// View of a node table for kernels: `warpset::NodeView` of tree/nodes.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct NodeView {
    /// Address of the slots: two per bucket, and one more.
    pub slots: u64,
    /// Address of the number of stored nodes.
    pub stored: u64,
    /// Seeds of the hash.
    pub seeds: [u64; 3],
    /// Number of buckets; prime.
    pub buckets: u32,
    /// Number of buckets looked at before a node is missing.
    pub probe_limit: u32,
    /// All ones; tests clear bits to force collisions.
    pub hash_mask: u32,
    /// Words of the vectors that are stored as trees; 0 if the table has no nodes.
    pub width: u32,
}

/// View of a tree table for kernels: `warpset::TreeView` of tree/table.cuh. Vectors of one or two words are not stored as trees:
/// for them only the first part is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct TreeView {
    /// The bucket table; in a tree table, that of the root pairs.
    pub roots: TableView,
    /// The node table.
    pub nodes: NodeView,
}

/// The hash family of a compact table: `warpset::HashView` of compact/permutation.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct HashView {
    /// Odd factors.
    pub multipliers: [u64; 3],
    /// The inverses of `multipliers`, modulo 2^64.
    pub inverses: [u64; 3],
    /// Odd number that is added from function to function.
    pub step: u64,
    /// Bits of keys and hashes.
    pub bits: u32,
    /// Bits of the right half of a root that is a key, if that half is the last word of a vector.
    pub last_bits: u32,
}

/// One level of a compact table, the main level or the stash: `warpset::LevelView` of compact/table.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct LevelView {
    /// Address of the slots.
    pub slots: u64,
    /// Largest number of hashes that belong to a bucket.
    pub window: u64,
    /// (2^64 - 1) / window.
    pub window_inverse: u64,
    /// 2^64 / buckets.
    pub start: u64,
    /// Byte r: the number of slots of a bucket that rounds 0 to r may take.
    pub limits: u64,
    /// The 32 bits of `start` after the binary point.
    pub start_fraction: u32,
    /// Number of buckets.
    pub buckets: u32,
    /// Number of functions of the hash family that are used.
    pub functions: u32,
    /// Number, in the hash family, of the first function that is used.
    pub first_function: u32,
    /// Number of rounds that a find-or-put may take; 0 if the level does not exist.
    pub rounds: u32,
    /// Number of rounds for a key that is put back.
    pub all_rounds: u32,
}

/// View of a compact table for kernels: `warpset::CompactView` of compact/table.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CompactView {
    /// Level with most keys.
    pub main: LevelView,
    /// Level for keys that find no free slot in the main level.
    pub stash: LevelView,
    /// The hash family.
    pub hash: HashView,
    /// Address of the number of stored keys.
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

/// View of a tree table with compact roots for kernels: `warpset::CompactTreeView` of tree/table.cuh. For a compact table without
/// trees only the first part is used. Vectors of one or two words are not stored as trees: for them the view begins with a
/// [`TableView`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CompactTreeView {
    /// The compact table; in a tree table, that of the root pairs.
    pub roots: CompactView,
    /// The node table.
    pub nodes: NodeView,
}

/// The rows of an indexed table: `warpset::RowsView` of indexed/rows.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RowsView {
    /// Address of the rows, which lie one after another.
    pub words: u64,
    /// Address of the number of rows that were given.
    pub given: u64,
    /// Address of the number of spare rows, followed by the cells for them.
    pub spares: u64,
    /// Largest number of rows. Kernels take no row beyond it.
    pub capacity: u64,
    /// Number of leading rows that are all stored.
    pub dense: u64,
    /// Cells for spare rows: a power of two.
    pub spare_cells: u32,
    /// Words per vector.
    pub width: u32,
    /// 1: spare rows are used before new numbers; 0: they are left.
    pub reuses: u64,
}

/// View of an indexed table for kernels: `warpset::IndexedView` of indexed/table.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct IndexedView {
    /// Address of the slots of the index.
    pub slots: u64,
    /// Number of buckets.
    pub buckets: u64,
    /// Number of buckets of a slice; all, if there is one slice.
    pub slice_buckets: u32,
    /// Bits of a bucket's number that are its number in its slice.
    pub slice_mask: u32,
    /// Address of the seeds of the hash: `width + 1` pairs of `u64`.
    pub seeds: u64,
    /// Address of the number of stored vectors.
    pub stored: u64,
    /// All ones; tests clear bits to force collisions.
    pub hash_mask: u64,
    /// Bits of a slot that name a row.
    pub row_bits: u32,
    /// Number of buckets looked at before a vector is Full.
    pub probe_limit: u32,
    /// The rows.
    pub rows: RowsView,
}

/// Move of a row: `warpset::RowMove` of indexed/maintenance.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RowMove {
    pub from: u64,
    pub to: u64,
}

/// View of a table of any kind, as a kernel's argument: the view of its kind, and zeros behind it. A launch copies as many bytes
/// of it as the kernel's own view has.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct AnyView([u64; MOST_VIEW_BYTES / 8]);

/// View of a table for kernels, by the table's kind.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub(crate) kind: Kind,
    any: AnyView,
}

macro_rules! views {
    ($($kind:ident: $view:ident, $table:literal;)*) => {
        impl Kind {
            /// Bytes of the view of this kind.
            pub(crate) const fn view_bytes(self) -> usize {
                match self {
                    $(Self::$kind => size_of::<$view>(),)*
                }
            }
        }

        $(impl From<View> for $view {
            /// The view of its kind, or one that begins with that of its kind, and zeros. (Vectors of one or two words are not
            /// stored as trees: the caller's view is a tree's, and the kernels take only its first part, the view of a bucket
            /// table.)
            fn from(view: View) -> Self {
                *view.first()
            }
        })*
    };
}
kinds!(views);

impl From<View> for AnyView {
    fn from(view: View) -> Self {
        view.any
    }
}

/// Bytes of the largest view.
const MOST_VIEW_BYTES: usize = {
    let (mut most, mut at) = (0, 0);
    while at < Kind::ALL.len() {
        let bytes = Kind::ALL[at].view_bytes();
        most = if bytes > most { bytes } else { most };
        at += 1;
    }
    most.next_multiple_of(8)
};

impl View {
    pub(crate) fn new<V: Pod>(kind: Kind, view: V) -> Self {
        assert_eq!(size_of::<V>(), kind.view_bytes());
        let mut any = AnyView::zeroed();
        bytemuck::bytes_of_mut(&mut any)[..size_of::<V>()].copy_from_slice(bytemuck::bytes_of(&view));
        Self { kind, any }
    }

    /// Kernel argument: all bytes of the table's view.
    pub(crate) fn argument(&self) -> &[u8] {
        &bytemuck::bytes_of(&self.any)[..self.kind.view_bytes()]
    }

    /// The view of its kind, as one that begins with that.
    fn first<V: Pod>(&self) -> &V {
        bytemuck::from_bytes(&bytemuck::bytes_of(&self.any)[..size_of::<V>()])
    }

    fn first_mut<V: Pod>(&mut self) -> &mut V {
        bytemuck::from_bytes_mut(&mut bytemuck::bytes_of_mut(&mut self.any)[..size_of::<V>()])
    }

    /// The rows of an indexed table.
    pub(crate) fn rows(&self) -> Option<&RowsView> {
        (self.kind == Kind::Indexed).then(|| &self.first::<IndexedView>().rows)
    }

    /// Mutable view of the rows.
    pub(crate) fn rows_mut(&mut self) -> Option<&mut RowsView> {
        (self.kind == Kind::Indexed).then(|| &mut self.first_mut::<IndexedView>().rows)
    }

    /// The view for a find-or-put that takes new numbers, and leaves the holes among the rows of an indexed table.
    pub(crate) fn leaving_holes(mut self) -> Self {
        if let Some(rows) = self.rows_mut() {
            rows.reuses = 0;
        }
        self
    }

    /// The view for a find-or-put of keys of a cuckoo table that are put back (compact/relocation.cuh). Nothing else may use the
    /// table at the same time.
    pub(crate) fn to_put_back(mut self) -> Self {
        if self.kind == Kind::Root {
            let stash = &mut self.first_mut::<CompactView>().stash;
            stash.rounds = stash.all_rounds;
        }
        self
    }

    /// Slots of the stash of a compact table: of 8 bytes, in buckets of 64.
    pub(crate) fn stash_slots(&self) -> u64 {
        if self.kind == Kind::Root { u64::from(self.first::<CompactView>().stash.buckets) * 8 } else { 0 }
    }
}

/// `warpset::BatchView` of core/batch_view.cuh. Public for the simulated GPU of the tests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct BatchView {
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

impl BatchView {
    /// The `count` vectors of this batch from `first` on. New references are appended as for the whole batch.
    pub(crate) fn part(&self, first: u64, count: u64, spec: Spec) -> Self {
        let at = |address: u64, bytes: usize| if address == 0 { 0 } else { address + first * bytes as u64 };
        Self {
            vectors: at(self.vectors, spec.width() * 4),
            count,
            outcomes: at(self.outcomes, 1),
            references: at(self.references, 8),
            parents: at(self.parents, 8),
            changed: at(self.changed, spec.mask_words() * 4),
            ..*self
        }
    }
}

/// `warpset::UpsertView` of indexed/upsert.cuh.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct UpsertView {
    pub values: u64,
    pub operands: u64,
    pub is_one: u32,
    pub kind: u32,
    pub combine: u32,
    pub unused: u32,
}

impl UpsertView {
    /// View of the vectors from `first` on, whose operands have `operand_bytes` bytes each.
    pub(crate) fn part(&self, first: u64, operand_bytes: usize) -> Self {
        let before = if self.is_one == 1 { 0 } else { first * operand_bytes as u64 };
        Self { operands: self.operands + before, ..*self }
    }
}

/// Constants of a spec that its compiled kernels have. Only core/layout.cuh computes them. Public for the simulated GPU of the
/// tests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Geometry {
    pub slots_per_bucket: u32,
    pub buckets_per_block: u32,
    pub block_bytes: u32,
    pub chunks: u32,
    pub search_threads: u32,
    pub search_scratch_bytes: u32,
    pub table_view_bytes: u32,
    pub batch_view_bytes: u32,
    /// Bytes of device memory that a warp uses as workspace.
    pub search_workspace_bytes: u32,
}

impl Geometry {
    /// # Panics
    ///
    /// If the headers and this file disagree. They are built together, so that would be a bug here.
    pub(crate) fn check_abi(&self, spec: Spec) {
        assert_eq!(self.table_view_bytes as usize, spec.kind.view_bytes());
        assert_eq!(self.batch_view_bytes as usize, size_of::<BatchView>());
    }

    /// Geometry after a table has grown to this spec: an index of more rows has wider slots, in buckets of 32 bytes.
    pub(crate) fn of_spec(mut self, spec: Spec) -> Self {
        if spec.is_indexed() {
            self.slots_per_bucket = 256 / spec.index_slot_bits();
        }
        self
    }

    pub(crate) fn slots(&self, buckets: u64) -> u64 {
        buckets * u64::from(self.slots_per_bucket)
    }

    pub(crate) fn bytes(&self, buckets: u64) -> u64 {
        buckets.div_ceil(u64::from(self.buckets_per_block)) * u64::from(self.block_bytes)
    }
}

/// Counts that kernels add to: `warpset::BatchCounts` of core/batch_view.cuh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Counts {
    /// Vectors that were searched for.
    pub offered: u64,
    /// By find-or-put: vectors that were new. By find: vectors that were found.
    pub hits: u64,
    /// Vectors not stored, because the table was full.
    pub full: u64,
    /// References of new vectors that were written to `new_references`, or did not fit there.
    pub new_references: u64,
    /// Vectors among the full ones that lacked a node, not a slot. Always 0 in a bucket table.
    pub full_nodes: u64,
}

impl Counts {
    /// Outcomes of a find-or-put.
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
    assert!(size_of::<TableView>() == 72 && size_of::<NodeView>() == 56 && size_of::<TreeView>() == 128);
    assert!(size_of::<HashView>() == 64 && size_of::<LevelView>() == 64 && size_of::<CompactView>() == 200);
    assert!(size_of::<CompactTreeView>() == 256);
    assert!(size_of::<BatchView>() == 88 && size_of::<UpsertView>() == 32);
    assert!(size_of::<usize>() == 8, "warpset needs a 64-bit target");
};

#[cfg(test)]
mod tests {
    use super::*;

    /// A view whose bytes all differ.
    fn numbered<V: Pod>() -> V {
        let bytes: Vec<u8> = (0..size_of::<V>()).map(|byte| byte as u8 ^ 0x5A).collect();
        bytemuck::pod_read_unaligned(&bytes)
    }

    #[test]
    fn arguments_are_all_bytes_of_the_view() {
        let (bucket, tree, compact, compact_tree) = (numbered(), numbered(), numbered(), numbered());
        let views = [
            View::new::<TableView>(Kind::Bucket, bucket),
            View::new::<TreeView>(Kind::Tree, tree),
            View::new::<CompactView>(Kind::Root, compact),
            View::new::<CompactTreeView>(Kind::CompactTree, compact_tree),
        ];
        let expected = [
            bytemuck::bytes_of(&bucket),
            bytemuck::bytes_of(&tree),
            bytemuck::bytes_of(&compact),
            bytemuck::bytes_of(&compact_tree),
        ];
        for (view, expected) in views.iter().zip(expected) {
            // Read as by a launch: through a pointer.
            let argument = view.argument();
            // SAFETY: within the slice that the pointer belongs to.
            let read: Vec<u8> = (0..expected.len()).map(|at| unsafe { argument.as_ptr().add(at).read() }).collect();
            assert_eq!(read, expected);
        }
        assert_eq!((TableView::from(views[0]), TreeView::from(views[1])), (bucket, tree));
        assert_eq!((CompactView::from(views[2]), CompactTreeView::from(views[3])), (compact, compact_tree));
    }

    #[test]
    fn narrow_trees_have_a_bucket_tables_view() {
        let bucket: TableView = numbered();
        let tree = TreeView::from(View::new(Kind::Bucket, bucket));
        assert_eq!((tree.roots, tree.nodes.width), (bucket, 0));
        let compact = CompactTreeView::from(View::new(Kind::Bucket, bucket));
        assert_eq!(bytemuck::bytes_of(&compact)[..size_of::<TableView>()], *bytemuck::bytes_of(&bucket));
    }

    #[test]
    fn only_a_stash_gives_more_rounds_to_put_back() {
        let view: CompactView = Zeroable::zeroed();
        let stash = LevelView { rounds: 1, all_rounds: 2, buckets: 3, ..view.stash };
        let put_back = View::new(Kind::Root, CompactView { stash, ..view }).to_put_back();
        assert_eq!((CompactView::from(put_back).stash.rounds, put_back.stash_slots()), (2, 24));
        let bucket = View::new::<TableView>(Kind::Bucket, numbered());
        assert_eq!((bucket.stash_slots(), bucket.rows()), (0, None));
    }

    #[test]
    fn parts_of_a_batch_are_where_their_vectors_are() {
        let spec = Spec::bucket(40, 16).unwrap();
        let batch =
            BatchView { vectors: 1 << 20, count: 100, outcomes: 1 << 30, changed: 1 << 40, tag: 9, ..BatchView::default() };
        let part = batch.part(10, 5, spec);
        assert_eq!((part.vectors, part.count, part.outcomes), ((1 << 20) + 1600, 5, (1 << 30) + 10));
        assert_eq!((part.references, part.changed, part.tag), (0, (1 << 40) + 80, 9));
    }
}
