//! Options that a `TableBuilder` collects, and the parameters of a table of a given size.

use super::kind::Kind;
use super::limits::{FEWEST_HALF_BITS, LAST_BITS, MAX_CAPACITY};
use super::memory::MemoryLimit;
use super::permutation::Permutation;
use super::size::{self, Size, Slices, node_bytes, probe_limit};
use super::spec::Spec;
use super::strategy::Strategy;
use super::view::{CompactTreeView, Geometry, IndexedView, NodeView, RowsView, TableView, TreeView, View};
use super::{compact, rows};
use crate::{Error, Result};
use bytemuck::{Pod, Zeroable};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Slots of the first table, unless a capacity is given.
const DEFAULT_CAPACITY: u64 = 1 << 20;

/// Fewest slots of a first table whose capacity is not given.
const LEAST_CAPACITY: u64 = 64;

/// Options of a table; see `TableBuilder`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub kind: Kind,
    pub width: usize,
    /// Slots of the first table. None: as `size` chooses.
    pub capacity: Option<u64>,
    /// Slots of the node table. None: one for each slot for vectors.
    pub nodes: Option<u64>,
    pub seed: Option<u64>,
    pub grows: bool,
    /// Bucket tables only: slots are never padded.
    pub dense: bool,
    /// Bucket tables only: bits of all vectors beside the slots, for lookups of absent vectors.
    pub filter: bool,
    /// Tree tables only.
    pub strategy: Strategy,
    /// Root tables only. (Bits of a compact root follow from the size of the node table.)
    pub key_bits: u32,
    /// Tables of trees with compact roots only: bits of the last word of a vector.
    pub last_bits: u32,
    /// Compact slots only. None: the smallest sufficient number.
    pub slot_bits: Option<u32>,
    /// Root tables only: keys may be relocated.
    pub cuckoo: bool,
    /// Memory that a table that grows by itself may take.
    pub memory: MemoryLimit,
    pub hash_mask: u64,
    pub node_hash_mask: u32,
    pub empty: Option<[u32; 4]>,
}

impl Options {
    /// Options with all defaults.
    pub(crate) fn new(kind: Kind, width: usize) -> Self {
        Self {
            kind,
            width,
            capacity: None,
            nodes: None,
            seed: None,
            grows: false,
            dense: false,
            filter: false,
            strategy: Strategy::DEFAULT,
            key_bits: 64,
            last_bits: LAST_BITS,
            slot_bits: None,
            cuckoo: false,
            memory: MemoryLimit::FREE,
            hash_mask: u64::MAX,
            node_hash_mask: u32::MAX,
            empty: None,
        }
    }

    /// Size of the first table. Without a capacity it has 2^20 slots, or fewer if it grows and has a limit of memory: then it
    /// takes less than a sixteenth of that, so that it can grow to the limit.
    pub(crate) fn size(&self) -> Size {
        let slots = self.capacity.unwrap_or_else(|| {
            // More bytes than a slot of any kind takes, with its node and its row.
            let most_bytes = 16 + 4 * self.width.next_multiple_of(4) as u64;
            let may_take = if self.grows { self.memory.bytes() } else { u64::MAX };
            (may_take / 16 / most_bytes).clamp(LEAST_CAPACITY, DEFAULT_CAPACITY)
        });
        Size { slots, nodes: self.nodes.unwrap_or(slots) }
    }

    /// Bytes of the filter of a table of some slots: a word of 64 bits for 8 slots, if there is one.
    pub(crate) fn filter_bytes(&self, slots: u64) -> u64 {
        if self.filter { slots.div_ceil(8) * 8 } else { 0 }
    }

    pub(crate) fn is_cuckoo(&self) -> bool {
        self.kind == Kind::Root && self.cuckoo
    }

    /// Bits of keys, if vectors are keys.
    pub(crate) fn key_bits(&self) -> Option<u32> {
        (self.kind == Kind::Root).then_some(self.key_bits)
    }

    /// Bits of the last word of a vector that a root has room for, if it has not room for all.
    pub(crate) fn last_bits(&self) -> Option<u32> {
        let is_of_root = self.kind == Kind::CompactTree && Spec::ends_in_word(self.width);
        (is_of_root && self.last_bits < LAST_BITS).then_some(self.last_bits)
    }

    /// Number of words that a slot is claimed by: those of a vector, or of the root of a tree. The machine determines how many of
    /// their bytes one compare-and-swap takes.
    pub(crate) fn claimed_words(&self) -> usize {
        match self.kind {
            Kind::Bucket | Kind::Indexed => self.width,
            Kind::Tree | Kind::CompactTree | Kind::Root => Spec::ROOT_WORDS,
        }
    }

