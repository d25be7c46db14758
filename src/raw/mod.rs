//! The untyped core: one table, whatever its device; it knows words, slots and bytes.

#[cfg(feature = "cpu")]
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod room;
pub(crate) mod view;

use crate::bijection::Bijection;
use crate::compact;
use crate::device::{Device, Machine};
use crate::spec::{MAX_NODE_BUCKETS, Spec, buckets_for, probe_limit};
use crate::{Batch, Error, Outcome, Reference, Result, Strategy, Tally};
use bytemuck::{Pod, Zeroable};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::ops::Range;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(all(test, feature = "cpu"))]
pub(crate) use view::CompactView;
use view::{CompactTreeView, Counts, Geometry, NodeView, TableView, TreeView, Views};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    FindOrPut,
    /// Find-or-put of keys of a cuckoo table that others have given no place, while nothing else uses it.
    PutBack,
    Find,
}

/// What a search is offered.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    /// Vectors, one after another.
    pub vectors: &'a [u32],
    /// For each the slot of its parent (or `Reference::NONE`), if they are offered as changes of stored vectors.
    pub parents: Option<&'a [u64]>,
    /// For each which words may differ from its parent's: a bit each, `Spec::mask_words` for a vector.
    pub changed: Option<&'a [u32]>,
}

impl<'a> Input<'a> {
    /// As they are.
    pub(crate) fn whole(vectors: &'a [u32]) -> Self {
        Self { vectors, parents: None, changed: None }
    }

    /// Vectors in a range of positions.
    pub(crate) fn part(self, part: &Range<usize>, spec: Spec) -> Self {
        let rows = |words: &'a [u32], width: usize| &words[part.start * width..part.end * width];
        Self {
            vectors: rows(self.vectors, spec.width()),
            parents: self.parents.map(|parents| &parents[part.clone()]),
            changed: self.changed.map(|changed| rows(changed, spec.mask_words())),
        }
    }
}

/// Where a search writes its results, by position. Each has as many elements as there are vectors.
#[derive(Default)]
pub(crate) struct Output<'a> {
    pub outcomes: Option<&'a mut [u8]>,
    pub references: Option<&'a mut [u64]>,
    /// In no order; the first `Counts::new_references` are written.
    pub new_references: Option<&'a mut [u64]>,
}

pub(crate) struct ProbeLengths {
    pub lengths: Vec<u64>,
    pub totals: view::ProbeTotals,
}

/// Tells a caller's callback how far a batch is.
pub(crate) struct Progress<'a> {
    pub callback: Option<&'a mut (dyn FnMut(u64, u64) + 'a)>,
    /// Vectors of earlier parts of the same call, and of the whole call.
    pub before: u64,
    pub total: u64,
}

impl Progress<'_> {
    pub(crate) fn none() -> Self {
        Progress { callback: None, before: 0, total: 0 }
    }

    fn report(&mut self, done: u64) {
        if let Some(callback) = &mut self.callback {
            callback(self.before + done, self.total);
        }
    }
}

/// The seeds of both hash instances for one word: one 16-byte access in hash.cuh.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct SeedPair([u64; 2]);

/// What a table of one size is made from.
pub(crate) struct Parameters {
    pub spec: Spec,
    pub buckets: u64,
    pub seeds: Vec<SeedPair>,
    pub empty: [u32; 4],
    pub hash_mask: u64,
    /// Of a tree table; else 0.
    pub node_buckets: u64,
    pub node_seeds: [u64; 3],
    pub node_hash_mask: u32,
    /// Of a compact table.
    pub family: Option<Bijection<u64>>,
}

/// Where the parts of a table are, on its device.
struct Addresses {
    slots: u64,
    seeds: u64,
    nodes: u64,
    /// Two numbers: of vectors, and of nodes.
    stored: u64,
}

