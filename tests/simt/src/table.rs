//! Tables of all kinds in simulated memory: their kernels, and their contents as seen from outside.

use crate::compact::Layout;
use crate::explorer::Wrong;
use crate::indexed::IndexRows;
use crate::machine::Kernel;
use crate::memory::{Memory, Use};
use bytemuck::Zeroable;
use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use warpset::gpu::Geometry;
pub use warpset::gpu::{BatchView, BulkPass, BulkPlan, BulkSlices, CompactView, IndexedView, NodeView, ShortSeeds, TableView};
use warpset_random::Random;

include!(concat!(env!("OUT_DIR"), "/specs.rs"));

/// Mirrors `warpset_simt_table_kernels` in cpp/harness.h.
#[repr(C)]
pub struct Kernels {
    indexed: u32,
    tree: u32,
    pub width: u32,
    /// Words of a slot of a bucket table: more than the width if slots are padded.
    padded_words: u32,
    pub chunk_bytes: u32,
    pub line_bytes: u32,
    /// Key bits of a compact table, or of a tree's compact roots; else 0.
    pub key_bits: u32,
    pub slot_bits: u32,
    /// Number of a tree's `warpset::Pairing`.
    pub pairing: u32,
    strategy: *const c_char,
    geometry: &'static Geometry,
    cache_bytes: [u32; 2],
    pub find_or_put: Kernel,
    /// As `find_or_put`, but uses the batch's parents; a bucket table ignores them.
    pub find_or_put_incremental: Kernel,
    /// Blocks of at most two warps gather vectors and put them (block_cache.cuh): reports counts and new references only.
    pub put_by_blocks: Kernel,
    pub find: Kernel,
    pub clear: Kernel,
    pub get: Kernel,
    pub export: Kernel,
    pub measure: Kernel,
    pub script: Kernel,
    /// Compact tables only.
    pub relocate: Kernel,
    pub put_back: Kernel,
    /// Indexed tables only.
    pub rebuild: Kernel,
    pub list_holes: Kernel,
    /// Bucket tables only.
    pub grow: Kernel,
    pub keep_left: Kernel,
    /// Bucket tables of 1 and 2 words only.
    pub bulk_partition: Kernel,
    pub bulk_fill: Kernel,
    pub bulk_put_left: Kernel,
    pub bulk_replay: Kernel,
    chunk_of_slot: unsafe extern "C" fn(*const View, u64, u32, *mut ChunkLocation),
    is_barred: unsafe extern "C" fn(*const View, *const u32, u64) -> bool,
    walk: unsafe extern "C" fn(*const View, *const [u64; 2], *const u32, *mut u64) -> u32,
}

// SAFETY: the fields are constants: function pointers, and a pointer to a constant.
unsafe impl Sync for Kernels {}

/// Mirrors `Views` in cpp/script.h. Compact tables use `compact`, and of `roots` only the address and number of slots.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub roots: TableView,
    pub nodes: NodeView,
    pub compact: CompactView,
    pub indexed: IndexedView,
}

