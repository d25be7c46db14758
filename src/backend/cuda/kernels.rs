//! The library's kernels, compiled for a spec and loaded.
//!
//! The kernels are split into sets, each a program of its own. A set is compiled when one of its kernels is first used: a model
//! checker that puts states by its own kernel needs only the first set. Each program parses the headers again, which takes 40 ms.
//! Milliseconds that NVRTC 13 takes on one core of a Xeon, for compute capability 9.0:
//!
//! | kernels | put | incremental | find | read | relocate | all in one program |
//! |---|---|---|---|---|---|---|
//! | bucket, 2 words | 183 | - | 152 | 109 | - | 335 |
//! | bucket, 8 words | 203 | - | 173 | 127 | - | 405 |
//! | bucket, 32 words | 215 | - | 189 | 131 | - | 437 |
//! | tree, 16 words | 302 | 350 | 245 | 299 | - | 1014 |
//! | compact, 45 bits in 32 | 203 | - | 175 | 168 | 113 | 565 |
//! | compact tree, 16 words | 312 | 500 | 261 | 481 | - | 1350 |

use super::ahead;
use super::cache::Cache;
use super::gpu::Gpu;
use super::nvrtc::{self, Job};
use super::{cuda, pass, undisturbed};
use crate::layout::Kernel;
use crate::layout::view::Geometry;
use crate::{Error, Pairing, Result, Spec};
use cudarc::driver::{CudaFunction, CudaModule, sys};
use cudarc::nvrtc::Ptx;
use std::sync::{Arc, OnceLock};

/// Kernels of cuda/table_kernels.cu that are compiled together, by their number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelSet {
    /// Kernels that every table needs: clear, find-or-put.
    Put = 1,
    /// Incremental find-or-put.
    Incremental = 2,
    Find = 3,
    /// Get, export, measure.
    Read = 4,
    /// Only for a cuckoo table.
    Relocate = 5,
    /// Only for an indexed table: rebuild, list holes, move, and what values need.
    Rows = 6,
    /// Only for ranks of several GPUs: find-or-put of vectors that another GPU has sent.
    PutReceived = 7,
    /// Only for ranks of several GPUs: find of vectors that another GPU has sent.
    FindReceived = 8,
    /// Only for an indexed table: find-or-put that changes values.
    Upsert = 9,
    /// Rows of columns in device memory.
    Columns = 10,
    /// Only for a bucket table: growth.
    Grow = 11,
    /// Only for a bucket table of 1, 2 or 4 words whose slots are one chunk: bulk find-or-put.
    Bulk = 12,
}

/// The compiled kernels of one spec.
pub(crate) struct Kernels {
    spec: Spec,
    pub geometry: Geometry,
    clear: CudaFunction,
    pub find_or_put: SearchKernel,
    // Compiled when first used:
    find_or_put_incremental: OnceLock<SearchKernel>,
    find: OnceLock<SearchKernel>,
    read: OnceLock<Arc<CudaModule>>,
    relocate: OnceLock<Arc<CudaModule>>,
    rows: OnceLock<Arc<CudaModule>>,
    find_or_put_received: OnceLock<SearchKernel>,
    find_received: OnceLock<SearchKernel>,
    upsert: OnceLock<SearchKernel>,
    gather_columns: OnceLock<CudaFunction>,
    grow: OnceLock<GrowthKernels>,
    bulk: OnceLock<BulkKernels>,
}

/// Kernels of growth.
pub(crate) struct GrowthKernels {
    /// Fills parts of the larger table.
    pub fill: CudaFunction,
    /// Copies the vectors that are left.
    pub keep_left: CudaFunction,
}

/// The kernels of bulk find-or-put. A block may have all shared memory of its multiprocessor.
pub(super) struct BulkKernels {
    pub partition: CudaFunction,
    pub fill: CudaFunction,
    pub put_left: CudaFunction,
    pub replay: CudaFunction,
}

pub(crate) struct SearchKernel {
    pub function: CudaFunction,
    /// Blocks that a multiprocessor holds at once.
    pub resident_blocks: u32,
}

impl SearchKernel {
    fn load(module: &Arc<CudaModule>, name: &str, geometry: &Geometry) -> Result<Self> {
        let function = function(module, name)?;
        let shared = geometry.search_scratch_bytes;
        allow_shared(&function, shared)?;
        let resident_blocks = function
            .occupancy_max_active_blocks_per_multiprocessor(geometry.search_threads, shared as usize, None)
            .map_err(cuda("asking for the occupancy"))?;
        Ok(Self { function, resident_blocks: resident_blocks.max(1) })
    }
}