impl Parameters {
    fn views(&self, at: &Addresses) -> Views {
        let roots = TableView {
            slots: at.slots,
            buckets: self.buckets,
            seeds: at.seeds,
            stored: at.stored,
            hash_mask: self.hash_mask,
            empty: self.empty,
            probe_limit: probe_limit(self.buckets),
            width: self.spec.slot_words(),
        };
        let nodes = NodeView {
            slots: at.nodes,
            stored: at.stored + 8,
            seeds: self.node_seeds,
            buckets: self.node_buckets as u32,
            probe_limit: probe_limit(self.node_buckets),
            hash_mask: self.node_hash_mask,
            width: if self.spec.tree { self.spec.width } else { 0 },
        };
        if let (Some(layout), Some(family)) = (self.spec.layout(self.buckets), &self.family) {
            let compact = CompactTreeView { roots: layout.view(family, at.slots, at.stored), nodes };
            return Views { compact, slot_bits: self.spec.slot_bits, ..Views::zeroed() };
        }
        Views { tree: TreeView { roots, nodes }, pairing: self.spec.strategy.pairing() as u32, ..Views::zeroed() }
    }

    /// Bytes of the table of slots.
    fn slot_bytes(&self, geometry: &Geometry) -> u64 {
        self.spec.bytes(geometry, self.buckets)
    }

    /// Bytes of the node table: two slots a bucket, and one that stays EMPTY.
    fn node_bytes(&self) -> u64 {
        node_bytes(self.node_buckets)
    }
}

fn node_bytes(buckets: u64) -> u64 {
    if buckets == 0 { 0 } else { (2 * buckets + 1) * 8 }
}

/// How a table is made; see `TableBuilder`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Vectors are stored as trees.
    pub tree: bool,
    /// Vectors are keys, or if trees their roots are, of which slots hold a part.
    pub compact: bool,
    /// Of the keys of a compact table that is no tree's.
    pub key_bits: u32,
    /// Of a compact table; none: the fewest that will do.
    pub slot_bits: Option<u32>,
    /// Keys of a compact table that is no tree's may be moved.
    pub cuckoo: bool,
    pub strategy: Strategy,
    pub width: usize,
    pub capacity: u64,
    /// Slots of the node table; none: as many as there are for vectors.
    pub nodes: Option<u64>,
    pub seed: Option<u64>,
    pub grows: bool,
    pub hash_mask: u64,
    pub node_hash_mask: u32,
    pub empty: Option<[u32; 4]>,
}

impl Options {
    /// What a table of at least so many slots is compiled for. (How many bits a compact root has depends on the size of the node table.)
    fn spec(&self, device: &Device, size: Size) -> Result<Spec> {
        let chunk_bytes = device.chunk_bytes();
        let of_tree = || Spec::of_tree(self.width, self.strategy, chunk_bytes);
        let is_tree = of_tree().is_ok_and(|spec| self.tree && spec.tree);
        if !self.compact || (self.tree && !is_tree) {
            return if self.tree { of_tree() } else { Spec::new(self.width, chunk_bytes) };
        }
        if !self.tree && self.width != 2 {
            return Err(Error::KeyWords { width: self.width });
        }
        let key_bits = if is_tree { Spec::root_bits(self.width, 2 * checked_node_buckets(size.nodes)?) } else { self.key_bits };
        // Checked first: what follows computes with them.
        Spec::of_keys(key_bits, self.slot_bits.unwrap_or(64), chunk_bytes)?;
        let slot_bits = self.slot_bits.unwrap_or_else(|| compact::Layout::default_slot_bits(key_bits, size.slots, self.cuckoo));
        if is_tree {
            return Spec::of_compact_tree(self.width, key_bits, slot_bits, chunk_bytes);
        }
        Ok(Spec { cuckoo: self.cuckoo, ..Spec::of_keys(key_bits, slot_bits, chunk_bytes)? })
    }

