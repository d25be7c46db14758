//! A program, compiled for a table, and memory of a GPU.

use super::program::PROGRAM;
use anyhow::{Error, Result, ensure};
use std::sync::Arc;
use warpset::gpu::cudarc_0_19::cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute, CUresult};
use warpset::gpu::cudarc_0_19::cudarc::driver::{
    CudaFunction, CudaModule, CudaSlice, CudaStream, DeviceRepr, DriverError, LaunchConfig, PushKernelArg,
};
use warpset::{Spec, Storage, VectorTable};

/// The program text, compiled for tables of one spec.
pub(super) struct Kernel {
    pub(super) module: Arc<CudaModule>,
    pub(super) function: CudaFunction,
    pub(super) read_states: CudaFunction,
    pub(super) launch: LaunchConfig,
    pub(super) spec: Spec,
}

impl Kernel {
    pub(super) fn load<S: Storage>(table: &VectorTable<S>, text: &str, name: &str, stream: &Arc<CudaStream>) -> Result<Self> {
        Self::of(table.compile(PROGRAM, text)?.into(), name, stream, table.spec())
    }

    /// Loads one of the functions of a compiled text.
    pub(super) fn of(module: Arc<CudaModule>, name: &str, stream: &Arc<CudaStream>, spec: Spec) -> Result<Self> {
        // Some of the calls below do not bind the context themselves, and each rank of several has a thread and a GPU of its own.
        stream.context().bind_to_thread()?;
        let (threads, shared) = describe(&module, stream)?;
        let (function, read_states) = (module.load_function(name)?, module.load_function("read_states")?);
        function.set_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)?;
        let resident = function.occupancy_max_active_blocks_per_multiprocessor(threads, shared as usize, None)?;
        ensure!(
            resident > 0,
            "no block of {threads} threads with {shared} bytes of shared memory fits a multiprocessor of this GPU"
        );
        let multiprocessors = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let blocks = resident * stream.context().attribute(multiprocessors)? as u32;
        let launch = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: shared };
        Ok(Self { module, function, read_states, launch, spec })
    }

    /// Marks for each thread of a reduced search; one word if the marks are in shared memory. Reuses `old` if it is large enough.
    pub(super) fn marks(&self, stream: &Arc<CudaStream>, old: Option<CudaSlice<u32>>) -> Result<CudaSlice<u32>> {
        let count = self.module.load_function("count_marks")?;
        let mut words = stream.alloc_zeros::<u32>(1)?;
        let mut launch = stream.launch_builder(&count);
        launch.arg(&mut words);
        // SAFETY: the argument is the address of one number, which one thread writes.
        unsafe { launch.launch(LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 }) }?;
        let a_thread = u64::from(stream.clone_dtoh(&words)?[0]);
        let threads = u64::from(self.launch.grid_dim.0) * u64::from(self.launch.block_dim.0);
        if let Some(old) = old.filter(|old| old.len() as u64 >= a_thread * threads) {
            return Ok(old);
        }
        Ok(allocate::<u32>(stream, (a_thread * threads).max(1))?.ok_or(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY))?)
    }
}

/// Allocates `count` numbers; `None` if there is no memory. The caller must write each before reading it.
pub(super) fn allocate<T: DeviceRepr>(stream: &Arc<CudaStream>, count: u64) -> Result<Option<CudaSlice<T>>> {
    // SAFETY: the caller writes an element before it is read.
    match unsafe { stream.alloc::<T>(count as usize) } {
        Ok(memory) => Ok(Some(memory)),
        Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Turns an error about GPU memory into `None`.
pub fn unless_memory_ends<T>(result: Result<T>) -> Result<Option<T>> {
    let is_memory = |error: &Error| {
        error.chain().any(|cause| match cause.downcast_ref::<DriverError>() {
            Some(DriverError(code)) => *code == CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            None => matches!(cause.downcast_ref(), Some(warpset::Error::OutOfMemory { .. })),
        })
    };
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_memory(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Number of threads of a block, and bytes of shared memory that a block needs.
fn describe(module: &Arc<CudaModule>, stream: &Arc<CudaStream>) -> Result<(u32, u32)> {
    let describe = module.load_function("describe")?;
    let (mut threads, mut shared) = (stream.alloc_zeros::<u32>(1)?, stream.alloc_zeros::<u32>(1)?);
    let mut launch = stream.launch_builder(&describe);
    launch.arg(&mut threads).arg(&mut shared);
    // SAFETY: each of the two arguments is the address of one number, which one thread writes.
    unsafe { launch.launch(LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 }) }?;
    Ok((stream.clone_dtoh(&threads)?[0], stream.clone_dtoh(&shared)?[0]))
}
