//! One table of a fixed size on a GPU.

use super::Gpu;
use super::growth_plan::InPlace;
use super::kernels::{Kernels, SearchKernel};
use super::machine::CudaMachine;
use super::workspace::{Borrowed, Workspace};
use crate::Result;
use crate::backend::{Launch, Machine, Memory, Store, TableMemory, Waves};
use crate::layout::columns::ColumnsView;
use crate::layout::options::Parameters;
use crate::layout::search::SearchMode;
use crate::layout::view::{BatchView, Counts, View};
use crate::layout::{BatchProgress, HostBatch, Kernel};
use cudarc::driver::{result, sys};
use std::any::Any;
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

pub(crate) struct CudaStore {
    pub(super) table: TableMemory,
    pub(super) machine: CudaMachine,
    pub(super) kernels: Arc<Kernels>,
    /// Whether visiting only the nodes above changed words is faster than looking for all nodes.
    incremental_pays: bool,
    /// Only for strategies with a workspace in global memory.
    workspace: Option<Workspace>,
    /// A growth in place that has begun and is not done.
    pub(super) growing: Option<Box<InPlace>>,
    /// Scratch memory of the last batch in bulk, for the next one.
    pub(super) bulk_scratch: Mutex<Option<Memory>>,
}

impl Deref for CudaStore {
    type Target = TableMemory;

    fn deref(&self) -> &TableMemory {
        &self.table
    }
}

/// The address of a kernel's argument, which a launch copies.
pub(super) fn argument<T>(argument: &T) -> *mut c_void {
    (&raw const *argument).cast_mut().cast()
}

/// Address of a table's view, for a kernel argument.
pub(super) fn view_argument(view: &View) -> *mut c_void {
    view.argument().as_ptr().cast_mut().cast()
}

/// Number of blocks of a search, as a multiple of the blocks that fit the GPU at the same time.
fn waves_of_blocks(waves: Waves) -> u64 {
    match waves {
        Waves::One => 1,
        Waves::BesideOthers => 4,
    }
}

/// Largest number of vectors of a kernel: it counts them in 32 bits.
pub(super) const MAX_BATCH: u64 = 1 << 31;

impl CudaStore {
    /// The store, if it is on a GPU.
    pub(crate) fn of(store: &dyn Store) -> Option<&Self> {
        (store as &dyn Any).downcast_ref()
    }

    pub(super) fn new(machine: &CudaMachine, parameters: &Parameters<'_>) -> Result<Self> {
        let store = Self::unfilled(machine, parameters)?;
        // SAFETY: the kernel takes the table only, whose memory is as large as its geometry says. Nothing else uses it yet.
        unsafe { machine.launch(Kernel::Clear, &[store.argument()], store.clear_words(), &[])? };
        machine.wait("clearing a table")?;
        Ok(store)
    }

    /// A table whose slots and nodes the caller fills, or clears, before anything else.
    pub(super) fn unfilled(machine: &CudaMachine, parameters: &Parameters<'_>) -> Result<Self> {
        Self::of_memory(machine, TableMemory::new(machine, parameters)?)
    }

    /// [`Machine::store_of`].
    pub(super) fn of_memory(machine: &CudaMachine, table: TableMemory) -> Result<Self> {
        let gpu = machine.gpu();
        let kernels = machine.shared.kernels(table.spec)?;
        let workspace_bytes = kernels.workspace_bytes(gpu);
        let workspace = if workspace_bytes > 0 { Some(Workspace::new(gpu, workspace_bytes)?) } else { None };
        // H200, walks of 2^27 states, even and skewed (`cargo bench --bench walks`), whole / changes in G/s, nodes in L2: 4 words
        // 13.2 / 11.2; 6 words 13.5 / 12.2, 12.2 / 10.8; 8 words 13.1 / 12.4, 13.2 / 12.4; 12 words 8.6 / 10.1, 8.0 / 8.4. Nodes
        // that are not in L2 cost a random access each.
        let node_bytes = table.nodes.as_ref().map_or(0, |nodes| nodes.bytes);
        let incremental_pays = table.spec.width() > 8 || node_bytes > gpu.l2_bytes;
        let store = Self {
            table,
            machine: machine.clone(),
            kernels,
            incremental_pays,
            workspace,
            growing: None,
            bulk_scratch: Mutex::default(),
        };
        store.machine.shared.add_store(); // and `drop` removes it, also if one of the next calls fails
        Ok(store)
    }

