//! A table of any device and key type. It deals with words, slots and bytes only.

use super::arrays::Arrays;
use super::calls::Calls;
use super::lock::{Alone, SharedGuard, TableLock};
use super::results::{are_seen, references_of};
use super::schedule::{NEARLY_FULL, remember};
use super::stats::Stats;
use crate::backend::Store;
use crate::host::Workers;
use crate::host::zeroed;
use crate::layout::SearchMode;
use crate::layout::generation::Generation;
use crate::layout::memory::MemoryLimit;
use crate::layout::options::{Options, Parameters, Seeds};
use crate::layout::size::{self, Size, node_bytes};
use crate::layout::spec::Spec;
use crate::layout::view::{Counts, Geometry};
use crate::layout::{BatchProgress, HostBatch};
use crate::{Device, Error, Outcome, Reference, Result};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

pub(crate) struct RawTable {
    pub device: Device,
    pub(crate) options: Options,
    pub(crate) seeds: Seeds,
    pub(super) geometry: Geometry,
    pub(super) sized: TableLock<TableState>,
    /// Indexed tables only: the calls that may have references to rows.
    pub(crate) calls: Calls,
    /// Indexed tables only: arrays of values for the rows.
    pub(super) arrays: Arrays,
    /// Number of slots of the table when it was last found unable to grow ahead of vectors; 0 at first.
    pub(super) cannot_grow_at: AtomicU64,
    /// Memory that the table may take as it grows by itself.
    pub(super) memory: Mutex<MemoryLimit>,
    /// Trees only: numbers of vectors and nodes at earlier requests for them and after growths, oldest first.
    pub(super) counts: Mutex<Vec<[u64; 2]>>,
    /// Set if the table was loaded, and its slots are arranged as in the saved table.
    pub(crate) loaded: Option<Loaded>,
}

/// The saved table that a table was loaded from. References to the saved table name the same slots of the loaded one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded {
    /// Number of the saved table's generation.
    pub saved: u64,
    /// Generation of the loaded table in which its slots are arranged as in the saved table.
    pub now: Generation,
}

/// The part of a table that growth replaces.
pub(crate) struct TableState {
    pub store: Box<dyn Store>,
    /// Depends on the size of the node table: with more nodes, compact roots may have more bits.
    pub spec: Spec,
    pub buckets: u64,
    pub node_buckets: u64,
    /// References of another generation are stale.
    pub generation: Generation,
    /// Vectors that a growth in place has left in no slot. They must be put before anything else uses the table.
    pub unplaced: Vec<u32>,
    /// Whether a growth in place was ended by an error, and must go on before anything else uses the table.
    pub is_growing: bool,
}

impl TableState {
    /// Allocates the empty memory of a table of this size.
    pub(crate) fn new(device: &Device, parameters: &Parameters<'_>) -> Result<Self> {
        Ok(Self::of(device.machine.new_store(parameters)?, parameters))
    }

    /// Wraps memory that was made with these parameters.
    pub(crate) fn of(store: Box<dyn Store>, parameters: &Parameters<'_>) -> Self {
        let Parameters { spec, buckets, node_buckets, .. } = *parameters;
        Self { store, spec, buckets, node_buckets, generation: Generation::next(), unplaced: Vec::new(), is_growing: false }
    }

    /// Goes on with a growth in place that was ended by an error.
    fn finish_growth(&mut self) -> Result<()> {
        if self.is_growing {
            self.store.finish_growth(&mut self.unplaced)?;
            self.is_growing = false;
        }
        Ok(())
    }

    /// Puts vectors, or keys, that a growth or a relocation has left in no slot. Nothing else may use the table.
    ///
    /// # Errors
    ///
    /// [`Error::TableFull`] if some find no slot. A growth to more slots tries again.
    pub(crate) fn complete(&mut self) -> Result<()> {
        self.finish_growth()?;
        if !self.unplaced.is_empty() {
            let counts = self.store.search_batch(
                self.generation.tag(),
                &mut HostBatch::new(SearchMode::FindOrPut, &self.unplaced),
                &mut BatchProgress::none(),
            )?;
            if counts.full > 0 {
                let [stored, _] = self.store.stored()?;
                let slots = self.spec.slots(&self.store.machine().geometry(self.spec)?, self.buckets);
                let (offered, rejected) = (stored + counts.full, counts.full);
                return Err(Error::TableFull { rejected, for_nodes: 0, offered, stored, slots, cause: None });
            }
            self.unplaced = Vec::new();
        }
        self.store.put_displaced_back()
    }

