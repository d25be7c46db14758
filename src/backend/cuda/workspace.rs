//! Device memory that the search kernels of one table work in, those of one launch at a time.

use super::memory::DeviceMemory;
use super::{Gpu, cuda, undisturbed};
use crate::Result;
use cudarc::driver::{CudaEvent, result, sys};
use std::sync::{Arc, Mutex};

pub(super) struct Workspace {
    memory: DeviceMemory,
    /// Passed when the last launch has ended.
    last_use: Mutex<CudaEvent>,
}

impl Workspace {
    pub(super) fn new(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        let memory = DeviceMemory::new(gpu, bytes)?;
        let event = undisturbed(&gpu.context, || gpu.context.new_event(None)).map_err(cuda("making an event"))?;
        Ok(Self { memory, last_use: Mutex::new(event) })
    }

    /// Calls `launch` with the address, to enqueue work on `stream`: after all that was enqueued with it before, on whichever
    /// streams.
    pub(super) fn borrow(&self, gpu: &Gpu, stream: sys::CUstream, launch: impl FnOnce(u64) -> Result<()>) -> Result<()> {
        let _current = gpu.bind()?;
        // Held until the event stands for this use too: another thread would wait for the one before.
        let event = self.last_use.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the event lives; the stream is the caller's of `enqueue`. An event that was never recorded is passed at once.
        unsafe { result::stream::wait_event(stream, event.cu_event(), flags) }.map_err(cuda("waiting for a workspace"))?;
        let launched = launch(self.memory.address());
        // Also if it has failed: what part of it was enqueued uses the workspace.
        // SAFETY: as above.
        unsafe { result::event::record(event.cu_event(), stream) }.map_err(cuda("recording the use of a workspace"))?;
        launched
    }
}
