//! One table in the memory of this process, searched by its threads: the kernels of cuda/cpu_tables.cpp.

use super::memory::check_memory;
use super::reserved::Reserved;
use super::threads::{in_pieces, on_threads};
use crate::backend::Store;
use crate::host::zeroed;
use crate::layout::options::{Addresses, Parameters, SeedPair};
use crate::layout::rows::{HoleClosing, RowCounts};
use crate::layout::search::{ProbeLengths, RELOCATION_ROUNDS, SearchMode};
use crate::layout::spec::StorageKind;
use crate::layout::view::{BatchView, Counts, Geometry, ProbeTotals, Relocated, RowMove, UpsertView, View};
use crate::layout::{BatchProgress, HostBatch, Part};
use crate::{Error, Outcome, Result, Spec};
use memmap2::{MmapMut, MmapOptions};
use std::any::Any;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A table of any kind, as the kernels of this process get it. `warpset::View` of cpu_kernels/kernels.hpp.
#[repr(C)]
struct CpuView {
    /// View of the table, of its kind.
    table: *const u8,
    kind: TableKind,
    /// Pairing of the halves of a tree (tree tables only).
    pairing: u32,
    /// Bits of a slot, in a compact or an indexed table.
    slot_bits: u32,
    slots: SlotsOf,
}

/// Layout of slots for vectors: `warpset::SlotsOf` of cpu_kernels/kernels.hpp.
#[derive(Clone, Copy)]
#[repr(C)]
struct SlotsOf {
    /// Words of a slot: more than a vector has if the slot is padded.
    words: u32,
    chunk_bytes: u32,
}

impl SlotsOf {
    fn spec(spec: Spec) -> Self {
        Self { words: spec.slot_words() as u32, chunk_bytes: spec.chunk_bytes() as u32 }
    }
}

/// `warpset::TableKind` of cpu_kernels/kernels.hpp.
#[derive(Clone, Copy)]
#[repr(u32)]
enum TableKind {
    Bucket,
    Tree,
    Compact,
    CompactTree,
    Indexed,
}

impl CpuView {
    /// View of a table with that spec. It points to `view`, which must outlive the call that uses it.
    fn of(spec: Spec, view: &View) -> Self {
        let (kind, pairing, slot_bits) = match view {
            View::Bucket(_) => (TableKind::Bucket, 0, 0),
            View::Tree { pairing, .. } => (TableKind::Tree, *pairing as u32, 0),
            View::Compact { slot_bits, .. } => (TableKind::Compact, 0, *slot_bits),
            View::CompactTree { slot_bits, .. } => (TableKind::CompactTree, 0, *slot_bits),
            View::Indexed { slot_bits, .. } => (TableKind::Indexed, 0, *slot_bits),
        };
        Self { table: view.argument().as_ptr(), kind, pairing, slot_bits, slots: SlotsOf::spec(spec) }
    }
}

unsafe extern "C" {
    fn warpset_cpu_geometry(
        kind: TableKind,
        width: u32,
        slot_words: u32,
        chunk_bytes: u32,
        slot_bits: u32,
        geometry: *mut Geometry,
    );
    fn warpset_cpu_clear(view: *const CpuView, thread: u64, threads: u64);
    fn warpset_cpu_clear_zeros(view: *const CpuView, thread: u64, threads: u64);
    fn warpset_cpu_relocate(view: *const CpuView, thread: u64, threads: u64, seed: u64, keys: *mut u64, counts: *mut Relocated);
    fn warpset_cpu_find_or_put(view: *const CpuView, batch: *const BatchView);
    fn warpset_cpu_upsert(view: *const CpuView, batch: *const BatchView, upsert: *const UpsertView);
    fn warpset_cpu_find(view: *const CpuView, batch: *const BatchView);
    fn warpset_cpu_get(view: *const CpuView, references: *const u64, count: u64, vectors: *mut u32, invalid: *mut u64);
    fn warpset_cpu_export(view: *const CpuView, first: u64, last: u64, vectors: *mut u32, references: *mut u64, cursor: *mut u64);
    fn warpset_cpu_measure(view: *const CpuView, first: u64, last: u64, lengths: *mut u64, bins: u32, totals: *mut ProbeTotals);
    fn warpset_cpu_rebuild(
        view: *const CpuView,
        larger: *const CpuView,
        thread: u64,
        threads: u64,
        last: u64,
        counts: *mut Counts,
    );
    fn warpset_cpu_list_holes(
        view: *const CpuView,
        thread: u64,
        threads: u64,
        first: u64,
        last: u64,
        holes: *mut u64,
        capacity: u64,
        count: *mut u64,
    );
    fn warpset_cpu_move_rows(view: *const CpuView, moves: *const RowMove, count: u64);
    fn warpset_cpu_count_unstored(view: *const CpuView, references: *const u64, count: u64, invalid: *mut u64);
    #[cfg(test)]
    fn warpset_cpu_quotient(
        view: *const CpuView,
        level: u32,
        function: u32,
        key: u64,
        bucket: *mut u32,
        code: *mut u64,
        back: *mut u64,
    );
}

