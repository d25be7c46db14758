//! What a rank of a cluster needs of its GPU: its kernels, and copies between ranks of one process.

use super::memory::{DeviceMemory, PinnedMemory};
use super::nvrtc::Job;
use super::store::argument;
use super::{Current, Gpu, cuda, pass, undisturbed};
use crate::Result;
use crate::cluster::{ABI, Kernel, Line, ROUNDS};
use bytemuck::{AnyBitPattern, NoUninit};
use cudarc::driver::{CudaEvent, CudaFunction, CudaStream, result, sys};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// A rank's kernels, and the streams that they are enqueued on.
pub(crate) struct ClusterGpu {
    pub gpu: Arc<Gpu>,
    /// By line. Those of rounds go first where both want the GPU: their kernels are short, and others wait for what they do.
    streams: [Arc<CudaStream>; ROUNDS + 1],
    /// By line: passed when what another line is to come after is done.
    passed: [CudaEvent; ROUNDS + 1],
    kernels: [CudaFunction; Kernel::ALL.len()],
    /// Through which a few numbers come from the GPU: the driver takes longer to copy to other memory.
    few: Mutex<PinnedMemory>,
}

/// Bytes of `few`.
const FEW: usize = 4096;

impl ClusterGpu {
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let _current = gpu.bind()?;
        let module = gpu.load(&Job::cluster(gpu.compute_capability()))?;
        let mut sizes = [0u8; size_of_val(&ABI)];
        let symbol = module.get_global("warpset_cluster_abi", &gpu.stream).map_err(cuda("finding the sizes of views"))?;
        // The target is not pinned, so the bytes are there when the call returns.
        let read = || gpu.stream.memcpy_dtoh(&symbol, &mut sizes);
        undisturbed(&gpu.context, read).map_err(cuda("reading the sizes of views"))?;
        gpu.wait(&gpu.stream, "reading the sizes of views")?;
        assert_eq!(bytemuck::pod_read_unaligned::<[u32; 3]>(&sizes), ABI, "views are the same on both sides");
        let mut kernels = Vec::new();
        for kernel in Kernel::ALL {
            kernels.push(module.load_function(kernel.name()).map_err(cuda("finding a kernel"))?);
        }
        let kernels = kernels.try_into().unwrap_or_else(|_| unreachable!("as many as there are"));
        let mut streams = Vec::new();
        for line in 0..=ROUNDS {
            streams.push(if line < ROUNDS { gpu.new_urgent_stream()? } else { gpu.new_stream()? });
        }
        let streams = streams.try_into().unwrap_or_else(|_| unreachable!("as many as there are"));
        let mut passed = Vec::new();
        for _ in 0..=ROUNDS {
            passed.push(undisturbed(&gpu.context, || gpu.context.new_event(None)).map_err(cuda("making an event"))?);
        }
        let passed = passed.try_into().unwrap_or_else(|_| unreachable!("as many as there are"));
        let few = Mutex::new(PinnedMemory::new(gpu, FEW)?);
        Ok(Self { gpu: gpu.clone(), streams, passed, kernels, few })
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<DeviceMemory> {
        DeviceMemory::new(&self.gpu, bytes)
    }

    pub(crate) fn stream(&self, line: Line) -> &Arc<CudaStream> {
        &self.streams[line.number()]
    }

    /// Enqueues a kernel of one argument for so many items, of which a thread takes several.
    ///
    /// # Safety
    ///
    /// The argument is the kernel's view. The memory that it points to is as large as it says, and stays until the line has
    /// passed the kernel.
    pub(crate) unsafe fn run<T>(&self, line: Line, kernel: Kernel, view: &T, items: u64) -> Result<()> {
        let launch = (self.gpu.blocks_for(items.div_ceil(8)), 256, 0);
        // SAFETY: the kernel's one argument; the rest is the caller's.
        unsafe { self.gpu.launch(&self.kernels[kernel as usize], launch, self.stream(line).cu_stream(), &mut [argument(view)]) }
    }

