//! The context that is current on a thread. It belongs to the caller: each use of the driver here makes the context of a GPU
//! current and leaves the caller's as it was.

use cudarc::driver::{CudaContext, DriverError, result, sys};
use std::ptr;

/// A stream of a GPU.
#[cfg(feature = "cluster")]
pub(crate) type SharedStream = std::sync::Arc<cudarc::driver::CudaStream>;

/// An event of a GPU.
#[cfg(feature = "cluster")]
pub(crate) type SharedEvent = std::sync::Arc<cudarc::driver::CudaEvent>;

/// Makes a context current on this thread as long as this value lives; then restores the previous context, or none.
///
/// This takes one call of the driver if the context is current already, and four otherwise. Each call takes some 10 ns.
#[must_use = "the context is current as long as this lives"]
pub(crate) struct Current {
    /// Context to restore, null for none. `None` if it was already current.
    before: Option<sys::CUcontext>,
}

/// The context that is current on this thread; null if there is none, or no driver has been started.
fn current() -> sys::CUcontext {
    let mut current = ptr::null_mut();
    // SAFETY: `current` is valid memory.
    let answer = unsafe { sys::cuCtxGetCurrent(&mut current) };
    if answer == sys::CUresult::CUDA_SUCCESS { current } else { ptr::null_mut() }
}

impl Current {
    /// Makes a context current. The driver must have been found.
    pub(super) fn of(context: &CudaContext) -> Result<Self, DriverError> {
        let before = current();
        if before == context.cu_ctx() {
            return Ok(Self { before: None });
        }
        // Does not use `bind_to_thread`, which fails if a drop elsewhere has recorded an error in the context. SAFETY: the
        // context lives as long as `context`.
        unsafe { result::ctx::set_current(context.cu_ctx()) }?;
        Ok(Self { before: Some(before) })
    }

    /// Keeps the current context: when the value is dropped, the context that is current now is current again. The driver must
    /// have been found.
    pub(super) fn keep() -> Self {
        Self { before: Some(current()) }
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if let Some(before) = self.before
            && before != current()
        {
            // SAFETY: a context that was current on this thread, or none. If its owner has destroyed it meanwhile, the call fails
            // and changes nothing.
            let _ = unsafe { sys::cuCtxSetCurrent(before) };
        }
    }
}