/// Blocks of the kernel may be launched with this number of bytes of dynamic shared memory.
fn allow_shared(function: &CudaFunction, bytes: u32) -> Result<()> {
    pass("asking for shared memory")?;
    function
        .set_attribute(sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32)
        .map_err(cuda("asking for shared memory"))
}

fn function(module: &Arc<CudaModule>, name: &str) -> Result<CudaFunction> {
    module.load_function(name).map_err(cuda("finding a kernel"))
}

/// Returns the content of `place`. If there is none, calls `make`, with the context of the GPU current. If several threads meet
/// there, all call `make`, and the first result is kept, so no thread waits. After an error `place` stays empty.
fn first_time<'a, T>(gpu: &Gpu, place: &'a OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&'a T> {
    match place.get() {
        Some(made) => Ok(made),
        None => {
            let _current = gpu.bind()?;
            make().map(|made| place.get_or_init(|| made))
        }
    }
}

impl Spec {
    /// Whether incremental kernels exist for this spec (`Table::is_incremental` in tree/table.cuh).
    pub(crate) fn is_incremental(&self) -> bool {
        self.is_tree() && self.strategy().pairing() != Pairing::Interleaved
    }

    /// The alignment that kernels expect of vectors in device memory, in bytes.
    pub(crate) const fn vector_alignment(&self) -> u64 {
        1 << if self.width.is_multiple_of(4) { 4 } else { (self.width * 4).trailing_zeros() }
    }

    /// Returns an error unless vectors at an address are aligned as kernels expect.
    pub(crate) fn check_alignment(&self, address: u64) -> Result<()> {
        let alignment = self.vector_alignment();
        if address.is_multiple_of(alignment) { Ok(()) } else { Err(Error::Misaligned { what: "vectors", address, alignment }) }
    }
}

impl Gpu {
    fn table_kernels(&self, spec: Spec, set: KernelSet) -> Result<Arc<CudaModule>> {
        self.load(&Job::table(spec, Some(set), self.compute_capability()))
    }

    /// Compiles a program for this GPU, or finds it compiled on disk, and loads it.
    pub(crate) fn load(&self, job: &Job) -> Result<Arc<CudaModule>> {
        let image = match ahead::take(job) {
            Some(image) => image?,
            None => nvrtc::compile(job, Cache::in_use(self.driver).as_ref())?,
        };
        pass("loading kernels")?;
        undisturbed(&self.context, || self.context.load_module(Ptx::from_binary(image))).map_err(cuda("loading kernels"))
    }
}

impl Kernels {
    /// Bytes of device memory that the warps of a search use as workspace.
    pub(super) fn workspace_bytes(&self, gpu: &Gpu) -> u64 {
        let blocks = gpu.multiprocessors * self.find_or_put.resident_blocks;
        let warps = u64::from(blocks * self.geometry.search_threads / 32);
        warps * u64::from(self.geometry.search_workspace_bytes)
    }

    pub(super) fn load(gpu: &Gpu, spec: Spec) -> Result<Self> {
        let _current = gpu.bind()?;
        let module = gpu.table_kernels(spec, KernelSet::Put)?;
        let geometry = Self::read_geometry(gpu, &module, spec)?;
        Ok(Self {
            spec,
            geometry,
            clear: function(&module, "warpset_clear")?,
            find_or_put: SearchKernel::load(&module, "warpset_find_or_put", &geometry)?,
            find_or_put_incremental: OnceLock::new(),
            find: OnceLock::new(),
            read: OnceLock::new(),
            relocate: OnceLock::new(),
            rows: OnceLock::new(),
            find_or_put_received: OnceLock::new(),
            find_received: OnceLock::new(),
            upsert: OnceLock::new(),
            gather_columns: OnceLock::new(),
            grow: OnceLock::new(),
            bulk: OnceLock::new(),
        })
    }

    /// Only for a table that gains by knowing parents.
    pub(super) fn find_or_put_incremental(&self, gpu: &Gpu) -> Result<&SearchKernel> {
        first_time(gpu, &self.find_or_put_incremental, || {
            let module = gpu.table_kernels(self.spec, KernelSet::Incremental)?;
            SearchKernel::load(&module, "warpset_find_or_put_incremental", &self.geometry)
        })
    }

    pub(super) fn find(&self, gpu: &Gpu) -> Result<&SearchKernel> {
        first_time(gpu, &self.find, || self.load_search(gpu, KernelSet::Find, "warpset_find"))
    }

    /// Only for ranks of several GPUs.
    pub(super) fn find_or_put_received(&self, gpu: &Gpu) -> Result<&SearchKernel> {
        first_time(gpu, &self.find_or_put_received, || {
            self.load_search(gpu, KernelSet::PutReceived, "warpset_find_or_put_received")
        })
    }

