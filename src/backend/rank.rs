//! Interface between a cluster and the machines of its ranks: memory, copies in the order of streams, and kernels.

use super::machine::{Launch, Store};
use crate::Result;
use crate::layout::SearchMode;
use crate::layout::rank::{Kernel, PartitionView, StampView, Stream};
use crate::layout::view::BatchView;
use bytemuck::{AnyBitPattern, NoUninit};
use std::any::Any;

/// Memory that a region of a transport is in.
#[derive(Clone)]
#[non_exhaustive]
pub enum MemorySpace {
    /// Host memory.
    Host,
    /// Memory of a GPU, used in the order of this stream.
    #[cfg(feature = "cuda")]
    Gpu(GpuStream),
}

/// A stream of a GPU that a region is used on.
#[cfg(feature = "cuda")]
#[derive(Clone)]
pub struct GpuStream(pub(crate) super::cuda::SharedStream);

#[cfg(feature = "cuda")]
impl GpuStream {
    /// The driver's handle, a `CUstream`.
    pub fn handle(&self) -> *mut std::ffi::c_void {
        self.0.cu_stream().cast()
    }
}

/// Memory of a rank's machine. Kernels and transports know it by its address.
pub(crate) struct RankMemory {
    pub address: u64,
    pub bytes: u64,
    /// Frees the memory when dropped. The machine that allocated it finds its own type here.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the host uses memory by its address"))]
    pub owner: Box<dyn Any + Send + Sync>,
}

impl RankMemory {
    /// # Panics
    ///
    /// Unless `len` bytes from `offset` on are within the memory.
    pub(crate) fn check(&self, offset: u64, len: u64) {
        let bytes = self.bytes;
        let is_within = offset.checked_add(len).is_some_and(|end| end <= bytes);
        assert!(is_within, "{offset} + {len} bytes are within the memory's {bytes}");
    }
}

/// Operations that a rank of a cluster needs of its machine: memory, copies in the order of streams, and kernels. On a CPU every
/// operation is complete when the call returns.
pub(crate) trait Rank: Any + Send + Sync {
    /// Whether kernels read and write host memory.
    fn is_host(&self) -> bool;

    /// Kind of memory for a transport, used in the order of a stream.
    fn place(&self, stream: Stream) -> MemorySpace;

    /// Allocates memory. On the host it is zeroed, and pages are touched only when used.
    fn allocate(&self, bytes: u64) -> Result<RankMemory>;

    /// Copies `data`, which is pageable, to byte `offset`. Does not wait. The caller may change `data` when the call returns.
    fn write_bytes(&self, stream: Stream, memory: &mut RankMemory, offset: u64, data: &[u8]) -> Result<()>;

    /// Copies `data`, which may be pinned, to byte `offset`, and waits until the caller may change it.
    fn write_bytes_and_wait(&self, stream: Stream, memory: &mut RankMemory, offset: u64, data: &[u8]) -> Result<()>;

    /// Copies from byte `offset` to `data`, after the earlier work of the stream, and waits.
    fn read_bytes(&self, stream: Stream, memory: &RankMemory, offset: u64, data: &mut [u8]) -> Result<()>;

    /// Sets the first bytes to a value.
    fn fill(&self, stream: Stream, memory: &mut RankMemory, bytes: u64, byte: u8) -> Result<()>;

    /// Copies 8 bytes within memory.
    fn copy_number(&self, stream: Stream, memory: &mut RankMemory, from: u64, to: u64) -> Result<()>;

    /// Makes later work of `stream` wait for earlier work of `after`.
    fn order(&self, stream: Stream, after: Stream) -> Result<()>;

    /// Waits for all streams.
    fn synchronize(&self) -> Result<()>;

    /// Runs one of the kernels that take a partition.
    ///
    /// # Safety
    ///
    /// The memory that the view points to has the size given there, nothing else uses it meanwhile, and it stays until the stream
    /// has passed the kernel.
    unsafe fn partition(&self, stream: Stream, kernel: Kernel, view: &PartitionView) -> Result<()>;

    /// Runs one of the kernels that take stamps.
    ///
    /// # Safety
    ///
    /// As [`partition`](Self::partition).
    unsafe fn stamps(&self, stream: Stream, kernel: Kernel, view: &StampView) -> Result<()>;

    /// Enqueues the search of a batch in the memory of this machine. Not on the host, whose searches take host slices.
    ///
    /// # Safety
    ///
    /// The batch's buffers have room for its count, stay until the stream has passed the kernel, and are not written by others
    /// meanwhile. Its vectors are aligned as the kernels require, and the number at `launch.refused` is in the memory of this
    /// machine. The table outlives the kernel.
    unsafe fn enqueue_search(
        &self,
        stream: Stream,
        store: &dyn Store,
        search: SearchMode,
        batch: &BatchView,
        launch: Launch,
    ) -> Result<()>;
}

impl dyn Rank {
    /// As [`write_bytes`](Rank::write_bytes).
    pub(crate) fn write<T: NoUninit>(&self, stream: Stream, memory: &mut RankMemory, offset: u64, data: &[T]) -> Result<()> {
        self.write_bytes(stream, memory, offset, bytemuck::cast_slice(data))
    }

    /// As [`write_bytes_and_wait`](Rank::write_bytes_and_wait).
    pub(crate) fn write_and_wait<T: NoUninit>(
        &self,
        stream: Stream,
        memory: &mut RankMemory,
        offset: u64,
        data: &[T],
    ) -> Result<()> {
        self.write_bytes_and_wait(stream, memory, offset, bytemuck::cast_slice(data))
    }

    /// As [`read_bytes`](Rank::read_bytes).
    pub(crate) fn read<T: AnyBitPattern + NoUninit>(
        &self,
        stream: Stream,
        memory: &RankMemory,
        offset: u64,
        data: &mut [T],
    ) -> Result<()> {
        self.read_bytes(stream, memory, offset, bytemuck::cast_slice_mut(data))
    }
}