    pub(crate) fn view(&self) -> View {
        self.view
    }

    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        self.machine.gpu()
    }

    pub(super) fn stream(&self) -> sys::CUstream {
        self.machine.stream()
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
            Some(_) => self.kernels.upsert(self.gpu())?,
        };
        let _current = self.gpu().bind()?;
        let workspace = self.workspace.as_ref().map(|workspace| workspace.borrow(stream)).transpose()?;
        // The workspace has room for the warps of one wave of blocks.
        let waves = if workspace.is_some() { 1 } else { waves_of_blocks(launch.waves) };
        let batch = BatchView { workspace: workspace.as_ref().map_or(0, |workspace| workspace.address), ..*batch };
        let (view, geometry) = (search.view_of(&self.view), &self.kernels.geometry);
        let most_blocks = u64::from(self.gpu().multiprocessors * kernel.resident_blocks) * waves;
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
                    (None, None) => self.gpu().launch(&kernel.function, shape, stream, &mut [view, part]),
                    (Some(refused), _) => {
                        self.gpu().launch(&kernel.function, shape, stream, &mut [view, part, argument(refused)])
                    }
                    (None, Some((upsert, bytes))) => {
                        let upsert = upsert.part(first, *bytes);
                        self.gpu().launch(&kernel.function, shape, stream, &mut [view, part, argument(&upsert)])
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
        let kernel = self.kernels.gather_columns(self.gpu())?;
        views.iter().try_for_each(|view| {
            let launch = (self.gpu().blocks_for(view.count.saturating_mul(self.spec.width() as u64)), 256, 0);
            // SAFETY: the argument of `warpset_gather_columns`, whose size both sides assert. The caller guarantees the rest.
            unsafe { self.gpu().launch(kernel, launch, stream, &mut [argument(view)]) }
        })
    }

    /// Kernel of a search, compiled at its first use.
    fn search_kernel(&self, search: SearchMode, batch: &BatchView, is_received: bool) -> Result<&SearchKernel> {
        let (kernels, gpu) = (&self.kernels, &**self.gpu());
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
}

impl Drop for CudaStore {
    fn drop(&mut self) {
        // Kernels on the caller's streams may still use the table. An error here shows again at the next use of the GPU. (Tests
        // cannot make this wait fail.)
        let current = self.gpu().bind();
        if current.is_ok() {
            let _ = result::ctx::synchronize();
        }
        // While the context is current: dropping their events and streams would make it current and leave it so.
        self.workspace = None;
        self.growing = None;
        self.machine.shared.remove_store();
    }
}

impl Store for CudaStore {
    fn machine(&self) -> &dyn Machine {
        &self.machine
    }

    fn table(&self) -> &TableMemory {
        &self.table
    }

    fn table_mut(&mut self) -> &mut TableMemory {
        &mut self.table
    }

    fn spec_has_changed(&mut self) {
        self.kernels = self.machine.shared.kernels(self.spec).expect("these kernels are loaded: they gave the geometry");
    }

    #[cfg(feature = "cluster")]
    fn prepare(&self, search: SearchMode, is_exchanged: bool) -> Result<()> {
        let (kernels, gpu) = (&self.kernels, self.gpu());
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

    fn search_batch(&self, tag: u64, batch: &mut HostBatch<'_>, progress: &mut BatchProgress<'_>) -> Result<Counts> {
        self.search_in_segments(tag, batch, progress)
    }

    unsafe fn search_in_place(&self, search: SearchMode, batch: &BatchView) -> Result<()> {
        // SAFETY: the caller guarantees the buffers; allocations are aligned to 256 bytes. The stream is that of the machine's
        // other kernels and copies. `drop` waits before the table's memory is freed.
        unsafe { self.enqueue(search, batch, self.stream(), Launch::default()) }
    }

    fn grow_in_place(
        &mut self,
        parameters: &Parameters<'_>,
        slots: u64,
        unplaced: &mut Vec<u32>,
        begin: &mut dyn FnMut(),
    ) -> Result<bool> {
        self.grow_where_it_is(parameters, slots, unplaced, begin)
    }

    fn bytes_beside(&self, parameters: &Parameters<'_>, slots: u64) -> Option<u64> {
        self.bytes_beside_growth(parameters, slots)
    }

    fn is_growing(&self) -> bool {
        self.growing.is_some()
    }

    fn finish_growth(&mut self, unplaced: &mut Vec<u32>) -> Result<()> {
        self.go_on(unplaced)
    }

    fn free_scratch(&self) {
        self.kept_scratch().take();
    }

    fn grown(&self, parameters: &Parameters<'_>, slots: u64, _spare: u64) -> Result<Option<(Box<dyn Store>, Counts)>> {
        self.free_scratch();
        let grown = self.grown_by_slices(parameters, slots)?;
        Ok(grown.map(|(larger, counts)| (Box::new(larger) as Box<dyn Store>, counts)))
    }
}