/// Arguments of the kernels, see cpp/table.inl.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BatchArgument {
    pub view: View,
    pub batch: BatchView,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GetArgument {
    pub view: View,
    pub references: *const u64,
    pub count: u64,
    pub vectors: *mut u32,
    pub invalid: *mut u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExportArgument {
    pub view: View,
    pub first: u64,
    pub last: u64,
    pub vectors: *mut u32,
    pub references: *mut u64,
    pub cursor: *mut u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MeasureArgument {
    pub view: View,
    pub first: u64,
    pub last: u64,
    pub lengths: *mut u64,
    pub totals: *mut [u64; 2],
    pub bins: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RelocateArgument {
    pub view: View,
    pub seed: u64,
    pub keys: *mut u64,
    /// Number of keys taken from the stash, and number of keys left over.
    pub counts: *mut [u64; 2],
}

/// A batch of the keys that relocation has left over; relocation has counted them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PutBackArgument {
    pub batch: BatchArgument,
    pub relocated: *const [u64; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RebuildArgument {
    pub view: View,
    pub larger: View,
    pub larger_slot_bits: u32,
    /// Rows before this one are named.
    pub last: u64,
    pub counts: *mut [u64; 5],
}

/// Moves the vectors of a table to parts `first .. last` of `larger`, each of some slices; unless it writes, finds those that are
/// left.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GrowArgument {
    pub view: View,
    pub larger: View,
    pub seeds: ShortSeeds,
    pub slices_a_part: u32,
    pub is_staged: u32,
    pub first: u64,
    pub last: u64,
    pub writes: u64,
    pub left: *mut u64,
    pub capacity: u64,
    /// `warpset::InPlace`: vectors left, those of them that were kept, and waves.
    pub progress: *mut [u64; 3],
    /// Vectors that were kept.
    pub vectors: *mut u32,
}

/// A step of bulk find-or-put.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BulkArgument {
    pub view: View,
    pub pass: BulkPass,
    pub slices: BulkSlices,
}

/// Lists the rows before `last` that are not stored, and counts those among `references`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HolesArgument {
    pub view: View,
    pub last: u64,
    pub holes: *mut u64,
    pub room: u64,
    pub count: *mut u64,
    pub references: *const u64,
    pub references_count: u64,
    pub invalid: *mut u64,
}

/// Mirrors `Script` in cpp/script.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScriptArgument {
    pub view: View,
    pub vectors: *const u32,
    pub count: u64,
    pub operations: *mut Operation,
    pub operations_a_lane: u64,
    pub cell: *mut u64,
}

/// Mirrors `warpset_simt_operation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    pub kind: u32,
    pub vector: u32,
    pub outcome: u32,
    pub reads_back: u32,
    pub misread: u32,
    /// Slot of the parent for INCREMENTAL, unless the previous operation of the lane names a parent.
    pub parent: u32,
    pub reference: u64,
    pub began: u64,
    pub ended: u64,
}

pub const NOTHING: u32 = 0;
pub const PUT: u32 = 1;
pub const FIND: u32 = 2;
/// Reads a slot; the operation's `vector` is the slot number.
pub const SCAN: u32 = 3;
/// Puts a vector and passes its reference on.
pub const GIVE: u32 = 4;
/// Reads back the vector whose reference was passed on.
pub const TAKE: u32 = 5;
/// Puts a vector incrementally: it equals a stored vector, its parent, except in some words.
pub const INCREMENTAL: u32 = 6;

/// As in `warpset::Outcome`.
pub const NEW: u32 = 1;
pub const SEEN: u32 = 2;
pub const FULL: u32 = 3;
pub const ABSENT: u32 = 4;

pub const NO_REFERENCE: u64 = u64::MAX;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ChunkLocation {
    offset: u64,
    bytes: u64,
    empty: [u32; 4],
}

/// Bucket table of a spec of build.rs, if this build has it.
pub fn bucket(width: u32, chunk: u32, line: u32) -> Option<&'static Kernels> {
    spec(BUCKETS, |spec| (spec.width, spec.chunk_bytes, spec.line_bytes) == (width, chunk, line) && spec.padded_words == width)
}

/// Compact table of a spec of build.rs, if this build has it.
pub fn compact(key_bits: u32, slot_bits: u32) -> Option<&'static Kernels> {
    spec(COMPACTS, |spec| (spec.key_bits, spec.slot_bits) == (key_bits, slot_bits))
}

/// Tree table with compact roots of a spec of build.rs, if this build has it.
pub fn compact_tree(width: u32, key_bits: u32, slot_bits: u32) -> Option<&'static Kernels> {
    spec(TREE_COMPACTS, |spec| (spec.width, spec.key_bits, spec.slot_bits) == (width, key_bits, slot_bits))
}

/// Indexed table of a spec of build.rs, if this build has it.
pub fn indexed(width: u32, slot_bits: u32) -> Option<&'static Kernels> {
    spec(INDEXED_TABLES, |spec| (spec.width, spec.slot_bits) == (width, slot_bits))
}

/// Tree table of a spec of build.rs, if this build has it.
pub fn tree(width: u32, chunk: u32, line: u32) -> Option<&'static Kernels> {
    spec(TREES, |spec| (spec.width, spec.chunk_bytes, spec.line_bytes) == (width, chunk, line))
}

