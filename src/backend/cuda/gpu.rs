//! One GPU of this process, and the driver's calls on it.

use super::{Current, cuda, ensure_driver, pass, undisturbed};
use crate::backend::GpuInfo;
use crate::{Error, Result};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, result, sys};
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

/// One GPU of this process: its context, and a stream for work on whole tables.
pub(crate) struct Gpu {
    info: GpuInfo,
    pub(super) multiprocessors: u32,
    pub(super) l2_bytes: u64,
    /// Most bytes of shared memory that a block can have.
    pub(super) shared_bytes: u64,
    /// The driver's version.
    pub(super) driver: i32,
    pub(super) context: Arc<CudaContext>,
    /// The stream for table-wide work that is waited for: clearing, counting, reading back.
    pub(super) stream: Arc<CudaStream>,
}

pub(super) fn gpu_count() -> Result<usize> {
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

/// 16-byte compare-and-swap came with compute capability 9.0.
pub(crate) fn chunk_bytes(capability: (u32, u32)) -> u32 {
    if capability.0 >= 9 { 16 } else { 8 }
}

/// Version of the driver, which must have been found.
pub(super) fn driver_version() -> Result<i32> {
    let mut version = 0;
    // SAFETY: `version` is valid memory.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(cuda("asking for the driver's version"))?;
    Ok(version)
}

impl Gpu {
    pub(crate) fn list() -> Result<Vec<GpuInfo>> {
        (0..gpu_count()?).map(describe).collect()
    }

    /// The GPU of a context.
    pub(super) fn new(context: Arc<CudaContext>) -> Result<Arc<Self>> {
        let info = describe(context.ordinal())?;
        let device = result::device::get(info.ordinal as i32).map_err(cuda("opening a GPU"))?;
        Ok(Arc::new(Self {
            info,
            multiprocessors: attribute(device, sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            l2_bytes: attribute(device, sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            shared_bytes: attribute(device, sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
                .into(),
            driver: driver_version()?,
            stream: undisturbed(&context, || context.new_stream()).map_err(cuda("making a stream"))?,
            context,
        }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.info.name
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.info.ordinal
    }

    pub(crate) fn compute_capability(&self) -> (u32, u32) {
        self.info.compute_capability
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Makes the GPU's context current on this thread, as driver calls need it, for as long as the result lives.
    pub(crate) fn bind(&self) -> Result<Current> {
        Current::of(&self.context).map_err(cuda("making a context current"))
    }

    /// Waits for all work on the GPU.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let _current = self.bind()?;
        result::ctx::synchronize().map_err(cuda("waiting for the GPU"))?;
        // After the wait, as in `wait`.
        pass("waiting for the GPU")
    }

    /// Waits for the work of a stream.
    pub(crate) fn wait(&self, stream: &CudaStream, what: &'static str) -> Result<()> {
        let _current = self.bind()?;
        // SAFETY: the stream is of this context, and borrowed.
        unsafe { result::stream::synchronize(stream.cu_stream()) }.map_err(cuda(what))?;
        // An injected error comes after the wait: callers use memory again once a wait has failed, because a GPU whose wait fails
        // does nothing more.
        pass(what)
    }

    /// Returns an error unless a stream (or that of a buffer) belongs to this very context object: each object orders, by events,
    /// only work on its own streams.
    pub(crate) fn check_own(&self, what: &'static str, stream: &CudaStream) -> Result<()> {
        let context = stream.context();
        if Arc::ptr_eq(context, &self.context) {
            return Ok(());
        }
        let ordinal = context.ordinal();
        let given = match ordinal == self.ordinal() {
            true if *context == self.context => format!("another `CudaContext` of the same context of GPU {ordinal}"),
            true => format!("another context of GPU {ordinal}"),
            false => format!("GPU {ordinal}"),
        };
        Err(Error::WrongDevice { what, given, needed: self.to_string() })
    }

    /// Runs `work`, which calls `check_recorded` to learn whether a call of `cudarc` has recorded an error instead of returning
    /// it. An error that was recorded before belongs to another caller, and is restored afterwards.
    pub(crate) fn recorded(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let _current = self.bind()?;
        let earlier = self.context.check_err();
        let done = work();
        let recorded = self.check_recorded();
        self.context.record_err(earlier);
        done.and(recorded)
    }

    pub(crate) fn check_recorded(&self) -> Result<()> {
        self.context.check_err().map_err(cuda("ordering a batch among streams"))
    }

    /// Makes streams wait for all work enqueued on another stream. If that fails, waits for it here.
    pub(crate) fn let_wait(&self, streams: &[Arc<CudaStream>], stream: &CudaStream) -> Result<()> {
        if streams.is_empty() {
            return Ok(());
        }
        let order = || {
            let event = stream.record_event(None)?;
            streams.iter().try_for_each(|waiting| waiting.wait(&event))
        };
        match order() {
            Ok(()) => Ok(()),
            Err(_) => self.wait(stream, "ordering a batch among streams"),
        }
    }

    /// Returns an error if a stream is being captured into a graph.
    pub(crate) fn check_not_capturing(&self, stream: &CudaStream) -> Result<()> {
        let _current = self.bind()?;
        // SAFETY: the stream is borrowed, and of this context.
        let status =
            unsafe { result::stream::is_capturing(stream.cu_stream()) }.map_err(cuda("asking a stream for its state"))?;
        if status == sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE { Ok(()) } else { Err(Error::Capturing) }
    }

    /// Returns an error if the driver knows that an address belongs to another GPU or context, or is not in device memory.
    pub(crate) fn check_address(&self, what: &'static str, address: u64) -> Result<()> {
        let _current = self.bind()?;
        let (mut kind, mut ordinal, mut context) = (0u32, 0i32, std::ptr::null_mut::<c_void>());
        let ask = |place: *mut c_void, attribute| {
            // SAFETY: `place` is one of the three above, which have the sizes of the attributes asked for below.
            unsafe { sys::cuPointerGetAttribute(place, attribute, address) }.result()
        };
        let wrong = |given: String| Err(Error::WrongDevice { what, given, needed: self.to_string() });
        use sys::CUpointer_attribute::*;
        let known = ask((&raw mut kind).cast(), CU_POINTER_ATTRIBUTE_MEMORY_TYPE).is_ok();
        if !known || kind != sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32 {
            return wrong("the host, or to no known allocation".into());
        }
        ask((&raw mut ordinal).cast(), CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            .map_err(cuda("asking for the owner of an address"))?;
        if ordinal as usize != self.ordinal() {
            return wrong(format!("GPU {ordinal}"));
        }
        // Memory of pools and of mapped ranges belongs to no context.
        let of_context = ask((&raw mut context).cast(), CU_POINTER_ATTRIBUTE_CONTEXT).is_ok() && !context.is_null();
        if of_context && context != self.context.cu_ctx().cast() {
            return wrong(format!("another context of GPU {ordinal}"));
        }
        Ok(())
    }

    /// Whether a range of host memory is page-locked, as one allocation, so that the GPU may copy from and to it directly.
    pub(super) fn is_pinned(&self, address: u64, bytes: u64) -> bool {
        if bytes == 0 {
            return false;
        }
        let Ok(_current) = self.bind() else { return false };
        let (mut kind, mut start, mut size) = (0u32, 0u64, 0usize);
        let ask = |result: *mut c_void, attribute| {
            // SAFETY: `result` is one of the three above, which have the sizes of the attributes asked for below.
            unsafe { sys::cuPointerGetAttribute(result, attribute, address) }.result().is_ok()
        };
        use sys::CUpointer_attribute::*;
        // The driver recognizes host memory only if it is page-locked.
        ask((&raw mut kind).cast(), CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
            && kind == sys::CUmemorytype::CU_MEMORYTYPE_HOST as u32
            && ask((&raw mut start).cast(), CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
            && ask((&raw mut size).cast(), CU_POINTER_ATTRIBUTE_RANGE_SIZE)
            && address - start + bytes <= size as u64
    }

    /// Too little memory of this GPU is free.
    pub(crate) fn out_of_memory(&self, asked: u64, free: u64) -> Error {
        Error::OutOfMemory { device: self.name().into(), asked, free: Some(free), reason: String::new() }
    }

    /// Bytes of memory that are free now.
    pub(crate) fn free_memory(&self) -> Result<u64> {
        let _current = self.bind()?;
        Ok(result::mem_get_info().map_err(cuda("asking for free memory"))?.0 as u64)
    }

    pub(crate) fn new_stream(&self) -> Result<Arc<CudaStream>> {
        pass("making a stream")?;
        undisturbed(&self.context, || self.context.new_stream()).map_err(cuda("making a stream"))
    }

    /// Makes a stream whose kernels have priority over those of other streams, as far as the GPU supports it.
    #[cfg(feature = "cluster")]
    pub(crate) fn new_urgent_stream(&self) -> Result<Arc<CudaStream>> {
        pass("making a stream")?;
        let make = || {
            self.context.bind_to_thread()?;
            let (_, most_urgent) = result::stream::get_priority_range()?;
            self.context.new_stream_with_priority(most_urgent)
        };
        undisturbed(&self.context, make).map_err(cuda("making a stream"))
    }

    /// Enqueues a kernel.
    ///
    /// # Safety
    ///
    /// `arguments` are the addresses of the kernel's arguments, with its types and in its order. The memory they point to lives
    /// until the stream has passed the kernel.
    pub(crate) unsafe fn launch(
        &self,
        function: &CudaFunction,
        (blocks, threads, shared_bytes): (u32, u32, u32),
        stream: sys::CUstream,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        pass("launching a kernel")?;
        let _current = self.bind()?;
        let (grid, block) = ((blocks, 1, 1), (threads, 1, 1));
        // SAFETY: the caller guarantees the contract.
        unsafe { result::launch_kernel(function.cu_function(), grid, block, shared_bytes, stream, arguments) }
            .map_err(cuda("launching a kernel"))
    }

    /// Blocks of 256 threads for `items` independent items: enough to fill the GPU, and no more than the items need.
    pub(crate) fn blocks_for(&self, items: u64) -> u32 {
        items.div_ceil(256).clamp(1, u64::from(self.multiprocessors) * 8) as u32
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU {}: {}", self.ordinal(), self.name())
    }
}
