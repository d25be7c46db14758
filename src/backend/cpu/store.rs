//! One table in the memory of this process, searched by its threads.

use super::filter::Filter;
use super::growth::{Growing, fill, is_filled_in_order};
use super::kernels::{
    CpuView, geometry, warpset_cpu_clear, warpset_cpu_clear_zeros, warpset_cpu_export, warpset_cpu_find, warpset_cpu_find_or_put,
    warpset_cpu_get, warpset_cpu_measure, warpset_cpu_upsert,
};
use super::memory::{allocate, check_memory};
use super::rehash::rehash;
use super::rows::{CpuRows, SPARE_CELLS};
use super::threads::{in_pieces, on_threads};
use crate::backend::{RowStore as _, SearchBatch, Store};
use crate::host::{room, zeroed};
use crate::layout::options::{Addresses, Parameters, SeedPair};
use crate::layout::search::{ProbeLengths, SearchMode};
use crate::layout::view::{BatchView, Counts, ProbeTotals, UpsertView, View};
use crate::layout::{BatchProgress, HostBatch};
use crate::{Result, Spec};
use memmap2::MmapMut;
use std::any::Any;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of vectors that a thread takes at a time, and smallest batch that justifies a second thread.
pub(super) const PIECE: usize = 4096;

/// One table of a fixed size.
pub(crate) struct CpuStore {
    pub(super) view: View,
    pub(super) threads: usize,
    pub(super) spec: Spec,
    // Memory that the view points to:
    pub(super) _slots: MmapMut,
    pub(super) _seeds: Box<[SeedPair]>,
    pub(super) _nodes: Option<MmapMut>,
    /// Bucket tables that were asked for one.
    pub(super) filter: Option<Filter>,
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
        let filter_bytes = parameters.options.filter_bytes(parameters.spec.slots(&geometry, parameters.buckets));
        check_memory(root_bytes + node_bytes + row_bytes + filter_bytes, threads)?;
        let rows = if row_bytes > 0 { Some(CpuRows::new(row_bytes)?) } else { None };
        let mut slots = allocate(root_bytes)?;
        let filter = if filter_bytes > 0 { Some(Filter::new(filter_bytes)?) } else { None };
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
        Ok(Self { view, threads, spec, _slots: slots, _seeds: seeds, _nodes: nodes, filter, rows, stored })
    }

    /// Calls `work` for each share of the slots and nodes, with its number and the number of shares, on several threads.
    fn in_shares(&self, work: impl Fn(u64, u64) + Sync) {
        in_shares(self.threads, self._slots.len() + self._nodes.as_ref().map_or(0, |nodes| nodes.len()), work);
    }

    /// Searches for the vectors of a batch in this thread. `upsert`: operands and values of an indexed table that find-or-put
    /// changes.
    ///
    /// # Safety
    ///
    /// `table` is of this table. The memory that the batch points to is valid for the lengths that its count implies, and no
    /// other thread writes to it, except for the data that is changed atomically:
    /// - `new_references` is written at positions that `counts.new_references` gives out once each, fewer than `new_capacity`;
    /// - `counts`, and the table's memory.
    ///
    /// `upsert` has an operand for each vector, or one for all, and its values have memory for every row.
    unsafe fn search_by_this_thread(search: SearchMode, table: &CpuView, batch: &BatchView, upsert: Option<UpsertView>) {
        // SAFETY: the caller guarantees the contract.
        unsafe {
            match (search, upsert) {
                (SearchMode::Find, _) => warpset_cpu_find(table, batch),
                (_, None) => warpset_cpu_find_or_put(table, batch),
                (_, Some(upsert)) => warpset_cpu_upsert(table, batch, &upsert),
            }
        }
    }

    /// Copies the vectors that the slots hold, and returns their number. The slices have room for one vector per slot.
    fn export_to(&self, slots: Range<u64>, vectors: &mut [u32], references: Option<&mut [u64]>) -> usize {
        let capacity = (slots.end - slots.start) as usize;
        assert!(
            vectors.len() >= capacity * self.spec.width()
                && references.as_ref().is_none_or(|references| references.len() >= capacity)
        );
        let references = references.map_or(ptr::null_mut(), <[u64]>::as_mut_ptr);
        // SAFETY: there is room for all of `slots` (asserted).
        unsafe { self.export_at(slots, vectors.as_mut_ptr(), references) }
    }

    /// Writes the vectors that the slots hold, one after another, and their references unless the address is null. Returns their
    /// number.
    ///
    /// # Safety
    ///
    /// There is room for one vector per slot, and one reference, which this thread alone writes and nothing reads.
    unsafe fn export_at(&self, slots: Range<u64>, vectors: *mut u32, references: *mut u64) -> usize {
        let mut count = 0;
        // SAFETY: the slots are slots of the table (RawTable). The caller guarantees the rest.
        unsafe {
            let view = CpuView::of(self.spec, &self.view);
            warpset_cpu_export(&view, slots.start, slots.end, vectors, references, &mut count);
        }
        assert!(count <= slots.end - slots.start, "a slot holds one vector at most");
        count as usize
    }
}