/// Number of vectors that a thread takes at a time, and smallest batch that justifies a second thread.
const PIECE: usize = 4096;

/// The layout of a spec on this machine.
pub(crate) fn geometry(spec: Spec) -> Geometry {
    let mut geometry = Geometry::default();
    let kind = match spec.kind {
        StorageKind::Bucket { .. } => TableKind::Bucket,
        StorageKind::Tree { .. } => TableKind::Tree,
        StorageKind::Compact { .. } => TableKind::Compact,
        StorageKind::CompactTree { .. } => TableKind::CompactTree,
        StorageKind::Indexed { .. } => TableKind::Indexed,
    };
    let slot_bits = spec.key_and_slot_bits().map_or(spec.index_slot_bits(), |(_, slot_bits)| slot_bits);
    // SAFETY: `geometry` is valid memory for one `Geometry`, whose layout cpu_kernels/kernels.hpp shares (tests/abi.rs).
    unsafe {
        let SlotsOf { words, chunk_bytes } = SlotsOf::spec(spec);
        warpset_cpu_geometry(kind, spec.width, words, chunk_bytes, slot_bits, &mut geometry);
    }
    geometry.check_abi(spec);
    geometry
}

/// Bucket and code of a key under a function of a level, and the key that these two are of.
#[cfg(test)]
pub(crate) fn quotient(
    compact: crate::layout::view::CompactView,
    slot_bits: u32,
    level: u32,
    function: u32,
    key: u64,
) -> (u32, u64, u64) {
    let view = View::Compact { view: compact, slot_bits };
    let spec = Spec::compact(20, slot_bits, false, 8).expect("bits that slots have");
    let (mut bucket, mut code, mut back) = (0, 0, 0);
    // SAFETY: the view is of a compact table, whose memory the function does not look at; the results have memory.
    unsafe { warpset_cpu_quotient(&CpuView::of(spec, &view), level, function, key, &mut bucket, &mut code, &mut back) };
    (bucket, code, back)
}

/// One table of a fixed size.
pub(crate) struct CpuStore {
    view: View,
    threads: usize,
    spec: Spec,
    // Memory that the view points to:
    pub(super) _slots: MmapMut,
    _seeds: Box<[SeedPair]>,
    pub(super) _nodes: Option<MmapMut>,
    /// Indexed tables only.
    pub(super) rows: Option<CpuRows>,
    /// Numbers of stored vectors, and of nodes.
    pub(super) stored: Box<[AtomicU64; 2]>,
}

// SAFETY: every access to the memory behind `view` that may overlap with another is an atomic one (platform/cpu); `clear` is
// only called with exclusive access (RawTable holds its lock for writing).
unsafe impl Send for CpuStore {}
// SAFETY: as for `Send`.
unsafe impl Sync for CpuStore {}

/// The rows of an indexed table.
pub(super) struct CpuRows {
    pub(super) words: Reserved,
    /// Number of spare rows, followed by cells for them.
    spares: Box<[AtomicU64]>,
}

/// Number of cells for spare rows: more than the threads can have at once.
const SPARE_CELLS: usize = 256;

impl CpuRows {
    fn new(bytes: u64) -> Result<Self> {
        let spares = (0..=SPARE_CELLS).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { words: Reserved::new(bytes as usize)?, spares })
    }
}

