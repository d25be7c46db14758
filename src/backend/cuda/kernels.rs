//! The library's kernels, compiled for a spec and loaded.

use super::gpu::Gpu;
use super::{cuda, nvrtc, undisturbed};
use crate::core::view::Geometry;
use crate::{Result, Spec};
use cudarc::driver::{CudaFunction, CudaModule, sys};
use std::sync::Arc;

/// The compiled kernels of one spec.
pub(crate) struct Kernels {
    pub geometry: Geometry,
    pub find_or_put: SearchKernel,
    /// Only for a table that gains by knowing parents.
    pub find_or_put_incremental: Option<SearchKernel>,
    pub find: SearchKernel,
    pub clear: CudaFunction,
    pub get: CudaFunction,
    pub export: CudaFunction,
    pub measure: CudaFunction,
    /// Only for a cuckoo table.
    pub relocate: Option<CudaFunction>,
}

pub(crate) struct SearchKernel {
    pub function: CudaFunction,
    /// Blocks that a multiprocessor holds at once.
    pub resident_blocks: u32,
}

impl Gpu {
    /// The kernels of a spec; compiled the first time they are asked for.
    pub(crate) fn kernels(&self, spec: Spec) -> Result<Arc<Kernels>> {
        let lock = || self.kernels.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(kernels) = lock().get(&spec) {
            return Ok(kernels.clone());
        }
        // Not locked meanwhile: other threads may compile for other specs. Those of one that several ask for at once are compiled
        // by each, and the first ones are kept.
        let (name, source) = nvrtc::TABLE_KERNELS;
        let module = self.compile(name, source, spec)?;
        let compiled = Arc::new(Kernels::load(self, &module, spec)?);
        Ok(lock().entry(spec).or_insert(compiled).clone())
    }
}

impl Kernels {
    /// Bytes of device memory that the warps of a search work in.
    pub(super) fn workspace_bytes(&self, gpu: &Gpu) -> u64 {
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
            find_or_put_incremental: if spec.is_incremental() { Some(search("warpset_find_or_put_incremental")?) } else { None },
            find: search("warpset_find")?,
            clear: function("warpset_clear")?,
            get: function("warpset_get")?,
            export: function("warpset_export")?,
            measure: function("warpset_measure")?,
            relocate: if spec.is_cuckoo() { Some(function("warpset_relocate")?) } else { None },
        })
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
