//! Tables in the memory of a CUDA GPU.

pub(crate) mod ahead;
mod bulk;
mod bulk_plan;
pub(crate) mod cache;
#[cfg(feature = "cluster")]
mod cluster;
mod context;
mod copies;
pub(crate) mod device_memory;
mod gpu;
mod gpu_state;
mod growth;
mod growth_plan;
mod in_place;
mod kernels;
mod library;
mod machine;
pub(crate) mod nvrtc;
mod pieces;
mod reserved;
mod row_reservation;
mod stages;
mod staging;
mod store;
mod workspace;

pub use bulk_plan::{Bulk, BulkPass, BulkPlan, BulkSlices, ShortSeeds};
#[cfg(feature = "cluster")]
pub(crate) use cluster::{
    copy_anywhere, enable_peer_access, enqueue_copy, make_stream_wait, new_event, wait_for, wait_for_event,
};
pub(crate) use context::Current;
#[cfg(feature = "cluster")]
pub(crate) use context::{SharedEvent, SharedStream};
pub use cudarc::driver::DeviceRepr;
pub(crate) use device_memory::PinnedMemory;
pub(crate) use gpu::{Gpu, chunk_bytes};
pub(crate) use machine::CudaMachine;
pub(crate) use store::CudaStore;

use crate::{Error, Result, faults};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaContext, sys};

/// Makes a call of `cudarc` that would fail if another object's drop had recorded an error in the context. Records that error
/// again afterwards.
fn undisturbed<T>(context: &CudaContext, call: impl FnOnce() -> Result<T, DriverError>) -> Result<T, DriverError> {
    let _current = Current::of(context)?;
    let earlier = context.check_err();
    let result = call();
    context.record_err(earlier);
    result
}

/// Converts a driver's error, and adds the action that failed.
pub(crate) fn cuda(what: &'static str) -> impl Fn(DriverError) -> Error {
    move |error| Error::Cuda { what, code: error.0 as i32, status: format!("{error:?}") }
}

/// Returns an error if a test injects one into this call.
fn pass(what: &'static str) -> Result<()> {
    if faults::should_fail() { Err(Error::Cuda { what, code: 0, status: faults::ON_PURPOSE.into() }) } else { Ok(()) }
}

fn ensure_driver() -> Result<()> {
    library::DRIVER.ensure_present()?;
    match result::init() {
        // If there is no device, the count is zero; that is not a failure.
        Err(error) if error.0 != sys::CUresult::CUDA_ERROR_NO_DEVICE => Err(cuda("starting the driver")(error)),
        _ => Ok(()),
    }
}