/// Calls `work` for each share of some memory, with its number and the number of shares, on several threads.
fn in_shares(threads: usize, bytes: usize, work: impl Fn(u64, u64) + Sync) {
    // Starting a thread costs as much as clearing about a megabyte.
    let shares = threads.min(bytes.div_ceil(1 << 20)).max(1) as u64;
    in_pieces(threads, shares, |share| work(share, shares));
}

/// The view of a batch for kernels in this process, which add to `counts`.
fn batch_view(batch: &mut HostBatch<'_>, spec: Spec, tag: u64, counts: &mut Counts) -> BatchView {
    fn address<T>(slice: &[T]) -> u64 {
        if slice.is_empty() { 0 } else { slice.as_ptr() as u64 }
    }
    fn address_mut<T>(slice: &mut [T]) -> u64 {
        if slice.is_empty() { 0 } else { slice.as_mut_ptr() as u64 }
    }
    BatchView {
        vectors: address(batch.vectors),
        count: batch.count(spec) as u64,
        outcomes: address_mut(batch.outcomes),
        references: address_mut(batch.references),
        new_references: address_mut(batch.new_references),
        new_capacity: batch.new_references.len() as u64,
        counts: &raw mut *counts as u64,
        parents: address(batch.parents),
        changed: address(batch.changed),
        workspace: 0,
        tag,
    }
}

impl Store for CpuStore {
    fn stored(&self) -> Result<[u64; 2]> {
        // Relaxed: independent counters. A caller that needs exact numbers has joined the threads that add to them.
        Ok([0, 1].map(|which: usize| self.stored[which].load(Ordering::Relaxed)))
    }

    fn clear(&mut self, begin: &mut dyn FnMut()) -> Result<()> {
        begin();
        self.set_dense(0);
        if let Some(filter) = &mut self.filter {
            filter.clear();
        }
        self.in_shares(|share, shares| {
            // SAFETY: the view's memory is as large as the geometry of its spec says (`unfilled`), and the shares are disjoint
            // parts of it, which nothing else uses meanwhile.
            unsafe { warpset_cpu_clear(&CpuView::of(self.spec, &self.view), share, shares) };
        });
        Ok(())
    }