    /// Spec of a table of at least this size, on a machine whose largest compare-and-swap for `claimed_words` has `chunk_bytes`.
    pub(crate) fn spec(&self, chunk_bytes: u32, size: Size) -> Result<Spec> {
        let width = self.width;
        if !(1..=MAX_CAPACITY).contains(&size.slots) {
            // An unsupported width is reported in preference.
            return Spec::bucket(width, chunk_bytes).and(Err(size::slots_out_of_range(size.slots)));
        }
        let slot_bits_for = |key_bits| -> Result<u32> {
            // Checked first, because the following code computes with them.
            Spec::compact(key_bits, self.slot_bits.unwrap_or(64), self.is_cuckoo(), chunk_bytes)?;
            Ok(self.slot_bits.unwrap_or_else(|| compact::Layout::default_slot_bits(key_bits, size.slots, self.is_cuckoo())))
        };
        match self.kind {
            Kind::Bucket => {
                let spec = Spec::bucket(width, chunk_bytes)?;
                Ok(if self.dense { spec.dense() } else { spec })
            }
            Kind::Tree => Spec::tree(width, self.strategy, chunk_bytes),
            Kind::Root if width != 2 => {
                Err(Error::OutOfRange { what: "words of a key of a compact table", given: width as u64, least: 2, most: 2 })
            }
            Kind::Root => Spec::compact(self.key_bits, slot_bits_for(self.key_bits)?, self.cuckoo, chunk_bytes),
            Kind::Indexed => {
                // Rows are a few more than slots, which are a few more than requested: 25 bits for their numbers, so 7 for tags.
                Spec::indexed(width, if size.slots <= 1 << 24 { 32 } else { 64 }, chunk_bytes)
            }
            Kind::CompactTree => {
                // Vectors of one or two words are not stored as trees. Again an unsupported width is reported in preference.
                if !Spec::tree(width, Strategy::DEFAULT, chunk_bytes)?.is_tree() {
                    return Spec::bucket(width, chunk_bytes);
                }
                if !(FEWEST_HALF_BITS..=LAST_BITS).contains(&self.last_bits) {
                    let (given, most) = (self.last_bits.into(), LAST_BITS.into());
                    return Err(Error::OutOfRange { what: "bits of the last word of a vector", given, least: 1, most });
                }
                let key_bits = Spec::root_bits(width, 2 * size::node_buckets(size.nodes)?, self.last_bits);
                Spec::compact_tree(width, key_bits, slot_bits_for(key_bits)?, chunk_bytes)
            }
        }
    }
}

/// The seeds of both hash instances for one word: one 16-byte access in core/hash.cuh.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct SeedPair([u64; 2]);

impl SeedPair {
    pub(crate) fn new(first: u64, second: u64) -> Self {
        Self([first, second])
    }
}

/// All random numbers of a table. They stay when the table grows.
#[derive(Clone, Debug)]
pub(crate) struct Seeds {
    pub vectors: Vec<SeedPair>,
    pub empty: [u32; 4],
    pub nodes: [u64; 3],
    /// The seed of the hash family of compact tables.
    pub family: u64,
}

impl Seeds {
    /// Draws the numbers from the seed in the options, or from the system's entropy.
    pub(crate) fn draw(options: &Options, spec: Spec) -> Self {
        let mut random = match options.seed {
            Some(seed) => StdRng::seed_from_u64(seed),
            None => StdRng::from_rng(&mut rand::rng()),
        };
        let vectors = (0..=spec.hashed_words()).map(|_| SeedPair::new(random.next_u64(), random.next_u64())).collect();
        let drawn = std::array::from_fn(|_| random.next_u32());
        let nodes = std::array::from_fn(|_| random.next_u64());
        Self { vectors, empty: options.empty.unwrap_or(drawn), nodes, family: random.next_u64() }
    }
}

/// Parameters from which a table of one size is made.
pub(crate) struct Parameters<'a> {
    pub options: &'a Options,
    pub seeds: &'a Seeds,
    pub spec: Spec,
    pub buckets: u64,
    /// 0 in a table without nodes.
    pub node_buckets: u64,
}

