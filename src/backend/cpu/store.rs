//! One table in the memory of this process, searched by its threads.

use super::filter::Filter;
use super::growth::{fill, is_filled_in_order};
use super::kernels::{CpuView, export, geometry, run, warpset_cpu_find, warpset_cpu_find_or_put, warpset_cpu_upsert};
use super::machine::{CpuMachine, PIECE};
use super::rehash::{put_all, rehash};
use super::threads::on_threads;
use crate::backend::{Machine, Store, TableMemory};
use crate::layout::options::Parameters;
use crate::layout::search::SearchMode;
use crate::layout::view::{BatchView, Counts, UpsertView};
use crate::layout::{BatchProgress, HostBatch};
use crate::{Result, Spec};
use std::any::Any;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One table of a fixed size.
pub(crate) struct CpuStore {
    pub(super) table: TableMemory,
    pub(super) machine: CpuMachine,
    /// `None` unless the table is a bucket table that was built with a filter.
    pub(super) filter: Option<Filter>,
}

impl Deref for CpuStore {
    type Target = TableMemory;

    fn deref(&self) -> &TableMemory {
        &self.table
    }
}

impl CpuStore {
    /// Returns the store if it is a CPU store.
    pub(crate) fn of(store: &dyn Store) -> Option<&Self> {
        (store as &dyn Any).downcast_ref()
    }

    pub(crate) fn new(parameters: &Parameters<'_>, machine: CpuMachine) -> Result<Self> {
        let store = Self::unfilled(parameters, machine)?;
        // Starting a thread costs as much as clearing about a megabyte.
        let bytes = store.slots.bytes + store.nodes.as_ref().map_or(0, |nodes| nodes.bytes);
        let shares = (machine.threads as u64).min(bytes.div_ceil(1 << 20)).max(1);
        // SAFETY: the view's memory is zero, and as large as the geometry of its spec says (`unfilled`). The shares are disjoint
        // parts of the memory, which nothing else uses yet.
        unsafe { run(c"warpset_clear_zeros", machine.threads, shares, &[CpuView::of(store.spec, &store.view)], &[]) };
        Ok(store)
    }

    /// Allocates the table's memory, which reads as zeros. The system provides pages when they are written.
    pub(crate) fn unfilled(parameters: &Parameters<'_>, machine: CpuMachine) -> Result<Self> {
        let table = TableMemory::new(&machine, parameters)?;
        let slots = parameters.spec.slots(&geometry(parameters.spec), parameters.buckets);
        let filter_bytes = parameters.options.filter_bytes(slots);
        let filter = if filter_bytes > 0 { Some(Filter::new(filter_bytes)?) } else { None };
        Ok(Self { table, machine, filter })
    }

    /// Searches for the vectors of a batch in this thread. `upsert`: the operands, and the values of an indexed table that a
    /// find-or-put changes.
    ///
    /// # Safety
    ///
    /// `table` is a view of this table. The memory that the batch points to is valid for the lengths that its count implies. No
    /// other thread writes to it, except for data that all threads change atomically:
    /// - `new_references`, at positions below `new_capacity`: `counts.new_references` gives out each position once;
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

    /// Searches for the vectors of a batch with as many threads as pay. `upsert`: as for
    /// [`search_by_this_thread`](Self::search_by_this_thread), with the number of bytes of an operand.
    ///
    /// # Safety
    ///
    /// As for [`search_by_this_thread`](Self::search_by_this_thread), for all threads together.
    unsafe fn search(
        &self,
        search: SearchMode,
        whole: &BatchView,
        upsert: Option<(UpsertView, usize)>,
        progress: &mut BatchProgress<'_>,
    ) {
        let count = whole.count as usize;
        // A lookup uses the filter only if no put is under way now. `_put` ends the put when this function returns, after its
        // threads have been joined.
        let is_put = search != SearchMode::Find;
        let filter = self.filter.as_ref().filter(|filter| is_put || filter.is_complete());
        let _put = filter.filter(|_| is_put).map(Filter::begin_put);
        let view = search.view_of(&self.view);
        let table = CpuView::with_filter(self.spec, &view, filter);
        if count <= PIECE {
            // SAFETY: the caller guarantees the contract; this thread has the whole batch.
            unsafe { Self::search_by_this_thread(search, &table, whole, upsert.map(|(upsert, _)| upsert)) };
            return progress.report(count as u64);
        }
        // Each thread takes one piece at a time, in ascending order. `report` runs after each piece of the calling thread.
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
                // SAFETY: the caller guarantees the contract; the piece is within the batch, and no other thread has it.
                unsafe { Self::search_by_this_thread(search, &table, &piece, upsert) };
                report(done.fetch_add(len as u64, Ordering::Relaxed) + len as u64);
            }
        };
        let report_and_stop = &mut |done| {
            progress.report(done);
            stop.store(progress.stopped, Ordering::Relaxed);
        };
        on_threads(self.machine.threads.min(count.div_ceil(PIECE)), || work(&mut |_| ()), || work(report_and_stop));
    }
}