fn spec(specs: &[&'static Kernels], is: impl Fn(&Kernels) -> bool) -> Option<&'static Kernels> {
    let found = specs.iter().copied().find(|spec| is(spec));
    assert!(found.is_some() || !HAS_ALL, "a test asks for a spec that build.rs does not list");
    found
}

impl Kernels {
    pub fn name(&self) -> String {
        let Self { width, chunk_bytes, line_bytes, key_bits, slot_bits, .. } = self;
        // SAFETY: C++ defines this text as a constant.
        let strategy = unsafe { CStr::from_ptr(self.strategy) }.to_string_lossy();
        if self.is_indexed() {
            return format!("indexed-{width}-{slot_bits}");
        }
        match (self.is_tree(), self.is_compact()) {
            (false, false) if self.padded_words > *width => format!("bucket-{width}-{chunk_bytes}-{line_bytes}-padded"),
            (false, false) => format!("bucket-{width}-{chunk_bytes}-{line_bytes}"),
            (true, false) => format!("tree-{width}-{chunk_bytes}-{line_bytes}{strategy}"),
            (false, true) => format!("compact-{key_bits}-{slot_bits}"),
            (true, true) => format!("tree-compact-{width}-{key_bits}-{slot_bits}"),
        }
    }

    pub fn is_indexed(&self) -> bool {
        self.indexed != 0
    }

    pub fn is_compact(&self) -> bool {
        self.key_bits != 0
    }

    /// Bits of the left half of a compact root, which is a reference.
    pub fn left_bits(&self) -> u32 {
        if (self.width - 1).is_power_of_two() { self.key_bits - 32 } else { self.key_bits / 2 }
    }

    pub fn is_tree(&self) -> bool {
        self.tree != 0
    }

    /// Words per vector.
    pub fn width(&self) -> usize {
        self.width as usize
    }

    /// Words per slot, which holds a vector or a root pair.
    pub fn slot_words(&self) -> usize {
        if self.is_tree() { 2 } else { self.width() }
    }

    /// Slots per bucket; a slot holds a vector or a root pair.
    pub fn slots_per_bucket(&self) -> u64 {
        self.geometry.slots_per_bucket.into()
    }

    pub fn buckets_per_block(&self) -> u64 {
        self.geometry.buckets_per_block.into()
    }

    pub fn chunks(&self) -> u32 {
        self.geometry.chunks
    }

    /// Bytes of shared memory that a warp of the search kernels needs.
    pub fn scratch_of_warp(&self) -> usize {
        (self.geometry.search_scratch_bytes / (self.geometry.search_threads / 32)) as usize
    }

    /// Bytes of shared memory that a block of `warps` warps needs to put by blocks.
    pub fn scratch_of_block(&self, warps: usize) -> usize {
        self.cache_bytes[warps - 1] as usize
    }

    /// Bytes of device memory that a warp of the search kernels needs.
    pub fn workspace_of_warp(&self) -> usize {
        self.geometry.search_workspace_bytes as usize
    }

    pub fn table_bytes(&self, buckets: u64) -> usize {
        (buckets.div_ceil(self.geometry.buckets_per_block.into()) * u64::from(self.geometry.block_bytes)) as usize
    }

    pub fn has_the_layouts_of_rust(&self) -> bool {
        let roots = match (self.is_compact(), self.is_indexed()) {
            (true, _) => size_of::<CompactView>(),
            (_, true) => size_of::<IndexedView>(),
            _ => size_of::<TableView>(),
        };
        let view = roots + if self.is_tree() { size_of::<NodeView>() } else { 0 };
        self.geometry.table_view_bytes as usize == view && self.geometry.batch_view_bytes as usize == size_of::<BatchView>()
    }
}

/// Properties that may differ between tables of one spec.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub buckets: u64,
    /// Buckets of a slice: a power of two, or all.
    pub slice_buckets: u64,
    pub hash_mask: u64,
    pub empty: [u32; 4],
    pub seed: u64,
    /// Buckets of nodes; 0 except in a tree table.
    pub node_buckets: u32,
    pub node_hash_mask: u32,
    /// Buckets that a search for a node looks at; may be fewer than all.
    pub node_probe_limit: u32,
    /// Layout of a compact table; `None` for others.
    pub layout: Option<Layout>,
    /// Rows of an indexed table, and cells for spare rows.
    pub rows: u64,
    pub spare_cells: u32,
}

impl Config {
    /// Configuration of a bucket table of one slice. The number of buckets must be prime, otherwise a search does not reach all
    /// buckets.
    pub fn of_buckets(buckets: u64, hash_mask: u64, empty: [u32; 4], seed: u64) -> Self {
        Self {
            buckets,
            slice_buckets: buckets,
            hash_mask,
            empty,
            seed,
            node_buckets: 0,
            node_hash_mask: 0,
            node_probe_limit: 0,
            layout: None,
            rows: 0,
            spare_cells: 0,
        }
    }

    /// Configuration of a compact table.
    pub fn of_compact(layout: Layout, seed: u64) -> Self {
        Self { layout: Some(layout), ..Self::of_buckets(layout.levels[0].buckets, u64::MAX, [0; 4], seed) }
    }
}

/// A table in simulated memory.
#[derive(Clone, Copy)]
pub struct Table {
    pub kernels: &'static Kernels,
    pub view: View,
    /// Slots of vectors or of root pairs; rows of an indexed table.
    pub slots: u64,
    /// Number of vectors that slots exist for; in an indexed table, slots of the index.
    pub room: u64,
    /// Node slots that every search of the node table can reach.
    pub node_slots: usize,
    /// Layout of a compact table; `None` for others.
    pub layout: Option<Layout>,
}

/// A slot, seen from outside while no lane runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// For each chunk, whether it is decided.
    pub decided: Vec<bool>,
    /// Words of the vector. For the root slot of a tree table: words of the root pair.
    pub words: Vec<u32>,
    /// Byte ranges of its chunks in `slots`.
    pub ranges: Vec<Range<usize>>,
}

