//! One table of a fixed size on a GPU.

use super::Gpu;
use super::kernels::{Kernels, SearchKernel};
use super::memory::DeviceMemory;
use super::relocation::Displaced;
use super::rows::CudaRows;
use super::shared::Shared;
use super::stages::segment_vectors;
use super::workspace::{Borrowed, Workspace};
use crate::backend::{Launch, RootStore, RowStore as _, Store, Waves};
use crate::host::zeroed;
use crate::layout::Part;
use crate::layout::columns::ColumnsView;
use crate::layout::options::{Addresses, Parameters};
use crate::layout::search::{ProbeLengths, SearchMode};
use crate::layout::view::{BatchView, Counts, ProbeTotals, View};
use crate::{Error, Result, Spec};
use cudarc::driver::{result, sys};
use std::any::Any;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex};

pub(crate) struct CudaStore {
    pub(super) shared: Arc<Shared>,
    pub(super) gpu: Arc<Gpu>,
    pub(super) kernels: Arc<Kernels>,
    pub(super) view: View,
    slot_bytes: u64,
    spec: Spec,
    // Memory that the view points to:
    _slots: DeviceMemory,
    _seeds: DeviceMemory,
    _nodes: Option<DeviceMemory>,
    /// Indexed tables only.
    pub(super) rows: Option<CudaRows>,
    /// Numbers of stored vectors, and of nodes.
    stored: DeviceMemory,
    /// Whether visiting only the nodes above changed words is faster than looking for all nodes.
    incremental_pays: bool,
    /// Only for strategies with a workspace in global memory.
    workspace: Option<Workspace>,
    /// Keys that relocation has taken out of the table and not put back, because it met an error.
    pub(super) displaced: Mutex<Option<Displaced>>,
}

/// The address of a kernel's argument, which a launch copies.
pub(super) fn argument<T>(argument: &T) -> *mut c_void {
    (&raw const *argument).cast_mut().cast()
}

/// Address of a table's view, for a kernel argument.
fn view_argument(view: &View) -> *mut c_void {
    view.argument().as_ptr().cast_mut().cast()
}

/// Smallest number of slots that a table is read in at a time if memory is short.
const FEWEST_SLOTS: u64 = 1 << 12;

/// Number of blocks of a search, as a multiple of the blocks that fit the GPU at the same time.
fn waves_of_blocks(waves: Waves) -> u64 {
    match waves {
        Waves::One => 1,
        Waves::BesideOthers => 4,
    }
}

/// Largest number of vectors of a kernel: it counts them in 32 bits.
const MAX_BATCH: u64 = 1 << 31;

impl CudaStore {
    /// The store, if it is on a GPU.
    pub(crate) fn of(store: &dyn Store) -> Option<&Self> {
        (store as &dyn Any).downcast_ref()
    }

    pub(super) fn new(shared: &Arc<Shared>, parameters: &Parameters<'_>) -> Result<Self> {
        let gpu = &shared.gpu;
        let kernels = shared.kernels(parameters.spec)?;
        let slot_bytes = parameters.slot_bytes(&kernels.geometry);
        let slots = DeviceMemory::new(gpu, slot_bytes)?;
        let seeds = DeviceMemory::new(gpu, size_of_val(parameters.vector_seeds()) as u64)?;
        let node_bytes = parameters.node_bytes();
        let nodes = if node_bytes > 0 { Some(DeviceMemory::new(gpu, node_bytes)?) } else { None };
        let stored = DeviceMemory::new(gpu, 16)?;
        let workspace_bytes = kernels.workspace_bytes(gpu);
        let workspace = if workspace_bytes > 0 { Some(Workspace::new(gpu, workspace_bytes)?) } else { None };
        // SAFETY: pageable memory, so it has been copied when the call returns.
        unsafe { seeds.write_async(0, parameters.vector_seeds(), gpu.stream.cu_stream())? };
        let rows = CudaRows::new(gpu, parameters.row_bytes(&kernels.geometry))?;
        let at = Addresses {
            slots: slots.address(),
            seeds: seeds.address(),
            nodes: nodes.as_ref().map_or(0, DeviceMemory::address),
            stored: stored.address(),
            ..Addresses::default()
        };
        let view = parameters.view(&CudaRows::addresses(rows.as_ref(), at));
        let spec = parameters.spec;
        // H200, walks of 2^27 states, even and skewed (`cargo bench --bench walks`), whole / changes in G/s, nodes in L2: 4 words
        // 13.2 / 11.2; 6 words 13.5 / 12.2, 12.2 / 10.8; 8 words 13.1 / 12.4, 13.2 / 12.4; 12 words 8.6 / 10.1, 8.0 / 8.4. Nodes
        // that are not in L2 cost a random access each.
        let incremental_pays = spec.width() > 8 || node_bytes > gpu.l2_bytes;
        let mut store = Self {
            shared: shared.clone(),
            gpu: gpu.clone(),
            kernels,
            view,
            slot_bytes,
            spec,
            _slots: slots,
            _seeds: seeds,
            _nodes: nodes,
            rows,
            stored,
            incremental_pays,
            workspace,
            displaced: Mutex::new(None),
        };
        shared.add_store(); // and `drop` removes it, also if one of the next calls fails
        store.stored.zero_async(0, 16, store.stream())?;
        store.clear(&mut || ())?;
        Ok(store)
    }