    pub(crate) fn fill(&self, line: Line, memory: &DeviceMemory, bytes: u64, byte: u8) -> Result<()> {
        assert!(bytes <= memory.bytes() as u64, "a fill stays within its memory");
        pass("filling memory")?;
        let _current = self.gpu.bind()?;
        // SAFETY: within the allocation (asserted), whose `drop` waits for the stream.
        unsafe { result::memset_d8_async(memory.address(), byte, bytes as usize, self.stream(line).cu_stream()) }
            .map_err(cuda("filling memory"))
    }

    /// Copies 8 bytes within memory, from one byte on to another.
    pub(crate) fn copy_number(&self, line: Line, memory: &DeviceMemory, from: u64, to: u64) -> Result<()> {
        assert!(from.max(to) + 8 <= memory.bytes() as u64, "a copy stays within its memory");
        pass("copying a number")?;
        let _current = self.gpu.bind()?;
        let (to, from) = (memory.address() + to, memory.address() + from);
        // SAFETY: within the allocation (asserted), whose `drop` waits for the stream.
        unsafe { result::memcpy_dtod_async(to, from, 8, self.stream(line).cu_stream()) }.map_err(cuda("copying a number"))
    }

    /// Lets what is enqueued on a line from now on come after all that was enqueued on another.
    pub(crate) fn order(&self, line: Line, after: Line) -> Result<()> {
        pass("ordering rounds")?;
        let _current = self.gpu.bind()?;
        let event = self.passed[after.number()].cu_event();
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: event and streams live, and are of this context. The wait is for what was recorded last, just before: later
        // records of the event do not change it.
        unsafe {
            result::event::record(event, self.stream(after).cu_stream()).map_err(cuda("ordering rounds"))?;
            result::stream::wait_event(self.stream(line).cu_stream(), event, flags).map_err(cuda("ordering rounds"))
        }
    }

    /// Copies from byte `offset` to `data`, after all that was enqueued on this line, and waits.
    pub(crate) fn read<T: AnyBitPattern + NoUninit>(
        &self,
        line: Line,
        memory: &DeviceMemory,
        offset: usize,
        data: &mut [T],
    ) -> Result<()> {
        let (bytes, stream) = (size_of_val(data), self.stream(line).cu_stream());
        if bytes > FEW {
            // SAFETY: waited for in the next statement.
            unsafe { memory.read_async(offset, data, stream)? };
            return self.wait(line, "copying from the GPU");
        }
        let mut few = self.few.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let part = few.part::<u8>(0, bytes);
        // SAFETY: waited for in the next statement, before anybody else has the lock. If that fails, so does all that follows
        // on this GPU.
        unsafe { memory.read_async(offset, part, stream)? };
        self.wait(line, "copying from the GPU")?;
        bytemuck::cast_slice_mut::<T, u8>(data).copy_from_slice(part);
        Ok(())
    }

    pub(crate) fn wait(&self, line: Line, what: &'static str) -> Result<()> {
        self.gpu.wait(self.stream(line), what)
    }

    /// Waits for all lines, also if one has met an error.
    pub(crate) fn settle(&self) -> Result<()> {
        let waited = self.streams.each_ref().map(|stream| self.gpu.wait(stream, "waiting for a round"));
        waited.into_iter().collect()
    }
}

/// Waits for the work of a stream.
pub(crate) fn wait_for(stream: &CudaStream) -> Result<()> {
    let _current = bind(stream)?;
    // SAFETY: the context is current, and the stream borrowed.
    unsafe { result::stream::synchronize(stream.cu_stream()) }.map_err(cuda("waiting for what is sent"))
}

