//! Tables in the memory of this process, searched by its threads: the kernels of cuda/cpu_tables.cpp.

use super::view::{BatchView, Counts, Geometry, ProbeTotals, Settled, Views};
use super::{Addresses, Input, Output, Parameters, ProbeLengths, Progress, Search, SeedPair};
use crate::{Error, Result, Spec};
use memmap2::{MmapMut, MmapOptions};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

unsafe extern "C" {
    fn warpset_cpu_geometry(tree: u32, width: u32, slot_bits: u32, geometry: *mut Geometry);
    fn warpset_cpu_clear(view: *const Views, thread: u64, threads: u64);
    fn warpset_cpu_settle(view: *const Views, thread: u64, threads: u64, seed: u64, keys: *mut u64, counts: *mut Settled);
    fn warpset_cpu_find_or_put(view: *const Views, batch: *const BatchView);
    fn warpset_cpu_find(view: *const Views, batch: *const BatchView);
    fn warpset_cpu_get(view: *const Views, references: *const u64, count: u64, vectors: *mut u32, invalid: *mut u64);
    fn warpset_cpu_export(view: *const Views, first: u64, last: u64, vectors: *mut u32, references: *mut u64, cursor: *mut u64);
    #[cfg(test)]
    fn warpset_cpu_place(
        views: *const Views,
        level: u32,
        function: u32,
        key: u64,
        bucket: *mut u32,
        code: *mut u64,
        back: *mut u64,
    );
    fn warpset_cpu_measure(view: *const Views, first: u64, last: u64, lengths: *mut u64, bins: u32, totals: *mut ProbeTotals);
}

/// Vectors a thread takes at a time, and the smallest batch that is worth a second thread.
const PIECE: usize = 4096;

/// The layout of a spec on this machine.
pub(crate) fn geometry(spec: Spec) -> Geometry {
    let mut geometry = Geometry::default();
    // SAFETY: `geometry` is a valid place for one `Geometry`, whose layout cpu_tables.cpp shares (tests/abi.rs).
    unsafe { warpset_cpu_geometry(spec.tree.into(), spec.width, spec.slot_bits, &mut geometry) };
    geometry.check_abi(spec);
    geometry
}

/// Where a key is under a function of a level, and the key of that place.
#[cfg(test)]
pub(crate) fn place(compact: super::CompactView, slot_bits: u32, level: u32, function: u32, key: u64) -> (u32, u64, u64) {
    use bytemuck::Zeroable;

    let compact = super::CompactTreeView { roots: compact, ..bytemuck::Zeroable::zeroed() };
    let views = Views { compact, slot_bits, ..Views::zeroed() };
    let (mut bucket, mut code, mut back) = (0, 0, 0);
    // SAFETY: the views are of a compact table, whose memory the function does not look at; the places are valid.
    unsafe { warpset_cpu_place(&views, level, function, key, &mut bucket, &mut code, &mut back) };
    (bucket, code, back)
}

/// One table of a fixed size.
pub(crate) struct CpuStore {
    view: Views,
    threads: usize,
    spec: Spec,
    // What the view points to:
    _slots: MmapMut,
    _seeds: Box<[SeedPair]>,
    _nodes: Option<MmapMut>,
    /// Vectors, and nodes.
    stored: Box<[AtomicU64; 2]>,
}

// SAFETY: every access to the memory behind `view` that may overlap with another is an atomic one (platform/cpu); `clear` is
// only called with exclusive access (RawTable holds its lock for writing).
unsafe impl Send for CpuStore {}
// SAFETY: as for `Send`.
unsafe impl Sync for CpuStore {}

impl CpuStore {
    pub(crate) fn new(parameters: &Parameters, threads: usize) -> Result<Self> {
        let geometry = geometry(parameters.spec);
        let (root_bytes, node_bytes) = (parameters.slot_bytes(&geometry), parameters.node_bytes());
        let bytes = root_bytes + node_bytes;
        let free = free_memory();
        if bytes > free {
            return Err(Error::OutOfMemory { device: crate::device::cpu_name(threads), asked: bytes, free });
        }
        let refused = |error: std::io::Error| Error::Allocation { bytes, reason: error.to_string() };
        let room = |bytes: u64| {
            let memory = MmapOptions::new().len(bytes as usize).map_anon().map_err(refused)?;
            // Random places in small pages miss the TLB each time. Advice only: without huge pages the table is slower, not wrong.
            #[cfg(target_os = "linux")]
            let _ = memory.advise(memmap2::Advice::HugePage);
            Ok(memory)
        };
        let mut slots = room(root_bytes)?;
        let mut nodes = if node_bytes > 0 { Some(room(node_bytes)?) } else { None };
        let seeds: Box<[SeedPair]> = parameters.seeds.clone().into();
        let stored: Box<[AtomicU64; 2]> = Box::default();
        let view = parameters.views(&Addresses {
            slots: slots.as_mut_ptr() as u64,
            seeds: seeds.as_ptr() as u64,
            nodes: nodes.as_mut().map_or(0, |nodes| nodes.as_mut_ptr() as u64),
            stored: stored.as_ptr() as u64,
        });
        let spec = parameters.spec;
        let store = Self { view, threads, spec, _slots: slots, _seeds: seeds, _nodes: nodes, stored };
        store.clear();
        Ok(store)
    }