    /// The hash family of a compact table.
    fn family(&self, spec: Spec, seed: u64) -> Option<Bijection<u64>> {
        let (key_bits, _) = spec.key_and_slot_bits()?;
        Some(match self.hash_mask {
            0 => Bijection::new(key_bits, [1; 3], 0),
            _ => Bijection::random(key_bits, &mut StdRng::seed_from_u64(seed)),
        })
    }
}

pub(crate) enum Store {
    #[cfg(feature = "cpu")]
    Cpu(cpu::CpuStore),
    #[cfg(feature = "cuda")]
    Cuda(cuda::CudaStore),
}

/// Calls the same method of whichever store it is; CPU stores cannot fail.
macro_rules! on_store {
    ($store:expr, $cuda:ident => $on_cuda:expr, $cpu:ident => $on_cpu:expr) => {
        match $store {
            #[cfg(feature = "cuda")]
            Store::Cuda($cuda) => $on_cuda,
            #[cfg(feature = "cpu")]
            Store::Cpu($cpu) => Ok($on_cpu),
        }
    };
}

impl Store {
    fn new(device: &Device, parameters: &Parameters) -> Result<Self> {
        match &device.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { threads } => Ok(Self::Cpu(cpu::CpuStore::new(parameters, *threads)?)),
            #[cfg(feature = "cuda")]
            Machine::Cuda(gpu) => Ok(Self::Cuda(cuda::CudaStore::new(gpu, parameters)?)),
        }
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn on_gpu(&self) -> Option<&cuda::CudaStore> {
        match self {
            Self::Cuda(store) => Some(store),
            #[cfg(feature = "cpu")]
            Self::Cpu(_) => None,
        }
    }

    /// Vectors, and nodes.
    fn stored(&self) -> Result<[u64; 2]> {
        on_store!(self, cuda => cuda.stored(), cpu => cpu.stored())
    }

    fn clear(&self) -> Result<()> {
        on_store!(self, cuda => cuda.clear(), cpu => cpu.clear())
    }

    fn search(&self, search: Search, input: Input<'_>, output: Output<'_>, progress: &mut Progress<'_>) -> Result<Counts> {
        on_store!(self, cuda => cuda.search(search, input, output, progress), cpu => cpu.search(search, input, output, progress))
    }

    /// Settles the keys of a cuckoo table's second level (settle.cuh). Gives how many there were, and those that are left over, which the
    /// table no longer holds.
    fn settle(&self, seed: u64) -> Result<(u64, Vec<u64>)> {
        on_store!(self, cuda => cuda.settle(seed), cpu => cpu.settle(seed))
    }

    /// The number of words that could not be read.
    fn get(&self, references: &[u64], vectors: &mut [u32]) -> Result<u64> {
        on_store!(self, cuda => cuda.get(references, vectors), cpu => cpu.get(references, vectors))
    }

    fn export(&self, slots: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)> {
        on_store!(self, cuda => cuda.export(slots), cpu => cpu.export(slots))
    }

    fn measure(&self, slots: u64, bins: usize) -> Result<ProbeLengths> {
        on_store!(self, cuda => cuda.measure(slots, bins), cpu => cpu.measure(slots, bins))
    }

    /// Puts every vector of `self`, which has `slots` slots, into `larger`.
    fn copy_to(&self, larger: &Store, slots: u64) -> Result<Counts> {
        match (self, larger) {
            #[cfg(feature = "cuda")]
            (Self::Cuda(from), Self::Cuda(to)) => from.copy_to(to, slots),
            #[cfg(feature = "cpu")]
            (Self::Cpu(from), Self::Cpu(to)) => Ok(from.copy_to(to, slots)),
            #[cfg(all(feature = "cuda", feature = "cpu"))]
            _ => unreachable!("a table stays on its device"),
        }
    }
}

/// The part of a table that growth replaces.
pub(crate) struct Sized {
    pub store: Store,
    /// A larger node table may make compact roots of more bits.
    pub spec: Spec,
    pub buckets: u64,
    pub node_buckets: u64,
    /// Counts clears and growths: references of an earlier generation are void.
    pub generation: u64,
}

