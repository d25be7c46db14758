//! GPU side of a rank of a cluster: its kernels, and copies between ranks of one process.

use super::device_memory::PinnedMemory;
use super::machine::CudaMachine;
use super::nvrtc::Job;
use super::store::CudaStore;
use super::{Current, cuda, pass, undisturbed};
use crate::Result;
use crate::backend::{GpuStream, Launch, Machine, Memory, MemorySpace, Rank, Store};
use crate::layout::SearchMode;
use crate::layout::rank::{ABI, Kernel, ROUNDS, Stream};
use crate::layout::view::BatchView;
use cudarc::driver::{CudaEvent, CudaFunction, CudaStream, result, sys};
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// Kernels and streams of a rank. If kernels of a round and of another stream are ready at the same time, those of the round run
/// first, because they are short, and other ranks wait for their results.
pub(crate) struct CudaRank {
    machine: CudaMachine,
    streams: [Arc<CudaStream>; ROUNDS + 1],
    /// For each stream, the event after the work that another stream must wait for.
    passed: [CudaEvent; ROUNDS + 1],
    kernels: [CudaFunction; KERNELS.len()],
    /// Pinned memory that receives a few numbers from the GPU. The driver takes longer to copy to pageable memory.
    few: Mutex<PinnedMemory>,
}

/// Bytes of `few`.
const FEW: usize = 4096;

/// The kernels, in the order of `Kernel`.
const KERNELS: [&str; 6] = [
    "warpset_cluster_claim",
    "warpset_cluster_scatter",
    "warpset_cluster_gather_put",
    "warpset_cluster_gather_found",
    "warpset_cluster_write_stamps",
    "warpset_cluster_check_stamps",
];

/// Number of a stream.
fn number(stream: Stream) -> usize {
    match stream {
        Stream::Round(round) => round,
        Stream::Puts => ROUNDS,
    }
}

impl CudaRank {
    pub(super) fn new(machine: &CudaMachine) -> Result<Self> {
        let gpu = machine.gpu();
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
        for name in KERNELS {
            kernels.push(module.load_function(name).map_err(cuda("finding a kernel"))?);
        }
        let kernels = kernels.try_into().unwrap_or_else(|_| unreachable!("one for each"));
        let mut streams = Vec::new();
        for number in 0..=ROUNDS {
            streams.push(if number < ROUNDS { gpu.new_urgent_stream()? } else { gpu.new_stream()? });
        }
        let streams = streams.try_into().unwrap_or_else(|_| unreachable!("one for each"));
        let mut passed = Vec::new();
        for _ in 0..=ROUNDS {
            passed.push(undisturbed(&gpu.context, || gpu.context.new_event(None)).map_err(cuda("making an event"))?);
        }
        let passed = passed.try_into().unwrap_or_else(|_| unreachable!("one for each"));
        let few = Mutex::new(PinnedMemory::new(gpu, FEW)?);
        Ok(Self { machine: machine.clone(), streams, passed, kernels, few })
    }

    fn stream(&self, stream: Stream) -> &Arc<CudaStream> {
        &self.streams[number(stream)]
    }

    fn cu_stream(&self, stream: Stream) -> sys::CUstream {
        self.stream(stream).cu_stream()
    }
}

impl Rank for CudaRank {
    fn machine(&self) -> &dyn Machine {
        &self.machine
    }

    fn place(&self, stream: Stream) -> MemorySpace {
        MemorySpace::Gpu(GpuStream(self.stream(stream).clone()))
    }

    fn write_bytes(&self, stream: Stream, memory: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        // SAFETY: memory of this GPU. Pageable data has been copied when the call returns. For pinned data, `write_and_wait`
        // waits.
        unsafe { self.machine.write_async(**memory, offset, data, self.cu_stream(stream)) }
    }

