//! Interface between a cluster and the machines of its ranks: copies and kernels in the order of streams.

use super::machine::{Launch, Machine, Store};
use super::memory::{Memory, Region};
use crate::Result;
use crate::layout::SearchMode;
use crate::layout::rank::{Kernel, PartitionView, StampView, Stream};
use crate::layout::view::BatchView;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ffi::c_void;

/// Kind of memory in which a region of a transport lies.
#[derive(Clone)]
#[non_exhaustive]
pub enum MemorySpace {
    /// Host memory.
    Host,
    /// Memory of a GPU, used in the order of this stream.
    #[cfg(feature = "cuda")]
    Gpu(GpuStream),
}

/// A stream of a GPU, in whose order a region is used.
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

/// Operations that a rank of a cluster needs of its machine, in the order of streams. The defaults are for a machine on which
/// every operation is complete when the call returns, so that streams have nothing to order.
pub(crate) trait Rank: Send + Sync + 'static {
    /// The machine. The rank's memory is memory of this machine.
    fn machine(&self) -> &dyn Machine;

    /// Kind of the rank's memory, for a transport that uses the memory in the order of a stream.
    fn place(&self, _: Stream) -> MemorySpace {
        MemorySpace::Host
    }

    /// Copies `data`, which is pageable, to byte `offset`. Does not wait. The caller may change `data` when the call returns.
    fn write_bytes(&self, _: Stream, memory: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        // SAFETY: memory of this machine, which nothing else uses: no kernel is under way between calls.
        unsafe { self.machine().write(**memory, offset, data) }
    }

    /// Copies from byte `offset` to `data`, after the earlier work of the stream, and waits.
    fn read_bytes(&self, _: Stream, memory: &Memory, offset: u64, data: &mut [u8]) -> Result<()> {
        // SAFETY: as in `write_bytes`.
        unsafe { self.machine().read(**memory, offset, data) }
    }

    /// Sets the first `bytes` bytes to `byte`.
    fn fill(&self, _: Stream, memory: &mut Memory, bytes: u64, byte: u8) -> Result<()> {
        // SAFETY: as in `write_bytes`.
        unsafe { self.machine().fill(**memory, 0..bytes, &[byte]) }
    }

    /// Copies the 8 bytes at offset `from` to offset `to` of the same memory.
    fn copy_number(&self, stream: Stream, memory: &mut Memory, from: u64, to: u64) -> Result<()> {
        let mut number = [0; 8];
        self.read_bytes(stream, memory, from, &mut number)?;
        self.write_bytes(stream, memory, to, &number)
    }

    /// Makes later work of `stream` wait for earlier work of `after`.
    fn order(&self, _stream: Stream, _after: Stream) -> Result<()> {
        Ok(())
    }

    /// Waits for the work of a stream. `what` names the work in errors.
    fn wait(&self, _: Stream, _what: &'static str) -> Result<()> {
        Ok(())
    }

    /// Waits for all streams.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    /// Runs a kernel, whose argument is at `view`, on `items` independent items.
    ///
    /// # Safety
    ///
    /// The view has the type that the kernel takes, and stays until the call returns. The memory that it points to has the size
    /// given there, and stays until the stream has passed the kernel. Nothing else uses that memory meanwhile.
    unsafe fn launch(&self, stream: Stream, kernel: Kernel, view: *const c_void, items: u64) -> Result<()>;

    /// Enqueues the search of a batch in the memory of this machine.
    ///
    /// # Safety
    ///
    /// The batch's buffers are large enough for its count, stay until the stream has passed the kernel, and are not written by
    /// others meanwhile. The batch's vectors are aligned as the kernels require, and the number at `launch.refused` is in the
    /// memory of this machine. The table outlives the kernel.
    unsafe fn enqueue_search(
        &self,
        _: Stream,
        store: &dyn Store,
        search: SearchMode,
        batch: &BatchView,
        launch: Launch,
    ) -> Result<()> {
        let mut refused = [0];
        if let Some(address) = launch.refused {
            // SAFETY: a number in the memory of this machine (the caller's duty).
            unsafe { self.machine().load(Region { address, bytes: 8 }, 0, &mut refused)? };
        }
        // SAFETY: the caller guarantees the contract.
        if refused == [0] { unsafe { store.search_in_place(search, batch) } } else { Ok(()) }
    }
}

impl dyn Rank {
    /// [`write_bytes`](Rank::write_bytes) for a slice of any plain type.
    pub(crate) fn write<T: NoUninit>(&self, stream: Stream, memory: &mut Memory, offset: u64, data: &[T]) -> Result<()> {
        self.write_bytes(stream, memory, offset, bytemuck::cast_slice(data))
    }

    /// Copies `data`, which may be pinned, to byte `offset`, and waits until the caller may change it.
    pub(crate) fn write_and_wait<T: NoUninit>(&self, stream: Stream, memory: &mut Memory, offset: u64, data: &[T]) -> Result<()> {
        self.write(stream, memory, offset, data)?;
        self.wait(stream, "copying to the GPU")
    }

    /// [`read_bytes`](Rank::read_bytes) for a slice of any plain type.
    pub(crate) fn read<T: AnyBitPattern + NoUninit>(
        &self,
        stream: Stream,
        memory: &Memory,
        offset: u64,
        data: &mut [T],
    ) -> Result<()> {
        self.read_bytes(stream, memory, offset, bytemuck::cast_slice_mut(data))
    }

    /// Runs a kernel that takes a partition.
    ///
    /// # Safety
    ///
    /// The kernel takes a [`PartitionView`]. Otherwise as [`launch`](Rank::launch).
    pub(crate) unsafe fn partition(&self, stream: Stream, kernel: Kernel, view: &PartitionView) -> Result<()> {
        // SAFETY: the caller guarantees the contract.
        unsafe { self.launch(stream, kernel, (&raw const *view).cast(), view.count) }
    }

    /// Runs a kernel that takes stamps.
    ///
    /// # Safety
    ///
    /// The kernel takes a [`StampView`]. Otherwise as [`launch`](Rank::launch).
    pub(crate) unsafe fn stamps(&self, stream: Stream, kernel: Kernel, view: &StampView) -> Result<()> {
        // SAFETY: as in `partition`.
        unsafe { self.launch(stream, kernel, (&raw const *view).cast(), view.count) }
    }
}