pub(crate) struct RawTable {
    pub device: Device,
    pub width: usize,
    options: Options,
    /// Of the hash family of compact tables.
    family_seed: u64,
    geometry: Geometry,
    /// Of the table as it was made: a grown one differs in `buckets`.
    parameters: Parameters,
    sized: RwLock<Sized>,
}

impl RawTable {
    pub(crate) fn new(device: &Device, options: Options) -> Result<Self> {
        let size = Size { slots: options.capacity, nodes: options.nodes.unwrap_or(options.capacity) };
        let spec = options.spec(device, size)?;
        let geometry = match &device.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { .. } => cpu::geometry(spec),
            #[cfg(feature = "cuda")]
            Machine::Cuda(gpu) => gpu.kernels(spec)?.geometry,
        };
        let mut random = match options.seed {
            Some(seed) => StdRng::seed_from_u64(seed),
            None => StdRng::from_rng(&mut rand::rng()),
        };
        let seeds = (0..=spec.slot_words()).map(|_| SeedPair([random.next_u64(), random.next_u64()])).collect();
        let drawn = std::array::from_fn(|_| random.next_u32());
        let empty = options.empty.unwrap_or(drawn);
        let buckets = checked_buckets(&geometry, spec, options.capacity)?;
        let Options { hash_mask, node_hash_mask, .. } = options;
        let node_buckets = if spec.tree { checked_node_buckets(size.nodes)? } else { 0 };
        let node_seeds = std::array::from_fn(|_| random.next_u64());
        let family_seed = random.next_u64();
        let family = options.family(spec, family_seed);
        let parameters = Parameters { spec, buckets, seeds, empty, hash_mask, node_buckets, node_seeds, node_hash_mask, family };
        let store = Store::new(device, &parameters)?;
        let sized = RwLock::new(Sized { store, spec, buckets, node_buckets, generation: 0 });
        Ok(Self { device: device.clone(), width: options.width, options, family_seed, geometry, parameters, sized })
    }

    /// The table as it is now; it neither grows nor is cleared while this is held.
    pub(crate) fn sized(&self) -> RwLockReadGuard<'_, Sized> {
        self.sized.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn sized_exclusively(&self) -> RwLockWriteGuard<'_, Sized> {
        self.sized.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn slots(&self) -> u64 {
        self.slots_of(&self.sized())
    }

    /// Slots of the table as it is now.
    pub(crate) fn slots_of(&self, sized: &Sized) -> u64 {
        sized.spec.slots(&self.geometry, sized.buckets)
    }

    pub(crate) fn spec(&self) -> Spec {
        self.sized().spec
    }

    /// Slots of the node table.
    pub(crate) fn node_slots(&self) -> u64 {
        2 * self.sized().node_buckets
    }

    pub(crate) fn bytes(&self) -> u64 {
        let sized = self.sized();
        sized.spec.bytes(&self.geometry, sized.buckets) + node_bytes(sized.node_buckets)
    }

    pub(crate) fn stored(&self) -> Result<u64> {
        Ok(self.sized().store.stored()?[0])
    }

    pub(crate) fn stored_nodes(&self) -> Result<u64> {
        // Of other tables nothing is counted there.
        let sized = self.sized();
        Ok(if sized.spec.tree { sized.store.stored()?[1] } else { 0 })
    }

    /// The number of vectors in `words`.
    fn count(&self, words: &[u32]) -> Result<usize> {
        let width = self.width;
        if !words.len().is_multiple_of(width) {
            return Err(Error::RaggedVectors { words: words.len(), width });
        }
        self.check_keys(words)?;
        Ok(words.len() / width)
    }

    /// Of a compact table that is no tree's: whether no key has too many bits.
    fn check_keys(&self, words: &[u32]) -> Result<()> {
        if !self.options.compact || self.options.tree {
            return Ok(());
        }
        let key_bits = self.options.key_bits;
        let mask = u64::MAX >> (64 - key_bits);
        let key = |words: &[u32]| u64::from(words[0]) | u64::from(words[1]) << 32;
        // Two passes, of which nearly every batch needs the first only: the one that compilers make fast.
        if words.chunks_exact(2).fold(0, |bits, words| bits | key(words)) & !mask == 0 {
            return Ok(());
        }
        let mut keys = words.chunks_exact(2).map(key).enumerate();
        let (position, key) = keys.find(|(_, key)| key & !mask != 0).expect("one of them has");
        Err(Error::KeyTooLarge { key, position, key_bits })
    }

    pub(crate) fn find_or_put(&self, words: &[u32], request: Request<'_>) -> Result<Batch> {
        let count = self.count(words)?;
        let spec = self.spec();
        let Request { outcomes, references, new_references, progress, parents, changed } = request;
        let rows = |what, given: Option<usize>, needed: usize| match given {
            Some(given) if given != needed => Err(Error::Rows { what, given, needed }),
            _ => Ok(()),
        };
        rows("parents", parents.map(<[_]>::len), count)?;
        rows("words of masks of changes", changed.map(<[_]>::len), count * spec.mask_words())?;
        if changed.is_some() && parents.is_none() {
            return Err(Error::Rows { what: "parents (needed with masks of changes)", given: 0, needed: count });
        }
        let input = Input { vectors: words, parents: parents.map(bytemuck::cast_slice), changed };
        // A growth of its own moves vectors that the batch has put already: their references are then looked up at the end. One that
        // another thread asks for meanwhile voids them, as it does all others.
        let generation = self.sized().generation;
        let rooms = |wanted| if wanted { count } else { 0 };
        let moves = self.options.grows || self.options.cuckoo;
        let mut kinds = vec![0u8; rooms(outcomes || moves)];
        let mut places = vec![0u64; rooms(references)];
        let mut fresh = vec![0u64; rooms(new_references)];
        let mut progress = Progress { callback: progress, before: 0, total: count as u64 };
        let mut tally = Tally::default();
        let mut first = 0;
        while first < count {
            let len = if self.options.grows { self.make_room(count - first)? } else { count - first };
            let part = first..first + len;
            let output = Output {
                outcomes: slice_of(&mut kinds, &part),
                references: slice_of(&mut places, &part),
                new_references: slice_of(&mut fresh, &(tally.new as usize..count)),
            };
            let of_table = input.part(&part, spec);
            progress.before = first as u64;
            let mut of_part = {
                let sized = self.sized();
                // A growth has voided the parents' references: the vectors themselves are still good.
                let valid = if sized.generation == generation { of_table } else { Input::whole(of_table.vectors) };
                sized.store.search(Search::FindOrPut, valid, output, &mut progress)?.tally()
            };
            if self.options.cuckoo && of_part.full > 0 {
                of_part = self.settle_and_offer_again(of_table.vectors, &mut kinds[part.clone()], of_part)?;
            }
            if self.options.grows && of_part.full > 0 {
                of_part = self.grow_and_offer_again(of_table.vectors, &mut kinds[part], of_part)?;
            }
            tally.new += of_part.new;
            tally.seen += of_part.seen;
            tally.full += of_part.full;
            tally.full_nodes += of_part.full_nodes;
            first += len;
        }
        let mut batch = Batch { tally, ..Batch::default() };
        if moves && (references || new_references) && self.sized().generation != generation {
            let (found, _) = self.find_all(words)?;
            let is_new = |kind: &u8| *kind == Outcome::New as u8;
            fresh = found
                .iter()
                .zip(&kinds)
                .filter(|(place, kind)| new_references && is_new(kind) && **place != Reference::NONE)
                .map(|(place, _)| *place)
                .collect();
            places = if references { found } else { Vec::new() };
        }
        fresh.truncate(tally.new as usize);
        if outcomes {
            batch.outcomes =
                bytemuck::checked::try_cast_slice(&kinds).expect("kernels write an outcome for every vector").to_vec();
        }
        batch.references = places.into_iter().map(reference).collect();
        batch.new_references = bytemuck::allocation::cast_vec(fresh);
        Ok(batch)
    }

    /// The slot of each vector, or `Reference::NONE`; and how many were found.
    pub(crate) fn find_all(&self, words: &[u32]) -> Result<(Vec<u64>, u64)> {
        let mut places = vec![0u64; self.count(words)?];
        let output = Output { references: Some(&mut places), ..Output::default() };
        let found = self.sized().store.search(Search::Find, Input::whole(words), output, &mut Progress::none())?.hits;
        Ok((places, found))
    }

    pub(crate) fn get(&self, references: &[Reference]) -> Result<Vec<u32>> {
        let mut vectors = vec![0u32; references.len() * self.width];
        match self.sized().store.get(bytemuck::cast_slice(references), &mut vectors)? {
            0 => Ok(vectors),
            // Of one whose vector is being put meanwhile, perhaps not all.
            words => Err(Error::InvalidReferences { invalid: words.div_ceil(self.width as u64), count: references.len() }),
        }
    }

    pub(crate) fn clear(&self) -> Result<()> {
        let mut sized = self.sized_exclusively();
        sized.generation += 1;
        sized.store.clear()
    }

    pub(crate) fn measure(&self, bins: usize) -> Result<ProbeLengths> {
        let sized = self.sized();
        sized.store.measure(self.slots_of(&sized), bins)
    }

    /// The vectors stored in a range of slots, and their slots, if the table is still of this generation.
    pub(crate) fn export(&self, generation: u64, slots: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)> {
        let sized = self.sized();
        if sized.generation != generation {
            return Err(Error::ChangedDuringIteration);
        }
        sized.store.export(slots)
    }
}