    fn read_bytes(&self, stream: Stream, memory: &Memory, offset: u64, data: &mut [u8]) -> Result<()> {
        if data.len() > FEW {
            // SAFETY: memory of this GPU; waited for in the next statement.
            unsafe { self.machine.read_async(**memory, offset, data, self.cu_stream(stream))? };
            return self.wait(stream, "copying from the GPU");
        }
        let mut few = self.few.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let part = few.part::<u8>(0, data.len());
        // SAFETY: memory of this GPU; waited for in the next statement, before another thread can have the lock. If that wait
        // fails, so does every later operation on this GPU.
        unsafe { self.machine.read_async(**memory, offset, part, self.cu_stream(stream))? };
        self.wait(stream, "copying from the GPU")?;
        data.copy_from_slice(part);
        Ok(())
    }

    fn fill(&self, stream: Stream, memory: &mut Memory, bytes: u64, byte: u8) -> Result<()> {
        // SAFETY: memory of this GPU, whose owner waits for the stream when it is dropped.
        unsafe { self.machine.fill_async(**memory, 0..bytes, byte, self.cu_stream(stream)) }
    }

    fn copy_number(&self, stream: Stream, memory: &mut Memory, from: u64, to: u64) -> Result<()> {
        let (from, to) = (memory.at(from, 8), memory.at(to, 8));
        pass("copying a number")?;
        let _current = self.machine.gpu().bind()?;
        // SAFETY: within the allocation (checked), whose `drop` waits for the stream.
        unsafe { result::memcpy_dtod_async(to, from, 8, self.cu_stream(stream)) }.map_err(cuda("copying a number"))
    }

    fn order(&self, stream: Stream, after: Stream) -> Result<()> {
        pass("ordering rounds")?;
        let _current = self.machine.gpu().bind()?;
        let event = self.passed[number(after)].cu_event();
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: event and streams live, and are of this context. The wait is for the record just before: later records of the
        // event do not change it.
        unsafe {
            result::event::record(event, self.cu_stream(after)).map_err(cuda("ordering rounds"))?;
            result::stream::wait_event(self.cu_stream(stream), event, flags).map_err(cuda("ordering rounds"))
        }
    }

    fn wait(&self, stream: Stream, what: &'static str) -> Result<()> {
        self.machine.gpu().wait(self.stream(stream), what)
    }

    /// Waits even if a stream has met an error.
    fn synchronize(&self) -> Result<()> {
        let waited = self.streams.each_ref().map(|stream| self.machine.gpu().wait(stream, "waiting for a round"));
        waited.into_iter().collect()
    }

    /// Each thread handles several items.
    unsafe fn launch(&self, stream: Stream, kernel: Kernel, view: *const c_void, items: u64) -> Result<()> {
        let gpu = self.machine.gpu();
        let launch = (gpu.blocks_for(items.div_ceil(8)), 256, 0);
        // SAFETY: this is the kernel's one argument, which a launch copies. The caller guarantees the rest.
        unsafe { gpu.launch(&self.kernels[kernel as usize], launch, self.cu_stream(stream), &mut [view.cast_mut()]) }
    }

    unsafe fn enqueue_search(
        &self,
        stream: Stream,
        store: &dyn Store,
        search: SearchMode,
        batch: &BatchView,
        launch: Launch,
    ) -> Result<()> {
        let store = CudaStore::of(store).expect("a table stays on its machine");
        // SAFETY: the caller guarantees the contract.
        unsafe { store.enqueue(search, batch, self.cu_stream(stream), launch) }
    }
}

/// Waits for the work of a stream.
pub(crate) fn wait_for(stream: &CudaStream) -> Result<()> {
    let _current = bind(stream)?;
    // SAFETY: the context is current, and the stream borrowed.
    unsafe { result::stream::synchronize(stream.cu_stream()) }.map_err(cuda("waiting for a message"))
}

