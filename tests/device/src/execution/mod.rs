//! Execution of kernels on the CPU: loads programs and launches their functions.
//!
//! A program is what `nvrtcGetCUBIN` or `nvrtcGetPTX` returns: a header and a shared object for this machine. Blocks of a grid
//! run in parallel, each on one thread of the operating system. The threads of a block are fibres (`block.rs`).

mod block;
mod grid;
mod module;
mod pool;
mod switch;
#[cfg(test)]
mod tests;

pub use grid::{Whereabouts, on_worker, run, whereabouts};
pub use module::{Function, IMAGE_MAGIC, LoadError, Module, image_bytes, image_of};
pub(crate) use switch::STACK_BYTES;

use std::fmt;

/// Kind of a failed launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The launch has sizes outside the limits (`CUDA_ERROR_INVALID_VALUE`).
    InvalidValue,
    /// A block has more threads than the launch bounds allow, or too much shared memory (`CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`).
    OutOfResources,
    /// The kernel called `__trap` (`CUDA_ERROR_LAUNCH_FAILED`).
    Trap,
    /// An `assert` was false (`CUDA_ERROR_ASSERT`).
    Assertion,
    /// An access was not aligned to its size (`CUDA_ERROR_MISALIGNED_ADDRESS`).
    Misaligned,
    /// The lanes of a collective do not match, so that a GPU's result would be undefined.
    Collective,
    /// Threads wait for others that never arrive, so that a GPU would hang.
    Stuck,
    /// The kernel wrote behind the dynamic shared memory.
    SharedMemory,
}

/// Reason of a failed launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub status: Status,
    /// Message with the kernel, the block, the thread and the reason.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// Reason of a failed block.
pub(crate) struct Failure {
    status: Status,
    text: String,
    thread: Option<[u32; 3]>,
}

/// A launch of a function.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared_bytes: u32,
    /// Whether blocks may wait for each other, so that all of them must be resident.
    pub cooperative: bool,
    /// The arguments, packed at the function's `parameter_offsets`.
    pub arguments: &'a [u8],
    /// Seed of the order of lanes and blocks. 0: they take turns in ascending order.
    pub seed: u64,
    pub device: i32,
    pub multiprocessors: u32,
}