/// Memory for slots, or nodes.
fn allocate(bytes: u64) -> Result<MmapMut> {
    let refused = |error: std::io::Error| Error::Allocation { bytes, reason: error.to_string() };
    let memory = MmapOptions::new().len(bytes as usize).map_anon().map_err(refused)?;
    // Random accesses to small pages miss the TLB each time. Advice only: without huge pages the table is slower, not
    // wrong.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}

impl CpuStore {
    /// The store, if it is one of this machine.
    pub(crate) fn of(store: &dyn Store) -> Option<&Self> {
        (store as &dyn Any).downcast_ref()
    }

    pub(crate) fn new(parameters: &Parameters<'_>, threads: usize) -> Result<Self> {
        let store = Self::unfilled(parameters, threads)?;
        store.in_shares(|share, shares| {
            // SAFETY: the view's memory is as large as the geometry of its spec says (`unfilled`), it is zeros, and the shares
            // are disjoint parts of it, which nothing else uses yet.
            unsafe { warpset_cpu_clear_zeros(&CpuView::of(store.spec, &store.view), share, shares) };
        });
        Ok(store)
    }

    /// Memory that reads as zeros. The system provides pages when they are written.
    pub(crate) fn unfilled(parameters: &Parameters<'_>, threads: usize) -> Result<Self> {
        let geometry = geometry(parameters.spec);
        let (root_bytes, node_bytes) = (parameters.slot_bytes(&geometry), parameters.node_bytes());
        let row_bytes = parameters.row_bytes(&geometry);
        check_memory(root_bytes + node_bytes + row_bytes, threads)?;
        let rows = if row_bytes > 0 { Some(CpuRows::new(row_bytes)?) } else { None };
        let mut slots = allocate(root_bytes)?;
        let mut nodes = if node_bytes > 0 { Some(allocate(node_bytes)?) } else { None };
        let seeds: Box<[SeedPair]> = parameters.vector_seeds().into();
        let stored: Box<[AtomicU64; 2]> = Box::default();
        let view = parameters.view(&Addresses {
            slots: slots.as_mut_ptr() as u64,
            seeds: seeds.as_ptr() as u64,
            nodes: nodes.as_mut().map_or(0, |nodes| nodes.as_mut_ptr() as u64),
            stored: stored.as_ptr() as u64,
            rows: rows.as_ref().map_or(0, |rows| rows.words.address() as u64),
            spares: rows.as_ref().map_or(0, |rows| rows.spares.as_ptr() as u64),
            spare_cells: SPARE_CELLS as u32,
        });
        let spec = parameters.spec;
        Ok(Self { view, threads, spec, _slots: slots, _seeds: seeds, _nodes: nodes, rows, stored })
    }

    /// Numbers of stored vectors, and of nodes.
    pub(crate) fn stored(&self) -> Result<[u64; 2]> {
        // Relaxed: independent counters. A caller that needs exact numbers has joined the threads that add to them.
        Ok([0, 1].map(|which: usize| self.stored[which].load(Ordering::Relaxed)))
    }

    pub(crate) fn clear(&mut self, begin: &mut dyn FnMut()) -> Result<()> {
        begin();
        self.set_dense(0);
        self.in_shares(|share, shares| {
            // SAFETY: the view's memory is as large as the geometry of its spec says (`unfilled`), and the shares are disjoint
            // parts of it, which nothing else uses meanwhile.
            unsafe { warpset_cpu_clear(&CpuView::of(self.spec, &self.view), share, shares) };
        });
        Ok(())
    }

    /// Calls `work` for each share of the slots and nodes, with its number and the number of shares, on several threads.
    fn in_shares(&self, work: impl Fn(u64, u64) + Sync) {
        // Starting a thread costs as much as clearing about a megabyte.
        let bytes = self._slots.len() + self._nodes.as_ref().map_or(0, |nodes| nodes.len());
        let shares = self.threads.min(bytes.div_ceil(1 << 20)).max(1) as u64;
        in_pieces(self.threads, shares, |share| work(share, shares));
    }

    /// Counts the rows. Nothing else may use the table meanwhile.
    pub(crate) fn row_counts(&self) -> Result<RowCounts> {
        let (Some(rows), View::Indexed { view, .. }) = (&self.rows, &self.view) else { return Ok(RowCounts::default()) };
        let [stored, given] = self.stored()?;
        let spares = rows.spares[1..].iter().filter_map(|cell| cell.load(Ordering::Relaxed).checked_sub(1)).collect();
        Ok(RowCounts { stored, given: given.min(view.rows.capacity), spares })
    }

    /// Lists up to `capacity` rows that are not stored, and returns their total number.
    pub(crate) fn list_holes(&self, rows: Range<u64>, capacity: u64) -> Result<(Vec<u64>, u64)> {
        if rows.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let (mut holes, mut count) = (zeroed::<u64>(capacity as usize)?, 0u64);
        let (holes_at, count_at) = (holes.as_mut_ptr() as u64, &raw mut count as u64);
        let shares = self.threads.min((rows.end - rows.start).div_ceil(PIECE as u64) as usize).max(1) as u64;
        in_pieces(self.threads, shares, |share| {
            // SAFETY: `holes` has `capacity` elements. Each is written by one thread, to which `count` has given its index. Both
            // outlive the threads. The table's memory is only read, atomically.
            unsafe {
                let view = CpuView::of(self.spec, &self.view);
                let (holes, count) = (holes_at as *mut u64, count_at as *mut u64);
                warpset_cpu_list_holes(&view, share, shares, rows.start, rows.end, holes, capacity, count);
            }
        });
        holes.truncate(count as usize);
        Ok((holes, count))
    }

    /// Number of references to rows that are not stored.
    pub(crate) fn count_unstored(&self, references: &[u64]) -> Result<u64> {
        let invalid = AtomicU64::new(0);
        in_pieces(self.threads, references.len().div_ceil(PIECE) as u64, |piece| {
            let first = piece as usize * PIECE;
            let references = &references[first..references.len().min(first + PIECE)];
            // SAFETY: the references are borrowed, and each is checked before its row is read; `invalid` is added to atomically.
            unsafe {
                let (from, count) = (references.as_ptr(), references.len() as u64);
                warpset_cpu_count_unstored(&CpuView::of(self.spec, &self.view), from, count, invalid.as_ptr());
            }
        });
        Ok(invalid.into_inner())
    }

    pub(crate) fn dense(&self) -> u64 {
        self.view.rows().map_or(0, |rows| rows.dense)
    }

    pub(crate) fn set_dense(&mut self, dense: u64) {
        if let Some(rows) = self.view.rows_mut() {
            rows.dense = dense;
        }
    }

    /// Bytes of the rows that were given. The system provides no memory for others.
    pub(crate) fn row_bytes(&self) -> u64 {
        let rows = self.view.rows().map_or(0, |rows| rows.capacity);
        // Relaxed: for a report.
        self.spec.row_bytes(self.stored[1].load(Ordering::Relaxed).min(rows))
    }

    /// The words of the first rows, which are not written while the table is borrowed.
    ///
    /// # Safety
    ///
    /// The rows are stored, and the caller has observed that.
    pub(crate) unsafe fn first_rows(&self, rows: u64) -> &[u32] {
        let Some(CpuRows { words, .. }) = &self.rows else { return &[] };
        let count = rows as usize * self.spec.width();
        // SAFETY: memory of the table, aligned to pages. These rows are stored, so the words are initialised. Operations that
        // change them (`clear`, `reindex`, `close_holes`) have the table exclusively.
        unsafe { std::slice::from_raw_parts(words.address().cast_const().cast(), count) }
    }

    /// Closes holes. Returns whether rows have moved. Nothing else uses the table.
    pub(crate) fn close_holes(&mut self, closing: &HoleClosing) -> (bool, Result<()>) {
        // SAFETY: rows of the table, which nothing else uses meanwhile; the moves are borrowed.
        unsafe { warpset_cpu_move_rows(&CpuView::of(self.spec, &self.view), closing.moves.as_ptr(), closing.moves.len() as u64) };
        self.set_rows(closing.given, &closing.spares);
        self.set_dense(closing.dense);
        (true, Ok(()))
    }

    /// Acts as a lane that takes a row, and is stopped before it puts its vector.
    #[cfg(test)]
    pub(crate) fn lose_a_row(&self) -> u64 {
        self.stored[1].fetch_add(1, Ordering::Relaxed)
    }

    /// Sets the number of given rows, and the spare ones.
    pub(super) fn set_rows(&self, given: u64, spares: &[u64]) {
        // Relaxed: nothing else uses the table; the caller's lock passes it on.
        self.stored[1].store(given, Ordering::Relaxed);
        let Some(CpuRows { spares: cells, .. }) = &self.rows else { return };
        let kept = spares.len().min(SPARE_CELLS);
        cells[0].store(kept as u64, Ordering::Relaxed);
        let values = spares.iter().map(|row| row + 1).chain(std::iter::repeat(0));
        cells[1..].iter().zip(values).for_each(|(cell, value)| cell.store(value, Ordering::Relaxed));
    }

    /// Builds an index of another size of the rows before `last`, and removes the others. Returns the counts: if some rows found
    /// no slot, the table is unchanged. Nothing else uses the table.
    pub(crate) fn reindex(&mut self, parameters: &Parameters<'_>, last: u64) -> Result<Counts> {
        let geometry = geometry(parameters.spec);
        let (slot_bytes, row_bytes) = (parameters.slot_bytes(&geometry), parameters.row_bytes(&geometry));
        check_memory(
            slot_bytes + row_bytes.saturating_sub(self.spec.row_bytes(self.view.rows().map_or(0, |rows| rows.capacity))),
            self.threads,
        )?;
        let before = self.row_counts()?;
        let mut slots = allocate(slot_bytes)?;
        let rows = self.rows.as_mut().expect("an indexed table has rows");
        let view = parameters.view(&Addresses {
            slots: slots.as_mut_ptr() as u64,
            seeds: self._seeds.as_ptr() as u64,
            nodes: 0,
            stored: self.stored.as_ptr() as u64,
            rows: rows.words.address() as u64,
            spares: rows.spares.as_ptr() as u64,
            spare_cells: SPARE_CELLS as u32,
        });
        let given = before.given.min(last);
        let mut counts = Counts::default();
        let counts_at = &raw mut counts as u64;
        let shares = self.threads.min(given.div_ceil(PIECE as u64) as usize).max(1) as u64;
        in_pieces(self.threads, shares, |share| {
            // SAFETY: both views are of this table, whose index is only read; the new one, which is zeros (EMPTY), and the counts
            // are changed atomically and outlive the threads.
            unsafe {
                let (old, new) = (CpuView::of(self.spec, &self.view), CpuView::of(parameters.spec, &view));
                warpset_cpu_rebuild(&old, &new, share, shares, given, counts_at as *mut Counts);
            }
        });
        if counts.full > 0 {
            return Ok(counts);
        }
        // Last, so that an error leaves the rows' memory as it was.
        rows.words.grow(row_bytes as usize)?;
        let spares: Vec<u64> = before.spares.into_iter().filter(|row| *row < given).collect();
        // If all rows have been named, all are stored.
        let dense = if counts.hits == given { given } else { self.dense().min(given) };
        self.stored[0].store(counts.hits, Ordering::Relaxed);
        self.set_rows(given, &spares);
        (self.view, self._slots, self.spec) = (view, slots, parameters.spec);
        self.set_dense(dense);
        Ok(counts)
    }

    pub(crate) fn search(
        &self,
        search: SearchMode,
        tag: u64,
        batch: &mut HostBatch<'_>,
        progress: &mut BatchProgress<'_>,
    ) -> Result<Counts> {
        let count = batch.count(self.spec);
        let mut counts = Counts::default();
        let (next, done, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let whole = batch_view(batch, self.spec, tag, &mut counts);
        let upsert = batch.upsert.map(|upsert| (upsert.view(upsert.operands.as_ptr() as u64), upsert.kind.bytes()));
        let view = search.view_of(&self.view);
        // Each thread takes a piece at a time, the first ones first; `report` runs after each piece of the calling thread.
        let work = |report: &mut dyn FnMut(u64)| {
            // Relaxed: only the uniqueness of the pieces matters, and that a stop is seen eventually. Results are read after the
            // threads are joined.
            while !stop.load(Ordering::Relaxed) {
                let first = next.fetch_add(PIECE as u64, Ordering::Relaxed) as usize;
                if first >= count {
                    return;
                }
                let len = PIECE.min(count - first);
                let piece = whole.part(first as u64, len as u64, self.spec);
                // SAFETY:
                // - `vectors` holds `count` rows of the table's width, and each other input and output given has `count` elements
                //   or masks (RawTable checks or sizes them); this piece is within them and no other thread has it;
                // - `counts` outlives the threads.
                // - operands of an upsert are as many (`Array::upsert`), and its values have memory for every row.
                unsafe {
                    match upsert {
                        None => self.search_by_this_thread(search, &view, &piece),
                        Some((upsert, bytes)) => {
                            warpset_cpu_upsert(&CpuView::of(self.spec, &view), &piece, &upsert.part(first as u64, bytes));
                        }
                    }
                }
                report(done.fetch_add(len as u64, Ordering::Relaxed) + len as u64);
            }
        };
        let threads = self.threads.min(count.div_ceil(PIECE)).max(1);
        let report_and_stop = &mut |done| {
            progress.report(done);
            stop.store(progress.stopped, Ordering::Relaxed);
        };
        on_threads(threads, || work(&mut |_| ()), || work(report_and_stop));
        Ok(counts)
    }

    /// # Safety
    ///
    /// `view` is of this table. The memory that the batch points to is valid for the lengths that its count implies, and no other
    /// thread writes to it, except for the data that is changed atomically:
    /// - `new_references` is written at positions that `counts.new_references` gives out once each, fewer than `new_capacity`;
    /// - `counts`, and the table's memory.
    unsafe fn search_by_this_thread(&self, search: SearchMode, view: &View, batch: &BatchView) {
        let table = CpuView::of(self.spec, view);
        // SAFETY: the caller guarantees the contract.
        unsafe {
            match search {
                SearchMode::FindOrPut | SearchMode::FindOrPutLeavingHoles | SearchMode::PutBack => {
                    warpset_cpu_find_or_put(&table, batch)
                }
                SearchMode::Find => warpset_cpu_find(&table, batch),
            }
        }
    }

    /// Relocates the keys of a cuckoo table, which nothing else may use at the same time. All memory is allocated before `begin`
    /// is called, so nothing fails after it.
    pub(crate) fn relocate(&self, seed: u64, begin: &mut dyn FnMut()) -> Result<u64> {
        let slots = self.view.stash_slots() as usize;
        let (mut keys, mut outcomes) = (zeroed::<u64>(slots)?, zeroed::<u8>(slots)?);
        begin();
        let (mut moved, mut left) = (0, 0);
        for round in 0..RELOCATION_ROUNDS {
            let mut counts = Relocated { taken: 0, left_over: left };
            let (keys_at, counts_at) = (keys.as_mut_ptr() as u64, &raw mut counts as u64);
            let shares = self.threads.min(slots.div_ceil(PIECE)).max(1) as u64;
            in_pieces(self.threads, shares, |share| {
                // SAFETY: `keys` has an element for each slot of the stash. Each thread reads slots of its own share. `counts`
                // gives out each position once, at most one per key. Both outlive the threads. The caller uses the table
                // exclusively.
                unsafe {
                    let (keys, counts) = (keys_at as *mut u64, counts_at as *mut Relocated);
                    warpset_cpu_relocate(
                        &CpuView::of(self.spec, &self.view),
                        share,
                        shares,
                        seed.wrapping_mul(RELOCATION_ROUNDS) + round,
                        keys,
                        counts,
                    );
                }
            });
            moved += counts.taken - (counts.left_over - left);
            let displaced = counts.left_over as usize;
            let back = HostBatch::of(bytemuck::cast_slice(&keys[..displaced]));
            let mut back = HostBatch { outcomes: Some(&mut outcomes[..displaced]), ..back };
            self.search(SearchMode::PutBack, 0, &mut back, &mut BatchProgress::none())?;
            left = 0;
            for at in 0..displaced {
                if outcomes[at] == Outcome::Full as u8 {
                    keys[left as usize] = keys[at];
                    left += 1;
                }
            }
            if left == 0 {
                return Ok(moved);
            }
        }
        keys.truncate(left as usize);
        Err(Error::KeysWithoutSlot { keys })
    }

    /// Returns the number of words that could not be read.
    pub(crate) fn get(&self, references: &[u64], vectors: &mut [u32]) -> Result<u64> {
        let width = self.spec.width();
        assert_eq!(vectors.len(), references.len() * width);
        let invalid = AtomicU64::new(0);
        let to = vectors.as_mut_ptr() as u64;
        in_pieces(self.threads, references.len().div_ceil(PIECE) as u64, |piece| {
            let first = piece as usize * PIECE;
            let references = &references[first..references.len().min(first + PIECE)];
            // SAFETY: `vectors` has room for the vectors of all `references` (asserted above). The pieces are disjoint parts of
            // it, and it outlives the threads. `invalid` is added to atomically. The kernel checks every reference before it
            // reads the slot.
            unsafe {
                let to = (to as *mut u32).add(first * width);
                warpset_cpu_get(
                    &CpuView::of(self.spec, &self.view),
                    references.as_ptr(),
                    references.len() as u64,
                    to,
                    invalid.as_ptr(),
                );
            }
        });
        Ok(invalid.into_inner())
    }

    pub(crate) fn export(&self, slots: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)> {
        let capacity = (slots.end - slots.start) as usize;
        let (mut vectors, mut references) = (zeroed::<u32>(capacity * self.spec.width())?, zeroed::<u64>(capacity)?);
        let count = self.export_to(slots, &mut vectors, Some(&mut references));
        vectors.truncate(count * self.spec.width());
        references.truncate(count);
        Ok((vectors, references))
    }

    /// Copies the vectors that the slots hold, and returns their number. The slices have room for one vector per slot.
    fn export_to(&self, slots: Range<u64>, vectors: &mut [u32], references: Option<&mut [u64]>) -> usize {
        let capacity = (slots.end - slots.start) as usize;
        assert!(
            vectors.len() >= capacity * self.spec.width()
                && references.as_ref().is_none_or(|references| references.len() >= capacity)
        );
        let references = references.map_or(ptr::null_mut(), <[u64]>::as_mut_ptr);
        let mut count = 0;
        // SAFETY: the slots are slots of the table (RawTable), and the buffer has space for all of them.
        unsafe {
            let view = CpuView::of(self.spec, &self.view);
            warpset_cpu_export(&view, slots.start, slots.end, vectors.as_mut_ptr(), references, &mut count);
        }
        count as usize
    }

    /// Rehashes the vectors in a range of slots into `larger`. Each thread takes a piece of the range at a time, whose vectors
    /// are in its cache when it puts them.
    pub(crate) fn rehash_into(&self, larger: &CpuStore, slots: Range<u64>) -> Result<Counts> {
        let (width, count) = (self.spec.width(), slots.end - slots.start);
        let piece = ((256 << 10) / (width as u64 * 4)).clamp(1, count.max(1));
        let (next, sum, failed) = (AtomicU64::new(slots.start), Mutex::new(Counts::default()), Mutex::new(None));
        let work = || {
            let rehash = || -> Result<Counts> {
                let mut vectors = zeroed::<u32>(piece as usize * width)?;
                let mut counts = Counts::default();
                loop {
                    // Relaxed: only the uniqueness of the pieces matters; the counts are read after the threads are joined.
                    let first = next.fetch_add(piece, Ordering::Relaxed);
                    if first >= slots.end {
                        return Ok(counts);
                    }
                    let count = self.export_to(first..slots.end.min(first + piece), &mut vectors, None);
                    let batch = batch_view(&mut HostBatch::of(&vectors[..count * width]), self.spec, 0, &mut counts);
                    // SAFETY: `vectors` holds that number of rows, and the batch asks for counts only.
                    unsafe { larger.search_by_this_thread(SearchMode::FindOrPut, &larger.view, &batch) };
                }
            };
            match rehash() {
                Ok(counts) => *sum.lock().unwrap_or_else(PoisonError::into_inner) += counts,
                Err(error) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error),
            }
        };
        on_threads(self.threads.min(count.div_ceil(piece) as usize), work, work);
        let (sum, failed) = (sum.into_inner(), failed.into_inner());
        match failed.unwrap_or_else(PoisonError::into_inner) {
            // Another thread may have succeeded where this one ran out of memory. Then nothing is lost for the caller.
            Some(error) => Err(error),
            None => Ok(sum.unwrap_or_else(PoisonError::into_inner)),
        }
    }

    pub(crate) fn measure(&self, slots: u64, bins: usize) -> Result<ProbeLengths> {
        let (mut lengths, mut totals) = (zeroed::<u64>(bins)?, ProbeTotals::default());
        let piece = slots.div_ceil(self.threads as u64).max(1 << 16);
        let (lengths_at, totals_at) = (lengths.as_mut_ptr() as u64, &raw mut totals as u64);
        in_pieces(self.threads, slots.div_ceil(piece), |number| {
            let (first, last) = (number * piece, slots.min((number + 1) * piece));
            // SAFETY: the slots are slots of the table; `lengths` has `bins` elements, outlives the threads, and is, like
            // `totals`, only changed atomically.
            unsafe {
                let (lengths, totals) = (lengths_at as *mut u64, totals_at as *mut ProbeTotals);
                warpset_cpu_measure(&CpuView::of(self.spec, &self.view), first, last, lengths, bins as u32, totals);
            }
        });
        Ok(ProbeLengths { lengths, totals })
    }
}

/// The view of a batch for kernels in this process, which add to `counts`.
fn batch_view(batch: &mut HostBatch<'_>, spec: Spec, tag: u64, counts: &mut Counts) -> BatchView {
    fn address<T>(slice: Option<&mut [T]>) -> u64 {
        slice.map_or(0, |slice| slice.as_mut_ptr() as u64)
    }
    BatchView {
        vectors: batch.vectors.as_ptr() as u64,
        count: batch.count(spec) as u64,
        outcomes: address(batch.outcomes.as_deref_mut()),
        references: address(batch.references.as_deref_mut()),
        new_capacity: batch.new_references.as_ref().map_or(0, |references| references.len() as u64),
        new_references: address(batch.new_references.as_deref_mut()),
        counts: &raw mut *counts as u64,
        parents: batch.parents.map_or(0, |parents| parents.as_ptr() as u64),
        changed: batch.changed.map_or(0, |changed| changed.as_ptr() as u64),
        workspace: 0,
        tag,
    }
}

impl Store for CpuStore {
    fn read_pieces(&self, part: Part, bytes: u64, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        CpuStore::read_pieces(self, part, bytes, each)
    }

    fn read_at(&self, part: Part, offset: u64, to: &mut [u8]) -> Result<()> {
        CpuStore::read_at(self, part, offset, to)
    }

    fn fill_pieces(&mut self, part: Part, bytes: u64, each: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        CpuStore::fill_pieces(self, part, bytes, each)
    }

    fn set_counts(&mut self, counts: &[u64; 3], spares: &[u64]) -> Result<()> {
        CpuStore::set_counts(self, counts, spares)
    }

    fn stored(&self) -> Result<[u64; 2]> {
        CpuStore::stored(self)
    }

    fn clear(&mut self, begin: &mut dyn FnMut()) -> Result<()> {
        CpuStore::clear(self, begin)
    }

    fn search_batch(
        &self,
        search: SearchMode,
        tag: u64,
        batch: &mut HostBatch<'_>,
        progress: &mut BatchProgress<'_>,
    ) -> Result<Counts> {
        CpuStore::search(self, search, tag, batch, progress)
    }

    /// Kernels were compiled with the library.
    fn prepare(&self, _: SearchMode, _: bool) -> Result<()> {
        Ok(())
    }

    fn row_counts(&self) -> Result<RowCounts> {
        CpuStore::row_counts(self)
    }

    fn list_holes(&self, rows: Range<u64>, capacity: u64) -> Result<(Vec<u64>, u64)> {
        CpuStore::list_holes(self, rows, capacity)
    }

    fn count_unstored(&self, references: &[u64]) -> Result<u64> {
        CpuStore::count_unstored(self, references)
    }

    fn dense(&self) -> u64 {
        CpuStore::dense(self)
    }

    fn set_dense(&mut self, rows: u64) {
        CpuStore::set_dense(self, rows);
    }

    /// All work has ended when a call returns.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn row_bytes(&self) -> u64 {
        CpuStore::row_bytes(self)
    }

    fn close_holes(&mut self, closing: &HoleClosing) -> (bool, Result<()>) {
        CpuStore::close_holes(self, closing)
    }

    fn reindex(&mut self, parameters: &Parameters<'_>, last: u64) -> Result<Counts> {
        CpuStore::reindex(self, parameters, last)
    }

    fn relocate(&self, seed: u64, begin: &mut dyn FnMut()) -> Result<u64> {
        CpuStore::relocate(self, seed, begin)
    }

    /// False: on a CPU relocation always puts displaced keys back.
    fn has_displaced(&self) -> bool {
        false
    }

    fn put_displaced_back(&self) -> Result<()> {
        Ok(())
    }

    fn get(&self, references: &[u64], vectors: &mut [u32]) -> Result<u64> {
        CpuStore::get(self, references, vectors)
    }

    fn export(&self, slots: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)> {
        CpuStore::export(self, slots)
    }

    fn measure(&self, slots: u64, bins: usize) -> Result<ProbeLengths> {
        CpuStore::measure(self, slots, bins)
    }

    unsafe fn first_rows(&self, rows: u64) -> Option<&[u32]> {
        // SAFETY: the caller guarantees the contract.
        Some(unsafe { CpuStore::first_rows(self, rows) })
    }

    fn rehash_into(&self, larger: &dyn Store, slots: Range<u64>) -> Result<Counts> {
        CpuStore::rehash_into(self, Self::of(larger).expect("a table stays on its machine"), slots)
    }
}