    pub(crate) fn view(&self) -> View {
        self.view
    }

    /// Kernel argument that describes the table.
    pub(super) fn table_argument(&self) -> *mut c_void {
        view_argument(&self.view)
    }

    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    pub(super) fn stream(&self) -> sys::CUstream {
        self.gpu.stream.cu_stream()
    }

    pub(super) fn wait(&self, what: &'static str) -> Result<()> {
        self.gpu.wait(&self.gpu.stream, what)
    }

    /// Addresses of the parts of the table.
    pub(super) fn addresses(&self) -> Addresses {
        let at = Addresses {
            slots: self._slots.address(),
            seeds: self._seeds.address(),
            nodes: self._nodes.as_ref().map_or(0, DeviceMemory::address),
            stored: self.stored.address(),
            ..Addresses::default()
        };
        CudaRows::addresses(self.rows.as_ref(), at)
    }

    pub(super) fn spec(&self) -> Spec {
        self.spec
    }

    /// Memory of a part, except for rows.
    pub(super) fn part_memory(&self, part: Part) -> Option<&DeviceMemory> {
        match part {
            Part::Slots => Some(&self._slots),
            Part::Nodes => self._nodes.as_ref(),
            Part::Rows => None,
        }
    }

    pub(super) fn stored_memory(&self) -> &DeviceMemory {
        &self.stored
    }

    /// Replaces the index of an indexed table.
    pub(super) fn replace_index(&mut self, view: View, slots: DeviceMemory, bytes: u64, kernels: Arc<Kernels>, spec: Spec) {
        (self.view, self._slots, self.slot_bytes, self.kernels, self.spec) = (view, slots, bytes, kernels, spec);
    }

    /// Enqueues the search of a batch in device memory.
    ///
    /// # Safety
    ///
    /// The batch's buffers have room for its count, live until the stream has passed the kernel, and are not written by others
    /// meanwhile; its vectors are aligned to `Spec::vector_alignment`. The number at `launch.refused` is in the memory of the
    /// GPU, and stays as long as the batch. The table must outlive the kernel.
    pub(crate) unsafe fn enqueue(
        &self,
        search: SearchMode,
        batch: &BatchView,
        stream: sys::CUstream,
        launch: Launch,
    ) -> Result<()> {
        // Kept until the batch is enqueued.
        let _rows = if search == SearchMode::Find { None } else { self.reserve_rows(batch.count, launch.may_wait)? };
        let kernel = match launch.upsert {
            None => self.search_kernel(search, batch, launch.refused.is_some())?,
            Some(_) => self.kernels.upsert(&self.gpu)?,
        };
        let _current = self.gpu.bind()?;
        let workspace = self.workspace.as_ref().map(|workspace| workspace.borrow(stream)).transpose()?;
        // The workspace has room for the warps of one wave of blocks.
        let waves = if workspace.is_some() { 1 } else { waves_of_blocks(launch.waves) };
        let batch = BatchView { workspace: workspace.as_ref().map_or(0, |workspace| workspace.address), ..*batch };
        let (view, geometry) = (search.view_of(&self.view), &self.kernels.geometry);
        let most_blocks = u64::from(self.gpu.multiprocessors * kernel.resident_blocks) * waves;
        let launched = (0..batch.count).step_by(MAX_BATCH as usize).try_for_each(|first| {
            let count = MAX_BATCH.min(batch.count - first);
            let part = batch.part(first, count, self.spec);
            let blocks = count.div_ceil(u64::from(geometry.search_threads)).min(most_blocks) as u32;
            let shape = (blocks, geometry.search_threads, geometry.search_scratch_bytes);
            let (view, part) = (view_argument(&view), argument(&part));
            // SAFETY: the arguments of `warpset_find_or_put`, `..._incremental` and `warpset_find`, and, if there is `refused`,
            // of the two kernels `..._received`, or of `warpset_upsert` (layouts checked when they were loaded). Nothing else
            // uses the workspace while the kernels run. The caller guarantees the rest.
            unsafe {
                match (&launch.refused, &launch.upsert) {
                    (None, None) => self.gpu.launch(&kernel.function, shape, stream, &mut [view, part]),
                    (Some(refused), _) => self.gpu.launch(&kernel.function, shape, stream, &mut [view, part, argument(refused)]),
                    (None, Some((upsert, bytes))) => {
                        let upsert = upsert.part(first, *bytes);
                        self.gpu.launch(&kernel.function, shape, stream, &mut [view, part, argument(&upsert)])
                    }
                }
            }
        });
        workspace.map_or(Ok(()), Borrowed::end).and(launched)
    }