    /// Returns an error if a reference belongs to another generation or another table.
    pub(super) fn check_references(&self, references: &[Reference]) -> Result<()> {
        match self.generation.stale(references) {
            0 => Ok(()),
            stale => Err(Error::StaleReferences { stale, count: references.len() }),
        }
    }

    /// Looks for vectors. Their outcomes are seen or absent.
    fn find_outcomes(&self, words: &[u32], outcomes: &mut [u8]) -> Result<Counts> {
        self.find(&mut HostBatch { outcomes, ..HostBatch::new(SearchMode::Find, words) })
    }

    /// Looks for the vectors of a batch.
    fn find(&self, batch: &mut HostBatch<'_>) -> Result<Counts> {
        self.store.search_batch(self.generation.tag(), batch, &mut BatchProgress::none())
    }

    /// Numbers of stored vectors and nodes.
    pub(crate) fn stored(&self) -> Result<[u64; 2]> {
        let [vectors, nodes] = self.store.stored()?;
        // Other tables do not count nodes.
        Ok([vectors, if self.spec.is_tree() { nodes } else { 0 }])
    }
}

/// Name, in errors, of the words of a slice after its last whole vector.
pub(crate) const WORDS: &str = "words of the last vector";

/// Name of find-or-put of a host batch in errors.
pub(super) const FIND_OR_PUT: &str = "find_or_put_many";

impl RawTable {
    pub(crate) fn new(device: &Device, options: Options) -> Result<Self> {
        let spec = options.spec(device.chunk_bytes(options.claimed_words()), options.size())?;
        Self::with_seeds(device, options, Seeds::draw(&options, spec))
    }

    pub(crate) fn with_seeds(device: &Device, options: Options, seeds: Seeds) -> Result<Self> {
        if options.filter && device.machine.is_gpu() {
            let what = "a table with a filter (leave out `filter(true)`)";
            return Err(Error::WrongDevice { what, given: device.to_string(), needed: "a CPU".into() });
        }
        let size = options.size();
        let spec = options.spec(device.chunk_bytes(options.claimed_words()), size)?;
        let geometry = device.machine.geometry(spec)?;
        let buckets = size::buckets(&geometry, spec, size.slots)?;
        let sized = TableState::new(device, &Parameters::new(&options, &seeds, spec, buckets, size)?)?;
        Ok(Self::of_store(device, options, seeds, geometry, sized))
    }

    pub(crate) fn of_store(device: &Device, options: Options, seeds: Seeds, geometry: Geometry, sized: TableState) -> Self {
        let (device, sized) = (device.clone(), TableLock::new(sized));
        let (calls, arrays) = (Calls::default(), Arrays::default());
        let (cannot_grow_at, memory, counts) = (AtomicU64::new(0), Mutex::new(options.memory), Mutex::default());
        Self { device, options, seeds, geometry, sized, calls, arrays, cannot_grow_at, memory, counts, loaded: None }
    }

    pub(crate) fn width(&self) -> usize {
        self.options.width
    }

    /// Shares the table for the operation `call`. While the guard is held, the table neither grows nor is cleared.
    ///
    /// Returns an error if the calling thread is saving the table, and calls this from the caller's writer.
    pub(crate) fn sized(&self, call: &'static str) -> Result<SharedGuard<'_, TableState>> {
        self.sized.share(call)
    }

    /// Shares the table to look at sizes. Allowed even while the calling thread saves it.
    pub(crate) fn look(&self) -> SharedGuard<'_, TableState> {
        self.sized.look()
    }