/// Addresses of the parts of a table, on its device.
#[derive(Clone, Copy, Default)]
pub(crate) struct Addresses {
    pub slots: u64,
    pub seeds: u64,
    pub nodes: u64,
    /// Two counters: vectors, and nodes; in an indexed table, vectors, and rows that were given.
    pub stored: u64,
    /// Indexed tables only.
    pub rows: u64,
    pub spares: u64,
    pub spare_cells: u32,
}

impl<'a> Parameters<'a> {
    /// Parameters of a table of at least this size.
    pub(crate) fn new(options: &'a Options, seeds: &'a Seeds, spec: Spec, buckets: u64, size: Size) -> Result<Self> {
        let node_buckets = if spec.is_tree() { size::node_buckets(size.nodes)? } else { 0 };
        Ok(Self { options, seeds, spec, buckets, node_buckets })
    }

    /// The seeds that kernels read from memory.
    pub(crate) fn vector_seeds(&self) -> &[SeedPair] {
        &self.seeds.vectors
    }

    /// Bytes of the slots for vectors, keys or roots.
    pub(crate) fn slot_bytes(&self, geometry: &Geometry) -> u64 {
        self.spec.bytes(geometry, self.buckets)
    }

    /// Slots of the index of an indexed table: buckets have 32 bytes.
    pub(crate) fn slots(&self) -> u64 {
        self.buckets * 256 / u64::from(self.spec.index_slot_bits())
    }

    /// Bytes of the rows of an indexed table.
    pub(crate) fn row_bytes(&self, geometry: &Geometry) -> u64 {
        self.spec.row_bytes(self.spec.rows(geometry, self.buckets))
    }

    pub(crate) fn node_bytes(&self) -> u64 {
        node_bytes(self.node_buckets)
    }

    /// View for kernels of the table whose parts are at these addresses. `geometry`: of its spec.
    pub(crate) fn view(&self, at: &Addresses, geometry: &Geometry) -> View {
        let slices = || Slices::of(self.buckets, geometry.slots_per_bucket);
        let bucket = || TableView {
            slots: at.slots,
            buckets: self.buckets,
            slice_buckets: slices().slice_buckets,
            slice_mask: slices().slice_mask,
            seeds: at.seeds,
            stored: at.stored,
            hash_mask: self.options.hash_mask,
            empty: self.seeds.empty,
            probe_limit: probe_limit(self.buckets),
            width: self.spec.hashed_words(),
        };
        let nodes = || NodeView {
            slots: at.nodes,
            stored: at.stored + 8,
            seeds: self.seeds.nodes,
            buckets: self.node_buckets as u32,
            probe_limit: probe_limit(self.node_buckets),
            hash_mask: self.options.node_hash_mask,
            width: self.spec.width,
        };
        let compact = || {
            let layout = self.spec.layout(self.buckets).expect("keys fit a table that was given buckets");
            let mut view = layout.view(&self.family(self.spec.key_bits), at.slots, at.stored);
            view.hash.last_bits = self.options.last_bits;
            view
        };
        match self.spec.kind {
            Kind::Bucket => View::new(Kind::Bucket, bucket()),
            Kind::Tree => View::new(Kind::Tree, TreeView { roots: bucket(), nodes: nodes() }),
            Kind::Root => View::new(Kind::Root, compact()),
            Kind::Indexed => {
                let capacity = rows::rows(self.slots());
                let rows = RowsView {
                    words: at.rows,
                    given: at.stored + 8,
                    spares: at.spares,
                    capacity,
                    dense: 0,
                    spare_cells: at.spare_cells,
                    width: self.spec.width,
                    reuses: 1,
                };
                let TableView { slots, buckets, slice_buckets, slice_mask, seeds, stored, hash_mask, probe_limit, .. } = bucket();
                let row_bits = rows::row_bits(capacity, self.spec.slot_bits);
                let view = IndexedView {
                    slots,
                    buckets,
                    slice_buckets,
                    slice_mask,
                    seeds,
                    stored,
                    hash_mask,
                    row_bits,
                    probe_limit,
                    rows,
                };
                View::new(Kind::Indexed, view)
            }
            Kind::CompactTree => View::new(Kind::CompactTree, CompactTreeView { roots: compact(), nodes: nodes() }),
        }
    }

    /// Hash family of a compact table of `key_bits`-bit keys.
    pub(crate) fn family(&self, key_bits: u32) -> Permutation<u64> {
        match self.options.hash_mask {
            0 => Permutation::new(key_bits, [1; 3], 0),
            _ => Permutation::random(key_bits, &mut StdRng::seed_from_u64(self.seeds.family)),
        }
    }
}
