//! Tables in the memory of a CUDA GPU.

mod memory;
pub(crate) mod nvrtc;
mod staging;
mod store;
mod workspace;

pub(crate) use store::CudaStore;

use super::view::Geometry;
use crate::{Error, GpuInfo, Result, Spec};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaStream, sys};
use cudarc::nvrtc::Ptx;
use staging::Stage;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};

/// One GPU of this process: its context, the kernels compiled for it, and buffers for host batches.
pub(crate) struct Gpu {
    info: GpuInfo,
    multiprocessors: u32,
    l2_bytes: u64,
    context: Arc<CudaContext>,
    /// For table-wide work that is waited for: clearing, counting, reading back.
    stream: Arc<CudaStream>,
    kernels: Mutex<HashMap<Spec, Arc<Kernels>>>,
    stages: Mutex<Vec<Stage>>,
}

/// The compiled kernels of one spec.
pub(crate) struct Kernels {
    pub geometry: Geometry,
    pub find_or_put: SearchKernel,
    /// Of a table that gains by knowing parents.
    pub find_or_put_changed: Option<SearchKernel>,
    pub find: SearchKernel,
    pub clear: CudaFunction,
    pub get: CudaFunction,
    pub export: CudaFunction,
    pub measure: CudaFunction,
    /// Of a cuckoo table.
    pub settle: Option<CudaFunction>,
}

pub(crate) struct SearchKernel {
    pub function: CudaFunction,
    /// Blocks that a multiprocessor holds at once.
    pub resident_blocks: u32,
}

/// Turns a driver's error into ours, saying what was being done.
pub(crate) fn cuda(what: &'static str) -> impl Fn(DriverError) -> Error {
    move |error| Error::Cuda { what, status: format!("{error:?}") }
}

/// The names that `cudarc` looks for, for an error message.
fn library_names(libraries: &[&str]) -> String {
    let names = libraries.iter().flat_map(|library| cudarc::get_lib_name_candidates(library));
    names.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

fn ensure_driver() -> Result<()> {
    // SAFETY: loads the library and looks at nothing in it.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::LibraryNotFound { library: "CUDA driver", searched: library_names(&["cuda", "nvcuda"]) });
    }
    match result::init() {
        // No device is a count of zero, not a failure.
        Err(error) if error.0 != sys::CUresult::CUDA_ERROR_NO_DEVICE => Err(cuda("starting the driver")(error)),
        _ => Ok(()),
    }
}

fn gpu_count() -> Result<usize> {
    ensure_driver()?;
    match result::device::get_count() {
        Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => Ok(0),
        Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NOT_INITIALIZED => Ok(0),
        count => count.map(|count| count as usize).map_err(cuda("counting GPUs")),
    }
}

fn attribute(device: sys::CUdevice, attribute: sys::CUdevice_attribute) -> Result<u32> {
    // SAFETY: `device` is from `device::get`.
    let value = unsafe { result::device::get_attribute(device, attribute) };
    value.map(|value| value as u32).map_err(cuda("asking for a device attribute"))
}