    /// Shares the table as `sized`, with every vector in a slot: first puts those that are in none, if there are any.
    #[inline]
    pub(crate) fn ready(&self, call: &'static str) -> Result<SharedGuard<'_, TableState>> {
        loop {
            let sized = self.sized(call)?;
            if sized.unplaced.is_empty() && !sized.is_growing && (!self.options.is_cuckoo() || !sized.store.has_displaced()) {
                return Ok(sized);
            }
            drop(sized);
            self.complete(call)?;
        }
    }

    #[cold]
    fn complete(&self, call: &'static str) -> Result<()> {
        self.sized_exclusively(call)?.complete()
    }

    /// Exclusive access, if no thread has the table now.
    pub(super) fn try_sized_exclusively(&self, call: &'static str) -> Option<Alone<'_, TableState>> {
        self.sized.try_take(call)
    }

    /// Exclusive access for the operation `call`. Waits until all other operations are done.
    ///
    /// Returns an error if the calling thread holds the table: it would wait for itself.
    pub(crate) fn sized_exclusively(&self, call: &'static str) -> Result<Alone<'_, TableState>> {
        self.sized.take(call)
    }

    pub(crate) fn slots(&self) -> u64 {
        self.slots_of(&self.look())
    }

    /// Number of slots of the table.
    pub(crate) fn slots_of(&self, sized: &TableState) -> u64 {
        sized.spec.slots(&self.geometry_of(sized), sized.buckets)
    }

    /// Layout of the table.
    pub(crate) fn geometry_of(&self, sized: &TableState) -> Geometry {
        self.geometry.of_spec(sized.spec)
    }

    /// Upper bound (exclusive) of the slot or row numbers in references.
    pub(crate) fn references_of(&self, sized: &TableState) -> u64 {
        if sized.spec.is_indexed() { sized.spec.rows(&self.geometry_of(sized), sized.buckets) } else { self.slots_of(sized) }
    }

    pub(super) fn size_of(&self, sized: &TableState) -> Size {
        Size { slots: self.slots_of(sized), nodes: 2 * sized.node_buckets }
    }

    pub(crate) fn spec(&self) -> Spec {
        self.look().spec
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_of(&self.look())
    }

    pub(crate) fn bytes_of(&self, sized: &TableState) -> u64 {
        let rows = sized.store.row_bytes();
        let filter = self.options.filter_bytes(self.slots_of(sized));
        sized.spec.bytes(&self.geometry_of(sized), sized.buckets) + node_bytes(sized.node_buckets) + rows + filter
    }

    pub(crate) fn generation_and_slots(&self) -> (Generation, u64) {
        let sized = self.look();
        (sized.generation, self.references_of(&sized))
    }

    /// Reference to a slot, in the current generation.
    pub(crate) fn reference(&self, slot: u64) -> Option<Reference> {
        let (generation, slots) = self.generation_and_slots();
        (slot < slots).then(|| generation.reference(slot))
    }

    /// Numbers of stored vectors and nodes. Remembers them for forecasts.
    pub(crate) fn stored(&self, call: &'static str) -> Result<[u64; 2]> {
        let sized = self.ready(call)?;
        self.stored_of(&sized)
    }

    /// As [`stored`](Self::stored), for a table whose guard the caller has.
    pub(super) fn stored_of(&self, sized: &TableState) -> Result<[u64; 2]> {
        let counts = sized.stored()?;
        let Size { slots, nodes } = self.size_of(sized);
        // A full table may have rejected vectors, whose nodes belong to no stored vector.
        let is_free = |taken: u64, of: u64| taken as f64 <= NEARLY_FULL * of as f64;
        if sized.spec.is_tree() && is_free(counts[0], slots) && is_free(counts[1], nodes) {
            self.remember(counts);
        }
        Ok(counts)
    }

    /// Remembers these numbers of vectors and nodes for forecasts, unless another thread is doing so.
    pub(super) fn remember(&self, counts: [u64; 2]) {
        if let Ok(mut earlier) = self.counts.try_lock() {
            remember(&mut earlier, counts);
        }
    }

    /// Numbers of vectors and nodes that the table had earlier, oldest first.
    pub(super) fn earlier_counts(&self) -> Vec<[u64; 2]> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Number of vectors in `words`. In a table of keys, checks the keys.
    #[inline]
    pub(crate) fn count(&self, words: &[u32]) -> Result<usize> {
        let width = self.width();
        if !words.len().is_multiple_of(width) {
            return Err(Error::LengthMismatch { what: WORDS, given: words.len() % width, needed: width });
        }
        if let Some(key_bits) = self.options.key_bits() {
            check_keys(words, key_bits)?;
        }
        if let Some(bits) = self.options.last_bits() {
            check_last_words(words, width, bits)?;
        }
        Ok(words.len() / width)
    }

    /// Location of each vector.
    pub(crate) fn locate(&self, call: &'static str, words: &[u32]) -> Result<Vec<Option<Reference>>> {
        let mut references = zeroed(self.count(words)?)?;
        let sized = self.ready(call)?;
        let _call = self.begin_call(&sized)?;
        sized.find(&mut HostBatch { references: &mut references, ..HostBatch::new(SearchMode::Find, words) })?;
        Ok(bytemuck::allocation::cast_vec(references))
    }

    /// Whether each vector is stored.
    pub(crate) fn contains(&self, words: &[u32]) -> Result<Vec<bool>> {
        let mut outcomes = zeroed::<u8>(self.count(words)?)?;
        self.ready("contains_many")?.find_outcomes(words, &mut outcomes)?;
        Ok(are_seen(outcomes))
    }

    /// Whether the vector `words` is stored.
    pub(crate) fn contains_one(&self, words: &[u32]) -> Result<bool> {
        let mut outcome = [0u8];
        self.count(words)?;
        self.ready("contains_many")?.find_outcomes(words, &mut outcome)?;
        Ok(outcome == [Outcome::Seen as u8])
    }

    pub(crate) fn get(&self, call: &'static str, references: &[Reference]) -> Result<Vec<u32>> {
        let mut vectors = zeroed(references.len() * self.width())?;
        let sized = self.ready(call)?;
        sized.check_references(references)?;
        match sized.store.get(bytemuck::cast_slice(references), &mut vectors)? {
            0 => Ok(vectors),
            // The number is of missing words. Of a vector that is being put meanwhile, perhaps only some words are missing.
            words => Err(Error::InvalidReferences { invalid: words.div_ceil(self.width() as u64), count: references.len() }),
        }
    }

    pub(crate) fn clear(&self) -> Result<()> {
        let mut sized = self.sized_exclusively("clear")?;
        sized.finish_growth()?;
        let TableState { store, generation, unplaced, .. } = &mut *sized;
        store.clear(&mut || {
            *generation = Generation::next();
            self.arrays.keep(0);
        })?;
        // After an error they are kept, because the others may be there, too.
        *unplaced = Vec::new();
        Ok(())
    }

    pub(crate) fn stats(&self) -> Result<Stats> {
        const BINS: usize = 64;
        let sized = self.ready("stats")?;
        let slots = self.slots_of(&sized);
        let measured = sized.store.measure(slots, BINS)?;
        let [_, nodes] = sized.stored()?;
        Ok(Stats {
            slots,
            stored: measured.lengths.iter().sum(),
            bytes: self.bytes_of(&sized),
            width: self.width(),
            nodes,
            node_slots: 2 * sized.node_buckets,
            probe_lengths: measured.lengths,
            longest_probe: measured.totals.longest,
            node_probes: measured.totals.node_probes,
        })
    }

    /// Returns the vectors stored in a range of slots, and their locations, if the table still has this generation.
    pub(crate) fn export(&self, generation: Generation, slots: Range<u64>) -> Result<(Vec<u32>, Vec<Reference>)> {
        let sized = self.ready("iter")?;
        let _call = self.begin_call(&sized)?;
        if sized.generation != generation {
            return Err(Error::ChangedDuringIteration);
        }
        let (vectors, slots) = sized.store.export(slots)?;
        Ok((vectors, references_of(slots, generation)))
    }
}

/// Returns an error if the last word of a vector of `width` words has more than `bits` bits, which are fewer than 32.
fn check_last_words(words: &[u32], width: usize, bits: u32) -> Result<()> {
    let mut last = words.chunks_exact(width).map(|vector| vector[width - 1]).enumerate();
    match last.find(|(_, word)| word >> bits != 0) {
        None => Ok(()),
        Some((position, word)) => Err(Error::LastWordTooLarge { word, position, last_bits: bits }),
    }
}

/// Returns an error if a key, of two words, has more bits than `key_bits`.
fn check_keys(words: &[u32], key_bits: u32) -> Result<()> {
    let mask = u64::MAX >> (64 - key_bits);
    let key = |words: &[u32]| u64::from(words[0]) | u64::from(words[1]) << 32;
    // There are two passes. Nearly every batch needs only the first one, which compilers make fast.
    let fit = |words: &[u32]| words.chunks_exact(2).fold(0, |bits, words| bits | key(words)) & !mask == 0;
    // The pieces contain whole keys.
    if Workers::get().all(words, fit) {
        return Ok(());
    }
    let mut keys = words.chunks_exact(2).map(key).enumerate();
    let (position, key) = keys.find(|(_, key)| key & !mask != 0).expect("one of them has");
    Err(Error::KeyTooLarge { key, position, key_bits })
}