    /// Enqueues a kernel for each view that makes rows of columns.
    ///
    /// # Safety
    ///
    /// The columns have fields, and the vectors have room, for as many rows as the views say; both are in the memory of this GPU,
    /// live until the stream has passed the kernels, and are not used by others meanwhile, except that the columns may be read.
    /// The views cover the words of rows of this table's width.
    pub(crate) unsafe fn enqueue_columns(&self, views: &[ColumnsView], stream: sys::CUstream) -> Result<()> {
        let kernel = self.kernels.gather_columns(&self.gpu)?;
        views.iter().try_for_each(|view| {
            let launch = (self.gpu.blocks_for(view.count.saturating_mul(self.spec.width() as u64)), 256, 0);
            // SAFETY: the argument of `warpset_gather_columns`, whose size both sides assert. The caller guarantees the rest.
            unsafe { self.gpu.launch(kernel, launch, stream, &mut [argument(view)]) }
        })
    }

    /// Kernel of a search, compiled at its first use.
    fn search_kernel(&self, search: SearchMode, batch: &BatchView, is_received: bool) -> Result<&SearchKernel> {
        let (kernels, gpu) = (&self.kernels, &*self.gpu);
        // Without masks comparing takes longer than looking for all nodes: see `Request::parents`.
        let by_changes = self.spec.is_incremental() && batch.parents != 0 && batch.changed != 0 && self.incremental_pays;
        match (search, is_received) {
            (SearchMode::Find, false) => kernels.find(gpu),
            (SearchMode::Find, true) => kernels.find_received(gpu),
            // Ranks do not exchange parents.
            (_, true) => kernels.find_or_put_received(gpu),
            (SearchMode::FindOrPut, false) if by_changes => kernels.find_or_put_incremental(gpu),
            (SearchMode::FindOrPut | SearchMode::FindOrPutLeavingHoles | SearchMode::PutBack, false) => Ok(&kernels.find_or_put),
        }
    }

    /// Copies the vectors stored in `slots` to `vectors` (and their slots to `references`), and waits. Returns their number.
    /// `marks`: address of a byte for each slot of the table, by which only the slots whose byte is not 0 are copied; or 0.
    /// `cursor` is memory for a number.
    fn export_to(
        &self,
        slots: &Range<u64>,
        marks: u64,
        cursor: &DeviceMemory,
        vectors: &DeviceMemory,
        references: Option<&DeviceMemory>,
    ) -> Result<u64> {
        let kernel = &self.kernels.read(&self.gpu)?.export;
        let mut count = [0u64];
        cursor.zero_async(0, 8, self.stream())?;
        let launch = (self.gpu.blocks_for(slots.end - slots.start), 256, 0);
        let (to, references, at) = (vectors.address(), references.map_or(0, DeviceMemory::address), cursor.address());
        // SAFETY: the arguments of `warpset_export`; the caller's buffers have room for all of `slots`; waited for below.
        unsafe {
            let arguments = &mut [
                self.table_argument(),
                argument(&slots.start),
                argument(&slots.end),
                argument(&to),
                argument(&references),
                argument(&at),
                argument(&marks),
            ];
            self.gpu.launch(kernel, launch, self.stream(), arguments)?;
            cursor.read_async(0, &mut count, self.stream())?;
        }
        self.wait("reading a table")?;
        Ok(count[0])
    }