/// Gives two GPUs of this process access to each other's memory, once, if they support it. Then copies between them do not pass
/// through the host. Without access, copies pass through the host, with the same results.
pub(crate) fn enable_peer_access(one: &CudaStream, other: &CudaStream) {
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
        // SAFETY: the answer has memory, and both devices exist.
        let asked = unsafe { sys::cuDeviceCanAccessPeer(&mut can, devices.0, devices.1) };
        if asked == sys::CUresult::CUDA_SUCCESS
            && can != 0
            && let Ok(_current) = bind(stream)
        {
            // SAFETY: both contexts live, and this one is current. If access was enabled before, the call returns an error, which
            // does no harm. After any other error, copies pass through the host.
            let _ = unsafe { sys::cuCtxEnablePeerAccess(peer.cu_ctx(), 0) };
        }
    }
}

/// Copies between any two addresses that the driver can reach, and waits for the copy. `stream` is a stream of the receiver, or
/// of the sender if the receiver is the host.
///
/// # Safety
///
/// Both ranges are `bytes` long. Nothing else writes to either meanwhile, or reads `to`.
pub(crate) unsafe fn copy_anywhere(from: u64, to: u64, bytes: usize, stream: &CudaStream) -> Result<()> {
    let _current = bind(stream)?;
    // SAFETY: the caller guarantees the contract. With unified addresses the driver knows the owner of either address, even
    // another GPU.
    unsafe { sys::cuMemcpyAsync(to, from, bytes, stream.cu_stream()) }.result().map_err(cuda("copying between ranks"))?;
    // SAFETY: as in `wait_for`.
    unsafe { result::stream::synchronize(stream.cu_stream()) }.map_err(cuda("copying between ranks"))
}

/// Enqueues a copy between the memories of two GPUs, or within one GPU, on the receiver's stream, and then records `copied`.
/// After an error no copy is under way.
///
/// # Safety
///
/// As for `copy_anywhere`, until the stream has passed `copied`.
pub(crate) unsafe fn enqueue_copy(from: u64, to: u64, bytes: usize, stream: &CudaStream, copied: &CudaEvent) -> Result<()> {
    pass("copying between ranks")?;
    let _current = bind(stream)?;
    // SAFETY: the caller guarantees the contract, as for `copy_anywhere`.
    unsafe { sys::cuMemcpyAsync(to, from, bytes, stream.cu_stream()) }.result().map_err(cuda("copying between ranks"))?;
    let recorded = pass("marking the end of a copy").and_then(|()| {
        // SAFETY: event and stream live, and are of one context.
        unsafe { result::event::record(copied.cu_event(), stream.cu_stream()) }.map_err(cuda("marking the end of a copy"))
    });
    // Without the event the end of the copy would be unknown, so wait now. Keep the first error: it says more than an error of
    // waiting.
    recorded.inspect_err(|_| drop(wait_for(stream)))
}

pub(crate) fn new_event(stream: &CudaStream) -> Result<CudaEvent> {
    pass("making an event")?;
    undisturbed(stream.context(), || stream.context().new_event(None)).map_err(cuda("making an event"))
}

/// Makes later work of a stream wait for an event, which may belong to another GPU of this process.
pub(crate) fn make_stream_wait(stream: &CudaStream, event: &CudaEvent) -> Result<()> {
    pass("ordering ranks")?;
    let _current = bind(stream)?;
    let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
    // SAFETY: both live. The wait is for the last record of the event.
    unsafe { result::stream::wait_event(stream.cu_stream(), event.cu_event(), flags) }.map_err(cuda("ordering ranks"))
}

/// Waits until the work before an event has ended.
pub(crate) fn wait_for_event(event: &CudaEvent) -> Result<()> {
    undisturbed(event.context(), || event.synchronize()).map_err(cuda("waiting for a copy"))?;
    // An injected error is returned only after the wait, because the caller may free memory after it.
    pass("waiting for a copy")
}

/// Makes the context of a stream current for as long as the result lives.
fn bind(stream: &CudaStream) -> Result<Current> {
    Current::of(stream.context()).map_err(cuda("making a context current"))
}