    /// Vectors, and nodes.
    pub(crate) fn stored(&self) -> [u64; 2] {
        // Relaxed: counts of their own; a caller that needs them exact has joined the threads that add to them.
        [0, 1].map(|which: usize| self.stored[which].load(Ordering::Relaxed))
    }

    pub(crate) fn clear(&self) {
        // Starting a thread costs as much as clearing about a megabyte.
        let bytes = self._slots.len() + self._nodes.as_ref().map_or(0, |nodes| nodes.len());
        let threads = self.threads.min(bytes.div_ceil(1 << 20));
        let clear = |thread| {
            // SAFETY: the view's memory is as large as the geometry of its spec says (`new`), and the threads clear disjoint
            // parts of it while nothing else uses the table.
            unsafe { warpset_cpu_clear(&self.view, thread as u64, threads as u64) };
        };
        std::thread::scope(|scope| {
            for thread in 1..threads {
                scope.spawn(move || clear(thread));
            }
            clear(0);
        });
    }

    pub(crate) fn search(&self, search: Search, input: Input<'_>, mut output: Output<'_>, progress: &mut Progress<'_>) -> Counts {
        let count = input.vectors.len() / self.spec.width();
        let mut counts = Counts::default();
        let next = AtomicUsize::new(0);
        let done = AtomicU64::new(0);
        let view = BatchView {
            vectors: input.vectors.as_ptr() as u64,
            count: count as u64,
            outcomes: output.outcomes.as_mut().map_or(0, |o| o.as_mut_ptr() as u64),
            references: output.references.as_mut().map_or(0, |r| r.as_mut_ptr() as u64),
            new_references: output.new_references.as_mut().map_or(0, |n| n.as_mut_ptr() as u64),
            counts: &raw mut counts as u64,
            parents: input.parents.map_or(0, |parents| parents.as_ptr() as u64),
            changed: input.changed.map_or(0, |changed| changed.as_ptr() as u64),
            workspace: 0,
        };
        let table = if search == Search::PutBack { self.view.to_put_back() } else { self.view };
        // Each thread takes a piece at a time; `report` runs after each piece of the calling thread.
        let work = |report: &mut dyn FnMut(u64)| {
            loop {
                // Relaxed: only the uniqueness of the pieces matters; their results are read after the threads are joined.
                let first = next.fetch_add(PIECE, Ordering::Relaxed);
                if first >= count {
                    return;
                }
                let len = PIECE.min(count - first);
                let at = |address: u64, bytes: usize| if address == 0 { 0 } else { address + (first * bytes) as u64 };
                let piece = BatchView {
                    vectors: at(view.vectors, self.spec.width() * 4),
                    count: len as u64,
                    outcomes: at(view.outcomes, 1),
                    references: at(view.references, 8),
                    parents: at(view.parents, 8),
                    changed: at(view.changed, self.spec.mask_words() * 4),
                    ..view
                };
                // SAFETY:
                // - `vectors` holds `count` rows of the table's width, and each other input and output given has `count` elements or
                //   masks (RawTable checks or sizes them); this piece is within them and no other thread has it;
                // - `new_references` is written at places that `counts.new_references` gives out once each, fewer than `count`;
                // - `counts` outlives the threads and is changed atomically;
                // - the table's memory is accessed by atomics only.
                unsafe {
                    match search {
                        Search::FindOrPut | Search::PutBack => warpset_cpu_find_or_put(&table, &piece),
                        Search::Find => warpset_cpu_find(&table, &piece),
                    }
                }
                report(done.fetch_add(len as u64, Ordering::Relaxed) + len as u64);
            }
        };
        let work = &work;
        let threads = self.threads.min(count.div_ceil(PIECE)).max(1);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(move || work(&mut |_| ()));
            }
            work(&mut |done| progress.report(done));
        });
        counts
    }

    /// Of a cuckoo table.
    pub(crate) fn settle(&self, seed: u64) -> (u64, Vec<u64>) {
        let second = self.view.compact.roots.second;
        let slots = second.buckets as usize * 8;
        let (mut keys, mut counts) = (vec![0u64; slots], Settled::default());
        let (keys_at, counts_at) = (keys.as_mut_ptr() as u64, &raw mut counts as u64);
        let threads = self.threads.min(slots.div_ceil(PIECE)).max(1) as u64;
        std::thread::scope(|scope| {
            for thread in 0..threads {
                // SAFETY: `keys` has an element for each slot of the second level, of which each thread takes others, and is written at
                // places that `counts` gives out once each; both outlive the threads. The caller uses the table alone.
                scope.spawn(move || unsafe {
                    warpset_cpu_settle(&self.view, thread, threads, seed, keys_at as *mut u64, counts_at as *mut Settled);
                });
            }
        });
        keys.truncate(counts.left_over as usize);
        (counts.taken, keys)
    }

    /// The number of words that could not be read.
    pub(crate) fn get(&self, references: &[u64], vectors: &mut [u32]) -> u64 {
        assert_eq!(vectors.len(), references.len() * self.spec.width());
        let invalid = AtomicU64::new(0);
        let piece = references.len().div_ceil(self.threads).max(PIECE);
        std::thread::scope(|scope| {
            for (references, vectors) in references.chunks(piece).zip(vectors.chunks_mut(piece * self.spec.width())) {
                let invalid = &invalid;
                // SAFETY: `vectors` has room for the vectors of `references` (asserted above), `invalid` is added to atomically,
                // and the kernel checks every reference before it reads the slot.
                let mut get = move || unsafe {
                    warpset_cpu_get(
                        &self.view,
                        references.as_ptr(),
                        references.len() as u64,
                        vectors.as_mut_ptr(),
                        invalid.as_ptr(),
                    )
                };
                if references.len() < piece { get() } else { drop(scope.spawn(get)) }
            }
        });
        invalid.into_inner()
    }

    pub(crate) fn export(&self, slots: Range<u64>) -> (Vec<u32>, Vec<u64>) {
        let room = (slots.end - slots.start) as usize;
        let (mut vectors, mut references, mut count) = (vec![0u32; room * self.spec.width()], vec![0u64; room], 0u64);
        // SAFETY: the slots are slots of the table (RawTable), and there is room for all of them.
        unsafe {
            warpset_cpu_export(&self.view, slots.start, slots.end, vectors.as_mut_ptr(), references.as_mut_ptr(), &mut count);
        }
        vectors.truncate(count as usize * self.spec.width());
        references.truncate(count as usize);
        (vectors, references)
    }

    /// Puts every vector into `larger`, a piece of 64 MiB at a time.
    pub(crate) fn copy_to(&self, larger: &CpuStore, slots: u64) -> Counts {
        let mut sum = Counts::default();
        let piece = (64 << 20) / (self.spec.width() as u64 * 4);
        for first in (0..slots).step_by(piece as usize) {
            let (vectors, _) = self.export(first..slots.min(first + piece));
            sum += larger.search(Search::FindOrPut, Input::whole(&vectors), Output::default(), &mut Progress::none());
        }
        sum
    }

    pub(crate) fn measure(&self, slots: u64, bins: usize) -> ProbeLengths {
        let (mut lengths, mut totals) = (vec![0u64; bins], ProbeTotals::default());
        let piece = slots.div_ceil(self.threads as u64).max(1 << 16);
        let (lengths_at, totals_at) = (lengths.as_mut_ptr() as u64, &raw mut totals as u64);
        std::thread::scope(|scope| {
            for first in (0..slots).step_by(piece as usize) {
                // SAFETY: the slots are slots of the table; `lengths` has `bins` elements, outlives the scope, and is, like
                // `totals`, only changed atomically.
                scope.spawn(move || unsafe {
                    let last = slots.min(first + piece);
                    warpset_cpu_measure(
                        &self.view,
                        first,
                        last,
                        lengths_at as *mut u64,
                        bins as u32,
                        totals_at as *mut ProbeTotals,
                    );
                });
            }
        });
        ProbeLengths { lengths, totals }
    }
}

/// Bytes that the system says it can give; more than there can be where it does not say.
fn free_memory() -> u64 {
    let available = || {
        let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    available().map_or(i64::MAX as u64, |kib| kib * 1024)
}