impl Slot {
    pub fn is_complete(&self) -> bool {
        self.decided.iter().all(|decided| *decided)
    }

    pub fn is_free(&self) -> bool {
        !self.decided.iter().any(|decided| *decided)
    }

    /// Byte ranges for a report: their history explains the error.
    pub fn about(&self) -> Vec<(String, Range<usize>)> {
        self.ranges.iter().map(|range| ("slots".to_owned(), range.clone())).collect()
    }
}

impl Table {
    /// Seeds of the hash of a bucket table of vectors of one, two or four words.
    pub fn short_seeds(&self, memory: &Memory) -> ShortSeeds {
        let (mut seeds, width) = (ShortSeeds::default(), self.kernels.width());
        seeds.0[..=width].copy_from_slice(memory.read_at(self.view.roots.seeds, width + 1));
        seeds
    }

    /// Allocates a table whose slots hold garbage. A kernel, or `clear`, must clear it.
    pub fn allocate(memory: &mut Memory, kernels: &'static Kernels, config: Config) -> Self {
        let mut random = Random::new(config.seed);
        let seeds: Vec<u64> = (0..2 * (kernels.slot_words() + 1)).map(|_| random.number()).collect();
        let layout = config.layout;
        let bytes = layout.map_or_else(|| kernels.table_bytes(config.buckets), |layout| layout.bytes());
        let roots = TableView {
            slots: memory.allocate("slots", Use::Shared, bytes) as u64,
            buckets: config.buckets,
            slice_buckets: config.slice_buckets as u32,
            slice_mask: if config.slice_buckets == config.buckets { u32::MAX } else { config.slice_buckets as u32 - 1 },
            seeds: memory.allocate_with("seeds", Use::Constant, &seeds) as u64,
            stored: memory.allocate("stored", Use::Shared, 8) as u64,
            hash_mask: config.hash_mask,
            empty: config.empty,
            probe_limit: config.buckets.min(1024) as u32,
            width: kernels.slot_words() as u32,
        };
        let slots = layout.map_or(config.buckets * kernels.slots_per_bucket(), |layout| layout.slots());
        let compact = layout.map_or_else(CompactView::zeroed, |layout| layout.view(roots.slots, roots.stored));
        if !kernels.is_tree() {
            let nodes = NodeView::zeroed();
            let indexed = match kernels.is_indexed() {
                true => IndexedView::allocate(memory, kernels, &roots, config),
                false => IndexedView::zeroed(),
            };
            let (room, slots) = if kernels.is_indexed() { (slots, indexed.rows.capacity) } else { (slots, slots) };
            return Self { kernels, view: View { roots, nodes, compact, indexed }, slots, room, node_slots: 0, layout };
        }
        let node_slots = 2 * config.node_buckets as usize;
        let nodes = NodeView {
            slots: memory.allocate("nodes", Use::Shared, 8 * (node_slots + 1)) as u64,
            stored: memory.allocate("nodes stored", Use::Shared, 8) as u64,
            seeds: std::array::from_fn(|_| random.number()),
            buckets: config.node_buckets,
            probe_limit: config.node_probe_limit.min(config.node_buckets),
            hash_mask: config.node_hash_mask,
            width: kernels.width,
        };
        let indexed = IndexedView::zeroed();
        Self { kernels, view: View { roots, nodes, compact, indexed }, slots, room: slots, node_slots, layout }
    }