/// Lets each of two GPUs of this process use the other's memory, once, where they can: then copies between them do not pass
/// through the host. Where they cannot, copies do, and are as good.
pub(crate) fn let_reach_each_other(one: &CudaStream, other: &CudaStream) {
    static KNOWN: Mutex<BTreeSet<[usize; 2]>> = Mutex::new(BTreeSet::new());
    let [a, b] = [one, other].map(CudaStream::context);
    let pair = [a.cu_ctx() as usize, b.cu_ctx() as usize];
    let pair = [pair[0].min(pair[1]), pair[0].max(pair[1])];
    let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if a.ordinal() == b.ordinal() || !known.insert(pair) {
        return;
    }
    for (own, peer, stream) in [(a, b, one), (b, a, other)] {
        let (mut can, devices) = (0, (own.cu_device(), peer.cu_device()));
        // SAFETY: the answer has memory; both devices are there.
        let asked = unsafe { sys::cuDeviceCanAccessPeer(&mut can, devices.0, devices.1) };
        if asked == sys::CUresult::CUDA_SUCCESS
            && can != 0
            && let Ok(_current) = bind(stream)
        {
            // SAFETY: both contexts live, and this one is current. That it is so already is an error as good as none; with any
            // other, copies are as they were.
            let _ = unsafe { sys::cuCtxEnablePeerAccess(peer.cu_ctx(), 0) };
        }
    }
}

/// Copies between any two places that the driver can reach, on a stream of the receiver's, or of the sender's if the receiver is
/// the host, and waits for it.
///
/// # Safety
///
/// Both are `bytes` long, nobody else writes to them meanwhile, or reads `to`.
pub(crate) unsafe fn copy_anywhere(from: u64, to: u64, bytes: usize, stream: &CudaStream) -> Result<()> {
    let _current = bind(stream)?;
    // SAFETY: the caller's; with unified addresses the driver knows whose memory either is, also that of another GPU.
    unsafe { sys::cuMemcpyAsync(to, from, bytes, stream.cu_stream()) }.result().map_err(cuda("copying between ranks"))?;
    // SAFETY: as in `wait_for`.
    unsafe { result::stream::synchronize(stream.cu_stream()) }.map_err(cuda("copying between ranks"))
}

/// Enqueues a copy between the memories of two GPUs, or within that of one, on the receiver's stream, which passes `copied`
/// behind it. After an error no copy is under way.
///
/// # Safety
///
/// As of `copy_anywhere`, until the stream has passed `copied`.
pub(crate) unsafe fn enqueue_copy(from: u64, to: u64, bytes: usize, stream: &CudaStream, copied: &CudaEvent) -> Result<()> {
    pass("copying between ranks")?;
    let _current = bind(stream)?;
    // SAFETY: the caller's, as in `copy_anywhere`.
    unsafe { sys::cuMemcpyAsync(to, from, bytes, stream.cu_stream()) }.result().map_err(cuda("copying between ranks"))?;
    let recorded = pass("marking the end of a copy").and_then(|()| {
        // SAFETY: event and stream live, and are of one context.
        unsafe { result::event::record(copied.cu_event(), stream.cu_stream()) }.map_err(cuda("marking the end of a copy"))
    });
    // Nobody could tell when it is over. The first error says more than one of waiting.
    recorded.inspect_err(|_| drop(wait_for(stream)))
}

pub(crate) fn new_event(stream: &CudaStream) -> Result<CudaEvent> {
    pass("making an event")?;
    undisturbed(stream.context(), || stream.context().new_event(None)).map_err(cuda("making an event"))
}

/// Lets what is enqueued on a stream from now on come after an event, which may be of another GPU of this process.
pub(crate) fn let_come_after(stream: &CudaStream, event: &CudaEvent) -> Result<()> {
    pass("ordering ranks")?;
    let _current = bind(stream)?;
    let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
    // SAFETY: both live. The wait is for what was recorded last.
    unsafe { result::stream::wait_event(stream.cu_stream(), event.cu_event(), flags) }.map_err(cuda("ordering ranks"))
}

/// Waits until an event was passed.
pub(crate) fn wait_for_event(event: &CudaEvent) -> Result<()> {
    undisturbed(event.context(), || event.synchronize()).map_err(cuda("waiting for a copy"))?;
    // Behind it: memory may be freed after an error on purpose, too.
    pass("waiting for a copy")
}

/// Makes the context of a stream current for as long as the result lives.
fn bind(stream: &CudaStream) -> Result<Current> {
    Current::of(stream.context()).map_err(cuda("making a context current"))
}