    /// Rehashes the vectors in a range of slots into `larger`, a piece at a time through a buffer on the GPU. Waits for all work
    /// on the GPU first. `marks`: address of a byte for each slot of the table, by which only the vectors whose byte is not 0 are
    /// rehashed; or 0.
    ///
    /// # Safety
    ///
    /// Unless `marks` is 0, these bytes are there, in memory of this GPU, and nothing writes them meanwhile.
    pub(crate) unsafe fn rehash_marked(&self, larger: &Self, slots: Range<u64>, marks: u64) -> Result<Counts> {
        self.gpu.synchronize()?;
        let (vectors, piece) = self.buffer_for(slots.end - slots.start)?;
        let cursor = DeviceMemory::new(&self.gpu, 8)?;
        let counts = DeviceMemory::new(&self.gpu, size_of::<Counts>() as u64)?;
        counts.zero_async(0, size_of::<Counts>(), self.stream())?;
        for first in slots.clone().step_by(piece as usize) {
            let batch = BatchView {
                vectors: vectors.address(),
                count: self.export_to(&(first..slots.end.min(first + piece)), marks, &cursor, &vectors, None)?,
                counts: counts.address(),
                ..BatchView::default()
            };
            if batch.count > 0 {
                // SAFETY: the buffers have room for the batch and outlive the stream's work (waited for below); allocations are
                // aligned to 256 bytes; both tables are borrowed.
                unsafe { larger.enqueue(SearchMode::FindOrPut, &batch, self.stream(), Launch::default())? };
            }
        }
        let mut sums = [Counts::default()];
        // SAFETY: waited for in the next statement.
        unsafe { counts.read_async(0, &mut sums, self.stream())? };
        self.wait("moving a table")?;
        Ok(sums[0])
    }

