//! The untyped core: one table, whatever its device; it knows words, slots and bytes.

#[cfg(feature = "cpu")]
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod generation;
mod growth;
pub(crate) mod results;
pub(crate) mod view;

use crate::compact;
use crate::device::{Device, Machine};
use crate::permutation::Permutation;
use crate::spec::{MAX_NODE_BUCKETS, Spec, buckets_for, probe_limit};
use crate::{Batch, Error, Outcome, Reference, Result, Stats, Strategy, Tally};
use bytemuck::{Pod, Zeroable};
pub(crate) use generation::Generation;
use rand::{Rng, SeedableRng, rngs::StdRng};
pub(crate) use results::{Input, Output, Progress, Request, zeroed};
use results::{Results, references_of};
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

/// How often everything is relocated again because a key that was left over finds no place in the stash.
pub(crate) const RELOCATION_ROUNDS: u64 = 64;

pub(crate) struct ProbeLengths {
    pub lengths: Vec<u64>,
    pub totals: view::ProbeTotals,
}

/// The seeds of both hash instances for one word: one 16-byte access in core/hash.cuh.
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
    pub family: Option<Permutation<u64>>,
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
    /// A table's without options.
    pub(crate) fn new(tree: bool, compact: bool, width: usize) -> Self {
        Self {
            tree,
            compact,
            key_bits: 64,
            slot_bits: None,
            cuckoo: false,
            strategy: Strategy::Default,
            width,
            capacity: 1 << 20,
            nodes: None,
            seed: None,
            grows: false,
            hash_mask: u64::MAX,
            node_hash_mask: u32::MAX,
            empty: None,
        }
    }

    /// What a table of at least so many slots is compiled for. (How many bits a compact root has depends on the size of the node table.)
    fn spec(&self, device: &Device, size: Size) -> Result<Spec> {
        if !(1..=MAX_CAPACITY).contains(&size.slots) {
            // A width that cannot be is the greater mistake.
            return Spec::new(self.width, device.chunk_bytes())
                .and(Err(Error::Capacity { capacity: size.slots, width: self.width }));
        }
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
    fn family(&self, spec: Spec, seed: u64) -> Option<Permutation<u64>> {
        let (key_bits, _) = spec.key_and_slot_bits()?;
        Some(match self.hash_mask {
            0 => Permutation::new(key_bits, [1; 3], 0),
            _ => Permutation::random(key_bits, &mut StdRng::seed_from_u64(seed)),
        })
    }
}

pub(crate) enum Store {
    #[cfg(feature = "cpu")]
    Cpu(Box<cpu::CpuStore>),
    #[cfg(feature = "cuda")]
    Cuda(Box<cuda::CudaStore>),
}

/// Calls the same method of whichever store it is.
macro_rules! on_store {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match $self {
            #[cfg(feature = "cuda")]
            Store::Cuda(store) => store.$method($($argument),*),
            #[cfg(feature = "cpu")]
            Store::Cpu(store) => store.$method($($argument),*),
        }
    };
}

impl Store {
    fn new(device: &Device, parameters: &Parameters) -> Result<Self> {
        match &device.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { threads } => Ok(Self::Cpu(Box::new(cpu::CpuStore::new(parameters, *threads)?))),
            #[cfg(feature = "cuda")]
            Machine::Cuda(gpu) => Ok(Self::Cuda(Box::new(cuda::CudaStore::new(gpu, parameters)?))),
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
        on_store!(self.stored())
    }

    /// Calls `begin` before anything is changed; then either all vectors go, or an error says that all or none have gone.
    fn clear(&self, begin: impl FnOnce()) -> Result<()> {
        on_store!(self.clear(begin))
    }