/// Returns the view of a batch for kernels in this process. The kernels add to `counts`.
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
    fn machine(&self) -> &dyn Machine {
        &self.machine
    }

    fn table(&self) -> &TableMemory {
        &self.table
    }

    fn table_mut(&mut self) -> &mut TableMemory {
        &mut self.table
    }

    fn forget(&mut self) {
        if let Some(filter) = &mut self.filter {
            filter.clear();
        }
    }

    #[cfg(target_os = "linux")]
    fn grow_in_place(
        &mut self,
        parameters: &Parameters<'_>,
        slots: u64,
        unplaced: &mut Vec<u32>,
        begin: &mut dyn FnMut(),
    ) -> Result<bool> {
        self.grow_where_it_is(parameters, slots, unplaced, begin)
    }

    #[cfg(target_os = "linux")]
    fn bytes_beside(&self, parameters: &Parameters<'_>, slots: u64) -> Option<u64> {
        self.bytes_beside_growth(parameters, slots)
    }

    fn grown(&self, parameters: &Parameters<'_>, slots: u64, spare: u64) -> Result<Option<(Box<dyn Store>, Counts)>> {
        if self.spec.is_tree() {
            let grown = self.with_moved_trees(parameters, slots, spare)?;
            return Ok(grown.map(|(larger, counts)| (Box::new(larger) as Box<dyn Store>, counts)));
        }
        // Only find-or-put sets the bits of a filter, so a table with a filter cannot be filled in order.
        if !is_filled_in_order(self.spec) || self.spec != parameters.spec || self.filter.is_some() {
            return Ok(None);
        }
        let larger = Self::unfilled(parameters, self.machine)?;
        // SAFETY: both are bucket tables of one spec without a filter. Nothing uses the larger table yet, and the caller has
        // exclusive access to this one.
        let counts = unsafe { fill(self.machine.threads, self.spec, (&self.view, slots), &larger.view)? };
        Ok(Some((Box::new(larger), counts)))
    }

    fn search_batch(&self, tag: u64, batch: &mut HostBatch<'_>, progress: &mut BatchProgress<'_>) -> Result<Counts> {
        let mut counts = Counts::default();
        let whole = batch_view(batch, self.spec, tag, &mut counts);
        let upsert = batch.upsert.map(|upsert| (upsert.view(upsert.operands.as_ptr() as u64), upsert.kind.bytes()));
        // SAFETY:
        // - `vectors` holds `count` rows of the table's width, and each other input and output given has `count` elements or
        //   masks (RawTable checks or sizes them);
        // - `counts` outlives the search;
        // - an upsert has one operand for each vector, or one for all (`Array::upsert`), and its values have memory for every
        //   row.
        unsafe { self.search(batch.search, &whole, upsert, progress) };
        Ok(counts)
    }

    unsafe fn search_in_place(&self, search: SearchMode, batch: &BatchView) -> Result<()> {
        // SAFETY: the caller guarantees the buffers.
        unsafe { self.search(search, batch, None, &mut BatchProgress::none()) };
        Ok(())
    }

    fn rehash_by_threads(&self, larger: &dyn Store, slots: Range<u64>) -> Result<Option<Counts>> {
        let larger = Self::of(larger).expect("a table stays on its machine");
        let table = CpuView::with_filter(larger.spec, &larger.view, larger.filter.as_ref());
        let export = |slots: Range<u64>, vectors: &mut [u32]| {
            assert!(vectors.len() >= (slots.end - slots.start) as usize * self.spec.width());
            // SAFETY: the slots are slots of the table (RawTable), and there is room for all of them (asserted).
            unsafe { export(CpuView::of(self.spec, &self.view), slots, vectors.as_mut_ptr()) }
        };
        let put = |vectors: &[u32], counts: &mut Counts| {
            // SAFETY: both tables are for vectors of that width, and the new one is used by these threads alone.
            unsafe { put_all(&table, self.spec.width(), vectors, counts) };
        };
        rehash(self.machine.threads, slots, self.spec.width(), export, put).map(Some)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::backend::Memory;
    use crate::{Device, TreeTable};

    const PAGE: usize = 4096;
    const HUGE_PAGE: usize = 2 << 20;

    /// Addresses of the pages of `memory` that the system has provided.
    fn provided(memory: &Memory) -> Vec<usize> {
        let (address, bytes) = (memory.address as usize, memory.bytes as usize);
        let mut pages = vec![0u8; bytes.div_ceil(PAGE)];
        // SAFETY: the memory is mapped, and `pages` has a byte for each of its pages, which have 4 KiB or more.
        let done = unsafe { libc::mincore(address as *mut libc::c_void, bytes, pages.as_mut_ptr().cast()) };
        assert_eq!(done, 0);
        let numbers = (0..pages.len()).filter(|number| pages[*number] & 1 != 0);
        numbers.map(|number| address + number * PAGE).collect()
    }

    /// EMPTY nodes are zeros, as the system provides them, so nodes of a new table are not written. EMPTY slots are not zeros, so
    /// all slots are written. The system provides nodes that share a huge page with slots; they are not counted.
    #[test]
    #[cfg_attr(miri, ignore = "it asks the system")]
    fn nodes_of_a_new_table_take_no_memory() {
        let table = TreeTable::builder(8).capacity(1 << 16).nodes(1 << 20).build(&Device::cpu_with_threads(2)).unwrap();
        let count = || {
            let sized = table.raw.look();
            let store = CpuStore::of(&*sized.store).unwrap();
            let (of_slots, of_nodes) = (provided(&store.slots), provided(store.nodes.as_ref().unwrap()));
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