    /// Only for ranks of several GPUs.
    pub(super) fn find_received(&self, gpu: &Gpu) -> Result<&SearchKernel> {
        first_time(gpu, &self.find_received, || self.load_search(gpu, KernelSet::FindReceived, "warpset_find_received"))
    }

    /// Indexed tables only.
    pub(super) fn upsert(&self, gpu: &Gpu) -> Result<&SearchKernel> {
        first_time(gpu, &self.upsert, || self.load_search(gpu, KernelSet::Upsert, "warpset_upsert"))
    }

    pub(super) fn gather_columns(&self, gpu: &Gpu) -> Result<&CudaFunction> {
        first_time(gpu, &self.gather_columns, || {
            function(&gpu.table_kernels(self.spec, KernelSet::Columns)?, "warpset_gather_columns")
        })
    }

    /// The kernels of growth, for bucket tables only. A block may use all shared memory of its multiprocessor. This attribute is
    /// set when the kernel is loaded, not at each launch: several tables of one spec share the kernel, and may grow at once.
    pub(super) fn grow(&self, gpu: &Gpu) -> Result<&GrowthKernels> {
        first_time(gpu, &self.grow, || {
            let module = gpu.table_kernels(self.spec, KernelSet::Grow)?;
            let kernels =
                GrowthKernels { fill: function(&module, "warpset_grow")?, keep_left: function(&module, "warpset_keep_left")? };
            allow_shared(&kernels.fill, gpu.shared_bytes as u32)?;
            Ok(kernels)
        })
    }

    /// Only for specs that have [`bulk_bytes`](Spec::bulk_bytes).
    pub(super) fn bulk(&self, gpu: &Gpu) -> Result<&BulkKernels> {
        first_time(gpu, &self.bulk, || {
            let module = gpu.table_kernels(self.spec, KernelSet::Bulk)?;
            let in_shared = |name| -> Result<CudaFunction> {
                let function = function(&module, name)?;
                allow_shared(&function, gpu.shared_bytes as u32)?;
                Ok(function)
            };
            Ok(BulkKernels {
                partition: in_shared("warpset_bulk_partition")?,
                fill: in_shared("warpset_bulk_fill")?,
                put_left: function(&module, "warpset_bulk_put_left")?,
                replay: in_shared("warpset_bulk_replay")?,
            })
        })
    }

    /// Loads a search kernel of another set than [`KernelSet::Put`]. If it uses the batch's workspace, it has at most the
    /// resident blocks of find-or-put, for which the workspace is sized.
    fn load_search(&self, gpu: &Gpu, set: KernelSet, name: &str) -> Result<SearchKernel> {
        let kernel = SearchKernel::load(&gpu.table_kernels(self.spec, set)?, name, &self.geometry)?;
        let resident_blocks = match self.geometry.search_workspace_bytes {
            0 => kernel.resident_blocks,
            _ => kernel.resident_blocks.min(self.find_or_put.resident_blocks),
        };
        Ok(SearchKernel { resident_blocks, ..kernel })
    }

    /// A kernel that is no search. Its set is compiled at the first request.
    pub(super) fn function(&self, gpu: &Gpu, kernel: Kernel) -> Result<CudaFunction> {
        let (set, module) = match kernel {
            Kernel::Clear => return Ok(self.clear.clone()),
            Kernel::Get | Kernel::Export | Kernel::Measure => (KernelSet::Read, &self.read),
            Kernel::Relocate => (KernelSet::Relocate, &self.relocate),
            Kernel::Rebuild
            | Kernel::ListHoles
            | Kernel::MoveRows
            | Kernel::CountUnstored
            | Kernel::GatherValues
            | Kernel::ScatterValues => (KernelSet::Rows, &self.rows),
        };
        let module = first_time(gpu, module, || gpu.table_kernels(self.spec, set))?;
        let _current = gpu.bind()?;
        function(module, kernel.name().to_str().expect("names are ASCII"))
    }

    fn read_geometry(gpu: &Gpu, module: &Arc<CudaModule>, spec: Spec) -> Result<Geometry> {
        let mut bytes = [0u8; size_of::<Geometry>()];
        let symbol = module.get_global("warpset_geometry", &gpu.stream).map_err(cuda("finding the geometry"))?;
        // The target is not pinned, so the bytes are there when the call returns.
        let read = || gpu.stream.memcpy_dtoh(&symbol, &mut bytes);
        undisturbed(&gpu.context, read).map_err(cuda("reading the geometry"))?;
        gpu.wait(&gpu.stream, "reading the geometry")?;
        let geometry: Geometry = bytemuck::pod_read_unaligned(&bytes);
        geometry.check_abi(spec);
        Ok(geometry)
    }
}
