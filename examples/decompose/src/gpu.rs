//! Runs the kernels on a GPU (kernels.cu), on their own stream.

use super::graph::Graph;
use super::machine::{Kernel, Machine, Work};
use anyhow::{Context, Result, ensure};
use std::sync::Arc;
use warpset::gpu::cudarc_0_19::cudarc::driver::sys::CUdevice_attribute;
use warpset::gpu::cudarc_0_19::cudarc::driver::{
    CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg, ValidAsZeroBits, result,
};
use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};
use warpset::{BucketTable, Device};
use warpset_support::memory::MemoryBudget;

/// Threads per block: `most_threads` in on_gpu.cuh.
const THREADS: u32 = 256;

/// Maximum number of blocks per multiprocessor. More blocks do not hide more memory latency, and take longer to meet.
const MOST_BLOCKS: u32 = 4;

// SAFETY: `Work` is `repr(C)` and has only integers and no padding, as in work.cuh. Addresses are 64-bit words on both sides.
unsafe impl DeviceRepr for Work {}
// SAFETY: `Work` has only integers, for which all zeros are valid.
unsafe impl ValidAsZeroBits for Work {}

/// The source text of the kernels.
pub fn source() -> String {
    [
        include_str!("on_gpu.cuh"),
        include_str!("work.cuh"),
        include_str!("components.cuh"),
        include_str!("end_components.cuh"),
        include_str!("paths.cuh"),
        include_str!("kernels.cuh"),
        include_str!("kernels.cu"),
    ]
    .concat()
}

/// A GPU as a machine.
pub struct Gpu {
    stream: Arc<CudaStream>,
    /// The compiled function of each kernel.
    functions: Vec<CudaFunction>,
    launch: LaunchConfig,
    device: Device,
    /// Limit of allocated bytes, and the number of bytes that were free before the first allocation.
    most_bytes: Option<u64>,
    free_at_first: u64,
}

impl Gpu {
    /// Compiles the kernels for a GPU. Allocates at most `bytes` bytes of its memory.
    ///
    /// # Errors
    ///
    /// The device is not a GPU, NVRTC is not found or rejects the source, or the driver fails.
    pub fn new(device: &Device, bytes: Option<u64>) -> Result<Self> {
        let context = device.cuda_context().context("the device is not a GPU")?;
        Self::on(device, context.new_stream()?, bytes)
    }

    /// Creates a machine whose work runs on the caller's stream, in order with the caller's other work there.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn on(device: &Device, stream: Arc<CudaStream>, bytes: Option<u64>) -> Result<Self> {
        let context = stream.context().clone();
        context.bind_to_thread()?;
        // GPU code is always compiled together with the kernels of a table, so create the smallest table.
        let table = BucketTable::new(device, 1, 1)?;
        let module = table.compile("decompose.cu", &source())?;
        let load = |kernel: &Kernel| module.load_function(&format!("decompose_{}", kernel.name()));
        let functions = Kernel::ALL.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let mut resident = MOST_BLOCKS;
        for (kernel, function) in Kernel::ALL.iter().zip(&functions).filter(|(kernel, _)| kernel.meets()) {
            let blocks = function.occupancy_max_active_blocks_per_multiprocessor(THREADS, 0, None)?;
            ensure!(
                blocks > 0,
                "no block of {THREADS} threads of the kernel {} fits a multiprocessor of this GPU",
                kernel.name()
            );
            resident = resident.min(blocks);
        }
        let multiprocessors = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32;
        let launch =
            LaunchConfig { grid_dim: (resident * multiprocessors, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 };
        let free_at_first = device.free_memory()?;
        Ok(Self { stream, functions, launch, device: device.clone(), most_bytes: bytes, free_at_first })
    }

    /// Device address of byte `at` of a buffer.
    fn place(&self, buffer: &CudaSlice<u8>, at: u64) -> u64 {
        buffer.device_ptr(&self.stream).0 + at
    }

    fn bind(&self) -> Result<()> {
        Ok(self.stream.context().bind_to_thread()?)
    }
}

impl<'g> Machine<'g> for Gpu {
    type Buffer = CudaSlice<u8>;

    fn allocate(&self, bytes: u64) -> Result<CudaSlice<u8>> {
        // SAFETY: the initial content does not matter, because the buffer is filled or written by kernels before it is read.
        Ok(unsafe { self.stream.alloc(bytes.max(8) as usize) }?)
    }

    fn share(&self, data: &'g [u8]) -> Result<CudaSlice<u8>> {
        if data.is_empty() { self.allocate(0) } else { Ok(self.stream.clone_htod(data)?) }
    }

    fn bytes_to_share(&self, graph: &Graph) -> u64 {
        graph.bytes()
    }

    fn address(&self, buffer: &CudaSlice<u8>) -> u64 {
        self.place(buffer, 0)
    }

    fn fill(&self, buffer: &CudaSlice<u8>, bytes: u64, value: u8) -> Result<()> {
        self.bind()?;
        // SAFETY: the buffer has at least `bytes` bytes. The stream orders this call with kernels.
        Ok(unsafe { result::memset_d8_async(self.place(buffer, 0), value, bytes as usize, self.stream.cu_stream()) }?)
    }

    fn write(&self, buffer: &CudaSlice<u8>, at: u64, data: &[u8]) -> Result<()> {
        self.bind()?;
        // SAFETY: the buffer has space for `data` at `at`. `data` stays valid until the stream has been synchronized below.
        unsafe { result::memcpy_htod_async(self.place(buffer, at), data, self.stream.cu_stream()) }?;
        Ok(self.stream.synchronize()?)
    }

    fn read(&self, buffer: &CudaSlice<u8>, data: &mut [u8]) -> Result<()> {
        self.bind()?;
        // SAFETY: the buffer has at least as many bytes as `data`. No other code uses `data` until the stream has been
        // synchronized below.
        unsafe { result::memcpy_dtoh_async(data, self.place(buffer, 0), self.stream.cu_stream()) }?;
        Ok(self.stream.synchronize()?)
    }

    unsafe fn launch(&self, kernel: Kernel, work: &Work) -> Result<()> {
        let mut launch = self.stream.launch_builder(&self.functions[kernel as usize]);
        launch.arg(work);
        // SAFETY: every kernel has one argument, and the caller guarantees that it is valid. All buffers belong to this stream,
        // which runs one operation after another. If the blocks of a kernel meet, all blocks of its grid are resident: it has at
        // most as many blocks per multiprocessor as the driver reports for each of these kernels.
        unsafe { if kernel.meets() { launch.launch_cooperative(self.launch) } else { launch.launch(self.launch) } }?;
        Ok(())
    }

    fn blocks(&self) -> u64 {
        self.launch.grid_dim.0.into()
    }

    fn narrow(&self) -> u64 {
        THREADS.into()
    }

    fn piece(&self) -> u64 {
        2 * u64::from(THREADS)
    }

    fn memory_budget(&self) -> Result<MemoryBudget> {
        let free = self.device.free_memory()?;
        let taken = self.free_at_first.saturating_sub(free);
        Ok(MemoryBudget::free(free).within(self.most_bytes.map(|most| most.saturating_sub(taken))))
    }
}