    /// View of a cuckoo table for keys that are put back.
    pub fn view_to_put_back(&self) -> View {
        let mut view = self.view;
        view.compact.stash.rounds = view.compact.stash.all_rounds;
        view
    }

    fn chunk(&self, slot: u64, chunk: u32) -> ChunkLocation {
        let mut location = ChunkLocation::default();
        // SAFETY: the function computes an address from the view and touches nothing but `location`.
        unsafe { (self.kernels.chunk_of_slot)(&self.view, slot, chunk, &mut location) };
        location
    }

    /// Makes every slot EMPTY, as the kernel does.
    pub fn clear(&self, memory: &mut Memory) {
        if let Some(layout) = self.layout {
            memory.write_at::<u8>(self.view.roots.slots, layout.bytes()).fill(0);
        }
        if self.kernels.is_indexed() {
            self.view.indexed.clear(memory);
        }
        let chunked = if self.layout.is_some() || self.kernels.is_indexed() { 0 } else { self.slots };
        for (slot, chunk) in (0..chunked).flat_map(|slot| (0..self.kernels.chunks()).map(move |chunk| (slot, chunk))) {
            let location = self.chunk(slot, chunk);
            let words = location.bytes as usize / 4;
            memory.write_at::<u32>(self.view.roots.slots + location.offset, words).copy_from_slice(&location.empty[..words]);
        }
        memory.write_at::<u64>(self.view.roots.stored, 1)[0] = 0;
        if self.kernels.is_tree() {
            memory.write_at::<u64>(self.view.nodes.slots, 2 * self.view.nodes.buckets as usize + 1).fill(0);
            memory.write_at::<u64>(self.view.nodes.stored, 1)[0] = 0;
        }
    }

    /// Puts a key into the first free slot of its walk for which `accepts` returns true, outside of any launch. Returns the slot.
    /// For compact tables that are not trees.
    pub fn fill(&self, memory: &mut Memory, key: u64, accepts: impl FnOnce(u64) -> bool) -> Option<u64> {
        let layout = self.layout.expect("a compact table");
        let address = |range: &Range<usize>| self.view.roots.slots + range.start as u64;
        let is_free = |slot: u64| {
            let range = layout.range(slot);
            memory.read_at::<u8>(address(&range), range.len()).iter().all(|byte| *byte == 0)
        };
        let (slot, code) = layout.steps(key).into_iter().find(|(slot, _)| is_free(*slot))?;
        if !accepts(slot) {
            return None;
        }
        let range = layout.range(slot);
        memory.write_at::<u8>(address(&range), range.len()).copy_from_slice(&code.to_le_bytes()[..range.len()]);
        memory.write_at::<u64>(self.view.roots.stored, 1)[0] += 1;
        Some(slot)
    }