    fn get(&self, references: &[u64], vectors: &mut [u32]) -> Result<u64> {
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

    fn export(&self, slots: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)> {
        let capacity = (slots.end - slots.start) as usize;
        // Not cleared: wide tables may hold a few vectors in many slots.
        let (mut vectors, mut references) = (room::<u32>(capacity * self.spec.width())?, room::<u64>(capacity)?);
        // SAFETY: there is room for one vector and one reference for each slot, in new memory.
        let count = unsafe { self.export_at(slots, vectors.as_mut_ptr(), references.as_mut_ptr()) };
        // SAFETY: the first `count` vectors, of `width` words each, and references have been written, and there are at most as
        // many as slots (asserted in `export_at`).
        unsafe {
            vectors.set_len(count * self.spec.width());
            references.set_len(count);
        }
        Ok((vectors, references))
    }

    fn measure(&self, slots: u64, bins: usize) -> Result<ProbeLengths> {
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

    fn grown(&self, parameters: &Parameters<'_>, slots: u64, spare: u64) -> Result<Option<(Box<dyn Store>, Counts)>> {
        if self.spec.is_tree() {
            let grown = self.with_moved_trees(parameters, slots, spare)?;
            return Ok(grown.map(|(larger, counts)| (Box::new(larger) as Box<dyn Store>, counts)));
        }
        // A filter has bits for vectors, which only find-or-put sets.
        if !is_filled_in_order(self.spec) || self.spec != parameters.spec || self.filter.is_some() {
            return Ok(None);
        }
        let larger = Self::unfilled(parameters, self.threads)?;
        let growing = Growing { spec: self.spec, from: &self.view, slots, to: &larger.view };
        // SAFETY: both are bucket tables of one spec without a filter. Nothing uses the larger one yet, and the caller has this
        // one alone.
        let counts = unsafe { fill(self.threads, growing)? };
        Ok(Some((Box::new(larger), counts)))
    }

    fn rehash_into(&self, larger: &dyn Store, slots: Range<u64>) -> Result<Counts> {
        let larger = Self::of(larger).expect("a table stays on its machine");
        let table = CpuView::with_filter(larger.spec, &larger.view, larger.filter.as_ref());
        let export = |slots, vectors: &mut [u32]| self.export_to(slots, vectors, None);
        let put = |vectors: &[u32], counts: &mut Counts| {
            let batch = batch_view(&mut HostBatch::new(SearchMode::FindOrPut, vectors), self.spec, 0, counts);
            // SAFETY: `vectors` holds that number of rows, and the batch asks for counts only.
            unsafe { Self::search_by_this_thread(SearchMode::FindOrPut, &table, &batch, None) };
        };
        rehash(self.threads, slots, self.spec.width(), export, put)
    }
}

impl SearchBatch for CpuStore {
    fn search_batch(&self, tag: u64, batch: &mut HostBatch<'_>, progress: &mut BatchProgress<'_>) -> Result<Counts> {
        let (search, count) = (batch.search, batch.count(self.spec));
        let mut counts = Counts::default();
        let whole = batch_view(batch, self.spec, tag, &mut counts);
        let upsert = batch.upsert.map(|upsert| (upsert.view(upsert.operands.as_ptr() as u64), upsert.kind.bytes()));
        // A lookup uses the filter only if no put is under way now. A put ends when this function returns: its threads are joined
        // before.
        let is_put = search != SearchMode::Find;
        let filter = self.filter.as_ref().filter(|filter| is_put || filter.is_complete());
        let _put = filter.filter(|_| is_put).map(Filter::begin_put);
        let view = search.view_of(&self.view);
        let table = CpuView::with_filter(self.spec, &view, filter);
        if count <= PIECE {
            // SAFETY: as below; this thread has the whole batch.
            unsafe { Self::search_by_this_thread(search, &table, &whole, upsert.map(|(upsert, _)| upsert)) };
            progress.report(count as u64);
            return Ok(counts);
        }
        // Each thread takes a piece at a time, the first ones first; `report` runs after each piece of the calling thread.
        let (next, done, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
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
                let upsert = upsert.map(|(upsert, bytes)| upsert.part(first as u64, bytes));
                // SAFETY:
                // - `vectors` holds `count` rows of the table's width, and each other input and output given has `count` elements
                //   or masks (RawTable checks or sizes them); this piece is within them and no other thread has it;
                // - `counts` outlives the threads.
                // - operands of an upsert are as many (`Array::upsert`), and its values have memory for every row.
                unsafe { Self::search_by_this_thread(search, &table, &piece, upsert) };
                report(done.fetch_add(len as u64, Ordering::Relaxed) + len as u64);
            }
        };
        let report_and_stop = &mut |done| {
            progress.report(done);
            stop.store(progress.stopped, Ordering::Relaxed);
        };
        on_threads(self.threads.min(count.div_ceil(PIECE)), || work(&mut |_| ()), || work(report_and_stop));
        Ok(counts)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::{Device, TreeTable};

    const PAGE: usize = 4096;
    const HUGE_PAGE: usize = 2 << 20;

    /// Addresses of the pages of this memory that the system has provided.
    fn provided(memory: &MmapMut) -> Vec<usize> {
        let mut pages = vec![0u8; memory.len().div_ceil(PAGE)];
        // SAFETY: the memory is mapped, and `pages` has a byte for each of its pages, which have 4 KiB or more.
        let done = unsafe { libc::mincore(memory.as_ptr().cast_mut().cast(), memory.len(), pages.as_mut_ptr().cast()) };
        assert_eq!(done, 0);
        let numbers = (0..pages.len()).filter(|number| pages[*number] & 1 != 0);
        numbers.map(|number| memory.as_ptr() as usize + number * PAGE).collect()
    }

    /// The system's zeros are EMPTY nodes already. Slots have an EMPTY of their own, which is written. Nodes that
    /// lie in one huge page with slots are provided with them, and are not counted.
    #[test]
    #[cfg_attr(miri, ignore = "it asks the system")]
    fn nodes_of_a_new_table_take_no_memory() {
        let table = TreeTable::builder(8).capacity(1 << 16).nodes(1 << 20).build(&Device::cpu_with_threads(2)).unwrap();
        let count = || {
            let sized = table.raw.look();
            let store = CpuStore::of(&*sized.store).unwrap();
            let (of_slots, of_nodes) = (provided(&store._slots), provided(store._nodes.as_ref().unwrap()));
            let is_shared = |node: &usize| of_slots.iter().any(|slot| slot / HUGE_PAGE == node / HUGE_PAGE);
            (of_slots.len(), of_nodes.iter().filter(|node| !is_shared(node)).count())
        };
        let (slots, nodes) = count();
        assert!(slots >= (1 << 19) / 65536 && nodes == 0, "pages of slots: {slots}, of nodes: {nodes}");
        table.find_or_put_many(&(0..800).collect::<Vec<u32>>()).unwrap().complete(&table).unwrap();
        assert!(count().1 > 0);
        table.clear().unwrap();
        assert!(!table.contains_many(&[0, 1, 2, 3, 4, 5, 6, 7]).unwrap()[0] && table.nodes().unwrap() == 0);
    }
}