    /// Allocates memory for the vectors of some of `slots` slots, and returns their number: as many as fit 256 MiB, or fewer if
    /// memory is short. (In pieces of 64 MiB, each with an allocation of its own, the growth of a table of 42 million slots of 8
    /// words took 8.2 ms on an H200 instead of 7.8 ms: `cargo bench --bench growth`.)
    fn buffer_for(&self, slots: u64) -> Result<(DeviceMemory, u64)> {
        let bytes_a_slot = self.spec.width() as u64 * 4;
        let mut piece = ((256 << 20) / bytes_a_slot).min(slots);
        loop {
            match DeviceMemory::new(&self.gpu, piece * bytes_a_slot) {
                Ok(memory) => return Ok((memory, piece)),
                Err(Error::OutOfMemory { .. }) if piece > FEWEST_SLOTS => piece = (piece / 4).max(FEWEST_SLOTS),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for CudaStore {
    fn drop(&mut self) {
        // Kernels on the caller's streams may still use the table. An error here shows again at the next use of the GPU. (Tests
        // cannot make this wait fail.)
        let current = self.gpu.bind();
        if current.is_ok() {
            let _ = result::ctx::synchronize();
        }
        // While the context is current: dropping their events and streams would make it current and leave it so.
        self.workspace = None;
        self.shared.remove_store();
    }
}

impl RootStore for CudaStore {}

impl Store for CudaStore {
    fn stored(&self) -> Result<[u64; 2]> {
        let mut stored = [0u64; 2];
        // SAFETY: waited for in the next statement.
        unsafe { self.stored.read_async(0, &mut stored, self.stream())? };
        self.wait("reading the number of vectors")?;
        Ok(stored)
    }

    fn clear(&mut self, begin: &mut dyn FnMut()) -> Result<()> {
        self.gpu.synchronize()?; // the caller's streams may still be searching
        begin();
        self.set_dense(0);
        let words = self.slot_bytes / 4 + self._nodes.as_ref().map_or(0, |nodes| nodes.bytes() as u64 / 8);
        let launch = (self.gpu.blocks_for(words), 256, 0);
        // SAFETY: the argument of `warpset_clear`; the table's memory is as large as its geometry says.
        unsafe { self.gpu.launch(&self.kernels.clear, launch, self.stream(), &mut [self.table_argument()])? };
        self.wait("clearing a table")?;
        self.forget_rows();
        *self.displaced() = None; // they are cleared, too
        Ok(())
    }

    #[cfg(feature = "cluster")]
    fn prepare(&self, search: SearchMode, is_exchanged: bool) -> Result<()> {
        let (kernels, gpu) = (&self.kernels, &*self.gpu);
        if search == SearchMode::Find {
            kernels.find(gpu)?;
        }
        match search {
            _ if !is_exchanged => Ok(()),
            SearchMode::Find => kernels.find_received(gpu).map(drop),
            SearchMode::FindOrPut | SearchMode::FindOrPutLeavingHoles | SearchMode::PutBack => {
                kernels.find_or_put_received(gpu).map(drop)
            }
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.gpu.synchronize()
    }

    fn get(&self, references: &[u64], vectors: &mut [u32]) -> Result<u64> {
        let kernel = &self.kernels.read(&self.gpu)?.get;
        let piece = segment_vectors(self.spec.width()).min(references.len().max(1));
        let references_on_gpu = DeviceMemory::new(&self.gpu, piece as u64 * 8)?;
        let vectors_on_gpu = DeviceMemory::new(&self.gpu, (piece * self.spec.width() * 4) as u64)?;
        let invalid_on_gpu = DeviceMemory::new(&self.gpu, 8)?;
        let mut invalid = [0u64];
        invalid_on_gpu.zero_async(0, 8, self.stream())?;
        for (references, vectors) in references.chunks(piece).zip(vectors.chunks_mut(piece * self.spec.width())) {
            let count = references.len() as u64;
            let launch = (self.gpu.blocks_for(vectors.len() as u64), 256, 0);
            let (from, to, sum) = (references_on_gpu.address(), vectors_on_gpu.address(), invalid_on_gpu.address());
            // SAFETY:
            // - the arguments of `warpset_get`; the buffers have room for `count` references and vectors;
            // - the host slices are borrowed until the wait below.
            unsafe {
                references_on_gpu.write_async(0, references, self.stream())?;
                let arguments = &mut [self.table_argument(), argument(&from), argument(&count), argument(&to), argument(&sum)];
                self.gpu.launch(kernel, launch, self.stream(), arguments)?;
                vectors_on_gpu.read_async(0, vectors, self.stream())?;
            }
            self.wait("reading vectors back")?;
        }
        // SAFETY: waited for in the next statement.
        unsafe { invalid_on_gpu.read_async(0, &mut invalid, self.stream())? };
        self.wait("reading vectors back")?;
        Ok(invalid[0])
    }

    fn export(&self, slots: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)> {
        if self.spec.is_indexed() {
            return self.export_rows(slots);
        }
        let capacity = slots.end - slots.start;
        let vectors_on_gpu = DeviceMemory::new(&self.gpu, capacity * self.spec.width() as u64 * 4)?;
        let references_on_gpu = DeviceMemory::new(&self.gpu, capacity * 8)?;
        let cursor = DeviceMemory::new(&self.gpu, 8)?;
        let count = self.export_to(&slots, 0, &cursor, &vectors_on_gpu, Some(&references_on_gpu))? as usize;
        let (mut vectors, mut references) = (zeroed::<u32>(count * self.spec.width())?, zeroed::<u64>(count)?);
        // SAFETY: waited for in the next statement.
        unsafe {
            vectors_on_gpu.read_async(0, &mut vectors, self.stream())?;
            references_on_gpu.read_async(0, &mut references, self.stream())?;
        }
        self.wait("reading a table")?;
        Ok((vectors, references))
    }

    fn rehash_into(&self, larger: &dyn Store, slots: Range<u64>) -> Result<Counts> {
        let larger = Self::of(larger).expect("a table stays on its machine");
        // SAFETY: there are no marks.
        unsafe { self.rehash_marked(larger, slots, 0) }
    }

    fn measure(&self, slots: u64, bins: usize) -> Result<ProbeLengths> {
        let kernel = &self.kernels.read(&self.gpu)?.measure;
        let bytes = bins * 8 + size_of::<ProbeTotals>();
        let lengths_on_gpu = DeviceMemory::new(&self.gpu, bytes as u64)?;
        lengths_on_gpu.zero_async(0, bytes, self.stream())?;
        let (lengths_at, totals_at) = (lengths_on_gpu.address(), lengths_on_gpu.address() + bins as u64 * 8);
        let mut lengths = vec![0u64; bytes / 8];
        let (launch, first, bins_argument) = ((self.gpu.blocks_for(slots), 256, 0), 0u64, bins as u32);
        // SAFETY: the arguments of `warpset_measure`; `bins` lengths and the totals fit the buffer; waited for below.
        unsafe {
            let arguments = &mut [
                self.table_argument(),
                argument(&first),
                argument(&slots),
                argument(&lengths_at),
                argument(&bins_argument),
                argument(&totals_at),
            ];
            self.gpu.launch(kernel, launch, self.stream(), arguments)?;
            lengths_on_gpu.read_async(0, &mut lengths, self.stream())?;
        }
        self.wait("measuring a table")?;
        let totals = bytemuck::pod_read_unaligned(bytemuck::cast_slice(&lengths.split_off(bins)));
        Ok(ProbeLengths { lengths, totals })
    }
}