    /// All node slots, and one slot beyond them.
    pub fn nodes<'a>(&self, memory: &'a Memory) -> &'a [u64] {
        memory.read_at(self.view.nodes.slots, 2 * self.view.nodes.buckets as usize + 1)
    }

    pub fn slot(&self, memory: &Memory, slot: u64) -> Slot {
        if self.kernels.is_indexed() {
            return self.view.indexed.row(memory, self.kernels, slot);
        }
        if let Some(layout) = &self.layout {
            return self.compact_slot(memory, layout, slot);
        }
        let mut seen = Slot { decided: Vec::new(), words: Vec::new(), ranges: Vec::new() };
        for chunk in 0..self.kernels.chunks() {
            let location = self.chunk(slot, chunk);
            let words = location.bytes as usize / 4;
            let cells = memory.read_at::<u32>(self.view.roots.slots + location.offset, words);
            seen.decided.push(cells != &location.empty[..words]);
            seen.words.extend(cells);
            seen.ranges.push(location.offset as usize..(location.offset + location.bytes) as usize);
        }
        let padding = seen.words.split_off(self.kernels.slot_words());
        assert!(
            !seen.decided[seen.decided.len() - 1] || padding.iter().all(|word| *word == 0),
            "a padded slot ends in {padding:?}"
        );
        seen
    }

    /// A slot of a compact table. A code that is no key's reads as words that no vector has.
    fn compact_slot(&self, memory: &Memory, layout: &Layout, slot: u64) -> Slot {
        let range = layout.range(slot);
        let bytes = memory.read_at::<u8>(self.view.roots.slots + range.start as u64, range.len());
        let code = bytes.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte));
        let words = match layout.key_in(slot, code) {
            None => vec![u32::MAX; 3],
            Some(key) if self.kernels.is_tree() => {
                let left = self.kernels.left_bits();
                vec![(key & ((1 << left) - 1)) as u32, (key >> left) as u32]
            }
            Some(key) => vec![key as u32, (key >> 32) as u32],
        };
        Slot { decided: vec![code != 0], words, ranges: vec![range] }
    }

    /// Key of a vector, or of a root pair, in a compact table.
    pub fn key(&self, words: &[u32]) -> u64 {
        let right = if self.kernels.is_tree() { self.kernels.left_bits() } else { 32 };
        u64::from(words[0]) | u64::from(words[1]) << right
    }

    /// Whether the table's rules keep this vector (or root pair) out of this slot.
    pub fn bars(&self, words: &[u32], slot: u64) -> bool {
        if self.kernels.is_indexed() {
            return false;
        }
        if let Some(layout) = &self.layout {
            return words.len() != 2 || !layout.walk(self.key(words)).contains(&slot);
        }
        assert_eq!(words.len(), self.kernels.slot_words());
        // SAFETY: `words` has as many words as a slot; the function touches nothing else.
        unsafe { (self.kernels.is_barred)(&self.view, words.as_ptr(), slot) }
    }

    /// Returns the slots of the walk of a vector (or root pair), in order, as far as find-or-put goes. Not for indexed tables.
    pub fn walk(&self, memory: &Memory, words: &[u32]) -> Vec<u64> {
        if let Some(layout) = &self.layout {
            return layout.walk_of_find_or_put(self.key(words));
        }
        assert_eq!(words.len(), self.kernels.slot_words());
        let seeds: &[[u64; 2]] = memory.read_at(self.view.roots.seeds, words.len() + 1);
        let mut buckets = vec![0; self.view.roots.probe_limit as usize];
        // SAFETY: there are a seed for each word and one more, as many words as a slot has, and room for `probe_limit` buckets.
        let count = unsafe { (self.kernels.walk)(&self.view, seeds.as_ptr(), words.as_ptr(), buckets.as_mut_ptr()) };
        let a_bucket = self.slots / self.view.roots.buckets;
        buckets[..count as usize].iter().flat_map(|bucket| bucket * a_bucket..(bucket + 1) * a_bucket).collect()
    }
}

/// Argument of a grid, as kernels get it.
pub fn argument<T>(value: &T) -> *const c_void {
    std::ptr::from_ref(value).cast()
}

pub fn wrong(rule: &'static str, detail: impl Into<String>, about: Vec<(String, Range<usize>)>) -> Wrong {
    Wrong { rule, detail: detail.into(), about }
}
