//! Device memory that the search kernels of one table use as workspace, one launch at a time.

use super::device_memory::DeviceMemory;
use super::{Gpu, cuda, undisturbed};
use crate::Result;
use cudarc::driver::{CudaEvent, result, sys};
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) struct Workspace {
    memory: DeviceMemory,
    /// Event after the last launch that uses `memory`.
    last_use: Mutex<CudaEvent>,
}

impl Workspace {
    pub(super) fn new(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        let memory = DeviceMemory::new(gpu, bytes)?;
        let event = undisturbed(&gpu.context, || gpu.context.new_event(None)).map_err(cuda("making an event"))?;
        Ok(Self { memory, last_use: Mutex::new(event) })
    }

    /// Takes the workspace for a search that is about to be enqueued on `stream`. The search comes after all earlier searches
    /// that use the workspace, on any stream. The context is current.
    pub(super) fn borrow(&self, stream: sys::CUstream) -> Result<Borrowed<'_>> {
        // Locked until `end` has recorded this use. Otherwise a search of another thread would wait only for the use before.
        let last_use = self.last_use.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the event lives; the stream is that of the caller of `enqueue`. An event that was never recorded counts as
        // passed.
        unsafe { result::stream::wait_event(stream, last_use.cu_event(), flags) }.map_err(cuda("waiting for a workspace"))?;
        Ok(Borrowed { address: self.memory.address(), last_use, stream })
    }
}

/// The workspace while a search is enqueued.
#[must_use = "the next search must wait for this one: `end` says so"]
pub(super) struct Borrowed<'a> {
    pub address: u64,
    last_use: MutexGuard<'a, CudaEvent>,
    stream: sys::CUstream,
}

impl Borrowed<'_> {
    /// Makes the next search wait for this one. Called even after an error of a launch: work that was enqueued before the error
    /// uses the workspace.
    pub(super) fn end(self) -> Result<()> {
        // SAFETY: as in `borrow`.
        unsafe { result::event::record(self.last_use.cu_event(), self.stream) }.map_err(cuda("recording the use of a workspace"))
    }
}
