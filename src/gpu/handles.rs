//! Streams and modules in the interface: handles of the driver, whatever crate made them.

use crate::Result;
use crate::backend::cuda::cuda;
use cudarc::driver::{CudaModule, CudaStream};
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

/// A GPU stream that its owner lends to a call that enqueues work. [`cudarc_0_19`](super::cudarc_0_19) converts a stream of
/// `cudarc` into a `Stream`.
#[derive(Clone, Copy)]
pub struct Stream<'a> {
    pub(crate) stream: &'a CudaStream,
}

impl Stream<'_> {
    /// The driver's handle, a `CUstream`.
    pub fn handle(self) -> *mut c_void {
        self.stream.cu_stream().cast()
    }
}

impl fmt::Debug for Stream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.handle()).finish()
    }
}

/// CUDA C++ of yours, compiled and loaded: see [`Table::compile`](crate::Table::compile). The module stays loaded as long as a
/// clone of this value, or a kernel of it, exists.
#[derive(Clone)]
pub struct Module {
    pub(crate) module: Arc<CudaModule>,
}

impl Module {
    /// The driver's handle of a kernel, a `CUfunction`. It is valid as long as a clone of this value exists.
    /// [`ModuleExt`](super::cudarc_0_19::ModuleExt) gives kernels that `cudarc` launches.
    ///
    /// # Errors
    ///
    /// [`Cuda`](crate::Error::Cuda) if the module has no kernel of this name.
    pub fn function_handle(&self, name: &str) -> Result<*mut c_void> {
        let function = self.module.load_function(name).map_err(cuda("looking for a kernel"))?;
        Ok(function.cu_function().cast())
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").finish_non_exhaustive()
    }
}