/// Slots for vectors, and for nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    slots: u64,
    nodes: u64,
}

/// Buckets for this many nodes or more: references to them have 32 bits.
fn checked_node_buckets(nodes: u64) -> Result<u64> {
    let most = 2 * MAX_NODE_BUCKETS;
    if nodes == 0 || nodes > most {
        return Err(Error::Nodes { nodes, most });
    }
    Ok(buckets_for(nodes, 2).min(MAX_NODE_BUCKETS))
}

fn checked_buckets(geometry: &Geometry, spec: Spec, capacity: u64) -> Result<u64> {
    let error = Error::Capacity { capacity, width: spec.width() };
    let bytes = u128::from(capacity) * 4 * u128::from(spec.width);
    if capacity == 0 || bytes >= 1 << 62 {
        return Err(error);
    }
    if let Some((key_bits, slot_bits)) = spec.key_and_slot_bits() {
        let buckets = compact::buckets_for(capacity, slot_bits);
        if u32::try_from(buckets).is_err() {
            return Err(error);
        }
        let needed = compact::fewest_slots(key_bits, slot_bits, spec.cuckoo);
        let error = Error::KeysDoNotFit { key_bits, slot_bits, slots: capacity, needed };
        return spec.layout(buckets).map(|_| buckets).ok_or(error);
    }
    Ok(buckets_for(capacity, geometry.slots_per_bucket))
}

fn slice_of<'a, T>(all: &'a mut [T], part: &Range<usize>) -> Option<&'a mut [T]> {
    if all.is_empty() { None } else { Some(&mut all[part.clone()]) }
}

pub(crate) fn reference(slot: u64) -> Option<Reference> {
    (slot != Reference::NONE).then_some(Reference(slot))
}

/// See `Request` of the public API; what each vector's results are wanted for.
#[derive(Default)]
pub(crate) struct Request<'a> {
    pub outcomes: bool,
    pub references: bool,
    pub new_references: bool,
    pub progress: Option<&'a mut (dyn FnMut(u64, u64) + 'a)>,
    pub parents: Option<&'a [Reference]>,
    pub changed: Option<&'a [u32]>,
}