fn describe(ordinal: usize) -> Result<GpuInfo> {
    let device = result::device::get(ordinal as i32).map_err(cuda("opening a GPU"))?;
    use sys::CUdevice_attribute::*;
    Ok(GpuInfo {
        ordinal,
        name: result::device::get_name(device).map_err(cuda("asking for a GPU's name"))?,
        // SAFETY: `device` is from `device::get`.
        memory_bytes: unsafe { result::device::total_mem(device) }.map_err(cuda("asking for a GPU's memory"))? as u64,
        compute_capability: (
            attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
    })
}

impl Gpu {
    pub(crate) fn list() -> Result<Vec<GpuInfo>> {
        (0..gpu_count()?).map(describe).collect()
    }

    /// The GPU of this number: one for the whole process, so that kernels are compiled once.
    pub(crate) fn open(ordinal: usize) -> Result<Arc<Self>> {
        static OPEN: OnceLock<Mutex<HashMap<usize, Arc<Gpu>>>> = OnceLock::new();
        let mut open = OPEN.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(gpu) = open.get(&ordinal) {
            return Ok(gpu.clone());
        }
        let count = gpu_count()?;
        if ordinal >= count {
            return Err(Error::NoSuchGpu { ordinal, count });
        }
        nvrtc::ensure_present()?;
        let info = describe(ordinal)?;
        let device = result::device::get(ordinal as i32).map_err(cuda("opening a GPU"))?;
        let context = CudaContext::new(ordinal).map_err(cuda("making a context"))?;
        let gpu = Arc::new(Self {
            info,
            multiprocessors: attribute(device, sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            l2_bytes: attribute(device, sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            stream: context.new_stream().map_err(cuda("making a stream"))?,
            context,
            kernels: Mutex::default(),
            stages: Mutex::default(),
        });
        open.insert(ordinal, gpu.clone());
        Ok(gpu)
    }

    pub(crate) fn name(&self) -> &str {
        &self.info.name
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.info.ordinal
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Makes the GPU's context current on this thread, as driver calls need it.
    pub(crate) fn bind(&self) -> Result<()> {
        self.context.bind_to_thread().map_err(cuda("making a context current"))
    }

    /// Waits for all work on the GPU.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.context.synchronize().map_err(cuda("waiting for the GPU"))
    }

    /// 16-byte compare-and-swap came with compute capability 9.0.
    pub(crate) fn chunk_bytes(&self) -> u32 {
        if self.info.compute_capability.0 >= 9 { 16 } else { 8 }
    }

    /// Compiles a source for tables of `spec`, and loads it.
    pub(crate) fn compile(&self, name: &str, source: &str, spec: Spec) -> Result<Arc<CudaModule>> {
        let image = nvrtc::compile(name, source, spec, self.info.compute_capability)?;
        self.context.load_module(Ptx::from_binary(image)).map_err(cuda("loading kernels"))
    }

    /// The kernels of a spec; compiled the first time they are asked for.
    pub(crate) fn kernels(&self, spec: Spec) -> Result<Arc<Kernels>> {
        let lock = || self.kernels.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(kernels) = lock().get(&spec) {
            return Ok(kernels.clone());
        }
        // Not locked meanwhile: other threads may compile for other specs. Those of one that several ask for at once are compiled by each,
        // and the first ones are kept.
        let (name, source) = nvrtc::TABLE_KERNELS;
        let module = self.compile(name, source, spec)?;
        let compiled = Arc::new(Kernels::load(self, &module, spec)?);
        Ok(lock().entry(spec).or_insert(compiled).clone())
    }

    /// Enqueues a kernel.
    ///
    /// # Safety
    ///
    /// `arguments` are the addresses of the kernel's arguments, of its types and in its order; what they point to lives until the
    /// stream has passed the kernel.
    pub(crate) unsafe fn launch(
        &self,
        function: &CudaFunction,
        (blocks, threads, shared_bytes): (u32, u32, u32),
        stream: sys::CUstream,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        self.bind()?;
        let (grid, block) = ((blocks, 1, 1), (threads, 1, 1));
        // SAFETY: the caller's.
        unsafe { result::launch_kernel(function.cu_function(), grid, block, shared_bytes, stream, arguments) }
            .map_err(cuda("launching a kernel"))
    }

    /// Blocks of 256 threads for `items` independent items: enough to fill the GPU, no more than there is work for.
    pub(crate) fn blocks_for(&self, items: u64) -> u32 {
        items.div_ceil(256).clamp(1, u64::from(self.multiprocessors) * 8) as u32
    }
}

impl Kernels {
    /// Bytes of device memory that the warps of a search work in.
    fn workspace_bytes(&self, gpu: &Gpu) -> u64 {
        let blocks = gpu.multiprocessors * self.find_or_put.resident_blocks.max(self.find.resident_blocks);
        let warps = u64::from(blocks * self.geometry.search_threads / 32);
        warps * u64::from(self.geometry.search_workspace_bytes)
    }

    fn load(gpu: &Gpu, module: &Arc<CudaModule>, spec: Spec) -> Result<Self> {
        let function = |name: &str| module.load_function(name).map_err(cuda("finding a kernel"));
        let geometry = Self::read_geometry(gpu, module, spec)?;
        let search = |name: &str| -> Result<SearchKernel> {
            let function = function(name)?;
            let shared = geometry.search_scratch_bytes;
            function
                .set_attribute(sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
                .map_err(cuda("asking for shared memory"))?;
            let resident_blocks = function
                .occupancy_max_active_blocks_per_multiprocessor(geometry.search_threads, shared as usize, None)
                .map_err(cuda("asking for the occupancy"))?;
            Ok(SearchKernel { function, resident_blocks: resident_blocks.max(1) })
        };
        Ok(Self {
            geometry,
            find_or_put: search("warpset_find_or_put")?,
            find_or_put_changed: if spec.takes_changes() { Some(search("warpset_find_or_put_changed")?) } else { None },
            find: search("warpset_find")?,
            clear: function("warpset_clear")?,
            get: function("warpset_get")?,
            export: function("warpset_export")?,
            measure: function("warpset_measure")?,
            settle: if spec.cuckoo { Some(function("warpset_settle")?) } else { None },
        })
    }

    fn read_geometry(gpu: &Gpu, module: &Arc<CudaModule>, spec: Spec) -> Result<Geometry> {
        let mut bytes = [0u8; size_of::<Geometry>()];
        let symbol = module.get_global("warpset_geometry", &gpu.stream).map_err(cuda("finding the geometry"))?;
        gpu.stream.memcpy_dtoh(&symbol, &mut bytes).map_err(cuda("reading the geometry"))?;
        gpu.stream.synchronize().map_err(cuda("reading the geometry"))?;
        let geometry: Geometry = bytemuck::pod_read_unaligned(&bytes);
        geometry.check_abi(spec);
        Ok(geometry)
    }
}