    /// References written have `tag`, and so have those of parents that count.
    fn search(
        &self,
        search: Search,
        tag: u64,
        input: Input<'_>,
        output: Output<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<Counts> {
        on_store!(self.search(search, tag, input, output, progress))
    }

    /// Relocates the keys of a cuckoo table's stash (compact/relocation.cuh). Calls `begin` when there is memory for it, and before a key moves.
    /// Gives how many have left the stash.
    fn relocate(&self, seed: u64, begin: impl FnOnce()) -> Result<u64> {
        on_store!(self.relocate(seed, begin))
    }

    /// Whether keys are in no slot, because relocation has met an error: nothing may be looked for before they are put back.
    fn has_displaced(&self) -> bool {
        on_store!(self.has_displaced())
    }

    /// Puts these back. Nothing else may use the table at the same time.
    fn put_displaced_back(&self) -> Result<()> {
        on_store!(self.put_displaced_back())
    }

    /// The number of words that could not be read.
    fn get(&self, references: &[u64], vectors: &mut [u32]) -> Result<u64> {
        on_store!(self.get(references, vectors))
    }

    fn export(&self, slots: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)> {
        on_store!(self.export(slots))
    }

    fn measure(&self, slots: u64, bins: usize) -> Result<ProbeLengths> {
        on_store!(self.measure(slots, bins))
    }

    /// Puts every vector of `self`, which has `slots` slots, into `larger`.
    fn copy_to(&self, larger: &Store, slots: u64) -> Result<Counts> {
        match (self, larger) {
            #[cfg(feature = "cuda")]
            (Self::Cuda(from), Self::Cuda(to)) => from.copy_to(to, slots),
            #[cfg(feature = "cpu")]
            (Self::Cpu(from), Self::Cpu(to)) => from.copy_to(to, slots),
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
    /// References of another one are stale.
    pub generation: Generation,
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
        let sized = RwLock::new(Sized { store, spec, buckets, node_buckets, generation: Generation::next() });
        Ok(Self { device: device.clone(), width: options.width, options, family_seed, geometry, parameters, sized })
    }

    /// The table as it is now; it neither grows nor is cleared while this is held.
    pub(crate) fn sized(&self) -> RwLockReadGuard<'_, Sized> {
        self.sized.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The same of a table whose every key is in a slot, for looking at slots.
    pub(crate) fn ready(&self) -> Result<RwLockReadGuard<'_, Sized>> {
        loop {
            let sized = self.sized();
            if !sized.store.has_displaced() {
                return Ok(sized);
            }
            drop(sized);
            self.sized_exclusively().store.put_displaced_back()?;
        }
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

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_of(&self.sized())
    }

    fn bytes_of(&self, sized: &Sized) -> u64 {
        sized.spec.bytes(&self.geometry, sized.buckets) + node_bytes(sized.node_buckets)
    }

    pub(crate) fn generation_and_slots(&self) -> (Generation, u64) {
        let sized = self.sized();
        (sized.generation, self.slots_of(&sized))
    }

    /// To the vector in a slot, as of now.
    pub(crate) fn reference(&self, slot: u64) -> Option<Reference> {
        let (generation, slots) = self.generation_and_slots();
        (slot < slots).then(|| generation.reference(slot))
    }

    pub(crate) fn stored(&self) -> Result<u64> {
        Ok(self.ready()?.store.stored()?[0])
    }

    /// Of other tables than trees, no nodes.
    fn stored_vectors_and_nodes(&self) -> Result<[u64; 2]> {
        let sized = self.ready()?;
        let [vectors, nodes] = sized.store.stored()?;
        Ok([vectors, if sized.spec.tree { nodes } else { 0 }])
    }

    pub(crate) fn stored_nodes(&self) -> Result<u64> {
        // Of other tables nothing is counted there.
        let sized = self.ready()?;
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

    /// An error unless everything has the length that so many vectors need, and nothing is stale that must not be.
    fn check_input(&self, input: &Input<'_>, count: usize) -> Result<()> {
        let Input { parents, changed, .. } = *input;
        let sized = self.sized();
        let rows = |what, given: Option<usize>, needed: usize| match given {
            Some(given) if given != needed => Err(Error::Rows { what, given, needed }),
            _ => Ok(()),
        };
        rows("parents", parents.map(<[_]>::len), count)?;
        rows("words of masks of changes", changed.map(<[_]>::len), count * sized.spec.mask_words())?;
        match (parents, changed) {
            (Some(parents), Some(_)) => sized.check_references(parents),
            (None, Some(_)) => Err(Error::Rows { what: "parents (needed with masks of changes)", given: 0, needed: count }),
            // Compared with whatever is there now: a stale one does no harm.
            (_, None) => Ok(()),
        }
    }

    pub(crate) fn find_or_put(&self, words: &[u32], request: Request<'_>) -> Result<Batch> {
        let count = self.count(words)?;
        let Request { wanted, progress, parents, changed } = request;
        let input = Input { vectors: words, parents, changed };
        self.check_input(&input, count)?;
        let moves = self.options.grows || self.options.cuckoo;
        let mut progress = Progress::new(progress, count);
        let mut results = Results::new(count, wanted, moves)?;
        let (spec, generation) = (self.spec(), self.sized().generation);
        let (mut tally, mut no_room, mut stopped_by) = (Tally::default(), None, None);
        let mut first = 0;
        while first < count && !progress.stopped {
            let len = if self.options.grows { self.grow_for(count - first, &mut no_room) } else { count - first };
            let part = first..first + len;
            progress.begin_part(first);
            let output = results.part(&part, tally.new);
            let offered = input.part(&part, spec);
            let searched = self.ready().and_then(|sized| sized.search(Search::FindOrPut, offered, output, &mut progress));
            let mut of_part = match searched {
                Ok(counts) => counts.tally(),
                // What earlier parts have put is reported.
                Err(error) if first > 0 => {
                    stopped_by = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            };
            let done = first..first + of_part.offered() as usize;
            if of_part.full > 0 && moves {
                let outcomes = &mut results.outcomes[done.clone()];
                of_part = self.retry_rejected(offered.vectors, outcomes, of_part, &mut no_room)?;
            }
            tally += of_part;
            first = done.end;
        }
        // A growth of its own has moved vectors that the batch had put already. If they cannot be found now, their references are stale,
        // which is an error for whoever uses them, and no reason to keep quiet about outcomes.
        if moves && results.has_references() && self.sized().generation != generation {
            match self.locate(&words[..first * self.width]) {
                Ok(now) => results.relocate(&now),
                Err(error) => stopped_by = stopped_by.or(Some(error)),
            }
        }
        let stopped = first < count;
        Ok(results.into_batch(tally, stopped, stopped_by.or(no_room)))
    }

    /// Where each vector is.
    pub(crate) fn locate(&self, words: &[u32]) -> Result<Vec<Option<Reference>>> {
        let mut references = zeroed(self.count(words)?)?;
        let output = Output { references: Some(&mut references), ..Output::default() };
        self.ready()?.search(Search::Find, Input::whole(words), output, &mut Progress::none())?;
        Ok(bytemuck::allocation::cast_vec(references))
    }

    /// Whether each vector is stored.
    pub(crate) fn contains(&self, words: &[u32]) -> Result<Vec<bool>> {
        let mut outcomes = zeroed(self.count(words)?)?;
        let output = Output { outcomes: Some(&mut outcomes), ..Output::default() };
        self.ready()?.search(Search::Find, Input::whole(words), output, &mut Progress::none())?;
        Ok(outcomes.into_iter().map(|outcome: u8| outcome == Outcome::Seen as u8).collect())
    }

    pub(crate) fn get(&self, references: &[Reference]) -> Result<Vec<u32>> {
        let mut vectors = zeroed(references.len() * self.width)?;
        let sized = self.ready()?;
        sized.check_references(references)?;
        match sized.store.get(bytemuck::cast_slice(references), &mut vectors)? {
            0 => Ok(vectors),
            // Of one whose vector is being put meanwhile, perhaps not all.
            words => Err(Error::InvalidReferences { invalid: words.div_ceil(self.width as u64), count: references.len() }),
        }
    }

    pub(crate) fn clear(&self) -> Result<()> {
        let mut sized = self.sized_exclusively();
        let Sized { store, generation, .. } = &mut *sized;
        store.clear(|| *generation = Generation::next())
    }

    pub(crate) fn stats(&self) -> Result<Stats> {
        const BINS: usize = 64;
        let sized = self.ready()?;
        let slots = self.slots_of(&sized);
        let measured = sized.store.measure(slots, BINS)?;
        let [_, nodes] = sized.store.stored()?;
        Ok(Stats {
            slots,
            stored: measured.lengths.iter().sum(),
            bytes: self.bytes_of(&sized),
            width: self.width,
            // Of other tables nothing is counted there.
            nodes: if sized.spec.tree { nodes } else { 0 },
            node_slots: 2 * sized.node_buckets,
            probe_lengths: measured.lengths,
            longest_probe: measured.totals.longest,
            node_probes: measured.totals.node_probes,
        })
    }

    /// The vectors stored in a range of slots, and where, if the table is still of this generation.
    pub(crate) fn export(&self, generation: Generation, slots: Range<u64>) -> Result<(Vec<u32>, Vec<Reference>)> {
        let sized = self.ready()?;
        if sized.generation != generation {
            return Err(Error::ChangedDuringIteration);
        }
        let (vectors, slots) = sized.store.export(slots)?;
        Ok((vectors, references_of(slots, generation)))
    }
}

impl Sized {
    /// An error if one is of another generation or another table.
    fn check_references(&self, references: &[Reference]) -> Result<()> {
        match self.generation.stale(references) {
            0 => Ok(()),
            stale => Err(Error::StaleReferences { stale, count: references.len() }),
        }
    }

    /// By vectors from host slices: references are of this generation.
    fn search(&self, search: Search, input: Input<'_>, output: Output<'_>, progress: &mut Progress<'_>) -> Result<Counts> {
        self.store.search(search, self.generation.tag(), input, output, progress)
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

/// Slots of a table at most: references number them by 40 bits, and rounding up makes them a few more.
pub(crate) const MAX_CAPACITY: u64 = (1 << Reference::SLOT_BITS) - (1 << 16);

fn checked_buckets(geometry: &Geometry, spec: Spec, capacity: u64) -> Result<u64> {
    let error = Error::Capacity { capacity, width: spec.width() };
    if !(1..=MAX_CAPACITY).contains(&capacity) {
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
